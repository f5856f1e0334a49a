/* small_products.c - products made of other ones.
 *
 *   inner     sum over the last dim of both             kron       every element of a times all of b
 *   cross     y_i = a_(i+1) b_(i+2) - a_(i+2) b_(i+1)   bilinear   y_o = x1^T w_o x2 + b_o
 *   vecdot    sum of a b along a dim                    addr       beta x + alpha a b^T
 *   addmv, addbmm: addmm of a column, and of a batch side by side */
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"
#include "op/elementwise/row.h"
#include "matrix_product.h"

/* ---- inner, kron, cross ---------------------------------------------------------------------- */

const TensorCrossArgs tensor_cross_defaults = { TENSOR_CROSS_DEFAULTS };
const TensorVecdotArgs tensor_vecdot_defaults = { TENSOR_VECDOT_DEFAULTS };

static int inner_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    if (!a->ndim || !b->ndim) return 0;
    if (a->dtype != b->dtype)
        return op_fail(c, TENSOR_EDTYPE, "%s %s and %s %s: operands must have one dtype",
                       tensor_dtype_name((TensorDtype)a->dtype), S(a),
                       tensor_dtype_name((TensorDtype)b->dtype), S(b));
    if (a->shape[a->ndim - 1] == b->shape[b->ndim - 1]) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s and %s: the last dims differ", S(a), S(b));
}

static int inner(OpCall *c)
{
    Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    if (!a->ndim || !b->ndim) return op_set_result(c, 0, tensor_mul(a, b));
    return op_set_result(c, 0, tensor_tensordot(a, b, .dims_a = DIMS(-1), .dims_b = DIMS(-1)));
}

static int kron_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    if (a->ndim <= TENSOR_MAX_DIMS / 2 && b->ndim <= TENSOR_MAX_DIMS / 2) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s and %s: at most %d dimensions", S(a), S(b), TENSOR_MAX_DIMS / 2);
}

/* a as [a0, 1, a1, 1, ...], b as [1, b0, 1, b1, ...]. */
static int kron(OpCall *c)
{
    Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    const int n = a->ndim > b->ndim ? a->ndim : b->ndim;
    int64_t in_a[TENSOR_MAX_DIMS], in_b[TENSOR_MAX_DIMS], shape[TENSOR_MAX_DIMS];
    for (int i = 0; i < n; i++) {
        const int64_t size_a = i < n - a->ndim ? 1 : a->shape[i - (n - a->ndim)],
                      size_b = i < n - b->ndim ? 1 : b->shape[i - (n - b->ndim)];
        in_a[2 * i] = size_a, in_a[2 * i + 1] = 1, in_b[2 * i] = 1, in_b[2 * i + 1] = size_b;
        shape[i] = size_a * size_b;
    }
    Tensor *y = tensor_mul(tensor_reshape(a, (TensorShape){ 2 * n, in_a }),
                           tensor_reshape(b, (TensorShape){ 2 * n, in_b }));
    return op_set_result(c, 0, y ? tensor_reshape(y, (TensorShape){ n, shape }) : NULL);
}

static int cross_shape(OpCall *c)
{
    TensorCrossArgs *p = op_params_mut(c);
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    int64_t joint[TENSOR_MAX_DIMS];
    if (check_numbers(c, a)) return -1;
    if (a->ndim != b->ndim) return op_fail(c, TENSOR_ESHAPE, "%s and %s: want the same rank", S(a), S(b));
    if (p->dim == TENSOR_ALL)
        for (int d = a->ndim - 1; d >= 0; d--)
            if (a->shape[d] == 3 && b->shape[d] == 3) p->dim = d;
    if (p->dim == TENSOR_ALL) return op_fail(c, TENSOR_ESHAPE, "%s and %s: no dim of 3 in both", S(a), S(b));
    p->dim = call_dim(c, p->dim, shape_of(a));
    if (p->dim < 0) return -1;
    if (a->ndim == 0 || a->shape[p->dim] != 3 || b->shape[p->dim] != 3 ||
        shape_broadcast(shape_of(a), shape_of(b), joint) < 0)
        return op_fail(c, TENSOR_ESHAPE,
                       "%s and %s: want 3 elements in dim %d, and other dims that broadcast", S(a), S(b),
                       p->dim);
    return 0;
}

