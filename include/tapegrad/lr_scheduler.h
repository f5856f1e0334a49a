/* lr_scheduler.h - learning rates that change with the step: torch.optim.lr_scheduler.
 *
 *     Optimizer *opt = optim_sgd(nn_parameters(net), 0.1, .momentum = 0.9);
 *     Scheduler *schedule = optim_cosine_annealing_lr(opt, epochs);
 *     for (int epoch = 0; epoch < epochs; epoch++) {
 *         ...                                 // optim_step(opt) for each batch
 *         optim_scheduler_step(schedule);
 *     }
 *     optim_scheduler_free(schedule);         // before the optimizer
 *
 * Making one sets the rates of all groups to those of step 0; each optim_scheduler_step goes on by one.
 * Arguments in PyTorch's order, its defaults and its values at every step.  As there, most schedules multiply
 * the rate that a group has now, so that several may work on one optimizer; base is the rate that a group had
 * when its first scheduler was made, t the count of steps.  As there, optim_one_cycle_lr makes its first rate
 * the base of schedulers that are made after it; so does optim_cyclic_lr where it is the first.
 *
 * What PyTorch takes as a number or as a list with one for each group is two options here: .max_lr = 0.1 for
 * all, or .max_lrs = PER_GROUP(0.1, 0.01); EVALUE for both, and for a list of another length.
 *
 * A run is resumed in one of two ways.  Make optimizer and schedule as at first, then load the states of both
 * (optim_scheduler_load_state_dict).  Or make the optimizer, load its state, and make the schedule with
 * .last_epoch, PyTorch's: 9 after 10 steps.  It goes on from the rates of the state; those of optim_step_lr,
 * optim_multi_step_lr and optim_constant_lr are multiplied once more, as there, where the step is one that
 * does.  EVALUE: the optimizer has no initial_lr, for no schedule was made of it and no such state loaded.
 *
 * A schedule changes the groups that there were when it was made.  One that optim_add_group adds later keeps
 * its rate until a schedule is made that knows it.  (In PyTorch, schedules that multiply the rate go on with
 * the new group, too, and those that go from a base raise.)
 *
 * Constructors give NULL: ENULL for no optimizer, EVALUE for options out of range or an optimizer without the
 * options that are to be changed, ENOMEM. */
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

/* optim_multi_step_lr(opt, DIMS(30, 80)) - lr *= gamma at each milestone, once for each time it is named. */
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

/* optim_exponential_lr(opt, 0.99) - lr *= gamma at each step; gamma must be given. */
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

/* optim_constant_lr(opt) - lr *= factor at first, and back at step total_iters. */
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

/* optim_linear_lr(opt) - the factor goes from start_factor to end_factor in total_iters equal steps. */
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

/* optim_polynomial_lr(opt, 100, .power = 2) - lr = base (1 - t / total_iters)^power, 0 from then on. */
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

/* optim_lambda_lr(opt, fn) - lr = base fn(t, group, ctx).  PyTorch's list of functions is one that looks at
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

/* optim_cosine_annealing_warm_restarts(opt, 10, .T_mult = 2) - the same over T_0 steps, then anew over T_mult
 * times as many, and so on. */
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
 * t < warmup_steps; then base (m + (1 - m) (1 + cos(pi r)) / 2), m = min_factor and r the part of the rest
 * that is done; base m from total_steps on.  As nanoGPT's; PyTorch has no such class. */
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

/* optim_warmup_stable_decay_lr(opt, 100, 1000, 5000) - the same warm-up, then base, and in the last
 * decay_steps of total_steps a line down to base min_factor (Hu et al. 2024).  PyTorch has no such class. */
