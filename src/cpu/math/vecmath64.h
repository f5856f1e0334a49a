/* vecmath64.h - elementary functions of doubles that the compiler can vectorise.
 *
 * The rules are those of vecmath.h, which is the file to include: no branch, no table, no call, only
 * operations that round the same in a vector lane and in a scalar, so an element's bits do not depend
 * on where in the loop it stood.
 *
 *   vm_exp_f64  vm_expm1_f64  vm_log_f64  vm_log1p_f64  vm_tanh_f64  vm_erf_f64  vm_sin_f64  vm_cos_f64
 *
 * are written here and, where the target has FMA, those of vecmath64_fma.h.  Every other vm_NAME_f64 is the C
 * library's NAME, at the end of that file.
 *
 * The bounds beside the functions are the largest errors that test_vecmath.c has seen against long
 * double, in units of the last place, with FMA / without, over 100 million random doubles.
 *
 * Polynomials are minimax fits made for this file (Remez exchange in 45 digits, coefficients then rounded
 * to double); the comment beside one gives its interval and the largest relative error that it brings to
 * the function.
 */
#ifndef TAPEGRAD_VECMATH64_H
#define TAPEGRAD_VECMATH64_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Inlined at every level: a loop with a call in it is not vectorised. */
#define VM_FN static inline __attribute__((always_inline))

VM_FN uint64_t vm_bits_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

VM_FN double vm_from_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* a b + c: fused where that is one instruction.  Elsewhere libm's fma would be a slow call, so it rounds
 * twice, and nothing here relies on it being exact. */
