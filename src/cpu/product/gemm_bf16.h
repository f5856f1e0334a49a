/* gemm_bf16.h - products of bf16 by instructions for them, where the compiler and the CPU have them. */
#ifndef TG_CPU_GEMM_BF16_H
#define TG_CPU_GEMM_BF16_H

#include <stdbool.h>
#include "device/device.h"
#include "hidden.h"

#if defined __x86_64__
#define HAS_GEMM_BF16 1
#endif

HIDDEN_BEGIN

bool gemm_bf16_here(void); /* has this CPU AVX512-BF16, and may it be used (TAPEGRAD_ISA)? */

/* gemm_bf16 - the gemm slot for bf16, all sizes above 0.  0, or -1: no memory, and c is untouched. */
int gemm_bf16(const GemmArgs *g);

HIDDEN_END
#endif
