/* linear_cross_entropy.c - the cross entropy of x w^T + b, a chunk of rows at a time: never all logits at
 * once.
 *
 *   z = x w^T + b      loss_i = sum_c B_ic (lse(z_i) - z_ic),  0 where t_i is ignored
 *   B_i   class indices: (1 - s) v_t onehot(t_i) + s / C v;  probabilities: v ((1 - s) t_i + s / C)
 *   dz_i = g_i (softmax(z_i) sum_c B_ic - B_i)
 *   dx_i = dz_i w      dw = sum_i dz_i x_i      db = sum_i dz_i      dt_i = g_i (1 - s) v (lse(z_i) - z_i)
 *
 * v are the weights of the classes, or 1.  Backward computes z again, chunk by chunk.  The mean divides by
 * the sum of v_t over rows that are not ignored; with probabilities, by the number of rows.  Under autocast
 * the products have its dtype, and the rest is f32, as in linear and cross_entropy; so it is with halves on
 * a device that multiplies them, while the CPU computes in f32.  A recorded sweep computes dz by ops, which
 * keep their operands: second derivatives hold all logits.  So does w [C, d1, ..., D], whose logits
 * [N, C, d1, ...] the plain op computes. */
#include <math.h>
#include "autograd/modes.h"
#include "cpu/index/host_index.h"
#include "loss.h"
#include "op/shape/shape_op.h"

const TensorLinearCrossEntropyArgs tensor_linear_cross_entropy_defaults = {
    TENSOR_LINEAR_CROSS_ENTROPY_DEFAULTS
};

enum { X, WEIGHT, TARGET, BIAS, CLASSES, INPUTS };

static bool has_probabilities(const OpCall *c) { return dtype_is_float(op_input_dtype(c, TARGET)); }
static double smoothing(const OpCall *c)
{
    return ((const TensorLinearCrossEntropyArgs *)op_params(c))->label_smoothing;
}

/* ---- the core: x [N, D], w [C, D], t [N] or [N, C] ----------------------------------------------- */

/* Of one dtype; where x, w and b are halves, the loss and what belongs to it are f32. */
static TensorDtype loss_type(const Tensor *x)
{
    return dtype_is_half(x->dtype) ? TENSOR_F32 : (TensorDtype)x->dtype;
}

static int core_shape(OpCall *c)
{
    const Tensor *x = op_input(c, X);
    const bool none = ((const TensorLinearCrossEntropyArgs *)op_params(c))->reduction == TENSOR_NONE;
    return op_set_output(c, 0, none ? SHAPE(x->shape[0]) : SHAPE(), loss_type(x));
}

/* Rows a chunk: as many as make about 2^20 logits, unless the caller says. */
static int64_t rows_of(const OpCall *c, int64_t classes)
{
    const int64_t asked = ((const TensorLinearCrossEntropyArgs *)op_params(c))->chunk;
    if (asked) return asked;
    return classes < 1 << 20 ? (1 << 20) / classes : 1;
}

static Tensor *part(Tensor *x, int64_t from, int64_t n) { return x ? tensor_narrow(x, 0, from, n) : NULL; }

static Tensor *logits(Tensor *x, Tensor *w, Tensor *b, int64_t from, int64_t n)
{
    Tensor *z = tensor_linear(part(x, from, n), w, b);
    return z ? tensor_to(z, loss_type(z)) : NULL;
}

/* The losses of all rows into each; the temporaries of a chunk are gone before the next. */
static int chunk_losses(OpCall *c, Tensor *target, Tensor *each)
{
    const TensorLinearCrossEntropyArgs *p = op_params(c);
    const int64_t rows = each->numel, step = rows_of(c, op_input(c, WEIGHT)->shape[0]);
    int status = 0;
    for (int64_t i = 0; i < rows && !status; i += step) {
        const int64_t n = rows - i < step ? rows - i : step;
        const TensorScope scope = tensor_scope_open();
        Tensor *z = logits(op_input(c, X), op_input(c, WEIGHT), op_input(c, BIAS), i, n);
        Tensor *loss = tensor_cross_entropy(z, part(target, i, n), .weight = op_input(c, CLASSES),
                                            .ignore_index = p->ignore_index, .reduction = TENSOR_NONE,
                                            .label_smoothing = p->label_smoothing);
        Tensor *to = own(new_part(each, 0, i, n, 1));
        status = loss && to ? raw_copy(to, loss) : -1;
        tensor_scope_close(scope);
    }
    return status;
}

