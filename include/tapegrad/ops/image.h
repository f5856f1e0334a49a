/* ops/image.h - convolution, its transpose, padding, patches; pooling, interpolation, sampling at a grid.
 * Included by ops.h.
 *
 *     Tensor *c = tensor_conv2d(images, kernels, bias, .padding = 1);                     // kernels [out,
 * in, 3, 3] Tensor *d = tensor_conv_transpose2d(c, up, NULL, .stride = 2, .padding = 1);        // up [in,
 * out, 4, 4]: twice the size Tensor *e = tensor_pad(images, DIMS(1, 1, 2, 2), .mode = TENSOR_PAD_REFLECT); //
 * width by 1 + 1, height by 2 + 2 Tensor *p = tensor_unfold(images, 3); // every 3 x 3 patch as a column
 *
 * Functions with options are macros over a struct: arguments in PyTorch's order, or by name; what is left out
 * has PyTorch's default.  Their functions, which the macros call, end in _args.
 *
 * Operands of different floating dtypes are promoted; f16 and bf16 compute in f32 and round once.  Results
 * are the same bits on any number of threads.  bias may be NULL, and the dimension N of batches may be 0 or
 * missing.
 *
 *     Tensor *p = tensor_max_pool2d(x, 2);                                // x [N, C, h, w] -> [N, C, h / 2,
 * w / 2] Tensor *m = tensor_adaptive_avg_pool2d(x, 1, 1); Tensor *u = tensor_interpolate(x, .scale_factor =
 * 2, .mode = TENSOR_BILINEAR); Tensor *g = tensor_affine_grid(theta, SHAPE(N, C, 32, 32), false);  // theta
 * [N, 2, 3] Tensor *y = tensor_grid_sample(x, g, .padding_mode = TENSOR_GRID_BORDER);
 *
 * Pooling, interpolation and sampling take floating operands (EDTYPE otherwise). */
#ifndef TAPEGRAD_OPS_IMAGE_H
#define TAPEGRAD_OPS_IMAGE_H

#include <limits.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolution --------------------------------------------------------------------------------
 * Sizes are given once for all directions, or as { height, width } by the ..._hw options ({ depth, height,
 * width } by ..._dhw), which win when not all 0. */

enum {
    TENSOR_VALID = 0,
    TENSOR_SAME = INT_MIN
}; /* .padding = TENSOR_SAME: as much as keeps the size (stride 1 only) */

typedef struct TensorConv1dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, dilation, groups; /* 1, 0, 1, 1 */
} TensorConv1dArgs;

typedef struct TensorConv2dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, dilation, groups; /* 1, 0, 1, 1 */
    int64_t stride_hw[2], padding_hw[2], dilation_hw[2];
} TensorConv2dArgs;

typedef struct TensorConv3dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, dilation, groups; /* 1, 0, 1, 1 */
    int64_t stride_dhw[3], padding_dhw[3], dilation_dhw[3];
} TensorConv3dArgs;

/* tensor_conv2d - cross-correlation with zero padding p, stride s, dilation d:
 *   y[n, o, i, j] = bias[o] + sum_{c, r, t} weight[o, c, r, t] x[n, c', s i + d r - p, s j + d t - p]
 *   c' = c + in/groups * (group of o);  size out = floor((in + 2 p - d (k - 1) - 1) / s) + 1
 *   input [N, in, h, w] (or [in, h, w]), weight [out, in / groups, kh, kw], bias [out] or NULL -> [N, out,
 * oh, ow]. An odd TENSOR_SAME padding puts the extra zero at the bottom and right. tensor_conv1d,
 * tensor_conv3d - the same over [N, in, w] and [N, in, d, h, w]. ESHAPE: operands do not fit, or the kernel
 * is larger than the padded input.  EVALUE: stride, padding, dilation, groups. */
#define TENSOR_CONV_(function, Args, ...) \
    function((Args){ .stride = 1, .dilation = 1, .groups = 1, .input = __VA_ARGS__ })
#define tensor_conv1d(...) TENSOR_CONV_(tensor_conv1d_args, TensorConv1dArgs, __VA_ARGS__)
#define tensor_conv2d(...) TENSOR_CONV_(tensor_conv2d_args, TensorConv2dArgs, __VA_ARGS__)
#define tensor_conv3d(...) TENSOR_CONV_(tensor_conv3d_args, TensorConv3dArgs, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_conv1d_args(TensorConv1dArgs args);
TAPEGRAD_API Tensor *tensor_conv2d_args(TensorConv2dArgs args);
TAPEGRAD_API Tensor *tensor_conv3d_args(TensorConv3dArgs args);

