/* ops_nn.h - matrix products, convolution, normalisation, dropout.  Included by ops.h.
 *
 *     Tensor *h = tensor_relu(tensor_linear(x, w1, b1));                  // w1 [out, in]
 *     Tensor *c = tensor_conv2d(images, kernels, bias, .padding = 1);
 *     Tensor *y = tensor_layer_norm(h, SHAPE(64), weight, bias);
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

/* ---- normalisation ----------------------------------------------------------------------------------- */

typedef struct TensorLayerNormArgs {
    Tensor *input;
    TensorShape normalized_shape;
    Tensor *weight, *bias;                  /* of normalized_shape, or NULL, each by itself */
    double eps;                             /* 1e-5 */
} TensorLayerNormArgs;

/* tensor_layer_norm - y = (x - mean) / sqrt(var + eps) * weight + bias, mean and (biased) var over the last dimensions,
 * which must be normalized_shape (ESHAPE). */
#define tensor_layer_norm(...) tensor_layer_norm_args((TensorLayerNormArgs){ .eps = 1e-5, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_layer_norm_args(TensorLayerNormArgs args);

typedef struct TensorBatchNormArgs {
    Tensor *input, *running_mean, *running_var, *weight, *bias;
    bool training;
    double momentum, eps;                   /* 0.1, 1e-5 */
} TensorBatchNormArgs;

/* tensor_batch_norm - the same for each channel (dimension 1 of [N, C, ...], rank 2 to 5), with statistics over all else.
 *   training: of the batch; running = (1 - momentum) running + momentum batch, in place, outside the graph, where
 *     the batch's variance is the unbiased one, n / (n - 1) var.  running_mean and running_var may both be NULL.
 *   otherwise: running_mean and running_var.
 * Per-channel tensors are [C]; weight and bias may be NULL.  ESHAPE: one value per channel in training has no variance. */
#define tensor_batch_norm(...) \
    tensor_batch_norm_args((TensorBatchNormArgs){ .momentum = 0.1, .eps = 1e-5, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_batch_norm_args(TensorBatchNormArgs args);

/* ---- dropout -----------------------------------------------------------------------------------------
 * tensor_dropout - training: each element is 0 with probability p, else divided by 1 - p.  The gradient passes the same mask.
 * p = 1 gives zeros.  Dropped elements are 0 whatever they were.  Not training, or p = 0: x itself, and no number is drawn.
 * tensor_dropout2d - whole channels: one draw for each index of the first two dimensions.
 * EVALUE: p outside [0, 1].  Masks come from the counter-based generator (random.h). */
TAPEGRAD_API Tensor *tensor_dropout(Tensor *x, double p, bool training);
TAPEGRAD_API Tensor *tensor_dropout2d(Tensor *x, double p, bool training);

#ifdef __cplusplus
}
#endif
#endif
