/* avg_pool.c - the mean of each window over 1, 2 or 3 dimensions.
 *
 *   avg_pool   y = sum of the window / divisor          dx = dy / divisor added to all of the window
 *   adaptive   the same for windows that cover the input: window i of n over size s is
 *              [floor(i s / n), ceil((i + 1) s / n))
 *   lp_pool    y = (sum of the window's x^p)^(1/p), made of avg_pool
 *
 * The backward is an op, whose own gradient is the pool again. */
#include <math.h>
#include "pool.h"

const TensorAvgPoolArgs tensor_avg_pool_defaults = { TENSOR_AVG_POOL_DEFAULTS };
const TensorLpPoolArgs tensor_lp_pool_defaults = { TENSOR_LP_POOL_DEFAULTS };

/* Its options come first, so that their fields serve. */
typedef struct AvgGradParams {
    TensorAvgPoolArgs pool;
    TensorShape size; /* of the input's pooled dimensions */
    bool adaptive;
} AvgGradParams;
static const AvgGradParams grad_defaults = { .pool = { TENSOR_AVG_POOL_DEFAULTS } };

static int windows(OpCall *c, const TensorAvgPoolArgs *a, int rank, Pool *p)
{
    *p = (Pool){ .rank = rank,
                 .ceil_mode = a->ceil_mode,
                 .count_include_pad = a->count_include_pad,
                 .divisor = a->divisor_override,
                 .dilation = { { 1, 1, 1 } } };
    if (a->divisor_override < 0)
        return op_fail(c, TENSOR_EVALUE, "divisor_override %lld: want 1 or more, or 0 for none",
                       (long long)a->divisor_override);
    const PoolOption kernel = { a->kernel_size, a->kernel_sizes }, stride = { a->stride, a->strides },
                     padding = { a->padding, a->paddings };
    return pool_windows(c, kernel, stride, padding, p) || pool_half_padding(c, p) ? -1 : 0;
}

static int shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    const int rank = c->op->variant;
    Pool pool;
    if (!dtype_is_float(x->dtype) && x->dtype != TENSOR_I64)
        return op_fail(c, TENSOR_EDTYPE, "%s is %s: want a floating dtype or i64", S(x),
                       tensor_dtype_name((TensorDtype)x->dtype));
    if (window_rank(c, x, "input", rank) || windows(c, op_params(c), rank, &pool)) return -1;
    return pool_shape(c, &pool);
}

static bool is_adaptive(const OpCall *c) { return c->op->fields == pool_adaptive_fields; }

static int run(OpCall *c, ImageLayout layout)
{
    Tensor *x = op_input(c, 0), *out = op_output(c, 0), *y;
    Pool pool = { .rank = c->op->variant, .adaptive = true, .count_include_pad = true };
    if (!is_adaptive(c) && windows(c, op_params(c), c->op->variant, &pool)) return -1;
    if (!layout) x = DENSE_FOR(avg_pool, x);
    y = layout ? window_new_last(shape_of(out), out->dtype, out->place) : TARGET_FOR(avg_pool, out);
    if (!x || !y) return -1;
    PoolArgs args = pool_args(&pool, y->dtype, shape_of(x), shape_of(y));
    args.x = x->data, args.y = y->data, args.layout = layout;
    if (RUN_KERNEL(c->name, x->place, avg_pool, &args)) return -1;
    return layout ? op_set_result(c, 0, y) : pool_deliver(out, y);
}

static int forward(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    return in_its_layout(c, TAKES(x->place, avg_pool, x->dtype) && window_lies_last(x, c->op->variant), run);
}

/* One window a plane is the mean, for which reductions have better loops. */
static int adaptive_forward(OpCall *c)
{
    const int rank = c->op->variant;
    const TensorShape y = op_output_shape(c, 0);
    bool reduced[TENSOR_MAX_DIMS] = { false }, whole = true;
    for (int d = y.ndim - rank; d < y.ndim; d++) reduced[d] = true, whole = whole && y.dim[d] == 1;
    if (whole) return raw_reduce_into(op_output(c, 0), op_input(c, 0), REDUCE_MEAN, reduced, 0);
    return forward(c);
}

