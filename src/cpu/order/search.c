/* search.c - places in ascending lists, by bisection.
 *
 * LANES values of a list are looked for together: all halve it in the same steps and without branches, so
 * that none waits for another's loads (two to four times as fast as one value after the other). */
#include "cpu/cpu.h"
#include "cpu/vectors.h"

enum { LANES = 4 };

typedef union Sought {
    double f64;
    int64_t i64;
} Sought;

/* Whether element i of the list stands before v.  NaN is not less than anything, and nothing that is no NaN
 * is greater. */
typedef bool Precedes(const void *list, int64_t i, Sought v);

FORCE_INLINE bool below_f64(const void *list, int64_t i, Sought v)
{
    return !(((const double *)list)[i] >= v.f64);
}
FORCE_INLINE bool up_to_f64(const void *list, int64_t i, Sought v)
{
    return !(((const double *)list)[i] > v.f64);
}
FORCE_INLINE bool below_i64(const void *list, int64_t i, Sought v)
{
    return ((const int64_t *)list)[i] < v.i64;
}
FORCE_INLINE bool up_to_i64(const void *list, int64_t i, Sought v)
{
    return ((const int64_t *)list)[i] <= v.i64;
}

/* The place of v[k] lies in [low[k], low[k] + left[k]]; of a list in no order it is the one that a bisection
 * of v[k] alone finds. */
FORCE_INLINE void find(const void *list, int64_t n, const int64_t *sorter, const Sought *v, int64_t *place,
                       Precedes *precedes)
{
    int64_t low[LANES] = { 0 }, left[LANES];
    for (int k = 0; k < LANES; k++) left[k] = n;
    for (int64_t most = n; most > 0; most /= 2) UNROLL
    for (int k = 0; k < LANES; k++) {
        const int64_t half = left[k] / 2, middle = low[k] + half, i = middle < n ? middle : n - 1;
        const bool after = precedes(list, sorter ? sorter[i] : i, v[k]) & (left[k] > 0);
        low[k] += after ? half + 1 : 0;
        left[k] = after ? left[k] - half - 1 : half;
    }
    memcpy(place, low, sizeof low);
}

FORCE_INLINE void find_all(const SearchArgs *a, int64_t from, int64_t to, Precedes *precedes)
{
    for (int64_t i = from, step; i < to; i += step) {
        const int64_t at = i / a->values * a->n, rest = a->values - i % a->values;
        const int64_t *sorter = a->sorter ? a->sorter + at : NULL;
        const char *list = (const char *)a->sorted + at * 8, *x = (const char *)a->x + i * 8;
        int64_t place[LANES];
        Sought v[LANES];
        step = rest < to - i ? rest : to - i;
        step = step < LANES ? step : LANES;
        for (int64_t k = 0; k < LANES; k++) memcpy(v + k, x + (k < step ? k : 0) * 8, 8);
        find(list, a->n, sorter, v, place, precedes);
        memcpy(a->place + i, place, (size_t)step * sizeof *place);
    }
}

static void find_span(void *ctx, int64_t from, int64_t to)
{
    const SearchArgs *a = ctx;
    const bool real = a->dtype == TENSOR_F64;
    if (real && a->right) find_all(a, from, to, up_to_f64);
    else if (real) find_all(a, from, to, below_f64);
    else if (a->right) find_all(a, from, to, up_to_i64);
    else find_all(a, from, to, below_i64);
}

int cpu_search(SearchArgs *a)
{
    const int64_t count = a->lists * a->values;
    if (count) parallel_split(count, cpu_threads(count * 64), find_span, a);
    return 0;
}
