/* linear.c - linear and embedding layers; the initial values that several layers share. */
#include <math.h>
#include "../module.h"

/* ---- initial values -------------------------------------------------------------------------- */

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

int nn_init_affine(Module *m, TensorShape shape, TensorDtype dtype, bool bias)
{
    nn_new_parameter(m, "weight", shape, dtype);
    if (bias) nn_new_parameter(m, "bias", shape, dtype);
    nn_init_fill(m, 0, 1);
    nn_init_fill(m, 1, 0);
    return m->failed ? -1 : 0;
}

/* ---- linear ---------------------------------------------------------------------------------- */

const NNLinearArgs nn_linear_defaults = { NN_LINEAR_DEFAULTS };
static const OpField linear_fields[] = { OP_REQUIRED(NNLinearArgs, in_features, out_features),
                                         OP_OPTION(NNLinearArgs, bias, dtype),
                                         { 0 } };

static Tensor *linear_forward(Module *self, Tensor *x)
{
    return tensor_linear(x, nn_param(self, 0), nn_param(self, 1));
}

static void linear_call(Module *self, NNCall *c)
{
    c->out[0] = tensor_linear_act(c->in[0], nn_param(self, 0), nn_param(self, 1),
                                  *(const TensorActivation *)c->options);
}

static int linear_init(Module *m, const void *args)
{
    const NNLinearArgs *a = args;
    if (a->in_features < 0 || a->out_features < 0)
        return nn_refuse(m, "%lld features in, %lld out: want 0 or more", (long long)a->in_features,
                         (long long)a->out_features);
    nn_new_parameter(m, "weight", SHAPE(a->out_features, a->in_features), a->dtype);
    if (a->bias) nn_new_parameter(m, "bias", SHAPE(a->out_features), a->dtype);
    nn_init_default(m, a->bias);
    return 0;
}

static const NNKind linear = { .name = "Linear",
                               .function = "nn_linear",
                               NN_OPTIONS(NNLinearArgs, nn_linear_defaults, linear_fields),
                               .init = linear_init,
                               .lazy_dim = -1,
                               .inputs = 1,
                               .call = linear_call,
                               .forward = linear_forward };
NN_REGISTER(linear);

Tensor *nn_linear_act(Module *m, Tensor *x, int activation, bool *done)
{
    const TensorActivation f = (TensorActivation)activation;
    NNCall c = { .in = { x }, .results = 1, .options = &f };
    *done = activation >= 0 && m && m->kind == &linear && m->forward == linear_forward && x &&
            tensor_dtype_is_float(tensor_dtype(x)) && !nn_seen(m);
    if (*done) nn_run(m, &c);
    return c.out[0];
}
Module *nn_linear_args(NNLinearArgs args) { return nn_make(&linear, &args); }

/* ---- embedding ------------------------------------------------------------------------------- */

const NNEmbeddingArgs nn_embedding_defaults = { NN_EMBEDDING_DEFAULTS };
static const OpField embedding_fields[] = { OP_REQUIRED(NNEmbeddingArgs, num_embeddings, embedding_dim),
                                            OP_OPTION(NNEmbeddingArgs, padding_idx, max_norm, norm_type,
                                                      scale_grad_by_freq, dtype),
                                            { 0 } };

static Tensor *embedding_forward(Module *self, Tensor *x)
{
    const NNEmbeddingArgs *a = self->args;
    return tensor_embedding(x, nn_param(self, 0), .padding_idx = a->padding_idx, .max_norm = a->max_norm,
                            .norm_type = a->norm_type, .scale_grad_by_freq = a->scale_grad_by_freq);
}

static int init_table(Tensor *weight, int64_t padding)
{
    if (!nn_init_normal_(weight)) return -1;
    if (padding == TENSOR_NO_PADDING) return 0;
    bool was = tensor_set_grad_enabled(false);
    Tensor *zeroed = tensor_zero_(tensor_select(weight, 0, padding));
    tensor_set_grad_enabled(was);
    return zeroed ? 0 : -1;
}

