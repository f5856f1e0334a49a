/* scatter.c - elements written at an index along one dimension: if an index repeats, the last write wins.
 *
 *   y = x with y_(i, index_ijk, k) = src_ijk
 *   dx = dy, 0 where written      dsrc = dy there for winners, 0 for losers
 *
 * (for dim 1 of 3).  On the host elements are written one after the other, and gradients find two masks, in
 * the order of index: x's elements that are written, and src's elements that win.  Other devices find each
 * element's last writer by a fold, gather, and save the masks. */
#include "cpu/index/host_index.h"
#include "index_plan.h"

typedef struct ScatterParams {
    int dim;
    double value;
    bool direct; /* set: forward wrote one after the other, and saved no masks */
} ScatterParams;

/* ---- the masks ------------------------------------------------------------------------------- */

static int check(OpCall *c)
{
    ScatterParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    if (call_index_dtype(c, index)) return -1;
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0) return -1;
    p->direct = on_host(x->place);
    bool fits = x->ndim == index->ndim || index->numel == 0;
    for (int d = 0; fits && d < x->ndim && d < index->ndim; d++)
        fits = d == p->dim || index->shape[d] <= x->shape[d] || index->numel == 0;
    return fits
               ? 0
               : op_fail(c, TENSOR_ESHAPE,
                         "index %s for writing into %s: want its rank and no larger size but in dimension %d",
                         S(index), S(x), p->dim);
}

/* Marks written (of x's shape) and wins (of index's shape), both dense and zero on the host. */
static int mark(OpCall *c, int dim, const Tensor *index, Tensor *written, Tensor *wins)
{
    if (check_indices(c, index, written->ndim ? written->shape[dim] : 1)) return -1;
    host_winners(index->data, index->numel, index->ndim, index->shape, dim, written->stride, written->data,
                 wins->data);
    return 0;
}

static int make_masks(OpCall *c, int dim, TensorShape x, Tensor *list, Tensor **written, Tensor **wins)
{
    Tensor *index = list ? host_copy(list, TENSOR_I64) : NULL;
    *written = zeros_on(x, TENSOR_BOOL, &cpu_place);
    *wins = index ? zeros_on(shape_of(index), TENSOR_BOOL, &cpu_place) : NULL;
    if (!*written || !*wins || mark(c, dim, index, *written, *wins)) return -1;
    *written = carried(*written, list->place), *wins = carried(*wins, list->place);
    return *written && *wins ? 0 : -1;
}

/* Where x is as large as index, but in dim, the last writer of each element; written is that as a mask of
 * x's shape. */
static Tensor *find_writers(OpCall *c, int dim, Tensor **written)
{
    Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    const IndexPlan plan = index_plan(shape_of(x), index, dim);
    *written = zeros_on(shape_of(x), TENSOR_BOOL, x->place);
    Tensor *part = *written ? index_within(*written, index, dim) : NULL,
           *last = part ? last_writers(c, &plan, index, shape_of(part)) : NULL;
    Tensor *some = last ? tensor_ge_scalar(last, 0) : NULL;
    return some && !raw_copy(part, some) ? last : NULL;
}

/* In backward: those that forward saved, or else made now. */
static int masks_of(OpCall *c, Tensor **written, Tensor **wins)
{
    const ScatterParams *p = op_params(c);
    Tensor *index = op_saved(c, 1);
    if (!index) return -1;
    if (p->direct) return make_masks(c, p->dim, op_input_shape(c, 0), index, written, wins);
    *written = op_saved_extra(c, 0);
    if (wins) *wins = op_saved_extra(c, 1);
    return *written && (!wins || *wins) ? 0 : -1;
}

/* y = x with the elements of src (of index's shape, by its strides) written in the order of index. */
static int write_each(OpCall *c, const Tensor *src, const int64_t *stride)
{
    const ScatterParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *y = op_output(c, 0), *index = own(raw_cast(op_input(c, 1), TENSOR_I64));
    if (!index || check_indices(c, index, x->ndim ? x->shape[p->dim] : 1) || raw_copy(y, x)) return -1;
    host_scatter(&(HostScatter){ .y = y->data,
                                 .src = src->data,
                                 .index = index->data,
                                 .shape = index->shape,
                                 .y_stride = y->stride,
                                 .src_stride = stride,
                                 .ndim = index->ndim,
                                 .dim = p->dim,
                                 .size = dtype_size(y->dtype) });
    return 0;
}

