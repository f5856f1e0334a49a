/* unique.c - the different elements of a tensor, or slices of a dim: in order (unique), or as they come
 * (unique_consecutive).
 *
 * Elements are compared as f64 or i64, slices element by element; NaN equals nothing, itself included, and
 * comes last.  The order is a list of positions, sorted stably; where neighbours in it differ a group begins,
 * whose first element stands for it. */
#include "op/shape/shape_op.h"

typedef struct UniqueParams {
    OpDims dim;
} UniqueParams;

typedef struct Slices {
    Tensor *x; /* dense: [n, width], x itself flattened or with dim in front */
    int64_t n, width;
    const double *f; /* the elements, as one or the other */
    const int64_t *i;
} Slices;

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same(const Slices *s, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < s->width; k++)
        if (s->f ? s->f[a * s->width + k] != s->f[b * s->width + k]
                 : s->i[a * s->width + k] != s->i[b * s->width + k])
            return false;
    return true;
}

static int order_f64(double a, double b) { return a < b ? -1 : a > b ? 1 : (a != a) - (b != b); }

static bool before(const Slices *s, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < s->width; k++) {
        int64_t i = a * s->width + k, j = b * s->width + k;
        int order = s->f ? order_f64(s->f[i], s->f[j]) : (s->i[i] > s->i[j]) - (s->i[i] < s->i[j]);
        if (order) return order < 0;
    }
    return false;
}

/* Runs of 1, 2, 4, ... merged from one list into the other; returns the one that holds the end. */
static int64_t *sort_slices(const Slices *s, int64_t *from, int64_t *to)
{
    for (int64_t run = 1; run < s->n; run *= 2) {
        for (int64_t start = 0; start < s->n; start += 2 * run) {
            int64_t middle = start + run < s->n ? start + run : s->n,
                    end = middle + run < s->n ? middle + run : s->n;
            for (int64_t i = start, j = middle, k = start; k < end; k++) {
                bool second = i == middle || (j < end && before(s, from[j], from[i]));
                to[k] = second ? from[j++] : from[i++];
            }
        }
        int64_t *t = from;
        from = to, to = t;
    }
    return from;
}

/* ---- the op ---------------------------------------------------------------------------------- */

static int read_slices(OpCall *c, Slices *s)
{
    UniqueParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0);
    if (p->dim.n > 1) return op_fail(c, TENSOR_EVALUE, "%d dims: want one, or none", p->dim.n);
    int dim = p->dim.n ? call_dim(c, p->dim.at[0], shape_of(x)) : 0;
    if (dim < 0) return -1;
    p->dim.at[0] = dim;
    s->n = p->dim.n && x->ndim ? x->shape[dim] : x->numel;
    if (s->n && x->numel == 0)
        return op_fail(c, TENSOR_ESHAPE, "dimension %d of %s: its slices are empty", dim, S(x));
    s->width = s->n ? x->numel / s->n : 0;
    s->x = p->dim.n && x->ndim ? tensor_contiguous(tensor_movedim(x, dim, 0))
                               : tensor_reshape(x, SHAPE(x->numel));
    Tensor *values = s->x ? host_copy(s->x, dtype_is_float(x->dtype) ? TENSOR_F64 : TENSOR_I64) : NULL;
    if (!values) return -1;
    s->f = values->dtype == TENSOR_F64 ? values->data : NULL, s->i = s->f ? NULL : values->data;
    return 0;
}

static Tensor *list_of(int64_t n) { return own(new_tensor(SHAPE(n), TENSOR_I64, &cpu_place)); }

/* The positions in order: for single elements by argsort, which is faster. */
static Tensor *ordered(const Slices *s, bool sorted)
{
    if (sorted && s->width == 1) {
        Tensor *order = tensor_argsort(tensor_reshape(s->x, SHAPE(s->n)));
        return order ? host_copy(order, TENSOR_I64) : NULL;
    }
    Tensor *list = list_of(s->n), *spare = sorted ? list_of(s->n) : list;
    if (!list || !spare) return NULL;
    for (int64_t i = 0; i < s->n; i++) ((int64_t *)list->data)[i] = i;
    if (!sorted) return list;
    return sort_slices(s, list->data, spare->data) == list->data ? list : spare;
}

