/* nan_reduce.c - sum and mean of the elements that are not NaN: made of where and sum.
 *
 *   nansum   y = sum of x where it is not NaN             dx = g there, 0 where x is NaN
 *   nanmean  that divided by how many there are           dx = g / count */
#include "reduce.h"

static Tensor *without_nans(Tensor *x)
{
    return x ? tensor_where(tensor_isnan(x), tensor_zeros_like(x), x) : NULL;
}

static int shape(OpCall *c)
{
    TensorReduceArgs *p = op_params_mut(c);
    return reduce_check(c, &p->dim, &p->dims);
}

static Tensor *sum_of(OpCall *c, Tensor *x)
{
    const TensorReduceArgs *p = op_params(c);
    return tensor_sum(x, .dims = p->dims, .keepdim = p->keepdim, .dtype = p->dtype);
}

/* Where no sum of floats is NaN, no element was: three passes less.  On a device one would have to wait. */
static int nansum(OpCall *c)
{
    Tensor *x = op_input(c, 0), *sum;
    if (!dtype_is_float(x->dtype)) return op_set_result(c, 0, sum_of(c, x));
    if (on_host(x->place)) {
        Tensor *any = (sum = sum_of(c, x)) ? tensor_any(tensor_isnan(sum)) : NULL;
        if (!any) return -1;
        if (dtype_is_float(sum->dtype) && tensor_item(any) == 0) return op_set_result(c, 0, sum);
    }
    return op_set_result(c, 0, sum_of(c, without_nans(x)));
}

static int nanmean(OpCall *c)
{
    const TensorReduceArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *numbers = tensor_logical_not(tensor_isnan(x));
    Tensor *count = tensor_sum(numbers, .dims = p->dims, .keepdim = p->keepdim);
    Tensor *sum = tensor_sum(without_nans(x), .dims = p->dims, .keepdim = p->keepdim);
    if (!count || !sum) return -1;
    return op_set_result(c, 0, tensor_div(sum, tensor_to(count, (TensorDtype)sum->dtype)));
}

static const OpField fields[] = { OP_OPTION(TensorReduceArgs, dim, keepdim, dims),
                                  OP_DTYPE(TensorReduceArgs, dtype),
                                  { 0 } };
#define NAN_REDUCE                                                                       \
    .arity = 1, .params = sizeof(TensorReduceArgs), .defaults = &tensor_reduce_defaults, \
    .cast_option = offsetof(TensorReduceArgs, dtype), .fields = fields, .shape = shape
#define SAMPLES                                                                                         \
    "3x4; 3x4 {dim=1}; 2x3x4 {dims=[0 2] keepdim=1}; 2x3x4 {dims=[-2]}; ; {dims=[0]}; 0x3 {dims=[0]}; " \
    "0x3 {dims=[1]}; 3x4 {dim=0 dtype=f64}; 3@i64 {dtype=f64}"
#define ERRORS "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[1 -1]} ! EVALUE; 3 {dtype=9} ! EVALUE"

const TensorOp op_nansum = { .name = "nansum",
                             .autocast = AUTOCAST_AS_IS,
                             .summary = "sum over dims of the elements that are not NaN; i64 for integers",
                             NAN_REDUCE,
                             .gradient = "dx = g where x is not NaN",
                             .compose = nansum,
                             .flags = OP_ANY_DEVICE,
                             .samples = SAMPLES "; 2x3@i64 {dims=[1]}; 4@bool",
                             .errors = ERRORS };
const TensorOp op_nanmean = { .name = "nanmean",
                              .autocast = AUTOCAST_AS_IS,
                              .summary = "mean over dims of the elements that are not NaN; NaN where all are",
                              NAN_REDUCE,
                              .gradient = "dx = g / count where x is not NaN",
                              .compose = nanmean,
                              .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
                              .samples = SAMPLES,
                              .errors = ERRORS "; 3@i64 ! EDTYPE; 3 {dtype=i64} ! EDTYPE" };
REGISTER_OPS(&op_nansum, &op_nanmean);

Tensor *tensor_nansum_args(TensorReduceArgs a) { return APPLY(&op_nansum, &a, a.input); }
Tensor *tensor_nanmean_args(TensorReduceArgs a) { return APPLY(&op_nanmean, &a, a.input); }