static Tensor *turned(Tensor *x, int dim, int64_t by) { return tensor_roll(x, DIMS(by), DIMS(dim)); }

/* The three slices of the result: up, for the one after it, and down.  Each in one pass, or of integers,
 * whose slices are laid out first; else of turned operands, which are fewer ops. */
static int cross(OpCall *c)
{
    const int dim = ((const TensorCrossArgs *)op_params(c))->dim;
    Tensor *a = op_input(c, 0), *b = op_input(c, 1), *x[3], *y[3], *z[3];
    bool fused = true;
    for (int i = 0; i < 3; i++) {
        x[i] = tensor_narrow(a, dim, i, 1), y[i] = tensor_narrow(b, dim, i, 1);
        if (!x[i] || !y[i]) return op_set_result(c, 0, NULL);
    }
    for (int i = 0; i < 3; i++) {
        const int up = (i + 1) % 3, down = (i + 2) % 3;
        fused =
            fused && fused_result(c, FUSED_cross, 4, (Tensor *[]){ x[up], y[down], x[down], y[up] }, NULL);
        if (fused && c->failed) return -1;
        if (!fused && (dtype_is_float(x[0]->dtype) || dtype_is_float(y[0]->dtype))) break;
        for (int k = 0; k < 3 && i == 0 && !fused; k++)
            x[k] = tensor_contiguous(x[k]), y[k] = tensor_contiguous(y[k]);
        z[i] = fused ? c->output[0] : tensor_sub(tensor_mul(x[up], y[down]), tensor_mul(x[down], y[up]));
        if (i == 2) return op_set_result(c, 0, tensor_cat(((TensorList){ 3, z }), dim));
    }
    return op_set_result(c, 0,
                         tensor_sub(tensor_mul(turned(a, dim, -1), turned(b, dim, 1)),
                                    tensor_mul(turned(a, dim, 1), turned(b, dim, -1))));
}

const TensorOp op_inner = {
    .name = "inner",
    .autocast = AUTOCAST_CPU_CUDA(LOWER, PROMOTE),
    .summary = "sum of products over the last dim of both",
    .gradient = "da = g b, db = g^T a",
    .arity = 2,
    .flags = OP_ANY_DEVICE | OP_OF_PRODUCTS,
    .shape = inner_shape,
    .compose = inner,
    .samples = "5,5; 3x4,4; 3x4,2x4; 2x3x4,5x4; ,3x4; 3,; ,; 3x0,2x0; 0x3,3; 3@i64,2x3@i64; @bool,2@i32",
    .errors = "3,4 ! ESHAPE; 3@i64,3 ! EDTYPE; 3@bool,3@bool ! EDTYPE",
};
const TensorOp op_kron = {
    .name = "kron",
    .autocast = AUTOCAST_AS_IS,
    .summary = "every element of a times all of b",
    .gradient = "da_i = sum g b over the block of i, db likewise",
    .arity = 2,
    .flags = OP_ANY_DEVICE,
    .shape = kron_shape,
    .compose = kron,
    .samples = "2x3,4x2; 3,2x2; 2x1x2,3; ,2x2; ,; 0x2,3x1; 2x2x2,1x3x2; 2@i64,3@i64; 2@bool,3; 2x2@u8,@bool",
    .errors = "1x1x1x1x1x1x1x1x2,1 ! ESHAPE",
};
static const OpField cross_fields[] = { OP_OPTION(TensorCrossArgs, dim), { 0 } };
const TensorOp op_cross = {
    .name = "cross",
    .autocast = AUTOCAST_CUDA_PROMOTE,
    .summary = "cross product of vectors of 3 along dim (the first dim of 3 unless given)",
    .gradient = "da = b x g, db = g x a",
    .arity = 2,
    PARAMS(TensorCrossArgs, tensor_cross_defaults, cross_fields),
    .shape = cross_shape,
    .compose = cross,
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE | OP_ROUND_ONCE,
    .samples =
        "3,3; 4x3,4x3; 3x4,3x4 {dim=0}; 2x3x3,1x3x3 {dim=-1}; 3x3,3x3; 0x3,0x3; 3@i64,3@i64; 4x3,1x3 {dim=1}",
    .errors = "3,4 ! ESHAPE; 2x4,2x4 ! ESHAPE; 4x3,3 ! ESHAPE; 4x3,4x3 {dim=0} ! ESHAPE; 3,3 {dim=1} ! "
              "EINDEX; 2x3,4x3 ! ESHAPE; 3@i64,3 ! EDTYPE; 3@bool,3@bool ! EDTYPE",
};
static int vecdot_shape(OpCall *c)
{
    TensorVecdotArgs *p = op_params_mut(c);
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    int64_t joint[TENSOR_MAX_DIMS];
    const int ndim = shape_broadcast(shape_of(a), shape_of(b), joint);
    if (ndim < 0) return op_fail(c, TENSOR_ESHAPE, "%s and %s do not broadcast", S(a), S(b));
    p->dim = call_dim(c, p->dim, (TensorShape){ ndim, joint });
    return p->dim < 0 ? -1 : 0;
}

