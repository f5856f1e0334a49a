/* dropout.c - elements, or channels, set to zero at random.
 *
 *   y = m x / (1 - p), m = 1 with probability 1 - p         dx = m g / (1 - p)
 *
 * The mask is a bool tensor that where() keeps for backward; choosing, not multiplying, makes dropped
 * elements exactly 0 and p = 1 an ordinary case.  When nothing is dropped the generator is left alone, and
 * the public functions give x itself. */
#include "random/random_state.h"
#include "dropout.h"

typedef struct DropoutParams {
    double p;
    bool training;
} DropoutParams;

static int check(OpCall *c)
{
    const DropoutParams *p = op_params(c);
    return p->p >= 0 && p->p <= 1 ? 0
                                  : op_fail(c, TENSOR_EVALUE, "p = %g: a probability lies in [0, 1]", p->p);
}

static int check_channels(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->ndim < 2) return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, ...]", S(x));
    return check(c);
}

static int check_1d(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->ndim != 2 && x->ndim != 3)
        return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, length] or [channels, length]", S(x));
    return check(c);
}

static int check_3d(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->ndim != 4 && x->ndim != 5)
        return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, depth, height, width], or without batch",
                       S(x));
    return check(c);
}

/* PyTorch's own mask, made on the host. */
static Tensor *torch_mask(TensorShape shape, double p, const Place *place)
{
    Tensor *host = own(new_tensor(shape, TENSOR_BOOL, &cpu_place)), *mask = host;
    if (!host) return NULL;
    random_torch_mask(host->data, host->numel, p);
    if (place == &cpu_place) return host;
    mask = own(new_tensor(shape, TENSOR_BOOL, place));
    return mask && !raw_copy(mask, host) ? mask : NULL;
}

Tensor *dropout_mask(OpCall *c, TensorShape shape, double p, const Place *place)
{
    if (random_torch_masks()) return torch_mask(shape, p, place);
    Tensor *mask = own(new_tensor(shape, TENSOR_BOOL, place));
    if (!mask) return NULL;
    RandomArgs args = {
        .kind = RANDOM_DROPOUT_MASK, .dtype = TENSOR_BOOL, .count = mask->numel, .p = p, .out = mask->data
    };
    random_next_philox(&args.seed, &args.offset, args.count);
    return RUN_KERNEL(c->op->name, place, random, &args) ? NULL : mask;
}

static int drop(OpCall *c, TensorShape mask_shape)
{
    const DropoutParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (!p->training || p->p == 0) return op_set_result(c, 0, tensor_clone(x));
    Tensor *mask = dropout_mask(c, mask_shape, p->p, x->place),
           *zero = own(new_tensor(SHAPE(), x->dtype, x->place));
    if (!mask || !zero || raw_fill(zero, 0)) return -1;
    Tensor *kept = p->p < 1 ? tensor_mul_scalar(x, 1 / (1 - p->p)) : x;
    return op_set_result(c, 0, tensor_where(mask, kept, zero));
}

static int compose(OpCall *c) { return drop(c, shape_of(op_input(c, 0))); }

/* One draw for each index of the first `leading` dims. */
static int drop_slices(OpCall *c, int leading)
{
    const Tensor *x = op_input(c, 0);
    int64_t dim[TENSOR_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) dim[i] = i < leading ? x->shape[i] : 1;
    return drop(c, (TensorShape){ x->ndim, dim });
}

static int compose_channels(OpCall *c) { return drop_slices(c, 2); }
static int compose_1d(OpCall *c) { return drop_slices(c, op_input(c, 0)->ndim - 1); }
static int compose_3d(OpCall *c) { return drop_slices(c, op_input(c, 0)->ndim - 3); }

static const OpField fields[] = { OP_FIELD(OP_DOUBLE, DropoutParams, p, "0.5"),
                                  OP_FIELD(OP_BOOL, DropoutParams, training, "1"),
                                  { 0 } };

#define DROPOUT                                                                                \
    .gradient = "dx = m g / (1 - p), m the mask", .arity = 1, .params = sizeof(DropoutParams), \
    .fields = fields, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_RANDOM

const TensorOp op_dropout = {
    .name = "dropout",
    .summary = "elements set to 0 with probability p, the others divided by 1 - p",
    DROPOUT,
    .shape = check,
    .compose = compose,
    .torch = "nn.functional.dropout",
    .samples = "4x5; 20 {p=.25}; 3x4 {p=0}; 3x4 {p=1}; 3x4 {training=0}; {p=.5}; 0x3",
    .errors = "3 {p=-.1} ! EVALUE; 3 {p=1.5} ! EVALUE; 3 {p=nan} ! EVALUE; 3@i64 ! EDTYPE",
};
const TensorOp op_dropout2d = {
    .name = "dropout2d",
    .summary = "channels set to 0 with probability p, the others divided by 1 - p",
    DROPOUT,
    .shape = check_channels,
    .compose = compose_channels,
    .torch = "nn.functional.dropout2d",
    .samples = "3x4x2x2; 4x5 {p=.25}; 2x3x4 {p=1}; 2x3x2x2 {training=0}; 0x3x2x2; 2x3x0x2",
    .errors = "3 ! ESHAPE; 2x3 {p=2} ! EVALUE",
};
const TensorOp op_dropout1d = {
    .name = "dropout1d",
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
    .summary = "channels of [.., C, D, H, W] set to 0 with probability p, the others divided by 1 - p",
    DROPOUT,
    .shape = check_3d,
    .compose = compose_3d,
    .torch = "nn.functional.dropout3d",
    .samples = "2x3x2x2x2; 4x2x1x3 {p=.25}; 2x3x1x2x2 {p=1}; 2x1x2x2 {training=0}; 2x3x1x1 {p=0}; 0x3x2x2x2",
    .errors = "2x3x4 ! ESHAPE; 2x3x2x2x2x1 ! ESHAPE; 2x3x2x2 {p=-1} ! EVALUE; 2x3x2x2@i64 ! EDTYPE",
};
REGISTER_OP(op_dropout);
REGISTER_OP(op_dropout1d);
REGISTER_OP(op_dropout3d);
REGISTER_OP(op_dropout2d);

bool drops_nothing(const Tensor *x, double p, bool training)
{
    return x && (training ? p == 0 : p >= 0 && p <= 1);
}

Tensor *tensor_dropout(Tensor *x, double p, bool training)
{
    return drops_nothing(x, p, training) ? borrow(x)
                                         : APPLY(&op_dropout, &((DropoutParams){ p, training }), x);
}

Tensor *tensor_dropout_(Tensor *x, double p, bool training)
{
    return drops_nothing(x, p, training)
               ? borrow(x)
               : op_apply_(&op_dropout, &x, 1, &((DropoutParams){ p, training }), SITE);
}

Tensor *tensor_dropout2d(Tensor *x, double p, bool training)
{
    return drops_nothing(x, p, training) && x->ndim >= 2
               ? borrow(x)
               : APPLY(&op_dropout2d, &((DropoutParams){ p, training }), x);
}

Tensor *tensor_dropout1d(Tensor *x, double p, bool training)
{
    const bool same = drops_nothing(x, p, training) && (x->ndim == 2 || x->ndim == 3);
    return same ? borrow(x) : APPLY(&op_dropout1d, &((DropoutParams){ p, training }), x);
}

Tensor *tensor_dropout3d(Tensor *x, double p, bool training)
{
    const bool same = drops_nothing(x, p, training) && (x->ndim == 4 || x->ndim == 5);
    return same ? borrow(x) : APPLY(&op_dropout3d, &((DropoutParams){ p, training }), x);
}
