/* resample.cu - planes resampled axis by axis (ResampleArgs in kernels.h): a thread makes one element from
 * its few taps.  Axes that shrink come first, so that what lies between two passes is small. */
#include "cuda/cuda.cuh"

struct ResamplePass {
    int64_t outer, inner; /* x [outer, in, inner], y [outer, out, inner] */
    ResampleAxis axis;
    const void *x;
    void *y;
};

template <class T> __global__ void resample_kernel(ResamplePass p)
{
    for (int64_t i = first_item(); i < p.outer * p.axis.out * p.inner; i += item_step()) {
        int64_t row = i;
        const int64_t column = split_off(row, p.inner), at = split_off(row, p.axis.out);
        const T *x = (const T *)p.x + row * p.axis.in * p.inner + column;
        T sum = 0;
        for (int64_t k = p.axis.start[at]; k < p.axis.start[at + 1]; k++)
            sum += ((const T *)p.axis.weight)[k] * x[p.axis.index[k] * p.inner];
        ((T *)p.y)[i] = sum;
    }
}

static int run_pass(int dtype, const ResamplePass *p)
{
    auto kernel = dtype == TENSOR_F64 ? &resample_kernel<double> : &resample_kernel<float>;
    const int64_t count = p->outer * p->axis.out * p->inner;
    if (count == 0) return 0;
    LAUNCH(kernel, gpu_blocks(count), THREADS, *p);
    return gpu_launched("resample");
}

/* The axes that have a table, in the order of the passes. */
static int passes_of(const ResampleArgs *a, int *order)
{
    int passes = 0;
    for (int i = 0; i < 3; i++)
        if (a->axis[i].start && a->axis[i].out < a->axis[i].in) order[passes++] = i;
    for (int i = 2; i >= 0; i--)
        if (a->axis[i].start && a->axis[i].out >= a->axis[i].in) order[passes++] = i;
    return passes;
}

static int copy_planes(const ResampleArgs *a, int64_t count)
{
    CopyArgs c = {};
    c.ndim = 1, c.count = c.shape[0] = count;
    c.dst.data = a->y, c.src.data = (void *)(uintptr_t)a->x;
    c.dst.dtype = c.src.dtype = a->dtype, c.dst.stride[0] = c.src.stride[0] = 1;
    return gpu_copy(&c);
}

int gpu_resample(ResampleArgs *a)
{
    int order[3];
    int64_t now[3] = { a->axis[0].in, a->axis[1].in, a->axis[2].in }, most = 0;
    const int passes = passes_of(a, order);
    if (passes == 0) return copy_planes(a, a->planes * now[0] * now[1] * now[2]);
    for (int k = 0; k < passes - 1; k++) {
        now[order[k]] = a->axis[order[k]].out;
        if (now[0] * now[1] * now[2] > most) most = now[0] * now[1] * now[2];
    }
    const size_t between = (size_t)(a->planes * most) * gpu_dtype_size(a->dtype);
    Scratch one(passes > 1 ? between : 1), two(passes > 2 ? between : 1);
    if (!one.data || !two.data) return -1;
    const void *from = a->x;
    for (int i = 0; i < 3; i++) now[i] = a->axis[i].in;
    for (int k = 0; k < passes; k++) {
        const int d = order[k];
        void *const to = k == passes - 1 ? a->y : k == 0 ? one.data : two.data;
        ResamplePass p = { a->planes, 1, a->axis[d], from, to };
        for (int i = 0; i < d; i++) p.outer *= now[i];
        for (int i = d + 1; i < 3; i++) p.inner *= now[i];
        if (run_pass(a->dtype, &p)) return -1;
        now[d] = a->axis[d].out, from = to;
    }
    return 0;
}
