/* test_lr_scheduler.c - every schedule's rates and momentum at every step, as PyTorch's
 * (oracle/schedulers.py); their state; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "kinds.h"
#include "schedules.h"

static void check(const char *name, const double *want)
{
    Run r = begin(name);
    for (int t = 0; t <= STEPS; t++) {
        double found[SHOWN];
        show(&r, found);
        for (int i = 0; i < SHOWN; i++)
            if (!(fabs(found[i] - want[SHOWN * t + i]) <= 1e-13))
                fail_msg("%s, step %d, value %d: %.17g, want %.17g", name, t, i, found[i],
                         want[SHOWN * t + i]);
        assert_int_equal(optim_scheduler_last_epoch(r.schedule), t);
        if (t < STEPS) step(&r, t);
    }
    end(&r);
}

static bool is_word(const char *words, const char *name)
{
    char word[80];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(words, word) != NULL;
}

/* Saved at step 11, loaded into one just made: it goes on with the same bits. */
static void check_state(const char *name)
{
    Run a = begin(name), b = begin(name);
    for (int t = 0; t < 11; t++) step(&a, t);
    TensorDict saved = nn_dict_clone(optim_scheduler_state_dict(a.schedule)),
               options = nn_dict_clone(optim_state_dict(a.opt));
    assert_true(saved.count > 0);
    if (optim_scheduler_load_state_dict(b.schedule, saved)) fail_msg("%s: %s", name, tensor_error());
    assert_int_equal(optim_load_state_dict(b.opt, options), 0);
    for (int t = 11; t < 30; t++) {
        double x[SHOWN], y[SHOWN];
        step(&a, t), step(&b, t);
        show(&a, x), show(&b, y);
        if (memcmp(x, y, sizeof x)) fail_msg("%s: resumed at 11, other values at %d", name, t + 1);
    }
    double before[SHOWN], after[SHOWN];
    const double wrong[] = { NAN, INFINITY, -2, .5 };
    show(&b, before);
    Tensor *count = nn_dict_get(saved, "last_epoch");
    if (!count) count = nn_dict_get(saved, "_schedulers.0.last_epoch"); /* of a chain */
    for (int i = 0; i < 4; i++) {
        tensor_set(count, DIMS(), wrong[i]);
        assert_int_equal(optim_scheduler_load_state_dict(b.schedule, saved), -1);
        assert_tensor_error((Tensor *)NULL, TENSOR_EVALUE);
    }
    tensor_set(count, DIMS(), 11);
    for (int i = 0; i < saved.count; i++) {
        TensorDict less = { 0 }, more = { 0 };
        for (int k = 0; k < saved.count; k++) {
            if (k != i) nn_dict_set(&less, saved.item[k].name, saved.item[k].tensor);
            nn_dict_set(&more, saved.item[k].name,
                        k == i ? tensor_ones(SHAPE(3, 3), TENSOR_F64) : saved.item[k].tensor);
        }
        const char *word = strrchr(saved.item[i].name, '.');
        word = word ? word + 1 : saved.item[i].name;
        assert_status_error(optim_scheduler_load_state_dict(b.schedule, more), TENSOR_ESHAPE);
        if (is_word(" last_epoch base_lrs best num_bad_epochs gamma step_size T_0 total_steps ", word))
            assert_status_error(optim_scheduler_load_state_dict(b.schedule, less), TENSOR_EVALUE);
        nn_dict_free(less), nn_dict_free(more);
    }
    assert_int_equal(optim_scheduler_last_epoch(b.schedule), 30);
    show(&b, after);
    assert_memory_equal(before, after, sizeof before);
    nn_dict_free(saved), nn_dict_free(options);
    end(&b), end(&a);
}

