/* cpu.h - the CPU device: a function for each kernel slot, and what its files share. */
#ifndef TG_CPU_H
#define TG_CPU_H

#include "device/device.h"
#include "device/host.h"
#include "device/parallel.h"
#include "hidden.h"
#include "isa.h"

HIDDEN_BEGIN

#define K(slot, Args) int cpu_##slot(Args *args);
KERNEL_LIST(K)
#undef K

/* cpu_fail - records the sentence that cpu_error gives; returns -1. */
const char *cpu_error(void);
int cpu_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* cpu_threads - how many threads pay for work of so many elementary operations: 1 below some 30 microseconds.
 */
int cpu_threads(int64_t work);

/* gemm_integers - cpu_gemm of i64, i32 and u8. */
void gemm_integers(const GemmArgs *args);

HIDDEN_END
#endif
