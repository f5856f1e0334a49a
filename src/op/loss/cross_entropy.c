/* cross_entropy.c - cross entropy of logits, for class indices (fused) and for class probabilities
 * (composed).
 *
 *   loss_i = (1 - s) w_t (lse - x_t) + s / C sum_c w_c (lse - x_c)       lse = log sum_c e^(x_c)
 *   dx_ic  = g_i (p_ic A_i - B_ic),   p = softmax x
 *   B_ic   = (1 - s) w_t [c = t] + s / C w_c,   A_i = sum_c B_ic
 *
 * Positions that are ignored have A = B = 0.  The mean divides by W = sum of w_t over the others.
 * The kernels take logits as [rows, classes, inner]: inner counts the positions behind the class dim. */
#include <math.h>
#include "loss.h"

const TensorCrossEntropyArgs tensor_cross_entropy_defaults = { TENSOR_CROSS_ENTROPY_DEFAULTS };

enum { SAVED_TARGET, SAVED_WEIGHT_SUM, SAVED_LSE, SAVED_WEIGHT };

static int class_dim(TensorShape x) { return x.ndim > 1; }

/* The logits' shape without the class dim. */
static int target_shape(TensorShape x, int64_t *shape)
{
    int ndim = 0;
    for (int i = 0; i < x.ndim; i++)
        if (i != class_dim(x)) shape[ndim++] = x.dim[i];
    return ndim;
}

static int check_weight(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *w = op_input(c, 2);
    if (w && (w->ndim != 1 || w->shape[0] != x->shape[class_dim(shape_of(x))]))
        return op_fail(c, TENSOR_ESHAPE, "weight %s for input %s: want one weight a class", S(w), S(x));
    return 0;
}

static int check_params(OpCall *c)
{
    const TensorCrossEntropyArgs *p = op_params(c);
    if (!(p->label_smoothing >= 0 && p->label_smoothing <= 1))
        return op_fail(c, TENSOR_EVALUE, "label_smoothing = %g is outside [0, 1]", p->label_smoothing);
    return 0;
}

static int shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *t = op_input(c, 1);
    int64_t want[TENSOR_MAX_DIMS];
    if (x->ndim == 0) return op_fail(c, TENSOR_ESHAPE, "input %s: want [C] or [N, C, ...]", S(x));
    const TensorShape positions = { target_shape(shape_of(x), want), want };
    if (dtype_is_float(t->dtype) || t->dtype == TENSOR_BOOL)
        return op_fail(
            c, TENSOR_EDTYPE,
            "target is %s %s: want integer class indices, or probabilities of the input's shape %s",
            tensor_dtype_name(t->dtype), S(t), S(x));
    if (!shape_equal(shape_of(t), positions))
        return op_fail(c, TENSOR_ESHAPE, "input %s, target %s: want class indices of shape %s", S(x), S(t),
                       shape_text(positions));
    const int dtype = result_dtype(c, 0);
    if (check_weight(c) || (dtype == x->dtype && check_same_dtype(c, 0, 2)) || check_params(c)) return -1;
    const bool none = loss_reduction(c) == TENSOR_NONE;
    return op_set_output(c, 0, none ? positions : SHAPE(), (TensorDtype)dtype);
}

/* For losses and sums, which are not narrow where x is. */
static Tensor *fresh(TensorShape like, const Tensor *x)
{
    return own(new_tensor(like, sums_dtype(x), x->place));
}

/* The losses of all positions brought together in out. */
static int reduce_losses(int reduction, Tensor *out, const Tensor *loss, Tensor *weight_sum)
{
    bool all[TENSOR_MAX_DIMS];
    memset(all, true, sizeof all);
    if (reduction == TENSOR_NONE) return out == loss ? 0 : raw_copy(out, loss);
    Tensor *sum = out->dtype == loss->dtype ? out : fresh(SHAPE(), loss);
    if (!sum || raw_reduce_into(sum, loss, REDUCE_SUM, all, 0)) return -1;
    if (reduction == TENSOR_MEAN && !tensor_div_(sum, weight_sum)) return -1;
    return sum == out ? 0 : raw_copy(out, sum);
}

