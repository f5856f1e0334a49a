/* scheduler.h - what the learning rate schedules share.
 *
 * A kind says what rate a group has at step t, from its options, from base, the group's rate when its first
 * scheduler was made, and from lr, the rate that it has now. */
#ifndef OPTIM_SCHEDULER_H
#define OPTIM_SCHEDULER_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "optim.h"

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

enum { SCHEDULER_OPTIONS = 256, SCHEDULER_NUMBERS = 3 };

typedef struct SchedulerKind {
    const char *function; /* "optim_step_lr": what errors name */
    size_t args;          /* of its options struct, which begins with the optimizer */
    const void *defaults;
    int (*check)(const void *options, const char *function);
    double (*lr)(const Scheduler *s, int group, int64_t t, double base, double lr); /* NULL: by a metric */
    double (*momentum)(const Scheduler *s, int64_t t); /* NaN: stays as it is.  May be NULL. */
    /* What base becomes for schedulers to come, and at step 0: scheduled says whether one was made before;
     * without, it is that of all other steps.  May be NULL. */
    double (*base)(const void *options, bool scheduled, double base);
    size_t list; /* where the options have a list, a TensorShape, which is copied; 0: nowhere */
    const char *number[SCHEDULER_NUMBERS]; /* names of what is kept beside the step */
    const OpField *fields;      /* the options that PyTorch has in a state, as numbers; may be NULL */
    const char *const *derived; /* names of what PyTorch has besides, "x+": for each group.  May be NULL. */
    double (*derive)(const Scheduler *s, int i); /* follows from the rest; NaN: not this time */
} SchedulerKind;

struct Scheduler {
    const SchedulerKind *kind;
    Optimizer *opt;
    _Alignas(16) char options[SCHEDULER_OPTIONS];
    int64_t list[TENSOR_MAX_DIMS]; /* milestones */
    int listed;                    /* how many */
    int64_t t;                     /* -1: not begun */
    int64_t before;                /* t before a step of several that may fail */
    double *base;                  /* of each group */
    int groups;
    double number[SCHEDULER_NUMBERS];
    Scheduler **child; /* of several: theirs are the rates */
    int children;
    bool chained;
    TensorDict state;
};

/* scheduler_new - with the rates of step 0 set; scheduler_alloc - without. */
Scheduler *scheduler_new(const SchedulerKind *kind, const void *args);
Scheduler *scheduler_alloc(const SchedulerKind *kind, Optimizer *opt);
bool scheduler_null(const Scheduler *s, const char *function); /* recorded, unless an error was */
int scheduler_set(Scheduler *s, int64_t t, bool from_base);    /* the rates of step t; -1: refused */
int scheduler_check_momentum(const Scheduler *s); /* one that has its momentum wants an optimizer with one */

#define SCHEDULER_DEFINE(NAME, ARGS, ...)                                                                   \
    static const SchedulerKind kind_##NAME = {                                                              \
        .function = "optim_" #NAME, .args = sizeof(ARGS), .defaults = &optim_##NAME##_defaults, __VA_ARGS__ \
    };                                                                                                      \
    Scheduler *optim_##NAME##_args(ARGS args) { return scheduler_new(&kind_##NAME, &args); }

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
