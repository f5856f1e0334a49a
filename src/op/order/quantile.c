/* quantile.c - quantiles along a dim or of all: made of sort and gather.
 *
 *   y(q) = x_(r) of x in order, r = q (n - 1); between two of them as `interpolation` says
 *   dx = g at the one or two elements that y comes from
 *
 * A NaN makes the quantiles of its line NaN; nanquantile leaves NaNs out. */
#include <math.h>
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"

const TensorQuantileArgs tensor_quantile_defaults = { TENSOR_QUANTILE_DEFAULTS };

static int shape(OpCall *c)
{
    TensorQuantileArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0), *q = op_input(c, 1);
    if (call_dim_or_all(c, &p->dim, shape_of(x))) return -1;
    if (x->numel == 0) return op_fail(c, TENSOR_ESHAPE, "%s: no elements to choose from", S(x));
    if (q->ndim > 1) return op_fail(c, TENSOR_ESHAPE, "q %s: want a number or a list of them", S(q));
    if (q->dtype != x->dtype && (q->dtype != TENSOR_F32 || !dtype_is_half(x->dtype)))
        return op_fail(c, TENSOR_EDTYPE, "%s %s, q %s %s: want q in the dtype of x (or f32, for halves)",
                       tensor_dtype_name((TensorDtype)x->dtype), S(x),
                       tensor_dtype_name((TensorDtype)q->dtype), S(q));
    return 0;
}

static int check_q(OpCall *c, const Tensor *q)
{
    CheckArgs a = { .what = "q", .status = TENSOR_EVALUE, .high = 1 };
    const int found = call_check(c, q, &a);
    return found == 1 ? op_fail(c, TENSOR_EVALUE, "q = %g: want 0 to 1", a.bad_number) : found;
}

/* x with what is reduced as its last dim. */
static Tensor *lines_of(Tensor *x, const TensorQuantileArgs *p)
{
    if (p->dim == TENSOR_ALL || x->ndim == 0) return tensor_reshape(x, SHAPE(-1));
    return tensor_movedim(x, p->dim, -1);
}

/* [..., k]: which places of the line in order, before rounding. */
static Tensor *ranks_of(Tensor *sorted, Tensor *q, bool skip_nans)
{
    if (!q) return NULL;
    const double last = (double)(sorted->shape[sorted->ndim - 1] - 1);
    Tensor *nan = tensor_isnan(sorted);
    if (!skip_nans) {
        Tensor *spoilt = tensor_any(nan, -1, true), *r = tensor_mul_scalar(q, last);
        return spoilt && r ? tensor_where(spoilt, tensor_full_like(r, last), r) : NULL;
    }
    Tensor *count = tensor_sum(tensor_logical_not(nan), -1, true);
    Tensor *r = count ? tensor_mul(q, tensor_to(tensor_sub_scalar(count, 1), (TensorDtype)q->dtype)) : NULL;
    return r ? tensor_where(tensor_lt_scalar(r, 0), tensor_zeros_like(r), r) : NULL;
}

static Tensor *pick(Tensor *sorted, Tensor *ranks)
{
    return sorted && ranks ? tensor_gather(sorted, -1, tensor_to(ranks, TENSOR_I64)) : NULL;
}

/* a + w (b - a), from the nearer end. */
static Tensor *between(Tensor *a, Tensor *b, Tensor *w)
{
    Tensor *d = tensor_sub(b, a), *up = tensor_add(a, tensor_mul(w, d));
    return tensor_where(tensor_lt_scalar(w, .5), up, tensor_sub(b, tensor_mul(d, tensor_rsub_scalar(w, 1))));
}

static Tensor *choose(Tensor *sorted, Tensor *ranks, int interpolation)
{
    switch (interpolation) {
    case TENSOR_QUANTILE_LOWER: return pick(sorted, tensor_floor(ranks));
    case TENSOR_QUANTILE_HIGHER: return pick(sorted, tensor_ceil(ranks));
    case TENSOR_QUANTILE_NEAREST: return pick(sorted, tensor_round(ranks));
    default: break;
    }
    Tensor *floor = tensor_floor(ranks), *below = pick(sorted, floor),
           *above = pick(sorted, tensor_ceil(ranks));
    if (!below || !above) return NULL;
    if (interpolation == TENSOR_QUANTILE_MIDPOINT) return between(below, above, tensor_full_like(below, .5));
    return between(below, above, tensor_to(tensor_sub(ranks, floor), (TensorDtype)below->dtype));
}

/* [..., k] in its place: k first if q is a list, and the reduced dims as 1 if they are kept. */
static Tensor *arrange(Tensor *y, const TensorQuantileArgs *p, int ndim, bool list)
{
    if (!y) return NULL;
    const int64_t k = y->shape[y->ndim - 1];
    y = list ? tensor_movedim(y, -1, 0) : tensor_select(y, -1, 0);
    if (!p->keepdim || ndim == 0) return y;
    if (p->dim != TENSOR_ALL) return tensor_unsqueeze(y, p->dim + list);
    int64_t ones[TENSOR_MAX_DIMS + 1] = { k };
    for (int i = 0; i < ndim; i++) ones[i + list] = 1;
    return tensor_reshape(y, (TensorShape){ ndim + list, ones });
}

