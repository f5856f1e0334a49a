/* reduce.h - what the reduction ops share. */
#ifndef TG_REDUCE_H
#define TG_REDUCE_H

#include "op/op.h"
#include "tensor/raw_reduce.h"

#pragma GCC visibility push(hidden)

/* ---- ops with dims (op/reduce_op.c).  Their params are a ReduceParams. ---- */
typedef struct ReduceParams {
    OpDims dims; /* none: all */
    bool keepdim;
    double param; /* of var, norm */
} ReduceParams;
#define REDUCE_FIELDS \
    OP_FIELD(OP_DIMS, ReduceParams, dims, "[]"), OP_FIELD(OP_BOOL, ReduceParams, keepdim, "0")

FORCE_INLINE TensorShape reduce_dims(const ReduceParams *p) { return (TensorShape){ p->dims.n, p->dims.at }; }
ReduceParams reduce_params(int dim, TensorShape dims, bool keepdim, double param);
int reduce_check(OpCall *c);            /* wraps dims */
int reduce_check_extreme(OpCall *c);    /* and refuses to reduce over nothing */
int reduce_shape(OpCall *c, int dtype); /* after a check: declares result 0 */
int reduce_forward(OpCall *c, int kind);
void reduce_mask(const ReduceParams *p, bool reduced[TENSOR_MAX_DIMS]);
int64_t reduce_count(TensorShape shape, const ReduceParams *p); /* elements that make one result */

/* In backward and compose: t of the result's shape with the reduced dims back as size 1; and repeated along
 * them to `to`. */
Tensor *reduce_keep(const ReduceParams *p, TensorShape to, Tensor *t);
Tensor *reduce_spread(const ReduceParams *p, TensorShape to, Tensor *t);

/* y = an element of x: 1 where x is equal to it (NaN to NaN), divided by their number, times g, and 0
 * elsewhere. */
Tensor *share_evenly(const ReduceParams *p, Tensor *x, Tensor *y, Tensor *g);

/* The gradient of values picked along dim by result 1, the indices: dy where they point, 0 elsewhere. */
Tensor *scatter_back(OpCall *c, Tensor *dy, int dim, bool keepdim);

/* [outer, n, inner] around a dim of x; rank 0 is [1, 1, 1]. */
typedef struct Around {
    int64_t outer, n, inner;
} Around;
Around around(TensorShape shape, int dim);

/* x dense and in a dtype that kernels compute in: itself, or f32 for halves.  Owned by the scope. */
Tensor *dense_float(const Tensor *x);

/* The order of all values (sort.c): element i as a number whose unsigned order is theirs; -0 is 0, NaN above
 * all. */
#define ORDER_NAN UINT64_MAX
uint64_t order_key(const void *x, int dtype, int64_t i);

/* unwanted - EVALUE where an option was given that another function of the same struct takes: to pass over it
 * would be worse. */
bool unwanted(bool given, const char *op, const char *option);
bool unwanted_result(Tensor **at, const char *op, const char *option);

#pragma GCC visibility pop

#endif
