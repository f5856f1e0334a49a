/* tri.c - the lower or upper triangle of matrices.
 *
 *   tril  y_ij = x_ij where j <= i + diagonal, else 0         triu  where j >= i + diagonal
 *   dx = the same triangle of dy
 *
 * By selection, never by a product with a mask: infinities and NaN outside do not reach y. */
#include "cpu/shape/host_tables.h"
#include "shape_op.h"

const TensorTriArgs tensor_tri_defaults = { TENSOR_TRI_DEFAULTS };

static const TensorOp op_tril, op_triu;

static int shape(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    return x->ndim < 2 ? op_fail(c, TENSOR_ESHAPE, "%s: want matrices, two dimensions or more", S(x))
                       : op_same_shape(c);
}

/* [rows, columns]: true where x is kept; one for all matrices of the batch. */
static Tensor *mask_of(const Tensor *x, int64_t diagonal, bool lower)
{
    const int64_t rows = x->shape[x->ndim - 2], columns = x->shape[x->ndim - 1];
    Tensor *mask = own(new_tensor(SHAPE(rows, columns), TENSOR_BOOL, &cpu_place));
    if (!mask) return NULL;
    host_triangle(mask->data, rows, columns, diagonal, lower);
    return carried(mask, x->place);
}

static int forward(OpCall *c)
{
    const TensorTriArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (x->numel == 0) return 0;
    Tensor *mask = mask_of(x, p->diagonal, c->op == &op_tril), *zero = zeros_on(SHAPE(), x->dtype, x->place);
    return mask && zero ? raw_select(c->name, op_output(c, 0), mask, x, zero) : -1;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = tensor_apply(c->op, &dy, 1, op_params(c));
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_OPTION(TensorTriArgs, diagonal), { 0 } };
#define TRIANGLE                                                                                        \
    .arity = 1, .params = sizeof(TensorTriArgs), .defaults = &tensor_tri_defaults, .fields = fields,    \
    .shape = shape, .forward = forward, .backward = backward, .flags = OP_ANY_DEVICE,                   \
    .samples = "3x4; 4x3 {diagonal=1}; 3x3 {diagonal=-1}; 2x3x3; 3x4 {diagonal=9}; 3x4 {diagonal=-9}; " \
               "0x3; 2x0x0",                                                                            \
    .errors = "3 ! ESHAPE; ! ESHAPE"
static const TensorOp op_tril = { .name = "tril",
                                  .summary = "the lower triangle up to a diagonal, zeros above",
                                  .gradient = "dx = tril(g)",
                                  TRIANGLE };
static const TensorOp op_triu = { .name = "triu",
                                  .summary = "the upper triangle from a diagonal on, zeros below",
                                  .gradient = "dx = triu(g)",
                                  TRIANGLE };
REGISTER_OPS(&op_tril, &op_triu);

Tensor *tensor_tril_args(TensorTriArgs a) { return APPLY(&op_tril, &a, a.input); }
Tensor *tensor_triu_args(TensorTriArgs a) { return APPLY(&op_triu, &a, a.input); }
Tensor *tensor_tril_args_(TensorTriArgs a) { return APPLY_(&op_tril, &a, a.input); }
Tensor *tensor_triu_args_(TensorTriArgs a) { return APPLY_(&op_triu, &a, a.input); }
