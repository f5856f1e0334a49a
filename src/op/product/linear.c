/* linear.c - the affine map of layers, and with an activation behind it.
 *
 *   y = x w^T + b         [..., in] [out, in] [out] -> [..., out]
 *                         [..., in] [in] []         -> [...]
 *   dx = g w,  dw = g^T x and db = sum g, over all leading dimensions
 *
 *   linear_act: y = f(z), z = x w^T + b; the same with g f'(z) in place of g
 *
 * The leading dimensions are one: each gradient is a single product, of which that of the weight makes the
 * bias' too where the device has it so.  relu's gradient reads y; of the others z is kept, as extra 0. */
#include "op/elementwise/row.h"
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

/* Into y; the bias is added to p's other wishes. */
static int affine(OpCall *c, Product *p, const Tensor *y)
{
    const Tensor *x = op_input(c, 0), *w = op_input(c, 1), *b = op_input(c, 2);
    if (b && !(b = own(p->wide ? raw_cast(b, TENSOR_F32) : raw_contiguous(b)))) return -1;
    p->bias = b ? b->data : NULL;
    return multiply(p, rows_of(x), flip(rows_of(w)), result_of(y, w->ndim));
}

static int forward(OpCall *c)
{
    const Tensor *y = op_output(c, 0);
    Product p = { c->name, y->place, y->dtype, 1, 0, NULL };
    return affine(c, &p, y);
}

/* Where operands were cast to a half, their gradients are f32 at once. */
static int made_dtype(const OpCall *c, int i, const Tensor *dy)
{
    return dtype_is_half(dy->dtype) ? gradient_dtype(c, i) : dy->dtype;
}

static Tensor *input_gradient(OpCall *c, Product p, const Tensor *dy)
{
    const Tensor *w = op_saved(c, 1);
    Tensor *dx = w ? own(new_tensor(op_input_shape(c, 0), made_dtype(c, 0, dy), dy->place)) : NULL;
    p.wide = dx && dx->dtype != dy->dtype;
    return dx && !multiply(&p, result_of(dy, w->ndim), rows_of(w), rows_of(dx)) ? dx : NULL;
}

/* And into *db, unless it is NULL, the bias' gradient; *db becomes NULL where the product has none. */
static Tensor *weight_gradient(OpCall *c, Product p, const Tensor *dy, Tensor **db)
{
    const Tensor *x = op_saved(c, 0);
    if (!x) return NULL;
    const TensorShape shape = op_input_shape(c, 1);
    Matrix g = result_of(dy, shape.ndim), m = rows_of(x);
    Tensor *dw = own(new_tensor(shape, made_dtype(c, 1, dy), dy->place));
    p.wide = dw && dw->dtype != dy->dtype;
    if (!dw || fold_rows(&g, dy) || fold_rows(&m, x)) return NULL;
    if (*db) p.sums = (*db)->data;
    if (!multiply(&p, flip(g), m, rows_of(dw))) return dw;
    if (!*db || !take_decline()) return NULL;
    p.sums = NULL, *db = NULL;
    return multiply(&p, flip(g), m, rows_of(dw)) ? NULL : dw;
}

