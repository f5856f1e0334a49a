/* host_tables.h - small tables that shape ops make on the host: which element goes where.  Ops call them
 * directly: no device has a slot for them. */
#ifndef TG_HOST_TABLES_H
#define TG_HOST_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hidden.h"

HIDDEN_BEGIN

/* host_keep_triangles - of dense matrices, of elements of some bytes, those where column <= row + diagonal;
 * or, not lower, where column >= it; zeros elsewhere. */
void host_keep_triangles(char *to, const char *from, size_t size, int64_t matrices, int64_t rows,
                         int64_t columns, int64_t diagonal, bool lower);

/* host_pad - to [before + n + after]: which of n elements each one is; a negative end is cut off. */
typedef enum HostPad { HOST_PAD_REFLECT, HOST_PAD_REPLICATE } HostPad;
void host_pad(int64_t *to, HostPad mode, int64_t n, int64_t before, int64_t after);

/* host_choices - how many choices of r of n there are, each once or again and again; -1: beyond int64.
 * host_combinations - the first `count` of them in order, to [count, r]. */
int64_t host_choices(int64_t n, int64_t r, bool again);
void host_combinations(int64_t *to, int64_t count, int64_t n, int64_t r, bool again);

/* host_repeats - the sum of times[k step] for k of n; -1: *bad_at is a negative one's k; -2: beyond int64.
 * host_repeat - to = k, times[k step] times, for each k of n. */
int64_t host_repeats(const int64_t *times, int64_t step, int64_t n, int64_t *bad_at);
void host_repeat(int64_t *to, const int64_t *times, int64_t step, int64_t n);

/* host_offsets - first + sum_d (index[d] / each[d]) stride[d] for each index into shape, in row-major order;
 * each NULL: 1. */
void host_offsets(int64_t *to, int64_t first, int ndim, const int64_t *shape, const int64_t *each,
                  const int64_t *stride);

void host_pairs(int64_t *to, int64_t n); /* i n + j for all i < j < n */

/* To [n, n]: 1, ..., 1 or 1, 2, ..., n on the diagonal. */
void host_identity(double *to, int64_t n);
void host_count_diagonal(double *to, int64_t n);

HIDDEN_END
#endif
