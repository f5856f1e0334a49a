/* test_values.c - values in and out, comparing, and writes in place that the graph learns of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad/autograd.h>
#include <tapegrad/ops.h>

static TensorScope scope;

static int open_scope(void **state)
{
    (void)state;
    tensor_error_clear();
    scope = tensor_scope_open();
    return 0;
}

static int close_scope(void **state)
{
    (void)state;
    tensor_scope_close(scope);
    return tensor_error() || tensor_live_count() != 0 ? -1 : 0;
}

static void expect_error(TensorStatus code)
{
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

static Tensor *floats(TensorShape shape, const double *values)
{
    return tensor_from_data(values, shape, TENSOR_F64);
}
#define F64(...) \
    floats(SHAPE((int64_t)(sizeof(double[]){ __VA_ARGS__ } / sizeof(double))), (double[]){ __VA_ARGS__ })

static void items(void **state)
{
    (void)state;
    static const double largest[TENSOR_DTYPES] = { 0x1.fffffep127, 1e300,      65504, 0x1.fep127,
                                                   0x1p62,         2147483647, 255,   1 };
    for (int d = 0; d < TENSOR_DTYPES; d++) {
        assert_true(tensor_item(tensor_scalar(largest[d], (TensorDtype)d)) == largest[d]);
        assert_true(tensor_item(tensor_full(SHAPE(1, 1), 1, (TensorDtype)d)) == 1);
        assert_int_equal(tensor_item_i64(tensor_scalar(1, (TensorDtype)d)), 1);
    }
    const int64_t odd = ((int64_t)1 << 60) + 1;
    assert_int_equal(tensor_item_i64(tensor_from_data(&odd, SHAPE(), TENSOR_I64)), odd);
    assert_int_equal(tensor_item_i64(tensor_scalar(-2.9, TENSOR_F32)), -2);
    assert_int_equal(tensor_item_i64(tensor_scalar((double)NAN, TENSOR_F32)), INT64_MIN);
    assert_true(isnan(tensor_item(tensor_zeros(SHAPE(2), TENSOR_F32))));
    expect_error(TENSOR_ESHAPE);
    assert_true(isnan(tensor_item(tensor_zeros(SHAPE(0), TENSOR_F32))));
    expect_error(TENSOR_ESHAPE);
    assert_int_equal(tensor_item_i64(tensor_zeros(SHAPE(2), TENSOR_I64)), 0);
    expect_error(TENSOR_ESHAPE);
    assert_true(isnan(tensor_item(NULL)));
    expect_error(TENSOR_ENULL);
}

static void get_and_set(void **state)
{
    (void)state;
    for (int d = 0; d < TENSOR_DTYPES; d++) {
        Tensor *x = tensor_zeros(SHAPE(2, 3), (TensorDtype)d), *t = tensor_transpose(x, 0, 1);
        uint32_t version = tensor_version(x);
        assert_int_equal(tensor_set(t, SHAPE(2, -2), 1), 0);
        assert_int_equal(tensor_version(x), version + 1);
        assert_true(tensor_get(x, SHAPE(0, 2)) == 1);
        assert_true(tensor_get(x, SHAPE(-2, -1)) == 1);
        assert_true(tensor_get(x, SHAPE(1, 2)) == 0);
    }
    Tensor *x = tensor_zeros(SHAPE(2, 3), TENSOR_F32);
    assert_int_equal(tensor_set(x, SHAPE(2, 0), 1), -1);
    expect_error(TENSOR_EINDEX);
    assert_true(isnan(tensor_get(x, SHAPE(0, -4))));
    expect_error(TENSOR_EINDEX);
    assert_true(isnan(tensor_get(x, SHAPE(0))));
    expect_error(TENSOR_ESHAPE);
    assert_int_equal(tensor_set(NULL, SHAPE(0), 1), -1);
    expect_error(TENSOR_ENULL);
    assert_int_equal(tensor_set(tensor_expand(tensor_scalar(1, TENSOR_F32), SHAPE(3)), SHAPE(0), 1), -1);
    expect_error(TENSOR_EVALUE);
    Tensor *scalar = tensor_scalar(1, TENSOR_F32);
    assert_int_equal(tensor_set(scalar, SHAPE(), 5), 0);
    assert_true(tensor_item(scalar) == 5);
}

static void copies(void **state)
{
    (void)state;
    float buffer[6], values[6] = { 1, 2, 3, 4, 5, 6 };
    Tensor *x = tensor_zeros(SHAPE(2, 3), TENSOR_F32), *t = tensor_transpose(x, 0, 1);
    assert_int_equal(tensor_copy_from(t, values, sizeof values), 0);
    assert_true(tensor_get(x, SHAPE(0, 1)) == 3);
    assert_int_equal(tensor_version(x), 1);
    assert_int_equal(tensor_copy_to(t, buffer, sizeof buffer), 0);
    assert_memory_equal(buffer, values, sizeof values);
    assert_int_equal(tensor_copy_to(x, buffer, sizeof buffer), 0);
    assert_memory_equal(buffer, ((float[]){ 1, 3, 5, 2, 4, 6 }), sizeof buffer);
    assert_int_equal(tensor_copy_from(x, values, sizeof values), 0);
    assert_memory_equal(tensor_data(x), values, sizeof values);
    assert_int_equal(tensor_copy_to(tensor_zeros(SHAPE(0, 3), TENSOR_F32), NULL, 0), 0);

    assert_int_equal(tensor_copy_to(x, buffer, sizeof buffer - 1), -1);
    expect_error(TENSOR_ESHAPE);
    assert_int_equal(tensor_copy_from(x, buffer, sizeof buffer + 4), -1);
    expect_error(TENSOR_ESHAPE);
    assert_int_equal(tensor_copy_from(x, NULL, sizeof buffer), -1);
    expect_error(TENSOR_ENULL);
    assert_int_equal(tensor_copy_to(NULL, buffer, sizeof buffer), -1);
    expect_error(TENSOR_ENULL);
}

static void writes_and_the_graph(void **state)
{
    (void)state;
    float ones[3] = { 1, 1, 1 };
    Tensor *w = tensor_requires_grad_(tensor_full(SHAPE(3), 2, TENSOR_F32), true);
    assert_int_equal(tensor_set(w, SHAPE(0), 1), -1);
    expect_error(TENSOR_EGRAD);
    assert_int_equal(tensor_copy_from(w, ones, sizeof ones), -1);
    expect_error(TENSOR_EGRAD);
    TENSOR_NO_GRAD { assert_int_equal(tensor_set(w, SHAPE(0), 4), 0); }
    assert_true(tensor_get(w, SHAPE(0)) == 4);

    Tensor *y = tensor_mul(w, tensor_full(SHAPE(3), 10, TENSOR_F32));
    assert_int_equal(tensor_set(y, SHAPE(1), 7), 0); /* this element no longer depends on w */
    assert_int_equal(tensor_backward(y, tensor_ones(SHAPE(3), TENSOR_F32)), 0);
    assert_true(tensor_equal(tensor_grad(w), tensor_from_data((float[]){ 10, 0, 10 }, SHAPE(3), TENSOR_F32)));
    Tensor *z = tensor_mul(w, w);
    assert_int_equal(tensor_copy_from(z, ones, sizeof ones), 0);
    assert_false(tensor_requires_grad(z));
}

