/* unique.c - the different elements of a tensor, or slices of a dim: in order (unique), or as they come
 * (unique_consecutive).
 *
 * Elements are compared as f64 or i64, slices element by element; NaN equals nothing, itself included, and
 * comes last.  The order is a list of positions, sorted stably; where neighbours in it differ a group begins,
 * whose first element stands for it. */
#include "cpu/order/host_lists.h"
#include "op/shape/shape_op.h"

const TensorUniqueArgs tensor_unique_defaults = { TENSOR_UNIQUE_DEFAULTS };
const TensorUniqueConsecutiveArgs tensor_unique_consecutive_defaults = { TENSOR_UNIQUE_CONSECUTIVE_DEFAULTS };

/* x, on the CPU, as slices, which point into a copy; returns x as [n, ...], or NULL. */
static Tensor *read_slices(OpCall *c, int dim, Slices *s)
{
    Tensor *x = op_input(c, 0);
    const bool along = dim != TENSOR_ALL && x->ndim;
    s->n = along ? x->shape[dim] : x->numel;
    if (s->n && x->numel == 0) {
        op_fail(c, TENSOR_ESHAPE, "dim %d of %s: its slices are empty", dim, S(x));
        return NULL;
    }
    s->width = s->n ? x->numel / s->n : 0;
    Tensor *slices =
        along ? tensor_contiguous(tensor_movedim(x, dim, 0)) : tensor_reshape(x, SHAPE(x->numel));
    Tensor *values =
        slices ? own(raw_cast(slices, dtype_is_float(x->dtype) ? TENSOR_F64 : TENSOR_I64)) : NULL;
    if (!values) return NULL;
    s->f = values->dtype == TENSOR_F64 ? values->data : NULL, s->i = s->f ? NULL : values->data;
    return slices;
}

static Tensor *list_of(int64_t n) { return own(new_tensor(SHAPE(n), TENSOR_I64, &cpu_place)); }

/* The positions in order: for single elements by argsort, which is faster. */
static Tensor *ordered(const Slices *s, Tensor *slices)
{
    if (s->width == 1) return tensor_argsort(tensor_reshape(slices, SHAPE(s->n)));
    Tensor *list = list_of(s->n), *spare = list_of(s->n);
    if (!list || !spare) return NULL;
    count_up(list->data, s->n);
    return sort_slices(s, list->data, spare->data) == list->data ? list : spare;
}

static Tensor *part(Tensor *list, int64_t n)
{
    return n == list->numel ? list : tensor_clone(tensor_narrow(list, 0, 0, n));
}

/* ---- on another device than the CPU ---------------------------------------------------------- */

/* Positions of the slices in order: by their last elements first, stably. */
static Tensor *ordered_there(Tensor *slices, int64_t n, int64_t width, bool sorted)
{
    Tensor *order = numbers_on(n, TENSOR_I64, slices->place);
    for (int64_t k = width - 1; sorted && order && k >= 0; k--) {
        Tensor *column = tensor_index_select(tensor_select(slices, 1, k), 0, order);
        order = tensor_index_select(order, 0, tensor_argsort(column, .stable = true));
    }
    return order;
}

/* i64: 1 where a slice differs from the one before it, in order. */
static Tensor *beginnings(Tensor *slices, Tensor *order, int64_t n)
{
    Tensor *in_order = tensor_index_select(slices, 0, order);
    Tensor *other =
        tensor_any(tensor_ne(tensor_narrow(in_order, 0, 1, n - 1), tensor_narrow(in_order, 0, 0, n - 1)), 1);
    Tensor *one = own(new_tensor(SHAPE(1), TENSOR_BOOL, slices->place));
    if (!one || raw_fill(one, 1)) return NULL;
    return tensor_to(tensor_cat(TENSORS(one, other), 0), TENSOR_I64);
}

typedef struct Groups {
    int64_t n;
    Tensor *first, *count, *inverse;
} Groups;

/* The device is asked how many groups there are. */
static int group_there(Tensor *slices, bool sorted, Groups *g)
{
    if (!slices) return -1;
    const int64_t n = slices->shape[0], width = slices->shape[1];
    Tensor *order = ordered_there(slices, n, width, sorted), *begin = beginnings(slices, order, n),
           *number = tensor_cumsum(begin, 0);
    const double groups = number ? tensor_item(tensor_narrow(number, 0, n - 1, 1)) : 0;
    if (!number || tensor_error_code()) return -1;
    g->n = (int64_t)groups;
    Tensor *which = numbers_on(g->n + 1, TENSOR_I64, slices->place),
           *start = tensor_searchsorted(number, tensor_add_scalar(which, 1));
    g->first = tensor_index_select(order, 0, tensor_narrow(start, 0, 0, g->n));
    g->count = tensor_sub(tensor_narrow(start, 0, 1, g->n), tensor_narrow(start, 0, 0, g->n));
    g->inverse = tensor_index_add(tensor_zeros_like(order), 0, order, tensor_sub_scalar(number, 1));
    return g->first && g->count && g->inverse ? 0 : -1;
}

