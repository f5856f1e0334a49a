/* device.h - where tensors live, how much memory they take, how many threads compute.
 *
 *     printf("%s", tensor_build_info());
 *     tensor_set_default_device("cuda:0");             // or "cpu"
 *     Tensor *y = tensor_to_device(x, "cpu");
 *
 * "cpu" is always available.  "cuda:N" needs a driver and the plugin libtapegrad_cuda.so, which is searched
 * in $TAPEGRAD_PLUGIN_DIR, beside the library, then by the system's rules.  An EDEVICE error names what is
 * missing.
 *
 * Other devices than the CPU queue work, and check values (indices, divisors, lengths) while they work: the
 * next wait, a read or tensor_synchronize, reports the first wrong one, with the function that the program
 * called, its source line, the value and its position.  Until then such an index counts as 0 where it is
 * read, and nothing is written for it.  With TAPEGRAD_CUDA_SYNC=1 in the environment each call waits, and
 * reports its own.
 *
 * The plugin opens CUDA's libraries when it first needs them: cuBLAS for products; NVRTC for a
 * program's rows; cuDNN 9, where it is found, for convolutions and for attention of f16 and bf16, by engines
 * that give the same bits each time and, of f32, compute in f32 (TF32: tensor_set_float32_matmul_precision).
 * Other calls, and all with TAPEGRAD_CUDNN=0 in the environment, go by kernels of the plugin's own.
 * Attention goes by cuDNN (9.16 or later) forward, without a mask or dropout, where widths are multiples of
 * 8, up to 256, and all begins at 16 bytes.  Its gradients go by the plugin's own kernels up to widths of
 * 128, by cuDNN above, where it has an engine, and, with TAPEGRAD_CUDNN=all, wherever it has one: that takes
 * memory as large as the scores. */
#ifndef TAPEGRAD_DEVICE_H
#define TAPEGRAD_DEVICE_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tensor_set_default_device - sets the device of this thread's new tensors.  -1 and EDEVICE, with no change:
 * the device cannot be used. */
TAPEGRAD_API int tensor_set_default_device(const char *device);
TAPEGRAD_API const char *tensor_default_device(void);
TAPEGRAD_API bool tensor_device_available(const char *device); /* opens it if necessary; records no error */
TAPEGRAD_API int tensor_synchronize(const char *device);       /* waits for all work queued there */

/* tensor_device_stream - the stream of this thread's work on a device (PyTorch's current_stream): the
 *     cudaStream_t of "cuda:0".  Launch your own kernels in it: they run after the work queued before and
 *     before the work queued later.  tensor_data gives them addresses; call tensor_bump_version on a tensor
 *     that one writes.  Ask cudaGetLastError after a launch, as examples/cuda does: the plugin has a CUDA
 *     runtime of its own, and need not see what yours refused.  NULL: the CPU has no stream; or, with an
 *     error, EDEVICE: no such device, ENULL. */
TAPEGRAD_API void *tensor_device_stream(const char *device);

/* ---- events, asynchronous copies ------------------------------------------------------------
 *
 * A device runs queued work in order; the host waits only to read a value, or for an event:
 *
 *     TensorEvent *ready = tensor_event("cuda:0", false);
 *     TENSOR_COPY_STREAM("cuda:0")
 *     {
 *         next = tensor_to_device(pinned, "cuda:0"); // while the device computes
 *         tensor_event_record(ready);
 *     }
 *     ...                                            // the rest of the previous step
 *     tensor_event_wait(ready);                      // work queued from here on may read next
 *
 * tensor_event - makes an event, as torch.cuda.Event; enable_timing: for tensor_event_elapsed_time.  NULL:
 *     EDEVICE, ENULL, ENOMEM.
 * tensor_event_record - places the event after the work queued so far: inside TENSOR_COPY_STREAM, after this
 *     thread's copies.  An event may be recorded again.
 * tensor_event_query - 1: the work before the event is done; 0: not yet; -1: failed.
 * tensor_event_synchronize - the host waits for the event.  Unlike tensor_synchronize, it does not report
 *     indices out of range.
 * tensor_event_wait - work queued on the device from now on waits for the event; the host does not wait.
 *     An event that was never recorded counts as passed for these three.
 * tensor_event_elapsed_time - the milliseconds from start to end.  NaN: EVALUE: an event was not recorded,
 *     made without enable_timing, or has not passed; EDEVICE.
 * The CPU queues nothing: its events have passed once they are recorded. */
