/* conv_cudnn.cu - convolutions by cuDNN, where it is there and has an engine that serves.
 *
 *  - A call is a graph of one operation.  Of the engines that cuDNN names for it, in its order, the first is
 *    taken that makes a plan, gives the same bits each time, and computes f32 in f32 unless TF32 was asked
 *    for.  Halves accumulate in f32.
 *  - A plan, or that there is none, is kept by what it depends on, as those of gemm_fused.cu are.  Its
 *    workspace is memory of ours, for the time of the call.
 *  - A bias is added by a kernel of ours.
 *  - Where channels lie last, cuDNN wants those of the weights last, too: it gets a copy that lies so.
 *  - TAPEGRAD_CUDNN=0 leaves it out. */
#include <new>
#include <stdlib.h>
#include "conv.cuh"
#include "cuda/library.cuh"

namespace {

enum { PLANS = 256, WAYS = 8, MOST_DIMS = 5, AXES = 3, OPERANDS = 3, ENGINES = 16, ALIGNMENT = 16 };
constexpr size_t MOST_ROOM = (size_t)1 << 30; /* of a workspace */

typedef cudnnBackendDescriptor_t Descriptor;
typedef cudnnBackendAttributeName_t Name;

struct Key {
    int kind, dtype, layout, tf32, axes;
    int64_t batch, in, out, groups;
    int64_t from[AXES], to[AXES], kernel[AXES], stride[AXES], pad[AXES], dilation[AXES];
};

enum { ID_X = 1, ID_W, ID_Y };

struct Graph { /* all that is made of descriptors; they live as long as it */
    enum { MOST = 64 };
    const Cudnn *dnn = nullptr;
    Descriptor all[MOST];
    int count = 0;
    bool good = true;

    Descriptor make(cudnnBackendDescriptorType_t type)
    {
        Descriptor d = nullptr;
        good = good && count < MOST && dnn->cudnnBackendCreateDescriptor(type, &d) == 0;
        return good ? all[count++] = d : nullptr;
    }
    void set(Descriptor d, Name name, cudnnBackendAttributeType_t type, int64_t n, const void *values)
    {
        good = good && dnn->cudnnBackendSetAttribute(d, name, type, n, values) == 0;
    }
    void set(Descriptor d, Name name, Descriptor value)
    {
        set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
    }
    void set(Descriptor d, Name name, int64_t value) { set(d, name, CUDNN_TYPE_INT64, 1, &value); }
    bool finish(Descriptor d) { return good = good && dnn->cudnnBackendFinalize(d) == 0; }
    ~Graph()
    {
        while (count > 0) dnn->cudnnBackendDestroyDescriptor(all[--count]);
    }
};

struct Plan {
    Key key;
    Graph graph;
    Descriptor plan; /* nullptr: none serves */
    int64_t room;
};

struct Dnn { /* of a GPU */
    const Cudnn *dnn;
    cudnnHandle_t handle;
    Plan *plan[PLANS];
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
    Dnn *d = new (std::nothrow) Dnn{};
    if (!d) return nullptr;
    d->dnn = dnn;
    if (dnn->cudnnCreate(&d->handle) == 0) return *made = d;
    delete d;
    return nullptr;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

cudnnDataType_t type_of(int dtype)
{
    return dtype == TENSOR_F64    ? CUDNN_DATA_DOUBLE
           : dtype == TENSOR_F16  ? CUDNN_DATA_HALF
           : dtype == TENSOR_BF16 ? CUDNN_DATA_BFLOAT16
                                  : CUDNN_DATA_FLOAT;
}

/* [first, second, axes ..], dense, the second dimension behind the others where channels lie last. */
Descriptor tensor(Graph *g, const Key &k, int64_t id, int64_t first, int64_t second, const int64_t *axis)
{
    int64_t size[MOST_DIMS] = { first, second }, stride[MOST_DIMS];
    const int n = 2 + k.axes;
    for (int i = 0; i < k.axes; i++) size[2 + i] = axis[AXES - k.axes + i];
    const bool last = k.layout == LAYOUT_LAST;
    int64_t at = last ? second : 1;
    for (int i = n - 1; i >= 2; i--) stride[i] = at, at *= size[i];
    stride[1] = last ? 1 : at;
    stride[0] = last ? at : at * second;
    const cudnnDataType_t type = type_of(k.dtype);
    Descriptor d = g->make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    g->set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    g->set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, n, size);
    g->set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, n, stride);
    g->set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    g->set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, (int64_t)ALIGNMENT);
    return g->finish(d) ? d : nullptr;
}

Descriptor convolution(Graph *g, const Key &k)
{
    const cudnnDataType_t type = k.dtype == TENSOR_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    const int mode = CUDNN_CROSS_CORRELATION, skip = AXES - k.axes;
    Descriptor d = g->make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    g->set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    g->set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    g->set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, (int64_t)k.axes);
    g->set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, k.axes, k.pad + skip);
    g->set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, k.axes, k.pad + skip);
    g->set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, k.axes, k.stride + skip);
    g->set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, k.axes, k.dilation + skip);
    return g->finish(d) ? d : nullptr;
}