static int compose_there(OpCall *c, int dim, bool sorted)
{
    Tensor *x = op_input(c, 0);
    const bool along = dim != TENSOR_ALL && x->ndim;
    Tensor *slices = along ? tensor_movedim(x, dim, 0) : tensor_reshape(x, SHAPE(x->numel));
    if (!slices) return -1;
    const int64_t n = slices->shape[0];
    if (n && x->numel == 0) return op_fail(c, TENSOR_ESHAPE, "dim %d of %s: its slices are empty", dim, S(x));
    Groups g = { 0 };
    g.first = g.count = g.inverse = zeros_on(SHAPE(n), TENSOR_I64, x->place);
    if (!g.first || (n && group_there(tensor_reshape(slices, SHAPE(n, x->numel / n)), sorted, &g))) return -1;
    Tensor *values = tensor_index_select(slices, 0, g.first);
    if (along && values) values = tensor_movedim(values, 0, dim);
    else if (!along) g.inverse = tensor_reshape(g.inverse, dim != TENSOR_ALL ? SHAPE(1) : shape_of(x));
    return op_set_result(c, 0, values) || op_set_result(c, 1, g.inverse) ? -1 : op_set_result(c, 2, g.count);
}

/* ---- the ops --------------------------------------------------------------------------------- */

/* Values, inverse, counts. */
static int compose(OpCall *c, int dim, bool sorted)
{
    Tensor *x = op_input(c, 0);
    Slices s = { 0 };
    if (call_dim_or_all(c, &dim, shape_of(x))) return -1;
    if (!on_host(x->place)) return compose_there(c, dim, sorted);
    Tensor *slices = read_slices(c, dim, &s), *order = slices && sorted ? ordered(&s, slices) : NULL;
    Tensor *first = list_of(s.n), *count = list_of(s.n), *inverse = list_of(s.n);
    if (!slices || (sorted && !order) || !first || !count || !inverse) return -1;
    const int64_t groups =
        group_slices(&s, order ? order->data : NULL, first->data, count->data, inverse->data);
    Tensor *values =
        groups == s.n && !sorted ? tensor_clone(slices) : tensor_index_select(slices, 0, part(first, groups));
    if (dim != TENSOR_ALL && x->ndim) values = values ? tensor_movedim(values, 0, dim) : NULL;
    else inverse = tensor_reshape(inverse, dim != TENSOR_ALL ? SHAPE(1) : shape_of(x));
    if (op_set_result(c, 0, values) || op_set_result(c, 1, inverse)) return -1;
    return op_set_result(c, 2, part(count, groups));
}

static int unique_compose(OpCall *c)
{
    return compose(c, ((const TensorUniqueArgs *)op_params(c))->dim, true);
}

static int consecutive_compose(OpCall *c)
{
    return compose(c, ((const TensorUniqueConsecutiveArgs *)op_params(c))->dim, false);
}

static const OpField unique_fields[] = { OP_OPTION(TensorUniqueArgs, sorted, dim), { 0 } };
static const OpField consecutive_fields[] = { OP_OPTION(TensorUniqueConsecutiveArgs, dim), { 0 } };
#define UNIQUE                                                                                           \
    .arity = 1, .outputs = 3, .flags = OP_ANY_DEVICE | OP_NONDIFFERENTIABLE,                             \
    .samples = "6@i64:0..3; 2x3@i64:0..2; 5; ; 0; 2x0; 4x2@i64:0..1 {dim=0}; 2x5@u8:0..1 {dim=-1}; 0x3 " \
               "{dim=0}; 2x3x2@bool {dim=1}; {dim=0}",                                                   \
    .errors = "3 {dim=1} ! EINDEX; 3x0 {dim=0} ! ESHAPE"
static const TensorOp op_unique = {
    .name = "unique",
    .autocast = AUTOCAST_AS_IS,
    .summary = "the different elements (or slices of dim) in order, of which each element is, and how many",
    PARAMS(TensorUniqueArgs, tensor_unique_defaults, unique_fields),
    .compose = unique_compose,
    UNIQUE
};
static const TensorOp op_unique_consecutive = {
    .name = "unique_consecutive",
    .autocast = AUTOCAST_AS_IS,
    .summary = "unique where only neighbours are compared",
    PARAMS(TensorUniqueConsecutiveArgs, tensor_unique_consecutive_defaults, consecutive_fields),
    .compose = consecutive_compose,
    UNIQUE
};
REGISTER_OPS(&op_unique, &op_unique_consecutive);

static Tensor *apply(const TensorOp *op, Tensor *x, const void *params, Tensor **inverse, Tensor **counts,
                     const void *site)
{
    Tensor *y[3] = { NULL };
    op_apply(op, &x, 1, params, site, y, 3);
    if (inverse) *inverse = y[1];
    if (counts) *counts = y[2];
    return y[0];
}

Tensor *tensor_unique_args(TensorUniqueArgs a)
{
    return apply(&op_unique, a.input, &a, a.return_inverse, a.return_counts, SITE);
}

Tensor *tensor_unique_consecutive_args(TensorUniqueConsecutiveArgs a)
{
    return apply(&op_unique_consecutive, a.input, &a, a.return_inverse, a.return_counts, SITE);
}