static Tensor *bias_gradient(const OpCall *c, const Tensor *dy, int weight_rank)
{
    bool reduced[TENSOR_MAX_DIMS];
    for (int i = 0; i < dy->ndim; i++) reduced[i] = weight_rank == 1 || i < dy->ndim - 1;
    return own(raw_reduce(dy, REDUCE_SUM, reduced, false, made_dtype(c, 2, dy), 0));
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

/* The product forms sums where there is one. */
static Tensor *room_for_sums(OpCall *c, const Tensor *dy)
{
    const TensorShape w = op_input_shape(c, 1);
    const bool both = op_wants(c, 1) && op_wants(c, 2) && dy->numel && w.dim[w.ndim - 1];
    Tensor *db = both ? own(new_tensor(op_input_shape(c, 2), made_dtype(c, 1, dy), dy->place)) : NULL;
    if (both && !db) c->failed = true;
    return db;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const Product p = { c->name, dy->place, dy->dtype, 1, 0, NULL };
    if (op_recording(c)) {
        recorded(c, dy, dx);
    } else {
        Tensor *db = room_for_sums(c, dy);
        if (c->failed) return -1;
        if (op_wants(c, 0)) dx[0] = input_gradient(c, p, dy);
        if (op_wants(c, 1)) dx[1] = weight_gradient(c, p, dy, &db);
        if (op_wants(c, 2)) dx[2] = db ? db : bias_gradient(c, dy, op_input_shape(c, 1).ndim);
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

/* ---- with an activation ---------------------------------------------------------------------- */

typedef struct ActParams {
    TensorActivation activation;
    bool biased, kept; /* found out by the shape rule: there is a bias; backward will want z */
} ActParams;

HIDDEN extern const TensorOp op_relu, op_gelu, op_gelu_tanh;
static const TensorOp *const row_of[] = { &op_relu, &op_gelu, &op_gelu_tanh };
static const GemmFunction function_of[] = { GEMM_RELU, GEMM_GELU, GEMM_GELU_TANH };
static const char *const activations[] = { "relu", "gelu", "gelu_tanh", NULL };

static TensorActivation activation_of(const OpCall *c)
{
    return ((const ActParams *)op_params(c))->activation;
}

static int act_shape(OpCall *c)
{
    ActParams *p = op_params_mut(c);
    p->biased = op_input(c, 2) != NULL, p->kept = false;
    for (int i = 0; i < 3 && p->activation != TENSOR_ACT_RELU && !grad_off; i++)
        p->kept |= on_graph(op_input(c, i));
    return shape(c);
}

/* By the row, where the product does not; what it makes of halves is rounded behind the row. */
static int by_row(OpCall *c, Product *p, Tensor *z, Tensor *y)
{
    Tensor *s = z ? z : y;
    p->function = GEMM_IDENTITY, p->before = NULL, p->wide = dtype_is_half(y->dtype);
    if (p->wide && !(s = own(new_tensor(shape_of(y), TENSOR_F32, y->place)))) return -1;
    if (affine(c, p, s) || (z && z != s && raw_copy(z, s))) return -1;
    return row_map(row_of[activation_of(c)], c->name, ROW_FORWARD, y, (Tensor *[ROW_OPERANDS]){ [ROW_A] = s },
                   NULL);
}

static int act_forward(OpCall *c)
{
    const ActParams *params = op_params(c);
    const TensorActivation f = params->activation;
    Tensor *y = op_output(c, 0);
    Tensor *z = params->kept ? own(new_tensor(shape_of(y), y->dtype, y->place)) : NULL;
    Product p = { c->name, y->place, y->dtype, 1, 0, NULL };
    if (params->kept && !z) return -1;
    p.function = function_of[f], p.row = row_of[f]->row->id, p.before = z ? z->data : NULL;
    if (affine(c, &p, y) && (!take_decline() || by_row(c, &p, z, y))) return -1;
    return z ? op_save(c, z) : 0;
}

static Tensor *recorded_slope(OpCall *c, Tensor *dy)
{
    Tensor *b = ((const ActParams *)op_params(c))->biased ? op_saved(c, 2) : NULL;
    Tensor *z = tensor_linear(op_saved(c, 0), op_saved(c, 1), b);
    const OpName names[] = { { "g", dy, 0 }, { "x", z, 0 }, { "y", z, 0 } };
    return z ? op_formula(c->name, row_of[activation_of(c)]->row->gradient[0], names, 3) : NULL;
}

static int act_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorActivation f = activation_of(c);
    Tensor *g = NULL;
    if (op_recording(c)) {
        g = recorded_slope(c, dy);
    } else {
        Tensor *z = f == TENSOR_ACT_RELU ? op_saved_output(c, 0) : op_saved_extra(c, 0);
        g = z ? own(new_tensor(shape_of(dy), dy->dtype, dy->place)) : NULL;
        Tensor *in[ROW_OPERANDS] = { [ROW_A] = z, [ROW_Y] = z, [ROW_G] = dy };
        if (!g || row_map(row_of[f], c->name, ROW_GRAD_A, g, in, NULL)) return -1;
    }
    return g ? backward(c, g, dx) : -1;
}

static const OpField act_fields[] = {
    { OP_OPTION_(ActParams, activation), .required = true, .choices = activations }, { 0 }
};

static const TensorOp op_linear_act = {
    .name = "linear_act",
    .autocast = AUTOCAST_LOWER,
    .summary = "relu or gelu of x weight^T + bias, in one pass where the device has it",
    .gradient = "that of linear, of g f'(x weight^T + bias)",
    .arity = 3,
    .optional = KEEP_INPUT(2),
    .params = sizeof(ActParams),
    .fields = act_fields,
    .keep = KEEP_INPUT(0) | KEEP_INPUT(1) | KEEP_INPUT(2) | KEEP_OUTPUT(0),
    .shape = act_shape,
    .forward = act_forward,
    .backward = act_backward,
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE | OP_FLOAT_INPUTS,
    .samples =
        "3x4,5x4,5 {activation=relu}; 3x4,8x4,- {activation=gelu}; 2x3x4,8x4,8 {activation=gelu_tanh}; "
        "4,5x4,5 {activation=gelu_tanh}; 3x4,4, {activation=gelu}; 0x4,5x4,5 {activation=relu}; "
        "3x0,5x0,5 {activation=gelu_tanh}",
    .errors = "3x4,5x3,5 {activation=relu} ! ESHAPE; 3x4@i64,5x4@i64,- {activation=relu} ! EDTYPE; "
              "3x4,5x4,5 {activation=3} ! EVALUE",
    .torch = "-",
};
REGISTER_OPS(&op_linear_act);

Tensor *tensor_linear_act(Tensor *x, Tensor *weight, Tensor *bias, TensorActivation activation)
{
    return APPLY(&op_linear_act, &((ActParams){ .activation = activation }), x, weight, bias);
}
