/* test_traps_reduce.c - where gradients and values of reductions, running values, distances and products go
 * wrong most easily: one test a trap.  The numbers are PyTorch's, or follow from the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>

/* ---- helpers --------------------------------------------------------------------------------- */

#define COUNT(...) (int64_t)(sizeof(double[]){ __VA_ARGS__ } / sizeof(double))
#define VECTOR(...) leaf((double[]){ __VA_ARGS__ }, SHAPE(COUNT(__VA_ARGS__)))
#define EXPECT(y, ...) expect(y, (double[]){ __VA_ARGS__ }, COUNT(__VA_ARGS__), __LINE__)
#define GRADIENT(y, x) tensor_gradients(tensor_sum(y), x)

static Tensor *leaf(const double *v, TensorShape shape)
{
    Tensor *x = tensor_from_data(v, shape, TENSOR_F64);
    assert_non_null(x);
    return tensor_requires_grad_(x, true);
}

static void expect(Tensor *y, const double *want, int64_t n, int line)
{
    assert_null(tensor_error());
    assert_non_null(y);
    if (tensor_numel(y) != n)
        fail_msg("line %d: %lld elements, not %lld", line, (long long)tensor_numel(y), (long long)n);
    double *v = malloc((size_t)n * sizeof *v);
    assert_int_equal(tensor_copy_to(tensor_to(tensor_detach(y), TENSOR_F64), v, (size_t)n * sizeof *v), 0);
    for (int64_t i = 0; i < n; i++) {
        const bool same = v[i] == want[i] || (isnan(v[i]) && isnan(want[i])) ||
                          fabs(v[i] - want[i]) <= 1e-12 * fmax(1, fabs(want[i]));
        if (!same) fail_msg("line %d: element %lld is %.17g, not %.17g", line, (long long)i, v[i], want[i]);
    }
    free(v);
}

static void expect_error(Tensor *y, TensorStatus code, const char *part)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), code);
    if (!strstr(tensor_error(), part)) fail_msg("\"%s\" does not say \"%s\"", tensor_error(), part);
    tensor_error_clear();
}

static const double inf = INFINITY;

/* ---- sums, products -------------------------------------------------------------------------- */

static void test_sum_of_nothing_is_0_and_mean_nan(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(0, 2), TENSOR_F64);
    EXPECT(tensor_sum(x), 0);
    EXPECT(tensor_mean(x), NAN);
    EXPECT(tensor_mean(x, 0), NAN, NAN);
    EXPECT(tensor_prod(x), 1);
    EXPECT(tensor_nansum(x), 0);
    EXPECT(tensor_nanmean(x), NAN);
}

static void test_sum_over_a_list_of_dims(void **state)
{
    (void)state;
    Tensor *x = tensor_reshape(tensor_arange(0, 12, 1, TENSOR_F64), SHAPE(2, 3, 2));
    EXPECT(tensor_sum(x, .dims = DIMS(0, -1), .keepdim = true), 14, 22, 30);
    assert_int_equal(tensor_ndim(tensor_sum(x, .dims = DIMS(0, -1), .keepdim = true)), 3);
}

static void test_prod_with_one_zero_has_one_gradient(void **state)
{
    (void)state;
    Tensor *x = VECTOR(2, 0, 3);
    EXPECT(GRADIENT(tensor_prod(x), x), 0, 6, 0);
}

static void test_prod_with_two_zeros_has_none(void **state)
{
    (void)state;
    Tensor *x = VECTOR(2, 0, 3, 0);
    EXPECT(GRADIENT(tensor_prod(x), x), 0, 0, 0, 0);
}

static void test_prod_with_a_zero_has_second_derivatives(void **state)
{
    (void)state;
    Tensor *x = VECTOR(2, 0, 3);
    Tensor *g = tensor_gradients(tensor_prod(x), x, .create_graph = true);
    EXPECT(GRADIENT(tensor_select(g, 0, 1), x), 3, 0, 2);
}

/* ---- spread ---------------------------------------------------------------------------------- */

static void test_var_without_degrees_of_freedom(void **state)
{
    (void)state;
    Tensor *one = VECTOR(5);
    EXPECT(tensor_var(one), NAN);
    EXPECT(tensor_std(one), NAN);
    EXPECT(tensor_var(VECTOR(1, 2), .correction = 2), inf);
}

