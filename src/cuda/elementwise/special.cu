/* special.cu - zeta and the incomplete gamma functions (SpecialArgs in kernels.h), in double. */
#include "cuda/cuda.cuh"
#include "cpu/math/special.h"

static __global__ void special_kernel(SpecialArgs a)
{
    for (int64_t i = first_item(); i < a.count; i += item_step())
        a.y[i] = special_pair(a.kind, a.a[i], a.b[i]);
}

int gpu_special(SpecialArgs *a)
{
    if (a->count == 0) return 0;
    LAUNCH(special_kernel, gpu_blocks(a->count), THREADS, *a);
    return gpu_launched("special");
}
