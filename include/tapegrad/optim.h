/* optim.h - optimizers: they change parameters by their gradients.
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
 * Arguments in PyTorch's order, options by name, its defaults, its numbers.  Parameters come as a list:
 * nn_parameters(net), TENSORS(w, b), or TENSOR_LIST(array, n); the optimizer retains the tensors, so
 * that it may outlive the net. Several groups of parameters with options of their own: optim_add_group.
 *
 * A parameter whose gradient is NULL is skipped completely: no decay, no count.  A step first makes all it
 * needs and then changes the parameters; once each has been stepped it asks the system for no memory.
 *
 * Constructors give NULL: EVALUE for no parameters, one that is given twice, options out of range; EGRAD: one
 * is no leaf; ENULL, ENOMEM. */
#ifndef TAPEGRAD_OPTIM_H
#define TAPEGRAD_OPTIM_H

#include <math.h>
#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Optimizer Optimizer;

enum { OPTIM_STATES = 4 }; /* tensors kept for a parameter, at most */

typedef struct OptimParam {
    Tensor *tensor;
    Tensor *state[OPTIM_STATES]; /* as OptimKind.state names them; NULL until first needed, then zeros */
    int64_t step;                /* steps that it took part in, this one included */
    bool fresh;                  /* a state was made and no update has used it yet */
} OptimParam;

/* The options of a group.  Write them at any time; what an optimizer does not know it ignores. */
typedef struct OptimGroup {
    double lr, weight_decay;
    double momentum, dampening; /* SGD */
    double betas[2], eps;       /* Adam, AdamW */
    bool nesterov, amsgrad, maximize;
    OptimParam *param;
    int count;
} OptimGroup;

/* What an optimizer does: the built-in ones are such constants too.
 * update changes p->tensor; grad is dense, of its dtype, on its device.  It runs without grad mode. */
typedef struct OptimKind {
    const char *name;                                        /* "Adam" */
    const char *state[OPTIM_STATES];                         /* PyTorch's names: "exp_avg", "exp_avg_sq" */
    int (*states)(const OptimGroup *group);                  /* how many of them this group needs */
    int (*check)(const OptimGroup *group, const char *name); /* are the options in range?  May be NULL. */
    int (*update)(const OptimGroup *group, OptimParam *p, Tensor *grad);
} OptimKind;

struct Optimizer {
    const OptimKind *kind;
    OptimGroup *group;
    int groups;
};

/* ---- the optimizers -----------------------------------------------------------------------------
 * With g the gradient, -g when .maximize; all of a step t in the dtype of the parameter. */

typedef struct OptimSgdArgs {
    TensorList params;
    double lr, momentum, dampening, weight_decay; /* 1e-3, 0, 0, 0 */
    bool nesterov, maximize;
} OptimSgdArgs;

/* optim_sgd(params, 0.1, .momentum = 0.9)
 *   g += weight_decay p;   momentum: b = momentum b + (1 - dampening) g (b = g at first), g = b, nesterov: g
 * += momentum b; p -= lr g EVALUE: nesterov without momentum, or with dampening. */
#define optim_sgd(...) optim_sgd_args((OptimSgdArgs){ .lr = 1e-3, .params = __VA_ARGS__ })
TAPEGRAD_API Optimizer *optim_sgd_args(OptimSgdArgs args);

typedef struct OptimAdamArgs {
    TensorList params;
    double lr, betas[2], eps, weight_decay; /* 1e-3, { 0.9, 0.999 }, 1e-8, adam 0, adamw 1e-2 */
    bool amsgrad, maximize;
} OptimAdamArgs;

/* optim_adam(params, .lr = 1e-3, .betas = { 0.9, 0.95 })
 *   g += weight_decay p   (adamw instead: p *= 1 - lr weight_decay)
 *   m += (1 - beta1) (g - m);   v = beta2 v + (1 - beta2) g^2;   amsgrad: v in the last line is the largest
 * so far p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps) */
#define optim_adam(...) \
    optim_adam_args(    \
        (OptimAdamArgs){ .lr = 1e-3, .betas = { 0.9, 0.999 }, .eps = 1e-8, .params = __VA_ARGS__ })
#define optim_adamw(...)              \
    optim_adamw_args((OptimAdamArgs){ \
        .lr = 1e-3, .betas = { 0.9, 0.999 }, .eps = 1e-8, .weight_decay = 1e-2, .params = __VA_ARGS__ })
TAPEGRAD_API Optimizer *optim_adam_args(OptimAdamArgs args);
TAPEGRAD_API Optimizer *optim_adamw_args(OptimAdamArgs args);

/* optim_new - one of a kind of your own; kind must outlive it.  options gives the first group's; its param
 * and count are not read. */
TAPEGRAD_API Optimizer *optim_new(const OptimKind *kind, TensorList params, OptimGroup options);

/* ---- groups ---------------------------------------------------------------------------------- */

typedef struct OptimGroupArgs {
    Optimizer *optimizer;
    TensorList params;
    double lr, weight_decay, momentum, dampening, betas[2], eps;
    int nesterov, amsgrad, maximize;
} OptimGroupArgs;

/* optim_add_group(opt, params, .weight_decay = 0) - more parameters; options left out are those of the first
 * group now. -1 and no change on the errors of the constructors. */
#define optim_add_group(...)                                      \
    optim_add_group_args((OptimGroupArgs){ .lr = NAN,             \
                                           .weight_decay = NAN,   \
                                           .momentum = NAN,       \
                                           .dampening = NAN,      \
                                           .betas = { NAN, NAN }, \
                                           .eps = NAN,            \
                                           .nesterov = -1,        \
                                           .amsgrad = -1,         \
                                           .maximize = -1,        \
                                           .optimizer = __VA_ARGS__ })
TAPEGRAD_API int optim_add_group_args(OptimGroupArgs args);

/* optim_lr - of the first group; NaN for NULL.   optim_set_lr - of all groups; EVALUE: negative or NaN.  One
 * group: opt->group[i].lr. */
TAPEGRAD_API double optim_lr(const Optimizer *opt);
TAPEGRAD_API int optim_set_lr(Optimizer *opt, double lr);

/* ---- use ------------------------------------------------------------------------------------- */

typedef struct OptimZeroGradArgs {
    Optimizer *optimizer;
    bool set_to_none;
} OptimZeroGradArgs;

/* optim_zero_grad(opt) - drops the gradients; with .set_to_none = false fills them with zeros. */
#define optim_zero_grad(...) \
    optim_zero_grad_args((OptimZeroGradArgs){ .set_to_none = true, .optimizer = __VA_ARGS__ })
TAPEGRAD_API int optim_zero_grad_args(OptimZeroGradArgs args);

/* optim_step - one step of every parameter that has a gradient.  While an error is pending (tensor_error())
 * it does nothing and returns -1: no parameter is changed by what is left of a step that failed. */
TAPEGRAD_API int optim_step(Optimizer *opt);

TAPEGRAD_API void optim_free(Optimizer *opt);

#ifdef __cplusplus
}
#endif
#endif
