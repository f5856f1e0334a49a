/* schedules.c - the schedules that depend on the step alone.  Rates that follow from the one before round as
 * PyTorch's do. */
#include <limits.h>
#include <tapegrad/swa_utils.h>
#include "scheduler.h"

#define OPTIONS(ARGS) const ARGS *o = (const void *)s->options
#define RATE(name) static double name(const Scheduler *s, int group, int64_t t, double base, double lr)
#define CHECK(name, ARGS, good, ...) CHECK_AFTER(name, ARGS, 0, good, __VA_ARGS__)
#define CHECK_AFTER(name, ARGS, refused, good, ...)                            \
    static int name(const void *options, const char *function)                 \
    {                                                                          \
        const ARGS *o = options;                                               \
        if (refused) return -1;                                                \
        return (good) ? 0 : tensor_fail(TENSOR_EVALUE, function, __VA_ARGS__); \
    }
#define WANTS(option, good, text) wants(function, #option, o->option, (good), text)
#define NO_CHOICE(option) tensor_check_choice(function, #option, (int)o->option, option##_choices)
static const char *const anneal_strategy_choices[] = { "cos", "linear", NULL };
#define FIELDS(ARGS, ...)                              \
    (const OpField[])                                  \
    {                                                  \
        OP_OPTION(ARGS, __VA_ARGS__), { .name = NULL } \
    }
#define DERIVED(...) \
    (const char *const[]) { __VA_ARGS__, NULL }
#define UNUSED (void)group, (void)t, (void)base, (void)lr
static const double pi = 3.14159265358979323846;

static int wants(const char *function, const char *option, double value, bool good, const char *text)
{
    return good ? 0 : tensor_fail(TENSOR_EVALUE, function, "%s is %g: want %s", option, value, text);
}

/* ---- factors --------------------------------------------------------------------------------- */

const OptimStepLrArgs optim_step_lr_defaults = { OPTIM_STEP_LR_DEFAULTS };
CHECK(check_step, OptimStepLrArgs, o->step_size > 0 && o->gamma >= 0,
      "step_size %d, gamma %g: want 1 or more, and 0 or more", o->step_size, o->gamma)
RATE(step)
{
    OPTIONS(OptimStepLrArgs);
    UNUSED;
    return t == 0 || t % o->step_size ? lr : lr * o->gamma;
}
SCHEDULER_DEFINE(step_lr, OptimStepLrArgs, .check = check_step, .lr = step,
                 .fields = FIELDS(OptimStepLrArgs, step_size, gamma))

const OptimMultiStepLrArgs optim_multi_step_lr_defaults = { OPTIM_MULTI_STEP_LR_DEFAULTS };
CHECK(check_multi_step, OptimMultiStepLrArgs,
      o->milestones.ndim >= 0 && (!o->milestones.ndim || o->milestones.dim) && o->gamma >= 0,
      "%d milestones, gamma %g: want a list, and 0 or more", o->milestones.ndim, o->gamma)
RATE(multi_step)
{
    OPTIONS(OptimMultiStepLrArgs);
    UNUSED;
    int times = 0;
    for (int i = 0; i < s->milestones; i++) times += s->milestone[i] == (double)t;
    return times ? lr * pow(o->gamma, times) : lr;
}
SCHEDULER_DEFINE(multi_step_lr, OptimMultiStepLrArgs, .check = check_multi_step, .lr = multi_step,
                 .milestones = offsetof(OptimMultiStepLrArgs, milestones),
                 .fields = FIELDS(OptimMultiStepLrArgs, gamma))

const OptimExponentialLrArgs optim_exponential_lr_defaults = { OPTIM_EXPONENTIAL_LR_DEFAULTS };
CHECK(check_exponential, OptimExponentialLrArgs, o->gamma >= 0, "gamma %g: want 0 or more", o->gamma)
RATE(exponential)
{
    OPTIONS(OptimExponentialLrArgs);
    UNUSED;
    return s->move == SCHEDULER_ON ? lr * o->gamma : lr;
}
SCHEDULER_DEFINE(exponential_lr, OptimExponentialLrArgs, .check = check_exponential, .lr = exponential,
                 .fields = FIELDS(OptimExponentialLrArgs, gamma))

