/* multi_head_attention.c - attention of several heads between affine maps.
 *
 *   q, k, v = x W^T + b for query, key, value       [L, N, E] -> [N, H, L, d],  d = E / H
 *   y = softmax(q k^T / sqrt(d) + mask) v           [N, H, L, d] -> [L, N, E]
 *   result 0: y W_out^T + b_out;  result 1: the weights, which are formed only when they are wanted
 */
#include <math.h>
#include "attention.h"
#include "op/elementwise/dropout.h"

const TensorMultiHeadAttentionArgs tensor_multi_head_attention_defaults = {
    TENSOR_MULTI_HEAD_ATTENTION_DEFAULTS
};

enum {
    QUERY,
    KEY,
    VALUE,
    IN_WEIGHT,
    IN_BIAS,
    BIAS_K,
    BIAS_V,
    OUT_WEIGHT,
    OUT_BIAS,
    PADDING,
    MASK,
    Q_WEIGHT,
    K_WEIGHT,
    V_WEIGHT,
    OPERANDS
};

static const TensorMultiHeadAttentionArgs *options_of(const OpCall *c) { return op_params(c); }

/* ---- shapes ---------------------------------------------------------------------------------- */

static int want(OpCall *c, int i, TensorShape shape)
{
    static const char *const name[] = {
        "query",     "key",           "value",           "in_proj_weight", "in_proj_bias",
        "bias_k",    "bias_v",        "out_proj_weight", "out_proj_bias",  "key_padding_mask",
        "attn_mask", "q_proj_weight", "k_proj_weight",   "v_proj_weight"
    };
    const Tensor *x = op_input(c, i), *q = op_input(c, QUERY);
    if (!x || shape_equal(shape_of(x), shape)) return 0;
    return op_fail(c, TENSOR_ESHAPE, "query %s, key %s, %s %s: want %s", S(q), S(op_input(c, KEY)), name[i],
                   S(x), shape_text(shape));
}

static int check_masks(OpCall *c, int64_t rows, int64_t cols, int64_t batch)
{
    const TensorMultiHeadAttentionArgs *p = options_of(c);
    const bool alone = op_input(c, QUERY)->ndim == 2;
    const Tensor *mask = op_input(c, MASK);
    for (int i = PADDING; i <= MASK; i++) {
        const Tensor *m = op_input(c, i);
        if (m && m->dtype != TENSOR_BOOL && !dtype_is_float(m->dtype))
            return op_fail(c, TENSOR_EDTYPE, "a mask is %s: want bool or a floating dtype",
                           tensor_dtype_name((TensorDtype)m->dtype));
    }
    if (want(c, PADDING, alone ? SHAPE(cols) : SHAPE(batch, cols))) return -1;
    return want(c, MASK,
                mask && mask->ndim == 3 ? SHAPE(batch * p->num_heads, rows, cols) : SHAPE(rows, cols));
}

/* The weights of the projections: of one packed tensor, or of three. */
static int check_projections(OpCall *c, int64_t width, int64_t key_width, int64_t value_width)
{
    const bool separate = options_of(c)->use_separate_proj_weight;
    for (int i = Q_WEIGHT; i <= V_WEIGHT; i++)
        if (!op_input(c, i) != !separate || !op_input(c, IN_WEIGHT) != separate)
            return op_fail(c, TENSOR_EVALUE,
                           separate ? "use_separate_proj_weight: want q_proj_weight, "
                                      "k_proj_weight and v_proj_weight, and no in_proj_weight"
                                    : "want in_proj_weight; q_proj_weight, k_proj_weight and "
                                      "v_proj_weight go with use_separate_proj_weight");
    if (separate)
        return want(c, Q_WEIGHT, SHAPE(width, width)) || want(c, K_WEIGHT, SHAPE(width, key_width)) ||
                       want(c, V_WEIGHT, SHAPE(width, value_width))
                   ? -1
                   : 0;
    return want(c, IN_WEIGHT, SHAPE(3 * width, width));
}

