/* test_lr_mixes.c - several schedules that change the rates of one optimizer, and runs that are resumed by
 * .last_epoch: PyTorch's values at every step (oracle/scheduler_mixes.py). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include "kinds.h"

enum { MOST = 3, MIXED = 30, RESUMED = 20 };

static double halves(int64_t t, int group, void *ctx)
{
    (void)group, (void)ctx;
    return pow(.5, (double)(t / 10));
}

static double wavers(int64_t t, int group, void *ctx)
{
    (void)group, (void)ctx;
    return .9 + .2 * (double)(t % 2);
}

static double falls(double x, void *ctx)
{
    (void)ctx;
    return 1 / (1 + .25 * x);
}

static int mix(const char *name, Optimizer *o, Scheduler **s)
{
#define MIX(text, ...)                                      \
    if (strcmp(name, text) == 0) {                          \
        Scheduler *const made[] = { __VA_ARGS__ };          \
        memcpy((void *)s, (const void *)made, sizeof made); \
        return (int)(sizeof made / sizeof *made);           \
    }
    MIX("all step exponential", optim_step_lr(o, 7, .5), optim_exponential_lr(o, .93))
    MIX("turn step exponential", optim_step_lr(o, 3, .5), optim_exponential_lr(o, .93))
    MIX("all lambda multiplicative", optim_lambda_lr(o, halves), optim_multiplicative_lr(o, wavers))
    MIX("turn multiplicative lambda", optim_multiplicative_lr(o, wavers), optim_lambda_lr(o, halves))
    MIX("all cosine linear", optim_cosine_annealing_lr(o, 13), optim_linear_lr(o, .1, 1, 9))
    MIX("turn polynomial multi_step constant", optim_polynomial_lr(o, 25, 1.5),
        optim_multi_step_lr(o, DIMS(2, 5, 5), .7), optim_constant_lr(o, .5, 4))
    MIX("all cyclic exponential", optim_cyclic_lr(o, .01, .2, 6), optim_exponential_lr(o, .93))
    MIX("all exponential one_cycle", optim_exponential_lr(o, .93), optim_one_cycle_lr(o, .5, 40))
    MIX("all one_cycle restarts", optim_one_cycle_lr(o, .5, 40),
        optim_cosine_annealing_warm_restarts(o, 5, 2))
    MIX("switch multiplicative swa", optim_multiplicative_lr(o, wavers),
        optim_swa_lr(o, .05, 8, .anneal_strategy = SCHEDULER_LINEAR))
    MIX("switch cosine swa", optim_cosine_annealing_lr(o, 20), optim_swa_lr(o, .05))
    MIX("all plateau step", optim_reduce_lr_on_plateau(o, .factor = .5, .patience = 2),
        optim_step_lr(o, 9, .5))
    fail_msg("no mix is called %s", name);
    return 0;
}

static Scheduler *resume(const char *name, Optimizer *o, int64_t last)
{
#define RESUME(text, ...) \
    if (strcmp(name, text) == 0) return __VA_ARGS__;
    RESUME("step", optim_step_lr(o, 7, .5, last))
    RESUME("multi_step", optim_multi_step_lr(o, DIMS(3, 14, 16, 16), .5, last))
    RESUME("exponential", optim_exponential_lr(o, .93, last))
    RESUME("constant", optim_constant_lr(o, .25, 14, last))
    RESUME("linear", optim_linear_lr(o, .125, 1, 20, last))
    RESUME("polynomial", optim_polynomial_lr(o, 25, 1.5, last))
    RESUME("lambda", optim_lambda_lr(o, halves, .last_epoch = last))
    RESUME("multiplicative", optim_multiplicative_lr(o, wavers, .last_epoch = last))
    RESUME("cosine", optim_cosine_annealing_lr(o, 17, .001, last))
    RESUME("restarts", optim_cosine_annealing_warm_restarts(o, 10, 2, .001, last))
    RESUME("one_cycle",
           optim_one_cycle_lr(o, .max_lrs = PER_GROUP(.5, .3), .total_steps = 40, .last_epoch = last))
    RESUME("cyclic", optim_cyclic_lr(o, .01, .max_lrs = PER_GROUP(.2, .1), .step_size_up = 6,
                                     .scale_fn = falls, .last_epoch = last))
    RESUME("swa", optim_swa_lr(o, .05, .last_epoch = last))
    fail_msg("no schedule is called %s", name);
    return NULL;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static Optimizer *optimizer(void)
{
    Tensor *p = tensor_requires_grad_(tensor_zeros(SHAPE(1), TENSOR_F64), true),
           *q = tensor_requires_grad_(tensor_zeros(SHAPE(1), TENSOR_F64), true);
    Optimizer *opt = optim_sgd(TENSORS(p), .1, .momentum = .5);
    assert_int_equal(optim_add_group(opt, TENSORS(q)), 1);
    optim_options(opt, 1, OptimSgdArgs)->lr = .02;
    return opt;
}

static void compare(const char *name, int t, Optimizer *o, Scheduler *const *s, int n, const double *want)
{
    double found[4 + MOST];
    for (int g = 0; g < 2; g++) {
        found[g] = optim_options(o, g, OptimSgdArgs)->lr;
        found[2 + g] = optim_options(o, g, OptimSgdArgs)->momentum;
    }
    for (int i = 0; i < n; i++) found[4 + i] = optim_scheduler_last_lr(s[i], 0);
    for (int i = 0; i < 4 + n; i++)
        if (!(fabs(found[i] - want[i]) <= 1e-13))
            fail_msg("%s, step %d, value %d: %.17g, want %.17g", name, t, i, found[i], want[i]);
}

static void check_mix(const char *name, const double *want, int64_t count)
{
    Optimizer *o = optimizer();
    Scheduler *s[MOST];
    const int n = mix(name, o, s);
    const bool all = *name == 'a', turn = *name == 't';
    assert_int_equal(count, (MIXED + 1) * (4 + n));
    for (int t = 0; t <= MIXED; t++) {
        compare(name, t, o, s, n, want + t * (4 + n));
        for (int i = 0; i < n && t < MIXED; i++)
            if (all || i == (turn ? t % n : t >= 12))
                assert_int_equal(optim_scheduler_step_metric(s[i], t < 5 ? 1. / (t + 1) : 1), 0);
    }
    for (int i = 0; i < n; i++) optim_scheduler_free(s[i]);
    optim_free(o);
}

static void check_resumed(const char *name, const double *want, int64_t count)
{
    Optimizer *first = optimizer(), *o = optimizer();
    Scheduler *s = resume(name, first, -1);
    assert_int_equal(count, (RESUMED + 1) * 5);
    for (int t = 0; t < 14; t++) assert_int_equal(optim_scheduler_step(s), 0);
    optim_scheduler_free(s);
    assert_null(resume(name, o, 13)); /* it has no initial_lr */
    assert_status_error(-1, TENSOR_EVALUE);
    assert_int_equal(optim_load_state_dict(o, optim_state_dict(first)), 0);
    s = resume(name, o, 13);
    if (!s) fail_msg("%s: %s", name, tensor_error());
    assert_int_equal(optim_scheduler_last_epoch(s), 14);
    for (int t = 0; t <= RESUMED; t++) {
        compare(name, t, o, &s, 1, want + t * 5);
        if (t < RESUMED) assert_int_equal(optim_scheduler_step(s), 0);
    }
    optim_scheduler_free(s);
    optim_free(o), optim_free(first);
}

static void golden(const char *section, int cases,
                   void (*check)(const char *name, const double *want, int64_t count))
{
    KindFile f = kind_open("test/oracle/kinds/lr_mixes.golden");
    const char *rest;
    char name[80] = "";
    int seen = 0;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        if (strcmp(word, "values") != 0) {
            snprintf(name, sizeof name, "%s", strcmp(word, section) == 0 ? rest : "");
            continue;
        }
        if (!*name) continue;
        int64_t n;
        double *want = kind_numbers(rest, &n);
        check(name, want, n);
        free(want);
        seen++;
    }
    assert_int_equal(seen, cases);
    kind_close(&f);
}

static void mixes(void **state)
{
    (void)state;
    golden("mix", 12, check_mix);
}

static void resumed_by_last_epoch(void **state)
{
    (void)state;
    golden("resumed", 13, check_resumed);
}

int main(void)
{
    const struct CMUnitTest tests[] = { SCOPED(mixes), SCOPED(resumed_by_last_epoch) };
    return cmocka_run_group_tests_name("schedules together", tests, NULL, NULL);
}
