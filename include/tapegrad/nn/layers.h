/* nn/layers.h - the layers.  Included by nn.h.
 *
 *     Module *net = nn_sequential(
 *         nn_conv2d(1, 16, 3, .padding = 1), nn_batch_norm2d(16), nn_relu(), nn_max_pool2d(2),
 *         nn_flatten(), nn_linear(16 * 14 * 14, 10, .bias = false));
 *
 * Arguments in PyTorch's order, options by name; what is left out has PyTorch's default.  The macros call
 * functions that end in _args.  Each layer says its equation, shapes, parameters in the order of PyTorch's
 * state dict, and their initial values, U(a, b) uniform, N(mean, std) normal; layers with parameters take
 * .dtype, f32 unless given. Constructors give NULL: EVALUE for sizes that make no sense, EDTYPE, ENOMEM. */
#ifndef TAPEGRAD_NN_LAYERS_H
#define TAPEGRAD_NN_LAYERS_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- containers ------------------------------------------------------------------------------ */

#define NN_MODULES_(...)                     \
    ((Module *[]){ NULL, __VA_ARGS__ }) + 1, \
        (int)(sizeof(Module *[]){ NULL, __VA_ARGS__ } / sizeof(Module *)) - 1

/* nn_sequential(a, b, ...) - runs its children in order, named "0", "1", ...; nn_append adds one more,
 * nn_child one with a name. Without a gradient to record, an input is freed as soon as the next child has
 * read it. nn_module_list(a, b, ...) - the same children without a forward: m->children[i].module. */
#define nn_sequential(...) nn_sequential_args(NN_MODULES_(__VA_ARGS__))
#define nn_module_list(...) nn_module_list_args(NN_MODULES_(__VA_ARGS__))
TAPEGRAD_API Module *nn_sequential_args(Module *const *modules, int n);
TAPEGRAD_API Module *nn_module_list_args(Module *const *modules, int n);
TAPEGRAD_API Module *nn_append(void *module, Module *child);

TAPEGRAD_API Module *nn_identity(void); /* x itself */

/* ---- linear ---------------------------------------------------------------------------------- */

typedef struct NNLinearArgs {
    int64_t in_features, out_features;
    bool bias;
    TensorDtype dtype;
} NNLinearArgs;

/* nn_linear(in, out, .bias = true) - y = x weight^T + bias: [..., in] -> [..., out].
 * weight [out, in], bias [out]: U(-k, k), k = 1 / sqrt(in). */
#define nn_linear(...) nn_linear_args((NNLinearArgs){ .bias = true, .in_features = __VA_ARGS__ })
TAPEGRAD_API Module *nn_linear_args(NNLinearArgs args);

typedef struct NNEmbeddingArgs {
    int64_t num_embeddings, embedding_dim;
    int64_t padding_idx; /* from the end when negative; TENSOR_NO_PADDING, the default: none */
    TensorDtype dtype;
} NNEmbeddingArgs;

/* nn_embedding(rows, width) - row i of weight for each index i: integers [...] -> [..., width].
 * weight [rows, width]: N(0, 1); row padding_idx is 0 and gets no gradient. */
#define nn_embedding(...) \
    nn_embedding_args((NNEmbeddingArgs){ .padding_idx = TENSOR_NO_PADDING, .num_embeddings = __VA_ARGS__ })
TAPEGRAD_API Module *nn_embedding_args(NNEmbeddingArgs args);

/* ---- convolution and pooling: sizes once for both directions, or { height, width } as ..._hw ---- */

typedef struct NNConv2dArgs {
    int64_t in_channels, out_channels, kernel_size;
    int64_t stride, padding, dilation, groups; /* 1, 0, 1, 1; padding may be TENSOR_SAME */
    bool bias;
    int64_t kernel_hw[2], stride_hw[2], padding_hw[2], dilation_hw[2];
    TensorDtype dtype;
} NNConv2dArgs;

/* nn_conv2d(in, out, kernel, .stride, .padding, ...) - tensor_conv2d: [N, in, h, w] -> [N, out, oh, ow].
 * weight [out, in / groups, kh, kw], bias [out]: U(-k, k), k = 1 / sqrt(in / groups kh kw). */
