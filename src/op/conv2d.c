/* conv2d.c - two-dimensional convolution, and its two gradients as ops.
 *
 *   y = conv(x, w) + b: y[o, i, j] = b[o] + sum_{c, r, t} w[o, c, r, t] x[c, s i + d r - p, s j + d t - p]
 *   conv is linear in x and in w, so with its transposes X (dx = X(dy, w)) and W (dw = W(x, dy)):
 *
 *                 of x or dy                of w or dy
 *   conv(x, w)    X(g, w)                   W(x, g)
 *   X(dy, w)      conv(g, w)  (of dy)       W(g, dy)  (of w)
 *   W(x, dy)      X(dy, g)    (of x)        conv(x, g)  (of dy)
 *
 * so gradients exist to any order.  Zeros are only ever imagined around x: at the top and left as many as the padding says,
 * at the bottom and right as many as y's size reaches. */
#include "../reduce.h"
#include "window.h"

typedef struct ConvParams {
    OpDims stride, padding, dilation;       /* none: 1, 0, 1 */
    int64_t groups;
    bool same;                              /* padding is what keeps the size */
    OpDims size;                            /* of the result's last two dimensions; gradient ops only */
} ConvParams;

/* The numbers of a call, from shapes x [batch, in, h, w], w [out, in / groups, kh, kw] and y [batch, out, oh, ow]. */
typedef struct Geometry {
    int64_t batch, in, out, groups;
    Pair x, k, y, stride, pad, dilation;
} Geometry;

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static const Pair ones = { 1, 1 };

static int64_t reach(int64_t kernel, int64_t dilation) { return dilation * (kernel - 1) + 1; }

static int check_options(OpCall *c, const ConvParams *p, Geometry *g)
{
    g->stride = pair_of(&p->stride, ones), g->dilation = pair_of(&p->dilation, ones), g->pad = pair_of(&p->padding, (Pair){ 0, 0 });
    g->groups = p->groups;
    if (!within(g->stride, 1)) return op_fail(c, TENSOR_EVALUE, "stride %lld x %lld", (long long)g->stride.h, (long long)g->stride.w);
    if (!within(g->dilation, 1))
        return op_fail(c, TENSOR_EVALUE, "dilation %lld x %lld", (long long)g->dilation.h, (long long)g->dilation.w);
    if (!within(g->pad, 0)) return op_fail(c, TENSOR_EVALUE, "padding %lld x %lld", (long long)g->pad.h, (long long)g->pad.w);
    if (p->groups < 1) return op_fail(c, TENSOR_EVALUE, "%lld groups", (long long)p->groups);
    if (p->same && (g->stride.h != 1 || g->stride.w != 1))
        return op_fail(c, TENSOR_EVALUE, "padding that keeps the size needs stride 1, not %lld x %lld", (long long)g->stride.h,
                       (long long)g->stride.w);
    return 0;
}

static int check_kernel(OpCall *c, const ConvParams *p, Geometry *g, Pair kernel)
{
    g->k = kernel;
    if (!within(kernel, 1)) return op_fail(c, TENSOR_ESHAPE, "%s, %s: a kernel of %lld x %lld", S(op_input(c, 0)), S(op_input(c, 1)),
                                           (long long)kernel.h, (long long)kernel.w);
    if (p->same)
        g->pad = (Pair){ (reach(kernel.h, g->dilation.h) - 1) / 2, (reach(kernel.w, g->dilation.w) - 1) / 2 };
    return 0;
}

static int64_t steps(int64_t size, int64_t pad, int64_t kernel, int64_t dilation, int64_t stride)
{
    const int64_t room = size + 2 * pad - reach(kernel, dilation);
    return room < 0 ? 0 : room / stride + 1;
}

