/* row_map.c - one part of an elementwise row over an index space: selects the row's loops and the operands'
 * places. */
#include "cpu/elementwise/map_user.h"
#include "row.h"

static void set_operand(Strided *s, const Tensor *x, TensorShape shape)
{
    s->data = x->data, s->dtype = x->dtype;
    broadcast_strides(x, shape, s->stride);
}

/* The parameters as the loops read them: two, 0 where the row has fewer.  Bounds of a range are on integers
 * held to those that the dtype has, not wrapped. */
static void loop_params(const OpRow *row, int dtype, const double *params, double p[2])
{
    static const double least[TENSOR_DTYPES] = { [TENSOR_I64] = -0x1p63, [TENSOR_I32] = -0x1p31 };
    static const double most[TENSOR_DTYPES] = {
        [TENSOR_I64] = 0x1p63 - 1024, [TENSOR_I32] = 0x1p31 - 1, [TENSOR_U8] = 255
    };
    p[0] = row->params > 0 ? params[0] : 0, p[1] = row->params > 1 ? params[1] : 0;
    if (likely(!(row->rules & ROW_HELD)) || most[dtype] == 0) return;
    for (int i = 0; i < row->params; i++)
        p[i] = p[i] < least[dtype] ? least[dtype] : p[i] > most[dtype] ? most[dtype] : p[i];
}

/* Parameters at which a simpler row serves, as in PyTorch: so (-0)^0.5 is -0 and (-inf)^0.5 NaN. */
static int special_row(const OpRow *row, int part, double c)
{
    for (const OpRowSpecial *s = row->special; s->row; s++)
        if (s->c == c && (part == ROW_FORWARD || s->backward)) return s->row;
    return row->id;
}

/* The row whose loop computes. */
static int row_of(const TensorOp *op, int part, int dtype, const double *params)
{
    const OpRow *row = op->row;
    if (unlikely(row->special != NULL)) return special_row(row, part, params[0]);
    return unlikely(row->for_bool) && dtype == TENSOR_BOOL ? row->for_bool : row->id;
}

/* Where the operands lie, over as few dims as will do. */
FORCE_INLINE void lay_out(MapArgs *m, const Tensor *out, Tensor *const in[ROW_OPERANDS])
{
    m->count = out->numel;
    bool dense = out->flags & FLAG_CONTIGUOUS;
    for (int k = 0; k < ROW_OPERANDS && dense; k++)
        dense = !in[k] || ((in[k]->flags & FLAG_CONTIGUOUS) && in[k]->numel == out->numel);
    if (likely(dense)) {
        m->ndim = 1, m->shape[0] = out->numel;
        m->out.data = out->data, m->out.dtype = out->dtype, m->out.stride[0] = 1;
        for (int k = 0; k < ROW_OPERANDS; k++) {
            m->in[k].data = in[k] ? in[k]->data : NULL;
            m->in[k].dtype = in[k] ? in[k]->dtype : 0;
            m->in[k].stride[0] = 1;
        }
    } else {
        int64_t *stride[1 + ROW_OPERANDS];
        int n = 0;
        set_operand(&m->out, out, shape_of(out));
        stride[n++] = m->out.stride;
        for (int k = 0; k < ROW_OPERANDS; k++) {
            m->in[k].data = NULL, m->in[k].dtype = 0;
            if (!in[k]) continue;
            set_operand(&m->in[k], in[k], shape_of(out));
            stride[n++] = m->in[k].stride;
        }
        for (int d = 0; d < out->ndim; d++) m->shape[d] = out->shape[d];
        m->ndim = collapse(out->ndim, m->shape, n, stride);
    }
}

/* A row of the program's own: by its loops, or on a device by its text. */
static COLD int map_own_row(const TensorOp *op, const char *name, MapArgs *m, const Place *place)
{
    const OpRow *row = op->row;
    FormulaArgs f = { .name = op->name,
                      .formula = { row->formula, row->gradient[0], row->gradient[1] },
                      .param = { row->param_name[0], row->param_name[1] },
                      .operands = op->arity,
                      .map = m };
    return on_host(place) ? map_user_row(op, m) : RUN_KERNEL(name, place, map_formula, &f);
}

/* Runs one part of a row.  out has the result's shape; in[] broadcast to it; NULL operands are not read. */
int row_map(const TensorOp *op, const char *name, int part, Tensor *out, Tensor *const in[ROW_OPERANDS],
            const double *params)
{
    if (out->numel == 0) return 0;
    MapArgs m;
    double p[2];
    loop_params(op->row, out->dtype, params, p);
    m.row = row_of(op, part, out->dtype, p);
    m.part = part, m.params = p;
    const bool itself = m.row == op->row->id;
    for (int k = 0; k < 2; k++) m.by_one[k] = itself ? op->row->by_one[k] : 0;
    lay_out(&m, out, in);
    if (unlikely(op->row->id < 0)) return map_own_row(op, name, &m, out->place);
    return RUN_KERNEL(name, out->place, map, &m);
}

/* ---- three operands in one pass -------------------------------------------------------------- */

/* The dtype of all n operands, which lie on the host and are on no graph; -1: they are not so. */
static int fused_dtype(int n, Tensor *const *x)
{
    for (int i = 0; i < n; i++)
        if (!x[i] || !x[i]->storage || !on_host(x[i]->place) || x[i]->dtype != x[0]->dtype ||
            (!grad_off && on_graph(x[i])))
            return -1;
    return x[0]->dtype == TENSOR_F32 || x[0]->dtype == TENSOR_F64 ? x[0]->dtype : -1;
}

bool fused_result(OpCall *c, FusedRow row, int n, Tensor *const *x, const double *params)
{
    const int dtype = fused_dtype(n, x);
    Tensor *in[ROW_OPERANDS] = { NULL };
    int64_t shape[TENSOR_MAX_DIMS];
    if (dtype < 0) return false;
    TensorShape so_far = shape_of(x[0]);
    for (int i = 0; i < n; i++) {
        const int ndim = i ? shape_broadcast(so_far, shape_of(x[i]), shape) : so_far.ndim;
        if (ndim < 0) return false;
        if (i) so_far = (TensorShape){ ndim, shape };
        in[i] = x[i];
    }
    MapArgs m = { .row = row, .part = ROW_FORWARD, .params = params };
    Tensor *y = own(new_tensor(so_far, dtype, x[0]->place));
    if (y && y->numel) {
        lay_out(&m, y, in);
        map_fused(&m);
    }
    op_set_result(c, 0, y);
    return true;
}
