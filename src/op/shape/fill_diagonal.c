/* fill_diagonal.c - a number written down the diagonal, in place. */
#include "shape_op.h"

const TensorFillDiagonalArgs tensor_fill_diagonal_defaults = { TENSOR_FILL_DIAGONAL_DEFAULTS };

/* The elements (k, k, ...) of x; wrap: of every square block of a tall matrix, a row between one and the
 * next. */
static int fill_diagonals(Tensor *x, double value, bool wrap)
{
    int64_t rows = x->shape[0], columns = x->shape[1], step = 0;
    for (int d = 0; d < x->ndim; d++) step += x->stride[d];
    for (int64_t first = 0; first < rows && (first == 0 || wrap); first += columns + 1) {
        const int64_t n = rows - first < columns ? rows - first : columns;
        Tensor *line = own(new_view(x, 1, &n, &step, n ? first * x->stride[0] : 0));
        if (!line || raw_fill(line, value)) return -1;
    }
    return 0;
}

Tensor *tensor_fill_diagonal_args_(TensorFillDiagonalArgs a)
{
    Tensor *x = a.input;
    const double value = a.value;
    static const char op[] = "tensor_fill_diagonal_";
    if (check_null(x, op, 1) || inplace_check(op, x) || check_fill(op, x, value)) return NULL;
    if (x->ndim < 2) return fail(TENSOR_ESHAPE, op, "%s: want rank 2 or more", S(x)), NULL;
    for (int d = 1; d < x->ndim && x->ndim > 2; d++)
        if (x->shape[d] != x->shape[0])
            return fail(TENSOR_ESHAPE, op, "%s: of rank 3 and more all sizes must be the same", S(x)), NULL;
    TensorScope scope = tensor_scope_open();
    const bool wrap = a.wrap && x->ndim == 2 && x->shape[0] > x->shape[1] + 1;
    const bool graph = !grad_off && (x->entry || (x->base && x->base->entry)),
               apart = graph || wrap; /* wrap: all blocks or none */
    Tensor *mask = apart ? zeros_on(shape_of(x), TENSOR_BOOL, x->place) : NULL, *y = NULL;
    if (apart) y = mask && !fill_diagonals(mask, 1, wrap) ? tensor_masked_fill_(x, mask, value) : NULL;
    else if (!fill_diagonals(x, value, wrap)) {
        note_write(x, op, SITE);
        y = x;
    }
    tensor_scope_close(scope);
    return y ? borrow(x) : NULL;
}
