/* dropout.c - elements, or channels, replaced at random.
 *
 *   m = 1 with probability 1 - p, for each element or for each channel
 *   dropout         y = m x / (1 - p)                         dx = m g / (1 - p)
 *   alpha_dropout   y = a (m x + (1 - m) u) + b               dx = a m g
 *                   u = -1.758... (selu's limit), a = 1 / sqrt((1 - p) (1 + p u^2)), b = -a p u:
 *                   selu's mean 0 and variance 1 remain
 *
 * The mask is a bool tensor that is kept for backward: by where(), or of elements on a device by an op that
 * draws and selects in one pass.  Selecting instead of multiplying makes dropped
 * elements exactly what they should be, also where x is NaN, and p = 1 no special case.  If nothing is
 * dropped, no number is drawn and the public functions return x. */
#include <math.h>
#include "random/draw.h"
#include "random/random_state.h"
#include "op/shape/shape_op.h"
#include "dropout.h"

const TensorDropoutArgs tensor_dropout_defaults = { TENSOR_DROPOUT_DEFAULTS };

/* ---- masks ----------------------------------------------------------------------------------- */

/* The counter-based generator's, made where they are needed.  1: the device makes a mask alone. */
static int draw_philox(OpCall *c, const Place *place, RandomArgs *args)
{
    args->kind = RANDOM_DROPOUT_MASK;
    if (unlikely(graph_serial) && args->count)
        args->state = graph_random(c->name, place, args->seed, &args->offset);
    if (!RUN_KERNEL(c->name, place, random, args)) return 0;
    if (!args->x || !take_decline()) return -1;
    args->x = NULL;
    return RUN_KERNEL(c->name, place, random, args) ? -1 : 1;
}

static Tensor *philox_mask(OpCall *c, TensorShape shape, double p, const Place *place)
{
    Tensor *mask = own(new_tensor(shape, TENSOR_BOOL, place));
    if (!mask) return NULL;
    RandomArgs args = { .dtype = TENSOR_BOOL, .count = mask->numel, .p = p, .out = mask->data };
    random_next_philox(&args.seed, &args.offset, args.count);
    return draw_philox(c, place, &args) ? NULL : mask;
}

Tensor *philox_uniform(const char *op, TensorShape shape, int dtype, const Place *place)
{
    Tensor *u = own(new_tensor(shape, dtype, place));
    if (!u || u->numel == 0) return u;
    RandomArgs args = { .kind = RANDOM_UNIFORM, .dtype = dtype, .count = u->numel, .out = u->data };
    random_next_philox(&args.seed, &args.offset, args.count);
    if (unlikely(graph_serial)) args.state = graph_random(op, place, args.seed, &args.offset);
    return RUN_KERNEL(op, place, random, &args) ? NULL : u;
}

bool draws_as_torch(const Place *place) { return random_torch_masks() && place == &cpu_place; }

static Tensor *mask_of_nothing(TensorShape shape, const Place *place)
{
    Tensor *mask = own(new_tensor(shape, TENSOR_BOOL, place));
    return mask && !raw_fill(mask, 0) ? mask : NULL;
}

/* PyTorch's on a GPU, as Tensor.bernoulli_ draws them for this dtype; or the above. */
static Tensor *mask_on_device(OpCall *c, TensorShape shape, double p, const Place *place, int dtype)
{
    Tensor *mask = random_torch_cuda() ? own(new_tensor(shape, TENSOR_BOOL, place)) : NULL;
    if (!mask || mask->numel == 0) return philox_mask(c, shape, p, place);
    RandomArgs args = {
        .kind = RANDOM_TORCH_BERNOULLI, .dtype = dtype, .count = mask->numel, .out = mask->data, .p = 1 - p
    };
    const int status = random_as_torch(c->name, place, &args);
    return status > 0 ? philox_mask(c, shape, p, place) : status ? NULL : mask;
}

Tensor *dropout_mask_like(OpCall *c, const Tensor *x, double p)
{
    if (p == 1) return mask_of_nothing(shape_of(x), x->place);
    if (!draws_as_torch(x->place)) return philox_mask(c, shape_of(x), p, x->place);
    return draw_mask_like(x, c->name, 1 - p);
}

Tensor *dropout_mask(OpCall *c, TensorShape shape, double p, const Place *place)
{
    if (p == 1) return mask_of_nothing(shape, place);
    if (!draws_as_torch(place)) return philox_mask(c, shape, p, place);
    Tensor *mask = own(new_tensor(shape, TENSOR_BOOL, &cpu_place));
    return mask ? draw_mask_like(mask, c->name, 1 - p) : NULL;
}

