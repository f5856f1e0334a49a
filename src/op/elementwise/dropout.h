/* dropout.h - the masks of dropout, alpha_dropout and attention. */
#ifndef TG_DROPOUT_H
#define TG_DROPOUT_H

#include "op/op.h"

#pragma GCC visibility push(hidden)

/* dropout_mask - a bool tensor: true with probability 1 - p; p = 1 draws nothing.  Owned by the scope.
 * dropout_mask_like - of x's shape and device, drawn in the order of x's memory. */
Tensor *dropout_mask(OpCall *c, TensorShape shape, double p, const Place *place);
Tensor *dropout_mask_like(OpCall *c, const Tensor *x, double p);

/* What the ops of TensorDropoutArgs share: p is a probability; besides, a batch of channels where something
 * is dropped; a mask for each element, or for each channel. */
int dropout_check(OpCall *c);
int dropout_check_channels(OpCall *c);
Tensor *dropout_mask_of_channels(OpCall *c, int leading);
FORCE_INLINE bool drops(const TensorDropoutArgs *a, const Tensor *x)
{
    return a->training && a->p != 0 && x->numel;
}
bool drops_nothing(const TensorDropoutArgs *a); /* of x: the result is x itself, and no number is drawn */
extern const OpField dropout_fields[];

/* dropout_apply, dropout_apply_ - the op, or x itself where nothing is dropped. */
Tensor *dropout_apply(const TensorOp *op, const TensorDropoutArgs *a, const void *site);
Tensor *dropout_apply_(const TensorOp *op, const TensorDropoutArgs *a, const void *site);

/* wide_float - x in the dtype that is computed in: f32 for halves, on the graph. */
FORCE_INLINE Tensor *wide_float(Tensor *x)
{
    return x && dtype_is_half(x->dtype) ? tensor_to(x, TENSOR_F32) : x;
}

#pragma GCC visibility pop
#endif
