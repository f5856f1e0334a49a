/* max_pool.c - the maximum of each window over 1, 2 or 3 dimensions, and unpooling.
 *
 *   max_pool   y = x at the window's argmax             dx = dy added where the index points
 *   adaptive   the same for windows that cover the input: window i of n over size s is
 *              [floor(i s / n), ceil((i + 1) s / n))
 *   unpool     y = 0 but x where the index points       dx = dy there
 *
 * The gradient on the graph is a scatter by the saved index, whose gradient is a gather. */
#include "cpu/index/host_index.h"
#include "op/shape/shape_op.h"
#include "pool.h"

const TensorMaxPoolArgs tensor_max_pool_defaults = { TENSOR_MAX_POOL_DEFAULTS };
const TensorAdaptiveMaxPoolArgs tensor_adaptive_max_pool_defaults = { 0 };
const TensorMaxUnpoolArgs tensor_max_unpool_defaults = { TENSOR_MAX_UNPOOL_DEFAULTS };

static int adaptive_shape(OpCall *c);
static bool is_adaptive(const OpCall *c) { return c->op->shape == adaptive_shape; }

/* ---- forward --------------------------------------------------------------------------------- */

static int windows(OpCall *c, Pool *p)
{
    const TensorMaxPoolArgs *a = op_params(c);
    *p = (Pool){ .rank = c->op->variant, .adaptive = is_adaptive(c) };
    if (p->adaptive) return 0;
    p->ceil_mode = a->ceil_mode;
    const PoolOption kernel = { a->kernel_size, a->kernel_sizes }, stride = { a->stride, a->strides },
                     padding = { a->padding, a->paddings };
    return window_sizes(c, "dilation", a->dilation, a->dilations, p->rank, 1, 1, &p->dilation) ||
                   pool_windows(c, kernel, stride, padding, p) || pool_half_padding(c, p)
               ? -1
               : 0;
}

/* Result 1, and the limit of kernels that count 32 bits within a padded plane. */
static int with_index(OpCall *c, const Pool *pool)
{
    const Tensor *x = op_input(c, 0);
    const TensorShape y = op_output_shape(c, 0);
    const Sizes in = window_last(shape_of(x), pool->rank), out = window_last(y, pool->rank);
    int64_t plane = 1;
    for (int i = 0; i < WINDOW_RANK; i++) {
        const int64_t size = in.at[i] + 2 * pool->pad.at[i];
        if (size > INT32_MAX / plane)
            return op_fail(c, TENSOR_ESHAPE, "%s: a plane has more than 2^31 elements", S(x));
        plane *= size;
    }
    return pool_result(c, 1, x, &out, pool->rank, TENSOR_I64);
}

static int shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    Pool pool;
    if (x->dtype == TENSOR_BOOL)
        return op_fail(c, TENSOR_EDTYPE, "%s is bool: want a floating dtype, i64, i32 or u8", S(x));
    return window_rank(c, x, "input", c->op->variant) || windows(c, &pool) || pool_shape(c, &pool)
               ? -1
               : with_index(c, &pool);
}

static int adaptive_shape(OpCall *c)
{
    return pool_adaptive_shape(c) ? -1 : with_index(c, &(Pool){ .rank = c->op->variant, .adaptive = true });
}

static int run_forward(OpCall *c, ImageLayout layout)
{
    Tensor *x = op_input(c, 0), *out = op_output(c, 0), *index = op_output(c, 1), *y;
    Pool pool;
    if (layout) index = window_new_last(shape_of(out), TENSOR_I64, out->place);
    else x = DENSE_FOR(max_pool, x);
    y = layout ? window_new_last(shape_of(out), out->dtype, out->place) : TARGET_FOR(max_pool, out);
    if (!x || !y || !index || windows(c, &pool)) return -1;
    PoolArgs args = pool_args(&pool, y->dtype, shape_of(x), shape_of(y));
    args.x = x->data, args.y = y->data, args.index = index->data, args.layout = layout;
    if (RUN_KERNEL(c->name, x->place, max_pool, &args)) return -1;
    if (!layout) return pool_deliver(out, y);
    return op_set_result(c, 0, y) || op_set_result(c, 1, index) ? -1 : 0;
}

