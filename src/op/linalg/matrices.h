/* matrices.h - functions shared by the ops of linear algebra.
 *
 * Each op is two: the public one takes any floating dtype, and is composed of casts and a core, which
 * computes in f32 or f64 and has the gradient.  f16 and bf16 compute in f64 and round once, forward and
 * backward.
 * Cores are not in the registry. */
#ifndef TG_LINALG_H
#define TG_LINALG_H

#include "cpu/linalg/linalg.h"
#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

Matrices matrices_of(const Tensor *x); /* [..., m, n] */
FORCE_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Shape rules of the public ops: -1 with the reason. */
int check_matrix(OpCall *c, int i); /* two dims or more, sizes that LAPACK can count */
int check_square(OpCall *c, int i);
int check_batches(OpCall *c, int i, int j); /* those of inputs i and j broadcast */

/* compose: casts the inputs up, runs core with the call's params, casts its results down. */
int linalg_compose(OpCall *c, const TensorOp *core);
Tensor *in_wide(OpCall *c, int i);            /* input i in f64, or as it is in f32 */
int set_rounded(OpCall *c, int k, Tensor *y); /* result k in the dtype of input 0 */

/* The arrays of a core: f32 where the operand is f32, f64 otherwise; NULL without memory. */
FORCE_INLINE const void *array_in(OpCall *c, int i)
{
    return op_input(c, i)->dtype == TENSOR_F32 ? (const void *)op_input_f32(c, i) : op_input_f64(c, i);
}
FORCE_INLINE void *array_out(OpCall *c, int k)
{
    return op_output(c, k)->dtype == TENSOR_F32 ? (void *)op_output_f32(c, k) : op_output_f64(c, k);
}

/* Declares result k as x's batches of m x n matrices in x's dtype; n = -1: of vectors of m. */
int set_matrices(OpCall *c, int k, const Tensor *x, int64_t m, int64_t n);

/* How b of a x = b is meant: a vector for each matrix, or matrices. */
bool is_vectors(const Tensor *a, const Tensor *b);
void expand_batches(Tensor **a, Tensor **b); /* *b [..., n, k]; NULL where that fails */

Tensor *identity_like(const Tensor *a); /* [n, n] of a's last size and dtype, where a lies */
Tensor *over_matrices(Tensor *x);       /* [...] as [..., 1, 1] */

/* matrix_fault - after a call of cpu/linalg failed: says what is wrong with which matrix of input 0, unless
 * the failure is recorded already; -1. */
int matrix_fault(OpCall *c, const MatrixFault *fault);

/* triangular.c, svd.c: the cores that others use; operands in f32 or f64, of equal batches. */
Tensor *core_triangular(Tensor *a, Tensor *b, bool upper, bool left, bool unit);
int core_svd(Tensor *a, bool full_matrices, Tensor *usv[3]);

HIDDEN_END
#endif
