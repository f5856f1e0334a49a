/* pool_kernel.h - the loops that pool.c calls for one plane: compiled for each instruction set, by dtype (0
 * f32, 1 f64); those of adaptive pools once. */
#ifndef TG_CPU_POOL_KERNEL_H
#define TG_CPU_POOL_KERNEL_H

#include "cpu/cpu.h"
#include "hidden.h"

typedef struct PoolKernel {
    void (*max)(const PoolArgs *a, const void *x, void *y, int64_t *index);
    void (*max_grad)(const PoolArgs *a, void *x, const void *y, const int64_t *index);
    void (*avg)(const PoolArgs *a, const void *x, void *y);
    void (*avg_grad)(const PoolArgs *a, void *x, const void *y);
} PoolKernel;

extern const PoolKernel pool_kernel_base[2] HIDDEN;
extern const PoolKernel pool_kernel_avx2[2] HIDDEN;
extern const PoolKernel pool_kernel_avx512[2] HIDDEN;

/* Adaptive pools, whose loops over windows of many sizes gain nothing from wider vectors (adaptive_pool.c).
 */
void adaptive_max(const PoolArgs *a, const void *x, void *y, int64_t *index) HIDDEN;
void adaptive_avg(const PoolArgs *a, const void *x, void *y) HIDDEN;
void adaptive_avg_grad(const PoolArgs *a, void *x, const void *y) HIDDEN;

/* Of i64, i32 and u8, by plain loops (pool_integer.c).  Means are i64's only. */
void max_pool_integers(const PoolArgs *a) HIDDEN;
void avg_pool_integers(const PoolArgs *a) HIDDEN;

#endif
