/* runtime.cpp - the runtime API of cuemu.h: streams that run when something waits for them, copies, events,
 * errors. */
#include "runtime.h"
#include <chrono>
#include <map>

namespace cuemu {
thread_local int current;
cudaError_t lost_on[DEVICES];
static cudaError_t last_on[DEVICES];
CuemuCounts counts;
int64_t failing_allocation;
static int64_t failing_launch;
std::mutex big;
static std::condition_variable_any moved; /* work was done */
bool dry;
static bool held; /* kernels wait before they run */

cudaError_t err(cudaError_t e)
{
    if (e) last_on[current] = e;
    return e;
}

/* ---- streams --------------------------------------------------------------------------------- */

std::vector<cuemuStream *> streams;
static cuemuStream null_stream;
static bool eager;
static bool init()
{
    if (const char *o = getenv("CUEMU_ORDER")) set_order(o);
    if (const char *g = getenv("CUEMU_GUARD")) set_guard((unsigned)atoi(g));
    if (const char *e = getenv("CUEMU_STREAMS")) eager = !strcmp(e, "eager");
    streams.push_back(&null_stream);
    return true;
}

static bool initialised = init();
cuemuStream *S(cudaStream_t s) { return s ? s : &null_stream; }
bool elsewhere(cudaStream_t s)
{
    if (!s || s->device == current) return false;
    fprintf(stderr, "cuemu: a stream of device %d, where the thread has set device %d\n", s->device, current);
    return true;
}

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
        if (op.work && !lost_on[op.device] && !dry) {
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

void drain_all()
{
    for (auto *s : std::vector<cuemuStream *>(streams)) drain(s);
}

void push(cuemuStream *s, Op op)
{
    if (s->capture) {
        s->capture->ops.push_back(std::move(op));
        s->captured++, s->joined = false;
        return;
    }
    if (s == &null_stream) {
        for (auto *o : streams)
            if (o != s && !(o->flags & cudaStreamNonBlocking)) drain(o);
    } else if (!(s->flags & cudaStreamNonBlocking)) drain(&null_stream);
    s->q.push_back(std::move(op));
    if (eager) drain(s);
}

static void run_kernel(const Launch &l, bool fails, int device)
{
    static std::mutex chip;
    std::lock_guard<std::mutex> one_at_a_time(chip);
    {
        std::unique_lock<std::mutex> let_go(big);
        moved.wait(let_go, [] { return !held; });
    }
    if (!fails && run_grid(l)) return;
    HOLD;
    lost_on[device] = last_on[device] = cudaErrorLaunchFailure;
}

/* Of dynamic shared memory; more only where the kernel was told so. */
static std::map<const void *, size_t> allowed_shared;
static size_t most_shared(const void *kernel)
{
    const auto it = allowed_shared.find(kernel);
    return it == allowed_shared.end() ? 48 << 10 : it->second;
}

int launch_(Launch l, void *stream, void *const *ptrs, int np)
{
    HOLD;
    if (lost()) return err(lost());
    if (elsewhere((cudaStream_t)stream)) return err(cudaErrorInvalidResourceHandle);
    const bool captured = S((cudaStream_t)stream)->capture != nullptr;
    if (!captured) counts.launches++;
    const bool fails = !captured && failing_launch && --failing_launch == 0;
    uint64_t t = (uint64_t)l.b.x * l.b.y * l.b.z;
    if (!t || t > 1024 || l.b.z > 64 || !l.g.x || !l.g.y || !l.g.z || l.g.x > 0x7fffffffu || l.g.y > 65535 ||
        l.g.z > 65535) {
        fprintf(stderr, "cuemu: %s: invalid configuration <<<(%u,%u,%u),(%u,%u,%u)>>>\n", l.name, l.g.x,
                l.g.y, l.g.z, l.b.x, l.b.y, l.b.z);
        return err(cudaErrorInvalidConfiguration);
    }
    if (l.shared > most_shared(l.kernel)) {
        fprintf(stderr,
                "cuemu: %s: %zu bytes of dynamic shared memory, allowed are %zu (cudaFuncSetAttribute)\n",
                l.name, l.shared, most_shared(l.kernel));
        return err(cudaErrorInvalidValue);
    }
    for (int i = 0; i < np; i++)
        if (ptrs[i] && !(is_device_ptr(ptrs[i]) && find(ptrs[i])->device == current)) {
            fprintf(stderr, "cuemu: %s: pointer argument %d (%p) is not memory of device %d\n", l.name, i,
                    ptrs[i], current);
            return err(lost() = cudaErrorIllegalAddress);
        }
    push(S((cudaStream_t)stream), Op{ [l, fails, on = current] { run_kernel(l, fails, on); }, &counts.ran });
    return 0;
}
} // namespace cuemu
using namespace cuemu;
enum { COMPUTE_CAPABILITY = 9, PROCESSORS = 4, MOST_SHARED = 227 << 10 };
extern "C" {
cudaError_t cuemu_allow_shared(const void *kernel, int bytes)
{
    HOLD;
    if (bytes < 0 || bytes > MOST_SHARED) return err(cudaErrorInvalidValue);
    allowed_shared[kernel] = (size_t)bytes;
    return cudaSuccess;
}

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

cudaError_t cudaSetDevice(int d)
{
    if (d < 0 || d >= DEVICES) return err(cudaErrorInvalidDevice);
    current = d;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *d)
{
    *d = current;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int)
{
    *v = a == cudaDevAttrComputeCapabilityMajor        ? COMPUTE_CAPABILITY
         : a == cudaDevAttrMultiProcessorCount         ? PROCESSORS
         : a == cudaDevAttrMaxThreadsPerMultiProcessor ? 1536
                                                       : MOST_SHARED;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = cudaDeviceProp{};
    strcpy(p->name, "cuemu (CPU)");
    p->totalGlobalMem = 4ull << 30;
    p->major = COMPUTE_CAPABILITY;
    p->multiProcessorCount = PROCESSORS;
    return cudaSuccess;
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
    if (lost()) return err(lost());
    if (elsewhere(st)) return err(cudaErrorInvalidResourceHandle);
    if (!n) return cudaSuccess;
    if (cudaError_t e = check_copy(d, s, k)) return err(e);
    counts.to_device += k == cudaMemcpyHostToDevice, counts.to_host += k == cudaMemcpyDeviceToHost;
    if (k == cudaMemcpyHostToDevice && !find(s) && !S(st)->capture) {
        counts.waits++;
        auto v = std::make_shared<std::vector<char>>((const char *)s, (const char *)s + n);
        push(S(st), Op{ [=] { memcpy(d, v->data(), n); }, &counts.arrived });
        return cudaSuccess;
    }
    push(S(st), Op{ [=] { memcpy(d, s, n); }, k == cudaMemcpyHostToDevice ? &counts.arrived : nullptr });
    if (k == cudaMemcpyDeviceToHost && !find(d) && !S(st)->capture) counts.waits++, drain(S(st));
    return err(lost());
}

cudaError_t cudaMemsetAsync(void *d, int v, size_t n, cudaStream_t st)
{
    HOLD;
    if (lost()) return err(lost());
    if (elsewhere(st)) return err(cudaErrorInvalidResourceHandle);
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
    if (forbidden(S(s))) return err(cudaErrorStreamCaptureUnsupported);
    counts.waits++;
    drain(S(s));
    if (!s) drain_all();
    return err(lost());
}

cudaError_t cudaGetLastError(void)
{
    HOLD;
    const cudaError_t e = last_on[current];
    last_on[current] = lost();
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    HOLD;
    return last_on[current];
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
    if (elsewhere(st) || e->device != current) return err(cudaErrorInvalidResourceHandle);
    e->capture = S(st)->capture, e->from = S(st), e->captured = S(st)->captured;
    if (e->capture) return cudaSuccess;
    m->stream = S(st), m->recorded++;
    push(m->stream, Op{ nullptr, nullptr, nullptr, e->mark, m->recorded });
    return err(lost());
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    HOLD;
    if (e->capture) return e->capture->bad = true, err(cudaErrorCapturedEvent);
    return err(lost() ? lost() : e->mark->done < e->mark->recorded ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    HOLD;
    if (e->capture) return e->capture->bad = true, err(cudaErrorCapturedEvent);
    counts.waits++;
    if (e->mark->stream) drain(e->mark->stream, e->mark.get(), e->mark->recorded);
    return err(lost());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t st, cudaEvent_t e, unsigned)
{
    HOLD;
    const std::shared_ptr<Mark> m = e->mark;
    if (e->capture) return joins(S(st), e), cudaSuccess;
    if (m->stream && m->done < m->recorded)
        S(st)->q.push_back(Op{ nullptr, nullptr, m, nullptr, m->recorded });
    return err(lost());
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

static void add_one(float *x) { *x += 1; }

void cuemu_user_kernel(void *stream, unsigned blocks, unsigned threads, float *x)
{
    CU_LAUNCH(add_one, blocks, threads, (cudaStream_t)stream, x);
}

void cuemu_hold(int on)
{
    HOLD;
    held = on != 0;
    moved.notify_all();
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define NAMES(X)                                                                                    \
    X(cudaSuccess, "no error")                                                                      \
    X(cudaErrorInvalidValue, "invalid argument")                                                    \
    X(cudaErrorMemoryAllocation, "out of memory")                                                   \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                              \
    X(cudaErrorInvalidMemcpyDirection, "invalid copy direction")                                    \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                             \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                    \
    X(cudaErrorNotReady, "device not ready")                                                        \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                          \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                                         \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")        \
    X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture") \
    X(cudaErrorStreamCaptureUnjoined, "the capture has a stream that was not joined to it")         \
    X(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream")
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

void cuemu_chosen()
{
    HOLD;
    counts.heuristics++;
}

void cuemu_executed()
{
    HOLD;
    counts.executed++;
}

void cuemu_planned(int n)
{
    HOLD;
    counts.plans += n;
}

bool cuemu_forbidden()
{
    HOLD;
    return forbidden(nullptr);
}

void cuemu_lose(const char *why)
{
    HOLD;
    fprintf(stderr, "cuemu: %s\n", why);
    err(lost() = cudaErrorIllegalAddress);
}

void cuemu_enqueue(cudaStream_t s, std::function<void()> *f)
{
    HOLD;
    counts.launches++;
    if (elsewhere(s)) err(lost() = cudaErrorInvalidResourceHandle);
    if (!lost()) push(S(s), Op{ *f, &counts.ran });
}
}
