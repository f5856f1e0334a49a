/* reduce_kernel.c - the loops of reductions for one instruction set.
 *
 * Compiled with -DISA=avx512, avx2 or base and the matching -march. */
#include <stdbool.h>
#include "reduce_kernel.h"
#include "cpu/math/vecmath.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define FORCE_INLINE static inline __attribute__((always_inline))
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define N(name) JOIN(name, TYPE)
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#if defined __x86_64__ && !defined __AVX2__ /* small code: its registers would not do for such steps */
#define UNROLL_LONG
#else
#define UNROLL_LONG UNROLL
#endif

#if defined __AVX512F__
enum { BYTES = 64 };
#elif defined __AVX2__
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
enum { WIDTH = BYTES / 8, VECTORS = FOLD_LANES / WIDTH };

typedef double V __attribute__((vector_size(BYTES)));
typedef int64_t I __attribute__((vector_size(BYTES)));
typedef double U __attribute__((vector_size(BYTES), aligned(8), may_alias));
typedef float Half __attribute__((vector_size(BYTES / 2), aligned(4), may_alias));

#if defined __AVX512F__ /* gcc makes three instructions of the general form */
FORCE_INLINE V load_f32(const float *p) { return (V)_mm512_cvtps_pd(_mm256_loadu_ps(p)); }
#elif defined __AVX2__
FORCE_INLINE V load_f32(const float *p) { return (V)_mm256_cvtps_pd(_mm_loadu_ps(p)); }
#else
FORCE_INLINE V load_f32(const float *p) { return __builtin_convertvector(*(const Half *)p, V); }
#endif
FORCE_INLINE V load_f64(const double *p) { return (V) * (const U *)p; }
FORCE_INLINE void store(double *p, V v) { *(U *)p = (U)v; }
FORCE_INLINE V all(double x) { return (V){ 0 } + x; }
FORCE_INLINE V choose(I mask, V a, V b) { return (V)((mask & (I)a) | (~mask & (I)b)); }
FORCE_INLINE V larger(V a, V v) { return choose((I)(v > a) | (I)(v != v), v, a); }
FORCE_INLINE V smaller(V a, V v) { return choose((I)(v < a) | (I)(v != v), v, a); }
FORCE_INLINE V magnitude(V v) { return (V)((I)v & (((I){ 0 }) + INT64_MAX)); }

/* What a fold does with an element, and how two partial results come together: once for vectors, once for one
 * value. */
FORCE_INLINE V step(int fold, V a, V v, V shift)
{
    switch (fold) {
    case FOLD_SUM: return a + v;
    case FOLD_PROD: return a * v;
    case FOLD_MAX: return larger(a, v);
    case FOLD_MIN: return smaller(a, v);
    case FOLD_ABS: return a + magnitude(v);
    case FOLD_SQUARE: v -= shift; return a + v * v;
    case FOLD_MAX_ABS: return larger(a, magnitude(v));
    case FOLD_MIN_ABS: return smaller(a, magnitude(v));
    default: return a + choose((I)(v != 0), all(1), all(0));
    }
}

FORCE_INLINE double step1(int fold, double a, double v, double shift)
{
    double m = v < 0 ? -v : v;
    switch (fold) {
    case FOLD_SUM: return a + v;
    case FOLD_PROD: return a * v;
    case FOLD_MAX: return v > a || v != v ? v : a;
    case FOLD_MIN: return v < a || v != v ? v : a;
    case FOLD_ABS: return a + m;
    case FOLD_SQUARE: v -= shift; return a + v * v;
    case FOLD_MAX_ABS: return m > a || m != m ? m : a;
    case FOLD_MIN_ABS: return m < a || m != m ? m : a;
    default: return a + (v != 0);
    }
}

/* The fold that joins partial results of this one. */
FORCE_INLINE int joining(int fold)
{
    switch (fold) {
    case FOLD_PROD:
    case FOLD_MAX:
    case FOLD_MIN: return fold;
    case FOLD_MAX_ABS: return FOLD_MAX;
    case FOLD_MIN_ABS: return FOLD_MIN;
    default: return FOLD_SUM;
    }
}

/* Calls f with a fold that is a constant to the compiler. */
#define FOLD_SWITCH(fold, f, ...)                           \
    switch (fold) {                                         \
    case FOLD_SUM: f(FOLD_SUM, __VA_ARGS__); break;         \
    case FOLD_PROD: f(FOLD_PROD, __VA_ARGS__); break;       \
    case FOLD_MAX: f(FOLD_MAX, __VA_ARGS__); break;         \
    case FOLD_MIN: f(FOLD_MIN, __VA_ARGS__); break;         \
    case FOLD_ABS: f(FOLD_ABS, __VA_ARGS__); break;         \
    case FOLD_SQUARE: f(FOLD_SQUARE, __VA_ARGS__); break;   \
    case FOLD_MAX_ABS: f(FOLD_MAX_ABS, __VA_ARGS__); break; \
    case FOLD_MIN_ABS: f(FOLD_MIN_ABS, __VA_ARGS__); break; \
    default: f(FOLD_COUNT, __VA_ARGS__); break;             \
    }

