/* ops.h - every op.  torch.foo, Tensor.foo and torch.nn.functional.foo are tensor_foo, with PyTorch's argument order,
 * defaults and semantics.
 *
 *     Tensor *y = tensor_relu(tensor_add(tensor_matmul(x, w), b));
 *     tensor_add_(y, x);                                        // in place: the trailing underscore
 *     Tensor *m = tensor_mean(y, .dim = 1, .keepdim = true);    // options by name, or by position
 *     Tensor *s = tensor_sum(y, .dims = DIMS(0, 2));            // several numbers have an option of their own: .dims, .padding_hw = { 1, 2 }
 *
 * Elementwise ops are the rows of ops.def; the other families have headers of their own, included below.
 *
 * Broadcasting: operands are aligned at their last dimensions; sizes must agree or be 1 (ESHAPE).
 * Promotion, as in PyTorch: the result's dtype is that of the highest category among the operands (bool < integer <
 * float), where a tensor of rank 0 counts only if its category is higher than that of the others.  A scalar argument c is a
 * C double, which cannot tell 2 from 2.0: an integral c that an i64 holds counts as a Python int (on bool the result is i64, on
 * integers their dtype, modulo 2 to its width), any other as a float (integers and bool promote to f32).  Powers of integers are
 * integers: pow_scalar with a negative integral c is refused (EVALUE), pow with a negative b gives 1 / a^-b without its fraction.
 * Unlike PyTorch: gelu, silu, elu, leaky_relu, softplus and logsigmoid promote integers (the later ones, such as mish and hardswish,
 * refuse them: EDTYPE); comparisons of integers with a scalar compare the numbers, where it first wraps or rounds them; clamp has the
 * gradient 1 at its bounds; hardswish has at -3 and 3 that of the interval, -1/2 and 3/2, as PyTorch 2.4; logaddexp of equal
 * infinities gives half the gradient to each, where PyTorch has NaN; what it cannot differentiate (floor_divide, heaviside) has the
 * gradient 0.  Integers are not divided by 0 (fmod, remainder, floor_divide, trunc_divide: EVALUE).
 * In-place forms write into their first operand, whose shape and dtype must be the result's (ESHAPE, EDTYPE), which must
 * not overlap itself, and must not be a leaf that requires a gradient while grad mode is on (EGRAD).
 * Gradients at kinks, ties and poles are PyTorch's; each row's summary says them.
 *
 * Error in ulp: f32, f64, on the CPU, whatever the instruction set; of the larger of the result and 1, or x, where a formula cancels: (1),
 * (x).  Parameters are rounded to the dtype first, and here have their defaults; polygamma is that of x > 0 and n <= 20, sin and the like of
 * any x.  What is not in the table is rounded once or twice.  Results below 2^-119 (f32) and 2^-1012 (f64) may lose more to underflow, as
 * sigmoid, silu and mish do.  test_vecmath.c holds the rows to these bounds.
 *   exp 1.2 1.2             exp2 1.2 0.6            expm1 1.5 1.8           log 0.9 0.9             log2 0.6 0.6
 *   log10 0.6 1.9           log1p 0.6 0.9           sin 0.6 0.9             cos 0.6 0.9             tan 0.6 0.7
 *   asin 1.4 0.6            acos 1.4 0.6            atan 1.3 0.6            sinh 0.6 2.0            cosh 0.6 2.0
 *   tanh 1.7 1.6            asinh 0.6 1.8           acosh 0.6 2.1           atanh 0.6 1.9           erf 1.4 1.6
 *   erfc 0.6 3.5            rsqrt 1.8 1.8           sigmoid 2.4 2.4         logsigmoid 1.7 1.8      elu 1.5 1.6
 *   celu 0.6 1.6            selu 2.7 3.9            gelu(x) 1.6 1.9         gelu_tanh(x) 1.6 1.7    silu 2.8 2.9
 *   softplus 1.7 1.7        mish 4.3 4.7            tanhshrink(x) 1.7 1.6   logit(1) 0.6 1.5        sinc(1) 0.6 1.0
 *   erfinv 0.6 4.7          lgamma 0.6 7.0          digamma(1) 0.6 9.6      polygamma 0.6 6.4       pow 0.6 0.6
 *   atan2 0.6 1.9           hypot 0.6 1.2           logaddexp(1) 0.6 1.1    logaddexp2(1) 0.6 1.7   xlogy 0.6 1.7
 *   xlog1py 0.6 2.0
 * f16 and bf16 are computed in f32, rare rows in f64, and rounded once; so are their gradients, which where they read the result have it as
 * it was rounded. */
#ifndef TAPEGRAD_OPS_H
#define TAPEGRAD_OPS_H

