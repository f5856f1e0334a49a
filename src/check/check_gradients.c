/* check_gradients.c - checks an op backward: finite differences to the third order, recorded against fused,
 * each input's gradient alone, one tensor as two inputs. */
#include <math.h>
#include <string.h>
#include "tensor/core.h"
#include "report.h"

/* Tighter than the defaults: a gradient that is 0.1 % too large must not pass. */
enum { THIRD_ORDER_ELEMENTS = 6 };
static const double rtol = 1e-5, atol = 1e-6, atol_second = 2e-5;

static bool checkable(const Sample *s, Tensor *const *x)
{
    if (s->op->flags & (OP_NONDIFFERENTIABLE | OP_NO_GRADCHECK)) return false;
    for (int i = 0; i < s->n; i++)
        if (sample_differentiable(s, i, x[i])) return true;
    return false;
}

static int64_t elements_of(const Sample *s, Tensor *const *x)
{
    int64_t elements = 0;
    for (int i = 0; i < s->n; i++) elements += x[i] ? tensor_numel(x[i]) : 0;
    return elements;
}

static void check_one(const Sample *s, GradcheckArgs args, const char *what)
{
    if (tensor_gradcheck_args(args)) complain(s, "%s", what); /* the error names the element */
}

static THREAD_LOCAL int checked; /* samples of this op that finite differences could be taken of */

static void check_differences(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS];
    sample_inputs(s, TENSOR_F64, 3, x);
    if (!checkable(s, x)) return;
    checked += elements_of(s, x) > 0;
    GradcheckArgs args = tensor_gradcheck_defaults;
    args.op = s->op;
    args.inputs = TENSOR_LIST(x, s->n);
    args.params = s->op->params ? s->params : NULL;
    args.rtol = rtol;
    args.atol = atol;
    check_one(s, args, "gradcheck fails");
    args.second = true, args.atol = atol_second;
    if (elements_of(s, x) && !(s->op->flags & OP_FIRST_ORDER)) check_one(s, args, "gradgradcheck fails");
}

/* ---- third order: the gradgradcheck of the gradient ------------------------------------------ */

/* present: the inputs but for the absent ones. */
static Tensor *gradient_of_sum(Tensor **present, int n, void *ctx)
{
    const Sample *s = ctx;
    Tensor *x[OP_MAX_INPUTS], *y[SAMPLE_RESULTS], *root = NULL, *wanted[OP_MAX_INPUTS], *g[OP_MAX_INPUTS],
                                                  *sum = NULL;
    for (int i = 0, k = 0; i < s->n; i++) x[i] = s->input[i].absent ? NULL : present[k++];
    int m = 0, results = sample_apply(s, x, y);
    for (int k = 0; k < results && !root; k++)
        if (tensor_requires_grad(y[k])) root = y[k];
    if (!root) return NULL;
    for (int i = 0; i < n; i++)
        if (tensor_requires_grad(present[i])) wanted[m++] = present[i];
    Tensor *v = random_like(root, 5);
    if (tensor_gradients_many(TENSORS(root), TENSOR_LIST(wanted, m), g, .grad_outputs = TENSORS(v),
                              .create_graph = true, .materialize_grads = true))
        return NULL;
    for (int i = 0; i < m; i++) {
        Tensor *part = tensor_sum(tensor_mul(g[i], random_like(g[i], 6 + (uint64_t)i)));
        sum = sum ? tensor_add(sum, part) : part;
    }
    return sum;
}

static Tensor *first_order(Tensor **x, int n, void *ctx)
{
    bool was = tensor_set_grad_enabled(true);
    Tensor *g = gradient_of_sum(x, n, ctx);
    tensor_set_grad_enabled(was);
    return g;
}

static void check_third_order(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS], *leaf[OP_MAX_INPUTS];
    int present = 0;
    SampleRun run;
    sample_inputs(s, TENSOR_F64, 4, x);
    int64_t elements = elements_of(s, x);
    if (!checkable(s, x) || (s->op->flags & OP_FIRST_ORDER) || elements > THIRD_ORDER_ELEMENTS ||
        elements == 0)
        return;
    if (sample_run(s, x, false, LAYOUT_DENSE, &run) < 0 || !tensor_requires_grad(run.y[0])) return;
    sample_leaves(s, x, leaf);
    for (int i = 0; i < s->n; i++)
        if (leaf[i]) leaf[present++] = leaf[i];
    GradcheckArgs args = tensor_gradcheck_defaults;
    args.fn = first_order;
    args.ctx = (void *)(uintptr_t)s;
    args.inputs = TENSOR_LIST(leaf, present);
    args.second = true;
    args.rtol = 1e-4;
    args.atol = 2e-4;
    check_one(s, args, "the third order fails");
}

/* ---- recorded and fused ---------------------------------------------------------------------- */

/* Results of an op without gradients require none. */
static void check_outside(const Sample *s, Tensor *const *x)
{
    Tensor *y[SAMPLE_RESULTS];
    for (int i = 0; i < s->n; i++)
        if (x[i] && tensor_dtype_is_float(tensor_dtype(x[i]))) tensor_requires_grad_(x[i], true);
    int n = sample_apply(s, x, y);
    for (int k = 0; k < n; k++)
        if (y[k] && tensor_requires_grad(y[k])) complain(s, "result %d requires a gradient", k + 1);
}