/* ---- the ops --------------------------------------------------------------------------------- */

/* TensorOp.variant: which dims are the channels', and ALPHA. */
enum { ELEMENTS, OF_1D, OF_2D, OF_3D, ALPHA = 4 };

static int part_of(const TensorOp *op) { return op->variant & ~ALPHA; }

static bool drops(const TensorDropoutArgs *a, const Tensor *x)
{
    return a->training && a->p != 0 && x->numel;
}

/* Where nothing is dropped, 1d alone refuses other ranks. */
static bool fits(int part, const TensorDropoutArgs *a, const Tensor *x)
{
    if (part == OF_1D) return x->ndim == 2 || x->ndim == 3;
    return part == ELEMENTS || x->ndim >= (part == OF_2D ? 2 : 1) || !drops(a, x);
}

static int check(OpCall *c)
{
    static const char *const want[] = { NULL, "[batch, channels, length] or [channels, length]",
                                        "[batch, channels, ...]",
                                        "[batch, channels, depth, height, width], or without batch" };
    const Tensor *x = op_input(c, 0);
    const TensorDropoutArgs *a = op_params(c);
    const int part = part_of(c->op);
    if (!fits(part, a, x)) return op_fail(c, TENSOR_ESHAPE, "%s: want %s", S(x), want[part]);
    if (a->p >= 0 && a->p <= 1) return 0;
    return op_fail(c, TENSOR_EVALUE, "p = %g: a probability lies in [0, 1]", a->p);
}

/* One draw for each element, or for each index of the dims up to the channels'. */
static Tensor *mask_of(OpCall *c, const Tensor *x, double p)
{
    const int part = part_of(c->op);
    const int leading = part == OF_1D ? x->ndim - 1 : part == OF_2D || x->ndim == 5 ? 2 : 1;
    int64_t dim[TENSOR_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) dim[i] = part == ELEMENTS || i < leading ? x->shape[i] : 1;
    const TensorShape shape = { x->ndim, dim };
    if (!on_host(x->place) && p < 1) return mask_on_device(c, shape, p, x->place, x->dtype);
    return part == ELEMENTS ? dropout_mask_like(c, x, p) : dropout_mask(c, shape, p, x->place);
}

/* ---- elements on a device: the mask and the result in one pass ---------------------------------- */

static double factor(const OpCall *c) { return 1 / (1 - ((const TensorDropoutArgs *)op_params(c))->p); }

static int draw_with(OpCall *c, const Place *place, RandomArgs *args)
{
    if (random_torch_cuda()) {
        args->kind = RANDOM_TORCH_DROPOUT;
        const int status = random_as_torch(c->name, place, args);
        if (status <= 0) return status;
    }
    random_next_philox(&args->seed, &args->offset, args->count);
    return draw_philox(c, place, args);
}

static int drop_forward(OpCall *c)
{
    Tensor *x = own(raw_contiguous(op_input(c, 0))), *y = op_output(c, 0);
    Tensor *mask = x ? own(new_tensor(shape_of(x), TENSOR_BOOL, x->place)) : NULL;
    if (!mask) return -1;
    RandomArgs args = { .dtype = x->dtype,
                        .count = x->numel,
                        .p = ((const TensorDropoutArgs *)op_params(c))->p,
                        .out = mask->data,
                        .x = x->data,
                        .y = y->data,
                        .scale = factor(c) };
    int status = draw_with(c, x->place, &args);
    if (status > 0) {
        const Tensor *zero = zeros_on(SHAPE(), x->dtype, x->place);
        x = tensor_mul_scalar(x, args.scale);
        status = x && zero ? raw_select(c->name, y, mask, x, zero) : -1;
    }
    return status ? -1 : op_save(c, mask);
}

static Tensor *drop_recorded(Tensor *mask, Tensor *dy, double scale)
{
    return tensor_mul_scalar(tensor_where(mask, dy, zeros_on(SHAPE(), dy->dtype, dy->place)), scale);
}