#include <math.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tensor_exp(x), tensor_exp_(x), tensor_leaky_relu(x, slope), tensor_add(a, b), tensor_eq(a, b), ...: see ops.def.  Parameters come
 * after the tensors: tensor_polygamma(x, n) is Tensor.polygamma; tensor_logit(x, -1) is that without eps. */
#define UNARY(name, ...)  TAPEGRAD_API Tensor *tensor_##name(Tensor *x); TAPEGRAD_API Tensor *tensor_##name##_(Tensor *x);
#define UNARY1(name, t, s, p, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *x, double p); \
                          TAPEGRAD_API Tensor *tensor_##name##_(Tensor *x, double p);
#define UNARY2(name, t, s, p, pi, q, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *x, double p, double q); \
                          TAPEGRAD_API Tensor *tensor_##name##_(Tensor *x, double p, double q);
#define BINARY(name, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *a, Tensor *b); \
                          TAPEGRAD_API Tensor *tensor_##name##_(Tensor *a, Tensor *b);
#define BINARY1(name, t, s, p, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *a, Tensor *b, double p); \
                          TAPEGRAD_API Tensor *tensor_##name##_(Tensor *a, Tensor *b, double p);
#define COMPARE BINARY
#define PREDICATE(name, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *x);
#define BITS1 UNARY
#define BITS2 BINARY
#include <tapegrad/ops.def>

/* Comparisons with a scalar: tensor_gt_scalar(x, c) is bool, x > c. */
TAPEGRAD_API Tensor *tensor_eq_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_ne_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_lt_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_le_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_gt_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_ge_scalar(Tensor *x, double c);

