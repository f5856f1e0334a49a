/* linear.c - the affine map of layers.
 *
 *   y = x w^T + b         [..., in] [out, in] [out] -> [..., out]
 *                         [..., in] [in] []         -> [...]
 *   dx = g w,  dw = g^T x and db = sum g, over all leading dimensions
 *
 * The leading dimensions are one: each gradient is a single product. */
#include "op/reduce/reduce.h"
#include "matrix_product.h"

static int shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *w = op_input(c, 1), *b = op_input(c, 2);
    int64_t dim[TENSOR_MAX_DIMS];
    if (check_numbers(c, x)) return -1;
    if (w->ndim != 2 && w->ndim != 1)
        return op_fail(c, TENSOR_ESHAPE, "weight %s: want [out, in] or [in]", S(w));
    if (x->ndim == 0)
        return op_fail(c, TENSOR_ESHAPE, "input %s, weight %s: the input has rank 0", S(x), S(w));
    const int64_t in = x->shape[x->ndim - 1];
    if (in != w->shape[w->ndim - 1])
        return op_fail(c, TENSOR_ESHAPE,
                       "input %s, weight %s: the input has %lld features, the weight takes %lld", S(x), S(w),
                       (long long)in, (long long)w->shape[w->ndim - 1]);
    const TensorShape columns = { w->ndim - 1, w->shape };
    if (b && !shape_equal(shape_of(b), columns))
        return op_fail(c, TENSOR_ESHAPE, "bias %s, weight %s: want a bias %s", S(b), S(w),
                       shape_text(columns));
    for (int i = 0; i < x->ndim - 1; i++) dim[i] = x->shape[i];
    dim[x->ndim - 1] = w->shape[0];
    return op_set_output(c, 0, (TensorShape){ x->ndim - 2 + w->ndim, dim }, (TensorDtype)x->dtype);
}

static Matrix rows_of(const Tensor *x) { return matrix(x, x->ndim > 1, true); }

/* y or its cotangent, which lack the dimension of the columns where the weight has rank 1. */
static Matrix result_of(const Tensor *y, int weight_rank)
{
    return weight_rank == 2 ? rows_of(y) : matrix(y, y->ndim > 0, false);
}

static int forward(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *w = op_input(c, 1), *b = op_input(c, 2), *y = op_output(c, 0);
    if (b && !(b = own(raw_contiguous(b)))) return -1;
    const Product p = { c->name, y->place, y->dtype, 1, 0, b ? b->data : NULL };
    return multiply(&p, rows_of(x), flip(rows_of(w)), result_of(y, w->ndim));
}

static Tensor *input_gradient(OpCall *c, const Product *p, const Tensor *dy)
{
    const Tensor *w = op_saved(c, 1);
    Tensor *dx = w ? own(new_tensor(op_input_shape(c, 0), dy->dtype, dy->place)) : NULL;
    return dx && !multiply(p, result_of(dy, w->ndim), rows_of(w), rows_of(dx)) ? dx : NULL;
}

static Tensor *weight_gradient(OpCall *c, const Product *p, const Tensor *dy)
{
    const Tensor *x = op_saved(c, 0);
    if (!x) return NULL;
    const TensorShape shape = op_input_shape(c, 1);
    Matrix g = result_of(dy, shape.ndim), m = rows_of(x);
    Tensor *dw = own(new_tensor(shape, dy->dtype, dy->place));
    if (!dw || fold_rows(&g, dy) || fold_rows(&m, x)) return NULL;
    return multiply(p, flip(g), m, rows_of(dw)) ? NULL : dw;
}

static Tensor *bias_gradient(const Tensor *dy, int weight_rank)
{
    bool reduced[TENSOR_MAX_DIMS];
    for (int i = 0; i < dy->ndim; i++) reduced[i] = weight_rank == 1 || i < dy->ndim - 1;
    return own(raw_reduce(dy, REDUCE_SUM, reduced, false, dy->dtype, 0));
}

static void recorded(OpCall *c, Tensor *dy, Tensor **dx)
{
    const bool vector = op_input_shape(c, 1).ndim == 1;
    if (vector) dy = tensor_unsqueeze(dy, -1);
    Tensor *g = as_rows(dy), *w = op_wants(c, 0) ? op_saved(c, 1) : NULL;
    if (op_wants(c, 0)) dx[0] = tensor_matmul(dy, vector ? tensor_unsqueeze(w, 0) : w);
    if (op_wants(c, 1)) dx[1] = tensor_matmul(tensor_transpose(g, 0, 1), as_rows(op_saved(c, 0)));
    if (op_wants(c, 2)) dx[2] = tensor_sum(g, 0);
    for (int i = 1; i < 3 && vector; i++)
        if (op_wants(c, i)) dx[i] = tensor_select(dx[i], 0, 0);
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const Product p = { c->name, dy->place, dy->dtype, 1, 0, NULL };
    if (op_recording(c)) {
        recorded(c, dy, dx);
    } else {
        if (op_wants(c, 0)) dx[0] = input_gradient(c, &p, dy);
        if (op_wants(c, 1)) dx[1] = weight_gradient(c, &p, dy);
        if (op_wants(c, 2)) dx[2] = bias_gradient(dy, op_input_shape(c, 1).ndim);
    }
    for (int i = 0; i < 3; i++)
        if (op_wants(c, i) && !dx[i]) return -1;
    return 0;
}

const TensorOp op_linear = {
    .name = "linear",
    .autocast = AUTOCAST_LOWER,
    .summary = "x weight^T + bias; weight [out, in], or [in] for one number each",
    .gradient = "dx = g weight, dweight = g^T x, dbias = sum g",
    .arity = 3,
    .optional = KEEP_INPUT(2),
    .keep_for = { KEEP_INPUT(1), KEEP_INPUT(0), 0 },
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE,
    .samples = "3x4,5x4,5; 3x4,5x4,-; 4,5x4,5; 2x3x4,5x4,5; 2x1x3x4,2x4,-; 0x4,5x4,5; 3x0,5x0,5; 3x4,0x4,0; "
               "2x0x4,5x4,5; 3x4@i64,5x4@i64,5@i64; 3x4@u8,5x4@u8,-; 3x4,4,; 4,4,; 4,4,-; 2x3x4,4,-; "
               "0x4,4,; 3x0,0,; 3x4@i32,4@i32,-",
    .errors = "3x4,5x3,5 ! ESHAPE; 3x4,5x4,4 ! ESHAPE; 3x4,3,- ! ESHAPE; 3x4,4,4 ! ESHAPE; 3x4,1x5x4,- ! "
              "ESHAPE; 3x4,5x4, ! ESHAPE; ,5x4,5 ! ESHAPE; "
              "3x4@bool,5x4@bool,5@bool ! EDTYPE; 3x4@i64,5x4,5 ! EDTYPE",
    .torch = "nn.functional.linear",
};
REGISTER_OPS(&op_linear);

Tensor *tensor_linear(Tensor *x, Tensor *weight, Tensor *bias)
{
    return APPLY(&op_linear, NULL, x, weight, bias);
}