static int forward(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    return in_its_layout(c, TAKES(x->place, max_pool, x->dtype) && window_lies_last(x, c->op->variant),
                         run_forward);
}

/* ---- backward -------------------------------------------------------------------------------- */

static Tensor *fused(OpCall *c, Tensor *dy, const Tensor *index)
{
    Tensor *dx = own(new_tensor(op_input_shape(c, 0), op_input_dtype(c, 0), dy->place)),
           *wide = TARGET_FOR(max_pool_grad, dx);
    Pool pool;
    if (!wide || !(dy = DENSE_FOR(max_pool_grad, dy)) || !(index = own(raw_contiguous(index))) ||
        windows(c, &pool))
        return NULL;
    PoolArgs args = pool_args(&pool, wide->dtype, shape_of(wide), shape_of(dy));
    args.x = wide->data, args.y = dy->data, args.index = (int64_t *)index->data;
    return RUN_KERNEL(c->name, dy->place, max_pool_grad, &args) || pool_deliver(dx, wide) ? NULL : dx;
}

/* Where all of them lie with their channels last. */
static Tensor *fused_last(OpCall *c, Tensor *dy, const Tensor *index)
{
    const int rank = c->op->variant;
    const bool takes = TAKES(dy->place, max_pool_grad, dy->dtype) && dy->dtype == (int)op_input_dtype(c, 0);
    Tensor *dx = NULL;
    Pool pool;
    if (!takes || !window_lies_last(dy, rank) || !window_lies_last(index, rank)) return fused(c, dy, index);
    if (windows(c, &pool) || !(dx = window_new_last(op_input_shape(c, 0), dy->dtype, dy->place))) return NULL;
    PoolArgs args = pool_args(&pool, dy->dtype, shape_of(dx), shape_of(dy));
    args.x = dx->data, args.y = dy->data, args.index = (int64_t *)index->data, args.layout = LAYOUT_LAST;
    if (!RUN_KERNEL(c->name, dy->place, max_pool_grad, &args)) return dx;
    return take_decline() ? fused(c, dy, index) : NULL;
}

/* [planes, positions] */
static Tensor *flat(Tensor *x, int spatial)
{
    int64_t planes = 1, positions = 1;
    if (!x) return NULL;
    for (int d = 0; d < x->ndim; d++) *(d < x->ndim - spatial ? &planes : &positions) *= x->shape[d];
    return tensor_reshape(x, SHAPE(planes, positions));
}

static Tensor *zeros(TensorShape shape, const Tensor *like)
{
    Tensor *zero = own(new_tensor(shape, like->dtype, like->place));
    return zero && !raw_fill(zero, 0) ? zero : NULL;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const int rank = c->op->variant;
    Tensor *index = op_saved_output(c, 1);
    if (!index) return -1;
    if (!op_recording(c)) {
        dx[0] = fused_last(c, dy, index);
    } else {
        Tensor *zero = zeros(op_input_shape(c, 0), dy);
        dx[0] = tensor_reshape(tensor_scatter_add(flat(zero, rank), 1, flat(index, rank), flat(dy, rank)),
                               op_input_shape(c, 0));
    }
    return dx[0] ? 0 : -1;
}

/* ---- unpool ---------------------------------------------------------------------------------- */

/* The sizes that lead here: (in - 1) stride - 2 padding + kernel is taken, up to a stride more or less may be
 * asked for. */
