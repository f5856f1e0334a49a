/* ops/sequence.h - recurrent nets, whole sequences and single steps; attention.  Included by ops.h.
 *
 *     Tensor *h_n, *c_n;       // two layers of 200, with the parameters of nn_lstm or your own
 *     Tensor *y = tensor_lstm(x, h0, c0, TENSORS(w_ih0, w_hh0, b_ih0, b_hh0, w_ih1, w_hh1, b_ih1, b_hh1),
 *                             .num_layers = 2, .h_n = &h_n, .c_n = &c_n);
 *                              // x [T, N, 100] -> y [T, N, 200], h_n and c_n [2, N, 200]
 *     h = tensor_lstm_cell(x_t, h, c, w_ih, w_hh, b_ih, b_hh, .c_next = &c);
 *     Tensor *z = tensor_scaled_dot_product_attention(q, k, v, .is_causal = true);
 *                              // q, k, v [batch, heads, length, width]
 *
 * Letters: T steps, N batch, H hidden size, L layers, D directions (2 if bidirectional, else 1); s(a) is the
 * sigmoid of a, and * is elementwise.
 *
 *     rnn     h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu       w_ih [H, in], w_hh [H, H], biases [H]
 *
 *     gru     r = s(W_ir x + b_ir + W_hr h + b_hr)                    rows r, z, n: w_ih [3 H, in]
 *             z = s(W_iz x + b_iz + W_hz h + b_hz)
 *             n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
 *             h' = (1 - z) * n + z * h
 *
 *     lstm    [i f g o] = W_ih x + b_ih + W_hh h + b_hh               rows i, f, g, o: w_ih [4 H, in]
 *             c' = s(f) * c + s(i) * tanh(g)
 *             h' = s(o) * tanh(c')
 *
 * The rows of a weight or bias hold the gates in the order given.  There are two biases, as in PyTorch; in a
 * gru, r multiplies the second one too.
 *
 * Operands of one call are floating and have one dtype (EDTYPE).  f16 and bf16 compute in f32, and round
 * once, after the last layer; on a GPU after each product and each step, as in PyTorch.  ESHAPE: shapes do
 * not fit.  Results have the same bits with any number of threads. */
#ifndef TAPEGRAD_OPS_SEQUENCE_H
#define TAPEGRAD_OPS_SEQUENCE_H

#include <tapegrad/ops/shape.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one step -----------------------------------------------------------------------------------
 * input [N, in], hx [N, H] -> [N, H]; or all without N.  hx (and cx) may be NULL: zeros.  Each bias may be
 * NULL. */
TAPEGRAD_API Tensor *tensor_rnn_tanh_cell(Tensor *input, Tensor *hx, Tensor *w_ih, Tensor *w_hh, Tensor *b_ih,
                                          Tensor *b_hh);
TAPEGRAD_API Tensor *tensor_rnn_relu_cell(Tensor *input, Tensor *hx, Tensor *w_ih, Tensor *w_hh, Tensor *b_ih,
                                          Tensor *b_hh);
TAPEGRAD_API Tensor *tensor_gru_cell(Tensor *input, Tensor *hx, Tensor *w_ih, Tensor *w_hh, Tensor *b_ih,
                                     Tensor *b_hh);

typedef struct TensorLstmCellArgs {
    Tensor *input, *hx, *cx, *w_ih, *w_hh, *b_ih, *b_hh;
    Tensor **c_next; /* receives c'; may be NULL */
} TensorLstmCellArgs;
TAPEGRAD_API extern const TensorLstmCellArgs tensor_lstm_cell_defaults;

/* tensor_lstm_cell - returns h'. */
#define tensor_lstm_cell(...) tensor_lstm_cell_args((TensorLstmCellArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_lstm_cell_args(TensorLstmCellArgs args);

/* ---- sequences -------------------------------------------------------------------------------
 *
 *   input          [T, N, in]; .batch_first: [N, T, in]; without N: [T, in]
 *   h0, c0         [L D, N, H] or NULL for zeros: layer 0 forward, layer 0 backward, layer 1 forward, ...
 *   params         for each layer and direction, in the order of the states: w_ih, w_hh, b_ih, b_hh, or
 *                  without .has_biases w_ih, w_hh; the order of torch.nn's state dict: weight_ih_l0,
 *                  weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, ...  For layer 1 and above
 *                  in is D H
 *   result         [T, N, D H], the last layer's h of each step: forward, then backward direction;
 *                  .batch_first: [N, T, D H] (a view)
 *   h_n, c_n       [L D, N, H], the states after the last step: at T - 1 forward, at 0 backward
 *
 * .dropout with .train applies dropout to the output of every layer but the last.
 * An lstm with projections is recognized by w_hh [4 H, P]: each layer's list then ends with w_hr [P, H], h is
 * W_hr (s(o) * tanh(c')), the result [T, N, D P], and h0 and h_n are [L D, N, P].
 * ESHAPE: T = 0.
 * EVALUE: not the number of params for has_biases, num_layers and bidirectional; more than 61 params of an
 * lstm (15 layers with biases, or 7 bidirectional ones) or 62 of the others; dropout outside [0, 1]. */
