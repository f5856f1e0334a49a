/* test_fit.c - nn_fit does, to the bit, what a loop does; stops, resumes and fails as it says. */
#include <signal.h>
#include "setting.h"

/* ---- the loop written out -------------------------------------------------------------------- */

typedef struct Loop {
    int epochs, accumulate;
    double clip, l1, l2, clip_value;
    Scheduler *scheduler;
    bool schedule_steps;
} Loop;

static Tensor *penalized(Module *net, Tensor *loss, const Loop *how)
{
    TensorList p = nn_parameters(net);
    for (int i = 0; i < p.count; i++) {
        if (tensor_ndim(p.item[i]) < 2) continue;
        if (how->l1) loss = tensor_add(loss, tensor_mul_scalar(tensor_sum(tensor_abs(p.item[i])), how->l1));
        if (how->l2)
            loss = tensor_add(loss, tensor_mul_scalar(tensor_sum(tensor_square(p.item[i])), how->l2));
    }
    return loss;
}

/* Returns the mean loss of the last epoch. */
static double loop(Setting *s, Loop how)
{
    double sum = 0;
    for (int e = 0; e < how.epochs; e++) {
        int pending = 0;
        sum = 0;
        for (Batch *b; (b = data_next(s->train)) != NULL;) {
            TensorScope scope = tensor_scope_open();
            Tensor *loss = tensor_cross_entropy(nn_forward(s->net, b->x), b->y);
            loss = penalized(s->net, loss, &how);
            sum += tensor_item(loss) * (double)b->size;
            const int64_t left = BATCHES - b->index + pending; /* with those that came before it */
            const double together = (double)(left < how.accumulate ? left : how.accumulate);
            if (together > 1) loss = tensor_mul_scalar(loss, 1 / together);
            if (pending == 0) optim_zero_grad(s->opt);
            tensor_backward(loss);
            if (++pending == how.accumulate || b->index == BATCHES - 1) {
                if (how.clip) nn_clip_grad_norm_(nn_parameters(s->net), how.clip);
                if (how.clip_value) nn_clip_grad_value_(nn_parameters(s->net), how.clip_value);
                optim_step(s->opt);
                if (how.scheduler && how.schedule_steps) optim_scheduler_step(how.scheduler);
                pending = 0;
            }
            tensor_scope_close(scope);
        }
        if (how.scheduler && !how.schedule_steps) optim_scheduler_step(how.scheduler);
    }
    if (tensor_error()) FAILS("%s", tensor_error());
    return sum / SAMPLES;
}

static void test_is_the_loop(void **state)
{
    (void)state;
    NNHistory h;
    Setting a = setting(), b;
    DONE(nn_fit(a.net, a.train, ce(), a.opt, .epochs = 3, .verbose = 0, .history = &h));
    b = setting();
    double last = loop(&b, (Loop){ .epochs = 3, .accumulate = 1 });
    assert_same_net(&a, &b);
    assert_int_equal(h.epochs, 3);
    assert_int_equal(h.steps, 3 * BATCHES);
    assert_int_equal(h.columns, 2);
    assert_true(nn_history_get(&h, "loss", -1) == last && nn_history_get(&h, "loss", 2) == last);
    assert_true(nn_history_get(&h, "lr", 0) == 1e-2);
    assert_true(isnan(nn_history_get(&h, "loss", 3)) && isnan(nn_history_get(&h, "val_loss", 0)));
    assert_true(h.best == last && h.best_epoch == 2);
    nn_history_free(&h), drop(&a), drop(&b);
}

static void test_options(void **state)
{
    (void)state;
    static const Loop how[] = {
        { 2, 4, 0, 0, 0 },         { 2, 1, 0.1, 0, 0 },     { 2, 1, 0, 1e-2, 0 },
        { 2, 3, 0.5, 1e-3, 1e-2 }, { 2, 1, 0, 0, 0, 1e-2 }, { 2, 2, 0.5, 0, 1e-2, 2e-2 },
    };
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        Setting a = setting(), b;
        NNHistory h;
        DONE(nn_fit(a.net, a.train, ce(), a.opt, .epochs = 2, .verbose = 0, .accumulate = how[i].accumulate,
                    .clip_grad_norm = how[i].clip, .clip_grad_value = how[i].clip_value, .l1 = how[i].l1,
                    .l2 = how[i].l2, .history = &h));
        b = setting();
        assert_true(loop(&b, how[i]) == nn_history_get(&h, "loss", -1));
        assert_same_net(&a, &b);
        nn_history_free(&h), drop(&a), drop(&b);
    }
}

