/* device.h - the interface of a device: one constant struct of functions behind one symbol.
 *
 * The CPU is a device too, so the same tests run on every machine.  Others are plugins: shared objects that
 * export tensor_device_plugin and nothing else; the core never links them.  Everything here is plain C data,
 * so that plugins may be C++ or CUDA.
 *
 * Opening a device by number gives a context, the first argument of all other functions, so that one process
 * may use several devices.
 *
 * Kernels get raw pointers and sizes; the core has checked shapes, allocated outputs and promoted dtypes.
 * Strides are in elements.  A kernel returns KERNEL_DONE; KERNEL_FAILED, or KERNEL_NO_MEMORY if it got no
 * workspace, with a sentence in device->error(); or KERNEL_DECLINED, before it has done anything, for a
 * dtype, shape or layout that it does not support.  A call that a device lacks (NULL) or declines is computed
 * on the host, on copies (autograd/host.c).
 *
 * Work is queued and runs in order; a call may return before its work is done.  Readers of results wait, by
 * to_host or synchronize. */
#ifndef TG_DEVICE_H
#define TG_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "device_graph.h"
#include "kernels.h"

enum { DEVICE_ABI = 9 };
enum { KERNEL_DONE = 0, KERNEL_FAILED = -1, KERNEL_NO_MEMORY = -2, KERNEL_DECLINED = 1 };

/* The kernels a device may have.  K(slot, Args) */
#define KERNEL_LIST(K)                          \
    K(map, MapArgs)                             \
    K(copy, CopyArgs)                           \
    K(fill, FillArgs)                           \
    K(select, SelectArgs)                       \
    K(reduce, ReduceArgs)                       \
    K(gemm, GemmArgs)                           \
    K(softmax, SoftmaxArgs)                     \
    K(softmax_grad, SoftmaxGradArgs)            \
    K(cross_entropy, CrossEntropyArgs)          \
    K(cross_entropy_grad, CrossEntropyGradArgs) \
    K(order, OrderArgs)                         \
    K(scan, ScanArgs)                           \
    K(scan_grad, ScanArgs)                      \
    K(search, SearchArgs)                       \
    K(gather, GatherArgs)                       \
    K(scatter_add, GatherArgs)                  \
    K(scatter_fold, GatherArgs)                 \
    K(check_range, CheckArgs)                   \
    K(index_join, IndexJoinArgs)                \
    K(conv2d, ConvArgs)                         \
    K(conv2d_grad_input, ConvArgs)              \
    K(conv2d_grad_weight, ConvArgs)             \
    K(max_pool, PoolArgs)                       \
    K(max_pool_grad, PoolArgs)                  \
    K(avg_pool, PoolArgs)                       \
    K(avg_pool_grad, PoolArgs)                  \
    K(norm, NormArgs)                           \
    K(norm_grad, NormArgs)                      \
    K(random, RandomArgs)                       \
    K(attention, AttentionArgs)                 \
    K(attention_grad, AttentionArgs)            \
    K(rnn_step, RnnArgs)                        \
    K(rnn_step_grad, RnnArgs)                   \
    K(resample, ResampleArgs)                   \
    K(resample_table, ResampleTableArgs)        \
    K(taps, TapsArgs)                           \
    K(pairs, PairsArgs)                         \
    K(pairs_grad, PairsArgs)                    \
    K(special, SpecialArgs)                     \
    K(ctc, CtcArgs)                             \
    K(class_margin, ClassMarginArgs)
/* Those that the CPU has elsewhere: over lists of arrays in optim, rows of the program's as their loops. */
#define LIST_KERNELS(K)        \
    K(list_rule, ListRuleArgs) \
    K(list_cast, ListCastArgs) \
    K(list_norm, ListNormArgs) \
    K(map_formula, FormulaArgs)

typedef enum KernelSlot {
#define K(slot, Args) SLOT_##slot,
    KERNEL_LIST(K) LIST_KERNELS(K)
#undef K
        KERNEL_SLOTS
} KernelSlot;

typedef struct DeviceContext DeviceContext; /* the device's own */

typedef struct DeviceFault { /* an index, or what else was checked, outside [low, high] */
    const char *op;          /* NULL: the device no longer knows the call, nor site, what, status and range */
    const char *what;        /* "index" */
    const void *site;
    int status; /* TENSOR_EINDEX, ... */
    bool real;  /* number is the value */
    int64_t value, position, low, high;
    double number;
} DeviceFault;

