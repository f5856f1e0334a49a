/* view_strided.c - views that read elements several times: windows along a dim, and strides of one's own.
 *
 *   unfold_dim   y[..., k, ..., i] = x[..., k step + i, ...]
 *                dx = unfold_dim_backward(dy): the windows added where they lie
 *   as_strided   y at (i, j, ...) = flat(x)_(offset + i s_0 + j s_1 + ...)
 *                dx = zeros with dy added at those places */
#include "cpu/shape/host_tables.h"
#include "shape_op.h"

/* ---- unfold_dim ------------------------------------------------------------------------------ */

typedef struct UnfoldParams {
    int dimension;
    int64_t size, step;
    int64_t length; /* of x in that dim: what unfold_dim_backward makes */
} UnfoldParams;

static Tensor *windows(const Tensor *x, const UnfoldParams *p)
{
    int64_t shape[TENSOR_MAX_DIMS + 1], stride[TENSOR_MAX_DIMS + 1];
    for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[d], stride[d] = x->stride[d];
    shape[x->ndim] = p->size, stride[x->ndim] = x->ndim ? x->stride[p->dimension] : 1;
    if (x->ndim) shape[p->dimension] = (p->length - p->size) / p->step + 1, stride[p->dimension] *= p->step;
    return own(new_view(x, x->ndim + 1, shape, stride, 0));
}

static int unfold_shape(OpCall *c)
{
    UnfoldParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0);
    p->dimension = call_dim(c, p->dimension, shape_of(x));
    if (p->dimension < 0) return -1;
    p->length = x->ndim ? x->shape[p->dimension] : 1;
    if (x->ndim == TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "%s has %d dimensions already", S(x), TENSOR_MAX_DIMS);
    if (p->step < 1 || p->size < 0)
        return op_fail(c, TENSOR_EVALUE, "windows of %lld by steps of %lld: want 0 and 1 or more",
                       (long long)p->size, (long long)p->step);
    if (p->size > p->length)
        return op_fail(c, TENSOR_ESHAPE, "windows of %lld in dimension %d of %s: want at most %lld",
                       (long long)p->size, p->dimension, S(x), (long long)p->length);
    return 0;
}

static int unfold_forward(OpCall *c) { return op_set_result(c, 0, windows(op_input(c, 0), op_params(c))); }

static const TensorOp op_unfold_dim_backward;

static int unfold_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = tensor_apply(&op_unfold_dim_backward, &dy, 1, op_params(c));
    return dx[0] ? 0 : -1;
}

static const OpField unfold_fields[] = { OP_REQUIRED(UnfoldParams, dimension, size, step), { 0 } };
static const TensorOp op_unfold_dim = {
    .name = "unfold_dim",
    .autocast = AUTOCAST_AS_IS,
    .summary = "windows of a size along a dim, step apart, as the last dim",
    .arity = 1,
    .gradient = "dx = zeros with the windows of dy added where they lie",
    PARAMS_GIVEN(UnfoldParams, unfold_fields),
    .shape = unfold_shape,
    .forward = unfold_forward,
    .backward = unfold_grad,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .torch = "Tensor.unfold",
    .samples =
        "7 {dimension=0 size=3 step=1}; 2x7 {dimension=1 size=3 step=2}; 7x2 {dimension=-2 size=2 step=3}; "
        "{dimension=0 size=1 step=1}; "
        "0x3 {dimension=1 size=2 step=1}; 5 {dimension=0 size=0 step=2}; 5 {dimension=0 size=5 step=9}",
    .errors = "5 {dimension=0 size=6 step=1} ! ESHAPE; 5 {dimension=0 size=2 step=0} ! EVALUE; 5 "
              "{dimension=0 size=-1 step=1} ! EVALUE; "
              "5 {dimension=1 size=1 step=1} ! EINDEX"
};
REGISTER_OPS(&op_unfold_dim);

Tensor *tensor_unfold_dim(Tensor *x, int dimension, int64_t size, int64_t step)
{
    return APPLY(&op_unfold_dim, &((UnfoldParams){ dimension, size, step, 0 }), x);
}