static int vecdot(OpCall *c)
{
    const TensorVecdotArgs *p = op_params(c);
    return op_set_result(c, 0, tensor_sum(tensor_mul(op_input(c, 0), op_input(c, 1)), p->dim));
}

static const OpField vecdot_fields[] = { OP_OPTION(TensorVecdotArgs, dim), { 0 } };
const TensorOp op_vecdot = {
    .name = "vecdot",
    .autocast = AUTOCAST_LOWER,
    .summary = "sum of a b along dim, of operands that broadcast",
    .gradient = "da = g b, db = g a",
    .arity = 2,
    PARAMS(TensorVecdotArgs, tensor_vecdot_defaults, vecdot_fields),
    .shape = vecdot_shape,
    .compose = vecdot,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ONE_DTYPE | OP_ROUND_ONCE,
    .torch = "linalg.vecdot",
    .samples = "5,5; 3x4,3x4; 3x4,4; 3x1,3x4 {dim=0}; 2x3x4,3x1 {dim=-2}; ,; 0x3,3; 3x0,3x0; 1,5",
    .errors = "3,4 ! ESHAPE; 3,3 {dim=1} ! EINDEX; 3@i64,3@i64 ! EDTYPE",
};
REGISTER_OPS(&op_inner, &op_kron, &op_cross, &op_vecdot);

HIDDEN extern const TensorOp op_dot;
Tensor *tensor_inner(Tensor *a, Tensor *b) { return APPLY(&op_inner, NULL, a, b); }
Tensor *tensor_kron(Tensor *a, Tensor *b) { return APPLY(&op_kron, NULL, a, b); }
Tensor *tensor_cross_args(TensorCrossArgs a) { return APPLY(&op_cross, &a, a.a, a.b); }
Tensor *tensor_vecdot_args(TensorVecdotArgs a) { return APPLY(&op_vecdot, &a, a.a, a.b); }
Tensor *tensor_vdot(Tensor *a, Tensor *b) { return APPLY_AS(&op_dot, __func__, NULL, a, b); }

/* ---- bilinear -------------------------------------------------------------------------------- */

static int bilinear_shape(OpCall *c)
{
    const Tensor *x1 = op_input(c, 0), *x2 = op_input(c, 1), *w = op_input(c, 2), *b = op_input(c, 3);
    if (check_numbers(c, w)) return -1;
    if (w->ndim != 3) return op_fail(c, TENSOR_ESHAPE, "weight %s: want [out, in1, in2]", S(w));
    bool fits = x1->ndim && x1->ndim == x2->ndim;
    for (int d = 0; fits && d < x1->ndim - 1; d++) fits = x1->shape[d] == x2->shape[d];
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE,
                       "inputs %s and %s: want [..., in1] and [..., in2] with the same leading dims", S(x1),
                       S(x2));
    if (x1->shape[x1->ndim - 1] != w->shape[1] || x2->shape[x2->ndim - 1] != w->shape[2])
        return op_fail(c, TENSOR_ESHAPE, "inputs %s and %s, weight %s: it takes %lld and %lld features",
                       S(x1), S(x2), S(w), (long long)w->shape[1], (long long)w->shape[2]);
    if (b && (b->ndim != 1 || b->shape[0] != w->shape[0]))
        return op_fail(c, TENSOR_ESHAPE, "bias %s, weight %s: want a bias [%lld]", S(b), S(w),
                       (long long)w->shape[0]);
    return 0;
}

