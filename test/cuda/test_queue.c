/* test_queue.c - a device that queues its work: what waits for it, and what is told late.  On the
 * device of TAPEGRAD_TEST_DEVICE; emu:0 counts what its runtime is asked for. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include "emulator.h"
#include <tapegrad/cmocka.h>
#include "optim_cases.h"

static Tensor *pattern(TensorShape shape, TensorDtype dtype)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    Tensor *x = tensor_sin(tensor_arange(0, (double)n, 1, TENSOR_F64));
    return tensor_to_device(tensor_to(tensor_reshape(x, shape), dtype), test_device());
}

/* Queued, then told by the next wait, with the value, its place and the call; or at once. */
static void bad_targets_and_indices(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const int64_t bad[3] = { 0, 7, 1 };
    Tensor *t = tensor_to_device(tensor_from_data(bad, SHAPE(3), TENSOR_I64), test_device()),
           *x = pattern(SHAPE(3, 4), TENSOR_F32);
    for (int at_once = 0; at_once < 2; at_once++) {
        setenv("TAPEGRAD_CUDA_SYNC", at_once ? "1" : "0", 1);
        for (int which = 0; which < 4; which++) {
            Tensor *y = which == 0   ? tensor_cross_entropy(x, t)
                        : which == 1 ? tensor_index_select(x, 0, t)
                        : which == 2 ? tensor_index_add(x, 0, t, x)
                                     : tensor_multilabel_margin_loss(tensor_select(x, 1, 0), t);
            assert_true(at_once ? y == NULL : y && !tensor_error());
            if (!at_once) assert_int_equal(tensor_synchronize(test_device()), -1);
            assert_int_equal(tensor_error_code(), TENSOR_EINDEX);
            assert_non_null(strstr(tensor_error(), "7 at position"));
            assert_non_null(strstr(tensor_error(), which == 0   ? "tensor_cross_entropy"
                                                   : which == 1 ? "tensor_index_select"
                                                   : which == 2 ? "tensor_index_add"
                                                                : "tensor_multilabel_margin_loss"));
            assert_non_null(strstr(tensor_error(), "test_queue.c"));
            tensor_error_clear();
            assert_int_equal(tensor_synchronize(test_device()), 0);
        }
    }
    unsetenv("TAPEGRAD_CUDA_SYNC");
    assert_true(tensor_item(tensor_sum(x)) < 4);
    tensor_scope_close(scope);
}

/* The device keeps notes of the last calls only: of an older one it tells the value and its place. */
static void a_fault_of_long_ago(void **state)
{
    (void)state;
    const int64_t bad[3] = { 0, 7, 1 }, good[3] = { 0, 2, 1 };
    for (int calls = 255; calls <= 256; calls++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = pattern(SHAPE(3, 4), TENSOR_F32),
               *wrong = tensor_to_device(tensor_from_data(bad, SHAPE(3), TENSOR_I64), test_device()),
               *right = tensor_to_device(tensor_from_data(good, SHAPE(3), TENSOR_I64), test_device());
        assert_non_null(tensor_index_select(x, 0, wrong));
        for (int i = 0; i < calls; i++) assert_non_null(tensor_index_select(x, 0, right));
        assert_int_equal(tensor_synchronize(test_device()), -1);
        assert_int_equal(tensor_error_code(), TENSOR_EINDEX);
        const char *text = tensor_error();
        assert_non_null(strstr(text, "index 7 at position 1 "));
        assert_true((strstr(text, "tensor_index_select") && strstr(text, "want 0 to 2")) == (calls < 256));
        assert_true((strstr(text, "of a call long ago") != NULL) == (calls == 256));
        tensor_error_clear();
        assert_int_equal(tensor_synchronize(test_device()), 0);
        tensor_scope_close(scope);
    }
}

