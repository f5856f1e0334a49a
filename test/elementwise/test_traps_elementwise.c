/* test_traps_elementwise.c - where elementwise gradients go wrong: one test for each trap of the checklist,
 * at kinks, ties, poles and far ends; and the functions whose options are C code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <tapegrad/autograd.h>
#include <tapegrad/ops.h>

enum { MOST = 16 };
#define INF ((double)INFINITY)
#define NOT ((double)NAN)
#define LIST(...) \
    (const double[]){ __VA_ARGS__ }, (int)(sizeof(const double[]){ __VA_ARGS__ } / sizeof(double))

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-14 * fabs(b);
}

static Tensor *leaf(const double *v, int n)
{
    return tensor_requires_grad_(tensor_from_data(v, SHAPE(n), TENSOR_F64), true);
}

static void expect(Tensor *x, const double *want, int n)
{
    double v[MOST];
    assert_non_null(x);
    assert_int_equal(tensor_numel(x), n);
    assert_int_equal(tensor_copy_to(tensor_to(tensor_detach(x), TENSOR_F64), v, (size_t)n * sizeof *v), 0);
    for (int i = 0; i < n; i++)
        if (!same(v[i], want[i])) fail_msg("element %d is %.17g, want %.17g", i, v[i], want[i]);
}

/* y at x, and dx for cotangents of 1. */
static void unary(Tensor *(*f)(Tensor *), const double *x_, int n, const double *y, int ny, const double *dx,
                  int nx)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = leaf(x_, n), *result = f(x);
    expect(result, y, ny);
    assert_int_equal(tensor_backward(result, tensor_ones_like(result)), 0);
    expect(tensor_grad(x), dx, nx);
    tensor_scope_close(scope);
}

static void binary(Tensor *(*f)(Tensor *, Tensor *), const double *a_, int n, const double *b_, int nb,
                   const double *y, int ny, const double *da, int na, const double *db, int nd)
{
    TensorScope scope = tensor_scope_open();
    Tensor *a = leaf(a_, n), *b = leaf(b_, nb), *result = f(a, b);
    expect(result, y, ny);
    assert_int_equal(tensor_backward(result, tensor_ones_like(result)), 0);
    expect(tensor_grad(a), da, na);
    expect(tensor_grad(b), db, nd);
    tensor_scope_close(scope);
}

static void refused(Tensor *y, TensorStatus code)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

#define TEST(name) static void name(void **state)
#define BEGIN                                \
    TensorScope scope = tensor_scope_open(); \
    (void)state
#define END tensor_scope_close(scope)

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

TEST(test_logit_eps_clamps)
{
    (void)state;
    unary(logit_none, LIST(0, 1, .5, 1.5), LIST(-INF, INF, 0, NOT), LIST(INF, INF, 4, NOT));
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
    expect(tensor_addcmul(x, a, a, 1), LIST(40001));
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
        T(test_clamp_with_min_above_max_gives_max_and_no_gradient),
        T(test_leaky_relu_has_the_slope_at_0),
        T(test_prelu_weight_gradient_is_summed_by_channel),
        T(test_elu_family_for_all_orders_and_forms),
        T(test_gelu_formulas_are_not_mixed),
        T(test_mish_and_the_shrinks),
        T(test_softplus_is_linear_above_its_threshold),
        T(test_hardsigmoid_is_open),
        T(test_hardswish_at_3_has_the_gradient_from_within),
        T(test_threshold_is_strict),
        T(test_nan_to_num_has_no_gradient_where_it_replaced),
        T(test_one_tensor_in_both_slots),
        T(test_add_hands_one_gradient_to_two_consumers),
        T(test_div_gradient_does_not_overflow),
        T(test_pow_gradients_at_zero),
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
    };
    return cmocka_run_group_tests_name("traps of elementwise ops", tests, NULL, NULL);
}
