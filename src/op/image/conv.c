/* conv.c - convolution over one, two or three dimensions, its transpose, and its gradients as ops.
 *
 *   y = conv(x, w) + b: y[o, i, j] = b[o] + sum_{c, r, t} w[o, c, r, t] x[c, s i + d r - p, s j + d t - p]
 *   conv is linear in x and in w, so with its transposes X (dx = X(dy, w)) and W (dw = W(x, dy)):
 *
 *                 of x or dy                of w or dy
 *   conv(x, w)    X(g, w)                   W(x, g)
 *   X(dy, w)      conv(g, w)  (of dy)       W(g, dy)  (of w)
 *   W(x, dy)      X(dy, g)    (of x)        conv(x, g)  (of dy)
 *
 * so gradients exist to any order.  Zeros are only ever imagined around x: in front as many as the padding
 * says, behind as many as y's size reaches.
 *
 * conv_transpose(x, w) + b is X(x, w) + b, of the size that output_padding says.  From as much output_padding
 * as the stride on, conv takes its result to more places than x has: those that x lacks count as zeros of x.
 */
#include "conv.h"

static const TensorOp op_conv1d, op_conv_transpose1d, op_conv1d_grad_input, op_conv1d_grad_weight;
static const TensorOp op_conv2d, op_conv_transpose2d, op_conv2d_grad_input, op_conv2d_grad_weight;
static const TensorOp op_conv3d, op_conv_transpose3d, op_conv3d_grad_input, op_conv3d_grad_weight;

const TensorOp *const conv_family[MOST][KINDS] = {
    { &op_conv1d, &op_conv_transpose1d, &op_conv1d_grad_input, &op_conv1d_grad_weight },
    { &op_conv2d, &op_conv_transpose2d, &op_conv2d_grad_input, &op_conv2d_grad_weight },
    { &op_conv3d, &op_conv_transpose3d, &op_conv3d_grad_input, &op_conv3d_grad_weight },
};

/* ---- running the kernels --------------------------------------------------------------------- */

static ConvArgs args_for(const ConvParams *p, TensorShape x, TensorShape w, TensorShape y, int dtype)
{
    const int rank = w.ndim - 2;
    const Sizes in = conv_last(x, rank), out = conv_last(y, rank), k = conv_last(w, rank);
    const Sizes stride = conv_sizes(&p->stride, rank, 1), dilation = conv_sizes(&p->dilation, rank, 1);
    const Sizes pad = p->same ? conv_same_padding(&k, &dilation) : conv_sizes(&p->padding, rank, 0);
    return (ConvArgs){ .dtype = dtype,
                       .batch = conv_images(x, rank),
                       .groups = p->groups,
                       .in = conv_channels(x, rank),
                       .out = conv_channels(y, rank),
                       .d = in.at[0],
                       .h = in.at[1],
                       .w = in.at[2],
                       .od = out.at[0],
                       .oh = out.at[1],
                       .ow = out.at[2],
                       .kd = k.at[0],
                       .kh = k.at[1],
                       .kw = k.at[2],
                       .stride_d = stride.at[0],
                       .stride_h = stride.at[1],
                       .stride_w = stride.at[2],
                       .pad_d = pad.at[0],
                       .pad_h = pad.at[1],
                       .pad_w = pad.at[2],
                       .dilation_d = dilation.at[0],
                       .dilation_h = dilation.at[1],
                       .dilation_w = dilation.at[2] };
}

/* Where a kernel is to write: out itself, or f32 for a half. */
static Tensor *target(Tensor *out)
{
    bool half = dtype_is_half(out->dtype);
    return half ? own(new_tensor(shape_of(out), TENSOR_F32, out->place)) : out;
}

static int deliver(Tensor *out, const Tensor *from) { return out == from ? 0 : raw_copy(out, from); }

static int forward(OpCall *c)
{
    Tensor *x = op_input(c, 0), *w = op_input(c, 1), *b = op_input(c, 2), *out = op_output(c, 0),
           *y = target(out);
    if (!y || !(x = dense_float(x)) || !(w = dense_float(w)) || (b && !(b = dense_float(b)))) return -1;
    ConvArgs args = args_for(op_params(c), shape_of(x), shape_of(w), shape_of(out), y->dtype);
    args.x = x->data, args.weight = w->data, args.bias = b ? b->data : NULL, args.y = y->data;
    return RUN_KERNEL(c->op->name, x->place, conv2d, &args) ? -1 : deliver(out, y);
}

