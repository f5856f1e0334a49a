/* linalg.h - linear algebra of the CPU: batches of dense row-major matrices of doubles.
 *
 * Systems, LU and Cholesky by plain loops (small_matrix.c) and by blocks (block_matrix.c), the others by
 * LAPACK, which sees every matrix transposed.  All return 0, or -1: *fault says what is wrong with a matrix,
 * or else the error is recorded under the name of op (no LAPACK, no memory).  They run in the calling thread,
 * the distances on all. */
#ifndef TG_LINALG_KERNELS_H
#define TG_LINALG_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* [..., m, n] as many matrices. */
typedef struct Matrices {
    int64_t batch, m, n;
} Matrices;

typedef enum MatrixFlaw {
    MATRIX_FINE,
    MATRIX_SINGULAR,   /* order: the pivot, from 1, that is 0 */
    MATRIX_INDEFINITE, /* order: that of the leading minor that is not positive */
    MATRIX_NOT_FINITE,
    MATRIX_NO_CONVERGENCE
} MatrixFlaw;
typedef struct MatrixFault {
    MatrixFlaw flaw;
    int64_t at, order; /* at: which matrix of the batch */
} MatrixFault;

/* lu.c: LU with row exchanges.
 *   linalg_solve    x [m, n] with a x = b, a [m, m]; info takes 0 or the pivot that is 0: x is NaN there, and
 *                   that is a fault, if fault is not NULL
 *   linalg_lu       a [m, n] = p l u, packed in lu; row i was exchanged with row pivots[i] - 1, and row i of
 *                   lu is row rows[i] of a; a zero on u's diagonal is a fault, if fault is not NULL
 *   linalg_rows     those rows from the pivots; -1: a pivot outside 1 .. m
 *   linalg_det      the determinant of a [m, m]; singular: as far as rounding can tell, so that the pivots
 *                   say no more about the cofactors
 *   linalg_slogdet  its sign, and the logarithm of its magnitude */
int linalg_solve(const char *op, Matrices s, const double *a, const double *b, double *x, int32_t *info,
                 MatrixFault *fault);
int linalg_lu(const char *op, Matrices s, const double *a, double *lu, int32_t *pivots, int64_t *rows,
              MatrixFault *fault);
int linalg_rows(Matrices s, const int32_t *pivots, int64_t *rows);
int linalg_det(const char *op, Matrices s, const double *a, double *det, uint8_t *singular);
int linalg_slogdet(const char *op, Matrices s, const double *a, double *sign, double *log);

/* triangular.c: x [m, n], b going in, x with a x = b coming out (left), or x a = b; only one triangle of a is
 * read, unit: nor its diagonal.  cholesky: l l^T = a [m, m], or upper l^T l = a; zeros beyond the triangle.
 */
int linalg_triangular(const char *op, Matrices s, const double *a, double *x, bool upper, bool left,
                      bool unit);
int linalg_cholesky(const char *op, Matrices s, const double *a, double *l, bool upper, MatrixFault *fault);

/* orthogonal.c: a [m, n] = q r, complete: q [m, m], else [m, min(m, n)]; a = u diag(s) vh, full: u [m, m] and
 * vh [n, n], else k = min(m, n) columns and rows; a [m, m] = v diag(w) v^T, of which one triangle is read.
 * Without u and vh, or v (NULL): the values alone, in half the time. */
int linalg_qr(const char *op, Matrices s, const double *a, bool complete, double *q, double *r);
int linalg_svd(const char *op, Matrices s, const double *a, bool full, double *u, double *sigma, double *vh,
               MatrixFault *fault);
int linalg_eigh(const char *op, Matrices s, const double *a, bool upper, double *w, double *v,
                MatrixFault *fault);

/* small_matrix.c: each of n norms becomes 2^-s, s so that norm 2^-s is at most 1/2 (1 where it is not
 * finite); the largest s. */
int linalg_halvings(double *norm, int64_t n);

#pragma GCC visibility pop
#endif
