/* test_traps_more.c - traps of many families that stand in no other list: products of every rank, indices of
 * rank 0 and none, who gets a gradient and who not, arguments by position, random variables with a gradient,
 * edges of single ops. One test a trap. */
#include "traps.h"

/* ---- products -------------------------------------------------------------------------------- */

/* The definition: every pair of elements multiplied, and summed. */
static Tensor *product(Tensor *a, Tensor *b)
{
    const bool row = tensor_ndim(a) == 1, column = tensor_ndim(b) == 1;
    Tensor *left = tensor_unsqueeze(row ? tensor_unsqueeze(a, 0) : a, -1),
           *right = tensor_unsqueeze(column ? tensor_unsqueeze(b, 1) : b, -3);
    Tensor *y = tensor_sum(tensor_mul(left, right), -2);
    if (column) y = tensor_squeeze(y, -1);
    return row ? tensor_squeeze(y, column ? -1 : -2) : y;
}

static void check_product(TensorShape sa, TensorShape sb)
{
    Tensor *a = tensor_requires_grad_(tensor_randn(sa, TENSOR_F64), true),
           *b = tensor_requires_grad_(tensor_randn(sb, TENSOR_F64), true);
    Tensor *y = tensor_matmul(a, b), *want = product(a, b);
    assert_true(y && tensor_ndim(y) == tensor_ndim(want) && tensor_allclose(y, want, 1e-12, 1e-12, false));
    assert_true(tensor_allclose(gradient(y, a), gradient(want, a), 1e-12, 1e-9, false));
    assert_true(tensor_allclose(gradient(y, b), gradient(want, b), 1e-12, 1e-9, false));
}

static void test_matmul_of_every_pair_of_ranks(void **state)
{
    (void)state;
    check_product(SHAPE(20), SHAPE(20));
    check_product(SHAPE(5, 10), SHAPE(10));
    check_product(SHAPE(10), SHAPE(10, 5));
    check_product(SHAPE(5, 10), SHAPE(10, 5));
    check_product(SHAPE(5, 0), SHAPE(0, 10));
    check_product(SHAPE(5, 5, 10), SHAPE(10));
    check_product(SHAPE(5, 5, 10), SHAPE(10, 5));
    check_product(SHAPE(5, 5, 0), SHAPE(0, 5));
    check_product(SHAPE(10), SHAPE(5, 10, 5));
    check_product(SHAPE(5, 10), SHAPE(5, 10, 5));
    check_product(SHAPE(0, 0), SHAPE(5, 0, 0));
    check_product(SHAPE(5, 5, 10, 10), SHAPE(10, 10));
    check_product(SHAPE(10, 10), SHAPE(5, 5, 10, 10));
    check_product(SHAPE(5, 5, 5, 10), SHAPE(5, 1, 10, 5));
    check_product(SHAPE(5, 5, 5), SHAPE(1, 5, 5));
}

/* ---- indices --------------------------------------------------------------------------------- */

static void test_indices_may_be_empty(void **state)
{
    (void)state;
    Tensor *none = tensor_zeros(SHAPE(0), TENSOR_I64), *x = leaf(SHAPE(3), "1 2 3"),
           *src = leaf(SHAPE(0), "");
    assert_true(has(tensor_gather(x, 0, none), SHAPE(0), ""));
    assert_true(has(gradient(tensor_gather(x, 0, none), x), SHAPE(3), "0 0 0"));
    assert_true(has(gradient(tensor_index_select(x, 0, none), x), SHAPE(3), "0 0 0"));
    assert_true(has(gradient(tensor_take(x, none), x), SHAPE(3), "0 0 0"));
    Tensor *written[] = { tensor_scatter(x, 0, none, src),
                          tensor_scatter_add(x, 0, none, src),
                          tensor_index_add(x, 0, none, src),
                          tensor_index_copy(x, 0, none, src),
                          tensor_scatter_reduce(x, 0, none, src, TENSOR_INTO_MEAN, .include_self = false),
                          tensor_index_put(x, TENSORS(none), src) };
    for (int i = 0; i < (int)(sizeof written / sizeof *written); i++) {
        assert_true(has(written[i], SHAPE(3), "1 2 3"));
        assert_true(has(gradient(written[i], x), SHAPE(3), "1 2 3"));
    }
    Tensor *table = leaf(SHAPE(2, 2), "1 2 3 4");
    assert_true(has(gradient(tensor_embedding(none, table), table), SHAPE(2, 2), "0 0 0 0"));
}

