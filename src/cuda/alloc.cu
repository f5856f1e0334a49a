/* alloc.cu - device memory.
 *
 *  - Sizes are rounded up to classes, four to a doubling; freed blocks wait in their class's list.  All work
 *    is in one stream, so a block may be given out again while the kernels that used it are still queued.
 *  - When the device has no more, the lists are given back and the request is tried once again.
 *  - TAPEGRAD_CUDA_NO_CACHE=1: every block straight from the driver, so that checkers see each one's life.
 *
 * Callers have their turn on a device (device.cu). */
#include <stdlib.h>
#include "cuda/context.cuh"

struct Block {
    void *data;
    Block *next;
    int64_t tick; /* the queue's next mark when it was freed */
};

enum { STEPS = GPU_CLASSES / 64, SMALLEST = 512, FEW = 8 };

/* The class of a size, and what its blocks hold. */
static int size_class(size_t bytes, size_t *rounded)
{
    size_t power = SMALLEST;
    int octave = 0;
    while (power * 2 <= bytes) power *= 2, octave++;
    const size_t step = power / STEPS;
    const size_t above = bytes <= power ? 0 : (bytes - power + step - 1) / step;
    *rounded = power + above * step;
    return octave * STEPS + (int)above; /* above == STEPS is the next doubling: the same number */
}

static bool caching()
{
    static const char *const off = getenv("TAPEGRAD_CUDA_NO_CACHE");
    return !off || *off != '1';
}

void gpu_release_cached()
{
    for (int i = 0; i < GPU_CLASSES; i++)
        while (Block *b = gpu_cache()->free[i]) {
            gpu_cache()->free[i] = b->next;
            cudaFree(b->data);
            free(b);
        }
    gpu_cache()->reserved -= gpu_cache()->bytes;
    gpu_cache()->bytes = 0;
}

/* Off its list. */
static void *take(Block **at, size_t rounded)
{
    Block *b = *at;
    void *data = b->data;
    *at = b->next, gpu_cache()->bytes -= (int64_t)rounded;
    free(b);
    return data;
}

static void *from_driver(size_t bytes, size_t rounded)
{
    void *data = nullptr;
    if (!caching()) rounded = bytes;
    cudaError_t status = cudaMalloc(&data, rounded);
    if (status == cudaErrorMemoryAllocation) {
        gpu_release_cached();
        cudaGetLastError();
        status = cudaMalloc(&data, rounded);
    }
    if (status == cudaErrorMemoryAllocation) return cudaGetLastError(), gpu_no_memory(bytes), nullptr;
    if (gpu_check(status, "cudaMalloc")) return nullptr;
    gpu_cache()->reserved += (int64_t)rounded;
    return data;
}

void *gpu_alloc(size_t bytes)
{
    size_t rounded;
    const int k = size_class(bytes, &rounded);
    if (gpu_must_fail()) return gpu_no_memory(bytes), nullptr;
    return gpu_cache()->free[k] ? take(&gpu_cache()->free[k], rounded) : from_driver(bytes, rounded);
}

/* The block that was freed first, for it is idle soonest.  Where it is not yet, a new one; but few of them,
 * or a host that runs ahead would take all memory. */
void *gpu_alloc_beside(size_t bytes)
{
    size_t rounded;
    const int k = size_class(bytes, &rounded);
    Block **oldest = &gpu_cache()->free[k];
    if (gpu_must_fail()) return gpu_no_memory(bytes), nullptr;
    if (gpu_tick(gpu_context())) return nullptr;
    for (Block **at = oldest; *at; at = &(*at)->next)
        if ((*at)->tick <= (*oldest)->tick) oldest = at;
    const bool there = *oldest, idle = there && gpu_idle(gpu_context(), (*oldest)->tick);
    const bool one_more = there && !idle && gpu_cache()->extra[k] < FEW;
    if (there && !idle && !one_more && gpu_follow(gpu_context(), (*oldest)->tick)) return nullptr;
    void *data = there && !one_more ? take(oldest, rounded) : from_driver(bytes, rounded);
    if (one_more) gpu_cache()->extra[k]++;
    if (data) gpu_depart(gpu_context(), data, bytes);
    return data;
}

void gpu_free(void *data, size_t bytes)
{
    size_t rounded;
    const int k = size_class(bytes, &rounded);
    Block *b = caching() ? (Block *)malloc(sizeof *b) : nullptr;
    if (!b) {
        cudaFree(data);
        gpu_cache()->reserved -= (int64_t)(caching() ? rounded : bytes);
        return;
    }
    b->data = data, b->next = gpu_cache()->free[k], b->tick = gpu_cache()->ticks;
    gpu_cache()->free[k] = b, gpu_cache()->bytes += (int64_t)rounded;
}
