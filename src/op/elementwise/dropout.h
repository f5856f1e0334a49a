/* dropout.h - the masks of dropout, which attention draws, too, and what other ops draw. */
#ifndef TG_DROPOUT_H
#define TG_DROPOUT_H

#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

/* dropout_mask - a bool tensor: true with probability 1 - p; p = 1 draws nothing.  Owned by the scope.
 * dropout_mask_like - of x's shape and device, drawn in the order of x's memory. */
Tensor *dropout_mask(OpCall *c, TensorShape shape, double p, const Place *place);
Tensor *dropout_mask_like(OpCall *c, const Tensor *x, double p);

/* draws_as_torch - whether ops on this device draw from PyTorch's sequence.
 * philox_uniform - else: numbers on [0, 1) of the counter-based generator, made there. */
bool draws_as_torch(const Place *place);
Tensor *philox_uniform(const char *op, TensorShape shape, int dtype, const Place *place);

/* wide_float - x in the dtype that is computed in: f32 for halves, on the graph. */
FORCE_INLINE Tensor *wide_float(Tensor *x)
{
    return x && dtype_is_half(x->dtype) ? tensor_to(x, TENSOR_F32) : x;
}

HIDDEN_END
#endif
