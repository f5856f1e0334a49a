/* ops/norm.h - normalisation.  Included by ops.h.
 *
 *     Tensor *y = tensor_layer_norm(h, SHAPE(64), weight, bias);
 *
 * All take floating operands (EDTYPE otherwise); f16 and bf16 compute in f32, and the result has the input's
 * dtype whatever that of weight and bias.  Results are the same bits on any number of threads.  Optional
 * tensors may be NULL. */
#ifndef TAPEGRAD_OPS_NORM_H
#define TAPEGRAD_OPS_NORM_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- normalisation --------------------------------------------------------------------------- */

typedef struct TensorLayerNormArgs {
    Tensor *input;
    TensorShape normalized_shape;
    Tensor *weight, *bias; /* of normalized_shape, or NULL, each by itself */
    double eps;            /* 1e-5 */
} TensorLayerNormArgs;

/* tensor_layer_norm - y = (x - mean) / sqrt(var + eps) * weight + bias, mean and (biased) var over the last
 * dimensions, which must be normalized_shape (ESHAPE). */
#define tensor_layer_norm(...) \
    tensor_layer_norm_args((TensorLayerNormArgs){ .eps = 1e-5, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_layer_norm_args(TensorLayerNormArgs args);

typedef struct TensorRmsNormArgs {
    Tensor *input;
    TensorShape normalized_shape;
    Tensor *weight; /* of normalized_shape, or NULL */
    double eps;     /* -1: the epsilon of f64, for f64, or of f32, for all others */
} TensorRmsNormArgs;

/* tensor_rms_norm - y = x / sqrt(mean x^2 + eps) * weight, the mean over the last dimensions, which must be
 * normalized_shape. */
#define tensor_rms_norm(...) tensor_rms_norm_args((TensorRmsNormArgs){ .eps = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_rms_norm_args(TensorRmsNormArgs args);

typedef struct TensorGroupNormArgs {
    Tensor *input;
    int64_t num_groups;
    Tensor *weight, *bias; /* [C], or NULL */
    double eps;            /* 1e-5 */
} TensorGroupNormArgs;

/* tensor_group_norm - as layer_norm, over each of num_groups groups of neighbouring channels of each sample
 * of [N, C, ...], with a weight and a bias for each channel.  ESHAPE: the groups do not divide C; N = 1 and
 * one value for each group. An input of no elements is taken, unlike PyTorch. */
#define tensor_group_norm(...) \
    tensor_group_norm_args((TensorGroupNormArgs){ .eps = 1e-5, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_group_norm_args(TensorGroupNormArgs args);

typedef struct TensorBatchNormArgs {
    Tensor *input, *running_mean, *running_var, *weight, *bias;
    bool training;
    double momentum, eps; /* 0.1, 1e-5 */
} TensorBatchNormArgs;

/* tensor_batch_norm - the same for each channel (dimension 1 of [N, C, ...], rank 2 to 5), with statistics
 * over all else. training: of the batch; running = (1 - momentum) running + momentum batch, in place, outside
 * the graph, where the batch's variance is the unbiased one, n / (n - 1) var; its mean is exact to about an
 * ulp of the deviation. running_mean and running_var may both be NULL. otherwise: running_mean and
 * running_var. Per-channel tensors are [C]; weight and bias may be NULL.  An input [0] is copied.  ESHAPE:
 * one value per channel in training has no variance. */
#define tensor_batch_norm(...) \
    tensor_batch_norm_args((TensorBatchNormArgs){ .momentum = 0.1, .eps = 1e-5, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_batch_norm_args(TensorBatchNormArgs args);

typedef struct TensorInstanceNormArgs {
    Tensor *input, *running_mean, *running_var, *weight, *bias;
    bool use_input_stats; /* true */
    double momentum, eps; /* 0.1, 1e-5 */
} TensorInstanceNormArgs;

/* tensor_instance_norm - batch_norm of each sample of [N, C, ...] by itself.  use_input_stats: the running
 * statistics, when given, follow the mean of the samples'; otherwise they are used.  ESHAPE: use_input_stats
 * and one position for each channel. */
#define tensor_instance_norm(...)                       \
    tensor_instance_norm_args((TensorInstanceNormArgs){ \
        .use_input_stats = true, .momentum = 0.1, .eps = 1e-5, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_instance_norm_args(TensorInstanceNormArgs args);

typedef struct TensorResponseNormArgs {
    Tensor *input;
    int64_t size;
    double alpha, beta, k; /* 1e-4, 0.75, 1 */
} TensorResponseNormArgs;

/* tensor_local_response_norm - y_c = x_c / (k + alpha / size * sum x_j^2)^beta for channels c of [N, C, ...]
 * of rank 3 or more, the sum over the size channels from c - size / 2 on, where those outside count as 0. */
#define tensor_local_response_norm(...) \
    tensor_local_response_norm_args(    \
        (TensorResponseNormArgs){ .alpha = 1e-4, .beta = 0.75, .k = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_local_response_norm_args(TensorResponseNormArgs args);

/* tensor_norm_except_dim - the norms (sum |v|^pow)^(1/pow) over all dims but dim, which stay with size 1; dim
 * = -1, as in PyTorch, is no dim: one norm, of rank 0.   tensor_weight_norm - v g / tensor_norm_except_dim(v,
 * 2, dim): weights of the direction v and the length g, as of torch.nn.utils.weight_norm. */
TAPEGRAD_API Tensor *tensor_norm_except_dim(Tensor *v, double pow, int dim);
TAPEGRAD_API Tensor *tensor_weight_norm(Tensor *v, Tensor *g, int dim);

#ifdef __cplusplus
}
#endif
#endif