/* The powers are beyond f32, or below it; the norm and its gradient are not. */
static void test_norm_of_large_and_small_values(void **state)
{
    (void)state;
    static const double sizes[] = { 1e30, 1e-30, 1e-42 }, orders[] = { 3, 4.5, -3 };
    for (int i = 0; i < 9; i++) {
        const double size = sizes[i / 3], p = orders[i % 3], want = size * pow(pow(2, p) + pow(3, p), 1 / p),
                     close = size < 1e-40 ? 1e-3 : 1e-6;
        Tensor *x = tensor_to(tensor_mul_scalar(VECTOR(2, -3), size), TENSOR_F32),
               *columns = tensor_expand(tensor_unsqueeze(x, 1), SHAPE(2, 5));
        assert_true(fabs(tensor_item(tensor_norm(x, p)) / want - 1) < close);
        assert_true(fabs(tensor_get(tensor_norm(columns, p, 0), DIMS(4)) / want - 1) < close);
        x = tensor_requires_grad_(tensor_detach(x), true);
        Tensor *dx = tensor_gradients(tensor_norm(x, p), x);
        assert_true(fabs(tensor_get(dx, DIMS(1)) / -pow(3 * size / want, p - 1) - 1) < 4 * close);
    }
}

/* The variance is beyond f32, or below it; its root is not. */
static void test_std_of_large_and_small_values(void **state)
{
    (void)state;
    const float large[] = { 1e30f, -1e30f }, small[] = { 1e-30f, -1e-30f };
    Tensor *x = tensor_requires_grad_(tensor_from_data(large, SHAPE(2), TENSOR_F32), true),
           *y = tensor_std(x);
    assert_true(fabs(tensor_item(y) / 1.41421356e30 - 1) < 1e-6);
    assert_true(fabs(tensor_item(tensor_std(tensor_from_data(small, SHAPE(2), TENSOR_F32))) / 1.41421356e-30 -
                     1) < 1e-6);
    tensor_backward(y);
    assert_true(fabs(tensor_get(tensor_grad(x), DIMS(0)) - sqrt(.5)) < 1e-6);
}

static void test_std_gradient_is_0_where_std_is_0(void **state)
{
    (void)state;
    Tensor *x = VECTOR(3, 3, 3);
    EXPECT(GRADIENT(tensor_std(x), x), 0, 0, 0);
    EXPECT(GRADIENT(tensor_std_mean(x), x), 0, 0, 0);
}

/* ---- extremes -------------------------------------------------------------------------------- */

static void test_extremes_share_the_gradient_among_ties(void **state)
{
    (void)state;
    Tensor *x = VECTOR(1, 3, 3, -2, 3, -2), *high = NULL;
    EXPECT(GRADIENT(tensor_max(x), x), 0, 1. / 3, 1. / 3, 0, 1. / 3, 0);
    EXPECT(GRADIENT(tensor_amin(x), x), 0, 0, 0, .5, 0, .5);
    Tensor *low = tensor_aminmax(x, .max = &high);
    EXPECT(GRADIENT(tensor_add(low, high), x), 0, 1. / 3, 1. / 3, .5, 1. / 3, .5);
}

static void test_extremes_share_the_gradient_among_nans(void **state)
{
    (void)state;
    Tensor *x = VECTOR(1, NAN, 3, NAN);
    EXPECT(tensor_max(x), NAN);
    EXPECT(GRADIENT(tensor_max(x), x), 0, .5, 0, .5);
}

static void test_max_along_a_dim_takes_the_first_index(void **state)
{
    (void)state;
    Tensor *x = VECTOR(1, 3, 3, 2), *at = NULL;
    Tensor *y = tensor_max_dim(x, 0, .indices = &at);
    EXPECT(tensor_to(at, TENSOR_F64), 1);
    EXPECT(GRADIENT(y, x), 0, 1, 0, 0);
    EXPECT(tensor_to(tensor_argmax(x), TENSOR_F64), 1);
    EXPECT(tensor_to(tensor_argmax(VECTOR(1, NAN, NAN, 9)), TENSOR_F64), 1);
}

