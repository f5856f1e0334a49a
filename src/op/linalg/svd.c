/* svd.c - singular values and vectors, and ops that use them: svdvals, pinv, matrix_rank, lstsq.
 *
 *   a = u diag(s) vh        da = u ((skew(u^T du) / e) s + s (skew(vh dvh^T) / e) + diag(ds)) vh
 *                                + (du - u u^T du) / s vh + u (dvh - dvh v vh) / s
 *                           skew(x) = x - x^T,  e_ij = s_j^2 - s_i^2, 1 where i = j */
#include <math.h>
#include "matrices.h"

const TensorSvdArgs tensor_svd_defaults = { TENSOR_SVD_DEFAULTS };
const TensorPinvArgs tensor_pinv_defaults = { TENSOR_PINV_DEFAULTS };
const TensorPinverseArgs tensor_pinverse_defaults = { TENSOR_PINVERSE_DEFAULTS };

static int core_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    const Matrices s = matrices_of(a);
    const bool full = ((const TensorSvdArgs *)op_params(c))->full_matrices;
    const int64_t k = least(s.m, s.n);
    if (set_matrices(c, 0, a, s.m, full ? s.m : k) || set_matrices(c, 1, a, k, -1)) return -1;
    return set_matrices(c, 2, a, full ? s.n : k, s.n);
}

static int core_forward(OpCall *c)
{
    const bool full = ((const TensorSvdArgs *)op_params(c))->full_matrices;
    MatrixFault fault = { 0 };
    const void *a = array_in(c, 0);
    void *u = array_out(c, 0), *s = array_out(c, 1), *vh = array_out(c, 2);
    if (!a || !u || !s || !vh) return -1;
    return LINALG(op_input(c, 0)->dtype, svd, c->name, matrices_of(op_input(c, 0)), a, full, u, s, vh, &fault)
               ? matrix_fault(c, &fault)
               : 0;
}

/* ---- the gradient ---------------------------------------------------------------------------- */

static Tensor *skew(Tensor *x) { return tensor_sub(x, tensor_mT(x)); }
static Tensor *columns_of(Tensor *s) { return tensor_unsqueeze(s, -2); }
static Tensor *rows_of(Tensor *s) { return tensor_unsqueeze(s, -1); }

typedef struct Svd {
    Tensor *u, *s, *vh, *du, *ds, *dvh;
} Svd; /* reduced; du and dvh may be NULL */

static Tensor *inner(const Svd *f)
{
    Tensor *x = tensor_diag_embed(f->ds);
    if (!f->du && !f->dvh) return x;
    Tensor *square = tensor_square(f->s);
    Tensor *e = tensor_sub(columns_of(square), rows_of(square));
    e = e ? tensor_add(e, identity_like(e)) : NULL;
    if (f->du)
        x = tensor_add(
            x, tensor_mul(tensor_div(skew(tensor_matmul(tensor_mT(f->u), f->du)), e), columns_of(f->s)));
    if (f->dvh)
        x = tensor_add(
            x, tensor_mul(rows_of(f->s), tensor_div(skew(tensor_matmul(f->vh, tensor_mT(f->dvh))), e)));
    return x;
}

static Tensor *gradient(const Svd *f, int64_t m, int64_t n)
{
    const int64_t k = least(m, n);
    Tensor *da = tensor_matmul(tensor_matmul(f->u, inner(f)), f->vh);
    if (f->du && m > k) {
        Tensor *outside = tensor_sub(f->du, tensor_matmul(f->u, tensor_matmul(tensor_mT(f->u), f->du)));
        da = tensor_add(da, tensor_matmul(tensor_div(outside, columns_of(f->s)), f->vh));
    }
    if (f->dvh && n > k) {
        Tensor *outside = tensor_sub(f->dvh, tensor_matmul(tensor_matmul(f->dvh, tensor_mT(f->vh)), f->vh));
        da = tensor_add(da, tensor_matmul(f->u, tensor_div(outside, rows_of(f->s))));
    }
    return da;
}

static int core_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorShape shape = op_input_shape(c, 0);
    const int64_t m = shape.dim[shape.ndim - 2], n = shape.dim[shape.ndim - 1], k = least(m, n);
    Svd f = {
        op_saved_output(c, 0),         op_saved_output(c, 1), op_saved_output(c, 2),
        op_has_grad(c, 0) ? dy : NULL, op_grad(c, 1),         op_has_grad(c, 2) ? op_grad(c, 2) : NULL
    };
    if (!f.u || !f.s || !f.vh) return -1;
    f.u = tensor_narrow(f.u, -1, 0, k);
    f.vh = tensor_narrow(f.vh, -2, 0, k);
    if (f.du) f.du = tensor_narrow(f.du, -1, 0, k);
    if (f.dvh) f.dvh = tensor_narrow(f.dvh, -2, 0, k);
    if ((op_has_grad(c, 0) && !f.du) || (op_has_grad(c, 2) && !f.dvh))
        return -1; /* no memory, not: no gradient */
    dx[0] = gradient(&f, m, n);
    return dx[0] ? 0 : -1;
}

