/* check_forward.c - checks an op forward: its descriptor, its samples in every dtype, its refusals, and that
 * no input changes and nothing leaks. */
#include <math.h>
#include <string.h>
#include "report.h"
#include "tensor/scope.h"

/* ---- the descriptor -------------------------------------------------------------------------- */

static void check_descriptor(const TensorOp *op)
{
    if (!op_samples(op)) complain_op(op, "has no samples");
    if (!op->compose && !op->forward) complain_op(op, "has neither forward nor compose");
    if (!op->compose && !op->backward && !(op->flags & OP_NONDIFFERENTIABLE))
        complain_op(op, "has no backward, and is not OP_NONDIFFERENTIABLE");
    if (op->compose && op->backward) complain_op(op, "has compose and backward");
    if ((op->params != 0) != (op->fields != NULL)) complain_op(op, "params and fields do not agree");
    for (const OpField *f = op->fields; f && f->name; f++)
        if (f->offset >= op->params) complain_op(op, "field %s lies outside the parameters", f->name);
}

/* ---- a plain run ----------------------------------------------------------------------------- */

typedef struct Before { /* what a call must leave as it was */
    int64_t live, tape;
    int n, scopes;
    Tensor *x[OP_MAX_INPUTS], *copy[OP_MAX_INPUTS];
    uint32_t version[OP_MAX_INPUTS];
} Before;

static void remember(Before *b, Tensor *const *x, int n)
{
    b->n = n;
    for (int i = 0; i < n; i++) {
        b->x[i] = x[i];
        b->copy[i] = x[i] ? tensor_clone(tensor_detach(x[i])) : NULL;
        b->version[i] = x[i] ? tensor_version(x[i]) : 0;
    }
    b->scopes = scope_depth();
    b->live = tensor_live_count();
    b->tape = tensor_tape_length();
}

static void compare_before(const Before *b, const Sample *s)
{
    if (scope_depth() != b->scopes) complain(s, "%d scopes are left open", scope_depth() - b->scopes);
    if (tensor_live_count() != b->live)
        complain(s, "%lld tensors are left behind", (long long)(tensor_live_count() - b->live));
    if (tensor_tape_length() != b->tape)
        complain(s, "%lld tape entries are left behind", (long long)(tensor_tape_length() - b->tape));
    for (int i = 0; i < b->n; i++) {
        if (!b->x[i]) continue;
        if (tensor_version(b->x[i]) != b->version[i]) complain(s, "the version of input %d changed", i + 1);
        if (!same_bits(b->x[i], b->copy[i])) complain(s, "input %d changed", i + 1);
        if (tensor_requires_grad(b->x[i]) && !tensor_is_leaf(b->x[i]))
            complain(s, "input %d is no leaf any more", i + 1);
    }
}

static bool all_finite(const Tensor *y)
{
    return tensor_numel(y) == 0 || tensor_item(tensor_all(tensor_isfinite((Tensor *)(uintptr_t)y))) != 0;
}

/* NaN and infinity are in order where an input is empty, or a parameter itself is not finite. */
static bool finite_expected(const Sample *s, Tensor *const *x)
{
    for (int i = 0; i < s->n; i++)
        if (x[i] && (tensor_numel(x[i]) == 0 || !all_finite(x[i]))) return false;
    for (const OpField *f = s->op->fields; f && f->name; f++)
        if (f->type == OP_DOUBLE && !isfinite(*(const double *)(s->params + f->offset))) return false;
    return true;
}

/* A result that is no view is memory of its own: who writes into it must not change an operand. */
static void check_own_memory(const Sample *s, Tensor *const *x, const Tensor *y, int k)
{
    if (s->op->flags & (OP_VIEW | OP_MAY_ALIAS) || tensor_numel(y) == 0) return;
    for (int i = 0; i < s->n; i++)
        if (x[i] && tensor_shares_storage(x[i], y))
            complain(s, "result %d shares the memory of input %d", k + 1, i + 1);
}

