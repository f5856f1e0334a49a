/* extremes.c - the largest and the smallest: values over dims, their place, or both along one dim.
 *
 *   amax, amin (max, min of all)     dx = g / ties where x is the extreme
 *   max_dim, min_dim                 dx = g at the returned index
 */
#include "reduce.h"

const TensorArgmaxArgs tensor_argmax_defaults = { TENSOR_ARGMAX_DEFAULTS };
const TensorAminmaxArgs tensor_aminmax_defaults = { TENSOR_AMINMAX_DEFAULTS };
const TensorPickArgs tensor_pick_defaults = { TENSOR_PICK_DEFAULTS };

/* ---- values over dims ------------------------------------------------------------------------ */

static ReduceOver values_over(const OpCall *c)
{
    const TensorDimsArgs *p = op_params(c);
    return over_dims(p->dims, p->keepdim);
}

static int value_shape(OpCall *c)
{
    TensorDimsArgs *p = op_params_mut(c);
    if (reduce_check(c, &p->dim, &p->dims) || reduce_not_empty(c, values_over(c))) return -1;
    return reduce_shape(c, values_over(c), op_input(c, 0)->dtype);
}

static int amax_forward(OpCall *c) { return reduce_forward(c, values_over(c), REDUCE_MAX, 0); }
static int amin_forward(OpCall *c) { return reduce_forward(c, values_over(c), REDUCE_MIN, 0); }

Tensor *share_evenly(ReduceOver over, Tensor *x, Tensor *y, Tensor *g)
{
    if (!x || !y || !g) return NULL;
    const TensorShape to = shape_of(x);
    int64_t dim[TENSOR_MAX_DIMS];
    int dims = 0;
    for (int i = 0; i < to.ndim; i++)
        if (over.reduced[i]) dim[dims++] = i;
    Tensor *both_nan = tensor_logical_and(tensor_isnan(x), reduce_spread(over, to, tensor_isnan(y)));
    Tensor *chosen = tensor_logical_or(tensor_eq(x, reduce_spread(over, to, y)), both_nan);
    Tensor *count = tensor_sum(chosen, .dims = { dims, dim }, .keepdim = over.keepdim);
    Tensor *share = count ? tensor_div(g, tensor_to(count, (TensorDtype)g->dtype)) : NULL;
    return tensor_where(chosen, reduce_spread(over, to, share), tensor_zeros_like(x));
}

static int value_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = share_evenly(values_over(c), op_saved(c, 0), op_saved_output(c, 0), dy);
    return dx[0] ? 0 : -1;
}

static const OpField value_fields[] = { OP_OPTION(TensorDimsArgs, dim, keepdim, dims), { 0 } };

#define VALUES                                                                                       \
    .gradient = "dx = g / ties where x = y", .arity = 1, .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),     \
    .params = sizeof(TensorDimsArgs), .defaults = &tensor_dims_defaults, .fields = value_fields,     \
    .shape = value_shape, .backward = value_backward, .flags = OP_ANY_DEVICE,                        \
    .samples = "5; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 2x3x4 {dim=-2}; ; {dims=[0]}; 0x3 " \
               "{dims=[1]}; 3x4@i64 {dims=[0]}",                                                     \
    .errors = "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[1 1]} ! EVALUE; 3x4 {dim=1 dims=[0]} ! EVALUE; "  \
              "0x3 {dims=[0]} ! ESHAPE; 0 ! ESHAPE"

const TensorOp op_amax = { .name = "amax",
                           .autocast = AUTOCAST_AS_IS,
                           .summary = "largest over dims; equal ones share the gradient evenly",
                           .forward = amax_forward,
                           VALUES };
const TensorOp op_amin = { .name = "amin",
                           .autocast = AUTOCAST_AS_IS,
                           .summary = "smallest over dims; equal ones share the gradient evenly",
                           .forward = amin_forward,
                           VALUES };
REGISTER_OPS(&op_amax, &op_amin);

