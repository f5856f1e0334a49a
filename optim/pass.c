/* pass.c - one parallel pass over the elements of many tensors. */
#include "optim.h"

/* The tensor that element `at` of all lies in. */
static int tensor_at(const OptimPass *p, int64_t at)
{
    int low = 0, high = p->n;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (p->first[middle] <= at) low = middle;
        else high = middle;
    }
    return low;
}

static void run_span(void *ctx, int64_t from, int64_t to)
{
    const OptimPass *p = ctx;
    OptimSpan span = { .last = -1 };
    for (int i = tensor_at(p, from); from < to; i++) {
        const int64_t end = p->first[i + 1], stop = end < to ? end : to;
        if (stop > from) p->piece(p, &span, i, from - p->first[i], stop - from);
        from = stop;
    }
}

void optim_pass(const OptimPass *p, int64_t work)
{
    if (p->n > 0) tensor_parallel_for(p->first[p->n], work, run_span, (void *)(uintptr_t)p);
}
