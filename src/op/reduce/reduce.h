/* reduce.h - what the reduction ops share. */
#ifndef TG_REDUCE_H
#define TG_REDUCE_H

#include "hidden.h"
#include "op/op.h"
#include "tensor/raw_reduce.h"

HIDDEN_BEGIN

/* ---- what an op reduces over (reduce_dims.c) ---- */
typedef struct ReduceOver {
    bool reduced[TENSOR_MAX_DIMS];
    bool keepdim;
} ReduceOver;
ReduceOver over_dims(TensorShape dims, bool keepdim); /* counted from the front; no dims: all */
ReduceOver over_dim(int dim, bool keepdim);           /* likewise; TENSOR_ALL: all */

/* reduce_check - the options dim and dims become one list in dims, counted from the front and empty for all,
 * and dim becomes TENSOR_ALL.  EVALUE: both given, or a dim twice. */
int reduce_check(OpCall *c, int *dim, TensorShape *dims);
int reduce_not_empty(OpCall *c, ReduceOver over);        /* ESHAPE: nothing to choose from */
int reduce_shape(OpCall *c, ReduceOver over, int dtype); /* declares result 0 */
int reduce_forward(OpCall *c, ReduceOver over, int kind, double param);
int64_t reduce_count(TensorShape shape, ReduceOver over); /* elements that make one result */

/* In backward and compose: t of the result's shape, repeated along the reduced dims to the shape `to`. */
Tensor *reduce_spread(ReduceOver over, TensorShape to, Tensor *t);

/* extremes.c: y = an element of x: 1 where x is equal to it (NaN to NaN), divided by their number, times g,
 * and 0 elsewhere. */
Tensor *share_evenly(ReduceOver over, Tensor *x, Tensor *y, Tensor *g);

/* The gradient of values picked along dim by result 1, the indices: dy where they point, 0 elsewhere. */
Tensor *scatter_back(OpCall *c, Tensor *dy, int dim, bool keepdim);

/* [outer, n, inner] around a dim of x; rank 0 is [1, 1, 1]. */
typedef struct Around {
    int64_t outer, n, inner;
} Around;
Around around(TensorShape shape, int dim);

/* x dense and in a dtype that kernels compute in: itself, or f32 for halves.  Owned by the scope. */
Tensor *dense_float(const Tensor *x);

/* DENSE_FOR - x dense, and f32 where it is a half that the kernel of its device does not read. */
#define DENSE_FOR(slot, x) dense_as(x, (x) && TAKES((x)->place, slot, (x)->dtype))
Tensor *dense_as(const Tensor *x, bool narrow);

/* TARGET_FOR - where that kernel is to write `out`: itself, or f32 for a half that it does not write. */
#define TARGET_FOR(slot, out) target_as(out, (out) && TAKES((out)->place, slot, (out)->dtype))
Tensor *target_as(Tensor *out, bool narrow);

/* The dtype in which kernels keep what they sum: that of x, f32 for halves. */
FORCE_INLINE int sums_dtype(const Tensor *x) { return dtype_is_half(x->dtype) ? TENSOR_F32 : x->dtype; }

/* The dtype of sums and products: that of floats, or the option `dtype`; i64 for integers. */
int sum_dtype(const Tensor *x, TensorDtype dtype);

HIDDEN_END

#endif
