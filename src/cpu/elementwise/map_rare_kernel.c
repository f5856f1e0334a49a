/* map_rare_kernel.c - the rare rows of ops.def on floats: in double, one loop each, for one instruction set.
 *
 * The driver, map.c, converts.  In double the result of f32 operands is right to its last bit nearly always.
 *
 * fmod, atan2, hypot, lgamma, its derivatives and erfinv have fast forms that are right on part of their
 * domain (hard_fmod and its kin say where they are not).  Each block is looked over before it is written (out
 * may be a): one with a hard element is computed by a scalar loop, the others by the operations of the vector
 * loop, so that their bits do not depend on their neighbours. */
#include "map_kernels.h"
#include "map_rare.h"
#include "cpu/math/special_fast.h"
#include "cpu/math/vecmath.h"
#ifdef NO_UNROLL
#define ROUNDED_STEPS
#elif defined __clang__
#define ROUNDED_STEPS _Pragma("clang loop unroll(full)")
#else
#define ROUNDED_STEPS _Pragma("GCC unroll 32")
#endif
#include "cpu/math/special_rounded.h"

#define INLINE static inline __attribute__((always_inline))
#define R(c) ((double)(c))

/* ---- the functions that formulas call -------------------------------------------------------- */

INLINE double larger(double a, double b) { return a > b ? a : b; }
INLINE double smaller(double a, double b) { return a > b ? b : a; }
INLINE double sign_(double x) { return (double)(x > 0) - (double)(x < 0); }
INLINE double sigmoid_(double x) { return 1 / (1 + vm_exp_f64(-x)); }
INLINE double log_rest(double x) { return vm_log1p_f64(vm_exp_f64(-vm_abs_f64(x))); }
INLINE double xlogy_(double a, double b) { return b != b ? b : a == 0 ? 0 : a * vm_log_f64(b); }
INLINE double xlog1py_(double a, double b) { return b != b ? b : a == 0 ? 0 : a * vm_log1p_f64(b); }

/* The quotient rounded towards 0, or one more where a / b rounds up to a whole number; in both cases the
 * remainder, and its correction, are exact.  Needs a fused multiply-add. */
INLINE double fast_fmod(double a, double b)
{
    const double r = vm_fma_f64(-__builtin_trunc(a / b), b, a), past = vm_sign_f64(b, a);
    return vm_sign_f64((r < 0) != (a < 0) && r != 0 ? r + past : r, a);
}

INLINE int hard_fmod(double a, double b)
{
#if defined __FMA__ || defined __ARM_FEATURE_FMA
    return !(__builtin_fabs(a) < 0x1p52 * __builtin_fabs(b)) || __builtin_fabs(b) > 0x1p970;
#else
    return (void)a, (void)b, 1;
#endif
}

/* The angle of the smaller to the larger coordinate, in [0, pi/4], above tan(pi/8) from pi/4 on; then by
 * symmetry.  The polynomial, of 2^-35, is for results that are rounded to f32. */
INLINE double rounded_angle(double y, double x)
{
    const double most = larger(x, y), least = smaller(x, y);
    const int steep = least > 0.41421356237309504880 * most;
    const double t = (steep ? least - most : least) / (steep ? least + most : most), z = t * t;
    double p = 0x1.8216b562614d5p-5;
    p = vm_fma_f64(p, z, -0x1.5a7c2fbb7ed6ap-4);
    p = vm_fma_f64(p, z, 0x1.c43dd7faf32e9p-4);
    p = vm_fma_f64(p, z, -0x1.247cebbb0852cp-3);
    p = vm_fma_f64(p, z, 0x1.99990074a3500p-3);
    p = vm_fma_f64(p, z, -0x1.555554863ccfdp-2);
    p = t * vm_fma_f64(p, z, 0x1.ffffffffd21a9p-1) + (steep ? 0x1.921fb54442d18p-1 : 0);
    return y > x ? 0x1.921fb54442d18p+0 - p : p;
}