static void test_nan_is_the_largest_in_every_order(void **state)
{
    (void)state;
    Tensor *x = VECTOR(2, NAN, inf, -1);
    EXPECT(tensor_sort(x), -1, 2, inf, NAN);
    EXPECT(tensor_topk(x, 2), NAN, inf);
    EXPECT(tensor_msort(x), -1, 2, inf, NAN);
    EXPECT(tensor_max_dim(x, 0), NAN);
}

static void test_sort_is_stable(void **state)
{
    (void)state;
    Tensor *at = NULL;
    tensor_sort(VECTOR(2, 1, 2, 1, 2), .indices = &at);
    EXPECT(tensor_to(at, TENSOR_F64), 1, 3, 0, 2, 4);
}

/* ---- norms ----------------------------------------------------------------------------------- */

static void test_norm_gradient_is_0_where_the_norm_is_0(void **state)
{
    (void)state;
    const double p[] = { 2, 1, 3, 1.5, INFINITY };
    for (int i = 0; i < 5; i++) {
        Tensor *x = VECTOR(0, 0);
        EXPECT(GRADIENT(tensor_norm(x, p[i]), x), 0, 0);
    }
}

static void test_square_root_of_a_sum_of_squares_has_no_gradient_at_0(void **state)
{
    (void)state;
    Tensor *x = VECTOR(0, 0);
    EXPECT(GRADIENT(tensor_sqrt(tensor_sum(tensor_square(x))), x), NAN, NAN);
}

static void test_norm_of_low_order_skips_zeros(void **state)
{
    (void)state;
    Tensor *x = VECTOR(0, 4);
    EXPECT(GRADIENT(tensor_norm(x, .5), x), 0, 1);
    EXPECT(GRADIENT(tensor_norm(x, 1), x), 0, 1);
    EXPECT(GRADIENT(tensor_norm(x, 0), x), 0, 0);
}

static void test_infinite_norm_shares_ties(void **state)
{
    (void)state;
    Tensor *x = VECTOR(3, -3, 1);
    EXPECT(GRADIENT(tensor_norm(x, inf), x), .5, -.5, 0);
}

static void test_logsumexp_subtracts_the_maximum(void **state)
{
    (void)state;
    EXPECT(tensor_logsumexp(VECTOR(1000, 1000)), 1000 + log(2));
    Tensor *x = VECTOR(-inf, -inf);
    EXPECT(tensor_logsumexp(x), -inf);
    EXPECT(GRADIENT(tensor_logsumexp(x), x), 0, 0);
}

static void test_normalize_of_a_zero_vector(void **state)
{
    (void)state;
    Tensor *x = VECTOR(0, 0);
    EXPECT(tensor_normalize(x, .dim = 0), 0, 0);
    EXPECT(GRADIENT(tensor_normalize(x, .dim = 0), x), 1e12, 1e12);
    EXPECT(tensor_normalize(VECTOR(3e-13, 4e-13), .dim = 0), .3, .4);
}

static void test_cosine_similarity_of_a_zero_vector(void **state)
{
    (void)state;
    Tensor *x = VECTOR(0, 0), *y = VECTOR(3, 4);
    EXPECT(tensor_cosine_similarity(x, y, 0), 0);
    EXPECT(GRADIENT(tensor_cosine_similarity(x, y, 0), x), .6e8, .8e8);
    EXPECT(GRADIENT(tensor_cosine_similarity(x, y, 0), y), 0, 0);
}

static void test_nan_is_skipped_and_gets_no_gradient(void **state)
{
    (void)state;
    Tensor *x = VECTOR(1, NAN, 4), *at = NULL;
    EXPECT(tensor_nansum(x), 5);
    EXPECT(GRADIENT(tensor_nanmean(x), x), .5, 0, .5);
    EXPECT(tensor_nanmedian(x), 1);
    EXPECT(GRADIENT(tensor_nanmedian(x), x), 1, 0, 0);
    EXPECT(tensor_nanmedian_dim(x, .indices = &at), 1);
    EXPECT(tensor_nanquantile(x, .5), 2.5);
    EXPECT(tensor_quantile(x, .5), NAN);
}

