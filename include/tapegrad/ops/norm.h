/* ops/norm.h - normalisation.  Included by ops.h.
 *
 *     Tensor *y = tensor_layer_norm(h, SHAPE(64), weight, bias);
 *
 * Operands are floating (EDTYPE).  f16 and bf16 compute in f32; the result has the input's dtype.  Weight,
 * bias and running statistics have that dtype too, or are f32 with an f16 or bf16 input (EDTYPE: mixed);
 * rms_norm's weight may have any.  Results have the same bits with any number of threads.
 * weight or bias, or both, may be NULL. */
#ifndef TAPEGRAD_OPS_NORM_H
#define TAPEGRAD_OPS_NORM_H

#include <math.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- normalisation --------------------------------------------------------------------------- */

typedef struct TensorLayerNormArgs {
    Tensor *input;
    TensorShape normalized_shape; /* the last sizes of input */
    Tensor *weight, *bias;        /* of normalized_shape */
    double eps;
    TensorFromDefaults from_defaults;
} TensorLayerNormArgs;
#define TENSOR_LAYER_NORM_DEFAULTS .eps = 1e-5, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorLayerNormArgs tensor_layer_norm_defaults;

/* tensor_layer_norm - (x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance over the last
 * dims, those of normalized_shape.  ESHAPE: input's shape does not end in normalized_shape; weight or bias
 * has another shape. */
