/* logsumexp.c - log sum e^x over dims.
 *
 *   y = m + log sum e^(x - m), m = max x           dx = g e^(x - y)
 *
 * Where all of x is -inf, y is -inf too; e^(x - 0) is then the gradient 0 that one wants. */
#include <math.h>
#include "reduce.h"

static int shape(OpCall *c) { return reduce_check(c) ? -1 : reduce_shape(c, op_input(c, 0)->dtype); }

static int forward(OpCall *c) { return reduce_forward(c, REDUCE_LOGSUMEXP); }

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const ReduceParams *p = op_params(c);
    const TensorShape to = op_input_shape(c, 0);
    Tensor *x = op_saved(c, 0), *y = op_saved_output(c, 0);
    if (!x || !y) return -1;
    Tensor *finite = tensor_where(tensor_eq_scalar(y, -INFINITY), tensor_zeros_like(y), y);
    dx[0] = tensor_mul(tensor_exp(tensor_sub(x, reduce_spread(p, to, finite))), reduce_spread(p, to, dy));
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { REDUCE_FIELDS, { 0 } };

const TensorOp op_logsumexp = {
    .name = "logsumexp",
    .summary = "log of the sum of e^x over dims; gradient 0 where all are -inf",
    .gradient = "dx = g e^(x - y)",
    .arity = 1,
    .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
    .params = sizeof(ReduceParams),
    .fields = fields,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .samples = "5; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 2x3x4 {dims=[-2]}; ; 0x3 {dims=[0]}; 0x3 "
               "{dims=[1]}; 3:100..200",
    .errors = "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[1 1]} ! EVALUE; 3@i64 ! EDTYPE",
};
REGISTER_OP(op_logsumexp);

Tensor *tensor_logsumexp_args(TensorReduceArgs a)
{
    if (unwanted(a.dtype != TENSOR_DTYPES, "logsumexp", "dtype")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    const bool integers = a.input && !dtype_is_float(a.input->dtype);
    return APPLY(&op_logsumexp, &p, integers ? tensor_to(a.input, TENSOR_F32) : a.input);
}
