/* bags.c - see bags.h. */
#include "bags.h"

static int64_t end_of(const BagIndex *b, int64_t bag)
{
    if (!b->offsets) return (bag + 1) * b->each;
    return bag + 1 < b->last ? b->offsets[bag + 1] : b->m;
}

int64_t bags_bad_offset(const int64_t *offset, int64_t n, int64_t m)
{
    for (int64_t b = 0; b < n; b++)
        if (b ? offset[b] < offset[b - 1] || offset[b] > m : offset[0] != 0) return b;
    return -1;
}

int64_t bags_sort(const BagIndex *b)
{
    const int64_t *index = b->index, padding = b->padding;
    int64_t *restrict index_kept = b->kept, *restrict of = b->bag, *restrict position = b->position, kept = 0,
                      k = 0;
    for (int64_t bag = 0; bag < b->n; bag++) {
        const int64_t end = end_of(b, bag), before = kept;
        for (; k < end; k++) {
            index_kept[kept] = index[k], of[kept] = bag, position[kept] = k;
            kept += index[k] != padding;
        }
        b->count[bag] = kept - before;
    }
    return kept;
}

void bags_largest(const double *value, const int64_t *bag, int64_t kept, int64_t width, int64_t *best)
{
    for (int64_t k = 0; k < kept; k++) {
        const bool first = k == 0 || bag[k] != bag[k - 1];
        int64_t *at = best + bag[k] * width;
        for (int64_t d = 0; d < width; d++)
            if (first || value[k * width + d] > value[at[d] * width + d]) at[d] = k;
    }
}
