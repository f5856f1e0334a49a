/* view_reshape.c - the same elements in row-major order under another shape.
 *
 *   reshape  any shape of the same count; one size may be -1      view  the same, but never a copy
 *   flatten  dimensions start..end become one                     unflatten  one dimension becomes several
 *   squeeze  drops dimensions of size 1                           unsqueeze  inserts one
 *   dx = dy in x's shape
 *
 * All share storage where strides allow; only reshape (and flatten, which is one) copies where they do not.
 */
#include "shape_op.h"

/* ---- strides of a view ----------------------------------------------------------------------- */

/* The strides under which x's elements, in row-major order, have the new shape; false when there are none.  x
 * is a list of runs that lie evenly in memory; from the last on, each must be cut exactly into new
 * dimensions. */
static bool view_strides(const Tensor *x, TensorShape to, int64_t *stride)
{
    if (x->numel == 0 || (x->flags & FLAG_CONTIGUOUS)) {
        dense_strides(to.ndim, to.dim, stride);
        return true;
    }
    int64_t run[TENSOR_MAX_DIMS], step[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) run[d] = x->shape[d], step[d] = x->stride[d];
    int runs = collapse(x->ndim, run, 1, (int64_t *const[]){ step }), at = to.ndim - 1;
    for (int r = runs - 1; r >= 0; r--) {
        for (; at >= 0 && (run[r] > 1 || to.dim[at] == 1); at--) {
            if (run[r] % to.dim[at] != 0) return false;
            stride[at] = step[r];
            step[r] *= to.dim[at], run[r] /= to.dim[at];
        }
    }
    return true;
}

static int set_view(OpCall *c, TensorShape to, bool copies)
{
    Tensor *x = op_input(c, 0);
    int64_t stride[TENSOR_MAX_DIMS];
    if (view_strides(x, to, stride)) return op_set_result(c, 0, own(new_view(x, to.ndim, to.dim, stride, 0)));
    if (!copies)
        return op_fail(c, TENSOR_ESHAPE, "%s with its strides is no view of %s: use reshape, which copies",
                       shape_text(to), S(x));
    Tensor *dense = own(raw_contiguous(x));
    if (!dense) return -1;
    dense_strides(to.ndim, to.dim, stride);
    return op_set_result(c, 0, own(new_view(dense, to.ndim, to.dim, stride, 0)));
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = tensor_reshape(dy, op_input_shape(c, 0));
    return dx[0] ? 0 : -1;
}

/* Fills in a size of -1 so that the list has count elements. */
static int infer(OpCall *c, TensorShape *list, int64_t count, TensorShape from)
{
    const TensorShape to = *list;
    int64_t known = 1, size[TENSOR_MAX_DIMS];
    int unknown = -1;
    bool bad = false;
    for (int i = 0; i < to.ndim; i++) {
        size[i] = to.dim[i];
        if (to.dim[i] == -1 && unknown >= 0)
            return op_fail(c, TENSOR_ESHAPE, "%s from %s: only one size may be -1", shape_text(to),
                           shape_text(from));
        if (to.dim[i] == -1) unknown = i;
        else bad |= to.dim[i] < 0 || __builtin_mul_overflow(known, to.dim[i], &known);
    }
    if (!bad && unknown >= 0 && known == 0)
        return op_fail(c, TENSOR_ESHAPE, "%s from %s: -1 could be any size beside a size of 0",
                       shape_text(to), shape_text(from));
    if (!bad && unknown >= 0 && count % known == 0) size[unknown] = count / known;
    else if (bad || unknown >= 0 || known != count)
        return op_fail(c, TENSOR_ESHAPE, "%s from %s: want %lld elements", shape_text(to), shape_text(from),
                       (long long)count);
    return unknown < 0 ? 0 : op_set_list(c, list, to.ndim, size);
}

/* ---- reshape, view --------------------------------------------------------------------------- */

typedef struct ReshapeParams {
    TensorShape shape;
} ReshapeParams;

static int reshape_shape(OpCall *c)
{
    ReshapeParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0);
    return infer(c, &p->shape, x->numel, shape_of(x));
}

static int reshape_forward(OpCall *c)
{
    const ReshapeParams *p = op_params(c);
    return set_view(c, p->shape, true);
}

