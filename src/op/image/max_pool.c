/* max_pool.c - the largest of each window over 1, 2 or 3 dimensions, and the way back.
 *
 *   max_pool   y = x at the window's argmax         dx = dy added where the index points
 *   adaptive   the same for windows that cover the input: window i of n over size s is [floor(i s / n),
 * ceil((i + 1) s / n)) unpool     y = 0 but x where the index points   dx = dy there
 *
 * The gradient on the graph is a scatter by the saved index, whose gradient is a gather. */
#include "op/shape/shape_op.h"
#include "pool.h"

/* ---- forward --------------------------------------------------------------------------------- */

/* Result 1, and the limit of kernels that count 32 bits within a padded plane. */
static int with_index(OpCall *c, int spatial)
{
    const Tensor *x = op_input(c, 0);
    const PoolArgs a = pool_args(op_params(c), x->dtype, shape_of(x), op_output_shape(c, 0));
    int64_t plane = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t size = a.in[i] + 2 * a.pad[i];
        if (size > INT32_MAX / plane)
            return op_fail(c, TENSOR_ESHAPE, "%s: a plane has more than 2^31 elements", S(x));
        plane *= size;
    }
    const TensorShape y = op_output_shape(c, 0);
    return pool_result(c, 1, x, y.dim + y.ndim - spatial, TENSOR_I64);
}

static int shape1(OpCall *c) { return pool_shape(c, 1) ? -1 : with_index(c, 1); }
static int shape2(OpCall *c) { return pool_shape(c, 2) ? -1 : with_index(c, 2); }
static int shape3(OpCall *c) { return pool_shape(c, 3) ? -1 : with_index(c, 3); }

static int adaptive1(OpCall *c) { return pool_adaptive_shape(c, 1) ? -1 : with_index(c, 1); }
static int adaptive2(OpCall *c) { return pool_adaptive_shape(c, 2) ? -1 : with_index(c, 2); }
static int adaptive3(OpCall *c) { return pool_adaptive_shape(c, 3) ? -1 : with_index(c, 3); }
static int forward(OpCall *c)
{
    Tensor *x = dense_float(op_input(c, 0)), *out = op_output(c, 0), *y = pool_target(out);
    if (!x || !y) return -1;
    PoolArgs args = pool_args(op_params(c), y->dtype, shape_of(x), shape_of(y));
    args.x = x->data, args.y = y->data, args.index = op_output(c, 1)->data;
    return RUN_KERNEL(c->op->name, x->place, max_pool, &args) ? -1 : pool_deliver(out, y);
}

/* ---- backward -------------------------------------------------------------------------------- */

static Tensor *fused(OpCall *c, Tensor *dy, const Tensor *index)
{
    Tensor *dx = own(new_tensor(op_input_shape(c, 0), op_input_dtype(c, 0), dy->place)),
           *wide = pool_target(dx);
    if (!wide || !(dy = dense_float(dy))) return NULL;
    PoolArgs args = pool_args(op_params(c), wide->dtype, shape_of(wide), shape_of(dy));
    args.x = wide->data, args.y = dy->data, args.index = index->data;
    return RUN_KERNEL(c->op->name, dy->place, max_pool_grad, &args) || pool_deliver(dx, wide) ? NULL : dx;
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
    const int spatial = ((const PoolParams *)op_params(c))->spatial;
    Tensor *index = op_saved_output(c, 1);
    if (!index) return -1;
    if (!op_recording(c)) {
        dx[0] = fused(c, dy, index);
    } else {
        Tensor *zero = zeros(op_input_shape(c, 0), dy);
        dx[0] = tensor_reshape(
            tensor_scatter_add(flat(zero, spatial), 1, flat(index, spatial), flat(dy, spatial)),
            op_input_shape(c, 0));
    }
    return dx[0] ? 0 : -1;
}

/* ---- unpool ---------------------------------------------------------------------------------- */

typedef struct UnpoolParams {
    OpDims kernel, stride, padding, size;
} UnpoolParams;

static int64_t number(const OpDims *list, int i, int64_t otherwise)
{
    return list->n == 0 ? otherwise : list->at[list->n > 1 ? i : 0];
}

/* The sizes that lead here: (in - 1) stride - 2 padding + kernel is taken, up to a stride more or less may be
 * asked for. */
