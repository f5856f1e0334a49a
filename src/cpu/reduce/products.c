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

/* ---- of f32, in double: no product of four overflows, so each four elements wait for one product, not four;
 * the loops above are the plain form ------------------------------------------------------------------- */

enum { FOUR = 4 };
typedef struct Narrow {
    const float *x;
    double *before; /* of products_of_others: the products of the elements before each */
    float *y;
    int64_t n, inner;
} Narrow;

/* to[k] = p times the first k + 1 of four elements, `step` apart; returns the last. */
static double four(const float *x, int64_t step, double p, double to[FOUR])
{
    const double a = (double)x[0], b = a * (double)x[step], c = b * (double)x[2 * step],
                 d = c * (double)x[3 * step];
    to[0] = p * a, to[1] = p * b, to[2] = p * c;
    return to[3] = p * d;
}

static void running_narrow(void *ctx, int64_t i)
{
    const Narrow *l = ctx;
    const int64_t step = l->inner, at = i / step * l->n * step + i % step;
    const float *x = l->x + at;
    float *y = l->y + at;
    double p = 1, to[FOUR];
    int64_t k = 0;
    for (; k + FOUR <= l->n; k += FOUR) {
        p = four(x + k * step, step, p, to);
        for (int j = 0; j < FOUR; j++) y[(k + j) * step] = (float)to[j];
    }
    for (; k < l->n; k++) y[k * step] = (float)(p *= (double)x[k * step]);
}

static void others_narrow(void *ctx, int64_t i)
{
    const Narrow *l = ctx;
    const int64_t step = l->inner, at = i / step * l->n * step + i % step, whole = l->n / FOUR * FOUR;
    const float *x = l->x + at;
    double *before = l->before + at, p = 1, to[FOUR];
    float *y = l->y + at;
    for (int64_t k = 0; k < whole; k += FOUR) {
        before[k * step] = p;
        p = four(x + k * step, step, p, to);
        for (int j = 1; j < FOUR; j++) before[(k + j) * step] = to[j - 1];
    }
    for (int64_t k = whole; k < l->n; k++) before[k * step] = p, p *= (double)x[k * step];
    p = 1;
    for (int64_t k = l->n - 1; k >= whole; k--) {
        y[k * step] = (float)(before[k * step] * p);
        p *= (double)x[k * step];
    }
    for (int64_t k = whole - 1; k > 0; k -= FOUR) {
        y[k * step] = (float)(before[k * step] * p);
        p = four(x + k * step, -step, p, to);
        for (int j = 1; j < FOUR; j++) y[(k - j) * step] = (float)(before[(k - j) * step] * to[j - 1]);
    }
}

void running_products_f32(const float *x, float *y, int64_t outer, int64_t n, int64_t inner)
{
    parallel_for(outer * inner, cpu_threads(outer * n * inner * 2), running_narrow,
                 &(Narrow){ x, NULL, y, n, inner });
}

void products_of_others_f32(const float *x, double *room, float *y, int64_t outer, int64_t n, int64_t inner)
{
    parallel_for(outer * inner, cpu_threads(outer * n * inner * 4), others_narrow,
                 &(Narrow){ x, room, y, n, inner });
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
