/* test_vecmath.c - the bounds that vecmath.h states, over floats of the whole range.
 *
 *  - Every function stays within its bound in ulp of the C library's in the next wider type.
 *  - NaN, infinities and the sign of zero are the C library's.
 *  - An element's bits do not depend on whether a block or a loop of one computed it.
 *  - Every transcendental row of ops.def, as the library computes it, stays within ops.h's bound.
 *
 * Build it once for each instruction set of the kernels, with their flags; a build that the machine cannot
 * run skips.  VECMATH_STRIDE=61 tests every 61st float, not every 8191st, and prints the largest errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tapegrad.h>
#ifdef __AVX512F__
#include "cpu/math/vecmath512.h"
#else
#include "cpu/math/vecmath.h"
#endif
#include "cpu/isa.h"
#include "cpu/math/special.h"

enum { BLOCK = 1021 }; /* odd, so that vector loops have a tail */

typedef void MapF32(float *y, const float *x, int64_t n);
typedef void MapF64(double *y, const double *x, int64_t n);
typedef double RefF32(double x);
typedef long double RefF64(long double x);

static uint32_t stride(void)
{
    const char *s = getenv("VECMATH_STRIDE");
    return s ? (uint32_t)strtoul(s, NULL, 0) | 1 : 8191;
}

VM_FN void map_f32(float *y, const float *x, int64_t n, float (*f)(float))
{
    for (int64_t i = 0; i < n; i++) y[i] = f(x[i]);
}

VM_FN void map_f64(double *y, const double *x, int64_t n, double (*f)(double))
{
    for (int64_t i = 0; i < n; i++) y[i] = f(x[i]);
}

VM_FN void map_trig(float *y, const float *x, int64_t n, float (*f)(float), float (*slow)(float))
{
    int far = 0;
    for (int64_t i = 0; i < n; i++) far |= vm_trig_needs_slow_f32(x[i]);
    map_f32(y, x, n, far ? slow : f);
}

/* name, bound in ulp with FMA, bound without */
#define F32_PLAIN(X)    \
    X(exp, 1.05, 1.1)   \
    X(exp2, 1, 1.1)     \
    X(expm1, 1.4, 1.4)  \
    X(log, .85, .85)    \
    X(log2, .51, .51)   \
    X(log10, .51, .51)  \
    X(log1p, .85, .85)  \
    X(tanh, 1.5, 1.5)   \
    X(sinh, .51, .51)   \
    X(cosh, .51, .51)   \
    X(erf, 1.1, 1.3)    \
    X(erfc, .55, .55)   \
    X(atan, 1.25, 1.25) \
    X(asin, 1.25, 1.25) X(acos, 1.25, 1.25) X(asinh, .51, .51) X(acosh, .51, .51) X(atanh, .51, .51)
#define F32_TRIG(X) X(sin, .51, .51) X(cos, .51, .51) X(tan, .51, .51)
#define F64_PLAIN(X) \
    X(exp, 1.1, 1.1) X(expm1, 2, 2) X(log, 1, 1) X(log1p, 1.5, 1.5) X(tanh, 2, 2) X(erf, 1.5, 1.5)
#define F64_TRIG(X) X(sin, 1, 1) X(cos, 1, 1) X(tan, 2.3, 1)
#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define F64_FUSED(X) \
    X(exp2, 1.2, )   \
    X(log2, .8, )    \
    X(log10, .8, )   \
    X(sinh, 2, ) X(cosh, 1.6, ) X(atanh, 1.9, ) X(atan, 1.4, ) X(asin, 1.4, ) X(acos, 1.4, ) X(erfc, 4.5, )
#else /* the C library's */
#define F64_FUSED(X)
#endif

#define MAP_F32(name, a, b) \
    static void name##_f32(float *y, const float *x, int64_t n) { map_f32(y, x, n, vm_##name##_f32); }
