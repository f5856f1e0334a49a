/* view_diagonal.c - diagonals of two dimensions, and matrices made of them.
 *
 *   diagonal           y[..., k] = x at (k, k + offset) of dim1, dim2;
 *                      below the main diagonal (k - offset, k)
 *   diagonal_backward  zeros with that diagonal set; each is the other's gradient
 *   diag_embed         the square case of it
 *   diag               vector to matrix, or matrix to a copy of its diagonal */
#include "shape_op.h"

const TensorDiagonalArgs tensor_diagonal_defaults = { TENSOR_DIAGONAL_DEFAULTS };
const TensorDiagEmbedArgs tensor_diag_embed_defaults = { TENSOR_DIAG_EMBED_DEFAULTS };
const TensorDiagArgs tensor_diag_defaults = { TENSOR_DIAG_DEFAULTS };
const TensorDiagflatArgs tensor_diagflat_defaults = { TENSOR_DIAGFLAT_DEFAULTS };

typedef struct PlaceParams { /* diagonal_backward */
    int offset, dim1, dim2;
    TensorShape shape; /* of the tensor that holds the diagonal */
} PlaceParams;

static int64_t length_of(int64_t rows, int64_t columns, int64_t offset)
{
    int64_t m = rows + (offset < 0 ? offset : 0), n = columns - (offset > 0 ? offset : 0);
    return m < 0 || n < 0 ? 0 : m < n ? m : n;
}

static int check_dims(OpCall *c, int *first, int *second, TensorShape shape)
{
    if (shape.ndim < 2)
        return op_fail(c, TENSOR_EINDEX, "%s: want two dimensions or more", shape_text(shape));
    int dim1 = call_dim(c, *first, shape), dim2 = dim1 < 0 ? -1 : call_dim(c, *second, shape);
    if (dim2 < 0) return -1;
    if (dim1 == dim2) return op_fail(c, TENSOR_EINDEX, "dimension %d is named twice", dim1);
    *first = dim1, *second = dim2;
    return 0;
}

static Tensor *diagonal_view(const Tensor *x, int offset, int dim1, int dim2)
{
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < x->ndim; d++)
        if (d != dim1 && d != dim2) shape[n] = x->shape[d], stride[n++] = x->stride[d];
    shape[n] = length_of(x->shape[dim1], x->shape[dim2], offset);
    stride[n] = x->stride[dim1] + x->stride[dim2];
    const int64_t from = offset < 0 ? -(int64_t)offset * x->stride[dim1] : offset * x->stride[dim2];
    return own(new_view(x, n + 1, shape, stride, shape[n] && x->numel ? from : 0));
}

/* ---- diagonal -------------------------------------------------------------------------------- */

static int diagonal_shape(OpCall *c)
{
    TensorDiagonalArgs *p = op_params_mut(c);
    return check_dims(c, &p->dim1, &p->dim2, shape_of(op_input(c, 0)));
}

static int diagonal_forward(OpCall *c)
{
    const TensorDiagonalArgs *p = op_params(c);
    return op_set_result(c, 0, diagonal_view(op_input(c, 0), p->offset, p->dim1, p->dim2));
}

static const TensorOp op_diagonal_backward;

static int diagonal_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorDiagonalArgs *p = op_params(c);
    const PlaceParams place = { p->offset, p->dim1, p->dim2, op_input_shape(c, 0) };
    dx[0] = tensor_apply(&op_diagonal_backward, &dy, 1, &place);
    return dx[0] ? 0 : -1;
}