static void equality(void **state)
{
    (void)state;
    for (int d = 0; d < TENSOR_DTYPES; d++) {
        Tensor *a = tensor_ones(SHAPE(3, 4), (TensorDtype)d), *b = tensor_ones(SHAPE(4, 3), (TensorDtype)d);
        assert_true(tensor_equal(a, tensor_transpose(b, 0, 1)));
        assert_false(tensor_equal(a, b));
        assert_int_equal(tensor_set(b, SHAPE(3, 2), 0), 0);
        assert_false(tensor_equal(a, tensor_transpose(b, 0, 1)));
        assert_false(tensor_equal(a, tensor_ones(SHAPE(3, 4), (TensorDtype)((d + 1) % TENSOR_DTYPES))));
        if (tensor_dtype_is_float((TensorDtype)d))
            assert_true(tensor_equal(tensor_scalar(-0.0, (TensorDtype)d), tensor_scalar(0, (TensorDtype)d)));
    }
    Tensor *nan = F64((double)NAN);
    assert_false(tensor_equal(nan, nan));
    assert_true(tensor_equal(tensor_zeros(SHAPE(0, 2), TENSOR_F32), tensor_zeros(SHAPE(0, 2), TENSOR_F32)));
    assert_false(tensor_equal(tensor_zeros(SHAPE(0, 2), TENSOR_F32), tensor_zeros(SHAPE(2, 0), TENSOR_F32)));
    assert_false(tensor_equal(nan, NULL));
    expect_error(TENSOR_ENULL);
}

static void closeness(void **state)
{
    (void)state;
    const double inf = (double)INFINITY, nan = (double)NAN;
    assert_true(tensor_allclose(F64(1, 2), F64(1.00001, 2), 1e-5, 1e-8, false));
    assert_false(tensor_allclose(F64(1, 2), F64(1.0001, 2), 1e-5, 1e-8, false));
    assert_true(tensor_allclose(F64(1, 2), F64(1.00001, 2))); /* PyTorch's defaults */
    assert_false(tensor_allclose(F64(1, 2), F64(1.0001, 2)));
    assert_true(tensor_allclose(F64(1, nan), F64(1.0001, nan), .rtol = 1e-3, .equal_nan = true));
    assert_true(tensor_allclose(F64(0.5), F64(1), 0.5, 0, false)); /* rtol is of b */
    assert_false(tensor_allclose(F64(1), F64(0.5), 0.5, 0, false));
    assert_true(tensor_allclose(F64(inf, -inf), F64(inf, -inf), 0, 0, false));
    assert_false(tensor_allclose(F64(inf), F64(-inf), 1, 1, false));
    assert_false(tensor_allclose(F64(1), F64(inf), 1, 1, false));
    assert_false(tensor_allclose(F64(nan), F64(nan), 1, 1, false));
    assert_true(tensor_allclose(F64(nan), F64(nan), 0, 0, true));
    assert_false(tensor_allclose(F64(nan), F64(1), 1, 1, true));
    assert_true(tensor_allclose(tensor_ones(SHAPE(2, 1, 3), TENSOR_F16), tensor_ones(SHAPE(4, 1), TENSOR_I64),
                                0, 0, false));
    assert_true(
        tensor_allclose(tensor_zeros(SHAPE(0), TENSOR_F32), tensor_ones(SHAPE(1), TENSOR_F32), 0, 0, false));
    assert_false(tensor_allclose(F64(1, 2), F64(1, 2, 3), 1, 1, false));
    expect_error(TENSOR_ESHAPE);
    assert_false(tensor_allclose(F64(1), F64(1), -1, 0, false));
    expect_error(TENSOR_EVALUE);
    assert_false(tensor_allclose(NULL, F64(1), 0, 0, false));
    expect_error(TENSOR_ENULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(items),    TEST(get_and_set), TEST(copies), TEST(writes_and_the_graph),
        TEST(equality), TEST(closeness),
    };
    return cmocka_run_group_tests_name("values", tests, NULL, NULL);
}
