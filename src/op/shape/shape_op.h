/* shape_op.h - what the view, joining and indexing ops share. */
#ifndef TG_SHAPE_OP_H
#define TG_SHAPE_OP_H

#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

/* call_real_dim - 0, and *dim of input 0 counted from the front; or -1 as call_dim, and EINDEX for rank 0. */
int call_real_dim(OpCall *c, int *dim);

/* zeros_on - a new zero tensor owned by the open scope; NULL: no memory. */
Tensor *zeros_on(TensorShape shape, int dtype, const Place *place);

/* numbers_on - 0, 1, ..., n - 1, made where they are wanted. */
Tensor *numbers_on(int64_t n, TensorDtype dtype, const Place *place);

/* triangle_on - a bool mask, true on and below a diagonal (lower), or on and above it: a view. */
Tensor *triangle_on(int64_t rows, int64_t columns, int64_t diagonal, bool lower, const Place *place);

/* new_part - a view of length elements of dim from start on, step apart; new_layer - of one index of dim,
 * which vanishes. No graph; new references. */
Tensor *new_part(const Tensor *x, int dim, int64_t start, int64_t length, int64_t step);
Tensor *new_layer(const Tensor *x, int dim, int64_t index);

/* embed_part - zeros of the given size in dim, with g from start on; on the graph (view_slice.c). */
Tensor *embed_part(Tensor *g, int dim, int64_t start, int64_t size);

/* host_copy - a dense copy on the CPU, owned by the open scope. */
Tensor *host_copy(const Tensor *x, int dtype);

/* raw_select - out = cond ? a : b, all broadcast to out; cond is bool, the others share a dtype and a device.
 */
int raw_select(const char *op, Tensor *out, const Tensor *cond, const Tensor *a, const Tensor *b);

/* promoted_pair - the dtype of a result of a and b, where rank 0 counts only by category.
 * promoted - the same of dtypes: a scalar is of rank 0. */
int promoted(int a, bool a_is_scalar, int b, bool b_is_scalar);
int promoted_pair(const Tensor *a, const Tensor *b);

/* call_mask_dtype - EDTYPE unless cond is bool or u8.   as_mask - cond as a bool tensor, owned by the open
 * scope. */
int call_mask_dtype(OpCall *c, const Tensor *cond);
Tensor *as_mask(const Tensor *cond);

/* without_lead - value without the leading sizes of 1 that ndim dimensions have no place for, as PyTorch and
 * NumPy drop them when they write x[...] = value; on the graph. */
Tensor *without_lead(Tensor *value, int ndim);

/* parts_or_none - count; where it is -1, none of the room there is in the caller's array is left unset: NULL
 * flows on. */
int parts_or_none(int count, Tensor **parts, int room);

/* carried - x itself where it lies on place, else its copy there, owned by the open scope. */
Tensor *carried(Tensor *x, const Place *place);

/* call_check - 0: all of x are within low and high (of f64 where x has floats, of i64 else), or x's device
 * will tell; 1: they are not, as args say, and the caller does; -1: failed, or x is NULL.  Given are what,
 * status, low, high and nan. */
int call_check(OpCall *c, const Tensor *x, CheckArgs *args);

/* call_one_dtype - 0, or -1 and EDTYPE, naming both, where an operand has another dtype than the first. */
int call_one_dtype(OpCall *c);

HIDDEN_END
#endif
