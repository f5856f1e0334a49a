/* pool2d.c - the largest and the mean of windows over the last two dimensions.
 *
 *   max: y = x at the window's argmax           dx = dy added where the index points
 *   avg: y = sum of the window / divisor        dx = dy / divisor added to all of the window
 *   adaptive: y = R x C, where rows of R and C^T hold 1 / length on windows that cover the input
 *
 * The backward of avg is an op, whose own gradient is avg again; that of max on the graph is a scatter by the saved index,
 * whose gradient is a gather. */
#include "../reduce.h"
#include "window.h"

typedef struct PoolParams {
    OpDims kernel, stride, padding, dilation;       /* none: 1, the kernel's, 0, 1 */
    bool ceil_mode, count_include_pad;
    int64_t divisor_override;                       /* 0: none */
    OpDims size;                                    /* avg_pool2d_grad: of its result's last two dimensions */
} PoolParams;

typedef struct Windows { Pair k, stride, pad, dilation; } Windows;

static Windows windows_of(const PoolParams *p)
{
    Windows w = { .k = pair_of(&p->kernel, (Pair){ 1, 1 }) };
    w.stride = pair_of(&p->stride, w.k), w.pad = pair_of(&p->padding, (Pair){ 0, 0 }), w.dilation = pair_of(&p->dilation, (Pair){ 1, 1 });
    if (w.stride.h == 0 && w.stride.w == 0) w.stride = w.k;
    return w;
}

static int64_t reach(int64_t kernel, int64_t dilation) { return dilation * (kernel - 1) + 1; }

static int check(OpCall *c, const PoolParams *p)
{
    const Windows w = windows_of(p);
    if (!within(w.k, 1)) return op_fail(c, TENSOR_EVALUE, "a kernel of %lld x %lld", (long long)w.k.h, (long long)w.k.w);
    if (!within(w.stride, 1)) return op_fail(c, TENSOR_EVALUE, "stride %lld x %lld", (long long)w.stride.h, (long long)w.stride.w);
    if (!within(w.dilation, 1))
        return op_fail(c, TENSOR_EVALUE, "dilation %lld x %lld", (long long)w.dilation.h, (long long)w.dilation.w);
    if (!within(w.pad, 0) || w.pad.h > w.k.h / 2 || w.pad.w > w.k.w / 2)
        return op_fail(c, TENSOR_EVALUE, "padding %lld x %lld of a kernel of %lld x %lld: at most half of it", (long long)w.pad.h,
                       (long long)w.pad.w, (long long)w.k.h, (long long)w.k.w);
    if (p->divisor_override < 0) return op_fail(c, TENSOR_EVALUE, "divisor %lld", (long long)p->divisor_override);
    return 0;
}

static int64_t steps(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation, bool ceil_mode)
{
    const int64_t room = size + 2 * pad - reach(kernel, dilation);
    if (room < 0 && !(ceil_mode && room > -stride)) return 0;
    int64_t n = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    return ceil_mode && (n - 1) * stride >= size + pad ? n - 1 : n;
}

static int result_size(OpCall *c, const PoolParams *p, Pair x, Pair *y)
{
    const Windows w = windows_of(p);
    y->h = steps(x.h, w.k.h, w.stride.h, w.pad.h, w.dilation.h, p->ceil_mode);
    y->w = steps(x.w, w.k.w, w.stride.w, w.pad.w, w.dilation.w, p->ceil_mode);
    if (x.h > 0 && x.w > 0 && y->h > 0 && y->w > 0) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s: no room for a window of %lld x %lld in %lld x %lld, padded by %lld x %lld", S(op_input(c, 0)),
                   (long long)reach(w.k.h, w.dilation.h), (long long)reach(w.k.w, w.dilation.w), (long long)x.h, (long long)x.w,
                   (long long)w.pad.h, (long long)w.pad.w);
}

static int want_image(OpCall *c, const Tensor *x)
{
    if (x->ndim == 3 || x->ndim == 4) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, height, width], or that without batch", S(x));
}

static Pair last_two(TensorShape x) { return (Pair){ x.dim[x.ndim - 2], x.dim[x.ndim - 1] }; }

