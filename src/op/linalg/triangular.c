/* triangular.c - triangular systems, and Cholesky's factor.
 *
 *   solve_triangular   x = a^-1 b               db = a^-T g, da = -(db x^T) of a's triangle
 *   cholesky           a = l l^T                da = l^-T s l^-1 / 2, s symmetric with the lower triangle of
 * l^T g
 *
 * Our rows are LAPACK's columns: it sees every matrix transposed, and is asked accordingly. */
#include "cpu/linalg/small_matrix.h"
#include "matrices.h"

typedef struct TriangularParams {
    bool upper, left, unitriangular;
} TriangularParams;

static const TensorOp core_triangular_op;

/* ---- triangular systems ---------------------------------------------------------------------- */

Tensor *core_triangular(Tensor *a, Tensor *b, bool upper, bool left, bool unit)
{
    const TriangularParams p = { upper, left, unit };
    return APPLY(&core_triangular_op, &p, a, b);
}

static int core_shape(OpCall *c) { return op_set_output(c, 0, shape_of(op_input(c, 1)), TENSOR_F64); }

static int core_forward(OpCall *c)
{
    const TriangularParams *p = op_params(c);
    const Matrices s = matrices_of(op_input(c, 1));
    const double *a = op_input_f64(c, 0), *b = op_input_f64(c, 1), one = 1;
    double *x = op_output_f64(c, 0);
    const int rows = (int)s.n, columns = (int)s.m, n = p->left ? columns : rows;
    const Lapack *lapack = n > SMALL_MATRIX ? lapack_open(c->op->name) : NULL;
    if ((n > SMALL_MATRIX && !lapack) || !a || !b || !x) return -1;
    if (op_count(c, 1) == 0) return 0;
    memcpy(x, b, (size_t)op_count(c, 1) * sizeof *x);
    for (int64_t i = 0; i < s.batch; i++, a += n * n, x += s.m * s.n) {
        if (!lapack) small_triangular(a, x, s.m, s.n, p->upper, p->left, p->unitriangular);
        else
            lapack->trsm(p->left ? "R" : "L", p->upper ? "L" : "U", "N", p->unitriangular ? "U" : "N", &rows,
                         &columns, &one, a, &n, x, &rows, 1, 1, 1, 1);
    }
    return 0;
}

static Tensor *triangle(Tensor *x, bool upper, bool strict)
{
    return upper ? tensor_triu(x, .diagonal = strict) : tensor_tril(x, .diagonal = -strict);
}

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TriangularParams *p = op_params(c);
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
    .arity = 2,
    .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
    .params = sizeof(TriangularParams),
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
    return check_batches(c);
}

static int triangular_shape(OpCall *c)
{
    return check_system(c, ((const TriangularParams *)op_params(c))->left);
}

static int triangular_compose(OpCall *c)
{
    const TriangularParams *p = op_params(c);
    Tensor *a = in_f64(c, 0), *b = in_f64(c, 1);
    expand_batches(&a, &b);
    return set_rounded(c, 0, core_triangular(a, b, p->upper, p->left, p->unitriangular));
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

typedef struct CholeskyParams {
    bool upper;
} CholeskyParams;

static int factor_shape(OpCall *c) { return check_square(c, 0) ? -1 : op_same_shape(c); }

static void clear_triangle(double *l, int64_t n, bool lower)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); j++) l[i * n + j] = 0;
}

/* The upper factor is the lower one of the transpose, transposed. */
static int64_t factor(const Lapack *lapack, const double *a, double *l, int64_t rows, bool upper,
                      double *room)
{
    const int n = (int)rows;
    int info = 0;
    if (lapack) {
        memcpy(l, a, (size_t)(rows * rows) * sizeof *l);
        lapack->potrf(upper ? "L" : "U", &n, l, &n, &info, 1);
        return info;
    }
    if (upper) transposed(a, rows, rows, room);
    else memcpy(room, a, (size_t)(rows * rows) * sizeof *l);
    const int64_t order = small_cholesky(room, rows);
    if (upper) transposed(room, rows, rows, l);
    else memcpy(l, room, (size_t)(rows * rows) * sizeof *l);
    return order;
}