static void check_forward(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS], *leaf[OP_MAX_INPUTS], *y[SAMPLE_RESULTS];
    Before before;
    sample_inputs(s, AS_WRITTEN, 1, x);
    int wanting = sample_leaves(s, x, leaf);
    remember(&before, leaf, s->n);
    for (int times = 0; times < 2; times++) { /* with a graph, and without */
        TensorScope scope = tensor_scope_open();
        tensor_set_grad_enabled(times == 0);
        int n = sample_apply(s, leaf, y);
        tensor_set_grad_enabled(true);
        if (n < 0) complain(s, "is refused");
        for (int k = 0; k < n; k++) {
            bool wants = times == 0 && wanting && tensor_dtype_is_float(tensor_dtype(y[k]));
            if (tensor_requires_grad(y[k]) && !wants && !tensor_is_leaf(y[k]))
                complain(s, "result %d requires a gradient", k + 1);
            if (finite_expected(s, x) && !all_finite(y[k])) complain(s, "result %d is not finite", k + 1);
            check_own_memory(s, leaf, y[k], k);
        }
        tensor_scope_close(scope);
        compare_before(&before, s);
    }
}

/* An input of no_grad_inputs gives no result a history, even where it is a leaf that wants a gradient, and
 * the values that it gives without. */
static void check_plain_inputs(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS], *y[SAMPLE_RESULTS], *plain[SAMPLE_RESULTS];
    bool any = false;
    sample_inputs(s, AS_WRITTEN, 1, x);
    const int before = sample_apply(s, x, plain);
    for (int i = 0; i < s->n; i++) {
        if (!x[i] || !tensor_dtype_is_float(tensor_dtype(x[i])) || !sample_is_plain(s, i)) continue;
        any = true;
        tensor_requires_grad_(x[i], true);
    }
    const int n = any ? sample_apply(s, x, y) : 0;
    if (any && n != before) complain(s, "is refused where inputs without a gradient are leaves");
    for (int k = 0; k < n && n == before; k++) {
        if (tensor_requires_grad(y[k]))
            complain(s, "result %d has the history of an input without one", k + 1);
        if (!same_bits(y[k], plain[k])) complain(s, "result %d differs where such inputs are leaves", k + 1);
    }
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* Gradients are sums that may cancel: they get more room, and are measured against the cotangents' size at
 * least. */
static const struct {
    TensorDtype dtype;
    double off, gradient_off;
} precision[] = { { TENSOR_F32, 1e-5, 1e-4 }, { TENSOR_F16, 5e-3, 3e-2 }, { TENSOR_BF16, 4e-2, 2e-1 } };
static const double gradient_floor = 0.1;

/* The halves of what f32 gives at the same values: one rounding, and no other arithmetic. */
static void check_rounded_once(const Sample *s, Tensor *const *x, const SampleRun *narrow)
{
    Tensor *wide[OP_MAX_INPUTS], *y[SAMPLE_RESULTS];
    for (int i = 0; i < s->n; i++)
        wide[i] = x[i] && tensor_dtype_is_float(tensor_dtype(x[i])) ? tensor_to(x[i], TENSOR_F32) : x[i];
    if (sample_apply(s, wide, y) != narrow->results) complain(s, "has another number of results in f32");
    else
        for (int k = 0; k < narrow->results; k++)
            if (!same_bits(narrow->y[k], tensor_to(y[k], tensor_dtype(narrow->y[k]))))
                complain(s, "result %d is not that in f32, rounded once", k + 1);
}

/* Narrow results are close to those in f64 at the same, narrow, values; bool and integer ones equal them. */
static void check_dtypes(const Sample *s)
{
    for (size_t p = 0; p < sizeof precision / sizeof *precision; p++) {
        Tensor *x[OP_MAX_INPUTS], *wide[OP_MAX_INPUTS];
        SampleRun narrow, exact;
        TensorScope scope = tensor_scope_open();
        const char *name = tensor_dtype_name(precision[p].dtype);
        bool any = false;
        sample_inputs(s, (int)precision[p].dtype, 1, x);
        for (int i = 0; i < s->n; i++) {
            bool is_float = x[i] && tensor_dtype_is_float(tensor_dtype(x[i]));
            wide[i] = is_float ? tensor_to(x[i], TENSOR_F64) : x[i];
            any |= is_float;
        }
        if (!any) {
            tensor_scope_close(scope);
            continue;
        }
        if (sample_run(s, x, false, LAYOUT_DENSE, &narrow) < 0 ||
            sample_run(s, wide, false, LAYOUT_DENSE, &exact) < 0)
            complain(s, "is refused in %s or f64", name);
        else if (narrow.results != exact.results)
            complain(s, "has %d results in %s and %d in f64", narrow.results, name, exact.results);
        for (int k = 0; k < narrow.results && k < exact.results; k++) {
            double limit = tensor_dtype_is_float(tensor_dtype(exact.y[k])) ? precision[p].off : 0;
            double off = off_by(narrow.y[k], exact.y[k], 0);
            if (off > limit) complain(s, "result %d in %s is off by %.3g of its scale", k + 1, name, off);
        }
        const bool once = !(s->op->flags & OP_RANDOM) && !sample_rounds_more(s->op);
        if (p && narrow.results >= 0 && once) check_rounded_once(s, x, &narrow);
        for (int i = 0; i < s->n && narrow.results >= 0; i++) {
            if (!narrow.g[i] || !exact.g[i]) continue;
            double off = off_by(narrow.g[i], exact.g[i], gradient_floor);
            if (tensor_dtype(narrow.g[i]) != tensor_dtype(x[i]))
                complain(s, "the gradient of input %d in %s has another dtype", i + 1, name);
            if (off > precision[p].gradient_off)
                complain(s, "the gradient of input %d in %s is off by %.3g of its scale", i + 1, name, off);
        }
        tensor_scope_close(scope);
    }
}