static int check_result(OpCall *c, const ConvParams *p, Geometry *g, Pair x)
{
    g->x = x;
    if (p->same) return g->y = x, 0;
    g->y.h = steps(x.h, g->pad.h, g->k.h, g->dilation.h, g->stride.h);
    g->y.w = steps(x.w, g->pad.w, g->k.w, g->dilation.w, g->stride.w);
    if (g->y.h > 0 && g->y.w > 0) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s, %s: a kernel of %lld x %lld (dilated %lld x %lld) is larger than the padded input of %lld x %lld",
                   S(op_input(c, 0)), S(op_input(c, 1)), (long long)g->k.h, (long long)g->k.w, (long long)reach(g->k.h, g->dilation.h),
                   (long long)reach(g->k.w, g->dilation.w), (long long)(x.h + 2 * g->pad.h), (long long)(x.w + 2 * g->pad.w));
}

static int check_groups(OpCall *c, const Geometry *g, int64_t per_group)
{
    if (g->in % g->groups == 0 && g->out % g->groups == 0 && g->in / g->groups == per_group) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s, %s: %lld channels in, %lld out, %lld groups, a weight for %lld channels in each",
                   S(op_input(c, 0)), S(op_input(c, 1)), (long long)g->in, (long long)g->out, (long long)g->groups, (long long)per_group);
}

static int want_image(OpCall *c, const Tensor *x, const char *what)
{
    if (x->ndim == 3 || x->ndim == 4) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s %s: want [batch, channels, height, width], or that without batch", what, S(x));
}

static int set_result(OpCall *c, const Tensor *like, int64_t channels, Pair size)
{
    const int64_t dim[4] = { batch_of(shape_of(like)), channels, size.h, size.w };
    return op_set_output(c, 0, (TensorShape){ like->ndim, dim + 4 - like->ndim }, (TensorDtype)like->dtype);
}

static Pair last_two(const Tensor *x) { return (Pair){ x->shape[x->ndim - 2], x->shape[x->ndim - 1] }; }

/* ---- running the kernels ------------------------------------------------------------------------------------------- */

static Geometry geometry(const ConvParams *p, TensorShape x, TensorShape w, TensorShape y)
{
    Geometry g = { .batch = batch_of(x), .in = image_of(x)[0], .out = image_of(y)[0], .groups = p->groups };
    g.x = (Pair){ image_of(x)[1], image_of(x)[2] }, g.y = (Pair){ image_of(y)[1], image_of(y)[2] }, g.k = (Pair){ w.dim[2], w.dim[3] };
    g.stride = pair_of(&p->stride, ones), g.dilation = pair_of(&p->dilation, ones), g.pad = pair_of(&p->padding, (Pair){ 0, 0 });
    if (p->same) g.pad = (Pair){ (reach(g.k.h, g.dilation.h) - 1) / 2, (reach(g.k.w, g.dilation.w) - 1) / 2 };
    return g;
}

static ConvArgs args_of(const Geometry *g, int dtype)
{
    return (ConvArgs){ .dtype = dtype, .batch = g->batch, .in = g->in, .h = g->x.h, .w = g->x.w, .out = g->out, .oh = g->y.h,
                       .ow = g->y.w, .kh = g->k.h, .kw = g->k.w, .groups = g->groups, .stride_h = g->stride.h, .stride_w = g->stride.w,
                       .pad_h = g->pad.h, .pad_w = g->pad.w, .dilation_h = g->dilation.h, .dilation_w = g->dilation.w };
}

/* Where a kernel is to write: out itself, or f32 for a half. */
static Tensor *target(Tensor *out)
{
    bool half = out->dtype == TENSOR_F16 || out->dtype == TENSOR_BF16;
    return half ? own(new_tensor(shape_of(out), TENSOR_F32, out->place)) : out;
}

static int deliver(Tensor *out, const Tensor *from) { return out == from ? 0 : raw_copy(out, from); }

static int forward(OpCall *c)
{
    Tensor *x = op_input(c, 0), *w = op_input(c, 1), *b = op_input(c, 2), *out = op_output(c, 0), *y = target(out);
    const Geometry g = geometry(op_params(c), shape_of(x), shape_of(w), shape_of(out));
    ConvArgs args = args_of(&g, y ? y->dtype : 0);
    if (!y || !(x = dense_float(x)) || !(w = dense_float(w)) || (b && !(b = dense_float(b)))) return -1;
    args.x = x->data, args.weight = w->data, args.bias = b ? b->data : NULL, args.y = y->data;
    return RUN_KERNEL(c->op->name, x->place, conv2d, &args) ? -1 : deliver(out, y);
}