static Tensor *ignored_rows(const OpCall *c, Tensor *target)
{
    const int64_t ignored = ((const TensorLinearCrossEntropyArgs *)op_params(c))->ignore_index;
    return tensor_eq_scalar(target, (double)ignored);
}

/* Class indices, 0 where a row is ignored. */
static Tensor *safe_target(const OpCall *c, Tensor *target)
{
    return tensor_masked_fill(target, ignored_rows(c, target), 0);
}

static Tensor *filled(TensorShape shape, double value, const Tensor *like)
{
    Tensor *t = own(new_tensor(shape, loss_type(like), like->place));
    return t && !raw_fill(t, value) ? t : NULL;
}

/* What the mean divides by, of rank 0. */
static Tensor *divisor(const OpCall *c, Tensor *target, Tensor *classes, int dtype)
{
    if (has_probabilities(c)) return filled(SHAPE(), (double)target->shape[0], target);
    Tensor *ignored = ignored_rows(c, target);
    if (!classes) return tensor_to(tensor_count_nonzero(tensor_logical_not(ignored)), (TensorDtype)dtype);
    return tensor_sum(tensor_masked_fill(tensor_gather(classes, 0, safe_target(c, target)), ignored, 0));
}

/* The kernel refuses it too, but by its place in the chunk. */
static int check_target(OpCall *c, Tensor *t)
{
    const int64_t ignored = ((const TensorLinearCrossEntropyArgs *)op_params(c))->ignore_index,
                  classes = op_input(c, WEIGHT)->shape[0], *at = t->data;
    if (has_probabilities(c) || !on_host(t->place)) return 0;
    const int64_t bad = host_bad_class(at, t->numel, classes, ignored);
    if (bad < 0) return 0;
    return op_fail(c, TENSOR_EINDEX,
                   "target %s: %lld at position %lld is outside [0, %lld) and not ignore_index %lld", S(t),
                   (long long)at[bad], (long long)bad, (long long)classes, (long long)ignored);
}

static Tensor *core_target(const OpCall *c, Tensor *t)
{
    return has_probabilities(c) ? t : own(raw_cast(t, TENSOR_I64));
}

static int core_forward(OpCall *c)
{
    const TensorLinearCrossEntropyArgs *p = op_params(c);
    const Tensor *x = op_input(c, X);
    Tensor *t = core_target(c, op_input(c, TARGET)), *each = filled(SHAPE(x->shape[0]), 0, x);
    int status = t && each && !check_target(c, t) ? chunk_losses(c, t, each) : -1;
    Tensor *y = each;
    if (!status && p->reduction != TENSOR_NONE) y = tensor_sum(each);
    if (!status && p->reduction == TENSOR_MEAN)
        y = tensor_div(y, divisor(c, t, op_input(c, CLASSES), loss_type(x)));
    return status || !y ? -1 : raw_copy(op_output(c, 0), y);
}

/* ---- its backward ---------------------------------------------------------------------------- */

typedef struct Operands { /* what backward reads */
    Tensor *x, *w, *b, *classes, *target;
    Tensor *g;   /* the cotangent of each row, [N, 1], 0 where it is ignored */
    Tensor *own; /* [N, 1]: v_t, where classes have weights and t is their index */
} Operands;

static int read_operands(OpCall *c, Tensor *dy, Operands *o)
{
    const bool biased = op_input_shape(c, BIAS).ndim, weighted = op_input_shape(c, CLASSES).ndim;
    Tensor *t = op_saved(c, TARGET);
    *o = (Operands){ op_saved(c, X),
                     op_saved(c, WEIGHT),
                     biased ? op_saved(c, BIAS) : NULL,
                     weighted ? op_saved(c, CLASSES) : NULL,
                     t ? core_target(c, t) : NULL,
                     NULL,
                     NULL };
    if (!o->x || !o->w || !o->target || (biased && !o->b) || (weighted && !o->classes)) return -1;
    if (((const TensorLinearCrossEntropyArgs *)op_params(c))->reduction == TENSOR_MEAN) {
        Tensor *sum = divisor(c, o->target, o->classes, dy->dtype); /* 0: of g / 1 nothing is left */
        dy = sum ? tensor_div(dy, tensor_where(tensor_eq_scalar(sum, 0), tensor_ones_like(sum), sum)) : NULL;
    }
    o->g = tensor_expand(dy, SHAPE(o->x->shape[0]));
    if (!has_probabilities(c)) {
        o->g = o->g ? tensor_masked_fill(o->g, ignored_rows(c, o->target), 0) : NULL;
        o->target = tensor_unsqueeze(safe_target(c, o->target), 1);
        if (o->classes && o->target)
            o->own = tensor_unsqueeze(tensor_gather(o->classes, 0, tensor_squeeze(o->target, 1)), 1);
    }
    o->g = o->g ? tensor_unsqueeze(o->g, 1) : NULL;
    return o->g && o->target && !o->own == !(o->classes && !has_probabilities(c)) ? 0 : -1;
}

