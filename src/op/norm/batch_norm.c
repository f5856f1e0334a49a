/* batch_norm.c - normalisation of each channel over the batch and all positions.
 *
 *   y = (x - mean) / sqrt(var + eps) w + b              gradients: norm_gradient.c
 *
 * training: statistics of the batch; the running ones follow, outside the graph, once the op has succeeded.
 * Otherwise the running statistics, which are constants.
 * Kept as extras 0 (mean) and 1 (1 / sqrt(var + eps)): copies, as the running ones may change before
 * backward. */
#include "norm_gradient.h"

const TensorBatchNormArgs tensor_batch_norm_defaults = { TENSOR_BATCH_NORM_DEFAULTS };

enum { X, RUNNING_MEAN, RUNNING_VAR, WEIGHT, BIAS };
static const int input[3] = { X, WEIGHT, BIAS };

static NormArgs args_of(const TensorBatchNormArgs *p, TensorShape x)
{
    NormArgs a = { .batch = true,
                   .given = !p->training,
                   .outer = x.dim[0],
                   .channels = x.dim[1],
                   .inner = 1,
                   .eps = p->eps };
    for (int i = 2; i < x.ndim; i++) a.inner *= x.dim[i];
    return a;
}

static int shape(OpCall *c)
{
    static const char *const name[] = { "input", "running_mean", "running_var", "weight", "bias" };
    const TensorBatchNormArgs *p = op_params(c);
    const Tensor *x = op_input(c, X);
    if (x->ndim < 2 || x->ndim > 5)
        return op_fail(c, TENSOR_ESHAPE, "input %s: want [batch, channels, ...] of rank 2 to 5", S(x));
    for (int i = RUNNING_MEAN; i <= BIAS; i++) {
        const Tensor *t = op_input(c, i);
        if (t && (t->ndim != 1 || t->shape[0] != x->shape[1]))
            return op_fail(c, TENSOR_ESHAPE, "%s %s, input %s: want [%lld], a value for each channel",
                           name[i], S(t), S(x), (long long)x->shape[1]);
    }
    if (norm_check_dtypes(c)) return -1;
    const bool mean = op_input(c, RUNNING_MEAN), var = op_input(c, RUNNING_VAR);
    if (mean != var)
        return op_fail(c, TENSOR_EVALUE, "%s without %s", name[mean ? 1 : 2], name[mean ? 2 : 1]);
    if (!p->training && !mean)
        return op_fail(c, TENSOR_EVALUE, "running_mean and running_var are needed when not training");
    const NormArgs a = args_of(p, shape_of(x));
    if (p->training && a.outer * a.inner == 1)
        return op_fail(c, TENSOR_ESHAPE, "input %s: one value for each channel has no variance to train with",
                       S(x));
    return op_same_shape(c);
}

/* (1 - m) running + m now. */
static Tensor *followed(Tensor *running, Tensor *now, double m)
{
    return tensor_add(tensor_mul_scalar(running, 1 - m), tensor_mul_scalar(now, m));
}

static int update_running(OpCall *c, const TensorBatchNormArgs *p, Tensor *mean, Tensor *var, double n)
{
    Tensor *to[2] = { op_input(c, RUNNING_MEAN), op_input(c, RUNNING_VAR) };
    Tensor *now[2] = { followed(to[0], mean, p->momentum),
                       followed(to[1], tensor_mul_scalar(var, n / (n - 1)), p->momentum) };
    return op_commit(c, to[0], now[0]) || op_commit(c, to[1], now[1]) ? -1 : 0;
}

static int given_statistics(OpCall *c, const TensorBatchNormArgs *p, Tensor *mean, Tensor *rstd)
{
    Tensor *var = tensor_to(op_input(c, RUNNING_VAR), (TensorDtype)rstd->dtype);
    Tensor *inverse = tensor_rsqrt(tensor_add_scalar(var, p->eps));
    return inverse && !raw_copy(mean, op_input(c, RUNNING_MEAN)) ? raw_copy(rstd, inverse) : -1;
}

