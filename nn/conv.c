/* conv.c - convolution and pooling over two dimensions: they hold the arguments of their ops. */
#include "module.h"

typedef struct Conv2d {
    Module base;
    TensorConv2dArgs args;
} Conv2d;
typedef struct MaxPool2d {
    Module base;
    TensorMaxPool2dArgs args;
} MaxPool2d;
typedef struct AvgPool2d {
    Module base;
    TensorAvgPool2dArgs args;
} AvgPool2d;
typedef struct Adaptive {
    Module base;
    int64_t height, width;
} Adaptive;

static Tensor *conv2d_forward(Module *self, Tensor *x)
{
    TensorConv2dArgs args = ((Conv2d *)self)->args;
    args.input = x, args.weight = nn_param(self, 0), args.bias = nn_param(self, 1);
    return tensor_conv2d_args(args);
}

static int check_conv(const NNConv2dArgs *a, int64_t height, int64_t width)
{
    if (a->in_channels < 1 || a->out_channels < 1 || height < 1 || width < 1)
        return tensor_fail(TENSOR_EVALUE, "nn_conv2d",
                           "%lld channels in, %lld out, a kernel of %lld x %lld: all must be positive",
                           (long long)a->in_channels, (long long)a->out_channels, (long long)height,
                           (long long)width);
    if (a->groups < 1 || a->in_channels % a->groups || a->out_channels % a->groups)
        return tensor_fail(TENSOR_EVALUE, "nn_conv2d",
                           "%lld groups do not divide %lld channels in and %lld out", (long long)a->groups,
                           (long long)a->in_channels, (long long)a->out_channels);
    return 0;
}

Module *nn_conv2d_args(NNConv2dArgs a)
{
    bool pair = a.kernel_hw[0] || a.kernel_hw[1];
    int64_t height = pair ? a.kernel_hw[0] : a.kernel_size, width = pair ? a.kernel_hw[1] : a.kernel_size;
    if (check_conv(&a, height, width)) return NULL;
    Conv2d *c = nn_new(Conv2d, "Conv2d", conv2d_forward);
    c->args = (TensorConv2dArgs){ .stride = a.stride,
                                  .padding = a.padding,
                                  .dilation = a.dilation,
                                  .groups = a.groups,
                                  .stride_hw = { a.stride_hw[0], a.stride_hw[1] },
                                  .padding_hw = { a.padding_hw[0], a.padding_hw[1] },
                                  .dilation_hw = { a.dilation_hw[0], a.dilation_hw[1] } };
    nn_new_parameter(c, "weight", SHAPE(a.out_channels, a.in_channels / a.groups, height, width), a.dtype);
    if (a.bias) nn_new_parameter(c, "bias", SHAPE(a.out_channels), a.dtype);
    nn_init_default(&c->base, a.bias);
    return nn_done(c);
}

static Tensor *max_pool_forward(Module *self, Tensor *x)
{
    TensorMaxPool2dArgs args = ((MaxPool2d *)self)->args;
    args.input = x;
    return tensor_max_pool2d_args(args);
}

static Tensor *avg_pool_forward(Module *self, Tensor *x)
{
    TensorAvgPool2dArgs args = ((AvgPool2d *)self)->args;
    args.input = x;
    return tensor_avg_pool2d_args(args);
}

static bool no_kernel(const char *function, const NNPool2dArgs *a)
{
    if (a->kernel_size > 0 || (a->kernel_hw[0] > 0 && a->kernel_hw[1] > 0)) return false;
    tensor_fail(TENSOR_EVALUE, function, "a kernel of size %lld: want 1 or more", (long long)a->kernel_size);
    return true;
}

Module *nn_max_pool2d_args(NNPool2dArgs a)
{
    if (no_kernel("nn_max_pool2d", &a)) return NULL;
    MaxPool2d *p = nn_new(MaxPool2d, "MaxPool2d", max_pool_forward);
    p->args = (TensorMaxPool2dArgs){ .kernel_size = a.kernel_size,
                                     .stride = a.stride,
                                     .padding = a.padding,
                                     .dilation = a.dilation,
                                     .ceil_mode = a.ceil_mode,
                                     .kernel_hw = { a.kernel_hw[0], a.kernel_hw[1] },
                                     .stride_hw = { a.stride_hw[0], a.stride_hw[1] },
                                     .padding_hw = { a.padding_hw[0], a.padding_hw[1] },
                                     .dilation_hw = { a.dilation_hw[0], a.dilation_hw[1] } };
    return nn_done(p);
}

Module *nn_avg_pool2d_args(NNPool2dArgs a)
{
    if (no_kernel("nn_avg_pool2d", &a)) return NULL;
    AvgPool2d *p = nn_new(AvgPool2d, "AvgPool2d", avg_pool_forward);
    p->args = (TensorAvgPool2dArgs){ .kernel_size = a.kernel_size,
                                     .stride = a.stride,
                                     .padding = a.padding,
                                     .ceil_mode = a.ceil_mode,
                                     .count_include_pad = a.count_include_pad,
                                     .divisor_override = a.divisor_override,
                                     .kernel_hw = { a.kernel_hw[0], a.kernel_hw[1] },
                                     .stride_hw = { a.stride_hw[0], a.stride_hw[1] },
                                     .padding_hw = { a.padding_hw[0], a.padding_hw[1] } };
    return nn_done(p);
}

static Tensor *adaptive_forward(Module *self, Tensor *x)
{
    const Adaptive *a = (Adaptive *)self;
    return tensor_adaptive_avg_pool2d(x, a->height, a->width);
}

Module *nn_adaptive_avg_pool2d(int64_t height, int64_t width)
{
    if (height < 0 || width < 0)
        return tensor_fail(TENSOR_EVALUE, "nn_adaptive_avg_pool2d",
                           "to %lld x %lld: want sizes of 0 and more", (long long)height, (long long)width),
               NULL;
    Adaptive *a = nn_new(Adaptive, "AdaptiveAvgPool2d", adaptive_forward);
    a->height = height, a->width = width;
    return nn_done(a);
}
