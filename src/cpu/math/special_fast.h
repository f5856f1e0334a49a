/* special_fast.h - special functions in double that the compiler can vectorise, each on the part of its
 * domain where hard_NAME is 0; elsewhere the caller takes special.h's, scalar and right everywhere, beside
 * which test_vecmath.c holds them.  10 to 30 times as fast.
 *
 *   fast_lgamma(x)    0 < x < inf
 *   fast_digamma(x)   0 < x
 *   fast_trigamma(x)  0 < x; its derivative
 *   fast_erfinv(y)    1 - |y| >= 2^-34
 *
 * Loops have a fixed number of steps, of which each element takes those that it needs. */
#ifndef TG_SPECIAL_FAST_H
#define TG_SPECIAL_FAST_H

#include "vecmath64.h"

/* A loop in a loop is not vectorised. */
#ifdef __clang__
#define UNROLL_STEPS _Pragma("clang loop unroll(full)")
#else
#define UNROLL_STEPS _Pragma("GCC unroll 16")
#endif

VM_FN int hard_lgamma(double x) { return !(x > 0x1p-1000 && x < 0x1p1000); }
VM_FN int hard_digamma(double x) { return !(x > 0x1p-500 && x < 0x1p500); }
VM_FN int hard_erfinv(double y) { return !(vm_abs_f64(y) < 1 - 0x1p-34); }

/* sum over k of B_2k / (2k (2k - 1) x^(2k - 1)), up to k = 7: at 10.5 the next term is 1e-17. */
VM_FN double vm_stirling(double x)
{
    const double inv = 1 / x, z = inv * inv;
    double s = 1. / 156;
    s = vm_fma_f64(s, z, -691. / 360360);
    s = vm_fma_f64(s, z, 1. / 1188);
    s = vm_fma_f64(s, z, -1. / 1680);
    s = vm_fma_f64(s, z, 1. / 1260);
    s = vm_fma_f64(s, z, -1. / 360);
    s = vm_fma_f64(s, z, 1. / 12);
    return s * inv;
}

/* log Gamma(2 + t) = t p(t) by 2^-57.5, |t| <= 1/2, so that it is right where it is 0; from 2.5 on the
 * recurrence down to there, from 10.5 on Stirling's series; below 1.5 one step up, which keeps what is near
 * 1, below 1/2 two. */
VM_FN double fast_lgamma(double x)
{
    double t = x < 1.5 ? x - 1 : x - 2, z = 1; /* exact: where the result is near 0, so is t */
    t = x < .5 ? x : t;
    UNROLL_STEPS
    for (int k = 0; k < 8; k++) {
        const int high = t >= .5;
        z = high ? z * (t + 1) : z;
        t = high ? t - 1 : t;
    }
    const int far = x >= 10.5;
    double w = x < .5 ? x * (x + 1) : z;
    w = x < 1.5 && x >= .5 ? x : w;
    w = far ? x : w;
    const double l = vm_log_core_f64(w, 0, 0);
    double p = 0x1.2703c6effc4ebp-22;
    p = vm_fma_f64(p, t, -0x1.37fd97eeee99dp-21);
    p = vm_fma_f64(p, t, 0x1.f038cb2f6a913p-21);
    p = vm_fma_f64(p, t, -0x1.08fccc794a9c7p-19);
    p = vm_fma_f64(p, t, 0x1.2620de1c78d97p-18);
    p = vm_fma_f64(p, t, -0x1.3d4ce65b1d70bp-17);
    p = vm_fma_f64(p, t, 0x1.5808af19fa483p-16);
    p = vm_fma_f64(p, t, -0x1.78d8f868f383fp-15);
    p = vm_fma_f64(p, t, 0x1.a127cd91ac95bp-14);
    p = vm_fma_f64(p, t, -0x1.d3fd6a9087d23p-13);
    p = vm_fma_f64(p, t, 0x1.0b36af5972ed1p-11);
    p = vm_fma_f64(p, t, -0x1.38ac5bfce42c1p-10);
    p = vm_fma_f64(p, t, 0x1.7add6eadfcc7bp-9);
    p = vm_fma_f64(p, t, -0x1.e404fc21d8fe7p-8);
    p = vm_fma_f64(p, t, 0x1.51322ac7d8333p-6);
    p = vm_fma_f64(p, t, -0x1.13e001a557555p-4);
    p = vm_fma_f64(p, t, 0x1.4a34cc4a60fa6p-2);
    p = vm_fma_f64(p, t, 0x1.b0ee6072093cep-2);
    const double large = vm_fma_f64(x - .5, l, 0.91893853320467274178 - x) + vm_stirling(x);
    const double small = vm_fma_f64(t, p, x < 1.5 ? -l : l);
    return far ? large : small;
}

