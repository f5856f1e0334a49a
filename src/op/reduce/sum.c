/* sum.c - sum and mean over dims, and sum to a shape.
 *
 *   y = sum x             dx = g, repeated along the reduced dims
 *   y = sum x / n         dx = g / n, likewise
 */
#include "reduce.h"

const TensorReduceArgs tensor_reduce_defaults = { TENSOR_REDUCE_DEFAULTS };

static ReduceOver over_of(const OpCall *c)
{
    const TensorReduceArgs *p = op_params(c);
    return over_dims(p->dims, p->keepdim);
}

static int shape(OpCall *c)
{
    TensorReduceArgs *p = op_params_mut(c);
    if (reduce_check(c, &p->dim, &p->dims)) return -1;
    return reduce_shape(c, over_of(c), sum_dtype(op_input(c, 0), p->dtype));
}

/* Kernels sum integers in i64. */
static int sum_forward(OpCall *c)
{
    Tensor *y = op_output(c, 0);
    const ReduceOver over = over_of(c);
    if (dtype_is_float(y->dtype) || y->dtype == TENSOR_I64) return reduce_forward(c, over, REDUCE_SUM, 0);
    Tensor *sum = own(raw_reduce(op_input(c, 0), REDUCE_SUM, over.reduced, over.keepdim, TENSOR_I64, 0));
    return sum ? raw_copy(y, sum) : -1;
}

static int sum_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = reduce_spread(over_of(c), op_input_shape(c, 0), dy);
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_OPTION(TensorReduceArgs, dim, keepdim, dims),
                                  OP_DTYPE(TensorReduceArgs, dtype),
                                  { 0 } };

#define REDUCE                                                                           \
    .arity = 1, .params = sizeof(TensorReduceArgs), .defaults = &tensor_reduce_defaults, \
    .cast_option = offsetof(TensorReduceArgs, dtype), .fields = fields, .shape = shape
#define SAMPLES                                                                                           \
    "3x4; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 2x3x4 {dim=-2}; 5x3x2 {dims=[0 1 2]}; ; "         \
    "{dims=[0]}; 0x3 {dims=[0]}; 0x3 {dim=0 keepdim=true}; 0x3 {dims=[1]}; 3x4 {dim=1 dtype=f64}; 3@i64 " \
    "{dtype=f64}; "                                                                                       \
    "3@bool {dtype=f32}"
#define ERRORS                                                                        \
    "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[-3]} ! EINDEX; 3x4 {dims=[1 -1]} ! EVALUE; " \
    "3x4 {dim=0 dims=[1]} ! EVALUE; 3 {dtype=9} ! EVALUE; 3 {dtype=-1} ! EVALUE"

const TensorOp op_sum = {
    .name = "sum",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "sum over dims; i64 for integers and bools",
    .gradient = "dx = g",
    REDUCE,
    .forward = sum_forward,
    .backward = sum_backward,
    .flags = OP_ANY_DEVICE,
    .samples = SAMPLES "; 2x3@i64 {dims=[1]}; 4@bool; 4@i64 {dtype=i32}; 2x3@bool {dim=1 dtype=bool}",
    .errors = ERRORS,
};
REGISTER_OPS(&op_sum);

static int mean_forward(OpCall *c) { return reduce_forward(c, over_of(c), REDUCE_MEAN, 0); }

static int mean_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const ReduceOver over = over_of(c);
    const TensorShape to = op_input_shape(c, 0);
    const int64_t n = reduce_count(to, over); /* 0: dx has no elements */
    dx[0] = reduce_spread(over, to, tensor_div_scalar(dy, n ? (double)n : 1));
    return dx[0] ? 0 : -1;
}

const TensorOp op_mean = {
    .name = "mean",
    .autocast = AUTOCAST_AS_IS,
    .summary = "mean over dims; NaN over nothing",
    .gradient = "dx = g / n",
    REDUCE,
    .forward = mean_forward,
    .backward = mean_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .samples = SAMPLES,
    .errors = ERRORS "; 3@i64 ! EDTYPE; 3 {dtype=i64} ! EDTYPE",
};
REGISTER_OPS(&op_mean);

Tensor *tensor_sum_args(TensorReduceArgs a) { return APPLY(&op_sum, &a, a.input); }
Tensor *tensor_mean_args(TensorReduceArgs a) { return APPLY(&op_mean, &a, a.input); }

/* ---- sum_to_size ----------------------------------------------------------------------------- */

typedef struct SumToParams {
    TensorShape size;
} SumToParams;

static int to_size(OpCall *c)
{
    const TensorShape size = ((const SumToParams *)op_params(c))->size;
    Tensor *x = op_input(c, 0);
    const int lead = x->ndim - size.ndim;
    int64_t dim[TENSOR_MAX_DIMS];
    int dims = 0;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < x->ndim; d++) {
        const int64_t want = d < lead ? 1 : size.dim[d - lead];
        fits = want == 1 || want == x->shape[d];
        if (d < lead || want != x->shape[d]) dim[dims++] = d;
    }
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE, "%s to %s: want a shape that broadcasts to the first", S(x),
                       shape_text(size));
    if (dims == 0) return op_set_result(c, 0, tensor_clone(x));
    return op_set_result(c, 0, tensor_reshape(tensor_sum(x, .dims = { dims, dim }, .keepdim = true), size));
}

static const OpField to_size_fields[] = { OP_REQUIRED(SumToParams, size), { 0 } };
const TensorOp op_sum_to_size = {
    .name = "sum_to_size",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "x summed to a shape that broadcasts to its own",
    .gradient = "dx = expand(g)",
    .arity = 1,
    PARAMS_GIVEN(SumToParams, to_size_fields),
    .compose = to_size,
    .flags = OP_ANY_DEVICE,
    .torch = "Tensor.sum_to_size",
    .samples = "3x4 {size=[3 1]}; 3x4 {size=[4]}; 2x3x4 {size=[1 1 4]}; 2x3 {size=[]}; 2x3 {size=[2 3]}; "
               "{size=[]}; 0x3 {size=[1 3]}; 2x3@i64 {size=[3]}; 1x3:.5..2 {size=[1 1]}",
    .errors = "3x4 {size=[3 2]} ! ESHAPE; 3 {size=[1 3]} ! ESHAPE; 3 {size=[-1]} ! ESHAPE"
};
REGISTER_OPS(&op_sum_to_size);

Tensor *tensor_sum_to_size(Tensor *x, TensorShape size)
{
    return APPLY(&op_sum_to_size, &(SumToParams){ size }, x);
}
