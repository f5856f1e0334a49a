/* shape.c - arithmetic on shapes and strides.  Strides are in elements. */
#include <stdio.h>
#include "core.h"

bool tensor_shape_equal(TensorShape a, TensorShape b)
{
    if (a.ndim != b.ndim) return false;
    for (int i = 0; i < a.ndim; i++)
        if (a.dim[i] != b.dim[i]) return false;
    return true;
}

int64_t shape_count(TensorShape shape)
{
    int64_t n = 1;
    bool empty = false, overflow = false;
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 0) return -1;
        if (shape.dim[i] == 0) empty = true;
        else overflow |= __builtin_mul_overflow(n, shape.dim[i], &n);
    }
    return empty ? 0 : overflow ? -1 : n;
}

int shape_broadcast(TensorShape a, TensorShape b, int64_t *out)
{
    int ndim = a.ndim > b.ndim ? a.ndim : b.ndim;
    for (int i = 1; i <= ndim; i++) { /* from the last dimension */
        int64_t m = i <= a.ndim ? a.dim[a.ndim - i] : 1;
        int64_t n = i <= b.ndim ? b.dim[b.ndim - i] : 1;
        if (m != n && m != 1 && n != 1) return -1;
        out[ndim - i] = m == 1 ? n : m;
    }
    return ndim;
}

int wrap_dim(int64_t dim, int ndim)
{
    const int n = ndim ? ndim : 1;
    return dim < -n || dim >= n ? -1 : (int)dim + (dim < 0 ? n : 0);
}

/* A size of 0 counts as 1, as in PyTorch, so that strides are never 0. */
void dense_strides(int ndim, const int64_t *shape, int64_t *stride)
{
    int64_t n = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        stride[i] = n;
        n *= shape[i] ? shape[i] : 1;
    }
}

bool is_dense(int ndim, const int64_t *shape, const int64_t *stride)
{
    int64_t n = 1;
    bool dense = true;
    for (int i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 0) return true;
        if (shape[i] == 1) continue;
        dense &= stride[i] == n;
        n *= shape[i];
    }
    return dense;
}

/* Enough for "no": with dims sorted by stride, each steps over all that the smaller ones reach.  Layouts that
 * interleave without touching are taken for overlapping. */
bool strides_overlap(int ndim, const int64_t *shape, const int64_t *stride)
{
    int64_t size[TENSOR_MAX_DIMS], step[TENSOR_MAX_DIMS], reach = 0;
    int n = 0;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] == 0) return false;
        if (shape[i] == 1) continue;
        int64_t s = stride[i] < 0 ? -stride[i] : stride[i];
        int at = n++;
        for (; at > 0 && step[at - 1] > s; at--) size[at] = size[at - 1], step[at] = step[at - 1];
        size[at] = shape[i], step[at] = s;
    }
    for (int i = 0; i < n; i++) {
        if (step[i] <= reach) return true;
        reach += (size[i] - 1) * step[i];
    }
    return false;
}

bool overlaps_itself(const Tensor *x)
{
    return !(x->flags & FLAG_CONTIGUOUS) && strides_overlap(x->ndim, x->shape, x->stride);
}

const char *shape_text(TensorShape shape)
{
    enum { BUFFERS = 8, LENGTH = TENSOR_MAX_DIMS * 22 + 3 };
    static THREAD_LOCAL char buffer[BUFFERS][LENGTH];
    static THREAD_LOCAL unsigned next;
    char *text = buffer[next++ % BUFFERS];
    if (shape.ndim < 0 || shape.ndim > TENSOR_MAX_DIMS) { /* in the message that refuses it */
        snprintf(text, LENGTH, "[%d dimensions]", shape.ndim);
        return text;
    }
    int n = snprintf(text, LENGTH, "[");
    for (int i = 0; i < shape.ndim; i++)
        n += snprintf(text + n, (size_t)(LENGTH - n), i ? ", %lld" : "%lld", (long long)shape.dim[i]);
    snprintf(text + n, (size_t)(LENGTH - n), "]");
    return text;
}

static bool mergeable(int outer, int64_t inner_size, int inner, int n, int64_t *const stride[])
{
    for (int k = 0; k < n; k++)
        if (stride[k][outer] != inner_size * stride[k][inner]) return false;
    return true;
}

int collapse(int ndim, int64_t *shape, int n, int64_t *const stride[])
{
    int m = 0; /* dims kept so far; the last of them may grow */
    for (int i = 0; i < ndim; i++) {
        int64_t size = shape[i];
        if (size == 1) continue;
        bool merge = m > 0 && mergeable(m - 1, size, i, n, stride);
        int to = merge ? m - 1 : m++;
        shape[to] = merge ? shape[to] * size : size;
        for (int k = 0; k < n; k++) stride[k][to] = stride[k][i];
    }
    if (m > 0) return m;
    shape[0] = 1; /* one element: as a dense line, the simplest case of every loop */
    for (int k = 0; k < n; k++) stride[k][0] = 1;
    return 1;
}

void broadcast_strides(const Tensor *x, TensorShape to, int64_t *stride)
{
    int lead = to.ndim - x->ndim;
    for (int i = 0; i < to.ndim; i++)
        stride[i] = i < lead || (x->shape[i - lead] == 1 && to.dim[i] != 1) ? 0 : x->stride[i - lead];
}
