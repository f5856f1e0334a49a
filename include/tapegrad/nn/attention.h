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
    bool causal;        /* position t reads positions 0 .. t only */
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNAttentionArgs;
#define NN_MULTIHEAD_ATTENTION_DEFAULTS .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNAttentionArgs nn_multihead_attention_defaults;

/* nn_multihead_attention(E, H) - for each head, of d = E / H columns: y = softmax(q k^T / sqrt(d)) v, with
 *   q = query W_q^T + b_q,   k = key W_k^T + b_k,   v = value W_v^T + b_v
 * and out_proj of all heads side by side.
 * nn_forward takes x for all three.  As in PyTorch, batches are the second dimension unless .batch_first.
 *
 *   in_proj_weight          [3 E, E], W_q, W_k and W_v: xavier uniform; where kdim or vdim differs from E:
 *                           q_proj_weight [E, E], k_proj_weight [E, kdim], v_proj_weight [E, vdim]
 *   in_proj_bias            [3 E]: 0
 *   bias_k, bias_v          [1, 1, E]: xavier normal; with .add_bias_kv, one more position
 *   out_proj.weight, .bias  [E, E] as nn_linear's, [E]: 0
 *
 * EVALUE: E is no multiple of H; sizes. */
#define nn_multihead_attention(...)                                                             \
    TENSOR_CALL_(nn_multihead_attention_args, NNAttentionArgs, NN_MULTIHEAD_ATTENTION_DEFAULTS, \
                 .embed_dim = __VA_ARGS__)
TAPEGRAD_API Module *nn_multihead_attention_args(NNAttentionArgs args);

typedef struct NNAttentionCallArgs {
    Module *module;
    Tensor *query, *key,
        *value; /* [L, N, E], [S, N, kdim], [S, N, vdim], or all without N; batch_first: N first */
    Tensor *key_padding_mask;  /* [N, S] (or [S]): bool, true is ignored; or floating, and added */
    Tensor *attn_mask;         /* [L, S] or [N H, L, S], likewise */
    Tensor **weights;          /* need_weights: receives [N, L, S']; NULL: they are not formed */
    bool average_attn_weights; /* false: [N, H, L, S'] */
    bool is_causal;            /* as .causal of the module, for this call */
    TensorFromDefaults from_defaults;
} NNAttentionCallArgs;
#define NN_MULTIHEAD_ATTENTION_FORWARD_DEFAULTS .average_attn_weights = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNAttentionCallArgs nn_multihead_attention_forward_defaults;

/* nn_multihead_attention_forward(m, query, key, value, ...) - see tensor_multi_head_attention_forward.
 * EVALUE: m is another module. */
#define nn_multihead_attention_forward(...)                                \
    TENSOR_CALL_(nn_multihead_attention_forward_args, NNAttentionCallArgs, \
                 NN_MULTIHEAD_ATTENTION_FORWARD_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_multihead_attention_forward_args(NNAttentionCallArgs args);

#ifdef __cplusplus
}
#endif
#endif
