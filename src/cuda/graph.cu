/* graph.cu - captured work: a CUDA graph, with the memory that its kernels use, and the plans that own them.
 *
 *  - A capture has a stream of its own: other threads go on in the queue meanwhile, where the graph is
 *    launched afterwards.
 *  - What the thread allocates comes from the graph's pool, which nothing else uses while the graph holds
 *    work: each launch finds it as the last one left it.
 *  - A block from elsewhere whose address a captured call has is held: freed, it is not given out again
 *    before the graph is cleared.  The words of a call's arguments are looked at for that.
 *  - A request for which the pool has no room goes to the driver, in the relaxed mode, which a capture
 *    allows; steps before it have sized the pool.
 *  - Calls that look at indices are noted with the graph, under negative numbers. */
#include <new>
#include <stdlib.h>
#include "cuda/context.cuh"
#include "cuda/list_table.cuh"

static thread_local DeviceGraph *captures; /* this thread's, and the one whose pool it uses */
static thread_local DeviceGraph *pooled;

DeviceGraph *gpu_capture_on(const DeviceContext *c)
{
    return captures && captures->context == c ? captures : nullptr;
}
DeviceGraph *gpu_capture() { return gpu_capture_on(gpu_context()); }

Pool *gpu_pool()
{
    return pooled && pooled->context == gpu_context() ? &pooled->pool : &gpu_context()->cache.pool;
}

/* ---- while something is made that lasts longer ----------------------------------------------- */

Relaxed::Relaxed() : mode(cudaStreamCaptureModeRelaxed), on(gpu_capture() != nullptr)
{
    if (on) cudaThreadExchangeStreamCaptureMode(&mode);
}
Relaxed::~Relaxed()
{
    if (on) cudaThreadExchangeStreamCaptureMode(&mode);
}
Lasting::Lasting() : was(pooled) { pooled = nullptr; }
Lasting::~Lasting() { pooled = was; }

void *gpu_alloc_lasting(size_t bytes)
{
    if (gpu_capture()) return gpu_alloc(bytes);
    const Lasting lasting;
    return gpu_alloc(bytes);
}

/* ---- what a graph holds ---------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const char *x = ((const LiveBlock *)a)->data, *y = ((const LiveBlock *)b)->data;
    return (x > y) - (x < y);
}

/* The blocks that are live now, by address. */
static int list_live(DeviceGraph *g)
{
    const BlockMap *m = &g->context->cache.live;
    g->live = (LiveBlock *)malloc((m->count + 1) * sizeof *g->live), g->lives = 0;
    if (!g->live) return gpu_fail("out of memory");
    for (size_t i = 0; i < m->chains; i++)
        for (Block *b = m->chain[i]; b; b = b->left)
            if (!b->gone) g->live[g->lives++] = LiveBlock{ b->data, b->bytes, b };
    qsort(g->live, g->lives, sizeof *g->live, by_address);
    return 0;
}

static void forget_live(DeviceGraph *g)
{
    free(g->live);
    g->live = nullptr, g->lives = 0;
}

static LiveBlock *live_at(const DeviceGraph *g, const char *p)
{
    size_t low = 0, high = g->lives;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (g->live[middle].data <= p) low = middle + 1;
        else high = middle;
    }
    LiveBlock *b = low ? &g->live[low - 1] : nullptr;
    return b && p < b->data + b->bytes ? b : nullptr;
}

void gpu_graphs_forget(const Block *b)
{
    for (DeviceGraph *g = gpu_context()->graphs; g; g = g->next)
        if (LiveBlock *l = live_at(g, b->data)) l->block = nullptr;
}

template <class T> static bool hold(Held<T> *h, T *t)
{
    for (size_t i = h->count; t->graphs && i-- > 0;)
        if (h->item[i] == t) return true;
    if (h->count == h->room) {
        const size_t more = h->room ? 2 * h->room : 256;
        T **item = (T **)realloc(h->item, more * sizeof *item);
        if (!item) return gpu_fail("out of memory"), false;
        h->item = item, h->room = more;
    }
    h->item[h->count++] = t, t->graphs++;
    return true;
}

bool gpu_hold_plan(Plan *p)
{
    DeviceGraph *g = gpu_capture();
    return !g || hold(&g->plans, p);
}

bool gpu_hold_words(const void *words, size_t size)
{
    DeviceGraph *g = gpu_capture();
    for (size_t at = 0; g && at + sizeof(char *) <= size; at += sizeof(char *)) {
        const char *p;
        memcpy(&p, (const char *)words + at, sizeof p);
        const LiveBlock *l = live_at(g, p);
        if (l && l->block && !hold(&g->blocks, l->block)) return false;
    }
    return true;
}

