/* logcumsumexp.c - running log sum e^x along a dim.
 *
 *   y_i = log(e^(x_0) + ... + e^(x_i))          dx_i = sum_(j >= i) g_j e^(x_i - y_j)
 *
 * Where x_i is -inf dx_i is 0, as for logsumexp (PyTorch: NaN, where all before it are -inf). */
#include <math.h>
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"

typedef struct RunningParams {
    int dim;
} RunningParams;

static int shape(OpCall *c)
{
    RunningParams *p = op_params_mut(c);
    p->dim = call_dim(c, p->dim, shape_of(op_input(c, 0)));
    return p->dim < 0 ? -1 : op_same_shape(c);
}

static ScanArgs scan_of(const Tensor *x, int dim)
{
    const Around a = around(shape_of(x), dim);
    return (ScanArgs){
        .kind = SCAN_LOGSUMEXP, .dtype = x->dtype, .outer = a.outer, .n = a.n, .inner = a.inner, .x = x->data
    };
}

static int forward(OpCall *c)
{
    Tensor *x = own(raw_contiguous(op_input(c, 0)));
    if (!x) return -1;
    ScanArgs args = scan_of(x, ((const RunningParams *)op_params(c))->dim);
    args.y = op_output(c, 0)->data;
    return RUN_KERNEL(c->name, x->place, scan, &args);
}

/* ---- gradient -------------------------------------------------------------------------------- */

static Tensor *in_loop(OpCall *c, int dim, Tensor *dy)
{
    Tensor *x = op_saved(c, 0), *y = op_saved_output(c, 0),
           *dx = own(new_tensor(op_input_shape(c, 0), dy->dtype, dy->place));
    Tensor *g = own(raw_contiguous(dy));
    x = x ? own(raw_contiguous(x)) : NULL;
    if (!dx || !x || !y || !g) return NULL;
    ScanArgs args = scan_of(x, dim);
    args.y = y->data, args.g = g->data, args.dx = dx->data;
    return RUN_KERNEL(c->name, x->place, scan_grad, &args) ? NULL : dx;
}

/* e^(a - b), but e^d where the mask is true: d = 0 for equal ones, of which infinities too have the ratio 1;
 * d = -inf where a is. */
static Tensor *ratio(Tensor *a, Tensor *b, Tensor *mask, double d)
{
    return mask ? tensor_exp(tensor_where(mask, tensor_full_like(a, d), tensor_sub(a, b))) : NULL;
}

/* The same sums by doubling: s_i += a_i s_(i+d), a_i = a_i a_(i+d) for d = 1, 2, 4, ...; all factors are at
 * most 1. */
static Tensor *by_doubling(Tensor *x, Tensor *y, int dim, Tensor *s)
{
    if (!x || !y || !s) return NULL;
    if (x->ndim == 0) return tensor_mul(s, ratio(x, y, tensor_isneginf(x), -(double)INFINITY));
    const int64_t n = x->shape[dim];
    Tensor *now = n > 1 ? tensor_narrow(y, dim, 0, n - 1) : NULL,
           *next = n > 1 ? tensor_narrow(y, dim, 1, n - 1) : NULL;
    Tensor *a = n > 1 ? ratio(now, next, tensor_eq(now, next), 0) : NULL;
    for (int64_t d = 1; d < n; d *= 2) {
        if (!a || !s) return NULL;
        const int64_t m = n - d; /* those that have a partner; a is m long */
        Tensor *more = tensor_mul(a, tensor_narrow(s, dim, d, m));
        s = tensor_cat(TENSORS(tensor_add(tensor_narrow(s, dim, 0, m), more), tensor_narrow(s, dim, m, d)),
                       dim);
        if (m > d) a = tensor_mul(tensor_narrow(a, dim, 0, m - d), tensor_narrow(a, dim, d, m - d));
    }
    return tensor_mul(s, ratio(x, y, tensor_isneginf(x), -(double)INFINITY));
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const int dim = ((const RunningParams *)op_params(c))->dim;
    if (!op_recording(c)) dx[0] = in_loop(c, dim, dy);
    else dx[0] = by_doubling(op_saved(c, 0), op_saved_output(c, 0), dim, dy);
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_REQUIRED(RunningParams, dim), { 0 } };

const TensorOp op_logcumsumexp = {
    .name = "logcumsumexp",
    .autocast = AUTOCAST_AS_IS,
    .summary = "running log of the sum of e^x along a dim; gradient 0 where x is -inf",
    .gradient = "dx_i = sum_(j >= i) g_j e^(x_i - y_j)",
    .arity = 1,
    .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
    PARAMS_GIVEN(RunningParams, fields),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2}; {dim=0}; 0x3 {dim=0}; 3x0 {dim=1}; 7:-20..20 "
               "{dim=0}; 4:100..200 {dim=0}",
    .errors = "3x4 {dim=2} ! EINDEX; 3@i64 {dim=0} ! EDTYPE",
};
REGISTER_OPS(&op_logcumsumexp);

Tensor *tensor_logcumsumexp(Tensor *x, int dim)
{
    return APPLY(&op_logcumsumexp, &(RunningParams){ dim }, x);
}
