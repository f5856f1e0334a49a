/* ops.h - every op.  torch.foo, Tensor.foo and torch.nn.functional.foo are tensor_foo, with PyTorch's argument order,
 * defaults and semantics.
 *
 *     Tensor *y = tensor_relu(tensor_add(tensor_matmul(x, w), b));
 *     tensor_add_(y, x);                                        // in place: the trailing underscore
 *     Tensor *m = tensor_mean(y, .dim = 1, .keepdim = true);    // options by name, or by position
 *
 * Elementwise ops are the rows of ops.def; the other families have headers of their own, included below.
 *
 * Broadcasting: operands are aligned at their last dimensions; sizes must agree or be 1 (ESHAPE).
 * Promotion, as in PyTorch: the result's dtype is that of the highest category among the operands (bool < integer <
 * float), where a tensor of rank 0 counts only if its category is higher than that of the others.  A scalar argument c is a
 * C double, which cannot tell 2 from 2.0: an integral c that an i64 holds counts as a Python int (on bool the result is i64, on
 * integers their dtype, modulo 2 to its width), any other as a float (integers and bool promote to f32).  Powers of integers are
 * integers: pow_scalar with a negative integral c is refused (EVALUE), pow with a negative b gives 1 / a^-b without its fraction.
 * Unlike PyTorch: functions that it has for floats only (gelu, silu, elu, softplus, ...) promote integers; comparisons of
 * integers with a scalar compare the numbers, where it first wraps or rounds them; clamp has the gradient 1 at its bounds.
 * In-place forms write into their first operand, whose shape and dtype must be the result's (ESHAPE, EDTYPE), which must
 * not overlap itself, and must not be a leaf that requires a gradient while grad mode is on (EGRAD).
 * Gradients at kinks, ties and poles are PyTorch's; each row's summary says them. */
#ifndef TAPEGRAD_OPS_H
#define TAPEGRAD_OPS_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tensor_exp(x), tensor_exp_(x), tensor_leaky_relu(x, slope), tensor_add(a, b), tensor_eq(a, b), ...: see ops.def. */
#define UNARY(name, ...)  TAPEGRAD_API Tensor *tensor_##name(Tensor *x); TAPEGRAD_API Tensor *tensor_##name##_(Tensor *x);
#define UNARY1(name, t, s, p, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *x, double p); \
                          TAPEGRAD_API Tensor *tensor_##name##_(Tensor *x, double p);
#define UNARY2(name, t, s, p, pi, q, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *x, double p, double q); \
                          TAPEGRAD_API Tensor *tensor_##name##_(Tensor *x, double p, double q);
#define BINARY(name, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *a, Tensor *b); \
                          TAPEGRAD_API Tensor *tensor_##name##_(Tensor *a, Tensor *b);
#define BINARY1(name, t, s, p, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *a, Tensor *b, double p); \
                          TAPEGRAD_API Tensor *tensor_##name##_(Tensor *a, Tensor *b, double p);
#define COMPARE(name, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *a, Tensor *b);
#define PREDICATE(name, ...) TAPEGRAD_API Tensor *tensor_##name(Tensor *x);
#include <tapegrad/ops.def>

/* Comparisons with a scalar: tensor_gt_scalar(x, c) is bool, x > c. */
TAPEGRAD_API Tensor *tensor_eq_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_ne_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_lt_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_le_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_gt_scalar(Tensor *x, double c);
TAPEGRAD_API Tensor *tensor_ge_scalar(Tensor *x, double c);

/* tensor_lerp - a + weight (b - a).   tensor_addcmul - x + value a b.   tensor_addcdiv - x + value a / b.
 * All operands broadcast and have gradients. */
TAPEGRAD_API Tensor *tensor_lerp(Tensor *a, Tensor *b, double weight);
TAPEGRAD_API Tensor *tensor_addcmul(Tensor *x, Tensor *a, Tensor *b, double value);
TAPEGRAD_API Tensor *tensor_addcdiv(Tensor *x, Tensor *a, Tensor *b, double value);
TAPEGRAD_API Tensor *tensor_lerp_(Tensor *a, Tensor *b, double weight);
TAPEGRAD_API Tensor *tensor_addcmul_(Tensor *x, Tensor *a, Tensor *b, double value);
TAPEGRAD_API Tensor *tensor_addcdiv_(Tensor *x, Tensor *a, Tensor *b, double value);

/* In-place writes that forget the old values: tensor_zero_(x), tensor_fill_(x, c).
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

#include <tapegrad/ops_shape.h>     /* views, joining, indexing, where */
#include <tapegrad/ops_reduce.h>    /* sums, extremes, norms, softmax, losses */
#include <tapegrad/ops_nn.h>        /* matrix products, convolution, pooling, normalisation, dropout */
#include <tapegrad/ops_product.h>   /* einsum and other products */
#include <tapegrad/random.h>        /* random tensors and generators */
#endif