static void test_indices_may_be_scalars(void **state)
{
    (void)state;
    Tensor *i = indices(SHAPE(), "1"), *zero = indices(SHAPE(), "0"), *x = leaf(SHAPE(), "5"),
           *table = leaf(SHAPE(2, 2), "1 2 3 4");
    assert_true(has(tensor_embedding(i, table), SHAPE(2), "3 4"));
    assert_true(has(gradient(tensor_embedding(i, table), table), SHAPE(2, 2), "0 0 1 2"));
    assert_true(has(tensor_gather(x, 0, zero), SHAPE(), "5"));
    assert_true(has(gradient(tensor_gather(x, 0, zero), x), SHAPE(), "1"));
    assert_true(has(tensor_scatter_add(x, 0, zero, leaf(SHAPE(), "2")), SHAPE(), "7"));
    assert_true(has(tensor_index_select(x, -1, zero), SHAPE(), "5"));
    assert_true(has(tensor_one_hot(i, 3), SHAPE(3), "0 1 0"));
}

static void test_movedim_and_unflatten_count_from_the_end(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(2, 3, 4), TENSOR_F32), *y = tensor_movedim(x, -1, 0),
           *z = tensor_unflatten(x, -1, DIMS(2, -1));
    assert_true(tensor_size(y, 0) == 4 && tensor_size(y, 2) == 3);
    y = tensor_movedims(x, DIMS(0, -1), DIMS(-1, 0));
    assert_true(tensor_size(y, 0) == 4 && tensor_size(y, 1) == 3 && tensor_size(y, 2) == 2);
    assert_true(tensor_ndim(z) == 4 && tensor_size(z, 2) == 2 && tensor_size(z, 3) == 2);
    assert_refused(tensor_movedim(x, 0, 3), TENSOR_EINDEX);
}

static void test_rank_0_has_the_dims_0_and_minus_1(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(), "3"), *at;
    assert_true(has(tensor_sum(x, 0), SHAPE(), "3") && has(tensor_mean(x, -1), SHAPE(), "3"));
    assert_true(has(gradient(tensor_prod(x, 0), x), SHAPE(), "1"));
    assert_true(has(tensor_softmax(x, -1), SHAPE(), "1") && has(tensor_cumsum(x, 0), SHAPE(), "3"));
    assert_true(has(tensor_max_dim(x, 0, .indices = &at), SHAPE(), "3") && has(at, SHAPE(), "0"));
    assert_true(has(tensor_sort(x), SHAPE(), "3") && has(tensor_logsumexp(x, 0), SHAPE(), "3"));
    assert_refused(tensor_sum(x, 1), TENSOR_EINDEX);
}

/* ---- who gets a gradient --------------------------------------------------------------------- */

static void test_integers_and_bools_never_get_gradients(void **state)
{
    (void)state;
    assert_refused(tensor_requires_grad_(tensor_zeros(SHAPE(2), TENSOR_I64), true), TENSOR_EDTYPE);
    assert_refused(tensor_requires_grad_(tensor_zeros(SHAPE(2), TENSOR_BOOL), true), TENSOR_EDTYPE);
    Tensor *x = leaf(SHAPE(3), "1 3 2"), *at;
    tensor_topk(x, 2, .indices = &at);
    Tensor *results[] = { at,
                          tensor_argmax(x),
                          tensor_argsort(x),
                          tensor_to(x, TENSOR_I64),
                          tensor_gt_scalar(x, 2),
                          tensor_eq(x, x),
                          tensor_isnan(x),
                          tensor_any(x),
                          tensor_all(x),
                          tensor_count_nonzero(x),
                          tensor_nonzero(x),
                          tensor_logical_not(x),
                          tensor_isclose(x, x) };
    for (int i = 0; i < (int)(sizeof results / sizeof *results); i++)
        assert_true(results[i] && !tensor_requires_grad(results[i]));
    Tensor *y = tensor_mul(x, indices(SHAPE(3), "2 3 4")); /* beside an integer */
    assert_true(has(gradient(y, x), SHAPE(3), "2 6 12"));
}

