/* solve.c - linear systems, inverses, determinants, all by LU with row exchanges.
 *
 *   solve    x = a^-1 b              db = a^-T g, da = -db x^T
 *   inv      x = a^-1                da = -x^T g x^T
 *   det      y = det a               da = g cofactors(a) = g y a^-T
 *   slogdet  log |det a|             da = g a^-T
 */
#include <math.h>
#include "cpu/shape/host_tables.h"
#include "op/shape/shape_op.h"
#include "matrices.h"

const TensorSolveArgs tensor_solve_defaults = { TENSOR_SOLVE_DEFAULTS };
const TensorSolveExArgs tensor_solve_ex_defaults = { TENSOR_SOLVE_EX_DEFAULTS };
const TensorInvExArgs tensor_inv_ex_defaults = { TENSOR_INV_EX_DEFAULTS };

typedef struct CoreParams {
    bool check; /* a singular matrix is an error; otherwise x is NaN, and result 1 the pivot that is 0 */
} CoreParams;

/* ---- a x = b --------------------------------------------------------------------------------- */

static int core_shape(OpCall *c)
{
    const Tensor *b = op_input(c, 1);
    return op_set_output(c, 0, shape_of(b), (TensorDtype)b->dtype) ||
                   op_set_output(c, 1, (TensorShape){ b->ndim - 2, b->shape }, TENSOR_I32)
               ? -1
               : 0;
}

/* b may be NULL: the identity. */
static int solve_into(OpCall *c, Matrices s, const void *a, const void *b)
{
    MatrixFault fault = { 0 };
    const bool check = ((const CoreParams *)op_params(c))->check;
    void *x = array_out(c, 0);
    int32_t *info = op_output(c, 1)->data;
    if (!a || !x) return -1;
    return LINALG(op_input(c, 0)->dtype, solve, c->name, s, a, b, x, info, check ? &fault : NULL)
               ? matrix_fault(c, &fault)
               : 0;
}

static int core_forward(OpCall *c)
{
    const void *b = array_in(c, 1);
    return b ? solve_into(c, matrices_of(op_input(c, 1)), array_in(c, 0), b) : -1;
}

static const TensorOp core;

static Tensor *solved(Tensor *a, Tensor *b, bool check, Tensor **info)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&core, (Tensor *[]){ a, b }, 2, &(CoreParams){ check }, SITE, y, 2);
    if (info) *info = y[1];
    return y[0];
}

static Tensor *core_solve(Tensor *a, Tensor *b) { return solved(a, b, true, NULL); }

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const bool check = ((const CoreParams *)op_params(c))->check;
    dx[1] = solved(tensor_mT(op_saved(c, 0)), dy, check, NULL);
    if (op_wants(c, 0)) dx[0] = tensor_neg(tensor_matmul(dx[1], tensor_mT(op_saved_output(c, 0))));
    return dx[1] && (dx[0] || !op_wants(c, 0)) ? 0 : -1;
}

static const TensorOp core = { .name = "solve",
                               .autocast = AUTOCAST_CPU_F32,
                               .arity = 2,
                               .outputs = 2,
                               .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                               .params = sizeof(CoreParams),
                               .shape = core_shape,
                               .forward = core_forward,
                               .backward = core_backward };

/* ---- a^-1 ------------------------------------------------------------------------------------ */

static int inverse_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    return op_set_output(c, 0, shape_of(a), (TensorDtype)a->dtype) ||
                   op_set_output(c, 1, (TensorShape){ a->ndim - 2, a->shape }, TENSOR_I32)
               ? -1
               : 0;
}

static int inverse_forward(OpCall *c)
{
    return solve_into(c, matrices_of(op_input(c, 0)), array_in(c, 0), NULL);
}

static int inverse_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *turned = tensor_mT(op_saved_output(c, 0));
    dx[0] = tensor_neg(tensor_matmul(turned, tensor_matmul(dy, turned)));
    return dx[0] ? 0 : -1;
}

static const TensorOp core_inverse = { .name = "solve",
                                       .autocast = AUTOCAST_CPU_F32,
                                       .arity = 1,
                                       .outputs = 2,
                                       .keep = KEEP_OUTPUT(0),
                                       .params = sizeof(CoreParams),
                                       .shape = inverse_shape,
                                       .forward = inverse_forward,
                                       .backward = inverse_backward };