static int bilinear(OpCall *c)
{
    Tensor *y = tensor_einsum("...i,oij,...j->...o", TENSORS(op_input(c, 0), op_input(c, 2), op_input(c, 1))),
           *b = op_input(c, 3);
    return op_set_result(c, 0, b ? tensor_add(y, b) : y);
}

const TensorOp op_bilinear = {
    .name = "bilinear",
    .autocast = AUTOCAST_CUDA_PROMOTE,
    .summary = "x1^T weight_o x2 + bias_o; weight [out, in1, in2]",
    .gradient = "dx1 = sum_o g_o w_o x2, dx2 = sum_o g_o w_o^T x1, dw_o = g_o x1 x2^T, db = sum g",
    .arity = 4,
    .optional = KEEP_INPUT(3),
    .shape = bilinear_shape,
    .compose = bilinear,
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE | OP_ROUND_ONCE | OP_OF_PRODUCTS,
    .torch = "nn.functional.bilinear",
    .samples = "3x4,3x2,5x4x2,5; 4,2,3x4x2,-; 2x3x4,2x3x2,2x4x2,2; 0x4,0x2,3x4x2,3; 3x0,3x2,2x0x2,2; "
               "3x4,3x2,0x4x2,0; 3x4@i64,3x2@i64,5x4x2@i64,5@i64",
    .errors = "3x4,2x2,5x4x2,5 ! ESHAPE; 3x4,3x3,5x4x2,5 ! ESHAPE; 3x4,3x2,5x4,5 ! ESHAPE; 3x4,3x2,5x4x2,4 ! "
              "ESHAPE",
};
REGISTER_OPS(&op_bilinear);

Tensor *tensor_bilinear(Tensor *x1, Tensor *x2, Tensor *weight, Tensor *bias)
{
    return APPLY(&op_bilinear, NULL, x1, x2, weight, bias);
}

/* ---- beta input + alpha product -------------------------------------------------------------- */

static int want_ranks(OpCall *c, int a_rank, int b_rank)
{
    const Tensor *a = op_input(c, 1), *b = op_input(c, 2);
    if (a->ndim == a_rank && b->ndim == b_rank) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s times %s: want ranks %d and %d", S(a), S(b), a_rank, b_rank);
}

static int want_input(OpCall *c, const Tensor *x, TensorShape to)
{
    int64_t wide[TENSOR_MAX_DIMS];
    if (shape_broadcast(shape_of(x), to, wide) == to.ndim && shape_equal((TensorShape){ to.ndim, wide }, to))
        return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s does not broadcast to %s, the shape of %s times %s", S(x),
                   shape_text(to), S(op_input(c, 1)), S(op_input(c, 2)));
}

static int addmv_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (want_ranks(c, 2, 1)) return -1;
    const Tensor *a = op_input(c, 1), *b = op_input(c, 2);
    if (a->shape[1] != b->shape[0])
        return op_fail(c, TENSOR_ESHAPE, "%s times %s: the inner sizes %lld and %lld differ", S(a), S(b),
                       (long long)a->shape[1], (long long)b->shape[0]);
    return want_input(c, x, SHAPE(a->shape[0]));
}

/* What the three promote to. */
static TensorDtype addr_dtype(const Tensor *x, const Tensor *a, const Tensor *b)
{
    return (TensorDtype)promoted(promoted_pair(a, b), false, x->dtype, x->ndim == 0);
}

