/* regression_losses.c - losses of an input x and a target t of the same shape, composed of other ops.
 * ops/loss.h has the formulas. */
#include "loss.h"

enum { BOTH = KEEP_INPUT(0) | KEEP_INPUT(1), WEIGHT = KEEP_INPUT(2) };

const TensorLossArgs tensor_loss_defaults = { TENSOR_LOSS_DEFAULTS };
const TensorWeightedLossArgs tensor_weighted_loss_defaults = { TENSOR_WEIGHTED_LOSS_DEFAULTS };
const TensorSmoothL1Args tensor_smooth_l1_defaults = { TENSOR_SMOOTH_L1_DEFAULTS };
const TensorHuberArgs tensor_huber_defaults = { TENSOR_HUBER_DEFAULTS };
const TensorKlDivArgs tensor_kl_div_defaults = { TENSOR_KL_DIV_DEFAULTS };

/* Of integers alone only |x - t| is one, and its mean is none. */
static int check(OpCall *c)
{
    const bool weighted = op_inputs(c) > 2 && op_input(c, 2);
    return check_alike(c, 0, 1) || (weighted && check_alike(c, 0, 2)) ? -1 : 0;
}

static int check_float(OpCall *c)
{
    const int dtype = loss_dtype(c, BOTH);
    if (!dtype_is_float(dtype))
        return op_fail(c, TENSOR_EDTYPE, "operands are %s and %s: it takes floating dtypes",
                       tensor_dtype_name(op_input(c, 0)->dtype), tensor_dtype_name(op_input(c, 1)->dtype));
    return check(c);
}

/* Weights may be floats. */
static int check_mse(OpCall *c) { return op_input(c, 2) ? check(c) : check_float(c); }

static int check_smooth_l1(OpCall *c)
{
    const TensorSmoothL1Args *a = op_params(c);
    if (!(a->beta >= 0)) return op_fail(c, TENSOR_EVALUE, "beta = %g must not be negative", a->beta);
    return a->beta > 0 ? check_float(c) : check(c);
}

static int check_huber(OpCall *c)
{
    const TensorHuberArgs *a = op_params(c);
    if (!(a->delta > 0)) return op_fail(c, TENSOR_EVALUE, "delta = %g must be positive", a->delta);
    return check_floating(c, 0) ? -1 : check(c);
}

static Tensor *difference(OpCall *c)
{
    const int dtype = loss_dtype(c, BOTH);
    return tensor_sub(loss_input(c, 0, dtype), loss_input(c, 1, dtype));
}

static int finish(OpCall *c, Tensor *loss) { return finish_loss(c, loss, loss_dtype(c, BOTH)); }

/* The loss of each element times its weight, in the dtype of both. */
static Tensor *weighted(OpCall *c, Tensor *loss)
{
    return op_input(c, 2) ? tensor_mul(loss, loss_input(c, 2, loss_dtype(c, BOTH | WEIGHT))) : loss;
}

/* A mean by the sum of the weights. */
static int finish_weighted(OpCall *c, Tensor *loss)
{
    const int dtype = loss_dtype(c, BOTH | WEIGHT);
    loss = weighted(c, loss);
    if (!op_input(c, 2) || loss_reduction(c) != TENSOR_MEAN) return finish_loss(c, loss, dtype);
    Tensor *y = tensor_div(tensor_sum(loss), tensor_sum(loss_input(c, 2, dtype)));
    return op_set_result(c, 0, y ? tensor_to(y, (TensorDtype)loss_float_dtype(c, BOTH | WEIGHT)) : NULL);
}

static int mse(OpCall *c) { return finish_weighted(c, tensor_square(difference(c))); }
static int l1(OpCall *c) { return finish_weighted(c, tensor_abs(difference(c))); }

static Tensor *huber_elements(OpCall *c, double bend)
{
    const int dtype = loss_dtype(c, BOTH);
    return tensor_huber_elements(loss_input(c, 0, dtype), loss_input(c, 1, dtype), bend);
}

/* The sum is divided, not its terms. */
static int smooth_l1(OpCall *c)
{
    const double beta = ((const TensorSmoothL1Args *)op_params(c))->beta;
    if (beta == 0) return finish(c, tensor_abs(difference(c)));
    Tensor *loss = reduce_loss(huber_elements(c, beta), loss_reduction(c));
    Tensor *y = tensor_div_scalar(loss, beta);
    return op_set_result(c, 0, y ? tensor_to(y, (TensorDtype)loss_dtype(c, BOTH)) : NULL);
}