struct Names { /* of an operation's attributes; alpha, beta and the convolution have the first three */
    cudnnBackendDescriptorType_t type;
    int first;
    Name x, w, y;
};
const Names names[] = {
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY },
};
static_assert(CONV_FORWARD == 0 && CONV_INPUT == 1 && CONV_WEIGHT == 2, "the order of names");

Descriptor graph_of(Graph *g, const Key &k, cudnnHandle_t handle)
{
    const Names &name = names[k.kind];
    const bool f64 = k.dtype == TENSOR_F64;
    const double scale64[2] = { 1, 0 };
    const float scale32[2] = { 1, 0 };
    Descriptor x = tensor(g, k, ID_X, k.batch, k.in, k.from), y = tensor(g, k, ID_Y, k.batch, k.out, k.to),
               w = tensor(g, k, ID_W, k.out, k.in / k.groups, k.kernel), conv = convolution(g, k);
    Descriptor op = g->make(name.type), graph = g->make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    for (int i = 0; i < 2; i++)
        g->set(op, (Name)(name.first + i), f64 ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
               f64 ? (const void *)&scale64[i] : &scale32[i]);
    g->set(op, (Name)(name.first + 2), conv);
    g->set(op, name.x, x), g->set(op, name.w, w), g->set(op, name.y, y);
    if (!g->finish(op)) return nullptr;
    g->set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    g->set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, op);
    return g->finish(graph) ? graph : nullptr;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* May an engine with these notes serve? */
bool serves(const Key &k, const int *note, int64_t notes)
{
    for (int64_t i = 0; i < notes; i++) {
        if (note[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
            note[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)
            return false;
        const bool narrows = note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                             note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        if (narrows && k.dtype == TENSOR_F32 && !k.tf32) return false;
    }
    return true;
}

bool may_serve(Graph *g, const Key &k, Descriptor config)
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
           serves(k, note, n);
}

/* Sets plan and room if the configuration makes one. */
bool try_config(Plan *p, cudnnHandle_t handle, Descriptor config)
{
    Graph *g = &p->graph;
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

void choose(Plan *p, cudnnHandle_t handle, Descriptor graph, int mode)
{
    Graph *g = &p->graph;
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
        if (may_serve(g, p->key, config[i])) try_config(p, handle, config[i]);
}

/* What was made for a plan is kept with it. */
void make_plan(Plan *p, Dnn *d)
{
    for (int mode : { (int)CUDNN_HEUR_MODE_A, (int)CUDNN_HEUR_MODE_FALLBACK }) {
        p->graph.good = true;
        Descriptor graph = graph_of(&p->graph, p->key, d->handle);
        if (graph) choose(p, d->handle, graph, mode);
        if (p->plan) return;
        while (p->graph.count > 0) d->dnn->cudnnBackendDestroyDescriptor(p->graph.all[--p->graph.count]);
    }
}

size_t hash_of(const Key &key)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < sizeof key; i++) h = (h ^ ((const unsigned char *)&key)[i]) * 1099511628211u;
    return (size_t)(h >> 32);
}

/* Where the plan for a key is, or may be: the first free place of a few, else the first of them. */
Plan **place_of(Dnn *d, const Key &key)
{
    const size_t first = hash_of(key);
    for (size_t i = 0; i < WAYS; i++) {
        Plan **at = &d->plan[(first + i) % PLANS];
        if (!*at || memcmp(&(*at)->key, &key, sizeof key) == 0) return at;
    }
    return &d->plan[first % PLANS];
}

Plan *plan_for(Dnn *d, const Key &key)
{
    Plan **at = place_of(d, key);
    if (*at && memcmp(&(*at)->key, &key, sizeof key) == 0) return *at;
    Plan *p = new (std::nothrow) Plan{};
    if (!p) return nullptr;
    memcpy(&p->key, &key, sizeof key);
    p->graph.dnn = d->dnn;
    make_plan(p, d);
    delete *at;
    return *at = p;
}

/* ---- a call ---------------------------------------------------------------------------------- */

void set_key(Key *key, ConvKind kind, const ConvArgs *a)
{
    Key &k = *key;
    memset(&k, 0, sizeof k); /* its gaps are compared, too */
    const bool flat = a->d == 1 && a->od == 1 && a->kd == 1 && a->pad_d == 0;
    k.kind = kind, k.dtype = a->dtype, k.layout = a->layout, k.tf32 = a->precision != GEMM_EXACT;
    k.axes = flat ? 2 : 3;
    k.batch = a->batch, k.in = a->in, k.out = a->out, k.groups = a->groups;
    const int64_t each[6][AXES] = { { a->d, a->h, a->w },
                                    { a->od, a->oh, a->ow },
                                    { a->kd, a->kh, a->kw },
                                    { a->stride_d, a->stride_h, a->stride_w },
                                    { a->pad_d, a->pad_h, a->pad_w },
                                    { a->dilation_d, a->dilation_h, a->dilation_w } };
    int64_t *const to[6] = { k.from, k.to, k.kernel, k.stride, k.pad, k.dilation };
    for (int i = 0; i < 6; i++) memcpy(to[i], each[i], sizeof each[i]);
}