static int addr_shape(OpCall *c)
{
    const TensorAddmmArgs *p = op_params(c);
    const Tensor *x = op_input(c, 0), *a = op_input(c, 1), *b = op_input(c, 2);
    if (want_ranks(c, 1, 1) || want_input(c, x, SHAPE(a->shape[0], b->shape[0]))) return -1;
    if (dtype_is_float(addr_dtype(x, a, b)) || (is_integral(p->alpha) && is_integral(p->beta))) return 0;
    return op_fail(c, TENSOR_EVALUE, "beta = %g, alpha = %g: integers want integers", p->beta, p->alpha);
}

static int addbmm_shape(OpCall *c)
{
    const Tensor *a = op_input(c, 1), *b = op_input(c, 2);
    if (want_ranks(c, 3, 3)) return -1;
    if (a->shape[0] == b->shape[0] && a->shape[2] == b->shape[1]) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s times %s: want [B, m, k] and [B, k, n]", S(a), S(b));
}

static Tensor *add_product(OpCall *c, Tensor *x, Tensor *a, Tensor *b)
{
    const TensorAddmmArgs *p = op_params(c);
    return tensor_addmm(x, a, b, .beta = p->beta, .alpha = p->alpha);
}

static int addmv(OpCall *c)
{
    Tensor *x = op_input(c, 0), *y = add_product(c, x->ndim ? tensor_unsqueeze(x, 1) : x, op_input(c, 1),
                                                 tensor_unsqueeze(op_input(c, 2), 1));
    return op_set_result(c, 0, y ? tensor_select(y, 1, 0) : NULL);
}

/* x, or with beta = 0 zeros that have its gradient, 0, and nothing of its values. */
static Tensor *beta_times(Tensor *x, double beta)
{
    if (beta != 0) return beta == 1 ? x : tensor_mul_scalar(x, beta);
    Tensor *zero = tensor_zeros_like(x);
    return zero ? tensor_where(tensor_isnan(zero), x, zero) : NULL;
}

/* Elementwise, so dtypes are promoted, and alpha = 0 makes NaN of infinities, as in PyTorch. */
static int addr(OpCall *c)
{
    const TensorAddmmArgs *p = op_params(c);
    const TensorDtype dtype = addr_dtype(op_input(c, 0), op_input(c, 1), op_input(c, 2));
    Tensor *a = tensor_to(tensor_unsqueeze(op_input(c, 1), 1), dtype), *b = op_input(c, 2);
    if (a && p->beta != 0) {
        Tensor *scaled = p->alpha == 1 ? a : tensor_mul_scalar(a, p->alpha);
        if (!scaled) return -1;
        if (fused_result(c, FUSED_addr, 3, (Tensor *[]){ op_input(c, 0), scaled, b },
                         (double[FUSED_PARAMS]){ p->beta }))
            return 0;
    }
    Tensor *y = tensor_mul(p->alpha == 1 ? a : tensor_mul_scalar(a, p->alpha), b);
    y = tensor_add(beta_times(op_input(c, 0), p->beta), y);
    return op_set_result(c, 0, y ? tensor_to(y, dtype) : NULL);
}

static int addbmm(OpCall *c)
{
    Tensor *a = op_input(c, 1), *b = op_input(c, 2);
    const int64_t m = a->shape[1], k = a->shape[0] * a->shape[2], n = b->shape[2];
    Tensor *wide = tensor_reshape(tensor_transpose(a, 0, 1), SHAPE(m, k));
    return op_set_result(c, 0, add_product(c, op_input(c, 0), wide, tensor_reshape(b, SHAPE(k, n))));
}

static const OpField add_fields[] = { OP_OPTION(TensorAddmmArgs, beta, alpha), { 0 } };
#define ADD \
    .arity = 3, .params = sizeof(TensorAddmmArgs), .defaults = &tensor_addmm_defaults, .fields = add_fields

