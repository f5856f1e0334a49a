/* test_fit_checks.c - what nn_fit refuses before it trains, and what it says when a run goes wrong. */
#include "setting.h"

#define REFUSED(code, words, ...) (assert_int_equal(nn_fit(__VA_ARGS__), -1), assert_says(code, words))

static void remove_folder(const char *name)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf %s", scratch(name));
    assert_int_equal(system(command), 0);
}

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

/* ---- losses that are not finite -------------------------------------------------------------- */

/* The loss of the batch of this number over all epochs, from 1, is value; its gradients are, too. */
typedef struct Spoil {
    int64_t batch, seen;
    double value;
    bool in_validation, after; /* after: of those that follow, too */
    int told[5];
} Spoil;

static Tensor *spoiled(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    Spoil *s = ctx;
    *output = nn_forward(net, b->x);
    Tensor *loss = tensor_cross_entropy(*output, b->y);
    const bool here = net->training != s->in_validation;
    s->seen += here;
    if (!here || (s->after ? s->seen < s->batch : s->seen != s->batch)) return loss;
    return tensor_mul_scalar(loss, s->value);
}

static int count_event(NNFit *fit, NNEvent event, void *ctx)
{
    (void)fit;
    ((Spoil *)ctx)->told[event]++;
    return 0;
}

static int fit_spoiled(Setting *s, Spoil *how, int64_t epochs, NNOnNan on_nan, bool restores, NNHistory *h)
{
    return nn_fit(s->net, s->train, NULL, s->opt, .step = spoiled, .ctx = how, .epochs = epochs, .verbose = 0,
                  .on_nan = on_nan, .restore_best = restores, .history = h, .validate = s->test,
                  .monitor = "loss", .callbacks = (NNCallback[]){ { count_event, how }, { NULL } });
}

static void test_nan_in_a_batch(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *name;
    } rows[] = { { NAN, " is nan:" }, { INFINITY, " is inf:" }, { -INFINITY, " is -inf:" } };
    for (size_t i = 0; i < 3; i++)
        for (NNOnNan on_nan = NN_NAN_FAIL; on_nan <= NN_NAN_STOP; on_nan++) {
            NNHistory h, h_want;
            Spoil bad = { .batch = 2 * BATCHES + 3, .value = rows[i].value }, none = { .batch = 0 };
            Setting s = setting(), want = setting();
            const int status = fit_spoiled(&s, &bad, 5, on_nan, false, &h);
            assert_int_equal(status, on_nan == NN_NAN_FAIL ? -1 : 0);
            if (status) assert_says(TENSOR_EVALUE, "nn_fit: the loss of epoch 3, batch 3 of 6");
            assert_true(h.diverged && !h.stopped_early && !h.interrupted);
            assert_true(h.epochs == 2 && h.steps == 2 * BATCHES + 2);
            assert_int_equal(bad.told[NN_BATCH_END], 2 * BATCHES + 2);
            assert_int_equal(bad.told[NN_FIT_END], on_nan == NN_NAN_STOP);
            tensor_manual_seed(4);
            DONE(fit_spoiled(&want, &none, 2, on_nan, false, &h_want));
            Setting more = want;
            for (int b = 0; b < 2; b++) { /* the parameters are those before the bad batch */
                Batch *next = data_next(more.train);
                TensorScope scope = tensor_scope_open();
                optim_zero_grad(more.opt);
                DONE(tensor_backward(tensor_cross_entropy(nn_forward(more.net, next->x), next->y)));
                DONE(optim_step(more.opt));
                tensor_scope_close(scope);
            }
            TensorList found = nn_parameters(s.net), expected = nn_parameters(want.net);
            for (int k = 0; k < expected.count; k++)
                assert_true(tensor_equal(found.item[k], expected.item[k]));
            assert_true(!h_want.diverged);
            nn_history_free(&h), nn_history_free(&h_want), drop(&s), drop(&want);
        }
    Setting s = setting();
    Spoil bad = { .batch = 3, .value = INFINITY };
    assert_int_equal(fit_spoiled(&s, &bad, 1, NN_NAN_FAIL, false, NULL), -1);
    assert_says(TENSOR_EVALUE, "batch 3 of 6 is inf:");
    drop(&s);
}

static Tensor *kept;

