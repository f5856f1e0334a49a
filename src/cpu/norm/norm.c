/* norm.c - layer_norm, rms_norm, group_norm and batch_norm on the CPU.
 *
 *   mean = sum x / n,  var = sum (x - mean)^2 / n,  rstd = 1 / sqrt(var + eps)
 *   z = (x - mean) rstd,  y = z w + b
 *   with g = dy w:  dx = rstd (g - mean g - z mean (g z)),  dw = sum dy z,  db = sum dy
 *   statistics given: dx = rstd g;  rms: mean = 0, and dx has no mean g
 *
 * Both moments come from one pass, in double and about the slice's first element, so that a mean far from
 * zero costs no digits.
 *
 * layer: a row is one thread's, also the sum that is formed before; gradients of weight and bias are summed
 * over blocks of rows that depend on their count only, and then over the blocks.  group: likewise, over the
 * samples of each channel in their order.  batch: a channel is one thread's (a group of channels where each
 * is one column). */
#include <math.h>
#include "device/host.h"
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

enum { NORM_ROWS = 16, NORM_SHORT = 256 }; /* rows taken together, and how long they may be */

/* Statistics from the sums about shift; stored as the dtype has them, and used as stored. */
static void put_statistics(const NormArgs *a, int64_t i, double shift, Sums sum, double n)
{
    const double off = sum.a / n, spread = sum.b / n - off * off, var = spread < 0 ? 0 : spread;
    put(a, a->mean, i, shift + off);
    put(a, a->rstd, i, 1 / sqrt(var + a->eps));
    if (a->var) put(a, a->var, i, var);
}

static int threads_for(const NormArgs *a, int64_t passes)
{
    return cpu_threads(a->outer * a->channels * a->inner * passes);
}

/* ---- rows: of a layer, or of a group whose channels are one element each ----------------------- */

/* The first channel of row i, and how many there are in all. */
static int64_t first_channel(const NormArgs *a, int64_t i)
{
    return a->groups ? i % a->groups * a->channels : 0;
}
static int64_t all_channels(const NormArgs *a)
{
    return (a->groups ? a->groups : 1) * a->channels * a->inner;
}

static const void *from_channel(const NormArgs *a, const void *x, int64_t c)
{
    return x ? at(a, x, c) : NULL;
}

static double row_shift(const NormArgs *a, int64_t n, const void *x)
{
    return n && !a->rms ? get(a, x, 0) : 0;
}

static Sums row_moments(const NormArgs *a, const NormKernel *loops, int64_t n, const void *x)
{
    Sums sum = { 0, 0 };
    loops->moments(x, n, row_shift(a, n, x), &sum);
    if (a->rms) sum.a = 0;
    return sum;
}

/* sum = x + y, n elements. */
static void add_to(const NormArgs *a, int64_t n, void *sum, const void *x, const void *y)
{
    if (a->dtype == TENSOR_F64)
        for (int64_t i = 0; i < n; i++) ((double *)sum)[i] = ((const double *)x)[i] + ((const double *)y)[i];
    else
        for (int64_t i = 0; i < n; i++) ((float *)sum)[i] = ((const float *)x)[i] + ((const float *)y)[i];
}

/* Rows [from, from + count).  Divisions and roots of several rows follow each other: none waits for a row's
 * sums, 1.2 times as fast where rows are short. */
static void some_layer_rows(const NormArgs *a, const NormKernel *loops, int64_t from, int64_t count)
{
    const int64_t n = a->channels * a->inner;
    Sums sum[NORM_ROWS];
    for (int64_t k = 0; k < count; k++) {
        const int64_t e = (from + k) * n;
        if (a->add) add_to(a, n, at_mut(a, a->sum, e), at(a, a->x, e), at(a, a->add, e));
        sum[k] = row_moments(a, loops, n, at(a, a->add ? a->sum : a->x, e));
    }
    for (int64_t k = 0; k < count; k++) {
        const void *x = at(a, a->add ? a->sum : a->x, (from + k) * n);
        put_statistics(a, from + k, row_shift(a, n, x), sum[k], (double)n);
    }
    for (int64_t i = from; i < from + count; i++) {
        const int64_t c = first_channel(a, i);
        loops->row(at(a, a->add ? a->sum : a->x, i * n), n, get(a, a->mean, i), get(a, a->rstd, i),
                   from_channel(a, a->weight, c), from_channel(a, a->bias, c), at_mut(a, a->y, i * n));
    }
}