/* conv_transpose has a bias. */
static int input_forward(OpCall *c)
{
    Tensor *dy = op_input(c, 0), *w = op_input(c, 1), *b = op_inputs(c) > 2 ? op_input(c, 2) : NULL;
    Tensor *out = op_output(c, 0), *dx = target(out);
    if (!dx || !(dy = dense_float(dy)) || !(w = dense_float(w)) || (b && !(b = dense_float(b)))) return -1;
    ConvArgs args = args_for(op_params(c), shape_of(out), shape_of(w), shape_of(dy), dx->dtype);
    args.x = dx->data, args.weight = w->data, args.bias = b ? b->data : NULL, args.y = dy->data;
    return RUN_KERNEL(c->op->name, dy->place, conv2d_grad_input, &args) ? -1 : deliver(out, dx);
}

static int weight_forward(OpCall *c)
{
    Tensor *x = op_input(c, 0), *dy = op_input(c, 1), *out = op_output(c, 0), *dw = target(out);
    if (!dw || !(x = dense_float(x)) || !(dy = dense_float(dy))) return -1;
    ConvArgs args = args_for(op_params(c), shape_of(x), shape_of(out), shape_of(dy), dw->dtype);
    args.x = x->data, args.weight = dw->data, args.y = dy->data;
    return RUN_KERNEL(c->op->name, x->place, conv2d_grad_weight, &args) ? -1 : deliver(out, dw);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The op of that kind and of as many dimensions; size: that of the result, or of the kernel, where there is
 * one to be told. */
static Tensor *apply(const OpCall *c, int kind, Tensor *a, Tensor *b, const TensorShape *size)
{
    const int rank = conv_rank(c);
    ConvParams q = *(const ConvParams *)op_params(c);
    q.size = q.output_padding = (OpDims){ 0 };
    if (size) {
        const Sizes last = conv_last(*size, rank);
        q.size = conv_list(&last, rank);
    }
    if (!a || !b) return NULL;
    return kind == CONV ? APPLY(conv_family[rank - 1][kind], &q, a, b, NULL)
                        : APPLY(conv_family[rank - 1][kind], &q, a, b);
}

static Tensor *input_gradient(const OpCall *c, Tensor *dy, Tensor *w, TensorShape x)
{
    return apply(c, GRAD_INPUT, dy, w, &x);
}
static Tensor *weight_gradient(const OpCall *c, Tensor *x, Tensor *dy, TensorShape w)
{
    return apply(c, GRAD_WEIGHT, x, dy, &w);
}

/* The sum over all but channels. */
static Tensor *bias_gradient(const OpCall *c, Tensor *dy)
{
    OpDims over = { 0 };
    for (int d = 0; d < dy->ndim; d++)
        if (d != dy->ndim - conv_rank(c) - 1) over.at[over.n++] = d;
    return tensor_sum(dy, .dims = dims_shape(&over));
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
    Tensor *x = op_saved(c, 0), *dw = own(new_tensor(op_input_shape(c, 1), op_input_dtype(c, 1), dy->place));
    Tensor *db = own(new_tensor(op_input_shape(c, 2), op_input_dtype(c, 2), dy->place));
    if (!x || !dw || !db || !(x = dense_float(x)) || !(dy = dense_float(dy))) return -1;
    Tensor *wide_w = target(dw), *wide_b = target(db);
    if (!wide_w || !wide_b) return -1;
    ConvArgs args = args_for(op_params(c), shape_of(x), shape_of(dw), shape_of(dy), x->dtype);
    args.x = x->data, args.weight = wide_w->data, args.bias = wide_b->data, args.y = dy->data;
    if (RUN_KERNEL(c->op->name, dy->place, conv2d_grad_weight, &args)) return -1;
    dx[1] = dw, dx[2] = db;
    return deliver(dw, wide_w) || deliver(db, wide_b) ? -1 : 0;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (op_wants(c, 0)) dx[0] = input_gradient(c, dy, op_saved(c, 1), op_input_shape(c, 0));
    if (op_wants(c, 1) && op_wants(c, 2) && !op_recording(c))
        return weight_and_bias(c, dy, dx) ? -1 : done(c, dx);
    if (op_wants(c, 1)) dx[1] = weight_gradient(c, op_saved(c, 0), dy, op_input_shape(c, 1));
    if (op_wants(c, 2)) dx[2] = bias_gradient(c, dy);
    return done(c, dx);
}

static int input_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    if (op_wants(c, 0)) dx[0] = apply(c, CONV, g, op_saved(c, 1), NULL);
    if (op_wants(c, 1)) dx[1] = weight_gradient(c, g, op_saved(c, 0), op_input_shape(c, 1));
    return done(c, dx);
}

