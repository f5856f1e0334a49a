/* norm_kernel.c - the loops of layer_norm and batch_norm, for both dtypes (norm_loops.h), once an instruction
 * set. */
#include "norm_kernel.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

enum { LANES = 16, STEPS = 16 };

/* The sum of the lanes, by halves: the same order on each instruction set. */
static double total(const double lane[LANES])
{
    double sum[LANES / 2];
    for (int k = 0; k < LANES / 2; k++) sum[k] = lane[k] + lane[k + LANES / 2];
    for (int k = 0; k < LANES / 4; k++) sum[k] += sum[k + LANES / 4];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

#define T float
#define TYPE f32
#include "norm_loops.h"
#undef T
#undef TYPE

#define T double
#define TYPE f64
#include "norm_loops.h"

const NormKernel ISA_NAME(norm_kernel)[2] = {
    { moments_f32, row_f32, scale_f32, products_f32, gradient_f32, parameters_f32, blend_f32,
      column_moments_f32, column_scale_f32, column_products_f32, column_gradient_f32 },
    { moments_f64, row_f64, scale_f64, products_f64, gradient_f64, parameters_f64, blend_f64,
      column_moments_f64, column_scale_f64, column_products_f64, column_gradient_f64 },
};
