/* norm.c - normalisation: over batches, instances, layers, groups and neighbouring channels. */
#include <string.h>
#include "../module.h"

/* ---- batch and instance normalisation: kind->rank spatial dimensions, kind->form tells them apart ---- */

enum { BATCH, INSTANCE };
enum { MEAN, VAR, BATCHES }; /* their buffers */

const NNBatchNormArgs nn_batch_norm_defaults = { NN_BATCH_NORM_DEFAULTS },
                      nn_instance_norm_defaults = { NN_INSTANCE_NORM_DEFAULTS };
static const OpField batch_norm_fields[] = { OP_REQUIRED(NNBatchNormArgs, num_features),
                                             OP_OPTION(NNBatchNormArgs, eps, momentum, affine,
                                                       track_running_stats, bias, dtype),
                                             { 0 } };

static int check_rank(const Module *m, const Tensor *x)
{
    int rank = tensor_ndim(x), full = m->kind->rank + 2;
    bool less = m->kind->form == INSTANCE || m->kind->rank == 1; /* without N; [N, C] */
    if (rank == full || (less && rank == full - 1)) return 0;
    return tensor_fail(TENSOR_ESHAPE, m->kind->function, "an input of rank %d: want %s%d", rank,
                       !less       ? ""
                       : full == 3 ? "2 or "
                       : full == 4 ? "3 or "
                                   : "4 or ",
                       full);
}

static Tensor *batch_norm_forward(Module *self, Tensor *x)
{
    const NNBatchNormArgs *a = self->args;
    if (check_rank(self, x)) return NULL;
    Tensor *batches = nn_buffer(self, BATCHES);
    double momentum = a->momentum >= 0 || !batches ? a->momentum : 1 / (tensor_item(batches) + 1);
    TensorScope scope = tensor_scope_open();
    Tensor *y = tensor_batch_norm(x, nn_buffer(self, MEAN), nn_buffer(self, VAR), nn_param(self, 0),
                                  nn_param(self, 1), .training = self->training || !batches,
                                  .momentum = momentum, .eps = a->eps);
    if (y && self->training && batches && !tensor_add_scalar_(batches, 1)) y = NULL;
    return tensor_scope_return(scope, y);
}

static Tensor *instance_norm_forward(Module *self, Tensor *x)
{
    const NNBatchNormArgs *a = self->args;
    if (check_rank(self, x)) return NULL;
    bool alone = tensor_ndim(x) == self->kind->rank + 1, tracks = self->buffer_count > 0;
    TensorScope scope = tensor_scope_open();
    Tensor *y = tensor_instance_norm(alone ? tensor_unsqueeze(x, 0) : x, nn_buffer(self, MEAN),
                                     nn_buffer(self, VAR), nn_param(self, 0), nn_param(self, 1),
                                     .use_input_stats = self->training || !tracks,
                                     .momentum = a->momentum >= 0 ? a->momentum : 0, .eps = a->eps);
    return tensor_scope_return(scope, alone ? tensor_squeeze(y, 0) : y);
}

static int batch_norm_init(Module *m, const void *args)
{
    const NNBatchNormArgs *a = args;
    if (a->num_features < 0) return nn_refuse(m, "%lld features", (long long)a->num_features);
    if (a->affine && nn_init_affine(m, SHAPE(a->num_features), a->dtype, a->bias)) return -1;
    if (!a->track_running_stats) return 0;
    TensorScope scope = tensor_scope_open();
    nn_register_buffer(m, "running_mean", tensor_zeros(SHAPE(a->num_features), a->dtype));
    nn_register_buffer(m, "running_var", tensor_ones(SHAPE(a->num_features), a->dtype));
    nn_register_buffer(m, "num_batches_tracked", tensor_zeros(SHAPE(), TENSOR_I64));
    tensor_scope_close(scope);
    return 0;
}

