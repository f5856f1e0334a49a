/* ctc_loss.c - connectionist temporal classification.  cpu/loss/ctc.c has the states, the recurrences and
 * their loops; a recorded sweep forms a and b by ops, step by step, over all sequences at once. */
#include <math.h>
#include "cpu/loss/ctc.h"
#include "op/shape/shape_op.h"
#include "loss.h"

const TensorCtcArgs tensor_ctc_defaults = { TENSOR_CTC_DEFAULTS };

/* ---- the core: inputs [T, N, C]; labels [N, states], times [N], sizes [N], i64 and dense --------- */

static int core_shape(OpCall *c)
{
    return op_set_output(c, 0, SHAPE(op_input(c, 0)->shape[1]), (TensorDtype)op_input(c, 0)->dtype);
}

static CtcArgs args_of(const OpCall *c, const Tensor *x, const Tensor *label, const Tensor *times,
                       const Tensor *sizes)
{
    return (CtcArgs){ .dtype = x->dtype,
                      .T = x->shape[0],
                      .N = x->shape[1],
                      .C = x->shape[2],
                      .states = label->shape[1],
                      .x = x->data,
                      .label = label->data,
                      .times = times->data,
                      .sizes = sizes->data,
                      .zero_infinity = ((const TensorCtcArgs *)op_params(c))->zero_infinity };
}

static int core_forward(OpCall *c)
{
    const Tensor *in = op_input(c, 0),
                 *x = own(raw_cast(in, TAKES(in->place, ctc, in->dtype) ? in->dtype : TENSOR_F64));
    Tensor *y = op_output(c, 0),
           *loss = y->dtype == TENSOR_F64 ? y : own(new_tensor(shape_of(y), TENSOR_F64, y->place));
    if (!x || !loss) return -1;
    CtcArgs args = args_of(c, x, op_input(c, 1), op_input(c, 2), op_input(c, 3));
    args.loss = loss->data;
    if (RUN_KERNEL(c->name, y->place, ctc, &args)) return -1;
    return loss == y ? 0 : raw_copy(y, loss);
}

static Tensor *fused_gradient(OpCall *c, const Tensor *dy)
{
    const Tensor *x = op_saved(c, 0), *label = op_saved(c, 1), *times = op_saved(c, 2),
                 *sizes = op_saved(c, 3);
    if (!x || !label || !times || !sizes) return NULL;
    Tensor *wide = own(raw_cast(x, TENSOR_F64)), *g = own(raw_cast(dy, TENSOR_F64)),
           *dx = zeros_on(shape_of(x), TENSOR_F64, x->place);
    if (!wide || !g || !dx) return NULL;
    CtcArgs args = args_of(c, wide, label, times, sizes);
    args.g = g->data, args.dx = dx->data;
    return RUN_KERNEL(c->name, x->place, ctc, &args) ? NULL : tensor_to(dx, (TensorDtype)x->dtype);
}

/* ---- the same by ops ------------------------------------------------------------------------- */

/* What chooses among states: bool [N, states], made once for all steps. */
typedef struct States {
    Tensor *x;                           /* [T, N, states]: log-probabilities of the states' labels */
    Tensor *first, *last, *leap, *never; /* may begin, end there; may be leapt to; -inf of [N, states] */
} States;

static Tensor *count_there(int64_t n, const Tensor *like) /* 0, 1, ..., n - 1 where `like` is */
{
    return numbers_on(n, TENSOR_I64, like->place);
}

/* Where a path may leap to: odd states from 3 on whose label is another than that two before. */
static Tensor *leaps(Tensor *label, Tensor *k)
{
    const int64_t n = label->shape[0], states = label->shape[1];
    if (states < 3) return zeros_on(SHAPE(n, states), TENSOR_BOOL, label->place);
    Tensor *unlike =
        tensor_ne(tensor_narrow(label, 1, 2, states - 2), tensor_narrow(label, 1, 0, states - 2));
    unlike = tensor_cat(TENSORS(zeros_on(SHAPE(n, 2), TENSOR_BOOL, label->place), unlike), 1);
    return tensor_logical_and(unlike, tensor_eq_scalar(tensor_remainder_scalar(k, 2), 1));
}