static int shape(OpCall *c)
{
    const TensorMultiHeadAttentionArgs *p = options_of(c);
    const Tensor *q = op_input(c, QUERY), *k = op_input(c, KEY), *v = op_input(c, VALUE);
    if (!(p->dropout_p >= 0 && p->dropout_p <= 1))
        return op_fail(c, TENSOR_EVALUE, "dropout_p = %g: a probability lies in [0, 1]", p->dropout_p);
    if (p->num_heads < 1) return op_fail(c, TENSOR_EVALUE, "%lld heads: at least 1", (long long)p->num_heads);
    if ((q->ndim != 2 && q->ndim != 3) || k->ndim != q->ndim || v->ndim != q->ndim)
        return op_fail(c, TENSOR_ESHAPE,
                       "query %s, key %s, value %s: want [length, batch, width], or all without batch", S(q),
                       S(k), S(v));
    const int64_t batch = q->ndim == 3 ? q->shape[1] : 1, width = q->shape[q->ndim - 1], rows = q->shape[0],
                  cols = k->shape[0];
    if (p->embed_dim_to_check && width != p->embed_dim_to_check)
        return op_fail(c, TENSOR_ESHAPE, "query %s: want the width %lld", S(q),
                       (long long)p->embed_dim_to_check);
    if (width % p->num_heads)
        return op_fail(c, TENSOR_ESHAPE, "query %s: %lld heads do not divide its width", S(q),
                       (long long)p->num_heads);
    const bool separate = p->use_separate_proj_weight;
    const int64_t key_width = separate ? k->shape[k->ndim - 1] : width,
                  value_width = separate ? v->shape[v->ndim - 1] : width;
    const TensorShape keys = q->ndim == 3 ? SHAPE(cols, batch, key_width) : SHAPE(cols, key_width),
                      values = q->ndim == 3 ? SHAPE(cols, batch, value_width) : SHAPE(cols, value_width);
    if (!op_input(c, BIAS_K) != !op_input(c, BIAS_V))
        return op_fail(c, TENSOR_EVALUE, "bias_k and bias_v: both or neither");
    if (want(c, KEY, keys) || want(c, VALUE, values) || check_projections(c, width, key_width, value_width) ||
        want(c, IN_BIAS, SHAPE(3 * width)) || want(c, BIAS_K, SHAPE(1, 1, width)) ||
        want(c, BIAS_V, SHAPE(1, 1, width)) || want(c, OUT_WEIGHT, SHAPE(width, width)) ||
        want(c, OUT_BIAS, SHAPE(width)))
        return -1;
    return check_masks(c, rows, cols, batch);
}

/* ---- projections ----------------------------------------------------------------------------- */

/* Result i of the three, [length, N, E], by a weight of its own or its part of the packed one. */
static Tensor *project(OpCall *c, int i, int64_t width)
{
    Tensor *bias = op_input(c, IN_BIAS);
    if (bias && !(bias = tensor_narrow(bias, 0, i * width, width))) return NULL;
    Tensor *weight = op_input(c, Q_WEIGHT + i);
    if (!weight) weight = tensor_narrow(op_input(c, IN_WEIGHT), 0, i * width, width);
    return tensor_linear(op_input(c, QUERY + i), weight, bias);
}

static int projections(OpCall *c, int64_t width, Tensor *out[3])
{
    const bool same = op_input(c, QUERY) == op_input(c, KEY) && op_input(c, KEY) == op_input(c, VALUE) &&
                      op_input(c, IN_WEIGHT);
    Tensor *packed =
        same ? tensor_linear(op_input(c, QUERY), op_input(c, IN_WEIGHT), op_input(c, IN_BIAS)) : NULL;
    if (same && (!packed || tensor_split_sizes(packed, SHAPE(width, width, width), -1, out) < 0)) return -1;
    for (int i = 0; i < 3; i++) {
        if (!same) out[i] = project(c, i, width);
        if (out[i] && out[i]->ndim == 2) out[i] = tensor_unsqueeze(out[i], 1);
        if (!out[i]) return -1;
    }
    return 0;
}