/* ---- the ops --------------------------------------------------------------------------------- */

static int check_system(OpCall *c, bool left)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    if (check_square(c, 0)) return -1;
    const int64_t n = a->shape[a->ndim - 1];
    if (b->ndim && is_vectors(a, b)) {
        if (!left)
            return op_fail(c, TENSOR_ESHAPE, "%s, %s: x a = b takes matrices, not vectors", S(a), S(b));
        return b->shape[b->ndim - 1] == n
                   ? 0
                   : op_fail(c, TENSOR_ESHAPE, "%s, %s: want vectors of %lld", S(a), S(b), (long long)n);
    }
    if (check_matrix(c, 1)) return -1;
    if (b->shape[b->ndim - 1 - left] != n)
        return op_fail(c, TENSOR_ESHAPE, "%s, %s: b must have %lld %s", S(a), S(b), (long long)n,
                       left ? "rows" : "columns");
    return check_batches(c, 0, 1);
}

static int solve_shape(OpCall *c) { return check_system(c, ((const TensorSolveArgs *)op_params(c))->left); }
static int solve_ex_shape(OpCall *c)
{
    return check_system(c, ((const TensorSolveExArgs *)op_params(c))->left);
}

/* info, of the joint batch, for the batch of a: along the dims that a was repeated, all are the same. */
static Tensor *info_of(const Tensor *a, Tensor *info)
{
    const TensorShape batch = { a->ndim - 2, a->shape };
    while (info && info->ndim > batch.ndim)
        info = info->shape[0] ? tensor_select(info, 0, 0) : zeros_on(batch, TENSOR_I32, a->place);
    for (int i = 0; info && i < batch.ndim; i++)
        if (info->shape[i] != batch.dim[i])
            info = info->shape[i] ? tensor_narrow(info, i, 0, 1) : zeros_on(batch, TENSOR_I32, a->place);
    return info ? tensor_clone(info) : NULL;
}

static Tensor *solution(OpCall *c, bool left, bool check, Tensor **info)
{
    Tensor *a = in_wide(c, 0), *b = in_wide(c, 1);
    if (!a || !b) return NULL;
    const bool vectors = is_vectors(a, b);
    if (vectors) b = tensor_unsqueeze(b, -1);
    if (!left) a = tensor_mT(a), b = tensor_mT(b);
    expand_batches(&a, &b);
    Tensor *x = solved(a, b, check, info);
    if (!left) x = tensor_mT(x);
    return vectors ? tensor_squeeze(x, -1) : x;
}

static int solve_compose(OpCall *c)
{
    return set_rounded(c, 0, solution(c, ((const TensorSolveArgs *)op_params(c))->left, true, NULL));
}

static int solve_ex_compose(OpCall *c)
{
    const TensorSolveExArgs *p = op_params(c);
    Tensor *info = NULL;
    if (set_rounded(c, 0, solution(c, p->left, p->check_errors, &info))) return -1;
    return op_set_result(c, 1, info_of(op_input(c, 0), info));
}

static Tensor *inverse(OpCall *c, bool check, Tensor **info)
{
    Tensor *a = in_wide(c, 0), *y[2] = { NULL, NULL };
    op_apply(&core_inverse, &a, 1, &(CoreParams){ check }, SITE, y, 2);
    if (info) *info = y[1];
    return y[0];
}

static int inv_compose(OpCall *c) { return set_rounded(c, 0, inverse(c, true, NULL)); }

static int inv_ex_compose(OpCall *c)
{
    Tensor *info = NULL, *x = inverse(c, ((const TensorInvExArgs *)op_params(c))->check_errors, &info);
    return set_rounded(c, 0, x) || op_set_result(c, 1, info) ? -1 : 0;
}

static int square_shape(OpCall *c) { return check_square(c, 0); }

static const OpField fields[] = { OP_OPTION(TensorSolveArgs, left), { 0 } };
static const OpField solve_ex_fields[] = { OP_OPTION(TensorSolveExArgs, left, check_errors), { 0 } };
static const OpField inv_ex_fields[] = { OP_OPTION(TensorInvExArgs, check_errors), { 0 } };

