/* ops/image.h - convolution and its transpose, padding, patches, pooling, interpolation, grid sampling.
 * Included by ops.h.
 *
 *     Tensor *c = tensor_conv2d(images, kernels, bias, .padding = 1);            // kernels [out, in, 3, 3]
 *     Tensor *d = tensor_conv_transpose2d(c, up, NULL, .stride = 2, .padding = 1);
 *                                                              // up [in, out, 4, 4]: twice the size
 *     Tensor *e = tensor_pad(images, DIMS(1, 1, 2, 2), .mode = TENSOR_PAD_REFLECT);
 *     Tensor *f = tensor_unfold(images, 3);                    // 3 x 3 patches as columns
 *     Tensor *p = tensor_max_pool2d(images, 2);                // half the size
 *     Tensor *m = tensor_adaptive_avg_pool2d(images, SHAPE(1));            // [N, C, 1, 1]
 *     Tensor *u = tensor_interpolate(images, .scale_factor = 2, .mode = TENSOR_BILINEAR);
 *     Tensor *g = tensor_affine_grid(theta, SHAPE(N, C, 32, 32), false);   // theta [N, 2, 3]
 *     Tensor *s = tensor_grid_sample(images, g, .padding_mode = TENSOR_GRID_BORDER);
 *
 * A window's option is one number for all directions; its plural has one for each, in the order of the
 * dimensions: .stride = 2, or .strides = { 2, 1 } for height and width.  The plural takes precedence unless
 * it is all 0.  An output size is a SHAPE of one number for all directions, or one for each.
 *
 * Functions with options are macros over a struct: arguments in PyTorch's order, or by name, with PyTorch's
 * defaults.  The functions behind the macros end in _args.
 *
 * Floating operands of one call have one dtype (EDTYPE).  f16 and bf16 compute in f32 and round once.
 * Functions that accept integers say so; these wrap.  Results have the same bits with any number of threads.
 * A bias may be NULL; the batch dimension N may be 0 or missing.  On a device with kernels for it,
 * convolutions and pools of images with channels last in memory (a permuted [N, H, W, C]) read them in place,
 * and results and gradients have that layout too; the CPU makes a dense copy. */
#ifndef TAPEGRAD_OPS_IMAGE_H
#define TAPEGRAD_OPS_IMAGE_H

#include <limits.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolution ----------------------------------------------------------------------------- */

enum {
    TENSOR_VALID = 0,
    TENSOR_SAME = INT_MIN, /* .padding = TENSOR_SAME: output size = input size; stride 1 only */
    TENSOR_KEEP = INT_MIN  /* in an output_size of an adaptive pool: the input's own size (PyTorch's None) */
};

typedef struct TensorConvArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, dilation, groups;
    int64_t strides[3], paddings[3], dilations[3];
    TensorFromDefaults from_defaults;
} TensorConvArgs;
#define TENSOR_CONV_DEFAULTS .stride = 1, .padding = 0, .dilation = 1, .groups = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorConvArgs tensor_conv_defaults;

/* tensor_conv2d - cross-correlation with zero padding p, stride s, dilation d:
 *
 *     y[n, o, i, j] = bias[o] + sum_{c, r, t} weight[o, c, r, t] x[n, c', s i + d r - p, s j + d t - p]
 *     c' = c + in / groups * (group of o)
 *     size out = floor((in + 2 p - d (k - 1) - 1) / s) + 1
 *
 *   input    [N, in, h, w] or [in, h, w]
 *   weight   [out, in / groups, kh, kw]
 *   bias     [out] or NULL
 *   result   [N, out, oh, ow]
 *
 * An odd TENSOR_SAME padding puts the extra zero at the bottom and right.  Accepts i64, i32 and u8 too.
 * tensor_conv1d, tensor_conv3d - the same over [N, in, w] and [N, in, d, h, w].
 * EDTYPE: operands of different dtypes, or bool.  ESHAPE: operands do not fit, or the kernel is larger than
 * the padded input.  EVALUE: stride, padding, dilation or groups out of range. */