static void test_only_gradients_that_are_wanted_are_formed(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(1, 2), "1 2"), *w = numbers(SHAPE(1, 2), "3 4", TENSOR_F64),
           *y = tensor_linear(x, w, NULL);
    assert_int_equal(tensor_backward(y), 0);
    assert_true(has(tensor_grad(x), SHAPE(1, 2), "3 4"));
    assert_null(tensor_grad(w));
    Tensor *a = leaf(SHAPE(2), "1 2"), *b = leaf(SHAPE(2), "3 4"); /* wanted of one operand alone */
    assert_true(has(gradient(tensor_mul(a, b), a), SHAPE(2), "3 8"));
    assert_null(tensor_grad(b));
}

static void test_order_statistics_send_the_gradient_to_their_index_alone(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(5), "2 7 2 7 1");
    assert_true(has(gradient(tensor_kthvalue(x, 1), x), SHAPE(5), "0 0 0 0 1"));
    assert_true(has(gradient(tensor_topk(x, 3), x), SHAPE(5), "3 1 0 2 0"));
    assert_true(has(gradient(tensor_topk(x, 2, .largest = false), x), SHAPE(5), "2 0 0 0 1"));
    assert_true(has(gradient(tensor_sort(x, .descending = true), x), SHAPE(5), "3 1 4 2 5"));
    assert_true(has(gradient(tensor_max_dim(x, 0), x), SHAPE(5), "0 1 0 0 0"));
    assert_true(has(gradient(tensor_mode(x), x), SHAPE(5), "0 0 1 0 0"));
    assert_true(has(tensor_topk(x, 0), SHAPE(0), ""));
    assert_true(has(gradient(tensor_median(x), x), SHAPE(5), "0.5 0 0.5 0 0")); /* of all elements: shared */
}

static void test_div_with_a_rounding_has_gradient_0(void **state)
{
    (void)state;
    Tensor *a = leaf(SHAPE(2), "7 -7"), *b = leaf(SHAPE(2), "2 2"),
           *down = tensor_div_rounding(a, b, TENSOR_FLOOR);
    assert_true(has(down, SHAPE(2), "3 -4") &&
                has(tensor_div_rounding(a, b, TENSOR_TRUNC), SHAPE(2), "3 -3"));
    assert_true(has(gradient(down, a), SHAPE(2), "0 0") && has(gradient(down, b), SHAPE(2), "0 0"));
}

static void test_both_operands_broadcast_and_sum_their_gradients(void **state)
{
    (void)state;
    Tensor *a = leaf(SHAPE(2, 1), "1 2"), *b = leaf(SHAPE(1, 3), "3 4 5"), *c = leaf(SHAPE(), "2");
    Tensor *y = tensor_where(tensor_gt(a, b), a, tensor_mul(b, c));
    assert_true(has(y, SHAPE(2, 3), "6 8 10 6 8 10"));
    assert_true(has(gradient(y, a), SHAPE(2, 1), "0 0"));
    assert_true(has(gradient(y, b), SHAPE(1, 3), "10 14 18"));
    assert_true(has(gradient(y, c), SHAPE(), "88"));
    Tensor *none = leaf(SHAPE(0, 1, 3), ""), *many = leaf(SHAPE(0, 10, 3), "");
    assert_int_equal(tensor_numel(gradient(tensor_div(none, many), none)), 0);
}

