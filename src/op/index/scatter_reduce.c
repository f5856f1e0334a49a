/* scatter_reduce.c - elements of a source reduced into those of x that an index names along dim.
 *
 *   y_a = reduce(x_a, all src_j with index_j naming a)     sum, prod, mean, amax or amin; x_a may be left out
 *
 *   sum    dx = dy                         dsrc_j = dy_a
 *   mean   dx = dy / n                     dsrc_j = dy_a / n_a     n: how many were reduced, at least 1
 *   prod   dx = dy (product of the others) dsrc_j = dy_a (product of the others), without dividing by a zero
 *   amax   dx, dsrc_j = dy_a / (number of those equal to y_a) where they are equal, else 0; amin too
 *
 * If x takes no part, its reduced elements get no gradient.  Computed in f64, or i64: rounded once; extremes,
 * which are exact, of f32 on the host in f32.  index_reduce does the same with whole slices. */
#include "index_plan.h"

const TensorReduceIntoArgs tensor_reduce_into_defaults = { TENSOR_REDUCE_INTO_DEFAULTS };

/* ---- forward --------------------------------------------------------------------------------- */

static int shape(OpCall *c)
{
    TensorReduceIntoArgs *p = op_params_mut(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *src = op_input(c, 2);
    if (call_index_dtype(c, index)) return -1;
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0) return -1;
    bool fits = index->numel == 0 || (x->ndim == index->ndim && src->ndim == index->ndim);
    for (int d = 0; fits && index->numel && d < x->ndim; d++)
        fits = (d == p->dim || index->shape[d] <= x->shape[d]) && index->shape[d] <= src->shape[d];
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE,
                       "index %s for a source %s into %s: want one rank, and no larger size than theirs but "
                       "x's in dimension %d",
                       S(index), S(src), S(x), p->dim);
    if (call_source_dtype(c, src, x)) return -1;
    return op_same_shape(c);
}

static int forward(OpCall *c)
{
    const TensorReduceIntoArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *y = op_output(c, 0);
    if (raw_copy(y, x)) return -1;
    if (index->numel == 0) return 0;
    const bool exact = p->reduce == TENSOR_INTO_AMAX || p->reduce == TENSOR_INTO_AMIN;
    const int wide = exact && on_host(x->place) && x->dtype == TENSOR_F32 ? TENSOR_F32
                     : dtype_is_float(x->dtype)                           ? TENSOR_F64
                                                                          : TENSOR_I64;
    const IndexPlan plan = index_plan(shape_of(x), index, p->dim);
    Tensor *region = index_within(y, index, p->dim), *part = index_within(op_input(c, 2), index, -1);
    Tensor *to = region ? own(raw_cast(region, wide)) : NULL, *src = part ? own(raw_cast(part, wide)) : NULL;
    if (!to || !src || run_scatter_fold(c, &plan, (FoldKind)p->reduce, p->include_self, src, index, to))
        return -1;
    return to == region ? 0 : raw_copy(region, to);
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
    return tensor_scatter_reduce(x, b->dim, b->index, src, TENSOR_INTO_PROD, .include_self = b->include);
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
    CheckArgs several = { .what = "the number of a product's zeros, for the gradient's gradient,",
                          .status = TENSOR_EGRAD,
                          .high = 1 };
    const int found = op_recording(c) ? call_check(c, zeros, &several) : 0;
    if (found == 1)
        return op_fail(c, TENSOR_EGRAD,
                       "the gradient's gradient of a product %s with several zeros of the source %s", S(b->y),
                       S(b->src));
    if (found || !zeros) return -1;
    product_grad(b, zero, zeros);
    return 0;
}

