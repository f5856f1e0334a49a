/* linear.c - linear and embedding layers. */
#include <math.h>
#include "module.h"

/* ---- linear ---------------------------------------------------------------------------------- */

static Tensor *linear_forward(Module *self, Tensor *x)
{
    return tensor_linear(x, nn_param(self, 0), nn_param(self, 1));
}

/* PyTorch's default for a weight [out, in, ...] and its bias, drawn in this order. */
void nn_init_default(Module *m, bool bias)
{
    if (m->failed) return;
    TensorScope scope = tensor_scope_open();
    Tensor *weight = nn_param(m, 0);
    double fan_in = 1;
    for (int d = 1; d < tensor_ndim(weight); d++) fan_in *= (double)tensor_size(weight, d);
    double bound = fan_in > 0 ? 1 / sqrt(fan_in) : 0;
    if (!nn_init_kaiming_uniform_(weight, sqrt(5.0)) ||
        (bias && !nn_init_uniform_(nn_param(m, 1), -bound, bound)))
        m->failed = true;
    tensor_scope_close(scope);
}

void nn_init_fill(Module *m, int parameter, double value)
{
    Tensor *t = nn_param(m, parameter);
    if (m->failed || !t) return;
    TensorScope scope = tensor_scope_open();
    if (!nn_init_constant_(t, value)) m->failed = true;
    tensor_scope_close(scope);
}

Module *nn_linear_args(NNLinearArgs args)
{
    int64_t in = args.in_features, out = args.out_features;
    if (in < 0 || out < 0)
        return tensor_fail(TENSOR_EVALUE, "nn_linear", "%lld features in, %lld out: want 0 or more",
                           (long long)in, (long long)out),
               NULL;
    Module *m = nn_new_size(sizeof(Module), "Linear", linear_forward);
    nn_new_parameter(m, "weight", SHAPE(out, in), args.dtype);
    if (args.bias) nn_new_parameter(m, "bias", SHAPE(out), args.dtype);
    nn_init_default(m, args.bias);
    return nn_done(m);
}

/* ---- embedding ------------------------------------------------------------------------------- */

typedef struct Embedding {
    Module base;
    int64_t padding_idx;
} Embedding;

static Tensor *embedding_forward(Module *self, Tensor *x)
{
    return tensor_embedding(x, nn_param(self, 0), .padding_idx = ((Embedding *)self)->padding_idx);
}

static int init_embedding(Embedding *e)
{
    Tensor *weight = nn_param(&e->base, 0);
    if (!nn_init_normal_(weight)) return -1;
    if (e->padding_idx == TENSOR_NO_PADDING) return 0;
    bool was = tensor_set_grad_enabled(false);
    Tensor *zeroed = tensor_zero_(tensor_select(weight, 0, e->padding_idx));
    tensor_set_grad_enabled(was);
    return zeroed ? 0 : -1;
}

Module *nn_embedding_args(NNEmbeddingArgs args)
{
    int64_t rows = args.num_embeddings, width = args.embedding_dim, padding = args.padding_idx;
    if (rows < 0 || width < 0 || (padding != TENSOR_NO_PADDING && (padding < -rows || padding >= rows)))
        return tensor_fail(TENSOR_EVALUE, "nn_embedding",
                           "%lld rows of %lld, padding_idx %lld: want 0 or more, and a row that is there",
                           (long long)rows, (long long)width, (long long)padding),
               NULL;
    Embedding *e = nn_new(Embedding, "Embedding", embedding_forward);
    e->padding_idx = padding;
    nn_new_parameter(e, "weight", SHAPE(rows, width), args.dtype);
    TensorScope scope = tensor_scope_open();
    if (!e->base.failed && init_embedding(e)) e->base.failed = true;
    tensor_scope_close(scope);
    return nn_done(e);
}