/* Up to 10 by the recurrence, two terms at a time, then the asymptotic series. */
VM_FN double fast_digamma(double x)
{
    double below = 0;
    UNROLL_STEPS
    for (int k = 0; k < 5; k++) {
        const int low = x < 10;
        const double terms = (2 * x + 1) / (x * (x + 1));
        below = low ? below + terms : below;
        x = low ? x + 2 : x;
    }
    const double inv = 1 / x, z = inv * inv;
    double s = 1. / 12;
    s = vm_fma_f64(s, z, -691. / 32760);
    s = vm_fma_f64(s, z, 1. / 132);
    s = vm_fma_f64(s, z, -1. / 240);
    s = vm_fma_f64(s, z, 1. / 252);
    s = vm_fma_f64(s, z, -1. / 120);
    s = vm_fma_f64(s, z, 1. / 12);
    return vm_log_core_f64(x, 0, 0) - vm_fma_f64(s, z, .5 * inv) - below;
}

VM_FN double fast_trigamma(double x)
{
    double below = 0;
    UNROLL_STEPS
    for (int k = 0; k < 5; k++) {
        const int low = x < 10;
        const double a = x * x, b = (x + 1) * (x + 1), terms = (a + b) / (a * b);
        below = low ? below + terms : below;
        x = low ? x + 2 : x;
    }
    const double inv = 1 / x, z = inv * inv;
    double s = -3617. / 510;
    s = vm_fma_f64(s, z, 7. / 6);
    s = vm_fma_f64(s, z, -691. / 2730);
    s = vm_fma_f64(s, z, 5. / 66);
    s = vm_fma_f64(s, z, -1. / 30);
    s = vm_fma_f64(s, z, 1. / 42);
    s = vm_fma_f64(s, z, -1. / 30);
    s = vm_fma_f64(s, z, 1. / 6);
    return inv + z * vm_fma_f64(s, inv, .5) + below;
}

/* Wichura's rational functions (AS 241), which special_ndtri has too, times sqrt(1/2): of y for |y| <= .85,
 * else of sqrt(-log((1 - |y|) / 2)).  The first as a constant and what is left, which halves its error. */
VM_FN double fast_erfinv(double y)
{
    const double m = vm_abs_f64(y), q = .5 * y;
    const double high = vm_from_bits_f64(vm_bits_f64(q) & ~UINT64_C(0x7ffffff)); /* its square is exact */
    const double r = (.180625 - high * high) - (q - high) * (q + high);
    double a = -0x1.2e939cf8eb2edp+12, b = 5.2264952788528545610e3;
    a = vm_fma_f64(a, r, -0x1.33501ef502be0p+14), b = vm_fma_f64(b, r, 2.8729085735721942674e4);
    a = vm_fma_f64(a, r, -0x1.2d9016a4da2a0p+14), b = vm_fma_f64(b, r, 3.9307895800092710610e4);
    a = vm_fma_f64(a, r, -0x1.b66c8fb351fb3p+12), b = vm_fma_f64(b, r, 2.1213794301586595867e4);
    a = vm_fma_f64(a, r, -0x1.084f14600d969p+10), b = vm_fma_f64(b, r, 5.3941960214247511077e3);
    a = vm_fma_f64(a, r, -0x1.c0d6f1f91c44bp+5), b = vm_fma_f64(b, r, 6.8718700749205790830e2);
    a = vm_fma_f64(a, r, 0x1.64ab8da81c783p-1), b = vm_fma_f64(b, r, 4.2313330701600911252e1);
    a = vm_fma_f64(a, r, 0x1.9fd014b1efdedp-4), b = vm_fma_f64(b, r, 1);
    const double t = sqrt(-vm_log_core_f64(.5 * (1 - m), 0, 0)) - 1.6;
    double c = 7.74545014278341407640e-4, d = 1.05075007164441684324e-9;
    c = vm_fma_f64(c, t, 2.27238449892691845833e-2), d = vm_fma_f64(d, t, 5.47593808499534494600e-4);
    c = vm_fma_f64(c, t, 2.41780725177450611770e-1), d = vm_fma_f64(d, t, 1.51986665636164571966e-2);
    c = vm_fma_f64(c, t, 1.27045825245236838258), d = vm_fma_f64(d, t, 1.48103976427480074590e-1);
    c = vm_fma_f64(c, t, 3.64784832476320460504), d = vm_fma_f64(d, t, 6.89767334985100004550e-1);
    c = vm_fma_f64(c, t, 5.76949722146069140550), d = vm_fma_f64(d, t, 1.67638483018380384940);
    c = vm_fma_f64(c, t, 4.63033784615654529590), d = vm_fma_f64(d, t, 2.05319162663775882187);
    c = vm_fma_f64(c, t, 1.42343711074968357734), d = vm_fma_f64(d, t, 1);
    const int near = m <= .85;
    const double ratio = (near ? a : 0.70710678118654752440 * c) / (near ? b : d);
    return near ? y * (0x1.189478f6f67f2p+0 + ratio) : vm_sign_f64(ratio, y);
}

#endif
