/* index_select.c - slices of one dimension selected, or added to, by a list of indices.
 *
 *   index_select  y_k = x_(index_k) in dim               dx = index_select_backward(dy)
 *   index_select_backward  zeros of n slices with x_(index_k) += g_k; each is the other's gradient
 *   index_add     y = x with y_(index_k) += alpha src_k  dx = dy, dsrc = alpha index_select(dy)
 *
 * Negative indices are refused, as in PyTorch.  Slices are added in the order of index. */
#include "index_plan.h"

typedef struct SelectParams {
    int dim;
    int64_t size; /* of dim in index_select_backward */
} SelectParams;

static int check_list(OpCall *c, const Tensor *index)
{
    if (index->ndim > 1) return op_fail(c, TENSOR_ESHAPE, "index %s: want a list, one dimension", S(index));
    return call_index_dtype(c, index);
}

static IndexPlan plan_of(TensorShape x, int dim, int64_t m)
{
    IndexPlan p = {
        .dim = dim, .outer = 1, .n = x.ndim ? x.dim[dim] : 1, .m = m, .inner = 1, .shared = true
    };
    for (int d = 0; d < dim; d++) p.outer *= x.dim[d];
    for (int d = dim + 1; d < x.ndim; d++) p.inner *= x.dim[d];
    return p;
}

/* ---- index_select ---------------------------------------------------------------------------- */

static int select_shape(OpCall *c)
{
    SelectParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    int64_t shape[TENSOR_MAX_DIMS];
    if (check_list(c, index)) return -1;
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0) return -1;
    if (x->ndim == 0 && index->numel != 1)
        return op_fail(c, TENSOR_ESHAPE, "index %s for []: want one", S(index));
    for (int d = 0; d < x->ndim; d++) shape[d] = d == p->dim ? index->numel : x->shape[d];
    p->size = x->ndim ? x->shape[p->dim] : 1;
    return op_set_output(c, 0, (TensorShape){ x->ndim, shape }, (TensorDtype)x->dtype);
}

static int select_forward(OpCall *c)
{
    const SelectParams *p = op_params(c);
    Tensor *x = own(raw_contiguous(op_input(c, 0))), *index = op_input(c, 1);
    if (!x) return -1;
    IndexPlan plan = plan_of(shape_of(x), p->dim, index->numel);
    return run_gather(c, &plan, x, index, op_output(c, 0));
}

static const TensorOp op_index_select_backward;

static int select_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *index = op_saved(c, 1);
    dx[0] =
        index ? tensor_apply(&op_index_select_backward, (Tensor *[]){ dy, index }, 2, op_params(c)) : NULL;
    return dx[0] ? 0 : -1;
}

static const OpField select_fields[] = { OP_REQUIRED(SelectParams, dim), { 0 } };
static const TensorOp op_index_select = {
    .name = "index_select",
    .autocast = AUTOCAST_AS_IS,
    .summary = "slices of dim in the order of a list of indices",
    .gradient = "dx = zeros with g added at the slices",
    .arity = 2,
    .keep = KEEP_INPUT(1),
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS_GIVEN(SelectParams, select_fields),
    .shape = select_shape,
    .forward = select_forward,
    .backward = select_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "5x3,4@i64:0..4 {dim=0}; 2x3x4,6@i64:0..2 {dim=1}; 2x3,2@i64:0..2 {dim=-1}; 5,@i64:0..4 "
               "{dim=0}; ,1@i64:0..0 {dim=0}; 3x2,0@i64:0..0 {dim=0}; 3x0,2@i64:0..2 {dim=0}",
    .errors = "5x3,2@i64:5..9 {dim=0} ! EINDEX; 5x3,2@i64:-2..-1 {dim=0} ! EINDEX; 5x3,2x2@i64:0..4 {dim=0} "
              "! ESHAPE; 5x3,2 {dim=0} ! EDTYPE; "
              "5x3,2@i64:0..2 {dim=2} ! EINDEX"
};
REGISTER_OPS(&op_index_select);

Tensor *tensor_index_select(Tensor *x, int dim, Tensor *index)
{
    return APPLY(&op_index_select, &((SelectParams){ dim, 0 }), x, index);
}

/* ---- index_select_backward ------------------------------------------------------------------- */

static int place_shape(OpCall *c)
{
    SelectParams *p = op_params_mut(c);
    Tensor *g = op_input(c, 0), *index = op_input(c, 1);
    int64_t shape[TENSOR_MAX_DIMS];
    if (check_list(c, index)) return -1;
    p->dim = call_dim(c, p->dim, shape_of(g));
    if (p->dim < 0) return -1;
    if (index->numel != (g->ndim ? g->shape[p->dim] : 1))
        return op_fail(c, TENSOR_ESHAPE, "index %s for dimension %d of %s: want as many", S(index), p->dim,
                       S(g));
    for (int d = 0; d < g->ndim; d++) shape[d] = d == p->dim ? p->size : g->shape[d];
    return op_set_output(c, 0, (TensorShape){ g->ndim, shape }, (TensorDtype)g->dtype);
}

static int place_forward(OpCall *c)
{
    const SelectParams *p = op_params(c);
    Tensor *g = own(raw_contiguous(op_input(c, 0))), *index = op_input(c, 1), *y = op_output(c, 0);
    if (!g || raw_fill(y, 0)) return -1;
    IndexPlan plan = plan_of(shape_of(y), p->dim, index->numel);
    return run_scatter_add(c, &plan, g, index, y);
}

