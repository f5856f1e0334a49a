/* test_gradcheck.c - the checker is checked: gradients are made wrong on purpose, in every op, and must be
 * caught. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "samples.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/op_row.h>

/* ---- planted errors in every op -------------------------------------------------------------- */

/* 1.001 hides behind the default rtol, 1e-3. */
static const double RTOL = 1e-5, ATOL = 1e-6;

typedef enum Plant { PLANT_SCALE, PLANT_ZERO, PLANT_REVERSE, PLANT_DROP_SUM, PLANTS } Plant;
static const char *const plant_name[PLANTS] = { "1.001 times too large", "zero", "in reverse order",
                                                "without its broadcast sum" };

static const TensorOp *original;
static Plant plant;
/* Has the planted error changed a gradient at all, and by so much more than the tolerance that it must be
 * caught? */
static bool touched, changed;

static double *doubles(const Tensor *x)
{
    double *v = malloc(((size_t)tensor_numel(x) + 1) * sizeof *v);
    assert_non_null(v);
    assert_int_equal(tensor_copy_to(x, v, (size_t)tensor_numel(x) * sizeof *v), 0);
    return v;
}

static void note_change(double was, double is)
{
    if (is != was) touched = true;
    if (fabs(is - was) > 10 * (ATOL + RTOL * fabs(was))) changed = true;
}

/* dx as it would be if the first slice stood for the sum over broadcast dimensions. */
static Tensor *drop_sum(Tensor *dx, TensorShape shape)
{
    Tensor *first = dx;
    while (tensor_ndim(first) > shape.ndim) first = tensor_select(first, 0, 0);
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] == 1 && tensor_size(first, d) > 1) first = tensor_narrow(first, d, 0, 1);
    return first;
}

static Tensor *wrong_gradient(OpCall *c, Tensor *dx, int i)
{
    TensorShape shape = op_input_shape(c, i);
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    if (tensor_numel(dx) == 0) return dx;
    if (plant == PLANT_DROP_SUM) {
        if (tensor_numel(dx) == n) return dx;
        Tensor *first = tensor_clone(drop_sum(dx, shape)), *whole = dx;
        while (tensor_ndim(whole) > shape.ndim) whole = tensor_sum(whole, 0);
        for (int d = 0; d < shape.ndim; d++)
            if (shape.dim[d] == 1 && tensor_size(whole, d) != 1)
                whole = tensor_sum(whole, d, .keepdim = true);
        double *a = doubles(whole), *b = doubles(first);
        for (int64_t k = 0; k < n; k++) note_change(a[k], b[k]);
        free(a);
        free(b);
        return first;
    }
    if (plant == PLANT_REVERSE && tensor_numel(dx) != n)
        return dx; /* the sum over broadcast dimensions may not see it */
    double *v = doubles(dx), *w = doubles(dx);
    n = tensor_numel(dx);
    for (int64_t k = 0; k < n; k++) {
        w[k] = plant == PLANT_ZERO ? 0 : plant == PLANT_SCALE ? 1.001 * v[k] : v[n - 1 - k];
        note_change(v[k], w[k]);
    }
    Tensor *wrong = tensor_from_data(w, tensor_shape(dx), TENSOR_F64);
    free(v);
    free(w);
    return wrong;
}

static int wrong_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (original->backward(c, dy, dx)) return -1;
    for (int i = 0; i < op_inputs(c); i++)
        if (op_wants(c, i) && dx[i] && !(dx[i] = wrong_gradient(c, dx[i], i))) return -1;
    return 0;
}

static int applied[PLANTS];

static void check_planted(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS];
    TensorOp mutant = *s->op;
    bool any = false;
    original = s->op;
    mutant.backward = wrong_backward;
    sample_inputs(s, TENSOR_F64, 3, x);
    for (int i = 0; i < s->n; i++) any |= sample_differentiable(s, i, x[i]);
    for (int p = 0; p < PLANTS && any; p++) {
        GradcheckArgs args = tensor_gradcheck_defaults;
        args.op = &mutant;
        args.inputs = TENSOR_LIST(x, s->n);
        args.params = s->op->params ? s->params : NULL;
        args.rtol = RTOL;
        args.atol = ATOL;
        plant = (Plant)p, touched = changed = false;
        bool caught = tensor_gradcheck_args(args) != 0;
        if (changed && !caught) complain(s, "a gradient %s is not caught", plant_name[p]);
        if (!touched && caught) complain(s, "the right gradient is refused");
        applied[p] += changed;
        tensor_error_clear();
    }
}

