/* special_pairs.c - special functions of two tensors, with a gradient for the second only, as in PyTorch.
 *
 *   zeta     sum over k >= 0 of (k + b)^-a                              db = -g a zeta(a + 1, b)
 *   igamma   1 / Gamma(a) integral of t^(a-1) e^-t from 0 to b          db = g b^(a-1) e^-b / Gamma(a)
 *   igammac  1 - igamma                                                 db = -g b^(a-1) e^-b / Gamma(a)
 *
 * Each is two ops: the public one broadcasts and casts, and its core computes in f64, rounded: to 2^-30. */
#include "op/op.h"

typedef struct CoreParams {
    bool rounded; /* the result becomes f32 or a half */
} CoreParams;

static int core_shape(OpCall *c) { return op_set_output(c, 0, shape_of(op_input(c, 0)), TENSOR_F64); }

static int run(OpCall *c, SpecialKind kind)
{
    const Tensor *a = own(raw_contiguous(op_input(c, 0))), *b = own(raw_contiguous(op_input(c, 1)));
    Tensor *y = op_output(c, 0);
    if (!a || !b) return -1;
    SpecialArgs args = { .kind = kind,
                         .rounded = ((const CoreParams *)op_params(c))->rounded,
                         .count = y->numel,
                         .a = a->data,
                         .b = b->data,
                         .y = y->data };
    return RUN_KERNEL(c->name, y->place, special, &args);
}

static int zeta_forward(OpCall *c) { return run(c, SPECIAL_ZETA); }
static int igamma_forward(OpCall *c) { return run(c, SPECIAL_IGAMMA); }
static int igammac_forward(OpCall *c) { return run(c, SPECIAL_IGAMMAC); }

static int zeta_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *a = op_saved(c, 0), *b = op_saved(c, 1);
    dx[1] =
        a && b ? tensor_neg(tensor_mul(dy, tensor_mul(a, tensor_zeta(tensor_add_scalar(a, 1), b)))) : NULL;
    return dx[1] ? 0 : -1;
}

/* By logarithms: the power and Gamma may be out of range where their quotient is not. */
static Tensor *density(Tensor *a, Tensor *b)
{
    Tensor *power = tensor_mul(tensor_sub_scalar(a, 1), tensor_log(b));
    return tensor_exp(tensor_sub(tensor_sub(power, b), tensor_lgamma(a)));
}

static int igamma_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[1] = tensor_mul(dy, density(op_saved(c, 0), op_saved(c, 1)));
    return dx[1] ? 0 : -1;
}

static int igammac_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[1] = tensor_neg(tensor_mul(dy, density(op_saved(c, 0), op_saved(c, 1))));
    return dx[1] ? 0 : -1;
}

#define CORE(name_)                                                               \
    static const TensorOp core_##name_ = { .name = #name_,                        \
                                           .arity = 2,                            \
                                           .keep = KEEP_INPUT(0) | KEEP_INPUT(1), \
                                           .no_grad_inputs = KEEP_INPUT(0),       \
                                           .params = sizeof(CoreParams),          \
                                           .shape = core_shape,                   \
                                           .forward = name_##_forward,            \
                                           .backward = name_##_backward,          \
                                           .flags = OP_ANY_DEVICE }
CORE(zeta);
CORE(igamma);
CORE(igammac);

/* ---- the public ops -------------------------------------------------------------------------- */

static int shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    int64_t joint[TENSOR_MAX_DIMS];
    if (shape_broadcast(shape_of(a), shape_of(b), joint) >= 0) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s and %s do not broadcast", S(a), S(b));
}

/* Of the dtype that a b has; integers give f32. */
static int compose(OpCall *c, const TensorOp *core)
{
    Tensor *a = op_input(c, 0), *b = op_input(c, 1), *like = NULL;
    int64_t dim[TENSOR_MAX_DIMS];
    const TensorShape joint = { shape_broadcast(shape_of(a), shape_of(b), dim), dim };
    TENSOR_NO_GRAD
        like = tensor_div(a, b);
    a = tensor_expand(tensor_to(tensor_detach(a), TENSOR_F64), joint);
    b = tensor_expand(tensor_to(b, TENSOR_F64), joint);
    const CoreParams p = { .rounded = like && like->dtype != TENSOR_F64 };
    Tensor *y = like && a && b ? APPLY(core, &p, a, b) : NULL;
    return op_set_result(c, 0, y ? tensor_to(y, (TensorDtype)like->dtype) : NULL);
}

static int zeta(OpCall *c) { return compose(c, &core_zeta); }
static int igamma(OpCall *c) { return compose(c, &core_igamma); }
static int igammac(OpCall *c) { return compose(c, &core_igammac); }

#define PAIR .arity = 2, .no_grad_inputs = KEEP_INPUT(0), .shape = shape, .flags = OP_ANY_DEVICE
#define SAMPLES(a, b)                                                                        \
    "5:" a ",5:" b "; :" a ",:" b "; 3x4:" a ",4:" b "; 3x1:" a ",1x4:" b "; 0x3:" a ",3:" b \
    "; 3@i64:2..4,3:" b

const TensorOp op_zeta = {
    .name = "zeta",
    .autocast = AUTOCAST_AS_IS,
    .summary = "Hurwitz's zeta function, sum over k >= 0 of (k + b)^-a; no gradient of a",
    .gradient = "db = -g a zeta(a + 1, b)",
    .compose = zeta,
    PAIR,
    .torch = "special.zeta",
    .samples = SAMPLES("1.5..4", ".5..3"),
    .errors = "3,4 ! ESHAPE",
};
const TensorOp op_igamma = {
    .name = "igamma",
    .autocast = AUTOCAST_AS_IS,
    .summary = "regularised incomplete gamma function, the integral from 0 to b; no gradient of a",
    .gradient = "db = g b^(a - 1) e^-b / Gamma(a)",
    .compose = igamma,
    PAIR,
    .samples = SAMPLES("1..4", ".5..4"),
    .errors = "3,4 ! ESHAPE",
};
const TensorOp op_igammac = {
    .name = "igammac",
    .autocast = AUTOCAST_AS_IS,
    .summary = "1 - igamma(a, b), also where that is tiny; no gradient of a",
    .gradient = "db = -g b^(a - 1) e^-b / Gamma(a)",
    .compose = igammac,
    PAIR,
    .samples = SAMPLES("1..4", ".5..4"),
    .errors = "3,4 ! ESHAPE",
};
REGISTER_OPS(&op_zeta, &op_igamma, &op_igammac);

Tensor *tensor_zeta(Tensor *a, Tensor *b) { return APPLY(&op_zeta, NULL, a, b); }
Tensor *tensor_igamma(Tensor *a, Tensor *b) { return APPLY(&op_igamma, NULL, a, b); }
Tensor *tensor_igammac(Tensor *a, Tensor *b) { return APPLY(&op_igammac, NULL, a, b); }
Tensor *tensor_igamma_(Tensor *a, Tensor *b) { return APPLY_(&op_igamma, NULL, a, b); }
Tensor *tensor_igammac_(Tensor *a, Tensor *b) { return APPLY_(&op_igammac, NULL, a, b); }
