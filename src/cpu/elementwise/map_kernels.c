/* map_kernels.c - ops.def's fast rows as dense loops, for one instruction set. */
#include <math.h>
#include <tapegrad/op_row.h>
#include "map_kernels.h"
#ifdef __AVX512F__
#include "cpu/math/vecmath512.h"
#else
#include "cpu/math/vecmath.h"
#endif

#pragma GCC diagnostic ignored "-Wtype-limits" /* x < 0 on u8: the formulas are type-generic */

#define INLINE static inline __attribute__((always_inline))
#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)

#define REAL float
#define SUFFIX f32
#define FLOATING 1
#include "map_loops.h"
#define REAL double
#define SUFFIX f64
#define FLOATING 1
#include "map_loops.h"

/* Integers wait for memory: on AVX-512 their loops are AVX2's (cpu_map). */
#if !defined __AVX512F__ || defined ONE_ISA
#define INTEGERS
#define REAL int64_t
#define SUFFIX i64
#define FLOATING 0
#include "map_loops.h"
#define REAL int32_t
#define SUFFIX i32
#define FLOATING 0
#include "map_loops.h"
#define REAL uint8_t
#define SUFFIX u8
#define FLOATING 0
#include "map_loops.h"
#endif

/* ---- faster than their formulas --------------------------------------------------------------- */

/* test_vecmath and test_rows hold them to the formulas of their rows. */
#define ARGS \
    int64_t n, void *out, const void *a, const void *b, const void *y, const void *g, const double *params

/* gelu by one polynomial and an exponential instead of two and one; its gradient instead of two and two. */
static void gelu_y_f32(ARGS)
{
    const float *x = a;
    (void)b, (void)y, (void)g, (void)params;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float above = vm_normal_above_f32(x[i]), held = x[i] > 6 ? 6 : x[i]; /* inf 0 is NaN */
        ((float *)out)[i] = x[i] > 0 ? vm_fma_f32(-held, above, x[i]) : x[i] * above;
    }
}

static void gelu_a_f32(ARGS)
{
    const float *x = a, *dy = g;
    (void)b, (void)y, (void)params;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        float density, above = vm_normal_f32(x[i], &density);
        ((float *)out)[i] = dy[i] * ((x[i] > 0 ? 1 - above : above) + x[i] * density);
    }
}

#ifdef __AVX512F__
/* y, but by the C library in the lanes that are hard. */
static __attribute__((noinline, cold)) Vd with_hard(Vd y, Vd a, Vd b, unsigned hard)
{
    double base[8], power[8], result[8];
    _mm512_storeu_pd(base, a), _mm512_storeu_pd(power, b), _mm512_storeu_pd(result, y);
    for (; hard; hard &= hard - 1) {
        const int i = __builtin_ctz(hard);
        result[i] = vm_pow_f64(base[i], power[i]);
    }
    return _mm512_loadu_pd(result);
}

void ISA_NAME(pow_lines)(int64_t n, double *out, const double *a, int step_a, const double *b, int step_b)
{
    for (int64_t i = 0; i < n; i += 8) {
        const __mmask8 lanes = (__mmask8)(n - i < 8 ? (1u << (n - i)) - 1 : 255);
        const Vd x = step_a ? _mm512_maskz_loadu_pd(lanes, a + i) : vd_all(*a);
        const Vd y = step_b ? _mm512_maskz_loadu_pd(lanes, b + i) : vd_all(*b);
        __mmask8 hard;
        Vd r = vd_pow(x, y, &hard);
        if (hard & lanes) r = with_hard(r, x, y, hard & lanes);
        _mm512_mask_storeu_pd(out + i, lanes, r);
    }
}

static void pow_y_8(ARGS)
{
    (void)y, (void)g, (void)params;
    ISA_NAME(pow_lines)(n, out, a, 1, b, 1);
}

static void pow_scalar_y_8(ARGS)
{
    (void)b, (void)y, (void)g;
    ISA_NAME(pow_lines)(n, out, a, 1, params, 0);
}
#define row_pow_y_f64 pow_y_8
#define row_pow_scalar_y_f64 pow_scalar_y_8
#endif

