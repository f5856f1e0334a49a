/* taps_kernel.h - the loops that taps.c calls, compiled for each instruction set, by dtype (0 f32, 1 f64). */
#ifndef TG_CPU_TAPS_KERNEL_H
#define TG_CPU_TAPS_KERNEL_H

#include "cpu/cpu.h"
#include "hidden.h"

/* One piece: a plane (batch and channel) of sum and spread, a tap of a batch of dot. */
typedef void TapsKernel(const TapsArgs *a, int64_t piece);

extern TapsKernel *const taps_kernel_base[2] HIDDEN;
extern TapsKernel *const taps_kernel_avx2[2] HIDDEN;
extern TapsKernel *const taps_kernel_avx512[2] HIDDEN;

#endif
