/* test_row_check.c - the checks of a row read its own parameters, and none that lies behind them. */
#include "op/elementwise/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

static int dtype_of(const char *row, const double *params)
{
    TensorScope scope = tensor_scope_open();
    const int dtype = row_dtype(tensor_op_find(row), row, tensor_ones(SHAPE(3), TENSOR_I64), NULL, params,
                                __builtin_return_address(0));
    tensor_scope_close(scope);
    return dtype;
}

static void what_lies_behind_is_not_read(void **state)
{
    (void)state;
    assert_int_equal(dtype_of("hardtanh", (double[]){ -1, 1, NAN }), TENSOR_I64);
    assert_int_equal(dtype_of("threshold", (double[]){ 0, 1, 1e30 }), TENSOR_I64);
    assert_int_equal(dtype_of("add_scalar", (double[]){ 1, 0.5 }), TENSOR_I64);
}

static void each_of_its_own_is_read(void **state)
{
    (void)state;
    assert_int_equal(dtype_of("hardtanh", (double[]){ -1, NAN }), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
    assert_int_equal(dtype_of("threshold", (double[]){ 0, 1e30 }), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
    assert_int_equal(dtype_of("add_scalar", (double[]){ 0.5 }), TENSOR_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_behind_is_not_read),
        cmocka_unit_test(each_of_its_own_is_read),
    };
    return cmocka_run_group_tests_name("checks of rows", tests, NULL, NULL);
}
