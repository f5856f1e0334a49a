/* staging.cuh - a ring of pinned memory for copies to a device. */
#ifndef TG_CUDA_STAGING_CUH
#define TG_CUDA_STAGING_CUH

#include "cuda/cuda.cuh"

struct Staging {
    bool open();  /* false, and a sentence recorded: no pinned memory */
    void close(); /* of what open made, also when it failed half way */
    /* send - the bytes go to dst, in the order of the stream. */
    int send(void *dst, const void *src, size_t bytes, cudaStream_t stream);

  private:
    enum { FENCES = 64 };
    enum : size_t { SIZE = 16 << 20, PIECE = SIZE / 4 }; /* the most bytes of one take */
    /* take - a copy of the bytes in the ring; nullptr: the device failed.
     * queue - the bytes taken last go to dst. */
    void *take(const void *src, size_t bytes);
    int queue(void *dst, size_t bytes, cudaStream_t stream);
    struct Fence { /* bytes of the ring, in use until done */
        size_t begin, end;
        cudaEvent_t done;
    };
    int clear(size_t begin, size_t end);
    char *ring;
    size_t head;
    Fence fence[FENCES];
    int first, count;
};

#endif
