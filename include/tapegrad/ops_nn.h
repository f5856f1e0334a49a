/* ops_nn.h - matrix products, convolution, pooling.  Included by ops.h.
 *
 *     Tensor *h = tensor_relu(tensor_linear(x, w1, b1));                  // w1 [out, in]
 *     Tensor *c = tensor_conv2d(images, kernels, bias, .padding = 1);
 *     Tensor *p = tensor_max_pool2d(tensor_relu(c), 2);
 *
 * Functions with options are macros over a struct: arguments in PyTorch's order, or by name; what is left out has
 * PyTorch's default.  Their functions, which the macros call, end in _args.
 *
 * All take floating operands (EDTYPE otherwise); those of different dtypes are promoted.  f16 and bf16 compute in f32.
 * Results are the same bits on any number of threads.  Optional tensors may be NULL. */
#ifndef TAPEGRAD_OPS_NN_H
#define TAPEGRAD_OPS_NN_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- matrix products ---------------------------------------------------------------------------------
 * tensor_matmul - y = a b.
 *   [m, k] [k, n] -> [m, n]      [k] [k, n] -> [n]      [m, k] [k] -> [m]      [k] [k] -> []
 *   Dimensions before the last two are batches and broadcast: [5, 1, m, k] [3, k, n] -> [5, 3, m, n].
 * k = 0 gives zeros.  Transposed and expanded operands are read where they lie.
 * ESHAPE: inner sizes differ, batches do not broadcast, or an operand has rank 0. */
TAPEGRAD_API Tensor *tensor_matmul(Tensor *a, Tensor *b);

/* The same for exactly these ranks: mm [m, k] [k, n]; bmm [B, m, k] [B, k, n], no broadcasting; mv [m, k] [k]; dot [k] [k].
 * tensor_outer - [m] [n] -> [m, n]. */
TAPEGRAD_API Tensor *tensor_mm(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_bmm(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_mv(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_dot(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_outer(Tensor *a, Tensor *b);

typedef struct TensorAddmmArgs {
    Tensor *input, *a, *b;
    double beta, alpha;                     /* both 1 */
} TensorAddmmArgs;

/* tensor_addmm - beta input + alpha a b for a [m, k], b [k, n]; input broadcasts to [m, n].
 * tensor_baddbmm - the same for a [B, m, k], b [B, k, n].  beta = 0: input is not read, so a NaN in it does no harm. */
#define tensor_addmm(...) tensor_addmm_args((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
#define tensor_baddbmm(...) tensor_baddbmm_args((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_addmm_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_baddbmm_args(TensorAddmmArgs args);

/* tensor_linear - y = x weight^T + bias: x [..., in], weight [out, in], bias [out] or NULL -> [..., out].
 * x may have rank 1. */
TAPEGRAD_API Tensor *tensor_linear(Tensor *x, Tensor *weight, Tensor *bias);

/* ---- convolution -------------------------------------------------------------------------------------
 * Sizes are given once for both directions, or as { height, width } by the ..._hw options, which win when not all 0. */

enum { TENSOR_VALID = 0, TENSOR_SAME = INT_MIN };   /* .padding = TENSOR_SAME: as much as keeps the size (stride 1 only) */

typedef struct TensorConv2dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, dilation, groups;      /* 1, 0, 1, 1 */
    int64_t stride_hw[2], padding_hw[2], dilation_hw[2];
} TensorConv2dArgs;

/* tensor_conv2d - cross-correlation with zero padding p, stride s, dilation d:
 *   y[n, o, i, j] = bias[o] + sum_{c, r, t} weight[o, c, r, t] x[n, c', s i + d r - p, s j + d t - p]
 *   c' = c + in/groups * (group of o);  size out = floor((in + 2 p - d (k - 1) - 1) / s) + 1
 *   input [N, in, h, w] (or [in, h, w]), weight [out, in / groups, kh, kw], bias [out] or NULL -> [N, out, oh, ow].
 * N may be 0.  An odd TENSOR_SAME padding puts the extra zero at the bottom and right.
 * ESHAPE: operands do not fit, or the kernel is larger than the padded input.  EVALUE: stride, padding, dilation, groups. */
#define tensor_conv2d(...) tensor_conv2d_args((TensorConv2dArgs){ .stride = 1, .dilation = 1, .groups = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_conv2d_args(TensorConv2dArgs args);

/* ---- pooling -----------------------------------------------------------------------------------------
 * Over windows of the last two dimensions of [N, C, h, w] or [C, h, w].
 *   size out = floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1;  ceil_mode rounds up, but a window never
 *   begins in the padding after the input.
 * ESHAPE: no room for a window.  EVALUE: sizes; padding above half of the kernel. */

typedef struct TensorPool2dArgs {
    Tensor *input;
    int64_t kernel, stride, padding;        /* stride 0, the default: the kernel's size */
    bool ceil_mode;
    int64_t dilation;                       /* max only; default 1 */
    bool count_include_pad;                 /* avg only, default true: padding counts in the divisor */
    int64_t divisor_override;               /* avg only: divides by this instead, when not 0 */
    int64_t kernel_hw[2], stride_hw[2], padding_hw[2], dilation_hw[2];
    Tensor **indices;                       /* max only: receives the i64 positions (row w + column); may be NULL */
} TensorPool2dArgs;
#define TENSOR_POOL2D_(function, ...) \
    function((TensorPool2dArgs){ .dilation = 1, .count_include_pad = true, .input = __VA_ARGS__ })

/* tensor_max_pool2d - the largest of each window.  Padding counts as -inf; NaN wins; the first in row-major order on ties,
 * which alone gets the gradient.
 * tensor_avg_pool2d - the mean of each window; padding counts as 0. */
#define tensor_max_pool2d(...) TENSOR_POOL2D_(tensor_max_pool2d_args, __VA_ARGS__)
#define tensor_avg_pool2d(...) TENSOR_POOL2D_(tensor_avg_pool2d_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_max_pool2d_args(TensorPool2dArgs args);
TAPEGRAD_API Tensor *tensor_avg_pool2d_args(TensorPool2dArgs args);

/* tensor_adaptive_avg_pool2d - means of height x width windows that cover the input: window i of n over size s is
 * [floor(i s / n), ceil((i + 1) s / n)). */
TAPEGRAD_API Tensor *tensor_adaptive_avg_pool2d(Tensor *x, int64_t height, int64_t width);

#ifdef __cplusplus
}
#endif
#endif