static int unpool_sizes(OpCall *c, const Tensor *x, Sizes *out)
{
    const TensorMaxUnpoolArgs *a = op_params(c);
    const int rank = c->op->variant;
    const PoolOption kernel = { a->kernel_size, a->kernel_sizes }, stride = { a->stride, a->strides },
                     padding = { a->padding, a->paddings };
    Pool p = { .rank = rank };
    Sizes usual = window_last(shape_of(x), rank);
    if (pool_windows(c, kernel, stride, padding, &p)) return -1;
    for (int i = 0; i < WINDOW_RANK; i++)
        usual.at[i] = (usual.at[i] - 1) * p.stride.at[i] - 2 * p.pad.at[i] + p.kernel.at[i];
    *out = usual;
    if (a->output_size.ndim == 1 && rank > 1)
        return op_fail(c, TENSOR_EVALUE, "output_size %s: want %d numbers", shape_text(a->output_size), rank);
    if (a->output_size.ndim && window_list(c, "output_size", a->output_size, rank, 0, out)) return -1;
    for (int i = WINDOW_RANK - rank; i < WINDOW_RANK; i++)
        if (out->at[i] <= usual.at[i] - p.stride.at[i] || out->at[i] >= usual.at[i] + p.stride.at[i] ||
            out->at[i] < 1)
            return op_fail(c, TENSOR_ESHAPE, "%s to %s: want %s, or less than a stride of %s away", S(x),
                           window_text(out, rank), window_text(&usual, rank), window_text(&p.stride, rank));
    return 0;
}

static int unpool_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    const int rank = c->op->variant;
    Sizes out;
    if (index->dtype != TENSOR_I64)
        return op_fail(c, TENSOR_EDTYPE, "indices of %s: want i64",
                       tensor_dtype_name((TensorDtype)index->dtype));
    if (!shape_equal(shape_of(x), shape_of(index)))
        return op_fail(c, TENSOR_ESHAPE, "%s with indices %s: want equal shapes", S(x), S(index));
    if (window_rank(c, x, "input", rank) || unpool_sizes(c, x, &out)) return -1;
    return pool_result(c, 0, x, &out, rank, x->dtype);
}

static int unpool_forward(OpCall *c)
{
    const int rank = c->op->variant;
    Tensor *out = op_output(c, 0), *x = op_input(c, 0), *index = op_input(c, 1);
    int64_t planes = 1;
    for (int d = 0; d < x->ndim - rank; d++) planes *= x->shape[d];
    if (on_host(x->place) && planes && (x->flags & index->flags & FLAG_CONTIGUOUS) &&
        host_unpool(dtype_size(x->dtype), planes, out->numel / planes, x->numel / planes, x->data,
                    index->data, out->data))
        return 0;
    /* any layout; and says which index is wrong */
    Tensor *y = raw_fill(out, 0) ? NULL
                                 : scatter_as(c->name, flat(out, rank), 1, flat(op_input(c, 1), rank),
                                              flat(op_input(c, 0), rank), c->site);
    if (y) y = tensor_reshape(y, shape_of(out));
    return y ? raw_copy(out, y) : -1;
}

/* Not scatter's gradient, which is 0 for a value that another one has overwritten. */
static int unpool_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const int rank = c->op->variant;
    Tensor *index = op_saved(c, 1);
    if (!index) return -1;
    dx[0] = tensor_reshape(tensor_gather(flat(dy, rank), 1, flat(index, rank)), op_input_shape(c, 0));
    return dx[0] ? 0 : -1;
}

/* ---- ops ------------------------------------------------------------------------------------- */

#define WINDOW(S)                                                                                       \
    OP_OPTION(S, kernel_size), OP_OPTION(S, stride), OP_OPTION(S, padding), OP_OPTION(S, kernel_sizes), \
        OP_OPTION(S, strides), OP_OPTION(S, paddings)
static const OpField fields[] = { WINDOW(TensorMaxPoolArgs),
                                  OP_OPTION(TensorMaxPoolArgs, dilation, dilations, ceil_mode),
                                  { 0 } };
static const OpField unpool_fields[] = { WINDOW(TensorMaxUnpoolArgs),
                                         OP_OPTION(TensorMaxUnpoolArgs, output_size),
                                         { 0 } };

#define NAMED(name_, rank) \
    .name = #name_ #rank "d", .torch = "nn.functional." #name_ #rank "d", .variant = rank
