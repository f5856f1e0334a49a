/* gather.c - elements gathered and added by an index for each element along one dimension.
 *
 *   gather       y_ijk = x_(i, index_ijk, k)                    dx = gather_backward(dy)
 *   gather_backward  zeros with x_(i, index_ijk, k) += g_ijk; each is the other's gradient
 *   scatter_add  y = x with y_(i, index_ijk, k) += src_ijk      dx = dy, dsrc = gather(dy)
 *
 * (for dim 1 of 3).  index may be smaller than x in the other dimensions.  Negative indices are refused, as
 * in PyTorch; take_along_dim counts them from the end, as NumPy does. Additions happen in the order of index,
 * so sums are the same bits every time. */
#include "index_plan.h"

typedef struct GatherParams {
    int dim;
} GatherParams;

/* ---- layout ---------------------------------------------------------------------------------- */

/* 0 when index, of x's rank, fits into x beside dim; a rank of 0 counts as one dimension of size 1. */
static int check_index(OpCall *c, int64_t *dim, TensorShape x, const Tensor *index, const char *what)
{
    if (call_index_dtype(c, index)) return -1;
    *dim = call_dim(c, *dim, x);
    if (*dim < 0) return -1;
    int rank = x.ndim ? x.ndim : 1, index_rank = index->ndim ? index->ndim : 1;
    bool fits = rank == index_rank || index->numel == 0;
    for (int d = 0; fits && d < x.ndim && d < index->ndim; d++)
        fits = d == *dim || index->shape[d] <= x.dim[d] || index->numel == 0;
    return fits ? 0
                : op_fail(c, TENSOR_ESHAPE,
                          "index %s for %s %s: want its rank and no larger size but in dimension %d",
                          S(index), what, shape_text(x), (int)*dim);
}

static Tensor *dense(Tensor *x) { return x ? own(raw_contiguous(x)) : NULL; }

/* y_index += src, where y is dense. */
static int add_at(OpCall *c, Tensor *y, int dim, const Tensor *index, const Tensor *src)
{
    if (index->numel == 0) return 0;
    IndexPlan plan = index_plan(shape_of(y), index, dim);
    Tensor *region = index_within(y, index, dim), *to = dense(region),
           *from = dense(index_within(src, index, -1));
    if (!to || !from || run_scatter_add(c, &plan, from, index, to)) return -1;
    return to == region ? 0 : raw_copy(region, to);
}

/* ---- gather ---------------------------------------------------------------------------------- */

static int gather_shape(OpCall *c)
{
    GatherParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    int64_t dim = p->dim;
    if (check_index(c, &dim, shape_of(x), index, "gathering from")) return -1;
    p->dim = (int)dim;
    return op_set_output(c, 0, shape_of(index), (TensorDtype)x->dtype);
}

static int gather_forward(OpCall *c)
{
    const GatherParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    if (index->numel == 0) return 0;
    IndexPlan plan = index_plan(shape_of(x), index, p->dim);
    Tensor *from = dense(index_within(x, index, p->dim));
    return from ? run_gather(c, &plan, from, index, op_output(c, 0)) : -1;
}

typedef struct PlaceParams {
    int dim;
    TensorShape shape; /* of the tensor that was gathered from */
} PlaceParams;
static const TensorOp op_gather_backward;

static int gather_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    const PlaceParams p = { ((const GatherParams *)op_params(c))->dim, op_input_shape(c, 0) };
    Tensor *index = op_saved(c, 1);
    if (!index) return -1;
    dx[0] = tensor_apply(&op_gather_backward, (Tensor *[]){ dy, index }, 2, &p);
    return dx[0] ? 0 : -1;
}

static const OpField gather_fields[] = { OP_REQUIRED(GatherParams, dim), { 0 } };
static const TensorOp op_gather = {
    .name = "gather",
    .autocast = AUTOCAST_AS_IS,
    .summary = "elements of dim picked by an index for each",
    .gradient = "dx = zeros with g added at the index",
    .arity = 2,
    .keep = KEEP_INPUT(1),
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS_GIVEN(GatherParams, gather_fields),
    .shape = gather_shape,
    .forward = gather_forward,
    .backward = gather_grad,
    .flags = OP_ANY_DEVICE,
    .samples = "3x4,3x2@i64:0..3 {dim=1}; 3x4,2x4@i64:0..2 {dim=0}; 3x4x2,2x5x1@i64:0..3 {dim=-2}; "
               "5,7@i64:0..4 {dim=0}; ,@i64:0..0 {dim=0}; "
               "3x4,3x0@i64:0..0 {dim=1}; 3,@i64:0..2 {dim=0}; 3x4,3x2@i32:0..3 {dim=1}",
    .errors = "3x4,3x2@i64:4..9 {dim=1} ! EINDEX; 3x4,3x2@i64:-3..-1 {dim=1} ! EINDEX; 3x4,4x2@i64:0..3 "
              "{dim=1} ! ESHAPE; 3x4,3@i64:0..3 {dim=1} ! ESHAPE; "
              "3x4,3x2 {dim=1} ! EDTYPE; 3x4,3x2@i64:0..3 {dim=2} ! EINDEX"
};
REGISTER_OPS(&op_gather);

