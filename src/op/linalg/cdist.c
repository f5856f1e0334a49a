/* cdist.c - distances between all pairs of vectors: of two sets, or within one.
 *
 *   cdist   y_ij = |a_i - b_j|_p        a [..., P, M], b [..., R, M] -> [..., P, R]
 *           da_i = sum_j g_ij sign(d) (|d| / y)^(p-1), d = a_i - b_j, and 0 where y_ij is 0
 *           db_j: the same with b_j - a_i
 *           p = inf: g_ij sign(d) wherever |d| = y, undivided on ties, as in PyTorch;   p = 0: 0
 *   pdist   y_ij of one set [N, M], i < j in row-major order -> [N (N - 1) / 2]
 */
#include <math.h>
#include "cpu/linalg/pair_distances.h"
#include "cpu/shape/host_tables.h"
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"

const TensorCdistArgs tensor_cdist_defaults = { TENSOR_CDIST_DEFAULTS };
const TensorPdistArgs tensor_pdist_defaults = { TENSOR_PDIST_DEFAULTS };

/* What the kernel reads: x's dtype, or double. */
static int dtype_there(const Tensor *x) { return TAKES(x->place, pairs, x->dtype) ? x->dtype : TENSOR_F64; }

/* x with the batch of y, as the kernel reads it. */
static Tensor *with_batch(const Tensor *x, TensorShape y)
{
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    for (int i = 0; i < y.ndim; i++) shape[i] = i < y.ndim - 2 ? y.dim[i] : x->shape[x->ndim - y.ndim + i];
    broadcast_strides(x, (TensorShape){ y.ndim, shape }, stride);
    Tensor *view = own(new_view(x, y.ndim, shape, stride, 0));
    return view ? own(raw_cast(view, dtype_there(x))) : NULL;
}

/* ---- cdist ----------------------------------------------------------------------------------- */

static int shape(OpCall *c)
{
    const TensorCdistArgs *p = op_params(c);
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    int64_t dim[TENSOR_MAX_DIMS];
    if (!(p->p >= 0)) return op_fail(c, TENSOR_EVALUE, "p = %g must not be negative", p->p);
    if (a->ndim < 2 || b->ndim < 2)
        return op_fail(c, TENSOR_ESHAPE, "%s and %s: want [..., P, M] and [..., R, M]", S(a), S(b));
    if (a->shape[a->ndim - 1] != b->shape[b->ndim - 1])
        return op_fail(c, TENSOR_ESHAPE, "%s and %s: the vectors are %lld and %lld long", S(a), S(b),
                       (long long)a->shape[a->ndim - 1], (long long)b->shape[b->ndim - 1]);
    int ndim =
        shape_broadcast((TensorShape){ a->ndim - 2, a->shape }, (TensorShape){ b->ndim - 2, b->shape }, dim);
    if (ndim < 0) return op_fail(c, TENSOR_ESHAPE, "%s and %s: the batches do not broadcast", S(a), S(b));
    dim[ndim] = a->shape[a->ndim - 2], dim[ndim + 1] = b->shape[b->ndim - 2];
    return op_set_output(c, 0, (TensorShape){ ndim + 2, dim }, (TensorDtype)a->dtype);
}

static int forward(OpCall *c)
{
    Tensor *y = op_output(c, 0);
    if (y->numel == 0) return 0;
    const Tensor *a = with_batch(op_input(c, 0), shape_of(y)),
                 *b = op_input(c, 1) == op_input(c, 0) ? a : with_batch(op_input(c, 1), shape_of(y));
    Tensor *out = !a ? NULL : y->dtype == a->dtype ? y : own(new_tensor(shape_of(y), a->dtype, y->place));
    if (!a || !b || !out) return -1;
    const int nd = y->ndim;
    const int64_t m = y->shape[nd - 2], others = y->shape[nd - 1];
    PairsArgs args = { .dtype = out->dtype,
                       .batch = y->numel / (m * others),
                       .m = m,
                       .others = others,
                       .n = a->shape[nd - 1],
                       .a = a->data,
                       .b = b->data,
                       .out = out->data,
                       .p = ((const TensorCdistArgs *)op_params(c))->p,
                       .rounded = y->dtype != TENSOR_F64 };
    if (RUN_KERNEL(c->name, y->place, pairs, &args)) return -1;
    return out == y ? 0 : raw_copy(y, out);
}

