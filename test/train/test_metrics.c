/* test_metrics.c - metrics against sums written out, over every form of outputs; what they refuse. */
#include <tapegrad/debug.h>
#include "sane.h"

enum { N = 60, CLASSES = 4 };

static void feed(Metric *m, Tensor *output, Tensor *target) { DONE(nn_metric_update(m, output, target)); }

/* Batches of three sizes; the first ignores a sample. */
static void batches(Tensor **x, Tensor **y)
{
    static const int64_t sizes[3] = { 20, 33, 7 };
    tensor_manual_seed(5);
    for (int b = 0; b < 3; b++)
        x[b] = tensor_randn(SHAPE(sizes[b], CLASSES), TENSOR_F32),
        y[b] = tensor_randint(0, CLASSES - 1, SHAPE(sizes[b]));
    ((int64_t *)y[0]->data)[7] = -100;
}

/* Counts by target and output, and how many targets are among the k highest. */
static void by_hand(Tensor *const *x, Tensor *const *y, double count[CLASSES][CLASSES],
                    double right[CLASSES + 1])
{
    memset(count, 0, sizeof(double[CLASSES][CLASSES])), memset(right, 0, sizeof(double[CLASSES + 1]));
    for (int b = 0; b < 3; b++)
        for (int64_t i = 0; i < y[b]->numel; i++) {
            const float *score = (float *)x[b]->data + CLASSES * i;
            const int64_t t = ((int64_t *)y[b]->data)[i];
            int best = 0, above = 0;
            if (t == -100) continue;
            for (int c = 1; c < CLASSES; c++) best = score[c] > score[best] ? c : best;
            for (int c = 0; c < CLASSES; c++) above += score[c] > score[t];
            count[t][best]++;
            for (int k = 1; k <= CLASSES; k++) right[k] += above < k;
        }
}

static double all(Metric *m, Tensor *const *x, Tensor *const *y)
{
    for (int b = 0; b < 3; b++) feed(m, x[b], y[b]);
    const double value = nn_metric_compute(m);
    nn_metric_free(m);
    return value;
}

static void test_accuracy(void **state)
{
    (void)state;
    Tensor *x[3], *y[3];
    double count[CLASSES][CLASSES], right[CLASSES + 1];
    batches(x, y), by_hand(x, y, count, right);
    assert_near(all(nn_metric_accuracy(), x, y), right[1] / (N - 1), 1e-15);
    for (int k = 2; k <= CLASSES; k++)
        assert_near(all(nn_metric_accuracy(.top_k = k), x, y), right[k] / (N - 1), 1e-15);
    Metric *m = nn_metric_accuracy(.top_k = CLASSES + 1);
    assert_int_equal(nn_metric_update(m, x[0], y[0]), -1);
    assert_says(TENSOR_EVALUE, "nn_metric_update (accuracy): top_k 5 of 4 classes");
    nn_metric_free(m);
}

/* Also not of that NaN which prints "-nan", as 0.0 / 0 does. */
static void test_nothing_counted(void **state)
{
    (void)state;
    Metric *m[] = {
        nn_metric_accuracy(),   nn_metric_f1(3),     nn_metric_confusion_matrix(3),
        nn_metric_perplexity(), nn_metric_mean("x"), nn_metric_precision(3, .average = NN_MICRO)
    };
    for (size_t i = 0; i < sizeof m / sizeof *m; i++) {
        const double none = nn_metric_compute(m[i]);
        assert_true(isnan(none) && !signbit(none));
        nn_metric_free(m[i]);
    }
}

