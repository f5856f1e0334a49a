/* reduce.c - reductions over strided spaces (ReduceArgs in kernels.h says what each kind is).
 *
 *  - The kept positions are cut into units: one row each, or up to FOLD_COLUMNS columns side by side where
 *    these lie next to each other or the rows are short.  The reduced positions are cut into blocks whose
 *    length follows from their count alone.  Threads take units, or the blocks of one; results do not depend
 *    on who took what.
 *  - Elements that do not lie as the loops of reduce_kernel.c want them are gathered into a buffer first.
 *  - A kind is one or two passes, each a fold of elements, perhaps transformed. */
#include <math.h>
#include <string.h>
#include <tapegrad/tensor.h>
#include "cpu/elementwise/cast_kernel.h"
#include "reduce.h"
#include "reduce_kernel.h"

enum {
    BLOCK = 8192,
    BLOCKS = 64,
    BUFFER = 1024,
    TILE_ROWS = 32,
    SEGMENT = 256,
    FEW_ROWS = 1024,
    SHORT_ROW = 48
};
typedef enum Transform { PLAIN, EXP, POWER } Transform;

typedef struct Job {
    const ReduceArgs *a;
    bool f64, columns, together; /* together: the columns of a unit are neighbours in memory */
    bool split;                  /* threads take blocks, not units */
    int64_t run;                 /* units do not cross multiples of it */
    int64_t units_per_run, units, block;
    int threads;
    CastLine *widen; /* of halves, a dense line of them; NULL: f32 or f64 */
} Job;

typedef struct Pass {
    int fold;
    Transform transform;
    double p;
} Pass;

typedef struct Unit {
    int64_t first; /* kept position */
    int columns;
    int64_t offset[FOLD_COLUMNS]; /* of each column's first element, in elements */
} Unit;

static const char *element(const Job *j, int64_t offset)
{
    return (const char *)j->a->src + offset * (j->f64 ? 8 : j->widen ? 2 : 4);
}

/* ---- gathering ------------------------------------------------------------------------------- */

static void gather_line(const Job *j, int64_t base, const int64_t *offset, int n, void *to)
{
    const float *x = (const float *)j->a->src + base;
    const double *xd = (const double *)j->a->src + base;
    if (j->f64)
        for (int i = 0; i < n; i++) ((double *)to)[i] = xd[offset[i]];
    else
        for (int i = 0; i < n; i++) ((float *)to)[i] = x[offset[i]];
}

/* n reduced positions from `from` where the last reduced dim is dense: run by run. */
static void gather_runs(const Job *j, int64_t base, int64_t from, int n, char *to)
{
    const ReduceArgs *a = j->a;
    const int64_t size = a->reduced_shape[a->reduced_ndim - 1];
    const size_t bytes = j->f64 ? 8 : 4;
    while (n > 0) {
        int64_t left = size - from % size,
                offset = reduce_offset(from, a->reduced_ndim, a->reduced_shape, a->reduced_stride);
        int count = left < n ? (int)left : n;
        memcpy(to, element(j, base + offset), (size_t)count * bytes);
        to += (size_t)count * bytes, from += count, n -= count;
    }
}

/* [n][columns]: a line across the columns for each reduced position. */
static void gather_tile(const Job *j, const Unit *u, const int64_t *offset, int n, void *to)
{
    const size_t bytes = (size_t)u->columns * (j->f64 ? 8 : 4);
    for (int r = 0; r < n; r++) gather_line(j, offset[r], u->offset, u->columns, (char *)to + r * bytes);
}

/* Each column by its shift, as transform does with a row: so none is left to it. */
static void shift_tile(const Job *j, int how, void *tile, int n, int columns, const double *shift)
{
    float *x = tile;
    double *xd = tile;
    for (int r = 0; r < n; r++, x += columns, xd += columns)
        for (int c = 0; c < columns; c++) {
            if (j->f64) xd[c] = how == EXP ? xd[c] - shift[c] : xd[c] * shift[c];
            else x[c] = how == EXP ? x[c] - (float)shift[c] : x[c] * (float)shift[c];
        }
}

static void scale(const Job *j, void *to, const void *x, int64_t n, double by)
{
    if (j->f64)
        for (int64_t i = 0; i < n; i++) ((double *)to)[i] = ((const double *)x)[i] * by;
    else
        for (int64_t i = 0; i < n; i++) ((float *)to)[i] = ((const float *)x)[i] * (float)by;
}

