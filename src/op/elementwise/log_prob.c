/* log_prob.c - log-probabilities and entropies of the categorical and the normal distribution.  The Bernoulli
 * distribution's are rows of ops.def.
 *
 * No product has a logarithm that may be -inf: 0 times -inf would be NaN, in the value or in the gradient. */
#include "op/op.h"

static const double log_two_pi = 1.83787706640934548356;

static int broadcasts(OpCall *c)
{
    int64_t shape[2][TENSOR_MAX_DIMS];
    TensorShape all = shape_of(op_input(c, 0));
    for (int i = 1; i < op_inputs(c); i++) {
        const int ndim = shape_broadcast(all, shape_of(op_input(c, i)), shape[i % 2]);
        if (ndim < 0)
            return op_fail(c, TENSOR_ESHAPE, "%s does not broadcast with %s", S(op_input(c, i)),
                           shape_text(all));
        all = (TensorShape){ ndim, shape[i % 2] };
    }
    return 0;
}

/* ---- categorical ----------------------------------------------------------------------------- */

static int logits_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    return x->ndim ? 0 : op_fail(c, TENSOR_ESHAPE, "logits %s: want [..., C]", S(x));
}

static int categorical_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *v = op_input(c, 1);
    int64_t shape[TENSOR_MAX_DIMS];
    if (logits_shape(c)) return -1;
    if (dtype_is_float(v->dtype) || v->dtype == TENSOR_BOOL)
        return op_fail(c, TENSOR_EDTYPE, "value is %s: want integer class indices",
                       tensor_dtype_name(v->dtype));
    const int ndim = shape_broadcast((TensorShape){ x->ndim - 1, x->shape }, shape_of(v), shape);
    if (ndim < 0 || ndim == TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE,
                       "logits %s, value %s: value does not broadcast with the dims before the last", S(x),
                       S(v));
    return 0;
}

static int categorical_compose(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *v = op_input(c, 1);
    int64_t shape[TENSOR_MAX_DIMS];
    const int ndim = shape_broadcast((TensorShape){ x->ndim - 1, x->shape }, shape_of(v), shape);
    Tensor *index = tensor_expand(tensor_to(op_input(c, 1), TENSOR_I64), (TensorShape){ ndim, shape });
    Tensor *log = tensor_log_softmax(op_input(c, 0), -1);
    if (x->ndim == 1) { /* one list for all indices: it is not written out for each */
        log = tensor_gather(log, 0, tensor_reshape(index, SHAPE(-1)));
        return op_set_result(c, 0, tensor_reshape(log, (TensorShape){ ndim, shape }));
    }
    shape[ndim] = x->shape[x->ndim - 1];
    log = tensor_expand(log, (TensorShape){ ndim + 1, shape });
    return op_set_result(c, 0, tensor_squeeze(tensor_gather(log, -1, tensor_unsqueeze(index, -1)), -1));
}

static int categorical_entropy_compose(OpCall *c)
{
    Tensor *log = tensor_log_softmax(op_input(c, 0), -1);
    Tensor *finite = log ? tensor_where(tensor_isinf(log), tensor_zeros_like(log), log) : NULL;
    return op_set_result(c, 0, tensor_neg(tensor_sum(tensor_mul(tensor_exp(log), finite), -1)));
}

/* ---- normal ---------------------------------------------------------------------------------- */

static int normal_compose(OpCall *c)
{
    Tensor *value = op_input(c, 0), *loc = op_input(c, 1), *scale = op_input(c, 2);
    Tensor *half = tensor_mul_scalar(tensor_square(tensor_div(tensor_sub(value, loc), scale)), .5);
    return op_set_result(c, 0,
                         tensor_neg(tensor_add_scalar(tensor_add(half, tensor_log(scale)), log_two_pi / 2)));
}

static int normal_entropy_compose(OpCall *c)
{
    return op_set_result(c, 0, tensor_add_scalar(tensor_log(op_input(c, 0)), .5 + log_two_pi / 2));
}

/* ---- the ops --------------------------------------------------------------------------------- */

const TensorOp op_categorical_log_prob = {
    .name = "categorical_log_prob",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "log softmax(logits)[value]",
    .gradient = "dlogits = g (onehot(value) - softmax(logits))",
    .arity = 2,
    .no_grad_inputs = KEEP_INPUT(1),
    .shape = categorical_shape,
    .compose = categorical_compose,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE | OP_FLOAT_INPUTS,
    .torch = "distributions.Categorical.log_prob",
    .samples = "3x4,3@i64:0..3; 4,@i64:0..3; 4,5@i64:0..3; 2x3x4,3@u8:0..3; 3x1x4,2@i32:0..3; 0x3,0@i64; "
               "2x3,0x2@i64",
    .errors = "3x4,3@i64:4..9 ! EINDEX; 3x4,3@i64:-2..-1 ! EINDEX; 3x4,2@i64 ! ESHAPE; ,@i64 ! ESHAPE; 3x4,3 "
              "! EDTYPE; 3x4@i64,3@i64 ! EDTYPE",
};
const TensorOp op_categorical_entropy = {
    .name = "categorical_entropy",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "-sum p log p, p = softmax(logits); 0 log 0 = 0",
    .gradient = "dlogits = -g p (log p + y)",
    .arity = 1,
    .shape = logits_shape,
    .compose = categorical_entropy_compose,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE | OP_FLOAT_INPUTS,
    .torch = "distributions.Categorical.entropy",
    .samples = "3x4; 4; 2x3x4; 2x1; 0x3",
    .errors = "! ESHAPE; 3@i64 ! EDTYPE",
};
const TensorOp op_normal_log_prob = {
    .name = "normal_log_prob",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "-((value - loc) / scale)^2 / 2 - log scale - log(2 pi) / 2",
    .gradient =
        "z = (value - loc) / scale: dvalue = -g z / scale, dloc = -dvalue, dscale = g (z^2 - 1) / scale",
    .arity = 3,
    .shape = broadcasts,
    .compose = normal_compose,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE | OP_FLOAT_INPUTS | OP_SAME_DTYPE,
    .torch = "distributions.Normal.log_prob",
    .samples = "5,5,5:.5..2; 3x4,4,:.5..2; ,3x1,4:.5..2; ,,:.5..2; 0x3,3,0x1:1..2",
    .errors = "3,4,3:1..2 ! ESHAPE; 3,3,2:1..2 ! ESHAPE; 3@i64,3,3:1..2 ! EDTYPE",
};
const TensorOp op_normal_entropy = {
    .name = "normal_entropy",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "1/2 + log(2 pi) / 2 + log scale",
    .gradient = "dscale = g / scale",
    .arity = 1,
    .compose = normal_entropy_compose,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE | OP_FLOAT_INPUTS,
    .torch = "distributions.Normal.entropy",
    .samples = "5:.5..2; :.5..2; 0x3",
    .errors = "3@i64 ! EDTYPE",
};
REGISTER_OPS(&op_categorical_log_prob, &op_categorical_entropy, &op_normal_log_prob, &op_normal_entropy);

Tensor *tensor_categorical_log_prob(Tensor *logits, Tensor *value)
{
    return APPLY(&op_categorical_log_prob, NULL, logits, value);
}
Tensor *tensor_categorical_entropy(Tensor *logits) { return APPLY(&op_categorical_entropy, NULL, logits); }
Tensor *tensor_normal_log_prob(Tensor *value, Tensor *loc, Tensor *scale)
{
    return APPLY(&op_normal_log_prob, NULL, value, loc, scale);
}
Tensor *tensor_normal_entropy(Tensor *scale) { return APPLY(&op_normal_entropy, NULL, scale); }