static int set_result(OpCall *c, int i, const Tensor *x, Pair size, int dtype)
{
    int64_t dim[4];
    for (int d = 0; d < x->ndim; d++) dim[d] = x->shape[d];
    dim[x->ndim - 2] = size.h, dim[x->ndim - 1] = size.w;
    return op_set_output(c, i, (TensorShape){ x->ndim, dim }, (TensorDtype)dtype);
}

static int shape(OpCall *c)
{
    Pair y;
    const Tensor *x = op_input(c, 0);
    if (want_image(c, x) || check(c, op_params(c)) || result_size(c, op_params(c), last_two(shape_of(x)), &y)) return -1;
    return set_result(c, 0, x, y, x->dtype);
}

static PoolArgs args_of(const PoolParams *p, int dtype, TensorShape x, TensorShape y)
{
    const Windows w = windows_of(p);
    int64_t planes = 1;
    for (int i = 0; i < x.ndim - 2; i++) planes *= x.dim[i];
    return (PoolArgs){ .dtype = dtype, .planes = planes, .h = last_two(x).h, .w = last_two(x).w, .oh = last_two(y).h, .ow = last_two(y).w,
                       .kh = w.k.h, .kw = w.k.w, .stride_h = w.stride.h, .stride_w = w.stride.w, .pad_h = w.pad.h, .pad_w = w.pad.w,
                       .dilation_h = w.dilation.h, .dilation_w = w.dilation.w, .count_include_pad = p->count_include_pad,
                       .divisor = p->divisor_override };
}

/* Where a kernel is to write: out itself, or f32 for a half. */
static Tensor *target(Tensor *out)
{
    bool half = out && (out->dtype == TENSOR_F16 || out->dtype == TENSOR_BF16);
    return half ? own(new_tensor(shape_of(out), TENSOR_F32, out->place)) : out;
}

static int deliver(Tensor *out, const Tensor *from) { return out == from ? 0 : raw_copy(out, from); }

/* ---- max ----------------------------------------------------------------------------------------------------------- */

static int max_shape(OpCall *c)
{
    const Pair size = op_input(c, 0)->ndim < 2 ? (Pair){ 0, 0 } : last_two(shape_of(op_input(c, 0)));
    if (size.h > 0 && size.w > INT32_MAX / size.h)              /* kernels count in 32 bits within a plane */
        return op_fail(c, TENSOR_ESHAPE, "%s: a plane has more than 2^31 elements", S(op_input(c, 0)));
    if (shape(c)) return -1;
    return set_result(c, 1, op_input(c, 0), last_two(op_output_shape(c, 0)), TENSOR_I64);
}

static int max_forward(OpCall *c)
{
    Tensor *x = dense_float(op_input(c, 0)), *out = op_output(c, 0), *y = target(out);
    if (!x || !y) return -1;
    PoolArgs args = args_of(op_params(c), y->dtype, shape_of(x), shape_of(y));
    args.x = x->data, args.y = y->data, args.index = op_output(c, 1)->data;
    return RUN_KERNEL(c->op->name, x->place, max_pool2d, &args) ? -1 : deliver(out, y);
}

static Tensor *max_fused(OpCall *c, Tensor *dy, const Tensor *index)
{
    Tensor *dx = own(new_tensor(op_input_shape(c, 0), op_input_dtype(c, 0), dy->place)), *wide = target(dx);
    if (!wide || !(dy = dense_float(dy))) return NULL;
    PoolArgs args = args_of(op_params(c), wide->dtype, shape_of(wide), shape_of(dy));
    args.x = wide->data, args.y = dy->data, args.index = index->data;
    return RUN_KERNEL(c->op->name, dy->place, max_pool2d_grad, &args) || deliver(dx, wide) ? NULL : dx;
}

/* [planes, positions] */
static Tensor *flat(Tensor *x)
{
    return x ? tensor_reshape(x, SHAPE(x->numel / (x->shape[x->ndim - 1] * x->shape[x->ndim - 2]), x->shape[x->ndim - 1] * x->shape[x->ndim - 2]))
             : NULL;
}