static int make_states(States *s, Tensor *x, Tensor *label, Tensor *sizes)
{
    const int64_t n = label->shape[0], states = label->shape[1];
    Tensor *k = count_there(states, label), *end = tensor_unsqueeze(tensor_mul_scalar(sizes, 2), 1);
    s->first = tensor_lt_scalar(k, 2);
    s->last = tensor_logical_or(tensor_eq(k, end), tensor_eq(k, tensor_sub_scalar(end, 1)));
    s->leap = leaps(label, k);
    s->x = tensor_gather(x, 2, tensor_expand(tensor_unsqueeze(label, 0), SHAPE(x->shape[0], n, states)));
    if (!s->first || !s->last || !s->leap || !s->x) return -1;
    s->never = own(new_tensor(SHAPE(n, states), x->dtype, x->place));
    return s->never ? raw_fill(s->never, -INFINITY) : -1;
}

/* y moved up by k states, -inf where nothing comes from; k < 0: down. */
static Tensor *moved(Tensor *y, int64_t k, const States *s)
{
    const int64_t states = s->never->shape[1], by = k < 0 ? -k : k;
    if (by >= states) return s->never;
    Tensor *kept = tensor_narrow(y, 1, k < 0 ? by : 0, states - by), *gap = tensor_narrow(s->never, 1, 0, by);
    return k < 0 ? tensor_cat(TENSORS(kept, gap), 1) : tensor_cat(TENSORS(gap, kept), 1);
}

static Tensor *log_sum(Tensor *a, Tensor *b, Tensor *c)
{
    return tensor_logsumexp(tensor_stack(TENSORS(a, b, c), 0), 0);
}

static Tensor *next_alpha(Tensor *a, Tensor *x, const States *s)
{
    return tensor_add(log_sum(a, moved(a, 1, s), tensor_where(s->leap, moved(a, 2, s), s->never)), x);
}

static Tensor *earlier_beta(Tensor *b, Tensor *x, const States *s)
{
    Tensor *y = tensor_add(b, x);
    return log_sum(y, moved(y, -1, s), moved(tensor_where(s->leap, y, s->never), -2, s));
}

/* Bool [N, 1]: sequences of which step t is one (the last one). */
static Tensor *sequences_at(Tensor *times, int64_t t, bool last)
{
    times = tensor_unsqueeze(times, 1);
    return last ? tensor_eq_scalar(times, (double)(t + 1)) : tensor_gt_scalar(times, (double)t);
}

/* -> e^(a_t + b_t + loss) as [T, N, states]; 0 behind a sequence's end. */
static Tensor *posterior(const States *s, Tensor *times, Tensor *loss, Tensor **steps)
{
    const int64_t T = s->x->shape[0];
    Tensor *zero = tensor_zeros_like(s->never), *b = s->never;
    for (int64_t t = 0; t < T; t++)
        steps[t] = t ? next_alpha(steps[t - 1], tensor_select(s->x, 0, t), s)
                     : tensor_add(tensor_where(s->first, zero, s->never), tensor_select(s->x, 0, 0));
    for (int64_t t = T - 1; t >= 0; t--) {
        if (t < T - 1) b = earlier_beta(b, tensor_select(s->x, 0, t + 1), s);
        b = tensor_where(tensor_logical_and(sequences_at(times, t, true), s->last), zero, b);
        Tensor *p = tensor_exp(tensor_add(tensor_add(steps[t], b), loss));
        Tensor *inside = sequences_at(times, t, false);
        steps[t] = inside ? tensor_where(inside, p, zero) : NULL;
    }
    return tensor_stack(TENSOR_LIST(steps, (int)T), 0);
}

