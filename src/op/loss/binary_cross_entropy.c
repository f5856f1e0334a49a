/* binary_cross_entropy.c - of probabilities and of logits.
 *
 *   x in [0, 1]:  loss = -t max(log x, -100) - (1 - t) max(log(1 - x), -100)
 *                 dx = g (x - t) / max(x (1 - x), 1e-12)
 *                 dt = g (max(log(1 - x), -100) - max(log x, -100))
 *   logits:       loss = -w t log sigmoid(x) - (1 - t) log sigmoid(-x), w is pos_weight:
 *                 both terms are positive for t in [0, 1], so nothing cancels and nothing overflows
 *
 * The first has its own elementwise op, because of its gradient; weight and reduction are composed. */
#include "cpu/index/host_index.h"
#include "loss.h"

const TensorBceArgs tensor_bce_defaults = { TENSOR_BCE_DEFAULTS };
const TensorBceLogitsArgs tensor_bce_logits_defaults = { TENSOR_BCE_LOGITS_DEFAULTS };

/* ---- elements of probabilities --------------------------------------------------------------- */

static Tensor *held(Tensor *log) { return tensor_clamp(log, -100, INFINITY); }
static Tensor *held_log(Tensor *x) { return held(tensor_log(x)); }
static Tensor *held_log_rest(Tensor *x) { return held(tensor_log1p(tensor_neg(x))); }

/* Looks for a value outside [0, 1].  Other devices leave that to their logarithm, which gives NaN. */
static int check_range(OpCall *c, const Tensor *x)
{
    Tensor *wide = on_host(x->place) ? own(raw_cast(x, TENSOR_F64)) : NULL;
    if (!wide) return tensor_error_code() ? -1 : 0;
    const double *at = wide->data;
    const int64_t bad = host_beyond(at, wide->numel, 0, 1);
    return bad < 0 ? 0
                   : op_fail(c, TENSOR_EVALUE, "input %s: %g at position %lld is outside [0, 1]", S(x),
                             at[bad], (long long)bad);
}

static int element_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *t = op_input(c, 1);
    if (!shape_equal(shape_of(x), shape_of(t)))
        return op_fail(c, TENSOR_ESHAPE,
                       "input %s, target %s: the shapes must be the same, nothing is broadcast", S(x), S(t));
    return check_range(c, x) ? -1 : op_same_shape(c);
}

static int element_forward(OpCall *c)
{
    Tensor *x = op_input(c, 0), *t = op_input(c, 1);
    Tensor *one = tensor_mul(t, held_log(x)), *zero = tensor_mul(tensor_rsub_scalar(t, 1), held_log_rest(x));
    Tensor *loss = tensor_neg(tensor_add(one, zero));
    return loss ? raw_copy(op_output(c, 0), loss) : -1;
}

static int element_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *x = op_saved(c, 0), *t = op_saved(c, 1);
    if (op_wants(c, 0)) {
        Tensor *below = tensor_clamp(tensor_mul(tensor_rsub_scalar(x, 1), x), 1e-12, INFINITY);
        dx[0] = tensor_mul(dy, tensor_div(tensor_sub(x, t), below));
        if (!dx[0]) return -1;
    }
    if (op_wants(c, 1)) dx[1] = tensor_mul(dy, tensor_sub(held_log_rest(x), held_log(x)));
    return op_wants(c, 1) && !dx[1] ? -1 : 0;
}

const TensorOp op_binary_cross_entropy_elements = {
    .name = "binary_cross_entropy_elements",
    .autocast = AUTOCAST_F32,
    .summary = "-t log x - (1 - t) log(1 - x), logarithms held above -100",
    .gradient =
        "dx = g (x - t) / max((1 - x) x, 1e-12), dt = g (log(1 - x) - log x), logarithms held above -100",
    .arity = 2,
    .keep = KEEP_INPUT(0) | KEEP_INPUT(1),
    .shape = element_shape,
    .forward = element_forward,
    .backward = element_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_SAME_DTYPE | OP_ROUND_ONCE,
    .lo = .1,
    .hi = .9,
    .samples = "5,5; 3x4,3x4; ,; 0x3,0x3",
    .errors = "3,1 ! ESHAPE; 3:1.5..2,3 ! EVALUE",
    .torch = "nn.functional.binary_cross_entropy",
};
REGISTER_OPS(&op_binary_cross_entropy_elements);

/* ---- weight and reduction -------------------------------------------------------------------- */

static int check(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *t = op_input(c, 1);
    if (!shape_equal(shape_of(x), shape_of(t)))
        return op_fail(c, TENSOR_ESHAPE,
                       "input %s, target %s: the shapes must be the same, nothing is broadcast", S(x), S(t));
    for (int i = 2; i < op_inputs(c); i++) {
        const Tensor *w = op_input(c, i);
        int64_t shape[TENSOR_MAX_DIMS];
        int ndim = w ? shape_broadcast(shape_of(x), shape_of(w), shape) : 0;
        if (w && (ndim < 0 || !shape_equal((TensorShape){ ndim, shape }, shape_of(x))))
            return op_fail(c, TENSOR_ESHAPE, "%s %s does not broadcast to the input's %s",
                           i == 2 ? "weight" : "pos_weight", S(w), S(x));
    }
    return 0;
}

