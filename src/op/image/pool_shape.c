/* pool_shape.c - sizes, checks and kernel arguments of the pools. */
#include "pool.h"

static int64_t along(const OpDims *list, int axis, int spatial, int64_t otherwise)
{
    const int k = axis - (3 - spatial);
    return k < 0 || list->n == 0 ? otherwise : list->at[list->n > 1 ? k : 0];
}

static PoolArgs windows_of(const PoolParams *p)
{
    PoolArgs a = { .count_include_pad = p->count_include_pad, .divisor = p->divisor_override };
    for (int i = 0; i < 3; i++) {
        a.kernel[i] = along(&p->kernel, i, p->spatial, 1);
        a.stride[i] = along(&p->stride, i, p->spatial, 0);
        if (a.stride[i] == 0) a.stride[i] = a.kernel[i];
        a.pad[i] = along(&p->padding, i, p->spatial, 0),
        a.dilation[i] = along(&p->dilation, i, p->spatial, 1);
    }
    return a;
}

/* The last `spatial` of three. */
static const char *text(const int64_t at[3], int spatial)
{
    return shape_text((TensorShape){ spatial, at + 3 - spatial });
}

int pool_rank(OpCall *c, const Tensor *x, int spatial)
{
    static const char *const names[] = { "", "length", "height, width", "depth, height, width" };
    ((PoolParams *)op_params_mut(c))->spatial = spatial;
    if (x->ndim == spatial + 1 || x->ndim == spatial + 2) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, %s], or that without batch", S(x),
                   names[spatial]);
}

static int check_list(OpCall *c, const OpDims *list, int spatial, const char *what)
{
    if (list->n == 0 || list->n == 1 || list->n == spatial) return 0;
    return op_fail(c, TENSOR_EVALUE, "%s of %d numbers: want one, or %d", what, list->n, spatial);
}

static int check_range(OpCall *c, const int64_t at[3], int spatial, int64_t least, const char *what)
{
    for (int i = 0; i < 3; i++)
        if (at[i] < least || at[i] > WINDOW_LIMIT)
            return op_fail(c, TENSOR_EVALUE, "%s: %s %s: want %lld to %d", S(op_input(c, 0)), what,
                           text(at, spatial), (long long)least, WINDOW_LIMIT);
    return 0;
}

int pool_check(OpCall *c, const PoolParams *p)
{
    const int n = p->spatial;
    if (check_list(c, &p->kernel, n, "a kernel") || check_list(c, &p->stride, n, "a stride") ||
        check_list(c, &p->padding, n, "a padding") || check_list(c, &p->dilation, n, "a dilation"))
        return -1;
    const PoolArgs a = windows_of(p);
    if (check_range(c, a.kernel, n, 1, "a kernel of") || check_range(c, a.stride, n, 1, "stride") ||
        check_range(c, a.pad, n, 0, "padding") || check_range(c, a.dilation, n, 1, "dilation"))
        return -1;
    for (int i = 0; i < 3; i++)
        if (a.pad[i] > a.kernel[i] / 2)
            return op_fail(c, TENSOR_EVALUE, "padding %s of a kernel of %s: at most half of it",
                           text(a.pad, n), text(a.kernel, n));
    if (p->divisor_override < 0)
        return op_fail(c, TENSOR_EVALUE, "divisor %lld", (long long)p->divisor_override);
    return 0;
}

static int64_t steps(const PoolArgs *a, int i, int64_t size, bool ceil_mode)
{
    const int64_t stride = a->stride[i],
                  room = size + 2 * a->pad[i] - (a->dilation[i] * (a->kernel[i] - 1) + 1);
    if (room < 0 && !(ceil_mode && room > -stride)) return 0;
    const int64_t n = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    return ceil_mode && (n - 1) * stride >= size + a->pad[i] ? n - 1 : n;
}