static void test_quantile_between_two_elements(void **state)
{
    (void)state;
    Tensor *x = VECTOR(4, 1, 3, 2), *q = tensor_from_data((double[]){ .25, .5 }, SHAPE(2), TENSOR_F64);
    EXPECT(tensor_quantile(x, .qs = q), 1.75, 2.5);
    EXPECT(tensor_quantile(x, .5, .interpolation = TENSOR_QUANTILE_LOWER), 2);
    EXPECT(tensor_quantile(x, .5, .interpolation = TENSOR_QUANTILE_HIGHER), 3);
    EXPECT(tensor_quantile(x, .4, .interpolation = TENSOR_QUANTILE_MIDPOINT), 2.5);
    EXPECT(tensor_quantile(x, .5, .interpolation = TENSOR_QUANTILE_NEAREST), 3); /* 1.5: to even */
    EXPECT(GRADIENT(tensor_quantile(x, .25), x), 0, .25, 0, .75);
    expect_error(tensor_quantile(x, 1.5), TENSOR_EVALUE, "q = 1.5");
}

/* ---- running values -------------------------------------------------------------------------- */

static void test_cumsum_gradient_is_the_sum_from_the_other_end(void **state)
{
    (void)state;
    Tensor *x = VECTOR(1, 2, 3), *v = VECTOR(1, 10, 100);
    EXPECT(tensor_gradients(tensor_cumsum(x, 0), x, tensor_detach(v)), 111, 110, 100);
}

static void test_cumprod_with_zeros(void **state)
{
    (void)state;
    Tensor *x = VECTOR(2, 0, 3, 0);
    EXPECT(GRADIENT(tensor_cumprod(x, 0), x), 1, 8, 0, 0);
}

/* Of f32 four elements wait for one product; of f64, the plain form, each for its own. */
static void test_products_of_f32_are_those_of_f64_rounded(void **state)
{
    (void)state;
    Tensor *x = tensor_add_scalar(tensor_mul_scalar(tensor_randn(SHAPE(103, 3), TENSOR_F32), .1), 1), *off[2];
    Tensor *wide = tensor_requires_grad_(tensor_to(x, TENSOR_F64), true);
    x = tensor_requires_grad_(tensor_detach(x), true);
    off[0] = tensor_sub_scalar(tensor_div(tensor_cumprod(x, 0), tensor_cumprod(wide, 0)), 1);
    Tensor *y = tensor_sum(tensor_prod(x, .dim = 0)), *z = tensor_sum(tensor_prod(wide, .dim = 0));
    Tensor *dz = GRADIENT(z, wide);
    off[1] = tensor_div(tensor_sub(tensor_to(GRADIENT(y, x), TENSOR_F64), dz), dz);
    for (int i = 0; i < 2; i++) assert_true(tensor_item(tensor_amax(tensor_abs(off[i]))) < 0x1p-23);
}

static void test_cummax_takes_the_last_of_equal_elements(void **state)
{
    (void)state;
    Tensor *x = VECTOR(1, 3, 3, 2, 3), *at = NULL;
    EXPECT(tensor_cummax(x, 0, .indices = &at), 1, 3, 3, 3, 3);
    EXPECT(tensor_to(at, TENSOR_F64), 0, 1, 2, 2, 4);
    EXPECT(GRADIENT(tensor_cummax(x, 0), x), 1, 1, 2, 0, 1);
    EXPECT(tensor_cummin(VECTOR(2, NAN, 1), 0), 2, NAN, NAN);
}

static void test_logcumsumexp_of_infinities(void **state)
{
    (void)state;
    Tensor *x = VECTOR(-inf, -inf, 0, 0);
    EXPECT(tensor_logcumsumexp(x, 0), -inf, -inf, 0, log(2));
    EXPECT(GRADIENT(tensor_logcumsumexp(x, 0), x), 0, 0, 1.5, .5);
    EXPECT(tensor_logcumsumexp(VECTOR(1000, 1000), 0), 1000, 1000 + log(2));
    x = VECTOR(-inf, 1, inf, inf); /* by both ways to the gradient */
    EXPECT(GRADIENT(tensor_logcumsumexp(x, 0), x), 0, 1, NAN, NAN);
    EXPECT(tensor_gradients(tensor_sum(tensor_logcumsumexp(x, 0)), x, .create_graph = true), 0, 1, NAN, NAN);
    x = VECTOR(1, NAN, 2);
    EXPECT(GRADIENT(tensor_logcumsumexp(x, 0), x), NAN, NAN, NAN);
    EXPECT(tensor_gradients(tensor_sum(tensor_logcumsumexp(x, 0)), x, .create_graph = true), NAN, NAN, NAN);
}

