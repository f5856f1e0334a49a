/* ops/shape.h - views, joining, splitting, choosing.  Included by ops.h; indices are in ops/index.h.
 *
 *     Tensor *heads = tensor_transpose(tensor_reshape(x, SHAPE(-1, T, 4, 16)), 1, 2);   // views, where
 * strides allow Tensor *last  = tensor_slice(x, 1, -1);                        // x[:, -1:] Tensor *both  =
 * tensor_cat(TENSORS(a, b), 1);                  // beside each other Tensor *safe  = tensor_where(mask, x,
 * y); tensor_copy_(tensor_slice(pe, 1, 0, INT64_MAX, 2), values);    // pe[:, 0::2] = values
 *
 * A view shares its storage with x: nothing is copied, writes in place are seen by both, and gradients flow
 * through it. Views are made by view, reshape (where strides allow), flatten (likewise), unflatten, squeeze,
 * unsqueeze, transpose, mT, t, permute, movedim, expand, slice, narrow, select, diagonal, split, chunk,
 * unbind, unfold_dim, as_strided.  The others copy.
 *
 * Dims and indices of dims may count from the end.  EINDEX: no such dim, or an index out of range.  ESHAPE:
 * shapes that do not fit.  All dtypes are taken; index tensors are i64 (i32 and u8 too, EDTYPE otherwise),
 * masks bool (u8 too). */
#ifndef TAPEGRAD_OPS_SHAPE_H
#define TAPEGRAD_OPS_SHAPE_H

#include <tapegrad/ops/reduce.h> /* TENSOR_ALL */
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- another shape --------------------------------------------------------------------------- */

/* tensor_reshape - the elements in row-major order under another shape of as many; one size may be -1.  A
 * view where x's strides allow, else a copy.  ESHAPE: other counts, two sizes of -1, or -1 beside a size of
 * 0. tensor_view - the same, but never a copy: ESHAPE where strides do not allow a view. */