static int weight_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    if (op_wants(c, 0)) dx[0] = input_gradient(c, op_saved(c, 1), g, op_input_shape(c, 0));
    if (op_wants(c, 1)) dx[1] = apply(c, CONV, op_saved(c, 0), g, NULL);
    return done(c, dx);
}

/* How many places of x conv_transpose's output_padding adds in dimension i of the window. */
static int64_t places_beyond(const OpCall *c, int i)
{
    const ConvParams *p = op_params(c);
    const Sizes more = conv_sizes(&p->output_padding, conv_rank(c), 0),
                stride = conv_sizes(&p->stride, conv_rank(c), 1);
    return more.at[MOST - conv_rank(c) + i] / stride.at[MOST - conv_rank(c) + i];
}

/* x with zeros there; and the gradient without them. */
static Tensor *with_places(const OpCall *c, Tensor *x)
{
    for (int i = 0, rank = conv_rank(c); i < rank && x; i++) {
        const int d = x->ndim - rank + i;
        const int64_t beyond = places_beyond(c, i);
        if (beyond > 0) x = embed_part(x, d, 0, x->shape[d] + beyond);
    }
    return x;
}

static Tensor *without_places(const OpCall *c, Tensor *dx)
{
    for (int i = 0, rank = conv_rank(c); i < rank && dx; i++) {
        const int d = dx->ndim - rank + i;
        const int64_t beyond = places_beyond(c, i);
        if (beyond > 0) dx = tensor_narrow(dx, d, 0, dx->shape[d] - beyond);
    }
    return dx;
}

static int transposed_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    if (op_wants(c, 0)) dx[0] = without_places(c, apply(c, CONV, g, op_saved(c, 1), NULL));
    if (op_wants(c, 1)) dx[1] = weight_gradient(c, g, with_places(c, op_saved(c, 0)), op_input_shape(c, 1));
    if (op_wants(c, 2)) dx[2] = bias_gradient(c, g);
    return done(c, dx);
}

/* ---- ops ------------------------------------------------------------------------------------- */

#define WINDOW_FIELDS                                                                          \
    OP_FIELD(OP_DIMS, ConvParams, stride, "[]"), OP_FIELD(OP_DIMS, ConvParams, padding, "[]"), \
        OP_FIELD(OP_DIMS, ConvParams, dilation, "[]"), OP_FIELD(OP_I64, ConvParams, groups, "1")
#define CONV_FIELDS WINDOW_FIELDS, OP_FIELD(OP_BOOL, ConvParams, same, "0")
static const OpField fields[] = { CONV_FIELDS, { 0 } };
static const OpField transposed_fields[] = { WINDOW_FIELDS,
                                             OP_FIELD(OP_DIMS, ConvParams, output_padding, "[]"),
                                             { 0 } };
static const OpField grad_fields[] = { CONV_FIELDS, OP_FIELD(OP_DIMS, ConvParams, size, NULL), { 0 } };

#define BILINEAR                                                                         \
    .keep = KEEP_INPUT(0) | KEEP_INPUT(1), .keep_for = { KEEP_INPUT(1), KEEP_INPUT(0) }, \
    .params = sizeof(ConvParams), .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_SAME_DTYPE