static void test_comparisons_of_integers_with_a_fraction(void **state)
{
    (void)state;
    Tensor *i = indices(SHAPE(3), "2 3 -3"), *y = tensor_gt_scalar(i, 2.5);
    assert_int_equal(tensor_dtype(y), TENSOR_BOOL);
    assert_true(has(y, SHAPE(3), "0 1 0") && has(tensor_eq_scalar(i, 2.5), SHAPE(3), "0 0 0"));
    assert_true(has(tensor_lt(i, numbers(SHAPE(), "2.5", TENSOR_F32)), SHAPE(3), "1 0 1"));
    assert_true(has(tensor_eq(i, tensor_ones(SHAPE(3), TENSOR_BOOL)), SHAPE(3), "0 0 0"));
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void test_lerp_gives_both_its_ends_exactly(void **state)
{
    (void)state;
    Tensor *a = numbers(SHAPE(2), "1e8 -3", TENSOR_F32), *b = numbers(SHAPE(2), "0.1 1e9", TENSOR_F32),
           *one = tensor_ones(SHAPE(), TENSOR_F32);
    assert_true(tensor_equal(tensor_lerp(a, b, 1), b) && tensor_equal(tensor_lerp(a, b, 0), a));
    assert_true(tensor_equal(tensor_lerp_tensor(a, b, one), b) &&
                tensor_equal(tensor_lerp_tensor(a, b, tensor_zeros_like(one)), a));
    Tensor *average = tensor_clone(a);
    assert_true(tensor_equal(tensor_lerp_(average, b, 1), b));
}

/* ---- random variables with a gradient -------------------------------------------------------- */

static void test_reparameterised_noise_passes_gradients_to_mean_and_deviation(void **state)
{
    (void)state;
    Tensor *mean = leaf(SHAPE(3), "1 2 3"), *log_var = leaf(SHAPE(3), "0 1 -1"),
           *std = tensor_exp(tensor_mul_scalar(log_var, 0.5));
    Tensor *noise = tensor_randn_like(std), *z = tensor_add(mean, tensor_mul(std, noise));
    assert_false(tensor_requires_grad(noise));
    assert_true(has(gradient(z, mean), SHAPE(3), "1 2 3"));
    Tensor *want =
        tensor_mul(tensor_mul(noise, tensor_mul_scalar(std, 0.5)), numbers(SHAPE(3), "1 2 3", TENSOR_F64));
    assert_true(tensor_allclose(gradient(z, log_var), want, 1e-12, 1e-12, false));
}

static void test_draws_have_no_gradient(void **state)
{
    (void)state;
    Tensor *p = tensor_sigmoid(leaf(SHAPE(2, 3), "0 1 2 -1 0 1"));
    assert_false(tensor_requires_grad(tensor_multinomial(p, 2, false)));
    assert_false(tensor_requires_grad(tensor_bernoulli(p)));
}

static void test_categorical_logits_are_normalised(void **state)
{
    (void)state;
    Tensor *logits = leaf(SHAPE(3), "1 2 3"), *moved = tensor_add_scalar(logits, 100),
           *i = indices(SHAPE(), "2");
    Tensor *y = tensor_categorical_log_prob(logits, i);
    assert_true(has(y, SHAPE(), "-0.40760596444438") &&
                tensor_allclose(y, tensor_categorical_log_prob(moved, i), 1e-12, 0, false));
    assert_true(has(gradient(y, logits), SHAPE(3), "-0.0900305731704 -0.2447284710548 0.3347590442252"));
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void test_tensordot_over_empty_lists_of_dims_is_the_outer_product(void **state)
{
    (void)state;
    Tensor *a = leaf(SHAPE(2), "1 2"), *b = leaf(SHAPE(2), "3 5");
    assert_true(has(tensor_tensordot(a, b, .dims_a = DIMS(), .dims_b = DIMS()), SHAPE(2, 2), "3 5 6 10"));
    assert_true(has(tensor_tensordot(a, b, 0), SHAPE(2, 2), "3 5 6 10"));
}

static void test_det_of_an_infinite_matrix_has_the_gradient_nan(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 2), "inf 1 1 2"), *y = tensor_det(x);
    assert_true(y && tensor_gradients(y, x) && !tensor_error());
}