/* The state of an optimizer, with all that PyTorch's groups have. */
static void load_groups(Optimizer *from, Optimizer *to, const char *groups)
{
    TensorDict dict = nn_dict_clone(optim_state_dict(from));
    char words[300], *rest = NULL, name[100];
    snprintf(words, sizeof words, "%s", groups);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        for (int g = 0; g < 2; g++) {
            snprintf(name, sizeof name, "param_groups.%d.%s", g, word);
            if (!nn_dict_get(dict, name)) nn_dict_set(&dict, name, tensor_scalar(0, TENSOR_F64));
        }
    if (optim_load_state_dict(to, dict)) fail_msg("%s: %s", groups, tensor_error());
    nn_dict_free(dict);
}

/* PyTorch's state at step 11 has our names and values, but for what says nothing here, and goes on as it
 * does there. */
static void check_pytorchs(const char *name, TensorDict theirs, const char *groups, const double *want)
{
    Run a = begin(name), b = begin(name);
    for (int t = 0; t < 11; t++) step(&a, t);
    TensorDict ours = optim_scheduler_state_dict(a.schedule);
    for (int i = 0; i < theirs.count; i++) {
        const char *full = theirs.item[i].name, *last = strrchr(full, '.');
        const bool child = strncmp(full, "_schedulers.", 12) == 0;
        const Tensor *x = theirs.item[i].tensor, *y = nn_dict_get(ours, full);
        if (is_word(" _is_initial _get_lr_called_within_step ", last ? last + 1 : full)) continue;
        if (strncmp(full, "milestones.", 11) == 0) continue;      /* a Counter */
        if (child && strstr(full, "_step_count") && !y) continue; /* of a chain, where it says nothing */
        if (!y) fail_msg("%s: no %s", name, full);
        assert_true(tensor_numel(x) == tensor_numel(y) && tensor_ndim(x) == tensor_ndim(y));
        for (int k = 0; k < (int)tensor_numel(x); k++) {
            const double p = tensor_ndim(x) ? tensor_get(x, DIMS(k)) : tensor_item(x),
                         q = tensor_ndim(y) ? tensor_get(y, DIMS(k)) : tensor_item(y);
            if (!(fabs(p - q) <= 1e-13) && p != q) fail_msg("%s: %s is %g, there %g", name, full, q, p);
        }
    }
    for (int i = 0; i < ours.count; i++)
        if (strcmp(ours.item[i].name, "milestones") && !nn_dict_get(theirs, ours.item[i].name))
            fail_msg("%s: PyTorch has no %s", name, ours.item[i].name);
    if (optim_scheduler_load_state_dict(b.schedule, theirs)) fail_msg("%s: %s", name, tensor_error());
    load_groups(a.opt, b.opt, groups);
    for (int t = 11; t < 30; t++) {
        double found[SHOWN];
        step(&b, t);
        show(&b, found);
        for (int i = 0; i < SHOWN; i++) assert_float_equal(found[i], want[SHOWN * (t + 1) + i], 1e-13);
    }
    end(&b), end(&a);
}

/* "number last_epoch 11" or "list base_lrs 0.1 0.02" */
static void read_state(TensorDict *to, const char *text)
{
    char kind[8], name[100];
    int at = 0;
    int64_t n;
    assert_int_equal(sscanf(text, "%7s %99s %n", kind, name, &at), 2);
    double *value = kind_numbers(text + at, &n);
    nn_dict_set(to, name, tensor_from_data(value, *kind == 'l' ? SHAPE(n) : SHAPE(), TENSOR_F64));
    free(value);
}

static void schedules(void **state)
{
    (void)state;
    KindFile f = kind_open("test/oracle/kinds/lr_scheduler.golden");
    const char *rest;
    char name[80] = "", groups[300] = "";
    int seen = 0;
    TensorDict theirs = { 0 };
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        if (strcmp(word, "groups") == 0) snprintf(groups, sizeof groups, "%s", rest);
        if (strcmp(word, "state") == 0) read_state(&theirs, rest);
        if (strcmp(word, "schedule") == 0) snprintf(name, sizeof name, "%s", rest);
        if (strcmp(word, "values")) continue;
        int64_t n;
        double *want = kind_numbers(rest, &n);
        assert_int_equal(n, NUMBERS);
        check(name, want);
        check_state(name);
        check_pytorchs(name, theirs, groups, want);
        nn_dict_free(theirs);
        theirs = (TensorDict){ 0 };
        free(want);
        seen++;
    }
    assert_int_equal(seen, 52);
    kind_close(&f);
}