/* A step of a net of tokens, from the embedding over causal attention to AdamW: nothing waits. */
static void a_step_never_waits(void **state)
{
    (void)state;
    enum { VOCABULARY = 11, WIDTH = 8 };
    struct CuemuCounts before = { 0 }, after;
    Module *net = nn_sequential(
        nn_sequential(nn_embedding(VOCABULARY, WIDTH), nn_layer_norm(WIDTH)),
        nn_sequential(nn_linear(WIDTH, WIDTH), nn_gelu(), nn_dropout(0.1), nn_linear(WIDTH, VOCABULARY)));
    assert_non_null(net);
    assert_int_equal(nn_to_device(net, test_device()), 0);
    Optimizer *opt = optim_adamw(nn_parameters(net), .lr = 1e-3);
    TensorScope scope = tensor_scope_open();
    const int64_t ids[6] = { 1, 4, 10, 0, 3, 3 };
    Tensor *x = tensor_to_device(tensor_from_data(ids, SHAPE(2, 3), TENSOR_I64), test_device()), *loss = NULL;
    const int64_t fallbacks = tensor_host_fallbacks();
    for (int step = 0; step < 3; step++) {
        before = counts_now();
        Tensor *h = nn_forward(nn_get_module(net, "0"), x);
        h = tensor_add(h, tensor_scaled_dot_product_attention(h, h, h, .is_causal = true));
        h = nn_forward(nn_get_module(net, "1"), h);
        loss = tensor_cross_entropy(tensor_reshape(h, SHAPE(6, VOCABULARY)), tensor_reshape(x, SHAPE(6)));
        optim_zero_grad(opt);
        assert_int_equal(tensor_backward(loss), 0);
        const int64_t launches = counts_now().launches;
        assert_non_null(nn_clip_grad_norm_(nn_parameters(net), 1.0));
        assert_int_equal(optim_step(opt), 0);
        if (step) assert_true(counts_now().launches <= launches + 12); /* states are made by then */
    }
    after = counts_now();
    assert_int_equal(after.waits, before.waits);
    assert_int_equal(after.to_device, before.to_device);
    assert_int_equal(after.to_host, before.to_host);
    assert_int_equal(tensor_host_fallbacks(), fallbacks);
    assert_true(isfinite(tensor_item(loss)));
    tensor_scope_close(scope);
    optim_free(opt);
    nn_free(net);
}

/* ---- a run ----------------------------------------------------------------------------------- */

enum { METRICS = 6, FEATURES = 4, CLASSES = 3 };

typedef struct FitRun {
    Metric *metric[METRICS + 1];
    double value[METRICS], loss, val_loss;
    int64_t reads; /* copies to the host, each of which waits */
} FitRun;

static DataLoader *samples(int64_t batches, const char *device)
{
    const int64_t n = 8 * batches;
    Tensor *x = tensor_sin(tensor_arange(0, (double)(n * FEATURES), 1, TENSOR_F32)),
           *y = tensor_remainder_scalar(tensor_arange(0, (double)n, 1, TENSOR_F32), CLASSES);
    return data_loader(data_tensors(tensor_reshape(x, SHAPE(n, FEATURES)), tensor_to(y, TENSOR_I64)),
                       .batch_size = 8, .prefetch = 0, .device = device);
}

static int read_loss(NNFit *fit, NNEvent event, void *ctx)
{
    (void)ctx;
    return event == NN_BATCH_END && !(nn_fit_batch_loss(fit) > 0) ? -1 : 0;
}

/* Two epochs with a validation; every batch is looked at, or none. */
static FitRun fit_there(const char *device, int64_t batches, bool looks)
{
    NNHistory h;
    FitRun r = { .metric = { nn_metric_accuracy(), nn_metric_accuracy(.top_k = 2, .name = "top2"),
                             nn_metric_f1(CLASSES), nn_metric_confusion_matrix(CLASSES),
                             nn_metric_perplexity(), nn_metric_mean("mean") } };
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(1);
    Module *net = nn_sequential(nn_linear(FEATURES, 8), nn_relu(), nn_linear(8, CLASSES));
    assert_int_equal(nn_to_device(net, device), 0);
    Optimizer *opt = optim_sgd(nn_parameters(net), 0.1);
    DataLoader *train = samples(batches, device), *test = samples(batches, device);
    const int64_t before = counts_now().to_host;
    assert_int_equal(
        nn_fit(net, train, nn_cross_entropy_loss(), opt, .epochs = 2, .validate = test, .metrics = r.metric,
               .verbose = 0, .history = &h,
               .callbacks = looks ? (NNCallback[]){ { read_loss, NULL }, { NULL, NULL } } : NULL),
        0);
    r.reads = counts_now().to_host - before;
    for (int i = 0; i < METRICS; i++) r.value[i] = nn_metric_compute(r.metric[i]);
    r.loss = nn_history_get(&h, "loss", 1), r.val_loss = nn_history_get(&h, "val_loss", 1);
    nn_history_free(&h), data_loader_free(train), data_loader_free(test), optim_free(opt), nn_free(net);
    for (int i = 0; i < METRICS; i++) nn_metric_free(r.metric[i]);
    tensor_scope_close(scope);
    return r;
}