static int view_forward(OpCall *c)
{
    const ReshapeParams *p = op_params(c);
    return set_view(c, p->shape, false);
}

static const OpField reshape_fields[] = { OP_REQUIRED(ReshapeParams, shape), { 0 } };
static const TensorOp op_reshape = {
    .name = "reshape",
    .autocast = AUTOCAST_AS_IS,
    .summary = "the elements in row-major order under another shape; one size may be -1",
    .gradient = "dx = reshape(g)",
    .arity = 1,
    PARAMS_GIVEN(ReshapeParams, reshape_fields),
    .shape = reshape_shape,
    .forward = reshape_forward,
    .backward = backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "2x3x4 {shape=[4 6]}; 2x6 {shape=[3 -1]}; {shape=[1 1]}; 1 {shape=[]}; 0x3 {shape=[3 0]}; 0x3 "
               "{shape=[-1 3]}; 5 {shape=[5]}",
    .errors = "2x3 {shape=[4]} ! ESHAPE; 2x3 {shape=[-1 -1]} ! ESHAPE; 2x3 {shape=[4 -1]} ! ESHAPE; 0x3 "
              "{shape=[0 -1]} ! ESHAPE; "
              "2x3 {shape=[-2 3]} ! ESHAPE"
};
REGISTER_OPS(&op_reshape);

static const TensorOp op_view = {
    .name = "view",
    .autocast = AUTOCAST_AS_IS,
    .summary = "reshape that never copies: ESHAPE where strides do not allow it",
    .gradient = "dx = reshape(g)",
    .arity = 1,
    PARAMS_GIVEN(ReshapeParams, reshape_fields),
    .shape = reshape_shape,
    .forward = view_forward,
    .backward = backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .torch = "Tensor.view",
    .samples =
        "4x6 {shape=[4 2 3]}; 6x2 {shape=[3 -1 2]}; 2x3 {shape=[2 1 3 1]}; {shape=[1]}; 0x3 {shape=[3 0]}",
    .errors = "2x3 {shape=[4]} ! ESHAPE; 0x3 {shape=[0 -1]} ! ESHAPE"
};
REGISTER_OPS(&op_view);

Tensor *tensor_reshape(Tensor *x, TensorShape shape)
{
    return APPLY(&op_reshape, &(ReshapeParams){ shape }, x);
}

Tensor *tensor_view(Tensor *x, TensorShape shape) { return APPLY(&op_view, &(ReshapeParams){ shape }, x); }

Tensor *tensor_view_as(Tensor *x, const Tensor *other)
{
    return check_null(other, "tensor_view_as", 2) ? NULL : tensor_view(x, shape_of(other));
}

Tensor *tensor_reshape_as(Tensor *x, const Tensor *other)
{
    return check_null(other, "tensor_reshape_as", 2) ? NULL : tensor_reshape(x, shape_of(other));
}

/* ---- flatten --------------------------------------------------------------------------------- */

const TensorFlattenArgs tensor_flatten_defaults = { TENSOR_FLATTEN_DEFAULTS };

static int flatten_shape(OpCall *c)
{
    TensorFlattenArgs *p = op_params_mut(c);
    TensorShape shape = shape_of(op_input(c, 0));
    int start = call_dim(c, p->start_dim, shape), end = start < 0 ? -1 : call_dim(c, p->end_dim, shape);
    if (end < 0) return -1;
    if (start > end)
        return op_fail(c, TENSOR_EINDEX, "from dimension %d to %d of %s: want them in order", start, end,
                       shape_text(shape));
    p->start_dim = start, p->end_dim = end;
    return 0;
}

static int flatten_forward(OpCall *c)
{
    const TensorFlattenArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS] = { 1 };
    int n = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (d > p->start_dim && d <= p->end_dim) shape[n - 1] *= x->shape[d];
        else shape[n++] = x->shape[d];
    }
    return set_view(c, (TensorShape){ x->ndim ? n : 1, shape }, true);
}

