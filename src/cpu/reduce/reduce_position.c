/* reduce_position.c - where in memory the positions of a reduction lie. */
#include "reduce.h"

int64_t reduce_offset(int64_t position, int ndim, const int64_t *shape, const int64_t *stride)
{
    int64_t offset = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        offset += position % shape[d] * stride[d];
        position /= shape[d];
    }
    return offset;
}

void reduce_offsets(const ReduceArgs *a, int64_t from, int n, int64_t *offset)
{
    const int last = a->reduced_ndim - 1;
    const int64_t size = a->reduced_shape[last], stride = a->reduced_stride[last];
    while (n > 0) {
        int64_t in_row = from % size,
                base = reduce_offset(from, a->reduced_ndim, a->reduced_shape, a->reduced_stride);
        int count = size - in_row < n ? (int)(size - in_row) : n;
        for (int i = 0; i < count; i++) offset[i] = base + i * stride;
        offset += count, from += count, n -= count;
    }
}
