/* resample_kernel.c - weighted sums along one axis, for both dtypes (resample_loops.h), once an instruction
 * set. */
#include "resample_kernel.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define T float
#define TYPE f32
#include "resample_loops.h"
#undef T
#undef TYPE

#define T double
#define TYPE f64
#include "resample_loops.h"

ResampleKernel *const ISA_NAME(resample_kernel)[2] = { pass_f32, pass_f64 };