static const OpField flatten_fields[] = { OP_OPTION(TensorFlattenArgs, start_dim, end_dim), { 0 } };
static const TensorOp op_flatten = {
    .name = "flatten",
    .autocast = AUTOCAST_AS_IS,
    .summary = "dimensions start_dim to end_dim as one",
    .gradient = "dx = reshape(g)",
    .arity = 1,
    PARAMS(TensorFlattenArgs, tensor_flatten_defaults, flatten_fields),
    .shape = flatten_shape,
    .forward = flatten_forward,
    .backward = backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "2x3x4; 2x3x4 {start_dim=1}; 2x3x4 {start_dim=-3 end_dim=1}; ; 0x3; 2x0x3 {start_dim=1}; 3 "
               "{start_dim=0}",
    .errors = "2x3x4 {start_dim=3} ! EINDEX; 2x3 {start_dim=1 end_dim=0} ! EINDEX; 2x3 {end_dim=-3} ! EINDEX"
};
REGISTER_OPS(&op_flatten);

Tensor *tensor_flatten_args(TensorFlattenArgs args) { return APPLY(&op_flatten, &args, args.input); }

/* ---- unflatten ------------------------------------------------------------------------------- */

typedef struct UnflattenParams {
    int dim;
    TensorShape sizes;
} UnflattenParams;

static int unflatten_shape(OpCall *c)
{
    UnflattenParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0);
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0) return -1;
    if (x->ndim == 0) return op_fail(c, TENSOR_EINDEX, "[] has no dimension to unflatten");
    if (p->sizes.ndim == 0)
        return op_fail(c, TENSOR_ESHAPE, "dimension %d of %s: no sizes given", p->dim, S(x));
    if (x->ndim - 1 + p->sizes.ndim > TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "%d dimensions: at most %d", x->ndim - 1 + p->sizes.ndim,
                       TENSOR_MAX_DIMS);
    return infer(c, &p->sizes, x->shape[p->dim], shape_of(x));
}

static int unflatten_forward(OpCall *c)
{
    const UnflattenParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (d != p->dim) shape[n++] = x->shape[d];
        else
            for (int i = 0; i < p->sizes.ndim; i++) shape[n++] = p->sizes.dim[i];
    }
    return set_view(c, (TensorShape){ n, shape }, false);
}

static const OpField unflatten_fields[] = { OP_REQUIRED(UnflattenParams, dim, sizes), { 0 } };
static const TensorOp op_unflatten = { .name = "unflatten",
                                       .autocast = AUTOCAST_AS_IS,
                                       .summary = "one dimension as several; one size may be -1",
                                       .gradient = "dx = reshape(g)",
                                       .arity = 1,
                                       PARAMS_GIVEN(UnflattenParams, unflatten_fields),
                                       .shape = unflatten_shape,
                                       .forward = unflatten_forward,
                                       .backward = backward,
                                       .flags = OP_VIEW | OP_ANY_DEVICE,
                                       .samples = "2x12 {dim=1 sizes=[3 4]}; 6x2 {dim=-2 sizes=[-1 2]}; 0x2 "
                                                  "{dim=0 sizes=[0 3]}; 4 {dim=0 sizes=[2 1 2]}",
                                       .errors = "2x12 {dim=2 sizes=[3 4]} ! EINDEX; 2x12 {dim=1 sizes=[5 "
                                                 "-1]} ! ESHAPE; 2x12 {dim=1 sizes=[]} ! ESHAPE; "
                                                 "{dim=0 sizes=[1]} ! EINDEX" };
REGISTER_OPS(&op_unflatten);

Tensor *tensor_unflatten(Tensor *x, int dim, TensorShape sizes)
{
    return APPLY(&op_unflatten, &((UnflattenParams){ dim, sizes }), x);
}

/* ---- squeeze --------------------------------------------------------------------------------- */

const TensorSqueezeArgs tensor_squeeze_defaults = { TENSOR_SQUEEZE_DEFAULTS };

/* The dims that are named; a list that is there, but empty, names none. */
static int squeeze_shape(OpCall *c)
{
    TensorSqueezeArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    if (p->dim != TENSOR_ALL && p->dims.dim)
        return op_fail(c, TENSOR_EVALUE, "%s: both dim and dims: want one of them", S(x));
    const int64_t one = p->dim;
    if (p->dim != TENSOR_ALL && op_set_list(c, &p->dims, 1, &one)) return -1;
    p->dim = TENSOR_ALL;
    return p->dims.dim ? call_dims(c, &p->dims, shape_of(x), TENSOR_EINDEX) : 0;
}