static int fold_shape(OpCall *c)
{
    UnfoldParams *p = op_params_mut(c);
    Tensor *g = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS] = { 0 };
    int ndim = g->ndim - 1;
    for (int d = 0; d < ndim; d++) shape[d] = g->shape[d];
    p->dimension = ndim < 0 ? -1 : call_dim(c, p->dimension, (TensorShape){ ndim, shape });
    if (p->dimension < 0)
        return ndim < 0 ? op_fail(c, TENSOR_ESHAPE, "[]: want windows as the last dimension") : -1;
    bool fits = p->step > 0 && p->length >= p->size && g->shape[ndim] == p->size && p->size >= 0;
    if (!fits || (ndim && shape[p->dimension] != (p->length - p->size) / p->step + 1))
        return op_fail(c, TENSOR_ESHAPE, "%s for windows of %lld by %lld in a size of %lld", S(g),
                       (long long)p->size, (long long)p->step, (long long)p->length);
    if (ndim) shape[p->dimension] = p->length;
    return op_set_output(c, 0, (TensorShape){ ndim, shape }, (TensorDtype)g->dtype);
}

/* One place of all windows after the other: within one they do not overlap.  Halves are summed in f32. */
static int fold_forward(OpCall *c)
{
    const UnfoldParams *p = op_params(c);
    Tensor *g = op_input(c, 0), *y = op_output(c, 0);
    bool half = dtype_is_half(y->dtype);
    Tensor *sum = half ? own(new_tensor(shape_of(y), TENSOR_F32, y->place)) : y,
           *from = half ? own(raw_cast(g, TENSOR_F32)) : g;
    if (!sum || !from || raw_fill(sum, 0)) return -1;
    for (int64_t i = 0; i < p->size; i++) {
        int64_t count = y->ndim ? g->shape[p->dimension] : 1;
        Tensor *to = y->ndim ? new_part(sum, p->dimension, i, count, p->step) : tensor_retain(sum),
               *piece = new_layer(from, g->ndim - 1, i);
        int status = to && piece ? raw_add_into(to, piece) : -1;
        tensor_release(to);
        tensor_release(piece);
        if (status) return -1;
    }
    return half ? raw_copy(y, sum) : 0;
}

static int fold_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = tensor_apply(&op_unfold_dim, &dy, 1, op_params(c));
    return dx[0] ? 0 : -1;
}

static const OpField fold_fields[] = { OP_REQUIRED(UnfoldParams, dimension, size, step, length), { 0 } };
static const TensorOp op_unfold_dim_backward = {
    .name = "unfold_dim_backward",
    .autocast = AUTOCAST_AS_IS,
    .summary = "zeros with windows added where they lie in a dim",
    .arity = 1,
    .gradient = "dx = the windows of dy",
    PARAMS_GIVEN(UnfoldParams, fold_fields),
    .shape = fold_shape,
    .forward = fold_forward,
    .backward = fold_grad,
    .flags = OP_ANY_DEVICE,
    .torch = "-",
    .samples = "5x3 {dimension=0 size=3 step=1 length=7}; 2x3x3 {dimension=1 size=3 step=2 length=8}; 1 "
               "{dimension=0 size=1 step=1 length=1}; 0x2x2 {dimension=1 size=2 step=1 length=3}",
    .errors = "5x3 {dimension=0 size=3 step=1 length=8} ! ESHAPE; {dimension=0 size=1 step=1 length=1} ! "
              "ESHAPE; 5x3 {dimension=1 size=3 step=1 length=7} ! EINDEX"
};
REGISTER_OPS(&op_unfold_dim_backward);

/* ---- as_strided ------------------------------------------------------------------------------ */

const TensorAsStridedArgs tensor_as_strided_defaults = { TENSOR_AS_STRIDED_DEFAULTS };

static int strided_shape(OpCall *c)
{
    const TensorAsStridedArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    const TensorShape size = p->size;
    int64_t count = shape_count(size), last = p->storage_offset;
    if (p->size.ndim != p->stride.ndim)
        return op_fail(c, TENSOR_EVALUE, "%d sizes and %d strides", p->size.ndim, p->stride.ndim);
    if (count < 0)
        return op_fail(c, TENSOR_ESHAPE, "sizes %s from %s: they must not be negative, nor too many",
                       shape_text(size), S(x));
    bool inside = p->storage_offset >= 0;
    for (int d = 0; d < p->size.ndim && inside; d++) {
        int64_t reach;
        if (p->stride.dim[d] < 0)
            return op_fail(c, TENSOR_EVALUE, "a stride of %lld", (long long)p->stride.dim[d]);
        inside = count == 0 || (!__builtin_mul_overflow(p->size.dim[d] - 1, p->stride.dim[d], &reach) &&
                                !__builtin_add_overflow(last, reach, &last));
    }
    if (!inside || (count && last >= x->numel) || last > x->numel)
        return op_fail(c, TENSOR_EINDEX,
                       "sizes %s by strides %s from %lld on reach beyond the elements of %s",
                       shape_text(size), shape_text(p->stride), (long long)p->storage_offset, S(x));
    return x->flags & FLAG_CONTIGUOUS
               ? 0
               : op_fail(c, TENSOR_ESHAPE,
                         "%s is not contiguous: its elements are counted in row-major order", S(x));
}