Tensor *tensor_amax_args(TensorDimsArgs a) { return APPLY(&op_amax, &a, a.input); }
Tensor *tensor_amin_args(TensorDimsArgs a) { return APPLY(&op_amin, &a, a.input); }

Tensor *tensor_max(Tensor *x) { return APPLY_AS(&op_amax, __func__, NULL, x); }
Tensor *tensor_min(Tensor *x) { return APPLY_AS(&op_amin, __func__, NULL, x); }

/* ---- both ends ------------------------------------------------------------------------------- */

static int ends_shape(OpCall *c)
{
    TensorAminmaxArgs *p = op_params_mut(c);
    if (call_dim_or_all(c, &p->dim, shape_of(op_input(c, 0)))) return -1;
    return reduce_not_empty(c, over_dim(p->dim, p->keepdim));
}

static int ends_compose(OpCall *c)
{
    const TensorAminmaxArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (op_set_result(c, 0, tensor_amin(x, p->dim, p->keepdim))) return -1;
    return op_set_result(c, 1, tensor_amax(x, p->dim, p->keepdim));
}

static const OpField ends_fields[] = { OP_OPTION(TensorAminmaxArgs, dim, keepdim), { 0 } };

const TensorOp op_aminmax = {
    .name = "aminmax",
    .autocast = AUTOCAST_AS_IS,
    .summary = "smallest and largest along a dim or of all; equal ones share the gradient evenly",
    .gradient = "dx = g / ties where x is the smallest + g' / ties where it is the largest",
    .arity = 1,
    .outputs = 2,
    PARAMS(TensorAminmaxArgs, tensor_aminmax_defaults, ends_fields),
    .shape = ends_shape,
    .compose = ends_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "5; 3x4 {dim=1}; 2x3x4 {dim=-2 keepdim=1}; ; {dim=0}; 0x3 {dim=1}; 3x4@i64 {dim=0}; 1",
    .errors = "3x4 {dim=2} ! EINDEX; 0x3 {dim=0} ! ESHAPE; 0 ! ESHAPE",
};
REGISTER_OPS(&op_aminmax);

Tensor *tensor_aminmax_args(TensorAminmaxArgs a)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&op_aminmax, &a.input, 1, &a, SITE, y, 2);
    if (a.max) *a.max = y[1];
    return y[0];
}

/* ---- places ---------------------------------------------------------------------------------- */

static ReduceOver place_over(const OpCall *c)
{
    const TensorArgmaxArgs *p = op_params(c);
    return over_dim(p->dim, p->keepdim);
}

static int place_shape(OpCall *c)
{
    TensorArgmaxArgs *p = op_params_mut(c);
    if (call_dim_or_all(c, &p->dim, shape_of(op_input(c, 0))) || reduce_not_empty(c, place_over(c)))
        return -1;
    return reduce_shape(c, place_over(c), TENSOR_I64);
}

static int argmax_forward(OpCall *c) { return reduce_forward(c, place_over(c), REDUCE_ARGMAX, 0); }
static int argmin_forward(OpCall *c) { return reduce_forward(c, place_over(c), REDUCE_ARGMIN, 0); }

static const OpField place_fields[] = { OP_OPTION(TensorArgmaxArgs, dim, keepdim), { 0 } };

#define PLACES                                                                                            \
    .arity = 1, .params = sizeof(TensorArgmaxArgs), .defaults = &tensor_argmax_defaults,                  \
    .fields = place_fields, .shape = place_shape, .flags = OP_ANY_DEVICE | OP_NONDIFFERENTIABLE,          \
    .samples = "5; 3x4 {dim=1}; 2x3x4 {dim=-2 keepdim=1}; ; 0x3 {dim=1}; 6@i64:0..3; 2x3 {keepdim=true}", \
    .errors = "3x4 {dim=2} ! EINDEX; 0 ! ESHAPE"

