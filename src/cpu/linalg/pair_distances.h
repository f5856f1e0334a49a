/* pair_distances.h - distances within one set of vectors, each pair once. */
#ifndef TG_PAIR_DISTANCES_H
#define TG_PAIR_DISTANCES_H

#include "device/kernels.h"
#include "hidden.h"

HIDDEN_BEGIN

/* host_pdist - out [m (m - 1) / 2] of a [m, n], in double: |a_i - a_j|_p, i < j, row by row; others is m.
 * host_pdist_grad - out [m, n], from g and, in b, the distances: the gradient of a. */
void host_pdist(const PairsArgs *s);
void host_pdist_grad(const PairsArgs *s);

HIDDEN_END
#endif
