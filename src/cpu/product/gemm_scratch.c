/* gemm_scratch.c - memory of the library's allocator that remembers its own size. */
#include "device/host.h"
#include "gemm.h"

enum { SCRATCH_HEADER = 64 }; /* holds the size, and keeps the alignment */

void *gemm_scratch(size_t bytes)
{
    char *block = tg_alloc(bytes + SCRATCH_HEADER);
    if (!block) return NULL;
    *(size_t *)(void *)block = bytes + SCRATCH_HEADER;
    return block + SCRATCH_HEADER;
}

void gemm_scratch_free(void *memory)
{
    if (!memory) return;
    char *block = (char *)memory - SCRATCH_HEADER;
    tg_free(block, *(size_t *)(void *)block);
}
