/* layer_norm.c - normalisation over the last dimensions, with a weight and a bias for each of their elements.
 *
 *   y = (x - mean) / sqrt(var + eps) w + b              gradients: normalize.c
 *   rms_norm: y = x / sqrt(mean x^2 + eps) w
 *
 * Statistics are kept as extras 0 (mean) and 1 (1 / sqrt(var + eps)). */
#include <float.h>
#include "norm_gradient.h"
#include "op/shape/shape_op.h"

typedef struct LayerNormParams {
    OpDims normalized_shape;
    double eps;
    bool weighted, rms; /* set by shape() */
} LayerNormParams;

static const int input[3] = { 0, 1, 2 };

static int shape(OpCall *c)
{
    LayerNormParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    const TensorShape over = dims_shape(&p->normalized_shape);
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
    p->weighted = op_input(c, 1) != NULL;
    return op_same_shape(c);
}

/* PyTorch's default: the epsilon of what it computes in. */
static int rms_shape(OpCall *c)
{
    LayerNormParams *p = op_params_mut(c);
    p->rms = true;
    if (p->eps < 0) p->eps = op_input(c, 0)->dtype == TENSOR_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    return shape(c);
}

static NormArgs args_of(const LayerNormParams *p, TensorShape x)
{
    NormArgs a = { .rms = p->rms, .outer = 1, .channels = 1, .inner = 1, .eps = p->eps };
    for (int i = 0; i < x.ndim; i++) *(i < x.ndim - p->normalized_shape.n ? &a.outer : &a.inner) *= x.dim[i];
    return a;
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
    const LayerNormParams *p = op_params(c);
    const TensorShape x = op_input_shape(c, 0);
    if (!op_recording(c)) {
        NormArgs args = args_of(p, x);
        const Tensor *mean = op_saved_extra(c, 0), *rstd = op_saved_extra(c, 1);
        if (!mean || !rstd) return -1;
        args.mean = mean->data, args.rstd = rstd->data;
        return norm_fused(c, &args, input, p->weighted, dy, dx);
    }
    NormDims d = { .weights = p->normalized_shape, .eps = p->eps, .rms = p->rms };
    for (int i = 0; i < x.ndim; i++) {
        OpDims *to = i < x.ndim - p->normalized_shape.n ? &d.shared : &d.over;
        to->at[to->n++] = i;
    }
    return norm_recorded(c, &d, input, p->weighted, dy, dx);
}

static const OpField fields[] = { OP_FIELD(OP_DIMS, LayerNormParams, normalized_shape, NULL),
                                  OP_FIELD(OP_DOUBLE, LayerNormParams, eps, "1e-5"),
                                  { 0 } };

const TensorOp op_layer_norm = {
    .name = "layer_norm",
    .summary = "normalised over the last dimensions, times weight plus bias",
    .gradient = "dx = r (g w - mean(g w) - xn mean(g w xn)), xn = (x - mean) r, r = 1 / sqrt(var + eps); dw "
                "= sum g xn, db = sum g",
    .arity = 3,
    .optional = KEEP_INPUT(1) | KEEP_INPUT(2),
    .keep = KEEP_INPUT(0) | KEEP_INPUT(1),
    .keep_for = { KEEP_INPUT(0) | KEEP_INPUT(1), KEEP_INPUT(0), KEEP_INPUT(0) },
    .params = sizeof(LayerNormParams),
    .fields = fields,
    .shape = shape,
    .forward = forward,
    .backward = backward,
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
REGISTER_OP(op_layer_norm);

static const OpField rms_fields[] = { OP_FIELD(OP_DIMS, LayerNormParams, normalized_shape, NULL),
                                      OP_FIELD(OP_DOUBLE, LayerNormParams, eps, "-1"),
                                      { 0 } };

const TensorOp op_rms_norm = {
    .name = "rms_norm",
    .summary = "divided by the root of the mean square over the last dimensions, times weight",
    .arity = 2,
    .gradient = "with g = dy w, z = x / rms: dx = (g - z mean(g z)) / rms, dw = sum dy z",
    .optional = KEEP_INPUT(1),
    .keep = KEEP_INPUT(0) | KEEP_INPUT(1),
    .keep_for = { KEEP_INPUT(0) | KEEP_INPUT(1), KEEP_INPUT(0) },
    .params = sizeof(LayerNormParams),
    .fields = rms_fields,
    .shape = rms_shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.rms_norm",
    .samples = "3x5,5 {normalized_shape=[5]}; 2x3x4,3x4 {normalized_shape=[3 4] eps=.5}; 2x3x4,- "
               "{normalized_shape=[4]}; "
               "6,6 {normalized_shape=[6] eps=0}; 0x4,4 {normalized_shape=[4]}; 2x40,40 "
               "{normalized_shape=[40]}; 40x3,3 {normalized_shape=[3]}",
    .errors = "3x5,4 {normalized_shape=[4]} ! ESHAPE; 3x5,4 {normalized_shape=[5]} ! ESHAPE; 5,5 "
              "{normalized_shape=[1 5]} ! ESHAPE; "
              ",- {normalized_shape=[]} ! ESHAPE; 3x5@i64,5 {normalized_shape=[5]} ! EDTYPE",
};
REGISTER_OP(op_rms_norm);

Tensor *tensor_rms_norm_args(TensorRmsNormArgs a)
{
    LayerNormParams p = { .eps = a.eps };
    if (shape_to_dims("rms_norm", a.normalized_shape, &p.normalized_shape)) return NULL;
    return APPLY(&op_rms_norm, &p, a.input, a.weight);
}

Tensor *tensor_layer_norm_args(TensorLayerNormArgs a)
{
    LayerNormParams p = { .eps = a.eps };
    if (shape_to_dims("layer_norm", a.normalized_shape, &p.normalized_shape)) return NULL;
    return APPLY(&op_layer_norm, &p, a.input, a.weight, a.bias);
}
