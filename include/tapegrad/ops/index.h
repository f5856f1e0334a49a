/* ops/index.h - indexing, x[...] and x[...] = v; gather, scatter, embedding, one-hot.  Included by ops.h.
 *
 *     Tensor *part = tensor_index(x, "..., None, 1:-1:2");            // x[..., None, 1:-1:2], a view
 *     Tensor *rows = tensor_index(x, "%d, rows", 3, rows);            // x[3, rows]
 *     tensor_index_set_(x, value, "mask, 0", mask);                   // x[mask, 0] = value
 *     tensor_index_set_scalar_(x, 0.0, "..., ::2");                   // x[..., ::2] = 0
 *     Tensor *words = tensor_embedding(tokens, table);
 *
 * Dims may count from the end.  Index tensors are i64, i32 or u8, masks bool or u8, sources of x's dtype
 * (EDTYPE).  EINDEX: no such dim, or an index out of range; the error names its position.  Indices are
 * checked before anything is written; other devices than the CPU report them late (device.h).  A negative
 * index is out of range unless a function says that it counts from the end.  ESHAPE: shapes do not fit.  Sums
 * add in the order of the index.  If an index repeats, the last write wins, and only it gets the gradient:
 * the same bits every time. */
#ifndef TAPEGRAD_OPS_INDEX_H
#define TAPEGRAD_OPS_INDEX_H

#include <tapegrad/ops/shape.h> /* TensorList */
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- x[...] -------------------------------------------------------------------------------------
 *     index = item, item, ...            in brackets or not
 *     item  = 3, -1, %d                  an integer: selects that index and removes the dim
 *           | 1:-1:2, :, 2:, :%d         a slice, bounds as in Python, the step positive: a view
 *           | ...                        the dims that no other item takes; once
 *           | None                       a new dim of size 1
 *           | True | False               a new dim of size 1, or 0
 *           | rows                       any other name: the next argument, a Tensor * of indices or a mask
 * %d takes an int from the arguments, %ld a long, %lld a long long.  Negative indices count from the end.
 *
 * As in PyTorch: a mask (bool, u8) of rank r indexes r dims by the positions where it is true, in row-major
 * order.  Index tensors broadcast.  Adjacent ones replace the dims they index; if a slice or None stands
 * between them, their dims come first.  An integer, or an integer tensor of rank 0, selects before that.
 * Without tensors, True and False the result is a view of x; else a copy.
 *
 * EVALUE: the text cannot be parsed (the error gives the position); not as many arguments as it needs; more
 * indices than dims; a step below 1.  EINDEX: an index out of range.  ESHAPE: index tensors do not broadcast;
 * a mask's sizes are not x's.  EDTYPE: a floating index. */
TAPEGRAD_API Tensor *tensor_index(Tensor *x, const char *text, ...);

/* tensor_index_set_ - x[text] = value, in place.  value is cast to x's dtype and broadcasts (leading sizes of
 * 1 are dropped); it gets the gradient of the elements it wrote, x's old elements there get 0.
 * tensor_index_set_scalar_ - the same with a number.
 * tensor_index_set - a copy of x with that part written.
 * tensor_index_accumulate_ - adds value, k times where an index repeats k times. */
TAPEGRAD_API Tensor *tensor_index_set_(Tensor *x, Tensor *value, const char *text, ...);
TAPEGRAD_API Tensor *tensor_index_set_scalar_(Tensor *x, double value, const char *text, ...);
TAPEGRAD_API Tensor *tensor_index_set(Tensor *x, Tensor *value, const char *text, ...);
TAPEGRAD_API Tensor *tensor_index_accumulate_(Tensor *x, Tensor *value, const char *text, ...);

/* The macros end the arguments with a mark: a missing argument, or one too many, is then EVALUE and not a
 * read of the stack.  The NULL after it catches a missing argument of %d. */
#define TENSOR_INDEX_END_ ((Tensor *)UINTPTR_MAX)
#define tensor_index(...) tensor_index(__VA_ARGS__, TENSOR_INDEX_END_, (Tensor *)NULL)
#define tensor_index_set_(...) tensor_index_set_(__VA_ARGS__, TENSOR_INDEX_END_, (Tensor *)NULL)
#define tensor_index_set_scalar_(...) tensor_index_set_scalar_(__VA_ARGS__, TENSOR_INDEX_END_, (Tensor *)NULL)
#define tensor_index_set(...) tensor_index_set(__VA_ARGS__, TENSOR_INDEX_END_, (Tensor *)NULL)
#define tensor_index_accumulate_(...) tensor_index_accumulate_(__VA_ARGS__, TENSOR_INDEX_END_, (Tensor *)NULL)

