/* slots.h - the gradients of a sweep's leaves, on their way into .grad (commit.c). */
#ifndef TG_SLOTS_H
#define TG_SLOTS_H

#include "tensor/core.h"

typedef struct Slot { /* the gradient of a leaf, or what is wanted of tensor_gradients */
    Tensor *leaf;     /* held */
    Tensor *grad;
    bool alive; /* referenced when the sweep began to end: lent until the sweep is over */
    bool added; /* to .grad, with others */
} Slot;

/* Is it dense, and its memory no other tensor's and not the caller's?  ours_alone: and nothing else refers to
 * it. */
static inline bool memory_alone(const Tensor *g)
{
    return (g->flags & FLAG_CONTIGUOUS) && !g->storage->blob &&
           atomic_load_explicit(&g->storage->refs, memory_order_acquire) == 1;
}
static inline bool ours_alone(const Tensor *g) { return references(g) == 1 && memory_alone(g); }

/* Moves the gradients of living leaves into .grad, or adds them to it; replace: .grad is in them already.
 * -1: there is no memory for the call of a device, and none was moved; or a device failed. */
int commit_slots(const char *function, Slot *slot, int64_t count, bool replace);

#endif