const TensorOp op_solve = {
    .name = "solve",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "x with a x = b, or x a = b",
    .gradient = "db = a^-T g, da = -db x^T",
    .arity = 2,
    PARAMS(TensorSolveArgs, tensor_solve_defaults, fields),
    .shape = solve_shape,
    .compose = solve_compose,
    .flags = OP_FLOAT_INPUTS | OP_ONE_DTYPE,
    .torch = "linalg.solve",
    .samples = "2x2,2x1; 3x3,3x2; 3x3,3; 2x2x2,2x2; 2x2x2,2x1; 2x1x2x2,3x2x2; 2x2,3x2 {left=0}; 1x1:1..2,1; "
               "0x0,0x2; 2x2,2x0; 0x2x2,2x1",
    .errors = "2x3,2x1 ! ESHAPE; 2x2,3x1 ! ESHAPE; 3,3x1 ! ESHAPE; 2x2x2,3x2x1 ! ESHAPE; 2x2,2 {left=0} ! "
              "ESHAPE; 2x2,3 ! ESHAPE; 2x2:0..0,2x1 ! EVALUE; 2x2@i64,2x1 ! EDTYPE; 2x2,2x1@i64 ! EDTYPE",
};
const TensorOp op_inv = {
    .name = "inv",
    .autocast = AUTOCAST_CPU_F32,
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
const TensorOp op_solve_ex = {
    .name = "solve_ex",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with a x = b, or x a = b, and 0 or the pivot that is zero (i32): x is NaN there",
    .gradient = "db = a^-T g, da = -db x^T",
    .arity = 2,
    .outputs = 2,
    PARAMS(TensorSolveExArgs, tensor_solve_ex_defaults, solve_ex_fields),
    .shape = solve_ex_shape,
    .compose = solve_ex_compose,
    .flags = OP_FLOAT_INPUTS | OP_ONE_DTYPE,
    .torch = "linalg.solve_ex",
    .samples =
        "2x2,2x1; 3x3,3; 2x1x2x2,3x2x2; 2x2,3x2 {left=0}; 2x2,3x2x1; 0x0,0x2; 2x2,2x0; 0x2x2,2x1; 2x2,0x2x1; "
        "1x2x2,0x2x1",
    .errors =
        "2x3,2x1 ! ESHAPE; 2x2,3x1 ! ESHAPE; 2x2:0..0,2x1 {check_errors=1} ! EVALUE; 2x2@i64,2x1 ! EDTYPE",
};
const TensorOp op_inv_ex = {
    .name = "inv_ex",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "the inverse matrix, and 0 or the pivot that is zero (i32): the inverse is NaN there",
    .gradient = "da = -y^T g y^T",
    .arity = 1,
    .outputs = 2,
    PARAMS(TensorInvExArgs, tensor_inv_ex_defaults, inv_ex_fields),
    .shape = square_shape,
    .compose = inv_ex_compose,
    .flags = OP_FLOAT_INPUTS,
    .torch = "linalg.inv_ex",
    .samples = "2x2; 3x3; 2x2x2; 2x0x0; 0x2x2; 1x1:1..2",
    .errors = "3 ! ESHAPE; 2x3 ! ESHAPE; 2x2:0..0 {check_errors=1} ! EVALUE; 2x2@i64 ! EDTYPE",
};
REGISTER_OPS(&op_solve, &op_inv, &op_solve_ex, &op_inv_ex);

/* ---- determinants ---------------------------------------------------------------------------- */

/* Rank 0 or more: x's shape without its matrices. */
static int set_numbers(OpCall *c, int k)
{
    const Tensor *x = op_input(c, 0);
    return op_set_output(c, k, (TensorShape){ x->ndim - 2, x->shape }, (TensorDtype)x->dtype);
}

static int det_shape(OpCall *c) { return set_numbers(c, 0); }
static int slogdet_shape(OpCall *c) { return set_numbers(c, 0) || set_numbers(c, 1) ? -1 : 0; }

static int det_forward(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    Tensor *singular = own(new_tensor((TensorShape){ x->ndim - 2, x->shape }, TENSOR_BOOL, &cpu_place));
    const void *a = array_in(c, 0);
    void *det = array_out(c, 0);
    if (!singular || !a || !det) return -1;
    return LINALG(op_input(c, 0)->dtype, det, c->name, matrices_of(x), a, det, singular->data)
               ? -1
               : op_save(c, singular);
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
    Tensor *x = own(new_tensor(SHAPE(a->shape[a->ndim - 1], a->shape[a->ndim - 1]), TENSOR_F64, a->place));
    if (x) host_identity(x->data, a->shape[a->ndim - 1]), host_count_diagonal(x->data, a->shape[a->ndim - 1]);
    return tensor_to(x, (TensorDtype)a->dtype);
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

static int slogdet_forward(OpCall *c)
{
    const void *a = array_in(c, 0);
    void *sign = array_out(c, 0), *log = array_out(c, 1);
    if (!a || !sign || !log) return -1;
    return LINALG(op_input(c, 0)->dtype, slogdet, c->name, matrices_of(op_input(c, 0)), a, sign, log);
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
                                   .autocast = AUTOCAST_AS_IS,
                                   .arity = 1,
                                   .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                                   .shape = det_shape,
                                   .forward = det_forward,
                                   .backward = det_backward };
static const TensorOp core_slogdet = { .name = "slogdet",
                                       .autocast = AUTOCAST_AS_IS,
                                       .arity = 1,
                                       .outputs = 2,
                                       .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                                       .shape = slogdet_shape,
                                       .forward = slogdet_forward,
                                       .backward = slogdet_backward };

static int det_compose(OpCall *c) { return linalg_compose(c, &core_det); }

static int slogdet_compose(OpCall *c)
{
    Tensor *x = in_wide(c, 0), *y[2] = { NULL, NULL };
    op_apply(&core_slogdet, &x, 1, NULL, c->site, y, 2);
    return set_rounded(c, 0, y[0] ? tensor_detach(y[0]) : NULL) || set_rounded(c, 1, y[1]) ? -1 : 0;
}

static int logdet_compose(OpCall *c)
{
    Tensor *x = in_wide(c, 0), *y[2] = { NULL, NULL };
    if (op_apply(&core_slogdet, &x, 1, NULL, c->site, y, 2) < 0) return -1;
    return set_rounded(c, 0, tensor_where(tensor_lt_scalar(y[0], 0), tensor_full_like(y[1], NAN), y[1]));
}

#define DET                                                      \
    .arity = 1, .shape = square_shape, .flags = OP_FLOAT_INPUTS, \
    .errors = "3 ! ESHAPE; 2x3 ! ESHAPE; ! ESHAPE; 2x2@i64 ! EDTYPE"

const TensorOp op_det = {
    .name = "det",
    .autocast = AUTOCAST_AS_IS,
    .summary = "determinant",
    .gradient = "da = g times the cofactors of a",
    .compose = det_compose,
    DET,
    .torch = "linalg.det",
    .samples = "2x2; 3x3; 2x2x2; 1x1; 0x0; 2x0x0; 0x2x2; 2x2:1..1; 4x4",
};
const TensorOp op_slogdet = {
    .name = "slogdet",
    .autocast = AUTOCAST_AS_IS,
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
    .autocast = AUTOCAST_AS_IS,
    .summary = "log det a; NaN, with gradient 0, where det a < 0",
    .gradient = "da = g a^-T",
    .compose = logdet_compose,
    DET,
    .samples = "1x1:1..2; 2x1x1:1..2; 0x0; 2x0x0; 0x2x2",
};
REGISTER_OPS(&op_det, &op_slogdet, &op_logdet);

/* ---- public ---------------------------------------------------------------------------------- */

Tensor *tensor_solve_args(TensorSolveArgs a) { return APPLY(&op_solve, &a, a.a, a.b); }

TensorSolveEx tensor_solve_ex_args(TensorSolveExArgs a)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&op_solve_ex, (Tensor *[]){ a.a, a.b }, 2, &a, SITE, y, 2);
    return (TensorSolveEx){ y[0], y[1] };
}

TensorInvEx tensor_inv_ex_args(TensorInvExArgs a)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&op_inv_ex, &a.a, 1, &a, SITE, y, 2);
    return (TensorInvEx){ y[0], y[1] };
}

Tensor *tensor_inv(Tensor *a) { return APPLY(&op_inv, NULL, a); }

Tensor *tensor_inverse(Tensor *a) { return APPLY_AS(&op_inv, __func__, NULL, a); }

Tensor *tensor_det(Tensor *a) { return APPLY(&op_det, NULL, a); }
Tensor *tensor_logdet(Tensor *a) { return APPLY(&op_logdet, NULL, a); }

TensorSlogdet tensor_slogdet(Tensor *a)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&op_slogdet, &a, 1, NULL, SITE, y, 2);
    return (TensorSlogdet){ y[0], y[1] };
}
