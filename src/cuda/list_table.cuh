/* list_table.cuh - tables on the device that say where the arrays of a call lie (list.cu). */
#ifndef TG_CUDA_LIST_TABLE_CUH
#define TG_CUDA_LIST_TABLE_CUH

#include "cuda/cuda.cuh"

struct
    ListTable { /* first[i] .. first[i + 1] are the blocks of list i; its arrays are those from i * each on */
    const int64_t *first, *count;
    void *const *array;
    int64_t n;
    unsigned blocks;
};

struct ListOf { /* n lists of `each` arrays; chunk: the elements of a block */
    void *const *array;
    const int64_t *count;
    int64_t n;
    int each;
    int64_t chunk;
};

/* gpu_list_table - one that is kept from an earlier call, or a new one.  false: no memory, or the device
 * failed. */
bool gpu_list_table(const ListOf &of, ListTable *table);
void **gpu_list_tables(); /* device.cu: of the GPU whose turn it is, or of what is captured; NULL at first */
void gpu_free_list_tables(void **slot);
void *gpu_alloc_lasting(size_t bytes); /* graph.cu: but in a capture, not of a graph's pool */

struct ListShare { /* what a block does */
    int64_t list, from, to;
};

static __device__ inline ListShare share_of(const ListTable &t, int64_t chunk)
{
    int64_t low = 0, high = t.n;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (t.first[middle] <= blockIdx.x) low = middle;
        else high = middle;
    }
    const int64_t from = (blockIdx.x - t.first[low]) * chunk, rest = t.count[low] - from;
    return { low, from, from + (rest < chunk ? rest : chunk) };
}

#endif
