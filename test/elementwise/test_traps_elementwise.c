/* test_traps_elementwise.c - where gradients of functions of one operand go wrong: one test for each trap of
 * the checklist, at kinks, ties, poles and far ends. */
#include "traps_elementwise.h"

/* ---- unary ----------------------------------------------------------------------------------- */

TEST(test_reciprocal_of_0_is_infinite)
{
    (void)state;
    unary(tensor_reciprocal, LIST(0, -2), LIST(INF, -.5), LIST(-INF, -.25));
}
TEST(test_abs_gradient_0_at_0)
{
    (void)state;
    unary(tensor_abs, LIST(0, -2, 3), LIST(0, 2, 3), LIST(0, -1, 1));
}

TEST(test_rounding_has_zero_gradient_and_halves_go_to_even)
{
    (void)state;
    unary(tensor_sign, LIST(-2, 0, 3), LIST(-1, 0, 1), LIST(0, 0, 0));
    unary(tensor_floor, LIST(-.5, 1.5), LIST(-1, 1), LIST(0, 0));
    unary(tensor_ceil, LIST(-.5, 1.5), LIST(0, 2), LIST(0, 0));
    unary(tensor_round, LIST(.5, 1.5, 2.5, -.5), LIST(0, 2, 2, 0), LIST(0, 0, 0, 0));
    unary(tensor_trunc, LIST(-1.5, 1.5), LIST(-1, 1), LIST(0, 0));
}

TEST(test_frac_has_the_sign_of_x_and_gradient_1)
{
    (void)state;
    unary(tensor_frac, LIST(-1.5, 1.5), LIST(-.5, .5), LIST(1, 1));
}

TEST(test_exp_overflow_times_zero_is_nan)
{
    BEGIN;
    Tensor *x = leaf(LIST(1000)), *y = tensor_exp(x);
    assert_int_equal(tensor_backward(y, tensor_zeros_like(y)), 0);
    expect(tensor_grad(x), LIST(NOT));
    unary(tensor_expm1, LIST(0), LIST(0), LIST(1));
    END;
}

TEST(test_log_of_0_has_an_infinite_gradient)
{
    (void)state;
    unary(tensor_log, LIST(0), LIST(-INF), LIST(INF));
    unary(tensor_log2, LIST(0), LIST(-INF), LIST(INF));
    unary(tensor_log10, LIST(0), LIST(-INF), LIST(INF));
    unary(tensor_log1p, LIST(-1), LIST(-INF), LIST(INF));
}

TEST(test_sqrt_at_0_is_infinite_and_0_times_it_is_nan)
{
    BEGIN;
    unary(tensor_sqrt, LIST(0, 4), LIST(0, 2), LIST(INF, .25));
    Tensor *x = leaf(LIST(0)), *y = tensor_sqrt(x);
    assert_int_equal(tensor_backward(y, tensor_zeros_like(y)), 0);
    expect(tensor_grad(x), LIST(NOT));
    END;
}

TEST(test_rsqrt_gradient_from_y)
{
    (void)state;
    unary(tensor_rsqrt, LIST(4), LIST(.5), LIST(-.0625));
}

static Tensor *pow_0(Tensor *x) { return tensor_pow_scalar(x, 0); }
static Tensor *pow_1(Tensor *x) { return tensor_pow_scalar(x, 1); }
static Tensor *pow_2(Tensor *x) { return tensor_pow_scalar(x, 2); }
static Tensor *pow_3(Tensor *x) { return tensor_pow_scalar(x, 3); }

TEST(test_pow_scalar_of_0_is_exactly_flat_and_fast_paths_agree)
{
    (void)state;
    unary(pow_0, LIST(0, -2, INF), LIST(1, 1, 1), LIST(0, 0, 0));
    unary(pow_1, LIST(0, -2), LIST(0, -2), LIST(1, 1));
    unary(pow_2, LIST(0, -2), LIST(0, 4), LIST(0, -4));
    unary(pow_3, LIST(0, -2), LIST(0, -8), LIST(0, 12));
}

