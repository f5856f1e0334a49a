/* ops/order.h - sorting, counting, quantiles; running sums, products and extremes.  Included by ops.h;
 * ops/reduce.h says how dims are named.
 *
 *     Tensor *y = tensor_sort(x, -1, .descending = true, .indices = &at);
 *     Tensor *c = tensor_cumsum(x, 0); */
#ifndef TAPEGRAD_OPS_ORDER_H
#define TAPEGRAD_OPS_ORDER_H

#include <tapegrad/ops/reduce.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct TensorSortArgs {
    Tensor *input;
    int dim; /* default -1 */
    bool descending;
    Tensor **indices;
} TensorSortArgs;

/* tensor_sort - values along dim in order, equal ones in the order they had; tensor_argsort - only the i64
 * positions. */
#define tensor_sort(...) tensor_sort_args((TensorSortArgs){ .dim = -1, .input = __VA_ARGS__ })
#define tensor_argsort(...) tensor_argsort_args((TensorSortArgs){ .dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_sort_args(TensorSortArgs args);
TAPEGRAD_API Tensor *tensor_argsort_args(TensorSortArgs args);

/* tensor_msort - along the first dim. */
TAPEGRAD_API Tensor *tensor_msort(Tensor *x);

typedef struct TensorTopkArgs {
    Tensor *input;
    int64_t k;
    int dim;              /* default -1 */
    bool largest, sorted; /* default true; the result is always sorted */
    Tensor **indices;
} TensorTopkArgs;

/* tensor_topk - the k largest (or smallest) along dim, best first, the earlier one first on ties.  EINDEX: k
 * above the size. */
#define tensor_topk(...) \
    tensor_topk_args(    \
        (TensorTopkArgs){ .k = -1, .dim = -1, .largest = true, .sorted = true, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_topk_args(TensorTopkArgs args);

typedef struct TensorKthvalueArgs {
    Tensor *input;
    int64_t k;
    int dim; /* default -1 */
    bool keepdim;
    Tensor **indices;
} TensorKthvalueArgs;

/* tensor_kthvalue - the k-th smallest along dim, k from 1.  EINDEX: k out of range. */
#define tensor_kthvalue(...) tensor_kthvalue_args((TensorKthvalueArgs){ .dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_kthvalue_args(TensorKthvalueArgs args);

/* tensor_median - of all elements, the lower one of two; NaN if there is one; the gradient is shared among
 * equals. tensor_median_dim, tensor_mode - along .dim (default -1), with .indices; the gradient goes to the
 * index.  NaNs are equal for mode.  mode: the most frequent value, the smallest of equally frequent ones, and
 * its last position. */
TAPEGRAD_API Tensor *tensor_median(Tensor *x);
TAPEGRAD_API Tensor *tensor_nanmedian(Tensor *x); /* of what is no NaN; NaN where nothing is */
#define tensor_median_dim(...) tensor_median_dim_args((TensorPickArgs){ .dim = -1, .input = __VA_ARGS__ })
#define tensor_nanmedian_dim(...) \
    tensor_nanmedian_dim_args((TensorPickArgs){ .dim = -1, .input = __VA_ARGS__ })
#define tensor_mode(...) tensor_mode_args((TensorPickArgs){ .dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_median_dim_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_nanmedian_dim_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_mode_args(TensorPickArgs args);

/* Between the two elements next to place q (n - 1): a straight line, the lower, the higher, their mean, the
 * nearer (halves to even). */
typedef enum TensorQuantileMode {
    TENSOR_QUANTILE_LINEAR,
    TENSOR_QUANTILE_LOWER,
    TENSOR_QUANTILE_HIGHER,
    TENSOR_QUANTILE_MIDPOINT,
    TENSOR_QUANTILE_NEAREST
} TensorQuantileMode;

typedef struct TensorQuantileArgs {
    Tensor *input;
    double q; /* 0 to 1 ... */
    int dim;  /* one, or all */
    bool keepdim;
    TensorQuantileMode interpolation;
    Tensor *qs; /* ... or a tensor: of k numbers the results are the first dim, [k, ...] */
} TensorQuantileArgs;

/* tensor_quantile(x, 0.9, 1), tensor_quantile(x, .qs = list) - along dim, or of all; NaN where there is one.
 * tensor_nanquantile - of what is no NaN.  ESHAPE: no elements.  EVALUE: q outside [0, 1]. */
#define tensor_quantile(...) \
    tensor_quantile_args((TensorQuantileArgs){ .q = NAN, .dim = TENSOR_ALL, .input = __VA_ARGS__ })
#define tensor_nanquantile(...) \
    tensor_nanquantile_args((TensorQuantileArgs){ .q = NAN, .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_quantile_args(TensorQuantileArgs args);
TAPEGRAD_API Tensor *tensor_nanquantile_args(TensorQuantileArgs args);

/* ---- along a dimension ----------------------------------------------------------------------- */

/* tensor_cumsum - y_i = x_0 + ... + x_i (i64 for integers), tensor_cumprod - y_i = x_0 ... x_i, right with
 * zeros. */
TAPEGRAD_API Tensor *tensor_cumsum(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_cumprod(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_cumsum_(Tensor *x, int dim);
TAPEGRAD_API Tensor *tensor_cumprod_(Tensor *x, int dim);

/* tensor_cummax(x, dim, .indices = &at), tensor_cummin - running extremes and their i64 positions, the last
 * one on ties; a NaN stays.   tensor_logcumsumexp - y_i = log(e^(x_0) + ... + e^(x_i)) without overflow;
 * gradient 0 where x is -inf. */
#define tensor_cummax(...) tensor_cummax_args((TensorPickArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
#define tensor_cummin(...) tensor_cummin_args((TensorPickArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cummax_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_cummin_args(TensorPickArgs args);
TAPEGRAD_API Tensor *tensor_logcumsumexp(Tensor *x, int dim);

typedef struct TensorDiffArgs {
    Tensor *input;
    int64_t n;                /* how often: 1 */
    int dim;                  /* -1 */
    Tensor *prepend, *append; /* joined to x first; may be NULL */
} TensorDiffArgs;

/* tensor_diff - x_(i+1) - x_i along dim (xor for bool), n times.  ESHAPE: rank 0.  EVALUE: n negative. */
#define tensor_diff(...) tensor_diff_args((TensorDiffArgs){ .n = 1, .dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_diff_args(TensorDiffArgs args);

typedef struct TensorTrapezoidArgs {
    Tensor *y, *x; /* x: the points, [n] or of y's rank; NULL: dx apart */
    double dx;     /* 1 */
    int dim;       /* -1 */
} TensorTrapezoidArgs;

/* tensor_trapezoid - the integral sum (y_i + y_(i+1)) / 2 (x_(i+1) - x_i) along dim;
 * tensor_cumulative_trapezoid - its running sums. */
#define tensor_trapezoid(...) \
    tensor_trapezoid_args((TensorTrapezoidArgs){ .dx = 1, .dim = -1, .y = __VA_ARGS__ })
#define tensor_cumulative_trapezoid(...) \
    tensor_cumulative_trapezoid_args((TensorTrapezoidArgs){ .dx = 1, .dim = -1, .y = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_trapezoid_args(TensorTrapezoidArgs args);
TAPEGRAD_API Tensor *tensor_cumulative_trapezoid_args(TensorTrapezoidArgs args);

#ifdef __cplusplus
}
#endif
#endif
