/* vecmath64_fma.h - more of vecmath64.h, which is the file to include: functions of doubles that need a fused
 * multiply-add, for what a product lost.  Where the target has none they are the C library's.  Bounds as
 * there. */
#ifndef TAPEGRAD_VECMATH64_FMA_H
#define TAPEGRAD_VECMATH64_FMA_H

#if defined __FMA__ || defined __ARM_FEATURE_FMA

VM_FN double vm_exp2_f64(double x) /* 1.10 ulp */
{
    double c = x > 1025 ? 1025 : x;
    c = c < -1080 ? -1080 : c;
    double n = (c + VM_ROUND_F64) - VM_ROUND_F64, half = (n * .5 + VM_ROUND_F64) - VM_ROUND_F64;
    return vm_exp_poly_f64((c - n) * 0x1.62e42fefa39efp-1) * vm_pow2_f64(half) * vm_pow2_f64(n - half);
}

/* log x = k ln 2 + hi + *lo, of x > 0 */
VM_FN double vm_log_parts_f64(double x, double *k, double *lo)
{
    double tiny = x < 0x1p-1022, f = vm_log_reduce_f64(tiny != 0 ? x * 0x1p54 : x, k), h = .5 * f * f;
    double hi = f - h;
    *lo = vm_log_poly_f64(f, h, (f - hi) - h);
    *k = tiny != 0 ? *k - 54 : *k;
    return hi;
}

/* What the logarithm is where x is no positive number. */
VM_FN double vm_log_edge_f64(double x, double y)
{
    y = x < INFINITY ? y : x;
    y = x == 0 ? -(double)INFINITY : y;
    return x < 0 ? (double)NAN : y;
}

/* k whole + k rest + (hi + lo) / ln base, 1 / ln base = inverse + tail;  k whole is exact */
VM_FN double vm_log_base_f64(double x, double whole, double rest, double inverse, double tail)
{
    double k, lo, hi = vm_log_parts_f64(x, &k, &lo), p = hi * inverse, up = k * whole, y = up + p;
    double lost = vm_fma_f64(hi, inverse, -p) + vm_fma_f64(hi, tail, vm_fma_f64(lo, inverse, k * rest));
    return vm_log_edge_f64(x, y + (((up - y) + p) + lost));
}