/* The gradient of the first set (or, flipped, of the second). */
static Tensor *in_kernel(OpCall *c, const Tensor *a, const Tensor *b, const Tensor *g, bool flipped,
                         int dtype)
{
    const int nd = g->ndim;
    const double p = ((const TensorCdistArgs *)op_params(c))->p;
    if (g->numel == 0 || a->numel == 0 || p == 0) return zeros_on(shape_of(a), dtype, a->place);
    Tensor *da = own(new_tensor(shape_of(a), a->dtype, a->place));
    if (!da) return NULL;
    const int64_t rows = g->shape[nd - 2], columns = g->shape[nd - 1];
    PairsArgs args = { .dtype = da->dtype,
                       .batch = g->numel / (rows * columns),
                       .m = flipped ? columns : rows,
                       .others = flipped ? rows : columns,
                       .n = a->shape[nd - 1],
                       .step = flipped ? 1 : columns,
                       .other_step = flipped ? columns : 1,
                       .a = a->data,
                       .b = b->data,
                       .g = g->data,
                       .out = da->data,
                       .p = p,
                       .rounded = dtype != TENSOR_F64 };
    return RUN_KERNEL(c->name, a->place, pairs_grad, &args) ? NULL : tensor_to(da, (TensorDtype)dtype);
}

static Tensor *one_for_zero(Tensor *x)
{
    return x ? tensor_where(tensor_eq_scalar(x, 0), tensor_ones_like(x), x) : NULL;
}

/* For all pairs [..., P, R, M], on the graph. */
static Tensor *slopes(Tensor *a, Tensor *b, Tensor *g, double p)
{
    Tensor *others = tensor_unsqueeze(b, -3), *d = tensor_sub(tensor_unsqueeze(a, -2), others);
    g = tensor_unsqueeze(g, -1);
    if (!d || !g) return NULL;
    if (p == 0 || d->numel == 0) return tensor_mul(tensor_zeros_like(d), g);
    Tensor *y = tensor_norm(d, p, -1, true);
    if (!y) return NULL;
    if (isinf(p))
        return tensor_mul(tensor_where(tensor_eq(tensor_abs(d), y), tensor_sign(d), tensor_zeros_like(d)), g);
    g = tensor_where(tensor_eq_scalar(y, 0), tensor_zeros_like(g), g);
    y = one_for_zero(y);
    if (p == 2) return tensor_mul(d, tensor_div(g, y));
    Tensor *ratio =
        tensor_div(one_for_zero(tensor_abs(d)), y); /* first: powers of d or y may be out of range */
    return tensor_mul(tensor_mul(tensor_sign(d), tensor_pow_scalar(ratio, p - 1)), g);
}

static int recorded(OpCall *c, double p, Tensor *dy, Tensor **dx)
{
    Tensor *s = slopes(op_saved(c, 0), op_saved(c, 1), dy, p);
    if (!s) return -1;
    if (op_wants(c, 0) && !(dx[0] = tensor_sum(s, -2))) return -1;
    return op_wants(c, 1) && !(dx[1] = tensor_neg(tensor_sum(s, -3))) ? -1 : 0;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const double p = ((const TensorCdistArgs *)op_params(c))->p;
    if (op_recording(c)) return recorded(c, p, dy, dx);
    const Tensor *x = op_saved(c, 0), *z = op_saved(c, 1), *a = x ? with_batch(x, shape_of(dy)) : NULL,
                 *b = z ? with_batch(z, shape_of(dy)) : NULL;
    const Tensor *g = a ? own(raw_cast(dy, a->dtype)) : NULL;
    if (!a || !b || !g) return -1;
    if (op_wants(c, 0) && !(dx[0] = in_kernel(c, a, b, g, false, dy->dtype))) return -1;
    return op_wants(c, 1) && !(dx[1] = in_kernel(c, b, a, g, true, dy->dtype)) ? -1 : 0;
}

static const OpField fields[] = { OP_OPTION(TensorCdistArgs, p), { 0 } };
static const OpField pdist_fields[] = { OP_OPTION(TensorPdistArgs, p), { 0 } };

