/* instance_norm.c - normalisation of each channel of each sample.
 *
 *   x [N, C, ...] seen as [1, N C, ...]: batch_norm of it, with the weights repeated N times
 *   running = the mean over the samples of batch_norm's N C running values */
#include "norm_gradient.h"

const TensorInstanceNormArgs tensor_instance_norm_defaults = { TENSOR_INSTANCE_NORM_DEFAULTS };

enum { X, RUNNING_MEAN, RUNNING_VAR, WEIGHT, BIAS };

static int shape(OpCall *c)
{
    static const char *const name[] = { "input", "running_mean", "running_var", "weight", "bias" };
    const TensorInstanceNormArgs *p = op_params(c);
    const Tensor *x = op_input(c, X);
    const bool mean = op_input(c, RUNNING_MEAN), var = op_input(c, RUNNING_VAR);
    if (x->ndim < 2) return op_fail(c, TENSOR_ESHAPE, "input %s: want [batch, channels, ...]", S(x));
    for (int i = RUNNING_MEAN; i <= BIAS; i++) {
        const Tensor *t = op_input(c, i);
        if (t && (t->ndim != 1 || t->shape[0] != x->shape[1]))
            return op_fail(c, TENSOR_ESHAPE, "%s %s, input %s: want [%lld], a value for each channel",
                           name[i], S(t), S(x), (long long)x->shape[1]);
    }
    if (norm_check_dtypes(c)) return -1;
    if (mean != var)
        return op_fail(c, TENSOR_EVALUE, "%s without %s", name[mean ? 1 : 2], name[mean ? 2 : 1]);
    if (!p->use_input_stats && !mean)
        return op_fail(c, TENSOR_EVALUE, "running_mean and running_var are needed without use_input_stats");
    int64_t positions = 1;
    for (int i = 2; i < x->ndim; i++) positions *= x->shape[i];
    if (p->use_input_stats && positions == 1)
        return op_fail(c, TENSOR_ESHAPE, "input %s: one position for each channel has no variance", S(x));
    return 0;
}

static Tensor *each_sample(Tensor *t, int64_t samples) { return t ? tensor_repeat(t, SHAPE(samples)) : NULL; }

/* running = the mean of all over the samples, for both, once the op has succeeded. */
static int follow(OpCall *c, Tensor *const running[2], Tensor *const all[2], int64_t samples)
{
    for (int i = 0; i < 2; i++)
        if (op_commit(c, running[i],
                      tensor_mean(tensor_reshape(all[i], SHAPE(samples, running[i]->shape[0])), 0)))
            return -1;
    return 0;
}

static int compose(OpCall *c)
{
    const TensorInstanceNormArgs *p = op_params(c);
    Tensor *x = op_input(c, X), *mean = op_input(c, RUNNING_MEAN), *var = op_input(c, RUNNING_VAR);
    const int64_t n = x->shape[0], channels = n * x->shape[1];
    int64_t positions = 1;
    for (int i = 2; i < x->ndim; i++) positions *= x->shape[i];
    Tensor *means = each_sample(mean, n), *vars = each_sample(var, n);
    Tensor *weights = each_sample(op_input(c, WEIGHT), n), *biases = each_sample(op_input(c, BIAS), n);
    if (tensor_error_code()) return -1;
    TensorBatchNormArgs batch = tensor_batch_norm_defaults;
    batch.training = p->use_input_stats, batch.momentum = p->momentum, batch.eps = p->eps;
    Tensor *y = APPLY(&op_batch_norm, &batch, tensor_reshape(x, SHAPE(1, channels, positions)), means, vars,
                      weights, biases);
    y = y ? tensor_reshape(y, shape_of(x)) : NULL;
    if (!y) return -1;
    if (p->use_input_stats && mean && x->numel) {
        const bool graph = tensor_set_grad_enabled(false);
        const int status = follow(c, (Tensor *[]){ mean, var }, (Tensor *[]){ means, vars }, n);
        tensor_set_grad_enabled(graph);
        if (status) return -1;
    }
    return op_set_result(c, 0, y);
}

static const OpField fields[] = { OP_OPTION(TensorInstanceNormArgs, use_input_stats, momentum, eps), { 0 } };

const TensorOp op_instance_norm = {
    .name = "instance_norm",
    .autocast = AUTOCAST_AS_IS,
    .summary = "each channel of each sample normalised, times weight plus bias",
    .arity = 5,
    .gradient = "dx = w r (g - mean g - xn mean(g xn)), xn = (x - mean) r, r = 1 / sqrt(var + eps), means "
                "over the channel of the sample; running ones: dx = w r g; dw = sum g xn, db = sum g",
    .optional = KEEP_INPUT(RUNNING_MEAN) | KEEP_INPUT(RUNNING_VAR) | KEEP_INPUT(WEIGHT) | KEEP_INPUT(BIAS),
    .no_grad_inputs = KEEP_INPUT(RUNNING_MEAN) | KEEP_INPUT(RUNNING_VAR),
    PARAMS(TensorInstanceNormArgs, tensor_instance_norm_defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.instance_norm",
    .samples = "2x3x5,-,-,3,3; 2x2x3x2,-,-,2,- {eps=.5}; 2x2x4,-,-,-,2; 1x2x2x2x2,-,-,-,-; 0x3x4,-,-,3,3; "
               "2x3x4,3,3:.5..2,3,3 {use_input_stats=0}; 2x3,3,3:.5..2,-,- {use_input_stats=0}",
    .errors = "3,-,-,-,- ! ESHAPE; 2x3x1,-,-,3,3 ! ESHAPE; 2x3,-,-,3,3 ! ESHAPE; 2x3x4,-,-,4,3 ! ESHAPE; "
              "2x3x4,3,-,3,3 ! EVALUE; 2x3x4,-,-,3,3 {use_input_stats=0} ! EVALUE; 2x3x4@i64,-,-,-,- ! "
              "EDTYPE; 2x3x4,3@i64,3@i64,3,3 ! EDTYPE",
};
REGISTER_OPS(&op_instance_norm);

Tensor *tensor_instance_norm_args(TensorInstanceNormArgs a)
{
    return APPLY(&op_instance_norm, &a, a.input, a.running_mean, a.running_var, a.weight, a.bias);
}