static const OpField diagonal_fields[] = { OP_OPTION(TensorDiagonalArgs, offset, dim1, dim2), { 0 } };
static const TensorOp op_diagonal = { .name = "diagonal",
                                      .autocast = AUTOCAST_AS_IS,
                                      .summary = "a diagonal of two dimensions, as the last one",
                                      .gradient = "dx = zeros with g on the diagonal",
                                      .arity = 1,
                                      PARAMS(TensorDiagonalArgs, tensor_diagonal_defaults, diagonal_fields),
                                      .shape = diagonal_shape,
                                      .forward = diagonal_forward,
                                      .backward = diagonal_grad,
                                      .flags = OP_VIEW | OP_ANY_DEVICE,
                                      .samples = "3x4; 3x4 {offset=2}; 4x3 {offset=-2}; 2x3x4 {offset=1 "
                                                 "dim1=-1 dim2=0}; 3x3 {offset=5}; 0x3; 2x3 {offset=-5}",
                                      .errors = "3 ! EINDEX; 3x3 {dim1=1} ! EINDEX; 3x3 {dim2=2} ! EINDEX" };
REGISTER_OPS(&op_diagonal);

Tensor *tensor_diagonal_args(TensorDiagonalArgs a) { return APPLY(&op_diagonal, &a, a.input); }

/* ---- diagonal_backward ----------------------------------------------------------------------- */

static int place_shape(OpCall *c)
{
    PlaceParams *p = op_params_mut(c);
    Tensor *g = op_input(c, 0);
    const TensorShape shape = p->shape;
    if (check_dims(c, &p->dim1, &p->dim2, shape)) return -1;
    int64_t want[TENSOR_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < shape.ndim; d++)
        if (d != p->dim1 && d != p->dim2) want[n++] = shape.dim[d];
    want[n++] = length_of(shape.dim[p->dim1], shape.dim[p->dim2], p->offset);
    if (!shape_equal(shape_of(g), (TensorShape){ n, want }))
        return op_fail(c, TENSOR_ESHAPE, "%s for diagonal %d of %s", S(g), p->offset, shape_text(shape));
    return op_set_output(c, 0, shape, g->dtype);
}

static int place_forward(OpCall *c)
{
    const PlaceParams *p = op_params(c);
    Tensor *y = op_output(c, 0);
    if (raw_fill(y, 0)) return -1;
    Tensor *part = diagonal_view(y, p->offset, p->dim1, p->dim2);
    return part ? raw_copy(part, op_input(c, 0)) : -1;
}

static int place_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    const PlaceParams *p = op_params(c);
    dx[0] = tensor_diagonal(dy, p->offset, p->dim1, p->dim2);
    return dx[0] ? 0 : -1;
}

static const PlaceParams place_defaults = { .dim2 = 1 };
static const OpField place_fields[] = { OP_OPTION(PlaceParams, offset, dim1, dim2),
                                        OP_REQUIRED(PlaceParams, shape),
                                        { 0 } };
static const TensorOp op_diagonal_backward = { .name = "diagonal_backward",
                                               .autocast = AUTOCAST_AS_IS,
                                               .summary = "zeros of a shape, whose diagonal is x",
                                               .gradient = "dx = diagonal(g)",
                                               .arity = 1,
                                               PARAMS(PlaceParams, place_defaults, place_fields),
                                               .shape = place_shape,
                                               .forward = place_forward,
                                               .backward = place_grad,
                                               .flags = OP_ANY_DEVICE,
                                               .torch = "-",
                                               .samples =
                                                   "3 {shape=[3 4]}; 2 {offset=2 shape=[3 4]}; 3x1 {offset=1 "
                                                   "dim1=-1 dim2=0 shape=[2 3 4]}; 0 {shape=[0 3]}",
                                               .errors = "3 {shape=[2 2]} ! ESHAPE; 3 {shape=[3]} ! EINDEX" };
REGISTER_OPS(&op_diagonal_backward);

/* ---- diag_embed, diag ------------------------------------------------------------------------ */

