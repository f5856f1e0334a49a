/* half.h - f16 (5 exponent bits, 10 of mantissa) and bf16 (8, 7) to and from f32 and f64.
 *
 *  - Narrowing rounds once, to nearest even; beyond the largest finite value it gives an infinity.
 *  - A NaN stays a NaN of the same sign and the same upper payload bits, made quiet, as the processor's
 * instructions do.
 *  - Subnormals are exact, also where the thread flushes subnormal floats to zero (f16; those of bf16 are
 * f32's own).
 *
 * Integer arithmetic with selects in place of branches, so that compilers turn loops over these into vector
 * code on any machine.  Valid in C and C++. */
#ifndef TG_HALF_H
#define TG_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t half_bits32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float half_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline uint64_t half_bits64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline double half_double(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, x = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t normal = x + (112u << 23); /* exponent bias 15 -> 127 */
    uint32_t special = x | 0x7f800000u | (x > 0x0f800000u ? 0x00400000u : 0u);
    uint32_t tiny = half_bits32(half_float(x + (113u << 23)) - 0x1p-14f); /* 2^-14 + x, less 2^-14: exact */
    return half_float(sign | (x >= 0x0f800000u ? special : x < 0x00800000u ? tiny : normal));
}

static inline uint16_t f16_from_f32(float value)
{
    uint32_t u = half_bits32(value), sign = (u >> 16) & 0x8000u, x = u & 0x7fffffffu;
    uint32_t normal = (x - (112u << 23) + 0xfffu + ((x >> 13) & 1u)) >> 13;
    uint32_t tiny =
        half_bits32(half_float(x) + 0.5f) - 0x3f000000u; /* the last bit of 0.5f is 2^-24, f16's smallest */
    uint32_t special = x > 0x7f800000u ? 0x7e00u | ((x >> 13) & 0x3ffu) : 0x7c00u;
    uint32_t h = x < 0x38800000u ? tiny : normal;               /* below 2^-14 */
    return (uint16_t)(sign | (x >= 0x47800000u ? special : h)); /* from 2^16 */
}

static inline float bf16_to_f32(uint16_t h)
{
    uint32_t x = (uint32_t)h << 16;
    return half_float(x | ((x & 0x7fffffffu) > 0x7f800000u ? 0x00400000u : 0u));
}

static inline uint16_t bf16_from_f32(float value)
{
    uint32_t x = half_bits32(value);
    uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
    uint32_t nan = (x >> 16) | 0x40u;
    return (uint16_t)((x & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* From f64 by way of f32 rounded to odd: what falls away leaves its trace in the last bit, so that the second
 * rounding sees no false tie. */
static inline float half_odd_f32(double value)
{
    uint64_t u = half_bits64(value);
    uint64_t dropped = u & 0x1fffffffu;
    return (float)half_double((u - dropped) | (dropped ? 0x20000000u : 0u));
}

static inline uint16_t f16_from_f64(double value) { return f16_from_f32(half_odd_f32(value)); }

static inline uint16_t bf16_from_f64(double value)
{
    uint64_t u = half_bits64(value), x = u & UINT64_C(0x7fffffffffffffff);
    uint32_t sign = (uint32_t)(u >> 48) & 0x8000u;
    uint64_t tiny =
        half_bits64(half_double(x) + 0x1p-81) - half_bits64(0x1p-81); /* last bit 2^-133, bf16's smallest */
    return x < UINT64_C(0x3810000000000000) ? (uint16_t)(sign | (uint32_t)tiny) /* below 2^-126 */
                                            : bf16_from_f32(half_odd_f32(value));
}

#endif
