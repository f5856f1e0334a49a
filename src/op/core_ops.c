/* core_ops.c - the ops that the tape records by itself (src/autograd/graph_ops.h). */
#include "autograd/graph_ops.h"
#include "op/op.h"

/* The same sum as raw_sum_to, on the graph. */
static Tensor *sum_to(Tensor *g, TensorShape shape)
{
    int64_t dims[TENSOR_MAX_DIMS];
    int n = 0, extra = g->ndim - shape.ndim;
    if (extra < 0) return g;
    for (int d = 0; d < g->ndim; d++)
        if (d < extra || (shape.dim[d - extra] == 1 && g->shape[d] != 1)) dims[n++] = d;
    if (n) g = tensor_sum(g, .dims = (TensorShape){ n, dims }, .keepdim = true);
    return extra ? tensor_reshape(g, shape) : g;
}

HIDDEN extern const TensorOp op_to;

const GraphOps graph_ops = { .cast = &op_to,
                             .to = tensor_to,
                             .to_device = tensor_to_device,
                             .add = tensor_add,
                             .add_into = raw_add_into,
                             .sum_to = sum_to,
                             .expand = tensor_expand,
                             .clone = tensor_clone,
                             .contiguous = tensor_contiguous };