static void test_schedules(void **state)
{
    (void)state;
    for (int steps = 0; steps < 2; steps++) {
        Setting a = setting(), b;
        Scheduler *s = optim_step_lr(a.opt, 1, .gamma = 0.5);
        DONE(nn_fit(a.net, a.train, ce(), a.opt, .epochs = 3, .verbose = 0, .scheduler = s,
                    .schedule_steps = steps));
        assert_near(optim_lr(a.opt), 1e-2 * pow(0.5, steps ? 3 * BATCHES : 3), 1e-15);
        b = setting();
        Scheduler *t = optim_step_lr(b.opt, 1, .gamma = 0.5);
        loop(&b, (Loop){ .epochs = 3, .accumulate = 1, .scheduler = t, .schedule_steps = steps });
        assert_same_net(&a, &b);
        optim_scheduler_free(s), optim_scheduler_free(t), drop(&a), drop(&b);
    }
    Setting a = setting();
    Scheduler *plateau =
        optim_reduce_lr_on_plateau(a.opt, .patience = 0, .threshold = 1e9, .threshold_mode = SCHEDULER_ABS);
    DONE(nn_fit(a.net, a.train, ce(), a.opt, .epochs = 3, .verbose = 0, .scheduler = plateau));
    assert_near(optim_lr(a.opt), 1e-4, 1e-12); /* the first is the best, and then none is better */
    optim_scheduler_free(plateau), drop(&a);
}

