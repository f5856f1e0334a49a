/* row_gradient.c - the gradients of an elementwise row: by its fused loops, or, in a recorded sweep, by
 * evaluating the same text over tensors (formula.c). */
#include "row.h"

static Tensor *operand(OpCall *c, int which, unsigned keep)
{
    unsigned bit = which == ROW_Y ? KEEP_OUTPUT(0) : KEEP_INPUT(which);
    if (!(keep & bit)) return NULL;
    Tensor *x = which == ROW_Y ? op_saved_output(c, 0) : op_saved(c, which);
    return x;
}

/* Operands in the dtype of the computation, g's: tensor_apply saves them as they were given.  dtype: of the
 * result. */
static Tensor *fused_gradient(OpCall *c, int input, Tensor *g, unsigned keep, int dtype)
{
    Tensor *in[ROW_OPERANDS] = { operand(c, ROW_A, keep), operand(c, ROW_B, keep), operand(c, ROW_Y, keep),
                                 g };
    if (c->failed) return NULL;
    for (int k = 0; k < ROW_OPERANDS; k++)
        if (in[k] && in[k]->dtype != g->dtype && !(in[k] = own(raw_cast(in[k], g->dtype)))) return NULL;
    Tensor *dx = own(new_tensor(op_output_shape(c, 0), dtype, g->place));
    return dx && !row_map(c->op, c->name, ROW_GRAD_A + input, dx, in, c->params) ? dx : NULL;
}

static Tensor *recorded_gradient(OpCall *c, int input, Tensor *g, unsigned keep)
{
    const OpRow *row = c->op->row;
    Tensor *a = operand(c, ROW_A, keep), *b = operand(c, ROW_B, keep), *y = operand(c, ROW_Y, keep);
    OpName names[8] = { { "g", g, 0 }, { "y", y, 0 }, { c->n == 2 ? "a" : "x", a, 0 }, { "b", b, 0 } };
    int n = 4;
    for (int i = 0; i < row->params; i++)
        names[n++] = (OpName){ row->param_name[i], NULL, ((const double *)c->params)[i] };
    return c->failed ? NULL : op_formula(c->name, row->gradient[input], names, n);
}

/* What is still to be summed over broadcast dimensions stays wide until then: halves are rounded once.  The
 * loop reads them where its device does, and writes f32. */
static Tensor *gradient(OpCall *c, int input, Tensor *dy, unsigned keep)
{
    const bool sums = dtype_is_half(dy->dtype) && !shape_equal(op_input_shape(c, input), shape_of(dy));
    Tensor *g = sums && !TAKES(dy->place, map, dy->dtype) ? own(raw_cast(dy, TENSOR_F32)) : dy;
    return g ? fused_gradient(c, input, g, keep, sums ? TENSOR_F32 : dy->dtype) : NULL;
}

int op_row_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorOp *op = c->op;
    for (int i = 0; i < c->n; i++) {
        if (!op_wants(c, i)) continue;
        unsigned keep = op->keep_for[i] ? op->keep_for[i] : c->n == 1 ? op->keep : 0;
        if (strcmp(op->row->gradient[i], "g") == 0) dx[i] = dy;
        else if (op_recording(c)) dx[i] = recorded_gradient(c, i, dy, keep);
        else dx[i] = gradient(c, i, dy, keep);
        if (!dx[i]) return -1;
    }
    return 0;
}
