/* test_traps_losses.c - what losses get wrong elsewhere: kinks, ties, denominators, silent broadcasting,
 * infinities. */
#include <tapegrad/debug.h>
#include "sane.h"

#define INDICES(...) tensor_to(VEC(__VA_ARGS__), TENSOR_I64)

static Tensor *gradient(Tensor *y, Tensor *x)
{
    return tensor_gradients(tensor_sum(y), x, .create_graph = true);
}

/* ---- mse, l1, smooth_l1, huber --------------------------------------------------------------- */

static void test_targets_are_differentiable(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 3), *t = LEAF(2, -1);
    assert_values(gradient(tensor_mse_loss(x, t, .reduction = TENSOR_SUM), t), 2, -8);
    assert_values(gradient(tensor_l1_loss(x, t, .reduction = TENSOR_SUM), t), 1, -1);
    assert_values(gradient(tensor_smooth_l1_loss(x, t, .reduction = TENSOR_SUM), t), 1, -1);
    assert_values(gradient(tensor_huber_loss(x, t, .reduction = TENSOR_SUM, .delta = 9), t), 1, -4);
}

static void test_smooth_l1_with_beta_zero_is_l1(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 3, 2), *t = VEC(2, -1, 2),
           *y = tensor_smooth_l1_loss(x, t, .reduction = TENSOR_NONE, .beta = 0);
    assert_values(y, 1, 4, 0);
    assert_values(gradient(y, x), -1, 1, 0);
}

static void test_l1_gradient_is_zero_at_zero(void **state)
{
    (void)state;
    Tensor *x = LEAF(2, 2);
    assert_values(gradient(tensor_l1_loss(x, VEC(2, 3), .reduction = TENSOR_SUM), x), 0, -1);
}

static void test_nothing_is_broadcast(void **state)
{
    (void)state;
    Tensor *column = tensor_ones(SHAPE(4, 1), TENSOR_F64), *row = tensor_ones(SHAPE(4), TENSOR_F64);
    assert_tensor_error(tensor_mse_loss(column, row), TENSOR_ESHAPE);
    assert_tensor_error(tensor_l1_loss(column, row), TENSOR_ESHAPE);
    assert_tensor_error(tensor_huber_loss(row, tensor_ones(SHAPE(1), TENSOR_F64)), TENSOR_ESHAPE);
    assert_tensor_error(tensor_kl_div(column, row), TENSOR_ESHAPE);
    assert_tensor_error(tensor_binary_cross_entropy(column, row), TENSOR_ESHAPE);
    assert_tensor_error(tensor_gaussian_nll_loss(column, row, column), TENSOR_ESHAPE);
    assert_tensor_error(tensor_poisson_nll_loss(column, row), TENSOR_ESHAPE);
    assert_tensor_error(tensor_hinge_embedding_loss(column, row), TENSOR_ESHAPE);
    assert_tensor_error(tensor_margin_ranking_loss(row, row, column), TENSOR_ESHAPE);
    assert_tensor_error(tensor_cosine_embedding_loss(row, row, row), TENSOR_ESHAPE);
    assert_tensor_error(tensor_triplet_margin_loss(row, row, column), TENSOR_ESHAPE);
    assert_tensor_error(tensor_soft_margin_loss(column, row), TENSOR_ESHAPE);
    assert_tensor_error(tensor_multilabel_soft_margin_loss(column, row), TENSOR_ESHAPE);
    assert_null(tensor_multi_margin_loss(tensor_ones(SHAPE(4, 3), TENSOR_F64),
                                         tensor_zeros(SHAPE(4, 1), TENSOR_I64)));
    assert_says(TENSOR_ESHAPE, "input [4, 3], target [4, 1]: want [N, C] and [N]");
}

/* ---- nll, cross entropy ---------------------------------------------------------------------- */

static void test_nll_mean_divides_by_the_weights_that_count(void **state)
{
    (void)state;
    Tensor *x = LEAF_MAT(3, -1, -2, -3, -4, -5, -6), *w = VEC(1, 3), *t = INDICES(0, 1, -100);
    Tensor *y = tensor_nll_loss(x, t, w);
    assert_values(y, (1 * 1 + 3 * 4) / 4.0);
    assert_values(gradient(y, x), -.25, 0, 0, -.75, 0, 0);
}

