/* test_specials.c - the elementwise rows and their gradients at zeros, infinities, NaN, the largest and
 * smallest numbers and far from 0, against PyTorch's (oracle/specials_golden.h).
 *
 *  - Finite results agree to a few ulp; NaN, infinities and the sign of 0 are PyTorch's, but where `differs`
 * says why not.
 *  - An element has the same bits among others, alone, and in other memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad/autograd.h>
#include <tapegrad/debug.h>
#include <tapegrad/ops.h>

#include "oracle/specials_golden.h"

enum { MOST = 256, ULPS = 4 };
#define COUNT(array) (sizeof(array) / sizeof *(array))

static int wrong;

/* ---- numbers --------------------------------------------------------------------------------- */

/* Each number read as its dtype reads it: a double would round twice. */
static int read_numbers(const char *text, TensorDtype dtype, double *v)
{
    int n = 0;
    for (char *end; *text; text = end + 1) {
        assert_true(n < MOST);
        v[n++] = dtype == TENSOR_F32 ? (double)strtof(text, &end) : strtod(text, &end);
    }
    return n;
}

static Tensor *tensor_of(const double *v, int n, TensorDtype dtype)
{
    return tensor_to(tensor_from_data(v, SHAPE(n), TENSOR_F64), dtype);
}

static void doubles_of(Tensor *x, double *v)
{
    Tensor *wide = tensor_to(tensor_detach(x), TENSOR_F64);
    assert_non_null(wide);
    assert_int_equal(tensor_copy_to(wide, v, (size_t)tensor_numel(wide) * sizeof *v), 0);
}

static bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

/* A unit in the last place of v. */
static double ulp(double v, TensorDtype dtype)
{
    int digits = dtype == TENSOR_F32 ? FLT_MANT_DIG : DBL_MANT_DIG,
        least = dtype == TENSOR_F32 ? FLT_MIN_EXP : DBL_MIN_EXP;
    int e = v == 0 ? least : ilogb(v) + 1;
    return ldexp(1, (e < least ? least : e) - digits);
}

static bool close_numbers(double a, double b, double scale, TensorDtype dtype)
{
    return same_number(a, b) ||
           (isfinite(a) && isfinite(b) && fabs(a - b) <= ULPS * ulp(scale, dtype) && (a != 0 || b != 0));
}

/* ---- where a row is not as in PyTorch -------------------------------------------------------- */

typedef bool Where(double a, double b, const double *params);

static bool at_bounds(double x, double b, const double *p) { return (void)b, x == p[0] || x == p[1]; }
static bool at_infinity(double x, double b, const double *p)
{
    return (void)b, (void)p, x >= (double)FLT_MAX;
}
static bool at_tiny_sigmoid(double x, double b, const double *p) { return (void)b, (void)p, fabs(x) == 100; }
static bool at_half(double x, double b, const double *p)
{
    return (void)b, fabs(p[0]) == .5 && (x == 0 || x == -(double)INFINITY);
}
static bool at_overflow(double x, double b, const double *p)
{
    return (void)b, p[0] < 0 && x == (double)-1e20f;
}

static const struct {
    const char *op;
    int part;
    Where *where;
    const char *why;
} differs[] = {
    { "clamp", 1, at_bounds, "the gradient is 1 at both bounds; it was so in PyTorch before it became 0" },
    { "gelu", 0, at_infinity, "PyTorch has NaN in f32, and inf in f64" },
    { "logsigmoid", 1, at_tiny_sigmoid,
      "the gradient is a subnormal f32, and 0 here, as PyTorch's own sigmoid" },
    { "softplus", 1, at_tiny_sigmoid, "the same" },
    { "pow_scalar", 1, at_half, "the gradient holds C's power, PyTorch's a root" },
    { "pow_scalar", 0, at_overflow,
      "PyTorch squares before it divides: 1 / inf for what a subnormal f32 holds" },
    { "pow_scalar", 1, at_overflow, "the same" },
    { NULL, 0, NULL, NULL },
};

static bool may_differ(const char *op, int part, double a, double b, const double *params)
{
    for (int i = 0; differs[i].op; i++)
        if (strcmp(differs[i].op, op) == 0 && differs[i].part == part && differs[i].where(a, b, params))
            return true;
    return false;
}

/* Formulas that cancel, here and in PyTorch: compared in units of 1, or of x. */
static bool cancels(const char *op)
{
    static const char *const name[] = { "tanh", "gelu", "gelu_tanh" };
    for (size_t i = 0; i < COUNT(name); i++)
        if (strcmp(name[i], op) == 0) return true;
    return false;
}

/* ---- one row --------------------------------------------------------------------------------- */

