/* test_own_rows.c - rows of the program's own on a device: their formulas are compiled for it at run time, or
 * the host computes them.  On the device of TAPEGRAD_TEST_DEVICE, beside the CPU. */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include "emulator.h"
#include "samples.h"

OP_UNARY(own_cube, "x^3", x *x *x, 3 * x * x * g, KEEP_X, -2, 2);
OP_UNARY(own_tanh, "tanh(x)", tanh(x), g *(1 - y * y), KEEP_Y, -2, 2);
OP_UNARY1(own_scale, "c x", c, 2, c *x, g *c, KEEP_NONE, -2, 2);
OP_UNARY2(own_line, "a x + b", a, 2, b, M_PI / 3, a *x + b, g *a, KEEP_NONE, -2, 2);
OP_BINARY(own_quotient, "a / (1 + b^2)", a / (1 + b * b), g / (1 + b * b), KEEP_B,
          -2 * g * a * b / ((1 + b * b) * (1 + b * b)), KEEP_A | KEEP_B, -2, 2);
OP_BINARY1(own_huber, "Huber's of a - b", d, 1,
           fabs(a - b) < d ? (a - b) * (a - b) / 2 : d * (fabs(a - b) - d / 2),
           g *(fabs(a - b) < d ? a - b : d * ((a > b) - (a < b))), KEEP_A | KEEP_B,
           -g *(fabs(a - b) < d ? a - b : d * ((a > b) - (a < b))), KEEP_A | KEEP_B, -2, 2);
OP_UNARY(own_lowest, "max(x, -inf) pi", fmax(x, -INFINITY) * M_PI, g * 3.14159265358979, KEEP_NONE, -2, 2);

static const TensorOp *const own[] = { &own_cube,     &own_tanh,  &own_scale, &own_line,
                                       &own_quotient, &own_huber, &own_lowest };

static Tensor *pattern(TensorShape shape, TensorDtype dtype, double phase, const char *device)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++) n *= shape.dim[i];
    Tensor *x = tensor_sin(tensor_add_scalar(tensor_arange(0, (double)n, 1, TENSOR_F64), phase));
    return tensor_to_device(tensor_to(tensor_reshape(x, shape), dtype), device);
}

/* How operands lie: dense, off 16 bytes, transposed, broadcast. */
enum { WAYS = 4 };
static Tensor *laid_out(int layout, TensorDtype dtype, int which, const char *device)
{
    switch (layout) {
    case 0: return pattern(SHAPE(5, 41), dtype, which, device);
    case 1: return tensor_narrow(pattern(SHAPE(206), dtype, which, device), 0, 1, 205);
    case 2: return tensor_transpose(pattern(SHAPE(41, 5), dtype, which, device), 0, 1);
    default: return pattern(which ? SHAPE(41) : SHAPE(5, 1), dtype, which, device);
    }
}

/* The result and the gradients, on the CPU in f64. */
static void run(const TensorOp *op, int layout, TensorDtype dtype, const char *device, Tensor *to[3])
{
    Tensor *x[2] = { NULL, NULL };
    for (int i = 0; i < op->arity; i++)
        x[i] = tensor_requires_grad_(laid_out(layout, dtype, i, device), true);
    Tensor *y = tensor_apply(op, x, op->arity, NULL);
    assert_non_null(y);
    assert_string_equal(tensor_device(y), device);
    Tensor *v = pattern(tensor_shape(y), dtype, 2, device), *dx[2];
    assert_int_equal(
        tensor_gradients_many(TENSORS(y), TENSOR_LIST(x, op->arity), dx, .grad_outputs = TENSORS(v)), 0);
    to[0] = tensor_to(tensor_to_device(y, "cpu"), TENSOR_F64);
    for (int i = 0; i < op->arity; i++) {
        assert_string_equal(tensor_device(dx[i]), device);
        to[1 + i] = tensor_to(tensor_to_device(dx[i], "cpu"), TENSOR_F64);
    }
}

