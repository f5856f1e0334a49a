/* resample_table.cu - the weights of a line that gets another size (cpu/image/resample_taps.h), or of its
 * transpose: the places that name an element are found by sorting (segments.cuh).  Each result has a->taps
 * weights; those that it does not need are 0, of its last element. */
#include "cuda/index/segments.cuh"
#include "cpu/image/resample_taps.h"

struct TableCall {
    ResampleTableArgs a;
    int64_t *index; /* of the line itself */
    double *wide;
};

static __device__ inline void put_weight(const ResampleTableArgs &a, int64_t k, double weight)
{
    if (a.dtype == TENSOR_F64) ((double *)a.weight)[k] = weight;
    else ((float *)a.weight)[k] = (float)weight;
}

static __global__ void line_kernel(TableCall c)
{
    const int64_t taps = c.a.taps;
    for (int64_t i = first_item(); i < c.a.line.out; i += item_step()) {
        int64_t *const index = c.index + i * taps;
        double *const weight = c.wide + i * taps;
        const int n = resample_taps(&c.a.line, i, index, weight);
        for (int64_t k = n; k < taps; k++) index[k] = n ? index[n - 1] : 0, weight[k] = 0;
        if (c.a.transposed) continue;
        for (int64_t k = 0; k < taps; k++) put_weight(c.a, i * taps + k, weight[k]);
        c.a.start[i] = i * taps;
        if (i == c.a.line.out - 1) c.a.start[i + 1] = (i + 1) * taps;
    }
}

static __global__ void transposed_kernel(TableCall c, const int64_t *order, const int64_t *start)
{
    const int64_t n = c.a.line.out * c.a.taps, rows = c.a.line.in + 1;
    for (int64_t k = first_item(); k < n || k < rows; k += item_step()) {
        if (k < rows) c.a.start[k] = start[k];
        if (k >= n) continue;
        c.a.index[k] = order[k] / c.a.taps;
        put_weight(c.a, k, c.wide[order[k]]);
    }
}

int gpu_resample_table(ResampleTableArgs *a)
{
    const int64_t n = a->line.out * a->taps;
    Scratch index(a->transposed ? (size_t)n * 8 : 1), wide((size_t)n * 8);
    if (!index.data || !wide.data) return -1;
    const TableCall c = { *a, a->transposed ? (int64_t *)index.data : a->index, (double *)wide.data };
    LAUNCH(line_kernel, gpu_blocks(a->line.out), THREADS, c);
    if (gpu_launched("resample_table")) return -1;
    if (!a->transposed) return 0;
    Segments segments(1, n, a->line.in);
    if (segments.build(c.index)) return -1;
    LAUNCH(transposed_kernel, gpu_blocks(n > a->line.in ? n : a->line.in + 1), THREADS, c, segments.order(),
           segments.start());
    return gpu_launched("resample_table");
}