static void test_autocast_and_scaler(void **state)
{
    (void)state;
    NNHistory h;
    Setting a = setting();
    GradScaler *scaler = optim_grad_scaler(.init_scale = 1024);
    DONE(nn_fit(a.net, a.train, ce(), a.opt, .epochs = 8, .verbose = 0, .autocast = TENSOR_F16,
                .scaler = scaler, .clip_grad_norm = 1, .history = &h));
    assert_true(nn_history_get(&h, "loss", -1) < 0.8 * nn_history_get(&h, "loss", 0));
    assert_false(tensor_autocast_enabled());
    optim_scaler_free(scaler), nn_history_free(&h), drop(&a);
    a = setting();
    assert_int_equal(nn_fit(a.net, a.train, ce(), a.opt, .verbose = 0, .autocast = TENSOR_F64), -1);
    assert_says(TENSOR_EDTYPE, "");
    drop(&a);
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static void test_evaluate_and_predict(void **state)
{
    (void)state;
    Setting s = setting();
    Metric *accuracy = nn_metric_accuracy();
    nn_get_module(s.net, "1")->training = false;
    assert_non_null(data_next(s.test)); /* what was taken before is evaluated, too */
    double loss = nn_evaluate(s.net, s.test, ce(), .metrics = NN_METRICS(accuracy));
    Tensor *all = OK(nn_predict(s.net, s.test));
    assert_true(s.net->training && !nn_get_module(s.net, "1")->training &&
                nn_get_module(s.net, "3")->training);
    assert_true(shape_equal(shape_of(all), SHAPE(20, 3)));
    assert_int_equal(tensor_tape_length(), 0);
    nn_eval(s.net);
    double sum = 0, right = 0;
    for (Batch *b; (b = data_next(s.test)) != NULL;) {
        Tensor *y = tensor_detach(nn_forward(s.net, b->x));
        sum += tensor_item(tensor_cross_entropy(y, b->y)) * (double)b->size;
        right += tensor_item(tensor_sum(tensor_eq(tensor_argmax(y, 1), b->y)));
        assert_true(tensor_equal(y, tensor_narrow(all, 0, b->index * BATCH, b->size)));
    }
    assert_true(loss == sum / 20);
    assert_near(nn_metric_compute(accuracy), right / 20, 1e-15);
    assert_true(nn_evaluate(s.net, s.test, NULL, .metrics = NN_METRICS(accuracy)) == 0);
    nn_metric_free(accuracy), drop(&s);
}

static void test_validation(void **state)
{
    (void)state;
    NNHistory h;
    Setting a = setting(), b;
    Metric *accuracy = nn_metric_accuracy(), *f1 = nn_metric_f1(3);
    DONE(nn_fit(a.net, a.train, ce(), a.opt, .epochs = 2, .validate = a.test,
                .metrics = NN_METRICS(accuracy, f1), .verbose = 0, .history = &h));
    static const char *const names[] = {
        "loss", "accuracy", "f1", "val_loss", "val_accuracy", "val_f1", "lr"
    };
    assert_int_equal(h.columns, 7);
    for (int i = 0; i < 7; i++) assert_string_equal(h.name[i], names[i]);
    assert_true(nn_history_get(&h, "val_loss", 1) ==
                nn_evaluate(a.net, a.test, ce(), .metrics = NN_METRICS(f1)));
    assert_true(nn_history_get(&h, "val_f1", 1) == nn_metric_compute(f1));
    assert_in_range((int)(1000 * nn_history_get(&h, "accuracy", 1)), 200, 1000);
    assert_true(h.best == fmin(nn_history_get(&h, "val_loss", 0), nn_history_get(&h, "val_loss", 1)));
    b = setting();
    double loss[2];
    for (int e = 0; e < 2; e++) { /* validation draws its loader's seed, as PyTorch's does */
        loss[e] = loop(&b, (Loop){ .epochs = 1, .accumulate = 1 });
        nn_evaluate(b.net, b.test, ce());
    }
    assert_same_net(&a, &b);
    assert_true(loss[1] == nn_history_get(&h, "loss", 1));
    nn_history_free(&h), nn_metric_free(accuracy), nn_metric_free(f1), drop(&a), drop(&b);
}

/* ---- stopping -------------------------------------------------------------------------------- */

/* A metric whose values are those of a list, one an epoch. */
static double listed(Tensor *output, Tensor *target, void *ctx)
{
    (void)output, (void)target;
    return **(double **)ctx;
}

static Tensor *kept;

static int next_value(NNFit *fit, NNEvent event, void *ctx)
{
    if (event == NN_EPOCH_END) ++*(double **)ctx;
    if (event == NN_EPOCH_END && fit->epoch == 1)
        tensor_assign(&kept, tensor_clone(nn_get(fit->module, "0.weight")));
    return 0;
}

static void test_early_stopping(void **state)
{
    (void)state;
    double values[] = { 1, 5, 5.05, 4, 3, 9, 9, 9 }, *at = values;
    NNHistory h;
    Setting s = setting();
    Metric *m = nn_metric_custom("score", listed, &at, .mode = NN_MAX);
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 8, .metrics = NN_METRICS(m), .monitor = "score",
                .patience = 3, .min_delta = 0.1, .restore_best = true, .verbose = 0, .history = &h,
                .callbacks = (NNCallback[]){ { next_value, &at }, { NULL } }));
    assert_int_equal(h.epochs, 5);
    assert_true(h.stopped_early && !h.interrupted && h.best_epoch == 1 && h.best == 5);
    assert_true(tensor_equal(nn_get(s.net, "0.weight"), kept));
    nn_history_free(&h), nn_metric_free(m), drop(&s);
    tensor_release(kept), kept = NULL;
}

/* Patience that began to wear out in a run before. */
static void test_early_stopping_goes_on(void **state)
{
    (void)state;
    static const int64_t epochs[] = { 3, 8, 8 }, more[] = { 3, 1, 0 };
    double values[] = { 5, 1, 1, 1, 9, 9, 9, 9 }, *at = values;
    for (int run = 0; run < 3; run++) {
        NNHistory h;
        Setting s = setting();
        Metric *m = nn_metric_custom("score", listed, &at, .mode = NN_MAX);
        DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = epochs[run], .metrics = NN_METRICS(m),
                    .monitor = "score", .patience = 3, .verbose = 0, .history = &h, .checkpoint = scratch_,
                    .callbacks = (NNCallback[]){ { next_value, &at }, { NULL } }));
        assert_int_equal(h.epochs, more[run]);
        assert_true(h.stopped_early == (run > 0) && h.best == 5 && h.best_epoch == 0);
        nn_history_free(&h), nn_metric_free(m), drop(&s);
    }
    tensor_release(kept), kept = NULL;
}