static void test_logsumexp_of_integers_is_f32(void **state)
{
    (void)state;
    Tensor *y = tensor_logsumexp(indices(SHAPE(2, 2), "0 0 7 7"), 1);
    assert_true(has(y, SHAPE(2), "0.69314718 7.69314718") && tensor_dtype(y) == TENSOR_F32);
}

static void test_a_nan_shows_in_the_gradient_of_logcumsumexp(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(3), "1 nan 2"), *y = tensor_logcumsumexp(x, 0),
           *ones = tensor_ones(SHAPE(3), TENSOR_F64);
    for (int record = 0; record < 2; record++)
        assert_true(has(tensor_gradients(y, x, ones, true, record), SHAPE(3), "nan nan nan"));
}

static void test_batch_norm_of_nothing(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(0), "");
    assert_true(has(tensor_batch_norm(x, .training = true), SHAPE(0), ""));
    assert_true(has(gradient(tensor_batch_norm(x, .training = true), x), SHAPE(0), ""));
}

/* The second derivatives of the sum of y, where each element depends on one of x. */
static Tensor *curvature(Tensor *y, Tensor *x)
{
    Tensor *g = tensor_gradients(tensor_sum(y), x, .create_graph = true);
    return tensor_gradients(tensor_sum(g), x, .allow_unused = true, .materialize_grads = true);
}

static void test_bent_losses_are_parabolas_through_0(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(5), "-3 -2 0 1 2"), *t = numbers(SHAPE(5), "0 0 0 0 0", TENSOR_F64);
    assert_true(has(curvature(tensor_huber_loss(x, t, .reduction = TENSOR_SUM, .delta = 2), x), SHAPE(5),
                    "0 0 1 1 0"));
    assert_true(has(curvature(tensor_smooth_l1_loss(x, t, .reduction = TENSOR_SUM, .beta = 2), x), SHAPE(5),
                    "0 0 0.5 0.5 0"));
}

static void test_bce_of_tiny_probabilities_keeps_their_digits(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(numbers(SHAPE(2), "1e-9 0", TENSOR_F32), true),
           *t = numbers(SHAPE(2), "0 0", TENSOR_F32);
    Tensor *y = tensor_binary_cross_entropy(x, t, .reduction = TENSOR_NONE);
    assert_true(has(tensor_mul_scalar(y, 1e9), SHAPE(2), "1 0") && has(gradient(y, x), SHAPE(2), "1 0"));
}

/* ---- arguments and names --------------------------------------------------------------------- */

static void test_arguments_by_position_come_in_pytorchs_order(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(1, 2, 6, 7), TENSOR_F64), *flat = tensor_flatten(x, 0, 2);
    assert_true(
        tensor_equal(tensor_max_pool2d(x, 2, 1, 1, 2, true),
                     tensor_max_pool2d(x, 2, .stride = 1, .padding = 1, .dilation = 2, .ceil_mode = true)));
    assert_true(tensor_equal(tensor_max_pool1d(flat, 3, 2, 0, 1, true),
                             tensor_max_pool1d(flat, 3, .stride = 2, .ceil_mode = true)));
    assert_true(tensor_equal(
        tensor_avg_pool2d(x, 4, 3, 1, true, false),
        tensor_avg_pool2d(x, 4, .stride = 3, .padding = 1, .ceil_mode = true, .count_include_pad = false)));
    assert_true(tensor_equal(tensor_pdist(flat, 1), tensor_pdist(flat, .p = 1)));
    assert_true(
        has(tensor_smooth_l1_loss(numbers(SHAPE(2), "0 3", TENSOR_F64), numbers(SHAPE(2), "1 0", TENSOR_F64),
                                  .reduction = TENSOR_SUM, .beta = 2),
            SHAPE(), "2.25"));
    assert_true(
        has(tensor_huber_loss(numbers(SHAPE(2), "0 3", TENSOR_F64), numbers(SHAPE(2), "1 0", TENSOR_F64),
                              .reduction = TENSOR_SUM, .delta = 2),
            SHAPE(), "4.5"));
}

