/* cumsum.c - running sums along a dim.
 *
 *   y_i = x_0 + ... + x_i             dx_i = g_i + ... + g_(n-1): the same from the other end
 *
 * Each line is one thread's, added in double (integers in i64) from one end to the other. */
#include "cpu/cpu.h"
#include "op/reduce/reduce.h"

typedef struct CumsumParams {
    int dim;
    bool reverse;
} CumsumParams;

enum { COLUMNS = 64 };

static int shape(OpCall *c)
{
    CumsumParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    int dim = wrap_dim(p->dim, x->ndim);
    if (dim < 0) return op_fail(c, TENSOR_EINDEX, "%s has no dim %d", S(x), p->dim);
    p->dim = dim;
    return op_set_output(c, 0, shape_of(x), dtype_is_float(x->dtype) ? (TensorDtype)x->dtype : TENSOR_I64);
}

/* Up to COLUMNS lines side by side, one element of each every `step` elements. */
static void lines_f32(const float *x, float *y, int64_t n, int64_t step, int columns)
{
    double sum[COLUMNS] = { 0 };
    for (int64_t i = 0; i < n; i++, x += step, y += step)
        for (int k = 0; k < columns; k++) y[k] = (float)(sum[k] += (double)x[k]);
}

static void lines_f64(const double *x, double *y, int64_t n, int64_t step, int columns)
{
    double sum[COLUMNS] = { 0 };
    for (int64_t i = 0; i < n; i++, x += step, y += step)
        for (int k = 0; k < columns; k++) y[k] = sum[k] += x[k];
}

static void lines_i64(const int64_t *x, int64_t *y, int64_t n, int64_t step, int columns)
{
    uint64_t sum[COLUMNS] = { 0 };
    for (int64_t i = 0; i < n; i++, x += step, y += step)
        for (int k = 0; k < columns; k++) y[k] = (int64_t)(sum[k] += (uint64_t)x[k]);
}

typedef struct Sums {
    int dtype;
    const void *x;
    void *y;
    Around a;
    int64_t tiles;
    bool reverse;
} Sums;

static void sum_tile(void *ctx, int64_t t)
{
    const Sums *s = ctx;
    const Around a = s->a;
    const int64_t column = t % s->tiles * COLUMNS, step = s->reverse ? -a.inner : a.inner;
    const int64_t at = (t / s->tiles * a.n + (s->reverse ? a.n - 1 : 0)) * a.inner + column;
    const int columns = a.inner - column < COLUMNS ? (int)(a.inner - column) : COLUMNS;
    if (s->dtype == TENSOR_F32) lines_f32((const float *)s->x + at, (float *)s->y + at, a.n, step, columns);
    else if (s->dtype == TENSOR_F64)
        lines_f64((const double *)s->x + at, (double *)s->y + at, a.n, step, columns);
    else lines_i64((const int64_t *)s->x + at, (int64_t *)s->y + at, a.n, step, columns);
}

static void run(int dtype, const void *x, void *y, Around a, bool reverse)
{
    Sums s = { dtype, x, y, a, (a.inner + COLUMNS - 1) / COLUMNS, reverse };
    parallel_for(a.outer * s.tiles, cpu_threads(a.outer * a.n * a.inner * 2), sum_tile, &s);
}

static int forward(OpCall *c)
{
    const CumsumParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *out = op_output(c, 0);
    if (x->numel == 0) return 0;
    x = dtype_is_float(x->dtype) ? dense_float(x) : own(raw_cast(x, TENSOR_I64));
    Tensor *y = x && x->dtype != out->dtype ? own(new_tensor(shape_of(x), x->dtype, x->place)) : out;
    if (!x || !y) return -1;
    run(x->dtype, x->data, y->data, around(shape_of(x), p->dim), p->reverse);
    return y == out ? 0 : raw_copy(out, y);
}

static Tensor *cumsum(Tensor *x, int dim, bool reverse);

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const CumsumParams *p = op_params(c);
    dx[0] = cumsum(dy, p->dim, !p->reverse);
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_FIELD(OP_INT, CumsumParams, dim, NULL),
                                  OP_FIELD(OP_BOOL, CumsumParams, reverse, "0"),
                                  { 0 } };

const TensorOp op_cumsum = {
    .name = "cumsum",
    .summary = "running sum along a dim; reverse: from its end",
    .gradient = "dx = cumsum of g from the end",
    .arity = 1,
    .params = sizeof(CumsumParams),
    .fields = fields,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2}; 3x4 {dim=0 reverse=1}; {dim=0}; 0x3 {dim=0}; 3x0 "
               "{dim=1}; 4@i64 {dim=0}; "
               "3@bool {dim=0}",
    .errors = "3x4 {dim=2} ! EINDEX",
};
REGISTER_OP(op_cumsum);

static Tensor *cumsum(Tensor *x, int dim, bool reverse)
{
    const CumsumParams p = { dim, reverse };
    return APPLY(&op_cumsum, &p, x);
}

Tensor *tensor_cumsum(Tensor *x, int dim)
{
    const CumsumParams p = { dim, false };
    return APPLY(&op_cumsum, &p, x);
}

Tensor *tensor_cumsum_(Tensor *x, int dim)
{
    return op_apply_(&op_cumsum, (Tensor *[]){ x }, 1, &(CumsumParams){ dim, false }, SITE);
}
