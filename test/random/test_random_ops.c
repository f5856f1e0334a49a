/* test_random_ops.c - what ops draw, against PyTorch's numbers (oracle/rng_golden.h): masks of dropout,
 * slopes of rrelu, normals around tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <tapegrad.h>

#include "oracle/rng_golden.h"

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))

static TensorScope scope;

static int setup(void **state)
{
    (void)state;
    tensor_error_clear();
    scope = tensor_scope_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tensor_scope_close(scope);
    return tensor_error() ? -1 : 0;
}

/* In row-major order, within a part of the value; 0 is exact. */
static void same_f32(Tensor *x, const float *want, int64_t n, double part)
{
    float got[64];
    assert_non_null(x);
    assert_int_equal(tensor_numel(x), n);
    assert_int_equal(tensor_copy_to(tensor_to(x, TENSOR_F32), got, (size_t)n * sizeof *got), 0);
    for (int64_t i = 0; i < n; i++) assert_true(fabsf(got[i] - want[i]) <= part * fabsf(want[i]));
}

static void same_f64(Tensor *x, const double *want, int64_t n, double part)
{
    double got[64];
    assert_non_null(x);
    assert_int_equal(tensor_numel(x), n);
    assert_int_equal(tensor_copy_to(x, got, (size_t)n * sizeof *got), 0);
    for (int64_t i = 0; i < n; i++) assert_true(fabs(got[i] - want[i]) <= part * fabs(want[i]));
}
#define NEAR32(x, golden) same_f32(x, golden, COUNT(golden), 4 * 0x1p-24)
#define SAME32(x, golden) same_f32(x, golden, COUNT(golden), 0)
#define HALF(x, golden) same_f32(x, golden, COUNT(golden), 2 * 0x1p-8)
#define NEAR64(x, golden) same_f64(x, golden, COUNT(golden), 4 * 0x1p-53)

/* 1, 2, ... 24 of a shape, after the seed of the goldens. */
static Tensor *counted(TensorShape shape, TensorDtype dtype)
{
    tensor_manual_seed(17);
    return tensor_reshape(tensor_arange(1, 25, 1, dtype), shape);
}

static void test_dropout_draws_pytorchs_masks(void **state)
{
    (void)state;
    const TensorDtype f = TENSOR_F32;
    NEAR32(tensor_dropout(counted(SHAPE(24), f), .4), golden_dropout_17);
    NEAR32(tensor_dropout_(counted(SHAPE(24), f), .4), golden_dropout_17);
    NEAR32(tensor_dropout1d(counted(SHAPE(2, 3, 4), f), .4), golden_dropout1d_17);
    NEAR32(tensor_dropout2d(counted(SHAPE(2, 6, 2, 1), f), .4), golden_dropout2d_17);
    NEAR32(tensor_dropout3d(counted(SHAPE(1, 12, 2, 1, 1), f), .4), golden_dropout3d_17);
    NEAR32(tensor_alpha_dropout(counted(SHAPE(24), f), .4), golden_alpha_dropout_17);
    NEAR32(tensor_feature_alpha_dropout(counted(SHAPE(2, 6, 2), f), .4), golden_feature_alpha_dropout_17);
    NEAR64(tensor_dropout(counted(SHAPE(24), TENSOR_F64), .4), golden_dropout_f64);
    HALF(tensor_dropout(counted(SHAPE(24), TENSOR_BF16), .4), golden_dropout_bf16);
}

static void test_dropout_draws_in_the_order_of_memory(void **state)
{
    (void)state;
    Tensor *x = tensor_t(counted(SHAPE(6, 4), TENSOR_F32));
    NEAR32(tensor_dropout(x, .4), golden_dropout_transposed);
}

static void test_dropout_of_all_or_of_nothing_draws_nothing(void **state)
{
    (void)state;
    Tensor *x = counted(SHAPE(24), TENSOR_F32);
    Tensor *y = tensor_dropout(x, 1), *none = tensor_dropout(tensor_narrow(x, 0, 0, 0), .5);
    NEAR32(tensor_cat(TENSORS(y, none, tensor_rand(SHAPE(1), TENSOR_F32)), 0), golden_dropout_all);
    tensor_alpha_dropout(x, 1);
    tensor_dropout2d(tensor_reshape(x, SHAPE(2, 12)), 1);
    Tensor *rest = tensor_rand(SHAPE(1), TENSOR_F32);
    tensor_manual_seed(17);
    tensor_rand(SHAPE(1), TENSOR_F32);
    assert_true(tensor_equal(rest, tensor_rand(SHAPE(1), TENSOR_F32)));
}

