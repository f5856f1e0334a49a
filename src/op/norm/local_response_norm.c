/* local_response_norm.c - each value divided by a power of the mean square over neighbouring channels.
 *
 *   y_c = x_c / (k + alpha / size sum x_j^2)^beta,  j from c - size / 2 on, size channels, 0 outside
 */
#include "op/op.h"

const TensorResponseNormArgs tensor_response_norm_defaults = { TENSOR_RESPONSE_NORM_DEFAULTS };

static int shape(OpCall *c)
{
    const TensorResponseNormArgs *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    if (x->ndim < 3)
        return op_fail(c, TENSOR_ESHAPE, "input %s: want [batch, channels, ...] of rank 3 or more", S(x));
    return p->size < 1 ? op_fail(c, TENSOR_EVALUE, "size %lld: at least 1", (long long)p->size) : 0;
}

/* The means are those of average pooling along the channels; an even window has one place too many at the
 * end. */
static int compose(OpCall *c)
{
    const TensorResponseNormArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (x->numel == 0) return op_set_result(c, 0, tensor_clone(x));
    const int64_t n = x->shape[0], channels = x->shape[1], positions = x->numel / (n * channels);
    Tensor *square = tensor_reshape(tensor_square(x), SHAPE(n, 1, channels, positions));
    Tensor *mean = tensor_avg_pool2d(square, .kernel_sizes = { p->size, 1 }, .strides = { 1, 1 },
                                     .paddings = { p->size / 2, 0 });
    mean = tensor_reshape(tensor_narrow(mean, 2, 0, channels), shape_of(x));
    Tensor *divisor = tensor_pow_scalar(tensor_add_scalar(tensor_mul_scalar(mean, p->alpha), p->k), p->beta);
    return op_set_result(c, 0, tensor_div(x, divisor));
}

static const OpField fields[] = { OP_REQUIRED(TensorResponseNormArgs, size),
                                  OP_OPTION(TensorResponseNormArgs, alpha, beta, k),
                                  { 0 } };

const TensorOp op_local_response_norm = {
    .name = "local_response_norm",
    .autocast = AUTOCAST_F32,
    .summary = "x / (k + alpha mean x^2)^beta, the mean over size neighbouring channels",
    .arity = 1,
    .gradient =
        "with d = k + alpha mean x^2: dx = g d^-beta - 2 alpha beta / size x sum_j g_j x_j d_j^(-beta - 1)",
    PARAMS(TensorResponseNormArgs, tensor_response_norm_defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .torch = "nn.functional.local_response_norm",
    .samples = "2x5x3 {size=3 alpha=.5}; 2x4x2x2 {size=2 alpha=1 beta=.5 k=2}; 1x3x2x2x2 {size=5 alpha=.1}; "
               "2x3x4 {size=1}; 0x3x4 {size=2}; 2x3x0 {size=2}",
    .errors = "2x3 {size=2} ! ESHAPE; 2x3x4 {size=0} ! EVALUE; 2x3x4@i64 {size=2} ! EDTYPE",
};
REGISTER_OPS(&op_local_response_norm);

Tensor *tensor_local_response_norm_args(TensorResponseNormArgs a)
{
    return APPLY(&op_local_response_norm, &a, a.input);
}
