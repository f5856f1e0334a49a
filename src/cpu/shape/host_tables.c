/* host_tables.c - see host_tables.h. */
#include <string.h>
#include "host_tables.h"

/* ---- triangles ------------------------------------------------------------------------------- */

void host_keep_triangles(char *to, const char *from, size_t size, int64_t matrices, int64_t rows,
                         int64_t columns, int64_t diagonal, bool lower)
{
    if (!lower && diagonal > INT64_MIN) diagonal--;
    diagonal = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
    for (int64_t line = 0; line < matrices * rows; line++) {
        int64_t left = line % rows + diagonal + 1; /* columns up to the diagonal */
        left = left < 0 ? 0 : left > columns ? columns : left;
        const size_t bytes = (size_t)left * size, rest = (size_t)(columns - left) * size;
        if (lower) memcpy(to, from, bytes), memset(to + bytes, 0, rest);
        else memset(to, 0, bytes), memcpy(to + bytes, from + bytes, rest);
        to += (size_t)columns * size, from += (size_t)columns * size;
    }
}

/* ---- padding --------------------------------------------------------------------------------- */

static int64_t source(HostPad mode, int64_t j, int64_t n)
{
    if (mode == HOST_PAD_REFLECT) return j < 0 ? -j : j >= n ? 2 * (n - 1) - j : j;
    return j < 0 ? 0 : j >= n ? n - 1 : j;
}

void host_pad(int64_t *to, HostPad mode, int64_t n, int64_t before, int64_t after)
{
    for (int64_t j = -before; j < n + after; j++) *to++ = source(mode, j, n);
}

/* ---- combinations ---------------------------------------------------------------------------- */

/* A product of fractions that are whole at every step. */
int64_t host_choices(int64_t n, int64_t r, bool again)
{
    int64_t count = 1, from = again ? n + r - 1 : n;
    if (r > from) return 0;
    for (int64_t i = 0; i < r; i++) {
        if (__builtin_mul_overflow(count, from - i, &count)) return -1;
        count /= i + 1;
    }
    return count;
}

/* The next choice in order, of those before the last. */
static void advance(int64_t *at, int64_t n, int64_t r, bool again)
{
    int64_t i = r - 1;
    while (at[i] == (again ? n - 1 : n - r + i)) i--;
    at[i]++;
    for (int64_t k = i + 1; k < r; k++) at[k] = again ? at[i] : at[k - 1] + 1;
}

void host_combinations(int64_t *to, int64_t count, int64_t n, int64_t r, bool again)
{
    for (int64_t k = 0; k < r && count; k++) to[k] = again ? 0 : k;
    for (int64_t i = 1; i < count; i++, to += r) {
        memcpy(to + r, to, (size_t)r * sizeof *to);
        advance(to + r, n, r, again);
    }
}

/* ---- others ---------------------------------------------------------------------------------- */

int64_t host_repeats(const int64_t *times, int64_t step, int64_t n, int64_t *bad_at)
{
    int64_t total = 0;
    for (int64_t k = 0; k < n; k++) {
        if (times[k * step] < 0) return *bad_at = k, -1;
        if (__builtin_add_overflow(total, times[k * step], &total)) return -2;
    }
    return total;
}

void host_repeat(int64_t *to, const int64_t *times, int64_t step, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < times[k * step]; i++) *to++ = k;
}

void host_identity(double *to, int64_t n)
{
    memset(to, 0, (size_t)(n * n) * sizeof *to);
    for (int64_t i = 0; i < n; i++) to[i * (n + 1)] = 1;
}

void host_count_diagonal(double *to, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++) to[i] = i % (n + 1) == 0 ? (double)(i / (n + 1) + 1) : 0;
}

void host_pairs(int64_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) *to++ = i * n + j;
}

void host_offsets(int64_t *to, int64_t first, int ndim, const int64_t *shape, const int64_t *each,
                  const int64_t *stride)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= shape[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t at = first, rest = i;
        for (int d = ndim - 1; d >= 0; rest /= shape[d], d--)
            at += rest % shape[d] / (each ? each[d] : 1) * stride[d];
        to[i] = at;
    }
}
