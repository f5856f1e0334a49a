/* activations.c - elementwise ops composed of rows.
 *
 *   lerp_tensor   a + weight (b - a)                     tanhshrink  x - tanh(x)
 *   rrelu         prelu with slopes drawn at random      prelu       x > 0 ? x : w_channel x
 *   float_power   pow in f64                             clamp_tensor  min(max(x, low), high)
 *   nan_to_num    NaN and infinities replaced            isclose     |a - b| <= atol + rtol |b| */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "op/op.h"
#include "random/draw.h"
#include "dropout.h"
#include "row.h"

/* ---- tanhshrink ------------------------------------------------------------------------------ */

static int tanhshrink(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    return op_set_result(c, 0, tensor_sub(x, tensor_tanh(x)));
}

static const TensorOp op_tanhshrink = { .name = "tanhshrink",
                                        .autocast = AUTOCAST_AS_IS,
                                        .summary = "x - tanh(x)",
                                        .gradient = "dx = g tanh^2 x",
                                        .arity = 1,
                                        .compose = tanhshrink,
                                        .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
                                        .samples = "20; 1x0x3; ; 3x4:-5..5",
                                        .errors = "3@bool ! EDTYPE",
                                        .lo = -2,
                                        .hi = 2,
                                        .torch = "nn.functional.tanhshrink" };
REGISTER_OPS(&op_tanhshrink);

Tensor *tensor_tanhshrink(Tensor *x) { return APPLY(&op_tanhshrink, NULL, x); }

/* ---- lerp with a tensor as weight ------------------------------------------------------------ */

static int lerp_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1), *weight = op_input(c, 2);
    int64_t pair[TENSOR_MAX_DIMS], all[TENSOR_MAX_DIMS];
    int ndim = shape_broadcast(shape_of(a), shape_of(b), pair);
    if (ndim >= 0) ndim = shape_broadcast((TensorShape){ ndim, pair }, shape_of(weight), all);
    return ndim >= 0
               ? 0
               : op_fail(c, TENSOR_ESHAPE, "%s, %s and weight %s do not broadcast", S(a), S(b), S(weight));
}

static int lerp_forward(OpCall *c)
{
    Tensor *a = op_input(c, 0), *b = op_input(c, 1), *weight = op_input(c, 2);
    if (fused_result(c, FUSED_lerp_tensor, 3, c->input, NULL)) return c->failed ? -1 : 0;
    Tensor *from_a = tensor_lt_scalar(tensor_abs(weight), 0.5); /* from the end that is nearer, as lerp */
    Tensor *rest = tensor_where(from_a, weight, tensor_sub_scalar(weight, 1));
    Tensor *step = tensor_mul(rest, tensor_sub(b, a));
    return op_set_result(c, 0, tensor_add(tensor_where(from_a, a, b), step));
}

static int lerp_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (op_wants(c, 0) && !(dx[0] = tensor_mul(dy, tensor_rsub_scalar(op_saved(c, 2), 1)))) return -1;
    if (op_wants(c, 1) && !(dx[1] = tensor_mul(dy, op_saved(c, 2)))) return -1;
    if (op_wants(c, 2) && !(dx[2] = tensor_mul(dy, tensor_sub(op_saved(c, 1), op_saved(c, 0))))) return -1;
    return 0;
}

static const TensorOp op_lerp_tensor = {
    .name = "lerp_tensor",
    .autocast = AUTOCAST_AS_IS,
    .summary = "a + weight (b - a)",
    .arity = 3,
    .gradient = "da = g (1 - weight), db = g weight, dweight = g (b - a)",
    .keep_for = { KEEP_INPUT(2), KEEP_INPUT(2), KEEP_INPUT(0) | KEEP_INPUT(1) },
    .shape = lerp_shape,
    .forward = lerp_forward,
    .backward = lerp_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ONE_DTYPE | OP_ROUND_ONCE,
    .samples = "3x4,3x4,3x4; 3x1,4,; 0x2,2,0x2; ,,",
    .errors = "3x4,3x5,3x4 ! ESHAPE; 3,3,4 ! ESHAPE; 3@i64,3@i64,3 ! EDTYPE; 3@f32,3@f64,3@f32 ! EDTYPE; "
              "3@f32,3@f32,3@f64 ! EDTYPE",
    .torch = "lerp"
};
REGISTER_OPS(&op_lerp_tensor);