static Tensor *recorded_gradient(OpCall *c, Tensor *dy)
{
    Tensor *x = op_saved(c, 0), *label = op_saved(c, 1), *times = op_saved(c, 2), *sizes = op_saved(c, 3),
           *loss = op_saved_output(c, 0);
    States s;
    if (!x || !label || !times || !sizes || !loss || !dy) return NULL;
    if (x->numel == 0) return tensor_zeros_like(x);
    if (make_states(&s, x, label, sizes)) return NULL;
    const size_t bytes = (size_t)x->shape[0] * sizeof(Tensor *);
    Tensor **steps = tg_alloc(bytes);
    if (!steps) return fail_memory(c->name), NULL;
    Tensor *p = posterior(&s, times, tensor_unsqueeze(loss, 1), steps);
    tg_free(steps, bytes);
    p = tensor_neg(tensor_mul(p, tensor_unsqueeze(dy, 1)));
    Tensor *index =
        tensor_expand(tensor_unsqueeze(label, 0), SHAPE(x->shape[0], label->shape[0], label->shape[1]));
    return tensor_scatter_add(tensor_zeros_like(x), 2, index, p);
}

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = op_recording(c) ? recorded_gradient(c, dy) : fused_gradient(c, dy);
    return dx[0] ? 0 : -1;
}

static const TensorOp core = {
    .name = "ctc_loss",
    .autocast = AUTOCAST_F32,
    .arity = 4,
    .keep = KEEP_INPUT(0) | KEEP_INPUT(1) | KEEP_INPUT(2) | KEEP_INPUT(3) | KEEP_OUTPUT(0),
    .no_grad_inputs = KEEP_INPUT(1) | KEEP_INPUT(2) | KEEP_INPUT(3),
    .params = sizeof(TensorCtcArgs),
    .shape = core_shape,
    .forward = core_forward,
    .backward = core_backward,
    .flags = OP_ANY_DEVICE,
};

/* ---- the op ---------------------------------------------------------------------------------- */

static int check_integers(OpCall *c, int i, const char *name)
{
    const Tensor *t = op_input(c, i);
    if (!dtype_is_float(t->dtype) && t->dtype != TENSOR_BOOL) return 0;
    return op_fail(c, TENSOR_EDTYPE, "%s is %s: want integers", name, tensor_dtype_name(t->dtype));
}

static int check_lengths(OpCall *c, int i, const char *name, int64_t n)
{
    const Tensor *t = op_input(c, i);
    const bool alone = op_input(c, 0)->ndim == 2 && t->ndim == 0;
    if (check_integers(c, i, name)) return -1;
    if (alone || shape_equal(shape_of(t), SHAPE(n))) return 0;
    return op_fail(c, TENSOR_ESHAPE, "log_probs %s, %s %s: want one for each of the %lld sequences",
                   S(op_input(c, 0)), name, S(t), (long long)n);
}

static int shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *y = op_input(c, 1);
    const TensorCtcArgs *p = op_params(c);
    if (x->ndim < 2 || x->ndim > 3)
        return op_fail(c, TENSOR_ESHAPE, "log_probs %s: want [T, N, C] or [T, C]", S(x));
    const int64_t n = x->ndim == 3 ? x->shape[1] : 1, classes = x->shape[x->ndim - 1];
    if (check_integers(c, 1, "targets") || check_lengths(c, 2, "input_lengths", n) ||
        check_lengths(c, 3, "target_lengths", n))
        return -1;
    if (y->ndim != 1 && (x->ndim == 2 || y->ndim != 2 || y->shape[0] != n))
        return op_fail(c, TENSOR_ESHAPE,
                       "log_probs %s, targets %s: want [N, S], or one dim of targets one behind the other",
                       S(x), S(y));
    if (p->blank < 0 || p->blank >= classes)
        return op_fail(c, TENSOR_EINDEX, "log_probs %s: blank = %lld is no class", S(x), (long long)p->blank);
    return 0;
}

typedef struct Targets {
    const int64_t *label, *times, *sizes;
    int64_t T, N, C, blank, most;
} Targets;

