/* pool_integer.c - pools of integers by windows: a window at a time. */
#include "cpu/integer.h"
#include "pool_kernel.h"
#include "cpu/vectors.h"

enum { D, H, W };

/* The part of a window that lies inside the input, in one direction: its first tap, and the end. */
typedef struct Part {
    int64_t from, to;
} Part;

FORCE_INLINE Part part_of(const PoolArgs *a, int k, int64_t i)
{
    const int64_t begin = i * a->stride[k] - a->pad[k], end = begin + a->dilation[k] * a->kernel[k];
    return (Part){ begin < 0 ? begin + (-begin + a->dilation[k] - 1) / a->dilation[k] * a->dilation[k]
                             : begin,
                   end < a->in[k] ? end : a->in[k] };
}

static int64_t planes_of(const int64_t size[3]) { return size[D] * size[H] * size[W]; }

static int64_t inside(const PoolArgs *a, int k, Part p) { return p.from < a->in[k] ? p.from : a->in[k] - 1; }

FORCE_INLINE void largest(const PoolArgs *a, int dtype, int64_t in, int64_t to, Part d, Part h, Part w)
{
    int64_t best = INT64_MIN, index = -1;
    for (int64_t i = d.from; i < d.to; i += a->dilation[D])
        for (int64_t j = h.from; j < h.to; j += a->dilation[H])
            for (int64_t k = w.from; k < w.to; k += a->dilation[W]) {
                const int64_t at = (i * a->in[H] + j) * a->in[W] + k, v = integer_at(dtype, a->x, in + at);
                if (v > best || index < 0) best = v, index = at;
            }
    if (index < 0) /* dilation left no tap inside: the index lies there all the same */
        index = (inside(a, D, d) * a->in[H] + inside(a, H, h)) * a->in[W] + inside(a, W, w);
    integer_put(dtype, a->y, to, (uint64_t)best);
    a->index[to] = index;
}

static void max_plane(void *ctx, int64_t t)
{
    const PoolArgs *a = ctx;
    const int64_t in = t * planes_of(a->in);
    int64_t to = t * planes_of(a->out);
    for (int64_t i = 0; i < a->out[D]; i++)
        for (int64_t j = 0; j < a->out[H]; j++) {
            const Part d = part_of(a, D, i), h = part_of(a, H, j);
            for (int64_t k = 0; k < a->out[W]; k++, to++) {
                const Part w = part_of(a, W, k);
                if (a->dtype == TENSOR_I64) largest(a, TENSOR_I64, in, to, d, h, w);
                else largest(a, a->dtype, in, to, d, h, w);
            }
        }
}

/* How many positions a window counts along one direction: those inside, or those up to the padding's end too.
 */
FORCE_INLINE int64_t counted(const PoolArgs *a, int k, int64_t i)
{
    const int64_t from = i * a->stride[k] - a->pad[k], end = from + a->kernel[k], size = a->in[k];
    const int64_t padded = end < size + a->pad[k] ? end : size + a->pad[k];
    if (a->count_include_pad) return padded - from;
    return (padded < size ? padded : size) - (from > 0 ? from : 0);
}

/* Most numbers have 32 bits, and are divided in half the time. */
FORCE_INLINE int64_t quotient(int64_t x, int64_t y)
{
    return x == (int32_t)x && y == (int32_t)y && y > 0 ? (int32_t)x / (int32_t)y : x / y;
}

static void avg_plane(void *ctx, int64_t t)
{
    const PoolArgs *a = ctx;
    const int64_t *x = (const int64_t *)a->x + t * planes_of(a->in);
    int64_t *y = (int64_t *)a->y + t * planes_of(a->out);
    for (int64_t i = 0; i < a->out[D]; i++)
        for (int64_t j = 0; j < a->out[H]; j++) {
            const Part d = part_of(a, D, i), h = part_of(a, H, j);
            const int64_t lines = counted(a, D, i) * counted(a, H, j);
            for (int64_t k = 0; k < a->out[W]; k++) {
                const Part w = part_of(a, W, k);
                uint64_t sum = 0;
                for (int64_t e = d.from; e < d.to; e++)
                    for (int64_t f = h.from; f < h.to; f++)
                        for (int64_t s = w.from; s < w.to; s++)
                            sum += (uint64_t)x[(e * a->in[H] + f) * a->in[W] + s];
                *y++ = quotient((int64_t)sum, a->divisor ? a->divisor : lines * counted(a, W, k));
            }
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