static Tensor *weighed(const Operands *o, Tensor *x) { return o->classes ? tensor_mul(x, o->classes) : x; }

/* dz of the rows from i on, whose logits are z, in f32 where x is a half. */
static Tensor *wide_grad(OpCall *c, const Operands *o, Tensor *z, int64_t i, int64_t n)
{
    const double s = smoothing(c), each = z ? s / (double)z->shape[1] : 0;
    Tensor *p = tensor_softmax(z, 1), *t = part(o->target, i, n), *g = part(o->g, i, n);
    if (!p || !t || !g) return NULL;
    if (has_probabilities(c)) {
        Tensor *b = weighed(o, s > 0 ? tensor_add_scalar(tensor_mul_scalar(t, 1 - s), each) : t);
        Tensor *sum = b ? tensor_sum(b, 1, .keepdim = true) : NULL;
        return tensor_mul(tensor_sub(tensor_mul(p, sum), b), g);
    }
    Tensor *less = o->own ? tensor_mul_scalar(part(o->own, i, n), s - 1) : filled(SHAPE(n, 1), s - 1, p);
    if (o->own) {
        Tensor *rest = tensor_mul_scalar(tensor_sum(o->classes), each);
        p = tensor_mul(p, tensor_sub(rest, less));
    }
    if (s > 0) p = o->own ? tensor_sub(p, tensor_mul_scalar(o->classes, each)) : tensor_sub_scalar(p, each);
    return p && less ? tensor_mul(tensor_scatter_add(p, 1, t, less), g) : NULL;
}

static Tensor *logit_grad(OpCall *c, const Operands *o, Tensor *z, int64_t i, int64_t n)
{
    Tensor *d = wide_grad(c, o, z, i, n);
    return d ? tensor_to(d, (TensorDtype)o->x->dtype) : NULL;
}

static Tensor *target_grad(OpCall *c, const Operands *o, Tensor *z, int64_t i, int64_t n)
{
    Tensor *less = weighed(o, tensor_mul_scalar(tensor_log_softmax(z, 1), smoothing(c) - 1));
    return tensor_mul(less, part(o->g, i, n));
}

static int put_rows(Tensor *dx, int64_t i, int64_t n, const Tensor *made)
{
    Tensor *to = own(new_part(dx, 0, i, n, 1));
    return to && made ? raw_copy(to, made) : -1;
}

static int add_to(Tensor *sum, Tensor *made)
{
    if (made) made = tensor_to(made, (TensorDtype)sum->dtype);
    return made ? raw_add_into(sum, made) : -1;
}

/* Adds the part of rows i .. i + n - 1 to the gradients that are there. */
static int add_chunk(OpCall *c, const Operands *o, int64_t i, int64_t n, Tensor *const *dx)
{
    Tensor *z = logits(o->x, o->w, o->b, i, n), *d = logit_grad(c, o, z, i, n);
    if (!d || (dx[X] && put_rows(dx[X], i, n, tensor_matmul(d, o->w))) ||
        (dx[TARGET] && put_rows(dx[TARGET], i, n, target_grad(c, o, z, i, n))))
        return -1;
    if (dx[WEIGHT] && add_to(dx[WEIGHT], tensor_matmul(tensor_t(d), part(o->x, i, n)))) return -1;
    return dx[BIAS] ? add_to(dx[BIAS], tensor_sum(d, 0)) : 0;
}