static int forward(OpCall *c)
{
    const TensorBatchNormArgs *p = op_params(c);
    const Tensor *x = op_input(c, X);
    NormArgs args = args_of(p, shape_of(x));
    Tensor *mean = own(new_tensor(SHAPE(args.channels), norm_dtype(x), x->place));
    Tensor *rstd = own(new_tensor(SHAPE(args.channels), norm_dtype(x), x->place));
    const bool empty = args.outer * args.inner == 0;
    if (!mean || !rstd || (empty && (raw_fill(mean, 0) || raw_fill(rstd, 0)))) return -1;
    if (!p->training && given_statistics(c, p, mean, rstd)) return -1;
    const bool follows = p->training && op_input(c, RUNNING_MEAN) && !empty;
    Tensor *var = follows ? own(new_tensor(SHAPE(args.channels), norm_dtype(x), x->place)) : NULL;
    if (follows && !var) return -1;
    args.mean = mean->data, args.rstd = rstd->data, args.var = var ? var->data : NULL;
    if (norm_forward(c, &args, x, op_input(c, WEIGHT), op_input(c, BIAS), op_output(c, 0))) return -1;
    if (op_save(c, mean) || op_save(c, rstd)) return -1;
    return follows ? update_running(c, p, mean, var, (double)(args.outer * args.inner)) : 0;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorBatchNormArgs *p = op_params(c);
    const TensorShape x = op_input_shape(c, X);
    NormArgs args = args_of(p, x);
    Tensor *mean = op_saved_extra(c, 0), *rstd = op_saved_extra(c, 1);
    if (!mean || !rstd) return -1;
    if (!op_recording(c)) {
        args.mean = mean->data, args.rstd = rstd->data;
        return norm_fused(c, &args, input, dy, dx);
    }
    NormDims d = { .weights = { x.ndim, { 0 } }, .eps = p->eps };
    for (int i = 0; i < x.ndim; i++) {
        d.weights.at[i] = i == 1 ? x.dim[1] : 1;
        if (i != 1) d.over.at[d.over.n++] = i;
    }
    d.shared = d.over;
    const TensorShape beside = { x.ndim, d.weights.at };
    if (args.given) {
        d.mean = tensor_reshape(mean, beside), d.rstd = tensor_reshape(rstd, beside);
        if (!d.mean || !d.rstd) return -1;
    }
    return norm_recorded(c, &d, input, dy, dx);
}

static const OpField fields[] = { OP_OPTION(TensorBatchNormArgs, training, momentum, eps), { 0 } };

const TensorOp op_batch_norm = {
    .name = "batch_norm",
    .autocast = AUTOCAST_AS_IS,
    .summary = "each channel normalised over batch and positions, times weight plus bias",
    .gradient =
        "training: dx = w r (g - mean g - xn mean(g xn)), xn = (x - mean) r, r = 1 / sqrt(var + eps); "
        "evaluating: dx = w r g; dw = sum g xn, db = sum g",
    .arity = 5,
    .optional = KEEP_INPUT(RUNNING_MEAN) | KEEP_INPUT(RUNNING_VAR) | KEEP_INPUT(WEIGHT) | KEEP_INPUT(BIAS),
    .keep = KEEP_INPUT(X) | KEEP_INPUT(WEIGHT),
    .no_grad_inputs = KEEP_INPUT(RUNNING_MEAN) | KEEP_INPUT(RUNNING_VAR),
    PARAMS(TensorBatchNormArgs, tensor_batch_norm_defaults, fields),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.batch_norm",
    .samples = "5x5x5,-,-,5,5 {training=1}; 3x2x4,-,-,2,2 {training=1 eps=.5}; 4x3,-,-,3,3 {training=1}; "
               "3x2x3x4,-,-,2,- {training=1}; 3x2x3x4,-,-,-,2 {training=1}; 3x2x2x2x2,-,-,-,- {training=1}; "
               "3x2x4,2,2:.5..2,2,2 {eps=.5}; 4x3,3,3:.5..2,3,3; 3x2x3x4,2,2:.5..2,-,-; 0x3x4,-,-,3,3 "
               "{training=1}; 0x3,3,3:.5..2,3,3; 1x3x2,-,-,3,3 {training=1}; 9x70,-,-,70,70 {training=1}",
    .errors = "5,-,-,-,- {training=1} ! ESHAPE; 2x3x4,-,-,4,- {training=1} ! ESHAPE; 2x3x4,3,-,3,3 "
              "{training=1} ! EVALUE; 2x3x4,-,-,3,3 ! EVALUE; 1x3,-,-,3,3 {training=1} ! ESHAPE; "
              "2x3x4@i64,-,-,-,- {training=1} ! EDTYPE; 1x3x1x1,-,-,3,3 {training=1} ! ESHAPE",
};
REGISTER_OPS(&op_batch_norm);

Tensor *tensor_batch_norm_args(TensorBatchNormArgs a)
{
    if (a.input && a.input->ndim == 1 && a.input->numel == 0) return tensor_clone(a.input); /* as PyTorch */
    if (a.eps < 0 || (a.training && a.eps == 0)) /* instance_norm takes them, as in PyTorch */
        return fail(TENSOR_EVALUE, "batch_norm", "eps is %g: want %s", a.eps,
                    a.training ? "more than 0 in training" : "0 or more"),
               NULL;
    return APPLY(&op_batch_norm, &a, a.input, a.running_mean, a.running_var, a.weight, a.bias);
}