static int drop_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *mask = op_saved_extra(c, 0);
    if (!mask) return -1;
    if (op_recording(c)) return (dx[0] = drop_recorded(mask, dy, factor(c))) ? 0 : -1;
    const Tensor *g = own(raw_contiguous(dy));
    Tensor *y = g ? own(new_tensor(shape_of(g), g->dtype, g->place)) : NULL;
    if (!y) return -1;
    RandomArgs args = { .kind = RANDOM_GIVEN_MASK,
                        .dtype = g->dtype,
                        .count = g->numel,
                        .out = mask->data,
                        .x = g->data,
                        .y = y->data,
                        .scale = factor(c) };
    if (RUN_KERNEL(c->name, g->place, random, &args))
        y = take_decline() ? drop_recorded(mask, dy, args.scale) : NULL;
    return (dx[0] = y) ? 0 : -1;
}

static const TensorOp op_drop = { .name = "dropout",
                                  .autocast = AUTOCAST_AS_IS,
                                  .arity = 1,
                                  .params = sizeof(TensorDropoutArgs),
                                  .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_RANDOM,
                                  .shape = op_same_shape,
                                  .forward = drop_forward,
                                  .backward = drop_backward };

static int compose(OpCall *c)
{
    static const double limit = -1.7580993408473766;
    const TensorDropoutArgs *args = op_params(c);
    const double p = args->p;
    Tensor *x = op_input(c, 0);
    if (!drops(args, x)) return op_set_result(c, 0, x);
    if (!c->op->variant && !on_host(x->place) && p < 1)
        return op_set_result(c, 0, op_apply1(&op_drop, &x, 1, args, SITE));
    Tensor *mask = mask_of(c, x, p), *dropped = mask ? own(new_tensor(SHAPE(), x->dtype, x->place)) : NULL;
    if (!dropped) return -1;
    if (c->op->variant & ALPHA) {
        const double a = p < 1 ? 1 / sqrt((1 - p) * (1 + p * limit * limit)) : 0;
        if (raw_fill(dropped, a * (1 - p) * limit)) return -1;
        x = tensor_add_scalar(tensor_mul_scalar(x, a), -a * p * limit);
    } else {
        if (raw_fill(dropped, 0)) return -1;
        if (p < 1) x = tensor_mul_scalar(x, 1 / (1 - p));
    }
    return op_set_result(c, 0, tensor_where(mask, x, dropped));
}

static const OpField fields[] = { OP_OPTION(TensorDropoutArgs, p),
                                  OP_OPTION(TensorDropoutArgs, training),
                                  { 0 } };

#define DROPOUT(which, formula, rounding)                                                             \
    .autocast = AUTOCAST_AS_IS, .gradient = formula ", m the mask", .arity = 1,                       \
    .params = sizeof(TensorDropoutArgs), .defaults = &tensor_dropout_defaults, .fields = fields,      \
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_RANDOM | OP_MAY_ALIAS | rounding, .variant = which, \
    .shape = check, .compose = compose
#define DROP(which) DROPOUT(which, "dx = m g / (1 - p)", 0)
#define ALPHA_DROP(which) DROPOUT(ALPHA | which, "dx = a m g", OP_ROUND_ONCE)

