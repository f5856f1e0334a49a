/* scan.c - running results along the middle of [outer, n, inner].
 *
 * Sums and products go from one end of a line to the other, in double (integers in i64): up to COLUMNS lines
 * side by side are one thread's work, so threads change no bit. */
#include <math.h>
#include "cpu/cpu.h"
#include "device/half.h"

enum { COLUMNS = 64, RUN = 16 };

typedef struct Tile { /* lines side by side */
    int64_t at;       /* first element of the first one */
    int columns;
} Tile;

static int64_t tiles_across(int64_t inner) { return (inner + COLUMNS - 1) / COLUMNS; }

static Tile tile_of(const ScanArgs *a, int64_t t)
{
    const int64_t tiles = tiles_across(a->inner), column = t % tiles * COLUMNS, left = a->inner - column;
    return (Tile){ t / tiles * a->n * a->inner + column, left < COLUMNS ? (int)left : COLUMNS };
}

/* ---- sums and products ----------------------------------------------------------------------- */

/* One line: four elements are summed among themselves and then added to what came before, so that one
 * addition of four waits for another (4 times as fast).  Doubles do not overflow by it. */
static void sums_line(const float *x, float *y, int64_t n, int64_t step)
{
    double sum = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, x += 4 * step, y += 4 * step) {
        const double a = (double)x[0], b = a + (double)x[step], c = b + (double)x[2 * step],
                     d = c + (double)x[3 * step];
        y[0] = (float)(sum + a), y[step] = (float)(sum + b), y[2 * step] = (float)(sum + c);
        y[3 * step] = (float)(sum += d);
    }
    for (; i < n; i++, x += step, y += step) *y = (float)(sum += (double)*x);
}

/* One element of each line every `step` elements. */
static void sums_f32(const float *x, float *y, int64_t n, int64_t step, int columns)
{
    double sum[COLUMNS] = { 0 };
    for (int64_t i = 0; i < n; i++, x += step, y += step)
        for (int k = 0; k < columns; k++) y[k] = (float)(sum[k] += (double)x[k]);
}

static void sums_f64(const double *x, double *y, int64_t n, int64_t step, int columns)
{
    double sum[COLUMNS] = { 0 }, only = 0; /* a line alone keeps its sum in a register */
    for (int64_t i = 0; columns == 1 && i < n; i++) y[i * step] = only += x[i * step];
    for (int64_t i = 0; columns > 1 && i < n; i++, x += step, y += step)
        for (int k = 0; k < columns; k++) y[k] = sum[k] += x[k];
}

static void sums_i64(const int64_t *x, int64_t *y, int64_t n, int64_t step, int columns)
{
    uint64_t sum[COLUMNS] = { 0 }, only = 0;
    for (int64_t i = 0; columns == 1 && i < n; i++) y[i * step] = (int64_t)(only += (uint64_t)x[i * step]);
    for (int64_t i = 0; columns > 1 && i < n; i++, x += step, y += step)
        for (int k = 0; k < columns; k++) y[k] = (int64_t)(sum[k] += (uint64_t)x[k]);
}

static void sum_tile(void *ctx, int64_t t)
{
    const ScanArgs *a = ctx;
    const Tile tile = tile_of(a, t);
    const int64_t step = a->reverse ? -a->inner : a->inner,
                  at = tile.at + (a->reverse ? (a->n - 1) * a->inner : 0);
    if (a->dtype == TENSOR_F32 && tile.columns == 1)
        sums_line((const float *)a->x + at, (float *)a->y + at, a->n, step);
    else if (a->dtype == TENSOR_F32)
        sums_f32((const float *)a->x + at, (float *)a->y + at, a->n, step, tile.columns);
    else if (a->dtype == TENSOR_F64)
        sums_f64((const double *)a->x + at, (double *)a->y + at, a->n, step, tile.columns);
    else sums_i64((const int64_t *)a->x + at, (int64_t *)a->y + at, a->n, step, tile.columns);
}

/* ---- extremes -------------------------------------------------------------------------------- */

/* The lines of a tile in their own type: a new extreme is rare, so the branch costs little (10 times as fast
 * as keys), and a line alone is passed over RUN elements at a time where there is none.  A NaN is not less
 * than anything, and one.  of(x): the value of an element. */
