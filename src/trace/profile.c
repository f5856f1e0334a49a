/* profile.c - measures calls of ops (profiler.h).
 *
 *  - A span lies on the C stack of its call, linked to the enclosing one.  Its self time is its time less
 * that of the spans inside.
 *  - Totals by op and by range, and the events of the time line, are shared by the threads, under a lock.
 * Their memory comes from the system: the profiler is no part of what it counts.  Without memory for more it
 * goes on with what it has.
 *  - A begin starts a new run; spans and ranges of an older one count nothing when they end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "profile.h"

_Atomic int call_modes;
atomic_bool profiling;
static _Atomic uint32_t run;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ProfileLog log_;

enum { MOST_OPEN = 64 };

static THREAD_LOCAL struct {
    ProfileSpan *top;
    int number; /* of the thread; 0: none yet */
    uint32_t run;
    int depth;
    ProfileSpan open[MOST_OPEN]; /* of ranges that are pushed */
    int64_t allocations, bytes;
} me;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void profile_count_allocation(size_t bytes) { me.allocations++, me.bytes += (int64_t)bytes; }

/* ---- totals ---------------------------------------------------------------------------------- */

/* Room for one more of an array; false without memory. */
static bool room(void **array, int64_t count, int64_t *has, int64_t most, size_t size)
{
    if (count < *has) return true;
    const int64_t more = *has ? 2 * *has : 64;
    void *grown = *has < most ? realloc(*array, (size_t)more * size) : NULL;
    if (!grown) return false;
    *array = grown, *has = more;
    return true;
}

static void add(Amount *to, const Amount *from)
{
    to->ns += from->ns, to->allocations += from->allocations, to->bytes += from->bytes;
}

static int row_of(const ProfileSpan *s)
{
    for (int i = 0; i < log_.rows; i++)
        if (log_.row[i].key == s->name && log_.row[i].kind == s->kind) return i;
    int64_t has = log_.row_room;
    if (!room((void **)&log_.row, log_.rows, &has, PROFILE_RANGES, sizeof *log_.row)) return -1;
    log_.row_room = (int)has;
    ProfileRow *row = &log_.row[log_.rows];
    *row = (ProfileRow){ .key = s->name, .kind = s->kind };
    snprintf(row->name, sizeof row->name, "%s", s->name);
    return log_.rows++;
}

/* The range of that name within another; 0, the root, where no more fit. */
static uint16_t range_in(uint16_t parent, const char *name)
{
    for (uint16_t i = log_.ranges ? log_.range[parent].child : 0; i; i = log_.range[i].next)
        if (strncmp(log_.range[i].name, name, PROFILE_NAME - 1) == 0) return i;
    int64_t has = log_.range_room;
    if (!room((void **)&log_.range, log_.ranges + 1, &has, PROFILE_RANGES, sizeof *log_.range)) return 0;
    log_.range_room = (int)has;
    if (!log_.ranges) log_.range[log_.ranges++] = (ProfileRange){ .name = "" };
    const uint16_t made = (uint16_t)log_.ranges++;
    ProfileRange *range = &log_.range[made];
    *range = (ProfileRange){ .parent = parent, .next = log_.range[parent].child };
    snprintf(range->name, sizeof range->name, "%s", name);
    log_.range[parent].child = made;
    return made;
}

static void note_event(const ProfileSpan *s, int row, const Amount *took)
{
    if (!room((void **)&log_.event, log_.events, &log_.event_room, PROFILE_EVENTS, sizeof *log_.event)) {
        log_.dropped++;
        return;
    }
    log_.event[log_.events++] = (ProfileEvent){ .start = s->start - log_.start,
                                                .ns = took->ns,
                                                .bytes = took->bytes,
                                                .row = row,
                                                .thread = me.number,
                                                .range = s->range };
}

