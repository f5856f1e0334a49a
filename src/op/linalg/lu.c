/* lu.c - factors by row exchanges, a = p l u, and systems solved with them.
 *
 *   lu         p, l of unit diagonal, u
 *   lu_factor  l and u in one matrix, and the exchanges
 *   lu_solve   x = u^-1 l^-1 p^T b
 *
 * Of the packed factors [m, n], k = min(m, n), l1 and u1 their first k rows and columns, u2 and l2 the rest:
 *
 *   da = p [ l1^-T h u1^-T   l1^-T du2 ]     h = tril(l1^T dl1 - du2 u2^T) below the diagonal
 *          [ dl2 u1^-T                 ]       + triu(du1 u1^T - l2^T dl2) */
#include "matrices.h"
#include "op/shape/shape_op.h"

const TensorLuSolveArgs tensor_lu_solve_defaults = { TENSOR_LU_SOLVE_DEFAULTS };

typedef struct LuParams {
    bool singular_too; /* a zero on the diagonal of u is no error */
} LuParams;

/* ---- factors --------------------------------------------------------------------------------- */

/* [..., n] of another dtype. */
static int set_vectors(OpCall *c, int k, const Tensor *a, int64_t n, TensorDtype dtype)
{
    int64_t shape[TENSOR_MAX_DIMS];
    memcpy(shape, a->shape, sizeof shape);
    shape[a->ndim - 2] = n;
    return op_set_output(c, k, (TensorShape){ a->ndim - 1, shape }, dtype);
}

/* Results: the packed factors, the exchanges from 1 on (i32), and which row of a each row is of (i64). */
static int core_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    const Matrices s = matrices_of(a);
    if (op_set_output(c, 0, shape_of(a), (TensorDtype)a->dtype)) return -1;
    return set_vectors(c, 1, a, least(s.m, s.n), TENSOR_I32) || set_vectors(c, 2, a, s.m, TENSOR_I64) ? -1
                                                                                                      : 0;
}

static int core_forward(OpCall *c)
{
    const Matrices s = matrices_of(op_input(c, 0));
    const bool singular_too = ((const LuParams *)op_params(c))->singular_too;
    MatrixFault fault = { 0 };
    const void *a = array_in(c, 0);
    void *lu = array_out(c, 0);
    if (!a || !lu) return -1;
    return LINALG(op_input(c, 0)->dtype, lu, c->name, s, a, lu, op_output(c, 1)->data, op_output(c, 2)->data,
                  singular_too ? NULL : &fault)
               ? matrix_fault(c, &fault)
               : 0;
}

/* Row i of x as row rows[i], for rows [..., m]; or the other way round. */
static Tensor *exchange_rows(Tensor *x, Tensor *rows, bool back)
{
    Tensor *at = back ? rows : tensor_argsort(rows);
    if (!x || !at) return NULL;
    return tensor_gather(x, -2, tensor_expand(tensor_unsqueeze(at, -1), shape_of(x)));
}

static Tensor *part(Tensor *x, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    return tensor_narrow(tensor_narrow(x, -2, row, rows), -1, column, columns);
}

/* h of the first lines. */
static Tensor *inner(Tensor *lu, Tensor *g, Matrices s, int64_t k)
{
    Tensor *first = part(lu, 0, k, 0, k), *g1 = part(g, 0, k, 0, k),
           *eye = first ? identity_like(first) : NULL;
    Tensor *l = eye ? tensor_add(tensor_tril(first, .diagonal = -1), eye) : NULL, *u = tensor_triu(first);
    Tensor *below = tensor_matmul(tensor_mT(l), tensor_tril(g1, .diagonal = -1)),
           *above = tensor_matmul(tensor_triu(g1), tensor_mT(u));
    if (s.n > k)
        below = tensor_sub(below,
                           tensor_matmul(part(g, 0, k, k, s.n - k), tensor_mT(part(lu, 0, k, k, s.n - k))));
    if (s.m > k)
        above = tensor_sub(above,
                           tensor_matmul(tensor_mT(part(lu, k, s.m - k, 0, k)), part(g, k, s.m - k, 0, k)));
    return tensor_add(tensor_tril(below, .diagonal = -1), tensor_triu(above));
}

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *lu = op_saved_output(c, 0), *rows = op_saved_output(c, 2);
    if (!lu || !rows) return -1;
    const Matrices s = matrices_of(lu);
    const int64_t k = least(s.m, s.n);
    Tensor *first = tensor_mT(part(lu, 0, k, 0, k));
    Tensor *h = core_triangular(first, inner(lu, dy, s, k), true, true, true);
    h = core_triangular(first, h, false, false, false);
    if (s.n > k)
        h = tensor_cat(TENSORS(h, core_triangular(first, part(dy, 0, k, k, s.n - k), true, true, true)), -1);
    if (s.m > k)
        h = tensor_cat(TENSORS(h, core_triangular(first, part(dy, k, s.m - k, 0, k), false, false, false)),
                       -2);
    dx[0] = exchange_rows(h, rows, false);
    return dx[0] ? 0 : -1;
}

