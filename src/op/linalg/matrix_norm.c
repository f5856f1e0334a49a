/* matrix_norm.c - norms of the matrices in two dims: composed of sums, maxima, minima and singular values s.
 *
 *   fro    sqrt(sum |x|^2)     1, -1       max, min over columns of sum |x|
 *   nuc    sum s               inf, -inf   max, min over rows of sum |x|
 *   2, -2  max, min of s
 *
 *   cond   |x| |x^-1| in one of these */
#include <math.h>
#include "op/shape/shape_op.h"
#include "matrices.h"

const TensorMatrixNormArgs tensor_matrix_norm_defaults = { TENSOR_MATRIX_NORM_DEFAULTS };
const TensorLinalgNormArgs tensor_linalg_norm_defaults = { TENSOR_LINALG_NORM_DEFAULTS };
const TensorCondArgs tensor_cond_defaults = { TENSOR_COND_DEFAULTS };

static int check_ord(OpCall *c, double ord)
{
    const double size = fabs(ord);
    if (ord == TENSOR_FRO || ord == TENSOR_NUC || size == 1 || size == 2 || isinf(size)) return 0;
    return op_fail(c, TENSOR_EVALUE,
                   "%s: ord = %g: want TENSOR_FRO, TENSOR_NUC, 1, 2, inf or a negative of these",
                   S(op_input(c, 0)), ord);
}

static int shape(OpCall *c)
{
    TensorMatrixNormArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    const double size = fabs(p->ord);
    if (check_ord(c, p->ord)) return -1;
    if (x->ndim < 2) return op_fail(c, TENSOR_ESHAPE, "%s: want a matrix", S(x));
    p->dim1 = call_dim(c, p->dim1, shape_of(x));
    p->dim2 = call_dim(c, p->dim2, shape_of(x));
    if (p->dim1 < 0 || p->dim2 < 0) return -1;
    if (p->dim1 == p->dim2) return op_fail(c, TENSOR_EVALUE, "%s: dim %d is named twice", S(x), p->dim1);
    const bool rows = size == 2 || isinf(size), columns = size == 1 || size == 2; /* what the extreme is of */
    if (p->ord < 0 && ((rows && x->shape[p->dim1] == 0) || (columns && x->shape[p->dim2] == 0)))
        return op_fail(c, TENSOR_ESHAPE, "%s: ord = %g is the least of nothing", S(x), p->ord);
    return 0;
}

/* Sums of |x| down one dim, and their extreme along the other. */
static Tensor *of_sums(Tensor *x, double ord, int down, int along)
{
    Tensor *sum = tensor_sum(tensor_abs(x), down, true);
    return ord > 0 ? tensor_amax(sum, along, true) : tensor_amin(sum, along, true);
}

static Tensor *of_singular_values(Tensor *x, const TensorMatrixNormArgs *p)
{
    Tensor *s = tensor_svdvals(tensor_movedims(x, DIMS(p->dim1, p->dim2), DIMS(-2, -1)));
    s = p->ord == TENSOR_NUC ? tensor_sum(s, -1) : p->ord > 0 ? tensor_amax(s, -1) : tensor_amin(s, -1);
    const int low = p->dim1 < p->dim2 ? p->dim1 : p->dim2, high = p->dim1 + p->dim2 - low;
    return tensor_unsqueeze(tensor_unsqueeze(s, low), high);
}

static int compose(OpCall *c)
{
    const TensorMatrixNormArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *y;
    const bool empty = x->shape[p->dim1] == 0 || x->shape[p->dim2] == 0; /* the largest of nothing is 0 */
    if (p->ord == TENSOR_FRO || (empty && p->ord > 0))
        y = tensor_norm(x, .dims = DIMS(p->dim1, p->dim2), .keepdim = true);
    else if (p->ord == TENSOR_NUC || fabs(p->ord) == 2) y = of_singular_values(x, p);
    else y = fabs(p->ord) == 1 ? of_sums(x, p->ord, p->dim1, p->dim2) : of_sums(x, p->ord, p->dim2, p->dim1);
    return op_set_result(c, 0, p->keepdim ? y : tensor_squeeze(y, .dims = DIMS(p->dim1, p->dim2)));
}