#define tensor_layer_norm(...)                                                            \
    TENSOR_CALL_(tensor_layer_norm_args, TensorLayerNormArgs, TENSOR_LAYER_NORM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_layer_norm_args(TensorLayerNormArgs args);

typedef struct TensorAddLayerNormArgs {
    Tensor *input, *branch;       /* of one shape */
    TensorShape normalized_shape; /* its last sizes */
    Tensor *weight, *bias;        /* of normalized_shape */
    double eps;
    TensorByName by_name;
    TensorDtype dtype; /* of the result; TENSOR_DTYPES: the sum's, or inside TENSOR_AUTOCAST that block's */
    TensorFromDefaults from_defaults;
} TensorAddLayerNormArgs;
#define TENSOR_ADD_LAYER_NORM_DEFAULTS \
    .eps = 1e-5, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorAddLayerNormArgs tensor_add_layer_norm_defaults;
typedef struct TensorAddLayerNorm {
    Tensor *result, *sum;
} TensorAddLayerNorm;

/* tensor_add_layer_norm - sum = input + branch and result = layer_norm(sum), in one pass over both: the end
 * of a residual branch and the norm that the next one begins with.  PyTorch has no such function, but the
 * same numbers:
 *     sum = input + branch;  result = F.layer_norm(sum, ...)
 * input and branch may differ in dtype: the sum has the wider one.  Inside TENSOR_AUTOCAST the result has the
 * block's dtype, to which the next linear would cast it.  Weight and bias have the sum's dtype, or are f32
 * beside f16 or bf16 (EDTYPE).  Errors as layer_norm; ESHAPE: input and branch differ in shape.  Both results
 * are NULL then. */
#define tensor_add_layer_norm(...)                                                                   \
    TENSOR_CALL_(tensor_add_layer_norm_args, TensorAddLayerNormArgs, TENSOR_ADD_LAYER_NORM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API TensorAddLayerNorm tensor_add_layer_norm_args(TensorAddLayerNormArgs args);

typedef struct TensorRmsNormArgs {
    Tensor *input;
    TensorShape normalized_shape; /* the last sizes of input */
    Tensor *weight;               /* of normalized_shape */
    double eps;                   /* NaN: the epsilon of the dtype computed in: f64 for f64, else f32 */
    TensorFromDefaults from_defaults;
} TensorRmsNormArgs;
#define TENSOR_RMS_NORM_DEFAULTS .eps = (double)NAN, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorRmsNormArgs tensor_rms_norm_defaults;

/* tensor_rms_norm - x / sqrt(mean x^2 + eps) * weight, the mean over the last dims.  ESHAPE as layer_norm. */
#define tensor_rms_norm(...) \
    TENSOR_CALL_(tensor_rms_norm_args, TensorRmsNormArgs, TENSOR_RMS_NORM_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_rms_norm_args(TensorRmsNormArgs args);

typedef struct TensorGroupNormArgs {
    Tensor *input;
    int64_t num_groups;
    Tensor *weight, *bias; /* [C] */
    double eps;
    TensorFromDefaults from_defaults;
} TensorGroupNormArgs;
#define TENSOR_GROUP_NORM_DEFAULTS .eps = 1e-5, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorGroupNormArgs tensor_group_norm_defaults;

/* tensor_group_norm - layer_norm over each of num_groups groups of adjacent channels, for each sample of [N,
 * C, ...], with a weight and a bias for each channel.  Unlike PyTorch, accepts an input without elements.
 * EVALUE: num_groups < 1.  ESHAPE: C is no multiple of it; N = 1 and one value in each group. */
#define tensor_group_norm(...)                                                            \
    TENSOR_CALL_(tensor_group_norm_args, TensorGroupNormArgs, TENSOR_GROUP_NORM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_group_norm_args(TensorGroupNormArgs args);

typedef struct TensorBatchNormArgs {
    Tensor *input;
    Tensor *running_mean, *running_var; /* [C], or both NULL */
    Tensor *weight, *bias;              /* [C] */
    bool training;
    double momentum, eps;
    TensorFromDefaults from_defaults;
} TensorBatchNormArgs;
#define TENSOR_BATCH_NORM_DEFAULTS .training = false, .momentum = 0.1, .eps = 1e-5, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorBatchNormArgs tensor_batch_norm_defaults;

/* tensor_batch_norm - (x - mean) / sqrt(var + eps) * weight + bias for each channel, dim 1 of [N, C, ...] of
 * rank 2 to 5.  A failed call leaves the running statistics as they were.
 *   training   mean and biased variance of the batch, over all other dims.  Then, in place and outside the
 *              graph, running = (1 - momentum) running + momentum batch, with the unbiased variance.
 *   else       mean and var are running_mean and running_var, constants.
 * An input [0] is copied.  ESHAPE: training with one value for each channel.  EVALUE: one running statistic
 * without the other; not training and no running statistics; eps < 0, or in training eps = 0. */
#define tensor_batch_norm(...)                                                            \
    TENSOR_CALL_(tensor_batch_norm_args, TensorBatchNormArgs, TENSOR_BATCH_NORM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_batch_norm_args(TensorBatchNormArgs args);

typedef struct TensorInstanceNormArgs {
    Tensor *input;
    Tensor *running_mean, *running_var; /* [C], or both NULL */
    Tensor *weight, *bias;              /* [C] */
    bool use_input_stats;
    double momentum, eps;
    TensorFromDefaults from_defaults;
} TensorInstanceNormArgs;
#define TENSOR_INSTANCE_NORM_DEFAULTS \
    .use_input_stats = true, .momentum = 0.1, .eps = 1e-5, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorInstanceNormArgs tensor_instance_norm_defaults;

/* tensor_instance_norm - batch_norm of each sample of [N, C, ...] separately.  use_input_stats: normalizes by
 * the sample's statistics, and updates the running statistics, if given, with their mean over the samples;
 * false: normalizes by the running statistics.  Errors as batch_norm, but any eps is allowed; ESHAPE:
 * use_input_stats with one position in each channel. */
#define tensor_instance_norm(...)                                                                  \
    TENSOR_CALL_(tensor_instance_norm_args, TensorInstanceNormArgs, TENSOR_INSTANCE_NORM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_instance_norm_args(TensorInstanceNormArgs args);

typedef struct TensorResponseNormArgs {
    Tensor *input;
    int64_t size; /* of the window, in channels */
    double alpha, beta, k;
    TensorFromDefaults from_defaults;
} TensorResponseNormArgs;
#define TENSOR_RESPONSE_NORM_DEFAULTS .alpha = 1e-4, .beta = 0.75, .k = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorResponseNormArgs tensor_response_norm_defaults;

/* tensor_local_response_norm - x_c / (k + alpha / size * sum x_j^2)^beta for each channel c of [N, C, ...] of
 * rank 3 or more; the sum is over the channels from c - size / 2 to c - size / 2 + size - 1 that exist.
 * EVALUE: size < 1. */
#define tensor_local_response_norm(...)                                                                  \
    TENSOR_CALL_(tensor_local_response_norm_args, TensorResponseNormArgs, TENSOR_RESPONSE_NORM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_local_response_norm_args(TensorResponseNormArgs args);

/* tensor_norm_except_dim - (sum |v|^pow)^(1/pow) over all dims but dim, which keep size 1; dim = -1 means no
 *     dim, as in PyTorch: one norm, of rank 0.
 * tensor_weight_norm - v g / tensor_norm_except_dim(v, 2, dim): a weight with direction v and length g, as in
 *     torch.nn.utils.weight_norm.  EINDEX: no such dim.  EDTYPE: v and g differ in dtype. */
TAPEGRAD_API Tensor *tensor_norm_except_dim(Tensor *v, double pow, int dim);
TAPEGRAD_API Tensor *tensor_weight_norm(Tensor *v, Tensor *g, int dim);

#ifdef __cplusplus
}
#endif
#endif