#define MAX                                                                                              \
    .gradient = "dx = g added where the index points", .arity = 1, .outputs = 2, .keep = KEEP_OUTPUT(1), \
    .forward = forward, .backward = backward
#define MAX_POOL(rank)                                                                                       \
    NAMED(max_pool, rank), .autocast = AUTOCAST_AS_IS,                                                       \
                           .summary = "the largest of each window, and its position; the first one on ties", \
                           MAX, .params = sizeof(TensorMaxPoolArgs), .defaults = &tensor_max_pool_defaults,  \
                           .fields = fields, .shape = shape, .flags = OP_ANY_DEVICE
#define ADAPTIVE(rank)                                                                             \
    NAMED(adaptive_max_pool, rank),                                                                \
        .autocast = (rank) == 3 ? AUTOCAST_CPU_F32 : AUTOCAST_AS_IS,                               \
        .summary = "the largest of each of n windows that cover the input, and its position", MAX, \
        .params = sizeof(AdaptiveParams), .fields = pool_adaptive_fields, .shape = adaptive_shape, \
        .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS
/* The samples have one value a plane: where a place is named twice, the gradient is not the numerical one. */
#define UNPOOL(rank)                                                                                      \
    NAMED(max_unpool, rank),                                                                              \
        .autocast = AUTOCAST_CPU_F32, .summary = "zeros with x where the indices of a max pool point",    \
        .gradient = "dx = g where the index points", .arity = 2, .no_grad_inputs = KEEP_INPUT(1),         \
        .params = sizeof(TensorMaxUnpoolArgs), .defaults = &tensor_max_unpool_defaults,                   \
        .fields = unpool_fields, .keep = KEEP_INPUT(1), .shape = unpool_shape, .forward = unpool_forward, \
        .backward = unpool_backward, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS

static const TensorOp op_max_pool1d = {
    MAX_POOL(1),
    .samples = "2x3x6 {kernel_size=2}; 3x7 {kernel_size=3 stride=2 padding=1}; 1x2x6 {kernel_size=3 stride=2 "
               "ceil_mode=1}; 1x1x7 {kernel_size=2 stride=1 dilation=3}; 0x2x5 {kernel_size=2}; 1x1x1 "
               "{kernel_size=1}",
    .errors = "2x3x4 {kernel_size=0} ! EVALUE; 2x3x4 {kernel_sizes=[2 2]} ! EVALUE; 2x3x4 {kernel_size=2 "
              "padding=2} ! EVALUE; 2x3x4 {kernel_size=5} ! ESHAPE; 4 {kernel_size=2} ! ESHAPE; 2x3x4@bool "
              "{kernel_size=2} ! EDTYPE; 2x3x4 {kernel_size=2 dilation=0} ! EVALUE; 2x3x4 {kernel_size=2 "
              "stride=-1} ! EVALUE",
};
static const TensorOp op_max_pool2d = {
    MAX_POOL(2),
    .samples = "2x3x4x4 {kernel_size=2}; 1x2x5x6 {kernel_sizes=[3 2] strides=[2 1]}; 2x5x5 {kernel_size=3 "
               "stride=2 padding=1}; 1x2x5x5 {kernel_size=2 ceil_mode=1}; 1x2x5x5 {kernel_size=3 stride=2 "
               "padding=1 ceil_mode=1}; 1x1x7x7 {kernel_size=3 stride=1 dilation=2}; 0x3x4x4 "
               "{kernel_size=2}; 1x1x8x9 {kernel_sizes=[2 3] paddings=[1 1] dilations=[3 2] strides=[2 1]}",
    .errors = "2x3x4x4 {kernel_size=0} ! EVALUE; 2x3x4x4 {kernel_size=2 stride=-1} ! EVALUE; 2x3x4x4 "
              "{kernel_size=3 padding=2} ! EVALUE; 2x3x4x4 {kernel_size=5} ! ESHAPE; 4x4 {kernel_size=2} ! "
              "ESHAPE; 2x3x4x4@bool {kernel_size=2} ! EDTYPE; 2x3x0x4 {kernel_size=2} ! ESHAPE; 2x3x4x4 "
              "{kernel_size=2 dilation=0} ! EVALUE; 2x3x4x4 {kernel_sizes=[2 2 2]} ! EVALUE",
};
static const TensorOp op_max_pool3d = {
    MAX_POOL(3),
    .samples = "1x2x4x4x4 {kernel_size=2}; 2x3x4x5 {kernel_sizes=[3 2 2] strides=[1 2 2] paddings=[1 0 1]}; "
               "1x1x5x4x5 {kernel_size=2 ceil_mode=1}; 1x1x5x5x6 {kernel_size=2 stride=2 dilations=[2 3 1]}; "
               "0x2x3x3x3 {kernel_size=2}",
    .errors = "2x3x4x4x4 {kernel_sizes=[2 2]} ! EVALUE; 2x3x4x4x4 {kernel_size=3 padding=2} ! EVALUE; "
              "2x3x4x4x4 {kernel_sizes=[5 1 1]} ! ESHAPE; 4x4x4 {kernel_size=2} ! ESHAPE; 1x1x4x4x4 "
              "{kernel_size=2 strides=[1 1 -1]} ! EVALUE; 1x1x2x2x2@bool {kernel_size=2} ! EDTYPE; 1x1x2x0x2 "
              "{kernel_size=2} ! ESHAPE",
};
static const TensorOp op_adaptive_max_pool1d = {
    ADAPTIVE(1),
    .samples = "2x3x7 {output_size=[3]}; 2x5 {output_size=[1]}; 0x2x5 {output_size=[2]}; 1x1x3 "
               "{output_size=[5]}; 1x2x3 {output_size=[0]}",
    .errors = "4 {output_size=[2]} ! ESHAPE; 2x3x0 {output_size=[2]} ! ESHAPE; 2x3x4 {output_size=[-1]} ! "
              "EVALUE; 2x3x4 {output_size=[1 2]} ! EVALUE; 2x3x4@i64 {output_size=[2]} ! EDTYPE",
};
static const TensorOp op_adaptive_max_pool2d = {
    ADAPTIVE(2),
    .samples = "2x3x4x6 {output_size=[1]}; 1x2x4x8 {output_size=[2 4]}; 2x5x7 {output_size=[3 4]}; 1x2x3x3 "
               "{output_size=[5 2]}; 0x3x5x5 {output_size=[2 2]}",
    .errors = "4x4 {output_size=[1 1]} ! ESHAPE; 2x3x4x4 {output_size=[-1 1]} ! EVALUE; 2x3x0x4 "
              "{output_size=[1 1]} ! ESHAPE; 2x3x4x4 {output_size=[1 2 3]} ! EVALUE",
};
static const TensorOp op_adaptive_max_pool3d = {
    ADAPTIVE(3),
    .samples = "1x2x3x4x5 {output_size=[2]}; 2x4x2x3 {output_size=[2 1 3]}; 0x2x3x3x3 {output_size=[2]}",
    .errors = "4x4x4 {output_size=[1]} ! ESHAPE; 1x1x2x2x2 {output_size=[1 -1 1]} ! EVALUE; 1x1x0x2x2 "
              "{output_size=[1]} ! ESHAPE; 1x1x2x2x2 {output_size=[1 2]} ! EVALUE",
};
/* Where places are drawn at random, several of a plane have room enough to differ: the gradient of one that
 * is named twice is not the numerical one. */
