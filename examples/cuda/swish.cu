/* swish.cu - the kernels of swish.h; compiled by nvcc. */
#include <cuda_runtime.h>
#include "swish.h"

/* Without nvcc, the tests of tapegrad run kernels on the CPU (test/cuemu), which has a macro for a launch. */
#ifdef __CUDACC__
#define LAUNCH(kernel, blocks, threads, stream, ...) kernel<<<blocks, threads, 0, stream>>>(__VA_ARGS__)
#else
#define LAUNCH CU_LAUNCH
#endif

static __global__ void forward_kernel(int64_t n, const float *x, float *y)
{
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1 + expf(-x[i]));
}

static __global__ void backward_kernel(int64_t n, const float *x, const float *dy, float *dx)
{
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float s = 1 / (1 + expf(-x[i]));
    dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
}

static unsigned blocks_for(int64_t n, unsigned threads) { return (unsigned)((n + threads - 1) / threads); }

/* A launch that CUDA refuses is told here, and cleared: the program has a CUDA runtime of its own, whose
 * errors tapegrad does not see. */
static const char *launched()
{
    const cudaError_t status = cudaGetLastError();
    return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

static const char *forward(void *stream, unsigned threads, int64_t n, const float *x, float *y)
{
    LAUNCH(forward_kernel, blocks_for(n, threads), threads, (cudaStream_t)stream, n, x, y);
    return launched();
}

static const char *backward(void *stream, unsigned threads, int64_t n, const float *x, const float *dy,
                            float *dx)
{
    LAUNCH(backward_kernel, blocks_for(n, threads), threads, (cudaStream_t)stream, n, x, dy, dx);
    return launched();
}

static const SwishKernels kernels = { forward, backward };
static const bool registered = (swish_register(&kernels), true);