int pool_sizes(OpCall *c, const PoolParams *p, const int64_t *in, int64_t *out)
{
    const PoolArgs a = windows_of(p);
    const int n = p->spatial;
    for (int i = 0; i < n; i++) {
        out[i] = steps(&a, 3 - n + i, in[i], p->ceil_mode);
        if (in[i] > 0 && in[i] <= LINE_LIMIT && out[i] > 0) continue;
        return op_fail(c, TENSOR_ESHAPE, "%s: no room for windows of %s (dilation %s) in %s, padded by %s",
                       S(op_input(c, 0)), text(a.kernel, n), text(a.dilation, n),
                       shape_text((TensorShape){ n, in }), text(a.pad, n));
    }
    return 0;
}

int pool_result(OpCall *c, int i, const Tensor *x, const int64_t *last, int dtype)
{
    const int spatial = ((const PoolParams *)op_params(c))->spatial, lead = x->ndim - spatial;
    int64_t dim[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) dim[d] = d < lead ? x->shape[d] : last[d - lead];
    return op_set_output(c, i, (TensorShape){ x->ndim, dim }, (TensorDtype)dtype);
}

int pool_shape(OpCall *c, int spatial)
{
    int64_t out[3];
    const Tensor *x = op_input(c, 0);
    if (pool_rank(c, x, spatial) || pool_check(c, op_params(c))) return -1;
    if (pool_sizes(c, op_params(c), x->shape + x->ndim - spatial, out)) return -1;
    return pool_result(c, 0, x, out, x->dtype);
}

int pool_adaptive_shape(OpCall *c, int spatial)
{
    PoolParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    if (pool_rank(c, x, spatial)) return -1;
    if (p->size.n != 1 && p->size.n != spatial)
        return op_fail(c, TENSOR_EVALUE, "a size of %d numbers: want one, or %d", p->size.n, spatial);
    for (int i = p->size.n; i < spatial; i++) p->size.at[i] = p->size.at[0];
    p->size.n = spatial, p->adaptive = true;
    for (int i = 0; i < spatial; i++) {
        if (p->size.at[i] < 0 || p->size.at[i] > LINE_LIMIT)
            return op_fail(c, TENSOR_EVALUE, "%s to %s: want sizes of 0 and more", S(op_input(c, 0)),
                           shape_text((TensorShape){ spatial, p->size.at }));
        if (x->shape[x->ndim - spatial + i] == 0)
            return op_fail(c, TENSOR_ESHAPE, "%s: nothing to pool", S(x));
    }
    return pool_result(c, 0, x, p->size.at, x->dtype);
}

PoolArgs pool_args(const PoolParams *p, int dtype, TensorShape x, TensorShape y)
{
    const int lead = 3 - p->spatial;
    bool even = true; /* windows of one size that lie side by side */
    PoolArgs a = windows_of(p);
    a.dtype = dtype, a.planes = 1;
    for (int i = 0; i < x.ndim - p->spatial; i++) a.planes *= x.dim[i];
    for (int i = 0; i < 3; i++) {
        a.in[i] = i < lead ? 1 : x.dim[x.ndim - 3 + i];
        a.out[i] = i < lead ? 1 : y.dim[y.ndim - 3 + i];
        even = even && a.out[i] && a.in[i] % a.out[i] == 0;
    }
    if (!p->adaptive) return a;
    a.adaptive = !even || a.out[2] * a.out[2] <
                              4 * a.in[2]; /* the others' loops run over windows: many, and narrow ones */
    for (int i = 0; i < 3 && !a.adaptive; i++) a.kernel[i] = a.stride[i] = a.in[i] / a.out[i];
    return a;
}

Tensor *pool_target(Tensor *out)
{
    bool half = out && dtype_is_half(out->dtype);
    return half ? own(new_tensor(shape_of(out), TENSOR_F32, out->place)) : out;
}

int pool_deliver(Tensor *out, const Tensor *from) { return out == from ? 0 : raw_copy(out, from); }

PoolParams pool_params(OpDims kernel, OpDims stride, OpDims padding)
{
    return (PoolParams){ .kernel = kernel, .stride = stride, .padding = padding };
}
