/* qr.c - a = q r by Householder's reflections.
 *
 *   m >= n     da = (dq + q sym(triu(dr r^T - q^T dq))) r^-T,   sym(x) = x + x^T with its diagonal halved
 *   m < n      a = [a1 a2], r = [r1 r2], a1 = q r1, r2 = q^T a2:
 *              the above for q, r1 with dq + a2 dr2^T, and da2 = q dr2
 */
#include "matrices.h"

const TensorQrArgs tensor_qr_defaults = { TENSOR_QR_DEFAULTS };

static bool is_complete(OpCall *c)
{
    return ((const TensorQrArgs *)op_params(c))->mode == TENSOR_QR_COMPLETE;
}

static int core_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    const Matrices s = matrices_of(a);
    const int64_t k = is_complete(c) ? s.m : least(s.m, s.n);
    return set_matrices(c, 0, a, s.m, k) || set_matrices(c, 1, a, k, s.n) ? -1 : 0;
}

static int core_forward(OpCall *c)
{
    const void *a = array_in(c, 0);
    void *q = array_out(c, 0), *r = array_out(c, 1);
    if (!a || !q || !r) return -1;
    return LINALG(op_input(c, 0)->dtype, qr, c->name, matrices_of(op_input(c, 0)), a, is_complete(c), q, r);
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
    if (!q || !r || !dq == op_has_grad(c, 0) || !dr == op_has_grad(c, 1)) return -1;
    if (is_complete(c) && m > n)
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
                               .autocast = AUTOCAST_CPU_F32,
                               .arity = 1,
                               .outputs = 2,
                               .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0) | KEEP_OUTPUT(1),
                               .params = sizeof(TensorQrArgs),
                               .shape = core_shape,
                               .forward = core_forward,
                               .backward = core_backward };

static int shape(OpCall *c) { return check_matrix(c, 0); }
static int compose(OpCall *c) { return linalg_compose(c, &core); }

static const char *const modes[] = { "reduced", "complete", "r", NULL };
static const OpField fields[] = { OP_CHOICE(TensorQrArgs, mode, modes), { 0 } };

const TensorOp op_qr = {
    .name = "qr",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "q of orthonormal columns and upper triangular r with a = q r",
    .gradient =
        "da = (dq + q sym(triu(dr r^T - q^T dq))) r^-T for m >= n, sym(x) = x + x^T with its diagonal halved",
    .arity = 1,
    .outputs = 2,
    PARAMS(TensorQrArgs, tensor_qr_defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_FLOAT_INPUTS,
    .torch = "linalg.qr",
    .samples = "3x2; 2x2; 2x3; 2x2 {mode=complete}; 2x3 {mode=complete}; 2x3x2; 1x1; 0x3; 3x0; 0x2x2; 0x3 "
               "{mode=complete}; 3x2 {mode=r}",
    .errors = "3 ! ESHAPE; ! ESHAPE; 3x2@i64 ! EDTYPE; 3x2 {mode=3} ! EVALUE",
};
REGISTER_OPS(&op_qr);

TensorQr tensor_qr_args(TensorQrArgs a)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&op_qr, &a.a, 1, &a, SITE, y, 2);
    return (TensorQr){ a.mode == TENSOR_QR_R ? NULL : y[0], y[1] };
}
