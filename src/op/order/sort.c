/* sort.c - order along a dim: sort, argsort, topk, kthvalue, median, nanmedian, mode.
 *
 *   y_j = x_(i_j)              dx_(i_j) = g_j, 0 elsewhere
 *
 * The device's `order` finds the i_j, equal elements in the order they had. */
#include "op/reduce/reduce.h"

const TensorSortArgs tensor_sort_defaults = { TENSOR_SORT_DEFAULTS };
const TensorArgsortArgs tensor_argsort_defaults = { TENSOR_ARGSORT_DEFAULTS };
const TensorTopkArgs tensor_topk_defaults = { TENSOR_TOPK_DEFAULTS };
const TensorKthvalueArgs tensor_kthvalue_defaults = { TENSOR_KTHVALUE_DEFAULTS };
const TensorMedianArgs tensor_median_defaults = { TENSOR_MEDIAN_DEFAULTS };

/* ---- what they share ------------------------------------------------------------------------- */

static int64_t size_along(const Tensor *x, int dim) { return x->ndim ? x->shape[dim] : 1; }

/* The input's shape with m along dim, or without dim when m is -1; for values, if they are a result, and
 * indices. */
static int declare(OpCall *c, int dim, int64_t m)
{
    const Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    int ndim = 0;
    for (int i = 0; i < x->ndim; i++)
        if (i != dim || m >= 0) shape[ndim++] = i == dim ? m : x->shape[i];
    const TensorShape to = { ndim, shape };
    if (c->op->outputs == 2 && op_set_output(c, 0, to, (TensorDtype)x->dtype)) return -1;
    return op_set_output(c, c->op->outputs == 2, to, TENSOR_I64);
}

static int check_k(OpCall *c, int64_t k, int64_t least, int dim)
{
    const Tensor *x = op_input(c, 0);
    const int64_t n = size_along(x, dim);
    return k >= least && k <= n ? 0
                                : op_fail(c, TENSOR_EINDEX, "%s: k = %lld: want %lld to %lld along dim %d",
                                          S(x), (long long)k, (long long)least, (long long)n, dim);
}

/* Results of the call: values and indices, or indices alone. */
static int run(OpCall *c, Around a, OrderKind kind, int64_t m, int64_t k, bool descending, int64_t *indices)
{
    Tensor *x = own(raw_contiguous(op_input(c, 0)));
    if (!x) return -1;
    OrderArgs args = { .kind = (int)kind,
                       .dtype = x->dtype,
                       .descending = descending,
                       .outer = a.outer,
                       .n = a.n,
                       .inner = a.inner,
                       .m = m,
                       .k = k,
                       .x = x->data,
                       .values = c->op->outputs == 2 || indices ? op_output(c, 0)->data : NULL,
                       .indices = indices ? indices : op_output(c, c->op->outputs == 2)->data };
    return RUN_KERNEL(c->name, x->place, order, &args);
}

static int run_along(OpCall *c, int dim, OrderKind kind, int64_t m, int64_t k, bool descending)
{
    return run(c, around(shape_of(op_input(c, 0)), dim), kind, m, k, descending, NULL);
}

static int back(OpCall *c, Tensor *dy, Tensor **dx, int dim, bool keepdim)
{
    dx[0] = scatter_back(c, dy, dim, keepdim);
    return dx[0] ? 0 : -1;
}

static Tensor *apply(const TensorOp *op, Tensor *x, const void *params, Tensor **indices, const void *site)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(op, &x, 1, params, site, y, 2);
    if (indices) *indices = y[1];
    return y[0];
}

#define ORDER                                                                                         \
    .arity = 1, .outputs = 2, .keep = KEEP_OUTPUT(1), .gradient = "dx = zeros with g at the indices", \
    .flags = OP_ANY_DEVICE

/* ---- sort, argsort --------------------------------------------------------------------------- */

static int sort_along(OpCall *c, int dim, bool descending)
{
    const int64_t n = size_along(op_input(c, 0), dim);
    return run_along(c, dim, ORDER_FIRST, n, n, descending);
}

