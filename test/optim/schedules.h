/* schedules.h - the schedules of oracle/schedulers.py by their names, and a run of one. */
#ifndef SCHEDULES_H
#define SCHEDULES_H

#include <math.h>
#include <string.h>
#include <tapegrad.h>

enum { STEPS = 40, SHOWN = 6, NUMBERS = SHOWN * (STEPS + 1) };

static double halves(int64_t t, int group, void *ctx)
{
    (void)group, (void)ctx;
    return pow(.5, (double)(t / 10));
}

static double wavers(int64_t t, int group, void *ctx)
{
    (void)group;
    return .9 + *(const double *)ctx * (double)(t % 2);
}

static Scheduler *sequence(Optimizer *o)
{
    Scheduler *s[] = { optim_linear_lr(o, .1, 1, 5), optim_cosine_annealing_lr(o, 20, .001),
                       optim_exponential_lr(o, .9) };
    return optim_sequential_lr(o, s, 3, DIMS(5, 28));
}

static Scheduler *chain(Optimizer *o)
{
    Scheduler *s[] = { optim_constant_lr(o, .5, 4), optim_exponential_lr(o, .95),
                       optim_step_lr(o, 6, .gamma = .7) };
    return optim_chained_scheduler(s, 3);
}

static Scheduler *chain_in_sequence(Optimizer *o)
{
    Scheduler *both[] = { optim_linear_lr(o, .1), optim_constant_lr(o, .5, 10) };
    Scheduler *s[] = { optim_chained_scheduler(both, 2), optim_constant_lr(o, .7, 10) };
    return optim_sequential_lr(o, s, 2, DIMS(4));
}

static double falls(double x, void *ctx) { return 1 / (1 + *(const double *)ctx * x); }

static Scheduler *after_exponential(Optimizer *o, Scheduler *last)
{
    Scheduler *s[] = { optim_exponential_lr(o, .9), last };
    return optim_sequential_lr(o, s, 2, DIMS(12));
}

static Scheduler *at_once(Optimizer *o)
{
    Scheduler *s[] = { optim_constant_lr(o, .5, 9), optim_step_lr(o, 3, .5), optim_exponential_lr(o, .9),
                       optim_linear_lr(o, .2) };
    return optim_sequential_lr(o, s, 4, DIMS(0, 7, 7));
}

static Scheduler *chain_first(Optimizer *o)
{
    Scheduler *all[] = { optim_exponential_lr(o, .9), optim_polynomial_lr(o, 30, 2),
                         optim_cosine_annealing_lr(o, 9) };
    Scheduler *s[] = { optim_chained_scheduler(all, 3), optim_polynomial_lr(o, 9) };
    return optim_sequential_lr(o, s, 2, DIMS(17));
}

static Scheduler *many_milestones(Optimizer *o)
{
    int64_t at[35];
    for (int i = 0; i < 35; i++) at[i] = 2 * (i % 20) + i / 20;
    return optim_multi_step_lr(o, { 35, at }, .gamma = .9);
}

static Scheduler *cycle_later(Optimizer *o)
{
    Scheduler *s[] = { optim_constant_lr(o, .5, 9), optim_one_cycle_lr(o, 1, 60) };
    return optim_sequential_lr(o, s, 2, DIMS(5));
}

static Scheduler *cycle_first(Optimizer *o)
{
    Scheduler *s[] = { optim_cyclic_lr(o, .01, .2, 4), optim_constant_lr(o, .5, 9) };
    return optim_sequential_lr(o, s, 2, DIMS(6));
}

