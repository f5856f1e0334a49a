/* view_slice.c - views of a part of one dimension: slice, narrow, select.
 *
 *   y_k = x_(start + k step)                  dx = zeros of x's shape with dy at those places
 *
 * That gradient is an op, slice_backward, whose own gradient is the slice.  select is a slice of one without
 * its dimension. */
#include "shape_op.h"

const TensorSliceArgs tensor_slice_defaults = { TENSOR_SLICE_DEFAULTS };

typedef struct EmbedParams { /* slice_backward */
    int dim;
    int64_t start, end, step;
    int64_t size; /* of the result in dim */
} EmbedParams;

static int64_t bound(int64_t at, int64_t size)
{
    if (at < 0) at += size;
    return at < 0 ? 0 : at > size ? size : at;
}

static int64_t length_of(int64_t start, int64_t end, int64_t step)
{
    return end > start ? (end - start - 1) / step + 1 : 0;
}

/* ---- slice ----------------------------------------------------------------------------------- */

static int slice_shape(OpCall *c)
{
    TensorSliceArgs *p = op_params_mut(c);
    if (call_real_dim(c, &p->dim)) return -1;
    if (p->step < 1) return op_fail(c, TENSOR_EVALUE, "by steps of %lld: want 1 or more", (long long)p->step);
    const int64_t size = op_input(c, 0)->shape[p->dim];
    p->start = bound(p->start, size), p->end = bound(p->end, size);
    return 0;
}

static int slice_forward(OpCall *c)
{
    const TensorSliceArgs *p = op_params(c);
    const int64_t length = length_of(p->start, p->end, p->step);
    return op_set_result(c, 0, own(new_part(op_input(c, 0), p->dim, p->start, length, p->step)));
}

static const TensorOp op_slice_backward;

static int slice_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorSliceArgs *p = op_params(c);
    const EmbedParams embed = { p->dim, p->start, p->end, p->step, op_input_shape(c, 0).dim[p->dim] };
    dx[0] = tensor_apply(&op_slice_backward, &dy, 1, &embed);
    return dx[0] ? 0 : -1;
}

static const OpField slice_fields[] = { OP_OPTION(TensorSliceArgs, dim, start, end, step), { 0 } };
static const TensorOp op_slice = {
    .name = "slice",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x[..., start:end:step, ...] in dim; bounds are clamped, negative ones count from the end",
    .gradient = "dx = zeros with g in the slice",
    .arity = 1,
    PARAMS(TensorSliceArgs, tensor_slice_defaults, slice_fields),
    .shape = slice_shape,
    .forward = slice_forward,
    .backward = slice_grad,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .torch = "ops.aten.slice",
    .samples = "5x3 {start=1 end=4}; 2x7 {dim=1 start=0 end=7 step=3}; 6 {start=-3}; 6 {start=-100 end=100 "
               "step=2}; 4 {start=3 end=1}; 2x3x4 {dim=-2 start=1 end=-1}; 0x3 {start=0}; 5 {start=5}",
    .errors = "{start=0} ! EINDEX; 3 {dim=1} ! EINDEX; 3 {step=0} ! EVALUE; 3 {step=-1} ! EVALUE"
};
REGISTER_OPS(&op_slice);

Tensor *tensor_slice_args(TensorSliceArgs a) { return APPLY(&op_slice, &a, a.input); }

/* ---- slice_backward: zeros with a slice set -------------------------------------------------- */

static int embed_shape(OpCall *c)
{
    EmbedParams *p = op_params_mut(c);
    Tensor *g = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    if (call_real_dim(c, &p->dim)) return -1;
    if (p->step < 1 || p->size < 0)
        return op_fail(c, TENSOR_EVALUE, "steps of %lld in a size of %lld", (long long)p->step,
                       (long long)p->size);
    p->start = bound(p->start, p->size), p->end = bound(p->end, p->size);
    if (g->shape[p->dim] != length_of(p->start, p->end, p->step))
        return op_fail(c, TENSOR_ESHAPE, "%s in dimension %d: the slice has %lld", S(g), p->dim,
                       (long long)length_of(p->start, p->end, p->step));
    for (int d = 0; d < g->ndim; d++) shape[d] = d == p->dim ? p->size : g->shape[d];
    return op_set_output(c, 0, (TensorShape){ g->ndim, shape }, g->dtype);
}

static int embed_forward(OpCall *c)
{
    const EmbedParams *p = op_params(c);
    Tensor *y = op_output(c, 0);
    if (raw_fill(y, 0)) return -1;
    Tensor *part = own(new_part(y, p->dim, p->start, length_of(p->start, p->end, p->step), p->step));
    return part ? raw_copy(part, op_input(c, 0)) : -1;
}

static int embed_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const EmbedParams *p = op_params(c);
    dx[0] = tensor_slice(dy, p->dim, p->start, p->end, p->step);
    return dx[0] ? 0 : -1;
}

static const EmbedParams embed_defaults = { .end = INT64_MAX, .step = 1 };
static const OpField embed_fields[] = { OP_OPTION(EmbedParams, dim, start, end, step),
                                        OP_REQUIRED(EmbedParams, size),
                                        { 0 } };
