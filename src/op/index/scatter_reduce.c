/* scatter_reduce.c - elements of a source reduced into those of x that an index names along dim.
 *
 *   y_a = reduce(x_a, all src_j with index_j naming a)       sum, prod, mean, amax or amin; x_a may be left
 * out
 *
 *   sum    dx = dy                         dsrc_j = dy_a
 *   mean   dx = dy / n                     dsrc_j = dy_a / n_a            n: how many were reduced, at least
 * 1 prod   dx = dy (product of the others) dsrc_j = dy_a (product of the others), without dividing by a zero
 *   amax   dx, dsrc_j = dy_a / (number of those equal to y_a) where they are equal, else 0; amin too
 *
 * Where x is left out, its elements that are named get no gradient.  Computed in f64, or i64: rounded once.
 * With the positions in x as a list, all is one dimension.  index_reduce: whole slices. */
#include "op/shape/shape_op.h"

typedef enum Reduce { SUM, PROD, MEAN, AMAX, AMIN, REDUCES } Reduce;
typedef struct ReduceParams {
    int dim, reduce;
    bool include_self;
} ReduceParams;

/* ---- forward --------------------------------------------------------------------------------- */

static int shape(OpCall *c)
{
    ReduceParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *src = op_input(c, 2);
    if (call_index_dtype(c, index)) return -1;
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0) return -1;
    if (p->reduce < 0 || p->reduce >= REDUCES)
        return op_fail(c, TENSOR_EVALUE, "no such reduction: %d", p->reduce);
    bool fits = index->numel == 0 || (x->ndim == index->ndim && src->ndim == index->ndim);
    for (int d = 0; fits && index->numel && d < x->ndim; d++)
        fits = (d == p->dim || index->shape[d] <= x->shape[d]) && index->shape[d] <= src->shape[d];
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE,
                       "index %s for a source %s into %s: want one rank, and no larger size than theirs but "
                       "x's in dimension %d",
                       S(index), S(src), S(x), p->dim);
    if (src->dtype != x->dtype)
        return op_fail(c, TENSOR_EDTYPE, "a source of %s for %s: want the same",
                       tensor_dtype_name((TensorDtype)src->dtype), tensor_dtype_name((TensorDtype)x->dtype));
    return op_same_shape(c);
}

/* For each element of index, in order, the row-major position in x that it names; into index's own copy. */
static int positions(OpCall *c, int dim, const Tensor *x, Tensor *at)
{
    int64_t *v = at->data, stride[TENSOR_MAX_DIMS], n = x->ndim ? x->shape[dim] : 1;
    dense_strides(x->ndim, x->shape, stride);
    for (int64_t i = 0; i < at->numel; i++)
        if (v[i] < 0 || v[i] >= n) return fail_index(c, op_input(c, 1), i, v[i], n);
    for (int64_t i = 0; i < at->numel; i++) {
        int64_t rest = i, to = 0;
        for (int d = at->ndim - 1; d >= 0; rest /= at->shape[d], d--)
            to += (d == dim ? v[i] : rest % at->shape[d]) * stride[d];
        v[i] = to;
    }
    return 0;
}

static double reduce_f64(double a, double b, int how)
{
    switch (how) {
    case PROD: return a * b;
    case AMAX: return a != a || a > b ? a : b;
    case AMIN: return a != a || a < b ? a : b;
    default: return a + b;
    }
}