/* The table of an embedding or a bag; rows that are given are copied, and no number is drawn. */
static int add_table(Module *m, TensorShape want, int64_t padding, TensorDtype dtype, Tensor *given,
                     bool freeze)
{
    const int64_t rows = want.dim[0], width = want.dim[1];
    if (rows < 0 || width < 0 || (padding != TENSOR_NO_PADDING && (padding < -rows || padding >= rows)))
        return nn_refuse(m, "%lld rows of %lld, padding_idx %lld: want 0 or more, and a row that is there",
                         (long long)rows, (long long)width, (long long)padding);
    if (given && !tensor_shape_equal(tensor_shape(given), want))
        return nn_refuse(m, "a weight of another shape than [%lld, %lld]", (long long)rows, (long long)width);
    TensorScope scope = tensor_scope_open();
    int status = -1;
    if (given) {
        Tensor *weight = nn_register_parameter(m, "weight", tensor_clone(tensor_detach(given)));
        status = weight && tensor_requires_grad_(weight, !freeze) ? 0 : -1;
    } else {
        nn_new_parameter(m, "weight", want, dtype);
        if (!m->failed) status = init_table(nn_param(m, 0), padding);
    }
    tensor_scope_close(scope);
    return status;
}

static int embedding_init(Module *m, const void *args)
{
    const NNEmbeddingArgs *a = args;
    return add_table(m, SHAPE(a->num_embeddings, a->embedding_dim), a->padding_idx, a->dtype, a->weight,
                     a->freeze);
}

/* Of from_pretrained: the sizes and the dtype of the rows, into the options.  -1: it is no matrix. */
static int like_rows(const char *function, const Tensor *rows, int64_t *count, int64_t *width,
                     TensorDtype *dtype)
{
    if (!rows) return tensor_error_code() ? -1 : tensor_fail(TENSOR_ENULL, function, "the weight is NULL");
    if (tensor_ndim(rows) != 2)
        return tensor_fail(TENSOR_ESHAPE, function, "a weight of rank %d: want a matrix", tensor_ndim(rows));
    *count = tensor_size(rows, 0), *width = tensor_size(rows, 1), *dtype = tensor_dtype(rows);
    return 0;
}

static const NNKind embedding = { .name = "Embedding",
                                  .function = "nn_embedding",
                                  NN_OPTIONS(NNEmbeddingArgs, nn_embedding_defaults, embedding_fields),
                                  .init = embedding_init,
                                  .forward = embedding_forward };
NN_REGISTER(embedding);
Module *nn_embedding_args(NNEmbeddingArgs args) { return nn_make(&embedding, &args); }

const NNEmbeddingArgs nn_embedding_from_pretrained_defaults = { NN_EMBEDDING_FROM_PRETRAINED_DEFAULTS };
Module *nn_embedding_from_pretrained_args(NNEmbeddingArgs args)
{
    static const char name[] = "nn_embedding_from_pretrained";
    if (TENSOR_CHECK_OPTIONS(name, args, nn_embedding_from_pretrained_defaults)) return NULL;
    if (like_rows(name, args.weight, &args.num_embeddings, &args.embedding_dim, &args.dtype)) return NULL;
    return nn_embedding_args(args);
}

/* ---- bags of embeddings ---------------------------------------------------------------------- */

const NNEmbeddingBagArgs nn_embedding_bag_defaults = { NN_EMBEDDING_BAG_DEFAULTS };
static const char *const bag_modes[] = { "sum", "mean", "max", NULL };
static const OpField bag_fields[] = { OP_REQUIRED(NNEmbeddingBagArgs, num_embeddings, embedding_dim),
                                      OP_OPTION(NNEmbeddingBagArgs, max_norm, norm_type, scale_grad_by_freq,
                                                include_last_offset, padding_idx, dtype),
                                      OP_CHOICE(NNEmbeddingBagArgs, mode, bag_modes),
                                      { 0 } };

