/* layer_norm.c - normalisation over the last dimensions, with a weight and a bias for each of their elements.
 *
 *   y = (x - mean) / sqrt(var + eps) w + b              gradients: norm_gradient.c
 *   rms_norm: y = x / sqrt(mean x^2 + eps) w
 *
 * Statistics are kept as extras 0 (mean) and 1 (1 / sqrt(var + eps)). */
#include <float.h>
#include <math.h>
#include "norm_gradient.h"

const TensorLayerNormArgs tensor_layer_norm_defaults = { TENSOR_LAYER_NORM_DEFAULTS };
const TensorRmsNormArgs tensor_rms_norm_defaults = { TENSOR_RMS_NORM_DEFAULTS };

static const int input[3] = { 0, 1, 2 };

static int check(OpCall *c, TensorShape over)
{
    const Tensor *x = op_input(c, 0);
    bool fits = over.ndim > 0 && over.ndim <= x->ndim;
    for (int i = 0; fits && i < over.ndim; i++) fits = over.dim[i] == x->shape[x->ndim - over.ndim + i];
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE, "input %s does not end in normalized_shape %s", S(x),
                       shape_text(over));
    for (int i = 1; i <= 2; i++) {
        const Tensor *w = op_input(c, i);
        if (w && !shape_equal(shape_of(w), over))
            return op_fail(c, TENSOR_ESHAPE, "%s %s: want normalized_shape %s", i == 1 ? "weight" : "bias",
                           S(w), shape_text(over));
    }
    return op_same_shape(c);
}

static int layer_shape(OpCall *c)
{
    if (check(c, ((const TensorLayerNormArgs *)op_params(c))->normalized_shape)) return -1;
    return norm_check_dtypes(c);
}

/* PyTorch's default: the epsilon of what it computes in. */
static int rms_shape(OpCall *c)
{
    TensorRmsNormArgs *p = op_params_mut(c);
    if (isnan(p->eps)) p->eps = op_input(c, 0)->dtype == TENSOR_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    return check(c, p->normalized_shape);
}

/* What both ops are of: the last dims, whether their mean counts as 0, and eps. */
typedef struct Over {
    TensorShape shape;
    bool rms;
    double eps;
} Over;

static Over layer_over(const OpCall *c)
{
    const TensorLayerNormArgs *p = op_params(c);
    return (Over){ p->normalized_shape, false, p->eps };
}

static Over rms_over(const OpCall *c)
{
    const TensorRmsNormArgs *p = op_params(c);
    return (Over){ p->normalized_shape, true, p->eps };
}

static NormArgs args_of(const Over *o, TensorShape x)
{
    NormArgs a = { .rms = o->rms, .outer = 1, .channels = 1, .inner = 1, .eps = o->eps };
    for (int i = 0; i < x.ndim; i++) *(i < x.ndim - o->shape.ndim ? &a.outer : &a.inner) *= x.dim[i];
    return a;
}

static int run(OpCall *c, Over o)
{
    const Tensor *x = op_input(c, 0);
    NormArgs args = args_of(&o, shape_of(x));
    Tensor *mean = own(new_tensor(SHAPE(args.outer), norm_dtype(x), x->place));
    Tensor *rstd = own(new_tensor(SHAPE(args.outer), norm_dtype(x), x->place));
    if (!mean || !rstd) return -1;
    args.mean = mean->data, args.rstd = rstd->data;
    if (norm_forward(c, &args, x, op_input(c, 1), op_input(c, 2), op_output(c, 0))) return -1;
    return op_save(c, mean) || op_save(c, rstd) ? -1 : 0;
}

static int gradients(OpCall *c, Over o, Tensor *dy, Tensor **dx)
{
    const TensorShape x = op_input_shape(c, 0);
    if (!op_recording(c)) {
        NormArgs args = args_of(&o, x);
        const Tensor *mean = op_saved_extra(c, 0), *rstd = op_saved_extra(c, 1);
        if (!mean || !rstd) return -1;
        args.mean = mean->data, args.rstd = rstd->data;
        return norm_fused(c, &args, input, dy, dx);
    }
    NormDims d = { .weights = { .n = o.shape.ndim }, .eps = o.eps, .rms = o.rms };
    memcpy(d.weights.at, o.shape.dim, (size_t)o.shape.ndim * sizeof *o.shape.dim);
    for (int i = 0; i < x.ndim; i++) {
        DimList *to = i < x.ndim - o.shape.ndim ? &d.shared : &d.over;
        to->at[to->n++] = i;
    }
    return norm_recorded(c, &d, input, dy, dx);
}

