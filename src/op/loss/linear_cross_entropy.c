/* linear_cross_entropy.c - the cross entropy of x w^T + b, a chunk of rows at a time: never all logits at
 * once.
 *
 *   z = x w^T + b      loss_i = lse(z_i) - (1 - s) z_it - s / C sum_c z_ic,  0 where t_i is ignored
 *   dz_i = g_i (softmax(z_i) - (1 - s) onehot(t_i) - s / C)
 *   dx_i = dz_i w      dw = sum_i dz_i x_i      db = sum_i dz_i
 *
 * Backward forms z again, chunk by chunk.  The mean divides by the number of rows that are not ignored.  A
 * recorded sweep makes dz by ops, which keep what they read: second derivatives hold all logits. */
#include <math.h>
#include "cpu/index/host_index.h"
#include "loss.h"
#include "op/shape/shape_op.h"

const TensorLinearCrossEntropyArgs tensor_linear_cross_entropy_defaults = {
    TENSOR_LINEAR_CROSS_ENTROPY_DEFAULTS
};

enum { X, WEIGHT, TARGET, BIAS };

static int shape(OpCall *c)
{
    const TensorLinearCrossEntropyArgs *p = op_params(c);
    const Tensor *x = op_input(c, X), *w = op_input(c, WEIGHT), *t = op_input(c, TARGET),
                 *b = op_input(c, BIAS);
    if (x->ndim != 2 || w->ndim != 2 || x->shape[1] != w->shape[1] || w->shape[0] == 0)
        return op_fail(c, TENSOR_ESHAPE, "input %s, weight %s: want [N, D] and [C, D], and a class", S(x),
                       S(w));
    if (dtype_is_float(t->dtype) || t->dtype == TENSOR_BOOL)
        return op_fail(c, TENSOR_EDTYPE, "target is %s: want integer class indices",
                       tensor_dtype_name(t->dtype));
    if (t->ndim != 1 || t->shape[0] != x->shape[0])
        return op_fail(c, TENSOR_ESHAPE, "input %s, target %s: want an index for each row", S(x), S(t));
    if (b && (b->ndim != 1 || b->shape[0] != w->shape[0]))
        return op_fail(c, TENSOR_ESHAPE, "bias %s for weight %s: want one for each class", S(b), S(w));
    if (!(p->label_smoothing >= 0 && p->label_smoothing <= 1))
        return op_fail(c, TENSOR_EVALUE, "label_smoothing = %g is outside [0, 1]", p->label_smoothing);
    if (p->chunk < 0) return op_fail(c, TENSOR_EVALUE, "chunk = %lld: want rows, or 0", (long long)p->chunk);
    const bool none = p->reduction == TENSOR_NONE;
    return op_set_output(c, 0, none ? shape_of(t) : SHAPE(), (TensorDtype)x->dtype);
}

/* Rows a chunk: as many as make about 2^20 logits, unless the caller says. */
static int64_t rows_of(const OpCall *c, int64_t classes)
{
    const int64_t asked = ((const TensorLinearCrossEntropyArgs *)op_params(c))->chunk;
    if (asked) return asked;
    return classes < 1 << 20 ? (1 << 20) / classes : 1;
}

static Tensor *part(Tensor *x, int64_t from, int64_t n) { return tensor_narrow(x, 0, from, n); }

static Tensor *logits(Tensor *x, Tensor *w, Tensor *b, int64_t from, int64_t n)
{
    return tensor_linear(part(x, from, n), w, b);
}

/* ---- forward --------------------------------------------------------------------------------- */

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
        Tensor *loss = tensor_cross_entropy(z, part(target, i, n), .ignore_index = p->ignore_index,
                                            .reduction = TENSOR_NONE, .label_smoothing = p->label_smoothing);
        Tensor *to = own(new_part(each, 0, i, n, 1));
        status = loss && to ? raw_copy(to, loss) : -1;
        tensor_scope_close(scope);
    }
    return status;
}

/* How many rows count. */
static Tensor *counted(const OpCall *c, Tensor *target, int dtype)
{
    const int64_t ignored = ((const TensorLinearCrossEntropyArgs *)op_params(c))->ignore_index;
    return tensor_to(tensor_count_nonzero(tensor_ne_scalar(target, (double)ignored)), (TensorDtype)dtype);
}

