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
 * so gradients exist to any order.  No zeros are stored around x: it has as many
 * before it as the padding says, and after it as many as y's size needs.
 *
 * conv_transpose(x, w) + b is X(x, w) + b, with the size that output_padding gives.  If output_padding is not
 * below the stride, conv of that result has more positions than x: the missing ones count as zeros of x. */
#include <tapegrad/autocast.h>
#include "conv.h"

const TensorConvArgs tensor_conv_defaults = { TENSOR_CONV_DEFAULTS };
const TensorConvTransposeArgs tensor_conv_transpose_defaults = { TENSOR_CONV_TRANSPOSE_DEFAULTS };
static const ConvGradParams grad_defaults = { .conv = { TENSOR_CONV_DEFAULTS } };

enum { CONV, GRAD_INPUT, GRAD_WEIGHT, KINDS };
static const TensorOp op_conv1d, op_conv1d_grad_input, op_conv1d_grad_weight;
static const TensorOp op_conv2d, op_conv2d_grad_input, op_conv2d_grad_weight;
static const TensorOp op_conv3d, op_conv3d_grad_input, op_conv3d_grad_weight;

static const TensorOp *const family[WINDOW_RANK][KINDS] = {
    { &op_conv1d, &op_conv1d_grad_input, &op_conv1d_grad_weight },
    { &op_conv2d, &op_conv2d_grad_input, &op_conv2d_grad_weight },
    { &op_conv3d, &op_conv3d_grad_input, &op_conv3d_grad_weight },
};

static bool is_transposed(const OpCall *c) { return c->op->defaults == &tensor_conv_transpose_defaults; }

/* Those of any op of the family. */
static TensorConvArgs options_of(const OpCall *c)
{
    return is_transposed(c) ? conv_transposed_options(op_params(c)) : *(const TensorConvArgs *)op_params(c);
}

/* ---- running the kernels --------------------------------------------------------------------- */

