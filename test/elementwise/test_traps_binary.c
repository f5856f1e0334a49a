/* test_traps_binary.c - where gradients of functions of two and three operands go wrong, and the functions
 * whose options are C code: one test for each trap of the checklist. */
#include "traps_elementwise.h"

/* ---- binary and ternary ---------------------------------------------------------------------- */

TEST(test_one_tensor_in_both_slots)
{
    BEGIN;
    Tensor *x = leaf(LIST(3)), *y = tensor_mul(x, x), *z = tensor_add(x, x);
    assert_int_equal(tensor_backward(y, tensor_ones_like(y)), 0);
    expect(tensor_grad(x), LIST(6));
    assert_int_equal(tensor_backward(z, tensor_ones_like(z)), 0);
    expect(tensor_grad(x), LIST(8));
    END;
}

TEST(test_add_hands_one_gradient_to_two_consumers)
{
    BEGIN;
    Tensor *a = leaf(LIST(1)), *b = leaf(LIST(2)), *y = tensor_add(a, tensor_mul_scalar(b, 1)),
           *z = tensor_add(y, a);
    assert_int_equal(tensor_backward(z, tensor_ones_like(z)), 0);
    expect(tensor_grad(a), LIST(2));
    expect(tensor_grad(b), LIST(1));
    END;
}

TEST(test_div_gradient_does_not_overflow)
{
    (void)state;
    binary(tensor_div, LIST(1e200), LIST(1e200), LIST(1), LIST(1e-200), LIST(-1e-200));
    binary(tensor_floor_divide, LIST(-7), LIST(2), LIST(-4), LIST(0), LIST(0));
    binary(tensor_trunc_divide, LIST(-7), LIST(2), LIST(-3), LIST(0), LIST(0));
}

TEST(test_pow_gradients_at_zero)
{
    (void)state;
    binary(tensor_pow, LIST(0, 0, 2), LIST(0, 2, 0), LIST(1, 0, 1), LIST(0, 0, 0), LIST(0, 0, M_LN2));
}

TEST(test_atan2_of_subnormal_numbers)
{
    (void)state;
    const double y[] = { 0x1p-1074, 0x3p-1074, 1e-320, 0x1p-1030, -1e-310, 0x1p-1021 },
                 x[] = { 0x1p-1074, 0x5p-1074, 2e-320, -0x3p-1032, 1e-309, 0x3p-1022 };
    enum { N = sizeof x / sizeof *x };
    double got[N];
    Tensor *r =
        tensor_atan2(tensor_from_data(y, SHAPE(N), TENSOR_F64), tensor_from_data(x, SHAPE(N), TENSOR_F64));
    assert_int_equal(tensor_copy_to(r, got, sizeof got), 0);
    for (int i = 0; i < N; i++) assert_true(fabs(got[i] - atan2(y[i], x[i])) <= 1e-15);
}

TEST(test_atan2_at_the_origin_and_far)
{
    (void)state;
    binary(tensor_atan2, LIST(0, 0, 1e200), LIST(0, -1, 1e200), LIST(0, M_PI, M_PI / 4), LIST(0, -1, 5e-201),
           LIST(0, 0, -5e-201));
}

TEST(test_extremes_share_ties_and_treat_nan_each_its_way)
{
    (void)state;
    binary(tensor_maximum, LIST(1, 2), LIST(1, NOT), LIST(1, NOT), LIST(.5, 1), LIST(.5, 1));
    binary(tensor_fmax, LIST(1, 2, NOT), LIST(1, NOT, 3), LIST(1, 2, 3), LIST(.5, 1, 0), LIST(.5, 0, 1));
    binary(tensor_fmin, LIST(1, 2, NOT), LIST(1, NOT, 3), LIST(1, 2, 3), LIST(.5, 1, 0), LIST(.5, 0, 1));
}

TEST(test_fmod_and_remainder_signs)
{
    (void)state;
    binary(tensor_fmod, LIST(-7, 7), LIST(3, -3), LIST(-1, 1), LIST(1, 1), LIST(2, 2));
    binary(tensor_remainder, LIST(-7, 7), LIST(3, -3), LIST(2, -2), LIST(1, 1), LIST(3, 3));
}