TEST(test_tan_tanh_gradients_from_y)
{
    (void)state;
    unary(tensor_tan, LIST(0), LIST(0), LIST(1));
    unary(tensor_tanh, LIST(0, 100, -INF), LIST(0, 1, -1), LIST(1, 0, 0));
}

TEST(test_arcs_at_the_ends_of_their_domains)
{
    (void)state;
    unary(tensor_asin, LIST(1, -1, 2), LIST(M_PI / 2, -M_PI / 2, NOT), LIST(INF, INF, NOT));
    unary(tensor_acos, LIST(1, -1, 2), LIST(0, M_PI, NOT), LIST(-INF, -INF, NOT));
    unary(tensor_acosh, LIST(1, .5), LIST(0, NOT), LIST(INF, NOT));
    unary(tensor_atanh, LIST(1, 2), LIST(INF, NOT), LIST(INF, -1. / 3));
}

TEST(test_logsigmoid_is_stable)
{
    (void)state;
    unary(tensor_logsigmoid, LIST(-1000, 1000, 0), LIST(-1000, 0, -M_LN2), LIST(1, 0, .5));
}

static Tensor *logit_none(Tensor *x) { return tensor_logit(x, -1); }
static Tensor *logit_tenth(Tensor *x) { return tensor_logit(x, .125); }

static Tensor *logit_most(Tensor *x) { return tensor_logit(x, .75); }

TEST(test_logit_eps_clamps)
{
    (void)state;
    unary(logit_none, LIST(0, 1, .5, 1.5), LIST(-INF, INF, 0, NOT), LIST(INF, INF, 4, NOT));
    unary(logit_most, LIST(.5, .2, .8), LIST(log(3), log(3), -log(3)), LIST(0, 0, 0)); /* x < eps wins */
    const float *y = tensor_data(logit_most(tensor_from_data((float[]){ .5, .2, .8 }, SHAPE(3), TENSOR_F32)));
    assert_true(fabs(y[0] - log(3)) < 1e-6 && fabs(y[1] - log(3)) < 1e-6 && fabs(y[2] + log(3)) < 1e-6);
    unary(logit_tenth, LIST(0, 2, .5, .125), LIST(-log(7), log(7), 0, -log(7)), LIST(0, 0, 4, 64. / 7));
}

TEST(test_error_function_family)
{
    (void)state;
    unary(tensor_erf, LIST(0), LIST(0), LIST(2 / sqrt(M_PI)));
    unary(tensor_erfc, LIST(0), LIST(1), LIST(-2 / sqrt(M_PI)));
    unary(tensor_erfinv, LIST(0, 1, -1, 2), LIST(0, INF, -INF, NOT), LIST(sqrt(M_PI) / 2, INF, INF, NOT));
    unary(tensor_lgamma, LIST(1, 0), LIST(0, INF), LIST(-.57721566490153286061, -INF));
    unary(tensor_digamma, LIST(1, 0), LIST(-.57721566490153286061, -INF), LIST(M_PI * M_PI / 6, INF));
}

static Tensor *polygamma_1(Tensor *x) { return tensor_polygamma(x, 1); }

TEST(test_polygamma_below_zero_and_far)
{
    BEGIN;
    unary(polygamma_1, LIST(.5, -.5, 1e300, INF), LIST(M_PI * M_PI / 2, M_PI * M_PI / 2 + 4, 1e-300, 0),
          LIST(-16.8287966442343199955, -.828796644234319995596, -0., 0));
    refused(tensor_polygamma(leaf(LIST(1)), -1), TENSOR_EVALUE);
    assert_true(
        tensor_item(tensor_zeta(tensor_scalar(1e160, TENSOR_F64), tensor_scalar(1e170, TENSOR_F64))) == 0);
    refused(tensor_polygamma(leaf(LIST(1)), 1.5), TENSOR_EVALUE);
    END;
}