static void test_other_names_are_the_same_ops(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 1), "4 9"), *y = leaf(SHAPE(2, 1), "2 3");
    assert_true(has(tensor_broadcast_to(x, SHAPE(2, 2)), SHAPE(2, 2), "4 4 9 9"));
    assert_true(has(tensor_true_divide(x, y), SHAPE(2, 1), "2 3") &&
                has(tensor_multiply(x, y), SHAPE(2, 1), "8 27"));
    assert_true(has(tensor_rsub(y, x), SHAPE(2, 1), "2 6") && has(tensor_clip(x, 5, 6), SHAPE(2, 1), "5 6"));
    assert_true(has(tensor_concat(TENSORS(x, y), 1), SHAPE(2, 2), "4 2 9 3") &&
                has(tensor_swapaxes(x, 0, 1), SHAPE(1, 2), "4 9"));
    assert_true(has(tensor_flipud(x), SHAPE(2, 1), "9 4") && has(tensor_fliplr(x), SHAPE(2, 1), "4 9"));
    assert_true(has(tensor_greater(x, y), SHAPE(2, 1), "1 1") && tensor_dtype(tensor_half(x)) == TENSOR_F16);
}

/* Wherever it lies in what is reduced block by block. */
static void test_nan_wins_in_every_block_of_a_long_reduction(void **state)
{
    (void)state;
    enum { N = 20000 };
    for (int at = 0; at < N; at += 1999) {
        Tensor *x = tensor_randn(SHAPE(N), TENSOR_F32);
        ((float *)tensor_data(x))[at] = NAN;
        assert_true(isnan(tensor_item(tensor_amax(x))) && isnan(tensor_item(tensor_amin(x))) &&
                    isnan(tensor_item(tensor_norm(x, .p = INFINITY))));
        assert_true(tensor_item_i64(tensor_argmax(x)) == at && tensor_item_i64(tensor_argmin(x)) == at);
        assert_true(isnan(tensor_item(tensor_sum(x))) && isnan(tensor_item(tensor_prod(x))) &&
                    isnan(tensor_item(tensor_logsumexp(x))));
    }
}

/* In f32 or double, and rounded: half a place of f16, and what f32 leaves. */
static void test_halves_of_rare_rows(void **state)
{
    (void)state;
    Tensor *a = tensor_to(tensor_rand(SHAPE(400, 1), TENSOR_F64), TENSOR_F16),
           *b = tensor_to(tensor_rand(SHAPE(400), TENSOR_F64), TENSOR_F16);
    Tensor *p = tensor_to(a, TENSOR_F64), *q = tensor_to(b, TENSOR_F64);
    Tensor *angle = tensor_to(tensor_atan2(a, b), TENSOR_F64),
           *length = tensor_to(tensor_hypot(a, b), TENSOR_F64);
    assert_true(tensor_allclose(angle, tensor_atan2(p, q), 0x1.01p-11, 0x1p-25, false));
    assert_true(tensor_allclose(length, tensor_hypot(p, q), 0x1.01p-11, 0x1p-25, false));
}

static void test_points_at_distance_0_have_no_gradient_whatever_comes_back(void **state)
{
    (void)state;
    for (int p = 1; p <= 2; p++) {
        Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(2, 1), TENSOR_F64), true);
        Tensor *all = tensor_mul_scalar(tensor_sum(tensor_cdist(x, x, .p = p)), INFINITY),
               *each = tensor_mul_scalar(tensor_sum(tensor_pdist(x, .p = p)), INFINITY);
        assert_true(has(tensor_gradients(all, x), SHAPE(2, 1), "0 0"));
        assert_true(has(tensor_gradients(each, x), SHAPE(2, 1), "0 0"));
    }
}

