/* foreach.h - ops over lists of tensors, torch._foreach_*: one parallel pass over all dense tensors on the
 * CPU, with the same bits for any number of threads.
 *
 *     Tensor *norms = tensor_foreach_norm(TENSORS(a, b));              // [2]
 *     tensor_foreach_mul_(TENSORS(a, b), tensor_reciprocal(tensor_amax(norms)));
 *
 * They work in place, outside the graph: while grad mode is on, a tensor that requires a gradient is refused
 * (EGRAD); use TENSOR_NO_GRAD.  Tensors may differ in shape, dtype, layout and device; f16 and bf16 compute
 * in f32 and round once.  The lists of a call have the same length, and item i the same shape in each.
 * Tensors that share memory are processed one by one, in order.  Empty lists are allowed.
 *
 * Each returns 0, or -1 and changes nothing.  ENULL: a NULL.  EVALUE: lists of different lengths; elements of
 * one tensor share memory.  ESHAPE: shapes differ.  EDTYPE: a tensor is not floating.  ENOMEM. */
#ifndef TAPEGRAD_FOREACH_H
#define TAPEGRAD_FOREACH_H

#include <tapegrad/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TensorForeachNormArgs {
    TensorList self;
    double ord;
    TensorFromDefaults from_defaults;
} TensorForeachNormArgs;
#define TENSOR_FOREACH_NORM_DEFAULTS .ord = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorForeachNormArgs tensor_foreach_norm_defaults;

/* tensor_foreach_norm(list, .ord = INFINITY) - the tensor_norm of each of n tensors, as one vector [n] on the
 * first one's device: f64 if one of them is f64, else f32.  Not recorded; waits for no device. */
#define tensor_foreach_norm(...)                                                                \
    TENSOR_CALL_(tensor_foreach_norm_args, TensorForeachNormArgs, TENSOR_FOREACH_NORM_DEFAULTS, \
                 .self = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_foreach_norm_args(TensorForeachNormArgs args);

/* tensor_foreach_zero_ - x = 0.
 * tensor_foreach_mul_ - x = scalar x; scalar is a tensor of one element, on any device.
 * tensor_foreach_mul_scalar_ - the same with a number.
 * tensor_foreach_clamp_ - x = min(max(x, least), most); NaN stays. */
TAPEGRAD_API int tensor_foreach_zero_(TensorList self);
TAPEGRAD_API int tensor_foreach_mul_(TensorList self, Tensor *scalar);
TAPEGRAD_API int tensor_foreach_mul_scalar_(TensorList self, double scalar);
TAPEGRAD_API int tensor_foreach_clamp_(TensorList self, double least, double most);

/* tensor_foreach_add_ - x = x + alpha y.
 * tensor_foreach_lerp_ - x = x + weight (y - x).
 * tensor_foreach_copy_ - x = y. */
TAPEGRAD_API int tensor_foreach_add_(TensorList self, TensorList other, double alpha);
TAPEGRAD_API int tensor_foreach_lerp_(TensorList self, TensorList end, double weight);
TAPEGRAD_API int tensor_foreach_copy_(TensorList self, TensorList src);

#ifdef __cplusplus
}
#endif
#endif
