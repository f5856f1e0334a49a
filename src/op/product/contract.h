/* contract.h - sums of products over named indices: what einsum and tensordot share. */
#ifndef TG_CONTRACT_H
#define TG_CONTRACT_H

#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

enum {
    INDEX_LETTERS = 52,
    INDICES = INDEX_LETTERS + TENSOR_MAX_DIMS
}; /* the second part: the dims of "..." */

/* A factor: dimension d of x is index at[d]; each index once. */
typedef struct Factor {
    Tensor *x;
    int n, at[TENSOR_MAX_DIMS];
} Factor;

bool factor_has(const Factor *f, int index);
void factor_drop(Factor *f, int d); /* forgets dimension d, which x has no more */

/* factor_sum - over the indices that are not wanted.  Sums of integers are i64; with same_dtype, as the
 * factor of a product must have, they wrap to x's dtype (bool: still i64). */
void factor_sum(Factor *f, const bool wanted[INDICES], bool same_dtype);

/* factor_product - *a becomes a b, summed over the indices that both have and that are not wanted; those of
 * one alone must have been summed.  The order of a's indices is then: of both, a's, b's.  A failure leaves
 * NULL in a->x, recorded. */
void factor_product(OpCall *c, Factor *a, const Factor *b, const bool wanted[INDICES]);

/* factor_order - x with its dimensions in this order of indices. */
Tensor *factor_order(const Factor *f, const int *order);

HIDDEN_END
#endif
