/* op.h - included by the op sources: the core, and every op that one may be composed of.  The core and the
 * devices do not include it, so a change of an op's header recompiles the ops and not the kernels. */
#ifndef TG_OP_H
#define TG_OP_H

#include <tapegrad/ops.h>
#include "hidden.h"
#include "tensor/core.h"

/* In a descriptor: the parameter struct, its defaults, its table of fields; PARAMS_GIVEN if no field has a
 * default. */
#define PARAMS(struct_, defaults_, fields_) \
    .params = sizeof(struct_), .defaults = &(defaults_), .fields = (fields_)
#define PARAMS_GIVEN(struct_, fields_) .params = sizeof(struct_), .fields = (fields_)

HIDDEN_BEGIN

/* call_dim - dim counted from the front; -1 and EINDEX where the shape has no such dim, -1 and EVALUE for
 * TENSOR_ALL: "dim must be given" (shape/shape_op.c). */
int call_dim(OpCall *c, int64_t dim, TensorShape shape);

/* find_dim - the same in a function that is no op. */
int find_dim(const char *op, const Tensor *x, int64_t dim);

/* call_dim_or_all - 0, and *dim counted from the front or left as TENSOR_ALL; or -1 as call_dim. */
int call_dim_or_all(OpCall *c, int *dim, TensorShape shape);

/* call_dims - 0, and the list holds dims counted from the front, each once; or -1: EINDEX as call_dim, or the
 * given code for a dim that is named twice. */
int call_dims(OpCall *c, TensorShape *list, TensorShape shape, TensorStatus twice);

/* raw_add_into - dst += src, which broadcasts, outside the graph; cannot run out of memory
 * (elementwise/rows.c). */
int raw_add_into(Tensor *dst, const Tensor *src);

/* scatter_as - tensor_scatter under another name (index/scatter.c). */
Tensor *scatter_as(const char *name, Tensor *x, int dim, Tensor *index, Tensor *src, const void *site);

HIDDEN_END

#endif
