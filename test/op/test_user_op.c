/* test_user_op.c - what a user's op has, as a built-in one: rows with parameters, arrays in backward, a form
 * in place, the checks of tensor_check_op; and the registry by name (tensor_apply_text). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/op_row.h>
#include "check/sample.h"

OP_UNARY(cubed, "x^3", x *x *x, g * 3 * x * x, KEEP_X, -2, 2);
OP_UNARY1(scaled, "c x", c, 2, c *x, g *c, KEEP_NONE, -2, 2, .rules = ROW_NOT_ZERO,
          .samples = "3x4; 5 {c=-1.5}; 0x2; ", .errors = "3 {c=0} ! EVALUE");
OP_UNARY2(affine, "a x + b", a, 2, b, 1, a *x + b, g *a, KEEP_NONE, -2, 2);
OP_BINARY(quotient, "a / b", a / b, g / b, KEEP_B, -g *(a / b / b), KEEP_A | KEEP_B, .5, 2);
OP_BINARY1(added, "a + c b", c, 2, a + c * b, g, KEEP_NONE, g *c, KEEP_NONE, -2, 2);

static void test_rows(void **state)
{
    (void)state;
    assert_op(&cubed);
    assert_op(&scaled);
    assert_op(&affine);
    assert_op(&quotient);
    assert_op(&added);
}

static void test_parameters(void **state)
{
    (void)state;
    Tensor *x = tensor_full(SHAPE(3), 5, TENSOR_F32);
    assert_float_equal(tensor_get(tensor_apply(&affine, &x, 1, NULL), SHAPE(1)), 11, 0);
    assert_float_equal(tensor_get(tensor_apply(&affine, &x, 1, (double[]){ 3, -1 }), SHAPE(1)), 14, 0);
    assert_ptr_equal(tensor_apply_(&scaled, &x, 1, (double[]){ 3 }), x);
    assert_float_equal(tensor_get(x, SHAPE(2)), 15, 0);
    assert_tensor_error(tensor_apply(&scaled, &x, 1, (double[]){ 0 }), TENSOR_EVALUE);
}

/* ---- arrays, forward and backward ------------------------------------------------------------ */

static int cube_forward(OpCall *c)
{
    const double *x = op_input_f64(c, 0);
    double *y = op_output_f64(c, 0);
    for (int64_t i = 0; i < op_count(c, 0); i++) y[i] = x[i] * x[i] * x[i];
    return 0;
}

static int cube_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const double *x = op_saved_f64(c, 0), *g = op_grad_f64(c, 0);
    double *out = op_gradient_f64(c, 0);
    for (int64_t i = 0; i < op_count(c, 0); i++) out[i] = g[i] * 3 * x[i] * x[i];
    return (void)dy, (void)dx, 0;
}

static const TensorOp cube = { .name = "cube",
                               .arity = 1,
                               .keep = KEEP_INPUT(0),
                               .flags = OP_FIRST_ORDER,
                               .samples = "3x4; 5; 0x2; ",
                               .shape = op_same_shape,
                               .forward = cube_forward,
                               .backward = cube_backward };

/* The product of two, in float where the operands are. */
static int times_forward(OpCall *c)
{
    if (op_input_dtype(c, 0) == TENSOR_F64) {
        const double *a = op_input_f64(c, 0), *b = op_input_f64(c, 1);
        double *y = op_output_f64(c, 0);
        for (int64_t i = 0; i < op_count(c, 0); i++) y[i] = a[i] * b[i];
    } else {
        const float *a = op_input_f32(c, 0), *b = op_input_f32(c, 1);
        float *y = op_output_f32(c, 0);
        for (int64_t i = 0; i < op_output_count(c, 0); i++) y[i] = a[i] * b[i];
    }
    return 0;
}