/* e^(x - shift), or |x shift|^p */
static void transform(const Job *j, const Pass *p, void *to, const void *x, int64_t n, double shift)
{
    if (p->transform == POWER && shift != 1) scale(j, to, x, n, shift), x = to;
    if (p->transform == EXP && j->f64) ISA_PICK(shifted_exp_f64)(to, x, n, shift);
    else if (p->transform == EXP) ISA_PICK(shifted_exp_f32)(to, x, n, shift);
    else if (j->f64) ISA_PICK(abs_pow_f64)(to, x, n, p->p);
    else ISA_PICK(abs_pow_f32)(to, x, n, p->p);
}

/* ---- one block of one unit ------------------------------------------------------------------- */

static double identity(int fold)
{
    switch (fold) {
    case FOLD_PROD: return 1;
    case FOLD_MAX:
    case FOLD_MAX_ABS: return -INFINITY;
    case FOLD_MIN:
    case FOLD_MIN_ABS: return INFINITY;
    default: return 0;
    }
}

static double join(int fold, double a, double b)
{
    switch (fold) {
    case FOLD_PROD: return a * b;
    case FOLD_MAX:
    case FOLD_MAX_ABS: return b > a || b != b ? b : a;
    case FOLD_MIN:
    case FOLD_MIN_ABS: return b < a || b != b ? b : a;
    default: return a + b;
    }
}

static void fold_line(const Job *j, int fold, double *lanes, const void *x, int64_t n, double shift)
{
    if (j->f64) ISA_PICK(fold_line_f64)(fold, lanes, x, n, shift);
    else ISA_PICK(fold_line_f32)(fold, lanes, x, n, shift);
}

static void fold_row_block(const Job *j, const Unit *u, const Pass *p, int64_t from, int64_t n, double shift,
                           double *out)
{
    const ReduceArgs *a = j->a;
    double lanes[FOLD_LANES];
    _Alignas(64) double buffer[BUFFER];
    const bool dense = a->reduced_ndim == 1 && a->reduced_stride[0] == 1;
    for (int i = 0; i < FOLD_LANES; i++) lanes[i] = identity(p->fold);
    if (dense && p->transform == PLAIN && !j->widen) {
        fold_line(j, p->fold, lanes, element(j, u->offset[0] + from), n, shift);
        n = 0;
    }
    for (; n > 0; n -= BUFFER, from += BUFFER) {
        int count = n < BUFFER ? (int)n : BUFFER;
        const void *x = buffer;
        if (j->widen) {
            j->widen((char *)buffer, element(j, u->offset[0] + from), count, sizeof(float), 2);
        } else if (dense) {
            x = element(j, u->offset[0] + from);
        } else if (a->reduced_stride[a->reduced_ndim - 1] == 1) {
            gather_runs(j, u->offset[0], from, count, (char *)buffer);
        } else {
            int64_t offset[BUFFER];
            reduce_offsets(a, from, count, offset);
            gather_line(j, u->offset[0], offset, count, buffer);
        }
        if (p->transform != PLAIN) transform(j, p, buffer, x, count, shift);
        fold_line(j, p->fold, lanes, buffer, count, shift);
    }
    *out = ISA_PICK(fold_lanes)(p->fold, lanes);
}

static void fold_columns(const Job *j, const Unit *u, int fold, double *lanes, const void *x, int64_t rows,
                         int64_t row_stride, const double *shift)
{
    if (j->f64) ISA_PICK(fold_columns_f64)(fold, lanes, x, rows, row_stride, u->columns, shift);
    else ISA_PICK(fold_columns_f32)(fold, lanes, x, rows, row_stride, u->columns, shift);
}