/* Losses and metrics stay there: how often a run reads does not depend on the number of batches.  (Waits are
 * not compared: those of the loader's copies depend on how full their ring is.) */
static void a_run_reads_once_an_epoch(void **state)
{
    (void)state;
    const FitRun few = fit_there(test_device(), 3, false), many = fit_there(test_device(), 40, false),
                 looking = fit_there(test_device(), 40, true), here = fit_there("cpu", 40, false);
    assert_int_equal(few.reads, many.reads);
    if (is_emulated())
        assert_true(looking.reads >= many.reads + 2 * 40 - 2); /* the last look is that of the epoch's end */
    assert_true(fabs(many.loss - here.loss) < 1e-5 && fabs(many.val_loss - here.val_loss) < 1e-5);
    assert_true(many.loss == looking.loss);
    for (int i = 0; i < METRICS; i++) assert_true(fabs(many.value[i] - here.value[i]) < 1e-4);
}

static Tensor *infinite_at_5(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    *output = nn_forward(net, b->x);
    Tensor *loss = tensor_cross_entropy(*output, b->y);
    return ++*(int *)ctx == 5 ? tensor_mul_scalar(loss, INFINITY) : loss;
}

/* What is wrong in a run is told late, and names the batch or the metric. */
static void a_run_tells_late(void **state)
{
    (void)state;
    int batches = 0;
    TensorScope scope = tensor_scope_open();
    Module *net = nn_linear(FEATURES, CLASSES);
    assert_int_equal(nn_to_device(net, test_device()), 0);
    Optimizer *opt = optim_sgd(nn_parameters(net), 0.1);
    DataLoader *train = samples(8, test_device());
    assert_int_equal(nn_fit(net, train, NULL, opt, .step = infinite_at_5, .ctx = &batches, .verbose = 0), -1);
    assert_non_null(strstr(tensor_error(), "nn_fit: the loss of epoch 1, batch 5 of 8 is inf"));
    assert_int_equal(batches, 8);
    tensor_error_clear();
    Metric *m = nn_metric_accuracy(), *matrix = nn_metric_confusion_matrix(CLASSES);
    Tensor *x = pattern(SHAPE(4, CLASSES), TENSOR_F32),
           *good = tensor_to_device(tensor_from_data((int64_t[]){ 0, 1, 2, -100 }, SHAPE(4), TENSOR_I64),
                                    test_device()),
           *bad = tensor_to_device(tensor_from_data((int64_t[]){ 0, 9, -3, -100 }, SHAPE(4), TENSOR_I64),
                                   test_device()),
           *part = tensor_to_device(tensor_from_data((double[]){ 0, 1, 2.5, 1 }, SHAPE(4), TENSOR_F64),
                                    test_device());
    Metric *both[2] = { m, matrix };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nn_metric_update(both[i], x, good), 0);
        const double before = nn_metric_compute(both[i]);
        assert_int_equal(nn_metric_update(both[i], x, bad), 0);
        assert_true(isnan(nn_metric_compute(both[i])));
        assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
        assert_non_null(
            strstr(tensor_error(), i ? "(confusion_matrix): 2 targets since the last look are none of 3"
                                     : "(accuracy): 2 targets since the last look are none of 3"));
        tensor_error_clear();
        assert_true(nn_metric_compute(both[i]) == before);
        assert_int_equal(nn_metric_update(both[i], x, part), 0);
        assert_int_equal(nn_metric_update(both[i], x, good), -1); /* of another dtype: it looks first */
        assert_int_equal(tensor_error_code(), TENSOR_EDTYPE);
        tensor_error_clear();
        assert_int_equal(nn_metric_update(both[i], x, good), 0);
        assert_true(nn_metric_compute(both[i]) == before);
        assert_int_equal(nn_metric_update(both[i], x, bad), 0);
        nn_metric_reset(both[i]); /* forgets it */
        assert_int_equal(nn_metric_update(both[i], tensor_to_device(x, "cpu"), tensor_to_device(good, "cpu")),
                         0);
        assert_true(nn_metric_compute(both[i]) == before);
        nn_metric_free(both[i]);
    }
    data_loader_free(train), optim_free(opt), nn_free(net);
    tensor_scope_close(scope);
}