typedef struct TensorEvent TensorEvent;
TAPEGRAD_API TensorEvent *tensor_event(const char *device, bool enable_timing);
TAPEGRAD_API void tensor_event_free(TensorEvent *event);
TAPEGRAD_API int tensor_event_record(TensorEvent *event);
TAPEGRAD_API int tensor_event_query(TensorEvent *event);
TAPEGRAD_API int tensor_event_synchronize(TensorEvent *event);
TAPEGRAD_API int tensor_event_wait(TensorEvent *event);
TAPEGRAD_API double tensor_event_elapsed_time(TensorEvent *start, TensorEvent *end);

/* TENSOR_COPY_STREAM(device) { ... } - in the block, this thread's copies between the CPU and that device
 *     (tensor_to_device, tensor_copy_) run in a second stream, while the device computes.  No effect on the
 *     CPU.
 *     A copy that makes a tensor on the device starts at once: no queued work uses its memory.  A copy into
 *     an existing tensor, or to the CPU, starts after the work queued before it.  With pinned memory on the
 *     host's side the call only queues the copy: leave that memory alone until the copy is done.  With other
 *     memory the call returns when the memory may be changed, or is filled.
 *     No other work waits for such a copy: record an event after it, and wait for the event before you use
 *     the values.  A tensor may be freed at any time.
 *     The block ends however it is left; break leaves only the block.
 * tensor_pin_memory - a copy of x, on the CPU, in pinned host memory, which the device reads and writes
 *     directly; not recorded.  Returns x if it is pinned, or if the device is the CPU.  EDEVICE: no such
 *     device, or x is not on the CPU; ENOMEM, ENULL.
 * tensor_is_pinned - is x in pinned memory? */