static void layer_rows(void *ctx, int64_t from, int64_t to)
{
    const NormArgs *a = ctx;
    const int64_t n = a->channels * a->inner, most = n <= NORM_SHORT ? NORM_ROWS : 1;
    for (int64_t i = from; i < to; i += most)
        some_layer_rows(a, loops_for(a), i, to - i < most ? to - i : most);
}

static void layer_grad_row(const NormArgs *a, const NormKernel *loops, int64_t i, int64_t n, double *sums)
{
    const void *x = at(a, a->x, i * n), *dy = at(a, a->dy, i * n);
    const double mean = get(a, a->mean, i), rstd = get(a, a->rstd, i);
    const int64_t c = first_channel(a, i), all = all_channels(a);
    if (a->dx) {
        const void *weight = from_channel(a, a->weight, c);
        Sums by = { 0, 0 };
        loops->products(x, dy, weight, n, mean, rstd, &by);
        by.a = a->rms ? 0 : by.a / (double)n, by.b /= (double)n;
        void *dx = at_mut(a, a->dx, i * n);
        loops->gradient(x, dy, weight, n, mean, rstd, rstd, by, dx);
        if (a->dsum) add_to(a, n, dx, dx, at(a, a->dsum, i * n));
    }
    if (sums) loops->parameters(x, dy, n, mean, rstd, sums + c, sums + all + c);
}

typedef struct LayerGrad {
    const NormArgs *a;
    int64_t rows;
    double *sums;
} LayerGrad;

static void layer_grad_block(void *ctx, int64_t b)
{
    const LayerGrad *g = ctx;
    const int64_t n = g->a->channels * g->a->inner;
    for (int64_t i = b * g->rows; i < (b + 1) * g->rows && i < g->a->outer; i++)
        layer_grad_row(g->a, loops_for(g->a), i, n, g->sums ? g->sums + b * 2 * all_channels(g->a) : NULL);
}