/* ---- gradient -------------------------------------------------------------------------------- */

static const TensorOp op_avg_pool_grad;
static const TensorOp *const family[WINDOW_RANK], *const adaptive_family[WINDOW_RANK];

static TensorShape last_of(TensorShape x, int rank) { return (TensorShape){ rank, x.dim + x.ndim - rank }; }

static int apply_grad(OpCall *c, AvgGradParams p, Tensor *dy, Tensor **dx)
{
    p.size = last_of(op_input_shape(c, 0), c->op->variant);
    return (dx[0] = APPLY(&op_avg_pool_grad, &p, dy)) ? 0 : -1;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    return apply_grad(c, (AvgGradParams){ .pool = *(const TensorAvgPoolArgs *)op_params(c) }, dy, dx);
}

static int adaptive_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    return apply_grad(c, (AvgGradParams){ .adaptive = true }, dy, dx);
}

static int grad_windows(OpCall *c, Pool *pool)
{
    const AvgGradParams *p = op_params(c);
    *pool = (Pool){ .rank = p->size.ndim, .adaptive = true, .count_include_pad = true };
    return p->adaptive ? 0 : windows(c, &p->pool, p->size.ndim, pool);
}

static int grad_shape(OpCall *c)
{
    const AvgGradParams *p = op_params(c);
    const Tensor *dy = op_input(c, 0);
    const int rank = p->size.ndim;
    Pool pool;
    Sizes x, y;
    if (rank < 1 || rank > WINDOW_RANK) return op_fail(c, TENSOR_EVALUE, "a size of %d numbers", rank);
    if (window_rank(c, dy, "gradient", rank) || window_list(c, "size", p->size, rank, 1, &x) ||
        grad_windows(c, &pool))
        return -1;
    if (!p->adaptive) {
        if (pool_sizes(c, &pool, &x, &y)) return -1;
        if (!shape_equal(last_of(shape_of(dy), rank), window_shape(&y, rank)))
            return op_fail(c, TENSOR_ESHAPE, "%s: an input of %s gives %s", S(dy), shape_text(p->size),
                           window_text(&y, rank));
    }
    return pool_result(c, 0, dy, &x, rank, dy->dtype);
}

static int run_grad(OpCall *c, ImageLayout layout)
{
    Tensor *dy = op_input(c, 0), *out = op_output(c, 0), *dx;
    Pool pool;
    if (!layout) dy = DENSE_FOR(avg_pool_grad, dy);
    dx = layout ? window_new_last(shape_of(out), out->dtype, out->place) : TARGET_FOR(avg_pool_grad, out);
    if (!dy || !dx || grad_windows(c, &pool)) return -1;
    PoolArgs args = pool_args(&pool, dx->dtype, shape_of(dx), shape_of(dy));
    args.x = dx->data, args.y = dy->data, args.layout = layout;
    if (RUN_KERNEL(c->name, dy->place, avg_pool_grad, &args)) return -1;
    return layout ? op_set_result(c, 0, dx) : pool_deliver(out, dx);
}

static int grad_forward(OpCall *c)
{
    const Tensor *dy = op_input(c, 0);
    const int rank = ((const AvgGradParams *)op_params(c))->size.ndim;
    return in_its_layout(c, TAKES(dy->place, avg_pool_grad, dy->dtype) && window_lies_last(dy, rank),
                         run_grad);
}

static int grad_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    const AvgGradParams *p = op_params(c);
    const int rank = p->size.ndim;
    const AdaptiveParams to = { last_of(op_input_shape(c, 0), rank) };
    dx[0] = p->adaptive ? APPLY(adaptive_family[rank - 1], &to, g) : APPLY(family[rank - 1], &p->pool, g);
    return dx[0] ? 0 : -1;
}

/* ---- lp_pool --------------------------------------------------------------------------------- */

