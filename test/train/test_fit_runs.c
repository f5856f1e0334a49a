/* test_fit_runs.c - what a run of nn_fit meets on its way: a loader in the middle of an epoch, batches that
 * are left over, a net that grows, interrupts outside of batches, the tags of TensorBoard. */
#define _GNU_SOURCE
#include <signal.h>
#include "setting.h"

/* ---- the loader ------------------------------------------------------------------------------ */

typedef struct Seen {
    int64_t batches, first;
    int64_t stops_at;
} Seen;

static int count_batches(NNFit *fit, NNEvent event, void *ctx)
{
    Seen *s = ctx;
    if (event != NN_BATCH_END) return 0;
    if (s->batches++ == 0) s->first = fit->batch->index;
    fit->stop = s->batches == s->stops_at;
    return 0;
}

static Seen fit_once(Setting *s, int64_t stops_at)
{
    Seen seen = { .first = -1, .stops_at = stops_at };
    DONE(nn_fit(s->net, s->train, ce(), s->opt, .verbose = 0,
                .callbacks = (NNCallback[]){ { count_batches, &seen }, { NULL } }));
    return seen;
}

static void test_begins_an_epoch(void **state)
{
    (void)state;
    Setting s = setting();
    assert_non_null(data_next(s.train));
    assert_non_null(data_next(s.train));
    Seen seen = fit_once(&s, 3); /* and stops in the middle of it */
    assert_true(seen.first == 0 && seen.batches == 3);
    seen = fit_once(&s, 0);
    assert_true(seen.first == 0 && seen.batches == BATCHES);
    assert_non_null(data_next(s.train));
    assert_int_equal(nn_fit(s.net, s.train, ce(), s.opt, .epochs = -1), -1); /* refused: where it was */
    assert_says(TENSOR_EVALUE, "epochs -1");
    assert_int_equal(data_next(s.train)->index, 1);
    drop(&s);
}

/* The loss of w on (x, 0) is w^2 x^2: a step at 0.01 multiplies w by 1 - 0.02 times the mean of x^2 over its
 * batches. */
static void test_leftovers_are_a_mean(void **state)
{
    (void)state;
    static const double x[] = { 1, 2, 3, 1, 2 };
    static const struct {
        int accumulate;
        double mean[5]; /* of x^2, a step */
    } rows[] = { { 1, { 1, 4, 9, 1, 4 } }, { 2, { 2.5, 5, 4 } }, { 3, { 14. / 3, 2.5 } },
                 { 4, { 15. / 4, 4 } },    { 5, { 19. / 5 } },   { 9, { 19. / 5 } } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *in = tensor_from_data(x, SHAPE(5, 1), TENSOR_F64),
               *out = tensor_zeros(SHAPE(5, 1), TENSOR_F64);
        DataLoader *l = data_loader(data_tensors(in, out), .batch_size = 1);
        Module *net = nn_linear(1, 1, .bias = false);
        DONE(nn_to(net, TENSOR_F64));
        nn_init_constant_(nn_get(net, "weight"), 1);
        Optimizer *opt = optim_sgd(nn_parameters(net), 0.01);
        double want = 1;
        for (int k = 0; k < 5; k++) want *= 1 - 0.02 * rows[i].mean[k];
        DONE(nn_fit(net, l, nn_mse_loss(), opt, .accumulate = rows[i].accumulate, .verbose = 0));
        assert_near(tensor_item(nn_get(net, "weight")), want, 1e-14);
        data_loader_free(l), optim_free(opt), nn_free(net);
        tensor_scope_close(scope);
    }
}

/* ---- a net that grows ------------------------------------------------------------------------ */

static int grow(NNFit *fit, NNEvent event, void *ctx)
{
    if (event != NN_EPOCH_BEGIN || fit->epoch != 1) return 0;
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "more%d", i);
        nn_child(fit->module, name, nn_linear(3, 3, .bias = false));
    }
    nn_init_constant_(nn_get(fit->module, "more39.weight"), *(double *)ctx);
    return 0;
}