static int times_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    for (int k = 0; k < 2; k++) {
        if (!op_wants(c, k)) {
            if (op_gradient_f64(c, k)) return op_fail(c, TENSOR_EUSER, "a gradient that nobody wants");
        } else if (op_recording(c)) {
            dx[k] = tensor_mul(dy, op_saved(c, 1 - k));
        } else if (op_input_dtype(c, k) == TENSOR_F64) {
            const double *other = op_saved_f64(c, 1 - k), *g = op_grad_f64(c, 0);
            double *out = op_gradient_f64(c, k);
            for (int64_t i = 0; i < op_count(c, k); i++) out[i] = g[i] * other[i];
        } else {
            const float *other = op_saved_f32(c, 1 - k), *g = op_grad_f32(c, 0);
            float *out = op_gradient_f32(c, k);
            for (int64_t i = 0; i < op_count(c, k); i++) out[i] = g[i] * other[i];
        }
    }
    return 0;
}

static const TensorOp times = { .name = "times",
                                .arity = 2,
                                .keep = KEEP_INPUT(0) | KEEP_INPUT(1),
                                .flags = OP_SAME_DTYPE | OP_FLOAT_INPUTS,
                                .samples = "3x4,3x4; 5,5; 0x2,0x2; ,",
                                .errors = "3@i64,3 ! EDTYPE",
                                .shape = op_same_shape,
                                .forward = times_forward,
                                .backward = times_backward };

static void test_arrays(void **state)
{
    (void)state;
    assert_op(&cube);
    assert_op(&times);
    assert_op_parts(&times, OP_CHECK_MEMORY);
    Tensor *x = tensor_requires_grad_(tensor_full(SHAPE(2), 2, TENSOR_F64), true);
    Tensor *loss = tensor_sum(tensor_apply(&cube, &x, 1, NULL));
    assert_tensor_error(tensor_gradients(loss, x, .create_graph = true), TENSOR_EGRAD);
}

/* ---- what is wrong is found ------------------------------------------------------------------ */

static int wrong_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = tensor_mul(dy, op_saved(c, 0));
    return 0;
}

static int save_nothing(OpCall *c) { return op_save(c, NULL); }

static void test_found(void **state)
{
    (void)state;
    static OpReport report;
    TensorOp bad = cube;
    bad.flags = 0, bad.backward = wrong_backward;
    assert_status_error(tensor_check_op(&bad, OP_CHECK_GRADIENT, &report), TENSOR_EVALUE);
    assert_false(report.ok);
    assert_non_null(strstr(report.text, "cube \"3x4\": gradcheck fails"));
    bad = cube, bad.flags = 0; /* arrays, which cannot be recorded, and it does not say so */
    assert_status_error(tensor_check_op(&bad, 0, &report), TENSOR_EVALUE);
    assert_non_null(strstr(report.text, "OP_FIRST_ORDER"));
    bad = cube, bad.samples = NULL;
    assert_status_error(tensor_check_op(&bad, 0, &report), TENSOR_EVALUE);
    assert_non_null(strstr(report.text, "has no samples"));
    assert_status_error(tensor_check_op(NULL, 0, NULL), TENSOR_ENULL);
    bad = cube, bad.forward = save_nothing;
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64);
    assert_null(tensor_apply(&bad, &x, 1, NULL));
    tensor_error_clear();
}

/* An op of ours and one of yours may have one name: errors tell whose it is. */
static int same_forward(OpCall *c) { return op_fail(c, TENSOR_EVALUE, "not today"); }
static int same_compose(OpCall *c) { return op_set_result(c, 0, tensor_softmax(op_input(c, 0), 7)); }
static int wide_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)c;
    dx[0] = tensor_cat(TENSORS(dy, dy));
    return 0;
}
static int copy_forward(OpCall *c)
{
    assert_false(tensor_grad_enabled()); /* nothing is recorded but the op */
    return op_set_result(c, 0, tensor_clone(op_input(c, 0)));
}
OP_BINARY(maximum, "a b", a *b, g *b, KEEP_B, g *a, KEEP_A, -1, 1);

static void begins(TensorStatus code, const char *text)
{
    if (!tensor_error() || strncmp(tensor_error(), text, strlen(text)) != 0)
        fail_msg("\"%s\" and not \"%s\"", tensor_error() ? tensor_error() : "no error", text);
    assert_tensor_error((Tensor *)NULL, code);
}