INLINE double any_atan2(double y, double x, int rounded)
{
    const double ax = __builtin_fabs(x), ay = __builtin_fabs(y);
    const double angle = rounded ? rounded_angle(ay, ax) : vm_angle_f64(ay, ax);
    return vm_sign_f64(x < 0 ? 0x1.921fb54442d18p+1 - (angle - 0x1.1a62633145c07p-53) : angle, y);
}

INLINE double fast_atan2(double y, double x) { return any_atan2(y, x, 0); }
INLINE double rounded_atan2(double y, double x) { return any_atan2(y, x, 1); }

INLINE int hard_atan2(double y, double x)
{
    const double most = larger(__builtin_fabs(x), __builtin_fabs(y));
    return !(most < 0x1p1000 && most >= 0x1p-1020) || x != x || y != y;
}

INLINE double fast_hypot(double a, double b) { return __builtin_sqrt(a * a + b * b); }

INLINE int hard_hypot(double a, double b)
{
    const double most = larger(__builtin_fabs(a), __builtin_fabs(b));
    return !(most < 0x1p500 && most > 0x1p-460) || a != a || b != b;
}

/* Of polygamma only the first has a fast form. */
INLINE int hard_polygamma(double x, double n) { return n != 1 || hard_digamma(x); }

/* In scalar loops the long ones are calls: the code stays small. */
#define ANY static __attribute__((noinline)) double
ANY any_lgamma(double x) { return hard_lgamma(x) ? rare_lgamma(x) : fast_lgamma(x); }
ANY any_digamma(double x) { return hard_digamma(x) ? rare_digamma(x) : fast_digamma(x); }
ANY any_erfinv(double x) { return hard_erfinv(x) ? rare_erfinv(x) : fast_erfinv(x); }
ANY any_polygamma(double x, double n)
{
    return hard_polygamma(x, n) ? rare_polygamma(x, n) : fast_trigamma(x);
}
#ifdef __AVX2__
enum { VECTORS = 1 };
#else
enum { VECTORS = 0 };
#endif
#if defined __x86_64__ && !defined __AVX2__ /* small code: one loop a row, which looks at each element */
enum { ONE_LOOP = 1 };
#else
enum { ONE_LOOP = 0 };
#endif

/* ---- what is right to 2^-35, for results that are rounded to f32 ---- */

/* erfc's core of vm_erfc_f32. */
INLINE double rounded_ndtr(double x) { return .5 * vm_erfc_core_f32(-0.70710678118654752440 * x); }

/* ---- in double ---- */

#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define any_erfcx vm_erfcx_f64
#define any_ndtr vm_ndtr_f64
#define any_log_ndtr vm_log_ndtr_f64
#else
#define any_erfcx rare_erfcx
#define any_ndtr rare_ndtr
#define any_log_ndtr rare_log_ndtr
#endif

/* As in Python: the sign of b. */
INLINE double remainder_of(double r, double b) { return r != 0 && (r < 0) != (b < 0) ? r + b : r; }

/* A quotient may become whole as it is rounded to f32. */
INLINE double rounded_quotient(double a, double b) { return (double)(float)(a / b); }

/* As Python's //: from the remainder r, because a / b may round up to an integer that is too large. */
INLINE double floor_divide_by(double a, double b, double r)
{
    const double q = (a - r) / b - (double)(r != 0 && (r < 0) != (b < 0)), down = __builtin_floor(q);
    return b == 0 ? a / b : q == 0 ? vm_sign_f64(0, a / b) : q - down > .5 ? down + 1 : down;
}

/* Which function of a and b, or of x and the parameter p, is looked out for. */
enum { NEVER, ALWAYS, FMOD, FMOD_OF_P, ATAN2, HYPOT, LGAMMA, DIGAMMA, TRIGAMMA, POLYGAMMA, ERFINV, ROUNDED };