static int unpool_sizes(OpCall *c, const Tensor *x, int spatial, int64_t *out)
{
    const UnpoolParams *p = op_params(c);
    if (x->ndim != spatial + 1 && x->ndim != spatial + 2)
        return op_fail(c, TENSOR_ESHAPE, "%s: want a batch (or none), channels and %d dimensions", S(x),
                       spatial);
    const OpDims *const list[] = { &p->kernel, &p->stride, &p->padding, &p->size };
    for (int i = 0; i < 4; i++)
        if (list[i]->n && list[i]->n != spatial && (i == 3 || list[i]->n != 1))
            return op_fail(c, TENSOR_EVALUE, "a list of %d numbers: want %d", list[i]->n, spatial);
    for (int i = 0; i < spatial; i++) {
        const int64_t kernel = number(&p->kernel, i, 1), pad = number(&p->padding, i, 0),
                      given = number(&p->stride, i, 0), stride = given ? given : kernel;
        if (kernel < 1 || stride < 1 || pad < 0 || kernel > WINDOW_LIMIT || stride > WINDOW_LIMIT ||
            pad > WINDOW_LIMIT)
            return op_fail(c, TENSOR_EVALUE, "kernel %lld, stride %lld, padding %lld", (long long)kernel,
                           (long long)stride, (long long)pad);
        const int64_t usual = (x->shape[x->ndim - spatial + i] - 1) * stride - 2 * pad + kernel;
        out[i] = p->size.n ? p->size.at[i] : usual;
        if (out[i] <= usual - stride || out[i] >= usual + stride || out[i] < 1)
            return op_fail(c, TENSOR_ESHAPE,
                           "%s to %lld in dimension %d: want %lld, or less than a stride of %lld away", S(x),
                           (long long)out[i], i, (long long)usual, (long long)stride);
    }
    return 0;
}

static int unpool(OpCall *c, int spatial)
{
    Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    int64_t shape[5], out[3];
    if (index->dtype != TENSOR_I64)
        return op_fail(c, TENSOR_EDTYPE, "indices of %s: want i64",
                       tensor_dtype_name((TensorDtype)index->dtype));
    if (!shape_equal(shape_of(x), shape_of(index)))
        return op_fail(c, TENSOR_ESHAPE, "%s with indices %s: want equal shapes", S(x), S(index));
    if (unpool_sizes(c, x, spatial, out)) return -1;
    const int lead = x->ndim - spatial;
    for (int d = 0; d < x->ndim; d++) shape[d] = d < lead ? x->shape[d] : out[d - lead];
    const TensorShape to = { x->ndim, shape };
    Tensor *zero = zeros(to, x);
    return op_set_result(
        c, 0,
        zero ? tensor_reshape(tensor_scatter(flat(zero, spatial), 1, flat(index, spatial), flat(x, spatial)),
                              to)
             : NULL);
}
static int unpool1(OpCall *c) { return unpool(c, 1); }
static int unpool2(OpCall *c) { return unpool(c, 2); }
static int unpool3(OpCall *c) { return unpool(c, 3); }

/* ---- ops ------------------------------------------------------------------------------------- */

static const OpField fields[] = { POOL_FIELDS, OP_FIELD(OP_DIMS, PoolParams, dilation, "[]"), { 0 } };
static const OpField adaptive_fields[] = { POOL_SIZE_FIELD, { 0 } };
static const OpField unpool_fields[] = { OP_FIELD(OP_DIMS, UnpoolParams, kernel, NULL),
                                         OP_FIELD(OP_DIMS, UnpoolParams, stride, "[]"),
                                         OP_FIELD(OP_DIMS, UnpoolParams, padding, "[]"),
                                         { "output_size", OP_DIMS, offsetof(UnpoolParams, size), "[]" },
                                         { 0 } };

#define MAX                                                                                              \
    .gradient = "dx = g added where the index points", .arity = 1, .outputs = 2, .keep = KEEP_OUTPUT(1), \
    .params = sizeof(PoolParams), .forward = forward, .backward = backward,                              \
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS
#define MAX_POOL \
    .summary = "the largest of each window, and its position; the first one on ties", MAX, .fields = fields
#define ADAPTIVE                                                                               \
    .summary = "the largest of each of n windows that cover the input, and its position", MAX, \
    .fields = adaptive_fields
#define UNPOOL                                                                                \
    .summary = "zeros with x where the indices of a max pool point",                          \
    .gradient = "dx = g where the index points", .arity = 2, .no_grad_inputs = KEEP_INPUT(1), \
    .params = sizeof(UnpoolParams), .fields = unpool_fields, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS

static const TensorOp op_max_pool1d = {
    .name = "max_pool1d",
    MAX_POOL,
    .shape = shape1,
    .torch = "nn.functional.max_pool1d",
    .samples = "2x3x6 {kernel=[2]}; 3x7 {kernel=[3] stride=[2] padding=[1]}; 1x2x6 {kernel=[3] stride=[2] "
               "ceil_mode=1}; "
               "1x1x7 {kernel=[2] stride=[1] dilation=[3]}; 0x2x5 {kernel=[2]}; 1x1x1 {kernel=[1]}",
    .errors = "2x3x4 {kernel=[0]} ! EVALUE; 2x3x4 {kernel=[2 2]} ! EVALUE; 2x3x4 {kernel=[2] padding=[2]} ! "
              "EVALUE; 2x3x4 {kernel=[5]} ! ESHAPE; "
              "4 {kernel=[2]} ! ESHAPE; 2x3x4@i64 {kernel=[2]} ! EDTYPE; 2x3x4 {kernel=[2] dilation=[0]} ! "
              "EVALUE; 2x3x4 {kernel=[2] stride=[-1]} ! EVALUE",
};
static const TensorOp op_max_pool2d = {
    .name = "max_pool2d",
    MAX_POOL,
    .shape = shape2,
    .torch = "nn.functional.max_pool2d",
    .samples = "2x3x4x4 {kernel=[2]}; 1x2x5x6 {kernel=[3 2] stride=[2 1]}; 2x5x5 {kernel=[3] stride=[2] "
               "padding=[1]}; "
               "1x2x5x5 {kernel=[2] ceil_mode=1}; 1x2x5x5 {kernel=[3] stride=[2] padding=[1] ceil_mode=1}; "
               "1x1x7x7 {kernel=[3] stride=[1] dilation=[2]}; 0x3x4x4 {kernel=[2]}; 1x1x8x9 {kernel=[2 3] "
               "padding=[1 1] dilation=[3 2] stride=[2 1]}",
    .errors = "2x3x4x4 {kernel=[0]} ! EVALUE; 2x3x4x4 {kernel=[2] stride=[-1]} ! EVALUE; 2x3x4x4 {kernel=[3] "
              "padding=[2]} ! EVALUE; "
              "2x3x4x4 {kernel=[5]} ! ESHAPE; 4x4 {kernel=[2]} ! ESHAPE; 2x3x4x4@i64 {kernel=[2]} ! EDTYPE; "
              "2x3x0x4 {kernel=[2]} ! ESHAPE; "
              "2x3x4x4 {kernel=[2] dilation=[0]} ! EVALUE; 2x3x4x4 {kernel=[2 2 2]} ! EVALUE",
};
static const TensorOp op_max_pool3d = {
    .name = "max_pool3d",
    MAX_POOL,
    .shape = shape3,
    .torch = "nn.functional.max_pool3d",
    .samples = "1x2x4x4x4 {kernel=[2]}; 2x3x4x5 {kernel=[3 2 2] stride=[1 2 2] padding=[1 0 1]}; 1x1x5x4x5 "
               "{kernel=[2] ceil_mode=1}; "
               "1x1x5x5x6 {kernel=[2] stride=[2] dilation=[2 3 1]}; 0x2x3x3x3 {kernel=[2]}",
    .errors = "2x3x4x4x4 {kernel=[2 2]} ! EVALUE; 2x3x4x4x4 {kernel=[3] padding=[2]} ! EVALUE; 2x3x4x4x4 "
              "{kernel=[5 1 1]} ! ESHAPE; 4x4x4 {kernel=[2]} ! ESHAPE; "
              "1x1x4x4x4 {kernel=[2] stride=[1 1 -1]} ! EVALUE; 1x1x2x2x2@i64 {kernel=[2]} ! EDTYPE; "
              "1x1x2x0x2 {kernel=[2]} ! ESHAPE",
};
static const TensorOp op_adaptive_max_pool1d = {
    .name = "adaptive_max_pool1d",
    ADAPTIVE,
    .shape = adaptive1,
    .torch = "nn.functional.adaptive_max_pool1d",
    .samples = "2x3x7 {output_size=[3]}; 2x5 {output_size=[1]}; 0x2x5 {output_size=[2]}; 1x1x3 "
               "{output_size=[5]}; 1x2x3 {output_size=[0]}",
    .errors =
        "4 {output_size=[2]} ! ESHAPE; 2x3x0 {output_size=[2]} ! ESHAPE; 2x3x4 {output_size=[-1]} ! EVALUE; "
        "2x3x4 {output_size=[1 2]} ! EVALUE; 2x3x4@i64 {output_size=[2]} ! EDTYPE",
};
static const TensorOp op_adaptive_max_pool2d = {
    .name = "adaptive_max_pool2d",
    ADAPTIVE,
    .shape = adaptive2,
    .torch = "nn.functional.adaptive_max_pool2d",
    .samples = "2x3x4x6 {output_size=[1]}; 1x2x4x8 {output_size=[2 4]}; 2x5x7 {output_size=[3 4]}; 1x2x3x3 "
               "{output_size=[5 2]}; 0x3x5x5 {output_size=[2 2]}",
    .errors = "4x4 {output_size=[1 1]} ! ESHAPE; 2x3x4x4 {output_size=[-1 1]} ! EVALUE; 2x3x0x4 "
              "{output_size=[1 1]} ! ESHAPE; 2x3x4x4 {output_size=[1 2 3]} ! EVALUE",
};
static const TensorOp op_adaptive_max_pool3d = {
    .name = "adaptive_max_pool3d",
    ADAPTIVE,
    .shape = adaptive3,
    .torch = "nn.functional.adaptive_max_pool3d",
    .samples = "1x2x3x4x5 {output_size=[2]}; 2x4x2x3 {output_size=[2 1 3]}; 0x2x3x3x3 {output_size=[2]}",
    .errors = "4x4x4 {output_size=[1]} ! ESHAPE; 1x1x2x2x2 {output_size=[1 -1 1]} ! EVALUE; 1x1x0x2x2 "
              "{output_size=[1]} ! ESHAPE; 1x1x2x2x2 {output_size=[1 2]} ! EVALUE",
};
static const TensorOp op_max_unpool1d = {
    .name = "max_unpool1d",
    UNPOOL,
    .compose = unpool1,
    .torch = "nn.functional.max_unpool1d",
    .samples = "2x3x4,2x3x4@i64:0..7 {kernel=[2]}; 2x3,2x3@i64:0..6 {kernel=[3] stride=[2]}; "
               "1x1x2,1x1x2@i64:0..4 {kernel=[2] output_size=[5]}; "
               "0x2x3,0x2x3@i64:0..1 {kernel=[2]}",
    .errors = "2x3x4,2x3x3@i64:0..7 {kernel=[2]} ! ESHAPE; 2x3x4,2x3x4 {kernel=[2]} ! EDTYPE; "
              "2x3x4,2x3x4@i64:8..9 {kernel=[2]} ! EINDEX; "
              "1x1x2,1x1x2@i64:0..4 {kernel=[2] output_size=[6]} ! ESHAPE; 1x1x2,1x1x2@i64:0..4 {kernel=[2] "
              "output_size=[2]} ! ESHAPE; "
              "4,4@i64:0..3 {kernel=[2]} ! ESHAPE; 2x3x4,2x3x4@i64:0..3 {kernel=[0]} ! EVALUE; "
              "2x3x4,2x3x4@i64:0..3 {kernel=[2 2]} ! EVALUE",
};
static const TensorOp op_max_unpool2d = {
    .name = "max_unpool2d",
    UNPOOL,
    .compose = unpool2,
    .torch = "nn.functional.max_unpool2d",
    .samples = "2x3x2x2,2x3x2x2@i64:0..15 {kernel=[2]}; 2x3x2,2x3x2@i64:0..14 {kernel=[3 2] stride=[1 3] "
               "padding=[0 1]}; "
               "1x1x2x2,1x1x2x2@i64:0..24 {kernel=[2] output_size=[5 5]}",
    .errors = "2x2,2x2@i64:0..3 {kernel=[2]} ! ESHAPE; 1x1x2x2,1x1x2x2@i64:16..20 {kernel=[2]} ! EINDEX; "
              "1x1x2x2,1x1x2x2@i64:0..3 {kernel=[2] output_size=[5]} ! EVALUE",
};
static const TensorOp op_max_unpool3d = {
    .name = "max_unpool3d",
    UNPOOL,
    .compose = unpool3,
    .torch = "nn.functional.max_unpool3d",
    .samples = "1x2x2x1x2,1x2x2x1x2@i64:0..31 {kernel=[2]}; 2x1x2x2,2x1x2x2@i64:0..7 {kernel=[2 3 3] "
               "stride=[2 1 1] padding=[0 1 1]}",
    .errors =
        "2x2x2,2x2x2@i64:0..3 {kernel=[2]} ! ESHAPE; 1x1x1x1x1,1x1x1x1x1@i64:8..9 {kernel=[2]} ! EINDEX",
};
REGISTER_OP(op_max_pool1d);
REGISTER_OP(op_max_pool2d);
REGISTER_OP(op_max_pool3d);
REGISTER_OP(op_adaptive_max_pool1d);
REGISTER_OP(op_adaptive_max_pool2d);
REGISTER_OP(op_adaptive_max_pool3d);
REGISTER_OP(op_max_unpool1d);
REGISTER_OP(op_max_unpool2d);
REGISTER_OP(op_max_unpool3d);

