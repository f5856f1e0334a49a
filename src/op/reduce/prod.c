/* prod.c - product over one dim or all, and running products.
 *
 *   y = prod_i x_i               dx_i = g prod_{j != i} x_j
 *
 * The product of the others is that of those before times that of those after: no division, so zeros need no
 * care. On the graph the running products are made by doubling, y[s..] = x[s..] y[..n-s] for s = 1, 2, 4,
 * ...: only multiplications, whose derivatives are right to any order. */
#include "cpu/reduce/products.h"
#include "reduce.h"

const TensorProdArgs tensor_prod_defaults = { TENSOR_PROD_DEFAULTS };

static ReduceOver over_of(const OpCall *c)
{
    const TensorProdArgs *p = op_params(c);
    return over_dim(p->dim, p->keepdim);
}

static int prod_shape(OpCall *c)
{
    TensorProdArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    if (call_dim_or_all(c, &p->dim, shape_of(x))) return -1;
    return reduce_shape(c, over_of(c), sum_dtype(x, p->dtype));
}

/* Kernels multiply integers in i64. */
static int prod_forward(OpCall *c)
{
    Tensor *y = op_output(c, 0);
    const ReduceOver over = over_of(c);
    if (dtype_is_float(y->dtype) || y->dtype == TENSOR_I64) return reduce_forward(c, over, REDUCE_PROD, 0);
    Tensor *product = own(raw_reduce(op_input(c, 0), REDUCE_PROD, over.reduced, over.keepdim, TENSOR_I64, 0));
    return product ? raw_copy(y, product) : -1;
}

/* ---- running products on the graph ----------------------------------------------------------- */

static Tensor *running(Tensor *x, int dim)
{
    const int64_t n = x->shape[dim];
    for (int64_t s = 1; x && s < n; s *= 2) {
        Tensor *longer = tensor_mul(tensor_narrow(x, dim, s, n - s), tensor_narrow(x, dim, 0, n - s));
        x = tensor_cat(TENSORS(tensor_narrow(x, dim, 0, s), longer), dim);
    }
    return x;
}

/* For each place the product of all before it. */
static Tensor *before(Tensor *x, int dim)
{
    if (!x) return NULL;
    const int64_t n = x->shape[dim];
    Tensor *one = tensor_ones_like(tensor_narrow(x, dim, 0, 1)), *all = running(x, dim);
    return tensor_cat(TENSORS(one, tensor_narrow(all, dim, 0, n - 1)), dim);
}

static Tensor *others_on_graph(Tensor *x, int dim)
{
    if (!x || x->numel == 0) return x;
    Tensor *after = tensor_flip(before(tensor_flip(x, DIMS(dim)), dim), DIMS(dim));
    return tensor_mul(before(x, dim), after);
}

/* ---- and in a loop --------------------------------------------------------------------------- */

static Tensor *others_in_loop(Tensor *x, int dim)
{
    const Around a = x ? around(shape_of(x), dim) : (Around){ 0 };
    if (x && x->dtype == TENSOR_F32) {
        Tensor *dense = own(raw_contiguous(x)), *room = own(new_tensor(shape_of(x), TENSOR_F64, x->place)),
               *others = own(new_tensor(shape_of(x), TENSOR_F32, x->place));
        if (!dense || !room || !others) return NULL;
        products_of_others_f32(dense->data, room->data, others->data, a.outer, a.n, a.inner);
        return others;
    }
    Tensor *wide = x ? own(raw_cast(x, TENSOR_F64)) : NULL;
    Tensor *y = wide ? own(new_tensor(shape_of(wide), TENSOR_F64, wide->place)) : NULL;
    if (!y) return NULL;
    products_of_others(wide->data, y->data, a.outer, a.n, a.inner);
    return tensor_to(y, (TensorDtype)x->dtype);
}

static int prod_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorProdArgs *p = op_params(c);
    const TensorShape to = op_input_shape(c, 0);
    const bool all = p->dim == TENSOR_ALL;
    Tensor *x = op_saved(c, 0);
    if (!x) return -1;
    Tensor *line = all || to.ndim == 0 ? tensor_reshape(x, SHAPE(x->numel)) : x;
    const bool loop = !op_recording(c) && on_host(x->place);
    const int dim = all ? 0 : p->dim;
    Tensor *others = loop ? others_in_loop(line, dim) : others_on_graph(line, dim);
    dx[0] = tensor_mul(tensor_reshape(others, to), reduce_spread(over_of(c), to, dy));
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_OPTION(TensorProdArgs, dim, keepdim),
                                  OP_DTYPE(TensorProdArgs, dtype),
                                  { 0 } };

const TensorOp op_prod = {
    .name = "prod",
    .autocast = AUTOCAST_F32,
    .summary = "product over one dim or all; right with zeros",
    .gradient = "dx = g times the product of the other elements",
    .arity = 1,
    .keep = KEEP_INPUT(0),
    .params = sizeof(TensorProdArgs),
    .defaults = &tensor_prod_defaults,
    .cast_option = offsetof(TensorProdArgs, dtype),
    .fields = fields,
    .shape = prod_shape,
    .forward = prod_forward,
    .backward = prod_backward,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
    .samples = "5; 3x4 {dim=1}; 2x3x4 {dim=-2 keepdim=1}; ; {dim=0}; 4:0..0; 2x3:0..0 {dim=1}; 0x3 {dim=0}; "
               "0x3 {dim=1}; 3@i64; 3@i64 {dtype=i32}; 2x3 {dim=0 dtype=f64}; 3@bool {dtype=f32}",
    .errors = "3x4 {dim=2} ! EINDEX; 3 {dtype=9} ! EVALUE",
};
REGISTER_OPS(&op_prod);