static const TensorOp core = { .name = "lu",
                               .autocast = AUTOCAST_AS_IS,
                               .arity = 1,
                               .outputs = 3,
                               .keep = KEEP_OUTPUT(0) | KEEP_OUTPUT(2),
                               .params = sizeof(LuParams),
                               .shape = core_shape,
                               .forward = core_forward,
                               .backward = core_backward };

static int factors(OpCall *c, bool singular_too, Tensor *f[3])
{
    Tensor *a = in_wide(c, 0);
    return op_apply(&core, &a, 1, &(LuParams){ singular_too }, c->site, f, 3) < 0 ? -1 : 0;
}

static int lu_compose(OpCall *c)
{
    Tensor *f[3];
    const Matrices s = matrices_of(op_input(c, 0));
    const int64_t k = least(s.m, s.n);
    if (factors(c, true, f)) return -1;
    const char *here = f[0]->place->name;
    Tensor *column =
        tensor_to_device(tensor_unsqueeze(tensor_arange(0, (double)s.m, 1, TENSOR_I64), 1), here);
    Tensor *p = tensor_eq(column, tensor_unsqueeze(f[2], -2));
    Tensor *l = tensor_tril(tensor_narrow(f[0], -1, 0, k), .diagonal = -1),
           *u = tensor_narrow(f[0], -2, 0, k);
    if (l) l = tensor_add(l, tensor_to_device(tensor_eye(s.m, k, (TensorDtype)l->dtype), here));
    if (op_set_result(c, 0, p ? tensor_to(p, (TensorDtype)op_input(c, 0)->dtype) : NULL)) return -1;
    return set_rounded(c, 1, l) || set_rounded(c, 2, tensor_triu(u)) ? -1 : 0;
}

static int factor_compose(OpCall *c)
{
    Tensor *f[3];
    return factors(c, false, f) || set_rounded(c, 0, f[0]) || op_set_result(c, 1, f[1]) ? -1 : 0;
}

static int shape(OpCall *c) { return check_matrix(c, 0); }

/* ---- lu_solve -------------------------------------------------------------------------------- */

static int solve_shape(OpCall *c)
{
    const TensorLuSolveArgs *p = op_params(c);
    const Tensor *lu = op_input(c, 0), *pivots = op_input(c, 1), *b = op_input(c, 2);
    if (check_square(c, 0) || check_matrix(c, 2)) return -1;
    if (pivots->dtype != TENSOR_I32)
        return op_fail(c, TENSOR_EDTYPE, "pivots are %s: want the i32 of lu_factor",
                       tensor_dtype_name((TensorDtype)pivots->dtype));
    const int64_t n = lu->shape[lu->ndim - 1];
    if (!shape_equal(shape_of(pivots), (TensorShape){ lu->ndim - 1, lu->shape }))
        return op_fail(c, TENSOR_ESHAPE, "lu %s, pivots %s: want %s", S(lu), S(pivots),
                       shape_text((TensorShape){ lu->ndim - 1, lu->shape }));
    if (b->shape[b->ndim - 1 - p->left] != n)
        return op_fail(c, TENSOR_ESHAPE, "%s, %s: b must have %lld %s", S(lu), S(b), (long long)n,
                       p->left ? "rows" : "columns");
    return check_batches(c, 0, 2);
}

/* Which row of a each row of lu is of, as [..., n]; NULL with EVALUE: a pivot outside its range. */
static Tensor *rows_of(OpCall *c)
{
    Tensor *given = op_input(c, 1);
    const Tensor *pivots = host_copy(given, TENSOR_I32);
    Tensor *rows = own(new_tensor(shape_of(given), TENSOR_I64, &cpu_place));
    if (!pivots || !rows) return NULL;
    if (!linalg_rows(matrices_of(op_input(c, 0)), pivots->data, rows->data))
        return carried(rows, given->place);
    return op_fail(c, TENSOR_EVALUE, "%s: a pivot is outside its range: want those of lu_factor", S(given)),
           NULL;
}

