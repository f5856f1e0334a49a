/* lr_scheduler.h - learning rates as functions of the step: torch.optim.lr_scheduler.
 *
 *     Optimizer *opt = optim_sgd(nn_parameters(net), 0.1, .momentum = 0.9);
 *     Scheduler *schedule = optim_cosine_annealing_lr(opt, epochs);
 *     for (int epoch = 0; epoch < epochs; epoch++) {
 *         ...                                 // optim_step(opt) for each batch
 *         optim_scheduler_step(schedule);
 *     }
 *     optim_scheduler_free(schedule);         // before the optimizer
 *
 * A constructor sets the rates of all groups to those of step 0; each optim_scheduler_step advances by one.
 * Order of arguments, defaults and values at every step are PyTorch's.  As in PyTorch, most schedules
 * multiply a group's current rate, so several may work on one optimizer.  Below, base is a group's rate when
 * its first scheduler was made, t the number of steps; equations hold for a schedule that works alone.  As in
 * PyTorch, optim_one_cycle_lr makes its first rate the base of later schedulers, and so does optim_cyclic_lr
 * if it is the first.
 *
 * An argument that PyTorch takes as a number or a list (a value for each group) is two options here: .max_lr
 * = 0.1 for all groups, or .max_lrs = PER_GROUP(0.1, 0.01).  EVALUE: both are given; the list's length is not
 * the number of groups.
 *
 * Resume a run in one of two ways.  Make optimizer and schedule as at first, then load the states of both
 * (optim_scheduler_load_state_dict).  Or make the optimizer, load its state, and make the schedule with
 * PyTorch's .last_epoch: 9 after 10 steps.  The schedule continues from the loaded rates; as in PyTorch,
 * optim_step_lr, optim_multi_step_lr and optim_constant_lr multiply them once more if that step is one of
 * theirs.  EVALUE: the optimizer has no initial_lr: it never had a schedule, nor loaded the state of one that
 * had.
 *
 * A schedule changes the groups that exist when it is made.  A group added later (optim_add_group) keeps its
 * rate until another schedule is made.  (In PyTorch, schedules that multiply the rate then include the new
 * group, and those that use a base raise.)
 *
 * Constructors return NULL on ENULL: no optimizer; EVALUE: options out of range, or an optimizer without the
 * option that the schedule changes; ENOMEM. */
#ifndef TAPEGRAD_LR_SCHEDULER_H
#define TAPEGRAD_LR_SCHEDULER_H

#include <math.h>
#include <tapegrad/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Scheduler Scheduler;

/* A number for each group of the optimizer: PER_GROUP(0.1, 0.01), or { n, array }. */
typedef struct OptimPerGroup {
    int count;
    const double *item;
} OptimPerGroup;
#define PER_GROUP(...) \
    ((OptimPerGroup){ (int)(sizeof(double[]){ __VA_ARGS__ } / sizeof(double)), (double[]){ __VA_ARGS__ } })

/* ---- factors ---------------------------------------------------------------------------------- */