/* Groups of equal neighbours in order: who stands for each, how many it has, and which is every slice's. */
static int64_t group(const Slices *s, const int64_t *order, int64_t *first, int64_t *count, int64_t *inverse)
{
    int64_t groups = 0;
    for (int64_t i = 0; i < s->n; i++) {
        bool begins = i == 0 || !same(s, order[i - 1], order[i]);
        if (begins) first[groups] = order[i], count[groups++] = 0;
        inverse[order[i]] = groups - 1;
        count[groups - 1]++;
    }
    return groups;
}

static Tensor *part(Tensor *list, int64_t n, const Place *place)
{
    return carried(tensor_clone(tensor_narrow(list, 0, 0, n)), place);
}

static int compose(OpCall *c, bool sorted)
{
    const UniqueParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    Slices s = { 0 };
    if (read_slices(c, &s)) return -1;
    Tensor *order = ordered(&s, sorted), *first = list_of(s.n), *count = list_of(s.n),
           *inverse = list_of(s.n);
    if (!order || !first || !count || !inverse) return -1;
    int64_t groups = group(&s, order->data, first->data, count->data, inverse->data);
    Tensor *values = tensor_index_select(s.x, 0, part(first, groups, x->place));
    bool along = p->dim.n && x->ndim;
    if (along && values) values = tensor_movedim(values, 0, (int)p->dim.at[0]);
    inverse = carried(inverse, x->place);
    if (!along && inverse) inverse = tensor_reshape(inverse, p->dim.n ? SHAPE(1) : shape_of(x));
    return op_set_result(c, 0, values) || op_set_result(c, 1, inverse) ||
                   op_set_result(c, 2, part(count, groups, x->place))
               ? -1
               : 0;
}

static int unique_compose(OpCall *c) { return compose(c, true); }
static int consecutive_compose(OpCall *c) { return compose(c, false); }

static const OpField fields[] = { OP_FIELD(OP_DIMS, UniqueParams, dim, "[]"), { 0 } };
#define UNIQUE                                                                                               \
    .arity = 1, .outputs = 3, .params = sizeof(UniqueParams), .fields = fields,                              \
    .flags = OP_NONDIFFERENTIABLE,                                                                           \
    .samples = "6@i64:0..3; 2x3@i64:0..2; 5; ; 0; 2x0; 4x2@i64:0..1 {dim=[0]}; 2x5@u8:0..1 {dim=[-1]}; 0x3 " \
               "{dim=[0]}; 2x3x2@bool {dim=[1]}",                                                            \
    .errors = "3 {dim=[1]} ! EINDEX; 3x0 {dim=[0]} ! ESHAPE; 3x3 {dim=[0 1]} ! EVALUE"
static const TensorOp op_unique = {
    .name = "unique",
    .summary = "the different elements (or slices of dim) in order, of which each element is, and how many",
    .compose = unique_compose,
    UNIQUE
};
static const TensorOp op_unique_consecutive = { .name = "unique_consecutive",
                                                .summary = "unique where only neighbours are compared",
                                                .compose = consecutive_compose,
                                                UNIQUE };
REGISTER_OP(op_unique);
REGISTER_OP(op_unique_consecutive);

static Tensor *run(const TensorOp *op, Tensor *x, Tensor **inverse, Tensor **counts, int dim,
                   const void *site)
{
    UniqueParams p = { .dim = { .n = dim != TENSOR_ALL, .at = { dim } } };
    Tensor *y[3] = { NULL };
    if (inverse) *inverse = NULL;
    if (counts) *counts = NULL;
    if (op_apply(op, &x, 1, &p, site, y, 3) < 0) return NULL;
    if (inverse) *inverse = y[1];
    if (counts) *counts = y[2];
    return y[0];
}

Tensor *tensor_unique_args(TensorUniqueArgs args)
{
    return run(&op_unique, args.input, args.return_inverse, args.return_counts, args.dim, SITE);
}

Tensor *tensor_unique_consecutive_args(TensorUniqueConsecutiveArgs args)
{
    return run(&op_unique_consecutive, args.input, args.return_inverse, args.return_counts, args.dim, SITE);
}