static void test_all_ignored_gives_nan(void **state)
{
    (void)state;
    Tensor *x = LEAF_MAT(2, -1, -2, -3, -4), *t = INDICES(-100, -100), *y = tensor_nll_loss(x, t);
    assert_true(isnan(tensor_item(y)));
    assert_values(gradient(y, x), 0, 0, 0, 0);
    y = tensor_cross_entropy(x, t);
    assert_true(isnan(tensor_item(y)));
    assert_values(gradient(y, x), 0, 0, 0, 0);
    assert_values(tensor_nll_loss(x, t, .reduction = TENSOR_SUM), 0);
}

static void test_a_target_out_of_range_is_named(void **state)
{
    (void)state;
    Tensor *x = MAT(3, 1, 2, 3, 4, 5, 6);
    assert_null(tensor_nll_loss(x, INDICES(0, 1, 7)));
    assert_says(TENSOR_EINDEX, "7 at position 2");
    assert_null(tensor_cross_entropy(x, INDICES(0, -1, 1)));
    assert_says(TENSOR_EINDEX, "-1 at position 1");
    assert_null(tensor_multi_margin_loss(x, INDICES(0, 2, 1)));
    assert_says(TENSOR_EINDEX, "2");
    assert_null(tensor_multilabel_margin_loss(x, tensor_reshape(INDICES(0, 1, 1, -1, 2, 0), SHAPE(3, 2))));
    assert_says(TENSOR_EINDEX, "2 at position 4 is outside [-1, 2)");
}

static void test_cross_entropy_of_probabilities_has_a_gradient_for_them(void **state)
{
    (void)state;
    Tensor *x = LEAF_MAT(1, 0, log(3)), *q = LEAF_MAT(1, .5, .5), *y = tensor_cross_entropy(x, q);
    assert_values(y, -.5 * log(.25) - .5 * log(.75));
    assert_values(gradient(y, q), -log(.25), -log(.75));
    assert_values(gradient(y, x), .25 - .5, .75 - .5);
}

/* (1 - s) w_t (lse - x_t) + s / C sum_c w_c (lse - x_c), over the sum of w_t of the rows that count. */
static void test_label_smoothing_with_weights_and_ignored_rows(void **state)
{
    (void)state;
    Tensor *x = MAT(3, 0, log(3), 0, 0, 5, 7), *w = VEC(1, 3), *t = INDICES(1, 0, -1);
    const double a = -log(.25), b = -log(.75), h = log(2), s = .2;
    const double first = (1 - s) * 3 * b + s / 2 * (a + 3 * b), second = (1 - s) * h + s / 2 * (h + 3 * h);
    assert_values(tensor_cross_entropy(x, t, w, .ignore_index = -1, .label_smoothing = s),
                  (first + second) / 4);
}

/* ---- binary cross entropy, kl_div ------------------------------------------------------------ */

static void test_bce_holds_logarithms_above_minus_100(void **state)
{
    (void)state;
    Tensor *x = LEAF(0, 1), *y = tensor_binary_cross_entropy(x, VEC(1, 0), .reduction = TENSOR_NONE);
    assert_values(y, 100, 100);
    assert_values(tensor_mul_scalar(gradient(y, x), 1e-12), -1, 1); /* (x - t) / max(x (1 - x), 1e-12) */
}

static void test_bce_outside_zero_to_one_is_refused(void **state)
{
    (void)state;
    assert_null(tensor_binary_cross_entropy(VEC(.5, 1.5), VEC(0, 1)));
    assert_says(TENSOR_EVALUE, "1.5 at position 1 is outside [0, 1]");
}

static void test_bce_with_logits_does_not_overflow(void **state)
{
    (void)state;
    Tensor *x = LEAF(1000, -1000, 1000), *t = VEC(0, 1, 1);
    Tensor *y = tensor_binary_cross_entropy_with_logits(x, t, .reduction = TENSOR_NONE, .pos_weight = VEC(2));
    assert_values(y, 1000, 2000, 0);
    assert_values(gradient(y, x), 1, -2, 0);
}

