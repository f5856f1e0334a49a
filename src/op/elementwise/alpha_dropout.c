/* alpha_dropout.c - dropout that keeps selu's mean 0 and variance 1.
 *
 *   y = a (m x + (1 - m) u) + b,  m = 1 with probability 1 - p,  u = -1.758... (selu's limit)
 *   a = 1 / sqrt((1 - p) (1 + p u^2)),  b = -a p u              dx = a m g
 *
 * The mask selects, it does not multiply: a dropped NaN or infinity has no effect. */
#include <math.h>
#include "dropout.h"

static const double limit = -1.7580993408473766;

static int drop(OpCall *c, Tensor *mask)
{
    const double p = ((const TensorDropoutArgs *)op_params(c))->p;
    Tensor *x = op_input(c, 0);
    const double a = p < 1 ? 1 / sqrt((1 - p) * (1 + p * limit * limit)) : 0;
    Tensor *other = mask ? own(new_tensor(SHAPE(), x->dtype, x->place)) : NULL;
    if (!other || raw_fill(other, a * (1 - p) * limit)) return -1;
    return op_set_result(
        c, 0, tensor_where(mask, tensor_add_scalar(tensor_mul_scalar(x, a), -a * p * limit), other));
}

static int compose(OpCall *c)
{
    const TensorDropoutArgs *a = op_params(c);
    Tensor *x = op_input(c, 0);
    return drops(a, x) ? drop(c, dropout_mask_like(c, x, a->p)) : op_set_result(c, 0, x);
}

static int compose_channels(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    return drops(op_params(c), x) ? drop(c, dropout_mask_of_channels(c, 2)) : op_set_result(c, 0, x);
}

#define DROPOUT                                                                            \
    .gradient = "dx = a m g, m the mask", .arity = 1, .params = sizeof(TensorDropoutArgs), \
    .defaults = &tensor_dropout_defaults, .fields = dropout_fields,                        \
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_RANDOM | OP_MAY_ALIAS | OP_ROUND_ONCE

const TensorOp op_alpha_dropout = {
    .name = "alpha_dropout",
    .autocast = AUTOCAST_AS_IS,
    .summary =
        "elements set to selu's limit with probability p, then scaled and shifted to mean 0, variance 1",
    DROPOUT,
    .shape = dropout_check,
    .compose = compose,
    .torch = "nn.functional.alpha_dropout",
    .samples = "4x5; 20 {p=.25}; 3x4 {p=0}; 3x4 {p=1}; 3x4 {training=0}; {p=.5}; 0x3",
    .errors = "3 {p=-.1} ! EVALUE; 3 {p=1.5} ! EVALUE; 3@i64 ! EDTYPE",
};
const TensorOp op_feature_alpha_dropout = {
    .name = "feature_alpha_dropout",
    .autocast = AUTOCAST_AS_IS,
    .summary = "alpha_dropout of whole channels",
    DROPOUT,
    .shape = dropout_check_channels,
    .compose = compose_channels,
    .torch = "nn.functional.feature_alpha_dropout",
    .samples =
        "3x4x2x2; 4x5 {p=.25}; 2x3x4 {p=1}; 2x3x2x2 {training=0}; 0x3x2x2; 2x3x0x2; 3 {training=0}; {p=0}; 0",
    .errors = "3 ! ESHAPE; 2x3 {p=2} ! EVALUE; 2x3@i64 ! EDTYPE",
};
REGISTER_OPS(&op_alpha_dropout, &op_feature_alpha_dropout);

Tensor *tensor_alpha_dropout_args(TensorDropoutArgs a) { return dropout_apply(&op_alpha_dropout, &a, SITE); }
Tensor *tensor_alpha_dropout_args_(TensorDropoutArgs a)
{
    return dropout_apply_(&op_alpha_dropout, &a, SITE);
}

Tensor *tensor_feature_alpha_dropout_args(TensorDropoutArgs a)
{
    return dropout_apply(&op_feature_alpha_dropout, &a, SITE);
}

Tensor *tensor_feature_alpha_dropout_args_(TensorDropoutArgs a)
{
    return dropout_apply_(&op_feature_alpha_dropout, &a, SITE);
}
