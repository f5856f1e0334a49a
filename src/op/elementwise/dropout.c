/* dropout.c - elements, or channels, set to zero at random.
 *
 *   y = m x / (1 - p), m = 1 with probability 1 - p         dx = m g / (1 - p)
 *
 * The mask is a bool tensor that where() keeps for backward.  Selecting instead of multiplying makes dropped
 * elements exactly 0 and p = 1 no special case.  If nothing is dropped, no number is drawn and the public
 * functions return x. */
#include "random/draw.h"
#include "random/random_state.h"
#include "dropout.h"

const TensorDropoutArgs tensor_dropout_defaults = { TENSOR_DROPOUT_DEFAULTS };

/* ---- masks ----------------------------------------------------------------------------------- */

/* The counter-based generator's, made where they are needed. */
static Tensor *philox_mask(OpCall *c, TensorShape shape, double p, const Place *place)
{
    Tensor *mask = own(new_tensor(shape, TENSOR_BOOL, place));
    if (!mask) return NULL;
    RandomArgs args = {
        .kind = RANDOM_DROPOUT_MASK, .dtype = TENSOR_BOOL, .count = mask->numel, .p = p, .out = mask->data
    };
    random_next_philox(&args.seed, &args.offset, args.count);
    return RUN_KERNEL(c->name, place, random, &args) ? NULL : mask;
}

static Tensor *mask_of_nothing(TensorShape shape, const Place *place)
{
    Tensor *mask = own(new_tensor(shape, TENSOR_BOOL, place));
    return mask && !raw_fill(mask, 0) ? mask : NULL;
}

Tensor *dropout_mask_like(OpCall *c, const Tensor *x, double p)
{
    if (p == 1) return mask_of_nothing(shape_of(x), x->place);
    if (!random_torch_masks() || x->place != &cpu_place) return philox_mask(c, shape_of(x), p, x->place);
    return draw_mask_like(x, c->name, 1 - p);
}

Tensor *dropout_mask(OpCall *c, TensorShape shape, double p, const Place *place)
{
    if (p == 1) return mask_of_nothing(shape, place);
    if (!random_torch_masks() || place != &cpu_place) return philox_mask(c, shape, p, place);
    Tensor *mask = own(new_tensor(shape, TENSOR_BOOL, &cpu_place));
    return mask ? draw_mask_like(mask, c->name, 1 - p) : NULL;
}

Tensor *dropout_mask_of_channels(OpCall *c, int leading)
{
    const Tensor *x = op_input(c, 0);
    const TensorDropoutArgs *a = op_params(c);
    int64_t dim[TENSOR_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) dim[i] = i < leading ? x->shape[i] : 1;
    return dropout_mask(c, (TensorShape){ x->ndim, dim }, a->p, x->place);
}

/* ---- checks ---------------------------------------------------------------------------------- */

int dropout_check(OpCall *c)
{
    const double p = ((const TensorDropoutArgs *)op_params(c))->p;
    return p >= 0 && p <= 1 ? 0 : op_fail(c, TENSOR_EVALUE, "p = %g: a probability lies in [0, 1]", p);
}

int dropout_check_channels(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->ndim < 2 && drops(op_params(c), x))
        return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, ...]", S(x));
    return dropout_check(c);
}

static int check_1d(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->ndim != 2 && x->ndim != 3)
        return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, length] or [channels, length]", S(x));
    return dropout_check(c);
}

static int check_3d(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->ndim < 1 && drops(op_params(c), x))
        return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, depth, height, width], or without batch",
                       S(x));
    return dropout_check(c);
}

/* ---- the ops --------------------------------------------------------------------------------- */

static int drop(OpCall *c, Tensor *mask)
{
    const TensorDropoutArgs *a = op_params(c);
    Tensor *x = op_input(c, 0), *zero = mask ? own(new_tensor(SHAPE(), x->dtype, x->place)) : NULL;
    if (!zero || raw_fill(zero, 0)) return -1;
    Tensor *kept = a->p < 1 ? tensor_mul_scalar(x, 1 / (1 - a->p)) : x;
    return op_set_result(c, 0, tensor_where(mask, kept, zero));
}

/* One draw for each element, or for each index of the first `leading` dims. */
static int compose(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    const TensorDropoutArgs *a = op_params(c);
    return drops(a, x) ? drop(c, dropout_mask_like(c, x, a->p)) : op_set_result(c, 0, x);
}

static int drop_slices(OpCall *c, int leading)
{
    Tensor *x = op_input(c, 0);
    return drops(op_params(c), x) ? drop(c, dropout_mask_of_channels(c, leading)) : op_set_result(c, 0, x);
}

static int compose_channels(OpCall *c) { return drop_slices(c, 2); }
static int compose_1d(OpCall *c) { return drop_slices(c, op_input(c, 0)->ndim - 1); }
static int compose_3d(OpCall *c) { return drop_slices(c, op_input(c, 0)->ndim == 5 ? 2 : 1); }

const OpField dropout_fields[] = { OP_OPTION(TensorDropoutArgs, p),
                                   OP_OPTION(TensorDropoutArgs, training),
                                   { 0 } };

