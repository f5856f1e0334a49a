/* scheduler.h - what the learning rate schedules share.
 *
 * A kind computes a group's rate at step t from its options, from base, the group's rate when its first
 * scheduler was made, and from lr, its current rate.  s->move tells how the schedule came to step t:
 * PyTorch's rates depend on it where each follows from the one before. */
#ifndef OPTIM_SCHEDULER_H
#define OPTIM_SCHEDULER_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "hidden.h"
#include "optim.h"

#if defined(__GNUC__)
HIDDEN_BEGIN
#endif

enum { SCHEDULER_OPTIONS = 256, SCHEDULER_NUMBERS = 3, SCHEDULER_LISTS = 4 };

/* Made, which leaves most rates as they are; begun anew in a row, from base; one step on. */
typedef enum SchedulerMove { SCHEDULER_FIRST, SCHEDULER_ANEW, SCHEDULER_ON } SchedulerMove;

/* An option that is one number for all groups, or a list with one for each; none is negative. */
typedef struct SchedulerList {
    const char *number, *list; /* "max_lr", "max_lrs" */
    size_t number_at, list_at; /* in the options */
    const char *state;         /* PyTorch's name in a state dict; NULL: it has none there */
    bool momentum;             /* only where momentum is cycled, too */
} SchedulerList;
#define SCHEDULER_LIST(ARGS, NUMBER, ...)                                            \
    {                                                                                \
        .number = #NUMBER, .list = #NUMBER "s", .number_at = offsetof(ARGS, NUMBER), \
        .list_at = offsetof(ARGS, NUMBER##s), __VA_ARGS__                            \
    }

typedef struct SchedulerKind {
    const char *function; /* "optim_step_lr": what errors name */
    size_t args;          /* of its options struct, which begins with the optimizer */
    const void *defaults;
    int (*check)(const void *options, const char *function);
    double (*lr)(const Scheduler *s, int group, int64_t t, double base, double lr); /* NULL: by a metric */
    double (*momentum)(const Scheduler *s, int group, int64_t t); /* NaN: stays as it is.  May be NULL. */
    /* What base becomes for schedulers to come, and at step 0: scheduled says whether one was made before;
     * without, it is that of all other steps.  May be NULL. */
    double (*base)(const Scheduler *s, int group, bool scheduled, double base);
    size_t last_epoch;                            /* where the options have that; 0: nowhere */
    size_t milestones;                            /* where they have those, a TensorShape; 0: nowhere */
    SchedulerList per_group[SCHEDULER_LISTS + 1]; /* ended by a NULL name */
    bool follows;                          /* restarted, it continues from the current rate instead of base */
    bool uncounted;                        /* PyTorch does not count its steps */
    const char *number[SCHEDULER_NUMBERS]; /* names of what is kept beside the step */
    const OpField *fields;      /* the options that PyTorch has in a state, as numbers; may be NULL */
    const char *const *derived; /* names of what PyTorch has besides, "x+": for each group.  May be NULL. */
    double (*derive)(const Scheduler *s, int i, int group); /* follows from the rest; NaN: not this time */
} SchedulerKind;

struct Scheduler {
    const SchedulerKind *kind;
    Optimizer *opt;
    _Alignas(16) char options[SCHEDULER_OPTIONS];
    double *milestone;
    int milestones; /* how many */
    int64_t t;      /* -1: not begun */
    int64_t count;  /* of steps, the first included; a row that begins it anew does not change it */
    SchedulerMove move;
    int groups;
    double *base, *last;           /* of each group: last is what the last step gave */
    double *list[SCHEDULER_LISTS]; /* of each group: the options in kind->per_group */
    struct {
        int64_t t, count;
        double *last;
    } before; /* one step of several schedules, which may fail */
    double number[SCHEDULER_NUMBERS];
    Scheduler **child; /* the schedules that compute the rates */
    int children;
    bool chained;
    TensorDict state;
};

/* scheduler_new - with the rates of step 0 set; scheduler_alloc - without. */
Scheduler *scheduler_new(const SchedulerKind *kind, const void *args);
Scheduler *scheduler_alloc(const SchedulerKind *kind, Optimizer *opt);
bool scheduler_null(const Scheduler *s, const char *function);  /* records an error unless there is one */
int scheduler_set(Scheduler *s, int64_t t, SchedulerMove move); /* the rates of step t; -1: refused */
void scheduler_note_rates(Scheduler *s);                        /* notes them as the last ones */
bool scheduler_cycles(const Scheduler *s);                      /* the momentum, too? */
/* scheduler_check_groups - are its options of each group in range, and has the optimizer what it changes? */
int scheduler_check_groups(const Scheduler *s, const char *function);

#define SCHEDULER_DEFINE(NAME, ARGS, ...)                                                \
    static const SchedulerKind kind_##NAME = { .function = "optim_" #NAME,               \
                                               .args = sizeof(ARGS),                     \
                                               .defaults = &optim_##NAME##_defaults,     \
                                               .last_epoch = offsetof(ARGS, last_epoch), \
                                               __VA_ARGS__ };                            \
    Scheduler *optim_##NAME##_args(ARGS args) { return scheduler_new(&kind_##NAME, &args); }

#if defined(__GNUC__)
HIDDEN_END
#endif
#endif