static int forward(OpCall *c)
{
    const TensorCrossEntropyArgs *p = op_params(c);
    Tensor *x = DENSE_FOR(cross_entropy, op_input(c, 0)), *t = own(raw_cast(op_input(c, 1), TENSOR_I64)),
           *out = op_output(c, 0);
    Tensor *w = op_input(c, 2) && x ? own(raw_cast(op_input(c, 2), sums_dtype(x))) : NULL;
    if (!x || !t || (op_input(c, 2) && !w)) return -1;
    Tensor *lse = fresh(shape_of(t), x), *weight_sum = fresh(SHAPE(), x);
    Tensor *loss = p->reduction == TENSOR_NONE && out->dtype == sums_dtype(x) ? out : fresh(shape_of(t), x);
    if (!lse || !weight_sum || !loss) return -1;
    const Around a = around(shape_of(x), class_dim(shape_of(x)));
    CrossEntropyArgs args = {
        .op = c->name,
        .site = c->site,
        .dtype = x->dtype,
        .rows = a.outer,
        .classes = a.n,
        .inner = a.inner,
        .x = x->data,
        .target = t->data,
        .weight = w ? w->data : NULL,
        .ignore_index = p->ignore_index,
        .smoothing = p->label_smoothing,
        .loss = loss->data,
        .lse = lse->data,
        .weight_sum = weight_sum->data,
        .bad_at = -1,
    };
    const int status = KERNEL_STATUS(x->place, cross_entropy, &args);
    if (status == KERNEL_FAILED && args.bad_at >= 0)
        return op_fail(c, TENSOR_EINDEX,
                       "target %s: %lld at position %lld is outside [0, %lld) and not ignore_index %lld",
                       S(t), (long long)args.bad_value, (long long)args.bad_at, (long long)a.n,
                       (long long)p->ignore_index);
    if (kernel_status(status, c->name, x->place, "cross_entropy")) return -1;
    if (reduce_losses(p->reduction, out, loss, weight_sum)) return -1;
    return op_save(c, t) || op_save(c, weight_sum) || op_save(c, lse) || (w && op_save(c, w)) ? -1 : 0;
}

/* dx of the kernel for cotangents g: a scalar or one a position.  lse may be another than that of x (see
 * weights).  Written over x where nothing reads that any more. */
static Tensor *kernel_grad(OpCall *c, Tensor *x, const Tensor *lse, const Tensor *g)
{
    const TensorCrossEntropyArgs *p = op_params(c);
    const bool weighted = op_input_shape(c, 2).ndim > 0;
    Tensor *t = op_saved_extra(c, SAVED_TARGET), *w = weighted ? op_saved_extra(c, SAVED_WEIGHT) : NULL;
    if (!t || (weighted && !w)) return NULL;
    Tensor *dx = saved_to_overwrite(c, x) ? x : own(new_tensor(shape_of(x), x->dtype, x->place));
    if (!dx) return NULL;
    const Around a = around(shape_of(x), class_dim(shape_of(x)));
    CrossEntropyGradArgs args = {
        .dtype = x->dtype,
        .rows = a.outer,
        .classes = a.n,
        .inner = a.inner,
        .x = x->data,
        .lse = lse->data,
        .target = t->data,
        .weight = w ? w->data : NULL,
        .ignore_index = p->ignore_index,
        .smoothing = p->label_smoothing,
        .g = g->data,
        .g_stride = g->ndim == 0 && t->ndim > 0 ? 0 : 1,
        .dx = dx->data,
    };
    return RUN_KERNEL(c->name, x->place, cross_entropy_grad, &args) ? NULL : dx;
}

