/* test_golden.c - every op against PyTorch's values and gradients (oracle/ops.py draws the cases): in f64,
 * dense and in another layout, in f32, and, where the values allow it, in f16 and bf16.  TAPEGRAD_GOLDEN
 * names another file of cases, TAPEGRAD_TEST_DEVICE a device to compute on; TAPEGRAD_WORST=1 prints the worst
 * case of each op, as `make oracle` does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "golden.h"

/* In f64: |ours - theirs| <= 1e-10 |theirs|, and 1e-13 of the largest value where it is near 0.
 * In f32: at most 4 times PyTorch's own error there, and 4 ulp of the largest value; where there are so few
 * values that PyTorch's own error may be small by luck, 16 ulp of the largest value or operand (terms of that
 * size may cancel). */
static const double rtol64 = 1e-10, atol64 = 1e-13, times32 = 4, ulp32 = 0x1p-23;

/* A half result is computed as in f32 and rounded once: half an ulp of its own more.  A half gradient may be
 * the sum of several rounded ones, and is derived from a rounded result: 8 ulp of the largest value, of it or
 * of the cotangents. */
static const double round_once = 0.5 + 1. / 64, gradient_ulps = 8;

enum { LEAST_CASES = 40, FEW = 8 };

static int least_cases = LEAST_CASES; /* of another file than the committed one: 1 */

/* Where PyTorch's own values are worse in f64; rows say it themselves (.torch_rtol). */
static const struct {
    const char *op;
    double rtol;
    const char *why;
} exceptions[] = {
    { "binary_cross_entropy", 1e-8, "PyTorch rounds the 1e-12 of its denominator to f32" },
    { NULL, 0, NULL },
};

/* Results that are f64 whatever the operands are: PyTorch's run in f32 has that dtype, too. */
static bool always_f64(const char *op, TensorDtype dtype)
{
    bool half = dtype == TENSOR_F16 || dtype == TENSOR_BF16;
    return strstr(op, "float_power") || (half && strcmp(op, "bincount") == 0);
}

static double rtol_of(const char *op)
{
    for (int i = 0; exceptions[i].op; i++)
        if (strcmp(exceptions[i].op, op) == 0) return exceptions[i].rtol;
    const OpRow *row = tensor_op_find(op)->row;
    return row && row->torch_rtol ? row->torch_rtol : rtol64;
}

static double *doubles_of(Tensor *x)
{
    int64_t n = tensor_numel(x);
    double *v = malloc(((size_t)n + 1) * sizeof *v);
    assert_non_null(v);
    assert_int_equal(tensor_copy_to(tensor_to(tensor_detach(x), TENSOR_F64), v, (size_t)n * sizeof *v), 0);
    return v;
}

/* Of the finite values. */
static double largest(Tensor *x)
{
    double *v = doubles_of(x), most = 0;
    for (int64_t i = 0; i < tensor_numel(x); i++)
        if (isfinite(v[i])) most = fmax(most, fabs(v[i]));
    free(v);
    return most;
}

