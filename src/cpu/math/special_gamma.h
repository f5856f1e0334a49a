/* special_gamma.h - Hurwitz's zeta function and the incomplete gamma functions in double, for the CPU's rare
 * rows and for CUDA; included by special.h.
 *
 *   special_hurwitz  zeta(s, q) = sum over k >= 0 of (k + q)^-s
 *   special_igamma   P(a, x) = 1 / Gamma(a) times the integral of t^(a-1) e^-t from 0 to x
 *   special_igammac  Q(a, x) = 1 - P(a, x)
 *
 * Errors in ulp are those that test_special.c bounds. */
#ifndef TG_SPECIAL_GAMMA_H
#define TG_SPECIAL_GAMMA_H

/* As PyTorch: s = 1 and the poles q = 0, -1, ... infinite, s < 1 NaN, q < 0 for whole s alone.  There q = f -
 * n, 0 < f < 1: the n terms below 0 mirrored, (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q)). */
SPECIAL_FN double special_hurwitz(double s, double q)
{
    if (s != s || q != q) return s + q;
    if (s == 1) return (double)INFINITY;
    if (s < 1) return (double)NAN;
    if (q <= 0 && q == floor(q)) return (double)INFINITY;
    if (q < 0 && s != floor(s)) return (double)NAN;
    if (isinf(s)) return pow(fabs(q), -s);
    if (q > 0) return special_zeta(s, q);
    const double f = q - floor(q), below = special_zeta(s, 1 - f) - special_zeta(s, 1 - q);
    return special_zeta(s, f) + (fmod(s, 2.) == 0 ? below : -below);
}

/* u - log(1 + u), without the loss of digits for small u. */
SPECIAL_FN double special_log_gap(double u)
{
    if (u < -.4 || u > .6) return u - log1p(u);
    /* log(1 + u) = 2 atanh(w), w = u / (2 + u); u - 2 w = u w */
    const double w = u / (2 + u), z = w * w;
    double sum = 0, power = z;
    for (int k = 3; k < 60 && power > 0x1p-60; k += 2, power *= z) sum += power / k;
    return w * (u - 2 * sum);
}

/* x^a e^-x / Gamma(a + 1).  From 10 on by Stirling's series around x = a, where the factors are huge. */
SPECIAL_FN double special_igamma_factor(double a, double x)
{
    if (a < 10) return exp(a * log(x) - x) / tgamma(a + 1);
    const double z = 1 / (a * a),
                 stirling = (1. / 12 -
                             z * (1. / 360 -
                                  z * (1. / 1260 -
                                       z * (1. / 1680 - z * (1. / 1188 - z * (691. / 360360 - z / 156)))))) /
                            a;
    return exp(-a * special_log_gap((x - a) / a) - stirling) / sqrt(2 * SPECIAL_PI * a);
}

SPECIAL_FN double special_igamma_series(double a, double x)
{
    double sum = 1, term = 1;
    for (double n = a + 1; term > sum * 0x1p-56; n++) {
        term *= x / n;
        sum += term;
    }
    return sum * special_igamma_factor(a, x);
}

/* Q by Lentz's continued fraction x^a e^-x / Gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), x > a
 * + 1. */
SPECIAL_FN double special_igammac_fraction(double a, double x)
{
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int i = 1; i < 100000000; i++) {
        const double an = -i * (i - a);
        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (fabs(d * c - 1) < 0x1p-53) break;
    }
    return h * a * special_igamma_factor(a, x);
}

/* From 1e9 on, where the sums take too long: Temme's uniform expansion, erfc(eta sqrt(a / 2)) / 2 and its
 * first correction, of P or of Q; a eta^2 / 2 is the gap.  Where eta is not small, the result is 0 or 1. */
SPECIAL_FN double special_igamma_uniform(double a, double x, int upper)
{
    const double u = (x - a) / a, gap = special_log_gap(u), eta = copysign(sqrt(2 * gap), upper ? u : -u);
    const double correction = 1. / 3 - fabs(eta) * (u < 0 ? -1 : 1) / 12,
                 tail = exp(-a * gap) / sqrt(2 * SPECIAL_PI * a);
    return .5 * erfc(eta * sqrt(a / 2)) - (upper ? -tail : tail) * correction;
}

/* The limits of P and Q, as PyTorch has them; -1: none applies. */
SPECIAL_FN double special_igamma_limit(double a, double x, int upper)
{
    if (x != x || a != a) return x + a;
    if (x < 0 || a < 0 || (a == 0 && x == 0) || (isinf(a) && isinf(x))) return (double)NAN;
    if (a == 0 || isinf(x)) return !upper;
    if (x == 0 || isinf(a)) return upper;
    return -1;
}

SPECIAL_FN double special_igamma(double a, double x)
{
    const double limit = special_igamma_limit(a, x, 0);
    if (limit != -1) return limit;
    if (a > 1e9) return special_igamma_uniform(a, x, 0);
    return x > 1 && x > a + 1 ? 1 - special_igammac_fraction(a, x) : special_igamma_series(a, x);
}

SPECIAL_FN double special_igammac(double a, double x)
{
    const double limit = special_igamma_limit(a, x, 1);
    if (limit != -1) return limit;
    if (a > 1e9) return special_igamma_uniform(a, x, 1);
    return x > 1 && x > a + 1 ? special_igammac_fraction(a, x) : 1 - special_igamma_series(a, x);
}

/* kind: a SpecialKind of kernels.h, 0 to 2 in the order above. */
SPECIAL_FN double special_pair(int kind, double a, double b)
{
    return kind == 0 ? special_hurwitz(a, b) : kind == 1 ? special_igamma(a, b) : special_igammac(a, b);
}

#endif
