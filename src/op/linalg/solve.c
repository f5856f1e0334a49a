/* solve.c - linear systems, inverses, determinants, all by LU with row exchanges.
 *
 *   solve    x = a^-1 b              db = a^-T g, da = -db x^T
 *   det      y = det a               da = g cofactors(a) = g y a^-T
 *   slogdet  log |det a|             da = g a^-T
 */
#include <math.h>
#include "cpu/linalg/small_matrix.h"
#include "matrices.h"

typedef struct SolveParams {
    bool left;
} SolveParams;

/* ---- a x = b --------------------------------------------------------------------------------- */

static int core_shape(OpCall *c)
{
    const Tensor *b = op_input(c, 1);
    return op_set_output(c, 0, shape_of(b), TENSOR_F64);
}

static int64_t solve_one(const Lapack *lapack, const double *a, const double *b, double *x, Matrices s,
                         double *room, int *pivots)
{
    const int n = (int)s.m, k = (int)s.n;
    double *lu = room, *columns = room + s.m * s.m;
    int info = 0;
    if (!lapack) {
        memcpy(lu, a, (size_t)(s.m * s.m) * sizeof *lu);
        memcpy(x, b, (size_t)(s.m * s.n) * sizeof *x);
        const int64_t zero = small_lu(lu, s.m, pivots);
        if (!zero) small_lu_solve(lu, s.m, pivots, x, s.n);
        return zero;
    }
    transposed(a, s.m, s.m, lu);
    transposed(b, s.m, s.n, columns);
    lapack->gesv(&n, &k, lu, &n, pivots, columns, &n, &info);
    transposed(columns, s.n, s.m, x);
    return info;
}

static int solve_all(OpCall *c, const double *a, const double *b, double *x, Matrices s, double *room,
                     int *pivots)
{
    const Lapack *lapack = s.m > SMALL_MATRIX ? lapack_open(c->op->name) : NULL;
    if (s.m > SMALL_MATRIX && !lapack) return -1;
    for (int64_t i = 0; i < s.batch; i++) {
        const int64_t zero =
            solve_one(lapack, a + i * s.m * s.m, b + i * s.m * s.n, x + i * s.m * s.n, s, room, pivots);
        if (zero)
            return op_fail(c, TENSOR_EVALUE, "%s is singular: pivot %lld is zero",
                           nth_matrix(op_input(c, 0), i), (long long)zero);
    }
    return 0;
}

static int core_forward(OpCall *c)
{
    const Matrices s = matrices_of(op_input(c, 1));
    const double *a = op_input_f64(c, 0), *b = op_input_f64(c, 1);
    double *x = op_output_f64(c, 0);
    if (!a || !b || !x) return -1;
    if (s.batch == 0 || s.m == 0) return 0; /* k = 0 is not skipped: a singular matrix is refused */
    const size_t bytes = (size_t)(s.m * (s.m + s.n)) * sizeof(double), pivots = (size_t)s.m * sizeof(int);
    double *room = tg_alloc(bytes + pivots);
    if (!room) return fail_memory(c->op->name);
    const int status = solve_all(c, a, b, x, s, room, (int *)(room + s.m * (s.m + s.n)));
    tg_free(room, bytes + pivots);
    return status;
}

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[1] = core_solve(tensor_mT(op_saved(c, 0)), dy);
    if (op_wants(c, 0)) dx[0] = tensor_neg(tensor_matmul(dx[1], tensor_mT(op_saved_output(c, 0))));
    return dx[1] && (dx[0] || !op_wants(c, 0)) ? 0 : -1;
}

static const TensorOp core = { .name = "solve",
                               .arity = 2,
                               .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                               .shape = core_shape,
                               .forward = core_forward,
                               .backward = core_backward };

Tensor *core_solve(Tensor *a, Tensor *b) { return APPLY(&core, NULL, a, b); }

static int solve_shape(OpCall *c)
{
    const SolveParams *p = op_params(c);
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    if (check_square(c, 0)) return -1;
    const int64_t n = a->shape[a->ndim - 1];
    if (b->ndim && is_vectors(a, b)) {
        if (!p->left)
            return op_fail(c, TENSOR_ESHAPE, "%s, %s: x a = b takes matrices, not vectors", S(a), S(b));
        return b->shape[b->ndim - 1] == n
                   ? 0
                   : op_fail(c, TENSOR_ESHAPE, "%s, %s: want vectors of %lld", S(a), S(b), (long long)n);
    }
    if (check_matrix(c, 1)) return -1;
    if (b->shape[b->ndim - 1 - p->left] != n)
        return op_fail(c, TENSOR_ESHAPE, "%s, %s: b must have %lld %s", S(a), S(b), (long long)n,
                       p->left ? "rows" : "columns");
    return check_batches(c);
}

