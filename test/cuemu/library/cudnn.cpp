/* cudnn.cpp - stand-in for cuDNN's backend interface: it executes the graph that the descriptors say, by
 * loops in double, and is there only where CUEMU_CUDNN is set: to 1, or to the version that it says it is.
 *
 * A plan's kernels are its own, and gone with it: work of theirs that runs then loses the device.  A plan, or
 * a handle, is not made in a capture, but in the relaxed mode, as code would be loaded.
 *
 * Three engines, in the order of its heuristic: one whose sums have no order, one of tensor cores, which
 * reads f32 as TF32, and one that is exact.  None takes a convolution in groups of f64.  A graph that is not
 * one convolution is cudnn_fused.cpp's. */
#include "dnn.h"

using namespace cuemu;

namespace {

enum { SUCCESS = 0, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, FAILED = 5000, MOST = 5 };

size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE: return 8;
    case CUDNN_TYPE_BOOLEAN: return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return sizeof(void *);
    default: return 4;
    }
}

/* ---- a convolution --------------------------------------------------------------------------- */

struct Operand {
    char *data = nullptr;
    cudaDataType_t type = CUDA_R_32F;
    std::vector<int64_t> size, stride;
};

struct Call {
    int kind; /* the operation's type */
    Operand x, w, y;
    std::vector<int64_t> pad, stride, dilation;
    bool tf32;
};

int64_t place(const Operand &o, const int64_t *at)
{
    int64_t i = 0;
    for (size_t d = 0; d < o.size.size(); d++) i += at[d] * o.stride[d];
    return i;
}

bool next(const Operand &o, int64_t *at)
{
    for (int d = (int)o.size.size() - 1; d >= 0; d--) {
        if (++at[d] < o.size[(size_t)d]) return true;
        at[d] = 0;
    }
    return false;
}

/* f(x index, w index, y index) for all products of the convolution. */
template <class F> void each_product(const Call &c, F f)
{
    const int axes = (int)c.pad.size();
    const int64_t group_out = c.w.size[0] / (c.x.size[1] / c.w.size[1]);
    int64_t y[MOST] = {};
    do {
        int64_t w[MOST] = {};
        Operand taps = c.w;
        taps.size[0] = 1;
        do {
            int64_t x[MOST] = { y[0], y[1] / group_out * c.w.size[1] + w[1] };
            const int64_t from[MOST] = { y[1], w[1], w[2], w[3], w[4] };
            bool inside = true;
            for (int d = 0; d < axes; d++) {
                const size_t i = (size_t)d;
                x[2 + d] = y[2 + d] * c.stride[i] - c.pad[i] + w[2 + d] * c.dilation[i];
                inside = inside && x[2 + d] >= 0 && x[2 + d] < c.x.size[2 + i];
            }
            if (inside) f(place(c.x, x), place(c.w, from), place(c.y, y));
        } while (next(taps, w));
    } while (next(c.y, y));
}

int64_t extent(const Operand &o)
{
    int64_t n = 1;
    for (size_t d = 0; d < o.size.size(); d++) n += (o.size[d] - 1) * o.stride[d];
    return n;
}

void run(const Call &c)
{
    const bool forward = c.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
               data = c.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    const Operand &to = forward ? c.y : data ? c.x : c.w;
    const auto get = [&](const Operand &o, int64_t i) {
        const double v = blas_load(o.data, o.type, i);
        return c.tf32 ? tf32(v) : v;
    };
    std::vector<double> sum((size_t)extent(to));
    each_product(c, [&](int64_t x, int64_t w, int64_t y) {
        sum[(size_t)(forward ? y
                     : data  ? x
                             : w)] += forward ? get(c.x, x) * get(c.w, w)
                                     : data  ? get(c.y, y) * get(c.w, w)
                                             : get(c.x, x) * get(c.y, y);
    });
    int64_t at[MOST] = {};
    do blas_store(to.data, to.type, place(to, at), sum[(size_t)place(to, at)]);
    while (next(to, at));
}

/* ---- what descriptors say -------------------------------------------------------------------- */

bool is_convolution(const Descriptor *graph)
{
    const Descriptor *op = graph->one<Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    return op && op->type >= CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR &&
           op->type <= CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
}

