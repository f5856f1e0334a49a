/* nn/loss.h - losses and distances as modules.  Included by nn/layers.h.
 *
 *     Module *criterion = nn_cross_entropy_loss(.label_smoothing = 0.1);
 *     Tensor *loss = nn_forward(criterion, logits, target);
 *
 * Each calls the op beside it (formulas, shapes and errors in ops/loss.h and ops/linalg.h), with the options
 * of that op's struct.  The tensors at the beginning of the struct are the inputs of the forward, in this
 * order: do not set them here.  .weight and .pos_weight are set here, and are buffers in the state dict, as
 * in PyTorch, whose MSELoss, L1Loss and HuberLoss take none. */
#ifndef TAPEGRAD_NN_LOSS_H
#define TAPEGRAD_NN_LOSS_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* With inputs (x, target):
 *   nn_mse_loss                  tensor_mse_loss             nn_l1_loss         tensor_l1_loss
 *   nn_smooth_l1_loss            tensor_smooth_l1_loss       nn_huber_loss      tensor_huber_loss
 *   nn_kl_div_loss               tensor_kl_div               nn_bce_loss        tensor_binary_cross_entropy
 *   nn_bce_with_logits_loss      tensor_binary_cross_entropy_with_logits
 *   nn_nll_loss                  tensor_nll_loss             nn_cross_entropy_loss  tensor_cross_entropy
 *   nn_poisson_nll_loss          tensor_poisson_nll_loss     nn_soft_margin_loss    tensor_soft_margin_loss
 *   nn_hinge_embedding_loss      tensor_hinge_embedding_loss
 *   nn_multilabel_margin_loss    tensor_multilabel_margin_loss
 *   nn_multilabel_soft_margin_loss  tensor_multilabel_soft_margin_loss
 *   nn_multi_margin_loss         tensor_multi_margin_loss
 * with other inputs:
 *   nn_gaussian_nll_loss         tensor_gaussian_nll_loss (x, target, var)
 *   nn_margin_ranking_loss       tensor_margin_ranking_loss (x1, x2, target)
 *   nn_cosine_embedding_loss     tensor_cosine_embedding_loss (x1, x2, target)
 *   nn_triplet_margin_loss       tensor_triplet_margin_loss (anchor, positive, negative)
 *   nn_ctc_loss                  tensor_ctc_loss (log_probs, targets, input_lengths, target_lengths)
 *   nn_cosine_similarity         tensor_cosine_similarity (a, b)
 *   nn_pairwise_distance         tensor_pairwise_distance (a, b) */
#define nn_mse_loss(...)                                                                                  \
    TENSOR_CALL_(nn_mse_loss_args, TensorWeightedLossArgs, TENSOR_WEIGHTED_LOSS_DEFAULTS, .target = NULL, \
                 __VA_ARGS__)
#define nn_l1_loss(...)                                                                                  \
    TENSOR_CALL_(nn_l1_loss_args, TensorWeightedLossArgs, TENSOR_WEIGHTED_LOSS_DEFAULTS, .target = NULL, \
                 __VA_ARGS__)
#define nn_smooth_l1_loss(...)                                                                          \
    TENSOR_CALL_(nn_smooth_l1_loss_args, TensorSmoothL1Args, TENSOR_SMOOTH_L1_DEFAULTS, .target = NULL, \
                 __VA_ARGS__)
#define nn_huber_loss(...) \
    TENSOR_CALL_(nn_huber_loss_args, TensorHuberArgs, TENSOR_HUBER_DEFAULTS, .target = NULL, __VA_ARGS__)
#define nn_kl_div_loss(...) \
    TENSOR_CALL_(nn_kl_div_loss_args, TensorKlDivArgs, TENSOR_KL_DIV_DEFAULTS, .target = NULL, __VA_ARGS__)
#define nn_bce_loss(...) \
    TENSOR_CALL_(nn_bce_loss_args, TensorBceArgs, TENSOR_BCE_DEFAULTS, .target = NULL, __VA_ARGS__)
#define nn_bce_with_logits_loss(...)                                                            \
    TENSOR_CALL_(nn_bce_with_logits_loss_args, TensorBceLogitsArgs, TENSOR_BCE_LOGITS_DEFAULTS, \
                 .target = NULL, __VA_ARGS__)
#define nn_nll_loss(...) \
    TENSOR_CALL_(nn_nll_loss_args, TensorNllArgs, TENSOR_NLL_DEFAULTS, .target = NULL, __VA_ARGS__)
#define nn_cross_entropy_loss(...)                                                                  \
    TENSOR_CALL_(nn_cross_entropy_loss_args, TensorCrossEntropyArgs, TENSOR_CROSS_ENTROPY_DEFAULTS, \
                 .target = NULL, __VA_ARGS__)