/* ---- those that PyTorch lacks ---------------------------------------------------------------- */

static void warmups(void **state)
{
    (void)state;
    Optimizer *o = optimizer();
    Scheduler *s = optim_warmup_cosine_lr(o, 4, 14, .min_factor = .1);
    const double cosine[] = { .02, .04, .06, .08, .1 };
    for (int t = 0; t < 5; t++) assert_float_equal(optim_lr(o), cosine[t], 1e-15), optim_scheduler_step(s);
    for (int t = 5; t < 9; t++) optim_scheduler_step(s);
    assert_float_equal(optim_lr(o), .055, 1e-15); /* half of the way from .1 to .01 */
    for (int t = 9; t < 20; t++) optim_scheduler_step(s);
    assert_float_equal(optim_lr(o), .01, 1e-15);
    optim_scheduler_free(s);
    optim_free(o);
    o = optimizer();
    s = optim_warmup_stable_decay_lr(o, 1, 4, 10);
    const double stable[] = { .05, .1, .1, .1, .1, .1, .1, .075, .05, .025, 0, 0 };
    for (int t = 0; t < 12; t++) assert_float_equal(optim_lr(o), stable[t], 1e-15), optim_scheduler_step(s);
    optim_scheduler_free(s);
    optim_free(o);
}

/* A sequence that comes second in another begins with its own first step (PyTorch refuses it). */
static void sequence_in_sequence(void **state)
{
    (void)state;
    Optimizer *o = optimizer();
    Scheduler *inner[] = { optim_linear_lr(o, .1), optim_constant_lr(o, .5, 10) };
    Scheduler *outer[] = { optim_constant_lr(o, .7, 10), optim_sequential_lr(o, inner, 2, DIMS(2)) };
    Scheduler *s = optim_sequential_lr(o, outer, 2, DIMS(3));
    const double want[] = { .07, .07, .07, .01, .028, .05, .05 };
    for (int t = 0; t < 7; t++) assert_float_equal(optim_lr(o), want[t], 1e-15), optim_scheduler_step(s);
    optim_scheduler_free(s);
    optim_free(o);
}

/* A step that one of several refuses changes no rate, no momentum and no count. */
static void step_refused(void **state)
{
    (void)state;
    Optimizer *o = optimizer();
    Scheduler *both[] = { optim_cyclic_lr(o, .01, .2, 4),
                          optim_one_cycle_lr(o, .1, 2, .cycle_momentum = false) };
    Scheduler *s = optim_chained_scheduler(both, 2);
    assert_int_equal(optim_scheduler_step(s) || optim_scheduler_step(s), 0);
    TensorDict options = nn_dict_clone(optim_state_dict(o)),
               steps = nn_dict_clone(optim_scheduler_state_dict(s));
    assert_int_equal(optim_scheduler_step(s), -1);
    assert_tensor_error((Tensor *)NULL, TENSOR_EVALUE);
    TensorDict now = optim_state_dict(o);
    for (int i = 0; i < options.count; i++)
        assert_float_equal(tensor_item(now.item[i].tensor), tensor_item(options.item[i].tensor), 0);
    now = optim_scheduler_state_dict(s);
    for (int i = 0; i < steps.count; i++) assert_true(tensor_equal(now.item[i].tensor, steps.item[i].tensor));
    nn_dict_free(options), nn_dict_free(steps);
    optim_scheduler_free(s);
    optim_free(o);
}