/* ---- scatter --------------------------------------------------------------------------------- */

static int scatter_shape(OpCall *c)
{
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *src = op_input(c, 2);
    if (check(c)) return -1;
    bool fits = src->ndim == index->ndim || index->numel == 0;
    for (int d = 0; fits && d < src->ndim && d < index->ndim; d++)
        fits = index->shape[d] <= src->shape[d] || index->numel == 0;
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE, "index %s for a source %s: want its rank and no larger size",
                       S(index), S(src));
    if (call_source_dtype(c, src, x)) return -1;
    return op_same_shape(c);
}

/* On another device than the CPU.  wins: of index's shape, which of src's elements are some. */
static int scatter_there(OpCall *c, int dim, Tensor **written, Tensor **wins)
{
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *y = op_output(c, 0),
           *last = find_writers(c, dim, written);
    const IndexPlan plan = index_plan(shape_of(x), index, dim);
    IndexPlan back = plan;
    back.n = plan.m, back.m = plan.n;
    Tensor *part = index_within(op_input(c, 2), index, -1), *src = part ? own(raw_contiguous(part)) : NULL,
           *from = last ? tensor_clamp(last, 0, (double)(plan.m - 1)) : NULL;
    if (!src || !from || raw_copy(y, x)) return -1;
    Tensor *picked = own(new_tensor(shape_of(last), y->dtype, y->place)),
           *mask = index_within(*written, index, dim), *old = index_within(x, index, dim),
           *to = index_within(y, index, dim);
    if (!picked || !mask || !old || !to || run_gather(c, &back, src, from, picked) ||
        raw_select(c->name, to, mask, picked, old))
        return -1;
    Tensor *winner = own(new_tensor(shape_of(index), TENSOR_I64, y->place)),
           *rows = numbers_on(plan.m, TENSOR_I64, y->place);
    int64_t line[TENSOR_MAX_DIMS];
    for (int d = 0; d < index->ndim; d++) line[d] = d == dim ? plan.m : 1;
    if (!winner || run_gather(c, &plan, last, index, winner)) return -1;
    *wins = tensor_eq(winner, tensor_reshape(rows, (TensorShape){ index->ndim, line }));
    return *wins ? 0 : -1;
}

static int scatter_forward(OpCall *c)
{
    const ScatterParams *p = op_params(c);
    Tensor *written, *wins;
    if (op_input(c, 1)->numel == 0) return raw_copy(op_output(c, 0), op_input(c, 0));
    if (p->direct) return write_each(c, op_input(c, 2), op_input(c, 2)->stride);
    if (scatter_there(c, p->dim, &written, &wins)) return -1;
    return op_save(c, written) || op_save(c, wins) ? -1 : 0;
}

static Tensor *source_grad(OpCall *c, Tensor *dy, Tensor *wins)
{
    TensorShape want = op_input_shape(c, 2);
    Tensor *index = op_saved(c, 1);
    Tensor *g = index ? tensor_gather(dy, ((const ScatterParams *)op_params(c))->dim, index) : NULL;
    if (g) g = tensor_where(wins, g, zeros_on(SHAPE(), g->dtype, g->place));
    for (int d = 0; g && d < want.ndim; d++)
        if (g->shape[d] != want.dim[d]) g = embed_part(g, d, 0, want.dim[d]);
    return g;
}

static int scatter_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    bool empty = shape_count(op_input_shape(c, 1)) == 0;
    Tensor *written = NULL, *wins = NULL;
    if (!empty && masks_of(c, &written, &wins)) return -1;
    if (op_wants(c, 0)) {
        dx[0] = empty ? dy : written ? tensor_masked_fill(dy, written, 0) : NULL;
        if (!dx[0]) return -1;
    }
    if (op_wants(c, 2)) {
        dx[2] = empty ? zeros_on(op_input_shape(c, 2), dy->dtype, dy->place) : source_grad(c, dy, wins);
        if (!dx[2]) return -1;
    }
    return 0;
}