/* A weight of rank 0 is a number, of whatever dtype. */
static Tensor *weight_as(Tensor *weight, const Tensor *a)
{
    const bool number = a && weight && a->storage && weight->storage && weight->ndim == 0;
    return number && dtype_is_float(a->dtype) ? tensor_to(weight, (TensorDtype)a->dtype) : weight;
}

Tensor *tensor_lerp_tensor(Tensor *a, Tensor *b, Tensor *weight)
{
    return APPLY(&op_lerp_tensor, NULL, a, b, weight_as(weight, a));
}
Tensor *tensor_lerp_tensor_(Tensor *a, Tensor *b, Tensor *weight)
{
    return APPLY_(&op_lerp_tensor, NULL, a, b, weight_as(weight, a));
}

/* ---- prelu, rrelu ---------------------------------------------------------------------------- */

static int prelu(OpCall *c)
{
    Tensor *x = op_input(c, 0), *weight = op_input(c, 1);
    int64_t channels = x->ndim >= 2 ? x->shape[1] : 1, shape[TENSOR_MAX_DIMS] = { weight->numel };
    int ndim = weight->numel == 1 || x->ndim < 2 ? 0 : x->ndim - 1;
    if (weight->ndim > 1 || (weight->numel != 1 && weight->numel != channels))
        return op_fail(c, TENSOR_ESHAPE,
                       "weight %s for %s: want 1 element, or one for each of %lld channels, dim 1", S(weight),
                       S(x), (long long)channels);
    for (int d = 1; d < ndim; d++) shape[d] = 1;
    return op_set_result(c, 0, tensor_prelu_kernel(x, tensor_reshape(weight, (TensorShape){ ndim, shape })));
}

static const TensorOp op_prelu = {
    .name = "prelu",
    .autocast = AUTOCAST_LOWER,
    .summary = "x if x > 0, else weight x; one weight, or one a channel (dim 1)",
    .arity = 2,
    .gradient = "dx = x > 0 ? g : weight g, dweight = the sum of x <= 0 ? g x : 0",
    .compose = prelu,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ONE_DTYPE,
    .samples = "3x4,1; 3x4:-2..-.5,4; 2x3x2:-2..-.5,3; 5:-2..-.5,; ,1; 0x3,3; 2x3x2x2,3",
    .lo = .5,
    .hi = 2,
    .errors = "3x4,3 ! ESHAPE; 3,3 ! ESHAPE; 3x4,4x1 ! ESHAPE; 3@i64,1 ! EDTYPE; "
              "3@f64,1@f32 ! EDTYPE; 3@f16,1@f32 ! EDTYPE",
    .torch = "nn.functional.prelu"
};
REGISTER_OPS(&op_prelu);

Tensor *tensor_prelu(Tensor *x, Tensor *weight) { return APPLY(&op_prelu, NULL, x, weight); }

const TensorRreluArgs tensor_rrelu_defaults = { TENSOR_RRELU_DEFAULTS };

/* As draw_slopes, by the counter-based generator. */
static Tensor *philox_slopes(OpCall *c, Tensor *x, double lower, double upper)
{
    Tensor *u = philox_uniform(c->name, shape_of(x), x->dtype, x->place);
    Tensor *drawn = tensor_add_scalar(tensor_mul_scalar(u, upper - lower), lower);
    return drawn ? tensor_where(tensor_le_scalar(x, 0), drawn, tensor_ones_like(drawn)) : NULL;
}

static int rrelu(OpCall *c)
{
    const TensorRreluArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (!(p->lower <= p->upper))
        return op_fail(c, TENSOR_EVALUE, "%s: slopes from %g to %g: want lower <= upper", S(x), p->lower,
                       p->upper);
    if (!p->training) return op_set_result(c, 0, tensor_leaky_relu(x, (p->lower + p->upper) / 2));
    Tensor *slope = draws_as_torch(x->place) ? draw_slopes(x, c->name, p->lower, p->upper)
                                             : philox_slopes(c, x, p->lower, p->upper);
    return op_set_result(c, 0, slope ? tensor_prelu_kernel(x, slope) : NULL);
}

