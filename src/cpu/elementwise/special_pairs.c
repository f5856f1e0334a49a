/* special_pairs.c - the slot special: zeta and the incomplete gamma functions, on as many threads as pay. */
#include "cpu/math/special.h"
#include "cpu/cpu.h"

static void span(void *ctx, int64_t from, int64_t to)
{
    const SpecialArgs *p = ctx;
    for (int64_t i = from; i < to; i++) p->y[i] = special_pair(p->kind, p->a[i], p->b[i]);
}

int cpu_special(SpecialArgs *a)
{
    parallel_split(a->count, cpu_threads(200 * a->count), span, a);
    return 0;
}
