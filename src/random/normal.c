/* normal.c - Gaussian samples by Box and Muller, in blocks of 16.
 *
 *   for j < 8:  r = sqrt(-2 ln(1 - u_j)),  t = 2 pi u_(j+8)
 *               x_j = r cos t std + mean,  x_(j+8) = r sin t std + mean
 *
 * The f32 block is PyTorch's AVX2 one to the bit: Cephes' polynomials for log, sin and cos, and a fused
 * multiply-add wherever its compiler contracted a product and a sum.  Every fma below is therefore part of
 * the value; a machine without the instruction is slow here and not different.
 */
#include "engine.h"
#include "round.h"

#include <math.h>

/* ln x for a normal x > 0: x = m 2^e with m on [sqrt(1/2), sqrt(2)), ln m by a polynomial of degree 9 in m
 * - 1. */
FORCED_INLINE float log_cephes(float x)
{
    uint32_t bits = bits_of(x);
    float m = float_of((bits & 0x007fffffu) | 0x3f000000u);
    int32_t low = m < 0.707106781186547524f;
    float e = (float)((int32_t)(bits >> 23) - 126 - low);
    float a = (m - 1.0f) + (low ? m : 0.0f);
    float z = a * a;
    float p = 7.0376836292e-2f;
    p = __builtin_fmaf(p, a, -1.1514610310e-1f);
    p = __builtin_fmaf(p, a, 1.1676998740e-1f);
    p = __builtin_fmaf(p, a, -1.2420140846e-1f);
    p = __builtin_fmaf(p, a, 1.4249322787e-1f);
    p = __builtin_fmaf(p, a, -1.6668057665e-1f);
    p = __builtin_fmaf(p, a, 2.0000714765e-1f);
    p = __builtin_fmaf(p, a, -2.4999993993e-1f);
    p = __builtin_fmaf(p, a, 3.3333331174e-1f);
    p = __builtin_fmaf(p * a, z, e * -2.12194440e-4f); /* ln 2 in two parts, the small one first */
    p = __builtin_fmaf(-0.5f, z, p);
    return __builtin_fmaf(e, 0.693359375f, a + p);
}

/* sin x and cos x for 0 <= x < 8192: x = j pi/4 + a with j even, |a| <= pi/4. */
FORCED_INLINE void sincos_cephes(float x, float *s, float *c)
{
    uint32_t j = ((uint32_t)(int32_t)(x * 1.27323954473516f) + 1) & ~1u;
    float y = (float)(int32_t)j;
    float a = __builtin_fmaf(y, -0.78515625f, x);
    a = __builtin_fmaf(y, -2.4187564849853515625e-4f, a);
    a = __builtin_fmaf(y, -3.77489497744594108e-8f, a);
    float z = a * a;
    float even = __builtin_fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f);
    even = __builtin_fmaf(even, z, 4.166664568298827e-2f);
    even = __builtin_fmaf(even * z, z, -(z * 0.5f)) + 1.0f;
    float odd = __builtin_fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f);
    odd = __builtin_fmaf(odd, z, -1.6666654611e-1f);
    odd = __builtin_fmaf(odd * z, a, a);
    uint32_t swap = 0u - ((j >> 1) & 1u); /* odd quarter turns exchange sine and cosine */
    uint32_t o = bits_of(odd), v = bits_of(even);
    uint32_t sine = (o & ~swap) | (v & swap), cosine = (v & ~swap) | (o & swap);
    *s = float_of(sine ^ ((j & 4u) << 29));
    *c = float_of(cosine ^ ((~(j - 2u) & 4u) << 29));
}

