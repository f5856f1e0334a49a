/* weight_norm.c - weights as a direction and a length for each index of one dimension.
 *
 *   norm_except_dim  n = (sum |v|^pow)^(1/pow) over all dims but dim, which are kept with size 1
 *   weight_norm      y = v g / n, pow = 2 */
#include "op/shape/shape_op.h"

typedef struct ExceptParams {
    double pow;
    int dim;
} ExceptParams;

static const ExceptParams defaults = { .pow = 2, .dim = 0 };

static int shape(OpCall *c)
{
    ExceptParams *p = op_params_mut(c);
    const Tensor *v = op_input(c, 0);
    if (v->ndim == TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "%s: want at most %d dimensions", S(v), TENSOR_MAX_DIMS - 1);
    if (p->dim == -1) return 0;
    p->dim = call_dim(c, p->dim, shape_of(v));
    return p->dim < 0 ? -1 : 0;
}

static Tensor *length(Tensor *v, double pow, int dim)
{
    int64_t others[TENSOR_MAX_DIMS];
    int n = 0;
    if (dim == -1) return tensor_norm(v, pow);
    for (int d = 0; d <= v->ndim; d++) /* with a last one of size 1, so that there is always one to go over */
        if (d != dim) others[n++] = d;
    return tensor_squeeze(tensor_norm(tensor_unsqueeze(v, -1), pow, .dims = { n, others }, .keepdim = true),
                          -1);
}

static int norm_except_dim(OpCall *c)
{
    const ExceptParams *p = op_params(c);
    return op_set_result(c, 0, length(op_input(c, 0), p->pow, p->dim));
}

static int weight_norm(OpCall *c)
{
    Tensor *v = op_input(c, 0), *n = length(v, 2, ((const ExceptParams *)op_params(c))->dim);
    return op_set_result(c, 0, tensor_mul(v, tensor_div(op_input(c, 1), n)));
}

static const OpField fields[] = { OP_OPTION(ExceptParams, dim, pow), { 0 } };
static const OpField dim_field[] = { OP_OPTION(ExceptParams, dim), { 0 } };

const TensorOp op_norm_except_dim = {
    .name = "norm_except_dim",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "(sum |v|^pow)^(1/pow) over all dims but dim, which stay with size 1; dim = -1: over all",
    .gradient = "dv = g sign(v) (|v| / y)^(pow - 1)",
    .arity = 1,
    PARAMS(ExceptParams, defaults, fields),
    .shape = shape,
    .compose = norm_except_dim,
    .flags = OP_FLOAT_INPUTS | OP_ANY_DEVICE,
    .samples =
        "3x4; 2x3x4 {dim=1}; 3x4 {dim=-1}; 4:.5..2; 3x0; 0x3; 2x3 {dim=1 pow=3}; 3x4:.5..2 {pow=1}; {dim=-1}",
    .errors = "3x4 {dim=2} ! EINDEX; 3x4@i64 ! EDTYPE",
};
const TensorOp op_weight_norm = {
    .name = "weight_norm",
    .autocast = AUTOCAST_PARTS,
    .summary = "v g / n, n the 2-norm of v over all dims but dim",
    .arity = 2,
    .gradient = "dv = (q - v sum(q v) / n^2) / n, q = dy g; dg = sum_to dy v / n",
    PARAMS(ExceptParams, defaults, dim_field),
    .shape = shape,
    .compose = weight_norm,
    .flags = OP_FLOAT_INPUTS | OP_ONE_DTYPE | OP_ROUND_ONCE | OP_ANY_DEVICE,
    .samples = "3x4,3x1; 2x3x4,1x3x1 {dim=1}; 3x4, {dim=-1}; 4:.5..2,4; 0x3,0x1; 2x3,1x3 {dim=1}",
    .errors = "3x4,4x1 ! ESHAPE; 3x4,3x1 {dim=2} ! EINDEX; 3x4@i64,3x1@i64 ! EDTYPE; "
              "3x4@f32,3x1@f64 ! EDTYPE; 3x4@f16,3x1@f32 ! EDTYPE",
    .torch = "_weight_norm",
};
REGISTER_OPS(&op_norm_except_dim, &op_weight_norm);

Tensor *tensor_norm_except_dim(Tensor *v, double pow, int dim)
{
    return APPLY(&op_norm_except_dim, &((ExceptParams){ pow, dim }), v);
}
Tensor *tensor_weight_norm(Tensor *v, Tensor *g, int dim)
{
    return APPLY(&op_weight_norm, &((ExceptParams){ 2, dim }), v, g);
}