#define tensor_conv1d(...) \
    TENSOR_CALL_(tensor_conv1d_args, TensorConvArgs, TENSOR_CONV_DEFAULTS, .input = __VA_ARGS__)
#define tensor_conv2d(...) \
    TENSOR_CALL_(tensor_conv2d_args, TensorConvArgs, TENSOR_CONV_DEFAULTS, .input = __VA_ARGS__)
#define tensor_conv3d(...) \
    TENSOR_CALL_(tensor_conv3d_args, TensorConvArgs, TENSOR_CONV_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_conv1d_args(TensorConvArgs args);
TAPEGRAD_API Tensor *tensor_conv2d_args(TensorConvArgs args);
TAPEGRAD_API Tensor *tensor_conv3d_args(TensorConvArgs args);

typedef struct TensorConvTransposeArgs {
    Tensor *input, *weight, *bias;
    int64_t stride, padding, output_padding, groups, dilation;
    int64_t strides[3], paddings[3], output_paddings[3], dilations[3];
    TensorFromDefaults from_defaults;
} TensorConvTransposeArgs;
#define TENSOR_CONV_TRANSPOSE_DEFAULTS \
    .stride = 1, .padding = 0, .output_padding = 0, .groups = 1, .dilation = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorConvTransposeArgs tensor_conv_transpose_defaults;

/* tensor_conv_transpose2d - the gradient of conv2d with respect to its input, as an op: each x[n, c, i, j]
 * adds weight[c, o, r, t] x[n, c, i, j] to y[n, o', s i + d r - p, s j + d t - p].
 *
 *     o' = o + out / groups * (group of c)
 *     size out = (in - 1) s - 2 p + d (k - 1) + 1 + output_padding
 *
 *   input    [N, in, h, w] or [in, h, w]
 *   weight   [in, out / groups, kh, kw]
 *   bias     [out] or NULL
 *   result   [N, out, oh, ow]
 *
 * padding crops the result.  output_padding extends it at the bottom and right, and must be less than stride
 * or dilation.  Accepts i64, i32 and u8 too.
 * tensor_conv_transpose1d, tensor_conv_transpose3d - the same over [N, in, w] and [N, in, d, h, w].
 * EDTYPE: operands of different dtypes, or bool.  ESHAPE: operands do not fit, or the result would be
 * empty.
 * EVALUE: stride, padding, output_padding, groups or dilation out of range. */
#define tensor_conv_transpose1d(...)                                                                    \
    TENSOR_CALL_(tensor_conv_transpose1d_args, TensorConvTransposeArgs, TENSOR_CONV_TRANSPOSE_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_conv_transpose2d(...)                                                                    \
    TENSOR_CALL_(tensor_conv_transpose2d_args, TensorConvTransposeArgs, TENSOR_CONV_TRANSPOSE_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_conv_transpose3d(...)                                                                    \
    TENSOR_CALL_(tensor_conv_transpose3d_args, TensorConvTransposeArgs, TENSOR_CONV_TRANSPOSE_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_conv_transpose1d_args(TensorConvTransposeArgs args);
TAPEGRAD_API Tensor *tensor_conv_transpose2d_args(TensorConvTransposeArgs args);
TAPEGRAD_API Tensor *tensor_conv_transpose3d_args(TensorConvTransposeArgs args);

/* ---- padding --------------------------------------------------------------------------------- */

typedef enum TensorPadMode {
    TENSOR_PAD_CONSTANT,  /* value on all sides; any rank */
    TENSOR_PAD_REFLECT,   /* 2 1 [0 1 2 3] 2 1: pads less than the dimension's size */
    TENSOR_PAD_REPLICATE, /* 0 0 [0 1 2 3] 3 3 */
    TENSOR_PAD_CIRCULAR   /* 2 3 [0 1 2 3] 0 1: pads at most the dimension's size */
} TensorPadMode;

typedef struct TensorPadArgs {
    Tensor *input;
    TensorShape pad;
    TensorByName by_name;
    TensorPadMode mode;
    double value; /* constant only; integers truncate it */
} TensorPadArgs;
#define TENSOR_PAD_DEFAULTS .mode = TENSOR_PAD_CONSTANT, .value = 0
TAPEGRAD_API extern const TensorPadArgs tensor_pad_defaults;

/* tensor_pad(x, DIMS(1, 2)), tensor_pad(x, DIMS(1, 1, 2, 2), .mode = TENSOR_PAD_REFLECT) - pads x before and
 * after the last dimension, then the one to its left, and so on, at most 8 dimensions.
 * Negative numbers crop.  All dtypes.  Always a copy.  An element's gradient sums over its copies.  Modes
 * other than constant pad all dimensions of [N, C, ...] or [C, ...] after the channels, at most three.
 * EVALUE: pad has an odd length or more than 2 rank numbers; a value with a mode other than constant.
 * ESHAPE: a crop larger than the dimension; for the mode, another rank or too large a pad.
 * tensor_constant_pad_nd - the same with the mode constant. */
#define tensor_pad(...) \
    TENSOR_CALL_(tensor_pad_args, TensorPadArgs, TENSOR_PAD_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_pad_args(TensorPadArgs args);
TAPEGRAD_API Tensor *tensor_constant_pad_nd(Tensor *x, TensorShape pad, double value);

/* ---- patches --------------------------------------------------------------------------------- */

typedef struct TensorUnfoldArgs {
    Tensor *input;
    int64_t kernel_size, dilation, padding, stride;
    int64_t kernel_sizes[3], dilations[3], paddings[3], strides[3]; /* of height and width */
    TensorFromDefaults from_defaults;
} TensorUnfoldArgs;
#define TENSOR_UNFOLD_DEFAULTS .dilation = 1, .padding = 0, .stride = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorUnfoldArgs tensor_unfold_defaults;

typedef struct TensorFoldArgs {
    Tensor *input;
    TensorShape output_size; /* SHAPE(height, width), or one number for both */
    int64_t kernel_size, dilation, padding, stride;
    int64_t kernel_sizes[3], dilations[3], paddings[3], strides[3]; /* of height and width */
    TensorFromDefaults from_defaults;
} TensorFoldArgs;
#define TENSOR_FOLD_DEFAULTS TENSOR_UNFOLD_DEFAULTS
TAPEGRAD_API extern const TensorFoldArgs tensor_fold_defaults;

/* tensor_unfold(x, 3, .padding = 1) - the patches under a window as columns, zeros outside x
 * (torch.nn.functional.unfold): [N, C, h, w] -> [N, C kh kw, L], L = oh ow as in conv2d.  Row c kh
 * kw + r kw + t of column i ow + j is x[c, s i + d r - p, s j + d t - p].  conv2d(x, w) is matmul(w as
 * [out, C kh kw], unfold(x, k)).
 * tensor_fold(y, SHAPE(h, w), 3, .padding = 1) - the adjoint of unfold, [N, C kh kw, L] -> [N, C, h, w]: adds
 * each element where unfold reads it.  fold(unfold(x)) is x times the number of windows over each pixel.
 * N may be missing.  EDTYPE: not floating.  ESHAPE: the window does not fit, or y's rows and columns are not
 * those of unfold.  EVALUE: a size out of range. */
#define tensor_unfold(...) \
    TENSOR_CALL_(tensor_unfold_args, TensorUnfoldArgs, TENSOR_UNFOLD_DEFAULTS, .input = __VA_ARGS__)
#define tensor_fold(...) \
    TENSOR_CALL_(tensor_fold_args, TensorFoldArgs, TENSOR_FOLD_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_unfold_args(TensorUnfoldArgs args);
TAPEGRAD_API Tensor *tensor_fold_args(TensorFoldArgs args);

/* ---- pooling ------------------------------------------------------------------------------------
 * Pools reduce windows of the last one, two or three dimensions of [N, C, ...] or [C, ...]:
 *
 *     size out = floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1
 *
 * ceil_mode rounds up, but no window begins in the padding after the input.  Stride 0 means the kernel's
 * size.
 * EDTYPE: not floating, unless stated otherwise.  ESHAPE: a window does not fit.  EVALUE: a size out of
 * range; a padding above half the kernel. */

typedef struct TensorMaxPoolArgs {
    Tensor *input;
    int64_t kernel_size, stride, padding, dilation;
    bool ceil_mode;
    Tensor **indices; /* receives the i64 positions of the maxima; may be NULL */
    int64_t kernel_sizes[3], strides[3], paddings[3], dilations[3];
    TensorFromDefaults from_defaults;
} TensorMaxPoolArgs;
#define TENSOR_MAX_POOL_DEFAULTS \
    .stride = 0, .padding = 0, .dilation = 1, .ceil_mode = false, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorMaxPoolArgs tensor_max_pool_defaults;

/* tensor_max_pool2d - the maximum of each window.  Padding counts as the dtype's smallest value; a NaN is the
 * maximum; of equal maxima the first in row-major order gets the gradient.  A position is row w + column, in
 * three dimensions (depth h + row) w + column.  Accepts i64, i32 and u8 too.  ESHAPE: planes of 2^31 elements
 * or more, padding included. */
#define tensor_max_pool1d(...) \
    TENSOR_CALL_(tensor_max_pool1d_args, TensorMaxPoolArgs, TENSOR_MAX_POOL_DEFAULTS, .input = __VA_ARGS__)
#define tensor_max_pool2d(...) \
    TENSOR_CALL_(tensor_max_pool2d_args, TensorMaxPoolArgs, TENSOR_MAX_POOL_DEFAULTS, .input = __VA_ARGS__)
#define tensor_max_pool3d(...) \
    TENSOR_CALL_(tensor_max_pool3d_args, TensorMaxPoolArgs, TENSOR_MAX_POOL_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_max_pool1d_args(TensorMaxPoolArgs args);
TAPEGRAD_API Tensor *tensor_max_pool2d_args(TensorMaxPoolArgs args);
TAPEGRAD_API Tensor *tensor_max_pool3d_args(TensorMaxPoolArgs args);

typedef struct TensorAvgPoolArgs {
    Tensor *input;
    int64_t kernel_size, stride, padding;
    bool ceil_mode;
    bool count_include_pad;   /* padding counts in the divisor */
    int64_t divisor_override; /* divides by this instead, unless it is 0 */
    int64_t kernel_sizes[3], strides[3], paddings[3];
    TensorFromDefaults from_defaults;
} TensorAvgPoolArgs;
#define TENSOR_AVG_POOL_DEFAULTS                                                                     \
    .stride = 0, .padding = 0, .ceil_mode = false, .count_include_pad = true, .divisor_override = 0, \
    TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorAvgPoolArgs tensor_avg_pool_defaults;

/* tensor_avg_pool2d - the mean of each window; padding counts as 0.  Accepts i64 too: the mean is rounded
 * towards 0. */
#define tensor_avg_pool1d(...) \
    TENSOR_CALL_(tensor_avg_pool1d_args, TensorAvgPoolArgs, TENSOR_AVG_POOL_DEFAULTS, .input = __VA_ARGS__)
#define tensor_avg_pool2d(...) \
    TENSOR_CALL_(tensor_avg_pool2d_args, TensorAvgPoolArgs, TENSOR_AVG_POOL_DEFAULTS, .input = __VA_ARGS__)
#define tensor_avg_pool3d(...) \
    TENSOR_CALL_(tensor_avg_pool3d_args, TensorAvgPoolArgs, TENSOR_AVG_POOL_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_avg_pool1d_args(TensorAvgPoolArgs args);
TAPEGRAD_API Tensor *tensor_avg_pool2d_args(TensorAvgPoolArgs args);
TAPEGRAD_API Tensor *tensor_avg_pool3d_args(TensorAvgPoolArgs args);

typedef struct TensorAdaptiveMaxPoolArgs {
    Tensor *input;
    TensorShape output_size;
    Tensor **indices; /* as in max_pool2d */
} TensorAdaptiveMaxPoolArgs;
TAPEGRAD_API extern const TensorAdaptiveMaxPoolArgs tensor_adaptive_max_pool_defaults;

/* tensor_adaptive_avg_pool2d(x, SHAPE(7)), (x, SHAPE(2, 4)), (x, SHAPE(TENSOR_KEEP, 1)) - means of
 * windows that cover the input, as many as output_size says: window i of n over size s is
 * [floor(i s / n), ceil((i + 1) s / n)).
 * output_size: one number for all directions, or one for each; TENSOR_KEEP keeps a direction's size.
 * tensor_adaptive_max_pool2d - the maxima of these windows.  EVALUE: a negative size.  ESHAPE: an empty
 * dimension to pool. */
TAPEGRAD_API Tensor *tensor_adaptive_avg_pool1d(Tensor *x, TensorShape output_size);
TAPEGRAD_API Tensor *tensor_adaptive_avg_pool2d(Tensor *x, TensorShape output_size);
TAPEGRAD_API Tensor *tensor_adaptive_avg_pool3d(Tensor *x, TensorShape output_size);
#define tensor_adaptive_max_pool1d(...) \
    tensor_adaptive_max_pool1d_args((TensorAdaptiveMaxPoolArgs){ .input = __VA_ARGS__ })
#define tensor_adaptive_max_pool2d(...) \
    tensor_adaptive_max_pool2d_args((TensorAdaptiveMaxPoolArgs){ .input = __VA_ARGS__ })
#define tensor_adaptive_max_pool3d(...) \
    tensor_adaptive_max_pool3d_args((TensorAdaptiveMaxPoolArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_adaptive_max_pool1d_args(TensorAdaptiveMaxPoolArgs args);
TAPEGRAD_API Tensor *tensor_adaptive_max_pool2d_args(TensorAdaptiveMaxPoolArgs args);
TAPEGRAD_API Tensor *tensor_adaptive_max_pool3d_args(TensorAdaptiveMaxPoolArgs args);

typedef struct TensorLpPoolArgs {
    Tensor *input;
    double norm_type;
    int64_t kernel_size, stride;
    bool ceil_mode;
    int64_t kernel_sizes[3], strides[3];
} TensorLpPoolArgs;
#define TENSOR_LP_POOL_DEFAULTS .stride = 0, .ceil_mode = false
TAPEGRAD_API extern const TensorLpPoolArgs tensor_lp_pool_defaults;

/* tensor_lp_pool2d - (sum of x^p over each window)^(1/p), p = norm_type; inf and -inf give the largest and
 * smallest |x|.  A negative sum s gives pow(s, 1 / p).  Where the sum is 0 the gradient is NaN, as in
 * PyTorch.  EVALUE: norm_type 0.  EDTYPE: integers, for which PyTorch truncates window means before the
 * root. */
#define tensor_lp_pool1d(...) \
    TENSOR_CALL_(tensor_lp_pool1d_args, TensorLpPoolArgs, TENSOR_LP_POOL_DEFAULTS, .input = __VA_ARGS__)
#define tensor_lp_pool2d(...) \
    TENSOR_CALL_(tensor_lp_pool2d_args, TensorLpPoolArgs, TENSOR_LP_POOL_DEFAULTS, .input = __VA_ARGS__)
#define tensor_lp_pool3d(...) \
    TENSOR_CALL_(tensor_lp_pool3d_args, TensorLpPoolArgs, TENSOR_LP_POOL_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_lp_pool1d_args(TensorLpPoolArgs args);
TAPEGRAD_API Tensor *tensor_lp_pool2d_args(TensorLpPoolArgs args);
TAPEGRAD_API Tensor *tensor_lp_pool3d_args(TensorLpPoolArgs args);

typedef struct TensorFractionalMaxPoolArgs {
    Tensor *input;
    int64_t kernel_size;
    TensorShape output_size; /* of the pooled dimensions, or one number for all; give this ... */
    double output_ratio;     /* ... or this fraction of the input size, between 0 and 1, for all, */
    double output_ratios[3]; /* ... or one for each */
    int64_t kernel_sizes[3];
    Tensor **indices;       /* as in max_pool2d */
    Tensor *random_samples; /* u: [N, C, 2] or [N, C, 3], N = 1 without a batch, in [0, 1); NULL: random */
} TensorFractionalMaxPoolArgs;
#define TENSOR_FRACTIONAL_MAX_POOL_DEFAULTS .output_ratio = 0
TAPEGRAD_API extern const TensorFractionalMaxPoolArgs tensor_fractional_max_pool_defaults;

/* tensor_fractional_max_pool2d(x, 2, SHAPE(5, 5)), (x, 3, .output_ratio = 0.7) - the maximum of each window;
 * window i begins at floor((i + u) a) - floor(u a), a = (in - kernel) / (out - 1), u a random number for each
 * plane and direction (width before height; depth, height, width).
 * EVALUE: both or neither of size and ratio; windows do not fit.  ESHAPE: the rank of input; the shape of
 * random_samples. */
#define tensor_fractional_max_pool2d(...)                                        \
    TENSOR_CALL_(tensor_fractional_max_pool2d_args, TensorFractionalMaxPoolArgs, \
                 TENSOR_FRACTIONAL_MAX_POOL_DEFAULTS, .input = __VA_ARGS__)
#define tensor_fractional_max_pool3d(...)                                        \
    TENSOR_CALL_(tensor_fractional_max_pool3d_args, TensorFractionalMaxPoolArgs, \
                 TENSOR_FRACTIONAL_MAX_POOL_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_fractional_max_pool2d_args(TensorFractionalMaxPoolArgs args);
TAPEGRAD_API Tensor *tensor_fractional_max_pool3d_args(TensorFractionalMaxPoolArgs args);

typedef struct TensorMaxUnpoolArgs {
    Tensor *input, *indices;
    int64_t kernel_size, stride, padding;
    TensorShape output_size; /* of the pooled dimensions; empty: (in - 1) stride - 2 padding + kernel */
    int64_t kernel_sizes[3], strides[3], paddings[3];
} TensorMaxUnpoolArgs;
#define TENSOR_MAX_UNPOOL_DEFAULTS .stride = 0, .padding = 0
TAPEGRAD_API extern const TensorMaxUnpoolArgs tensor_max_unpool_defaults;

/* tensor_max_unpool2d(y, indices, 2) - zeros, with y at the positions that a max pool gave.  If a position
 * repeats, the last value in row-major order is the result; as in PyTorch, each of them gets the gradient at
 * that position.  output_size selects one of the sizes that give this pooled size.
 * ESHAPE: y and indices differ in shape, or output_size is a stride or more from the default.  EINDEX: a
 * position out of range. */
#define tensor_max_unpool1d(...)                                                            \
    TENSOR_CALL_(tensor_max_unpool1d_args, TensorMaxUnpoolArgs, TENSOR_MAX_UNPOOL_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_max_unpool2d(...)                                                            \
    TENSOR_CALL_(tensor_max_unpool2d_args, TensorMaxUnpoolArgs, TENSOR_MAX_UNPOOL_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_max_unpool3d(...)                                                            \
    TENSOR_CALL_(tensor_max_unpool3d_args, TensorMaxUnpoolArgs, TENSOR_MAX_UNPOOL_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_max_unpool1d_args(TensorMaxUnpoolArgs args);
TAPEGRAD_API Tensor *tensor_max_unpool2d_args(TensorMaxUnpoolArgs args);
TAPEGRAD_API Tensor *tensor_max_unpool3d_args(TensorMaxUnpoolArgs args);

/* ---- interpolation --------------------------------------------------------------------------- */

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
    TensorShape size;    /* of the last dimensions, or one number for all; give this ... */
    double scale_factor; /* ... or this, for all of them: size out = floor(in scale) ... */
    TensorByName by_name;
    TensorInterpolation mode;
    bool align_corners, recompute_scale_factor, antialias;
    double scale_factors[3]; /* ... or one for each */
} TensorInterpolateArgs;
#define TENSOR_INTERPOLATE_DEFAULTS                                                                     \
    .scale_factor = 0, .mode = TENSOR_NEAREST, .align_corners = false, .recompute_scale_factor = false, \
    .antialias = false
TAPEGRAD_API extern const TensorInterpolateArgs tensor_interpolate_defaults;

/* tensor_interpolate(x, SHAPE(64, 64), .mode = TENSOR_BILINEAR) - x [N, C, ...] resampled to another size.
 *
 *   nearest, nearest-exact, area   one to three dimensions; area: the means of adaptive_avg_pool
 *   linear                         one dimension
 *   bilinear, bicubic              two
 *   trilinear                      three
 *
 * Output i samples x at step (i + 1/2) - 1/2, step = in / out, or 1 / scale if a scale is given and not
 * recomputed from the sizes; with align_corners at step i, step = (in - 1) / (out - 1).
 * nearest takes element floor(step i), nearest-exact floor(step (i + 1/2)), with step in f32.  bicubic:
 * Keys' a = -0.75.  antialias (bilinear, bicubic): the filter is widened by step when shrinking, a = -0.5; a
 * dimension that keeps its size is copied.
 * Differences from PyTorch: the gradient is always the transpose of the forward, where PyTorch's nearest may
 * round other positions in backward; integers are refused (EDTYPE).
 * EVALUE: both or neither of size and scale; align_corners or antialias with a mode that lacks it.  ESHAPE:
 * a rank that the mode does not take; a size of 0.
 * tensor_upsample - the same. */
#define tensor_interpolate(...)                                                               \
    TENSOR_CALL_(tensor_interpolate_args, TensorInterpolateArgs, TENSOR_INTERPOLATE_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_upsample(...) tensor_interpolate(__VA_ARGS__)
TAPEGRAD_API Tensor *tensor_interpolate_args(TensorInterpolateArgs args);

/* ---- grid sampling --------------------------------------------------------------------------- */

typedef enum TensorGridPadding {
    TENSOR_GRID_ZEROS,
    TENSOR_GRID_BORDER,
    TENSOR_GRID_REFLECTION
} TensorGridPadding;

typedef struct TensorGridSampleArgs {
    Tensor *input, *grid;
    TensorByName by_name;
    TensorInterpolation mode;       /* bilinear, nearest or bicubic */
    TensorGridPadding padding_mode; /* values outside input */
    bool align_corners; /* -1 and 1 are the centers of the edge pixels; false: their outer edges */
    TensorFromDefaults from_defaults;
} TensorGridSampleArgs;
#define TENSOR_GRID_SAMPLE_DEFAULTS                                                                     \
    .mode = TENSOR_BILINEAR, .padding_mode = TENSOR_GRID_ZEROS, .align_corners = false, TENSOR_BY_NAME, \
    TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorGridSampleArgs tensor_grid_sample_defaults;

/* tensor_grid_sample - y[n, c, i, j] = input[n, c] at the position grid[n, i, j] = (x, y), in [-1, 1].
 *
 *   input [N, C, h, w],      grid [N, oh, ow, 2]               -> [N, C, oh, ow]
 *   input [N, C, d, h, w],   grid [N, od, oh, ow, 3], (x, y, z) -> [N, C, od, oh, ow]
 *
 * Both have gradients.  The gradient for grid jumps at pixel centers: there it is that of the upper side;
 * with nearest it is 0.  A NaN in the grid counts as -1.
 * EDTYPE: input and grid differ, or are not floating.  ESHAPE: shapes other than above.  EVALUE: another
 * mode; bicubic in five dimensions.
 * tensor_affine_grid - grid[n, i, j] = theta[n] (x, y, 1), (x, y) the center of pixel (i, j) of an image of
 * size [N, C, h, w]; theta [N, 2, 3].  The same for [N, C, d, h, w] and theta [N, 3, 4]. */
#define tensor_grid_sample(...)                                                              \
    TENSOR_CALL_(tensor_grid_sample_args, TensorGridSampleArgs, TENSOR_GRID_SAMPLE_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_grid_sample_args(TensorGridSampleArgs args);
TAPEGRAD_API Tensor *tensor_affine_grid(Tensor *theta, TensorShape size, bool align_corners);

#ifdef __cplusplus
}
#endif
#endif
