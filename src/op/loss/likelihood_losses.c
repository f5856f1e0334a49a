/* likelihood_losses.c - negative log-likelihoods of a normal and of a Poisson distribution. */
#include <math.h>
#include "cpu/index/host_index.h"
#include "loss.h"

const TensorGaussianNllArgs tensor_gaussian_nll_defaults = { TENSOR_GAUSSIAN_NLL_DEFAULTS };
const TensorPoissonNllArgs tensor_poisson_nll_defaults = { TENSOR_POISSON_NLL_DEFAULTS };

static const double log_two_pi = 1.83787706640934548356;

/* ---- normal ---------------------------------------------------------------------------------- */

/* var has the input's rank, and one size of 1 for another. */
static bool is_shared_over_one_dim(const Tensor *x, const Tensor *var)
{
    int others = 0;
    if (var->ndim != x->ndim) return false;
    for (int d = 0; d < x->ndim; d++) {
        if (var->shape[d] == x->shape[d]) continue;
        if (var->shape[d] != 1) return false;
        others++;
    }
    return others == 1;
}

static bool is_without_last(const Tensor *x, const Tensor *var)
{
    return x->ndim && shape_equal(shape_of(var), (TensorShape){ x->ndim - 1, x->shape });
}

/* Other devices leave it to the logarithm of eps. */
static int check_positive(OpCall *c, const Tensor *var)
{
    Tensor *wide = on_host(var->place) ? own(raw_cast(var, TENSOR_F64)) : NULL;
    if (!wide) return tensor_error_code() ? -1 : 0;
    const double *at = wide->data;
    const int64_t bad = host_beyond(at, wide->numel, 0, (double)INFINITY);
    return bad < 0 ? 0
                   : op_fail(c, TENSOR_EVALUE, "var %s: %g at position %lld is negative", S(var), at[bad],
                             (long long)bad);
}

static int gaussian_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *var = op_input(c, 2);
    if (check_floating(c, 2) || check_alike(c, 0, 1)) return -1;
    if (!shape_equal(shape_of(var), shape_of(x)) && !is_without_last(x, var) &&
        !is_shared_over_one_dim(x, var))
        return op_fail(
            c, TENSOR_ESHAPE,
            "var %s for input %s: want its shape, that without the last dim, or with one dim of size 1",
            S(var), S(x));
    if (!(((const TensorGaussianNllArgs *)op_params(c))->eps > 0))
        return op_fail(c, TENSOR_EVALUE, "eps must be positive");
    return check_positive(c, var);
}

/* max(var, eps) with the gradient of var: what is held is eps + (var - var), the second var outside the
 * graph. */
static Tensor *held(Tensor *var, double eps)
{
    if (!var) return NULL;
    Tensor *low = tensor_add_scalar(tensor_sub(var, tensor_detach(var)), eps);
    return tensor_where(tensor_lt_scalar(var, eps), low, var);
}

static int gaussian_compose(OpCall *c)
{
    const TensorGaussianNllArgs *p = op_params(c);
    const int dtype = loss_dtype(c, KEEP_INPUT(0) | KEEP_INPUT(1) | KEEP_INPUT(2));
    Tensor *x = loss_input(c, 0, dtype), *t = loss_input(c, 1, dtype),
           *v = held(loss_input(c, 2, dtype), p->eps);
    if (!shape_equal(shape_of(op_input(c, 2)), shape_of(op_input(c, 0))) &&
        is_without_last(op_input(c, 0), op_input(c, 2)))
        v = tensor_unsqueeze(v, -1);
    Tensor *loss = tensor_add(tensor_log(v), tensor_div(tensor_square(tensor_sub(x, t)), v));
    loss = tensor_mul_scalar(loss, .5);
    return finish_loss(c, p->full ? tensor_add_scalar(loss, log_two_pi / 2) : loss, dtype);
}

/* ---- Poisson --------------------------------------------------------------------------------- */

/* Stirling's approximation of log t! where t > 1; its logarithms are taken of 1 elsewhere. */
static Tensor *log_factorial(Tensor *t)
{
    Tensor *some = tensor_gt_scalar(t, 1), *safe = some ? tensor_where(some, t, tensor_ones_like(t)) : NULL,
           *log = tensor_log(safe);
    Tensor *y = tensor_sub(tensor_mul(safe, log), safe);
    y = tensor_add(y, tensor_mul_scalar(tensor_add_scalar(log, log_two_pi), .5));
    return y ? tensor_where(some, y, tensor_zeros_like(y)) : NULL;
}

