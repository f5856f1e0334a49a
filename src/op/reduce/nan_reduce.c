/* nan_reduce.c - sum and mean of what is no NaN: made of where and sum.
 *
 *   nansum   y = sum of x where it is no NaN            dx = g there, 0 where x is NaN
 *   nanmean  that divided by how many there are         dx = g / count */
#include "reduce.h"

static Tensor *without_nans(Tensor *x)
{
    return x ? tensor_where(tensor_isnan(x), tensor_zeros_like(x), x) : NULL;
}

static int nansum(OpCall *c)
{
    const ReduceParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (dtype_is_float(x->dtype)) x = without_nans(x);
    return op_set_result(c, 0, tensor_sum(x, .dims = reduce_dims(p), .keepdim = p->keepdim));
}

static int nanmean(OpCall *c)
{
    const ReduceParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *numbers = tensor_logical_not(tensor_isnan(x));
    Tensor *count = tensor_sum(numbers, .dims = reduce_dims(p), .keepdim = p->keepdim);
    Tensor *sum = tensor_sum(without_nans(x), .dims = reduce_dims(p), .keepdim = p->keepdim);
    return op_set_result(c, 0,
                         count && sum ? tensor_div(sum, tensor_to(count, (TensorDtype)sum->dtype)) : NULL);
}

static const OpField fields[] = { REDUCE_FIELDS, { 0 } };
#define NAN_REDUCE .arity = 1, .params = sizeof(ReduceParams), .fields = fields, .shape = reduce_check
#define SAMPLES                                                                                            \
    "3x4; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 2x3x4 {dims=[-2]}; ; {dims=[0]}; 0x3 {dims=[0]}; " \
    "0x3 {dims=[1]}"
#define ERRORS "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[1 -1]} ! EVALUE"

const TensorOp op_nansum = { .name = "nansum",
                             .summary = "sum over dims of what is no NaN; i64 for integers",
                             NAN_REDUCE,
                             .gradient = "dx = g where x is no NaN",
                             .compose = nansum,
                             .flags = OP_ANY_DEVICE,
                             .samples = SAMPLES "; 2x3@i64 {dims=[1]}; 4@bool",
                             .errors = ERRORS };
const TensorOp op_nanmean = { .name = "nanmean",
                              .summary = "mean over dims of what is no NaN; NaN where nothing is",
                              NAN_REDUCE,
                              .gradient = "dx = g / count where x is no NaN",
                              .compose = nanmean,
                              .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
                              .samples = SAMPLES,
                              .errors = ERRORS "; 3@i64 ! EDTYPE" };
REGISTER_OP(op_nansum);
REGISTER_OP(op_nanmean);

static Tensor *apply(const TensorOp *op, const TensorReduceArgs *a, const void *site)
{
    ReduceParams p = reduce_params(a->dim, a->dims, a->keepdim, 0);
    const bool cast = a->input && a->dtype < TENSOR_DTYPES && tensor_dtype_is_float(a->dtype);
    Tensor *x = cast ? tensor_to(a->input, a->dtype) : a->input, *y = op_apply1(op, &x, 1, &p, site);
    return y && a->dtype != TENSOR_DTYPES ? tensor_to(y, a->dtype) : y;
}

Tensor *tensor_nansum_args(TensorReduceArgs a) { return apply(&op_nansum, &a, SITE); }
Tensor *tensor_nanmean_args(TensorReduceArgs a) { return apply(&op_nanmean, &a, SITE); }
