/* embedding.h - functions shared by embedding and embedding_bag. */
#ifndef TG_EMBEDDING_H
#define TG_EMBEDDING_H

#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

int embedding_check_norm(OpCall *c, double max_norm); /* EVALUE: negative or NaN */

/* embedding_held - rows, those with a larger norm scaled down to max_norm; outside the graph. */
Tensor *embedding_held(Tensor *rows, double max_norm, double norm_type);

/* embedding_renorm - y, the result of an op that has succeeded, after the rows of weight that index names
 * were held to max_norm in place (0: left alone); NULL where that failed, and then nothing was written. */
Tensor *embedding_renorm(Tensor *y, Tensor *weight, Tensor *index, double max_norm, double norm_type);

/* embedding_bag_there - embedding_bag of checked operands on another device than the CPU. */
Tensor *embedding_bag_there(OpCall *c);

HIDDEN_END
#endif
