/* taps.c - weighted sums of elements picked at a few positions, and their two gradients.  Threads have planes of the result, so
 * that the order of additions is one. */
#include "../core.h"
#include "cpu.h"

typedef struct Piece {                      /* of one plane: index and weight [taps, points] */
    int64_t taps, points, size;
    const int64_t *index;
} Piece;

#define T float
#define N(name) name##_f32
#include "taps_loops.h"
#undef T
#undef N
#define T double
#define N(name) name##_f64
#include "taps_loops.h"

static void piece(void *ctx, int64_t i)
{
    const TapsArgs *a = ctx;
    if (a->dtype == TENSOR_F64) run_f64(a, i);
    else run_f32(a, i);
}

int cpu_taps(TapsArgs *a)
{
    const int64_t pieces = a->batch * (a->kind == TAPS_DOT ? a->taps : a->channels);
    parallel_for(pieces, cpu_threads(2 * a->batch * a->channels * (a->taps * a->points + a->size)), piece, a);
    return 0;
}
