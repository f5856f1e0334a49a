/* optim.h - optimizers: update parameters from their gradients.
 *
 *     Optimizer *opt = optim_adamw(nn_parameters(net), .lr = 3e-4, .weight_decay = 0.1);
 *     ...
 *     optim_zero_grad(opt);
 *     tensor_backward(loss);
 *     nn_clip_grad_norm_(nn_parameters(net), 1.0);
 *     optim_step(opt);
 *     ...
 *     optim_free(opt);
 *
 * Order of arguments, options by name, defaults and results are PyTorch's.  Parameters come as a list:
 * nn_parameters(net), TENSORS(w, b), or TENSOR_LIST(array, n).  The optimizer retains the tensors, so it may
 * outlive the net.  After nn_to or nn_to_device it moves its state at the next step.
 *
 * A parameter whose gradient is NULL is skipped: no decay, no step counted.  A step first allocates all it
 * needs, then changes the parameters; once all have been stepped, it asks the system for no memory.
 *
 * Constructors return NULL on EVALUE: no parameters, a parameter given twice, options out of range; EGRAD: a
 * parameter is no leaf; ENULL, ENOMEM. */
#ifndef TAPEGRAD_OPTIM_H
#define TAPEGRAD_OPTIM_H

#include <math.h>
#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Optimizer Optimizer;

/* ---- the optimizers -----------------------------------------------------------------------------
 * g is the gradient (with .maximize, minus the gradient), p the parameter, t the parameter's step, from 1; a
 * step computes in the parameter's dtype. */

typedef struct OptimSgdArgs {
    TensorList params;
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize;
    TensorFromDefaults from_defaults;
} OptimSgdArgs;
#define OPTIM_SGD_DEFAULTS .lr = 1e-3, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimSgdArgs optim_sgd_defaults;

/* optim_sgd(params, 0.1, .momentum = 0.9)
 *   g += weight_decay p;
 *   with momentum: b = momentum b + (1 - dampening) g, b = g at t = 1;   g = b, nesterov: g += momentum b;
 *   p -= lr g
 * EVALUE: nesterov without momentum, or with dampening. */
#define optim_sgd(...) TENSOR_CALL_(optim_sgd_args, OptimSgdArgs, OPTIM_SGD_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_sgd_args(OptimSgdArgs args);

typedef struct OptimAdamArgs {
    TensorList params;
    double lr, beta1, beta2, eps, weight_decay;
    bool amsgrad, maximize, decoupled_weight_decay;
    TensorFromDefaults from_defaults;
} OptimAdamArgs;
#define OPTIM_ADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, TENSOR_FROM_DEFAULTS
#define OPTIM_ADAMW_DEFAULTS OPTIM_ADAM_DEFAULTS, .weight_decay = 1e-2, .decoupled_weight_decay = true
TAPEGRAD_API extern const OptimAdamArgs optim_adam_defaults;
TAPEGRAD_API extern const OptimAdamArgs optim_adamw_defaults;

/* optim_adam(params, .lr = 1e-3, .beta2 = 0.95)
 *   g += weight_decay p   (adamw and .decoupled_weight_decay instead: p *= 1 - lr weight_decay)
 *   m += (1 - beta1) (g - m);   v = beta2 v + (1 - beta2) g^2;
 *   p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)   (amsgrad: v is the largest so far) */
#define optim_adam(...) \
    TENSOR_CALL_(optim_adam_args, OptimAdamArgs, OPTIM_ADAM_DEFAULTS, .params = __VA_ARGS__)
