/* bags_kernel.c - sums of rows over bags (bags_loops.h), for one instruction set; on one thread, for bags of
 * all sizes follow each other. */
#include "bags.h"
#include "cpu/vectors.h"

enum { VECTORS = BYTES == 64 ? 16 : 8, LANES = 16, STEPS = 16 };

#define T float
#define V Uf32
#define W_f32 Vf32
#define M_f32 Mf32
#define TYPE f32
#include "bags_loops.h"
#undef T
#undef V
#undef TYPE

#define T double
#define V Uf64
#define W_f64 Vf64
#define M_f64 Mf64
#define TYPE f64
#include "bags_loops.h"
