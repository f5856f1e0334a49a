/* norm.c - layer_norm and batch_norm on the CPU.
 *
 *   mean = sum x / n,  var = sum (x - mean)^2 / n,  rstd = 1 / sqrt(var + eps),  z = (x - mean) rstd,  y = z w + b
 *   with g = dy w:  dx = rstd (g - mean g - z mean (g z)),  dw = sum dy z,  db = sum dy
 *   statistics given: dx = rstd g
 *
 * Both moments come from one pass, in double and about the slice's first element, so that a mean far from zero costs no digits.
 *
 * layer: a row is one thread's; gradients of weight and bias are summed over blocks of rows that depend on their count only,
 * and then over the blocks.  batch: a channel is one thread's (a group of channels where each is one column). */
#include <math.h>
#include "../core.h"
#include "norm_kernel.h"

enum { BLOCKS = 16, BLOCK_ROWS = 16 };

static const NormKernel *loops_for(const NormArgs *a)
{
    return &ISA_PICK(norm_kernel)[a->dtype == TENSOR_F64];
}

static double get(const NormArgs *a, const void *x, int64_t i)
{
    return a->dtype == TENSOR_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void put(const NormArgs *a, void *x, int64_t i, double value)
{
    if (a->dtype == TENSOR_F64) ((double *)x)[i] = value;
    else ((float *)x)[i] = (float)value;
}

static const void *at(const NormArgs *a, const void *x, int64_t i)
{
    return (const char *)x + i * (a->dtype == TENSOR_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float));
}

static void *at_mut(const NormArgs *a, void *x, int64_t i) { return (void *)(uintptr_t)at(a, x, i); }

/* Statistics from the sums about shift; stored as the dtype has them, and used as stored. */
static void put_statistics(const NormArgs *a, int64_t i, double shift, Sums sum, double n)
{
    const double off = sum.a / n, var = sum.b / n - off * off;
    put(a, a->mean, i, shift + off);
    put(a, a->rstd, i, 1 / sqrt((var < 0 ? 0 : var) + a->eps));
}

static int threads_for(const NormArgs *a, int64_t passes) { return cpu_threads(a->outer * a->channels * a->inner * passes); }

/* ---- rows ---------------------------------------------------------------------------------------------------- */

static void layer_rows(void *ctx, int64_t from, int64_t to)
{
    const NormArgs *a = ctx;
    const NormKernel *loops = loops_for(a);
    const int64_t n = a->channels * a->inner;
    for (int64_t i = from; i < to; i++) {
        const void *x = at(a, a->x, i * n);
        const double shift = n ? get(a, x, 0) : 0;
        Sums sum = { 0, 0 };
        loops->moments(x, n, shift, &sum);
        put_statistics(a, i, shift, sum, (double)n);
        loops->row(x, n, get(a, a->mean, i), get(a, a->rstd, i), a->weight, a->bias, at_mut(a, a->y, i * n));
    }
}

static void layer_grad_row(const NormArgs *a, const NormKernel *loops, int64_t i, int64_t n, double *sums)
{
    const void *x = at(a, a->x, i * n), *dy = at(a, a->dy, i * n);
    const double mean = get(a, a->mean, i), rstd = get(a, a->rstd, i);
    if (a->dx) {
        Sums by = { 0, 0 };
        loops->products(x, dy, a->weight, n, mean, rstd, &by);
        by.a /= (double)n, by.b /= (double)n;
        loops->gradient(x, dy, a->weight, n, mean, rstd, rstd, by, at_mut(a, a->dx, i * n));
    }
    if (sums) loops->parameters(x, dy, n, mean, rstd, sums, sums + n);
}

typedef struct LayerGrad { const NormArgs *a; int64_t rows; double *sums; } LayerGrad;

static void layer_grad_block(void *ctx, int64_t b)
{
    const LayerGrad *g = ctx;
    const int64_t n = g->a->channels * g->a->inner;
    for (int64_t i = b * g->rows; i < (b + 1) * g->rows && i < g->a->outer; i++)
        layer_grad_row(g->a, loops_for(g->a), i, n, g->sums ? g->sums + b * 2 * n : NULL);
}

static int layer_grad(const NormArgs *a)
{
    const int64_t n = a->channels * a->inner, even = (a->outer + BLOCKS - 1) / BLOCKS, rows = even > BLOCK_ROWS ? even : BLOCK_ROWS;
    const int64_t blocks = (a->outer + rows - 1) / rows;
    const bool wanted = a->dweight || a->dbias;
    const size_t bytes = (size_t)((blocks ? blocks : 1) * 2 * n) * sizeof(double);
    double *sums = wanted && n ? tg_calloc(bytes) : NULL;
    if (wanted && n && !sums) return -1;
    parallel_for(blocks, threads_for(a, 4), layer_grad_block, &(LayerGrad){ a, rows, sums });
    for (int64_t b = 1; b < blocks && sums; b++)
        for (int64_t i = 0; i < 2 * n; i++) sums[i] += sums[b * 2 * n + i];
    for (int64_t i = 0; i < n && a->dweight; i++) put(a, a->dweight, i, sums[i]);
    for (int64_t i = 0; i < n && a->dbias; i++) put(a, a->dbias, i, sums[n + i]);
    if (sums) tg_free(sums, bytes);
    return 0;
}

/* ---- channels -------------------------------------------------------------------------------------------------- */

static double weight_of(const NormArgs *a, int64_t channel) { return a->weight ? get(a, a->weight, channel) : 1; }
static double bias_of(const NormArgs *a, int64_t channel) { return a->bias ? get(a, a->bias, channel) : 0; }

