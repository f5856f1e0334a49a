/* special_normal.h - Bessel functions and those of the normal distribution in double, for the CPU's rare rows
 * and for CUDA; included by special.h.
 *
 *   special_i0, special_i1   the modified Bessel functions of the first kind, orders 0 and 1
 *   special_erfcx            e^(x^2) erfc(x)
 *   special_ndtr             (1 + erf(x / sqrt 2)) / 2: the probability below x
 *   special_log_ndtr         its logarithm
 *   special_ndtri            x with ndtr(x) = p
 *
 * Errors in ulp are those that test_special.c bounds. */
#ifndef TG_SPECIAL_NORMAL_H
#define TG_SPECIAL_NORMAL_H

/* Up to 20 the power series, whose terms are all positive; then e^x / sqrt(2 pi x) times the asymptotic
 * series, whose least term is e^(-2 x).  e^x as a square: it overflows before the result does. */
SPECIAL_FN double special_bessel(double x, int order)
{
    const double ax = fabs(x), z = x * x / 4;
    double sum = 1, term = 1;
    if (isinf(x) || x != x) return order ? x : fabs(x);
    if (ax <= 20) {
        for (int k = 1; term > sum * 0x1p-58; k++) {
            term *= z / ((double)k * (k + order));
            sum += term;
        }
        return order ? x / 2 * sum : sum;
    }
    for (int k = 1; k < 40 && fabs(term) > 0x1p-56; k++) {
        const double odd = 2 * k - 1;
        term *= (odd * odd - 4 * order) / (k * 8 * ax);
        sum += term;
    }
    const double half = exp(ax / 2), y = half * (sum / sqrt(2 * SPECIAL_PI * ax)) * half;
    return order && x < 0 ? -y : y;
}

SPECIAL_FN double special_i0(double x) { return special_bessel(x, 0); }
SPECIAL_FN double special_i1(double x) { return special_bessel(x, 1); }

/* x^2 as the sum of two numbers: rounding it once would cost e^(x^2) as many ulp as x^2 is large.  From 12 on
 * by the asymptotic series. */
SPECIAL_FN double special_erfcx(double x)
{
    if (x < 12) {
        const double square = x * x, rest = fma(x, x, -square), e = exp(square) * erfc(x);
        return e + (isinf(e) ? 0 : e * rest);
    }
    const double z = .5 / x / x; /* not x x, which overflows */
    double sum = 1, term = 1;
    for (int k = 1; k < 16; k++) {
        term *= -(2 * k - 1) * z;
        sum += term;
    }
    return sum / x * 0.564189583547756286948;
}

/* erfc(t) / 2 for t = -x / sqrt 2, as t + rest: the tail is as steep as t is large. */
SPECIAL_FN double special_ndtr(double x)
{
    const double c = 0.707106781186547524401, c_rest = -4.8336466567264567e-17;
    const double t = -x * c, rest = fma(-x, c, -t) - x * c_rest;
    const double y = .5 * erfc(t);
    return fabs(t) < 30 ? y - rest * (exp(-t * t) * 0.564189583547756286948) : y;
}

SPECIAL_FN double special_log_ndtr(double x)
{
    if (x < -1) return log(.5 * special_erfcx(-x * 0.707106781186547524401)) - .5 * x * x;
    return log1p(-special_ndtr(-x));
}

/* Wichura's rational functions (AS 241), of relative error 1e-16: of the distance from 1/2, or of
 * sqrt(-log p) in the tails. */
SPECIAL_FN double special_ndtri(double p)
{
    const double q = p - .5;
    if (!(p >= 0 && p <= 1)) return (double)NAN;
    if (p == 0 || p == 1) return p ? (double)INFINITY : -(double)INFINITY;
    if (fabs(q) <= .425) {
        const double r = .180625 - q * q;
        const double a =
            ((((((2.5090809287301226727e3 * r + 3.3430575583588128105e4) * r + 6.7265770927008700853e4) * r +
                4.5921953931549871457e4) *
                   r +
               1.3731693765509461125e4) *
                  r +
              1.9715909503065514427e3) *
                 r +
             1.3314166789178437745e2) *
                r +
            3.3871328727963666080;
        const double b =
            ((((((5.2264952788528545610e3 * r + 2.8729085735721942674e4) * r + 3.9307895800092710610e4) * r +
                2.1213794301586595867e4) *
                   r +
               5.3941960214247511077e3) *
                  r +
              6.8718700749205790830e2) *
                 r +
             4.2313330701600911252e1) *
                r +
            1;
        return q * a / b;
    }
    double r = sqrt(-log(q < 0 ? p : 1 - p)), a, b;
    if (r <= 5) {
        r -= 1.6;
        a = ((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r +
                 2.41780725177450611770e-1) *
                    r +
                1.27045825245236838258) *
                   r +
               3.64784832476320460504) *
                  r +
              5.76949722146069140550) *
                 r +
             4.63033784615654529590) *
                r +
            1.42343711074968357734;
        b = ((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r +
                 1.51986665636164571966e-2) *
                    r +
                1.48103976427480074590e-1) *
                   r +
               6.89767334985100004550e-1) *
                  r +
              1.67638483018380384940) *
                 r +
             2.05319162663775882187) *
                r +
            1;
    } else {
        r -= 5;
        a = ((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r +
                 1.24266094738807843860e-3) *
                    r +
                2.65321895265761230930e-2) *
                   r +
               2.96560571828504891230e-1) *
                  r +
              1.78482653991729133580) *
                 r +
             5.46378491116411436990) *
                r +
            6.65790464350110377720;
        b = ((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r +
                 1.84631831751005468180e-5) *
                    r +
                7.86869131145613259100e-4) *
                   r +
               1.48753612908506148525e-2) *
                  r +
              1.36929880922735805310e-1) *
                 r +
             5.99832206555887937690e-1) *
                r +
            1;
    }
    return q < 0 ? -a / b : a / b;
}

#endif
