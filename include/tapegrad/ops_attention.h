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

#ifdef __cplusplus
}
#endif
#endif