static int by_chunks(OpCall *c, const Operands *o, Tensor **dx)
{
    const int64_t rows = o->x->shape[0], step = rows_of(c, o->w->shape[0]);
    for (int k = 0; k < CLASSES; k++)
        if (op_wants(c, k) && !(dx[k] = filled(op_input_shape(c, k), 0, o->x))) return -1;
    int status = 0;
    for (int64_t i = 0; i < rows && !status; i += step) {
        const TensorScope scope = tensor_scope_open();
        status = add_chunk(c, o, i, rows - i < step ? rows - i : step, dx);
        tensor_scope_close(scope);
    }
    return status;
}

static int recorded(OpCall *c, const Operands *o, Tensor **dx)
{
    const int64_t n = o->x->shape[0];
    Tensor *z = logits(o->x, o->w, o->b, 0, n), *d = logit_grad(c, o, z, 0, n);
    if (!d || (op_wants(c, X) && !(dx[X] = tensor_matmul(d, o->w)))) return -1;
    if (op_wants(c, WEIGHT) && !(dx[WEIGHT] = tensor_matmul(tensor_t(d), o->x))) return -1;
    if (op_wants(c, TARGET) && !(dx[TARGET] = target_grad(c, o, z, 0, n))) return -1;
    return op_wants(c, BIAS) && !(dx[BIAS] = tensor_sum(d, 0)) ? -1 : 0;
}

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Operands o;
    if (read_operands(c, dy, &o)) return -1;
    return op_recording(c) ? recorded(c, &o, dx) : by_chunks(c, &o, dx);
}

static const TensorOp core = {
    .name = "linear_cross_entropy",
    .autocast = AUTOCAST_F32,
    .arity = INPUTS,
    .optional = KEEP_INPUT(BIAS) | KEEP_INPUT(CLASSES),
    .keep = KEEP_INPUT(X) | KEEP_INPUT(WEIGHT) | KEEP_INPUT(TARGET) | KEEP_INPUT(BIAS) | KEEP_INPUT(CLASSES),
    .no_grad_inputs = KEEP_INPUT(CLASSES),
    .params = sizeof(TensorLinearCrossEntropyArgs),
    .shape = core_shape,
    .forward = core_forward,
    .backward = core_backward,
    .flags = OP_ANY_DEVICE,
};

/* ---- the op ---------------------------------------------------------------------------------- */

static int check_options(OpCall *c)
{
    const TensorLinearCrossEntropyArgs *p = op_params(c);
    if (!(p->label_smoothing >= 0 && p->label_smoothing <= 1))
        return op_fail(c, TENSOR_EVALUE, "label_smoothing = %g is outside [0, 1]", p->label_smoothing);
    if (p->chunk < 0) return op_fail(c, TENSOR_EVALUE, "chunk = %lld: want rows, or 0", (long long)p->chunk);
    return 0;
}

/* The dtype of the products under autocast; -1: that of x. */
static int lower_dtype(const OpCall *c)
{
    bool casts = autocast_is_on();
    for (int i = 0; i < INPUTS; i++) casts &= !op_input(c, i) || op_input(c, i)->dtype != TENSOR_F64;
    return casts ? (int)autocast_state().dtype : -1;
}

static int check_dtypes(OpCall *c)
{
    const bool lower = lower_dtype(c) >= 0, soft = has_probabilities(c);
    for (int i = WEIGHT; i < INPUTS; i++) {
        const Tensor *t = op_input(c, i);
        if (!t || i == TARGET || (i == CLASSES && soft) || (lower && dtype_is_float(t->dtype))) continue;
        if (check_same_dtype(c, X, i)) return -1;
    }
    return 0;
}

/* The logits' shape: [N, C, d1, ...], or [C] of one row. */
static TensorShape logits_shape(const Tensor *x, const Tensor *w, int64_t *shape)
{
    int ndim = 0;
    if (x->ndim == 2) shape[ndim++] = x->shape[0];
    for (int i = 0; i < w->ndim - 1; i++) shape[ndim++] = w->shape[i];
    return (TensorShape){ ndim, shape };
}

