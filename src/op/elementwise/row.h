/* row.h - functions shared by the files that run the elementwise rows. */
#ifndef TG_ROW_H
#define TG_ROW_H

#include "cpu/elementwise/map_fused.h"
#include "hidden.h"
#include "tensor/core.h"

HIDDEN_BEGIN

/* row_map - runs one part of a row (map over an index space).  out has the result's shape; in[] broadcast to
 * it, NULL where the part does not read them. */
int row_map(const TensorOp *op, const char *name, int part, Tensor *out, Tensor *const in[ROW_OPERANDS],
            const double *params);

/* fused_result - sets result 0 to a fused row of n operands, which broadcast; params: FUSED_PARAMS numbers,
 * or NULL.  false: nothing was done, for it serves f32 and f64 on the host where no graph is recorded. */
bool fused_result(OpCall *c, FusedRow row, int n, Tensor *const *x, const double *params);

/* row_dtype - the dtype to compute in, after every check of dtypes and parameters; -1 and an error. */
int row_dtype(const TensorOp *op, const char *name, const Tensor *a, const Tensor *b, const double *params,
              const void *site);

/* row_apply_ - row_apply_as (core.h) in place: into x, which is a. */
Tensor *row_apply_(const TensorOp *op, const char *name, Tensor *x, Tensor *b, const double *params,
                   const void *site);

HIDDEN_END
#endif