static int squeeze_forward(OpCall *c)
{
    const TensorSqueezeArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < x->ndim; d++) {
        bool named = !p->dims.dim;
        for (int i = 0; i < p->dims.ndim; i++) named |= p->dims.dim[i] == d;
        if (named && x->shape[d] == 1) continue;
        shape[n] = x->shape[d], stride[n++] = x->stride[d];
    }
    return op_set_result(c, 0, own(new_view(x, n, shape, stride, 0)));
}

static const OpField squeeze_fields[] = { OP_OPTION(TensorSqueezeArgs, dim, dims), { 0 } };
static const TensorOp op_squeeze = {
    .name = "squeeze",
    .autocast = AUTOCAST_AS_IS,
    .summary = "without the dimensions of size 1, or those of them that are named",
    .gradient = "dx = reshape(g)",
    .arity = 1,
    PARAMS(TensorSqueezeArgs, tensor_squeeze_defaults, squeeze_fields),
    .shape = squeeze_shape,
    .forward = squeeze_forward,
    .backward = backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "1x3x1; 1x3x1 {dim=0}; 2x1x3 {dim=-2}; 2x3 {dim=1}; 1x3x1 {dims=[0 2]}; "
               "{dim=0}; 1x1; 0x1 {dim=1}; 1x3x1 {dims=[]}",
    .errors = "1x3 {dim=2} ! EINDEX; 1x3 {dims=[0 -2]} ! EINDEX; 1x3 {dim=0 "
              "dims=[0]} ! EVALUE"
};
REGISTER_OPS(&op_squeeze);

Tensor *tensor_squeeze_args(TensorSqueezeArgs a) { return APPLY(&op_squeeze, &a, a.input); }

/* ---- unsqueeze ------------------------------------------------------------------------------- */

typedef struct UnsqueezeParams {
    int dim;
} UnsqueezeParams;

static int unsqueeze_shape(OpCall *c)
{
    UnsqueezeParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0);
    if (x->ndim == TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "%s has %d dimensions: at most %d", S(x), x->ndim, TENSOR_MAX_DIMS);
    if (p->dim < -x->ndim - 1 || p->dim > x->ndim)
        return op_fail(c, TENSOR_EINDEX, "dimension %d of %s with one more: want %d to %d", p->dim, S(x),
                       -x->ndim - 1, x->ndim);
    if (p->dim < 0) p->dim += x->ndim + 1;
    return 0;
}

static int unsqueeze_forward(OpCall *c)
{
    const UnsqueezeParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    for (int d = 0; d <= x->ndim; d++) {
        int from = d < p->dim ? d : d - 1;
        shape[d] = d == p->dim ? 1 : x->shape[from];
        stride[d] = d != p->dim ? x->stride[from] : d < x->ndim ? x->shape[d] * x->stride[d] : 1;
    }
    return op_set_result(c, 0, own(new_view(x, x->ndim + 1, shape, stride, 0)));
}

static const OpField unsqueeze_fields[] = { OP_REQUIRED(UnsqueezeParams, dim), { 0 } };
static const TensorOp op_unsqueeze = {
    .name = "unsqueeze",
    .autocast = AUTOCAST_AS_IS,
    .summary = "with a dimension of size 1 inserted at dim",
    .gradient = "dx = reshape(g)",
    .arity = 1,
    PARAMS_GIVEN(UnsqueezeParams, unsqueeze_fields),
    .shape = unsqueeze_shape,
    .forward = unsqueeze_forward,
    .backward = backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "3x4 {dim=0}; 3x4 {dim=2}; 3x4 {dim=-1}; 3x4 {dim=-3}; {dim=0}; {dim=-1}; 0x3 {dim=1}",
    .errors = "3x4 {dim=3} ! EINDEX; 3x4 {dim=-4} ! EINDEX"
};
REGISTER_OPS(&op_unsqueeze);

Tensor *tensor_unsqueeze(Tensor *x, int dim) { return APPLY(&op_unsqueeze, &((UnsqueezeParams){ dim }), x); }

Tensor *without_lead(Tensor *value, int ndim)
{
    int lead = 0;
    while (value->ndim - lead > ndim && value->shape[lead] == 1) lead++;
    return lead ? tensor_reshape(value, (TensorShape){ value->ndim - lead, value->shape + lead }) : value;
}
