/* dropout.h - the masks of dropout, alpha_dropout and attention. */
#ifndef TG_DROPOUT_H
#define TG_DROPOUT_H

#include "../core.h"

#pragma GCC visibility push(hidden)

/* dropout_mask - a bool tensor: true with probability 1 - p.  Owned by the scope. */
Tensor *dropout_mask(OpCall *c, TensorShape shape, double p, const Place *place);

#pragma GCC visibility pop
#endif