static int run_grad(OpCall *c, Grad *b, int how)
{
    switch (how) {
    case TENSOR_INTO_SUM: b->dx = b->g, b->dsrc = at_index(b, b->g); return 0;
    case TENSOR_INTO_MEAN: mean_grad(b); return 0;
    case TENSOR_INTO_PROD: return run_product_grad(c, b);
    default: extreme_grad(b); return 0;
    }
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorReduceIntoArgs *p = op_params(c);
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

static const char *const reductions[] = { "sum", "prod", "mean", "amax", "amin", NULL };
static const OpField fields[] = { OP_REQUIRED(TensorReduceIntoArgs, dim),
                                  { OP_OPTION_(TensorReduceIntoArgs, reduce), .required = true,
                                    .choices = reductions },
                                  OP_OPTION(TensorReduceIntoArgs, include_self),
                                  { 0 } };
static const TensorOp op_scatter_reduce = {
    .name = "scatter_reduce",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with elements of src reduced into those that an index names along dim",
    .arity = 3,
    .gradient = "sum: dx = dy, dsrc = dy at the index; mean: over the count; prod: times the others; amax, "
                "amin: shared evenly by ties",
    .keep = KEEP_INPUT(0) | KEEP_INPUT(1) | KEEP_INPUT(2) | KEEP_OUTPUT(0),
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorReduceIntoArgs, tensor_reduce_into_defaults, fields),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE,
    .samples = "3x4,3x2@i64:0..3,3x2 {dim=1 reduce=sum}; 3x4,2x3@i64:0..2,4x5 {dim=0 reduce=prod}; "
               "5,7@i64:0..4,7:0.2..1 {dim=-1 reduce=prod include_self=0}; 3x4,3x5@i64:0..3,3x5 {dim=1 "
               "reduce=mean}; 4,6@i64:0..2,6 {dim=0 reduce=mean include_self=0}; 3x4,2x3@i64:0..2,4x5 "
               "{dim=0 reduce=amax}; 2x5,2x7@i64:0..4,2x7 {dim=1 reduce=amin include_self=0}; "
               "5,7@i64:0..4,7 {dim=0 reduce=amax include_self=0}; ,@i64:0..0, {dim=0 reduce=mean}; "
               "3,0@i64:0..0,3 {dim=0 reduce=prod}; 3@i64,4@i64:0..2,4@i64:-5..5 {dim=0 reduce=mean}",
    .errors = "3x4,3x2@i64:4..9,3x2 {dim=1 reduce=sum} ! EINDEX; 3x4,3x2@i64:0..3,3x1 {dim=1 reduce=sum} ! "
              "ESHAPE; 3x4,3x2@i64:0..3,3x2@i64:0..3 {dim=1 reduce=sum} ! EDTYPE; "
              "3x4,3x2,3x2 {dim=1 reduce=sum} ! EDTYPE; 3x4,3x2@i64:0..3,3x2 {dim=1 reduce=5} ! EVALUE"
};
REGISTER_OPS(&op_scatter_reduce);

/* ---- index_reduce ---------------------------------------------------------------------------- */

static int index_compose(OpCall *c)
{
    TensorReduceIntoArgs p = *(const TensorReduceIntoArgs *)op_params(c);
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *src = op_input(c, 2);
    int64_t line[TENSOR_MAX_DIMS];
    if (index->ndim > 1) return op_fail(c, TENSOR_ESHAPE, "index %s: want a list, one dimension", S(index));
    p.dim = call_dim(c, p.dim, shape_of(x));
    if (p.dim < 0) return -1;
    if (p.reduce == TENSOR_INTO_SUM) return op_fail(c, TENSOR_EVALUE, "by a sum: that is index_add");
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
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with slices of a source reduced into those that a list of indices names",
    .arity = 3,
    .gradient = "mean: dx = dy / count, dsource = that at the index; prod: dy times the others; amax, amin: "
                "shared evenly by ties",
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorReduceIntoArgs, tensor_reduce_into_defaults, fields),
    .compose = index_compose,
    .flags = OP_ANY_DEVICE,
    .samples =
        "5x3,4@i64:0..4,4x3 {dim=0 reduce=prod}; 2x3x4,6@i64:0..2,2x6x4 {dim=1 reduce=mean}; 5,3@i64:0..4,3 "
        "{dim=-1 reduce=amax include_self=0}; "
        ",1@i64:0..0, {dim=0 reduce=amin}; 3x2,0@i64:0..0,0x2 {dim=0 reduce=mean}",
    .errors =
        "5x3,2@i64:5..9,2x3 {dim=0 reduce=prod} ! EINDEX; 5x3,2@i64:0..4,3x3 {dim=0 reduce=prod} ! ESHAPE; "
        "5x3,2@i64:0..4,2x3 {dim=0 reduce=sum} ! EVALUE; "
        "5,2,2 {dim=0 reduce=prod} ! EDTYPE"
};
REGISTER_OPS(&op_index_reduce);

/* ---- public ---------------------------------------------------------------------------------- */

#define OPERANDS(a) ((Tensor *[]){ (a).input, (a).index, (a).src })

Tensor *tensor_scatter_reduce_args(TensorReduceIntoArgs args)
{
    return op_apply1(&op_scatter_reduce, OPERANDS(args), 3, &args, SITE);
}
Tensor *tensor_scatter_reduce_args_(TensorReduceIntoArgs args)
{
    return op_apply_(&op_scatter_reduce, OPERANDS(args), 3, &args, SITE);
}
Tensor *tensor_index_reduce_args(TensorReduceIntoArgs args)
{
    return op_apply1(&op_index_reduce, OPERANDS(args), 3, &args, SITE);
}
Tensor *tensor_index_reduce_args_(TensorReduceIntoArgs args)
{
    return op_apply_(&op_index_reduce, OPERANDS(args), 3, &args, SITE);
}
