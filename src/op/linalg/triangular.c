/* triangular.c - triangular systems, and Cholesky's factor.
 *
 *   solve_triangular   x = a^-1 b               db = a^-T g, da = -(db x^T) of a's triangle
 *   cholesky           a = l l^T                da = l^-T s l^-1 / 2
 *                                               s symmetric with the lower triangle of l^T g */
#include "matrices.h"

const TensorSolveTriangularArgs tensor_solve_triangular_defaults = { TENSOR_SOLVE_TRIANGULAR_DEFAULTS };
const TensorTriangularSolveArgs tensor_triangular_solve_defaults = { TENSOR_TRIANGULAR_SOLVE_DEFAULTS };
const TensorCholeskyArgs tensor_cholesky_defaults = { TENSOR_CHOLESKY_DEFAULTS };
const TensorCholeskySolveArgs tensor_cholesky_solve_defaults = { TENSOR_CHOLESKY_SOLVE_DEFAULTS };

static const TensorOp core_triangular_op;

/* ---- triangular systems ---------------------------------------------------------------------- */

Tensor *core_triangular(Tensor *a, Tensor *b, bool upper, bool left, bool unit)
{
    const TensorSolveTriangularArgs p = {
        .upper = upper, .left = left, .unitriangular = unit, TENSOR_FROM_DEFAULTS
    };
    return APPLY(&core_triangular_op, &p, a, b);
}

static int core_shape(OpCall *c)
{
    return op_set_output(c, 0, shape_of(op_input(c, 1)), (TensorDtype)op_input(c, 1)->dtype);
}

static int core_forward(OpCall *c)
{
    const TensorSolveTriangularArgs *p = op_params(c);
    const void *a = array_in(c, 0), *b = array_in(c, 1);
    void *x = array_out(c, 0);
    if (!a || !b || !x) return -1;
    memcpy(x, b, (size_t)op_count(c, 1) * dtype_size(op_input(c, 1)->dtype));
    return LINALG(op_input(c, 0)->dtype, triangular, c->name, matrices_of(op_input(c, 1)), a, x, p->upper,
                  p->left, p->unitriangular);
}

static Tensor *triangle(Tensor *x, bool upper, bool strict)
{
    return upper ? tensor_triu(x, .diagonal = strict) : tensor_tril(x, .diagonal = -strict);
}

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorSolveTriangularArgs *p = op_params(c);
    dx[1] = core_triangular(tensor_mT(op_saved(c, 0)), dy, !p->upper, p->left, p->unitriangular);
    if (op_wants(c, 0)) {
        Tensor *x = tensor_mT(op_saved_output(c, 0));
        dx[0] = tensor_neg(triangle(p->left ? tensor_matmul(dx[1], x) : tensor_matmul(x, dx[1]), p->upper,
                                    p->unitriangular));
    }
    return dx[1] && (dx[0] || !op_wants(c, 0)) ? 0 : -1;
}

static const TensorOp core_triangular_op = {
    .name = "solve_triangular",
    .autocast = AUTOCAST_CPU_F32,
    .arity = 2,
    .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
    .params = sizeof(TensorSolveTriangularArgs),
    .shape = core_shape,
    .forward = core_forward,
    .backward = core_backward,
};

static int check_system(OpCall *c, bool left)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    if (check_square(c, 0) || check_matrix(c, 1)) return -1;
    const int64_t n = a->shape[a->ndim - 1];
    if (b->shape[b->ndim - 1 - left] != n)
        return op_fail(c, TENSOR_ESHAPE, "%s, %s: b must have %lld %s", S(a), S(b), (long long)n,
                       left ? "rows" : "columns");
    return check_batches(c, 0, 1);
}

static int triangular_shape(OpCall *c)
{
    return check_system(c, ((const TensorSolveTriangularArgs *)op_params(c))->left);
}