static int keep_best(NNFit *fit, NNEvent event, void *ctx)
{
    (void)ctx;
    if (event == NN_EPOCH_END && fit->history->best_epoch == fit->epoch)
        tensor_assign(&kept, tensor_clone(nn_get(fit->module, "0.weight")));
    return 0;
}

/* What there is to go back to: the best epoch, and the last checkpoint. */
static void test_nan_leaves_good_weights(void **state)
{
    (void)state;
    for (NNOnNan on_nan = NN_NAN_FAIL; on_nan <= NN_NAN_STOP; on_nan++) {
        Spoil bad = { .batch = 2 * BATCHES + 5, .value = NAN, .after = true };
        Setting s = setting();
        const int status = nn_fit(s.net, s.train, NULL, s.opt, .step = spoiled, .ctx = &bad, .epochs = 5,
                                  .verbose = 0, .on_nan = on_nan, .restore_best = true,
                                  .callbacks = (NNCallback[]){ { keep_best, NULL }, { NULL } });
        assert_int_equal(status, on_nan == NN_NAN_FAIL ? -1 : 0);
        if (status) assert_says(TENSOR_EVALUE, "epoch 3, batch 5 of 6 is nan");
        assert_true(tensor_equal(nn_get(s.net, "0.weight"), kept));
        tensor_release(kept), kept = NULL, drop(&s);
    }
    Spoil bad = { .batch = BATCHES + 5, .value = NAN };
    Setting s = setting();
    int64_t step = 0;
    assert_int_equal(nn_fit(s.net, s.train, NULL, s.opt, .step = spoiled, .ctx = &bad, .epochs = 3,
                            .verbose = 0, .checkpoint = scratch("nan"), .save_every = 3),
                     -1);
    assert_says(TENSOR_EVALUE, "epoch 2, batch 5 of 6 is nan");
    NNHistory h;
    DONE(nn_fit(s.net, s.train, NULL, s.opt, .step = spoiled, .ctx = &bad, .epochs = 3, .verbose = 0,
                .checkpoint = scratch("nan"), .save_every = 3, .history = &h));
    step = h.steps;
    assert_true(h.resumed && step == 3 * BATCHES && isfinite(nn_history_get(&h, "loss", -1)));
    nn_history_free(&h), drop(&s), remove_folder("nan");
}

static void test_nan_in_a_validation(void **state)
{
    (void)state;
    NNHistory h;
    for (NNOnNan on_nan = NN_NAN_FAIL; on_nan <= NN_NAN_STOP; on_nan++) {
        Spoil bad = { .batch = 4, .value = NAN, .in_validation = true }; /* 3 batches each */
        Setting s = setting();
        const int status = fit_spoiled(&s, &bad, 5, on_nan, false, &h);
        assert_int_equal(status, on_nan == NN_NAN_FAIL ? -1 : 0);
        if (status) assert_says(TENSOR_EVALUE, "the loss of the validation after epoch 2 is nan");
        assert_true(h.diverged && h.epochs == 2 && isnan(nn_history_get(&h, "val_loss", 1)));
        nn_history_free(&h), drop(&s);
    }
}

static void test_nan_goes_on(void **state)
{
    (void)state;
    for (int validates = 0; validates < 2; validates++) {
        NNHistory h;
        Spoil bad = { .batch = 4, .value = INFINITY, .in_validation = validates };
        Setting s = setting();
        optim_free(s.opt), s.opt = optim_sgd(nn_parameters(s.net), 0);
        DONE(fit_spoiled(&s, &bad, 3, NN_NAN_GO_ON, false, &h));
        assert_true(!h.diverged && h.epochs == 3 && h.steps == 3 * BATCHES);
        assert_true(!isfinite(nn_history_get(&h, validates ? "val_loss" : "loss", validates)));
        nn_history_free(&h), drop(&s);
    }
}

/* ---- folders --------------------------------------------------------------------------------- */

static int never(NNFit *fit, NNEvent event, void *ctx)
{
    (void)fit, (void)event, (void)ctx;
    return tensor_fail(TENSOR_EUSER, "never", "it began");
}

