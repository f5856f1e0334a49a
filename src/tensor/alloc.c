/* alloc.c - memory: a cache of blocks by size class, per thread for small ones, shared for large ones.
 *
 *  - Every block is 64-byte aligned.  Sizes up to 1 KiB have classes of 64 bytes, larger ones four to each
 * power of two, so that at most a quarter of a block is unused (and, above a page, untouched).
 *  - A freed block goes to its class's list, and from a thread's list that exceeds its share to the shared
 * list.  Only tensor_memory_release and the limit return blocks to the system.
 *  - Under AddressSanitizer, and with TAPEGRAD_NO_CACHE=1, blocks are freed at once, so that checkers see
 * each. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>
#include <tapegrad/debug.h>
#include "core.h"
#include "thread.h"
#include "trace/profile.h"

#if defined(__SANITIZE_ADDRESS__)
#define NO_CACHE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define NO_CACHE 1
#endif
#endif
#ifndef NO_CACHE
#define NO_CACHE 0
#endif

/* More is refused before the system is asked. */
#define MOST_BYTES (sizeof(size_t) > 4 ? (size_t)((uint64_t)1 << 47) : SIZE_MAX / 2)

enum {
    STEP = 64,
    STEPS = 16,                    /* classes 0..15: 64, 128, ... 1024 bytes */
    CLASSES = STEPS + 4 * 38,      /* up to 2^48 */
    LOCAL_CLASSES = STEPS + 4 * 6, /* up to 64 KiB: kept by the thread */
    LOCAL_BYTES = 1 << 20,         /* of one class in one thread, at most */
    HUGE_FROM = 4 << 20            /* from here on ask for huge pages: their faults are 10 times cheaper */
};

typedef struct Free {
    struct Free *next;
} Free;
typedef struct List {
    Free *first;
    int64_t blocks;
} List;

/* What a thread keeps.  Its counters are read by others, hence atomic; only the thread itself writes them. */
typedef struct Cache {
    List list[LOCAL_CLASSES];
    _Atomic int64_t in_use, tensors;
    struct Cache *next;
    bool registered;
} Cache;

static THREAD_LOCAL Cache cache;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Cache *caches;                     /* of living threads */
static int64_t dead_in_use, dead_tensors; /* folded in when a thread ends */
static List shared[CLASSES];
static int64_t system_bytes, system_calls, peak, limit;
static atomic_int caching = -1; /* -1: environment not read yet */

static _Atomic int64_t fail_in;         /* the request that fails: 1 is the next one; 0: none */
static atomic_bool fail_after, fail_on; /* fail_after: and all later ones; fail_on: from now */
static _Atomic(const void *) fail_of;   /* whose requests count */
const char all_devices[1];

static int class_of(size_t bytes)
{
    if (bytes <= STEP * STEPS) return bytes ? (int)((bytes - 1) / STEP) : 0;
    int power = 63 - __builtin_clzll(bytes - 1); /* 2^power < bytes <= 2^(power+1) */
    return STEPS + 4 * (power - 10) + (int)((bytes - 1 - ((size_t)1 << power)) >> (power - 2));
}

static size_t class_bytes(int class)
{
    if (class < STEPS) return (size_t)(class + 1) * STEP;
    int power = 10 + (class - STEPS) / 4, quarter = (class - STEPS) % 4 + 1;
    return ((size_t)1 << power) + ((size_t)quarter << (power - 2));
}

static void count(_Atomic int64_t *counter,
                  int64_t delta) /* its thread alone writes it: no locked instruction */
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + delta,
                          memory_order_relaxed);
}

