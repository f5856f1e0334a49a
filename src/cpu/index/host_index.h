/* host_index.h - host computations of index ops over dense i64 lists: ranges, positions, last writers.
 *
 * index is row-major, of ndim sizes; for one of them, dim, it names positions along a dim of a target whose
 * strides are given in elements. */
#ifndef TG_HOST_INDEX_H
#define TG_HOST_INDEX_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include "hidden.h"

HIDDEN_BEGIN

/* host_outside - the first of count values outside [low, end), or -1. */
int64_t host_outside(const int64_t *value, int64_t count, int64_t low, int64_t end);

/* host_bad_class - the first of count values outside [0, classes) that is not ignored, or -1. */
int64_t host_bad_class(const int64_t *value, int64_t count, int64_t classes, int64_t ignored);

/* host_count - how many of count values are v. */
int64_t host_count(const int64_t *value, int64_t count, int64_t v);

/* host_beyond - the first of count numbers below low or above high, or -1; NaN is neither. */
int64_t host_beyond(const double *value, int64_t count, double low, double high);

/* host_winners - written, of the target, is 1 where an index points; wins, of index, where it is the last one
 * that does.  written holds zeros. */
void host_winners(const int64_t *index, int64_t count, int ndim, const int64_t *shape, int dim,
                  const int64_t *stride, uint8_t *written, uint8_t *wins);

/* host_scatter - each element of src is written to y at its own place but in dim, where index says; the last
 * one wins.  index is dense, and of that shape; elements have `size` bytes. */
typedef struct HostScatter {
    void *y;
    const void *src;
    const int64_t *index, *shape, *y_stride, *src_stride;
    int ndim, dim;
    size_t size;
} HostScatter;
void host_scatter(const HostScatter *s);

/* host_last - of a list: written[v] is 1 for each value v, and from[v] the last place in the list that holds
 * it. Both hold zeros. */
void host_last(const int64_t *list, int64_t count, uint8_t *written, int64_t *from);

/* host_ranks - how many of mask are true before each element that is; 0 elsewhere.  Returns how many are. */
int64_t host_ranks(const uint8_t *mask, int64_t count, int64_t *rank);

/* host_unpool - y, planes of n elements of `size` bytes, is 0 but for element j of x, planes of m, at the
 * index[j] of its plane; the last one wins.  false, and nothing is written: an index lies outside [0, n). */
bool host_unpool(size_t size, int64_t planes, int64_t n, int64_t m, const void *x, const int64_t *index,
                 void *y);

/* host_frequency - each[k] = how often index[k] is there; count, of rows zeros, how often each value is.
 * Values outside count as 0. */
void host_frequency(const int64_t *index, int64_t n, int64_t rows, int64_t *count, double *each);

/* host_write_rows - row k of each of `outer` blocks of m rows of `size` bytes becomes row at[k] of the same
 * block of target, whose blocks have `rows`. */
void host_write_rows(void *target, int64_t rows, const void *source, int64_t outer, const int64_t *at,
                     int64_t m, size_t size);

HIDDEN_END
#endif
