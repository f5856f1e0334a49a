/* lines_kernel.c - see lines_kernel.h; lines_loops.h has the loops. */
#include "lines_kernel.h"
#include "cpu/vectors.h"

#define N(name) JOIN(name, TYPE)

#define T float
#define V Uf32
#define TYPE f32
#define W Vf32
#include "lines_loops.h"
#undef T
#undef V
#undef TYPE
#undef W

#define T double
#define V Uf64
#define TYPE f64
#define W Vf64
#include "lines_loops.h"
