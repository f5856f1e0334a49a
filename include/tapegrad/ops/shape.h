/* ops/shape.h - views, joining, splitting, selecting by a mask.  Included by ops.h; indexing: ops/index.h.
 *
 *     Tensor *heads = tensor_transpose(tensor_reshape(x, SHAPE(-1, T, 4, 16)), 1, 2); // views where possible
 *     Tensor *last  = tensor_slice(x, 1, -1);                                         // x[:, -1:]
 *     Tensor *both  = tensor_cat(TENSORS(a, b), 1);                                   // side by side
 *     Tensor *safe  = tensor_where(mask, x, y);
 *     tensor_copy_(tensor_slice(pe, 1, 0, INT64_MAX, 2), values);                     // pe[:, 0::2] = values
 *
 * A view shares its storage with x: nothing is copied, in-place writes change both, and gradients flow
 * through it.  Functions that return views: view, reshape (where strides allow), flatten (likewise),
 * unflatten, squeeze, unsqueeze, transpose, mT, t, permute, movedim, expand, slice, narrow, select, diagonal,
 * split, chunk, unbind, unfold_dim, as_strided.  Others copy.
 *
 * Dims, and indices in a dim, may count from the end.  EINDEX: no such dim, or an index out of range.
 * ESHAPE: shapes do not fit, or a list has more than 16 items.  ENULL: a list without items.  All dtypes are
 * accepted; index tensors are i64, i32 or u8, masks bool or u8 (EDTYPE).
 *
 * Functions with several results store them in the caller's array and return their number; on failure they
 * return -1, and the array holds NULL. */
#ifndef TAPEGRAD_OPS_SHAPE_H
#define TAPEGRAD_OPS_SHAPE_H

#include <tapegrad/ops/reduce.h> /* TENSOR_ALL */
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- another shape --------------------------------------------------------------------------- */

/* tensor_reshape - the elements in row-major order with another shape; one size may be -1.  A view where x's
 *   strides allow, else a copy.  ESHAPE: another number of elements, two sizes of -1, or -1 with a size of 0.
 * tensor_view - the same, but never a copy: ESHAPE if strides do not allow a view.
 * tensor_ravel - tensor_reshape to one dim. */
