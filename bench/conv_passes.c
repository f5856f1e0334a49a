/* conv_passes.c - one pass of a convolution by the CPU's kernels, on raw pointers: what conv_passes.py loads
 * and measures in the same process as PyTorch. */
#include "device/host.h"
#include "cpu/cpu.h"

typedef struct Geometry {
    int64_t batch, in, h, w, out, kh, kw, stride, pad, dilation, groups;
} Geometry;

static int64_t size_of(int64_t size, int64_t kernel, const Geometry *g)
{
    return (size + 2 * g->pad - g->dilation * (kernel - 1) - 1) / g->stride + 1;
}

/* pass: 0 forward, 1 gradient of the input, 2 gradient of the weight; of f32, or of bf16. */
int conv_pass(int pass, const Geometry *g, bool bf16, void *x, void *weight, void *y)
    __attribute__((visibility("default")));

int conv_pass(int pass, const Geometry *g, bool bf16, void *x, void *weight, void *y)
{
    ConvArgs a = { .dtype = bf16 ? TENSOR_BF16 : TENSOR_F32,
                   .batch = g->batch,
                   .in = g->in,
                   .d = 1,
                   .h = g->h,
                   .w = g->w,
                   .out = g->out,
                   .od = 1,
                   .oh = size_of(g->h, g->kh, g),
                   .ow = size_of(g->w, g->kw, g),
                   .kd = 1,
                   .kh = g->kh,
                   .kw = g->kw,
                   .groups = g->groups,
                   .stride_d = 1,
                   .stride_h = g->stride,
                   .stride_w = g->stride,
                   .pad_h = g->pad,
                   .pad_w = g->pad,
                   .dilation_d = 1,
                   .dilation_h = g->dilation,
                   .dilation_w = g->dilation,
                   .x = x,
                   .weight = weight,
                   .y = y };
    return pass == 0 ? cpu_conv2d(&a) : pass == 1 ? cpu_conv2d_grad_input(&a) : cpu_conv2d_grad_weight(&a);
}
