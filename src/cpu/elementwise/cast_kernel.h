/* cast_kernel.h - casting lines of n elements; strides in bytes.  from and to differ. */
#ifndef TG_CPU_CAST_KERNEL_H
#define TG_CPU_CAST_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include "cpu/isa.h"

typedef void CastLine(char *dst, const char *src, int64_t n, int64_t ds, int64_t ss);
ISA_DECLARE(CastLine *, cast_line, int from, int to);

/* dst[i] = src[-i] of elements of `size` bytes, a dense line. */
ISA_DECLARE(void, move_backwards, char *dst, const char *src, int64_t n, size_t size);

static inline CastLine *cpu_cast_line(int from, int to)
{
    CastLine *line = ISA_PICK(cast_line)(from, to);
    return line ? line : ISA_PICK_AVX2(cast_line)(from, to);
}

#endif
