/* ops/loss.h - losses, and log-probabilities.  Included by ops.h.
 *
 *     Tensor *loss = tensor_triplet_margin_loss(anchor, positive, negative, .margin = 0.5);
 *     Tensor *ctc = tensor_ctc_loss(tensor_log_softmax(logits, 2), targets, input_lengths, target_lengths);
 *     Tensor *policy = tensor_neg(tensor_mul(tensor_categorical_log_prob(logits, action), reward));
 *
 * Operands of a loss have the same shape (ESHAPE): nothing is broadcast that PyTorch would broadcast
 * in silence.  Targets that hold 1 and -1, or 0 and 1, may be of an integer dtype.  What is called relu below
 * has the gradient 0 at its kink, and passes NaN (two of PyTorch's, multi_margin and multilabel_margin, drop
 * it). */
#ifndef TAPEGRAD_OPS_LOSS_H
#define TAPEGRAD_OPS_LOSS_H

#include <tapegrad/ops/reduce.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses -------------------------------------------------------------------------------------
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
    TensorReduction reduction;
} TensorLossArgs;
#define TENSOR_LOSS_DEFAULTS .reduction = TENSOR_MEAN
TAPEGRAD_API extern const TensorLossArgs tensor_loss_defaults;

typedef struct TensorSmoothL1Args {
    Tensor *input, *target;
    TensorReduction reduction;
    double beta; /* where the square ends */
} TensorSmoothL1Args;
#define TENSOR_SMOOTH_L1_DEFAULTS .reduction = TENSOR_MEAN, .beta = 1
TAPEGRAD_API extern const TensorSmoothL1Args tensor_smooth_l1_defaults;

typedef struct TensorHuberArgs {
    Tensor *input, *target;
    TensorReduction reduction;
    double delta; /* where the square ends */
} TensorHuberArgs;
#define TENSOR_HUBER_DEFAULTS .reduction = TENSOR_MEAN, .delta = 1
TAPEGRAD_API extern const TensorHuberArgs tensor_huber_defaults;

typedef struct TensorKlDivArgs {
    Tensor *input, *target;
    TensorReduction reduction;
    bool log_target; /* target holds logarithms */
} TensorKlDivArgs;
#define TENSOR_KL_DIV_DEFAULTS .reduction = TENSOR_MEAN, .log_target = false
TAPEGRAD_API extern const TensorKlDivArgs tensor_kl_div_defaults;

/* Of input x and target t, both differentiable.  ESHAPE: different shapes; nothing is broadcast.
 *   tensor_mse_loss        (x - t)^2
 *   tensor_l1_loss         |x - t|, gradient 0 at 0
 *   tensor_smooth_l1_loss  d = |x - t|: d^2 / (2 beta) below beta, else d - beta / 2; beta = 0 is l1
 *   tensor_huber_loss      d^2 / 2 up to delta, else delta (d - delta / 2)
 *   tensor_kl_div          x holds log-probabilities: t (log t - x), 0 where t is 0; .log_target: e^t (t - x)
 */
#define tensor_mse_loss(...) \
    TENSOR_CALL_(tensor_mse_loss_args, TensorLossArgs, TENSOR_LOSS_DEFAULTS, .input = __VA_ARGS__)
#define tensor_l1_loss(...) \
    TENSOR_CALL_(tensor_l1_loss_args, TensorLossArgs, TENSOR_LOSS_DEFAULTS, .input = __VA_ARGS__)
