/* test_golden.c - every op against PyTorch's values and gradients, in f64 and f32 (oracle/ops.py draws the cases). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "golden.h"

/* In f64: |ours - theirs| <= 1e-10 |theirs|, and 1e-13 of the largest value where it is near 0.
 * In f32: at most 4 times PyTorch's own error there, and 4 ulp of the largest value. */
static const double rtol64 = 1e-10, atol64 = 1e-13, times32 = 4, ulps32 = 4 * 0x1p-23;

/* Where our definition differs from PyTorch's in f64, and why a wider tolerance is right. */
static const struct { const char *op; double rtol; const char *why; } exceptions[] = {
    { "binary_cross_entropy", 1e-8, "PyTorch rounds the 1e-12 of its denominator to f32" },
    { "celu", 1e-6, "PyTorch rounds 1 / alpha to f32 in its gradient" },
    { "digamma", 1e-8, "PyTorch's trigamma, its gradient, is good to 1e-9" },
    { "polygamma", 1e-8, "the same" },
    { "hardsigmoid", 1e-7, "PyTorch's sixth is a float" },
    { NULL, 0, NULL },
};

/* The op whose result is f64 whatever its operands are: PyTorch's run in f32 has that dtype, too. */
static const char *const always_f64 = "float_power";

static double rtol_of(const char *op)
{
    for (int i = 0; exceptions[i].op; i++)
        if (strcmp(exceptions[i].op, op) == 0) return exceptions[i].rtol;
    return rtol64;
}

static double *doubles_of(Tensor *x)
{
    int64_t n = tensor_numel(x);
    double *v = malloc(((size_t)n + 1) * sizeof *v);
    assert_non_null(v);
    assert_int_equal(tensor_copy_to(tensor_to(tensor_detach(x), TENSOR_F64), v, (size_t)n * sizeof *v), 0);
    return v;
}

static bool equal_values(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void compare_floats(const Sample *s, Tensor *y, const GoldenValue *want, const char *what, bool narrow)
{
    double *a = doubles_of(y), *b = doubles_of(golden_value(want)), scale = 0, worst = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < want->count; i++)
        if (isfinite(b[i])) scale = fmax(scale, fabs(b[i]));
    for (int64_t i = 0; i < want->count; i++) {
        double limit = narrow ? times32 * want->error + ulps32 * scale + 1e-44 : rtol_of(s->op->name) * fabs(b[i]) + atol64 * scale;
        if (equal_values(a[i], b[i]) || (narrow && isfinite(b[i]) && isinf(want->error))) continue;
        double excess = fabs(a[i] - b[i]) / limit;
        if (!(excess <= 1) && (at < 0 || !(excess <= worst))) worst = excess, at = i;
    }
    if (at >= 0) complain(s, "%s in %s: element %lld is %.17g, in PyTorch %.17g (%.2g times the limit)", what, narrow ? "f32" : "f64",
                          (long long)at, a[at], b[at], worst);
    free(a);
    free(b);
}

static void compare(const Sample *s, Tensor *y, const GoldenValue *want, const char *what, TensorDtype dtype)
{
    TensorShape shape = tensor_shape(y);
    bool same = shape.ndim == want->ndim;
    for (int d = 0; same && d < shape.ndim; d++) same = shape.dim[d] == want->shape[d];
    if (!same) {
        complain(s, "%s has another shape", what);
        return;
    }
    bool wide = strcmp(s->op->name, always_f64) == 0 && strncmp(what, "result", 6) == 0;
    TensorDtype expected = want->dtype == TENSOR_F64 && !wide ? dtype : want->dtype;
    if (tensor_dtype(y) != expected) complain(s, "%s is %s, in PyTorch %s", what, tensor_dtype_name(tensor_dtype(y)), tensor_dtype_name(expected));
    if (!tensor_dtype_is_float(want->dtype)) {
        if (!tensor_equal(tensor_detach(y), golden_value(want))) complain(s, "%s differs", what);
        return;
    }
    compare_floats(s, y, want, what, dtype == TENSOR_F32 || want->dtype == TENSOR_F32);
}

