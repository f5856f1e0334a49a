/* eigh.c - eigenvalues and eigenvectors of symmetric matrices.
 *
 *   a = v diag(w) v^T        da = v (skew(v^T dv) / e + diag(dw)) v^T
 *                            skew(x) = (x - x^T) / 2,  e_ij = w_j - w_i, 1 where i = j
 */
#include "matrices.h"

const TensorEighArgs tensor_eigh_defaults = { TENSOR_EIGH_DEFAULTS };

static int core_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    const int64_t n = a->shape[a->ndim - 1];
    return set_matrices(c, 0, a, n, -1) || set_matrices(c, 1, a, n, n) ? -1 : 0;
}

static int decompose(OpCall *c, bool vectors)
{
    const Matrices s = matrices_of(op_input(c, 0));
    const bool upper = ((const TensorEighArgs *)op_params(c))->upper;
    MatrixFault fault = { 0 };
    const void *a = array_in(c, 0);
    void *w = array_out(c, 0), *v = vectors ? array_out(c, 1) : NULL;
    if (!a || !w || (vectors && !v)) return -1;
    return LINALG(op_input(c, 0)->dtype, eigh, c->name, s, a, upper, w, v, &fault) ? matrix_fault(c, &fault)
                                                                                   : 0;
}

static int core_forward(OpCall *c) { return decompose(c, true); }

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)dy; /* that of the values, if it is there */
    Tensor *w = op_saved_output(c, 0), *v = op_saved_output(c, 1), *x = tensor_diag_embed(op_grad(c, 0));
    if (!w || !v) return -1;
    if (op_has_grad(c, 1)) {
        Tensor *e = tensor_sub(tensor_unsqueeze(w, -2), tensor_unsqueeze(w, -1)),
               *eye = e ? identity_like(e) : NULL;
        Tensor *p = tensor_matmul(tensor_mT(v), op_grad(c, 1));
        Tensor *skew = tensor_mul_scalar(tensor_sub(p, tensor_mT(p)), .5),
               *off = eye ? tensor_div(skew, tensor_add(e, eye)) : NULL;
        x = tensor_add(x, off);
    }
    dx[0] = tensor_matmul(tensor_matmul(v, x), tensor_mT(v));
    return dx[0] ? 0 : -1;
}

static const TensorOp core = { .name = "eigh",
                               .autocast = AUTOCAST_CPU_F32,
                               .arity = 1,
                               .outputs = 2,
                               .keep = KEEP_OUTPUT(0) | KEEP_OUTPUT(1),
                               .params = sizeof(TensorEighArgs),
                               .shape = core_shape,
                               .forward = core_forward,
                               .backward = core_backward };

static int shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    if (check_square(c, 0)) return -1;
    if (a->shape[a->ndim - 1] > 16000)
        return op_fail(c, TENSOR_ESHAPE, "%s: matrices of up to 16000 rows are possible", S(a));
    return 0;
}

static int compose(OpCall *c) { return linalg_compose(c, &core); }

static int values_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    return set_matrices(c, 0, a, a->shape[a->ndim - 1], -1);
}

static int values_forward(OpCall *c) { return decompose(c, false); }

static const TensorOp core_values = { .name = "eigvalsh",
                                      .autocast = AUTOCAST_CPU_F32,
                                      .arity = 1,
                                      .params = sizeof(TensorEighArgs),
                                      .shape = values_shape,
                                      .forward = values_forward,
                                      .flags = OP_NONDIFFERENTIABLE };

/* The gradient reads the vectors: they are computed where there is a graph. */
static int values_compose(OpCall *c)
{
    Tensor *x = in_wide(c, 0), *y[2] = { NULL, NULL };
    const bool alone = !x || grad_off || !on_graph(x);
    op_apply(alone ? &core_values : &core, &x, 1, op_params(c), c->site, y, alone ? 1 : 2);
    return set_rounded(c, 0, y[0]);
}

static const OpField fields[] = { OP_OPTION(TensorEighArgs, upper), { 0 } };

#define EIGH                                                                                           \
    .arity = 1, .params = sizeof(TensorEighArgs), .defaults = &tensor_eigh_defaults, .fields = fields, \
    .shape = shape, .flags = OP_FLOAT_INPUTS | OP_NO_GRADCHECK,                                        \
    .samples = "2x2; 3x3 {upper=1}; 2x2x2; 1x1; 0x0; 0x2x2",                                           \
    .errors = "3 ! ESHAPE; 2x3 ! ESHAPE; ! ESHAPE; 2x2@i64 ! EDTYPE"

const TensorOp op_eigh = {
    .name = "eigh",
    .autocast = AUTOCAST_CPU_F32,
    .summary =
        "eigenvalues, ascending, and eigenvectors of a symmetric matrix, of which one triangle is read; the "
        "gradient is that of the whole matrix, not the numerical one; signs are fixed",
    .gradient = "da = v (skew(v^T dv) / e + diag(dw)) v^T, skew(x) = (x - x^T) / 2, e_ij = w_j - w_i",
    .outputs = 2,
    .compose = compose,
    .torch = "linalg.eigh",
    EIGH,
};
const TensorOp op_eigvalsh = {
    .name = "eigvalsh",
    .autocast = AUTOCAST_CPU_F32,
    .summary =
        "eigenvalues of a symmetric matrix, ascending; the gradient is that of the whole matrix, not the "
        "numerical one",
    .gradient = "da = v diag(g) v^T",
    .compose = values_compose,
    .torch = "linalg.eigvalsh",
    EIGH,
};
REGISTER_OPS(&op_eigh, &op_eigvalsh);

TensorEigh tensor_eigh_args(TensorEighArgs a)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(&op_eigh, &a.a, 1, &a, SITE, y, 2);
    return (TensorEigh){ y[0], y[1] };
}

Tensor *tensor_eigvalsh_args(TensorEighArgs a) { return APPLY(&op_eigvalsh, &a, a.a); }
