/* nn/parametrize.h - parameters computed from others: weight norm, spectral norm, your own.  Included by
 * nn.h.
 *
 *     Module *net = nn_sequential(nn_weight_norm(nn_linear(20, 40)), nn_relu(),
 *                                 nn_spectral_norm(nn_linear(40, 1)));
 *
 * A parametrized weight is no longer a parameter.  In its place stand the parameters it is computed from,
 * under PyTorch's names (torch.nn.utils.parametrizations): parametrizations.weight.original, or original0,
 * original1, ...; the module parametrizations.weight.0 computes it.  Each forward, and each nn_get(m,
 * "weight"), computes it again.  A pointer in your struct still points to the old tensor: let your forward
 * call nn_get. */
#ifndef TAPEGRAD_NN_PARAMETRIZE_H
#define TAPEGRAD_NN_PARAMETRIZE_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NNWeightNormArgs {
    Module *module;
    const char *name;
    int dim; /* -1: one norm for the whole of v */
    TensorFromDefaults from_defaults;
} NNWeightNormArgs;
#define NN_WEIGHT_NORM_DEFAULTS .name = "weight", TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNWeightNormArgs nn_weight_norm_defaults;

/* nn_weight_norm(m, .name = "weight", .dim = 0) - weight = g v / |v|, with a norm for each index of dim.
 * original0 is g, original1 is v (weight_g, weight_v in older files); the weight keeps its value.  Takes over
 * m and returns it; on failure frees m and returns NULL.  EINDEX: no such parameter. */
#define nn_weight_norm(...) \
    TENSOR_CALL_(nn_weight_norm_args, NNWeightNormArgs, NN_WEIGHT_NORM_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API Module *nn_weight_norm_args(NNWeightNormArgs args);

typedef struct NNSpectralNormArgs {
    Module *module;
    const char *name;
    int n_power_iterations;
    double eps;
    int dim; /* the rows of the matrix; -1: 1 of transposed convolutions, else 0 */
    TensorFromDefaults from_defaults;
} NNSpectralNormArgs;
#define NN_SPECTRAL_NORM_DEFAULTS \
    .name = "weight", .n_power_iterations = 1, .eps = 1e-12, .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNSpectralNormArgs nn_spectral_norm_defaults;

/* nn_spectral_norm(m) - weight = original / s, s the largest singular value of W, original as a matrix whose
 * rows are dim.  s = u^T W v by the power method; each computation in training does n_power_iterations more
 * steps.  Buffers parametrizations.weight.0._u and _v: N(0, 1), then 15 steps.  Ownership and errors as
 * nn_weight_norm.
 * State dicts of PyTorch's older spectral_norm load with .names = NN_NAMES(
 *     NN_RENAME("weight_orig", "parametrizations.weight.original"),
 *     NN_RENAME("weight_u", "parametrizations.weight.0._u"),
 *     NN_RENAME("weight_v", "parametrizations.weight.0._v")). */
#define nn_spectral_norm(...) \
    TENSOR_CALL_(nn_spectral_norm_args, NNSpectralNormArgs, NN_SPECTRAL_NORM_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API Module *nn_spectral_norm_args(NNSpectralNormArgs args);

/* nn_register_parametrization(m, "weight", nn_softplus()) - the parameter becomes the module's forward of the
 *     original value; a second registration applies to the first one's result.  Takes over the module.  0 or
 *     -1.  EINDEX: no such parameter; ESHAPE: the result has another shape.
 * nn_remove_parametrizations - makes it a parameter again, with its current value.
 * nn_is_parametrized - is it computed?  name NULL: is any parameter? */
TAPEGRAD_API int nn_register_parametrization(Module *module, const char *name, Module *parametrization);
TAPEGRAD_API int nn_remove_parametrizations(Module *module, const char *name);
TAPEGRAD_API bool nn_is_parametrized(const Module *module, const char *name);

#ifdef __cplusplus
}
#endif
#endif
