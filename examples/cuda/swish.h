/* swish.h - an op of the program's own, y = x sigmoid(x), and its kernels on a GPU. */
#ifndef SWISH_H
#define SWISH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Over n floats in a GPU's memory, queued in a stream (a cudaStream_t); NULL, or what CUDA says against the
 * launch.  threads: of a block. */
typedef struct SwishKernels {
    const char *(*forward)(void *stream, unsigned threads, int64_t n, const float *x, float *y);
    const char *(*backward)(void *stream, unsigned threads, int64_t n, const float *x, const float *dy,
                            float *dx);
} SwishKernels;

/* swish_register - from now on the op runs by these on a GPU: swish.cu calls it before main begins, so a
 * program has them if it is linked with swish.cu. */
void swish_register(const SwishKernels *kernels);

#ifdef __cplusplus
}
#endif
#endif