static void test_diff_joins_what_is_given(void **state)
{
    (void)state;
    Tensor *x = VECTOR(1, 4, 9);
    EXPECT(tensor_diff(x), 3, 5);
    EXPECT(tensor_diff(x, 2), 2);
    EXPECT(tensor_diff(x, .prepend = VECTOR(0), .append = VECTOR(16)), 1, 3, 5, 7);
    EXPECT(tensor_trapezoid(x), 9);
    EXPECT(tensor_cumulative_trapezoid(x, VECTOR(0, 2, 4)), 5, 18);
    EXPECT(tensor_trapezoid(x, tensor_to(VECTOR(4, 2, 0), TENSOR_U8)), -18);
    Tensor *whole = tensor_to(x, TENSOR_I64);
    EXPECT(tensor_to(tensor_trapezoid(whole), TENSOR_F64), 9);
    assert_int_equal(tensor_dtype(tensor_cumulative_trapezoid(whole, whole)), TENSOR_F32);
}

/* ---- distances ------------------------------------------------------------------------------- */

static void test_cdist_gradient_is_0_at_distance_0(void **state)
{
    (void)state;
    Tensor *a = leaf((double[]){ 1, 2, 4, 6 }, SHAPE(2, 2)), *b = leaf((double[]){ 1, 2 }, SHAPE(1, 2));
    EXPECT(tensor_cdist(a, b), 0, 5);
    EXPECT(GRADIENT(tensor_cdist(a, b), a), 0, 0, .6, .8);
    EXPECT(GRADIENT(tensor_cdist(a, b), b), -.6, -.8);
    EXPECT(tensor_pdist(a), 5);
    EXPECT(GRADIENT(tensor_pdist(a), a), -.6, -.8, .6, .8);
}

static void test_cdist_of_near_neighbours_keeps_its_digits(void **state)
{
    (void)state;
    Tensor *a = tensor_full(SHAPE(30, 2), 1e4, TENSOR_F32),
           *b = tensor_full(SHAPE(30, 2), 1e4 + .125, TENSOR_F32);
    assert_float_equal(tensor_get(tensor_cdist(a, b), DIMS(3, 4)), .125 * sqrt(2), 1e-7);
}

/* The short powers of f32 against those of f64, over several chunks; one set against a copy of itself. */
static void test_two_results_and_operands_in_their_order(void **state)
{
    (void)state;
    Tensor *x = VECTOR(1, 2, 6), *mean = NULL;
    EXPECT(tensor_var_mean(x, .mean = &mean), 7);
    EXPECT(mean, 3);
    EXPECT(tensor_std_mean(x, .correction = 0, .mean = &mean), sqrt(14. / 3));
    EXPECT(mean, 3);
    EXPECT(tensor_var_mean(x), 7);
    EXPECT(tensor_dist(VECTOR(1, 5), VECTOR(4, 1)), 5);
    EXPECT(tensor_dist(VECTOR(1, 5), VECTOR(4, 1), 1), 7);
    EXPECT(tensor_rfloat_power_scalar(x, 2), 2, 4, 64);
    EXPECT(tensor_float_power_scalar(x, 2), 1, 4, 36);
}

static void test_distances_of_any_power(void **state)
{
    (void)state;
    const double powers[] = { .5, 1.5, 3, 7.25 };
    tensor_manual_seed(3);
    Tensor *set = tensor_randn(SHAPE(5, 600), TENSOR_F32);
    tensor_fill_(tensor_narrow(set, 1, 7, 3), 0);
    for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
        Tensor *x = tensor_requires_grad_(tensor_clone(set), true),
               *wide = tensor_requires_grad_(tensor_to(set, TENSOR_F64), true);
        Tensor *y = tensor_cdist(x, x, powers[k]), *exact = tensor_cdist(wide, wide, powers[k]);
        assert_true(tensor_allclose(tensor_to(y, TENSOR_F64), exact, .rtol = 0x1p-23, .atol = 0));
        assert_true(tensor_equal(y, tensor_cdist(x, tensor_clone(x), powers[k])));
        Tensor *slopes = GRADIENT(tensor_pdist(wide, powers[k]), wide);
        const double most = tensor_item(tensor_max(tensor_abs(slopes)));
        assert_true(tensor_allclose(tensor_to(GRADIENT(tensor_pdist(x, powers[k]), x), TENSOR_F64), slopes,
                                    .rtol = 0, .atol = 0x1p-22 * most));
    }
    Tensor *none = tensor_requires_grad_(tensor_full(SHAPE(2, 2), NAN, TENSOR_F32), true);
    assert_true(
        isnan(tensor_get(GRADIENT(tensor_mul_scalar(tensor_cdist(none, none, 1.5), 0), none), DIMS(0, 0))));
}

