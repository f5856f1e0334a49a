/* cummax.c - running extremes along a dim, and where they are.
 *
 *   y_i = max(x_0 ... x_i), at its last place so far           dx_j = sum of the g_i whose place is j
 *
 * A NaN stays the extreme, as in PyTorch.  Places are found in the order of keys (sort.c), values are then
 * picked by them. */
#include "cpu/cpu.h"
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"

typedef struct CummaxParams {
    int dim;
} CummaxParams;

enum { COLUMNS = 64 };

static int shape(OpCall *c)
{
    CummaxParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    p->dim = call_dim(c, p->dim, shape_of(x));
    if (p->dim < 0) return -1;
    return op_set_output(c, 0, shape_of(x), (TensorDtype)x->dtype) ||
                   op_set_output(c, 1, shape_of(x), TENSOR_I64)
               ? -1
               : 0;
}

typedef struct Search {
    const Tensor *x;
    int64_t *index;
    Around a;
    int64_t tiles;
    bool min;
} Search;

/* Up to COLUMNS lines side by side. */
static void search_tile(void *ctx, int64_t t)
{
    const Search *s = ctx;
    const Around a = s->a;
    const int64_t column = t % s->tiles * COLUMNS, from = t / s->tiles * a.n * a.inner + column;
    const int64_t columns = a.inner - column < COLUMNS ? a.inner - column : COLUMNS;
    uint64_t best[COLUMNS] = { 0 };
    int64_t at[COLUMNS] = { 0 };
    for (int64_t i = 0; i < a.n; i++)
        for (int64_t k = 0; k < columns; k++) {
            const int64_t here = from + i * a.inner + k;
            uint64_t key = order_key(s->x->data, s->x->dtype, here);
            if (s->min && !(key == ORDER_NAN && dtype_is_float(s->x->dtype))) key = ~key;
            if (key >= best[k]) best[k] = key, at[k] = i;
            s->index[here] = at[k];
        }
}

static int run(OpCall *c, bool min)
{
    const int dim = ((const CummaxParams *)op_params(c))->dim;
    Tensor *x = own(raw_contiguous(op_input(c, 0))), *index = op_output(c, 1);
    if (!x) return -1;
    if (x->numel == 0) return 0;
    const Around a = around(shape_of(x), dim);
    Search s = { x, index->data, a, (a.inner + COLUMNS - 1) / COLUMNS, min };
    parallel_for(a.outer * s.tiles, cpu_threads(x->numel * 4), search_tile, &s);
    return run_gather(c, &(IndexPlan){ dim, a.outer, a.n, a.n, a.inner, false }, x, index, op_output(c, 0));
}

static int max_forward(OpCall *c) { return run(c, false); }
static int min_forward(OpCall *c) { return run(c, true); }

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = scatter_back(c, dy, ((const CummaxParams *)op_params(c))->dim, true);
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_FIELD(OP_INT, CummaxParams, dim, NULL), { 0 } };
#define RUNNING                                                                                            \
    .gradient = "dx = g added at the indices", .arity = 1, .outputs = 2, .keep = KEEP_OUTPUT(1),           \
    .params = sizeof(CummaxParams), .fields = fields, .shape = shape, .backward = backward,                \
    .samples = "5 {dim=0}; 3x4 {dim=1}; 2x3x4 {dim=-2}; {dim=0}; 0x3 {dim=0}; 3x0 {dim=1}; 3x70 {dim=0}; " \
               "6@i64:0..3 {dim=0}; 4@bool {dim=0}",                                                       \
    .errors = "3x4 {dim=2} ! EINDEX"

const TensorOp op_cummax = { .name = "cummax",
                             .summary = "running maximum along a dim and its last index",
                             .forward = max_forward,
                             RUNNING };
const TensorOp op_cummin = { .name = "cummin",
                             .summary = "running minimum along a dim and its last index",
                             .forward = min_forward,
                             RUNNING };
REGISTER_OP(op_cummax);
REGISTER_OP(op_cummin);

static Tensor *apply(const TensorOp *op, const TensorPickArgs *a, const void *site)
{
    Tensor *y[2] = { NULL, NULL };
    if (a->dim == TENSOR_ALL) fail_site(TENSOR_EVALUE, op->name, site, "dim must be given");
    else if (!unwanted(a->keepdim, op->name, "keepdim"))
        op_apply(op, &a->input, 1, &(CummaxParams){ a->dim }, site, y, 2);
    if (a->indices) *a->indices = y[1];
    return y[0];
}

Tensor *tensor_cummax_args(TensorPickArgs a) { return apply(&op_cummax, &a, SITE); }
Tensor *tensor_cummin_args(TensorPickArgs a) { return apply(&op_cummin, &a, SITE); }