static void on_the_device(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
    static const double bound[] = { 1e-6, 1e-14, 2e-3, 2e-2 };
    const int64_t before = tensor_host_fallbacks();
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        for (int d = 0; d < 4; d++)
            for (int layout = 0; layout < WAYS; layout++) {
                if (d > 1 && k % 2 == 0) continue; /* each compiles for a while */
                TensorScope scope = tensor_scope_open();
                Tensor *here[3], *there[3];
                run(own[k], layout, dtypes[d], "cpu", here);
                run(own[k], layout, dtypes[d], test_device(), there);
                for (int i = 0; i < 1 + own[k]->arity; i++)
                    assert_tensor_close(there[i], here[i], bound[d], bound[d]);
                tensor_scope_close(scope);
            }
    assert_int_equal(tensor_host_fallbacks(), before);
}

/* In place, of no elements, and gradients of gradients. */
static void as_any_op(void **state)
{
    (void)state;
    const int64_t before = tensor_host_fallbacks();
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_full(SHAPE(9), 3, TENSOR_F32), *z = tensor_to_device(x, test_device());
    assert_ptr_equal(tensor_apply_(&own_line, &z, 1, (double[]){ 4, .5 }), z);
    assert_true(tensor_item(tensor_amin(z)) == 12.5 && tensor_item(tensor_amax(z)) == 12.5);
    Tensor *none = tensor_to_device(tensor_zeros(SHAPE(0, 3), TENSOR_F32), test_device());
    assert_int_equal(tensor_numel(tensor_apply(&own_cube, &none, 1, NULL)), 0);
    Tensor *w =
        tensor_requires_grad_(tensor_to_device(tensor_full(SHAPE(1), 2, TENSOR_F64), test_device()), true);
    Tensor *dw = tensor_gradients(tensor_apply(&own_cube, &w, 1, NULL), w, .create_graph = true);
    assert_true(tensor_item(dw) == 12 && tensor_item(tensor_gradients(dw, w)) == 12);
    tensor_scope_close(scope);
    assert_int_equal(tensor_host_fallbacks(), before);
}

/* ---- what does not compile ------------------------------------------------------------------- */

static double doubled(double x) { return 2 * x; } /* the device has none */
OP_UNARY(own_doubled, "2 x", doubled(x), 2 * g, KEEP_NONE, -2, 2);

/* What is written to stderr meanwhile. */
static void listen(FILE **file, int *was)
{
    fflush(stderr);
    *file = tmpfile(), *was = dup(2);
    assert_true(*file && *was >= 0 && dup2(fileno(*file), 2) >= 0);
}
static void heard(FILE *file, int was, char *text, size_t size)
{
    fflush(stderr);
    dup2(was, 2), close(was);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

static int times(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++) n++;
    return n;
}

/* The host computes it, each time; why is told once, with the compiler's own words. */
static int by_the_host(const char *why)
{
    char said[8192];
    FILE *file;
    int was;
    const int64_t before = tensor_host_fallbacks();
    Tensor *x =
        tensor_requires_grad_(tensor_to_device(tensor_full(SHAPE(3), 4, TENSOR_F32), test_device()), true);
    listen(&file, &was);
    bool right = true;
    for (int again = 0; again < 2; again++) {
        Tensor *y = tensor_apply(&own_doubled, &x, 1, NULL);
        right = right && y && tensor_item(tensor_sum(y)) == 24 && !strcmp(tensor_device(y), test_device());
        Tensor *dx = y ? tensor_gradients(tensor_sum(y), x) : NULL;
        right = right && dx && tensor_item(tensor_sum(dx)) == 6;
    }
    heard(file, was, said, sizeof said);
    right = right && tensor_host_fallbacks() == before + 4 &&
            times(said, "the host computes own_doubled") == 1 && times(said, why) > 0;
    if (!right) fprintf(stderr, "%s\n%s\n", said, tensor_error());
    return right ? 0 : 1;
}

