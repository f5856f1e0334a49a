/* ops/elementwise.h - elementwise ops: the rows of ops.def, ops composed of them, dropout, gates, casts.
 * Included by ops.h, which states how operands broadcast and promote. */
#ifndef TAPEGRAD_OPS_ELEMENTWISE_H
#define TAPEGRAD_OPS_ELEMENTWISE_H

#include <math.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tensor_exp(x), tensor_exp_(x), tensor_leaky_relu(x, slope), tensor_add(a, b), tensor_eq(a, b), ...: see
 * ops.def.  Parameters follow the tensors: tensor_polygamma(x, n) is Tensor.polygamma; tensor_logit(x, -1) is
 * logit without eps.  Forms with a number for the second tensor: tensor_add_scalar(x, c), tensor_gt_scalar(x,
 * c); for the first: tensor_rsub_scalar(x, c) is c - x, tensor_rpow_scalar(x, c) is c^x. In-place comparisons
 * write 0 and 1 in x's dtype; x's old value gets no gradient. */
#define UNARY(name, ...)                           \
    TAPEGRAD_API Tensor *tensor_##name(Tensor *x); \
    TAPEGRAD_API Tensor *tensor_##name##_(Tensor *x);
#define UNARY1(name, t, s, p, ...)                           \
    TAPEGRAD_API Tensor *tensor_##name(Tensor *x, double p); \
    TAPEGRAD_API Tensor *tensor_##name##_(Tensor *x, double p);
#define UNARY2(name, t, s, p, pi, q, ...)                              \
    TAPEGRAD_API Tensor *tensor_##name(Tensor *x, double p, double q); \
    TAPEGRAD_API Tensor *tensor_##name##_(Tensor *x, double p, double q);
#define BINARY(name, ...)                                     \
    TAPEGRAD_API Tensor *tensor_##name(Tensor *a, Tensor *b); \
    TAPEGRAD_API Tensor *tensor_##name##_(Tensor *a, Tensor *b);
#define BINARY1(name, t, s, p, ...)                                     \
    TAPEGRAD_API Tensor *tensor_##name(Tensor *a, Tensor *b, double p); \
    TAPEGRAD_API Tensor *tensor_##name##_(Tensor *a, Tensor *b, double p);
#define COMPARE(name, ...)                                            \
    TAPEGRAD_API Tensor *tensor_##name(Tensor *a, Tensor *b);         \
    TAPEGRAD_API Tensor *tensor_##name##_(Tensor *a, Tensor *b);      \
    TAPEGRAD_API Tensor *tensor_##name##_scalar(Tensor *x, double c); \
    TAPEGRAD_API Tensor *tensor_##name##_scalar_(Tensor *x, double c);
#define LOGIC BINARY
#define LOGIC1 UNARY
#define PREDICATE(name, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *x);
#define BITS1 UNARY
#define BITS2 BINARY
#define BITSC UNARY1
#include <tapegrad/ops.def>

/* Operands broadcast and promote (integers give f32).  Computed in f64.  As in PyTorch, only b has a
 * gradient.
 *   tensor_zeta     Hurwitz's zeta function, the sum over k >= 0 of (k + b)^-a; infinite for a = 1 and for
 *                   b = 0, -1, ..., NaN for a < 1 and for b < 0 with a fraction in a
 *   tensor_igamma   the regularised incomplete gamma function, 1 / Gamma(a) times the integral of
 *                   t^(a-1) e^-t from 0 to b; NaN for a negative operand
 *   tensor_igammac  1 - igamma(a, b), accurate where that is tiny
 * Largest error in ulp, in f64: zeta 12, igamma and igammac 60; the rows i0 and i1 10, erfcx, ndtr and
 * log_ndtr 4, ndtri 8; in f32: 0.6, ndtr 1.2. */