static int64_t reduce_i64(int64_t a, int64_t b, int how)
{
    switch (how) {
    case PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
    case AMAX: return a > b ? a : b;
    case AMIN: return a < b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static int64_t divide_down(int64_t a, int64_t n) { return a / n - (a % n != 0 && a < 0); }

/* y, which holds x, with src reduced into it; count says of each element how many it is of. */
static void reduce_into(const ReduceParams *p, Tensor *y, const int64_t *at, const Tensor *src,
                        int64_t *count)
{
    const bool floats = y->dtype == TENSOR_F64;
    double *yf = y->data;
    int64_t *yi = y->data;
    for (int64_t i = 0; i < y->numel; i++) count[i] = p->include_self;
    for (int64_t i = 0; i < src->numel; i++) {
        const int64_t k = at[i];
        const bool first = count[k]++ == 0;
        if (floats)
            yf[k] = first ? ((const double *)src->data)[i]
                          : reduce_f64(yf[k], ((const double *)src->data)[i], p->reduce);
        else
            yi[k] = first ? ((const int64_t *)src->data)[i]
                          : reduce_i64(yi[k], ((const int64_t *)src->data)[i], p->reduce);
    }
    for (int64_t i = 0; i < y->numel && p->reduce == MEAN; i++) {
        if (count[i] < 2) continue;
        if (floats) yf[i] /= (double)count[i];
        else yi[i] = divide_down(yi[i], count[i]);
    }
}

/* The part of src that index covers. */
static Tensor *covered(const Tensor *src, TensorShape index)
{
    return own(new_view(src, index.ndim, index.dim, src->stride, 0));
}

static int forward(OpCall *c)
{
    const ReduceParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *y = op_output(c, 0);
    if (index->numel == 0) return raw_copy(y, x);
    int wide = dtype_is_float(x->dtype) ? TENSOR_F64 : TENSOR_I64;
    Tensor *at = own(new_tensor(shape_of(index), TENSOR_I64, &cpu_place)),
           *count = own(new_tensor(shape_of(x), TENSOR_I64, &cpu_place));
    Tensor *part = covered(op_input(c, 2), shape_of(index)), *src = part ? own(raw_cast(part, wide)) : NULL,
           *to = own(new_tensor(shape_of(x), wide, &cpu_place));
    if (!at || !count || !src || !to || raw_copy(at, index) || raw_copy(to, x) || positions(c, p->dim, x, at))
        return -1;
    reduce_into(p, to, at->data, src, count->data);
    return raw_copy(y, to);
}

/* ---- backward -------------------------------------------------------------------------------- */

typedef struct Grad { /* what the formulas read and make */
    int dim;
    bool include;
    Tensor *x, *index, *src, *y, *g;
    Tensor *dx, *dsrc;
} Grad;

static Tensor *at_index(const Grad *b, Tensor *t) { return tensor_gather(t, b->dim, b->index); }
static Tensor *added(const Grad *b, Tensor *x, Tensor *src)
{
    return tensor_scatter_add(x, b->dim, b->index, src);
}
static Tensor *as(Tensor *mask, const Tensor *like) { return tensor_to(mask, (TensorDtype)like->dtype); }

static Tensor *filled(TensorShape shape, double value, const Tensor *like)
{
    Tensor *t = own(new_tensor(shape, like->dtype, like->place));
    return t && !raw_fill(t, value) ? t : NULL;
}

static void mean_grad(Grad *b)
{
    Tensor *n = added(b, filled(shape_of(b->g), b->include, b->g), filled(shape_of(b->index), 1, b->g));
    Tensor *share = tensor_div(b->g, tensor_clamp(n, 1, (double)INFINITY));
    b->dx = share, b->dsrc = at_index(b, share);
}

/* An element of x that is named and not included is no winner. */
static void extreme_grad(Grad *b)
{
    Tensor *mine = as(tensor_eq(b->x, b->y), b->g), *theirs = as(tensor_eq(b->src, at_index(b, b->y)), b->g);
    if (!b->include) mine = tensor_scatter_value(mine, b->dim, b->index, 0);
    Tensor *share = tensor_div(b->g, added(b, mine, theirs));
    b->dx = tensor_mul(mine, share), b->dsrc = tensor_mul(theirs, at_index(b, share));
}

static Tensor *product(const Grad *b, Tensor *x, Tensor *src)
{
    return tensor_scatter_reduce(x, b->dim, b->index, src, "prod", .include_self = b->include);
}

/* Products of the others: where an element is 0, the product made with 1 in its place; of several zeros in
 * one product all others see a 0.  That is constant in the zeros, so it has no derivative of its own: refused
 * by the caller. */
static void product_grad(Grad *b, Tensor *zero, Tensor *zeros)
{
    Tensor *one_for_zero = tensor_masked_fill(b->x, tensor_eq_scalar(b->x, 0), 1);
    b->dx = tensor_div(tensor_mul(b->g, product(b, one_for_zero, b->src)), one_for_zero);
    Tensor *only = tensor_logical_and(zero, tensor_eq_scalar(at_index(b, zeros), 1));
    Tensor *others = at_index(b, tensor_mul(b->g, product(b, b->x, tensor_masked_fill(b->src, only, 1))));
    Tensor *quotient = tensor_div(at_index(b, tensor_mul(b->g, b->y)), tensor_masked_fill(b->src, zero, 1));
    b->dsrc = tensor_where(only, others, quotient);
}

static int run_product_grad(OpCall *c, Grad *b)
{
    Tensor *zero = tensor_eq_scalar(b->src, 0),
           *zeros = added(b, filled(shape_of(b->g), 0, b->g), as(zero, b->g));
    if (!zeros) return -1;
    if (op_recording(c) && zeros->numel && tensor_item(tensor_max(zeros)) > 1)
        return op_fail(c, TENSOR_EGRAD,
                       "the gradient's gradient of a product %s with several zeros of the source %s", S(b->y),
                       S(b->src));
    product_grad(b, zero, zeros);
    return 0;
}

static int run_grad(OpCall *c, Grad *b, int how)
{
    switch (how) {
    case SUM: b->dx = b->g, b->dsrc = at_index(b, b->g); return 0;
    case MEAN: mean_grad(b); return 0;
    case PROD: return run_product_grad(c, b);
    default: extreme_grad(b); return 0;
    }
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const ReduceParams *p = op_params(c);
    TensorShape index = op_input_shape(c, 1), source = op_input_shape(c, 2);
    if (shape_count(index) == 0) {
        dx[0] = dy;
        dx[2] = op_wants(c, 2) ? zeros_on(source, dy->dtype, dy->place) : NULL;
        return op_wants(c, 2) && !dx[2] ? -1 : 0;
    }
    Grad b = { .dim = p->dim,
               .include = p->include_self,
               .x = op_saved(c, 0),
               .index = op_saved(c, 1),
               .src = op_saved(c, 2),
               .y = op_saved_output(c, 0),
               .g = dy };
    for (int d = 0; b.src && d < index.ndim; d++)
        if (index.dim[d] != source.dim[d]) b.src = tensor_narrow(b.src, d, 0, index.dim[d]);
    if (!b.x || !b.index || !b.src || !b.y || run_grad(c, &b, p->reduce)) return -1;
    if (!p->include_self) b.dx = tensor_scatter_value(b.dx, p->dim, b.index, 0);
    for (int d = 0; b.dsrc && d < index.ndim; d++)
        if (index.dim[d] != source.dim[d]) b.dsrc = embed_part(b.dsrc, d, 0, source.dim[d]);
    dx[0] = b.dx, dx[2] = b.dsrc;
    return b.dx && b.dsrc ? 0 : -1;
}

/* ---- scatter_reduce -------------------------------------------------------------------------- */

static const OpField fields[] = { OP_FIELD(OP_INT, ReduceParams, dim, NULL),
                                  OP_FIELD(OP_INT, ReduceParams, reduce, NULL),
                                  OP_FIELD(OP_BOOL, ReduceParams, include_self, "1"),
                                  { 0 } };
static const TensorOp op_scatter_reduce = {
    .name = "scatter_reduce",
    .summary = "x with elements of src reduced into those that an index names along dim",
    .arity = 3,
    .gradient = "sum: dx = dy, dsrc = dy at the index; mean: over the count; prod: times the others; amax, "
                "amin: shared evenly by ties",
    .keep = KEEP_INPUT(0) | KEEP_INPUT(1) | KEEP_INPUT(2) | KEEP_OUTPUT(0),
    .no_grad_inputs = KEEP_INPUT(1),
    .params = sizeof(ReduceParams),
    .fields = fields,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .samples = "3x4,3x2@i64:0..3,3x2 {dim=1 reduce=0}; 3x4,2x3@i64:0..2,4x5 {dim=0 reduce=1}; "
               "5,7@i64:0..4,7:0.2..1 {dim=-1 reduce=1 include_self=0}; "
               "3x4,3x5@i64:0..3,3x5 {dim=1 reduce=2}; 4,6@i64:0..2,6 {dim=0 reduce=2 include_self=0}; "
               "3x4,2x3@i64:0..2,4x5 {dim=0 reduce=3}; "
               "2x5,2x7@i64:0..4,2x7 {dim=1 reduce=4 include_self=0}; 5,7@i64:0..4,7 {dim=0 reduce=3 "
               "include_self=0}; ,@i64:0..0, {dim=0 reduce=2}; "
               "3,0@i64:0..0,3 {dim=0 reduce=1}; 3@i64,4@i64:0..2,4@i64:-5..5 {dim=0 reduce=2}",
    .errors = "3x4,3x2@i64:4..9,3x2 {dim=1 reduce=0} ! EINDEX; 3x4,3x2@i64:0..3,3x1 {dim=1 reduce=0} ! "
              "ESHAPE; 3x4,3x2@i64:0..3,3x2@i64:0..3 {dim=1 reduce=0} ! EDTYPE; "
              "3x4,3x2,3x2 {dim=1 reduce=0} ! EDTYPE; 3x4,3x2@i64:0..3,3x2 {dim=1 reduce=5} ! EVALUE"
};
REGISTER_OP(op_scatter_reduce);

/* ---- index_reduce ---------------------------------------------------------------------------- */

static int index_compose(OpCall *c)
{
    ReduceParams p = *(const ReduceParams *)op_params(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *src = op_input(c, 2);
    int64_t line[TENSOR_MAX_DIMS];
    if (index->ndim > 1) return op_fail(c, TENSOR_ESHAPE, "index %s: want a list, one dimension", S(index));
    p.dim = call_dim(c, p.dim, shape_of(x));
    if (p.dim < 0) return -1;
    if (p.reduce == SUM) return op_fail(c, TENSOR_EVALUE, "by a sum: that is index_add");
    bool fits = src->ndim == x->ndim && index->numel == (src->ndim ? src->shape[p.dim] : 1);
    for (int d = 0; fits && d < x->ndim; d++) fits = d == p.dim || src->shape[d] == x->shape[d];
    if (!fits)
        return op_fail(
            c, TENSOR_ESHAPE,
            "index %s and source %s for %s: want x's sizes, and as many slices as indices in dimension %d",
            S(index), S(src), S(x), p.dim);
    for (int d = 0; d < x->ndim; d++) line[d] = d == p.dim ? index->numel : 1;
    Tensor *wide = tensor_expand(tensor_reshape(index, (TensorShape){ x->ndim, line }), shape_of(src));
    return op_set_result(c, 0,
                         wide ? tensor_apply(&op_scatter_reduce, (Tensor *[]){ x, wide, src }, 3, &p) : NULL);
}

static const TensorOp op_index_reduce = {
    .name = "index_reduce",
    .summary = "x with slices of a source reduced into those that a list of indices names",
    .arity = 3,
    .gradient = "mean: dx = dy / count, dsource = that at the index; prod: dy times the others; amax, amin: "
                "shared evenly by ties",
    .no_grad_inputs = KEEP_INPUT(1),
    .params = sizeof(ReduceParams),
    .fields = fields,
    .compose = index_compose,
    .samples = "5x3,4@i64:0..4,4x3 {dim=0 reduce=1}; 2x3x4,6@i64:0..2,2x6x4 {dim=1 reduce=2}; 5,3@i64:0..4,3 "
               "{dim=-1 reduce=3 include_self=0}; "
               ",1@i64:0..0, {dim=0 reduce=4}; 3x2,0@i64:0..0,0x2 {dim=0 reduce=2}",
    .errors = "5x3,2@i64:5..9,2x3 {dim=0 reduce=1} ! EINDEX; 5x3,2@i64:0..4,3x3 {dim=0 reduce=1} ! ESHAPE; "
              "5x3,2@i64:0..4,2x3 {dim=0 reduce=0} ! EVALUE; "
              "5,2,2 {dim=0 reduce=1} ! EDTYPE"
};
REGISTER_OP(op_index_reduce);

/* ---- public ---------------------------------------------------------------------------------- */

static int reduce_of(const char *op, const char *name, const void *site)
{
    static const char *const names[REDUCES] = { "sum", "prod", "mean", "amax", "amin" };
    for (int i = 0; name && i < REDUCES; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return fail_site(TENSOR_EVALUE, op, site, "reduce \"%s\": want sum, prod, mean, amax or amin",
                     name ? name : "(NULL)");
}

static Tensor *run(const TensorOp *op, const TensorReduceIntoArgs *a, bool inplace, const void *site)
{
    ReduceParams p = { a->dim, reduce_of(op->name, a->reduce, site), a->include_self };
    Tensor *in[] = { a->input, a->index, a->src };
    if (p.reduce < 0) return NULL;
    return inplace ? op_apply_(op, in, 3, &p, site) : op_apply1(op, in, 3, &p, site);
}

Tensor *tensor_scatter_reduce_args(TensorReduceIntoArgs args)
{
    return run(&op_scatter_reduce, &args, false, SITE);
}
Tensor *tensor_scatter_reduce_args_(TensorReduceIntoArgs args)
{
    return run(&op_scatter_reduce, &args, true, SITE);
}
Tensor *tensor_index_reduce_args(TensorReduceIntoArgs args)
{
    return run(&op_index_reduce, &args, false, SITE);
}
Tensor *tensor_index_reduce_args_(TensorReduceIntoArgs args)
{
    return run(&op_index_reduce, &args, true, SITE);
}