const OptimConstantLrArgs optim_constant_lr_defaults = { OPTIM_CONSTANT_LR_DEFAULTS };
CHECK(check_constant, OptimConstantLrArgs, o->factor > 0 && o->factor <= 1 && o->total_iters >= 0,
      "factor %g, total_iters %d: want above 0 to 1, and 0 or more", o->factor, o->total_iters)
RATE(constant)
{
    OPTIONS(OptimConstantLrArgs);
    UNUSED;
    return t == 0 ? lr * o->factor : t == o->total_iters ? lr * (1 / o->factor) : lr;
}
SCHEDULER_DEFINE(constant_lr, OptimConstantLrArgs, .check = check_constant, .lr = constant,
                 .fields = FIELDS(OptimConstantLrArgs, factor, total_iters))

const OptimLinearLrArgs optim_linear_lr_defaults = { OPTIM_LINEAR_LR_DEFAULTS };
CHECK(check_linear, OptimLinearLrArgs,
      o->start_factor > 0 && o->start_factor <= 1 && o->end_factor >= 0 && o->end_factor <= 1 &&
          o->total_iters >= 0,
      "start_factor %g, end_factor %g, total_iters %d: want (0, 1], [0, 1], 0 or more", o->start_factor,
      o->end_factor, o->total_iters)
RATE(linear)
{
    OPTIONS(OptimLinearLrArgs);
    UNUSED;
    const double rise = o->end_factor - o->start_factor;
    if (t == 0) return lr * o->start_factor;
    if (t > o->total_iters || s->move == SCHEDULER_FIRST) return lr;
    const double times = 1 + rise / (o->total_iters * o->start_factor + (double)(t - 1) * rise);
    return times > 0 ? lr * times : 0; /* the last step down to 0 may round to below it */
}
SCHEDULER_DEFINE(linear_lr, OptimLinearLrArgs, .check = check_linear, .lr = linear,
                 .fields = FIELDS(OptimLinearLrArgs, start_factor, end_factor, total_iters))

const OptimPolynomialLrArgs optim_polynomial_lr_defaults = { OPTIM_POLYNOMIAL_LR_DEFAULTS };
CHECK(check_polynomial, OptimPolynomialLrArgs, o->total_iters >= 0 && o->power >= 0,
      "total_iters %d, power %g: want 0 or more twice", o->total_iters, o->power)
RATE(polynomial)
{
    OPTIONS(OptimPolynomialLrArgs);
    UNUSED;
    const double n = o->total_iters, now = (double)t;
    return s->move != SCHEDULER_ON || now > n ? lr : lr * pow((1 - now / n) / (1 - (now - 1) / n), o->power);
}
SCHEDULER_DEFINE(polynomial_lr, OptimPolynomialLrArgs, .check = check_polynomial, .lr = polynomial,
                 .fields = FIELDS(OptimPolynomialLrArgs, total_iters, power))

const OptimLambdaLrArgs optim_lambda_lr_defaults = { OPTIM_LAMBDA_LR_DEFAULTS };
CHECK(check_lambda, OptimLambdaLrArgs, o->lr_lambda, "lr_lambda is NULL")
RATE(lambda)
{
    OPTIONS(OptimLambdaLrArgs);
    UNUSED;
    return base * o->lr_lambda(t, group, o->ctx);
}
SCHEDULER_DEFINE(lambda_lr, OptimLambdaLrArgs, .check = check_lambda, .lr = lambda)

const OptimMultiplicativeLrArgs optim_multiplicative_lr_defaults = { OPTIM_MULTIPLICATIVE_LR_DEFAULTS };
CHECK(check_multiplicative, OptimMultiplicativeLrArgs, o->lr_lambda, "lr_lambda is NULL")
RATE(multiplicative)
{
    OPTIONS(OptimMultiplicativeLrArgs);
    UNUSED;
    return s->move == SCHEDULER_FIRST ? lr : lr * o->lr_lambda(t, group, o->ctx);
}
SCHEDULER_DEFINE(multiplicative_lr, OptimMultiplicativeLrArgs, .check = check_multiplicative,
                 .lr = multiplicative, .follows = true)

/* ---- cosines --------------------------------------------------------------------------------- */

