/* scale.c - x a + b over an array with one rounding, in the two copies that round.h explains. */
#include "round.h"

FORCED_INLINE void scale32(float *x, int64_t n, float a, float b)
{
    for (int64_t i = 0; i < n; i++) x[i] = __builtin_fmaf(x[i], a, b);
}

FORCED_INLINE void scale64(double *x, int64_t n, double a, double b)
{
    for (int64_t i = 0; i < n; i++) x[i] = __builtin_fma(x[i], a, b);
}

WITH_FMA static void scale32_fma(float *x, int64_t n, float a, float b) { scale32(x, n, a, b); }
WITH_FMA static void scale64_fma(double *x, int64_t n, double a, double b) { scale64(x, n, a, b); }

void scale_f32(float *x, int64_t n, float a, float b)
{
    if (has_fma()) scale32_fma(x, n, a, b);
    else scale32(x, n, a, b);
}

void scale_f64(double *x, int64_t n, double a, double b)
{
    if (has_fma()) scale64_fma(x, n, a, b);
    else scale64(x, n, a, b);
}