/* ---- in place -------------------------------------------------------------------------------- */

static bool fits_into(const Tensor *y, const Tensor *x)
{
    const TensorShape a = tensor_shape(y), b = tensor_shape(x);
    bool same = a.ndim == b.ndim && tensor_dtype(y) == tensor_dtype(x);
    for (int d = 0; same && d < a.ndim; d++) same = a.dim[d] == b.dim[d];
    return same;
}

/* The gradients by every input that may have one, of the op run in place or not, in a copy of input 0. */
static int gradients_through(const Sample *s, Tensor *const *x, bool in_place, Tensor **g)
{
    Tensor *leaf[OP_MAX_INPUTS], *wanted[OP_MAX_INPUTS], *y[SAMPLE_RESULTS];
    const void *params = s->op->params ? s->params : NULL;
    int m = 0;
    sample_leaves(s, x, leaf);
    for (int i = 0; i < s->n; i++)
        if (sample_differentiable(s, i, x[i])) wanted[m++] = leaf[i];
    leaf[0] = tensor_clone(leaf[0]);
    if (!leaf[0] || (!in_place && sample_apply(s, leaf, y) < 0)) return -1;
    if (in_place && !(y[0] = tensor_apply_(s->op, leaf, s->n, params))) return -1;
    if (!m || !tensor_requires_grad(y[0])) return 0;
    Tensor *v = random_like(y[0], 3);
    return tensor_gradients_many(TENSORS(y[0]), TENSOR_LIST(wanted, m), g, .grad_outputs = TENSORS(v),
                                 .materialize_grads = true)
               ? -1
               : m;
}

/* Into input 0, where result 0 fits: the same bits and gradients. */
static void check_in_place(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS], *in[OP_MAX_INPUTS], *y[SAMPLE_RESULTS], *g[2][OP_MAX_INPUTS];
    if (s->op->flags & (OP_VIEW | OP_RANDOM) || s->input[0].absent) return;
    sample_inputs(s, TENSOR_F64, 4, x);
    if (sample_apply(s, x, y) < 0 || !fits_into(y[0], x[0])) {
        tensor_error_clear();
        return;
    }
    memcpy(in, x, sizeof(Tensor *) * (size_t)s->n);
    in[0] = tensor_clone(x[0]);
    if (tensor_apply_(s->op, in, s->n, s->op->params ? s->params : NULL) != in[0])
        complain(s, "is refused in place");
    else if (!same_bits(in[0], y[0])) complain(s, "gives other values in place");
    const int apart = gradients_through(s, x, false, g[0]), here = gradients_through(s, x, true, g[1]);
    if (here < 0 || apart != here) complain(s, "has no gradient, or another, in place");
    for (int i = 0; i < apart && apart == here; i++)
        if (off_by(g[1][i], g[0][i], 0) > 1e-13) complain(s, "in place gradient %d is another", i);
}

/* ---- determinism ----------------------------------------------------------------------------- */