const OptimCosineAnnealingLrArgs optim_cosine_annealing_lr_defaults = { OPTIM_COSINE_ANNEALING_LR_DEFAULTS };
CHECK(check_cosine, OptimCosineAnnealingLrArgs, o->T_max > 0 && o->eta_min >= 0,
      "T_max %d, eta_min %g: want 1 or more, and 0 or more", o->T_max, o->eta_min)
RATE(cosine)
{
    OPTIONS(OptimCosineAnnealingLrArgs);
    UNUSED;
    if (s->move != SCHEDULER_ON) return lr;
    if ((t - 1 - o->T_max) % (2 * (int64_t)o->T_max) == 0) /* from the bottom, where the ratio is 0 / 0 */
        return lr + (base - o->eta_min) * (1 - cos(pi / o->T_max)) / 2;
    return (1 + cos(pi * (double)t / o->T_max)) / (1 + cos(pi * (double)(t - 1) / o->T_max)) *
               (lr - o->eta_min) +
           o->eta_min;
}
SCHEDULER_DEFINE(cosine_annealing_lr, OptimCosineAnnealingLrArgs, .check = check_cosine, .lr = cosine,
                 .fields = FIELDS(OptimCosineAnnealingLrArgs, T_max, eta_min))

const OptimCosineAnnealingWarmRestartsArgs optim_cosine_annealing_warm_restarts_defaults = {
    OPTIM_COSINE_ANNEALING_WARM_RESTARTS_DEFAULTS
};
CHECK(check_restarts, OptimCosineAnnealingWarmRestartsArgs, o->T_0 > 0 && o->T_mult >= 1 && o->eta_min >= 0,
      "T_0 %d, T_mult %d, eta_min %g: want 1 or more, 1 or more, and 0 or more", o->T_0, o->T_mult,
      o->eta_min)
/* The length of the period that step t is in, and *at, the steps of it before t. */
static int64_t period(const OptimCosineAnnealingWarmRestartsArgs *o, int64_t t, int64_t *at)
{
    int64_t length = o->T_0;
    *at = o->T_mult == 1 ? t % length : t;
    for (; *at >= length; length *= o->T_mult) *at -= length;
    return length;
}

RATE(restarts)
{
    OPTIONS(OptimCosineAnnealingWarmRestartsArgs);
    UNUSED;
    int64_t at;
    const int64_t length = period(o, t, &at);
    return o->eta_min + (base - o->eta_min) * (1 + cos(pi * (double)at / (double)length)) / 2;
}

static double restarts_derive(const Scheduler *s, int i, int group)
{
    OPTIONS(OptimCosineAnnealingWarmRestartsArgs);
    (void)group;
    if (s->t < 0) return NAN;
    int64_t at;
    const int64_t length = period(o, s->t, &at);
    return (double)(i == 0 ? at : length);
}
SCHEDULER_DEFINE(cosine_annealing_warm_restarts, OptimCosineAnnealingWarmRestartsArgs,
                 .check = check_restarts, .lr = restarts, .uncounted = true,
                 .fields = FIELDS(OptimCosineAnnealingWarmRestartsArgs, T_0, T_mult, eta_min),
                 .derived = DERIVED("T_cur", "T_i"), .derive = restarts_derive)

const OptimWarmupCosineLrArgs optim_warmup_cosine_lr_defaults = { OPTIM_WARMUP_COSINE_LR_DEFAULTS };
CHECK(check_warmup_cosine, OptimWarmupCosineLrArgs,
      o->warmup_steps >= 0 && o->total_steps > o->warmup_steps && o->min_factor >= 0,
      "warmup_steps %d, total_steps %d, min_factor %g: want 0 or more, above warmup_steps, 0 or more",
      o->warmup_steps, o->total_steps, o->min_factor)
RATE(warmup_cosine)
{
    OPTIONS(OptimWarmupCosineLrArgs);
    UNUSED;
    if (t < o->warmup_steps) return base * (double)(t + 1) / (o->warmup_steps + 1);
    const double done =
        t >= o->total_steps ? 1 : (double)(t - o->warmup_steps) / (o->total_steps - o->warmup_steps);
    return base * (o->min_factor + (1 - o->min_factor) * .5 * (1 + cos(pi * done)));
}
SCHEDULER_DEFINE(warmup_cosine_lr, OptimWarmupCosineLrArgs, .check = check_warmup_cosine, .lr = warmup_cosine,
                 .fields = FIELDS(OptimWarmupCosineLrArgs, warmup_steps, total_steps, min_factor))