static const OpField rrelu_fields[] = { OP_OPTION(TensorRreluArgs, lower, upper, training), { 0 } };
static const TensorOp op_rrelu = {
    .name = "rrelu",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x if x > 0, else a slope times x: drawn from [lower, upper) in training, else their middle",
    .gradient = "dx = x > 0 ? g : slope g",
    .arity = 1,
    PARAMS(TensorRreluArgs, tensor_rrelu_defaults, rrelu_fields),
    .compose = rrelu,
    .flags = OP_FLOAT_INPUTS | OP_RANDOM | OP_ROUND_ONCE,
    .samples = "3x4; 3x4:-2..-.5 {training=1 lower=.2 upper=.2}; {training=1}; 0x3 {training=1}; 5:-2..-.5 "
               "{lower=.1 upper=.2}",
    .errors = "3 {lower=.5 upper=.2} ! EVALUE; 3@i64 ! EDTYPE",
    .lo = .5,
    .hi = 2,
    .torch = "nn.functional.rrelu"
};
REGISTER_OPS(&op_rrelu);

Tensor *tensor_rrelu_args(TensorRreluArgs a) { return APPLY(&op_rrelu, &a, a.input); }
Tensor *tensor_rrelu_args_(TensorRreluArgs a) { return APPLY_(&op_rrelu, &a, a.input); }

/* ---- clamp with tensors as bounds ------------------------------------------------------------ */

static int clamp_tensor(OpCall *c)
{
    Tensor *y = op_input(c, 0), *min = op_input(c, 1), *max = op_input(c, 2);
    if (!min && !max) return op_fail(c, TENSOR_EVALUE, "%s: neither min nor max is given", S(y));
    if (min && max && fused_result(c, FUSED_clamp_tensor, 3, c->input, NULL)) return 0;
    if (min) y = tensor_clamp_min_tensor(y, min);
    if (max) y = tensor_clamp_max_tensor(y, max);
    return op_set_result(c, 0, y);
}

static const TensorOp op_clamp_tensor = {
    .name = "clamp_tensor",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x held to [min, max], which are tensors; min > max gives max; NaN wins",
    .gradient =
        "dx = min <= x <= max ? g : 0, dmin = x < min <= max ? g : 0, dmax = max < max(x, min) ? g : 0",
    .arity = 3,
    .optional = KEEP_INPUT(1) | KEEP_INPUT(2),
    .compose = clamp_tensor,
    .flags = OP_ANY_DEVICE,
    .samples = "3x4,3x4:-1..0,3x4:.1..1; 3x4,4:-1..0,-; 3,-,2x1; ,,-; 0x3,3,3",
    .errors = "3,-,- ! EVALUE; 3,4,- ! ESHAPE; 3,-,2x2 ! ESHAPE",
    .lo = -2,
    .hi = 2,
    .torch = "clamp"
};
REGISTER_OPS(&op_clamp_tensor);

const TensorClampTensorArgs tensor_clamp_tensor_defaults = { TENSOR_CLAMP_TENSOR_DEFAULTS };

Tensor *tensor_clamp_tensor_args(TensorClampTensorArgs a)
{
    return APPLY(&op_clamp_tensor, NULL, a.input, a.min, a.max);
}
Tensor *tensor_clamp_tensor_args_(TensorClampTensorArgs a)
{
    return APPLY_(&op_clamp_tensor, NULL, a.input, a.min, a.max);
}

/* ---- nan_to_num ------------------------------------------------------------------------------ */

/* A bound that is NaN is absent: the largest number takes its place, by which clamp serves. */
static int nan_to_num(OpCall *c)
{
    const TensorNanToNumArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *y;
    if (!dtype_is_float(x->dtype)) return op_set_result(c, 0, tensor_clone(x));
    double largest = x->dtype == TENSOR_F64   ? DBL_MAX
                     : x->dtype == TENSOR_F32 ? (double)FLT_MAX
                     : x->dtype == TENSOR_F16 ? 65504
                                              : 0x1.fep127;
    const double to[FUSED_PARAMS] = { p->nan, isnan(p->posinf) ? largest : p->posinf,
                                      isnan(p->neginf) ? -largest : p->neginf };
    if (fused_result(c, FUSED_nan_to_num, 1, &x, to)) return 0;
    if (isnan(p->posinf) && isnan(p->neginf)) y = tensor_clamp(x, -largest, largest);
    else {
        y = tensor_masked_fill(x, tensor_isposinf(x), isnan(p->posinf) ? largest : p->posinf);
        y = tensor_masked_fill(y, tensor_isneginf(x), isnan(p->neginf) ? -largest : p->neginf);
    }
    return op_set_result(c, 0, tensor_masked_fill(y, tensor_isnan(x), p->nan));
}