TEST(test_integer_division_by_zero_is_refused)
{
    BEGIN;
    Tensor *a = tensor_full(SHAPE(2), -7, TENSOR_I32), *zero = tensor_zeros(SHAPE(2), TENSOR_I32),
           *x = tensor_full(SHAPE(1), -0x1p31, TENSOR_I32);
    refused(tensor_remainder(a, zero), TENSOR_EVALUE);
    refused(tensor_fmod_(a, zero), TENSOR_EVALUE);
    refused(tensor_floor_divide_scalar(a, 0), TENSOR_EVALUE);
    assert_int_equal(tensor_numel(tensor_fmod_scalar(tensor_zeros(SHAPE(0, 2), TENSOR_I32), 0)), 0);
    assert_null(tensor_error());
    expect(tensor_div_rounding(a, tensor_full(SHAPE(1), 2, TENSOR_I32), TENSOR_FLOOR), LIST(-4, -4));
    expect(tensor_div_rounding(a, tensor_full(SHAPE(1), 2, TENSOR_I32), TENSOR_TRUNC), LIST(-3, -3));
    expect(tensor_floor_divide_scalar(x, -1), LIST(-0x1p31)); /* modulo 2^32 */
    expect(tensor_remainder_scalar(x, -1), LIST(0));
    END;
}

TEST(test_hypot_does_not_overflow)
{
    (void)state;
    binary(tensor_hypot, LIST(3e200), LIST(4e200), LIST(5e200), LIST(.6), LIST(.8));
}

TEST(test_logaddexp_of_infinities)
{
    (void)state;
    binary(tensor_logaddexp, LIST(-INF, INF, 0), LIST(-INF, 1, 0), LIST(-INF, INF, M_LN2), LIST(.5, 1, .5),
           LIST(.5, 0, .5));
    binary(tensor_logaddexp2, LIST(-INF, 1000), LIST(-INF, 1000), LIST(-INF, 1001), LIST(.5, .5),
           LIST(.5, .5));
}

TEST(test_xlogy_is_0_at_0)
{
    (void)state;
    binary(tensor_xlogy, LIST(0, 0, 2), LIST(0, 2, 1), LIST(0, 0, 0), LIST(0, M_LN2, 0), LIST(NOT, 0, 2));
    binary(tensor_xlog1py, LIST(0, 2), LIST(-1, 0), LIST(0, 0), LIST(0, 0), LIST(NOT, 2));
}

TEST(test_copysign_looks_at_the_sign_of_zero)
{
    (void)state;
    binary(tensor_copysign, LIST(2, 2, -3, 0), LIST(-0., 0, 1, -1), LIST(-2, 2, 3, -0.), LIST(-1, 1, -1, 0),
           LIST(0, 0, 0, 0));
}

/* The gradient, summed, of the gradient of y at x for the cotangent g, as a function of z. */
static void second(Tensor *y, Tensor *x, Tensor *g, Tensor *z, const double *want, int n)
{
    Tensor *dx = tensor_gradients(y, x, g, .create_graph = true);
    expect(tensor_gradients(dx, z, tensor_ones_like(dx), .retain_graph = true, .allow_unused = true,
                            .materialize_grads = true),
           want, n);
}

TEST(test_second_derivatives_of_equal_operands_of_logaddexp)
{
    BEGIN;
    Tensor *a = leaf(LIST(2, -INF)), *b = leaf(LIST(2, -INF)), *g = leaf(LIST(1, 1)),
           *y = tensor_logaddexp(a, b), *y2 = tensor_logaddexp2(a, b);
    second(y, a, g, a, LIST(.25, 0));
    second(y, a, g, b, LIST(-.25, 0));
    second(y, b, g, g, LIST(.5, .5));
    second(y2, b, g, b, LIST(M_LN2 / 4, 0));
    second(y2, a, g, g, LIST(.5, .5));
    END;
}

TEST(test_second_derivatives_where_the_first_is_zero_by_definition)
{
    BEGIN;
    Tensor *o = leaf(LIST(0)), *p = leaf(LIST(0)), *two = leaf(LIST(2)), *g = leaf(LIST(1));
    second(tensor_pow(o, two), two, g, g, LIST(0));
    second(tensor_atan2(o, p), o, g, g, LIST(0));
    second(tensor_atan2(o, p), p, g, g, LIST(0));
    second(tensor_copysign(o, two), o, g, g, LIST(0));
    second(tensor_fmod(two, o), o, g, o, LIST(0));
    second(tensor_elu(o, 1), o, g, o, LIST(0)); /* the curvature of its right side, as in PyTorch */
    second(tensor_celu(o, .5), o, g, o, LIST(0));
    second(tensor_selu(o), o, g, o, LIST(0));
    END;
}

