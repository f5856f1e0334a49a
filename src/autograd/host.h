/* host.h - the host fallback, for calls without a kernel on the device. */
#ifndef TG_AUTOGRAD_HOST_H
#define TG_AUTOGRAD_HOST_H

#include "graph_ops.h"
#include "hidden.h"
#include "tape.h"

HIDDEN_BEGIN

/* has_kernels - does the op go through kernels of the device's at all?  A kernel may still decline a call. */
FORCE_INLINE bool has_kernels(const TensorOp *op, const Place *place)
{
    return on_host(place) || (op->flags & OP_ANY_DEVICE) || op->row;
}

/* host_begin - copies of the call's inputs, owned by the scope, take their place.  EDEVICE: not allowed.
 * host_end - results, saved tensors and commits go where the inputs lie. */
int host_begin(OpCall *c, const Place *place, Tensor **copy);
int host_end(OpCall *c, const Place *place, Tensor *const *inputs);

/* backward_somewhere - the op's backward, on the device of its operands or, where that has no kernel for it,
 * from copies in the host's memory: gradients may then lie there. */
int backward_somewhere(OpCall *c);

HIDDEN_END
#endif
