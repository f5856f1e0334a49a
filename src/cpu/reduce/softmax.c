/* softmax.c - softmax and log_softmax over the middle of [outer, n, inner], and their gradients: rows where
 * inner is 1, else columns side by side.  A row or column is one thread's work, so threads change no bit. */
#include <tapegrad/tensor.h>
#include "cpu/cpu.h"
#include "softmax_kernel.h"

enum { ROWS = 16 }; /* rows at a time */

/* The pieces of [outer, n, inner] that are handed out: ROWS rows, or up to SOFTMAX_COLUMNS columns of one
 * outer. */
typedef struct Piece {
    int64_t at;    /* first element */
    int64_t count; /* rows or columns */
} Piece;

static int64_t pieces(int64_t outer, int64_t inner)
{
    return inner == 1 ? (outer + ROWS - 1) / ROWS : outer * ((inner + SOFTMAX_COLUMNS - 1) / SOFTMAX_COLUMNS);
}

static Piece piece(int64_t outer, int64_t n, int64_t inner, int64_t i)
{
    if (inner == 1) return (Piece){ i * ROWS * n, outer - i * ROWS < ROWS ? outer - i * ROWS : ROWS };
    const int64_t tiles = (inner + SOFTMAX_COLUMNS - 1) / SOFTMAX_COLUMNS,
                  column = i % tiles * SOFTMAX_COLUMNS;
    return (Piece){ i / tiles * n * inner + column,
                    inner - column < SOFTMAX_COLUMNS ? inner - column : SOFTMAX_COLUMNS };
}

static void softmax_piece(void *ctx, int64_t i)
{
    const SoftmaxArgs *a = ctx;
    const bool f32 = a->dtype == TENSOR_F32;
    const Piece p = piece(a->outer, a->n, a->inner, i);
    const float *x = (const float *)a->x + p.at;
    const double *xd = (const double *)a->x + p.at;
    float *y = (float *)a->y + p.at;
    double *yd = (double *)a->y + p.at;
    if (a->inner == 1 && f32) ISA_PICK(softmax_rows_f32)(a->log, p.count, a->n, x, y);
    else if (a->inner == 1) ISA_PICK(softmax_rows_f64)(a->log, p.count, a->n, xd, yd);
    else if (f32) ISA_PICK(softmax_columns_f32)(a->log, a->n, a->inner, (int)p.count, x, y);
    else ISA_PICK(softmax_columns_f64)(a->log, a->n, a->inner, (int)p.count, xd, yd);
}

int cpu_softmax(SoftmaxArgs *a)
{
    const int64_t count = a->outer * a->n * a->inner;
    if (count > 0) parallel_for(pieces(a->outer, a->inner), cpu_threads(count * 6), softmax_piece, a);
    return 0;
}

static void softmax_grad_piece(void *ctx, int64_t i)
{
    const SoftmaxGradArgs *a = ctx;
    const bool f32 = a->dtype == TENSOR_F32;
    const Piece p = piece(a->outer, a->n, a->inner, i);
    const float *y = (const float *)a->y + p.at, *g = (const float *)a->g + p.at;
    const double *yd = (const double *)a->y + p.at, *gd = (const double *)a->g + p.at;
    float *dx = (float *)a->dx + p.at;
    double *dxd = (double *)a->dx + p.at;
    if (a->inner == 1 && f32) ISA_PICK(softmax_grad_rows_f32)(a->log, p.count, a->n, y, g, dx);
    else if (a->inner == 1) ISA_PICK(softmax_grad_rows_f64)(a->log, p.count, a->n, yd, gd, dxd);
    else if (f32) ISA_PICK(softmax_grad_columns_f32)(a->log, a->n, a->inner, (int)p.count, y, g, dx);
    else ISA_PICK(softmax_grad_columns_f64)(a->log, a->n, a->inner, (int)p.count, yd, gd, dxd);
}

int cpu_softmax_grad(SoftmaxGradArgs *a)
{
    const int64_t count = a->outer * a->n * a->inner;
    if (count > 0)
        parallel_for(pieces(a->outer, a->inner), cpu_threads(count * (a->log ? 6 : 2)), softmax_grad_piece,
                     a);
    return 0;
}