TEST(test_lerp_with_a_tensor_as_weight)
{
    BEGIN;
    Tensor *a = leaf(LIST(1, 2)), *b = leaf(LIST(3, 6)), *w = leaf(LIST(.5)),
           *y = tensor_lerp_tensor(a, b, w);
    expect(y, LIST(2, 4));
    assert_int_equal(tensor_backward(y, tensor_ones_like(y)), 0);
    expect(tensor_grad(w), LIST(6));
    expect(tensor_grad(a), LIST(.5, .5));
    END;
}

TEST(test_addcmul_computes_in_the_dtype_of_all_three)
{
    BEGIN;
    Tensor *x = tensor_ones(SHAPE(1), TENSOR_I64), *a = tensor_full(SHAPE(1), 200, TENSOR_U8),
           *h = tensor_full(SHAPE(1), 1.0625, TENSOR_BF16);
    expect(tensor_addcmul(x, a, a), LIST(40001));
    expect(tensor_addcmul(x, a, a, .value = 2), LIST(80001));
    expect(tensor_addcmul(tensor_zeros(SHAPE(1), TENSOR_F64), h, h, 1), LIST(1.0625 * 1.0625));
    END;
}

TEST(test_clamp_tensor_bounds_get_the_gradient_beyond_them_alone)
{
    BEGIN;
    Tensor *x = leaf(LIST(0, 1, 1.5, 2, 3)), *low = leaf(LIST(1, 1, 1, 1, 4)),
           *high = leaf(LIST(2, 2, 2, 2, 2));
    Tensor *y = tensor_clamp_tensor(x, .min = low, .max = high);
    expect(y, LIST(1, 1, 1.5, 2, 2));
    assert_int_equal(tensor_backward(y, tensor_ones_like(y)), 0);
    expect(tensor_grad(x), LIST(0, 1, 1, 1, 0));
    expect(tensor_grad(low), LIST(1, 0, 0, 0, 0));
    expect(tensor_grad(high), LIST(0, 0, 0, 0, 1));
    expect(tensor_clamp_tensor(x, .max = leaf(LIST(1))), LIST(0, 1, 1, 1, 1));
    refused(tensor_clamp_tensor(x), TENSOR_EVALUE);
    END;
}

TEST(test_comparisons_with_nan_are_false)
{
    BEGIN;
    Tensor *x = leaf(LIST(NOT, 1)), *y = leaf(LIST(NOT, 1));
    expect(tensor_eq(x, y), LIST(0, 1));
    expect(tensor_ne(x, y), LIST(1, 0));
    expect(tensor_le(x, y), LIST(0, 1));
    assert_int_equal(tensor_dtype(tensor_lt_scalar(x, 2)), TENSOR_BOOL);
    expect(tensor_isclose(x, y), LIST(0, 1));
    expect(tensor_isclose(x, y, .equal_nan = true), LIST(1, 1));
    expect(tensor_isclose(leaf(LIST(INF, INF)), leaf(LIST(INF, -INF)), .rtol = 1), LIST(1, 0));
    END;
}

TEST(test_bits_of_integers_and_bools)
{
    BEGIN;
    Tensor *t = tensor_ones(SHAPE(1), TENSOR_BOOL), *x = tensor_full(SHAPE(1), -5, TENSOR_I32),
           *u = tensor_full(SHAPE(1), 200, TENSOR_U8);
    expect(tensor_bitwise_not(t), LIST(0));
    expect(tensor_bitwise_not(u), LIST(55));
    expect(tensor_bitwise_xor(t, t), LIST(0));
    expect(tensor_bitwise_right_shift(x, tensor_full(SHAPE(3), 40, TENSOR_I32)), LIST(-1, -1, -1));
    expect(tensor_bitwise_left_shift(x, tensor_full(SHAPE(1), 32, TENSOR_I32)), LIST(0));
    refused(tensor_bitwise_left_shift(t, t), TENSOR_EDTYPE);
    refused(tensor_bitwise_and(t, leaf(LIST(1))), TENSOR_EDTYPE);
    END;
}

/* ---- the rest of the API --------------------------------------------------------------------- */

TEST(test_functions_of_floats_refuse_integers)
{
    BEGIN;
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_I64);
    refused(tensor_mish(x), TENSOR_EDTYPE);
    refused(tensor_hypot(x, x), TENSOR_EDTYPE);
    refused(tensor_selu(x), TENSOR_EDTYPE);
    assert_int_equal(tensor_dtype(tensor_atan2(x, x)), TENSOR_F32);
    assert_int_equal(tensor_dtype(tensor_remainder_scalar(x, 2)), TENSOR_I64);
    assert_int_equal(tensor_dtype(tensor_remainder_scalar(x, 2.5)), TENSOR_F32);
    assert_int_equal(tensor_dtype(tensor_float_power(x, x)), TENSOR_F64);
    refused(tensor_threshold(tensor_to(x, TENSOR_U8), -1, 0), TENSOR_EVALUE);
    END;
}

