/* reduce_dims.c - what the reduction ops share. */
#include "reduce.h"

/* What cannot be told before there is a call to fail. */
enum { DIMS_NULL = -1, DIMS_TWICE = -2 };

ReduceParams reduce_params(int dim, TensorShape dims, bool keepdim, double param)
{
    ReduceParams p = { .keepdim = keepdim, .param = param };
    if (dim != TENSOR_ALL && dims.ndim) p.dims.n = DIMS_TWICE;
    else if (dims.ndim && !dims.dim) p.dims.n = DIMS_NULL;
    if (p.dims.n < 0) return p;
    if (dim != TENSOR_ALL) {
        p.dims.n = 1, p.dims.at[0] = dim;
        return p;
    }
    p.dims.n = dims.ndim;
    for (int i = 0; i < dims.ndim && i < TENSOR_MAX_DIMS; i++) p.dims.at[i] = dims.dim[i];
    return p;
}

int reduce_check(OpCall *c)
{
    ReduceParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    bool seen[TENSOR_MAX_DIMS] = { false };
    if (p->dims.n == DIMS_TWICE) return op_fail(c, TENSOR_EVALUE, "%s: both .dim and .dims are given", S(x));
    if (p->dims.n == DIMS_NULL)
        return op_fail(c, TENSOR_ENULL, "%s: .dims is a list whose elements are NULL: write .dims = DIMS(1)",
                       S(x));
    if (p->dims.n < 0 || p->dims.n > TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_EVALUE, "%s: %d dims given, at most %d are possible", S(x), p->dims.n,
                       TENSOR_MAX_DIMS);
    for (int i = 0; i < p->dims.n; i++) {
        int64_t dim = p->dims.at[i];
        int at = dim < -TENSOR_MAX_DIMS || dim > TENSOR_MAX_DIMS ? -1 : wrap_dim((int)dim, x->ndim);
        if (at < 0) return op_fail(c, TENSOR_EINDEX, "%s has no dim %lld", S(x), (long long)dim);
        if (seen[at]) return op_fail(c, TENSOR_EVALUE, "%s: dim %d is given twice", S(x), at);
        seen[at] = true;
        p->dims.at[i] = at;
    }
    return 0;
}

void reduce_mask(const ReduceParams *p, bool reduced[TENSOR_MAX_DIMS])
{
    for (int i = 0; i < TENSOR_MAX_DIMS; i++) reduced[i] = p->dims.n == 0;
    for (int i = 0; i < p->dims.n; i++) reduced[p->dims.at[i]] = true;
}

int reduce_check_extreme(OpCall *c)
{
    if (reduce_check(c)) return -1;
    bool reduced[TENSOR_MAX_DIMS];
    const Tensor *x = op_input(c, 0);
    reduce_mask(op_params(c), reduced);
    for (int i = 0; i < x->ndim; i++)
        if (reduced[i] && x->shape[i] == 0)
            return op_fail(c, TENSOR_ESHAPE, "%s: no elements along dim %d to choose from", S(x), i);
    return 0;
}

static int result_shape(const ReduceParams *p, TensorShape from, int64_t *shape)
{
    bool reduced[TENSOR_MAX_DIMS];
    int ndim = 0;
    reduce_mask(p, reduced);
    for (int i = 0; i < from.ndim; i++)
        if (!reduced[i] || p->keepdim) shape[ndim++] = reduced[i] ? 1 : from.dim[i];
    return ndim;
}

int reduce_shape(OpCall *c, int dtype)
{
    int64_t shape[TENSOR_MAX_DIMS];
    int ndim = result_shape(op_params(c), shape_of(op_input(c, 0)), shape);
    return op_set_output(c, 0, (TensorShape){ ndim, shape }, (TensorDtype)dtype);
}