static int solve_compose(OpCall *c)
{
    const TensorLuSolveArgs *p = op_params(c);
    const bool turned = p->adjoint == p->left; /* a^T x = b; x a = b is a^T x^T = b^T */
    Tensor *lu = in_wide(c, 0), *b = in_wide(c, 2), *rows = rows_of(c);
    if (!lu || !b || !rows) return -1;
    if (!p->left) b = tensor_mT(b);
    expand_batches(&lu, &b);
    if (!lu || !b) return -1;
    if (!turned) b = exchange_rows(b, rows, true);
    Tensor *a = turned ? tensor_mT(lu) : lu;
    Tensor *x = core_triangular(a, b, false, true, !turned);
    x = core_triangular(a, x, true, true, turned);
    if (turned) x = exchange_rows(x, rows, false);
    return set_rounded(c, 0, p->left ? x : tensor_mT(x));
}

static const OpField solve_fields[] = { OP_OPTION(TensorLuSolveArgs, left, adjoint), { 0 } };

#define LU \
    .arity = 1, .shape = shape, .flags = OP_FLOAT_INPUTS, .errors = "3 ! ESHAPE; ! ESHAPE; 3x2@i64 ! EDTYPE"

const TensorOp op_lu = {
    .name = "lu",
    .autocast = AUTOCAST_AS_IS,
    .summary = "p of 0 and 1, l of unit diagonal and u with a = p l u",
    .gradient = "da = p l^-T (tril(l^T dl, -1) + triu(du u^T)) u^-T for square a",
    .outputs = 3,
    .compose = lu_compose,
    .torch = "linalg.lu",
    LU,
    .samples = "2x2; 3x3; 3x2; 2x4; 2x3x3; 1x1; 0x3; 3x0; 0x2x2",
};
const TensorOp op_lu_factor = {
    .name = "lu_factor",
    .autocast = AUTOCAST_AS_IS,
    .summary = "l and u in one matrix, and which rows were exchanged (i32, from 1)",
    .gradient = "da = p l^-T (tril(l^T g, -1) + triu(g u^T)) u^-T for square a",
    .outputs = 2,
    .compose = factor_compose,
    .torch = "linalg.lu_factor",
    LU,
    .samples = "2x2; 3x3; 3x2; 2x4; 2x3x3; 1x1; 0x3; 3x0; 0x2x2",
};
const TensorOp op_lu_solve = {
    .name = "lu_solve",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with a x = b, or x a = b, from the factors and pivots of a",
    .gradient = "db = a^-T g, dlu through the triangular systems",
    .arity = 3,
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorLuSolveArgs, tensor_lu_solve_defaults, solve_fields),
    .shape = solve_shape,
    .compose = solve_compose,
    .flags = OP_FLOAT_INPUTS | OP_ONE_DTYPE,
    .torch = "linalg.lu_solve",
    .samples =
        "2x2:.5..1,2@i32:2..2,2x1; 2x2:.5..1,2@i32:2..2,2x3 {adjoint=1}; 2x2:.5..1,2@i32:2..2,3x2 {left=0}; "
        "2x2:.5..1,2@i32:2..2,1x2 {left=0 adjoint=1}; 3x2x2:.5..1,3x2@i32:2..2,2x1; "
        "2x2:.5..1,2@i32:2..2,3x2x1; 0x0,0@i32,0x2; 2x2:.5..1,2@i32:2..2,2x0",
    .errors =
        "2x3,2@i32,2x1 ! ESHAPE; 2x2,3@i32,2x1 ! ESHAPE; 2x2,2@i32:2..2,3x1 ! ESHAPE; 2x2,2@i64:2..2,2x1 ! "
        "EDTYPE; 2x2,2@i32:3..3,2x1 ! EVALUE; 2x2,2@i32:0..0,2x1 ! EVALUE; 2x2,2@i32:2..2,2 ! ESHAPE",
};
REGISTER_OPS(&op_lu, &op_lu_factor, &op_lu_solve);

TensorLu tensor_lu(Tensor *a)
{
    Tensor *y[3] = { NULL, NULL, NULL };
    op_apply(&op_lu, &a, 1, NULL, SITE, y, 3);
    return (TensorLu){ y[0], y[1], y[2] };
}

TensorLuFactor tensor_lu_factor(Tensor *a)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&op_lu_factor, &a, 1, NULL, SITE, y, 2);
    return (TensorLuFactor){ y[0], y[1] };
}

Tensor *tensor_lu_solve_args(TensorLuSolveArgs a) { return APPLY(&op_lu_solve, &a, a.lu, a.pivots, a.b); }
