/* grad_scaler.h - scales the loss so that f16 gradients do not underflow: torch.amp.GradScaler.
 *
 *     GradScaler *scaler = optim_grad_scaler();
 *     ...
 *     optim_zero_grad(opt);
 *     tensor_backward(optim_scaler_scale(scaler, loss));
 *     optim_scaler_unscale_(scaler, opt);                        // where gradients are clipped
 *     nn_clip_grad_norm_(nn_parameters(net), 1.0);
 *     optim_scaler_step(scaler, opt);                            // instead of optim_step
 *     optim_scaler_update(scaler);
 *     ...
 *     optim_scaler_free(scaler);
 *
 * The loss is multiplied by a scale, and the gradients are divided by it.  A step whose gradients hold an
 * infinity or a NaN is skipped, and the scale is multiplied by backoff_factor; after growth_interval finite
 * steps in a row it is multiplied by growth_factor.  Scale, tracker and found_inf are tensors on the loss's
 * device, and all of this is computed there.  bf16 needs no scale. */
#ifndef TAPEGRAD_GRAD_SCALER_H
#define TAPEGRAD_GRAD_SCALER_H

#include <tapegrad/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct GradScaler GradScaler;

typedef struct OptimGradScalerArgs {
    double init_scale, growth_factor, backoff_factor;
    int growth_interval;
    bool enabled; /* false: nothing is scaled; optim_scaler_step is optim_step */
    TensorFromDefaults from_defaults;
} OptimGradScalerArgs;
#define OPTIM_GRAD_SCALER_DEFAULTS                                                           \
    .init_scale = 65536, .growth_factor = 2, .backoff_factor = 0.5, .growth_interval = 2000, \
    .enabled = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const OptimGradScalerArgs optim_grad_scaler_defaults;

/* optim_grad_scaler(.growth_interval = 100) - NULL: EVALUE unless growth_factor > 1, 0 < backoff_factor < 1,
 * growth_interval >= 1 and init_scale > 0; ENOMEM. */
#define optim_grad_scaler(...) \
    TENSOR_CALL_(optim_grad_scaler_args, OptimGradScalerArgs, OPTIM_GRAD_SCALER_DEFAULTS, __VA_ARGS__)
TAPEGRAD_API GradScaler *optim_grad_scaler_args(OptimGradScalerArgs args);
TAPEGRAD_API void optim_scaler_free(GradScaler *scaler);

/* optim_scaler_scale - loss * scale, recorded on the tape. */
TAPEGRAD_API Tensor *optim_scaler_scale(GradScaler *scaler, Tensor *loss);

/* optim_scaler_unscale_ - divides the gradients of opt by the scale and records whether one is not finite.
 *     Needed only where code reads gradients before the step, which otherwise does it; at most once before
 *     each update.  EVALUE: called twice; no parameter has a gradient.  EDTYPE: f16 gradients, which would
 *     underflow: keep parameters in f32.
 * optim_scaler_step - optim_step, unless a gradient was not finite.  EVALUE: a second time before an update.
 * optim_scaler_update - sets the next scale, after all optimizers have stepped.  EVALUE: none was unscaled.
 * optim_step_unless - optim_step if found_inf, a tensor of one element, is 0; what optim_scaler_step calls.
 *     The host does not read found_inf from a device: the kernels leave parameters and states unchanged where
 *     it is not 0, and the host reads the number of steps taken once in 39 steps, before a save of the state,
 *     and before an optim_step.  It does wait if a parameter is on another device, and for your own optimizer
 *     unless its kind sets .skips. */
TAPEGRAD_API int optim_scaler_unscale_(GradScaler *scaler, Optimizer *opt);
TAPEGRAD_API int optim_scaler_step(GradScaler *scaler, Optimizer *opt);
TAPEGRAD_API int optim_scaler_update(GradScaler *scaler);
TAPEGRAD_API int optim_step_unless(Optimizer *opt, const Tensor *found_inf);

/* optim_scaler_get_scale - the scale's value, 1 if disabled.  Waits for the device.
 * optim_scaler_set_scale - PyTorch's update(new_scale).  EVALUE unless above 0. */
TAPEGRAD_API double optim_scaler_get_scale(const GradScaler *scaler);
TAPEGRAD_API int optim_scaler_set_scale(GradScaler *scaler, double scale);

/* optim_scaler_state_dict - "scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"
 *     as f64 of rank 0; empty if disabled.  Owned by the scaler, valid until the next call.
 * optim_scaler_load_state_dict - EVALUE: names are missing or unexpected, values out of range.  All or
 *     nothing; does nothing if disabled. */
TAPEGRAD_API TensorDict optim_scaler_state_dict(GradScaler *scaler);
TAPEGRAD_API int optim_scaler_load_state_dict(GradScaler *scaler, TensorDict dict);

#ifdef __cplusplus
}
#endif
#endif