typedef struct TensorCopyStream { /* the thread's previous stream */
    const void *device;
    bool was;
} TensorCopyStream;
TAPEGRAD_API TensorCopyStream tensor_copy_stream_begin(const char *device);
TAPEGRAD_API void tensor_copy_stream_end(TensorCopyStream before);
static inline void tensor_copy_stream_end_(const TensorCopyStream *before)
{
    tensor_copy_stream_end(*before);
}
#define TENSOR_COPY_STREAM_NAMED_(n, device)                                                           \
    for (TensorCopyStream tensor_before_##n                                                            \
         __attribute__((unused, cleanup(tensor_copy_stream_end_))) = tensor_copy_stream_begin(device), \
                                *tensor_go_##n = &tensor_before_##n;                                   \
         tensor_go_##n; tensor_go_##n = NULL)
#define TENSOR_COPY_STREAM_AT_(n, device) TENSOR_COPY_STREAM_NAMED_(n, device)
#define TENSOR_COPY_STREAM(device) TENSOR_COPY_STREAM_AT_(__COUNTER__, device)
TAPEGRAD_API Tensor *tensor_pin_memory(Tensor *x, const char *device);
TAPEGRAD_API bool tensor_is_pinned(const Tensor *x);

/* tensor_host_fallbacks - the number of calls in this process that ran on the host, on copies, because the
 *     operands' device has no kernel for them or its kernel declined.  That is slow: the first such call
 *     prints a warning on stderr; TAPEGRAD_NO_FALLBACK=1 in the environment makes them fail (EDEVICE). */
TAPEGRAD_API int64_t tensor_host_fallbacks(void);

/* Memory of tensor data on the CPU.  Freed blocks are cached for the next tensor of their size class, so a
 * training step in steady state asks the system for no memory. */
typedef struct TensorMemory {
    int64_t in_use;       /* bytes in allocated blocks */
    int64_t peak;         /* the largest in_use since the last reset */
    int64_t cached;       /* bytes kept for reuse */
    int64_t reserved;     /* bytes taken from the system: in use, cached, and kernels' workspaces */
    int64_t free, total;  /* bytes of the machine or the GPU, over all processes */
    int64_t system_calls; /* requests to the system for memory, since the start */
    int64_t limit;        /* the most that in_use + cached may reach; 0: none */
} TensorMemory;

/* tensor_memory - the CPU's memory counters now.
 * tensor_memory_reset_peak - peak becomes in_use. */
TAPEGRAD_API TensorMemory tensor_memory(void);
TAPEGRAD_API void tensor_memory_reset_peak(void);
/* tensor_memory_set_limit - allocations beyond so many bytes fail with ENOMEM; 0: no limit.  EVALUE, and
 * nothing changes: below 0. */
TAPEGRAD_API void tensor_memory_set_limit(int64_t bytes);
TAPEGRAD_API void tensor_memory_release(void); /* gives cached blocks back to the system */

/* tensor_device_memory - the same of one device.  On a device other than the CPU, in_use and peak are bytes
 *     of tensor data, system_calls the requests for it.  PyTorch's memory_allocated is in_use,
 *     max_memory_allocated peak, memory_reserved reserved, mem_get_info free and total.  Zeros and EDEVICE:
 *     no such device.
 * tensor_device_memory_reset_peak - peak becomes in_use (reset_peak_memory_stats).
 * tensor_device_memory_set_limit - sets a limit in bytes beyond which allocations fail with ENOMEM; 0: no
 *     limit.  EVALUE: below 0.  PyTorch's set_per_process_memory_fraction is a limit of fraction * total.
 * tensor_device_memory_release - gives cached blocks back to the system (empty_cache).
 * tensor_memory_report - prints a table of memory: by device; then tensors made since
 *     tensor_track_leaks(true), by dtype, shape and source line; then what else this thread's tape keeps for
 *     backward, by op.  Largest first; shared memory counts once.  Returns the total bytes of the lines, or
 *     -1: ENOMEM, ENULL. */
TAPEGRAD_API TensorMemory tensor_device_memory(const char *device);
TAPEGRAD_API int tensor_device_memory_reset_peak(const char *device);
TAPEGRAD_API int tensor_device_memory_set_limit(const char *device, int64_t bytes);
TAPEGRAD_API int tensor_device_memory_release(const char *device);
TAPEGRAD_API int64_t tensor_memory_report(FILE *file);

/* tensor_set_num_threads - the number of threads for one operation; by default OMP_NUM_THREADS, else the
 * number of cores.  Results do not depend on it.  EVALUE: below 1. */
TAPEGRAD_API int tensor_set_num_threads(int threads);
TAPEGRAD_API int tensor_num_threads(void);

/* tensor_set_winograd - lets f32 convolutions with 3 x 3 kernels and stride 1 use Winograd's minimal
 *     filtering (16 multiplications for 4 results instead of 36) where that is faster, in all threads.  On by
 *     default, unless TAPEGRAD_WINOGRAD=0 is in the environment.  Returns the previous setting.
 *     On ordinary data its rounding errors do not exceed those of the plain sum; inputs with a few values
 *     much larger than the rest use the plain sum.  NaN and infinities reach the same results.
 * tensor_winograd - is it on? */
TAPEGRAD_API bool tensor_set_winograd(bool on);
TAPEGRAD_API bool tensor_winograd(void);

/* tensor_parallel_for - calls span(ctx, from, to) for spans that cover [0, n), on as many threads as are
 * worthwhile; returns when all are done.  work: simple operations for one index, an estimate.  For your own
 * kernels: their result must not depend on how [0, n) is cut. */
TAPEGRAD_API void tensor_parallel_for(int64_t n, int64_t work,
                                      void (*span)(void *ctx, int64_t from, int64_t to), void *ctx);

/* tensor_build_info - the text that `tapegrad info` prints: version, CPU features in use, BLIS version and
 * sub-configuration, LAPACK library, threads, devices, and why a device or library is missing.  Valid until
 * the next call on this thread. */
TAPEGRAD_API const char *tensor_build_info(void);

#ifdef __cplusplus
}
#endif
#endif