static void check_op(const TensorOp *op)
{
    if (op->compose || !op->backward || (op->flags & (OP_NONDIFFERENTIABLE | OP_NO_GRADCHECK))) return;
    each_sample(op, check_planted);
}

static void test_every_plant_was_tried(void **state)
{
    (void)state;
    for (int p = 0; p < PLANTS; p++) assert_true(applied[p] > 20);
}

/* ---- an op of the user's --------------------------------------------------------------------- */

/* y = x^3, dy/dx = 3 x^2 */
static int cube_forward(OpCall *c)
{
    const double *x = op_input_f64(c, 0);
    double *y = op_output_f64(c, 0);
    for (int64_t i = 0; i < op_count(c, 0); i++) y[i] = x[i] * x[i] * x[i];
    return 0;
}

static int cube_backward(OpCall *c, Tensor *dy, Tensor **dx) /* made of ops: works to any order */
{
    Tensor *x = op_saved(c, 0);
    dx[0] = tensor_mul(dy, tensor_mul_scalar(tensor_mul(x, x), 3));
    return 0;
}

static const TensorOp cube = { .name = "cube",
                               .arity = 1,
                               .keep = KEEP_INPUT(0),
                               .samples = "3x4; 5; 0x2",
                               .shape = op_same_shape,
                               .forward = cube_forward,
                               .backward = cube_backward };

static void test_cube(void **state) /* cmocka */
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(3, 4), TENSOR_F64);
    assert_gradcheck(&cube, x);
    assert_gradgradcheck(&cube, x);
}

static void test_cube_through_public_calls(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(3, 4), TENSOR_F64);
    assert_int_equal(tensor_gradcheck(&cube, x), 0);
    assert_int_equal(tensor_gradgradcheck(&cube, x), 0);
    assert_int_equal(tensor_gradcheck(&cube, tensor_zeros(SHAPE(0, 2), TENSOR_F64)), 0);
    assert_int_equal(tensor_gradcheck(&cube, tensor_scalar(2, TENSOR_F64)), 0);
    assert_int_equal(tensor_gradcheck(&cube, tensor_transpose(x, 0, 1)), 0);
    assert_null(tensor_error());
    Tensor *y = tensor_apply(&cube, &x, 1, NULL);
    assert_tensor_close(y, tensor_mul(tensor_mul(x, x), x), 1e-15, 0);
}

/* ---- rows of the user's ---------------------------------------------------------------------- */

OP_UNARY(row_cube, "x^3", x *x *x, g *(3 * x * x), KEEP_X, -2, 2);
OP_UNARY(row_logistic, "1 / (1 + e^-x)", 1 / (1 + exp(-x)), g *(y *(1 - y)), KEEP_Y, -3, 3);
OP_UNARY(row_kink, "x above 0, else 2x", x > 0 ? x : 2 * x, x > 0 ? g : 2 * g, KEEP_X, .5, 2);
OP_BINARY(row_ratio, "a / (1 + b^2)", a / (1 + b * b), g / (1 + b * b), KEEP_B, -g *y * 2 * b / (1 + b * b),
          KEEP_B | KEEP_Y, -2, 2);

static void check_row(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS];
    for (int second = 0; second < 2; second++) {
        sample_inputs(s, TENSOR_F64, 3, x);
        GradcheckArgs args = tensor_gradcheck_defaults;
        args.op = s->op;
        args.inputs = TENSOR_LIST(x, s->n);
        args.rtol = RTOL;
        args.atol = second ? 2e-5 : ATOL;
        args.second = second;
        assert_gradcheck_args(args);
    }
}

static void test_rows(void **state)
{
    (void)state;
    each_sample(&row_cube, check_row);
    each_sample(&row_logistic, check_row);
    each_sample(&row_kink, check_row);
    each_sample(&row_ratio, check_row);
}

static void test_row_values(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
    for (int d = 0; d < 4; d++) {
        Tensor *x = tensor_requires_grad_(tensor_arange(-2, 2, .5, dtypes[d]), true);
        Tensor *y = tensor_apply(&row_cube, &x, 1, NULL);
        assert_tensor_close(y, tensor_mul(tensor_mul(x, x), x), 1e-6, 0);
        tensor_backward(tensor_sum(y));
        assert_tensor_close(tensor_grad(x), tensor_mul_scalar(tensor_mul(x, x), 3), 1e-6, 0);
    }
    Tensor *i = tensor_arange(0, 4, 1, TENSOR_I64);
    assert_int_equal(tensor_dtype(tensor_apply(&row_cube, &i, 1, NULL)), TENSOR_F32);
    assert_tensor_error(
        tensor_apply(&row_ratio,
                     ((Tensor *[]){ tensor_ones(SHAPE(3), TENSOR_F32), tensor_ones(SHAPE(4), TENSOR_F32) }),
                     2, NULL),
        TENSOR_ESHAPE);
}