static int factor_forward(OpCall *c)
{
    const bool upper = ((const CholeskyParams *)op_params(c))->upper;
    const Matrices s = matrices_of(op_input(c, 0));
    const Lapack *lapack = s.m > SMALL_MATRIX ? lapack_open(c->op->name) : NULL;
    const double *a = op_input_f64(c, 0);
    double *l = op_output_f64(c, 0), room[SMALL_MATRIX * SMALL_MATRIX];
    if ((s.m > SMALL_MATRIX && !lapack) || !a || !l) return -1;
    for (int64_t i = 0; i < s.batch && s.m; i++, a += s.m * s.m, l += s.m * s.m) {
        const int64_t order = factor(lapack, a, l, s.m, upper, room);
        if (order)
            return op_fail(c, TENSOR_EVALUE,
                           "%s is not positive-definite: its leading minor of order %lld is not positive",
                           nth_matrix(op_input(c, 0), i), (long long)order);
        clear_triangle(l, s.m, upper);
    }
    return 0;
}

static int factor_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const bool upper = ((const CholeskyParams *)op_params(c))->upper;
    Tensor *l = op_saved_output(c, 0), *g = dy;
    if (upper) l = tensor_mT(l), g = tensor_mT(g);
    Tensor *lower = tensor_tril(tensor_matmul(tensor_mT(l), g));
    Tensor *s = tensor_add(lower, tensor_mT(tensor_tril(lower, .diagonal = -1)));
    Tensor *half = core_triangular(tensor_mT(l), tensor_mul_scalar(s, .5), true, true, false);
    dx[0] = core_triangular(l, half, false, false, false);
    return dx[0] ? 0 : -1;
}

static const TensorOp core_cholesky = { .name = "cholesky",
                                        .arity = 1,
                                        .keep = KEEP_OUTPUT(0),
                                        .params = sizeof(CholeskyParams),
                                        .shape = factor_shape,
                                        .forward = factor_forward,
                                        .backward = factor_backward };

static int cholesky_shape(OpCall *c) { return check_square(c, 0); }
static int cholesky_compose(OpCall *c) { return linalg_compose(c, &core_cholesky); }

/* Inputs are a triangle and b, as everywhere here; the public function takes b first. */
static int cholesky_solve_shape(OpCall *c) { return check_system(c, true); }

static int cholesky_solve_compose(OpCall *c)
{
    const bool upper = ((const CholeskyParams *)op_params(c))->upper;
    Tensor *l = in_f64(c, 0), *b = in_f64(c, 1);
    expand_batches(&l, &b);
    Tensor *other = tensor_mT(l);
    Tensor *y = core_triangular(upper ? other : l, b, false, true, false);
    return set_rounded(c, 0, core_triangular(upper ? l : other, y, true, true, false));
}

/* ---- the ops --------------------------------------------------------------------------------- */

static const OpField triangular_fields[] = { OP_FIELD(OP_BOOL, TriangularParams, upper, "0"),
                                             OP_FIELD(OP_BOOL, TriangularParams, left, "1"),
                                             OP_FIELD(OP_BOOL, TriangularParams, unitriangular, "0"),
                                             { 0 } };
static const OpField cholesky_fields[] = { OP_FIELD(OP_BOOL, CholeskyParams, upper, "0"), { 0 } };

