/* pool.h - what the pools over 1, 2 and 3 dimensions share.
 *
 * A list has no numbers (the default), one for all dimensions, or one for each.  Kernels see depth, height
 * and width, where missing ones have size 1. */
#ifndef TG_POOL_H
#define TG_POOL_H

#include "op/reduce/reduce.h"
#include "window.h"

#pragma GCC visibility push(hidden)

typedef struct PoolParams {
    OpDims kernel, stride, padding, dilation; /* none: 1, the kernel's, 0, 1 */
    bool ceil_mode, count_include_pad;
    int64_t divisor_override; /* 0: none */
    OpDims size;              /* of the result's last dimensions; adaptive pools and gradients */
    bool adaptive;
    int spatial; /* how many dimensions; shape rules set it */
} PoolParams;

#define POOL_FIELDS                                                                           \
    OP_FIELD(OP_DIMS, PoolParams, kernel, NULL), OP_FIELD(OP_DIMS, PoolParams, stride, "[]"), \
        OP_FIELD(OP_DIMS, PoolParams, padding, "[]"), OP_FIELD(OP_BOOL, PoolParams, ceil_mode, "0")
#define POOL_SIZE_FIELD                                          \
    {                                                            \
        "output_size", OP_DIMS, offsetof(PoolParams, size), NULL \
    }

/* Of a line that is pooled or made: guards the arithmetic of sizes, as WINDOW_LIMIT does for windows. */
enum { LINE_LIMIT = INT32_MAX };

/* pool_rank - x is [batch, channels, ...] or [channels, ...] with so many dimensions after them; notes them
 * in the parameters. */
int pool_rank(OpCall *c, const Tensor *x, int spatial);

/* pool_check - the windows' parameters; pool_sizes - out[0..spatial) for an input of in[0..spatial), or -1
 * and ESHAPE. */
int pool_check(OpCall *c, const PoolParams *p);
int pool_sizes(OpCall *c, const PoolParams *p, const int64_t *in, int64_t *out);

/* pool_result - declares result i: x's shape with other last sizes. */
int pool_result(OpCall *c, int i, const Tensor *x, const int64_t *last, int dtype);

/* Shape rules of result 0: of a pool by windows, and of an adaptive one. */
int pool_shape(OpCall *c, int spatial);
int pool_adaptive_shape(OpCall *c, int spatial);

/* pool_args - what kernels ask, for x and y of these shapes. */
PoolArgs pool_args(const PoolParams *p, int dtype, TensorShape x, TensorShape y);

/* pool_target - where a kernel is to write: out itself, or f32 for a half.  pool_deliver - and from there
 * into out. */
Tensor *pool_target(Tensor *out);
int pool_deliver(Tensor *out, const Tensor *from);

/* pool_params - of a function's options. */
PoolParams pool_params(OpDims kernel, OpDims stride, OpDims padding);
FORCE_INLINE OpDims dims_one(int64_t all) { return (OpDims){ 1, { all } }; }
FORCE_INLINE OpDims dims_each(int64_t all, const int64_t each[3])
{
    return each[0] || each[1] || each[2] ? (OpDims){ 3, { each[0], each[1], each[2] } } : dims_one(all);
}

#pragma GCC visibility pop
#endif