typedef struct TensorConvTranspose1dArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, output_padding, groups, dilation; /* 1, 0, 0, 1, 1 */
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

/* tensor_conv_transpose2d - what conv2d's gradient does to its input: each x[n, c, i, j] adds weight[c, o, r,
 * t] times itself to y[n, o', s i + d r - p, s j + d t - p]. o' = o + out/groups * (group of c);  size out =
 * (in - 1) s - 2 p + d (k - 1) + 1 + output_padding input [N, in, h, w] (or [in, h, w]), weight [in, out /
 * groups, kh, kw], bias [out] or NULL -> [N, out, oh, ow]. padding crops the result; output_padding makes it
 * larger at the bottom and right only, and is smaller than stride or dilation. tensor_conv_transpose1d,
 * tensor_conv_transpose3d - the same over [N, in, w] and [N, in, d, h, w]. ESHAPE: operands do not fit, or
 * the result would be empty.  EVALUE: stride, padding, output_padding, groups, dilation. */
#define tensor_conv_transpose1d(...) \
    TENSOR_CONV_(tensor_conv_transpose1d_args, TensorConvTranspose1dArgs, __VA_ARGS__)
#define tensor_conv_transpose2d(...) \
    TENSOR_CONV_(tensor_conv_transpose2d_args, TensorConvTranspose2dArgs, __VA_ARGS__)