static int input_forward(OpCall *c)
{
    Tensor *dy = op_input(c, 0), *w = op_input(c, 1), *out = op_output(c, 0), *dx = target(out);
    const Geometry g = geometry(op_params(c), shape_of(out), shape_of(w), shape_of(dy));
    ConvArgs args = args_of(&g, dx ? dx->dtype : 0);
    if (!dx || !(dy = dense_float(dy)) || !(w = dense_float(w))) return -1;
    args.x = dx->data, args.weight = w->data, args.y = dy->data;
    return RUN_KERNEL(c->op->name, dy->place, conv2d_grad_input, &args) ? -1 : deliver(out, dx);
}

static int weight_forward(OpCall *c)
{
    Tensor *x = op_input(c, 0), *dy = op_input(c, 1), *out = op_output(c, 0), *dw = target(out);
    const Geometry g = geometry(op_params(c), shape_of(x), shape_of(out), shape_of(dy));
    ConvArgs args = args_of(&g, dw ? dw->dtype : 0);
    if (!dw || !(x = dense_float(x)) || !(dy = dense_float(dy))) return -1;
    args.x = x->data, args.weight = dw->data, args.y = dy->data;
    return RUN_KERNEL(c->op->name, x->place, conv2d_grad_weight, &args) ? -1 : deliver(out, dw);
}

/* ---- shapes -------------------------------------------------------------------------------------------------------- */

static int shape(OpCall *c)
{
    const ConvParams *p = op_params(c);
    const Tensor *x = op_input(c, 0), *w = op_input(c, 1), *b = op_input(c, 2);
    Geometry g = { 0 };
    if (want_image(c, x, "input") || check_options(c, p, &g)) return -1;
    if (w->ndim != 4) return op_fail(c, TENSOR_ESHAPE, "weight %s: want [out, in / groups, height, width]", S(w));
    g.in = x->shape[x->ndim - 3], g.out = w->shape[0];
    if (check_groups(c, &g, w->shape[1]) || check_kernel(c, p, &g, last_two(w)) || check_result(c, p, &g, last_two(x))) return -1;
    if (b && (b->ndim != 1 || b->shape[0] != g.out))
        return op_fail(c, TENSOR_ESHAPE, "bias %s, weight %s: want a bias [%lld]", S(b), S(w), (long long)g.out);
    return set_result(c, x, g.out, g.y);
}

/* The size asked for must lead to the y that is there. */
static int check_y(OpCall *c, const Geometry *g, const Tensor *dy)
{
    const Pair y = last_two(dy);
    if (y.h == g->y.h && y.w == g->y.w) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s: an input of %lld x %lld gives %lld x %lld", S(dy), (long long)g->x.h, (long long)g->x.w,
                   (long long)g->y.h, (long long)g->y.w);
}

static int input_shape(OpCall *c)
{
    const ConvParams *p = op_params(c);
    const Tensor *dy = op_input(c, 0), *w = op_input(c, 1);
    Geometry g = { 0 };
    if (want_image(c, dy, "gradient") || check_options(c, p, &g)) return -1;
    if (w->ndim != 4) return op_fail(c, TENSOR_ESHAPE, "weight %s: want [out, in / groups, height, width]", S(w));
    g.out = dy->shape[dy->ndim - 3], g.in = w->shape[1] * g.groups;
    if (w->shape[0] != g.out)
        return op_fail(c, TENSOR_ESHAPE, "gradient %s, weight %s: %lld and %lld channels", S(dy), S(w), (long long)g.out,
                       (long long)w->shape[0]);
    if (check_groups(c, &g, w->shape[1]) || check_kernel(c, p, &g, last_two(w))) return -1;
    if (check_result(c, p, &g, pair_of(&p->size, ones)) || check_y(c, &g, dy)) return -1;
    return set_result(c, dy, g.in, g.x);
}