/* x^3 and its gradient, and that of x^2, by products: in double, so that f32 is rounded once. */
#define SMALL_POWERS(type, T)                                                      \
    static void power_y_##T(ARGS)                                                  \
    {                                                                              \
        const type *x = a;                                                         \
        if (params[0] != 3) {                                                      \
            row_pow_scalar_y_##T(n, out, a, b, y, g, params);                      \
            return;                                                                \
        }                                                                          \
        INDEPENDENT                                                                \
        for (int64_t i = 0; i < n; i++)                                            \
            ((type *)out)[i] = (type)((double)x[i] * (double)x[i] * (double)x[i]); \
    }                                                                              \
    static void power_a_##T(ARGS)                                                  \
    {                                                                              \
        const type *x = a, *dy = g;                                                \
        if (params[0] != 3) {                                                      \
            row_pow_scalar_a_##T(n, out, a, b, y, g, params);                      \
            return;                                                                \
        }                                                                          \
        INDEPENDENT                                                                \
        for (int64_t i = 0; i < n; i++)                                            \
            ((type *)out)[i] = dy[i] * (3 * (type)((double)x[i] * (double)x[i]));  \
    }
SMALL_POWERS(float, f32)
SMALL_POWERS(double, f64)
#undef row_pow_scalar_y_f64

