/* softmax.c - softmax and its logarithm along one dim.
 *
 *   y_i = e^(x_i - max x) / sum_j e^(x_j - max x)        dx = y (g - sum g y)
 *   z_i = log y_i                                        dx = g - e^z sum g
 */
#include "reduce.h"

const TensorSoftmaxArgs tensor_softmax_defaults = { TENSOR_SOFTMAX_DEFAULTS };

static int shape(OpCall *c)
{
    TensorSoftmaxArgs *p = op_params_mut(c);
    p->dim = call_dim(c, p->dim, shape_of(op_input(c, 0)));
    return p->dim < 0 ? -1 : op_same_shape(c);
}

static int run(OpCall *c, bool log)
{
    Tensor *x = DENSE_FOR(softmax, op_input(c, 0)), *out = op_output(c, 0);
    Tensor *y = x && x->dtype != out->dtype ? own(new_tensor(shape_of(x), x->dtype, x->place)) : out;
    if (!x || !y) return -1;
    const Around a = around(shape_of(x), ((const TensorSoftmaxArgs *)op_params(c))->dim);
    SoftmaxArgs args = { .dtype = x->dtype,
                         .log = log,
                         .outer = a.outer,
                         .n = a.n,
                         .inner = a.inner,
                         .x = x->data,
                         .y = y->data };
    if (RUN_KERNEL(c->name, x->place, softmax, &args)) return -1;
    return y == out ? 0 : raw_copy(out, y);
}

static int forward(OpCall *c) { return run(c, false); }
static int log_forward(OpCall *c) { return run(c, true); }

static Tensor *fused(OpCall *c, Tensor *dy, int dim, bool log)
{
    Tensor *y = op_saved_output(c, 0);
    if (!y) return NULL;
    y = DENSE_FOR(softmax_grad, y);
    dy = y && y->dtype == dy->dtype ? own(raw_contiguous(dy)) : dense_float(dy);
    Tensor *dx = y && dy ? own(new_tensor(shape_of(y), y->dtype, y->place)) : NULL;
    if (!dx) return NULL;
    const Around a = around(shape_of(y), dim);
    SoftmaxGradArgs args = { .dtype = y->dtype,
                             .log = log,
                             .outer = a.outer,
                             .n = a.n,
                             .inner = a.inner,
                             .y = y->data,
                             .g = dy->data,
                             .dx = dx->data };
    return RUN_KERNEL(c->name, y->place, softmax_grad, &args) ? NULL : dx;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const int dim = ((const TensorSoftmaxArgs *)op_params(c))->dim;
    if (!op_recording(c)) {
        dx[0] = fused(c, dy, dim, false);
    } else {
        Tensor *y = op_saved_output(c, 0);
        dx[0] = tensor_mul(y, tensor_sub(dy, tensor_sum(tensor_mul(dy, y), dim, .keepdim = true)));
    }
    return dx[0] ? 0 : -1;
}

static int log_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const int dim = ((const TensorSoftmaxArgs *)op_params(c))->dim;
    if (!op_recording(c)) dx[0] = fused(c, dy, dim, true);
    else
        dx[0] = tensor_sub(
            dy, tensor_mul(tensor_exp(op_saved_output(c, 0)), tensor_sum(dy, dim, .keepdim = true)));
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_REQUIRED(TensorSoftmaxArgs, dim),
                                  OP_DTYPE(TensorSoftmaxArgs, dtype),
                                  { 0 } };

#define SOFTMAX                                                                                           \
    .arity = 1, .keep = KEEP_OUTPUT(0), .params = sizeof(TensorSoftmaxArgs),                              \
    .defaults = &tensor_softmax_defaults, .cast_option = offsetof(TensorSoftmaxArgs, dtype),              \
    .fields = fields, .shape = shape, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,                           \
    .samples = "3x4 {dim=1}; 2x3x4 {dim=-2}; 5 {dim=0}; 0x3 {dim=0}; 3x0 {dim=1}; {dim=0}; 2x3:100..200 " \
               "{dim=1}; 1x40 {dim=1}; 3x4 {dim=1 dtype=f64}; 2x3@i64 {dim=1 dtype=f64}",                 \
    .errors = "3x4 {dim=2} ! EINDEX; 3@i64 {dim=0} ! EDTYPE; 3 {dim=-2147483648} ! EVALUE; "              \
              "3 {dim=0 dtype=i64} ! EDTYPE; 3 {dim=0 dtype=9} ! EVALUE"

const TensorOp op_softmax = { .name = "softmax",
                              .autocast = AUTOCAST_CUDA_F32,
                              .summary = "e^x normalised along a dim",
                              .gradient = "dx = y (g - sum g y)",
                              .forward = forward,
                              .backward = backward,
                              SOFTMAX };
const TensorOp op_log_softmax = { .name = "log_softmax",
                                  .autocast = AUTOCAST_CUDA_F32,
                                  .summary = "logarithm of softmax",
                                  .gradient = "dx = g - e^y sum g",
                                  .forward = log_forward,
                                  .backward = log_backward,
                                  SOFTMAX };
REGISTER_OPS(&op_softmax, &op_log_softmax);

Tensor *tensor_softmax_args(TensorSoftmaxArgs a) { return APPLY(&op_softmax, &a, a.input); }
Tensor *tensor_log_softmax_args(TensorSoftmaxArgs a) { return APPLY(&op_log_softmax, &a, a.input); }

Tensor *tensor_softmin_args(TensorSoftmaxArgs a)
{
    const char *outer = tensor_compose_begin("tensor_softmin");
    Tensor *y = APPLY(&op_softmax, &a, tensor_neg(a.input));
    tensor_compose_end(outer);
    return y;
}
