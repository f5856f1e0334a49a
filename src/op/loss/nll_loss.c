/* nll_loss.c - negative log-likelihood of class indices, composed of gather and where.
 *
 *   loss_i = -w_t x_t, 0 where t is ignore_index; the mean divides by the sum of w_t over the others
 */
#include <math.h>
#include "cpu/index/host_index.h"
#include "loss.h"

const TensorNllArgs tensor_nll_defaults = { TENSOR_NLL_DEFAULTS };

static int class_dim(const Tensor *x) { return x->ndim > 1; }

static int check(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *t = op_input(c, 1), *w = op_input(c, 2);
    int64_t want[TENSOR_MAX_DIMS];
    int ndim = 0;
    if (x->ndim == 0) return op_fail(c, TENSOR_ESHAPE, "input %s: want [C] or [N, C, ...]", S(x));
    for (int i = 0; i < x->ndim; i++)
        if (i != class_dim(x)) want[ndim++] = x->shape[i];
    if (dtype_is_float(t->dtype) || t->dtype == TENSOR_BOOL)
        return op_fail(c, TENSOR_EDTYPE, "target is %s: want integer class indices",
                       tensor_dtype_name(t->dtype));
    if (!shape_equal(shape_of(t), (TensorShape){ ndim, want }))
        return op_fail(c, TENSOR_ESHAPE, "input %s, target %s: want class indices of shape %s", S(x), S(t),
                       shape_text((TensorShape){ ndim, want }));
    if (w && (w->ndim != 1 || w->shape[0] != x->shape[class_dim(x)]))
        return op_fail(c, TENSOR_ESHAPE, "weight %s for input %s: want one weight a class", S(w), S(x));
    return check_same_dtype(c, 0, 2);
}

/* How many targets there are that are not ignored; on other devices, which leave the check to gather, -1: not
 * known.  -2 after an error. */
static int64_t count_targets(OpCall *c, const Tensor *t, int64_t classes)
{
    if (!on_host(t->place)) return -1;
    const Tensor *dense = own(raw_contiguous(t));
    if (!dense) return -2;
    const int64_t ignore = ((const TensorNllArgs *)op_params(c))->ignore_index, *at = dense->data,
                  bad = host_bad_class(at, dense->numel, classes, ignore);
    if (bad < 0) return dense->numel - host_count(at, dense->numel, ignore);
    op_fail(c, TENSOR_EINDEX,
            "target %s: %lld at position %lld is outside [0, %lld) and not ignore_index %lld", S(t),
            (long long)at[bad], (long long)bad, (long long)classes, (long long)ignore);
    return -2;
}

static Tensor *without(Tensor *x, Tensor *ignored) { return ignored ? tensor_masked_fill(x, ignored, 0) : x; }

/* w_t for each position, 0 where it is ignored. */
static Tensor *position_weights(Tensor *w, Tensor *safe, Tensor *ignored, int dtype)
{
    const bool list = safe->ndim == 1;
    w = tensor_gather(w, 0, list ? safe : tensor_reshape(safe, SHAPE(safe->numel)));
    w = list ? w : tensor_reshape(w, shape_of(safe));
    return without(tensor_to(w, (TensorDtype)dtype), ignored);
}

/* loss / weight_sum; NaN, with gradient 0, where that is 0 because all positions are ignored.  Other devices
 * are not asked for it: they would be waited for. */
static Tensor *divide(Tensor *loss, Tensor *weight_sum)
{
    if (!weight_sum) return NULL;
    if (on_host(weight_sum->place) && tensor_item(weight_sum) != 0) return tensor_div(loss, weight_sum);
    Tensor *none = tensor_eq_scalar(weight_sum, 0);
    if (!none) return NULL;
    Tensor *mean = tensor_div(loss, tensor_where(none, tensor_ones_like(weight_sum), weight_sum));
    return tensor_where(none, tensor_full_like(weight_sum, NAN), mean);
}

static int compose(OpCall *c)
{
    const TensorNllArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *t = tensor_to(op_input(c, 1), TENSOR_I64), *w = op_input(c, 2);
    const TensorDtype dtype = (TensorDtype)x->dtype, sums = (TensorDtype)sums_dtype(x);
    const int dim = class_dim(x);
    const int64_t count = t ? count_targets(c, t, x->shape[dim]) : -2;
    if (count == -2) return -1;
    const bool all = count == t->numel;
    Tensor *ignored = all ? NULL : tensor_eq_scalar(t, (double)p->ignore_index);
    Tensor *safe = all || ignored ? without(t, ignored) : NULL;
    if (!safe || (w && !(w = position_weights(w, safe, ignored, sums)))) return -1;
    Tensor *loss = tensor_reshape(tensor_gather(x, dim, tensor_unsqueeze(safe, dim)), shape_of(safe));
    loss = tensor_neg(without(tensor_to(loss, sums), ignored));
    if (w) loss = tensor_mul(w, loss);
    if (p->reduction != TENSOR_NONE) loss = tensor_sum(loss);
    if (p->reduction != TENSOR_MEAN) return op_set_result(c, 0, loss ? tensor_to(loss, dtype) : NULL);
    if (!w && count > 0) loss = tensor_div_scalar(loss, (double)count);
    else
        loss =
            divide(loss, tensor_sum(w ? w : tensor_to(tensor_ne_scalar(t, (double)p->ignore_index), sums)));
    return op_set_result(c, 0, loss ? tensor_to(loss, dtype) : NULL);
}

static const OpField fields[] = { OP_OPTION(TensorNllArgs, ignore_index),
                                  OP_REDUCTION(TensorNllArgs),
                                  { 0 } };

const TensorOp op_nll_loss = {
    .name = "nll_loss",
    .autocast = AUTOCAST_F32,
    .summary = "-w_t x_t for log-probabilities x and class indices t",
    .gradient = "dx = -g w_t at the target, 0 elsewhere; mean: / sum of w_t",
    .arity = 3,
    .optional = KEEP_INPUT(2),
    .no_grad_inputs = KEEP_INPUT(1) | KEEP_INPUT(2),
    PARAMS(TensorNllArgs, tensor_nll_defaults, fields),
    .shape = check,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .samples = "3x4,3@i64:0..3,-; 3x4,3@i64:0..3,- {reduction=sum}; 5x3,5@i64:0..2,3:.5..2 {ignore_index=1}; "
               "2x3x4,2x4@i64:0..2,3:.5..2 {reduction=none}; 4,@i64:0..3,-; 0x3,0@i64,- {reduction=sum}",
    .errors =
        "3x4,3@i64:4..9,- ! EINDEX; 3x4,2@i64:0..3,- ! ESHAPE; 3x4,3,- ! EDTYPE; 3x4,3@i64:0..3,3 ! ESHAPE; "
        "3x4,3@i64:0..3,- {reduction=3} ! EVALUE; 3x4@f16,3@i64:0..3,4@f32 ! EDTYPE",
    .torch = "nn.functional.nll_loss",
};
REGISTER_OPS(&op_nll_loss);

Tensor *tensor_nll_loss_args(TensorNllArgs a) { return APPLY(&op_nll_loss, &a, a.input, a.target, a.weight); }