FORCE_INLINE void join_lanes(int fold, const double *lanes, double *out)
{
    V a[VECTORS];
    double sum[WIDTH];
    UNROLL for (int i = 0; i < VECTORS; i++) a[i] = load_f64(lanes + i * WIDTH);
    UNROLL for (int half = VECTORS / 2; half > 0; half /= 2) UNROLL for (int i = 0; i < half; i++) a[i] =
        step(fold, a[i], a[i + half], all(0));
    store(sum, a[0]);
    UNROLL for (int half = WIDTH / 2; half > 0; half /= 2) UNROLL for (int i = 0; i < half; i++) sum[i] =
        step1(fold, sum[i], sum[i + half], 0);
    *out = sum[0];
}

double ISA_NAME(fold_lanes)(int fold, const double *lanes)
{
    double sum;
    FOLD_SWITCH(joining(fold), join_lanes, lanes, &sum)
    return sum;
}

FORCE_INLINE void join_columns(int fold, double *lanes, int used, int columns)
{
    for (int half = FOLD_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half && i + half < used; i++) {
            double *to = lanes + i * FOLD_COLUMNS, *from = lanes + (i + half) * FOLD_COLUMNS;
            for (int c = 0; c < columns; c += WIDTH) /* past the last column there are unused lanes */
                store(to + c, step(fold, load_f64(to + c), load_f64(from + c), all(0)));
        }
}

void ISA_NAME(fold_lane_columns)(int fold, double *lanes, int used, int columns, double *out)
{
    FOLD_SWITCH(joining(fold), join_columns, lanes, used, columns)
    memcpy(out, lanes, (size_t)columns * sizeof *out);
}

/* Extremes of floats need no doubles: twice the lanes in a vector.  The instruction keeps the second operand
 * where neither is more and where one is NaN; NaNs of x are noted apart. */
#if defined __AVX512F__
enum { FLOATS = 16 };
typedef __m512 F;
typedef __mmask16 Seen;
#define LOAD_F _mm512_loadu_ps
#define STORE_F _mm512_storeu_ps
#define MAX_F _mm512_max_ps
#define MIN_F _mm512_min_ps
#define SEE(seen, v) ((Seen)((seen) | _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q)))
#define WITH_NAN(seen, v) _mm512_mask_blend_ps(seen, v, _mm512_set1_ps(__builtin_nanf("")))
#define NOTHING 0
#elif defined __AVX2__
enum { FLOATS = 8 };
typedef __m256 F;
typedef __m256 Seen;
#define LOAD_F _mm256_loadu_ps
#define STORE_F _mm256_storeu_ps
#define MAX_F _mm256_max_ps
#define MIN_F _mm256_min_ps
#define SEE(seen, v) _mm256_or_ps(seen, _mm256_cmp_ps(v, v, _CMP_UNORD_Q))
#define WITH_NAN(seen, v) _mm256_blendv_ps(v, _mm256_set1_ps(__builtin_nanf("")), seen)
#define NOTHING _mm256_setzero_ps()
#endif
#ifdef LOAD_F
/* Whole rows of FOLD_LANES; returns how many elements that were. */
FORCE_INLINE int64_t extreme_rows(bool max, double *lanes, const float *x, int64_t n)
{
    enum { COUNT = FOLD_LANES / FLOATS };
    float narrow[FOLD_LANES];
    F a[COUNT];
    Seen seen[COUNT];
    int64_t i = 0;
    for (int k = 0; k < FOLD_LANES; k++) narrow[k] = (float)lanes[k];
    UNROLL for (int k = 0; k < COUNT; k++) a[k] = LOAD_F(narrow + k * FLOATS), seen[k] = NOTHING;
    for (; i + FOLD_LANES <= n; i += FOLD_LANES) UNROLL for (int k = 0; k < COUNT; k++)
        {
            const F v = LOAD_F(x + i + k * FLOATS);
            a[k] = max ? MAX_F(v, a[k]) : MIN_F(v, a[k]);
            seen[k] = SEE(seen[k], v);
        }
    UNROLL for (int k = 0; k < COUNT; k++) STORE_F(narrow + k * FLOATS, WITH_NAN(seen[k], a[k]));
    for (int k = 0; k < FOLD_LANES; k++) lanes[k] = (double)narrow[k];
    return i;
}
#else
FORCE_INLINE int64_t extreme_rows(bool max, double *lanes, const float *x, int64_t n)
{
    return (void)max, (void)lanes, (void)x, (void)n, 0;
}
#endif