static int poisson_shape(OpCall *c) { return check_alike(c, 0, 1); }

static int poisson_compose(OpCall *c)
{
    const TensorPoissonNllArgs *p = op_params(c);
    const int dtype = (int)tensor_promote_types((TensorDtype)loss_float_dtype(c, KEEP_INPUT(0)),
                                                (TensorDtype)loss_dtype(c, KEEP_INPUT(1)));
    Tensor *x = loss_input(c, 0, dtype), *t = loss_input(c, 1, dtype);
    Tensor *loss = p->log_input ? tensor_sub(tensor_exp(x), tensor_mul(t, x))
                                : tensor_sub(x, tensor_mul(t, tensor_log(tensor_add_scalar(x, p->eps))));
    return finish_loss(c, p->full ? tensor_add(loss, log_factorial(t)) : loss, dtype);
}

/* ---- the ops --------------------------------------------------------------------------------- */

static const OpField gaussian_fields[] = { OP_REDUCTION(TensorGaussianNllArgs),
                                           OP_OPTION(TensorGaussianNllArgs, full, eps),
                                           { 0 } };
static const OpField poisson_fields[] = { OP_REDUCTION(TensorPoissonNllArgs),
                                          OP_OPTION(TensorPoissonNllArgs, full, log_input, eps),
                                          { 0 } };

const TensorOp op_gaussian_nll_loss = {
    .name = "gaussian_nll_loss",
    .autocast = AUTOCAST_PARTS,
    .summary = "(log v + (x - t)^2 / v) / 2, v = max(var, eps)",
    .gradient = "dx = g (x - t) / v, dt = -dx, dvar = g (1 - (x - t)^2 / v) / (2 v)",
    .arity = 3,
    PARAMS(TensorGaussianNllArgs, tensor_gaussian_nll_defaults, gaussian_fields),
    .shape = gaussian_shape,
    .compose = gaussian_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.gaussian_nll_loss",
    .samples = "5,5,5:.5..2; 3x4,3x4,3:.5..2 {reduction=sum full=1}; 3x4,3x4,3x1:.5..2 {reduction=none}; "
               "2x3x2,2x3x2,2x1x2:.5..2; 3@i64,3@i64,3:.5..2; ,,:.5..2; 0x3,0x3,0x3:1..2 {reduction=none}",
    .errors = "3,4,3:1..2 ! ESHAPE; 3,3x1,3:1..2 ! ESHAPE; 3x4,3x4,4:1..2 ! ESHAPE; 3x4,3x4,1x1:1..2 ! "
              "ESHAPE; 3,3,3:-2..-1 ! EVALUE; "
              "3,3,3:1..2 {eps=0} ! EVALUE; 3,3,3:1..2 {reduction=3} ! EVALUE; 3,3,3@i64:1..2 ! EDTYPE",
};
const TensorOp op_poisson_nll_loss = {
    .name = "poisson_nll_loss",
    .autocast = AUTOCAST_F32,
    .summary = "e^x - t x, or x - t log(x + eps) without log_input",
    .gradient = "dx = g (e^x - t), dt = -g x; g (1 - t / (x + eps)), -g log(x + eps) without log_input",
    .arity = 2,
    PARAMS(TensorPoissonNllArgs, tensor_poisson_nll_defaults, poisson_fields),
    .shape = poisson_shape,
    .compose = poisson_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.poisson_nll_loss",
    .samples = "5,5:0..3; 3x4,3x4:1.1..3 {reduction=sum full=1}; 2x3:.5..2,2x3:.1..0.9 {reduction=none "
               "log_input=0 full=1}; ,:0..1; 0x3,0x3 {reduction=none}; 4,4@i64; 4@i64,4",
    .errors = "3,4 ! ESHAPE; 3,3x1 ! ESHAPE; 3,3 {reduction=3} ! EVALUE",
};
REGISTER_OPS(&op_gaussian_nll_loss, &op_poisson_nll_loss);

Tensor *tensor_gaussian_nll_loss_args(TensorGaussianNllArgs a)
{
    return APPLY(&op_gaussian_nll_loss, &a, a.input, a.target, a.var);
}

Tensor *tensor_poisson_nll_loss_args(TensorPoissonNllArgs a)
{
    return APPLY(&op_poisson_nll_loss, &a, a.input, a.target);
}