static Tensor *fused(OpCall *c, Tensor *dy)
{
    const TensorCrossEntropyArgs *p = op_params(c);
    Tensor *x = op_saved(c, 0), *weight_sum = op_saved_extra(c, SAVED_WEIGHT_SUM),
           *lse = op_saved_extra(c, SAVED_LSE);
    if (!x || !weight_sum || !lse || !(x = DENSE_FOR(cross_entropy_grad, x)) || !(dy = dense_float(dy)))
        return NULL;
    Tensor *g = p->reduction == TENSOR_MEAN ? tensor_div(dy, weight_sum) : dy;
    return g ? kernel_grad(c, x, lse, g) : NULL;
}

/* B, by the kernel: with an lse of infinity p is 0 and it gives -g B. */
static Tensor *weights(OpCall *c, const Tensor *x)
{
    Tensor *lse = op_saved_extra(c, SAVED_LSE);
    Tensor *zeros = own(new_tensor(shape_of(x), x->dtype, x->place));
    Tensor *infinite = lse ? fresh(shape_of(lse), lse) : NULL, *one = fresh(SHAPE(), x);
    if (!zeros || !infinite || !one) return NULL;
    if (raw_fill(zeros, 0) || raw_fill(infinite, INFINITY) || raw_fill(one, -1)) return NULL;
    return kernel_grad(c, zeros, infinite, one);
}

static Tensor *recorded(OpCall *c, Tensor *dy)
{
    const TensorCrossEntropyArgs *p = op_params(c);
    Tensor *x = op_saved(c, 0), *weight_sum = op_saved_extra(c, SAVED_WEIGHT_SUM);
    if (!x || !weight_sum) return NULL;
    const int dim = class_dim(shape_of(x));
    x = tensor_to(x, (TensorDtype)weight_sum->dtype);
    Tensor *b = x ? weights(c, x) : NULL, *a = tensor_sum(b, dim, .keepdim = true);
    if (p->reduction == TENSOR_MEAN) { /* all ignored: g / 0 would make NaN of the zeros */
        Tensor *none = tensor_eq_scalar(weight_sum, 0);
        dy = none ? tensor_div(dy, tensor_where(none, tensor_ones_like(weight_sum), weight_sum)) : NULL;
    }
    if (p->reduction == TENSOR_NONE) dy = tensor_unsqueeze(dy, dim);
    return tensor_mul(dy, tensor_sub(tensor_mul(tensor_softmax(x, dim), a), b));
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = op_recording(c) ? recorded(c, dy) : fused(c, dy);
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_OPTION(TensorCrossEntropyArgs, ignore_index),
                                  OP_REDUCTION(TensorCrossEntropyArgs),
                                  OP_OPTION(TensorCrossEntropyArgs, label_smoothing),
                                  { 0 } };

const TensorOp op_cross_entropy = {
    .name = "cross_entropy",
    .autocast = AUTOCAST_F32,
    .summary = "cross entropy of logits and class indices",
    .gradient = "dx_c = g (softmax(x)_c ((1 - s) w_t + s sum(w) / C) - (1 - s) w_t onehot_c - s w_c / C), 0 "
                "at ignored targets; mean: / sum of w_t",
    .arity = 3,
    .optional = KEEP_INPUT(2),
    .keep = KEEP_INPUT(0),
    .no_grad_inputs = KEEP_INPUT(1) | KEEP_INPUT(2),
    PARAMS(TensorCrossEntropyArgs, tensor_cross_entropy_defaults, fields),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_READS_HALVES,
    .samples = "3x4,3@i64:0..3,-; 3x4,3@i64:0..3,- {reduction=sum}; 5x3,5@i64:0..2,3:.5..2 {ignore_index=1}; "
               "5x3,5@i64:0..2,3:.5..2 {reduction=none label_smoothing=.2}; 2x3x4,2x4@i64:0..2,3:.5..2 "
               "{label_smoothing=.1 ignore_index=0}; "
               "2x3x2x2,2x2x2@i64:0..2,- {reduction=none}; 4,@i64:0..3,-; 0x3,0@i64,- {reduction=sum}",
    .errors =
        "3x4,3@i64:4..9,- ! EINDEX; 3x4,2@i64:0..3,- ! ESHAPE; 3x4,3,- ! EDTYPE; 3x4,3@i64:0..3,3 ! ESHAPE; "
        ",@i64:0..0,- ! ESHAPE; 3x4,3@i64:0..3,- {reduction=3} ! EVALUE; 3x4,3@i64:0..3,- "
        "{label_smoothing=2} ! EVALUE; "
        "3x4@i64,3@i64:0..3,- ! EDTYPE; 3x4@f64,3@i64:0..3,4@f32 ! EDTYPE",
    .torch = "nn.functional.cross_entropy",
};
REGISTER_OPS(&op_cross_entropy);

