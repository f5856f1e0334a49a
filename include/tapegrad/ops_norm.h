/* ops_norm.h - normalisation, dropout, gates.  Included by ops.h.
 *
 *     Tensor *y = tensor_layer_norm(h, SHAPE(64), weight, bias);
 *     Tensor *z = tensor_dropout(tensor_group_norm(images, 8, scale, shift), 0.1, training);
 *
 * All take floating operands (EDTYPE otherwise); f16 and bf16 compute in f32, and the result has the input's dtype whatever that
 * of weight and bias.  Results are the same bits on any number of threads.  Optional tensors may be NULL. */
#ifndef TAPEGRAD_OPS_NORM_H
#define TAPEGRAD_OPS_NORM_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

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

typedef struct TensorRmsNormArgs {
    Tensor *input;
    TensorShape normalized_shape;
    Tensor *weight;                         /* of normalized_shape, or NULL */
    double eps;                             /* -1: the epsilon of f64, for f64, or of f32, for all others */
} TensorRmsNormArgs;

/* tensor_rms_norm - y = x / sqrt(mean x^2 + eps) * weight, the mean over the last dimensions, which must be normalized_shape. */
#define tensor_rms_norm(...) tensor_rms_norm_args((TensorRmsNormArgs){ .eps = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_rms_norm_args(TensorRmsNormArgs args);

typedef struct TensorGroupNormArgs {
    Tensor *input;
    int64_t num_groups;
    Tensor *weight, *bias;                  /* [C], or NULL */
    double eps;                             /* 1e-5 */
} TensorGroupNormArgs;

/* tensor_group_norm - as layer_norm, over each of num_groups groups of neighbouring channels of each sample of [N, C, ...],
 * with a weight and a bias for each channel.  ESHAPE: the groups do not divide C; N = 1 and one value for each group.
 * An input of no elements is taken, unlike PyTorch. */
#define tensor_group_norm(...) tensor_group_norm_args((TensorGroupNormArgs){ .eps = 1e-5, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_group_norm_args(TensorGroupNormArgs args);

typedef struct TensorBatchNormArgs {
    Tensor *input, *running_mean, *running_var, *weight, *bias;
    bool training;
    double momentum, eps;                   /* 0.1, 1e-5 */
} TensorBatchNormArgs;

/* tensor_batch_norm - the same for each channel (dimension 1 of [N, C, ...], rank 2 to 5), with statistics over all else.
 *   training: of the batch; running = (1 - momentum) running + momentum batch, in place, outside the graph, where
 *     the batch's variance is the unbiased one, n / (n - 1) var; its mean is exact to about an ulp of the deviation.
 *     running_mean and running_var may both be NULL.
 *   otherwise: running_mean and running_var.
 * Per-channel tensors are [C]; weight and bias may be NULL.  An input [0] is copied.  ESHAPE: one value per channel in training has
 * no variance. */