#define DROPOUT                                                                                    \
    .gradient = "dx = m g / (1 - p), m the mask", .arity = 1, .params = sizeof(TensorDropoutArgs), \
    .defaults = &tensor_dropout_defaults, .fields = dropout_fields,                                \
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_RANDOM | OP_MAY_ALIAS

const TensorOp op_dropout = {
    .name = "dropout",
    .autocast = AUTOCAST_AS_IS,
    .summary = "elements set to 0 with probability p, the others divided by 1 - p",
    DROPOUT,
    .shape = dropout_check,
    .compose = compose,
    .torch = "nn.functional.dropout",
    .samples = "4x5; 20 {p=.25}; 3x4 {p=0}; 3x4 {p=1}; 3x4 {training=0}; {p=.5}; 0x3",
    .errors = "3 {p=-.1} ! EVALUE; 3 {p=1.5} ! EVALUE; 3 {p=nan} ! EVALUE; 3@i64 ! EDTYPE",
};
const TensorOp op_dropout2d = {
    .name = "dropout2d",
    .autocast = AUTOCAST_AS_IS,
    .summary = "channels set to 0 with probability p, the others divided by 1 - p",
    DROPOUT,
    .shape = dropout_check_channels,
    .compose = compose_channels,
    .torch = "nn.functional.dropout2d",
    .samples =
        "3x4x2x2; 4x5 {p=.25}; 2x3x4 {p=1}; 2x3x2x2 {training=0}; 0x3x2x2; 2x3x0x2; 3 {training=0}; {p=0}; 0",
    .errors = "3 ! ESHAPE; 2x3 {p=2} ! EVALUE; 3 {p=2 training=0} ! EVALUE",
};
const TensorOp op_dropout1d = {
    .name = "dropout1d",
    .autocast = AUTOCAST_AS_IS,
    .summary = "channels of [.., C, L] set to 0 with probability p, the others divided by 1 - p",
    DROPOUT,
    .shape = check_1d,
    .compose = compose_1d,
    .torch = "nn.functional.dropout1d",
    .samples = "3x4x5; 4x5 {p=.25}; 2x3x4 {p=1}; 2x3x2 {training=0}; 2x3 {p=0}; 0x3x2",
    .errors = "3 ! ESHAPE; 2x3x2x2 ! ESHAPE; 2x3 {p=2} ! EVALUE; 2x3@i64 ! EDTYPE",
};
const TensorOp op_dropout3d = {
    .name = "dropout3d",
    .autocast = AUTOCAST_AS_IS,
    .summary = "channels of [.., C, D, H, W] set to 0 with probability p, the others divided by 1 - p",
    DROPOUT,
    .shape = check_3d,
    .compose = compose_3d,
    .torch = "nn.functional.dropout3d",
    .samples = "2x3x2x2x2; 4x2x1x3 {p=.25}; 2x3x1x2x2 {p=1}; 2x1x2x2 {training=0}; 2x3x1x1 {p=0}; 0x3x2x2x2; "
               "2x3; 3; 2x3x1x1x2x1; 3 {training=0}; {p=0}; {training=0}",
    .errors = " ! ESHAPE; 2x3x2x2 {p=-1} ! EVALUE; 3 {p=2 training=0} ! EVALUE; 2x3x2x2@i64 ! EDTYPE",
};
REGISTER_OPS(&op_dropout, &op_dropout1d, &op_dropout3d, &op_dropout2d);

bool drops_nothing(const TensorDropoutArgs *a)
{
    if (a->from_defaults != TENSOR_DEFAULTS_MARK) return false; /* refused by the op */
    return a->input && (a->training ? a->p == 0 : a->p >= 0 && a->p <= 1);
}

Tensor *dropout_apply(const TensorOp *op, const TensorDropoutArgs *a, const void *site)
{
    return drops_nothing(a) ? borrow(a->input) : op_apply1(op, &a->input, 1, a, site);
}

Tensor *dropout_apply_(const TensorOp *op, const TensorDropoutArgs *a, const void *site)
{
    return drops_nothing(a) ? borrow(a->input) : op_apply_(op, &a->input, 1, a, site);
}

Tensor *tensor_dropout_args(TensorDropoutArgs a) { return dropout_apply(&op_dropout, &a, SITE); }
Tensor *tensor_dropout_args_(TensorDropoutArgs a) { return dropout_apply_(&op_dropout, &a, SITE); }
Tensor *tensor_dropout2d_args(TensorDropoutArgs a) { return dropout_apply(&op_dropout2d, &a, SITE); }

Tensor *tensor_dropout3d_args(TensorDropoutArgs a) { return dropout_apply(&op_dropout3d, &a, SITE); }

/* Refuses other ranks whatever p. */
Tensor *tensor_dropout1d_args(TensorDropoutArgs a)
{
    const bool fits = a.input && (a.input->ndim == 2 || a.input->ndim == 3);
    return fits ? dropout_apply(&op_dropout1d, &a, SITE) : APPLY(&op_dropout1d, &a, a.input);
}
