/* test_loss_options.c - a distance of one's own, logits in chunks, and written over. */
#include "sane.h"

/* ---- a distance of one's own ----------------------------------------------------------------- */

static Tensor *absolute(Tensor *x, Tensor *y, void *ctx)
{
    ++*(int *)ctx;
    return tensor_sum(tensor_abs(tensor_sub(x, y)), -1);
}

static Tensor *elementwise(Tensor *x, Tensor *y, void *ctx)
{
    (void)ctx;
    return tensor_square(tensor_sub(x, y));
}

static Tensor *no_distance(Tensor *x, Tensor *y, void *ctx)
{
    (void)x, (void)y, (void)ctx;
    return NULL;
}

static void test_triplet_takes_a_distance_of_ones_own(void **state)
{
    (void)state;
    tensor_manual_seed(5);
    Tensor *x[3];
    int calls = 0;
    for (int i = 0; i < 3; i++) x[i] = tensor_requires_grad_(tensor_randn(SHAPE(4, 3), TENSOR_F64), true);
    for (int swap = 0; swap < 2; swap++) {
        Tensor *want =
                   tensor_triplet_margin_loss(x[0], x[1], x[2], .p = 1, .eps = 0, .swap = swap, .margin = 3),
               *got = tensor_triplet_margin_loss(x[0], x[1], x[2], .swap = swap, .margin = 3,
                                                 .distance = absolute, .ctx = &calls);
        assert_true(fabs(tensor_item(want) - tensor_item(got)) < 1e-12);
        for (int i = 0; i < 3; i++) {
            Tensor *dw = tensor_gradients(want, x[i], .retain_graph = true),
                   *dg = tensor_gradients(got, x[i], .retain_graph = true);
            assert_true(tensor_item(tensor_max(tensor_abs(tensor_sub(dw, dg)))) < 1e-12);
        }
    }
    assert_int_equal(calls, 2 + 3);
    Tensor *each =
        tensor_triplet_margin_loss(x[0], x[1], x[2], .distance = elementwise, .reduction = TENSOR_NONE);
    assert_int_equal(tensor_ndim(each), 2);
    Tensor *single = tensor_scalar(1, TENSOR_F64);
    assert_true(tensor_item(tensor_triplet_margin_loss(single, single, single, .distance = elementwise)) ==
                1);
    assert_null(tensor_triplet_margin_loss(x[0], x[1], x[2], .distance = no_distance));
    assert_true(tensor_error_code() != TENSOR_OK);
    tensor_error_clear();
}

/* ---- logits in chunks ------------------------------------------------------------------------ */

static Tensor *chunked(Tensor **x, int n, void *ctx)
{
    (void)n;
    return tensor_linear_cross_entropy(x[0], x[1], ctx, x[2], .chunk = 2, .ignore_index = 1,
                                       .label_smoothing = .1);
}

static void test_chunks_of_logits_give_the_cross_entropy(void **state)
{
    (void)state;
    tensor_manual_seed(6);
    const int64_t index[] = { 0, 3, 1, 2, 1, 3, 3 };
    Tensor *t = tensor_from_data(index, SHAPE(7), TENSOR_I64), *leaf[3];
    const TensorShape shapes[] = { SHAPE(7, 5), SHAPE(4, 5), SHAPE(4) };
    for (int i = 0; i < 3; i++) leaf[i] = tensor_requires_grad_(tensor_randn(shapes[i], TENSOR_F64), true);
    for (int chunk = 0; chunk < 9; chunk++)
        for (int r = 0; r < 3; r++) {
            Tensor *want =
                       tensor_cross_entropy(tensor_linear(leaf[0], leaf[1], leaf[2]), t, .ignore_index = 1,
                                            .reduction = (TensorReduction)r, .label_smoothing = .1),
                   *got = tensor_linear_cross_entropy(leaf[0], leaf[1], t, leaf[2], .ignore_index = 1,
                                                      .reduction = (TensorReduction)r, .label_smoothing = .1,
                                                      .chunk = chunk);
            assert_true(tensor_item(tensor_max(tensor_abs(tensor_sub(want, got)))) < 1e-14);
            want = tensor_sum(want), got = tensor_sum(got);
            for (int i = 0; i < 3; i++) {
                Tensor *a = tensor_gradients(want, leaf[i], .retain_graph = true),
                       *b = tensor_gradients(got, leaf[i], .retain_graph = true);
                assert_true(tensor_item(tensor_max(tensor_abs(tensor_sub(a, b)))) < 1e-13);
            }
        }
    GradcheckArgs check = tensor_gradcheck_defaults;
    check.fn = chunked;
    check.inputs = TENSOR_LIST(leaf, 3);
    check.ctx = t;
    assert_int_equal(tensor_gradcheck_args(check), 0);
    check.second = true;
    assert_int_equal(tensor_gradcheck_args(check), 0);
    Tensor *nan = tensor_linear_cross_entropy(leaf[0], leaf[1], tensor_full(SHAPE(7), -100, TENSOR_I64));
    assert_true(isnan(tensor_item(nan)));
    assert_true(tensor_item(tensor_max(tensor_abs(tensor_gradients(nan, leaf[1])))) == 0);
}