/* Between weights [out, in, taps], as they are, and [out, taps, in]. */
int turn_weights(const ConvArgs *a, void *from, void *to, bool back)
{
    const int64_t in = a->in / a->groups, taps = a->kd * a->kh * a->kw;
    CopyArgs c = {};
    c.ndim = 3, c.count = a->out * in * taps;
    c.shape[0] = a->out, c.shape[1] = in, c.shape[2] = taps;
    Strided ours = {}, its = {};
    ours.stride[0] = its.stride[0] = in * taps;
    ours.stride[1] = taps, ours.stride[2] = 1, its.stride[1] = 1, its.stride[2] = in;
    c.src = back ? its : ours, c.dst = back ? ours : its;
    c.src.data = from, c.dst.data = to, c.src.dtype = c.dst.dtype = a->dtype;
    return gpu_copy(&c);
}

template <class T> __global__ void add_bias(Space<2> space, T *y, const T *bias)
{
    for (int64_t i = first_item(); i < space.count; i += item_step()) {
        int64_t at[2];
        offsets(space, i, at);
        put(y + at[0], value_of(y[at[0]]) + value_of(bias[at[1]]));
    }
}

int finish_with_bias(const ConvArgs *a, void *y, int64_t channels, int64_t positions)
{
    Space<2> space;
    const bool last = a->layout == LAYOUT_LAST;
    const int64_t shape[3] = { a->batch, last ? positions : channels, last ? channels : positions },
                  at[3] = { channels * positions, shape[2], 1 }, bias[3] = { 0, last ? 0 : 1, last ? 1 : 0 };
    set_space(&space, 3, a->batch * channels * positions, shape);
    set_strides(&space, 0, at), set_strides(&space, 1, bias);
    return with_float(a->dtype, [&]<class T>() {
        auto kernel = &add_bias<T>;
        LAUNCH(kernel, gpu_blocks(space.count), THREADS, space, (T *)y, (const T *)a->bias);
        return gpu_launched("convolution");
    });
}

/* Queues it, perhaps in a capture; the descriptors of the call go with it. */
int execute(Dnn *d, const Plan *p, void *x, void *w, void *y, void *room)
{
    Graph g;
    g.dnn = d->dnn;
    void *const data[OPERANDS] = { x, w, y };
    const int64_t id[OPERANDS] = { ID_X, ID_W, ID_Y };
    Descriptor pack = g.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    g.set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, OPERANDS, id);
    g.set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, OPERANDS, data);
    g.set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room);
    const bool ready = g.finish(pack) && d->dnn->cudnnSetStream(d->handle, gpu_stream()) == 0;
    const cudnnStatus_t status = ready ? d->dnn->cudnnBackendExecute(d->handle, p->plan, pack) : -1;
    return status == 0 ? KERNEL_DONE : gpu_fail("convolution: cuDNN status %d", (int)status);
}

bool aligned(const ConvArgs *a)
{
    return (uintptr_t)a->x % ALIGNMENT == 0 && (uintptr_t)a->y % ALIGNMENT == 0 &&
           (uintptr_t)a->weight % ALIGNMENT == 0;
}

} // namespace

int conv_cudnn(ConvKind kind, const ConvArgs *a)
{
    const int64_t pixels = a->d * a->h * a->w, positions = a->od * a->oh * a->ow,
                  taps = a->kd * a->kh * a->kw;
    const int64_t weights = a->out * (a->in / a->groups) * taps;
    if (a->dtype > TENSOR_BF16 || !aligned(a) || a->batch * pixels * positions * weights == 0)
        return KERNEL_DECLINED;
    Key key;
    set_key(&key, kind, a);
    Dnn *d = dnn_of_gpu();
    Plan *p = d ? plan_for(d, key) : nullptr;
    if (!p || !p->plan) return KERNEL_DECLINED;
    const bool turned = a->layout == LAYOUT_LAST && taps > 1, grad = kind == CONV_WEIGHT;
    Scratch room((size_t)p->room), turn(turned ? (size_t)weights * gpu_dtype_size(a->dtype) : 0);
    if (!room.data || !turn.data) return KERNEL_FAILED;
    void *const w = turned ? turn.data : a->weight;
    if ((turned && !grad && turn_weights(a, a->weight, w, false)) ||
        execute(d, p, a->x, w, a->y, room.data) || (turned && grad && turn_weights(a, w, a->weight, true)))
        return KERNEL_FAILED;
    if (!a->bias || grad) return KERNEL_DONE;
    return kind == CONV_FORWARD ? finish_with_bias(a, a->y, a->out, positions)
                                : finish_with_bias(a, a->x, a->in, pixels);
}