#define nn_conv2d(...) \
    nn_conv2d_args(    \
        (NNConv2dArgs){ .stride = 1, .dilation = 1, .groups = 1, .bias = true, .in_channels = __VA_ARGS__ })
TAPEGRAD_API Module *nn_conv2d_args(NNConv2dArgs args);

typedef struct NNPool2dArgs {
    bool unused_;
    int64_t kernel_size, stride, padding; /* stride 0, the default: the kernel's size */
    int64_t dilation;                     /* max only; 1 */
    bool ceil_mode;
    bool count_include_pad;   /* avg only; true */
    int64_t divisor_override; /* avg only */
    int64_t kernel_hw[2], stride_hw[2], padding_hw[2], dilation_hw[2];
} NNPool2dArgs;

/* nn_max_pool2d(2), nn_max_pool2d(.kernel_hw = { 1, 2 }), nn_avg_pool2d(2, .padding = 1) - tensor_max_pool2d,
 * tensor_avg_pool2d. */
#define nn_max_pool2d(...) \
    nn_max_pool2d_args(    \
        (NNPool2dArgs){ .dilation = 1, .count_include_pad = true, .unused_ = false, __VA_ARGS__ })
#define nn_avg_pool2d(...) \
    nn_avg_pool2d_args(    \
        (NNPool2dArgs){ .dilation = 1, .count_include_pad = true, .unused_ = false, __VA_ARGS__ })
TAPEGRAD_API Module *nn_max_pool2d_args(NNPool2dArgs args);
TAPEGRAD_API Module *nn_avg_pool2d_args(NNPool2dArgs args);

/* nn_adaptive_avg_pool2d(1, 1) - means of windows that cover the input: [N, C, h, w] -> [N, C, height,
 * width]. */
TAPEGRAD_API Module *nn_adaptive_avg_pool2d(int64_t height, int64_t width);

/* ---- normalisation --------------------------------------------------------------------------- */

typedef struct NNBatchNormArgs {
    int64_t num_features;
    double eps, momentum; /* 1e-5, 0.1; a negative momentum: the mean over all batches (PyTorch's None) */
    bool affine, track_running_stats; /* true */
    TensorDtype dtype;
} NNBatchNormArgs;

/* nn_batch_norm1d(C): [N, C] or [N, C, l];  nn_batch_norm2d(C): [N, C, h, w] - y = (x - mean) / sqrt(var +
 * eps) weight + bias, a channel at a time, with the statistics of the batch in training and running_mean,
 * running_var in eval. weight [C] 1, bias [C] 0; buffers running_mean [C] 0, running_var [C] 1,
 * num_batches_tracked [] i64. */
#define NN_BATCH_NORM_(f, ...)                        \
    f((NNBatchNormArgs){ .eps = 1e-5,                 \
                         .momentum = 0.1,             \
                         .affine = true,              \
                         .track_running_stats = true, \
                         .num_features = __VA_ARGS__ })
#define nn_batch_norm1d(...) NN_BATCH_NORM_(nn_batch_norm1d_args, __VA_ARGS__)
#define nn_batch_norm2d(...) NN_BATCH_NORM_(nn_batch_norm2d_args, __VA_ARGS__)
TAPEGRAD_API Module *nn_batch_norm1d_args(NNBatchNormArgs args);
TAPEGRAD_API Module *nn_batch_norm2d_args(NNBatchNormArgs args);

typedef struct NNLayerNormArgs {
    bool unused_;
    int64_t normalized_size;       /* of the last dimension */
    double eps;                    /* 1e-5 */
    bool elementwise_affine, bias; /* true */
    TensorShape shape;             /* instead of normalized_size: several last dimensions */
    TensorDtype dtype;
} NNLayerNormArgs;

/* nn_layer_norm(width, .bias = false), nn_layer_norm(.shape = SHAPE(3, 4)) - y = (x - mean) / sqrt(var + eps)
 * weight + bias over the last dimension(s).   weight 1, bias 0, of that shape. */
#define nn_layer_norm(...)                \
    nn_layer_norm_args((NNLayerNormArgs){ \
        .eps = 1e-5, .elementwise_affine = true, .bias = true, .unused_ = false, __VA_ARGS__ })
TAPEGRAD_API Module *nn_layer_norm_args(NNLayerNormArgs args);

