/* extremes.c - the largest and the smallest: values over dims, their place, or both along one dim.
 *
 *   amax, amin (max, min of all)     dx = g / ties where x is the extreme
 *   max_dim, min_dim                 dx = g at the returned index
 */
#include "reduce.h"

/* ---- values over dims ------------------------------------------------------------------------ */

static int value_shape(OpCall *c)
{
    return reduce_check_extreme(c) ? -1 : reduce_shape(c, op_input(c, 0)->dtype);
}

static int amax_forward(OpCall *c) { return reduce_forward(c, REDUCE_MAX); }
static int amin_forward(OpCall *c) { return reduce_forward(c, REDUCE_MIN); }

static int value_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = share_evenly(op_params(c), op_saved(c, 0), op_saved_output(c, 0), dy);
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { REDUCE_FIELDS, { 0 } };

#define VALUES                                                                                            \
    .arity = 1, .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0), .params = sizeof(ReduceParams), .fields = fields, \
    .shape = value_shape, .backward = value_backward, .flags = OP_ANY_DEVICE,                             \
    .samples = "5; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 2x3x4 {dims=[-2]}; ; {dims=[0]}; 0x3 "   \
               "{dims=[1]}; 3x4@i64 {dims=[0]}",                                                          \
    .errors = "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[1 1]} ! EVALUE; 0x3 {dims=[0]} ! ESHAPE; 0 ! ESHAPE"

const TensorOp op_amax = { .name = "amax",
                           .summary = "largest over dims; equal ones share the gradient evenly",
                           .gradient = "dx = g / ties where x = y",
                           .forward = amax_forward,
                           VALUES };
const TensorOp op_amin = { .name = "amin",
                           .summary = "smallest over dims; equal ones share the gradient evenly",
                           .gradient = "dx = g / ties where x = y",
                           .forward = amin_forward,
                           VALUES };
REGISTER_OP(op_amax);
REGISTER_OP(op_amin);

