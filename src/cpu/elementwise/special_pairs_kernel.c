/* special_pairs_kernel.c - the incomplete gamma functions of special_gamma.h by vectors, for results that are
 * rounded to f32: right to 2^-30, 3 times as fast.  Their plain form serves where an operand or the result is
 * out of the ordinary, and the base of x86-64, to stay small. */
#include "special_pairs.h"

#if defined __AVX2__ || !defined __x86_64__
#include "cpu/math/special_fast.h"

enum { LANES = 8 };
#define EACH_LANE INDEPENDENT for (int l = 0; l < LANES; l++)

typedef struct Block {
    double a[LANES], x[LANES], sum[LANES];
    int by_series[LANES]; /* P, else Q by its continued fraction */
} Block;

/* sum x^k / ((a + 1) ... (a + k)); of the other lanes 1. */
static void series(Block *b)
{
    double term[LANES], n[LANES], x[LANES];
    int more = 1;
    EACH_LANE term[l] = b->sum[l] = 1, n[l] = b->a[l] + 1, x[l] = b->by_series[l] ? b->x[l] : 0;
    while (more) {
        more = 0;
        EACH_LANE
        {
            term[l] *= x[l] / n[l];
            b->sum[l] += term[l];
            n[l] += 1;
            more |= term[l] > b->sum[l] * 0x1p-36;
        }
    }
}

/* Lentz's, as special_igammac_fraction, times a; of the other lanes as they are. */
static void fraction(Block *b)
{
    double a[LANES], at[LANES], c[LANES], d[LANES], h[LANES];
    int more = 0;
    EACH_LANE
    {
        const int here = !b->by_series[l];
        a[l] = here ? b->a[l] : 1; /* its first step is its last */
        at[l] = (here ? b->x[l] : 3) + 1 - a[l];
        c[l] = 1e300, h[l] = d[l] = 1 / at[l];
        more |= here;
    }
    for (double i = 1; more; i++) {
        more = 0;
        EACH_LANE
        {
            const double an = -i * (i - a[l]);
            at[l] += 2;
            d[l] = 1 / (an * d[l] + at[l]);
            c[l] = at[l] + an / c[l];
            const double by = d[l] * c[l];
            h[l] *= by;
            more |= __builtin_fabs(by - 1) > 0x1p-36;
        }
    }
    EACH_LANE b->sum[l] = b->by_series[l] ? b->sum[l] : h[l] * a[l];
}

static int is_ordinary(double a, double x) { return a >= 0x1p-10 && a <= 200 && x >= 0x1p-100 && x <= 700; }

static void block(int kind, const double *a, const double *x, double *y)
{
    Block b;
    double both[LANES];
    EACH_LANE
    {
        const int fine = is_ordinary(a[l], x[l]);
        b.a[l] = fine ? a[l] : 1, b.x[l] = fine ? x[l] : 1;
        b.by_series[l] = !(b.x[l] > 1 && b.x[l] > b.a[l] + 1);
    }
    series(&b);
    fraction(&b);
    EACH_LANE both[l] =
        b.sum[l] * vm_exp_f64(b.a[l] * vm_log_core_f64(b.x[l], 0, 0) - b.x[l] - fast_lgamma(b.a[l] + 1));
    for (int l = 0; l < LANES; l++) {
        const int other = b.by_series[l] != (kind == SPECIAL_IGAMMA);
        const double value = other ? 1 - both[l] : both[l];
        y[l] =
            is_ordinary(a[l], x[l]) && !(other && value < 0.0625) ? value : special_plain(kind, a[l], x[l]);
    }
}

void ISA_NAME(special_rounded)(const SpecialArgs *p, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i += LANES) {
        double a[LANES], x[LANES], y[LANES];
        const int64_t n = to - i < LANES ? to - i : LANES;
        for (int64_t l = 0; l < LANES; l++)
            a[l] = p->a[i + (l < n ? l : 0)], x[l] = p->b[i + (l < n ? l : 0)];
        block(p->kind, a, x, y);
        for (int64_t l = 0; l < n; l++) p->y[i + l] = y[l];
    }
}

#else

void ISA_NAME(special_rounded)(const SpecialArgs *p, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++) p->y[i] = special_plain(p->kind, p->a[i], p->b[i]);
}

#endif