static const TensorOp core = { .name = "svd",
                               .autocast = AUTOCAST_CPU_F32,
                               .arity = 1,
                               .outputs = 3,
                               .keep = KEEP_OUTPUT(0) | KEEP_OUTPUT(1) | KEEP_OUTPUT(2),
                               .params = sizeof(TensorSvdArgs),
                               .shape = core_shape,
                               .forward = core_forward,
                               .backward = core_backward };

int core_svd(Tensor *a, bool full_matrices, Tensor *usv[3])
{
    return op_apply(&core, &a, 1, &((TensorSvdArgs){ .full_matrices = full_matrices, TENSOR_FROM_DEFAULTS }),
                    SITE, usv, 3) < 0
               ? -1
               : 0;
}

/* ---- the values alone ------------------------------------------------------------------------ */

static int values_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    const Matrices s = matrices_of(a);
    return set_matrices(c, 0, a, least(s.m, s.n), -1);
}

static int values_forward(OpCall *c)
{
    MatrixFault fault = { 0 };
    const void *a = array_in(c, 0);
    void *s = array_out(c, 0);
    if (!a || !s) return -1;
    const int status = LINALG(op_input(c, 0)->dtype, svd, c->name, matrices_of(op_input(c, 0)), a, false,
                              NULL, s, NULL, &fault);
    return status ? matrix_fault(c, &fault) : 0;
}

static const TensorOp core_values = { .name = "svdvals",
                                      .autocast = AUTOCAST_CPU_F32,
                                      .arity = 1,
                                      .shape = values_shape,
                                      .forward = values_forward,
                                      .flags = OP_NONDIFFERENTIABLE };

/* The gradient reads the vectors: they are computed where there is a graph. */
static Tensor *singular_values(Tensor *a)
{
    Tensor *f[3];
    if (!a || grad_off || !on_graph(a)) return APPLY(&core_values, NULL, a);
    return core_svd(a, false, f) ? NULL : f[1];
}

static int shape(OpCall *c) { return check_matrix(c, 0); }
static int compose(OpCall *c) { return linalg_compose(c, &core); }
static int values_compose(OpCall *c) { return set_rounded(c, 0, singular_values(in_wide(c, 0))); }

/* ---- the pseudo-inverse ---------------------------------------------------------------------- */

static int pinv_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0);
    const Matrices s = matrices_of(a);
    return set_matrices(c, 0, a, s.n, s.m);
}

/* Bool: singular values that count, s > max(atol, rtol s_0). */
static Tensor *counted(Tensor *s, const TensorPinvArgs *p)
{
    Tensor *first = tensor_slice(s, -1, 0, 1);
    return tensor_gt(s, tensor_clamp(tensor_mul_scalar(first, p->rtol), p->atol, INFINITY));
}

static Tensor *pinv_by_svd(OpCall *c)
{
    Tensor *f[3] = { NULL };
    if (core_svd(op_input(c, 0), false, f)) return NULL;
    Tensor *one = tensor_where(counted(f[1], op_params(c)), tensor_reciprocal(f[1]), tensor_zeros_like(f[1]));
    return tensor_matmul(tensor_mul(tensor_mT(f[2]), columns_of(one)), tensor_mT(f[0]));
}

/* By QR where all singular values are certain to count. */
static int pinv_forward(OpCall *c)
{
    const TensorPinvArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *out = op_output(c, 0);
    const void *a = array_in(c, 0);
    Tensor *y = own(new_tensor(shape_of(out), out->dtype, &cpu_place)),
           *found = own(new_tensor((TensorShape){ x->ndim - 2, x->shape }, TENSOR_BOOL, &cpu_place));
    if (!a || !y || !found ||
        LINALG(x->dtype, pinv, c->name, matrices_of(x), a, p->atol, p->rtol, y->data, found->data))
        return -1;
    if (memchr(found->data, false, (size_t)found->numel)) {
        Tensor *z = pinv_by_svd(c);
        y = memchr(found->data, true, (size_t)found->numel) ? tensor_where(over_matrices(found), y, z) : z;
    }
    return y ? raw_copy(out, y) : -1;
}