TEST(test_relu_gradient_0_at_0_and_nan_passes)
{
    (void)state;
    unary(tensor_relu, LIST(0, -1, 2, NOT), LIST(0, 0, 2, NOT), LIST(0, 0, 1, 1));
}

static Tensor *hardtanh_1(Tensor *x) { return tensor_hardtanh(x, -1, 1); }
static Tensor *clamp_1(Tensor *x) { return tensor_clamp(x, -1, 1); }
static Tensor *clamp_crossed(Tensor *x) { return tensor_clamp(x, 2, 1); }
static Tensor *clamp_min_1(Tensor *x) { return tensor_clamp_min(x, 1); }
static Tensor *clamp_max_1(Tensor *x) { return tensor_clamp_max(x, 1); }

TEST(test_hardtanh_is_open_where_clamp_is_inclusive)
{
    (void)state;
    unary(tensor_relu6, LIST(0, 6, 3, 7, -1), LIST(0, 6, 3, 6, 0), LIST(0, 0, 1, 0, 0));
    unary(hardtanh_1, LIST(-1, 1, 0, 2), LIST(-1, 1, 0, 1), LIST(0, 0, 1, 0));
    unary(clamp_1, LIST(-1, 1, 0, 2), LIST(-1, 1, 0, 1), LIST(1, 1, 1, 0));
    unary(clamp_min_1, LIST(1, 0, 2), LIST(1, 1, 2), LIST(1, 0, 1));
    unary(clamp_max_1, LIST(1, 0, 2), LIST(1, 0, 1), LIST(1, 1, 0));
}

static Tensor *hardtanh_from_nan(Tensor *x) { return tensor_hardtanh(x, NOT, 1); }
static Tensor *hardtanh_to_nan(Tensor *x) { return tensor_hardtanh(x, -1, NOT); }

TEST(test_hardtanh_with_a_bound_of_nan_is_nan)
{
    (void)state;
    unary(hardtanh_from_nan, LIST(-2, 0, 2, NOT), LIST(NOT, NOT, NOT, NOT), LIST(0, 0, 0, 0));
    unary(hardtanh_to_nan, LIST(-2, 0, 2, NOT), LIST(NOT, NOT, NOT, NOT), LIST(0, 0, 0, 0));
}

TEST(test_clamp_with_min_above_max_gives_max_and_no_gradient)
{
    (void)state;
    unary(clamp_crossed, LIST(0, 1.5, 3), LIST(1, 1, 1), LIST(0, 0, 0));
}

static Tensor *leaky(Tensor *x) { return tensor_leaky_relu(x, .25); }
TEST(test_leaky_relu_has_the_slope_at_0)
{
    (void)state;
    unary(leaky, LIST(0, -4, 2), LIST(0, -1, 2), LIST(.25, .25, 1));
}

TEST(test_prelu_weight_gradient_is_summed_by_channel)
{
    BEGIN;
    Tensor *x = leaf(LIST(1, -2, -3, 4, -5, 6)), *w = leaf(LIST(.5, .25)),
           *y = tensor_prelu(tensor_view(x, SHAPE(1, 2, 3)), w);
    expect(y, LIST(1, -1, -1.5, 4, -1.25, 6));
    assert_int_equal(tensor_backward(y, tensor_ones_like(y)), 0);
    expect(tensor_grad(w), LIST(-5, -5));
    expect(tensor_grad(x), LIST(1, .5, .5, 1, .25, 1));
    refused(tensor_prelu(tensor_view(x, SHAPE(2, 3)), w), TENSOR_ESHAPE);
    END;
}

static Tensor *elu_2(Tensor *x) { return tensor_elu(x, 2); }
static Tensor *celu_2(Tensor *x) { return tensor_celu(x, 2); }

