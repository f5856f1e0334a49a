/* nn/init.h - initialization, gradient clipping, parameters as a vector.  Included by nn.h.
 *
 *     static void init(Module *m, void *ctx)
 *     {
 *         (void)ctx;
 *         if (strcmp(m->type, "Linear") == 0) nn_init_xavier_uniform_(nn_get(m, "weight"));
 *     }
 *     ...
 *     nn_apply(net, init, NULL);
 *
 * Each writes into x outside the graph, even if x is a parameter, and returns x; the values are PyTorch's. */
#ifndef TAPEGRAD_NN_INIT_H
#define TAPEGRAD_NN_INIT_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* nn_init_zeros_, nn_init_ones_, nn_init_constant_ - x_i = 0, 1, value.  EVALUE: value is out of an integer
 * dtype's range. */
TAPEGRAD_API Tensor *nn_init_zeros_(Tensor *x);
TAPEGRAD_API Tensor *nn_init_ones_(Tensor *x);
TAPEGRAD_API Tensor *nn_init_constant_(Tensor *x, double value);

typedef struct NNInitArgs {
    Tensor *tensor;
    double a, b; /* uniform: from, to; normal: mean, std */
    TensorFromDefaults from_defaults;
} NNInitArgs;
#define NN_INIT_DEFAULTS .a = 0, .b = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNInitArgs nn_init_defaults;

/* nn_init_uniform_(x, a, b) - x_i from U(a, b).  nn_init_normal_(x, mean, std) - x_i from N(mean, std). */
#define nn_init_uniform_(...) \
    TENSOR_CALL_(nn_init_uniform_args, NNInitArgs, NN_INIT_DEFAULTS, .tensor = __VA_ARGS__)