/* ---- the condition number -------------------------------------------------------------------- */

static bool of_values(double p) { return p == TENSOR_NUC || fabs(p) == 2; }

static int cond_shape(OpCall *c)
{
    const TensorCondArgs *a = op_params(c);
    if (check_ord(c, a->p)) return -1;
    return fabs(a->p) == 2 ? check_matrix(c, 0) : check_square(c, 0);
}

/* Of the singular values s; a singular matrix has infinity, one of zeros NaN. */
static Tensor *cond_of_values(Tensor *s, double p)
{
    if (p == TENSOR_NUC) return tensor_mul(tensor_sum(s, -1), tensor_sum(tensor_reciprocal(s), -1));
    Tensor *most = tensor_amax(s, -1), *least = tensor_amin(s, -1);
    return p > 0 ? tensor_div(most, least) : tensor_div(least, most);
}

/* |x| |x^-1|, infinite where x is singular. */
static Tensor *cond_by_inverse(Tensor *x, double p)
{
    const TensorInvEx y = tensor_inv_ex(x);
    Tensor *product = tensor_mul(tensor_linalg_matrix_norm(x, p), tensor_linalg_matrix_norm(y.inverse, p));
    Tensor *singular = y.info ? tensor_ne_scalar(y.info, 0) : NULL;
    return product && singular ? tensor_where(singular, tensor_full_like(product, INFINITY), product) : NULL;
}

static int cond(OpCall *c)
{
    const double p = ((const TensorCondArgs *)op_params(c))->p;
    Tensor *x = op_input(c, 0);
    /* The gradient is as ill-conditioned as x. */
    x = x->dtype == TENSOR_F32 && (grad_off || !on_graph(x)) ? x : tensor_to(x, TENSOR_F64);
    if (!x) return -1;
    if (x->numel == 0) return set_rounded(c, 0, tensor_sum(x, .dims = DIMS(-2, -1)));
    return set_rounded(c, 0, of_values(p) ? cond_of_values(tensor_svdvals(x), p) : cond_by_inverse(x, p));
}

/* ---- the ops --------------------------------------------------------------------------------- */

static const OpField fields[] = { OP_OPTION(TensorMatrixNormArgs, ord, dim1, dim2, keepdim),
                                  OP_DTYPE(TensorMatrixNormArgs, dtype),
                                  { 0 } };

