/* attention.c - multi-head self-attention, made of ops.
 *
 *   N batch, T positions, E width, H heads, d = E / H
 *   [q k v] = x in_proj_weight^T + in_proj_bias          [N, T, 3 E] -> [3, N, H, T, d]
 *   y = softmax(q k^T / sqrt(d) + mask) v                [N, H, T, d]
 *   out = out_proj(heads side by side)                   [N, T, E] */
#include "module.h"

typedef struct Attention {
    Module base;
    Module *out_proj;
    int64_t heads, width;
    double dropout;
    bool batch_first, causal;
} Attention;

static Tensor *attend(const Attention *a, Tensor *q, Tensor *k, Tensor *v)
{
    return tensor_scaled_dot_product_attention(q, k, v, .is_causal = a->causal,
                                               .dropout_p = a->base.training ? a->dropout : 0);
}

/* x [N, T, E] -> [N, T, E], before out_proj. */
static Tensor *heads(const Attention *a, Tensor *x)
{
    int64_t n = tensor_size(x, 0), t = tensor_size(x, 1);
    Tensor *qkv = tensor_linear(x, nn_param(&a->base, 0), nn_param(&a->base, 1));
    qkv = tensor_permute(tensor_reshape(qkv, SHAPE(n, t, 3, a->heads, a->width / a->heads)),
                         DIMS(2, 0, 3, 1, 4));
    Tensor *part[3];
    if (!qkv || tensor_unbind(qkv, 0, part, 3) < 0) return NULL;
    Tensor *y = attend(a, part[0], part[1], part[2]);
    return tensor_reshape(tensor_permute(y, DIMS(0, 2, 1, 3)), SHAPE(n, t, a->width));
}

static int check_input(const Attention *a, const Tensor *x)
{
    int rank = tensor_ndim(x);
    if ((rank == 2 || rank == 3) && tensor_size(x, -1) == a->width) return 0;
    return tensor_fail(
        TENSOR_ESHAPE, "nn_forward",
        "MultiheadAttention of width %lld: an input of rank %d and last size %lld, wanted rank 2 or 3",
        (long long)a->width, rank, rank ? (long long)tensor_size(x, -1) : 0LL);
}

static Tensor *attention_forward(Module *self, Tensor *x)
{
    const Attention *a = (Attention *)self;
    if (check_input(a, x)) return NULL;
    TensorScope scope = tensor_scope_open();
    bool alone = tensor_ndim(x) == 2, swap = !alone && !a->batch_first;
    if (alone) x = tensor_unsqueeze(x, 0);
    if (swap) x = tensor_transpose(x, 0, 1);
    Tensor *y = x ? heads(a, x) : NULL;
    if (swap) y = tensor_transpose(y, 0, 1);
    if (alone) y = tensor_squeeze(y, 0);
    return tensor_scope_return(scope, nn_forward(a->out_proj, y));
}

Module *nn_multihead_attention_args(NNAttentionArgs args)
{
    int64_t width = args.embed_dim;
    if (width < 1 || args.num_heads < 1 || width % args.num_heads ||
        !(args.dropout >= 0 && args.dropout <= 1))
        return tensor_fail(TENSOR_EVALUE, "nn_multihead_attention",
                           "width %lld, %lld heads, dropout %g: the heads must divide the width",
                           (long long)width, (long long)args.num_heads, args.dropout),
               NULL;
    Attention *a = nn_new(Attention, "MultiheadAttention", attention_forward);
    a->heads = args.num_heads, a->width = width, a->dropout = args.dropout, a->batch_first = args.batch_first,
    a->causal = args.causal;
    nn_new_parameter(a, "in_proj_weight", SHAPE(3 * width, width), args.dtype);
    if (args.bias) nn_new_parameter(a, "in_proj_bias", SHAPE(3 * width), args.dtype);
    a->out_proj = nn_child(a, "out_proj", nn_linear(width, width, .bias = args.bias, .dtype = args.dtype));
    if (a->base.failed) return nn_done(a);
    TensorScope scope = tensor_scope_open();
    if (!nn_init_xavier_uniform_(nn_param(&a->base, 0))) a->base.failed = true;
    tensor_scope_close(scope);
    nn_init_fill(&a->base, 1, 0);
    if (args.bias) nn_init_fill(a->out_proj, 1, 0);
    return nn_done(a);
}