/* p = inf: the largest |x|; -inf: the smallest. */
static Tensor *extreme(Tensor *x, const TensorLpPoolArgs *p, int rank)
{
    const double sign = p->norm_type > 0 ? 1 : -1;
    TensorMaxPoolArgs a = { TENSOR_MAX_POOL_DEFAULTS, .input = tensor_mul_scalar(tensor_abs(x), sign) };
    a.kernel_size = p->kernel_size, a.stride = p->stride, a.ceil_mode = p->ceil_mode;
    memcpy(a.kernel_sizes, p->kernel_sizes, sizeof a.kernel_sizes);
    memcpy(a.strides, p->strides, sizeof a.strides);
    static Tensor *(*const run[])(TensorMaxPoolArgs) = { tensor_max_pool1d_args, tensor_max_pool2d_args,
                                                         tensor_max_pool3d_args };
    return tensor_mul_scalar(run[rank - 1](a), sign);
}

static int lp_pool(OpCall *c)
{
    const TensorLpPoolArgs *p = op_params(c);
    const int rank = c->op->variant;
    Tensor *x = op_input(c, 0);
    if (p->norm_type == 0) return op_fail(c, TENSOR_EVALUE, "norm_type 0: a norm of this order has no root");
    if (window_rank(c, x, "input", rank)) return -1;
    if (isinf(p->norm_type)) return op_set_result(c, 0, extreme(x, p, rank));
    TensorAvgPoolArgs a = { TENSOR_AVG_POOL_DEFAULTS };
    a.kernel_size = p->kernel_size, a.stride = p->stride, a.ceil_mode = p->ceil_mode;
    memcpy(a.kernel_sizes, p->kernel_sizes, sizeof a.kernel_sizes);
    memcpy(a.strides, p->strides, sizeof a.strides);
    const TensorDtype dtype = (TensorDtype)x->dtype, wide = dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    Tensor *powers = tensor_pow_scalar(tensor_to(x, wide), p->norm_type);
    Tensor *mean = op_apply1(family[rank - 1], &powers, 1, &a, SITE);
    const Sizes kernel = window_option(p->kernel_size, p->kernel_sizes, rank, 1);
    const double elements = (double)kernel.at[0] * (double)kernel.at[1] * (double)kernel.at[2];
    Tensor *sum = tensor_mul_scalar(tensor_mul(tensor_sign(mean), tensor_relu(tensor_abs(mean))), elements);
    return op_set_result(c, 0, tensor_to(tensor_pow_scalar(sum, 1 / p->norm_type), dtype));
}

/* ---- ops ------------------------------------------------------------------------------------- */

#define WINDOW(S)                                                                                         \
    OP_OPTION(S, kernel_size), OP_OPTION(S, stride), OP_OPTION(S, ceil_mode), OP_OPTION(S, kernel_sizes), \
        OP_OPTION(S, strides)
#define AVG_FIELDS                                                                                       \
    WINDOW(TensorAvgPoolArgs), OP_OPTION(TensorAvgPoolArgs, padding),                                    \
        OP_OPTION(TensorAvgPoolArgs, count_include_pad), OP_OPTION(TensorAvgPoolArgs, divisor_override), \
        OP_OPTION(TensorAvgPoolArgs, paddings)
static const OpField fields[] = { AVG_FIELDS, { 0 } };
static const OpField grad_fields[] = {
    AVG_FIELDS, OP_REQUIRED(AvgGradParams, size), OP_OPTION(AvgGradParams, adaptive), { 0 }
};
static const OpField lp_fields[] = { OP_REQUIRED(TensorLpPoolArgs, norm_type),
                                     WINDOW(TensorLpPoolArgs),
                                     { 0 } };

#define NAMED(name_, rank) \
    .name = #name_ #rank "d", .torch = "nn.functional." #name_ #rank "d", .variant = rank
#define AVG .gradient = "dx = g / divisor added to all of the window", .arity = 1
#define AVG_POOL(rank)                                                                                 \
    NAMED(avg_pool, rank), .autocast = (rank) == 3 ? AUTOCAST_CPU_F32 : AUTOCAST_AS_IS,                \
                           .summary = "the mean of each window", AVG, .fields = fields,                \
                           .params = sizeof(TensorAvgPoolArgs), .defaults = &tensor_avg_pool_defaults, \
                           .shape = shape, .forward = forward, .backward = backward, .flags = OP_ANY_DEVICE