static void refused_by_the_compiler(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    assert_int_equal(by_the_host("\"doubled\""), 0);
    tensor_scope_close(scope);
}

static int without_a_library(void) { return by_the_host("a formula of the program's needs lib"); }

static void without_nvrtc(void **state)
{
    (void)state;
    static const char *const library[] = { "libnvrtc.so", "libcuda.so" };
    if (!is_emulated()) return;
    for (int i = 0; i < 2; i++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            setenv("CUEMU_WITHOUT", library[i], 1);
            execl("/proc/self/exe", "test_own_rows", "without", (char *)NULL);
        }
        int status = -1;
        assert_true(child > 0 && waitpid(child, &status, 0) == child);
        assert_int_equal(status, 0);
    }
}

/* ---- the table's formulas -------------------------------------------------------------------- */

/* Does it call functions of C's alone?  The rest of what ops.def calls is the library's own. */
static bool of_c_alone(const char *formula)
{
    static const char *const function[] = { "exp",   "exp2",  "expm1", "log",      "log2",  "log10", "log1p",
                                            "sin",   "cos",   "tan",   "asin",     "acos",  "atan",  "sinh",
                                            "cosh",  "tanh",  "asinh", "acosh",    "atanh", "erf",   "erfc",
                                            "sqrt",  "fabs",  "floor", "ceil",     "rint",  "trunc", "pow",
                                            "atan2", "hypot", "fmod",  "copysign", "lgamma" };
    for (const char *p = formula; p && *p;) {
        const char *start = p;
        while (isalnum((unsigned char)*p) || *p == '_') p++;
        const size_t n = (size_t)(p - start);
        bool known = n == 0 || *p != '(' || isdigit((unsigned char)*start);
        for (size_t i = 0; i < sizeof function / sizeof *function && !known; i++)
            known = strlen(function[i]) == n && !strncmp(function[i], start, n);
        if (!known) return false;
        if (n == 0) p++;
    }
    return true;
}

static void rows_of_the_table(void **state)
{
    (void)state;
    int rows = 0;
    for (int i = 0; i < tensor_op_count(); i++) {
        TensorOp op = *tensor_op_at(i);
        if (!op.row || op.row->to_bool || op.row->types > ROW_REALS || op.row->types == ROW_INTEGERS)
            continue;
        OpRow row = *op.row;
        const int64_t before = tensor_host_fallbacks();
        if (!of_c_alone(row.formula) || !of_c_alone(row.gradient[0]) || !of_c_alone(row.gradient[1]))
            continue;
        if (!in_shard(rows++)) continue;
        TensorScope scope = tensor_scope_open();
        Tensor *x[2], *want, *got;
        for (int k = 0; k < 2; k++) {
            Tensor *u = tensor_add_scalar(pattern(SHAPE(37), TENSOR_F64, k, "cpu"), 1);
            u = tensor_add_scalar(tensor_mul_scalar(u, (row.hi - row.lo) / 2), row.lo);
            x[k] = tensor_to_device(tensor_to(u, TENSOR_F32), test_device());
        }
        want = tensor_apply(&op, x, op.arity, NULL);
        row.id = -1, op.row = &row;
        row.special = NULL;
        got = tensor_apply(&op, x, op.arity, NULL);
        if (!got) fail_msg("%s: %s", op.name, tensor_error());
        assert_tensor_close(got, want, 1e-6, 1e-6);
        assert_int_equal(tensor_host_fallbacks(), before);
        tensor_scope_close(scope);
    }
    assert_true(rows > 60);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_device),           cmocka_unit_test(as_any_op),
        cmocka_unit_test(refused_by_the_compiler), cmocka_unit_test(without_nvrtc),
        cmocka_unit_test(rows_of_the_table),
    };
    if (!test_device_opens()) return 1;
    if (argc == 2 && strcmp(argv[1], "without") == 0) return without_a_library();
    return cmocka_run_group_tests_name("rows of the program's own", tests, NULL, NULL);
}