/* In the dtype of the input and the weight, as PyTorch's, where the others promote. */
static int huber(OpCall *c)
{
    Tensor *loss = huber_elements(c, ((const TensorHuberArgs *)op_params(c))->delta);
    return finish_loss(c, weighted(c, loss), loss_dtype(c, KEEP_INPUT(0) | WEIGHT));
}

static int check_kl(OpCall *c) { return check_floating(c, 1) ? -1 : check_loss(c); }

/* t log t is 0 where t is 0: the logarithm is taken of 1 there. */
static int kl(OpCall *c)
{
    const int dtype = loss_dtype(c, BOTH);
    Tensor *x = loss_input(c, 0, dtype), *t = loss_input(c, 1, dtype);
    if (((const TensorKlDivArgs *)op_params(c))->log_target)
        return finish(c, tensor_mul(tensor_exp(t), tensor_sub(t, x)));
    Tensor *none = tensor_eq_scalar(t, 0), *safe = none ? tensor_where(none, tensor_ones_like(t), t) : NULL;
    return finish(c, tensor_mul(t, tensor_sub(tensor_log(safe), x)));
}

static const char *const kl_reductions[] = { "mean", "sum", "none", "batchmean", NULL };

static const OpField weighted_fields[] = { OP_REDUCTION(TensorWeightedLossArgs), { 0 } };
static const OpField smooth_l1_fields[] = { OP_REDUCTION(TensorSmoothL1Args),
                                            OP_OPTION(TensorSmoothL1Args, beta),
                                            { 0 } };
static const OpField huber_fields[] = { OP_REDUCTION(TensorHuberArgs),
                                        OP_OPTION(TensorHuberArgs, delta),
                                        { 0 } };
static const OpField kl_fields[] = { OP_CHOICE(TensorKlDivArgs, reduction, kl_reductions),
                                     OP_OPTION(TensorKlDivArgs, log_target),
                                     { 0 } };

#define LOSS(options, defaults_) \
    .arity = 2, .params = sizeof(options), .defaults = &(defaults_), .flags = OP_ANY_DEVICE
#define WEIGHTED(options, defaults_)                                                     \
    .arity = 3, .optional = WEIGHT, .params = sizeof(options), .defaults = &(defaults_), \
    .flags = OP_ANY_DEVICE
#define SAMPLES                                                                                              \
    "5,5; 3x4,3x4; 3x4,3x4 {reduction=sum}; 2x3x4,2x3x4 {reduction=none}; ,; 0x3,0x3 {reduction=none}; 0,0 " \
    "{reduction=sum}"
#define WEIGHTED_SAMPLES                                                                               \
    "5,5,-; 5,5,5:.5..2; 3x4,3x4,- {reduction=sum}; 3x4,3x4,3x4 {reduction=sum}; 2x3x4,2x3x4,2x3x4 "   \
    "{reduction=none}; ,,-; ,,:.5..2; 0x3,0x3,- {reduction=none}; 0,0,- {reduction=sum}; 0x3,0x3,0x3 " \
    "{reduction=sum}"
#define ERRORS "3x4,4 ! ESHAPE; 3,3x1 ! ESHAPE; 3,3 {reduction=7} ! EVALUE"
#define WEIGHTED_ERRORS \
    "3x4,4,- ! ESHAPE; 3,3x1,- ! ESHAPE; 3x4,3x4,4 ! ESHAPE; 3,3, ! ESHAPE; 3,3,- {reduction=7} ! EVALUE"

