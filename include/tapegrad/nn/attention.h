/* nn/attention.h - multi-head attention.  Included by nn/layers.h.
 *
 *     Module *self = nn_multihead_attention(512, 8, .batch_first = true, .causal = true);
 *     Tensor *y = nn_forward(self, x);                                         // x attends to itself
 *
 *     Tensor *w;
 *     y = nn_multihead_attention_forward(cross, x, memory, memory, .key_padding_mask = pad, .weights = &w);
 */
#ifndef TAPEGRAD_NN_ATTENTION_H
#define TAPEGRAD_NN_ATTENTION_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NNAttentionArgs {
    int64_t embed_dim, num_heads;
    double dropout; /* of the attention weights, in training */
    bool bias, add_bias_kv, add_zero_attn;
    int64_t kdim, vdim; /* widths of key and value; 0: embed_dim */
    bool batch_first;   /* [N, T, E] instead of [T, N, E] */
    bool causal;        /* position t attends to positions 0 .. t only */
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNAttentionArgs;
#define NN_MULTIHEAD_ATTENTION_DEFAULTS .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNAttentionArgs nn_multihead_attention_defaults;

/* nn_multihead_attention(E, H) - for each head, of d = E / H columns: y = softmax(q k^T / sqrt(d)) v, with
 *   q = query W_q^T + b_q,   k = key W_k^T + b_k,   v = value W_v^T + b_v
 * then out_proj of the concatenated heads.  Inputs [L, N, E], [S, N, kdim], [S, N, vdim] give [L, N, E]; with
 * .batch_first the batch N comes first, as in PyTorch.  nn_forward takes x as query, key and value.
 *
 *   in_proj_weight          [3 E, E], W_q, W_k and W_v: xavier uniform; where kdim or vdim differs from E:
 *                           q_proj_weight [E, E], k_proj_weight [E, kdim], v_proj_weight [E, vdim]
 *   in_proj_bias            [3 E]: 0
 *   bias_k, bias_v          [1, 1, E]: xavier normal; with .add_bias_kv, one more position
 *   out_proj.weight, .bias  [E, E] as in nn_linear, [E]: 0
 *
 * EVALUE: E is no multiple of H; a size below 1. */
#define nn_multihead_attention(...)                                                             \
    TENSOR_CALL_(nn_multihead_attention_args, NNAttentionArgs, NN_MULTIHEAD_ATTENTION_DEFAULTS, \
                 .embed_dim = __VA_ARGS__)
TAPEGRAD_API Module *nn_multihead_attention_args(NNAttentionArgs args);

typedef struct NNAttentionCallArgs {
    Module *module;
    Tensor *query, *key,
        *value; /* [L, N, E], [S, N, kdim], [S, N, vdim], or all without N; batch_first: N first */
    Tensor *key_padding_mask;  /* [N, S] (or [S]): bool, true masks a key; or floating, added to the scores */
    Tensor *attn_mask;         /* [L, S] or [N H, L, S], likewise */
    Tensor **weights;          /* receives the weights [N, L, S']; NULL: not computed */
    bool average_attn_weights; /* over the heads; false: [N, H, L, S'] */
    bool is_causal;            /* as .causal of the module, for this call */
    TensorFromDefaults from_defaults;
} NNAttentionCallArgs;
#define NN_MULTIHEAD_ATTENTION_FORWARD_DEFAULTS .average_attn_weights = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNAttentionCallArgs nn_multihead_attention_forward_defaults;

/* nn_multihead_attention_forward(m, query, key, value, ...) - runs m with options, those of
 * tensor_multi_head_attention_forward, which also defines S'.
 * EVALUE: m is not an nn_multihead_attention. */
#define nn_multihead_attention_forward(...)                                \
    TENSOR_CALL_(nn_multihead_attention_forward_args, NNAttentionCallArgs, \
                 NN_MULTIHEAD_ATTENTION_FORWARD_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_multihead_attention_forward_args(NNAttentionCallArgs args);

#ifdef __cplusplus
}
#endif
#endif
