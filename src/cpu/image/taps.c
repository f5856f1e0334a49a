/* taps.c - weighted sums of elements picked at a few positions, and their two gradients.  Each thread has its
 * own pieces of the result, so that the order of additions is fixed. */
#include "device/host.h"
#include "taps_kernel.h"

typedef struct Pieces {
    const TapsArgs *a;
    TapsKernel *run;
} Pieces;

static void piece(void *ctx, int64_t i)
{
    const Pieces *p = ctx;
    p->run(p->a, i);
}

int cpu_taps(TapsArgs *a)
{
    const int64_t pieces = a->batch * (a->kind == TAPS_DOT ? a->taps : a->channels);
    const int threads = cpu_threads(2 * a->batch * a->channels * (a->taps * a->points + a->size));
    parallel_for(pieces, threads, piece, &(Pieces){ a, ISA_PICK(taps_kernel)[a->dtype == TENSOR_F64] });
    return 0;
}