TEST(test_elu_family_for_all_orders_and_forms)
{
    BEGIN;
    unary(elu_2, LIST(0, -INF, 3), LIST(0, -2, 3), LIST(2, 0, 1));
    unary(celu_2, LIST(0, -INF, 3), LIST(0, -2, 3), LIST(1, 0, 1));
    unary(tensor_selu, LIST(0, 1), LIST(0, 1.05070098735548049342),
          LIST(1.75809934084737685994, 1.05070098735548049342));
    refused(tensor_celu(leaf(LIST(1)), 0), TENSOR_EVALUE);
    Tensor *x = leaf(LIST(-1)), *y = tensor_mul_scalar(x, 1);
    tensor_elu_(y, -2); /* from x, so any alpha is right in place */
    assert_int_equal(tensor_backward(y, tensor_ones_like(y)), 0);
    expect(tensor_grad(x), LIST(-2 * exp(-1)));
    END;
}

/* Forward and derivative of one formula: the difference quotient of each. */
TEST(test_gelu_formulas_are_not_mixed)
{
    BEGIN;
    for (int k = 0; k < 2; k++) {
        Tensor *(*f)(Tensor *) = k ? tensor_gelu_tanh : tensor_gelu;
        Tensor *x = leaf(LIST(-1.3, .4, 2.1)), *h = leaf(LIST(1e-6, 1e-6, 1e-6)), *y = f(x);
        assert_int_equal(tensor_backward(y, tensor_ones_like(y)), 0);
        Tensor *quotient = tensor_mul_scalar(tensor_sub(f(tensor_add(x, h)), f(tensor_sub(x, h))), 5e5);
        assert_true(tensor_item(tensor_max(tensor_abs(tensor_sub(quotient, tensor_grad(x))))) < 1e-8);
    }
    END;
}

TEST(test_gelu_approximate)
{
    BEGIN;
    Tensor *x = tensor_linspace(-1.3, 2.1, 5, TENSOR_F64), *by_tanh = tensor_gelu_tanh(x);
    assert_true(tensor_equal(tensor_gelu(x), (tensor_gelu)(x)));
    assert_true(tensor_equal(tensor_gelu(x, .approximate = TENSOR_GELU_TANH), by_tanh));
    assert_false(tensor_equal(tensor_gelu(x), by_tanh));
    assert_null(tensor_gelu(x, .approximate = (TensorGelu)2));
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
    assert_null(tensor_gelu_(NULL, .approximate = TENSOR_GELU_TANH));
    assert_memory_equal(tensor_error(), "tensor_gelu_: ", 14);
    tensor_error_clear();
    assert_ptr_equal(tensor_gelu_(x, .approximate = TENSOR_GELU_TANH), x);
    assert_true(tensor_equal(x, by_tanh));
    END;
}

static Tensor *softshrink_1(Tensor *x) { return tensor_softshrink(x, 1); }
static Tensor *hardshrink_1(Tensor *x) { return tensor_hardshrink(x, 1); }

TEST(test_mish_and_the_shrinks)
{
    BEGIN;
    unary(tensor_mish, LIST(0, 1000), LIST(0, 1000), LIST(.6, 1));
    unary(tensor_softsign, LIST(0, -1), LIST(0, -.5), LIST(1, .25));
    unary(tensor_tanhshrink, LIST(0, 1000), LIST(0, 999), LIST(0, 1));
    unary(softshrink_1, LIST(-1, 1, 3, -3), LIST(0, 0, 2, -2), LIST(0, 0, 1, 1));
    unary(hardshrink_1, LIST(-1, 1, 3, -3), LIST(0, 0, 3, -3), LIST(0, 0, 1, 1));
    refused(tensor_softshrink(leaf(LIST(1)), -1), TENSOR_EVALUE);
    END;
}