/* ---- products -------------------------------------------------------------------------------- */

static void test_matrix_product_over_nothing_is_0(void **state)
{
    (void)state;
    Tensor *a = tensor_requires_grad_(tensor_zeros(SHAPE(2, 0), TENSOR_F64), true),
           *b = tensor_zeros(SHAPE(0, 2), TENSOR_F64);
    EXPECT(tensor_mm(a, b), 0, 0, 0, 0);
    EXPECT(tensor_addmm(tensor_ones(SHAPE(2), TENSOR_F64), a, b, .beta = 3), 3, 3, 3, 3);
    EXPECT(tensor_einsum("ij,jk->ik", TENSORS(a, b)), 0, 0, 0, 0);
    EXPECT(tensor_dot(tensor_zeros(SHAPE(0), TENSOR_F64), tensor_zeros(SHAPE(0), TENSOR_F64)), 0);
    assert_int_equal(tensor_numel(GRADIENT(tensor_mm(a, b), a)), 0);
    assert_int_equal(tensor_numel(tensor_mm(b, tensor_zeros(SHAPE(2, 0), TENSOR_F64))), 0);
}

static void test_beta_0_does_not_read_the_input(void **state)
{
    (void)state;
    Tensor *nan = tensor_full(SHAPE(2), NAN, TENSOR_F64), *one = tensor_ones(SHAPE(2, 2), TENSOR_F64);
    Tensor *v = tensor_ones(SHAPE(2), TENSOR_F64), *batch = tensor_ones(SHAPE(2, 2, 2), TENSOR_F64);
    EXPECT(tensor_addmm(nan, one, one, .beta = 0), 2, 2, 2, 2);
    EXPECT(tensor_addmv(nan, one, v, .beta = 0), 2, 2);
    EXPECT(tensor_addr(nan, v, v, .beta = 0), 1, 1, 1, 1);
    EXPECT(tensor_addbmm(nan, batch, batch, .beta = 0), 4, 4, 4, 4);
    EXPECT(tensor_baddbmm(nan, batch, batch, .beta = 0), 2, 2, 2, 2, 2, 2, 2, 2);
}

static void test_both_operands_the_same_matrix(void **state)
{
    (void)state;
    Tensor *a = leaf((double[]){ 1, 2, 3, 4 }, SHAPE(2, 2));
    EXPECT(tensor_mm(a, a), 7, 10, 15, 22);
    EXPECT(GRADIENT(tensor_mm(a, a), a), 7, 11, 9, 13);
    EXPECT(GRADIENT(tensor_matrix_power(a, 2), a), 7, 11, 9, 13);
    EXPECT(GRADIENT(tensor_mm(a, tensor_transpose(a, 0, 1)), a), 8, 12, 8, 12);
}

static void test_transposed_and_strided_operands(void **state)
{
    (void)state;
    Tensor *a = tensor_randn(SHAPE(40, 30), TENSOR_F32), *b = tensor_randn(SHAPE(40, 50), TENSOR_F32);
    Tensor *at = tensor_transpose(a, 0, 1), *odd = tensor_slice(b, 1, 0, INT64_MAX, 2);
    assert_true(tensor_equal(tensor_mm(at, b), tensor_mm(tensor_contiguous(at), b)));
    assert_true(tensor_equal(tensor_mm(at, odd), tensor_mm(at, tensor_contiguous(odd))));
    assert_true(tensor_equal(tensor_einsum("ki,kj", TENSORS(a, odd)), tensor_mm(at, odd)));
}