static void test_same_name(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true),
           *y = tensor_ones(SHAPE(3), TENSOR_F64);
    TensorOp mine = { .name = "softmax", .arity = 1, .forward = same_forward };
    assert_null(tensor_apply(&mine, &x, 1, NULL));
    begins(TENSOR_EVALUE, "softmax: not today");
    assert_null(tensor_apply(&mine, (Tensor *[]){ x, x }, 2, NULL));
    begins(TENSOR_EVALUE, "softmax: 2 operands given");
    mine.forward = NULL, mine.compose = same_compose;
    assert_null(tensor_apply(&mine, &x, 1, NULL));
    begins(TENSOR_EINDEX, "softmax: tensor_softmax: ");
    mine.compose = NULL, mine.forward = copy_forward, mine.backward = wide_backward;
    assert_int_equal(tensor_backward(tensor_apply(&mine, &x, 1, NULL), tensor_ones_like(x)), -1);
    begins(TENSOR_ESHAPE, "softmax: backward made a gradient of shape [4] for operand 1 of shape [2]");
    assert_null(tensor_apply(&maximum, (Tensor *[]){ x, y }, 2, NULL));
    begins(TENSOR_ESHAPE, "maximum: [2] and [3] do not broadcast");
    assert_null(tensor_maximum(x, y));
    begins(TENSOR_ESHAPE, "tensor_maximum: ");
}

/* ---- by name --------------------------------------------------------------------------------- */

static void test_text(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(2, 3), TENSOR_F32),
           *y = tensor_apply_text("sum", &x, 1, "dim=1 keepdim=true");
    assert_non_null(y);
    assert_int_equal(tensor_ndim(y), 2);
    assert_float_equal(tensor_get(y, SHAPE(1, 0)), 3, 0);
    assert_float_equal(tensor_item(tensor_apply_text("sum", &x, 1, NULL)), 6, 0);
    Tensor *pair[] = { x, tensor_ones(SHAPE(4, 3), TENSOR_F32) };
    assert_non_null(
        tensor_apply_text("linear", pair, 2, NULL)); /* without the bias; but not without the weight */
    assert_tensor_error(tensor_apply_text("linear", pair, 1, NULL), TENSOR_EVALUE);
    assert_non_null(tensor_apply_text("binary_cross_entropy_with_logits", (Tensor *[]){ x, x }, 2, NULL));
    assert_tensor_error(tensor_apply_text("linear", pair, 0, NULL), TENSOR_EVALUE);
    assert_tensor_error(tensor_apply_text("frobnicate", &x, 1, ""), TENSOR_EVALUE);
    assert_tensor_error(tensor_apply_text(NULL, &x, 1, ""), TENSOR_ENULL);
    static const struct {
        const char *options, *said, *op;
    } bad[] = { { "dimm=1", "there is no option" },
                { "dim", "has no value" },
                { "keepdim=maybe", "is no value of it" },
                { "dim=1x", "is no value of it" },
                { "mode=linearr", "want constant, reflect, replicate or circular", "pad" },
                { "dim=1 dim=1", "given twice" },
                { "dim=4294967297", "is no value of it" }, /* 1, if it wrapped */
                { "dim=-4294967295", "is no value of it" },
                { "dim=99999999999999999999", "is no value of it" },
                { "dtype=4294967297", "is no value of it" },
                { "dims=[18446744073709551617]", "is no value of it" },
                { "diagonal=18446744073709551617", "is no value of it", "tril" },
                { "kernel_size=18446744073709551618", "is no value of it", "max_pool1d" },
                { "kernel_sizes=[18446744073709551618]", "is no value of it", "max_pool1d" },
                { "p=1e999", "is no value of it", "norm" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(tensor_apply_text(bad[i].op ? bad[i].op : "sum", &x, 1, bad[i].options));
        if (!strstr(tensor_error(), bad[i].said)) fail_msg("\"%s\": %s", bad[i].options, tensor_error());
        assert_tensor_error((Tensor *)NULL, TENSOR_EVALUE);
    }
    for (int c = 1; c < 256; c++) { /* any byte but those that separate options */
        const char only[] = { (char)c, 0 };
        const char behind[] = { 'd', 'i', 'm', '=', '1', (char)c, 0 };
        if (strchr(" ,\n\t", c)) {
            assert_non_null(tensor_apply_text("sum", &x, 1, only));
            assert_non_null(tensor_apply_text("sum", &x, 1, behind));
            continue;
        }
        assert_tensor_error(tensor_apply_text("sum", &x, 1, only), TENSOR_EVALUE);
        if (tensor_apply_text("sum", &x, 1, behind)) fail_msg("\"%s\" is taken", behind);
        tensor_error_clear();
    }
    assert_float_equal(tensor_item(tensor_apply_text("norm", &x, 1, "p=inf")), 1, 0);
    assert_tensor_error(tensor_apply_text("softmax", &x, 1, ""), TENSOR_EVALUE); /* dim must be given */
}