/* The kernel refuses it too, but by its place in the chunk. */
static int check_target(OpCall *c, Tensor *t)
{
    const int64_t ignored = ((const TensorLinearCrossEntropyArgs *)op_params(c))->ignore_index,
                  classes = op_input(c, WEIGHT)->shape[0], *at = t->data;
    const int64_t bad = t->place->device == &cpu_device ? host_bad_class(at, t->numel, classes, ignored) : -1;
    if (bad < 0) return 0;
    return op_fail(c, TENSOR_EINDEX,
                   "target %s: %lld at position %lld is outside [0, %lld) and not ignore_index %lld", S(t),
                   (long long)at[bad], (long long)bad, (long long)classes, (long long)ignored);
}

static int forward(OpCall *c)
{
    const TensorLinearCrossEntropyArgs *p = op_params(c);
    const bool was = tensor_set_grad_enabled(false);
    const Tensor *x = op_input(c, X);
    Tensor *t = own(raw_cast(op_input(c, TARGET), TENSOR_I64)),
           *each = own(new_tensor(SHAPE(x->shape[0]), x->dtype, x->place));
    int status = t && each && !check_target(c, t) ? chunk_losses(c, t, each) : -1;
    Tensor *y = each;
    if (!status && p->reduction != TENSOR_NONE) y = tensor_sum(each);
    if (!status && p->reduction == TENSOR_MEAN) y = tensor_div(y, counted(c, t, x->dtype));
    tensor_set_grad_enabled(was);
    return status || !y ? -1 : raw_copy(op_output(c, 0), y);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The cotangent of each row, [N, 1], 0 where it is ignored. */
static Tensor *row_cotangents(OpCall *c, Tensor *dy, Tensor *target)
{
    const TensorLinearCrossEntropyArgs *p = op_params(c);
    if (p->reduction == TENSOR_MEAN) /* no row counts: g / 1, of which 0 is left */
        dy = tensor_div(dy, tensor_clamp(counted(c, target, dy->dtype), 1, (double)INFINITY));
    Tensor *g = tensor_expand(dy, shape_of(target));
    Tensor *ignored = tensor_eq_scalar(target, (double)p->ignore_index);
    g = g && ignored ? tensor_masked_fill(g, ignored, 0) : NULL;
    return g ? tensor_unsqueeze(g, 1) : NULL;
}

static Tensor *filled(TensorShape shape, double value, const Tensor *like)
{
    Tensor *t = own(new_tensor(shape, like->dtype, like->place));
    return t && !raw_fill(t, value) ? t : NULL;
}

/* dz of the rows of z. */
static Tensor *logit_grad(OpCall *c, Tensor *z, Tensor *target, Tensor *g)
{
    const TensorLinearCrossEntropyArgs *p = op_params(c);
    const double s = p->label_smoothing;
    Tensor *d = z ? tensor_softmax(z, 1) : NULL, *ignored = tensor_eq_scalar(target, (double)p->ignore_index);
    if (d && s > 0) d = tensor_sub_scalar(d, s / (double)z->shape[1]);
    Tensor *index = ignored ? tensor_unsqueeze(tensor_masked_fill(target, ignored, 0), 1) : NULL;
    Tensor *less = d && index ? filled(shape_of(index), s - 1, d) : NULL;
    return less ? tensor_mul(tensor_scatter_add(d, 1, index, less), g) : NULL;
}

typedef struct Operands { /* what backward reads */
    Tensor *x, *w, *b, *target, *g;
} Operands;

/* Adds the part of rows i .. i + n - 1 to the gradients that are there. */
static int add_chunk(OpCall *c, const Operands *s, int64_t i, int64_t n, Tensor *const *dx)
{
    Tensor *d = logit_grad(c, logits(s->x, s->w, s->b, i, n), part(s->target, i, n), part(s->g, i, n));
    if (!d) return -1;
    if (dx[X]) {
        Tensor *to = own(new_part(dx[X], 0, i, n, 1)), *made = tensor_matmul(d, s->w);
        if (!to || !made || raw_copy(to, made)) return -1;
    }
    if (dx[WEIGHT]) {
        Tensor *made = tensor_matmul(tensor_t(d), part(s->x, i, n));
        if (!made || raw_add_into(dx[WEIGHT], made)) return -1;
    }
    if (dx[BIAS]) {
        Tensor *made = tensor_sum(d, 0);
        if (!made || raw_add_into(dx[BIAS], made)) return -1;
    }
    return 0;
}

static int by_chunks(OpCall *c, const Operands *s, Tensor **dx)
{
    const int64_t rows = s->x->shape[0], step = rows_of(c, s->w->shape[0]);
    const int wanted[] = { X, WEIGHT, BIAS };
    for (int k = 0; k < 3; k++)
        if (op_wants(c, wanted[k]) && !(dx[wanted[k]] = filled(op_input_shape(c, wanted[k]), 0, s->x)))
            return -1;
    int status = 0;
    for (int64_t i = 0; i < rows && !status; i += step) {
        const TensorScope scope = tensor_scope_open();
        status = add_chunk(c, s, i, rows - i < step ? rows - i : step, dx);
        tensor_scope_close(scope);
    }
    return status;
}

static int recorded(OpCall *c, const Operands *s, Tensor **dx)
{
    Tensor *d = logit_grad(c, tensor_linear(s->x, s->w, s->b), s->target, s->g);
    if (op_wants(c, X) && !(dx[X] = tensor_matmul(d, s->w))) return -1;
    if (op_wants(c, WEIGHT) && !(dx[WEIGHT] = tensor_matmul(d ? tensor_t(d) : NULL, s->x))) return -1;
    return op_wants(c, BIAS) && !(dx[BIAS] = tensor_sum(d, 0)) ? -1 : 0;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const bool biased = op_input_shape(c, BIAS).ndim > 0;
    Tensor *target = op_saved(c, TARGET);
    Operands s = { op_saved(c, X), op_saved(c, WEIGHT), biased ? op_saved(c, BIAS) : NULL, NULL, NULL };
    if (!s.x || !s.w || !target || (biased && !s.b)) return -1;
    s.target = own(raw_cast(target, TENSOR_I64));
    s.g = s.target ? row_cotangents(c, dy, s.target) : NULL;
    if (!s.g) return -1;
    return op_recording(c) ? recorded(c, &s, dx) : by_chunks(c, &s, dx);
}

static const OpField fields[] = { OP_REDUCTION(TensorLinearCrossEntropyArgs),
                                  OP_OPTION(TensorLinearCrossEntropyArgs, ignore_index),
                                  OP_OPTION(TensorLinearCrossEntropyArgs, label_smoothing),
                                  OP_OPTION(TensorLinearCrossEntropyArgs, chunk),
                                  { 0 } };

const TensorOp op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .summary = "cross entropy of the logits x w^T + b and class indices, in chunks of rows",
    .gradient =
        "dz = g (softmax(z) - (1 - s) onehot(t) - s / C), 0 at ignored targets: dx = dz w, dw = dz^T x, "
        "db = sum dz; mean: / the rows that count",
    .arity = 4,
    .optional = KEEP_INPUT(BIAS),
    .keep = KEEP_INPUT(X) | KEEP_INPUT(WEIGHT) | KEEP_INPUT(TARGET) | KEEP_INPUT(BIAS),
    .no_grad_inputs = KEEP_INPUT(TARGET),
    .params = sizeof(TensorLinearCrossEntropyArgs),
    .defaults = &tensor_linear_cross_entropy_defaults,
    .fields = fields,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE | OP_ONE_DTYPE,
    .torch = "nn.functional.linear_cross_entropy",
    .samples =
        "3x4,5x4,3@i64:0..4,-; 3x4,5x4,3@i64:0..4,5 {reduction=sum chunk=2}; 5x2,3x2,5@i64:0..2,3 "
        "{ignore_index=1 chunk=1}; 5x2,3x2,5@i32:0..2,- {reduction=none label_smoothing=.2 chunk=2}; "
        "4x3,2x3,4@i64:0..1,2 {label_smoothing=.1 ignore_index=0 chunk=9}; 0x3,2x3,0@i64,2 {reduction=sum}; "
        "3x0,2x0,3@i64:0..1,2; 2x3,1x3,2@i64:0..0,-",
    .errors =
        "3x4,5x4,3@i64:5..9,- ! EINDEX; 3x4,5x3,3@i64:0..4,- ! ESHAPE; 3x4,5x4,2@i64:0..4,- ! ESHAPE; "
        "3x4,5x4,3,- ! EDTYPE; 3x4,5x4,3@i64:0..4,4 ! ESHAPE; 3x4,5x4,3@i64:0..4,- {label_smoothing=2} ! "
        "EVALUE; 3x4,5x4,3@i64:0..4,- {chunk=-1} ! EVALUE; 3x4,0x4,3@i64:0..4,- ! ESHAPE; "
        "3x4,5x4,3@i64:0..4,- "
        "{reduction=3} ! EVALUE",
};
REGISTER_OP(op_linear_cross_entropy);

Tensor *tensor_linear_cross_entropy_args(TensorLinearCrossEntropyArgs a)
{
    return APPLY(&op_linear_cross_entropy, &a, a.input, a.weight, a.target, a.bias);
}
