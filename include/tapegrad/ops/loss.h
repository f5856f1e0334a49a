/* ops/loss.h - losses, and log-probabilities.  Included by ops.h.
 *
 *     Tensor *loss = tensor_triplet_margin_loss(anchor, positive, negative, .margin = 0.5);
 *     Tensor *ctc = tensor_ctc_loss(tensor_log_softmax(logits, 2), targets, input_lengths, target_lengths);
 *     Tensor *policy = tensor_neg(tensor_mul(tensor_categorical_log_prob(logits, action), reward));
 *
 * Input and target of a loss have the same shape (ESHAPE); they do not broadcast (PyTorch's do, with a
 * warning).  Unless stated otherwise, operands of different dtypes are promoted as in arithmetic, integers to
 * f32; f16 and bf16 compute in f32 and round once.  relu has the gradient 0 at 0 and passes NaN on (PyTorch's
 * multi_margin and multilabel_margin drop it).  Every loss has first and second derivatives. */
#ifndef TAPEGRAD_OPS_LOSS_H
#define TAPEGRAD_OPS_LOSS_H

#include <tapegrad/ops/reduce.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- of two tensors of one shape ----------------------------------------------------------------
 * .reduction: TENSOR_MEAN over all elements (the default), TENSOR_SUM, or TENSOR_NONE, a loss for each
 * element. */
typedef enum TensorReduction {
    TENSOR_MEAN,
    TENSOR_SUM,
    TENSOR_NONE,
    TENSOR_BATCHMEAN /* kl_div: the sum divided by the first size */
} TensorReduction;

typedef struct TensorLossArgs {
    Tensor *input, *target;
    TensorByName by_name;
    TensorReduction reduction;
} TensorLossArgs;
#define TENSOR_LOSS_DEFAULTS .reduction = TENSOR_MEAN
TAPEGRAD_API extern const TensorLossArgs tensor_loss_defaults;

typedef struct TensorWeightedLossArgs {
    Tensor *input, *target;
    TensorByName by_name;
    TensorReduction reduction;
    Tensor *weight; /* w, of the input's shape; has a gradient; may be NULL: 1 */
} TensorWeightedLossArgs;
#define TENSOR_WEIGHTED_LOSS_DEFAULTS .reduction = TENSOR_MEAN
TAPEGRAD_API extern const TensorWeightedLossArgs tensor_weighted_loss_defaults;

typedef struct TensorSmoothL1Args {
    Tensor *input, *target;
    TensorByName by_name;
    TensorReduction reduction;
    double beta; /* the quadratic part ends here */
    TensorFromDefaults from_defaults;
} TensorSmoothL1Args;
#define TENSOR_SMOOTH_L1_DEFAULTS .reduction = TENSOR_MEAN, .beta = 1, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSmoothL1Args tensor_smooth_l1_defaults;

typedef struct TensorHuberArgs {
    Tensor *input, *target;
    TensorByName by_name;
    TensorReduction reduction;
    double delta;   /* the quadratic part ends here */
    Tensor *weight; /* as in TensorWeightedLossArgs */
    TensorFromDefaults from_defaults;
} TensorHuberArgs;
#define TENSOR_HUBER_DEFAULTS .reduction = TENSOR_MEAN, .delta = 1, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorHuberArgs tensor_huber_defaults;

typedef struct TensorKlDivArgs {
    Tensor *input, *target;
    TensorByName by_name;
    TensorReduction reduction;
    bool log_target; /* target holds logarithms */
} TensorKlDivArgs;
#define TENSOR_KL_DIV_DEFAULTS .reduction = TENSOR_MEAN, .log_target = false
TAPEGRAD_API extern const TensorKlDivArgs tensor_kl_div_defaults;

/* x is the input, t the target; both have gradients:
 *   tensor_mse_loss        w (x - t)^2; with weights the mean is divided by their sum
 *   tensor_l1_loss         w |x - t|, gradient 0 at 0; the mean likewise
 *   tensor_smooth_l1_loss  d = |x - t|: d^2 / (2 beta) where d < beta, else d - beta / 2; beta = 0: l1_loss
 *   tensor_huber_loss      w d^2 / 2 where d <= delta, else w delta (d - delta / 2)
 *   tensor_kl_div          x holds log-probabilities: t (log t - x), 0 where t is 0; .log_target: e^t (t - x)
 * ESHAPE: different shapes, those of weights too.  EDTYPE: x and t are integers, except in l1_loss with
 * TENSOR_SUM or TENSOR_NONE, or weights; in kl_div, one is an integer; in huber_loss, whose result has the
 * dtype of x (promoted with w's), x is an integer. */
