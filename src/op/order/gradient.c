/* gradient.c - slopes along dims, from neighbours: made of slices.
 *
 *   inside   y_i = (a^2 x_(i+1) + (b^2 - a^2) x_i - b^2 x_(i-1)) / (a b (a + b)),  a and b the distances to
 *            the element before and behind
 *   edges    edge_order 1: the slope of the last two elements; 2: that of the parabola through the last three
 *
 * With r the slopes between neighbours, the inside is (a r_i + b r_(i-1)) / (a + b) = r_(i-1) + a (r_i -
 * r_(i-1)) / (a + b), and an edge of order 2 is r - d (r' - r) / (d + d'), d the distance next to the edge
 * and r', d' those behind it. */
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"

const TensorGradientArgs tensor_gradient_defaults = { TENSOR_GRADIENT_DEFAULTS };

typedef struct SlopeParams { /* of one dim */
    int dim;
    double spacing;
    int edge_order;
} SlopeParams;

static int shape(OpCall *c)
{
    SlopeParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0), *at = op_input(c, 1);
    if (p->edge_order != 1 && p->edge_order != 2)
        return op_fail(c, TENSOR_EVALUE, "edge_order = %d: want 1 or 2", p->edge_order);
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0) return -1;
    const int64_t n = x->ndim ? x->shape[p->dim] : 1;
    if (n <= p->edge_order)
        return op_fail(c, TENSOR_ESHAPE, "%s: want at least %d elements along dim %d", S(x),
                       p->edge_order + 1, p->dim);
    if (at && (at->ndim != 1 || at->shape[0] != n))
        return op_fail(c, TENSOR_ESHAPE, "coordinates %s for %s: want %lld of them along dim %d", S(at), S(x),
                       (long long)n, p->dim);
    if (at && p->spacing != 1) return op_fail(c, TENSOR_EVALUE, "both a spacing and coordinates: want one");
    return 0;
}

static Tensor *part(Tensor *t, int dim, int64_t start, int64_t length)
{
    return tensor_narrow(t, dim, start, length);
}

static Tensor *differences(Tensor *x, int dim)
{
    const int64_t n = x->shape[dim];
    return tensor_sub(part(x, dim, 1, n - 1), part(x, dim, 0, n - 1));
}

/* The distances of neighbours, of x's rank; NULL where they are all the same. */
static Tensor *distances(const Tensor *x, Tensor *at, int dim)
{
    int64_t size[TENSOR_MAX_DIMS];
    if (!at) return NULL;
    for (int d = 0; d < x->ndim; d++) size[d] = d == dim ? at->numel - 1 : 1;
    return tensor_reshape(differences(at, 0), (TensorShape){ x->ndim, size });
}

/* t d / (d + e); d and e are steps from `from` and `other` on. */
static Tensor *weighted(Tensor *t, Tensor *step, int dim, int64_t from, int64_t other, int64_t length)
{
    if (!step) return tensor_mul_scalar(t, .5);
    Tensor *d = part(step, dim, from, length), *e = part(step, dim, other, length);
    return tensor_mul(t, tensor_div(d, tensor_add(d, e)));
}

static Tensor *inside(Tensor *x, Tensor *slope, Tensor *step, const SlopeParams *p)
{
    const int64_t n = x->shape[p->dim];
    if (!step) {
        Tensor *across = tensor_sub(part(x, p->dim, 2, n - 2), part(x, p->dim, 0, n - 2));
        return tensor_div_scalar(across, 2 * p->spacing);
    }
    Tensor *before = part(slope, p->dim, 0, n - 2), *behind = part(slope, p->dim, 1, n - 2);
    return tensor_add(before, weighted(tensor_sub(behind, before), step, p->dim, 0, 1, n - 2));
}

/* at: which slope is next to the edge; next: the one behind it. */
static Tensor *edge(Tensor *slope, Tensor *step, const SlopeParams *p, int64_t at, int64_t next)
{
    Tensor *r = part(slope, p->dim, at, 1);
    if (p->edge_order == 1) return r;
    Tensor *bend = tensor_sub(part(slope, p->dim, next, 1), r);
    return tensor_sub(r, weighted(bend, step, p->dim, at, next, 1));
}

static int compose(OpCall *c)
{
    const SlopeParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *at = op_input(c, 1), *step = distances(x, at, p->dim);
    if (at && !step) return -1;
    Tensor *slope = differences(x, p->dim);
    slope = step ? tensor_div(slope, step) : tensor_div_scalar(slope, p->spacing);
    if (!slope) return -1;
    const int64_t last = x->shape[p->dim] - 2;
    Tensor *parts[3] = { edge(slope, step, p, 0, 1), NULL, edge(slope, step, p, last, last - 1) };
    if (last == 0) parts[1] = parts[2];
    else parts[1] = inside(x, slope, step, p);
    if (!parts[0] || !parts[1] || !parts[2]) return -1;
    return op_set_result(c, 0, tensor_cat(TENSOR_LIST(parts, last ? 3 : 2), p->dim));
}

