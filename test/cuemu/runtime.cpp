/* runtime.cpp - the runtime API of cuemu.h: device memory, streams that run when something waits for them,
 * errors. */
#include "cuemu.h"
#include <deque>
#include <memory>
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
};
static std::vector<Alloc> mem; /* sorted by address */
static cudaError_t sticky, last;
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
bool is_device_ptr(const void *p) { return find(p) != nullptr; }

static int exec_depth; /* device memory is out of the host's reach between flushes (ASan) */
static void expose(bool on)
{
    if (!__asan_poison_memory_region) return;
    if (on ? exec_depth++ : --exec_depth) return;
    for (auto &m : mem) (on ? __asan_unpoison_memory_region : __asan_poison_memory_region)((void *)m.p, m.n);
}

/* ---- streams --------------------------------------------------------------------------------- */
} // namespace cuemu
using namespace cuemu;
struct cuemuStream {
    std::deque<std::function<void()>> q;
    unsigned flags = 0;
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

static void drain(cuemuStream *s)
{
    expose(true);
    while (!s->q.empty()) {
        std::function<void()> f = std::move(s->q.front());
        s->q.pop_front();
        if (!sticky) f();
    }
    expose(false);
}

static void drain_all()
{
    for (auto *s : streams) drain(s);
}

static void push(cuemuStream *s, std::function<void()> f)
{
    if (s == &null_stream) {
        for (auto *o : streams)
            if (o != s && !(o->flags & cudaStreamNonBlocking)) drain(o);
    } else if (!(s->flags & cudaStreamNonBlocking)) drain(&null_stream);
    s->q.push_back(std::move(f));
    if (eager) drain(s);
}

int launch_(Launch l, void *stream, void *const *ptrs, int np)
{
    if (sticky) return err(sticky);
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
    push(S((cudaStream_t)stream), [l] {
        if (!run_grid(l)) sticky = last = cudaErrorLaunchFailure;
    });
    return 0;
}
} // namespace cuemu
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
    *n = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int d) { return err(d ? cudaErrorInvalidDevice : cudaSuccess); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = cudaDeviceProp{};
    strcpy(p->name, "cuemu (CPU)");
    p->totalGlobalMem = 4ull << 30;
    p->major = 9;
    p->multiProcessorCount = 4;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t n)
{
    if (sticky) return err(sticky);
    if (!n) {
        *p = nullptr;
        return cudaSuccess;
    }
    if (posix_memalign(p, 256, n)) {
        *p = nullptr;
        return err(cudaErrorMemoryAllocation);
    }
    memset(*p, 0xff, n); /* NaN: a read before a write shows */
    if (__msan_poison) __msan_poison(*p, n);
    mem.insert(mem.begin() + (long)pos((uintptr_t)*p), Alloc{ (uintptr_t)*p, n });
    if (!exec_depth && __asan_poison_memory_region) __asan_poison_memory_region(*p, n);
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    if (!p) return cudaSuccess;
    drain_all();
    size_t i = pos((uintptr_t)p);
    if (!i || mem[i - 1].p != (uintptr_t)p) {
        fprintf(stderr, "cuemu: free of unknown pointer %p\n", p);
        return err(cudaErrorInvalidValue);
    }
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(p, mem[i - 1].n);
    mem.erase(mem.begin() + (long)i - 1);
    free(p);
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

/* Host memory is pageable: a source is staged before the call returns, a destination is waited for. */
cudaError_t cudaMemcpyAsync(void *d, const void *s, size_t n, cudaMemcpyKind k, cudaStream_t st)
{
    if (sticky) return err(sticky);
    if (!n) return cudaSuccess;
    if (cudaError_t e = check_copy(d, s, k)) return err(e);
    if (k == cudaMemcpyHostToDevice) {
        auto v = std::make_shared<std::vector<char>>((const char *)s, (const char *)s + n);
        push(S(st), [=] { memcpy(d, v->data(), n); });
        return cudaSuccess;
    }
    push(S(st), [=] { memcpy(d, s, n); });
    if (k == cudaMemcpyDeviceToHost) drain(S(st));
    return err(sticky);
}

cudaError_t cudaMemsetAsync(void *d, int v, size_t n, cudaStream_t st)
{
    if (sticky) return err(sticky);
    if (n && !find(d)) return err(cudaErrorInvalidValue);
    push(S(st), [=] { memset(d, v, n); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f)
{
    *s = new cuemuStream;
    (*s)->flags = f;
    streams.push_back(*s);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
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
    drain(S(s));
    if (!s) drain_all();
    return err(sticky);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last;
    last = sticky;
    return e;
}
#define NAMES(X)                                                                           \
    X(cudaSuccess, "no error")                                                             \
    X(cudaErrorInvalidValue, "invalid argument")                                           \
    X(cudaErrorMemoryAllocation, "out of memory")                                          \
        X(cudaErrorInvalidConfiguration, "invalid configuration argument")                 \
            X(cudaErrorInvalidMemcpyDirection, "invalid copy direction")                   \
                X(cudaErrorInvalidDevice, "invalid device ordinal")                        \
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
    if (!sticky) push(S(s), *f);
}
}
