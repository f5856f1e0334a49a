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

/* x as slices, which point into its copy on the host; returns x as [n, ...], or NULL. */
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
    Tensor *values = slices ? host_copy(slices, dtype_is_float(x->dtype) ? TENSOR_F64 : TENSOR_I64) : NULL;
    if (!values) return NULL;
    s->f = values->dtype == TENSOR_F64 ? values->data : NULL, s->i = s->f ? NULL : values->data;
    return slices;
}

static Tensor *list_of(int64_t n) { return own(new_tensor(SHAPE(n), TENSOR_I64, &cpu_place)); }

/* The positions in order: for single elements by argsort, which is faster. */
static Tensor *ordered(const Slices *s, Tensor *slices)
{
    if (s->width == 1) {
        Tensor *order = tensor_argsort(tensor_reshape(slices, SHAPE(s->n)));
        return order ? host_copy(order, TENSOR_I64) : NULL;
    }
    Tensor *list = list_of(s->n), *spare = list_of(s->n);
    if (!list || !spare) return NULL;
    count_up(list->data, s->n);
    return sort_slices(s, list->data, spare->data) == list->data ? list : spare;
}

static Tensor *part(Tensor *list, int64_t n, const Place *place)
{
    return carried(n == list->numel ? list : tensor_clone(tensor_narrow(list, 0, 0, n)), place);
}

/* Values, inverse, counts. */
static int compose(OpCall *c, int dim, bool sorted)
{
    Tensor *x = op_input(c, 0);
    Slices s = { 0 };
    if (call_dim_or_all(c, &dim, shape_of(x))) return -1;
    Tensor *slices = read_slices(c, dim, &s), *order = slices && sorted ? ordered(&s, slices) : NULL;
    Tensor *first = list_of(s.n), *count = list_of(s.n), *inverse = list_of(s.n);
    if (!slices || (sorted && !order) || !first || !count || !inverse) return -1;
    const int64_t groups =
        group_slices(&s, order ? order->data : NULL, first->data, count->data, inverse->data);
    Tensor *values = groups == s.n && !sorted ? tensor_clone(slices)
                                              : tensor_index_select(slices, 0, part(first, groups, x->place));
    if (dim != TENSOR_ALL && x->ndim) {
        if (values) values = tensor_movedim(values, 0, dim);
        inverse = carried(inverse, x->place);
    } else {
        inverse = carried(inverse, x->place);
        if (inverse) inverse = tensor_reshape(inverse, dim != TENSOR_ALL ? SHAPE(1) : shape_of(x));
    }
    if (op_set_result(c, 0, values) || op_set_result(c, 1, inverse)) return -1;
    return op_set_result(c, 2, part(count, groups, x->place));
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