const TensorOp op_cdist = {
    .name = "cdist",
    .autocast = AUTOCAST_F32,
    .summary = "|a_i - b_j|_p of all pairs, [..., P, M] [..., R, M] -> [..., P, R]; gradient 0 where it is 0",
    .gradient = "da_i = sum_j g_ij sign(d) (|d| / y_ij)^(p-1), d = a_i - b_j; db_j likewise",
    .arity = 2,
    .keep = KEEP_INPUT(0) | KEEP_INPUT(1),
    PARAMS(TensorCdistArgs, tensor_cdist_defaults, fields),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_FLOAT_INPUTS | OP_ONE_DTYPE | OP_ROUND_ONCE | OP_ANY_DEVICE,
    .samples = "3x4,2x4; 2x3x4,2x2x4 {p=1}; 2x1x3x2,4x2x2 {p=3}; 3x2:1..2,2x2:-1..0 {p=1.5}; 3x4,2x4 "
               "{p=inf}; 3x2,2x2 {p=0}; 3x4:1..2,1x4:-1..0 {p=.5}; "
               "0x4,2x4; 3x0,2x0; 3x0,2x0 {p=inf}; 3x4,0x4; 0x3x4,0x2x4; 5x1,4x1",
    .errors = "3x4,2x5 ! ESHAPE; 4,2x4 ! ESHAPE; 2x3x4,3x3x4 ! ESHAPE; 3x4,2x4 {p=-1} ! EVALUE; 3x4@i64,2x4 "
              "! EDTYPE",
};
REGISTER_OPS(&op_cdist);

Tensor *tensor_cdist_args(TensorCdistArgs a) { return APPLY(&op_cdist, &a, a.a, a.b); }

/* ---- pdist ----------------------------------------------------------------------------------- */

static int pdist_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    const double p = ((const TensorPdistArgs *)op_params(c))->p;
    if (!(p >= 0)) return op_fail(c, TENSOR_EVALUE, "p = %g must not be negative", p);
    return x->ndim == 2 ? 0 : op_fail(c, TENSOR_ESHAPE, "%s: want [N, M]", S(x));
}

/* The places of i < j in [n, n], where x lies: row i begins at place i (m - i) / 2 of the list, m = 2 n - 1,
 * where the root is a whole number, so that its floor is exact. */
static Tensor *upper_triangle(OpCall *c, const Tensor *x)
{
    const int64_t n = x->shape[0], pairs = n < 2 ? 0 : n * (n - 1) / 2;
    if (on_host(x->place) || !pairs) {
        Tensor *list = own(new_tensor(SHAPE(pairs), TENSOR_I64, &cpu_place));
        if (list) host_pairs(list->data, n);
        return list ? carried(list, x->place) : NULL;
    }
    OpName names[] = { { "k", numbers_on(pairs, TENSOR_F64, x->place), 0 },
                       { .name = "i" },
                       { "m", NULL, (double)(2 * n - 1) },
                       { "n", NULL, (double)n } };
    names[1].tensor =
        names[0].tensor ? op_formula(c->name, "floor((m - sqrt(m * m - 8 * k)) / 2)", names, 4) : NULL;
    Tensor *list =
        names[1].tensor ? op_formula(c->name, "i * n + k - i * (m - i) / 2 + i + 1", names, 4) : NULL;
    return list ? tensor_to(list, TENSOR_I64) : NULL;
}

/* On the host each pair is computed once, and no square of distances is held. */
static int each_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    return op_set_output(c, 0, SHAPE(x->shape[0] * (x->shape[0] - 1) / 2), (TensorDtype)x->dtype);
}

static PairsArgs within(OpCall *c, const Tensor *x, int dtype)
{
    return (PairsArgs){ .dtype = TENSOR_F64,
                        .batch = 1,
                        .m = x->shape[0],
                        .others = x->shape[0],
                        .n = x->shape[1],
                        .a = x->data,
                        .p = ((const TensorPdistArgs *)op_params(c))->p,
                        .rounded = dtype != TENSOR_F64 };
}

