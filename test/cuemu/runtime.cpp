/* runtime.cpp - the runtime API of cuemu.h: device memory, streams that run when something waits for them,
 * errors. */
#include "cuemu.h"
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <sys/mman.h>
#include <vector>

extern "C" {
#define WEAK __attribute__((weak))
WEAK void __asan_poison_memory_region(const volatile void *, size_t);
WEAK void __asan_unpoison_memory_region(const volatile void *, size_t);
WEAK void __msan_poison(const volatile void *, size_t);
}

namespace cuemu {
/* ---- device memory --------------------------------------------------------------------------- */
struct Alloc {
    uintptr_t p;
    size_t n;
    bool pinned; /* host memory */
};
static std::vector<Alloc> mem; /* sorted by address */
static cudaError_t sticky, last;
static CuemuCounts counts;
static int64_t failing_allocation, failing_launch;
static std::mutex big; /* host threads come one at a time, but work of streams runs without it */
#define HOLD std::lock_guard<std::mutex> hold(big)
static std::condition_variable_any moved; /* work was done */
static bool held;                         /* kernels wait before they run */
static cudaError_t err(cudaError_t e)
{
    if (e) last = e;
    return e;
}

static size_t pos(uintptr_t p)
{
    size_t a = 0, b = mem.size();
    while (a < b) {
        size_t m = (a + b) / 2;
        if (mem[m].p <= p) a = m + 1;
        else b = m;
    }
    return a;
}

static const Alloc *find(const void *p)
{
    size_t i = pos((uintptr_t)p);
    if (!i) return nullptr;
    return (uintptr_t)p < mem[i - 1].p + mem[i - 1].n ? &mem[i - 1] : nullptr;
}
bool is_device_ptr(const void *p)
{
    const Alloc *a = find(p);
    return a && !a->pinned;
}

/* Device memory lies in one range, which the host reaches only while something runs: a read of it faults.
 * Of large pages, so that to allow and to forbid it costs little. */
constexpr size_t ROOM = 4ull << 30, PAGES = 2 << 20, APART = 256; /* APART: what ASan sees between blocks */
static char *reserve()
{
    void *p = mmap(nullptr, ROOM + PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    char *at = (char *)(((uintptr_t)p + PAGES - 1) / PAGES * PAGES);
    madvise(at, ROOM, MADV_HUGEPAGE);
    return at;
}

static char *range = reserve();
static size_t reached;            /* of the range, up to here: whole pages */
static std::vector<Alloc> unread; /* fresh blocks: NaN, so that a read before a write shows */
static int exec_depth;

static void protect(size_t from, size_t to, bool on)
{
    if (to > from) mprotect(range + from, to - from, on ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static void expose(bool on)
{
    if (on ? exec_depth++ : --exec_depth) return;
    protect(0, reached, on);
    for (const Alloc &m : unread) memset((void *)m.p, 0xff, m.n);
    unread.clear();
}

static bool in_range(uintptr_t p) { return p >= (uintptr_t)range && p < (uintptr_t)range + ROOM; }

/* The first gap that is wide enough; null: none is. */
static void *device_block(size_t n)
{
    uintptr_t at = (uintptr_t)range + APART;
    for (const Alloc &m : mem) {
        if (!in_range(m.p)) continue;
        if (at + n + APART <= m.p) break;
        at = (m.p + m.n + 2 * APART - 1) / APART * APART;
    }
    const size_t end = at - (uintptr_t)range + n + APART;
    if (!range || n > ROOM || end > ROOM) return nullptr;
    if (end > reached) {
        const size_t was = reached;
        reached = (end + PAGES - 1) / PAGES * PAGES;
        if (exec_depth) protect(was, reached, true);
        if (__asan_poison_memory_region) __asan_poison_memory_region(range + was, reached - was);
    }
    return (void *)at;
}

/* What lies behind the last block goes back to the system. */
static void forget_block(const Alloc &gone)
{
    size_t end = 0;
    std::erase_if(unread, [&](const Alloc &m) { return m.p == gone.p; });
    if (__asan_poison_memory_region) __asan_poison_memory_region((void *)gone.p, gone.n);
    for (const Alloc &m : mem)
        if (in_range(m.p)) end = m.p + m.n + APART - (uintptr_t)range;
    end = (end + PAGES - 1) / PAGES * PAGES;
    if (end >= reached) return;
    protect(end, reached, false);
    madvise(range + end, reached - end, MADV_DONTNEED);
    reached = end;
}

/* ---- streams --------------------------------------------------------------------------------- */
} // namespace cuemu
using namespace cuemu;
struct Mark { /* what an event is; work that names it may outlive the event */
    cuemuStream *stream = nullptr;
    unsigned recorded = 0, done = 0;
    double time = 0; /* in ms */
};
struct cuemuEvent {
    std::shared_ptr<Mark> mark = std::make_shared<Mark>();
};
struct Op { /* work, an event that is waited for, or one that is done */
    std::function<void()> work = nullptr;
    int64_t *tally = nullptr; /* counts the work once done */
    std::shared_ptr<Mark> wait = nullptr, done = nullptr;
    unsigned version = 0;
};
struct cuemuStream {
    std::deque<Op> q;
    unsigned flags = 0;
    std::thread::id runner; /* who runs its work now */
};
namespace cuemu {
static std::vector<cuemuStream *> streams;
static cuemuStream null_stream;
static bool eager;
static bool init()
{
    if (const char *o = getenv("CUEMU_ORDER")) set_order(o);
    if (const char *e = getenv("CUEMU_STREAMS")) eager = !strcmp(e, "eager");
    streams.push_back(&null_stream);
    return true;
}

static bool initialised = init();
static cuemuStream *S(cudaStream_t s) { return s ? s : &null_stream; }

static double now()
{
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

/* Runs what a stream holds, or up to a mark.  Who comes while another thread does so waits for that. */
static void drain(cuemuStream *s, const Mark *until = nullptr, unsigned version = 0)
{
    const auto me = std::this_thread::get_id(), nobody = std::thread::id();
    auto there = [&] { return until && until->done >= version; };
    while (s->runner != nobody && s->runner != me && !there()) moved.wait(big);
    if (s->q.empty() || there()) return;
    const auto before = s->runner;
    s->runner = me;
    expose(true);
    while (!s->q.empty() && !there()) {
        Op op = std::move(s->q.front());
        s->q.pop_front();
        if (op.wait && op.wait->done < op.version) drain(op.wait->stream, op.wait.get(), op.version);
        if (op.work && !sticky) {
            big.unlock();
            op.work();
            big.lock();
            if (op.tally) ++*op.tally;
        }
        if (op.done) op.done->done = op.version, op.done->time = now();
        moved.notify_all();
    }
    expose(false);
    s->runner = before;
    moved.notify_all();
}

static void drain_all()
{
    for (auto *s : std::vector<cuemuStream *>(streams)) drain(s);
}

static void push(cuemuStream *s, Op op)
{
    if (s == &null_stream) {
        for (auto *o : streams)
            if (o != s && !(o->flags & cudaStreamNonBlocking)) drain(o);
    } else if (!(s->flags & cudaStreamNonBlocking)) drain(&null_stream);
    s->q.push_back(std::move(op));
    if (eager) drain(s);
}

static void run_kernel(const Launch &l, bool fails)
{
    static std::mutex chip;
    std::lock_guard<std::mutex> one_at_a_time(chip);
    {
        std::unique_lock<std::mutex> let_go(big);
        moved.wait(let_go, [] { return !held; });
    }
    if (!fails && run_grid(l)) return;
    HOLD;
    sticky = last = cudaErrorLaunchFailure;
}

int launch_(Launch l, void *stream, void *const *ptrs, int np)
{
    HOLD;
    if (sticky) return err(sticky);
    counts.launches++;
    const bool fails = failing_launch && --failing_launch == 0;
    uint64_t t = (uint64_t)l.b.x * l.b.y * l.b.z;
    if (!t || t > 1024 || l.b.z > 64 || !l.g.x || !l.g.y || !l.g.z || l.g.x > 0x7fffffffu || l.g.y > 65535 ||
        l.g.z > 65535) {
        fprintf(stderr, "cuemu: %s: invalid configuration <<<(%u,%u,%u),(%u,%u,%u)>>>\n", l.name, l.g.x,
                l.g.y, l.g.z, l.b.x, l.b.y, l.b.z);
        return err(cudaErrorInvalidConfiguration);
    }
    for (int i = 0; i < np; i++)
        if (ptrs[i] && !is_device_ptr(ptrs[i])) {
            fprintf(stderr, "cuemu: %s: pointer argument %d (%p) is not device memory\n", l.name, i, ptrs[i]);
            sticky = cudaErrorIllegalAddress;
            return err(sticky);
        }
    push(S((cudaStream_t)stream), Op{ [l, fails] { run_kernel(l, fails); }, &counts.ran });
    return 0;
}
} // namespace cuemu
enum { DEVICES = 2 };
extern "C" {
cudaError_t cudaDriverGetVersion(int *v)
{
    *v = 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *v)
{
    *v = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = DEVICES;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int d) { return err(d < 0 || d >= DEVICES ? cudaErrorInvalidDevice : cudaSuccess); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = cudaDeviceProp{};
    strcpy(p->name, "cuemu (CPU)");
    p->totalGlobalMem = 4ull << 30;
    p->major = 9;
    p->multiProcessorCount = 4;
    return cudaSuccess;
}

static cudaError_t new_memory(void **p, size_t n, bool pinned)
{
    HOLD;
    if (sticky) return err(sticky);
    if (!n) {
        *p = nullptr;
        return cudaSuccess;
    }
    if (!pinned) counts.allocations++;
    *p = nullptr;
    if (!pinned && failing_allocation > 1) failing_allocation--;
    if (!pinned && failing_allocation == 1) return err(cudaErrorMemoryAllocation);
    if (!pinned) *p = device_block(n);
    else if (posix_memalign(p, 256, n)) *p = nullptr;
    if (!*p) return err(cudaErrorMemoryAllocation);
    mem.insert(mem.begin() + (long)pos((uintptr_t)*p), Alloc{ (uintptr_t)*p, n, pinned });
    if (!pinned && __asan_unpoison_memory_region) __asan_unpoison_memory_region(*p, n);
    if (pinned || exec_depth) memset(*p, 0xff, n);
    else unread.push_back(Alloc{ (uintptr_t)*p, n, false });
    if (__msan_poison) __msan_poison(*p, n);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t n) { return new_memory(p, n, false); }
cudaError_t cudaMallocHost(void **p, size_t n) { return new_memory(p, n, true); }
cudaError_t cudaFreeHost(void *p) { return cudaFree(p); }

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *of, const void *p)
{
    HOLD;
    const Alloc *a = find(p);
    of->type = !a ? cudaMemoryTypeUnregistered : a->pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    HOLD;
    size_t used = 0;
    for (const Alloc &m : mem) used += m.pinned ? 0 : m.n;
    *total = 4ull << 30, *free_bytes = *total - used;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    HOLD;
    if (!p) return cudaSuccess;
    drain_all();
    size_t i = pos((uintptr_t)p);
    if (!i || mem[i - 1].p != (uintptr_t)p) {
        fprintf(stderr, "cuemu: free of unknown pointer %p\n", p);
        return err(cudaErrorInvalidValue);
    }
    const Alloc gone = mem[i - 1];
    mem.erase(mem.begin() + (long)i - 1);
    if (gone.pinned) free(p);
    else forget_block(gone);
    return err(sticky);
}

static cudaError_t check_copy(const void *d, const void *s, cudaMemcpyKind k)
{
    bool to = is_device_ptr(d), from = is_device_ptr(s);
    bool ok = to == (k == cudaMemcpyHostToDevice || k == cudaMemcpyDeviceToDevice) &&
              from == (k == cudaMemcpyDeviceToHost || k == cudaMemcpyDeviceToDevice);
    if (!ok) fprintf(stderr, "cuemu: memcpy kind %d does not match the pointers\n", (int)k);
    return ok ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
}

/* Of pageable host memory a source is staged before the call returns, a destination is waited for. */
cudaError_t cudaMemcpyAsync(void *d, const void *s, size_t n, cudaMemcpyKind k, cudaStream_t st)
{
    HOLD;
    if (sticky) return err(sticky);
    if (!n) return cudaSuccess;
    if (cudaError_t e = check_copy(d, s, k)) return err(e);
    counts.to_device += k == cudaMemcpyHostToDevice, counts.to_host += k == cudaMemcpyDeviceToHost;
    if (k == cudaMemcpyHostToDevice && !find(s)) {
        counts.waits++;
        auto v = std::make_shared<std::vector<char>>((const char *)s, (const char *)s + n);
        push(S(st), Op{ [=] { memcpy(d, v->data(), n); }, &counts.arrived });
        return cudaSuccess;
    }
    push(S(st), Op{ [=] { memcpy(d, s, n); }, k == cudaMemcpyHostToDevice ? &counts.arrived : nullptr });
    if (k == cudaMemcpyDeviceToHost && !find(d)) counts.waits++, drain(S(st));
    return err(sticky);
}

cudaError_t cudaMemsetAsync(void *d, int v, size_t n, cudaStream_t st)
{
    HOLD;
    if (sticky) return err(sticky);
    if (n && !find(d)) return err(cudaErrorInvalidValue);
    push(S(st), Op{ [=] { memset(d, v, n); } });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f)
{
    HOLD;
    *s = new cuemuStream;
    (*s)->flags = f;
    streams.push_back(*s);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    HOLD;
    drain(s);
    for (size_t i = 0; i < streams.size(); i++)
        if (streams[i] == s) {
            streams.erase(streams.begin() + (long)i);
            break;
        }
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    HOLD;
    counts.waits++;
    drain(S(s));
    if (!s) drain_all();
    return err(sticky);
}

cudaError_t cudaGetLastError(void)
{
    HOLD;
    cudaError_t e = last;
    last = sticky;
    return e;
}

/* ---- events ---------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    *e = new cuemuEvent;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t st)
{
    HOLD;
    Mark *m = e->mark.get();
    m->stream = S(st), m->recorded++;
    push(m->stream, Op{ nullptr, nullptr, nullptr, e->mark, m->recorded });
    return err(sticky);
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    HOLD;
    return err(sticky ? sticky : e->mark->done < e->mark->recorded ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    HOLD;
    counts.waits++;
    if (e->mark->stream) drain(e->mark->stream, e->mark.get(), e->mark->recorded);
    return err(sticky);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t st, cudaEvent_t e, unsigned)
{
    HOLD;
    const std::shared_ptr<Mark> m = e->mark;
    if (m->stream && m->done < m->recorded)
        S(st)->q.push_back(Op{ nullptr, nullptr, m, nullptr, m->recorded });
    return err(sticky);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    HOLD;
    const Mark *a = from->mark.get(), *b = to->mark.get();
    if (!a->recorded || !b->recorded) return err(cudaErrorInvalidResourceHandle);
    if (a->done < a->recorded || b->done < b->recorded) return cudaErrorNotReady;
    *ms = (float)(b->time - a->time);
    return cudaSuccess;
}

/* ---- for tests ------------------------------------------------------------------------------- */

CuemuCounts cuemu_counts(void)
{
    HOLD;
    return counts;
}

void cuemu_fail_allocation(int64_t n)
{
    HOLD;
    failing_allocation = n > 0 ? n + 1 : 0;
}

void cuemu_fail_launch(int64_t n)
{
    HOLD;
    failing_launch = n;
}

void cuemu_hold(int on)
{
    HOLD;
    held = on != 0;
    moved.notify_all();
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define NAMES(X)                                                           \
    X(cudaSuccess, "no error")                                             \
    X(cudaErrorInvalidValue, "invalid argument")                           \
    X(cudaErrorMemoryAllocation, "out of memory")                          \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")     \
    X(cudaErrorInvalidMemcpyDirection, "invalid copy direction")           \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                    \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")           \
    X(cudaErrorNotReady, "device not ready")                               \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered") \
    X(cudaErrorLaunchFailure, "unspecified launch failure")
const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
#define NAME(a, b) \
    case a: return #a;
        NAMES(NAME)
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
#define TEXT(a, b) \
    case a: return b;
        NAMES(TEXT)
    }
    return "unrecognized error code";
}

void cuemu_enqueue(cudaStream_t s, std::function<void()> *f)
{
    HOLD;
    counts.launches++;
    if (!sticky) push(S(s), Op{ *f, &counts.ran });
}
}