static void test_attention_and_recurrent_layers_draw_pytorchs_masks(void **state)
{
    (void)state;
    Tensor *q = tensor_div_scalar(tensor_reshape(tensor_arange(0, 24, 1, TENSOR_F64), SHAPE(2, 3, 4)), 24);
    tensor_manual_seed(17);
    same_f64(tensor_scaled_dot_product_attention(q, q, q, .dropout_p = .5), golden_attention_dropout,
             COUNT(golden_attention_dropout), 1e-14);
    tensor_manual_seed(17);
    Module *lstm = (Module *)nn_lstm(3, 2, .num_layers = 2, .dropout = .5, .batch_first = true);
    same_f32(nn_forward(lstm, tensor_ones(SHAPE(2, 4, 3), TENSOR_F32)), golden_lstm_dropout,
             COUNT(golden_lstm_dropout), 1e-3);
    nn_free(lstm);
}

static void test_modules_draw_pytorchs_masks(void **state)
{
    (void)state;
    Module *drop = nn_dropout(.p = .4);
    NEAR32(nn_forward(drop, counted(SHAPE(24), TENSOR_F32)), golden_dropout_17);
    nn_free(drop);
}

static void test_masks_of_philox_are_others(void **state)
{
    (void)state;
    assert_true(tensor_use_torch_dropout(false));
    Tensor *x = tensor_ones(SHAPE(1000), TENSOR_F32), *state_before = tensor_get_rng_state();
    tensor_manual_seed(17);
    Tensor *philox = tensor_dropout(x, .4), *untouched = tensor_rand(SHAPE(3), TENSOR_F32);
    assert_false(tensor_use_torch_dropout(true));
    tensor_manual_seed(17);
    assert_true(tensor_equal(untouched, tensor_rand(SHAPE(3), TENSOR_F32)));
    tensor_manual_seed(17);
    assert_false(tensor_equal(philox, tensor_dropout(x, .4)));
    assert_int_equal(tensor_set_rng_state(state_before), 0);
}

static void test_dropout_of_channels_takes_any_rank_where_nothing_is_dropped(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(3), TENSOR_F32), *none = tensor_ones(SHAPE(0), TENSOR_F32);
    assert_ptr_equal(tensor_dropout2d(x, .5, false), x);
    assert_ptr_equal(tensor_dropout2d(x, 0), x);
    assert_ptr_equal(tensor_feature_alpha_dropout(x, .5, false), x);
    assert_ptr_equal(tensor_feature_alpha_dropout_(x, .5, false), x);
    assert_int_equal(tensor_numel(tensor_dropout2d(none, .5)), 0);
    assert_int_equal(tensor_numel(tensor_feature_alpha_dropout(none, .5)), 0);
    assert_null(tensor_dropout2d(x, .5));
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    tensor_error_clear();
    assert_null(tensor_feature_alpha_dropout(x, 1));
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    tensor_error_clear();
}

static void test_rrelu_draws_pytorchs_slopes(void **state)
{
    (void)state;
    const double v[13] = { 1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 0 };
    Tensor *x = tensor_from_data(v, SHAPE(13), TENSOR_F64), *f32 = tensor_to(x, TENSOR_F32);
    tensor_manual_seed(18);
    SAME32(tensor_rrelu(f32, .1, .9, true), golden_rrelu_f32);
    tensor_manual_seed(18);
    NEAR64(tensor_rrelu(x, .lower = .1, .upper = .9, .training = true), golden_rrelu_f64);
    tensor_manual_seed(18);
    HALF(tensor_rrelu(tensor_to(x, TENSOR_BF16), .1, .9, true), golden_rrelu_bf16);
    Tensor *t = tensor_t(tensor_neg(counted(SHAPE(6, 4), TENSOR_F32)));
    tensor_manual_seed(18);
    SAME32(tensor_rrelu(t, .1, .9, true), golden_rrelu_transposed);
    tensor_manual_seed(18);
    assert_ptr_equal(tensor_rrelu_(f32, .1, .9, true), f32);
    SAME32(f32, golden_rrelu_f32);
}