static void test_kl_div(void **state)
{
    (void)state;
    Tensor *x = LEAF_MAT(2, -1, -2, -3, -4), *t = MAT(2, 0, 1, .5, .5);
    assert_values(tensor_kl_div(x, t, .reduction = TENSOR_NONE), 0, 2, .5 * log(.5) + 1.5,
                  .5 * log(.5) + 2); /* 0 where t is 0 */
    assert_values(gradient(tensor_kl_div(x, t, .reduction = TENSOR_SUM), x), 0, -1, -.5, -.5);
    assert_values(tensor_kl_div(x, t, .reduction = TENSOR_BATCHMEAN), (2 + log(.5) + 3.5) / 2);
    Tensor *log_t = MAT(2, -(double)INFINITY, 0, log(.5), log(.5));
    assert_values(tensor_kl_div(tensor_narrow(x, 0, 1, 1), tensor_narrow(log_t, 0, 1, 1), .log_target = true,
                                .reduction = TENSOR_SUM),
                  log(.5) + 3.5);
}

/* ---- hinges: 0 at the kink ------------------------------------------------------------------- */

static void test_hinge_embedding_gradient_is_zero_at_the_kink(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 1, .5, 3),
           *y = tensor_hinge_embedding_loss(x, VEC(-1, 1, -1, 0), .reduction = TENSOR_NONE);
    assert_values(y, 0, 1, .5, 3);
    assert_values(gradient(y, x), 0, 1, -1, 1);
}

static void test_margin_ranking_gradient_is_zero_at_the_kink(void **state)
{
    (void)state;
    Tensor *a = LEAF(1, 0),
           *y = tensor_margin_ranking_loss(a, VEC(0, 0), INDICES(1, 1), 1, .reduction = TENSOR_SUM);
    assert_values(y, 1);
    assert_values(gradient(y, a), 0, -1);
}

static void test_multi_margin_gradient_is_zero_at_the_kink(void **state)
{
    (void)state;
    for (int p = 1; p <= 2; p++) {
        Tensor *x = LEAF(1, 0, .5), *y = tensor_multi_margin_loss(x, tensor_scalar(0, TENSOR_I64), p);
        assert_values(y, (p == 1 ? .5 : .25) / 3);
        assert_values(gradient(y, x), -1. / 3, 0, 1. / 3);
    }
}

static void test_multilabel_margin(void **state)
{
    (void)state;
    Tensor *x = LEAF(.1, .2, .4, .8),
           *y = tensor_multilabel_margin_loss(x, INDICES(3, 0, -1, 1)); /* PyTorch's own example */
    assert_values(y, .85);
    assert_values(gradient(y, x), -.5, .5, .5, -.5);
    x = LEAF(1, 0, .5);
    assert_values(gradient(tensor_multilabel_margin_loss(x, INDICES(0, -1, 2)), x), -1. / 3, 0,
                  1. / 3);                                                 /* 0 at the kink of 1 */
    assert_values(tensor_multilabel_margin_loss(x, INDICES(-1, 0, 1)), 0); /* no label */
    assert_true(isnan(
        tensor_item(tensor_multilabel_margin_loss(VEC((double)NAN, 0), INDICES(0, -1))))); /* NaN passes */
}

static void test_triplet_of_equal_points_has_finite_gradients(void **state)
{
    (void)state;
    Tensor *a = LEAF(1, 0), *y = tensor_triplet_margin_loss(a, VEC(1, 0), VEC(2, 0), .eps = 0, .margin = 2);
    assert_values(y, 1);
    assert_values(gradient(y, a), 1, 0); /* of |a - p| = 0: nothing */
}

static void test_triplet_swap_shares_a_tie(void **state)
{
    (void)state;
    Tensor *a = LEAF(0, 0), *p = LEAF(0, 0),
           *y = tensor_triplet_margin_loss(a, p, VEC(2, 0), .eps = 0, .margin = 5, .swap = true);
    assert_values(y, 3);
    assert_values(gradient(y, a), .5, 0);
    assert_values(gradient(y, p), .5, 0);
}

static void test_cosine_embedding_of_a_zero_vector(void **state)
{
    (void)state;
    Tensor *x = LEAF(0, 0), *one = tensor_scalar(1, TENSOR_I64),
           *y = tensor_cosine_embedding_loss(x, VEC(0, 1), one);
    assert_values(y, 1);
    assert_values(tensor_mul_scalar(gradient(y, x), 1e-6), 0,
                  -1 / sqrt(1 + 1e-12)); /* finite: 1 / sqrt(1e-12) */
    x = LEAF(1, 0);                      /* the kink: cos = margin */
    assert_values(gradient(tensor_cosine_embedding_loss(x, VEC(0, 1), tensor_neg(one)), x), 0, 0);
}

