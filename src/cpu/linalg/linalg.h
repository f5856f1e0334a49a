/* linalg.h - linear algebra of the CPU: batches of dense row-major matrices of f64 or f32.
 *
 * Each function is there for both: LINALG(dtype, solve, ...) calls linalg_solve_f32 or linalg_solve_f64.
 *
 * Systems, LU and Cholesky by plain loops (small_matrix.c) and by blocks (block_matrix.c), the others by
 * LAPACK, which sees every matrix transposed.  All return 0, or -1: *fault says what is wrong with a matrix,
 * or else the error is recorded under the name of op (no LAPACK, no memory).  They run in the calling thread,
 * the distances on all. */
#ifndef TG_LINALG_KERNELS_H
#define TG_LINALG_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include "hidden.h"

HIDDEN_BEGIN

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
 *   linalg_solve    x [m, n] with a x = b, a [m, m] (b NULL: the identity); info takes 0 or the pivot that
 *                   is 0: x is NaN there, and that is a fault, if fault is not NULL
 *   linalg_lu       a [m, n] = p l u, packed in lu; row i was exchanged with row pivots[i] - 1, and row i of
 *                   lu is row rows[i] of a; a zero on u's diagonal is a fault, if fault is not NULL
 *   linalg_rows     those rows from the pivots; -1: a pivot outside 1 .. m
 *   linalg_det      the determinant of a [m, m]; singular: as far as rounding can tell, so that the pivots
 *                   say no more about the cofactors
 *   linalg_slogdet  its sign, and the logarithm of its magnitude */

/* triangular.c: x [m, n], b going in, x with a x = b coming out (left), or x a = b; only one triangle of a is
 * read, unit: nor its diagonal.  cholesky: l l^T = a [m, m], or upper l^T l = a; zeros beyond the triangle.
 */

/* orthogonal.c: a [m, n] = q r, complete: q [m, m], else [m, min(m, n)]; a = u diag(s) vh, full: u [m, m] and
 * vh [n, n], else k = min(m, n) columns and rows; a [m, m] = v diag(w) v^T, of which one triangle is read.
 * Without u and vh, or v (NULL): the values alone, in half the time.  pinv: y [n, m] = a^+ by QR, in a
 * quarter of svd's time, and found, of those matrices whose singular values are all certain to be above
 * max(atol, rtol s_0). */

/* small_matrix.c: each of n norms becomes 2^-s, s so that norm 2^-s is at most bound (1 where it is not
 * finite); the largest s. */

#define LINALG_FUNCTIONS(REAL, T)                                                                            \
    int linalg_solve_##T(const char *op, Matrices s, const REAL *a, const REAL *b, REAL *x, int32_t *info,   \
                         MatrixFault *fault);                                                                \
    int linalg_lu_##T(const char *op, Matrices s, const REAL *a, REAL *lu, int32_t *pivots, int64_t *rows,   \
                      MatrixFault *fault);                                                                   \
    int linalg_det_##T(const char *op, Matrices s, const REAL *a, REAL *det, uint8_t *singular);             \
    int linalg_slogdet_##T(const char *op, Matrices s, const REAL *a, REAL *sign, REAL *log);                \
    int linalg_triangular_##T(const char *op, Matrices s, const REAL *a, REAL *x, bool upper, bool left,     \
                              bool unit);                                                                    \
    int linalg_cholesky_##T(const char *op, Matrices s, const REAL *a, REAL *l, bool upper,                  \
                            MatrixFault *fault);                                                             \
    int linalg_qr_##T(const char *op, Matrices s, const REAL *a, bool complete, REAL *q, REAL *r);           \
    int linalg_svd_##T(const char *op, Matrices s, const REAL *a, bool full, REAL *u, REAL *sigma, REAL *vh, \
                       MatrixFault *fault);                                                                  \
    int linalg_eigh_##T(const char *op, Matrices s, const REAL *a, bool upper, REAL *w, REAL *v,             \
                        MatrixFault *fault);                                                                 \
    int linalg_pinv_##T(const char *op, Matrices s, const REAL *a, double atol, double rtol, REAL *y,        \
                        uint8_t *found);                                                                     \
    int linalg_halvings_##T(REAL *norm, int64_t n, double bound);
LINALG_FUNCTIONS(float, f32)
LINALG_FUNCTIONS(double, f64)
#define LINALG(dtype, name, ...) \
    ((dtype) == TENSOR_F32 ? linalg_##name##_f32(__VA_ARGS__) : linalg_##name##_f64(__VA_ARGS__))
int linalg_rows(Matrices s, const int32_t *pivots, int64_t *rows);

HIDDEN_END
#endif
