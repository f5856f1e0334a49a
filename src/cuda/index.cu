/* index.cu - are all indices in range?  The answer is waited for: nothing may be written when one is not. */
#include "cuda.cuh"

struct CheckCall {
    IndexBlock block;
    int64_t n, also;
    bool has_also;
    unsigned long long *first_bad;
};

static __device__ inline int64_t index_at(const IndexBlock &b, int64_t i)
{
    const int64_t o = i / (b.rows * b.inner), j = i / b.inner % b.rows, k = i % b.inner;
    return o * b.outer_stride + j * b.row_stride + k * b.inner_stride;
}

static __global__ void check_kernel(CheckCall c)
{
    const int64_t count = c.block.outer * c.block.rows * c.block.inner;
    for (int64_t i = first_item(); i < count; i += item_step()) {
        const int64_t value = c.block.index[index_at(c.block, i)];
        if ((value < 0 || value >= c.n) && !(c.has_also && value == c.also))
            atomicMin(c.first_bad, (unsigned long long)i);
    }
}

static __global__ void value_kernel(IndexBlock b, int64_t i, int64_t *to) { *to = b.index[index_at(b, i)]; }

int gpu_check_index(const IndexBlock *block, int64_t n, const int64_t *also, int64_t *bad_at,
                    int64_t *bad_value)
{
    IndexBlock b = *block;
    if (b.outer_stride == 0) b.outer = 1;
    if (b.row_stride == 0) b.rows = b.rows ? 1 : 0;
    if (b.inner_stride == 0) b.inner = 1;
    const int64_t count = b.outer * b.rows * b.inner;
    if (count == 0) return 0;
    int64_t at = 0;
    const CheckCall c = { b, n, also ? *also : 0, also != nullptr, (unsigned long long *)gpu_mailbox() };
    if (gpu_check(cudaMemsetAsync(gpu_mailbox(), 0xff, sizeof at, gpu_stream()), "cudaMemset")) return -1;
    LAUNCH(check_kernel, gpu_blocks(count), THREADS, c);
    if (gpu_launched("index check") || gpu_read_mailbox(&at)) return -1;
    if (at == -1) return 0;
    LAUNCH(value_kernel, 1, 1, b, at, gpu_mailbox());
    if (gpu_launched("index check") || gpu_read_mailbox(bad_value)) return -1;
    *bad_at = at;
    return gpu_fail("index %lld at position %lld is out of range: want 0 to %lld", (long long)*bad_value,
                    (long long)at, (long long)n - 1);
}
