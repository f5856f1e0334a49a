/* avg_pool.c - the mean of each window over 1, 2 or 3 dimensions.
 *
 *   avg_pool   y = sum of the window / divisor      dx = dy / divisor added to all of the window
 *   adaptive   the same for windows that cover the input: window i of n over size s is [floor(i s / n),
 * ceil((i + 1) s / n)) lp_pool    y = (sum of the window's x^p)^(1/p), of avg_pool
 *
 * The backward is an op, whose own gradient is the pool again. */
#include <math.h>
#include "pool.h"

static int shape1(OpCall *c) { return pool_shape(c, 1); }
static int shape2(OpCall *c) { return pool_shape(c, 2); }
static int shape3(OpCall *c) { return pool_shape(c, 3); }
static int adaptive1(OpCall *c) { return pool_adaptive_shape(c, 1); }
static int adaptive2(OpCall *c) { return pool_adaptive_shape(c, 2); }
static int adaptive3(OpCall *c) { return pool_adaptive_shape(c, 3); }

static int run(OpCall *c, Tensor *x, Tensor *y)
{
    PoolArgs args = pool_args(op_params(c), y->dtype, shape_of(x), shape_of(y));
    args.x = x->data, args.y = y->data;
    return RUN_KERNEL(c->op->name, x->place, avg_pool, &args);
}

/* One window a plane is the mean, for which reductions have better loops. */
static bool whole_planes(const PoolParams *p)
{
    for (int i = 0; i < p->size.n; i++)
        if (p->size.at[i] != 1) return false;
    return p->adaptive;
}

static int forward(OpCall *c)
{
    const PoolParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *out = op_output(c, 0);
    if (whole_planes(p)) {
        bool reduced[TENSOR_MAX_DIMS] = { false };
        for (int i = 0; i < p->spatial; i++) reduced[x->ndim - 1 - i] = true;
        return raw_reduce_into(out, x, REDUCE_MEAN, reduced, 0);
    }
    Tensor *y = pool_target(out);
    if (!y || !(x = dense_float(x))) return -1;
    return run(c, x, y) ? -1 : pool_deliver(out, y);
}

/* ---- gradient -------------------------------------------------------------------------------- */

static const TensorOp op_avg_pool_grad;
static const TensorOp *pool_op(const PoolParams *p);

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    PoolParams p = *(const PoolParams *)op_params(c);
    const TensorShape x = op_input_shape(c, 0);
    p.size.n = p.spatial;
    for (int i = 0; i < p.spatial; i++) p.size.at[i] = x.dim[x.ndim - p.spatial + i];
    dx[0] = APPLY(&op_avg_pool_grad, &p, dy);
    return dx[0] ? 0 : -1;
}

static int grad_shape(OpCall *c)
{
    int64_t y[3];
    const PoolParams *p = op_params(c);
    const Tensor *dy = op_input(c, 0);
    const int spatial = p->size.n;
    if (spatial < 1 || spatial > 3) return op_fail(c, TENSOR_EVALUE, "a size of %d numbers", spatial);
    if (pool_rank(c, dy, spatial)) return -1;
    for (int i = 0; i < spatial; i++)
        if (p->size.at[i] < 1 || p->size.at[i] > LINE_LIMIT)
            return op_fail(c, TENSOR_EVALUE, "an input of %s",
                           shape_text((TensorShape){ spatial, p->size.at }));
    if (!p->adaptive) {
        if (pool_check(c, p) || pool_sizes(c, p, p->size.at, y)) return -1;
        const TensorShape got = { spatial, dy->shape + dy->ndim - spatial }, want = { spatial, y };
        if (!shape_equal(got, want))
            return op_fail(c, TENSOR_ESHAPE, "%s: an input of %s gives %s", S(dy),
                           shape_text((TensorShape){ spatial, p->size.at }), shape_text(want));
    }
    return pool_result(c, 0, dy, p->size.at, dy->dtype);
}

static int grad_forward(OpCall *c)
{
    Tensor *dy = dense_float(op_input(c, 0)), *out = op_output(c, 0), *dx = pool_target(out);
    if (!dy || !dx) return -1;
    PoolArgs args = pool_args(op_params(c), dx->dtype, shape_of(dx), shape_of(dy));
    args.x = dx->data, args.y = dy->data;
    return RUN_KERNEL(c->op->name, dy->place, avg_pool_grad, &args) ? -1 : pool_deliver(out, dx);
}

