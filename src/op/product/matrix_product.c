/* matrix_product.c - products of matrices that are views of tensors, in as few kernel calls as their strides
 * allow. */
#include <tapegrad/autocast.h>
#include "matrix_product.h"

Matrix matrix(const Tensor *x, bool rows, bool cols)
{
    int nd = x->ndim - rows - cols;
    Matrix a = { .data = x->data,
                 .rows = 1,
                 .cols = 1,
                 .batch_ndim = nd,
                 .batch_shape = x->shape,
                 .batch_stride = x->stride };
    if (rows) a.rows = x->shape[nd], a.row = x->stride[nd];
    if (cols) a.cols = x->shape[nd + rows], a.col = x->stride[nd + rows];
    return a;
}

Matrix left_matrix(const Tensor *x) { return matrix(x, x->ndim > 1, true); }
Matrix right_matrix(const Tensor *x) { return matrix(x, true, x->ndim > 1); }

Matrix flip(Matrix a)
{
    Matrix t = a;
    t.rows = a.cols, t.cols = a.rows, t.row = a.col, t.col = a.row;
    return t;
}

/* One batch dimension below the rows: possible when its stride continues theirs. */
static bool stack(int64_t *rows, int64_t *row, int64_t count, int64_t stride)
{
    if (count == 1) return true;
    if (*rows != 1 && stride != *rows * *row) return false;
    if (*rows == 1) *row = stride;
    *rows *= count;
    return true;
}

int fold_rows(Matrix *a, const Tensor *x)
{
    Matrix m = *a;
    bool fits = true;
    for (int i = a->batch_ndim - 1; i >= 0 && fits; i--)
        fits = stack(&m.rows, &m.row, a->batch_shape[i], a->batch_stride[i]);
    if (!fits) {
        Tensor *dense = own(raw_contiguous(x));
        if (!dense) return -1;
        m.data = dense->data, m.row = a->cols, m.col = 1, m.rows = a->rows;
        for (int i = 0; i < a->batch_ndim; i++) m.rows *= a->batch_shape[i];
    }
    m.batch_ndim = 0;
    *a = m;
    return 0;
}

/* ---- the product ----------------------------------------------------------------------------- */

enum { A, B, C, OPERANDS };

typedef struct Batch {
    int ndim;
    int64_t shape[TENSOR_MAX_DIMS], stride[OPERANDS][TENSOR_MAX_DIMS];
} Batch;

static void batch_strides(const Matrix *x, const Batch *to, int64_t *stride)
{
    int lead = to->ndim - x->batch_ndim;
    for (int i = 0; i < to->ndim; i++)
        stride[i] =
            i < lead || (x->batch_shape[i - lead] == 1 && to->shape[i] != 1) ? 0 : x->batch_stride[i - lead];
}

static Batch batch_of(const Matrix *a, const Matrix *b, const Matrix *c)
{
    Batch t = { .ndim = c->batch_ndim };
    for (int i = 0; i < t.ndim; i++) t.shape[i] = c->batch_shape[i];
    batch_strides(a, &t, t.stride[A]);
    batch_strides(b, &t, t.stride[B]);
    batch_strides(c, &t, t.stride[C]);
    t.ndim = collapse(t.ndim, t.shape, OPERANDS, (int64_t *const[]){ t.stride[A], t.stride[B], t.stride[C] });
    return t;
}

/* Does the last batch dimension only make x, and c with it, longer, while the other operand stays?  Then one
 * larger product replaces many.  n, step, c_step: length and strides of x and c along it. */
static bool absorb(Batch *t, int x, int other, int64_t *n, int64_t *step, int64_t *c_step)
{
    const int last = t->ndim - 1;
    const int64_t to = t->stride[x][last], c_to = t->stride[C][last];
    if (t->stride[other][last] != 0 || (*n != 1 && (to != *n * *step || c_to != *n * *c_step))) return false;
    if (*n == 1) *step = to, *c_step = c_to;
    *n *= t->shape[last];
    t->ndim--;
    return true;
}

/* An operand without elements may have no address. */
static char *moved(const char *at, int64_t bytes) { return at ? (char *)(uintptr_t)at + bytes : NULL; }

static int run(const Product *p, GemmArgs *args, const Batch *t, const char *a, const char *b, char *c)
{
    const int last = t->ndim - 1;
    const int64_t size = (int64_t)dtype_size(args->dtype), c_size = (int64_t)dtype_size(args->to);
    int64_t at[TENSOR_MAX_DIMS] = { 0 }, turns = 1;
    for (int i = 0; i < last; i++) turns *= t->shape[i];
    if (t->ndim) {
        args->batch = t->shape[last];
        args->a_batch = t->stride[A][last], args->b_batch = t->stride[B][last],
        args->c_batch = t->stride[C][last];
    }
    char *before = args->before;
    while (turns--) {
        args->a = a, args->b = b, args->c = c, args->before = before;
        if (RUN_KERNEL(p->op, p->place, gemm, args)) return -1;
        for (int i = last - 1; i >= 0; i--) {
            const int64_t by = ++at[i] < t->shape[i] ? 1 : 1 - t->shape[i];
            a = moved(a, by * t->stride[A][i] * size), b = moved(b, by * t->stride[B][i] * size);
            c = moved(c, by * t->stride[C][i] * c_size);
            before = moved(before, by * t->stride[C][i] * c_size);
            if (by == 1) break;
            at[i] = 0;
        }
    }
    return 0;
}

Tensor *as_rows(Tensor *x)
{
    if (!x) return NULL;
    int64_t cols = x->shape[x->ndim - 1], rows = 1;
    for (int i = 0; i < x->ndim - 1; i++) rows *= x->shape[i];
    return tensor_reshape(x, SHAPE(rows, cols));
}

int multiply(const Product *p, Matrix a, Matrix b, Matrix c)
{
    Batch t = { 0 };
    for (int i = 0; i < c.batch_ndim; i++)
        if (c.batch_shape[i] == 0) return 0;
    if (c.rows == 0 || c.cols == 0) return 0;
    if (c.batch_ndim) t = batch_of(&a, &b, &c);
    while (t.ndim > 0 && absorb(&t, A, B, &c.rows, &a.row, &c.row)) {}
    while (t.ndim > 0 && !p->bias && absorb(&t, B, A, &c.cols, &b.col, &c.col)) {}
    GemmArgs args = { .dtype = p->dtype,
                      .to = p->wide ? TENSOR_F32 : p->dtype,
                      .precision = p->dtype == TENSOR_F32 ? (int)tensor_get_float32_matmul_precision() : 0,
                      .function = p->function,
                      .row = p->row,
                      .batch = 1,
                      .m = c.rows,
                      .n = c.cols,
                      .k = a.cols,
                      .a_row = a.row,
                      .a_col = a.col,
                      .b_row = b.row,
                      .b_col = b.col,
                      .c_row = c.row,
                      .c_col = c.col,
                      .alpha = p->alpha,
                      .beta = p->beta,
                      .bias = p->bias,
                      .before = p->before,
                      .sums = p->sums };
    return run(p, &args, &t, a.data, b.data, c.data);
}

int check_numbers(OpCall *c, const Tensor *x)
{
    if (x->dtype != TENSOR_BOOL) return 0;
    return op_fail(c, TENSOR_EDTYPE, "bool %s: products are of numbers", S(x));
}
