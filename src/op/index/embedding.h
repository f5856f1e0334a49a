/* embedding.h - what embedding and embedding_bag share. */
#ifndef TG_EMBEDDING_H
#define TG_EMBEDDING_H

#include "op/op.h"

#pragma GCC visibility push(hidden)

/* embedding_renorm - rows of weight that index names, and whose norm is larger, are scaled down to max_norm,
 * each once, in place and outside the graph; 0: no max_norm.  -1 and EINDEX, EVALUE. */
int embedding_renorm(Tensor *weight, Tensor *index, double max_norm, double norm_type);

#pragma GCC visibility pop
#endif