/* tensor_index_tensors(x, TENSORS(i, NULL, j)) - x[i, :, j] for a list of index tensors and masks; NULL
 *     stands for a whole dim.
 * tensor_index_put(x, TENSORS(i, j), values, .accumulate = true) - a copy of x with x[i, j] = values, which
 *     broadcast; .accumulate: x[i, j] += values. */
typedef struct TensorIndexPutArgs {
    Tensor *input;
    TensorList indices;
    Tensor *values;
    bool accumulate;
} TensorIndexPutArgs;
#define TENSOR_INDEX_PUT_DEFAULTS .accumulate = false
TAPEGRAD_API extern const TensorIndexPutArgs tensor_index_put_defaults;
#define tensor_index_put(...) \
    TENSOR_CALL_(tensor_index_put_args, TensorIndexPutArgs, TENSOR_INDEX_PUT_DEFAULTS, .input = __VA_ARGS__)
#define tensor_index_put_(...) \
    TENSOR_CALL_(tensor_index_put_args_, TensorIndexPutArgs, TENSOR_INDEX_PUT_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_index_tensors(Tensor *x, TensorList indices);
TAPEGRAD_API Tensor *tensor_index_put_args(TensorIndexPutArgs args);
TAPEGRAD_API Tensor *tensor_index_put_args_(TensorIndexPutArgs args);

/* ---- along one dim --------------------------------------------------------------------------- */

/* tensor_gather - y[i][j][k] = x[i][index[i][j][k]][k] for dim 1 of 3.  index has x's rank, and at most
 *     x's sizes in the other dims.
 * tensor_take_along_dim(x, index, .dim = 1) - the same, but other dims broadcast and negative indices count
 *     from the end; without dim, on x and index flattened. */
TAPEGRAD_API Tensor *tensor_gather(Tensor *x, int dim, Tensor *index);
typedef struct TensorTakeArgs {
    Tensor *input, *index;
    int dim;
    TensorFromDefaults from_defaults;
} TensorTakeArgs;
#define TENSOR_TAKE_ALONG_DIM_DEFAULTS .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorTakeArgs tensor_take_along_dim_defaults;
#define tensor_take_along_dim(...)                                                           \
    TENSOR_CALL_(tensor_take_along_dim_args, TensorTakeArgs, TENSOR_TAKE_ALONG_DIM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_take_along_dim_args(TensorTakeArgs args);

/* tensor_scatter_add - x with y[i][index[i][j][k]][k] += src[i][j][k] for dim 1 of 3; src may be larger than
 *     index.
 * tensor_scatter - the same with = instead of +=: of several writes the last in row-major order wins.
 * tensor_scatter_value - the same with a number as src. */
TAPEGRAD_API Tensor *tensor_scatter_add(Tensor *x, int dim, Tensor *index, Tensor *src);
TAPEGRAD_API Tensor *tensor_scatter_add_(Tensor *x, int dim, Tensor *index, Tensor *src);
TAPEGRAD_API Tensor *tensor_scatter(Tensor *x, int dim, Tensor *index, Tensor *src);
TAPEGRAD_API Tensor *tensor_scatter_(Tensor *x, int dim, Tensor *index, Tensor *src);
TAPEGRAD_API Tensor *tensor_scatter_value(Tensor *x, int dim, Tensor *index, double value);
TAPEGRAD_API Tensor *tensor_scatter_value_(Tensor *x, int dim, Tensor *index, double value);

/* tensor_index_select - y's slice k of dim is x's slice index[k]; index [n].
 * tensor_index_add(x, dim, index, source, .alpha = 1) - a copy of x with alpha times slice k of source added
 *     to slice index[k]. */
TAPEGRAD_API Tensor *tensor_index_select(Tensor *x, int dim, Tensor *index);
typedef struct TensorIndexAddArgs {
    Tensor *input;
    int dim;
    Tensor *index, *source;
    double alpha;
    TensorFromDefaults from_defaults;
} TensorIndexAddArgs;
#define TENSOR_INDEX_ADD_DEFAULTS .alpha = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorIndexAddArgs tensor_index_add_defaults;
#define tensor_index_add(...) \
    TENSOR_CALL_(tensor_index_add_args, TensorIndexAddArgs, TENSOR_INDEX_ADD_DEFAULTS, .input = __VA_ARGS__)
#define tensor_index_add_(...) \
    TENSOR_CALL_(tensor_index_add_args_, TensorIndexAddArgs, TENSOR_INDEX_ADD_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_index_add_args(TensorIndexAddArgs args);
TAPEGRAD_API Tensor *tensor_index_add_args_(TensorIndexAddArgs args);

/* tensor_index_copy - a copy of x with slice index[k] of dim replaced by slice k of source.
 * tensor_index_fill - the same with a number for all slices.
 * tensor_index_fill_tensor - the same with a tensor of rank 0 (ESHAPE), cast to x's dtype; its gradient is
 *     the sum over these slices. */
TAPEGRAD_API Tensor *tensor_index_copy(Tensor *x, int dim, Tensor *index, Tensor *source);
TAPEGRAD_API Tensor *tensor_index_copy_(Tensor *x, int dim, Tensor *index, Tensor *source);
TAPEGRAD_API Tensor *tensor_index_fill(Tensor *x, int dim, Tensor *index, double value);
TAPEGRAD_API Tensor *tensor_index_fill_(Tensor *x, int dim, Tensor *index, double value);
TAPEGRAD_API Tensor *tensor_index_fill_tensor(Tensor *x, int dim, Tensor *index, Tensor *value);
TAPEGRAD_API Tensor *tensor_index_fill_tensor_(Tensor *x, int dim, Tensor *index, Tensor *value);

/* tensor_scatter_reduce(x, dim, index, src, TENSOR_INTO_AMAX, .include_self = false) - a copy of x with
 *     elements of src reduced into those that index names, as in scatter_add; .include_self: x's own element
 *     takes part.  Integer means are rounded down; a NaN wins amax and amin; ties share the gradient evenly,
 *     without x's element if it takes no part (in PyTorch it has a share).  EGRAD: the second derivative of a
 *     product with several zeros.
 * tensor_index_reduce(x, dim, index, source, TENSOR_INTO_MEAN) - the same for whole slices, as in index_add.
 *     EVALUE: TENSOR_INTO_SUM: use index_add. */
typedef enum TensorInto {
    TENSOR_INTO_SUM,
    TENSOR_INTO_PROD,
    TENSOR_INTO_MEAN,
    TENSOR_INTO_AMAX,
    TENSOR_INTO_AMIN
} TensorInto;
typedef struct TensorReduceIntoArgs {
    Tensor *input;
    int dim;
    Tensor *index, *src;
    TensorInto reduce;
    bool include_self;
    TensorFromDefaults from_defaults;
} TensorReduceIntoArgs;
#define TENSOR_REDUCE_INTO_DEFAULTS \
    .reduce = (TensorInto)-1, .include_self = true, TENSOR_FROM_DEFAULTS /* reduce is required */
TAPEGRAD_API extern const TensorReduceIntoArgs tensor_reduce_into_defaults;
#define TENSOR_REDUCE_INTO_(function, ...) \
    TENSOR_CALL_(function, TensorReduceIntoArgs, TENSOR_REDUCE_INTO_DEFAULTS, .input = __VA_ARGS__)
#define tensor_scatter_reduce(...) TENSOR_REDUCE_INTO_(tensor_scatter_reduce_args, __VA_ARGS__)
#define tensor_scatter_reduce_(...) TENSOR_REDUCE_INTO_(tensor_scatter_reduce_args_, __VA_ARGS__)
#define tensor_index_reduce(...) TENSOR_REDUCE_INTO_(tensor_index_reduce_args, __VA_ARGS__)
#define tensor_index_reduce_(...) TENSOR_REDUCE_INTO_(tensor_index_reduce_args_, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_scatter_reduce_args(TensorReduceIntoArgs args);
TAPEGRAD_API Tensor *tensor_scatter_reduce_args_(TensorReduceIntoArgs args);
TAPEGRAD_API Tensor *tensor_index_reduce_args(TensorReduceIntoArgs args);
TAPEGRAD_API Tensor *tensor_index_reduce_args_(TensorReduceIntoArgs args);

/* ---- by position, by mask, by part ----------------------------------------------------------- */

/* tensor_take - x's elements at row-major positions, which may count from the end; y has index's shape.
 * tensor_put(x, index, source, .accumulate = true) - a copy of x with source's elements written at these
 *     positions, or added; source has as many elements as index.
 * tensor_masked_scatter - a copy of x with the first elements of source, in order, written where the mask is
 *     true; x and mask broadcast.  ESHAPE: source has too few elements. */
typedef struct TensorPutArgs {
    Tensor *input, *index, *source;
    bool accumulate;
} TensorPutArgs;
#define TENSOR_PUT_DEFAULTS .accumulate = false
TAPEGRAD_API extern const TensorPutArgs tensor_put_defaults;
#define tensor_put(...) \
    TENSOR_CALL_(tensor_put_args, TensorPutArgs, TENSOR_PUT_DEFAULTS, .input = __VA_ARGS__)
#define tensor_put_(...) \
    TENSOR_CALL_(tensor_put_args_, TensorPutArgs, TENSOR_PUT_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_take(Tensor *x, Tensor *index);
TAPEGRAD_API Tensor *tensor_put_args(TensorPutArgs args);
TAPEGRAD_API Tensor *tensor_put_args_(TensorPutArgs args);
TAPEGRAD_API Tensor *tensor_masked_scatter(Tensor *x, Tensor *mask, Tensor *source);
TAPEGRAD_API Tensor *tensor_masked_scatter_(Tensor *x, Tensor *mask, Tensor *source);

/* ---- tables ---------------------------------------------------------------------------------- */

/* tensor_embedding(index, weight, .padding_idx = 0) - y[..., :] = weight[index[...], :], weight [rows,
 * width]. With max_norm, rows that index names and whose norm is larger are scaled to max_norm in the result
 * and, after the call succeeded, in weight itself: outside the graph, each once. */
#define TENSOR_NO_PADDING INT64_MIN
typedef struct TensorEmbeddingArgs {
    Tensor *input, *weight;
    int64_t padding_idx;        /* this row gets no gradient; may count from the end; EINDEX: no such row */
    double max_norm, norm_type; /* max_norm 0: no limit; EVALUE: negative or NaN */
    bool scale_grad_by_freq;    /* divides a row's gradient by its count in index */
    TensorFromDefaults from_defaults;
} TensorEmbeddingArgs;
#define TENSOR_EMBEDDING_DEFAULTS                                                                 \
    .padding_idx = TENSOR_NO_PADDING, .max_norm = 0, .norm_type = 2, .scale_grad_by_freq = false, \
    TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorEmbeddingArgs tensor_embedding_defaults;
#define tensor_embedding(...) \
    TENSOR_CALL_(tensor_embedding_args, TensorEmbeddingArgs, TENSOR_EMBEDDING_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_embedding_args(TensorEmbeddingArgs args);

/* tensor_embedding_bag(index, weight, offsets, .mode = TENSOR_BAG_SUM) - [bags, width]: the sum, mean or
 * maximum of each bag's rows; an empty bag gives 0; of equal maxima the first gets the gradient.
 *   index [bags, n], no offsets   one bag a row
 *   index [n], offsets [bags]     bag k begins at offsets[k]; they begin with 0 and do not decrease (EVALUE)
 * Table and max_norm as in tensor_embedding. */
typedef enum TensorBagMode { TENSOR_BAG_SUM, TENSOR_BAG_MEAN, TENSOR_BAG_MAX } TensorBagMode;
typedef struct TensorEmbeddingBagArgs {
    Tensor *input, *weight, *offsets;
    double max_norm, norm_type;
    bool scale_grad_by_freq; /* EVALUE with TENSOR_BAG_MAX */
    TensorByName by_name;
    TensorBagMode mode;
    Tensor *per_sample_weights; /* of index's shape: factors of the rows; EVALUE unless TENSOR_BAG_SUM */
    bool include_last_offset;   /* the last offset is the end of the last bag */
    int64_t padding_idx;        /* indices equal to it are skipped */
    TensorFromDefaults from_defaults;
} TensorEmbeddingBagArgs;
#define TENSOR_EMBEDDING_BAG_DEFAULTS                                                    \
    .max_norm = 0, .norm_type = 2, .scale_grad_by_freq = false, .mode = TENSOR_BAG_MEAN, \
    .include_last_offset = false, .padding_idx = TENSOR_NO_PADDING, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorEmbeddingBagArgs tensor_embedding_bag_defaults;
#define tensor_embedding_bag(...)                                                                  \
    TENSOR_CALL_(tensor_embedding_bag_args, TensorEmbeddingBagArgs, TENSOR_EMBEDDING_BAG_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_embedding_bag_args(TensorEmbeddingBagArgs args);

/* tensor_one_hot(index, num_classes) - i64 [..., num_classes]: 1 at the index, 0 elsewhere.
 * EINDEX: an index outside [0, num_classes). */
typedef struct TensorOneHotArgs {
    Tensor *input;
    int64_t num_classes; /* -1: the largest index plus one */
    TensorFromDefaults from_defaults;
} TensorOneHotArgs;
#define TENSOR_ONE_HOT_DEFAULTS .num_classes = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorOneHotArgs tensor_one_hot_defaults;
#define tensor_one_hot(...) \
    TENSOR_CALL_(tensor_one_hot_args, TensorOneHotArgs, TENSOR_ONE_HOT_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_one_hot_args(TensorOneHotArgs args);

#ifdef __cplusplus
}
#endif
#endif
