/* gemm_integer.cu - products of matrices of integers, which cuBLAS lacks: modulo 2^64, then to the dtype's
 * width.
 *
 * A block makes a tile of c from tiles of a and b in shared memory. */
#include "gemm.cuh"

static constexpr int SQUARE = 32, STEPS = 16, OWN = 2;

template <class T> __global__ void gemm_integer_kernel(GemmArgs g)
{
    __shared__ uint64_t left[STEPS][SQUARE + 1], right[STEPS][SQUARE + 1];
    int64_t number = blockIdx.x;
    const int64_t columns = (g.n + SQUARE - 1) / SQUARE, rows = (g.m + SQUARE - 1) / SQUARE;
    const int64_t column = split_off(number, columns) * SQUARE, row = split_off(number, rows) * SQUARE;
    const int me = (int)threadIdx.x, my_row = me / (SQUARE / OWN) * OWN,
              my_column = me % (SQUARE / OWN) * OWN;
    const T *a = (const T *)g.a + number * g.a_batch, *b = (const T *)g.b + number * g.b_batch;
    uint64_t sum[OWN][OWN] = {};
    for (int64_t k = 0; k < g.k; k += STEPS) {
        for (int e = me; e < SQUARE * STEPS; e += THREADS) {
            const int64_t at = k + e % STEPS, r = row + e / STEPS;
            left[e % STEPS][e / STEPS] = at < g.k && r < g.m ? (uint64_t)a[r * g.a_row + at * g.a_col] : 0;
        }
        for (int e = me; e < SQUARE * STEPS; e += THREADS) {
            const int64_t at = k + e / SQUARE, n = column + e % SQUARE;
            right[e / SQUARE][e % SQUARE] = at < g.k && n < g.n ? (uint64_t)b[at * g.b_row + n * g.b_col] : 0;
        }
        __syncthreads();
        for (int at = 0; at < STEPS; at++)
            for (int i = 0; i < OWN; i++)
                for (int j = 0; j < OWN; j++) sum[i][j] += left[at][my_row + i] * right[at][my_column + j];
        __syncthreads();
    }
    for (int i = 0; i < OWN; i++)
        for (int j = 0; j < OWN; j++) {
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
    const int64_t blocks = g->batch * ((g->m + SQUARE - 1) / SQUARE) * ((g->n + SQUARE - 1) / SQUARE);
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
