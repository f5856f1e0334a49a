/* ops_reduce.h - reductions, distances, softmax, cumulative sums, sorting, losses.  Included by ops.h.
 *
 *     Tensor *total = tensor_sum(x);                                     // of all elements
 *     Tensor *rows  = tensor_mean(x, 1);                                 // over dimension 1
 *     Tensor *stat  = tensor_var(x, .dims = DIMS(0, 2), .keepdim = true);
 *     Tensor *best  = tensor_max_dim(x, -1, .indices = &where);
 *     Tensor *loss  = tensor_cross_entropy(logits, classes, .label_smoothing = 0.1);
 *
 * Functions with options are macros over a struct: arguments in PyTorch's order, or by name; what is left out has
 * PyTorch's default.  Their functions, which the macros call, end in _args.  Functions share structs: an option that
 * PyTorch's function does not have is refused (EVALUE).
 *
 * .dim or .dims say what is reduced; without them everything is.  Negative dims count from the end.  A reduced dim vanishes,
 * or stays as size 1 with .keepdim.  EINDEX: no such dim.  EVALUE: a dim twice.
 *
 * Sums are formed in double in an order that depends on sizes and strides only: the same bits on any number of threads.  Of f32, sum,
 * mean, var, std, norm, logsumexp, softmax, log_softmax, cumsum and dot are within 4 ulp of what f64 gives, over 10^7 elements
 * (test_accuracy.c).
 * Over nothing: sum 0, prod 1, any false, all true, count 0, mean, var and std NaN, logsumexp -inf; extremes are
 * refused (ESHAPE).  NaN wins in every extreme, and counts as the largest value where values are ordered. */
#ifndef TAPEGRAD_OPS_REDUCE_H
#define TAPEGRAD_OPS_REDUCE_H

#include <limits.h>
#include <math.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TENSOR_ALL = INT_MIN };              /* .dim left out: all dimensions */

/* ---- sums, products, logic --------------------------------------------------------------------------- */

typedef struct TensorReduceArgs {
    Tensor *input;
    int dim;                                /* one dimension ... */
    bool keepdim;
    TensorShape dims;                       /* ... or several: .dims = DIMS(0, 2) */
    TensorDtype dtype;                      /* sum, mean, prod: cast to it first */
} TensorReduceArgs;
#define TENSOR_REDUCE_(function, ...) \
    function((TensorReduceArgs){ .dim = TENSOR_ALL, .dtype = TENSOR_DTYPES, .input = __VA_ARGS__ })

/* tensor_sum - of integers and bools it is i64.   tensor_mean - floats only, .dtype too (EDTYPE).
 * tensor_prod - over one dim or all; of integers i64; gradients are right with any number of zeros. */
#define tensor_sum(...) TENSOR_REDUCE_(tensor_sum_args, __VA_ARGS__)
#define tensor_mean(...) TENSOR_REDUCE_(tensor_mean_args, __VA_ARGS__)
#define tensor_prod(...) TENSOR_REDUCE_(tensor_prod_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_sum_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_mean_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_prod_args(TensorReduceArgs args);

/* tensor_nansum, tensor_nanmean - the same of what is no NaN, which gets no gradient; nanmean of nothing is NaN. */
#define tensor_nansum(...) TENSOR_REDUCE_(tensor_nansum_args, __VA_ARGS__)
#define tensor_nanmean(...) TENSOR_REDUCE_(tensor_nanmean_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_nansum_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_nanmean_args(TensorReduceArgs args);

/* tensor_any, tensor_all - bool (of u8 too, where PyTorch gives u8): some, every element is not 0 (NaN is not 0).   tensor_count_nonzero - i64. */
#define tensor_any(...) TENSOR_REDUCE_(tensor_any_args, __VA_ARGS__)
#define tensor_all(...) TENSOR_REDUCE_(tensor_all_args, __VA_ARGS__)
#define tensor_count_nonzero(...) TENSOR_REDUCE_(tensor_count_nonzero_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_any_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_all_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_count_nonzero_args(TensorReduceArgs args);

/* tensor_logsumexp - log sum e^x with the maximum subtracted; of integers f32.  All -inf: the value is -inf and the gradient 0. */
#define tensor_logsumexp(...) TENSOR_REDUCE_(tensor_logsumexp_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_logsumexp_args(TensorReduceArgs args);

/* ---- spread and norms -------------------------------------------------------------------------------- */