TEST(test_rrelu_draws_slopes_between_its_bounds)
{
    BEGIN;
    Tensor *x = tensor_full(SHAPE(1000), -1, TENSOR_F32),
           *y = tensor_rrelu(x, .lower = .25, .upper = .5, .training = true);
    assert_true(tensor_item(tensor_max(y)) <= -.25 && tensor_item(tensor_min(y)) >= -.5);
    assert_true(tensor_item(tensor_max(y)) > -.27 && tensor_item(tensor_min(y)) < -.48);
    expect(tensor_narrow(tensor_rrelu(x, .25, .5), 0, 0, 1), LIST(-.375));
    END;
}

TEST(test_positive_is_its_operand)
{
    BEGIN;
    Tensor *x = leaf(LIST(1));
    assert_ptr_equal(tensor_positive(x), x);
    refused(tensor_positive(tensor_ones(SHAPE(1), TENSOR_BOOL)), TENSOR_EDTYPE);
    refused(tensor_positive(NULL), TENSOR_ENULL);
    END;
}

/* Short lines are computed several at once: as if the operands were dense. */
TEST(test_short_lines_are_as_dense_ones)
{
    BEGIN;
    const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16, TENSOR_I64, TENSOR_U8 };
    for (int64_t length = 1; length < 200; length = length * 3 / 2 + 1)
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            const int64_t rows = 700 / length + 5;
            Tensor *x = tensor_to(tensor_randint(-9, 9, SHAPE(2, rows, length)), dtypes[k]);
            Tensor *row = tensor_to(tensor_randint(1, 9, SHAPE(length)), dtypes[k]);
            Tensor *column = tensor_to(tensor_randint(1, 9, SHAPE(rows, 1)), dtypes[k]);
            Tensor *turned = tensor_transpose(tensor_contiguous(tensor_transpose(x, 1, 2)), 1, 2);
            Tensor *operand[] = { row, column, turned };
            for (int i = 0; i < 3; i++) {
                Tensor *dense = tensor_contiguous(tensor_expand(operand[i], tensor_shape(x)));
                assert_true(tensor_equal(tensor_mul(x, operand[i]), tensor_mul(x, dense)));
                assert_true(tensor_equal(tensor_sub(operand[i], x), tensor_sub(dense, x)));
                assert_true(tensor_equal(tensor_lt(x, operand[i]), tensor_lt(x, dense)));
                assert_true(tensor_equal(tensor_fmax(x, operand[i]), tensor_fmax(x, dense)));
            }
            Tensor *slice = tensor_slice(tensor_clone(x), 2, 0, .step = 2);
            Tensor *sum = tensor_add(tensor_contiguous(slice), column);
            assert_true(tensor_equal(tensor_add_(slice, column), sum));
        }
    END;
}

int main(void)
{
#define T(name) cmocka_unit_test(name)
    const struct CMUnitTest tests[] = {
        T(test_one_tensor_in_both_slots),
        T(test_add_hands_one_gradient_to_two_consumers),
        T(test_div_gradient_does_not_overflow),
        T(test_pow_gradients_at_zero),
        T(test_atan2_of_subnormal_numbers),
        T(test_atan2_at_the_origin_and_far),
        T(test_extremes_share_ties_and_treat_nan_each_its_way),
        T(test_fmod_and_remainder_signs),
        T(test_integer_division_by_zero_is_refused),
        T(test_hypot_does_not_overflow),
        T(test_logaddexp_of_infinities),
        T(test_xlogy_is_0_at_0),
        T(test_copysign_looks_at_the_sign_of_zero),
        T(test_second_derivatives_of_equal_operands_of_logaddexp),
        T(test_second_derivatives_where_the_first_is_zero_by_definition),
        T(test_lerp_with_a_tensor_as_weight),
        T(test_addcmul_computes_in_the_dtype_of_all_three),
        T(test_clamp_tensor_bounds_get_the_gradient_beyond_them_alone),
        T(test_comparisons_with_nan_are_false),
        T(test_bits_of_integers_and_bools),
        T(test_functions_of_floats_refuse_integers),
        T(test_rrelu_draws_slopes_between_its_bounds),
        T(test_positive_is_its_operand),
        T(test_short_lines_are_as_dense_ones),
    };
    return cmocka_run_group_tests_name("traps of functions of two operands", tests, NULL, NULL);
}