#define nn_gaussian_nll_loss(...)                                                                \
    TENSOR_CALL_(nn_gaussian_nll_loss_args, TensorGaussianNllArgs, TENSOR_GAUSSIAN_NLL_DEFAULTS, \
                 .var = NULL, __VA_ARGS__)
#define nn_poisson_nll_loss(...)                                                              \
    TENSOR_CALL_(nn_poisson_nll_loss_args, TensorPoissonNllArgs, TENSOR_POISSON_NLL_DEFAULTS, \
                 .target = NULL, __VA_ARGS__)
#define nn_hinge_embedding_loss(...)                                                                      \
    TENSOR_CALL_(nn_hinge_embedding_loss_args, TensorHingeEmbeddingArgs, TENSOR_HINGE_EMBEDDING_DEFAULTS, \
                 .target = NULL, __VA_ARGS__)
#define nn_margin_ranking_loss(...)                                                                          \
    TENSOR_CALL_(nn_margin_ranking_loss_args, TensorPairLossArgs, TENSOR_PAIR_LOSS_DEFAULTS, .target = NULL, \
                 __VA_ARGS__)
#define nn_cosine_embedding_loss(...)                                                          \
    TENSOR_CALL_(nn_cosine_embedding_loss_args, TensorPairLossArgs, TENSOR_PAIR_LOSS_DEFAULTS, \
                 .target = NULL, __VA_ARGS__)
#define nn_triplet_margin_loss(...)                                                                         \
    TENSOR_CALL_(nn_triplet_margin_loss_args, TensorTripletArgs, TENSOR_TRIPLET_DEFAULTS, .negative = NULL, \
                 __VA_ARGS__)
#define nn_soft_margin_loss(...) \
    TENSOR_CALL_(nn_soft_margin_loss_args, TensorLossArgs, TENSOR_LOSS_DEFAULTS, .target = NULL, __VA_ARGS__)
#define nn_multilabel_margin_loss(...)                                                                 \
    TENSOR_CALL_(nn_multilabel_margin_loss_args, TensorLossArgs, TENSOR_LOSS_DEFAULTS, .target = NULL, \
                 __VA_ARGS__)
#define nn_multilabel_soft_margin_loss(...)                                           \
    TENSOR_CALL_(nn_multilabel_soft_margin_loss_args, TensorMultilabelSoftMarginArgs, \
                 TENSOR_MULTILABEL_SOFT_MARGIN_DEFAULTS, .target = NULL, __VA_ARGS__)
#define nn_multi_margin_loss(...)                                                                \
    TENSOR_CALL_(nn_multi_margin_loss_args, TensorMultiMarginArgs, TENSOR_MULTI_MARGIN_DEFAULTS, \
                 .target = NULL, __VA_ARGS__)
#define nn_ctc_loss(...) \
    TENSOR_CALL_(nn_ctc_loss_args, TensorCtcArgs, TENSOR_CTC_DEFAULTS, .target_lengths = NULL, __VA_ARGS__)
#define nn_cosine_similarity(...) \
    TENSOR_CALL_(nn_cosine_similarity_args, TensorCosineArgs, TENSOR_COSINE_DEFAULTS, .b = NULL, __VA_ARGS__)
#define nn_pairwise_distance(...)                                                                          \
    TENSOR_CALL_(nn_pairwise_distance_args, TensorPairwiseDistanceArgs, TENSOR_PAIRWISE_DISTANCE_DEFAULTS, \
                 .b = NULL, __VA_ARGS__)
