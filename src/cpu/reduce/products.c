/* products.c - products of all elements of a line but one: those before times those after, without division.
 */
#include "products.h"
#include "cpu/cpu.h"

typedef struct Lines {
    const double *x;
    double *y;
    int64_t n, inner;
} Lines;

static void line(void *ctx, int64_t i)
{
    const Lines *l = ctx;
    const int64_t step = l->inner, at = i / step * l->n * step + i % step;
    const double *x = l->x + at;
    double *y = l->y + at, p = 1;
    for (int64_t k = 0; k < l->n; k++) y[k * step] = p, p *= x[k * step];
    p = 1;
    for (int64_t k = l->n - 1; k >= 0; k--) y[k * step] *= p, p *= x[k * step];
}

void products_of_others(const double *x, double *y, int64_t outer, int64_t n, int64_t inner)
{
    const int64_t lines = outer * inner;
    parallel_for(lines, cpu_threads(lines * n * 4), line, &(Lines){ x, y, n, inner });
}
