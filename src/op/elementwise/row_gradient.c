/* row_gradient.c - the gradients of an elementwise row: by its fused loops, or, in a recorded sweep, by
 * evaluating the same text over tensors (formula.c). */
#include "op/op.h"
#include "row.h"

enum { OUTER = 4096 };

static Tensor *operand(OpCall *c, int which, unsigned keep)
{
    unsigned bit = which == ROW_Y ? KEEP_OUTPUT(0) : KEEP_INPUT(which);
    if (!(keep & bit)) return NULL;
    Tensor *x = which == ROW_Y ? op_saved_output(c, 0) : op_saved(c, which);
    return x;
}

/* Operands in the dtype of the computation, g's: tensor_apply saves them as they were given.  The result is
 * written to dx (NULL: a new tensor) of that dtype. */
static Tensor *fused_gradient(OpCall *c, int input, Tensor *g, unsigned keep, Tensor *dx, int dtype)
{
    Tensor *in[ROW_OPERANDS] = { operand(c, ROW_A, keep), operand(c, ROW_B, keep), operand(c, ROW_Y, keep),
                                 g };
    if (c->failed) return NULL;
    for (int k = 0; k < ROW_OPERANDS; k++)
        if (in[k] && in[k]->dtype != g->dtype && !(in[k] = own(raw_cast(in[k], g->dtype)))) return NULL;
    if (!dx) dx = own(new_tensor(op_output_shape(c, 0), dtype, g->place));
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
 * loop reads them where its device does, and writes f32.  On the host a gradient takes the place of the one
 * that it is made of, where it can: a third less memory is read and written. */
static Tensor *gradient(OpCall *c, int input, Tensor *dy, unsigned keep, Tensor *const *dx)
{
    const bool sums = dtype_is_half(dy->dtype) && !shape_equal(op_input_shape(c, input), shape_of(dy));
    Tensor *g = sums && !TAKES(dy->place, map, dy->dtype) ? own(raw_cast(dy, TENSOR_F32)) : dy;
    const bool over = !sums && on_host(dy->place) && gradient_to_overwrite(c, input, dy, dx);
    return g ? fused_gradient(c, input, g, keep, over ? dy : NULL, sums ? TENSOR_F32 : dy->dtype) : NULL;
}

/* dy as a matrix: the dims along which operand `input` goes, then those along which the other one goes.
 * false: it is no outer product, in which each dim is of one operand alone. */
static bool as_outer(const OpCall *c, int input, Tensor *dy, Tensor **matrix)
{
    const TensorShape own = op_input_shape(c, input), other = op_input_shape(c, 1 - input);
    int64_t order[TENSOR_MAX_DIMS], rows = 1, columns = 1;
    int n = 0;
    for (int theirs = 0; theirs < 2; theirs++)
        for (int d = 0; d < dy->ndim; d++) {
            const int in_own = d - dy->ndim + own.ndim, in_other = d - dy->ndim + other.ndim;
            const bool is_own = in_own >= 0 && own.dim[in_own] != 1,
                       is_other = in_other >= 0 && other.dim[in_other] != 1;
            if (is_own && is_other) return false;
            if (is_other == theirs) order[n++] = d, *(theirs ? &columns : &rows) *= dy->shape[d];
        }
    if (rows == 1 || columns == 1) return false;
    *matrix = tensor_reshape(tensor_permute(dy, (TensorShape){ n, order }), SHAPE(rows, columns));
    return true;
}

/* Of an outer product: a product of a matrix and a vector, instead of one as large as dy and its sums.
 * false: it is none; true: *dx is the gradient, NULL where that failed. */
static bool outer_gradient(OpCall *c, int input, Tensor *dy, Tensor **dx)
{
    Tensor *g;
    if (c->n != 2 || strcmp(c->op->row->gradient[input], input ? "g * a" : "g * b") != 0) return false;
    if (dy->numel < OUTER || !on_host(dy->place) || dtype_is_half(dy->dtype)) return false;
    if (!as_outer(c, input, dy, &g)) return false;
    Tensor *other = g ? op_saved(c, 1 - input) : NULL;
    if (!other) return true;
    *dx = tensor_mv(g, tensor_reshape(tensor_to(other, (TensorDtype)dy->dtype), SHAPE(-1)));
    if (*dx) *dx = tensor_reshape(*dx, op_input_shape(c, input));
    return true;
}

int op_row_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorOp *op = c->op;
    for (int i = 0; i < c->n; i++) {
        if (!op_wants(c, i)) continue;
        unsigned keep = op->keep_for[i] ? op->keep_for[i] : c->n == 1 ? op->keep : 0;
        if (strcmp(op->row->gradient[i], "g") == 0) dx[i] = dy;
        else if (op_recording(c)) dx[i] = recorded_gradient(c, i, dy, keep);
        else if (!outer_gradient(c, i, dy, &dx[i])) dx[i] = gradient(c, i, dy, keep, dx);
        if (!dx[i]) return -1;
    }
    return 0;
}