#define optim_warmup_stable_decay_lr(...)                                         \
    TENSOR_CALL_(optim_warmup_stable_decay_lr_args, OptimWarmupStableDecayLrArgs, \
                 OPTIM_WARMUP_STABLE_DECAY_LR_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_warmup_stable_decay_lr_args(OptimWarmupStableDecayLrArgs args);

typedef enum SchedulerAnneal { SCHEDULER_COS, SCHEDULER_LINEAR } SchedulerAnneal;

typedef struct OptimOneCycleLrArgs {
    Optimizer *optimizer;
    double max_lr;
    int total_steps;
    int epochs, steps_per_epoch; /* or these */
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
 * / final_div_factor, along half cosines or lines; .three_phase: down to the first rate, then to the last.
 * .cycle_momentum: momentum, or beta1, goes from max_momentum to base_momentum and back; EVALUE for an
 * optimizer without.  A step beyond total_steps is refused (EVALUE). */
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
    int step_size_up, step_size_down; /* down: 0: as up */
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

/* optim_cyclic_lr(opt, 0.001, 0.1) - from base_lr to max_lr in step_size_up steps, back in step_size_down,
 * and again; the height is halved at each cycle (TRIANGULAR2), times gamma^t (EXP_RANGE), or times
 * scale_fn(x, ctx), x the number of the cycle, from 1, or t (.scale_mode = SCHEDULER_ITERATIONS).  Momentum,
 * or beta1, goes the other way, as optim_one_cycle_lr's. */
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

/* optim_reduce_lr_on_plateau(opt) - optim_scheduler_step_metric: lr = max(lr factor, min_lr) after more than
 * patience steps whose metric was not better than the best by threshold (of it, or .threshold_mode =
 * SCHEDULER_ABS), not within cooldown steps of the last time, and not for a change of eps or less.  A step
 * whose metric is NaN is no better. */
#define optim_reduce_lr_on_plateau(...)                                       \
    TENSOR_CALL_(optim_reduce_lr_on_plateau_args, OptimReduceLrOnPlateauArgs, \
                 OPTIM_REDUCE_LR_ON_PLATEAU_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_reduce_lr_on_plateau_args(OptimReduceLrOnPlateauArgs args);

/* optim_sequential_lr - schedulers one after the other: the next one begins, with its step 0, at each
 *     milestone (one fewer than schedulers, in order, 0 or more), from the base; optim_multiplicative_lr and
 *     optim_swa_lr go on from the rate before.  Of milestones that are equal the last one counts.
 * optim_chained_scheduler - all of them at each step.  As PyTorch's, one that is the first of a row begins
 *     with a step of its members: an exponential has gamma in the row's first rate.
 * Both take the schedulers over, also when they fail; all are of one optimizer, none by a metric (EVALUE). */
TAPEGRAD_API Scheduler *optim_sequential_lr(Optimizer *opt, Scheduler *const *schedulers, int count,
                                            TensorShape milestones);
TAPEGRAD_API Scheduler *optim_chained_scheduler(Scheduler *const *schedulers, int count);

/* ---- use -------------------------------------------------------------------------------------- */

/* optim_scheduler_step - to the next step's rates.
 * optim_scheduler_step_metric - with the metric that optim_reduce_lr_on_plateau watches; the others take no
 *     notice of it.  0, or -1 and no change: EVALUE. */
TAPEGRAD_API int optim_scheduler_step(Scheduler *scheduler);
TAPEGRAD_API int optim_scheduler_step_metric(Scheduler *scheduler, double metric);

/* optim_scheduler_last_epoch - the count of steps, 0 at first; -1 for NULL.
 * optim_scheduler_last_lr - the rate that the schedule's last step left in a group, as PyTorch's
 *     get_last_lr()[group], whatever changed it since.  NaN: ENULL; EINDEX: no such group.
 * optim_scheduler_optimizer - whose rates it changes.
 * optim_scheduler_plateau - the options of an optim_reduce_lr_on_plateau; NULL: another one, or NULL. */
TAPEGRAD_API int64_t optim_scheduler_last_epoch(const Scheduler *scheduler);
TAPEGRAD_API double optim_scheduler_last_lr(const Scheduler *scheduler, int group);
TAPEGRAD_API Optimizer *optim_scheduler_optimizer(const Scheduler *scheduler);
TAPEGRAD_API const OptimReduceLrOnPlateauArgs *optim_scheduler_plateau(const Scheduler *scheduler);

/* optim_scheduler_state_dict - under PyTorch's names: "last_epoch", "_step_count", "_last_lr", "base_lrs",
 *     the options ("step_size", "gamma", "T_max", ...), "best", "num_bad_epochs", "cooldown_counter" of a
 *     plateau; "_schedulers.0.last_epoch" of several.  f64; lists of rank 1; no texts.  The scheduler's until
 *     the next call.
 *     PyTorch's own loads, as scheduler.state_dict() with its dicts and lists flattened to such names: what
 *     says nothing here (_is_initial, lr_lambdas, ...) is let be; texts (mode, ...) are left out.
 * optim_scheduler_load_state_dict - sets the steps, the base rates and the options.  Milestones, and what
 *     follows from options that are not in a state, must agree with the schedule's.  EVALUE: they do not, a
 *     name is missing or unexpected (another kind of schedule), an option is out of range; ESHAPE.  All or
 *     nothing.  Dicts of only the step, the base rates and a plateau's counts load, too.
 * Neither touches the optimizer, whose own dict has the rates: to go on with a run, make optimizer and
 * schedule as at first, which sets the rates of step 0, and then load both. */
TAPEGRAD_API TensorDict optim_scheduler_state_dict(Scheduler *scheduler);
TAPEGRAD_API int optim_scheduler_load_state_dict(Scheduler *scheduler, TensorDict dict);

TAPEGRAD_API void optim_scheduler_free(Scheduler *scheduler);

#ifdef __cplusplus
}
#endif
#endif
