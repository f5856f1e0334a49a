/* pool_kernel.h - what pool.c asks of the loops that are compiled for each instruction set, by dtype (0 f32, 1 f64): one plane. */
#ifndef TG_CPU_POOL_KERNEL_H
#define TG_CPU_POOL_KERNEL_H

#include "cpu.h"

typedef struct PoolKernel {
    void (*max)(const PoolArgs *a, const void *x, void *y, int64_t *index);
    void (*max_grad)(const PoolArgs *a, void *x, const void *y, const int64_t *index);
    void (*avg)(const PoolArgs *a, const void *x, void *y);
    void (*avg_grad)(const PoolArgs *a, void *x, const void *y);
    void (*adaptive_max)(const PoolArgs *a, const void *x, void *y, int64_t *index);
    void (*adaptive_avg)(const PoolArgs *a, const void *x, void *y);
    void (*adaptive_avg_grad)(const PoolArgs *a, void *x, const void *y);
} PoolKernel;

extern const PoolKernel pool_kernel_base[2] __attribute__((visibility("hidden")));
extern const PoolKernel pool_kernel_avx2[2] __attribute__((visibility("hidden")));
extern const PoolKernel pool_kernel_avx512[2] __attribute__((visibility("hidden")));

#endif
