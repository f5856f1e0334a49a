/* index_plan.h - functions shared by the ops that index by tensors. */
#ifndef TG_INDEX_PLAN_H
#define TG_INDEX_PLAN_H

#include "hidden.h"
#include "op/shape/shape_op.h"

HIDDEN_BEGIN

/* call_index_dtype - 0, or -1 and EDTYPE unless index is i64, i32 or u8. */
int call_index_dtype(OpCall *c, const Tensor *index);

/* call_source_dtype - 0, or -1 and EDTYPE unless source has x's dtype. */
int call_source_dtype(OpCall *c, const Tensor *source, const Tensor *x);

/* fail_index - EINDEX: the value at a row-major position of index is not one of n.  Returns -1. */
int fail_index(OpCall *c, const Tensor *index, int64_t position, int64_t value, int64_t n) COLD;

/* check_indices - 0, or -1 as fail_index where index has a value outside [0, n), unless its device tells
 * that late. */
int check_indices(OpCall *c, const Tensor *index, int64_t n);

/* An index along one dimension of a tensor of some shape. */
typedef struct IndexPlan {
    int dim;
    int64_t outer, n, m, inner; /* the tensor is [outer, n, inner], what is picked [outer, m, inner] */
    bool shared;                /* one index list for all outer and inner (index_select) */
} IndexPlan;

/* index_plan - for an index that has a place of its own for each element of what is picked (gather). */
IndexPlan index_plan(TensorShape x, const Tensor *index, int dim);

/* index_within - x held to index's sizes: in all dimensions (dim = -1), or in all but dim. */
Tensor *index_within(const Tensor *x, const Tensor *index, int dim);

/* run_gather - dst = src picked at index;  run_scatter_add - dst += src at index, in order.  All are dense;
 * EINDEX names the first index that is out of range, and nothing is written then.  Halves are summed in f32.
 * run_scatter_fold - dst, of f64 or i64, folded with src at index. */
int run_gather(OpCall *c, const IndexPlan *plan, const Tensor *src, const Tensor *index, Tensor *dst);
int run_scatter_add(OpCall *c, const IndexPlan *plan, const Tensor *src, const Tensor *index, Tensor *dst);
int run_scatter_fold(OpCall *c, const IndexPlan *plan, FoldKind how, bool include_self, const Tensor *src,
                     const Tensor *index, Tensor *dst);

/* last_writers - i64, of a shape that is [outer, n, inner] of the plan: which of the m places of index names
 * the element last; -1: none does.  By the kernels of index's device. */
Tensor *last_writers(OpCall *c, const IndexPlan *plan, const Tensor *index, TensorShape shape);

HIDDEN_END

#endif