typedef struct Told {
    int count[5], fails_at, stops_at;
    bool silent;
    int64_t batches;
} Told;

static int note(NNFit *fit, NNEvent event, void *ctx)
{
    Told *t = ctx;
    t->count[event]++;
    assert_true((fit->batch != NULL) == (event == NN_BATCH_END));
    if (event != NN_BATCH_END) return 0;
    assert_true(nn_fit_loss(fit) > 0 && nn_fit_batch_loss(fit) > 0);
    assert_true(fit->batch->index > 0 || nn_fit_loss(fit) == nn_fit_batch_loss(fit));
    t->batches++;
    if (t->batches == t->stops_at) fit->stop = true;
    if (t->batches != t->fails_at) return 0;
    return t->silent ? -1 : tensor_fail(TENSOR_EUSER, "note", "as it should");
}

static int note_from_the_start(NNFit *fit, NNEvent event, void *ctx)
{
    const Told *t = ctx;
    assert_true(fit->module && fit->optimizer && fit->train && !fit->validate && fit->epochs > 1);
    assert_int_equal(fit->step, t->batches + (event == NN_BATCH_END));
    assert_int_equal(fit->epoch, t->count[NN_EPOCH_END]);
    assert_int_equal(fit->history->epochs, t->count[NN_EPOCH_END] + (event == NN_EPOCH_END));
    return note(fit, event, ctx);
}

static void test_callbacks(void **state)
{
    (void)state;
    Told t = { .fails_at = 0 }, first = { .stops_at = 8 };
    Setting s = setting();
    NNHistory h;
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 2, .verbose = 0,
                .callbacks = (NNCallback[]){ { note_from_the_start, &t }, { NULL } }));
    assert_true(t.count[NN_FIT_BEGIN] == 1 && t.count[NN_EPOCH_BEGIN] == 2 && t.count[NN_EPOCH_END] == 2 &&
                t.count[NN_FIT_END] == 1 && t.count[NN_BATCH_END] == 2 * BATCHES);
    t = (Told){ .fails_at = 0 };
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 5, .verbose = 0, .history = &h,
                .callbacks = (NNCallback[]){
                    { note_from_the_start, &first }, { note_from_the_start, &t }, { NULL } }));
    assert_int_equal(h.steps, 8);
    assert_int_equal(h.epochs, 1);
    nn_history_free(&h);
    first = (Told){ .stops_at = BATCHES }; /* with the last batch of an epoch: that is finished */
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 5, .verbose = 0, .history = &h,
                .callbacks = (NNCallback[]){ { note_from_the_start, &first }, { NULL } }));
    assert_true(h.steps == BATCHES && h.epochs == 1 && first.count[NN_EPOCH_END] == 1);
    nn_history_free(&h);
    for (int silent = 0; silent < 2; silent++) {
        Told bad = { .fails_at = 9, .silent = silent };
        assert_int_equal(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 5, .verbose = 0, .history = &h,
                                .callbacks = (NNCallback[]){ { note_from_the_start, &bad }, { NULL } }),
                         -1);
        assert_says(TENSOR_EUSER, silent ? "nn_fit: a callback failed without" : "note: as it should");
        assert_int_equal(h.steps, 9);
        nn_history_free(&h);
    }
    drop(&s);
}

static int interrupts(NNFit *fit, NNEvent event, void *ctx)
{
    if (event == NN_BATCH_END && fit->step == *(int *)ctx) raise(SIGINT);
    return 0;
}

static int taken;
static void own_handler(int signal) { taken = signal; }

