/* conv_kernel.c - the loops of convolution, for both dtypes (conv_loops.h), once an instruction set. */
#include <string.h>
#include "conv_kernel.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

/* The output columns whose tap at offset s lies inside the input row: [*from, *to). */
static void inside(int64_t size, int64_t out, int64_t stride, int64_t offset, int64_t *from, int64_t *to)
{
    int64_t lo = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    int64_t hi = size - 1 - offset < 0 ? 0 : (size - 1 - offset) / stride + 1;
    *from = lo < out ? lo : out;
    *to = hi < *from ? *from : hi < out ? hi : out;
}

#define T float
#define TYPE f32
#include "conv_loops.h"
#undef T
#undef TYPE

#define T double
#define TYPE f64
#include "conv_loops.h"

const ConvKernel ISA_NAME(conv_kernel)[2] = {
    { unfold_f32, fold_f32, plane_f32, plane_grad_input_f32, plane_grad_weight_f32, fill_f32, add_f32, sum_f32 },
    { unfold_f64, fold_f64, plane_f64, plane_grad_input_f64, plane_grad_weight_f64, fill_f64, add_f64, sum_f64 },
};
