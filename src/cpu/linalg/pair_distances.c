/* pair_distances.c - p-norms of the differences of all pairs of vectors, and their gradient: the
 * slots pairs and pairs_grad.
 *
 * In double throughout, without the squares |a|^2 - 2 a b + |b|^2, which lose the digits of near neighbours.
 */
#include <math.h>
#include "cpu/cpu.h"
#include "cpu/reduce/reduce_kernel.h"
#include "pair_distances.h"

enum { CHUNK = 256 }; /* powers at a time */

/* ---- one pair -------------------------------------------------------------------------------- */

/* The sum of |a - b|^p where it is rounded (pow takes 20 ns an element). */
static double short_powers(const double *a, const double *b, int64_t n, double p)
{
    double d[CHUNK], sum = 0;
    for (int64_t from = 0; from < n; from += CHUNK) {
        const int64_t here = n - from < CHUNK ? n - from : CHUNK;
        for (int64_t i = 0; i < here; i++) d[i] = a[from + i] - b[from + i];
        ISA_PICK(short_pow)(d, d, here, p);
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < here; i++) sum += d[i];
    }
    return sum;
}

static double distance(const PairsArgs *s, const double *a, const double *b)
{
    const int64_t n = s->n;
    const double p = s->p;
    double sum = 0;
    if (p == 2) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
        return sqrt(sum);
    }
    if (p == 1) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++) sum += fabs(a[i] - b[i]);
        return sum;
    }
    if (s->rounded && p != 0 && !isinf(p)) return pow(short_powers(a, b, n, p), 1 / p);
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(a[i] - b[i]);
        if (p == 0) sum += d != 0;
        else if (isinf(p)) sum = d > sum || d != d ? d : sum;
        else sum += pow(d, p);
    }
    return p == 0 || isinf(p) ? sum : pow(sum, 1 / p);
}

static double sign(double d) { return (d > 0 ? 1.0 : 0.0) - (d < 0 ? 1.0 : 0.0); }

static void add_short_powers(double *da, const double *a, const double *b, int64_t n, double p, double g,
                             double y)
{
    double d[CHUNK], power[CHUNK];
    for (int64_t from = 0; from < n; from += CHUNK) {
        const int64_t here = n - from < CHUNK ? n - from : CHUNK;
        for (int64_t i = 0; i < here; i++) d[i] = (a[from + i] - b[from + i]) / y;
        ISA_PICK(short_pow)(power, d, here, p - 1);
        for (int64_t i = 0; i < here; i++)
            da[from + i] += d[i] == 0 ? 0 : d[i] < 0 ? -g * power[i] : g * power[i];
    }
}

/* Are all differences finite?  Then the derivatives are, too, for p of 1 and more, and 0 times them is 0. */
static bool all_finite(const double *a, const double *b, int64_t n)
{
    double none = 0;
#pragma omp simd reduction(+ : none)
    for (int64_t i = 0; i < n; i++) none += (a[i] - b[i]) * 0;
    return none == 0;
}

/* da += g times the derivative of y = |a - b|_p. */
static void add_slope(const PairsArgs *s, double *da, const double *a, const double *b, double g, double y)
{
    const int64_t n = s->n;
    const double p = s->p;
    if (p == 1) {
        if (!isfinite(g) && distance(s, a, b) == 0) return; /* no gradient, whatever g is */
#pragma omp simd
        for (int64_t i = 0; i < n; i++) da[i] += g * sign(a[i] - b[i]);
        return;
    }
    if (p == 2) {
        const double f = y == 0 ? 0 : g / y;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) da[i] += f * (a[i] - b[i]);
        return;
    }
    if (s->rounded && !isinf(p)) {
        if (y != 0) add_short_powers(da, a, b, n, p, g, y);
        return;
    }
    for (int64_t i = 0; i < n && y != 0; i++) {
        const double d = a[i] - b[i];
        if (isinf(p)) da[i] += fabs(d) == y ? g * sign(d) : 0;
        else if (d != 0) da[i] += g * sign(d) * pow(fabs(d) / y, p - 1);
    }
}

/* ---- all pairs ------------------------------------------------------------------------------- */

static void forward_row(void *ctx, int64_t row)
{
    const PairsArgs *s = ctx;
    const double *a = (const double *)s->a + row * s->n,
                 *b = (const double *)s->b + row / s->m * s->others * s->n;
    double *y = (double *)s->out + row * s->others;
    if (s->a == s->b) { /* of one set: half of the pairs, and the others from across the diagonal */
        double *column = (double *)s->out + row / s->m * s->m * s->others + row % s->m;
        for (int64_t j = row % s->m; j < s->others; j++)
            column[j * s->others] = y[j] = distance(s, a, b + j * s->n);
        return;
    }
    for (int64_t j = 0; j < s->others; j++) y[j] = distance(s, a, b + j * s->n);
}

static void backward_row(void *ctx, int64_t row)
{
    const PairsArgs *s = ctx;
    const int64_t batch = row / s->m;
    const double *a = (const double *)s->a + row * s->n, *b = (const double *)s->b + batch * s->others * s->n,
                 *g = (const double *)s->g + batch * s->m * s->others + row % s->m * s->step;
    double *da = (double *)s->out + row * s->n;
    memset(da, 0, (size_t)s->n * sizeof *da);
    for (int64_t j = 0; j < s->others; j++, b += s->n) {
        const double gj = g[j * s->other_step];
        if (gj == 0 && s->p >= 1 && all_finite(a, b, s->n)) continue; /* half of the pairs of one set */
        add_slope(s, da, a, b, gj, s->p == 1 ? 0 : distance(s, a, b));
    }
}

static int run(const PairsArgs *s, void (*row)(void *, int64_t))
{
    const int64_t rows = s->batch * s->m;
    const int64_t work = rows * s->others * (s->n + 4) * (s->p == 2 || s->p == 1 ? 1 : 16);
    parallel_for(rows, cpu_threads(work), row, (void *)(uintptr_t)s);
    return 0;
}

int cpu_pairs(PairsArgs *a) { return run(a, forward_row); }
int cpu_pairs_grad(PairsArgs *a) { return run(a, backward_row); }

/* ---- the pairs of one set, each once --------------------------------------------------------- */

/* Where row i's pairs with those behind it begin. */
static int64_t first_pair(int64_t i, int64_t m) { return i * (2 * m - i - 1) / 2; }

static void upper_row(void *ctx, int64_t i)
{
    const PairsArgs *s = ctx;
    const double *x = s->a;
    double *y = (double *)s->out + first_pair(i, s->m);
    for (int64_t j = i + 1; j < s->m; j++) *y++ = distance(s, x + i * s->n, x + j * s->n);
}

static void upper_row_grad(void *ctx, int64_t i)
{
    const PairsArgs *s = ctx;
    const double *x = s->a, *y = s->b, *g = s->g;
    double *dx = (double *)s->out + i * s->n;
    memset(dx, 0, (size_t)s->n * sizeof *dx);
    for (int64_t j = 0; j < s->m; j++) {
        const int64_t low = j < i ? j : i, high = j < i ? i : j, k = first_pair(low, s->m) + high - low - 1;
        if (j == i) continue;
        const double *a = x + i * s->n, *b = x + j * s->n;
        add_slope(s, dx, a, b, g[k], isinf(s->p) ? distance(s, a, b) : y[k]); /* ties are exact */
    }
}

void host_pdist(const PairsArgs *s) { run(s, upper_row); }
void host_pdist_grad(const PairsArgs *s) { run(s, upper_row_grad); }
