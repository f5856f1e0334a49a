/* ops_conv.h - convolution, its transpose, padding, patches.  Included by ops.h.
 *
 *     Tensor *c = tensor_conv2d(images, kernels, bias, .padding = 1);                     // kernels [out, in, 3, 3]
 *     Tensor *d = tensor_conv_transpose2d(c, up, NULL, .stride = 2, .padding = 1);        // up [in, out, 4, 4]: twice the size
 *     Tensor *e = tensor_pad(images, DIMS(1, 1, 2, 2), .mode = TENSOR_PAD_REFLECT);       // width by 1 + 1, height by 2 + 2
 *     Tensor *p = tensor_unfold(images, 3);                                               // every 3 x 3 patch as a column
 *
 * Functions with options are macros over a struct: arguments in PyTorch's order, or by name; what is left out has
 * PyTorch's default.  Their functions, which the macros call, end in _args.
 *
 * Operands of different floating dtypes are promoted; f16 and bf16 compute in f32 and round once.  Results are the same bits
 * on any number of threads.  bias may be NULL, and the dimension N of batches may be 0 or missing. */
#ifndef TAPEGRAD_OPS_CONV_H
#define TAPEGRAD_OPS_CONV_H

#include <limits.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolution -------------------------------------------------------------------------------------
 * Sizes are given once for all directions, or as { height, width } by the ..._hw options ({ depth, height, width } by ..._dhw),
 * which win when not all 0. */

enum { TENSOR_VALID = 0, TENSOR_SAME = INT_MIN };   /* .padding = TENSOR_SAME: as much as keeps the size (stride 1 only) */

typedef struct TensorConv1dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, dilation, groups;      /* 1, 0, 1, 1 */
} TensorConv1dArgs;

typedef struct TensorConv2dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, dilation, groups;      /* 1, 0, 1, 1 */
    int64_t stride_hw[2], padding_hw[2], dilation_hw[2];
} TensorConv2dArgs;

typedef struct TensorConv3dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, dilation, groups;      /* 1, 0, 1, 1 */
    int64_t stride_dhw[3], padding_dhw[3], dilation_dhw[3];
} TensorConv3dArgs;

/* tensor_conv2d - cross-correlation with zero padding p, stride s, dilation d:
 *   y[n, o, i, j] = bias[o] + sum_{c, r, t} weight[o, c, r, t] x[n, c', s i + d r - p, s j + d t - p]
 *   c' = c + in/groups * (group of o);  size out = floor((in + 2 p - d (k - 1) - 1) / s) + 1
 *   input [N, in, h, w] (or [in, h, w]), weight [out, in / groups, kh, kw], bias [out] or NULL -> [N, out, oh, ow].
 * An odd TENSOR_SAME padding puts the extra zero at the bottom and right.
 * tensor_conv1d, tensor_conv3d - the same over [N, in, w] and [N, in, d, h, w].
 * ESHAPE: operands do not fit, or the kernel is larger than the padded input.  EVALUE: stride, padding, dilation, groups. */
#define TENSOR_CONV_(function, Args, ...) function((Args){ .stride = 1, .dilation = 1, .groups = 1, .input = __VA_ARGS__ })
#define tensor_conv1d(...) TENSOR_CONV_(tensor_conv1d_args, TensorConv1dArgs, __VA_ARGS__)
#define tensor_conv2d(...) TENSOR_CONV_(tensor_conv2d_args, TensorConv2dArgs, __VA_ARGS__)
#define tensor_conv3d(...) TENSOR_CONV_(tensor_conv3d_args, TensorConv3dArgs, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_conv1d_args(TensorConv1dArgs args);
TAPEGRAD_API Tensor *tensor_conv2d_args(TensorConv2dArgs args);
TAPEGRAD_API Tensor *tensor_conv3d_args(TensorConv3dArgs args);

typedef struct TensorConvTranspose1dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, output_padding, groups, dilation;      /* 1, 0, 0, 1, 1 */
} TensorConvTranspose1dArgs;

typedef struct TensorConvTranspose2dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, output_padding, groups, dilation;
    int64_t stride_hw[2], padding_hw[2], output_padding_hw[2], dilation_hw[2];
} TensorConvTranspose2dArgs;

typedef struct TensorConvTranspose3dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, output_padding, groups, dilation;
    int64_t stride_dhw[3], padding_dhw[3], output_padding_dhw[3], dilation_dhw[3];
} TensorConvTranspose3dArgs;

