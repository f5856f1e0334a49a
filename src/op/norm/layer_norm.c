/* layer_norm.c - normalisation over the last dimensions, with a weight and a bias for each of their elements.
 *
 *   y = (x - mean) / sqrt(var + eps) w + b              gradients: norm_gradient.c
 *   rms_norm: y = x / sqrt(mean x^2 + eps) w
 *
 *   add_layer_norm: of x + branch, which is the second result; its gradient is added to that of y.
 *
 * Statistics are kept as extras 0 (mean) and 1 (1 / sqrt(var + eps)). */
#include <float.h>
#include <math.h>
#include <tapegrad/autocast.h>
#include "norm_gradient.h"

const TensorLayerNormArgs tensor_layer_norm_defaults = { TENSOR_LAYER_NORM_DEFAULTS };
const TensorAddLayerNormArgs tensor_add_layer_norm_defaults = { TENSOR_ADD_LAYER_NORM_DEFAULTS };
const TensorRmsNormArgs tensor_rms_norm_defaults = { TENSOR_RMS_NORM_DEFAULTS };

static const int input[3] = { 0, 1, 2 };
enum { X, BRANCH, WEIGHT, BIAS, Y = 0, SUM = 1 }; /* of add_layer_norm */

/* first: the input that is the weight; the bias is behind it. */
static int check(OpCall *c, TensorShape over, int first)
{
    const Tensor *x = op_input(c, 0);
    bool fits = over.ndim > 0 && over.ndim <= x->ndim;
    for (int i = 0; fits && i < over.ndim; i++) fits = over.dim[i] == x->shape[x->ndim - over.ndim + i];
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE, "input %s does not end in normalized_shape %s", S(x),
                       shape_text(over));
    for (int i = first; i <= first + 1; i++) {
        const Tensor *w = op_input(c, i);
        if (w && !shape_equal(shape_of(w), over))
            return op_fail(c, TENSOR_ESHAPE, "%s %s: want normalized_shape %s",
                           i == first ? "weight" : "bias", S(w), shape_text(over));
    }
    return 0;
}

static int layer_shape(OpCall *c)
{
    if (check(c, ((const TensorLayerNormArgs *)op_params(c))->normalized_shape, 1)) return -1;
    return op_same_shape(c) ? -1 : norm_check_dtypes(c);
}