typedef struct TensorVarArgs {
    Tensor *input;
    int dim;
    double correction;                      /* 1: the unbiased estimate; 0: the mean square */
    bool keepdim;
    TensorShape dims;
    Tensor **mean;                          /* var_mean, std_mean: receives the mean; may be NULL */
} TensorVarArgs;

/* tensor_var - sum (x - mean)^2 / max(0, n - correction): NaN or infinite when n <= correction, and so is the gradient.
 * tensor_std - its square root; gradient 0 where it is 0.  PyTorch's old `unbiased` is not here: .correction = 0. */
#define tensor_var(...) tensor_var_args((TensorVarArgs){ .dim = TENSOR_ALL, .correction = 1, .input = __VA_ARGS__ })
#define tensor_std(...) tensor_std_args((TensorVarArgs){ .dim = TENSOR_ALL, .correction = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_var_args(TensorVarArgs args);
TAPEGRAD_API Tensor *tensor_std_args(TensorVarArgs args);

/* tensor_var_mean(x, 1, .mean = &m), tensor_std_mean - the same, and the mean. */
#define tensor_var_mean(...) tensor_var_mean_args((TensorVarArgs){ .dim = TENSOR_ALL, .correction = 1, .input = __VA_ARGS__ })
#define tensor_std_mean(...) tensor_std_mean_args((TensorVarArgs){ .dim = TENSOR_ALL, .correction = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_var_mean_args(TensorVarArgs args);
TAPEGRAD_API Tensor *tensor_std_mean_args(TensorVarArgs args);

typedef struct TensorCovArgs {
    Tensor *input;
    double correction;                      /* 1 */
    Tensor *fweights, *aweights;            /* how often each observation was made (integers, no gradient); how much it counts */
} TensorCovArgs;

/* tensor_cov - covariances of variables, rows of [variables, n] (or one, [n]: a variance of rank 0).  ESHAPE: a higher rank, or
 * weights of another length.  EVALUE: negative weights.   tensor_corrcoef - cov_ij / sqrt(cov_ii cov_jj), held to [-1, 1]. */
#define tensor_cov(...) tensor_cov_args((TensorCovArgs){ .correction = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cov_args(TensorCovArgs args);
TAPEGRAD_API Tensor *tensor_corrcoef(Tensor *x);

typedef struct TensorNormArgs {
    Tensor *input;
    double p;
    int dim;
    bool keepdim;
    TensorShape dims;
} TensorNormArgs;

/* tensor_norm - (sum |x|^p)^(1/p), p = 2 unless given; p = INFINITY: max |x|, -INFINITY: min |x|, 0: how many are not 0.
 * Gradients: 0 where the norm is 0 (1 < p), 0 at x = 0 (p <= 1), none for p = 0; ties of infinite p share evenly. */
#define tensor_norm(...) tensor_norm_args((TensorNormArgs){ .dim = TENSOR_ALL, .p = 2, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_norm_args(TensorNormArgs args);

typedef struct TensorVectorNormArgs {
    Tensor *input;
    double ord;                             /* 2 */
    int dim;
    bool keepdim;
    TensorShape dims;
} TensorVectorNormArgs;

