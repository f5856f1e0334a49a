/* qr.c - a = q r by Householder's reflections.
 *
 *   m >= n     da = (dq + q sym(triu(dr r^T - q^T dq))) r^-T,   sym(x) = x + x^T with its diagonal halved
 *   m < n      a = [a1 a2], r = [r1 r2], a1 = q r1, r2 = q^T a2:   the above for q, r1 with dq + a2 dr2^T,
 * and da2 = q dr2
 */
#include "matrices.h"

typedef struct QrParams {
    bool complete;
} QrParams;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int core_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    const Matrices s = matrices_of(a);
    const int64_t k = ((const QrParams *)op_params(c))->complete ? s.m : least(s.m, s.n);
    return set_matrices(c, 0, a, s.m, k) || set_matrices(c, 1, a, k, s.n) ? -1 : 0;
}

/* room: a column-major matrix of m rows and enough columns for a and for q, then tau, then LAPACK's work. */
typedef struct Room {
    double *a, *tau, *work;
    int lwork;
} Room;

static void factor(const Lapack *lapack, const double *a, Matrices s, int64_t k, const Room *room, double *q,
                   double *r)
{
    const int m = (int)s.m, n = (int)s.n, columns = (int)k, reflections = (int)least(s.m, s.n);
    int info;
    transposed(a, s.m, s.n, room->a);
    lapack->geqrf(&m, &n, room->a, &m, room->tau, room->work, &room->lwork, &info);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < s.n; j++) r[i * s.n + j] = j >= i ? room->a[j * s.m + i] : 0;
    lapack->orgqr(&m, &columns, &reflections, room->a, &m, room->tau, room->work, &room->lwork, &info);
    transposed(room->a, k, s.m, q);
}

/* Without columns, complete q is the identity; without rows, there is nothing. */
static void put_identity(double *q, int64_t batch, int64_t m)
{
    memset(q, 0, (size_t)(batch * m * m) * sizeof *q);
    for (int64_t i = 0; i < batch * m; i++) q[i * m + i % m] = 1;
}

static int core_forward(OpCall *c)
{
    const Lapack *lapack = lapack_open(c->op->name);
    const Matrices s = matrices_of(op_input(c, 0));
    const bool complete = ((const QrParams *)op_params(c))->complete;
    const int64_t k = complete ? s.m : least(s.m, s.n), wide = s.n > k ? s.n : k;
    const double *a = op_input_f64(c, 0);
    double *q = op_output_f64(c, 0), *r = op_output_f64(c, 1);
    if (!lapack || !a || !q || !r) return -1;
    if (s.n == 0 && complete) put_identity(q, s.batch, s.m);
    if (s.m == 0 || s.n == 0 || s.batch == 0) return 0;
    const int64_t lwork = 32 * wide, doubles = s.m * wide + wide + lwork;
    double *room = tg_alloc((size_t)doubles * sizeof *room);
    if (!room) return fail_memory(c->op->name);
    const Room parts = { room, room + s.m * wide, room + s.m * wide + wide, (int)lwork };
    for (int64_t i = 0; i < s.batch; i++)
        factor(lapack, a + i * s.m * s.n, s, k, &parts, q + i * s.m * k, r + i * k * s.n);
    tg_free(room, (size_t)doubles * sizeof *room);
    return 0;
}

/* m >= n, or r = r1: dq or dr may be NULL. */
static Tensor *tall_gradient(Tensor *q, Tensor *r, Tensor *dq, Tensor *dr)
{
    Tensor *m = dr ? tensor_matmul(dr, tensor_mT(r)) : NULL;
    if (dq) {
        Tensor *p = tensor_matmul(tensor_mT(q), dq);
        m = dr ? tensor_sub(m, p) : tensor_neg(p);
    }
    Tensor *upper = tensor_triu(m, .diagonal = 1), *sym = tensor_add(tensor_triu(m), tensor_mT(upper));
    Tensor *x = tensor_matmul(q, sym);
    if (dq) x = tensor_add(dq, x);
    return core_triangular(tensor_mT(r), x, false, false, false);
}

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorShape shape = op_input_shape(c, 0);
    const int64_t m = shape.dim[shape.ndim - 2], n = shape.dim[shape.ndim - 1];
    Tensor *q = op_saved_output(c, 0), *r = op_saved_output(c, 1);
    Tensor *dq = op_has_grad(c, 0) ? dy : NULL, *dr = op_has_grad(c, 1) ? op_grad(c, 1) : NULL;
    if (!q || !r || (!dq && !dr)) return -1;
    if (((const QrParams *)op_params(c))->complete && m > n)
        return op_fail(
            c, TENSOR_EGRAD,
            "%s: the complete q has more columns than a, which does not determine them: no gradient",
            shape_text(shape));
    if (m >= n) return (dx[0] = tall_gradient(q, r, dq, dr)) ? 0 : -1;
    Tensor *a = op_saved(c, 0), *rest = NULL;
    if (dr) {
        Tensor *dr2 = tensor_narrow(dr, -1, m, n - m);
        Tensor *more = tensor_matmul(tensor_narrow(a, -1, m, n - m), tensor_mT(dr2));
        dq = dq ? tensor_add(dq, more) : more;
        dr = tensor_narrow(dr, -1, 0, m);
        rest = tensor_matmul(q, dr2);
        if (!dq || !dr || !rest) return -1;
    }
    Tensor *first = tall_gradient(q, tensor_narrow(r, -1, 0, m), dq, dr);
    if (!rest) rest = tensor_zeros_like(tensor_narrow(r, -1, m, n - m));
    dx[0] = tensor_cat(TENSORS(first, rest), -1);
    return dx[0] ? 0 : -1;
}

static const TensorOp core = { .name = "qr",
                               .arity = 1,
                               .outputs = 2,
                               .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0) | KEEP_OUTPUT(1),
                               .params = sizeof(QrParams),
                               .shape = core_shape,
                               .forward = core_forward,
                               .backward = core_backward };

static int shape(OpCall *c) { return check_matrix(c, 0); }
static int compose(OpCall *c) { return linalg_compose(c, &core); }

static const OpField fields[] = { OP_FIELD(OP_BOOL, QrParams, complete, "0"), { 0 } };

const TensorOp op_qr = {
    .name = "qr",
    .summary = "q of orthonormal columns and upper triangular r with a = q r",
    .gradient =
        "da = (dq + q sym(triu(dr r^T - q^T dq))) r^-T for m >= n, sym(x) = x + x^T with its diagonal halved",
    .arity = 1,
    .outputs = 2,
    .params = sizeof(QrParams),
    .fields = fields,
    .shape = shape,
    .compose = compose,
    .flags = OP_FLOAT_INPUTS,
    .torch = "linalg.qr",
    .samples =
        "3x2; 2x2; 2x3; 2x2 {complete=1}; 2x3 {complete=1}; 2x3x2; 1x1; 0x3; 3x0; 0x2x2; 0x3 {complete=1}",
    .errors = "3 ! ESHAPE; ! ESHAPE; 3x2@i64 ! EDTYPE",
};
REGISTER_OP(op_qr);

TensorQr tensor_qr_args(TensorQrArgs a)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&op_qr, &a.a, 1, &((QrParams){ a.mode == TENSOR_QR_COMPLETE }), SITE, y, 2);
    return (TensorQr){ a.mode == TENSOR_QR_R ? NULL : y[0], y[1] };
}