Tensor *tensor_prod_args(TensorProdArgs a) { return APPLY(&op_prod, &a, a.input); }

/* ---- cumprod: dx_i = x_0 ... x_(i-1) s_i, s_i = g_i + x_(i+1) s_(i+1) ------------------------- */

const TensorCumprodArgs tensor_cumprod_defaults = { TENSOR_CUMPROD_DEFAULTS };

static int cumprod_shape(OpCall *c)
{
    TensorCumprodArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    p->dim = call_dim(c, p->dim, shape_of(x));
    return p->dim < 0 ? -1 : op_set_output(c, 0, shape_of(x), (TensorDtype)sum_dtype(x, p->dtype));
}

/* In double, or in i64. */
static int cumprod_forward(OpCall *c)
{
    const TensorCumprodArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *out = op_output(c, 0);
    const bool floats = dtype_is_float(out->dtype);
    const TensorDtype wide = floats ? TENSOR_F64 : TENSOR_I64;
    if (x->numel == 0) return 0;
    if (!on_host(x->place)) {
        Tensor *y = x->ndim ? running(tensor_to(x, (TensorDtype)out->dtype), p->dim) : x;
        return y ? raw_copy(out, y) : -1;
    }
    const Around a = around(shape_of(x), p->dim);
    if (x->dtype == TENSOR_F32 && out->dtype == TENSOR_F32) {
        if (!(x = own(raw_contiguous(x)))) return -1;
        running_products_f32(x->data, out->data, a.outer, a.n, a.inner);
        return 0;
    }
    x = own(raw_cast(x, wide));
    Tensor *y = x && out->dtype != (int)wide ? own(new_tensor(shape_of(x), wide, x->place)) : out;
    if (!x || !y) return -1;
    if (floats) running_products(x->data, y->data, a.outer, a.n, a.inner);
    else running_products_i64(x->data, y->data, a.outer, a.n, a.inner);
    return y == out ? 0 : raw_copy(out, y);
}

/* s_i = g_i + x_(i+1) s_(i+1) on the graph, by doubling: s_i += a_i s_(i+k), a_i *= a_(i+k) for k = 1, 2, 4,
 * ...  What a holds near the end is never read. */
static Tensor *tails_on_graph(Tensor *x, Tensor *s, int dim)
{
    const int64_t n = x->shape[dim];
    Tensor *a = tensor_roll(x, DIMS(-1), DIMS(dim));
    for (int64_t k = 1; a && s && k < n; k *= 2) {
        Tensor *head = tensor_narrow(a, dim, 0, n - k), *last = tensor_narrow(a, dim, n - k, k);
        Tensor *more = tensor_mul(head, tensor_narrow(s, dim, k, n - k));
        s = tensor_cat(
            TENSORS(tensor_add(tensor_narrow(s, dim, 0, n - k), more), tensor_narrow(s, dim, n - k, k)), dim);
        a = tensor_cat(TENSORS(tensor_mul(head, tensor_narrow(a, dim, k, n - k)), last), dim);
    }
    return a ? s : NULL;
}

static Tensor *cumprod_grad_in_loop(Tensor *x, Tensor *dy, int dim)
{
    Tensor *wide = own(raw_cast(x, TENSOR_F64)), *g = own(raw_cast(dy, TENSOR_F64));
    Tensor *dx = wide && g ? own(new_tensor(shape_of(wide), TENSOR_F64, wide->place)) : NULL;
    if (!dx) return NULL;
    const Around a = around(shape_of(x), dim);
    running_products_grad(wide->data, g->data, dx->data, a.outer, a.n, a.inner);
    return tensor_to(dx, (TensorDtype)x->dtype);
}

static int cumprod_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const int dim = ((const TensorCumprodArgs *)op_params(c))->dim;
    Tensor *x = op_saved(c, 0);
    if (!x) return -1;
    const bool loop = !op_recording(c) && on_host(x->place);
    if (x->numel == 0 || x->ndim == 0) dx[0] = dy;
    else if (loop) dx[0] = cumprod_grad_in_loop(x, dy, dim);
    else dx[0] = tensor_mul(before(x, dim), tails_on_graph(x, dy, dim));
    return dx[0] ? 0 : -1;
}

static const OpField cumprod_fields[] = { OP_REQUIRED(TensorCumprodArgs, dim),
                                          OP_DTYPE(TensorCumprodArgs, dtype),
                                          { 0 } };

const TensorOp op_cumprod = {
    .name = "cumprod",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "running product along a dim; right with zeros",
    .gradient = "dx_i = sum over j >= i of g_j times the product of the elements up to j but x_i",
    .arity = 1,
    .keep = KEEP_INPUT(0),
    .params = sizeof(TensorCumprodArgs),
    .defaults = &tensor_cumprod_defaults,
    .cast_option = offsetof(TensorCumprodArgs, dtype),
    .fields = cumprod_fields,
    .shape = cumprod_shape,
    .forward = cumprod_forward,
    .backward = cumprod_backward,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2}; {dim=0}; 4:0..0 {dim=0}; 0x3 {dim=0}; 3x0 {dim=0}; "
               "3@i64 {dim=0}; 1x3 {dim=0}; 3x4 {dim=0 dtype=f64}; 3@i64 {dim=0 dtype=i32}",
    .errors = "3x4 {dim=2} ! EINDEX; 3 {dim=-2147483648} ! EVALUE; 3 {dim=0 dtype=9} ! EVALUE",
};
REGISTER_OPS(&op_cumprod);

Tensor *tensor_cumprod_args(TensorCumprodArgs a) { return APPLY(&op_cumprod, &a, a.input); }
Tensor *tensor_cumprod_args_(TensorCumprodArgs a) { return APPLY_(&op_cumprod, &a, a.input); }