const TensorOp op_mse_loss = {
    .name = "mse_loss",
    .autocast = AUTOCAST_F32,
    .summary = "w (x - t)^2",
    .gradient = "dx = 2 w g (x - t), dt = -dx, dw = g (x - t)^2; mean: / n; with weights / s, s their sum, "
                "and dw = g ((x - t)^2 - y) / s",
    .fields = weighted_fields,
    .shape = check_mse,
    .compose = mse,
    .samples = WEIGHTED_SAMPLES,
    .errors = WEIGHTED_ERRORS "; 3@i64,3@i64,- ! EDTYPE",
    .torch = "nn.functional.mse_loss",
    WEIGHTED(TensorWeightedLossArgs, tensor_weighted_loss_defaults)
};
const TensorOp op_l1_loss = {
    .name = "l1_loss",
    .autocast = AUTOCAST_F32,
    .summary = "w |x - t|; gradient 0 at 0",
    .gradient =
        "dx = w g sign(x - t), dt = -dx, dw = g |x - t|; mean: / n; with weights / s, s their sum, and "
        "dw = g (|x - t| - y) / s",
    .fields = weighted_fields,
    .shape = check,
    .compose = l1,
    .samples = "5:1..2,5:-1..0,-; 3x4:1..2,3x4:-1..0,3x4:.5..2; 3x4:1..2,3x4:-1..0,- {reduction=sum}; "
               "2x3:-2..-1,2x3:0..1,2x3 {reduction=none}; :1..2,:-1..0,-; 0x3,0x3,- {reduction=none}",
    .errors = WEIGHTED_ERRORS "; 3@i64,3@i64,- ! EDTYPE",
    .torch = "nn.functional.l1_loss",
    WEIGHTED(TensorWeightedLossArgs, tensor_weighted_loss_defaults)
};
const TensorOp op_smooth_l1_loss = {
    .name = "smooth_l1_loss",
    .autocast = AUTOCAST_F32,
    .summary = "d^2 / (2 beta) below beta, else d - beta / 2, d = |x - t|",
    .gradient = "dx = g (x - t) / beta below beta, else g sign(x - t); dt = -dx; mean: / n",
    .fields = smooth_l1_fields,
    .shape = check_smooth_l1,
    .compose = smooth_l1,
    .samples = "5,5 {beta=5}; 3x4:1..2,3x4:-1..0 {reduction=sum beta=.5}; 2x3,2x3 {reduction=none beta=9}; "
               "4:1..2,4:-1..0 {beta=0}; ,; 0x3,0x3 {reduction=none}",
    .errors = ERRORS "; 3,3 {beta=-1} ! EVALUE; 3@i64,3@i64 ! EDTYPE",
    .torch = "nn.functional.smooth_l1_loss",
    LOSS(TensorSmoothL1Args, tensor_smooth_l1_defaults)
};
const TensorOp op_huber_loss = {
    .name = "huber_loss",
    .autocast = AUTOCAST_F32,
    .summary = "w d^2 / 2 up to delta, else w delta (d - delta / 2), d = |x - t|",
    .gradient =
        "dx = w g (x - t) up to delta, else w g delta sign(x - t); dt = -dx, dw = g y at w = 1; mean: / n",
    .fields = huber_fields,
    .shape = check_huber,
    .compose = huber,
    .samples = "5,5,- {delta=5}; 5,5,5 {delta=5}; 3x4:1..2,3x4:-1..0,3x4 {reduction=sum delta=.5}; "
               "2x3,2x3,- {reduction=none delta=9}; ,,-; 0x3,0x3,- {reduction=none}",
    .errors = WEIGHTED_ERRORS "; 3,3,- {delta=0} ! EVALUE; 3@i64,3,- ! EDTYPE",
    .torch = "nn.functional.huber_loss",
    WEIGHTED(TensorHuberArgs, tensor_huber_defaults)
};
const TensorOp op_kl_div = {
    .name = "kl_div",
    .autocast = AUTOCAST_F32,
    .summary = "t (log t - x), x a log-probability; e^t (t - x) with log_target",
    .gradient =
        "dx = -g t, dt = g (log t + 1 - x); log_target: dx = -g e^t, dt = g e^t (t + 1 - x); mean: / n",
    .fields = kl_fields,
    .shape = check_kl,
    .compose = kl,
    .samples = "5,5:.2..1; 3x4,3x4:.2..1 {reduction=sum}; 3x4,3x4:.2..1 {reduction=batchmean}; 2x3,2x3 "
               "{reduction=none log_target=1}; ,:.2..1; 0x3,0x3 {reduction=none}",
    .errors = ERRORS "; 3,3@i64 ! EDTYPE",
    .torch = "nn.functional.kl_div",
    LOSS(TensorKlDivArgs, tensor_kl_div_defaults)
};
REGISTER_OPS(&op_mse_loss, &op_l1_loss, &op_smooth_l1_loss, &op_huber_loss, &op_kl_div);

Tensor *tensor_mse_loss_args(TensorWeightedLossArgs a)
{
    return APPLY(&op_mse_loss, &a, a.input, a.target, a.weight);
}
Tensor *tensor_l1_loss_args(TensorWeightedLossArgs a)
{
    return APPLY(&op_l1_loss, &a, a.input, a.target, a.weight);
}
Tensor *tensor_smooth_l1_loss_args(TensorSmoothL1Args a)
{
    return APPLY(&op_smooth_l1_loss, &a, a.input, a.target);
}
Tensor *tensor_huber_loss_args(TensorHuberArgs a)
{
    return APPLY(&op_huber_loss, &a, a.input, a.target, a.weight);
}
Tensor *tensor_kl_div_args(TensorKlDivArgs a) { return APPLY(&op_kl_div, &a, a.input, a.target); }
