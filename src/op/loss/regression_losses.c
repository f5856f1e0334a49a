/* regression_losses.c - losses of an input x and a target t of the same shape, made of other ops.
 * ops/reduce.h has the formulas. */
#include "op/reduce/reduce.h"

typedef struct LossParams {
    int reduction;
    double parameter;
    bool log_target;
} LossParams;

Tensor *reduce_loss(Tensor *x, int reduction)
{
    if (!x) return NULL;
    if (reduction == TENSOR_MEAN) return tensor_mean(x);
    if (reduction == TENSOR_SUM) return tensor_sum(x);
    if (reduction == TENSOR_BATCHMEAN)
        return tensor_div_scalar(tensor_sum(x), x->ndim ? (double)x->shape[0] : 1);
    return x;
}

static int check(OpCall *c, int last_reduction)
{
    const LossParams *p = op_params(c);
    const Tensor *x = op_input(c, 0), *t = op_input(c, 1);
    if (!shape_equal(shape_of(x), shape_of(t)))
        return op_fail(c, TENSOR_ESHAPE,
                       "input %s, target %s: the shapes must be the same, nothing is broadcast", S(x), S(t));
    if (p->reduction < 0 || p->reduction > last_reduction)
        return op_fail(c, TENSOR_EVALUE, "there is no reduction %d", p->reduction);
    return 0;
}

static int check_plain(OpCall *c) { return check(c, TENSOR_NONE); }
static int check_kl(OpCall *c) { return check(c, TENSOR_BATCHMEAN); }

static int check_parameter(OpCall *c)
{
    const LossParams *p = op_params(c);
    if (check(c, TENSOR_NONE)) return -1;
    bool huber = strcmp(c->op->name, "huber_loss") == 0;
    if (!(huber ? p->parameter > 0 : p->parameter >= 0))
        return op_fail(c, TENSOR_EVALUE,
                       huber ? "delta = %g must be positive" : "beta = %g must not be negative",
                       p->parameter);
    return 0;
}

static Tensor *difference(OpCall *c) { return tensor_sub(op_input(c, 0), op_input(c, 1)); }

static int finish(OpCall *c, Tensor *loss)
{
    return op_set_result(c, 0, reduce_loss(loss, ((const LossParams *)op_params(c))->reduction));
}

static int mse(OpCall *c) { return finish(c, tensor_square(difference(c))); }
static int l1(OpCall *c) { return finish(c, tensor_abs(difference(c))); }

/* d^2 / 2 up to the bend, else bend (|d| - bend / 2): m (d - m / 2) with m = d held to the bend.  Not by
 * where, whose square would turn an infinite d into the gradient 0 * inf, nor by |d|, which has no second
 * derivative at 0. */
static Tensor *bent(Tensor *d, double bend)
{
    Tensor *m = tensor_hardtanh(d, -bend, bend);
    return tensor_mul(m, tensor_sub(d, tensor_mul_scalar(m, .5)));
}

static int smooth_l1(OpCall *c)
{
    const double beta = ((const LossParams *)op_params(c))->parameter;
    Tensor *d = difference(c);
    return finish(c, beta == 0 ? tensor_abs(d) : tensor_div_scalar(bent(d, beta), beta));
}

static int huber(OpCall *c)
{
    return finish(c, bent(difference(c), ((const LossParams *)op_params(c))->parameter));
}

/* t log t is 0 where t is 0: the logarithm is taken of 1 there. */
static int kl(OpCall *c)
{
    Tensor *x = op_input(c, 0), *t = op_input(c, 1);
    if (((const LossParams *)op_params(c))->log_target)
        return finish(c, tensor_mul(tensor_exp(t), tensor_sub(t, x)));
    Tensor *safe = tensor_where(tensor_eq_scalar(t, 0), tensor_ones_like(t), t);
    return finish(c, tensor_mul(t, tensor_sub(tensor_log(safe), x)));
}

#define REDUCTION OP_FIELD(OP_INT, LossParams, reduction, "0")
static const OpField plain_fields[] = { REDUCTION, { 0 } };
static const OpField beta_fields[] = { REDUCTION,
                                       { "beta", OP_DOUBLE, offsetof(LossParams, parameter), "1" },
                                       { 0 } };
static const OpField delta_fields[] = { REDUCTION,
                                        { "delta", OP_DOUBLE, offsetof(LossParams, parameter), "1" },
                                        { 0 } };
static const OpField kl_fields[] = { REDUCTION, OP_FIELD(OP_BOOL, LossParams, log_target, "0"), { 0 } };

#define LOSS .arity = 2, .params = sizeof(LossParams), .flags = OP_ANY_DEVICE | OP_ROUND_ONCE
#define SAMPLES                                                                                      \
    "5,5; 3x4,3x4; 3x4,3x4 {reduction=1}; 2x3x4,2x3x4 {reduction=2}; ,; 0x3,0x3 {reduction=2}; 0,0 " \
    "{reduction=1}"