#define MAP_TRIG(name, a, b)                                      \
    static void name##_f32(float *y, const float *x, int64_t n)   \
    {                                                             \
        map_trig(y, x, n, vm_##name##_f32, vm_##name##_slow_f32); \
    }
#define MAP_F64(name, a, b) \
    static void name##_f64(double *y, const double *x, int64_t n) { map_f64(y, x, n, vm_##name##_f64); }
F32_PLAIN(MAP_F32)
F32_TRIG(MAP_TRIG)
F64_PLAIN(MAP_F64)
F64_FUSED(MAP_F64)
F64_TRIG(MAP_F64)

/* vecmath512.h's, which the library has in their places; beyond VM_NEAR sines are the others'. */
#ifdef __AVX512F__
#define F32_512(X) \
    X(sqrt, .5, ) X(exp, 1.05, ) X(log, .85, ) X(log2, .6, ) X(log10, .6, ) X(tanh, 1.5, ) X(erfc, 1.2, )
#define F32_TRIG_512(X) X(sin, .55, ) X(cos, .55, ) X(tan, .7, )
#define MAP_512(name, a, b) \
    static void name##_512(float *y, const float *x, int64_t n) { vm_map(n, y, x, vm_##name); }
#define MAP_TRIG_512(name, a, b)                                    \
    static void name##_512(float *y, const float *x, int64_t n)     \
    {                                                               \
        vm_map(n, y, x, vm_##name);                                 \
        for (int64_t i = 0; i < n; i++)                             \
            if (fabsf(x[i]) > VM_NEAR) name##_f32(y + i, x + i, 1); \
    }
F32_512(MAP_512)
F32_TRIG_512(MAP_TRIG_512)
#define F64_512(X) X(sqrt, .5, ) X(atan, 1.4, ) \
    X(exp, .7, ) X(exp2, .8, ) X(log, .9, ) X(log2, .6, ) X(log10, .6, ) X(erf, 1, ) X(erfc, 4.5, )
#define F64_TRIG_512(X) X(sin, .9, ) X(cos, .9, ) X(tan, 2.3, )
#define MAP_512_F64(name, a, b)                                       \
    static void name##_512_f64(double *y, const double *x, int64_t n) \
    {                                                                 \
        double all[BLOCK + 7] = { 0 };                                \
        memcpy(all, x, (size_t)n * sizeof *x);                        \
        vd_map((n + 7) & -8, all, all, vd_##name);                    \
        memcpy(y, all, (size_t)n * sizeof *y);                        \
    }
F64_512(MAP_512_F64)
F64_TRIG_512(MAP_512_F64)
#endif

#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define BOUND(fma, plain) fma
#else
#define BOUND(fma, plain) plain
#endif

static const struct CaseF32 {
    const char *name;
    MapF32 *map;
    RefF32 *ref;
    double bound;
} cases_f32[] = {
#define CASE(name, a, b) { #name, name##_f32, name, BOUND(a, b) },
    F32_PLAIN(CASE) F32_TRIG(CASE)
#undef CASE
#ifdef __AVX512F__
#define CASE(name, a, b) { #name " 512", name##_512, name, a },
        F32_512(CASE) F32_TRIG_512(CASE)
#undef CASE
#endif
};

static const struct CaseF64 {
    const char *name;
    MapF64 *map;
    RefF64 *ref;
    double bound;
    double limit; /* largest |x| that the function is for */
} cases_f64[] = {
#define CASE(name, a, b) { #name, name##_f64, name##l, BOUND(a, b), INFINITY },
    F64_PLAIN(CASE) F64_FUSED(CASE)
#undef CASE
#define CASE(name, a, b) { #name, name##_f64, name##l, BOUND(a, b), 0x1p20 },
        F64_TRIG(CASE)
#undef CASE
#ifdef __AVX512F__
#define CASE(name, a, b) { #name " 512", name##_512_f64, name##l, a, INFINITY },
        F64_512(CASE)
#undef CASE
#define CASE(name, a, b) { #name " 512", name##_512_f64, name##l, a, VD_NEAR },
        F64_TRIG_512(CASE)
#undef CASE
#endif
};

/* Distance of y from the exact r in units of r's last place; infinite where the kind or the sign of zero
 * differs.  An infinite y counts as the power of two after the largest finite number. */
static double ulps(long double y, long double r, int digits, int lowest, long double largest)
{
    if (isnan(r) || isnan(y)) return isnan(r) && isnan(y) ? 0 : INFINITY;
    if (isinf(r)) return y == r ? 0 : INFINITY;
    if (r == 0) return y == 0 && !signbit(y) == !signbit(r) ? 0 : INFINITY;
    if (y != 0 && !signbit(y) != !signbit(r)) return INFINITY;
    int e = ilogbl(r);
    e = e < lowest ? lowest : e;
    int top = ilogbl(largest);
    if (isinf(y) && fabsl(r) > largest) return 0;
    if (isinf(y)) y = copysignl(ldexpl(1, top + 1), r);
    e = e > top ? top : e;
    return fabs((double)ldexpl(y - r, digits - 1 - e));
}

static double ulps_f32(float y, double r) { return ulps(y, r, 24, -126, 0x1.fffffep127L); }
static double ulps_f64(double y, long double r) { return ulps(y, r, 53, -1022, 0x1.fffffffffffffp1023L); }

static int same_f32(float a, float b) { return (isnan(a) && isnan(b)) || vm_bits_f32(a) == vm_bits_f32(b); }
static int same_f64(double a, double b) { return (isnan(a) && isnan(b)) || vm_bits_f64(a) == vm_bits_f64(b); }

static void report(const char *name, const char *type, double worst, double at)
{
    if (getenv("VECMATH_STRIDE"))
        print_message("%-7s %s  %.4f ulp at %a (%.9g)\n", name, type, worst, at, at);
}

/* One block against the reference and against loops of one; returns the largest error, *at its place. */
static double check_f32(const struct CaseF32 *c, const float *x, int64_t n, float *at)
{
    float y[BLOCK], one;
    double worst = 0;
    c->map(y, x, n);
    for (int64_t i = 0; i < n; i++) {
        c->map(&one, x + i, 1);
        double u = ulps_f32(y[i], c->ref(x[i]));
        if (!same_f32(one, y[i])) fail_msg("%s(%a): %a in a block, %a alone", c->name, x[i], y[i], one);
        if (u > c->bound) fail_msg("%s(%a) = %a, want %a: %g ulp", c->name, x[i], y[i], c->ref(x[i]), u);
        if (u >= worst) worst = u, *at = x[i];
    }
    return worst;
}

static const float specials_of_f32[][7] = {
    { 0, -0.f, 1, -1, .5f, -.5f, 2 },
    { -2, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 0x1p-126f },
    { -0x1p-126f, 0x1.fffffep-127f, 0x1.fffffep127f, -0x1.fffffep127f, 0x1.fffffep-1f, 0x1.000002p0f,
      -0x1.fffffep-1f },
    { 88.72283f, 88.72284f, 89.41598f, 89.416f, -87.33655f, -103.97208f, -103.97209f },
    { 127.99999f, 128, -149, -149.5f, -150, -150.00002f, 10.05f },
    { 10.06f, 0x1p31f, 0x1.000002p31f, 3, 3.5f, -3, 4 },
    { 8388607.5f, 8388609, 16777215, 16777216, -8388609, -16777215, .33333334f },
    { -.33333334f, 1e-30f, -1e-30f, .1f, 7, -7 },
};
static const float *const special_f32 = specials_of_f32[0]; /* zeros fill the last row up */
enum { SPECIALS = sizeof specials_of_f32 / sizeof(float) };

/* The trigonometric functions compute a block with one far element by the slow way, which does not give
 * the bits of the fast one: blocks are runs of neighbours, and specials go one at a time. */
static void test_f32(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases_f32 / sizeof *cases_f32; k++) {
        const struct CaseF32 *c = cases_f32 + k;
        float x[BLOCK], at = 0, where = 0;
        double worst = 0;
        for (int i = 0; i < SPECIALS; i++) check_f32(c, special_f32 + i, 1, &at);
        for (uint64_t u = 0; u < UINT64_C(1) << 32;) {
            int64_t n = 0;
            for (; n < BLOCK && u < UINT64_C(1) << 32; u += stride()) {
                float next = vm_from_bits_f32((uint32_t)u);
                if (n && vm_trig_needs_slow_f32(next) != vm_trig_needs_slow_f32(x[n - 1])) break;
                x[n++] = next;
            }
            double w = check_f32(c, x, n, &at);
            if (w > worst) worst = w, where = at;
        }
        report(c->name, "f32", worst, where);
    }
}

static uint64_t random_bits(uint64_t *s)
{
    *s += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (*s ^ *s >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return z ^ z >> 29;
}

static double check_f64(const struct CaseF64 *c, const double *x, int64_t n, double *at)
{
    double y[BLOCK], one, worst = 0;
    c->map(y, x, n);
    for (int64_t i = 0; i < n; i++) {
        if (fabs(x[i]) > c->limit) continue;
        c->map(&one, x + i, 1);
        double u = ulps_f64(y[i], c->ref(x[i]));
        if (!same_f64(one, y[i])) fail_msg("%s(%a): %a in a block, %a alone", c->name, x[i], y[i], one);
        if (u > c->bound) fail_msg("%s(%a) = %a, want %La: %g ulp", c->name, x[i], y[i], c->ref(x[i]), u);
        if (u >= worst) worst = u, *at = x[i];
    }
    return worst;
}

/* Of both signs. */
static const double specials_of_f64[][8] = {
    { 0, 1, INFINITY, NAN, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023, 0x1.fffffffffffffp-1 },
    { 1 + 0x1p-52, 709.782712893384, 709.7827128933841, 708.3964185322641, 744.4400719213812, 0x1p54 },
    { 745.1332191019411, 745.1332191019412, 746, 5.9, 0x1p20, 2, 0x1.6ac5b262ca1ffp+849, 0x1p53 },
    { 0x1.921fb54442d18p0, 0x1.921fb54442d18p1, 0x1.921fb54442d18p10, 40, .5, .5 + 0x1p-53, 4 - 0x1p-51 },
};
static const double *const special_f64 = specials_of_f64[0];
enum { SPECIAL = sizeof specials_of_f64 / sizeof(double) };

/* Exponents uniform in turn over all numbers, [2^-60, 2^20) and [2^-6, 2^6). */
static void test_f64(void **state)
{
    (void)state;
    int64_t blocks = 100 * INT64_C(8191) / stride();
    for (size_t k = 0; k < sizeof cases_f64 / sizeof *cases_f64; k++) {
        const struct CaseF64 *c = cases_f64 + k;
        double x[BLOCK], at = 0, where = 0, worst = 0;
        uint64_t seed = k;
        for (int i = 0; i < 2 * SPECIAL; i++) x[i] = i % 2 ? -special_f64[i / 2] : special_f64[i / 2];
        check_f64(c, x, 2 * SPECIAL, &at);
        for (int64_t b = 0; b < blocks; b++) {
            for (int i = 0; i < BLOCK; i++) {
                uint64_t u = random_bits(&seed), e = random_bits(&seed) >> 20;
                e = i % 3 == 0 ? e % 2048 : i % 3 == 1 ? 963 + e % 80 : 1017 + e % 12;
                x[i] = vm_from_bits_f64((u & ~(UINT64_C(0x7ff) << 52)) | e << 52);
            }
            double w = check_f64(c, x, BLOCK, &at);
            if (w > worst) worst = w, where = at;
        }
        report(c->name, "f64", worst, where);
    }
}

VM_FN void pow_map(float *r, const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) r[i] = vm_pow_f32(x[i], y[i]);
}

static double check_pow(const float *x, const float *y, int64_t n)
{
    float r[BLOCK], one;
    double worst = 0;
    pow_map(r, x, y, n);
    for (int64_t i = 0; i < n; i++) {
        pow_map(&one, x + i, y + i, 1);
        double want = pow(x[i], y[i]), u = ulps_f32(r[i], want);
        if (!same_f32(one, r[i])) fail_msg("pow(%a, %a): %a in a block, %a alone", x[i], y[i], r[i], one);
        if (u > .51) fail_msg("pow(%a, %a) = %a, want %a: %g ulp", x[i], y[i], r[i], want, u);
        worst = u > worst ? u : worst;
    }
    return worst;
}

/* Every pair of the specials; then random bases with exponents that keep the result finite, and whole ones.
 */
static void test_pow(void **state)
{
    (void)state;
    float x[BLOCK], y[BLOCK];
    uint64_t seed = 1;
    double worst = 0;
    for (int i = 0; i < SPECIALS; i++) {
        for (int j = 0; j < SPECIALS; j++) x[j] = special_f32[i], y[j] = special_f32[j];
        check_pow(x, y, SPECIALS);
    }
    for (int64_t b = 0; b < 2000 * INT64_C(8191) / stride(); b++) {
        for (int i = 0; i < BLOCK; i++) {
            uint64_t u = random_bits(&seed);
            float t = (float)(int32_t)(u >> 32) * 0x1p-31f;
            x[i] = vm_from_bits_f32((uint32_t)u);
            y[i] = i % 4 == 0 ? (float)(int32_t)(u >> 58) - 32 : t * 151 / fabsf(log2f(fabsf(x[i])));
        }
        double w = check_pow(x, y, BLOCK);
        worst = w > worst ? w : worst;
    }
    report("pow", "f32", worst, NAN);
}

/* psi(1) = -gamma, psi(1/2) = -gamma - 2 log 2, the reflection, the recurrence, and the poles */
static void test_digamma(void **state)
{
    (void)state;
    const double gamma = 0.57721566490153286061;
    assert_true(fabs(special_digamma(1) + gamma) < 1e-15);
    assert_true(fabs(special_digamma(.5) + gamma + 2 * log(2)) < 1e-15);
    for (double x = -9.9; x < 30; x += .3701) {
        double y = special_digamma(x), z = special_digamma(1 - x);
        double step = special_digamma(x + 1) - y - 1 / x, mirror = z - y - M_PI / tan(M_PI * x);
        assert_true(fabs(step) < 1e-13 * (1 + y * y));
        assert_true(fabs(mirror) < 1e-13 * (1 + y * y + z * z));
    }
    assert_true(fabs(special_digamma(-14 + 0x1p-40) + 0x1p40) < 10); /* near a pole: -1 / the distance */
    assert_true(special_digamma(0) == -INFINITY && special_digamma(-0.f) == INFINITY);
    assert_true(isnan(special_digamma(-3)) && isnan(special_digamma(-INFINITY)) &&
                isnan(special_digamma(NAN)));
    assert_true(special_digamma(INFINITY) == INFINITY);
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define PI 3.14159265358979323846264338327950288L

static long double ref_rsqrt(long double x) { return 1 / sqrtl(x); }
static long double ref_sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static long double ref_logsigmoid(long double x) { return x < 0 ? x - log1pl(expl(x)) : -log1pl(expl(-x)); }
static long double ref_elu(long double x) { return x > 0 ? x : expm1l(x); }
static long double ref_selu(long double x)
{
    return 1.05070098735548049342L * (x > 0 ? x : 1.67326324235437728481L * expm1l(x));
}
static long double ref_gelu(long double x) { return x * .5L * erfcl(-x * sqrtl(.5L)); }
static long double ref_silu(long double x) { return x / (1 + expl(-x)); }
static long double ref_softplus(long double x) { return x > 20 ? x : log1pl(expl(x)); }
static long double ref_mish(long double x) { return x * tanhl(log1pl(expl(x))); }
static long double ref_tanhshrink(long double x) { return x - tanhl(x); }
static long double ref_logit(long double x) { return logl(x) - log1pl(-x); }
static long double ref_sinc(long double x)
{
    long double n = rintl(x), y = sinl(PI * (x - n)) / (PI * x);
    return x == 0 ? 1 : fmodl(n, 2) != 0 ? -y : y;
}
static long double ref_logaddexp(long double a, long double b)
{
    return fmaxl(a, b) + log1pl(expl(-fabsl(a - b)));
}
static long double ref_logaddexp2(long double a, long double b)
{
    return fmaxl(a, b) + log1pl(exp2l(-fabsl(a - b))) / logl(2);
}
static long double ref_xlogy(long double a, long double b) { return a * logl(b); }
static long double ref_xlog1py(long double a, long double b) { return a * log1pl(b); }

static long double ref_gelu_tanh(long double x)
{
    return .5L * x * (1 + tanhl(sqrtl(2 / PI) * (x + .044715L * x * x * x)));
}

static long double ref_erfinv(long double y)
{
    long double x = special_erfinv((double)y);
    for (int i = 0; i < 2; i++) {
        long double off = fabsl(y) < .5L ? erfl(x) - y : copysignl(1 - fabsl(y) - erfcl(fabsl(x)), y);
        x -= off / (2 / sqrtl(PI) * expl(-x * x));
    }
    return x;
}

static long double ref_digamma(long double x)
{
    long double y = 0;
    if (x < 0) return ref_digamma(1 - x) - PI / tanl(PI * (x - rintl(x)));
    for (; x < 40; x++) y -= 1 / x;
    long double z = 1 / (x * x);
    return y + logl(x) - .5L / x -
           z * (1 / 12.L - z * (1 / 120.L - z * (1 / 252.L - z * (1 / 240.L - z / 132))));
}

static long double ref_polygamma(long double x) /* n = 1 */
{
    long double y = 0;
    if (x < 0) return powl(PI / sinl(PI * (x - rintl(x))), 2) - ref_polygamma(1 - x);
    for (; x < 40; x++) y += 1 / (x * x);
    long double z = 1 / (x * x);
    return y + 1 / x + z / 2 +
           z / x * (1 / 6.L - z * (1 / 30.L - z * (1 / 42.L - z * (1 / 30.L - z * 5 / 66))));
}

/* Errors in ulp of the result, or, where a formula cancels, of the larger of it and 1, or x. */
enum Unit { RESULT, ONE, X };
typedef long double Ref1(long double x);
typedef long double Ref2(long double a, long double b);

/* Operands in [lo, hi]: what is beyond is an infinity, a constant, or test_specials.c's. */
static const struct RowCase {
    const char *name;
    Ref1 *f;
    Ref2 *f2;
    double lo, hi, bound_f32, bound_f64;
    enum Unit unit;
    double wider; /* how many times larger f64's interval is; 0: once */
    double below; /* the smaller bound without AVX-512: of f32, of f64 for pow */
} row_cases[] = {
    { "exp", expl, NULL, -80, 80, 1.2, 1.2, RESULT, 8.5 },
    { "exp2", exp2l, NULL, -120, 120, 1.2, 1.2, RESULT, 8.5 },
    { "expm1", expm1l, NULL, -20, 80, 1.5, 1.8, RESULT, 8.5 },
    { "log", logl, NULL, 0, 1e+06, 0.9, 0.9, RESULT },
    { "log2", log2l, NULL, 0, 1e+06, 0.6, 0.8, RESULT },
    { "log10", log10l, NULL, 0, 1e+06, 0.6, 1.9, RESULT },
    { "log1p", log1pl, NULL, -1, 1e+06, 0.9, 0.9, RESULT },
    { "sin", sinl, NULL, -100000, 100000, 0.6, 0.9, RESULT },
    { "cos", cosl, NULL, -100000, 100000, 0.6, 0.9, RESULT },
    { "tan", tanl, NULL, -100000, 100000, 0.7, 2.3, RESULT, .below = 0.6 },
    { "asin", asinl, NULL, -1, 1, 1.4, 1.4, RESULT },
    { "acos", acosl, NULL, -1, 1, 1.4, 1.4, RESULT },
    { "atan", atanl, NULL, -1000, 1000, 1.3, 1.4, RESULT },
    { "sinh", sinhl, NULL, -83.5, 83.5, 0.6, 2, RESULT, 8.5 },
    { "cosh", coshl, NULL, -83.5, 83.5, 0.6, 2, RESULT, 8.5 },
    { "tanh", tanhl, NULL, -10, 10, 1.7, 1.6, RESULT },
    { "asinh", asinhl, NULL, -100000, 100000, 0.6, 1.8, RESULT },
    { "acosh", acoshl, NULL, 1, 100000, 0.6, 2.1, RESULT },
    { "atanh", atanhl, NULL, -1, 1, 0.6, 1.9, RESULT },
    { "erf", erfl, NULL, -4, 4, 1.4, 1.6, RESULT },
    { "erfc", erfcl, NULL, -5, 8, 1.3, 4.5, RESULT, 3.2, .below = 0.6 },
    { "rsqrt", ref_rsqrt, NULL, 0, 1e+06, 1.8, 1.8, RESULT },
    { "sigmoid", ref_sigmoid, NULL, -80, 80, 2.4, 2.4, RESULT, 8.5 },
    { "logsigmoid", ref_logsigmoid, NULL, -80, 80, 1.7, 1.8, RESULT, 8.5 },
    { "elu", ref_elu, NULL, -80, 80, 1.5, 1.6, RESULT, 8.5 },
    { "celu", ref_elu, NULL, -80, 80, 0.6, 1.6, RESULT },
    { "selu", ref_selu, NULL, -80, 80, 2.7, 3.9, RESULT, 8.5 },
    { "gelu", ref_gelu, NULL, -10, 10, 1.6, 1.9, X },
    { "gelu_tanh", ref_gelu_tanh, NULL, -10, 10, 1.6, 1.7, X },
    { "silu", ref_silu, NULL, -80, 80, 2.8, 2.9, RESULT, 8.5 },
    { "softplus", ref_softplus, NULL, -80, 80, 1.7, 1.7, RESULT, 8.5 },
    { "mish", ref_mish, NULL, -40, 80, 4.3, 4.7, RESULT, 8.5 },
    { "tanhshrink", ref_tanhshrink, NULL, -20, 20, 1.7, 1.6, X },
    { "logit", ref_logit, NULL, 0, 1, 0.6, 1.5, ONE },
    { "sinc", ref_sinc, NULL, -10000, 10000, 0.6, 1, ONE },
    { "erfinv", ref_erfinv, NULL, -1, 1, 0.6, 6.5, RESULT },
    { "lgamma", lgammal, NULL, 0.001, 1e+06, 0.6, 7, RESULT },
    { "lgamma", lgammal, NULL, -30, 1, 0.6, 7, RESULT },
    { "digamma", ref_digamma, NULL, -20, 1e+06, 0.6, 9.6, ONE },
    { "polygamma", ref_polygamma, NULL, -20, 1e+06, 0.6, 6.4, RESULT },
    { "pow", NULL, powl, 0, 10, 0.6, 1.0, RESULT, .below = 0.6 },
    { "atan2", NULL, atan2l, -10, 10, 1.0, 2.1, RESULT, .below = 0.6 },
    { "hypot", NULL, hypotl, -1e+10, 1e+10, 0.6, 1.2, RESULT },
    { "logaddexp", NULL, ref_logaddexp, -20, 20, 1.1, 1.1, ONE },
    { "logaddexp2", NULL, ref_logaddexp2, -20, 20, 1.5, 1.7, ONE },
    { "xlogy", NULL, ref_xlogy, 0, 10, 0.6, 1.8, RESULT },
    { "xlog1py", NULL, ref_xlog1py, -0.9, 10, 0.6, 2, RESULT },
};

static uint64_t row_seed;
static int wrong_rows;

/* Half of them uniform, half with uniform exponents. */
static double draw(const struct RowCase *c, int i, bool narrow)
{
    const double times = narrow || !c->wider ? 1 : c->wider, lo = times * c->lo, hi = times * c->hi;
    double u = (double)(random_bits(&row_seed) >> 11) * 0x1p-53, x = lo + u * (hi - lo);
    if (i % 2 == 0) return x;
    double e = ldexp(x, -(int)(random_bits(&row_seed) >> 59));
    return e >= lo && e <= hi ? e : x;
}

static double row_error(const struct RowCase *c, double x, double z, double y, bool narrow)
{
    int digits = narrow ? 24 : 53, lowest = narrow ? -126 : -1022;
    long double r = c->f2 ? c->f2(x, z) : c->f(x), scale = fabsl(r);
    if (c->unit != RESULT) scale = fmaxl(scale, c->unit == X ? fabs(x) : 1);
    int e = scale > 0 ? ilogbl(scale) : lowest;
    return (double)(fabsl(y - r) / ldexpl(1, (e < lowest ? lowest : e) - digits + 1));
}

static double check_row(const struct RowCase *c, bool narrow, double *at)
{
    double x[2][BLOCK], y[BLOCK], worst = 0;
    TensorScope scope = tensor_scope_open();
    const TensorOp *op = tensor_op_find(c->name);
    Tensor *in[2];
    assert_non_null(op);
    for (int k = 0; k < op->arity; k++) {
        for (int i = 0; i < BLOCK; i++)
            x[k][i] = narrow ? (double)(float)draw(c, i, narrow) : draw(c, i, narrow);
        in[k] = tensor_to(tensor_from_data(x[k], SHAPE(BLOCK), TENSOR_F64), narrow ? TENSOR_F32 : TENSOR_F64);
    }
    Tensor *result = tensor_to(tensor_apply(op, in, op->arity, NULL), TENSOR_F64);
    assert_int_equal(tensor_copy_to(result, y, sizeof y), 0);
    for (int i = 0; i < BLOCK; i++) {
        double off = row_error(c, x[0][i], x[1][i], y[i], narrow);
        if (!(off <= worst)) worst = off, *at = x[0][i];
    }
    tensor_scope_close(scope);
    return worst;
}

static void test_rows(void **state)
{
    (void)state;
    int blocks = (int)(20 * INT64_C(8191) / stride());
    for (size_t k = 0; k < sizeof row_cases / sizeof *row_cases; k++)
        for (int narrow = 1; narrow >= 0; narrow--) {
            const struct RowCase *c = row_cases + k;
            double worst = 0, at = 0, where = 0, bound = narrow ? c->bound_f32 : c->bound_f64;
            if (c->below != 0 && cpu_isa() < 2 && narrow == (c->f2 != powl)) bound = c->below;
            row_seed = k;
            for (int b = 0; b < blocks; b++) {
                double w = check_row(c, narrow, &at);
                if (!(w <= worst)) worst = w, where = at;
            }
            report(c->name, narrow ? "row f32" : "row f64", worst, where);
            if (!(worst <= bound))
                print_error("%s in %s: %g ulp at %a, bound %g\n", c->name, narrow ? "f32" : "f64", worst,
                            where, bound);
            if (!(worst <= bound)) wrong_rows++;
        }
    assert_int_equal(wrong_rows, 0);
}

static int runs_here(void)
{
#if defined __AVX512F__
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
#elif defined __AVX2__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 1;
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),     cmocka_unit_test(test_f64),  cmocka_unit_test(test_pow),
        cmocka_unit_test(test_digamma), cmocka_unit_test(test_rows),
    };
    if (!runs_here()) return 0;
    return cmocka_run_group_tests_name("vecmath", tests, NULL, NULL);
}