static int grad_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    PoolParams p = *(const PoolParams *)op_params(c);
    const TensorShape y = op_input_shape(c, 0);
    for (int i = 0; i < p.spatial; i++) p.size.at[i] = y.dim[y.ndim - p.spatial + i];
    dx[0] = APPLY(pool_op(&p), &p, g);
    return dx[0] ? 0 : -1;
}

/* ---- lp_pool --------------------------------------------------------------------------------- */

typedef struct LpParams {
    double norm_type;
    OpDims kernel, stride;
    bool ceil_mode;
} LpParams;

static const TensorOp op_avg_pool1d, op_avg_pool2d, op_avg_pool3d;

/* p = inf: the largest |x|; -inf: the smallest. */
static Tensor *extreme(Tensor *x, const LpParams *p, int spatial)
{
    const double sign = p->norm_type > 0 ? 1 : -1;
    const OpDims *k = &p->kernel, *s = &p->stride;
    Tensor *size = tensor_mul_scalar(tensor_abs(x), sign);
    if (spatial == 1)
        size = tensor_max_pool1d(size, k->at[0], s->n ? s->at[0] : 0, .ceil_mode = p->ceil_mode);
    else
        size = tensor_max_pool2d(size, .kernel_hw = { k->at[0], k->at[k->n > 1] },
                                 .stride_hw = { s->n ? s->at[0] : 0, s->n ? s->at[s->n > 1] : 0 },
                                 .ceil_mode = p->ceil_mode);
    return tensor_mul_scalar(size, sign);
}

static int lp_pool(OpCall *c, int spatial)
{
    const LpParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (p->norm_type == 0) return op_fail(c, TENSOR_EVALUE, "norm_type 0: a norm of this order has no root");
    if (x->ndim != spatial + 1 && x->ndim != spatial + 2)
        return op_fail(c, TENSOR_ESHAPE, "%s: want a batch (or none), channels and %d dimensions", S(x),
                       spatial);
    if (isinf(p->norm_type)) return op_set_result(c, 0, extreme(x, p, spatial));
    PoolParams windows = {
        .kernel = p->kernel, .stride = p->stride, .ceil_mode = p->ceil_mode, .count_include_pad = true
    };
    const TensorDtype dtype = (TensorDtype)x->dtype, wide = dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    Tensor *powers = tensor_pow_scalar(tensor_to(x, wide), p->norm_type);
    Tensor *mean = op_apply1(spatial == 1 ? &op_avg_pool1d : &op_avg_pool2d, &powers, 1, &windows, SITE);
    const double elements =
        (double)p->kernel.at[0] * (spatial == 2 ? (double)p->kernel.at[p->kernel.n > 1] : 1);
    Tensor *sum = tensor_mul_scalar(tensor_mul(tensor_sign(mean), tensor_relu(tensor_abs(mean))), elements);
    return op_set_result(c, 0, tensor_to(tensor_pow_scalar(sum, 1 / p->norm_type), dtype));
}
static int lp_pool1(OpCall *c) { return lp_pool(c, 1); }
static int lp_pool2(OpCall *c) { return lp_pool(c, 2); }

/* ---- ops ------------------------------------------------------------------------------------- */

#define AVG_FIELDS                                                      \
    POOL_FIELDS, OP_FIELD(OP_BOOL, PoolParams, count_include_pad, "1"), \
        OP_FIELD(OP_I64, PoolParams, divisor_override, "0")
static const OpField fields[] = { AVG_FIELDS, { 0 } };
static const OpField adaptive_fields[] = { POOL_SIZE_FIELD, { 0 } };
static const OpField grad_fields[] = {
    AVG_FIELDS, OP_FIELD(OP_DIMS, PoolParams, size, NULL), OP_FIELD(OP_BOOL, PoolParams, adaptive, "0"), { 0 }
};
static const OpField lp_fields[] = { OP_FIELD(OP_DOUBLE, LpParams, norm_type, NULL),
                                     OP_FIELD(OP_DIMS, LpParams, kernel, NULL),
                                     OP_FIELD(OP_DIMS, LpParams, stride, "[]"),
                                     OP_FIELD(OP_BOOL, LpParams, ceil_mode, "0"),
                                     { 0 } };

#define AVG                                                                                              \
    .gradient = "dx = g / divisor added to all of the window", .arity = 1, .params = sizeof(PoolParams), \
    .forward = forward, .backward = backward, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS
#define AVG_POOL .summary = "the mean of each window", AVG, .fields = fields
#define ADAPTIVE .summary = "means of n windows that cover the input", AVG, .fields = adaptive_fields
#define LP_POOL                                                                                              \
    .summary = "(sum of each window's x^p)^(1/p); p = inf, -inf: the largest, smallest |x|",                 \
    .gradient = "dx = g (x / y)^(p - 1) added to all of the window", .arity = 1, .params = sizeof(LpParams), \
    .fields = lp_fields, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS, .lo = .5, .hi = 2

static const TensorOp op_avg_pool1d = {
    .name = "avg_pool1d",
    AVG_POOL,
    .shape = shape1,
    .torch = "nn.functional.avg_pool1d",
    .samples = "2x3x6 {kernel=[2]}; 3x7 {kernel=[3] stride=[2] padding=[1]}; 1x2x6 {kernel=[3] stride=[2] "
               "padding=[1] ceil_mode=1 count_include_pad=0}; "
               "0x2x5 {kernel=[2]}; 1x1x1 {kernel=[1]}",
    .errors =
        "2x3x4 {kernel=[0]} ! EVALUE; 2x3x4 {kernel=[2 2]} ! EVALUE; 2x3x4 {kernel=[2] padding=[2]} ! "
        "EVALUE; 2x3x4 {kernel=[5]} ! ESHAPE; "
        "4 {kernel=[2]} ! ESHAPE; 2x3x4@i64 {kernel=[2]} ! EDTYPE; 2x3x4 {kernel=[2] stride=[-1]} ! EVALUE",
};
static const TensorOp op_avg_pool2d = {
    .name = "avg_pool2d",
    AVG_POOL,
    .shape = shape2,
    .torch = "nn.functional.avg_pool2d",
    .samples = "2x3x4x4 {kernel=[2]}; 1x2x5x6 {kernel=[3 2] stride=[2 1]}; 2x5x5 {kernel=[3] stride=[2] "
               "padding=[1]}; "
               "1x2x5x5 {kernel=[2] ceil_mode=1}; 1x2x5x6 {kernel=[3] stride=[2] padding=[1] ceil_mode=1}; "
               "1x2x5x6 {kernel=[3] stride=[2] padding=[1] ceil_mode=1 count_include_pad=0}; 1x1x4x4 "
               "{kernel=[2] divisor_override=3}; "
               "0x3x4x4 {kernel=[2]}",
    .errors = "2x3x4x4 {kernel=[0]} ! EVALUE; 2x3x4x4 {kernel=[2] stride=[-1]} ! EVALUE; 2x3x4x4 {kernel=[3] "
              "padding=[2]} ! EVALUE; "
              "2x3x4x4 {kernel=[5]} ! ESHAPE; 4x4 {kernel=[2]} ! ESHAPE; 2x3x4x4@i64 {kernel=[2]} ! EDTYPE; "
              "2x3x0x4 {kernel=[2]} ! ESHAPE; "
              "2x3x4x4 {kernel=[2] divisor_override=-1} ! EVALUE",
};
static const TensorOp op_avg_pool3d = {
    .name = "avg_pool3d",
    AVG_POOL,
    .shape = shape3,
    .torch = "nn.functional.avg_pool3d",
    .samples = "1x2x4x4x4 {kernel=[2]}; 2x3x4x5 {kernel=[3 2 2] stride=[1 2 2] padding=[1 0 1]}; 1x1x5x4x5 "
               "{kernel=[3] stride=[2] padding=[1] ceil_mode=1}; "
               "1x1x5x4x5 {kernel=[3] stride=[2] padding=[1] ceil_mode=1 count_include_pad=0}; 1x1x2x3x4 "
               "{kernel=[2] divisor_override=3}; 0x2x3x3x3 {kernel=[2]}",
    .errors = "2x3x4x4x4 {kernel=[2 2]} ! EVALUE; 2x3x4x4x4 {kernel=[3] padding=[2]} ! EVALUE; 2x3x4x4x4 "
              "{kernel=[5 1 1]} ! ESHAPE; 4x4x4 {kernel=[2]} ! ESHAPE",
};
static const TensorOp op_avg_pool_grad = {
    .name = "avg_pool_grad",
    .summary = "gradient of the input of that size of avg_pool1d, 2d, 3d or of an adaptive one",
    .gradient = "dx = the pool of g",
    .arity = 1,
    .params = sizeof(PoolParams),
    .fields = grad_fields,
    .shape = grad_shape,
    .forward = grad_forward,
    .backward = grad_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "-",
    .samples = "2x3x2x2 {kernel=[2] size=[4 4]}; 2x3x3 {kernel=[3] stride=[2] padding=[1] size=[5 5]}; "
               "1x2x3x4 {kernel=[3] stride=[2] padding=[1] ceil_mode=1 count_include_pad=0 size=[5 6]}; "
               "0x3x2x2 {kernel=[2] size=[4 4]}; "
               "2x3x3 {kernel=[2] size=[6]}; 1x1x2x1x2 {kernel=[2] size=[4 2 5]}; 2x3x4 {kernel=[1] "
               "adaptive=1 size=[5 6]}",
    .errors = "2x3x2x2 {kernel=[2] size=[9 4]} ! ESHAPE; 2x2 {kernel=[2] size=[4 4]} ! ESHAPE; 2x3x2x2 "
              "{kernel=[2] size=[0 4]} ! EVALUE; "
              "2x3x2x2 {kernel=[2] size=[]} ! EVALUE",
};
static const TensorOp op_adaptive_avg_pool1d = {
    .name = "adaptive_avg_pool1d",
    ADAPTIVE,
    .shape = adaptive1,
    .torch = "nn.functional.adaptive_avg_pool1d",
    .samples = "2x3x7 {output_size=[3]}; 2x5 {output_size=[1]}; 0x2x5 {output_size=[2]}; 1x1x3 "
               "{output_size=[5]}; 1x2x8 {output_size=[4]}",
    .errors = "4 {output_size=[2]} ! ESHAPE; 2x3x0 {output_size=[2]} ! ESHAPE; 2x3x4 {output_size=[-1]} ! "
              "EVALUE; 2x3x4 {output_size=[1 2]} ! EVALUE; "
              "2x3x4@i64 {output_size=[2]} ! EDTYPE",
};
static const TensorOp op_adaptive_avg_pool2d = {
    .name = "adaptive_avg_pool2d",
    ADAPTIVE,
    .shape = adaptive2,
    .torch = "nn.functional.adaptive_avg_pool2d",
    .samples = "2x3x4x6 {output_size=[1]}; 2x3x4x8 {output_size=[2 4]}; 2x5x7 {output_size=[3 4]}; 1x2x3x3 "
               "{output_size=[5 2]}; 0x3x5x5 {output_size=[2]}; "
               "1x2x3x3 {output_size=[0 2]}",
    .errors = "4x4 {output_size=[1 1]} ! ESHAPE; 2x3x4x4 {output_size=[-1 1]} ! EVALUE; 2x3x0x4 "
              "{output_size=[1 1]} ! ESHAPE; 2x3x4x4 {output_size=[1 2 3]} ! EVALUE",
};
static const TensorOp op_adaptive_avg_pool3d = {
    .name = "adaptive_avg_pool3d",
    ADAPTIVE,
    .shape = adaptive3,
    .torch = "nn.functional.adaptive_avg_pool3d",
    .samples = "1x2x3x4x5 {output_size=[2]}; 2x4x2x3 {output_size=[2 1 3]}; 0x2x3x3x3 {output_size=[2]}; "
               "1x2x2x3x2 {output_size=[1]}",
    .errors = "4x4x4 {output_size=[1]} ! ESHAPE; 1x1x2x2x2 {output_size=[1 -1 1]} ! EVALUE; 1x1x0x2x2 "
              "{output_size=[1]} ! ESHAPE; 1x1x2x2x2 {output_size=[1 2]} ! EVALUE",
};
static const TensorOp op_lp_pool1d = {
    .name = "lp_pool1d",
    LP_POOL,
    .compose = lp_pool1,
    .torch = "nn.functional.lp_pool1d",
    .samples = "2x3x6 {norm_type=2 kernel=[2]}; 3x7 {norm_type=3 kernel=[3] stride=[2]}; 1x2x6 "
               "{norm_type=1.5 kernel=[4] stride=[3] ceil_mode=1}; 0x2x5 {norm_type=2 kernel=[2]}; 1x2x6 "
               "{norm_type=inf kernel=[2]}; 1x2x6 {norm_type=-inf kernel=[3] stride=[2]}",
    .errors = "4 {norm_type=2 kernel=[2]} ! ESHAPE; 2x3x4 {norm_type=2 kernel=[5]} ! ESHAPE; 2x3x4 "
              "{norm_type=0 kernel=[2]} ! EVALUE; 2x3x4 {norm_type=2 kernel=[0]} ! EVALUE",
};
static const TensorOp op_lp_pool2d = {
    .name = "lp_pool2d",
    LP_POOL,
    .compose = lp_pool2,
    .torch = "nn.functional.lp_pool2d",
    .samples = "2x3x4x4 {norm_type=2 kernel=[2]}; 2x5x5 {norm_type=3 kernel=[3 2] stride=[2 1]}; 1x1x5x5 "
               "{norm_type=1.5 kernel=[2] ceil_mode=1}",
    .errors = "4x4 {norm_type=2 kernel=[2]} ! ESHAPE; 2x3x4x4 {norm_type=2 kernel=[5]} ! ESHAPE; 2x3x4x4 "
              "{norm_type=0 kernel=[2]} ! EVALUE",
};
REGISTER_OP(op_avg_pool1d);
REGISTER_OP(op_avg_pool2d);
REGISTER_OP(op_avg_pool3d);
REGISTER_OP(op_avg_pool_grad);
REGISTER_OP(op_adaptive_avg_pool1d);
REGISTER_OP(op_adaptive_avg_pool2d);
REGISTER_OP(op_adaptive_avg_pool3d);
REGISTER_OP(op_lp_pool1d);
REGISTER_OP(op_lp_pool2d);

