/* isa.h - names for code that is compiled once an instruction set.
 *
 * A file in the Makefile's ISA_SOURCES is compiled with -DISA=avx512, avx2 and base (and matching -march);
 * ISA_NAME(f) is f_avx512, f_avx2, f_base.  ISA_PICK(f) is the one for this machine; ISA_PICK_AVX2(f) that of
 * a file in UP_TO_AVX2, not compiled for avx512.  A library of one instruction set has ONE_ISA defined as it.
 */
#ifndef TG_CPU_ISA_H
#define TG_CPU_ISA_H

#include "hidden.h"

#define ISA_PASTE_(name, isa) name##_##isa
#define ISA_PASTE(name, isa) ISA_PASTE_(name, isa)
#define ISA_NAME(name) ISA_PASTE(name, ISA)

/* Before a loop in which no element depends on another, though the result may be an operand itself (in
 * place). */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Before a loop of one load and one store: four steps a turn.  The speed of one step a turn depends on where
 * the code lies, by a factor of 2. */
#if defined __clang__
#define BY_FOUR _Pragma("clang loop unroll_count(4)")
#else
#define BY_FOUR _Pragma("GCC unroll 4")
#endif

/* cpu_isa - 0 base, 1 AVX2 + FMA, 2 AVX-512 (F, BW, DQ, VL); TAPEGRAD_ISA=base|avx2|avx512 in the environment
 * lowers it. */
int cpu_isa(void) HIDDEN;

#if defined ONE_ISA
#define ISA_DECLARE(result, name, ...) result ISA_PASTE(name, ONE_ISA)(__VA_ARGS__) HIDDEN
#define ISA_PICK(name) ISA_PASTE(name, ONE_ISA)
#define ISA_PICK_AVX2(name) ISA_PASTE(name, ONE_ISA)
#else
#define ISA_DECLARE(result, name, ...)      \
    result name##_base(__VA_ARGS__) HIDDEN; \
    result name##_avx2(__VA_ARGS__) HIDDEN; \
    result name##_avx512(__VA_ARGS__) HIDDEN
#define ISA_PICK(name) (cpu_isa() == 2 ? name##_avx512 : cpu_isa() == 1 ? name##_avx2 : name##_base)
#define ISA_PICK_AVX2(name) (cpu_isa() >= 1 ? name##_avx2 : name##_base)
#endif

#endif