#define tensor_mse_loss(...)                                                                  \
    TENSOR_CALL_(tensor_mse_loss_args, TensorWeightedLossArgs, TENSOR_WEIGHTED_LOSS_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_l1_loss(...)                                                                  \
    TENSOR_CALL_(tensor_l1_loss_args, TensorWeightedLossArgs, TENSOR_WEIGHTED_LOSS_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_smooth_l1_loss(...)                                                          \
    TENSOR_CALL_(tensor_smooth_l1_loss_args, TensorSmoothL1Args, TENSOR_SMOOTH_L1_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_huber_loss(...) \
    TENSOR_CALL_(tensor_huber_loss_args, TensorHuberArgs, TENSOR_HUBER_DEFAULTS, .input = __VA_ARGS__)
#define tensor_kl_div(...) \
    TENSOR_CALL_(tensor_kl_div_args, TensorKlDivArgs, TENSOR_KL_DIV_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_mse_loss_args(TensorWeightedLossArgs args);
TAPEGRAD_API Tensor *tensor_l1_loss_args(TensorWeightedLossArgs args);
TAPEGRAD_API Tensor *tensor_smooth_l1_loss_args(TensorSmoothL1Args args);
TAPEGRAD_API Tensor *tensor_huber_loss_args(TensorHuberArgs args);
TAPEGRAD_API Tensor *tensor_kl_div_args(TensorKlDivArgs args);

typedef struct TensorBceArgs {
    Tensor *input, *target;
    Tensor *weight; /* broadcasts to the input's shape, no gradient; may be NULL */
    TensorByName by_name;
    TensorReduction reduction;
} TensorBceArgs;
#define TENSOR_BCE_DEFAULTS .reduction = TENSOR_MEAN
TAPEGRAD_API extern const TensorBceArgs tensor_bce_defaults;

/* tensor_binary_cross_entropy - w (-t log x - (1 - t) log(1 - x)); logarithms below -100 count as -100, in
 * the gradient of t too, where PyTorch's are infinite.
 * EVALUE: x outside [0, 1] on the CPU (NaN is allowed); on a device it gives NaN.  ESHAPE: target has another
 * shape.  EDTYPE: target has another dtype; integers.  A weight may have any dtype. */
#define tensor_binary_cross_entropy(...) \
    TENSOR_CALL_(tensor_binary_cross_entropy_args, TensorBceArgs, TENSOR_BCE_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_binary_cross_entropy_args(TensorBceArgs args);

typedef struct TensorBceLogitsArgs {
    Tensor *input, *target;
    Tensor *weight; /* broadcasts to the input's shape, no gradient; may be NULL */
    TensorByName by_name;
    TensorReduction reduction;
    Tensor *pos_weight; /* factor p of the positive term; as weight */
} TensorBceLogitsArgs;
#define TENSOR_BCE_LOGITS_DEFAULTS .reduction = TENSOR_MEAN
TAPEGRAD_API extern const TensorBceLogitsArgs tensor_bce_logits_defaults;

/* tensor_binary_cross_entropy_with_logits - w (-p t log s - (1 - t) log(1 - s)), s = sigmoid(x), without
 * overflow.  The result has t's dtype; weights may have any.  ESHAPE: target has another shape.  EDTYPE:
 * integers. */
#define tensor_binary_cross_entropy_with_logits(...)                                \
    TENSOR_CALL_(tensor_binary_cross_entropy_with_logits_args, TensorBceLogitsArgs, \
                 TENSOR_BCE_LOGITS_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_binary_cross_entropy_with_logits_args(TensorBceLogitsArgs args);

/* ---- classes --------------------------------------------------------------------------------- */

typedef struct TensorNllArgs {
    Tensor *input, *target;
    Tensor *weight;       /* [C], no gradient; may be NULL: 1 */
    int64_t ignore_index; /* positions with this target count nowhere */
    TensorByName by_name;
    TensorReduction reduction;
    TensorFromDefaults from_defaults;
} TensorNllArgs;
#define TENSOR_NLL_DEFAULTS \
    .ignore_index = -100, .reduction = TENSOR_MEAN, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorNllArgs tensor_nll_defaults;

typedef struct TensorCrossEntropyArgs {
    Tensor *input, *target;
    Tensor *weight;       /* [C], no gradient; may be NULL: 1 */
    int64_t ignore_index; /* positions with this target count nowhere */
    TensorByName by_name;
    TensorReduction reduction;
    double label_smoothing; /* s, in [0, 1] */
    TensorFromDefaults from_defaults;
} TensorCrossEntropyArgs;
#define TENSOR_CROSS_ENTROPY_DEFAULTS \
    .ignore_index = -100, .reduction = TENSOR_MEAN, .label_smoothing = 0, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCrossEntropyArgs tensor_cross_entropy_defaults;

/* Of input [C] or [N, C, d1, ...] and target class indices [] or [N, d1, ...] (i64, i32 or u8):
 *   tensor_nll_loss        -w_t x_t, x log-probabilities
 *   tensor_cross_entropy   (1 - s) w_t (lse - x_t) + s / C sum_c w_c (lse - x_c), lse = log sum_c e^(x_c)
 * TENSOR_MEAN divides by the sum of w_t; NaN if all positions are ignored.
 * tensor_cross_entropy also takes a floating target of the input's shape, probabilities q (differentiable):
 *   sum_c w_c q'_c (lse - x_c), q' = (1 - s) q + s / C; the mean divides by the number of positions.
 * EINDEX: a target outside [0, C) that is not ignore_index (the error names position and value).
 * ESHAPE: target has another shape; weight is not [C].  EVALUE: s outside [0, 1].  EDTYPE: input is not
 * floating; weight's dtype is not the input's (with probabilities it may be any). */
#define tensor_nll_loss(...) \
    TENSOR_CALL_(tensor_nll_loss_args, TensorNllArgs, TENSOR_NLL_DEFAULTS, .input = __VA_ARGS__)
#define tensor_cross_entropy(...)                                                                  \
    TENSOR_CALL_(tensor_cross_entropy_args, TensorCrossEntropyArgs, TENSOR_CROSS_ENTROPY_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_nll_loss_args(TensorNllArgs args);
TAPEGRAD_API Tensor *tensor_cross_entropy_args(TensorCrossEntropyArgs args);

typedef struct TensorLinearCrossEntropyArgs {
    Tensor *input, *linear_weight, *target;
    Tensor *linear_bias; /* linear_weight's shape without D, or NULL */
    Tensor *weight;      /* [C], no gradient; may be NULL: 1 */
    TensorByName by_name;
    TensorReduction reduction;
    int64_t ignore_index;   /* rows with this target count nowhere */
    double label_smoothing; /* s, in [0, 1] */
    int64_t chunk;          /* rows at a time; 0: about a million logits */
    TensorFromDefaults from_defaults;
} TensorLinearCrossEntropyArgs;
#define TENSOR_LINEAR_CROSS_ENTROPY_DEFAULTS                                                          \
    .reduction = TENSOR_MEAN, .ignore_index = -100, .label_smoothing = 0, .chunk = 0, TENSOR_BY_NAME, \
    TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorLinearCrossEntropyArgs tensor_linear_cross_entropy_defaults;

/* tensor_linear_cross_entropy(x, w, target, .linear_bias = b, .weight = classes) -
 * tensor_cross_entropy(tensor_linear(x, w, b), target, .weight = classes) of x [N, D] or [D], w [C, D] and
 * class indices or probabilities, a chunk of rows at a time.  Neither the loss nor its gradient holds all
 * logits [N, C]; backward computes them again.  Second derivatives do hold them, and so does every sweep with
 * w [C, d1, ..., D], whose logits are [N, C, d1, ...].  Under autocast products run in the lower dtype, on a
 * GPU those of f16 and bf16 in theirs, and the loss in f32.
 * Errors as tensor_cross_entropy; EDTYPE: x, w and b differ in dtype; EVALUE: chunk < 0. */
#define tensor_linear_cross_entropy(...)                                         \
    TENSOR_CALL_(tensor_linear_cross_entropy_args, TensorLinearCrossEntropyArgs, \
                 TENSOR_LINEAR_CROSS_ENTROPY_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_linear_cross_entropy_args(TensorLinearCrossEntropyArgs args);

/* ---- likelihoods ----------------------------------------------------------------------------- */

typedef struct TensorGaussianNllArgs {
    Tensor *input, *target, *var;
    bool full;  /* adds log(2 pi) / 2 */
    double eps; /* least variance */
    TensorByName by_name;
    TensorReduction reduction;
    TensorFromDefaults from_defaults;
} TensorGaussianNllArgs;
#define TENSOR_GAUSSIAN_NLL_DEFAULTS \
    .full = false, .eps = 1e-6, .reduction = TENSOR_MEAN, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorGaussianNllArgs tensor_gaussian_nll_defaults;

/* tensor_gaussian_nll_loss - (log v + (x - t)^2 / v) / 2, v = max(var, eps); var's gradient is that of v.
 * var has the input's shape, or that shape without the last dim, or with one dim of size 1 (ESHAPE).  EVALUE:
 * a negative var on the CPU (on a device it counts as eps); eps <= 0.  EDTYPE: var is not floating. */
#define tensor_gaussian_nll_loss(...)                                                                \
    TENSOR_CALL_(tensor_gaussian_nll_loss_args, TensorGaussianNllArgs, TENSOR_GAUSSIAN_NLL_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_gaussian_nll_loss_args(TensorGaussianNllArgs args);

typedef struct TensorPoissonNllArgs {
    Tensor *input, *target;
    bool log_input; /* input is the logarithm of the rate */
    bool full;      /* adds Stirling's approximation of log t! */
    double eps;
    TensorByName by_name;
    TensorReduction reduction;
    TensorFromDefaults from_defaults;
} TensorPoissonNllArgs;
#define TENSOR_POISSON_NLL_DEFAULTS                                                          \
    .log_input = true, .full = false, .eps = 1e-8, .reduction = TENSOR_MEAN, TENSOR_BY_NAME, \
    TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorPoissonNllArgs tensor_poisson_nll_defaults;

/* tensor_poisson_nll_loss - e^x - t x with log_input, else x - t log(x + eps).
 * .full adds t log t - t + log(2 pi t) / 2 where t > 1 (in PyTorch t's gradient is then NaN at t = 0). */
#define tensor_poisson_nll_loss(...)                                                              \
    TENSOR_CALL_(tensor_poisson_nll_loss_args, TensorPoissonNllArgs, TENSOR_POISSON_NLL_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_poisson_nll_loss_args(TensorPoissonNllArgs args);

/* ---- margins between pairs ------------------------------------------------------------------- */

typedef struct TensorHingeEmbeddingArgs {
    Tensor *input, *target;
    double margin;
    TensorByName by_name;
    TensorReduction reduction;
    TensorFromDefaults from_defaults;
} TensorHingeEmbeddingArgs;
#define TENSOR_HINGE_EMBEDDING_DEFAULTS \
    .margin = 1, .reduction = TENSOR_MEAN, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorHingeEmbeddingArgs tensor_hinge_embedding_defaults;

/* tensor_hinge_embedding_loss - x where t is 1, relu(margin - x) where t is -1, the sum of both elsewhere.
 * The target has no gradient.  The result has x's dtype, even an integer.  EDTYPE: the mean of integers.
 */
#define tensor_hinge_embedding_loss(...)                                     \
    TENSOR_CALL_(tensor_hinge_embedding_loss_args, TensorHingeEmbeddingArgs, \
                 TENSOR_HINGE_EMBEDDING_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_hinge_embedding_loss_args(TensorHingeEmbeddingArgs args);

typedef struct TensorPairLossArgs {
    Tensor *input1, *input2, *target;
    double margin;
    TensorByName by_name;
    TensorReduction reduction;
} TensorPairLossArgs;
#define TENSOR_PAIR_LOSS_DEFAULTS .margin = 0, .reduction = TENSOR_MEAN
TAPEGRAD_API extern const TensorPairLossArgs tensor_pair_loss_defaults;

/* tensor_margin_ranking_loss    - relu(-t (x1 - x2) + margin), all of one shape.
 * tensor_cosine_embedding_loss  - x1, x2 [N, D] and t [N], or [D] and []: 1 - cos where t is 1,
 *     relu(cos - margin) where t is -1, else 0; cos = x1 . x2 / sqrt((|x1|^2 + 1e-12) (|x2|^2 + 1e-12)).
 *     The target has no gradient and does not affect the dtype. */
#define tensor_margin_ranking_loss(...)                                                          \
    TENSOR_CALL_(tensor_margin_ranking_loss_args, TensorPairLossArgs, TENSOR_PAIR_LOSS_DEFAULTS, \
                 .input1 = __VA_ARGS__)
#define tensor_cosine_embedding_loss(...)                                                          \
    TENSOR_CALL_(tensor_cosine_embedding_loss_args, TensorPairLossArgs, TENSOR_PAIR_LOSS_DEFAULTS, \
                 .input1 = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_margin_ranking_loss_args(TensorPairLossArgs args);
TAPEGRAD_API Tensor *tensor_cosine_embedding_loss_args(TensorPairLossArgs args);

typedef struct TensorTripletArgs {
    Tensor *anchor, *positive, *negative;
    double margin, p, eps; /* p, eps: of the p-norm */
    bool swap;             /* uses min(d(a, n), d(p, n)) for d(a, n) */
    TensorByName by_name;
    TensorReduction reduction;
    Tensor *(*distance)(Tensor *x, Tensor *y, void *ctx); /* your d, composed of ops; NULL: the p-norm */
    void *ctx;                                            /* its last argument */
    TensorFromDefaults from_defaults;
} TensorTripletArgs;
#define TENSOR_TRIPLET_DEFAULTS                                                                  \
    .margin = 1, .p = 2, .eps = 1e-6, .swap = false, .reduction = TENSOR_MEAN, .distance = NULL, \
    .ctx = NULL, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorTripletArgs tensor_triplet_defaults;

/* tensor_triplet_margin_loss - relu(d(a, p) - d(a, n) + margin), a, p, n of one shape [..., D]; d(x, y) is
 * the p-norm of x - y + eps over the last dim, or .distance, which takes any shape and gives the loss's; NULL
 * from it fails the loss.  ESHAPE: different shapes.  EVALUE: margin <= 0. */
#define tensor_triplet_margin_loss(...)                                                       \
    TENSOR_CALL_(tensor_triplet_margin_loss_args, TensorTripletArgs, TENSOR_TRIPLET_DEFAULTS, \
                 .anchor = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_triplet_margin_loss_args(TensorTripletArgs args);

/* ---- margins between classes ----------------------------------------------------------------- */

/* tensor_soft_margin_loss        - log(1 + e^(-t x)), without overflow; the target has no gradient and does
 *     not affect the dtype.
 * tensor_multilabel_margin_loss - x [N, C] or [C]; each row of target, of x's shape, lists the right classes,
 *     ended by -1: sum of relu(1 - (x_j - x_i)) / C over right classes j and wrong classes i.
 *     EINDEX: a target outside [-1, C). */
#define tensor_soft_margin_loss(...) \
    TENSOR_CALL_(tensor_soft_margin_loss_args, TensorLossArgs, TENSOR_LOSS_DEFAULTS, .input = __VA_ARGS__)
#define tensor_multilabel_margin_loss(...)                                                 \
    TENSOR_CALL_(tensor_multilabel_margin_loss_args, TensorLossArgs, TENSOR_LOSS_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_soft_margin_loss_args(TensorLossArgs args);
TAPEGRAD_API Tensor *tensor_multilabel_margin_loss_args(TensorLossArgs args);

typedef struct TensorMultilabelSoftMarginArgs {
    Tensor *input, *target;
    Tensor *weight; /* broadcasts to the input's shape; may be NULL */
    TensorByName by_name;
    TensorReduction reduction;
} TensorMultilabelSoftMarginArgs;
#define TENSOR_MULTILABEL_SOFT_MARGIN_DEFAULTS .reduction = TENSOR_MEAN
TAPEGRAD_API extern const TensorMultilabelSoftMarginArgs tensor_multilabel_soft_margin_defaults;

/* tensor_multilabel_soft_margin_loss - the mean over the last dim of
 *     w (-t log sigmoid(x) - (1 - t) log sigmoid(-x)).  The weight has a gradient, as in PyTorch.
 *     EDTYPE: x is not floating. */
#define tensor_multilabel_soft_margin_loss(...)                                           \
    TENSOR_CALL_(tensor_multilabel_soft_margin_loss_args, TensorMultilabelSoftMarginArgs, \
                 TENSOR_MULTILABEL_SOFT_MARGIN_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_multilabel_soft_margin_loss_args(TensorMultilabelSoftMarginArgs args);

typedef struct TensorMultiMarginArgs {
    Tensor *input, *target;
    int p; /* 1 or 2 */
    double margin;
    Tensor *weight; /* [C], no gradient; may be NULL */
    TensorByName by_name;
    TensorReduction reduction;
    TensorFromDefaults from_defaults;
} TensorMultiMarginArgs;
#define TENSOR_MULTI_MARGIN_DEFAULTS \
    .p = 1, .margin = 1, .reduction = TENSOR_MEAN, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorMultiMarginArgs tensor_multi_margin_defaults;

/* tensor_multi_margin_loss - w_t sum_(i != t) relu(margin - x_t + x_i)^p / C of x [N, C] and class indices
 * [N], or [C] and [].  EVALUE: p not 1 or 2.  EINDEX: a target outside [0, C).  EDTYPE: x not floating;
 * weight of another dtype. */
#define tensor_multi_margin_loss(...)                                                                \
    TENSOR_CALL_(tensor_multi_margin_loss_args, TensorMultiMarginArgs, TENSOR_MULTI_MARGIN_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_multi_margin_loss_args(TensorMultiMarginArgs args);

/* ---- alignment ------------------------------------------------------------------------------- */

typedef struct TensorCtcArgs {
    Tensor *log_probs, *targets, *input_lengths, *target_lengths;
    int64_t blank; /* the blank class */
    TensorByName by_name;
    TensorReduction reduction;
    bool zero_infinity; /* an infinite loss counts as 0, with gradient 0 */
} TensorCtcArgs;
#define TENSOR_CTC_DEFAULTS .blank = 0, .reduction = TENSOR_MEAN, .zero_infinity = false
TAPEGRAD_API extern const TensorCtcArgs tensor_ctc_defaults;

/* tensor_ctc_loss - -log of the probability that a sequence collapses to its target when equal neighbours are
 * merged and blanks removed.
 *   log_probs [T, N, C]; lengths [N]; targets [N, S], with any padding, or concatenated in one vector
 *   log_probs [T, C];    lengths [] or [1];   targets [S]
 * Targets and lengths are integers (EDTYPE).  TENSOR_MEAN is the mean of loss / max(target length, 1).  If no
 * path exists the loss is infinite and the gradient NaN, unless .zero_infinity.  The gradient is the
 * derivative with respect to log_probs; PyTorch adds e^log_probs, which the backward of log_softmax removes
 * again.
 * EINDEX: a label outside [0, C) or equal to the blank; a length outside its sequence. */
#define tensor_ctc_loss(...) \
    TENSOR_CALL_(tensor_ctc_loss_args, TensorCtcArgs, TENSOR_CTC_DEFAULTS, .log_probs = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_ctc_loss_args(TensorCtcArgs args);

/* ---- log-probabilities --------------------------------------------------------------------------
 * Operands broadcast, as in torch.distributions.  Impossible values give -inf and finite gradients.  The
 * Bernoulli ones are rows (elementwise.h).
 *   tensor_categorical_log_prob  log softmax(logits)[value]; logits [..., C], value [...] integers
 *                                (EINDEX outside [0, C))
 *   tensor_normal_log_prob       -((value - loc) / scale)^2 / 2 - log scale - log(2 pi) / 2
 *   tensor_bernoulli_log_prob    value log sigmoid(logits) + (1 - value) log sigmoid(-logits)
 *   tensor_categorical_entropy   -sum p log p over the classes, 0 log 0 = 0
 *   tensor_normal_entropy        1/2 + log(2 pi) / 2 + log scale
 *   tensor_bernoulli_entropy     -p log p - (1 - p) log(1 - p), p = sigmoid(logits) */
TAPEGRAD_API Tensor *tensor_categorical_log_prob(Tensor *logits, Tensor *value);
TAPEGRAD_API Tensor *tensor_normal_log_prob(Tensor *value, Tensor *loc, Tensor *scale);
TAPEGRAD_API Tensor *tensor_categorical_entropy(Tensor *logits);
TAPEGRAD_API Tensor *tensor_normal_entropy(Tensor *scale);

#ifdef __cplusplus
}
#endif
#endif
