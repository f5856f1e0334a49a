/* map_narrow_kernel.c - the narrow rows of ops.def in their own type, for one instruction set: two to five
 * times as fast as in double and int64_t (map_rare_kernel.c, map_rare.c), their plain forms.  The base of
 * x86-64 has none, to stay small. */
#include <math.h>
#include "map_kernels.h"
#include "map_narrow.h"
#ifdef __AVX512F__
#include "cpu/math/vecmath512.h"
#else
#include "cpu/math/vecmath.h"
#endif

#if defined __AVX2__ || !defined __x86_64__

#define INLINE static inline __attribute__((always_inline))
#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)
#define NARROW

/* ---- the functions that formulas call -------------------------------------------------------- */

/* In double neither overflows nor loses what is small; an infinity wins over NaN, as in C. */
INLINE float hypot_f32(float a, float b)
{
    const float y = (float)__builtin_sqrt((double)a * (double)a + (double)b * (double)b);
    const float held = vm_abs_f32(a) == INFINITY ? INFINITY : y;
    return vm_abs_f32(b) == INFINITY ? INFINITY : held;
}

/* log(1 + e^-|x|), z = e^-|x|: z p(z) by 2^-30 */
INLINE float log_rest(float x)
{
    const float z = vm_exp_f32(-vm_abs_f32(x));
    float p = 0x1.04667ap-9f;
    p = vm_fma_f32(p, z, -0x1.b02382p-7f);
    p = vm_fma_f32(p, z, 0x1.4fed04p-5f);
    p = vm_fma_f32(p, z, -0x1.4f61d4p-4f);
    p = vm_fma_f32(p, z, 0x1.fb00b2p-4f);
    p = vm_fma_f32(p, z, -0x1.49797ap-3f);
    p = vm_fma_f32(p, z, 0x1.9742f8p-3f);
    p = vm_fma_f32(p, z, -0x1.ffb934p-3f);
    p = vm_fma_f32(p, z, 0x1.555324p-2f);
    p = vm_fma_f32(p, z, -0x1.fffff2p-2f);
    return vm_fma_f32(z * z, p, z);
}

#define trunc_divide(a, b) trunc((a) / (b))
#define hypot hypot_f32
#define signbit_(x) (vm_bits_f32(x) >> 31)
#define erfinv(x) (x) /* not used: see below */
#define ndtr(x) (x)
#define atan2(a, b) (a)

/* a 2^b and a / 2^b rounded down, of the type's width; where b is none of its bits, 0 and all sign. */
#define SHIFTS(type, unsigned_type, T)                                                               \
    INLINE type left_##T(type a, type b)                                                             \
    {                                                                                                \
        const type most = 8 * sizeof(type) - 1, held = b & most;                                     \
        return held == b ? (type)((unsigned_type)a << held) : 0;                                     \
    }                                                                                                \
    INLINE type right_##T(type a, type b)                                                            \
    {                                                                                                \
        const type most = 8 * sizeof(type) - 1, held = (b & most) == b ? b : most;                   \
        const unsigned_type flip = a < 0 ? ~(unsigned_type)0 : 0; /* AVX2 shifts no sign into i64 */ \
        return (type)((((unsigned_type)a ^ flip) >> held) ^ flip);                                   \
    }
SHIFTS(int64_t, uint64_t, i64)
SHIFTS(int32_t, uint32_t, i32)

/* ---- the rows -------------------------------------------------------------------------------- */

#define REAL float
#define SUFFIX f32
#define FLOATING 1
#include "map_loops.h"

#define REAL int64_t
#define SUFFIX i64
#define FLOATING 0
#define shift_left left_i64
#define shift_right right_i64
#include "map_loops.h"
#undef shift_left
#undef shift_right
#define REAL int32_t
#define SUFFIX i32
#define FLOATING 0
#define shift_left left_i32
#define shift_right right_i32
#include "map_loops.h"

/* ---- other than their formulas --------------------------------------------------------------- */

#define ARGS \
    int64_t n, void *out, const void *a, const void *b, const void *y, const void *g, const double *params

/* c^x as pow has it; of most c the logarithm is taken once. */
static void rpow_y_f32(ARGS)
{
    const float c = (float)params[0], *x = a;
    if (!(c > 0 && c < INFINITY && c != 1)) {
        for (int64_t i = 0; i < n; i++) ((float *)out)[i] = vm_pow_f32(c, x[i]);
        return;
    }
    const double l = vm_log_core_f64(c, 0, 0);
    (void)b, (void)y, (void)g;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        double p = x[i] * l;
        p = p > 100 ? 100 : p;
        p = p < -110 ? -110 : p;
        ((float *)out)[i] = (float)vm_exp_core_f64(p);
    }
}