typedef struct OptimStepLrArgs {
    Optimizer *optimizer;
    int step_size;
    double gamma;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimStepLrArgs;
#define OPTIM_STEP_LR_DEFAULTS .gamma = 0.1, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimStepLrArgs optim_step_lr_defaults;

/* optim_step_lr(opt, 30) - lr *= gamma every step_size steps. */
#define optim_step_lr(...) \
    TENSOR_CALL_(optim_step_lr_args, OptimStepLrArgs, OPTIM_STEP_LR_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_step_lr_args(OptimStepLrArgs args);

typedef struct OptimMultiStepLrArgs {
    Optimizer *optimizer;
    TensorShape milestones;
    double gamma;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimMultiStepLrArgs;
#define OPTIM_MULTI_STEP_LR_DEFAULTS .gamma = 0.1, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimMultiStepLrArgs optim_multi_step_lr_defaults;

/* optim_multi_step_lr(opt, DIMS(30, 80)) - lr *= gamma at each milestone, k times if it stands k times in the
 * list. */
#define optim_multi_step_lr(...)                                                               \
    TENSOR_CALL_(optim_multi_step_lr_args, OptimMultiStepLrArgs, OPTIM_MULTI_STEP_LR_DEFAULTS, \
                 .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_multi_step_lr_args(OptimMultiStepLrArgs args);

typedef struct OptimExponentialLrArgs {
    Optimizer *optimizer;
    double gamma;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimExponentialLrArgs;
#define OPTIM_EXPONENTIAL_LR_DEFAULTS .gamma = (double)NAN, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimExponentialLrArgs optim_exponential_lr_defaults;

/* optim_exponential_lr(opt, 0.99) - lr *= gamma at each step; gamma is required. */
#define optim_exponential_lr(...)                                                                  \
    TENSOR_CALL_(optim_exponential_lr_args, OptimExponentialLrArgs, OPTIM_EXPONENTIAL_LR_DEFAULTS, \
                 .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_exponential_lr_args(OptimExponentialLrArgs args);

typedef struct OptimConstantLrArgs {
    Optimizer *optimizer;
    double factor;
    int total_iters;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimConstantLrArgs;
#define OPTIM_CONSTANT_LR_DEFAULTS .factor = 1.0 / 3, .total_iters = 5, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimConstantLrArgs optim_constant_lr_defaults;

/* optim_constant_lr(opt) - lr *= factor at step 0, lr /= factor at step total_iters. */
#define optim_constant_lr(...)                                                            \
    TENSOR_CALL_(optim_constant_lr_args, OptimConstantLrArgs, OPTIM_CONSTANT_LR_DEFAULTS, \
                 .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_constant_lr_args(OptimConstantLrArgs args);

typedef struct OptimLinearLrArgs {
    Optimizer *optimizer;
    double start_factor, end_factor;
    int total_iters;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimLinearLrArgs;
#define OPTIM_LINEAR_LR_DEFAULTS \
    .start_factor = 1.0 / 3, .end_factor = 1, .total_iters = 5, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimLinearLrArgs optim_linear_lr_defaults;

/* optim_linear_lr(opt) - lr = base f, f linear from start_factor at t = 0 to end_factor at t = total_iters,
 * then constant. */
#define optim_linear_lr(...) \
    TENSOR_CALL_(optim_linear_lr_args, OptimLinearLrArgs, OPTIM_LINEAR_LR_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_linear_lr_args(OptimLinearLrArgs args);

typedef struct OptimPolynomialLrArgs {
    Optimizer *optimizer;
    int total_iters;
    double power;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimPolynomialLrArgs;
#define OPTIM_POLYNOMIAL_LR_DEFAULTS .total_iters = 5, .power = 1, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimPolynomialLrArgs optim_polynomial_lr_defaults;

/* optim_polynomial_lr(opt, 100, .power = 2) - lr = base (1 - t / total_iters)^power; 0 for t >=
 * total_iters. */
#define optim_polynomial_lr(...)                                                                \
    TENSOR_CALL_(optim_polynomial_lr_args, OptimPolynomialLrArgs, OPTIM_POLYNOMIAL_LR_DEFAULTS, \
                 .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_polynomial_lr_args(OptimPolynomialLrArgs args);

typedef double (*SchedulerFactor)(int64_t step, int group, void *ctx);

typedef struct OptimLambdaLrArgs {
    Optimizer *optimizer;
    SchedulerFactor lr_lambda;
    void *ctx;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimLambdaLrArgs;
#define OPTIM_LAMBDA_LR_DEFAULTS .ctx = NULL, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimLambdaLrArgs optim_lambda_lr_defaults;

/* optim_lambda_lr(opt, fn) - lr = base fn(t, group, ctx).  Where PyTorch takes a list of functions, fn uses
 * group. */
#define optim_lambda_lr(...) \
    TENSOR_CALL_(optim_lambda_lr_args, OptimLambdaLrArgs, OPTIM_LAMBDA_LR_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_lambda_lr_args(OptimLambdaLrArgs args);

typedef struct OptimMultiplicativeLrArgs {
    Optimizer *optimizer;
    SchedulerFactor lr_lambda;
    void *ctx;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimMultiplicativeLrArgs;
#define OPTIM_MULTIPLICATIVE_LR_DEFAULTS .ctx = NULL, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimMultiplicativeLrArgs optim_multiplicative_lr_defaults;

/* optim_multiplicative_lr(opt, fn) - lr *= fn(t, group, ctx) from step 1 on. */
#define optim_multiplicative_lr(...)                                                                        \
    TENSOR_CALL_(optim_multiplicative_lr_args, OptimMultiplicativeLrArgs, OPTIM_MULTIPLICATIVE_LR_DEFAULTS, \
                 .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_multiplicative_lr_args(OptimMultiplicativeLrArgs args);

/* ---- cosines and cycles ----------------------------------------------------------------------- */

typedef struct OptimCosineAnnealingLrArgs {
    Optimizer *optimizer;
    int T_max;
    double eta_min;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimCosineAnnealingLrArgs;
#define OPTIM_COSINE_ANNEALING_LR_DEFAULTS .eta_min = 0, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimCosineAnnealingLrArgs optim_cosine_annealing_lr_defaults;

/* optim_cosine_annealing_lr(opt, 100) - lr = eta_min + (base - eta_min) (1 + cos(pi t / T_max)) / 2. */
#define optim_cosine_annealing_lr(...)                                       \
    TENSOR_CALL_(optim_cosine_annealing_lr_args, OptimCosineAnnealingLrArgs, \
                 OPTIM_COSINE_ANNEALING_LR_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_cosine_annealing_lr_args(OptimCosineAnnealingLrArgs args);

typedef struct OptimCosineAnnealingWarmRestartsArgs {
    Optimizer *optimizer;
    int T_0, T_mult;
    double eta_min;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimCosineAnnealingWarmRestartsArgs;
#define OPTIM_COSINE_ANNEALING_WARM_RESTARTS_DEFAULTS .T_mult = 1, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimCosineAnnealingWarmRestartsArgs optim_cosine_annealing_warm_restarts_defaults;

/* optim_cosine_annealing_warm_restarts(opt, 10, .T_mult = 2) - the same over T_0 steps, then again from base
 * over T_mult times as many steps, and so on. */
#define optim_cosine_annealing_warm_restarts(...)                                                 \
    TENSOR_CALL_(optim_cosine_annealing_warm_restarts_args, OptimCosineAnnealingWarmRestartsArgs, \
                 OPTIM_COSINE_ANNEALING_WARM_RESTARTS_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_cosine_annealing_warm_restarts_args(OptimCosineAnnealingWarmRestartsArgs args);

typedef struct OptimWarmupCosineLrArgs {
    Optimizer *optimizer;
    int warmup_steps, total_steps;
    double min_factor;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimWarmupCosineLrArgs;
#define OPTIM_WARMUP_COSINE_LR_DEFAULTS .min_factor = 0, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimWarmupCosineLrArgs optim_warmup_cosine_lr_defaults;

/* optim_warmup_cosine_lr(opt, 100, 5000, .min_factor = 0.1) - lr = base (t + 1) / (warmup_steps + 1) while
 * t < warmup_steps; then base (m + (1 - m) (1 + cos(pi r)) / 2), m = min_factor, r = (t - warmup_steps) /
 * (total_steps - warmup_steps); base m for t >= total_steps.  As in nanoGPT; PyTorch has no such class. */
#define optim_warmup_cosine_lr(...)                                                                     \
    TENSOR_CALL_(optim_warmup_cosine_lr_args, OptimWarmupCosineLrArgs, OPTIM_WARMUP_COSINE_LR_DEFAULTS, \
                 .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_warmup_cosine_lr_args(OptimWarmupCosineLrArgs args);

typedef struct OptimWarmupStableDecayLrArgs {
    Optimizer *optimizer;
    int warmup_steps, decay_steps, total_steps;
    double min_factor;
    int64_t last_epoch;
    TensorFromDefaults from_defaults;
} OptimWarmupStableDecayLrArgs;
#define OPTIM_WARMUP_STABLE_DECAY_LR_DEFAULTS .min_factor = 0, .last_epoch = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimWarmupStableDecayLrArgs optim_warmup_stable_decay_lr_defaults;

/* optim_warmup_stable_decay_lr(opt, 100, 1000, 5000) - the same warm-up, then base; in the last decay_steps
 * of total_steps linear down to base min_factor (Hu et al. 2024).  PyTorch has no such class. */
#define optim_warmup_stable_decay_lr(...)                                         \
    TENSOR_CALL_(optim_warmup_stable_decay_lr_args, OptimWarmupStableDecayLrArgs, \
                 OPTIM_WARMUP_STABLE_DECAY_LR_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_warmup_stable_decay_lr_args(OptimWarmupStableDecayLrArgs args);

typedef enum SchedulerAnneal { SCHEDULER_COS, SCHEDULER_LINEAR } SchedulerAnneal;

typedef struct OptimOneCycleLrArgs {
    Optimizer *optimizer;
    double max_lr;
    int total_steps;
    int epochs, steps_per_epoch; /* instead of total_steps */
    double pct_start;
    TensorByName by_name;
    SchedulerAnneal anneal_strategy;
    bool cycle_momentum;
    double base_momentum, max_momentum, div_factor, final_div_factor;
    bool three_phase;
    int64_t last_epoch;
    OptimPerGroup max_lrs, base_momentums, max_momentums; /* instead of the numbers */
    TensorFromDefaults from_defaults;
} OptimOneCycleLrArgs;
#define OPTIM_ONE_CYCLE_LR_DEFAULTS                                                                    \
    .max_lr = (double)NAN, .pct_start = 0.3, .cycle_momentum = true, .base_momentum = 0.85,            \
    .max_momentum = 0.95, .div_factor = 25, .final_div_factor = 1e4, .last_epoch = -1, TENSOR_BY_NAME, \
    TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimOneCycleLrArgs optim_one_cycle_lr_defaults;

/* optim_one_cycle_lr(opt, 0.1, steps), optim_one_cycle_lr(opt, 0.1, .epochs = 10, .steps_per_epoch = n) -
 * from max_lr / div_factor up to max_lr in the first pct_start of the steps, then down to max_lr / div_factor
 * / final_div_factor, along half cosines or lines.  .three_phase: down to the first rate in as many steps as
 * up, then to the last rate.  .cycle_momentum: momentum, or beta1, goes from max_momentum to base_momentum
 * and back.  EVALUE: an optimizer with neither, unless .cycle_momentum is false; a step beyond
 * total_steps. */
#define optim_one_cycle_lr(...)                                                             \
    TENSOR_CALL_(optim_one_cycle_lr_args, OptimOneCycleLrArgs, OPTIM_ONE_CYCLE_LR_DEFAULTS, \
                 .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_one_cycle_lr_args(OptimOneCycleLrArgs args);

typedef enum SchedulerCycle {
    SCHEDULER_TRIANGULAR,
    SCHEDULER_TRIANGULAR2,
    SCHEDULER_EXP_RANGE
} SchedulerCycle;
typedef enum SchedulerScaleMode { SCHEDULER_CYCLE, SCHEDULER_ITERATIONS } SchedulerScaleMode;
typedef double (*SchedulerScale)(double x, void *ctx);

typedef struct OptimCyclicLrArgs {
    Optimizer *optimizer;
    double base_lr, max_lr;
    int step_size_up, step_size_down; /* step_size_down 0: step_size_up */
    TensorByName by_name;
    SchedulerCycle mode;
    double gamma;
    SchedulerScale scale_fn; /* instead of mode; may be NULL */
    SchedulerScaleMode scale_mode;
    bool cycle_momentum;
    double base_momentum, max_momentum;
    int64_t last_epoch;
    void *ctx;                                                      /* of scale_fn */
    OptimPerGroup base_lrs, max_lrs, base_momentums, max_momentums; /* instead of the numbers */
    TensorFromDefaults from_defaults;
} OptimCyclicLrArgs;
#define OPTIM_CYCLIC_LR_DEFAULTS                                                                             \
    .base_lr = (double)NAN, .max_lr = (double)NAN, .step_size_up = 2000, .gamma = 1, .cycle_momentum = true, \
    .base_momentum = 0.8, .max_momentum = 0.9, .last_epoch = -1, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimCyclicLrArgs optim_cyclic_lr_defaults;

/* optim_cyclic_lr(opt, 0.001, 0.1) - linear from base_lr to max_lr in step_size_up steps, back in
 * step_size_down, and again.  The height max_lr - base_lr is halved at each cycle (TRIANGULAR2), or
 * multiplied by gamma^t (EXP_RANGE) or scale_fn(x, ctx), x the cycle, counted from 1, or t (.scale_mode =
 * SCHEDULER_ITERATIONS). Momentum, or beta1, moves the opposite way, as in optim_one_cycle_lr. */
#define optim_cyclic_lr(...) \
    TENSOR_CALL_(optim_cyclic_lr_args, OptimCyclicLrArgs, OPTIM_CYCLIC_LR_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_cyclic_lr_args(OptimCyclicLrArgs args);

/* ---- by a metric, and several ----------------------------------------------------------------- */

typedef enum SchedulerMode { SCHEDULER_MIN, SCHEDULER_MAX } SchedulerMode;
typedef enum SchedulerThreshold { SCHEDULER_REL, SCHEDULER_ABS } SchedulerThreshold;

typedef struct OptimReduceLrOnPlateauArgs {
    Optimizer *optimizer;
    TensorByName by_name;
    SchedulerMode mode;
    double factor;
    int patience;
    double threshold;
    SchedulerThreshold threshold_mode;
    int cooldown;
    double min_lr, eps;
    OptimPerGroup min_lrs; /* instead of min_lr */
    TensorFromDefaults from_defaults;
} OptimReduceLrOnPlateauArgs;
#define OPTIM_REDUCE_LR_ON_PLATEAU_DEFAULTS \
    .factor = 0.1, .patience = 10, .threshold = 1e-4, .eps = 1e-8, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimReduceLrOnPlateauArgs optim_reduce_lr_on_plateau_defaults;

/* optim_reduce_lr_on_plateau(opt) - sets lr = max(lr factor, min_lr) when more than patience steps in a row
 * did not improve the best metric by threshold, relative to the best (.threshold_mode = SCHEDULER_ABS:
 * absolute).  No change within cooldown steps of the last, or by eps or less.  NaN is no improvement. Step it
 * with optim_scheduler_step_metric. */
#define optim_reduce_lr_on_plateau(...)                                       \
    TENSOR_CALL_(optim_reduce_lr_on_plateau_args, OptimReduceLrOnPlateauArgs, \
                 OPTIM_REDUCE_LR_ON_PLATEAU_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_reduce_lr_on_plateau_args(OptimReduceLrOnPlateauArgs args);

/* optim_sequential_lr - runs one scheduler after the other: at each milestone (count - 1 of them, in order,
 *     0 or more) the next begins with its step 0, from base; optim_multiplicative_lr and optim_swa_lr
 *     continue from the current rate.  Of equal milestones the last one counts.
 * optim_chained_scheduler - steps all schedulers at each step.  As in PyTorch, a chained scheduler that is
 *     the first of a sequence begins with one step of its members: the sequence's first rate of an
 *     exponential one is base gamma.
 * Both take over the schedulers, even if they fail.  EVALUE: schedulers of different optimizers, or one that
 * steps by a metric. */
TAPEGRAD_API Scheduler *optim_sequential_lr(Optimizer *opt, Scheduler *const *schedulers, int count,
                                            TensorShape milestones);
TAPEGRAD_API Scheduler *optim_chained_scheduler(Scheduler *const *schedulers, int count);

/* ---- use -------------------------------------------------------------------------------------- */

/* optim_scheduler_step - sets the rates of the next step.
 * optim_scheduler_step_metric - the same with the metric for optim_reduce_lr_on_plateau; others ignore it.
 *     0, or -1 and no change: EVALUE. */
TAPEGRAD_API int optim_scheduler_step(Scheduler *scheduler);
TAPEGRAD_API int optim_scheduler_step_metric(Scheduler *scheduler, double metric);

/* optim_scheduler_last_epoch - the number of steps, 0 at first; -1 for NULL.
 * optim_scheduler_last_lr - the rate that the last step set for a group, PyTorch's get_last_lr()[group], even
 *     if it was changed since.  NaN: ENULL; EINDEX: no such group.
 * optim_scheduler_optimizer - the optimizer whose rates it changes.
 * optim_scheduler_plateau - the options of an optim_reduce_lr_on_plateau; NULL for any other schedule. */
TAPEGRAD_API int64_t optim_scheduler_last_epoch(const Scheduler *scheduler);
TAPEGRAD_API double optim_scheduler_last_lr(const Scheduler *scheduler, int group);
TAPEGRAD_API Optimizer *optim_scheduler_optimizer(const Scheduler *scheduler);
TAPEGRAD_API const OptimReduceLrOnPlateauArgs *optim_scheduler_plateau(const Scheduler *scheduler);

/* optim_scheduler_state_dict - under PyTorch's names: "last_epoch", "_step_count", "_last_lr", "base_lrs",
 *     the options ("step_size", "gamma", "T_max", ...), "best", "num_bad_epochs", "cooldown_counter" of a
 *     plateau; "_schedulers.0.last_epoch" of several.  f64, lists as rank 1, without strings.  Owned by the
 *     scheduler, valid until the next call.
 *     PyTorch's scheduler.state_dict() loads, with its dicts and lists flattened to such names; entries
 *     without meaning here (_is_initial, lr_lambdas, ...) are ignored, strings (mode, ...) left out.
 * optim_scheduler_load_state_dict - sets the steps, the base rates and the options.  Milestones, and values
 *     that follow from options outside the state, must agree with the schedule's.  EVALUE: they do not, a
 *     name is missing or unexpected (another kind of schedule), an option is out of range; ESHAPE.  All or
 *     nothing.  A dict of only the step, the base rates and a plateau's counts loads, too.
 * Neither touches the optimizer, whose own dict holds the rates: to resume a run, make optimizer and schedule
 * as at first, which sets the rates of step 0, then load both. */
TAPEGRAD_API TensorDict optim_scheduler_state_dict(Scheduler *scheduler);
TAPEGRAD_API int optim_scheduler_load_state_dict(Scheduler *scheduler, TensorDict dict);

TAPEGRAD_API void optim_scheduler_free(Scheduler *scheduler);

#ifdef __cplusplus
}
#endif
#endif