static const TensorOp op_slice_backward = {
    .name = "slice_backward",
    .autocast = AUTOCAST_AS_IS,
    .summary = "zeros of the given size in dim, where a slice of them is x",
    .gradient = "dx = slice(g)",
    .arity = 1,
    PARAMS(EmbedParams, embed_defaults, embed_fields),
    .shape = embed_shape,
    .forward = embed_forward,
    .backward = embed_backward,
    .flags = OP_ANY_DEVICE,
    .torch = "-",
    .samples = "3x2 {start=1 end=4 size=5}; 2x3 {dim=1 step=3 size=7}; 0x3 {start=2 end=1 size=4}; 2 "
               "{start=-2 size=4}",
    .errors = "3 {start=1 end=3 size=5} ! ESHAPE; 3 {step=0 size=3} ! EVALUE; {size=1} ! EINDEX"
};
REGISTER_OPS(&op_slice_backward);

Tensor *embed_part(Tensor *g, int dim, int64_t start, int64_t size)
{
    const EmbedParams p = { dim, start, start + g->shape[dim], 1, size };
    return tensor_apply(&op_slice_backward, &g, 1, &p);
}

/* ---- narrow ---------------------------------------------------------------------------------- */

typedef struct NarrowParams {
    int dim;
    int64_t start, length;
} NarrowParams;

static int narrow_shape(OpCall *c)
{
    NarrowParams *p = op_params_mut(c);
    if (call_real_dim(c, &p->dim)) return -1;
    const int64_t size = op_input(c, 0)->shape[p->dim], start = p->start < 0 ? p->start + size : p->start;
    if (p->length < 0 || start < 0 || start > size || p->length > size - start)
        return op_fail(c, TENSOR_EINDEX,
                       "%lld elements from %lld on in dimension %d of %s: it does not have them",
                       (long long)p->length, (long long)p->start, p->dim, S(op_input(c, 0)));
    p->start = start;
    return 0;
}

static int narrow_forward(OpCall *c)
{
    const NarrowParams *p = op_params(c);
    return op_set_result(c, 0, own(new_part(op_input(c, 0), p->dim, p->start, p->length, 1)));
}

static int narrow_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    const NarrowParams *p = op_params(c);
    dx[0] = embed_part(dy, p->dim, p->start, op_input_shape(c, 0).dim[p->dim]);
    return dx[0] ? 0 : -1;
}

static const OpField narrow_fields[] = { OP_REQUIRED(NarrowParams, dim, start, length), { 0 } };
static const TensorOp op_narrow = { .name = "narrow",
                                    .autocast = AUTOCAST_AS_IS,
                                    .summary = "length elements of dim from start on",
                                    .gradient = "dx = zeros with g in the slice",
                                    .arity = 1,
                                    PARAMS_GIVEN(NarrowParams, narrow_fields),
                                    .shape = narrow_shape,
                                    .forward = narrow_forward,
                                    .backward = narrow_grad,
                                    .flags = OP_VIEW | OP_ANY_DEVICE,
                                    .samples =
                                        "5x3 {dim=0 start=1 length=3}; 2x7 {dim=-1 start=-2 length=2}; 3 "
                                        "{dim=0 start=3 length=0}; 3 {dim=0 start=0 length=3}",
                                    .errors = "3 {dim=0 start=2 length=2} ! EINDEX; 3 {dim=0 start=-4 "
                                              "length=1} ! EINDEX; 3 {dim=0 start=0 length=-1} ! EINDEX; "
                                              "{dim=0 start=0 length=1} ! EINDEX" };
REGISTER_OPS(&op_narrow);

Tensor *tensor_narrow(Tensor *x, int dim, int64_t start, int64_t length)
{
    return APPLY(&op_narrow, &((NarrowParams){ dim, start, length }), x);
}

/* ---- select ---------------------------------------------------------------------------------- */

typedef struct SelectParams {
    int dim;
    int64_t index;
} SelectParams;

static int select_shape(OpCall *c)
{
    SelectParams *p = op_params_mut(c);
    if (call_real_dim(c, &p->dim)) return -1;
    int64_t size = op_input(c, 0)->shape[p->dim];
    if (p->index < -size || p->index >= size)
        return op_fail(c, TENSOR_EINDEX, "index %lld in dimension %d of %s: want %lld to %lld",
                       (long long)p->index, p->dim, S(op_input(c, 0)), -(long long)size, (long long)size - 1);
    if (p->index < 0) p->index += size;
    return 0;
}

static int select_forward(OpCall *c)
{
    const SelectParams *p = op_params(c);
    return op_set_result(c, 0, own(new_layer(op_input(c, 0), p->dim, p->index)));
}

static int select_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const SelectParams *p = op_params(c);
    Tensor *part = tensor_unsqueeze(dy, p->dim);
    dx[0] = part ? embed_part(part, p->dim, p->index, op_input_shape(c, 0).dim[p->dim]) : NULL;
    return dx[0] ? 0 : -1;
}

static const OpField select_fields[] = { OP_REQUIRED(SelectParams, dim, index), { 0 } };
static const TensorOp op_select = {
    .name = "select",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x[..., index, ...]: one index of dim, which vanishes",
    .gradient = "dx = zeros with g at the index",
    .arity = 1,
    PARAMS_GIVEN(SelectParams, select_fields),
    .shape = select_shape,
    .forward = select_forward,
    .backward = select_backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "5x3 {dim=0 index=1}; 2x3x4 {dim=-1 index=-1}; 3 {dim=0 index=2}; 2x0 {dim=0 index=1}",
    .errors = "3 {dim=0 index=3} ! EINDEX; 3 {dim=0 index=-4} ! EINDEX; {dim=0 index=0} ! EINDEX; 3 {dim=1 "
              "index=0} ! EINDEX; "
              "0x3 {dim=0 index=0} ! EINDEX"
};
REGISTER_OPS(&op_select);

Tensor *tensor_select(Tensor *x, int dim, int64_t index)
{
    return APPLY(&op_select, &((SelectParams){ dim, index }), x);
}