/* ---- reports --------------------------------------------------------------------------------- */

/* x^3 with one element of the gradient wrong. */
static int one_wrong_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (cube_backward(c, dy, dx) || !dx[0]) return -1;
    Tensor *factor = tensor_ones_like(dx[0]);
    tensor_set(factor, DIMS(1, 2), 1. / 3);
    dx[0] = tensor_mul(dx[0], factor);
    return 0;
}

static const TensorOp one_wrong = { .name = "cube",
                                    .arity = 1,
                                    .keep = KEEP_INPUT(0),
                                    .shape = op_same_shape,
                                    .forward = cube_forward,
                                    .backward = one_wrong_backward };

static char *printed(const GradcheckReport *report)
{
    static char text[8192];
    FILE *file = tmpfile();
    assert_non_null(file);
    tensor_gradcheck_print(file, report);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static void test_report_names_the_element(void **state)
{
    (void)state;
    static GradcheckReport report;
    Tensor *x = tensor_full(SHAPE(3, 4), 1.5, TENSOR_F64);
    GradcheckArgs args = tensor_gradcheck_defaults;
    args.op = &one_wrong;
    args.inputs = TENSORS(x);
    args.report = &report;
    assert_int_equal(tensor_gradcheck_args(args), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    assert_non_null(strstr(tensor_error(), "1 of 12 elements wrong"));
    assert_non_null(strstr(tensor_error(), "input 1 [1, 2]"));
    tensor_error_clear();
    assert_false(report.ok);
    assert_int_equal(report.checked, 12);
    assert_int_equal(report.wrong, 1);
    assert_int_equal(report.count, 1);
    assert_int_equal(report.element[0].input_index, 6);
    assert_int_equal(report.element[0].output_index, 6);
    assert_string_equal(report.element[0].input_at, "[1, 2]");
    assert_string_equal(report.element[0].output_at, "[1, 2]");
    assert_true(fabs(report.element[0].analytic - 2.25) < 1e-12);
    assert_true(fabs(report.element[0].numeric - 6.75) < 1e-6);
    assert_true(report.worst > 100);
    const char *text = printed(&report);
    assert_non_null(strstr(text, "gradcheck cube: 1 of 12 elements wrong (atol 1e-05, rtol 0.001)\n"));
    assert_non_null(strstr(text, "    input 1 [1, 2]   analytic 2.25   numeric 6.75"));
    assert_non_null(strstr(text, "off by 4.5"));
}

static void test_report_of_success(void **state)
{
    (void)state;
    static GradcheckReport report;
    Tensor *x = tensor_randn(SHAPE(3, 4), TENSOR_F64);
    GradcheckArgs args = tensor_gradcheck_defaults;
    args.op = &cube;
    args.inputs = TENSORS(x);
    args.report = &report;
    assert_int_equal(tensor_gradcheck_args(args), 0);
    assert_true(report.ok && report.checked == 12 && report.wrong == 0 && report.worst < 1 &&
                report.what[0] == 0);
    assert_string_equal(printed(&report), "gradcheck cube: 12 elements right (atol 1e-05, rtol 0.001)\n");
}

/* Above max_elements only random directions are compared: they catch a single wrong entry too. */
static void test_directions(void **state)
{
    (void)state;
    static GradcheckReport report;
    Tensor *x = tensor_full(SHAPE(3, 4), 1.5, TENSOR_F64);
    GradcheckArgs args = tensor_gradcheck_defaults;
    args.op = &cube;
    args.inputs = TENSORS(x);
    args.max_elements = 1;
    args.report = &report;
    assert_int_equal(tensor_gradcheck_args(args), 0);
    assert_true(report.ok && report.checked == 4);
    args.op = &one_wrong;
    assert_int_equal(tensor_gradcheck_args(args), -1);
    assert_non_null(strstr(printed(&report), "along a random direction"));
    tensor_error_clear();
    assert_tensor_close(x, tensor_full(SHAPE(3, 4), 1.5, TENSOR_F64), 0, 0);
}

/* ---- what it refuses ------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(3), TENSOR_F64), *f32 = tensor_ones(SHAPE(3), TENSOR_F32);
    assert_status_error(tensor_gradcheck(&cube, f32), TENSOR_EDTYPE);
    assert_status_error(tensor_gradcheck(&cube, tensor_expand(tensor_ones(SHAPE(1), TENSOR_F64), SHAPE(3))),
                        TENSOR_EVALUE);
    assert_status_error(tensor_gradcheck(&cube, (Tensor *)NULL), TENSOR_ENULL);
    assert_status_error(tensor_gradcheck((const TensorOp *)NULL, x), TENSOR_EVALUE);
    assert_status_error(tensor_gradcheck_with(.op = &cube, .inputs = TENSOR_LIST(&x, 0)), TENSOR_EVALUE);
    assert_status_error(tensor_gradcheck_with(.op = &cube, .inputs = TENSOR_LIST(&x, 65)), TENSOR_EVALUE);
    assert_status_error(tensor_gradcheck_with(.op = &cube, .inputs = TENSOR_LIST(NULL, 1)), TENSOR_EVALUE);
    tensor_gradcheck_print(NULL, NULL);
}

/* A narrow input is fine where it is not checked. */
static void test_only_inputs_that_require_grad(void **state)
{
    (void)state;
    const TensorOp *mul = tensor_op_find("mul");
    Tensor *a = tensor_requires_grad_(tensor_randn(SHAPE(3), TENSOR_F64), true),
           *b = tensor_ones(SHAPE(3), TENSOR_F32);
    static GradcheckReport report;
    GradcheckArgs args = tensor_gradcheck_defaults;
    args.op = mul;
    args.inputs = TENSORS(a, b);
    args.report = &report;
    assert_gradcheck_args(args);
    tensor_gradcheck_args(args);
    assert_int_equal(report.checked, 3);
    assert_null(tensor_grad(a));
    assert_true(tensor_requires_grad(a) && tensor_is_leaf(a));
}

static int failing_forward(OpCall *c) { return op_fail(c, TENSOR_EUSER, "no luck today"); }
static const TensorOp failing = { .name = "failing",
                                  .arity = 1,
                                  .shape = op_same_shape,
                                  .forward = failing_forward,
                                  .backward = cube_backward };

static void test_a_failing_op(void **state)
{
    (void)state;
    static GradcheckReport report;
    Tensor *x = tensor_ones(SHAPE(3), TENSOR_F64);
    GradcheckArgs args = tensor_gradcheck_defaults;
    args.op = &failing;
    args.inputs = TENSORS(x);
    args.report = &report;
    assert_status_error(tensor_gradcheck_args(args), TENSOR_EUSER);
    assert_false(report.ok);
    assert_non_null(strstr(report.what, "no luck today"));
}

/* ---- backwards that are wrong in kind -------------------------------------------------------- */

static int calls;

static int wavering_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (cube_backward(c, dy, dx)) return -1;
    dx[0] = tensor_mul_scalar(dx[0], ++calls % 2 ? 1 : 1 + 1e-12);
    return dx[0] ? 0 : -1;
}

static int deaf_backward(OpCall *c, Tensor *dy, Tensor **dx) /* right for a cotangent of ones only */
{
    Tensor *x = op_saved(c, 0);
    (void)dy;
    dx[0] = tensor_mul_scalar(tensor_mul(x, x), 3);
    return dx[0] ? 0 : -1;
}

static int misshapen_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (cube_backward(c, dy, dx)) return -1;
    dx[0] = tensor_reshape(dx[0], SHAPE(4, 3));
    return dx[0] ? 0 : -1;
}

