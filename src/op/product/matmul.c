/* matmul.c - matrix products.
 *
 *   y = a b               [..., m, k] [..., k, n] -> [..., m, n]
 *                         rank 1 is a row on the left, a column on the right
 *   da = g b^T,  db = a^T g, summed over batches that were broadcast
 *
 *   addmm, baddbmm        y = beta x + alpha a b
 *   dx = beta g,  da = alpha g b^T,  db = alpha a^T g
 *
 * A matrix that all of a batch shares gets its gradient from one product over the whole batch. */
#include "matrix_product.h"

const TensorAddmmArgs tensor_addmm_defaults = { TENSOR_ADDMM_DEFAULTS };

/* ---- shapes ---------------------------------------------------------------------------------- */

static int result_shape(OpCall *c, const Tensor *a, const Tensor *b, int64_t *shape)
{
    if (check_numbers(c, a)) return -1;
    const int64_t inner_a = a->shape[a->ndim - 1], inner_b = b->shape[b->ndim > 1 ? b->ndim - 2 : 0];
    if (inner_a != inner_b)
        return op_fail(c, TENSOR_ESHAPE, "%s times %s: the inner sizes %lld and %lld differ", S(a), S(b),
                       (long long)inner_a, (long long)inner_b);
    const TensorShape batch_a = { a->ndim > 2 ? a->ndim - 2 : 0, a->shape },
                      batch_b = { b->ndim > 2 ? b->ndim - 2 : 0, b->shape };
    int ndim = shape_broadcast(batch_a, batch_b, shape);
    if (ndim < 0)
        return op_fail(c, TENSOR_ESHAPE, "%s times %s: the batches %s and %s do not broadcast", S(a), S(b),
                       shape_text(batch_a), shape_text(batch_b));
    if (a->ndim > 1) shape[ndim++] = a->shape[a->ndim - 2];
    if (b->ndim > 1) shape[ndim++] = b->shape[b->ndim - 1];
    return ndim;
}

static int shape(OpCall *c)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    int64_t dim[TENSOR_MAX_DIMS];
    if (a->ndim == 0 || b->ndim == 0)
        return op_fail(c, TENSOR_ESHAPE, "%s times %s: an operand of rank 0", S(a), S(b));
    int ndim = result_shape(c, a, b, dim);
    return ndim < 0 ? -1 : op_set_output(c, 0, (TensorShape){ ndim, dim }, (TensorDtype)a->dtype);
}

static int want_ranks(OpCall *c, int first, int rank_a, int rank_b)
{
    const Tensor *a = op_input(c, first), *b = op_input(c, first + 1);
    if (a->ndim == rank_a && b->ndim == rank_b) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s times %s: want ranks %d and %d", S(a), S(b), rank_a, rank_b);
}

static int mm_shape(OpCall *c) { return want_ranks(c, 0, 2, 2) ? -1 : shape(c); }
static int mv_shape(OpCall *c) { return want_ranks(c, 0, 2, 1) ? -1 : shape(c); }
static int dot_shape(OpCall *c) { return want_ranks(c, 0, 1, 1) ? -1 : shape(c); }
static int outer_shape(OpCall *c) { return want_ranks(c, 0, 1, 1); }

static int want_one_batch(OpCall *c, int first)
{
    const Tensor *a = op_input(c, first), *b = op_input(c, first + 1);
    if (want_ranks(c, first, 3, 3)) return -1;
    if (a->shape[0] == b->shape[0]) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s times %s: the batches %lld and %lld differ", S(a), S(b),
                   (long long)a->shape[0], (long long)b->shape[0]);
}

static int bmm_shape(OpCall *c) { return want_one_batch(c, 0) ? -1 : shape(c); }

