/* gemm_integer.c - products of matrices of integers, in int64_t modulo 2^64, then modulo 2 to the dtype's
 * width: row by row, plain loops. */
#include "tensor/core.h"
#include "cpu/cpu.h"

static int64_t read(int dtype, const void *x, int64_t at)
{
    return dtype == TENSOR_I64   ? ((const int64_t *)x)[at]
           : dtype == TENSOR_I32 ? ((const int32_t *)x)[at]
                                 : ((const uint8_t *)x)[at];
}

static void write(int dtype, void *x, int64_t at, uint64_t value)
{
    if (dtype == TENSOR_I64) ((int64_t *)x)[at] = (int64_t)value;
    else if (dtype == TENSOR_I32) ((int32_t *)x)[at] = (int32_t)(uint32_t)value;
    else ((uint8_t *)x)[at] = (uint8_t)value;
}

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
                sum += (uint64_t)read(g->dtype, g->a, a + k * g->a_col) *
                       (uint64_t)read(g->dtype, g->b, b + k * g->b_row);
            sum *= alpha;
            if (beta) sum += beta * (uint64_t)read(g->dtype, g->c, c);
            if (g->bias) sum += (uint64_t)read(g->dtype, g->bias, j);
            write(g->dtype, g->c, c, sum);
        }
    }
}

void gemm_integers(const GemmArgs *g)
{
    const int64_t rows = g->batch * g->m;
    parallel_split(rows, cpu_threads(rows * g->n * (g->k + 1)), some_rows, (void *)(uintptr_t)g);
}