static int strided_forward(OpCall *c)
{
    const TensorAsStridedArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    return op_set_result(
        c, 0, own(new_view(x, p->size.ndim, p->size.dim, p->stride.dim, x->numel ? p->storage_offset : 0)));
}

/* On another device than the CPU: the sum of a line for each dim, which broadcast. */
static Tensor *places_there(const TensorAsStridedArgs *p, const Place *place)
{
    const int n = p->size.ndim;
    int64_t shape[TENSOR_MAX_DIMS];
    Tensor *at = own(new_tensor(SHAPE(1), TENSOR_I64, place));
    if (!at || raw_fill(at, (double)p->storage_offset)) return NULL;
    for (int d = n - 1; d >= 0; d--) {
        for (int k = d; k < n; k++) shape[k - d] = k == d ? p->size.dim[d] : 1;
        Tensor *line =
            tensor_mul_scalar(numbers_on(p->size.dim[d], TENSOR_I64, place), (double)p->stride.dim[d]);
        at = tensor_add(tensor_reshape(line, (TensorShape){ n - d, shape }), at);
    }
    return tensor_reshape(at, SHAPE(-1));
}

/* The row-major position in x of every element of the view. */
static Tensor *places(const TensorAsStridedArgs *p, const Place *place)
{
    if (!on_host(place) && shape_count(p->size)) return places_there(p, place);
    Tensor *list = own(new_tensor(SHAPE(shape_count(p->size)), TENSOR_I64, place));
    if (list && list->numel)
        host_offsets(list->data, p->storage_offset, p->size.ndim, p->size.dim, NULL, p->stride.dim);
    return list;
}

static int strided_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorAsStridedArgs *p = op_params(c);
    TensorShape shape = op_input_shape(c, 0);
    Tensor *at = places(p, dy->place), *zero = zeros_on(SHAPE(shape_count(shape)), dy->dtype, dy->place);
    Tensor *sum = at && zero ? tensor_index_add(zero, 0, at, tensor_reshape(dy, SHAPE(at->numel))) : NULL;
    dx[0] = sum ? tensor_reshape(sum, shape) : NULL;
    return dx[0] ? 0 : -1;
}

static const OpField strided_fields[] = { OP_REQUIRED(TensorAsStridedArgs, size, stride),
                                          OP_OPTION(TensorAsStridedArgs, storage_offset),
                                          { 0 } };
static const TensorOp op_as_strided = {
    .name = "as_strided",
    .autocast = AUTOCAST_AS_IS,
    .summary = "a view of a contiguous x by sizes and strides of one's own; they may overlap",
    .gradient = "dx = zeros with dy added where it was read",
    .arity = 1,
    PARAMS(TensorAsStridedArgs, tensor_as_strided_defaults, strided_fields),
    .shape = strided_shape,
    .forward = strided_forward,
    .backward = strided_backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "9 {size=[3 3] stride=[1 2]}; 3x4 {size=[2 2 2] stride=[1 4 0] storage_offset=3}; 5 {size=[] "
               "stride=[]}; {size=[4] stride=[0]}; "
               "0 {size=[0 3] stride=[1 1]}; 6 {size=[2 3] stride=[3 1]}; 4 {size=[0] stride=[9]}",
    .errors = "9 {size=[3 3] stride=[4 1]} ! EINDEX; 9 {size=[3] stride=[1] storage_offset=7} ! EINDEX; 9 "
              "{size=[3] stride=[1] storage_offset=-1} ! EINDEX; "
              "9 {size=[3] stride=[]} ! EVALUE; 9 {size=[-1] stride=[1]} ! ESHAPE; 9 {size=[2] stride=[-1] "
              "storage_offset=4} ! EVALUE; 0 {size=[] stride=[]} ! EINDEX"
};
REGISTER_OPS(&op_as_strided);

Tensor *tensor_as_strided_args(TensorAsStridedArgs a) { return APPLY(&op_as_strided, &a, a.input); }