static void test_interrupt(void **state)
{
    (void)state;
    NNHistory h;
    Setting s = setting(), whole;
    int at = 8;
    void (*before)(int) = signal(SIGINT, SIG_DFL);
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 3, .verbose = 0, .history = &h, .checkpoint = scratch_,
                .callbacks = (NNCallback[]){ { interrupts, &at }, { NULL } }));
    assert_true(h.interrupted && h.steps == 8);
    nn_history_free(&h), drop(&s);
    s = setting();
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 3, .verbose = 0, .history = &h,
                .checkpoint = scratch_));
    assert_true(h.resumed && !h.interrupted && h.steps == 3 * BATCHES && h.epochs == 2);
    whole = setting();
    double last = loop(&whole, (Loop){ .epochs = 3, .accumulate = 1 });
    assert_same_net(&s, &whole);
    assert_true(nn_history_get(&h, "loss", -1) == last);
    nn_history_free(&h);
    signal(SIGINT, own_handler); /* of the program's: it stays */
    at = 2;
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .verbose = 0, .history = &h,
                .callbacks = (NNCallback[]){ { interrupts, &at }, { NULL } }));
    assert_true(taken == SIGINT && !h.interrupted && signal(SIGINT, before) == own_handler);
    nn_history_free(&h), drop(&s), drop(&whole);
}

/* ---- going on -------------------------------------------------------------------------------- */

static int fit_with_all(Setting *s, AveragedModel *ema, Scheduler *schedule, Metric *m, Told *t, NNHistory *h,
                        FILE *out)
{
    return nn_fit(s->net, s->train, ce(), s->opt, .epochs = 4, .validate = s->test, .metrics = NN_METRICS(m),
                  .scheduler = schedule, .accumulate = 2, .averaged = ema, .checkpoint = scratch("run"),
                  .save_every = 1, .restore_best = true, .csv = scratch("log.csv"),
                  .log_dir = scratch("board"), .file = out, .history = h,
                  .callbacks = (NNCallback[]){ { note, t }, { NULL } });
}

/* The net and its average; the caller frees it. */
static TensorDict all_of(Setting *s, AveragedModel *ema)
{
    TensorDict all = nn_dict_clone(nn_state_dict(s->net)),
               state = nn_dict_clone(optim_averaged_state_dict(ema));
    for (int i = 0; i < state.count; i++) {
        char name[80];
        snprintf(name, sizeof name, "ema.%s", state.item[i].name);
        DONE(nn_dict_set(&all, name, state.item[i].tensor));
    }
    nn_dict_free(state);
    return all;
}

static void remove_folders(void)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf %s/run %s/board", scratch_, scratch_);
    assert_int_equal(system(command), 0);
}

/* Fails after so many batches, again and again, and goes on in objects that are made anew. */
static void test_goes_on(void **state)
{
    (void)state;
    static const int every[] = { 1000, 17, 7, 4, 3 };
    TensorDict want = { 0 };
    unsigned char *csv = NULL;
    size_t csv_bytes = 0;
    FILE *out = fopen(scratch("out"), "w");
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        for (int status = -1, runs = 0; status; runs++) {
            Setting s = setting();
            Scheduler *schedule = optim_reduce_lr_on_plateau(s.opt, .patience = 0);
            Metric *m = nn_metric_accuracy();
            AveragedModel *ema = optim_averaged_model(s.net, .ema_decay = 0.9);
            Told t = { .fails_at = every[i] };
            NNHistory h;
            assert_true(runs < 40);
            status = fit_with_all(&s, ema, schedule, m, &t, &h, out);
            if (status) assert_says(TENSOR_EUSER, "as it should");
            assert_true(h.resumed == (runs > 0));
            if (!status && !i) want = all_of(&s, ema), csv = get_file(scratch("log.csv"), &csv_bytes);
            TensorDict found = all_of(&s, ema);
            for (int k = 0; !status && k < want.count; k++)
                if (!tensor_equal(found.item[k].tensor, want.item[k].tensor))
                    FAILS("failing every %d batches: %s differs", every[i], want.item[k].name);
            nn_history_free(&h), nn_metric_free(m), optim_scheduler_free(schedule);
            nn_dict_free(found), optim_averaged_free(ema), drop(&s);
        }
        size_t n;
        unsigned char *text = get_file(scratch("log.csv"), &n);
        assert_true(n == csv_bytes && memcmp(text, csv, n) == 0);
        free(text);
        if (i < 4) remove_folders();
    }
    Setting s = setting(); /* a run that has ended: nothing is left to do, but the best state */
    Scheduler *schedule = optim_reduce_lr_on_plateau(s.opt, .patience = 0);
    Metric *m = nn_metric_accuracy();
    AveragedModel *ema = optim_averaged_model(s.net, .ema_decay = 0.9);
    Told t = { .fails_at = 1 };
    DONE(fit_with_all(&s, ema, schedule, m, &t, NULL, out));
    assert_true(tensor_equal(nn_get(s.net, "0.weight"), nn_dict_get(want, "0.weight")));
    nn_metric_free(m), optim_scheduler_free(schedule), optim_averaged_free(ema), drop(&s);
    fclose(out), free(csv), nn_dict_free(want);
    remove_folders();
}