static void test_soft_margin_does_not_overflow(void **state)
{
    (void)state;
    Tensor *x = LEAF(-1000, 1000), *y = tensor_soft_margin_loss(x, VEC(1, 1), .reduction = TENSOR_NONE);
    assert_values(y, 1000, 0);
    assert_values(gradient(y, x), -1, 0);
}

/* ---- likelihoods ----------------------------------------------------------------------------- */

static void test_gaussian_variance_is_held_but_has_its_gradient(void **state)
{
    (void)state;
    Tensor *var = LEAF(0, .5),
           *y = tensor_gaussian_nll_loss(VEC(1, 1), VEC(0, 0), var, .eps = .25, .reduction = TENSOR_NONE);
    assert_values(y, .5 * (log(.25) + 4), .5 * (log(.5) + 2));
    assert_values(gradient(y, var), .5 * (4 - 16), .5 * (2 - 4));
    assert_null(tensor_gaussian_nll_loss(VEC(1, 1), VEC(0, 0), VEC(1, -.5)));
    assert_says(TENSOR_EVALUE, "-0.5 at position 1 is negative");
}

static void test_poisson_stirling_has_finite_gradients(void **state)
{
    (void)state;
    Tensor *t = LEAF(0, 1, 2),
           *y = tensor_poisson_nll_loss(VEC(1, 1, 1), t, .full = true, .reduction = TENSOR_NONE);
    const double e = exp(1);
    assert_values(y, e, e - 1, e - 2 + 2 * log(2) - 2 + .5 * log(4 * M_PI));
    assert_values(gradient(y, t), -1, -1, -1 + log(2) + .25);
}

/* ---- CTC ------------------------------------------------------------------------------------- */

/* Does this path (base C digits of code, T of them) collapse to the target? */
static bool collapses(int64_t code, int T, int C, int blank, const int64_t *target, int n)
{
    int at = 0, before = -1;
    for (int t = 0; t < T; t++, code /= C) {
        const int c = (int)(code % C);
        if (c != blank && c != before) {
            if (at == n || target[at] != c) return false;
            at++;
        }
        before = c;
    }
    return at == n;
}

static double over_all_paths(const double *log_probs, int T, int C, int blank, const int64_t *target, int n)
{
    double sum = 0;
    const int64_t paths = (int64_t)pow(C, T);
    for (int64_t code = 0; code < paths; code++) {
        double p = 0;
        int64_t rest = code;
        for (int t = 0; t < T; t++, rest /= C) p += log_probs[t * C + rest % C];
        if (collapses(code, T, C, blank, target, n)) sum += exp(p);
    }
    return -log(sum);
}

static void test_ctc_is_the_sum_over_all_paths(void **state)
{
    (void)state;
    static const struct {
        int n, blank;
        int64_t target[4];
    } cases[] = {
        { 0, 0, { 0 } },       { 1, 0, { 1 } },       { 2, 0, { 1, 1 } },    { 2, 0, { 1, 2 } },
        { 3, 0, { 1, 1, 2 } }, { 3, 2, { 1, 0, 1 } }, { 3, 0, { 1, 1, 1 } },
    };
    enum { T = 6, C = 3 };
    tensor_manual_seed(1);
    Tensor *x = tensor_log_softmax(tensor_randn(SHAPE(T, C), TENSOR_F64), 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double want = over_all_paths(x->data, T, C, cases[i].blank, cases[i].target, cases[i].n);
        Tensor *target = tensor_from_data(cases[i].target, SHAPE(cases[i].n), TENSOR_I64);
        Tensor *loss = tensor_ctc_loss(x, target, INDICES(T), tensor_scalar(cases[i].n, TENSOR_I64),
                                       cases[i].blank, .reduction = TENSOR_SUM);
        assert_near(tensor_item(loss), want, 1e-12);
    }
}