static int embed_compose(OpCall *c)
{
    const TensorDiagEmbedArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    const int ndim = x->ndim + 1;
    if (x->ndim == 0) return op_fail(c, TENSOR_ESHAPE, "[]: want a vector or more");
    if (x->ndim == TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "%s has %d dimensions already", S(x), TENSOR_MAX_DIMS);
    int dim1 = wrap_dim(p->dim1, ndim), dim2 = wrap_dim(p->dim2, ndim);
    if (dim1 < 0 || dim2 < 0)
        return op_fail(c, TENSOR_EINDEX, "dimensions %d and %d of %s with one more", p->dim1, p->dim2, S(x));
    if (dim1 == dim2) return op_fail(c, TENSOR_EINDEX, "dimension %d is named twice", dim1);
    int64_t shape[TENSOR_MAX_DIMS];
    const int64_t side = x->shape[x->ndim - 1] + (p->offset < 0 ? -(int64_t)p->offset : p->offset);
    for (int d = 0, n = 0; d < ndim; d++) shape[d] = d == dim1 || d == dim2 ? side : x->shape[n++];
    PlaceParams place = { p->offset, dim1, dim2, { ndim, shape } };
    if (dim1 > dim2) /* as PyTorch: the offset is told for the dimensions in order */
        place.dim1 = dim2, place.dim2 = dim1, place.offset = -p->offset;
    return op_set_result(c, 0, tensor_apply(&op_diagonal_backward, &x, 1, &place));
}

static const OpField embed_fields[] = { OP_OPTION(TensorDiagEmbedArgs, offset, dim1, dim2), { 0 } };
static const TensorOp op_diag_embed = {
    .name = "diag_embed",
    .autocast = AUTOCAST_AS_IS,
    .summary = "square matrices with x's last dimension on a diagonal",
    .gradient = "dx = diagonal(g)",
    .arity = 1,
    PARAMS(TensorDiagEmbedArgs, tensor_diag_embed_defaults, embed_fields),
    .compose = embed_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "3; 2x3; 2x3 {offset=1}; 2x3 {offset=-1 dim1=0 dim2=2}; 3 {offset=1 dim1=1 dim2=0}; 0; 2x0",
    .errors = "! ESHAPE; 3 {dim1=1 dim2=1} ! EINDEX; 3 {dim1=3} ! EINDEX"
};
REGISTER_OPS(&op_diag_embed);

Tensor *tensor_diag_embed_args(TensorDiagEmbedArgs a) { return APPLY(&op_diag_embed, &a, a.input); }

Tensor *tensor_diagflat_args(TensorDiagflatArgs a)
{
    if (check_null(a.input, "tensor_diagflat", 1)) return NULL;
    TensorScope scope = tensor_scope_open();
    Tensor *line = scope_failed(scope) ? NULL : tensor_ravel(a.input);
    return tensor_scope_return(scope, line ? tensor_diag_embed(line, a.offset) : NULL);
}

static int diag_compose(OpCall *c)
{
    const TensorDiagArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (x->ndim != 1 && x->ndim != 2) return op_fail(c, TENSOR_ESHAPE, "%s: want a vector or a matrix", S(x));
    if (x->ndim == 1) return op_set_result(c, 0, tensor_diag_embed(x, p->diagonal));
    return op_set_result(c, 0, tensor_clone(tensor_diagonal(x, p->diagonal)));
}

static const OpField diag_fields[] = { OP_OPTION(TensorDiagArgs, diagonal), { 0 } };
static const TensorOp op_diag = { .name = "diag",
                                  .autocast = AUTOCAST_AS_IS,
                                  .summary =
                                      "a vector as a matrix's diagonal, or a matrix's diagonal as a vector",
                                  .gradient = "dx = diag(g)",
                                  .arity = 1,
                                  PARAMS(TensorDiagArgs, tensor_diag_defaults, diag_fields),
                                  .compose = diag_compose,
                                  .flags = OP_ANY_DEVICE,
                                  .samples = "3; 3 {diagonal=1}; 3x4; 3x4 {diagonal=-1}; 0; 2x0",
                                  .errors = "! ESHAPE; 2x3x4 ! ESHAPE" };
REGISTER_OPS(&op_diag);

Tensor *tensor_diag_args(TensorDiagArgs a) { return APPLY(&op_diag, &a, a.input); }