/* Short rows side by side, of f32: turned into columns first. */
static bool fold_short_rows(const Job *j, const Unit *u, const Pass *p, int64_t from, int64_t n,
                            const double *shift, double *out)
{
    const ReduceArgs *a = j->a;
    float tile[TILE_ROWS * FOLD_COLUMNS];
    if (j->f64 || j->together || a->reduced_ndim != 1 || p->transform != PLAIN || n > TILE_ROWS) return false;
    if (u->columns < FOLD_COLUMNS || (p->fold != FOLD_SUM && p->fold != FOLD_SQUARE)) return false;
    const int64_t stride = a->reduced_stride[0];
    for (int c = 0; c < FOLD_COLUMNS; c++) {
        const float *x = (const float *)a->src + u->offset[c] + from * stride;
        for (int64_t r = 0; r < n; r++) tile[r * FOLD_COLUMNS + c] = x[r * stride];
    }
    return ISA_PICK(fold_few_rows_f32)(p->fold, tile, n, FOLD_COLUMNS, u->columns, shift, identity(p->fold),
                                       out);
}

static bool fold_few_rows(const Job *j, const Unit *u, const Pass *p, int64_t from, int64_t n,
                          const double *shift, double *out)
{
    const ReduceArgs *a = j->a;
    if (j->f64 || !j->together || a->reduced_ndim != 1 || p->transform != PLAIN || n > FEW_ROWS || n == 0)
        return false;
    const int64_t stride = a->reduced_stride[0];
    const void *x = element(j, u->offset[0] + from * stride);
    return ISA_PICK(fold_few_rows_f32)(p->fold, x, n, stride, u->columns, shift, identity(p->fold), out);
}

static void fold_column_block(const Job *j, const Unit *u, const Pass *p, int64_t from, int64_t n,
                              const double *shift, double *out)
{
    const ReduceArgs *a = j->a;
    double lanes[FOLD_LANES * FOLD_COLUMNS], tile[TILE_ROWS * FOLD_COLUMNS];
    const double first = identity(p->fold);
    const int used = n < FOLD_LANES ? (int)n : FOLD_LANES;
    if (fold_few_rows(j, u, p, from, n, shift, out) || fold_short_rows(j, u, p, from, n, shift, out)) return;
    for (int i = 0; i < used * FOLD_COLUMNS; i++) lanes[i] = first;
    if (j->together && a->reduced_ndim == 1 && p->transform == PLAIN) {
        const int64_t stride =
            a->reduced_stride[0]; /* segments: what is read lane by lane stays in the cache */
        for (; n > 0; n -= SEGMENT, from += SEGMENT)
            fold_columns(j, u, p->fold, lanes, element(j, u->offset[0] + from * stride),
                         n < SEGMENT ? n : SEGMENT, stride, shift);
        n = 0;
    }
    for (; n > 0; n -= TILE_ROWS, from += TILE_ROWS) {
        int count = n < TILE_ROWS ? (int)n : TILE_ROWS;
        int64_t offset[TILE_ROWS];
        reduce_offsets(a, from, count, offset);
        gather_tile(j, u, offset, count, tile);
        if (p->transform != PLAIN) {
            shift_tile(j, p->transform, tile, count, u->columns, shift);
            transform(j, p, tile, tile, (int64_t)count * u->columns, p->transform == POWER);
        }
        fold_columns(j, u, p->fold, lanes, tile, count, u->columns, shift);
    }
    ISA_PICK(fold_lane_columns)(p->fold, lanes, used, u->columns, out);
}

/* ---- one unit -------------------------------------------------------------------------------- */

static void fold_block(const Job *j, const Unit *u, const Pass *p, int b, const double *shift, double *out)
{
    const int64_t from = b * j->block, left = j->a->reduced - from, count = left < j->block ? left : j->block;
    if (j->columns) fold_column_block(j, u, p, from, count, shift, out);
    else fold_row_block(j, u, p, from, count, shift[0], out);
}

typedef struct Folding {
    const Job *j;
    const Unit *u;
    const Pass *pass;
    const double *shift;
    double (*partial)[FOLD_COLUMNS];
} Folding;

static void fold_piece(void *ctx, int64_t b)
{
    const Folding *f = ctx;
    fold_block(f->j, f->u, f->pass, (int)b, f->shift, f->partial[b]);
}

static void fold_unit(const Job *j, const Unit *u, Pass pass, const double *shift, double *out)
{
    const int blocks = (int)((j->a->reduced + j->block - 1) / j->block);
    double partial[BLOCKS][FOLD_COLUMNS];
    Folding f = { j, u, &pass, shift, partial };
    parallel_for(blocks, j->split ? j->threads : 1, fold_piece, &f);
    for (int c = 0; c < u->columns; c++) {
        out[c] = blocks ? partial[0][c] : identity(pass.fold);
        for (int b = 1; b < blocks; b++) out[c] = join(pass.fold, out[c], partial[b][c]);
    }
}