static int place_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *index = op_saved(c, 1);
    dx[0] = index ? tensor_index_select(dy, ((const SelectParams *)op_params(c))->dim, index) : NULL;
    return dx[0] ? 0 : -1;
}

static const OpField place_fields[] = { OP_REQUIRED(SelectParams, dim, size), { 0 } };
static const TensorOp op_index_select_backward = {
    .name = "index_select_backward",
    .autocast = AUTOCAST_AS_IS,
    .summary = "zeros with slices added at a list of indices",
    .gradient = "dx = index_select(g)",
    .arity = 2,
    .keep = KEEP_INPUT(1),
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS_GIVEN(SelectParams, place_fields),
    .shape = place_shape,
    .forward = place_forward,
    .backward = place_backward,
    .flags = OP_ANY_DEVICE,
    .torch = "-",
    .samples = "4x3,4@i64:0..4 {dim=0 size=5}; 2x6x4,6@i64:0..2 {dim=1 size=3}; 0x3,0@i64:0..0 {dim=0 "
               "size=2}; ,@i64:0..0 {dim=0 size=1}",
    .errors = "4x3,3@i64:0..4 {dim=0 size=5} ! ESHAPE; 2,2@i64:5..6 {dim=0 size=5} ! EINDEX; 2,2@i64:0..1 "
              "{dim=0 size=-1} ! ESHAPE"
};
REGISTER_OPS(&op_index_select_backward);

/* ---- index_add ------------------------------------------------------------------------------- */

const TensorIndexAddArgs tensor_index_add_defaults = { TENSOR_INDEX_ADD_DEFAULTS };

static int add_shape(OpCall *c)
{
    TensorIndexAddArgs *p = op_params_mut(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *src = op_input(c, 2);
    if (check_list(c, index)) return -1;
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0) return -1;
    bool fits = src->ndim == x->ndim && index->numel == (src->ndim ? src->shape[p->dim] : 1);
    for (int d = 0; fits && d < x->ndim; d++) fits = d == p->dim || src->shape[d] == x->shape[d];
    if (!fits)
        return op_fail(
            c, TENSOR_ESHAPE,
            "index %s and source %s for %s: want x's sizes, and as many slices as indices in dimension %d",
            S(index), S(src), S(x), p->dim);
    if (call_source_dtype(c, src, x)) return -1;
    return op_same_shape(c);
}

static Tensor *scaled(Tensor *x, double alpha) { return !x || alpha == 1 ? x : tensor_mul_scalar(x, alpha); }

static int add_forward(OpCall *c)
{
    const TensorIndexAddArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    Tensor *src = scaled(op_input(c, 2), p->alpha);
    if (src && src->dtype != x->dtype)
        return op_fail(c, TENSOR_EVALUE, "alpha %g on %s", p->alpha,
                       tensor_dtype_name((TensorDtype)x->dtype));
    src = src ? own(raw_contiguous(src)) : NULL;
    if (!src || raw_copy(op_output(c, 0), x)) return -1;
    IndexPlan plan = plan_of(shape_of(x), p->dim, index->numel);
    return run_scatter_add(c, &plan, src, index, op_output(c, 0));
}

static int add_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorIndexAddArgs *p = op_params(c);
    dx[0] = dy;
    if (!op_wants(c, 2)) return 0;
    Tensor *index = op_saved(c, 1);
    dx[2] = index ? scaled(tensor_index_select(dy, p->dim, index), p->alpha) : NULL;
    return dx[2] ? 0 : -1;
}

static const OpField add_fields[] = { OP_REQUIRED(TensorIndexAddArgs, dim),
                                      OP_OPTION(TensorIndexAddArgs, alpha),
                                      { 0 } };
static const TensorOp op_index_add = {
    .name = "index_add",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with alpha times slices of a source added at a list of indices of dim",
    .gradient = "dx = g, dsource = alpha index_select(g)",
    .arity = 3,
    .keep_for = { 0, 0, KEEP_INPUT(1) },
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorIndexAddArgs, tensor_index_add_defaults, add_fields),
    .shape = add_shape,
    .forward = add_forward,
    .backward = add_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "5x3,4@i64:0..4,4x3 {dim=0}; 2x3x4,6@i64:0..2,2x6x4 {dim=1 alpha=-0.5}; 5,3@i64:0..4,3 "
               "{dim=-1}; ,1@i64:0..0, {dim=0}; 3x2,0@i64:0..0,0x2 {dim=0}",
    .errors = "5x3,2@i64:5..9,2x3 {dim=0} ! EINDEX; 5x3,2@i64:0..4,3x3 {dim=0} ! ESHAPE; 5x3,2@i64:0..4,2x4 "
              "{dim=0} ! ESHAPE; 5,2,2 {dim=0} ! EDTYPE; "
              "5,2@i64:0..4,2@i64:0..4 {dim=0} ! EDTYPE"
};
REGISTER_OPS(&op_index_add);

Tensor *tensor_index_add_args(TensorIndexAddArgs args)
{
    return APPLY(&op_index_add, &args, args.input, args.index, args.source);
}

Tensor *tensor_index_add_args_(TensorIndexAddArgs args)
{
    return APPLY_(&op_index_add, &args, args.input, args.index, args.source);
}
