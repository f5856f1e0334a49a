/* beside.cu - copies beside the queue, in a stream of their own, and events.
 *
 *  - Memory for such a copy is a block that no queued work uses any more, or one for which the copy waits: a
 *    freed block knows how many marks (ticks) the queue had by then; the next one passes when it is idle.
 *  - The queue learns of a copy by an event that it waits for.  Memory that is freed before, a flight, makes
 *    it wait, too: whoever gets the block next writes it behind the copy.
 *  - The lock of launches is held to say what will be copied, not to copy. */
#include <new>
#include "cuda/context.cuh"

struct DeviceEvent {
    cudaEvent_t event;
    int64_t copies; /* beside the queue that it is behind */
};

static thread_local DeviceContext *copies_beside; /* this thread's copies, of that GPU */

bool gpu_beside(const DeviceContext *c) { return copies_beside == c; }

bool gpu_set_beside(DeviceContext *c, bool on)
{
    const bool was = gpu_beside(c);
    if (on != was) copies_beside = on ? c : nullptr;
    return was;
}

cudaStream_t gpu_stream_of(DeviceContext *c)
{
    const DeviceGraph *g = gpu_capture_on(c);
    return gpu_beside(c) ? c->beside.stream : g ? g->stream : c->stream;
}

/* ---- start ----------------------------------------------------------------------------------- */

void gpu_close_beside(DeviceContext *c)
{
    Beside *b = &c->beside;
    b->staging.close();
    for (cudaEvent_t &e : b->tick) {
        if (e) cudaEventDestroy(e);
        e = nullptr;
    }
    if (b->last) cudaEventDestroy(b->last);
    if (b->stream) cudaStreamDestroy(b->stream);
    b->last = nullptr, b->stream = nullptr;
}

static int event_without_time(cudaEvent_t *e)
{
    return gpu_check(cudaEventCreateWithFlags(e, cudaEventDisableTiming), "making an event");
}

static int make_beside(DeviceContext *c)
{
    Beside *b = &c->beside;
    if (b->stream) return 0;
    if (gpu_check(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking), "making a stream")) return -1;
    bool made = b->staging.open() && !event_without_time(&b->last);
    for (cudaEvent_t &e : b->tick) made = made && !event_without_time(&e);
    if (!made) gpu_close_beside(c);
    return made ? 0 : -1;
}

/* ---- which memory, and when ------------------------------------------------------------------ */

/* TICKS marks are kept; behind the oldest of them lies what is older. */
static cudaEvent_t mark_of(DeviceContext *c, int64_t tick)
{
    const int64_t oldest = c->cache.ticks - TICKS;
    return c->beside.tick[(tick > oldest ? tick : oldest) % TICKS];
}

int gpu_tick(DeviceContext *c)
{
    if (make_beside(c)) return -1;
    if (gpu_check(cudaEventRecord(c->beside.tick[c->cache.ticks % TICKS], c->stream), "marking the queue"))
        return -1;
    c->cache.ticks++;
    return 0;
}

bool gpu_idle(DeviceContext *c, int64_t tick) { return gpu_passed(mark_of(c, tick)) == 1; }

int gpu_follow(DeviceContext *c, int64_t tick)
{
    return gpu_check(cudaStreamWaitEvent(c->beside.stream, mark_of(c, tick), 0), "waiting for the queue");
}

static Flight *flight_of(Beside *b, const void *data)
{
    for (Flight *f = b->flight; f < b->flight + b->flights; f++)
        if ((const char *)data >= f->data && (const char *)data < f->data + f->bytes) return f;
    return nullptr;
}

/* Flights whose copies the queue has waited for are none any more. */
static void forget(Beside *b, int64_t copies)
{
    int kept = 0;
    for (int i = 0; i < b->flights; i++)
        if (b->flight[i].copy <= 0 || b->flight[i].copy > copies) b->flight[kept++] = b->flight[i];
    b->flights = kept;
}

static int wait_for_all(DeviceContext *c)
{
    Beside *b = &c->beside;
    if (gpu_check(cudaEventRecord(b->last, b->stream), "a copy") ||
        gpu_check(cudaStreamWaitEvent(c->stream, b->last, 0), "a copy"))
        return -1;
    forget(b, b->copies);
    return 0;
}

int gpu_land(DeviceContext *c, const void *data, size_t bytes)
{
    Beside *b = &c->beside;
    bool waits = false;
    for (int i = b->flights - 1; i >= 0; i--) {
        const Flight f = b->flight[i];
        const bool same = f.data < (const char *)data + bytes && (const char *)data < f.data + f.bytes;
        if (data ? !same : f.asks != &copies_beside) continue;
        waits = waits || f.copy != ASKED_FOR;
        if (f.copy == ASKED_FOR) b->flight[i] = b->flight[--b->flights];
    }
    return waits || (!data && b->flights) ? wait_for_all(c) : 0;
}

