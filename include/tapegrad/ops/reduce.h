/* ops/reduce.h - reductions, extremes, norms, softmax.  Included by ops.h.
 *
 *     Tensor *total = tensor_sum(x);                                     // of all elements
 *     Tensor *rows  = tensor_mean(x, 1);                                 // over dim 1
 *     Tensor *stat  = tensor_var(x, .dims = DIMS(0, 2), .keepdim = true);
 *     Tensor *best  = tensor_max_dim(x, -1, .indices = &where);
 *     Tensor *p     = tensor_softmax(logits, 1, .dtype = TENSOR_F64);
 *
 * Options are given in PyTorch's order or by name (see tensor.h), with PyTorch's defaults.
 *
 *   .dim, .dims   the dims to reduce: one, or a list; default: all.  Negative dims count from the end.
 *                 EINDEX: no such dim.  EVALUE: a dim twice, or both options.
 *   .keepdim      reduced dims keep size 1; else they are removed.
 *   .dtype        x is cast to this dtype first, and the result has it.
 *   .indices,     receives a second result, or NULL if the call fails; may be NULL.
 *   .mean, .max
 *
 * Sums are computed in double, in an order that depends on sizes and strides only: the same bits with any
 * number of threads.  In f32, sum, mean, var, std, norm, logsumexp, softmax, log_softmax, cumsum and dot (of
 * which eight products at a time are added in f32) are within 4 ulp of their f64 results, over 10^7 elements
 * (test_accuracy.c).
 *
 * Over no elements: sum is 0, prod 1, any false, all true, count_nonzero 0, mean, var and std NaN, logsumexp
 * -inf; extremes are refused (ESHAPE).  Any maximum or minimum with a NaN is NaN. */
#ifndef TAPEGRAD_OPS_REDUCE_H
#define TAPEGRAD_OPS_REDUCE_H

#include <limits.h>
#include <math.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TENSOR_ALL = INT_MIN }; /* default of .dim: all dims; EVALUE where a dim is required */

/* ---- sums and products ----------------------------------------------------------------------- */

typedef struct TensorReduceArgs {
    Tensor *input;
    int dim; /* one dim ... */
    bool keepdim;
    TensorShape dims; /* ... or several: .dims = DIMS(0, 2) */
    TensorByName by_name;
    TensorDtype dtype; /* TENSOR_DTYPES: x's own, i64 for integers and bools */
    TensorFromDefaults from_defaults;
} TensorReduceArgs;
#define TENSOR_REDUCE_DEFAULTS .dim = TENSOR_ALL, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorReduceArgs tensor_reduce_defaults;

/* tensor_sum - y = sum x.
 * tensor_mean - y = sum x / n.  EDTYPE: x, or .dtype, is not floating.
 * tensor_nansum, tensor_nanmean - the same over the elements that are not NaN; the others get the gradient 0.
 *   nanmean is NaN if all are. */
#define tensor_sum(...) \
    TENSOR_CALL_(tensor_sum_args, TensorReduceArgs, TENSOR_REDUCE_DEFAULTS, .input = __VA_ARGS__)
#define tensor_mean(...) \
    TENSOR_CALL_(tensor_mean_args, TensorReduceArgs, TENSOR_REDUCE_DEFAULTS, .input = __VA_ARGS__)
#define tensor_nansum(...) \
    TENSOR_CALL_(tensor_nansum_args, TensorReduceArgs, TENSOR_REDUCE_DEFAULTS, .input = __VA_ARGS__)
