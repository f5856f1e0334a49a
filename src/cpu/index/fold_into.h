/* fold_into.h - elements of a source folded into those of a target that positions name. */
#ifndef TG_FOLD_INTO_H
#define TG_FOLD_INTO_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef enum FoldInto { FOLD_SUM, FOLD_PROD, FOLD_MEAN, FOLD_AMAX, FOLD_AMIN } FoldInto; /* as TensorInto */

/* fold_into - y, of n elements, takes the m elements of src in order, element k at y[at[k]].  count, room for
 * n, says of each element of y how many it is of; include_self: what is there counts.  Means of integers
 * round down, NaN wins extremes, integers wrap. */
void fold_into_f64(FoldInto how, bool include_self, double *y, int64_t n, const int64_t *at,
                   const double *src, int64_t m, int64_t *count);
void fold_into_i64(FoldInto how, bool include_self, int64_t *y, int64_t n, const int64_t *at,
                   const int64_t *src, int64_t m, int64_t *count);

#pragma GCC visibility pop
#endif