#define CONVOLUTION                                                                         \
    .arity = 3, .optional = KEEP_INPUT(2), BILINEAR, .fields = fields, .shape = conv_shape, \
    .forward = forward, .backward = backward,                                               \
    .gradient =                                                                             \
        "dx = conv_transpose(g, weight) of x's size, dweight = each of its taps' sum of x g, dbias = sum g"
#define TRANSPOSE                                                                              \
    .arity = 3, .optional = KEEP_INPUT(2), BILINEAR, .fields = transposed_fields,              \
    .shape = conv_transposed_shape, .forward = input_forward, .backward = transposed_backward, \
    .gradient = "dx = conv(g, weight), dweight = each of its taps' sum of g x, dbias = sum g"
#define OF_INPUT                                                                                      \
    .arity = 2, BILINEAR, .fields = grad_fields, .shape = conv_input_shape, .forward = input_forward, \
    .backward = input_backward, .gradient = "ddy = conv(g, weight), dweight = conv_grad_weight(g, dy)"
#define OF_WEIGHT                                                                                       \
    .arity = 2, BILINEAR, .fields = grad_fields, .shape = conv_weight_shape, .forward = weight_forward, \
    .backward = weight_backward, .gradient = "dx = conv_grad_input(dy, g), ddy = conv(x, g)"

static const TensorOp op_conv1d = {
    .name = "conv1d",
    .summary = "cross-correlation over one dimension; weight [out, in / groups, width]",
    CONVOLUTION,
    .torch = "nn.functional.conv1d",
    .samples = "2x3x7,4x3x3,4 {stride=[2] padding=[1]}; 1x4x6,4x1x2,- {groups=4 same=1}; 3x5,2x3x5,2; "
               "2x2x9,2x2x3,2 {dilation=[3] padding=[2]}; "
               "0x2x4,3x2x3,3; 2x4x5,6x2x1,6 {groups=2}",
    .errors = "2x3x4,2x2x3,2 ! ESHAPE; 2x3x4,2x3x5,2 ! ESHAPE; 2x3x4,2x3x3,3 ! ESHAPE; 2x3x4,2x3x3,2 "
              "{stride=[0]} ! EVALUE; "
              "2x3x4,2x3x3,2 {stride=[1 1]} ! EVALUE; 2x3x4x4,2x3x3,2 ! ESHAPE; 2x3x4,2x3x3x3,2 ! ESHAPE; "
              "2x3x4@i64,2x3x3,2 ! EDTYPE",
};
static const TensorOp op_conv2d = {
    .name = "conv2d",
    .summary = "cross-correlation over two dimensions; weight [out, in / groups, height, width]",
    CONVOLUTION,
    .torch = "nn.functional.conv2d",
    .samples =
        "1x3x4x4,3x3x3x3,3 {stride=[2 2] padding=[2 2]}; 2x4x8x8,2x2x3x3,2 {stride=[3 2] padding=[2 1] "
        "groups=2}; "
        "1x4x5x5,1x4x2x3,1 {stride=[2] padding=[1]}; 1x4x5x5,1x4x2x3,- {same=1}; 3x4x5x5,4x2x3x3,4 "
        "{padding=[1] groups=2}; "
        "2x4x6x6,4x1x3x3,4 {groups=4 padding=[1]}; 2x2x6x7,4x1x3x2,- {groups=2 stride=[2 1] dilation=[1 2]}; "
        "1x2x9x9,3x2x2x2,3 {dilation=[4 4]}; 1x2x8x8,2x2x3x2,- {dilation=[2 3] padding=[1]}; "
        "2x3x4x4,5x3x1x1,5; "
        "3x5x5,2x3x3x3,2 {padding=[1]} ; 0x3x4x4,2x3x3x3,2; 2x2x5x5,3x2x5x5,3; 1x2x4x5,2x2x4x2,2 {same=1 "
        "dilation=[1 2]}; "
        "3x2x4x4,3x2x1x1,- {stride=[2]}",
    .errors = "2x3x4x4,2x2x3x3,2 ! ESHAPE; 2x3x4x4,2x3x5x5,2 ! ESHAPE; 2x3x4x4,2x3x3x3,3 ! ESHAPE; "
              "2x3x4x4,2x3x3x3,2 {stride=[0]} ! EVALUE; "
              "2x3x4x4,2x3x3x3,2 {padding=[-1]} ! EVALUE; 2x3x4x4,2x3x3x3,2 {dilation=[0]} ! EVALUE; "
              "2x3x4x4,2x3x3x3,2 {groups=0} ! EVALUE; "
              "2x3x4x4,2x1x3x3,2 {groups=3} ! ESHAPE; 4x4,2x3x3x3,2 ! ESHAPE; 2x3x4x4,3x3x3,2 ! ESHAPE; "
              "2x3x4x4,2x3x3x3,2 {same=1 stride=[2]} ! EVALUE; 2x3x4x4@i64,2x3x3x3,2 ! EDTYPE; "
              "2x3x4x4,2x3x0x3,2 ! ESHAPE",
};
static const TensorOp op_conv3d = {
    .name = "conv3d",
    .summary = "cross-correlation over three dimensions; weight [out, in / groups, depth, height, width]",
    CONVOLUTION,
    .torch = "nn.functional.conv3d",
    .samples = "1x2x4x4x3,3x2x2x3x2,3 {stride=[2 1 2] padding=[1 2 0]}; 2x2x3x4x4,2x1x2x2x2,2 {groups=2}; "
               "2x3x4x3,2x2x3x3x3,- {same=1}; "
               "1x1x5x4x3,2x1x2x2x2,2 {dilation=[3 2 1]}; 0x2x3x3x3,2x2x2x2x2,2; 1x2x3x3x3,3x2x1x1x1,3; "
               "1x2x5x3x2,4x1x2x3x2,4 {groups=2 stride=[2] padding=[1]}; "
               "1x2x2x3x4,2x2x2x2x2,2 {same=1}",
    .errors = "2x3x4x4x4,2x2x3x3x3,2 ! ESHAPE; 1x1x2x4x4,1x1x3x3x3,- ! ESHAPE; 1x1x4x4x4,1x1x3x3x3,2 ! "
              "ESHAPE; 4x4x4,1x1x3x3x3,- ! ESHAPE; "
              "1x1x4x4x4,1x1x3x3,- ! ESHAPE; 1x1x4x4x4,1x1x3x3x3,- {padding=[1 1]} ! EVALUE; "
              "1x1x4x4x4,1x1x3x3x3,- {dilation=[0 1 1]} ! EVALUE; "
              "1x1x4x4x4,1x1x3x3x3,- {same=1 stride=[2 1 1]} ! EVALUE",
};