static int silent_backward(OpCall *c, Tensor *dy, Tensor **dx) /* no gradient at all */
{
    (void)c, (void)dy, (void)dx;
    return 0;
}

static void expect_caught(int (*backward)(OpCall *, Tensor *, Tensor **), TensorStatus code,
                          const char *words)
{
    TensorOp op = cube;
    op.backward = backward;
    Tensor *x = tensor_full(SHAPE(3, 4), 1.5, TENSOR_F64);
    assert_int_equal(tensor_gradcheck(&op, x), -1);
    assert_int_equal(tensor_error_code(), code);
    if (!strstr(tensor_error(), words)) fail_msg("\"%s\" says nothing of \"%s\"", tensor_error(), words);
    tensor_error_clear();
}

static void test_wrong_kinds(void **state)
{
    (void)state;
    expect_caught(wavering_backward, TENSOR_EVALUE, "twice");
    expect_caught(deaf_backward, TENSOR_EVALUE, "cotangent 0");
    expect_caught(misshapen_backward, TENSOR_ESHAPE, "shape");
    expect_caught(silent_backward, TENSOR_EVALUE, "12 of 12 elements wrong");
}

/* The gradient is right, the gradient's gradient is not: the factor 3 x is outside the graph. */
static int detached_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *x = tensor_detach(op_saved(c, 0));
    dx[0] = tensor_mul(dy, tensor_mul_scalar(tensor_mul(x, x), 3));
    return dx[0] ? 0 : -1;
}

