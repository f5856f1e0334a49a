/* gemm_integer.c - products of matrices of integers, in int64_t modulo 2^64, then modulo 2 to the dtype's
 * width: row by row, plain loops. */
#include "cpu/cpu.h"
#include "cpu/integer.h"

static void some_rows(void *ctx, int64_t from, int64_t to)
{
    const GemmArgs *g = ctx;
    const uint64_t alpha = (uint64_t)(int64_t)g->alpha, beta = (uint64_t)(int64_t)g->beta;
    for (int64_t row = from; row < to; row++) {
        const int64_t batch = row / g->m, i = row % g->m;
        for (int64_t j = 0; j < g->n; j++) {
            const int64_t a = batch * g->a_batch + i * g->a_row, b = batch * g->b_batch + j * g->b_col;
            const int64_t c = batch * g->c_batch + i * g->c_row + j * g->c_col;
            uint64_t sum = 0;
            for (int64_t k = 0; k < g->k; k++)
                sum += (uint64_t)integer_at(g->dtype, g->a, a + k * g->a_col) *
                       (uint64_t)integer_at(g->dtype, g->b, b + k * g->b_row);
            sum *= alpha;
            if (beta) sum += beta * (uint64_t)integer_at(g->dtype, g->c, c);
            if (g->bias) sum += (uint64_t)integer_at(g->dtype, g->bias, j);
            integer_put(g->dtype, g->c, c, sum);
        }
    }
}

void gemm_integers(const GemmArgs *g)
{
    const int64_t rows = g->batch * g->m;
    parallel_split(rows, cpu_threads(rows * g->n * (g->k + 1)), some_rows, (void *)(uintptr_t)g);
}
