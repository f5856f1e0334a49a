/* round.h - rounding steps that several recipes share: one rounding for a x + b, and rounding to half types.
 *
 * fma belongs to the value (see engine.h), so x86-64 code has a second copy of each loop for processors with
 * the instruction; elsewhere libm's fma gives the same bits, slowly. */
#ifndef TAPEGRAD_RANDOM_ROUND_H
#define TAPEGRAD_RANDOM_ROUND_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define WITH_FMA __attribute__((target("avx2,fma")))
static inline bool has_fma(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
#define WITH_FMA
static inline bool has_fma(void) { return true; }
#endif

#define FORCED_INLINE static inline __attribute__((always_inline))

FORCED_INLINE float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
FORCED_INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* x_i = x_i a + b, rounded once (scale.c) */
void scale_f32(float *x, int64_t n, float a, float b);
void scale_f64(double *x, int64_t n, double a, double b);

/* x to the nearest value of 8 (bfloat16) or 11 (half) significant bits, ties to even; half has its narrow
 * range too. */
static inline float round_half(float x, int bits)
{
    if (x != x) return x;
    if (bits == 11 && x > -0x1p-14f && x < 0x1p-14f) /* subnormal halves: multiples of 2^-24 */
        return x < 0 ? -((0.5f - x) - 0.5f) : (x + 0.5f) - 0.5f;
    uint32_t u = bits_of(x), drop = 24 - (uint32_t)bits;
    u += ((UINT32_C(1) << (drop - 1)) - 1) + (u >> drop & 1);
    x = float_of(u >> drop << drop);
    if (bits == 11 && (x >= 0x1p16f || x <= -0x1p16f)) x *= 0x1p127f; /* past the largest half: infinite */
    return x;
}

#endif
