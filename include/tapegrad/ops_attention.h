/* ops_attention.h - attention and what surrounds it.  Included by ops.h.
 *
 *     Tensor *y = tensor_scaled_dot_product_attention(q, k, v, .is_causal = true);        // q, k, v [batch, heads, length, width]
 *
 * Results are the same bits on any number of threads. */
#ifndef TAPEGRAD_OPS_ATTENTION_H
#define TAPEGRAD_OPS_ATTENTION_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TensorAttentionArgs {
    Tensor *query, *key, *value, *attn_mask;
    double dropout_p;                       /* 0 */
    bool is_causal;
    double scale;                           /* 0: 1 / sqrt(E) */
    bool enable_gqa;
} TensorAttentionArgs;

/* tensor_scaled_dot_product_attention - y = softmax(scale q k^T + mask) v.
 *   query [..., L, E], key [..., S, E], value [..., S, V] -> [..., L, V]; the dimensions in front broadcast.
 *   attn_mask broadcasts to [..., L, S].  bool: true takes part (key_padding_mask of multi-head attention is the other way
 *     round).  Floating: is added, and may have a gradient.
 *   is_causal: row i sees columns 0..i, whatever L and S are; not together with a mask (EVALUE).
 *   dropout_p: probabilities are 0 with probability p, else divided by 1 - p; always, so pass 0 when not training.
 *   enable_gqa: the third dimension from the end counts heads; those of key and of value divide those of query, and each
 *     serves as many neighbouring heads of query.
 * A row that sees nothing gives 0, and passes no gradient on, in every path.
 * On the CPU the scores exist a block of rows at a time, never as [L, S], unless dropout or a mask's gradient want them.
 * ESHAPE: operands do not fit.  EDTYPE: query, key and value differ in dtype, or are not floating. */
#define tensor_scaled_dot_product_attention(...) tensor_scaled_dot_product_attention_args((TensorAttentionArgs){ .query = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_scaled_dot_product_attention_args(TensorAttentionArgs args);

typedef struct TensorMultiHeadAttentionArgs {
    Tensor *query, *key, *value;
    int64_t embed_dim_to_check, num_heads;
    Tensor *in_proj_weight, *in_proj_bias;
    Tensor *bias_k, *bias_v;
    bool add_zero_attn;
    double dropout_p;
    Tensor *out_proj_weight, *out_proj_bias;
    bool training;                          /* true: dropout_p applies */
    Tensor *key_padding_mask;
    Tensor **weights;                       /* need_weights: receives the attention weights; NULL: they are not formed */
    Tensor *attn_mask;
    bool average_attn_weights;              /* true */
    bool is_causal;
} TensorMultiHeadAttentionArgs;

/* tensor_multi_head_attention_forward - attention of H = num_heads heads of E / H columns each, between affine maps.
 *   query [L, N, E], key and value [S, N, E], or all without N -> [L, N, E], or [L, E]
 *   in_proj_weight [3 E, E]: of query, key and value, one below the other; in_proj_bias [3 E]; out_proj_weight [E, E], out_proj_bias [E]
 *   bias_k, bias_v [1, 1, E], both or neither: one more position of key and value; add_zero_attn: one more of zeros
 *   key_padding_mask [N, S] (or [S]), attn_mask [L, S] or [N H, L, S]: bool: true is ignored (attn_mask of
 *     scaled_dot_product_attention is the other way round).  Floating: is added.
 *   is_causal: row i sees positions 0..i; an attn_mask that is given, too, is to say the same, and is used alone.
 *   weights: [N, L, S'] (or [L, S']), the mean over the heads, or with average_attn_weights false [N, H, L, S'].
 * A row that sees nothing has weights 0, with and without weights.   ESHAPE: operands do not fit, E is not embed_dim_to_check
 * (where that is not 0), or the heads do not divide it. */
#define tensor_multi_head_attention_forward(...) tensor_multi_head_attention_forward_args( \
    (TensorMultiHeadAttentionArgs){ .training = true, .average_attn_weights = true, .query = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_multi_head_attention_forward_args(TensorMultiHeadAttentionArgs args);

typedef struct TensorRotaryArgs {
    Tensor *input, *cos, *sin;
    bool interleaved;
} TensorRotaryArgs;

/* tensor_rotary_embedding - pairs of columns turned by an angle for each position and pair.
 *   (a, b) -> (a cos - b sin, a sin + b cos)
 *   input [..., T, E]; cos, sin [..., T, R / 2], which broadcast to it; the first R columns are turned, the others stay.
 *   Pairs are columns (i, i + R / 2), or with interleaved (2 i, 2 i + 1): GPT-NeoX's and Hugging Face's layout, or Llama's own.
 * Lengths stay as they are; the gradient is turned back.  ESHAPE: operands do not fit. */
#define tensor_rotary_embedding(...) tensor_rotary_embedding_args((TensorRotaryArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_rotary_embedding_args(TensorRotaryArgs args);

#ifdef __cplusplus
}
#endif
#endif