/* [length, N, E] with one position more: of bias, or of zeros. */
static Tensor *lengthen(Tensor *x, Tensor *bias)
{
    if (!x) return NULL;
    const TensorShape one = SHAPE(1, x->shape[1], x->shape[2]);
    Tensor *more = bias ? tensor_expand(bias, one) : own(new_tensor(one, x->dtype, x->place));
    if (!more || (!bias && raw_fill(more, 0))) return NULL;
    return tensor_cat(TENSORS(x, more), 0);
}

static Tensor *heads(Tensor *x, int64_t n)
{
    if (!x) return NULL;
    return tensor_permute(tensor_reshape(x, SHAPE(x->shape[0], x->shape[1], n, x->shape[2] / n)),
                          DIMS(1, 2, 0, 3));
}

/* ---- masks: true, or -inf, where a position is ignored --------------------------------------- */

static Tensor *additive(Tensor *mask, Tensor *like)
{
    if (!mask || mask->dtype != TENSOR_BOOL) return mask;
    Tensor *zero = own(new_tensor(SHAPE(), like->dtype, like->place));
    return zero && !raw_fill(zero, 0) ? tensor_masked_fill(zero, mask, -INFINITY) : NULL;
}

static Tensor *causal(const Tensor *q, const Tensor *k)
{
    Tensor *ones = own(new_tensor(SHAPE(q->shape[2], k->shape[2]), TENSOR_BOOL, q->place));
    return ones && !raw_fill(ones, 1) ? tensor_triu(ones, 1) : NULL;
}

/* Both masks in one, for cols columns, as scaled_dot_product_attention takes it.  *mask NULL: there is none.
 */