const OptimWarmupStableDecayLrArgs optim_warmup_stable_decay_lr_defaults = {
    OPTIM_WARMUP_STABLE_DECAY_LR_DEFAULTS
};
CHECK(check_stable, OptimWarmupStableDecayLrArgs,
      o->warmup_steps >= 0 && o->decay_steps > 0 &&
          (int64_t)o->total_steps - o->decay_steps >= o->warmup_steps && o->min_factor >= 0,
      "warmup_steps %d, decay_steps %d of total_steps %d, min_factor %g: they must fit, decay_steps above 0",
      o->warmup_steps, o->decay_steps, o->total_steps, o->min_factor)
RATE(stable)
{
    OPTIONS(OptimWarmupStableDecayLrArgs);
    UNUSED;
    if (t < o->warmup_steps) return base * (double)(t + 1) / (o->warmup_steps + 1);
    const double left = t >= o->total_steps ? 0 : (double)(o->total_steps - t) / o->decay_steps;
    return base * (left >= 1 ? 1 : o->min_factor + (1 - o->min_factor) * left);
}
SCHEDULER_DEFINE(warmup_stable_decay_lr, OptimWarmupStableDecayLrArgs, .check = check_stable, .lr = stable,
                 .fields = FIELDS(OptimWarmupStableDecayLrArgs, warmup_steps, decay_steps, total_steps,
                                  min_factor))

const OptimSwaLrArgs optim_swa_lr_defaults = { OPTIM_SWA_LR_DEFAULTS };
CHECK_AFTER(check_swa, OptimSwaLrArgs, NO_CHOICE(anneal_strategy), o->anneal_epochs >= 0,
            "anneal_epochs %d: want 0 or more", o->anneal_epochs)

/* The fraction of the way completed at step t. */
static double annealed(const OptimSwaLrArgs *o, double t)
{
    const double done = fmax(0, fmin(1, t / fmax(1, o->anneal_epochs)));
    return o->anneal_strategy == SCHEDULER_LINEAR ? done : (1 - cos(pi * done)) / 2;
}

/* From the current rate, by its own count of steps; t counts those of the run. */
RATE(swa)
{
    OPTIONS(OptimSwaLrArgs);
    UNUSED;
    const int64_t steps = s->move == SCHEDULER_FIRST  ? 0
                          : s->move == SCHEDULER_ANEW ? s->count - 1
                                                      : s->count;
    const double now = o->anneal_epochs == 0 && steps < 1 ? 1 : (double)steps, before = annealed(o, now - 1);
    const double alpha = annealed(o, now), to = s->list[0][group],
                 from = before == 1 ? to : (lr - before * to) / (1 - before);
    return to * alpha + from * (1 - alpha);
}
SCHEDULER_DEFINE(swa_lr, OptimSwaLrArgs, .check = check_swa, .lr = swa, .follows = true,
                 .fields = FIELDS(OptimSwaLrArgs, anneal_epochs),
                 .per_group = { SCHEDULER_LIST(OptimSwaLrArgs, swa_lr, .state = NULL) })

/* ---- cycles ---------------------------------------------------------------------------------- */

/* total_steps, or epochs times steps_per_epoch. */
static int check_steps(const OptimOneCycleLrArgs *o, const char *function)
{
    if (!o->epochs && !o->steps_per_epoch)
        return WANTS(total_steps, o->total_steps > 0, "the count of all steps, 1 or more");
    if (o->epochs > 0 && o->steps_per_epoch > 0 && !o->total_steps &&
        o->epochs <= INT_MAX / o->steps_per_epoch)
        return 0;
    return tensor_fail(TENSOR_EVALUE, function,
                       "total_steps %d, epochs %d, steps_per_epoch %d: want the first, or both others",
                       o->total_steps, o->epochs, o->steps_per_epoch);
}

enum { MAX_LR, BASE_MOMENTUM, MAX_MOMENTUM, BASE_LR }; /* of Scheduler.list */