static void test_ctc_repeated_labels_need_a_blank_between(void **state)
{
    (void)state;
    Tensor *x = tensor_log_softmax(tensor_zeros(SHAPE(2, 1, 3), TENSOR_F64), 2), *two = INDICES(2);
    Tensor *like = tensor_reshape(INDICES(1, 1), SHAPE(1, 2)),
           *unlike = tensor_reshape(INDICES(1, 2), SHAPE(1, 2));
    assert_true(tensor_item(tensor_ctc_loss(x, like, two, two, .reduction = TENSOR_SUM)) == INFINITY);
    assert_near(tensor_item(tensor_ctc_loss(x, unlike, two, two, .reduction = TENSOR_SUM)), 2 * log(3),
                1e-12);
}

static void test_ctc_zero_infinity(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_zeros(SHAPE(2, 2, 3), TENSOR_F64), true), *two = INDICES(2, 2);
    Tensor *targets = tensor_reshape(INDICES(1, 1, 1, 2), SHAPE(2, 2));
    for (int again = 0; again < 2; again++) { /* fused, then recorded */
        Tensor *y = tensor_ctc_loss(x, targets, two, two, .reduction = TENSOR_NONE, .zero_infinity = true);
        assert_values(y, 0, 0);
        assert_values(tensor_gradients(tensor_sum(y), x, .create_graph = again), 0, 0, 0, 0, -1, 0, 0, 0, 0,
                      0, 0, -1);
        y = tensor_ctc_loss(x, targets, two, two, .reduction = TENSOR_NONE);
        assert_true(tensor_get(y, DIMS(0)) == INFINITY && tensor_get(y, DIMS(1)) == 0);
        Tensor *g = tensor_gradients(tensor_sum(y), x, .create_graph = again);
        assert_true(isnan(tensor_get(g, DIMS(0, 0, 1))) && tensor_get(g, DIMS(1, 1, 2)) == -1);
    }
}

static void test_ctc_mean_divides_by_target_lengths(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(3, 2, 3), TENSOR_F64), *times = INDICES(3, 3), *sizes = INDICES(2, 0),
           *targets = INDICES(1, 2);
    const double each = -log(5); /* 1 2 on 3 steps: -12, 1-2, 12-, 112, 122 */
    assert_values(tensor_ctc_loss(x, targets, times, sizes, .reduction = TENSOR_NONE), each, 0);
    assert_values(tensor_ctc_loss(x, targets, times, sizes), each / 2 / 2);
    assert_values(tensor_ctc_loss(x, targets, times, sizes, .reduction = TENSOR_SUM), each);
}

/* Steps behind a sequence's end have no part in it: not even a NaN there. */
static void test_ctc_reads_nothing_behind_the_ends(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(3, 2, 3), TENSOR_F64), *sizes = INDICES(1, 2);
    tensor_fill_(tensor_select(tensor_select(x, 0, 2), 0, 0), NAN);
    Tensor *targets = tensor_reshape(INDICES(1, 99, 1, 2), SHAPE(2, 2)); /* 99 is padding */
    Tensor *leaf = tensor_requires_grad_(tensor_detach(x), true),
           *y = tensor_ctc_loss(leaf, targets, INDICES(2, 3), sizes, .reduction = TENSOR_NONE);
    assert_values(y, -log(3), -log(5));
    Tensor *fused = tensor_gradients(tensor_sum(y), leaf, .retain_graph = true);
    assert_true(tensor_item(tensor_all(tensor_isfinite(fused))) == 1);
    assert_values(tensor_select(tensor_select(fused, 0, 2), 0, 0), 0, 0, 0);
}

static void test_ctc_lengths_and_labels_are_checked(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(3, 2, 3), TENSOR_F64), *three = INDICES(3, 3);
    assert_null(tensor_ctc_loss(x, INDICES(1, 5), three, INDICES(1, 1)));
    assert_says(TENSOR_EINDEX, "targets: 5, number 0 of sequence 1, is outside [0, 3), or the blank");
    assert_null(tensor_ctc_loss(x, INDICES(1, 1), INDICES(3, 4), INDICES(1, 1)));
    assert_says(TENSOR_EINDEX, "input_lengths: 4 at position 1 is outside [0, 3]");
    assert_null(tensor_ctc_loss(x, INDICES(1, 1, 1), three, INDICES(1, 1)));
    assert_says(TENSOR_ESHAPE, "targets [3]: target_lengths sum to 2");
}

