/* nn/parametrize.h - parameters that are computed from others: weight norm, spectral norm, and one's own.
 * Included by nn.h.
 *
 *     Module *net = nn_sequential(nn_weight_norm(nn_linear(20, 40)), nn_relu(),
 *                                 nn_spectral_norm(nn_linear(40, 1)));
 *
 * The parameter is no parameter any longer: what it is computed from is one, in its place, under PyTorch's
 * names (torch.nn.utils.parametrizations): parametrizations.weight.original, or original0, original1, ...;
 * what computes it is the module parametrizations.weight.0.  Each forward, and each nn_get(m, "weight"),
 * computes it anew.  What a struct of yours holds is the tensor that it was: let your forward ask nn_get. */
#ifndef TAPEGRAD_NN_PARAMETRIZE_H
#define TAPEGRAD_NN_PARAMETRIZE_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NNWeightNormArgs {
    Module *module;
    const char *name;
    int dim; /* -1: one norm of all */
    TensorFromDefaults from_defaults;
} NNWeightNormArgs;
#define NN_WEIGHT_NORM_DEFAULTS .name = "weight", TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNWeightNormArgs nn_weight_norm_defaults;

/* nn_weight_norm(m, .name = "weight", .dim = 0) - weight = g v / |v|, a norm for each index of dim.
 * original0 is g, original1 is v (of older files: weight_g, weight_v); they start so that the weight is what
 * it was.  Returns m, which it takes over as nn_sequential does: NULL, and m freed, when it failed.  EINDEX:
 * no such parameter. */
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

/* nn_spectral_norm(m) - weight = original / s, s the largest singular value of original as a matrix of rows
 * dim: u^T W v by the power method, of which each computation in training does n_power_iterations more steps.
 * Buffers parametrizations.weight.0._u and _v, drawn from N(0, 1), then 15 steps.  As nn_weight_norm.
 * State dicts of PyTorch's older one load with .names = NN_NAMES(
 *     NN_RENAME("weight_orig", "parametrizations.weight.original"),
 *     NN_RENAME("weight_u", "parametrizations.weight.0._u"),
 *     NN_RENAME("weight_v", "parametrizations.weight.0._v")). */
#define nn_spectral_norm(...) \
    TENSOR_CALL_(nn_spectral_norm_args, NNSpectralNormArgs, NN_SPECTRAL_NORM_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API Module *nn_spectral_norm_args(NNSpectralNormArgs args);

/* nn_register_parametrization(m, "weight", nn_softplus()) - the parameter is the forward of a module of its
 *     original value; registered again, of what the one before gave.  It takes the module over.  0 or -1;
 *     EINDEX: no such parameter; ESHAPE: a result of another shape.
 * nn_remove_parametrizations - it is a parameter again, with the value that it has.
 * nn_is_parametrized - is it computed?  name NULL: is any? */
TAPEGRAD_API int nn_register_parametrization(Module *module, const char *name, Module *parametrization);
TAPEGRAD_API int nn_remove_parametrizations(Module *module, const char *name);
TAPEGRAD_API bool nn_is_parametrized(const Module *module, const char *name);

#ifdef __cplusplus
}
#endif
#endif