std::vector<Descriptor *> operations_of(const Descriptor *graph)
{
    return graph->all<Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

struct Operation {
    const Descriptor *op, *x, *w, *y, *conv;
};

Operation operation_of(const Descriptor *graph)
{
    const Descriptor *op = graph->one<Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const auto get = [op](int name) { return op->one<Descriptor *>(name); };
    switch ((int)op->type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return { op, get(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
                 get(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
                 get(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y),
                 get(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC) };
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return { op, get(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX),
                 get(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W),
                 get(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY),
                 get(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC) };
    default:
        return { op, get(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
                 get(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW),
                 get(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY),
                 get(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC) };
    }
}

/* The operand's memory is the device's, and begins where its descriptor says it may. */
bool find(const Descriptor *tensor, const Descriptor *pack, Operand *o)
{
    const auto ids = pack->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto data = pack->all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    const int64_t aligned = tensor->one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    for (size_t i = 0; i < ids.size() && i < data.size(); i++)
        if (ids[i] == tensor->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)) o->data = (char *)data[i];
    o->type = type_of(tensor->one<int>(CUDNN_ATTR_TENSOR_DATA_TYPE));
    o->size = tensor->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    o->stride = tensor->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    return o->data && is_device_ptr(o->data) && aligned > 0 && (uintptr_t)o->data % (uintptr_t)aligned == 0;
}

/* Does the output have the size that the others give it, and is the scaling 1 and 0? */
bool sound(const Operation &o)
{
    const auto x = o.x->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
               w = o.w->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
               y = o.y->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const auto pad = o.conv->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
               post = o.conv->all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
               stride = o.conv->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
               dilation = o.conv->all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    const size_t axes = (size_t)o.conv->one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    if (o.conv->one<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION) return false;
    if (x.size() != axes + 2 || w.size() != x.size() || y.size() != x.size() || pad.size() != axes)
        return false;
    if (x[0] != y[0] || y[1] != w[0] || x[1] % w[1] || w[0] % (x[1] / w[1])) return false;
    for (size_t d = 0; d < axes; d++)
        if (y[2 + d] != (x[2 + d] + pad[d] + post[d] - (w[2 + d] - 1) * dilation[d] - 1) / stride[d] + 1)
            return false;
    return true;
}

bool is_one_and_zero(const Descriptor *op, int alpha)
{
    const auto a = op->attribute.find(alpha), b = op->attribute.find(alpha + 1);
    if (a == op->attribute.end() || b == op->attribute.end()) return false;
    return a->second.size() == 8 ? op->one<double>(alpha) == 1 && op->one<double>(alpha + 1) == 0
                                 : op->one<float>(alpha) == 1 && op->one<float>(alpha + 1) == 0;
}

bool takes(const Descriptor *graph)
{
    if (!is_convolution(graph)) return fused_taken(operations_of(graph));
    const Operation o = operation_of(graph);
    const bool f64 = o.x->one<int>(CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_DOUBLE;
    const auto x = o.x->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
               w = o.w->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    return !f64 || x[1] == w[1];
}

int alpha_of(const Descriptor *op)
{
    return op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
               ? (int)CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA
           : op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
               ? (int)CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
               : (int)CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA;
}

bool is_plan(const Descriptor *d) { return d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && d->final; }

} // namespace

struct cudnnContext {
    cudaStream_t stream;
};

static void enqueue(cudnnHandle_t handle, const Descriptor *plan, const std::function<void()> &work)
{
    const std::weak_ptr<void> life = plan->life;
    std::function<void()> f = [life, work] {
        if (life.expired()) cuemu_lose("kernels of a plan of cuDNN's that is gone");
        else work();
    };
    cuemu_executed();
    cuemu_enqueue(handle->stream, &f);
}

extern "C" {
size_t cudnnGetVersion(void)
{
    const char *version = getenv("CUEMU_CUDNN");
    return version && atoi(version) > 1 ? (size_t)atoi(version) : 91900;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    if (cuemu_forbidden()) return FAILED;
    *handle = new cudnnContext{ nullptr };
    return SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    delete handle;
    return SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *d)
{
    *d = new Descriptor{ .type = type, .attribute = {} };
    return SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    if (is_plan((Descriptor *)d)) cuemu_planned(-1);
    delete (Descriptor *)d;
    return SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d_, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    Descriptor *d = (Descriptor *)d_;
    if (d->final || d->attribute.count(name)) return BAD_PARAM;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR && !(*(Descriptor *const *)values)->final) return BAD_PARAM;
    d->attribute[name].assign((const char *)values, (const char *)values + (size_t)count * size_of(type));
    return SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d_)
{
    Descriptor *d = (Descriptor *)d_;
    if (d->final) return BAD_PARAM;
    if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && !is_convolution(d)) {
        if (!fused_sound(operations_of(d))) return BAD_PARAM;
    } else if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
        const Operation o = operation_of(d);
        if (!o.x || !o.w || !o.y || !o.conv || !sound(o) || !is_one_and_zero(o.op, alpha_of(o.op)))
            return BAD_PARAM;
    }
    if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
        cuemu_chosen();
        d->graph = d->one<Descriptor *>(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    }
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        const Descriptor *config = d->one<Descriptor *>(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        d->engine = config->engine, d->graph = config->graph;
        if (cuemu_forbidden()) return FAILED; /* its code would be loaded */
        cuemu_planned(1);
    }
    d->final = true;
    return SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t d_, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t asked, int64_t *count,
                                       void *values)
{
    const Descriptor *d = (const Descriptor *)d_;
    if (!d->final) return BAD_PARAM;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
        *count = !takes(d->graph) ? 0 : asked < 3 ? asked : 3;
        for (int i = 0; i < *count; i++) {
            Descriptor *config = ((Descriptor **)values)[i];
            config->engine = i, config->graph = d->graph, config->final = true;
        }
    } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
        Descriptor *engine = *(Descriptor **)values;
        engine->engine = d->engine, engine->final = true, *count = 1;
    } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
        *count = d->engine < 2;
        if (d->engine == 0) *(int *)values = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        if (d->engine == 1) *(int *)values = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        *(int64_t *)values = 1000, *count = 1;
    } else {
        return NOT_SUPPORTED;
    }
    return SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_,
                                  cudnnBackendDescriptor_t pack_)
{
    const Descriptor *plan = (const Descriptor *)plan_, *pack = (const Descriptor *)pack_;
    if (!plan->final || !pack->final || !is_device_ptr(pack->one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)))
        return FAILED;
    if (!is_convolution(plan->graph)) {
        std::function<void()> f = fused_call(operations_of(plan->graph), pack);
        if (!f) return FAILED;
        enqueue(handle, plan, f);
        return SUCCESS;
    }
    const Operation o = operation_of(plan->graph);
    Call c = { (int)o.op->type, {}, {}, {}, {}, {}, {}, false };
    if (!find(o.x, pack, &c.x) || !find(o.w, pack, &c.w) || !find(o.y, pack, &c.y)) return FAILED;
    c.pad = o.conv->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    c.stride = o.conv->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    c.dilation = o.conv->all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    c.tf32 = plan->engine == 1 && c.x.type == CUDA_R_32F;
    enqueue(handle, plan, [c] { run(c); });
    return SUCCESS;
}
}