/* ---- what is refused --------------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    Optimizer *o = optimizer(),
              *plain = optim_adagrad(TENSORS(tensor_requires_grad_(tensor_ones(SHAPE(1), TENSOR_F32), true)));
#define REFUSED(call, code)                        \
    {                                              \
        assert_null(call);                         \
        assert_tensor_error((Tensor *)NULL, code); \
    }
    REFUSED(optim_step_lr(NULL, 3), TENSOR_ENULL)
    REFUSED(optim_step_lr(o, 0), TENSOR_EVALUE)
    REFUSED(optim_step_lr_args((OptimStepLrArgs){ o, 3 }), TENSOR_EVALUE)
    REFUSED(optim_exponential_lr(o), TENSOR_EVALUE)
    REFUSED(optim_multi_step_lr(o, { 2, NULL }), TENSOR_EVALUE)
    REFUSED(optim_constant_lr(o, 1.5), TENSOR_EVALUE)
    REFUSED(optim_linear_lr(o, 0), TENSOR_EVALUE)
    REFUSED(optim_polynomial_lr(o, -1), TENSOR_EVALUE)
    REFUSED(optim_lambda_lr(o), TENSOR_EVALUE)
    REFUSED(optim_cosine_annealing_lr(o, 0), TENSOR_EVALUE)
    REFUSED(optim_cosine_annealing_warm_restarts(o, 3, 0), TENSOR_EVALUE)
    REFUSED(optim_one_cycle_lr(o, .1, 0), TENSOR_EVALUE)
    REFUSED(optim_one_cycle_lr(plain, .1, 10), TENSOR_EVALUE)
    REFUSED(optim_cyclic_lr(o, .1, .2, 0), TENSOR_EVALUE)
    REFUSED(optim_reduce_lr_on_plateau(o, .factor = 1), TENSOR_EVALUE)
    REFUSED(optim_warmup_cosine_lr(o, 10, 10), TENSOR_EVALUE)
    REFUSED(optim_warmup_stable_decay_lr(o, 5, 6, 10), TENSOR_EVALUE)
    REFUSED(optim_chained_scheduler(NULL, 0), TENSOR_EVALUE)
    Scheduler *one[] = { optim_step_lr(o, 3), optim_step_lr(plain, 3) },
              *metric = optim_reduce_lr_on_plateau(o);
    REFUSED(optim_chained_scheduler(one, 2), TENSOR_EVALUE) /* they are gone with it */
    Scheduler *two[] = { optim_step_lr(o, 3), metric };
    assert_int_equal(optim_scheduler_step(metric), -1);
    assert_tensor_error((Tensor *)NULL, TENSOR_EVALUE);
    REFUSED(optim_sequential_lr(o, two, 2, DIMS(3)), TENSOR_EVALUE)
    Scheduler *three[] = { optim_step_lr(o, 3), optim_step_lr(o, 3) };
    REFUSED(optim_sequential_lr(o, three, 2, DIMS(3, 4)), TENSOR_EVALUE)
    assert_float_equal(optim_lr(o), .1, 0);
    Scheduler *s = optim_one_cycle_lr(o, .1, 2);
    assert_int_equal(optim_scheduler_step(s) || optim_scheduler_step(s), 0);
    const double last = optim_lr(o);
    assert_int_equal(optim_scheduler_step(s), -1);
    assert_tensor_error((Tensor *)NULL, TENSOR_EVALUE);
    assert_true(optim_lr(o) == last && optim_scheduler_last_epoch(s) == 2);
    optim_scheduler_free(s);
    assert_int_equal(optim_scheduler_last_epoch(NULL), -1);
    assert_tensor_error((Tensor *)NULL, TENSOR_ENULL);
    optim_free(o), optim_free(plain);
}

/* The state of another kind of schedule, or of one with other options that cannot change, is refused and
 * named, and changes nothing; options that can change do. */