typedef struct TensorRnnArgs {
    Tensor *input, *h0;
    TensorList params;
    bool has_biases;
    int num_layers;
    double dropout;
    bool train, bidirectional, batch_first;
    Tensor **h_n; /* may be NULL */
    TensorFromDefaults from_defaults;
} TensorRnnArgs;
#define TENSOR_RNN_DEFAULTS                                                                   \
    .has_biases = true, .num_layers = 1, .dropout = 0, .train = true, .bidirectional = false, \
    .batch_first = false, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorRnnArgs tensor_rnn_defaults;

typedef struct TensorLstmArgs {
    Tensor *input, *h0, *c0;
    TensorList params;
    bool has_biases;
    int num_layers;
    double dropout;
    bool train, bidirectional, batch_first;
    Tensor **h_n, **c_n; /* may be NULL */
    TensorFromDefaults from_defaults;
} TensorLstmArgs;
#define TENSOR_LSTM_DEFAULTS TENSOR_RNN_DEFAULTS
TAPEGRAD_API extern const TensorLstmArgs tensor_lstm_defaults;

#define tensor_rnn_tanh(...) \
    TENSOR_CALL_(tensor_rnn_tanh_args, TensorRnnArgs, TENSOR_RNN_DEFAULTS, .input = __VA_ARGS__)
#define tensor_rnn_relu(...) \
    TENSOR_CALL_(tensor_rnn_relu_args, TensorRnnArgs, TENSOR_RNN_DEFAULTS, .input = __VA_ARGS__)
#define tensor_gru(...) \
    TENSOR_CALL_(tensor_gru_args, TensorRnnArgs, TENSOR_RNN_DEFAULTS, .input = __VA_ARGS__)
