/* cross_entropy.c - class targets over dense logits [rows, classes, inner]; kernels.h has the formulas.
 *
 * Targets are all checked before anything is written. */
#include <string.h>
#include <tapegrad/tensor.h>
#include "cpu/cpu.h"
#include "softmax_kernel.h"

enum { ROWS = 16 };

static int check_targets(CrossEntropyArgs *a)
{
    for (int64_t i = 0, n = a->rows * a->inner; i < n; i++) {
        int64_t t = a->target[i];
        if ((t >= 0 && t < a->classes) || t == a->ignore_index) continue;
        a->bad_at = i, a->bad_value = t;
        return cpu_fail("target %lld at position %lld is outside [0, %lld)", (long long)t, (long long)i,
                        (long long)a->classes);
    }
    return 0;
}

static double value(const void *x, int dtype, int64_t i)
{
    return dtype == TENSOR_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static void put(void *x, int dtype, int64_t i, double v)
{
    if (dtype == TENSOR_F32) ((float *)x)[i] = (float)v;
    else ((double *)x)[i] = v;
}

static double weight_of(const void *weight, int dtype, int64_t c)
{
    return weight ? value(weight, dtype, c) : 1;
}

/* ---- forward --------------------------------------------------------------------------------- */

static void log_sums(const CrossEntropyArgs *a, int64_t row, int64_t rows)
{
    const int64_t at = row * a->classes * a->inner, to = row * a->inner;
    const bool f32 = a->dtype == TENSOR_F32;
    const float *x = (const float *)a->x + at;
    const double *xd = (const double *)a->x + at;
    if (a->inner == 1 && f32) ISA_PICK(lse_rows_f32)(rows, a->classes, x, (float *)a->lse + to);
    else if (a->inner == 1) ISA_PICK(lse_rows_f64)(rows, a->classes, xd, (double *)a->lse + to);
    else
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < a->inner; c += SOFTMAX_COLUMNS) {
                const int columns = a->inner - c < SOFTMAX_COLUMNS ? (int)(a->inner - c) : SOFTMAX_COLUMNS;
                const int64_t from = r * a->classes * a->inner + c, lse = to + r * a->inner + c;
                if (f32)
                    ISA_PICK(lse_columns_f32)(a->classes, a->inner, columns, x + from, (float *)a->lse + lse);
                else ISA_PICK(lse_columns_f64)
                (a->classes, a->inner, columns, xd + from, (double *)a->lse + lse);
            }
}

/* The loss at one position, whose class c has its logit at x[from + c inner]. */
static double loss_at(const CrossEntropyArgs *a, int64_t from, int64_t i)
{
    const int64_t t = a->target[i];
    if (t == a->ignore_index) return 0;
    const double lse = value(a->lse, a->dtype, i), s = a->smoothing;
    double loss =
        (1 - s) * weight_of(a->weight, a->dtype, t) * (lse - value(a->x, a->dtype, from + t * a->inner));
    if (s == 0) return loss;
    double sum = 0;
    for (int64_t c = 0; c < a->classes; c++)
        sum += weight_of(a->weight, a->dtype, c) * (lse - value(a->x, a->dtype, from + c * a->inner));
    return loss + s / (double)a->classes * sum;
}

static void loss_piece(void *ctx, int64_t piece)
{
    const CrossEntropyArgs *a = ctx;
    const int64_t r = piece * ROWS, rows = a->rows - r < ROWS ? a->rows - r : ROWS;
    log_sums(a, r, rows);
    for (int64_t i = r * a->inner; i < (r + rows) * a->inner; i++)
        put(a->loss, a->dtype, i, loss_at(a, i / a->inner * a->classes * a->inner + i % a->inner, i));
}

int cpu_cross_entropy(CrossEntropyArgs *a)
{
    if (check_targets(a)) return -1;
    parallel_for((a->rows + ROWS - 1) / ROWS, cpu_threads(a->rows * a->classes * a->inner * 6), loss_piece,
                 a);
    double sum = 0;
    for (int64_t i = 0; i < a->rows * a->inner; i++)
        if (a->target[i] != a->ignore_index) sum += weight_of(a->weight, a->dtype, a->target[i]);
    put(a->weight_sum, a->dtype, 0, sum);
    return 0;
}