TAPEGRAD_API Tensor *tensor_reshape(Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_view(Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_ravel(Tensor *x); /* as one dim */
TAPEGRAD_API Tensor *tensor_reshape_as(Tensor *x, const Tensor *other);
TAPEGRAD_API Tensor *tensor_view_as(Tensor *x, const Tensor *other);

/* tensor_flatten(x), tensor_flatten(x, 1), tensor_flatten(x, .end_dim = 1) - dims start_dim..end_dim as one;
 * of rank 0: [1]. */
typedef struct TensorFlattenArgs {
    Tensor *input;
    int start_dim, end_dim; /* 0, -1 */
} TensorFlattenArgs;
#define tensor_flatten(...) tensor_flatten_args((TensorFlattenArgs){ .end_dim = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_flatten_args(TensorFlattenArgs args);

/* tensor_unflatten - dim as several sizes, one of which may be -1: [2, 12] -> tensor_unflatten(x, 1, DIMS(3,
 * 4)) -> [2, 3, 4]. */
TAPEGRAD_API Tensor *tensor_unflatten(Tensor *x, int dim, TensorShape sizes);

/* tensor_squeeze(x), tensor_squeeze(x, 1), tensor_squeeze(x, .dims = DIMS(0, 2)) - without the dims of size
 * 1, or without those of them that are named (of DIMS(): none).   tensor_unsqueeze - with a dim of size 1 at
 * that place of the result. */
typedef struct TensorSqueezeArgs {
    Tensor *input;
    int dim;
    TensorShape dims;
} TensorSqueezeArgs;
#define tensor_squeeze(...) \
    tensor_squeeze_args((TensorSqueezeArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_squeeze_args(TensorSqueezeArgs args);
TAPEGRAD_API Tensor *tensor_unsqueeze(Tensor *x, int dim);

/* tensor_atleast_1d, _2d, _3d - x itself, or with dims of size 1 to make so many: a vector becomes [1, n],
 * and [1, n, 1]; a matrix [m, n, 1]. */
TAPEGRAD_API Tensor *tensor_atleast_1d(Tensor *x);
TAPEGRAD_API Tensor *tensor_atleast_2d(Tensor *x);
TAPEGRAD_API Tensor *tensor_atleast_3d(Tensor *x);

/* ---- another order of dims ------------------------------------------------------------------- */

TAPEGRAD_API Tensor *tensor_transpose(Tensor *x, int dim0, int dim1);
#define tensor_swapaxes(x, axis0, axis1) tensor_transpose(x, axis0, axis1) /* other names of it */
#define tensor_swapdims(x, dim0, dim1) tensor_transpose(x, dim0, dim1)
TAPEGRAD_API Tensor *tensor_t(Tensor *x);  /* of a matrix; fewer dims stay; ESHAPE for more */
TAPEGRAD_API Tensor *tensor_mT(Tensor *x); /* the last two dims; ESHAPE for fewer */
TAPEGRAD_API Tensor *tensor_permute(Tensor *x, TensorShape dims); /* result dim i is x's dims[i]; each once */

/* tensor_movedim - one dim to another place; tensor_movedims - several.  The others keep their order. */
TAPEGRAD_API Tensor *tensor_movedim(Tensor *x, int source, int destination);
TAPEGRAD_API Tensor *tensor_movedims(Tensor *x, TensorShape source, TensorShape destination);

/* ---- repeating ------------------------------------------------------------------------------- */

/* tensor_expand - a view that repeats dims of size 1 (stride 0), with new dims in front; -1 leaves a size as
 * it is. Writing to it in place is refused: its elements share memory.  The gradient is the sum over what was
 * repeated. */
TAPEGRAD_API Tensor *tensor_expand(Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_broadcast_to(Tensor *x, TensorShape shape); /* another name of it */
TAPEGRAD_API Tensor *tensor_expand_as(Tensor *x, const Tensor *other);

/* tensor_repeat - x laid beside itself repeats[d] times along each dim (at least x's rank of them; 0 gives an
 * empty result). tensor_tile - the same where missing leading counts are 1.  EVALUE: a negative count. */
TAPEGRAD_API Tensor *tensor_repeat(Tensor *x, TensorShape repeats);
TAPEGRAD_API Tensor *tensor_tile(Tensor *x, TensorShape dims);

/* tensor_repeat_interleave(x, 2, .dim = 0) - each slice of dim repeats times in a row; without dim, of x
 * flattened. */
typedef struct TensorRepeatInterleaveArgs {
    Tensor *input;
    int64_t repeats;
    int dim;
} TensorRepeatInterleaveArgs;
#define tensor_repeat_interleave(...) \
    tensor_repeat_interleave_args(    \
        (TensorRepeatInterleaveArgs){ .repeats = -1, .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_repeat_interleave_args(TensorRepeatInterleaveArgs args);

/* tensor_repeat_interleave_tensor(x, repeats, .dim = 0) - slice k of dim repeats[k] times in a row; repeats
 * is a list of as many integers, or of one.  ESHAPE: of another length.  EVALUE: a negative count. */
typedef struct TensorRepeatInterleaveTensorArgs {
    Tensor *input, *repeats;
    int dim;
} TensorRepeatInterleaveTensorArgs;
#define tensor_repeat_interleave_tensor(...) \
    tensor_repeat_interleave_tensor_args(    \
        (TensorRepeatInterleaveTensorArgs){ .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_repeat_interleave_tensor_args(TensorRepeatInterleaveTensorArgs args);

/* ---- parts ----------------------------------------------------------------------------------- */

/* tensor_slice(x, dim, start, end, step) - x[start:end:step] in dim; bounds are clamped as in Python, and may
 * be left out: tensor_slice(x, 1, -3), tensor_slice(x, .end = 5).  EVALUE: step < 1. */
typedef struct TensorSliceArgs {
    Tensor *input;
    int dim;                  /* 0 */
    int64_t start, end, step; /* 0, INT64_MAX, 1 */
} TensorSliceArgs;
#define tensor_slice(...) \
    tensor_slice_args((TensorSliceArgs){ .end = INT64_MAX, .step = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_slice_args(TensorSliceArgs args);

/* tensor_narrow - length elements of dim from start on; EINDEX unless they are there.
 * tensor_select - one index of dim, which vanishes: x[..., index, ...]. */
TAPEGRAD_API Tensor *tensor_narrow(Tensor *x, int dim, int64_t start, int64_t length);
TAPEGRAD_API Tensor *tensor_select(Tensor *x, int dim, int64_t index);

/* tensor_split - views of size elements of dim each, the last one smaller; tensor_split_sizes - of the sizes
 * given, at most 16, which must sum to dim's; tensor_chunk - at most chunks views of equal size, the last one
 * smaller; tensor_unbind - one view for each index of dim, which vanishes. They fill parts and return how
 * many there are, or -1.  ESHAPE: more than max.  EVALUE: size < 1 (0 for an empty dim is one part), chunks
 * < 1.  Parts whose gradients do not arrive count as zero. */
TAPEGRAD_API int tensor_split(Tensor *x, int64_t size, int dim, Tensor **parts, int max);
TAPEGRAD_API int tensor_split_sizes(Tensor *x, TensorShape sizes, int dim, Tensor **parts);
TAPEGRAD_API int tensor_chunk(Tensor *x, int chunks, int dim, Tensor **parts, int max);
TAPEGRAD_API int tensor_unbind(Tensor *x, int dim, Tensor **parts, int max);

/* tensor_tensor_split - torch.tensor_split (tensor_split is torch.split): so many views, of sizes that differ
 * by 1 at most, the longer ones first; _indices - those between the indices, x[:i0], x[i0:i1], ...,
 * x[i_last:], bounds as in Python: one more than there are indices. tensor_hsplit, vsplit, dsplit - the same
 * in dim 1 (0 of a vector), 0, 2; sections must divide the dimension (ESHAPE), as must the rank be at least
 * 1, 2, 3. */
TAPEGRAD_API int tensor_tensor_split(Tensor *x, int sections, int dim, Tensor **parts, int max);
TAPEGRAD_API int tensor_tensor_split_indices(Tensor *x, TensorShape indices, int dim, Tensor **parts);
TAPEGRAD_API int tensor_hsplit(Tensor *x, int sections, Tensor **parts, int max);
TAPEGRAD_API int tensor_vsplit(Tensor *x, int sections, Tensor **parts, int max);
TAPEGRAD_API int tensor_dsplit(Tensor *x, int sections, Tensor **parts, int max);
TAPEGRAD_API int tensor_hsplit_indices(Tensor *x, TensorShape indices, Tensor **parts);
TAPEGRAD_API int tensor_vsplit_indices(Tensor *x, TensorShape indices, Tensor **parts);
TAPEGRAD_API int tensor_dsplit_indices(Tensor *x, TensorShape indices, Tensor **parts);

/* tensor_diagonal(x, offset, .dim1 = 0, .dim2 = 1) - a view of the elements (k, k + offset) of two dims, as
 * the last dim. tensor_diag_embed(x, offset, .dim1 = -2, .dim2 = -1) - square matrices with x's last dim on
 * that diagonal, 0 elsewhere. tensor_diagflat(x, offset) - the same of all of x's elements, one matrix.
 * tensor_diag(x, diagonal) - of a vector the matrix, of a matrix a copy of the diagonal. */
typedef struct TensorDiagonalArgs {
    Tensor *input;
    int offset, dim1, dim2;
} TensorDiagonalArgs;
typedef struct TensorDiagArgs {
    Tensor *input;
    int diagonal; /* 0; above it positive, below negative */
} TensorDiagArgs;
#define tensor_diagonal(...) tensor_diagonal_args((TensorDiagonalArgs){ .dim2 = 1, .input = __VA_ARGS__ })
#define tensor_diag_embed(...) \
    tensor_diag_embed_args((TensorDiagonalArgs){ .dim1 = -2, .dim2 = -1, .input = __VA_ARGS__ })
#define tensor_diagflat(...) \
    tensor_diagflat_args((TensorDiagonalArgs){ .dim1 = -2, .dim2 = -1, .input = __VA_ARGS__ })
#define tensor_diag(...) tensor_diag_args((TensorDiagArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_diagonal_args(TensorDiagonalArgs args);
TAPEGRAD_API Tensor *tensor_diag_embed_args(TensorDiagonalArgs args);
TAPEGRAD_API Tensor *tensor_diagflat_args(TensorDiagonalArgs args);
TAPEGRAD_API Tensor *tensor_diag_args(TensorDiagArgs args);

/* tensor_tril(x, diagonal) - the elements with column <= row + diagonal of matrices, 0 elsewhere, even where
 * x is NaN or infinite; tensor_triu - those with column >= row + diagonal. */
#define tensor_tril(...) tensor_tril_args((TensorDiagArgs){ .input = __VA_ARGS__ })
#define tensor_triu(...) tensor_triu_args((TensorDiagArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_tril_args(TensorDiagArgs args);
TAPEGRAD_API Tensor *tensor_triu_args(TensorDiagArgs args);
TAPEGRAD_API Tensor *tensor_tril_(Tensor *x, int64_t diagonal);
TAPEGRAD_API Tensor *tensor_triu_(Tensor *x, int64_t diagonal);

/* tensor_fill_diagonal_ - value in the elements (k, k, ...) of x, in place; of rank 3 and more all sizes are
 * the same (ESHAPE). wrap: in a tall matrix the diagonal begins anew after a row between, as often as there
 * is room. */
TAPEGRAD_API Tensor *tensor_fill_diagonal_(Tensor *x, double value, bool wrap);

/* tensor_unfold_dim - Tensor.unfold (torch.nn.functional.unfold is another function): windows of size
 * elements of a dim, step apart, as a new last dim; a view, whose gradient adds where windows overlap.
 * tensor_as_strided(x, size, stride, .storage_offset = 0) - a view of sizes and strides of one's own, which
 * may overlap.  Unlike PyTorch's, they count x's own elements: x is contiguous (ESHAPE), offset 0 is its
 * first, and nothing beyond it is reached (EINDEX). */
typedef struct TensorAsStridedArgs {
    Tensor *input;
    TensorShape size, stride;
    int64_t storage_offset;
} TensorAsStridedArgs;
#define tensor_as_strided(...) tensor_as_strided_args((TensorAsStridedArgs){ .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_unfold_dim(Tensor *x, int dimension, int64_t size, int64_t step);
TAPEGRAD_API Tensor *tensor_as_strided_args(TensorAsStridedArgs args);

/* ---- copies ---------------------------------------------------------------------------------- */

/* tensor_clone - a dense copy, on the graph.   tensor_contiguous - x itself when it is dense, else such a
 * copy. */
TAPEGRAD_API Tensor *tensor_clone(Tensor *x);
TAPEGRAD_API Tensor *tensor_contiguous(Tensor *x);

/* tensor_flip - the order turned round in each of dims.
 * tensor_roll - moved on by shifts[i] along dims[i], what falls off comes in again; dims DIMS(): of x
 * flattened. tensor_rot90 - k quarter turns in the plane of two dims, from the first towards the second. */
TAPEGRAD_API Tensor *tensor_flip(Tensor *x, TensorShape dims);
TAPEGRAD_API Tensor *tensor_roll(Tensor *x, TensorShape shifts, TensorShape dims);
TAPEGRAD_API Tensor *tensor_rot90(Tensor *x, int k, TensorShape dims);

/* tensor_pixel_shuffle - [..., C r^2, H, W] to [..., C, H r, W r]; tensor_pixel_unshuffle - back. */
TAPEGRAD_API Tensor *tensor_pixel_shuffle(Tensor *x, int upscale_factor);
TAPEGRAD_API Tensor *tensor_pixel_unshuffle(Tensor *x, int downscale_factor);

/* tensor_channel_shuffle - the channels of [N, C, ...], which are groups one behind the other, with one of
 * each group in turn. */
TAPEGRAD_API Tensor *tensor_channel_shuffle(Tensor *x, int64_t groups);

/* ---- joining --------------------------------------------------------------------------------- */

/* The tensors that a function takes as a list: TENSORS(a, b), or TENSOR_LIST(array, n).  A bare array does
 * not compile anywhere: it does not say how many there are. */
typedef struct TensorList {
    int count; /* first, so that an array in its place is an error */
    Tensor *const *item;
} TensorList;
#define TENSORS(...) \
    ((TensorList){ (int)(sizeof(Tensor *[]){ __VA_ARGS__ } / sizeof(Tensor *)), (Tensor *[]){ __VA_ARGS__ } })
#define TENSOR_LIST(array, n) ((TensorList){ (n), (array) })

/* tensor_cat(TENSORS(a, b), dim), tensor_cat(TENSOR_LIST(array, n), dim) - one behind the other along dim
 * (0), where their sizes may differ.  Dtypes are promoted.  A tensor of shape [0] fits anywhere, as in
 * PyTorch. tensor_stack - tensors of one shape side by side in a new dim. */
typedef struct TensorJoinArgs {
    TensorList tensors;
    int dim;
} TensorJoinArgs;
#define tensor_cat(...) tensor_cat_args((TensorJoinArgs){ .tensors = __VA_ARGS__ })
#define tensor_stack(...) tensor_stack_args((TensorJoinArgs){ .tensors = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cat_args(TensorJoinArgs args);
TAPEGRAD_API Tensor *tensor_stack_args(TensorJoinArgs args);

/* tensor_broadcast_tensors(TENSORS(a, b), results) - each expanded to the shape that they broadcast to;
 * results has room for as many, at most 16.  Returns how many, or -1. */
TAPEGRAD_API int tensor_broadcast_tensors(TensorList tensors, Tensor **results);

/* tensor_hstack - along dim 1 (vectors: 0);   tensor_vstack - along dim 0, vectors as rows;   tensor_dstack -
 * along dim 2, of tensor_atleast_3d;   tensor_column_stack - along dim 1, vectors as columns. */
TAPEGRAD_API Tensor *tensor_hstack(TensorList tensors);
TAPEGRAD_API Tensor *tensor_vstack(TensorList tensors);
TAPEGRAD_API Tensor *tensor_dstack(TensorList tensors);
TAPEGRAD_API Tensor *tensor_column_stack(TensorList tensors);

/* tensor_meshgrid(TENSORS(a, b), grids, .indexing = "xy") - for n lists (or scalars) of one dtype n views of
 * shape [len a, len b, ...], grid k with list k along dim k; "xy" exchanges the first two dims.  grids has
 * room for n; returns n, or -1. tensor_cartesian_prod - the rows of all ways to take one of each list, the
 * last one fastest: [len a len b ..., n]; one list: itself. tensor_combinations(x, r, .with_replacement =
 * true) - the ways to choose r elements of a list in order: [count, r]. */
typedef struct TensorMeshgridArgs {
    TensorList tensors;
    Tensor **grids;
    const char *indexing; /* "ij" */
} TensorMeshgridArgs;
typedef struct TensorCombinationsArgs {
    Tensor *input;
    int64_t r; /* 2 */
    bool with_replacement;
} TensorCombinationsArgs;
#define tensor_meshgrid(...) \
    tensor_meshgrid_args((TensorMeshgridArgs){ .indexing = "ij", .tensors = __VA_ARGS__ })
#define tensor_combinations(...) \
    tensor_combinations_args((TensorCombinationsArgs){ .r = 2, .input = __VA_ARGS__ })
TAPEGRAD_API int tensor_meshgrid_args(TensorMeshgridArgs args);
TAPEGRAD_API Tensor *tensor_cartesian_prod(TensorList tensors);
TAPEGRAD_API Tensor *tensor_combinations_args(TensorCombinationsArgs args);

/* ---- choosing by a mask ---------------------------------------------------------------------- */

/* tensor_where - condition ? a : b, all broadcast, a and b promoted.  What is not chosen gets the gradient 0
 * by selection: a NaN or an infinity there does not leak through where. tensor_masked_fill - mask ? value :
 * x; an integer x takes value's integer part (EVALUE beyond int64); value is the tensor of rank 0 in
 * ..._tensor, and has a gradient. tensor_masked_select - the elements of x under the mask (they broadcast),
 * in row-major order: a vector. tensor_nonzero - i64 [count, rank]: the indices of the elements that are not
 * 0. */
TAPEGRAD_API Tensor *tensor_where(Tensor *condition, Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_masked_fill(Tensor *x, Tensor *mask, double value);
TAPEGRAD_API Tensor *tensor_masked_fill_(Tensor *x, Tensor *mask, double value);
TAPEGRAD_API Tensor *tensor_masked_fill_tensor(Tensor *x, Tensor *mask, Tensor *value);
TAPEGRAD_API Tensor *tensor_masked_fill_tensor_(Tensor *x, Tensor *mask, Tensor *value);
TAPEGRAD_API Tensor *tensor_masked_select(Tensor *x, Tensor *mask);
TAPEGRAD_API Tensor *tensor_nonzero(Tensor *x);

#ifdef __cplusplus
}
#endif
#endif
