/* fused.h - optimizer steps over lists that the caller keeps: torch._fused_adamw_ and others.
 *
 *     TENSOR_NO_GRAD
 *     {
 *         const TensorFusedLists lists = TENSOR_FUSED_LISTS(params, grads, ++step, exp_avgs, exp_avg_sqs);
 *         tensor_fused_adamw_(lists, .lr = 3e-4, .weight_decay = 0.1);
 *     }
 *
 * For a training loop without an Optimizer: one pass over all dense tensors on the CPU, one launch over those
 * on a device, with the bits of optim_step.  Equations, options and defaults are those of optim.h.  Nothing
 * is recorded; gradients are only read. */
#ifndef TAPEGRAD_FUSED_H
#define TAPEGRAD_FUSED_H

#include <tapegrad/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The state lists stand in the order given below; all begin as zeros.  Leave out those that the options do
 * not need. */
typedef struct TensorFusedLists {
    TensorList params, grads;
    int64_t step; /* this step's number, the same for all: 1 at first */
    TensorList state1, state2, state3;
} TensorFusedLists;

/* TENSOR_FUSED_LISTS(params, grads, step, state1, state2) */
#define TENSOR_FUSED_LISTS(...) ((TensorFusedLists){ .params = __VA_ARGS__ })

/* State lists of each:
 * tensor_fused_sgd_(lists, .lr = 0.1) - momentum: momentum_buffers.
 * tensor_fused_adam_, _adamw_ - exp_avgs, exp_avg_sqs; amsgrad: max_exp_avg_sqs.
 * tensor_fused_radam_ - exp_avgs, exp_avg_sqs.
 * tensor_fused_adamax_ - exp_avgs, exp_infs.
 * tensor_fused_adagrad_ - sums.
 * tensor_fused_adadelta_ - square_avgs, acc_deltas.
 * tensor_fused_rmsprop_ - square_avgs; momentum: momentum_buffers; .centered: grad_avgs.
 * tensor_fused_rprop_ - prevs, step_sizes.
 * tensor_fused_lion_ - exp_avgs.
 *
 * The macros need at least one option.  0; or -1, with nothing changed.  ENULL: a NULL.  EVALUE: options out
 * of range, a step below 1, lists of different lengths, too many or too few lists, tensors that share memory.
 * ESHAPE, EDEVICE, EDTYPE: a gradient or a state differs from its parameter, or is not floating.  EGRAD: a
 * parameter requires a gradient, and grad mode is on.  ENOMEM.  The other optimizers have no such function:
 * NAdam and ASGD keep numbers for each parameter, the rest need more than one pass. */
TAPEGRAD_API int tensor_fused_sgd_args_(TensorFusedLists lists, OptimSgdArgs args);
TAPEGRAD_API int tensor_fused_adam_args_(TensorFusedLists lists, OptimAdamArgs args);
TAPEGRAD_API int tensor_fused_adamw_args_(TensorFusedLists lists, OptimAdamArgs args);
TAPEGRAD_API int tensor_fused_radam_args_(TensorFusedLists lists, OptimRadamArgs args);
TAPEGRAD_API int tensor_fused_adamax_args_(TensorFusedLists lists, OptimAdamaxArgs args);
TAPEGRAD_API int tensor_fused_adagrad_args_(TensorFusedLists lists, OptimAdagradArgs args);
TAPEGRAD_API int tensor_fused_adadelta_args_(TensorFusedLists lists, OptimAdadeltaArgs args);
TAPEGRAD_API int tensor_fused_rmsprop_args_(TensorFusedLists lists, OptimRmspropArgs args);
TAPEGRAD_API int tensor_fused_rprop_args_(TensorFusedLists lists, OptimRpropArgs args);
TAPEGRAD_API int tensor_fused_lion_args_(TensorFusedLists lists, OptimLionArgs args);
#define tensor_fused_sgd_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_sgd_args_, OptimSgdArgs, OPTIM_SGD_DEFAULTS, lists, __VA_ARGS__)
#define tensor_fused_adam_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_adam_args_, OptimAdamArgs, OPTIM_ADAM_DEFAULTS, lists, __VA_ARGS__)
#define tensor_fused_adamw_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_adamw_args_, OptimAdamArgs, OPTIM_ADAMW_DEFAULTS, lists, __VA_ARGS__)
#define tensor_fused_radam_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_radam_args_, OptimRadamArgs, OPTIM_RADAM_DEFAULTS, lists, __VA_ARGS__)
#define tensor_fused_adamax_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_adamax_args_, OptimAdamaxArgs, OPTIM_ADAMAX_DEFAULTS, lists, __VA_ARGS__)
#define tensor_fused_adagrad_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_adagrad_args_, OptimAdagradArgs, OPTIM_ADAGRAD_DEFAULTS, lists, __VA_ARGS__)
#define tensor_fused_adadelta_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_adadelta_args_, OptimAdadeltaArgs, OPTIM_ADADELTA_DEFAULTS, lists, __VA_ARGS__)
#define tensor_fused_rmsprop_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_rmsprop_args_, OptimRmspropArgs, OPTIM_RMSPROP_DEFAULTS, lists, __VA_ARGS__)
#define tensor_fused_rprop_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_rprop_args_, OptimRpropArgs, OPTIM_RPROP_DEFAULTS, lists, __VA_ARGS__)
#define tensor_fused_lion_(lists, ...) \
    TENSOR_FUSED_(tensor_fused_lion_args_, OptimLionArgs, OPTIM_LION_DEFAULTS, lists, __VA_ARGS__)
#define TENSOR_FUSED_(function, struct_, defaults, lists, ...)                       \
    __extension__({                                                                  \
        (void)sizeof(struct_){ __VA_ARGS__ };                                        \
        _Pragma("GCC diagnostic push")                                               \
            TENSOR_OVERRIDES_(function(lists, (struct_){ defaults, __VA_ARGS__ });); \
        _Pragma("GCC diagnostic pop")                                                \
    })

#ifdef __cplusplus
}
#endif
#endif