/* ---- steps that a flag of the device skips ----------------------------------------------------- */

enum { ATTEMPTS = 11, TENSORS_OF_A_RUN = 2 * (OPTIM_STATES + 1), BAD = 1 << 1 | 1 << 3 | 1 << 4 | 1 << 8 };

/* Skips attempts before the first step, later ones, and the last but two. */
static bool is_bad(int attempt, bool from_the_start) { return BAD >> (attempt + !from_the_start) & 1; }

static void move(const Run *r, const char *device)
{
    assert_int_equal(optim_zero_grad(r->opt), 0);
    assert_int_equal(tensor_set_data(r->p, tensor_to_device(tensor_detach(r->p), device)), 0);
    assert_int_equal(tensor_set_data(r->q, tensor_to_device(tensor_detach(r->q), device)), 0);
}

static Run run_there(const Case *c, TensorDtype dtype)
{
    Run r = run_begin(c, dtype);
    move(&r, test_device());
    if (dtype == TENSOR_BF16) assert_int_equal(optim_set_master_weights(r.opt, true), 0);
    return r;
}

static void attempt_gradients(const Run *r, int attempt, bool bad)
{
    Tensor *p = tensor_to_device(tensor_detach(r->p), "cpu"),
           *q = tensor_to_device(tensor_detach(r->q), "cpu");
    optim_case_set_gradients(p, q, attempt);
    Tensor *of_p = tensor_grad(p), *of_q = tensor_grad(q);
    if (bad) of_p = tensor_mul_scalar(of_p, attempt % 2 ? (double)INFINITY : (double)NAN);
    tensor_set_grad(r->p, tensor_to_device(of_p, tensor_device(r->p)));
    tensor_set_grad(r->q, of_q ? tensor_to_device(of_q, tensor_device(r->q)) : NULL);
}

/* Each attempt has rates of its own. */
static void next_lr(const Run *r)
{
    for (int g = 0; g < r->opt->groups; g++)
        for (const OpField *f = r->opt->kind->fields; f->name; f++)
            if (strcmp(f->name, "lr") == 0)
                *(double *)(void *)((char *)r->opt->group[g].options + f->offset) *= 0.9;
}

/* Copies of parameters and states; NULL where there is none. */
static void all_tensors(const Run *r, Tensor **t)
{
    for (int g = 0; g < 2; g++) {
        const OptimParam *p = &r->opt->group[g].param[0];
        *t++ = tensor_clone(tensor_detach(p->tensor));
        for (int s = 0; s < OPTIM_STATES; s++) *t++ = p->state[s] ? tensor_clone(p->state[s]) : NULL;
    }
}

/* A state that only one has, as the skipped attempt made it, is one of zeros. */
static void assert_all_are(const Case *c, int attempt, Tensor **got, Tensor **want, double limit)
{
    for (int i = 0; i < TENSORS_OF_A_RUN; i++) {
        if (!got[i]) continue;
        Tensor *as = want[i] ? want[i] : tensor_zeros_like(got[i]);
        if (limit == 0 ? !tensor_equal(got[i], as)
                       : !tensor_allclose(got[i], as, .rtol = limit, .atol = limit))
            fail_msg("%s {%s}: tensor %d after attempt %d", c->name, c->text[0], i, attempt);
    }
}

static void assert_as_unscaled(const Case *c, Run *a, Run *b, double limit)
{
    const TensorDict got = nn_dict_clone(optim_state_dict(a->opt)), want = optim_state_dict(b->opt);
    assert_int_equal(got.count, want.count);
    for (int i = 0; i < want.count; i++) {
        assert_string_equal(got.item[i].name, want.item[i].name);
        if (!tensor_allclose(got.item[i].tensor, want.item[i].tensor, .rtol = limit, .atol = limit,
                             .equal_nan = true))
            fail_msg("%s {%s}: another %s", c->name, c->text[0], got.item[i].name);
    }
    nn_dict_free(got);
}

