/* diff.c - differences between neighbours along a dim, and the trapezoidal rule over them: made of slices.
 *
 *   diff                  y_i = x_(i+1) - x_i, n times, of prepend, x and append one behind the other
 *   trapezoid             y = sum_i (y_i + y_(i+1)) / 2 (x_(i+1) - x_i), or dx for the last factor
 *   cumulative_trapezoid  the running sums of that */
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"

/* ---- diff ------------------------------------------------------------------------------------ */

const TensorDiffArgs tensor_diff_defaults = { TENSOR_DIFF_DEFAULTS };

static int diff_shape(OpCall *c)
{
    TensorDiffArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    if (x->ndim == 0) return op_fail(c, TENSOR_ESHAPE, "%s: a tensor of rank 0 has no neighbours", S(x));
    if (p->n < 0) return op_fail(c, TENSOR_EVALUE, "n = %lld must not be negative", (long long)p->n);
    p->dim = call_dim(c, p->dim, shape_of(x));
    for (int i = 1; i < 3 && p->dim >= 0; i++)
        if (op_input(c, i) && op_input(c, i)->ndim != x->ndim)
            return op_fail(c, TENSOR_ESHAPE, "%s %s for %s: want the same rank",
                           i == 1 ? "prepend" : "append", S(op_input(c, i)), S(x));
    return p->dim < 0 ? -1 : 0;
}

static Tensor *step(Tensor *x, int dim)
{
    if (!x) return NULL;
    const int64_t n = x->shape[dim];
    if (n == 0) return x;
    Tensor *late = tensor_narrow(x, dim, 1, n - 1), *early = tensor_narrow(x, dim, 0, n - 1);
    return x->dtype == TENSOR_BOOL ? tensor_logical_xor(late, early) : tensor_sub(late, early);
}

static int diff_compose(OpCall *c)
{
    const TensorDiffArgs *p = op_params(c);
    Tensor *part[3], *x = op_input(c, 0);
    int parts = 0;
    if (p->n == 0) return op_set_result(c, 0, tensor_clone(x));
    if (op_input(c, 1)) part[parts++] = op_input(c, 1);
    part[parts++] = x;
    if (op_input(c, 2)) part[parts++] = op_input(c, 2);
    if (parts > 1) x = tensor_cat(TENSOR_LIST(part, parts), p->dim);
    for (int64_t i = 0; x && i < p->n && (i == 0 || x->shape[p->dim]); i++) x = step(x, p->dim);
    return op_set_result(c, 0, x);
}

static const OpField diff_fields[] = { OP_OPTION(TensorDiffArgs, n, dim), { 0 } };
const TensorOp op_diff = {
    .name = "diff",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x_(i+1) - x_i along a dim, n times; prepend and append are joined to x first",
    .gradient = "dx_i = g_(i-1) - g_i, n times",
    .arity = 3,
    .optional = KEEP_INPUT(1) | KEEP_INPUT(2),
    PARAMS(TensorDiffArgs, tensor_diff_defaults, diff_fields),
    .shape = diff_shape,
    .compose = diff_compose,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
    .samples = "5,-,-; 3x4,-,- {n=2 dim=0}; 2x3x4,-,- {dim=-2}; 3x4,3x1,- ; 3x4,-,3x2 {n=3}; 3,2,1 {n=2}; "
               "3,-,- {n=5}; 1,-,-; 4,-,- {n=0}; 0x3,-,- {dim=0}; 5@i64,-,-; 5@bool,-,-",
    .errors = ",-,- ! ESHAPE; 3,-,- {n=-1} ! EVALUE; 3,-,- {dim=1} ! EINDEX; 3x4,4,- ! ESHAPE",
};
REGISTER_OPS(&op_diff);

Tensor *tensor_diff_args(TensorDiffArgs a) { return APPLY(&op_diff, &a, a.input, a.prepend, a.append); }

/* ---- trapezoids ------------------------------------------------------------------------------ */

const TensorTrapezoidArgs tensor_trapezoid_defaults = { TENSOR_TRAPEZOID_DEFAULTS };

/* x [n] along the dim, or of a shape that broadcasts with y's. */
static int trapezoid_shape(OpCall *c)
{
    TensorTrapezoidArgs *p = op_params_mut(c);
    const Tensor *y = op_input(c, 0), *x = op_input(c, 1);
    int64_t joint[TENSOR_MAX_DIMS];
    if (y->dtype == TENSOR_BOOL || (x && x->dtype == TENSOR_BOOL))
        return op_fail(c, TENSOR_EDTYPE, "%s: not defined for bool, but for numbers", S(y));
    if (y->ndim == 0) return op_fail(c, TENSOR_ESHAPE, "%s: a tensor of rank 0 has no neighbours", S(y));
    p->dim = call_dim(c, p->dim, shape_of(y));
    if (p->dim < 0) return -1;
    if (!x) return 0;
    if (p->dx != 1) return op_fail(c, TENSOR_EVALUE, "both x and dx: want one of them");
    bool fits = x->ndim == 1 ? x->shape[0] == y->shape[p->dim]
                             : x->ndim == y->ndim && shape_broadcast(shape_of(x), shape_of(y), joint) >= 0 &&
                                   x->shape[p->dim] == y->shape[p->dim];
    if (fits) return 0;
    return op_fail(c, TENSOR_ESHAPE,
                   "y %s at points x %s: want x [%lld], or of y's rank with that size in dim %d", S(y), S(x),
                   (long long)y->shape[p->dim], p->dim);
}