static bool equal_values(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static double ulp_of(double v, TensorDtype dtype)
{
    int digits = dtype == TENSOR_F16 ? 10 : 7, least = dtype == TENSOR_F16 ? -14 : -126;
    return ldexp(1, (v == 0 ? least : ilogb(v) < least ? least : ilogb(v)) - digits);
}

/* ---- the worst element of an op, by kind of run ------------------------------------------------ */

typedef enum RunKind { RUN_F64, RUN_F32, RUN_HALF, RUN_KINDS } RunKind;
static struct {
    double excess;
    char text[SAMPLE_TEXT], what[64];
} worst_of[RUN_KINDS];

static void note_worst(const Sample *s, RunKind kind, double excess, const char *what)
{
    if (excess <= worst_of[kind].excess) return;
    worst_of[kind].excess = excess;
    snprintf(worst_of[kind].text, sizeof worst_of[kind].text, "%s", s->text);
    snprintf(worst_of[kind].what, sizeof worst_of[kind].what, "%s", what);
}

static void print_worst(const TensorOp *op, int cases)
{
    static const char *const name[RUN_KINDS] = { "f64", "f32", "half" };
    bool any = false;
    printf("%-28s %4d cases", op->name, cases);
    for (int k = 0; k < RUN_KINDS; k++)
        if (worst_of[k].excess > 0) {
            any = true;
            printf("   %s %.2f of the limit: %s of \"%s\"", name[k], worst_of[k].excess, worst_of[k].what,
                   worst_of[k].text);
        }
    printf(any ? "\n" : "   all equal\n");
}

/* ---- comparing --------------------------------------------------------------------------------- */

static double cotangent_scale, operand_scale; /* the largest of this case */

typedef struct Limit {
    double own, relative, floor;
} Limit; /* floor, or relative |b| if more, and own ulps of a half */

/* Tensor cores give and take halves: what is made on the way is half an ulp off, as in PyTorch's kernels, and
 * is multiplied and added up; two ulps are its tolerance for bf16. */
static double products_off(const TensorOp *op, TensorDtype dtype, double scale)
{
    return sample_rounds_more(op) ? 2 * ulp_of(fmax(scale, operand_scale), dtype) : 0;
}

static Limit limit_of(const TensorOp *op, const GoldenValue *want, TensorDtype dtype, bool gradient,
                      double scale)
{
    const double few = 16 * fmax(scale, operand_scale),
                 f32 = times32 * want->error + (want->count < FEW ? few : 4 * scale) * ulp32 + 1e-44;
    if (dtype == TENSOR_F64) return (Limit){ 0, rtol_of(op->name), atol64 * scale };
    if (dtype == TENSOR_F32) return (Limit){ 0, 0, f32 };
    if (gradient) return (Limit){ 0, 0, f32 + gradient_ulps * ulp_of(scale, dtype) };
    return (Limit){ round_once, 0, f32 + products_off(op, dtype, scale) };
}

static void compare_floats(const Sample *s, Tensor *y, const GoldenValue *want, const char *what,
                           TensorDtype dtype, bool gradient)
{
    const bool narrow = dtype != TENSOR_F64, half = narrow && dtype != TENSOR_F32;
    const RunKind kind = !narrow ? RUN_F64 : half ? RUN_HALF : RUN_F32;
    Tensor *exact = golden_value(want);
    double *a = doubles_of(y), *b = doubles_of(exact),
           *stored = doubles_of(half ? tensor_to(exact, dtype) : exact), scale = 0, worst = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < want->count; i++)
        if (isfinite(b[i])) scale = fmax(scale, fabs(b[i]));
    if (gradient) scale = fmax(scale, cotangent_scale);
    const Limit limit = limit_of(s->op, want, dtype, gradient, scale);
    for (int64_t i = 0; i < want->count; i++) {
        if (equal_values(a[i], b[i]) || equal_values(a[i], stored[i]) ||
            (narrow && isfinite(b[i]) && isinf(want->error)))
            continue;
        if (half && gradient && isinf(a[i]) && fabs(b[i]) > 60000)
            continue; /* of the parts that make it up one was too large */
        double room =
            limit.floor + limit.relative * fabs(b[i]) + (limit.own > 0 ? limit.own * ulp_of(b[i], dtype) : 0);
        double excess = fabs(a[i] - b[i]) / room;
        if (isnan(excess)) excess = (double)INFINITY; /* a NaN of one side alone; nothing is worse */
        if (excess > worst) worst = excess, at = i;
    }
    if (at >= 0) note_worst(s, kind, worst, what);
    if (worst > 1)
        complain(s, "%s in %s: element %lld is %.17g, in PyTorch %.17g (%.2g times the limit)", what,
                 tensor_dtype_name(dtype), (long long)at, a[at], b[at], worst);
    free(a);
    free(b);
    free(stored);
}

static void compare(const Sample *s, Tensor *y, const GoldenValue *want, const char *what, TensorDtype dtype,
                    bool gradient)
{
    TensorShape shape = tensor_shape(y);
    bool same = shape.ndim == want->ndim;
    for (int d = 0; same && d < shape.ndim; d++) same = shape.dim[d] == want->shape[d];
    if (!same) {
        complain(s, "%s has another shape", what);
        return;
    }
    bool wide = !gradient && always_f64(s->op->name, dtype);
    TensorDtype expected = want->dtype == TENSOR_F64 && !wide ? dtype : want->dtype;
    if (sample_device && strcmp(tensor_device(y), sample_device) != 0)
        complain(s, "%s is on %s", what, tensor_device(y));
    if (tensor_dtype(y) != expected)
        complain(s, "%s is %s, in PyTorch %s", what, tensor_dtype_name(tensor_dtype(y)),
                 tensor_dtype_name(expected));
    if (!tensor_dtype_is_float(want->dtype)) {
        if (!tensor_equal(tensor_to_device(tensor_detach(y), "cpu"), golden_value(want)))
            complain(s, "%s differs", what);
        return;
    }
    if (wide) dtype = TENSOR_F64;
    compare_floats(s, y, want, what, want->dtype == TENSOR_F32 ? TENSOR_F32 : dtype, gradient);
}

