/* vecmath.h - elementary functions for the elementwise kernels.
 *
 * Plain scalar functions, written so that gcc and clang vectorise a loop around one:
 *
 *   for (int64_t i = 0; i < n; i++) y[i] = vm_exp_f32(x[i]);
 *
 * They have no branch, no table and no call, only + - * / sqrt, integer operations on the bits, selects,
 * and fma where the target has it.  Each of these rounds the same in a vector lane and in a scalar, so
 * an element has the same bits in the body of a loop, in its tail, and at any alignment.  Builds with
 * and without FMA may differ within the bounds.
 *
 * Compile with -ffp-contract=off -fno-trapping-math -fno-math-errno, and never with -ffast-math.
 *
 * NaN, infinities, signed zeros and overflow are as C's Annex F has them, and subnormal results are
 * rounded, not flushed.  The bounds beside the functions are the largest errors seen by test_vecmath.c
 * in units of the last place, with FMA / without, over every 61st float of the whole range.
 *
 * Some f32 functions are cheap in double and then off by hardly more than the last rounding; those that
 * a training step spends its time in (exp, log, tanh, erf) stay in float.
 *
 * sin, cos and tan of f32 hold for |x| <= 2^31 (f64: 2^20).  A caller looks over a block with
 * vm_trig_needs_slow_f32, and computes a block that has a larger one by vm_sin_slow_f32 and so on:
 *
 *   int slow = 0;
 *   for (i = 0; i < n; i++) slow |= vm_trig_needs_slow_f32(x[i]);
 *   if (slow) for (i = 0; i < n; i++) y[i] = vm_sin_slow_f32(x[i]);
 *   else      for (i = 0; i < n; i++) y[i] = vm_sin_f32(x[i]);
 *
 * Polynomials are minimax fits made for this file (Remez exchange in 45 digits, each coefficient rounded
 * to float before the rest was fitted again); the comment beside one gives its interval and the largest
 * relative error that it brings to the function.
 */
#ifndef TAPEGRAD_VECMATH_H
#define TAPEGRAD_VECMATH_H

#include "vecmath64.h"

VM_FN uint32_t vm_bits_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