Tensor *tensor_amax_args(TensorReduceArgs a)
{
    if (unwanted(a.dtype != TENSOR_DTYPES, "amax", "dtype")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    return APPLY(&op_amax, &p, a.input);
}

Tensor *tensor_amin_args(TensorReduceArgs a)
{
    if (unwanted(a.dtype != TENSOR_DTYPES, "amin", "dtype")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    return APPLY(&op_amin, &p, a.input);
}

Tensor *tensor_max(Tensor *x)
{
    const Naming before = name_as(op_amax.name, __func__);
    return named_result(before, APPLY(&op_amax, &(ReduceParams){ .keepdim = false }, x));
}

Tensor *tensor_min(Tensor *x)
{
    const Naming before = name_as(op_amin.name, __func__);
    return named_result(before, APPLY(&op_amin, &(ReduceParams){ .keepdim = false }, x));
}

/* ---- both ends ------------------------------------------------------------------------------- */

static int ends_shape(OpCall *c)
{
    const ReduceParams *p = op_params(c);
    if (reduce_check_extreme(c)) return -1;
    if (p->dims.n <= 1) return 0;
    return op_fail(c, TENSOR_EVALUE, "%s: %d dims given: it takes one, or none for all", S(op_input(c, 0)),
                   p->dims.n);
}

static int ends_compose(OpCall *c)
{
    const ReduceParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (op_set_result(c, 0, tensor_amin(x, .dims = reduce_dims(p), .keepdim = p->keepdim))) return -1;
    return op_set_result(c, 1, tensor_amax(x, .dims = reduce_dims(p), .keepdim = p->keepdim));
}

const TensorOp op_aminmax = {
    .name = "aminmax",
    .summary = "smallest and largest along a dim or of all; equal ones share the gradient evenly",
    .gradient = "dx = g / ties where x is the smallest + g' / ties where it is the largest",
    .arity = 1,
    .outputs = 2,
    .params = sizeof(ReduceParams),
    .fields = fields,
    .shape = ends_shape,
    .compose = ends_compose,
    .flags = OP_ANY_DEVICE,
    .samples =
        "5; 3x4 {dims=[1]}; 2x3x4 {dims=[-2] keepdim=1}; ; {dims=[0]}; 0x3 {dims=[1]}; 3x4@i64 {dims=[0]}; 1",
    .errors = "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[0 1]} ! EVALUE; 0x3 {dims=[0]} ! ESHAPE; 0 ! ESHAPE",
};
REGISTER_OP(op_aminmax);

Tensor *tensor_aminmax_args(TensorAminmaxArgs a)
{
    Tensor *y[2] = { NULL, NULL };
    ReduceParams p = reduce_params(a.dim, SHAPE(), a.keepdim, 0);
    op_apply(&op_aminmax, &a.input, 1, &p, SITE, y, 2);
    if (a.max) *a.max = y[1];
    return y[0];
}

/* ---- places ---------------------------------------------------------------------------------- */

static int place_shape(OpCall *c)
{
    const ReduceParams *p = op_params(c);
    if (reduce_check_extreme(c)) return -1;
    if (p->dims.n > 1)
        return op_fail(c, TENSOR_EVALUE, "%s: %d dims given: it takes one, or none for all",
                       S(op_input(c, 0)), p->dims.n);
    return reduce_shape(c, TENSOR_I64);
}

static int argmax_forward(OpCall *c) { return reduce_forward(c, REDUCE_ARGMAX); }
static int argmin_forward(OpCall *c) { return reduce_forward(c, REDUCE_ARGMIN); }

#define PLACES                                                                                 \
    .arity = 1, .params = sizeof(ReduceParams), .fields = fields, .shape = place_shape,        \
    .flags = OP_ANY_DEVICE | OP_NONDIFFERENTIABLE,                                             \
    .samples = "5; 3x4 {dims=[1]}; 2x3x4 {dims=[-2] keepdim=1}; ; 0x3 {dims=[1]}; 6@i64:0..3", \
    .errors = "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[0 1]} ! EVALUE; 0 ! ESHAPE"

const TensorOp op_argmax = {
    .name = "argmax", .summary = "index of the largest, the first on ties", .forward = argmax_forward, PLACES
};
const TensorOp op_argmin = {
    .name = "argmin", .summary = "index of the smallest, the first on ties", .forward = argmin_forward, PLACES
};
REGISTER_OP(op_argmax);
REGISTER_OP(op_argmin);

Tensor *tensor_argmax_args(TensorReduceArgs a)
{
    if (unwanted(a.dtype != TENSOR_DTYPES, "argmax", "dtype")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    return APPLY(&op_argmax, &p, a.input);
}

Tensor *tensor_argmin_args(TensorReduceArgs a)
{
    if (unwanted(a.dtype != TENSOR_DTYPES, "argmin", "dtype")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    return APPLY(&op_argmin, &p, a.input);
}

/* ---- both along a dim ------------------------------------------------------------------------ */

typedef struct PickParams {
    int dim;
    bool keepdim;
} PickParams;

static int pick_shape(OpCall *c)
{
    PickParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    int dim = wrap_dim(p->dim, x->ndim), ndim = 0;
    if (dim < 0) return op_fail(c, TENSOR_EINDEX, "%s has no dim %d", S(x), p->dim);
    if (x->ndim && x->shape[dim] == 0)
        return op_fail(c, TENSOR_ESHAPE, "%s: no elements along dim %d to choose from", S(x), dim);
    p->dim = dim;
    for (int i = 0; i < x->ndim; i++)
        if (i != dim || p->keepdim) shape[ndim++] = i == dim ? 1 : x->shape[i];
    const TensorShape to = { ndim, shape };
    return op_set_output(c, 0, to, (TensorDtype)x->dtype) || op_set_output(c, 1, to, TENSOR_I64) ? -1 : 0;
}

static int pick(OpCall *c, int value, int place)
{
    bool reduced[TENSOR_MAX_DIMS] = { false };
    reduced[((const PickParams *)op_params(c))->dim] = true;
    if (raw_reduce_into(op_output(c, 0), op_input(c, 0), value, reduced, 0)) return -1;
    return raw_reduce_into(op_output(c, 1), op_input(c, 0), place, reduced, 0);
}

static int max_forward(OpCall *c) { return pick(c, REDUCE_MAX, REDUCE_ARGMAX); }
static int min_forward(OpCall *c) { return pick(c, REDUCE_MIN, REDUCE_ARGMIN); }

static int pick_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const PickParams *p = op_params(c);
    dx[0] = scatter_back(c, dy, p->dim, p->keepdim);
    return dx[0] ? 0 : -1;
}

static const OpField pick_fields[] = { OP_FIELD(OP_INT, PickParams, dim, NULL),
                                       OP_FIELD(OP_BOOL, PickParams, keepdim, "0"),
                                       { 0 } };

#define PICKS                                                                                                \
    .arity = 1, .outputs = 2, .keep = KEEP_OUTPUT(1), .params = sizeof(PickParams), .fields = pick_fields,   \
    .shape = pick_shape, .backward = pick_backward, .flags = OP_ANY_DEVICE,                                  \
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2 keepdim=1}; {dim=0}; 0x3 {dim=1}; 6@i64:0..3 {dim=0}", \
    .errors = "3x4 {dim=2} ! EINDEX; 0x3 {dim=0} ! ESHAPE"

const TensorOp op_max_dim = { .name = "max_dim",
                              .summary = "largest along a dim and its index; the gradient goes to that index",
                              .gradient = "dx = zeros with g at the index",
                              .forward = max_forward,
                              .torch = "max",
                              PICKS };
const TensorOp op_min_dim = { .name = "min_dim",
                              .summary =
                                  "smallest along a dim and its index; the gradient goes to that index",
                              .gradient = "dx = zeros with g at the index",
                              .forward = min_forward,
                              .torch = "min",
                              PICKS };
REGISTER_OP(op_max_dim);
REGISTER_OP(op_min_dim);

static Tensor *pick_apply(const TensorOp *op, const TensorPickArgs *a, const void *site)
{
    Tensor *y[2] = { NULL, NULL };
    if (a->dim == TENSOR_ALL) fail_site(TENSOR_EVALUE, op->name, site, "dim must be given");
    else op_apply(op, &a->input, 1, &(PickParams){ a->dim, a->keepdim }, site, y, 2);
    if (a->indices) *a->indices = y[1];
    return y[0];
}

Tensor *tensor_max_dim_args(TensorPickArgs a) { return pick_apply(&op_max_dim, &a, SITE); }
Tensor *tensor_min_dim_args(TensorPickArgs a) { return pick_apply(&op_min_dim, &a, SITE); }