#define NORM(name_, type, set, rank_, form_)                                              \
    static const NNKind name_##_kind = { .name = (type),                                  \
                                         .function = "nn_" #name_,                        \
                                         NN_OPTIONS(NNBatchNormArgs, nn_##set##_defaults, \
                                                    batch_norm_fields),                   \
                                         .init = batch_norm_init,                         \
                                         .forward = set##_forward,                        \
                                         .rank = (rank_),                                 \
                                         .lazy_dim = (form_) == BATCH ? 1 : -1 - (rank_), \
                                         .form = (form_) };                               \
    NN_REGISTER(name_##_kind);                                                            \
    Module *nn_##name_##_args(NNBatchNormArgs args) { return nn_make(&name_##_kind, &args); }
NORM(batch_norm1d, "BatchNorm1d", batch_norm, 1, BATCH)
NORM(batch_norm2d, "BatchNorm2d", batch_norm, 2, BATCH)
NORM(batch_norm3d, "BatchNorm3d", batch_norm, 3, BATCH)
NORM(instance_norm1d, "InstanceNorm1d", instance_norm, 1, INSTANCE)
NORM(instance_norm2d, "InstanceNorm2d", instance_norm, 2, INSTANCE)
NORM(instance_norm3d, "InstanceNorm3d", instance_norm, 3, INSTANCE)

/* ---- layer and RMS normalisation: over the last dimensions ----------------------------------- */

const NNLayerNormArgs nn_layer_norm_defaults = { NN_LAYER_NORM_DEFAULTS },
                      nn_rms_norm_defaults = { NN_RMS_NORM_DEFAULTS };
static const OpField layer_norm_fields[] = {
    OP_OPTION(NNLayerNormArgs, normalized_size, eps, elementwise_affine, bias, normalized_shape, dtype), { 0 }
};

static TensorShape normalized(const NNLayerNormArgs *a)
{
    return a->normalized_shape.ndim ? a->normalized_shape : (TensorShape){ 1, &a->normalized_size };
}

static int layer_norm_init(Module *m, const void *args)
{
    const NNLayerNormArgs *a = args;
    TensorShape shape = normalized(a);
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] < 1) return nn_refuse(m, "a size of %lld: want 1 or more", (long long)shape.dim[d]);
    return a->elementwise_affine ? nn_init_affine(m, shape, a->dtype, a->bias) : 0;
}

static Tensor *layer_norm_forward(Module *self, Tensor *x)
{
    const NNLayerNormArgs *a = self->args;
    return tensor_layer_norm(x, normalized(a), nn_param(self, 0), nn_param(self, 1), a->eps);
}

/* Of in[0] + branch, the second result, in the call of nn_add_norm that is being made.  Options of a caller's
 * own say nothing to a layer norm. */
static _Thread_local Tensor *const *adding;
static void add_norm_call(Module *self, NNCall *c)
{
    const NNLayerNormArgs *a = self->args;
    if (!adding || c->options != adding) {
        c->out[0] = layer_norm_forward(self, c->in[0]);
        return;
    }
    Tensor *x = c->in[0], *branch = *adding;
    const TensorAddLayerNorm y =
        tensor_add_layer_norm(x, branch, normalized(a), nn_param(self, 0), nn_param(self, 1), a->eps,
                              .dtype = tensor_promote_types(tensor_dtype(x), tensor_dtype(branch)));
    c->out[0] = y.result, c->out[1] = y.sum;
}

static const NNKind layer_norm = { .name = "LayerNorm",
                                   .function = "nn_layer_norm",
                                   NN_OPTIONS(NNLayerNormArgs, nn_layer_norm_defaults, layer_norm_fields),
                                   .init = layer_norm_init,
                                   .inputs = 1,
                                   .call = add_norm_call,
                                   .forward = layer_norm_forward };
NN_REGISTER(layer_norm);

/* Halves would be normalised before the sum is rounded. */
static bool may_add(const Module *m, const Tensor *x, const Tensor *branch)
{
    const Tensor *weight = nn_param(m, 0);
    const TensorShape a = tensor_shape(x), b = tensor_shape(branch);
    const TensorDtype sum = tensor_promote_types(tensor_dtype(x), tensor_dtype(branch));
    return (sum == TENSOR_F32 || sum == TENSOR_F64) && (!weight || tensor_dtype(weight) == sum) &&
           a.ndim == b.ndim && memcmp(a.dim, b.dim, sizeof *a.dim * (size_t)a.ndim) == 0 &&
           strcmp(tensor_device(x), tensor_device(branch)) == 0;
}