static void test_a_folder_that_cannot_be_written(void **state)
{
    (void)state;
    Setting s = setting();
    const NNCallback begun[] = { { never, NULL }, { NULL } };
    REFUSED(TENSOR_EIO, "io_checkpoint_probe: io_make_folder: /proc/none cannot be made: ", s.net, s.train,
            ce(), s.opt, .checkpoint = "/proc/none", .callbacks = begun);
    REFUSED(TENSOR_EIO, "io_checkpoint_probe: /proc cannot be written to: ", s.net, s.train, ce(), s.opt,
            .checkpoint = "/proc", .callbacks = begun);
    Checkpoint *run = io_checkpoint(scratch("a/b"), .module = s.net);
    DONE(io_checkpoint_probe(run)), DONE(io_checkpoint_probe(run));
    DIR *d = opendir(scratch("a/b"));
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) assert_int_equal(e->d_name[0], '.');
    closedir(d);
    assert_int_equal(io_checkpoint_resume(run), 0);
    io_checkpoint_free(run), remove_folder("a");
    assert_int_equal(io_checkpoint_probe(NULL), -1);
    assert_says(TENSOR_ENULL, "io_checkpoint_probe: the checkpoint is NULL");
    drop(&s);
}

/* ---- what belongs together ------------------------------------------------------------------- */

static void add_nothing(Checkpoint *run, void *ctx) { (void)run, (void)ctx; }

static Tensor *bare(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    (void)output, (void)ctx;
    return tensor_cross_entropy(nn_forward(net, b->x), b->y);
}

static void test_of_another_net(void **state)
{
    (void)state;
    Setting s = setting(), other = setting();
    Scheduler *schedule = optim_step_lr(other.opt, 1), *own = optim_reduce_lr_on_plateau(s.opt);
    AveragedModel *ema = optim_averaged_model(other.net), *mine = optim_averaged_model(s.net);
    Optimizer *lbfgs = optim_lbfgs(nn_parameters(s.net));
    Metric *m = nn_metric_accuracy();
    REFUSED(TENSOR_EVALUE, "the optimizer has no parameter of the net", s.net, s.train, ce(), other.opt);
    REFUSED(TENSOR_EVALUE, "the scheduler belongs to another optimizer", s.net, s.train, ce(), s.opt,
            .scheduler = schedule);
    REFUSED(TENSOR_EVALUE, "the averages (.averaged) are those of another net", s.net, s.train, ce(), s.opt,
            .averaged = ema);
    DONE(optim_averaged_swap(mine));
    REFUSED(TENSOR_EVALUE, "the net has its averages, and not its own weights", s.net, s.train, ce(), s.opt,
            .averaged = mine);
    DONE(optim_averaged_swap(mine));
    REFUSED(TENSOR_EVALUE, "LBFGS steps with a closure", s.net, s.train, ce(), lbfgs);
    REFUSED(TENSOR_EVALUE, "it waits for a lower \"accuracy\", and higher is better: .mode = SCHEDULER_MAX",
            s.net, s.train, ce(), s.opt, .metrics = NN_METRICS(m), .monitor = "accuracy", .scheduler = own);
    REFUSED(TENSOR_EVALUE, "schedule_steps wants another scheduler: optim_reduce_lr_on_plateau", s.net,
            s.train, ce(), s.opt, .scheduler = own, .schedule_steps = true);
    /* A part of the net, a step that trains something else: they are well. */
    Optimizer *head = optim_sgd(nn_parameters(nn_get_module(s.net, "4")), 0.1);
    AveragedModel *of_head = optim_averaged_model(nn_get_module(s.net, "4"));
    DONE(nn_fit(s.net, s.train, ce(), head, .averaged = of_head, .verbose = 0));
    DONE(nn_fit(s.net, s.train, NULL, other.opt, .step = bare, .verbose = 0));
    optim_free(head), optim_averaged_free(of_head), optim_averaged_free(ema), optim_averaged_free(mine);
    optim_scheduler_free(schedule), optim_scheduler_free(own), optim_free(lbfgs), nn_metric_free(m);
    drop(&s), drop(&other);
}