typedef struct Case {
    const TensorOp *op;
    int n, arity;
    TensorDtype dtype;
    const double *params;
    double in[2][MOST];
} Case;

/* y and the gradients of the operands: as dense vectors, or each operand with a step of 2 in memory. */
static void run(const Case *c, int from, int n, bool strided, double out[3][MOST])
{
    TensorScope scope = tensor_scope_open();
    Tensor *x[2] = { NULL, NULL }, *in[2] = { NULL, NULL };
    for (int i = 0; i < c->arity; i++) {
        x[i] = in[i] = tensor_of(c->in[i] + from, n, c->dtype);
        if (strided) x[i] = tensor_stack(TENSORS(x[i], x[i]), 1);
        tensor_requires_grad_(x[i], true);
        in[i] = strided ? tensor_select(x[i], 1, 0) : x[i];
    }
    Tensor *y = tensor_apply(c->op, in, c->arity, c->op->params ? c->params : NULL);
    assert_non_null(y);
    doubles_of(y, out[0]);
    assert_int_equal(tensor_backward(y, tensor_ones_like(y)), 0);
    for (int i = 0; i < c->arity; i++) {
        Tensor *g = tensor_grad(x[i]);
        assert_non_null(g);
        doubles_of(strided ? tensor_select(g, 1, 0) : g, out[1 + i]);
    }
    tensor_scope_close(scope);
}

static void complain(const Case *c, int part, int i, double got, double want, const char *what)
{
    static const char *const name[3] = { "result", "gradient", "gradient of b" };
    char b[40] = "", p[60] = "";
    if (c->arity == 2) snprintf(b, sizeof b, ", %g", c->in[1][i]);
    if (c->op->params) snprintf(p, sizeof p, " {%g %g}", c->params[0], c->params[1]);
    print_error("%s(%g%s)%s in %s: %s %.17g, %s %.17g\n", c->op->name, c->in[0][i], b, p,
                tensor_dtype_name(c->dtype), name[part], got, what, want);
    wrong++;
}

static void check(Case *c, const char *const *text)
{
    double out[3][MOST], other[3][MOST], want[MOST];
    run(c, 0, c->n, false, out);
    for (int part = 0; part <= c->arity; part++) {
        assert_int_equal(read_numbers(text[part], c->dtype, want), c->n);
        for (int i = 0; i < c->n; i++) {
            double x = c->in[0][i], scale = cancels(c->op->name) && isfinite(x) ? fmax(1, fabs(x)) : want[i];
            if (!close_numbers(out[part][i], want[i], scale, c->dtype) &&
                !may_differ(c->op->name, part, x, c->in[1][i], c->params))
                complain(c, part, i, out[part][i], want[i], "in PyTorch");
        }
    }
    run(c, 0, c->n, true, other);
    for (int part = 0; part <= c->arity; part++)
        for (int i = 0; i < c->n; i++)
            if (!same_number(other[part][i], out[part][i]))
                complain(c, part, i, out[part][i], other[part][i], "with strides");
    for (int i = 0; i < c->n; i++) {
        run(c, i, 1, false, other);
        for (int part = 0; part <= c->arity; part++)
            if (!same_number(other[part][0], out[part][i]))
                complain(c, part, i, out[part][i], other[part][0], "alone");
    }
}

/* ---- all rows -------------------------------------------------------------------------------- */

static void rows(void **state, TensorDtype dtype)
{
    (void)state;
    double listed[MOST], cross[MOST];
    int n = read_numbers(dtype == TENSOR_F32 ? special_values_f32 : special_values_f64, dtype, listed);
    int k = read_numbers(dtype == TENSOR_F32 ? special_cross_f32 : special_cross_f64, dtype, cross);
    wrong = 0;
    for (size_t i = 0; i < COUNT(special_golden); i++) {
        if (special_golden[i].dtype != dtype) continue;
        Case c = { .op = tensor_op_find(special_golden[i].op),
                   .arity = special_golden[i].arity,
                   .dtype = dtype,
                   .params = special_golden[i].params };
        assert_non_null(c.op);
        c.n = c.arity == 1 ? n : k * k;
        for (int j = 0; j < c.n; j++)
            c.in[0][j] = c.arity == 1 ? listed[j] : cross[j / k], c.in[1][j] = cross[j % k];
        check(&c, special_golden[i].text);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(tensor_live_count(), 0);
}

static void rows_f32(void **state) { rows(state, TENSOR_F32); }
static void rows_f64(void **state) { rows(state, TENSOR_F64); }

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows_f32), cmocka_unit_test(rows_f64) };
    return cmocka_run_group_tests_name("specials", tests, NULL, NULL);
}