static int layer_forward(OpCall *c) { return run(c, layer_over(c)); }
static int layer_backward(OpCall *c, Tensor *dy, Tensor **dx) { return gradients(c, layer_over(c), dy, dx); }
static int rms_forward(OpCall *c) { return run(c, rms_over(c)); }
static int rms_backward(OpCall *c, Tensor *dy, Tensor **dx) { return gradients(c, rms_over(c), dy, dx); }

static const OpField layer_fields[] = { OP_REQUIRED(TensorLayerNormArgs, normalized_shape),
                                        OP_OPTION(TensorLayerNormArgs, eps),
                                        { 0 } };
static const OpField rms_fields[] = { OP_REQUIRED(TensorRmsNormArgs, normalized_shape),
                                      OP_OPTION(TensorRmsNormArgs, eps),
                                      { 0 } };

const TensorOp op_layer_norm = {
    .name = "layer_norm",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "normalised over the last dimensions, times weight plus bias",
    .gradient = "dx = r (g w - mean(g w) - xn mean(g w xn)), xn = (x - mean) r, r = 1 / sqrt(var + eps); dw "
                "= sum g xn, db = sum g",
    .arity = 3,
    .optional = KEEP_INPUT(1) | KEEP_INPUT(2),
    .keep_for = { KEEP_INPUT(0) | KEEP_INPUT(1), KEEP_INPUT(0), KEEP_INPUT(0) },
    PARAMS(TensorLayerNormArgs, tensor_layer_norm_defaults, layer_fields),
    .shape = layer_shape,
    .forward = layer_forward,
    .backward = layer_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.layer_norm",
    .samples =
        "3x5,5,5 {normalized_shape=[5]}; 2x3x4,3x4,3x4 {normalized_shape=[3 4] eps=.5}; 2x3x4,4,- "
        "{normalized_shape=[4]}; "
        "2x3x4,-,4 {normalized_shape=[4]}; 3x5,-,- {normalized_shape=[5]}; 6,6,6 {normalized_shape=[6]}; "
        "0x4,4,4 {normalized_shape=[4]}; 2x40,40,40 {normalized_shape=[40]}; 40x3,3,3 {normalized_shape=[3]}",
    .errors = "3x5,4,4 {normalized_shape=[4]} ! ESHAPE; 3x5,4,5 {normalized_shape=[5]} ! ESHAPE; 3x5,5,5x1 "
              "{normalized_shape=[5]} ! ESHAPE; "
              "5,5,5 {normalized_shape=[1 5]} ! ESHAPE; 3x5@i64,5,5 {normalized_shape=[5]} ! EDTYPE",
};
REGISTER_OPS(&op_layer_norm);

const TensorOp op_rms_norm = {
    .name = "rms_norm",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "divided by the root of the mean square over the last dimensions, times weight",
    .arity = 2,
    .gradient = "with g = dy w, z = x / rms: dx = (g - z mean(g z)) / rms, dw = sum dy z",
    .optional = KEEP_INPUT(1),
    .keep_for = { KEEP_INPUT(0) | KEEP_INPUT(1), KEEP_INPUT(0) },
    PARAMS(TensorRmsNormArgs, tensor_rms_norm_defaults, rms_fields),
    .shape = rms_shape,
    .forward = rms_forward,
    .backward = rms_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.rms_norm",
    .samples = "3x5,5 {normalized_shape=[5]}; 2x3x4,3x4 {normalized_shape=[3 4] eps=.5}; 2x3x4,- "
               "{normalized_shape=[4]}; 6,6 {normalized_shape=[6] eps=0}; 3x2:2..3,2 {normalized_shape=[2] "
               "eps=-.5}; 0x4,4 {normalized_shape=[4]}; 2x40,40 {normalized_shape=[40]}; 40x3,3 "
               "{normalized_shape=[3]}",
    .errors = "3x5,4 {normalized_shape=[4]} ! ESHAPE; 3x5,4 {normalized_shape=[5]} ! ESHAPE; 5,5 "
              "{normalized_shape=[1 5]} ! ESHAPE; "
              ",- {normalized_shape=[]} ! ESHAPE; 3x5@i64,5 {normalized_shape=[5]} ! EDTYPE",
};
REGISTER_OPS(&op_rms_norm);

Tensor *tensor_layer_norm_args(TensorLayerNormArgs a)
{
    return APPLY(&op_layer_norm, &a, a.input, a.weight, a.bias);
}

Tensor *tensor_rms_norm_args(TensorRmsNormArgs a) { return APPLY(&op_rms_norm, &a, a.input, a.weight); }
