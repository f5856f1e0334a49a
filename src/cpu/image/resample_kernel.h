/* resample_kernel.h - the loops that resample.c calls, compiled for each instruction set, by dtype (0 f32, 1
 * f64). */
#ifndef TG_CPU_RESAMPLE_KERNEL_H
#define TG_CPU_RESAMPLE_KERNEL_H

#include "cpu/cpu.h"
#include "hidden.h"

/* One axis of x [outer, axis.in, inner] to y [outer, axis.out, inner]. */
typedef void ResampleKernel(const ResampleAxis *axis, const void *x, void *y, int64_t outer, int64_t inner);

extern ResampleKernel *const resample_kernel_base[2] HIDDEN;
extern ResampleKernel *const resample_kernel_avx2[2] HIDDEN;
extern ResampleKernel *const resample_kernel_avx512[2] HIDDEN;

#endif
