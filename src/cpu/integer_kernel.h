/* integer_kernel.h - loops over integers of 64 bits for one instruction set.  Sums and products are right
 * modulo 2^64, so their order does not matter. */
#ifndef TG_CPU_INTEGER_KERNEL_H
#define TG_CPU_INTEGER_KERNEL_H

#include <stdint.h>
#include "cpu/isa.h"

/* A tile of a product: sums[r][c] = sum over p of a[p][r] b[p][c].  The sum of a[p] b[p]. */
enum { INTEGER_ROWS = 4, INTEGER_COLS = 16 };
ISA_DECLARE(void, integer_tile, int64_t k, const uint64_t *a, const uint64_t *b, uint64_t *sums);
ISA_DECLARE(uint64_t, integer_dot, int64_t k, const uint64_t *a, const uint64_t *b);

/* kind: REDUCE_SUM, PROD, MAX, MIN; others count what is not 0.  The fold of n elements, joined with `start`;
 * and of one row more into each of n columns. */
ISA_DECLARE(int64_t, integer_fold, int kind, int64_t start, const int64_t *x, int64_t n);
ISA_DECLARE(void, integer_fold_row, int kind, int64_t *columns, const int64_t *x, int64_t n);

#endif
