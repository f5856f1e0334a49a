/* taps.cu - weighted picks from planes, and their transposes (TapsArgs in kernels.h): a thread makes one
 * element, and sums in the order of the taps, in f32 for halves.  spread gathers, by the places that name an
 * element. */
#include "cuda/index/segments.cuh"

/* weight x[index], 0 where the index names nothing. */
template <class T>
__device__ inline Compute<T> picked(const TapsArgs &a, const T *x, int64_t index, Compute<T> weight)
{
    return (uint64_t)index < (uint64_t)a.size ? weight * value_of(x[index]) : 0;
}

template <class T> __global__ void tap_sum_kernel(TapsArgs a)
{
    for (int64_t i = first_item(); i < a.batch * a.channels * a.points; i += item_step()) {
        int64_t plane = i;
        const int64_t point = split_off(plane, a.points), at = plane / a.channels * a.taps * a.points + point;
        const T *x = (const T *)a.x + plane * a.size;
        Compute<T> sum = 0;
        for (int64_t k = at; k < at + a.taps * a.points; k += a.points)
            sum += picked(a, x, a.index[k], value_of(((const T *)a.weight)[k]));
        put((T *)a.y + i, sum);
    }
}

template <class T> __global__ void tap_dot_kernel(TapsArgs a)
{
    for (int64_t i = first_item(); i < a.batch * a.taps * a.points; i += item_step()) {
        int64_t image = i;
        const int64_t point = split_off(image, a.points), index = a.index[i];
        image /= a.taps;
        const T *x = (const T *)a.x + image * a.channels * a.size,
                *y = (const T *)a.y + image * a.channels * a.points + point;
        Compute<T> sum = 0;
        for (int64_t c = 0; c < a.channels; c++)
            sum += picked(a, x + c * a.size, index, value_of(y[c * a.points]));
        put((T *)a.weight + i, sum);
    }
}

template <class T> __global__ void tap_spread_kernel(TapsArgs a, const int64_t *order, const int64_t *start)
{
    const int64_t entries = a.taps * a.points;
    for (int64_t i = first_item(); i < a.batch * a.channels * a.size; i += item_step()) {
        int64_t plane = i;
        const int64_t element = split_off(plane, a.size), image = plane / a.channels;
        const int64_t *from = start + image * (a.size + 1) + element;
        Compute<T> sum = 0;
        for (int64_t k = from[0]; k < from[1]; k++) {
            const int64_t entry = order[image * entries + k];
            sum += value_of(((const T *)a.weight)[image * entries + entry]) *
                   value_of(((const T *)a.y)[plane * a.points + entry % a.points]);
        }
        put((T *)a.x + i, sum);
    }
}

template <class T> int spread(const TapsArgs *a)
{
    const int64_t count = a->batch * a->channels * a->size;
    Segments segments(a->batch, a->taps * a->points, a->size);
    if (count == 0) return 0;
    if (segments.build(a->index)) return -1;
    auto kernel = &tap_spread_kernel<T>;
    LAUNCH(kernel, gpu_blocks(count), THREADS, *a, segments.order(), segments.start());
    return gpu_launched("taps");
}

int gpu_taps(TapsArgs *a)
{
    const int64_t count = a->batch * a->points * (a->kind == TAPS_SUM ? a->channels : a->taps);
    return with_float(a->dtype, [&]<class T>() {
        if (a->kind == TAPS_SPREAD) return spread<T>(a);
        if (count == 0) return 0;
        auto kernel = a->kind == TAPS_SUM ? &tap_sum_kernel<T> : &tap_dot_kernel<T>;
        LAUNCH(kernel, gpu_blocks(count), THREADS, *a);
        return gpu_launched("taps");
    });
}
