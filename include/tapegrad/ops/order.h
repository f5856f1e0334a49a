/* ops/order.h - sorting, quantiles, counting, finding; running sums, products and extremes; differences.
 * Included by ops.h.
 *
 *     Tensor *y = tensor_sort(x, -1, .descending = true, .indices = &at);
 *     Tensor *c = tensor_cumsum(x, 0, .dtype = TENSOR_F64);
 *     Tensor *u = tensor_unique(labels, .return_counts = &counts);
 *
 * ops/reduce.h explains .dim, .keepdim, .dtype and .indices.  In comparisons NaN is the largest value. */
#ifndef TAPEGRAD_OPS_ORDER_H
#define TAPEGRAD_OPS_ORDER_H

#include <tapegrad/ops/reduce.h>
#include <tapegrad/ops/shape.h> /* TensorList */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct TensorSortArgs {
    Tensor *input;
    int dim; /* default -1 */
    bool descending;
    bool stable; /* PyTorch's; the order is always stable */
    Tensor **indices;
    TensorFromDefaults from_defaults;
} TensorSortArgs;
#define TENSOR_SORT_DEFAULTS .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSortArgs tensor_sort_defaults;

typedef struct TensorArgsortArgs {
    Tensor *input;
    int dim; /* default -1 */
    bool descending, stable;
    TensorFromDefaults from_defaults;
} TensorArgsortArgs;
#define TENSOR_ARGSORT_DEFAULTS .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorArgsortArgs tensor_argsort_defaults;

/* tensor_sort - the values along dim in order; equal values keep their order.
 * tensor_argsort - only the i64 positions.
 * tensor_msort - along the first dim. */
#define tensor_sort(...) \
    TENSOR_CALL_(tensor_sort_args, TensorSortArgs, TENSOR_SORT_DEFAULTS, .input = __VA_ARGS__)
