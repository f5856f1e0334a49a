/* ops.h - every op.  torch.foo, Tensor.foo and torch.nn.functional.foo are tensor_foo, with PyTorch's order
 * of arguments, defaults and semantics.
 *
 *     Tensor *y = tensor_relu(tensor_add(tensor_matmul(x, w), b));
 *     tensor_add_(y, x);                                        // in place: the trailing underscore
 *     Tensor *m = tensor_mean(y, .dim = 1, .keepdim = true);    // options by name, or by position
 *     Tensor *s = tensor_sum(y, .dims = DIMS(0, 2));            // a plural option takes several
 *
 * A second result goes to an option (.indices = &at; set to NULL if the call fails); results that belong
 * together are returned as a struct (TensorSvd); a list of results goes into your array, and the op returns
 * their number, or -1.
 *
 * Elementwise ops are the rows of ops.def; each other family has its own header, included below.
 *
 * Broadcasting: operands are aligned at their last dimensions; sizes must agree or be 1 (ESHAPE).
 * Promotion, as in PyTorch: the result has the dtype of the highest category among the operands (bool <
 * integer < float); a tensor of rank 0 counts only if its category is higher than the others'.
 * A scalar argument c is a C double, which does not distinguish 2 from 2.0: a whole c in i64's range counts
 * as a Python int (with bool the result is i64; with integers it has their dtype and wraps), any other c as a
 * float (integers and bool promote to f32).  Powers of integers are integers: pow_scalar refuses a negative
 * whole c (EVALUE); pow with b < 0 gives 1 / a^-b, truncated.
 *
 * Differences from PyTorch:
 *  - gelu, silu, elu, leaky_relu, softplus and logsigmoid promote integers; newer activations, such as mish
 *    and hardswish, refuse them (EDTYPE).
 *  - Comparisons of integers with a scalar compare exact numbers; PyTorch first wraps or rounds the scalar.
 *  - The gradient of clamp at its bounds is 1; that of hardswish at -3 and 3 is -1/2 and 3/2, as in
 *    PyTorch 2.4; logaddexp of equal infinities gives each half the gradient, PyTorch NaN.
 *  - Ops that PyTorch cannot differentiate (floor_divide, heaviside) have the gradient 0.
 *  - Division of integers by 0 is refused (fmod, remainder, floor_divide, trunc_divide: EVALUE).
 *
 * In-place forms write into their first operand.  ESHAPE, EDTYPE: the result has another shape or dtype.
 * EVALUE: elements of the operand share memory.  EGRAD: it is a leaf that requires a gradient, and grad mode
 * is on.  Gradients at kinks, ties and poles are PyTorch's, as each row's summary states.
 *
 * Largest error in ulp of the result, f32 and f64, on the CPU with any instruction set.  (1), (x): in ulp of
 * the larger of the result and 1, or x, where the formula cancels.  Parameters, here the defaults, are
 * rounded to the dtype first; polygamma: for x > 0 and n <= 20; sin, cos, tan: for any x.  Rows that are not
 * listed round once or twice; in f64 ndtr is within 4, log_ndtr 5, erfcx 2.5, i0 and i1 12.  Results below
 * 2^-119 (f32) and 2^-1012 (f64) may lose more to underflow (sigmoid, silu, mish).  test_vecmath.c checks the
 * bounds of this table.
 *   exp            1.2  1.2   exp2           1.2  1.2   expm1          1.5  1.8   log            0.9  0.9
 *   log2           0.6  0.8   log10          0.6  1.9   log1p          0.9  0.9   sin            0.6  0.9
 *   cos            0.6  0.9   tan            0.7  2.3   asin           1.4  1.4   acos           1.4  1.4
 *   atan           1.3  1.4   sinh           0.6  2.0   cosh           0.6  2.0   tanh           1.7  1.6
 *   asinh          0.6  1.8   acosh          0.6  2.1   atanh          0.6  1.9   erf            1.4  1.6
 *   erfc           1.3  4.5   rsqrt          1.8  1.8   sigmoid        2.4  2.4   logsigmoid     1.7  1.8
 *   elu            1.5  1.6   celu           0.6  1.6   selu           2.7  3.9   gelu(x)        1.6  1.9
 *   gelu_tanh(x)   1.6  1.7   silu           2.8  2.9   softplus       1.7  1.7   mish           4.3  4.7
 *   tanhshrink(x)  1.7  1.6   logit(1)       0.6  1.5   sinc(1)        0.6  1.0   erfinv         0.6  6.5
 *   lgamma         0.6  7.0   digamma(1)     0.6  9.6   polygamma      0.6  6.4   pow            0.6  1.0
 *   atan2          1.0  2.1   hypot          0.6  1.2   logaddexp(1)   1.1  1.1   logaddexp2(1)  1.5  1.7
 *   xlogy          0.6  1.8   xlog1py        0.6  2.0
 * f16 and bf16 are computed in f32 (rows without a loop of f32: f64) and rounded once; so are their
 * gradients.  Gradients that read the result use its rounded value. */
#ifndef TAPEGRAD_OPS_H
#define TAPEGRAD_OPS_H

#include <tapegrad/ops/elementwise.h> /* the rows of ops.def, activations, dropout, casts */
#include <tapegrad/ops/shape.h>       /* views, joining, where */
#include <tapegrad/ops/index.h>       /* x[...], gather and scatter, embedding */
#include <tapegrad/ops/reduce.h>      /* sums, extremes, norms, softmax */
#include <tapegrad/ops/order.h>       /* sorting, running sums, differences, sets and counts */
#include <tapegrad/ops/product.h>     /* matrix products, einsum */
#include <tapegrad/ops/linalg.h>      /* factorisations, linear systems, determinants, distances */
#include <tapegrad/ops/image.h>       /* convolution, padding, pooling, interpolation, sampling at a grid */
#include <tapegrad/ops/norm.h>        /* normalisation */
#include <tapegrad/ops/loss.h>        /* losses, log-probabilities */
#include <tapegrad/ops/sequence.h>    /* recurrent nets, attention */
#include <tapegrad/ops/alias.h>       /* other names */
#include <tapegrad/random.h>          /* random tensors and generators */
#endif