VM_FN double vm_fma_f64(double a, double b, double c)
{
#if defined __FMA__ || defined __ARM_FEATURE_FMA
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

#define VM_SIGN_F64 UINT64_C(0x8000000000000000)
#define VM_ROUND_F64 0x1.8p52 /* adding it leaves the nearest integer in the low bits of the sum */

VM_FN double vm_abs_f64(double x) { return vm_from_bits_f64(vm_bits_f64(x) & ~VM_SIGN_F64); }

/* |y| with the sign of x */
VM_FN double vm_sign_f64(double y, double x)
{
    return vm_from_bits_f64((vm_bits_f64(y) & ~VM_SIGN_F64) | (vm_bits_f64(x) & VM_SIGN_F64));
}

/* 2^n for an integer n in [-1022, 1023], held in a double */
VM_FN double vm_pow2_f64(double n) { return vm_from_bits_f64((vm_bits_f64(n + VM_ROUND_F64) + 1023) << 52); }

/* x = n ln 2 + r, |r| <= ln 2 / 2.  n ln2_hi is exact: 40 bits times 11. */
VM_FN double vm_exp_reduce_f64(double x, double *n)
{
    *n = vm_fma_f64(x, 0x1.71547652b82fep+0, VM_ROUND_F64) - VM_ROUND_F64;
    double r = vm_fma_f64(*n, -0x1.62e42fefa2000p-1, x);
    return vm_fma_f64(*n, -0x1.9ef35793c7673p-41, r);
}

/* e^r, |r| <= .3467, 2^-56.3 */
VM_FN double vm_exp_poly_f64(double r)
{
    double p = 0x1.ad7f3f6335839p-26;
    p = vm_fma_f64(p, r, 0x1.28ad9bb25afcbp-22);
    p = vm_fma_f64(p, r, 0x1.71df25b375c97p-19);
    p = vm_fma_f64(p, r, 0x1.a01999e22ec09p-16);
    p = vm_fma_f64(p, r, 0x1.a01a012a0e69bp-13);
    p = vm_fma_f64(p, r, 0x1.6c16c18438c42p-10);
    p = vm_fma_f64(p, r, 0x1.1111111127d14p-7);
    p = vm_fma_f64(p, r, 0x1.555555555083ep-5);
    p = vm_fma_f64(p, r, 0x1.55555555554f9p-3);
    p = vm_fma_f64(p, r, 0x1.000000000000ap-1);
    return 1 + vm_fma_f64(r * r, p, r);
}

/* e^x where the result is a normal number: |x| <= 708 */
VM_FN double vm_exp_core_f64(double x)
{
    double n, r = vm_exp_reduce_f64(x, &n);
    return vm_exp_poly_f64(r) * vm_pow2_f64(n);
}

/* e^x 2^-down, |x| <= 2300, down an integer, for results that do not overflow.  Two factors 2^n: the first
 * product is exact, so a subnormal result is rounded once. */
VM_FN double vm_exp_down_f64(double x, double down) /* as vm_exp_f64 */
{
    double n, r = vm_exp_reduce_f64(x, &n);
    n -= down;
    double n1 = (n * .5 + VM_ROUND_F64) - VM_ROUND_F64;
    return vm_exp_poly_f64(r) * vm_pow2_f64(n1) * vm_pow2_f64(n - n1);
}

VM_FN double vm_exp_f64(double x) /* 1.02 / 1.00 ulp */
{
    x = x > 710 ? 710 : x;
    return vm_exp_down_f64(x < -746 ? -746 : x, 0);
}

/* 2 (a r^2 p + (a r + (a - 1/2))), a = 2^(n-1), r + r^2 p = e^r - 1: no overflow before the result has.
 * |r| <= .3467: 2^-56.2 */
VM_FN double vm_expm1_f64(double x) /* 1.55 ulp */
{
    double n, c = x > 710 ? 710 : x;
    c = c < -40 ? -40 : c;
    double r = vm_exp_reduce_f64(c, &n);
    double p = 0x1.e632669af6feep-30;
    p = vm_fma_f64(p, r, 0x1.af4dff75c1fc9p-26);
    p = vm_fma_f64(p, r, 0x1.28022a1cacd91p-22);
    p = vm_fma_f64(p, r, 0x1.71de022892783p-19);
    p = vm_fma_f64(p, r, 0x1.a019f391c3344p-16);
    p = vm_fma_f64(p, r, 0x1.a01a01abea355p-13);
    p = vm_fma_f64(p, r, 0x1.6c16c16f0bd84p-10);
    p = vm_fma_f64(p, r, 0x1.11111111100d9p-7);
    p = vm_fma_f64(p, r, 0x1.5555555554d37p-5);
    p = vm_fma_f64(p, r, 0x1.5555555555557p-3);
    p = vm_fma_f64(p, r, 0x1.0000000000001p-1);
    double a = vm_pow2_f64(n - 1);
    double y = 2 * vm_fma_f64(a, r * r * p, vm_fma_f64(a, r, a - .5));
    return vm_abs_f64(x) < 0x1p-54 ? x : y;
}

/* x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt 2, of a normal x > 0; k as a double */
VM_FN double vm_log_reduce_f64(double x, double *k)
{
    uint64_t u = vm_bits_f64(x) + UINT64_C(0x00095f6200000000);
    *k = vm_from_bits_f64(u >> 52 | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023);
    return vm_from_bits_f64((u & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e00000000)) - 1;
}

/* s = f / (2 + f), |s| < .1716;  log(1 + f) = 2 s + s R(s^2) = f - (h - s (h + R)), h = f^2 / 2, R by 2^-59.4
 * What comes back is s (h + R) + d. */
VM_FN double vm_log_poly_f64(double f, double h, double d)
{
    double s = f / (2 + f), z = s * s;
    double p = 0x1.2f144a198737ap-3;
    p = vm_fma_f64(p, z, 0x1.39a0568ee86d2p-3);
    p = vm_fma_f64(p, z, 0x1.74664bcda60eap-3);
    p = vm_fma_f64(p, z, 0x1.c71c51cf26573p-3);
    p = vm_fma_f64(p, z, 0x1.2492494232c3ep-2);
    p = vm_fma_f64(p, z, 0x1.999999997f988p-2);
    p = vm_fma_f64(p, z, 0x1.5555555555593p-1);
    return vm_fma_f64(s, vm_fma_f64(z, p, h), d);
}

/* log(x 2^k0) + c / x for a normal x > 0 and a tiny c / x, passed as d */
VM_FN double vm_log_core_f64(double x, double k0, double d)
{
    double k, f = vm_log_reduce_f64(x, &k), h = .5 * f * f;
    k += k0;
    double low = vm_log_poly_f64(f, h, vm_fma_f64(k, 0x1.9ef35793c7673p-41, d));
    return vm_fma_f64(k, 0x1.62e42fefa2000p-1, f - (h - low));
}

VM_FN double vm_log_f64(double x) /* .80 ulp */
{
    double up = x * (x < 0x1p-1022 ? 0x1p54 : 1), k0 = x < 0x1p-1022 ? -54 : 0;
    double y = vm_log_core_f64(up, k0, 0);
    y = x < INFINITY ? y : x;
    y = x == 0 ? -(double)INFINITY : y;
    return x < 0 ? (double)NAN : y;
}

/* u = fl(1 + x); what the sum lost, c = 1 + x - u, comes back as c / u. */
VM_FN double vm_log1p_f64(double x) /* .80 / .84 ulp */
{
    double u = 1 + x;
    double c = x > 1 ? 1 - (u - x) : x - (u - 1);
    double y = vm_log_core_f64(u, 0, c / u);
    double edge = x == -1 ? -INFINITY : x < -1 ? (double)NAN : x;
    y = vm_abs_f64(x) < 0x1p-54 ? x : y;
    return x > -1 && x < INFINITY ? y : edge;
}

/* |x| < .55: x + x z p(z), z = x^2, 2^-59;  above: 1 - 2 / (e^2x + 1), which is 1 from 19.1 on */
VM_FN double vm_tanh_f64(double x) /* 1.41 ulp */
{
    double a = vm_abs_f64(x), z = a * a;
    double p = -0x1.46fca88c06521p-16;
    p = vm_fma_f64(p, z, 0x1.5d6c4b2122ea7p-14);
    p = vm_fma_f64(p, z, -0x1.e96d07ca009d2p-13);
    p = vm_fma_f64(p, z, 0x1.34836b525ee5bp-11);
    p = vm_fma_f64(p, z, -0x1.7d8fcbb80de01p-10);
    p = vm_fma_f64(p, z, 0x1.d6d29afcf58afp-9);
    p = vm_fma_f64(p, z, -0x1.226e2f10c6c74p-7);
    p = vm_fma_f64(p, z, 0x1.664f4859548b5p-6);
    p = vm_fma_f64(p, z, -0x1.ba1ba1b97d0f1p-5);
    p = vm_fma_f64(p, z, 0x1.1111111110796p-3);
    p = vm_fma_f64(p, z, -0x1.555555555554fp-2);
    double near = vm_fma_f64(a * z, p, a);
    double far = 1 - 2 / (vm_exp_core_f64(a > 22 ? 44 : 2 * a) + 1);
    return vm_sign_f64(a < .55 ? near : far, x);
}

/* |x| < .85: x + x p(z), z = x^2, 2^-54.8;  above: 1 - e^-z P(t) / (1 + 2 a), a = |x| <= 6,
 * t = (a - 3) / (a + 3), P by 2^-54.5 of an erfc that is less than .23 */
VM_FN double vm_erf_f64(double x) /* 1.43 ulp */
{
    double a = vm_abs_f64(x), z = a * a;
    double p = -0x1.e4e48a39b32f5p-31;
    p = vm_fma_f64(p, z, 0x1.e752170eccb0cp-27);
    p = vm_fma_f64(p, z, -0x1.5e06b3facba12p-23);
    p = vm_fma_f64(p, z, 0x1.b9c78c3f2ac8ep-20);
    p = vm_fma_f64(p, z, -0x1.f4d095b591bddp-17);
    p = vm_fma_f64(p, z, 0x1.f9a315abe4c63p-14);
    p = vm_fma_f64(p, z, -0x1.c02db390e8f07p-11);
    p = vm_fma_f64(p, z, 0x1.565bcd0ca30fbp-8);
    p = vm_fma_f64(p, z, -0x1.b82ce312801b9p-6);
    p = vm_fma_f64(p, z, 0x1.ce2f21a042a89p-4);
    p = vm_fma_f64(p, z, -0x1.812746b0379e5p-2);
    p = vm_fma_f64(p, z, 0x1.06eba8214db69p-3);
    double near = vm_fma_f64(a, p, a);

    double b = a > 6 ? 6 : a, w = vm_fma_f64(2, b, 1), inv = 1 / ((b + 3) * w), t = (b - 3) * w * inv;
    double q = -0x1.9766d5a2a6852p-23;
    q = vm_fma_f64(q, t, 0x1.4015c442fcce3p-21);
    q = vm_fma_f64(q, t, 0x1.c63bf5bb4de29p-19);
    q = vm_fma_f64(q, t, -0x1.c5e2b692ee9c2p-21);
    q = vm_fma_f64(q, t, -0x1.515c4162ecbfbp-16);
    q = vm_fma_f64(q, t, 0x1.4d7cf3c4ba60ap-18);
    q = vm_fma_f64(q, t, 0x1.065c54d43fe8cp-13);
    q = vm_fma_f64(q, t, -0x1.b9145fccd98cdp-14);
    q = vm_fma_f64(q, t, -0x1.98db6135d56a1p-11);
    q = vm_fma_f64(q, t, 0x1.ef1bded7cacabp-10);
    q = vm_fma_f64(q, t, 0x1.4b884e7db8187p-9);
    q = vm_fma_f64(q, t, -0x1.8574c40c9788cp-6);
    q = vm_fma_f64(q, t, 0x1.17ca2877e46bdp-4);
    q = vm_fma_f64(q, t, -0x1.e88b803a48301p-4);
    q = vm_fma_f64(q, t, 0x1.098366a5b47f4p-3);
    q = vm_fma_f64(q, t, -0x1.85a15c58aa623p-5);
    q = vm_fma_f64(q, t, -0x1.15c084bb9e8f4p-3);
    q = vm_fma_f64(q, t, 0x1.40c522d7e4987p+0);
    double far = 1 - q * vm_exp_core_f64(-b * b) * ((b + 3) * inv);
    return vm_sign_f64(a < .85 ? near : far, x);
}

/* x = n pi/2 + r + *low, |r| <= pi/4, for |x| <= 2^20: pi/2 in three pieces of 33 bits, whose products
 * with n are exact, and a tail.  The two subtractions that can round leave their error in *low, because
 * the nearest double to a multiple of pi/2 cancels 60 bits. */
VM_FN double vm_trig_reduce_f64(double x, double *n, double *low)
{
    *n = vm_fma_f64(x, 0x1.45f306dc9c883p-1, VM_ROUND_F64) - VM_ROUND_F64;
    double a = vm_fma_f64(*n, -0x1.921fb54400000p+0, x);
    double w = *n * 0x1.0b4611a600000p-34, b = a - w, v = a - b;
    double e = (a - (b + v)) + (v - w);
    w = *n * 0x1.3198a2e000000p-69;
    double c = b - w;
    v = b - c;
    e += (b - (c + v)) + (v - w);
    e = vm_fma_f64(*n, -0x1.b839a252049c1p-104, e);
    double r = c + e;
    *low = (c - r) + e;
    return r;
}

/* sin and cos of r + low, |r| <= pi/4: 2^-56.4, 2^-59.6 */
VM_FN double vm_sin_poly_f64(double r, double low, double *cosine)
{
    double z = r * r, h = .5 * z, one = 1 - h;
    double p = 0x1.5d8f990cd0be8p-33;
    p = vm_fma_f64(p, z, -0x1.ae5e59d398634p-26);
    p = vm_fma_f64(p, z, 0x1.71de3566e7e0ap-19);
    p = vm_fma_f64(p, z, -0x1.a01a019bfce80p-13);
    p = vm_fma_f64(p, z, 0x1.111111110f7c8p-7);
    p = vm_fma_f64(p, z, -0x1.5555555555548p-3);
    double q = -0x1.8fa45b5a41e7dp-37;
    q = vm_fma_f64(q, z, 0x1.1ee9d73eaf326p-29);
    q = vm_fma_f64(q, z, -0x1.27e4f7ea1b30bp-22);
    q = vm_fma_f64(q, z, 0x1.a01a019c836afp-16);
    q = vm_fma_f64(q, z, -0x1.6c16c16c14f88p-10);
    q = vm_fma_f64(q, z, 0x1.555555555554bp-5);
    *cosine = one + vm_fma_f64(z * z, q, ((1 - one) - h) - r * low);
    return r + vm_fma_f64(r * z, p, low * one);
}

VM_FN int vm_is_even_f64(double n) { return ((n * .5 + VM_ROUND_F64) - VM_ROUND_F64) == n * .5; }

/* sin of n pi/2 + r + low: sin r or cos r by the parity of n, the sign by its second bit */
VM_FN double vm_sin_quadrant_f64(double n, double r, double low)
{
    double c, s = vm_sin_poly_f64(r, low, &c), y = vm_is_even_f64(n) ? s : c;
    return vm_from_bits_f64(vm_bits_f64(y) ^ ((vm_bits_f64(n + VM_ROUND_F64) << 62) & VM_SIGN_F64));
}

/* For |x| <= 2^20; see vm_trig_needs_slow_f64. */
VM_FN double vm_sin_f64(double x) /* .78 / .81 ulp */
{
    double n, low, r = vm_trig_reduce_f64(x, &n, &low);
    double y = vm_sin_quadrant_f64(n, r, low);
    return vm_abs_f64(x) < 0x1p-27 ? x : y;
}

VM_FN double vm_cos_f64(double x) /* .77 / .82 ulp */
{
    double n, low, r = vm_trig_reduce_f64(x, &n, &low);
    return vm_sin_quadrant_f64(n + 1, r, low);
}

/* Beyond this the reduction is wrong: the caller computes the block by vm_sin_slow_f64 and so on. */
VM_FN int vm_trig_needs_slow_f64(double x) { return vm_abs_f64(x) > 0x1p20; }
VM_FN double vm_sin_slow_f64(double x) { return sin(x); }
VM_FN double vm_cos_slow_f64(double x) { return cos(x); }
VM_FN double vm_tan_slow_f64(double x) { return tan(x); }

/* Polynomials whose even and odd powers are apart, since one power waits for the other */
#define VM_STEP_EVEN(c) p = vm_fma_f64(p, z2, c);
#define VM_STEP_ODD(c) q = vm_fma_f64(q, z2, c);

/* atan(t), |t| <= tan(pi/8): t + t z p(z), z = t^2, 2^-59 */
#define VM_ATAN_TERMS(even, odd)                                                              \
    even(-0x1.2841ff089ce39p-6) odd(0x1.3934ad1bc96efp-5) even(-0x1.9d656e25c114cp-5)         \
        odd(0x1.df320f4dab121p-5) even(-0x1.10ee49ff227fcp-4) odd(0x1.3b1157e3033c8p-4)       \
            even(-0x1.745cfcbbbade7p-4) odd(0x1.c71c710c75675p-4) even(-0x1.249249231d32dp-3) \
                odd(0x1.9999999996d46p-3) even(-0x1.5555555555548p-2)
VM_FN double vm_atan_poly_f64(double t)
{
    double z = t * t, z2 = z * z, p = 0, q = 0;
    VM_ATAN_TERMS(VM_STEP_EVEN, VM_STEP_ODD)
    return vm_fma_f64(t * z, vm_fma_f64(q, z, p), t);
}

/* The angle of y to x, both positive, the larger above 0: that of the smaller to the larger is that of c to
 * 1, c = 0, 1/2 or 1 whichever is near, and the rest. */
VM_FN double vm_angle_f64(double y, double x)
{
    double most = x > y ? x : y, least = x > y ? y : x;
    double c = least > .6875 * most ? 1 : least > 0.41421356237309504880 * most ? .5 : 0;
    double hi = c > .5 ? 0x1.921fb54442d18p-1 : c > 0 ? 0x1.dac670561bb4fp-2 : 0;
    double lo = c > .5 ? 0x1.1a62633145c07p-55 : c > 0 ? 0x1.a2b7f222f65e2p-56 : 0;
    double angle = hi + (vm_atan_poly_f64((least - c * most) / (most + c * least)) + lo);
    return y > x ? 0x1.921fb54442d18p+0 - (angle - 0x1.1a62633145c07p-54) : angle;
}

#include "vecmath64_fma.h"

#endif