Tensor *tensor_gather(Tensor *x, int dim, Tensor *index)
{
    return APPLY(&op_gather, &((GatherParams){ dim }), x, index);
}

/* ---- gather_backward ------------------------------------------------------------------------- */

static int place_shape(OpCall *c)
{
    PlaceParams *p = op_params_mut(c);
    Tensor *g = op_input(c, 0), *index = op_input(c, 1);
    int64_t dim = p->dim;
    if (check_index(c, &dim, p->shape, index, "adding into")) return -1;
    p->dim = (int)dim;
    if (!shape_equal(shape_of(g), shape_of(index)))
        return op_fail(c, TENSOR_ESHAPE, "%s with index %s: want equal shapes", S(g), S(index));
    return op_set_output(c, 0, p->shape, (TensorDtype)g->dtype);
}

static int place_forward(OpCall *c)
{
    const PlaceParams *p = op_params(c);
    Tensor *y = op_output(c, 0);
    return raw_fill(y, 0) ? -1 : add_at(c, y, p->dim, op_input(c, 1), op_input(c, 0));
}

static int place_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *index = op_saved(c, 1);
    dx[0] = index ? tensor_gather(dy, ((const PlaceParams *)op_params(c))->dim, index) : NULL;
    return dx[0] ? 0 : -1;
}

static const OpField place_fields[] = { OP_REQUIRED(PlaceParams, dim, shape), { 0 } };
static const TensorOp op_gather_backward = {
    .name = "gather_backward",
    .autocast = AUTOCAST_AS_IS,
    .summary = "zeros of a shape with x added at the index",
    .gradient = "dx = gather(g)",
    .arity = 2,
    .keep = KEEP_INPUT(1),
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS_GIVEN(PlaceParams, place_fields),
    .shape = place_shape,
    .forward = place_forward,
    .backward = place_grad,
    .flags = OP_ANY_DEVICE,
    .torch = "-",
    .samples = "3x2,3x2@i64:0..3 {dim=1 shape=[3 4]}; 2x4,2x4@i64:0..2 {dim=0 shape=[3 5]}; ,@i64:0..2 "
               "{dim=0 shape=[3]}; 0,0@i64:0..0 {dim=0 shape=[2]}",
    .errors = "3x2,3x1@i64:0..3 {dim=1 shape=[3 4]} ! ESHAPE; 3,3@i64:4..5 {dim=0 shape=[4]} ! EINDEX"
};
REGISTER_OPS(&op_gather_backward);

/* ---- scatter_add ----------------------------------------------------------------------------- */

static int scatter_shape(OpCall *c)
{
    GatherParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *src = op_input(c, 2);
    int64_t dim = p->dim;
    if (check_index(c, &dim, shape_of(x), index, "adding into")) return -1;
    p->dim = (int)dim;
    bool fits = src->ndim == index->ndim || index->numel == 0 ||
                (src->ndim + index->ndim == 1 && index->numel <= src->numel);
    for (int d = 0; fits && d < src->ndim && d < index->ndim; d++)
        fits = index->shape[d] <= src->shape[d] || index->numel == 0;
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE, "index %s for a source %s: want its rank and no larger size",
                       S(index), S(src));
    if (call_source_dtype(c, src, x)) return -1;
    return op_same_shape(c);
}

static int scatter_forward(OpCall *c)
{
    const GatherParams *p = op_params(c);
    if (raw_copy(op_output(c, 0), op_input(c, 0))) return -1;
    return add_at(c, op_output(c, 0), p->dim, op_input(c, 1), op_input(c, 2));
}

/* Elements of src beyond index have the gradient 0. */
static Tensor *source_grad(OpCall *c, Tensor *dy)
{
    TensorShape want = op_input_shape(c, 2);
    Tensor *index = op_saved(c, 1),
           *g = index ? tensor_gather(dy, ((const GatherParams *)op_params(c))->dim, index) : NULL;
    if (g && g->numel == 0) return zeros_on(want, g->dtype, g->place);
    if (g && want.ndim != g->ndim) g = tensor_reshape(g, (TensorShape){ want.ndim, (int64_t[]){ 1 } });
    for (int d = 0; g && d < want.ndim; d++)
        if (g->shape[d] != want.dim[d]) g = embed_part(g, d, 0, want.dim[d]);
    return g;
}

static int scatter_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = dy;
    if (op_wants(c, 2) && !(dx[2] = source_grad(c, dy))) return -1;
    return 0;
}