static int bag_init(Module *m, const void *args)
{
    const NNEmbeddingBagArgs *a = args;
    return add_table(m, SHAPE(a->num_embeddings, a->embedding_dim), a->padding_idx, a->dtype, a->weight,
                     a->freeze);
}

static void bag_call(Module *self, NNCall *c)
{
    const NNEmbeddingBagArgs *a = self->args;
    c->out[0] = tensor_embedding_bag(
        c->in[0], nn_param(self, 0), c->in[1], .max_norm = a->max_norm, .norm_type = a->norm_type,
        .scale_grad_by_freq = a->scale_grad_by_freq, .mode = a->mode, .per_sample_weights = c->in[2],
        .include_last_offset = a->include_last_offset, .padding_idx = a->padding_idx);
}

static const NNKind embedding_bag = { .name = "EmbeddingBag",
                                      .function = "nn_embedding_bag",
                                      NN_OPTIONS(NNEmbeddingBagArgs, nn_embedding_bag_defaults, bag_fields),
                                      .init = bag_init,
                                      .call = bag_call,
                                      .inputs = 3 };
NN_REGISTER(embedding_bag);
Module *nn_embedding_bag_args(NNEmbeddingBagArgs args) { return nn_make(&embedding_bag, &args); }

const NNEmbeddingBagArgs nn_embedding_bag_from_pretrained_defaults = {
    NN_EMBEDDING_BAG_FROM_PRETRAINED_DEFAULTS
};
Module *nn_embedding_bag_from_pretrained_args(NNEmbeddingBagArgs args)
{
    static const char name[] = "nn_embedding_bag_from_pretrained";
    if (TENSOR_CHECK_OPTIONS(name, args, nn_embedding_bag_from_pretrained_defaults)) return NULL;
    if (like_rows(name, args.weight, &args.num_embeddings, &args.embedding_dim, &args.dtype)) return NULL;
    return nn_embedding_bag_args(args);
}

/* ---- bilinear -------------------------------------------------------------------------------- */

const NNBilinearArgs nn_bilinear_defaults = { NN_BILINEAR_DEFAULTS };
static const OpField bilinear_fields[] = { OP_REQUIRED(NNBilinearArgs, in1_features, in2_features,
                                                       out_features),
                                           OP_OPTION(NNBilinearArgs, bias, dtype),
                                           { 0 } };

static int bilinear_init(Module *m, const void *args)
{
    const NNBilinearArgs *a = args;
    if (a->in1_features < 1 || a->in2_features < 0 || a->out_features < 0)
        return nn_refuse(m, "%lld and %lld features in, %lld out: want 1 or more, and 0 or more",
                         (long long)a->in1_features, (long long)a->in2_features, (long long)a->out_features);
    nn_new_parameter(m, "weight", SHAPE(a->out_features, a->in1_features, a->in2_features), a->dtype);
    if (a->bias) nn_new_parameter(m, "bias", SHAPE(a->out_features), a->dtype);
    const double k = 1 / sqrt((double)a->in1_features);
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < m->parameter_count && !m->failed; i++)
        if (!nn_init_uniform_(nn_param(m, i), -k, k)) m->failed = true;
    tensor_scope_close(scope);
    return 0;
}

static void bilinear_call(Module *self, NNCall *c)
{
    c->out[0] = tensor_bilinear(c->in[0], c->in[1], nn_param(self, 0), nn_param(self, 1));
}

static const NNKind bilinear = { .name = "Bilinear",
                                 .function = "nn_bilinear",
                                 NN_OPTIONS(NNBilinearArgs, nn_bilinear_defaults, bilinear_fields),
                                 .init = bilinear_init,
                                 .call = bilinear_call,
                                 .inputs = 2 };
NN_REGISTER(bilinear);
Module *nn_bilinear_args(NNBilinearArgs args) { return nn_make(&bilinear, &args); }
