/* conv_cudnn.cu - convolutions by cuDNN, where it is there and has an engine that serves.
 *
 *  - A call is a graph of one operation, in f32 unless TF32 was asked for.  Halves accumulate in f32.
 *  - A bias is added by a kernel of ours.
 *  - Where channels lie last, cuDNN wants those of the weights last, too: it gets a copy that lies so. */
#include "conv.cuh"
#include "cuda/cudnn_graph.cuh"

namespace {

enum { MOST_DIMS = 5, AXES = 3, OPERANDS = 3 };

typedef cudnnBackendAttributeName_t Name;

struct ConvKey {
    int kind, dtype, layout, tf32, axes;
    int64_t batch, in, out, groups;
    int64_t from[AXES], to[AXES], kernel[AXES], stride[AXES], pad[AXES], dilation[AXES];
};

enum { CONV_ID_X = 1, CONV_ID_W, CONV_ID_Y };

/* ---- descriptors ----------------------------------------------------------------------------- */

/* [first, second, axes ..], dense, the second dimension behind the others where channels lie last. */
Descriptor tensor(DnnGraph *g, const ConvKey &k, int64_t id, int64_t first, int64_t second,
                  const int64_t *axis)
{
    int64_t size[MOST_DIMS] = { first, second }, stride[MOST_DIMS];
    const int n = 2 + k.axes;
    for (int i = 0; i < k.axes; i++) size[2 + i] = axis[AXES - k.axes + i];
    const bool last = k.layout == LAYOUT_LAST;
    int64_t at = last ? second : 1;
    for (int i = n - 1; i >= 2; i--) stride[i] = at, at *= size[i];
    stride[1] = last ? 1 : at;
    stride[0] = last ? at : at * second;
    return g->tensor(id, dnn_type_of(k.dtype), n, size, stride);
}

Descriptor convolution(DnnGraph *g, const ConvKey &k)
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

void add_operation(DnnGraph *g, const void *key)
{
    const ConvKey &k = *(const ConvKey *)key;
    const Names &name = names[k.kind];
    const bool f64 = k.dtype == TENSOR_F64;
    const double scale64[2] = { 1, 0 };
    const float scale32[2] = { 1, 0 };
    Descriptor x = tensor(g, k, CONV_ID_X, k.batch, k.in, k.from),
               y = tensor(g, k, CONV_ID_Y, k.batch, k.out, k.to),
               w = tensor(g, k, CONV_ID_W, k.out, k.in / k.groups, k.kernel), conv = convolution(g, k);
    Descriptor op = g->make(name.type);
    for (int i = 0; i < 2; i++)
        g->set(op, (Name)(name.first + i), f64 ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
               f64 ? (const void *)&scale64[i] : &scale32[i]);
    g->set(op, (Name)(name.first + 2), conv);
    g->set(op, name.x, x), g->set(op, name.w, w), g->set(op, name.y, y);
    g->add(op);
}

/* ---- a call ---------------------------------------------------------------------------------- */

void set_key(ConvKey *key, ConvKind kind, const ConvArgs *a)
{
    ConvKey &k = *key;
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

bool aligned(const ConvArgs *a)
{
    return (uintptr_t)a->x % DNN_ALIGNMENT == 0 && (uintptr_t)a->y % DNN_ALIGNMENT == 0 &&
           (uintptr_t)a->weight % DNN_ALIGNMENT == 0;
}

} // namespace

int conv_cudnn(ConvKind kind, const ConvArgs *a)
{
    const int64_t pixels = a->d * a->h * a->w, positions = a->od * a->oh * a->ow,
                  taps = a->kd * a->kh * a->kw;
    const int64_t weights = a->out * (a->in / a->groups) * taps;
    if (a->dtype > TENSOR_BF16 || !aligned(a) || a->batch * pixels * positions * weights == 0)
        return KERNEL_DECLINED;
    ConvKey key;
    set_key(&key, kind, a);
    const DnnPlan *p = dnn_plan(&key, sizeof key, add_operation, a->dtype == TENSOR_F32 && !key.tf32);
    if (!p) return KERNEL_DECLINED;
    const bool turned = a->layout == LAYOUT_LAST && taps > 1, grad = kind == CONV_WEIGHT;
    Scratch room((size_t)p->room), turn(turned ? (size_t)weights * gpu_dtype_size(a->dtype) : 0);
    if (!room.data || !turn.data) return KERNEL_FAILED;
    void *const w = turned ? turn.data : a->weight;
    const int64_t id[OPERANDS] = { CONV_ID_X, CONV_ID_W, CONV_ID_Y };
    void *const data[OPERANDS] = { a->x, w, a->y };
    if ((turned && !grad && turn_weights(a, a->weight, w, false)) ||
        dnn_execute("convolution", p, OPERANDS, id, data, room.data) ||
        (turned && grad && turn_weights(a, w, a->weight, true)))
        return KERNEL_FAILED;
    if (!a->bias || grad) return KERNEL_DONE;
    return kind == CONV_FORWARD ? finish_with_bias(a, a->y, a->out, positions)
                                : finish_with_bias(a, a->x, a->in, pixels);
}