static void test_matrix_and_its_kin(void **state)
{
    (void)state;
    Tensor *x[3], *y[3];
    double count[CLASSES][CLASSES], right[CLASSES + 1], f[CLASSES], p[CLASSES], r[CLASSES], weight[CLASSES];
    double macro[3] = { 0 }, weighted[3] = { 0 }, present = 0;
    batches(x, y), by_hand(x, y, count, right);
    for (int c = 0; c < CLASSES; c++) {
        double row = 0, column = 0;
        for (int i = 0; i < CLASSES; i++) row += count[c][i], column += count[i][c];
        p[c] = column ? count[c][c] / column : 0, r[c] = row ? count[c][c] / row : 0;
        f[c] = p[c] + r[c] ? 2 * p[c] * r[c] / (p[c] + r[c]) : 0, weight[c] = row;
        macro[0] += p[c], macro[1] += r[c], macro[2] += f[c], present += row + column > 0;
        weighted[0] += row * p[c], weighted[1] += row * r[c], weighted[2] += row * f[c];
    }
    assert_near(weight[3], 0, 0); /* a class that is an output, and never a target */
    assert_near(all(nn_metric_precision(CLASSES), x, y), macro[0] / present, 1e-14);
    assert_near(all(nn_metric_recall(CLASSES), x, y), macro[1] / present, 1e-14);
    assert_near(all(nn_metric_f1(CLASSES), x, y), macro[2] / present, 1e-14);
    assert_near(all(nn_metric_f1(CLASSES + 3), x, y), macro[2] / present, 1e-14); /* others do not count */
    assert_near(all(nn_metric_precision(CLASSES, .average = NN_WEIGHTED), x, y), weighted[0] / (N - 1),
                1e-14);
    assert_near(all(nn_metric_recall(CLASSES, .average = NN_WEIGHTED), x, y), weighted[1] / (N - 1), 1e-14);
    assert_near(all(nn_metric_f1(CLASSES, .average = NN_WEIGHTED), x, y), weighted[2] / (N - 1), 1e-14);
    assert_near(all(nn_metric_f1(CLASSES, .average = NN_MICRO), x, y), right[1] / (N - 1), 1e-15);
    assert_near(all(nn_metric_f1(CLASSES, .average = NN_BINARY), x, y), f[1], 1e-15);
    Metric *m = nn_metric_confusion_matrix(CLASSES), *each = nn_metric_recall(CLASSES);
    for (int b = 0; b < 3; b++) feed(m, x[b], y[b]), feed(each, x[b], y[b]);
    Tensor *found = nn_metric_tensor(m), *recalls = nn_metric_tensor(each);
    assert_int_equal(found->dtype, TENSOR_I64);
    for (int i = 0; i < CLASSES * CLASSES; i++)
        assert_int_equal(((int64_t *)found->data)[i], (int64_t)count[i / CLASSES][i % CLASSES]);
    assert_values(recalls, r[0], r[1], r[2], r[3]);
    assert_near(nn_metric_compute(m), right[1] / (N - 1), 1e-15);
    nn_metric_free(m), nn_metric_free(each);
}

static void test_binary_and_labels(void **state)
{
    (void)state;
    Metric *m = nn_metric_accuracy(), *logits = nn_metric_accuracy(.threshold = 0);
    Tensor *target = tensor_to(VEC(1, 0, 1, 1), TENSOR_I64);
    feed(m, VEC(0.9, 0.2, 0.5, 0.7), target); /* 0.5 is not above the threshold */
    assert_near(nn_metric_compute(m), 0.75, 0);
    feed(m, tensor_reshape(VEC(0, 0, 1, 1), SHAPE(4, 1)), VEC(1, 0, 1, 1)); /* floats 0 and 1 */
    assert_near(nn_metric_compute(m), 0.75, 0);
    feed(m, tensor_to(VEC(5, 0, 1, 3), TENSOR_I32), target); /* labels */
    assert_near(nn_metric_compute(m), 8.0 / 12, 1e-15);
    feed(logits, VEC(0.1, -3, -0.1, 2), target);
    assert_near(nn_metric_compute(logits), 0.75, 0);
    nn_metric_reset(m);
    assert_true(isnan(nn_metric_compute(m)));
    /* [N, C, d]: as a classifier of each pixel has it */
    Tensor *x = tensor_randn(SHAPE(3, 5, 2, 4), TENSOR_F32), *y = tensor_argmax(x, 1);
    feed(m, x, y);
    assert_near(nn_metric_compute(m), 1, 0);
    Metric *top = nn_metric_accuracy(.top_k = 2), *second = nn_metric_accuracy(.top_k = 1);
    Tensor *indices;
    OK(tensor_topk(x, 2, 1, .indices = &indices));
    Tensor *runner_up = tensor_select(indices, 1, 1);
    feed(top, x, runner_up), feed(second, x, runner_up);
    assert_near(nn_metric_compute(top), 1, 0), assert_near(nn_metric_compute(second), 0, 0);
    feed(m, tensor_zeros(SHAPE(0, 5), TENSOR_F32), tensor_zeros(SHAPE(0), TENSOR_I64)); /* an empty batch */
    feed(m, tensor_scalar(0.7, TENSOR_F32), tensor_scalar(0, TENSOR_F32));
    assert_near(nn_metric_compute(m), 24.0 / 25, 1e-15);
    nn_metric_free(m), nn_metric_free(logits), nn_metric_free(top), nn_metric_free(second);
}