#define nn_init_normal_(...) \
    TENSOR_CALL_(nn_init_normal_args, NNInitArgs, NN_INIT_DEFAULTS, .tensor = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_init_uniform_args(NNInitArgs args);
TAPEGRAD_API Tensor *nn_init_normal_args(NNInitArgs args);

typedef struct NNTruncArgs {
    Tensor *tensor;
    double mean, std, a, b; /* restricted to [a, b] */
    TensorFromDefaults from_defaults;
} NNTruncArgs;
#define NN_INIT_TRUNC_NORMAL_DEFAULTS .std = 1, .a = -2, .b = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNTruncArgs nn_init_trunc_normal_defaults;
/* nn_init_trunc_normal_(x, .std = 0.02) - N(mean, std) restricted to [a, b], as tensor_trunc_normal_. */
#define nn_init_trunc_normal_(...) \
    TENSOR_CALL_(nn_init_trunc_normal_args, NNTruncArgs, NN_INIT_TRUNC_NORMAL_DEFAULTS, .tensor = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_init_trunc_normal_args(NNTruncArgs args);

/* For a weight [out, in, ...]: fan_in = in k, fan_out = out k, k the product of the other sizes.  ESHAPE:
 * rank below 2.
 *   xavier    U(-a, a), a = gain sqrt(6 / (fan_in + fan_out));
 *             N(0, std), std = gain sqrt(2 / (fan_in + fan_out))
 *   kaiming   U(-a, a), a = sqrt(3) gain / sqrt(fan);   N(0, std), std = gain / sqrt(fan)
 * fan is fan_in or, for NN_FAN_OUT, fan_out; gain = nn_calculate_gain(nonlinearity, a). */
typedef struct NNXavierArgs {
    Tensor *tensor;
    double gain;
    TensorFromDefaults from_defaults;
} NNXavierArgs;
#define NN_INIT_XAVIER_DEFAULTS .gain = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNXavierArgs nn_init_xavier_defaults;
#define nn_init_xavier_uniform_(...) \
    TENSOR_CALL_(nn_init_xavier_uniform_args, NNXavierArgs, NN_INIT_XAVIER_DEFAULTS, .tensor = __VA_ARGS__)
#define nn_init_xavier_normal_(...) \
    TENSOR_CALL_(nn_init_xavier_normal_args, NNXavierArgs, NN_INIT_XAVIER_DEFAULTS, .tensor = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_init_xavier_uniform_args(NNXavierArgs args);
TAPEGRAD_API Tensor *nn_init_xavier_normal_args(NNXavierArgs args);

typedef enum NNFan { NN_FAN_IN, NN_FAN_OUT } NNFan;

typedef enum NNGain {
    NN_GAIN_LINEAR, /* also of convolutions and sigmoid: 1 */
    NN_GAIN_TANH,
    NN_GAIN_RELU,
    NN_GAIN_LEAKY_RELU,
    NN_GAIN_SELU
} NNGain;

typedef struct NNKaimingArgs {
    Tensor *tensor;
    double a; /* slope of leaky_relu */
    TensorByName by_name;
    NNFan mode;
    NNGain nonlinearity;
    TensorFromDefaults from_defaults;
} NNKaimingArgs;
#define NN_INIT_KAIMING_DEFAULTS .nonlinearity = NN_GAIN_LEAKY_RELU, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNKaimingArgs nn_init_kaiming_defaults;
/* nn_init_kaiming_uniform_, nn_init_kaiming_normal_ - kaiming, as above. */
#define nn_init_kaiming_uniform_(...) \
    TENSOR_CALL_(nn_init_kaiming_uniform_args, NNKaimingArgs, NN_INIT_KAIMING_DEFAULTS, .tensor = __VA_ARGS__)
#define nn_init_kaiming_normal_(...) \
    TENSOR_CALL_(nn_init_kaiming_normal_args, NNKaimingArgs, NN_INIT_KAIMING_DEFAULTS, .tensor = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_init_kaiming_uniform_args(NNKaimingArgs args);
TAPEGRAD_API Tensor *nn_init_kaiming_normal_args(NNKaimingArgs args);

/* nn_init_orthogonal_ - gain times a matrix with orthonormal rows or columns, whichever are fewer; x is seen
 * as [out, other sizes]. */
#define nn_init_orthogonal_(...) \
    TENSOR_CALL_(nn_init_orthogonal_args, NNXavierArgs, NN_INIT_XAVIER_DEFAULTS, .tensor = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_init_orthogonal_args(NNXavierArgs args);

/* nn_init_eye_ - x [rows, columns]: 1 on the diagonal, 0 elsewhere; makes a linear layer the identity.
 * ESHAPE: another rank. */
TAPEGRAD_API Tensor *nn_init_eye_(Tensor *x);

typedef struct NNDiracArgs {
    Tensor *tensor;
    int64_t groups;
    TensorFromDefaults from_defaults;
} NNDiracArgs;
#define NN_INIT_DIRAC_DEFAULTS .groups = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNDiracArgs nn_init_dirac_defaults;
/* nn_init_dirac_(x, .groups = 2) - x [out, in, size, ...] with one to three sizes: in each group of out /
 * groups rows, row c < in is 1 at [c, size / 2, ...]; 0 elsewhere.  Makes a convolution the identity.
 * ESHAPE: another rank, or out is no multiple of groups; EVALUE: groups below 1. */
#define nn_init_dirac_(...) \
    TENSOR_CALL_(nn_init_dirac_args, NNDiracArgs, NN_INIT_DIRAC_DEFAULTS, .tensor = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_init_dirac_args(NNDiracArgs args);

typedef struct NNSparseArgs {
    Tensor *tensor;
    double sparsity; /* required */
    double std;
    TensorFromDefaults from_defaults;
} NNSparseArgs;
#define NN_INIT_SPARSE_DEFAULTS .sparsity = (double)NAN, .std = 0.01, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNSparseArgs nn_init_sparse_defaults;
/* nn_init_sparse_(x, 0.9) - x [rows, columns]: from N(0, std), with ceil(sparsity rows) random elements of
 * each column set to 0.  ESHAPE: another rank.  EVALUE: sparsity outside [0, 1], std < 0 or NaN. */
#define nn_init_sparse_(...) \
    TENSOR_CALL_(nn_init_sparse_args, NNSparseArgs, NN_INIT_SPARSE_DEFAULTS, .tensor = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_init_sparse_args(NNSparseArgs args);

/* nn_calculate_gain - linear: 1; tanh: 5/3; relu: sqrt 2; leaky_relu: sqrt(2 / (1 + slope^2)); selu: 3/4.
 * NaN and EVALUE: another value. */
TAPEGRAD_API double nn_calculate_gain(NNGain nonlinearity, double slope);

/* ---- gradients ------------------------------------------------------------------------------- */

typedef struct NNClipArgs {
    TensorList parameters;
    double max_norm;         /* required */
    double norm_type;        /* INFINITY: the largest |element| */
    bool error_if_nonfinite; /* EVALUE if the norm is not finite; reads its value: waits for a device */
    TensorFromDefaults from_defaults;
} NNClipArgs;
#define NN_CLIP_GRAD_NORM_DEFAULTS .max_norm = (double)NAN, .norm_type = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNClipArgs nn_clip_grad_norm_defaults;

/* nn_clip_grad_norm_(nn_parameters(net), 1.0) - computes the norm of all gradients as one vector, and scales
 * them in place by min(1, max_norm / (norm + 1e-6)). Returns the norm before scaling, rank 0; NULL after an
 * error. Does not wait for a device.  Parameters without a gradient are skipped; with no gradient at all the
 * norm is 0.  ENULL: a parameter is NULL; EVALUE: a released one.  Does nothing while an error is recorded.
 * Always uses the passes of foreach.h: there is no option foreach. */
#define nn_clip_grad_norm_(...) \
    TENSOR_CALL_(nn_clip_grad_norm_args, NNClipArgs, NN_CLIP_GRAD_NORM_DEFAULTS, .parameters = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_clip_grad_norm_args(NNClipArgs args);

typedef struct NNTotalNormArgs {
    TensorList tensors;
    double norm_type;
    bool error_if_nonfinite;
    TensorFromDefaults from_defaults;
} NNTotalNormArgs;
#define NN_GET_TOTAL_NORM_DEFAULTS .norm_type = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNTotalNormArgs nn_get_total_norm_defaults;

/* The two steps of nn_clip_grad_norm_, for gradients of several nets, or your own norm:
 * nn_get_total_norm(tensors) - the norm of these tensors as one vector, rank 0.
 * nn_clip_grads_with_norm_ - scales the gradients of the parameters by
 *     min(1, max_norm / (total_norm + 1e-6)), total_norm a tensor of one element. */
#define nn_get_total_norm(...) \
    TENSOR_CALL_(nn_get_total_norm_args, NNTotalNormArgs, NN_GET_TOTAL_NORM_DEFAULTS, .tensors = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_get_total_norm_args(NNTotalNormArgs args);
TAPEGRAD_API int nn_clip_grads_with_norm_(TensorList parameters, double max_norm, Tensor *total_norm);

/* nn_clip_grad_value_ - clamps every element of every gradient to [-limit, limit]. */
TAPEGRAD_API int nn_clip_grad_value_(TensorList parameters, double limit);

/* ---- parameters as a vector ------------------------------------------------------------------ */

/* nn_parameters_to_vector(nn_parameters(net)) - the elements of all parameters, concatenated: [n], a copy,
 *     recorded.  Dtypes are promoted as in tensor_cat.
 * nn_vector_to_parameters - the reverse: copies vec [n], cast, into the parameters, outside the graph (in
 *     PyTorch they then share vec's memory).  ESHAPE: vec is not of rank 1, or n is not the number of
 *     elements (PyTorch ignores a surplus); nothing is written.
 * ENULL: a NULL; EVALUE: a released tensor, or no parameters.  Both do nothing while an error is recorded. */
TAPEGRAD_API Tensor *nn_parameters_to_vector(TensorList parameters);
TAPEGRAD_API int nn_vector_to_parameters(Tensor *vec, TensorList parameters);

#ifdef __cplusplus
}
#endif
#endif
