/* gemm_numbers.h - random numbers, layouts and elements for the suites of products of halves. */
#ifndef TG_GEMM_NUMBERS_H
#define TG_GEMM_NUMBERS_H

#include "device/half.h"

static uint64_t state = 88172645463325252u;
static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static int64_t below(int64_t n) { return (int64_t)(next() % (uint64_t)n); }

/* Whole: -2 to 2, whose sums are exact; else in [-1, 1). */
static float drawn_float(bool whole)
{
    return whole ? (float)below(5) - 2 : (float)((double)(next() >> 11) * 0x1p-53 * 2 - 1);
}

/* Steps of a [rows, cols] matrix: rows first, columns first, spread. */
static void steps(int layout, int64_t rows, int64_t cols, int64_t *row, int64_t *col)
{
    *row = layout == 0 ? cols : layout == 1 ? 1 : 2 * cols + 1;
    *col = layout == 0 ? 1 : layout == 1 ? rows : 2;
}

/* Element i of bf16, or of f32. */
static double get(int dtype, const void *x, int64_t i)
{
    return dtype == TENSOR_BF16 ? bf16_to_f32(((const uint16_t *)x)[i]) : ((const float *)x)[i];
}

#endif