/* Comparisons in place (tensor_eq_(a, b), ...) write 0 and 1 in the dtype that is there; what was there gets no gradient. */
TAPEGRAD_API Tensor *tensor_eq_scalar_(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_ne_scalar_(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_lt_scalar_(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_le_scalar_(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_gt_scalar_(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_ge_scalar_(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_logical_not_(Tensor *x);

/* tensor_lerp - a + weight (b - a).   tensor_addcmul - x + value a b.   tensor_addcdiv - x + value a / b.
 * All operands broadcast and have gradients. */
TAPEGRAD_API Tensor *tensor_lerp(Tensor *a, Tensor *b, double weight);
TAPEGRAD_API Tensor *tensor_addcmul(Tensor *x, Tensor *a, Tensor *b, double value);
TAPEGRAD_API Tensor *tensor_addcdiv(Tensor *x, Tensor *a, Tensor *b, double value);
TAPEGRAD_API Tensor *tensor_lerp_(Tensor *a, Tensor *b, double weight);
TAPEGRAD_API Tensor *tensor_addcmul_(Tensor *x, Tensor *a, Tensor *b, double value);
TAPEGRAD_API Tensor *tensor_addcdiv_(Tensor *x, Tensor *a, Tensor *b, double value);

/* tensor_lerp_tensor - lerp with a tensor as weight.  Floats only (EDTYPE). */
TAPEGRAD_API Tensor *tensor_lerp_tensor(Tensor *a, Tensor *b, Tensor *weight);
TAPEGRAD_API Tensor *tensor_lerp_tensor_(Tensor *a, Tensor *b, Tensor *weight);

/* tensor_selu - 1.0507 x where x > 0, else 1.7581 (e^x - 1); floats only.   tensor_tanhshrink - x - tanh(x).
 * tensor_prelu - x where x > 0, else w x; weight has 1 element, or one for each channel, dim 1 of x (ESHAPE).  Floats only.
 * tensor_rrelu(x, .lower = 1/8, .upper = 1/3, .training) - prelu with a slope for each element, drawn from [lower, upper) in
 *   training, else (lower + upper) / 2.  EVALUE: lower > upper. */
TAPEGRAD_API Tensor *tensor_selu(Tensor *x);
TAPEGRAD_API Tensor *tensor_selu_(Tensor *x);
TAPEGRAD_API Tensor *tensor_tanhshrink(Tensor *x);
TAPEGRAD_API Tensor *tensor_prelu(Tensor *x, Tensor *weight);
typedef struct TensorRreluArgs { Tensor *input; double lower, upper; bool training; } TensorRreluArgs;
#define tensor_rrelu(...) tensor_rrelu_args((TensorRreluArgs){ .lower = 1. / 8, .upper = 1. / 3, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_rrelu_args(TensorRreluArgs args);
TAPEGRAD_API Tensor *tensor_rrelu_(Tensor *x, double lower, double upper, bool training);

/* tensor_clamp_tensor(x, .min = low, .max = high) - x held between tensors, which broadcast; one of them may be left out (both:
 * EVALUE).  low > high gives high.  On ties the whole gradient is x's, as that of clamp, where PyTorch gives half to the bound. */
typedef struct TensorClampTensorArgs { Tensor *input, *min, *max; } TensorClampTensorArgs;
#define tensor_clamp_tensor(...) tensor_clamp_tensor_args((TensorClampTensorArgs){ .max = NULL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_clamp_tensor_args(TensorClampTensorArgs args);
TAPEGRAD_API Tensor *tensor_clamp_tensor_(Tensor *x, Tensor *min, Tensor *max);

/* tensor_nan_to_num(x, .nan = 0, .posinf, .neginf) - numbers in place of NaN and infinities; their gradient is 0.  posinf and neginf
 * left out (or NaN): the largest and least number of the dtype.  Integers are copied. */
typedef struct TensorNanToNumArgs { Tensor *input; double nan, posinf, neginf; } TensorNanToNumArgs;
#define tensor_nan_to_num(...) \
    tensor_nan_to_num_args((TensorNanToNumArgs){ .posinf = (double)NAN, .neginf = (double)NAN, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_nan_to_num_args(TensorNanToNumArgs args);
TAPEGRAD_API Tensor *tensor_nan_to_num_(Tensor *x, double nan, double posinf, double neginf);

/* tensor_div_rounding - PyTorch's div with a rounding mode: floor_divide or trunc_divide, with the gradient 0.
 * tensor_float_power - a^b, computed in f64, which is the result's dtype; in place into f64 alone (EDTYPE).   tensor_positive - x itself; bool is refused (EDTYPE).
 * tensor_isclose(a, b, .rtol = 1e-5, .atol = 1e-8, .equal_nan) - bool: a == b, or |a - b| <= atol + rtol |b| and finite. */
typedef enum TensorRounding { TENSOR_FLOOR, TENSOR_TRUNC } TensorRounding;
TAPEGRAD_API Tensor *tensor_div_rounding(Tensor *a, Tensor *b, TensorRounding rounding);
TAPEGRAD_API Tensor *tensor_div_rounding_(Tensor *a, Tensor *b, TensorRounding rounding);
TAPEGRAD_API Tensor *tensor_float_power(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_float_power_(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_positive(Tensor *x);
typedef struct TensorIscloseArgs { Tensor *a, *b; double rtol, atol; bool equal_nan; } TensorIscloseArgs;
#define tensor_isclose(...) tensor_isclose_args((TensorIscloseArgs){ .rtol = 1e-5, .atol = 1e-8, .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_isclose_args(TensorIscloseArgs args);

/* In-place writes that forget the old values: tensor_zero_(x), tensor_fill_(x, c); EVALUE: c beyond an integer dtype.  x leaves
 * the graph (PyTorch's goes on to require a gradient, which is 0); of a view that is filled, only its part of the base does.
 * tensor_copy_ - x = src, broadcast to x's shape and cast to its dtype, also between devices; src gets the gradient, x's
 * old value none.  With a view as x it is PyTorch's x[...] = src. */
TAPEGRAD_API Tensor *tensor_zero_(Tensor *x);
TAPEGRAD_API Tensor *tensor_fill_(Tensor *x, double value);
TAPEGRAD_API Tensor *tensor_copy_(Tensor *x, Tensor *src);

/* tensor_to - cast; x itself when it has the dtype.  Float to float has the gradient cast back.  Out of range of an integer
 * dtype: as C, undefined in value.  To bool: x != 0.   tensor_to_device - a copy there, x itself when it is there. */
TAPEGRAD_API Tensor *tensor_to(Tensor *x, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_to_device(Tensor *x, const char *device);

#ifdef __cplusplus
}
#endif

#include <tapegrad/ops_shape.h>     /* views, joining, where */
#include <tapegrad/ops_index.h>     /* x[...], gather and scatter, embedding, sets and counts */
#include <tapegrad/ops_reduce.h>    /* sums, extremes, norms, softmax, losses */
#include <tapegrad/ops_nn.h>        /* matrix products */
#include <tapegrad/ops_conv.h>      /* convolution, padding, patches */
#include <tapegrad/ops_pool.h>      /* pooling, interpolation, sampling at a grid */
#include <tapegrad/ops_linalg.h>    /* factorisations, linear systems, determinants */
#include <tapegrad/ops_loss.h>      /* more losses, log-probabilities */
#include <tapegrad/ops_norm.h>      /* normalisation, dropout, gates */
#include <tapegrad/ops_attention.h> /* attention, rotary embedding */
#include <tapegrad/ops_rnn.h>       /* recurrent nets */
#include <tapegrad/ops_alias.h>     /* other names */
#include <tapegrad/ops_product.h>   /* einsum and other products */
#include <tapegrad/random.h>        /* random tensors and generators */
#endif