static Scheduler *make(const char *name, Optimizer *o)
{
    static double by = .2, slope = .25;
#define CASE(text, call) \
    if (strcmp(name, text) == 0) return call;
    CASE("step", optim_step_lr(o, 7, .5))
    CASE("step default", optim_step_lr(o, 10))
    CASE("multi_step", optim_multi_step_lr(o, DIMS(3, 9, 9, 30), .gamma = .3))
    CASE("multi_step none", optim_multi_step_lr(o))
    CASE("exponential", optim_exponential_lr(o, .93))
    CASE("constant", optim_constant_lr(o))
    CASE("constant 12", optim_constant_lr(o, .25, 12))
    CASE("linear", optim_linear_lr(o))
    CASE("linear down", optim_linear_lr(o, 1, .125, 30))
    CASE("linear to 0", optim_linear_lr(o, 1. / 3, 0, 5))
    CASE("polynomial", optim_polynomial_lr(o, 25, 1.7))
    CASE("polynomial default", optim_polynomial_lr(o))
    CASE("lambda", optim_lambda_lr(o, halves))
    CASE("multiplicative", optim_multiplicative_lr(o, wavers, .ctx = &by))
    CASE("cosine", optim_cosine_annealing_lr(o, 13))
    CASE("cosine floor", optim_cosine_annealing_lr(o, 20, .eta_min = .005))
    CASE("restarts", optim_cosine_annealing_warm_restarts(o, 5, 2, .001))
    CASE("restarts even", optim_cosine_annealing_warm_restarts(o, 7))
    CASE("one_cycle", optim_one_cycle_lr(o, .5, 40))
    CASE("one_cycle three",
         optim_one_cycle_lr(o, .3, 41, .pct_start = .35, .anneal_strategy = SCHEDULER_LINEAR,
                            .div_factor = 10, .final_div_factor = 100, .base_momentum = .7,
                            .max_momentum = .9, .three_phase = true))
    CASE("one_cycle calm", optim_one_cycle_lr(o, .5, 60, .cycle_momentum = false))
    CASE("cyclic", optim_cyclic_lr(o, .01, .2, 6, 9))
    CASE("cyclic halves",
         optim_cyclic_lr(o, .01, .2, 5, .mode = SCHEDULER_TRIANGULAR2, .cycle_momentum = false))
    CASE("cyclic range", optim_cyclic_lr(o, .01, .2, 8, .mode = SCHEDULER_EXP_RANGE, .gamma = .97,
                                         .base_momentum = .6, .max_momentum = .95))
    CASE("cyclic scaled", optim_cyclic_lr(o, .01, .2, 6, .scale_fn = falls, .ctx = &slope))
    CASE("cyclic scaled by step",
         optim_cyclic_lr(o, .01, .2, 4, 5, .mode = SCHEDULER_TRIANGULAR2, .scale_fn = falls,
                         .scale_mode = SCHEDULER_ITERATIONS, .ctx = &slope))
    CASE("multi_step many", many_milestones(o))
    CASE("one_cycle epochs", optim_one_cycle_lr(o, .5, .epochs = 5, .steps_per_epoch = 9, .pct_start = .5))
    CASE("one_cycle groups",
         optim_one_cycle_lr(o, .max_lrs = PER_GROUP(.5, .3), .total_steps = 50,
                            .base_momentums = PER_GROUP(.8, .7), .max_momentums = PER_GROUP(.9, .95)))
    CASE("cyclic groups",
         optim_cyclic_lr(o, .base_lrs = PER_GROUP(.01, .02), .max_lrs = PER_GROUP(.2, .1), .step_size_up = 6,
                         .base_momentums = PER_GROUP(.7, .75), .max_momentums = PER_GROUP(.9, .8)))
    CASE("plateau groups",
         optim_reduce_lr_on_plateau(o, .factor = .2, .patience = 1, .min_lrs = PER_GROUP(.03, .0001)))
    CASE("swa groups", optim_swa_lr(o, .swa_lrs = PER_GROUP(.05, .01)))
    CASE("adam one_cycle", optim_one_cycle_lr(o, .5, 45, .max_momentums = PER_GROUP(.97, .9)))
    CASE("adam cyclic", optim_cyclic_lr(o, .01, .max_lrs = PER_GROUP(.2, .3), .step_size_up = 6))
    CASE("adam exponential", optim_exponential_lr(o, .9))
    CASE("linear of 0", optim_linear_lr(o, .25, 1, 0))
    CASE("polynomial of 0", optim_polynomial_lr(o, 0))
    CASE("multiplicative second", after_exponential(o, optim_multiplicative_lr(o, wavers, .ctx = &by)))
    CASE("swa second", after_exponential(o, optim_swa_lr(o, .05)))
    CASE("at once", at_once(o))
    CASE("chain first", chain_first(o))
    CASE("swa", optim_swa_lr(o, .05))
    CASE("swa linear", optim_swa_lr(o, .3, 25, .anneal_strategy = SCHEDULER_LINEAR))
    CASE("swa at once", optim_swa_lr(o, .07, 0))
    CASE("plateau", optim_reduce_lr_on_plateau(o, .factor = .3, .patience = 2, .cooldown = 1))
    CASE("plateau max",
         optim_reduce_lr_on_plateau(o, .mode = SCHEDULER_MAX, .factor = .5, .patience = 1, .threshold = .2,
                                    .threshold_mode = SCHEDULER_ABS, .min_lr = .004, .eps = 1e-3))
    CASE("sequence", sequence(o))
    CASE("chain", chain(o))
    CASE("chain in sequence", chain_in_sequence(o))
    CASE("one_cycle in sequence", cycle_later(o))
    CASE("cyclic in sequence", cycle_first(o))
    CASE("cyclic second",
         (optim_scheduler_free(optim_constant_lr(o, .5, 3)), optim_cyclic_lr(o, .01, .2, 6, 9)))
    fail_msg("no case is called %s", name);
    return NULL;
}

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct Run {
    TensorScope scope;
    Optimizer *opt;
    Scheduler *schedule;
} Run;

