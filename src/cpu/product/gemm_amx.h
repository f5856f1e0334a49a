/* gemm_amx.h - products by AMX tiles of bf16, where Linux, the compiler and the CPU have them. */
#ifndef TG_CPU_GEMM_AMX_H
#define TG_CPU_GEMM_AMX_H

#include <stdbool.h>
#include "device/device.h"
#include "hidden.h"

#if defined __x86_64__ && defined __LP64__ && defined __linux__
#define HAS_GEMM_AMX 1
#endif

HIDDEN_BEGIN

/* gemm_amx_here - has this CPU AMX-BF16 beside AVX-512, may it be used (TAPEGRAD_ISA), and does Linux let
 * this process use the tiles?  Asked once. */
bool gemm_amx_here(void);

/* By sizes alone, so that neither strides nor threads change a bit: is the product of bf16, or the one of f32
 * by parts, large enough? */
bool gemm_amx_takes(const GemmArgs *g);

/* gemm_amx - the gemm slot, without function, before and sums, all sizes above 0, alpha not 0.
 *   bf16: each operand as it is
 *   f32:  each operand as the sum of three numbers of bf16, which is exact; of the nine products of parts the
 *         six largest are added.  |c - a b| <= (k + 8) 2^-24 |a| |b|, as of a chain of f32.
 * 0; -1: no memory, and c is untouched; GEMM_AMX_NOT: an f32 operand or sum is out of the range where that
 * holds, so that all of c must be computed otherwise: it is untouched if beta is not 0. */
enum { GEMM_AMX_NOT = 1 };
int gemm_amx(const GemmArgs *g);

HIDDEN_END
#endif