static int check_sizes(OpCall *c, Targets *t)
{
    const Tensor *y = op_input(c, 1);
    int64_t sum = 0;
    for (int64_t i = 0; i < t->N; i++) {
        const int64_t room = y->ndim == 2 ? y->shape[1] : y->numel - sum;
        if (t->times[i] < 0 || t->times[i] > t->T)
            return op_fail(c, TENSOR_EINDEX, "input_lengths: %lld at position %lld is outside [0, %lld]",
                           (long long)t->times[i], (long long)i, (long long)t->T);
        if (t->sizes[i] < 0 || t->sizes[i] > room)
            return op_fail(c, TENSOR_EINDEX, "target_lengths: %lld at position %lld is outside [0, %lld]",
                           (long long)t->sizes[i], (long long)i, (long long)room);
        sum += t->sizes[i];
        if (t->sizes[i] > t->most) t->most = t->sizes[i];
    }
    if (y->ndim == 1 && sum != y->numel)
        return op_fail(c, TENSOR_ESHAPE, "targets %s: target_lengths sum to %lld", S(y), (long long)sum);
    return 0;
}

/* The labels of all states, [N, 2 most + 1]. */
static Tensor *state_labels(OpCall *c, const Targets *t)
{
    const Tensor *y = op_input(c, 1);
    const int64_t states = 2 * t->most + 1;
    Tensor *labels = own(new_tensor(SHAPE(t->N, states), TENSOR_I64, &cpu_place));
    int64_t *to = labels ? labels->data : NULL, from = 0;
    for (int64_t i = 0; labels && i < t->N; i++, to += states) {
        if (y->ndim == 2) from = i * y->shape[1];
        ctc_labels(t->label + from, t->sizes[i], t->blank, states, to);
        const int64_t bad = ctc_bad_label(t->label + from, t->sizes[i], t->C, t->blank);
        if (bad >= 0)
            return op_fail(c, TENSOR_EINDEX,
                           "targets: %lld, number %lld of sequence %lld, is outside [0, %lld), or the blank",
                           (long long)t->label[from + bad], (long long)bad, (long long)i, (long long)t->C),
                   NULL;
        from += t->sizes[i];
    }
    return labels;
}

/* The loss of each sequence over its target's length, for the mean. */
static Tensor *per_label(Tensor *loss, Tensor *sizes)
{
    Tensor *lengths =
        sizes && loss ? tensor_to(tensor_clamp(sizes, 1, INFINITY), (TensorDtype)loss->dtype) : NULL;
    return tensor_div(loss, lengths);
}

/* ---- on another device than the CPU: nothing is read, but the longest of targets in one list -- */

static int check_there(OpCall *c, const Tensor *x, const char *what, int64_t low, int64_t high)
{
    CheckArgs a = { .what = what, .status = TENSOR_EINDEX, .low = low, .high = high };
    const int found = call_check(c, x, &a);
    if (found != 1) return found;
    return op_fail(c, TENSOR_EINDEX, "%s: %lld at position %lld: want %lld to %lld", what,
                   (long long)a.bad_value, (long long)a.bad_at, (long long)low, (long long)high);
}

/* One list of targets holds those of all sequences: `end` is where each ends. */
static int check_list_there(OpCall *c, Tensor *end)
{
    const Tensor *y = op_input(c, 1);
    Tensor *sum = !end ? NULL : end->numel ? tensor_narrow(end, 0, end->numel - 1, 1) : tensor_sum(end);
    if (check_there(c, end, "the sum of target_lengths", 0, y->numel)) return -1;
    CheckArgs a = {
        .what = "the sum of target_lengths", .status = TENSOR_ESHAPE, .low = y->numel, .high = y->numel
    };
    const int found = call_check(c, sum, &a);
    if (found != 1) return found;
    return op_fail(c, TENSOR_ESHAPE, "targets %s: target_lengths sum to %lld", S(y), (long long)a.bad_value);
}

/* Of targets y [N, S], or [S] in one list: those that count are classes, and not the blank. */
static int check_labels_there(OpCall *c, Tensor *y, Tensor *sizes, int64_t classes, int64_t blank)
{
    Tensor *is_blank = tensor_to(tensor_eq_scalar(y, (double)blank), TENSOR_I64);
    if (y && y->ndim == 2) {
        Tensor *counts = tensor_lt(count_there(y->shape[1], y), tensor_unsqueeze(sizes, 1)),
               *zero = zeros_on(SHAPE(), TENSOR_I64, y->place);
        y = tensor_where(counts, y, zero), is_blank = tensor_where(counts, is_blank, zero);
    }
    return check_there(c, y, "targets", 0, classes - 1) ||
                   check_there(c, is_blank, "the number of blanks in targets", 0, 0)
               ? -1
               : 0;
}