#define TRANSPOSE_SUMMARY                                                                                   \
    "its transpose, weight [in, out / groups, window], plus bias; result (in - 1) s - 2 p + d (k - 1) + 1 " \
    "+ output_padding"
static const TensorOp op_conv_transpose1d = {
    .name = "conv_transpose1d",
    .summary = "gradient of conv1d's input as a map of its own: " TRANSPOSE_SUMMARY,
    TRANSPOSE,
    .torch = "nn.functional.conv_transpose1d",
    .samples = "2x3x4,3x4x3,4 {stride=[2] padding=[1] output_padding=[1]}; 1x4x3,4x2x2,8 {groups=4}; "
               "3x5,3x2x3,-; 0x3x4,3x2x3,2; "
               "2x2x4,2x3x2,3 {dilation=[3] output_padding=[2] padding=[1]}; 2x4x5,4x3x1,6 {groups=2}; "
               "1x2x4,2x1x3,2 {groups=2 dilation=[2] output_padding=[1]}",
    .errors = "2x3x4,2x3x3,3 ! ESHAPE; 2x3x4,3x2x3,3 ! ESHAPE; 2x3x4,3x2x3,2 {output_padding=[1]} ! EVALUE; "
              "2x3x4,3x2x3,2 {stride=[2] output_padding=[2]} ! EVALUE; "
              "2x3x4,3x2x3,2 {output_padding=[-1]} ! EVALUE; 1x1x1,1x1x1,- {padding=[1]} ! ESHAPE; "
              "2x3x0,3x2x3,2 ! ESHAPE; 2x3x4,3x2x3x3,2 ! ESHAPE; "
              "2x3x4,3x2x3,2 {groups=2} ! ESHAPE; 2x3x4@i64,3x2x3,2 ! EDTYPE",
};
static const TensorOp op_conv_transpose2d = {
    .name = "conv_transpose2d",
    .summary = "gradient of conv2d's input as a map of its own: " TRANSPOSE_SUMMARY,
    TRANSPOSE,
    .torch = "nn.functional.conv_transpose2d",
    .samples = "1x3x3x4,3x2x3x3,2 {stride=[2 1] padding=[1 0] output_padding=[1 0]}; 2x4x3x3,4x2x2x3,4 "
               "{groups=2 stride=[3]}; 2x3x3,2x3x4x4,3 {stride=[2] padding=[1]}; "
               "2x3x4x2,3x4x1x1,4; 0x3x2x2,3x2x2x2,2; 1x2x3x2,2x2x2x2,2 {dilation=[2 3] output_padding=[1 "
               "2]}; 1x3x4x4,3x1x3x3,3 {groups=3 padding=[1]}; 1x1x1x1,1x1x2x2,-",
    .errors = "2x3x4x4,2x3x3x3,3 ! ESHAPE; 2x3x4x4,3x2x3x3,3 ! ESHAPE; 2x3x4x4,3x2x3x3,2 {output_padding=[1 "
              "0]} ! EVALUE; "
              "1x1x1x1,1x1x2x2,- {padding=[1]} ! ESHAPE; 4x4,3x2x3x3,2 ! ESHAPE; 2x3x4x4,3x2x3x3,2 "
              "{stride=[1 1 1]} ! EVALUE",
};
static const TensorOp op_conv_transpose3d = {
    .name = "conv_transpose3d",
    .summary = "gradient of conv3d's input as a map of its own: " TRANSPOSE_SUMMARY,
    TRANSPOSE,
    .torch = "nn.functional.conv_transpose3d",
    .samples = "1x2x2x3x2,2x2x2x3x2,2 {stride=[2 1 2] padding=[0 1 0] output_padding=[1 0 1]}; "
               "2x2x2x2x3,2x2x2x2x2,4 {groups=2}; 2x2x3x2,2x1x3x2x2,-; "
               "0x2x2x2x2,2x3x2x2x2,3; 1x1x2x2x2,1x2x2x2x2,2 {dilation=[2] output_padding=[1 0 1]}; "
               "1x2x2x2x2,2x3x1x1x1,3",
    .errors = "1x2x2x2x2,1x2x2x2x2,2 ! ESHAPE; 1x2x2x2x2,2x2x2x2x2,1 ! ESHAPE; 1x2x2x2x2,2x2x2x2x2,2 "
              "{output_padding=[1]} ! EVALUE; "
              "1x2x2x2x2,2x2x2x2,2 ! ESHAPE; 1x2x2x2x2,2x2x1x1x1,2 {padding=[1]} ! ESHAPE",
};

