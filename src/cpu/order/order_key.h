/* order_key.h - the order of all values of a dtype: an element as a number whose unsigned order is theirs.
 *
 * Floats with the sign folded in; -0 is 0, NaN is above all. */
#ifndef TG_ORDER_KEY_H
#define TG_ORDER_KEY_H

#include <string.h>
#include <tapegrad/tensor.h>
#include "device/half.h"

#define ORDER_NAN UINT64_MAX

static inline uint64_t float_key(double v)
{
    uint64_t u;
    if (v != v) return ORDER_NAN;
    v += 0; /* -0 becomes 0 */
    memcpy(&u, &v, sizeof u);
    return u >> 63 ? ~u : u | (uint64_t)1 << 63;
}

static inline uint64_t order_key(const void *x, int dtype, int64_t i)
{
    switch (dtype) {
    case TENSOR_F32: return float_key((double)((const float *)x)[i]);
    case TENSOR_F64: return float_key(((const double *)x)[i]);
    case TENSOR_F16: return float_key((double)f16_to_f32(((const uint16_t *)x)[i]));
    case TENSOR_BF16: return float_key((double)bf16_to_f32(((const uint16_t *)x)[i]));
    case TENSOR_I64: return (uint64_t)((const int64_t *)x)[i] ^ (uint64_t)1 << 63;
    case TENSOR_I32: return (uint64_t)(int64_t)((const int32_t *)x)[i] ^ (uint64_t)1 << 63;
    default: return ((const uint8_t *)x)[i];
    }
}

#endif