/* A backward on arrays: refused where it is recorded, not wrong. */
static void check_not_recorded(const Sample *s, Tensor *const *x)
{
    SampleRun run;
    if (sample_run(s, x, true, LAYOUT_DENSE, &run) < 0 && tensor_error_code() == TENSOR_EGRAD)
        tensor_error_clear();
    else complain(s, "is OP_FIRST_ORDER, but its recorded backward is not refused with EGRAD");
}

static void check_recorded(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS];
    SampleRun fused, recorded;
    sample_inputs(s, TENSOR_F64, 5, x);
    if (s->op->flags & OP_NONDIFFERENTIABLE) check_outside(s, x);
    else if (sample_run(s, x, false, LAYOUT_DENSE, &fused) < 0) complain(s, "backward fails");
    else if (s->op->flags & OP_FIRST_ORDER) check_not_recorded(s, x);
    else if (sample_run(s, x, true, LAYOUT_DENSE, &recorded) < 0)
        complain(s, "recorded backward fails (one that works on arrays alone says so by OP_FIRST_ORDER)");
    else
        for (int i = 0; i < s->n; i++) {
            double off = off_by(recorded.g[i], fused.g[i], 0);
            if (off > 1e-12)
                complain(s, "recorded and fused gradient of input %d are %.3g apart", i + 1, off);
        }
}

/* ---- one gradient of several ----------------------------------------------------------------- */

/* What is kept for the gradients that are wanted must do for them, and the others must not be needed. */
static void check_alone(const Sample *s, Tensor *const *x, int i, Tensor *all, bool record)
{
    Tensor *in[OP_MAX_INPUTS], *y[SAMPLE_RESULTS], *root[SAMPLE_RESULTS], *v[SAMPLE_RESULTS], *g = NULL;
    int roots = 0;
    memcpy(in, x, sizeof(Tensor *) * (size_t)s->n);
    in[i] = tensor_requires_grad_(tensor_detach(x[i]), true);
    const int n = sample_apply(s, in, y);
    for (int k = 0; k < n; k++)
        if (tensor_requires_grad(y[k])) root[roots] = y[k], v[roots++] = random_like(y[k], 11 + (uint64_t)k);
    if (roots && tensor_gradients_many(TENSOR_LIST(root, roots), TENSORS(in[i]), &g,
                                       .grad_outputs = TENSOR_LIST(v, roots), .create_graph = record,
                                       .materialize_grads = true))
        complain(s, "the gradient of input %d alone fails", i + 1);
    else if (roots && off_by(g, all, 0) > 1e-12)
        complain(s, "the gradient of input %d alone is another one", i + 1);
}

static void check_each_alone(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS];
    SampleRun run;
    sample_inputs(s, TENSOR_F64, 7, x);
    if (s->op->flags & OP_NONDIFFERENTIABLE || sample_run(s, x, false, LAYOUT_DENSE, &run) < 0) return;
    for (int i = 0; i < s->n; i++)
        if (sample_differentiable(s, i, x[i])) {
            check_alone(s, x, i, run.g[i], false);
            if (!(s->op->flags & OP_FIRST_ORDER)) check_alone(s, x, i, run.g[i], true);
        }
}

/* ---- the same tensor in two slots ------------------------------------------------------------ */

static void check_pair(const Sample *s, Tensor *const *x, int a, int b)
{
    Tensor *in[OP_MAX_INPUTS], *y[SAMPLE_RESULTS], *root[SAMPLE_RESULTS], *v[SAMPLE_RESULTS];
    SampleRun apart;
    int roots = 0;
    memcpy(in, x, sizeof(Tensor *) * (size_t)s->n);
    in[b] = in[a];
    if (sample_run(s, in, false, LAYOUT_DENSE, &apart) < 0) { /* two leaves with the same values */
        tensor_error_clear();                                 /* such values may be refused */
        return;
    }
    in[a] = in[b] = tensor_requires_grad_(tensor_detach(x[a]), true);
    int n = sample_apply(s, in, y);
    for (int k = 0; k < n; k++)
        if (tensor_requires_grad(y[k])) root[roots] = y[k], v[roots++] = random_like(y[k], 11 + (uint64_t)k);
    if (n < 0 || !roots) return;
    if (tensor_backward_many(TENSOR_LIST(root, roots), TENSOR_LIST(v, roots)))
        complain(s, "backward with one tensor as inputs %d and %d fails", a + 1, b + 1);
    else {
        double off = off_by(tensor_grad(in[a]), tensor_add(apart.g[a], apart.g[b]), 0);
        if (off > 1e-12)
            complain(s, "the gradients of inputs %d and %d, one tensor, are not added: off by %.3g", a, b,
                     off);
    }
}

static void check_repeated_inputs(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS];
    sample_inputs(s, TENSOR_F64, 6, x);
    for (int a = 0; a < s->n; a++)
        for (int b = a + 1; b < s->n; b++)
            if (sample_differentiable(s, a, x[a]) && sample_differentiable(s, b, x[b]) &&
                tensor_shape_equal(tensor_shape(x[a]), tensor_shape(x[b]))) {
                check_pair(s, x, a, b);
                return;
            }
}

void check_op_gradients(const TensorOp *op)
{
    checked = 0;
    each_sample(op, check_differences);
    if (!checked && !(op->flags & (OP_NONDIFFERENTIABLE | OP_NO_GRADCHECK)))
        complain_op(op, "has no sample for gradcheck");
    each_sample(op, check_third_order);
    each_sample(op, check_recorded);
    each_sample(op, check_each_alone);
    each_sample(op, check_repeated_inputs);
}
