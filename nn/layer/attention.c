/* attention.c - multi-head attention: parameters as PyTorch's, for tensor_multi_head_attention_forward. */
#include "../module.h"

const NNAttentionArgs nn_multihead_attention_defaults = { NN_MULTIHEAD_ATTENTION_DEFAULTS };
const NNAttentionCallArgs nn_multihead_attention_forward_defaults = {
    NN_MULTIHEAD_ATTENTION_FORWARD_DEFAULTS
};
static const OpField fields[] = { OP_REQUIRED(NNAttentionArgs, embed_dim, num_heads),
                                  OP_OPTION(NNAttentionArgs, dropout, bias, add_bias_kv, add_zero_attn, kdim,
                                            vdim, batch_first, causal, dtype),
                                  { 0 } };

/* ---- parameters ------------------------------------------------------------------------------ */

static const char *const weights[] = { "in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight" };

static int init_values(Module *m)
{
    Tensor *bias = nn_own(m, "in_proj_bias"), *k = nn_own(m, "bias_k"), *v = nn_own(m, "bias_v");
    for (int i = 0; i < 4; i++) {
        Tensor *weight = nn_own(m, weights[i]);
        if (weight && !nn_init_xavier_uniform_(weight)) return -1;
    }
    if (bias && (!nn_init_zeros_(bias) || !nn_init_zeros_(nn_param(m->children[0].module, 1)))) return -1;
    if (k && (!nn_init_xavier_normal_(k) || !nn_init_xavier_normal_(v))) return -1;
    return 0;
}

static int attention_init(Module *m, const void *options)
{
    const NNAttentionArgs *o = options;
    const int64_t width = o->embed_dim, kdim = o->kdim ? o->kdim : width, vdim = o->vdim ? o->vdim : width;
    if (width < 1 || o->num_heads < 1 || width % o->num_heads || kdim < 1 || vdim < 1)
        return nn_refuse(m, "width %lld, %lld heads, kdim %lld, vdim %lld: want heads that divide the width",
                         (long long)width, (long long)o->num_heads, (long long)kdim, (long long)vdim);
    if (!(o->dropout >= 0 && o->dropout <= 1))
        return nn_refuse(m, "dropout %g is no probability", o->dropout);
    if (kdim == width && vdim == width) {
        nn_new_parameter(m, "in_proj_weight", SHAPE(3 * width, width), o->dtype);
    } else {
        nn_new_parameter(m, "q_proj_weight", SHAPE(width, width), o->dtype);
        nn_new_parameter(m, "k_proj_weight", SHAPE(width, kdim), o->dtype);
        nn_new_parameter(m, "v_proj_weight", SHAPE(width, vdim), o->dtype);
    }
    if (o->bias) nn_new_parameter(m, "in_proj_bias", SHAPE(3 * width), o->dtype);
    nn_child(m, "out_proj", nn_linear(width, width, .bias = o->bias, .dtype = o->dtype));
    if (o->add_bias_kv) {
        nn_new_parameter(m, "bias_k", SHAPE(1, 1, width), o->dtype);
        nn_new_parameter(m, "bias_v", SHAPE(1, 1, width), o->dtype);
    }
    if (m->failed) return -1;
    TensorScope scope = tensor_scope_open();
    int status = init_values(m);
    tensor_scope_close(scope);
    return status;
}

/* ---- forward: (query, key, value, key_padding_mask, attn_mask) -> (y, weights) ---------------- */

static int check_width(const char *what, const Tensor *x, int64_t width)
{
    int rank = tensor_ndim(x);
    if ((rank == 2 || rank == 3) && tensor_size(x, -1) == width) return 0;
    return tensor_fail(TENSOR_ESHAPE, "nn_multihead_attention",
                       "%s of rank %d and last size %lld: want rank 2 or 3 and %lld", what, rank,
                       rank ? (long long)tensor_size(x, -1) : 0LL, (long long)width);
}

static Tensor *attend(const Module *m, NNCall *c, const NNAttentionCallArgs *how)
{
    const NNAttentionArgs *o = m->args;
    const Module *out = m->children[0].module;
    const bool swap = o->batch_first && tensor_ndim(c->in[0]) == 3;
    Tensor *in[3] = { c->in[0], c->in[1], c->in[2] }, *in_weight = nn_own(m, weights[0]);
    for (int i = 0; i < 3 && swap; i++) in[i] = tensor_transpose(in[i], 0, 1);
    Tensor *y = tensor_multi_head_attention_forward(
        in[0], in[1], in[2], .num_heads = o->num_heads, .in_proj_weight = in_weight,
        .in_proj_bias = nn_own(m, "in_proj_bias"), .bias_k = nn_own(m, "bias_k"),
        .bias_v = nn_own(m, "bias_v"), .add_zero_attn = o->add_zero_attn, .dropout_p = o->dropout,
        .out_proj_weight = nn_param(out, 0), .out_proj_bias = nn_param(out, 1), .training = m->training,
        .key_padding_mask = c->in[3], .weights = c->results > 1 ? &c->out[1] : NULL, .attn_mask = c->in[4],
        .average_attn_weights = how->average_attn_weights, .is_causal = o->causal || how->is_causal,
        .use_separate_proj_weight = !in_weight, .q_proj_weight = nn_own(m, weights[1]),
        .k_proj_weight = nn_own(m, weights[2]), .v_proj_weight = nn_own(m, weights[3]));
    return swap ? tensor_transpose(y, 0, 1) : y;
}

static void attention_call(Module *self, NNCall *c)
{
    const NNAttentionArgs *o = self->args;
    if (!c->in[1]) c->in[1] = c->in[0]; /* x attends to itself */
    if (!c->in[2]) c->in[2] = c->in[1];
    if (check_width("query", c->in[0], o->embed_dim) ||
        check_width("key", c->in[1], o->kdim ? o->kdim : o->embed_dim) ||
        check_width("value", c->in[2], o->vdim ? o->vdim : o->embed_dim))
        return;
    c->out[0] = attend(self, c, c->options ? c->options : &nn_multihead_attention_forward_defaults);
}

Tensor *nn_multihead_attention_forward_args(NNAttentionCallArgs a)
{
    static const char function[] = "nn_multihead_attention_forward";
    if (a.weights) *a.weights = NULL;
    if (TENSOR_CHECK_OPTIONS(function, a, nn_multihead_attention_forward_defaults)) return NULL;
    if (nn_null(a.module, function)) return NULL;
    if (a.module->call != attention_call)
        return tensor_fail(TENSOR_EVALUE, function, "not of a module %s", a.module->type), NULL;
    if (!a.query || !a.key || !a.value) {
        if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "query, key or value is NULL");
        return NULL;
    }
    NNCall c = { .in = { a.query, a.key, a.value, a.key_padding_mask, a.attn_mask },
                 .results = a.weights ? 2 : 1,
                 .options = &a };
    nn_run(a.module, &c);
    if (a.weights) *a.weights = c.out[1];
    return c.out[0];
}

static const NNKind attention = { .name = "MultiheadAttention",
                                  .function = "nn_multihead_attention",
                                  NN_OPTIONS(NNAttentionArgs, nn_multihead_attention_defaults, fields),
                                  .init = attention_init,
                                  .call = attention_call,
                                  .inputs = 5 };
NN_REGISTER(attention);
Module *nn_multihead_attention_args(NNAttentionArgs args) { return nn_make(&attention, &args); }
