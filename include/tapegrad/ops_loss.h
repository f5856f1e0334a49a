/* ops_loss.h - more losses, and log-probabilities.  Included by ops.h; ops_reduce.h has mse, cross entropy and the other first ones.
 *
 *     Tensor *loss = tensor_triplet_margin_loss(anchor, positive, negative, .margin = 0.5);
 *     Tensor *ctc = tensor_ctc_loss(tensor_log_softmax(logits, 2), targets, input_lengths, target_lengths);
 *     Tensor *policy = tensor_neg(tensor_mul(tensor_categorical_log_prob(logits, action), reward));
 *
 * .reduction as in ops_reduce.h.  Operands of a loss have the same shape (ESHAPE): nothing is broadcast that PyTorch would broadcast
 * in silence.  Targets that hold 1 and -1, or 0 and 1, may be of an integer dtype.  What is called relu below has the
 * gradient 0 at its kink, and passes NaN (two of PyTorch's, multi_margin and multilabel_margin, drop it). */
#ifndef TAPEGRAD_OPS_LOSS_H
#define TAPEGRAD_OPS_LOSS_H

#include <tapegrad/ops_reduce.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- likelihoods -------------------------------------------------------------------------------------- */

typedef struct TensorGaussianNllArgs {
    Tensor *input, *target, *var;
    bool full;
    double eps;                             /* 1e-6 */
    TensorReduction reduction;
} TensorGaussianNllArgs;

/* tensor_gaussian_nll_loss - (log v + (x - t)^2 / v) / 2, v = max(var, eps), whose gradient passes to var as if not held;
 * .full adds log(2 pi) / 2.  var has the input's shape, or that without the last dim, or with one dim of size 1.
 * EVALUE: a negative var. */
