/* draw.c - drawn values into tensors: see draw.h. */
#include "draw.h"
#include "random_state.h"

/* ---- layouts --------------------------------------------------------------------------------- */

/* Should the dim that lies further out come further in?  Stride 0 says nothing of an order; among equal
 * strides (one of the sizes is 1) the larger size goes out.  PyTorch sorts so. */
static int out_of_order(const Tensor *x, int outer, int inner)
{
    int64_t a = x->stride[outer], b = x->stride[inner];
    if (a == 0 || b == 0) return 0;
    if (a != b) return a < b ? 1 : -1;
    return x->shape[outer] < x->shape[inner];
}

/* The dims of x from the outermost to the innermost in memory. */
static void dims_in_memory(const Tensor *x, int *dim)
{
    for (int i = 0; i < x->ndim; i++) dim[i] = i;
    for (int start = x->ndim - 2; start >= 0; start--)
        for (int i = start, j = start + 1; j < x->ndim; j++) {
            int wrong = out_of_order(x, dim[i], dim[j]);
            if (wrong < 0) break;
            if (wrong == 0) continue;
            int moved = dim[i];
            dim[i] = dim[j], dim[j] = moved;
            i = j;
        }
}

/* x with its dims in the order of memory; a new reference. */
static Tensor *ordered_view(const Tensor *x)
{
    int dim[TENSOR_MAX_DIMS];
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    if (x->flags & FLAG_CONTIGUOUS) return tensor_retain((Tensor *)x);
    dims_in_memory(x, dim);
    for (int i = 0; i < x->ndim; i++) shape[i] = x->shape[dim[i]], stride[i] = x->stride[dim[i]];
    return new_view(x, x->ndim, shape, stride, 0);
}

/* An uninitialised tensor of x's shape without gaps, its dims in memory as x's are; a new reference. */
static Tensor *same_layout(const Tensor *x, int dtype)
{
    int dim[TENSOR_MAX_DIMS];
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    if (x->flags & FLAG_CONTIGUOUS) return new_tensor(shape_of(x), dtype, x->place);
    dims_in_memory(x, dim);
    for (int i = 0; i < x->ndim; i++) shape[i] = x->shape[dim[i]];
    Tensor *dense = new_tensor((TensorShape){ x->ndim, shape }, dtype, x->place);
    if (!dense) return NULL;
    for (int i = 0; i < x->ndim; i++) stride[dim[i]] = dense->stride[i];
    Tensor *y = new_view(dense, x->ndim, x->shape, stride, 0);
    tensor_release(dense);
    return y;
}

Tensor *draw_operand(const Tensor *x, int dtype)
{
    if (x->place == &cpu_place) return raw_cast(x, dtype);
    Tensor *host = new_tensor(shape_of(x), dtype, &cpu_place);
    if (!host || raw_copy(host, x) == 0) return host;
    tensor_release(host);
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int fill_apart(Tensor *x, const Draw *d, Mt19937 *g)
{
    if (!on_host(x->place) && graph_wait(d->op, "draws numbers on the host")) return -1;
    Tensor *host = new_tensor(shape_of(x), d->drawn, &cpu_place);
    if (!host) return -1;
    int status = d->fill(g, host->data, host->numel, d);
    if (!status) status = raw_copy(x, host);
    tensor_release(host);
    return status;
}

/* By the device, PyTorch's numbers on a GPU; 1: it has no kernel for them. */
static int fill_as_torch(Tensor *x, const Draw *d)
{
    const int drawn = d->torch == RANDOM_TORCH_BERNOULLI  ? TENSOR_BOOL
                      : d->torch == RANDOM_TORCH_INTEGERS ? TENSOR_I64
                                                          : d->dtype;
    const uint64_t range = d->range ? d->range : (uint64_t)d->high - (uint64_t)d->low;
    const bool direct = x->dtype == drawn && (x->flags & FLAG_CONTIGUOUS);
    Tensor *dense = direct ? tensor_retain(x) : new_tensor(shape_of(x), drawn, x->place);
    RandomArgs args = { .kind = d->torch,
                        .dtype = d->dtype,
                        .count = x->numel,
                        .p = d->at[0],
                        .at = { d->at[0], d->at[1] },
                        .low = d->low,
                        .range = range,
                        .wide = d->range ? dtype_size(d->dtype) == 8 : range >= UINT64_C(1) << 28,
                        .out = dense ? dense->data : NULL };
    int status = dense ? random_as_torch(d->op, x->place, &args) : -1;
    if (!status && !direct) status = raw_copy(x, dense);
    tensor_release(dense);
    return status;
}

int draw_each_as_torch(const char *op, const Tensor *p, Tensor **y)
{
    Tensor *laid = own(same_layout(p, p->dtype)), *to = laid ? own(ordered_view(laid)) : NULL,
           *from = to ? own(ordered_view(p)) : NULL, *dense = from ? own(raw_contiguous(from)) : NULL;
    if (!dense) return -1;
    RandomArgs args = { .kind = RANDOM_TORCH_EACH, .dtype = p->dtype, .count = p->numel, .out = to->data };
    args.x = dense->data;
    const int status = random_as_torch(op, p->place, &args);
    if (!status) *y = own(raw_contiguous(laid));
    return status || *y ? status : -1;
}

/* Fills x, which may have any layout and device. */
static int fill_tensor(Tensor *x, Draw *d)
{
    if (x->numel == 0) return 0;
    Tensor *ordered = ordered_view(x);
    if (!ordered) return -1;
    if (d->torch && random_torch_cuda() && !on_host(x->place)) {
        const int done = fill_as_torch(ordered, d);
        if (done <= 0) tensor_release(ordered);
        if (done <= 0) return done;
    }
    Mt19937 *g = &random_generator()->mt;
    bool direct = x->place == &cpu_place && x->dtype == d->drawn && (ordered->flags & FLAG_CONTIGUOUS);
    int status = direct ? d->fill(g, ordered->data, ordered->numel, d) : fill_apart(ordered, d, g);
    tensor_release(ordered);
    return status;
}

/* Takes over x. */
static Tensor *filled(Tensor *x, Draw *d)
{
    if (x && fill_tensor(x, d)) {
        tensor_release(x);
        return NULL;
    }
    return x;
}

Tensor *draw_new(TensorShape shape, int dtype, Draw d)
{
    d.dtype = dtype;
    return own(filled(new_tensor_as(d.op, shape, dtype, default_place()), &d));
}

Tensor *draw_like(const Tensor *x, int dtype, Draw d)
{
    Tensor *laid = same_layout(x, dtype);
    if (!laid) return NULL;
    d.dtype = dtype;
    d.one_by_one = !(laid->flags & FLAG_CONTIGUOUS);
    laid = filled(laid, &d);
    Tensor *y = laid ? raw_contiguous(laid) : NULL;
    tensor_release(laid);
    return own(y);
}

/* Where x has a history, it takes that of a new tensor: none. */
static int replace(Tensor *x, Draw *d, const void *site)
{
    Tensor *t = filled(same_layout(x, x->dtype), d);
    int status = t ? inplace_take(d->op, d->op, x, t, site) : -1;
    tensor_release(t);
    return status;
}

Tensor *draw_into(Tensor *x, Draw d, const void *site)
{
    if (inplace_check(d.op, x)) return NULL;
    d.dtype = x->dtype;
    d.one_by_one = !(x->flags & FLAG_CONTIGUOUS);
    bool graph = !grad_off && (x->entry || (x->base && x->base->entry));
    if (graph ? replace(x, &d, site) : fill_tensor(x, &d)) return NULL;
    if (!graph) bump_version(x);
    return borrow(x);
}
