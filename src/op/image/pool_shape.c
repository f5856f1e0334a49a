/* pool_shape.c - sizes, checks and kernel arguments of the pools. */
#include "pool.h"

const OpField pool_adaptive_fields[] = { OP_REQUIRED(AdaptiveParams, output_size), { 0 } };

int pool_windows(OpCall *c, PoolOption kernel, PoolOption stride, PoolOption padding, Pool *pool)
{
    const int rank = pool->rank;
    if (window_sizes(c, "kernel_size", kernel.all, kernel.each, rank, 1, 1, &pool->kernel) ||
        window_sizes(c, "stride", stride.all, stride.each, rank, 0, 1, &pool->stride) ||
        window_sizes(c, "padding", padding.all, padding.each, rank, 0, 0, &pool->pad))
        return -1;
    for (int i = 0; i < WINDOW_RANK; i++)
        if (pool->stride.at[i] == 0) pool->stride.at[i] = pool->kernel.at[i];
    return 0;
}

int pool_half_padding(OpCall *c, const Pool *pool)
{
    for (int i = 0; i < WINDOW_RANK; i++)
        if (pool->pad.at[i] > pool->kernel.at[i] / 2)
            return op_fail(c, TENSOR_EVALUE, "padding %s of a kernel of %s: at most half of it",
                           window_text(&pool->pad, pool->rank), window_text(&pool->kernel, pool->rank));
    return 0;
}

static int64_t steps(const Pool *p, int i, int64_t size)
{
    const int64_t stride = p->stride.at[i],
                  room = size + 2 * p->pad.at[i] - window_reach(p->kernel.at[i], p->dilation.at[i]);
    if (room < 0 && !(p->ceil_mode && room > -stride)) return 0;
    const int64_t n = (room + (p->ceil_mode ? stride - 1 : 0)) / stride + 1;
    return p->ceil_mode && (n - 1) * stride >= size + p->pad.at[i] ? n - 1 : n;
}

int pool_sizes(OpCall *c, const Pool *pool, const Sizes *in, Sizes *out)
{
    const int n = pool->rank;
    for (int i = 0; i < WINDOW_RANK; i++) {
        out->at[i] = steps(pool, i, in->at[i]);
        if (in->at[i] > 0 && in->at[i] <= LINE_LIMIT && out->at[i] > 0) continue;
        return op_fail(c, TENSOR_ESHAPE, "%s: no room for windows of %s (dilation %s) in %s, padded by %s",
                       S(op_input(c, 0)), window_text(&pool->kernel, n), window_text(&pool->dilation, n),
                       window_text(in, n), window_text(&pool->pad, n));
    }
    return 0;
}

int pool_result(OpCall *c, int i, const Tensor *x, const Sizes *last, int rank, int dtype)
{
    const int lead = x->ndim - rank;
    int64_t dim[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        dim[d] = d < lead ? x->shape[d] : last->at[WINDOW_RANK - rank + d - lead];
    return op_set_output(c, i, (TensorShape){ x->ndim, dim }, (TensorDtype)dtype);
}

int pool_shape(OpCall *c, const Pool *pool)
{
    const Tensor *x = op_input(c, 0);
    const Sizes in = window_last(shape_of(x), pool->rank);
    Sizes out;
    return pool_sizes(c, pool, &in, &out) ? -1 : pool_result(c, 0, x, &out, pool->rank, x->dtype);
}

int pool_adaptive_shape(OpCall *c)
{
    const AdaptiveParams *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    const int rank = c->op->variant;
    Sizes out;
    if (window_rank(c, x, "input", rank) ||
        window_list(c, "output_size", p->output_size, rank, TENSOR_KEEP, &out))
        return -1;
    const Sizes in = window_last(shape_of(x), rank);
    for (int i = 0; i < WINDOW_RANK; i++) {
        if (out.at[i] == TENSOR_KEEP) out.at[i] = in.at[i];
        if (out.at[i] < 0)
            return op_fail(c, TENSOR_EVALUE, "%s to %s: want sizes of 0 and more", S(x),
                           shape_text(p->output_size));
        if (in.at[i] == 0) return op_fail(c, TENSOR_ESHAPE, "%s: nothing to pool", S(x));
    }
    return pool_result(c, 0, x, &out, rank, x->dtype);
}

PoolArgs pool_args(const Pool *pool, int dtype, TensorShape x, TensorShape y)
{
    const Sizes in = window_last(x, pool->rank), out = window_last(y, pool->rank);
    bool even = true; /* windows of one size that lie side by side */
    PoolArgs a = {
        .dtype = dtype, .planes = 1, .count_include_pad = pool->count_include_pad, .divisor = pool->divisor
    };
    a.channels = window_channels(x, pool->rank);
    for (int i = 0; i < x.ndim - pool->rank; i++) a.planes *= x.dim[i];
    for (int i = 0; i < WINDOW_RANK; i++) {
        a.in[i] = in.at[i], a.out[i] = out.at[i];
        even = even && a.out[i] && a.in[i] % a.out[i] == 0;
        a.kernel[i] = pool->kernel.at[i], a.stride[i] = pool->stride.at[i];
        a.pad[i] = pool->pad.at[i], a.dilation[i] = pool->adaptive ? 1 : pool->dilation.at[i];
    }
    if (!pool->adaptive) return a;
    a.adaptive = !even || a.out[2] * a.out[2] <
                              4 * a.in[2]; /* the others' loops run over windows: many, and narrow ones */
    for (int i = 0; i < WINDOW_RANK && !a.adaptive; i++) a.kernel[i] = a.stride[i] = a.in[i] / a.out[i];
    return a;
}

int pool_deliver(Tensor *out, const Tensor *from) { return out == from ? 0 : raw_copy(out, from); }
