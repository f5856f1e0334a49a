/* lines_kernel.h - a matrix times a vector, added to another, for each instruction set.
 *   add_columns   y += alpha a b, a's `k` columns of `rows` numbers contiguous and ld apart
 *   add_dots      the same where a's rows of `k` numbers are */
#ifndef TG_LINES_KERNEL_H
#define TG_LINES_KERNEL_H

#include <stdint.h>
#include "cpu/isa.h"
#include "hidden.h"

HIDDEN_BEGIN

#define LINES_ARGS(T) int64_t rows, int64_t k, T alpha, const T *a, int64_t ld, const T *b, T *y
ISA_DECLARE(void, add_columns_f32, LINES_ARGS(float));
ISA_DECLARE(void, add_columns_f64, LINES_ARGS(double));
ISA_DECLARE(void, add_dots_f32, LINES_ARGS(float));
ISA_DECLARE(void, add_dots_f64, LINES_ARGS(double));

HIDDEN_END
#endif