TAPEGRAD_API Tensor *tensor_zeta(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_igamma(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_igammac(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_igamma_(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_igammac_(Tensor *a, Tensor *b);

/* tensor_lerp - a + weight (b - a).  Operands broadcast and have gradients, here and in the next two.
 * EDTYPE: not floats of one dtype. */
TAPEGRAD_API Tensor *tensor_lerp(Tensor *a, Tensor *b, double weight);
TAPEGRAD_API Tensor *tensor_lerp_(Tensor *a, Tensor *b, double weight);

typedef struct TensorAddcArgs {
    Tensor *input, *tensor1, *tensor2;
    double value; /* factor of the second term */
    TensorFromDefaults from_defaults;
} TensorAddcArgs;
#define TENSOR_ADDC_DEFAULTS .value = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorAddcArgs tensor_addc_defaults;

/* tensor_addcmul(x, a, b, .value = 1) - x + value a b.
 * tensor_addcdiv - x + value a / b. */
#define TENSOR_ADDC_(function, ...) \
    TENSOR_CALL_(function, TensorAddcArgs, TENSOR_ADDC_DEFAULTS, .input = __VA_ARGS__)
#define tensor_addcmul(...) TENSOR_ADDC_(tensor_addcmul_args, __VA_ARGS__)
#define tensor_addcdiv(...) TENSOR_ADDC_(tensor_addcdiv_args, __VA_ARGS__)
#define tensor_addcmul_(...) TENSOR_ADDC_(tensor_addcmul_args_, __VA_ARGS__)
#define tensor_addcdiv_(...) TENSOR_ADDC_(tensor_addcdiv_args_, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_addcmul_args(TensorAddcArgs args);
TAPEGRAD_API Tensor *tensor_addcdiv_args(TensorAddcArgs args);
TAPEGRAD_API Tensor *tensor_addcmul_args_(TensorAddcArgs args);
TAPEGRAD_API Tensor *tensor_addcdiv_args_(TensorAddcArgs args);

/* tensor_lerp_tensor - lerp with a tensor as weight.  EDTYPE: not floats of one dtype; a weight of rank 0 is
 * cast. */
TAPEGRAD_API Tensor *tensor_lerp_tensor(Tensor *a, Tensor *b, Tensor *weight);
TAPEGRAD_API Tensor *tensor_lerp_tensor_(Tensor *a, Tensor *b, Tensor *weight);

/* tensor_tanhshrink - x - tanh(x).
 * tensor_prelu - x where x > 0, else w x; weight w has 1 element, or one for each index of dim 1 (ESHAPE).
 *     EDTYPE: not floats of one dtype.
 * tensor_rrelu(x, .lower = 1/8, .upper = 1/3, .training) - x where x > 0, else a x: in training a is drawn
 *     from [lower, upper) for each element, else a = (lower + upper) / 2.  EVALUE: lower > upper. */
TAPEGRAD_API Tensor *tensor_tanhshrink(Tensor *x);
TAPEGRAD_API Tensor *tensor_prelu(Tensor *x, Tensor *weight);
typedef struct TensorRreluArgs {
    Tensor *input;
    double lower, upper;
    bool training;
    TensorFromDefaults from_defaults;
} TensorRreluArgs;
#define TENSOR_RRELU_DEFAULTS .lower = 1. / 8, .upper = 1. / 3, .training = false, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorRreluArgs tensor_rrelu_defaults;
#define tensor_rrelu(...) \
    TENSOR_CALL_(tensor_rrelu_args, TensorRreluArgs, TENSOR_RRELU_DEFAULTS, .input = __VA_ARGS__)
#define tensor_rrelu_(...) \
    TENSOR_CALL_(tensor_rrelu_args_, TensorRreluArgs, TENSOR_RRELU_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_rrelu_args(TensorRreluArgs args);
TAPEGRAD_API Tensor *tensor_rrelu_args_(TensorRreluArgs args);

/* tensor_clamp_tensor(x, .min = low, .max = high) - min(max(x, low), high) with tensors as bounds, which
 * broadcast; one may be left out.  EVALUE: both are.  low > high gives high.  On ties x gets the whole
 * gradient, as in clamp; PyTorch gives half to the bound. */
typedef struct TensorClampTensorArgs {
    Tensor *input, *min, *max;
} TensorClampTensorArgs;
#define TENSOR_CLAMP_TENSOR_DEFAULTS .min = NULL, .max = NULL
TAPEGRAD_API extern const TensorClampTensorArgs tensor_clamp_tensor_defaults;
#define tensor_clamp_tensor(...)                                                                \
    TENSOR_CALL_(tensor_clamp_tensor_args, TensorClampTensorArgs, TENSOR_CLAMP_TENSOR_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_clamp_tensor_(...)                                                                \
    TENSOR_CALL_(tensor_clamp_tensor_args_, TensorClampTensorArgs, TENSOR_CLAMP_TENSOR_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_clamp_tensor_args(TensorClampTensorArgs args);
TAPEGRAD_API Tensor *tensor_clamp_tensor_args_(TensorClampTensorArgs args);

/* tensor_gelu(x), tensor_gelu(x, .approximate = TENSOR_GELU_TANH), and in place - x P(X <= x), X standard
 * normal, by erf, or by tanh (the row gelu_tanh).  (In C++, and through a pointer, tensor_gelu takes x
 * alone.) */
typedef enum TensorGelu { TENSOR_GELU_EXACT, TENSOR_GELU_TANH } TensorGelu;
typedef struct TensorGeluArgs {
    Tensor *input;
    TensorByName by_name;
    TensorGelu approximate;
} TensorGeluArgs;
#define TENSOR_GELU_DEFAULTS .approximate = TENSOR_GELU_EXACT
TAPEGRAD_API extern const TensorGeluArgs tensor_gelu_defaults;
#ifndef __cplusplus
#define tensor_gelu(...) \
    TENSOR_CALL_(tensor_gelu_args, TensorGeluArgs, TENSOR_GELU_DEFAULTS, .input = __VA_ARGS__)
#define tensor_gelu_(...) \
    TENSOR_CALL_(tensor_gelu_args_, TensorGeluArgs, TENSOR_GELU_DEFAULTS, .input = __VA_ARGS__)
#endif
TAPEGRAD_API Tensor *tensor_gelu_args(TensorGeluArgs args);
TAPEGRAD_API Tensor *tensor_gelu_args_(TensorGeluArgs args);

/* tensor_nan_to_num(x, .nan = 0, .posinf, .neginf) - replaces NaN and infinities by numbers, with gradient 0.
 * By default (or if NaN) posinf and neginf are the dtype's largest and smallest number.  Integers are
 * copied. */
typedef struct TensorNanToNumArgs {
    Tensor *input;
    double nan, posinf, neginf;
    TensorFromDefaults from_defaults;
} TensorNanToNumArgs;
#define TENSOR_NAN_TO_NUM_DEFAULTS .posinf = (double)NAN, .neginf = (double)NAN, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorNanToNumArgs tensor_nan_to_num_defaults;
#define tensor_nan_to_num(...) \
    TENSOR_CALL_(tensor_nan_to_num_args, TensorNanToNumArgs, TENSOR_NAN_TO_NUM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_nan_to_num_(...)                                                           \
    TENSOR_CALL_(tensor_nan_to_num_args_, TensorNanToNumArgs, TENSOR_NAN_TO_NUM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_nan_to_num_args(TensorNanToNumArgs args);
TAPEGRAD_API Tensor *tensor_nan_to_num_args_(TensorNanToNumArgs args);

/* tensor_round_decimals(x, n) - PyTorch's round(decimals=n): rint(x 10^n) / 10^n; n < 0 rounds to tens.  The
 * gradient is 0.  Floats only (EDTYPE). */
TAPEGRAD_API Tensor *tensor_round_decimals(Tensor *x, int decimals);
TAPEGRAD_API Tensor *tensor_round_decimals_(Tensor *x, int decimals);

/* tensor_div_rounding - PyTorch's div with a rounding mode: floor_divide or trunc_divide; the gradient is 0.
 * tensor_float_power - a^b in f64; the in-place form needs an f64 a (EDTYPE).
 * tensor_positive - returns x; EDTYPE: bool.
 * tensor_isclose(a, b, .rtol = 1e-5, .atol = 1e-8, .equal_nan) - bool: a == b, or |a - b| <= atol + rtol |b|
 *     and finite.  EDTYPE: a and b differ in dtype, as in PyTorch; tensor_equal and tensor_allclose allow
 *     it. */
typedef enum TensorRounding { TENSOR_FLOOR, TENSOR_TRUNC } TensorRounding;
TAPEGRAD_API Tensor *tensor_div_rounding(Tensor *a, Tensor *b, TensorRounding rounding);
TAPEGRAD_API Tensor *tensor_div_rounding_(Tensor *a, Tensor *b, TensorRounding rounding);
TAPEGRAD_API Tensor *tensor_float_power(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_float_power_(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_float_power_scalar(Tensor *x, double c); /* x^c in f64 */
TAPEGRAD_API Tensor *tensor_float_power_scalar_(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_rfloat_power_scalar(Tensor *x, double c); /* c^x in f64 */
TAPEGRAD_API Tensor *tensor_positive(Tensor *x);
typedef struct TensorIscloseArgs {
    Tensor *a, *b;
    double rtol, atol;
    bool equal_nan;
    TensorFromDefaults from_defaults;
} TensorIscloseArgs;
#define TENSOR_ISCLOSE_DEFAULTS .rtol = 1e-5, .atol = 1e-8, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorIscloseArgs tensor_isclose_defaults;
#define tensor_isclose(...) \
    TENSOR_CALL_(tensor_isclose_args, TensorIscloseArgs, TENSOR_ISCLOSE_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_isclose_args(TensorIscloseArgs args);

/* In-place writes that do not read x:
 * tensor_zero_(x), tensor_fill_(x, c) - x = 0, x = c.  EVALUE: c is out of an integer dtype's range.  x
 *     leaves the graph (in PyTorch it still requires a gradient, which is 0); with a view as x only its part
 *     of the base does.
 * tensor_copy_ - x = src, broadcast to x's shape and cast to its dtype, also between devices.  src gets the
 *     gradient, x's old value none.  With a view as x: PyTorch's x[...] = src. */
TAPEGRAD_API Tensor *tensor_zero_(Tensor *x);
TAPEGRAD_API Tensor *tensor_fill_(Tensor *x, double value);
TAPEGRAD_API Tensor *tensor_copy_(Tensor *x, Tensor *src);

/* tensor_to - casts x to dtype; returns x if it has that dtype.  Between floats, the gradient is cast back.
 *     A value out of an integer dtype's range gives an undefined result, as in C.  To bool: x != 0.
 * tensor_to_device - copies x to device; returns x if it is there. */
TAPEGRAD_API Tensor *tensor_to(Tensor *x, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_to_device(Tensor *x, const char *device);

/* ---- dropout ------------------------------------------------------------------------------------
 * In training, elements or channels of x are dropped with probability p; the gradient has the same mask.  In
 * eval, or with p = 0, returns x; p = 1 gives zeros; neither draws numbers.  A dropped NaN or infinity is
 * dropped like any value.  EVALUE: p outside [0, 1].
 * On the CPU a seed gives PyTorch's masks, unless tensor_use_torch_dropout(false) (random.h).
 *   tensor_dropout                y_i = 0, or x_i / (1 - p)
 *   tensor_dropout1d              channels of [N, C, L] or [C, L] (ESHAPE: another rank)
 *   tensor_dropout2d              channels of [N, C, ...] (ESHAPE: rank below 2, unless x is returned)
 *   tensor_dropout3d              channels of [N, C, D, H, W], or of [C, ...] (ESHAPE: rank 0, unless x is
 *                                 returned)
 *   tensor_alpha_dropout          a x_i + b, with -1.7581 (selu's limit) for a dropped x_i; a and b keep
 *                                 mean 0 and variance 1
 *   tensor_feature_alpha_dropout  the same for whole channels, as dropout2d */
typedef struct TensorDropoutArgs {
    Tensor *input;
    double p;
    bool training;
    TensorFromDefaults from_defaults;
} TensorDropoutArgs;
#define TENSOR_DROPOUT_DEFAULTS .p = 0.5, .training = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorDropoutArgs tensor_dropout_defaults;

#define TENSOR_DROPOUT_(function, ...) \
    TENSOR_CALL_(function, TensorDropoutArgs, TENSOR_DROPOUT_DEFAULTS, .input = __VA_ARGS__)
#define tensor_dropout(...) TENSOR_DROPOUT_(tensor_dropout_args, __VA_ARGS__)
#define tensor_dropout_(...) TENSOR_DROPOUT_(tensor_dropout_args_, __VA_ARGS__)
#define tensor_dropout1d(...) TENSOR_DROPOUT_(tensor_dropout1d_args, __VA_ARGS__)
#define tensor_dropout2d(...) TENSOR_DROPOUT_(tensor_dropout2d_args, __VA_ARGS__)
#define tensor_dropout3d(...) TENSOR_DROPOUT_(tensor_dropout3d_args, __VA_ARGS__)
#define tensor_alpha_dropout(...) TENSOR_DROPOUT_(tensor_alpha_dropout_args, __VA_ARGS__)
#define tensor_alpha_dropout_(...) TENSOR_DROPOUT_(tensor_alpha_dropout_args_, __VA_ARGS__)
#define tensor_feature_alpha_dropout(...) TENSOR_DROPOUT_(tensor_feature_alpha_dropout_args, __VA_ARGS__)
#define tensor_feature_alpha_dropout_(...) TENSOR_DROPOUT_(tensor_feature_alpha_dropout_args_, __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_dropout_args(TensorDropoutArgs args);
TAPEGRAD_API Tensor *tensor_dropout_args_(TensorDropoutArgs args);
TAPEGRAD_API Tensor *tensor_dropout1d_args(TensorDropoutArgs args);
TAPEGRAD_API Tensor *tensor_dropout2d_args(TensorDropoutArgs args);
TAPEGRAD_API Tensor *tensor_dropout3d_args(TensorDropoutArgs args);
TAPEGRAD_API Tensor *tensor_alpha_dropout_args(TensorDropoutArgs args);
TAPEGRAD_API Tensor *tensor_alpha_dropout_args_(TensorDropoutArgs args);
TAPEGRAD_API Tensor *tensor_feature_alpha_dropout_args(TensorDropoutArgs args);
TAPEGRAD_API Tensor *tensor_feature_alpha_dropout_args_(TensorDropoutArgs args);

/* ---- gates ----------------------------------------------------------------------------------- */

typedef struct TensorGluArgs {
    Tensor *input;
    int dim;
    TensorFromDefaults from_defaults;
} TensorGluArgs;
#define TENSOR_GLU_DEFAULTS .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorGluArgs tensor_glu_defaults;

/* tensor_glu - a sigmoid(b), a and b the halves of input along dim.  ESHAPE: an odd size.  EINDEX: no such
 * dim. */
#define tensor_glu(...) \
    TENSOR_CALL_(tensor_glu_args, TensorGluArgs, TENSOR_GLU_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_glu_args(TensorGluArgs args);

typedef struct TensorGumbelSoftmaxArgs {
    Tensor *logits;
    double tau; /* temperature */
    bool hard;  /* exactly 1 at the maximum and 0 elsewhere, with the gradient of the soft value */
    int dim;
    TensorFromDefaults from_defaults;
} TensorGumbelSoftmaxArgs;
#define TENSOR_GUMBEL_SOFTMAX_DEFAULTS .tau = 1, .hard = false, .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorGumbelSoftmaxArgs tensor_gumbel_softmax_defaults;

/* tensor_gumbel_softmax - softmax((logits + n) / tau) along dim, n = -log e, e from the exponential
 * distribution, PyTorch's numbers.  There is no eps, which PyTorch ignores.
 * EVALUE: tau <= 0.  EINDEX: no such dim. */
#define tensor_gumbel_softmax(...)                                                                    \
    TENSOR_CALL_(tensor_gumbel_softmax_args, TensorGumbelSoftmaxArgs, TENSOR_GUMBEL_SOFTMAX_DEFAULTS, \
                 .logits = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_gumbel_softmax_args(TensorGumbelSoftmaxArgs args);

#ifdef __cplusplus
}
#endif
#endif