/* tensor_conv_transpose2d - what conv2d's gradient does to its input: each x[n, c, i, j] adds weight[c, o, r, t] times itself to
 * y[n, o', s i + d r - p, s j + d t - p].
 *   o' = o + out/groups * (group of c);  size out = (in - 1) s - 2 p + d (k - 1) + 1 + output_padding
 *   input [N, in, h, w] (or [in, h, w]), weight [in, out / groups, kh, kw], bias [out] or NULL -> [N, out, oh, ow].
 * padding crops the result; output_padding makes it larger at the bottom and right only, and is smaller than stride or dilation.
 * tensor_conv_transpose1d, tensor_conv_transpose3d - the same over [N, in, w] and [N, in, d, h, w].
 * ESHAPE: operands do not fit, or the result would be empty.  EVALUE: stride, padding, output_padding, groups, dilation. */
#define tensor_conv_transpose1d(...) TENSOR_CONV_(tensor_conv_transpose1d_args, TensorConvTranspose1dArgs, __VA_ARGS__)
#define tensor_conv_transpose2d(...) TENSOR_CONV_(tensor_conv_transpose2d_args, TensorConvTranspose2dArgs, __VA_ARGS__)
#define tensor_conv_transpose3d(...) TENSOR_CONV_(tensor_conv_transpose3d_args, TensorConvTranspose3dArgs, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_conv_transpose1d_args(TensorConvTranspose1dArgs args);
TAPEGRAD_API Tensor *tensor_conv_transpose2d_args(TensorConvTranspose2dArgs args);
TAPEGRAD_API Tensor *tensor_conv_transpose3d_args(TensorConvTranspose3dArgs args);

/* ---- padding ----------------------------------------------------------------------------------------- */

typedef enum TensorPadMode {
    TENSOR_PAD_CONSTANT,                    /* value all round; any rank */
    TENSOR_PAD_REFLECT,                     /* 2 1 [0 1 2 3] 2 1: less than the dimension has */
    TENSOR_PAD_REPLICATE,                   /* 0 0 [0 1 2 3] 3 3 */
    TENSOR_PAD_CIRCULAR                     /* 2 3 [0 1 2 3] 0 1: at most once round */
} TensorPadMode;

typedef struct TensorPadArgs {
    Tensor *input;
    TensorShape pad;
    TensorPadMode mode;
    double value;                           /* constant only; integers truncate it */
} TensorPadArgs;

/* tensor_pad(x, DIMS(1, 2)), tensor_pad(x, DIMS(1, 1, 2, 2), .mode = TENSOR_PAD_REFLECT) - more elements before and after those of
 * the last dimension, then of the one before it, ..., of 8 dimensions at most; negative numbers crop.
 * All dtypes.  In the gradient everything that was copied from an element adds up.
 * The modes but constant pad all dimensions of [N, C, ...] or [C, ...] after the channels, up to three of them.
 * EVALUE: an odd list, or one longer than 2 rank; a value without constant.  ESHAPE: a crop of more than there is; other ranks, or
 * pads that reach too far, for the mode.
 * tensor_constant_pad_nd - the same for the mode constant. */
#define tensor_pad(...) tensor_pad_args((TensorPadArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_pad_args(TensorPadArgs args);
TAPEGRAD_API Tensor *tensor_constant_pad_nd(Tensor *x, TensorShape pad, double value);

/* ---- patches ----------------------------------------------------------------------------------------- */

typedef struct TensorUnfoldArgs {
    Tensor *input;
    int64_t kernel_size, dilation, padding, stride; /* the last three: 1, 0, 1 */
    int64_t kernel_hw[2], dilation_hw[2], padding_hw[2], stride_hw[2];
} TensorUnfoldArgs;

typedef struct TensorFoldArgs {
    Tensor *input;
    TensorShape output_size;                        /* SHAPE(height, width), or one number for both */
    int64_t kernel_size, dilation, padding, stride;
    int64_t kernel_hw[2], dilation_hw[2], padding_hw[2], stride_hw[2];
} TensorFoldArgs;

/* tensor_unfold(x, 3, .padding = 1) - the patches under a window as columns, zeros where it reaches outside (torch.nn.functional.unfold):
 *   [N, C, h, w] -> [N, C kh kw, L], row c kh kw + r kw + t; place l = i ow + j; oh, ow as of conv2d, L = oh ow.
 * tensor_fold(y, SHAPE(h, w), 3, .padding = 1) - the adjoint: each element added where unfold would read it, so that
 * fold(unfold(x)) is x times how often each pixel is covered.   [N, C kh kw, L] -> [N, C, h, w].
 * N may be missing.  conv2d(x, w) is matmul(w as [out, C kh kw], unfold(x, k)).
 * ESHAPE: no room for the window, or not as many rows and places as it makes.  EVALUE: sizes. */
#define tensor_unfold(...) tensor_unfold_args((TensorUnfoldArgs){ .dilation = 1, .stride = 1, .input = __VA_ARGS__ })
#define tensor_fold(...) tensor_fold_args((TensorFoldArgs){ .dilation = 1, .stride = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_unfold_args(TensorUnfoldArgs args);
TAPEGRAD_API Tensor *tensor_fold_args(TensorFoldArgs args);

#ifdef __cplusplus
}
#endif
#endif
