/* cudnn_graph.cu - graphs of cuDNN's operations, the plans that were made of them, and their execution. */
#include <new>
#include <stdlib.h>
#include <string.h>
#include "cuda/cudnn_graph.cuh"

namespace {

enum { ENGINES = 16 };
constexpr size_t MOST_ROOM = (size_t)1 << 30; /* of a workspace */

struct Dnn { /* of a GPU */
    const Cudnn *dnn;
    cudnnHandle_t handle;
    Plans plans;
};

/* ---- the library ----------------------------------------------------------------------------- */

bool wanted()
{
    static const char *const asked = getenv("TAPEGRAD_CUDNN");
    return !asked || *asked != '0';
}

/* What came of the first call stays. */
const Cudnn *library()
{
    static const Cudnn *const found = [] {
        const Cudnn *dnn = wanted() ? gpu_cudnn() : nullptr;
        return dnn && dnn->cudnnGetVersion() / 10000 == CUDNN_MAJOR ? dnn : nullptr;
    }();
    return found;
}

Dnn *dnn_of_gpu()
{
    Dnn **made = (Dnn **)gpu_dnn();
    const Cudnn *dnn = *made ? nullptr : library();
    if (!dnn) return *made;
    const Relaxed relaxed;
    Dnn *d = new (std::nothrow) Dnn{};
    if (!d) return nullptr;
    d->dnn = dnn;
    if (dnn->cudnnCreate(&d->handle) == 0) return *made = d;
    delete d;
    return nullptr;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* May an engine with these notes serve? */
bool serves(bool exact, const int *note, int64_t notes)
{
    for (int64_t i = 0; i < notes; i++) {
        if (note[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
            note[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)
            return false;
        const bool narrows = note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                             note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        if (narrows && exact) return false;
    }
    return true;
}

bool may_serve(DnnGraph *g, bool exact, Descriptor config)
{
    int note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0;
    Descriptor engine = g->make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    return g->good &&
           g->dnn->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) == 0 &&
           g->dnn->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                            CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n,
                                            note) == 0 &&
           serves(exact, note, n);
}

/* Sets plan and room if the configuration makes one. */
bool try_config(DnnPlan *p, cudnnHandle_t handle, Descriptor config)
{
    DnnGraph *g = &p->graph;
    int64_t n = 0;
    Descriptor plan = g->make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    g->set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    g->set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (!g->good || g->dnn->cudnnBackendFinalize(plan) != 0 ||
        g->dnn->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                         &n, &p->room) != 0 ||
        p->room < 0 || (size_t)p->room > MOST_ROOM)
        return false;
    p->plan = plan;
    return true;
}

void choose(DnnPlan *p, cudnnHandle_t handle, Descriptor graph, int mode, bool exact)
{
    DnnGraph *g = &p->graph;
    Descriptor config[ENGINES], heuristic = g->make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t n = 0;
    g->set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    g->set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    for (Descriptor &each : config) each = g->make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!g->finish(heuristic) ||
        g->dnn->cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, ENGINES, &n, config) != 0)
        return;
    for (int64_t i = 0; i < n && i < ENGINES && !p->plan; i++)
        if (may_serve(g, exact, config[i])) try_config(p, handle, config[i]);
}

Descriptor graph_of(DnnGraph *g, cudnnHandle_t handle)
{
    Descriptor graph = g->make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    g->set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    g->set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->ops, g->op);
    return g->finish(graph) ? graph : nullptr;
}

/* What was made for a plan is kept with it. */
void make_plan(DnnPlan *p, const Dnn *d, const void *key, void (*add)(DnnGraph *, const void *key),
               bool exact)
{
    p->graph.dnn = d->dnn;
    for (int mode : { (int)CUDNN_HEUR_MODE_A, (int)CUDNN_HEUR_MODE_FALLBACK }) {
        add(&p->graph, key);
        Descriptor graph = graph_of(&p->graph, d->handle);
        if (graph) choose(p, d->handle, graph, mode, exact);
        if (p->plan) return;
        p->graph.clear();
    }
}

} // namespace

/* ---- descriptors ----------------------------------------------------------------------------- */

Descriptor DnnGraph::make(cudnnBackendDescriptorType_t type)
{
    Descriptor d = nullptr;
    good = good && count < MOST && dnn->cudnnBackendCreateDescriptor(type, &d) == 0;
    return good ? all[count++] = d : nullptr;
}

void DnnGraph::set(Descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   int64_t n, const void *values)
{
    good = good && dnn->cudnnBackendSetAttribute(d, name, type, n, values) == 0;
}

void DnnGraph::set(Descriptor d, cudnnBackendAttributeName_t name, Descriptor value)
{
    set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void DnnGraph::set(Descriptor d, cudnnBackendAttributeName_t name, int64_t value)
{
    set(d, name, CUDNN_TYPE_INT64, 1, &value);
}

bool DnnGraph::finish(Descriptor d) { return good = good && dnn->cudnnBackendFinalize(d) == 0; }

void DnnGraph::add(Descriptor operation)
{
    good = good && ops < MOST_OPS;
    if (finish(operation)) op[ops++] = operation;
}

Descriptor DnnGraph::tensor(int64_t id, cudnnDataType_t type, int ndim, const int64_t *size,
                            const int64_t *stride, Kind kind)
{
    const bool yes = true;
    Descriptor d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, ndim, size);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, ndim, stride);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, (int64_t)DNN_ALIGNMENT);
    if (kind == VIRTUAL) set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    if (kind == BY_VALUE) set(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    return finish(d) ? d : nullptr;
}

void DnnGraph::clear()
{
    while (count > 0) dnn->cudnnBackendDestroyDescriptor(all[--count]);
    ops = 0, good = true;
}

cudnnDataType_t dnn_type_of(int dtype)
{
    return dtype == TENSOR_F64    ? CUDNN_DATA_DOUBLE
           : dtype == TENSOR_F16  ? CUDNN_DATA_HALF
           : dtype == TENSOR_BF16 ? CUDNN_DATA_BFLOAT16
                                  : CUDNN_DATA_FLOAT;
}

/* ---- for callers ----------------------------------------------------------------------------- */

size_t dnn_version()
{
    Dnn *d = dnn_of_gpu();
    return d ? d->dnn->cudnnGetVersion() : 0;
}

const DnnPlan *dnn_plan(const void *key, size_t size, void (*add)(DnnGraph *, const void *key), bool exact)
{
    Dnn *d = size <= DnnPlan::MOST_KEY ? dnn_of_gpu() : nullptr;
    if (!d) return nullptr;
    const DnnPlan *p =
        gpu_plan<DnnPlan>(&d->plans, key, size, [=](DnnPlan *made) { make_plan(made, d, key, add, exact); });
    return p && p->plan ? p : nullptr;
}

/* The descriptors of the call go with it. */
int dnn_execute(const char *op, const DnnPlan *p, int n, const int64_t *id, void *const *data, void *room)
{
    Dnn *d = dnn_of_gpu();
    DnnGraph g;
    g.dnn = d->dnn;
    Descriptor pack = g.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    g.set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, id);
    g.set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, data);
    g.set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room);
    const bool ready = g.finish(pack) && d->dnn->cudnnSetStream(d->handle, gpu_stream()) == 0;
    const cudnnStatus_t status = ready ? d->dnn->cudnnBackendExecute(d->handle, p->plan, pack) : -1;
    return status == 0 ? KERNEL_DONE : gpu_fail("%s: cuDNN status %d", op, (int)status);
}
