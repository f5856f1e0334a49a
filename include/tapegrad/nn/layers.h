/* nn/layers.h - the layers.  Included by nn.h.
 *
 *     Module *net = nn_sequential(
 *         nn_conv2d(1, 16, 3, .padding = 1), nn_batch_norm2d(16), nn_relu(), nn_max_pool2d(2),
 *         nn_flatten(), nn_linear(16 * 14 * 14, 10, .bias = false));
 *
 * Arguments and their defaults are PyTorch's, options by name.  A layer nn_foo with options has a struct, the
 * macro NN_FOO_DEFAULTS, the constant nn_foo_defaults, and a function nn_foo_args that takes the struct; the
 * macro nn_foo calls it.  Each comment gives equation, shapes, parameters in the order of PyTorch's state
 * dict, and their initial values: U(a, b) uniform, N(mean, std) normal.  Layers with parameters take .dtype,
 * by default f32.
 *
 * Constructors return NULL on EVALUE: sizes out of range; EDTYPE; ENOMEM. */
#ifndef TAPEGRAD_NN_LAYERS_H
#define TAPEGRAD_NN_LAYERS_H

#include <math.h>
#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- containers ------------------------------------------------------------------------------ */

#define NN_MODULES_(...)                     \
    ((Module *[]){ NULL, __VA_ARGS__ }) + 1, \
        (int)(sizeof(Module *[]){ NULL, __VA_ARGS__ } / sizeof(Module *)) - 1

/* nn_sequential(a, b, ...) - runs its children in order, named "0", "1", ...; nn_append adds a child,
 *     nn_child one with a name.  If no graph is recorded, each child's input is freed once it was read.
 * nn_module_list(a, b, ...) - the same children without a forward: m->children[i].module.
 * nn_module_dict({ "wte", nn_embedding(65, 48) }, { "h", blocks }) - children by name, without a forward.
 * nn_parameter_list(t, u, ...) - tensors as parameters "0", "1", ...; nn_parameter_dict({ "scale", t }, ...)
 *     by name: nn_get(m, "scale"), m->parameters[i].tensor. */
#define nn_sequential(...) nn_sequential_args(NN_MODULES_(__VA_ARGS__))
#define nn_module_list(...) nn_module_list_args(NN_MODULES_(__VA_ARGS__))
TAPEGRAD_API Module *nn_sequential_args(Module *const *modules, int n);
TAPEGRAD_API Module *nn_module_list_args(Module *const *modules, int n);
typedef struct NNNamedModule {
    const char *name;
    Module *module;
} NNNamedModule;
typedef struct NNNamedTensor {
    const char *name;
    Tensor *tensor;
} NNNamedTensor;
#define NN_LIST_(Item, ...) (const Item[]){ __VA_ARGS__ }, (int)(sizeof(Item[]){ __VA_ARGS__ } / sizeof(Item))
#define nn_module_dict(...) nn_module_dict_args(NN_LIST_(NNNamedModule, __VA_ARGS__))
#define nn_parameter_list(...) nn_parameter_list_args(TENSORS(__VA_ARGS__))
#define nn_parameter_dict(...) nn_parameter_dict_args(NN_LIST_(NNNamedTensor, __VA_ARGS__))
TAPEGRAD_API Module *nn_module_dict_args(const NNNamedModule *modules, int n);
TAPEGRAD_API Module *nn_parameter_list_args(TensorList tensors);
TAPEGRAD_API Module *nn_parameter_dict_args(const NNNamedTensor *tensors, int n);
TAPEGRAD_API Module *nn_append(Module *module, Module *child);
#define nn_append(module, child) (nn_append)(NN_MODULE(module), child)

TAPEGRAD_API Module *nn_identity(void); /* y = x */

/* ---- linear ---------------------------------------------------------------------------------- */