static void test_broadcast_batches_sum_their_gradients(void **state)
{
    (void)state;
    Tensor *a = leaf((double[]){ 1, 2 }, SHAPE(1, 1, 2)), *b = leaf((double[]){ 1, 2, 3, 4 }, SHAPE(2, 2, 1));
    EXPECT(tensor_matmul(a, b), 5, 11);
    EXPECT(GRADIENT(tensor_matmul(a, b), a), 4, 6);
    Tensor *row = VECTOR(1, 2);
    EXPECT(tensor_matmul(row, tensor_detach(b)), 5, 11);
    EXPECT(GRADIENT(tensor_matmul(row, tensor_detach(b)), row), 4, 6);
}

static void test_linear_bias_sums_over_all_leading_dims(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(2, 3, 4), TENSOR_F64), *w = leaf((double[]){ 1, 2, 3, 4 }, SHAPE(1, 4)),
           *b = VECTOR(1);
    EXPECT(GRADIENT(tensor_linear(x, w, b), b), 6);
    EXPECT(GRADIENT(tensor_linear(x, w, b), w), 6, 6, 6, 6);
    EXPECT(tensor_linear(VECTOR(1, 1, 1, 1), w, NULL), 10);
}

static void test_a_weight_used_twice_adds_its_gradients(void **state)
{
    (void)state;
    Tensor *w = leaf((double[]){ 1, 2, 3, 4 }, SHAPE(2, 2)), *x = tensor_ones(SHAPE(1, 2), TENSOR_F64);
    EXPECT(tensor_linear(tensor_linear(x, w, NULL), w, NULL), 17, 37);
    EXPECT(GRADIENT(tensor_linear(tensor_linear(x, w, NULL), w, NULL), w), 7, 11, 9, 13);
}

static void test_einsum_reads_its_language(void **state)
{
    (void)state;
    Tensor *a = leaf((double[]){ 1, 2, 3, 4 }, SHAPE(2, 2)), *v = VECTOR(1, 10);
    EXPECT(tensor_einsum(" i j , j -> i ", TENSORS(a, v)), 21, 43);
    EXPECT(tensor_einsum("ba", TENSORS(a)), 1, 3, 2, 4); /* no result named: "ba->ab" */
    EXPECT(tensor_einsum("ii", TENSORS(a)), 5);
    EXPECT(tensor_einsum("ii->i", TENSORS(a)), 1, 4);
    EXPECT(GRADIENT(tensor_einsum("ii->i", TENSORS(a)), a), 1, 0, 0, 1);
    EXPECT(tensor_einsum("ij->", TENSORS(a)), 10);
    assert_true(tensor_shares_storage(tensor_einsum("ij->ij", TENSORS(a)), a)); /* a view, as PyTorch's */
    EXPECT(tensor_einsum("...j,j->...", TENSORS(a, v)), 21, 43);
    EXPECT(tensor_einsum("...,...->...", TENSORS(a, v)), 1, 20, 3, 40);
    EXPECT(tensor_einsum("ij,jk,k->i", TENSORS(a, a, v)), 107, 235);
    EXPECT(tensor_einsum("ij,k->k", TENSORS(a, v)), 10, 100); /* ij is summed out of a alone */
}

static void test_einsum_errors_name_operand_and_index(void **state)
{
    (void)state;
    Tensor *a = tensor_ones(SHAPE(2, 3), TENSOR_F64), *b = tensor_ones(SHAPE(4, 5), TENSOR_F64);
    expect_error(tensor_einsum("ij,jk->ik", TENSORS(a, b)), TENSOR_ESHAPE,
                 "index j is 4 in operand 2, [4, 5], and 3 in operand 1, [2, 3]");
    expect_error(tensor_einsum("ij,k->ik", TENSORS(a, b)), TENSOR_ESHAPE,
                 "operand 2, [4, 5], has 2 dimensions");
    expect_error(tensor_einsum("ii", TENSORS(a)), TENSOR_ESHAPE, "operand 1, [2, 3]: index i is 2 and 3");
    expect_error(tensor_einsum("ij->ijz", TENSORS(a)), TENSOR_EVALUE, "index z");
    expect_error(tensor_einsum("ij->ii", TENSORS(a)), TENSOR_EVALUE, "index i twice");
    expect_error(tensor_einsum("ij,kl", TENSORS(a)), TENSOR_EVALUE,
                 "operands in the equation: 2 or more, given: 1");
    expect_error(tensor_einsum("i$", TENSORS(a)), TENSOR_EVALUE, "'$' in operand 1");
    expect_error(tensor_einsum(NULL, TENSORS(a)), TENSOR_ENULL, "NULL");
}