static void let_go(DeviceGraph *g)
{
    BlockMap *live = &g->context->cache.live;
    while (g->plans.count > 0) {
        Plan *p = g->plans.item[--g->plans.count];
        p->graphs--, p->tick = g->context->cache.ticks;
    }
    while (g->blocks.count > 0) {
        Block *b = g->blocks.item[--g->blocks.count];
        if (--b->graphs || !b->gone) continue;
        map_take(live, b->data);
        b->gone = false;
        pool_give(b, g->context->cache.ticks);
    }
}

static void drop_work(DeviceGraph *g)
{
    if (g->exec) cudaGraphExecDestroy(g->exec);
    g->exec = nullptr, g->looks = false, g->notes = 0;
    let_go(g);
}

/* ---- notes ----------------------------------------------------------------------------------- */

Note *gpu_graph_note(DeviceGraph *g, int64_t *number)
{
    if (g->notes == g->note_room) {
        const int64_t more = g->note_room ? 2 * g->note_room : 64;
        Note *note = (Note *)realloc(g->note, (size_t)more * sizeof *note);
        if (!note) return nullptr;
        g->note = note, g->note_room = more;
    }
    g->looks = true;
    *number = -++g->context->captured_calls;
    if (g->notes == 0) g->first_call = *number;
    return &g->note[g->notes++];
}

const Note *gpu_find_note(const DeviceContext *c, int64_t number)
{
    for (const DeviceGraph *g = c->graphs; g; g = g->next)
        if (g->notes && number <= g->first_call && g->first_call - number < g->notes)
            return &g->note[g->first_call - number];
    return nullptr;
}

/* ---- the functions of the device ----------------------------------------------------------------- */

static DeviceGraph *make(DeviceContext *c)
{
    Turn turn(c);
    DeviceGraph *g = turn.ready ? new (std::nothrow) DeviceGraph{} : nullptr;
    if (!g) return turn.ready ? gpu_fail("out of memory") : 0, nullptr;
    if (gpu_check(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "making a stream")) {
        delete g;
        return nullptr;
    }
    g->context = c, g->next = c->graphs, c->graphs = g;
    return g;
}

static void free_graph(DeviceContext *c, DeviceGraph *g)
{
    Turn turn(c);
    DeviceGraph **at = &c->graphs;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    if (pooled == g) pooled = nullptr;
    drop_work(g);
    pool_merge(&c->cache.pool, &g->pool, &c->cache.live);
    cudaStreamDestroy(g->stream);
    free(g->blocks.item), free(g->plans.item), free(g->note);
    delete g;
}

static void use_pool(DeviceContext *, DeviceGraph *g) { pooled = g; }

static int begin(DeviceContext *c, DeviceGraph *g)
{
    Turn turn(c);
    if (!turn.ready) return KERNEL_FAILED;
    if (!gpu_caching()) return gpu_fail("TAPEGRAD_CUDA_NO_CACHE=1 gives a graph no memory of its own"), 1;
    if (gpu_waits_always()) return gpu_fail("TAPEGRAD_CUDA_SYNC=1 waits for each kernel"), KERNEL_DECLINED;
    drop_work(g);
    if (list_live(g)) return KERNEL_FAILED;
    if (gpu_check(cudaStreamBeginCapture(g->stream, cudaStreamCaptureModeThreadLocal), "beginning a capture"))
        return forget_live(g), KERNEL_FAILED;
    captures = g;
    return KERNEL_DONE;
}

static int end(DeviceContext *c, DeviceGraph *g)
{
    Turn turn(c);
    cudaGraph_t graph = nullptr;
    captures = nullptr;
    forget_live(g);
    gpu_free_list_tables(&g->tables);
    const int ended = gpu_check(cudaStreamEndCapture(g->stream, &graph), "a captured step is lost");
    const int made =
        ended ? ended : gpu_check(cudaGraphInstantiate(&g->exec, graph, 0), "a captured step is lost");
    if (graph) cudaGraphDestroy(graph);
    if (made) drop_work(g);
    return made;
}

static int launch(DeviceContext *c, DeviceGraph *g)
{
    Turn turn(c);
    if (!turn.ready) return KERNEL_FAILED;
    c->looked = c->looked || g->looks;
    return gpu_check(cudaGraphLaunch(g->exec, c->stream), "launching a captured step");
}

static void clear(DeviceContext *c, DeviceGraph *g)
{
    Turn turn(c);
    drop_work(g);
}

const DeviceGraphs gpu_graphs = { make, free_graph, use_pool, begin, end, launch, clear };
