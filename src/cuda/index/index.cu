/* index.cu - are all values in range, as indices must be?  One block looks, and notes the first bad one in
 * the device's memory, where the next wait finds it (device.cu); nothing waits for it here, unless it is to
 * be told at once.  And the positions that indices of several dims stand for. */
#include <stdlib.h>
#include "cuda/cuda.cuh"

struct CheckCall {
    IndexBlock block; /* index: of f64, maybe */
    int64_t low, high, also, call;
    bool has_also, nan;
    int64_t *fault; /* call, value, position, is it f64; call 0: none */
};

static __device__ inline int64_t index_at(const IndexBlock &b, int64_t i)
{
    const int64_t o = i / (b.rows * b.inner), j = i / b.inner % b.rows, k = i % b.inner;
    return o * b.outer_stride + j * b.row_stride + k * b.inner_stride;
}

static __device__ inline bool is_bad(const CheckCall &c, int64_t value)
{
    return (value < c.low || value > c.high) && !(c.has_also && value == c.also);
}

static __device__ inline bool is_bad(const CheckCall &c, double value)
{
    const bool within = value >= (double)c.low && (c.high == INT64_MAX || value <= (double)c.high);
    return !within && !(c.nan && value != value);
}

template <class T> __global__ void check_kernel(CheckCall c)
{
    __shared__ unsigned long long first;
    const T *const x = (const T *)(const void *)c.block.index;
    const int64_t count = c.block.outer * c.block.rows * c.block.inner;
    if (threadIdx.x == 0) first = ~0ull;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
        if (is_bad(c, x[index_at(c.block, i)])) atomicMin(&first, (unsigned long long)i);
    __syncthreads();
    if (threadIdx.x != 0 || first == ~0ull || c.fault[0] != 0) return;
    c.fault[1] = c.block.index[index_at(c.block, (int64_t)first)]; /* the bits of either */
    c.fault[2] = (int64_t)first;
    c.fault[3] = std::is_same_v<T, double>;
    c.fault[0] = c.call;
}

/* 1: a bad one, which is told at once. */
static int look(const CheckCall &c, bool real, DeviceFault *at_once)
{
    auto kernel = real ? &check_kernel<double> : &check_kernel<int64_t>;
    LAUNCH(kernel, 1, THREADS, c);
    if (gpu_launched("index check")) return -1;
    const char *sync = getenv("TAPEGRAD_CUDA_SYNC");
    if (!sync || *sync != '1' || !gpu_synchronize()) return 0;
    return gpu_fault(at_once) ? 1 : -1;
}

int gpu_check_index(const IndexCheck *q, int64_t *bad_at, int64_t *bad_value)
{
    IndexBlock b = q->block;
    if (b.outer_stride == 0) b.outer = 1;
    if (b.row_stride == 0) b.rows = b.rows ? 1 : 0;
    if (b.inner_stride == 0) b.inner = 1;
    if (b.outer * b.rows * b.inner == 0) return 0;
    const CallRange range = { q->op, "index", q->site, TENSOR_EINDEX, 0, q->n - 1 };
    const CheckCall c = { b,
                          0,
                          q->n - 1,
                          q->also ? *q->also : 0,
                          gpu_note_call(range),
                          q->also != nullptr,
                          false,
                          gpu_fault_words() };
    DeviceFault f;
    const int found = look(c, false, &f);
    if (found == 1) *bad_at = f.position, *bad_value = f.value;
    return found ? -1 : 0;
}

int gpu_check_range(CheckArgs *a)
{
    const IndexBlock block = { (const int64_t *)a->x, 1, a->count, 1, 0, 1, 0 };
    if (a->count == 0) return 0;
    const CallRange range = { a->op, a->what, a->site, a->status, a->low, a->high };
    const CheckCall c = { block, a->low, a->high, 0, gpu_note_call(range), false, a->nan, gpu_fault_words() };
    DeviceFault f;
    const int found = look(c, a->dtype == TENSOR_F64, &f);
    if (found == 1) a->bad_at = f.position, a->bad_value = f.value, a->bad_number = f.number;
    return found ? -1 : 0;
}

/* ---- positions ------------------------------------------------------------------------------- */

static __global__ void join_kernel(IndexJoinArgs a)
{
    for (int64_t i = first_item(); i < a.count; i += item_step()) {
        int64_t index = a.index[i] < 0 ? a.index[i] + a.n : a.index[i];
        if (index < 0 || index >= a.n) index = 0; /* the check tells of it */
        a.at[i] = a.first ? index : a.at[i] * a.n + index;
    }
}

int gpu_index_join(IndexJoinArgs *a)
{
    if (a->count == 0) return 0;
    LAUNCH(join_kernel, gpu_blocks(a->count), THREADS, *a);
    return gpu_launched("index_join");
}