static void note(const ProfileSpan *s, const Amount *took)
{
    const Amount self = { took->ns - s->inside.ns, took->allocations - s->inside.allocations,
                          took->bytes - s->inside.bytes };
    pthread_mutex_lock(&lock);
    ProfileRange *range = s->range < log_.ranges ? &log_.range[s->range] : NULL;
    const int row = s->kind == PROFILE_RANGE ? -1 : row_of(s);
    if (s->run == run && (row >= 0 || s->kind == PROFILE_RANGE)) {
        if (row >= 0) {
            log_.row[row].calls++;
            add(&log_.row[row].total, took);
            add(&log_.row[row].self, &self);
        } else if (range) {
            range->calls++;
            add(&range->forward, took);
        }
        for (uint16_t i = s->range; s->kind == PROFILE_BACKWARD && range && i; i = log_.range[i].parent)
            log_.range[i].backward_ns += took->ns;
        note_event(s, row, took);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- spans ----------------------------------------------------------------------------------- */

void profile_enter(ProfileSpan *s, const char *name, ProfileKind kind, uint16_t range)
{
    static atomic_int threads;
    if (!me.number) me.number = atomic_fetch_add(&threads, 1) + 1;
    *s = (ProfileSpan){ .outer = me.top,
                        .name = name,
                        .kind = kind,
                        .range = range,
                        .run = run,
                        .before = { 0, me.allocations, me.bytes } };
    me.top = s;
    s->start = now_ns();
}

void profile_leave(ProfileSpan *s)
{
    const Amount took = { now_ns() - s->start, me.allocations - s->before.allocations,
                          me.bytes - s->before.bytes };
    me.top = s->outer;
    if (s->outer && s->kind != PROFILE_RANGE) add(&s->outer->inside, &took);
    if (profile_on()) note(s, &took);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

uint16_t profile_range(void)
{
    if (me.run != run || !me.depth) return 0;
    return me.open[(me.depth < MOST_OPEN ? me.depth : MOST_OPEN) - 1].range;
}

void tensor_profile_push(const char *name)
{
    if (likely(!profile_on())) return;
    if (me.run != run) me.run = run, me.depth = 0;
    if (me.depth++ >= MOST_OPEN) return; /* the innermost of those counts for it */
    pthread_mutex_lock(&lock);
    const uint16_t outer = me.depth > 1 ? me.open[me.depth - 2].range : 0;
    const uint16_t range = range_in(outer, name ? name : "?");
    pthread_mutex_unlock(&lock);
    ProfileSpan *top = me.top, *s = &me.open[me.depth - 1];
    profile_enter(s, NULL, PROFILE_RANGE, range);
    me.top = s->outer = top; /* ops do not add up in it */
}

void tensor_profile_pop(void)
{
    if (likely(!profile_on()) || me.run != run || !me.depth) return;
    if (--me.depth >= MOST_OPEN) return;
    ProfileSpan *top = me.top;
    profile_leave(&me.open[me.depth]);
    me.top = top;
}

/* ---- on and off ------------------------------------------------------------------------------ */

bool tensor_profiling(void) { return profile_on(); }

void tensor_profile_begin(void)
{
    pthread_mutex_lock(&lock);
    log_.rows = log_.ranges = 0, log_.events = log_.dropped = 0;
    log_.start = now_ns(), log_.end = 0; /* before a span can be of this run */
    run++;
    if (!atomic_exchange(&profiling, true)) atomic_fetch_add(&call_modes, 1);
    pthread_mutex_unlock(&lock);
}

void tensor_profile_end(void)
{
    pthread_mutex_lock(&lock);
    if (atomic_exchange(&profiling, false)) {
        atomic_fetch_sub(&call_modes, 1);
        log_.end = now_ns();
    }
    pthread_mutex_unlock(&lock);
}

const ProfileLog *profile_lock(void)
{
    pthread_mutex_lock(&lock);
    if (profile_on()) log_.end = now_ns();
    return &log_;
}

void profile_unlock(void) { pthread_mutex_unlock(&lock); }

/* ---- a whole program ------------------------------------------------------------------------- */

static const char *asked(void)
{
    const char *path = secure_getenv("TAPEGRAD_PROFILE");
    return path && *path && strcmp(path, "0") != 0 ? path : NULL;
}

__attribute__((constructor)) static void start(void)
{
    if (asked()) tensor_profile_begin();
}

__attribute__((destructor)) static void report(void)
{
    const char *path = asked();
    if (!path) return;
    tensor_profile_end();
    tensor_profile_print(stderr);
    if (tensor_profile_save(strcmp(path, "1") == 0 ? "tapegrad_trace.json" : path))
        fprintf(stderr, "%s\n", tensor_error());
}