static void test_ctc_is_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    const int threads = tensor_num_threads();
    tensor_manual_seed(2);
    Tensor *x =
        tensor_requires_grad_(tensor_log_softmax(tensor_randn(SHAPE(80, 16, 20), TENSOR_F32), 2), true);
    Tensor *targets = tensor_randint(1, 20, SHAPE(16, 15)), *times = tensor_full(SHAPE(16), 80, TENSOR_I64);
    Tensor *sizes = tensor_full(SHAPE(16), 15, TENSOR_I64), *y[2], *g[2];
    for (int k = 0; k < 2; k++) {
        tensor_set_num_threads(k + 1);
        y[k] = tensor_ctc_loss(x, targets, times, sizes, .reduction = TENSOR_NONE);
        g[k] = tensor_gradients(tensor_sum(y[k]), x);
    }
    tensor_set_num_threads(threads);
    assert_true(tensor_equal(y[0], y[1]) && tensor_equal(g[0], g[1]));
}

/* ---- log-probabilities ----------------------------------------------------------------------- */

static void test_log_probabilities_of_the_impossible(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    Tensor *logits = LEAF(-inf, 0, 0), *y = tensor_categorical_log_prob(logits, INDICES(1));
    assert_values(y, -log(2));
    assert_values(gradient(y, logits), 0, .5, -.5);
    assert_true(tensor_item(tensor_categorical_log_prob(logits, INDICES(0))) == -INFINITY);
    y = tensor_categorical_entropy(logits);
    assert_values(y, log(2));
    assert_values(gradient(y, logits), 0, 0, 0);
    logits = LEAF(inf, -inf, -1000);
    y = tensor_bernoulli_log_prob(logits, VEC(1, 0, 1));
    assert_values(y, 0, 0, -1000);
    assert_values(tensor_bernoulli_entropy(logits), 0, 0, 0);
}

static void test_log_probabilities_broadcast(void **state)
{
    (void)state;
    Tensor *y = tensor_categorical_log_prob(tensor_zeros(SHAPE(2, 4), TENSOR_F32),
                                            tensor_zeros(SHAPE(5, 2), TENSOR_I64));
    assert_int_equal(tensor_ndim(y), 2);
    assert_int_equal(tensor_size(y, 0), 5);
    Tensor *scale = LEAF(2), *value = VEC(1, 3);
    y = tensor_normal_log_prob(value, tensor_scalar(1, TENSOR_F64), scale);
    assert_values(y, -log(2) - .5 * log(2 * M_PI), -.5 - log(2) - .5 * log(2 * M_PI));
    assert_values(gradient(y, scale), -.5 + 0);
    assert_values(tensor_normal_entropy(scale), .5 + .5 * log(2 * M_PI) + log(2));
}

/* ---- defaults of the option macros ----------------------------------------------------------- */

