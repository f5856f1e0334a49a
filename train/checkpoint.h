/* checkpoint.h - a checkpoint's struct. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include <limits.h>
#include <tapegrad.h>

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
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
};

/* 0; -1 and ENULL: no run, or a pending error that explains it. */
int checkpoint_swap_out(const Checkpoint *run);
int checkpoint_swap_in(const Checkpoint *run, int status); /* status, or -1 */
int checkpoint_check(const Checkpoint *run, const char *function);
char *checkpoint_copy(const char *text);
int checkpoint_no_memory(const char *function);

/* The dict of a file as one of a part: names begin after "part.".  The items are to be freed, what they point
 * to is the file's.  count -1: no memory. */
TensorDict checkpoint_dict_of(TensorDict file, const char *part, const char *function);

/* checkpoint_apply - the parts and numbers of a file, all or nothing.  0 or -1. */
int checkpoint_apply(Checkpoint *run, TensorDict file, const char *function);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