static double sum_of_both(Tensor *output, Tensor *target, void *ctx)
{
    ++*(int *)ctx;
    return tensor_item(tensor_sum(output)) + (target ? 1 : 0);
}

static void test_means(void **state)
{
    (void)state;
    int calls = 0;
    Metric *mean = nn_metric_mean("loss"), *own = nn_metric_custom("own", sum_of_both, &calls);
    assert_string_equal(nn_metric_name(mean), "loss");
    feed(mean, tensor_to(VEC(1, 2, 3), TENSOR_F16), NULL), feed(mean, tensor_to(VEC(10), TENSOR_U8), NULL);
    assert_near(nn_metric_compute(mean), 4, 0);
    assert_values(nn_metric_tensor(mean), 4);
    feed(own, VEC(1, 2), VEC(0, 0)), feed(own, VEC(7), NULL);
    assert_near(nn_metric_compute(own), (2 * 4 + 7) / 3.0, 1e-15);
    assert_int_equal(calls, 2);
    Metric *perplexity = nn_metric_perplexity();
    feed(perplexity, tensor_zeros(SHAPE(3, 8), TENSOR_F32), tensor_to(VEC(1, -100, 5), TENSOR_I64));
    assert_near(nn_metric_compute(perplexity), 8, 1e-5);
    nn_metric_free(mean), nn_metric_free(own), nn_metric_free(perplexity);
}

/* Tokens have their scores last; where both forms fit it is PyTorch's. */
static void test_scores_of_tokens(void **state)
{
    (void)state;
    enum { B = 3, T = 5, V = 7 };
    for (int square = 0; square < 2; square++) {
        const int64_t v = square ? T : V;
        Tensor *x = tensor_randn(SHAPE(B, T, v), TENSOR_F32), *y = tensor_randint(0, v, SHAPE(B, T));
        ((int64_t *)y->data)[4] = -100;
        Tensor *first = square ? x : tensor_transpose(x, 1, 2); /* [B, C, T] */
        const double want = exp(tensor_item(tensor_cross_entropy(first, y)));
        Metric *last = nn_metric_perplexity(), *torch = nn_metric_perplexity();
        feed(last, x, y), feed(torch, first, y);
        assert_near(nn_metric_compute(last), want, 1e-5 * want);
        assert_near(nn_metric_compute(torch), want, 1e-5 * want);
        nn_metric_free(last), nn_metric_free(torch);
        Metric *m[4] = { nn_metric_accuracy(), nn_metric_accuracy(.top_k = 2), nn_metric_f1(v),
                         nn_metric_confusion_matrix(v) };
        for (int i = 0; i < 4; i++) {
            feed(m[i], x, y);
            const double found = nn_metric_compute(m[i]);
            nn_metric_reset(m[i]), feed(m[i], tensor_contiguous(first), y);
            assert_true(found == nn_metric_compute(m[i]));
            nn_metric_free(m[i]);
        }
    }
    Metric *named = nn_metric_perplexity(.name = "of letters");
    Tensor *x = tensor_zeros(SHAPE(1, 4), TENSOR_F16);
    assert_int_equal(nn_metric_update(named, x, tensor_to(VEC(4), TENSOR_I64)), -1);
    assert_says(TENSOR_EINDEX, "nn_metric_update (of letters): ");
    assert_int_equal(nn_metric_update(named, x, VEC(1, 2, 3)), -1);
    assert_says(TENSOR_ESHAPE, "nn_metric_update (of letters): output f16 [1, 4], target f64 [3]");
    Tensor *many = tensor_zeros(SHAPE(60000, 4), TENSOR_F16); /* whose sum is beyond f16 */
    feed(named, many, tensor_zeros(SHAPE(60000), TENSOR_I64));
    assert_near(nn_metric_compute(named), 4, 1e-4);
    nn_metric_free(named);
}