static void test_defaults(void **state)
{
    (void)state;
    Tensor *x = MAT(2, .5, 2, -1, 3), *t = MAT(2, 1, -1, -1, 1);
    assert_values(tensor_hinge_embedding_loss(x, t), (.5 + 0 + 2 + 3) / 4);
    assert_values(tensor_margin_ranking_loss(x, tensor_zeros_like(x), t), (0 + 2 + 0 + 0) / 4.0);
    assert_values(tensor_gaussian_nll_loss(x, t, tensor_ones_like(x)), (.25 + 9 + 0 + 4) / 8);
    assert_values(tensor_poisson_nll_loss(VEC(0, 0), VEC(1, 2)), 1);
    assert_values(tensor_triplet_margin_loss(VEC(0, 0), VEC(3, 4), VEC(0, 1), .eps = 0), 5 - 1 + 1);
    assert_values(tensor_multi_margin_loss(x, INDICES(1, 1), .weight = VEC(1, 2)), 0);
    assert_values(tensor_multilabel_soft_margin_loss(tensor_zeros_like(x), tensor_ones_like(x)), log(2));
    assert_values(tensor_cosine_embedding_loss(VEC(1, 0), VEC(-1, 0), tensor_scalar(1, TENSOR_I64)), 2);
    assert_null(tensor_triplet_margin_loss(VEC(0, 0), NULL, VEC(0, 1)));
    assert_says(TENSOR_ENULL, "operand 2 is NULL");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static Tensor *everything(Tensor *x)
{
    Tensor *labels = tensor_reshape(INDICES(1, 2, 2, 1), SHAPE(2, 2)), *ones = tensor_ones_like(x);
    Tensor *three = tensor_reshape(tensor_narrow(tensor_cat(TENSORS(x, x), 0), 0, 0, 3), SHAPE(3, 1, 3));
    Tensor *g = tensor_gradients(tensor_ctc_loss(three, tensor_select(labels, 0, 0), INDICES(3), INDICES(2)),
                                 x, .create_graph = true);
    Tensor *y = tensor_add(tensor_sum(tensor_square(g)), tensor_multi_margin_loss(x, INDICES(1, 0), .p = 2));
    y = tensor_add(y, tensor_multilabel_margin_loss(x, tensor_zeros(SHAPE(2, 3), TENSOR_I64)));
    y = tensor_add(y, tensor_triplet_margin_loss(x, ones, tensor_neg(ones), .swap = true, .margin = 5));
    y = tensor_add(y, tensor_cosine_embedding_loss(x, ones, INDICES(1, -1)));
    y = tensor_add(y, tensor_gaussian_nll_loss(x, ones, ones, .full = true));
    y = tensor_add(y, tensor_poisson_nll_loss(x, ones, .full = true));
    y = tensor_add(y, tensor_sum(tensor_categorical_log_prob(x, INDICES(0, 2))));
    return tensor_add(
        y, tensor_add(tensor_sum(tensor_categorical_entropy(x)), tensor_sum(tensor_bernoulli_entropy(x))));
}

static void test_every_failing_allocation_is_survived(void **state)
{
    (void)state;
    tensor_manual_seed(3);
    Tensor *x = tensor_randn(SHAPE(2, 3), TENSOR_F64);
    bool failed = true;
    for (int64_t n = 1; failed && n < 20000; n++) {
        Tensor *leaf = tensor_requires_grad_(tensor_clone(x), true);
        TensorScope scope = tensor_scope_open();
        tensor_debug_fail_allocation(n, false);
        Tensor *y = everything(leaf);
        const int status = y ? tensor_backward(y) : -1;
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        assert_int_equal(status, failed ? -1 : 0);
        if (failed) {
            assert_null(tensor_grad(leaf));
            assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        }
        tensor_error_clear();
        tensor_scope_close(scope);
    }
    assert_false(failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_targets_are_differentiable),
        TEST(test_smooth_l1_with_beta_zero_is_l1),
        TEST(test_l1_gradient_is_zero_at_zero),
        TEST(test_nothing_is_broadcast),
        TEST(test_nll_mean_divides_by_the_weights_that_count),
        TEST(test_all_ignored_gives_nan),
        TEST(test_a_target_out_of_range_is_named),
        TEST(test_cross_entropy_of_probabilities_has_a_gradient_for_them),
        TEST(test_label_smoothing_with_weights_and_ignored_rows),
        TEST(test_bce_holds_logarithms_above_minus_100),
        TEST(test_bce_outside_zero_to_one_is_refused),
        TEST(test_bce_with_logits_does_not_overflow),
        TEST(test_kl_div),
        TEST(test_hinge_embedding_gradient_is_zero_at_the_kink),
        TEST(test_margin_ranking_gradient_is_zero_at_the_kink),
        TEST(test_multi_margin_gradient_is_zero_at_the_kink),
        TEST(test_multilabel_margin),
        TEST(test_triplet_of_equal_points_has_finite_gradients),
        TEST(test_triplet_swap_shares_a_tie),
        TEST(test_cosine_embedding_of_a_zero_vector),
        TEST(test_soft_margin_does_not_overflow),
        TEST(test_gaussian_variance_is_held_but_has_its_gradient),
        TEST(test_poisson_stirling_has_finite_gradients),
        TEST(test_ctc_is_the_sum_over_all_paths),
        TEST(test_ctc_repeated_labels_need_a_blank_between),
        TEST(test_ctc_zero_infinity),
        TEST(test_ctc_mean_divides_by_target_lengths),
        TEST(test_ctc_reads_nothing_behind_the_ends),
        TEST(test_ctc_lengths_and_labels_are_checked),
        TEST(test_ctc_is_the_same_on_any_number_of_threads),
        TEST(test_log_probabilities_of_the_impossible),
        TEST(test_log_probabilities_broadcast),
        TEST(test_defaults),
        TEST(test_every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