static const TensorOp op_scatter_add = {
    .name = "scatter_add",
    .autocast = AUTOCAST_CUDA_PROMOTE,
    .summary = "x with elements of src added at an index along dim",
    .gradient = "dx = g, dsrc = gather(g)",
    .arity = 3,
    .keep_for = { 0, 0, KEEP_INPUT(1) },
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS_GIVEN(GatherParams, gather_fields),
    .shape = scatter_shape,
    .forward = scatter_forward,
    .backward = scatter_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "3x4,3x2@i64:0..3,3x2 {dim=1}; 3x4,2x3@i64:0..2,4x5 {dim=0}; 5,7@i64:0..4,7 {dim=-1}; "
               ",@i64:0..0, {dim=0}; 3,0@i64:0..0,3 {dim=0}; 2x3x4,2x2x3@i64:0..2,2x2x4 {dim=1}",
    .errors = "3x4,3x2@i64:4..9,3x2 {dim=1} ! EINDEX; 3x4,3x2@i64:0..3,3x1 {dim=1} ! ESHAPE; "
              "3x4,3x2@i64:0..3,3x2@i64:0..3 {dim=1} ! EDTYPE; "
              "3x4,4x2@i64:0..3,4x2 {dim=1} ! ESHAPE"
};
REGISTER_OPS(&op_scatter_add);

Tensor *tensor_scatter_add(Tensor *x, int dim, Tensor *index, Tensor *src)
{
    return APPLY(&op_scatter_add, &((GatherParams){ dim }), x, index, src);
}

Tensor *tensor_scatter_add_(Tensor *x, int dim, Tensor *index, Tensor *src)
{
    return APPLY_(&op_scatter_add, &((GatherParams){ dim }), x, index, src);
}

/* ---- take_along_dim -------------------------------------------------------------------------- */

const TensorTakeArgs tensor_take_along_dim_defaults = { TENSOR_TAKE_ALONG_DIM_DEFAULTS };

/* index with those of -n .. -1 counted from the end of n. */
static Tensor *from_end(Tensor *index, int64_t n)
{
    Tensor *back = tensor_logical_and(tensor_lt_scalar(index, 0), tensor_ge_scalar(index, -(double)n));
    return tensor_where(back, tensor_add_scalar(index, (double)n), index);
}

static int take_compose(OpCall *c)
{
    const TensorTakeArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    if (call_index_dtype(c, index)) return -1;
    if (p->dim == TENSOR_ALL)
        return op_set_result(c, 0,
                             tensor_gather(tensor_flatten(x), 0, from_end(tensor_flatten(index), x->numel)));
    const int dim = call_dim(c, p->dim, shape_of(x));
    if (dim < 0) return -1;
    if (x->ndim != index->ndim)
        return op_fail(c, TENSOR_ESHAPE, "index %s for %s: want the same rank", S(index), S(x));
    int64_t shape[TENSOR_MAX_DIMS], mine[TENSOR_MAX_DIMS], its[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        mine[d] = d == dim ? 1 : x->shape[d], its[d] = d == dim ? 1 : index->shape[d];
    if (shape_broadcast((TensorShape){ x->ndim, mine }, (TensorShape){ x->ndim, its }, shape) < 0)
        return op_fail(c, TENSOR_ESHAPE, "index %s and %s do not broadcast beside dimension %d", S(index),
                       S(x), dim);
    for (int d = 0; d < x->ndim; d++)
        mine[d] = d == dim ? x->shape[d] : shape[d], its[d] = d == dim ? index->shape[d] : shape[d];
    TensorShape to = { x->ndim, mine }, pick = { x->ndim, its };
    return op_set_result(
        c, 0, tensor_gather(tensor_expand(x, to), dim, tensor_expand(from_end(index, mine[dim]), pick)));
}

static const OpField take_fields[] = { OP_OPTION(TensorTakeArgs, dim), { 0 } };
static const TensorOp op_take_along_dim = {
    .name = "take_along_dim",
    .autocast = AUTOCAST_AS_IS,
    .summary = "gather where the other dimensions broadcast, indices may count from the end; without dim, of "
               "x flattened",
    .gradient = "dx = zeros with g added at the index",
    .arity = 2,
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorTakeArgs, tensor_take_along_dim_defaults, take_fields),
    .compose = take_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "3x4,3x2@i64:0..3 {dim=1}; 3x4,1x2@i64:0..3 {dim=1}; 1x4,3x2@i64:-4..3 {dim=-1}; "
               "3x4,5@i64:-12..11; 2x0,2x0@i64:0..0 {dim=1}",
    .errors = "3x4,3@i64:0..2 {dim=1} ! ESHAPE; 3x4,2x2@i64:0..3 {dim=1} ! ESHAPE; 3x4,3x2@i64:4..5 "
              "{dim=1} ! EINDEX; "
              "3x4,3x2@i64:-9..-5 {dim=1} ! EINDEX"
};
REGISTER_OPS(&op_take_along_dim);

Tensor *tensor_take_along_dim_args(TensorTakeArgs args)
{
    return APPLY(&op_take_along_dim, &args, args.input, args.index);
}
