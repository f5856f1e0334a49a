/* values.c - values in and out, and comparing them.  Elements of other devices come through host memory. */
#include <math.h>
#include "core.h"
#include "device/half.h"

/* ---- one element ----------------------------------------------------------------------------- */

typedef union Element {
    float f32;
    double f64;
    uint16_t half;
    int64_t i64;
    int32_t i32;
    uint8_t u8;
} Element;

static int fetch(const Tensor *x, const void *at, const char *op, Element *e)
{
    size_t size = dtype_size(x->dtype);
    if (on_host(x->place)) memcpy(e, at, size);
    else if (graph_wait(op, "reads a value")) return -1;
    else
        return kernel_status(x->place->device->to_host(x->place->context, e, at, size), op, x->place, "copy");
    return 0;
}

static double as_double(const Element *e, int dtype)
{
    switch (dtype) {
    case TENSOR_F32: return (double)e->f32;
    case TENSOR_F64: return e->f64;
    case TENSOR_F16: return (double)f16_to_f32(e->half);
    case TENSOR_BF16: return (double)bf16_to_f32(e->half);
    case TENSOR_I64: return (double)e->i64;
    case TENSOR_I32: return (double)e->i32;
    case TENSOR_U8: return (double)e->u8;
    default: return e->u8 != 0;
    }
}

static int fetch_item(const Tensor *x, const char *op, Element *e)
{
    if (check_null(x, op, 1)) return -1;
    if (x->numel != 1)
        return fail(TENSOR_ESHAPE, op, "%s has %lld elements, not one", S(x), (long long)x->numel);
    return fetch(x, x->data, op, e);
}

double tensor_item(const Tensor *x)
{
    Element e;
    return fetch_item(x, "tensor_item", &e) ? (double)NAN : as_double(&e, x->dtype);
}

int64_t tensor_item_i64(const Tensor *x)
{
    Element e;
    if (fetch_item(x, "tensor_item_i64", &e)) return 0;
    if (x->dtype == TENSOR_I64) return e.i64;
    double value = as_double(&e, x->dtype);
    return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
}

int find_element(const Tensor *x, TensorShape index, const char *op, int64_t *offset)
{
    if (check_null(x, op, 1)) return -1;
    if (index.ndim != x->ndim) return fail(TENSOR_ESHAPE, op, "%d indices for %s", index.ndim, S(x));
    if (x->ndim > 0 && !index.dim)
        return fail(TENSOR_ENULL, op, "%d indices, whose list is NULL", index.ndim);
    *offset = 0;
    for (int d = 0; d < x->ndim; d++) {
        int64_t i = index.dim[d] < 0 ? index.dim[d] + x->shape[d] : index.dim[d];
        if (i < 0 || i >= x->shape[d])
            return fail(TENSOR_EINDEX, op, "index %s of %s: %lld is out of range in dimension %d",
                        shape_text(index), S(x), (long long)index.dim[d], d);
        *offset += i * x->stride[d];
    }
    return 0;
}

double tensor_get(const Tensor *x, TensorShape index)
{
    Element e;
    int64_t offset;
    if (find_element(x, index, "tensor_get", &offset)) return (double)NAN;
    const char *at = (const char *)x->data + offset * (int64_t)dtype_size(x->dtype);
    return fetch(x, at, "tensor_get", &e) ? (double)NAN : as_double(&e, x->dtype);
}

/* ---- all elements ---------------------------------------------------------------------------- */

int check_bytes(const Tensor *x, const void *buffer, size_t bytes, const char *op)
{
    if (check_null(x, op, 1)) return -1;
    size_t want = (size_t)x->numel * dtype_size(x->dtype);
    if (bytes != want)
        return fail(TENSOR_ESHAPE, op, "%zu bytes for %s %s, which takes %zu", bytes,
                    tensor_dtype_name((TensorDtype)x->dtype), S(x), want);
    return buffer || bytes == 0 ? 0 : fail(TENSOR_ENULL, op, "the buffer is NULL");
}

