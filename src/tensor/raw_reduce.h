/* raw_reduce.h - reductions outside the graph. */
#ifndef TG_RAW_REDUCE_H
#define TG_RAW_REDUCE_H

#include "core.h"
#include "hidden.h"

HIDDEN_BEGIN
/* raw_reduce - a ReduceKind over the dims with reduced[dim]; new reference.  _into: out is dense, of the
 * right count; halves are computed in f32. */
Tensor *raw_reduce(const Tensor *x, int kind, const bool reduced[], bool keepdim, int out_dtype,
                   double param);
int raw_reduce_into(Tensor *out, const Tensor *x, int kind, const bool reduced[], double param);
HIDDEN_END

#endif
