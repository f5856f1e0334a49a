/* ops/reduce.h - reductions, extremes, norms, softmax.  Included by ops.h.
 *
 *     Tensor *total = tensor_sum(x);                                     // of all elements
 *     Tensor *rows  = tensor_mean(x, 1);                                 // over dimension 1
 *     Tensor *stat  = tensor_var(x, .dims = DIMS(0, 2), .keepdim = true);
 *     Tensor *best  = tensor_max_dim(x, -1, .indices = &where);
 *     Tensor *loss  = tensor_cross_entropy(logits, classes, .label_smoothing = 0.1);
 *
 * Functions with options are macros over a struct: arguments in PyTorch's order, or by name; what is left out
 * has PyTorch's default.  Their functions, which the macros call, end in _args.  Functions share structs: an
 * option that PyTorch's function does not have is refused (EVALUE).
 *
 * .dim or .dims say what is reduced; without them everything is.  Negative dims count from the end.  A
 * reduced dim vanishes, or stays as size 1 with .keepdim.  EINDEX: no such dim.  EVALUE: a dim twice.
 *
 * Sums are formed in double in an order that depends on sizes and strides only: the same bits on any number
 * of threads.  Of f32, sum, mean, var, std, norm, logsumexp, softmax, log_softmax, cumsum and dot are within
 * 4 ulp of what f64 gives, over 10^7 elements (test_accuracy.c). Over nothing: sum 0, prod 1, any false, all
 * true, count 0, mean, var and std NaN, logsumexp -inf; extremes are refused (ESHAPE).  NaN wins in every
 * extreme, and counts as the largest value where values are ordered. */
#ifndef TAPEGRAD_OPS_REDUCE_H
#define TAPEGRAD_OPS_REDUCE_H

#include <limits.h>
#include <math.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TENSOR_ALL = INT_MIN }; /* .dim left out: all dimensions */

/* ---- sums, products, logic ------------------------------------------------------------------- */

