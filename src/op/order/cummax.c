/* cummax.c - running maxima and minima along a dim, and their positions.
 *
 *   y_i = max(x_0 ... x_i), at its last place so far           dx_j = sum of the g_i whose place is j
 *
 * A NaN remains the extreme, as in PyTorch.  The device's `scan` finds the positions; if it gives no values,
 * they are gathered by position. */
#include "op/reduce/reduce.h"
#include "op/index/index_plan.h"

const TensorCummaxArgs tensor_cummax_defaults = { TENSOR_CUMMAX_DEFAULTS };

static int shape(OpCall *c)
{
    TensorCummaxArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0 || op_same_shape(c)) return -1;
    return op_set_output(c, 1, shape_of(x), TENSOR_I64);
}

static int run(OpCall *c, ScanKind kind)
{
    const int dim = ((const TensorCummaxArgs *)op_params(c))->dim;
    Tensor *x = own(raw_contiguous(op_input(c, 0))), *index = op_output(c, 1);
    if (!x) return -1;
    if (x->numel == 0) return 0;
    const Around a = around(shape_of(x), dim);
    ScanArgs args = { .kind = (int)kind,
                      .dtype = x->dtype,
                      .outer = a.outer,
                      .n = a.n,
                      .inner = a.inner,
                      .x = x->data,
                      .y = on_host(x->place) ? op_output(c, 0)->data : NULL,
                      .index = index->data };
    if (RUN_KERNEL(c->name, x->place, scan, &args)) return -1;
    if (args.y) return 0;
    return run_gather(c, &(IndexPlan){ dim, a.outer, a.n, a.n, a.inner, false }, x, index, op_output(c, 0));
}

static int max_forward(OpCall *c) { return run(c, SCAN_MAX); }
static int min_forward(OpCall *c) { return run(c, SCAN_MIN); }

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = scatter_back(c, dy, ((const TensorCummaxArgs *)op_params(c))->dim, true);
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_REQUIRED(TensorCummaxArgs, dim), { 0 } };
#define RUNNING                                                                                            \
    .gradient = "dx = g added at the indices", .arity = 1, .outputs = 2, .keep = KEEP_OUTPUT(1),           \
    .params = sizeof(TensorCummaxArgs), .defaults = &tensor_cummax_defaults, .fields = fields,             \
    .flags = OP_ANY_DEVICE, .shape = shape, .backward = backward,                                          \
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2}; {dim=0}; 0x3 {dim=0}; 3x0 {dim=1}; 3x70 {dim=0}; " \
               "6@i64:0..3 {dim=0}; 4@bool {dim=0}",                                                       \
    .errors = "3x4 {dim=2} ! EINDEX; 3 {dim=-2147483648} ! EVALUE"

const TensorOp op_cummax = { .name = "cummax",
                             .autocast = AUTOCAST_AS_IS,
                             .summary = "running maximum along a dim and its last index",
                             .forward = max_forward,
                             RUNNING };
const TensorOp op_cummin = { .name = "cummin",
                             .autocast = AUTOCAST_AS_IS,
                             .summary = "running minimum along a dim and its last index",
                             .forward = min_forward,
                             RUNNING };
REGISTER_OPS(&op_cummax, &op_cummin);

static Tensor *apply(const TensorOp *op, const TensorCummaxArgs *a, const void *site)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(op, &a->input, 1, a, site, y, 2);
    if (a->indices) *a->indices = y[1];
    return y[0];
}

Tensor *tensor_cummax_args(TensorCummaxArgs a) { return apply(&op_cummax, &a, SITE); }
Tensor *tensor_cummin_args(TensorCummaxArgs a) { return apply(&op_cummin, &a, SITE); }