void gpu_depart(DeviceContext *c, const void *data, size_t bytes)
{
    Beside *b = &c->beside;
    if (b->flights == FLIGHTS) wait_for_all(c);
    if (b->flights < FLIGHTS)
        b->flight[b->flights++] = Flight{ (const char *)data, bytes, ASKED_FOR, &copies_beside };
}

/* Before a copy: the flight of its memory.  Into new memory it waits for nothing, else for the queue. */
static int begin(DeviceContext *c, const void *data, size_t bytes, bool writes)
{
    Turn turn(c);
    if (!turn.ready || make_beside(c)) return -1;
    Flight *f = flight_of(&c->beside, data);
    const bool is_new = f && writes && f->copy == ASKED_FOR && f->asks == &copies_beside;
    if (!is_new && (gpu_tick(c) || gpu_follow(c, c->cache.ticks - 1))) return -1;
    if (!f) gpu_depart(c, data, bytes), f = flight_of(&c->beside, data);
    if (f) f->copy = BEING_QUEUED;
    return 0;
}

/* After it: how long the flight lasts. */
static int end(DeviceContext *c, const void *data, int status)
{
    Turn turn(c);
    c->beside.copies++;
    if (Flight *f = flight_of(&c->beside, data)) f->copy = c->beside.copies;
    return status;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static bool is_pinned(const void *p)
{
    cudaPointerAttributes of;
    if (cudaPointerGetAttributes(&of, p) == cudaSuccess) return of.type == cudaMemoryTypeHost;
    cudaGetLastError();
    return false;
}

int gpu_to_device_beside(DeviceContext *c, void *dst, const void *src, size_t bytes)
{
    Beside *b = &c->beside;
    std::lock_guard<std::mutex> alone(b->lock);
    if (begin(c, dst, bytes, true)) return -1;
    if (is_pinned(src))
        return end(c, dst,
                   gpu_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, b->stream),
                             "copying to the device"));
    return end(c, dst, b->staging.send(dst, src, bytes, b->stream));
}

/* Into pinned memory it is queued; else the call returns when it is done. */
int gpu_to_host_beside(DeviceContext *c, void *dst, const void *src, size_t bytes)
{
    if (begin(c, src, bytes, false)) return -1;
    return end(c, src,
               gpu_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, c->beside.stream),
                         "copying from the device"));
}

int gpu_synchronize_beside(DeviceContext *c)
{
    return c->beside.stream ? gpu_check(cudaStreamSynchronize(c->beside.stream), "waiting for copies") : 0;
}

void *gpu_pin(DeviceContext *c, size_t bytes)
{
    void *data = nullptr;
    {
        Turn turn(c);
        if (!turn.ready) return nullptr;
    }
    return gpu_check(cudaMallocHost(&data, bytes), "pinned memory") ? nullptr : data;
}

/* CUDA waits for what uses it. */
void gpu_unpin(DeviceContext *, void *data) { cudaFreeHost(data); }

/* ---- events ---------------------------------------------------------------------------------- */

DeviceEvent *gpu_event(DeviceContext *c, bool timed)
{
    Turn turn(c);
    DeviceEvent *e = turn.ready ? new (std::nothrow) DeviceEvent{} : nullptr;
    const unsigned flags = timed ? 0 : cudaEventDisableTiming;
    if (e && !gpu_check(cudaEventCreateWithFlags(&e->event, flags), "making an event")) return e;
    delete e;
    return nullptr;
}

void gpu_event_free(DeviceContext *, DeviceEvent *e)
{
    cudaEventDestroy(e->event);
    delete e;
}

int gpu_event_record(DeviceContext *c, DeviceEvent *e)
{
    Turn turn(c);
    if (!turn.ready || (gpu_beside(c) && make_beside(c))) return -1;
    e->copies = gpu_beside(c) ? c->beside.copies : 0;
    return gpu_check(cudaEventRecord(e->event, gpu_stream_of(c)), "recording an event");
}

int gpu_event_done(DeviceContext *c, DeviceEvent *e)
{
    Turn turn(c);
    return turn.ready ? gpu_passed(e->event) : -1;
}

int gpu_event_synchronize(DeviceContext *c, DeviceEvent *e)
{
    {
        Turn turn(c);
        if (!turn.ready) return -1;
    }
    return gpu_check(cudaEventSynchronize(e->event), "waiting for an event");
}

int gpu_event_wait(DeviceContext *c, DeviceEvent *e)
{
    Turn turn(c);
    if (!turn.ready || (gpu_beside(c) && make_beside(c))) return -1;
    if (gpu_check(cudaStreamWaitEvent(gpu_stream_of(c), e->event, 0), "waiting for an event")) return -1;
    if (!gpu_beside(c)) forget(&c->beside, e->copies);
    return 0;
}

double gpu_event_elapsed(DeviceContext *c, DeviceEvent *from, DeviceEvent *to)
{
    float ms = 0;
    Turn turn(c);
    if (!turn.ready || gpu_check(cudaEventElapsedTime(&ms, from->event, to->event), "time between events"))
        return NAN;
    return ms;
}