#define tensor_conv_transpose3d(...) \
    TENSOR_CONV_(tensor_conv_transpose3d_args, TensorConvTranspose3dArgs, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_conv_transpose1d_args(TensorConvTranspose1dArgs args);
TAPEGRAD_API Tensor *tensor_conv_transpose2d_args(TensorConvTranspose2dArgs args);
TAPEGRAD_API Tensor *tensor_conv_transpose3d_args(TensorConvTranspose3dArgs args);

/* ---- padding --------------------------------------------------------------------------------- */

typedef enum TensorPadMode {
    TENSOR_PAD_CONSTANT,  /* value all round; any rank */
    TENSOR_PAD_REFLECT,   /* 2 1 [0 1 2 3] 2 1: less than the dimension has */
    TENSOR_PAD_REPLICATE, /* 0 0 [0 1 2 3] 3 3 */
    TENSOR_PAD_CIRCULAR   /* 2 3 [0 1 2 3] 0 1: at most once round */
} TensorPadMode;

typedef struct TensorPadArgs {
    Tensor *input;
    TensorShape pad;
    TensorPadMode mode;
    double value; /* constant only; integers truncate it */
} TensorPadArgs;

/* tensor_pad(x, DIMS(1, 2)), tensor_pad(x, DIMS(1, 1, 2, 2), .mode = TENSOR_PAD_REFLECT) - more elements
 * before and after those of the last dimension, then of the one before it, ..., of 8 dimensions at most;
 * negative numbers crop. All dtypes.  In the gradient everything that was copied from an element adds up. The
 * modes but constant pad all dimensions of [N, C, ...] or [C, ...] after the channels, up to three of them.
 * EVALUE: an odd list, or one longer than 2 rank; a value without constant.  ESHAPE: a crop of more than
 * there is; other ranks, or pads that reach too far, for the mode. tensor_constant_pad_nd - the same for the
 * mode constant. */
#define tensor_pad(...) tensor_pad_args((TensorPadArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_pad_args(TensorPadArgs args);
TAPEGRAD_API Tensor *tensor_constant_pad_nd(Tensor *x, TensorShape pad, double value);

/* ---- patches --------------------------------------------------------------------------------- */

typedef struct TensorUnfoldArgs {
    Tensor *input;
    int64_t kernel_size, dilation, padding, stride; /* the last three: 1, 0, 1 */
    int64_t kernel_hw[2], dilation_hw[2], padding_hw[2], stride_hw[2];
} TensorUnfoldArgs;

typedef struct TensorFoldArgs {
    Tensor *input;
    TensorShape output_size; /* SHAPE(height, width), or one number for both */
    int64_t kernel_size, dilation, padding, stride;
    int64_t kernel_hw[2], dilation_hw[2], padding_hw[2], stride_hw[2];
} TensorFoldArgs;

/* tensor_unfold(x, 3, .padding = 1) - the patches under a window as columns, zeros where it reaches outside
 * (torch.nn.functional.unfold): [N, C, h, w] -> [N, C kh kw, L], row c kh kw + r kw + t; place l = i ow + j;
 * oh, ow as of conv2d, L = oh ow. tensor_fold(y, SHAPE(h, w), 3, .padding = 1) - the adjoint: each element
 * added where unfold would read it, so that fold(unfold(x)) is x times how often each pixel is covered.   [N,
 * C kh kw, L] -> [N, C, h, w]. N may be missing.  conv2d(x, w) is matmul(w as [out, C kh kw], unfold(x, k)).
 * ESHAPE: no room for the window, or not as many rows and places as it makes.  EVALUE: sizes. */
#define tensor_unfold(...) \
    tensor_unfold_args((TensorUnfoldArgs){ .dilation = 1, .stride = 1, .input = __VA_ARGS__ })
#define tensor_fold(...) \
    tensor_fold_args((TensorFoldArgs){ .dilation = 1, .stride = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_unfold_args(TensorUnfoldArgs args);
TAPEGRAD_API Tensor *tensor_fold_args(TensorFoldArgs args);

/* ---- pooling ------------------------------------------------------------------------------------
 * Over windows of the last one, two or three dimensions of [N, C, ...] or [C, ...].
 *   size out = floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1;  ceil_mode rounds up, but a
 * window never begins in the padding after the input. Sizes are given once for all directions, or for each by
 * the options ..._hw and ..._dhw, which win when not all 0. ESHAPE: no room for a window.  EVALUE: sizes;
 * padding above half of the kernel. */

typedef struct TensorMaxPool1dArgs {
    Tensor *input;
    int64_t kernel_size, stride, padding; /* stride 0, the default: the kernel's size */
    int64_t dilation;                     /* 1 */
    bool ceil_mode;
    Tensor **indices; /* receives the i64 positions; may be NULL */
} TensorMaxPool1dArgs;

typedef struct TensorMaxPool2dArgs {
    Tensor *input;
    int64_t kernel_size, stride, padding;
    int64_t dilation;
    bool ceil_mode;
    Tensor **indices; /* positions: row w + column */
    int64_t kernel_hw[2], stride_hw[2], padding_hw[2], dilation_hw[2];
} TensorMaxPool2dArgs;

typedef struct TensorMaxPool3dArgs {
    Tensor *input;
    int64_t kernel_size, stride, padding;
    int64_t dilation;
    bool ceil_mode;
    Tensor **indices; /* positions: (depth h + row) w + column */
    int64_t kernel_dhw[3], stride_dhw[3], padding_dhw[3], dilation_dhw[3];
} TensorMaxPool3dArgs;

typedef struct TensorAvgPool1dArgs {
    Tensor *input;
    int64_t kernel_size, stride, padding; /* stride 0, the default: the kernel's size */
    bool ceil_mode;
    bool count_include_pad; /* true: padding counts in the divisor */
} TensorAvgPool1dArgs;

typedef struct TensorAvgPool2dArgs {
    Tensor *input;
    int64_t kernel_size, stride, padding;
    bool ceil_mode;
    bool count_include_pad;
    int64_t divisor_override; /* divides by this instead, when not 0 */
    int64_t kernel_hw[2], stride_hw[2], padding_hw[2];
} TensorAvgPool2dArgs;

typedef struct TensorAvgPool3dArgs {
    Tensor *input;
    int64_t kernel_size, stride, padding;
    bool ceil_mode;
    bool count_include_pad;
    int64_t divisor_override;
    int64_t kernel_dhw[3], stride_dhw[3], padding_dhw[3];
} TensorAvgPool3dArgs;

/* tensor_max_pool2d - the largest of each window.  Padding counts as -inf; NaN wins; the first in row-major
 * order on ties, which alone gets the gradient. tensor_avg_pool2d - the mean of each window; padding counts
 * as 0. */
#define tensor_max_pool1d(...) \
    tensor_max_pool1d_args((TensorMaxPool1dArgs){ .dilation = 1, .input = __VA_ARGS__ })
#define tensor_max_pool2d(...) \
    tensor_max_pool2d_args((TensorMaxPool2dArgs){ .dilation = 1, .input = __VA_ARGS__ })
#define tensor_max_pool3d(...) \
    tensor_max_pool3d_args((TensorMaxPool3dArgs){ .dilation = 1, .input = __VA_ARGS__ })
#define tensor_avg_pool1d(...) \
    tensor_avg_pool1d_args((TensorAvgPool1dArgs){ .count_include_pad = true, .input = __VA_ARGS__ })
#define tensor_avg_pool2d(...) \
    tensor_avg_pool2d_args((TensorAvgPool2dArgs){ .count_include_pad = true, .input = __VA_ARGS__ })
#define tensor_avg_pool3d(...) \
    tensor_avg_pool3d_args((TensorAvgPool3dArgs){ .count_include_pad = true, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_max_pool1d_args(TensorMaxPool1dArgs args);
TAPEGRAD_API Tensor *tensor_max_pool2d_args(TensorMaxPool2dArgs args);
TAPEGRAD_API Tensor *tensor_max_pool3d_args(TensorMaxPool3dArgs args);
TAPEGRAD_API Tensor *tensor_avg_pool1d_args(TensorAvgPool1dArgs args);
TAPEGRAD_API Tensor *tensor_avg_pool2d_args(TensorAvgPool2dArgs args);
TAPEGRAD_API Tensor *tensor_avg_pool3d_args(TensorAvgPool3dArgs args);

/* tensor_adaptive_avg_pool2d - means of height x width windows that cover the input: window i of n over size
 * s is [floor(i s / n), ceil((i + 1) s / n)). tensor_adaptive_max_pool2d - the largest of them; indices
 * receives the positions, as above, and may be NULL. */
TAPEGRAD_API Tensor *tensor_adaptive_avg_pool1d(Tensor *x, int64_t length);
TAPEGRAD_API Tensor *tensor_adaptive_avg_pool2d(Tensor *x, int64_t height, int64_t width);
TAPEGRAD_API Tensor *tensor_adaptive_avg_pool3d(Tensor *x, int64_t depth, int64_t height, int64_t width);
TAPEGRAD_API Tensor *tensor_adaptive_max_pool1d(Tensor *x, int64_t length, Tensor **indices);
TAPEGRAD_API Tensor *tensor_adaptive_max_pool2d(Tensor *x, int64_t height, int64_t width, Tensor **indices);
TAPEGRAD_API Tensor *tensor_adaptive_max_pool3d(Tensor *x, int64_t depth, int64_t height, int64_t width,
                                                Tensor **indices);

typedef struct TensorLpPoolArgs {
    Tensor *input;
    double norm_type;
    int64_t kernel_size, stride; /* stride 0, the default: the kernel's size */
    bool ceil_mode;
    int64_t kernel_hw[2], stride_hw[2]; /* 2d only */
} TensorLpPoolArgs;

/* tensor_lp_pool2d - (sum of x^p over each window)^(1/p), p = norm_type (not 0: EVALUE); inf and -inf give
 * the largest and smallest |x|. A negative sum gives what a power of a negative number gives.  The gradient
 * where the sum is 0 is NaN, as in PyTorch. */
#define tensor_lp_pool1d(...) tensor_lp_pool1d_args((TensorLpPoolArgs){ .input = __VA_ARGS__ })
#define tensor_lp_pool2d(...) tensor_lp_pool2d_args((TensorLpPoolArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_lp_pool1d_args(TensorLpPoolArgs args);
TAPEGRAD_API Tensor *tensor_lp_pool2d_args(TensorLpPoolArgs args);

typedef struct TensorUnpoolArgs {
    Tensor *input, *indices;
    int64_t kernel_size, stride, padding; /* stride 0, the default: the kernel's size */
    TensorShape output_size; /* of the pooled dimensions; empty: (in - 1) stride - 2 padding + kernel */
    int64_t kernel_dims[3], stride_dims[3],
        padding_dims[3]; /* for each dimension, in order; they win when not all 0 */
} TensorUnpoolArgs;

/* tensor_max_unpool2d(y, indices, 2) - zeros, but input at the positions that a max pool gave; the last one
 * wins where a position is named twice.  Several sizes lead to one pooled size: output_size says which is
 * wanted. ESHAPE: input and indices differ, or output_size is a stride or more from the usual one.  EINDEX: a
 * position outside. */
#define tensor_max_unpool1d(...) tensor_max_unpool1d_args((TensorUnpoolArgs){ .input = __VA_ARGS__ })
#define tensor_max_unpool2d(...) tensor_max_unpool2d_args((TensorUnpoolArgs){ .input = __VA_ARGS__ })
#define tensor_max_unpool3d(...) tensor_max_unpool3d_args((TensorUnpoolArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_max_unpool1d_args(TensorUnpoolArgs args);
TAPEGRAD_API Tensor *tensor_max_unpool2d_args(TensorUnpoolArgs args);
TAPEGRAD_API Tensor *tensor_max_unpool3d_args(TensorUnpoolArgs args);

/* ---- images of another size ------------------------------------------------------------------ */

typedef enum TensorInterpolation {
    TENSOR_NEAREST,
    TENSOR_NEAREST_EXACT,
    TENSOR_LINEAR,
    TENSOR_BILINEAR,
    TENSOR_TRILINEAR,
    TENSOR_BICUBIC,
    TENSOR_AREA
} TensorInterpolation;

typedef struct TensorInterpolateArgs {
    Tensor *input;
    TensorShape size;         /* of the last dimensions, or one number for all; either this ... */
    double scale_factor;      /* ... or this, for all of them: size out = floor(in scale) ... */
    TensorInterpolation mode; /* default nearest */
    bool align_corners, recompute_scale_factor, antialias;
    double scale_factors[3]; /* ... or these, for each of them */
} TensorInterpolateArgs;

/* tensor_interpolate(x, SHAPE(64, 64), .mode = TENSOR_BILINEAR) - x [N, C, ...] at another size (upsample:
 * the same). nearest, nearest-exact, area (means as adaptive_avg_pool's): one to three dimensions; linear:
 * one, bilinear, bicubic: two, trilinear: three. Element i lies at step (i + 1/2) - 1/2 of x, step = in /
 * out, or 1 / scale when a scale is given that is not recomputed from the sizes; with align_corners at step
 * i, step = (in - 1) / (out - 1).  nearest takes element floor(step i), nearest-exact floor(step (i + 1/2)),
 * with step in f32.  bicubic: Keys' a = -0.75.  antialias (bilinear, bicubic): a filter as wide as what an
 * element covers, a = -0.5; a dimension whose size does not change stays as it is.
 * Unlike PyTorch: the gradient is the transpose of the forward in every case, where PyTorch's nearest takes
 * other shortcuts in its backward.  integers are refused. EVALUE: both or none of size and scale;
 * align_corners or antialias with a mode that has none.  ESHAPE: rank; a size of 0. */
#define tensor_interpolate(...) tensor_interpolate_args((TensorInterpolateArgs){ .input = __VA_ARGS__ })
#define tensor_upsample(...) tensor_interpolate(__VA_ARGS__)
TAPEGRAD_API Tensor *tensor_interpolate_args(TensorInterpolateArgs args);

/* ---- sampling at a grid ---------------------------------------------------------------------- */

typedef enum TensorGridPadding {
    TENSOR_GRID_ZEROS,
    TENSOR_GRID_BORDER,
    TENSOR_GRID_REFLECTION
} TensorGridPadding;

typedef struct TensorGridSampleArgs {
    Tensor *input, *grid;
    TensorInterpolation mode;       /* bilinear (the default), nearest, bicubic */
    TensorGridPadding padding_mode; /* what lies outside */
    bool align_corners; /* are -1 and 1 the centers of the first and last pixel, or their outer edges? */
} TensorGridSampleArgs;

/* tensor_grid_sample - y[n, c, i, j] = input[n, c] at the position grid[n, i, j] = (x, y), in [-1, 1].
 *   input [N, C, h, w], grid [N, oh, ow, 2] -> [N, C, oh, ow];  input [N, C, d, h, w], grid [N, od, oh, ow,
 * 3], (x, y, z). Both have gradients; where the derivative by the grid jumps, at the centers of pixels, it is
 * that of the side behind; nearest has none.  A NaN in the grid counts as -1.  ESHAPE: shapes.  EVALUE:
 * modes; bicubic for five dimensions. tensor_affine_grid - grid[n, i, j] = theta[n] (x, y, 1) for the center
 * (x, y) of every pixel of an image of that size [N, C, h, w]; theta [N, 2, 3].  The same for [N, C, d, h, w]
 * and theta [N, 3, 4]. */
#define tensor_grid_sample(...) \
    tensor_grid_sample_args((TensorGridSampleArgs){ .mode = TENSOR_BILINEAR, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_grid_sample_args(TensorGridSampleArgs args);
TAPEGRAD_API Tensor *tensor_affine_grid(Tensor *theta, TensorShape size, bool align_corners);

#ifdef __cplusplus
}
#endif
#endif
