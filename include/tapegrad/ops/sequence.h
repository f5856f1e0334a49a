/* ops/sequence.h - recurrent nets: whole sequences, fused, and single steps; attention.  Included by ops.h.
 *
 *     Tensor *h_n, *c_n;                                       // two layers of 200, w.. from nn_lstm or
 * one's own Tensor *y = tensor_lstm(x, h0, c0, TENSORS(w_ih0, w_hh0, b_ih0, b_hh0, w_ih1, w_hh1, b_ih1,
 * b_hh1), .num_layers = 2, .h_n = &h_n, .c_n = &c_n);       // x [T, N, 100] -> y [T, N, 200], h_n and c_n
 * [2, N, 200] h = tensor_lstm_cell(x_t, h, c, w_ih, w_hh, b_ih, b_hh, &c);
 *
 * Letters: T steps, N batch, H hidden size, L layers, D directions (2 if bidirectional, else 1).  s(a) =
 * sigmoid a, * elementwise.
 *
 *     rnn     h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu                       w_ih [H, in], w_hh [H,
 * H], biases [H] gru     r = s(W_ir x + b_ir + W_hr h + b_hr),  z = s(W_iz x + b_iz + W_hz h + b_hz) n =
 * tanh(W_in x + b_in + r * (W_hn h + b_hn)),  h' = (1 - z) * n + z * h   rows r, z, n:    w_ih [3 H, in] lstm
 * [i f g o] = W_ih x + b_ih + W_hh h + b_hh c' = s(f) * c + s(i) * tanh(g),  h' = s(o) * tanh(c') rows i, f,
 * g, o: w_ih [4 H, in]
 *
 * The gates of a weight or bias lie one below the other in the order given.  There are two biases, as in
 * PyTorch; r multiplies the second one too.  All take floating operands (EDTYPE otherwise); those of
 * different dtypes are promoted.  f16 and bf16 compute in f32, and round once, at the end of all layers.
 * ESHAPE: shapes that do not fit each other. Recurrent nets run on the CPU only.
 *
 *     Tensor *y = tensor_scaled_dot_product_attention(q, k, v, .is_causal = true);        // q, k, v [batch,
 * heads, length, width]
 *
 * Results are the same bits on any number of threads. */
#ifndef TAPEGRAD_OPS_SEQUENCE_H
#define TAPEGRAD_OPS_SEQUENCE_H

#include <tapegrad/ops/shape.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one step -----------------------------------------------------------------------------------
 * input [N, in], hx [N, H] -> [N, H]; or without N.  hx (and cx) may be NULL: zeros.  Biases may be NULL,
 * each by itself. tensor_lstm_cell returns h' and puts c' into *c_next, if that is not NULL. */
TAPEGRAD_API Tensor *tensor_rnn_tanh_cell(Tensor *input, Tensor *hx, Tensor *w_ih, Tensor *w_hh, Tensor *b_ih,
                                          Tensor *b_hh);
TAPEGRAD_API Tensor *tensor_rnn_relu_cell(Tensor *input, Tensor *hx, Tensor *w_ih, Tensor *w_hh, Tensor *b_ih,
                                          Tensor *b_hh);
TAPEGRAD_API Tensor *tensor_gru_cell(Tensor *input, Tensor *hx, Tensor *w_ih, Tensor *w_hh, Tensor *b_ih,
                                     Tensor *b_hh);
TAPEGRAD_API Tensor *tensor_lstm_cell(Tensor *input, Tensor *hx, Tensor *cx, Tensor *w_ih, Tensor *w_hh,
                                      Tensor *b_ih, Tensor *b_hh, Tensor **c_next);

/* ---- sequences ----------------------------------------------------------------------------------
 * input [T, N, in] -> output [T, N, D H], what the last layer's h was at each step: forward, then backward
 * direction. .batch_first: [N, T, in] -> [N, T, D H] (a view); the states are as ever.  Without N: [T, in] ->
 * [T, D H], states [L D, H]. h0, h_n [L D, N, H] (c0, c_n of an lstm the same): layer 0 forward, layer 0
 * backward, layer 1 forward, ...  h0, c0 NULL: zeros. h_n is h after the last step: at T - 1 forward, at 0
 * backward. params: for each layer and direction, in the order of the states: w_ih, w_hh, b_ih, b_hh (without
 * .has_biases: w_ih, w_hh); that is the order of torch.nn's state dict, weight_ih_l0, weight_hh_l0,
 * bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, ... in of layer 1 and above is D H. .dropout with .train:
 * elements of the output of every layer but the last are dropped before the next one reads them. lstm with
 * projections: w_hh is [4 H, P] and each layer's list ends with w_hr [P, H]; h is W_hr (s(o) * tanh(c')), so
 * that output is [T, N, D P], and h0 and h_n [L D, N, P].  The shape of w_hh tells. ESHAPE: T = 0.  EVALUE:
 * params of another number than has_biases, num_layers and bidirectional ask for; more than 61 (lstm; 15
 * layers, or 7 of two directions) or 62; dropout outside [0, 1]. */
typedef struct TensorRnnArgs {
    Tensor *input, *h0;
    TensorList params;
    bool has_biases; /* true */
    int num_layers;  /* 1 */
    double dropout;
    bool train; /* true */
    bool bidirectional, batch_first;
    Tensor **h_n; /* receives it; may be NULL */
} TensorRnnArgs;

typedef struct TensorLstmArgs {
    Tensor *input, *h0, *c0;
    TensorList params;
    bool has_biases;
    int num_layers;
    double dropout;
    bool train;
    bool bidirectional, batch_first;
    Tensor **h_n, **c_n;
} TensorLstmArgs;