VM_FN float vm_from_bits_f32(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

VM_FN float vm_fma_f32(float a, float b, float c)
{
#if defined __FMA__ || defined __ARM_FEATURE_FMA
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

#define VM_SIGN_F32 UINT32_C(0x80000000)
#define VM_ROUND_F32 0x1.8p23f /* adding it leaves the nearest integer in the low bits of the sum */

VM_FN float vm_abs_f32(float x) { return vm_from_bits_f32(vm_bits_f32(x) & ~VM_SIGN_F32); }

/* |y| with the sign of x */
VM_FN float vm_sign_f32(float y, float x)
{
    return vm_from_bits_f32((vm_bits_f32(y) & ~VM_SIGN_F32) | (vm_bits_f32(x) & VM_SIGN_F32));
}

/* 2^n, -126 <= n <= 127 */
VM_FN float vm_pow2_f32(int32_t n) { return vm_from_bits_f32((uint32_t)(n + 127) << 23); }

/* y 2^n for 1/2 < y < 2: the first product is exact, so a subnormal result is rounded once. */
VM_FN float vm_scale_f32(float y, int32_t n)
{
    int32_t half = n >> 1;
    return y * vm_pow2_f32(half) * vm_pow2_f32(n - half);
}

/* The integer next to x scale, as n and as the returned float.  A NaN's n is any number, and harmless. */
VM_FN float vm_nearest_f32(float x, float scale, int32_t *n)
{
    float t = vm_fma_f32(x, scale, VM_ROUND_F32);
    *n = (int32_t)(vm_bits_f32(t) - UINT32_C(0x4b400000));
    return t - VM_ROUND_F32;
}

/* exp(x) = 2^n e^r, |r| <= .3467: e^r by 2^-28.2.  n ln2_hi is exact, 15 bits times 9. */
VM_FN float vm_exp_core_f32(float x, int32_t *n)
{
    float k = vm_nearest_f32(x, 0x1.715476p+0f, n);
    float r = vm_fma_f32(k, -0x1.7f7d1cp-20f, vm_fma_f32(k, -0x1.62e4p-1f, x));
    float p = 0x1.6ac868p-10f;
    p = vm_fma_f32(p, r, 0x1.123df2p-7f);
    p = vm_fma_f32(p, r, 0x1.555858p-5f);
    p = vm_fma_f32(p, r, 0x1.55548cp-3f);
    p = vm_fma_f32(p, r, 0x1.fffffcp-2f);
    return 1 + vm_fma_f32(r * r, p, r);
}

VM_FN float vm_exp_f32(float x) /* 1.00 / .98 ulp */
{
    int32_t n;
    x = x > 89 ? 89 : x;
    x = x < -104 ? -104 : x;
    float y = vm_exp_core_f32(x, &n);
    return vm_scale_f32(y, n);
}

/* e^x 2^-down, |x| <= 350, down an integer, for results that do not overflow */
VM_FN float vm_exp_down_f32(float x, float down) /* as vm_exp_f32 */
{
    int32_t n;
    float y = vm_exp_core_f32(x, &n);
    return vm_scale_f32(y, n - (int32_t)down);
}

/* 2^r, |r| <= 1/2: 2^-27.5 */
VM_FN float vm_exp2_f32(float x) /* .82 / 1.06 ulp */
{
    int32_t n;
    x = x > 129 ? 129 : x;
    x = x < -151 ? -151 : x;
    float r = x - vm_nearest_f32(x, 1, &n);
    float p = 0x1.4bd23ep-13f;
    p = vm_fma_f32(p, r, 0x1.5fbd26p-10f);
    p = vm_fma_f32(p, r, 0x1.3b21ccp-7f);
    p = vm_fma_f32(p, r, 0x1.c6ada8p-5f);
    p = vm_fma_f32(p, r, 0x1.ebfbe6p-3f);
    p = vm_fma_f32(p, r, 0x1.62e432p-1f);
    return vm_scale_f32(vm_fma_f32(r, p, 1), n);
}

/* 2 (a r^2 p + (a r + (a - 1/2))), a = 2^(n-1), r + r^2 p = e^r - 1: no overflow before the result has.
 * |r| <= .3467: 2^-26.1 */
VM_FN float vm_expm1_f32(float x) /* 1.29 ulp */
{
    int32_t n;
    float c = x > 89 ? 89 : x;
    c = c < -18 ? -18 : c;
    float k = vm_nearest_f32(c, 0x1.715476p+0f, &n);
    float r = vm_fma_f32(k, -0x1.7f7d1cp-20f, vm_fma_f32(k, -0x1.62e4p-1f, c));
    float p = 0x1.6abfe2p-10f;
    p = vm_fma_f32(p, r, 0x1.122c3cp-7f);
    p = vm_fma_f32(p, r, 0x1.55579ap-5f);
    p = vm_fma_f32(p, r, 0x1.5554aap-3f);
    p = vm_fma_f32(p, r, 0x1.fffffep-2f);
    float a = vm_pow2_f32(n - 1);
    float y = 2 * vm_fma_f32(a, r * r * p, vm_fma_f32(a, r, a - .5f));
    return vm_abs_f32(x) < 0x1p-25f ? x : y;
}

/* What log, log2 and log10 are where they are not y */
VM_FN float vm_log_edge_f32(float x, float y)
{
    y = x < INFINITY ? y : x;
    y = x == 0 ? -INFINITY : y;
    return x < 0 ? NAN : y;
}

/* k ln 2 + log(1 + f + d), sqrt(1/2) <= 1 + f < sqrt 2, d tiny: log(1 + f) = f - f^2/2 + f^3 p(f), 2^-29.3 */
VM_FN float vm_log_core_f32(float k, float f, float d)
{
    float z = f * f, p = 0x1.b36a32p-5f;
    p = vm_fma_f32(p, f, -0x1.be95ap-4f);
    p = vm_fma_f32(p, f, 0x1.f01f68p-4f);
    p = vm_fma_f32(p, f, -0x1.0111f6p-3f);
    p = vm_fma_f32(p, f, 0x1.23024cp-3f);
    p = vm_fma_f32(p, f, -0x1.552e4p-3f);
    p = vm_fma_f32(p, f, 0x1.99a544p-3f);
    p = vm_fma_f32(p, f, -0x1.000072p-2f);
    p = vm_fma_f32(p, f, 0x1.555548p-2f);
    float y = vm_fma_f32(k, 0x1.7f7d1cp-20f, vm_fma_f32(f * z, p, d));
    y = f + vm_fma_f32(-.5f, z, y);
    return vm_fma_f32(k, 0x1.62e4p-1f, y);
}

/* x = 2^k (1 + f) */
VM_FN float vm_log_f32(float x) /* .77 ulp */
{
    float up = x * (x < 0x1p-126f ? 0x1p24f : 1), bias = x < 0x1p-126f ? 151 : 127;
    uint32_t u = vm_bits_f32(up) + UINT32_C(0x004afb0d);
    float k = (float)(int32_t)(u >> 23) - bias;
    float f = vm_from_bits_f32((u & UINT32_C(0x007fffff)) + UINT32_C(0x3f3504f3)) - 1;
    return vm_log_edge_f32(x, vm_log_core_f32(k, f, 0));
}

/* log x of a normal x > 0, for results that a float holds: x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt 2,
 * log(1 + f) = f p(f), p by 2^-38.  Without a division it takes two thirds of vm_log_core_f64's time. */
VM_FN double vm_log_short_f64(double x)
{
    uint64_t u = vm_bits_f64(x) + UINT64_C(0x00095f6200000000);
    double k = vm_from_bits_f64(u >> 52 | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023);
    double f = vm_from_bits_f64((u & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e00000000)) - 1;
    double p = -0x1.827a940e44864p-5;
    p = vm_fma_f64(p, f, 0x1.7450fbf77bc18p-4);
    p = vm_fma_f64(p, f, -0x1.7eaf366ddb3dfp-4);
    p = vm_fma_f64(p, f, 0x1.72df5f43a0b36p-4);
    p = vm_fma_f64(p, f, -0x1.94a481a90569fp-4);
    p = vm_fma_f64(p, f, 0x1.c6c74537edb73p-4);
    p = vm_fma_f64(p, f, -0x1.0022d10053211p-3);
    p = vm_fma_f64(p, f, 0x1.2495b3ff17576p-3);
    p = vm_fma_f64(p, f, -0x1.555468681e9b4p-3);
    p = vm_fma_f64(p, f, 0x1.999982ba66962p-3);
    p = vm_fma_f64(p, f, -0x1.0000015fdf390p-2);
    p = vm_fma_f64(p, f, 0x1.5555556e75120p-2);
    p = vm_fma_f64(p, f, -0x1.fffffffecae59p-2);
    p = vm_fma_f64(p, f, 0x1.fffffffffbcb0p-1);
    return vm_fma_f64(k, 0x1.62e42fefa39efp-1, f * p);
}

/* A subnormal float is a normal double, so the double core needs no scaling. */
VM_FN float vm_log2_f32(float x) /* .50 ulp */
{
    return vm_log_edge_f32(x, (float)(vm_log_short_f64(x) * 0x1.71547652b82fep+0));
}

VM_FN float vm_log10_f32(float x) /* .50 ulp */
{
    return vm_log_edge_f32(x, (float)(vm_log_short_f64(x) * 0x1.bcb7b1526e50ep-2));
}

/* 1 + x = 2^k (1 + f + lost), f = x 2^-k + (2^-k - 1): x itself where k is 0.  lost is what f's rounding
 * lost; it is to be divided by 1 + f.  2^(2-k) and x / 4 stay in range for every x. */
VM_FN float vm_log1p_f32(float x) /* .82 ulp */
{
    uint32_t u = vm_bits_f32(1 + x) + UINT32_C(0x004afb0d);
    int32_t k = (int32_t)(u >> 23) - 127;
    float scale = vm_from_bits_f32((uint32_t)(129 - k) << 23), part = .25f * x * scale;
    float rest = .25f * scale - 1, f = part + rest, lost = part - (f - rest);
    float y = vm_log_core_f32((float)k, f, lost * (1 - f)), edge = x == -1 ? -INFINITY : x < -1 ? NAN : x;
    return x > -1 && x < INFINITY && vm_abs_f32(x) > 0x1p-60f ? y : edge;
}

/* |x| < .5625: x + x z p(z), z = x^2, 2^-29.4;  above: 1 - 2 / (e^2x + 1), which is 1 from 9.02 on */
VM_FN float vm_tanh_f32(float x) /* 1.39 ulp */
{
    float a = vm_abs_f32(x), z = a * a;
    float p = -0x1.9454f2p-8f;
    p = vm_fma_f32(p, z, 0x1.5811f6p-6f);
    p = vm_fma_f32(p, z, -0x1.b905c4p-5f);
    p = vm_fma_f32(p, z, 0x1.110c5ep-3f);
    p = vm_fma_f32(p, z, -0x1.555548p-2f);
    float near = vm_fma_f32(a * z, p, a);
    int32_t n;
    float e = vm_exp_core_f32(a > 10 ? 20 : 2 * a, &n) * vm_pow2_f32(n);
    return vm_sign_f32(a < .5625f ? near : 1 - 2 / (e + 1), x);
}

/* (e^x - e^-x) / 2 in double;  |x| < 2^-10, where that cancels: x + x^3/6, next term 2^-46 */
VM_FN float vm_sinh_f32(float x) /* .50 ulp */
{
    double d = x, a = vm_abs_f64(d), e = vm_exp_core_f64(a > 200 ? 200 : a);
    double y = a < 0x1p-10 ? a + a * a * a * (1. / 6) : .5 * (e - 1 / e);
    return vm_sign_f32((float)y, x);
}

VM_FN float vm_cosh_f32(float x) /* .50 ulp */
{
    double d = x, a = vm_abs_f64(d), e = vm_exp_core_f64(a > 200 ? 200 : a);
    return (float)(.5 * (e + 1 / e));
}

/* |x| < .9: x + x p(z), z = x^2, 2^-30;  above: 1 - e^-q(|x|), q = -log erfc by 2^-33.9 of erf.
 * From 3.92 on it is 1. */
VM_FN float vm_erf_f32(float x) /* 1.05 / 1.24 ulp */
{
    float a = vm_abs_f32(x), z = a * a, b = a > 3.925f ? 3.925f : a;
    float p = 0x1.4d29acp-14f;
    p = vm_fma_f32(p, z, -0x1.a583fp-11f);
    p = vm_fma_f32(p, z, 0x1.543f2cp-8f);
    p = vm_fma_f32(p, z, -0x1.b80062p-6f);
    p = vm_fma_f32(p, z, 0x1.ce2d6p-4f);
    p = vm_fma_f32(p, z, -0x1.81274p-2f);
    p = vm_fma_f32(p, z, 0x1.06eba8p-3f);
    float q = 0x1.5d33fep-16f;
    q = vm_fma_f32(q, b, -0x1.c42bc6p-12f);
    q = vm_fma_f32(q, b, 0x1.105494p-8f);
    q = vm_fma_f32(q, b, -0x1.9ae2bcp-6f);
    q = vm_fma_f32(q, b, 0x1.bb41e4p-4f);
    q = vm_fma_f32(q, b, 0x1.444d7ep-1f);
    q = vm_fma_f32(q, b, 0x1.21261p+0f);
    q = vm_fma_f32(q, b, -0x1.6246ap-13f);
    int32_t n;
    float e = vm_exp_core_f32(-q, &n) * vm_pow2_f32(n);
    return vm_sign_f32(a < .9f ? vm_fma_f32(a, p, a) : 1 - e, x);
}

/* erfc(a) = e^-a^2 P(t) / (1 + 2 a), t = (a - 2) / (a + 2), 2^-29.9;  erfc(-a) = 2 - erfc(a).
 * 10.06 is the first float whose erfc rounds to 0. */
VM_FN double vm_erfc_core_f32(double d)
{
    double a = vm_abs_f64(d);
    a = a > 10.4 ? 10.4 : a;
    double w = 1 + 2 * a, inv = 1 / ((a + 2) * w), t = (a - 2) * w * inv;
    double p = 0x1.4e518f19efc49p-14;
    p = vm_fma_f64(p, t, 0x1.64b674fb2224p-13);
    p = vm_fma_f64(p, t, -0x1.a3eae21b58884p-12);
    p = vm_fma_f64(p, t, -0x1.749776929a4bep-10);
    p = vm_fma_f64(p, t, 0x1.48470ce20c62fp-10);
    p = vm_fma_f64(p, t, 0x1.1d620e213e7fbp-7);
    p = vm_fma_f64(p, t, -0x1.07269623860d4p-7);
    p = vm_fma_f64(p, t, -0x1.bc270651aca91p-5);
    p = vm_fma_f64(p, t, 0x1.4ff9fb87e5127p-3);
    p = vm_fma_f64(p, t, -0x1.5407cf86ba731p-3);
    p = vm_fma_f64(p, t, -0x1.7bf5ea5a633e3p-4);
    p = vm_fma_f64(p, t, 0x1.46e80e27611ecp+0);
    double y = p * vm_exp_core_f64(-a * a) * ((a + 2) * inv);
    return d < 0 ? 2 - y : y;
}

VM_FN float vm_erfc_f32(float x) /* .52 ulp */ { return (float)vm_erfc_core_f32((double)x); }

/* The probability of the normal distribution above a = |x|, e^-q(a) by 2^-29.6 of 1, |x| <= 5.6; 0 beyond. */
VM_FN float vm_normal_above_f32(float x) /* 1 ulp of 1/2 */
{
    float a = vm_abs_f32(x), b = a > 5.6f ? 5.6f : a;
    float q = -0x1.87ee96p-22f;
    q = vm_fma_f32(q, b, 0x1.c5e8d2p-18f);
    q = vm_fma_f32(q, b, -0x1.bab672p-15f);
    q = vm_fma_f32(q, b, 0x1.a2a00ep-13f);
    q = vm_fma_f32(q, b, -0x1.f454eap-17f);
    q = vm_fma_f32(q, b, -0x1.3a8b8ep-8f);
    q = vm_fma_f32(q, b, 0x1.29b742p-5f);
    q = vm_fma_f32(q, b, 0x1.45f2c2p-2f);
    q = vm_fma_f32(q, b, 0x1.988454p-1f);
    q = vm_fma_f32(q, b, 0x1.62e43p-1f);
    int32_t n;
    float y = vm_exp_core_f32(-q, &n) * vm_pow2_f32(n);
    y = a > 5.6f ? 0 : y;
    return x == x ? y : x;
}

/* The same, and *density, from one e^(-x^2 / 2).  For a = |x| <= 6
 * it is e^(-a^2 / 2) t p(t - .6875), t = 1 / (1 + a / 4), p by 2^-26.9; from 13 on it is 0. */
VM_FN float vm_normal_f32(float x, float *density) /* 2 ulp of 1/2 */
{
    float a = vm_abs_f32(x), b = a > 13 ? 13 : a, t = 1 / vm_fma_f32(.25f, b, 1), s = t - .6875f;
    int32_t n;
    float e = vm_exp_core_f32(-.5f * b * b, &n) * vm_pow2_f32(n);
    float p = 0x1.3721eep-5f;
    p = vm_fma_f32(p, s, -0x1.0c0844p-7f);
    p = vm_fma_f32(p, s, -0x1.9deaeap-4f);
    p = vm_fma_f32(p, s, -0x1.1249bp-5f);
    p = vm_fma_f32(p, s, 0x1.087bf2p-2f);
    p = vm_fma_f32(p, s, 0x1.21d246p-1f);
    p = vm_fma_f32(p, s, 0x1.4d2114p-1f);
    p = vm_fma_f32(p, s, 0x1.fb00a8p-2f);
    p = vm_fma_f32(p, s, 0x1.0c7bb6p-2f);
    e = a > 13 ? 0 : e;
    *density = 0x1.988454p-2f * e;
    return x == x ? e * (t * p) : x;
}

/* atan(t) = t + t z p(z), z = t^2, 0 <= t <= 1, 2^-28.5;  above 1: pi/2 - atan(1 / x) */
static const float vm_atan_p[9] = { -0x1.d34fccp-10f, 0x1.6420fcp-7f,  -0x1.fd7be2p-6f,
                                    0x1.da2974p-5f,   -0x1.580908p-4f, 0x1.c08c4cp-4f,
                                    -0x1.242086p-3f,  0x1.9991e4p-3f,  -0x1.55553ep-2f };
VM_FN float vm_atan_f32(float x) /* 1.18 / 1.20 ulp */
{
    float a = vm_abs_f32(x), t = a > 1 ? 1 / a : a, z = t * t;
    float p = vm_atan_p[0];
    p = vm_fma_f32(p, z, vm_atan_p[1]);
    p = vm_fma_f32(p, z, vm_atan_p[2]);
    p = vm_fma_f32(p, z, vm_atan_p[3]);
    p = vm_fma_f32(p, z, vm_atan_p[4]);
    p = vm_fma_f32(p, z, vm_atan_p[5]);
    p = vm_fma_f32(p, z, vm_atan_p[6]);
    p = vm_fma_f32(p, z, vm_atan_p[7]);
    p = vm_fma_f32(p, z, vm_atan_p[8]);
    p = t * z * p;
    float far = 0x1.921fb6p+0f - (t + (p + 0x1.777a5cp-25f));
    return vm_sign_f32(a > 1 ? far : t + p, x);
}

/* asin(s) = s + s z p(z), z = s^2 <= 1/4, 2^-27.6; returned as the two terms.
 * For |x| > 1/2, s = sqrt((1 - |x|) / 2) and asin |x| = pi/2 - 2 asin s. */
VM_FN float vm_asin_core_f32(float a, float *tail)
{
    float z = a > .5f ? .5f * (1 - a) : a * a, s = a > .5f ? sqrtf(z) : a;
    float p = 0x1.596d3p-5f;
    p = vm_fma_f32(p, z, 0x1.8c2dacp-6f);
    p = vm_fma_f32(p, z, 0x1.747d04p-5f);
    p = vm_fma_f32(p, z, 0x1.3301fcp-4f);
    p = vm_fma_f32(p, z, 0x1.5555c8p-3f);
    *tail = s * z * p;
    return s;
}

VM_FN float vm_asin_f32(float x) /* 1.15 / 1.16 ulp */
{
    float a = vm_abs_f32(x), t, s = vm_asin_core_f32(a, &t);
    float u = 0x1.921fb6p+0f - 2 * s, lost = (0x1.921fb6p+0f - u) - 2 * s;
    float far = u - (vm_fma_f32(2, t, 0x1.777a5cp-25f) - lost);
    return vm_sign_f32(a > .5f ? far : s + t, x);
}

VM_FN float vm_acos_f32(float x) /* 1.09 ulp */
{
    float a = vm_abs_f32(x), t, s = vm_asin_core_f32(a, &t);
    float near = 0x1.921fb6p+0f - (vm_sign_f32(s, x) + (vm_sign_f32(t, x) + 0x1.777a5cp-25f));
    float below = 0x1.921fb6p+1f - (2 * s + vm_fma_f32(2, t, 0x1.777a5cp-24f));
    return a > .5f ? (x > 0 ? 2 * (s + t) : below) : near;
}

/* log(|x| + sqrt(x^2 + 1)) in double;  |x| < 2^-8, where that cancels: the series, next term 2^-52 */
VM_FN float vm_asinh_f32(float x) /* .50 ulp */
{
    double d = x, a = vm_abs_f64(d), z = a * a;
    double y = vm_log_short_f64(a + sqrt(z + 1));
    y = a < 0x1p-8 ? a + a * z * (z * (3. / 40) - 1. / 6) : y;
    return vm_sign_f32(a < INFINITY ? (float)y : (float)a, x);
}

VM_FN float vm_acosh_f32(float x) /* .50 ulp */
{
    double d = x, y = vm_log_short_f64(d + sqrt((d - 1) * (d + 1)));
    float edge = x < 1 ? NAN : x;
    return x >= 1 && x < INFINITY ? (float)y : edge;
}

/* log((1 + x) / (1 - x)) / 2 in double;  |x| < 2^-8: the series, next term 2^-50 */
VM_FN float vm_atanh_f32(float x) /* .50 ulp */
{
    double d = x, a = vm_abs_f64(d), z = a * a;
    double y = .5 * vm_log_short_f64((1 + a) / (1 - a));
    y = a < 0x1p-8 ? a + a * z * (1. / 3 + z * .2) : y;
    float edge = a == 1 ? INFINITY : NAN;
    return vm_sign_f32(a < 1 ? (float)y : edge, x);
}

/* x - n pi for |x| <= 2^31 and an n, whole or halves, next to x / pi.  Pi in two pieces of 22 bits, whose
 * products with n are exact, and a tail; no float in the range is nearer than 2^-30 to a multiple of pi/2, so
 * the result is good to 2^-36 of itself. */
VM_FN double vm_trig_reduce_f32(double x, double n)
{
    double r = vm_fma_f64(n, -0x1.921fbp+1, x);
    r = vm_fma_f64(n, -0x1.5110bp-21, r);
    return vm_fma_f64(n, -0x1.18469898cc517p-43, r);
}

/* sin r, |r| <= pi/2, by 2^-35.4, negative where the whole number in the last bits of n is odd */
VM_FN float vm_sin_half_f32(double r, double n)
{
    double z = r * r;
    double p = -0x1.9a0c64f80f44dp-26;
    p = vm_fma_f64(p, z, 0x1.716b98a2175e0p-19);
    p = vm_fma_f64(p, z, -0x1.a017a8d9e251fp-13);
    p = vm_fma_f64(p, z, 0x1.11110b74e9cedp-7);
    p = vm_fma_f64(p, z, -0x1.55555541766b7p-3);
    p = vm_fma_f64(p, z, 0x1.ffffffffd17fap-1);
    return (float)(p * vm_from_bits_f64(vm_bits_f64(r) ^ vm_bits_f64(n) << 63));
}

VM_FN float vm_sin_f32(float x) /* .50 ulp */
{
    double d = x, n = vm_fma_f64(d, 0x1.45f306dc9c883p-2, VM_ROUND_F64); /* multiples of pi */
    return vm_sin_half_f32(vm_trig_reduce_f32(d, n - VM_ROUND_F64), n);
}

/* cos((n - 1/2) pi + r) = sin(n pi + r) */
VM_FN float vm_cos_f32(float x) /* .50 ulp */
{
    double d = x, n = vm_fma_f64(d, 0x1.45f306dc9c883p-2, .5) + VM_ROUND_F64;
    return vm_sin_half_f32(vm_trig_reduce_f32(d, n - VM_ROUND_F64 - .5), n);
}

/* tan(n pi/2 + r), |r| <= pi/4: sin r by 2^-37.5 over cos r by 2^-42.9, or the negative inverse.  Comparing
 * halves as doubles, not bits of 64-bit integers, because SSE2 has the former only. */
VM_FN float vm_tan_f32(float x) /* .50 ulp */
{
    double d = x, half = .5 * (vm_fma_f64(d, 0x1.45f306dc9c883p-1, VM_ROUND_F64) - VM_ROUND_F64);
    double r = vm_trig_reduce_f32(d, half), z = r * r;
    double s = 0x1.6cd1a2dd5d0c1p-19;
    s = vm_fma_f64(s, z, -0x1.a00f7ddb7b49bp-13);
    s = vm_fma_f64(s, z, 0x1.11110868c55c8p-7);
    s = vm_fma_f64(s, z, -0x1.5555554c6f9d5p-3);
    s = r * vm_fma_f64(z, s, 1);
    double c = -0x1.241e603709c78p-22;
    c = vm_fma_f64(c, z, 0x1.a010ddad679c5p-16);
    c = vm_fma_f64(c, z, -0x1.6c16b8285a2b5p-10);
    c = vm_fma_f64(c, z, 0x1.5555554ed7e73p-5);
    c = vm_fma_f64(z * z, c, vm_fma_f64(z, -.5, 1));
    int even = (half + VM_ROUND_F64) - VM_ROUND_F64 == half;
    return (float)((even ? s : -c) / (even ? c : s));
}

VM_FN int vm_trig_needs_slow_f32(float x) { return vm_abs_f32(x) > 0x1p31f; }
VM_FN float vm_sin_slow_f32(float x) { return (float)sin((double)x); }
VM_FN float vm_cos_slow_f32(float x) { return (float)cos((double)x); }
VM_FN float vm_tan_slow_f32(float x) { return (float)tan((double)x); }

/* e^(y log |x|) in double: y log |x| is good to 2^-45, for results that a float holds.  Then the sign and
 * the special cases: q, twice the distance of y/2 from an integer, is 0 for an even y, 1 for an odd one.
 * Its tests are arithmetic, because gcc turns a chain of selects on q into conditions that it cannot
 * vectorise: r + sqrt(-q (1 - q)) adds -0 for a whole y, which changes nothing, and NaN for any other. */
VM_FN float vm_pow_f32(float x, float y) /* .50, over random pairs ulp */
{
    float a = vm_abs_f32(x), b = vm_abs_f32(y);
    double l = vm_log_core_f64(a, 0, 0);
    l = a == 0 ? -(double)INFINITY : l;
    l = a == INFINITY ? (double)INFINITY : l;
    double p = y * l;
    p = p > 100 ? 100 : p;
    p = p < -110 ? -110 : p;
    float r = (float)vm_exp_core_f64(p);
    r = a == 1 ? 1 : r;

    float half = b < 0x1p24f ? .5f * b : 0;
    half = b < 1 ? .25f : half;
    float q = 2 * vm_abs_f32(half - ((half + 0x1p23f) - 0x1p23f));
    uint32_t odd = ~(vm_bits_f32(q) - UINT32_C(0x3f800000)) & VM_SIGN_F32;
    r = vm_from_bits_f32(vm_bits_f32(r) | (odd & vm_bits_f32(x)));

    float power = r + sqrtf(-q * (1 - q));
    r = x < 0 && a < INFINITY ? power : r;
    r = x == x && y == y ? r : x + y;
    return x == 1 || y == 0 ? 1 : r;
}

#endif
