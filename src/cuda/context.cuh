/* context.cuh - what the device keeps of a GPU that was opened (device.cu, beside.cu). */
#ifndef TG_CUDA_CONTEXT_CUH
#define TG_CUDA_CONTEXT_CUH

#include <atomic>
#include <mutex>
#include "cuda/cuda.cuh"
#include "cuda/plans.cuh"
#include "cuda/pool.cuh"
#include "cuda/staging.cuh"

enum { NOTES = 256, FAULT_AT = 4, FAULT_WORDS = 4, FLIGHTS = 256, TICKS = 64 };

struct Note { /* a call that looks at indices */
    char op[48];
    CallRange range; /* its op is gone */
};

enum { BEING_QUEUED = -1, ASKED_FOR = 0 };
struct Flight { /* memory that a copy beside the queue reads or writes */
    const char *data;
    size_t bytes;
    int64_t copy;     /* its number, or: */
    const void *asks; /* the thread that will copy into this new memory */
};

/* Copies beside the queue, in a stream of their own: made when first needed. */
struct Beside {
    std::mutex lock; /* of staging; taken before the lock of launches */
    Staging staging;
    cudaStream_t stream;
    cudaEvent_t last;        /* behind all of them, for the queue to wait for */
    cudaEvent_t tick[TICKS]; /* behind what the queue held */
    int64_t copies;          /* queued so far */
    Flight flight[FLIGHTS];
    int flights;
};

struct LiveBlock {
    const char *data;
    size_t bytes;
    Block *block; /* nullptr: it was freed meanwhile */
};

template <class T> struct Held { /* what a graph holds: each once, and counts how many do */
    T **item;
    size_t count, room;
};

struct DeviceGraph { /* of graph.cu */
    DeviceContext *context;
    DeviceGraph *next;
    cudaStream_t stream;  /* where its work is captured */
    cudaGraphExec_t exec; /* nullptr: it holds none */
    Pool pool;
    void *tables;    /* of list_table.cu, while it is captured */
    LiveBlock *live; /* while it is captured: all from before, by address */
    size_t lives;
    Held<Block> blocks; /* those of them that it uses */
    Held<Plan> plans;
    bool looks; /* at indices */
    Note *note; /* of the calls that do: number first_call, and down from there */
    int64_t notes, note_room, first_call;
};

struct GpuCache {      /* of alloc.cu */
    Pool pool, beside; /* of the queue's work; of copies beside it */
    BlockMap live;
    int64_t in_use, reserved; /* bytes of live blocks, of all segments */
    int64_t ticks;            /* marks in the queue so far (beside.cu) */
};

struct DeviceContext {
    std::mutex lock;   /* of launches */
    std::mutex copies; /* of staging; taken first */
    Staging staging;
    Beside beside;
    int index;
    bool (*must_fail)(const DeviceContext *);
    cudaStream_t stream;    /* the queue */
    int64_t *mailbox;       /* a few words of the device's */
    int64_t *found;         /* pinned: its fault words, fetched by a wait */
    std::atomic<bool> lost; /* every call fails from here on */
    bool looked;            /* indices were looked at since the last wait */
    int64_t calls;          /* noted so far */
    Note note[NOTES];
    GpuCache cache;
    DeviceGraph *graphs;
    int64_t captured_calls; /* noted with graphs so far */
    void *blas;             /* cuBLAS, from the first product on */
    void *dnn;              /* cuDNN, from its first call on, where it is there */
    void *tables;           /* of list_table.cu */
    void *rows;             /* of formula.cu */
};

/* One thread at a time, on the right device; gpu_context is whose turn it is. */
struct Turn {
    std::lock_guard<std::mutex> guard;
    bool ready;
    explicit Turn(DeviceContext *c);
};
DeviceContext *gpu_context();

/* alloc.cu: memory for a copy beside the queue; what is free goes back to the driver. */
void *gpu_alloc_beside(size_t bytes);
void gpu_release_cached();

