/* special_pairs.c - the slot special: zeta and the incomplete gamma functions, on as many threads as pay. */
#include "special_pairs.h"
#include "cpu/cpu.h"
#include "cpu/math/special.h"

double special_plain(int kind, double a, double b) { return special_pair(kind, a, b); }

static void span(void *ctx, int64_t from, int64_t to)
{
    const SpecialArgs *p = ctx;
    if (p->rounded && p->kind != SPECIAL_ZETA) {
        ISA_PICK_AVX2(special_rounded)(p, from, to);
        return;
    }
    for (int64_t i = from; i < to; i++) p->y[i] = special_plain(p->kind, p->a[i], p->b[i]);
}

int cpu_special(SpecialArgs *a)
{
    parallel_split(a->count, cpu_threads(200 * a->count), span, a);
    return 0;
}