static int each_forward(OpCall *c)
{
    Tensor *y = op_output(c, 0), *x = own(raw_cast(op_input(c, 0), TENSOR_F64)),
           *out = y->dtype == TENSOR_F64 ? y : own(new_tensor(shape_of(y), TENSOR_F64, y->place));
    if (!x || !out) return -1;
    PairsArgs args = within(c, x, y->dtype);
    args.out = out->data;
    host_pdist(&args);
    return out == y ? 0 : raw_copy(y, out);
}

static int each_recorded(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *x = op_saved(c, 0), *list = x ? upper_triangle(c, x) : NULL;
    if (!list) return -1;
    const int64_t n = x->shape[0];
    Tensor *zero = zeros_on(SHAPE(n * n), dy->dtype, dy->place);
    Tensor *g = zero ? tensor_reshape(tensor_index_add(zero, 0, list, dy), SHAPE(n, n)) : NULL;
    Tensor *s = g ? slopes(x, x, g, ((const TensorPdistArgs *)op_params(c))->p) : NULL;
    dx[0] = s ? tensor_sub(tensor_sum(s, -2), tensor_sum(s, -3)) : NULL;
    return dx[0] ? 0 : -1;
}

static int each_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (op_recording(c)) return each_recorded(c, dy, dx);
    const Tensor *saved = op_saved(c, 0), *x = saved ? own(raw_cast(saved, TENSOR_F64)) : NULL,
                 *kept = op_saved_output(c, 0), *y = kept ? own(raw_cast(kept, TENSOR_F64)) : NULL,
                 *g = own(raw_cast(dy, TENSOR_F64));
    if (!x || !y || !g) return -1;
    PairsArgs args = within(c, x, dy->dtype);
    if (args.p == 0) return (dx[0] = zeros_on(shape_of(x), dy->dtype, dy->place)) ? 0 : -1;
    Tensor *out = own(new_tensor(shape_of(x), TENSOR_F64, dy->place));
    if (!out) return -1;
    args.b = y->data, args.g = g->data, args.out = out->data;
    host_pdist_grad(&args);
    return (dx[0] = tensor_to(out, (TensorDtype)dy->dtype)) ? 0 : -1;
}

static const TensorOp op_each = { .name = "pdist",
                                  .autocast = AUTOCAST_AS_IS,
                                  .arity = 1,
                                  .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                                  .params = sizeof(TensorPdistArgs),
                                  .shape = each_shape,
                                  .forward = each_forward,
                                  .backward = each_backward };

static int pdist_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    if (on_host(x->place) && x->shape[0] > 1) return op_set_result(c, 0, APPLY(&op_each, op_params(c), x));
    Tensor *all = tensor_cdist(x, x, .p = ((const TensorPdistArgs *)op_params(c))->p),
           *list = upper_triangle(c, x);
    return op_set_result(
        c, 0, all && list ? tensor_index_select(tensor_reshape(all, SHAPE(all->numel)), 0, list) : NULL);
}

const TensorOp op_pdist = {
    .name = "pdist",
    .autocast = AUTOCAST_CUDA_F32,
    .summary =
        "|x_i - x_j|_p of all pairs i < j of one set, [N, M] -> [N (N - 1) / 2]; gradient 0 where it is 0",
    .gradient = "dx_i = sum_j g_ij sign(d) (|d| / y_ij)^(p-1), d = x_i - x_j",
    .arity = 1,
    PARAMS(TensorPdistArgs, tensor_pdist_defaults, pdist_fields),
    .shape = pdist_shape,
    .compose = pdist_compose,
    .flags = OP_FLOAT_INPUTS | OP_ROUND_ONCE | OP_ANY_DEVICE,
    .torch = "nn.functional.pdist",
    .samples = "4x3; 3x2 {p=1}; 3x2 {p=3}; 3x2 {p=inf}; 2x5 {p=1.5}; 1x3; 0x3; 3x0; 3x2 {p=0}",
    .errors = "3 ! ESHAPE; 3x2 {p=-1} ! EVALUE; 3x2@i64 ! EDTYPE",
};
REGISTER_OPS(&op_pdist);

Tensor *tensor_pdist_args(TensorPdistArgs a) { return APPLY(&op_pdist, &a, a.input); }