const TensorOp op_linalg_matrix_norm = {
    .name = "linalg_matrix_norm",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "norm of matrices; ord 101: fro, 102: nuc, 1, 2, inf and their negatives",
    .gradient = "fro: dx = g x / y; nuc: dx = g u vh; 2: dx = g u_0 vh_0; 1, inf: dx = g sign x in the "
                "column, row that is it",
    .arity = 1,
    PARAMS(TensorMatrixNormArgs, tensor_matrix_norm_defaults, fields),
    .cast_option = offsetof(TensorMatrixNormArgs, dtype),
    .shape = shape,
    .compose = compose,
    .flags = OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .torch = "linalg.matrix_norm",
    .samples = "3x4; 2x3x4 {dim1=0 dim2=-1 keepdim=1}; 3x2 {ord=102}; 2x2x3 {ord=102 dim1=2 dim2=0}; 3x2 "
               "{ord=2}; 2x3x2 {ord=-2 keepdim=1}; 3x4:.5..2 {ord=1}; 3x4:.5..2 {ord=-1 dim1=1 dim2=0}; "
               "2x3x4:-2..-.5 {ord=inf keepdim=1}; 3x4:.5..2 {ord=-inf}; 0x3 {ord=102}; 0x3; 0x3 {ord=1}; "
               "3x0 {ord=1}; 0x3 {ord=inf}; 2x3x0 {ord=2}; 0x2x3 {ord=2}; 3x4 {dtype=f64}",
    .errors = "3 ! ESHAPE; 3x4 {ord=3} ! EVALUE; 3x4 {ord=0} ! EVALUE; 3x4 {dim1=1} ! EVALUE; 3x4 {dim2=2} "
              "! EINDEX; 3x4@i64 ! EDTYPE; 3x0 {ord=-1} ! ESHAPE; 0x3 {ord=-2} ! ESHAPE; 3x4 "
              "{dtype=i64} ! EDTYPE",
};
static const OpField cond_fields[] = { OP_OPTION(TensorCondArgs, p), { 0 } };
const TensorOp op_cond = {
    .name = "cond",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "the condition number |x| |x^-1| in a norm of matrices; infinite for singular ones",
    .gradient = "through the norms of x and of its inverse; 2, -2, nuc: through the singular values",
    .arity = 1,
    PARAMS(TensorCondArgs, tensor_cond_defaults, cond_fields),
    .shape = cond_shape,
    .compose = cond,
    .flags = OP_FLOAT_INPUTS,
    .torch = "linalg.cond",
    .samples = "2x2; 3x2; 2x3x3 {p=-2}; 3x3 {p=102}; 2x2:.5..1 {p=101}; 2x2x2:.5..2 {p=1}; 2x2:.5..2 {p=-1}; "
               "2x2:-2..-.5 {p=inf}; 2x2:.5..2 {p=-inf}; 2x0x0; 0x3; 2x0x0 {p=1}; 0x2x2",
    .errors = "3 ! ESHAPE; 2x3 {p=1} ! ESHAPE; 2x3 {p=102} ! ESHAPE; 2x2 {p=3} ! EVALUE; 2x2@i64 ! EDTYPE",
};
REGISTER_OPS(&op_linalg_matrix_norm, &op_cond);

Tensor *tensor_cond_args(TensorCondArgs a) { return APPLY(&op_cond, &a, a.input); }

Tensor *tensor_linalg_matrix_norm_args(TensorMatrixNormArgs a)
{
    return APPLY(&op_linalg_matrix_norm, &a, a.input);
}

static Tensor *either_norm(const TensorLinalgNormArgs *a)
{
    const int named = a->dim != TENSOR_ALL ? 1 : a->dims.ndim, ndim = named ? named : a->input->ndim;
    const TensorShape dims = named ? a->dims : DIMS(0, 1);
    if (isnan(a->ord) || (named && a->dim == TENSOR_ALL && !a->dims.dim))
        return tensor_norm(a->input, 2, a->dim, a->keepdim, a->dims, .dtype = a->dtype);
    if (ndim == 2)
        return tensor_linalg_matrix_norm(a->input, a->ord, (int)dims.dim[0], (int)dims.dim[1], a->keepdim,
                                         .dtype = a->dtype);
    if (ndim != 1)
        return fail(TENSOR_ESHAPE, NULL, "%s, %d dims: an ord is that of a vector or a matrix", S(a->input),
                    ndim),
               NULL;
    if (a->ord != TENSOR_FRO && a->ord != TENSOR_NUC)
        return tensor_linalg_vector_norm(a->input, a->ord, a->dim, a->keepdim, a->dims, .dtype = a->dtype);
    return fail(TENSOR_EVALUE, NULL, "%s, 1 dim: TENSOR_FRO and TENSOR_NUC are norms of matrices",
                S(a->input)),
           NULL;
}

Tensor *tensor_linalg_norm_args(TensorLinalgNormArgs a)
{
    if (TENSOR_CHECK_OPTIONS("tensor_linalg_norm", a, tensor_linalg_norm_defaults) ||
        check_null(a.input, "tensor_linalg_norm", 1))
        return NULL;
    const char *outer = tensor_compose_begin("tensor_linalg_norm");
    TensorScope scope = tensor_scope_open();
    Tensor *y = scope_failed(scope) ? NULL : either_norm(&a);
    tensor_compose_end(outer);
    return tensor_scope_return(scope, y);
}