static void check_repeats(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS];
    SampleRun first, again;
    int threads = tensor_num_threads();
    sample_inputs(s, AS_WRITTEN, 2, x);
    tensor_set_num_threads(1);
    int n = sample_run(s, x, false, LAYOUT_DENSE, &first);
    for (int k = 1; k <= 2 && n >= 0; k++) {
        tensor_set_num_threads(k);
        if (sample_run(s, x, false, LAYOUT_DENSE, &again) != n) complain(s, "does not run a second time");
        for (int i = 0; i < n; i++)
            if (!same_bits(first.y[i], again.y[i]))
                complain(s, "result %d differs from run to run, %d threads", i + 1, k);
        for (int i = 0; i < s->n; i++)
            if (!same_bits(first.g[i], again.g[i]))
                complain(s, "the gradient of input %d differs from run to run, %d threads", i + 1, k);
    }
    tensor_set_num_threads(threads);
    if (n < 0) complain(s, "its backward is refused");
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void check_null(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS], *y[SAMPLE_RESULTS];
    Before before;
    sample_inputs(s, AS_WRITTEN, 1, x);
    for (int i = 0; i < s->n && i < 32; i++) {
        Tensor *was = x[i];
        if (s->op->optional >> i & 1) continue;
        x[i] = NULL;
        remember(&before, x, s->n);
        if (sample_apply(s, x, y) >= 0 || tensor_error_code() != TENSOR_ENULL)
            complain(s, "takes NULL for input %d", i + 1);
        else if (!strstr(tensor_error(), s->op->name)) complain(s, "does not name itself");
        tensor_error_clear();
        tensor_fail(TENSOR_EUSER, "earlier", "the first error");
        if (tensor_apply(s->op, x, s->n, s->params) || tensor_error_code() != TENSOR_EUSER)
            complain(s, "does not pass NULL on");
        tensor_error_clear();
        compare_before(&before, s);
        x[i] = was;
    }
}

static bool names_a_shape(const char *text, Tensor *const *x, int n)
{
    char shape[256];
    for (int i = 0; i < n; i++) {
        size_t at = 0;
        if (!x[i]) continue;
        at += (size_t)snprintf(shape + at, sizeof shape - at, "[");
        for (int d = 0; d < tensor_ndim(x[i]); d++)
            at += (size_t)snprintf(shape + at, sizeof shape - at, "%s%lld", d ? ", " : "",
                                   (long long)tensor_size(x[i], d));
        snprintf(shape + at, sizeof shape - at, "]");
        if (strstr(text, shape) || (tensor_ndim(x[i]) == 0 && strstr(text, "rank 0"))) return true;
    }
    return false;
}

/* Of floats in a range: no device is waited for to look at such values, if the CPU refuses them. */
static bool refused_for_values(const Sample *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->input[i].has_range && (!s->input[i].has_dtype || tensor_dtype_is_float(s->input[i].dtype)))
            return s->code == TENSOR_EVALUE;
    return false;
}

static void check_refused(const Sample *s, Tensor *const *x)
{
    Tensor *y[SAMPLE_RESULTS] = { NULL };
    Before before;
    remember(&before, x, s->n);
    untold(s->op);
    int n = sample_apply(s, x, y);
    if (n >= 0) {
        if (!sample_device || !refused_for_values(s)) complain(s, "is not refused");
        return;
    }
    if (untold(s->op)) complain(s, "is refused, and the op returns 0");
    if (y[0]) complain(s, "is refused, but has a result");
    if (tensor_error_code() != s->code)
        complain(s, "is refused with another code: \"%s\"", tensor_status_text(tensor_error_code()));
    else if (!strstr(tensor_error(), s->op->name) && !s->op->compose)
        complain(s, "the error does not name the op");
    else if (s->code == TENSOR_ESHAPE && !names_a_shape(tensor_error(), x, s->n))
        complain(s, "the error names no shape of an operand");
    tensor_error_clear();
    compare_before(&before, s);
}

static void check_errors(const TensorOp *op)
{
    const char *list = op_errors(op);
    Sample s;
    for (int status; (status = sample_next(op, &list, &s)) != 0;) {
        Tensor *x[OP_MAX_INPUTS], *leaf[OP_MAX_INPUTS];
        TensorScope scope = tensor_scope_open();
        if (status < 0 || s.code == TENSOR_OK) {
            complain(&s, "%s", status < 0 ? s.wrong : "names no error code");
        } else {
            sample_inputs(&s, AS_WRITTEN, 1, x);
            check_refused(&s, x);
            sample_leaves(&s, x, leaf);
            check_refused(&s, leaf);
        }
        tensor_scope_close(scope);
    }
}

void check_op_forward(const TensorOp *op)
{
    check_descriptor(op);
    each_sample(op, check_forward);
    each_sample(op, check_plain_inputs);
    each_sample(op, check_dtypes);
    each_sample(op, check_in_place);
    each_sample(op, check_repeats);
    each_sample(op, check_null);
    check_errors(op);
}