/* mixed: with steps in between that no flag may skip. */
static void skip_some(const Case *c, TensorDtype dtype, bool from_the_start, bool mixed)
{
    Run a = run_there(c, dtype), b = run_there(c, dtype);
    Tensor *flag[2] = { tensor_to_device(tensor_zeros(SHAPE(), TENSOR_F32), test_device()),
                        tensor_to_device(tensor_ones(SHAPE(), TENSOR_F32), test_device()) };
    Tensor *want[ATTEMPTS + 1][TENSORS_OF_A_RUN], *after[ATTEMPTS + 1][TENSORS_OF_A_RUN];
    const double limit = dtype == TENSOR_F64 ? 1e-14 : dtype == TENSOR_F32 ? 2e-6 : 0.02;
    for (int t = 1; t <= ATTEMPTS; t++) {
        const bool bad = is_bad(t, from_the_start);
        next_lr(&a), next_lr(&b);
        attempt_gradients(&a, t, bad), attempt_gradients(&b, t, false);
        if (bad) all_tensors(&a, want[t]);
        const bool plain = mixed && !bad && t % 2;
        const struct CuemuCounts then = counts_now();
        assert_int_equal(plain ? optim_step(a.opt) : optim_step_unless(a.opt, flag[bad]), 0);
        const struct CuemuCounts now = counts_now();
        if (!mixed && (now.waits != then.waits || now.to_host != then.to_host))
            fail_msg("%s {%s}: attempt %d waits", c->name, c->text[0], t);
        if (!bad) assert_int_equal(optim_step(b.opt), 0);
        if (!bad) all_tensors(&b, want[t]);
        all_tensors(&a, after[t]);
    }
    for (int t = 1; t <= ATTEMPTS; t++)
        assert_all_are(c, t, after[t], want[t], is_bad(t, from_the_start) ? 0 : limit);
    assert_as_unscaled(c, &a, &b, limit);
    run_end(&b), run_end(&a);
}

static void skipped_steps(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16 };
    const int64_t live = tensor_live_count();
    for (int k = 0; k < optim_case_count; k++)
        for (int d = 0; d < 4; d++) skip_some(&optim_cases[k], dtypes[d % 3], d % 2 == 0, d == 3);
    assert_int_equal(tensor_live_count(), live);
}

/* To the device after two steps, and back after four. */
static void states_follow(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        const Case *c = &optim_cases[k];
        Run a = run_begin(c, TENSOR_F64), b = run_begin(c, TENSOR_F64);
        for (int t = 1; t <= 6; t++) {
            if (t == 3 || t == 5) move(&a, t == 3 ? test_device() : "cpu");
            attempt_gradients(&a, t, false);
            if (optim_step(a.opt)) fail_msg("%s {%s}, step %d: %s", c->name, c->text[0], t, tensor_error());
            run_step(&b, t);
        }
        assert_as_unscaled(c, &a, &b, 1e-12);
        assert_true(tensor_allclose(a.p, b.p, .rtol = 1e-12, .atol = 1e-12));
        assert_true(tensor_allclose(a.q, b.q, .rtol = 1e-12, .atol = 1e-12));
        run_end(&b), run_end(&a);
    }
}

static Tensor *sees_the_device(Tensor *gradient, void *ctx)
{
    (void)ctx;
    assert_string_equal(tensor_device(gradient), test_device());
    return NULL;
}

/* A leaf is used, moved, and perhaps used again: gradients reach it where it is now. */
static void a_leaf_that_moved(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_requires_grad_(tensor_arange(0, 5, 1, TENSOR_F64), true),
               *want = tensor_mul_scalar(tensor_detach(x), again ? 4 : 2), *y = tensor_sum(tensor_square(x));
        assert_true(tensor_register_hook(x, sees_the_device, NULL) > 0);
        assert_int_equal(tensor_set_data(x, tensor_to_device(tensor_detach(x), test_device())), 0);
        if (again) y = tensor_add(y, tensor_to_device(tensor_sum(tensor_square(x)), "cpu"));
        if (tensor_backward(y)) fail_msg("%s", tensor_error());
        assert_true(tensor_equal(tensor_to_device(tensor_grad(x), "cpu"), want));
        tensor_scope_close(scope);
    }
}

