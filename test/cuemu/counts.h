/* counts.h - what cuemu tells and does for tests, by symbols of libtapegrad_emu.so. */
#ifndef CUEMU_COUNTS_H
#define CUEMU_COUNTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* What a program has asked of the runtime so far, for tests that count; and what has been done of it: kernels
 * that ran, copies that arrived on the device. */
typedef struct CuemuCounts {
    int64_t launches, waits, to_device, to_host, allocations;
    int64_t ran, arrived;
    /* Of cuBLASLt and cuDNN: choices of an algorithm; of cuDNN: plans that ran, those that there are. */
    int64_t heuristics, executed, plans;
} CuemuCounts;
CuemuCounts cuemu_counts(void);
/* The n-th allocation from now on and all after it find no memory; 0: none. */
void cuemu_fail_allocation(int64_t n);
/* The n-th launch from now on fails as it runs: the device is lost. */
void cuemu_fail_launch(int64_t n);
/* A program's own kernel, which adds 1 to *x. */
void cuemu_user_kernel(void *stream, unsigned blocks, unsigned threads, float *x);
/* While on, no kernel begins: who waits for one stands. */
void cuemu_hold(int on);
/* From now on kernels and copies are counted and not run, and device memory is 1 TiB of addresses: what a
 * step of any size asks for. */
void cuemu_dry(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
