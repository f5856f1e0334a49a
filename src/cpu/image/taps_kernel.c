/* taps_kernel.c - sums at positions, for both dtypes (taps_loops.h), once an instruction set. */
#include "taps_kernel.h"

typedef struct Piece { /* index and weight [taps, points]; x [size] */
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

TapsKernel *const ISA_NAME(taps_kernel)[2] = { run_f32, run_f64 };
