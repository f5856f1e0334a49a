/* wanted.c - the inputs of tensor_gradients, sorted by address and slot. */
#include "wanted.h"
#include <stdlib.h>
#include "tensor/core.h"

static int order(const void *a, const void *b)
{
    const Wanted *x = a, *y = b;
    if (x->at != y->at) return (uintptr_t)x->at < (uintptr_t)y->at ? -1 : 1;
    return x->slot != y->slot ? x->slot - y->slot : x->index - y->index;
}

Wanted *wanted_sort(Tensor *const *inputs, int n)
{
    Wanted *sorted = tg_alloc(wanted_bytes(n));
    if (!sorted) return NULL;
    for (int i = 0; i < n; i++) {
        const Tensor *x = inputs[i];
        sorted[i] = x->entry ? (Wanted){ x->entry, x->slot, i } : (Wanted){ x, 0, i };
    }
    qsort(sorted, (size_t)n, sizeof *sorted, order);
    sorted[n] = (Wanted){ .at = NULL };
    return sorted;
}

const Wanted *wanted_find(const Wanted *sorted, int n, const void *at, int slot)
{
    int first = 0, last = n;
    while (first < last) {
        const int middle = first + (last - first) / 2;
        if (order(&sorted[middle], &(Wanted){ at, slot, -1 }) < 0) first = middle + 1;
        else last = middle;
    }
    return sorted[first].at == at && (slot < 0 || sorted[first].slot == slot) ? &sorted[first] : NULL;
}
