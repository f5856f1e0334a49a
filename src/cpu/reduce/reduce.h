/* reduce.h - what the two halves of the CPU's reductions share: positions, and who does what. */
#ifndef TG_CPU_REDUCE_H
#define TG_CPU_REDUCE_H

#include "cpu/cpu.h"
#include "hidden.h"

HIDDEN_BEGIN

/* reduce_position.c: the element offset of a row-major position of a strided space. */
int64_t reduce_offset(int64_t position, int ndim, const int64_t *shape, const int64_t *stride);

/* The offsets of n reduced positions, counted from `from`. */
void reduce_offsets(const ReduceArgs *a, int64_t from, int n, int64_t *offset);

/* reduce_exact.c: integer dtypes, in i64; and the place of the largest or smallest element, for all dtypes.
 */
void reduce_integers(ReduceArgs *a);
void reduce_index(ReduceArgs *a);

HIDDEN_END

#endif