const OptimOneCycleLrArgs optim_one_cycle_lr_defaults = { OPTIM_ONE_CYCLE_LR_DEFAULTS };
static int check_one_cycle(const void *options, const char *function)
{
    const OptimOneCycleLrArgs *o = options;
    return NO_CHOICE(anneal_strategy) || check_steps(o, function) ||
           WANTS(pct_start, o->pct_start >= 0 && o->pct_start <= 1, "0 to 1") ||
           WANTS(div_factor, o->div_factor > 0, "above 0") ||
           WANTS(final_div_factor, o->final_div_factor > 0, "above 0");
}

/* Up, down and to the end: a value at step t that goes from low to high, back to low or to last, and to last.
 */
static double one_cycle(const OptimOneCycleLrArgs *o, int64_t t, double low, double high, double last)
{
    const double n = o->total_steps, first = o->pct_start * n - 1, second = 2 * o->pct_start * n - 2,
                 now = (double)t;
    const int phase = now <= first ? 0 : o->three_phase && now <= second ? 1 : 2;
    const double begins = phase == 0 ? 0 : phase == 2 && o->three_phase ? second : first;
    const double ends = phase == 0 ? first : phase == 1 ? second : n - 1;
    const double from = phase == 0 || (phase == 2 && o->three_phase) ? low : high;
    const double to = phase == 0 ? high : phase == 1 ? low : last, done = (now - begins) / (ends - begins);
    if (o->anneal_strategy == SCHEDULER_LINEAR) return (to - from) * done + from;
    return to + (from - to) / 2 * (cos(pi * done) + 1);
}

RATE(one_cycle_rate)
{
    OPTIONS(OptimOneCycleLrArgs);
    UNUSED;
    if (t > o->total_steps)
        return tensor_fail(TENSOR_EVALUE, s->kind->function, "tried to step %lld times: total_steps is %d",
                           (long long)t, o->total_steps),
               (double)NAN;
    const double most = s->list[MAX_LR][group], first = most / o->div_factor;
    return one_cycle(o, t, first, most, first / o->final_div_factor);
}

static double one_cycle_momentum(const Scheduler *s, int group, int64_t t)
{
    OPTIONS(OptimOneCycleLrArgs);
    const double most = s->list[MAX_MOMENTUM][group];
    return o->cycle_momentum ? one_cycle(o, t, most, s->list[BASE_MOMENTUM][group], most) : (double)NAN;
}

static double one_cycle_base(const Scheduler *s, int group, bool scheduled, double base)
{
    OPTIONS(OptimOneCycleLrArgs);
    (void)scheduled, (void)base;
    return s->list[MAX_LR][group] / o->div_factor;
}

/* Does the momentum of a schedule go into beta1? */
static double uses_beta1(const Scheduler *s, bool cycles)
{
    return cycles ? !optim_number(s->opt, 0, "momentum") : (double)NAN;
}

static double one_cycle_derive(const Scheduler *s, int i, int group)
{
    OPTIONS(OptimOneCycleLrArgs);
    const double n = o->total_steps, first = o->pct_start * n - 1;
    if (i == 0) return uses_beta1(s, o->cycle_momentum);
    if (i == 4) return s->list[MAX_LR][group] / o->div_factor;
    if (i == 1) return first;
    if (i == 2) return o->three_phase ? 2 * o->pct_start * n - 2 : n - 1;
    return o->three_phase ? n - 1 : (double)NAN;
}

static const SchedulerKind kind_one_cycle = {
    .function = "optim_one_cycle_lr",
    .args = sizeof(OptimOneCycleLrArgs),
    .defaults = &optim_one_cycle_lr_defaults,
    .last_epoch = offsetof(OptimOneCycleLrArgs, last_epoch),
    .check = check_one_cycle,
    .lr = one_cycle_rate,
    .momentum = one_cycle_momentum,
    .base = one_cycle_base,
    .fields = FIELDS(OptimOneCycleLrArgs, total_steps, cycle_momentum),
    .per_group = { SCHEDULER_LIST(OptimOneCycleLrArgs, max_lr, .state = NULL),
                   SCHEDULER_LIST(OptimOneCycleLrArgs, base_momentum, .state = NULL),
                   SCHEDULER_LIST(OptimOneCycleLrArgs, max_momentum, .state = NULL) },
    .derived = DERIVED("use_beta1", "_schedule_phases.0.end_step", "_schedule_phases.1.end_step",
                       "_schedule_phases.2.end_step", "base_lrs+"),
    .derive = one_cycle_derive
};