static ConvArgs args_for(const OpCall *c, TensorShape x, TensorShape w, TensorShape y, int dtype)
{
    const TensorConvArgs p = options_of(c);
    const int rank = conv_rank(c);
    const Sizes in = window_last(x, rank), out = window_last(y, rank), k = window_last(w, rank);
    const Sizes stride = window_option(p.stride, p.strides, rank, 1),
                dilation = window_option(p.dilation, p.dilations, rank, 1);
    Sizes pad = window_option(p.padding, p.paddings, rank, 0);
    if (pad.at[WINDOW_RANK - 1] == TENSOR_SAME) pad = conv_same_padding(&k, &dilation);
    return (ConvArgs){ .dtype = dtype,
                       .precision = dtype == TENSOR_F32 ? (int)tensor_get_float32_matmul_precision() : 0,
                       .batch = window_images(x, rank),
                       .groups = p.groups,
                       .in = window_channels(x, rank),
                       .out = window_channels(y, rank),
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

static Tensor *target(Tensor *out) { return TARGET_FOR(conv2d, out); }
static const Tensor *operand(const Tensor *x) { return DENSE_FOR(conv2d, x); }

static int deliver(Tensor *out, const Tensor *from) { return out == from ? 0 : raw_copy(out, from); }

/* Does x lie with its channels last, so that kernels may read it where it is? */
static bool is_last(const OpCall *c, const Tensor *x)
{
    return TAKES(x->place, conv2d, x->dtype) && window_lies_last(x, conv_rank(c));
}

static const Tensor *image(const Tensor *x, ImageLayout layout) { return layout ? x : operand(x); }

/* Where the result is to be written, in that layout. */
static Tensor *image_target(Tensor *out, ImageLayout layout)
{
    return layout ? window_new_last(shape_of(out), out->dtype, out->place) : target(out);
}

static int deliver_image(OpCall *c, Tensor *made, ImageLayout layout)
{
    return layout ? op_set_result(c, 0, made) : deliver(op_output(c, 0), made);
}

static int run_forward(OpCall *c, ImageLayout layout)
{
    const Tensor *x = op_input(c, 0), *w = op_input(c, 1), *b = op_input(c, 2);
    Tensor *out = op_output(c, 0), *y = image_target(out, layout);
    if (!y || !(x = image(x, layout)) || !(w = operand(w)) || (b && !(b = operand(b)))) return -1;
    ConvArgs args = args_for(c, shape_of(x), shape_of(w), shape_of(out), y->dtype);
    args.x = x->data, args.weight = w->data, args.bias = b ? b->data : NULL, args.y = y->data;
    args.layout = layout;
    return RUN_KERNEL(c->name, x->place, conv2d, &args) ? -1 : deliver_image(c, y, layout);
}

static int forward(OpCall *c) { return in_its_layout(c, is_last(c, op_input(c, 0)), run_forward); }

/* conv_transpose has a bias. */
static int run_input_forward(OpCall *c, ImageLayout layout)
{
    const Tensor *dy = op_input(c, 0), *w = op_input(c, 1), *b = op_inputs(c) > 2 ? op_input(c, 2) : NULL;
    Tensor *out = op_output(c, 0), *dx = image_target(out, layout);
    if (!dx || !(dy = image(dy, layout)) || !(w = operand(w)) || (b && !(b = operand(b)))) return -1;
    ConvArgs args = args_for(c, shape_of(out), shape_of(w), shape_of(dy), dx->dtype);
    args.x = dx->data, args.weight = w->data, args.bias = b ? b->data : NULL, args.y = dy->data;
    args.layout = layout;
    return RUN_KERNEL(c->name, dy->place, conv2d_grad_input, &args) ? -1 : deliver_image(c, dx, layout);
}

static int input_forward(OpCall *c)
{
    return in_its_layout(c, is_last(c, op_input(c, 0)), run_input_forward);
}

static int run_weight_forward(OpCall *c, ImageLayout layout)
{
    const Tensor *x = image(op_input(c, 0), layout), *dy = image(op_input(c, 1), layout);
    Tensor *out = op_output(c, 0), *dw = target(out);
    if (!dw || !x || !dy) return -1;
    ConvArgs args = args_for(c, shape_of(x), shape_of(out), shape_of(dy), dw->dtype);
    args.x = x->data, args.weight = dw->data, args.y = dy->data, args.layout = layout;
    return RUN_KERNEL(c->name, x->place, conv2d_grad_weight, &args) ? -1 : deliver(out, dw);
}

static int weight_forward(OpCall *c)
{
    return in_its_layout(c, is_last(c, op_input(c, 0)) && is_last(c, op_input(c, 1)), run_weight_forward);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The op of that kind and of as many dimensions; size: that of the result, or of the kernel, where there is
 * one to be told. */
static Tensor *apply(const OpCall *c, int kind, Tensor *a, Tensor *b, const TensorShape *size)
{
    const int rank = conv_rank(c);
    ConvGradParams q = { .conv = options_of(c) };
    if (size) q.size = (TensorShape){ rank, size->dim + size->ndim - rank };
    if (!a || !b) return NULL;
    return kind == CONV ? APPLY(family[rank - 1][kind], &q.conv, a, b, NULL)
                        : APPLY(family[rank - 1][kind], &q, a, b);
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
    int64_t over[WINDOW_RANK + 1];
    int n = 0;
    for (int d = 0; d < dy->ndim; d++)
        if (d != dy->ndim - conv_rank(c) - 1) over[n++] = d;
    return tensor_sum(dy, .dims = { n, over });
}

static int done(const OpCall *c, Tensor **dx)
{
    for (int i = 0; i < op_inputs(c); i++)
        if (op_wants(c, i) && !dx[i]) return -1;
    return 0;
}

/* The bias' gradient by the kernel that passes over dy anyway. */
static int weight_and_bias(OpCall *c, const Tensor *dy, Tensor **dx, ImageLayout layout)
{
    const Tensor *x = op_saved(c, 0);
    Tensor *dw = own(new_tensor(op_input_shape(c, 1), op_input_dtype(c, 1), dy->place));
    Tensor *db = own(new_tensor(op_input_shape(c, 2), op_input_dtype(c, 2), dy->place));
    if (layout && x && !(is_last(c, x) && is_last(c, dy))) layout = LAYOUT_FIRST;
    if (!x || !dw || !db || !(x = image(x, layout)) || !(dy = image(dy, layout))) return -1;
    Tensor *wide_w = target(dw), *wide_b = target(db);
    if (!wide_w || !wide_b) return -1;
    ConvArgs args = args_for(c, shape_of(x), shape_of(dw), shape_of(dy), x->dtype);
    args.x = (void *)(uintptr_t)x->data, args.weight = wide_w->data, args.bias = wide_b->data;
    args.y = (void *)(uintptr_t)dy->data, args.layout = layout;
    if (RUN_KERNEL(c->name, dy->place, conv2d_grad_weight, &args))
        return layout && take_decline() ? weight_and_bias(c, dy, dx, LAYOUT_FIRST) : -1;
    dx[1] = dw, dx[2] = db;
    return deliver(dw, wide_w) || deliver(db, wide_b) ? -1 : 0;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (op_wants(c, 0)) dx[0] = input_gradient(c, dy, op_saved(c, 1), op_input_shape(c, 0));
    if (op_wants(c, 1) && op_wants(c, 2) && !op_recording(c))
        return weight_and_bias(c, dy, dx, LAYOUT_LAST) ? -1 : done(c, dx);
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
    const TensorConvTransposeArgs *p = op_params(c);
    const int rank = conv_rank(c), at = WINDOW_RANK - rank + i;
    return window_option(p->output_padding, p->output_paddings, rank, 0).at[at] /
           window_option(p->stride, p->strides, rank, 1).at[at];
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

#define OPTIONS(S)                                                                             \
    OP_OPTION(S, stride), OP_OPTION(S, padding), OP_OPTION(S, dilation), OP_OPTION(S, groups), \
        OP_OPTION(S, strides), OP_OPTION(S, paddings), OP_OPTION(S, dilations)
static const OpField fields[] = { OPTIONS(TensorConvArgs), { 0 } };
static const OpField transposed_fields[] = { OPTIONS(TensorConvTransposeArgs),
                                             OP_OPTION(TensorConvTransposeArgs, output_padding,
                                                       output_paddings),
                                             { 0 } };
static const OpField grad_fields[] = { OPTIONS(TensorConvArgs), OP_REQUIRED(ConvGradParams, size), { 0 } };
#define SAME "padding=-2147483648" /* TENSOR_SAME, in samples */

#define BILINEAR(rank) .variant = rank, .keep_for = { KEEP_INPUT(1), KEEP_INPUT(0) }
#define WITH_BIAS(options, defaults_)                                                         \
    .arity = 3, .optional = KEEP_INPUT(2), .params = sizeof(options), .defaults = &defaults_, \
    .flags = OP_ANY_DEVICE
#define GRADIENT                                                                                     \
    .arity = 2, .params = sizeof(ConvGradParams), .defaults = &grad_defaults, .fields = grad_fields, \
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_SAME_DTYPE
#define CONVOLUTION(rank)                                                                                   \
    .name = "conv" #rank "d", .autocast = AUTOCAST_LOWER, .torch = "nn.functional.conv" #rank "d",          \
    WITH_BIAS(TensorConvArgs, tensor_conv_defaults), BILINEAR(rank), .fields = fields, .shape = conv_shape, \
    .forward = forward, .backward = backward,                                                               \
    .gradient =                                                                                             \
        "dx = conv_transpose(g, weight) of x's size, dweight = each of its taps' sum of x g, dbias = sum g"
#define TRANSPOSE(rank)                                                                             \
    .name = "conv_transpose" #rank "d", .autocast = AUTOCAST_LOWER,                                 \
    .torch = "nn.functional.conv_transpose" #rank "d",                                              \
    .summary = "gradient of conv" #rank "d's input as a map of its own, weight [in, out / groups, " \
               "window], plus bias; result (in - 1) s - 2 p + d (k - 1) + 1 + output_padding",      \
    WITH_BIAS(TensorConvTransposeArgs, tensor_conv_transpose_defaults), BILINEAR(rank),             \
    .fields = transposed_fields, .shape = conv_transposed_shape, .forward = input_forward,          \
    .backward = transposed_backward,                                                                \
    .gradient = "dx = conv(g, weight), dweight = each of its taps' sum of g x, dbias = sum g"
#define OF_INPUT(rank)                                                                                       \
    .name = "conv" #rank "d_grad_input", .autocast = AUTOCAST_AS_IS,                                         \
    .torch = "nn.grad.conv" #rank "d_input",                                                                 \
    .summary = "gradient of conv" #rank "d's input of that size, from the result's gradient and the weight", \
    GRADIENT, BILINEAR(rank), .shape = conv_input_shape, .forward = input_forward,                           \
    .backward = input_backward, .gradient = "ddy = conv(g, weight), dweight = conv_grad_weight(g, dy)"
#define OF_WEIGHT(rank)                                                                                      \
    .name = "conv" #rank "d_grad_weight", .autocast = AUTOCAST_AS_IS,                                        \
    .torch = "nn.grad.conv" #rank "d_weight",                                                                \
    .summary =                                                                                               \
        "gradient of conv" #rank "d's weight of that kernel size, from the input and the result's gradient", \
    GRADIENT, BILINEAR(rank), .shape = conv_weight_shape, .forward = weight_forward,                         \
    .backward = weight_backward, .gradient = "dx = conv_grad_input(dy, g), ddy = conv(x, g)"

static const TensorOp op_conv1d = {
    .summary = "cross-correlation over one dimension; weight [out, in / groups, width]",
    CONVOLUTION(1),
    .samples =
        "2x3x7,4x3x3,4 {stride=2 padding=1}; 1x4x6,4x1x2,- {groups=4 " SAME
        "}; 3x5,2x3x5,2; 2x2x9,2x2x3,2 {dilation=3 padding=2}; 0x2x4,3x2x3,3; 2x4x5,6x2x1,6 {groups=2}",
    .errors = "2x3x4,2x2x3,2 ! ESHAPE; 2x3x4,2x3x5,2 ! ESHAPE; 2x3x4,2x3x3,3 ! ESHAPE; 2x3x4,2x3x3,2 "
              "{stride=0} ! EVALUE; 2x3x4,2x3x3,2 {strides=[1 1]} ! EVALUE; 2x3x4x4,2x3x3,2 ! ESHAPE; "
              "2x3x4,2x3x3x3,2 ! ESHAPE; 2x3x4@i64,2x3x3,2 ! EDTYPE; 2x3x0,2x3x1,2 {padding=1} ! ESHAPE",
};
static const TensorOp op_conv2d = {
    .summary = "cross-correlation over two dimensions; weight [out, in / groups, height, width]",
    CONVOLUTION(2),
    .samples = "1x3x4x4,3x3x3x3,3 {strides=[2 2] paddings=[2 2]}; 2x4x8x8,2x2x3x3,2 {strides=[3 2] "
               "paddings=[2 1] groups=2}; 1x4x5x5,1x4x2x3,1 {stride=2 padding=1}; 1x4x5x5,1x4x2x3,- {" SAME
               "}; 3x4x5x5,4x2x3x3,4 {padding=1 groups=2}; 2x4x6x6,4x1x3x3,4 {groups=4 padding=1}; "
               "2x2x6x7,4x1x3x2,- {groups=2 strides=[2 1] dilations=[1 2]}; 1x2x9x9,3x2x2x2,3 {dilations=[4 "
               "4]}; 1x2x8x8,2x2x3x2,- {dilations=[2 3] padding=1}; 2x3x4x4,5x3x1x1,5; 3x5x5,2x3x3x3,2 "
               "{padding=1} ; 0x3x4x4,2x3x3x3,2; 2x2x5x5,3x2x5x5,3; 1x2x4x5,2x2x4x2,2 {" SAME
               " dilations=[1 2]}; 3x2x4x4,3x2x1x1,- {stride=2}",
    .errors =
        "2x3x4x4,2x2x3x3,2 ! ESHAPE; 2x3x4x4,2x3x5x5,2 ! ESHAPE; 2x3x4x4,2x3x3x3,3 ! ESHAPE; "
        "2x3x4x4,2x3x3x3,2 {stride=0} ! EVALUE; 2x3x4x4,2x3x3x3,2 {padding=-1} ! EVALUE; 2x3x4x4,2x3x3x3,2 "
        "{dilation=0} ! EVALUE; 2x3x4x4,2x3x3x3,2 {groups=0} ! EVALUE; 2x3x4x4,2x1x3x3,2 {groups=3} ! "
        "ESHAPE; 4x4,2x3x3x3,2 ! ESHAPE; 2x3x4x4,3x3x3,2 ! ESHAPE; 2x3x4x4,2x3x3x3,2 {" SAME
        " stride=2} ! EVALUE; 2x3x4x4@i64,2x3x3x3,2 ! EDTYPE; 2x3x4x4,2x3x0x3,2 ! ESHAPE; 1x3x4x0,2x3x1x1,2 "
        "{padding=1} ! ESHAPE; "
        "1x3x0x4,2x3x1x1,2 {" SAME "} ! ESHAPE",
};
static const TensorOp op_conv3d = {
    .summary = "cross-correlation over three dimensions; weight [out, in / groups, depth, height, width]",
    CONVOLUTION(3),
    .samples = "1x2x4x4x3,3x2x2x3x2,3 {strides=[2 1 2] paddings=[1 2 0]}; 2x2x3x4x4,2x1x2x2x2,2 {groups=2}; "
               "2x3x4x3,2x2x3x3x3,- {" SAME
               "}; 1x1x5x4x3,2x1x2x2x2,2 {dilations=[3 2 1]}; 0x2x3x3x3,2x2x2x2x2,2; 1x2x3x3x3,3x2x1x1x1,3; "
               "1x2x5x3x2,4x1x2x3x2,4 {groups=2 stride=2 padding=1}; 1x2x2x3x4,2x2x2x2x2,2 {" SAME "}",
    .errors =
        "2x3x4x4x4,2x2x3x3x3,2 ! ESHAPE; 1x1x2x4x4,1x1x3x3x3,- ! ESHAPE; 1x1x4x4x4,1x1x3x3x3,2 ! ESHAPE; "
        "4x4x4,1x1x3x3x3,- ! ESHAPE; 1x1x4x4x4,1x1x3x3,- ! ESHAPE; 1x1x4x4x4,1x1x3x3x3,- {paddings=[1 1 -1]} "
        "! EVALUE; 1x1x4x4x4,1x1x3x3x3,- {dilations=[0 1 1]} ! EVALUE; 1x1x4x4x4,1x1x3x3x3,- {" SAME
        " strides=[2 1 1]} ! EVALUE",
};

static const TensorOp op_conv_transpose1d = {
    TRANSPOSE(1),
    .samples = "2x3x4,3x4x3,4 {stride=2 padding=1 output_padding=1}; 1x4x3,4x2x2,8 {groups=4}; 3x5,3x2x3,-; "
               "0x3x4,3x2x3,2; 2x2x4,2x3x2,3 {dilation=3 output_padding=2 padding=1}; 2x4x5,4x3x1,6 "
               "{groups=2}; 1x2x4,2x1x3,2 {groups=2 dilation=2 output_padding=1}",
    .errors = "2x3x4,2x3x3,3 ! ESHAPE; 2x3x4,3x2x3,3 ! ESHAPE; 2x3x4,3x2x3,2 {output_padding=1} ! EVALUE; "
              "2x3x4,3x2x3,2 {stride=2 output_padding=2} ! EVALUE; 2x3x4,3x2x3,2 {output_padding=-1} ! "
              "EVALUE; 1x1x1,1x1x1,- {padding=1} ! ESHAPE; 2x3x0,3x2x3,2 ! ESHAPE; 2x3x4,3x2x3x3,2 ! ESHAPE; "
              "2x3x4,3x2x3,2 {groups=2} ! ESHAPE; 2x3x4@i64,3x2x3,2 ! EDTYPE",
};
static const TensorOp op_conv_transpose2d = {
    TRANSPOSE(2),
    .samples = "1x3x3x4,3x2x3x3,2 {strides=[2 1] paddings=[1 0] output_paddings=[1 0]}; 2x4x3x3,4x2x2x3,4 "
               "{groups=2 stride=3}; 2x3x3,2x3x4x4,3 {stride=2 padding=1}; 2x3x4x2,3x4x1x1,4; "
               "0x3x2x2,3x2x2x2,2; 1x2x3x2,2x2x2x2,2 {dilations=[2 3] output_paddings=[1 2]}; "
               "1x3x4x4,3x1x3x3,3 {groups=3 padding=1}; 1x1x1x1,1x1x2x2,-",
    .errors = "2x3x4x4,2x3x3x3,3 ! ESHAPE; 2x3x4x4,3x2x3x3,3 ! ESHAPE; 2x3x4x4,3x2x3x3,2 {output_paddings=[1 "
              "0]} ! EVALUE; 1x1x1x1,1x1x2x2,- {padding=1} ! ESHAPE; 4x4,3x2x3x3,2 ! ESHAPE; "
              "2x3x4x4,3x2x3x3,2 {strides=[1 1 1]} ! EVALUE",
};
static const TensorOp op_conv_transpose3d = {
    TRANSPOSE(3),
    .samples = "1x2x2x3x2,2x2x2x3x2,2 {strides=[2 1 2] paddings=[0 1 0] output_paddings=[1 0 1]}; "
               "2x2x2x2x3,2x2x2x2x2,4 {groups=2}; 2x2x3x2,2x1x3x2x2,-; 0x2x2x2x2,2x3x2x2x2,3; "
               "1x1x2x2x2,1x2x2x2x2,2 {dilation=2 output_paddings=[1 0 1]}; 1x2x2x2x2,2x3x1x1x1,3",
    .errors = "1x2x2x2x2,1x2x2x2x2,2 ! ESHAPE; 1x2x2x2x2,2x2x2x2x2,1 ! ESHAPE; 1x2x2x2x2,2x2x2x2x2,2 "
              "{output_padding=1} ! EVALUE; 1x2x2x2x2,2x2x2x2,2 ! ESHAPE; 1x2x2x2x2,2x2x1x1x1,2 {padding=1} "
              "! ESHAPE",
};

static const TensorOp op_conv1d_grad_input = {
    OF_INPUT(1),
    .samples = "2x3x3,3x2x3 {stride=2 padding=1 size=[6]}; 2x4x4,4x1x3 {groups=4 size=[6]}; 3x4,3x2x1 "
               "{size=[4]}; 0x2x3,2x3x2 {size=[4]}; 1x2x5,2x2x2 {" SAME " size=[5]}",
    .errors =
        "2x3x3,2x2x3 {size=[5]} ! ESHAPE; 2x3x3,3x2x3 {size=[9]} ! ESHAPE; 2x3x3,3x2x3 {size=[5 5]} ! EVALUE",
};
static const TensorOp op_conv2d_grad_input = {
    OF_INPUT(2),
    .samples = "1x3x3x3,3x3x3x3 {strides=[2 2] paddings=[2 2] size=[4 4]}; 2x2x4x4,2x2x3x3 {strides=[3 2] "
               "paddings=[2 1] groups=2 size=[8 8]}; 2x4x4x4,4x1x3x3 {groups=4 size=[6 6]}; 3x3x4,3x2x1x1 "
               "{size=[3 4]}; 1x1x5x5,1x4x2x3 {" SAME
               " size=[5 5]}; 0x2x2x2,2x3x3x3 {size=[4 4]}; 1x3x5x5,3x2x2x2 {dilations=[4 4] size=[9 9]}; "
               "2x2x2x2,2x3x3x3 {padding=1 stride=2 size=[4 4]}",
    .errors = "1x3x3x3,2x3x3x3 {size=[5 5]} ! ESHAPE; 1x3x3x3,3x3x3x3 {size=[9 5]} ! ESHAPE; 3x3,3x3x3x3 "
              "{size=[5 5]} ! ESHAPE",
};
static const TensorOp op_conv3d_grad_input = {
    OF_INPUT(3),
    .samples = "1x2x2x2x3,2x2x2x2x2 {strides=[2 1 1] size=[5 3 4]}; 1x2x2x2x3,2x1x2x2x1 {groups=2 size=[3 3 "
               "3]}; 2x2x2x2,2x1x2x2x2 {padding=1 stride=2 size=[2 2 2]}; 0x2x2x2x2,2x2x2x2x2 {size=[3 3 3]}",
    .errors = "1x2x2x2x2,2x2x2x2x2 {size=[3 3 4]} ! ESHAPE; 2x2x2,2x2x2x2x2 {size=[3 3 3]} ! ESHAPE",
};

static const TensorOp op_conv1d_grad_weight = {
    OF_WEIGHT(1),
    .samples = "2x2x6,2x3x3 {stride=2 padding=1 size=[3]}; 2x4x6,2x4x4 {groups=4 size=[3]}; 2x4,3x4 "
               "{size=[1]}; 0x3x4,0x2x3 {size=[2]}",
    .errors = "1x3x4,2x3x2 {size=[3]} ! ESHAPE; 1x3x4,1x3x3 {size=[3]} ! ESHAPE",
};
static const TensorOp op_conv2d_grad_weight = {
    OF_WEIGHT(2),
    .samples = "1x3x4x4,1x3x3x3 {strides=[2 2] paddings=[2 2] size=[3 3]}; 2x4x8x8,2x2x4x4 {strides=[3 2] "
               "paddings=[2 1] groups=2 size=[3 3]}; 2x4x6x6,2x4x4x4 {groups=4 size=[3 3]}; 2x3x4,3x3x4 "
               "{size=[1 1]}; 1x4x5x5,1x1x5x5 {" SAME
               " size=[2 3]}; 0x3x4x4,0x2x2x2 {size=[3 3]}; 1x2x9x9,1x3x5x5 {dilations=[4 4] size=[2 2]}",
    .errors = "1x3x4x4,2x3x2x2 {size=[3 3]} ! ESHAPE; 1x3x4x4,1x3x3x3 {size=[3 3]} ! ESHAPE; 3x4x4,1x3x2x2 "
              "{size=[3 3]} ! ESHAPE",
};
static const TensorOp op_conv3d_grad_weight = {
    OF_WEIGHT(3),
    .samples = "1x2x5x3x4,1x2x2x2x3 {strides=[2 1 1] size=[2 2 2]}; 1x2x3x3x3,1x2x2x2x3 {groups=2 size=[2 2 "
               "1]}; 1x2x2x2,2x2x2x2 {padding=1 stride=2 size=[2 2 2]}; 0x2x3x3x3,0x2x2x2x2 {size=[2 2 2]}",
    .errors = "1x2x3x3x3,1x2x2x2x3 {size=[2 2 2]} ! ESHAPE; 1x2x3x3x3,2x2x2x2x2 {size=[2 2 2]} ! ESHAPE",
};
REGISTER_OPS(&op_conv1d, &op_conv2d, &op_conv3d, &op_conv_transpose1d, &op_conv_transpose2d,
             &op_conv_transpose3d, &op_conv1d_grad_input, &op_conv2d_grad_input, &op_conv3d_grad_input,
             &op_conv1d_grad_weight, &op_conv2d_grad_weight, &op_conv3d_grad_weight);

/* ---- functions ------------------------------------------------------------------------------- */

#define CONV_FUNCTIONS(rank)                                                      \
    Tensor *tensor_conv##rank##d_args(TensorConvArgs a)                           \
    {                                                                             \
        return APPLY(&op_conv##rank##d, &a, a.input, a.weight, a.bias);           \
    }                                                                             \
    Tensor *tensor_conv_transpose##rank##d_args(TensorConvTransposeArgs a)        \
    {                                                                             \
        return APPLY(&op_conv_transpose##rank##d, &a, a.input, a.weight, a.bias); \
    }
CONV_FUNCTIONS(1)
CONV_FUNCTIONS(2)
CONV_FUNCTIONS(3)
