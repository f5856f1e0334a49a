/* view_permute.c - views with the dimensions in another order.
 *
 *   permute    y's dimension i is x's dimension dims[i]; the gradient is permuted back
 *   transpose  two dimensions change places; so do those of the gradient
 *   movedim    dimensions go to new places, the others keep their order */
#include "shape_op.h"

/* ---- permute --------------------------------------------------------------------------------- */

typedef struct PermuteParams {
    TensorShape dims;
} PermuteParams;

static int permute_shape(OpCall *c)
{
    PermuteParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0);
    if (p->dims.ndim != x->ndim)
        return op_fail(c, TENSOR_EINDEX, "%s in the order %s: want each of its %d dimensions once", S(x),
                       shape_text(p->dims), x->ndim);
    return call_dims(c, &p->dims, shape_of(x), TENSOR_EINDEX);
}

static int permute_forward(OpCall *c)
{
    const PermuteParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        shape[d] = x->shape[p->dims.dim[d]], stride[d] = x->stride[p->dims.dim[d]];
    return op_set_result(c, 0, own(new_view(x, x->ndim, shape, stride, 0)));
}

static int permute_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const PermuteParams *p = op_params(c);
    int64_t back[TENSOR_MAX_DIMS];
    for (int d = 0; d < p->dims.ndim; d++) back[p->dims.dim[d]] = d;
    dx[0] = tensor_permute(dy, (TensorShape){ p->dims.ndim, back });
    return dx[0] ? 0 : -1;
}

static const OpField permute_fields[] = { OP_REQUIRED(PermuteParams, dims), { 0 } };
static const TensorOp op_permute = {
    .name = "permute",
    .autocast = AUTOCAST_AS_IS,
    .summary = "dimensions in the order of dims",
    .gradient = "dx = g permuted back",
    .arity = 1,
    PARAMS_GIVEN(PermuteParams, permute_fields),
    .shape = permute_shape,
    .forward = permute_forward,
    .backward = permute_backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "2x3x4 {dims=[2 0 1]}; 2x3x4 {dims=[0 -1 1]}; 3 {dims=[0]}; {dims=[]}; 2x0x3 {dims=[1 2 0]}",
    .errors = "2x3 {dims=[0]} ! EINDEX; 2x3 {dims=[0 0]} ! EINDEX; 2x3 {dims=[0 2]} ! EINDEX"
};
REGISTER_OPS(&op_permute);

Tensor *tensor_permute(Tensor *x, TensorShape dims)
{
    return APPLY(&op_permute, &(PermuteParams){ dims }, x);
}

/* ---- transpose ------------------------------------------------------------------------------- */

typedef struct TransposeParams {
    int dim0, dim1;
} TransposeParams;

static int transpose_shape(OpCall *c)
{
    TransposeParams *p = op_params_mut(c);
    TensorShape shape = shape_of(op_input(c, 0));
    p->dim0 = call_dim(c, p->dim0, shape);
    if (p->dim0 >= 0) p->dim1 = call_dim(c, p->dim1, shape);
    return p->dim0 < 0 || p->dim1 < 0 ? -1 : 0;
}

static int transpose_forward(OpCall *c)
{
    const TransposeParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) {
        int from = d == p->dim0 ? p->dim1 : d == p->dim1 ? p->dim0 : d;
        shape[d] = x->shape[from], stride[d] = x->stride[from];
    }
    return op_set_result(c, 0, own(new_view(x, x->ndim, shape, stride, 0)));
}

static int transpose_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TransposeParams *p = op_params(c);
    dx[0] = tensor_transpose(dy, p->dim0, p->dim1);
    return dx[0] ? 0 : -1;
}

static const OpField transpose_fields[] = { OP_REQUIRED(TransposeParams, dim0, dim1), { 0 } };
static const TensorOp op_transpose = { .name = "transpose",
                                       .autocast = AUTOCAST_AS_IS,
                                       .summary = "two dimensions change places",
                                       .gradient = "dx = transpose(g)",
                                       .arity = 1,
                                       PARAMS_GIVEN(TransposeParams, transpose_fields),
                                       .shape = transpose_shape,
                                       .forward = transpose_forward,
                                       .backward = transpose_backward,
                                       .flags = OP_VIEW | OP_ANY_DEVICE,
                                       .samples = "3x4 {dim0=0 dim1=1}; 2x3x4 {dim0=-1 dim1=0}; 2x3 {dim0=1 "
                                                  "dim1=1}; {dim0=0 dim1=-1}; 0x3 {dim0=0 dim1=1}",
                                       .errors =
                                           "3x4 {dim0=0 dim1=2} ! EINDEX; 3x4 {dim0=-3 dim1=0} ! EINDEX" };
REGISTER_OPS(&op_transpose);