static void channel_forward(const NormArgs *a, const NormKernel *loops, int64_t c)
{
    const int64_t step = a->channels * a->inner, from = c * a->inner;
    if (!a->given) {
        const double shift = get(a, a->x, from);
        Sums sum = { 0, 0 };
        for (int64_t o = 0; o < a->outer; o++) loops->moments(at(a, a->x, from + o * step), a->inner, shift, &sum);
        put_statistics(a, c, shift, sum, (double)(a->outer * a->inner));
    }
    const double mean = get(a, a->mean, c), factor = get(a, a->rstd, c) * weight_of(a, c);
    for (int64_t o = 0; o < a->outer; o++)
        loops->scale(at(a, a->x, from + o * step), a->inner, mean, factor, bias_of(a, c), at_mut(a, a->y, from + o * step));
}

static void channel_grad(const NormArgs *a, const NormKernel *loops, int64_t c)
{
    const int64_t step = a->channels * a->inner, from = c * a->inner;
    const double mean = get(a, a->mean, c), rstd = get(a, a->rstd, c), n = (double)(a->outer * a->inner);
    Sums sum = { 0, 0 };
    if (!a->given || a->dweight || a->dbias)
        for (int64_t o = 0; o < a->outer; o++)
            loops->products(at(a, a->x, from + o * step), at(a, a->dy, from + o * step), NULL, a->inner, mean, rstd, &sum);
    if (a->dweight) put(a, a->dweight, c, sum.b);
    if (a->dbias) put(a, a->dbias, c, sum.a);
    const Sums by = a->given ? (Sums){ 0, 0 } : (Sums){ sum.a / n, sum.b / n };
    for (int64_t o = 0; o < a->outer && a->dx; o++)
        loops->gradient(at(a, a->x, from + o * step), at(a, a->dy, from + o * step), NULL, a->inner, mean, rstd, rstd * weight_of(a, c),
                        by, at_mut(a, a->dx, from + o * step));
}

/* ---- columns: inner is 1 ----------------------------------------------------------------------------------------- */

static void columns_forward(const NormArgs *a, const NormKernel *loops, int64_t c, int n)
{
    double mean[NORM_COLUMNS] = { 0 }, factor[NORM_COLUMNS] = { 0 }, bias[NORM_COLUMNS] = { 0 };
    const void *x = at(a, a->x, c);
    if (!a->given) {
        ColumnSums sum = { { 0 }, { 0 } };
        loops->column_moments(x, a->outer, a->channels, n, &sum);
        for (int j = 0; j < n; j++) put_statistics(a, c + j, get(a, x, j), (Sums){ sum.a[j], sum.b[j] }, (double)a->outer);
    }
    for (int j = 0; j < n; j++)
        mean[j] = get(a, a->mean, c + j), factor[j] = get(a, a->rstd, c + j) * weight_of(a, c + j), bias[j] = bias_of(a, c + j);
    loops->column_scale(x, a->outer, a->channels, n, mean, factor, bias, at_mut(a, a->y, c));
}

static void columns_grad(const NormArgs *a, const NormKernel *loops, int64_t c, int n)
{
    double mean[NORM_COLUMNS] = { 0 }, rstd[NORM_COLUMNS] = { 0 }, factor[NORM_COLUMNS] = { 0 };
    ColumnSums sum = { { 0 }, { 0 } };
    for (int j = 0; j < n; j++)
        mean[j] = get(a, a->mean, c + j), rstd[j] = get(a, a->rstd, c + j), factor[j] = rstd[j] * weight_of(a, c + j);
    loops->column_products(at(a, a->x, c), at(a, a->dy, c), a->outer, a->channels, n, mean, rstd, &sum);
    for (int j = 0; j < n; j++) {
        if (a->dweight) put(a, a->dweight, c + j, sum.b[j]);
        if (a->dbias) put(a, a->dbias, c + j, sum.a[j]);
        sum.a[j] = a->given ? 0 : sum.a[j] / (double)a->outer, sum.b[j] = a->given ? 0 : sum.b[j] / (double)a->outer;
    }
    if (a->dx)
        loops->column_gradient(at(a, a->x, c), at(a, a->dy, c), a->outer, a->channels, n, mean, rstd, factor, &sum, at_mut(a, a->dx, c));
}

/* ---- the slots --------------------------------------------------------------------------------------------------- */

typedef struct BatchWork {
    const NormArgs *a;
    void (*channel)(const NormArgs *, const NormKernel *, int64_t);
    void (*columns)(const NormArgs *, const NormKernel *, int64_t, int);
} BatchWork;

static void batch_piece(void *ctx, int64_t i)
{
    const BatchWork *w = ctx;
    const NormArgs *a = w->a;
    const int64_t c = i * NORM_COLUMNS, left = a->channels - c;
    if (a->inner == 1) w->columns(a, loops_for(a), c, left < NORM_COLUMNS ? (int)left : NORM_COLUMNS);
    else w->channel(a, loops_for(a), i);
}

static void batch(const NormArgs *a, int64_t passes, void (*channel)(const NormArgs *, const NormKernel *, int64_t),
                  void (*columns)(const NormArgs *, const NormKernel *, int64_t, int))
{
    BatchWork w = { a, channel, columns };
    parallel_for(a->inner == 1 ? (a->channels + NORM_COLUMNS - 1) / NORM_COLUMNS : a->channels, threads_for(a, passes), batch_piece, &w);
}

int cpu_norm(NormArgs *a)
{
    if (a->batch && a->outer * a->inner > 0) batch(a, 2, channel_forward, columns_forward);
    else if (!a->batch) parallel_split(a->outer, threads_for(a, 2), layer_rows, a);
    return 0;
}

int cpu_norm_grad(NormArgs *a)
{
    if (!a->batch) return layer_grad(a) ? fail_memory("layer_norm") : 0;
    batch(a, 3, channel_grad, columns_grad);
    return 0;
}
