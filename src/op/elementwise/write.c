/* write.c - in-place writes that do not read the old values: tensor_copy_, tensor_fill_, tensor_zero_,
 * tensor_copy_from, tensor_set. */
#include "op/op.h"

Tensor *tensor_copy_(Tensor *x, Tensor *src)
{
    if (check_null(x, "tensor_copy_", 1) || check_null(src, "tensor_copy_", 2) ||
        inplace_check("tensor_copy_", x))
        return NULL;
    int64_t shape[TENSOR_MAX_DIMS];
    if (shape_broadcast(shape_of(src), shape_of(x), shape) != x->ndim ||
        !shape_equal((TensorShape){ x->ndim, shape }, shape_of(x)))
        return fail(TENSOR_ESHAPE, "tensor_copy_", "%s does not broadcast to %s", S(src), S(x)), NULL;
    TensorScope scope = tensor_scope_open();
    Tensor *t = src;
    int recorded = history_of(src);
    if (recorded < 0) return tensor_scope_return(scope, NULL);
    bool graph =
        !grad_off && dtype_is_float(x->dtype) && (recorded || on_graph(x) || (x->base && on_graph(x->base)));
    if (graph) {
        if (t->dtype != x->dtype) t = tensor_to(t, x->dtype);
        if (t && t->place != x->place) t = tensor_to_device(t, x->place->name);
        if (t) t = tensor_expand(t, shape_of(x));
    }
    if (t && t->storage == x->storage) t = tensor_clone(t); /* overlapping: through a copy */
    int status = t ? inplace_take("tensor_copy_", "tensor_copy_", x, t, SITE) : -1;
    tensor_scope_close(scope);
    return status ? NULL : borrow(x);
}

static Tensor *fill(const char *op, Tensor *x, double value, const void *site)
{
    if (check_null(x, op, 1) || inplace_check(op, x) || check_fill(op, x, value)) return NULL;
    bool graph = !grad_off && (x->entry || (x->base && x->base->entry));
    if (!graph) {
        if (raw_fill(x, value)) return NULL;
        note_write(x, op, site);
        return borrow(x);
    }
    TensorScope scope = tensor_scope_open();
    Tensor *t = own(new_tensor(shape_of(x), x->dtype, x->place));
    int status = !t || raw_fill(t, value) ? -1 : inplace_take(op, op, x, t, site);
    tensor_scope_close(scope);
    return status ? NULL : borrow(x);
}

Tensor *tensor_fill_(Tensor *x, double value) { return fill("tensor_fill_", x, value, SITE); }
Tensor *tensor_zero_(Tensor *x) { return fill("tensor_zero_", x, 0, SITE); }

int tensor_copy_from(Tensor *x, const void *buffer, size_t bytes)
{
    static const char name[] = "tensor_copy_from";
    if (check_bytes(x, buffer, bytes, name) || inplace_check(name, x)) return -1;
    if (bytes == 0) return 0;
    TensorScope scope = tensor_scope_open();
    Tensor *from =
        tensor_from_blob((void *)(uintptr_t)buffer, shape_of(x), (TensorDtype)x->dtype, NULL, NULL);
    const int status = from && tensor_copy_(x, from) ? 0 : -1;
    tensor_scope_close(scope);
    return status;
}

/* Through select, so that the graph of x and of its base learns of it. */
int tensor_set(Tensor *x, TensorShape index, double value)
{
    static const char op[] = "tensor_set";
    int64_t offset;
    if (find_element(x, index, op, &offset) || inplace_check(op, x) || check_fill(op, x, value)) return -1;
    TensorScope scope = tensor_scope_open();
    Tensor *element = x;
    for (int d = 0; d < index.ndim && element; d++) element = tensor_select(element, 0, index.dim[d]);
    element = tensor_fill_(element, value);
    tensor_scope_close(scope);
    return element ? 0 : -1;
}