static int merge_masks(OpCall *c, Tensor *q, Tensor *k, int64_t cols, Tensor **mask)
{
    const TensorMultiHeadAttentionArgs *p = options_of(c);
    Tensor *padding = op_input(c, PADDING), *m = op_input(c, MASK);
    const int64_t batch = q->shape[0], rows = q->shape[2], seen = op_input(c, KEY)->shape[0];
    if (m && m->ndim == 3 && !(m = tensor_reshape(m, SHAPE(batch, p->num_heads, rows, seen)))) return -1;
    if (!m && p->is_causal) {
        m = causal(q, k);
        if (!m || !(m = tensor_narrow(m, 1, 0, seen))) return -1;
    }
    if (padding && !(padding = tensor_reshape(padding, SHAPE(batch, 1, 1, seen)))) return -1;
    const bool floats = (m && m->dtype != TENSOR_BOOL) || (padding && padding->dtype != TENSOR_BOOL);
    Tensor *both = m ? m : padding;
    if (m && padding)
        both = floats ? tensor_add(additive(m, q), additive(padding, q)) : tensor_logical_or(m, padding);
    if ((m || padding) && both && cols > seen) {
        int64_t dim[TENSOR_MAX_DIMS];
        for (int i = 0; i < both->ndim; i++) dim[i] = both->shape[i];
        dim[both->ndim - 1] = cols - seen;
        Tensor *open = own(new_tensor((TensorShape){ both->ndim, dim }, both->dtype, both->place));
        both = open && !raw_fill(open, 0) ? tensor_cat(TENSORS(both, open), -1) : NULL;
    }
    if (both && both->dtype == TENSOR_BOOL) both = tensor_logical_not(both);
    *mask = both;
    return (m || padding) && !both ? -1 : 0;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* y of the heads, and in *weights their weights. */
static Tensor *attend_with_weights(const TensorMultiHeadAttentionArgs *p, Tensor *q, Tensor *k, Tensor *v,
                                   Tensor *mask, Tensor **weights)
{
    const double d = (double)q->shape[3], scale = d > 0 ? sqrt(1 / d) : 1;
    const TensorDtype dtype = (TensorDtype)q->dtype;
    if (!multiplied_there(q->place, q->dtype))
        q = wide_float(q), k = wide_float(k), v = wide_float(v), mask = wide_float(mask);
    Tensor *w = attention_probabilities(q, k, mask, scale, false);
    if (w && v) w = tensor_to(w, (TensorDtype)v->dtype);
    w = tensor_dropout(w, p->dropout_p, p->training);
    Tensor *y = tensor_matmul(w, v);
    if (p->average_attn_weights && w) w = tensor_mean(w, 1);
    *weights = w ? tensor_to(w, dtype) : NULL;
    return y ? tensor_to(y, dtype) : NULL;
}

static int compose(OpCall *c)
{
    const TensorMultiHeadAttentionArgs *p = options_of(c);
    const bool need_weights = p->need_weights;
    const bool alone = op_input(c, QUERY)->ndim == 2;
    const int64_t width = op_input(c, QUERY)->shape[alone ? 1 : 2], rows = op_input(c, QUERY)->shape[0];
    Tensor *in[3], *mask = NULL, *weights = NULL;
    if (projections(c, width, in)) return -1;
    if (op_input(c, BIAS_K))
        in[1] = lengthen(in[1], op_input(c, BIAS_K)), in[2] = lengthen(in[2], op_input(c, BIAS_V));
    if (p->add_zero_attn) in[1] = lengthen(in[1], NULL), in[2] = lengthen(in[2], NULL);
    Tensor *q = heads(in[0], p->num_heads), *k = heads(in[1], p->num_heads), *v = heads(in[2], p->num_heads);
    if (!q || !k || !v) return -1;
    const bool causal_only = p->is_causal && !need_weights && !op_input(c, MASK) && !op_input(c, PADDING) &&
                             k->shape[2] == op_input(c, KEY)->shape[0];
    if (!causal_only && merge_masks(c, q, k, k->shape[2], &mask)) return -1;
    Tensor *y = need_weights
                    ? attend_with_weights(p, q, k, v, mask, &weights)
                    : tensor_scaled_dot_product_attention(q, k, v, mask, .is_causal = causal_only,
                                                          .dropout_p = p->training ? p->dropout_p : 0);
    y = tensor_reshape(tensor_permute(y, DIMS(2, 0, 1, 3)),
                       alone ? SHAPE(rows, width) : SHAPE(rows, q->shape[0], width));
    if (op_set_result(c, 0, tensor_linear(y, op_input(c, OUT_WEIGHT), op_input(c, OUT_BIAS)))) return -1;
    if (!need_weights) return 0;
    return op_set_result(c, 1, alone ? tensor_squeeze(weights, 0) : weights);
}

static const OpField fields[] = { OP_REQUIRED(TensorMultiHeadAttentionArgs, num_heads),
                                  OP_OPTION(TensorMultiHeadAttentionArgs, embed_dim_to_check, add_zero_attn,
                                            dropout_p, training, use_separate_proj_weight,
                                            average_attn_weights, is_causal),
                                  OP_OPTION(TensorMultiHeadAttentionArgs, need_weights),
                                  { 0 } };

#define OPTIONAL                                                                                  \
    (KEEP_INPUT(IN_WEIGHT) | KEEP_INPUT(Q_WEIGHT) | KEEP_INPUT(K_WEIGHT) | KEEP_INPUT(V_WEIGHT) | \
     KEEP_INPUT(IN_BIAS) | KEEP_INPUT(BIAS_K) | KEEP_INPUT(BIAS_V) | KEEP_INPUT(OUT_BIAS) |       \
     KEEP_INPUT(PADDING) | KEEP_INPUT(MASK))

const TensorOp op_multi_head_attention_forward = {
    .name = "multi_head_attention_forward",
    .autocast = AUTOCAST_PARTS,
    .summary = "attention of num_heads heads between affine maps; its weights as the second result",
    .gradient = "those of linear and scaled_dot_product_attention",
    .arity = OPERANDS,
    .outputs = OP_ANY_ARITY,
    .optional = OPTIONAL,
    PARAMS(TensorMultiHeadAttentionArgs, tensor_multi_head_attention_defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE | OP_OF_PRODUCTS | OP_RANDOM,
    .torch = "nn.functional.multi_head_attention_forward",
    .samples =
        "3x2x4,2x2x3,2x2x5,-,12,-,-,4x4,4,-,-,4x4,4x3,4x5 {num_heads=2 use_separate_proj_weight=1 "
        "need_weights=1}; 3x1x4,2x1x3,2x1x4,-,12,1x1x4,1x1x4,4x4,4,1x2,3x2,4x4,4x3,4x4 {num_heads=2 "
        "use_separate_proj_weight=1 add_zero_attn=1}; 3x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,-,-,-,-,- "
        "{num_heads=2 need_weights=1}; 3x4,2x4,2x4,12x4,-,-,-,4x4,-,-,-,-,-,- {num_heads=2 "
        "average_attn_weights=0 need_weights=1}; 2x2x2,2x2x2,2x2x2,6x2,6,-,-,2x2,2,-,-,-,-,- {num_heads=1 "
        "is_causal=1}; 2x1x4,3x1x4,3x1x4,12x4,12,1x1x4,1x1x4,4x4,4,1x3,2x3,-,-,- {num_heads=2 "
        "add_zero_attn=1 need_weights=1}; 2x1x4,3x1x4,3x1x4,12x4,12,-,-,4x4,4,-,2x2x3,-,-,- {num_heads=2}; "
        "2x4,2x4,2x4,12x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=4 dropout_p=.5 need_weights=1}; "
        "0x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=2 need_weights=1}",
    .errors =
        "3x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,-,-,4x4,4x4,4x4 {num_heads=2} ! EVALUE; "
        "3x2x4,2x2x4,2x2x4,-,12,-,-,4x4,4,-,-,4x4,4x4,- {num_heads=2 use_separate_proj_weight=1} ! EVALUE; "
        "3x2x4,2x2x4,2x2x4,-,12,-,-,4x4,4,-,-,-,-,- {num_heads=2} ! EVALUE; "
        "3x2x4,2x2x3,2x2x5,-,12,-,-,4x4,4,-,-,4x4,4x3,4x4 {num_heads=2 use_separate_proj_weight=1} ! ESHAPE; "
        "3x2x4,2x2x4,2x4,12x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=2} ! ESHAPE; "
        "3x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=2 embed_dim_to_check=5} ! ESHAPE; "
        "3x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=3 need_weights=1} ! ESHAPE; "
        "3x2x4,2x2x4,2x3x4,12x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=2 need_weights=1} ! ESHAPE; "
        "3x2x4,2x2x4,2x2x4,12x4,12,1x1x4,-,4x4,4,-,-,-,-,- {num_heads=2 need_weights=1} ! EVALUE; "
        "3x2x4,2x2x4,2x2x4,8x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=2 need_weights=1} ! ESHAPE; "
        "3x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,2x3,-,-,-,- {num_heads=2 need_weights=1} ! ESHAPE; "
        "3x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,-,3x3,-,-,- {num_heads=2 need_weights=1} ! ESHAPE; "
        "3x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,2x2@i64,-,-,-,- {num_heads=2 need_weights=1} ! EDTYPE; "
        "4,4,4,12x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=2 need_weights=1} ! ESHAPE; "
        "3x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=0 need_weights=1} ! EVALUE; "
        "3x2x4,2x2x4,2x2x4,12x4,12,-,-,4x4,4,-,-,-,-,- {num_heads=2 dropout_p=2 need_weights=1} ! EVALUE",
};
REGISTER_OPS(&op_multi_head_attention_forward);

Tensor *tensor_multi_head_attention_forward_args(TensorMultiHeadAttentionArgs a)
{
    Tensor *in[OPERANDS] = {
        a.query,     a.key,           a.value,           a.in_proj_weight, a.in_proj_bias,
        a.bias_k,    a.bias_v,        a.out_proj_weight, a.out_proj_bias,  a.key_padding_mask,
        a.attn_mask, a.q_proj_weight, a.k_proj_weight,   a.v_proj_weight
    };
    Tensor *out[2] = { NULL, NULL };
    if (a.weights) *a.weights = NULL;
    a.need_weights = a.weights != NULL;
    if (op_apply(&op_multi_head_attention_forward, in, OPERANDS, &a, SITE, out, 2) < 0) return NULL;
    if (a.weights) *a.weights = out[1];
    return out[0];
}