/* ---- backward -------------------------------------------------------------------------------- */

/* What multiplies the probabilities at position i; 0 where it is ignored. */
static double scale_at(const CrossEntropyGradArgs *a, int64_t i, double weight_sum)
{
    const int64_t t = a->target[i];
    if (t == a->ignore_index) return 0;
    const double s = a->smoothing, g = value(a->g, a->dtype, i * a->g_stride);
    return g * ((1 - s) * weight_of(a->weight, a->dtype, t) + s / (double)a->classes * weight_sum);
}

/* Takes the target's part away, or writes zeros where the position is ignored. */
static void subtract_target(const CrossEntropyGradArgs *a, int64_t from, int64_t i)
{
    const int64_t t = a->target[i], inner = a->inner;
    if (t == a->ignore_index) {
        for (int64_t c = 0; c < a->classes; c++) put(a->dx, a->dtype, from + c * inner, 0);
        return;
    }
    const double s = a->smoothing, g = value(a->g, a->dtype, i * a->g_stride);
    const double part = g * (1 - s) * weight_of(a->weight, a->dtype, t);
    put(a->dx, a->dtype, from + t * inner, value(a->dx, a->dtype, from + t * inner) - part);
    for (int64_t c = 0; s != 0 && c < a->classes; c++) {
        const double share = g * s / (double)a->classes * weight_of(a->weight, a->dtype, c);
        put(a->dx, a->dtype, from + c * inner, value(a->dx, a->dtype, from + c * inner) - share);
    }
}

static void grad_row(const CrossEntropyGradArgs *a, int64_t r, double weight_sum)
{
    const int64_t at = r * a->classes;
    const double lse = value(a->lse, a->dtype, r), scale = scale_at(a, r, weight_sum);
    if (a->dtype == TENSOR_F32) ISA_PICK(scaled_exp_row_f32)
    (a->classes, (const float *)a->x + at, (float)lse, (float)scale, (float *)a->dx + at);
    else ISA_PICK(scaled_exp_row_f64)(a->classes, (const double *)a->x + at, lse, scale,
                                      (double *)a->dx + at);
    subtract_target(a, at, r);
}

static void grad_columns(const CrossEntropyGradArgs *a, int64_t r, int64_t first, double weight_sum)
{
    const int columns = a->inner - first < SOFTMAX_COLUMNS ? (int)(a->inner - first) : SOFTMAX_COLUMNS;
    const int64_t at = r * a->classes * a->inner + first, i = r * a->inner + first;
    double scale[SOFTMAX_COLUMNS];
    float scale32[SOFTMAX_COLUMNS];
    for (int c = 0; c < columns; c++) scale[c] = scale_at(a, i + c, weight_sum), scale32[c] = (float)scale[c];
    if (a->dtype == TENSOR_F32) ISA_PICK(scaled_exp_columns_f32)
    (a->classes, a->inner, columns, (const float *)a->x + at, (const float *)a->lse + i, scale32,
     (float *)a->dx + at);
    else ISA_PICK(scaled_exp_columns_f64)(a->classes, a->inner, columns, (const double *)a->x + at,
                                          (const double *)a->lse + i, scale, (double *)a->dx + at);
    for (int c = 0; c < columns; c++) subtract_target(a, at + c, i + c);
}

typedef struct Grad {
    const CrossEntropyGradArgs *a;
    double weight_sum;
} Grad;

static void grad_span(void *ctx, int64_t from, int64_t to)
{
    const Grad *g = ctx;
    for (int64_t r = from; r < to; r++) {
        if (g->a->inner == 1) grad_row(g->a, r, g->weight_sum);
        else
            for (int64_t c = 0; c < g->a->inner; c += SOFTMAX_COLUMNS)
                grad_columns(g->a, r, c, g->weight_sum);
    }
}

int cpu_cross_entropy_grad(CrossEntropyGradArgs *a)
{
    Grad g = { a, 0 };
    for (int64_t c = 0; c < a->classes; c++) g.weight_sum += weight_of(a->weight, a->dtype, c);
    parallel_split(a->rows, cpu_threads(a->rows * a->classes * a->inner * 4), grad_span, &g);
    return 0;
}