#define tensor_lstm(...) \
    TENSOR_CALL_(tensor_lstm_args, TensorLstmArgs, TENSOR_LSTM_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_rnn_tanh_args(TensorRnnArgs args);
TAPEGRAD_API Tensor *tensor_rnn_relu_args(TensorRnnArgs args);
TAPEGRAD_API Tensor *tensor_gru_args(TensorRnnArgs args);
TAPEGRAD_API Tensor *tensor_lstm_args(TensorLstmArgs args);

/* ---- attention ------------------------------------------------------------------------------- */

typedef struct TensorAttentionArgs {
    Tensor *query, *key, *value, *attn_mask;
    double dropout_p;
    bool is_causal;
    double scale; /* 0: 1 / sqrt(E) */
    bool enable_gqa;
    bool masked, fused; /* private */
} TensorAttentionArgs;
#define TENSOR_ATTENTION_DEFAULTS .dropout_p = 0, .is_causal = false, .scale = 0, .enable_gqa = false
TAPEGRAD_API extern const TensorAttentionArgs tensor_attention_defaults;

/* tensor_scaled_dot_product_attention - y = softmax(scale q k^T + mask) v.
 *
 *   query [..., L, E], key [..., S, E], value [..., S, V] -> [..., L, V]; leading dimensions broadcast
 *   attn_mask broadcasts to [..., L, S]
 *     bool      true: attend (the opposite of masks of multi-head attention)
 *     f32, or query's dtype: added to the scores; may have a gradient
 *
 * is_causal: row i attends to columns 0..i, for any L and S; EVALUE together with a mask.
 * dropout_p: dropout of the probabilities, always applied: pass 0 in eval.
 * enable_gqa: the third dimension from the end counts heads; the number of key's and value's heads divides
 * that of query's, and each serves that many adjacent heads of query.
 * A fully masked row gives 0, with gradient 0.  On the CPU the scores are computed a block of rows at a time,
 * never as [L, S], except for dropout or a mask's gradient, and terms of a softmax below e^-87 (f64: e^-708)
 * of the largest, about where normal numbers end, count as 0.
 * ESHAPE: operands do not fit.  EDTYPE: query, key and value differ in dtype, or are not floating. */
#define tensor_scaled_dot_product_attention(...)                                                           \
    TENSOR_CALL_(tensor_scaled_dot_product_attention_args, TensorAttentionArgs, TENSOR_ATTENTION_DEFAULTS, \
                 .query = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_scaled_dot_product_attention_args(TensorAttentionArgs args);

typedef struct TensorMultiHeadAttentionArgs {
    Tensor *query, *key, *value;
    int64_t embed_dim_to_check, num_heads;
    Tensor *in_proj_weight, *in_proj_bias;
    Tensor *bias_k, *bias_v;
    bool add_zero_attn;
    double dropout_p;
    Tensor *out_proj_weight, *out_proj_bias;
    bool training; /* apply dropout_p */
    Tensor *key_padding_mask;
    Tensor **weights; /* receives the attention weights; NULL: not computed */
    Tensor *attn_mask;
    bool use_separate_proj_weight;
    Tensor *q_proj_weight, *k_proj_weight, *v_proj_weight;
    bool average_attn_weights, is_causal;
    bool need_weights; /* set by .weights; set it yourself in tensor_apply_text */
    TensorFromDefaults from_defaults;
} TensorMultiHeadAttentionArgs;
#define TENSOR_MULTI_HEAD_ATTENTION_DEFAULTS                                             \
    .embed_dim_to_check = 0, .add_zero_attn = false, .dropout_p = 0, .training = true,   \
    .use_separate_proj_weight = false, .average_attn_weights = true, .is_causal = false, \
    TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorMultiHeadAttentionArgs tensor_multi_head_attention_defaults;

/* tensor_multi_head_attention_forward - affine projections, attention of H = num_heads heads with E / H
 * columns each, and an output projection.
 *
 *   query               [L, N, E], or [L, E] without a batch; the result has the same shape
 *   key, value          [S, N, E], or [S, E]
 *   in_proj_weight      [3 E, E]: W_q, W_k and W_v, stacked; in_proj_bias [3 E] or NULL
 *   out_proj_weight     [E, E]; out_proj_bias [E] or NULL
 *   bias_k, bias_v      [1, 1, E], both or neither: append a position to key and value
 *   add_zero_attn       appends another one, of zeros
 *   key_padding_mask    [N, S] or [S]
 *   attn_mask           [L, S] or [N H, L, S]
 *   weights             [N, L, S'] (or [L, S']), the mean over the heads; with average_attn_weights false
 *                       [N, H, L, S'].  S' is S plus the appended positions
 *
 * use_separate_proj_weight: q_proj_weight [E, E], k_proj_weight [E, K] and v_proj_weight [E, V] instead
 * of in_proj_weight, which is NULL; key is [S, N, K] and value [S, N, V].
 * Masks: bool true masks a key (the opposite of scaled_dot_product_attention); floating: added to scores.
 * is_causal: row i attends to positions 0..i; with an attn_mask it is a hint, and only the mask counts.
 * A fully masked row has weights 0, whether or not weights are returned.
 * ESHAPE: operands do not fit, E is not embed_dim_to_check (unless that is 0), or H does not divide E.
 * EVALUE: not the projection weights that use_separate_proj_weight requires. */
#define tensor_multi_head_attention_forward(...)                                         \
    TENSOR_CALL_(tensor_multi_head_attention_forward_args, TensorMultiHeadAttentionArgs, \
                 TENSOR_MULTI_HEAD_ATTENTION_DEFAULTS, .query = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_multi_head_attention_forward_args(TensorMultiHeadAttentionArgs args);

typedef struct TensorRotaryArgs {
    Tensor *input, *cos, *sin;
    bool interleaved;
} TensorRotaryArgs;
#define TENSOR_ROTARY_DEFAULTS .interleaved = false
TAPEGRAD_API extern const TensorRotaryArgs tensor_rotary_defaults;

/* tensor_rotary_embedding - rotates pairs of columns by an angle for each position and pair:
 *
 *     (a, b) -> (a cos - b sin, a sin + b cos)
 *
 * input [..., T, E]; cos, sin [..., T, R / 2], which broadcast to it.  The first R columns are rotated, the
 * others copied.  Pairs are columns (i, i + R / 2), as in GPT-NeoX and Hugging Face, or with interleaved (2
 * i, 2 i + 1), as in Llama.  The gradient is rotated by the opposite angle.
 * ESHAPE: operands do not fit. */
#define tensor_rotary_embedding(...) \
    TENSOR_CALL_(tensor_rotary_embedding_args, TensorRotaryArgs, TENSOR_ROTARY_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_rotary_embedding_args(TensorRotaryArgs args);

#ifdef __cplusplus
}
#endif
#endif
