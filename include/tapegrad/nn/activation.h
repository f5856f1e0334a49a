/* nn/activation.h - activations as modules: the elementwise ops of these names (formulas in ops.def),
 * softmax.  Included by nn/layers.h. */
#ifndef TAPEGRAD_NN_ACTIVATION_H
#define TAPEGRAD_NN_ACTIVATION_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Without options; s(x) = 1 / (1 + e^-x).
 *   nn_relu        max(x, 0)                  nn_relu6        min(max(x, 0), 6)
 *   nn_silu        x s(x)                     nn_mish         x tanh(log(1 + e^x))
 *   nn_selu        1.0507 x, or 1.7581 (e^x - 1) where x < 0
 *   nn_tanh        tanh x                     nn_sigmoid      s(x)
 *   nn_logsigmoid  log s(x)                   nn_softsign     x / (1 + |x|)
 *   nn_tanhshrink  x - tanh x                 nn_hardsigmoid  min(max(x + 3, 0), 6) / 6
 *   nn_hardswish   x hardsigmoid(x) */
#define NN_ACTIVATION_(f, Args, defaults, ...) \
    TENSOR_CALL_(f, Args, NN_##defaults##_DEFAULTS, .unused_ = false, __VA_ARGS__)

/* .inplace = true, in these seven, threshold, leaky_relu, elu, celu, hardtanh, rrelu and the dropouts -
 * writes the result into x and returns x, as PyTorch's inplace; errors are those of the in-place op.  Nets do
 * not need it: while a graph is recorded it costs a copy, and without one nn_sequential frees each input once
 * it is read. */
typedef struct NNInplaceArgs {
    bool unused_;
    bool inplace;
} NNInplaceArgs;
#define NN_INPLACE_DEFAULTS .inplace = false
TAPEGRAD_API extern const NNInplaceArgs nn_inplace_defaults;
TAPEGRAD_API Module *nn_relu(void);
TAPEGRAD_API Module *nn_relu_args(NNInplaceArgs args);
TAPEGRAD_API Module *nn_relu6(void);
TAPEGRAD_API Module *nn_relu6_args(NNInplaceArgs args);
TAPEGRAD_API Module *nn_silu(void);
TAPEGRAD_API Module *nn_silu_args(NNInplaceArgs args);
TAPEGRAD_API Module *nn_mish(void);
TAPEGRAD_API Module *nn_mish_args(NNInplaceArgs args);
TAPEGRAD_API Module *nn_selu(void);
TAPEGRAD_API Module *nn_selu_args(NNInplaceArgs args);
TAPEGRAD_API Module *nn_hardsigmoid(void);
TAPEGRAD_API Module *nn_hardsigmoid_args(NNInplaceArgs args);
TAPEGRAD_API Module *nn_hardswish(void);
TAPEGRAD_API Module *nn_hardswish_args(NNInplaceArgs args);
#ifndef __cplusplus
#define nn_relu(...) NN_ACTIVATION_(nn_relu_args, NNInplaceArgs, INPLACE, __VA_ARGS__)
#define nn_relu6(...) NN_ACTIVATION_(nn_relu6_args, NNInplaceArgs, INPLACE, __VA_ARGS__)
#define nn_silu(...) NN_ACTIVATION_(nn_silu_args, NNInplaceArgs, INPLACE, __VA_ARGS__)
#define nn_mish(...) NN_ACTIVATION_(nn_mish_args, NNInplaceArgs, INPLACE, __VA_ARGS__)
#define nn_selu(...) NN_ACTIVATION_(nn_selu_args, NNInplaceArgs, INPLACE, __VA_ARGS__)
#define nn_hardsigmoid(...) NN_ACTIVATION_(nn_hardsigmoid_args, NNInplaceArgs, INPLACE, __VA_ARGS__)
#define nn_hardswish(...) NN_ACTIVATION_(nn_hardswish_args, NNInplaceArgs, INPLACE, __VA_ARGS__)
#endif
TAPEGRAD_API Module *nn_tanh(void);
TAPEGRAD_API Module *nn_sigmoid(void);
TAPEGRAD_API Module *nn_logsigmoid(void);
TAPEGRAD_API Module *nn_softsign(void);
TAPEGRAD_API Module *nn_tanhshrink(void);

typedef struct NNThresholdArgs {
    double threshold, value;
    bool inplace;
} NNThresholdArgs;
#define NN_THRESHOLD_DEFAULTS .inplace = false
TAPEGRAD_API extern const NNThresholdArgs nn_threshold_defaults;
/* nn_threshold(threshold, value) - x if x > threshold, else value. */
TAPEGRAD_API Module *nn_threshold(double threshold, double value);
TAPEGRAD_API Module *nn_threshold_args(NNThresholdArgs args);
#ifndef __cplusplus
#define nn_threshold(...) \
    TENSOR_CALL_(nn_threshold_args, NNThresholdArgs, NN_THRESHOLD_DEFAULTS, .threshold = __VA_ARGS__)
#endif

/* nn_softmax, nn_softmin (softmax of -x), nn_log_softmax - tensor_softmax, tensor_log_softmax along dim.
 * nn_softmax2d - softmax over the channels of [N, C, h, w] or [C, h, w]. */
TAPEGRAD_API Module *nn_softmax(int dim);
TAPEGRAD_API Module *nn_softmin(int dim);
TAPEGRAD_API Module *nn_log_softmax(int dim);
TAPEGRAD_API Module *nn_softmax2d(void);

typedef struct NNLeakyReluArgs {
    bool unused_;
    double negative_slope;
    bool inplace;
    TensorFromDefaults from_defaults;
} NNLeakyReluArgs;
#define NN_LEAKY_RELU_DEFAULTS .negative_slope = 0.01, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNLeakyReluArgs nn_leaky_relu_defaults;
/* nn_leaky_relu - x, or negative_slope x where x < 0. */
#define nn_leaky_relu(...) NN_ACTIVATION_(nn_leaky_relu_args, NNLeakyReluArgs, LEAKY_RELU, __VA_ARGS__)
TAPEGRAD_API Module *nn_leaky_relu_args(NNLeakyReluArgs args);

typedef struct NNEluArgs {
    bool unused_;
    double alpha;
    bool inplace;
    TensorFromDefaults from_defaults;
} NNEluArgs;
#define NN_ELU_DEFAULTS .alpha = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNEluArgs nn_elu_defaults;
/* nn_elu - x, or alpha (e^x - 1) where x < 0.
 * nn_celu - x, or alpha (e^(x / alpha) - 1) where x < 0. */
#define nn_elu(...) NN_ACTIVATION_(nn_elu_args, NNEluArgs, ELU, __VA_ARGS__)
#define nn_celu(...) NN_ACTIVATION_(nn_celu_args, NNEluArgs, ELU, __VA_ARGS__)
TAPEGRAD_API Module *nn_elu_args(NNEluArgs args);
TAPEGRAD_API Module *nn_celu_args(NNEluArgs args);

typedef struct NNSoftplusArgs {
    bool unused_;
    double beta, threshold; /* y = x where beta x > threshold */
    TensorFromDefaults from_defaults;
} NNSoftplusArgs;
#define NN_SOFTPLUS_DEFAULTS .beta = 1, .threshold = 20, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNSoftplusArgs nn_softplus_defaults;
/* nn_softplus - log(1 + e^(beta x)) / beta; x where beta x > threshold. */
#define nn_softplus(...) NN_ACTIVATION_(nn_softplus_args, NNSoftplusArgs, SOFTPLUS, __VA_ARGS__)
TAPEGRAD_API Module *nn_softplus_args(NNSoftplusArgs args);

typedef struct NNShrinkArgs {
    bool unused_;
    double lambd;
    TensorFromDefaults from_defaults;
} NNShrinkArgs;
#define NN_SHRINK_DEFAULTS .lambd = 0.5, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNShrinkArgs nn_shrink_defaults;
/* nn_softshrink - x - lambd where x > lambd, x + lambd where x < -lambd, else 0.
 * nn_hardshrink - x where |x| > lambd, else 0. */
#define nn_softshrink(...) NN_ACTIVATION_(nn_softshrink_args, NNShrinkArgs, SHRINK, __VA_ARGS__)
#define nn_hardshrink(...) NN_ACTIVATION_(nn_hardshrink_args, NNShrinkArgs, SHRINK, __VA_ARGS__)
TAPEGRAD_API Module *nn_softshrink_args(NNShrinkArgs args);
TAPEGRAD_API Module *nn_hardshrink_args(NNShrinkArgs args);

typedef struct NNHardtanhArgs {
    bool unused_;
    double min_val, max_val;
    bool inplace;
    TensorFromDefaults from_defaults;
} NNHardtanhArgs;
#define NN_HARDTANH_DEFAULTS .min_val = -1, .max_val = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNHardtanhArgs nn_hardtanh_defaults;
/* nn_hardtanh - min(max(x, min_val), max_val).  EVALUE: min_val >= max_val, as in PyTorch. */
#define nn_hardtanh(...) NN_ACTIVATION_(nn_hardtanh_args, NNHardtanhArgs, HARDTANH, __VA_ARGS__)
TAPEGRAD_API Module *nn_hardtanh_args(NNHardtanhArgs args);

typedef struct NNRreluArgs {
    bool unused_;
    double lower, upper;
    bool inplace;
    TensorFromDefaults from_defaults;
} NNRreluArgs;
#define NN_RRELU_DEFAULTS .lower = 1. / 8, .upper = 1. / 3, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNRreluArgs nn_rrelu_defaults;
/* nn_rrelu - x, or a x where x < 0: in training a is drawn from U(lower, upper) for each element, else a =
 * (lower + upper) / 2. */
#define nn_rrelu(...) NN_ACTIVATION_(nn_rrelu_args, NNRreluArgs, RRELU, __VA_ARGS__)
TAPEGRAD_API Module *nn_rrelu_args(NNRreluArgs args);

typedef struct NNPreluArgs {
    bool unused_;
    int64_t num_parameters; /* 1, or the size of dim 1 */
    double init;
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNPreluArgs;
#define NN_PRELU_DEFAULTS .num_parameters = 1, .init = 0.25, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNPreluArgs nn_prelu_defaults;
/* nn_prelu - x, or w x where x < 0; parameter weight w [num_parameters]: init. */
#define nn_prelu(...) NN_ACTIVATION_(nn_prelu_args, NNPreluArgs, PRELU, __VA_ARGS__)
TAPEGRAD_API Module *nn_prelu_args(NNPreluArgs args); /* weight [num_parameters]: init */

typedef struct NNGeluArgs {
    bool unused_;
    TensorByName by_name;
    TensorGelu approximate; /* exact by erf, or approximate by tanh */
} NNGeluArgs;
#define NN_GELU_DEFAULTS .approximate = TENSOR_GELU_EXACT
TAPEGRAD_API extern const NNGeluArgs nn_gelu_defaults;
/* nn_gelu - x P(X <= x), X standard normal: by erf, or PyTorch's approximation by tanh. */
#define nn_gelu(...) NN_ACTIVATION_(nn_gelu_args, NNGeluArgs, GELU, __VA_ARGS__)
TAPEGRAD_API Module *nn_gelu_args(NNGeluArgs args);

typedef struct NNGluArgs {
    bool unused_;
    int dim;
    TensorFromDefaults from_defaults;
} NNGluArgs;
#define NN_GLU_DEFAULTS .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNGluArgs nn_glu_defaults;
/* nn_glu - a s(b), a and b the halves of x along dim. */
#define nn_glu(...) NN_ACTIVATION_(nn_glu_args, NNGluArgs, GLU, __VA_ARGS__)
TAPEGRAD_API Module *nn_glu_args(NNGluArgs args); /* halves a, b along dim: a s(b) */

#ifdef __cplusplus
}
#endif
#endif