static int weight_shape(OpCall *c)
{
    const ConvParams *p = op_params(c);
    const Tensor *x = op_input(c, 0), *dy = op_input(c, 1);
    Geometry g = { 0 };
    if (want_image(c, x, "input") || check_options(c, p, &g)) return -1;
    if (dy->ndim != x->ndim || batch_of(shape_of(dy)) != batch_of(shape_of(x)))
        return op_fail(c, TENSOR_ESHAPE, "input %s, gradient %s: different batches", S(x), S(dy));
    g.in = x->shape[x->ndim - 3], g.out = dy->shape[dy->ndim - 3];
    if (check_groups(c, &g, g.in / g.groups) || check_kernel(c, p, &g, pair_of(&p->size, ones))) return -1;
    if (check_result(c, p, &g, last_two(x)) || check_y(c, &g, dy)) return -1;
    return op_set_output(c, 0, SHAPE(g.out, g.in / g.groups, g.k.h, g.k.w), (TensorDtype)x->dtype);
}

/* ---- gradients ------------------------------------------------------------------------------------------------------ */

static const TensorOp op_conv2d, op_conv2d_grad_input, op_conv2d_grad_weight;

static Tensor *apply(const TensorOp *op, Tensor *a, Tensor *b, const ConvParams *p, TensorShape size)
{
    ConvParams q = *p;
    q.size = (OpDims){ 0 };
    if (size.ndim) q.size = (OpDims){ 2, { size.dim[size.ndim - 2], size.dim[size.ndim - 1] } };
    if (op != &op_conv2d) return APPLY(op, &q, a, b);
    return a && b ? APPLY(op, &q, a, b, NULL) : NULL;
}

static int done(const OpCall *c, Tensor **dx)
{
    for (int i = 0; i < op_inputs(c); i++)
        if (op_wants(c, i) && !dx[i]) return -1;
    return 0;
}

/* The bias' gradient by the kernel that passes over dy anyway. */
static int weight_and_bias(OpCall *c, Tensor *dy, Tensor **dx)
{
    const ConvParams *p = op_params(c);
    Tensor *x = op_saved(c, 0), *dw = own(new_tensor(op_input_shape(c, 1), op_input_dtype(c, 1), dy->place));
    Tensor *db = own(new_tensor(op_input_shape(c, 2), op_input_dtype(c, 2), dy->place));
    if (!x || !dw || !db || !(x = dense_float(x)) || !(dy = dense_float(dy))) return -1;
    Tensor *wide_w = target(dw), *wide_b = target(db);
    if (!wide_w || !wide_b) return -1;
    const Geometry g = geometry(p, shape_of(x), shape_of(dw), shape_of(dy));
    ConvArgs args = args_of(&g, x->dtype);
    args.x = x->data, args.weight = wide_w->data, args.bias = wide_b->data, args.y = dy->data;
    if (RUN_KERNEL(c->op->name, dy->place, conv2d_grad_weight, &args)) return -1;
    dx[1] = dw, dx[2] = db;
    return deliver(dw, wide_w) || deliver(db, wide_b) ? -1 : 0;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const ConvParams *p = op_params(c);
    if (op_wants(c, 0)) dx[0] = apply(&op_conv2d_grad_input, dy, op_saved(c, 1), p, op_input_shape(c, 0));
    if (op_wants(c, 1) && op_wants(c, 2) && !op_recording(c)) return weight_and_bias(c, dy, dx) ? -1 : done(c, dx);
    if (op_wants(c, 1)) dx[1] = apply(&op_conv2d_grad_weight, op_saved(c, 0), dy, p, op_input_shape(c, 1));
    if (op_wants(c, 2)) dx[2] = dy->ndim == 4 ? tensor_sum(dy, .dims = DIMS(0, 2, 3)) : tensor_sum(dy, .dims = DIMS(1, 2));
    return done(c, dx);
}