static void states_of_others(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *text;
    } others[] = { { "step", "exponential",
                     "\"step_size\" is unexpected: no state of this optim_exponential_lr" },
                   { "exponential", "step", "\"step_size\" is missing: no state of this optim_step_lr" },
                   { "cosine", "linear", "\"start_factor\" is missing" },
                   { "lambda", "step", "\"step_size\" is missing" },
                   { "multi_step", "step", "\"step_size\" is missing" },
                   { "multi_step none", "multi_step", "\"milestones\" is missing" },
                   { "one_cycle three", "one_cycle calm", "\"_schedule_phases.0.end_step\" is 13.35, of" },
                   { "cyclic", "cyclic halves", "\"total_size\" is 15, of this optim_cyclic_lr 10" },
                   { "plateau", "plateau max", "\"mode_worse\" is inf" },
                   { "sequence", "chain", "\"_schedulers.0.factor\" is missing" } };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        Run a = begin(others[i].from), b = begin(others[i].to);
        step(&a, 0), step(&b, 0), step(&b, 1);
        TensorDict before = nn_dict_clone(optim_scheduler_state_dict(b.schedule));
        if (!optim_scheduler_load_state_dict(b.schedule, optim_scheduler_state_dict(a.schedule)))
            fail_msg("%s loads into %s", others[i].from, others[i].to);
        if (!strstr(tensor_error(), others[i].text)) fail_msg("%s", tensor_error());
        tensor_error_clear();
        TensorDict after = optim_scheduler_state_dict(b.schedule);
        assert_int_equal(before.count, after.count);
        for (int k = 0; k < before.count; k++)
            assert_true(tensor_equal(before.item[k].tensor, after.item[k].tensor));
        nn_dict_free(before);
        end(&a), end(&b);
    }
    Run a = begin("step"), b = begin("step default"); /* 7, 0.5 and 10, 0.1 */
    for (int t = 0; t < 7; t++) step(&a, t);
    TensorDict dict = nn_dict_clone(optim_scheduler_state_dict(a.schedule));
    assert_int_equal(optim_scheduler_load_state_dict(b.schedule, dict), 0);
    for (int t = 7; t < 14; t++) step(&b, t);
    assert_float_equal(optim_lr(b.opt), .05, 1e-15);
    nn_dict_set(&dict, "step_size", tensor_scalar(0, TENSOR_F64));
    assert_status_error(optim_scheduler_load_state_dict(b.schedule, dict), TENSOR_EVALUE);
    nn_dict_set(&dict, "step_size", tensor_scalar(2.5, TENSOR_F64));
    assert_status_error(optim_scheduler_load_state_dict(b.schedule, dict), TENSOR_EVALUE);
    assert_int_equal(optim_scheduler_last_epoch(b.schedule), 14);
    nn_dict_free(dict);
    end(&a), end(&b);
}

/* Of PyTorch's Counter: a milestone more than the schedule has. */
static void counter_of_others(void **state)
{
    (void)state;
    Run a = begin("step");
    Scheduler *s = optim_multi_step_lr(a.opt, DIMS(3));
    TensorDict dict = nn_dict_clone(optim_scheduler_state_dict(s)), theirs = { 0 };
    for (int i = 0; i < dict.count; i++)
        if (strcmp(dict.item[i].name, "milestones") != 0)
            nn_dict_set(&theirs, dict.item[i].name, dict.item[i].tensor);
    nn_dict_set(&theirs, "milestones.3", tensor_scalar(1, TENSOR_F64));
    assert_int_equal(optim_scheduler_load_state_dict(s, theirs), 0);
    nn_dict_set(&theirs, "milestones.5", tensor_scalar(1, TENSOR_F64));
    assert_status_error(optim_scheduler_load_state_dict(s, theirs), TENSOR_EVALUE);
    nn_dict_free(dict), nn_dict_free(theirs), optim_scheduler_free(s);
    end(&a);
}

