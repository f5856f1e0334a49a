/* alpha_dropout.c - dropout that keeps mean 0 and variance 1 of what selu gives.
 *
 *   y = a (m x + (1 - m) u) + b,  m = 1 with probability 1 - p,  u = -1.758... (selu's limit)
 *   a = 1 / sqrt((1 - p) (1 + p u^2)),  b = -a p u              dx = a m g
 *
 * The mask is chosen by, not multiplied with: dropped elements do not matter, whatever they were. */
#include <math.h>
#include "dropout.h"

typedef struct DropoutParams {
    double p;
    bool training;
} DropoutParams;

static const double limit = -1.7580993408473766;

static int check(OpCall *c)
{
    const DropoutParams *p = op_params(c);
    return p->p >= 0 && p->p <= 1 ? 0
                                  : op_fail(c, TENSOR_EVALUE, "p = %g: a probability lies in [0, 1]", p->p);
}

static int check_channels(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->ndim < 2) return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, ...]", S(x));
    return check(c);
}

static int drop(OpCall *c, TensorShape mask_shape)
{
    const DropoutParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (!p->training || p->p == 0) return op_set_result(c, 0, tensor_clone(x));
    const double a = p->p < 1 ? 1 / sqrt((1 - p->p) * (1 + p->p * limit * limit)) : 0;
    Tensor *mask = dropout_mask(c, mask_shape, p->p, x->place);
    Tensor *other = mask ? own(new_tensor(SHAPE(), x->dtype, x->place)) : NULL;
    if (!other || raw_fill(other, a * (1 - p->p) * limit)) return -1;
    return op_set_result(
        c, 0, tensor_where(mask, tensor_add_scalar(tensor_mul_scalar(x, a), -a * p->p * limit), other));
}

static int compose(OpCall *c) { return drop(c, shape_of(op_input(c, 0))); }

static int compose_channels(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    int64_t dim[TENSOR_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) dim[i] = i < 2 ? x->shape[i] : 1;
    return drop(c, (TensorShape){ x->ndim, dim });
}

static const OpField fields[] = { OP_FIELD(OP_DOUBLE, DropoutParams, p, "0.5"),
                                  OP_FIELD(OP_BOOL, DropoutParams, training, "1"),
                                  { 0 } };

#define DROPOUT                                                                                          \
    .gradient = "dx = a m g, m the mask", .arity = 1, .params = sizeof(DropoutParams), .fields = fields, \
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_RANDOM | OP_ROUND_ONCE

const TensorOp op_alpha_dropout = {
    .name = "alpha_dropout",
    .summary =
        "elements set to selu's limit with probability p, then scaled and shifted to mean 0, variance 1",
    DROPOUT,
    .shape = check,
    .compose = compose,
    .torch = "nn.functional.alpha_dropout",
    .samples = "4x5; 20 {p=.25}; 3x4 {p=0}; 3x4 {p=1}; 3x4 {training=0}; {p=.5}; 0x3",
    .errors = "3 {p=-.1} ! EVALUE; 3 {p=1.5} ! EVALUE; 3@i64 ! EDTYPE",
};
const TensorOp op_feature_alpha_dropout = {
    .name = "feature_alpha_dropout",
    .summary = "alpha_dropout of whole channels",
    DROPOUT,
    .shape = check_channels,
    .compose = compose_channels,
    .torch = "nn.functional.feature_alpha_dropout",
    .samples = "3x4x2x2; 4x5 {p=.25}; 2x3x4 {p=1}; 2x3x2x2 {training=0}; 0x3x2x2; 2x3x0x2",
    .errors = "3 ! ESHAPE; 2x3 {p=2} ! EVALUE; 2x3@i64 ! EDTYPE",
};
REGISTER_OP(op_alpha_dropout);
REGISTER_OP(op_feature_alpha_dropout);

Tensor *tensor_alpha_dropout(Tensor *x, double p, bool training)
{
    return drops_nothing(x, p, training) ? borrow(x)
                                         : APPLY(&op_alpha_dropout, &((DropoutParams){ p, training }), x);
}

Tensor *tensor_feature_alpha_dropout(Tensor *x, double p, bool training)
{
    const bool same = drops_nothing(x, p, training) && x->ndim >= 2;
    return same ? borrow(x) : APPLY(&op_feature_alpha_dropout, &((DropoutParams){ p, training }), x);
}

Tensor *tensor_alpha_dropout_(Tensor *x, double p, bool training)
{
    return drops_nothing(x, p, training)
               ? borrow(x)
               : op_apply_(&op_alpha_dropout, &x, 1, &((DropoutParams){ p, training }), SITE);
}

Tensor *tensor_feature_alpha_dropout_(Tensor *x, double p, bool training)
{
    const bool same = drops_nothing(x, p, training) && x->ndim >= 2;
    return same ? borrow(x)
                : op_apply_(&op_feature_alpha_dropout, &x, 1, &((DropoutParams){ p, training }), SITE);
}