#define tensor_batch_norm(...) \
    tensor_batch_norm_args((TensorBatchNormArgs){ .momentum = 0.1, .eps = 1e-5, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_batch_norm_args(TensorBatchNormArgs args);

typedef struct TensorInstanceNormArgs {
    Tensor *input, *running_mean, *running_var, *weight, *bias;
    bool use_input_stats;                   /* true */
    double momentum, eps;                   /* 0.1, 1e-5 */
} TensorInstanceNormArgs;

/* tensor_instance_norm - batch_norm of each sample of [N, C, ...] by itself.  use_input_stats: the running statistics, when
 * given, follow the mean of the samples'; otherwise they are used.  ESHAPE: use_input_stats and one position for each channel. */
#define tensor_instance_norm(...) \
    tensor_instance_norm_args((TensorInstanceNormArgs){ .use_input_stats = true, .momentum = 0.1, .eps = 1e-5, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_instance_norm_args(TensorInstanceNormArgs args);

typedef struct TensorResponseNormArgs {
    Tensor *input;
    int64_t size;
    double alpha, beta, k;                  /* 1e-4, 0.75, 1 */
} TensorResponseNormArgs;

/* tensor_local_response_norm - y_c = x_c / (k + alpha / size * sum x_j^2)^beta for channels c of [N, C, ...] of rank 3 or more, the
 * sum over the size channels from c - size / 2 on, where those outside count as 0. */
#define tensor_local_response_norm(...) \
    tensor_local_response_norm_args((TensorResponseNormArgs){ .alpha = 1e-4, .beta = 0.75, .k = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_local_response_norm_args(TensorResponseNormArgs args);

/* tensor_norm_except_dim - the norms (sum |v|^pow)^(1/pow) over all dims but dim, which stay with size 1; dim = -1, as in PyTorch, is no
 * dim: one norm, of rank 0.   tensor_weight_norm - v g / tensor_norm_except_dim(v, 2, dim): weights of the direction v and the
 * length g, as of torch.nn.utils.weight_norm. */
TAPEGRAD_API Tensor *tensor_norm_except_dim(Tensor *v, double pow, int dim);
TAPEGRAD_API Tensor *tensor_weight_norm(Tensor *v, Tensor *g, int dim);

/* ---- dropout -----------------------------------------------------------------------------------------
 * tensor_dropout - training: each element is 0 with probability p, else divided by 1 - p.  The gradient passes the same mask.
 * p = 1 gives zeros.  Dropped elements are 0 whatever they were.  Not training, or p = 0: x itself, and no number is drawn.
 * tensor_dropout2d - whole channels: one draw for each index of the first two dimensions.
 * tensor_dropout1d, tensor_dropout3d - the same of [N, C, L] and [N, C, D, H, W], or of [C, L] and [C, D, H, W].
 * EVALUE: p outside [0, 1].  Masks come from the counter-based generator (random.h). */
TAPEGRAD_API Tensor *tensor_dropout(Tensor *x, double p, bool training);
TAPEGRAD_API Tensor *tensor_dropout_(Tensor *x, double p, bool training);
TAPEGRAD_API Tensor *tensor_dropout1d(Tensor *x, double p, bool training);
TAPEGRAD_API Tensor *tensor_dropout2d(Tensor *x, double p, bool training);
TAPEGRAD_API Tensor *tensor_dropout3d(Tensor *x, double p, bool training);

/* tensor_alpha_dropout - training: y = a x + b, where x is replaced by -1.7581 (what selu tends to) with probability p; a and b
 * keep mean 0 and variance 1.  p = 1 gives zeros.  Not training, or p = 0: x itself, and no number is drawn.
 * tensor_feature_alpha_dropout - whole channels, as dropout2d. */
TAPEGRAD_API Tensor *tensor_alpha_dropout(Tensor *x, double p, bool training);
TAPEGRAD_API Tensor *tensor_feature_alpha_dropout(Tensor *x, double p, bool training);
TAPEGRAD_API Tensor *tensor_alpha_dropout_(Tensor *x, double p, bool training);
TAPEGRAD_API Tensor *tensor_feature_alpha_dropout_(Tensor *x, double p, bool training);

/* ---- gates ------------------------------------------------------------------------------------------- */

typedef struct TensorGluArgs {
    Tensor *input;
    int dim;                                /* -1 */
} TensorGluArgs;

/* tensor_glu - a sigmoid(b), a and b the halves of input along dim.  ESHAPE: an odd size.  EINDEX: no such dim. */
#define tensor_glu(...) tensor_glu_args((TensorGluArgs){ .dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_glu_args(TensorGluArgs args);

typedef struct TensorGumbelSoftmaxArgs {
    Tensor *logits;
    double tau;                             /* 1 */
    bool hard;
    int dim;                                /* -1 */
} TensorGumbelSoftmaxArgs;

/* tensor_gumbel_softmax - softmax((logits + n) / tau) along dim, n = -log e, e drawn from the exponential distribution in the
 * order of PyTorch's generator.  hard: exactly 1 at the largest and 0 elsewhere, with the gradient of the soft value.
 * PyTorch's eps, which it ignores, is not here.
 * EVALUE: tau <= 0.  EINDEX: no such dim. */
#define tensor_gumbel_softmax(...) tensor_gumbel_softmax_args((TensorGumbelSoftmaxArgs){ .tau = 1, .dim = -1, .logits = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_gumbel_softmax_args(TensorGumbelSoftmaxArgs args);

#ifdef __cplusplus
}
#endif
#endif
