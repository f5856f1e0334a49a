/* parallel.h - loops over pieces of work, on several threads.
 *
 * Why not OpenMP: its threads spin for milliseconds at a barrier after every loop.  If another program uses a
 * core, each loop waits for a thread that is not running: one epoch of the MNIST demo took 81 s, and 7.5 s
 * with OMP_WAIT_POLICY=passive.  Here threads claim pieces one by one, and no loop waits for a thread without
 * a piece. */
#ifndef TG_PARALLEL_H
#define TG_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>
#include "hidden.h"

HIDDEN_BEGIN

/* parallel_for - piece(ctx, i) for every i in [0, n), each once, in any order, on at most `threads` threads
 * of which the caller is one; returns when all are done.  Pieces of a loop inside a piece, and of a second
 * caller at the same time, run on the calling thread alone.  What is computed must not depend on who computes
 * it. */
void parallel_for(int64_t n, int threads, void (*piece)(void *ctx, int64_t i), void *ctx);

/* parallel_split - span(ctx, from, to) for a few spans that cover [0, n): for loops whose single steps are
 * small. */
void parallel_split(int64_t n, int threads, void (*span)(void *ctx, int64_t from, int64_t to), void *ctx);

bool parallel_inside(void); /* is this thread working on a piece, or this process a fork?  Then it is alone */
/* parallel_slot - in a piece: a number below `threads` that no other thread has now, for scratch memory.
 * parallel_default_threads - OMP_NUM_THREADS when it is set, else the CPUs that this process may use. */
int parallel_slot(void);
int parallel_default_threads(void);

HIDDEN_END
#endif
