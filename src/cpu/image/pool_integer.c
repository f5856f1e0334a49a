/* pool_integer.c - pools of integers by windows: a window at a time. */
#include "cpu/integer.h"
#include "pool_kernel.h"

enum { D, H, W };

/* The part of a window that lies inside the input: its first tap in each direction, and the end. */
typedef struct Window {
    int64_t from[3], to[3];
} Window;

static Window window_of(const PoolArgs *a, int64_t i)
{
    const int64_t at[3] = { i / a->out[W] / a->out[H], i / a->out[W] % a->out[H], i % a->out[W] };
    Window w;
    for (int k = 0; k < 3; k++) {
        const int64_t begin = at[k] * a->stride[k] - a->pad[k], end = begin + a->dilation[k] * a->kernel[k];
        w.from[k] =
            begin < 0 ? begin + (-begin + a->dilation[k] - 1) / a->dilation[k] * a->dilation[k] : begin;
        w.to[k] = end < a->in[k] ? end : a->in[k];
    }
    return w;
}

static int64_t planes_of(const int64_t size[3]) { return size[D] * size[H] * size[W]; }

static void max_plane(void *ctx, int64_t t)
{
    const PoolArgs *a = ctx;
    const int64_t in = t * planes_of(a->in), out = t * planes_of(a->out);
    for (int64_t i = 0; i < planes_of(a->out); i++) {
        const Window w = window_of(a, i);
        int64_t best = INT64_MIN, index = -1;
        for (int64_t d = w.from[D]; d < w.to[D]; d += a->dilation[D])
            for (int64_t h = w.from[H]; h < w.to[H]; h += a->dilation[H])
                for (int64_t s = w.from[W]; s < w.to[W]; s += a->dilation[W]) {
                    const int64_t at = (d * a->in[H] + h) * a->in[W] + s,
                                  v = integer_at(a->dtype, a->x, in + at);
                    if (v > best || index < 0) best = v, index = at;
                }
        if (index < 0) /* dilation left no tap inside: the index lies there all the same */
            index = ((w.from[D] < a->in[D] ? w.from[D] : a->in[D] - 1) * a->in[H] +
                     (w.from[H] < a->in[H] ? w.from[H] : a->in[H] - 1)) *
                        a->in[W] +
                    (w.from[W] < a->in[W] ? w.from[W] : a->in[W] - 1);
        integer_put(a->dtype, a->y, out + i, (uint64_t)best);
        a->index[out + i] = index;
    }
}

/* How many positions a window counts along one direction: those inside, or those up to the padding's end too.
 */
static int64_t counted(const PoolArgs *a, int k, int64_t i)
{
    const int64_t from = i * a->stride[k] - a->pad[k], end = from + a->kernel[k], size = a->in[k];
    const int64_t padded = end < size + a->pad[k] ? end : size + a->pad[k];
    if (a->count_include_pad) return padded - from;
    return (padded < size ? padded : size) - (from > 0 ? from : 0);
}

static void avg_plane(void *ctx, int64_t t)
{
    const PoolArgs *a = ctx;
    const int64_t *x = (const int64_t *)a->x + t * planes_of(a->in);
    int64_t *y = (int64_t *)a->y + t * planes_of(a->out);
    for (int64_t i = 0; i < planes_of(a->out); i++) {
        const Window w = window_of(a, i);
        uint64_t sum = 0;
        for (int64_t d = w.from[D]; d < w.to[D]; d++)
            for (int64_t h = w.from[H]; h < w.to[H]; h++)
                for (int64_t s = w.from[W]; s < w.to[W]; s++)
                    sum += (uint64_t)x[(d * a->in[H] + h) * a->in[W] + s];
        const int64_t count = counted(a, D, i / a->out[W] / a->out[H]) *
                              counted(a, H, i / a->out[W] % a->out[H]) * counted(a, W, i % a->out[W]);
        const int64_t divisor = a->divisor ? a->divisor : count, total = (int64_t)sum;
        y[i] = total / divisor;
    }
}

static int threads_for(const PoolArgs *a)
{
    return cpu_threads(a->planes * planes_of(a->out) * (planes_of(a->kernel) + 1));
}

void max_pool_integers(const PoolArgs *a)
{
    parallel_for(a->planes, threads_for(a), max_plane, (void *)(uintptr_t)a);
}

void avg_pool_integers(const PoolArgs *a)
{
    parallel_for(a->planes, threads_for(a), avg_plane, (void *)(uintptr_t)a);
}
