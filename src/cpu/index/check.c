/* check.c - the slots check_range and index_join. */
#include <math.h>
#include "cpu/cpu.h"
#include "cpu/integer_kernel.h"

static bool any_i64(const int64_t *x, int64_t n, int64_t low, int64_t high)
{
    enum { PIECE = 2048 };
    for (int64_t i = 0, count; i < n; i += count) {
        count = n - i < PIECE ? n - i : PIECE;
        if (ISA_PICK(integer_fold)(REDUCE_MIN, low, x + i, count) < low ||
            ISA_PICK(integer_fold)(REDUCE_MAX, high, x + i, count) > high)
            return true;
    }
    return false;
}

static int check_i64(CheckArgs *a)
{
    const int64_t *x = a->x;
    if (!any_i64(x, a->count, a->low, a->high)) return 0;
    for (a->bad_at = 0; x[a->bad_at] >= a->low && x[a->bad_at] <= a->high;) a->bad_at++;
    a->bad_value = x[a->bad_at];
    return cpu_fail("%s %lld is out of range", a->what, (long long)a->bad_value);
}

static int check_f64(CheckArgs *a)
{
    const double *x = a->x, low = (double)a->low,
                 high = a->high == INT64_MAX ? (double)INFINITY : (double)a->high;
    for (int64_t i = 0; i < a->count; i++) {
        if ((x[i] >= low && x[i] <= high) || (a->nan && x[i] != x[i])) continue;
        a->bad_at = i, a->bad_number = x[i];
        return cpu_fail("%s %g is out of range", a->what, x[i]);
    }
    return 0;
}

int cpu_check_range(CheckArgs *a) { return a->dtype == TENSOR_F64 ? check_f64(a) : check_i64(a); }

int cpu_index_join(IndexJoinArgs *a)
{
    const int64_t n = a->n;
    for (int64_t i = 0; i < a->count; i++) {
        const int64_t index = a->index[i] + (a->index[i] < 0 ? n : 0);
        a->at[i] = (a->first ? 0 : a->at[i] * n) + ((uint64_t)index < (uint64_t)n ? index : 0);
    }
    return 0;
}
