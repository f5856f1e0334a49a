/* small_matrix.h - LU, Cholesky and triangular systems by plain loops over rows, for matrices too small for
 * LAPACK's blocks: there a 4x4 system takes 100 times as long, nearly all of it in calls. */
#ifndef TG_SMALL_MATRIX_H
#define TG_SMALL_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { SMALL_MATRIX = 64 }; /* rows, and below */

void transpose_into(double *to, const double *from, int64_t rows, int64_t columns); /* to [columns, rows] */

/* a [m, n] = p l u in place, l of unit diagonal; row k was exchanged with row pivots[k].  0, or 1 + the first
 * k whose pivot is 0. */
int64_t small_lu(double *a, int64_t m, int64_t n, int *pivots);
void small_lu_solve(const double *lu, int64_t n, const int *pivots, double *b,
                    int64_t columns); /* b [n, columns] in place */

/* The lower triangle of a, of rows ld apart, becomes l with l l^T = a.  0, or the order of the first
 * leading minor that is not positive. */
int64_t small_cholesky(double *a, int64_t n, int64_t ld);

/* b becomes x with a x = b, or x a = b without left, b [rows, columns]. */
void small_triangular(const double *a, double *b, int64_t rows, int64_t columns, bool upper, bool left,
                      bool unit);

#pragma GCC visibility pop
#endif