INLINE int is_hard(int what, double a, double b)
{
    return what == FMOD        ? hard_fmod(a, b)
           : what == FMOD_OF_P ? hard_fmod(b, a)
           : what == ATAN2     ? hard_atan2(a, b)
           : what == HYPOT     ? hard_hypot(a, b)
           : what == LGAMMA    ? hard_lgamma(a)
           : what == DIGAMMA   ? hard_digamma(a)
           : what == TRIGAMMA  ? hard_digamma(a)
           : what == POLYGAMMA ? hard_polygamma(a, b)
           : what == ERFINV    ? hard_erfinv(a)
                               : 0;
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* keep and hard are constants: which operands there are, and whether the block has a hard element; 2 and 3 if
 * results are rounded to f32.  n is a multiple of MAP_UNIT, which the compiler is told by masks: no loop has
 * a scalar tail. */

#define ARGS \
    int64_t n, void *out, const void *a, const void *b, const void *y, const void *g, const double *params
typedef double Formula(double a, double b, double y, double g, double p, int hard);

INLINE void some(int64_t from, int64_t length, double *out, const double *a, const double *b, const double *y,
                 const double *g, double p, unsigned keep, Formula *f, int hard)
{
    INDEPENDENT
    for (int64_t i = from; i < from + (length & -MAP_UNIT); i++)
        out[i] = f(keep & KEEP_A ? a[i] : 0, keep & KEEP_B ? b[i] : 0, keep & KEEP_Y ? y[i] : 0,
                   keep & KEEP_OUTPUT(1) ? g[i] : 0, p, hard);
}

INLINE void map_f64(ARGS, unsigned keep, int count, Formula *f, int what)
{
    enum { BLOCK = 512 };
    const double p = count ? params[0] : 0;
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int64_t length = n - from < BLOCK ? n - from : BLOCK;
        int hard = what == ROUNDED ? params[1] == 0 : ONE_LOOP || what == ALWAYS;
        if (!ONE_LOOP && what != NEVER && what != ALWAYS && what != ROUNDED)
            for (int64_t i = from; i < from + (length & -MAP_UNIT); i++)
                hard |= is_hard(what, ((const double *)a)[i], keep & KEEP_B ? ((const double *)b)[i] : p);
        if (!ONE_LOOP && what == ATAN2 && params[1] != 0) {
            if (hard) some(from, length, out, a, b, y, g, p, keep, f, 3);
            else some(from, length, out, a, b, y, g, p, keep, f, 2);
        } else if (hard) some(from, length, out, a, b, y, g, p, keep, f, 1);
        else some(from, length, out, a, b, y, g, p, keep, f, 0);
    }
}

INLINE void bool_f64(ARGS, Formula *f)
{
    (void)b, (void)y, (void)g, (void)params;
    for (int64_t i = 0; i < n; i++) ((uint8_t *)out)[i] = f(((const double *)a)[i], 0, 0, 0, 0, 0) != 0;
}

#define CONTAINS(text, word) (__builtin_strstr(text, word) != NULL) /* a constant */
#define WHAT(text, p)                                     \
    (CONTAINS(text, "fast_fmod(" p ",")       ? FMOD_OF_P \
     : CONTAINS(text, "fast_fmod")            ? FMOD      \
     : CONTAINS(text, "fast_atan2")           ? ATAN2     \
     : CONTAINS(text, "fast_hypot")           ? HYPOT     \
     : CONTAINS(text, "fast_lgamma")          ? LGAMMA    \
     : CONTAINS(text, "fast_digamma")         ? DIGAMMA   \
     : CONTAINS(text, "rounded_")             ? ROUNDED   \
     : CONTAINS(text, "fast_erfinv")          ? ERFINV    \
     : CONTAINS(text, "any_polygamma(x, n)")  ? POLYGAMMA \
     : CONTAINS(text, "any_polygamma(x, n +") ? ALWAYS    \
     : CONTAINS(text, "any_polygamma")        ? TRIGAMMA  \
                                              : NEVER)