TAPEGRAD_API Tensor *tensor_reshape(Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_view(Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_ravel(Tensor *x);
TAPEGRAD_API Tensor *tensor_reshape_as(Tensor *x, const Tensor *other);
TAPEGRAD_API Tensor *tensor_view_as(Tensor *x, const Tensor *other);

typedef struct TensorFlattenArgs {
    Tensor *input;
    int start_dim, end_dim; /* 0, -1 */
    TensorFromDefaults from_defaults;
} TensorFlattenArgs;
#define TENSOR_FLATTEN_DEFAULTS .end_dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorFlattenArgs tensor_flatten_defaults;

/* tensor_flatten(x), tensor_flatten(x, 1), tensor_flatten(x, .end_dim = 1) - joins dims start_dim to end_dim;
 * rank 0 becomes [1].  EINDEX: start_dim after end_dim. */
#define tensor_flatten(...) \
    TENSOR_CALL_(tensor_flatten_args, TensorFlattenArgs, TENSOR_FLATTEN_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_flatten_args(TensorFlattenArgs args);

/* tensor_unflatten - splits dim into several sizes, one of which may be -1: x [2, 12], tensor_unflatten(x, 1,
 * DIMS(3, 4)) -> [2, 3, 4]. */
TAPEGRAD_API Tensor *tensor_unflatten(Tensor *x, int dim, TensorShape sizes);

typedef struct TensorSqueezeArgs {
    Tensor *input;
    int dim;          /* one dim ... */
    TensorShape dims; /* ... or several; DIMS(): none */
    TensorFromDefaults from_defaults;
} TensorSqueezeArgs;
#define TENSOR_SQUEEZE_DEFAULTS .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSqueezeArgs tensor_squeeze_defaults;

/* tensor_squeeze(x), tensor_squeeze(x, 1), tensor_squeeze(x, .dims = DIMS(0, 2)) - removes the dims of size
 *   1, or those of them that are named.  EVALUE: dim and dims both given.
 * tensor_unsqueeze - inserts a dim of size 1, dim of the result. */
#define tensor_squeeze(...) \
    TENSOR_CALL_(tensor_squeeze_args, TensorSqueezeArgs, TENSOR_SQUEEZE_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_squeeze_args(TensorSqueezeArgs args);
TAPEGRAD_API Tensor *tensor_unsqueeze(Tensor *x, int dim);

/* tensor_atleast_1d, _2d, _3d - x, with dims of size 1 added up to that rank: a vector becomes [1, n], or [1,
 * n, 1]; a matrix [m, n, 1]. */
TAPEGRAD_API Tensor *tensor_atleast_1d(Tensor *x);
TAPEGRAD_API Tensor *tensor_atleast_2d(Tensor *x);
TAPEGRAD_API Tensor *tensor_atleast_3d(Tensor *x);

/* ---- another order of dims ------------------------------------------------------------------- */

TAPEGRAD_API Tensor *tensor_transpose(Tensor *x, int dim0, int dim1);
#define tensor_swapaxes(x, axis0, axis1) tensor_transpose(x, axis0, axis1) /* other names of it */
#define tensor_swapdims(x, dim0, dim1) tensor_transpose(x, dim0, dim1)
TAPEGRAD_API Tensor *tensor_t(Tensor *x);  /* transposes a matrix; returns lower ranks; ESHAPE: higher */
TAPEGRAD_API Tensor *tensor_mT(Tensor *x); /* swaps the last two dims; ESHAPE: rank < 2 */
TAPEGRAD_API Tensor *tensor_permute(Tensor *x, TensorShape dims); /* result dim i is x's dims[i]; each once */

/* tensor_movedim - moves one dim to another position; tensor_movedims - several.  The others keep their
 * order. */
TAPEGRAD_API Tensor *tensor_movedim(Tensor *x, int source, int destination);
TAPEGRAD_API Tensor *tensor_movedims(Tensor *x, TensorShape source, TensorShape destination);

/* ---- repeating ------------------------------------------------------------------------------- */

/* tensor_expand - a view that repeats dims of size 1 (stride 0), with new dims in front; -1 keeps a size.
 *   In-place writes to it are refused: its elements share memory.  The gradient sums over the repetitions.
 * tensor_broadcast_to - another name of it. */
TAPEGRAD_API Tensor *tensor_expand(Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_broadcast_to(Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_expand_as(Tensor *x, const Tensor *other);

/* tensor_repeat - repeats x repeats[d] times along each dim d; a count for each of x's dims at least
 *   (ESHAPE); 0 gives an empty result.
 * tensor_tile - the same; missing leading counts are 1.
 * EVALUE: a negative count. */
TAPEGRAD_API Tensor *tensor_repeat(Tensor *x, TensorShape repeats);
TAPEGRAD_API Tensor *tensor_tile(Tensor *x, TensorShape dims);

typedef struct TensorRepeatInterleaveArgs {
    Tensor *input;
    int64_t repeats; /* must be given */
    int dim;         /* one dim; default: x flattened */
    TensorFromDefaults from_defaults;
} TensorRepeatInterleaveArgs;
#define TENSOR_REPEAT_INTERLEAVE_DEFAULTS .repeats = -1, .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorRepeatInterleaveArgs tensor_repeat_interleave_defaults;

typedef struct TensorRepeatInterleaveTensorArgs {
    Tensor *input, *repeats; /* repeats: a vector of integers, one for each slice, or one for all */
    int dim;
    int64_t output_size; /* the sum of repeats, if it is known; -1: not given */
    TensorFromDefaults from_defaults;
} TensorRepeatInterleaveTensorArgs;
#define TENSOR_REPEAT_INTERLEAVE_TENSOR_DEFAULTS .dim = TENSOR_ALL, .output_size = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorRepeatInterleaveTensorArgs tensor_repeat_interleave_tensor_defaults;

/* tensor_repeat_interleave(x, 2, .dim = 0) - repeats each slice of dim repeats times in a row.
 * tensor_repeat_interleave_tensor(x, repeats, .dim = 0) - repeats slice k of dim repeats[k] times in a row.
 *     A device is waited for unless .output_size is given.
 * ESHAPE: repeats has another length.  EVALUE: a negative count; output_size is not the sum. */
#define tensor_repeat_interleave(...)                                       \
    TENSOR_CALL_(tensor_repeat_interleave_args, TensorRepeatInterleaveArgs, \
                 TENSOR_REPEAT_INTERLEAVE_DEFAULTS, .input = __VA_ARGS__)
#define tensor_repeat_interleave_tensor(...)                                             \
    TENSOR_CALL_(tensor_repeat_interleave_tensor_args, TensorRepeatInterleaveTensorArgs, \
                 TENSOR_REPEAT_INTERLEAVE_TENSOR_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_repeat_interleave_args(TensorRepeatInterleaveArgs args);
TAPEGRAD_API Tensor *tensor_repeat_interleave_tensor_args(TensorRepeatInterleaveTensorArgs args);

/* ---- parts ----------------------------------------------------------------------------------- */

typedef struct TensorSliceArgs {
    Tensor *input;
    int dim;                  /* 0 */
    int64_t start, end, step; /* 0, INT64_MAX, 1 */
    TensorFromDefaults from_defaults;
} TensorSliceArgs;
#define TENSOR_SLICE_DEFAULTS .end = INT64_MAX, .step = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSliceArgs tensor_slice_defaults;

/* tensor_slice(x, dim, start, end, step) - x[start:end:step] in dim; bounds are clamped as in Python, and may
 *   be left out: tensor_slice(x, 1, -3), tensor_slice(x, .end = 5).  EVALUE: step < 1.
 * tensor_narrow - length elements of dim from start on; EINDEX: out of range.
 * tensor_select - x[..., index, ...]: one index of dim, which is removed. */
#define tensor_slice(...) \
    TENSOR_CALL_(tensor_slice_args, TensorSliceArgs, TENSOR_SLICE_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_slice_args(TensorSliceArgs args);
TAPEGRAD_API Tensor *tensor_narrow(Tensor *x, int dim, int64_t start, int64_t length);
TAPEGRAD_API Tensor *tensor_select(Tensor *x, int dim, int64_t index);

/* tensor_split - views of `size` elements of dim each, the last one smaller if necessary.
 * tensor_split_sizes - views of the given sizes, at most 16, which must sum to dim's.
 * tensor_chunk - at most `chunks` views of equal size, the last one smaller if necessary.
 * tensor_unbind - a view for each index of dim, which is removed.
 * ESHAPE: more parts than max.  EVALUE: size < 1 (0 for an empty dim is one part), chunks < 1.  Parts without
 * a gradient count as zero. */
TAPEGRAD_API int tensor_split(Tensor *x, int64_t size, int dim, Tensor **parts, int max);
TAPEGRAD_API int tensor_split_sizes(Tensor *x, TensorShape sizes, int dim, Tensor **parts);
TAPEGRAD_API int tensor_chunk(Tensor *x, int chunks, int dim, Tensor **parts, int max);
TAPEGRAD_API int tensor_unbind(Tensor *x, int dim, Tensor **parts, int max);

/* tensor_tensor_split - torch.tensor_split (tensor_split is torch.split): `sections` views, of sizes that
 *   differ by at most 1, the longer ones first.
 * tensor_tensor_split_indices - the views x[:i0], x[i0:i1], ..., x[i_last:], with bounds as in Python.
 * tensor_hsplit, vsplit, dsplit - the same in dim 1 (0 for a vector), 0, 2.  ESHAPE: sections do not divide
 * the dim, or the rank is below 1, 2, 3. */
TAPEGRAD_API int tensor_tensor_split(Tensor *x, int sections, int dim, Tensor **parts, int max);
TAPEGRAD_API int tensor_tensor_split_indices(Tensor *x, TensorShape indices, int dim, Tensor **parts);
TAPEGRAD_API int tensor_hsplit(Tensor *x, int sections, Tensor **parts, int max);
TAPEGRAD_API int tensor_vsplit(Tensor *x, int sections, Tensor **parts, int max);
TAPEGRAD_API int tensor_dsplit(Tensor *x, int sections, Tensor **parts, int max);
TAPEGRAD_API int tensor_hsplit_indices(Tensor *x, TensorShape indices, Tensor **parts);
TAPEGRAD_API int tensor_vsplit_indices(Tensor *x, TensorShape indices, Tensor **parts);
TAPEGRAD_API int tensor_dsplit_indices(Tensor *x, TensorShape indices, Tensor **parts);

/* ---- copies of x with a part replaced by src, which has that part's shape (ESHAPE) ------------- */

typedef struct TensorSliceScatterArgs {
    Tensor *input, *src;
    int dim;                  /* 0 */
    int64_t start, end, step; /* 0, INT64_MAX, 1 */
    TensorFromDefaults from_defaults;
} TensorSliceScatterArgs;
#define TENSOR_SLICE_SCATTER_DEFAULTS .end = INT64_MAX, .step = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSliceScatterArgs tensor_slice_scatter_defaults;

typedef struct TensorDiagonalScatterArgs {
    Tensor *input, *src;
    int offset, dim1, dim2; /* 0, 0, 1 */
    TensorFromDefaults from_defaults;
} TensorDiagonalScatterArgs;
#define TENSOR_DIAGONAL_SCATTER_DEFAULTS .dim2 = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorDiagonalScatterArgs tensor_diagonal_scatter_defaults;

/* tensor_slice_scatter(x, src, dim, start, end, step) - the part is tensor_slice's.
 * tensor_select_scatter - the part is tensor_select's.
 * tensor_diagonal_scatter(x, src, offset, .dim1 = 0, .dim2 = 1) - the part is tensor_diagonal's. */
#define tensor_slice_scatter(...)                                                                  \
    TENSOR_CALL_(tensor_slice_scatter_args, TensorSliceScatterArgs, TENSOR_SLICE_SCATTER_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_diagonal_scatter(...)                                                                        \
    TENSOR_CALL_(tensor_diagonal_scatter_args, TensorDiagonalScatterArgs, TENSOR_DIAGONAL_SCATTER_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_slice_scatter_args(TensorSliceScatterArgs args);
TAPEGRAD_API Tensor *tensor_select_scatter(Tensor *x, Tensor *src, int dim, int64_t index);
TAPEGRAD_API Tensor *tensor_diagonal_scatter_args(TensorDiagonalScatterArgs args);

/* ---- diagonals and triangles ----------------------------------------------------------------- */

typedef struct TensorDiagonalArgs {
    Tensor *input;
    int offset, dim1, dim2; /* 0, 0, 1; offset: above the main diagonal positive, below negative */
    TensorFromDefaults from_defaults;
} TensorDiagonalArgs;
#define TENSOR_DIAGONAL_DEFAULTS .dim2 = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorDiagonalArgs tensor_diagonal_defaults;

typedef struct TensorDiagEmbedArgs {
    Tensor *input;
    int offset, dim1, dim2; /* 0, -2, -1, of the result */
    TensorFromDefaults from_defaults;
} TensorDiagEmbedArgs;
#define TENSOR_DIAG_EMBED_DEFAULTS .dim1 = -2, .dim2 = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorDiagEmbedArgs tensor_diag_embed_defaults;

typedef struct TensorDiagflatArgs {
    Tensor *input;
    int offset;
} TensorDiagflatArgs;
#define TENSOR_DIAGFLAT_DEFAULTS .offset = 0
TAPEGRAD_API extern const TensorDiagflatArgs tensor_diagflat_defaults;

typedef struct TensorDiagArgs {
    Tensor *input;
    int diagonal;
} TensorDiagArgs;
#define TENSOR_DIAG_DEFAULTS .diagonal = 0
TAPEGRAD_API extern const TensorDiagArgs tensor_diag_defaults;

/* tensor_diagonal(x, offset) - a view of the elements (k, k + offset) of dims dim1 and dim2, as the last dim.
 * tensor_diag_embed(x, offset) - square matrices with x's last dim on that diagonal, 0 elsewhere.
 * tensor_diagflat(x, offset) - the same with all of x's elements: one matrix.
 * tensor_diag(x, diagonal) - for a vector the matrix, for a matrix a copy of the diagonal. */
#define tensor_diagonal(...) \
    TENSOR_CALL_(tensor_diagonal_args, TensorDiagonalArgs, TENSOR_DIAGONAL_DEFAULTS, .input = __VA_ARGS__)
#define tensor_diag_embed(...)                                                            \
    TENSOR_CALL_(tensor_diag_embed_args, TensorDiagEmbedArgs, TENSOR_DIAG_EMBED_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_diagflat(...) \
    TENSOR_CALL_(tensor_diagflat_args, TensorDiagflatArgs, TENSOR_DIAGFLAT_DEFAULTS, .input = __VA_ARGS__)
#define tensor_diag(...) \
    TENSOR_CALL_(tensor_diag_args, TensorDiagArgs, TENSOR_DIAG_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_diagonal_args(TensorDiagonalArgs args);
TAPEGRAD_API Tensor *tensor_diag_embed_args(TensorDiagEmbedArgs args);
TAPEGRAD_API Tensor *tensor_diagflat_args(TensorDiagflatArgs args);
TAPEGRAD_API Tensor *tensor_diag_args(TensorDiagArgs args);

typedef struct TensorTriArgs {
    Tensor *input;
    int64_t diagonal;
} TensorTriArgs;
#define TENSOR_TRI_DEFAULTS .diagonal = 0
TAPEGRAD_API extern const TensorTriArgs tensor_tri_defaults;

/* tensor_tril(x, diagonal) - the elements of matrices with column <= row + diagonal, 0 elsewhere, even where
 *   x is NaN or infinite.
 * tensor_triu - those with column >= row + diagonal.
 * tensor_tril_, tensor_triu_ - in place. */
#define tensor_tril(...) \
    TENSOR_CALL_(tensor_tril_args, TensorTriArgs, TENSOR_TRI_DEFAULTS, .input = __VA_ARGS__)
#define tensor_triu(...) \
    TENSOR_CALL_(tensor_triu_args, TensorTriArgs, TENSOR_TRI_DEFAULTS, .input = __VA_ARGS__)
#define tensor_tril_(...) \
    TENSOR_CALL_(tensor_tril_args_, TensorTriArgs, TENSOR_TRI_DEFAULTS, .input = __VA_ARGS__)
#define tensor_triu_(...) \
    TENSOR_CALL_(tensor_triu_args_, TensorTriArgs, TENSOR_TRI_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_tril_args(TensorTriArgs args);
TAPEGRAD_API Tensor *tensor_triu_args(TensorTriArgs args);
TAPEGRAD_API Tensor *tensor_tril_args_(TensorTriArgs args);
TAPEGRAD_API Tensor *tensor_triu_args_(TensorTriArgs args);

typedef struct TensorFillDiagonalArgs {
    Tensor *input;
    double value;
    bool wrap; /* in a tall matrix the diagonal repeats, with a row left out between */
} TensorFillDiagonalArgs;
#define TENSOR_FILL_DIAGONAL_DEFAULTS .wrap = false
TAPEGRAD_API extern const TensorFillDiagonalArgs tensor_fill_diagonal_defaults;

/* tensor_fill_diagonal_(x, value) - sets the elements (k, k, ...) of x to value, in place.  ESHAPE: rank
 * below 2, or different sizes in rank 3 and more. */
#define tensor_fill_diagonal_(...)                                                                  \
    TENSOR_CALL_(tensor_fill_diagonal_args_, TensorFillDiagonalArgs, TENSOR_FILL_DIAGONAL_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_fill_diagonal_args_(TensorFillDiagonalArgs args);

/* ---- windows and strides --------------------------------------------------------------------- */

typedef struct TensorAsStridedArgs {
    Tensor *input;
    TensorShape size, stride;
    int64_t storage_offset;
} TensorAsStridedArgs;
#define TENSOR_AS_STRIDED_DEFAULTS .storage_offset = 0
TAPEGRAD_API extern const TensorAsStridedArgs tensor_as_strided_defaults;

/* tensor_unfold_dim - Tensor.unfold (torch.nn.functional.unfold is another function): windows of `size`
 *   elements of a dim, `step` apart, as a new last dim; a view, whose gradient adds where windows overlap.
 * tensor_as_strided(x, size, stride, .storage_offset = 0) - a view with any sizes and strides, which may
 *   overlap.  Unlike in PyTorch, they refer to x, which is contiguous (ESHAPE): offset 0 is its first
 *   element, and no element outside x is reached (EINDEX). */
#define tensor_as_strided(...)                                                            \
    TENSOR_CALL_(tensor_as_strided_args, TensorAsStridedArgs, TENSOR_AS_STRIDED_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_unfold_dim(Tensor *x, int dimension, int64_t size, int64_t step);
TAPEGRAD_API Tensor *tensor_as_strided_args(TensorAsStridedArgs args);

/* ---- copies ---------------------------------------------------------------------------------- */

/* tensor_clone - a dense copy, recorded.
 * tensor_contiguous - x if it is dense, else a clone. */
TAPEGRAD_API Tensor *tensor_clone(Tensor *x);
TAPEGRAD_API Tensor *tensor_contiguous(Tensor *x);

/* tensor_flip - reverses the order in each of dims.
 * tensor_flipud, tensor_fliplr - the same in dim 0, in dim 1.  ESHAPE: the rank is below 1, 2. */
TAPEGRAD_API Tensor *tensor_flip(Tensor *x, TensorShape dims);
TAPEGRAD_API Tensor *tensor_flipud(Tensor *x);
TAPEGRAD_API Tensor *tensor_fliplr(Tensor *x);

typedef struct TensorRollArgs {
    Tensor *input;
    TensorShape shifts, dims; /* without dims: x flattened, one shift */
} TensorRollArgs;
#define TENSOR_ROLL_DEFAULTS .dims = { 0, NULL }
TAPEGRAD_API extern const TensorRollArgs tensor_roll_defaults;

/* tensor_roll(x, DIMS(1), DIMS(0)) - y[(j + shifts[i]) mod size] = x[j] along each dims[i].
 * EVALUE: no shifts, or not as many as dims.  EINDEX: rank 0 with dims. */
#define tensor_roll(...) \
    TENSOR_CALL_(tensor_roll_args, TensorRollArgs, TENSOR_ROLL_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_roll_args(TensorRollArgs args);

typedef struct TensorRot90Args {
    Tensor *input;
    int k;            /* default 1 */
    TensorShape dims; /* default (0, 1) */
    TensorFromDefaults from_defaults;
} TensorRot90Args;
#define TENSOR_ROT90_DEFAULTS .k = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorRot90Args tensor_rot90_defaults;

/* tensor_rot90(x, k, dims) - rotates k times by 90 degrees in the plane of two dims, from the first towards
 * the second. */
#define tensor_rot90(...) \
    TENSOR_CALL_(tensor_rot90_args, TensorRot90Args, TENSOR_ROT90_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_rot90_args(TensorRot90Args args);

/* tensor_pixel_shuffle - [..., C r^2, H, W] to [..., C, H r, W r]; tensor_pixel_unshuffle - the inverse. */
TAPEGRAD_API Tensor *tensor_pixel_shuffle(Tensor *x, int upscale_factor);
TAPEGRAD_API Tensor *tensor_pixel_unshuffle(Tensor *x, int downscale_factor);

/* tensor_channel_shuffle - [N, C, ...] with the channels, seen as [groups, C / groups], transposed to [C /
 * groups, groups]. */
TAPEGRAD_API Tensor *tensor_channel_shuffle(Tensor *x, int64_t groups);

/* ---- joining --------------------------------------------------------------------------------- */

typedef struct TensorJoinArgs {
    TensorList tensors;
    int dim; /* 0 */
} TensorJoinArgs;
#define TENSOR_JOIN_DEFAULTS .dim = 0
TAPEGRAD_API extern const TensorJoinArgs tensor_join_defaults;

/* tensor_cat(TENSORS(a, b), dim) - concatenates along dim, where sizes may differ.  Dtypes are promoted.  A
 *   tensor of shape [0] fits anywhere, as in PyTorch.
 * tensor_stack - joins tensors of one shape along a new dim.
 * ESHAPE: other sizes differ.  EVALUE: no tensors. */
#define tensor_cat(...) \
    TENSOR_CALL_(tensor_cat_args, TensorJoinArgs, TENSOR_JOIN_DEFAULTS, .tensors = __VA_ARGS__)
#define tensor_stack(...) \
    TENSOR_CALL_(tensor_stack_args, TensorJoinArgs, TENSOR_JOIN_DEFAULTS, .tensors = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_cat_args(TensorJoinArgs args);
TAPEGRAD_API Tensor *tensor_stack_args(TensorJoinArgs args);

/* tensor_broadcast_tensors(TENSORS(a, b), results) - expands each to the shape that they broadcast to;
 * results receives as many views, at most 16. */
TAPEGRAD_API int tensor_broadcast_tensors(TensorList tensors, Tensor **results);

/* tensor_hstack - tensor_cat along dim 1 (vectors: 0).
 * tensor_vstack - along dim 0, vectors as rows.
 * tensor_dstack - along dim 2, after tensor_atleast_3d.
 * tensor_column_stack - along dim 1, vectors as columns. */
TAPEGRAD_API Tensor *tensor_hstack(TensorList tensors);
TAPEGRAD_API Tensor *tensor_vstack(TensorList tensors);
TAPEGRAD_API Tensor *tensor_dstack(TensorList tensors);
TAPEGRAD_API Tensor *tensor_column_stack(TensorList tensors);

typedef enum TensorIndexing {
    TENSOR_INDEXING_IJ, /* grid k holds list k along dim k */
    TENSOR_INDEXING_XY  /* the first two dims exchanged */
} TensorIndexing;

typedef struct TensorMeshgridArgs {
    TensorList tensors;
    Tensor **grids;
    TensorByName by_name;
    TensorIndexing indexing;
} TensorMeshgridArgs;
#define TENSOR_MESHGRID_DEFAULTS .indexing = TENSOR_INDEXING_IJ
TAPEGRAD_API extern const TensorMeshgridArgs tensor_meshgrid_defaults;

typedef struct TensorCombinationsArgs {
    Tensor *input;
    int64_t r; /* 2 */
    bool with_replacement;
    TensorFromDefaults from_defaults;
} TensorCombinationsArgs;
#define TENSOR_COMBINATIONS_DEFAULTS .r = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCombinationsArgs tensor_combinations_defaults;

/* tensor_meshgrid(TENSORS(a, b), grids, .indexing = TENSOR_INDEXING_XY) - for n vectors (or scalars) of one
 *   dtype, stores n views of shape [len a, len b, ...] in grids.
 * tensor_cartesian_prod - the cartesian product of n vectors, [len a len b ..., n], the last one varying
 *   fastest; one vector: itself.
 * tensor_combinations(x, r) - the combinations of r elements of a vector, in order: [count, r]. */
#define tensor_meshgrid(...) \
    TENSOR_CALL_(tensor_meshgrid_args, TensorMeshgridArgs, TENSOR_MESHGRID_DEFAULTS, .tensors = __VA_ARGS__)
#define tensor_combinations(...)                                                                 \
    TENSOR_CALL_(tensor_combinations_args, TensorCombinationsArgs, TENSOR_COMBINATIONS_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API int tensor_meshgrid_args(TensorMeshgridArgs args);
TAPEGRAD_API Tensor *tensor_cartesian_prod(TensorList tensors);
TAPEGRAD_API Tensor *tensor_combinations_args(TensorCombinationsArgs args);

/* ---- selecting by a mask --------------------------------------------------------------------- */

/* tensor_where - condition ? a : b; all broadcast, a and b are promoted.  Elements not selected get a
 *   gradient of exactly 0, even with a NaN or an infinity.
 * tensor_masked_fill - mask ? value : x; for an integer x value is truncated (EVALUE: beyond int64).
 * tensor_masked_fill_tensor - the same; value is a tensor of rank 0, and has a gradient. */
TAPEGRAD_API Tensor *tensor_where(Tensor *condition, Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_masked_fill(Tensor *x, Tensor *mask, double value);
TAPEGRAD_API Tensor *tensor_masked_fill_(Tensor *x, Tensor *mask, double value);
TAPEGRAD_API Tensor *tensor_masked_fill_tensor(Tensor *x, Tensor *mask, Tensor *value);
TAPEGRAD_API Tensor *tensor_masked_fill_tensor_(Tensor *x, Tensor *mask, Tensor *value);

#ifdef __cplusplus
}
#endif
#endif