/* ---- probabilities as targets ---------------------------------------------------------------- */

static int soft_check(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *t = op_input(c, 1);
    if (x->ndim == 0) return op_fail(c, TENSOR_ESHAPE, "input %s: want [C] or [N, C, ...]", S(x));
    if (!shape_equal(shape_of(x), shape_of(t)))
        return op_fail(
            c, TENSOR_ESHAPE,
            "input %s, floating target %s: class probabilities have the input's shape, class indices are i64",
            S(x), S(t));
    return check_weight(c) || check_params(c) ? -1 : 0;
}

static int soft_compose(OpCall *c)
{
    const TensorCrossEntropyArgs *p = op_params(c);
    const int dtype = loss_dtype(c, KEEP_INPUT(0) | KEEP_INPUT(1) | KEEP_INPUT(2));
    Tensor *x = loss_input(c, 0, dtype), *t = loss_input(c, 1, dtype), *w = op_input(c, 2);
    if (!x || !t) return -1;
    const int dim = class_dim(shape_of(x));
    const double classes = (double)x->shape[dim], s = p->label_smoothing;
    if (s > 0) t = tensor_add_scalar(tensor_mul_scalar(t, 1 - s), s / classes);
    if (w) {
        int64_t ones[TENSOR_MAX_DIMS];
        for (int i = 0; i < x->ndim; i++) ones[i] = i == dim ? x->shape[dim] : 1;
        t = tensor_mul(t, tensor_reshape(loss_input(c, 2, dtype), (TensorShape){ x->ndim, ones }));
    }
    Tensor *loss = tensor_neg(tensor_sum(tensor_mul(t, tensor_log_softmax(x, dim)), dim));
    return finish_loss(c, loss, dtype);
}

const TensorOp op_cross_entropy_probabilities = {
    .name = "cross_entropy_probabilities",
    .autocast = AUTOCAST_F32,
    .summary = "cross entropy of logits and class probabilities",
    .gradient = "dx = g (softmax(x) sum(w t) - w t), dt = -g w log_softmax(x); mean: / n",
    .arity = 3,
    .optional = KEEP_INPUT(2),
    .no_grad_inputs = KEEP_INPUT(2),
    PARAMS(TensorCrossEntropyArgs, tensor_cross_entropy_defaults, fields),
    .shape = soft_check,
    .compose = soft_compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .samples = "3x4,3x4:0..1,-; 3x4,3x4:0..1,4:.5..2 {reduction=sum label_smoothing=.1}; 2x3x2,2x3x2:0..1,- "
               "{reduction=none}; 4,4:0..1,-",
    .errors = "3x4,3,- ! ESHAPE; 3x4,3x4,3 ! ESHAPE; ,,- ! ESHAPE; 3x4,3x4,- {reduction=3} ! EVALUE",
    .torch = "nn.functional.cross_entropy",
};
REGISTER_OPS(&op_cross_entropy_probabilities);

Tensor *tensor_cross_entropy_args(TensorCrossEntropyArgs a)
{
    bool soft = a.target && dtype_is_float(a.target->dtype);
    return APPLY_AS(soft ? &op_cross_entropy_probabilities : &op_cross_entropy, op_cross_entropy.name, &a,
                    a.input, a.target, a.weight);
}