Scheduler *optim_one_cycle_lr_args(OptimOneCycleLrArgs args)
{
    if (!tensor_check_options(kind_one_cycle.function, &args, kind_one_cycle.defaults, sizeof args) &&
        !check_one_cycle(&args, kind_one_cycle.function) && !args.total_steps)
        args.total_steps = args.epochs * args.steps_per_epoch, args.epochs = args.steps_per_epoch = 0;
    return scheduler_new(&kind_one_cycle, &args);
}

const OptimCyclicLrArgs optim_cyclic_lr_defaults = { OPTIM_CYCLIC_LR_DEFAULTS };
static const char *const cycles[] = { "triangular", "triangular2", "exp_range", NULL };
static const char *const scale_mode_choices[] = { "cycle", "iterations", NULL };
static int check_cyclic(const void *options, const char *function)
{
    const OptimCyclicLrArgs *o = options;
    return tensor_check_choice(function, "mode", (int)o->mode, cycles) || NO_CHOICE(scale_mode) ||
           WANTS(step_size_up, o->step_size_up > 0, "1 or more") ||
           WANTS(step_size_down, o->step_size_down >= 0, "1 or more, or 0: as step_size_up");
}

/* The height of step t above the base, 0 to 1. */
static double height(const OptimCyclicLrArgs *o, int64_t t)
{
    const double up = o->step_size_up, size = up + (o->step_size_down ? o->step_size_down : up),
                 rise = up / size, now = (double)t;
    const double cycle = floor(1 + now / size), x = 1 + now / size - cycle;
    const double scale = o->scale_fn ? o->scale_fn(o->scale_mode == SCHEDULER_CYCLE ? cycle : now, o->ctx)
                         : o->mode == SCHEDULER_TRIANGULAR  ? 1
                         : o->mode == SCHEDULER_TRIANGULAR2 ? 1 / pow(2, cycle - 1)
                                                            : pow(o->gamma, now);
    return (x <= rise ? x / rise : (x - 1) / (rise - 1)) * scale;
}

RATE(cyclic)
{
    OPTIONS(OptimCyclicLrArgs);
    UNUSED;
    return base + (s->list[MAX_LR][group] - base) * height(o, t);
}

static double cyclic_momentum(const Scheduler *s, int group, int64_t t)
{
    OPTIONS(OptimCyclicLrArgs);
    const double least = s->list[BASE_MOMENTUM][group], most = s->list[MAX_MOMENTUM][group];
    return o->cycle_momentum ? most - (most - least) * height(o, t) : (double)NAN;
}

static double cyclic_base(const Scheduler *s, int group, bool scheduled, double base)
{
    return scheduled ? base : s->list[BASE_LR][group];
}

static double cyclic_derive(const Scheduler *s, int i, int group)
{
    OPTIONS(OptimCyclicLrArgs);
    const double up = o->step_size_up, size = up + (o->step_size_down ? o->step_size_down : up);
    (void)group;
    return i == 0 ? uses_beta1(s, o->cycle_momentum) : i == 1 ? size : up / size;
}
SCHEDULER_DEFINE(cyclic_lr, OptimCyclicLrArgs, .check = check_cyclic, .lr = cyclic,
                 .momentum = cyclic_momentum, .base = cyclic_base,
                 .fields = FIELDS(OptimCyclicLrArgs, gamma, cycle_momentum),
                 .per_group = { SCHEDULER_LIST(OptimCyclicLrArgs, max_lr, .state = "max_lrs"),
                                SCHEDULER_LIST(OptimCyclicLrArgs, base_momentum, .state = "base_momentums",
                                               .momentum = true),
                                SCHEDULER_LIST(OptimCyclicLrArgs, max_momentum, .state = "max_momentums",
                                               .momentum = true),
                                SCHEDULER_LIST(OptimCyclicLrArgs, base_lr, .state = NULL) },
                 .derived = DERIVED("use_beta1", "total_size", "step_ratio"), .derive = cyclic_derive)

