/* host_lists.h - loops over dense arrays in host memory whose results' sizes the values decide: counting,
 * positions, groups of equal slices.  Ops call them directly: no device has a slot for them. */
#ifndef TG_HOST_LISTS_H
#define TG_HOST_LISTS_H

#include <stdbool.h>
#include <stdint.h>
#include "hidden.h"

HIDDEN_BEGIN

/* ---- masks ---- */
int64_t count_true(const uint8_t *mask, int64_t n);
void positions_true(const uint8_t *mask, int64_t n, int64_t *to);

/* The indices [most, ndim] of the first `most` elements under a mask of the given shape; rows for which there
 * are none hold fill. */
void indices_true(const uint8_t *mask, int ndim, const int64_t *shape, int64_t most, int64_t fill,
                  int64_t *to);

/* ---- counts ---- */
/* bincount_size - the largest of n integers of a dtype plus one, at least `least`; -1: one is negative.
 * bincount_weighted - of four weights one goes into sums, the others into `odd`, three times as long and
 *     added in the end; it may be sums. */
int64_t bincount_size(int dtype, const void *x, int64_t n, int64_t least, int64_t *bad_at,
                      int64_t *bad_value);
void bincount(int dtype, const void *x, int64_t n, int64_t *counts);
void bincount_weighted(int dtype, const void *x, int weight_dtype, const void *weight, int64_t n,
                       int64_t bins, double *sums, double *odd);

/* histogram - counts of the elements in bins equal parts of [min, max]; others are not counted.
 * finite_range - the least and the largest of n > 0 elements; not -1: the place of one that is not finite. */
int64_t finite_range(const double *x, int64_t n, double *min, double *max);
void histogram(const double *x, int64_t n, int64_t bins, double min, double max, double *counts);

/* ---- slices: x [n, width], as f64 or as i64 (the other one is NULL) ---- */
typedef struct Slices {
    int64_t n, width;
    const double *f;
    const int64_t *i;
} Slices;

void count_up(int64_t *to, int64_t n); /* 0, 1, ..., n - 1 */

/* sort_slices - the positions `from` in the order of their slices, element by element, NaN last; stable.
 * Returns from or to, whichever holds the result. */
int64_t *sort_slices(const Slices *s, int64_t *from, int64_t *to);

/* group_slices - groups of equal neighbours in order: the position that stands for each group, how many it
 * has, and the group of each slice.  NaN equals nothing.  Returns the number of groups. */
int64_t group_slices(const Slices *s, const int64_t *order, int64_t *first, int64_t *count, int64_t *inverse);

HIDDEN_END
#endif