static int input_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    const ConvParams *p = op_params(c);
    if (op_wants(c, 0)) dx[0] = apply(&op_conv2d, g, op_saved(c, 1), p, SHAPE());
    if (op_wants(c, 1)) dx[1] = apply(&op_conv2d_grad_weight, g, op_saved(c, 0), p, op_input_shape(c, 1));
    return done(c, dx);
}

static int weight_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    const ConvParams *p = op_params(c);
    if (op_wants(c, 0)) dx[0] = apply(&op_conv2d_grad_input, op_saved(c, 1), g, p, op_input_shape(c, 0));
    if (op_wants(c, 1)) dx[1] = apply(&op_conv2d, op_saved(c, 0), g, p, SHAPE());
    return done(c, dx);
}

/* ---- ops ------------------------------------------------------------------------------------------------------------- */

#define CONV_FIELDS \
    OP_FIELD(OP_DIMS, ConvParams, stride, "[]"), OP_FIELD(OP_DIMS, ConvParams, padding, "[]"), \
    OP_FIELD(OP_DIMS, ConvParams, dilation, "[]"), OP_FIELD(OP_I64, ConvParams, groups, "1"), OP_FIELD(OP_BOOL, ConvParams, same, "0")
static const OpField fields[] = { CONV_FIELDS, { 0 } };
static const OpField grad_fields[] = { CONV_FIELDS, OP_FIELD(OP_DIMS, ConvParams, size, NULL), { 0 } };

#define CONV .keep = KEEP_INPUT(0) | KEEP_INPUT(1), .keep_for = { KEEP_INPUT(1), KEEP_INPUT(0) }, .params = sizeof(ConvParams), \
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_SAME_DTYPE

