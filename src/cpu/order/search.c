/* search.c - places in ascending lists, by bisection. */
#include "cpu/cpu.h"

static int64_t place(const int64_t *sorter, int64_t i) { return sorter ? sorter[i] : i; }

/* NaN is not less than anything, and nothing that is no NaN is greater. */
static int64_t find_f64(const SearchArgs *a, const double *list, const int64_t *sorter, double v)
{
    int64_t low = 0, n = a->n;
    while (n > low) {
        const int64_t middle = low + (n - low) / 2;
        const double e = list[place(sorter, middle)];
        if (a->right ? !(e > v) : !(e >= v)) low = middle + 1;
        else n = middle;
    }
    return low;
}

static int64_t find_i64(const SearchArgs *a, const int64_t *list, const int64_t *sorter, int64_t v)
{
    int64_t low = 0, n = a->n;
    while (n > low) {
        const int64_t middle = low + (n - low) / 2, e = list[place(sorter, middle)];
        if (a->right ? e <= v : e < v) low = middle + 1;
        else n = middle;
    }
    return low;
}

static void find_span(void *ctx, int64_t from, int64_t to)
{
    const SearchArgs *a = ctx;
    for (int64_t i = from; i < to; i++) {
        const int64_t at = i / a->values * a->n;
        const int64_t *sorter = a->sorter ? a->sorter + at : NULL;
        a->place[i] = a->dtype == TENSOR_F64
                          ? find_f64(a, (const double *)a->sorted + at, sorter, ((const double *)a->x)[i])
                          : find_i64(a, (const int64_t *)a->sorted + at, sorter, ((const int64_t *)a->x)[i]);
    }
}

int cpu_search(SearchArgs *a)
{
    const int64_t count = a->lists * a->values;
    if (count) parallel_split(count, cpu_threads(count * 64), find_span, a);
    return 0;
}