/* Penalties and clipping go over what there is, and not over the list that was there at first. */
static void test_a_net_that_grows(void **state)
{
    (void)state;
    NNHistory h;
    double weight = 1000; /* of 3 x 3 that the optimizer does not know */
    Setting s = setting();
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = 2, .verbose = 0, .clip_grad_norm = 1,
                .clip_grad_value = 1, .l2 = 100, .history = &h,
                .callbacks = (NNCallback[]){ { grow, &weight }, { NULL } }));
    assert_true(nn_history_get(&h, "loss", 0) < 100 * 9e6 && nn_history_get(&h, "loss", 1) > 100 * 9e6);
    assert_true(tensor_item(tensor_norm(tensor_grad(nn_get(s.net, "more39.weight")))) < 1.001);
    nn_history_free(&h), drop(&s);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

typedef enum When { IN_VALIDATION, AT_EPOCH_END, AT_FIT_END } When;

typedef struct Interrupt {
    When when;
    Module *net;
    bool restarts;
} Interrupt;

static double in_validation(Tensor *output, Tensor *target, void *ctx)
{
    Interrupt *i = ctx;
    (void)output, (void)target;
    if (i->when == IN_VALIDATION && !i->net->training) raise(SIGINT), i->when = AT_FIT_END + 1;
    return 0;
}

static int at_event(NNFit *fit, NNEvent event, void *ctx)
{
    Interrupt *i = ctx;
    struct sigaction there;
    (void)fit;
    if (event == NN_FIT_BEGIN && !sigaction(SIGINT, NULL, &there))
        i->restarts = (there.sa_flags & SA_RESTART) != 0;
    if (event == (i->when == AT_EPOCH_END ? NN_EPOCH_END : NN_FIT_END) && i->when <= AT_FIT_END &&
        i->when != IN_VALIDATION)
        raise(SIGINT), i->when = AT_FIT_END + 1;
    return 0;
}

static void test_interrupts_are_heeded(void **state)
{
    (void)state;
    void (*before)(int) = signal(SIGINT, SIG_DFL);
    for (int64_t epochs = 1; epochs <= 2; epochs++)
        for (When when = IN_VALIDATION; when <= AT_FIT_END; when++) {
            NNHistory h;
            Setting s = setting();
            Interrupt i = { .when = when, .net = s.net };
            Metric *m = nn_metric_custom("none", in_validation, &i);
            DONE(nn_fit(s.net, s.train, ce(), s.opt, .epochs = epochs, .validate = s.test, .verbose = 0,
                        .metrics = NN_METRICS(m), .history = &h,
                        .callbacks = (NNCallback[]){ { at_event, &i }, { NULL } }));
            assert_true(h.interrupted && i.restarts);
            assert_int_equal(h.epochs, when == AT_FIT_END ? epochs : 1);
            assert_true(signal(SIGINT, SIG_DFL) == SIG_DFL);
            nn_history_free(&h), nn_metric_free(m), drop(&s);
        }
    signal(SIGINT, before);
}

/* A column of each side is in the group of its name; the rate is alone. */
static void test_tags_of_tensorboard(void **state)
{
    (void)state;
    static const char *const tags[] = { "loss/train", "loss/val", "accuracy/train", "accuracy/val", "lr" };
    Setting s = setting();
    Metric *m = nn_metric_accuracy();
    char folder[300], path[600] = "", command[600];
    snprintf(folder, sizeof folder, "%s", scratch("tags"));
    DONE(nn_fit(s.net, s.train, ce(), s.opt, .validate = s.test, .metrics = NN_METRICS(m), .verbose = 0,
                .log_dir = folder));
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') snprintf(path, sizeof path, "%s/%.250s", folder, e->d_name);
    closedir(d);
    size_t n;
    char *bytes = (char *)get_file(path, &n);
    for (size_t k = 0; k < sizeof tags / sizeof *tags; k++) {
        char field[40]; /* of protobuf: its number and kind, the length, the tag; then the next field */
        const int length = snprintf(field, sizeof field, "\n%c%s\x15", (char)strlen(tags[k]), tags[k]);
        int found = 0;
        for (size_t at = 0; at + (size_t)length <= n; at++)
            found += !memcmp(bytes + at, field, (size_t)length);
        if (found != 1) FAILS("%s: %d times", tags[k], found);
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    free(bytes), nn_metric_free(m), drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_tags_of_tensorboard), TEST(test_begins_an_epoch),       TEST(test_leftovers_are_a_mean),
        TEST(test_a_net_that_grows),    TEST(test_interrupts_are_heeded),
    };
    return cmocka_run_group_tests_name("fit_runs", tests, scratch_begin, scratch_end);
}
