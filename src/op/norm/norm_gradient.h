/* norm_gradient.h - kernel calls of layer_norm, rms_norm, group_norm and batch_norm, and their gradients as
 * ops. */
#ifndef TG_NORM_GRADIENT_H
#define TG_NORM_GRADIENT_H

#include "hidden.h"
#include "op/reduce/reduce.h"

HIDDEN_BEGIN

extern const TensorOp op_batch_norm; /* takes every eps */

/* The dtype that kernels compute in: f64, or f32 for all others. */
FORCE_INLINE int norm_dtype(const Tensor *x) { return x->dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32; }

/* norm_check_dtypes - the inputs behind the first are of its dtype, or all f32 beside a half. */
int norm_check_dtypes(OpCall *c);

/* norm_weights_dtype - of weight and bias beside x of dtype `narrow`: their own, where it is that or wide.
 * norm_operand - x dense and of a dtype, owned by the scope; NULL stays NULL. */
int norm_weights_dtype(int own_dtype, int narrow, int wide);
Tensor *norm_operand(const Tensor *x, int dtype, bool *failed);

/* norm_forward - runs the kernel: y receives the result, cast.  args has sizes, eps and the statistics'
 * addresses. */
int norm_forward(OpCall *c, NormArgs *args, const Tensor *x, const Tensor *weight, const Tensor *bias,
                 Tensor *y);

/* norm_fused - the gradients that are wanted of inputs x, weight and bias, whose numbers are given.  weight
 * may be absent, which its shape in the call tells: it has a dim where it is there. */
int norm_fused(OpCall *c, NormArgs *args, const int input[3], Tensor *dy, Tensor **dx);

/* norm_recorded - the same by ops.  over: the dims of the statistics; weights: the shape of weight beside x;
 * shared: the dims that weight does not have; all of x's shape, or of `as`, as which x is seen when it is not
 * empty.  mean and rstd are given (constants), or NULL: formed of x.  rms: without a mean. */
typedef struct DimList { /* sizes, or dims */
    int n;
    int64_t at[TENSOR_MAX_DIMS];
} DimList;
typedef struct NormDims {
    DimList over, weights, shared, as;
    bool rms;
    Tensor *x; /* NULL: the saved input */
    Tensor *mean, *rstd;
    double eps;
} NormDims;
int norm_recorded(OpCall *c, const NormDims *d, const int input[3], Tensor *dy, Tensor **dx);

HIDDEN_END
#endif