static void test_attention_without_a_score_is_0_beside_nan(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(1, 2, 3), TENSOR_F64), *v = tensor_full(SHAPE(1, 2, 3), NAN, TENSOR_F64);
    Tensor *y =
        tensor_scaled_dot_product_attention(x, x, v, .attn_mask = tensor_zeros(SHAPE(2, 2), TENSOR_BOOL));
    assert_true(has(y, SHAPE(1, 2, 3), "0 0 0 0 0 0"));
}

static void test_max_pool_of_a_plane_that_32_bits_cannot_count(void **state)
{
    (void)state;
    Tensor *one = tensor_ones(SHAPE(1), TENSOR_F32);
    Tensor *line = tensor_expand(one, SHAPE(1, (int64_t)1 << 31)),
           *plane = tensor_expand(one, SHAPE(1, 1 << 16, 1 << 15));
    assert_refused(tensor_max_pool1d(line, .kernel_size = 1 << 20), TENSOR_ESHAPE);
    assert_refused(tensor_max_pool2d(plane, .kernel_size = 1 << 15), TENSOR_ESHAPE);
    assert_refused(tensor_adaptive_max_pool2d(plane, SHAPE(1, 1)), TENSOR_ESHAPE);
    /* below it, but for the padding */
    plane = tensor_expand(one, SHAPE(1, (1 << 16) - 2, (1 << 15) - 2));
    assert_refused(tensor_max_pool2d(plane, .kernel_size = 1 << 15, .padding = 1), TENSOR_ESHAPE);
}

static void test_embedding_bag_of_no_index_is_0_in_every_mode(void **state)
{
    (void)state;
    Tensor *none = tensor_zeros(SHAPE(0), TENSOR_I64), *offsets = tensor_zeros(SHAPE(2), TENSOR_I64);
    const TensorBagMode modes[] = { TENSOR_BAG_SUM, TENSOR_BAG_MEAN, TENSOR_BAG_MAX };
    for (int i = 0; i < 6; i++) {
        Tensor *table = tensor_requires_grad_(tensor_ones(SHAPE(i / 3, 2), TENSOR_F64), true);
        Tensor *y = tensor_embedding_bag(none, table, offsets, .mode = modes[i % 3]);
        assert_true(has(y, SHAPE(2, 2), "0 0 0 0"));
        Tensor *g = tensor_gradients(tensor_sum(y), table, .create_graph = true);
        assert_true(g && tensor_numel(g) == i / 3 * 2 && tensor_item(tensor_sum(g)) == 0);
    }
}

/* Numbers at and beyond the ends of the dtype are compared as numbers. */
static void test_comparisons_at_the_ends_of_integer_dtypes(void **state)
{
    (void)state;
    static const struct {
        TensorDtype dtype;
        double least, most; /* both exact in f64 */
    } of[] = { { TENSOR_BOOL, 0, 1 }, { TENSOR_U8, 0, 255 }, { TENSOR_I32, -0x1p31, 0x1p31 - 1 } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int beyond = -1; beyond <= 1; beyond++) {
            const double low = of[i].least + beyond, high = of[i].most + beyond;
            Tensor *least = tensor_full(SHAPE(1), of[i].least, of[i].dtype),
                   *most = tensor_full(SHAPE(1), of[i].most, of[i].dtype);
            assert_true(tensor_item(tensor_lt_scalar(least, low)) == (of[i].least < low));
            assert_true(tensor_item(tensor_gt_scalar(least, low)) == (of[i].least > low));
            assert_true(tensor_item(tensor_eq_scalar(most, high)) == (of[i].most == high));
            assert_true(tensor_item(tensor_gt_scalar(most, high)) == (of[i].most > high));
        }
    Tensor *five = tensor_full(SHAPE(1), 5, TENSOR_I64);
    assert_true(tensor_item(tensor_lt_scalar(five, 0x1p63)) == 1);
    assert_true(tensor_item(tensor_gt_scalar(five, -0x1p64)) == 1);
    assert_true(tensor_item(tensor_lt_scalar(tensor_full(SHAPE(1), 5, TENSOR_U8), 1e30)) == 1);
}

