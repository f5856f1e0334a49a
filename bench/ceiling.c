/* ceiling.c - what the machine can do at most: multiply-adds of data in registers, copies.  Values are not 0:
 * zeros run faster on some CPUs. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "cases.h"

enum { CHAINS = 12, TURNS = 200000 };

/* CHAINS independent sums in registers: more than the latency of a multiply-add asks for. */
#define MULTIPLY_ADDS(name, Vector, fused, set, ...)                                                \
    __VA_ARGS__ static double name(void)                                                            \
    {                                                                                               \
        Vector sum[CHAINS], a = set(0.99f), b = set(0.013f);                                        \
        for (int i = 0; i < CHAINS; i++) sum[i] = set((float)(i + 1));                              \
        const double begin = now();                                                                 \
        for (int turn = 0; turn < TURNS; turn++) {                                                  \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum[i] = fused(sum[i], a, b); \
        }                                                                                           \
        const double seconds = now() - begin;                                                       \
        volatile Vector used[CHAINS];                                                               \
        for (int i = 0; i < CHAINS; i++) used[i] = sum[i];                                          \
        (void)used;                                                                                 \
        return 2.0 * CHAINS * (sizeof(Vector) / sizeof(float)) * TURNS / seconds;                   \
    }

MULTIPLY_ADDS(plain, float, fmaf, , )
#ifdef __x86_64__
MULTIPLY_ADDS(with_32, __m256, _mm256_fmadd_ps, _mm256_set1_ps, __attribute__((target("avx2,fma"))))
MULTIPLY_ADDS(with_64, __m512, _mm512_fmadd_ps, _mm512_set1_ps, __attribute__((target("avx512f"))))
#endif

static double once(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) return with_64();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return with_32();
#endif
    return plain();
}

double ceiling_flops(void)
{
    double best = 0;
    for (int i = 0; i < 9; i++) {
        const double found = once();
        if (found > best) best = found;
    }
    return best;
}

double ceiling_copy(long bytes)
{
    unsigned char *from = malloc((size_t)bytes), *to = malloc((size_t)bytes);
    if (!from || !to) abort();
    for (long i = 0; i < bytes; i++) from[i] = (unsigned char)(i % 251 + 1);
    const long turns = (64 << 20) / bytes + 1;
    double best = 0;
    for (int round = 0; round < 9; round++) {
        const double begin = now();
        for (long i = 0; i < turns; i++) {
            memcpy(to, from, (size_t)bytes);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        const double rate = 2.0 * (double)bytes * (double)turns / (now() - begin);
        if (rate > best) best = rate;
    }
    free(from), free(to);
    return best;
}