static int max_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *index = op_saved_output(c, 1);
    if (!index) return -1;
    if (!op_recording(c)) {
        dx[0] = max_fused(c, dy, index);
    } else {
        Tensor *zero = own(new_tensor(op_input_shape(c, 0), op_input_dtype(c, 0), dy->place));
        if (!zero || raw_fill(zero, 0)) return -1;
        dx[0] = tensor_reshape(tensor_scatter_add(flat(zero), 1, flat(index), flat(dy)), op_input_shape(c, 0));
    }
    return dx[0] ? 0 : -1;
}

/* ---- avg ----------------------------------------------------------------------------------------------------------- */

static int avg_forward(OpCall *c)
{
    Tensor *x = dense_float(op_input(c, 0)), *out = op_output(c, 0), *y = target(out);
    if (!x || !y) return -1;
    PoolArgs args = args_of(op_params(c), y->dtype, shape_of(x), shape_of(y));
    args.x = x->data, args.y = y->data;
    return RUN_KERNEL(c->op->name, x->place, avg_pool2d, &args) ? -1 : deliver(out, y);
}

static const TensorOp op_avg_pool2d, op_avg_pool2d_grad;

static int avg_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    PoolParams p = *(const PoolParams *)op_params(c);
    const Pair size = last_two(op_input_shape(c, 0));
    p.size = (OpDims){ 2, { size.h, size.w } };
    dx[0] = APPLY(&op_avg_pool2d_grad, &p, dy);
    return dx[0] ? 0 : -1;
}

static int spread_shape(OpCall *c)
{
    Pair y;
    const PoolParams *p = op_params(c);
    const Tensor *dy = op_input(c, 0);
    const Pair x = pair_of(&p->size, (Pair){ 0, 0 });
    if (want_image(c, dy) || check(c, p)) return -1;
    if (!within(x, 1)) return op_fail(c, TENSOR_EVALUE, "an input of %lld x %lld", (long long)x.h, (long long)x.w);
    if (result_size(c, p, x, &y)) return -1;
    if (y.h != last_two(shape_of(dy)).h || y.w != last_two(shape_of(dy)).w)
        return op_fail(c, TENSOR_ESHAPE, "%s: an input of %lld x %lld gives %lld x %lld", S(dy), (long long)x.h, (long long)x.w,
                       (long long)y.h, (long long)y.w);
    return set_result(c, 0, dy, x, dy->dtype);
}

static int spread_forward(OpCall *c)
{
    Tensor *dy = dense_float(op_input(c, 0)), *out = op_output(c, 0), *dx = target(out);
    if (!dy || !dx) return -1;
    PoolArgs args = args_of(op_params(c), dx->dtype, shape_of(dx), shape_of(dy));
    args.x = dx->data, args.y = dy->data;
    return RUN_KERNEL(c->op->name, dy->place, avg_pool2d_grad, &args) ? -1 : deliver(out, dx);
}

static int spread_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    dx[0] = APPLY(&op_avg_pool2d, op_params(c), g);
    return dx[0] ? 0 : -1;
}

/* ---- adaptive ------------------------------------------------------------------------------------------------------- */

typedef struct AdaptiveParams { int64_t height, width; } AdaptiveParams;

/* [n, size]: the means of n windows of a line. */
static Tensor *means(int64_t size, int64_t n, int dtype, const Place *place)
{
    Tensor *host = own(new_tensor(SHAPE(n, size), TENSOR_F64, &cpu_place)), *m = own(new_tensor(SHAPE(n, size), dtype, place));
    if (!host || !m) return NULL;
    double *at = host->data;
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = i * size / n, to = ((i + 1) * size + n - 1) / n;
        for (int64_t j = 0; j < size; j++) *at++ = j >= from && j < to ? 1.0 / (double)(to - from) : 0;
    }
    return raw_copy(m, host) ? NULL : m;
}

static int adaptive_shape(OpCall *c)
{
    const AdaptiveParams *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    if (want_image(c, x)) return -1;
    if (p->height < 0 || p->width < 0 || p->height > WINDOW_LIMIT || p->width > WINDOW_LIMIT)
        return op_fail(c, TENSOR_EVALUE, "to %lld x %lld", (long long)p->height, (long long)p->width);
    if (x->shape[x->ndim - 1] == 0 || x->shape[x->ndim - 2] == 0) return op_fail(c, TENSOR_ESHAPE, "%s: nothing to average", S(x));
    return 0;
}

