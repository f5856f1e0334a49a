/* special.h - special functions in double, scalar, for the CPU's rare rows and for CUDA.
 *
 *   special_digamma    psi(x) = d/dx log |Gamma(x)|
 *   special_polygamma  psi^(n)(x) = (-1)^(n + 1) n! zeta(n + 1, x)
 *   special_erfinv     x with erf(x) = y
 *
 * Bessel functions, the normal distribution: special_normal.h.  zeta, incomplete gamma: special_gamma.h.
 * Errors in ulp are those that test_vecmath.c and test_special.c bound. */
#ifndef TG_SPECIAL_H
#define TG_SPECIAL_H

#include <math.h>

#ifdef __CUDACC__
#define SPECIAL_FN static __device__ inline
#else
#define SPECIAL_FN static __attribute__((noinline, unused))
#endif

#define SPECIAL_PI 3.14159265358979323846

/* -inf at +0, +inf at -0 and NaN at the other poles, as PyTorch.  Below 0 by reflection; then the recurrence
 * up to 10 and the asymptotic series, whose coefficients are the Bernoulli numbers B_2k / 2k.  Absolute error
 * near a zero is that of a value of size 1: relative precision is lost there. */
SPECIAL_FN double special_digamma(double x)
{
    double y = 0;
    if (x == 0) return signbit(x) ? (double)INFINITY : -(double)INFINITY;
    if (x < 0) {
        if (x == trunc(x)) return (double)NAN;
        y = -SPECIAL_PI / tan(SPECIAL_PI * (x - rint(x))); /* near a pole its distance must not be rounded */
        x = 1 - x;
    }
    for (; x < 10; x++) y -= 1 / x;
    double z = 1 / (x * x);
    double series = 1. / 132 - z * (691. / 32760 - z / 12);
    series = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * series))));
    return y + log(x) - .5 / x - series;
}

/* q^-s, s > 1: of the first whole ones by products, ten times as fast. */
SPECIAL_FN double special_inverse_power(double q, double s)
{
    if (!(q > 0x1p-200 && q < 0x1p200)) return pow(q, -s);
    return s == 2 ? 1 / (q * q) : s == 3 ? 1 / (q * q * q) : s == 4 ? 1 / (q * q * (q * q)) : pow(q, -s);
}

/* sum over k >= 0 of (q + k)^-s, s > 1, q > 0: terms up to q = 6 + s, then Euler and Maclaurin's series,
 * whose coefficients are B_2k / (2k)!; the first one left out is below 2^-54. */
SPECIAL_FN double special_zeta(double s, double q)
{
    const double bernoulli[] = { 1. / 12,
                                 -1. / 720,
                                 1. / 30240,
                                 -1. / 1209600,
                                 1. / 47900160,
                                 -691. / 1307674368000.,
                                 1. / 74724249600.,
                                 -3617. / 10670622842880000.,
                                 43867. / 5109094217170944000.,
                                 -174611. / 802857662698291200000.,
                                 77683. / 14101100039391805440000.,
                                 -236364091. / 1693824136731743669452800000. };
    double sum = 0;
    for (; q < 6 + s; q++) {
        double term = special_inverse_power(q, s);
        sum += term;
        if (term < 0x1p-60 * sum) return sum;
    }
    const double power = special_inverse_power(q, s); /* which may underflow where the integral does not */
    const double integral = (power < 0x1p-1000 ? pow(q, 1 - s) : q * power) / (s - 1);
    const double inverse = 1 / q;
    double t = s * power / q;
    sum += integral + .5 * power;
    for (int j = 0; j < (int)(sizeof bernoulli / sizeof *bernoulli); j++) {
        sum += bernoulli[j] * t;
        t *= (s + 2 * j + 1) * inverse * ((s + 2 * j + 2) * inverse);
    }
    return sum;
}

/* n is an integer from 0 to 170.  At the poles 0, -1, ... infinite, with the sign that n gives.  Below 0, x =
 * f - N with 0 < f < 1: the sum over all k from -N on is that from 0 on, and N terms mirrored, (-1)^s
 * (zeta(s, 1 - f) - zeta(s, 1 - x)). */
SPECIAL_FN double special_polygamma(double x, double n)
{
    double s = n + 1, sign = fmod(n, 2.) == 0 ? -1 : 1, zeta;
    if (n == 0) return special_digamma(x);
    if (x > 0) zeta = isinf(x) ? 0 : special_zeta(s, x);
    else if (x == rint(x)) zeta = isinf(x) ? (double)NAN : (double)INFINITY;
    else {
        double d = x - rint(x), f = d > 0 ? d : 1 + d, rest = d > 0 ? 1 - d : -d;
        zeta = special_zeta(s, f) + sign * (special_zeta(s, rest) - special_zeta(s, 1 - x));
    }
    for (double k = 2; k <= n; k++) zeta *= k;
    return sign * zeta;
}

/* Winitzki's formula, good to 2e-3, and two of Halley's steps, each of which cubes the error.  Above 1/2 the
 * residual is that of erfc, where 1 - |y| is exact. */
SPECIAL_FN double special_erfinv(double y)
{
    double a = fabs(y);
    if (!(a < 1)) return a == 1 ? copysign((double)INFINITY, y) : (double)NAN;
    double l = log1p(-a * a), t = 2 / (SPECIAL_PI * .147) + .5 * l, root = sqrt(t * t - l / .147);
    double x = sqrt(t > 0 ? -l / .147 / (root + t) : root - t);
    for (int i = 0; i < 2; i++) {
        double off = a < .5 ? erf(x) - a : (1 - a) - erfc(x);
        double step = off / (1.12837916709551257390 * exp(-x * x));
        x -= step / (1 + x * step);
    }
    return copysign(x, y);
}

#include "special_gamma.h"
#include "special_normal.h"

#endif
