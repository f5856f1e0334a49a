/* fold_into.c - see fold_into.h. */
#include "fold_into.h"

static double fold_f64(double a, double b, FoldInto how)
{
    switch (how) {
    case FOLD_PROD: return a * b;
    case FOLD_AMAX: return a != a || a > b ? a : b;
    case FOLD_AMIN: return a != a || a < b ? a : b;
    default: return a + b;
    }
}

static int64_t fold_i64(int64_t a, int64_t b, FoldInto how)
{
    switch (how) {
    case FOLD_PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
    case FOLD_AMAX: return a > b ? a : b;
    case FOLD_AMIN: return a < b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static int64_t divide_down(int64_t a, int64_t n) { return a / n - (a % n != 0 && a < 0); }

void fold_into_f64(FoldInto how, bool include_self, double *y, int64_t n, const int64_t *at,
                   const double *src, int64_t m, int64_t *count)
{
    for (int64_t i = 0; i < n; i++) count[i] = include_self;
    for (int64_t k = 0; k < m; k++) {
        const bool first = count[at[k]]++ == 0;
        y[at[k]] = first ? src[k] : fold_f64(y[at[k]], src[k], how);
    }
    for (int64_t i = 0; how == FOLD_MEAN && i < n; i++)
        if (count[i] > 1) y[i] /= (double)count[i];
}

void fold_into_i64(FoldInto how, bool include_self, int64_t *y, int64_t n, const int64_t *at,
                   const int64_t *src, int64_t m, int64_t *count)
{
    for (int64_t i = 0; i < n; i++) count[i] = include_self;
    for (int64_t k = 0; k < m; k++) {
        const bool first = count[at[k]]++ == 0;
        y[at[k]] = first ? src[k] : fold_i64(y[at[k]], src[k], how);
    }
    for (int64_t i = 0; how == FOLD_MEAN && i < n; i++)
        if (count[i] > 1) y[i] = divide_down(y[i], count[i]);
}