static const TensorOp op_conv1d_grad_input = {
    .name = "conv1d_grad_input",
    .summary = "gradient of conv1d's input of that size, from the result's gradient and the weight",
    OF_INPUT,
    .torch = "nn.grad.conv1d_input",
    .samples = "2x3x3,3x2x3 {stride=[2] padding=[1] size=[6]}; 2x4x4,4x1x3 {groups=4 size=[6]}; 3x4,3x2x1 "
               "{size=[4]}; 0x2x3,2x3x2 {size=[4]}; 1x2x5,2x2x2 {same=1 size=[5]}",
    .errors =
        "2x3x3,2x2x3 {size=[5]} ! ESHAPE; 2x3x3,3x2x3 {size=[9]} ! ESHAPE; 2x3x3,3x2x3 {size=[5 5]} ! EVALUE",
};
static const TensorOp op_conv2d_grad_input = {
    .name = "conv2d_grad_input",
    .summary = "gradient of conv2d's input of that size, from the result's gradient and the weight",
    OF_INPUT,
    .torch = "nn.grad.conv2d_input",
    .samples = "1x3x3x3,3x3x3x3 {stride=[2 2] padding=[2 2] size=[4 4]}; 2x2x4x4,2x2x3x3 {stride=[3 2] "
               "padding=[2 1] groups=2 size=[8 8]}; "
               "2x4x4x4,4x1x3x3 {groups=4 size=[6 6]}; 3x3x4,3x2x1x1 {size=[3 4]}; 1x1x5x5,1x4x2x3 {same=1 "
               "size=[5 5]}; "
               "0x2x2x2,2x3x3x3 {size=[4 4]}; 1x3x5x5,3x2x2x2 {dilation=[4 4] size=[9 9]}; 2x2x2x2,2x3x3x3 "
               "{padding=[1] stride=[2] size=[4 4]}",
    .errors = "1x3x3x3,2x3x3x3 {size=[5 5]} ! ESHAPE; 1x3x3x3,3x3x3x3 {size=[9 5]} ! ESHAPE; 3x3,3x3x3x3 "
              "{size=[5 5]} ! ESHAPE",
};
static const TensorOp op_conv3d_grad_input = {
    .name = "conv3d_grad_input",
    .summary = "gradient of conv3d's input of that size, from the result's gradient and the weight",
    OF_INPUT,
    .torch = "nn.grad.conv3d_input",
    .samples = "1x2x2x2x3,2x2x2x2x2 {stride=[2 1 1] size=[5 3 4]}; 1x2x2x2x3,2x1x2x2x1 {groups=2 size=[3 3 "
               "3]}; 2x2x2x2,2x1x2x2x2 {padding=[1] stride=[2] size=[2 2 2]}; "
               "0x2x2x2x2,2x2x2x2x2 {size=[3 3 3]}",
    .errors = "1x2x2x2x2,2x2x2x2x2 {size=[3 3 4]} ! ESHAPE; 2x2x2,2x2x2x2x2 {size=[3 3 3]} ! ESHAPE",
};

