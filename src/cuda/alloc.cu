/* alloc.cu - device memory, from pools of blocks (pool.cu).
 *
 *  - All work is in one stream, so a block may be given out again while the kernels that used it are still
 *    queued.  Copies beside the queue have blocks of their own, each a segment.
 *  - When the device has no more, segments without a live block are given back and the request is tried once
 *    again, then for no more than what is needed.
 *  - TAPEGRAD_CUDA_NO_CACHE=1: every block straight from the driver, so that checkers see each one's life.
 *
 * Callers have their turn on a device (device.cu). */
#include <stdlib.h>
#include "cuda/context.cuh"

enum { FEW = 8 };

static GpuCache *cache() { return &gpu_context()->cache; }

bool gpu_caching()
{
    static const char *const off = getenv("TAPEGRAD_CUDA_NO_CACHE");
    return !off || *off != '1';
}

static void release(Pool *p)
{
    while (Block *b = pool_forget(p)) {
        cudaFree(b->data);
        cache()->reserved -= (int64_t)b->bytes;
        free(b);
    }
}

void gpu_release_cached()
{
    const Relaxed relaxed;
    release(&cache()->pool);
    release(&cache()->beside);
}

/* nullptr: it has not so much. */
static char *ask_driver(size_t bytes, cudaError_t *status)
{
    void *data = nullptr;
    const Relaxed relaxed;
    *status = cudaMalloc(&data, bytes);
    if (*status == cudaErrorMemoryAllocation) cudaGetLastError();
    if (!*status) cache()->reserved += (int64_t)bytes;
    return *status ? nullptr : (char *)data;
}

static void back_to_driver(void *data, size_t bytes)
{
    cudaFree(data);
    cache()->reserved -= (int64_t)bytes;
}

/* A segment, or at least `needed` of it. */
static char *segment_from_driver(size_t *bytes, size_t needed)
{
    cudaError_t status;
    char *data = ask_driver(*bytes, &status);
    if (status == cudaErrorMemoryAllocation) {
        gpu_release_cached();
        data = ask_driver(*bytes, &status);
    }
    if (status == cudaErrorMemoryAllocation && needed < *bytes) data = ask_driver(*bytes = needed, &status);
    if (status == cudaErrorMemoryAllocation) gpu_no_memory(needed);
    else if (status) gpu_check(status, "cudaMalloc");
    return data;
}

static Block *block_from_driver(Pool *p, BlockSizes of)
{
    char *data = segment_from_driver(&of.segment, of.block);
    Block *b = data ? new_segment(p, data, of.segment, of.small) : nullptr;
    if (b) cut_block(b, of);
    else if (data) back_to_driver(data, of.segment), gpu_fail("out of memory");
    return b;
}

/* Noted as live. */
static void *given_out(Block *b)
{
    if (!b) return nullptr;
    if (!map_put(&cache()->live, b)) return pool_give(b, b->tick), gpu_fail("out of memory"), nullptr;
    cache()->in_use += (int64_t)b->bytes;
    return b->data;
}

static void *uncached(size_t bytes)
{
    void *data = segment_from_driver(&bytes, bytes);
    if (data) cache()->in_use += (int64_t)bytes;
    return data;
}

void *gpu_alloc(size_t bytes)
{
    if (gpu_must_fail()) return gpu_no_memory(bytes), nullptr;
    if (!gpu_caching()) return uncached(bytes);
    const BlockSizes of = block_sizes(bytes);
    Pool *pool = gpu_pool();
    Block *b = pool_take(pool, of);
    return given_out(b ? b : block_from_driver(pool, of));
}

/* The free block of that size that was freed first, for it is idle soonest; and how many there are. */
static Block *oldest_of(Pool *p, const BlockSizes &of, int *count)
{
    Block *const tree = of.small ? p->small : p->large, *oldest = nullptr;
    for (Block *b = first_free(tree, of.block); b && b->bytes == of.block; b = next_free(tree, b), ++*count)
        if (!oldest || b->tick < oldest->tick) oldest = b;
    return oldest;
}

/* Where it is not idle yet, a new one; but few of them, or a host that runs ahead would take all memory. */
static Block *beside(DeviceContext *c, size_t bytes)
{
    int count = 0;
    BlockSizes of = block_sizes(bytes);
    of.segment = of.block;
    Block *b = oldest_of(&c->cache.beside, of, &count);
    const bool idle = b && gpu_idle(c, b->tick);
    if (!b || (!idle && count < FEW)) return block_from_driver(&c->cache.beside, of);
    if (!idle && gpu_follow(c, b->tick)) return nullptr;
    take_block(b);
    return b;
}

void *gpu_alloc_beside(size_t bytes)
{
    DeviceContext *c = gpu_context();
    if (gpu_must_fail()) return gpu_no_memory(bytes), nullptr;
    if (gpu_tick(c)) return nullptr;
    void *data = gpu_caching() ? given_out(beside(c, bytes)) : uncached(bytes);
    if (data) gpu_depart(c, data, bytes);
    return data;
}

void gpu_free(void *data, size_t bytes)
{
    if (!gpu_caching()) {
        cache()->in_use -= (int64_t)bytes;
        return back_to_driver(data, bytes);
    }
    Block *b = map_take(&cache()->live, data);
    cache()->in_use -= (int64_t)b->bytes;
    if (b->graphs) {
        b->gone = true;
        map_put(&cache()->live, b); /* where there was room for it */
    } else {
        gpu_graphs_forget(b);
        pool_give(b, cache()->ticks);
    }
}
