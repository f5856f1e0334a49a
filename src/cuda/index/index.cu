/* index.cu - are all indices in range?  One block looks, and notes the first bad one in the device's memory,
 * where the next wait finds it (device.cu); nothing waits for it here, unless it is to be told at once. */
#include <stdlib.h>
#include "cuda/cuda.cuh"

struct CheckCall {
    IndexBlock block;
    int64_t n, also, call;
    bool has_also;
    int64_t *fault; /* call, value, position; call 0: none */
};

static __device__ inline int64_t index_at(const IndexBlock &b, int64_t i)
{
    const int64_t o = i / (b.rows * b.inner), j = i / b.inner % b.rows, k = i % b.inner;
    return o * b.outer_stride + j * b.row_stride + k * b.inner_stride;
}

static __global__ void check_kernel(CheckCall c)
{
    __shared__ unsigned long long first;
    const int64_t count = c.block.outer * c.block.rows * c.block.inner;
    if (threadIdx.x == 0) first = ~0ull;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        const int64_t value = c.block.index[index_at(c.block, i)];
        if ((value < 0 || value >= c.n) && !(c.has_also && value == c.also))
            atomicMin(&first, (unsigned long long)i);
    }
    __syncthreads();
    if (threadIdx.x != 0 || first == ~0ull || c.fault[0] != 0) return;
    c.fault[1] = c.block.index[index_at(c.block, (int64_t)first)];
    c.fault[2] = (int64_t)first;
    c.fault[0] = c.call;
}

int gpu_check_index(const IndexCheck *q, int64_t *bad_at, int64_t *bad_value)
{
    IndexBlock b = q->block;
    if (b.outer_stride == 0) b.outer = 1;
    if (b.row_stride == 0) b.rows = b.rows ? 1 : 0;
    if (b.inner_stride == 0) b.inner = 1;
    if (b.outer * b.rows * b.inner == 0) return 0;
    const CheckCall c = { b,
                          q->n,
                          q->also ? *q->also : 0,
                          gpu_note_call(q->op, q->site, q->n),
                          q->also != nullptr,
                          gpu_fault_words() };
    LAUNCH(check_kernel, 1, THREADS, c);
    if (gpu_launched("index check")) return -1;
    const char *at_once = getenv("TAPEGRAD_CUDA_SYNC");
    if (!at_once || *at_once != '1' || !gpu_synchronize()) return 0;
    DeviceFault f;
    if (!gpu_fault(&f)) return -1;
    *bad_at = f.position, *bad_value = f.value;
    return -1;
}
