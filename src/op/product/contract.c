/* contract.c - products of two factors by matmul on views.
 *
 * The indices of two factors are of four kinds: kept ones of both (a batch), summed ones of both (inner), and
 * those of one alone (left, right).  a as [batch..., left, inner] times b as [batch..., inner, right]; where
 * several indices make one of these, a reshape brings them together, which copies only if they do not lie
 * side by side.  Nothing to sum: an elementwise product. */
#include "contract.h"

bool factor_has(const Factor *f, int index)
{
    for (int d = 0; d < f->n; d++)
        if (f->at[d] == index) return true;
    return false;
}

void factor_drop(Factor *f, int d)
{
    f->n--;
    for (; d < f->n; d++) f->at[d] = f->at[d + 1];
}

void factor_sum(Factor *f, const bool wanted[INDICES], bool same_dtype)
{
    int64_t dims[TENSOR_MAX_DIMS];
    int n = 0, left = 0;
    for (int d = 0; d < f->n; d++)
        if (wanted[f->at[d]]) f->at[left++] = f->at[d];
        else dims[n++] = d;
    f->n = left;
    if (!n || !f->x) return;
    const int dtype = f->x->dtype;
    f->x = tensor_sum(f->x, .dims = (TensorShape){ n, dims });
    if (same_dtype && f->x && dtype != TENSOR_BOOL) f->x = tensor_to(f->x, (TensorDtype)dtype);
}

/* ---- kinds of indices ------------------------------------------------------------------------ */

typedef struct Group {
    int n, at[TENSOR_MAX_DIMS];
    int64_t size[TENSOR_MAX_DIMS], all;
} Group;

static void put(Group *g, const Factor *f, int d)
{
    if (!g->n) g->all = 1;
    g->at[g->n] = f->at[d], g->size[g->n] = f->x->shape[d];
    g->all *= g->size[g->n++];
}

static int append(int64_t *shape, int n, const Group *g)
{
    for (int i = 0; i < g->n; i++) shape[n++] = g->size[i];
    return n;
}

static int ones(int64_t *shape, int n, int count)
{
    for (int i = 0; i < count; i++) shape[n++] = 1;
    return n;
}

/* f with the dimensions of these groups one after the other. */
static Tensor *in_groups(const Factor *f, const Group *a, const Group *b, const Group *c)
{
    int order[TENSOR_MAX_DIMS], n = 0;
    for (int i = 0; i < a->n; i++) order[n++] = a->at[i];
    for (int i = 0; i < b->n; i++) order[n++] = b->at[i];
    for (int i = 0; i < c->n; i++) order[n++] = c->at[i];
    return factor_order(f, order);
}

Tensor *factor_order(const Factor *f, const int *order)
{
    int64_t dims[TENSOR_MAX_DIMS];
    bool same = true;
    for (int i = 0; i < f->n; i++)
        for (int d = 0; d < f->n; d++)
            if (f->at[d] == order[i]) dims[i] = d, same &= d == i;
    return same ? f->x : tensor_permute(f->x, (TensorShape){ f->n, dims });
}

/* ---- the product ----------------------------------------------------------------------------- */

static Tensor *times(const Factor *a, const Factor *b, const Group *batch, const Group *left,
                     const Group *right)
{
    int64_t shape_a[TENSOR_MAX_DIMS], shape_b[TENSOR_MAX_DIMS];
    const Group none = { 0 };
    const int n = ones(shape_a, append(shape_a, append(shape_a, 0, batch), left), right->n);
    append(shape_b, ones(shape_b, append(shape_b, 0, batch), left->n), right);
    Tensor *x = in_groups(a, batch, left, &none), *y = in_groups(b, batch, right, &none);
    return tensor_mul(x ? tensor_reshape(x, (TensorShape){ n, shape_a }) : NULL,
                      y ? tensor_reshape(y, (TensorShape){ n, shape_b }) : NULL);
}

static Tensor *matrices(const Factor *f, const Group *batch, const Group *rows, const Group *columns)
{
    int64_t shape[TENSOR_MAX_DIMS + 2];
    int n = append(shape, 0, batch);
    shape[n++] = rows->n ? rows->all : 1;
    shape[n++] = columns->n ? columns->all : 1;
    Tensor *x = in_groups(f, batch, rows, columns);
    return x ? tensor_reshape(x, (TensorShape){ n, shape }) : NULL;
}

static Tensor *contracted(const Factor *a, const Factor *b, const Group *batch, const Group *left,
                          const Group *inner, const Group *right)
{
    int64_t shape[TENSOR_MAX_DIMS];
    const int n = append(shape, append(shape, append(shape, 0, batch), left), right);
    Tensor *x = matrices(a, batch, left, inner), *y = x ? matrices(b, batch, inner, right) : NULL;
    Tensor *product = y ? tensor_matmul(x, y) : NULL;
    return product ? tensor_reshape(product, (TensorShape){ n, shape }) : NULL;
}

void factor_product(OpCall *c, Factor *a, const Factor *b, const bool wanted[INDICES])
{
    Group batch = { 0 }, left = { 0 }, inner = { 0 }, right = { 0 };
    if (!a->x || !b->x) {
        a->x = NULL;
        return;
    }
    for (int d = 0; d < a->n; d++)
        put(!factor_has(b, a->at[d]) ? &left : wanted[a->at[d]] ? &batch : &inner, a, d);
    for (int d = 0; d < b->n; d++)
        if (!factor_has(a, b->at[d])) put(&right, b, d);
    const int n = batch.n + left.n + right.n;
    if (n > TENSOR_MAX_DIMS || batch.n + 2 > TENSOR_MAX_DIMS) {
        op_fail(c, TENSOR_ESHAPE, "%s times %s has more than %d dimensions on the way", S(a->x), S(b->x),
                TENSOR_MAX_DIMS);
        a->x = NULL;
        return;
    }
    a->x = inner.n ? contracted(a, b, &batch, &left, &inner, &right) : times(a, b, &batch, &left, &right);
    a->n = 0;
    for (int i = 0; i < batch.n; i++) a->at[a->n++] = batch.at[i];
    for (int i = 0; i < left.n; i++) a->at[a->n++] = left.at[i];
    for (int i = 0; i < right.n; i++) a->at[a->n++] = right.at[i];
}
