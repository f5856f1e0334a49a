/* op_layers.c - modules that are an op and its options: losses, distances, patches, unpooling, resizing.
 *
 * The options of such a module are those of the op; the operands, which begin the op's struct, are the inputs
 * of the forward.  A line of the table each. */
#include <string.h>
#include "../module.h"

/* OF_OP - a kind whose forward sets the first n operands; others are buffers, which `more` sets. */
#define OF_OP(name_, type, Args, defaults_, fields_, function_, n, init_, more)                    \
    static void name_##_call(Module *self, NNCall *c)                                              \
    {                                                                                              \
        Args a = *(const Args *)self->args;                                                        \
        memcpy((void *)&a, c->in, (n) * sizeof *c->in);                                            \
        more;                                                                                      \
        c->out[0] = function_(a);                                                                  \
    }                                                                                              \
    static const NNKind name_##_kind = { .name = (type),                                           \
                                         .function = "nn_" #name_,                                 \
                                         NN_OPTIONS(Args, tensor_##defaults_##_defaults, fields_), \
                                         .init = (init_),                                          \
                                         .call = name_##_call,                                     \
                                         .inputs = (n) };                                          \
    NN_REGISTER(name_##_kind);                                                                     \
    Module *nn_##name_##_args(Args args) { return nn_make(&name_##_kind, &args); }

static const char *const reductions[] = { "mean", "sum", "none", NULL }, *const kl_reductions[] = {
    "mean", "sum", "none", "batchmean", NULL
};
#define FIELDS(name, Args, ...) \
    static const OpField name##_fields[] = { __VA_ARGS__, OP_CHOICE(Args, reduction, reductions), { 0 } };

/* ---- losses without weights ------------------------------------------------------------------ */

static const OpField loss_fields[] = { OP_CHOICE(TensorLossArgs, reduction, reductions), { 0 } };
FIELDS(smooth_l1, TensorSmoothL1Args, OP_OPTION(TensorSmoothL1Args, beta))
static const OpField kl_div_fields[] = { OP_OPTION(TensorKlDivArgs, log_target),
                                         OP_CHOICE(TensorKlDivArgs, reduction, kl_reductions),
                                         { 0 } };
FIELDS(gaussian_nll, TensorGaussianNllArgs, OP_OPTION(TensorGaussianNllArgs, full, eps))
FIELDS(poisson_nll, TensorPoissonNllArgs, OP_OPTION(TensorPoissonNllArgs, log_input, full, eps))
FIELDS(hinge_embedding, TensorHingeEmbeddingArgs, OP_OPTION(TensorHingeEmbeddingArgs, margin))
FIELDS(pair_loss, TensorPairLossArgs, OP_OPTION(TensorPairLossArgs, margin))
FIELDS(triplet, TensorTripletArgs, OP_OPTION(TensorTripletArgs, margin, p, eps, swap))
FIELDS(ctc, TensorCtcArgs, OP_OPTION(TensorCtcArgs, blank, zero_infinity))

#define LOSS(name, type, Args, set, n) \
    OF_OP(name, type, Args, set, set##_fields, tensor_##name##_args, n, NULL, (void)0)
LOSS(smooth_l1_loss, "SmoothL1Loss", TensorSmoothL1Args, smooth_l1, 2)
LOSS(soft_margin_loss, "SoftMarginLoss", TensorLossArgs, loss, 2)
LOSS(multilabel_margin_loss, "MultiLabelMarginLoss", TensorLossArgs, loss, 2)
LOSS(gaussian_nll_loss, "GaussianNLLLoss", TensorGaussianNllArgs, gaussian_nll, 3)
LOSS(poisson_nll_loss, "PoissonNLLLoss", TensorPoissonNllArgs, poisson_nll, 2)
LOSS(hinge_embedding_loss, "HingeEmbeddingLoss", TensorHingeEmbeddingArgs, hinge_embedding, 2)
LOSS(margin_ranking_loss, "MarginRankingLoss", TensorPairLossArgs, pair_loss, 3)
LOSS(cosine_embedding_loss, "CosineEmbeddingLoss", TensorPairLossArgs, pair_loss, 3)
LOSS(ctc_loss, "CTCLoss", TensorCtcArgs, ctc, 4)
OF_OP(kl_div_loss, "KLDivLoss", TensorKlDivArgs, kl_div, kl_div_fields, tensor_kl_div_args, 2, NULL, (void)0)

static int triplet_init(Module *m, const void *args)
{
    const double margin = ((const TensorTripletArgs *)args)->margin;
    return margin > 0 ? 0 : nn_refuse(m, "margin = %g must be positive", margin);
}
OF_OP(triplet_margin_loss, "TripletMarginLoss", TensorTripletArgs, triplet, triplet_fields,
      tensor_triplet_margin_loss_args, 3, triplet_init, (void)0)

/* ---- losses with weights: buffers ------------------------------------------------------------ */

static Tensor *own_buffer(const Module *m, const char *name)
{
    for (int i = 0; i < m->buffer_count; i++)
        if (strcmp(m->buffers[i].name, name) == 0) return m->buffers[i].tensor;
    return NULL;
}

static int own_weight(Module *m, Tensor *weight)
{
    return !weight || nn_register_buffer(m, "weight", weight) ? 0 : -1;
}

#define OF_WEIGHTED(name, type, Args, set, function)                     \
    OF_OP(name, type, Args, set, set##_fields, function, 2, name##_init, \
          a.weight = own_buffer(self, "weight"))
#define WEIGHTED(name, type, Args, set, function)           \
    static int name##_init(Module *m, const void *args)     \
    {                                                       \
        return own_weight(m, ((const Args *)args)->weight); \
    }                                                       \
    OF_WEIGHTED(name, type, Args, set, function)

static const OpField weighted_loss_fields[] = { OP_CHOICE(TensorWeightedLossArgs, reduction, reductions),
                                                { 0 } };
FIELDS(huber, TensorHuberArgs, OP_OPTION(TensorHuberArgs, delta))
static const OpField bce_fields[] = { OP_CHOICE(TensorBceArgs, reduction, reductions), { 0 } };
static const OpField bce_logits_fields[] = { OP_CHOICE(TensorBceLogitsArgs, reduction, reductions), { 0 } };
static const OpField multilabel_soft_margin_fields[] = {
    OP_CHOICE(TensorMultilabelSoftMarginArgs, reduction, reductions), { 0 }
};
FIELDS(nll, TensorNllArgs, OP_OPTION(TensorNllArgs, ignore_index))
FIELDS(cross_entropy, TensorCrossEntropyArgs,
       OP_OPTION(TensorCrossEntropyArgs, ignore_index, label_smoothing))
FIELDS(multi_margin, TensorMultiMarginArgs, OP_OPTION(TensorMultiMarginArgs, p, margin))

WEIGHTED(mse_loss, "MSELoss", TensorWeightedLossArgs, weighted_loss, tensor_mse_loss_args)
WEIGHTED(l1_loss, "L1Loss", TensorWeightedLossArgs, weighted_loss, tensor_l1_loss_args)
WEIGHTED(huber_loss, "HuberLoss", TensorHuberArgs, huber, tensor_huber_loss_args)
WEIGHTED(bce_loss, "BCELoss", TensorBceArgs, bce, tensor_binary_cross_entropy_args)
WEIGHTED(nll_loss, "NLLLoss", TensorNllArgs, nll, tensor_nll_loss_args)
WEIGHTED(cross_entropy_loss, "CrossEntropyLoss", TensorCrossEntropyArgs, cross_entropy,
         tensor_cross_entropy_args)
WEIGHTED(multilabel_soft_margin_loss, "MultiLabelSoftMarginLoss", TensorMultilabelSoftMarginArgs,
         multilabel_soft_margin, tensor_multilabel_soft_margin_loss_args)

static int multi_margin_loss_init(Module *m, const void *args)
{
    const TensorMultiMarginArgs *a = args;
    if (a->p != 1 && a->p != 2) return nn_refuse(m, "p = %d: only 1 and 2 are possible", a->p);
    if (a->weight && tensor_ndim(a->weight) != 1)
        return nn_refuse(m, "a weight of rank %d: want [C]", tensor_ndim(a->weight));
    return own_weight(m, a->weight);
}
OF_WEIGHTED(multi_margin_loss, "MultiMarginLoss", TensorMultiMarginArgs, multi_margin,
            tensor_multi_margin_loss_args)

static int logits_init(Module *m, const void *args)
{
    const TensorBceLogitsArgs *a = args;
    if (own_weight(m, a->weight)) return -1;
    return !a->pos_weight || nn_register_buffer(m, "pos_weight", a->pos_weight) ? 0 : -1;
}
OF_OP(bce_with_logits_loss, "BCEWithLogitsLoss", TensorBceLogitsArgs, bce_logits, bce_logits_fields,
      tensor_binary_cross_entropy_with_logits_args, 2, logits_init,
      (a.weight = own_buffer(self, "weight"), a.pos_weight = own_buffer(self, "pos_weight")))

/* ---- distances ------------------------------------------------------------------------------- */

static const OpField cosine_fields[] = { OP_OPTION(TensorCosineArgs, dim, eps), { 0 } };
static const OpField pairwise_fields[] = { OP_OPTION(TensorPairwiseDistanceArgs, p, eps, keepdim), { 0 } };
OF_OP(cosine_similarity, "CosineSimilarity", TensorCosineArgs, cosine, cosine_fields,
      tensor_cosine_similarity_args, 2, NULL, (void)0)
OF_OP(pairwise_distance, "PairwiseDistance", TensorPairwiseDistanceArgs, pairwise_distance, pairwise_fields,
      tensor_pairwise_distance_args, 2, NULL, (void)0)

/* ---- images ---------------------------------------------------------------------------------- */

static const OpField unfold_fields[] = { OP_OPTION(TensorUnfoldArgs, kernel_size, dilation, padding, stride,
                                                   kernel_sizes, dilations, paddings, strides),
                                         { 0 } };
static const OpField fold_fields[] = { OP_REQUIRED(TensorFoldArgs, output_size),
                                       OP_OPTION(TensorFoldArgs, kernel_size, dilation, padding, stride,
                                                 kernel_sizes, dilations, paddings, strides),
                                       { 0 } };
OF_OP(unfold, "Unfold", TensorUnfoldArgs, unfold, unfold_fields, tensor_unfold_args, 1, NULL, (void)0)
OF_OP(fold, "Fold", TensorFoldArgs, fold, fold_fields, tensor_fold_args, 1, NULL, (void)0)

static const OpField unpool_fields[] = { OP_OPTION(TensorMaxUnpoolArgs, kernel_size, stride, padding,
                                                   output_size, kernel_sizes, strides, paddings),
                                         { 0 } };
#define UNPOOL(name, type)                                                                           \
    OF_OP(name, type, TensorMaxUnpoolArgs, max_unpool, unpool_fields, tensor_##name##_args, 2, NULL, \
          a.output_size = c->options ? *(const TensorShape *)c->options : a.output_size)
UNPOOL(max_unpool1d, "MaxUnpool1d")
UNPOOL(max_unpool2d, "MaxUnpool2d")
UNPOOL(max_unpool3d, "MaxUnpool3d")

Tensor *nn_max_unpool_forward(Module *m, Tensor *x, Tensor *indices, TensorShape output_size)
{
    static const NNKind *const kinds[] = { &max_unpool1d_kind, &max_unpool2d_kind, &max_unpool3d_kind };
    int rank = 0;
    if (nn_null(m, __func__)) return NULL;
    while (rank < 3 && m->kind != kinds[rank]) rank++;
    if (rank++ == 3) return tensor_fail(TENSOR_EVALUE, __func__, "not of a module %s", m->type), NULL;
    if (output_size.ndim == rank + 2 && output_size.dim) output_size.dim += 2, output_size.ndim = rank;
    NNCall c = { .in = { x, indices }, .results = 1, .options = &output_size };
    nn_run(m, &c);
    return c.out[0];
}

static const char *const upsample_modes[] = { "nearest",   "nearest-exact", "linear", "bilinear",
                                              "trilinear", "bicubic",       "area",   NULL };
static const OpField upsample_fields[] = { OP_OPTION(TensorInterpolateArgs, size, scale_factor),
                                           OP_CHOICE(TensorInterpolateArgs, mode, upsample_modes),
                                           OP_OPTION(TensorInterpolateArgs, align_corners,
                                                     recompute_scale_factor, scale_factors),
                                           { 0 } };
OF_OP(upsample, "Upsample", TensorInterpolateArgs, interpolate, upsample_fields, tensor_interpolate_args, 1,
      NULL, (void)0)
