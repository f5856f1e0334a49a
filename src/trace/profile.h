/* profile.h - the profiler's side of a call: a span on the C stack of the thread. */
#ifndef TG_PROFILE_H
#define TG_PROFILE_H

#include <stdatomic.h>
#include <tapegrad/profiler.h>
#include "device/host.h"
#include "hidden.h"

typedef enum ProfileKind { PROFILE_FORWARD, PROFILE_BACKWARD, PROFILE_RANGE, PROFILE_KINDS } ProfileKind;

typedef struct Amount {
    int64_t ns, allocations, bytes;
} Amount;

typedef struct ProfileSpan {
    struct ProfileSpan *outer;
    const char *name;
    ProfileKind kind;
    uint16_t range; /* the module that it belongs to; 0: none */
    uint32_t run;
    int64_t start;
    Amount before, inside; /* the thread's counts then; what spans inside took */
} ProfileSpan;

enum { PROFILE_NAME = 56, PROFILE_RANGES = 4096, PROFILE_EVENTS = 1 << 20 };

typedef struct ProfileRow { /* of an op in one direction */
    const void *key;
    char name[PROFILE_NAME];
    ProfileKind kind;
    int64_t calls;
    Amount total, self;
} ProfileRow;

typedef struct ProfileRange { /* a name within another one; [0] is the root */
    char name[PROFILE_NAME];
    uint16_t parent, child, next; /* 0: none */
    int64_t calls;
    Amount forward;
    int64_t backward_ns;
} ProfileRange;

typedef struct ProfileEvent {
    int64_t start, ns, bytes;
    int row, thread; /* row < 0: the range itself */
    uint16_t range;
} ProfileEvent;

typedef struct ProfileLog {
    ProfileRow *row;
    ProfileRange *range;
    ProfileEvent *event;
    int rows, row_room, ranges, range_room;
    int64_t events, event_room, dropped, start, end;
} ProfileLog;

HIDDEN_BEGIN

/* call_modes - how many modes that wrap every call of an op are on, in any thread: the profiler, autocast,
 * hooks of saved values (autograd/modes.h).  While it is 0 a call pays one load and one branch. */
extern _Atomic int call_modes;
FORCE_INLINE bool modes_on(void)
{
    return unlikely(atomic_load_explicit(&call_modes, memory_order_relaxed) != 0);
}

extern atomic_bool profiling;
FORCE_INLINE bool profile_on(void) { return atomic_load_explicit(&profiling, memory_order_relaxed); }

void profile_enter(ProfileSpan *span, const char *name, ProfileKind kind, uint16_t range);
void profile_leave(ProfileSpan *span);
uint16_t profile_range(void); /* the innermost name that is pushed now */
void profile_count_allocation(size_t bytes);

/* profile_lock - what was measured, until profile_unlock. */
const ProfileLog *profile_lock(void);
void profile_unlock(void);

HIDDEN_END

#endif
