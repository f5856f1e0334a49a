/* rnn_kernel.h - one step of a recurrent layer, compiled once an instruction set; by dtype (0 f32, 1 f64). */
#ifndef TG_CPU_RNN_KERNEL_H
#define TG_CPU_RNN_KERNEL_H

#include "cpu/cpu.h"
#include "hidden.h"

typedef struct RnnKernel {
    void (*step)(const RnnArgs *a, int64_t from, int64_t to); /* rows */
    void (*step_grad)(const RnnArgs *a, int64_t from, int64_t to);
} RnnKernel;

extern const RnnKernel rnn_kernel_base[2] HIDDEN;
extern const RnnKernel rnn_kernel_avx2[2] HIDDEN;
extern const RnnKernel rnn_kernel_avx512[2] HIDDEN;

#endif