TAPEGRAD_API Module *nn_mse_loss_args(TensorWeightedLossArgs args);
TAPEGRAD_API Module *nn_l1_loss_args(TensorWeightedLossArgs args);
TAPEGRAD_API Module *nn_smooth_l1_loss_args(TensorSmoothL1Args args);
TAPEGRAD_API Module *nn_huber_loss_args(TensorHuberArgs args);
TAPEGRAD_API Module *nn_kl_div_loss_args(TensorKlDivArgs args);
TAPEGRAD_API Module *nn_bce_loss_args(TensorBceArgs args);
TAPEGRAD_API Module *nn_bce_with_logits_loss_args(TensorBceLogitsArgs args);
TAPEGRAD_API Module *nn_nll_loss_args(TensorNllArgs args);
TAPEGRAD_API Module *nn_cross_entropy_loss_args(TensorCrossEntropyArgs args);
TAPEGRAD_API Module *nn_gaussian_nll_loss_args(TensorGaussianNllArgs args);
TAPEGRAD_API Module *nn_poisson_nll_loss_args(TensorPoissonNllArgs args);
TAPEGRAD_API Module *nn_hinge_embedding_loss_args(TensorHingeEmbeddingArgs args);
TAPEGRAD_API Module *nn_margin_ranking_loss_args(TensorPairLossArgs args);
TAPEGRAD_API Module *nn_cosine_embedding_loss_args(TensorPairLossArgs args);
TAPEGRAD_API Module *nn_triplet_margin_loss_args(TensorTripletArgs args);
TAPEGRAD_API Module *nn_soft_margin_loss_args(TensorLossArgs args);
TAPEGRAD_API Module *nn_multilabel_margin_loss_args(TensorLossArgs args);
TAPEGRAD_API Module *nn_multilabel_soft_margin_loss_args(TensorMultilabelSoftMarginArgs args);
TAPEGRAD_API Module *nn_multi_margin_loss_args(TensorMultiMarginArgs args);
TAPEGRAD_API Module *nn_ctc_loss_args(TensorCtcArgs args);
TAPEGRAD_API Module *nn_cosine_similarity_args(TensorCosineArgs args);
TAPEGRAD_API Module *nn_pairwise_distance_args(TensorPairwiseDistanceArgs args);

/* nn_triplet_margin_with_distance_loss(.distance = d, .margin = 2) - nn_triplet_margin_loss. */
#define nn_triplet_margin_with_distance_loss(...) nn_triplet_margin_loss(__VA_ARGS__)

typedef struct NNLinearCrossEntropyLossArgs {
    int64_t in_features, num_classes;
    TensorShape out_features; /* further dims of the target [N, d1, ...]; empty: none */
    bool bias;
    TensorByName by_name;
    TensorDtype dtype;
    TensorReduction reduction;
    Tensor *weight; /* of the classes: a buffer; NULL: 1 */
    int64_t ignore_index;
    double label_smoothing;
    TensorFromDefaults from_defaults;
} NNLinearCrossEntropyLossArgs;
#define NN_LINEAR_CROSS_ENTROPY_LOSS_DEFAULTS \
    .in_features = -1, .num_classes = -1, .ignore_index = -100, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNLinearCrossEntropyLossArgs nn_linear_cross_entropy_loss_defaults;

/* nn_linear_cross_entropy_loss(in, classes) - tensor_linear_cross_entropy (x, target) with its own linear
 * layer: linear.weight [classes, in], linear.bias [classes], as in nn_linear. */
#define nn_linear_cross_entropy_loss(...)                                         \
    TENSOR_CALL_(nn_linear_cross_entropy_loss_args, NNLinearCrossEntropyLossArgs, \
                 NN_LINEAR_CROSS_ENTROPY_LOSS_DEFAULTS, .in_features = __VA_ARGS__)
TAPEGRAD_API Module *nn_linear_cross_entropy_loss_args(NNLinearCrossEntropyLossArgs args);

typedef struct NNAdaptiveSoftmaxArgs {
    int64_t in_features, n_classes;
    TensorShape cutoffs; /* SHAPE(100, 1000): first class of each cluster, increasing */
    double div_value;
    bool head_bias;
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNAdaptiveSoftmaxArgs;
#define NN_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS_DEFAULTS .div_value = 4, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNAdaptiveSoftmaxArgs nn_adaptive_log_softmax_with_loss_defaults;

/* nn_adaptive_log_softmax_with_loss(in, classes, SHAPE(100, 1000)) - (x [N, in], target [N]) ->
 *     (log-probability of each target, their mean negated).  The head has an output for each class below the
 *     first cutoff and one for each cluster of classes between two cutoffs; cluster i has in / div_value^(i +
 *     1) features.  head.weight [first + clusters, in], head.bias; tail.i.0.weight, tail.i.1.weight, as in
 *     nn_linear.
 * nn_adaptive_log_prob - the log-probabilities of all classes: [N, in] -> [N, classes].
 * EVALUE: cutoffs that do not increase within 1 .. classes - 1; another module.  EINDEX: a target is no
 * class. */
#define nn_adaptive_log_softmax_with_loss(...)                                  \
    TENSOR_CALL_(nn_adaptive_log_softmax_with_loss_args, NNAdaptiveSoftmaxArgs, \
                 NN_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS_DEFAULTS, .in_features = __VA_ARGS__)
TAPEGRAD_API Module *nn_adaptive_log_softmax_with_loss_args(NNAdaptiveSoftmaxArgs args);
TAPEGRAD_API Tensor *nn_adaptive_log_prob(Module *module, Tensor *x);

#ifdef __cplusplus
}
#endif
#endif