/* Weights have no say in the dtype. */
static Tensor *weighted(OpCall *c, Tensor *loss, int weight, int dtype)
{
    return op_input(c, weight) ? tensor_mul(loss, loss_input(c, weight, dtype)) : loss;
}

static int check_probabilities(OpCall *c) { return check_same_dtype(c, 0, 1) ? -1 : check(c); }

static int compose(OpCall *c)
{
    const int dtype = op_input(c, 0)->dtype;
    if (check_range(c, op_input(c, 0))) return -1;
    Tensor *loss =
        APPLY(&op_binary_cross_entropy_elements, NULL, loss_input(c, 0, dtype), loss_input(c, 1, dtype));
    return finish_loss(c, weighted(c, loss, 2, dtype), dtype);
}

/* PyTorch computes into what it makes of the target, whose dtype the result has. */
static int compose_logits(OpCall *c)
{
    const int dtype = loss_dtype(c, KEEP_INPUT(0) | KEEP_INPUT(1));
    Tensor *x = loss_input(c, 0, dtype), *t = loss_input(c, 1, dtype), *loss;
    if (!op_input(c, 3)) {
        loss = tensor_binary_cross_entropy_logits(x, t);
        return finish_loss(c, weighted(c, loss, 2, dtype), op_input(c, 1)->dtype);
    }
    Tensor *one = weighted(c, tensor_mul(t, tensor_logsigmoid(x)), 3, dtype);
    Tensor *zero = tensor_mul(tensor_rsub_scalar(t, 1), tensor_logsigmoid(tensor_neg(x)));
    loss = tensor_neg(tensor_add(one, zero));
    return finish_loss(c, weighted(c, loss, 2, dtype), op_input(c, 1)->dtype);
}

static const OpField fields[] = { OP_REDUCTION(TensorBceArgs), { 0 } };
static const OpField logits_fields[] = { OP_REDUCTION(TensorBceLogitsArgs), { 0 } };

#define BCE(options, defaults_, fields_)                                      \
    .params = sizeof(options), .defaults = &(defaults_), .fields = (fields_), \
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS

const TensorOp op_binary_cross_entropy = {
    .name = "binary_cross_entropy",
    .autocast = AUTOCAST_F32,
    .summary = "-t log x - (1 - t) log(1 - x) for probabilities x",
    .gradient = "dx = w g (x - t) / max((1 - x) x, 1e-12), dt = w g (log(1 - x) - log x); mean: / n",
    .arity = 3,
    .optional = KEEP_INPUT(2),
    .no_grad_inputs = KEEP_INPUT(2),
    .shape = check_probabilities,
    .compose = compose,
    .lo = .1,
    .hi = .9,
    .samples = "5,5,-; 3x4,3x4,- {reduction=sum}; 3x4,3x4,4 {reduction=none}; 3x4,3x4,3x1; ,,-; 0x3,0x3,- "
               "{reduction=none}",
    .errors = "3,1,- ! ESHAPE; 3,3,4 ! ESHAPE; 3:1.5..2,3,- ! EVALUE; 3,3,- {reduction=3} ! EVALUE; "
              "3@f32,3@f64,- ! EDTYPE",
    .torch = "nn.functional.binary_cross_entropy",
    BCE(TensorBceArgs, tensor_bce_defaults, fields),
};
const TensorOp op_binary_cross_entropy_with_logits = {
    .name = "binary_cross_entropy_with_logits",
    .autocast = AUTOCAST_F32,
    .summary = "binary cross entropy of sigmoid(x)",
    .gradient = "dx = w g (sigmoid(x) (1 + (p - 1) t) - p t), p = pos_weight; mean: / n",
    .arity = 4,
    .optional = KEEP_INPUT(2) | KEEP_INPUT(3),
    .no_grad_inputs = KEEP_INPUT(2) | KEEP_INPUT(3),
    .shape = check,
    .compose = compose_logits,
    .samples = "5,5:0..1,-,-; 3x4,3x4:0..1,-,- {reduction=sum}; 3x4,3x4:0..1,4,4 {reduction=none}; "
               "3x4,3x4:0..1,-,4; ,:0..1,-,-; 0x3,0x3,-,- {reduction=none}",
    .errors = "3,1,-,- ! ESHAPE; 3,3,4,- ! ESHAPE; 3,3,-,2 ! ESHAPE; 3,3,-,- {reduction=3} ! EVALUE",
    .torch = "nn.functional.binary_cross_entropy_with_logits",
    BCE(TensorBceLogitsArgs, tensor_bce_logits_defaults, logits_fields),
};
REGISTER_OPS(&op_binary_cross_entropy, &op_binary_cross_entropy_with_logits);

Tensor *tensor_binary_cross_entropy_args(TensorBceArgs a)
{
    return APPLY(&op_binary_cross_entropy, &a, a.input, a.target, a.weight);
}

Tensor *tensor_binary_cross_entropy_with_logits_args(TensorBceLogitsArgs a)
{
    return APPLY(&op_binary_cross_entropy_with_logits, &a, a.input, a.target, a.weight, a.pos_weight);
}
