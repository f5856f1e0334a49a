/* device.h - where tensors live, how much memory they take, how many threads compute.
 *
 *     printf("%s", tensor_build_info());
 *     tensor_set_default_device("cuda:0");             // or "cpu"
 *     Tensor *y = tensor_to_device(x, "cpu");
 *
 * "cpu" is always there.  "cuda:N" needs the plugin libtapegrad_cuda.so (looked for in $TAPEGRAD_PLUGIN_DIR,
 * beside the library, then by the system's rules) and a driver; what is missing is said by an EDEVICE error.
 */
#ifndef TAPEGRAD_DEVICE_H
#define TAPEGRAD_DEVICE_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tensor_set_default_device - where this thread's new tensors are made from now on.  -1, EDEVICE and no
 * change if the device cannot be used. */
TAPEGRAD_API int tensor_set_default_device(const char *device);
TAPEGRAD_API const char *tensor_default_device(void);
TAPEGRAD_API bool tensor_device_available(const char *device); /* opens it if need be; records no error */
TAPEGRAD_API int tensor_synchronize(const char *device);       /* waits for all work that was queued there */

/* Memory of tensors' data on the CPU.  Freed blocks are kept for the next tensor of their size class, so that
 * a training step in the steady state asks the system for no memory. */
typedef struct TensorMemory {
    int64_t in_use;       /* bytes in blocks that are held now */
    int64_t peak;         /* the most that in_use has been since the last reset */
    int64_t cached;       /* bytes kept for reuse */
    int64_t system_calls; /* times memory was asked from the system, ever */
    int64_t limit;        /* the most that in_use + cached may reach; 0: none */
} TensorMemory;

/* tensor_memory - what the CPU's memory holds now.
 * tensor_memory_reset_peak - peak becomes in_use. */
TAPEGRAD_API TensorMemory tensor_memory(void);
TAPEGRAD_API void tensor_memory_reset_peak(void);
TAPEGRAD_API void tensor_memory_set_limit(int64_t bytes); /* allocations beyond it fail with ENOMEM */
TAPEGRAD_API void tensor_memory_release(void);            /* gives cached blocks back to the system */

/* Threads for one operation; the default is OMP_NUM_THREADS, else the cores of the machine.  The results do
 * not depend on it.  set: EVALUE below 1. */
TAPEGRAD_API int tensor_set_num_threads(int threads);
TAPEGRAD_API int tensor_num_threads(void);

/* tensor_parallel_for - span(ctx, from, to) for spans that cover [0, n), on as many threads as pay for it;
 * returns when all are done.  work: of one step, in simple operations.  For kernels of your own: the result
 * must not depend on how [0, n) is cut. */
TAPEGRAD_API void tensor_parallel_for(int64_t n, int64_t work,
                                      void (*span)(void *ctx, int64_t from, int64_t to), void *ctx);

/* tensor_build_info - version, CPU features in use, BLIS version and sub-configuration, LAPACK's library,
 * threads, devices, and of what is missing why: the text that `tapegrad info` prints.  Valid until the next
 * call on this thread. */
TAPEGRAD_API const char *tensor_build_info(void);

#ifdef __cplusplus
}
#endif
#endif