static void add_count(Checkpoint *run, void *ctx) { io_checkpoint_int(run, "count", ctx); }

/* What else the program wants kept. */
static void test_parts(void **state)
{
    (void)state;
    int64_t count = 7;
    for (int64_t epochs = 1; epochs <= 2; epochs++) {
        Setting s = setting();
        DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = epochs, .verbose = 0, .checkpoint = scratch_,
                    .parts = add_count, .ctx = &count));
        assert_int_equal(count, 7);
        count = epochs == 1 ? 0 : count; /* the second one begins with what the first one had */
        drop(&s);
    }
    Setting s = setting();
    assert_int_equal(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 3, .verbose = 0, .checkpoint = scratch_),
                     -1);
    assert_says(TENSOR_EVALUE, "scalars: \"count\" is unexpected");
    drop(&s);
}

static void test_lines(void **state)
{
    (void)state;
    size_t n;
    Setting s = setting();
    const time_t before = time(NULL);
    FILE *out = fopen(scratch("lines"), "w");
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 2, .validate = s.test, .file = out));
    fclose(out);
    char *text = (char *)get_file(scratch("lines"), &n);
    text[n] = 0;
    assert_non_null(strstr(text, "epoch 1/2  loss "));
    assert_non_null(strstr(text, "\nepoch 2/2  loss "));
    assert_non_null(strstr(text, "  val_loss "));
    assert_string_equal(text + n - 3, " s\n");
    text[n - 3] = 0;
    const double seconds = atof(strrchr(text, ' '));
    assert_true(seconds >= 0 && seconds <= difftime(time(NULL), before) + 1);
    free(text), drop(&s);
}

/* A run that is over says so. */
static void test_nothing_to_do(void **state)
{
    (void)state;
    size_t n;
    for (int run = 0; run < 2; run++) {
        Setting s = setting();
        FILE *out = fopen(scratch("lines"), "w");
        DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 2, .checkpoint = scratch("run"), .file = out));
        fclose(out), drop(&s);
    }
    char *text = (char *)get_file(scratch("lines"), &n);
    text[n] = 0;
    assert_non_null(strstr(text, ": nothing to do after epoch 2, step 12\n"));
    free(text), remove_folders();
}

/* ---- a step of one's own --------------------------------------------------------------------- */

static Tensor *halved(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    if (*(bool *)ctx) return NULL;
    *output = nn_forward(net, b->x);
    return tensor_mul_scalar(tensor_cross_entropy(*output, b->y), 0.5);
}

