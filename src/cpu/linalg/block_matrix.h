/* block_matrix.h - LU, Cholesky and triangular systems of larger matrices, halved recursively down to plain
 * loops: nearly all of the work is then products, by our own kernels.  small_matrix.h has the plain forms. */
#ifndef TG_BLOCK_MATRIX_H
#define TG_BLOCK_MATRIX_H

#include <stdbool.h>
#include <stdint.h>
#include "hidden.h"
#include "real.h"

HIDDEN_BEGIN

/* c = alpha a b + beta c; a is [m, k], b [k, n]; _row, _col: the distance of rows and of columns.  -1 without
 * memory. */
int TYPED(block_product)(int64_t m, int64_t n, int64_t k, REAL alpha, const REAL *a, int64_t a_row,
                         int64_t a_col, const REAL *b, int64_t b_row, int64_t b_col, REAL beta, REAL *c,
                         int64_t c_row, int64_t c_col);

/* As small_lu, small_cholesky and small_triangular; -1 without memory for the products. */
int64_t TYPED(block_lu)(REAL *a, int64_t m, int64_t n, int *pivots);
int64_t TYPED(block_cholesky)(REAL *a, int64_t n);
int TYPED(block_triangular)(const REAL *a, REAL *b, int64_t rows, int64_t columns, bool upper, bool left,
                            bool unit);

HIDDEN_END
#endif