/* 4096 rows of 1000 classes are 16 MB of logits: neither sweep may hold a quarter of them. */
static void test_chunks_of_logits_are_never_all_held(void **state)
{
    (void)state;
    enum { N = 4096, D = 8, C = 1000 };
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(N, D), TENSOR_F32), true),
           *w = tensor_requires_grad_(tensor_randn(SHAPE(C, D), TENSOR_F32), true),
           *t = tensor_randint(0, C, SHAPE(N));
    tensor_memory_reset_peak();
    const int64_t before = tensor_memory().in_use, logits = (int64_t)N * C * 4;
    tensor_linear_cross_entropy(x, w, t); /* about a million at a time */
    assert_in_range(tensor_memory().peak - before, logits / 5, 2 * logits / 5);
    tensor_memory_reset_peak();
    Tensor *loss = tensor_linear_cross_entropy(x, w, t, .chunk = 128);
    assert_true(tensor_memory().peak - before < logits / 4);
    assert_int_equal(tensor_backward(loss), 0);
    assert_true(tensor_memory().peak - before < logits / 4);
    Tensor *whole = tensor_cross_entropy(tensor_linear(tensor_detach(x), w, NULL), t);
    assert_true(fabs(tensor_item(whole) - tensor_item(loss)) < 1e-4);
    assert_true(tensor_memory().peak - before >= logits);
}

/* Class weights and probabilities, in chunks of every size, in f16 too: one rounding. */
static void test_chunks_weigh_classes_and_take_probabilities(void **state)
{
    (void)state;
    tensor_manual_seed(7);
    Tensor *x = tensor_randn(SHAPE(5, 3), TENSOR_F16), *w = tensor_randn(SHAPE(4, 3), TENSOR_F16),
           *v = tensor_rand(SHAPE(4), TENSOR_F16),
           *all[] = { tensor_randint(0, 4, SHAPE(5)), tensor_rand(SHAPE(5, 4), TENSOR_F16) };
    for (int soft = 0; soft < 2; soft++)
        for (int chunk = 0; chunk < 7; chunk++) {
            Tensor *t = soft ? tensor_to(all[1], TENSOR_F32) : all[0],
                   *z = tensor_linear(tensor_to(x, TENSOR_F32), tensor_to(w, TENSOR_F32), NULL),
                   *want = tensor_cross_entropy(z, t, .weight = tensor_to(v, TENSOR_F32)),
                   *got = tensor_linear_cross_entropy(x, w, all[soft], .weight = v, .chunk = chunk);
            assert_int_equal(tensor_dtype(got), TENSOR_F16);
            assert_true(tensor_item(got) == tensor_item(tensor_to(want, TENSOR_F16)));
        }
    Tensor *wide = tensor_to(v, TENSOR_F32);
    assert_null(tensor_linear_cross_entropy(x, w, all[0], .weight = wide)); /* as PyTorch */
    assert_int_equal(tensor_error_code(), TENSOR_EDTYPE);
    tensor_error_clear();
    assert_int_equal(tensor_dtype(tensor_linear_cross_entropy(x, w, all[1], .weight = wide)), TENSOR_F32);
}

/* ---- cross entropy over its logits ------------------------------------------------------------ */

static Tensor *loss_of(Tensor *x, Tensor *target, Tensor **logits)
{
    TensorScope scope = tensor_scope_open();
    Tensor *y = tensor_mul_scalar(x, 2), *loss = tensor_cross_entropy(y, target);
    if (logits) *logits = tensor_retain(y);
    return tensor_scope_return(scope, loss);
}

/* Where only the graph holds the logits, their gradient takes their place; not where the program holds them,
 * nor where the graph stays.  (That of x takes the place of the logits' in each case.) */
static void test_cross_entropy_writes_over_logits_that_nobody_holds(void **state)
{
    (void)state;
    enum { ROWS = 600, CLASSES = 500 };
    const int64_t size = ROWS * CLASSES * (int64_t)sizeof(float);
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(3);
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(ROWS, CLASSES), TENSOR_F32), true);
    Tensor *target = tensor_randint(0, CLASSES, SHAPE(ROWS)), *logits = NULL, *want = NULL;
    for (int how = 0; how < 3; how++) {
        Tensor *loss = loss_of(x, target, how == 0 ? &logits : NULL);
        Tensor *before = how == 0 ? tensor_clone(logits) : NULL;
        const int64_t in_use = tensor_memory().in_use;
        tensor_memory_reset_peak();
        Tensor *g = tensor_gradients(loss, x, .retain_graph = how == 1);
        const int64_t more = tensor_memory().peak - in_use;
        assert_non_null(g);
        assert_true(how == 2 ? more < size / 2 : more >= size);
        if (how == 0) want = g;
        else assert_true(tensor_equal(g, want));
        if (how == 0) assert_true(tensor_equal(before, logits));
        if (how == 1) assert_true(tensor_equal(tensor_gradients(loss, x), want)); /* the graph once more */
    }
    tensor_release(logits);
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_triplet_takes_a_distance_of_ones_own),
        TEST(test_chunks_of_logits_give_the_cross_entropy),
        TEST(test_chunks_of_logits_are_never_all_held),
        TEST(test_chunks_weigh_classes_and_take_probabilities),
        TEST(test_cross_entropy_writes_over_logits_that_nobody_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