static void check_gradients(const GoldenCase *c, Tensor *const *leaf, Tensor *const *y, TensorDtype dtype)
{
    const Sample *s = &c->sample;
    Tensor *root[SAMPLE_RESULTS], *v[SAMPLE_RESULTS], *wanted[OP_MAX_INPUTS], *g[OP_MAX_INPUTS];
    int roots = 0, m = 0, k = 0;
    for (int r = 0; r < c->results; r++) {
        if (!c->result[r].cotangent) continue;
        if (tensor_requires_grad(y[r])) root[roots] = y[r], v[roots++] = golden_cotangent(&c->result[r], tensor_dtype(y[r]));
        else complain(s, "result %d requires no gradient, in PyTorch it does", r);
    }
    for (int i = 0; i < s->n; i++)
        if (c->gradient[i].there && tensor_requires_grad(leaf[i])) wanted[m++] = leaf[i];
    if (!roots || !m) return;
    if (tensor_gradients_many(root, v, roots, wanted, m, g, (TensorGradientsArgs){ .materialize_grads = true })) {
        complain(s, "backward fails");
        return;
    }
    for (int i = 0; i < s->n; i++) {
        char what[64];
        snprintf(what, sizeof what, "the gradient of input %d", i);
        if (c->gradient[i].there && tensor_requires_grad(leaf[i])) compare(s, g[k++], &c->gradient[i], what, dtype);
    }
}

static void check_case(const GoldenCase *c, TensorDtype dtype)
{
    const Sample *s = &c->sample;
    Tensor *leaf[OP_MAX_INPUTS], *y[SAMPLE_RESULTS];
    for (int i = 0; i < s->n; i++) {
        leaf[i] = golden_input(c, i, dtype);
        if (c->gradient[i].there && sample_differentiable(s, i, leaf[i])) tensor_requires_grad_(leaf[i], true);
        else if (c->gradient[i].there) complain(s, "input %d has no gradient, in PyTorch it has", i);
    }
    int n = sample_apply(s, leaf, y);
    if (n < 0) {
        complain(s, "is refused");
        return;
    }
    if (n != c->results) complain(s, "has %d results, in PyTorch %d", n, c->results);
    for (int k = 0; k < n && k < c->results; k++) {
        char what[64];
        snprintf(what, sizeof what, "result %d", k);
        compare(s, y[k], &c->result[k], what, dtype);
    }
    if (n == c->results) check_gradients(c, leaf, y, dtype);
}

/* ---- the cases of one op ------------------------------------------------------------------------------------------------ */

static Golden golden;

static void check_op(const TensorOp *op)
{
    static GoldenCase c;
    int cases = 0, status;
    golden_rewind(&golden);
    while ((status = golden_next(&golden, &c)) > 0) {
        if (strcmp(c.op, op->name) != 0) continue;
        TensorScope scope = tensor_scope_open();
        cases++;
        check_case(&c, TENSOR_F64);
        check_case(&c, TENSOR_F32);
        tensor_scope_close(scope);
    }
    bool none = op->torch && strcmp(op->torch, "-") == 0;
    if (status < 0) complain_op(op, "the golden values cannot be read");
    if (cases == 0 && !none) complain_op(op, "has no golden case, and its descriptor does not say that PyTorch has none (torch = \"-\")");
    if (cases && none) complain_op(op, "has golden cases, though its descriptor says that PyTorch has none");
}

int main(int argc, char **argv)
{
    const char *path = getenv("TAPEGRAD_GOLDEN");
    if (golden_open(&golden, path ? path : "test/oracle/ops.golden")) return 1;
    print_message("%u cases of PyTorch %s; without a counterpart there:", golden.cases, golden.torch);
    for (int i = 0; i < tensor_op_count(); i++)
        if (tensor_op_at(i)->torch && strcmp(tensor_op_at(i)->torch, "-") == 0) print_message(" %s", tensor_op_at(i)->name);
    print_message("\n");
    int failed = run_registry(argc, argv, "every op, PyTorch's values", check_op);
    golden_close(&golden);
    return failed;
}