#define tensor_argsort(...) \
    TENSOR_CALL_(tensor_argsort_args, TensorArgsortArgs, TENSOR_ARGSORT_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_sort_args(TensorSortArgs args);
TAPEGRAD_API Tensor *tensor_argsort_args(TensorArgsortArgs args);
TAPEGRAD_API Tensor *tensor_msort(Tensor *x);

typedef struct TensorTopkArgs {
    Tensor *input;
    int64_t k;    /* must be given */
    int dim;      /* default -1 */
    bool largest; /* default true; false: the k smallest */
    bool sorted;  /* PyTorch's; the result is always sorted */
    Tensor **indices;
    TensorFromDefaults from_defaults;
} TensorTopkArgs;
#define TENSOR_TOPK_DEFAULTS .k = -1, .dim = -1, .largest = true, .sorted = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorTopkArgs tensor_topk_defaults;

/* tensor_topk(x, k) - the k largest along dim, largest first; equal values keep their order.  EINDEX: k is
 * not in 0..size. */
#define tensor_topk(...) \
    TENSOR_CALL_(tensor_topk_args, TensorTopkArgs, TENSOR_TOPK_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_topk_args(TensorTopkArgs args);

typedef struct TensorKthvalueArgs {
    Tensor *input;
    int64_t k; /* must be given */
    int dim;   /* default -1 */
    bool keepdim;
    Tensor **indices;
    TensorFromDefaults from_defaults;
} TensorKthvalueArgs;
#define TENSOR_KTHVALUE_DEFAULTS .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorKthvalueArgs tensor_kthvalue_defaults;

/* tensor_kthvalue(x, k) - the k-th smallest along dim, k from 1.  EINDEX: k is not in 1..size. */
#define tensor_kthvalue(...) \
    TENSOR_CALL_(tensor_kthvalue_args, TensorKthvalueArgs, TENSOR_KTHVALUE_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_kthvalue_args(TensorKthvalueArgs args);

/* tensor_median - the median of all elements, the lower of two middle ones; NaN if x has a NaN.  Equal
 *   elements share the gradient.
 * tensor_nanmedian - the median of the elements that are not NaN; NaN if all are. */
TAPEGRAD_API Tensor *tensor_median(Tensor *x);
TAPEGRAD_API Tensor *tensor_nanmedian(Tensor *x);

typedef struct TensorMedianArgs {
    Tensor *input;
    int dim; /* default -1 */
    bool keepdim;
    Tensor **indices;
    TensorFromDefaults from_defaults;
} TensorMedianArgs;
#define TENSOR_MEDIAN_DEFAULTS .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorMedianArgs tensor_median_defaults;

/* tensor_median_dim, tensor_nanmedian_dim - the median along dim; the gradient goes to the index.
 * tensor_mode - the most frequent value along dim, the smallest of equally frequent ones, at its last
 *   position.  NaNs are equal here.
 * ESHAPE: the dim has no elements. */
#define tensor_median_dim(...) \
    TENSOR_CALL_(tensor_median_dim_args, TensorMedianArgs, TENSOR_MEDIAN_DEFAULTS, .input = __VA_ARGS__)
#define tensor_nanmedian_dim(...) \
    TENSOR_CALL_(tensor_nanmedian_dim_args, TensorMedianArgs, TENSOR_MEDIAN_DEFAULTS, .input = __VA_ARGS__)
#define tensor_mode(...) \
    TENSOR_CALL_(tensor_mode_args, TensorMedianArgs, TENSOR_MEDIAN_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_median_dim_args(TensorMedianArgs args);
TAPEGRAD_API Tensor *tensor_nanmedian_dim_args(TensorMedianArgs args);
TAPEGRAD_API Tensor *tensor_mode_args(TensorMedianArgs args);

/* The quantile if q (n - 1) lies between two positions. */
typedef enum TensorQuantileMode {
    TENSOR_QUANTILE_LINEAR, /* interpolated linearly between the two elements */
    TENSOR_QUANTILE_LOWER,
    TENSOR_QUANTILE_HIGHER,
    TENSOR_QUANTILE_MIDPOINT, /* their mean */
    TENSOR_QUANTILE_NEAREST   /* halves round to the even position */
} TensorQuantileMode;

typedef struct TensorQuantileArgs {
    Tensor *input;
    double q; /* 0 to 1 ... */
    int dim;  /* one dim, or all */
    bool keepdim;
    TensorByName by_name;
    TensorQuantileMode interpolation;
    Tensor *qs; /* ... or a tensor of several: [k] gives results [k, ...] */
    TensorFromDefaults from_defaults;
} TensorQuantileArgs;
#define TENSOR_QUANTILE_DEFAULTS .q = NAN, .dim = TENSOR_ALL, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorQuantileArgs tensor_quantile_defaults;

/* tensor_quantile(x, 0.9, 1), tensor_quantile(x, .qs = list) - the element at position q (n - 1) of x in
 *   order, along dim or of all; NaN where x has one.
 * tensor_nanquantile - the same over the elements that are not NaN; NaN if all are.
 * The gradient goes to the one or two elements that give the result.  ESHAPE: x has no elements, or qs has
 * rank 2 or more.  EVALUE: q outside [0, 1], or q and qs both given.  EDTYPE: qs does not have x's dtype (f32
 * with f16 or bf16). */
#define tensor_quantile(...) \
    TENSOR_CALL_(tensor_quantile_args, TensorQuantileArgs, TENSOR_QUANTILE_DEFAULTS, .input = __VA_ARGS__)
#define tensor_nanquantile(...) \
    TENSOR_CALL_(tensor_nanquantile_args, TensorQuantileArgs, TENSOR_QUANTILE_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_quantile_args(TensorQuantileArgs args);
TAPEGRAD_API Tensor *tensor_nanquantile_args(TensorQuantileArgs args);

/* ---- running results ------------------------------------------------------------------------- */

typedef struct TensorCumsumArgs {
    Tensor *input;
    int dim; /* must be given */
    TensorByName by_name;
    TensorDtype dtype;
    bool reverse; /* ours: from the last element to the first */
    TensorFromDefaults from_defaults;
} TensorCumsumArgs;
#define TENSOR_CUMSUM_DEFAULTS .dim = TENSOR_ALL, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCumsumArgs tensor_cumsum_defaults;

typedef struct TensorCumprodArgs {
    Tensor *input;
    int dim; /* must be given */
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} TensorCumprodArgs;
#define TENSOR_CUMPROD_DEFAULTS \
    .dim = TENSOR_ALL, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCumprodArgs tensor_cumprod_defaults;

/* tensor_cumsum(x, dim) - y_i = x_0 + ... + x_i along dim; i64 for integers.
 * tensor_cumprod(x, dim) - y_i = x_0 x_1 ... x_i; gradients are correct with any number of zeros.
 * tensor_cumsum_, tensor_cumprod_ - in place; the result has x's dtype. */
#define tensor_cumsum(...) \
    TENSOR_CALL_(tensor_cumsum_args, TensorCumsumArgs, TENSOR_CUMSUM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_cumsum_(...) \
    TENSOR_CALL_(tensor_cumsum_args_, TensorCumsumArgs, TENSOR_CUMSUM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_cumprod(...) \
    TENSOR_CALL_(tensor_cumprod_args, TensorCumprodArgs, TENSOR_CUMPROD_DEFAULTS, .input = __VA_ARGS__)
#define tensor_cumprod_(...) \
    TENSOR_CALL_(tensor_cumprod_args_, TensorCumprodArgs, TENSOR_CUMPROD_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_cumsum_args(TensorCumsumArgs args);
TAPEGRAD_API Tensor *tensor_cumsum_args_(TensorCumsumArgs args);
TAPEGRAD_API Tensor *tensor_cumprod_args(TensorCumprodArgs args);
TAPEGRAD_API Tensor *tensor_cumprod_args_(TensorCumprodArgs args);

typedef struct TensorCummaxArgs {
    Tensor *input;
    int dim; /* must be given */
    Tensor **indices;
    TensorFromDefaults from_defaults;
} TensorCummaxArgs;
#define TENSOR_CUMMAX_DEFAULTS .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCummaxArgs tensor_cummax_defaults;

/* tensor_cummax(x, dim, .indices = &at), tensor_cummin - running maxima, or minima, and their i64 positions,
 * the last one on ties; a NaN remains the extreme.  The gradient is added at these positions. */
#define tensor_cummax(...) \
    TENSOR_CALL_(tensor_cummax_args, TensorCummaxArgs, TENSOR_CUMMAX_DEFAULTS, .input = __VA_ARGS__)
#define tensor_cummin(...) \
    TENSOR_CALL_(tensor_cummin_args, TensorCummaxArgs, TENSOR_CUMMAX_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_cummax_args(TensorCummaxArgs args);
TAPEGRAD_API Tensor *tensor_cummin_args(TensorCummaxArgs args);

/* tensor_logcumsumexp - y_i = log(e^(x_0) + ... + e^(x_i)) along dim, without overflow; gradient 0 where x is
 * -inf. */
TAPEGRAD_API Tensor *tensor_logcumsumexp(Tensor *x, int dim);

/* ---- differences and integrals --------------------------------------------------------------- */

typedef struct TensorDiffArgs {
    Tensor *input;
    int64_t n;                /* number of times; default 1 */
    int dim;                  /* default -1 */
    Tensor *prepend, *append; /* joined to x along dim first; may be NULL */
    TensorFromDefaults from_defaults;
} TensorDiffArgs;
#define TENSOR_DIFF_DEFAULTS .n = 1, .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorDiffArgs tensor_diff_defaults;

/* tensor_diff - y_i = x_(i+1) - x_i along dim (xor for bool), n times.  ESHAPE: rank 0, or prepend or append
 * has another rank.  EVALUE: n < 0. */
#define tensor_diff(...) \
    TENSOR_CALL_(tensor_diff_args, TensorDiffArgs, TENSOR_DIFF_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_diff_args(TensorDiffArgs args);

typedef struct TensorGradientArgs {
    Tensor *input, **results; /* results: room for one tensor a dim */
    double spacing;           /* the distance between neighbours in all dims; default 1 */
    const double *spacings;   /* or one distance for each dim; may be NULL */
    TensorList coordinates;   /* or the positions, a vector for each dim */
    int dim;                  /* one dim ... */
    TensorShape dims;         /* ... or several; neither: all */
    int edge_order;           /* 1 or 2; default 1 */
    TensorFromDefaults from_defaults;
} TensorGradientArgs;
#define TENSOR_GRADIENT_DEFAULTS .spacing = 1, .dim = TENSOR_ALL, .edge_order = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorGradientArgs tensor_gradient_defaults;

/* tensor_gradient(x, results, .spacing = h) - torch.gradient: the slope of x along each dim.
 *   inside        (a^2 x_(i+1) + (b^2 - a^2) x_i - b^2 x_(i-1)) / (a b (a + b)), with the distances a before
 *                 and b after x_i; (x_(i+1) - x_(i-1)) / 2h for a = b = h
 *   at the edges  the slope between the last two; edge_order 2: that of a parabola through the last three
 * Integers give f32.  Returns the number of results, or -1.  EDTYPE: x is bool or u8.  ESHAPE: a dim has
 * fewer than edge_order + 1 elements, or coordinates are not vectors of the dims' sizes.  EVALUE: another
 * edge_order, or two kinds of spacing. */
#define tensor_gradient(...) \
    TENSOR_CALL_(tensor_gradient_args, TensorGradientArgs, TENSOR_GRADIENT_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API int tensor_gradient_args(TensorGradientArgs args);

typedef struct TensorTrapezoidArgs {
    Tensor *y, *x; /* x: the points, [n] or of y's rank; NULL: distance dx */
    double dx;     /* default 1 */
    int dim;       /* default -1 */
    TensorFromDefaults from_defaults;
} TensorTrapezoidArgs;
#define TENSOR_TRAPEZOID_DEFAULTS .dx = 1, .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorTrapezoidArgs tensor_trapezoid_defaults;

/* tensor_trapezoid - the integral sum_i (y_i + y_(i+1)) / 2 (x_(i+1) - x_i) along dim.
 * tensor_cumulative_trapezoid - its running sums.
 * Integers alone give f32.  ESHAPE: rank 0, or x does not fit y.  EVALUE: x and dx both given.  EDTYPE: bool.
 */
#define tensor_trapezoid(...) \
    TENSOR_CALL_(tensor_trapezoid_args, TensorTrapezoidArgs, TENSOR_TRAPEZOID_DEFAULTS, .y = __VA_ARGS__)
#define tensor_cumulative_trapezoid(...)                                                           \
    TENSOR_CALL_(tensor_cumulative_trapezoid_args, TensorTrapezoidArgs, TENSOR_TRAPEZOID_DEFAULTS, \
                 .y = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_trapezoid_args(TensorTrapezoidArgs args);
TAPEGRAD_API Tensor *tensor_cumulative_trapezoid_args(TensorTrapezoidArgs args);

/* ---- sets and counts: results have no gradient ----------------------------------------------- */

typedef struct TensorUniqueArgs {
    Tensor *input;
    bool sorted; /* PyTorch's, default true; the result is always in order */
    Tensor **return_inverse, **return_counts;
    int dim; /* one dim; default: x flattened */
    TensorFromDefaults from_defaults;
} TensorUniqueArgs;
#define TENSOR_UNIQUE_DEFAULTS .sorted = true, .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorUniqueArgs tensor_unique_defaults;

typedef struct TensorUniqueConsecutiveArgs {
    Tensor *input;
    Tensor **return_inverse, **return_counts;
    int dim;
    TensorFromDefaults from_defaults;
} TensorUniqueConsecutiveArgs;
#define TENSOR_UNIQUE_CONSECUTIVE_DEFAULTS .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorUniqueConsecutiveArgs tensor_unique_consecutive_defaults;

/* tensor_unique(x, .return_inverse = &inverse, .return_counts = &counts, .dim = 0) - the distinct
 *   elements in order; with dim, the distinct slices of that dim, ordered by their elements.  inverse: the
 *   position in y of each element, i64 of x's shape (with dim: [size]); counts: the number of each, i64.  NaN
 *   equals nothing.
 * tensor_unique_consecutive - removes repeated neighbours only, and keeps the order. */
#define tensor_unique(...) \
    TENSOR_CALL_(tensor_unique_args, TensorUniqueArgs, TENSOR_UNIQUE_DEFAULTS, .input = __VA_ARGS__)
#define tensor_unique_consecutive(...)                                        \
    TENSOR_CALL_(tensor_unique_consecutive_args, TensorUniqueConsecutiveArgs, \
                 TENSOR_UNIQUE_CONSECUTIVE_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_unique_args(TensorUniqueArgs args);
TAPEGRAD_API Tensor *tensor_unique_consecutive_args(TensorUniqueConsecutiveArgs args);

typedef struct TensorBincountArgs {
    Tensor *input, *weights; /* weights may be NULL */
    int64_t minlength;
} TensorBincountArgs;
#define TENSOR_BINCOUNT_DEFAULTS .minlength = 0
TAPEGRAD_API extern const TensorBincountArgs tensor_bincount_defaults;

/* tensor_bincount(x, weights) - y_i = the number of elements i in a vector of integers, i64, at least
 * minlength counts; with weights, their sums (f32 for f32, else f64).  ESHAPE: x is no vector, or weights has
 * another shape.  EVALUE: a negative element. */
#define tensor_bincount(...) \
    TENSOR_CALL_(tensor_bincount_args, TensorBincountArgs, TENSOR_BINCOUNT_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_bincount_args(TensorBincountArgs args);

typedef struct TensorHistcArgs {
    Tensor *input;
    int64_t bins;    /* default 100 */
    double min, max; /* equal: x's own range */
    TensorFromDefaults from_defaults;
} TensorHistcArgs;
#define TENSOR_HISTC_DEFAULTS .bins = 100, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorHistcArgs tensor_histc_defaults;

/* tensor_histc(x, bins, min, max) - the number of elements in each of `bins` equal parts of [min, max], in
 * x's dtype.  Elements outside, and NaN, are not counted.  EVALUE: bins < 1, or no finite range. */
#define tensor_histc(...) \
    TENSOR_CALL_(tensor_histc_args, TensorHistcArgs, TENSOR_HISTC_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_histc_args(TensorHistcArgs args);

typedef enum TensorSide { TENSOR_SIDE_UNSET, TENSOR_SIDE_LEFT, TENSOR_SIDE_RIGHT } TensorSide;

typedef struct TensorSearchsortedArgs {
    Tensor *sorted, *values;
    TensorByName by_name;
    bool out_int32;  /* the result is i32 */
    bool right;      /* after equal elements, not before them */
    TensorSide side; /* the same as an enum; EVALUE: left with .right = true */
    Tensor *sorter;  /* i64 of sorted's shape: the order in which sorted ascends; may be NULL */
} TensorSearchsortedArgs;
#define TENSOR_SEARCHSORTED_DEFAULTS .right = false
TAPEGRAD_API extern const TensorSearchsortedArgs tensor_searchsorted_defaults;

typedef struct TensorBucketizeArgs {
    Tensor *input, *boundaries;
    bool out_int32, right;
} TensorBucketizeArgs;
#define TENSOR_BUCKETIZE_DEFAULTS .right = false
TAPEGRAD_API extern const TensorBucketizeArgs tensor_bucketize_defaults;

/* tensor_searchsorted(sorted, values) - i64 of values' shape: the position where each value would be inserted
 *   in the ascending last dim of sorted, which is one list or has values' leading sizes.  Integers with
 *   floats are compared as f64.  NaN goes after all.
 * tensor_bucketize(x, boundaries) - the same with one list, operands exchanged.
 * ESHAPE: shapes do not fit.  EDTYPE: sorter is not i64.  EINDEX: sorter has an index out of range. */
#define tensor_searchsorted(...)                                                                 \
    TENSOR_CALL_(tensor_searchsorted_args, TensorSearchsortedArgs, TENSOR_SEARCHSORTED_DEFAULTS, \
                 .sorted = __VA_ARGS__)
#define tensor_bucketize(...) \
    TENSOR_CALL_(tensor_bucketize_args, TensorBucketizeArgs, TENSOR_BUCKETIZE_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_searchsorted_args(TensorSearchsortedArgs args);
TAPEGRAD_API Tensor *tensor_bucketize_args(TensorBucketizeArgs args);

typedef struct TensorIsinArgs {
    Tensor *elements, *test_elements;
    bool assume_unique; /* PyTorch's; changes nothing */
    bool invert;
} TensorIsinArgs;
#define TENSOR_ISIN_DEFAULTS .invert = false
TAPEGRAD_API extern const TensorIsinArgs tensor_isin_defaults;

/* tensor_isin(elements, test_elements) - bool of elements' shape: is the element one of test_elements?  A NaN
 * is not. */
#define tensor_isin(...) \
    TENSOR_CALL_(tensor_isin_args, TensorIsinArgs, TENSOR_ISIN_DEFAULTS, .elements = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_isin_args(TensorIsinArgs args);

/* ---- positions ------------------------------------------------------------------------------- */

typedef struct TensorNonzeroStaticArgs {
    Tensor *input;
    int64_t size;       /* must be given */
    int64_t fill_value; /* default -1 */
    TensorFromDefaults from_defaults;
} TensorNonzeroStaticArgs;
#define TENSOR_NONZERO_STATIC_DEFAULTS .size = -1, .fill_value = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorNonzeroStaticArgs tensor_nonzero_static_defaults;

/* tensor_nonzero - i64 [count, rank]: the indices of the elements that are not 0, in row-major order; NaN is
 *   not 0.
 * tensor_nonzero_static(x, .size = n) - the first n rows of that, i64 [n, rank]; rows beyond the count hold
 *   fill_value.  EVALUE: size < 0.
 * tensor_masked_select - the elements of x where mask is true, in row-major order: a vector.  x and mask
 *   broadcast (ESHAPE).  EDTYPE: the mask is neither bool nor u8. */
TAPEGRAD_API Tensor *tensor_nonzero(Tensor *x);
#define tensor_nonzero_static(...)                                                                    \
    TENSOR_CALL_(tensor_nonzero_static_args, TensorNonzeroStaticArgs, TENSOR_NONZERO_STATIC_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_nonzero_static_args(TensorNonzeroStaticArgs args);
TAPEGRAD_API Tensor *tensor_masked_select(Tensor *x, Tensor *mask);

/* tensor_unravel_index - turns row-major positions in a tensor of that shape into indices: results[d] is the
 * index in dim d, i64 of indices' shape, for each dim of shape.  Returns their number, or -1.  EDTYPE:
 * indices are no integers.  EINDEX: a position out of range. */
TAPEGRAD_API int tensor_unravel_index(Tensor *indices, TensorShape shape, Tensor **results);

#ifdef __cplusplus
}
#endif
#endif