static int sort_shape(OpCall *c)
{
    TensorSortArgs *p = op_params_mut(c);
    p->dim = call_dim(c, p->dim, shape_of(op_input(c, 0)));
    return p->dim < 0 ? -1 : declare(c, p->dim, size_along(op_input(c, 0), p->dim));
}

static int sort_forward(OpCall *c)
{
    const TensorSortArgs *p = op_params(c);
    return sort_along(c, p->dim, p->descending);
}

static int sort_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    return back(c, dy, dx, ((const TensorSortArgs *)op_params(c))->dim, true);
}

static int argsort_shape(OpCall *c)
{
    TensorArgsortArgs *p = op_params_mut(c);
    p->dim = call_dim(c, p->dim, shape_of(op_input(c, 0)));
    return p->dim < 0 ? -1 : declare(c, p->dim, size_along(op_input(c, 0), p->dim));
}

static int argsort_forward(OpCall *c)
{
    const TensorArgsortArgs *p = op_params(c);
    return sort_along(c, p->dim, p->descending);
}

#define SORT_FIELDS(struct_)                                                                       \
    {                                                                                              \
        OP_OPTION(struct_, dim), OP_OPTION(struct_, descending), OP_OPTION(struct_, stable), { 0 } \
    }
static const OpField sort_fields[] = SORT_FIELDS(TensorSortArgs),
                     argsort_fields[] = SORT_FIELDS(TensorArgsortArgs);

#define SORT_SAMPLES                                                                              \
    .samples = "5; 3x4 {dim=0 descending=1}; 2x3x4 {dim=-2}; ; 0x3 {dim=0}; 3x0; 6@i64:0..3; 40", \
    .errors = "3x4 {dim=2} ! EINDEX"

const TensorOp op_sort = { .name = "sort",
                           .autocast = AUTOCAST_AS_IS,
                           .summary = "values in order along a dim, and their indices; stable",
                           ORDER,
                           PARAMS(TensorSortArgs, tensor_sort_defaults, sort_fields),
                           .shape = sort_shape,
                           .forward = sort_forward,
                           .backward = sort_backward,
                           SORT_SAMPLES };
const TensorOp op_argsort = { .name = "argsort",
                              .autocast = AUTOCAST_AS_IS,
                              .summary = "indices that would sort along a dim; stable",
                              .arity = 1,
                              .outputs = 1,
                              PARAMS(TensorArgsortArgs, tensor_argsort_defaults, argsort_fields),
                              .shape = argsort_shape,
                              .forward = argsort_forward,
                              .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
                              SORT_SAMPLES };
REGISTER_OPS(&op_sort, &op_argsort);

Tensor *tensor_sort_args(TensorSortArgs a) { return apply(&op_sort, a.input, &a, a.indices, SITE); }
Tensor *tensor_argsort_args(TensorArgsortArgs a) { return apply(&op_argsort, a.input, &a, NULL, SITE); }
Tensor *tensor_msort(Tensor *x)
{
    return APPLY_AS(&op_sort, "tensor_msort", (&(TensorSortArgs){ .dim = 0, TENSOR_FROM_DEFAULTS }), x);
}

/* ---- topk, kthvalue -------------------------------------------------------------------------- */

static int topk_shape(OpCall *c)
{
    TensorTopkArgs *p = op_params_mut(c);
    p->dim = call_dim(c, p->dim, shape_of(op_input(c, 0)));
    return p->dim < 0 || check_k(c, p->k, 0, p->dim) ? -1 : declare(c, p->dim, p->k);
}

static int topk_forward(OpCall *c)
{
    const TensorTopkArgs *p = op_params(c);
    return run_along(c, p->dim, ORDER_FIRST, p->k, p->k, p->largest);
}

static int topk_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    return back(c, dy, dx, ((const TensorTopkArgs *)op_params(c))->dim, true);
}

static int kth_shape(OpCall *c)
{
    TensorKthvalueArgs *p = op_params_mut(c);
    p->dim = call_dim(c, p->dim, shape_of(op_input(c, 0)));
    if (p->dim < 0 || check_k(c, p->k, 1, p->dim)) return -1;
    return declare(c, p->dim, p->keepdim ? 1 : -1);
}