const TensorNanToNumArgs tensor_nan_to_num_defaults = { TENSOR_NAN_TO_NUM_DEFAULTS };
static const OpField nan_to_num_fields[] = { OP_OPTION(TensorNanToNumArgs, nan, posinf, neginf), { 0 } };
static const TensorOp op_nan_to_num = { .name = "nan_to_num",
                                        .autocast = AUTOCAST_AS_IS,
                                        .summary = "NaN, inf and -inf replaced by numbers; gradient 0 there",
                                        .gradient = "dx = x finite ? g : 0",
                                        .arity = 1,
                                        PARAMS(TensorNanToNumArgs, tensor_nan_to_num_defaults,
                                               nan_to_num_fields),
                                        .compose = nan_to_num,
                                        .flags = OP_ANY_DEVICE,
                                        .samples = "20; 1x0x3; ; 3x4 {nan=1 posinf=2}; 5 {neginf=-3}; 3@i64",
                                        .errors = "3,3 ! EVALUE" };
REGISTER_OPS(&op_nan_to_num);

Tensor *tensor_nan_to_num_args(TensorNanToNumArgs a) { return APPLY(&op_nan_to_num, &a, a.input); }
Tensor *tensor_nan_to_num_args_(TensorNanToNumArgs a) { return APPLY_(&op_nan_to_num, &a, a.input); }

/* ---- gelu: its rows by one name -------------------------------------------------------------- */

const TensorGeluArgs tensor_gelu_defaults = { TENSOR_GELU_DEFAULTS };

static Tensor *gelu(const char *name, TensorGeluArgs a, Tensor *(*exact)(Tensor *),
                    Tensor *(*by_tanh)(Tensor *))
{
    static const char *const approximations[] = { "none", "tanh", NULL };
    if (tensor_check_choice(name, "approximate", (int)a.approximate, approximations)) return NULL;
    if (a.approximate == TENSOR_GELU_EXACT) return exact(a.input);
    const char *outer = tensor_compose_begin(name);
    Tensor *y = by_tanh(a.input);
    tensor_compose_end(outer);
    return y;
}

Tensor *tensor_gelu_args(TensorGeluArgs a) { return gelu("tensor_gelu", a, tensor_gelu, tensor_gelu_tanh); }
Tensor *tensor_gelu_args_(TensorGeluArgs a)
{
    return gelu("tensor_gelu_", a, tensor_gelu_, tensor_gelu_tanh_);
}

/* ---- round to decimals ----------------------------------------------------------------------- */

typedef struct RoundParams {
    int decimals;
} RoundParams;

/* 10^|n| and not its inverse, which is no float. */
static int round_decimals(OpCall *c)
{
    const int n = ((const RoundParams *)op_params(c))->decimals;
    const double ten = pow(10, abs(n));
    Tensor *x = op_input(c, 0);
    return op_set_result(c, 0,
                         n < 0 ? tensor_mul_scalar(tensor_round(tensor_div_scalar(x, ten)), ten)
                               : tensor_div_scalar(tensor_round(tensor_mul_scalar(x, ten)), ten));
}

static const OpField round_fields[] = { OP_OPTION(RoundParams, decimals), { 0 } };
static const TensorOp op_round_decimals = {
    .name = "round_decimals",
    .autocast = AUTOCAST_AS_IS,
    .summary = "rint(x 10^decimals) / 10^decimals, halves to even",
    .gradient = "dx = 0",
    .arity = 1,
    PARAMS_GIVEN(RoundParams, round_fields),
    .compose = round_decimals,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .samples = "20:.011..0.014 {decimals=2}; 1x0x3; ; 3x4:.1..0.4; 2x3x2:6..9 {decimals=-1}",
    .errors = "3@i64 ! EDTYPE; 3@bool ! EDTYPE",
    .lo = .1,
    .hi = .4,
    .torch = "round"
};
REGISTER_OPS(&op_round_decimals);

Tensor *tensor_round_decimals(Tensor *x, int decimals)
{
    return APPLY(&op_round_decimals, &(RoundParams){ decimals }, x);
}
Tensor *tensor_round_decimals_(Tensor *x, int decimals)
{
    return APPLY_(&op_round_decimals, &(RoundParams){ decimals }, x);
}