VM_FN double vm_log2_f64(double x) /* .78 ulp */
{
    return vm_log_base_f64(x, 1, 0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
}

VM_FN double vm_log10_f64(double x) /* .69 ulp */
{
    return vm_log_base_f64(x, 0x1.34413509f6000p-2, 0x1.9fef311f12b36p-42, 0x1.bcb7b1526e50ep-2,
                           0x1.95355baaafad3p-57);
}

/* |x| < 1: x + x z p(z), z = x^2, 2^-57;  above: e - 1 / (4 e), e = e^|x| / 2 */
VM_FN double vm_sinh_f64(double x) /* 1.60 ulp */
{
    double a = vm_abs_f64(x), z = a * a, e = vm_exp_down_f64(a > 711 ? 711 : a, 1);
    double p = 0x1.952c77030ad4ap-49;
    p = vm_fma_f64(p, z, 0x1.ae7f3e733b81fp-41);
    p = vm_fma_f64(p, z, 0x1.6124613a86d09p-33);
    p = vm_fma_f64(p, z, 0x1.ae64567f544e4p-26);
    p = vm_fma_f64(p, z, 0x1.71de3a556c734p-19);
    p = vm_fma_f64(p, z, 0x1.a01a01a01a01ap-13);
    p = vm_fma_f64(p, z, 0x1.1111111111111p-7);
    p = vm_fma_f64(p, z, 0x1.5555555555555p-3);
    return vm_sign_f64(a < 1 ? vm_fma_f64(a * z, p, a) : e - .25 / e, x);
}

VM_FN double vm_cosh_f64(double x) /* 1.45 ulp */
{
    double a = vm_abs_f64(x), e = vm_exp_down_f64(a > 711 ? 711 : a, 1);
    return e + .25 / e;
}

VM_FN double vm_atanh_f64(double x) /* 1.69 ulp */
{
    double a = vm_abs_f64(x), t = 2 * a, q = (a < .5 ? t * a : t) / (1 - a);
    return vm_sign_f64(.5 * vm_log1p_f64(a < .5 ? t + q : q), x);
}

/* For |x| <= 2^20, as vm_sin_f64. */
VM_FN double vm_tan_f64(double x) /* 2.12 ulp */
{
    double n, low, c, r = vm_trig_reduce_f64(x, &n, &low), s = vm_sin_poly_f64(r, low, &c);
    double y = (vm_is_even_f64(n) ? s : c) / (vm_is_even_f64(n) ? c : -s);
    return vm_abs_f64(x) < 0x1p-27 ? x : y;
}

VM_FN double vm_atan_f64(double x) /* 1.35 ulp */
{
    double a = vm_abs_f64(x), y = vm_angle_f64(a > 0x1p60 ? 0x1p60 : a, 1);
    return x != x ? x : vm_sign_f64(y, x);
}

/* asin(t) - t = t z p(z), z = t^2 <= 1/4: 2^-59 of asin(t) */
#define VM_ASIN_TERMS(even, odd)                                                               \
    even(0x1.089f0c73216e4p-5) odd(-0x1.4f127029fa932p-6) even(0x1.5cf6bc1e371b7p-6)           \
        odd(0x1.fd20f7e8b88e2p-9) even(0x1.5f99f045249cbp-7) odd(0x1.75d5bb2861b36p-7)         \
            even(0x1.ca14f0aeb150ap-7) odd(0x1.1c4a6c533cdc3p-6) even(0x1.6e8bd73a05c74p-6)    \
                odd(0x1.f1c71ae35819fp-6) even(0x1.6db6db71209e8p-5) odd(0x1.333333332f989p-4) \
                    even(0x1.5555555555568p-3)
VM_FN double vm_asin_rest_f64(double t, double z)
{
    double z2 = z * z, p = 0, q = 0;
    VM_ASIN_TERMS(VM_STEP_EVEN, VM_STEP_ODD)
    return t * z * vm_fma_f64(q, z, p);
}

/* |x| > 1/2: pi/2 - 2 asin(sqrt((1 - |x|) / 2)) */
VM_FN double vm_asin_f64(double x) /* 1.10 ulp */
{
    double a = vm_abs_f64(x), low = .5 - .5 * a, t = a > .5 ? __builtin_sqrt(low) : a;
    double rest = vm_asin_rest_f64(t, a > .5 ? low : a * a);
    double d = 0x1.921fb54442d18p+0 - 2 * t;
    double far = d + (((0x1.921fb54442d18p+0 - d) - 2 * t) - (2 * rest - 0x1.1a62633145c07p-54));
    return vm_sign_f64(a > .5 ? far : t + rest, x);
}

VM_FN double vm_acos_f64(double x) /* 1.16 ulp */
{
    double a = vm_abs_f64(x), low = .5 - .5 * a, t = a > .5 ? __builtin_sqrt(low) : a;
    double rest = vm_asin_rest_f64(t, a > .5 ? low : a * a);
    double near = 0x1.921fb54442d18p+0 - (x + (vm_sign_f64(rest, x) - 0x1.1a62633145c07p-54));
    double far = x < 0 ? (0x1.921fb54442d18p+1 - 2 * t) - (2 * rest - 0x1.1a62633145c07p-53) : 2 * (t + rest);
    return a > .5 ? far : near;
}

/* erf(x), |x| <= 1/2: x p(z), z = x^2, 2^-57.7 */
#define VM_ERF_TERMS(step)                                                                  \
    step(0x1.8b4e07aa3614dp-20) step(-0x1.f2253dd498982p-17) step(0x1.f98db88c7bc76p-14)    \
        step(-0x1.c02d4f94eb66dp-11) step(0x1.565bcbf97ce2ap-8) step(-0x1.b82ce30f2dd6fp-6) \
            step(0x1.ce2f21a03d870p-4) step(-0x1.812746b0379b5p-2) step(0x1.20dd750429b6dp+0)
/* e^(b^2) erfc(b) = P(t) / (1 + 2 b), 1/2 <= b <= 28, t = (b - 4) / (b + 4), P by 2^-53.8 */
#define VM_ERFC_TERMS(even, odd)                                                                        \
    even(-0x1.3886b31c9e1a9p-27) odd(0x1.3df832f3a59dep-24) even(0x1.f5947541d2d54p-25)                 \
        odd(-0x1.a395efe77c754p-21) even(0x1.4c7e3a40b2cd8p-22) odd(0x1.7d19defe12b9ap-18)              \
            even(-0x1.78dbc2519c14ep-17) odd(-0x1.991fc78d76294p-16) even(0x1.3be232fecde4cp-13)        \
                odd(-0x1.a1e124e14dcb1p-13) even(-0x1.8d4ab65d762c7p-11) odd(0x1.49c6755348e3cp-8)      \
                    even(-0x1.0962386554788p-6) odd(0x1.3079eded06f37p-5) even(-0x1.0fb06dfeec9a8p-4)   \
                        odd(0x1.7fee004e59255p-4) even(-0x1.9ddb23c3e261ap-4) odd(0x1.16ecefcfa3532p-4) \
                            even(0x1.f7f5df66fca3dp-7) odd(-0x1.1df1ad154a26fp-3) even(0x1.3ba5916e9fd7fp+0)
#define VM_STEP_Z(c) p = vm_fma_f64(p, z, c);

VM_FN double vm_erf_small_f64(double x)
{
    double z = x * x, p = 0;
    VM_ERF_TERMS(VM_STEP_Z)
    return x * p;
}

VM_FN double vm_erfcx_far_f64(double b)
{
    double t = (b - 4) / (b + 4), z2 = t * t, p = 0, q = 0;
    VM_ERFC_TERMS(VM_STEP_EVEN, VM_STEP_ODD)
    return vm_fma_f64(q, t, p) / vm_fma_f64(2, b, 1);
}

/* erfc(a + rest), 1/2 <= a, of a rest below a's last place; 2^64 times as much until the end, since the
 * result may be subnormal */
VM_FN double vm_erfc_far_f64(double a, double rest)
{
    double b = a > 28 ? 28 : a, z = b * b, lost = vm_fma_f64(b, b, -z) + 2 * b * rest;
    double e = vm_exp_down_f64(-z, -64);
    return vm_erfcx_far_f64(b) * (e - e * lost) * 0x1p-64;
}

VM_FN double vm_erfc_f64(double x) /* 4.04 ulp */
{
    double a = vm_abs_f64(x), y = vm_erfc_far_f64(a, 0);
    return a < .5 ? 1 - vm_erf_small_f64(x) : x < 0 ? 2 - y : y;
}

/* erfc(-x / sqrt 2) / 2, as special_ndtr */
VM_FN double vm_ndtr_f64(double x)
{
    double c = 0.707106781186547524401, low = -4.8336466567264567e-17;
    double held = x > 40 ? 40 : x, h = held < -40 ? -40 : held;
    double t = -h * c, rest = vm_fma_f64(-h, c, -t) - h * low, a = vm_abs_f64(t);
    double y = .5 * vm_erfc_far_f64(a, t < 0 ? -rest : rest);
    return a < .5 ? .5 - .5 * vm_erf_small_f64(t) : t < 0 ? 1 - y : y;
}

/* e^(a^2) erfc(a), a >= 0; above 28 by the asymptotic series. */
VM_FN double vm_erfcx_above_f64(double a)
{
    double b = a > 28 ? 28 : a, low = a < .5 ? a : .5, w = .5 / a / a;
    double s = 1 - w * (1 - 3 * w * (1 - 5 * w * (1 - 7 * w * (1 - 9 * w * (1 - 11 * w)))));
    double near = vm_exp_core_f64(low * low) * (1 - vm_erf_small_f64(low));
    double y = a > 28 ? s / a * 0.564189583547756286948 : vm_erfcx_far_f64(b);
    return a < .5 ? near : y;
}

VM_FN double vm_erfcx_f64(double x)
{
    double a = vm_abs_f64(x), y = vm_erfcx_above_f64(a), b = a > 28 ? 28 : a, z = b * b;
    double e = vm_exp_f64(z), lost = vm_fma_f64(b, b, -z);
    double twice = 2 * e, mirrored = (twice < INFINITY ? twice + twice * lost : twice) - y;
    return x < 0 ? mirrored : y;
}

/* log(ndtr(x)): below 0 log(erfcx(-x / sqrt 2) / 2) - x^2 / 2, above log(1 - ndtr(-x)) */
VM_FN double vm_log_ndtr_f64(double x)
{
    double a = vm_abs_f64(x), half = .5 * vm_erfcx_above_f64(a * 0.707106781186547524401),
           b = a > 40 ? 40 : a;
    double z = .5 * b * b, lost = vm_fma_f64(.5 * b, b, -z), e = vm_exp_down_f64(-z, 0);
    double y = x < 0 ? vm_log_f64(half) - .5 * a * a : vm_log1p_f64(-half * (e - e * lost));
    return x == x ? y : x;
}

#else
#define vm_exp2_f64 exp2
#define vm_log2_f64 log2
#define vm_log10_f64 log10
#define vm_tan_f64 tan
#define vm_sinh_f64 sinh
#define vm_cosh_f64 cosh
#define vm_erfc_f64 erfc
#define vm_atan_f64 atan
#define vm_asin_f64 asin
#define vm_acos_f64 acos
#define vm_atanh_f64 atanh
#endif

/* The C library's, under the names that a generic caller makes. */
#define vm_asinh_f64 asinh
#define vm_acosh_f64 acosh
#define vm_pow_f64 pow

#endif
