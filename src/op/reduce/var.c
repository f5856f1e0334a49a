/* var.c - variance and standard deviation over dims.
 *
 *   y = sum (x - mean)^2 / m,  m = max(0, n - correction)        dx = 2 g (x - mean) / m
 *   std = sqrt(var), gradient 0 where it is 0
 *   var_mean, std_mean: with the mean as second result, dx = that of both
 */
#include "reduce.h"

const TensorVarArgs tensor_var_defaults = { TENSOR_VAR_DEFAULTS };
const TensorVarMeanArgs tensor_var_mean_defaults = { TENSOR_VAR_MEAN_DEFAULTS };

static ReduceOver over_of(const OpCall *c)
{
    const TensorVarArgs *p = op_params(c);
    return over_dims(p->dims, p->keepdim);
}

static int var_shape(OpCall *c)
{
    TensorVarArgs *p = op_params_mut(c);
    return reduce_check(c, &p->dim, &p->dims) ? -1 : reduce_shape(c, over_of(c), op_input(c, 0)->dtype);
}

static int forward(OpCall *c, int kind)
{
    return reduce_forward(c, over_of(c), kind, ((const TensorVarArgs *)op_params(c))->correction);
}

static int var_forward(OpCall *c) { return forward(c, REDUCE_VAR); }
static int std_forward(OpCall *c) { return forward(c, REDUCE_STD); }

/* factor g (x - mean) / m */
static int deviation(OpCall *c, Tensor *g, double factor, Tensor **dx)
{
    const TensorVarArgs *p = op_params(c);
    const TensorShape to = op_input_shape(c, 0);
    const int64_t n = reduce_count(to, over_of(c));
    const double m = n ? (double)n - p->correction : 1; /* n = 0: dx has no elements */
    Tensor *x = op_saved(c, 0), *mean = tensor_mean(x, .dims = p->dims, .keepdim = true);
    Tensor *each = reduce_spread(over_of(c), to, tensor_mul_scalar(g, factor / (m > 0 ? m : 0)));
    dx[0] = tensor_mul(tensor_sub(x, mean), each);
    return dx[0] ? 0 : -1;
}

static int var_backward(OpCall *c, Tensor *dy, Tensor **dx) { return deviation(c, dy, 2, dx); }

static int std_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *y = op_saved_output(c, 0), *zero = tensor_eq_scalar(y, 0);
    if (!zero) return -1;
    Tensor *quotient =
        tensor_div(dy, tensor_where(zero, tensor_ones_like(y), y)); /* of 1 there: finite to any order */
    return deviation(c, tensor_where(zero, tensor_zeros_like(y), quotient), 1, dx);
}

#define FIELDS(struct_)                                                                       \
    {                                                                                         \
        OP_OPTION(struct_, dim), OP_OPTION(struct_, correction), OP_OPTION(struct_, keepdim), \
            OP_OPTION(struct_, dims),                                                         \
        {                                                                                     \
            0                                                                                 \
        }                                                                                     \
    }
static const OpField var_fields[] = FIELDS(TensorVarArgs), both_fields[] = FIELDS(TensorVarMeanArgs);

#define VAR                                                                                              \
    .arity = 1, .params = sizeof(TensorVarArgs), .defaults = &tensor_var_defaults, .fields = var_fields, \
    .shape = var_shape, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE
#define SAMPLES                                                                                        \
    "5; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 3x4 {dim=-2 correction=0}; 0x3 {dims=[1]}; 4x3 " \
    "{correction=2.5}"
#define ERRORS \
    "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[1 1]} ! EVALUE; 3@i64 ! EDTYPE; 3x4 {dim=1 dims=[1]} ! EVALUE"

const TensorOp op_var = { .name = "var",
                          .autocast = AUTOCAST_AS_IS,
                          .summary = "variance over dims",
                          .gradient = "dx = 2 g (x - mean) / (n - correction)",
                          VAR,
                          .keep = KEEP_INPUT(0),
                          .forward = var_forward,
                          .backward = var_backward,
                          .samples = SAMPLES,
                          .errors = ERRORS };
const TensorOp op_std = { .name = "std",
                          .autocast = AUTOCAST_AS_IS,
                          .summary = "standard deviation over dims; gradient 0 where it is 0",
                          .gradient = "dx = g (x - mean) / ((n - correction) y), 0 where y = 0",
                          VAR,
                          .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                          .forward = std_forward,
                          .backward = std_backward,
                          .samples = SAMPLES,
                          .errors = ERRORS };
REGISTER_OPS(&op_var, &op_std);

/* ---- with the mean --------------------------------------------------------------------------- */

static int both_shape(OpCall *c)
{
    TensorVarMeanArgs *p = op_params_mut(c);
    return reduce_check(c, &p->dim, &p->dims);
}

static int both(OpCall *c, Tensor *(*spread)(TensorVarArgs))
{
    const TensorVarMeanArgs *p = op_params(c);
    const TensorVarArgs a = { .input = op_input(c, 0),
                              .dim = TENSOR_ALL,
                              .correction = p->correction,
                              .keepdim = p->keepdim,
                              .dims = p->dims,
                              TENSOR_FROM_DEFAULTS };
    if (op_set_result(c, 0, spread(a))) return -1;
    return op_set_result(c, 1, tensor_mean(a.input, .dims = p->dims, .keepdim = p->keepdim));
}

static int var_mean(OpCall *c) { return both(c, tensor_var_args); }
static int std_mean(OpCall *c) { return both(c, tensor_std_args); }

#define BOTH                                                                                              \
    .arity = 1, .outputs = 2, .params = sizeof(TensorVarMeanArgs), .defaults = &tensor_var_mean_defaults, \
    .fields = both_fields, .shape = both_shape, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE, \
    .samples = SAMPLES, .errors = ERRORS
const TensorOp op_var_mean = { .name = "var_mean",
                               .autocast = AUTOCAST_AS_IS,
                               .summary = "variance and mean over dims",
                               .gradient = "dx = 2 g (x - mean) / m + g' / n",
                               .compose = var_mean,
                               BOTH };
const TensorOp op_std_mean = { .name = "std_mean",
                               .autocast = AUTOCAST_AS_IS,
                               .summary = "standard deviation and mean over dims",
                               .gradient = "dx = g (x - mean) / (m std) + g' / n",
                               .compose = std_mean,
                               BOTH };
REGISTER_OPS(&op_var_mean, &op_std_mean);

static Tensor *apply_both(const TensorOp *op, const TensorVarMeanArgs *a, const void *site)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(op, &a->input, 1, a, site, y, 2);
    if (a->mean) *a->mean = y[1];
    return y[0];
}

Tensor *tensor_var_mean_args(TensorVarMeanArgs a) { return apply_both(&op_var_mean, &a, SITE); }
Tensor *tensor_std_mean_args(TensorVarMeanArgs a) { return apply_both(&op_std_mean, &a, SITE); }
Tensor *tensor_var_args(TensorVarArgs a) { return APPLY(&op_var, &a, a.input); }
Tensor *tensor_std_args(TensorVarArgs a) { return APPLY(&op_std, &a, a.input); }