static const TensorOp op_conv1d_grad_weight = {
    .name = "conv1d_grad_weight",
    .summary = "gradient of conv1d's weight of that kernel size, from the input and the result's gradient",
    OF_WEIGHT,
    .torch = "nn.grad.conv1d_weight",
    .samples = "2x2x6,2x3x3 {stride=[2] padding=[1] size=[3]}; 2x4x6,2x4x4 {groups=4 size=[3]}; 2x4,3x4 "
               "{size=[1]}; 0x3x4,0x2x3 {size=[2]}",
    .errors = "1x3x4,2x3x2 {size=[3]} ! ESHAPE; 1x3x4,1x3x3 {size=[3]} ! ESHAPE",
};
static const TensorOp op_conv2d_grad_weight = {
    .name = "conv2d_grad_weight",
    .summary = "gradient of conv2d's weight of that kernel size, from the input and the result's gradient",
    OF_WEIGHT,
    .torch = "nn.grad.conv2d_weight",
    .samples = "1x3x4x4,1x3x3x3 {stride=[2 2] padding=[2 2] size=[3 3]}; 2x4x8x8,2x2x4x4 {stride=[3 2] "
               "padding=[2 1] groups=2 size=[3 3]}; "
               "2x4x6x6,2x4x4x4 {groups=4 size=[3 3]}; 2x3x4,3x3x4 {size=[1 1]}; 1x4x5x5,1x1x5x5 {same=1 "
               "size=[2 3]}; "
               "0x3x4x4,0x2x2x2 {size=[3 3]}; 1x2x9x9,1x3x5x5 {dilation=[4 4] size=[2 2]}",
    .errors = "1x3x4x4,2x3x2x2 {size=[3 3]} ! ESHAPE; 1x3x4x4,1x3x3x3 {size=[3 3]} ! ESHAPE; 3x4x4,1x3x2x2 "
              "{size=[3 3]} ! ESHAPE",
};
static const TensorOp op_conv3d_grad_weight = {
    .name = "conv3d_grad_weight",
    .summary = "gradient of conv3d's weight of that kernel size, from the input and the result's gradient",
    OF_WEIGHT,
    .torch = "nn.grad.conv3d_weight",
    .samples = "1x2x5x3x4,1x2x2x2x3 {stride=[2 1 1] size=[2 2 2]}; 1x2x3x3x3,1x2x2x2x3 {groups=2 size=[2 2 "
               "1]}; 1x2x2x2,2x2x2x2 {padding=[1] stride=[2] size=[2 2 2]}; "
               "0x2x3x3x3,0x2x2x2x2 {size=[2 2 2]}",
    .errors = "1x2x3x3x3,1x2x2x2x3 {size=[2 2 2]} ! ESHAPE; 1x2x3x3x3,2x2x2x2x2 {size=[2 2 2]} ! ESHAPE",
};
REGISTER_OP(op_conv1d);
REGISTER_OP(op_conv2d);
REGISTER_OP(op_conv3d);
REGISTER_OP(op_conv_transpose1d);
REGISTER_OP(op_conv_transpose2d);
REGISTER_OP(op_conv_transpose3d);
REGISTER_OP(op_conv1d_grad_input);
REGISTER_OP(op_conv2d_grad_input);
REGISTER_OP(op_conv3d_grad_input);
REGISTER_OP(op_conv1d_grad_weight);
REGISTER_OP(op_conv2d_grad_weight);
REGISTER_OP(op_conv3d_grad_weight);

