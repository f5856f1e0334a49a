/* device_graph.h - work that a device captures, to be launched at once (device.h: OPTIONAL).
 *
 *   make      without work, with a pool of memory of its own; NULL: failed.
 *   free      of its memory, what is in use becomes the device's.
 *   use_pool  what this thread allocates from now on comes from that pool; NULL: no longer.
 *   begin     what this thread queues from now on is not done but captured; memory that it uses is not given
 *             out again while the graph holds it.  KERNEL_DECLINED: it cannot be done now, as error says.
 *             The thread must not wait then, copy from or to the host, or use events.
 *   end       the graph holds what was captured.  If it fails, that is lost.
 *   launch    queues what the graph holds.
 *   clear     it holds no work any more. */
#ifndef TG_DEVICE_GRAPH_H
#define TG_DEVICE_GRAPH_H

typedef struct DeviceContext DeviceContext;
typedef struct DeviceGraph DeviceGraph; /* the device's own */

typedef struct DeviceGraphs {
    DeviceGraph *(*make)(DeviceContext *context);
    void (*free)(DeviceContext *context, DeviceGraph *graph);
    void (*use_pool)(DeviceContext *context, DeviceGraph *graph);
    int (*begin)(DeviceContext *context, DeviceGraph *graph);
    int (*end)(DeviceContext *context, DeviceGraph *graph);
    int (*launch)(DeviceContext *context, DeviceGraph *graph);
    void (*clear)(DeviceContext *context, DeviceGraph *graph);
} DeviceGraphs;

#endif
