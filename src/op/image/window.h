/* window.h - sizes of sliding windows, as conv2d and the pools have them: a list of none (the default), one
 * (both directions) or two (height, width). */
#ifndef TG_WINDOW_H
#define TG_WINDOW_H

#include "op/op.h"

typedef struct Pair {
    int64_t h, w;
} Pair;

FORCE_INLINE Pair pair_of(const OpDims *d, Pair otherwise)
{
    return d->n == 0 ? otherwise : (Pair){ d->at[0], d->at[d->n > 1] };
}

/* dims_pair - the list of an option: the pair when it is not all 0, else the one number. */
FORCE_INLINE OpDims dims_pair(int64_t both, const int64_t pair[2])
{
    return pair[0] || pair[1] ? (OpDims){ 2, { pair[0], pair[1] } } : (OpDims){ 1, { both } };
}

/* Guards the arithmetic of sizes against overflow; a million is far beyond any use. */
enum { WINDOW_LIMIT = 1 << 20 };
FORCE_INLINE bool within(Pair p, int64_t least)
{
    return p.h >= least && p.w >= least && p.h <= WINDOW_LIMIT && p.w <= WINDOW_LIMIT;
}

/* x as [batch, channels, h, w], where rank 3 has no batch. */
FORCE_INLINE int64_t batch_of(TensorShape x) { return x.ndim == 4 ? x.dim[0] : 1; }
FORCE_INLINE const int64_t *image_of(TensorShape x) { return x.dim + x.ndim - 3; }

#endif
