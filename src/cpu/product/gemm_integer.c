/* gemm_integer.c - products of matrices of integers, in 64 bits, then modulo 2 to the dtype's width.
 *
 * Pieces of a and b are copied to dense arrays of 64 bits; tiles of both are multiplied by the kernel.  Few
 * columns are dot products, of a row and a column at a time; of a small b, products are taken as they lie. */
#include "cpu/cpu.h"
#include "cpu/integer.h"
#include "cpu/integer_kernel.h"

enum { DEPTH = 256, FEW_COLS = 8, SMALL = 64 };

/* n elements, stride apart, to places `apart` from each other. */
static void copy_line(int dtype, const void *x, int64_t at, int64_t stride, int64_t n, uint64_t *to,
                      int apart)
{
    if (dtype == TENSOR_I64)
        for (int64_t i = 0; i < n; i++) to[i * apart] = ((const uint64_t *)x)[at + i * stride];
    else
        for (int64_t i = 0; i < n; i++) to[i * apart] = (uint64_t)integer_at(dtype, x, at + i * stride);
}

/* c of row i of a batch, column j, gets the sum over the depth from p on. */
static void put(const GemmArgs *g, int64_t batch, int64_t i, int64_t j, int64_t p, uint64_t sum)
{
    const uint64_t beta = p ? 1 : (uint64_t)(int64_t)g->beta;
    const int64_t at = batch * g->c_batch + i * g->c_row + j * g->c_col;
    sum *= (uint64_t)(int64_t)g->alpha;
    if (beta) sum += beta * (uint64_t)integer_at(g->dtype, g->c, at);
    if (g->bias && p == 0) sum += (uint64_t)integer_at(g->dtype, g->bias, j);
    integer_put(g->dtype, g->c, at, sum);
}

/* Rows [from, to) of a batch where b is small. */
FORCE_INLINE void few_products(const int dtype, const GemmArgs *g, int64_t batch, int64_t from, int64_t to)
{
    const uint64_t alpha = (uint64_t)(int64_t)g->alpha, beta = (uint64_t)(int64_t)g->beta;
    for (int64_t i = from; i < to; i++)
        for (int64_t j = 0; j < g->n; j++) {
            const int64_t a = batch * g->a_batch + i * g->a_row, b = batch * g->b_batch + j * g->b_col;
            const int64_t c = batch * g->c_batch + i * g->c_row + j * g->c_col;
            uint64_t sum = 0;
            for (int64_t k = 0; k < g->k; k++)
                sum += (uint64_t)integer_at(dtype, g->a, a + k * g->a_col) *
                       (uint64_t)integer_at(dtype, g->b, b + k * g->b_row);
            sum *= alpha;
            if (beta) sum += beta * (uint64_t)integer_at(dtype, g->c, c);
            if (g->bias) sum += (uint64_t)integer_at(dtype, g->bias, j);
            integer_put(dtype, g->c, c, sum);
        }
}

/* Rows [from, to) of a batch, columns from j on, depth k from p on. */
static void some_tiles(const GemmArgs *g, int64_t batch, int64_t from, int64_t to, int64_t j, int64_t p,
                       int64_t k)
{
    uint64_t a[DEPTH * INTEGER_ROWS], b[DEPTH * INTEGER_COLS], sums[INTEGER_ROWS * INTEGER_COLS];
    const int64_t cols = g->n - j < INTEGER_COLS ? g->n - j : INTEGER_COLS;
    for (int64_t q = 0; q < k; q++)
        copy_line(g->dtype, g->b, batch * g->b_batch + (p + q) * g->b_row + j * g->b_col, g->b_col, cols,
                  b + q * INTEGER_COLS, 1);
    for (int64_t i = from; i < to; i += INTEGER_ROWS) {
        const int64_t rows = to - i < INTEGER_ROWS ? to - i : INTEGER_ROWS;
        for (int64_t r = 0; r < rows; r++)
            copy_line(g->dtype, g->a, batch * g->a_batch + (i + r) * g->a_row + p * g->a_col, g->a_col, k,
                      a + r, INTEGER_ROWS);
        ISA_PICK(integer_tile)(k, a, b, sums);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++) put(g, batch, i + r, j + c, p, sums[r * INTEGER_COLS + c]);
    }
}

/* The same for few columns, from 0 on. */
static void some_dots(const GemmArgs *g, int64_t batch, int64_t from, int64_t to, int64_t p, int64_t k)
{
    uint64_t a[DEPTH], b[FEW_COLS][DEPTH];
    for (int64_t j = 0; j < g->n; j++)
        copy_line(g->dtype, g->b, batch * g->b_batch + p * g->b_row + j * g->b_col, g->b_row, k, b[j], 1);
    for (int64_t i = from; i < to; i++) {
        const int64_t at = batch * g->a_batch + i * g->a_row + p * g->a_col;
        const bool there = g->dtype == TENSOR_I64 && g->a_col == 1;
        if (!there) copy_line(g->dtype, g->a, at, g->a_col, k, a, 1);
        for (int64_t j = 0; j < g->n; j++)
            put(g, batch, i, j, p, ISA_PICK(integer_dot)(k, there ? (const uint64_t *)g->a + at : a, b[j]));
    }
}

static void some_rows(void *ctx, int64_t from, int64_t to)
{
    const GemmArgs *g = ctx;
    for (int64_t row = from, end; row < to; row = end) {
        const int64_t batch = row / g->m, first = row % g->m;
        end = (batch + 1) * g->m < to ? (batch + 1) * g->m : to;
        const int64_t last = first + end - row;
        int64_t p = 0, k;
        if (g->k * g->n <= SMALL) {
            if (g->dtype == TENSOR_I64) few_products(TENSOR_I64, g, batch, first, last);
            else few_products(g->dtype, g, batch, first, last);
            continue;
        }
        for (; p < g->k; p += k) {
            k = g->k - p < DEPTH ? g->k - p : DEPTH;
            if (g->n <= FEW_COLS) some_dots(g, batch, first, last, p, k);
            else
                for (int64_t j = 0; j < g->n; j += INTEGER_COLS) some_tiles(g, batch, first, last, j, p, k);
        }
    }
}

void gemm_integers(const GemmArgs *g)
{
    const int64_t rows = g->batch * g->m;
    parallel_split(rows, cpu_threads(rows * g->n * (g->k + 1)), some_rows, (void *)(uintptr_t)g);
}