/* ---- functions ------------------------------------------------------------------------------- */

/* The list of an option: an array of n numbers when they are not all 0, else the one number. */
static OpDims option(int64_t all, int n, const int64_t *each)
{
    OpDims d = { .n = n };
    bool given = false;
    for (int i = 0; i < n; i++) d.at[i] = each[i], given = given || each[i] != 0;
    return given ? d : (OpDims){ 1, { all } };
}

static ConvParams params_of(OpDims stride, OpDims padding, OpDims dilation, int64_t groups, int64_t same)
{
    ConvParams p = { .stride = stride, .dilation = dilation, .groups = groups, .same = same == TENSOR_SAME };
    if (!p.same) p.padding = padding;
    return p;
}

Tensor *tensor_conv1d_args(TensorConv1dArgs a)
{
    const ConvParams p = params_of(option(a.stride, 0, NULL), option(a.padding, 0, NULL),
                                   option(a.dilation, 0, NULL), a.groups, a.padding);
    return APPLY(&op_conv1d, &p, a.input, a.weight, a.bias);
}

Tensor *tensor_conv2d_args(TensorConv2dArgs a)
{
    const ConvParams p = params_of(option(a.stride, 2, a.stride_hw), option(a.padding, 2, a.padding_hw),
                                   option(a.dilation, 2, a.dilation_hw), a.groups, a.padding);
    return APPLY(&op_conv2d, &p, a.input, a.weight, a.bias);
}

Tensor *tensor_conv3d_args(TensorConv3dArgs a)
{
    const ConvParams p = params_of(option(a.stride, 3, a.stride_dhw), option(a.padding, 3, a.padding_dhw),
                                   option(a.dilation, 3, a.dilation_dhw), a.groups, a.padding);
    return APPLY(&op_conv3d, &p, a.input, a.weight, a.bias);
}

Tensor *tensor_conv_transpose1d_args(TensorConvTranspose1dArgs a)
{
    ConvParams p = params_of(option(a.stride, 0, NULL), option(a.padding, 0, NULL),
                             option(a.dilation, 0, NULL), a.groups, 0);
    p.output_padding = option(a.output_padding, 0, NULL);
    return APPLY(&op_conv_transpose1d, &p, a.input, a.weight, a.bias);
}

Tensor *tensor_conv_transpose2d_args(TensorConvTranspose2dArgs a)
{
    ConvParams p = params_of(option(a.stride, 2, a.stride_hw), option(a.padding, 2, a.padding_hw),
                             option(a.dilation, 2, a.dilation_hw), a.groups, 0);
    p.output_padding = option(a.output_padding, 2, a.output_padding_hw);
    return APPLY(&op_conv_transpose2d, &p, a.input, a.weight, a.bias);
}

Tensor *tensor_conv_transpose3d_args(TensorConvTranspose3dArgs a)
{
    ConvParams p = params_of(option(a.stride, 3, a.stride_dhw), option(a.padding, 3, a.padding_dhw),
                             option(a.dilation, 3, a.dilation_dhw), a.groups, 0);
    p.output_padding = option(a.output_padding, 3, a.output_padding_dhw);
    return APPLY(&op_conv_transpose3d, &p, a.input, a.weight, a.bias);
}