static const TensorOp op_conv2d = {
    .name = "conv2d", .summary = "two-dimensional cross-correlation; weight [out, in / groups, height, width]",
    .gradient = "dx = conv2d_grad_input(g, w), dw = conv2d_grad_weight(x, g), db = sum g over batch and positions", .arity = 3,
    .optional = KEEP_INPUT(2), CONV, .fields = fields, .shape = shape, .forward = forward, .backward = backward,
    .torch = "nn.functional.conv2d",
    .samples = "1x3x4x4,3x3x3x3,3 {stride=[2 2] padding=[2 2]}; 2x4x8x8,2x2x3x3,2 {stride=[3 2] padding=[2 1] groups=2}; "
               "1x4x5x5,1x4x2x3,1 {stride=[2] padding=[1]}; 1x4x5x5,1x4x2x3,- {same=1}; 3x4x5x5,4x2x3x3,4 {padding=[1] groups=2}; "
               "2x4x6x6,4x1x3x3,4 {groups=4 padding=[1]}; 2x2x6x7,4x1x3x2,- {groups=2 stride=[2 1] dilation=[1 2]}; "
               "1x2x9x9,3x2x2x2,3 {dilation=[4 4]}; 1x2x8x8,2x2x3x2,- {dilation=[2 3] padding=[1]}; 2x3x4x4,5x3x1x1,5; "
               "3x5x5,2x3x3x3,2 {padding=[1]} ; 0x3x4x4,2x3x3x3,2; 2x2x5x5,3x2x5x5,3; 1x2x4x5,2x2x4x2,2 {same=1 dilation=[1 2]}; "
               "3x2x4x4,3x2x1x1,- {stride=[2]}",
    .errors = "2x3x4x4,2x2x3x3,2 ! ESHAPE; 2x3x4x4,2x3x5x5,2 ! ESHAPE; 2x3x4x4,2x3x3x3,3 ! ESHAPE; 2x3x4x4,2x3x3x3,2 {stride=[0]} ! EVALUE; "
              "2x3x4x4,2x3x3x3,2 {padding=[-1]} ! EVALUE; 2x3x4x4,2x3x3x3,2 {dilation=[0]} ! EVALUE; 2x3x4x4,2x3x3x3,2 {groups=0} ! EVALUE; "
              "2x3x4x4,2x1x3x3,2 {groups=3} ! ESHAPE; 4x4,2x3x3x3,2 ! ESHAPE; 2x3x4x4,3x3x3,2 ! ESHAPE; "
              "2x3x4x4,2x3x3x3,2 {same=1 stride=[2]} ! EVALUE; 2x3x4x4@i64,2x3x3x3,2 ! EDTYPE; 2x3x4x4,2x3x0x3,2 ! ESHAPE",
};
static const TensorOp op_conv2d_grad_input = {
    .name = "conv2d_grad_input", .summary = "gradient of conv2d's input of that size, from the result's gradient and the weight",
    .gradient = "ddy = conv2d(g, w), dw = conv2d_grad_weight(g, dy)",
    .arity = 2, CONV, .fields = grad_fields, .shape = input_shape, .forward = input_forward, .backward = input_backward,
    .torch = "nn.grad.conv2d_input",
    .samples = "1x3x3x3,3x3x3x3 {stride=[2 2] padding=[2 2] size=[4 4]}; 2x2x4x4,2x2x3x3 {stride=[3 2] padding=[2 1] groups=2 size=[8 8]}; "
               "2x4x4x4,4x1x3x3 {groups=4 size=[6 6]}; 3x3x4,3x2x1x1 {size=[3 4]}; 1x1x5x5,1x4x2x3 {same=1 size=[5 5]}; "
               "0x2x2x2,2x3x3x3 {size=[4 4]}; 1x3x5x5,3x2x2x2 {dilation=[4 4] size=[9 9]}; 2x2x2x2,2x3x3x3 {padding=[1] stride=[2] size=[4 4]}",
    .errors = "1x3x3x3,2x3x3x3 {size=[5 5]} ! ESHAPE; 1x3x3x3,3x3x3x3 {size=[9 5]} ! ESHAPE; 3x3,3x3x3x3 {size=[5 5]} ! ESHAPE",
};
static const TensorOp op_conv2d_grad_weight = {
    .name = "conv2d_grad_weight", .summary = "gradient of conv2d's weight of that kernel size, from the input and the result's gradient",
    .gradient = "dx = conv2d_grad_input(dy, g), ddy = conv2d(x, g)",
    .arity = 2, CONV, .fields = grad_fields, .shape = weight_shape, .forward = weight_forward, .backward = weight_backward,
    .torch = "nn.grad.conv2d_weight",
    .samples = "1x3x4x4,1x3x3x3 {stride=[2 2] padding=[2 2] size=[3 3]}; 2x4x8x8,2x2x4x4 {stride=[3 2] padding=[2 1] groups=2 size=[3 3]}; "
               "2x4x6x6,2x4x4x4 {groups=4 size=[3 3]}; 2x3x4,3x3x4 {size=[1 1]}; 1x4x5x5,1x1x5x5 {same=1 size=[2 3]}; "
               "0x3x4x4,0x2x2x2 {size=[3 3]}; 1x2x9x9,1x3x5x5 {dilation=[4 4] size=[2 2]}",
    .errors = "1x3x4x4,2x3x2x2 {size=[3 3]} ! ESHAPE; 1x3x4x4,1x3x3x3 {size=[3 3]} ! ESHAPE; 3x4x4,1x3x2x2 {size=[3 3]} ! ESHAPE",
};
REGISTER_OP(op_conv2d);
REGISTER_OP(op_conv2d_grad_input);
REGISTER_OP(op_conv2d_grad_weight);

Tensor *tensor_conv2d_args(TensorConv2dArgs a)
{
    ConvParams p = { .stride = dims_pair(a.stride, a.stride_hw), .dilation = dims_pair(a.dilation, a.dilation_hw), .groups = a.groups };
    p.same = a.padding == TENSOR_SAME;
    if (!p.same) p.padding = dims_pair(a.padding, a.padding_hw);
    return APPLY(&op_conv2d, &p, a.input, a.weight, a.bias);
}
