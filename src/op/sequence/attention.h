/* attention.h - what multi-head attention takes from scaled dot product attention. */
#ifndef TG_ATTENTION_H
#define TG_ATTENTION_H

#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

/* attention_probabilities - softmax(scale q k^T + mask) by ops, on the graph; 0 where a row sees nothing.  A
 * bool mask is true where a position takes part; NULL: none. */
Tensor *attention_probabilities(Tensor *q, Tensor *k, Tensor *mask, double scale, bool causal);

HIDDEN_END
#endif
