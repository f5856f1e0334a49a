/* fused.h - the steps of optimizers over lists that the caller keeps: torch._fused_adamw_ and its kin.
 *
 *     TENSOR_NO_GRAD
 *     {
 *         const TensorFusedLists lists = TENSOR_FUSED_LISTS(params, grads, ++step, exp_avgs, exp_avg_sqs);
 *         tensor_fused_adamw_(lists, .lr = 3e-4, .weight_decay = 0.1);
 *     }
 *
 * For a training loop that has no Optimizer: one pass over all that lies dense on the CPU, one launch over
 * what lies so on a device, the same bits as optim_step gives.  Equations, options and defaults are those of
 * optim.h.  Nothing is recorded, gradients are read and stay. */
#ifndef TAPEGRAD_FUSED_H
#define TAPEGRAD_FUSED_H

#include <tapegrad/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/* State lists in the order of the optimizer's states, as below; all begin as zeros.  Those that the options
 * do not want are left out. */
typedef struct TensorFusedLists {
    TensorList params, grads;
    int64_t step; /* of all of them, this one included: 1 at first */
    TensorList state1, state2, state3;
} TensorFusedLists;

/* TENSOR_FUSED_LISTS(params, grads, step, state1, state2) */
#define TENSOR_FUSED_LISTS(...) ((TensorFusedLists){ .params = __VA_ARGS__ })

/* tensor_fused_sgd_(lists, .lr = 0.1) - momentum_buffers, with a momentum.
 * tensor_fused_adam_, _adamw_ - exp_avgs, exp_avg_sqs; amsgrad: max_exp_avg_sqs.
 * tensor_fused_radam_ - exp_avgs, exp_avg_sqs.
 * tensor_fused_adamax_ - exp_avgs, exp_infs.
 * tensor_fused_adagrad_ - sums.
 * tensor_fused_adadelta_ - square_avgs, acc_deltas.
 * tensor_fused_rmsprop_ - square_avgs; momentum: momentum_buffers; .centered: grad_avgs.
 * tensor_fused_rprop_ - prevs, step_sizes.
 * tensor_fused_lion_ - exp_avgs.
 *
 * An option at least is given.  0, or -1 and nothing is changed: ENULL for a NULL, EVALUE for options out of
 * range, a step below 1, lists of different lengths, too many or too few of them, tensors that share memory;
 * ESHAPE, EDEVICE, and EDTYPE: what belongs to a parameter differs from it, or is not floating; EGRAD: one
 * requires a gradient, and grad mode is on; ENOMEM.  Of NAdam and ASGD each parameter has numbers of its own,
 * the steps of the others are no single pass: they are optimizers alone. */
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