const TensorOp op_solve_triangular = {
    .name = "solve_triangular",
    .summary = "x with a x = b, or x a = b, for the triangle of a",
    .gradient = "db = a^-T g, da = -(db x^T) of the triangle",
    .arity = 2,
    .params = sizeof(TriangularParams),
    .fields = triangular_fields,
    .shape = triangular_shape,
    .compose = triangular_compose,
    .flags = OP_FLOAT_INPUTS | OP_SAME_DTYPE,
    .torch = "linalg.solve_triangular",
    .samples =
        "2x2:.5..1,2x1; 3x3:.5..1,3x2 {upper=1}; 3x3:.5..1,2x3 {left=0}; 2x2:.5..1,3x2 {upper=1 left=0}; "
        "3x3,3x2 {unitriangular=1}; 2x1x2x2:.5..1,3x2x2; 2x2:.5..1,2x2x1 {upper=1 unitriangular=1}; 0x0,0x2; "
        "2x2:.5..1,2x0",
    .errors = "2x3,2x1 ! ESHAPE; 2x2,3x1 ! ESHAPE; 2x2,2 ! ESHAPE; 2x2x2,3x2x1 ! ESHAPE; 2x2,2x3 {left=0} ! "
              "ESHAPE; "
              "2x2,2x1@i64 ! EDTYPE",
};
const TensorOp op_cholesky = {
    .name = "cholesky",
    .summary =
        "lower triangular y with y y^T = a, symmetric; its gradient is the symmetric one, not the numerical",
    .gradient = "da = y^-T s y^-1 / 2, s symmetric with the lower triangle of y^T g",
    .arity = 1,
    .params = sizeof(CholeskyParams),
    .fields = cholesky_fields,
    .shape = cholesky_shape,
    .compose = cholesky_compose,
    .flags = OP_FLOAT_INPUTS | OP_NO_GRADCHECK,
    .torch = "linalg.cholesky",
    .samples = "1x1:1..2; 2x1x1:1..2 {upper=1}; 0x0; 2x0x0; 0x2x2",
    .errors = "3 ! ESHAPE; 2x3 ! ESHAPE; 2x2:-2..-1 ! EVALUE; 2x2@i64 ! EDTYPE",
};
const TensorOp op_cholesky_solve = {
    .name = "cholesky_solve",
    .summary = "x with l l^T x = b (upper: l^T l x = b)",
    .gradient =
        "h = (l l^T)^-1 g: db = h, dl = -tril((h x^T + x h^T) l); upper: dl = -triu(l (h x^T + x h^T))",
    .arity = 2,
    .params = sizeof(CholeskyParams),
    .fields = cholesky_fields,
    .shape = cholesky_solve_shape,
    .compose = cholesky_solve_compose,
    .flags = OP_FLOAT_INPUTS | OP_SAME_DTYPE,
    .torch = "cholesky_solve",
    .samples = "2x2:.5..1,2x1; 3x3:.5..1,3x2 {upper=1}; 2x1x2x2:.5..1,3x2x1; 0x0,0x2; 2x2:.5..1,2x0",
    .errors = "2x3,2x1 ! ESHAPE; 2x2,3x1 ! ESHAPE; 2x2,2 ! ESHAPE; 2x2,2x1@i64 ! EDTYPE",
};
REGISTER_OP(op_solve_triangular);
REGISTER_OP(op_cholesky);
REGISTER_OP(op_cholesky_solve);

Tensor *tensor_solve_triangular_args(TensorSolveTriangularArgs a)
{
    const TriangularParams p = { a.upper, a.left, a.unitriangular };
    return APPLY(&op_solve_triangular, &p, a.a, a.b);
}

Tensor *tensor_triangular_solve_args(TensorTriangularSolveArgs a)
{
    const TriangularParams p = { a.upper != a.transpose, true, a.unitriangular };
    const Naming before = name_as(op_solve_triangular.name, "tensor_triangular_solve");
    return named_result(before,
                        APPLY(&op_solve_triangular, &p, a.transpose && a.a ? tensor_mT(a.a) : a.a, a.b));
}

Tensor *tensor_cholesky_args(TensorCholeskyArgs a)
{
    return APPLY(&op_cholesky, &((CholeskyParams){ a.upper }), a.a);
}

Tensor *tensor_cholesky_solve_args(TensorCholeskySolveArgs a)
{
    return APPLY(&op_cholesky_solve, &((CholeskyParams){ a.upper }), a.l, a.b);
}

Tensor *tensor_cholesky_inverse_args(TensorCholeskyArgs a)
{
    static const char name[] = "tensor_cholesky_inverse";
    if (check_null(a.a, name, 1)) return NULL;
    const Naming before = name_as(op_cholesky_solve.name, name);
    const int64_t n = a.a->ndim ? a.a->shape[a.a->ndim - 1] : 0;
    TensorScope scope = tensor_scope_open();
    Tensor *one = scope_failed(scope)
                      ? NULL
                      : tensor_to_device(tensor_eye(n, n, (TensorDtype)a.a->dtype), a.a->place->name);
    Tensor *y = one ? APPLY(&op_cholesky_solve, &((CholeskyParams){ a.upper }), a.a, one) : NULL;
    naming = before;
    return tensor_scope_return(scope, y);
}
