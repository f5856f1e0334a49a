/* machine.c - what every kernel needs: the CPU's instruction set, the number of threads, error reports. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <tapegrad/autograd.h>
#include <tapegrad/device.h>
#include "cpu.h"

static THREAD_LOCAL char sentence[256];

int cpu_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return -1;
}

const char *cpu_error(void) { return sentence; }

/* ---- instruction sets ------------------------------------------------------------------------ */

enum { ISA_base, ISA_avx2, ISA_avx512 };

static int detect_isa(void)
{
#if defined ONE_ISA
    return ISA_PASTE(ISA, ONE_ISA);
#else
    __builtin_cpu_init();
    int best = ISA_base;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        best = ISA_avx2;
    if (best && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
        best = ISA_avx512;
    const char *asked = getenv("TAPEGRAD_ISA");
    if (asked && strcmp(asked, "base") == 0) best = ISA_base;
    if (asked && strcmp(asked, "avx2") == 0 && best > ISA_avx2) best = ISA_avx2;
    return best;
#endif
}

int cpu_isa(void)
{
    static atomic_int known = -1;
    int isa = atomic_load_explicit(&known, memory_order_relaxed);
    if (unlikely(isa < 0)) {
        isa = detect_isa();
        atomic_store(&known, isa);
    }
    return isa;
}

/* ---- threads --------------------------------------------------------------------------------- */

static atomic_int threads; /* 0: not asked yet */

int tensor_num_threads(void)
{
    int n = atomic_load_explicit(&threads, memory_order_relaxed);
    if (unlikely(n == 0)) atomic_store(&threads, n = parallel_default_threads());
    return n;
}

int tensor_set_num_threads(int n)
{
    if (n < 1) return fail(TENSOR_EVALUE, "tensor_set_num_threads", "%d threads: at least 1", n);
    atomic_store(&threads, n);
    return 0;
}

int cpu_threads(int64_t work)
{
    enum { WORTH = 100000 }; /* a parallel region costs some microseconds: about 30 of work must be saved */
    if (work < WORTH || parallel_inside()) return 1;
    int n = tensor_num_threads();
    return work / (WORTH / 2) < n ? (int)(work / (WORTH / 2)) : n;
}

void tensor_parallel_for(int64_t n, int64_t work, void (*span)(void *ctx, int64_t from, int64_t to),
                         void *ctx)
{
    if (n > 0 && span) parallel_split(n, cpu_threads(n * (work > 1 ? work : 1)), span, ctx);
}
