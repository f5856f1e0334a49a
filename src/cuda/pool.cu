/* pool.cu - blocks of device memory, cut from segments and joined again, as PyTorch's allocator does it.
 *
 *  - A segment is one request to the driver.  Its blocks lie side by side, and two free neighbours are one.
 *  - Free blocks are in a tree by size, then address: a treap, whose priorities come from the addresses, so
 *    that nothing is allocated to free a block.
 *  - The same requests from the same free blocks get the same addresses. */
#include <stdlib.h>
#include "cuda/pool.cuh"

enum : size_t {
    UNIT = 512,
    MiB = 1 << 20,
    SMALL = MiB, /* requests up to here share segments of SMALL_SEGMENT */
    SMALL_SEGMENT = 2 * MiB,
    LARGE = 10 * MiB, /* up to here those of LARGE_SEGMENT; above, a segment each */
    LARGE_SEGMENT = 20 * MiB,
};

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

BlockSizes block_sizes(size_t bytes)
{
    const size_t block = round_up(bytes ? bytes : 1, UNIT);
    const bool small = block <= SMALL;
    return { block, small ? SMALL_SEGMENT : block < LARGE ? LARGE_SEGMENT : round_up(block, 2 * MiB), small };
}

/* ---- the tree of free blocks ----------------------------------------------------------------- */

static bool less(const Block *a, const Block *b)
{
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
}

static uint64_t priority(const Block *b)
{
    uint64_t x = (uint64_t)(uintptr_t)b->data * 0x9e3779b97f4a7c15u;
    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
}

static Block **tree_of(const Block *b) { return b->small ? &b->pool->small : &b->pool->large; }

static void split(Block *t, const Block *at, Block **left, Block **right)
{
    while (t)
        if (less(t, at)) *left = t, left = &t->right, t = t->right;
        else *right = t, right = &t->left, t = t->left;
    *left = *right = nullptr;
}

static Block *join(Block *a, Block *b)
{
    Block *all, **at = &all;
    while (a && b)
        if (priority(a) > priority(b)) *at = a, at = &a->right, a = a->right;
        else *at = b, at = &b->left, b = b->left;
    *at = a ? a : b;
    return all;
}

static void insert(Block *b)
{
    Block **at = tree_of(b);
    b->live = false;
    while (*at && priority(*at) >= priority(b)) at = less(b, *at) ? &(*at)->left : &(*at)->right;
    split(*at, b, &b->left, &b->right);
    *at = b;
}

void take_block(Block *b)
{
    Block **at = tree_of(b);
    while (*at != b) at = less(b, *at) ? &(*at)->left : &(*at)->right;
    *at = join(b->left, b->right);
    b->live = true;
}

Block *first_free(Block *tree, size_t bytes)
{
    Block *best = nullptr;
    while (tree)
        if (tree->bytes >= bytes) best = tree, tree = tree->left;
        else tree = tree->right;
    return best;
}

Block *next_free(Block *tree, const Block *after)
{
    Block *best = nullptr;
    while (tree)
        if (less(after, tree)) best = tree, tree = tree->left;
        else tree = tree->right;
    return best;
}

/* ---- cut and joined -------------------------------------------------------------------------- */

static void set_behind(Block *b, Block *behind)
{
    b->behind = behind;
    if (behind) behind->before = b;
}

/* Small requests use every rest; of large ones a rest is cut off that is itself a large block. */
void cut_block(Block *b, const BlockSizes &of)
{
    const size_t rest = b->bytes - of.block;
    if (of.small ? rest < UNIT : rest <= SMALL) return;
    Block *r = (Block *)malloc(sizeof *r);
    if (!r) return; /* the block is larger, then */
    *r = Block{ b->data + of.block, rest,    nullptr, nullptr, b->pool, false,
                b->small,           b->tick, nullptr, nullptr };
    set_behind(r, b->behind);
    set_behind(b, r);
    b->bytes = of.block;
    insert(r);
}

Block *pool_take(Pool *p, const BlockSizes &of)
{
    Block *b = first_free(of.small ? p->small : p->large, of.block);
    if (!b) return nullptr;
    take_block(b);
    cut_block(b, of);
    return b;
}

/* The block behind, which is free, becomes a part of this one. */
static void swallow(Block *b, Block *behind)
{
    b->bytes += behind->bytes;
    b->tick = behind->tick > b->tick ? behind->tick : b->tick;
    set_behind(b, behind->behind);
    free(behind);
}

void pool_give(Block *b, int64_t tick)
{
    Block *before = b->before, *behind = b->behind;
    b->tick = tick;
    if (behind && !behind->live) {
        take_block(behind);
        swallow(b, behind);
    }
    if (before && !before->live) {
        take_block(before);
        swallow(before, b);
        b = before;
    }
    insert(b);
}

/* ---- segments -------------------------------------------------------------------------------- */

Block *new_segment(Pool *p, char *data, size_t bytes, bool small)
{
    Block *b = (Block *)malloc(sizeof *b);
    if (b) *b = Block{ data, bytes, nullptr, nullptr, p, true, small, 0, nullptr, nullptr };
    return b;
}

static Block *whole_segment(Block *tree)
{
    if (!tree) return nullptr;
    Block *b = first_free(tree, 0);
    while (b && (b->before || b->behind)) b = next_free(tree, b);
    return b;
}

Block *pool_forget(Pool *p)
{
    Block *b = whole_segment(p->small);
    if (!b) b = whole_segment(p->large);
    if (b) take_block(b);
    return b;
}

static const bool trees[] = { true, false };

void pool_merge(Pool *to, Pool *from, BlockMap *live)
{
    for (size_t i = 0; i < live->chains; i++)
        for (Block *b = live->chain[i]; b; b = b->left)
            if (b->pool == from) b->pool = to;
    for (bool small : trees)
        while (Block *b = small ? from->small : from->large) {
            take_block(b);
            b->pool = to;
            insert(b);
        }
}

/* ---- live blocks ----------------------------------------------------------------------------- */

static Block **chain_of(BlockMap *m, const void *data)
{
    return &m->chain[(uintptr_t)data / UNIT * 0x9e3779b97f4a7c15u >> 32 & (m->chains - 1)];
}

static bool grow(BlockMap *m)
{
    BlockMap more = { nullptr, m->chains ? 2 * m->chains : 1024, m->count };
    more.chain = (Block **)calloc(more.chains, sizeof *more.chain);
    if (!more.chain) return m->chains; /* longer chains, then */
    for (size_t i = 0; i < m->chains; i++)
        while (Block *b = m->chain[i]) {
            Block **at = chain_of(&more, b->data);
            m->chain[i] = b->left, b->left = *at, *at = b;
        }
    free(m->chain);
    *m = more;
    return true;
}

bool map_put(BlockMap *m, Block *b)
{
    if (m->count >= m->chains && !grow(m)) return false;
    Block **at = chain_of(m, b->data);
    b->left = *at, *at = b, m->count++;
    return true;
}

Block *map_take(BlockMap *m, const void *data)
{
    Block **at = chain_of(m, data);
    while ((*at)->data != data) at = &(*at)->left;
    Block *b = *at;
    *at = b->left, m->count--;
    return b;
}
