/* products.c - products of all elements of a line but one: those before times those after, without division;
 * running products and their gradient. */
#include "products.h"
#include "cpu/cpu.h"

typedef struct Lines {
    const double *x, *g;
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

static void each_line(const Lines *l, int64_t outer, void (*f)(void *, int64_t))
{
    const int64_t lines = outer * l->inner;
    parallel_for(lines, cpu_threads(lines * l->n * 4), f, (void *)(uintptr_t)l);
}

void products_of_others(const double *x, double *y, int64_t outer, int64_t n, int64_t inner)
{
    each_line(&(Lines){ x, NULL, y, n, inner }, outer, line);
}

/* ---- running products ------------------------------------------------------------------------ */

static void running_line(void *ctx, int64_t i)
{
    const Lines *l = ctx;
    const int64_t step = l->inner, at = i / step * l->n * step + i % step;
    double p = 1;
    for (int64_t k = 0; k < l->n; k++) l->y[at + k * step] = p *= l->x[at + k * step];
}

static void running_grad_line(void *ctx, int64_t i)
{
    const Lines *l = ctx;
    const int64_t step = l->inner, at = i / step * l->n * step + i % step;
    const double *x = l->x + at, *g = l->g + at;
    double *y = l->y + at, p = 1, s = 0;
    for (int64_t k = 0; k < l->n; k++) y[k * step] = p, p *= x[k * step];
    for (int64_t k = l->n - 1; k >= 0; k--) {
        s += g[k * step];
        y[k * step] *= s;
        s *= x[k * step];
    }
}

void running_products(const double *x, double *y, int64_t outer, int64_t n, int64_t inner)
{
    each_line(&(Lines){ x, NULL, y, n, inner }, outer, running_line);
}

void running_products_grad(const double *x, const double *g, double *dx, int64_t outer, int64_t n,
                           int64_t inner)
{
    each_line(&(Lines){ x, g, dx, n, inner }, outer, running_grad_line);
}

void running_products_i64(const int64_t *x, int64_t *y, int64_t outer, int64_t n, int64_t inner)
{
    for (int64_t i = 0; i < outer * inner; i++) {
        uint64_t p = 1;
        for (int64_t k = 0, at = i / inner * n * inner + i % inner; k < n; k++, at += inner)
            y[at] = (int64_t)(p *= (uint64_t)x[at]);
    }
}