#define CALL n, out, a, b, y, g, params
#define FORMULA(name, part, first, p, expression)                                                         \
    INLINE double name##_##part##_formula(double first, double b, double y, double g, double p, int hard) \
    {                                                                                                     \
        (void)first, (void)b, (void)y, (void)g, (void)p, (void)hard;                                      \
        return (double)(expression);                                                                      \
    }
#define LOOP(name, part, first, p, count, expression, keep)                         \
    FORMULA(name, part, first, p, expression)                                       \
    static __attribute__((unused)) void name##_##part(ARGS)                         \
    {                                                                               \
        map_f64(CALL, keep, count, name##_##part##_formula, WHAT(#expression, #p)); \
    }

/* ---- the rows -------------------------------------------------------------------------------- */

#define exp vm_exp_f64
#define expm1 vm_expm1_f64
#define log vm_log_f64
#define log1p vm_log1p_f64
#define sin vm_sin_f64
#define cos vm_cos_f64
#define fabs __builtin_fabs
#define rint __builtin_rint
#define trunc __builtin_trunc
#define copysign vm_sign_f64
#define sign sign_
#define sigmoid sigmoid_
#define lgamma(x) (hard || !VECTORS ? any_lgamma(x) : fast_lgamma(x))
#define digamma(x) (hard || !VECTORS ? any_digamma(x) : fast_digamma(x))
#define polygamma(x, n) (hard || !VECTORS ? any_polygamma(x, n) : fast_trigamma(x))
#define erfinv(x) (hard || !VECTORS ? any_erfinv(x) : fast_erfinv(x))
#define i0(x) (hard || !VECTORS ? rare_i0(x) : rounded_i0(x)) /* in double by vectors: below */
#define i1(x) (hard || !VECTORS ? rare_i1(x) : rounded_i1(x))
#define erfcx(x) (hard || !VECTORS ? any_erfcx(x) : rounded_erfcx(x))
#define ndtr(x) (hard ? any_ndtr(x) : rounded_ndtr(x))
#define log_ndtr(x) (hard || !VECTORS ? any_log_ndtr(x) : rounded_log_ndtr(x))
#define ndtri rare_ndtri
#define atan2(a, b) \
    (hard & 1 && hard_atan2(a, b) ? (atan2)(a, b) : hard & 2 ? rounded_atan2(a, b) : fast_atan2(a, b))
#define hypot(a, b) (hard && hard_hypot(a, b) ? (hypot)(a, b) : fast_hypot(a, b))
#define fmod(a, b) (hard && hard_fmod(a, b) ? (fmod)(a, b) : fast_fmod(a, b))
#define remainder(a, b) remainder_of(fmod(a, b), b)
#define floor_divide(a, b) floor_divide_by(a, b, fmod(a, b))
#define trunc_divide(a, b) trunc(hard ? (a) / (b) : rounded_quotient(a, b))
#define xlogy xlogy_
#define xlog1py xlog1py_
#define isinf_(x) (__builtin_isinf(x) != 0)
#define signbit_(x) (__builtin_signbit(x) != 0)
#define G KEEP_OUTPUT(1) /* the incoming gradient */

#define ONLY_RARE_ROWS
#define UNARY(name, types, summary, y_, dx, keep, ...) \
    LOOP(row_##name, y, x, p0, 0, y_, KEEP_X) LOOP(row_##name, a, x, p0, 0, dx, (keep) | G)
#define UNARY1(name, types, summary, p, pi, y_, dx, keep, ...) \
    LOOP(row_##name, y, x, p, 1, y_, KEEP_X) LOOP(row_##name, a, x, p, 1, dx, (keep) | G)
#define BINARY(name, types, summary, y_, da, ka, db, kb, ...) \
    LOOP(row_##name, y, a, p0, 0, y_, KEEP_A | KEEP_B)        \
    LOOP(row_##name, a, a, p0, 0, da, (ka) | G) LOOP(row_##name, b, a, p0, 0, db, (kb) | G)
#define BINARY1(name, types, summary, p, pi, y_, da, ka, db, kb, ...) \
    LOOP(row_##name, y, a, p, 1, y_, KEEP_A | KEEP_B)                 \
    LOOP(row_##name, a, a, p, 1, da, (ka) | G) LOOP(row_##name, b, a, p, 1, db, (kb) | G)
#define PREDICATE(name, types, summary, y_, ...)                       \
    FORMULA(row_##name, y, x, p0, y_) static void row_##name##_y(ARGS) \
    {                                                                  \
        bool_f64(CALL, row_##name##_y_formula);                        \
    }
#include <tapegrad/ops.def>

/* ---- other than their formulas --------------------------------------------------------------- */

#undef i0
#undef i1
#ifdef __AVX2__
typedef double Eight __attribute__((vector_size(64)));
typedef int64_t Mask __attribute__((vector_size(64)));

/* special_bessel's power series of 8 numbers, with its bits: as long as one of them needs a term, for one
 * that is too small changes no sum.  What is beyond the series is left to it. */
static __attribute__((noinline)) void bessel_8(double *y, const double *x, int order)
{
    Eight v, sum = (Eight){ 0 } + 1, term = sum;
    memcpy(&v, x, sizeof v);
    const Mask near = (v >= -20) & (v <= 20);
    const Eight z = (Eight)((Mask)(v * v / 4) & near);
    for (double k = 1;; k += 4) {
        UNROLL_STEPS
        for (int i = 0; i < 4; i++) {
            term *= z / ((k + i) * (k + i + order));
            sum += term;
        }
        const Mask more = term > sum * 0x1p-58;
        if (!(more[0] | more[1] | more[2] | more[3] | more[4] | more[5] | more[6] | more[7])) break;
    }
    sum = order ? v / 2 * sum : sum;
    memcpy(y, &sum, sizeof sum);
    for (int i = 0; i < 8; i++)
        if (!near[i]) y[i] = order ? rare_i1(x[i]) : rare_i0(x[i]);
}

/* Of results that are rounded to f32 by the formulas' loops. */
#define BESSEL(name, part, order, expression)                                   \
    static void name##_##part##_8(ARGS)                                         \
    {                                                                           \
        const double *x = a, *dy = g, *own = y;                                 \
        (void)dy, (void)own;                                                    \
        if (params[1] != 0) {                                                   \
            row_##name##_##part(CALL);                                          \
            return;                                                             \
        }                                                                       \
        for (int64_t from = 0; from < n; from += 8) {                           \
            double s[8];                                                        \
            bessel_8(s, x + from, order);                                       \
            for (int i = 0; i < 8; i++) ((double *)out)[from + i] = expression; \
        }                                                                       \
    }
BESSEL(i0, y, 0, s[i])
BESSEL(i0, a, 1, dy[from + i] * s[i])
BESSEL(i1, y, 1, s[i])
BESSEL(i1, a, 0, x[from + i] == 0 ? dy[from + i] * .5 : dy[from + i] * (s[i] - own[from + i] / x[from + i]))
#define row_i0_y i0_y_8
#define row_i0_a i0_a_8
#define row_i1_y i1_y_8
#define row_i1_a i1_a_8
#endif

#ifdef __AVX512F__
static void rpow_scalar_y_8(ARGS)
{
    (void)b, (void)y, (void)g;
    ISA_NAME(pow_lines)(n, out, params, 0, a, 1);
}
#define row_rpow_scalar_y rpow_scalar_y_8
#endif

static const RareLoops loops = {
#define ONLY_RARE_ROWS
#define UNARY(name, ...) [ROW_##name - ROW_FAST] = { row_##name##_y, row_##name##_a },
#define UNARY1 UNARY
#define BINARY(name, ...) [ROW_##name - ROW_FAST] = { row_##name##_y, row_##name##_a, row_##name##_b },
#define BINARY1 BINARY
#define PREDICATE(name, ...) [ROW_##name - ROW_FAST] = { row_##name##_y },
#include <tapegrad/ops.def>
};

const RareLoops *ISA_NAME(map_rare_loops)(void) { return &loops; }
