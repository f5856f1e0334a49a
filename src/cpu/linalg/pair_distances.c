/* pair_distances.c - p-norms of the differences of all pairs of vectors, and their gradient: the
 * slots pairs and pairs_grad.
 *
 * In double throughout, without the squares |a|^2 - 2 a b + |b|^2, which lose the digits of near neighbours.
 */
#include <math.h>
#include "cpu/cpu.h"

/* ---- one pair -------------------------------------------------------------------------------- */

static double distance(const double *a, const double *b, int64_t n, double p)
{
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
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(a[i] - b[i]);
        if (p == 0) sum += d != 0;
        else if (isinf(p)) sum = d > sum || d != d ? d : sum;
        else sum += pow(d, p);
    }
    return p == 0 || isinf(p) ? sum : pow(sum, 1 / p);
}

static double sign(double d) { return (double)((d > 0) - (d < 0)); }

/* da += g times the derivative of |a - b|_p. */
static void add_slope(double *da, const double *a, const double *b, int64_t n, double p, double g)
{
    const double y = distance(a, b, n, p);
    if (p == 2) {
        const double f = y == 0 ? 0 : g / y;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) da[i] += f * (a[i] - b[i]);
        return;
    }
    for (int64_t i = 0; i < n && y != 0; i++) {
        const double d = a[i] - b[i];
        if (p == 1) da[i] += g * sign(d);
        else if (isinf(p)) da[i] += fabs(d) == y ? g * sign(d) : 0;
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
    for (int64_t j = 0; j < s->others; j++) y[j] = distance(a, b + j * s->n, s->n, s->p);
}

static void backward_row(void *ctx, int64_t row)
{
    const PairsArgs *s = ctx;
    const int64_t batch = row / s->m;
    const double *a = (const double *)s->a + row * s->n, *b = (const double *)s->b + batch * s->others * s->n,
                 *g = (const double *)s->g + batch * s->m * s->others + row % s->m * s->step;
    double *da = (double *)s->out + row * s->n;
    memset(da, 0, (size_t)s->n * sizeof *da);
    for (int64_t j = 0; j < s->others; j++) add_slope(da, a, b + j * s->n, s->n, s->p, g[j * s->other_step]);
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
