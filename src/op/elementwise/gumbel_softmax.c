/* gumbel_softmax.c - a differentiable sample of a categorical distribution.
 *
 *   y = softmax((x - log e) / tau), e exponential          dx = y (g - sum g y) / tau
 *   hard: the one-hot of its largest element + y - y; the value is exact, the gradient that of + y */
#include <math.h>
#include "op/reduce/reduce.h"
#include "dropout.h"

const TensorGumbelSoftmaxArgs tensor_gumbel_softmax_defaults = { TENSOR_GUMBEL_SOFTMAX_DEFAULTS };

static int shape(OpCall *c)
{
    TensorGumbelSoftmaxArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    if (!(p->tau > 0)) return op_fail(c, TENSOR_EVALUE, "tau = %g: want a positive temperature", p->tau);
    p->dim = call_dim(c, p->dim, shape_of(x));
    return p->dim < 0 ? -1 : 0;
}

/* Of x's shape; by the counter-based generator at least half of what the largest number below 1 lacks of 1,
 * so that its logarithm is finite. */
static Tensor *exponential_like(OpCall *c, const Tensor *x)
{
    if (draws_as_torch(x->place))
        return tensor_exponential_(own(new_tensor(shape_of(x), x->dtype, x->place)), 1);
    Tensor *u = philox_uniform(c->name, shape_of(x), x->dtype, x->place);
    return tensor_clamp(tensor_neg(tensor_log1p(tensor_neg(u))), x->dtype == TENSOR_F64 ? 0x1p-33 : 0x1p-25,
                        (double)INFINITY);
}

static int compose(OpCall *c)
{
    const TensorGumbelSoftmaxArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *noise = exponential_like(c, x);
    Tensor *y = tensor_softmax(tensor_mul_scalar(tensor_sub(x, tensor_log(noise)), 1 / p->tau), p->dim);
    if (p->hard && y && y->numel) {
        Tensor *largest = x->ndim ? tensor_argmax(y, .dim = p->dim, .keepdim = true) : tensor_argmax(y);
        Tensor *one_hot = tensor_scatter_value(tensor_zeros_like(y), p->dim, largest, 1);
        y = tensor_add(one_hot, tensor_sub(y, tensor_detach(y)));
    }
    return op_set_result(c, 0, y);
}

static const OpField fields[] = { OP_OPTION(TensorGumbelSoftmaxArgs, tau, hard, dim), { 0 } };

const TensorOp op_gumbel_softmax = {
    .name = "gumbel_softmax",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "softmax of logits with Gumbel noise; hard: its one-hot, with the soft gradient",
    .arity = 1,
    .gradient = "dx = y (g - sum g y) / tau, y the soft value",
    PARAMS(TensorGumbelSoftmaxArgs, tensor_gumbel_softmax_defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_RANDOM | OP_ROUND_ONCE,
    .torch = "nn.functional.gumbel_softmax",
    .samples = "5; 3x4 {tau=.7}; 3x4 {dim=0}; 2x3x4 {tau=2 dim=1}; ; 0x3; 3x0",
    .errors = "3 {tau=0} ! EVALUE; 3 {tau=nan} ! EVALUE; 3x4 {dim=2} ! EINDEX; 3@i64 ! EDTYPE",
};
REGISTER_OPS(&op_gumbel_softmax);

Tensor *tensor_gumbel_softmax_args(TensorGumbelSoftmaxArgs a)
{
    return APPLY(&op_gumbel_softmax, &a, a.logits);
}