/* The labels of all states, [N, states]; those that are refused late are some class. */
static Tensor *labels_there(const Targets *t, Tensor *y, Tensor *start, Tensor *sizes)
{
    const int64_t states = 2 * t->most + 1;
    Tensor *k = count_there(states, y);
    Tensor *j = tensor_floor_divide_scalar(k, 2), *odd = tensor_eq_scalar(tensor_remainder_scalar(k, 2), 1);
    Tensor *counts = tensor_logical_and(odd, tensor_lt(j, tensor_unsqueeze(sizes, 1))),
           *blank = own(new_tensor(SHAPE(t->N, states), TENSOR_I64, y->place));
    if (!counts || !blank || raw_fill(blank, (double)t->blank)) return NULL;
    if (y->numel == 0) return blank;
    Tensor *at = tensor_clamp(tensor_add(tensor_unsqueeze(start, 1), j), 0, (double)(y->numel - 1));
    Tensor *label = tensor_index_select(tensor_reshape(y, SHAPE(-1)), 0, tensor_reshape(at, SHAPE(-1)));
    label = tensor_clamp(tensor_reshape(label, SHAPE(t->N, states)), 0, (double)(t->C - 1));
    return tensor_where(counts, label, blank);
}

/* times and sizes are those of the operands, then such that nothing is read from outside. */
static Tensor *targets_there(OpCall *c, Targets *t, Tensor **times, Tensor **sizes)
{
    Tensor *y = tensor_to(op_input(c, 1), TENSOR_I64), *start;
    *times = tensor_reshape(tensor_to(op_input(c, 2), TENSOR_I64), SHAPE(t->N));
    *sizes = tensor_reshape(tensor_to(op_input(c, 3), TENSOR_I64), SHAPE(t->N));
    if (!y || !*times || !*sizes) return NULL;
    const bool list = y->ndim == 1;
    t->most = list ? y->numel : y->shape[1];
    if (check_there(c, *times, "input_lengths", 0, t->T) ||
        check_there(c, *sizes, "target_lengths", 0, t->most))
        return NULL;
    *times = tensor_clamp(*times, 0, (double)t->T), *sizes = tensor_clamp(*sizes, 0, (double)t->most);
    Tensor *end = tensor_cumsum(*sizes, 0);
    if (list && check_list_there(c, end)) return NULL;
    if (list && t->N > 1) t->most = (int64_t)tensor_item(tensor_max(*sizes));
    if (!end || tensor_error_code() || check_labels_there(c, y, *sizes, t->C, t->blank)) return NULL;
    start = list ? tensor_sub(end, *sizes) : tensor_mul_scalar(count_there(t->N, y), (double)y->shape[1]);
    return start ? labels_there(t, y, start, *sizes) : NULL;
}

/* The same here, where all of them are read. */
static Tensor *targets_here(OpCall *c, Targets *t, Tensor **times, Tensor **sizes)
{
    Tensor *y = own(raw_cast(op_input(c, 1), TENSOR_I64));
    *times = own(raw_cast(op_input(c, 2), TENSOR_I64)), *sizes = own(raw_cast(op_input(c, 3), TENSOR_I64));
    if (!y || !*times || !*sizes) return NULL;
    t->label = y->data, t->times = (*times)->data, t->sizes = (*sizes)->data;
    if (check_sizes(c, t)) return NULL;
    *times = tensor_reshape(*times, SHAPE(t->N)), *sizes = tensor_reshape(*sizes, SHAPE(t->N));
    return state_labels(c, t);
}

