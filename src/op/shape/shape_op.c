/* shape_op.c - see shape_op.h. */
#include "shape_op.h"

#define NO_DIM "%s has no dim %lld"

int call_dim(OpCall *c, int64_t dim, TensorShape shape)
{
    if (dim == TENSOR_ALL) return op_fail(c, TENSOR_EVALUE, "dim must be given");
    const int d = wrap_dim(dim, shape.ndim);
    return d < 0 ? op_fail(c, TENSOR_EINDEX, NO_DIM, shape_text(shape), (long long)dim) : d;
}

int find_dim(const char *op, const Tensor *x, int64_t dim)
{
    const int d = wrap_dim(dim, x->ndim);
    return d < 0 ? fail(TENSOR_EINDEX, op, NO_DIM, S(x), (long long)dim) : d;
}

int call_dim_or_all(OpCall *c, int *dim, TensorShape shape)
{
    if (*dim == TENSOR_ALL) return 0;
    const int d = call_dim(c, *dim, shape);
    if (d >= 0) *dim = d;
    return d < 0 ? -1 : 0;
}

int call_dims(OpCall *c, TensorShape *list, TensorShape shape, TensorStatus twice)
{
    int64_t dims[TENSOR_MAX_DIMS];
    unsigned seen = 0;
    for (int i = 0; i < list->ndim; i++) {
        const int d = call_dim(c, list->dim[i], shape);
        if (d < 0) return -1;
        if (seen >> d & 1) return op_fail(c, twice, "%s: dim %d is given twice", shape_text(shape), d);
        seen |= 1u << d;
        dims[i] = d;
    }
    return op_set_list(c, list, list->ndim, dims);
}

int call_real_dim(OpCall *c, int *dim)
{
    Tensor *x = op_input(c, 0);
    if (x->ndim == 0) return op_fail(c, TENSOR_EINDEX, "[] has no dimension");
    *dim = call_dim(c, *dim, shape_of(x));
    return *dim < 0 ? -1 : 0;
}

int parts_or_none(int count, Tensor **parts, int room)
{
    for (int k = 0; count < 0 && parts && k < room; k++) parts[k] = NULL;
    return count;
}

Tensor *zeros_on(TensorShape shape, int dtype, const Place *place)
{
    Tensor *x = own(new_tensor(shape, dtype, place));
    return x && !raw_fill(x, 0) ? x : NULL;
}

Tensor *numbers_on(int64_t n, TensorDtype dtype, const Place *place)
{
    if (on_host(place)) return carried(tensor_arange(0, (double)n, 1, dtype), place);
    Tensor *one = own(new_tensor(SHAPE(n), dtype, place));
    return one && !raw_fill(one, 1) ? tensor_sub_scalar(tensor_cumsum(one, 0), 1) : NULL;
}

Tensor *new_part(const Tensor *x, int dim, int64_t start, int64_t length, int64_t step)
{
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[d], stride[d] = x->stride[d];
    int64_t offset = length && x->numel ? start * stride[dim] : 0;
    shape[dim] = length;
    if (length > 1) stride[dim] *= step;
    return new_view(x, x->ndim, shape, stride, offset);
}

Tensor *new_layer(const Tensor *x, int dim, int64_t index)
{
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    for (int d = 0, n = 0; d < x->ndim; d++)
        if (d != dim) shape[n] = x->shape[d], stride[n++] = x->stride[d];
    return new_view(x, x->ndim - 1, shape, stride, x->numel ? index * x->stride[dim] : 0);
}

Tensor *host_copy(const Tensor *x, int dtype)
{
    if (x->place == &cpu_place) return own(raw_cast(x, dtype));
    Tensor *y = own(new_tensor(shape_of(x), dtype, &cpu_place));
    return y && !raw_copy(y, x) ? y : NULL;
}

Tensor *carried(Tensor *x, const Place *place)
{
    return x && x->place != place ? own(raw_carry(x, place)) : x;
}

int call_check(OpCall *c, const Tensor *x, CheckArgs *args)
{
    Tensor *wide = x ? own(raw_cast(x, dtype_is_float(x->dtype) ? TENSOR_F64 : TENSOR_I64)) : NULL;
    if (!wide || x->numel == 0) return wide ? 0 : -1;
    outermost_call(c, &args->op, &args->site);
    args->dtype = wide->dtype;
    args->count = wide->numel, args->x = wide->data, args->bad_at = -1;
    const int status = KERNEL_STATUS(x->place, check_range, args);
    if (status == KERNEL_FAILED && args->bad_at >= 0) return 1;
    return kernel_status(status, c->name, x->place, "check_range");
}

/* ---- select ---------------------------------------------------------------------------------- */

static void set_strided(Strided *s, const Tensor *x, TensorShape shape)
{
    s->data = x->data, s->dtype = x->dtype;
    broadcast_strides(x, shape, s->stride);
}

int raw_select(const char *op, Tensor *out, const Tensor *cond, const Tensor *a, const Tensor *b)
{
    if (out->numel == 0) return 0;
    SelectArgs args;
    args.count = out->numel;
    for (int d = 0; d < out->ndim; d++) args.shape[d] = out->shape[d];
    set_strided(&args.out, out, shape_of(out));
    set_strided(&args.cond, cond, shape_of(out));
    set_strided(&args.a, a, shape_of(out));
    set_strided(&args.b, b, shape_of(out));
    args.ndim =
        collapse(out->ndim, args.shape, 4,
                 (int64_t *const[]){ args.out.stride, args.cond.stride, args.a.stride, args.b.stride });
    return RUN_KERNEL(op, out->place, select, &args);
}

static int category(int dtype) { return dtype_is_float(dtype) ? 2 : dtype != TENSOR_BOOL; }

int promoted(int a, bool a_is_scalar, int b, bool b_is_scalar)
{
    if (a_is_scalar == b_is_scalar) return (int)tensor_promote_types((TensorDtype)a, (TensorDtype)b);
    const int full = a_is_scalar ? b : a, scalar = a_is_scalar ? a : b;
    return category(scalar) > category(full) ? scalar : full;
}

int promoted_pair(const Tensor *a, const Tensor *b)
{
    return promoted(a->dtype, a->ndim == 0, b->dtype, b->ndim == 0);
}

int call_mask_dtype(OpCall *c, const Tensor *cond)
{
    if (cond->dtype == TENSOR_BOOL || cond->dtype == TENSOR_U8) return 0;
    return op_fail(c, TENSOR_EDTYPE, "the mask %s is %s: want bool", S(cond),
                   tensor_dtype_name((TensorDtype)cond->dtype));
}

Tensor *as_mask(const Tensor *cond)
{
    return own(cond->dtype == TENSOR_BOOL ? tensor_retain((Tensor *)(uintptr_t)cond)
                                          : raw_cast(cond, TENSOR_BOOL));
}

int call_one_dtype(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    for (int i = 1; i < op_inputs(c); i++) {
        const Tensor *other = op_input(c, i);
        if (other && other->dtype != x->dtype)
            return op_fail(c, TENSOR_EDTYPE, "operand 1 is %s %s, operand %d %s %s: want one dtype",
                           tensor_dtype_name((TensorDtype)x->dtype), S(x), i + 1,
                           tensor_dtype_name((TensorDtype)other->dtype), S(other));
    }
    return 0;
}
