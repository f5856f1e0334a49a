/* prod.c - product over one dim or all, and running products.
 *
 *   y = prod_i x_i               dx_i = g prod_{j != i} x_j
 *
 * The product of the others is that of those before times that of those after: no division, so zeros need no
 * care. On the graph the running products are made by doubling, y[s..] = x[s..] y[..n-s] for s = 1, 2, 4,
 * ...: only multiplications, whose derivatives are right to any order. */
#include "reduce.h"

static int prod_shape(OpCall *c)
{
    const ReduceParams *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    if (reduce_check(c)) return -1;
    if (p->dims.n > 1)
        return op_fail(c, TENSOR_EVALUE, "%s: %d dims given: it takes one, or none for all", S(x), p->dims.n);
    return reduce_shape(c, dtype_is_float(x->dtype) ? x->dtype : TENSOR_I64);
}

static int prod_forward(OpCall *c) { return reduce_forward(c, REDUCE_PROD); }

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

static void others_of_line(const double *x, double *y, int64_t n, int64_t step)
{
    double p = 1;
    for (int64_t i = 0; i < n; i++) y[i * step] = p, p *= x[i * step];
    p = 1;
    for (int64_t i = n - 1; i >= 0; i--) y[i * step] *= p, p *= x[i * step];
}

static Tensor *others_in_loop(Tensor *x, int dim)
{
    Tensor *wide = x ? own(raw_cast(x, TENSOR_F64)) : NULL;
    Tensor *y = wide ? own(new_tensor(shape_of(wide), TENSOR_F64, wide->place)) : NULL;
    if (!y) return NULL;
    const Around a = around(shape_of(x), dim);
    for (int64_t o = 0; o < a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const int64_t at = o * a.n * a.inner + i;
            others_of_line((const double *)wide->data + at, (double *)y->data + at, a.n, a.inner);
        }
    return tensor_to(y, (TensorDtype)x->dtype);
}

static int prod_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const ReduceParams *p = op_params(c);
    const TensorShape to = op_input_shape(c, 0);
    Tensor *x = op_saved(c, 0);
    if (!x) return -1;
    Tensor *line = p->dims.n == 0 ? tensor_reshape(x, SHAPE(x->numel))
                   : to.ndim == 0 ? tensor_reshape(x, SHAPE(1))
                                  : x;
    const int dim = p->dims.n ? (int)p->dims.at[0] : 0;
    bool loop = !op_recording(c) && x->place->device == &cpu_device;
    Tensor *others = tensor_reshape(loop ? others_in_loop(line, dim) : others_on_graph(line, dim), to);
    dx[0] = tensor_mul(others, reduce_spread(p, to, dy));
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { REDUCE_FIELDS, { 0 } };

const TensorOp op_prod = {
    .name = "prod",
    .summary = "product over one dim or all; right with zeros",
    .gradient = "dx = g times the product of the other elements",
    .arity = 1,
    .keep = KEEP_INPUT(0),
    .params = sizeof(ReduceParams),
    .fields = fields,
    .shape = prod_shape,
    .forward = prod_forward,
    .backward = prod_backward,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
    .samples = "5; 3x4 {dims=[1]}; 2x3x4 {dims=[-2] keepdim=1}; ; {dims=[0]}; 4:0..0; 2x3:0..0 {dims=[1]}; "
               "0x3 {dims=[0]}; "
               "0x3 {dims=[1]}; 3@i64",
    .errors = "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[0 1]} ! EVALUE",
};
REGISTER_OP(op_prod);

Tensor *tensor_prod_args(TensorReduceArgs a)
{
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    bool cast = a.dtype < TENSOR_DTYPES && tensor_dtype_is_float(a.dtype);
    Tensor *y = APPLY(&op_prod, &p, cast ? tensor_to(a.input, a.dtype) : a.input);
    return y && a.dtype != TENSOR_DTYPES && y->dtype != a.dtype ? tensor_to(y, a.dtype) : y;
}

/* ---- cumprod --------------------------------------------------------------------------------- */

typedef struct CumprodParams {
    int dim;
} CumprodParams;

static int cumprod_check(OpCall *c)
{
    CumprodParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    int dim = wrap_dim(p->dim, x->ndim);
    if (dim < 0) return op_fail(c, TENSOR_EINDEX, "%s has no dim %d", S(x), p->dim);
    p->dim = dim;
    return 0;
}

static int cumprod_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    if (!dtype_is_float(x->dtype)) x = tensor_to(x, TENSOR_I64);
    if (!x) return -1;
    Tensor *y = x->ndim == 0 || x->shape[((const CumprodParams *)op_params(c))->dim] < 2
                    ? tensor_reshape(x, shape_of(x))
                    : running(x, ((const CumprodParams *)op_params(c))->dim);
    return op_set_result(c, 0, y);
}

static const OpField cumprod_fields[] = { OP_FIELD(OP_INT, CumprodParams, dim, NULL), { 0 } };

const TensorOp op_cumprod = {
    .name = "cumprod",
    .summary = "running product along a dim; right with zeros",
    .gradient = "dx_i = sum over j >= i of g_j times the product of the elements up to j but x_i",
    .arity = 1,
    .keep = KEEP_INPUT(0),
    .params = sizeof(CumprodParams),
    .fields = cumprod_fields,
    .shape = cumprod_check,
    .compose = cumprod_compose,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2}; {dim=0}; 4:0..0 {dim=0}; 0x3 {dim=0}; 3x0 {dim=0}; "
               "3@i64 {dim=0}",
    .errors = "3x4 {dim=2} ! EINDEX",
};
REGISTER_OP(op_cumprod);

Tensor *tensor_cumprod(Tensor *x, int dim) { return APPLY(&op_cumprod, &(CumprodParams){ dim }, x); }

Tensor *tensor_cumprod_(Tensor *x, int dim)
{
    return op_apply_(&op_cumprod, (Tensor *[]){ x }, 1, &(CumprodParams){ dim }, SITE);
}