/* a b c by way of the smaller square: [m, m] where a is wide, else [n, n]. */
static Tensor *product_of(Tensor *a, Tensor *b, Tensor *c, bool wide)
{
    return wide ? tensor_matmul(tensor_matmul(a, b), c) : tensor_matmul(a, tensor_matmul(b, c));
}

/* da = -y^T g y^T + (1 - a y) g^T y y^T + y^T y g^T (1 - y a), for a of constant rank. */
static int pinv_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *a = op_saved(c, 0), *y = op_saved_output(c, 0);
    if (!a || !y) return -1;
    const bool wide = a->shape[a->ndim - 2] < a->shape[a->ndim - 1];
    Tensor *yt = tensor_mT(y), *gt = tensor_mT(dy);
    Tensor *left = tensor_sub(gt, product_of(a, y, gt, wide)),
           *right = tensor_sub(gt, product_of(gt, y, a, wide));
    Tensor *x = tensor_add(product_of(left, y, yt, wide), product_of(yt, y, right, wide));
    dx[0] = tensor_sub(x, product_of(yt, dy, yt, wide));
    return dx[0] ? 0 : -1;
}

static const TensorOp core_pinv = { .name = "pinv",
                                    .autocast = AUTOCAST_CPU_F32,
                                    .arity = 1,
                                    .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                                    .params = sizeof(TensorPinvArgs),
                                    .shape = pinv_shape,
                                    .forward = pinv_forward,
                                    .backward = pinv_backward };

static double epsilon(int dtype)
{
    return dtype == TENSOR_F64   ? 0x1p-52
           : dtype == TENSOR_F32 ? 0x1p-23
           : dtype == TENSOR_F16 ? 0x1p-10
                                 : 0x1p-7;
}

/* What is left out is negative, and gets PyTorch's value. */
static int pinv_check(OpCall *c)
{
    TensorPinvArgs *p = op_params_mut(c);
    const Tensor *a = op_input(c, 0);
    if (check_matrix(c, 0)) return -1;
    const Matrices s = matrices_of(a);
    if (p->rtol < 0) p->rtol = p->atol > 0 ? 0 : epsilon(a->dtype) * (double)(s.m > s.n ? s.m : s.n);
    if (p->atol < 0) p->atol = 0;
    return 0;
}

static int pinv_compose(OpCall *c) { return linalg_compose(c, &core_pinv); }

static int rank_compose(OpCall *c)
{
    Tensor *s = singular_values(tensor_detach(in_wide(c, 0)));
    return op_set_result(c, 0, s ? tensor_sum(counted(s, op_params(c)), -1) : NULL);
}

static int lstsq_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    if (check_matrix(c, 0)) return -1;
    const bool vectors = b->ndim && is_vectors(a, b);
    if (!vectors && check_matrix(c, 1)) return -1;
    if (b->shape[b->ndim - 2 + vectors] != a->shape[a->ndim - 2])
        return op_fail(c, TENSOR_ESHAPE, "%s, %s: a and b must have as many rows", S(a), S(b));
    return vectors ? 0 : check_batches(c, 0, 1);
}

static int lstsq_compose(OpCall *c)
{
    Tensor *a = in_wide(c, 0), *b = in_wide(c, 1);
    if (!a || !b) return -1;
    const Matrices s = matrices_of(a);
    const bool vectors = is_vectors(a, b);
    const TensorPinvArgs p = { .rtol = epsilon(op_input(c, 0)->dtype) * (double)(s.m > s.n ? s.m : s.n),
                               TENSOR_FROM_DEFAULTS };
    Tensor *x = tensor_matmul(APPLY(&core_pinv, &p, a), vectors ? tensor_unsqueeze(b, -1) : b);
    return set_rounded(c, 0, vectors ? tensor_squeeze(x, -1) : x);
}

/* ---- the ops --------------------------------------------------------------------------------- */

static const OpField svd_fields[] = { OP_OPTION(TensorSvdArgs, full_matrices), { 0 } };
static const OpField pinv_fields[] = { OP_OPTION(TensorPinvArgs, atol, rtol), { 0 } };

#define ONE .arity = 1, .flags = OP_FLOAT_INPUTS
#define ERRORS "3 ! ESHAPE; ! ESHAPE; 3x2@i64 ! EDTYPE"