/* Halves are made f32 here, not by OP_ROUND_ONCE: q is no half, for places of halves would be wrong ones. */
static int compose(OpCall *c, bool skip_nans)
{
    const TensorQuantileArgs *p = op_params(c);
    Tensor *input = op_input(c, 0), *x = input->dtype == TENSOR_F64 ? input : tensor_to(input, TENSOR_F32);
    const int ndim = input->ndim;
    Tensor *q = tensor_to(op_input(c, 1), TENSOR_F64); /* places in f64, as in PyTorch */
    const bool list = q && q->ndim == 1;
    if (!x || !q || check_q(c, q)) return -1;
    if (ndim + list > TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "%s has %d dimensions already", S(x), TENSOR_MAX_DIMS);
    Tensor *sorted = tensor_sort(lines_of(x, p)),
           *ranks = sorted ? ranks_of(sorted, tensor_reshape(q, SHAPE(-1)), skip_nans) : NULL;
    if (!ranks) return -1;
    int64_t wide[TENSOR_MAX_DIMS]; /* one line's ranks for all: gather wants them for each */
    for (int i = 0; i < sorted->ndim; i++)
        wide[i] = i < sorted->ndim - 1 ? sorted->shape[i] : ranks->shape[ranks->ndim - 1];
    ranks = tensor_expand(ranks, (TensorShape){ sorted->ndim, wide });
    Tensor *y = arrange(choose(sorted, ranks, (int)p->interpolation), p, ndim, list);
    return op_set_result(c, 0, y ? tensor_to(y, (TensorDtype)input->dtype) : NULL);
}

static int quantile(OpCall *c) { return compose(c, false); }
static int nanquantile(OpCall *c) { return compose(c, true); }

static const char *const modes[] = { "linear", "lower", "higher", "midpoint", "nearest", NULL };
static const OpField fields[] = { OP_OPTION(TensorQuantileArgs, dim, keepdim),
                                  OP_CHOICE(TensorQuantileArgs, interpolation, modes),
                                  { 0 } };
#define QUANTILE                                                                                             \
    .arity = 2, .params = sizeof(TensorQuantileArgs), .defaults = &tensor_quantile_defaults,                 \
    .fields = fields, .shape = shape, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,                              \
    .gradient = "dx = g at the elements that y comes from, weighted",                                        \
    .samples = "5,:.1..0.2; 3x4,3:.4..0.6 {dim=1}; 2x3x4,2:.1..0.2 {dim=0 keepdim=1 "                        \
               "interpolation=midpoint}; 3x4,:.1..0.3 {interpolation=lower}; "                               \
               "3x4,2:.1..0.3 {keepdim=1 interpolation=higher}; 6,:.62..0.68 {interpolation=nearest}; "      \
               ",:.1..0.9; ,2:.1..0.9 {keepdim=1}; 3,0",                                                     \
    .errors = "0,:.5..0.5 ! ESHAPE; 3,:2..3 ! EVALUE; 3,2x2:.5..0.5 ! ESHAPE; 3,:.5..0.5 {dim=1} ! EINDEX; " \
              "3,:.5..0.5 {interpolation=5} ! EVALUE; 3@i64,:.5..0.5 ! EDTYPE; 3@f32,@f64:.5..0.5 ! "        \
              "EDTYPE; 3@f64,@f32:.5..0.5 ! EDTYPE"

const TensorOp op_quantile = { .name = "quantile",
                               .autocast = AUTOCAST_CPU_F32,
                               .summary = "quantiles q along a dim or of all; NaN wins",
                               .compose = quantile,
                               QUANTILE };
const TensorOp op_nanquantile = { .name = "nanquantile",
                                  .autocast = AUTOCAST_CPU_F32,
                                  .summary = "quantiles q along a dim or of all, of what is no NaN",
                                  .compose = nanquantile,
                                  QUANTILE };
REGISTER_OPS(&op_quantile, &op_nanquantile);

static Tensor *apply(const TensorOp *op, const TensorQuantileArgs *a, const void *site)
{
    if (TENSOR_CHECK_OPTIONS(op->name, *a, tensor_quantile_defaults)) return NULL;
    if (check_null(a->input, op->name, 1)) return NULL;
    if (a->qs && !isnan(a->q)) return fail(TENSOR_EVALUE, op->name, "both q and qs: want one of them"), NULL;
    TensorScope scope = tensor_scope_open();
    Tensor *q = a->qs;
    if (!q) {
        const int dtype = dtype_is_float(a->input->dtype) ? a->input->dtype : TENSOR_F32;
        q = own(new_tensor(SHAPE(), dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32, a->input->place));
        if (!q || raw_fill(q, a->q)) return tensor_scope_return(scope, NULL);
    }
    return tensor_scope_return(scope, op_apply1(op, (Tensor *[]){ a->input, q }, 2, a, site));
}

Tensor *tensor_quantile_args(TensorQuantileArgs a) { return apply(&op_quantile, &a, SITE); }
Tensor *tensor_nanquantile_args(TensorQuantileArgs a) { return apply(&op_nanquantile, &a, SITE); }