int reduce_forward(OpCall *c, int kind)
{
    bool reduced[TENSOR_MAX_DIMS];
    const ReduceParams *p = op_params(c);
    reduce_mask(p, reduced);
    return raw_reduce_into(op_output(c, 0), op_input(c, 0), kind, reduced, p->param);
}

int64_t reduce_count(TensorShape shape, const ReduceParams *p)
{
    bool reduced[TENSOR_MAX_DIMS];
    int64_t n = 1;
    reduce_mask(p, reduced);
    for (int i = 0; i < shape.ndim; i++) n *= reduced[i] ? shape.dim[i] : 1;
    return n;
}

Tensor *reduce_keep(const ReduceParams *p, TensorShape to, Tensor *t)
{
    ReduceParams keep = *p;
    int64_t shape[TENSOR_MAX_DIMS];
    keep.keepdim = true;
    return p->keepdim || !t ? t : tensor_reshape(t, (TensorShape){ result_shape(&keep, to, shape), shape });
}

/* Without a graph a view with strides 0 does. */
Tensor *reduce_spread(const ReduceParams *p, TensorShape to, Tensor *t)
{
    if (!t || tensor_grad_enabled()) return t ? tensor_expand(reduce_keep(p, to, t), to) : NULL;
    bool reduced[TENSOR_MAX_DIMS];
    int64_t stride[TENSOR_MAX_DIMS];
    reduce_mask(p, reduced);
    for (int i = 0, k = 0; i < to.ndim; i++) {
        stride[i] = reduced[i] ? 0 : t->stride[k];
        k += !reduced[i] || p->keepdim;
    }
    return own(new_view(t, to.ndim, to.dim, stride, 0));
}

Tensor *share_evenly(const ReduceParams *p, Tensor *x, Tensor *y, Tensor *g)
{
    if (!x || !y || !g) return NULL;
    const TensorShape to = shape_of(x);
    Tensor *both_nan = tensor_logical_and(tensor_isnan(x), reduce_spread(p, to, tensor_isnan(y)));
    Tensor *chosen = tensor_logical_or(tensor_eq(x, reduce_spread(p, to, y)), both_nan);
    Tensor *count = tensor_sum(chosen, .dims = reduce_dims(p), .keepdim = p->keepdim);
    Tensor *share = count ? tensor_div(g, tensor_to(count, (TensorDtype)g->dtype)) : NULL;
    return tensor_where(chosen, reduce_spread(p, to, share), tensor_zeros_like(x));
}

Tensor *scatter_back(OpCall *c, Tensor *dy, int dim, bool keepdim)
{
    const TensorShape to = op_input_shape(c, 0);
    Tensor *index = op_saved_output(c, 1);
    if (!index || !dy) return NULL;
    if (to.ndim == 0) return tensor_reshape(dy, to);
    Tensor *zero = own(new_tensor(to, dy->dtype, dy->place));
    if (!zero || raw_fill(zero, 0)) return NULL;
    if (!keepdim) dy = tensor_unsqueeze(dy, dim), index = tensor_unsqueeze(index, dim);
    return tensor_scatter_add(zero, dim, index, dy);
}

Around around(TensorShape shape, int dim)
{
    Around a = { 1, 1, 1 };
    for (int i = 0; i < shape.ndim; i++)
        if (i < dim) a.outer *= shape.dim[i];
        else if (i == dim) a.n = shape.dim[i];
        else a.inner *= shape.dim[i];
    return a;
}

Tensor *dense_float(const Tensor *x)
{
    if (!x) return NULL;
    bool half = dtype_is_half(x->dtype);
    return own(half ? raw_cast(x, TENSOR_F32) : raw_contiguous(x));
}

bool unwanted(bool given, const char *op, const char *option)
{
    if (given) fail(TENSOR_EVALUE, op, "takes no option %s", option);
    return given;
}

bool unwanted_result(Tensor **at, const char *op, const char *option)
{
    if (at) *at = NULL;
    return unwanted(at != NULL, op, option);
}