static int triangular_compose(OpCall *c)
{
    const TensorSolveTriangularArgs *p = op_params(c);
    Tensor *a = in_wide(c, 0), *b = in_wide(c, 1);
    expand_batches(&a, &b);
    return set_rounded(c, 0, core_triangular(a, b, p->upper, p->left, p->unitriangular));
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

static int factor_shape(OpCall *c) { return check_square(c, 0) ? -1 : op_same_shape(c); }

static int factor_forward(OpCall *c)
{
    const bool upper = ((const TensorCholeskyArgs *)op_params(c))->upper;
    MatrixFault fault = { 0 };
    const void *a = array_in(c, 0);
    void *l = array_out(c, 0);
    if (!a || !l) return -1;
    return LINALG(op_input(c, 0)->dtype, cholesky, c->name, matrices_of(op_input(c, 0)), a, l, upper, &fault)
               ? matrix_fault(c, &fault)
               : 0;
}

static int factor_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const bool upper = ((const TensorCholeskyArgs *)op_params(c))->upper;
    Tensor *l = op_saved_output(c, 0), *g = dy;
    if (upper) l = tensor_mT(l), g = tensor_mT(g);
    Tensor *lower = tensor_tril(tensor_matmul(tensor_mT(l), g));
    Tensor *s = tensor_add(lower, tensor_mT(tensor_tril(lower, .diagonal = -1)));
    Tensor *half = core_triangular(tensor_mT(l), tensor_mul_scalar(s, .5), true, true, false);
    dx[0] = core_triangular(l, half, false, false, false);
    return dx[0] ? 0 : -1;
}

static const TensorOp core_cholesky = { .name = "cholesky",
                                        .autocast = AUTOCAST_CPU_F32,
                                        .arity = 1,
                                        .keep = KEEP_OUTPUT(0),
                                        .params = sizeof(TensorCholeskyArgs),
                                        .shape = factor_shape,
                                        .forward = factor_forward,
                                        .backward = factor_backward };

static int cholesky_shape(OpCall *c) { return check_square(c, 0); }
static int cholesky_compose(OpCall *c) { return linalg_compose(c, &core_cholesky); }

/* Inputs are a triangle and b, as everywhere here; the public function takes b first. */
static int cholesky_solve_shape(OpCall *c) { return check_system(c, true); }

static int cholesky_solve_compose(OpCall *c)
{
    const bool upper = ((const TensorCholeskySolveArgs *)op_params(c))->upper;
    Tensor *l = in_wide(c, 0), *b = in_wide(c, 1);
    expand_batches(&l, &b);
    Tensor *other = tensor_mT(l);
    Tensor *y = core_triangular(upper ? other : l, b, false, true, false);
    return set_rounded(c, 0, core_triangular(upper ? l : other, y, true, true, false));
}

/* ---- the ops --------------------------------------------------------------------------------- */

static const OpField triangular_fields[] = { OP_OPTION(TensorSolveTriangularArgs, upper, left, unitriangular),
                                             { 0 } };
static const OpField cholesky_fields[] = { OP_OPTION(TensorCholeskyArgs, upper), { 0 } };
static const OpField cholesky_solve_fields[] = { OP_OPTION(TensorCholeskySolveArgs, upper), { 0 } };