const TensorOp op_svd = {
    .name = "svd",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "u, s descending, vh with a = u diag(s) vh; signs are fixed",
    .gradient = "da = u ((skew(u^T du) / e) s + s (skew(vh dvh^T) / e) + diag(ds)) vh for square a, skew(x) "
                "= x - x^T, e_ij = s_j^2 - s_i^2",
    .outputs = 3,
    PARAMS(TensorSvdArgs, tensor_svd_defaults, svd_fields),
    .shape = shape,
    .compose = compose,
    .torch = "linalg.svd",
    .errors = ERRORS,
    ONE,
    .samples = "2x2; 3x2 {full_matrices=0}; 2x3 {full_matrices=0}; 3x3; 2x2x2 {full_matrices=0}; 0x3 "
               "{full_matrices=0}; 3x0 {full_matrices=0}; 0x2x2",
};
const TensorOp op_svdvals = {
    .name = "svdvals",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "singular values, descending",
    .gradient = "da = u diag(g) vh",
    .shape = shape,
    .compose = values_compose,
    .torch = "linalg.svdvals",
    .errors = ERRORS,
    ONE,
    .samples = "2x2; 3x2; 2x3; 2x2x2; 0x3; 3x0; 0x2x2",
};
const TensorOp op_pinv = {
    .name = "pinv",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "the Moore-Penrose inverse",
    .gradient = "da = -y^T g y^T + (1 - a y) g^T y y^T + y^T y g^T (1 - y a)",
    PARAMS(TensorPinvArgs, tensor_pinv_defaults, pinv_fields),
    .shape = pinv_check,
    .compose = pinv_compose,
    .torch = "linalg.pinv",
    .errors = ERRORS,
    ONE,
    .samples = "2x2; 3x2; 2x3 {rtol=0}; 2x3x2 {atol=0.0001}; 0x3; 3x0; 0x2x2",
};
const TensorOp op_matrix_rank = {
    .name = "matrix_rank",
    .autocast = AUTOCAST_AS_IS,
    .summary = "the count of singular values above max(atol, rtol s_0)",
    .arity = 1,
    PARAMS(TensorPinvArgs, tensor_pinv_defaults, pinv_fields),
    .shape = pinv_check,
    .compose = rank_compose,
    .flags = OP_FLOAT_INPUTS | OP_NONDIFFERENTIABLE,
    .torch = "linalg.matrix_rank",
    .samples = "2x2; 3x2; 2x3x3:1..1; 3x3 {atol=9}; 0x3; 3x0",
    .errors = ERRORS,
};
const TensorOp op_lstsq = {
    .name = "lstsq",
    .autocast = AUTOCAST_CPU_F32,
    .summary = "pinv(a) b: x of least |a x - b|, and of least |x| among those",
    .gradient = "db = pinv(a)^T g",
    .arity = 2,
    .shape = lstsq_shape,
    .compose = lstsq_compose,
    .flags = OP_FLOAT_INPUTS | OP_ONE_DTYPE,
    .torch = "linalg.lstsq",
    .samples = "3x2,3x1; 2x3,2x2; 3x2,3; 2x3x2,2x3; 2x1x3x2,3x3x1; 2x2,2x0; 0x3x2,3x1",
    .errors = "3x2,2x1 ! ESHAPE; 3x2,2 ! ESHAPE; 3,3x1 ! ESHAPE; 3x2, ! ESHAPE; 2x3x2,3x3x1 ! ESHAPE; "
              "3x2,3x1@i64 ! EDTYPE",
};
REGISTER_OPS(&op_svd, &op_svdvals, &op_pinv, &op_matrix_rank, &op_lstsq);

TensorSvd tensor_svd_args(TensorSvdArgs a)
{
    Tensor *y[3] = { NULL, NULL, NULL };
    op_apply(&op_svd, &a.a, 1, &a, SITE, y, 3);
    return (TensorSvd){ y[0], y[1], y[2] };
}

Tensor *tensor_svdvals(Tensor *a) { return APPLY(&op_svdvals, NULL, a); }
Tensor *tensor_pinverse_args(TensorPinverseArgs a)
{
    return APPLY_AS(&op_pinv, "tensor_pinverse",
                    &((TensorPinvArgs){ a.a, .atol = -1, .rtol = a.rcond, .from_defaults = a.from_defaults }),
                    a.a);
}
Tensor *tensor_pinv_args(TensorPinvArgs a) { return APPLY(&op_pinv, &a, a.a); }
Tensor *tensor_matrix_rank_args(TensorPinvArgs a) { return APPLY(&op_matrix_rank, &a, a.a); }
Tensor *tensor_lstsq(Tensor *a, Tensor *b) { return APPLY(&op_lstsq, NULL, a, b); }