Tensor *nn_add_norm(Module *m, Tensor *x, Tensor *branch, Tensor **sum)
{
    NNCall c = { .in = { x }, .results = 2, .options = &branch };
    if (m && m->kind == &layer_norm && m->forward == layer_norm_forward && x && branch && !nn_seen(m) &&
        may_add(m, x, branch)) {
        adding = &branch;
        nn_run(m, &c);
        adding = NULL;
        *sum = c.out[1];
        return c.out[0];
    }
    *sum = tensor_add(x, branch);
    return nn_forward(m, *sum);
}
Module *nn_layer_norm_args(NNLayerNormArgs args) { return nn_make(&layer_norm, &args); }

static int rms_norm_init(Module *m, const void *args)
{
    if (((const NNLayerNormArgs *)args)->bias)
        return nn_refuse(m, "bias: layer_norm has one, rms_norm has none");
    return layer_norm_init(m, args);
}

static Tensor *rms_norm_forward(Module *self, Tensor *x)
{
    const NNLayerNormArgs *a = self->args;
    return tensor_rms_norm(x, normalized(a), nn_param(self, 0), a->eps);
}

static const NNKind rms_norm = { .name = "RMSNorm",
                                 .function = "nn_rms_norm",
                                 NN_OPTIONS(NNLayerNormArgs, nn_rms_norm_defaults, layer_norm_fields),
                                 .init = rms_norm_init,
                                 .forward = rms_norm_forward };
NN_REGISTER(rms_norm);
Module *nn_rms_norm_args(NNLayerNormArgs args) { return nn_make(&rms_norm, &args); }

/* ---- groups of channels ---------------------------------------------------------------------- */

const NNGroupNormArgs nn_group_norm_defaults = { NN_GROUP_NORM_DEFAULTS };
static const OpField group_norm_fields[] = { OP_REQUIRED(NNGroupNormArgs, num_groups, num_channels),
                                             OP_OPTION(NNGroupNormArgs, eps, affine, bias, dtype),
                                             { 0 } };

static int group_norm_init(Module *m, const void *args)
{
    const NNGroupNormArgs *a = args;
    if (a->num_groups < 1 || a->num_channels < 1 || a->num_channels % a->num_groups)
        return nn_refuse(m, "%lld groups of %lld channels: want groups that divide them",
                         (long long)a->num_groups, (long long)a->num_channels);
    return a->affine ? nn_init_affine(m, SHAPE(a->num_channels), a->dtype, a->bias) : 0;
}

static Tensor *group_norm_forward(Module *self, Tensor *x)
{
    const NNGroupNormArgs *a = self->args;
    return tensor_group_norm(x, a->num_groups, nn_param(self, 0), nn_param(self, 1), a->eps);
}

static const NNKind group_norm = { .name = "GroupNorm",
                                   .function = "nn_group_norm",
                                   NN_OPTIONS(NNGroupNormArgs, nn_group_norm_defaults, group_norm_fields),
                                   .init = group_norm_init,
                                   .forward = group_norm_forward };
NN_REGISTER(group_norm);
Module *nn_group_norm_args(NNGroupNormArgs args) { return nn_make(&group_norm, &args); }

/* ---- neighbouring channels ------------------------------------------------------------------- */

const NNResponseNormArgs nn_local_response_norm_defaults = { NN_LOCAL_RESPONSE_NORM_DEFAULTS };
static const OpField response_norm_fields[] = { OP_REQUIRED(NNResponseNormArgs, size),
                                                OP_OPTION(NNResponseNormArgs, alpha, beta, k),
                                                { 0 } };

static int response_norm_init(Module *m, const void *args)
{
    int64_t size = ((const NNResponseNormArgs *)args)->size;
    return size >= 1 ? 0 : nn_refuse(m, "a size of %lld: want 1 or more", (long long)size);
}

static Tensor *response_norm_forward(Module *self, Tensor *x)
{
    const NNResponseNormArgs *a = self->args;
    return tensor_local_response_norm(x, a->size, .alpha = a->alpha, .beta = a->beta, .k = a->k);
}

static const NNKind local_response_norm = { .name = "LocalResponseNorm",
                                            .function = "nn_local_response_norm",
                                            NN_OPTIONS(NNResponseNormArgs, nn_local_response_norm_defaults,
                                                       response_norm_fields),
                                            .init = response_norm_init,
                                            .forward = response_norm_forward };
NN_REGISTER(local_response_norm);
Module *nn_local_response_norm_args(NNResponseNormArgs args) { return nn_make(&local_response_norm, &args); }