static const TensorOp *pool_op(const PoolParams *p)
{
    static const TensorOp *const op[2][3] = { { &op_avg_pool1d, &op_avg_pool2d, &op_avg_pool3d },
                                              { &op_adaptive_avg_pool1d, &op_adaptive_avg_pool2d,
                                                &op_adaptive_avg_pool3d } };
    return op[p->adaptive][p->spatial - 1];
}

/* ---- functions ------------------------------------------------------------------------------- */

Tensor *tensor_avg_pool1d_args(TensorAvgPool1dArgs a)
{
    PoolParams p = pool_params(dims_one(a.kernel_size), dims_one(a.stride), dims_one(a.padding));
    p.ceil_mode = a.ceil_mode, p.count_include_pad = a.count_include_pad;
    return APPLY(&op_avg_pool1d, &p, a.input);
}

Tensor *tensor_avg_pool2d_args(TensorAvgPool2dArgs a)
{
    PoolParams p = pool_params(dims_pair(a.kernel_size, a.kernel_hw), dims_pair(a.stride, a.stride_hw),
                               dims_pair(a.padding, a.padding_hw));
    p.ceil_mode = a.ceil_mode, p.count_include_pad = a.count_include_pad,
    p.divisor_override = a.divisor_override;
    return APPLY(&op_avg_pool2d, &p, a.input);
}