/* What fold_columns and fold_lane_columns do together, of few rows: lanes stay in the first-level cache.
 * Some vectors side by side: a whole line of the cache. */
FORCE_INLINE void rows_of(int vectors, int fold, const float *x, int64_t rows, int64_t row_stride,
                          const double *shift, double first, double *out)
{
    const int used = rows < FOLD_LANES ? (int)rows : FOLD_LANES;
    V lane[FOLD_LANES][4];
    for (int k = 0; k < used; k++) {
        V a[4];
        UNROLL for (int v = 0; v < vectors; v++) a[v] = all(first);
        for (int64_t r = k; r < rows; r += FOLD_LANES)
            UNROLL for (int v = 0; v < vectors; v++) a[v] =
                step(fold, a[v], load_f32(x + r * row_stride + v * WIDTH), load_f64(shift + v * WIDTH));
        UNROLL for (int v = 0; v < vectors; v++) lane[k][v] = a[v];
    }
    for (int half = FOLD_LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half && k + half < used; k++)
            UNROLL for (int v = 0; v < vectors; v++) lane[k][v] =
                step(joining(fold), lane[k][v], lane[k + half][v], all(0));
    UNROLL for (int v = 0; v < vectors; v++) store(out + v * WIDTH, lane[0][v]);
}

/* At the end some columns are done again; fewer than a vector as it would be done. */
FORCE_INLINE void few_rows(int fold, const float *x, int64_t rows, int64_t row_stride, int columns,
                           const double *shift, double first, double *out)
{
    const int many = WIDTH > 4 ? 2 : 4, wide = many * WIDTH;
    int c = 0;
    for (; c + wide <= columns; c += wide)
        rows_of(many, fold, x + c, rows, row_stride, shift + c, first, out + c);
    for (; c < columns; c += WIDTH) {
        const int at = c + WIDTH <= columns ? c : columns - WIDTH;
        rows_of(1, fold, x + at, rows, row_stride, shift + at, first, out + at);
    }
}

void ISA_NAME(sum_rows_f32)(const float *x, int64_t rows, int64_t row_stride, int64_t n, double *sums)
{
    for (int64_t r = 0; r < rows; r++, x += row_stride) {
        V a[VECTORS];
        float last[FOLD_LANES] = { 0 }; /* no lane is -0, so adding 0 changes none */
        int64_t i = 0;
        UNROLL for (int k = 0; k < VECTORS; k++) a[k] = all(0);
        for (; i + FOLD_LANES <= n; i += FOLD_LANES)
            UNROLL for (int k = 0; k < VECTORS; k++) a[k] += load_f32(x + i + k * WIDTH);
        memcpy(last, x + i, (size_t)(n - i) * sizeof *x);
        UNROLL for (int k = 0; k < VECTORS; k++) a[k] += load_f32(last + k * WIDTH);
        UNROLL for (int half = VECTORS / 2; half > 0; half /= 2) UNROLL for (int k = 0; k < half; k++) a[k] +=
            a[k + half];
        double sum[WIDTH];
        store(sum, a[0]);
        UNROLL for (int half = WIDTH / 2; half > 0; half /= 2) UNROLL for (int k = 0; k < half; k++) sum[k] +=
            sum[k + half];
        sums[r] = sum[0];
    }
}

/* e^(p log |x|): the exponent's rounding, of 2^-53 times its size, is the error. */
void ISA_NAME(short_pow)(double *y, const double *x, int64_t n, double p)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double a = vm_abs_f64(x[i]), normal = a >= 0x1p-1022 && a < INFINITY ? a : 1;
        const double e = p * vm_log_core_f64(normal, 0, 0);
        const double held = vm_exp_core_f64(e > 708 ? 708 : e < -708 ? -708 : e);
        double v = e > 708 ? INFINITY : e < -708 ? 0 : held;
        v = a < 0x1p-1022 ? 0 : v;
        y[i] = a < INFINITY ? v : p > 0 ? a : a != a ? a : 0;
    }
}

bool ISA_NAME(fold_few_rows_f32)(int fold, const float *x, int64_t rows, int64_t row_stride, int columns,
                                 const double *shift, double first, double *out)
{
#if defined __x86_64__ && !defined __AVX2__
    columns = 0; /* small code */
#endif
    if (columns < WIDTH) return false;
    if (fold == FOLD_SUM) few_rows(FOLD_SUM, x, rows, row_stride, columns, shift, first, out);
    else if (fold == FOLD_SQUARE) few_rows(FOLD_SQUARE, x, rows, row_stride, columns, shift, first, out);
    else return false;
    return true;
}

#define T float
#define TYPE f32
#include "reduce_fold.h"
#undef T
#undef TYPE

#define T double
#define TYPE f64
#include "reduce_fold.h"