/* Means of whole windows are a plain pool; the others two products. */
static int adaptive_compose(OpCall *c)
{
    const AdaptiveParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    const Pair in = last_two(shape_of(x));
    if (p->height == 1 && p->width == 1) return op_set_result(c, 0, tensor_mean(x, .dims = DIMS(-2, -1), .keepdim = true));
    if (p->height > 0 && p->width > 0 && in.h % p->height == 0 && in.w % p->width == 0)
        return op_set_result(c, 0, tensor_avg_pool2d(x, .kernel_hw = { in.h / p->height, in.w / p->width }));
    Tensor *rows = means(in.h, p->height, x->dtype, x->place), *columns = means(in.w, p->width, x->dtype, x->place);
    if (!rows || !columns) return -1;
    return op_set_result(c, 0, tensor_matmul(rows, tensor_matmul(x, tensor_transpose(columns, 0, 1))));
}

/* ---- ops ------------------------------------------------------------------------------------------------------------- */

#define WINDOW_FIELDS OP_FIELD(OP_DIMS, PoolParams, kernel, NULL), OP_FIELD(OP_DIMS, PoolParams, stride, "[]"), \
    OP_FIELD(OP_DIMS, PoolParams, padding, "[]"), OP_FIELD(OP_BOOL, PoolParams, ceil_mode, "0")
#define AVG_FIELDS OP_FIELD(OP_BOOL, PoolParams, count_include_pad, "1"), OP_FIELD(OP_I64, PoolParams, divisor_override, "0")

static const OpField max_fields[] = { WINDOW_FIELDS, OP_FIELD(OP_DIMS, PoolParams, dilation, "[]"), { 0 } };
static const OpField avg_fields[] = { WINDOW_FIELDS, AVG_FIELDS, { 0 } };
static const OpField spread_fields[] = { WINDOW_FIELDS, AVG_FIELDS, OP_FIELD(OP_DIMS, PoolParams, size, NULL), { 0 } };
static const OpField adaptive_fields[] = { OP_FIELD(OP_I64, AdaptiveParams, height, NULL), OP_FIELD(OP_I64, AdaptiveParams, width, NULL), { 0 } };

#define POOL_ERRORS \
    "2x3x4x4 {kernel=[0]} ! EVALUE; 2x3x4x4 {kernel=[2] stride=[-1]} ! EVALUE; 2x3x4x4 {kernel=[3] padding=[2]} ! EVALUE; " \
    "2x3x4x4 {kernel=[5]} ! ESHAPE; 4x4 {kernel=[2]} ! ESHAPE; 2x3x4x4@i64 {kernel=[2]} ! EDTYPE; 2x3x0x4 {kernel=[2]} ! ESHAPE"