#define optim_adamw(...) \
    TENSOR_CALL_(optim_adamw_args, OptimAdamArgs, OPTIM_ADAMW_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_adam_args(OptimAdamArgs args);
TAPEGRAD_API Optimizer *optim_adamw_args(OptimAdamArgs args);

typedef struct OptimNadamArgs {
    TensorList params;
    double lr, beta1, beta2, eps, weight_decay, momentum_decay;
    bool decoupled_weight_decay, maximize;
    TensorFromDefaults from_defaults;
} OptimNadamArgs;
#define OPTIM_NADAM_DEFAULTS \
    .lr = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum_decay = 4e-3, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimNadamArgs optim_nadam_defaults;

/* optim_nadam(params) - Adam with Nesterov momentum (Dozat 2016).
 *   g += weight_decay p   (.decoupled_weight_decay: p *= 1 - lr weight_decay)
 *   mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2);   P = mu_1 ... mu_t;   m, v as Adam's
 *   p -= lr ((1 - mu_t) / (1 - P) g + mu_(t+1) / (1 - P mu_(t+1)) m) / (sqrt(v / (1 - beta2^t)) + eps)
 * P is kept in f64; PyTorch's is f32 unless its default dtype is f64. */
#define optim_nadam(...) \
    TENSOR_CALL_(optim_nadam_args, OptimNadamArgs, OPTIM_NADAM_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_nadam_args(OptimNadamArgs args);

typedef struct OptimRadamArgs {
    TensorList params;
    double lr, beta1, beta2, eps, weight_decay;
    bool decoupled_weight_decay, maximize;
    TensorFromDefaults from_defaults;
} OptimRadamArgs;
#define OPTIM_RADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimRadamArgs optim_radam_defaults;

/* optim_radam(params) - Adam with a smaller rate while the variance of v is high (Liu et al. 2020).
 *   decay as optim_nadam's;   m, v as Adam's;
 *   r = 2 / (1 - beta2) - 1;   s = r - 2 t beta2^t / (1 - beta2^t);
 *   q = sqrt((s - 4) (s - 2) r / ((r - 4) (r - 2) s));
 *   p -= lr m / (1 - beta1^t) q sqrt(1 - beta2^t) / (sqrt(v) + eps) where s > 5, else lr m / (1 - beta1^t) */
#define optim_radam(...) \
    TENSOR_CALL_(optim_radam_args, OptimRadamArgs, OPTIM_RADAM_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_radam_args(OptimRadamArgs args);

typedef struct OptimAdamaxArgs {
    TensorList params;
    double lr, beta1, beta2, eps, weight_decay;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimAdamaxArgs;
#define OPTIM_ADAMAX_DEFAULTS .lr = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimAdamaxArgs optim_adamax_defaults;

/* optim_adamax(params) - Adam with the infinity norm instead of the mean square (Kingma and Ba 2015).
 *   g += weight_decay p;   m as Adam's;   u = max(beta2 u, |g| + eps);   p -= lr / (1 - beta1^t) m / u */
#define optim_adamax(...) \
    TENSOR_CALL_(optim_adamax_args, OptimAdamaxArgs, OPTIM_ADAMAX_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_adamax_args(OptimAdamaxArgs args);

typedef struct OptimAdagradArgs {
    TensorList params;
    double lr, lr_decay, weight_decay, initial_accumulator_value, eps;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimAdagradArgs;
#define OPTIM_ADAGRAD_DEFAULTS .lr = 1e-2, .eps = 1e-10, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimAdagradArgs optim_adagrad_defaults;

/* optim_adagrad(params) - rates that fall with the sum of squares (Duchi et al. 2011).
 *   g += weight_decay p;   s += g^2, from the initial value;
 *   p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps) */
#define optim_adagrad(...) \
    TENSOR_CALL_(optim_adagrad_args, OptimAdagradArgs, OPTIM_ADAGRAD_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_adagrad_args(OptimAdagradArgs args);

typedef struct OptimAdadeltaArgs {
    TensorList params;
    double lr, rho, eps, weight_decay;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimAdadeltaArgs;
#define OPTIM_ADADELTA_DEFAULTS .lr = 1, .rho = 0.9, .eps = 1e-6, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimAdadeltaArgs optim_adadelta_defaults;

/* optim_adadelta(params) - steps in the ratio of past steps to past gradients (Zeiler 2012).
 *   g += weight_decay p;   s = rho s + (1 - rho) g^2;   d = sqrt(u + eps) / sqrt(s + eps) g;
 *   u = rho u + (1 - rho) d^2;   p -= lr d */
#define optim_adadelta(...) \
    TENSOR_CALL_(optim_adadelta_args, OptimAdadeltaArgs, OPTIM_ADADELTA_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_adadelta_args(OptimAdadeltaArgs args);

typedef struct OptimRmspropArgs {
    TensorList params;
    double lr, alpha, eps, weight_decay, momentum;
    bool centered, maximize;
    TensorFromDefaults from_defaults;
} OptimRmspropArgs;
#define OPTIM_RMSPROP_DEFAULTS .lr = 1e-2, .alpha = 0.99, .eps = 1e-8, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimRmspropArgs optim_rmsprop_defaults;

/* optim_rmsprop(params, .momentum = 0.9) - gradients over the root of their mean square (Hinton 2012).
 *   g += weight_decay p;   s = alpha s + (1 - alpha) g^2;
 *   .centered: a += (1 - alpha) (g - a), and s - a^2 stands for s;
 *   d = g / (sqrt(s) + eps);   momentum: b = momentum b + d, and b stands for d;   p -= lr d */
#define optim_rmsprop(...) \
    TENSOR_CALL_(optim_rmsprop_args, OptimRmspropArgs, OPTIM_RMSPROP_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_rmsprop_args(OptimRmspropArgs args);

typedef struct OptimRpropArgs {
    TensorList params;
    double lr, eta_minus, eta_plus, step_min, step_max;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimRpropArgs;
#define OPTIM_RPROP_DEFAULTS \
    .lr = 1e-2, .eta_minus = 0.5, .eta_plus = 1.2, .step_min = 1e-6, .step_max = 50, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimRpropArgs optim_rprop_defaults;

/* optim_rprop(params) - steps by the sign of the gradient alone (Riedmiller and Braun 1993); PyTorch's etas
 * and step_sizes are two options each.
 *   l = clamp(l eta, step_min, step_max), from lr;   p -= sign(g) l;   eta = eta_plus where g has the sign of
 *   the last one, 1 where one of them is 0, else eta_minus, and g counts as 0
 * EVALUE unless 0 < eta_minus < 1 < eta_plus and step_min <= step_max. */
#define optim_rprop(...) \
    TENSOR_CALL_(optim_rprop_args, OptimRpropArgs, OPTIM_RPROP_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_rprop_args(OptimRpropArgs args);

typedef struct OptimAsgdArgs {
    TensorList params;
    double lr, lambd, alpha, t0, weight_decay;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimAsgdArgs;
#define OPTIM_ASGD_DEFAULTS .lr = 1e-2, .lambd = 1e-4, .alpha = 0.75, .t0 = 1e6, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimAsgdArgs optim_asgd_defaults;

/* optim_asgd(params) - gradient descent that also averages the parameters, in the state "ax" (Polyak and
 * Juditsky 1992).
 *   g += weight_decay p;   p = (1 - lambd eta) p - eta g;   ax += mu (p - ax);   then
 *   eta = lr / (1 + lambd lr t)^alpha, lr at first;   mu = 1 / max(1, t - t0)
 * eta and mu are kept in f64; PyTorch's are f32 unless its default dtype is f64. */
#define optim_asgd(...) \
    TENSOR_CALL_(optim_asgd_args, OptimAsgdArgs, OPTIM_ASGD_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_asgd_args(OptimAsgdArgs args);

typedef struct OptimLionArgs {
    TensorList params;
    double lr, beta1, beta2, weight_decay;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimLionArgs;
#define OPTIM_LION_DEFAULTS .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimLionArgs optim_lion_defaults;

/* optim_lion(params) - steps by the sign of an interpolated momentum (Chen et al. 2023, algorithm 2); not in
 * PyTorch.
 *   p *= 1 - lr weight_decay;   p -= lr sign(beta1 m + (1 - beta1) g);   m = beta2 m + (1 - beta2) g */
#define optim_lion(...) \
    TENSOR_CALL_(optim_lion_args, OptimLionArgs, OPTIM_LION_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_lion_args(OptimLionArgs args);

typedef struct OptimAdafactorArgs {
    TensorList params;
    double lr, beta2_decay;
    double eps1; /* NaN: that of the dtype, 2^-23 for f32 */
    double eps2, d, weight_decay;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimAdafactorArgs;
#define OPTIM_ADAFACTOR_DEFAULTS \
    .lr = 1e-2, .beta2_decay = -0.8, .eps1 = (double)NAN, .eps2 = 1e-3, .d = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimAdafactorArgs optim_adafactor_defaults;

/* optim_adafactor(params) - Adam without momentum, which keeps the mean squares v as row and column means
 * (Shazeer and Stern 2018, with PyTorch's changes); PyTorch's eps is two options.
 *   p *= 1 - lr weight_decay;   w = t^beta2_decay;
 *   r += w (mean of g^2 over columns - r);   c += w (mean of g^2 over rows - c);
 *   v = r c / max(mean r, eps1), of vectors v += w (g^2 - v);   u = g / sqrt(max(v, eps1^2));
 *   p -= max(eps2, rms p) min(lr, 1 / sqrt t) u / max(1, rms u / d),   rms p before the decay
 * EVALUE: beta2_decay above 0, d below 1. */
#define optim_adafactor(...) \
    TENSOR_CALL_(optim_adafactor_args, OptimAdafactorArgs, OPTIM_ADAFACTOR_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_adafactor_args(OptimAdafactorArgs args);

typedef enum OptimAdjustLr { OPTIM_ORIGINAL, OPTIM_MATCH_RMS_ADAMW, OPTIM_SPECTRAL_UNCLAMPED } OptimAdjustLr;

typedef struct OptimMuonArgs {
    TensorList params;
    double lr, weight_decay, momentum;
    bool nesterov;
    double ns_a, ns_b, ns_c, eps;
    int ns_steps;
    TensorByName by_name;
    OptimAdjustLr adjust_lr_fn;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimMuonArgs;
#define OPTIM_MUON_DEFAULTS                                                                              \
    .lr = 1e-3, .weight_decay = 0.1, .momentum = 0.95, .nesterov = true, .ns_a = 3.4445, .ns_b = -4.775, \
    .ns_c = 2.0315, .eps = 1e-7, .ns_steps = 5, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimMuonArgs optim_muon_defaults;

/* optim_muon(matrices, .lr = 0.02) - orthogonalized momentum (Jordan 2024; torch.optim.Muon), for matrices
 * only: use another optimizer for embeddings and biases.  PyTorch's ns_coefficients are three options; it has
 * no maximize.
 *   b += (1 - momentum) (g - b);   u = b, nesterov: g + momentum (b - g);
 *   X = u / max(|u|, eps) in bf16;   A = X X^T;   X = ns_a X + (ns_b A + ns_c A A) X, ns_steps times;
 *   p *= 1 - lr weight_decay;   p -= lr f X, of [rows, columns] f = sqrt(max(1, rows / columns)),
 *   match_rms_adamw: 0.2 sqrt(max(rows, columns)), spectral_unclamped: sqrt(rows / columns)
 * ESHAPE: a parameter is no matrix. */
#define optim_muon(...) \
    TENSOR_CALL_(optim_muon_args, OptimMuonArgs, OPTIM_MUON_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_muon_args(OptimMuonArgs args);

typedef struct OptimLambArgs {
    TensorList params;
    double lr, beta1, beta2, eps, weight_decay;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimLambArgs;
#define OPTIM_LAMB_DEFAULTS \
    .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 1e-2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimLambArgs optim_lamb_defaults;

/* optim_lamb(params) - Adam with a step length proportional to the parameter's norm (You et al. 2020); not in
 * PyTorch.
 *   m, v as Adam's;   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p;
 *   p -= lr |p| / |u| u,   |p| / |u| = 1 where one of them is 0 */
#define optim_lamb(...) \
    TENSOR_CALL_(optim_lamb_args, OptimLambArgs, OPTIM_LAMB_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_lamb_args(OptimLambArgs args);

typedef enum OptimLineSearch { OPTIM_NO_LINE_SEARCH, OPTIM_STRONG_WOLFE } OptimLineSearch;

typedef struct OptimLbfgsArgs {
    TensorList params;
    double lr;
    int max_iter;
    int max_eval; /* 0: max_iter 5 / 4 */
    double tolerance_grad, tolerance_change;
    int history_size;
    TensorByName by_name;
    OptimLineSearch line_search_fn;
    bool maximize;
    TensorFromDefaults from_defaults;
} OptimLbfgsArgs;
#define OPTIM_LBFGS_DEFAULTS                                                                        \
    .lr = 1, .max_iter = 20, .tolerance_grad = 1e-7, .tolerance_change = 1e-9, .history_size = 100, \
    TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimLbfgsArgs optim_lbfgs_defaults;

/* optim_lbfgs(params, .line_search_fn = OPTIM_STRONG_WOLFE) - steps along an approximate Newton direction,
 * from the last history_size changes of parameters and gradient (Liu and Nocedal 1989), of length lr or as a
 * line search finds.  One optim_step_closure takes at most max_iter steps and max_eval evaluations of the
 * loss; it ends when max |g| <= tolerance_grad, or when the step or the change of the loss is below
 * tolerance_change.  A missing gradient counts as zeros.  EVALUE: a second group.  If the closure fails, even
 * within a line search, parameters and state stay as they were. */
#define optim_lbfgs(...) \
    TENSOR_CALL_(optim_lbfgs_args, OptimLbfgsArgs, OPTIM_LBFGS_DEFAULTS, .params = __VA_ARGS__)
TAPEGRAD_API Optimizer *optim_lbfgs_args(OptimLbfgsArgs args);

/* There is no SparseAdam: gradients are dense here, those of embeddings too, so optim_adam also moves rows
 * that are not in the batch, by their momentum.  To step only the batch's rows, as SparseAdam does, take them
 * out and put them back (fused.h):
 *
 *         Tensor *rows = tensor_unique(ids), *part[4];                     // whole: table, gradient, m, v
 *         for (int i = 0; i < 4; i++) part[i] = tensor_index_select(whole[i], 0, rows);
 *         tensor_fused_adam_(TENSOR_FUSED_LISTS(TENSORS(part[0]), TENSORS(part[1]), t, TENSORS(part[2]),
 *                                               TENSORS(part[3])),
 *                            .eps = 1e-8 / sqrt(1 - pow(0.999, t)));       // its eps: before the correction
 *         for (int i = 0; i < 4; i++) tensor_index_copy_(whole[i], 0, rows, part[i]); */

/* ---- groups -------------------------------------------------------------------------------------
 *
 *     int bias = optim_add_group(opt, TENSORS(b1, b2));
 *     optim_options(opt, bias, OptimAdamArgs)->weight_decay = 0;
 *
 * optim_add_group - adds parameters with the first group's current options; returns the group's number, or
 *     -1 and no change, with the errors of the constructors.  Give each of several nets a group:
 *     optim_add_group(opt, nn_parameters(decoder)).
 * optim_options - the options of a group: read and write them at any time; a step that finds them out of
 *     range fails and changes nothing.  Never NULL: on EVALUE (not the optimizer's struct) or EINDEX (no such
 *     group) it points to a scratch struct. */
TAPEGRAD_API int optim_add_group(Optimizer *opt, TensorList params);
#define optim_options(opt, group, Args) ((Args *)optim_group_options(opt, group, sizeof(Args)))
TAPEGRAD_API void *optim_group_options(Optimizer *opt, int group, size_t size);

/* optim_split_group - moves the parameters of a group for which pick(parameter, ctx) is true, with their
 *     states, to a new group with the same options, and returns its number; it may be empty.  Weight decay
 *     for matrices only:
 *
 *         int rest = optim_split_group(opt, 0, optim_is_vector, NULL);
 *         optim_options(opt, rest, OptimAdamArgs)->weight_decay = 0;
 *
 *     Split before you make schedules, which change only the groups that exist then.  -1: ENULL; EINDEX: no
 *     such group; EVALUE: an optimizer of one group; ENOMEM.
 * optim_is_vector - has the parameter fewer than two dimensions, as biases and norm weights have? */
TAPEGRAD_API int optim_split_group(Optimizer *opt, int group,
                                   bool (*pick)(const Tensor *parameter, void *ctx), void *ctx);
TAPEGRAD_API bool optim_is_vector(const Tensor *parameter, void *ctx);

/* optim_set_master_weights - steps f16 and bf16 parameters in f32 from now on: the optimizer keeps an f32
 *     copy of each (the state "master_param") and f32 states, steps the copy, and rounds it into the
 *     parameter.  If the parameter was written elsewhere, so that it is not the rounded copy, the next step
 *     takes the new value.  false drops the copies.  EVALUE: an optimizer that needs a closure. */
TAPEGRAD_API int optim_set_master_weights(Optimizer *opt, bool on);

/* optim_lr - the first group's learning rate; NaN for NULL.
 * optim_set_lr - sets the rate of all groups.  EVALUE: negative or NaN. */
TAPEGRAD_API double optim_lr(const Optimizer *opt);
TAPEGRAD_API int optim_set_lr(Optimizer *opt, double lr);

/* ---- use ------------------------------------------------------------------------------------- */

typedef struct OptimZeroGradArgs {
    Optimizer *optimizer;
    bool set_to_none;
    TensorFromDefaults from_defaults;
} OptimZeroGradArgs;
#define OPTIM_ZERO_GRAD_DEFAULTS .set_to_none = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimZeroGradArgs optim_zero_grad_defaults;

/* optim_zero_grad(opt) - drops the gradients; with .set_to_none = false fills them with zeros. */
#define optim_zero_grad(...) \
    TENSOR_CALL_(optim_zero_grad_args, OptimZeroGradArgs, OPTIM_ZERO_GRAD_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API int optim_zero_grad_args(OptimZeroGradArgs args);

/* optim_step - one step of every parameter that has a gradient.  While an error is recorded (tensor_error())
 * it does nothing and returns -1, so a failed forward or backward changes no parameter.  A step that fails
 * leaves parameters and states as they were.  EVALUE: an optimizer that needs a closure. */
TAPEGRAD_API int optim_step(Optimizer *opt);

/* optim_step_closure - a step that may evaluate the loss several times: fn(ctx) zeroes the gradients,
 * computes the loss, runs backward and returns the loss.  Optimizers other than LBFGS call fn once, then
 * step.  Returns the first loss; NaN after an error, with parameters and states as they were. */
typedef Tensor *(*OptimClosure)(void *ctx);
TAPEGRAD_API double optim_step_closure(Optimizer *opt, OptimClosure fn, void *ctx);

/* optim_free - releases parameters and state.  A later use of opt is not detected. */
TAPEGRAD_API void optim_free(Optimizer *opt);

/* optim_state_dict - the state needed to resume, under PyTorch's names: "state.0.exp_avg" of parameter 0
 *     (counted over all groups), "state.0.step", "param_groups.0.lr"; numbers as f64 of rank 0, PyTorch's
 *     tuples, such as "param_groups.0.betas", as rank 1; "param_groups.0.initial_lr" once a schedule was
 *     made.  The tensors share memory with the optimizer, which owns the dict until the next call.
 *     PyTorch's optimizer.state_dict(), flattened to these names, loads: options about its implementation
 *     (foreach, fused, capturable, ...) are ignored; "step" of SGD and Muon, options that are strings in
 *     PyTorch, and options that it lacks may be missing.
 * optim_load_state_dict - copies the values of such a dict, cast to the parameters' dtypes.  EVALUE: names
 *     are missing or unexpected (another optimizer, other groups), or a "step" is no count; ESHAPE.  The
 *     error lists all names that do not fit.  All or nothing. */
TAPEGRAD_API TensorDict optim_state_dict(Optimizer *opt);
TAPEGRAD_API int optim_load_state_dict(Optimizer *opt, TensorDict dict);

/* ---- your own optimizers --------------------------------------------------------------------------
 * An optimizer is one constant OptimKind, an options struct that begins with `TensorList params`, and a step
 * function.  Options left out of a call are 0, unless your macro fills in the defaults as TENSOR_CALL_ does.
 *
 *     typedef struct { TensorList params; double lr; } SignArgs;
 *
 *     static int sign_step(const void *options, OptimParam *p, Tensor *grad)       // p -= lr sign g
 *     {
 *         const SignArgs *o = options;
 *         return tensor_add_scaled_(p->tensor, tensor_sign(grad), -o->lr) ? 0 : -1;
 *     }
 *
 *     static const OpField fields[] = { OP_OPTION(SignArgs, lr), { 0 } };
 *     static const SignArgs defaults = { .lr = 0.01 };
 *     static const OptimKind sign = { .name = "Sign", .function = "sign", .args = sizeof(SignArgs),
 *                                     .defaults = &defaults, .fields = fields, .step = sign_step };
 *     ...
 *     Optimizer *opt = optim_new(&sign, &(SignArgs){ nn_parameters(net), .lr = 0.1 }); */
enum {
    OPTIM_STATES = 4,   /* most tensors, and most numbers, kept for a parameter */
    OPTIM_OPTIONS = 512 /* most bytes of an options struct */
};

typedef struct OptimParam {
    Tensor *tensor;
    Tensor *state[OPTIM_STATES]; /* in the order of OptimKind.state; NULL until first needed, then zeros */
    double number[OPTIM_STATES]; /* in the order of OptimKind.number; 0 at first */
    int64_t step;                /* steps of this parameter, this one included */
    bool fresh;                  /* its states are new: no step has used them */
    Tensor *master, *half;       /* private: f32 copy; within a step, where tensor is master: the parameter */
    uint32_t seen;               /* version of the tensor when last written ... */
    const void *where;           /* ... and its data */
    int unsure;                  /* of step, the most that may have been skipped (optim_step_unless) ... */
    Tensor *skipped, *next;      /* ... the number that was, on the device; its value after this step */
    Tensor *carried, *carries;   /* number on the device: f64 [OPTIM_STATES]; its value after this step */
} OptimParam;

/* A kind has one of step, step_all, step_closure and rule.  They run with grad mode off, write p->tensor and
 * p->state, and return 0 or -1; grad is dense, with the parameter's shape and dtype, on its device. */
typedef struct OptimKind {
    const char *name;                        /* "Adam", PyTorch's */
    const char *function;                    /* "optim_adam": what errors name */
    size_t args;                             /* of its options struct */
    const void *defaults;                    /* such a struct */
    const OpField *fields;                   /* its options (double, bool, int), ended by a NULL name */
    const char *state[OPTIM_STATES];         /* PyTorch's names: "exp_avg", "exp_avg_sq" */
    const char *number[OPTIM_STATES];        /* of numbers kept for a parameter: "mu_product" */
    unsigned (*states)(const void *options); /* which states are needed: bit s for state[s]; NULL: all */
    /* The shape of state s of a parameter: fills dim and returns the rank; -1: no such state.  NULL: all
     * states have the parameter's shape. */
    int (*shape)(const Tensor *parameter, int s, int64_t *dim);
    int (*check)(const void *options, const char *function);           /* options in range?  May be NULL. */
    int (*check_param)(const Tensor *parameter, const char *function); /* suitable?  May be NULL. */
    int (*step)(const void *options, OptimParam *p, Tensor *grad);     /* one parameter */
    int (*step_all)(const void *options, OptimParam *const *p, Tensor *const *grad,
                    int n); /* the parameters of a group */
    int (*step_closure)(Optimizer *opt, OptimClosure fn, void *ctx,
                        double *loss); /* all parameters; calls fn any number of times */
    bool uncounted;                    /* a loaded state may lack "step", as PyTorch's do */
    bool one_group;                    /* takes no further groups */
    const char *ours; /* an option that PyTorch lacks, or lacked: a loaded state may lack it */
    bool skips; /* step and step_all read p->step and p->fresh only through optim_of_step, and no p->number:
                   a flag on the device can then skip them (optim_step_unless) without a wait */
    /* Checks Optimizer.extra before it is loaded: complete, and nothing else?  NULL: not checked. */
    int (*check_extra)(const Optimizer *opt, TensorDict extra, const char *function);
    /* For the generated tests of an optimizer that PyTorch lacks: options of two groups, the second given as
     * changes to the first, "lr=0.1|; lr=0.1 beta=0.5|lr=0.01". */
    const char *samples;
    const struct OptimRule *(*rule)(const void *options); /* of built-in kinds: optim/rule.h */
    void (*numbers)(const void *options, const OptimParam *p, double *numbers);
    void (*after)(const void *options, OptimParam *p); /* sets p->number for the next step; may be NULL */
    /* numbers and after in one, for a number that only the device knows. */
    int (*carry)(const void *options, const OptimParam *p, Tensor **number, Tensor **numbers);
} OptimKind;

typedef struct OptimGroup {
    void *options; /* kind->args bytes; its params are empty */
    OptimParam *param;
    int count;
    double initial_lr;             /* lr when its first scheduler was made (lr_scheduler.h) ... */
    bool scheduled;                /* ... if it was */
    OptimParam *before, **stepped; /* private: lists for a step */
    Tensor **grad, **item, **numbers, **dense;
    int64_t *first;
    char *mark;
    struct OptimCaptured *captured;
} OptimGroup;

struct Optimizer {
    const OptimKind *kind;
    OptimGroup *group;
    int groups;
    TensorDict extra; /* what a kind keeps besides the parameters' states (nn_dict_set); saved with them */
    TensorDict state; /* of optim_state_dict */
    bool master_weights;
    Tensor *found; /* in optim_step_unless */
};

/* optim_new - an optimizer of that kind; kind must outlive it. */
TAPEGRAD_API Optimizer *optim_new(const OptimKind *kind, const void *args);

/* optim_of_step - fn(options, p), which reads p->step and p->fresh, as a tensor of one element on p->tensor's
 *     device, f64 if that is f64, else f32.  After optim_step_unless only the device may know the number of
 *     steps taken: fn is then called for each possible number, and the device selects.  ENULL, ENOMEM. */
TAPEGRAD_API Tensor *optim_of_step(const OptimParam *p,
                                   double (*fn)(const void *options, const OptimParam *p),
                                   const void *options);

/* optim_kind_at - the built-in kinds, 0 to optim_kind_count() - 1, in no particular order; in a program
 * linked with the static library, only those that it uses. */
TAPEGRAD_API int optim_kind_count(void);
TAPEGRAD_API const OptimKind *optim_kind_at(int i);

#ifdef __cplusplus
}
#endif
#endif