#define PASSES(v, best) ((min ? !((v) > (best)) : !((v) < (best))) && ((best) == (best) || (v) != (v)))
#define EXTREMES(type, name, of)                                                                       \
    static bool passes_##name(const type *x, type best, bool min)                                      \
    {                                                                                                  \
        int any = 0;                                                                                   \
        for (int k = 0; k < RUN; k++) any |= PASSES(of(x[k]), of(best));                               \
        return any;                                                                                    \
    }                                                                                                  \
    static void line_##name(const type *x, type *y, int64_t *index, int64_t n, int64_t step, bool min) \
    {                                                                                                  \
        type best = *x;                                                                                \
        int64_t at = 0;                                                                                \
        for (int64_t i = 0, end; i < n; i = end) {                                                     \
            const bool run = step == 1 && i + RUN <= n;                                                \
            end = run ? i + RUN : i + 1;                                                               \
            if (run && !passes_##name(x + i, best, min)) {                                             \
                for (int k = 0; k < RUN; k++) index[i + k] = at;                                       \
                for (int k = 0; y && k < RUN; k++) y[i + k] = best;                                    \
                continue;                                                                              \
            }                                                                                          \
            for (int64_t k = i; k < end; k++) {                                                        \
                const int passes = PASSES(of(x[k * step]), of(best));                                  \
                best = passes ? x[k * step] : best, at = passes ? k : at;                              \
                index[k * step] = at;                                                                  \
                if (y) y[k * step] = best;                                                             \
            }                                                                                          \
        }                                                                                              \
    }                                                                                                  \
    static void extremes_##name(const ScanArgs *a, Tile tile, bool min)                                \
    {                                                                                                  \
        const type *x = (const type *)a->x + tile.at;                                                  \
        type *y = a->y ? (type *)a->y + tile.at : NULL, best[COLUMNS];                                 \
        int64_t *index = a->index + tile.at, at[COLUMNS] = { 0 };                                      \
        if (tile.columns == 1) {                                                                       \
            line_##name(x, y, index, a->n, a->inner, min);                                             \
            return;                                                                                    \
        }                                                                                              \
        memcpy(best, x, (size_t)tile.columns * sizeof *x);                                             \
        for (int64_t i = 0; i < a->n; i++, x += a->inner, index += a->inner)                           \
            for (int k = 0; k < tile.columns; k++) {                                                   \
                if (unlikely(PASSES(of(x[k]), of(best[k])))) best[k] = x[k], at[k] = i;                \
                index[k] = at[k];                                                                      \
                if (y) y[i * a->inner + k] = best[k];                                                  \
            }                                                                                          \
    }
#define ITSELF(x) (x)
EXTREMES(float, f32, ITSELF)
EXTREMES(double, f64, ITSELF)
EXTREMES(int64_t, i64, ITSELF)
EXTREMES(int32_t, i32, ITSELF)
EXTREMES(uint8_t, u8, ITSELF)
EXTREMES(uint16_t, f16, f16_to_f32)
EXTREMES(uint16_t, bf16, bf16_to_f32)

static void extreme_tile(void *ctx, int64_t t)
{
    const ScanArgs *a = ctx;
    const Tile tile = tile_of(a, t);
    const bool min = a->kind == SCAN_MIN;
    switch (a->dtype) {
    case TENSOR_F32: extremes_f32(a, tile, min); return;
    case TENSOR_F64: extremes_f64(a, tile, min); return;
    case TENSOR_F16: extremes_f16(a, tile, min); return;
    case TENSOR_BF16: extremes_bf16(a, tile, min); return;
    case TENSOR_I64: extremes_i64(a, tile, min); return;
    case TENSOR_I32: extremes_i32(a, tile, min); return;
    default: extremes_u8(a, tile, min);
    }
}

/* ---- log sum e^x ----------------------------------------------------------------------------- */

static double get(int dtype, const void *x, int64_t i)
{
    return dtype == TENSOR_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void put(int dtype, void *x, int64_t i, double v)
{
    if (dtype == TENSOR_F64) ((double *)x)[i] = v;
    else ((float *)x)[i] = (float)v;
}

static double log_add(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    if (a != a || b != b) return NAN;
    return high == low && isinf(high) ? high : high + log1p(exp(low - high));
}

static void log_line(void *ctx, int64_t line)
{
    const ScanArgs *a = ctx;
    const int64_t step = a->inner, from = line / step * a->n * step + line % step;
    double y = -INFINITY;
    for (int64_t i = 0; i < a->n; i++)
        put(a->dtype, a->y, from + i * step, y = log_add(y, get(a->dtype, a->x, from + i * step)));
}

/* y never falls, so e^(y_i - y_(i+1)) <= 1 and s_i = g_i + s_(i+1) e^(y_i - y_(i+1)), dx_i = s_i e^(x_i -
 * y_i) neither overflows nor cancels. */
static void log_grad_line(void *ctx, int64_t line)
{
    const ScanArgs *a = ctx;
    const int64_t step = a->inner, from = line / step * a->n * step + line % step;
    double sum = 0, next = INFINITY;
    for (int64_t i = a->n - 1; i >= 0; i--) {
        const int64_t at = from + i * step;
        const double x = get(a->dtype, a->x, at), y = get(a->dtype, a->y, at);
        sum = get(a->dtype, a->g, at) + (y == next ? sum : sum * exp(y - next));
        put(a->dtype, a->dx, at, x == -INFINITY ? 0 : sum * exp(x - y));
        next = y;
    }
}

/* ---- slots ----------------------------------------------------------------------------------- */

static int by_tiles(ScanArgs *a, int work, void (*tile)(void *, int64_t))
{
    const int64_t count = a->outer * a->n * a->inner;
    if (count) parallel_for(a->outer * tiles_across(a->inner), cpu_threads(count * work), tile, a);
    return 0;
}

static int by_lines(ScanArgs *a, void (*line)(void *, int64_t))
{
    const int64_t lines = a->outer * a->inner;
    parallel_for(lines, cpu_threads(lines * a->n * 16), line, a);
    return 0;
}

int cpu_scan(ScanArgs *a)
{
    if (a->kind == SCAN_SUM) return by_tiles(a, 2, sum_tile);
    return a->kind == SCAN_LOGSUMEXP ? by_lines(a, log_line) : by_tiles(a, 4, extreme_tile);
}

int cpu_scan_grad(ScanArgs *a) { return by_lines(a, log_grad_line); }