const TensorOp op_solve_triangular = {
    .name = "solve_triangular",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "x with a x = b, or x a = b, for the triangle of a",
    .gradient = "db = a^-T g, da = -(db x^T) of the triangle",
    .arity = 2,
    PARAMS(TensorSolveTriangularArgs, tensor_solve_triangular_defaults, triangular_fields),
    .shape = triangular_shape,
    .compose = triangular_compose,
    .flags = OP_FLOAT_INPUTS | OP_ONE_DTYPE,
    .torch = "linalg.solve_triangular",
    .samples =
        "2x2:.5..1,2x1; 3x3:.5..1,3x2 {upper=1}; 3x3:.5..1,2x3 {left=0}; 2x2:.5..1,3x2 {upper=1 left=0}; "
        "3x3,3x2 {unitriangular=1}; 2x1x2x2:.5..1,3x2x2; 2x2:.5..1,2x2x1 {upper=1 unitriangular=1}; 0x0,0x2; "
        "2x2:.5..1,2x0",
    .errors = "2x3,2x1 ! ESHAPE; 2x2,3x1 ! ESHAPE; 2x2,2 ! ESHAPE; 2x2x2,3x2x1 ! ESHAPE; 2x2,2x3 {left=0} ! "
              "ESHAPE; 2x2,2x1@i64 ! EDTYPE",
};
const TensorOp op_cholesky = {
    .name = "cholesky",
    .autocast = AUTOCAST_CPU_F32,
    .summary =
        "lower triangular y with y y^T = a, symmetric; its gradient is the symmetric one, not the numerical",
    .gradient = "da = y^-T s y^-1 / 2, s symmetric with the lower triangle of y^T g",
    .arity = 1,
    PARAMS(TensorCholeskyArgs, tensor_cholesky_defaults, cholesky_fields),
    .shape = cholesky_shape,
    .compose = cholesky_compose,
    .flags = OP_FLOAT_INPUTS | OP_NO_GRADCHECK,
    .torch = "linalg.cholesky",
    .samples = "1x1:1..2; 2x1x1:1..2 {upper=1}; 0x0; 2x0x0; 0x2x2",
    .errors = "3 ! ESHAPE; 2x3 ! ESHAPE; 2x2:-2..-1 ! EVALUE; 2x2@i64 ! EDTYPE",
};
const TensorOp op_cholesky_solve = {
    .name = "cholesky_solve",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "x with l l^T x = b (upper: l^T l x = b)",
    .gradient =
        "h = (l l^T)^-1 g: db = h, dl = -tril((h x^T + x h^T) l); upper: dl = -triu(l (h x^T + x h^T))",
    .arity = 2,
    PARAMS(TensorCholeskySolveArgs, tensor_cholesky_solve_defaults, cholesky_solve_fields),
    .shape = cholesky_solve_shape,
    .compose = cholesky_solve_compose,
    .flags = OP_FLOAT_INPUTS | OP_ONE_DTYPE,
    .torch = "cholesky_solve",
    .samples = "2x2:.5..1,2x1; 3x3:.5..1,3x2 {upper=1}; 2x1x2x2:.5..1,3x2x1; 0x0,0x2; 2x2:.5..1,2x0",
    .errors = "2x3,2x1 ! ESHAPE; 2x2,3x1 ! ESHAPE; 2x2,2 ! ESHAPE; 2x2,2x1@i64 ! EDTYPE",
};
REGISTER_OPS(&op_solve_triangular, &op_cholesky, &op_cholesky_solve);

Tensor *tensor_solve_triangular_args(TensorSolveTriangularArgs a)
{
    return APPLY(&op_solve_triangular, &a, a.a, a.b);
}

Tensor *tensor_triangular_solve_args(TensorTriangularSolveArgs a)
{
    const TensorSolveTriangularArgs p = { .upper = a.upper != a.transpose,
                                          .left = true,
                                          .unitriangular = a.unitriangular,
                                          .from_defaults = a.from_defaults };
    return APPLY_AS(&op_solve_triangular, "tensor_triangular_solve", &p,
                    a.transpose && a.a ? tensor_mT(a.a) : a.a, a.b);
}

Tensor *tensor_cholesky_args(TensorCholeskyArgs a) { return APPLY(&op_cholesky, &a, a.a); }

Tensor *tensor_cholesky_solve_args(TensorCholeskySolveArgs a)
{
    return APPLY(&op_cholesky_solve, &a, a.l, a.b);
}

Tensor *tensor_cholesky_inverse_args(TensorCholeskyArgs a)
{
    static const char name[] = "tensor_cholesky_inverse";
    if (check_null(a.a, name, 1)) return NULL;
    const int64_t n = a.a->ndim ? a.a->shape[a.a->ndim - 1] : 0;
    TensorScope scope = tensor_scope_open();
    Tensor *one = scope_failed(scope)
                      ? NULL
                      : tensor_to_device(tensor_eye(n, n, (TensorDtype)a.a->dtype), a.a->place->name);
    const TensorCholeskySolveArgs p = { .upper = a.upper };
    Tensor *y = one ? APPLY_AS(&op_cholesky_solve, name, &p, a.a, one) : NULL;
    return tensor_scope_return(scope, y);
}