/* Every sample of every op, its options as they stand in the list. */
static void test_text_of_every_op(void **state)
{
    (void)state;
    for (int i = 0; i < tensor_op_count(); i++) {
        const TensorOp *op = tensor_op_at(i);
        const char *list = op_samples(op);
        Sample s;
        while (sample_next(op, &list, &s) > 0) {
            Tensor *x[OP_MAX_INPUTS], *y[SAMPLE_RESULTS], *z[SAMPLE_RESULTS];
            char options[SAMPLE_TEXT] = "";
            const char *open = strchr(s.text, '{');
            TensorScope scope = tensor_scope_open();
            if (open) snprintf(options, sizeof options, "%.*s", (int)strcspn(open + 1, "}"), open + 1);
            sample_inputs(&s, AS_WRITTEN, 1, x);
            int n = sample_apply(&s, x, y);
            if (op->flags & OP_RANDOM) tensor_manual_seed(7);
            int m = tensor_apply_text_all(op->name, x, s.n, options, z, SAMPLE_RESULTS);
            if (n < 0 || (m < SAMPLE_RESULTS ? m : SAMPLE_RESULTS) != n)
                fail_msg("%s \"%s\": %s", op->name, s.text,
                         tensor_error() ? tensor_error() : "other results");
            for (int k = 0; k < n; k++)
                if (!same_bits(y[k], z[k])) fail_msg("%s \"%s\": other values by name", op->name, s.text);
            tensor_scope_close(scope);
        }
    }
}

/* Each operator of the language of formulas between two tensors, a tensor and a number on either side, and
 * two numbers; and which binds more closely. */