/* ---- functions ------------------------------------------------------------------------------- */

static Tensor *run(const TensorOp *op, Tensor *x, PoolParams p, Tensor **indices, const void *site)
{
    Tensor *result[2] = { NULL, NULL };
    int n = op_apply(op, &x, 1, &p, site, result, 2);
    if (indices) *indices = result[1];
    return n < 0 ? NULL : result[0];
}

Tensor *tensor_max_pool1d_args(TensorMaxPool1dArgs a)
{
    PoolParams p = pool_params(dims_one(a.kernel_size), dims_one(a.stride), dims_one(a.padding));
    p.dilation = dims_one(a.dilation), p.ceil_mode = a.ceil_mode;
    return run(&op_max_pool1d, a.input, p, a.indices, SITE);
}

Tensor *tensor_max_pool2d_args(TensorMaxPool2dArgs a)
{
    PoolParams p = pool_params(dims_pair(a.kernel_size, a.kernel_hw), dims_pair(a.stride, a.stride_hw),
                               dims_pair(a.padding, a.padding_hw));
    p.dilation = dims_pair(a.dilation, a.dilation_hw), p.ceil_mode = a.ceil_mode;
    return run(&op_max_pool2d, a.input, p, a.indices, SITE);
}

Tensor *tensor_max_pool3d_args(TensorMaxPool3dArgs a)
{
    PoolParams p = pool_params(dims_each(a.kernel_size, a.kernel_dhw), dims_each(a.stride, a.stride_dhw),
                               dims_each(a.padding, a.padding_dhw));
    p.dilation = dims_each(a.dilation, a.dilation_dhw), p.ceil_mode = a.ceil_mode;
    return run(&op_max_pool3d, a.input, p, a.indices, SITE);
}

