/* test_lengths.c - what a row of ops.def gives for an element does not depend on how many there are: neither
 * its value nor its gradients, at any length from one element to some vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad.h>

enum { COUNT = 37 };

static const char *const names[] = {
#define UNARY(name, ...) #name,
#define UNARY1 UNARY
#define UNARY2 UNARY
#define BINARY UNARY
#define BINARY1 UNARY
#define COMPARE UNARY
#define PREDICATE UNARY
#include <tapegrad/ops.def>
};

/* The first n of the values, through the op: found[0] is y, the others are gradients. */
static void apply(const TensorOp *op, TensorDtype dtype, int64_t n, Tensor *found[3])
{
    double values[2][COUNT];
    Tensor *in[2];
    for (int k = 0; k < op->arity; k++) {
        for (int i = 0; i < COUNT; i++) values[k][i] = sin(7 * i + 3 * k + 1) * (i % 5 ? 1.5 : 40);
        in[k] = tensor_clone(tensor_to(tensor_from_data(values[k], SHAPE(n), TENSOR_F64), dtype));
        if (op->backward) assert_non_null(tensor_requires_grad_(in[k], true));
    }
    Tensor *y = tensor_apply(op, in, op->arity, NULL);
    assert_non_null(y);
    found[0] = tensor_to(tensor_detach(y), TENSOR_F64);
    if (!op->backward) return;
    assert_int_equal(tensor_backward(tensor_sum(y)), 0);
    for (int k = 0; k < op->arity; k++) found[1 + k] = tensor_to(tensor_grad(in[k]), TENSOR_F64);
}

static void compare(const char *name, int64_t n, Tensor *some, Tensor *all)
{
    assert_non_null(some);
    assert_non_null(all);
    const double *a = tensor_data(some), *b = tensor_data(all);
    for (int64_t i = 0; i < n; i++)
        if (isnan(b[i]) ? !isnan(a[i]) : a[i] != b[i] || signbit(a[i]) != signbit(b[i]))
            fail_msg("%s: element %lld of %lld is %.17g, of %d %.17g", name, (long long)i, (long long)n, a[i],
                     COUNT, b[i]);
}

static void test_elements_do_not_depend_on_the_length(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof names / sizeof *names; r++)
        for (int wide = 0; wide < 2; wide++) {
            const TensorDtype dtype = wide ? TENSOR_F64 : TENSOR_F32;
            const TensorOp *op = tensor_op_find(names[r]);
            TensorScope scope = tensor_scope_open();
            Tensor *all[3] = { NULL };
            assert_non_null(op);
            apply(op, dtype, COUNT, all);
            for (int64_t n = 1; n < COUNT; n++) {
                TensorScope inner = tensor_scope_open();
                Tensor *some[3] = { NULL };
                apply(op, dtype, n, some);
                for (int k = 0; k < 3 && all[k]; k++) compare(names[r], n, some[k], all[k]);
                tensor_scope_close(inner);
            }
            tensor_scope_close(scope);
        }
}

/* One value for a line, on either side, beside the same values written out: numbers, zeros of both signs,
 * infinities and NaN, in lines that are short, long, and all there is. */
static void test_one_value_a_line(void **state)
{
    (void)state;
    static const char *const rows[] = { "add", "sub", "mul", "div", "pow" };
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_I64 };
    static const double odd[] = { 0, -0.0, 1. / 3, -7.25, INFINITY, -INFINITY, NAN, 1e-7 };
    static const int64_t shapes[][2] = { { 8, 2 },   { 8, 3 },   { 8, 7 },  { 8, 50 },
                                         { 8, 127 }, { 8, 700 }, { 1, 700 } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                const TensorOp *op = tensor_op_find(rows[r]);
                const bool real = tensor_dtype_is_float(dtypes[d]);
                const int64_t lines = shapes[s][0], length = shapes[s][1];
                if (!real && strcmp(rows[r], "div") == 0) continue;
                TensorScope scope = tensor_scope_open();
                Tensor *one = tensor_to(tensor_from_data(real ? odd : (double[]){ 0, 1, 2, 3, 4, 5, 6, 7 },
                                                         SHAPE(lines, 1), TENSOR_F64),
                                        dtypes[d]),
                       *all = tensor_contiguous(tensor_expand(one, SHAPE(lines, length))),
                       *x = tensor_to(tensor_uniform_(tensor_empty(SHAPE(lines, length), TENSOR_F64), 1, 9),
                                      dtypes[d]);
                for (int swap = 0; swap < 2; swap++) {
                    Tensor *y = tensor_apply(op, swap ? (Tensor *[]){ x, one } : (Tensor *[]){ one, x }, 2,
                                             NULL),
                           *z = tensor_apply(op, swap ? (Tensor *[]){ x, all } : (Tensor *[]){ all, x }, 2,
                                             NULL);
                    assert_non_null(y);
                    assert_non_null(z);
                    assert_memory_equal(tensor_data(y), tensor_data(z),
                                        (size_t)(lines * length) * tensor_dtype_size(dtypes[d]));
                }
                tensor_scope_close(scope);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements_do_not_depend_on_the_length),
        cmocka_unit_test(test_one_value_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