static int kth_forward(OpCall *c)
{
    const TensorKthvalueArgs *p = op_params(c);
    return run_along(c, p->dim, ORDER_KTH, 1, p->k, false);
}

static int kth_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorKthvalueArgs *p = op_params(c);
    return back(c, dy, dx, p->dim, p->keepdim);
}

static const OpField topk_fields[] = { OP_REQUIRED(TensorTopkArgs, k),
                                       OP_OPTION(TensorTopkArgs, dim, largest, sorted),
                                       { 0 } };
static const OpField kth_fields[] = { OP_REQUIRED(TensorKthvalueArgs, k),
                                      OP_OPTION(TensorKthvalueArgs, dim, keepdim),
                                      { 0 } };

const TensorOp op_topk = {
    .name = "topk",
    .autocast = AUTOCAST_AS_IS,
    .summary = "the k largest (or smallest) along a dim, sorted, and their indices",
    ORDER,
    PARAMS(TensorTopkArgs, tensor_topk_defaults, topk_fields),
    .shape = topk_shape,
    .forward = topk_forward,
    .backward = topk_backward,
    .samples = "5 {k=2}; 3x4 {k=3 dim=0 largest=0}; 2x3x4 {k=1 dim=-2}; {k=1}; 0x3 {k=2}; 4 {k=0}; 40 {k=3}; "
               "6@i64:0..3 {k=2}",
    .errors = "3x4 {k=1 dim=2} ! EINDEX; 3x4 {k=5} ! EINDEX; 3 {k=-1} ! EINDEX"
};
const TensorOp op_kthvalue = {
    .name = "kthvalue",
    .autocast = AUTOCAST_AS_IS,
    .summary = "the k-th smallest along a dim and its index",
    ORDER,
    PARAMS(TensorKthvalueArgs, tensor_kthvalue_defaults, kth_fields),
    .shape = kth_shape,
    .forward = kth_forward,
    .backward = kth_backward,
    .samples = "5 {k=2}; 3x4 {k=3 dim=0}; 2x3x4 {k=1 dim=-2 keepdim=1}; {k=1}; 0x3 {k=2}; 6@i64:0..3 {k=2}",
    .errors = "3x4 {k=1 dim=2} ! EINDEX; 3 {k=0} ! EINDEX; 3 {k=4} ! EINDEX"
};
REGISTER_OPS(&op_topk, &op_kthvalue);

Tensor *tensor_topk_args(TensorTopkArgs a) { return apply(&op_topk, a.input, &a, a.indices, SITE); }
Tensor *tensor_kthvalue_args(TensorKthvalueArgs a)
{
    return apply(&op_kthvalue, a.input, &a, a.indices, SITE);
}

/* ---- median, nanmedian, mode along a dim ----------------------------------------------------- */

static int one_shape(OpCall *c)
{
    TensorMedianArgs *p = op_params_mut(c);
    p->dim = call_dim(c, p->dim, shape_of(op_input(c, 0)));
    if (p->dim < 0 || reduce_not_empty(c, over_dim(p->dim, p->keepdim))) return -1;
    return declare(c, p->dim, p->keepdim ? 1 : -1);
}

static int pick(OpCall *c, OrderKind kind)
{
    return run_along(c, ((const TensorMedianArgs *)op_params(c))->dim, kind, 1, 0, false);
}

static int median_forward(OpCall *c) { return pick(c, ORDER_MEDIAN); }
static int nanmedian_forward(OpCall *c) { return pick(c, ORDER_NANMEDIAN); }
static int mode_forward(OpCall *c) { return pick(c, ORDER_MODE); }

static int one_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorMedianArgs *p = op_params(c);
    return back(c, dy, dx, p->dim, p->keepdim);
}

static const OpField one_fields[] = { OP_OPTION(TensorMedianArgs, dim, keepdim), { 0 } };

