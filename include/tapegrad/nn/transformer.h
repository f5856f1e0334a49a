/* nn/transformer.h - transformer encoders and decoders.  Included by nn/layers.h.
 *
 *     Module *encoder = nn_transformer_encoder(nn_transformer_encoder_layer(512, 8, .batch_first = true), 6);
 *     Tensor *y = nn_forward(encoder, x);                                // [N, T, 512]
 *     y = nn_forward(encoder, x, nn_generate_square_subsequent_mask(T)); // each position sees those before
 *     it
 *
 *     Module *net = nn_transformer(.d_model = 64, .nhead = 4, .dim_feedforward = 256);
 *     y = nn_call(net, .in = { src, tgt, NULL, tgt_mask, NULL, src_padding, tgt_padding, src_padding });
 *
 * Masks are those of nn_multihead_attention: [L, S] or [N H, L, S], padding masks [N, S]; bool, true masks a
 * key; or floating, added to the scores.  NULL: none.  Batches are the second dimension unless
 * .batch_first. */
#ifndef TAPEGRAD_NN_TRANSFORMER_H
#define TAPEGRAD_NN_TRANSFORMER_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum NNTransformerActivation { NN_TRANSFORMER_RELU, NN_TRANSFORMER_GELU } NNTransformerActivation;

typedef struct NNTransformerLayerArgs {
    int64_t d_model, nhead, dim_feedforward;
    double dropout;
    TensorByName by_name;
    NNTransformerActivation activation;
    double layer_norm_eps;
    bool batch_first, norm_first, bias;
    TensorDtype dtype;
    Tensor *(*activation_fn)(Tensor *x); /* instead of activation; NULL: none */
    TensorFromDefaults from_defaults;
} NNTransformerLayerArgs;
#define NN_TRANSFORMER_LAYER_DEFAULTS                                                              \
    .dim_feedforward = 2048, .dropout = 0.1, .layer_norm_eps = 1e-5, .bias = true, TENSOR_BY_NAME, \
    TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNTransformerLayerArgs nn_transformer_layer_defaults;

/* nn_transformer_encoder_layer(E, heads) - x = norm1(x + attention(x)); x = norm2(x + linear2(act(linear1
 *     x))), with dropout of each term and of act; .norm_first: x + attention(norm1 x), ...
 *     Inputs: src, src_mask, src_key_padding_mask.
 *     self_attn, linear1 [F, E], linear2 [E, F], norm1, norm2, as those modules make them.
 * nn_transformer_decoder_layer(E, heads) - the same with attention to memory in between.
 *     Inputs: tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask.
 *     self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3.
 * EVALUE: sizes below 1, heads that do not divide E, dropout outside [0, 1]. */
#define NN_TRANSFORMER_LAYER_(f, ...) \
    TENSOR_CALL_(f, NNTransformerLayerArgs, NN_TRANSFORMER_LAYER_DEFAULTS, .d_model = __VA_ARGS__)
#define nn_transformer_encoder_layer(...) \
    NN_TRANSFORMER_LAYER_(nn_transformer_encoder_layer_args, __VA_ARGS__)
#define nn_transformer_decoder_layer(...) \
    NN_TRANSFORMER_LAYER_(nn_transformer_decoder_layer_args, __VA_ARGS__)
TAPEGRAD_API Module *nn_transformer_encoder_layer_args(NNTransformerLayerArgs args);
TAPEGRAD_API Module *nn_transformer_decoder_layer_args(NNTransformerLayerArgs args);

typedef struct NNTransformerStackArgs {
    Module *layer;
    int num_layers;
    Module *norm; /* applied to the result; NULL: none */
    TensorFromDefaults from_defaults;
} NNTransformerStackArgs;
#define NN_TRANSFORMER_STACK_DEFAULTS .num_layers = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNTransformerStackArgs nn_transformer_stack_defaults;

/* nn_transformer_encoder(layer, n, .norm = nn_layer_norm(E)) - the layer and n - 1 copies of it (nn_clone)
 *     in sequence, each with the given masks.  Any module with these inputs may be the layer.
 * nn_transformer_decoder - the same with decoder layers.
 * Children layers.0, layers.1, ..., norm.  Takes over the modules.  EVALUE: n below 0, or not given. */
#define NN_TRANSFORMER_STACK_(f, ...) \
    TENSOR_CALL_(f, NNTransformerStackArgs, NN_TRANSFORMER_STACK_DEFAULTS, .layer = __VA_ARGS__)
#define nn_transformer_encoder(...) NN_TRANSFORMER_STACK_(nn_transformer_encoder_args, __VA_ARGS__)
#define nn_transformer_decoder(...) NN_TRANSFORMER_STACK_(nn_transformer_decoder_args, __VA_ARGS__)
TAPEGRAD_API Module *nn_transformer_encoder_args(NNTransformerStackArgs args);
TAPEGRAD_API Module *nn_transformer_decoder_args(NNTransformerStackArgs args);