static const TensorOp op_max_pool2d = {
    .name = "max_pool2d", .summary = "the largest of each window, and its position; the first one on ties",
    .gradient = "dx = zeros with g added at the positions", .arity = 1, .outputs = 2,
    .keep = KEEP_OUTPUT(1), .params = sizeof(PoolParams), .fields = max_fields, .shape = max_shape, .forward = max_forward,
    .backward = max_backward, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS, .torch = "nn.functional.max_pool2d",
    .samples = "2x3x4x4 {kernel=[2]}; 1x2x5x6 {kernel=[3 2] stride=[2 1]}; 2x5x5 {kernel=[3] stride=[2] padding=[1]}; "
               "1x2x5x5 {kernel=[2] ceil_mode=1}; 1x2x5x5 {kernel=[3] stride=[2] padding=[1] ceil_mode=1}; "
               "1x1x7x7 {kernel=[3] stride=[1] dilation=[2]}; 0x3x4x4 {kernel=[2]}; 1x1x8x9 {kernel=[2 3] padding=[1 1] dilation=[3 2] stride=[2 1]}",
    .errors = POOL_ERRORS "; 2x3x4x4 {kernel=[2] dilation=[0]} ! EVALUE",
};
static const TensorOp op_avg_pool2d = {
    .name = "avg_pool2d", .summary = "the mean of each window",
    .gradient = "dx = avg_pool2d_grad(g)", .arity = 1, .params = sizeof(PoolParams), .fields = avg_fields,
    .shape = shape, .forward = avg_forward, .backward = avg_backward, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.avg_pool2d",
    .samples = "2x3x4x4 {kernel=[2]}; 1x2x5x6 {kernel=[3 2] stride=[2 1]}; 2x5x5 {kernel=[3] stride=[2] padding=[1]}; "
               "1x2x5x5 {kernel=[2] ceil_mode=1}; 1x2x5x6 {kernel=[3] stride=[2] padding=[1] ceil_mode=1}; "
               "1x2x5x6 {kernel=[3] stride=[2] padding=[1] ceil_mode=1 count_include_pad=0}; 1x1x4x4 {kernel=[2] divisor_override=3}; "
               "0x3x4x4 {kernel=[2]}",
    .errors = POOL_ERRORS "; 2x3x4x4 {kernel=[2] divisor_override=-1} ! EVALUE",
};
static const TensorOp op_avg_pool2d_grad = {
    .name = "avg_pool2d_grad", .summary = "gradient of avg_pool2d's input of that size",
    .gradient = "dx = avg_pool2d(g)", .arity = 1, .params = sizeof(PoolParams),
    .fields = spread_fields, .shape = spread_shape, .forward = spread_forward, .backward = spread_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS, .torch = "-",
    .samples = "2x3x2x2 {kernel=[2] size=[4 4]}; 2x3x3 {kernel=[3] stride=[2] padding=[1] size=[5 5]}; "
               "1x2x3x4 {kernel=[3] stride=[2] padding=[1] ceil_mode=1 count_include_pad=0 size=[5 6]}; 0x3x2x2 {kernel=[2] size=[4 4]}",
    .errors = "2x3x2x2 {kernel=[2] size=[9 4]} ! ESHAPE; 2x2 {kernel=[2] size=[4 4]} ! ESHAPE; 2x3x2x2 {kernel=[2] size=[0 4]} ! EVALUE",
};
static const TensorOp op_adaptive_avg_pool2d = {
    .name = "adaptive_avg_pool2d", .summary = "means of height x width windows that cover the input",
    .gradient = "dx = g / window, added over windows", .arity = 1,
    .params = sizeof(AdaptiveParams), .fields = adaptive_fields, .shape = adaptive_shape, .compose = adaptive_compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE, .torch = "nn.functional.adaptive_avg_pool2d",
    .samples = "2x3x4x6 {height=1 width=1}; 2x3x4x6 {height=2 width=3}; 2x5x7 {height=3 width=4}; 1x2x3x3 {height=5 width=2}; "
               "0x3x5x5 {height=2 width=2}",
    .errors = "4x4 {height=1 width=1} ! ESHAPE; 2x3x4x4 {height=-1 width=1} ! EVALUE; 2x3x0x4 {height=1 width=1} ! ESHAPE",
};
REGISTER_OP(op_max_pool2d);
REGISTER_OP(op_avg_pool2d);
REGISTER_OP(op_avg_pool2d_grad);
REGISTER_OP(op_adaptive_avg_pool2d);

static PoolParams params_of(const TensorPool2dArgs *a)
{
    return (PoolParams){ .kernel = dims_pair(a->kernel, a->kernel_hw), .stride = dims_pair(a->stride, a->stride_hw),
                         .padding = dims_pair(a->padding, a->padding_hw), .dilation = dims_pair(a->dilation, a->dilation_hw),
                         .ceil_mode = a->ceil_mode, .count_include_pad = a->count_include_pad, .divisor_override = a->divisor_override };
}

Tensor *tensor_max_pool2d_args(TensorPool2dArgs a)
{
    const PoolParams p = params_of(&a);
    Tensor *result[2] = { NULL, NULL };
    int n = op_apply(&op_max_pool2d, &a.input, 1, &p, SITE, result, 2);
    if (a.indices) *a.indices = result[1];
    return n < 0 ? NULL : result[0];
}

Tensor *tensor_avg_pool2d_args(TensorPool2dArgs a)
{
    PoolParams p = params_of(&a);
    p.dilation = (OpDims){ 0 };
    return APPLY(&op_avg_pool2d, &p, a.input);
}

Tensor *tensor_adaptive_avg_pool2d(Tensor *x, int64_t height, int64_t width)
{
    return APPLY(&op_adaptive_avg_pool2d, &((AdaptiveParams){ height, width }), x);
}
