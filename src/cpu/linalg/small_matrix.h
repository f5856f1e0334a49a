/* small_matrix.h - LU, Cholesky and triangular systems by plain loops over rows, for matrices too small for
 * LAPACK's blocks: there a 4x4 system takes 100 times as long, nearly all of it in calls. */
#ifndef TG_SMALL_MATRIX_H
#define TG_SMALL_MATRIX_H

#include <stdbool.h>
#include <stdint.h>
#include "hidden.h"
#include "real.h"

HIDDEN_BEGIN

enum { SMALL_MATRIX = 64 }; /* rows, and below */

/* to [columns, rows]; ld: the distance of rows. */
void TYPED(transpose_into)(REAL *to, const REAL *from, int64_t rows, int64_t columns);
void TYPED(transpose_part)(REAL *to, int64_t to_ld, const REAL *from, int64_t from_ld, int64_t rows,
                           int64_t columns);

void TYPED(put_identity)(REAL *x, int64_t n); /* x is [n, n] */

/* y -= c x, y /= c, x and y exchanged, and x y, of n elements. */
void TYPED(subtract_line)(REAL *y, const REAL *x, REAL c, int64_t n);
void TYPED(divide_line)(REAL *y, REAL c, int64_t n);
void TYPED(exchange_lines)(REAL *x, REAL *y, int64_t n);
REAL TYPED(dot_line)(const REAL *x, const REAL *y, int64_t n);

/* a [m, n] = p l u in place, l of unit diagonal; row k was exchanged with row pivots[k].  0, or 1 + the first
 * k whose pivot is 0. */
int64_t TYPED(small_lu)(REAL *a, int64_t m, int64_t n, int *pivots);
void TYPED(small_lu_solve)(const REAL *lu, int64_t n, const int *pivots, REAL *b,
                           int64_t columns); /* b [n, columns] in place */

/* The lower triangle of a, of rows ld apart, becomes l with l l^T = a.  0, or the order of the first
 * leading minor that is not positive. */
int64_t TYPED(small_cholesky)(REAL *a, int64_t n, int64_t ld);

/* x[0] becomes the norm of x with the other sign, the rest that of v of a reflection 1 - tau v v^T, v[0] = 1;
 * without overflow.  Returns tau. */
REAL TYPED(reflect)(REAL *x, int64_t n);

/* b becomes x with a x = b, or x a = b without left, b [rows, columns]. */
void TYPED(small_triangular)(const REAL *a, REAL *b, int64_t rows, int64_t columns, bool upper, bool left,
                             bool unit);

HIDDEN_END
#endif
