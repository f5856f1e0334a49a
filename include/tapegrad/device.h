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

/* tensor_device_stream - what a device queues this thread's work in (PyTorch's current_stream), the
 *     cudaStream_t of "cuda:0", for kernels of your own: what they are launched with there runs behind all
 *     that was queued before, and before what comes after; tensor_data gives addresses, tensor_bump_version
 *     says that a tensor was written.  NULL: the CPU has none; or, with an error, EDEVICE: no such device,
 *     ENULL. */
TAPEGRAD_API void *tensor_device_stream(const char *device);

/* ---- events, copies beside the queue ------------------------------------------------------------
 *
 * A device computes what was queued, in that order; the host waits when it reads a value, or for an event:
 *
 *     TensorEvent *ready = tensor_event("cuda:0", false);
 *     TENSOR_COPY_STREAM("cuda:0")
 *     {
 *         next = tensor_to_device(pinned, "cuda:0"); // beside what is computed
 *         tensor_event_record(ready);
 *     }
 *     ...                                            // more of the step before
 *     tensor_event_wait(ready);                      // what is queued from here on reads next
 *
 * tensor_event - a mark, as torch.cuda.Event; with times only if enable_timing.  NULL: EDEVICE, ENULL,
 *     ENOMEM.
 * tensor_event_record - behind what is queued by now: of this thread's copies inside TENSOR_COPY_STREAM, else
 *     of all work.  An event may be recorded again.
 * tensor_event_query - 1: all before it is done; 0: not yet; -1: failed.
 * tensor_event_synchronize - the host waits for it.  It tells no bad index: tensor_synchronize does.
 * tensor_event_wait - the device waits for it, before what is queued from now on; the host goes on.
 *     Where it was never recorded, all three find nothing to wait for.
 * tensor_event_elapsed_time - the milliseconds from start to end.  NaN: EVALUE, when one was not recorded,
 *     made without enable_timing, or has not passed; EDEVICE.
 * The CPU queues nothing: its events have passed when they are recorded. */
typedef struct TensorEvent TensorEvent;
TAPEGRAD_API TensorEvent *tensor_event(const char *device, bool enable_timing);
TAPEGRAD_API void tensor_event_free(TensorEvent *event);
TAPEGRAD_API int tensor_event_record(TensorEvent *event);
TAPEGRAD_API int tensor_event_query(TensorEvent *event);
TAPEGRAD_API int tensor_event_synchronize(TensorEvent *event);
TAPEGRAD_API int tensor_event_wait(TensorEvent *event);
TAPEGRAD_API double tensor_event_elapsed_time(TensorEvent *start, TensorEvent *end);

/* TENSOR_COPY_STREAM(device) { ... } - in the block, copies of this thread between the CPU and that device,
 *     by tensor_to_device and tensor_copy_, run in a stream of their own, beside what is computed; on the CPU
 *     it does nothing.
 *     A new tensor on the device gets memory that nothing queued uses, so its copy waits for no computing;
 *     a copy into another tensor, and one to the CPU, begins behind what is queued.  From and to pinned
 *     memory such a copy is only queued, and that memory must stay as it is until the copy is done; other
 *     memory may change at once, and is filled when the call returns.
 *     Nothing else waits for such a copy by itself: record an event behind it, and wait for that before the
 *     values are used.  A tensor may be freed at any time.
 *     However the block is left; break leaves the block alone.
 * tensor_pin_memory - a copy of x, a tensor of the CPU's, in memory of the host's that the device reads and
 *     writes by itself; no graph.  x itself if it is pinned, or the device is the CPU.  EDEVICE: no such
 *     device, or x is not on the CPU; ENOMEM, ENULL.
 * tensor_is_pinned - is it there? */