/* Fork takes the lock first: the child's copy is then held by no thread that the child lacks. */
static void lock_lists(void) { pthread_mutex_lock(&lock); }
static void unlock_lists(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void guard_forks(void)
{
    pthread_atfork(lock_lists, unlock_lists, unlock_lists);
}

static void free_cache(void);

static void register_cache(void)
{
    thread_owns(THREAD_MEMORY, free_cache);
    pthread_mutex_lock(&lock);
    cache.next = caches, caches = &cache, cache.registered = true;
    pthread_mutex_unlock(&lock);
}

void tg_count_tensor(int delta)
{
    if (unlikely(!cache.registered)) register_cache();
    count(&cache.tensors, delta);
}

static int64_t sum_in_use(void) /* lock held */
{
    int64_t sum = dead_in_use;
    for (Cache *c = caches; c; c = c->next) sum += atomic_load_explicit(&c->in_use, memory_order_relaxed);
    return sum;
}

static void note_peak(void) /* lock held */
{
    int64_t now = sum_in_use();
    if (now > peak) peak = now;
}

static void system_free(void *block, size_t bytes) /* lock held */
{
    system_bytes -= (int64_t)bytes;
    free(block);
}

static void release_list(List *list, int class) /* lock held */
{
    while (list->first) {
        Free *block = list->first;
        list->first = block->next, list->blocks--;
        system_free(block, class_bytes(class));
    }
}

/* All cached blocks except those that other threads keep. */
static void release_cached(void) /* lock held */
{
    for (int i = 0; i < CLASSES; i++) release_list(&shared[i], i);
    for (int i = 0; i < LOCAL_CLASSES; i++) release_list(&cache.list[i], i);
}

static void *system_alloc(size_t bytes) /* lock held */
{
    if (limit && system_bytes + (int64_t)bytes > limit) release_cached();
    if (limit && system_bytes + (int64_t)bytes > limit) return NULL;
    if (bytes > MOST_BYTES) return NULL;
    bool huge = bytes >= HUGE_FROM;
    void *block = aligned_alloc(huge ? 2 << 20 : STEP,
                                huge ? (bytes + (2 << 20) - 1) & ~(size_t)((2 << 20) - 1) : bytes);
    if (!block) {
        release_cached();
        block = aligned_alloc(STEP, bytes);
    }
    if (!block) return NULL;
    if (huge) madvise(block, bytes, MADV_HUGEPAGE);
    system_bytes += (int64_t)bytes, system_calls++;
    return block;
}

static bool is_caching(void)
{
    int on = atomic_load_explicit(&caching, memory_order_relaxed);
    if (unlikely(on < 0)) {
        const char *off = getenv("TAPEGRAD_NO_CACHE");
        on = !(NO_CACHE || (off && *off && *off != '0'));
        atomic_store(&caching, on);
    }
    return on;
}

bool tg_alloc_must_fail(const struct DeviceContext *of)
{
    const void *which = atomic_load(&fail_of);
    if (which != all_devices && which != of) return false;
    if (atomic_load(&fail_on)) return true;
    int64_t left = atomic_load(&fail_in);
    while (left > 0)
        if (atomic_compare_exchange_weak(&fail_in, &left, left - 1)) {
            if (left == 1 && atomic_load(&fail_after)) atomic_store(&fail_on, true);
            return left == 1;
        }
    return false;
}

/* From the shared list, or the system.  A thread that runs dry takes a batch. */
static COLD void *refill(int class, size_t bytes)
{
    pthread_mutex_lock(&lock);
    void *block = shared[class].first;
    if (block) {
        shared[class].first = shared[class].first->next, shared[class].blocks--;
        for (int i = 0; class < LOCAL_CLASSES && i < 15 && shared[class].first; i++) {
            Free *extra = shared[class].first;
            shared[class].first = extra->next, shared[class].blocks--;
            extra->next = cache.list[class].first, cache.list[class].first = extra,
            cache.list[class].blocks++;
        }
    } else {
        block = system_alloc(bytes);
    }
    if (block) {
        count(&cache.in_use, (int64_t)bytes);
        note_peak();
    }
    pthread_mutex_unlock(&lock);
    return block;
}

void *tg_alloc(size_t wanted)
{
    if (unlikely(atomic_load_explicit(&fail_in, memory_order_relaxed) |
                 atomic_load_explicit(&fail_on, memory_order_relaxed) | profile_on())) {
        if (tg_alloc_must_fail(NULL)) return NULL;
        if (profile_on()) profile_count_allocation(wanted);
    }
    if (unlikely(wanted > MOST_BYTES)) return NULL;
    if (unlikely(!cache.registered)) register_cache();
    int class = class_of(wanted);
    size_t bytes = class_bytes(class);
    if (class < LOCAL_CLASSES && likely(cache.list[class].first != NULL)) {
        Free *block = cache.list[class].first;
        cache.list[class].first = block->next, cache.list[class].blocks--;
        count(&cache.in_use, (int64_t)bytes);
        return block;
    }
    return refill(class, bytes);
}

/* The thread's list is too long: half of it goes to the shared one. */
static COLD void spill(int class)
{
    pthread_mutex_lock(&lock);
    List *mine = &cache.list[class];
    for (int64_t n = mine->blocks / 2; n > 0; n--) {
        Free *block = mine->first;
        mine->first = block->next, mine->blocks--;
        block->next = shared[class].first, shared[class].first = block, shared[class].blocks++;
    }
    pthread_mutex_unlock(&lock);
}

void tg_free(void *memory, size_t wanted)
{
    if (!memory) return;
    if (unlikely(!cache.registered)) register_cache();
    int class = class_of(wanted);
    size_t bytes = class_bytes(class);
    Free *block = memory;
    count(&cache.in_use, -(int64_t)bytes);
    if (unlikely(!is_caching())) {
        pthread_mutex_lock(&lock);
        system_free(block, bytes);
        pthread_mutex_unlock(&lock);
    } else if (class < LOCAL_CLASSES) {
        List *mine = &cache.list[class];
        block->next = mine->first, mine->first = block;
        if (unlikely((size_t)++mine->blocks * bytes > LOCAL_BYTES && mine->blocks > 64)) spill(class);
    } else {
        pthread_mutex_lock(&lock);
        block->next = shared[class].first, shared[class].first = block, shared[class].blocks++;
        pthread_mutex_unlock(&lock);
    }
}

void *tg_calloc(size_t bytes)
{
    void *block = tg_alloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *tg_grow(void *old, size_t old_bytes, size_t new_bytes)
{
    if (old && class_of(old_bytes) == class_of(new_bytes)) return old;
    void *block = tg_alloc(new_bytes);
    if (!block) return NULL;
    if (old) {
        memcpy(block, old, old_bytes < new_bytes ? old_bytes : new_bytes);
        tg_free(old, old_bytes);
    }
    return block;
}

/* The thread ends: its blocks and counts are added to the shared ones. */
static void free_cache(void)
{
    if (!cache.registered) return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LOCAL_CLASSES; i++)
        while (cache.list[i].first) {
            Free *block = cache.list[i].first;
            cache.list[i].first = block->next;
            block->next = shared[i].first, shared[i].first = block, shared[i].blocks++;
        }
    memset(cache.list, 0, sizeof cache.list);
    dead_in_use += atomic_load(&cache.in_use), dead_tensors += atomic_load(&cache.tensors);
    atomic_store(&cache.in_use, 0), atomic_store(&cache.tensors, 0);
    for (Cache **c = &caches; *c; c = &(*c)->next)
        if (*c == &cache) {
            *c = cache.next;
            break;
        }
    cache.registered = false;
    pthread_mutex_unlock(&lock);
}

int64_t tensor_live_count(void)
{
    pthread_mutex_lock(&lock);
    int64_t sum = dead_tensors;
    for (Cache *c = caches; c; c = c->next) sum += atomic_load_explicit(&c->tensors, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return sum;
}

static int64_t pages(int which)
{
    const int64_t n = sysconf(which), size = sysconf(_SC_PAGESIZE);
    return n > 0 && size > 0 ? n * size : 0;
}

TensorMemory tensor_memory(void)
{
    pthread_mutex_lock(&lock);
    note_peak();
    int64_t now = sum_in_use();
    TensorMemory m = { .in_use = now,
                       .peak = peak,
                       .cached = system_bytes - now,
                       .reserved = system_bytes,
                       .free = pages(_SC_AVPHYS_PAGES),
                       .total = pages(_SC_PHYS_PAGES),
                       .system_calls = system_calls,
                       .limit = limit };
    pthread_mutex_unlock(&lock);
    return m;
}

void tensor_memory_reset_peak(void)
{
    pthread_mutex_lock(&lock);
    peak = sum_in_use();
    pthread_mutex_unlock(&lock);
}

int alloc_check_limit(const char *function, int64_t bytes)
{
    return bytes < 0 ? fail(TENSOR_EVALUE, function, "%lld bytes: want 0 or more", (long long)bytes) : 0;
}

void tensor_memory_set_limit(int64_t bytes)
{
    if (alloc_check_limit("tensor_memory_set_limit", bytes)) return;
    pthread_mutex_lock(&lock);
    limit = bytes;
    pthread_mutex_unlock(&lock);
}

void tensor_memory_release(void)
{
    pthread_mutex_lock(&lock);
    release_cached();
    pthread_mutex_unlock(&lock);
}

void tg_fail_allocation(const void *of, int64_t n, bool all_after)
{
    atomic_store(&fail_on, false);
    atomic_store(&fail_of, of);
    atomic_store(&fail_after, all_after);
    atomic_store(&fail_in, n > 0 ? n : 0);
}

void tensor_debug_fail_allocation(int64_t n, bool all_after)
{
    tg_fail_allocation(all_devices, n, all_after);
}
bool tensor_debug_allocation_failed(void) { return atomic_load(&fail_in) == 0; }