const TensorOp op_dropout = {
    .name = "dropout",
    .summary = "elements set to 0 with probability p, the others divided by 1 - p",
    DROP(ELEMENTS),
    .torch = "nn.functional.dropout",
    .samples = "4x5; 20 {p=.25}; 3x4 {p=0}; 3x4 {p=1}; 3x4 {training=0}; {p=.5}; 0x3",
    .errors = "3 {p=-.1} ! EVALUE; 3 {p=1.5} ! EVALUE; 3 {p=nan} ! EVALUE; 3@i64 ! EDTYPE",
};
const TensorOp op_dropout1d = {
    .name = "dropout1d",
    .summary = "channels of [.., C, L] set to 0 with probability p, the others divided by 1 - p",
    DROP(OF_1D),
    .torch = "nn.functional.dropout1d",
    .samples = "3x4x5; 4x5 {p=.25}; 2x3x4 {p=1}; 2x3x2 {training=0}; 2x3 {p=0}; 0x3x2",
    .errors = "3 ! ESHAPE; 2x3x2x2 ! ESHAPE; 2x3 {p=2} ! EVALUE; 2x3@i64 ! EDTYPE",
};
const TensorOp op_dropout2d = {
    .name = "dropout2d",
    .summary = "channels set to 0 with probability p, the others divided by 1 - p",
    DROP(OF_2D),
    .torch = "nn.functional.dropout2d",
    .samples =
        "3x4x2x2; 4x5 {p=.25}; 2x3x4 {p=1}; 2x3x2x2 {training=0}; 0x3x2x2; 2x3x0x2; 3 {training=0}; {p=0}; 0",
    .errors = "3 ! ESHAPE; 2x3 {p=2} ! EVALUE; 3 {p=2 training=0} ! EVALUE",
};
const TensorOp op_dropout3d = {
    .name = "dropout3d",
    .summary = "channels of [.., C, D, H, W] set to 0 with probability p, the others divided by 1 - p",
    DROP(OF_3D),
    .torch = "nn.functional.dropout3d",
    .samples = "2x3x2x2x2; 4x2x1x3 {p=.25}; 2x3x1x2x2 {p=1}; 2x1x2x2 {training=0}; 2x3x1x1 {p=0}; 0x3x2x2x2; "
               "2x3; 3; 2x3x1x1x2x1; 3 {training=0}; {p=0}; {training=0}",
    .errors = " ! ESHAPE; 2x3x2x2 {p=-1} ! EVALUE; 3 {p=2 training=0} ! EVALUE; 2x3x2x2@i64 ! EDTYPE",
};
const TensorOp op_alpha_dropout = {
    .name = "alpha_dropout",
    .summary =
        "elements set to selu's limit with probability p, then scaled and shifted to mean 0, variance 1",
    ALPHA_DROP(ELEMENTS),
    .torch = "nn.functional.alpha_dropout",
    .samples = "4x5; 20 {p=.25}; 3x4 {p=0}; 3x4 {p=1}; 3x4 {training=0}; {p=.5}; 0x3",
    .errors = "3 {p=-.1} ! EVALUE; 3 {p=1.5} ! EVALUE; 3@i64 ! EDTYPE",
};
const TensorOp op_feature_alpha_dropout = {
    .name = "feature_alpha_dropout",
    .summary = "alpha_dropout of whole channels",
    ALPHA_DROP(OF_2D),
    .torch = "nn.functional.feature_alpha_dropout",
    .samples =
        "3x4x2x2; 4x5 {p=.25}; 2x3x4 {p=1}; 2x3x2x2 {training=0}; 0x3x2x2; 2x3x0x2; 3 {training=0}; {p=0}; 0",
    .errors = "3 ! ESHAPE; 2x3 {p=2} ! EVALUE; 2x3@i64 ! EDTYPE",
};
REGISTER_OPS(&op_dropout, &op_dropout1d, &op_dropout2d, &op_dropout3d, &op_alpha_dropout,
             &op_feature_alpha_dropout);

/* ---- public ---------------------------------------------------------------------------------- */

/* The result is x itself.  What the op refuses is for it to say. */
static bool drops_nothing(const TensorOp *op, const TensorDropoutArgs *a)
{
    const int part = part_of(op);
    if (a->from_defaults != TENSOR_DEFAULTS_MARK || !a->input) return false;
    return (a->training ? a->p == 0 : a->p >= 0 && a->p <= 1) && fits(part, a, a->input);
}

static Tensor *apply(const TensorOp *op, const TensorDropoutArgs *a, const void *site)
{
    return drops_nothing(op, a) ? borrow(a->input) : op_apply1(op, &a->input, 1, a, site);
}

static Tensor *apply_(const TensorOp *op, const TensorDropoutArgs *a, const void *site)
{
    return drops_nothing(op, a) ? borrow(a->input) : op_apply_(op, &a->input, 1, a, site);
}

Tensor *tensor_dropout_args(TensorDropoutArgs a) { return apply(&op_dropout, &a, SITE); }
Tensor *tensor_dropout1d_args(TensorDropoutArgs a) { return apply(&op_dropout1d, &a, SITE); }
Tensor *tensor_dropout2d_args(TensorDropoutArgs a) { return apply(&op_dropout2d, &a, SITE); }
Tensor *tensor_dropout3d_args(TensorDropoutArgs a) { return apply(&op_dropout3d, &a, SITE); }
Tensor *tensor_alpha_dropout_args(TensorDropoutArgs a) { return apply(&op_alpha_dropout, &a, SITE); }
Tensor *tensor_feature_alpha_dropout_args(TensorDropoutArgs a)
{
    return apply(&op_feature_alpha_dropout, &a, SITE);
}
Tensor *tensor_dropout_args_(TensorDropoutArgs a) { return apply_(&op_dropout, &a, SITE); }
Tensor *tensor_alpha_dropout_args_(TensorDropoutArgs a) { return apply_(&op_alpha_dropout, &a, SITE); }
Tensor *tensor_feature_alpha_dropout_args_(TensorDropoutArgs a)
{
    return apply_(&op_feature_alpha_dropout, &a, SITE);
}