static bool of_integers(const OpCall *c)
{
    const Tensor *y = op_input(c, 0), *x = op_input(c, 1);
    return !dtype_is_float(y->dtype) && (!x || !dtype_is_float(x->dtype));
}

/* Of integers in f64. */
static Tensor *areas(OpCall *c)
{
    const TensorTrapezoidArgs *p = op_params(c);
    Tensor *y = op_input(c, 0), *x = op_input(c, 1);
    if (of_integers(c) && !(y = tensor_to(y, TENSOR_F64))) return NULL;
    if (x && !dtype_is_float(x->dtype) && !(x = tensor_to(x, (TensorDtype)y->dtype))) return NULL;
    const int64_t n = y->shape[p->dim];
    if (n == 0) return y;
    Tensor *sum = tensor_add(tensor_narrow(y, p->dim, 1, n - 1), tensor_narrow(y, p->dim, 0, n - 1));
    if (!x) return tensor_mul_scalar(sum, p->dx / 2);
    const int dim = x->ndim == 1 ? 0 : p->dim;
    Tensor *width = step(x, dim);
    if (width && x->ndim == 1) {
        int64_t shape[TENSOR_MAX_DIMS];
        for (int i = 0; i < y->ndim; i++) shape[i] = i == p->dim ? n - 1 : 1;
        width = tensor_reshape(width, (TensorShape){ y->ndim, shape });
    }
    return tensor_mul_scalar(tensor_mul(sum, width), .5);
}

static int set_integral(OpCall *c, Tensor *y)
{
    return op_set_result(c, 0, y && of_integers(c) ? tensor_to(y, TENSOR_F32) : y);
}
static int trapezoid_compose(OpCall *c)
{
    return set_integral(c, tensor_sum(areas(c), ((const TensorTrapezoidArgs *)op_params(c))->dim));
}
static int cumulative_compose(OpCall *c)
{
    return set_integral(c, tensor_cumsum(areas(c), ((const TensorTrapezoidArgs *)op_params(c))->dim));
}

static const OpField trapezoid_fields[] = { OP_OPTION(TensorTrapezoidArgs, dx, dim), { 0 } };
#define TRAPEZOID                                                                                            \
    .gradient = "dy_i = (g_(i-1) h_(i-1) + g_i h_i) / 2 for steps h, dx_i = g_(i-1) m_(i-1) - g_i m_i, m_i " \
                "= (y_i + y_(i+1)) / 2; "                                                                    \
                "g_i is that of area i",                                                                     \
    .arity = 2, .optional = KEEP_INPUT(1), .params = sizeof(TensorTrapezoidArgs),                            \
    .defaults = &tensor_trapezoid_defaults, .fields = trapezoid_fields, .shape = trapezoid_shape,            \
    .flags = OP_ANY_DEVICE | OP_SAME_DTYPE | OP_ROUND_ONCE,                                                  \
    .samples = "5,-; 5,5; 3x4,- {dx=.5 dim=0}; 3x4,4; 3x4,3 {dim=0}; 2x3x4,2x3x4 {dim=1}; 2x3x4,1x3x1 "      \
               "{dim=1}; 1,1; 0,-; 0x3,-; 3x0,-; 4@i64,-; 2x3@u8,3@i32; 3,3@i64",                            \
    .errors = ",- ! ESHAPE; 3x4,3 ! ESHAPE; 3,- {dim=1} ! EINDEX; 3@bool,- ! EDTYPE; "                       \
              "3,3 {dx=2} ! EVALUE"

const TensorOp op_trapezoid = { .name = "trapezoid",
                                .autocast = AUTOCAST_CUDA_F32,
                                .summary =
                                    "integral of y over x, or with steps dx, by trapezoids along a dim",
                                .compose = trapezoid_compose,
                                TRAPEZOID };
const TensorOp op_cumulative_trapezoid = { .name = "cumulative_trapezoid",
                                           .autocast = AUTOCAST_CUDA_F32,
                                           .summary = "running integral of y by trapezoids along a dim",
                                           .compose = cumulative_compose,
                                           TRAPEZOID };
REGISTER_OPS(&op_trapezoid, &op_cumulative_trapezoid);

Tensor *tensor_trapezoid_args(TensorTrapezoidArgs a) { return APPLY(&op_trapezoid, &a, a.y, a.x); }
Tensor *tensor_cumulative_trapezoid_args(TensorTrapezoidArgs a)
{
    return APPLY(&op_cumulative_trapezoid, &a, a.y, a.x);
}