const TensorOp op_argmax = { .name = "argmax",
                             .autocast = AUTOCAST_AS_IS,
                             .summary = "index of the largest, the first on ties",
                             .forward = argmax_forward,
                             PLACES };
const TensorOp op_argmin = { .name = "argmin",
                             .autocast = AUTOCAST_AS_IS,
                             .summary = "index of the smallest, the first on ties",
                             .forward = argmin_forward,
                             PLACES };
REGISTER_OPS(&op_argmax, &op_argmin);

Tensor *tensor_argmax_args(TensorArgmaxArgs a) { return APPLY(&op_argmax, &a, a.input); }
Tensor *tensor_argmin_args(TensorArgmaxArgs a) { return APPLY(&op_argmin, &a, a.input); }

/* ---- both along a dim ------------------------------------------------------------------------ */

static int pick_shape(OpCall *c)
{
    TensorPickArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0) return -1;
    const ReduceOver over = over_dim(p->dim, p->keepdim);
    if (reduce_not_empty(c, over) || reduce_shape(c, over, x->dtype)) return -1;
    return op_set_output(c, 1, shape_of(op_output(c, 0)), TENSOR_I64);
}

static int pick(OpCall *c, int value, int place)
{
    const ReduceOver over = over_dim(((const TensorPickArgs *)op_params(c))->dim, false);
    if (raw_reduce_into(op_output(c, 0), op_input(c, 0), value, over.reduced, 0)) return -1;
    return raw_reduce_into(op_output(c, 1), op_input(c, 0), place, over.reduced, 0);
}

static int max_forward(OpCall *c) { return pick(c, REDUCE_MAX, REDUCE_ARGMAX); }
static int min_forward(OpCall *c) { return pick(c, REDUCE_MIN, REDUCE_ARGMIN); }

static int pick_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorPickArgs *p = op_params(c);
    dx[0] = scatter_back(c, dy, p->dim, p->keepdim);
    return dx[0] ? 0 : -1;
}

static const OpField pick_fields[] = { OP_REQUIRED(TensorPickArgs, dim),
                                       OP_OPTION(TensorPickArgs, keepdim),
                                       { 0 } };

#define PICKS                                                                                                \
    .gradient = "dx = zeros with g at the index", .arity = 1, .outputs = 2, .keep = KEEP_OUTPUT(1),          \
    .params = sizeof(TensorPickArgs), .defaults = &tensor_pick_defaults, .fields = pick_fields,              \
    .shape = pick_shape, .backward = pick_backward, .flags = OP_ANY_DEVICE,                                  \
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2 keepdim=1}; {dim=0}; 0x3 {dim=1}; 6@i64:0..3 {dim=0}", \
    .errors = "3x4 {dim=2} ! EINDEX; 0x3 {dim=0} ! ESHAPE; 3 {dim=-2147483648} ! EVALUE"

const TensorOp op_max_dim = { .name = "max_dim",
                              .autocast = AUTOCAST_AS_IS,
                              .summary = "largest along a dim and its index; the gradient goes to that index",
                              .forward = max_forward,
                              .torch = "max",
                              PICKS };
const TensorOp op_min_dim = { .name = "min_dim",
                              .autocast = AUTOCAST_AS_IS,
                              .summary =
                                  "smallest along a dim and its index; the gradient goes to that index",
                              .forward = min_forward,
                              .torch = "min",
                              PICKS };
REGISTER_OPS(&op_max_dim, &op_min_dim);

static Tensor *pick_apply(const TensorOp *op, const TensorPickArgs *a, const void *site)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(op, &a->input, 1, a, site, y, 2);
    if (a->indices) *a->indices = y[1];
    return y[0];
}

Tensor *tensor_max_dim_args(TensorPickArgs a) { return pick_apply(&op_max_dim, &a, SITE); }
Tensor *tensor_min_dim_args(TensorPickArgs a) { return pick_apply(&op_min_dim, &a, SITE); }