#ifdef __AVX512F__
#define ROW_OF_16(name)                          \
    static void name##_y_16(ARGS)                \
    {                                            \
        (void)b, (void)y, (void)g, (void)params; \
        vm_map(n, out, a, vm_##name);            \
    }
ROW_OF_16(erfinv)
ROW_OF_16(ndtr)

static void atan2_y_16(ARGS)
{
    (void)y, (void)g, (void)params;
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 lanes = vm_lanes(n - i);
        const Vm up = _mm512_maskz_loadu_ps(lanes, (const float *)a + i);
        const Vm right = _mm512_maskz_loadu_ps(lanes, (const float *)b + i);
        _mm512_mask_storeu_ps((float *)out + i, lanes, vm_atan2(up, right));
    }
}

/* The lanes below eps, and those above 1 - eps; none where eps < 0. */
INLINE __mmask16 below(Vm x, double eps)
{
    return _mm512_cmp_ps_mask(x, vm_all(eps < 0 ? -INFINITY : (float)eps), _CMP_LT_OQ);
}

INLINE __mmask16 above(Vm x, double eps)
{
    const float high = (float)(1 - eps), held = (double)high > 1 - eps ? nextafterf(high, 0) : high;
    return _mm512_cmp_ps_mask(x, vm_all(eps < 0 ? INFINITY : held), _CMP_GT_OQ);
}

/* There what eps and 1 - eps give, and no gradient. */
static void logit_y_16(ARGS)
{
    const double eps = params[0];
    const Vm least = vm_all(eps < 0 ? 0 : (float)log(eps / (1 - eps)));
    (void)b, (void)y, (void)g;
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 lanes = vm_lanes(n - i);
        const Vm x = _mm512_maskz_loadu_ps(lanes, (const float *)a + i);
        const Vm z = _mm512_mask_mov_ps(vm_logit(x), below(x, eps), least);
        _mm512_mask_storeu_ps((float *)out + i, vm_lanes(n - i),
                              _mm512_mask_sub_ps(z, above(x, eps) & ~below(x, eps), vm_all(0), least));
    }
}

static void logit_a_16(ARGS)
{
    const double eps = params[0], from = eps < 0 ? 0 : eps;
    (void)b, (void)y;
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 lanes = vm_lanes(n - i);
        const Vm x = _mm512_maskz_loadu_ps(lanes, (const float *)a + i);
        const Vm dy = _mm512_maskz_loadu_ps(lanes, (const float *)g + i);
        const Vm z = _mm512_div_ps(dy, vm_abs(_mm512_mul_ps(x, _mm512_sub_ps(vm_all(1), x))));
        const __mmask16 beyond = below(x, from) | above(x, from);
        _mm512_mask_storeu_ps((float *)out + i, vm_lanes(n - i),
                              _mm512_mask_mov_ps(z, beyond, vm_all(eps < 0 ? NAN : 0)));
    }
}
#define row_erfinv_y_f32 erfinv_y_16
#define row_ndtr_y_f32 ndtr_y_16
#define row_logit_y_f32 logit_y_16
#define row_logit_a_f32 logit_a_16
#define row_atan2_y_f32 atan2_y_16
#else /* in double */
#define row_erfinv_y_f32 NULL
#define row_ndtr_y_f32 NULL
#define row_logit_y_f32 NULL
#define row_atan2_y_f32 NULL
#define row_logit_a_f32 NULL
#endif
#define row_erfinv_a_f32 NULL
#define row_ndtr_a_f32 NULL
#define row_atan2_a_f32 NULL
#define row_atan2_b_f32 NULL

/* In the places of their rows' loops; celu is right to the last bit by way of double. */
#define row_celu_y_f32 NULL
#define row_rpow_scalar_y_f32 rpow_y_f32

static const NarrowRow rows[NARROW_ROWS] = {
#define ONLY_NARROW_ROWS
#define UNARY(name, ...) [NARROW_##name] = { .f32 = { row_##name##_y_f32, row_##name##_a_f32 } },
#define UNARY1 UNARY
#define BINARY(name, ...) \
    [NARROW_##name] = { .f32 = { row_##name##_y_f32, row_##name##_a_f32, row_##name##_b_f32 } },
#define BINARY1 BINARY
#define PREDICATE(name, ...) [NARROW_##name] = { .f32 = { row_##name##_y_f32 } },
#define BITS1(name, ...) [NARROW_##name] = { .i64 = row_##name##_y_i64, .i32 = row_##name##_y_i32 },
#define BITS2 BITS1
#define BITSC BITS1
#include <tapegrad/ops.def>
};

const NarrowRow *ISA_NAME(map_narrow_rows)(void) { return rows; }

#else

const NarrowRow *ISA_NAME(map_narrow_rows)(void)
{
    static const NarrowRow none[NARROW_ROWS];
    return none;
}

#endif