const TensorOp op_addmv = {
    .name = "addmv",
    .autocast = AUTOCAST_CUDA_LOWER,
    .summary = "beta input + alpha a b for [m, k] [k]",
    ADD,
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE,
    .gradient = "dx = beta g, da = alpha g b^T, db = alpha a^T g",
    .shape = addmv_shape,
    .compose = addmv,
    .samples = "3,3x4,4; 1,3x4,4 {alpha=2}; ,3x4,4 {beta=.5 alpha=-1}; 3,3x0,0; 0,0x4,4; 3,3x4,4 {beta=0}; "
               "3@i64,3x4@i64,4@i64 {alpha=2}",
    .errors = "3,3x4,5 ! ESHAPE; 4,3x4,4 ! ESHAPE; 3,1x4,4 ! ESHAPE; 3,3x4,4x1 ! ESHAPE; 3x3,3x4,4 ! ESHAPE; "
              "3@i64,3x4,4 ! EDTYPE",
};
const TensorOp op_addr = {
    .name = "addr",
    .autocast = AUTOCAST_CUDA_LOWER,
    .summary = "beta input + alpha a b^T for [m] [n]",
    ADD,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
    .gradient = "dx = beta g, da = alpha g b, db = alpha g^T a",
    .shape = addr_shape,
    .compose = addr,
    .samples = "3x4,3,4; 4,3,4 {alpha=2}; 3x1,3,4 {beta=.5 alpha=-1}; ,3,4; 0x4,0,4; 3x4,3,4 {beta=0}; "
               "3x4,3,4 {alpha=0}; 3x4@i64,3@i32,4@u8 {alpha=2}; 3x4,3@i64,4; @i64,3@bool,4@bool; "
               "4@bool,3@bool,4@bool {alpha=2}",
    .errors = "4x3,3,4 ! ESHAPE; 3x4,1,4 ! ESHAPE; 3x4,3x1,4 ! ESHAPE; 1x3x4,3,4 ! ESHAPE; "
              "4@i64,3@i64,4@i64 {alpha=.5} ! EVALUE",
};
const TensorOp op_addbmm = {
    .name = "addbmm",
    .autocast = AUTOCAST_LOWER,
    .summary = "beta input + alpha sum_i a_i b_i for [B, m, k] [B, k, n]",
    ADD,
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE,
    .gradient = "dx = beta g, da_i = alpha g b_i^T, db_i = alpha a_i^T g",
    .shape = addbmm_shape,
    .compose = addbmm,
    .samples = "3x5,2x3x4,2x4x5; 5,2x3x4,2x4x5 {alpha=2}; ,2x3x4,2x4x5 {beta=.5 alpha=-1}; 3x5,0x3x4,0x4x5; "
               "3x5,2x3x0,2x0x5; 3x5,2x3x4,2x4x5 {beta=0}",
    .errors = "3x5,2x3x4,3x4x5 ! ESHAPE; 3x5,2x1x4,2x4x5 ! ESHAPE; 3x5,2x3x4,2x3x5 ! ESHAPE; 4x5,2x3x4,2x4x5 "
              "! ESHAPE; 3x5,3x4,4x5 ! ESHAPE",
};
REGISTER_OPS(&op_addmv, &op_addr, &op_addbmm);

Tensor *tensor_addmv_args(TensorAddmmArgs s) { return APPLY(&op_addmv, &s, s.input, s.a, s.b); }
Tensor *tensor_addr_args(TensorAddmmArgs s) { return APPLY(&op_addr, &s, s.input, s.a, s.b); }
Tensor *tensor_addbmm_args(TensorAddmmArgs s) { return APPLY(&op_addbmm, &s, s.input, s.a, s.b); }

static Tensor *add_in_place(const TensorOp *op, const TensorAddmmArgs *s, const void *site)
{
    return op_apply_(op, (Tensor *[]){ s->input, s->a, s->b }, 3, s, site);
}

Tensor *tensor_addmv_args_(TensorAddmmArgs s) { return add_in_place(&op_addmv, &s, SITE); }
Tensor *tensor_addr_args_(TensorAddmmArgs s) { return add_in_place(&op_addr, &s, SITE); }
Tensor *tensor_addbmm_args_(TensorAddmmArgs s) { return add_in_place(&op_addbmm, &s, SITE); }