static void test_normals_around_tensors(void **state)
{
    (void)state;
    Tensor *mean = tensor_arange(0, 20, 1, TENSOR_F32), *std = tensor_arange(1, 21, 1, TENSOR_F32);
    tensor_manual_seed(19);
    NEAR32(tensor_normal_tensor(mean, std), golden_normal_both);
    tensor_manual_seed(19);
    NEAR32(tensor_normal_tensor_scalar(mean, 2), golden_normal_mean);
    tensor_manual_seed(19);
    NEAR32(tensor_normal_scalar_tensor(2, std), golden_normal_std);
    tensor_manual_seed(19);
    NEAR32(tensor_normal_tensor(tensor_reshape(tensor_narrow(mean, 0, 0, 4), SHAPE(4, 1)),
                                tensor_narrow(std, 0, 0, 5)),
           golden_normal_broadcast);
    tensor_manual_seed(19);
    same_f64(tensor_normal_tensor(tensor_to(mean, TENSOR_F64), tensor_to(std, TENSOR_F64)), golden_normal_f64,
             COUNT(golden_normal_f64), 1e-14);
    tensor_manual_seed(19);
    NEAR32(tensor_normal_tensor(tensor_narrow(mean, 0, 0, 5), tensor_narrow(std, 0, 0, 5)),
           golden_normal_few);
}

#define REFUSED(code, call)                          \
    do {                                             \
        assert_null(call);                           \
        assert_int_equal(tensor_error_code(), code); \
        tensor_error_clear();                        \
    } while (0)

static void test_normals_around_tensors_refuse(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(3), TENSOR_F32), *before = tensor_get_rng_state();
    REFUSED(TENSOR_ENULL, tensor_normal_tensor(NULL, x));
    REFUSED(TENSOR_ENULL, tensor_normal_tensor(x, NULL));
    REFUSED(TENSOR_ENULL, tensor_normal_tensor_scalar(NULL, 1));
    REFUSED(TENSOR_ENULL, tensor_normal_scalar_tensor(1, NULL));
    REFUSED(TENSOR_EDTYPE, tensor_normal_tensor(x, tensor_ones(SHAPE(3), TENSOR_F64)));
    REFUSED(TENSOR_EDTYPE, tensor_normal_scalar_tensor(0, tensor_ones(SHAPE(3), TENSOR_I64)));
    REFUSED(TENSOR_ESHAPE, tensor_normal_tensor(x, tensor_ones(SHAPE(2), TENSOR_F32)));
    REFUSED(TENSOR_EVALUE, tensor_normal_tensor(x, tensor_neg(x)));
    REFUSED(TENSOR_EVALUE, tensor_normal_scalar_tensor(0, tensor_full(SHAPE(3), (double)NAN, TENSOR_F32)));
    REFUSED(TENSOR_EVALUE, tensor_normal_tensor_scalar(x, -1));
    assert_true(tensor_equal(before, tensor_get_rng_state()));
    assert_int_equal(tensor_numel(tensor_normal_tensor(x, tensor_zeros(SHAPE(0, 1), TENSOR_F32))), 0);
    assert_true(tensor_equal(tensor_normal_tensor(x, tensor_zeros_like(x)), x));
    Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F32), true);
    assert_false(tensor_requires_grad(tensor_normal_tensor(w, w)));
}

static Tensor *drawn(int way, Tensor *x)
{
    switch (way) {
    case 0: return tensor_uniform_(x, -1, 2);
    case 1: return tensor_random_(x);
    case 2: return tensor_bernoulli_(x, .4);
    case 3: return tensor_bernoulli(tensor_add_scalar(tensor_mul_scalar(x, 0), .4));
    case 4: return tensor_exponential_(x, 2);
    case 5: return tensor_normal_(x, 1, 2);
    case 6: return tensor_rrelu(tensor_sub_scalar(tensor_mul_scalar(x, 0), 1), .training = true);
    case 7: return tensor_dropout(tensor_ones_like(x), .4, true);
    case 8: return tensor_randint_like(x, 0, 100);
    default: return NULL;
    }
}

/* No draw takes a number more or less than it gives: 7 elements and then 5 are the 12 of one call. */
static void test_draws_take_what_they_give(void **state)
{
    (void)state;
    const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16 };
    for (int d = 0; d < 3; d++)
        for (int way = 0; drawn(way, tensor_ones(SHAPE(1), dtypes[d])); way++) {
            tensor_manual_seed(11);
            Tensor *whole = drawn(way, tensor_ones(SHAPE(12), dtypes[d])),
                   *then = tensor_rand(SHAPE(3), TENSOR_F64);
            tensor_manual_seed(11);
            Tensor *first = drawn(way, tensor_ones(SHAPE(7), dtypes[d])),
                   *rest = drawn(way, tensor_ones(SHAPE(5), dtypes[d]));
            if (!tensor_equal(whole, tensor_cat(TENSORS(first, rest))) ||
                !tensor_equal(then, tensor_rand(SHAPE(3), TENSOR_F64)))
                fail_msg("draw %d in %s", way, tensor_dtype_name(dtypes[d]));
        }
    assert_null(tensor_error());
}