static int solve_compose(OpCall *c)
{
    const bool left = ((const SolveParams *)op_params(c))->left;
    Tensor *a = in_f64(c, 0), *b = in_f64(c, 1);
    if (!a || !b) return -1;
    const bool vectors = is_vectors(a, b);
    if (vectors) b = tensor_unsqueeze(b, -1);
    if (!left) a = tensor_mT(a), b = tensor_mT(b);
    expand_batches(&a, &b);
    Tensor *x = core_solve(a, b);
    if (!left) x = tensor_mT(x);
    return set_rounded(c, 0, vectors ? tensor_squeeze(x, -1) : x);
}

static int inv_compose(OpCall *c)
{
    Tensor *a = in_f64(c, 0), *eye = a ? identity_like(a) : NULL;
    expand_batches(&a, &eye);
    return set_rounded(c, 0, core_solve(a, eye));
}

static int square_shape(OpCall *c) { return check_square(c, 0); }

static const OpField fields[] = { OP_FIELD(OP_BOOL, SolveParams, left, "1"), { 0 } };

const TensorOp op_solve = {
    .name = "solve",
    .summary = "x with a x = b, or x a = b",
    .gradient = "db = a^-T g, da = -db x^T",
    .arity = 2,
    .params = sizeof(SolveParams),
    .fields = fields,
    .shape = solve_shape,
    .compose = solve_compose,
    .flags = OP_FLOAT_INPUTS | OP_SAME_DTYPE,
    .torch = "linalg.solve",
    .samples = "2x2,2x1; 3x3,3x2; 3x3,3; 2x2x2,2x2; 2x2x2,2x1; 2x1x2x2,3x2x2; 2x2,3x2 {left=0}; 1x1:1..2,1; "
               "0x0,0x2; 2x2,2x0; 0x2x2,2x1",
    .errors = "2x3,2x1 ! ESHAPE; 2x2,3x1 ! ESHAPE; 3,3x1 ! ESHAPE; 2x2x2,3x2x1 ! ESHAPE; 2x2,2 {left=0} ! "
              "ESHAPE; 2x2,3 ! ESHAPE; "
              "2x2:0..0,2x1 ! EVALUE; 2x2@i64,2x1 ! EDTYPE; 2x2,2x1@i64 ! EDTYPE",
};
const TensorOp op_inv = {
    .name = "inv",
    .summary = "the inverse matrix",
    .gradient = "da = -y^T g y^T",
    .arity = 1,
    .shape = square_shape,
    .compose = inv_compose,
    .flags = OP_FLOAT_INPUTS,
    .torch = "linalg.inv",
    .samples = "2x2; 3x3; 2x2x2; 2x0x0; 0x2x2; 1x1:1..2",
    .errors = "3 ! ESHAPE; 2x3 ! ESHAPE; 2x2x2:0..0 ! EVALUE; 2x2@i64 ! EDTYPE",
};
REGISTER_OP(op_solve);
REGISTER_OP(op_inv);

/* ---- determinants ---------------------------------------------------------------------------- */

/* Rank 0 or more: x's shape without its matrices. */
static int set_numbers(OpCall *c, int k)
{
    const Tensor *x = op_input(c, 0);
    return op_set_output(c, k, (TensorShape){ x->ndim - 2, x->shape }, TENSOR_F64);
}

static int det_shape(OpCall *c) { return set_numbers(c, 0); }
static int slogdet_shape(OpCall *c) { return set_numbers(c, 0) || set_numbers(c, 1) ? -1 : 0; }

/* What to do with the diagonal of a matrix's u, whose row exchanges have this sign. */
typedef void Diagonal(OpCall *c, int64_t i, const double *u, int64_t n, double sign, void *results);

/* Pivots count from 0, or, by LAPACK, from 1. */
static double factor(const Lapack *lapack, double *a, int64_t rows, int *pivots)
{
    const int n = (int)rows, none = 0;
    int info;
    double sign = 1;
    if (lapack) lapack->gesv(&n, &none, a, &n, pivots, a, &n, &info);
    else small_lu(a, rows, pivots);
    for (int k = 0; k < n; k++)
        if (pivots[k] != k + (lapack != NULL)) sign = -sign;
    return sign;
}

/* Of the transposes, whose systems the gradients are: their roundings are then the same, and cancel where a
 * is nearly singular. */
