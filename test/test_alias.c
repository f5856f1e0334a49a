/* test_alias.c - PyTorch's other names are the ops that they stand for (ops_alias.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tapegrad.h>

static void same(Tensor *a, Tensor *b)
{
    assert_non_null(a);
    assert_true(tensor_dtype(a) == tensor_dtype(b) && tensor_equal(a, b));
}

static void test_elementwise(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3, 4), TENSOR_F32), *y = tensor_rand(SHAPE(4), TENSOR_F32), *more = tensor_add_scalar(x, 1);
    same(tensor_absolute(x), tensor_abs(x));
    same(tensor_arccos(x), tensor_acos(x));
    same(tensor_arccosh(more), tensor_acosh(more));
    same(tensor_arcsin(x), tensor_asin(x));
    same(tensor_arcsinh(x), tensor_asinh(x));
    same(tensor_arctan(x), tensor_atan(x));
    same(tensor_arctan2(x, y), tensor_atan2(x, y));
    same(tensor_arctanh(x), tensor_atanh(x));
    same(tensor_clip(x, .2, .7), tensor_clamp(x, .2, .7));
    same(tensor_clip_(tensor_clone(x), .2, .7), tensor_clamp(x, .2, .7));
    same(tensor_divide(x, y), tensor_div(x, y));
    same(tensor_true_divide(x, y), tensor_div(x, y));
    same(tensor_expit(x), tensor_sigmoid(x));
    same(tensor_fix(more), tensor_trunc(more));
    same(tensor_gammaln(more), tensor_lgamma(more));
    same(tensor_log_sigmoid(x), tensor_logsigmoid(x));
    same(tensor_multiply(x, y), tensor_mul(x, y));
    same(tensor_negative(x), tensor_neg(x));
    same(tensor_psi(more), tensor_digamma(more));
    same(tensor_rsub(x, y), tensor_sub(y, x));
    same(tensor_subtract(x, y), tensor_sub(x, y));
    same(tensor_greater(x, y), tensor_gt(x, y));
    same(tensor_greater_equal(x, y), tensor_ge(x, y));
    same(tensor_less(x, y), tensor_lt(x, y));
    same(tensor_less_equal(x, y), tensor_le(x, y));
    same(tensor_not_equal(x, y), tensor_ne(x, y));
}

static void test_shapes_and_products(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3, 4), TENSOR_F32), *part[4], *again[4];
    same(tensor_adjoint(x), tensor_mT(x));
    same(tensor_argwhere(x), tensor_nonzero(x));
    same(tensor_concat(TENSORS(x, x), 1), tensor_cat(TENSORS(x, x), 1));
    same(tensor_concatenate(TENSORS(x, x), .dim = 1), tensor_cat(TENSORS(x, x), 1));
    same(tensor_moveaxis(x, 0, 1), tensor_movedim(x, 0, 1));
    same(tensor_swapaxes(x, 0, 1), tensor_transpose(x, 0, 1));
    same(tensor_swapdims(x, 0, 1), tensor_transpose(x, 0, 1));
    same(tensor_row_stack(TENSORS(x, x)), tensor_vstack(TENSORS(x, x)));
    same(tensor_fliplr(x), tensor_flip(x, DIMS(1)));
    same(tensor_flipud(x), tensor_flip(x, DIMS(0)));
    assert_int_equal(tensor_split_with_sizes(x, DIMS(1, 3), 1, part), tensor_split_sizes(x, DIMS(1, 3), 1, again));
    same(part[1], again[1]);
    same(tensor_ger(tensor_select(x, 1, 0), tensor_select(x, 0, 0)), tensor_outer(tensor_select(x, 1, 0), tensor_select(x, 0, 0)));
    same(tensor_pinverse(x), tensor_pinv(x));
    same(tensor_trapz(x), tensor_trapezoid(x));
    assert_int_equal(tensor_dim(x), 2);
    assert_int_equal(tensor_nelement(x), 12);
    assert_int_equal(tensor_element_size(x), 4);
}

static void test_casts(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3), TENSOR_F32);
    assert_int_equal(tensor_dtype(tensor_double(x)), TENSOR_F64);
    assert_int_equal(tensor_dtype(tensor_float(tensor_double(x))), TENSOR_F32);
    assert_int_equal(tensor_dtype(tensor_half(x)), TENSOR_F16);
    assert_int_equal(tensor_dtype(tensor_bfloat16(x)), TENSOR_BF16);
    assert_int_equal(tensor_dtype(tensor_long(x)), TENSOR_I64);
    assert_int_equal(tensor_dtype(tensor_int(x)), TENSOR_I32);
    assert_int_equal(tensor_dtype(tensor_byte(x)), TENSOR_U8);
    assert_int_equal(tensor_dtype(tensor_bool(x)), TENSOR_BOOL);
    assert_int_equal(tensor_dtype(tensor_type_as(x, tensor_long(x))), TENSOR_I64);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_elementwise), cmocka_unit_test(test_shapes_and_products),
                                        cmocka_unit_test(test_casts) };
    TensorScope scope = tensor_scope_open();
    int failed = cmocka_run_group_tests_name("other names", tests, NULL, NULL);
    if (tensor_error()) print_error("%s\n", tensor_error());
    tensor_scope_close(scope);
    return failed;
}
