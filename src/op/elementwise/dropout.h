/* dropout.h - the masks of dropout, alpha_dropout and attention. */
#ifndef TG_DROPOUT_H
#define TG_DROPOUT_H

#include "op/op.h"

#pragma GCC visibility push(hidden)

/* dropout_mask - a bool tensor: true with probability 1 - p.  Owned by the scope. */
Tensor *dropout_mask(OpCall *c, TensorShape shape, double p, const Place *place);

/* drops_nothing - is the result x itself?  No number is drawn then. */
bool drops_nothing(const Tensor *x, double p, bool training);

/* wide_float - x in the dtype that is computed in: f32 for halves, on the graph. */
FORCE_INLINE Tensor *wide_float(Tensor *x)
{
    return x && dtype_is_half(x->dtype) ? tensor_to(x, TENSOR_F32) : x;
}

#pragma GCC visibility pop
#endif