typedef struct NNLinearArgs {
    int64_t in_features, out_features;
    bool bias;
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNLinearArgs;
#define NN_LINEAR_DEFAULTS \
    .in_features = -1, .out_features = -1, .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNLinearArgs nn_linear_defaults;

/* nn_linear(in, out, .bias = true) - y = x weight^T + bias: [..., in] -> [..., out].
 * weight [out, in], bias [out]: U(-k, k), k = 1 / sqrt(in). */
#define nn_linear(...) \
    TENSOR_CALL_(nn_linear_args, NNLinearArgs, NN_LINEAR_DEFAULTS, .in_features = __VA_ARGS__)
#define nn_lazy_linear(...) nn_linear(NN_LAZY, __VA_ARGS__)
TAPEGRAD_API Module *nn_linear_args(NNLinearArgs args);

typedef struct NNEmbeddingArgs {
    int64_t num_embeddings, embedding_dim;
    int64_t padding_idx;        /* negative: from the end; TENSOR_NO_PADDING: none */
    double max_norm, norm_type; /* max_norm 0: no limit */
    bool scale_grad_by_freq;
    TensorByName by_name;
    TensorDtype dtype;
    Tensor *weight; /* the rows, copied; NULL: random rows */
    bool freeze;    /* weight requires no gradient */
    TensorFromDefaults from_defaults;
} NNEmbeddingArgs;
#define NN_EMBEDDING_DEFAULTS                                                                    \
    .num_embeddings = -1, .embedding_dim = -1, .padding_idx = TENSOR_NO_PADDING, .norm_type = 2, \
    TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNEmbeddingArgs nn_embedding_defaults;

/* nn_embedding(rows, width) - tensor_embedding: row i of weight for each index i: integers [...] -> [...,
 * width]. weight [rows, width]: N(0, 1); row padding_idx is 0 and gets no gradient. */
#define nn_embedding(...) \
    TENSOR_CALL_(nn_embedding_args, NNEmbeddingArgs, NN_EMBEDDING_DEFAULTS, .num_embeddings = __VA_ARGS__)
TAPEGRAD_API Module *nn_embedding_args(NNEmbeddingArgs args);

/* nn_embedding_from_pretrained(rows) - an nn_embedding with a copy of these rows, their sizes and dtype;
 * frozen, unless .freeze = false.  ENULL; ESHAPE: rows is no matrix. */
#define NN_EMBEDDING_FROM_PRETRAINED_DEFAULTS NN_EMBEDDING_DEFAULTS, .freeze = true
TAPEGRAD_API extern const NNEmbeddingArgs nn_embedding_from_pretrained_defaults;
#define nn_embedding_from_pretrained(...)                                                                   \
    TENSOR_CALL_(nn_embedding_from_pretrained_args, NNEmbeddingArgs, NN_EMBEDDING_FROM_PRETRAINED_DEFAULTS, \
                 .weight = __VA_ARGS__)
TAPEGRAD_API Module *nn_embedding_from_pretrained_args(NNEmbeddingArgs args);

typedef struct NNEmbeddingBagArgs {
    int64_t num_embeddings, embedding_dim;
    double max_norm, norm_type; /* 0: no limit */
    bool scale_grad_by_freq;
    TensorByName by_name;
    TensorBagMode mode;
    bool include_last_offset;
    int64_t padding_idx; /* from the end when negative; TENSOR_NO_PADDING: none */
    TensorDtype dtype;
    Tensor *weight; /* as in nn_embedding */
    bool freeze;
    TensorFromDefaults from_defaults;
} NNEmbeddingBagArgs;
#define NN_EMBEDDING_BAG_DEFAULTS                                                       \
    .num_embeddings = -1, .embedding_dim = -1, .norm_type = 2, .mode = TENSOR_BAG_MEAN, \
    .padding_idx = TENSOR_NO_PADDING, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNEmbeddingBagArgs nn_embedding_bag_defaults;

/* nn_embedding_bag(rows, width, .mode = TENSOR_BAG_SUM) - tensor_embedding_bag: nn_forward(m, index),
 * (m, index, offsets) or (m, index, offsets, per_sample_weights), where offsets may be NULL.
 * weight [rows, width]: N(0, 1); row padding_idx is 0 and gets no gradient. */
#define nn_embedding_bag(...)                                                          \
    TENSOR_CALL_(nn_embedding_bag_args, NNEmbeddingBagArgs, NN_EMBEDDING_BAG_DEFAULTS, \
                 .num_embeddings = __VA_ARGS__)
TAPEGRAD_API Module *nn_embedding_bag_args(NNEmbeddingBagArgs args);

/* nn_embedding_bag_from_pretrained(rows, .mode = TENSOR_BAG_SUM) - as nn_embedding_from_pretrained. */
#define NN_EMBEDDING_BAG_FROM_PRETRAINED_DEFAULTS NN_EMBEDDING_BAG_DEFAULTS, .freeze = true
TAPEGRAD_API extern const NNEmbeddingBagArgs nn_embedding_bag_from_pretrained_defaults;
#define nn_embedding_bag_from_pretrained(...)                               \
    TENSOR_CALL_(nn_embedding_bag_from_pretrained_args, NNEmbeddingBagArgs, \
                 NN_EMBEDDING_BAG_FROM_PRETRAINED_DEFAULTS, .weight = __VA_ARGS__)
TAPEGRAD_API Module *nn_embedding_bag_from_pretrained_args(NNEmbeddingBagArgs args);

typedef struct NNBilinearArgs {
    int64_t in1_features, in2_features, out_features;
    bool bias;
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNBilinearArgs;
#define NN_BILINEAR_DEFAULTS                                                                  \
    .in1_features = -1, .in2_features = -1, .out_features = -1, .bias = true, TENSOR_BY_NAME, \
    TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNBilinearArgs nn_bilinear_defaults;

/* nn_bilinear(in1, in2, out) - tensor_bilinear of two inputs: y_o = x1^T weight_o x2 + bias_o.
 * weight [out, in1, in2], bias [out]: U(-k, k), k = 1 / sqrt(in1). */
#define nn_bilinear(...) \
    TENSOR_CALL_(nn_bilinear_args, NNBilinearArgs, NN_BILINEAR_DEFAULTS, .in1_features = __VA_ARGS__)
TAPEGRAD_API Module *nn_bilinear_args(NNBilinearArgs args);

/* ---- convolution ------------------------------------------------------------------------------
 * A size holds for all directions; its plural has one for each, in the order of the dimensions, and takes
 * precedence unless it is all 0: nn_conv2d(3, 8, .kernel_sizes = { 1, 5 }). */

typedef struct NNConvArgs {
    int64_t in_channels, out_channels, kernel_size;
    int64_t stride, padding, dilation, groups; /* padding may be TENSOR_SAME */
    bool bias;
    TensorByName by_name;
    TensorPadMode padding_mode; /* values of the padding; TENSOR_PAD_CONSTANT: zeros */
    TensorDtype dtype;
    int64_t kernel_sizes[3], strides[3], paddings[3], dilations[3];
    TensorFromDefaults from_defaults;
} NNConvArgs;
#define NN_CONV_DEFAULTS \
    .stride = 1, .dilation = 1, .groups = 1, .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNConvArgs nn_conv_defaults;

/* nn_conv2d(in, out, kernel, .stride, .padding, ...) - tensor_conv2d: [N, in, h, w] -> [N, out, oh, ow].
 * nn_conv1d, nn_conv3d - the same for [N, in, w] and [N, in, d, h, w].
 * weight [out, in / groups, kernel ...], bias [out]: U(-k, k), k = 1 / sqrt(in / groups kernel elements). */
#define NN_CONV_(function, ...) \
    TENSOR_CALL_(function, NNConvArgs, NN_CONV_DEFAULTS, .in_channels = __VA_ARGS__)
#define nn_conv1d(...) NN_CONV_(nn_conv1d_args, __VA_ARGS__)
#define nn_conv2d(...) NN_CONV_(nn_conv2d_args, __VA_ARGS__)
#define nn_conv3d(...) NN_CONV_(nn_conv3d_args, __VA_ARGS__)
#define nn_lazy_conv1d(...) nn_conv1d(NN_LAZY, __VA_ARGS__)
#define nn_lazy_conv2d(...) nn_conv2d(NN_LAZY, __VA_ARGS__)
#define nn_lazy_conv3d(...) nn_conv3d(NN_LAZY, __VA_ARGS__)
TAPEGRAD_API Module *nn_conv1d_args(NNConvArgs args);
TAPEGRAD_API Module *nn_conv2d_args(NNConvArgs args);
TAPEGRAD_API Module *nn_conv3d_args(NNConvArgs args);

typedef struct NNConvTransposeArgs {
    int64_t in_channels, out_channels, kernel_size;
    int64_t stride, padding, output_padding, groups;
    bool bias;
    int64_t dilation;
    TensorByName by_name;
    TensorDtype dtype;
    int64_t kernel_sizes[3], strides[3], paddings[3], output_paddings[3], dilations[3];
    TensorFromDefaults from_defaults;
} NNConvTransposeArgs;
#define NN_CONV_TRANSPOSE_DEFAULTS \
    .stride = 1, .groups = 1, .bias = true, .dilation = 1, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNConvTransposeArgs nn_conv_transpose_defaults;

/* nn_conv_transpose2d(in, out, kernel, .stride = 2) - tensor_conv_transpose2d: [N, in, h, w] -> [N, out, oh,
 * ow]; 1d, 3d likewise.   weight [in, out / groups, kernel ...], bias [out]: U(-k, k), k = 1 / sqrt(out /
 * groups kernel elements). */
#define NN_CONV_TRANSPOSE_(function, ...) \
    TENSOR_CALL_(function, NNConvTransposeArgs, NN_CONV_TRANSPOSE_DEFAULTS, .in_channels = __VA_ARGS__)
#define nn_conv_transpose1d(...) NN_CONV_TRANSPOSE_(nn_conv_transpose1d_args, __VA_ARGS__)
#define nn_conv_transpose2d(...) NN_CONV_TRANSPOSE_(nn_conv_transpose2d_args, __VA_ARGS__)
#define nn_conv_transpose3d(...) NN_CONV_TRANSPOSE_(nn_conv_transpose3d_args, __VA_ARGS__)
#define nn_lazy_conv_transpose1d(...) nn_conv_transpose1d(NN_LAZY, __VA_ARGS__)
#define nn_lazy_conv_transpose2d(...) nn_conv_transpose2d(NN_LAZY, __VA_ARGS__)
#define nn_lazy_conv_transpose3d(...) nn_conv_transpose3d(NN_LAZY, __VA_ARGS__)
TAPEGRAD_API Module *nn_conv_transpose1d_args(NNConvTransposeArgs args);
TAPEGRAD_API Module *nn_conv_transpose2d_args(NNConvTransposeArgs args);
TAPEGRAD_API Module *nn_conv_transpose3d_args(NNConvTransposeArgs args);

/* nn_conv_transpose_forward(m, x, SHAPE(12, 12)) - PyTorch's m(x, output_size = (12, 12)), for all ranks:
 * selects one of the output sizes that the stride allows, instead of output_padding.  output_size may begin
 * with N and C.  EVALUE: another module; a size that x cannot give. */
TAPEGRAD_API Tensor *nn_conv_transpose_forward(Module *module, Tensor *x, TensorShape output_size);

/* ---- pooling: sizes as in convolution -------------------------------------------------------- */

typedef struct NNMaxPoolArgs {
    bool unused_;
    int64_t kernel_size, stride, padding; /* stride 0: the kernel's size */
    int64_t dilation;
    bool return_indices; /* the second result; nn_indices keeps it */
    bool ceil_mode;
    int64_t kernel_sizes[3], strides[3], paddings[3], dilations[3];
    TensorFromDefaults from_defaults;
} NNMaxPoolArgs;
#define NN_MAX_POOL_DEFAULTS .dilation = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNMaxPoolArgs nn_max_pool_defaults;

/* nn_max_pool2d(2), nn_max_pool2d(.kernel_sizes = { 1, 2 }) - tensor_max_pool2d; 1d, 3d likewise. */
#define NN_MAX_POOL_(function, ...) \
    TENSOR_CALL_(function, NNMaxPoolArgs, NN_MAX_POOL_DEFAULTS, .unused_ = false, __VA_ARGS__)
#define nn_max_pool1d(...) NN_MAX_POOL_(nn_max_pool1d_args, __VA_ARGS__)
#define nn_max_pool2d(...) NN_MAX_POOL_(nn_max_pool2d_args, __VA_ARGS__)
#define nn_max_pool3d(...) NN_MAX_POOL_(nn_max_pool3d_args, __VA_ARGS__)
TAPEGRAD_API Module *nn_max_pool1d_args(NNMaxPoolArgs args);
TAPEGRAD_API Module *nn_max_pool2d_args(NNMaxPoolArgs args);
TAPEGRAD_API Module *nn_max_pool3d_args(NNMaxPoolArgs args);

typedef struct NNAvgPoolArgs {
    bool unused_;
    int64_t kernel_size, stride, padding; /* stride 0: the kernel's size */
    bool ceil_mode, count_include_pad;
    int64_t divisor_override; /* 0: none; EVALUE in 1d */
    int64_t kernel_sizes[3], strides[3], paddings[3];
    TensorFromDefaults from_defaults;
} NNAvgPoolArgs;
#define NN_AVG_POOL_DEFAULTS .count_include_pad = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNAvgPoolArgs nn_avg_pool_defaults;

/* nn_avg_pool2d(2, .padding = 1) - tensor_avg_pool2d; 1d, 3d likewise. */
#define NN_AVG_POOL_(function, ...) \
    TENSOR_CALL_(function, NNAvgPoolArgs, NN_AVG_POOL_DEFAULTS, .unused_ = false, __VA_ARGS__)
#define nn_avg_pool1d(...) NN_AVG_POOL_(nn_avg_pool1d_args, __VA_ARGS__)
#define nn_avg_pool2d(...) NN_AVG_POOL_(nn_avg_pool2d_args, __VA_ARGS__)
#define nn_avg_pool3d(...) NN_AVG_POOL_(nn_avg_pool3d_args, __VA_ARGS__)
TAPEGRAD_API Module *nn_avg_pool1d_args(NNAvgPoolArgs args);
TAPEGRAD_API Module *nn_avg_pool2d_args(NNAvgPoolArgs args);
TAPEGRAD_API Module *nn_avg_pool3d_args(NNAvgPoolArgs args);

/* nn_adaptive_avg_pool2d(1, 1) - tensor_adaptive_avg_pool2d, means of windows that cover the input: [N, C, h,
 * w] -> [N, C, height, width]; TENSOR_KEEP keeps a direction's size (PyTorch's None).
 * nn_adaptive_max_pool2d - the same with maxima.  EVALUE: another negative size. */
TAPEGRAD_API Module *nn_adaptive_avg_pool1d(int64_t length);
TAPEGRAD_API Module *nn_adaptive_avg_pool2d(int64_t height, int64_t width);
TAPEGRAD_API Module *nn_adaptive_avg_pool3d(int64_t depth, int64_t height, int64_t width);

typedef struct NNAdaptiveMaxPoolArgs {
    int64_t size[3];     /* of the result: length; height, width; depth, height, width */
    bool return_indices; /* the second result; nn_indices keeps it */
} NNAdaptiveMaxPoolArgs;
#define NN_ADAPTIVE_MAX_POOL_DEFAULTS .return_indices = false
TAPEGRAD_API extern const NNAdaptiveMaxPoolArgs nn_adaptive_max_pool_defaults;
#define NN_ADAPTIVE_(function, ...) \
    TENSOR_CALL_(function, NNAdaptiveMaxPoolArgs, NN_ADAPTIVE_MAX_POOL_DEFAULTS, __VA_ARGS__)
#define nn_adaptive_max_pool1d(...) NN_ADAPTIVE_(nn_adaptive_max_pool1d_args, .size[0] = __VA_ARGS__)
#define nn_adaptive_max_pool2d(height, ...) \
    NN_ADAPTIVE_(nn_adaptive_max_pool2d_args, .size[0] = height, .size[1] = __VA_ARGS__)
#define nn_adaptive_max_pool3d(depth, height, ...) \
    NN_ADAPTIVE_(nn_adaptive_max_pool3d_args, .size[0] = depth, .size[1] = height, .size[2] = __VA_ARGS__)
TAPEGRAD_API Module *nn_adaptive_max_pool1d_args(NNAdaptiveMaxPoolArgs args);
TAPEGRAD_API Module *nn_adaptive_max_pool2d_args(NNAdaptiveMaxPoolArgs args);
TAPEGRAD_API Module *nn_adaptive_max_pool3d_args(NNAdaptiveMaxPoolArgs args);

/* nn_indices - the i64 positions of the last forward of a max pool with .return_indices = true, for
 * tensor_max_unpool2d.  EVALUE: another module, or no forward yet. */
TAPEGRAD_API Tensor *nn_indices(Module *max_pool);

typedef struct NNLpPoolArgs {
    double norm_type;
    int64_t kernel_size, stride; /* stride 0: the kernel's size */
    bool ceil_mode;
    int64_t kernel_sizes[3], strides[3];
} NNLpPoolArgs;
#define NN_LP_POOL_DEFAULTS .stride = 0
TAPEGRAD_API extern const NNLpPoolArgs nn_lp_pool_defaults;

/* nn_lp_pool2d(2, 3) - tensor_lp_pool2d: (sum of x^p over each window)^(1/p); 1d, 3d likewise. */
#define nn_lp_pool1d(...) \
    TENSOR_CALL_(nn_lp_pool1d_args, NNLpPoolArgs, NN_LP_POOL_DEFAULTS, .norm_type = __VA_ARGS__)
#define nn_lp_pool2d(...) \
    TENSOR_CALL_(nn_lp_pool2d_args, NNLpPoolArgs, NN_LP_POOL_DEFAULTS, .norm_type = __VA_ARGS__)
#define nn_lp_pool3d(...) \
    TENSOR_CALL_(nn_lp_pool3d_args, NNLpPoolArgs, NN_LP_POOL_DEFAULTS, .norm_type = __VA_ARGS__)
TAPEGRAD_API Module *nn_lp_pool1d_args(NNLpPoolArgs args);
TAPEGRAD_API Module *nn_lp_pool3d_args(NNLpPoolArgs args);
TAPEGRAD_API Module *nn_lp_pool2d_args(NNLpPoolArgs args);

/* nn_max_unpool2d(2) - tensor_max_unpool2d of two inputs: nn_forward(unpool, y, indices); 1d, 3d likewise.
 * .output_size selects one of the sizes that give this pooled size. */
#define NN_MAX_UNPOOL_(f, ...) \
    TENSOR_CALL_(f, TensorMaxUnpoolArgs, TENSOR_MAX_UNPOOL_DEFAULTS, .indices = NULL, __VA_ARGS__)
#define nn_max_unpool1d(...) NN_MAX_UNPOOL_(nn_max_unpool1d_args, __VA_ARGS__)
#define nn_max_unpool2d(...) NN_MAX_UNPOOL_(nn_max_unpool2d_args, __VA_ARGS__)
#define nn_max_unpool3d(...) NN_MAX_UNPOOL_(nn_max_unpool3d_args, __VA_ARGS__)
TAPEGRAD_API Module *nn_max_unpool1d_args(TensorMaxUnpoolArgs args);
TAPEGRAD_API Module *nn_max_unpool2d_args(TensorMaxUnpoolArgs args);
TAPEGRAD_API Module *nn_max_unpool3d_args(TensorMaxUnpoolArgs args);

/* nn_max_unpool_forward(m, y, indices, SHAPE(5, 5)) - the same with output_size at the call, PyTorch's m(y,
 * indices, output_size); it may begin with N and C.  EVALUE: another module. */
TAPEGRAD_API Tensor *nn_max_unpool_forward(Module *module, Tensor *x, Tensor *indices,
                                           TensorShape output_size);

typedef struct NNFractionalMaxPoolArgs {
    bool unused_;
    int64_t kernel_size;
    TensorShape output_size; /* of the pooled dimensions, or one number for all; give this ... */
    double output_ratio;     /* ... or this fraction of the input size, between 0 and 1, for all, */
    bool return_indices;     /* the second result; nn_indices keeps it */
    double output_ratios[3]; /* ... or one for each */
    int64_t kernel_sizes[3];
    Tensor *random_samples; /* as the op's, a buffer; NULL: random */
} NNFractionalMaxPoolArgs;
#define NN_FRACTIONAL_MAX_POOL_DEFAULTS .output_ratio = 0
TAPEGRAD_API extern const NNFractionalMaxPoolArgs nn_fractional_max_pool_defaults;

/* nn_fractional_max_pool2d(2, SHAPE(5, 5)), (3, .output_ratio = 0.7) - tensor_fractional_max_pool2d; 3d
 * likewise. */
#define NN_FRACTIONAL_(f, ...) \
    TENSOR_CALL_(f, NNFractionalMaxPoolArgs, NN_FRACTIONAL_MAX_POOL_DEFAULTS, .unused_ = false, __VA_ARGS__)
#define nn_fractional_max_pool2d(...) NN_FRACTIONAL_(nn_fractional_max_pool2d_args, __VA_ARGS__)
#define nn_fractional_max_pool3d(...) NN_FRACTIONAL_(nn_fractional_max_pool3d_args, __VA_ARGS__)
TAPEGRAD_API Module *nn_fractional_max_pool2d_args(NNFractionalMaxPoolArgs args);
TAPEGRAD_API Module *nn_fractional_max_pool3d_args(NNFractionalMaxPoolArgs args);

/* ---- normalisation --------------------------------------------------------------------------- */

typedef struct NNBatchNormArgs {
    int64_t num_features;
    double eps, momentum; /* negative momentum: the mean over all batches (PyTorch's None);
                          * in instance_norm: 0 */
    bool affine, track_running_stats;
    TensorByName by_name;
    TensorDtype dtype;
    bool bias; /* with affine */
    TensorFromDefaults from_defaults;
} NNBatchNormArgs;
#define NN_BATCH_NORM_DEFAULTS                                                                               \
    .eps = 1e-5, .momentum = 0.1, .affine = true, .track_running_stats = true, .bias = true, TENSOR_BY_NAME, \
    TENSOR_FROM_DEFAULTS
#define NN_INSTANCE_NORM_DEFAULTS \
    .eps = 1e-5, .momentum = 0.1, .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNBatchNormArgs nn_batch_norm_defaults;
TAPEGRAD_API extern const NNBatchNormArgs nn_instance_norm_defaults;

/* nn_batch_norm1d(C): [N, C] or [N, C, l];  nn_batch_norm2d(C): [N, C, h, w];
 * nn_batch_norm3d(C): [N, C, d, h, w] - y = (x - mean) / sqrt(var + eps) weight + bias, for each channel,
 *     with the batch's statistics in training, and running_mean and running_var in eval.  weight [C] 1,
 *     bias [C] 0; buffers running_mean [C] 0, running_var [C] 1, num_batches_tracked [] i64.
 *     PyTorch's SyncBatchNorm, which shares statistics between processes, is nn_batch_norm in one process;
 *     its state dicts load into an nn_batch_norm.
 * nn_instance_norm1d .. 3d - the same for each sample separately; N may be missing; by default without
 *     parameters and buffers. */
#define NN_BATCH_NORM_(f, ...) \
    TENSOR_CALL_(f, NNBatchNormArgs, NN_BATCH_NORM_DEFAULTS, .num_features = __VA_ARGS__)
#define NN_INSTANCE_NORM_(f, ...) \
    TENSOR_CALL_(f, NNBatchNormArgs, NN_INSTANCE_NORM_DEFAULTS, .num_features = __VA_ARGS__)
#define nn_batch_norm1d(...) NN_BATCH_NORM_(nn_batch_norm1d_args, __VA_ARGS__)
#define nn_batch_norm2d(...) NN_BATCH_NORM_(nn_batch_norm2d_args, __VA_ARGS__)
#define nn_batch_norm3d(...) NN_BATCH_NORM_(nn_batch_norm3d_args, __VA_ARGS__)
#define nn_instance_norm1d(...) NN_INSTANCE_NORM_(nn_instance_norm1d_args, __VA_ARGS__)
#define nn_instance_norm2d(...) NN_INSTANCE_NORM_(nn_instance_norm2d_args, __VA_ARGS__)
#define nn_instance_norm3d(...) NN_INSTANCE_NORM_(nn_instance_norm3d_args, __VA_ARGS__)
#define nn_lazy_batch_norm1d(...) nn_batch_norm1d(NN_LAZY, __VA_ARGS__)
#define nn_lazy_batch_norm2d(...) nn_batch_norm2d(NN_LAZY, __VA_ARGS__)
#define nn_lazy_batch_norm3d(...) nn_batch_norm3d(NN_LAZY, __VA_ARGS__)
#define nn_lazy_instance_norm1d(...) nn_instance_norm1d(NN_LAZY, __VA_ARGS__)
#define nn_lazy_instance_norm2d(...) nn_instance_norm2d(NN_LAZY, __VA_ARGS__)
#define nn_lazy_instance_norm3d(...) nn_instance_norm3d(NN_LAZY, __VA_ARGS__)
TAPEGRAD_API Module *nn_batch_norm1d_args(NNBatchNormArgs args);
TAPEGRAD_API Module *nn_batch_norm2d_args(NNBatchNormArgs args);
TAPEGRAD_API Module *nn_batch_norm3d_args(NNBatchNormArgs args);
TAPEGRAD_API Module *nn_instance_norm1d_args(NNBatchNormArgs args);
TAPEGRAD_API Module *nn_instance_norm2d_args(NNBatchNormArgs args);
TAPEGRAD_API Module *nn_instance_norm3d_args(NNBatchNormArgs args);

typedef struct NNLayerNormArgs {
    bool unused_;
    int64_t normalized_size; /* size of the last dimension */
    double eps;              /* rms_norm: NaN: the dtype's epsilon */
    bool elementwise_affine;
    bool bias;                    /* layer_norm only */
    TensorShape normalized_shape; /* instead of normalized_size: the last dimensions */
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNLayerNormArgs;
#define NN_LAYER_NORM_DEFAULTS \
    .eps = 1e-5, .elementwise_affine = true, .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
#define NN_RMS_NORM_DEFAULTS \
    .eps = (double)NAN, .elementwise_affine = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNLayerNormArgs nn_layer_norm_defaults;
TAPEGRAD_API extern const NNLayerNormArgs nn_rms_norm_defaults;

/* nn_layer_norm(width, .bias = false), nn_layer_norm(.normalized_shape = SHAPE(3, 4)) - y = (x - mean) /
 * sqrt(var + eps) weight + bias over the last dimension(s).   weight 1, bias 0, of that shape.
 * nn_rms_norm(width) - y = x / sqrt(mean x^2 + eps) weight. */
#define nn_layer_norm(...) \
    TENSOR_CALL_(nn_layer_norm_args, NNLayerNormArgs, NN_LAYER_NORM_DEFAULTS, .unused_ = false, __VA_ARGS__)
#define nn_rms_norm(...) \
    TENSOR_CALL_(nn_rms_norm_args, NNLayerNormArgs, NN_RMS_NORM_DEFAULTS, .unused_ = false, __VA_ARGS__)
TAPEGRAD_API Module *nn_layer_norm_args(NNLayerNormArgs args);
TAPEGRAD_API Module *nn_rms_norm_args(NNLayerNormArgs args);

typedef struct NNGroupNormArgs {
    int64_t num_groups, num_channels;
    double eps;
    bool affine;
    TensorByName by_name;
    TensorDtype dtype;
    bool bias; /* with affine */
    TensorFromDefaults from_defaults;
} NNGroupNormArgs;
#define NN_GROUP_NORM_DEFAULTS .eps = 1e-5, .affine = true, .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNGroupNormArgs nn_group_norm_defaults;

/* nn_group_norm(groups, C) - tensor_group_norm, [N, C, ...] -> the same shape.   weight [C] 1, bias [C] 0. */
#define nn_group_norm(...) \
    TENSOR_CALL_(nn_group_norm_args, NNGroupNormArgs, NN_GROUP_NORM_DEFAULTS, .num_groups = __VA_ARGS__)
TAPEGRAD_API Module *nn_group_norm_args(NNGroupNormArgs args);

typedef struct NNResponseNormArgs {
    int64_t size;
    double alpha, beta, k;
    TensorFromDefaults from_defaults;
} NNResponseNormArgs;
#define NN_LOCAL_RESPONSE_NORM_DEFAULTS .alpha = 1e-4, .beta = 0.75, .k = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNResponseNormArgs nn_local_response_norm_defaults;

/* nn_local_response_norm(size) - tensor_local_response_norm. */
#define nn_local_response_norm(...)                                                                \
    TENSOR_CALL_(nn_local_response_norm_args, NNResponseNormArgs, NN_LOCAL_RESPONSE_NORM_DEFAULTS, \
                 .size = __VA_ARGS__)
TAPEGRAD_API Module *nn_local_response_norm_args(NNResponseNormArgs args);

/* ---- dropout --------------------------------------------------------------------------------- */

typedef struct NNDropoutArgs {
    bool unused_;
    double p;
    bool inplace; /* activation.h */
    TensorFromDefaults from_defaults;
} NNDropoutArgs;
#define NN_DROPOUT_DEFAULTS .p = 0.5, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNDropoutArgs nn_dropout_defaults;

/* nn_dropout(0.2), nn_dropout() - in training y_i = 0 with probability p, else x_i / (1 - p); in eval y = x.
 * nn_dropout1d .. 3d - the same for whole channels of [N, C, l], [N, C, h, w], [N, C, d, h, w].
 * nn_alpha_dropout, nn_feature_alpha_dropout - tensor_alpha_dropout, for nets with selu.
 * EVALUE: p outside [0, 1]. */
#define NN_DROPOUT_(f, ...) TENSOR_CALL_(f, NNDropoutArgs, NN_DROPOUT_DEFAULTS, .unused_ = false, __VA_ARGS__)
#define nn_dropout(...) NN_DROPOUT_(nn_dropout_args, __VA_ARGS__)
#define nn_dropout1d(...) NN_DROPOUT_(nn_dropout1d_args, __VA_ARGS__)
#define nn_dropout2d(...) NN_DROPOUT_(nn_dropout2d_args, __VA_ARGS__)
#define nn_dropout3d(...) NN_DROPOUT_(nn_dropout3d_args, __VA_ARGS__)
#define nn_alpha_dropout(...) NN_DROPOUT_(nn_alpha_dropout_args, __VA_ARGS__)
#define nn_feature_alpha_dropout(...) NN_DROPOUT_(nn_feature_alpha_dropout_args, __VA_ARGS__)
TAPEGRAD_API Module *nn_dropout_args(NNDropoutArgs args);
TAPEGRAD_API Module *nn_dropout1d_args(NNDropoutArgs args);
TAPEGRAD_API Module *nn_dropout2d_args(NNDropoutArgs args);
TAPEGRAD_API Module *nn_dropout3d_args(NNDropoutArgs args);
TAPEGRAD_API Module *nn_alpha_dropout_args(NNDropoutArgs args);
TAPEGRAD_API Module *nn_feature_alpha_dropout_args(NNDropoutArgs args);

/* ---- other shapes ---------------------------------------------------------------------------- */

typedef struct NNFlattenArgs {
    bool unused_;
    int start_dim, end_dim;
    TensorFromDefaults from_defaults;
} NNFlattenArgs;
#define NN_FLATTEN_DEFAULTS .start_dim = 1, .end_dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNFlattenArgs nn_flatten_defaults;

/* nn_flatten() - [N, a, b, ...] -> [N, a b ...]; nn_flatten(0): [n]. */
#define nn_flatten(...) \
    TENSOR_CALL_(nn_flatten_args, NNFlattenArgs, NN_FLATTEN_DEFAULTS, .unused_ = false, __VA_ARGS__)
TAPEGRAD_API Module *nn_flatten_args(NNFlattenArgs args);

/* nn_unflatten(1, SHAPE(3, 4)) - tensor_unflatten: one dim becomes several; one of them may be -1.
 * nn_pixel_shuffle, nn_pixel_unshuffle, nn_channel_shuffle - the ops of these names. */
TAPEGRAD_API Module *nn_unflatten(int dim, TensorShape sizes);
TAPEGRAD_API Module *nn_pixel_shuffle(int upscale_factor);
TAPEGRAD_API Module *nn_pixel_unshuffle(int downscale_factor);
TAPEGRAD_API Module *nn_channel_shuffle(int64_t groups);

typedef struct NNPadArgs {
    TensorShape padding; /* before and after the last dim, then the one to its left, ...: DIMS(1, 1, 2, 2) */
    TensorByName by_name;
    TensorPadMode mode;
    double value; /* constant only */
} NNPadArgs;
#define NN_PAD_DEFAULTS .mode = TENSOR_PAD_CONSTANT
TAPEGRAD_API extern const NNPadArgs nn_pad_defaults;

/* nn_pad(DIMS(1, 1), .mode = TENSOR_PAD_REFLECT) - tensor_pad: PyTorch's ZeroPad, ConstantPad, ReflectionPad,
 *     ReplicationPad and CircularPad, all ranks.
 * nn_upsample(.scale_factor = 2, .mode = TENSOR_BILINEAR) - tensor_interpolate and its options. */
#define nn_pad(...) TENSOR_CALL_(nn_pad_args, NNPadArgs, NN_PAD_DEFAULTS, .padding = __VA_ARGS__)
TAPEGRAD_API Module *nn_pad_args(NNPadArgs args);

#define nn_upsample(...)                                                                              \
    TENSOR_CALL_(nn_upsample_args, TensorInterpolateArgs, TENSOR_INTERPOLATE_DEFAULTS, .input = NULL, \
                 __VA_ARGS__)
TAPEGRAD_API Module *nn_upsample_args(TensorInterpolateArgs args);
#define nn_upsampling_nearest2d(...) nn_upsample(__VA_ARGS__, .mode = TENSOR_NEAREST)
#define nn_upsampling_bilinear2d(...) nn_upsample(__VA_ARGS__, .mode = TENSOR_BILINEAR, .align_corners = true)

/* nn_zero_pad2d(1), nn_constant_pad1d(2, 3.5), nn_reflection_pad2d(1), ... - nn_pad with the same size at
 * each end. */
#define NN_ENDS1_(n) SHAPE(n, n)
#define NN_ENDS2_(n) SHAPE(n, n, n, n)
#define NN_ENDS3_(n) SHAPE(n, n, n, n, n, n)
#define nn_zero_pad1d(n) nn_pad(NN_ENDS1_(n))
#define nn_zero_pad2d(n) nn_pad(NN_ENDS2_(n))
#define nn_zero_pad3d(n) nn_pad(NN_ENDS3_(n))
#define nn_constant_pad1d(n, value_) nn_pad(NN_ENDS1_(n), .value = (value_))
#define nn_constant_pad2d(n, value_) nn_pad(NN_ENDS2_(n), .value = (value_))
#define nn_constant_pad3d(n, value_) nn_pad(NN_ENDS3_(n), .value = (value_))
#define nn_reflection_pad1d(n) nn_pad(NN_ENDS1_(n), .mode = TENSOR_PAD_REFLECT)
#define nn_reflection_pad2d(n) nn_pad(NN_ENDS2_(n), .mode = TENSOR_PAD_REFLECT)
#define nn_reflection_pad3d(n) nn_pad(NN_ENDS3_(n), .mode = TENSOR_PAD_REFLECT)
#define nn_replication_pad1d(n) nn_pad(NN_ENDS1_(n), .mode = TENSOR_PAD_REPLICATE)
#define nn_replication_pad2d(n) nn_pad(NN_ENDS2_(n), .mode = TENSOR_PAD_REPLICATE)
#define nn_replication_pad3d(n) nn_pad(NN_ENDS3_(n), .mode = TENSOR_PAD_REPLICATE)
#define nn_circular_pad1d(n) nn_pad(NN_ENDS1_(n), .mode = TENSOR_PAD_CIRCULAR)
#define nn_circular_pad2d(n) nn_pad(NN_ENDS2_(n), .mode = TENSOR_PAD_CIRCULAR)
#define nn_circular_pad3d(n) nn_pad(NN_ENDS3_(n), .mode = TENSOR_PAD_CIRCULAR)

/* nn_unfold(3, .padding = 1), nn_fold(SHAPE(4, 5), 3) - tensor_unfold: the patches of an image as columns,
 * and its adjoint. */
#define nn_unfold(...) \
    TENSOR_CALL_(nn_unfold_args, TensorUnfoldArgs, TENSOR_UNFOLD_DEFAULTS, .input = NULL, __VA_ARGS__)
#define nn_fold(...) \
    TENSOR_CALL_(nn_fold_args, TensorFoldArgs, TENSOR_FOLD_DEFAULTS, .input = NULL, __VA_ARGS__)
TAPEGRAD_API Module *nn_unfold_args(TensorUnfoldArgs args);
TAPEGRAD_API Module *nn_fold_args(TensorFoldArgs args);

#ifdef __cplusplus
}
#endif

#include <tapegrad/nn/activation.h>
#include <tapegrad/nn/attention.h>
#include <tapegrad/nn/loss.h>
#include <tapegrad/nn/transformer.h>
#endif