static const OpField scatter_fields[] = { OP_REQUIRED(ScatterParams, dim), { 0 } };
static const TensorOp op_scatter = {
    .name = "scatter",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with elements of src written at an index along dim; the last one wins",
    .gradient = "dx = g with 0 at the index, dsrc = g where it was written",
    .arity = 3,
    .keep = KEEP_INPUT(1),
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS_GIVEN(ScatterParams, scatter_fields),
    .shape = scatter_shape,
    .forward = scatter_forward,
    .backward = scatter_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "3x4,3x2@i64:0..3,3x2 {dim=1}; 3x4,2x3@i64:0..2,4x5 {dim=0}; 5,7@i64:0..4,7 {dim=-1}; "
               ",@i64:0..0, {dim=0}; 3,0@i64:0..0,3 {dim=0}; 2x3x4,2x2x3@i64:0..2,2x2x4 {dim=1}",
    .errors = "3x4,3x2@i64:4..9,3x2 {dim=1} ! EINDEX; 3x4,3x2@i64:0..3,3x1 {dim=1} ! ESHAPE; "
              "3x4,3x2@i64:0..3,3x2@i64:0..3 {dim=1} ! EDTYPE; "
              "3x4,3x2,3x2 {dim=1} ! EDTYPE"
};
REGISTER_OPS(&op_scatter);

Tensor *scatter_as(const char *name, Tensor *x, int dim, Tensor *index, Tensor *src, const void *site)
{
    return op_apply1_as(&op_scatter, name, (Tensor *[]){ x, index, src }, 3, &((ScatterParams){ .dim = dim }),
                        site);
}

Tensor *tensor_scatter(Tensor *x, int dim, Tensor *index, Tensor *src)
{
    return scatter_as(op_scatter.name, x, dim, index, src, SITE);
}

Tensor *tensor_scatter_(Tensor *x, int dim, Tensor *index, Tensor *src)
{
    return APPLY_(&op_scatter, &((ScatterParams){ .dim = dim }), x, index, src);
}

/* ---- scatter_value --------------------------------------------------------------------------- */

static int value_shape(OpCall *c)
{
    return check(c) || check_fill(c->name, op_input(c, 0), ((const ScatterParams *)op_params(c))->value)
               ? -1
               : op_same_shape(c);
}

static int value_forward(OpCall *c)
{
    const ScatterParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *y = op_output(c, 0), *written;
    if (op_input(c, 1)->numel == 0) return raw_copy(y, x);
    Tensor *value = own(new_tensor(SHAPE(), x->dtype, x->place));
    if (!value || raw_fill(value, p->value)) return -1;
    if (p->direct) return write_each(c, value, (const int64_t[TENSOR_MAX_DIMS]){ 0 });
    if (!find_writers(c, p->dim, &written) || raw_select(c->name, y, written, value, x)) return -1;
    return op_save(c, written);
}

static int value_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    bool empty = shape_count(op_input_shape(c, 1)) == 0;
    Tensor *written = NULL, *wins = NULL;
    if (!empty && masks_of(c, &written, ((const ScatterParams *)op_params(c))->direct ? &wins : NULL))
        return -1;
    dx[0] = empty ? dy : written ? tensor_masked_fill(dy, written, 0) : NULL;
    return dx[0] ? 0 : -1;
}

static const OpField value_fields[] = { OP_REQUIRED(ScatterParams, dim, value), { 0 } };
static const TensorOp op_scatter_value = {
    .name = "scatter_value",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with a number written at an index along dim",
    .gradient = "dx = g with 0 at the index",
    .arity = 2,
    .keep = KEEP_INPUT(1),
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS_GIVEN(ScatterParams, value_fields),
    .shape = value_shape,
    .forward = value_forward,
    .backward = value_backward,
    .flags = OP_ANY_DEVICE,
    .torch = "scatter",
    .samples = "3x4,3x2@i64:0..3 {dim=1 value=2.5}; 3x4,2x3@i64:0..2 {dim=0 value=-1}; 5,7@i64:0..4 {dim=-1 "
               "value=0}; ,@i64:0..0 {dim=0 value=1}; 3,0@i64:0..0 {dim=0 value=1}",
    .errors = "3x4,3x2@i64:4..9 {dim=1 value=1} ! EINDEX; 3x4,3@i64:0..3 {dim=1 value=1} ! ESHAPE; 3x4,3x2 "
              "{dim=1 value=1} ! EDTYPE"
};
REGISTER_OPS(&op_scatter_value);

Tensor *tensor_scatter_value(Tensor *x, int dim, Tensor *index, double value)
{
    return APPLY(&op_scatter_value, &((ScatterParams){ dim, value }), x, index);
}

Tensor *tensor_scatter_value_(Tensor *x, int dim, Tensor *index, double value)
{
    return APPLY_(&op_scatter_value, &((ScatterParams){ dim, value }), x, index);
}