static int each_diagonal(OpCall *c, Diagonal *use, void *results)
{
    const Matrices s = matrices_of(op_input(c, 0));
    const double *a = op_input_f64(c, 0);
    const Lapack *lapack = s.m > SMALL_MATRIX ? lapack_open(c->op->name) : NULL;
    if (!a || (s.m > SMALL_MATRIX && !lapack)) return -1;
    const size_t bytes = (size_t)(s.m * s.m + 1) * sizeof(double) + (size_t)s.m * sizeof(int);
    double *lu = tg_alloc(bytes);
    if (!lu) return fail_memory(c->op->name);
    int *pivots = (int *)(lu + s.m * s.m + 1);
    for (int64_t i = 0; i < s.batch; i++, a += s.m * s.m) {
        if (lapack) memcpy(lu, a, (size_t)(s.m * s.m) * sizeof *lu);
        else transposed(a, s.m, s.m, lu);
        const double sign = factor(lapack, lu, s.m, pivots);
        use(c, i, lu, s.m, sign, results);
    }
    tg_free(lu, bytes);
    return 0;
}

/* Singular as far as rounding can tell: the pivots say no more about the cofactors then.  Infinite ones say
 * nothing. */
static bool numerically_singular(const double *u, int64_t n)
{
    double least = INFINITY, most = 0;
    for (int64_t k = 0; k < n; k++) {
        least = fmin(least, fabs(u[k * (n + 1)]));
        most = fmax(most, fabs(u[k * (n + 1)]));
    }
    return n && most < INFINITY && least <= 100 * (double)n * 0x1p-52 * most;
}

typedef struct DetResults {
    double *det;
    uint8_t *singular;
} DetResults;

static void put_det(OpCall *c, int64_t i, const double *u, int64_t n, double sign, void *results)
{
    const DetResults *r = results;
    (void)c;
    for (int64_t k = 0; k < n; k++) sign *= u[k * (n + 1)];
    r->det[i] = sign;
    r->singular[i] = numerically_singular(u, n);
}

static int det_forward(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    Tensor *singular = own(new_tensor((TensorShape){ x->ndim - 2, x->shape }, TENSOR_BOOL, &cpu_place));
    if (!singular || each_diagonal(c, put_det, &(DetResults){ op_output_f64(c, 0), singular->data }))
        return -1;
    return op_save(c, singular);
}

/* a, with matrices that cannot fail in the place of those that are masked. */
static Tensor *without(Tensor *a, Tensor *masked, Tensor *instead)
{
    return tensor_where(over_matrices(masked), instead, a);
}

static Tensor *solve_for_diagonal(Tensor *a, Tensor *diagonal)
{
    Tensor *b = a ? tensor_mul(identity_like(a), over_matrices(diagonal)) : NULL;
    return core_solve(tensor_mT(a), b);
}

/* u diag(product of the other singular values) vh, times det u det vh = +-1. */
static Tensor *cofactors_by_svd(Tensor *a)
{
    Tensor *f[3], *eye = a ? identity_like(a) : NULL;
    if (!eye || core_svd(a, false, f)) return NULL;
    const int64_t n = a->shape[a->ndim - 1];
    Tensor *s = tensor_unsqueeze(f[1], -2), *others = NULL;
    if (s) others = tensor_prod(tensor_where(tensor_gt_scalar(eye, 0), tensor_ones_like(eye), s), -1);
    Tensor *sign = tensor_mul(tensor_det(tensor_detach(f[0])), tensor_det(tensor_detach(f[2])));
    if (!others || !sign || n == 0) return NULL;
    return tensor_mul(over_matrices(tensor_sign(sign)),
                      tensor_matmul(tensor_mul(f[0], tensor_unsqueeze(others, -2)), f[2]));
}

/* 1, 2, ..., n on the diagonal: singular values that lie apart. */
static Tensor *spread_like(const Tensor *a)
{
    Tensor *x = identity_like(a);
    for (int64_t i = 0, n = a->shape[a->ndim - 1]; x && i < n; i++)
        ((double *)x->data)[i * (n + 1)] = (double)(i + 1);
    return x;
}

static int det_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *a = op_saved(c, 0), *singular = op_saved_extra(c, 0);
    if (!a || !singular) return -1;
    Tensor *regular =
        solve_for_diagonal(without(a, singular, identity_like(a)), tensor_mul(dy, op_saved_output(c, 0)));
    dx[0] = regular;
    if (regular && memchr(singular->data, true, (size_t)singular->numel)) {
        Tensor *cofactors = cofactors_by_svd(without(a, tensor_logical_not(singular), spread_like(a)));
        dx[0] = tensor_where(over_matrices(singular), tensor_mul(over_matrices(dy), cofactors), regular);
    }
    return dx[0] ? 0 : -1;
}

typedef struct LogResults {
    double *sign, *log;
} LogResults;

static void put_log(OpCall *c, int64_t i, const double *u, int64_t n, double sign, void *results)
{
    const LogResults *r = results;
    double sum = 0;
    (void)c;
    for (int64_t k = 0; k < n; k++) {
        const double v = u[k * (n + 1)];
        sum += log(fabs(v));
        sign *= v > 0 ? 1 : v < 0 ? -1 : v; /* 0 and NaN stay */
    }
    r->sign[i] = sign;
    r->log[i] = sum;
}