static int layer_grad(const NormArgs *a)
{
    const int64_t n = all_channels(a), even = (a->outer + BLOCKS - 1) / BLOCKS,
                  rows = even > BLOCK_ROWS ? even : BLOCK_ROWS;
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

/* ---- groups: rows whose channels have a weight each ------------------------------------------ */

static double weight_of(const NormArgs *a, int64_t channel)
{
    return a->weight ? get(a, a->weight, channel) : 1;
}
static double bias_of(const NormArgs *a, int64_t channel) { return a->bias ? get(a, a->bias, channel) : 0; }

static void group_rows(void *ctx, int64_t from, int64_t to)
{
    const NormArgs *a = ctx;
    const NormKernel *loops = loops_for(a);
    const int64_t n = a->channels * a->inner;
    for (int64_t i = from; i < to; i++) {
        const void *x = at(a, a->x, i * n);
        put_statistics(a, i, row_shift(a, n, x), row_moments(a, loops, n, x), (double)n);
        const double mean = get(a, a->mean, i), rstd = get(a, a->rstd, i);
        for (int64_t k = 0; k < a->channels; k++) {
            const int64_t c = i % a->groups * a->channels + k, e = i * n + k * a->inner;
            loops->scale(at(a, a->x, e), a->inner, mean, rstd * weight_of(a, c), bias_of(a, c),
                         at_mut(a, a->y, e));
        }
    }
}

typedef struct GroupGrad {
    const NormArgs *a;
    Sums *sums;
} GroupGrad; /* sum dy and sum dy z of every channel of every row */

static void group_grad_row(void *ctx, int64_t i)
{
    const GroupGrad *g = ctx;
    const NormArgs *a = g->a;
    const NormKernel *loops = loops_for(a);
    const int64_t n = a->channels * a->inner, first = i % a->groups * a->channels;
    const double mean = get(a, a->mean, i), rstd = get(a, a->rstd, i);
    Sums *sums = g->sums + i * a->channels, by = { 0, 0 };
    for (int64_t k = 0; k < a->channels; k++) {
        const int64_t e = i * n + k * a->inner;
        loops->products(at(a, a->x, e), at(a, a->dy, e), NULL, a->inner, mean, rstd, &sums[k]);
        by.a += weight_of(a, first + k) * sums[k].a, by.b += weight_of(a, first + k) * sums[k].b;
    }
    for (int64_t k = 0; k < a->channels && a->dx; k++) {
        const int64_t e = i * n + k * a->inner;
        loops->blend(at(a, a->x, e), at(a, a->dy, e), a->inner, mean, rstd * weight_of(a, first + k),
                     -rstd * rstd * by.b / (double)n, -rstd * by.a / (double)n, at_mut(a, a->dx, e));
    }
}

static int group_grad(const NormArgs *a)
{
    const int64_t all = a->groups * a->channels;
    const size_t bytes = (size_t)(a->outer * a->channels + 1) * sizeof(Sums);
    Sums *sums = tg_calloc(bytes);
    if (!sums) return -1;
    parallel_for(a->outer, threads_for(a, 4), group_grad_row, &(GroupGrad){ a, sums });
    for (int64_t c = 0; c < all; c++) {
        Sums sum = { 0, 0 };
        for (int64_t i = c; i < a->outer * a->channels; i += all) sum.a += sums[i].a, sum.b += sums[i].b;
        if (a->dweight) put(a, a->dweight, c, sum.b);
        if (a->dbias) put(a, a->dbias, c, sum.a);
    }
    tg_free(sums, bytes);
    return 0;
}

/* ---- channels -------------------------------------------------------------------------------- */

static void channel_forward(const NormArgs *a, const NormKernel *loops, int64_t c)
{
    const int64_t step = a->channels * a->inner, from = c * a->inner;
    if (!a->given) {
        const double shift = get(a, a->x, from);
        Sums sum = { 0, 0 };
        for (int64_t o = 0; o < a->outer; o++)
            loops->moments(at(a, a->x, from + o * step), a->inner, shift, &sum);
        put_statistics(a, c, shift, sum, (double)(a->outer * a->inner));
    }
    const double mean = get(a, a->mean, c), factor = get(a, a->rstd, c) * weight_of(a, c);
    for (int64_t o = 0; o < a->outer; o++)
        loops->scale(at(a, a->x, from + o * step), a->inner, mean, factor, bias_of(a, c),
                     at_mut(a, a->y, from + o * step));
}

static void channel_grad(const NormArgs *a, const NormKernel *loops, int64_t c)
{
    const int64_t step = a->channels * a->inner, from = c * a->inner;
    const double mean = get(a, a->mean, c), rstd = get(a, a->rstd, c), n = (double)(a->outer * a->inner);
    Sums sum = { 0, 0 };
    if (!a->given || a->dweight || a->dbias)
        for (int64_t o = 0; o < a->outer; o++)
            loops->products(at(a, a->x, from + o * step), at(a, a->dy, from + o * step), NULL, a->inner, mean,
                            rstd, &sum);
    if (a->dweight) put(a, a->dweight, c, sum.b);
    if (a->dbias) put(a, a->dbias, c, sum.a);
    const Sums by = { sum.a / n, sum.b / n };
    const double factor = rstd * weight_of(a, c);
    for (int64_t o = 0; o < a->outer && a->dx; o++) {
        const int64_t e = from + o * step;
        if (a->given)
            loops->scale(at(a, a->dy, e), a->inner, 0, factor, 0,
                         at_mut(a, a->dx, e)); /* where x is NaN too */
        else
            loops->gradient(at(a, a->x, e), at(a, a->dy, e), NULL, a->inner, mean, rstd, factor, by,
                            at_mut(a, a->dx, e));
    }
}

/* ---- columns: inner is 1 --------------------------------------------------------------------- */

static void columns_forward(const NormArgs *a, const NormKernel *loops, int64_t c, int n)
{
    double mean[NORM_COLUMNS] = { 0 }, factor[NORM_COLUMNS] = { 0 }, bias[NORM_COLUMNS] = { 0 };
    const void *x = at(a, a->x, c);
    if (!a->given) {
        ColumnSums sum = { { 0 }, { 0 } };
        loops->column_moments(x, a->outer, a->channels, n, &sum);
        for (int j = 0; j < n; j++)
            put_statistics(a, c + j, get(a, x, j), (Sums){ sum.a[j], sum.b[j] }, (double)a->outer);
    }
    for (int j = 0; j < n; j++)
        mean[j] = get(a, a->mean, c + j), factor[j] = get(a, a->rstd, c + j) * weight_of(a, c + j),
        bias[j] = bias_of(a, c + j);
    loops->column_scale(x, a->outer, a->channels, n, mean, factor, bias, at_mut(a, a->y, c));
}

static void columns_grad(const NormArgs *a, const NormKernel *loops, int64_t c, int n)
{
    double mean[NORM_COLUMNS] = { 0 }, rstd[NORM_COLUMNS] = { 0 }, factor[NORM_COLUMNS] = { 0 };
    ColumnSums sum = { { 0 }, { 0 } };
    for (int j = 0; j < n; j++)
        mean[j] = get(a, a->mean, c + j), rstd[j] = get(a, a->rstd, c + j),
        factor[j] = rstd[j] * weight_of(a, c + j);
    loops->column_products(at(a, a->x, c), at(a, a->dy, c), a->outer, a->channels, n, mean, rstd, &sum);
    for (int j = 0; j < n; j++) {
        if (a->dweight) put(a, a->dweight, c + j, sum.b[j]);
        if (a->dbias) put(a, a->dbias, c + j, sum.a[j]);
        sum.a[j] /= (double)a->outer, sum.b[j] /= (double)a->outer;
    }
    static const double zero[NORM_COLUMNS];
    if (a->dx && a->given)
        loops->column_scale(at(a, a->dy, c), a->outer, a->channels, n, zero, factor, zero,
                            at_mut(a, a->dx, c));
    else if (a->dx)
        loops->column_gradient(at(a, a->x, c), at(a, a->dy, c), a->outer, a->channels, n, mean, rstd, factor,
                               &sum, at_mut(a, a->dx, c));
}

/* ---- the slots ------------------------------------------------------------------------------- */

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

static void batch(const NormArgs *a, int64_t passes,
                  void (*channel)(const NormArgs *, const NormKernel *, int64_t),
                  void (*columns)(const NormArgs *, const NormKernel *, int64_t, int))
{
    BatchWork w = { a, channel, columns };
    parallel_for(a->inner == 1 ? (a->channels + NORM_COLUMNS - 1) / NORM_COLUMNS : a->channels,
                 threads_for(a, passes), batch_piece, &w);
}

/* Rows by one loop over their channels: 3 times as fast as a call for each of them. */
static bool by_rows(const NormArgs *a) { return !a->groups || a->inner == 1; }

int cpu_norm(NormArgs *a)
{
    if (a->batch && a->outer * a->inner > 0) batch(a, 2, channel_forward, columns_forward);
    else if (!a->batch) parallel_split(a->outer, threads_for(a, 2), by_rows(a) ? layer_rows : group_rows, a);
    return 0;
}

int cpu_norm_grad(NormArgs *a)
{
    if (!a->batch) return (by_rows(a) ? layer_grad(a) : group_grad(a)) ? fail_memory("norm") : 0;
    batch(a, 3, channel_grad, columns_grad);
    return 0;
}