static void test_wrong_second_order(void **state)
{
    (void)state;
    TensorOp op = cube;
    op.backward = detached_backward;
    Tensor *x = tensor_full(SHAPE(2, 2), 1.5, TENSOR_F64);
    assert_int_equal(tensor_gradcheck(&op, x), 0);
    assert_status_error(tensor_gradgradcheck(&op, x), TENSOR_EVALUE);
}

/* ---- several results, functions -------------------------------------------------------------- */

/* x -> x^2, -x, and the count of x as i64 */
static int trio_shape(OpCall *c)
{
    TensorShape shape = tensor_shape(op_input(c, 0));
    return op_set_output(c, 0, shape, TENSOR_F64) || op_set_output(c, 1, shape, TENSOR_F64) ||
           op_set_output(c, 2, SHAPE(), TENSOR_I64);
}

static int trio_forward(OpCall *c)
{
    const double *x = op_input_f64(c, 0);
    double *square = op_output_f64(c, 0), *minus = op_output_f64(c, 1), *count = op_output_f64(c, 2);
    for (int64_t i = 0; i < op_count(c, 0); i++) square[i] = x[i] * x[i], minus[i] = -x[i];
    if (count) *count = (double)op_count(c, 0);
    return 0;
}

static int trio_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = tensor_sub(tensor_mul_scalar(tensor_mul(dy, op_saved(c, 0)), 2), op_grad(c, 1));
    return dx[0] ? 0 : -1;
}

static int half_trio_backward(OpCall *c, Tensor *dy, Tensor **dx) /* forgets the second result */
{
    dx[0] = tensor_mul_scalar(tensor_mul(dy, op_saved(c, 0)), 2);
    return dx[0] ? 0 : -1;
}

static const TensorOp trio = { .name = "trio",
                               .arity = 1,
                               .outputs = 3,
                               .keep = KEEP_INPUT(0),
                               .shape = trio_shape,
                               .forward = trio_forward,
                               .backward = trio_backward };

static void test_several_results(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(3), TENSOR_F64);
    assert_gradcheck(&trio, x);
    assert_gradgradcheck(&trio, x);
    TensorOp half = trio;
    static GradcheckReport report;
    half.backward = half_trio_backward;
    assert_status_error(tensor_gradcheck_with(.op = &half, .inputs = TENSORS(x), .report = &report),
                        TENSOR_EVALUE);
    assert_int_equal(report.element[0].output, 1);
}

static Tensor *scaled_distance(Tensor **x, int n, void *ctx)
{
    assert_int_equal(n, 2);
    return tensor_mul_scalar(tensor_sum(tensor_square(tensor_sub(x[0], x[1]))), *(double *)ctx);
}

static void test_functions(void **state)
{
    (void)state;
    double factor = 3;
    Tensor *in[2] = { tensor_randn(SHAPE(3, 2), TENSOR_F64), tensor_randn(SHAPE(2), TENSOR_F64) };
    GradcheckArgs args = tensor_gradcheck_defaults;
    args.fn = scaled_distance;
    args.ctx = &factor;
    args.inputs = TENSOR_LIST(in, 2);
    assert_gradcheck_args(args);
    args.second = true;
    assert_gradcheck_args(args);
    args.op = &cube;
    assert_status_error(tensor_gradcheck_args(args), TENSOR_EVALUE);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t live;

static int open_scope(void **state)
{
    static TensorScope scope;
    live = tensor_live_count();
    scope = tensor_scope_open();
    *state = &scope;
    tensor_manual_seed(3);
    return 0;
}

static int close_scope(void **state)
{
    tensor_scope_close(*(TensorScope *)*state);
    return tensor_error() || tensor_live_count() != live;
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(test_cube),
        TEST(test_cube_through_public_calls),
        TEST(test_rows),
        TEST(test_row_values),
        TEST(test_report_names_the_element),
        TEST(test_report_of_success),
        TEST(test_directions),
        TEST(test_refusals),
        TEST(test_only_inputs_that_require_grad),
        TEST(test_a_failing_op),
        TEST(test_wrong_kinds),
        TEST(test_wrong_second_order),
        TEST(test_several_results),
        TEST(test_functions),
    };
    const struct CMUnitTest last[] = { cmocka_unit_test(test_every_plant_was_tried) };
    int failed = cmocka_run_group_tests_name("gradcheck", tests, NULL, NULL);
    failed += run_registry(argc, argv, "planted errors in every op", check_op);
    if (argc == 1) failed += cmocka_run_group_tests_name("planted errors", last, NULL, NULL);
    return failed;
}