static int slogdet_forward(OpCall *c)
{
    return each_diagonal(c, put_log, &(LogResults){ op_output_f64(c, 0), op_output_f64(c, 1) });
}

static int slogdet_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)dy; /* the sign's */
    Tensor *a = op_saved(c, 0), *g = op_grad(c, 1), *sign = op_saved_output(c, 0);
    if (!a || !g || !sign) return -1;
    if (!op_has_grad(c, 1)) return (dx[0] = tensor_zeros_like(a)) ? 0 : -1;
    Tensor *singular = tensor_eq_scalar(sign, 0);
    Tensor *regular = solve_for_diagonal(without(a, singular, identity_like(a)), g);
    dx[0] = regular ? tensor_where(over_matrices(singular), tensor_full_like(a, NAN), regular) : NULL;
    return dx[0] ? 0 : -1;
}

static const TensorOp core_det = { .name = "det",
                                   .arity = 1,
                                   .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                                   .shape = det_shape,
                                   .forward = det_forward,
                                   .backward = det_backward };
static const TensorOp core_slogdet = { .name = "slogdet",
                                       .arity = 1,
                                       .outputs = 2,
                                       .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                                       .shape = slogdet_shape,
                                       .forward = slogdet_forward,
                                       .backward = slogdet_backward };

static int det_compose(OpCall *c) { return linalg_compose(c, &core_det); }

static int slogdet_compose(OpCall *c)
{
    Tensor *x = in_f64(c, 0), *y[2] = { NULL, NULL };
    op_apply(&core_slogdet, &x, 1, NULL, c->site, y, 2);
    return set_rounded(c, 0, y[0] ? tensor_detach(y[0]) : NULL) || set_rounded(c, 1, y[1]) ? -1 : 0;
}

static int logdet_compose(OpCall *c)
{
    Tensor *x = in_f64(c, 0), *y[2] = { NULL, NULL };
    if (op_apply(&core_slogdet, &x, 1, NULL, c->site, y, 2) < 0) return -1;
    return set_rounded(c, 0, tensor_where(tensor_lt_scalar(y[0], 0), tensor_full_like(y[1], NAN), y[1]));
}

#define DET                                                      \
    .arity = 1, .shape = square_shape, .flags = OP_FLOAT_INPUTS, \
    .errors = "3 ! ESHAPE; 2x3 ! ESHAPE; ! ESHAPE; 2x2@i64 ! EDTYPE"

const TensorOp op_det = {
    .name = "det",
    .summary = "determinant",
    .gradient = "da = g times the cofactors of a",
    .compose = det_compose,
    DET,
    .torch = "linalg.det",
    .samples = "2x2; 3x3; 2x2x2; 1x1; 0x0; 2x0x0; 0x2x2; 2x2:1..1; 4x4",
};
const TensorOp op_slogdet = {
    .name = "slogdet",
    .summary = "sign of the determinant, and log |det a|",
    .gradient = "da = g a^-T",
    .outputs = 2,
    .compose = slogdet_compose,
    DET,
    .torch = "linalg.slogdet",
    .samples = "2x2; 3x3; 2x2x2; 1x1; 0x0; 2x0x0; 0x2x2",
};
const TensorOp op_logdet = {
    .name = "logdet",
    .summary = "log det a; NaN, with gradient 0, where det a < 0",
    .gradient = "da = g a^-T",
    .compose = logdet_compose,
    DET,
    .samples = "1x1:1..2; 2x1x1:1..2; 0x0; 2x0x0; 0x2x2",
};
REGISTER_OP(op_det);
REGISTER_OP(op_slogdet);
REGISTER_OP(op_logdet);

/* ---- public ---------------------------------------------------------------------------------- */

Tensor *tensor_solve_args(TensorSolveArgs a)
{
    return APPLY(&op_solve, &((SolveParams){ a.left }), a.a, a.b);
}
Tensor *tensor_inv(Tensor *a) { return APPLY(&op_inv, NULL, a); }

Tensor *tensor_inverse(Tensor *a)
{
    const Naming before = name_as(op_inv.name, __func__);
    return named_result(before, APPLY(&op_inv, NULL, a));
}

Tensor *tensor_det(Tensor *a) { return APPLY(&op_det, NULL, a); }
Tensor *tensor_logdet(Tensor *a) { return APPLY(&op_logdet, NULL, a); }

TensorSlogdet tensor_slogdet(Tensor *a)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&op_slogdet, &a, 1, NULL, SITE, y, 2);
    return (TensorSlogdet){ y[0], y[1] };
}
