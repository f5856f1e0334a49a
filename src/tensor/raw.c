/* raw.c - work on values outside the graph: copy, fill, cast, between any layouts, dtypes and devices.
 *
 * Copies between devices go through host memory, dense and in the narrower of the two dtypes. */
#include "core.h"

/* ---- on one device --------------------------------------------------------------------------- */

static bool dense(const Tensor *x) { return x->flags & FLAG_CONTIGUOUS; }

static int copy_here(Tensor *dst, const Tensor *src)
{
    CopyArgs args;
    args.count = dst->numel;
    args.dst.data = dst->data, args.dst.dtype = dst->dtype;
    args.src.data = src->data, args.src.dtype = src->dtype;
    if (dense(dst) && dense(src) && dst->numel == src->numel) { /* so the shapes differ by ones at most */
        args.ndim = 1, args.shape[0] = dst->numel, args.dst.stride[0] = args.src.stride[0] = 1;
        return NEED_KERNEL("copy", dst->place, copy, &args);
    }
    for (int i = 0; i < dst->ndim; i++) args.shape[i] = dst->shape[i], args.dst.stride[i] = dst->stride[i];
    broadcast_strides(src, shape_of(dst), args.src.stride);
    args.ndim = collapse(dst->ndim, args.shape, 2, (int64_t *const[]){ args.dst.stride, args.src.stride });
    return NEED_KERNEL("copy", dst->place, copy, &args);
}

typedef struct Span {
    const char *begin, *end;
} Span;

/* The bytes between which x's elements lie. */
static Span span(const Tensor *x)
{
    Span s = { x->data, x->data };
    int64_t size = (int64_t)dtype_size(x->dtype);
    for (int i = 0; i < x->ndim; i++) {
        int64_t reach = (x->shape[i] - 1) * x->stride[i] * size;
        if (reach < 0) s.begin += reach;
        else s.end += reach;
    }
    s.end += size;
    return s;
}

/* Would writing dst change elements of src before they are read?  Not if both are the same elements in the
 * same order. */
static bool interferes(const Tensor *dst, const Tensor *src)
{
    if (dst->storage != src->storage) return false;
    if (dst->data == src->data && dst->dtype == src->dtype && shape_equal(shape_of(dst), shape_of(src)) &&
        memcmp(dst->stride, src->stride, (size_t)dst->ndim * sizeof *dst->stride) == 0)
        return false;
    const Span a = span(dst), b = span(src);
    return a.begin < b.end && b.begin < a.end;
}

static Tensor *copy_as(const Tensor *x, int dtype)
{
    Tensor *y = new_tensor(shape_of(x), dtype, x->place);
    if (y && y->numel > 0 && copy_here(y, x) < 0) {
        tensor_release(y);
        return NULL;
    }
    return y;
}

Tensor *raw_contiguous(const Tensor *x)
{
    return dense(x) ? tensor_retain((Tensor *)x) : copy_as(x, x->dtype);
}

Tensor *raw_cast(const Tensor *x, int dtype)
{
    return dense(x) && x->dtype == dtype ? tensor_retain((Tensor *)x) : copy_as(x, dtype);
}

bool fill_fits(int dtype, double value)
{
    const double end = dtype == TENSOR_U8 ? 256 : dtype == TENSOR_I32 ? 0x1p31 : 0x1p63;
    const bool wraps = dtype == TENSOR_U8,
               within = value < end && (wraps ? value > -end : value >= -end); /* as PyTorch's */
    return dtype_is_float(dtype) || dtype == TENSOR_BOOL || within;
}

int check_fill(const char *op, const Tensor *x, double value)
{
    if (x->numel == 0 || fill_fits(x->dtype, value)) return 0;
    return fail(TENSOR_EVALUE, op, "%g is beyond the dtype of %s %s", value,
                tensor_dtype_name((TensorDtype)x->dtype), S(x));
}

int raw_fill(Tensor *dst, double value)
{
    if (dst->numel == 0) return 0;
    if (check_fill("fill", dst, value)) return -1;
    if (unlikely(graph_watches)) graph_note_number(value);
    FillArgs args;
    args.kind = FILL_VALUE;
    args.count = dst->numel, args.value = value;
    args.dst.data = dst->data, args.dst.dtype = dst->dtype;
    args.value_i64 = value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
    if (dense(dst)) {
        args.ndim = 1, args.shape[0] = dst->numel, args.dst.stride[0] = 1;
        return NEED_KERNEL("fill", dst->place, fill, &args);
    }
    for (int i = 0; i < dst->ndim; i++) args.shape[i] = dst->shape[i], args.dst.stride[i] = dst->stride[i];
    args.ndim = collapse(dst->ndim, args.shape, 1, (int64_t *const[]){ args.dst.stride });
    return NEED_KERNEL("fill", dst->place, fill, &args);
}

/* ---- between devices ------------------------------------------------------------------------- */

/* Copies the bytes of dense x to dense y on another device; one of them is on the host. */
static int carry_into(Tensor *y, const Tensor *x)
{
    const size_t bytes = (size_t)x->numel * dtype_size(x->dtype);
    const Place *far = on_host(y->place) ? x->place : y->place;
    if (graph_wait(graph_op(), on_host(y->place) ? "copies to the host" : "copies from the host")) return -1;
    return bytes == 0 ? 0
                      : kernel_status(on_host(y->place)
                                          ? far->device->to_host(far->context, y->data, x->data, bytes)
                                          : far->device->to_device(far->context, y->data, x->data, bytes),
                                      "copy", far, "copy");
}

/* A dense tensor on place with the values of x. */
static Tensor *carry(const Tensor *x, const Place *place)
{
    Tensor *y = new_tensor(shape_of(x), x->dtype, place);
    if (!y || !carry_into(y, x)) return y;
    tensor_release(y);
    return NULL;
}

static int copy_across(Tensor *dst, const Tensor *src)
{
    bool narrows = dtype_size(dst->dtype) < dtype_size(src->dtype);
    Tensor *at = raw_cast(src, narrows ? dst->dtype : src->dtype);
    if (at && !on_host(src->place) && !on_host(dst->place)) {
        Tensor *host = carry(at, &cpu_place);
        tensor_release(at);
        at = host;
    }
    if (at && dense(dst) && dst->dtype == at->dtype && dst->numel == at->numel) {
        const int status = carry_into(dst, at);
        tensor_release(at);
        return status;
    }
    Tensor *there = at ? carry(at, dst->place) : NULL;
    tensor_release(at);
    int status = there ? copy_here(dst, there) : -1;
    tensor_release(there);
    return status;
}

Tensor *raw_carry(const Tensor *x, const Place *place)
{
    if (x->place == place) return tensor_retain((Tensor *)(uintptr_t)x);
    Tensor *y = new_tensor(shape_of(x), x->dtype, place);
    if (!y || !raw_copy(y, x)) return y;
    tensor_release(y);
    return NULL;
}

int raw_copy(Tensor *dst, const Tensor *src)
{
    if (dst->numel == 0) return 0;
    if (unlikely(dst->place != src->place)) return copy_across(dst, src);
    if (likely(!interferes(dst, src))) return copy_here(dst, src);
    Tensor *apart = copy_as(src, src->dtype);
    int status = apart ? copy_here(dst, apart) : -1;
    tensor_release(apart);
    return status;
}
