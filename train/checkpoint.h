/* checkpoint.h - a checkpoint's struct. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include <limits.h>
#include <tapegrad.h>
#include "hidden.h"

#if defined(__GNUC__)
HIDDEN_BEGIN
#endif

typedef struct Part {
    char *name;
    TensorDict (*save)(void *ctx);
    int (*load)(void *ctx, TensorDict dict);
    void *ctx;
    TensorGenerator *generator; /* of one: what ctx, the part itself, saves; NULL: the thread's own */
    TensorDict own;             /* its dict */
    bool swapped;               /* averages: to go into the net again */
} Part;

typedef struct Number {
    char *name;
    int64_t *i; /* one of the two */
    double *d;
} Number;

struct Checkpoint {
    char *folder;
    int keep, parts, numbers;
    Part **part;
    Number *number;
    char path[PATH_MAX]; /* the last one; empty: none */
    char note[1024];
    long skipped[2]; /* by the last resume: numbers above the first, up to the second */
};

typedef struct CheckpointFile {
    const char *path, *parts; /* its parts by name, a dot between two; NULL: it does not say */
    TensorDict dict;
} CheckpointFile;

/* 0; -1 and ENULL: no run, or a pending error that explains it. */
int checkpoint_swap_out(const Checkpoint *run);
int checkpoint_swap_in(const Checkpoint *run, int status); /* status, or -1 */
int checkpoint_check(const Checkpoint *run, const char *function);
int checkpoint_no_memory(const char *function);

/* The pending error, which is cleared: its text without the place of the call, to be freed; NULL: no memory.
 * Whoever takes it raises another one. */
char *checkpoint_take_error(TensorStatus *code);

/* checkpoint_apply - the parts and numbers of a file, all or nothing.  0 or -1. */
int checkpoint_apply(Checkpoint *run, const CheckpointFile *file, const char *function);

#if defined(__GNUC__)
HIDDEN_END
#endif
#endif