static int compose(OpCall *c)
{
    const TensorCtcArgs *p = op_params(c);
    const bool alone = op_input(c, 0)->ndim == 2;
    const int dtype = op_input(c, 0)->dtype;
    Tensor *x = loss_input(c, 0, dtype);
    if (alone) x = tensor_unsqueeze(x, 1);
    if (!x) return -1;
    Targets t = { .T = x->shape[0], .N = x->shape[1], .C = x->shape[2], .blank = p->blank };
    Tensor *steps, *flat,
        *labels =
            on_host(x->place) ? targets_here(c, &t, &steps, &flat) : targets_there(c, &t, &steps, &flat);
    if (!labels) return -1;
    Tensor *loss = APPLY(&core, p, x, labels, steps, flat);
    if (p->reduction == TENSOR_MEAN) loss = per_label(loss, flat);
    if (alone && p->reduction == TENSOR_NONE) loss = tensor_squeeze(loss, 0);
    return finish_loss(c, loss, dtype);
}

static const OpField fields[] = { OP_REDUCTION(TensorCtcArgs),
                                  OP_OPTION(TensorCtcArgs, blank, zero_infinity),
                                  { 0 } };

const TensorOp op_ctc_loss = {
    .name = "ctc_loss",
    .autocast = AUTOCAST_F32,
    .summary =
        "-log sum of the paths that collapse to the targets; the gradient is that by log_probs, without "
        "PyTorch's e^log_probs, which log_softmax takes off",
    .gradient = "dx_t(c) = -g times the probability that a path is at t in a state of c",
    .arity = 4,
    .no_grad_inputs = KEEP_INPUT(1) | KEEP_INPUT(2) | KEEP_INPUT(3),
    PARAMS(TensorCtcArgs, tensor_ctc_defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_FLOAT_INPUTS | OP_ANY_DEVICE,
    .torch = "nn.functional.ctc_loss",
    .samples =
        "5x2x3,2x2@i64:1..2,2@i64:5..5,2@i64:2..2; 4x2x3,2@i64:1..2,2@i64:3..4,2@i64:1..1 {reduction=sum}; "
        "4x3x3,3x2@i32:0..1,3@i64:2..4,3@i32:0..2 {reduction=none blank=2 zero_infinity=1}; "
        "2x1x3,1@i64:1..2,1@i64:2..2,1@i64:1..1; "
        "3x3,1@i64:1..2,@i64:3..3,@i64:1..1 {reduction=none}; 3x2,0@i64,1@i64:2..3,1@i64:0..0; "
        "3x0x2,0x1@i64,0@i64,0@i64 {reduction=none}",
    .errors = "3,1@i64:1..2,@i64:3..3,@i64:1..1 ! ESHAPE; 5x2x3,3x2@i64:1..2,2@i64:5..5,2@i64:2..2 ! "
              "ESHAPE; 5x2x3,3@i64:1..2,2@i64:5..5,2@i64:2..2 ! EINDEX; "
              "5x2x3,5@i64:1..2,2@i64:5..5,2@i64:2..2 ! ESHAPE; 5x2x3,2x2@i64:1..2,3@i64:5..5,2@i64:2..2 ! "
              "ESHAPE; 5x2x3,2x2@i64:1..2,2@i64:6..6,2@i64:2..2 ! EINDEX; "
              "5x2x3,2x2@i64:1..2,2@i64:5..5,2@i64:3..3 ! EINDEX; 5x2x3,2x2@i64:3..4,2@i64:5..5,2@i64:2..2 "
              "! EINDEX; 5x2x3,2x2@i64:0..0,2@i64:5..5,2@i64:2..2 ! EINDEX; "
              "5x2x3,2x2@i64:1..2,2@i64:5..5,2@i64:2..2 {blank=3} ! EINDEX; 5x2x3,2x2,2@i64:5..5,2@i64:2..2 "
              "! EDTYPE; 5x2x3,2x2@i64:1..2,2,2@i64:2..2 ! EDTYPE; "
              "5x2x3@i64,2x2@i64:1..2,2@i64:5..5,2@i64:2..2 ! EDTYPE; "
              "5x2x3,2x2@i64:1..2,2@i64:5..5,2@i64:2..2 {reduction=3} ! EVALUE",
};
REGISTER_OPS(&op_ctc_loss);

Tensor *tensor_ctc_loss_args(TensorCtcArgs a)
{
    return APPLY(&op_ctc_loss, &a, a.log_probs, a.targets, a.input_lengths, a.target_lengths);
}