static int check_shapes(OpCall *c)
{
    const Tensor *x = op_input(c, X), *w = op_input(c, WEIGHT), *b = op_input(c, BIAS),
                 *v = op_input(c, CLASSES);
    const int last = w->ndim - 1;
    if (x->ndim < 1 || x->ndim > 2 || w->ndim < 2 || (x->ndim == 1 && w->ndim > 2) ||
        w->ndim == TENSOR_MAX_DIMS || x->shape[x->ndim - 1] != w->shape[last] || w->shape[0] == 0)
        return op_fail(c, TENSOR_ESHAPE,
                       "input %s, weight %s: want [N, D] and [C, ..., D], or [D] and [C, D], and a class",
                       S(x), S(w));
    if (b && !shape_equal(shape_of(b), (TensorShape){ last, w->shape }))
        return op_fail(c, TENSOR_ESHAPE, "bias %s for weight %s: want one for each logit", S(b), S(w));
    if (v && !shape_equal(shape_of(v), SHAPE(w->shape[0])))
        return op_fail(c, TENSOR_ESHAPE, "weight %s of classes for %s: want [C]", S(v), S(w));
    return 0;
}

static int shape(OpCall *c)
{
    const Tensor *x = op_input(c, X), *w = op_input(c, WEIGHT), *t = op_input(c, TARGET);
    int64_t sizes[TENSOR_MAX_DIMS];
    if (check_shapes(c) || check_options(c) || check_floating(c, X) || check_dtypes(c)) return -1;
    TensorShape want = logits_shape(x, w, sizes);
    if (!has_probabilities(c)) {
        if (t->dtype == TENSOR_BOOL)
            return op_fail(c, TENSOR_EDTYPE, "target is bool: want class indices, or probabilities");
        memmove(sizes + (x->ndim - 1), sizes + x->ndim, sizeof *sizes * (size_t)(want.ndim - x->ndim));
        want.ndim--;
    }
    if (shape_equal(shape_of(t), want)) return 0;
    return op_fail(c, TENSOR_ESHAPE, "input %s, weight %s, target %s: want %s of shape %s", S(x), S(w), S(t),
                   has_probabilities(c) ? "class probabilities" : "class indices", shape_text(want));
}

/* Several dims: all logits at once. */
static Tensor *by_logits(OpCall *c, Tensor *const *in)
{
    const TensorLinearCrossEntropyArgs *p = op_params(c);
    const Tensor *x = op_input(c, X), *w = op_input(c, WEIGHT);
    int64_t sizes[TENSOR_MAX_DIMS], width = 1;
    const TensorShape whole = logits_shape(x, w, sizes);
    for (int i = 0; i < w->ndim - 1; i++) width *= w->shape[i];
    Tensor *b = in[BIAS] ? tensor_reshape(in[BIAS], SHAPE(width)) : NULL;
    if (in[BIAS] && !b) return NULL;
    Tensor *z = tensor_linear(in[X], tensor_reshape(in[WEIGHT], SHAPE(width, x->shape[1])), b);
    if (z) z = tensor_to(z, loss_type(z));
    return tensor_cross_entropy(z ? tensor_reshape(z, whole) : NULL, in[TARGET], .weight = in[CLASSES],
                                .ignore_index = p->ignore_index, .reduction = p->reduction,
                                .label_smoothing = p->label_smoothing);
}

static Tensor *by_rows(OpCall *c, Tensor **in)
{
    const TensorLinearCrossEntropyArgs *p = op_params(c);
    const bool alone = op_input(c, X)->ndim == 1;
    if (alone) in[X] = tensor_unsqueeze(in[X], 0), in[TARGET] = tensor_unsqueeze(in[TARGET], 0);
    if (!in[X] || !in[TARGET]) return NULL;
    Tensor *y = op_apply1(&core, in, INPUTS, p, SITE);
    return alone && p->reduction == TENSOR_NONE ? tensor_reshape(y, SHAPE()) : y;
}

static int compose(OpCall *c)
{
    const bool soft = has_probabilities(c);
    const int lower = lower_dtype(c);
    const int dtype = lower >= 0 ? TENSOR_F32
                      : soft     ? loss_dtype(c, KEEP_INPUT(X) | KEEP_INPUT(TARGET) | KEEP_INPUT(CLASSES))
                                 : op_input(c, X)->dtype;
    const Tensor *x = op_input(c, X);
    const bool there = dtype_is_half(x->dtype) && multiplied_there(x->place, x->dtype);
    Tensor *in[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        Tensor *t = op_input(c, i);
        if (!t || (i == TARGET && !soft)) in[i] = t;
        else if (lower < 0 && there && i != TARGET && i != CLASSES) in[i] = t;
        else if (lower < 0) in[i] = loss_input(c, i, dtype);
        else in[i] = autocast_cast(t, i == TARGET || i == CLASSES ? TENSOR_F32 : lower);
        if (t && !in[i]) return -1;
    }
    const bool on = autocast_switch(false); /* what is to be cast is */
    Tensor *y = op_input(c, WEIGHT)->ndim > 2 ? by_logits(c, in) : by_rows(c, in);
    if (y) y = tensor_to(y, (TensorDtype)dtype);
    autocast_switch(on);
    return op_set_result(c, 0, y);
}