/* ---- float_power, division rounded, positive ------------------------------------------------- */

static int float_power(OpCall *c)
{
    return op_set_result(
        c, 0, tensor_pow(tensor_to(op_input(c, 0), TENSOR_F64), tensor_to(op_input(c, 1), TENSOR_F64)));
}

static const TensorOp op_float_power = { .name = "float_power",
                                         .autocast = AUTOCAST_AS_IS,
                                         .summary = "a^b in f64",
                                         .gradient = "da = g b a^(b - 1), db = g y log a",
                                         .arity = 2,
                                         .compose = float_power,
                                         .flags = OP_ANY_DEVICE,
                                         .samples = "3x4,3x4; 3x1,4; ,; 0x2,2; 3@i64:1..3,3@i32",
                                         .errors = "2x3,3x2 ! ESHAPE",
                                         .lo = .5,
                                         .hi = 2 };
REGISTER_OPS(&op_float_power);

Tensor *tensor_float_power(Tensor *a, Tensor *b) { return APPLY(&op_float_power, NULL, a, b); }

static int check_f64(const char *function, const Tensor *x)
{
    if (!x || x->dtype == TENSOR_F64) return 0;
    return fail(TENSOR_EDTYPE, function, "the result is f64 and does not fit into %s",
                tensor_dtype_name((TensorDtype)x->dtype));
}

Tensor *tensor_float_power_(Tensor *a, Tensor *b)
{
    if (check_f64(__func__, a)) return NULL;
    return APPLY_(&op_float_power, NULL, a, b);
}

typedef struct PowerParams {
    double c;
} PowerParams;

static double exponent(const OpCall *c) { return ((const PowerParams *)op_params(c))->c; }

static int float_power_scalar(OpCall *c)
{
    return op_set_result(c, 0, tensor_pow_scalar(tensor_to(op_input(c, 0), TENSOR_F64), exponent(c)));
}

static int rfloat_power_scalar(OpCall *c)
{
    return op_set_result(c, 0, tensor_rpow_scalar(tensor_to(op_input(c, 0), TENSOR_F64), exponent(c)));
}

static const PowerParams power_defaults = { .c = 2 };
static const OpField power_fields[] = { OP_OPTION(PowerParams, c), { 0 } };
static const TensorOp op_float_power_scalar = { .name = "float_power_scalar",
                                                .autocast = AUTOCAST_AS_IS,
                                                .summary = "x^c in f64",
                                                .gradient = "dx = g c x^(c - 1)",
                                                .arity = 1,
                                                PARAMS_GIVEN(PowerParams, power_fields),
                                                .defaults = &power_defaults,
                                                .compose = float_power_scalar,
                                                .flags = OP_ANY_DEVICE,
                                                .samples = "20; 1x0x3; ; 3x4 {c=-1.5}; 3@i64:1..3 {c=.5}",
                                                .errors = "3,3 ! EVALUE",
                                                .lo = .5,
                                                .hi = 2,
                                                .torch = "float_power" };
static const TensorOp op_rfloat_power_scalar = { .name = "rfloat_power_scalar",
                                                 .autocast = AUTOCAST_AS_IS,
                                                 .summary = "c^x in f64",
                                                 .gradient = "dx = g y log c",
                                                 .arity = 1,
                                                 PARAMS_GIVEN(PowerParams, power_fields),
                                                 .defaults = &power_defaults,
                                                 .compose = rfloat_power_scalar,
                                                 .flags = OP_ANY_DEVICE,
                                                 .samples = "20; 1x0x3; ; 3x4 {c=.5}; 3@i64:-3..3",
                                                 .errors = "3,3 ! EVALUE",
                                                 .lo = -2,
                                                 .hi = 2,
                                                 .torch = "float_power" };
REGISTER_OPS(&op_float_power_scalar, &op_rfloat_power_scalar);

Tensor *tensor_float_power_scalar(Tensor *x, double c)
{
    return APPLY(&op_float_power_scalar, &(PowerParams){ c }, x);
}
Tensor *tensor_float_power_scalar_(Tensor *x, double c)
{
    if (check_f64(__func__, x)) return NULL;
    return APPLY_(&op_float_power_scalar, &(PowerParams){ c }, x);
}
Tensor *tensor_rfloat_power_scalar(Tensor *x, double c)
{
    return APPLY(&op_rfloat_power_scalar, &(PowerParams){ c }, x);
}

