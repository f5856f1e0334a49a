/* wanted.h - the inputs of tensor_gradients, sorted, so that a sweep finds an edge among them. */
#ifndef TG_WANTED_H
#define TG_WANTED_H

#include "hidden.h"
#include "tape.h"

HIDDEN_BEGIN

typedef struct Wanted {
    const void *at;  /* a leaf, or the entry of a result */
    int slot, index; /* of the entry's results; among the inputs */
} Wanted;

/* wanted_sort - the inputs in order, one of at = NULL behind them; for tg_free of wanted_bytes.  NULL: no
 * memory. */
Wanted *wanted_sort(Tensor *const *inputs, int n);
static inline size_t wanted_bytes(int n) { return ((size_t)n + 1) * sizeof(Wanted); }

/* wanted_find - the first input there, behind it the others, for one may be named twice; NULL: none.
 * slot -1: of any slot. */
const Wanted *wanted_find(const Wanted *sorted, int n, const void *at, int slot);

HIDDEN_END
#endif
