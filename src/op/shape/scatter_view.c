/* scatter_view.c - a copy of x with a view's part replaced: slice_scatter, select_scatter, diagonal_scatter.
 *
 *   y = x with view(y) = src               dx = dy, 0 in that part; dsrc = view(dy) */
#include "shape_op.h"

const TensorSliceScatterArgs tensor_slice_scatter_defaults = { TENSOR_SLICE_SCATTER_DEFAULTS };
const TensorDiagonalScatterArgs tensor_diagonal_scatter_defaults = { TENSOR_DIAGONAL_SCATTER_DEFAULTS };

/* y is a copy of x, part a view of it. */
static int finish(OpCall *c, Tensor *y, Tensor *part)
{
    Tensor *x = op_input(c, 0), *src = op_input(c, 1);
    if (!y || !part) return -1;
    if (!shape_equal(shape_of(part), shape_of(src)))
        return op_fail(c, TENSOR_ESHAPE, "%s into a part %s of %s: want that part's shape", S(src), S(part),
                       S(x));
    return op_set_result(c, 0, tensor_copy_(part, src) ? y : NULL);
}

/* ---- slice_scatter --------------------------------------------------------------------------- */

static int slice_compose(OpCall *c)
{
    const TensorSliceScatterArgs *p = op_params(c);
    Tensor *y = tensor_clone(op_input(c, 0));
    return finish(c, y, tensor_slice(y, p->dim, p->start, p->end, p->step));
}

static const OpField slice_fields[] = { OP_OPTION(TensorSliceScatterArgs, dim, start, end, step), { 0 } };
static const TensorOp op_slice_scatter = {
    .name = "slice_scatter",
    .autocast = AUTOCAST_AS_IS,
    .summary = "a copy of x with x[..., start:end:step, ...] replaced by src",
    .arity = 2,
    .gradient = "dx = dy, 0 in the slice; dsrc = the slice of dy",
    PARAMS(TensorSliceScatterArgs, tensor_slice_scatter_defaults, slice_fields),
    .compose = slice_compose,
    .flags = OP_ANY_DEVICE,
    .samples =
        "5x3,3x3 {start=1 end=4}; 2x7,2x3 {dim=1 step=3}; 6,3 {start=-3}; 4,0 {start=3 end=1}; 0x3,0x3",
    .errors = "5x3,3 {start=1 end=4} ! ESHAPE; 5,2 {start=1} ! ESHAPE; 3,3 {step=0} ! EVALUE; 3,3 {dim=1} ! "
              "EINDEX; , ! EINDEX"
};
REGISTER_OPS(&op_slice_scatter);

Tensor *tensor_slice_scatter_args(TensorSliceScatterArgs args)
{
    return APPLY(&op_slice_scatter, &args, args.input, args.src);
}

/* ---- select_scatter -------------------------------------------------------------------------- */

typedef struct SelectParams {
    int dim;
    int64_t index;
} SelectParams;

static int select_compose(OpCall *c)
{
    const SelectParams *p = op_params(c);
    Tensor *y = tensor_clone(op_input(c, 0));
    return finish(c, y, tensor_select(y, p->dim, p->index));
}

static const OpField select_fields[] = { OP_REQUIRED(SelectParams, dim, index), { 0 } };
static const TensorOp op_select_scatter = {
    .name = "select_scatter",
    .autocast = AUTOCAST_AS_IS,
    .summary = "a copy of x with x[..., index, ...] replaced by src",
    .arity = 2,
    .gradient = "dx = dy, 0 at the index; dsrc = dy at the index",
    PARAMS_GIVEN(SelectParams, select_fields),
    .compose = select_compose,
    .flags = OP_ANY_DEVICE,
    .samples =
        "5x3,3 {dim=0 index=1}; 2x3x4,2x3 {dim=-1 index=-1}; 3, {dim=0 index=2}; 2x0,0 {dim=0 index=1}",
    .errors = "3x4,3 {dim=0 index=1} ! ESHAPE; 3, {dim=0 index=3} ! EINDEX; , {dim=0 index=0} ! EINDEX"
};
REGISTER_OPS(&op_select_scatter);

Tensor *tensor_select_scatter(Tensor *x, Tensor *src, int dim, int64_t index)
{
    return APPLY(&op_select_scatter, &((SelectParams){ dim, index }), x, src);
}

/* ---- diagonal_scatter ------------------------------------------------------------------------ */

static int diagonal_compose(OpCall *c)
{
    const TensorDiagonalScatterArgs *p = op_params(c);
    Tensor *y = tensor_clone(op_input(c, 0));
    return finish(c, y, tensor_diagonal(y, p->offset, p->dim1, p->dim2));
}

static const OpField diagonal_fields[] = { OP_OPTION(TensorDiagonalScatterArgs, offset, dim1, dim2), { 0 } };
static const TensorOp op_diagonal_scatter = {
    .name = "diagonal_scatter",
    .autocast = AUTOCAST_AS_IS,
    .summary = "a copy of x with a diagonal of two dims replaced by src",
    .arity = 2,
    .gradient = "dx = dy, 0 on the diagonal; dsrc = the diagonal of dy",
    PARAMS(TensorDiagonalScatterArgs, tensor_diagonal_scatter_defaults, diagonal_fields),
    .compose = diagonal_compose,
    .flags = OP_ANY_DEVICE,
    .samples =
        "3x4,3; 3x4,2 {offset=2}; 4x3,2 {offset=-2}; 2x3x4,3x1 {offset=1 dim1=-1 dim2=0}; 3x3,0 {offset=5}",
    .errors = "3x4,4 ! ESHAPE; 3,3 ! EINDEX; 3x3,3 {dim1=1} ! EINDEX"
};
REGISTER_OPS(&op_diagonal_scatter);

Tensor *tensor_diagonal_scatter_args(TensorDiagonalScatterArgs args)
{
    return APPLY(&op_diagonal_scatter, &args, args.input, args.src);
}