static void test_formula_operators(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double want[3];
    } cases[] = {
        { "x + y", { 1, 0, 6 } },
        { "x - y", { -5, 0, 2 } },
        { "x * y", { -6, 0, 8 } },
        { "x / y", { -2. / 3, NAN, 2 } },
        { "x + c", { 0, 2, 6 } },
        { "x - c", { -4, -2, 2 } },
        { "x * c", { -4, 0, 8 } },
        { "x / c", { -1, 0, 2 } },
        { "c + x", { 0, 2, 6 } },
        { "c - x", { 4, 2, -2 } },
        { "c * x", { -4, 0, 8 } },
        { "c / y", { 2. / 3, INFINITY, 1 } },
        { "c + d", { 2.5, 2.5, 2.5 } },
        { "c - d", { 1.5, 1.5, 1.5 } },
        { "c * d", { 1, 1, 1 } },
        { "c / d", { 4, 4, 4 } },
        { "x < y", { 1, 0, 0 } },
        { "x <= y", { 1, 1, 0 } },
        { "x > y", { 0, 0, 1 } },
        { "x >= y", { 0, 1, 1 } },
        { "x == y", { 0, 1, 0 } },
        { "x != y", { 1, 0, 1 } },
        { "y < c", { 0, 1, 0 } },
        { "y <= c", { 0, 1, 1 } },
        { "y > c", { 1, 0, 0 } },
        { "y >= c", { 1, 0, 1 } },
        { "y == c", { 0, 0, 1 } },
        { "y != c", { 1, 1, 0 } },
        { "c < y", { 1, 0, 0 } },
        { "c <= y", { 1, 0, 1 } },
        { "c < d", { 0, 0, 0 } },
        { "c < c", { 0, 0, 0 } },
        { "d < c", { 1, 1, 1 } },
        { "c <= c", { 1, 1, 1 } },
        { "c <= d", { 0, 0, 0 } },
        { "c > d", { 1, 1, 1 } },
        { "c > c", { 0, 0, 0 } },
        { "d > c", { 0, 0, 0 } },
        { "c >= c", { 1, 1, 1 } },
        { "d >= c", { 0, 0, 0 } },
        { "c == c", { 1, 1, 1 } },
        { "c == d", { 0, 0, 0 } },
        { "c != c", { 0, 0, 0 } },
        { "c != d", { 1, 1, 1 } },
        { "x && y", { 1, 0, 1 } },
        { "x || y", { 1, 0, 1 } },
        { "x < 0 || y < 1", { 1, 1, 0 } },
        { "x < 0 && y < 4", { 1, 0, 0 } },
        { "0 && c", { 0, 0, 0 } },
        { "c && 0", { 0, 0, 0 } },
        { "c && d", { 1, 1, 1 } },
        { "0 || c", { 1, 1, 1 } },
        { "c || 0", { 1, 1, 1 } },
        { "0 || 0", { 0, 0, 0 } },
        { "x && c", { 1, 0, 1 } },
        { "0 || x", { 1, 0, 1 } },
        { "-x", { 2, 0, -4 } },
        { "-c", { -2, -2, -2 } },
        { "!x", { 0, 1, 0 } },
        { "!c", { 0, 0, 0 } },
        { "!0", { 1, 1, 1 } },
        { "!(x != y)", { 0, 1, 0 } },
        { "--c * -x", { 4, 0, -8 } },
        { "x - y - c", { -7, -2, 0 } },
        { "x - (y - c)", { -3, 2, 4 } },
        { "x / c / d", { -2, 0, 4 } },
        { "x / (c / d)", { -.5, 0, 1 } },
        { "x + y * c", { 4, 0, 8 } },
        { "x * c + y", { -1, 0, 10 } },
        { "x + c < y + d", { 1, 0, 0 } },
        { "y > 1 || x < 1 && x > -1", { 1, 1, 1 } },
        { "x > 1 && y > 1 || y > 2", { 1, 0, 1 } },
        { "x ? y : d", { 3, .5, 2 } },
        { "x < 0 ? c : y > 0 ? d : 9", { 2, 9, .5 } },
        { "x < 0 ? y > 2 ? 7 : 8 : 9", { 7, 9, 9 } },
        { "(x < 4) + (y > 0)", { 2, 1, 1 } },
        { "(x < 4) * .1", { .1, .1, 0 } },
        { "1 - -(x == y)", { 1, 2, 1 } },
        { "x < 0 ? x < y : y < c", { 1, 1, 0 } },
        { "c ? x : y", { -2, 0, 4 } },
        { "0 ? x : y", { 3, 0, 2 } },
        { "c > 1 ? d : c", { .5, .5, .5 } },
        { "pow(y, c)", { 9, 0, 4 } },
        { "pow(y, x + 2)", { 1, 0, 64 } },
        { "pow(c, y)", { 8, 1, 4 } },
        { "R(1.5f) * y", { 4.5, 0, 3 } },
        { ".5L*y", { 1.5, 0, 1 } },
        { "clamp(x, -d, 3)", { -.5, 0, 3 } },
    };
    Tensor *x = tensor_from_data((double[]){ -2, 0, 4 }, SHAPE(3), TENSOR_F64),
           *y = tensor_from_data((double[]){ 3, 0, 2 }, SHAPE(3), TENSOR_F64);
    const OpName names[] = { { "x", x, 0 }, { "y", y, 0 }, { "c", NULL, 2 }, { "d", NULL, .5 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Tensor *found = op_formula("test", cases[i].text, names, 4);
        if (!found) fail_msg("%s: %s", cases[i].text, tensor_error());
        for (int k = 0; k < 3; k++) {
            const double value = tensor_get(found, DIMS(k)), want = cases[i].want[k];
            if (!(value == want || (value != value && want != want)))
                fail_msg("%s: [%d] is %g, want %g", cases[i].text, k, value, want);
        }
    }
}