HIDDEN extern const TensorOp op_floor_divide, op_trunc_divide;

static int check_rounding(const char *function, TensorRounding rounding)
{
    static const char *const roundings[] = { "floor", "trunc", NULL };
    return tensor_check_choice(function, "rounding", (int)rounding, roundings);
}

Tensor *tensor_div_rounding(Tensor *a, Tensor *b, TensorRounding rounding)
{
    if (check_rounding(__func__, rounding)) return NULL;
    return row_apply_as(rounding == TENSOR_FLOOR ? &op_floor_divide : &op_trunc_divide, __func__, a, b, NULL,
                        SITE);
}

Tensor *tensor_div_rounding_(Tensor *a, Tensor *b, TensorRounding rounding)
{
    if (check_rounding(__func__, rounding)) return NULL;
    return row_apply_(rounding == TENSOR_FLOOR ? &op_floor_divide : &op_trunc_divide, __func__, a, b, NULL,
                      SITE);
}

Tensor *tensor_positive(Tensor *x)
{
    if (check_null(x, "tensor_positive", 1)) return NULL;
    if (x->dtype == TENSOR_BOOL)
        return fail(TENSOR_EDTYPE, "tensor_positive", "bool %s: not defined for bool", S(x)), NULL;
    return borrow(x);
}

/* ---- isclose --------------------------------------------------------------------------------- */

/* Equal ones are close, infinities too; others where the difference is finite and small.  Integers are
 * compared in f64. */
static int isclose(OpCall *c)
{
    const TensorIscloseArgs *p = op_params(c);
    Tensor *a = tensor_detach(op_input(c, 0)), *b = tensor_detach(op_input(c, 1));
    if (!a || !b) return -1;
    if (!(p->rtol >= 0 && p->atol >= 0))
        return op_fail(c, TENSOR_EVALUE, "%s and %s: rtol = %g, atol = %g: want 0 or more", S(a), S(b),
                       p->rtol, p->atol);
    Tensor *close = tensor_eq(a, b);
    if (!dtype_is_float(a->dtype)) a = tensor_to(a, TENSOR_F64), b = tensor_to(b, TENSOR_F64);
    if (!a || !b) return -1;
    Tensor *off = tensor_abs(tensor_sub(a, b)),
           *allowed = tensor_add_scalar(tensor_mul_scalar(tensor_abs(b), p->rtol), p->atol);
    close = tensor_logical_or(close, tensor_logical_and(tensor_isfinite(off), tensor_le(off, allowed)));
    if (p->equal_nan) close = tensor_logical_or(close, tensor_logical_and(tensor_isnan(a), tensor_isnan(b)));
    return op_set_result(c, 0, close);
}

const TensorIscloseArgs tensor_isclose_defaults = { TENSOR_ISCLOSE_DEFAULTS };
static const OpField close_fields[] = { OP_OPTION(TensorIscloseArgs, rtol, atol, equal_nan), { 0 } };
static const TensorOp op_isclose = { .name = "isclose",
                                     .autocast = AUTOCAST_AS_IS,
                                     .summary = "|a - b| <= atol + rtol |b|, or a == b",
                                     .arity = 2,
                                     PARAMS(TensorIscloseArgs, tensor_isclose_defaults, close_fields),
                                     .compose = isclose,
                                     .flags =
                                         OP_ANY_DEVICE | OP_NONDIFFERENTIABLE | OP_ONE_DTYPE | OP_ROUND_ONCE,
                                     .samples = "3x4,3x4; 3x4,3x4 {rtol=.5 atol=.2}; 3x1,4 {equal_nan=1}; "
                                                "0x2,2; ,; 3@i64,3@i64 {atol=1}; 3@bool,3@bool",
                                     .errors =
                                         "3,4 ! ESHAPE; 3,3 {rtol=-1} ! EVALUE; 3,3 {atol=-1} ! EVALUE; "
                                         "3@f32,3@f64 ! EDTYPE; 3@i64,3@i32 ! EDTYPE" };
REGISTER_OPS(&op_isclose);

Tensor *tensor_isclose_args(TensorIscloseArgs a) { return APPLY(&op_isclose, &a, a.a, a.b); }