typedef struct NNTransformerArgs {
    bool unused_;
    int64_t d_model, nhead;
    int num_encoder_layers, num_decoder_layers;
    int64_t dim_feedforward;
    double dropout;
    TensorByName by_name;
    NNTransformerActivation activation;
    double layer_norm_eps;
    bool batch_first, norm_first, bias;
    TensorDtype dtype;
    Tensor *(*activation_fn)(Tensor *x);     /* instead of activation */
    Module *custom_encoder, *custom_decoder; /* instead of the stacks; taken over */
    TensorFromDefaults from_defaults;
} NNTransformerArgs;
#define NN_TRANSFORMER_DEFAULTS                                                                            \
    .d_model = 512, .nhead = 8, .num_encoder_layers = 6, .num_decoder_layers = 6, .dim_feedforward = 2048, \
    .dropout = 0.1, .layer_norm_eps = 1e-5, .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNTransformerArgs nn_transformer_defaults;

/* nn_transformer() - decoder(tgt, encoder(src)), stacks of these layers, each with a final layer norm.
 * Inputs: src, tgt, src_mask, tgt_mask, memory_mask, and the key padding masks of src, tgt and memory.
 * Children encoder, decoder; every parameter of two or more dimensions is then xavier uniform. */
#define nn_transformer(...)                                                                         \
    TENSOR_CALL_(nn_transformer_args, NNTransformerArgs, NN_TRANSFORMER_DEFAULTS, .unused_ = false, \
                 __VA_ARGS__)
TAPEGRAD_API Module *nn_transformer_args(NNTransformerArgs args);

typedef struct NNEncoderCallArgs {
    Module *module;
    Tensor *src, *mask, *src_key_padding_mask;
    bool is_causal; /* position t attends to 0 .. t only */
} NNEncoderCallArgs;
#define NN_TRANSFORMER_ENCODER_FORWARD_DEFAULTS .is_causal = false
TAPEGRAD_API extern const NNEncoderCallArgs nn_transformer_encoder_forward_defaults;

typedef struct NNDecoderCallArgs {
    Module *module;
    Tensor *tgt, *memory, *tgt_mask, *memory_mask, *tgt_key_padding_mask, *memory_key_padding_mask;
    bool tgt_is_causal, memory_is_causal;
} NNDecoderCallArgs;
#define NN_TRANSFORMER_DECODER_FORWARD_DEFAULTS .tgt_is_causal = false
TAPEGRAD_API extern const NNDecoderCallArgs nn_transformer_decoder_forward_defaults;

typedef struct NNTransformerCallArgs {
    Module *module;
    Tensor *src, *tgt, *src_mask, *tgt_mask, *memory_mask, *src_key_padding_mask, *tgt_key_padding_mask,
        *memory_key_padding_mask;
    bool src_is_causal, tgt_is_causal, memory_is_causal;
} NNTransformerCallArgs;
#define NN_TRANSFORMER_FORWARD_DEFAULTS .src_is_causal = false
TAPEGRAD_API extern const NNTransformerCallArgs nn_transformer_forward_defaults;

/* nn_transformer_forward(net, src, tgt, .tgt_is_causal = true), nn_transformer_encoder_forward(m, src, ...),
 * nn_transformer_decoder_forward(m, tgt, memory, ...) - the same calls with inputs by name, and PyTorch's
 * is_causal.  In PyTorch is_causal is a hint about the mask; here it applies the causal mask, in addition to
 * a given one.  The last two take a stack or a layer.
 * EVALUE: another module; is_causal for a stack of other layers than these. */
#define nn_transformer_forward(...)                                                                   \
    TENSOR_CALL_(nn_transformer_forward_args, NNTransformerCallArgs, NN_TRANSFORMER_FORWARD_DEFAULTS, \
                 .module = __VA_ARGS__)
#define nn_transformer_encoder_forward(...)                              \
    TENSOR_CALL_(nn_transformer_encoder_forward_args, NNEncoderCallArgs, \
                 NN_TRANSFORMER_ENCODER_FORWARD_DEFAULTS, .module = __VA_ARGS__)
#define nn_transformer_decoder_forward(...)                              \
    TENSOR_CALL_(nn_transformer_decoder_forward_args, NNDecoderCallArgs, \
                 NN_TRANSFORMER_DECODER_FORWARD_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_transformer_forward_args(NNTransformerCallArgs args);
TAPEGRAD_API Tensor *nn_transformer_encoder_forward_args(NNEncoderCallArgs args);
TAPEGRAD_API Tensor *nn_transformer_decoder_forward_args(NNDecoderCallArgs args);

/* nn_generate_square_subsequent_mask - f32 [n, n]: -inf above the diagonal, 0 elsewhere. */
TAPEGRAD_API Tensor *nn_generate_square_subsequent_mask(int64_t n);

#ifdef __cplusplus
}
#endif
#endif