#define ONE                                                                                               \
    ORDER, .params = sizeof(TensorMedianArgs), .defaults = &tensor_median_defaults, .fields = one_fields, \
           .shape = one_shape, .backward = one_backward,                                                  \
           .samples = "5; 3x4 {dim=0}; 2x3x4 {dim=-2 keepdim=1}; ; 0x3 {dim=1}; 6@i64:0..3",              \
           .errors = "3x4 {dim=2} ! EINDEX; 0x3 {dim=0} ! ESHAPE"

const TensorOp op_median_dim = { .name = "median_dim",
                                 .autocast = AUTOCAST_AS_IS,
                                 .summary = "lower median along a dim and its index; NaN wins",
                                 .forward = median_forward,
                                 .torch = "median",
                                 ONE };
const TensorOp op_nanmedian_dim = { .name = "nanmedian_dim",
                                    .autocast = AUTOCAST_AS_IS,
                                    .summary = "lower median along a dim of what is not NaN, and its index",
                                    .forward = nanmedian_forward,
                                    .torch = "nanmedian",
                                    ONE };
const TensorOp op_mode = { .name = "mode",
                           .autocast = AUTOCAST_AS_IS,
                           .summary = "most frequent value along a dim and its last index",
                           .forward = mode_forward,
                           ONE };
REGISTER_OPS(&op_median_dim, &op_nanmedian_dim, &op_mode);

Tensor *tensor_median_dim_args(TensorMedianArgs a)
{
    return apply(&op_median_dim, a.input, &a, a.indices, SITE);
}
Tensor *tensor_nanmedian_dim_args(TensorMedianArgs a)
{
    return apply(&op_nanmedian_dim, a.input, &a, a.indices, SITE);
}
Tensor *tensor_mode_args(TensorMedianArgs a) { return apply(&op_mode, a.input, &a, a.indices, SITE); }

/* ---- the median of all ----------------------------------------------------------------------- */

static int all_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->numel == 0 && !dtype_is_float(x->dtype))
        return op_fail(c, TENSOR_ESHAPE, "%s: no elements to choose from", S(x));
    return op_set_output(c, 0, SHAPE(), (TensorDtype)x->dtype);
}

static int pick_of_all(OpCall *c, OrderKind kind)
{
    const int64_t n = op_input(c, 0)->numel;
    if (n == 0) return raw_fill(op_output(c, 0), NAN);
    Tensor *index = own(new_tensor(SHAPE(1), TENSOR_I64, op_input(c, 0)->place));
    return index ? run(c, (Around){ 1, n, 1 }, kind, 1, 0, false, index->data) : -1;
}

static int all_forward(OpCall *c) { return pick_of_all(c, ORDER_MEDIAN); }
static int nan_all_forward(OpCall *c) { return pick_of_all(c, ORDER_NANMEDIAN); }

static int all_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *x = op_saved(c, 0);
    if (!x) return -1;
    dx[0] = x->numel ? share_evenly(over_dim(TENSOR_ALL, false), x, op_saved_output(c, 0), dy)
                     : tensor_zeros_like(x);
    return dx[0] ? 0 : -1;
}

#define OF_ALL                                                                                   \
    .arity = 1, .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0), .gradient = "dx = g / ties where x = y", \
    .flags = OP_ANY_DEVICE, .shape = all_shape, .backward = all_backward,                        \
    .samples = "5; 3x4; ; 0; 6@i64:0..3", .errors = "0@i64 ! ESHAPE"

const TensorOp op_median = { .name = "median",
                             .autocast = AUTOCAST_AS_IS,
                             .summary = "lower median of all; equal ones share the gradient evenly; NaN wins",
                             .forward = all_forward,
                             OF_ALL };
const TensorOp op_nanmedian = {
    .name = "nanmedian",
    .autocast = AUTOCAST_AS_IS,
    .summary = "lower median of all that are not NaN; equal ones share the gradient evenly",
    .forward = nan_all_forward,
    OF_ALL
};
REGISTER_OPS(&op_median, &op_nanmedian);

Tensor *tensor_median(Tensor *x) { return APPLY(&op_median, NULL, x); }
Tensor *tensor_nanmedian(Tensor *x) { return APPLY(&op_nanmedian, NULL, x); }
