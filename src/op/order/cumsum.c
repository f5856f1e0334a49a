/* cumsum.c - running sums along a dim.
 *
 *   y_i = x_0 + ... + x_i             dx_i = g_i + ... + g_(n-1): the same from the other end
 */
#include "op/reduce/reduce.h"

const TensorCumsumArgs tensor_cumsum_defaults = { TENSOR_CUMSUM_DEFAULTS };

static int shape(OpCall *c)
{
    TensorCumsumArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    p->dim = call_dim(c, p->dim, shape_of(x));
    return p->dim < 0 ? -1 : op_set_output(c, 0, shape_of(x), (TensorDtype)sum_dtype(x, p->dtype));
}

static int forward(OpCall *c)
{
    const TensorCumsumArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *out = op_output(c, 0);
    if (x->numel == 0) return 0;
    x = dtype_is_float(x->dtype) ? DENSE_FOR(scan, x) : own(raw_cast(x, TENSOR_I64));
    Tensor *y = x && x->dtype != out->dtype ? own(new_tensor(shape_of(x), x->dtype, x->place)) : out;
    if (!x || !y) return -1;
    const Around a = around(shape_of(x), p->dim);
    ScanArgs args = { .kind = SCAN_SUM,
                      .dtype = x->dtype,
                      .reverse = p->reverse,
                      .outer = a.outer,
                      .n = a.n,
                      .inner = a.inner,
                      .x = x->data,
                      .y = y->data };
    if (RUN_KERNEL(c->name, x->place, scan, &args)) return -1;
    return y == out ? 0 : raw_copy(out, y);
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorCumsumArgs *p = op_params(c);
    dx[0] = tensor_cumsum(dy, p->dim, .reverse = !p->reverse);
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_REQUIRED(TensorCumsumArgs, dim),
                                  OP_DTYPE(TensorCumsumArgs, dtype),
                                  OP_OPTION(TensorCumsumArgs, reverse),
                                  { 0 } };

const TensorOp op_cumsum = {
    .name = "cumsum",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "running sum along a dim; reverse: from its end",
    .gradient = "dx = cumsum of g from the end",
    .arity = 1,
    .params = sizeof(TensorCumsumArgs),
    .defaults = &tensor_cumsum_defaults,
    .cast_option = offsetof(TensorCumsumArgs, dtype),
    .fields = fields,
    .flags = OP_ANY_DEVICE,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2}; 3x4 {dim=0 reverse=1}; {dim=0}; 0x3 {dim=0}; 3x0 "
               "{dim=1}; 4@i64 {dim=0}; 3@bool {dim=0}; 3x4 {dim=0 dtype=f64}; 4@i64 {dim=0 dtype=i32}; "
               "3@u8 {dim=0 dtype=f64}",
    .errors = "3x4 {dim=2} ! EINDEX; 3 {dim=-2147483648} ! EVALUE; 3 {dim=0 dtype=9} ! EVALUE",
};
REGISTER_OPS(&op_cumsum);

Tensor *tensor_cumsum_args(TensorCumsumArgs a) { return APPLY(&op_cumsum, &a, a.input); }
Tensor *tensor_cumsum_args_(TensorCumsumArgs a) { return APPLY_(&op_cumsum, &a, a.input); }