typedef struct TensorReduceArgs {
    Tensor *input;
    int dim; /* one dimension ... */
    bool keepdim;
    TensorShape dims;  /* ... or several: .dims = DIMS(0, 2) */
    TensorDtype dtype; /* sum, mean, prod: cast to it first */
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

/* tensor_nansum, tensor_nanmean - the same of what is no NaN, which gets no gradient; nanmean of nothing is
 * NaN. */
#define tensor_nansum(...) TENSOR_REDUCE_(tensor_nansum_args, __VA_ARGS__)
#define tensor_nanmean(...) TENSOR_REDUCE_(tensor_nanmean_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_nansum_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_nanmean_args(TensorReduceArgs args);

/* tensor_any, tensor_all - bool (of u8 too, where PyTorch gives u8): some, every element is not 0 (NaN is not
 * 0).   tensor_count_nonzero - i64. */
#define tensor_any(...) TENSOR_REDUCE_(tensor_any_args, __VA_ARGS__)
#define tensor_all(...) TENSOR_REDUCE_(tensor_all_args, __VA_ARGS__)
#define tensor_count_nonzero(...) TENSOR_REDUCE_(tensor_count_nonzero_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_any_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_all_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_count_nonzero_args(TensorReduceArgs args);

/* tensor_logsumexp - log sum e^x with the maximum subtracted; of integers f32.  All -inf: the value is -inf
 * and the gradient 0. */
#define tensor_logsumexp(...) TENSOR_REDUCE_(tensor_logsumexp_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_logsumexp_args(TensorReduceArgs args);

/* ---- spread and norms ------------------------------------------------------------------------ */

typedef struct TensorVarArgs {
    Tensor *input;
    int dim;
    double correction; /* 1: the unbiased estimate; 0: the mean square */
    bool keepdim;
    TensorShape dims;
    Tensor **mean; /* var_mean, std_mean: receives the mean; may be NULL */
} TensorVarArgs;

/* tensor_var - sum (x - mean)^2 / max(0, n - correction): NaN or infinite when n <= correction, and so is the
 * gradient. tensor_std - its square root; gradient 0 where it is 0.  PyTorch's old `unbiased` is not here:
 * .correction = 0. */
#define tensor_var(...) \
    tensor_var_args((TensorVarArgs){ .dim = TENSOR_ALL, .correction = 1, .input = __VA_ARGS__ })
#define tensor_std(...) \
    tensor_std_args((TensorVarArgs){ .dim = TENSOR_ALL, .correction = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_var_args(TensorVarArgs args);
TAPEGRAD_API Tensor *tensor_std_args(TensorVarArgs args);

/* tensor_var_mean(x, 1, .mean = &m), tensor_std_mean - the same, and the mean. */
#define tensor_var_mean(...) \
    tensor_var_mean_args((TensorVarArgs){ .dim = TENSOR_ALL, .correction = 1, .input = __VA_ARGS__ })
#define tensor_std_mean(...) \
    tensor_std_mean_args((TensorVarArgs){ .dim = TENSOR_ALL, .correction = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_var_mean_args(TensorVarArgs args);
TAPEGRAD_API Tensor *tensor_std_mean_args(TensorVarArgs args);

typedef struct TensorCovArgs {
    Tensor *input;
    double correction; /* 1 */
    Tensor *fweights,
        *aweights; /* how often each observation was made (integers, no gradient); how much it counts */
} TensorCovArgs;

/* tensor_cov - covariances of variables, rows of [variables, n] (or one, [n]: a variance of rank 0).  ESHAPE:
 * a higher rank, or weights of another length.  EVALUE: negative weights.   tensor_corrcoef - cov_ij /
 * sqrt(cov_ii cov_jj), held to [-1, 1]. */
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

/* tensor_norm - (sum |x|^p)^(1/p), p = 2 unless given; p = INFINITY: max |x|, -INFINITY: min |x|, 0: how many
 * are not 0. Gradients: 0 where the norm is 0 (1 < p), 0 at x = 0 (p <= 1), none for p = 0; ties of infinite
 * p share evenly. */
#define tensor_norm(...) tensor_norm_args((TensorNormArgs){ .dim = TENSOR_ALL, .p = 2, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_norm_args(TensorNormArgs args);

typedef struct TensorVectorNormArgs {
    Tensor *input;
    double ord; /* 2 */
    int dim;
    bool keepdim;
    TensorShape dims;
} TensorVectorNormArgs;

/* tensor_linalg_vector_norm - tensor_norm by its name in torch.linalg. */
#define tensor_linalg_vector_norm(...) \
    tensor_linalg_vector_norm_args(    \
        (TensorVectorNormArgs){ .dim = TENSOR_ALL, .ord = 2, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_linalg_vector_norm_args(TensorVectorNormArgs args);

/* ---- extremes -------------------------------------------------------------------------------- */

/* tensor_amax, tensor_amin - over dims; tensor_max, tensor_min - the same, of all elements (two operands:
 * tensor_maximum). The gradient is shared evenly among equal extremes (NaNs, when there are any). */
#define tensor_amax(...) TENSOR_REDUCE_(tensor_amax_args, __VA_ARGS__)
#define tensor_amin(...) TENSOR_REDUCE_(tensor_amin_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_amax_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_amin_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_max(Tensor *x);
TAPEGRAD_API Tensor *tensor_min(Tensor *x);

/* tensor_argmax, tensor_argmin - i64: where the extreme is along .dim, or in the flattened tensor; the first
 * one on ties. */
#define tensor_argmax(...) TENSOR_REDUCE_(tensor_argmax_args, __VA_ARGS__)
#define tensor_argmin(...) TENSOR_REDUCE_(tensor_argmin_args, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_argmax_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_argmin_args(TensorReduceArgs args);

typedef struct TensorAminmaxArgs {
    Tensor *input;
    int dim; /* one, or all */
    bool keepdim;
    Tensor **max; /* receives the largest; may be NULL */
} TensorAminmaxArgs;

/* tensor_aminmax(x, 1, .max = &high) - amin and amax. */
#define tensor_aminmax(...) \
    tensor_aminmax_args((TensorAminmaxArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_aminmax_args(TensorAminmaxArgs args);

typedef struct TensorPickArgs {
    Tensor *input;
    int dim;
    bool keepdim;
    Tensor **indices; /* receives the i64 positions along dim; may be NULL */
} TensorPickArgs;

/* torch.max(x, dim), torch.min(x, dim): values; the gradient goes to the returned index, the first one on
 * ties.  EVALUE: no dim given; of all of x it is tensor_max(x). */
#define tensor_max_dim(...) tensor_max_dim_args((TensorPickArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
#define tensor_min_dim(...) tensor_min_dim_args((TensorPickArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_max_dim_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_min_dim_args(TensorPickArgs args);

/* ---- along a dimension ----------------------------------------------------------------------- */

/* tensor_softmax - e^(x_i - max x) / sum_j e^(x_j - max x) along dim; tensor_log_softmax - its logarithm;
 * tensor_softmin - softmax of -x.  A slice that is all -inf gives NaN, as in PyTorch. */
TAPEGRAD_API Tensor *tensor_softmax(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_log_softmax(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_softmin(Tensor *x, int dim);

#ifdef __cplusplus
}
#endif
#endif
