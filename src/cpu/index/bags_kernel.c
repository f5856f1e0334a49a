/* bags_kernel.c - sums of rows over bags, for one instruction set. */
#include "bags.h"

/* On one thread: bags of all sizes follow each other. */
#define SUM(type, name)                                                \
    void ISA_NAME(name)(const BagSum *b)                               \
    {                                                                  \
        const type *weight = b->weight, *each = b->each;               \
        for (int64_t k = 0; k < b->kept; k++) {                        \
            const type *row = weight + b->index[k] * b->width;         \
            type *y = (type *)b->y + b->bag[k] * b->width;             \
            const type w = each ? each[b->position[k]] : 1;            \
            INDEPENDENT                                                \
            for (int64_t d = 0; d < b->width; d++) y[d] += w * row[d]; \
        }                                                              \
    }
SUM(float, bags_sum_f32)
SUM(double, bags_sum_f64)
