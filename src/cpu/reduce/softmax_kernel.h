/* softmax_kernel.h - exponentials over rows and columns, compiled once an instruction set.
 *
 * A row is n neighbours.  Columns are [n][columns] elements, a row of them every `inner` elements, at most
 * SOFTMAX_COLUMNS side by side.  All loops go over them with a vector, whatever n is. */
#ifndef TG_CPU_SOFTMAX_KERNEL_H
#define TG_CPU_SOFTMAX_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include "cpu/isa.h"

enum { SOFTMAX_COLUMNS = 64 };

#define SOFTMAX_DECLARE(T, type)                                                                           \
    ISA_DECLARE(void, softmax_rows_##type, bool log, int64_t rows, int64_t n, const T *x, T *y);           \
    ISA_DECLARE(void, softmax_columns_##type, bool log, int64_t n, int64_t inner, int columns, const T *x, \
                T *y);                                                                                     \
    /* dx = y (g - sum g y), or g - e^y sum g */                                                           \
    ISA_DECLARE(void, softmax_grad_rows_##type, bool log, int64_t rows, int64_t n, const T *y, const T *g, \
                T *dx);                                                                                    \
    ISA_DECLARE(void, softmax_grad_columns_##type, bool log, int64_t n, int64_t inner, int columns,        \
                const T *y, const T *g, T *dx);                                                            \
    /* lse = log sum e^x */                                                                                \
    ISA_DECLARE(void, lse_rows_##type, int64_t rows, int64_t n, const T *x, T *lse);                       \
    ISA_DECLARE(void, lse_columns_##type, int64_t n, int64_t inner, int columns, const T *x, T *lse);      \
    /* x = e^(x - shift), shift = max x, factor = 1 / sum; where all of x is -inf: 0, 0, 0 */              \
    ISA_DECLARE(void, exp_row_##type, int64_t n, T *x, T *shift, T *factor);                               \
    /* y = scale e^(x - shift): one shift and scale for the row, or one a column */                        \
    ISA_DECLARE(void, scaled_exp_row_##type, int64_t n, const T *x, T shift, T scale, T *y);               \
    ISA_DECLARE(void, scaled_exp_columns_##type, int64_t n, int64_t inner, int columns, const T *x,        \
                const T *shift, const T *scale, T *y)

SOFTMAX_DECLARE(float, f32);
SOFTMAX_DECLARE(double, f64);

#endif
