/* pool.h - functions shared by the pools over 1, 2 and 3 dimensions. */
#ifndef TG_POOL_H
#define TG_POOL_H

#include "hidden.h"
#include "op/reduce/reduce.h"
#include "window.h"

HIDDEN_BEGIN

/* The windows of a call. */
typedef struct Pool {
    int rank;
    bool adaptive; /* they cover the input, and have no sizes of their own */
    bool ceil_mode, count_include_pad;
    int64_t divisor; /* 0: the count of a window */
    Sizes kernel, stride, pad, dilation;
} Pool;

typedef struct AdaptiveParams {
    TensorShape output_size;
} AdaptiveParams;
extern const OpField pool_adaptive_fields[];

/* pool_windows - reads and checks the options that all pools have.  pool->rank is given, and its dilation; a
 * stride of 0 is the kernel's size.  EVALUE. */
typedef struct PoolOption {
    int64_t all;
    const int64_t *each;
} PoolOption;
int pool_windows(OpCall *c, PoolOption kernel, PoolOption stride, PoolOption padding, Pool *pool);

/* pool_half_padding - EVALUE where the padding is more than half of a kernel. */
int pool_half_padding(OpCall *c, const Pool *pool);

/* pool_sizes - of the result, for an input of these; ESHAPE where there is no room for a window. */
int pool_sizes(OpCall *c, const Pool *pool, const Sizes *in, Sizes *out);

/* pool_result - declares result i: x's shape with other last sizes. */
int pool_result(OpCall *c, int i, const Tensor *x, const Sizes *last, int rank, int dtype);

/* Shape rules of result 0: of a pool by windows, and of an adaptive one. */
int pool_shape(OpCall *c, const Pool *pool);
int pool_adaptive_shape(OpCall *c);

/* pool_args - what kernels ask, for x and y of these shapes. */
PoolArgs pool_args(const Pool *pool, int dtype, TensorShape x, TensorShape y);

/* pool_deliver - from where a kernel wrote (TARGET_FOR) into out. */
int pool_deliver(Tensor *out, const Tensor *from);

HIDDEN_END
#endif
