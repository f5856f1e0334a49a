/* segments.cu - indices are sorted with their places, stably; where each value begins a bisection finds. */
#include "segments.cuh"

struct StartCall {
    int64_t lists, m, n;
    const int64_t *sorted;
    int64_t *start;
};

static __global__ void start_kernel(StartCall c)
{
    for (int64_t i = first_item(); i < c.lists * (c.n + 1); i += item_step()) {
        int64_t list = i;
        const int64_t value = split_off(list, c.n + 1), *sorted = c.sorted + list * c.m;
        int64_t low = 0, high = c.m;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (sorted[middle] < value) low = middle + 1;
            else high = middle;
        }
        c.start[i] = low;
    }
}

int Segments::build(const int64_t *index)
{
    if (!places.data || !starts.data) return -1;
    Scratch sorted((size_t)(lists * m) * 8);
    if (!sorted.data) return -1;
    OrderArgs o = {};
    o.kind = ORDER_FIRST, o.dtype = TENSOR_I64, o.outer = lists, o.n = o.m = o.k = m, o.inner = 1;
    o.x = index, o.values = sorted.data, o.indices = (int64_t *)places.data;
    if (gpu_order(&o)) return -1;
    const StartCall c = { lists, m, n, (const int64_t *)sorted.data, (int64_t *)starts.data };
    LAUNCH(start_kernel, gpu_blocks(lists * (n + 1)), THREADS, c);
    return gpu_launched("segments");
}
