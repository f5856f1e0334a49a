/* group_norm.c - normalisation of each sample over groups of its channels, with a weight and a bias for each
 * channel.
 *
 *   y = (x - mean) / sqrt(var + eps) w + b              gradients: norm_gradient.c
 *
 * x [N, C, ...] is seen as [N, groups, C / groups, ...].  Statistics, [N groups], are kept as extras 0 (mean)
 * and 1. */
#include "norm_gradient.h"

const TensorGroupNormArgs tensor_group_norm_defaults = { TENSOR_GROUP_NORM_DEFAULTS };

static const int input[3] = { 0, 1, 2 };

static NormArgs args_of(const TensorGroupNormArgs *p, TensorShape x)
{
    NormArgs a = { .outer = x.dim[0] * p->num_groups,
                   .channels = x.dim[1] / p->num_groups,
                   .inner = 1,
                   .groups = p->num_groups,
                   .eps = p->eps };
    for (int i = 2; i < x.ndim; i++) a.inner *= x.dim[i];
    return a;
}

static int shape(OpCall *c)
{
    const TensorGroupNormArgs *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    if (p->num_groups < 1)
        return op_fail(c, TENSOR_EVALUE, "%lld groups: at least 1", (long long)p->num_groups);
    if (x->ndim < 2 || x->shape[1] % p->num_groups)
        return op_fail(c, TENSOR_ESHAPE, "input %s: want [batch, channels, ...] with channels in %lld groups",
                       S(x), (long long)p->num_groups);
    for (int i = 1; i <= 2; i++) {
        const Tensor *w = op_input(c, i);
        if (w && (w->ndim != 1 || w->shape[0] != x->shape[1]))
            return op_fail(c, TENSOR_ESHAPE, "%s %s, input %s: want [%lld], a value for each channel",
                           i == 1 ? "weight" : "bias", S(w), S(x), (long long)x->shape[1]);
    }
    if (norm_check_dtypes(c)) return -1;
    const NormArgs a = args_of(p, shape_of(x));
    if (x->shape[0] * a.channels * a.inner == 1)
        return op_fail(c, TENSOR_ESHAPE, "input %s in %lld groups: one value for each group has no variance",
                       S(x), (long long)p->num_groups);
    return op_same_shape(c);
}

static int forward(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    NormArgs args = args_of(op_params(c), shape_of(x));
    Tensor *mean = own(new_tensor(SHAPE(args.outer), norm_dtype(x), x->place));
    Tensor *rstd = own(new_tensor(SHAPE(args.outer), norm_dtype(x), x->place));
    if (!mean || !rstd) return -1;
    args.mean = mean->data, args.rstd = rstd->data;
    if (norm_forward(c, &args, x, op_input(c, 1), op_input(c, 2), op_output(c, 0))) return -1;
    return op_save(c, mean) || op_save(c, rstd) ? -1 : 0;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorGroupNormArgs *p = op_params(c);
    NormArgs args = args_of(p, op_input_shape(c, 0));
    if (!op_recording(c)) {
        const Tensor *mean = op_saved_extra(c, 0), *rstd = op_saved_extra(c, 1);
        if (!mean || !rstd) return -1;
        args.mean = mean->data, args.rstd = rstd->data;
        return norm_fused(c, &args, input, dy, dx);
    }
    const NormDims d = {
        .as = { 4, { args.outer / args.groups, args.groups, args.channels, args.inner } },
        .over = { 2, { 2, 3 } },
        .shared = { 2, { 0, 3 } },
        .weights = { 4, { 1, args.groups, args.channels, 1 } },
        .eps = p->eps,
    };
    return norm_recorded(c, &d, input, dy, dx);
}

static const OpField fields[] = { OP_REQUIRED(TensorGroupNormArgs, num_groups),
                                  OP_OPTION(TensorGroupNormArgs, eps),
                                  { 0 } };

const TensorOp op_group_norm = {
    .name = "group_norm",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "groups of channels normalised in each sample, times weight plus bias",
    .arity = 3,
    .gradient = "dx = r (g w - mean(g w) - xn mean(g w xn)), xn = (x - mean) r, r = 1 / sqrt(var + eps), "
                "means over the group; dw = sum g xn, db = sum g",
    .optional = KEEP_INPUT(1) | KEEP_INPUT(2),
    .keep_for = { KEEP_INPUT(0) | KEEP_INPUT(1), KEEP_INPUT(0), KEEP_INPUT(0) },
    PARAMS(TensorGroupNormArgs, tensor_group_norm_defaults, fields),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.group_norm",
    .samples = "2x6x3,6,6 {num_groups=3}; 2x4x2x3,4,4 {num_groups=2 eps=.5}; 3x4,4,- {num_groups=1}; "
               "2x3x5,-,3 {num_groups=3}; 2x4x3,-,- {num_groups=1}; 0x4x3,4,4 {num_groups=2}; 2x4x0,4,4 "
               "{num_groups=2}; 3x2x2x2x2,2,2 {num_groups=2}; 2x4x20,4,4 {num_groups=2}; 1x2x4,2,2 "
               "{num_groups=2}",
    .errors = "2x5x3,5,5 {num_groups=2} ! ESHAPE; 4,4,4 {num_groups=2} ! ESHAPE; 2x4x3,3,4 {num_groups=2} ! "
              "ESHAPE; 2x4x3,4,4x1 {num_groups=2} ! ESHAPE; 2x4x3,4,4 {num_groups=0} ! EVALUE; 1x3,-,- "
              "{num_groups=3} ! ESHAPE; 2x4x3@i64,4,4 {num_groups=2} ! EDTYPE",
};
REGISTER_OPS(&op_group_norm);

Tensor *tensor_group_norm_args(TensorGroupNormArgs a)
{
    return APPLY(&op_group_norm, &a, a.input, a.weight, a.bias);
}
