/* logsumexp.c - log sum e^x over dims.
 *
 *   y = m + log sum e^(x - m), m = max x           dx = g e^(x - y)
 *
 * Where all of x is -inf, y is -inf too; e^(x - 0) is then the gradient 0 that one wants. */
#include <math.h>
#include "reduce.h"

static ReduceOver over_of(const OpCall *c)
{
    const TensorDimsArgs *p = op_params(c);
    return over_dims(p->dims, p->keepdim);
}

static int shape(OpCall *c)
{
    TensorDimsArgs *p = op_params_mut(c);
    return reduce_check(c, &p->dim, &p->dims) ? -1 : reduce_shape(c, over_of(c), op_input(c, 0)->dtype);
}

static int forward(OpCall *c) { return reduce_forward(c, over_of(c), REDUCE_LOGSUMEXP, 0); }

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const ReduceOver over = over_of(c);
    const TensorShape to = op_input_shape(c, 0);
    Tensor *x = op_saved(c, 0), *y = op_saved_output(c, 0);
    if (!x || !y) return -1;
    Tensor *finite = tensor_where(tensor_eq_scalar(y, -INFINITY), tensor_zeros_like(y), y);
    Tensor *share = tensor_exp(tensor_sub(x, reduce_spread(over, to, finite)));
    dx[0] = tensor_mul(share, reduce_spread(over, to, dy));
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_OPTION(TensorDimsArgs, dim, keepdim, dims), { 0 } };

const TensorOp op_logsumexp = {
    .name = "logsumexp",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "log of the sum of e^x over dims; gradient 0 where all are -inf",
    .gradient = "dx = g e^(x - y)",
    .arity = 1,
    .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
    PARAMS(TensorDimsArgs, tensor_dims_defaults, fields),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .samples = "5; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 2x3x4 {dim=-2}; ; 0x3 {dims=[0]}; 0x3 "
               "{dims=[1]}; 3:100..200",
    .errors = "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[1 1]} ! EVALUE; 3@i64 ! EDTYPE; 3x4 {dim=1 dims=[0]} ! "
              "EVALUE",
};
REGISTER_OPS(&op_logsumexp);

Tensor *tensor_logsumexp_args(TensorDimsArgs a)
{
    const bool integers = a.input && !dtype_is_float(a.input->dtype);
    return APPLY(&op_logsumexp, &a, integers ? tensor_to(a.input, TENSOR_F32) : a.input);
}