static int add_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *a = op_input(c, 1), *b = op_input(c, 2);
    int64_t dim[TENSOR_MAX_DIMS], joint[TENSOR_MAX_DIMS];
    const TensorAddmmArgs *p = op_params(c);
    int ndim = result_shape(c, a, b, dim);
    if (ndim < 0) return -1;
    if (!dtype_is_float(a->dtype) && !(is_integral(p->alpha) && is_integral(p->beta)))
        return op_fail(c, TENSOR_EVALUE, "%s %s times %s: beta = %g, alpha = %g: integers want integers",
                       tensor_dtype_name((TensorDtype)a->dtype), S(a), S(b), p->beta, p->alpha);
    const TensorShape y = { ndim, dim };
    if (x->ndim > ndim || shape_broadcast(shape_of(x), y, joint) != ndim ||
        !shape_equal((TensorShape){ ndim, joint }, y))
        return op_fail(c, TENSOR_ESHAPE, "%s does not broadcast to %s, the shape of %s times %s", S(x),
                       shape_text(y), S(a), S(b));
    return op_set_output(c, 0, y, (TensorDtype)a->dtype);
}

static int addmm_shape(OpCall *c) { return want_ranks(c, 1, 2, 2) ? -1 : add_shape(c); }
static int baddbmm_shape(OpCall *c) { return want_one_batch(c, 1) ? -1 : add_shape(c); }

/* ---- forward --------------------------------------------------------------------------------- */

static int forward(OpCall *c)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1), *y = op_output(c, 0);
    const Product p = { c->name, y->place, y->dtype, 1, 0, NULL };
    return multiply(&p, left_matrix(a), right_matrix(b), matrix(y, a->ndim > 1, b->ndim > 1));
}

static int add_forward(OpCall *c)
{
    const TensorAddmmArgs *s = op_params(c);
    const Tensor *x = op_input(c, 0);
    Tensor *y = op_output(c, 0);
    Product p = { c->name, y->place, y->dtype, s->alpha, s->beta, NULL };
    const bool row = x->ndim == 1 && x->shape[0] == y->shape[y->ndim - 1] && (x->flags & FLAG_CONTIGUOUS);
    if (s->beta == 1 && row) p.bias = x->data, p.beta = 0;
    else if (s->beta != 0 && raw_copy(y, x)) return -1;
    return multiply(&p, left_matrix(op_input(c, 1)), right_matrix(op_input(c, 2)), matrix(y, true, true));
}

/* alpha = 0 where 0 NaN is NaN: the product as it is, then times 0. */
static int add_zero_times(OpCall *c, const TensorAddmmArgs *s)
{
    Tensor *x = op_input(c, 0), *y = op_output(c, 0);
    const Product p = { c->name, y->place, y->dtype, 1, 0, NULL };
    if (multiply(&p, left_matrix(op_input(c, 1)), right_matrix(op_input(c, 2)), matrix(y, true, true)))
        return -1;
    Tensor *sum = tensor_mul_scalar(y, 0);
    if (s->beta != 0) sum = tensor_add(sum, tensor_mul_scalar(x, s->beta));
    return sum ? raw_copy(y, sum) : -1;
}