/* ---- by a metric ----------------------------------------------------------------------------- */

enum { BEST, BAD, COOLDOWN };
const OptimReduceLrOnPlateauArgs optim_reduce_lr_on_plateau_defaults = {
    OPTIM_REDUCE_LR_ON_PLATEAU_DEFAULTS
};
static const char *const mode_choices[] = { "min", "max", NULL };
static const char *const threshold_mode_choices[] = { "rel", "abs", NULL };
static int check_plateau(const void *options, const char *function)
{
    const OptimReduceLrOnPlateauArgs *o = options;
    return NO_CHOICE(mode) || NO_CHOICE(threshold_mode) ||
           WANTS(factor, o->factor >= 0 && o->factor < 1, "0 or more, below 1") ||
           WANTS(patience, o->patience >= 0, "0 or more") || WANTS(cooldown, o->cooldown >= 0, "0 or more") ||
           WANTS(eps, o->eps >= 0, "0 or more");
}

/* PyTorch stores the single number beside the list. */
static double plateau_derive(const Scheduler *s, int i, int group)
{
    OPTIONS(OptimReduceLrOnPlateauArgs);
    (void)group;
    if (i == 0) return o->mode == SCHEDULER_MIN ? (double)INFINITY : -(double)INFINITY;
    for (int g = 1; g < s->groups; g++)
        if (s->list[0][g] != s->list[0][0]) return NAN;
    return s->list[0][0];
}

static const SchedulerKind kind_plateau = {
    .function = "optim_reduce_lr_on_plateau",
    .args = sizeof(OptimReduceLrOnPlateauArgs),
    .defaults = &optim_reduce_lr_on_plateau_defaults,
    .check = check_plateau,
    .number = { "best", "num_bad_epochs", "cooldown_counter" },
    .fields = FIELDS(OptimReduceLrOnPlateauArgs, factor, patience, cooldown, eps, threshold),
    .per_group = { SCHEDULER_LIST(OptimReduceLrOnPlateauArgs, min_lr, .state = "min_lrs") },
    .derived = DERIVED("mode_worse", "default_min_lr"),
    .derive = plateau_derive
};

Scheduler *optim_reduce_lr_on_plateau_args(OptimReduceLrOnPlateauArgs args)
{
    Scheduler *s = scheduler_new(&kind_plateau, &args);
    if (s) s->number[BEST] = args.mode == SCHEDULER_MIN ? INFINITY : -INFINITY;
    return s;
}

static bool is_better(const OptimReduceLrOnPlateauArgs *o, double metric, double best)
{
    const double by = o->mode == SCHEDULER_MIN ? -o->threshold : o->threshold;
    const double bar = o->threshold_mode == SCHEDULER_ABS ? best + by : best * (1 + by);
    return o->mode == SCHEDULER_MIN ? metric < bar : metric > bar;
}

static void reduce(Scheduler *s)
{
    OPTIONS(OptimReduceLrOnPlateauArgs);
    for (int g = 0; g < s->groups; g++) {
        double *lr = optim_number(s->opt, g, "lr");
        const double lower = fmax(*lr * o->factor, s->list[0][g]);
        if (*lr - lower > o->eps) *lr = lower;
    }
}

int optim_scheduler_step_metric(Scheduler *s, double metric)
{
    if (scheduler_null(s, "optim_scheduler_step_metric")) return -1;
    if (s->kind != &kind_plateau) return optim_scheduler_step(s);
    if (tensor_error_code()) return -1;
    OPTIONS(OptimReduceLrOnPlateauArgs);
    double *n = s->number;
    s->t++;
    if (is_better(o, metric, n[BEST])) n[BEST] = metric, n[BAD] = 0;
    else n[BAD]++;
    if (n[COOLDOWN] > 0) n[COOLDOWN]--, n[BAD] = 0;
    if (n[BAD] > o->patience) reduce(s), n[COOLDOWN] = o->cooldown, n[BAD] = 0;
    scheduler_note_rates(s);
    return 0;
}

const OptimReduceLrOnPlateauArgs *optim_scheduler_plateau(const Scheduler *s)
{
    return s && s->kind == &kind_plateau ? (const void *)s->options : NULL;
}