#define ADAPTIVE(rank)                                                                                \
    NAMED(adaptive_avg_pool, rank), .autocast = (rank) == 3 ? AUTOCAST_CPU_F32 : AUTOCAST_AS_IS,      \
                                    .summary = "means of n windows that cover the input", AVG,        \
                                    .fields = pool_adaptive_fields, .params = sizeof(AdaptiveParams), \
                                    .shape = pool_adaptive_shape, .forward = adaptive_forward,        \
                                    .backward = adaptive_backward, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS
#define LP_POOL(rank)                                                                                  \
    NAMED(lp_pool, rank),                                                                              \
        .autocast = AUTOCAST_CUDA_F32,                                                                 \
        .summary = "(sum of each window's x^p)^(1/p); p = inf, -inf: the largest, smallest |x|",       \
        .gradient = "dx = g (x / y)^(p - 1) added to all of the window", .arity = 1,                   \
        .params = sizeof(TensorLpPoolArgs), .defaults = &tensor_lp_pool_defaults, .fields = lp_fields, \
        .compose = lp_pool, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS, .lo = .5, .hi = 2

static const TensorOp op_avg_pool1d = {
    AVG_POOL(1),
    .samples = "2x3x6 {kernel_size=2}; 3x7 {kernel_size=3 stride=2 padding=1}; 1x2x6 {kernel_size=3 stride=2 "
               "padding=1 ceil_mode=1 count_include_pad=0}; 0x2x5 {kernel_size=2}; 1x1x1 {kernel_size=1}",
    .errors = "2x3x4 {kernel_size=0} ! EVALUE; 2x3x4 {kernel_sizes=[2 2]} ! EVALUE; 2x3x4 {kernel_size=2 "
              "padding=2} ! EVALUE; 2x3x4 {kernel_size=5} ! ESHAPE; 4 {kernel_size=2} ! ESHAPE; 2x3x4@i32 "
              "{kernel_size=2} ! EDTYPE; 2x3x4 {kernel_size=2 stride=-1} ! EVALUE",
};
static const TensorOp op_avg_pool2d = {
    AVG_POOL(2),
    .samples = "2x3x4x4 {kernel_size=2}; 1x2x5x6 {kernel_sizes=[3 2] strides=[2 1]}; 2x5x5 {kernel_size=3 "
               "stride=2 padding=1}; 1x2x5x5 {kernel_size=2 ceil_mode=1}; 1x2x5x6 {kernel_size=3 stride=2 "
               "padding=1 ceil_mode=1}; 1x2x5x6 {kernel_size=3 stride=2 padding=1 ceil_mode=1 "
               "count_include_pad=0}; 1x1x4x4 {kernel_size=2 divisor_override=3}; 0x3x4x4 {kernel_size=2}",
    .errors = "2x3x4x4 {kernel_size=0} ! EVALUE; 2x3x4x4 {kernel_size=2 stride=-1} ! EVALUE; 2x3x4x4 "
              "{kernel_size=3 padding=2} ! EVALUE; 2x3x4x4 {kernel_size=5} ! ESHAPE; 4x4 {kernel_size=2} ! "
              "ESHAPE; 2x3x4x4@i32 {kernel_size=2} ! EDTYPE; 2x3x0x4 {kernel_size=2} ! ESHAPE; 2x3x4x4 "
              "{kernel_size=2 divisor_override=-1} ! EVALUE",
};
static const TensorOp op_avg_pool3d = {
    AVG_POOL(3),
    .samples = "1x2x4x4x4 {kernel_size=2}; 2x3x4x5 {kernel_sizes=[3 2 2] strides=[1 2 2] paddings=[1 0 1]}; "
               "1x1x5x4x5 {kernel_size=3 stride=2 padding=1 ceil_mode=1}; 1x1x5x4x5 {kernel_size=3 stride=2 "
               "padding=1 ceil_mode=1 count_include_pad=0}; 1x1x2x3x4 {kernel_size=2 divisor_override=3}; "
               "0x2x3x3x3 {kernel_size=2}",
    .errors = "2x3x4x4x4 {kernel_sizes=[2 2]} ! EVALUE; 2x3x4x4x4 {kernel_size=3 padding=2} ! EVALUE; "
              "2x3x4x4x4 {kernel_sizes=[5 1 1]} ! ESHAPE; 4x4x4 {kernel_size=2} ! ESHAPE",
};
static const TensorOp op_avg_pool_grad = {
    .name = "avg_pool_grad",
    .autocast = AUTOCAST_AS_IS,
    .summary = "gradient of the input of that size of avg_pool1d, 2d, 3d or of an adaptive one",
    .gradient = "dx = the pool of g",
    .arity = 1,
    PARAMS(AvgGradParams, grad_defaults, grad_fields),
    .shape = grad_shape,
    .forward = grad_forward,
    .backward = grad_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "-",
    .samples = "2x3x2x2 {kernel_size=2 size=[4 4]}; 2x3x3 {kernel_size=3 stride=2 padding=1 size=[5 5]}; "
               "1x2x3x4 {kernel_size=3 stride=2 padding=1 ceil_mode=1 count_include_pad=0 size=[5 6]}; "
               "0x3x2x2 {kernel_size=2 size=[4 4]}; 2x3x3 {kernel_size=2 size=[6]}; 1x1x2x1x2 {kernel_size=2 "
               "size=[4 2 5]}; 2x3x4 {kernel_size=1 adaptive=1 size=[5 6]}",
    .errors = "2x3x2x2 {kernel_size=2 size=[9 4]} ! ESHAPE; 2x2 {kernel_size=2 size=[4 4]} ! ESHAPE; 2x3x2x2 "
              "{kernel_size=2 size=[0 4]} ! EVALUE; 2x3x2x2 {kernel_size=2 size=[]} ! EVALUE",
};
static const TensorOp op_adaptive_avg_pool1d = {
    ADAPTIVE(1),
    .samples = "2x3x7 {output_size=[3]}; 2x5 {output_size=[1]}; 0x2x5 {output_size=[2]}; 1x1x3 "
               "{output_size=[5]}; 1x2x8 {output_size=[4]}",
    .errors = "4 {output_size=[2]} ! ESHAPE; 2x3x0 {output_size=[2]} ! ESHAPE; 2x3x4 {output_size=[-1]} ! "
              "EVALUE; 2x3x4 {output_size=[1 2]} ! EVALUE; 2x3x4@i64 {output_size=[2]} ! EDTYPE",
};
static const TensorOp op_adaptive_avg_pool2d = {
    ADAPTIVE(2),
    .samples = "2x3x4x6 {output_size=[1]}; 2x3x4x8 {output_size=[2 4]}; 2x5x7 {output_size=[3 4]}; 1x2x3x3 "
               "{output_size=[5 2]}; 0x3x5x5 {output_size=[2]}; 1x2x3x3 {output_size=[0 2]}",
    .errors = "4x4 {output_size=[1 1]} ! ESHAPE; 2x3x4x4 {output_size=[-1 1]} ! EVALUE; 2x3x0x4 "
              "{output_size=[1 1]} ! ESHAPE; 2x3x4x4 {output_size=[1 2 3]} ! EVALUE",
};
static const TensorOp op_adaptive_avg_pool3d = {
    ADAPTIVE(3),
    .samples = "1x2x3x4x5 {output_size=[2]}; 2x4x2x3 {output_size=[2 1 3]}; 0x2x3x3x3 {output_size=[2]}; "
               "1x2x2x3x2 {output_size=[1]}",
    .errors = "4x4x4 {output_size=[1]} ! ESHAPE; 1x1x2x2x2 {output_size=[1 -1 1]} ! EVALUE; 1x1x0x2x2 "
              "{output_size=[1]} ! ESHAPE; 1x1x2x2x2 {output_size=[1 2]} ! EVALUE",
};
static const TensorOp op_lp_pool1d = {
    LP_POOL(1),
    .samples = "2x3x6 {norm_type=2 kernel_size=2}; 3x7 {norm_type=3 kernel_size=3 stride=2}; 1x2x6 "
               "{norm_type=1.5 kernel_size=4 stride=3 ceil_mode=1}; 0x2x5 {norm_type=2 kernel_size=2}; 1x2x6 "
               "{norm_type=inf kernel_size=2}; 1x2x6 {norm_type=-inf kernel_size=3 stride=2}",
    .errors = "4 {norm_type=2 kernel_size=2} ! ESHAPE; 2x3x4 {norm_type=2 kernel_size=5} ! ESHAPE; 2x3x4 "
              "{norm_type=0 kernel_size=2} ! EVALUE; 2x3x4 {norm_type=2 kernel_size=0} ! EVALUE",
};
static const TensorOp op_lp_pool2d = {
    LP_POOL(2),
    .samples = "2x3x4x4 {norm_type=2 kernel_size=2}; 2x5x5 {norm_type=3 kernel_sizes=[3 2] strides=[2 1]}; "
               "1x1x5x5 {norm_type=1.5 kernel_size=2 ceil_mode=1}",
    .errors = "4x4 {norm_type=2 kernel_size=2} ! ESHAPE; 2x3x4x4 {norm_type=2 kernel_size=5} ! ESHAPE; "
              "2x3x4x4 {norm_type=0 kernel_size=2} ! EVALUE",
};
static const TensorOp op_lp_pool3d = {
    LP_POOL(3),
    .samples =
        "1x2x3x3x4 {norm_type=2 kernel_size=2}; 2x3x3x3 {norm_type=3 kernel_sizes=[3 2 1] strides=[2 1 "
        "1]}; 1x1x3x3x3 {norm_type=1.5 kernel_size=2 ceil_mode=1}",
    .errors = "4x4x4 {norm_type=2 kernel_size=2} ! ESHAPE; 2x3x4x4x2 {norm_type=2 kernel_size=5} ! ESHAPE; "
              "2x3x4x4 {norm_type=0 kernel_size=2} ! EVALUE",
};
REGISTER_OPS(&op_avg_pool1d, &op_avg_pool2d, &op_avg_pool3d, &op_avg_pool_grad, &op_adaptive_avg_pool1d,
             &op_adaptive_avg_pool2d, &op_adaptive_avg_pool3d, &op_lp_pool1d, &op_lp_pool2d, &op_lp_pool3d);