Tensor *tensor_avg_pool3d_args(TensorAvgPool3dArgs a)
{
    PoolParams p = pool_params(dims_each(a.kernel_size, a.kernel_dhw), dims_each(a.stride, a.stride_dhw),
                               dims_each(a.padding, a.padding_dhw));
    p.ceil_mode = a.ceil_mode, p.count_include_pad = a.count_include_pad,
    p.divisor_override = a.divisor_override;
    return APPLY(&op_avg_pool3d, &p, a.input);
}

Tensor *tensor_adaptive_avg_pool1d(Tensor *x, int64_t length)
{
    return APPLY(&op_adaptive_avg_pool1d, &((PoolParams){ .size = { 1, { length } } }), x);
}

Tensor *tensor_adaptive_avg_pool2d(Tensor *x, int64_t height, int64_t width)
{
    return APPLY(&op_adaptive_avg_pool2d, &((PoolParams){ .size = { 2, { height, width } } }), x);
}

Tensor *tensor_adaptive_avg_pool3d(Tensor *x, int64_t depth, int64_t height, int64_t width)
{
    return APPLY(&op_adaptive_avg_pool3d, &((PoolParams){ .size = { 3, { depth, height, width } } }), x);
}

static LpParams lp_params(const TensorLpPoolArgs *a)
{
    return (LpParams){ a->norm_type, dims_pair(a->kernel_size, a->kernel_hw),
                       dims_pair(a->stride, a->stride_hw), a->ceil_mode };
}

Tensor *tensor_lp_pool1d_args(TensorLpPoolArgs a)
{
    LpParams p = lp_params(&a);
    return APPLY(&op_lp_pool1d, &p, a.input);
}
Tensor *tensor_lp_pool2d_args(TensorLpPoolArgs a)
{
    LpParams p = lp_params(&a);
    return APPLY(&op_lp_pool2d, &p, a.input);
}
