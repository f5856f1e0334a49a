/* host_lists.c - counting, positions, groups of equal slices (host_lists.h). */
#include <math.h>
#include "host_lists.h"
#include "cpu/elementwise/cast_kernel.h"
#include "cpu/integer_kernel.h"
#include "cpu/vectors.h"
#include "device/device.h"
#include "device/host.h"

enum { PIECE = 1024 };

/* ---- masks ----------------------------------------------------------------------------------- */

int64_t count_true(const uint8_t *mask, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += mask[i] != 0;
    return count;
}

void positions_true(const uint8_t *mask, int64_t n, int64_t *to)
{
    int64_t left = count_true(mask, n);
    for (int64_t i = 0; left > 0; i++) { /* no branch, which random masks would mislead */
        *to = i;
        const int64_t step = mask[i] != 0;
        to += step, left -= step;
    }
}

void indices_true(const uint8_t *mask, int ndim, const int64_t *shape, int64_t most, int64_t fill,
                  int64_t *to)
{
    int64_t n = 1, found = 0;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    for (int64_t i = 0; ndim == 1 && i < n && found < most; i++) to[found] = i, found += mask[i] != 0;
    int64_t index[TENSOR_MAX_DIMS] = { 0 };
    for (int64_t i = 0; ndim != 1 && i < n && found < most; i++) {
        int64_t *at = to + found * ndim;
        for (int d = 0; d < ndim; d++) at[d] = index[d];
        found += mask[i] != 0;
        for (int d = ndim - 1; d >= 0 && ++index[d] == shape[d]; d--) index[d] = 0;
    }
    for (int64_t i = found * ndim; i < most * ndim; i++) to[i] = fill;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* A piece of x as integers of 64 bits, of weights as double: where they lie, or in the buffer. */
static const void *widened(int from, int to, const void *x, int64_t at, int64_t n, void *buffer)
{
    const char *start = (const char *)x + at * (int64_t)dtype_size(from);
    if (from == to) return start;
    cpu_cast_line(from, to)(buffer, start, n, 8, (int64_t)dtype_size(from));
    return buffer;
}

int64_t bincount_size(int dtype, const void *x, int64_t n, int64_t least, int64_t *bad_at, int64_t *bad_value)
{
    int64_t most = least - 1, buffer[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t count = n - i < PIECE ? n - i : PIECE,
                      *v = widened(dtype, TENSOR_I64, x, i, count, buffer);
        most = ISA_PICK(integer_fold)(REDUCE_MAX, most, v, count);
        if (ISA_PICK(integer_fold)(REDUCE_MIN, 0, v, count) == 0) continue;
        for (*bad_at = i; *v >= 0; v++) ++*bad_at;
        return *bad_value = *v, -1;
    }
    return most == INT64_MAX ? most : most + 1;
}

void bincount(int dtype, const void *x, int64_t n, int64_t *counts)
{
    int64_t buffer[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t count = n - i < PIECE ? n - i : PIECE,
                      *v = widened(dtype, TENSOR_I64, x, i, count, buffer);
        for (int64_t k = 0; k < count; k++) counts[v[k]]++;
    }
}

void bincount_weighted(int dtype, const void *x, int weight_dtype, const void *weight, int64_t n,
                       int64_t bins, double *sums, double *odd)
{
    int64_t buffer[PIECE];
    double weights[PIECE];
    const int64_t set = odd == sums ? 0 : bins;
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t count = n - i < PIECE ? n - i : PIECE,
                      *v = widened(dtype, TENSOR_I64, x, i, count, buffer);
        const double *w = widened(weight_dtype, TENSOR_F64, weight, i, count, weights);
        int64_t k = 0;
        for (; k + 4 <= count; k += 4) {
            sums[v[k]] += w[k];
            odd[v[k + 1]] += w[k + 1];
            odd[v[k + 2] + set] += w[k + 2];
            odd[v[k + 3] + 2 * set] += w[k + 3];
        }
        for (; k < count; k++) sums[v[k]] += w[k];
    }
    for (int64_t k = 0; k < set; k++) sums[k] += (odd[k] + odd[k + set]) + odd[k + 2 * set];
}

int64_t finite_range(const double *x, int64_t n, double *min, double *max)
{
    *min = *max = x[0];
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) return i;
        *min = x[i] < *min ? x[i] : *min, *max = x[i] > *max ? x[i] : *max;
    }
    return -1;
}

void histogram(const double *x, int64_t n, int64_t bins, double min, double max, double *counts)
{
    for (int64_t k = 0; k < bins; k++) counts[k] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(x[i] >= min && x[i] <= max)) continue;
        const int64_t k = (int64_t)((x[i] - min) * (double)bins / (max - min));
        counts[k < bins ? k : bins - 1]++;
    }
}

/* ---- slices ---------------------------------------------------------------------------------- */

static bool same(const Slices *s, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < s->width; k++)
        if (s->f ? s->f[a * s->width + k] != s->f[b * s->width + k]
                 : s->i[a * s->width + k] != s->i[b * s->width + k])
            return false;
    return true;
}

static int order_f64(double a, double b) { return a < b ? -1 : a > b ? 1 : (a != a) - (b != b); }

static bool before(const Slices *s, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < s->width; k++) {
        int64_t i = a * s->width + k, j = b * s->width + k;
        int order = s->f ? order_f64(s->f[i], s->f[j]) : (s->i[i] > s->i[j]) - (s->i[i] < s->i[j]);
        if (order) return order < 0;
    }
    return false;
}

void count_up(int64_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = i;
}

/* Runs of 1, 2, 4, ... merged from one list into the other. */
int64_t *sort_slices(const Slices *s, int64_t *from, int64_t *to)
{
    for (int64_t run = 1; run < s->n; run *= 2) {
        for (int64_t start = 0; start < s->n; start += 2 * run) {
            int64_t middle = start + run < s->n ? start + run : s->n,
                    end = middle + run < s->n ? middle + run : s->n;
            for (int64_t i = start, j = middle, k = start; k < end; k++) {
                bool second = i == middle || (j < end && before(s, from[j], from[i]));
                to[k] = second ? from[j++] : from[i++];
            }
        }
        int64_t *t = from;
        from = to, to = t;
    }
    return from;
}

/* Elements in their order without a branch, which random values would mislead: 3 times as fast as slices. */
FORCE_INLINE int64_t group_elements(const Slices *s, bool floats, int64_t *first, int64_t *inverse)
{
    const double *f = s->f;
    const int64_t *x = s->i, n = s->n;
    int64_t groups = 0;
    for (int64_t i = 0; i < n; i++) {
        first[groups] = i;
        groups += i == 0 || (floats ? f[i] != f[i - 1] : x[i] != x[i - 1]);
        inverse[i] = groups - 1;
    }
    return groups;
}

int64_t group_slices(const Slices *s, const int64_t *order, int64_t *first, int64_t *count, int64_t *inverse)
{
    int64_t groups = 0;
    if (!order && s->width == 1) {
        groups = s->f ? group_elements(s, true, first, inverse) : group_elements(s, false, first, inverse);
        for (int64_t k = 0; k < groups; k++) count[k] = (k + 1 < groups ? first[k + 1] : s->n) - first[k];
        return groups;
    }
    for (int64_t i = 0, was = 0, at; i < s->n; i++, was = at) {
        at = order ? order[i] : i;
        const bool begins = i == 0 || !same(s, was, at);
        if (begins) first[groups] = at, count[groups++] = 0;
        inverse[at] = groups - 1;
        count[groups - 1]++;
    }
    return groups;
}