int tensor_copy_to(const Tensor *x, void *buffer, size_t bytes)
{
    if (check_bytes(x, buffer, bytes, "tensor_copy_to")) return -1;
    if (bytes == 0) return 0;
    if (!on_host(x->place) && graph_wait("tensor_copy_to", "copies to the host")) return -1;
    if (x->flags & FLAG_CONTIGUOUS)
        return kernel_status(x->place->device->to_host(x->place->context, buffer, x->data, bytes),
                             "tensor_copy_to", x->place, "copy");
    TensorScope scope = tensor_scope_open();
    Tensor *there = tensor_from_blob(buffer, shape_of(x), (TensorDtype)x->dtype, NULL, NULL);
    int status = there ? raw_copy(there, x) : -1;
    tensor_scope_close(scope);
    return status;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* x's values on the CPU, dense, of this dtype and broadcast to this shape: a new reference. */
static Tensor *copy_on_host(const Tensor *x, int dtype, TensorShape shape)
{
    if (x->place == &cpu_place && shape_equal(shape_of(x), shape)) return raw_cast(x, dtype);
    Tensor *y = new_tensor(shape, dtype, &cpu_place);
    if (!y || raw_copy(y, x) == 0) return y;
    tensor_release(y);
    return NULL;
}

static bool equal_f64(const double *a, const double *b, int64_t n)
{
    bool same = true;
    for (int64_t i = 0; i < n; i++) same &= a[i] == b[i];
    return same;
}

static bool equal_f32(const float *a, const float *b, int64_t n)
{
    bool same = true;
    for (int64_t i = 0; i < n; i++) same &= a[i] == b[i];
    return same;
}

bool tensor_equal(const Tensor *a, const Tensor *b)
{
    if (check_null(a, "tensor_equal", 1) || check_null(b, "tensor_equal", 2)) return false;
    if (a->dtype != b->dtype || !shape_equal(shape_of(a), shape_of(b))) return false;
    int dtype = dtype_is_half(a->dtype) ? TENSOR_F32 : a->dtype;
    Tensor *p = copy_on_host(a, dtype, shape_of(a)), *q = p ? copy_on_host(b, dtype, shape_of(a)) : NULL;
    bool same = p && q;
    if (same && dtype == TENSOR_F32) same = equal_f32(p->data, q->data, p->numel);
    else if (same && dtype == TENSOR_F64) same = equal_f64(p->data, q->data, p->numel);
    else if (same) same = memcmp(p->data, q->data, (size_t)p->numel * dtype_size(dtype)) == 0;
    tensor_release(p);
    tensor_release(q);
    return same;
}

static bool all_close(const double *a, const double *b, int64_t n, double rtol, double atol, bool equal_nan)
{
    for (int64_t i = 0; i < n; i++) {
        double distance = fabs(a[i] - b[i]);
        bool close = a[i] == b[i] || (isfinite(distance) && distance <= atol + fabs(rtol * b[i])) ||
                     (equal_nan && isnan(a[i]) && isnan(b[i]));
        if (!close) return false;
    }
    return true;
}

const TensorAllcloseArgs tensor_allclose_defaults = { TENSOR_ALLCLOSE_DEFAULTS };

bool tensor_allclose_args(TensorAllcloseArgs args)
{
    const Tensor *a = args.a, *b = args.b;
    if (TENSOR_CHECK_OPTIONS("tensor_allclose", args, tensor_allclose_defaults)) return false;
    int64_t dim[TENSOR_MAX_DIMS];
    if (check_null(a, "tensor_allclose", 1) || check_null(b, "tensor_allclose", 2)) return false;
    TensorShape shape = { shape_broadcast(shape_of(a), shape_of(b), dim), dim };
    if (shape.ndim < 0)
        return fail(TENSOR_ESHAPE, "tensor_allclose", "%s and %s do not broadcast", S(a), S(b)), false;
    if (!(args.rtol >= 0) || !(args.atol >= 0))
        return fail(TENSOR_EVALUE, "tensor_allclose", "rtol %g, atol %g: not negative", args.rtol, args.atol),
               false;
    Tensor *p = copy_on_host(a, TENSOR_F64, shape), *q = p ? copy_on_host(b, TENSOR_F64, shape) : NULL;
    bool close = p && q && all_close(p->data, q->data, p->numel, args.rtol, args.atol, args.equal_nan);
    tensor_release(p);
    tensor_release(q);
    return close;
}
