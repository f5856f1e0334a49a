/* grad_scaler.h - gradients in f16 that do not vanish: torch.amp.GradScaler.
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
 * The loss is multiplied by a scale, the gradients are divided by it, and a step whose gradients hold an
 * infinity or a NaN is skipped.  The scale is then multiplied by backoff_factor; after growth_interval steps
 * in a row without one by growth_factor.  Scale, tracker and what was found are tensors on the device of the
 * loss, and all of this is computed there.  bf16 needs no scale. */
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
    bool enabled; /* false: the functions below scale nothing, and step as optim_step does */
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

/* optim_scaler_scale - loss times the scale, recorded. */
TAPEGRAD_API Tensor *optim_scaler_scale(GradScaler *scaler, Tensor *loss);

/* optim_scaler_unscale_ - divides the gradients of opt by the scale and notes whether one is not finite.  At
 *     most once before each update, and only where something reads gradients before the step: the step does
 *     it otherwise.  EVALUE: it was done already; no parameter has a gradient.  EDTYPE: gradients in f16,
 *     which would vanish: keep parameters in f32.
 * optim_scaler_step - optim_step, unless something was found.  EVALUE: a second time before an update.
 * optim_scaler_update - the next scale, once all optimizers have stepped.  EVALUE: none has been unscaled.
 * optim_step_unless - what that step is: optim_step where found_inf, a tensor of one element, is 0.  On a
 *     device its value stays there: parameters and states that it holds back keep their values, and how many
 *     steps were taken is asked for once in 64 steps, when the state is saved, and before an optim_step.
 *     It is waited for where a parameter lies elsewhere, and by an optimizer of one's own whose kind does not
 *     say .skips: its step reads how many there were. */
TAPEGRAD_API int optim_scaler_unscale_(GradScaler *scaler, Optimizer *opt);
TAPEGRAD_API int optim_scaler_step(GradScaler *scaler, Optimizer *opt);
TAPEGRAD_API int optim_scaler_update(GradScaler *scaler);
TAPEGRAD_API int optim_step_unless(Optimizer *opt, const Tensor *found_inf);

/* optim_scaler_get_scale - its value: waits for a device; 1 where scaling is off.
 * optim_scaler_set_scale - PyTorch's update(new_scale).  EVALUE unless above 0. */
TAPEGRAD_API double optim_scaler_get_scale(const GradScaler *scaler);
TAPEGRAD_API int optim_scaler_set_scale(GradScaler *scaler, double scale);

/* optim_scaler_state_dict - "scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"
 *     as f64 of rank 0; empty where scaling is off.  The scaler's, until the next call.
 * optim_scaler_load_state_dict - EVALUE: names are missing or unexpected, values out of range.  All or
 *     nothing; nothing at all where scaling is off. */
TAPEGRAD_API TensorDict optim_scaler_state_dict(GradScaler *scaler);
TAPEGRAD_API int optim_scaler_load_state_dict(GradScaler *scaler, TensorDict dict);

#ifdef __cplusplus
}
#endif
#endif