typedef struct DeviceEvent DeviceEvent; /* a mark in the queue, or among the copies beside it */

typedef struct DeviceMemory { /* bytes */
    int64_t cached;           /* in blocks that were freed and are kept for reuse */
    int64_t reserved;    /* in all blocks that the device gave, for tensors and for the kernels' own needs */
    int64_t free, total; /* of the device, whoever uses it */
} DeviceMemory;

/* OPTIONAL members may be NULL. */
typedef struct Device {
    uint32_t abi, size;     /* DEVICE_ABI and sizeof(Device) of what the plugin was compiled against */
    const char *name;       /* "cpu", "cuda", "emu" */
    const char *ops_digest; /* of ops.def and this header: a stale plugin is refused */
    /* open - device number index, once a process; NULL and error(NULL) when it cannot be used.  must_fail is
     * asked before every request for memory, of alloc and of kernels: true makes it find none. */
    DeviceContext *(*open)(int index, bool (*must_fail)(const DeviceContext *context));
    const char *(*error)(DeviceContext *context);    /* the last failure of this thread, in a sentence */
    const char *(*describe)(DeviceContext *context); /* one line for tapegrad info */
    /* alloc - 64-byte aligned (256 on a GPU), never 0 bytes; NULL: no memory, and error() says how much of it
     * is where */
    void *(*alloc)(DeviceContext *context, size_t bytes);
    void (*free)(DeviceContext *context, void *data, size_t bytes);
    /* to_device - from host memory, which may change once it returns; waits only where the ring that the
     * copies pass through is full of copies that are still queued.
     * to_host - complete on return: waits for what was queued. */
    int (*to_device)(DeviceContext *context, void *dst, const void *src, size_t bytes);
    int (*to_host)(DeviceContext *context, void *dst, const void *src, size_t bytes);
    int (*synchronize)(DeviceContext *context);
    bool (*fault)(DeviceContext *context, DeviceFault *of); /* OPTIONAL: why the last wait failed, once */
    bool (*lost)(DeviceContext *context); /* OPTIONAL: has it failed so that nothing will work any more? */
    void *(*stream)(
        DeviceContext *context); /* OPTIONAL: what this thread's work is queued in, a cudaStream_t */
    void (*memory)(DeviceContext *context, DeviceMemory *m); /* OPTIONAL */
    void (*release)(DeviceContext *context); /* OPTIONAL: gives cached blocks back to the system */
    /* Copies beside the queue, and events.  OPTIONAL: all of these or none.
     * beside - from now on this thread's copies run in a stream of their own; what it was.  alloc gives
     * memory then that no queued work uses, or the copy waits for it; a copy into other memory, and one to
     * the host, begins behind what is queued.  From and to pinned memory the host waits for nothing.  The
     * queue waits for such a copy by an event, or when its memory is freed.
     * pin - host memory that such copies reach; NULL: there is none.
     * event_record - behind what this thread's copies, or else the queue, hold by now.
     * event_done - 1: all before it is done; 0; -1: failed.  event_synchronize - the host waits for it.
     * event_wait - what comes next in the queue, or among this thread's copies, waits for it.
     * event_elapsed - in ms, of timed events that are done; NaN: failed. */
    bool (*beside)(DeviceContext *context, bool on);
    void *(*pin)(DeviceContext *context, size_t bytes);
    void (*unpin)(DeviceContext *context, void *data);
    DeviceEvent *(*event)(DeviceContext *context, bool timed);
    void (*event_free)(DeviceContext *context, DeviceEvent *event);
    int (*event_record)(DeviceContext *context, DeviceEvent *event);
    int (*event_done)(DeviceContext *context, DeviceEvent *event);
    int (*event_synchronize)(DeviceContext *context, DeviceEvent *event);
    int (*event_wait)(DeviceContext *context, DeviceEvent *event);
    double (*event_elapsed)(DeviceContext *context, DeviceEvent *from, DeviceEvent *to);
    const DeviceGraphs *graphs;   /* OPTIONAL: captures work */
    uint16_t takes[KERNEL_SLOTS]; /* a bit for each dtype (1 << TENSOR_F16) that a kernel reads and writes */
/* The kernels: map, copy, fill and reduce are REQUIRED of a plugin, the others OPTIONAL. */
#define K(slot, Args) int (*slot)(DeviceContext * context, Args * args);
    KERNEL_LIST(K)
    LIST_KERNELS(K)
#undef K
} Device;

extern const Device cpu_device;

#endif
