/* pool.cuh - blocks of device memory, cut from segments and joined again (pool.cu). */
#ifndef TG_CUDA_POOL_CUH
#define TG_CUDA_POOL_CUH

#include <stddef.h>
#include <stdint.h>

struct Pool;

struct Block { /* a part of a segment */
    char *data;
    size_t bytes;
    Block *before, *behind; /* the neighbours in its segment */
    Pool *pool;
    bool live, small;
    int64_t tick;        /* free: the queue's next mark when it, or a part of it, was freed last */
    Block *left, *right; /* free: in the pool's tree; live: left is the next of its chain */
    int graphs = 0;      /* so many hold it (graph.cu) ... */
    bool gone = false;   /* ... live until they let it go: it was freed */
};

/* Free blocks by size, then address: those of small requests apart, so that they break up no large ones. */
struct Pool {
    Block *small, *large;
};

/* Live blocks by address. */
struct BlockMap {
    Block **chain;
    size_t chains, count;
};

/* block_sizes - what a request takes of a segment, and the segment that is asked from the driver for it.
 * pool_take - the smallest free block that holds so many bytes, at the lowest address, off its tree; what is
 *     more than the request can use goes back.  NULL: there is none.
 * pool_give - a live block back, joined with its free neighbours.
 * pool_forget - takes a block that is a whole segment off the free ones; the caller frees its memory.  NULL:
 *     there is none any more.
 * pool_merge - all blocks of `from`, live ones too, become those of `to`.
 * new_segment - a live block that is all of it; NULL: no memory on the host. */
struct BlockSizes {
    size_t block, segment;
    bool small;
};
BlockSizes block_sizes(size_t bytes);
Block *pool_take(Pool *p, const BlockSizes &of);
void pool_give(Block *b, int64_t tick);
Block *pool_forget(Pool *p);
void pool_merge(Pool *to, Pool *from, BlockMap *live);
Block *new_segment(Pool *p, char *data, size_t bytes, bool small);
void cut_block(Block *b, const BlockSizes &of);

/* The first free block that holds so many bytes, and those behind it, by size. */
Block *first_free(Block *tree, size_t bytes);
Block *next_free(Block *tree, const Block *after);
void take_block(Block *b);

bool map_put(BlockMap *m, Block *b); /* false: no memory on the host */
Block *map_take(BlockMap *m, const void *data);

#endif
