/* rnn.c - the pointwise part of recurrent steps: rows for the threads, as they come. */
#include <tapegrad/tensor.h>
#include "rnn_kernel.h"

static const RnnKernel *kernel_for(int dtype) { return &ISA_PICK(rnn_kernel)[dtype == TENSOR_F64]; }

static int threads_for(const RnnArgs *a)
{
    const int64_t gates = a->kind == RNN_LSTM ? 4 : a->kind == RNN_GRU ? 3 : 1;
    return cpu_threads(a->rows * a->hidden * gates * 4);
}

static void step_rows(void *ctx, int64_t from, int64_t to)
{
    const RnnArgs *a = ctx;
    kernel_for(a->dtype)->step(a, from, to);
}

static void step_grad_rows(void *ctx, int64_t from, int64_t to)
{
    const RnnArgs *a = ctx;
    kernel_for(a->dtype)->step_grad(a, from, to);
}

int cpu_rnn_step(RnnArgs *a)
{
    if (a->rows > 0) parallel_split(a->rows, threads_for(a), step_rows, a);
    return 0;
}

int cpu_rnn_step_grad(RnnArgs *a)
{
    if (a->rows > 0) parallel_split(a->rows, threads_for(a), step_grad_rows, a);
    return 0;
}