#ifdef __AVX512F__
#define ROW_OF_16(name)                          \
    static void name##_y_16(ARGS)                \
    {                                            \
        (void)b, (void)y, (void)g, (void)params; \
        vm_map(n, out, a, vm_##name);            \
    }
ROW_OF_16(sqrt)
ROW_OF_16(exp)
ROW_OF_16(log)
ROW_OF_16(log2)
ROW_OF_16(log10)
ROW_OF_16(tanh)
ROW_OF_16(erfc)
#define ROW_OF_8(name)                           \
    static void name##_y_8(ARGS)                 \
    {                                            \
        (void)b, (void)y, (void)g, (void)params; \
        vd_map(n, out, a, vd_##name);            \
    }
ROW_OF_8(sqrt)
ROW_OF_8(exp)
ROW_OF_8(exp2)
ROW_OF_8(log)
ROW_OF_8(log2)
ROW_OF_8(log10)
ROW_OF_8(atan)
ROW_OF_8(erf)
ROW_OF_8(erfc)

/* y, but of AVX2's loops in the lanes that are far. */
static __attribute__((noinline)) Vm with_far(Vm x, Vm y, __mmask16 far, OpRowLoop loop)
{
    float v[16], result[16];
    _mm512_storeu_ps(v, x);
    loop(16, result, v, NULL, NULL, NULL, NULL);
    return _mm512_mask_loadu_ps(y, far, result);
}

static __attribute__((noinline)) Vd with_far_8(Vd x, Vd y, __mmask8 far, OpRowLoop loop)
{
    double v[8], result[8];
    _mm512_storeu_pd(v, x);
    loop(8, result, v, NULL, NULL, NULL, NULL);
    return _mm512_mask_loadu_pd(y, far, result);
}

#ifdef ONE_ISA
#define FAR_LOOP(name, type, TYPE) row_##name##_y_##type
#else
#define FAR_LOOP(name, type, TYPE) map_kernels_avx2()->forward[ROW_##name][MAP_##TYPE]
#endif
#define SINE_OF_16(name)                                                                  \
    INLINE Vm name##_any(Vm x)                                                            \
    {                                                                                     \
        const __mmask16 far = _mm512_cmp_ps_mask(vm_abs(x), vm_all(VM_NEAR), _CMP_GT_OQ); \
        const Vm near = vm_##name(x);                                                     \
        return far ? with_far(x, near, far, FAR_LOOP(name, f32, F32)) : near;             \
    }                                                                                     \
    static void name##_y_16(ARGS)                                                         \
    {                                                                                     \
        (void)b, (void)y, (void)g, (void)params;                                          \
        vm_map(n, out, a, name##_any);                                                    \
    }
SINE_OF_16(sin)
SINE_OF_16(cos)
SINE_OF_16(tan)
#define SINE_OF_8(name)                                                                  \
    INLINE Vd name##_any_8(Vd x)                                                         \
    {                                                                                    \
        const __mmask8 far = _mm512_cmp_pd_mask(vd_abs(x), vd_all(VD_NEAR), _CMP_GT_OQ); \
        const Vd near = vd_##name(x);                                                    \
        return far ? with_far_8(x, near, far, FAR_LOOP(name, f64, F64)) : near;          \
    }                                                                                    \
    static void name##_y_8(ARGS)                                                         \
    {                                                                                    \
        (void)b, (void)y, (void)g, (void)params;                                         \
        vd_map(n, out, a, name##_any_8);                                                 \
    }
SINE_OF_8(sin)
SINE_OF_8(cos)
SINE_OF_8(tan)
#define row_sqrt_y_f64 sqrt_y_8
#define row_exp_y_f64 exp_y_8
#define row_exp2_y_f64 exp2_y_8
#define row_log_y_f64 log_y_8
#define row_log2_y_f64 log2_y_8
#define row_log10_y_f64 log10_y_8
#define row_atan_y_f64 atan_y_8
#define row_erf_y_f64 erf_y_8
#define row_erfc_y_f64 erfc_y_8
#define row_sin_y_f64 sin_y_8
#define row_cos_y_f64 cos_y_8
#define row_tan_y_f64 tan_y_8
#define row_sin_y_f32 sin_y_16
#define row_cos_y_f32 cos_y_16
#define row_tan_y_f32 tan_y_16
#define row_sqrt_y_f32 sqrt_y_16
#define row_exp_y_f32 exp_y_16
#define row_log_y_f32 log_y_16
#define row_log2_y_f32 log2_y_16
#define row_log10_y_f32 log10_y_16
#define row_tanh_y_f32 tanh_y_16
#define row_erfc_y_f32 erfc_y_16
#endif

/* In the places of their rows' loops. */
#define row_gelu_y_f32 gelu_y_f32
#define row_gelu_a_f32 gelu_a_f32
#define row_pow_scalar_y_f32 power_y_f32
#define row_pow_scalar_y_f64 power_y_f64
#define row_pow_scalar_a_f32 power_a_f32
#define row_pow_scalar_a_f64 power_a_f64

/* In the order of MAP_F32, ...  */
#define LOOPS_ROW_FLOATS(f) \
    {                       \
        f##_f32, f##_f64    \
    }
#define LOOPS_ROW_REALS(f) LOOPS_ROW_FLOATS(f)
#ifdef INTEGERS
#define LOOPS_ROW_NUMBERS(f)                       \
    {                                              \
        f##_f32, f##_f64, f##_i64, f##_i32, f##_u8 \
    }
#else
#define LOOPS_ROW_NUMBERS(f) LOOPS_ROW_FLOATS(f)
#endif
#define LOOPS_ROW_WIDENED(f) LOOPS_ROW_NUMBERS(f)
#define LOOPS_ROW_ANY(f) LOOPS_ROW_NUMBERS(f)

static const MapKernels kernels = {
    .forward = {
#define ONLY_FAST_ROWS
#define UNARY(name, types, ...) [ROW_##name] = LOOPS_##types(row_##name##_y),
#define UNARY1 UNARY
#define UNARY2 UNARY
#define BINARY UNARY
#define BINARY1 UNARY
#define COMPARE(name, ...) [ROW_##name] = LOOPS_ROW_ANY(row_##name##_y),
#define PREDICATE COMPARE
#include <tapegrad/ops.def>
    },
    .gradient = {
#define ONLY_FAST_ROWS
#define UNARY(name, ...) [ROW_##name] = { LOOPS_ROW_FLOATS(row_##name##_a) },
#define UNARY1 UNARY
#define UNARY2 UNARY
#define BINARY(name, ...) \
    [ROW_##name] = { LOOPS_ROW_FLOATS(row_##name##_a), LOOPS_ROW_FLOATS(row_##name##_b) },
#define BINARY1 BINARY
#include <tapegrad/ops.def>
    },
    .to_bool = {
#define ONLY_FAST_ROWS
#define COMPARE(name, ...) [ROW_##name] = true,
#define PREDICATE(name, ...) [ROW_##name] = true,
#include <tapegrad/ops.def>
    },
};

const MapKernels *ISA_NAME(map_kernels)(void) { return &kernels; }