static Optimizer *optimizer_of(const char *name)
{
    Tensor *p = tensor_requires_grad_(tensor_zeros(SHAPE(1), TENSOR_F64), true),
           *q = tensor_requires_grad_(tensor_zeros(SHAPE(1), TENSOR_F64), true);
    const bool adam = strncmp(name, "adam ", 5) == 0;
    Optimizer *opt = adam ? optim_adam(TENSORS(p), .1, .5, .9) : optim_sgd(TENSORS(p), .1, .momentum = .5);
    assert_int_equal(optim_add_group(opt, TENSORS(q)), 1);
    if (adam) optim_options(opt, 1, OptimAdamArgs)->lr = .02;
    else optim_options(opt, 1, OptimSgdArgs)->lr = .02;
    return opt;
}

static Optimizer *optimizer(void) { return optimizer_of("sgd"); }

static Run begin(const char *name)
{
    Run r = { .scope = tensor_scope_open() };
    r.opt = optimizer_of(name);
    r.schedule = make(name, r.opt);
    if (!r.schedule) fail_msg("%s: %s", name, tensor_error());
    return r;
}

static void end(Run *r)
{
    optim_scheduler_free(r->schedule);
    optim_free(r->opt);
    tensor_scope_close(r->scope);
}

static void step(Run *r, int t)
{
    static const double metric[] = { 4,   3,   2.9999, 2.5, 2.6, 2.55, 2.7,  2.5,  2.49, 2.48,
                                     2.6, 2.6, 2.6,    2.6, 2.4, 2.41, 2.42, 2.43, 2.44, 2.45 };
    if (optim_scheduler_step_metric(r->schedule, t == 33 ? (double)NAN : metric[t % 20]))
        fail_msg("step %d: %s", t, tensor_error());
}

static void show(const Run *r, double *to)
{
    for (int g = 0; g < 2; g++) {
        const bool adam = strcmp(r->opt->kind->name, "Adam") == 0;
        if (adam) {
            const OptimAdamArgs *o = optim_options(r->opt, g, OptimAdamArgs);
            to[g] = o->lr, to[2 + g] = o->beta1;
        } else {
            const OptimSgdArgs *o = optim_options(r->opt, g, OptimSgdArgs);
            to[g] = o->lr, to[2 + g] = o->momentum;
        }
        to[4 + g] = optim_scheduler_last_lr(r->schedule, g);
    }
}

#endif