static void check_gradients(const GoldenCase *c, Tensor *const *leaf, Tensor *const *y, TensorDtype dtype,
                            Layout layout)
{
    const Sample *s = &c->sample;
    Tensor *root[SAMPLE_RESULTS], *v[SAMPLE_RESULTS], *wanted[OP_MAX_INPUTS], *g[OP_MAX_INPUTS];
    int roots = 0, m = 0, k = 0;
    for (int r = 0; r < c->results; r++) {
        if (!c->result[r].cotangent) continue;
        if (tensor_requires_grad(y[r]))
            root[roots] = y[r],
            v[roots++] =
                strided_copy(on_sample_device(golden_cotangent(&c->result[r], tensor_dtype(y[r]))), layout);
        else complain(s, "result %d requires no gradient, in PyTorch it does", r);
    }
    cotangent_scale = 0;
    for (int r = 0; r < roots; r++) cotangent_scale = fmax(cotangent_scale, largest(v[r]));
    for (int i = 0; i < s->n; i++)
        if (c->gradient[i].there && tensor_requires_grad(leaf[i])) wanted[m++] = leaf[i];
    if (!roots || !m) return;
    if (tensor_gradients_many(TENSOR_LIST(root, roots), TENSOR_LIST(wanted, m), g,
                              .grad_outputs = TENSOR_LIST(v, roots), .materialize_grads = true)) {
        complain(s, "backward fails");
        return;
    }
    for (int i = 0; i < s->n; i++) {
        char what[64];
        snprintf(what, sizeof what, "the gradient of input %d", i);
        if (c->gradient[i].there && tensor_requires_grad(leaf[i]))
            compare(s, g[k++], &c->gradient[i], what, dtype, true);
    }
}

static void check_case(const GoldenCase *c, TensorDtype dtype, Layout layout)
{
    const Sample *s = &c->sample;
    Tensor *leaf[OP_MAX_INPUTS], *y[SAMPLE_RESULTS];
    operand_scale = 0;
    for (int i = 0; i < s->n; i++) {
        Tensor *x = on_sample_device(golden_input(c, i, dtype));
        if (x && tensor_dtype_is_float(tensor_dtype(x))) operand_scale = fmax(operand_scale, largest(x));
        leaf[i] = x ? strided_copy(x, layout) : NULL;
        if (c->gradient[i].there && sample_differentiable(s, i, leaf[i]))
            tensor_requires_grad_(leaf[i], true);
        else if (c->gradient[i].there) complain(s, "input %d has no gradient, in PyTorch it has", i);
    }
    int n = sample_apply(s, leaf, y);
    if (n < 0) {
        if (layout && (s->op->flags & OP_VIEW) && tensor_error_code() == TENSOR_ESHAPE)
            tensor_error_clear(); /* as tensor_view must */
        else complain(s, "is refused");
        return;
    }
    if (n != c->results) complain(s, "has %d results, in PyTorch %d", n, c->results);
    for (int k = 0; k < n && k < c->results; k++) {
        char what[64];
        snprintf(what, sizeof what, "result %d", k);
        compare(s, y[k], &c->result[k], what, dtype, false);
    }
    if (n == c->results) check_gradients(c, leaf, y, dtype, layout);
}

/* ---- the cases of one op ----------------------------------------------------------------------- */

static Golden golden;

static void check_op(const TensorOp *op)
{
    static GoldenCase c;
    int cases = 0, status;
    golden_begin(&golden, op);
    memset(worst_of, 0, sizeof worst_of);
    while ((status = golden_next(&golden, &c)) > 0) {
        TensorScope scope = tensor_scope_open();
        cases++;
        check_case(&c, TENSOR_F64, LAYOUT_DENSE);
        check_case(&c, TENSOR_F64, (Layout)(1 + cases % (LAYOUTS - 1)));
        check_case(&c, TENSOR_F32, LAYOUT_DENSE);
        if (c.narrow) check_case(&c, TENSOR_F16, LAYOUT_DENSE);
        if (c.narrow) check_case(&c, TENSOR_BF16, LAYOUT_DENSE);
        tensor_scope_close(scope);
    }
    bool none = op_torch(op) && strcmp(op_torch(op), "-") == 0;
    if (status < 0) complain_op(op, "the golden values cannot be read");
    if (cases < least_cases && !none)
        complain_op(op,
                    "has %d golden cases of at least %d, and its descriptor does not say that PyTorch has "
                    "none (torch = \"-\")",
                    cases, least_cases);
    if (cases && none) complain_op(op, "has golden cases, though its descriptor says that PyTorch has none");
    if (getenv("TAPEGRAD_WORST") && !none) print_worst(op, cases);
}

int main(int argc, char **argv)
{
    const char *path = getenv("TAPEGRAD_GOLDEN");
    on_test_device();
    if (path) least_cases = 1;
    if (golden_open(&golden, path ? path : "test/oracle/golden")) return 1;
    print_message("%u cases of PyTorch %s; without a counterpart there:", golden.cases, golden.torch);
    for (int i = 0; i < tensor_op_count(); i++)
        if (op_torch(tensor_op_at(i)) && strcmp(op_torch(tensor_op_at(i)), "-") == 0)
            print_message(" %s", tensor_op_at(i)->name);
    print_message("\n");
    for (int i = 0; i < golden.sections; i++)
        if (!tensor_op_find(golden.section[i].op)) {
            print_error("golden cases of the unknown op %s\n", golden.section[i].op);
            return 1;
        }
    int failed = run_registry(argc, argv, "every op, PyTorch's values", check_op);
    golden_close(&golden);
    return failed;
}