Tensor *tensor_transpose(Tensor *x, int dim0, int dim1)
{
    return APPLY(&op_transpose, &((TransposeParams){ dim0, dim1 }), x);
}

Tensor *tensor_mT(Tensor *x)
{
    if (check_null(x, "tensor_mT", 1)) return NULL;
    if (x->ndim < 2)
        return fail(TENSOR_ESHAPE, "tensor_mT", "%s: want matrices, two dimensions or more", S(x)), NULL;
    return APPLY(&op_transpose, &((TransposeParams){ -2, -1 }), x);
}

/* ---- t --------------------------------------------------------------------------------------- */

static int t_shape(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    return x->ndim <= 2 ? 0 : op_fail(c, TENSOR_ESHAPE, "%s: want at most two dimensions", S(x));
}

static int t_forward(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    int64_t shape[2], stride[2];
    for (int d = 0; d < x->ndim; d++)
        shape[d] = x->shape[x->ndim - 1 - d], stride[d] = x->stride[x->ndim - 1 - d];
    return op_set_result(c, 0, own(new_view(x, x->ndim, shape, stride, 0)));
}

static int t_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)c;
    dx[0] = tensor_t(dy);
    return dx[0] ? 0 : -1;
}

static const TensorOp op_t = { .name = "t",
                               .autocast = AUTOCAST_AS_IS,
                               .summary = "the transpose of a matrix; fewer dimensions stay",
                               .gradient = "dx = t(g)",
                               .arity = 1,
                               .shape = t_shape,
                               .forward = t_forward,
                               .backward = t_backward,
                               .flags = OP_VIEW | OP_ANY_DEVICE,
                               .samples = "3x4; 3; ; 0x2",
                               .errors = "2x3x4 ! ESHAPE" };
REGISTER_OPS(&op_t);

Tensor *tensor_t(Tensor *x) { return APPLY(&op_t, NULL, x); }

/* ---- movedim --------------------------------------------------------------------------------- */

typedef struct MovedimParams {
    TensorShape source, destination;
} MovedimParams;

static int movedim_shape(OpCall *c)
{
    MovedimParams *p = op_params_mut(c);
    TensorShape shape = shape_of(op_input(c, 0));
    if (p->source.ndim != p->destination.ndim)
        return op_fail(c, TENSOR_EINDEX, "%d dimensions go to %d places", p->source.ndim,
                       p->destination.ndim);
    if (call_dims(c, &p->source, shape, TENSOR_EINDEX)) return -1;
    return call_dims(c, &p->destination, shape, TENSOR_EINDEX);
}

static int movedim_compose(OpCall *c)
{
    const MovedimParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t order[TENSOR_MAX_DIMS];
    unsigned moved = 0;
    for (int d = 0; d < x->ndim; d++) order[d] = -1;
    for (int i = 0; i < p->source.ndim && x->ndim; i++)
        order[p->destination.dim[i]] = p->source.dim[i], moved |= 1u << p->source.dim[i];
    for (int d = 0, next = 0; d < x->ndim; d++) {
        if (order[d] >= 0) continue;
        while (moved >> next & 1) next++;
        order[d] = next++;
    }
    return op_set_result(c, 0, tensor_permute(x, (TensorShape){ x->ndim, order }));
}

static const OpField movedim_fields[] = { OP_REQUIRED(MovedimParams, source, destination), { 0 } };
static const TensorOp op_movedim = {
    .name = "movedim",
    .autocast = AUTOCAST_AS_IS,
    .summary = "dimensions moved to new places, the others in their order",
    .gradient = "dx = g moved back",
    .arity = 1,
    PARAMS_GIVEN(MovedimParams, movedim_fields),
    .shape = movedim_shape,
    .compose = movedim_compose,
    .flags = OP_ANY_DEVICE | OP_MAY_ALIAS,
    .samples = "2x3x4 {source=[0] destination=[2]}; 2x3x4 {source=[-1] destination=[0]}; 2x3x4 {source=[0 "
               "1] destination=[2 0]}; {source=[0] destination=[-1]}; 0x3 {source=[1] destination=[0]}",
    .errors = "2x3 {source=[2] destination=[0]} ! EINDEX; 2x3x4 {source=[0 0] destination=[1 2]} ! EINDEX; "
              "2x3 {source=[0 1] destination=[0]} ! EINDEX"
};
REGISTER_OPS(&op_movedim);

Tensor *tensor_movedim(Tensor *x, int source, int destination)
{
    return APPLY(&op_movedim, &((MovedimParams){ DIMS(source), DIMS(destination) }), x);
}

Tensor *tensor_movedims(Tensor *x, TensorShape source, TensorShape destination)
{
    return APPLY_AS(&op_movedim, __func__, &((MovedimParams){ source, destination }), x);
}