static void test_own_step(void **state)
{
    (void)state;
    NNHistory h;
    bool fails = false;
    Setting s = setting();
    Metric *m = nn_metric_accuracy();
    DONE(nn_fit(s.net, s.train, NULL, s.opt, .step = halved, .ctx = &fails, .metrics = NN_METRICS(m),
                .verbose = 0, .validate = s.test, .history = &h));
    assert_true(nn_history_get(&h, "val_loss", 0) == nn_evaluate(s.net, s.test, ce()) / 2);
    assert_true(nn_metric_compute(m) > 0);
    assert_true(
        shape_equal(shape_of(nn_predict(s.net, s.test, .step = halved, .ctx = &fails)), SHAPE(20, 3)));
    fails = true;
    assert_int_equal(nn_fit(s.net, s.train, NULL, s.opt, .step = halved, .ctx = &fails, .verbose = 0), -1);
    assert_says(TENSOR_EUSER, "nn_fit: the step gave no loss");
    nn_history_free(&h), nn_metric_free(m), drop(&s);
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define REFUSED(code, words, ...) (assert_int_equal(nn_fit(__VA_ARGS__), -1), assert_says(code, words))

static void test_refusals(void **state)
{
    (void)state;
    Setting s = setting(), before = setting();
    DataLoader *none = loader(0, false);
    Metric *m = nn_metric_mean("a"), *again = nn_metric_mean("a"), *misshapen = nn_metric_confusion_matrix(2);
    REFUSED(TENSOR_ENULL, "nn_fit: the module is NULL", NULL, s.train, ce(), s.opt);
    REFUSED(TENSOR_ENULL, "the loader is NULL", s.net, NULL, ce(), s.opt);
    REFUSED(TENSOR_ENULL, "the loss is NULL", s.net, s.train, NULL, s.opt);
    REFUSED(TENSOR_ENULL, "the optimizer is NULL", s.net, s.train, ce(), NULL);
    REFUSED(TENSOR_EVALUE, "the loader of .train gives no batches: 0 samples", s.net, none, ce(), s.opt);
    REFUSED(TENSOR_EVALUE, "the loader of .validate gives no", s.net, s.train, ce(), s.opt, .validate = none);
    REFUSED(TENSOR_EVALUE, "epochs -1", s.net, s.train, ce(), s.opt, .epochs = -1);
    REFUSED(TENSOR_EVALUE, "accumulate 0", s.net, s.train, ce(), s.opt, .accumulate = 0);
    REFUSED(TENSOR_EVALUE, "l2 nan", s.net, s.train, ce(), s.opt, .l2 = NAN);
    REFUSED(TENSOR_EVALUE, "monitor: \"val_loss\" is none of the numbers", s.net, s.train, ce(), s.opt,
            .monitor = "val_loss");
    REFUSED(TENSOR_EVALUE, "metrics: \"a\" is there twice, or has a comma: give it another .name", s.net,
            s.train, ce(), s.opt, .metrics = NN_METRICS(m, again));
    REFUSED(TENSOR_EVALUE, "keep 0", s.net, s.train, ce(), s.opt, .checkpoint = scratch_, .keep = 0);
    REFUSED(TENSOR_EIO, "log.csv", s.net, s.train, ce(), s.opt, .csv = scratch("no/log.csv"));
    REFUSED(TENSOR_ESHAPE, "tensor_mse_loss", s.net, s.train, nn_mse_loss(), s.opt, .verbose = 0);
    assert_true(tensor_equal(nn_get(s.net, "0.weight"), nn_get(before.net, "0.weight")));
    REFUSED(TENSOR_EVALUE, "is none of 2 classes", s.net, s.train, ce(), s.opt, .verbose = 0,
            .metrics = NN_METRICS(misshapen));
    assert_true(isnan(nn_evaluate(s.net, none, ce())));
    assert_says(TENSOR_EVALUE, "nn_evaluate: the loader gives no batches");
    assert_null(nn_predict(s.net, none));
    assert_says(TENSOR_EVALUE, "nn_predict: the loader gives no batches");
    assert_null(nn_predict(NULL, s.test));
    assert_says(TENSOR_ENULL, "nn_predict: the module is NULL");
    nn_metric_free(m), nn_metric_free(again), nn_metric_free(misshapen), data_loader_free(none);
    drop(&s), drop(&before);
}

static int empty(void **state)
{
    int status = sane_begin(state);
    DIR *d = opendir(scratch_);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') remove(scratch(e->d_name));
    if (d) closedir(d);
    return status;
}
#define CLEAN(f) cmocka_unit_test_setup_teardown(f, empty, sane_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_is_the_loop),
        CLEAN(test_options),
        CLEAN(test_schedules),
        CLEAN(test_autocast_and_scaler),
        CLEAN(test_evaluate_and_predict),
        CLEAN(test_validation),
        CLEAN(test_early_stopping),
        CLEAN(test_early_stopping_goes_on),
        CLEAN(test_callbacks),
        CLEAN(test_interrupt),
        CLEAN(test_goes_on),
        CLEAN(test_parts),
        CLEAN(test_lines),
        CLEAN(test_nothing_to_do),
        CLEAN(test_own_step),
        CLEAN(test_refusals),
    };
    return cmocka_run_group_tests_name("fit", tests, scratch_begin, scratch_end);
}
