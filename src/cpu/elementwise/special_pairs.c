/* special_pairs.c - the loops of zeta and the incomplete gamma functions (special_pairs.h). */
#include "special_pairs.h"
#include "special.h"
#include "cpu/cpu.h"

typedef struct Pairs {
    SpecialPair f;
    const double *a, *b;
    double *y;
} Pairs;

static void span(void *ctx, int64_t from, int64_t to)
{
    const Pairs *p = ctx;
    for (int64_t i = from; i < to; i++)
        p->y[i] = p->f == SPECIAL_ZETA     ? special_hurwitz(p->a[i], p->b[i])
                  : p->f == SPECIAL_IGAMMA ? special_igamma(p->a[i], p->b[i])
                                           : special_igammac(p->a[i], p->b[i]);
}

void special_pairs(SpecialPair f, int64_t n, const double *a, const double *b, double *y)
{
    Pairs p = { f, a, b, y };
    parallel_split(n, cpu_threads(200 * n), span, &p);
}