static const OpField fields[] = { OP_REQUIRED(SlopeParams, dim),
                                  OP_OPTION(SlopeParams, spacing, edge_order),
                                  { 0 } };
static const SlopeParams defaults = { .dim = TENSOR_ALL, .spacing = 1, .edge_order = 1 };

static const TensorOp op_gradient = {
    .name = "gradient",
    .autocast = AUTOCAST_AS_IS,
    .summary = "slopes along a dim, from neighbours that are spacing apart or at coordinates",
    .gradient = "dx_i = sum over the slopes that read x_i of their weights times g; coordinates likewise",
    .arity = 2,
    .optional = KEEP_INPUT(1),
    PARAMS(SlopeParams, defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_SAME_DTYPE | OP_ROUND_ONCE,
    .samples = "5,- {dim=0}; 3x4,- {dim=1 spacing=.5}; 2x4x3,- {dim=-2 edge_order=2}; 2,- {dim=0}; 3x2,- "
               "{dim=1 spacing=2}; 2x3,3:1..2 {dim=1}; 0x3,- {dim=1}",
    .errors = "5,- {dim=1} ! EINDEX; 1,- {dim=0} ! ESHAPE; 2,- {dim=0 edge_order=2} ! ESHAPE; "
              "5,4 {dim=0} ! ESHAPE; 5,5x1 {dim=0} ! ESHAPE; 5,- {dim=0 edge_order=3} ! EVALUE; 5,5 {dim=0 "
              "spacing=2} ! EVALUE; ,- {dim=0} ! ESHAPE; 5@i64,- {dim=0} ! EDTYPE"
};
REGISTER_OPS(&op_gradient);

/* ---- all dims -------------------------------------------------------------------------------- */

static int list_dims(const char *op, const TensorGradientArgs *a, int *dim)
{
    const Tensor *x = a->input;
    const int n = a->dim != TENSOR_ALL ? 1 : a->dims.ndim ? a->dims.ndim : x->ndim;
    if (a->dim != TENSOR_ALL && a->dims.ndim)
        return fail(TENSOR_EVALUE, op, "%s: both .dim and .dims are given", S(x));
    if (n > TENSOR_MAX_DIMS) return fail(TENSOR_EVALUE, op, "%d dims: at most %d", n, TENSOR_MAX_DIMS);
    for (int i = 0; i < n; i++) {
        const int64_t d = a->dim != TENSOR_ALL ? a->dim : a->dims.ndim ? a->dims.dim[i] : i;
        if ((dim[i] = find_dim(op, x, d)) < 0) return -1;
        for (int k = 0; k < i; k++)
            if (dim[k] == dim[i]) return fail(TENSOR_EVALUE, op, "%s: dim %d is given twice", S(x), dim[i]);
    }
    return n;
}

/* Integers in f64, which holds their differences, then f32. */
static Tensor *slope_of(const TensorGradientArgs *a, Tensor *at, const SlopeParams *p, const void *site)
{
    Tensor *x = a->input;
    if (dtype_is_float(x->dtype)) return op_apply1(&op_gradient, (Tensor *[]){ x, at }, 2, p, site);
    Tensor *wide[2] = { tensor_to(x, TENSOR_F64), at ? tensor_to(at, TENSOR_F64) : NULL };
    Tensor *y = !wide[0] || (at && !wide[1]) ? NULL : op_apply1(&op_gradient, wide, 2, p, site);
    return y ? tensor_to(y, TENSOR_F32) : NULL;
}

static int slopes(const TensorGradientArgs *a, const int *dim, int n, const void *site)
{
    for (int i = 0; i < n; i++) {
        const SlopeParams p = { dim[i], a->spacings ? a->spacings[i] : a->spacing, a->edge_order };
        a->results[i] = slope_of(a, a->coordinates.count ? a->coordinates.item[i] : NULL, &p, site);
        if (!a->results[i]) return -1;
    }
    return n;
}

int tensor_gradient_args(TensorGradientArgs a)
{
    static const char op[] = "tensor_gradient";
    int dim[TENSOR_MAX_DIMS];
    if (TENSOR_CHECK_OPTIONS(op, a, tensor_gradient_defaults) || check_null(a.input, op, 1)) return -1;
    if (!a.results) return fail(TENSOR_ENULL, op, "the array for the results is NULL");
    if (a.input->dtype == TENSOR_U8 || a.input->dtype == TENSOR_BOOL)
        return fail(TENSOR_EDTYPE, op, "%s is %s: want numbers with a sign", S(a.input),
                    tensor_dtype_name((TensorDtype)a.input->dtype));
    const int n = list_dims(op, &a, dim), given = a.coordinates.count;
    if (n < 0) return -1;
    parts_or_none(-1, a.results, n); /* until they are there */
    if (given && (given != n || !a.coordinates.item))
        return fail(TENSOR_EVALUE, op, "%d coordinates for %d dims: want one vector each", given, n);
    if ((given != 0) + (a.spacings != NULL) + (a.spacing != 1) > 1)
        return fail(TENSOR_EVALUE, op, "spacing, spacings, coordinates: want one of them");
    return parts_or_none(slopes(&a, dim, n, SITE), a.results, n);
}
