/* glu.c - the gated linear unit.
 *
 *   y = a sigmoid(b), x = [a b] along dim         da = g s,  db = g a s (1 - s),  s = sigmoid(b)
 */
#include "op/op.h"

const TensorGluArgs tensor_glu_defaults = { TENSOR_GLU_DEFAULTS };

static int shape(OpCall *c)
{
    TensorGluArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    if (x->ndim == 0) return op_fail(c, TENSOR_ESHAPE, "%s has no dimension to halve", S(x));
    const int dim = call_dim(c, p->dim, shape_of(x));
    if (dim < 0) return -1;
    p->dim = dim;
    return x->shape[dim] % 2
               ? op_fail(c, TENSOR_ESHAPE, "%s: dim %d has an odd size, which has no halves", S(x), dim)
               : 0;
}

static int compose(OpCall *c)
{
    const int dim = ((const TensorGluArgs *)op_params(c))->dim;
    Tensor *x = op_input(c, 0), *half[2];
    if (tensor_split_sizes(x, SHAPE(x->shape[dim] / 2, x->shape[dim] / 2), dim, half) < 0) return -1;
    return op_set_result(c, 0, tensor_mul(half[0], tensor_sigmoid(half[1])));
}

static const OpField fields[] = { OP_OPTION(TensorGluArgs, dim), { 0 } };

const TensorOp op_glu = {
    .name = "glu",
    .autocast = AUTOCAST_AS_IS,
    .summary = "one half of x along dim times the sigmoid of the other",
    .arity = 1,
    .gradient = "with s = sigmoid(b): da = g s, db = g a s (1 - s)",
    PARAMS(TensorGluArgs, tensor_glu_defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .torch = "nn.functional.glu",
    .samples = "6; 3x4; 4x3 {dim=0}; 2x6x3 {dim=-2}; 0x4; 4x0; 3x0x2 {dim=1}",
    .errors = "3 ! ESHAPE;  ! ESHAPE; 3x4 {dim=0} ! ESHAPE; 3x4 {dim=2} ! EINDEX; 4@i64 ! EDTYPE",
};
REGISTER_OPS(&op_glu);

Tensor *tensor_glu_args(TensorGluArgs a) { return APPLY(&op_glu, &a, a.input); }
