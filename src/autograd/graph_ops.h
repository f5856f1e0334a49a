/* graph_ops.h - the few ops that the tape itself records, in a table that the ops fill (src/op/core_ops.c),
 * so that the core includes no op. */
#ifndef TG_GRAPH_OPS_H
#define TG_GRAPH_OPS_H

#include "tensor/core.h"

typedef struct GraphOps {
    const TensorOp *cast; /* what `to` records */
    Tensor *(*to)(Tensor *x, TensorDtype dtype);
    Tensor *(*to_device)(Tensor *x, const char *device);
    Tensor *(*add)(Tensor *a, Tensor *b);
    int (*add_into)(Tensor *dst, const Tensor *src); /* not recorded; cannot run out of memory */
    Tensor *(*sum_to)(Tensor *x,
                      TensorShape shape); /* over the dims along which shape was broadcast to x's */
    Tensor *(*expand)(Tensor *x, TensorShape shape);
    Tensor *(*clone)(Tensor *x);
    Tensor *(*contiguous)(Tensor *x);
} GraphOps;

extern const GraphOps graph_ops HIDDEN;

#endif
