/* integer.h - elements of integer tensors as 64 bits.  Sums and products of those are right modulo 2 to the
 * dtype's width, whatever its sign. */
#ifndef TG_CPU_INTEGER_H
#define TG_CPU_INTEGER_H

#include "device/host.h"

FORCE_INLINE int64_t integer_at(int dtype, const void *x, int64_t at)
{
    return dtype == TENSOR_I64   ? ((const int64_t *)x)[at]
           : dtype == TENSOR_I32 ? ((const int32_t *)x)[at]
                                 : ((const uint8_t *)x)[at];
}

FORCE_INLINE void integer_put(int dtype, void *x, int64_t at, uint64_t value)
{
    if (dtype == TENSOR_I64) ((int64_t *)x)[at] = (int64_t)value;
    else if (dtype == TENSOR_I32) ((int32_t *)x)[at] = (int32_t)(uint32_t)value;
    else ((uint8_t *)x)[at] = (uint8_t)value;
}

#endif