/* PyTorch's default: the epsilon of what it computes in. */
static int rms_shape(OpCall *c)
{
    TensorRmsNormArgs *p = op_params_mut(c);
    if (isnan(p->eps)) p->eps = op_input(c, 0)->dtype == TENSOR_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    return check(c, p->normalized_shape, 1) ? -1 : op_same_shape(c);
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

static NormDims dims_of(const Over *o, TensorShape x)
{
    NormDims d = { .weights = { .n = o->shape.ndim }, .eps = o->eps, .rms = o->rms };
    memcpy(d.weights.at, o->shape.dim, (size_t)o->shape.ndim * sizeof *o->shape.dim);
    for (int i = 0; i < x.ndim; i++) {
        DimList *to = i < x.ndim - o->shape.ndim ? &d.shared : &d.over;
        to->at[to->n++] = i;
    }
    return d;
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
    const NormDims d = dims_of(&o, x);
    return norm_recorded(c, &d, input, dy, dx);
}

static int layer_forward(OpCall *c) { return run(c, layer_over(c)); }
static int layer_backward(OpCall *c, Tensor *dy, Tensor **dx) { return gradients(c, layer_over(c), dy, dx); }
static int rms_forward(OpCall *c) { return run(c, rms_over(c)); }
static int rms_backward(OpCall *c, Tensor *dy, Tensor **dx) { return gradients(c, rms_over(c), dy, dx); }

/* ---- the sum of two -------------------------------------------------------------------------- */

static int dtype_of_sum(const OpCall *c)
{
    return (int)tensor_promote_types(op_input_dtype(c, X), op_input_dtype(c, BRANCH));
}

static Over add_over(const OpCall *c)
{
    const TensorAddLayerNormArgs *p = op_params(c);
    return (Over){ p->normalized_shape, false, p->eps };
}

static int add_shape(OpCall *c)
{
    const TensorAddLayerNormArgs *p = op_params(c);
    const Tensor *x = op_input(c, X), *branch = op_input(c, BRANCH);
    const int sum = dtype_of_sum(c);
    if (!shape_equal(shape_of(x), shape_of(branch)))
        return op_fail(c, TENSOR_ESHAPE, "input %s and branch %s: want one shape", S(x), S(branch));
    if (check(c, p->normalized_shape, WEIGHT)) return -1;
    for (int i = WEIGHT; i <= BIAS; i++) {
        const Tensor *w = op_input(c, i), *other = op_input(c, WEIGHT);
        const bool fits = !w || w->dtype == sum || (dtype_is_half(sum) && w->dtype == TENSOR_F32);
        if (!fits || (w && other && w->dtype != other->dtype))
            return op_fail(c, TENSOR_EDTYPE, "%s is %s, the sum %s: want that%s, and one dtype for both",
                           i == WEIGHT ? "weight" : "bias", tensor_dtype_name(w->dtype),
                           tensor_dtype_name((TensorDtype)sum), dtype_is_half(sum) ? " or f32" : "");
    }
    if (p->dtype < TENSOR_DTYPES && !dtype_is_float((int)p->dtype))
        return op_fail(c, TENSOR_EDTYPE, "dtype is %s: want a floating one", tensor_dtype_name(p->dtype));
    return op_set_output(c, Y, shape_of(x), p->dtype < TENSOR_DTYPES ? p->dtype : (TensorDtype)sum) ||
                   op_set_output(c, SUM, shape_of(x), (TensorDtype)sum)
               ? -1
               : 0;
}

/* Does the kernel read and write this dtype beside its own? */
static bool beside(const Place *place, int dtype, int kernels)
{
    return dtype == kernels || (kernels == TENSOR_F32 && dtype_is_half(dtype) && !on_host(place) &&
                                TAKES(place, norm, dtype) && TAKES(place, norm_grad, dtype));
}

static const Tensor *beside_or_cast(const Tensor *x, int kernels, bool *failed)
{
    return norm_operand(x, beside(x->place, x->dtype, kernels) ? x->dtype : kernels, failed);
}

/* Sets x and add, which is what may be of another dtype than the kernel's. */
static int set_operands(OpCall *c, NormArgs *args)
{
    const Tensor *x = op_input(c, X), *branch = op_input(c, BRANCH);
    bool failed = false;
    if (x->dtype != args->dtype) branch = x, x = op_input(c, BRANCH);
    x = norm_operand(x, args->dtype, &failed), branch = beside_or_cast(branch, args->dtype, &failed);
    if (failed) return -1;
    args->x = x->data, args->add = branch->data, args->added = branch->dtype;
    return 0;
}

/* out, or a new one like it in a dtype. */
static Tensor *target_in(Tensor *out, int dtype)
{
    return out->dtype == dtype ? out : own(new_tensor(shape_of(out), dtype, out->place));
}

static int add_forward(OpCall *c)
{
    Tensor *y = op_output(c, Y), *sum = op_output(c, SUM);
    const Over o = add_over(c);
    NormArgs args = args_of(&o, shape_of(sum));
    const int wide = norm_dtype(sum);
    bool failed = false;
    args.dtype = TAKES(y->place, norm, sum->dtype) && y->dtype == sum->dtype ? sum->dtype : wide;
    args.to = beside(y->place, y->dtype, args.dtype) ? y->dtype : args.dtype;
    const Tensor *w = op_input(c, WEIGHT), *b = op_input(c, BIAS), *side = w ? w : b;
    args.weights = side ? norm_weights_dtype(side->dtype, args.dtype, wide) : wide;
    w = norm_operand(w, args.weights, &failed), b = norm_operand(b, args.weights, &failed);
    Tensor *mean = own(new_tensor(SHAPE(args.outer), wide, y->place)),
           *rstd = own(new_tensor(SHAPE(args.outer), wide, y->place)), *to = target_in(y, args.to),
           *added = target_in(sum, args.dtype);
    if (failed || !mean || !rstd || !to || !added || set_operands(c, &args)) return -1;
    args.weight = w ? w->data : NULL, args.bias = b ? b->data : NULL;
    args.mean = mean->data, args.rstd = rstd->data, args.y = to->data, args.sum = added->data;
    if (RUN_KERNEL(c->name, y->place, norm, &args)) return -1;
    if ((to != y && raw_copy(y, to)) || (added != sum && raw_copy(sum, added))) return -1;
    return op_save(c, mean) || op_save(c, rstd) ? -1 : 0;
}

static int add_recorded(OpCall *c, Tensor *dy, Tensor **dx)
{
    const Over o = add_over(c);
    NormDims d = dims_of(&o, op_input_shape(c, X));
    const int wanted = op_wants(c, X) ? X : BRANCH, of[3] = { wanted, WEIGHT, BIAS };
    if (!(d.x = op_saved_output(c, SUM)) || norm_recorded(c, &d, of, dy, dx)) return -1;
    if (!op_wants(c, wanted)) return 0;
    Tensor *g = op_has_grad(c, SUM) ? tensor_add(dx[wanted], op_grad(c, SUM)) : dx[wanted];
    dx[X] = op_wants(c, X) ? g : NULL, dx[BRANCH] = op_wants(c, BRANCH) ? g : NULL;
    return g ? 0 : -1;
}

/* The half that one of the summands has beside the kernel's dtype, else that. */
static int half_of_summands(const OpCall *c, const Place *place, int kernels)
{
    for (int i = X; i <= BRANCH; i++)
        if (op_wants(c, i) && (int)op_input_dtype(c, i) != kernels &&
            beside(place, op_input_dtype(c, i), kernels))
            return op_input_dtype(c, i);
    return kernels;
}

static int add_fused(OpCall *c, const Tensor *dy, Tensor **dx)
{
    const Over o = add_over(c);
    NormArgs args = args_of(&o, op_input_shape(c, X));
    const Tensor *sum = op_saved_output(c, SUM), *mean = op_saved_extra(c, 0), *rstd = op_saved_extra(c, 1),
                 *weight = NULL, *dsum = NULL;
    const bool summands = op_wants(c, X) || op_wants(c, BRANCH);
    bool failed = false;
    if (!sum || !mean || !rstd) return -1;
    const Place *place = dy->place;
    const int wide = norm_dtype(sum),
              dtype = TAKES(place, norm_grad, sum->dtype) && dy->dtype == sum->dtype ? sum->dtype : wide;
    args.dtype = dtype, args.weights = wide;
    for (int i = WEIGHT; i <= BIAS; i++)
        if (op_input_shape(c, i).ndim) args.weights = norm_weights_dtype(op_input_dtype(c, i), dtype, wide);
    if (op_input_shape(c, WEIGHT).ndim && summands && !(weight = op_saved(c, WEIGHT))) return -1;
    weight = norm_operand(weight, args.weights, &failed);
    sum = norm_operand(sum, dtype, &failed), dy = beside_or_cast(dy, dtype, &failed);
    if (op_has_grad(c, SUM)) dsum = norm_operand(op_grad(c, SUM), dtype, &failed);
    if (failed) return -1;
    args.added = half_of_summands(c, place, dtype);
    Tensor *made[4] = { NULL }; /* dx, dadd, dweight, dbias */
    const int dtypes[4] = { dtype, args.added, args.weights, args.weights };
    for (int i = 0; i < 4; i++) {
        const bool wanted = i == 0 ? summands : i == 1 ? args.added != dtype : op_wants(c, i);
        const TensorShape shape = op_input_shape(c, i);
        if (wanted && !(made[i] = own(new_tensor(shape, dtypes[i], place)))) return -1;
    }
    args.to = dy->dtype, args.x = sum->data, args.dy = dy->data, args.mean = mean->data,
    args.rstd = rstd->data;
    args.weight = weight ? weight->data : NULL, args.dsum = dsum ? dsum->data : NULL;
    args.dx = made[0] ? made[0]->data : NULL, args.dadd = made[1] ? made[1]->data : NULL;
    args.dweight = made[2] ? made[2]->data : NULL, args.dbias = made[3] ? made[3]->data : NULL;
    if (RUN_KERNEL(c->name, place, norm_grad, &args)) return -1;
    for (int i = X; i <= BIAS; i++) {
        if (!op_wants(c, i)) continue;
        const int of = op_input_dtype(c, i);
        const Tensor *from = i >= WEIGHT ? made[i] : made[1] && of == args.added ? made[1] : made[0];
        if (!(dx[i] = own(raw_cast(from, of)))) return -1;
    }
    return 0;
}

static int add_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dy = op_grad(c, Y);
    return !dy ? -1 : op_recording(c) ? add_recorded(c, dy, dx) : add_fused(c, dy, dx);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static const OpField add_fields[] = { OP_REQUIRED(TensorAddLayerNormArgs, normalized_shape),
                                      OP_OPTION(TensorAddLayerNormArgs, eps),
                                      OP_DTYPE(TensorAddLayerNormArgs, dtype),
                                      { 0 } };
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

const TensorOp op_add_layer_norm = {
    .name = "add_layer_norm",
    .autocast = AUTOCAST_AS_IS,
    .summary = "layer_norm of input + branch, and that sum",
    .gradient = "d input = d branch = g of the sum + dx of layer_norm",
    .arity = 4,
    .outputs = 2,
    .optional = KEEP_INPUT(WEIGHT) | KEEP_INPUT(BIAS),
    .keep_for = { KEEP_OUTPUT(SUM) | KEEP_INPUT(WEIGHT), KEEP_OUTPUT(SUM) | KEEP_INPUT(WEIGHT),
                  KEEP_OUTPUT(SUM), KEEP_OUTPUT(SUM) },
    PARAMS(TensorAddLayerNormArgs, tensor_add_layer_norm_defaults, add_fields),
    .shape = add_shape,
    .forward = add_forward,
    .backward = add_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .samples = "3x5,3x5,5,5 {normalized_shape=[5]}; 2x3x4,2x3x4,3x4,3x4 {normalized_shape=[3 4] eps=.5}; "
               "2x3x4,2x3x4,4,- {normalized_shape=[4]}; 2x3x4,2x3x4,-,4 {normalized_shape=[4]}; "
               "3x5,3x5,-,- {normalized_shape=[5]}; 6,6,6,6 {normalized_shape=[6]}; "
               "0x4,0x4,4,4 {normalized_shape=[4]}; 2x40,2x40,40,40 {normalized_shape=[40]}",
    .errors =
        "3x5,3x5,4,4 {normalized_shape=[4]} ! ESHAPE; 3x5,3x1,5,5 {normalized_shape=[5]} ! ESHAPE; "
        "3x5,3x5,5,5x1 {normalized_shape=[5]} ! ESHAPE; 3x5,3x5@i64,5,5 {normalized_shape=[5]} ! EDTYPE; "
        "3x5,3x5,5@f64,5@f64 {normalized_shape=[5]} ! EDTYPE; "
        "3x5,3x5,5,5 {normalized_shape=[5] dtype=5} ! EDTYPE",
};
REGISTER_OPS(&op_add_layer_norm);

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

TensorAddLayerNorm tensor_add_layer_norm_args(TensorAddLayerNormArgs a)
{
    Tensor *in[] = { a.input, a.branch, a.weight, a.bias }, *y[2] = { NULL, NULL };
    if (a.dtype == TENSOR_DTYPES && tensor_autocast_enabled()) a.dtype = tensor_autocast_dtype();
    op_apply(&op_add_layer_norm, in, 4, &a, SITE, y, 2);
    return (TensorAddLayerNorm){ y[Y], y[SUM] };
}

Tensor *tensor_rms_norm_args(TensorRmsNormArgs a) { return APPLY(&op_rms_norm, &a, a.input, a.weight); }
