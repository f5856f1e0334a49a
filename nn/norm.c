/* norm.c - batch and layer normalisation. */
#include "module.h"

/* ---- batch normalisation --------------------------------------------------------------------- */

typedef struct BatchNorm {
    Module base;
    double eps, momentum;
    int min_rank, max_rank;
} BatchNorm;

enum { MEAN, VAR, BATCHES }; /* its buffers */

static int check_rank(const BatchNorm *b, const Tensor *x)
{
    int rank = tensor_ndim(x);
    if (rank >= b->min_rank && rank <= b->max_rank) return 0;
    return tensor_fail(TENSOR_ESHAPE, "nn_forward", "%s: an input of rank %d, wanted %s", b->base.type, rank,
                       b->max_rank == 4 ? "4" : "2 or 3");
}

static Tensor *batch_norm_forward(Module *self, Tensor *x)
{
    const BatchNorm *b = (BatchNorm *)self;
    if (check_rank(b, x)) return NULL;
    Tensor *batches = nn_buffer(self, BATCHES);
    double momentum = b->momentum >= 0 || !batches ? b->momentum : 1 / (tensor_item(batches) + 1);
    TensorScope scope = tensor_scope_open();
    Tensor *y = tensor_batch_norm(x, nn_buffer(self, MEAN), nn_buffer(self, VAR), nn_param(self, 0),
                                  nn_param(self, 1), .training = self->training || !batches,
                                  .momentum = momentum, .eps = b->eps);
    if (y && self->training && batches && !tensor_add_scalar_(batches, 1)) y = NULL;
    return tensor_scope_return(scope, y);
}

static void add_buffers(Module *m, int64_t features, TensorDtype dtype)
{
    TensorScope scope = tensor_scope_open();
    nn_register_buffer(m, "running_mean", tensor_zeros(SHAPE(features), dtype));
    nn_register_buffer(m, "running_var", tensor_ones(SHAPE(features), dtype));
    nn_register_buffer(m, "num_batches_tracked", tensor_zeros(SHAPE(), TENSOR_I64));
    tensor_scope_close(scope);
}

static Module *batch_norm(const char *function, const char *type, int min_rank, int max_rank,
                          const NNBatchNormArgs *args)
{
    if (args->num_features < 0)
        return tensor_fail(TENSOR_EVALUE, function, "%lld features", (long long)args->num_features), NULL;
    BatchNorm *b = nn_new(BatchNorm, type, batch_norm_forward);
    b->eps = args->eps, b->momentum = args->momentum, b->min_rank = min_rank, b->max_rank = max_rank;
    if (args->affine) {
        nn_new_parameter(b, "weight", SHAPE(args->num_features), args->dtype);
        nn_new_parameter(b, "bias", SHAPE(args->num_features), args->dtype);
        nn_init_fill(&b->base, 0, 1);
        nn_init_fill(&b->base, 1, 0);
    }
    if (args->track_running_stats) add_buffers(&b->base, args->num_features, args->dtype);
    return nn_done(b);
}

Module *nn_batch_norm1d_args(NNBatchNormArgs args)
{
    return batch_norm("nn_batch_norm1d", "BatchNorm1d", 2, 3, &args);
}
Module *nn_batch_norm2d_args(NNBatchNormArgs args)
{
    return batch_norm("nn_batch_norm2d", "BatchNorm2d", 4, 4, &args);
}

/* ---- layer normalisation --------------------------------------------------------------------- */

typedef struct LayerNorm {
    Module base;
    double eps;
    int ndim;
    int64_t shape[TENSOR_MAX_DIMS];
} LayerNorm;

static Tensor *layer_norm_forward(Module *self, Tensor *x)
{
    const LayerNorm *n = (LayerNorm *)self;
    return tensor_layer_norm(x, ((TensorShape){ n->ndim, n->shape }), nn_param(self, 0), nn_param(self, 1),
                             n->eps);
}

Module *nn_layer_norm_args(NNLayerNormArgs args)
{
    TensorShape shape = args.shape.ndim ? args.shape : SHAPE(args.normalized_size);
    if (!shape.dim)
        return tensor_fail(TENSOR_ENULL, "nn_layer_norm",
                           "a shape whose sizes are NULL: write .shape = SHAPE(4)"),
               NULL;
    if (shape.ndim > TENSOR_MAX_DIMS)
        return tensor_fail(TENSOR_ESHAPE, "nn_layer_norm", "%d dimensions", shape.ndim), NULL;
    LayerNorm *n = nn_new(LayerNorm, "LayerNorm", layer_norm_forward);
    n->eps = args.eps, n->ndim = shape.ndim;
    for (int d = 0; d < shape.ndim; d++) {
        n->shape[d] = shape.dim[d];
        if (shape.dim[d] < 1)
            n->base.failed = true, tensor_fail(TENSOR_EVALUE, "nn_layer_norm",
                                               "a size of %lld: want 1 or more", (long long)shape.dim[d]);
    }
    if (args.elementwise_affine) nn_new_parameter(n, "weight", shape, args.dtype);
    if (args.elementwise_affine && args.bias) nn_new_parameter(n, "bias", shape, args.dtype);
    nn_init_fill(&n->base, 0, 1);
    nn_init_fill(&n->base, 1, 0);
    return nn_done(n);
}