static bool is_power_sum(const ReduceArgs *a)
{
    return a->kind == REDUCE_NORM && a->param != 0 && a->param != 1 && a->param != 2 && !isinf(a->param);
}

/* The power of two that brings the elements which a power sum is made of near 1, given the extreme |x|: so
 * |x|^p is in range. */
static double power_scale(const ReduceArgs *a, double extreme)
{
    const int most = a->src_dtype == TENSOR_F64 ? 1022 : 126;
    if (extreme == 0 || !isfinite(extreme)) return 1;
    const int e = -ilogb(extreme);
    return ldexp(1, e < -most ? -most : e > most ? most : e);
}

static Pass pass_of(const ReduceArgs *a)
{
    switch (a->kind) {
    case REDUCE_PROD: return (Pass){ FOLD_PROD, PLAIN, 0 };
    case REDUCE_MAX:
    case REDUCE_LOGSUMEXP: return (Pass){ FOLD_MAX, PLAIN, 0 };
    case REDUCE_MIN: return (Pass){ FOLD_MIN, PLAIN, 0 };
    case REDUCE_ANY:
    case REDUCE_ALL:
    case REDUCE_COUNT_NONZERO: return (Pass){ FOLD_COUNT, PLAIN, 0 };
    case REDUCE_NORM:
        if (a->param == 2) return (Pass){ FOLD_SQUARE, PLAIN, 0 };
        if (a->param == 1) return (Pass){ FOLD_ABS, PLAIN, 0 };
        if (a->param == 0) return (Pass){ FOLD_COUNT, PLAIN, 0 };
        return (Pass){ a->param > 0 ? FOLD_MAX_ABS : FOLD_MIN_ABS, PLAIN, 0 };
    default: return (Pass){ FOLD_SUM, PLAIN, 0 };
    }
}

/* From what the passes gave to the result.  shift: the mean of var, the maximum of logsumexp, the scale of a
 * power sum. */
static double finish(const ReduceArgs *a, double v, double shift)
{
    const double n = (double)a->reduced, p = a->param;
    switch (a->kind) {
    case REDUCE_MEAN: return v / n;
    case REDUCE_ANY: return v > 0;
    case REDUCE_ALL: return v == n;
    case REDUCE_VAR: return v / (n - p > 0 ? n - p : 0);
    case REDUCE_STD: return sqrt(v / (n - p > 0 ? n - p : 0));
    case REDUCE_LOGSUMEXP: return log(v) + shift;
    case REDUCE_NORM: return p == 2 ? sqrt(v) : is_power_sum(a) ? pow(v, 1 / p) / shift : v;
    default: return v;
    }
}

static void put(const ReduceArgs *a, int64_t at, double v)
{
    if (a->out_dtype == TENSOR_F32) ((float *)a->out)[at] = (float)v;
    else if (a->out_dtype == TENSOR_F64) ((double *)a->out)[at] = v;
    else if (a->out_dtype == TENSOR_I64) ((int64_t *)a->out)[at] = (int64_t)v;
    else ((uint8_t *)a->out)[at] = v != 0;
}

/* Sums, extremes, means and lengths into f32, without a choice for each. */
static bool put_plain(const ReduceArgs *a, int64_t at, const double *v, int n)
{
    const double by = a->kind == REDUCE_MEAN ? (double)a->reduced : 1;
    const bool plain = a->kind == REDUCE_SUM || a->kind == REDUCE_MAX || a->kind == REDUCE_MIN;
    const bool length = a->kind == REDUCE_NORM && a->param == 2;
    if (a->out_dtype != TENSOR_F32 || (!plain && !length && a->kind != REDUCE_MEAN)) return false;
    float *y = (float *)a->out + at;
    if (length) {
        for (int c = 0; c < n; c++) y[c] = (float)sqrt(v[c]);
        return true;
    }
    if (plain)
        for (int c = 0; c < n; c++) y[c] = (float)v[c];
    else
        for (int c = 0; c < n; c++) y[c] = (float)(v[c] / by);
    return true;
}