/* Blocks, in the two copies that round.h explains */
FORCED_INLINE void block32(float *d, float mean, float std)
{
    float r[8], s[8], c[8];
    for (int j = 0; j < 8; j++) r[j] = -2.0f * log_cephes(1.0f - d[j]);
    for (int j = 0; j < 8; j++) sincos_cephes(6.283185307179586f * d[j + 8], &s[j], &c[j]);
    for (int j = 0; j < 8; j++) r[j] = sqrtf(r[j]);
    for (int j = 0; j < 8; j++) {
        d[j] = __builtin_fmaf(r[j] * c[j], std, mean);
        d[j + 8] = __builtin_fmaf(r[j] * s[j], std, mean);
    }
}

FORCED_INLINE void blocks32(float *d, int64_t count, float mean, float std)
{
    for (int64_t i = 0; i < count; i++) block32(d + 16 * i, mean, std);
}

WITH_FMA static void blocks32_fma(float *d, int64_t count, float mean, float std)
{
    blocks32(d, count, mean, std);
}

static void gauss32(float *d, int64_t count, float mean, float std)
{
    if (has_fma()) blocks32_fma(d, count, mean, std);
    else blocks32(d, count, mean, std);
}

/* The same block in f64, through libm. */
static void gauss64(double *d, int64_t count, double mean, double std)
{
    for (double *end = d + 16 * count; d < end; d += 16)
        for (int j = 0; j < 8; j++) {
            double r = sqrt(-2 * log(1 - d[j])), t = 2 * 3.14159265358979323846 * d[j + 8];
            d[j] = fma(r * cos(t), std, mean);
            d[j + 8] = fma(r * sin(t), std, mean);
        }
}

/* One standard normal by the recipe for few: the sine of a pair waits for the next call. */
static double gauss_one(Mt19937 *g)
{
    if (g->has_normal) {
        g->has_normal = false;
        return g->next_normal;
    }
    double u1 = mt_unit_f64(g), u2 = mt_unit_f64(g);
    double r = sqrt(-2.0 * log1p(-u2)), t = 2.0 * 3.14159265358979323846 * u1;
    g->next_normal = r * sin(t);
    g->has_normal = true;
    return r * cos(t);
}

void mt_normal_each(Mt19937 *g, double *x, int64_t n, double mean, double std)
{
    for (int64_t i = 0; i < n; i++) x[i] = fma(gauss_one(g), std, mean);
}

void mt_normal_f32(Mt19937 *g, float *x, int64_t n, double mean, double std)
{
    if (n < 16) {
        for (int64_t i = 0; i < n; i++) x[i] = (float)fma(gauss_one(g), std, mean);
        return;
    }
    mt_uniform_f32(g, x, n, 0, 1);
    gauss32(x, n / 16, (float)mean, (float)std);
    if (n % 16 == 0) return;
    mt_uniform_f32(g, x + n - 16, 16, 0, 1);
    gauss32(x + n - 16, 1, (float)mean, (float)std);
}

void mt_normal_f64(Mt19937 *g, double *x, int64_t n, double mean, double std)
{
    if (n < 16) {
        mt_normal_each(g, x, n, mean, std);
        return;
    }
    mt_uniform_f64(g, x, n, 0, 1);
    gauss64(x, n / 16, mean, std);
    if (n % 16 == 0) return;
    mt_uniform_f64(g, x + n - 16, 16, 0, 1);
    gauss64(x + n - 16, 1, mean, std);
}

/* PyTorch works on blocks through a buffer here, so that the odd uniforms of the last block are never drawn.
 */
void mt_normal_half(Mt19937 *g, float *x, int64_t n, double mean, double std, int bits)
{
    if (n < 16) {
        for (int64_t i = 0; i < n; i++) x[i] = round_half((float)fma(gauss_one(g), std, mean), bits);
        return;
    }
    mt_uniform_f32(g, x, n / 16 * 16, 0, 1);
    gauss32(x, n / 16, (float)mean, (float)std);
    if (n % 16 != 0) {
        mt_uniform_f32(g, x + n - 16, 16, 0, 1);
        gauss32(x + n - 16, 1, (float)mean, (float)std);
    }
    for (int64_t i = 0; i < n; i++) x[i] = round_half(x[i], bits);
}