/* ---- graph.cu --------------------------------------------------------------------------------
 *
 * gpu_capture - what this thread captures on the GPU whose turn it is, or nullptr.  gpu_capture_on: on c.
 * gpu_pool - where its memory comes from.
 * gpu_hold - before a call: the memory that it uses is not given out again.  false: no memory.
 * gpu_hold_plan - the plan that a call uses stays.  false: no memory.
 * gpu_graphs_forget - a block that no graph holds is freed.
 * gpu_graph_note, gpu_find_note - of a call that looks at indices; nullptr: no memory, or not there. */
DeviceGraph *gpu_capture();
DeviceGraph *gpu_capture_on(const DeviceContext *c);
Pool *gpu_pool();
bool gpu_hold_plan(Plan *p);
bool gpu_hold_words(const void *words, size_t size);
template <class Args> static inline bool gpu_hold(const Args *a) { return gpu_hold_words(a, sizeof *a); }
static inline bool gpu_hold(const ListRuleArgs *a)
{
    return gpu_hold_words(a, sizeof *a) &&
           gpu_hold_words(a->array, (size_t)a->n * (size_t)a->arrays * sizeof *a->array);
}
static inline bool gpu_hold(const ListNormArgs *a)
{
    return gpu_hold_words(a, sizeof *a) && gpu_hold_words(a->array, (size_t)a->n * sizeof *a->array);
}
static inline bool gpu_hold(const FormulaArgs *a) { return gpu_hold_words(a->map, sizeof *a->map); }
void gpu_graphs_forget(const Block *b);
Note *gpu_graph_note(DeviceGraph *g, int64_t *number);
const Note *gpu_find_note(const DeviceContext *c, int64_t number);

bool gpu_caching();      /* alloc.cu: unless TAPEGRAD_CUDA_NO_CACHE=1 */
bool gpu_waits_always(); /* device.cu: TAPEGRAD_CUDA_SYNC=1 */

extern const DeviceGraphs gpu_graphs;

/* ---- beside.cu ------------------------------------------------------------------------------- */

/* gpu_beside - does this thread copy beside the queue now?
 * gpu_set_beside - from now on; what it was.
 * The others under the lock of launches: gpu_land - the queue waits for the copies beside it, if a block that
 * is freed (data; NULL: any) is one of theirs.  gpu_depart - a block of this thread's, for a copy to come.
 * gpu_tick - marks what the queue holds: memory that was freed before is idle once the mark has passed, which
 * gpu_idle asks and gpu_follow makes the next copy wait for. */
bool gpu_beside(const DeviceContext *c);
bool gpu_set_beside(DeviceContext *c, bool on);
cudaStream_t gpu_stream_of(DeviceContext *c); /* the queue, or that of this thread's copies */
int gpu_land(DeviceContext *c, const void *data, size_t bytes);
void gpu_depart(DeviceContext *c, const void *data, size_t bytes);
int gpu_tick(DeviceContext *c);
bool gpu_idle(DeviceContext *c, int64_t tick);
int gpu_follow(DeviceContext *c, int64_t tick);

int gpu_to_device_beside(DeviceContext *c, void *dst, const void *src, size_t bytes);
int gpu_to_host_beside(DeviceContext *c, void *dst, const void *src, size_t bytes);
int gpu_synchronize_beside(DeviceContext *c);
void gpu_close_beside(DeviceContext *c);

void *gpu_pin(DeviceContext *c, size_t bytes);
void gpu_unpin(DeviceContext *c, void *data);
DeviceEvent *gpu_event(DeviceContext *c, bool timed);
void gpu_event_free(DeviceContext *c, DeviceEvent *e);
int gpu_event_record(DeviceContext *c, DeviceEvent *e);
int gpu_event_done(DeviceContext *c, DeviceEvent *e);
int gpu_event_synchronize(DeviceContext *c, DeviceEvent *e);
int gpu_event_wait(DeviceContext *c, DeviceEvent *e);
double gpu_event_elapsed(DeviceContext *c, DeviceEvent *from, DeviceEvent *to);

#endif