static void run_unit(const Job *j, int64_t index)
{
    const ReduceArgs *a = j->a;
    Unit u;
    int64_t in_run = index % j->units_per_run * (j->columns ? FOLD_COLUMNS : 1);
    u.first = index / j->units_per_run * j->run + in_run;
    u.columns = !j->columns ? 1 : j->run - in_run < FOLD_COLUMNS ? (int)(j->run - in_run) : FOLD_COLUMNS;
    for (int c = 0; c < u.columns; c++)
        u.offset[c] = c && j->together ? u.offset[0] + c
                      : a->kept_ndim == 1
                          ? (u.first + c) * a->kept_stride[0] /* no divisions */
                          : reduce_offset(u.first + c, a->kept_ndim, a->kept_shape, a->kept_stride);
    double shift[FOLD_COLUMNS] = { 0 }, v[FOLD_COLUMNS];
    fold_unit(j, &u, pass_of(a), shift, v);
    const bool spread = a->kind == REDUCE_VAR || a->kind == REDUCE_STD, power = is_power_sum(a);
    if (spread || power || a->kind == REDUCE_LOGSUMEXP) {
        for (int c = 0; c < u.columns; c++)
            shift[c] = spread        ? v[c] / (double)a->reduced
                       : power       ? power_scale(a, v[c])
                       : isinf(v[c]) ? 0
                                     : v[c];
        Pass second = spread  ? (Pass){ FOLD_SQUARE, PLAIN, 0 }
                      : power ? (Pass){ FOLD_SUM, POWER, a->param }
                              : (Pass){ FOLD_SUM, EXP, 0 };
        fold_unit(j, &u, second, shift, v);
    }
    if (put_plain(a, u.first, v, u.columns)) return;
    for (int c = 0; c < u.columns; c++) put(a, u.first + c, finish(a, v[c], shift[c]));
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* A sum over a whole permuted block may go through memory in its own order. */
static void sort_reduced(ReduceArgs *a)
{
    for (int i = 1; i < a->reduced_ndim; i++)
        for (int k = i; k > 0 && a->reduced_stride[k] > a->reduced_stride[k - 1]; k--) {
            int64_t size = a->reduced_shape[k], stride = a->reduced_stride[k];
            a->reduced_shape[k] = a->reduced_shape[k - 1], a->reduced_stride[k] = a->reduced_stride[k - 1];
            a->reduced_shape[k - 1] = size, a->reduced_stride[k - 1] = stride;
        }
    int m = 0;
    for (int i = 1; i < a->reduced_ndim; i++) {
        bool merge = a->reduced_stride[m] == a->reduced_shape[i] * a->reduced_stride[i];
        int64_t size = merge ? a->reduced_shape[m] * a->reduced_shape[i] : a->reduced_shape[i];
        if (!merge) m++;
        a->reduced_shape[m] = size, a->reduced_stride[m] = a->reduced_stride[i];
    }
    a->reduced_ndim = m + 1;
}

static Job plan(const ReduceArgs *a)
{
    Job j = { .a = a, .f64 = a->src_dtype == TENSOR_F64 };
    if (dtype_is_half(a->src_dtype)) j.widen = cpu_cast_line(a->src_dtype, TENSOR_F32);
    const int64_t inner = a->kept_shape[a->kept_ndim - 1];
    const bool neighbours = a->kept_stride[a->kept_ndim - 1] == 1 && inner >= 4;
    j.columns = a->kept >= 4 &&
                (a->reduced <= SHORT_ROW || (neighbours && a->reduced_stride[a->reduced_ndim - 1] != 1));
    j.together = j.columns && neighbours;
    j.run = j.together ? inner : a->kept;
    j.units_per_run = j.columns ? (j.run + FOLD_COLUMNS - 1) / FOLD_COLUMNS : j.run;
    j.units = a->kept / j.run * j.units_per_run;
    const int64_t part = (a->reduced + BLOCKS - 1) / BLOCKS;
    j.block = part <= BLOCK ? BLOCK : (part + FOLD_LANES - 1) / FOLD_LANES * FOLD_LANES;
    const bool costly = a->kind == REDUCE_LOGSUMEXP || is_power_sum(a);
    j.threads = cpu_threads(a->kept * a->reduced * (costly ? 8 : 1));
    j.split = j.threads > 1 && j.units < 4 * j.threads && a->reduced > 2 * j.block;
    return j;
}

/* Sums and means of dense rows: of several at once, for short rows twice as fast. */
static bool sum_rows(const Job *j, int64_t from, int64_t to)
{
    const ReduceArgs *a = j->a;
    const bool sums = a->kind == REDUCE_SUM || a->kind == REDUCE_MEAN;
    if (!sums || j->f64 || j->widen || j->columns || a->reduced_ndim != 1 || a->reduced_stride[0] != 1)
        return false;
    if (a->reduced == 0 || a->reduced > j->block || a->kept_ndim != 1) return false;
    for (int64_t n; from < to; from += n) {
        double v[FOLD_COLUMNS];
        n = to - from < FOLD_COLUMNS ? to - from : FOLD_COLUMNS;
        ISA_PICK(sum_rows_f32)
        ((const float *)a->src + from * a->kept_stride[0], n, a->kept_stride[0], a->reduced, v);
        if (put_plain(a, from, v, (int)n)) continue;
        for (int64_t i = 0; i < n; i++) put(a, from + i, finish(a, v[i], 0));
    }
    return true;
}

static void run_units(void *ctx, int64_t from, int64_t to)
{
    if (sum_rows(ctx, from, to)) return;
    for (int64_t i = from; i < to; i++) run_unit(ctx, i);
}

static void reduce_floats(ReduceArgs *a)
{
    if (a->reduced_ndim > 1 && a->reduced > BLOCK) sort_reduced(a);
    Job j = plan(a);
    parallel_split(j.units, j.split ? 1 : j.threads, run_units, &j);
}

/* n results from one float each: x itself, or |x|.  0 + x is no more -0. */
#define OF_ONE(T, absolute, step)                                         \
    {                                                                     \
        const T *x = (const T *)a->src + from;                            \
        T *y = (T *)a->out + to;                                          \
        if (a->kind == REDUCE_NORM)                                       \
            for (int64_t i = 0; i < n; i++) y[i] = absolute(x[i * step]); \
        else if (a->kind == REDUCE_SUM)                                   \
            for (int64_t i = 0; i < n; i++) y[i] = x[i * step] + 0;       \
        else                                                              \
            for (int64_t i = 0; i < n; i++) y[i] = x[i * step];           \
    }

static void line_of_ones(const ReduceArgs *a, int64_t from, int64_t to, int64_t n, int64_t stride)
{
    if (a->src_dtype == TENSOR_F32 && stride == 1) OF_ONE(float, fabsf, 1) /* in vectors */
    else if (a->src_dtype == TENSOR_F32) OF_ONE(float, fabsf, stride)
    else if (stride == 1) OF_ONE(double, fabs, 1)
    else OF_ONE(double, fabs, stride)
}

/* Over one element each, of floats.  Its length of any order is |x|, which powers would round, or lose. */
static bool reduce_one(const ReduceArgs *a)
{
    const bool length = a->kind == REDUCE_NORM && a->param != 0;
    const bool itself = a->kind == REDUCE_SUM || a->kind == REDUCE_MAX || a->kind == REDUCE_MIN;
    const bool floats = a->src_dtype == TENSOR_F32 || a->src_dtype == TENSOR_F64;
    if (a->reduced != 1 || !floats || a->src_dtype != a->out_dtype || !(length || itself)) return false;
    const int64_t n = a->kept_shape[a->kept_ndim - 1], stride = a->kept_stride[a->kept_ndim - 1];
    for (int64_t k = 0; k < a->kept; k += n)
        line_of_ones(a, reduce_offset(k, a->kept_ndim, a->kept_shape, a->kept_stride), k, n, stride);
    return true;
}

int cpu_reduce(ReduceArgs *args)
{
    ReduceArgs a = *args;
    if (a.kept == 0) return 0;
    if (a.kept_ndim == 0) a.kept_ndim = 1, a.kept_shape[0] = 1, a.kept_stride[0] = 1;
    if (a.reduced_ndim == 0) a.reduced_ndim = 1, a.reduced_shape[0] = a.reduced, a.reduced_stride[0] = 1;
    if (reduce_one(&a)) return 0;
    if (a.kind == REDUCE_ARGMAX || a.kind == REDUCE_ARGMIN) reduce_index(&a);
    else if (dtype_is_float(a.src_dtype)) reduce_floats(&a);
    else reduce_integers(&a);
    return 0;
}