static void test_no_graph(void **state)
{
    (void)state;
    Metric *m = nn_metric_accuracy();
    Tensor *leaf = LEAF_MAT(2, 1, 2, 4, 3), *x = tensor_mul_scalar(leaf, 2);
    int64_t length = tensor_tape_length();
    feed(m, x, tensor_to(VEC(1, 0), TENSOR_I64));
    assert_int_equal(tensor_tape_length(), length);
    assert_near(nn_metric_compute(m), 1, 0);
    nn_metric_free(m);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refused(Metric *m, Tensor *x, Tensor *y, TensorStatus code, const char *words)
{
    assert_int_equal(nn_metric_update(m, x, y), -1);
    if (strncmp(tensor_error(), "nn_metric_update (", 18)) FAILS("%s", tensor_error());
    assert_says(code, words);
    assert_near(nn_metric_compute(m), 0.5, 1e-6);
}

static void test_refusals(void **state)
{
    (void)state;
    Metric *m = nn_metric_accuracy(), *matrix = nn_metric_confusion_matrix(3);
    Tensor *x = tensor_from_data((float[]){ 1, 0, 1, 0 }, SHAPE(2, 2), TENSOR_F32),
           *y = tensor_to(VEC(0, 1), TENSOR_I64);
    feed(m, x, y), feed(matrix, x, y);
    refused(m, x, VEC(1, 2, 3), TENSOR_ESHAPE, "output f32 [2, 2], target f64 [3]: wants scores [N, C, ...]");
    refused(m, tensor_zeros(SHAPE(2, 3, 4), TENSOR_F32), tensor_zeros(SHAPE(2, 5), TENSOR_I64), TENSOR_ESHAPE,
            "[2, 3, 4]");
    refused(m, tensor_zeros(SHAPE(3, 2), TENSOR_I64), tensor_zeros(SHAPE(3), TENSOR_I64), TENSOR_ESHAPE,
            "i64 [3, 2]");
    refused(m, x, VEC(0, 0.5), TENSOR_EDTYPE, "target f64 [2] holds other numbers than integers");
    refused(m, NULL, y, TENSOR_ENULL, "nn_metric_update (accuracy): the output is NULL");
    refused(m, x, NULL, TENSOR_ENULL, "nn_metric_update (accuracy): the target is NULL");
    refused(matrix, x, tensor_to(VEC(0, 3), TENSOR_I64), TENSOR_EVALUE,
            "(confusion_matrix): target 3 at position 1 is none of 3 classes");
    refused(matrix, tensor_to(VEC(0, -7), TENSOR_I64), y, TENSOR_EVALUE, "output -7 at position 1");
    refused(m, x, tensor_to(VEC(0, 2), TENSOR_I64), TENSOR_EVALUE,
            "target 2 at position 1 is none of 2 classes");
    refused(m, x, tensor_to(VEC(-1, 0), TENSOR_I64), TENSOR_EVALUE, "target -1 at position 0");
    refused(m, VEC(0, 1), VEC(0, 2), TENSOR_EVALUE, "target 2 at position 1 is none of 2 classes");
    assert_true(isnan(nn_evaluate(NULL, NULL, NULL, .metrics = NN_METRICS(m))));
    assert_says(TENSOR_ENULL, "nn_evaluate: the module is NULL");
    assert_true(nn_metric_compute(m) >= 0); /* what it had counted is there */
    Metric *top = nn_metric_accuracy(.top_k = 2), *perplexity = nn_metric_perplexity();
    assert_int_equal(nn_metric_update(top, y, y), -1);
    assert_says(TENSOR_ESHAPE, "wants scores");
    assert_int_equal(nn_metric_update(perplexity, y, y), -1);
    assert_says(TENSOR_ESHAPE, "wants scores");
    assert_null(nn_metric_f1(1));
    assert_says(TENSOR_EVALUE, "nn_metric_f1: 1 classes: 2 to 10000");
    assert_null(nn_metric_accuracy(.top_k = 0));
    assert_says(TENSOR_EVALUE, "nn_metric_accuracy: top_k 0");
    assert_null(nn_metric_f1(3, .top_k = 2));
    assert_says(TENSOR_EVALUE, "nn_metric_f1: top_k 2 is for the accuracy");
    assert_null(nn_metric_custom("x", NULL, NULL));
    assert_says(TENSOR_ENULL, "nn_metric_custom: ");
    nn_metric_free(top), nn_metric_free(perplexity), nn_metric_free(m), nn_metric_free(matrix);
}

static void test_state(void **state)
{
    (void)state;
    Tensor *x[3], *y[3];
    batches(x, y);
    Metric *m = nn_metric_f1(CLASSES), *again = nn_metric_f1(CLASSES), *other = nn_metric_accuracy();
    feed(m, x[0], y[0]), feed(again, x[2], y[2]);
    DONE(nn_metric_load_state_dict(again, nn_metric_state_dict(m)));
    feed(m, x[1], y[1]), feed(again, x[1], y[1]);
    assert_true(nn_metric_compute(m) == nn_metric_compute(again));
    assert_int_equal(nn_metric_load_state_dict(other, nn_metric_state_dict(m)), -1);
    assert_says(TENSOR_EVALUE, "accuracy: \"accuracy\" is missing");
    assert_int_equal(nn_metric_load_state_dict(other, (TensorDict){ 0 }), -1);
    assert_says(TENSOR_EVALUE, "accuracy: \"accuracy\" is missing");
    Metric *fewer = nn_metric_f1(2), *mean = nn_metric_mean("accuracy");
    assert_int_equal(nn_metric_load_state_dict(fewer, nn_metric_state_dict(m)), -1);
    assert_says(TENSOR_ESHAPE, "f1: \"f1\" is f64 with 16 numbers, wants f64 with 4");
    DONE(nn_metric_update(mean, VEC(1, 2), NULL));
    assert_int_equal(nn_metric_load_state_dict(other, nn_metric_state_dict(mean)), -1);
    assert_says(TENSOR_EVALUE, "accuracy: \"accuracy\" is missing");
    TensorDict two = nn_dict_clone(nn_metric_state_dict(other));
    DONE(nn_dict_set(&two, "more", VEC(1)));
    assert_int_equal(nn_metric_load_state_dict(other, two), -1);
    assert_says(TENSOR_EVALUE, "accuracy: \"more\" is unexpected");
    nn_dict_free(two);
    nn_metric_free(fewer), nn_metric_free(mean), nn_metric_free(m), nn_metric_free(again),
        nn_metric_free(other);
}

static void test_failing_memory(void **state)
{
    (void)state;
    Tensor *x[3], *y[3];
    batches(x, y);
    Metric *m = nn_metric_accuracy(.top_k = 2);
    for (int k = 1;; k++) {
        TensorScope scope = tensor_scope_open();
        tensor_debug_fail_allocation(k, false);
        int status = nn_metric_update(m, x[0], y[0]);
        bool failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        tensor_scope_close(scope);
        if (!failed) break;
        assert_int_equal(status, -1);
        assert_says(TENSOR_ENOMEM, "");
        assert_true(isnan(nn_metric_compute(m)));
    }
    nn_metric_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_accuracy),          TEST(test_nothing_counted), TEST(test_matrix_and_its_kin),
        TEST(test_binary_and_labels), TEST(test_means),           TEST(test_scores_of_tokens),
        TEST(test_no_graph),          TEST(test_refusals),        TEST(test_state),
        TEST(test_failing_memory),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