/* ---- dropout --------------------------------------------------------------------------------- */

typedef struct NNDropoutArgs {
    bool unused_;
    double p;
} NNDropoutArgs;

/* nn_dropout(0.2), nn_dropout() - in training: elements are 0 with probability p (0.5), else divided by 1 -
 * p; in eval: x itself. nn_dropout2d - whole channels. */
#define nn_dropout(...) nn_dropout_args((NNDropoutArgs){ .p = 0.5, .unused_ = false, __VA_ARGS__ })
#define nn_dropout2d(...) nn_dropout2d_args((NNDropoutArgs){ .p = 0.5, .unused_ = false, __VA_ARGS__ })
TAPEGRAD_API Module *nn_dropout_args(NNDropoutArgs args);
TAPEGRAD_API Module *nn_dropout2d_args(NNDropoutArgs args);

/* ---- activations: elementwise, see ops.def --------------------------------------------------- */

TAPEGRAD_API Module *nn_relu(void);
TAPEGRAD_API Module *nn_silu(void);
TAPEGRAD_API Module *nn_tanh(void);
TAPEGRAD_API Module *nn_sigmoid(void);

typedef struct NNActivationArgs {
    bool unused_;
    double value; /* leaky_relu: the slope, 0.01; elu: alpha, 1 */
} NNActivationArgs;
#define nn_leaky_relu(...) \
    nn_leaky_relu_args((NNActivationArgs){ .value = 0.01, .unused_ = false, __VA_ARGS__ })
#define nn_elu(...) nn_elu_args((NNActivationArgs){ .value = 1, .unused_ = false, __VA_ARGS__ })
TAPEGRAD_API Module *nn_leaky_relu_args(NNActivationArgs args);
TAPEGRAD_API Module *nn_elu_args(NNActivationArgs args);

typedef struct NNGeluArgs {
    bool unused_;
    const char *approximate; /* "none", the default, or "tanh" */
} NNGeluArgs;
#define nn_gelu(...) nn_gelu_args((NNGeluArgs){ .approximate = "none", .unused_ = false, __VA_ARGS__ })
TAPEGRAD_API Module *nn_gelu_args(NNGeluArgs args);

TAPEGRAD_API Module *nn_softmax(int dim);
TAPEGRAD_API Module *nn_log_softmax(int dim);

typedef struct NNFlattenArgs {
    bool unused_;
    int start_dim, end_dim; /* 1, -1 */
} NNFlattenArgs;

/* nn_flatten() - [N, a, b, ...] -> [N, a b ...]; nn_flatten(0): all. */
#define nn_flatten(...) \
    nn_flatten_args((NNFlattenArgs){ .start_dim = 1, .end_dim = -1, .unused_ = false, __VA_ARGS__ })
TAPEGRAD_API Module *nn_flatten_args(NNFlattenArgs args);

/* ---- attention ------------------------------------------------------------------------------- */

typedef struct NNAttentionArgs {
    int64_t embed_dim, num_heads;
    double dropout;   /* of the attention weights, in training */
    bool bias;        /* true */
    bool batch_first; /* x is [N, T, E] instead of [T, N, E] */
    bool causal;      /* position t reads positions 0 .. t only */
    TensorDtype dtype;
} NNAttentionArgs;

/* nn_multihead_attention(E, H, .causal = true) - self-attention: [T, N, E] (or [T, E]) -> the same.  For each
 * head of d = E / H columns y = softmax(q k^T / sqrt(d)) v,   [q k v] = x in_proj_weight^T + in_proj_bias;
 * out = out_proj(all heads side by side). in_proj_weight [3 E, E] U(-k, k), k = sqrt(6 / 4 E); in_proj_bias
 * [3 E] 0; out_proj.weight [E, E] as nn_linear; out_proj.bias [E] 0. Mind PyTorch's default: batches are the
 * second dimension unless .batch_first.  EVALUE: E is no multiple of H. */
#define nn_multihead_attention(...) \
    nn_multihead_attention_args((NNAttentionArgs){ .bias = true, .embed_dim = __VA_ARGS__ })
TAPEGRAD_API Module *nn_multihead_attention_args(NNAttentionArgs args);

#ifdef __cplusplus
}
#endif
#endif
