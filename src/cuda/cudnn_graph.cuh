/* cudnn_graph.cuh - what the callers of cuDNN share (conv_cudnn.cu, attention_cudnn.cu).
 *
 *  - A call is a graph of operations.  Of the engines that cuDNN names for it, in its order, the first is
 *    taken that makes a plan, gives the same bits each time, and reads f32 as f32 where that is asked for.
 *  - A plan, or that there is none, is kept by what it depends on (plans.cuh).  Its workspace is memory of
 *    ours, for the time of the call.
 *  - TAPEGRAD_CUDNN=0 leaves cuDNN out. */
#ifndef TG_CUDA_CUDNN_GRAPH_CUH
#define TG_CUDA_CUDNN_GRAPH_CUH

#include "cuda/cuda.cuh"
#include "cuda/library.cuh"
#include "cuda/plans.cuh"

enum { DNN_ALIGNMENT = 16 };

typedef cudnnBackendDescriptor_t Descriptor;

struct DnnGraph { /* all that is made of descriptors; they live as long as it */
    enum { MOST = 192, MOST_OPS = 32 };
    enum Kind { REAL, VIRTUAL, BY_VALUE };
    const Cudnn *dnn = nullptr;
    Descriptor all[MOST], op[MOST_OPS];
    int count = 0, ops = 0;
    bool good = true;

    Descriptor make(cudnnBackendDescriptorType_t type);
    void set(Descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
             const void *values);
    void set(Descriptor d, cudnnBackendAttributeName_t name, Descriptor value);
    void set(Descriptor d, cudnnBackendAttributeName_t name, int64_t value);
    bool finish(Descriptor d);
    void add(Descriptor operation); /* finished here */
    Descriptor tensor(int64_t id, cudnnDataType_t type, int ndim, const int64_t *size, const int64_t *stride,
                      Kind kind = REAL);
    void clear();
    ~DnnGraph() { clear(); }
};

struct DnnPlan : Plan {
    DnnGraph graph;
    Descriptor plan; /* nullptr: none serves */
    int64_t room;
};

cudnnDataType_t dnn_type_of(int dtype);

/* Of the library: 0 where it is not there, or left out. */
size_t dnn_version();

/* The plan of the graph whose operations `add` adds; key is all that they depend on, without gaps of unknown
 * bytes; keys of different kinds differ in their first word.  nullptr: there is none. */
const DnnPlan *dnn_plan(const void *key, size_t size, void (*add)(DnnGraph *, const void *key), bool exact);

/* Queues it, perhaps in a capture; op: for the error. */
int dnn_execute(const char *op, const DnnPlan *p, int n, const int64_t *id, void *const *data, void *room);

#endif
