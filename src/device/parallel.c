/* parallel.c - a pool of threads that wait for work and claim it piece by piece.
 *
 *  - One loop runs at a time.  Workers join it under the lock while it is open, each with its own slot; one
 * that wakes late finds it closed and sleeps again.
 *  - next hands out pieces, done counts those that are finished.  The caller works too, closes the loop, and
 * then waits only for pieces that others have begun.
 *  - The fields of a loop change only when no worker is active in it.
 *  - Workers spin for some 20 microseconds after a loop, since the next one often follows, then sleep. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include "host.h"
#include "parallel.h"

enum { MAX_WORKERS = 255, SPINS = 200 };

static struct {
    pthread_mutex_t lock, busy; /* busy: a loop is running */
    pthread_cond_t wake;
    int workers, sleeping, joined, wanted, active;
    bool open;
    _Atomic uint64_t turn; /* counts loops */
    void (*piece)(void *ctx, int64_t i);
    void *ctx;
    int64_t n;
    _Atomic int64_t next, done;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .busy = PTHREAD_MUTEX_INITIALIZER,
           .wake = PTHREAD_COND_INITIALIZER };

static THREAD_LOCAL bool inside;
static THREAD_LOCAL int slot;
static bool forked; /* written by the one thread of a child, before it has others */

bool parallel_inside(void) { return inside || forked; }

int parallel_slot(void) { return slot; }

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void work(void)
{
    int64_t i;
    while ((i = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed)) < pool.n) {
        pool.piece(pool.ctx, i);
        atomic_fetch_add_explicit(&pool.done, 1, memory_order_release);
    }
}

/* Joins the next loop that is open; the lock is held before and after. */
static void join(uint64_t *seen)
{
    for (;;) {
        uint64_t turn = atomic_load(&pool.turn);
        if (turn != *seen && pool.open && pool.joined < pool.wanted) {
            *seen = turn;
            slot = ++pool.joined;
            pool.active++;
            return;
        }
        *seen = turn;
        pthread_mutex_unlock(&pool.lock);
        for (int i = 0; i < SPINS && atomic_load_explicit(&pool.turn, memory_order_relaxed) == turn; i++)
            relax();
        pthread_mutex_lock(&pool.lock);
        while (atomic_load(&pool.turn) == turn) {
            pool.sleeping++;
            pthread_cond_wait(&pool.wake, &pool.lock);
            pool.sleeping--;
        }
    }
}

static void *worker(void *unused)
{
    uint64_t seen = 0;
    (void)unused;
    inside = true;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        join(&seen);
        pthread_mutex_unlock(&pool.lock);
        work();
        pthread_mutex_lock(&pool.lock);
        pool.active--;
    }
    return NULL;
}

/* After fork the child has none of the threads, and OpenMP, which BLIS uses, waits for its own for ever: a
 * child works on one thread. */
static void stay_alone(void) { forked = true; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, stay_alone); }

static void add_workers(int wanted)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pool.workers < wanted && pool.workers < MAX_WORKERS) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, worker, NULL)) break; /* fewer threads, the same result */
        pool.workers++;
    }
    pthread_attr_destroy(&attributes);
}

static void publish(int64_t n, int wanted, void (*piece)(void *ctx, int64_t i), void *ctx)
{
    pthread_mutex_lock(&pool.lock);
    while (pool.active) { /* a worker is on its way out of the loop before */
        pthread_mutex_unlock(&pool.lock);
        sched_yield();
        pthread_mutex_lock(&pool.lock);
    }
    pool.piece = piece, pool.ctx = ctx, pool.n = n, pool.wanted = wanted, pool.joined = 0, pool.open = true;
    atomic_store(&pool.done, 0);
    atomic_store(&pool.next, 0);
    atomic_fetch_add(&pool.turn, 1);
    if (pool.sleeping) pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
}

void parallel_for(int64_t n, int threads, void (*piece)(void *ctx, int64_t i), void *ctx)
{
    if (threads > n) threads = (int)n;
    if (threads < 2 || parallel_inside() || pthread_mutex_trylock(&pool.busy)) {
        for (int64_t i = 0; i < n; i++) piece(ctx, i);
        return;
    }
    if (pool.workers < threads - 1) add_workers(threads - 1);
    publish(n, threads - 1, piece, ctx);
    inside = true;
    work();
    inside = false;
    pthread_mutex_lock(&pool.lock);
    pool.open = false;
    pthread_mutex_unlock(&pool.lock);
    for (int spins = 0; atomic_load_explicit(&pool.done, memory_order_acquire) < n; spins++) {
        if (spins < SPINS) relax();
        else sched_yield();
    }
    pthread_mutex_unlock(&pool.busy);
}

typedef struct Split {
    void (*span)(void *ctx, int64_t from, int64_t to);
    void *ctx;
    int64_t n, spans;
} Split;

static void run_span(void *ctx, int64_t i)
{
    const Split *s = ctx;
    s->span(s->ctx, s->n * i / s->spans, s->n * (i + 1) / s->spans);
}

void parallel_split(int64_t n, int threads, void (*span)(void *ctx, int64_t from, int64_t to), void *ctx)
{
    Split s = { span, ctx, n, threads < n ? threads : n };
    if (threads < 2) {
        if (n > 0) span(ctx, 0, n);
        return;
    }
    s.spans = s.spans * 4 < n ? s.spans * 4 : n; /* more spans than threads: a slow thread delays less */
    parallel_for(s.spans, threads, run_span, &s);
}

int parallel_default_threads(void)
{
    const char *asked = getenv("OMP_NUM_THREADS");
    int n = asked ? atoi(asked) : 0;
    if (n > 0) return n < MAX_WORKERS ? n : MAX_WORKERS;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}