static void test_options_that_would_do_nothing(void **state)
{
    (void)state;
    int64_t number = 0;
    Setting s = setting();
    Metric *m = nn_metric_accuracy();
    REFUSED(TENSOR_EVALUE, "nn_fit: .save_every wants a .checkpoint", s.net, s.train, ce(), s.opt,
            .save_every = 5);
    REFUSED(TENSOR_EVALUE, ".parts wants a .checkpoint", s.net, s.train, ce(), s.opt, .parts = add_nothing);
    REFUSED(TENSOR_EVALUE, ".schedule_steps wants a .scheduler", s.net, s.train, ce(), s.opt,
            .schedule_steps = true);
    REFUSED(TENSOR_EVALUE, ".ctx wants .step or .parts: callbacks have their own", s.net, s.train, ce(),
            s.opt, .ctx = &number);
    REFUSED(TENSOR_EVALUE, ".step wants no loss beside it", s.net, s.train, ce(), s.opt, .step = bare);
    REFUSED(TENSOR_EUSER, "the step gave no output for the metrics", s.net, s.train, NULL, s.opt,
            .step = bare, .metrics = NN_METRICS(m), .verbose = 0);
    REFUSED(TENSOR_ESHAPE, "nn_fit: the loss of a batch has 8 numbers: wants one, their mean", s.net, s.train,
            nn_cross_entropy_loss(.reduction = TENSOR_NONE), s.opt, .verbose = 0);
    REFUSED(TENSOR_EVALUE, "there is no on_nan 5: want fail, stop or go on", s.net, s.train, ce(), s.opt,
            .on_nan = (NNOnNan)5);
    assert_true(isnan(nn_evaluate(s.net, s.test, ce(), .step = bare)));
    assert_says(TENSOR_EVALUE, "nn_evaluate: a loss and .step are there");
    assert_null(nn_predict(s.net, s.test, .metrics = NN_METRICS(m)));
    assert_says(TENSOR_EVALUE, "nn_predict: a loss or .metrics");
    assert_null(nn_predict(s.net, s.test, .loss = ce()));
    assert_says(TENSOR_EVALUE, "nn_predict: a loss or .metrics");
    nn_metric_free(m), drop(&s);
}

/* One number, by its name, with what it may be. */
static void test_numbers_out_of_range(void **state)
{
    (void)state;
    Setting s = setting();
    REFUSED(TENSOR_EVALUE, "nn_fit: epochs -1: at least 0", s.net, s.train, ce(), s.opt, .epochs = -1);
    REFUSED(TENSOR_EVALUE, "nn_fit: accumulate 0: at least 1", s.net, s.train, ce(), s.opt, .accumulate = 0);
    REFUSED(TENSOR_EVALUE, "nn_fit: clip_grad_norm -0.5: at least 0", s.net, s.train, ce(), s.opt,
            .clip_grad_norm = -0.5);
    REFUSED(TENSOR_EVALUE, "nn_fit: clip_grad_value nan: at least 0", s.net, s.train, ce(), s.opt,
            .clip_grad_value = (double)NAN);
    REFUSED(TENSOR_EVALUE, "nn_fit: l1 -1: at least 0", s.net, s.train, ce(), s.opt, .l1 = -1);
    REFUSED(TENSOR_EVALUE, "nn_fit: l2 -1: at least 0", s.net, s.train, ce(), s.opt, .l2 = -1);
    REFUSED(TENSOR_EVALUE, "nn_fit: patience -2: at least 0", s.net, s.train, ce(), s.opt, .patience = -2);
    REFUSED(TENSOR_EVALUE, "nn_fit: min_delta -1: at least 0", s.net, s.train, ce(), s.opt, .min_delta = -1);
    REFUSED(TENSOR_EVALUE, "nn_fit: save_every -1: at least 0", s.net, s.train, ce(), s.opt,
            .save_every = -1);
    REFUSED(TENSOR_EVALUE, "nn_fit: keep 0: at least 1", s.net, s.train, ce(), s.opt, .keep = 0);
    drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_modes),
        TEST(test_nan_in_a_batch),
        TEST(test_nan_leaves_good_weights),
        TEST(test_nan_in_a_validation),
        TEST(test_nan_goes_on),
        TEST(test_a_folder_that_cannot_be_written),
        TEST(test_of_another_net),
        TEST(test_options_that_would_do_nothing),
        TEST(test_numbers_out_of_range),
    };
    return cmocka_run_group_tests_name("fit_checks", tests, scratch_begin, scratch_end);
}
