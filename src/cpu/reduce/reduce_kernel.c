/* reduce_kernel.c - the loops of reductions for one instruction set.
 *
 * Compiled with -DISA=avx512, avx2 or base and the matching -march. */
#include "reduce_kernel.h"
#include "cpu/elementwise/vecmath.h"

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

#define T float
#define TYPE f32
#include "reduce_fold.h"
#undef T
#undef TYPE

#define T double
#define TYPE f64
#include "reduce_fold.h"
