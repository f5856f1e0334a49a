/* matrices.c - functions shared by the ops of linear algebra (matrices.h). */
#include <limits.h>
#include "cpu/shape/host_tables.h"
#include "op/shape/shape_op.h"
#include "matrices.h"

Matrices matrices_of(const Tensor *x)
{
    Matrices s = { 1, x->shape[x->ndim - 2], x->shape[x->ndim - 1] };
    for (int i = 0; i < x->ndim - 2; i++) s.batch *= x->shape[i];
    return s;
}

/* ---- checks ---------------------------------------------------------------------------------- */

int check_matrix(OpCall *c, int i)
{
    const Tensor *x = op_input(c, i);
    if (x->ndim < 2) return op_fail(c, TENSOR_ESHAPE, "%s: want matrices, two dimensions or more", S(x));
    if (x->shape[x->ndim - 2] > INT_MAX || x->shape[x->ndim - 1] > INT_MAX)
        return op_fail(c, TENSOR_ESHAPE, "%s: LAPACK counts rows and columns up to %d", S(x), INT_MAX);
    return 0;
}

int check_square(OpCall *c, int i)
{
    const Tensor *x = op_input(c, i);
    if (check_matrix(c, i)) return -1;
    if (x->shape[x->ndim - 2] != x->shape[x->ndim - 1])
        return op_fail(c, TENSOR_ESHAPE, "%s: want square matrices", S(x));
    return 0;
}

int check_batches(OpCall *c, int i, int j)
{
    const Tensor *a = op_input(c, i), *b = op_input(c, j);
    int64_t shape[TENSOR_MAX_DIMS];
    if (shape_broadcast((TensorShape){ a->ndim - 2, a->shape }, (TensorShape){ b->ndim - 2, b->shape },
                        shape) >= 0)
        return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s and %s: the dimensions before the last two do not broadcast", S(a),
                   S(b));
}

/* ---- dtypes, batches ------------------------------------------------------------------------- */

Tensor *in_wide(OpCall *c, int i)
{
    Tensor *x = op_input(c, i);
    return x->dtype == TENSOR_F32 ? x : tensor_to(x, TENSOR_F64);
}

int set_rounded(OpCall *c, int k, Tensor *y)
{
    return op_set_result(
        c, k, y && dtype_is_float(y->dtype) ? tensor_to(y, (TensorDtype)op_input(c, 0)->dtype) : y);
}

int linalg_compose(OpCall *c, const TensorOp *core)
{
    Tensor *x[2], *y[3];
    for (int i = 0; i < c->n; i++) x[i] = in_wide(c, i);
    const int n = op_apply(core, x, c->n, op_params(c), c->site, y, 3);
    for (int k = 0; k < n; k++)
        if (set_rounded(c, k, y[k])) return -1;
    return n < 0 ? -1 : 0;
}

int set_matrices(OpCall *c, int k, const Tensor *x, int64_t m, int64_t n)
{
    int64_t shape[TENSOR_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 2] = m, shape[x->ndim - 1] = n;
    return op_set_output(c, k, (TensorShape){ x->ndim - (n < 0), shape }, (TensorDtype)x->dtype);
}

bool is_vectors(const Tensor *a, const Tensor *b)
{
    return b->ndim == 1 || shape_equal(shape_of(b), (TensorShape){ a->ndim - 1, a->shape });
}

static Tensor *expand_to(Tensor *x, const int64_t *batch, int ndim)
{
    int64_t shape[TENSOR_MAX_DIMS];
    memcpy(shape, batch, (size_t)ndim * sizeof *shape);
    memcpy(shape + ndim, x->shape + x->ndim - 2, 2 * sizeof *shape);
    return tensor_expand(x, (TensorShape){ ndim + 2, shape });
}

void expand_batches(Tensor **a, Tensor **b)
{
    int64_t batch[TENSOR_MAX_DIMS];
    if (!*a || !*b) return;
    const int ndim = shape_broadcast((TensorShape){ (*a)->ndim - 2, (*a)->shape },
                                     (TensorShape){ (*b)->ndim - 2, (*b)->shape }, batch);
    *a = expand_to(*a, batch, ndim);
    *b = expand_to(*b, batch, ndim);
}

Tensor *identity_like(const Tensor *a)
{
    const int64_t n = a->shape[a->ndim - 1];
    if (!on_host(a->place)) {
        Tensor *i = numbers_on(n, TENSOR_I64, a->place);
        return tensor_to(tensor_eq(tensor_unsqueeze(i, 1), i), (TensorDtype)a->dtype);
    }
    Tensor *eye = own(new_tensor(SHAPE(n, n), TENSOR_F64, a->place));
    if (eye) host_identity(eye->data, n);
    return tensor_to(eye, (TensorDtype)a->dtype);
}

Tensor *over_matrices(Tensor *x) { return tensor_unsqueeze(tensor_unsqueeze(x, -1), -1); }

/* ---- errors ---------------------------------------------------------------------------------- */

/* "matrix 3 of [5, 2, 2]", or "[2, 2]" when there is one; in a buffer of shape_text's. */
static const char *nth_matrix(const Tensor *x, int64_t i)
{
    static THREAD_LOCAL char text[256];
    if (x->ndim == 2) return S(x);
    snprintf(text, sizeof text, "matrix %lld of %s", (long long)i, S(x));
    return text;
}

int matrix_fault(OpCall *c, const MatrixFault *f)
{
    const char *which = nth_matrix(op_input(c, 0), f->at);
    switch (f->flaw) {
    case MATRIX_FINE: return -1;
    case MATRIX_SINGULAR:
        return op_fail(c, TENSOR_EVALUE, "%s is singular: pivot %lld is zero", which, (long long)f->order);
    case MATRIX_INDEFINITE:
        return op_fail(c, TENSOR_EVALUE,
                       "%s is not positive-definite: its leading minor of order %lld is not positive", which,
                       (long long)f->order);
    case MATRIX_NOT_FINITE: return op_fail(c, TENSOR_EVALUE, "%s is not finite", which);
    case MATRIX_NO_CONVERGENCE: return op_fail(c, TENSOR_EVALUE, "%s: no convergence", which);
    }
    return -1;
}