static const TensorOp *const family[] = { &op_avg_pool1d, &op_avg_pool2d, &op_avg_pool3d };
static const TensorOp *const adaptive_family[] = { &op_adaptive_avg_pool1d, &op_adaptive_avg_pool2d,
                                                   &op_adaptive_avg_pool3d };

/* ---- functions ------------------------------------------------------------------------------- */

#define FUNCTIONS(rank)                                                                    \
    Tensor *tensor_avg_pool##rank##d_args(TensorAvgPoolArgs a)                             \
    {                                                                                      \
        return APPLY(&op_avg_pool##rank##d, &a, a.input);                                  \
    }                                                                                      \
    Tensor *tensor_adaptive_avg_pool##rank##d(Tensor *x, TensorShape output_size)          \
    {                                                                                      \
        return APPLY(&op_adaptive_avg_pool##rank##d, &(AdaptiveParams){ output_size }, x); \
    }
FUNCTIONS(1)
FUNCTIONS(2)
FUNCTIONS(3)

Tensor *tensor_lp_pool1d_args(TensorLpPoolArgs a) { return APPLY(&op_lp_pool1d, &a, a.input); }
Tensor *tensor_lp_pool2d_args(TensorLpPoolArgs a) { return APPLY(&op_lp_pool2d, &a, a.input); }
Tensor *tensor_lp_pool3d_args(TensorLpPoolArgs a) { return APPLY(&op_lp_pool3d, &a, a.input); }