#define tensor_smooth_l1_loss(...)                                                          \
    TENSOR_CALL_(tensor_smooth_l1_loss_args, TensorSmoothL1Args, TENSOR_SMOOTH_L1_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_huber_loss(...) \
    TENSOR_CALL_(tensor_huber_loss_args, TensorHuberArgs, TENSOR_HUBER_DEFAULTS, .input = __VA_ARGS__)
#define tensor_kl_div(...) \
    TENSOR_CALL_(tensor_kl_div_args, TensorKlDivArgs, TENSOR_KL_DIV_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_mse_loss_args(TensorLossArgs args);
TAPEGRAD_API Tensor *tensor_l1_loss_args(TensorLossArgs args);
TAPEGRAD_API Tensor *tensor_smooth_l1_loss_args(TensorSmoothL1Args args);
TAPEGRAD_API Tensor *tensor_huber_loss_args(TensorHuberArgs args);
TAPEGRAD_API Tensor *tensor_kl_div_args(TensorKlDivArgs args);

typedef struct TensorBceArgs {
    Tensor *input, *target, *weight; /* weight (may be NULL) broadcasts to the input's shape, no gradient */
    TensorReduction reduction;
    Tensor *pos_weight; /* with_logits: factor of the positive part, broadcasts; may be NULL, no gradient */
} TensorBceArgs;

/* tensor_binary_cross_entropy - -t log x - (1 - t) log(1 - x), logarithms held above -100, also in the
 * gradient of t, where PyTorch's are infinite.  EVALUE: x outside [0, 1] (NaN is let through).
 * tensor_binary_cross_entropy_with_logits - the same of sigmoid(x), without overflow.  ESHAPE: target of
 * another shape. */
#define tensor_binary_cross_entropy(...) \
    tensor_binary_cross_entropy_args((TensorBceArgs){ .input = __VA_ARGS__ })
#define tensor_binary_cross_entropy_with_logits(...) \
    tensor_binary_cross_entropy_with_logits_args((TensorBceArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_binary_cross_entropy_args(TensorBceArgs args);
TAPEGRAD_API Tensor *tensor_binary_cross_entropy_with_logits_args(TensorBceArgs args);

typedef struct TensorClassLossArgs {
    Tensor *input, *target, *weight; /* weight: [C] or NULL */
    int64_t ignore_index;            /* default -100 */
    TensorReduction reduction;
    double label_smoothing; /* cross_entropy: s, in [0, 1] */
} TensorClassLossArgs;
#define TENSOR_CLASS_LOSS_(function, ...) \
    function((TensorClassLossArgs){ .ignore_index = -100, .input = __VA_ARGS__ })

/* input [C] or [N, C, d1, ...], target class indices [] or [N, d1, ...] (i64, i32 or u8).
 *   tensor_nll_loss        -w_t x_t: x holds log-probabilities
 *   tensor_cross_entropy   (1 - s) w_t (lse - x_t) + s / C sum_c w_c (lse - x_c), lse = log sum e^x over the
 * classes The mean divides by the sum of w_t; positions whose target is ignore_index count nowhere; all
 * ignored gives NaN. cross_entropy also takes a floating target of the input's shape, probabilities q
 * (differentiable): sum_c w_c q'_c (lse - x_c), q' = (1 - s) q + s / C; the mean divides by the number of
 * positions. EINDEX: a target outside [0, C) that is not ignore_index; the text gives its position and value.
 * ESHAPE. */
#define tensor_nll_loss(...) TENSOR_CLASS_LOSS_(tensor_nll_loss_args, __VA_ARGS__)
#define tensor_cross_entropy(...) TENSOR_CLASS_LOSS_(tensor_cross_entropy_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_nll_loss_args(TensorClassLossArgs args);
TAPEGRAD_API Tensor *tensor_cross_entropy_args(TensorClassLossArgs args);

/* ---- likelihoods ----------------------------------------------------------------------------- */

typedef struct TensorGaussianNllArgs {
    Tensor *input, *target, *var;
    bool full;
    double eps; /* 1e-6 */
    TensorReduction reduction;
} TensorGaussianNllArgs;

/* tensor_gaussian_nll_loss - (log v + (x - t)^2 / v) / 2, v = max(var, eps), whose gradient passes to var as
 * if not held; .full adds log(2 pi) / 2.  var has the input's shape, or that without the last dim, or with
 * one dim of size 1. EVALUE: a negative var. */
#define tensor_gaussian_nll_loss(...) \
    tensor_gaussian_nll_loss_args((TensorGaussianNllArgs){ .eps = 1e-6, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_gaussian_nll_loss_args(TensorGaussianNllArgs args);

typedef struct TensorPoissonNllArgs {
    Tensor *input, *target;
    bool log_input, full; /* true, false */
    double eps;           /* 1e-8 */
    TensorReduction reduction;
} TensorPoissonNllArgs;

/* tensor_poisson_nll_loss - e^x - t x; x - t log(x + eps) without .log_input; .full adds t log t - t + log(2
 * pi t) / 2 where t > 1, which has no gradient elsewhere (PyTorch's is NaN at t = 0). */
#define tensor_poisson_nll_loss(...) \
    tensor_poisson_nll_loss_args(    \
        (TensorPoissonNllArgs){ .log_input = true, .eps = 1e-8, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_poisson_nll_loss_args(TensorPoissonNllArgs args);

/* ---- margins between pairs ------------------------------------------------------------------- */

typedef struct TensorHingeEmbeddingArgs {
    Tensor *input, *target;
    double margin; /* 1 */
    TensorReduction reduction;
} TensorHingeEmbeddingArgs;

/* tensor_hinge_embedding_loss - x where t is 1, relu(margin - x) where it is -1 (the sum of both elsewhere).
 */
#define tensor_hinge_embedding_loss(...) \
    tensor_hinge_embedding_loss_args((TensorHingeEmbeddingArgs){ .margin = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_hinge_embedding_loss_args(TensorHingeEmbeddingArgs args);

typedef struct TensorPairLossArgs {
    Tensor *input1, *input2, *target;
    double margin; /* 0 */
    TensorReduction reduction;
} TensorPairLossArgs;

/* tensor_margin_ranking_loss - relu(-t (x1 - x2) + margin).
 * tensor_cosine_embedding_loss - of x1, x2 [N, D] and t [N], or [D] and []: 1 - cos where t is 1, relu(cos -
 * margin) where it is -1, else 0; cos = x1 . x2 / sqrt((|x1|^2 + 1e-12) (|x2|^2 + 1e-12)). */
#define tensor_margin_ranking_loss(...) \
    tensor_margin_ranking_loss_args((TensorPairLossArgs){ .input1 = __VA_ARGS__ })
#define tensor_cosine_embedding_loss(...) \
    tensor_cosine_embedding_loss_args((TensorPairLossArgs){ .input1 = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_margin_ranking_loss_args(TensorPairLossArgs args);
TAPEGRAD_API Tensor *tensor_cosine_embedding_loss_args(TensorPairLossArgs args);

typedef struct TensorTripletArgs {
    Tensor *anchor, *positive, *negative;
    double margin, p, eps; /* 1, 2, 1e-6 */
    bool swap;
    TensorReduction reduction;
} TensorTripletArgs;

/* tensor_triplet_margin_loss - relu(d(a, p) - d(a, n) + margin) over the last dim of [..., D], d(x, y) the
 * p-norm of x - y + eps; .swap takes the lesser of d(a, n) and d(p, n).  EVALUE: margin <= 0. */
#define tensor_triplet_margin_loss(...) \
    tensor_triplet_margin_loss_args(    \
        (TensorTripletArgs){ .margin = 1, .p = 2, .eps = 1e-6, .anchor = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_triplet_margin_loss_args(TensorTripletArgs args);

/* ---- margins between classes ----------------------------------------------------------------- */

typedef struct TensorSoftMarginArgs {
    Tensor *input, *target;
    TensorReduction reduction;
} TensorSoftMarginArgs;

/* tensor_soft_margin_loss - log(1 + e^(-t x)), without overflow.
 * tensor_multilabel_margin_loss - x [N, C] or [C]; target of its shape holds, in each row, the classes that
 * are right, ended by -1: sum of relu(1 - (x_j - x_i)) / C over the right j and the wrong i.  EINDEX: a
 * target outside [-1, C). */
#define tensor_soft_margin_loss(...) \
    tensor_soft_margin_loss_args((TensorSoftMarginArgs){ .input = __VA_ARGS__ })
#define tensor_multilabel_margin_loss(...) \
    tensor_multilabel_margin_loss_args((TensorSoftMarginArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_soft_margin_loss_args(TensorSoftMarginArgs args);
TAPEGRAD_API Tensor *tensor_multilabel_margin_loss_args(TensorSoftMarginArgs args);

typedef struct TensorMultilabelSoftMarginArgs {
    Tensor *input, *target, *weight; /* weight broadcasts to the input's shape, no gradient; may be NULL */
    TensorReduction reduction;
} TensorMultilabelSoftMarginArgs;

/* tensor_multilabel_soft_margin_loss - the mean over the last dim of -t log sigmoid(x) - (1 - t) log
 * sigmoid(-x). */
#define tensor_multilabel_soft_margin_loss(...) \
    tensor_multilabel_soft_margin_loss_args((TensorMultilabelSoftMarginArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_multilabel_soft_margin_loss_args(TensorMultilabelSoftMarginArgs args);

typedef struct TensorMultiMarginArgs {
    Tensor *input, *target;
    int p;          /* 1 */
    double margin;  /* 1 */
    Tensor *weight; /* [C], no gradient; may be NULL */
    TensorReduction reduction;
} TensorMultiMarginArgs;

/* tensor_multi_margin_loss - x [N, C], target [N] class indices, or [C] and []: w_t sum_(i != t) relu(margin
 * - x_t + x_i)^p / C. EVALUE: p not 1 or 2.  EINDEX: a target outside [0, C). */
#define tensor_multi_margin_loss(...) \
    tensor_multi_margin_loss_args((TensorMultiMarginArgs){ .p = 1, .margin = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_multi_margin_loss_args(TensorMultiMarginArgs args);

/* ---- alignment ------------------------------------------------------------------------------- */

typedef struct TensorCtcArgs {
    Tensor *log_probs, *targets, *input_lengths, *target_lengths;
    int64_t blank; /* 0 */
    TensorReduction reduction;
    bool zero_infinity;
} TensorCtcArgs;

/* tensor_ctc_loss - -log of the probability that a sequence collapses to its target: repeated labels merged,
 * then blanks dropped. log_probs [T, N, C]; targets [N, S], padded with anything, or the targets one behind
 * the other; lengths [N]: of integers. Or log_probs [T, C], targets [S], lengths [] or [1]. The mean is that
 * of loss / max(target length, 1).  What no path reaches has the loss infinity and the gradient NaN, or, with
 * .zero_infinity, 0 and 0.  The gradient is the derivative by log_probs; PyTorch's has e^log_probs added,
 * which the log_softmax before takes off again.  EINDEX: a label outside [0, C) or that is the blank, a
 * length outside its sequence. */
#define tensor_ctc_loss(...) tensor_ctc_loss_args((TensorCtcArgs){ .log_probs = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_ctc_loss_args(TensorCtcArgs args);

/* ---- log-probabilities --------------------------------------------------------------------------
 * Operands broadcast, as in torch.distributions.  Impossible values have -inf and finite gradients.  All
 * dtypes compute in f64. tensor_categorical_log_prob  log softmax(logits)[value]: logits [..., C], value
 * [...] integers (EINDEX outside [0, C)) tensor_normal_log_prob       -((value - loc) / scale)^2 / 2 - log
 * scale - log(2 pi) / 2 tensor_bernoulli_log_prob    value log sigmoid(logits) + (1 - value) log
 * sigmoid(-logits) tensor_..._entropy           of those distributions: -sum p log p (0 log 0 = 0) over the
 * classes, 1/2 + log(2 pi) / 2 + log scale */
TAPEGRAD_API Tensor *tensor_categorical_log_prob(Tensor *logits, Tensor *value);
TAPEGRAD_API Tensor *tensor_normal_log_prob(Tensor *value, Tensor *loc, Tensor *scale);
TAPEGRAD_API Tensor *tensor_bernoulli_log_prob(Tensor *logits, Tensor *value);
TAPEGRAD_API Tensor *tensor_categorical_entropy(Tensor *logits);
TAPEGRAD_API Tensor *tensor_normal_entropy(Tensor *scale);
TAPEGRAD_API Tensor *tensor_bernoulli_entropy(Tensor *logits);

#ifdef __cplusplus
}
#endif
#endif