#define tensor_nanmean(...) \
    TENSOR_CALL_(tensor_nanmean_args, TensorReduceArgs, TENSOR_REDUCE_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_sum_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_mean_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_nansum_args(TensorReduceArgs args);
TAPEGRAD_API Tensor *tensor_nanmean_args(TensorReduceArgs args);

/* tensor_sum_to_size - sums x to a shape that broadcasts to x's: removes leading dims, sums dims to size 1
 * (integers in i64); the adjoint of tensor_expand.  A copy even if nothing is summed.  ESHAPE: the shape does
 * not broadcast to x's. */
TAPEGRAD_API Tensor *tensor_sum_to_size(Tensor *x, TensorShape size);

typedef struct TensorProdArgs {
    Tensor *input;
    int dim; /* one dim, or all */
    bool keepdim;
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} TensorProdArgs;
#define TENSOR_PROD_DEFAULTS .dim = TENSOR_ALL, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorProdArgs tensor_prod_defaults;

/* tensor_prod - the product of the elements; i64 for integers.  The gradient of an element is the product of
 * the others, correct with any number of zeros. */
#define tensor_prod(...) \
    TENSOR_CALL_(tensor_prod_args, TensorProdArgs, TENSOR_PROD_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_prod_args(TensorProdArgs args);

/* ---- logic, counts, log-sums ----------------------------------------------------------------- */

typedef struct TensorDimsArgs {
    Tensor *input;
    int dim;
    bool keepdim;
    TensorShape dims;
    TensorFromDefaults from_defaults;
} TensorDimsArgs;
#define TENSOR_DIMS_DEFAULTS .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorDimsArgs tensor_dims_defaults;

/* tensor_any, tensor_all - bool: is any, is every element nonzero?  NaN is nonzero.  (bool for u8 too;
 *   PyTorch's result is u8.)
 * tensor_count_nonzero - i64: the number of nonzero elements.
 * tensor_logsumexp - y = log sum e^x, computed as m + log sum e^(x - m), m = max x; integers become f32.
 *   If all of x is -inf, y is -inf with gradient 0. */
#define tensor_any(...) \
    TENSOR_CALL_(tensor_any_args, TensorDimsArgs, TENSOR_DIMS_DEFAULTS, .input = __VA_ARGS__)
#define tensor_all(...) \
    TENSOR_CALL_(tensor_all_args, TensorDimsArgs, TENSOR_DIMS_DEFAULTS, .input = __VA_ARGS__)
#define tensor_count_nonzero(...) \
    TENSOR_CALL_(tensor_count_nonzero_args, TensorDimsArgs, TENSOR_DIMS_DEFAULTS, .input = __VA_ARGS__)
#define tensor_logsumexp(...) \
    TENSOR_CALL_(tensor_logsumexp_args, TensorDimsArgs, TENSOR_DIMS_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_any_args(TensorDimsArgs args);
TAPEGRAD_API Tensor *tensor_all_args(TensorDimsArgs args);
TAPEGRAD_API Tensor *tensor_count_nonzero_args(TensorDimsArgs args);
TAPEGRAD_API Tensor *tensor_logsumexp_args(TensorDimsArgs args);

/* ---- spread ---------------------------------------------------------------------------------- */

typedef struct TensorVarArgs {
    Tensor *input;
    int dim;
    double correction; /* 1: unbiased; 0: mean square */
    bool keepdim;
    TensorShape dims;
    TensorFromDefaults from_defaults;
} TensorVarArgs;
#define TENSOR_VAR_DEFAULTS .dim = TENSOR_ALL, .correction = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorVarArgs tensor_var_defaults;

/* tensor_var - y = sum (x - mean)^2 / max(0, n - correction).  If n <= correction, y and its gradient are
 *   NaN or infinite.
 * tensor_std - the square root of var; where it is 0, the gradient is 0.
 * PyTorch's old `unbiased` is .correction = 0.  EDTYPE: x is not floating. */
#define tensor_var(...) \
    TENSOR_CALL_(tensor_var_args, TensorVarArgs, TENSOR_VAR_DEFAULTS, .input = __VA_ARGS__)
#define tensor_std(...) \
    TENSOR_CALL_(tensor_std_args, TensorVarArgs, TENSOR_VAR_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_var_args(TensorVarArgs args);
TAPEGRAD_API Tensor *tensor_std_args(TensorVarArgs args);

typedef struct TensorVarMeanArgs {
    Tensor *input;
    int dim;
    double correction;
    bool keepdim;
    TensorShape dims;
    Tensor **mean; /* receives the mean */
    TensorFromDefaults from_defaults;
} TensorVarMeanArgs;
#define TENSOR_VAR_MEAN_DEFAULTS .dim = TENSOR_ALL, .correction = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorVarMeanArgs tensor_var_mean_defaults;

/* tensor_var_mean(x, 1, .mean = &m), tensor_std_mean - var or std, and the mean in .mean. */
#define tensor_var_mean(...) \
    TENSOR_CALL_(tensor_var_mean_args, TensorVarMeanArgs, TENSOR_VAR_MEAN_DEFAULTS, .input = __VA_ARGS__)
#define tensor_std_mean(...) \
    TENSOR_CALL_(tensor_std_mean_args, TensorVarMeanArgs, TENSOR_VAR_MEAN_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_var_mean_args(TensorVarMeanArgs args);
TAPEGRAD_API Tensor *tensor_std_mean_args(TensorVarMeanArgs args);

typedef struct TensorCovArgs {
    Tensor *input;
    double correction; /* 1 */
    Tensor *fweights,  /* the number of each observation: integers, no gradient */
        *aweights;     /* the weight of each observation */
    TensorFromDefaults from_defaults;
} TensorCovArgs;
#define TENSOR_COV_DEFAULTS .correction = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCovArgs tensor_cov_defaults;

/* tensor_cov - the covariances [v, v] of v variables, the rows of x [v, n]; x [n] is one variable, whose
 *   variance has rank 0.  ESHAPE: a higher rank, or weights are not [n].  EVALUE: negative weights.
 * tensor_corrcoef - cov_ij / sqrt(cov_ii cov_jj), clamped to [-1, 1]; f32 in f64 where a gradient is
 *   recorded, so that its value may differ from that of a call without one. */
#define tensor_cov(...) \
    TENSOR_CALL_(tensor_cov_args, TensorCovArgs, TENSOR_COV_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_cov_args(TensorCovArgs args);
TAPEGRAD_API Tensor *tensor_corrcoef(Tensor *x);

/* ---- norms ----------------------------------------------------------------------------------- */

typedef struct TensorNormArgs {
    Tensor *input;
    double p;
    int dim;
    bool keepdim;
    TensorShape dims;
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} TensorNormArgs;
#define TENSOR_NORM_DEFAULTS \
    .p = 2, .dim = TENSOR_ALL, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorNormArgs tensor_norm_defaults;

typedef struct TensorVectorNormArgs {
    Tensor *input;
    double ord;
    int dim;
    bool keepdim;
    TensorShape dims;
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} TensorVectorNormArgs;
#define TENSOR_VECTOR_NORM_DEFAULTS \
    .ord = 2, .dim = TENSOR_ALL, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorVectorNormArgs tensor_vector_norm_defaults;

/* tensor_norm - y = (sum |x|^p)^(1/p); p = INFINITY: max |x|; p = -INFINITY: min |x|; p = 0: the
 *   number of nonzero elements.  Gradients: 0 where y is 0 (p > 1) and where x is 0 (p <= 1); 0 for p = 0;
 *   for infinite p equal extremes share it.  EDTYPE: x is not floating (unless .dtype is).
 * tensor_linalg_vector_norm - the same; p is called ord. */
#define tensor_norm(...) \
    TENSOR_CALL_(tensor_norm_args, TensorNormArgs, TENSOR_NORM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_linalg_vector_norm(...)                                                              \
    TENSOR_CALL_(tensor_linalg_vector_norm_args, TensorVectorNormArgs, TENSOR_VECTOR_NORM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_norm_args(TensorNormArgs args);
TAPEGRAD_API Tensor *tensor_linalg_vector_norm_args(TensorVectorNormArgs args);

/* ---- extremes -------------------------------------------------------------------------------- */

/* tensor_amax, tensor_amin - the maximum, the minimum over dims; equal ones share the gradient evenly.
 * tensor_max, tensor_min - the same over all elements (of two operands: tensor_maximum, tensor_minimum). */
#define tensor_amax(...) \
    TENSOR_CALL_(tensor_amax_args, TensorDimsArgs, TENSOR_DIMS_DEFAULTS, .input = __VA_ARGS__)
#define tensor_amin(...) \
    TENSOR_CALL_(tensor_amin_args, TensorDimsArgs, TENSOR_DIMS_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_amax_args(TensorDimsArgs args);
TAPEGRAD_API Tensor *tensor_amin_args(TensorDimsArgs args);
TAPEGRAD_API Tensor *tensor_max(Tensor *x);
TAPEGRAD_API Tensor *tensor_min(Tensor *x);

typedef struct TensorArgmaxArgs {
    Tensor *input;
    int dim; /* one dim, or all */
    bool keepdim;
    TensorFromDefaults from_defaults;
} TensorArgmaxArgs;
#define TENSOR_ARGMAX_DEFAULTS .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorArgmaxArgs tensor_argmax_defaults;

/* tensor_argmax, tensor_argmin - i64: the position of the maximum, or minimum, along .dim, or in x flattened;
 * the first one on ties. */
#define tensor_argmax(...) \
    TENSOR_CALL_(tensor_argmax_args, TensorArgmaxArgs, TENSOR_ARGMAX_DEFAULTS, .input = __VA_ARGS__)
#define tensor_argmin(...) \
    TENSOR_CALL_(tensor_argmin_args, TensorArgmaxArgs, TENSOR_ARGMAX_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_argmax_args(TensorArgmaxArgs args);
TAPEGRAD_API Tensor *tensor_argmin_args(TensorArgmaxArgs args);

typedef struct TensorAminmaxArgs {
    Tensor *input;
    int dim; /* one dim, or all */
    bool keepdim;
    Tensor **max; /* receives the largest */
    TensorFromDefaults from_defaults;
} TensorAminmaxArgs;
#define TENSOR_AMINMAX_DEFAULTS .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorAminmaxArgs tensor_aminmax_defaults;

/* tensor_aminmax(x, 1, .max = &high) - amin, and amax. */
#define tensor_aminmax(...) \
    TENSOR_CALL_(tensor_aminmax_args, TensorAminmaxArgs, TENSOR_AMINMAX_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_aminmax_args(TensorAminmaxArgs args);

typedef struct TensorPickArgs {
    Tensor *input;
    int dim; /* must be given */
    bool keepdim;
    Tensor **indices; /* receives the i64 positions along dim */
    TensorFromDefaults from_defaults;
} TensorPickArgs;
#define TENSOR_PICK_DEFAULTS .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorPickArgs tensor_pick_defaults;

/* tensor_max_dim(x, 1, .indices = &at), tensor_min_dim - torch.max(x, dim), torch.min(x, dim): the values;
 * the gradient goes to .indices, the first one on ties.  EVALUE: no dim (for all of x use tensor_max). */
#define tensor_max_dim(...) \
    TENSOR_CALL_(tensor_max_dim_args, TensorPickArgs, TENSOR_PICK_DEFAULTS, .input = __VA_ARGS__)
#define tensor_min_dim(...) \
    TENSOR_CALL_(tensor_min_dim_args, TensorPickArgs, TENSOR_PICK_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_max_dim_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_min_dim_args(TensorPickArgs args);

/* ---- along a dim ----------------------------------------------------------------------------- */

typedef struct TensorSoftmaxArgs {
    Tensor *input;
    int dim; /* must be given */
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} TensorSoftmaxArgs;
#define TENSOR_SOFTMAX_DEFAULTS \
    .dim = TENSOR_ALL, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSoftmaxArgs tensor_softmax_defaults;

/* tensor_softmax(x, dim) - y_i = e^(x_i - m) / sum_j e^(x_j - m), m = max x, along dim.  A slice with one
 *   element above -inf gives exactly 1 there; a slice of -inf only gives NaN, as in PyTorch.
 * tensor_log_softmax - log y_i = x_i - m - log sum_j e^(x_j - m).
 * tensor_softmin - softmax of -x.
 * EDTYPE: x is not floating (unless .dtype is). */
#define tensor_softmax(...) \
    TENSOR_CALL_(tensor_softmax_args, TensorSoftmaxArgs, TENSOR_SOFTMAX_DEFAULTS, .input = __VA_ARGS__)
#define tensor_log_softmax(...) \
    TENSOR_CALL_(tensor_log_softmax_args, TensorSoftmaxArgs, TENSOR_SOFTMAX_DEFAULTS, .input = __VA_ARGS__)
#define tensor_softmin(...) \
    TENSOR_CALL_(tensor_softmin_args, TensorSoftmaxArgs, TENSOR_SOFTMAX_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_softmax_args(TensorSoftmaxArgs args);
TAPEGRAD_API Tensor *tensor_log_softmax_args(TensorSoftmaxArgs args);
TAPEGRAD_API Tensor *tensor_softmin_args(TensorSoftmaxArgs args);

#ifdef __cplusplus
}
#endif
#endif