static const TensorOp op_max_unpool1d = {
    UNPOOL(1),
    .samples = "2x3x1,2x3x1@i64:0..1 {kernel_size=2}; 3x1,3x1@i64:0..2 {kernel_size=3 stride=2}; "
               "1x2x1,1x2x1@i64:0..2 {kernel_size=2 output_size=[3]}; 0x2x3,0x2x3@i64:0..1 {kernel_size=2}; "
               "2x2x3,2x2x3@i64:0..2999 {kernel_size=1000}",
    .errors = "2x3x4,2x3x3@i64:0..7 {kernel_size=2} ! ESHAPE; 2x3x4,2x3x4 {kernel_size=2} ! EDTYPE; "
              "2x3x4,2x3x4@i64:8..9 {kernel_size=2} ! EINDEX; 1x1x2,1x1x2@i64:0..4 {kernel_size=2 "
              "output_size=[6]} ! ESHAPE; 1x1x2,1x1x2@i64:0..4 {kernel_size=2 output_size=[2]} ! ESHAPE; "
              "4,4@i64:0..3 {kernel_size=2} ! ESHAPE; 2x3x4,2x3x4@i64:0..3 {kernel_size=0} ! EVALUE; "
              "2x3x4,2x3x4@i64:0..3 {kernel_sizes=[2 2]} ! EVALUE",
};
static const TensorOp op_max_unpool2d = {
    UNPOOL(2),
    .samples = "2x3x1x1,2x3x1x1@i64:0..3 {kernel_size=2}; 3x1x1,3x1x1@i64:0..5 {kernel_sizes=[3 4] "
               "strides=[1 3] paddings=[0 1]}; 1x2x1x1,1x2x1x1@i64:0..8 {kernel_size=2 output_size=[3 3]}; "
               "1x2x2x2,1x2x2x2@i64:0..6399 {kernel_size=40}",
    .errors = "2x2,2x2@i64:0..3 {kernel_size=2} ! ESHAPE; 1x1x2x2,1x1x2x2@i64:16..20 {kernel_size=2} ! "
              "EINDEX; 1x1x2x2,1x1x2x2@i64:0..3 {kernel_size=2 output_size=[5]} ! EVALUE",
};
static const TensorOp op_max_unpool3d = {
    UNPOOL(3),
    .samples = "1x2x1x1x1,1x2x1x1x1@i64:0..7 {kernel_size=2}; 2x1x1x1,2x1x1x1@i64:0..1 {kernel_sizes=[2 3 "
               "3] strides=[2 1 1] paddings=[0 1 1]}; 1x1x2x1x2,1x1x2x1x2@i64:0..6911 {kernel_size=12}",
    .errors = "2x2x2,2x2x2@i64:0..3 {kernel_size=2} ! ESHAPE; 1x1x1x1x1,1x1x1x1x1@i64:8..9 {kernel_size=2} ! "
              "EINDEX",
};
REGISTER_OPS(&op_max_pool1d, &op_max_pool2d, &op_max_pool3d, &op_adaptive_max_pool1d, &op_adaptive_max_pool2d,
             &op_adaptive_max_pool3d, &op_max_unpool1d, &op_max_unpool2d, &op_max_unpool3d);

/* ---- functions ------------------------------------------------------------------------------- */

static Tensor *run(const TensorOp *op, Tensor *x, const void *params, Tensor **indices, const void *site)
{
    Tensor *result[2] = { NULL, NULL };
    int n = op_apply(op, &x, 1, params, site, result, 2);
    if (indices) *indices = result[1];
    return n < 0 ? NULL : result[0];
}

#define FUNCTIONS(rank)                                                           \
    Tensor *tensor_max_pool##rank##d_args(TensorMaxPoolArgs a)                    \
    {                                                                             \
        return run(&op_max_pool##rank##d, a.input, &a, a.indices, SITE);          \
    }                                                                             \
    Tensor *tensor_adaptive_max_pool##rank##d_args(TensorAdaptiveMaxPoolArgs a)   \
    {                                                                             \
        const AdaptiveParams p = { a.output_size };                               \
        return run(&op_adaptive_max_pool##rank##d, a.input, &p, a.indices, SITE); \
    }                                                                             \
    Tensor *tensor_max_unpool##rank##d_args(TensorMaxUnpoolArgs a)                \
    {                                                                             \
        return APPLY(&op_max_unpool##rank##d, &a, a.input, a.indices);            \
    }
FUNCTIONS(1)
FUNCTIONS(2)
FUNCTIONS(3)
