/* test_fit_checks.c - what nn_fit refuses before it trains, and what it says when a run goes wrong. */
#include "setting.h"

#define REFUSED(code, words, ...) (assert_int_equal(nn_fit(__VA_ARGS__), -1), assert_says(code, words))

/* ---- which numbers are better ---------------------------------------------------------------- */

/* A metric whose values are those of a list, one an epoch. */
static double listed(Tensor *output, Tensor *target, void *ctx)
{
    (void)output, (void)target;
    return **(double **)ctx;
}

static int next_value(NNFit *fit, NNEvent event, void *ctx)
{
    (void)fit;
    if (event == NN_EPOCH_END) ++*(double **)ctx;
    return 0;
}

static void assert_best(NNMode of_metric, NNMode of_fit, int64_t epoch)
{
    double values[] = { 5, 2, 9, 4 }, *at = values;
    NNHistory h;
    Setting s = setting();
    Metric *m = nn_metric_custom("mae", listed, &at, .mode = of_metric);
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 4, .metrics = NN_METRICS(m), .monitor = "mae",
                .mode = of_fit, .verbose = 0, .history = &h,
                .callbacks = (NNCallback[]){ { next_value, &at }, { NULL } }));
    assert_int_equal(h.best_epoch, epoch);
    assert_true(h.best == values[epoch]);
    nn_history_free(&h), nn_metric_free(m), drop(&s);
}

static void test_modes(void **state)
{
    (void)state;
    assert_best(NN_MIN, NN_AUTO, 1), assert_best(NN_MAX, NN_AUTO, 2);
    assert_best(NN_AUTO, NN_MIN, 1), assert_best(NN_AUTO, NN_MAX, 2);
    assert_best(NN_MAX, NN_MIN, 1); /* the call has the last word */
    Setting s = setting();
    Metric *own = nn_metric_custom("mae", listed, NULL), *mean = nn_metric_mean("mean"),
           *last = nn_metric_mean("falls", .mode = NN_MIN);
    Metric *accuracy = nn_metric_accuracy(.name = "lossless"), *f1 = nn_metric_f1(3),
           *perplexity = nn_metric_perplexity(.name = "of letters"),
           *turned = nn_metric_accuracy(.name = "worst", .mode = NN_MIN);
    REFUSED(TENSOR_EVALUE, "monitor: is a lower or a higher \"val_mae\" better?", s.net, s.train, ce(), s.opt,
            .metrics = NN_METRICS(last, own), .validate = s.test, .monitor = "val_mae");
    REFUSED(TENSOR_EVALUE, "is a lower or a higher \"mean\" better?", s.net, s.train, ce(), s.opt,
            .metrics = NN_METRICS(last, mean), .monitor = "mean");
    REFUSED(TENSOR_EVALUE, "is a lower or a higher \"lr\" better?", s.net, s.train, ce(), s.opt,
            .monitor = "lr");
    assert_int_equal(nn_metric_mode(accuracy), NN_MAX), assert_int_equal(nn_metric_mode(f1), NN_MAX);
    assert_int_equal(nn_metric_mode(perplexity), NN_MIN), assert_int_equal(nn_metric_mode(turned), NN_MIN);
    assert_int_equal(nn_metric_mode(own), NN_AUTO), assert_int_equal(nn_metric_mode(NULL), NN_AUTO);
    assert_null(nn_metric_mean("x", .mode = (NNMode)7));
    assert_says(TENSOR_EVALUE, "nn_metric_mean: there is no mode 7: want auto, min or max");
    for (int validates = 0; validates < 2;
         validates++) { /* by its place among the columns, not by its name */
        NNHistory h;
        DONE(nn_fit(s.net, s.train, ce(), s.opt, .metrics = NN_METRICS(perplexity, accuracy), .verbose = 0,
                    .monitor = validates ? "val_lossless" : "lossless", .history = &h,
                    .validate = validates ? s.test : NULL, .mode = NN_AUTO));
        assert_true(h.best == nn_metric_compute(accuracy) && h.best_epoch == 0);
        nn_history_free(&h);
    }
    nn_metric_free(own), nn_metric_free(mean), nn_metric_free(last), nn_metric_free(accuracy);
    nn_metric_free(f1), nn_metric_free(perplexity), nn_metric_free(turned), drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_modes),
    };
    return cmocka_run_group_tests_name("fit_checks", tests, scratch_begin, scratch_end);
}
