/* swa_utils.h - averages of weights during training: torch.optim.swa_utils, and EMA.
 *
 *     AveragedModel *ema = optim_averaged_model(net, .ema_decay = 0.999);
 *     for (...) {
 *         ...
 *         optim_step(opt);
 *         optim_averaged_update(ema);
 *     }
 *     optim_averaged_swap(ema);                // net has the averages now
 *     optim_update_bn(loader, net);            // where it has batch norms
 *     ... evaluate or save net ...
 *     optim_averaged_swap(ema);                // and its own weights again
 *     optim_averaged_free(ema);
 *
 * PyTorch copies the module; an AveragedModel copies only the parameters and the buffers of the state dict,
 * and swaps them in and out of the one net. */
#ifndef TAPEGRAD_SWA_UTILS_H
#define TAPEGRAD_SWA_UTILS_H

#include <math.h>
#include <tapegrad/data.h>
#include <tapegrad/lr_scheduler.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct AveragedModel AveragedModel;

/* Updates averaged, the averages over num_averaged models, with the values current.  0, or -1 and an
 * error. */
typedef int (*OptimAverageFn)(TensorList averaged, TensorList current, int64_t num_averaged, void *ctx);

typedef struct OptimAveragedModelArgs {
    Module *module;
    double ema_decay;            /* NaN: equal weights (SWA) */
    bool use_buffers;            /* average buffers too; else copy them */
    OptimAverageFn multi_avg_fn; /* instead of ema_decay and SWA */
    void *ctx;
    TensorFromDefaults from_defaults;
} OptimAveragedModelArgs;
#define OPTIM_AVERAGED_MODEL_DEFAULTS .ema_decay = (double)NAN, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimAveragedModelArgs optim_averaged_model_defaults;

/* optim_averaged_model(net), optim_averaged_model(net, .ema_decay = 0.999) - copies the current values of
 *     net, and retains its tensors.  NULL: ENULL; EVALUE: a decay outside [0, 1], or a decay and a function;
 *     ENOMEM.
 * optim_averaged_update - PyTorch's update_parameters: the first call copies, the n-th sets
 *     a += (w - a) / n, or a = decay a + (1 - decay) w; one pass over all.  Integers are truncated.
 *     EVALUE: the net holds the averages.  All or nothing.
 * optim_averaged_swap - exchanges the averages and the net's own values; copies no data.
 * optim_averaged_is_swapped - does the net hold the averages?
 * optim_averaged_count - PyTorch's n_averaged; -1 for NULL.
 * optim_averaged_module - the net; NULL for NULL. */
#define optim_averaged_model(...)                                                                  \
    TENSOR_CALL_(optim_averaged_model_args, OptimAveragedModelArgs, OPTIM_AVERAGED_MODEL_DEFAULTS, \
                 .module = __VA_ARGS__)
TAPEGRAD_API AveragedModel *optim_averaged_model_args(OptimAveragedModelArgs args);
TAPEGRAD_API int optim_averaged_update(AveragedModel *model);
TAPEGRAD_API int optim_averaged_swap(AveragedModel *model);
TAPEGRAD_API bool optim_averaged_is_swapped(const AveragedModel *model);
TAPEGRAD_API int64_t optim_averaged_count(const AveragedModel *model);
TAPEGRAD_API Module *optim_averaged_module(const AveragedModel *model);
TAPEGRAD_API void optim_averaged_free(AveragedModel *model);

/* optim_averaged_state_dict - "n_averaged" and the averages as "module.0.weight"; they share memory with the
 * model, which owns the dict until the next call.
 * optim_averaged_load_state_dict - copies the values of such a dict.  EVALUE: names are missing or
 *     unexpected; ESHAPE.  All or nothing. */
TAPEGRAD_API TensorDict optim_averaged_state_dict(AveragedModel *model);
TAPEGRAD_API int optim_averaged_load_state_dict(AveragedModel *model, TensorDict dict);

/* optim_update_bn - sets the running statistics of the net's batch norms to their mean over the batches of
 * one epoch: each Batch.x goes through the net in training mode, without gradients.  EVALUE: no batches. All
 * or nothing. */
TAPEGRAD_API int optim_update_bn(DataLoader *loader, Module *module);

typedef struct OptimSwaLrArgs {
    Optimizer *optimizer;
    double swa_lr;
    int anneal_epochs;
    TensorByName by_name;
    SchedulerAnneal anneal_strategy;
    int64_t last_epoch;
    OptimPerGroup swa_lrs; /* instead of swa_lr */
    TensorFromDefaults from_defaults;
} OptimSwaLrArgs;
#define OPTIM_SWA_LR_DEFAULTS \
    .swa_lr = (double)NAN, .anneal_epochs = 10, .last_epoch = -1, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimSwaLrArgs optim_swa_lr_defaults;

/* optim_swa_lr(opt, 0.05) - PyTorch's SWALR: moves each group's rate from its value to swa_lr in
 * anneal_epochs steps, along half a cosine or a line, then keeps it. */
#define optim_swa_lr(...) \
    TENSOR_CALL_(optim_swa_lr_args, OptimSwaLrArgs, OPTIM_SWA_LR_DEFAULTS, .optimizer = __VA_ARGS__)
TAPEGRAD_API Scheduler *optim_swa_lr_args(OptimSwaLrArgs args);

#ifdef __cplusplus
}
#endif
#endif
