/* var.c - variance and standard deviation over dims.
 *
 *   y = sum (x - mean)^2 / m,  m = max(0, n - correction)        dx = 2 g (x - mean) / m
 *   std = sqrt(var), gradient 0 where it is 0
 *   var_mean, std_mean: with the mean as second result, dx = that of both
 */
#include <string.h>
#include "reduce.h"

static int var_shape(OpCall *c) { return reduce_check(c) ? -1 : reduce_shape(c, op_input(c, 0)->dtype); }

static int var_forward(OpCall *c) { return reduce_forward(c, REDUCE_VAR); }

/* factor g (x - mean) / m */
static int deviation(OpCall *c, Tensor *g, double factor, Tensor **dx)
{
    const ReduceParams *p = op_params(c);
    const TensorShape to = op_input_shape(c, 0);
    const int64_t n = reduce_count(to, p);
    const double m = n ? (double)n - p->param : 1; /* n = 0: dx has no elements */
    Tensor *x = op_saved(c, 0);
    Tensor *mean = tensor_mean(x, .dims = (TensorShape){ p->dims.n, p->dims.at }, .keepdim = true);
    Tensor *each = reduce_spread(p, to, tensor_mul_scalar(g, factor / (m > 0 ? m : 0)));
    dx[0] = tensor_mul(tensor_sub(x, mean), each);
    return dx[0] ? 0 : -1;
}

static int var_backward(OpCall *c, Tensor *dy, Tensor **dx) { return deviation(c, dy, 2, dx); }

static int std_forward(OpCall *c) { return reduce_forward(c, REDUCE_STD); }

static int std_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *y = op_saved_output(c, 0), *zero = tensor_eq_scalar(y, 0);
    if (!zero) return -1;
    Tensor *quotient =
        tensor_div(dy, tensor_where(zero, tensor_ones_like(y), y)); /* of 1 there: finite to any order */
    return deviation(c, tensor_where(zero, tensor_zeros_like(y), quotient), 1, dx);
}

typedef ReduceParams VarParams;
static const OpField fields[] = { REDUCE_FIELDS,
                                  { "correction", OP_DOUBLE, offsetof(VarParams, param), "1" },
                                  { 0 } };

#define SAMPLES                                                                                           \
    "5; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 3x4 {dims=[-2] correction=0}; 0x3 {dims=[1]}; 4x3 " \
    "{correction=2.5}"
#define ERRORS "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[1 1]} ! EVALUE; 3@i64 ! EDTYPE"

const TensorOp op_var = {
    .name = "var",
    .summary = "variance over dims",
    .gradient = "dx = 2 g (x - mean) / (n - correction)",
    .arity = 1,
    .keep = KEEP_INPUT(0),
    .params = sizeof(ReduceParams),
    .fields = fields,
    .shape = var_shape,
    .forward = var_forward,
    .backward = var_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .samples = SAMPLES,
    .errors = ERRORS,
};
const TensorOp op_std = {
    .name = "std",
    .summary = "standard deviation over dims; gradient 0 where it is 0",
    .gradient = "dx = g (x - mean) / ((n - correction) y), 0 where y = 0",
    .arity = 1,
    .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
    .params = sizeof(ReduceParams),
    .fields = fields,
    .shape = var_shape,
    .forward = std_forward,
    .backward = std_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .samples = SAMPLES,
    .errors = ERRORS,
};
REGISTER_OP(op_var);
REGISTER_OP(op_std);

static int var_mean_compose(OpCall *c)
{
    const ReduceParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    const bool root = strcmp(c->op->name, "std_mean") == 0;
    const TensorVarArgs a = {
        .input = x, .dim = TENSOR_ALL, .correction = p->param, .keepdim = p->keepdim, .dims = reduce_dims(p)
    };
    if (op_set_result(c, 0, root ? tensor_std_args(a) : tensor_var_args(a))) return -1;
    return op_set_result(c, 1, tensor_mean(x, .dims = reduce_dims(p), .keepdim = p->keepdim));
}

#define BOTH                                                                                           \
    .arity = 1, .outputs = 2, .params = sizeof(ReduceParams), .fields = fields, .shape = reduce_check, \
    .compose = var_mean_compose, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,             \
    .samples = SAMPLES, .errors = ERRORS
const TensorOp op_var_mean = { .name = "var_mean",
                               .summary = "variance and mean over dims",
                               .gradient = "dx = 2 g (x - mean) / m + g' / n",
                               BOTH };
const TensorOp op_std_mean = { .name = "std_mean",
                               .summary = "standard deviation and mean over dims",
                               .gradient = "dx = g (x - mean) / (m std) + g' / n",
                               BOTH };
REGISTER_OP(op_var_mean);
REGISTER_OP(op_std_mean);

static Tensor *apply_both(const TensorOp *op, const TensorVarArgs *a, const void *site)
{
    Tensor *y[2] = { NULL, NULL };
    ReduceParams p = reduce_params(a->dim, a->dims, a->keepdim, a->correction);
    op_apply(op, &a->input, 1, &p, site, y, 2);
    if (a->mean) *a->mean = y[1];
    return y[0];
}

Tensor *tensor_var_mean_args(TensorVarArgs a) { return apply_both(&op_var_mean, &a, SITE); }
Tensor *tensor_std_mean_args(TensorVarArgs a) { return apply_both(&op_std_mean, &a, SITE); }

Tensor *tensor_var_args(TensorVarArgs a)
{
    if (unwanted_result(a.mean, "var", "mean")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, a.correction);
    return APPLY(&op_var, &p, a.input);
}

Tensor *tensor_std_args(TensorVarArgs a)
{
    if (unwanted_result(a.mean, "std", "mean")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, a.correction);
    return APPLY(&op_std, &p, a.input);
}
