/* bags.h - which bag of embedding_bag each index belongs to, and which rows are the largest. */
#ifndef TG_BAGS_H
#define TG_BAGS_H

#include <stdbool.h>
#include <stdint.h>
#include "cpu/isa.h"
#include "hidden.h"

HIDDEN_BEGIN

typedef struct BagIndex {
    const int64_t *index;           /* of all bags, one behind the other */
    const int64_t *offsets;         /* where bag b begins, of n or n + 1; NULL: every bag has `each` */
    int64_t m, n, each, last;       /* indices, bags, indices a bag, offsets */
    int64_t padding;                /* an index that is left out; -1: none */
    int64_t *kept, *bag, *position; /* results: the indices that count, their bags and places */
    int64_t *count;                 /* result: how many in each bag (zeros before) */
} BagIndex;

/* bags_bad_offset - which of n offsets is wrong first: not 0 at first, falling, above m; -1: none. */
int64_t bags_bad_offset(const int64_t *offset, int64_t n, int64_t m);

/* bags_sort - fills the results; returns how many indices count. */
int64_t bags_sort(const BagIndex *b);

/* bags_largest - for each bag and column the number k of the first largest of value, [kept, width], its rows
 * in the order of their bags; 0 for empty bags (best holds zeros). */
void bags_largest(const double *value, const int64_t *bag, int64_t kept, int64_t width, int64_t *best);

/* Row bag_k of y, which holds zeros, += each_k (NULL: 1) times row index_k of weight, for k in order. */
typedef struct BagSum {
    const int64_t *index, *bag;
    int64_t kept, width;
    const void *weight, *each;
    void *y;
} BagSum;
ISA_DECLARE(void, bags_sum_f32, const BagSum *b);
ISA_DECLARE(void, bags_sum_f64, const BagSum *b);

/* dw_k = row index_k of x times row bag_k of dy; sums of STEPS products in T, these in double. */
typedef struct BagDot {
    const int64_t *index, *bag;
    int64_t kept, width;
    const void *x, *dy;
    void *dw;
} BagDot;
ISA_DECLARE(void, bags_dot_f32, const BagDot *b);
ISA_DECLARE(void, bags_dot_f64, const BagDot *b);

HIDDEN_END
#endif