/* Wide windows are gone over in vectors: the first of equal maxima and the last NaN count. */
static void test_adaptive_max_of_wide_windows(void **state)
{
    (void)state;
    enum { MOST = 75, DRAWS = 60 };
    for (int draw = 0; draw < DRAWS; draw++) {
        const TensorDtype dtype = draw % 2 ? TENSOR_F32 : TENSOR_F64;
        const int64_t n = 1 + draw * 13 % MOST;
        Tensor *x = tensor_to(tensor_randint(0, 9, SHAPE(2, n)), dtype), *indices = NULL;
        if (draw % 3 == 0) x = tensor_full_like(x, -INFINITY);
        if (draw % 5 == 0) assert_non_null(tensor_fill_(tensor_select(x, 1, n / 2), NAN));
        if (draw % 10 == 0) assert_non_null(tensor_fill_(tensor_select(x, 1, n / 3), NAN));
        Tensor *y = tensor_adaptive_max_pool1d(x, SHAPE(1), .indices = &indices);
        for (int64_t row = 0; row < 2; row++) {
            int64_t at = 0;
            double best = -INFINITY;
            for (int64_t i = 0; i < n; i++) {
                const double v = tensor_get(x, SHAPE(row, i));
                if (v > best || v != v) best = v, at = i;
            }
            assert_int_equal((int64_t)tensor_get(indices, SHAPE(row, 0)), at);
            const double found = tensor_get(y, SHAPE(row, 0));
            assert_true(found == best || (found != found && best != best));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_matmul_of_every_pair_of_ranks),
        TEST(test_indices_may_be_empty),
        TEST(test_indices_may_be_scalars),
        TEST(test_movedim_and_unflatten_count_from_the_end),
        TEST(test_rank_0_has_the_dims_0_and_minus_1),
        TEST(test_integers_and_bools_never_get_gradients),
        TEST(test_only_gradients_that_are_wanted_are_formed),
        TEST(test_order_statistics_send_the_gradient_to_their_index_alone),
        TEST(test_div_with_a_rounding_has_gradient_0),
        TEST(test_both_operands_broadcast_and_sum_their_gradients),
        TEST(test_comparisons_of_integers_with_a_fraction),
        TEST(test_lerp_gives_both_its_ends_exactly),
        TEST(test_reparameterised_noise_passes_gradients_to_mean_and_deviation),
        TEST(test_draws_have_no_gradient),
        TEST(test_categorical_logits_are_normalised),
        TEST(test_tensordot_over_empty_lists_of_dims_is_the_outer_product),
        TEST(test_det_of_an_infinite_matrix_has_the_gradient_nan),
        TEST(test_logsumexp_of_integers_is_f32),
        TEST(test_batch_norm_of_nothing),
        TEST(test_a_nan_shows_in_the_gradient_of_logcumsumexp),
        TEST(test_bent_losses_are_parabolas_through_0),
        TEST(test_bce_of_tiny_probabilities_keeps_their_digits),
        TEST(test_arguments_by_position_come_in_pytorchs_order),
        TEST(test_other_names_are_the_same_ops),
        TEST(test_nan_wins_in_every_block_of_a_long_reduction),
        TEST(test_halves_of_rare_rows),
        TEST(test_points_at_distance_0_have_no_gradient_whatever_comes_back),
        TEST(test_attention_without_a_score_is_0_beside_nan),
        TEST(test_max_pool_of_a_plane_that_32_bits_cannot_count),
        TEST(test_adaptive_max_of_wide_windows),
        TEST(test_comparisons_at_the_ends_of_integer_dtypes),
        TEST(test_embedding_bag_of_no_index_is_0_in_every_mode),
    };
    return cmocka_run_group_tests_name("more traps", tests, NULL, NULL);
}