#define TENSOR_RNN_(function, struct_, ...) \
    function((struct_){ .has_biases = true, .num_layers = 1, .train = true, .input = __VA_ARGS__ })
#define tensor_rnn_tanh(...) TENSOR_RNN_(tensor_rnn_tanh_args, TensorRnnArgs, __VA_ARGS__)
#define tensor_rnn_relu(...) TENSOR_RNN_(tensor_rnn_relu_args, TensorRnnArgs, __VA_ARGS__)
#define tensor_gru(...) TENSOR_RNN_(tensor_gru_args, TensorRnnArgs, __VA_ARGS__)
#define tensor_lstm(...) TENSOR_RNN_(tensor_lstm_args, TensorLstmArgs, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_rnn_tanh_args(TensorRnnArgs args);
TAPEGRAD_API Tensor *tensor_rnn_relu_args(TensorRnnArgs args);
TAPEGRAD_API Tensor *tensor_gru_args(TensorRnnArgs args);
TAPEGRAD_API Tensor *tensor_lstm_args(TensorLstmArgs args);

/* ---- attention ------------------------------------------------------------------------------- */

typedef struct TensorAttentionArgs {
    Tensor *query, *key, *value, *attn_mask;
    double dropout_p; /* 0 */
    bool is_causal;
    double scale; /* 0: 1 / sqrt(E) */
    bool enable_gqa;
} TensorAttentionArgs;

/* tensor_scaled_dot_product_attention - y = softmax(scale q k^T + mask) v.
 *   query [..., L, E], key [..., S, E], value [..., S, V] -> [..., L, V]; the dimensions in front broadcast.
 *   attn_mask broadcasts to [..., L, S].  bool: true takes part (key_padding_mask of multi-head attention is
 * the other way round).  Floating: is added, and may have a gradient. is_causal: row i sees columns 0..i,
 * whatever L and S are; not together with a mask (EVALUE). dropout_p: probabilities are 0 with probability p,
 * else divided by 1 - p; always, so pass 0 when not training. enable_gqa: the third dimension from the end
 * counts heads; those of key and of value divide those of query, and each serves as many neighbouring heads
 * of query. A row that sees nothing gives 0, and passes no gradient on, in every path. On the CPU the scores
 * exist a block of rows at a time, never as [L, S], unless dropout or a mask's gradient want them. ESHAPE:
 * operands do not fit.  EDTYPE: query, key and value differ in dtype, or are not floating. */
#define tensor_scaled_dot_product_attention(...) \
    tensor_scaled_dot_product_attention_args((TensorAttentionArgs){ .query = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_scaled_dot_product_attention_args(TensorAttentionArgs args);

typedef struct TensorMultiHeadAttentionArgs {
    Tensor *query, *key, *value;
    int64_t embed_dim_to_check, num_heads;
    Tensor *in_proj_weight, *in_proj_bias;
    Tensor *bias_k, *bias_v;
    bool add_zero_attn;
    double dropout_p;
    Tensor *out_proj_weight, *out_proj_bias;
    bool training; /* true: dropout_p applies */
    Tensor *key_padding_mask;
    Tensor **weights; /* need_weights: receives the attention weights; NULL: they are not formed */
    Tensor *attn_mask;
    bool average_attn_weights; /* true */
    bool is_causal;
} TensorMultiHeadAttentionArgs;

/* tensor_multi_head_attention_forward - attention of H = num_heads heads of E / H columns each, between
 * affine maps. query [L, N, E], key and value [S, N, E], or all without N -> [L, N, E], or [L, E]
 *   in_proj_weight [3 E, E]: of query, key and value, one below the other; in_proj_bias [3 E];
 * out_proj_weight [E, E], out_proj_bias [E] bias_k, bias_v [1, 1, E], both or neither: one more position of
 * key and value; add_zero_attn: one more of zeros key_padding_mask [N, S] (or [S]), attn_mask [L, S] or [N H,
 * L, S]: bool: true is ignored (attn_mask of scaled_dot_product_attention is the other way round).  Floating:
 * is added. is_causal: row i sees positions 0..i; an attn_mask that is given, too, is to say the same, and is
 * used alone. weights: [N, L, S'] (or [L, S']), the mean over the heads, or with average_attn_weights false
 * [N, H, L, S']. A row that sees nothing has weights 0, with and without weights.   ESHAPE: operands do not
 * fit, E is not embed_dim_to_check (where that is not 0), or the heads do not divide it. */
#define tensor_multi_head_attention_forward(...)                             \
    tensor_multi_head_attention_forward_args((TensorMultiHeadAttentionArgs){ \
        .training = true, .average_attn_weights = true, .query = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_multi_head_attention_forward_args(TensorMultiHeadAttentionArgs args);

typedef struct TensorRotaryArgs {
    Tensor *input, *cos, *sin;
    bool interleaved;
} TensorRotaryArgs;

/* tensor_rotary_embedding - pairs of columns turned by an angle for each position and pair.
 *   (a, b) -> (a cos - b sin, a sin + b cos)
 *   input [..., T, E]; cos, sin [..., T, R / 2], which broadcast to it; the first R columns are turned, the
 * others stay. Pairs are columns (i, i + R / 2), or with interleaved (2 i, 2 i + 1): GPT-NeoX's and Hugging
 * Face's layout, or Llama's own. Lengths stay as they are; the gradient is turned back.  ESHAPE: operands do
 * not fit. */
#define tensor_rotary_embedding(...) tensor_rotary_embedding_args((TensorRotaryArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_rotary_embedding_args(TensorRotaryArgs args);

#ifdef __cplusplus
}
#endif
#endif
