/* gemm_integer.cu - products of matrices of integers, which cuBLAS lacks: modulo 2^64, then to the dtype's
 * width.
 *
 * A block makes a tile of c from tiles of a and b in shared memory. */
#include "gemm.cuh"

static constexpr int TILE = 32, DEPTH = 16, EACH = 2;

template <class T> __global__ void gemm_integer_kernel(GemmArgs g)
{
    __shared__ uint64_t left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
    int64_t number = blockIdx.x;
    const int64_t columns = (g.n + TILE - 1) / TILE, rows = (g.m + TILE - 1) / TILE;
    const int64_t column = split_off(number, columns) * TILE, row = split_off(number, rows) * TILE;
    const int me = (int)threadIdx.x, my_row = me / (TILE / EACH) * EACH,
              my_column = me % (TILE / EACH) * EACH;
    const T *a = (const T *)g.a + number * g.a_batch, *b = (const T *)g.b + number * g.b_batch;
    uint64_t sum[EACH][EACH] = {};
    for (int64_t k = 0; k < g.k; k += DEPTH) {
        for (int e = me; e < TILE * DEPTH; e += THREADS) {
            const int64_t at = k + e % DEPTH, r = row + e / DEPTH;
            left[e % DEPTH][e / DEPTH] = at < g.k && r < g.m ? (uint64_t)a[r * g.a_row + at * g.a_col] : 0;
        }
        for (int e = me; e < TILE * DEPTH; e += THREADS) {
            const int64_t at = k + e / TILE, n = column + e % TILE;
            right[e / TILE][e % TILE] = at < g.k && n < g.n ? (uint64_t)b[at * g.b_row + n * g.b_col] : 0;
        }
        __syncthreads();
        for (int at = 0; at < DEPTH; at++)
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) sum[i][j] += left[at][my_row + i] * right[at][my_column + j];
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int64_t r = row + my_row + i, n = column + my_column + j;
            if (r >= g.m || n >= g.n) continue;
            T *const c = (T *)g.c + number * g.c_batch + r * g.c_row + n * g.c_col;
            uint64_t v = sum[i][j] * (uint64_t)(int64_t)g.alpha;
            if (g.beta != 0) v += (uint64_t)(int64_t)g.beta * (uint64_t)*c;
            if (g.bias) v += (uint64_t)((const T *)g.bias)[n];
            *c = (T)v;
        }
}

int gemm_integers(const GemmArgs *g)
{
    const int64_t blocks = g->batch * ((g->m + TILE - 1) / TILE) * ((g->n + TILE - 1) / TILE);
    if (blocks > INT32_MAX) return gpu_fail("a product of integers has more tiles than a launch");
    return with_dtype(g->dtype, [&]<class T>() {
        if constexpr (std::is_integral_v<T>) {
            auto kernel = &gemm_integer_kernel<T>;
            LAUNCH(kernel, (unsigned)blocks, THREADS, *g);
            return gpu_launched("product of integers");
        } else {
            return (int)KERNEL_DECLINED;
        }
    });
}