static void draw_everything(Tensor *x, Tensor *half, Tensor *strided)
{
    Tensor *one = tensor_ones_like(x), *const to[] = { x, half, strided };
    tensor_rand_like(strided), tensor_randn_like(half), tensor_randint_like(x, 0, 9), tensor_randperm(300);
    tensor_bernoulli(tensor_full_like(x, .5)), tensor_normal_tensor(x, one);
    tensor_normal_tensor_scalar(x, 2), tensor_normal_scalar_tensor(1, one);
    tensor_multinomial(one, 2);
    tensor_multinomial(tensor_ones_like(half), 9, .replacement = true);
    for (int i = 0; i < 3; i++) {
        tensor_uniform_(to[i], 0, 1), tensor_normal_(to[i], 0, 1), tensor_random_(to[i]);
        tensor_bernoulli_(to[i], .5), tensor_exponential_(to[i], 1), tensor_trunc_normal_(to[i], 0, 1, -2, 2);
        tensor_rrelu(to[i], .training = true);
        tensor_dropout(to[i], .5, true);
    }
    assert_null(tensor_error());
}

static void test_draws_leave_no_memory_behind(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(7, 9), TENSOR_F64), *half = tensor_ones(SHAPE(5, 40), TENSOR_BF16),
           *strided = tensor_transpose(tensor_ones(SHAPE(20, 6), TENSOR_F32), 0, 1);
    int64_t in_use = 0;
    for (int i = 0; i < 4; i++) { /* the first one grows what is kept */
        if (i == 1) in_use = tensor_memory().in_use;
        TensorScope inner = tensor_scope_open();
        draw_everything(x, half, strided);
        tensor_scope_close(inner);
    }
    assert_int_equal(tensor_memory().in_use, in_use);
}

/* Only the quotients of weights count, however large or small these are in their dtype. */
static void test_multinomial_of_any_scale(void **state)
{
    (void)state;
    static const struct {
        TensorDtype dtype;
        double factor;
    } tried[] = { { TENSOR_F32, 0x1p60 },   { TENSOR_F32, 0x1p-60 }, { TENSOR_F64, 0x1p300 },
                  { TENSOR_F64, 0x1p-300 }, { TENSOR_BF16, 0x1p60 }, { TENSOR_F16, 0x1p-4 },
                  { TENSOR_F16, 0x1p4 } };
    for (size_t k = 0; k < sizeof tried / sizeof *tried; k++)
        for (int64_t n = 1; n <= 5; n += 4) {
            Tensor *w = tensor_add_scalar(tensor_remainder_scalar(tensor_arange(0, 60, 1, TENSOR_F64), 5), 1);
            w = tensor_to(tensor_reshape(w, SHAPE(3, 20)), tried[k].dtype);
            for (int again = 0; again < 2; again++) {
                tensor_manual_seed(18);
                Tensor *drawn = tensor_multinomial(w, n, again);
                tensor_manual_seed(18);
                Tensor *scaled = tensor_multinomial(tensor_mul_scalar(w, tried[k].factor), n, again);
                assert_true(drawn && scaled && tensor_equal(drawn, scaled));
            }
        }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_dropout_draws_pytorchs_masks),
        TEST(test_dropout_draws_in_the_order_of_memory),
        TEST(test_dropout_of_all_or_of_nothing_draws_nothing),
        TEST(test_attention_and_recurrent_layers_draw_pytorchs_masks),
        TEST(test_modules_draw_pytorchs_masks),
        TEST(test_masks_of_philox_are_others),
        TEST(test_dropout_of_channels_takes_any_rank_where_nothing_is_dropped),
        TEST(test_rrelu_draws_pytorchs_slopes),
        TEST(test_multinomial_of_any_scale),
        TEST(test_normals_around_tensors),
        TEST(test_normals_around_tensors_refuse),
        TEST(test_draws_take_what_they_give),
        TEST(test_draws_leave_no_memory_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
