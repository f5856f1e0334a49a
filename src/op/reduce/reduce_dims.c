/* reduce_dims.c - what the reduction ops share. */
#include "op/shape/shape_op.h"
#include "reduce.h"

/* ---- dims ------------------------------------------------------------------------------------ */

ReduceOver over_dims(TensorShape dims, bool keepdim)
{
    ReduceOver over = { .keepdim = keepdim };
    for (int i = 0; i < TENSOR_MAX_DIMS; i++) over.reduced[i] = dims.ndim == 0;
    for (int i = 0; i < dims.ndim; i++) over.reduced[dims.dim[i]] = true;
    return over;
}

ReduceOver over_dim(int dim, bool keepdim)
{
    const int64_t one = dim;
    return over_dims((TensorShape){ dim != TENSOR_ALL, &one }, keepdim);
}

int reduce_check(OpCall *c, int *dim, TensorShape *dims)
{
    const Tensor *x = op_input(c, 0);
    if (*dim != TENSOR_ALL && dims->ndim)
        return op_fail(c, TENSOR_EVALUE, "%s: both .dim and .dims are given", S(x));
    const int64_t one = *dim;
    if (*dim != TENSOR_ALL && op_set_list(c, dims, 1, &one)) return -1;
    *dim = TENSOR_ALL;
    return call_dims(c, dims, shape_of(x), TENSOR_EVALUE);
}

int reduce_not_empty(OpCall *c, ReduceOver over)
{
    const Tensor *x = op_input(c, 0);
    for (int i = 0; i < x->ndim; i++)
        if (over.reduced[i] && x->shape[i] == 0)
            return op_fail(c, TENSOR_ESHAPE, "%s: no elements along dim %d to choose from", S(x), i);
    return 0;
}

/* ---- results --------------------------------------------------------------------------------- */

static int result_shape(ReduceOver over, TensorShape from, int64_t *shape)
{
    int ndim = 0;
    for (int i = 0; i < from.ndim; i++)
        if (!over.reduced[i] || over.keepdim) shape[ndim++] = over.reduced[i] ? 1 : from.dim[i];
    return ndim;
}

int reduce_shape(OpCall *c, ReduceOver over, int dtype)
{
    int64_t shape[TENSOR_MAX_DIMS];
    int ndim = result_shape(over, shape_of(op_input(c, 0)), shape);
    return op_set_output(c, 0, (TensorShape){ ndim, shape }, (TensorDtype)dtype);
}

int reduce_forward(OpCall *c, ReduceOver over, int kind, double param)
{
    return raw_reduce_into(op_output(c, 0), op_input(c, 0), kind, over.reduced, param);
}

int64_t reduce_count(TensorShape shape, ReduceOver over)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++) n *= over.reduced[i] ? shape.dim[i] : 1;
    return n;
}

int sum_dtype(const Tensor *x, TensorDtype dtype)
{
    if (dtype != TENSOR_DTYPES) return (int)dtype;
    return dtype_is_float(x->dtype) ? x->dtype : TENSOR_I64;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static Tensor *with_reduced_dims(ReduceOver over, TensorShape to, Tensor *t)
{
    if (over.keepdim || !t) return t;
    int64_t shape[TENSOR_MAX_DIMS];
    over.keepdim = true;
    return tensor_reshape(t, (TensorShape){ result_shape(over, to, shape), shape });
}

/* Without a graph a view with strides 0 does. */
Tensor *reduce_spread(ReduceOver over, TensorShape to, Tensor *t)
{
    if (!t || tensor_grad_enabled()) return t ? tensor_expand(with_reduced_dims(over, to, t), to) : NULL;
    int64_t stride[TENSOR_MAX_DIMS];
    for (int i = 0, k = 0; i < to.ndim; i++) {
        stride[i] = over.reduced[i] ? 0 : t->stride[k];
        k += !over.reduced[i] || over.keepdim;
    }
    return own(new_view(t, to.ndim, to.dim, stride, 0));
}

Tensor *scatter_back(OpCall *c, Tensor *dy, int dim, bool keepdim)
{
    const TensorShape to = op_input_shape(c, 0);
    Tensor *index = op_saved_output(c, 1);
    if (!index || !dy) return NULL;
    if (to.ndim == 0) return tensor_reshape(dy, to);
    Tensor *zero = zeros_on(to, dy->dtype, dy->place);
    if (!zero) return NULL;
    if (!keepdim) dy = tensor_unsqueeze(dy, dim), index = tensor_unsqueeze(index, dim);
    return tensor_scatter_add(zero, dim, index, dy);
}

/* ---- others ---------------------------------------------------------------------------------- */

Around around(TensorShape shape, int dim)
{
    Around a = { 1, 1, 1 };
    for (int i = 0; i < shape.ndim; i++)
        if (i < dim) a.outer *= shape.dim[i];
        else if (i == dim) a.n = shape.dim[i];
        else a.inner *= shape.dim[i];
    return a;
}

Tensor *dense_float(const Tensor *x) { return dense_as(x, false); }

Tensor *dense_as(const Tensor *x, bool narrow)
{
    if (!x) return NULL;
    return own(dtype_is_half(x->dtype) && !narrow ? raw_cast(x, TENSOR_F32) : raw_contiguous(x));
}

Tensor *target_as(Tensor *out, bool narrow)
{
    const bool wide = out && dtype_is_half(out->dtype) && !narrow;
    return wide ? own(new_tensor(shape_of(out), TENSOR_F32, out->place)) : out;
}