static const OpField fields[] = { OP_REDUCTION(TensorLinearCrossEntropyArgs),
                                  OP_OPTION(TensorLinearCrossEntropyArgs, ignore_index, label_smoothing,
                                            chunk),
                                  { 0 } };

const TensorOp op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .autocast = AUTOCAST_PARTS,
    .summary = "cross entropy of the logits x w^T + b and class indices or probabilities, in chunks of rows",
    .gradient = "B as cross_entropy's: dz = g (softmax(z) sum(B) - B), 0 at ignored targets: dx = dz w, dw = "
                "dz^T x, db = sum dz, dt = -g (1 - s) v log_softmax(z); mean: / the sum of v_t, or the rows",
    .arity = INPUTS,
    .optional = KEEP_INPUT(BIAS) | KEEP_INPUT(CLASSES),
    .no_grad_inputs = KEEP_INPUT(CLASSES),
    PARAMS(TensorLinearCrossEntropyArgs, tensor_linear_cross_entropy_defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_OF_PRODUCTS,
    .torch = "nn.functional.linear_cross_entropy",
    .samples =
        "3x4,5x4,3@i64:0..4,-,-; 3x4,5x4,3@i64:0..4,5,- {reduction=sum chunk=2}; "
        "5x2,3x2,5@i64:0..2,3,3:.5..2 "
        "{ignore_index=1 chunk=1}; 5x2,3x2,5@i32:0..2,-,- {reduction=none label_smoothing=.2 chunk=2}; "
        "4x3,2x3,4@i64:0..1,2,2:.5..2 {label_smoothing=.1 ignore_index=0 chunk=9}; "
        "0x3,2x3,0@i64,2,- {reduction=sum}; 3x0,2x0,3@i64:0..1,2,-; 2x3,1x3,2@i64:0..0,-,-; "
        "3x4,5x4,3x5:0..1,5,5:.5..2 {label_smoothing=.1 chunk=2}; 3x2,4x2,3x4:0..1,-,- {reduction=none}; "
        "4,5x4,@i64:0..4,5,- {reduction=none}; 4,5x4,5:0..1,-,-; "
        "3x4,5x2x4,3x2@i64:0..4,5x2,5:.5..2 {reduction=none}; 2x3,4x2x3,2x4x2:0..1,-,-",
    .errors =
        "3x4,5x4,3@i64:5..9,-,- ! EINDEX; 3x4,5x3,3@i64:0..4,-,- ! ESHAPE; 3x4,5x4,2@i64:0..4,-,- ! ESHAPE; "
        "3x4,5x4,3,-,- ! ESHAPE; 3x4,5x4,3@bool,-,- ! EDTYPE; 3x4,5x4,3@i64:0..4,4,- ! ESHAPE; "
        "3x4,5x4,3@i64:0..4,-,4 ! ESHAPE; 3x4,5x4,3@i64:0..4,-,- {label_smoothing=2} ! EVALUE; "
        "3x4,5x4,3@i64:0..4,-,- {chunk=-1} ! EVALUE; 3x4,0x4,3@i64:0..4,-,- ! ESHAPE; "
        "3x4,5x4,3@i64:0..4,-,- {reduction=3} ! EVALUE; 3x4@f16,5x4@f16,3@i64:0..4,-,5@f32 ! EDTYPE; "
        "3x4@f32,5x4@f64,3@i64:0..4,-,- ! EDTYPE; 3x4@i64,5x4@i64,3@i64:0..4,-,- ! EDTYPE; "
        "4,5x2x4,2@i64:0..4,-,- ! ESHAPE",
};
REGISTER_OPS(&op_linear_cross_entropy);

Tensor *tensor_linear_cross_entropy_args(TensorLinearCrossEntropyArgs a)
{
    return APPLY(&op_linear_cross_entropy, &a, a.input, a.linear_weight, a.target, a.linear_bias, a.weight);
}
