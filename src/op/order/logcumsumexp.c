/* logcumsumexp.c - running log sum e^x along a dim.
 *
 *   y_i = log(e^(x_0) + ... + e^(x_i))          dx_i = sum_(j >= i) g_j e^(x_i - y_j)
 *
 * y never falls, so e^(y_i - y_(i+1)) <= 1 and s_i = g_i + s_(i+1) e^(y_i - y_(i+1)), dx_i = s_i e^(x_i -
 * y_i) neither overflows nor cancels.  Where x_i is -inf dx_i is 0, as for logsumexp (PyTorch: NaN, where all
 * before it are -inf). */
#include <math.h>
#include "cpu/cpu.h"
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

/* ---- lines ----------------------------------------------------------------------------------- */

typedef struct Lines {
    bool f64;
    Around a;
    const void *x, *y, *g;
    void *out;
} Lines;

static double get(const Lines *l, const void *x, int64_t i)
{
    return l->f64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void put(const Lines *l, int64_t i, double v)
{
    if (l->f64) ((double *)l->out)[i] = v;
    else ((float *)l->out)[i] = (float)v;
}

static double log_add(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    if (a != a || b != b) return NAN;
    return high == low && isinf(high) ? high : high + log1p(exp(low - high));
}

static void forward_line(void *ctx, int64_t line)
{
    const Lines *l = ctx;
    const int64_t step = l->a.inner, from = line / step * l->a.n * step + line % step;
    double y = -INFINITY;
    for (int64_t i = 0; i < l->a.n; i++)
        put(l, from + i * step, y = log_add(y, get(l, l->x, from + i * step)));
}

static void backward_line(void *ctx, int64_t line)
{
    const Lines *l = ctx;
    const int64_t step = l->a.inner, from = line / step * l->a.n * step + line % step;
    double sum = 0, next = INFINITY;
    for (int64_t i = l->a.n - 1; i >= 0; i--) {
        const int64_t at = from + i * step;
        const double x = get(l, l->x, at), y = get(l, l->y, at);
        sum = get(l, l->g, at) + (y == next ? sum : sum * exp(y - next));
        put(l, at, x == -INFINITY ? 0 : sum * exp(x - y));
        next = y;
    }
}

static void run(Lines *l, void (*line)(void *, int64_t))
{
    const int64_t lines = l->a.outer * l->a.inner;
    parallel_for(lines, cpu_threads(lines * l->a.n * 16), line, l);
}

static int forward(OpCall *c)
{
    Tensor *x = own(raw_contiguous(op_input(c, 0)));
    if (!x) return -1;
    run(&(Lines){ x->dtype == TENSOR_F64, around(shape_of(x), ((const RunningParams *)op_params(c))->dim),
                  x->data, NULL, NULL, op_output(c, 0)->data },
        forward_line);
    return 0;
}

/* ---- gradient -------------------------------------------------------------------------------- */

static Tensor *in_loop(OpCall *c, int dim, Tensor *dy)
{
    Tensor *x = op_saved(c, 0), *y = op_saved_output(c, 0),
           *dx = own(new_tensor(op_input_shape(c, 0), dy->dtype, dy->place));
    Tensor *g = own(raw_contiguous(dy));
    x = x ? own(raw_contiguous(x)) : NULL;
    if (!dx || !x || !y || !g) return NULL;
    run(&(Lines){ x->dtype == TENSOR_F64, around(shape_of(x), dim), x->data, y->data, g->data, dx->data },
        backward_line);
    return dx;
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

static const OpField fields[] = { OP_FIELD(OP_INT, RunningParams, dim, NULL), { 0 } };

const TensorOp op_logcumsumexp = {
    .name = "logcumsumexp",
    .summary = "running log of the sum of e^x along a dim; gradient 0 where x is -inf",
    .gradient = "dx_i = sum_(j >= i) g_j e^(x_i - y_j)",
    .arity = 1,
    .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
    .params = sizeof(RunningParams),
    .fields = fields,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2}; {dim=0}; 0x3 {dim=0}; 3x0 {dim=1}; 7:-20..20 "
               "{dim=0}; 4:100..200 {dim=0}",
    .errors = "3x4 {dim=2} ! EINDEX; 3@i64 {dim=0} ! EDTYPE",
};
REGISTER_OP(op_logcumsumexp);

Tensor *tensor_logcumsumexp(Tensor *x, int dim)
{
    return APPLY(&op_logcumsumexp, &(RunningParams){ dim }, x);
}
