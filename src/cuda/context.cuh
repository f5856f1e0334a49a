/* context.cuh - what the device keeps of a GPU that was opened (device.cu, beside.cu). */
#ifndef TG_CUDA_CONTEXT_CUH
#define TG_CUDA_CONTEXT_CUH

#include <atomic>
#include <mutex>
#include "cuda/cuda.cuh"
#include "cuda/pool.cuh"
#include "cuda/staging.cuh"

enum { NOTES = 256, FAULT_AT = 4, FAULT_WORDS = 3, FLIGHTS = 256, TICKS = 64 };

struct Note { /* a call that looks at indices */
    char op[48];
    const void *site;
    int64_t n;
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
    void *blas;   /* cuBLAS, from the first product on */
    void *tables; /* of list_table.cu */
    void *rows;   /* of formula.cu */
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