static void test_products_with_options(void **state)
{
    (void)state;
    Tensor *a = leaf((double[]){ 1, 2, 3, 4 }, SHAPE(2, 2)), *v = VECTOR(1, 10);
    EXPECT(tensor_tensordot(a, v, 1), 21, 43);
    EXPECT(tensor_tensordot(a, v, .dims_a = DIMS(0), .dims_b = DIMS(0)), 31, 42);
    EXPECT(tensor_tensordot(a, a), 30);
    EXPECT(tensor_inner(a, v), 21, 43);
    EXPECT(tensor_vdot(v, v), 101);
    EXPECT(tensor_kron(v, a), 1, 2, 10, 20, 3, 4, 30, 40);
    EXPECT(tensor_cross(VECTOR(1, 0, 0), VECTOR(0, 1, 0)), 0, 0, 1);
    EXPECT(tensor_multi_dot(TENSORS(v, a, a, v)), 2457);
    EXPECT(tensor_chain_matmul(TENSORS(a, a)), 7, 10, 15, 22);
    EXPECT(tensor_matrix_power(a, 0), 1, 0, 0, 1);
    EXPECT(tensor_trace(a), 5);
    EXPECT(tensor_block_diag(TENSORS(v, a)), 1, 10, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4);
    EXPECT(tensor_vander(v, .n = 3), 1, 1, 1, 100, 10, 1);
    EXPECT(tensor_vander(v, 2, true), 1, 1, 1, 10);
    EXPECT(tensor_cov(a), .5, .5, .5, .5);
    EXPECT(tensor_corrcoef(a), 1, 1, 1, 1);
    EXPECT(tensor_bilinear(v, v, tensor_detach(tensor_unsqueeze(a, 0)), VECTOR(7)), 458);
}

#define T(name) cmocka_unit_test(test_##name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(sum_of_nothing_is_0_and_mean_nan),
        T(sum_over_a_list_of_dims),
        T(prod_with_one_zero_has_one_gradient),
        T(prod_with_two_zeros_has_none),
        T(prod_with_a_zero_has_second_derivatives),
        T(var_without_degrees_of_freedom),
        T(std_of_large_and_small_values),
        T(norm_of_large_and_small_values),
        T(std_gradient_is_0_where_std_is_0),
        T(extremes_share_the_gradient_among_ties),
        T(extremes_share_the_gradient_among_nans),
        T(max_along_a_dim_takes_the_first_index),
        T(nan_is_the_largest_in_every_order),
        T(sort_is_stable),
        T(norm_gradient_is_0_where_the_norm_is_0),
        T(square_root_of_a_sum_of_squares_has_no_gradient_at_0),
        T(norm_of_low_order_skips_zeros),
        T(infinite_norm_shares_ties),
        T(logsumexp_subtracts_the_maximum),
        T(normalize_of_a_zero_vector),
        T(cosine_similarity_of_a_zero_vector),
        T(nan_is_skipped_and_gets_no_gradient),
        T(quantile_between_two_elements),
        T(cumsum_gradient_is_the_sum_from_the_other_end),
        T(cumprod_with_zeros),
        T(products_of_f32_are_those_of_f64_rounded),
        T(cummax_takes_the_last_of_equal_elements),
        T(logcumsumexp_of_infinities),
        T(diff_joins_what_is_given),
        T(cdist_gradient_is_0_at_distance_0),
        T(two_results_and_operands_in_their_order),
        T(distances_of_any_power),
        T(cdist_of_near_neighbours_keeps_its_digits),
        T(matrix_product_over_nothing_is_0),
        T(beta_0_does_not_read_the_input),
        T(both_operands_the_same_matrix),
        T(transposed_and_strided_operands),
        T(broadcast_batches_sum_their_gradients),
        T(linear_bias_sums_over_all_leading_dims),
        T(a_weight_used_twice_adds_its_gradients),
        T(einsum_reads_its_language),
        T(einsum_errors_name_operand_and_index),
        T(products_with_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
