/* staging.cu - bytes from host memory to the device without waiting for it: they are copied into a ring of
 * pinned memory, from where the device fetches them in the order of its stream.  Only who is a whole ring
 * ahead of the device waits. */
#include "cuda/staging.cuh"

bool Staging::open()
{
    if (gpu_check(cudaMallocHost((void **)&ring, SIZE), "cudaMallocHost")) return false;
    for (Fence &f : fence)
        if (gpu_check(cudaEventCreateWithFlags(&f.done, cudaEventDisableTiming), "making an event"))
            return false;
    return true;
}

void Staging::close()
{
    for (Fence &f : fence) {
        if (f.done) cudaEventDestroy(f.done);
        f.done = nullptr;
    }
    if (ring) cudaFreeHost(ring);
    ring = nullptr;
}

/* Waits until the device has fetched all that lies in [begin, end), which is free then. */
int Staging::clear(size_t begin, size_t end)
{
    for (;;) {
        bool in_use = count == FENCES;
        for (int i = 0; i < count && !in_use; i++) {
            const Fence &f = fence[(first + i) % FENCES];
            in_use = f.begin < end && begin < f.end;
        }
        if (!in_use) return 0;
        const cudaEvent_t done = fence[first].done;
        const int passed = gpu_passed(done);
        if (passed < 0 || (!passed && gpu_check(cudaEventSynchronize(done), "a copy"))) return -1;
        first = (first + 1) % FENCES, count--;
    }
}

void *Staging::take(const void *src, size_t bytes)
{
    if (head + bytes > SIZE) head = 0;
    if (clear(head, head + bytes)) return nullptr;
    memcpy(ring + head, src, bytes);
    return ring + head;
}

int Staging::queue(void *dst, size_t bytes, cudaStream_t stream)
{
    Fence &f = fence[(first + count) % FENCES];
    if (gpu_check(cudaMemcpyAsync(dst, ring + head, bytes, cudaMemcpyHostToDevice, stream),
                  "copying to the device") ||
        gpu_check(cudaEventRecord(f.done, stream), "copying to the device"))
        return -1;
    f.begin = head, f.end = head + bytes;
    head = f.end, count++;
    return 0;
}

int Staging::send(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t piece = bytes - at < PIECE ? bytes - at : PIECE;
        if (!take((const char *)src + at, piece) || queue((char *)dst + at, piece, stream)) return -1;
    }
    return 0;
}