static Tensor *softplus_1(Tensor *x) { return tensor_softplus(x, 1, 20); }
TEST(test_softplus_is_linear_above_its_threshold)
{
    (void)state;
    unary(softplus_1, LIST(20.5, 0), LIST(20.5, M_LN2), LIST(1, .5));
}
TEST(test_hardsigmoid_is_open)
{
    (void)state;
    unary(tensor_hardsigmoid, LIST(-3, 3, 0), LIST(0, 1, .5), LIST(0, 0, 1. / 6));
}

TEST(test_hardswish_at_3_has_the_gradient_from_within)
{
    (void)state;
    unary(tensor_hardswish, LIST(-3, 3, -3.5, 3.5, 0), LIST(0, 3, 0, 3.5, 0), LIST(-.5, 1.5, 0, 1, .5));
}

static Tensor *threshold_1(Tensor *x) { return tensor_threshold(x, 1, 7); }
TEST(test_threshold_is_strict)
{
    (void)state;
    unary(threshold_1, LIST(1, 2), LIST(7, 2), LIST(0, 1));
}

static Tensor *nan_to_num_all(Tensor *x) { return tensor_nan_to_num(x, 1, 2, 3); }
static Tensor *nan_to_num_default(Tensor *x) { return tensor_nan_to_num(x); }

TEST(test_nan_to_num_has_no_gradient_where_it_replaced)
{
    BEGIN;
    unary(nan_to_num_all, LIST(NOT, INF, -INF, 5), LIST(1, 2, 3, 5), LIST(0, 0, 0, 1));
    unary(nan_to_num_default, LIST(NOT, INF, -INF, 5),
          LIST(0, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023, 5), LIST(0, 0, 0, 1));
    Tensor *half = tensor_nan_to_num(tensor_full(SHAPE(1), INF, TENSOR_F16));
    expect(half, LIST(65504));
    Tensor *x = tensor_full(SHAPE(2), NOT, TENSOR_F32);
    assert_ptr_equal(tensor_nan_to_num_(x, 4, NOT, NOT), x);
    expect(x, LIST(4, 4));
    END;
}

int main(void)
{
#define T(name) cmocka_unit_test(name)
    const struct CMUnitTest tests[] = {
        T(test_reciprocal_of_0_is_infinite),
        T(test_abs_gradient_0_at_0),
        T(test_rounding_has_zero_gradient_and_halves_go_to_even),
        T(test_frac_has_the_sign_of_x_and_gradient_1),
        T(test_exp_overflow_times_zero_is_nan),
        T(test_log_of_0_has_an_infinite_gradient),
        T(test_sqrt_at_0_is_infinite_and_0_times_it_is_nan),
        T(test_rsqrt_gradient_from_y),
        T(test_pow_scalar_of_0_is_exactly_flat_and_fast_paths_agree),
        T(test_tan_tanh_gradients_from_y),
        T(test_arcs_at_the_ends_of_their_domains),
        T(test_logsigmoid_is_stable),
        T(test_logit_eps_clamps),
        T(test_error_function_family),
        T(test_polygamma_below_zero_and_far),
        T(test_relu_gradient_0_at_0_and_nan_passes),
        T(test_hardtanh_is_open_where_clamp_is_inclusive),
        T(test_hardtanh_with_a_bound_of_nan_is_nan),
        T(test_clamp_with_min_above_max_gives_max_and_no_gradient),
        T(test_leaky_relu_has_the_slope_at_0),
        T(test_prelu_weight_gradient_is_summed_by_channel),
        T(test_elu_family_for_all_orders_and_forms),
        T(test_gelu_formulas_are_not_mixed),
        T(test_gelu_approximate),
        T(test_mish_and_the_shrinks),
        T(test_softplus_is_linear_above_its_threshold),
        T(test_hardsigmoid_is_open),
        T(test_hardswish_at_3_has_the_gradient_from_within),
        T(test_threshold_is_strict),
        T(test_nan_to_num_has_no_gradient_where_it_replaced),
    };
    return cmocka_run_group_tests_name("traps of functions of one operand", tests, NULL, NULL);
}