typedef struct TensorCopyStream { /* what the thread did before */
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

/* tensor_host_fallbacks - how many calls this process has computed on the host, from copies, because the
 *     device of their operands has no kernel for them or declined.  That is slow: the first one is told on
 *     stderr; TAPEGRAD_NO_FALLBACK=1 in the environment makes such calls fail (EDEVICE). */
TAPEGRAD_API int64_t tensor_host_fallbacks(void);

/* Memory of tensors' data on the CPU.  Freed blocks are kept for the next tensor of their size class, so that
 * a training step in the steady state asks the system for no memory. */
typedef struct TensorMemory {
    int64_t in_use;   /* bytes in blocks that are held now */
    int64_t peak;     /* the most that in_use has been since the last reset */
    int64_t cached;   /* bytes kept for reuse */
    int64_t reserved; /* bytes taken from the system: in use, cached, and what kernels keep for themselves */
    int64_t free, total;  /* bytes of the machine or the GPU, whoever uses them */
    int64_t system_calls; /* times memory was asked from the system, ever */
    int64_t limit;        /* the most that in_use + cached may reach; 0: none */
} TensorMemory;

/* tensor_memory - what the CPU's memory holds now.
 * tensor_memory_reset_peak - peak becomes in_use. */
TAPEGRAD_API TensorMemory tensor_memory(void);
TAPEGRAD_API void tensor_memory_reset_peak(void);
TAPEGRAD_API void tensor_memory_set_limit(int64_t bytes); /* allocations beyond it fail with ENOMEM */
TAPEGRAD_API void tensor_memory_release(void);            /* gives cached blocks back to the system */

/* tensor_device_memory - the same of one device.  Of another than the CPU, in_use, peak and system_calls are
 *     the bytes of tensors' data there, and requests for them.  PyTorch's memory_allocated is in_use,
 *     max_memory_allocated peak, memory_reserved reserved, mem_get_info free and total.  EDEVICE, and zeros:
 *     there is none.
 * tensor_device_memory_reset_peak - peak becomes in_use (reset_peak_memory_stats).
 * tensor_device_memory_set_limit - tensors that would take more of it fail with ENOMEM; 0: no limit.
 *     PyTorch's set_per_process_memory_fraction is a limit of fraction * total.
 * tensor_device_memory_release - gives cached blocks back to the system (empty_cache).
 * tensor_memory_report - a table of what holds memory: each device, then the tensors that were made since
 *     tensor_track_leaks(true), by dtype, shape and place in the program, then what backward of this thread
 *     keeps besides, by op; the largest first, memory that is shared counted once.  Returns the bytes of its
 *     lines, or -1: ENOMEM, ENULL. */
TAPEGRAD_API TensorMemory tensor_device_memory(const char *device);
TAPEGRAD_API int tensor_device_memory_reset_peak(const char *device);
TAPEGRAD_API int tensor_device_memory_set_limit(const char *device, int64_t bytes);
TAPEGRAD_API int tensor_device_memory_release(const char *device);
TAPEGRAD_API int64_t tensor_memory_report(FILE *file);

/* Threads for one operation; the default is OMP_NUM_THREADS, else the cores of the machine.  The results do
 * not depend on it.  set: EVALUE below 1. */
TAPEGRAD_API int tensor_set_num_threads(int threads);
TAPEGRAD_API int tensor_num_threads(void);

/* tensor_set_winograd - may convolutions in f32 of 3 x 3 windows at stride 1 be computed by Winograd's
 *     minimal filtering, 16 multiplications for 4 results instead of 36, where that is faster?  On by
 *     default, unless TAPEGRAD_WINOGRAD=0 is in the environment; for all threads.  Returns what it was.
 *     Its rounding errors are those of the plain sum or less on ordinary data; images and calls in which a
 *     few values are much larger than all others are left to the plain sum.  NaN and infinities reach the
 *     same results.
 * tensor_winograd - is it on? */
TAPEGRAD_API bool tensor_set_winograd(bool on);
TAPEGRAD_API bool tensor_winograd(void);

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
