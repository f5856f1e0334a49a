/* special_rounded.h - Bessel functions and those of the normal distribution, right to 2^-34: for results that
 * are rounded to f32 (map_rare_kernel.c).  Up to ten times as fast in vectors as the loops of
 * special_normal.h, which are their plain forms (test_narrow.c holds them to .51 ulp of f32).
 *
 * Polynomials by interpolation at Chebyshev's points:
 *   e^-x I(x) = p(x / 4 - 1) up to 8, q(16 / x - 1) / sqrt(x) beyond, 2^-37; of order 1 the first times x
 *   erfcx(x) = p(t) / (1 + 2 x), t = (x - 2) / (x + 2), 2^-35;  erfcx(-x) = 2 e^x^2 - erfcx(x) */
#ifndef TG_SPECIAL_ROUNDED_H
#define TG_SPECIAL_ROUNDED_H

#include "vecmath.h"

static const double bessel_near_0[] = {
    0x1.95155af42a1f3p-18, -0x1.2f94b763c17bcp-16, 0x1.26169fa3bb185p-16, -0x1.5859007bf28c7p-15,
    0x1.6c8f2da180618p-13, -0x1.b7e1fac2e22cbp-12, 0x1.bb738b0695f1bp-11, -0x1.d223e5a3e4913p-10,
    0x1.daebaa0501240p-9,  -0x1.be75937e0e228p-8,  0x1.87d430342e181p-7,  -0x1.425a8247854a6p-6,
    0x1.ee71d6ec38755p-6,  -0x1.6028194e604b0p-5,  0x1.d11de0a34503fp-5,  -0x1.1cd6ecb81fa8fp-4,
    0x1.44b61b6feb33bp-4,  -0x1.5c029669bfa3dp-4,  0x1.65c235abf7cdep-4,  -0x1.6cb8d088c9ef1p-4,
    0x1.8322d1d8ddd2dp-4,  -0x1.cedda005415ddp-4,  0x1.a7f09f8eedf5ap-3,
};
static const double bessel_near_1[] = {
    0x1.6268c4f49300dp-21, -0x1.171060a6741c4p-19, 0x1.52897af6df570p-19, -0x1.b7b5cfee006a0p-18,
    0x1.a9ca646adb5c1p-16, -0x1.11c3b3bcbd1ffp-14, 0x1.350f6c76f62f6p-13, -0x1.620ba0748a5c4p-12,
    0x1.86aa4024d1d66p-11, -0x1.93f4bad0f3b73p-10, 0x1.89f0955938925p-9,  -0x1.6aa90b74cef70p-8,
    0x1.3a0c99bb69326p-7,  -0x1.fe3f4ab84747cp-7,  0x1.8412516bcdd45p-6,  -0x1.13d5e31a5588ap-5,
    0x1.6df95ef2f6b8ap-5,  -0x1.c4daa66f1b3b4p-5,  0x1.0530f81603087p-4,  -0x1.1881379946ec0p-4,
    0x1.16c390ddb657bp-4,  -0x1.f4bb071a9e5eep-5,  0x1.6e14eb8e5d319p-5,
};
static const double bessel_far_0[] = {
    -0x1.ea40bb501e1bep-28, -0x1.1875620ec70c8p-27, 0x1.4c84c83d64f89p-26, 0x1.ad64aa9d72e97p-25,
    0x1.82b19d70f4e41p-24,  0x1.3b335f55742b5p-22,  0x1.8e3f6e7fdf997p-20, 0x1.75eb2cbbc8e60p-17,
    0x1.1daa748ce5c44p-13,  0x1.b879697b53c10p-9,   0x1.9bd428ad249a5p-2,
};
static const double bessel_far_1[] = {
    0x1.57f5ca7efd002p-29,  0x1.f1bf409549bdcp-28,  0x1.8a077771686fbp-30,  -0x1.60d759be6e04ap-26,
    -0x1.98e670bbfd02bp-25, -0x1.b63453e5ce0c0p-24, -0x1.7506ed2ac888ap-22, -0x1.ec6a2125d0890p-20,
    -0x1.f89cd4fd62221p-17, -0x1.cbc5545adaeeep-13, -0x1.3f79619851405p-7,  0x1.8ebe783a86e1bp-2,
};
static const double erfcx_scaled[] = {
    0x1.d635474be4ca8p-20,  0x1.219b889031498p-18, -0x1.fdd101f3b2aedp-18, -0x1.25a739ed944a6p-15,
    -0x1.c8a3b6b9377e0p-18, 0x1.3818b26d9b62fp-13, 0x1.b6821eb5ce526p-13,  -0x1.daef21da9a721p-12,
    -0x1.7e1b1bbfc602dp-10, 0x1.4d2729a3896f7p-10, 0x1.1dd3fc116d243p-7,   -0x1.07418ed54e30ep-7,
    -0x1.bc2b9a31c2936p-5,  0x1.4ffa1d534e8dap-3,  -0x1.5407beb8cc5f5p-3,  -0x1.7bf5ec0edad7fp-4,
    0x1.46e80e2277953p+0,
};

#define HORNER(c, t) horner(c, (int)(sizeof(c) / sizeof *(c)), t)
VM_FN double horner(const double *c, int n, double t)
{
    double y = c[0];
    ROUNDED_STEPS
    for (int i = 1; i < n; i++) y = vm_fma_f64(y, t, c[i]);
    return y;
}

/* From 700 on the result overflows in f32; infinity stays one. */
VM_FN double rounded_i0(double x)
{
    const double a = vm_abs_f64(x), held = a > 700 ? 700 : a, far = held > 8 ? held : 8;
    const double near = HORNER(bessel_near_0, .25 * (held > 8 ? 8 : held) - 1),
                 beyond = HORNER(bessel_far_0, 16 / far - 1) / __builtin_sqrt(far);
    return (held > 8 ? beyond : near) * vm_exp_core_f64(held);
}

VM_FN double rounded_i1(double x)
{
    const double a = vm_abs_f64(x), held = a > 700 ? 700 : a, far = held > 8 ? held : 8;
    const double near = HORNER(bessel_near_1, .25 * (held > 8 ? 8 : held) - 1) * held,
                 beyond = HORNER(bessel_far_1, 16 / far - 1) / __builtin_sqrt(far);
    return vm_sign_f64((held > 8 ? beyond : near) * vm_exp_core_f64(held), x);
}

/* erfcx(a), a >= 0; NaN stays. */
VM_FN double rounded_erfcx_above(double a)
{
    const double held = a > 1e300 ? 1e300 : a;
    return HORNER(erfcx_scaled, (held - 2) / (held + 2)) / (1 + 2 * held);
}

VM_FN double rounded_erfcx(double x)
{
    const double above = rounded_erfcx_above(vm_abs_f64(x)), z = x * x;
    return x < 0 ? 2 * vm_exp_core_f64(z > 700 ? 700 : z) - above : above;
}

/* log(erfcx(-x / sqrt 2) / 2) - x^2 / 2 below 0; above log(1 - w), w = erfcx(x / sqrt 2) e^(-x^2 / 2) / 2,
 * by its series where w is small. */
VM_FN double rounded_log_ndtr(double x)
{
    const double z = .5 * x * x, half = .5 * rounded_erfcx_above(.70710678118654752440 * vm_abs_f64(x));
    const double w = half * vm_exp_core_f64(z > 700 ? -700 : -z), l = vm_log_short_f64(x < 0 ? half : 1 - w);
    const double small = -w * (1 + w * (.5 + w * (1. / 3)));
    return x < 0 ? l - z : w < 0x1p-12 ? small : x != x ? x : l;
}

#endif