/* A group that comes later keeps its rate, and the state loads as before. */
static void group_added_later(void **state)
{
    (void)state;
    Run r = begin("step");
    assert_int_equal(
        optim_add_group(r.opt, TENSORS(tensor_requires_grad_(tensor_ones(SHAPE(1), TENSOR_F64), true))), 2);
    optim_options(r.opt, 2, OptimSgdArgs)->lr = .3;
    for (int t = 0; t < 7; t++) step(&r, t);
    assert_float_equal(optim_lr(r.opt), .05, 1e-15);
    assert_true(optim_options(r.opt, 2, OptimSgdArgs)->lr == .3);
    assert_int_equal(optim_scheduler_load_state_dict(r.schedule, optim_scheduler_state_dict(r.schedule)), 0);
    end(&r);
}

/* An error names the option and says what is wanted. */
static void messages(void **state)
{
    (void)state;
    Optimizer *o = optimizer();
#define SAYS(failed, text)                                                 \
    {                                                                      \
        assert_true(failed);                                               \
        if (!strstr(tensor_error(), text)) fail_msg("%s", tensor_error()); \
        tensor_error_clear();                                              \
    }
    SAYS(!optim_one_cycle_lr(o, .1), "total_steps is 0: want")
    SAYS(!optim_one_cycle_lr(o, .1, 4, .pct_start = 2), "pct_start is 2: want 0 to 1")
    SAYS(!optim_cyclic_lr(o, .1, .2, -3), "step_size_up is -3: want 1 or more")
    SAYS(!optim_reduce_lr_on_plateau(o, .patience = -1), "patience is -1: want 0 or more")
    SAYS(optim_set_lr(o, (double)NAN), "lr is nan: want 0 or more")
    SAYS(!optim_one_cycle_lr(o, .max_lrs = PER_GROUP(1, 2, 3), .total_steps = 9),
         "max_lrs has 3 numbers, the optimizer 2 groups")
    SAYS(!optim_cyclic_lr(o, .1, .base_lrs = PER_GROUP(1, 2)),
         "both base_lr and base_lrs are given: want one")
    SAYS(!optim_cyclic_lr(o, .1), "max_lr is nan: want 0 or more")
    SAYS(!optim_swa_lr(o, .swa_lrs = PER_GROUP(.1, -1)), "swa_lrs has -1 for group 1: want 0 or more")
    SAYS(!optim_reduce_lr_on_plateau(o, .min_lrs = { 2, NULL }), "min_lrs has 0 numbers, the optimizer 2")
    SAYS(!optim_one_cycle_lr(o, .1, 9, .epochs = 3), "total_steps 9, epochs 3, steps_per_epoch 0: want")
    SAYS(!optim_step_lr(o, 3, .last_epoch = 4), "last_epoch is 4, and group 0 has no initial_lr")
    SAYS(!optim_step_lr(o, 3, .last_epoch = -2), "last_epoch is -2: want")
    SAYS(isnan(optim_scheduler_last_lr(NULL, 0)), "NULL")
    Scheduler *s = optim_one_cycle_lr(o, .1, 2);
    assert_int_equal(optim_scheduler_step(s) || optim_scheduler_step(s), 0);
    SAYS(isnan(optim_scheduler_last_lr(s, 2)), "group 2 of 2")
    SAYS(optim_scheduler_step(s), "tried to step 3 times: total_steps is 2")
    assert_int_equal(optim_scheduler_last_epoch(s), 2);
    optim_scheduler_free(s);
    optim_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(schedules),
                                        cmocka_unit_test(warmups),
                                        cmocka_unit_test(sequence_in_sequence),
                                        cmocka_unit_test(step_refused),
                                        cmocka_unit_test(refused),
                                        cmocka_unit_test(messages),
                                        cmocka_unit_test(states_of_others),
                                        cmocka_unit_test(counter_of_others),
                                        cmocka_unit_test(group_added_later) };
    TensorScope scope = tensor_scope_open();
    int failed = cmocka_run_group_tests_name("learning rate schedules", tests, NULL, NULL);
    tensor_scope_close(scope);
    return failed;
}