#define tensor_gaussian_nll_loss(...) \
    tensor_gaussian_nll_loss_args((TensorGaussianNllArgs){ .eps = 1e-6, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_gaussian_nll_loss_args(TensorGaussianNllArgs args);

typedef struct TensorPoissonNllArgs {
    Tensor *input, *target;
    bool log_input, full;                   /* true, false */
    double eps;                             /* 1e-8 */
    TensorReduction reduction;
} TensorPoissonNllArgs;

/* tensor_poisson_nll_loss - e^x - t x; x - t log(x + eps) without .log_input; .full adds t log t - t + log(2 pi t) / 2 where
 * t > 1, which has no gradient elsewhere (PyTorch's is NaN at t = 0). */
#define tensor_poisson_nll_loss(...) \
    tensor_poisson_nll_loss_args((TensorPoissonNllArgs){ .log_input = true, .eps = 1e-8, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_poisson_nll_loss_args(TensorPoissonNllArgs args);

/* ---- margins between pairs ---------------------------------------------------------------------------- */

typedef struct TensorHingeEmbeddingArgs {
    Tensor *input, *target;
    double margin;                          /* 1 */
    TensorReduction reduction;
} TensorHingeEmbeddingArgs;

/* tensor_hinge_embedding_loss - x where t is 1, relu(margin - x) where it is -1 (the sum of both elsewhere). */
#define tensor_hinge_embedding_loss(...) \
    tensor_hinge_embedding_loss_args((TensorHingeEmbeddingArgs){ .margin = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_hinge_embedding_loss_args(TensorHingeEmbeddingArgs args);

typedef struct TensorPairLossArgs {
    Tensor *input1, *input2, *target;
    double margin;                          /* 0 */
    TensorReduction reduction;
} TensorPairLossArgs;

/* tensor_margin_ranking_loss - relu(-t (x1 - x2) + margin).
 * tensor_cosine_embedding_loss - of x1, x2 [N, D] and t [N], or [D] and []: 1 - cos where t is 1, relu(cos - margin) where it is
 * -1, else 0; cos = x1 . x2 / sqrt((|x1|^2 + 1e-12) (|x2|^2 + 1e-12)). */
#define tensor_margin_ranking_loss(...) tensor_margin_ranking_loss_args((TensorPairLossArgs){ .input1 = __VA_ARGS__ })
#define tensor_cosine_embedding_loss(...) tensor_cosine_embedding_loss_args((TensorPairLossArgs){ .input1 = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_margin_ranking_loss_args(TensorPairLossArgs args);
TAPEGRAD_API Tensor *tensor_cosine_embedding_loss_args(TensorPairLossArgs args);

typedef struct TensorTripletArgs {
    Tensor *anchor, *positive, *negative;
    double margin, p, eps;                  /* 1, 2, 1e-6 */
    bool swap;
    TensorReduction reduction;
} TensorTripletArgs;

/* tensor_triplet_margin_loss - relu(d(a, p) - d(a, n) + margin) over the last dim of [..., D], d(x, y) the p-norm of x - y + eps;
 * .swap takes the lesser of d(a, n) and d(p, n).  EVALUE: margin <= 0. */
#define tensor_triplet_margin_loss(...) \
    tensor_triplet_margin_loss_args((TensorTripletArgs){ .margin = 1, .p = 2, .eps = 1e-6, .anchor = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_triplet_margin_loss_args(TensorTripletArgs args);

/* ---- margins between classes -------------------------------------------------------------------------- */

typedef struct TensorSoftMarginArgs {
    Tensor *input, *target;
    TensorReduction reduction;
} TensorSoftMarginArgs;

/* tensor_soft_margin_loss - log(1 + e^(-t x)), without overflow.
 * tensor_multilabel_margin_loss - x [N, C] or [C]; target of its shape holds, in each row, the classes that are right, ended by -1:
 * sum of relu(1 - (x_j - x_i)) / C over the right j and the wrong i.  EINDEX: a target outside [-1, C). */
#define tensor_soft_margin_loss(...) tensor_soft_margin_loss_args((TensorSoftMarginArgs){ .input = __VA_ARGS__ })
#define tensor_multilabel_margin_loss(...) tensor_multilabel_margin_loss_args((TensorSoftMarginArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_soft_margin_loss_args(TensorSoftMarginArgs args);
TAPEGRAD_API Tensor *tensor_multilabel_margin_loss_args(TensorSoftMarginArgs args);

typedef struct TensorMultilabelSoftMarginArgs {
    Tensor *input, *target, *weight;        /* weight broadcasts to the input's shape, no gradient; may be NULL */
    TensorReduction reduction;
} TensorMultilabelSoftMarginArgs;

/* tensor_multilabel_soft_margin_loss - the mean over the last dim of -t log sigmoid(x) - (1 - t) log sigmoid(-x). */
#define tensor_multilabel_soft_margin_loss(...) \
    tensor_multilabel_soft_margin_loss_args((TensorMultilabelSoftMarginArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_multilabel_soft_margin_loss_args(TensorMultilabelSoftMarginArgs args);

typedef struct TensorMultiMarginArgs {
    Tensor *input, *target;
    int p;                                  /* 1 */
    double margin;                          /* 1 */
    Tensor *weight;                         /* [C], no gradient; may be NULL */
    TensorReduction reduction;
} TensorMultiMarginArgs;

/* tensor_multi_margin_loss - x [N, C], target [N] class indices, or [C] and []: w_t sum_(i != t) relu(margin - x_t + x_i)^p / C.
 * EVALUE: p not 1 or 2.  EINDEX: a target outside [0, C). */
#define tensor_multi_margin_loss(...) \
    tensor_multi_margin_loss_args((TensorMultiMarginArgs){ .p = 1, .margin = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_multi_margin_loss_args(TensorMultiMarginArgs args);

/* ---- alignment ---------------------------------------------------------------------------------------- */

typedef struct TensorCtcArgs {
    Tensor *log_probs, *targets, *input_lengths, *target_lengths;
    int64_t blank;                          /* 0 */
    TensorReduction reduction;
    bool zero_infinity;
} TensorCtcArgs;

/* tensor_ctc_loss - -log of the probability that a sequence collapses to its target: repeated labels merged, then blanks dropped.
 *   log_probs [T, N, C]; targets [N, S], padded with anything, or the targets one behind the other; lengths [N]: of integers.
 *   Or log_probs [T, C], targets [S], lengths [] or [1].
 * The mean is that of loss / max(target length, 1).  What no path reaches has the loss infinity and the gradient NaN, or, with
 * .zero_infinity, 0 and 0.  The gradient is the derivative by log_probs; PyTorch's has e^log_probs added, which the log_softmax
 * before takes off again.  EINDEX: a label outside [0, C) or that is the blank, a length outside its sequence. */
#define tensor_ctc_loss(...) tensor_ctc_loss_args((TensorCtcArgs){ .log_probs = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_ctc_loss_args(TensorCtcArgs args);

/* ---- log-probabilities --------------------------------------------------------------------------------
 * Operands broadcast, as in torch.distributions.  Impossible values have -inf and finite gradients.  All dtypes compute in f64.
 *   tensor_categorical_log_prob  log softmax(logits)[value]: logits [..., C], value [...] integers (EINDEX outside [0, C))
 *   tensor_normal_log_prob       -((value - loc) / scale)^2 / 2 - log scale - log(2 pi) / 2
 *   tensor_bernoulli_log_prob    value log sigmoid(logits) + (1 - value) log sigmoid(-logits)
 *   tensor_..._entropy           of those distributions: -sum p log p (0 log 0 = 0) over the classes, 1/2 + log(2 pi) / 2 + log scale */
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