/* The host asks once in 39 attempts, and goes on right. */
static void many_skipped_steps(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x[2], *flag[2], *grad = pattern(SHAPE(5), TENSOR_F32);
    Optimizer *opt[2];
    int asked = 0;
    for (int i = 0; i < 2; i++) {
        x[i] = tensor_requires_grad_(tensor_detach(pattern(SHAPE(5), TENSOR_F32)), true);
        flag[i] = tensor_to_device(tensor_full(SHAPE(1), i, TENSOR_I32), test_device());
        opt[i] = optim_nadam(TENSORS(x[i]), .lr = 0.01);
        tensor_set_grad(x[i], grad);
    }
    for (int t = 0; t < 150; t++) {
        const struct CuemuCounts then = counts_now();
        assert_int_equal(optim_step_unless(opt[0], flag[t % 3 == 0]), 0);
        if (counts_now().to_host != then.to_host) asked++;
        if (t % 3) assert_int_equal(optim_step(opt[1]), 0);
    }
    if (is_emulated()) assert_int_equal(asked, 3);
    assert_true(tensor_allclose(x[0], x[1], .rtol = 1e-5, .atol = 1e-6));
    assert_true(tensor_item(nn_dict_get(optim_state_dict(opt[0]), "state.0.step")) == 100);
    optim_free(opt[0]), optim_free(opt[1]);
    tensor_scope_close(scope);
}

/* p -= lr g / t, by a kind of one's own that lets the device hold its steps back, or does not. */
typedef struct SlowArgs {
    TensorList params;
    double lr;
} SlowArgs;

static double rate_at(const void *options, const OptimParam *p)
{
    return ((const SlowArgs *)options)->lr / (double)p->step;
}

static int slow_step(const void *options, OptimParam *p, Tensor *grad)
{
    return tensor_sub_(p->tensor, tensor_mul(grad, optim_of_step(p, rate_at, options))) ? 0 : -1;
}

static void skipped_steps_of_ones_own(void **state)
{
    (void)state;
    static const OpField fields[] = { OP_OPTION(SlowArgs, lr), { 0 } };
    for (int skips = 0; skips < 2; skips++) {
        const OptimKind kind = { .name = "Slow",
                                 .function = "slow",
                                 .args = sizeof(SlowArgs),
                                 .fields = fields,
                                 .step = slow_step,
                                 .skips = skips };
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_requires_grad_(tensor_to_device(tensor_zeros(SHAPE(2), TENSOR_F32), test_device()),
                                          true),
               *flag = tensor_to_device(tensor_arange(0, 2, 1, TENSOR_F32), test_device());
        Optimizer *opt = optim_new(&kind, &(SlowArgs){ TENSORS(x), 1 });
        tensor_set_grad(x, tensor_to_device(tensor_ones(SHAPE(2), TENSOR_F32), test_device()));
        const struct CuemuCounts then = counts_now();
        for (int t = 0; t < 5; t++)
            assert_int_equal(optim_step_unless(opt, tensor_narrow(flag, 0, t % 2, 1)), 0);
        if (is_emulated()) assert_int_equal(counts_now().to_host - then.to_host, skips ? 0 : 5);
        assert_true(fabs(tensor_get(x, DIMS(1)) + 1 + 1 / 2. + 1 / 3.) < 1e-6);
        assert_null(optim_of_step(NULL, rate_at, NULL));
        assert_int_equal(tensor_error_code(), TENSOR_ENULL);
        tensor_error_clear();
        optim_free(opt);
        tensor_scope_close(scope);
    }
}

/* Many copies, more than the ring of pinned memory holds, from memory that changes at once. */
static void copies_are_taken(void **state)
{
    (void)state;
    enum { N = 3 << 20, TIMES = 4 };
    TensorScope scope = tensor_scope_open();
    Tensor *there[TIMES], *here = tensor_zeros(SHAPE(N), TENSOR_F32);
    for (int i = 0; i < TIMES; i++) {
        tensor_fill_(here, i + 1);
        there[i] = tensor_to_device(here, test_device());
        assert_non_null(there[i]);
    }
    for (int i = 0; i < TIMES; i++) {
        Tensor *back = tensor_to_device(there[i], "cpu");
        assert_true(tensor_item(tensor_amin(back)) == i + 1 && tensor_item(tensor_amax(back)) == i + 1);
    }
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_targets_and_indices),
        cmocka_unit_test(a_fault_of_long_ago),
        cmocka_unit_test(a_run_reads_once_an_epoch),
        cmocka_unit_test(a_run_tells_late),
        cmocka_unit_test(a_step_never_waits),
        cmocka_unit_test(skipped_steps),
        cmocka_unit_test(states_follow),
        cmocka_unit_test(a_leaf_that_moved),
        cmocka_unit_test(many_skipped_steps),
        cmocka_unit_test(skipped_steps_of_ones_own),
        cmocka_unit_test(copies_are_taken),
    };
    if (!test_device_opens()) return 1;
    return cmocka_run_group_tests_name("queued work", tests, optim_read_cases, NULL);
}