#define ERRORS "3x4,4 ! ESHAPE; 3,3x1 ! ESHAPE; 3,3 {reduction=7} ! EVALUE"

const TensorOp op_mse_loss = { .name = "mse_loss",
                               .summary = "(x - t)^2",
                               .gradient = "dx = 2 g (x - t), dt = -dx; mean: / n",
                               .fields = plain_fields,
                               .shape = check_plain,
                               .compose = mse,
                               .samples = SAMPLES,
                               .errors = ERRORS,
                               .torch = "nn.functional.mse_loss",
                               LOSS };
const TensorOp op_l1_loss = { .name = "l1_loss",
                              .summary = "|x - t|; gradient 0 at 0",
                              .gradient = "dx = g sign(x - t), dt = -dx; mean: / n",
                              .fields = plain_fields,
                              .shape = check_plain,
                              .compose = l1,
                              .samples =
                                  "5:1..2,5:-1..0; 3x4:1..2,3x4:-1..0 {reduction=1}; "
                                  "2x3:-2..-1,2x3:0..1 {reduction=2}; :1..2,:-1..0; 0x3,0x3 {reduction=2}",
                              .errors = ERRORS,
                              .torch = "nn.functional.l1_loss",
                              LOSS };
const TensorOp op_smooth_l1_loss = {
    .name = "smooth_l1_loss",
    .summary = "d^2 / (2 beta) below beta, else d - beta / 2, d = |x - t|",
    .gradient = "dx = g (x - t) / beta below beta, else g sign(x - t); dt = -dx; mean: / n",
    .fields = beta_fields,
    .shape = check_parameter,
    .compose = smooth_l1,
    .samples = "5,5 {beta=5}; 3x4:1..2,3x4:-1..0 {reduction=1 beta=.5}; 2x3,2x3 {reduction=2 beta=9}; "
               "4:1..2,4:-1..0 {beta=0}; ,; 0x3,0x3 {reduction=2}",
    .errors = ERRORS "; 3,3 {beta=-1} ! EVALUE",
    .torch = "nn.functional.smooth_l1_loss",
    LOSS
};
const TensorOp op_huber_loss = {
    .name = "huber_loss",
    .summary = "d^2 / 2 up to delta, else delta (d - delta / 2), d = |x - t|",
    .gradient = "dx = g (x - t) up to delta, else g delta sign(x - t); dt = -dx; mean: / n",
    .fields = delta_fields,
    .shape = check_parameter,
    .compose = huber,
    .samples = "5,5 {delta=5}; 3x4:1..2,3x4:-1..0 {reduction=1 delta=.5}; 2x3,2x3 {reduction=2 delta=9}; "
               ",; 0x3,0x3 {reduction=2}",
    .errors = ERRORS "; 3,3 {delta=0} ! EVALUE",
    .torch = "nn.functional.huber_loss",
    LOSS
};
const TensorOp op_kl_div = {
    .name = "kl_div",
    .summary = "t (log t - x), x a log-probability; e^t (t - x) with log_target",
    .gradient =
        "dx = -g t, dt = g (log t + 1 - x); log_target: dx = -g e^t, dt = g e^t (t + 1 - x); mean: / n",
    .fields = kl_fields,
    .shape = check_kl,
    .compose = kl,
    .samples = "5,5:.2..1; 3x4,3x4:.2..1 {reduction=1}; 3x4,3x4:.2..1 {reduction=3}; 2x3,2x3 {reduction=2 "
               "log_target=1}; "
               ",:.2..1; 0x3,0x3 {reduction=2}",
    .errors = ERRORS,
    .torch = "nn.functional.kl_div",
    LOSS
};
REGISTER_OP(op_mse_loss);
REGISTER_OP(op_l1_loss);
REGISTER_OP(op_smooth_l1_loss);
REGISTER_OP(op_huber_loss);
REGISTER_OP(op_kl_div);

Tensor *tensor_mse_loss_args(TensorLossArgs a)
{
    if (unwanted(a.log_target, "mse_loss", "log_target")) return NULL;
    return APPLY(&op_mse_loss, &(LossParams){ .reduction = (int)a.reduction }, a.input, a.target);
}

Tensor *tensor_l1_loss_args(TensorLossArgs a)
{
    if (unwanted(a.log_target, "l1_loss", "log_target")) return NULL;
    return APPLY(&op_l1_loss, &(LossParams){ .reduction = (int)a.reduction }, a.input, a.target);
}

Tensor *tensor_smooth_l1_loss_args(TensorSmoothL1Args a)
{
    return APPLY(&op_smooth_l1_loss, &((LossParams){ (int)a.reduction, a.beta, false }), a.input, a.target);
}

Tensor *tensor_huber_loss_args(TensorHuberArgs a)
{
    return APPLY(&op_huber_loss, &((LossParams){ (int)a.reduction, a.delta, false }), a.input, a.target);
}

Tensor *tensor_kl_div_args(TensorLossArgs a)
{
    return APPLY(&op_kl_div, &((LossParams){ (int)a.reduction, 0, a.log_target }), a.input, a.target);
}
