/* sum.c - sum and mean over dims.
 *
 *   y = sum x             dx = g, repeated along the reduced dims
 *   y = sum x / n         dx = g / n, likewise
 */
#include "reduce.h"

static int sum_shape(OpCall *c)
{
    const int dtype = op_input(c, 0)->dtype;
    return reduce_check(c) ? -1 : reduce_shape(c, dtype_is_float(dtype) ? dtype : TENSOR_I64);
}

static int sum_forward(OpCall *c) { return reduce_forward(c, REDUCE_SUM); }

static int sum_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = reduce_spread(op_params(c), op_input_shape(c, 0), dy);
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { REDUCE_FIELDS, { 0 } };

#define SAMPLES                                                                                      \
    "3x4; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 2x3x4 {dims=[-2]}; 5x3x2 {dims=[0 1 2]}; ; " \
    "{dims=[0]}; "                                                                                   \
    "0x3 {dims=[0]}; 0x3 {dims=[1]}"
#define ERRORS "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[-3]} ! EINDEX; 3x4 {dims=[1 -1]} ! EVALUE"

const TensorOp op_sum = {
    .name = "sum",
    .summary = "sum over dims; i64 for integers and bools",
    .gradient = "dx = g",
    .arity = 1,
    .params = sizeof(ReduceParams),
    .fields = fields,
    .shape = sum_shape,
    .forward = sum_forward,
    .backward = sum_backward,
    .flags = OP_ANY_DEVICE,
    .samples = SAMPLES "; 2x3@i64 {dims=[1]}; 4@bool",
    .errors = ERRORS,
};
REGISTER_OP(op_sum);

static int mean_shape(OpCall *c) { return reduce_check(c) ? -1 : reduce_shape(c, op_input(c, 0)->dtype); }

static int mean_forward(OpCall *c) { return reduce_forward(c, REDUCE_MEAN); }

static int mean_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorShape to = op_input_shape(c, 0);
    const int64_t n = reduce_count(to, op_params(c)); /* 0: dx has no elements */
    dx[0] = reduce_spread(op_params(c), to, tensor_div_scalar(dy, n ? (double)n : 1));
    return dx[0] ? 0 : -1;
}

const TensorOp op_mean = {
    .name = "mean",
    .summary = "mean over dims; NaN over nothing",
    .gradient = "dx = g / n",
    .arity = 1,
    .params = sizeof(ReduceParams),
    .fields = fields,
    .shape = mean_shape,
    .forward = mean_forward,
    .backward = mean_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .samples = SAMPLES,
    .errors = ERRORS "; 3@i64 ! EDTYPE",
};
REGISTER_OP(op_mean);

static bool to_float(const TensorReduceArgs *a)
{
    return a->dtype < TENSOR_DTYPES && tensor_dtype_is_float(a->dtype);
}

static Tensor *finish(Tensor *y, const TensorReduceArgs *a)
{
    return y && a->dtype != TENSOR_DTYPES && y->dtype != a->dtype ? tensor_to(y, a->dtype) : y;
}

Tensor *tensor_sum_args(TensorReduceArgs a)
{
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    return finish(APPLY(&op_sum, &p, to_float(&a) ? tensor_to(a.input, a.dtype) : a.input), &a);
}

Tensor *tensor_mean_args(TensorReduceArgs a)
{
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    if (a.input && a.dtype < TENSOR_DTYPES && !to_float(&a))
        return fail(TENSOR_EDTYPE, "mean", "%s as %s: means are floats", S(a.input),
                    tensor_dtype_name(a.dtype)),
               NULL;
    return finish(APPLY(&op_mean, &p, to_float(&a) ? tensor_to(a.input, a.dtype) : a.input), &a);
}