Tensor *tensor_adaptive_max_pool1d(Tensor *x, int64_t length, Tensor **indices)
{
    return run(&op_adaptive_max_pool1d, x, (PoolParams){ .size = { 1, { length } } }, indices, SITE);
}

Tensor *tensor_adaptive_max_pool2d(Tensor *x, int64_t height, int64_t width, Tensor **indices)
{
    return run(&op_adaptive_max_pool2d, x, (PoolParams){ .size = { 2, { height, width } } }, indices, SITE);
}

Tensor *tensor_adaptive_max_pool3d(Tensor *x, int64_t depth, int64_t height, int64_t width, Tensor **indices)
{
    return run(&op_adaptive_max_pool3d, x, (PoolParams){ .size = { 3, { depth, height, width } } }, indices,
               SITE);
}

static Tensor *run_unpool(const TensorOp *op, const TensorUnpoolArgs *a, int spatial, const void *site)
{
    UnpoolParams p = { .kernel = dims_each(a->kernel_size, a->kernel_dims),
                       .stride = dims_each(a->stride, a->stride_dims),
                       .padding = dims_each(a->padding, a->padding_dims) };
    OpDims *const list[] = { &p.kernel, &p.stride, &p.padding };
    for (int i = 0; i < 3; i++)
        if (list[i]->n > 1) list[i]->n = spatial;
    if (shape_to_dims(op->name, a->output_size, &p.size)) return NULL;
    return op_apply1(op, (Tensor *[]){ a->input, a->indices }, 2, &p, site);
}

Tensor *tensor_max_unpool1d_args(TensorUnpoolArgs a) { return run_unpool(&op_max_unpool1d, &a, 1, SITE); }
Tensor *tensor_max_unpool2d_args(TensorUnpoolArgs a) { return run_unpool(&op_max_unpool2d, &a, 2, SITE); }
Tensor *tensor_max_unpool3d_args(TensorUnpoolArgs a) { return run_unpool(&op_max_unpool3d, &a, 3, SITE); }
