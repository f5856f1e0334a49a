/* plans.cu - the tables of plans.cuh: chains by hash, as many as there are plans at least. */
#include <stdlib.h>
#include "cuda/context.cuh"
#include "cuda/plans.cuh"

static Plan **chain_of(const Plans *of, const void *key, size_t size)
{
    uint64_t h = size, word;
    for (size_t at = 0; at + sizeof word <= size; at += sizeof word) {
        memcpy(&word, (const char *)key + at, sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return &of->chain[h & (of->chains - 1)];
}

static void hang(const Plans *of, Plan *p)
{
    Plan **chain = chain_of(of, p->key, p->key_size);
    p->next = *chain, *chain = p;
}

/* Where there is no memory it stays as it is. */
static void grow(Plans *of)
{
    const size_t chains = of->chains ? 2 * of->chains : 64;
    Plan **chain = (Plan **)calloc(chains, sizeof *chain);
    if (!chain) return;
    free(of->chain);
    of->chain = chain, of->chains = chains;
    for (Link *l = of->ends.newer; l != &of->ends; l = l->newer) hang(of, static_cast<Plan *>(l));
}

static void detach(Link *l) { l->older->newer = l->newer, l->newer->older = l->older; }

static void link_newest(Plans *of, Link *l)
{
    l->older = of->ends.older, l->newer = &of->ends;
    l->older->newer = l->newer->older = l;
}

/* Of those that no graph holds. */
static Plan *oldest_of(const Plans *of)
{
    Link *l = of->ends.newer;
    while (l != &of->ends && static_cast<Plan *>(l)->graphs) l = l->newer;
    return l == &of->ends ? nullptr : static_cast<Plan *>(l);
}

/* Two at most for one that comes: what had to stay goes later. */
static void make_room(Plans *of)
{
    DeviceContext *c = gpu_context();
    if (of->count < Plans::MOST || gpu_capture() || gpu_tick(c)) return;
    for (int i = 0; i < 2 && of->count >= Plans::MOST; i++) {
        Plan *p = oldest_of(of);
        if (!p || !gpu_idle(c, p->tick)) return;
        Plan **at = chain_of(of, p->key, p->key_size);
        while (*at != p) at = &(*at)->next;
        *at = p->next, of->count--;
        detach(p);
        delete p;
    }
}

Plan *gpu_find_plan(const Plans *of, const void *key, size_t size)
{
    if (!of->chains) return nullptr;
    Plan *p = *chain_of(of, key, size);
    while (p && (p->key_size != size || memcmp(p->key, key, size))) p = p->next;
    return p;
}

bool gpu_keep_plan(Plans *of, Plan *p, const void *key, size_t size)
{
    make_room(of);
    if (of->count >= of->chains) grow(of);
    if (!of->chains) {
        delete p;
        return gpu_fail("out of memory"), false;
    }
    memcpy(p->key, key, p->key_size = size);
    hang(of, p);
    link_newest(of, p);
    of->count++;
    return true;
}

bool gpu_use_plan(Plans *of, Plan *p)
{
    detach(p);
    link_newest(of, p);
    p->tick = gpu_context()->cache.ticks;
    return gpu_hold_plan(p);
}