/* tensor_linalg_vector_norm - tensor_norm by its name in torch.linalg. */
#define tensor_linalg_vector_norm(...) \
    tensor_linalg_vector_norm_args((TensorVectorNormArgs){ .dim = TENSOR_ALL, .ord = 2, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_linalg_vector_norm_args(TensorVectorNormArgs args);

/* ---- distances ---------------------------------------------------------------------------------------
 * |x|_p is tensor_norm along a dim, with its gradients: 0 where it is 0.  ESHAPE: operands do not broadcast.  EINDEX: no such dim. */

typedef struct TensorNormalizeArgs {
    Tensor *input;
    double p;                               /* 2 */
    int dim;                                /* 1 */
    double eps;                             /* 1e-12 */
} TensorNormalizeArgs;

/* tensor_normalize - x / max(|x|_p, eps) along dim.  A vector of zeros stays one; its gradient is g / eps, as in PyTorch: huge.
 * tensor_renorm - each slice of dim (all of x with one index there) that has |slice|_p > maxnorm times maxnorm / (|slice|_p + 1e-7);
 * the others as they are.  ESHAPE: rank below 2.  EVALUE: p not positive, maxnorm negative. */
#define tensor_normalize(...) tensor_normalize_args((TensorNormalizeArgs){ .p = 2, .dim = 1, .eps = 1e-12, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_normalize_args(TensorNormalizeArgs args);
TAPEGRAD_API Tensor *tensor_renorm(Tensor *x, double p, int dim, double maxnorm);
TAPEGRAD_API Tensor *tensor_renorm_(Tensor *x, double p, int dim, double maxnorm);

typedef struct TensorDistanceArgs {
    Tensor *a, *b;
    double p;                               /* 2 */
    double eps;                             /* pairwise_distance: 1e-6, added to each difference */
    bool keepdim;                           /* pairwise_distance */
} TensorDistanceArgs;
typedef struct TensorPdistArgs { Tensor *input; double p; } TensorPdistArgs;

/* tensor_dist - |a - b|_p of all elements, which broadcast: rank 0.
 * tensor_pairwise_distance - |a - b + eps|_p along the last dim of operands that broadcast.
 * tensor_cdist - |a_i - b_j|_p of all pairs: a [..., P, M], b [..., R, M] -> [..., P, R]; batches broadcast.  Formed directly in
 * double, never from squares of norms: near neighbours keep their digits.
 * tensor_pdist(x, 1) - the same of pairs i < j of one set, [N, M] -> [N (N - 1) / 2], in row-major order.
 * cdist and pdist with p = INFINITY give all tied differences the whole gradient.  EVALUE: p negative. */
#define tensor_dist(...) tensor_dist_args((TensorDistanceArgs){ .p = 2, .a = __VA_ARGS__ })
#define tensor_pairwise_distance(...) tensor_pairwise_distance_args((TensorDistanceArgs){ .p = 2, .eps = 1e-6, .a = __VA_ARGS__ })
#define tensor_cdist(...) tensor_cdist_args((TensorDistanceArgs){ .p = 2, .a = __VA_ARGS__ })
#define tensor_pdist(...) tensor_pdist_args((TensorPdistArgs){ .p = 2, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_dist_args(TensorDistanceArgs args);
TAPEGRAD_API Tensor *tensor_pairwise_distance_args(TensorDistanceArgs args);
TAPEGRAD_API Tensor *tensor_cdist_args(TensorDistanceArgs args);
TAPEGRAD_API Tensor *tensor_pdist_args(TensorPdistArgs args);

typedef struct TensorCosineArgs {
    Tensor *a, *b;
    int dim;                                /* 1 */
    double eps;                             /* 1e-8 */
} TensorCosineArgs;

/* tensor_cosine_similarity - a . b / (max(|a|, eps) max(|b|, eps)) along dim of operands that broadcast. */
#define tensor_cosine_similarity(...) tensor_cosine_similarity_args((TensorCosineArgs){ .dim = 1, .eps = 1e-8, .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cosine_similarity_args(TensorCosineArgs args);

/* ---- extremes ---------------------------------------------------------------------------------------- */

/* tensor_amax, tensor_amin - over dims; tensor_max, tensor_min - the same, of all elements (two operands: tensor_maximum).
 * The gradient is shared evenly among equal extremes (NaNs, when there are any). */
#define tensor_amax(...) TENSOR_REDUCE_(tensor_amax_args, __VA_ARGS__)
#define tensor_amin(...) TENSOR_REDUCE_(tensor_amin_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_amax_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_amin_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_max(Tensor *x);
TAPEGRAD_API Tensor *tensor_min(Tensor *x);

/* tensor_argmax, tensor_argmin - i64: where the extreme is along .dim, or in the flattened tensor; the first one on ties. */
#define tensor_argmax(...) TENSOR_REDUCE_(tensor_argmax_args, __VA_ARGS__)
#define tensor_argmin(...) TENSOR_REDUCE_(tensor_argmin_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_argmax_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_argmin_args(TensorReduceArgs args);

typedef struct TensorAminmaxArgs {
    Tensor *input;
    int dim;                                /* one, or all */
    bool keepdim;
    Tensor **max;                           /* receives the largest; may be NULL */
} TensorAminmaxArgs;

/* tensor_aminmax(x, 1, .max = &high) - amin and amax. */
#define tensor_aminmax(...) tensor_aminmax_args((TensorAminmaxArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_aminmax_args(TensorAminmaxArgs args);

typedef struct TensorPickArgs {
    Tensor *input;
    int dim;
    bool keepdim;
    Tensor **indices;                       /* receives the i64 positions along dim; may be NULL */
} TensorPickArgs;

/* torch.max(x, dim), torch.min(x, dim): values; the gradient goes to the returned index, the first one on ties.  EVALUE: no dim given;
 * of all of x it is tensor_max(x). */
#define tensor_max_dim(...) tensor_max_dim_args((TensorPickArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
#define tensor_min_dim(...) tensor_min_dim_args((TensorPickArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_max_dim_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_min_dim_args(TensorPickArgs args);

/* ---- order ------------------------------------------------------------------------------------------- */

typedef struct TensorSortArgs {
    Tensor *input;
    int dim;                                /* default -1 */
    bool descending;
    Tensor **indices;
} TensorSortArgs;

/* tensor_sort - values along dim in order, equal ones in the order they had; tensor_argsort - only the i64 positions. */
#define tensor_sort(...) tensor_sort_args((TensorSortArgs){ .dim = -1, .input = __VA_ARGS__ })
#define tensor_argsort(...) tensor_argsort_args((TensorSortArgs){ .dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_sort_args(TensorSortArgs args);
TAPEGRAD_API Tensor *tensor_argsort_args(TensorSortArgs args);

/* tensor_msort - along the first dim. */
TAPEGRAD_API Tensor *tensor_msort(Tensor *x);

typedef struct TensorTopkArgs {
    Tensor *input;
    int64_t k;
    int dim;                                /* default -1 */
    bool largest, sorted;                   /* default true; the result is always sorted */
    Tensor **indices;
} TensorTopkArgs;

/* tensor_topk - the k largest (or smallest) along dim, best first, the earlier one first on ties.  EINDEX: k above the size. */
#define tensor_topk(...) tensor_topk_args((TensorTopkArgs){ .k = -1, .dim = -1, .largest = true, .sorted = true, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_topk_args(TensorTopkArgs args);

typedef struct TensorKthvalueArgs {
    Tensor *input;
    int64_t k;
    int dim;                                /* default -1 */
    bool keepdim;
    Tensor **indices;
} TensorKthvalueArgs;

/* tensor_kthvalue - the k-th smallest along dim, k from 1.  EINDEX: k out of range. */
#define tensor_kthvalue(...) tensor_kthvalue_args((TensorKthvalueArgs){ .dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_kthvalue_args(TensorKthvalueArgs args);

/* tensor_median - of all elements, the lower one of two; NaN if there is one; the gradient is shared among equals.
 * tensor_median_dim, tensor_mode - along .dim (default -1), with .indices; the gradient goes to the index.  NaNs are equal for mode.  mode: the
 * most frequent value, the smallest of equally frequent ones, and its last position. */
TAPEGRAD_API Tensor *tensor_median(Tensor *x);
TAPEGRAD_API Tensor *tensor_nanmedian(Tensor *x);              /* of what is no NaN; NaN where nothing is */
#define tensor_median_dim(...) tensor_median_dim_args((TensorPickArgs){ .dim = -1, .input = __VA_ARGS__ })
#define tensor_nanmedian_dim(...) tensor_nanmedian_dim_args((TensorPickArgs){ .dim = -1, .input = __VA_ARGS__ })
#define tensor_mode(...) tensor_mode_args((TensorPickArgs){ .dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_median_dim_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_nanmedian_dim_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_mode_args(TensorPickArgs args);

/* Between the two elements next to place q (n - 1): a straight line, the lower, the higher, their mean, the nearer (halves to even). */
typedef enum TensorQuantileMode {
    TENSOR_QUANTILE_LINEAR, TENSOR_QUANTILE_LOWER, TENSOR_QUANTILE_HIGHER, TENSOR_QUANTILE_MIDPOINT, TENSOR_QUANTILE_NEAREST
} TensorQuantileMode;

typedef struct TensorQuantileArgs {
    Tensor *input;
    double q;                               /* 0 to 1 ... */
    int dim;                                /* one, or all */
    bool keepdim;
    TensorQuantileMode interpolation;
    Tensor *qs;                             /* ... or a tensor: of k numbers the results are the first dim, [k, ...] */
} TensorQuantileArgs;

/* tensor_quantile(x, 0.9, 1), tensor_quantile(x, .qs = list) - along dim, or of all; NaN where there is one.
 * tensor_nanquantile - of what is no NaN.  ESHAPE: no elements.  EVALUE: q outside [0, 1]. */
#define tensor_quantile(...) tensor_quantile_args((TensorQuantileArgs){ .q = NAN, .dim = TENSOR_ALL, .input = __VA_ARGS__ })
#define tensor_nanquantile(...) tensor_nanquantile_args((TensorQuantileArgs){ .q = NAN, .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_quantile_args(TensorQuantileArgs args);
TAPEGRAD_API Tensor *tensor_nanquantile_args(TensorQuantileArgs args);

/* ---- along a dimension ------------------------------------------------------------------------------- */

/* tensor_softmax - e^(x_i - max x) / sum_j e^(x_j - max x) along dim; tensor_log_softmax - its logarithm; tensor_softmin -
 * softmax of -x.  A slice that is all -inf gives NaN, as in PyTorch. */
TAPEGRAD_API Tensor *tensor_softmax(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_log_softmax(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_softmin(Tensor *x, int dim);

/* tensor_cumsum - y_i = x_0 + ... + x_i (i64 for integers), tensor_cumprod - y_i = x_0 ... x_i, right with zeros. */
TAPEGRAD_API Tensor *tensor_cumsum(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_cumprod(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_cumsum_(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_cumprod_(Tensor *x, int dim);

/* tensor_cummax(x, dim, .indices = &at), tensor_cummin - running extremes and their i64 positions, the last one on ties; a NaN
 * stays.   tensor_logcumsumexp - y_i = log(e^(x_0) + ... + e^(x_i)) without overflow; gradient 0 where x is -inf. */
#define tensor_cummax(...) tensor_cummax_args((TensorPickArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
#define tensor_cummin(...) tensor_cummin_args((TensorPickArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cummax_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_cummin_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_logcumsumexp(Tensor *x, int dim);

typedef struct TensorDiffArgs {
    Tensor *input;
    int64_t n;                              /* how often: 1 */
    int dim;                                /* -1 */
    Tensor *prepend, *append;               /* joined to x first; may be NULL */
} TensorDiffArgs;

/* tensor_diff - x_(i+1) - x_i along dim (xor for bool), n times.  ESHAPE: rank 0.  EVALUE: n negative. */
#define tensor_diff(...) tensor_diff_args((TensorDiffArgs){ .n = 1, .dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_diff_args(TensorDiffArgs args);

typedef struct TensorTrapezoidArgs {
    Tensor *y, *x;                          /* x: the points, [n] or of y's rank; NULL: dx apart */
    double dx;                              /* 1 */
    int dim;                                /* -1 */
} TensorTrapezoidArgs;

/* tensor_trapezoid - the integral sum (y_i + y_(i+1)) / 2 (x_(i+1) - x_i) along dim; tensor_cumulative_trapezoid - its running sums. */
#define tensor_trapezoid(...) tensor_trapezoid_args((TensorTrapezoidArgs){ .dx = 1, .dim = -1, .y = __VA_ARGS__ })
#define tensor_cumulative_trapezoid(...) tensor_cumulative_trapezoid_args((TensorTrapezoidArgs){ .dx = 1, .dim = -1, .y = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_trapezoid_args(TensorTrapezoidArgs args);
TAPEGRAD_API Tensor *tensor_cumulative_trapezoid_args(TensorTrapezoidArgs args);

/* ---- losses -------------------------------------------------------------------------------------------
 * .reduction: TENSOR_MEAN over all elements (the default), TENSOR_SUM, or TENSOR_NONE, a loss for each element. */
typedef enum TensorReduction {
    TENSOR_MEAN, TENSOR_SUM, TENSOR_NONE,
    TENSOR_BATCHMEAN                        /* kl_div: the sum divided by the first size */
} TensorReduction;

typedef struct TensorLossArgs {
    Tensor *input, *target;
    TensorReduction reduction;
    bool log_target;                        /* kl_div: target holds logarithms */
} TensorLossArgs;
typedef struct TensorSmoothL1Args {
    Tensor *input, *target;
    TensorReduction reduction;
    double beta;                            /* 1 */
} TensorSmoothL1Args;
typedef struct TensorHuberArgs {
    Tensor *input, *target;
    TensorReduction reduction;
    double delta;                           /* 1 */
} TensorHuberArgs;

/* Of input x and target t, both differentiable.  ESHAPE: different shapes; nothing is broadcast.
 *   tensor_mse_loss        (x - t)^2
 *   tensor_l1_loss         |x - t|, gradient 0 at 0
 *   tensor_smooth_l1_loss  d = |x - t|: d^2 / (2 beta) below beta, else d - beta / 2; beta = 0 is l1
 *   tensor_huber_loss      d^2 / 2 up to delta, else delta (d - delta / 2)
 *   tensor_kl_div          x holds log-probabilities: t (log t - x), 0 where t is 0; .log_target: e^t (t - x) */
#define tensor_mse_loss(...) tensor_mse_loss_args((TensorLossArgs){ .input = __VA_ARGS__ })
#define tensor_l1_loss(...) tensor_l1_loss_args((TensorLossArgs){ .input = __VA_ARGS__ })
#define tensor_smooth_l1_loss(...) tensor_smooth_l1_loss_args((TensorSmoothL1Args){ .beta = 1, .input = __VA_ARGS__ })
#define tensor_huber_loss(...) tensor_huber_loss_args((TensorHuberArgs){ .delta = 1, .input = __VA_ARGS__ })
#define tensor_kl_div(...) tensor_kl_div_args((TensorLossArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_mse_loss_args(TensorLossArgs args);
TAPEGRAD_API Tensor *tensor_l1_loss_args(TensorLossArgs args);
TAPEGRAD_API Tensor *tensor_smooth_l1_loss_args(TensorSmoothL1Args args);
TAPEGRAD_API Tensor *tensor_huber_loss_args(TensorHuberArgs args);
TAPEGRAD_API Tensor *tensor_kl_div_args(TensorLossArgs args);

typedef struct TensorBceArgs {
    Tensor *input, *target, *weight;        /* weight (may be NULL) broadcasts to the input's shape, no gradient */
    TensorReduction reduction;
    Tensor *pos_weight;                     /* with_logits: factor of the positive part, broadcasts; may be NULL, no gradient */
} TensorBceArgs;

/* tensor_binary_cross_entropy - -t log x - (1 - t) log(1 - x), logarithms held above -100, also in the gradient of t, where PyTorch's
 * are infinite.  EVALUE: x outside [0, 1] (NaN is let through).
 * tensor_binary_cross_entropy_with_logits - the same of sigmoid(x), without overflow.  ESHAPE: target of another shape. */
#define tensor_binary_cross_entropy(...) tensor_binary_cross_entropy_args((TensorBceArgs){ .input = __VA_ARGS__ })
#define tensor_binary_cross_entropy_with_logits(...) \
    tensor_binary_cross_entropy_with_logits_args((TensorBceArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_binary_cross_entropy_args(TensorBceArgs args);
TAPEGRAD_API Tensor *tensor_binary_cross_entropy_with_logits_args(TensorBceArgs args);

typedef struct TensorClassLossArgs {
    Tensor *input, *target, *weight;        /* weight: [C] or NULL */
    int64_t ignore_index;                   /* default -100 */
    TensorReduction reduction;
    double label_smoothing;                 /* cross_entropy: s, in [0, 1] */
} TensorClassLossArgs;
#define TENSOR_CLASS_LOSS_(function, ...) function((TensorClassLossArgs){ .ignore_index = -100, .input = __VA_ARGS__ })

/* input [C] or [N, C, d1, ...], target class indices [] or [N, d1, ...] (i64, i32 or u8).
 *   tensor_nll_loss        -w_t x_t: x holds log-probabilities
 *   tensor_cross_entropy   (1 - s) w_t (lse - x_t) + s / C sum_c w_c (lse - x_c), lse = log sum e^x over the classes
 * The mean divides by the sum of w_t; positions whose target is ignore_index count nowhere; all ignored gives NaN.
 * cross_entropy also takes a floating target of the input's shape, probabilities q (differentiable):
 *   sum_c w_c q'_c (lse - x_c), q' = (1 - s) q + s / C; the mean divides by the number of positions.
 * EINDEX: a target outside [0, C) that is not ignore_index; the text gives its position and value.  ESHAPE. */
#define tensor_nll_loss(...) TENSOR_CLASS_LOSS_(tensor_nll_loss_args, __VA_ARGS__)
#define tensor_cross_entropy(...) TENSOR_CLASS_LOSS_(tensor_cross_entropy_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_nll_loss_args(TensorClassLossArgs args);
TAPEGRAD_API Tensor *tensor_cross_entropy_args(TensorClassLossArgs args);

#ifdef __cplusplus
}
#endif
#endif
