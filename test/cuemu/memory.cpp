/* memory.cpp - device and pinned memory of cuemu.h. */
#include "runtime.h"
#include <sys/mman.h>

extern "C" {
#define WEAK __attribute__((weak))
WEAK void __asan_poison_memory_region(const volatile void *, size_t);
WEAK void __asan_unpoison_memory_region(const volatile void *, size_t);
WEAK void __msan_poison(const volatile void *, size_t);
}

namespace cuemu {
static std::vector<Alloc> mem; /* sorted by address */

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

const Alloc *find(const void *p)
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
constexpr size_t PAGES = 2 << 20, APART = 256; /* APART: what ASan sees between blocks */
static size_t room = 1ull << 30;
static char *reserve()
{
    void *p = mmap(nullptr, room + PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    char *at = (char *)(((uintptr_t)p + PAGES - 1) / PAGES * PAGES);
    madvise(at, room, MADV_HUGEPAGE);
    return at;
}

static char *range = reserve();
static size_t reached;            /* of the range, up to here: whole pages */
static std::vector<Alloc> unread; /* fresh blocks: NaN, so that a read before a write shows */
static int exec_depth;
static bool open_to_host;
static unsigned runs, guard = 1; /* of so many runs one forbids it again; which ones follows no period */

static void protect(size_t from, size_t to, bool on)
{
    if (to > from) mprotect(range + from, to - from, on ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void set_guard(unsigned of) { guard = of ? of : 1; }

void expose(bool on)
{
    if (dry) return;
    if (on ? exec_depth++ : --exec_depth) return;
    if (on != open_to_host && (on || (runs++ * 2654435761u >> 16) % guard == 0)) {
        protect(0, reached, on);
        open_to_host = on;
    }
    for (const Alloc &m : unread) memset((void *)m.p, 0xff, m.n);
    unread.clear();
}

/* What is reached is a mapping of its own, as its advice differs: to allow and to forbid it splits none. */
static void reach(size_t end)
{
    if (end > reached) madvise(range + reached, end - reached, MADV_RANDOM);
    else madvise(range + end, reached - end, MADV_NORMAL);
    reached = end;
}

static bool in_range(uintptr_t p) { return p >= (uintptr_t)range && p < (uintptr_t)range + room; }

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
    if (!range || n > room || end > room) return nullptr;
    if (end > reached) {
        const size_t was = reached;
        if (!reached) forget(range, APART); /* a report of TSan's walks down to something that it knows */
        reach((end + PAGES - 1) / PAGES * PAGES);
        if (open_to_host) protect(was, reached, true);
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
    reach(end);
}
} // namespace cuemu
using namespace cuemu;
extern "C" {
static cudaError_t new_memory(void **p, size_t n, bool pinned)
{
    HOLD;
    if (lost()) return err(lost());
    if (forbidden(nullptr)) return err(cudaErrorStreamCaptureUnsupported);
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
    else if (!dry) unread.push_back(Alloc{ (uintptr_t)*p, n, false });
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
    for (const Alloc &m : mem) used += m.pinned || m.device != current ? 0 : m.n;
    *total = room, *free_bytes = *total - used;
    return cudaSuccess;
}

void cuemu_dry()
{
    HOLD;
    drain_all();
    dry = true, room = 1ull << 40, reached = 0, range = reserve();
}

cudaError_t cudaFree(void *p)
{
    HOLD;
    if (!p) return cudaSuccess;
    if (forbidden(nullptr)) return err(cudaErrorStreamCaptureUnsupported);
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
    return err(lost());
}
}
