/* reduce_kernel.h - what reduce.c asks of the loops that are compiled once an instruction set.
 *
 * A fold runs over a line of elements in FOLD_LANES interleaved sums, element i in lane i mod FOLD_LANES,
 * whatever the width of the vectors and whether the line lies along a row or down a column: so the bits of a
 * result depend on neither.  Lanes are double for f32 too: a sum over 10^7 floats is then right to its last
 * bit. */
#ifndef TG_CPU_REDUCE_KERNEL_H
#define TG_CPU_REDUCE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include "cpu/isa.h"

enum { FOLD_LANES = 32, FOLD_COLUMNS = 64 };

typedef enum Fold {
    FOLD_SUM,
    FOLD_PROD,
    FOLD_MAX,
    FOLD_MIN, /* NaN wins in all that choose */
    FOLD_ABS,
    FOLD_SQUARE, /* sum |x|, sum (x - shift)^2 */
    FOLD_MAX_ABS,
    FOLD_MIN_ABS,
    FOLD_COUNT /* max |x|, min |x|, how many are not 0 */
} Fold;

/* Adds n elements, the first into lane 0. */
ISA_DECLARE(void, fold_line_f32, int fold, double *lanes, const float *x, int64_t n, double shift);
ISA_DECLARE(void, fold_line_f64, int fold, double *lanes, const double *x, int64_t n, double shift);

/* The same for columns side by side (at most FOLD_COLUMNS): rows of them, row_stride apart.  lanes is
 * [FOLD_LANES][FOLD_COLUMNS], shift one value a column. */
ISA_DECLARE(void, fold_columns_f32, int fold, double *lanes, const float *x, int64_t rows, int64_t row_stride,
            int columns, const double *shift);
ISA_DECLARE(void, fold_columns_f64, int fold, double *lanes, const double *x, int64_t rows,
            int64_t row_stride, int columns, const double *shift);

/* The lanes brought together by halves; every column's for the second, where only the first `used` lanes hold
 * anything. */
ISA_DECLARE(double, fold_lanes, int fold, const double *lanes);
ISA_DECLARE(void, fold_lane_columns, int fold, double *lanes, int used, int columns, double *out);

/* Both at once for sums of few rows, twice as fast, to the same bits: from `first` on into out; false: not
 * for this fold, or so few columns. */
ISA_DECLARE(bool, fold_few_rows_f32, int fold, const float *x, int64_t rows, int64_t row_stride, int columns,
            const double *shift, double first, double *out);

/* The sums of rows of n elements: fold_line and fold_lanes of each. */
ISA_DECLARE(void, sum_rows_f32, const float *x, int64_t rows, int64_t row_stride, int64_t n, double *sums);

/* y = e^(x - shift) and y = |x|^p over n elements. */
ISA_DECLARE(void, shifted_exp_f32, float *y, const float *x, int64_t n, double shift);
ISA_DECLARE(void, shifted_exp_f64, double *y, const double *x, int64_t n, double shift);
ISA_DECLARE(void, abs_pow_f32, float *y, const float *x, int64_t n, double p);
ISA_DECLARE(void, abs_pow_f64, double *y, const double *x, int64_t n, double p);

/* y = |x|^p by 2^-40, several times as fast; 0 where x is, whatever p. */
ISA_DECLARE(void, short_pow, double *y, const double *x, int64_t n, double p);

#endif
