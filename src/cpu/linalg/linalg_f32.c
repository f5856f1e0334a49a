/* linalg_f32.c - linear algebra in f32: the same loops, and LAPACK's routines for it. */
#define LINALG_F32
#include "small_matrix.c"
#include "block_matrix.c"
#include "lu.c"
#include "triangular.c"
#include "bidiagonal.c"
#include "orthogonal.c"