static void test_formula(void **state)
{
    (void)state;
    double values[] = { -2, 3 };
    Tensor *x = tensor_requires_grad_(tensor_from_data(values, SHAPE(2), TENSOR_F64), true);
    const OpName names[] = { { "x", x, 0 }, { "c", NULL, 2 } };
    Tensor *y = op_formula("test", "c != 2 ? x : x > 0 || x == 7 ? c * x * x : -fabs(x) / c", names, 2);
    assert_non_null(y);
    assert_float_equal(tensor_get(y, DIMS(0)), -1, 0);
    assert_float_equal(tensor_get(y, DIMS(1)), 18, 0);
    tensor_backward(tensor_sum(y));
    assert_float_equal(tensor_get(tensor_grad(x), DIMS(0)), .5, 0);
    assert_float_equal(tensor_get(tensor_grad(x), DIMS(1)), 12, 0);
    assert_float_equal(tensor_get(op_formula("test", "c + 1", names, 2), DIMS(1)), 3, 0);
    const char *const bad[] = { "x +",
                                "z",
                                "x x",
                                "(x",
                                "frob(x)",
                                "x ? 1",
                                "exp(x",
                                "clamp(x, x)",
                                "clamp(x,x,1)",
                                "exp(x,x,x,x,x)",
                                "x_123456789_123456789_123456789x" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(op_formula("test", bad[i], names, 2));
        assert_true(strncmp(tensor_error(), "test: formula \"", 15) == 0 && strstr(tensor_error(), bad[i]));
        assert_tensor_error((Tensor *)NULL, TENSOR_EUSER);
    }
    assert_tensor_error(op_formula("test", NULL, names, 2), TENSOR_ENULL);
    assert_tensor_error(op_formula("test", "c", names + 1, 1), TENSOR_ENULL);
    assert_tensor_error(op_formula("test", "x", NULL, 2), TENSOR_ENULL);
}

/* An input without a gradient may be on a graph: the values are the same. */
static void test_plain_inputs_on_a_graph(void **state)
{
    (void)state;
    int tried = 0;
    for (int i = 0; i < tensor_op_count(); i++) {
        const TensorOp *op = tensor_op_at(i);
        const char *list = op_samples(op);
        Sample s;
        while (op->no_grad_inputs && sample_next(op, &list, &s) > 0) {
            Tensor *x[OP_MAX_INPUTS], *y[SAMPLE_RESULTS], *z[SAMPLE_RESULTS];
            TensorScope scope = tensor_scope_open();
            sample_inputs(&s, AS_WRITTEN, 1, x);
            if (op->flags & OP_RANDOM) tensor_manual_seed(7);
            const int n = sample_apply(&s, x, y);
            for (int k = 0; k < s.n && k < 32; k++)
                if (op->no_grad_inputs >> k & 1 && x[k] && tensor_dtype_is_float(tensor_dtype(x[k])))
                    tensor_requires_grad_(x[k], true), tried++;
            if (op->flags & OP_RANDOM) tensor_manual_seed(7);
            assert_int_equal(sample_apply(&s, x, z), n);
            for (int k = 0; k < n; k++)
                if (!same_bits(y[k], z[k])) fail_msg("%s \"%s\": other values", op->name, s.text);
            tensor_scope_close(scope);
        }
    }
    assert_true(tried > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows),
                                        cmocka_unit_test(test_parameters),
                                        cmocka_unit_test(test_arrays),
                                        cmocka_unit_test(test_found),
                                        cmocka_unit_test(test_same_name),
                                        cmocka_unit_test(test_text),
                                        cmocka_unit_test(test_text_of_every_op),
                                        cmocka_unit_test(test_plain_inputs_on_a_graph),
                                        cmocka_unit_test(test_formula),
                                        cmocka_unit_test(test_formula_operators) };
    TensorScope scope = tensor_scope_open();
    int failed = cmocka_run_group_tests_name("ops of a user's", tests, NULL, NULL);
    tensor_scope_close(scope);
    return failed;
}
