/* gather.cu - picking elements by index, and adding them back.
 *
 * scatter_add: a thread owns a column of the destination, or a range of its rows where columns are few, and
 * adds in the order of the index rows, so there are no atomics and the bits are always the same. */
#include "cuda.cuh"

static int check(GatherArgs *g)
{
    const IndexBlock b = { g->index, g->outer, g->m, g->inner, g->index_outer, g->index_row, g->index_inner };
    const IndexCheck c = { b, g->n, nullptr, g->op, g->site };
    return gpu_check_index(&c, &g->bad_at, &g->bad_value);
}

/* ---- gather ---------------------------------------------------------------------------------- */

template <class Bits> __global__ void gather_kernel(GatherArgs g)
{
    const int64_t count = g.outer * g.m * g.inner;
    for (int64_t at = first_item(); at < count; at += item_step()) {
        const int64_t i = at % g.inner, j = at / g.inner % g.m, o = at / g.inner / g.m;
        int64_t row = g.index[o * g.index_outer + j * g.index_row + i * g.index_inner];
        if (row < 0 || row >= g.n) row = 0; /* the check tells of it */
        if (g.n > 0) ((Bits *)g.dst)[at] = ((const Bits *)g.src)[(o * g.n + row) * g.inner + i];
    }
}

int gpu_gather(GatherArgs *g)
{
    const int64_t count = g->outer * g->m * g->inner;
    if (count == 0) return 0;
    if (check(g)) return -1;
    return with_size(g->dtype, [&]<class Bits>() {
        auto kernel = &gather_kernel<Bits>;
        LAUNCH(kernel, gpu_blocks(count), THREADS, *g);
        return gpu_launched("gather");
    });
}

/* ---- scatter_add ----------------------------------------------------------------------------- */

template <class T> __device__ inline T added(T a, T b)
{
    if constexpr (std::is_same_v<T, Bool>) return Bool{ (uint8_t)(a.v | b.v) };
    else if constexpr (std::is_same_v<T, __half>) return __float2half_rn(__half2float(a) + __half2float(b));
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __float2bfloat16_rn(__bfloat162float(a) + __bfloat162float(b));
    else if constexpr (std::is_integral_v<T>) return (T)((uint64_t)a + (uint64_t)b);
    else return a + b;
}

/* Part blockIdx.y of the destination's rows. */
template <class T> __global__ void scatter_kernel(GatherArgs g)
{
    const int64_t column = first_item(), o = column / g.inner, i = column % g.inner;
    const int64_t begin = g.n * blockIdx.y / gridDim.y, end = g.n * (blockIdx.y + 1) / gridDim.y;
    if (column >= g.outer * g.inner) return;
    const int64_t *index = g.index + o * g.index_outer + i * g.index_inner;
    const T *src = (const T *)g.src + o * g.m * g.inner + i;
    T *dst = (T *)g.dst + o * g.n * g.inner + i;
    for (int64_t j = 0; j < g.m; j++) {
        const int64_t row = index[j * g.index_row];
        if (row >= begin && row < end) dst[row * g.inner] = added(dst[row * g.inner], src[j * g.inner]);
    }
}

int gpu_scatter_add(GatherArgs *g)
{
    const int64_t columns = g->outer * g->inner;
    if (columns * g->m == 0) return 0;
    if (check(g)) return -1;
    int64_t parts = columns < (1 << 16) && g->m > 64 ? (1 << 16) / columns : 1;
    if (parts > 64) parts = 64;
    if (parts > g->n) parts = g->n;
    return with_dtype(g->dtype, [&]<class T>() {
        auto kernel = &scatter_kernel<T>;
        LAUNCH(kernel, dim3((unsigned)((columns + THREADS - 1) / THREADS), (unsigned)parts), THREADS, *g);
        return gpu_launched("scatter_add");
    });
}