static int baddbmm_forward(OpCall *c)
{
    const TensorAddmmArgs *s = op_params(c);
    return s->alpha == 0 && dtype_is_float(op_output(c, 0)->dtype) ? add_zero_times(c, s) : add_forward(c);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* A new tensor of dy's batch (or none) and the two last sizes given; -1: no such dimension. */
static Tensor *gradient(const Tensor *dy, int batch_ndim, int64_t rows, int64_t cols)
{
    int64_t dim[TENSOR_MAX_DIMS];
    int ndim = batch_ndim;
    for (int i = 0; i < batch_ndim; i++) dim[i] = dy->shape[i];
    if (rows >= 0) dim[ndim++] = rows;
    if (cols >= 0) dim[ndim++] = cols;
    return own(new_tensor((TensorShape){ ndim, dim }, dy->dtype, dy->place));
}

static Tensor *left_gradient(const Product *p, const Tensor *dy, const Tensor *b, bool row)
{
    const Matrix g = matrix(dy, !row, b->ndim > 1), bt = flip(right_matrix(b));
    Tensor *da = gradient(dy, g.batch_ndim, row ? -1 : g.rows, bt.cols);
    return da && !multiply(p, g, bt, matrix(da, !row, true)) ? da : NULL;
}

static Tensor *right_gradient(const Product *p, const Tensor *dy, const Tensor *a, bool column, bool shared)
{
    Matrix g = matrix(dy, a->ndim > 1, !column), m = left_matrix(a);
    if (shared && (fold_rows(&g, dy) || fold_rows(&m, a))) return NULL;
    Tensor *db = gradient(dy, g.batch_ndim, m.cols, column ? -1 : g.cols);
    return db && !multiply(p, flip(m), g, matrix(db, true, !column)) ? db : NULL;
}

static Tensor *scaled(Tensor *x, double alpha) { return alpha == 1 ? x : tensor_mul_scalar(x, alpha); }

/* The same as ops: vectors become matrices first. */
static int recorded(OpCall *c, int first, double alpha, Tensor *dy, Tensor **dx)
{
    const TensorShape sa = op_input_shape(c, first), sb = op_input_shape(c, first + 1);
    const bool row = sa.ndim == 1, column = sb.ndim == 1, shared = sb.ndim <= 2 && sa.ndim > 2;
    Tensor *g = scaled(dy, alpha);
    if (column) g = tensor_unsqueeze(g, -1);
    if (row) g = tensor_unsqueeze(g, -2);
    if (op_wants(c, first)) {
        Tensor *b = op_saved(c, first + 1);
        Tensor *da = tensor_matmul(g, tensor_transpose(column ? tensor_unsqueeze(b, -1) : b, -2, -1));
        dx[first] = row ? tensor_select(da, -2, 0) : da;
    }
    if (op_wants(c, first + 1)) {
        Tensor *a = op_saved(c, first);
        if (row) a = tensor_unsqueeze(a, 0);
        if (shared) a = as_rows(a), g = as_rows(g);
        Tensor *db = tensor_matmul(tensor_transpose(a, -2, -1), g);
        dx[first + 1] = column ? tensor_select(db, -1, 0) : db;
    }
    return (op_wants(c, first) && !dx[first]) || (op_wants(c, first + 1) && !dx[first + 1]) ? -1 : 0;
}

static int product_backward(OpCall *c, int first, double alpha, Tensor *dy, Tensor **dx)
{
    const TensorShape sa = op_input_shape(c, first), sb = op_input_shape(c, first + 1);
    const Product p = { c->name, dy->place, dy->dtype, alpha, 0, NULL };
    if (op_recording(c) || alpha == 0) return recorded(c, first, alpha, dy, dx); /* 0 NaN is NaN */
    if (op_wants(c, first)) {
        const Tensor *b = op_saved(c, first + 1);
        dx[first] = b ? left_gradient(&p, dy, b, sa.ndim == 1) : NULL;
        if (!dx[first]) return -1;
    }
    if (op_wants(c, first + 1)) {
        const Tensor *a = op_saved(c, first);
        dx[first + 1] = a ? right_gradient(&p, dy, a, sb.ndim == 1, sb.ndim <= 2 && sa.ndim > 2) : NULL;
        if (!dx[first + 1]) return -1;
    }
    return 0;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx) { return product_backward(c, 0, 1, dy, dx); }

static int add_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorAddmmArgs *p = op_params(c);
    if (op_wants(c, 0) && !(dx[0] = scaled(dy, p->beta))) return -1;
    return product_backward(c, 1, p->alpha, dy, dx);
}

static int outer_compose(OpCall *c)
{
    return op_set_result(c, 0, tensor_mul(tensor_unsqueeze(op_input(c, 0), 1), op_input(c, 1)));
}

/* ---- ops ------------------------------------------------------------------------------------- */

#define PRODUCT                                                                                         \
    .arity = 2, .keep_for = { KEEP_INPUT(1), KEEP_INPUT(0) }, .forward = forward, .backward = backward, \
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE

const TensorOp op_matmul = {
    .name = "matmul",
    .autocast = AUTOCAST_LOWER,
    .summary = "matrix product [..., m, k] [..., k, n]; batches broadcast; rank 1 is a row or a column",
    .gradient = "da = g b^T, db = a^T g",
    .shape = shape,
    PRODUCT,
    .samples = "6,6; 3x4,4; 4,4x3; 3x4,4x5; 3x0,0x4; 2x3x4,4; 2x3x4,4x2; 2x2x0,0x3; 4,2x4x3; 3x4,2x4x3; "
               "0x0,2x0x0; 2x3x2x4,2x3x4x2; 2x1x2x4,3x4x2; 3x2x4,1x4x2; 0x3x4,4x2; 0x3x4,0x4x2; 2x1x4,4x3; "
               "2x4,3x2x4x1; 0,0; 3x4@i64,4x2@i64; 2x3@u8,3@u8; 2x3x4@i32,4@i32",
    .errors = "3x4,5x6 ! ESHAPE; ,3 ! ESHAPE; 3, ! ESHAPE; 2x3x4,3x4x2 ! ESHAPE; 3x4@bool,4x2@bool ! EDTYPE; "
              "3@i64,3 ! EDTYPE; 3x4@i64,4x2@i32 ! EDTYPE; 4,3x4 ! ESHAPE",
};
const TensorOp op_mm = {
    .name = "mm",
    .autocast = AUTOCAST_LOWER,
    .summary = "matrix product [m, k] [k, n]",
    .gradient = "da = g b^T, db = a^T g",
    .shape = mm_shape,
    PRODUCT,
    .samples = "3x4,4x5; 1x5,5x1; 3x0,0x4; 0x3,3x2",
    .errors = "3x4,5x6 ! ESHAPE; 2x3x4,4x2 ! ESHAPE; 3x4,4 ! ESHAPE",
};
const TensorOp op_bmm = {
    .name = "bmm",
    .autocast = AUTOCAST_LOWER,
    .summary = "products of a batch [B, m, k] [B, k, n]",
    .gradient = "da = g b^T, db = a^T g",
    .shape = bmm_shape,
    PRODUCT,
    .samples = "2x3x4,2x4x5; 1x3x4,1x4x2; 0x3x4,0x4x2; 2x3x0,2x0x2",
    .errors = "2x3x4,1x4x5 ! ESHAPE; 3x4,4x5 ! ESHAPE; 2x3x4,2x3x4 ! ESHAPE",
};
const TensorOp op_mv = {
    .name = "mv",
    .autocast = AUTOCAST_CUDA_LOWER,
    .summary = "matrix times vector [m, k] [k]",
    .gradient = "da = g b^T, db = a^T g",
    .shape = mv_shape,
    PRODUCT,
    .samples = "3x4,4; 0x4,4; 3x0,0; 70x80,80",
    .errors = "3x4,3 ! ESHAPE; 3x4,4x1 ! ESHAPE",
};
const TensorOp op_dot = {
    .name = "dot",
    .autocast = AUTOCAST_CUDA_PROMOTE,
    .summary = "inner product [k] [k]",
    .gradient = "da = g b, db = g a",
    .shape = dot_shape,
    PRODUCT,
    .samples = "5,5; 0,0; 100,100",
    .errors = "5,4 ! ESHAPE; 2x3,3 ! ESHAPE",
};
const TensorOp op_outer = {
    .name = "outer",
    .autocast = AUTOCAST_AS_IS,
    .summary = "outer product [m] [n] -> [m, n]",
    .gradient = "da = g b, db = g^T a",
    .arity = 2,
    .shape = outer_shape,
    .compose = outer_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "3,4; 0,4; 3,0; 1,1; 3@i64,2@u8",
    .errors = "3x1,4 ! ESHAPE",
};

static const OpField fields[] = { OP_OPTION(TensorAddmmArgs, beta, alpha), { 0 } };
#define ADD_PRODUCT                                                                                 \
    .arity = 3, .keep_for = { 0, KEEP_INPUT(2), KEEP_INPUT(1) }, .params = sizeof(TensorAddmmArgs), \
    .defaults = &tensor_addmm_defaults, .fields = fields, .backward = add_backward,                 \
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE

const TensorOp op_addmm = {
    .name = "addmm",
    .autocast = AUTOCAST_LOWER,
    .summary = "beta input + alpha a b for [m, k] [k, n]",
    .gradient = "dinput = beta g, da = alpha g b^T, db = alpha a^T g",
    .shape = addmm_shape,
    .forward = add_forward,
    ADD_PRODUCT,
    .samples = "3x5,3x4,4x5; 5,3x4,4x5 {alpha=2}; 3x1,3x4,4x5 {beta=.5 alpha=-1}; ,3x4,4x5; 5,3x4,4x5 "
               "{beta=0}; 5,3x0,0x5; 5,0x4,4x5; 5@i32,3x4@i32,4x5@i32 {beta=2 alpha=-3}; "
               "3x5,3x4,4x5 {alpha=0}",
    .errors = "4x5,3x4,4x5 ! ESHAPE; 3x5,1x4,4x5 ! ESHAPE; 1x3x5,3x4,4x5 ! ESHAPE; 3x5,3x4,5x4 ! ESHAPE; "
              "3x5,4,4x5 ! ESHAPE; "
              "5@i64,3x4@i64,4x5@i64 {alpha=.5} ! EVALUE; 5@i64,3x4@i64,4x5@i64 {beta=1.5} ! EVALUE",
};
const TensorOp op_baddbmm = {
    .name = "baddbmm",
    .autocast = AUTOCAST_LOWER,
    .summary = "beta input + alpha a b for [B, m, k] [B, k, n]",
    .gradient = "dinput = beta g, da = alpha g b^T, db = alpha a^T g",
    .shape = baddbmm_shape,
    .forward = baddbmm_forward,
    ADD_PRODUCT,
    .samples = "2x3x5,2x3x4,2x4x5; 5,2x3x4,2x4x5 {alpha=2}; 5,2x3x4,2x4x5 {alpha=0}; 2x1x1,2x3x4,2x4x5 "
               "{beta=.5}; 3x5,2x3x4,2x4x5 {beta=0}; 5,0x3x4,0x4x5",
    .errors =
        "3x5,2x3x4,1x4x5 ! ESHAPE; 2x4,2x3x4,2x4x5 ! ESHAPE; 2x3x5,2x1x4,2x4x5 ! ESHAPE; 5,3x4,4x5 ! ESHAPE",
};
REGISTER_OPS(&op_matmul, &op_mm, &op_bmm, &op_mv, &op_dot, &op_outer, &op_addmm, &op_baddbmm);

Tensor *tensor_matmul(Tensor *a, Tensor *b) { return APPLY(&op_matmul, NULL, a, b); }
Tensor *tensor_mm(Tensor *a, Tensor *b) { return APPLY(&op_mm, NULL, a, b); }
Tensor *tensor_bmm(Tensor *a, Tensor *b) { return APPLY(&op_bmm, NULL, a, b); }
Tensor *tensor_mv(Tensor *a, Tensor *b) { return APPLY(&op_mv, NULL, a, b); }
Tensor *tensor_dot(Tensor *a, Tensor *b) { return APPLY(&op_dot, NULL, a, b); }
Tensor *tensor_outer(Tensor *a, Tensor *b) { return APPLY(&op_outer, NULL, a, b); }

Tensor *tensor_addmm_args(TensorAddmmArgs s) { return APPLY(&op_addmm, &s, s.input, s.a, s.b); }

Tensor *tensor_baddbmm_args(TensorAddmmArgs s) { return APPLY(&op_baddbmm, &s, s.input, s.a, s.b); }

Tensor *tensor_addmm_args_(TensorAddmmArgs s) { return APPLY_(&op_addmm, &s, s.input, s.a, s.b); }

Tensor *tensor_baddbmm_args_(TensorAddmmArgs s) { return APPLY_(&op_baddbmm, &s, s.input, s.a, s.b); }
