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

/* The place of v lies in [*low, *low + *left], *left > 0: the half of it.  By a mask, for compilers make
 * branches of conditions. */
FORCE_INLINE void halve(const void *list, const int64_t *sorter, Sought v, int64_t *low, int64_t *left,
                        Precedes *precedes)
{
    const int64_t half = *left / 2, i = *low + half,
                  after = -(int64_t)precedes(list, sorter ? sorter[i] : i, v);
    *low += after & (half + 1);
    *left = half + (after & ((*left & 1) - 1));
}

/* Of a list in no order the places are those that a bisection of each v[k] alone finds. */
FORCE_INLINE void find(const void *list, int64_t n, const int64_t *sorter, const Sought *v, int64_t *place,
                       Precedes *precedes)
{
    int64_t left[LANES];
    for (int k = 0; k < LANES; k++) place[k] = 0, left[k] = n;
    for (int64_t least = sorter ? 0 : n; least > 0; least = (least - 1) / 2) {
        UNROLL
        for (int k = 0; k < LANES; k++) halve(list, NULL, v[k], &place[k], &left[k], precedes);
    }
    for (int k = 0; k < LANES; k++)
        while (left[k] > 0) halve(list, sorter, v[k], &place[k], &left[k], precedes);
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
