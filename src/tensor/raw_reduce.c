/* raw_reduce.c - reductions outside the graph. */
#include "raw_reduce.h"

static void set_spaces(ReduceArgs *a, const Tensor *x, const bool reduced[])
{
    a->kept = a->reduced = 1;
    for (int i = 0; i < x->ndim; i++) {
        int64_t *shape = reduced[i] ? a->reduced_shape : a->kept_shape,
                *stride = reduced[i] ? a->reduced_stride : a->kept_stride;
        int *ndim = reduced[i] ? &a->reduced_ndim : &a->kept_ndim;
        shape[*ndim] = x->shape[i], stride[*ndim] = x->stride[i];
        ++*ndim;
        *(reduced[i] ? &a->reduced : &a->kept) *= x->shape[i];
    }
    a->kept_ndim = collapse(a->kept_ndim, a->kept_shape, 1, (int64_t *const[]){ a->kept_stride });
    a->reduced_ndim = collapse(a->reduced_ndim, a->reduced_shape, 1, (int64_t *const[]){ a->reduced_stride });
}

static int as_it_is(Tensor *out, const Tensor *x, int kind, const bool reduced[], double param)
{
    ReduceArgs a;
    a.kind = kind, a.param = param, a.kept_ndim = a.reduced_ndim = 0;
    a.src = x->data, a.src_dtype = x->dtype, a.out = out->data, a.out_dtype = out->dtype;
    set_spaces(&a, x, reduced);
    return RUN_KERNEL("reduce", x->place, reduce, &a);
}

/* The CPU widens halves as it goes where all of them are one line. */
static bool is_widened_there(const Tensor *x, const Tensor *out, int kind)
{
    const bool index = kind == REDUCE_ARGMAX || kind == REDUCE_ARGMIN;
    return on_host(x->place) && out->numel == 1 && x->numel > 0 && (x->flags & FLAG_CONTIGUOUS) && !index;
}

static int through_f32(Tensor *out, const Tensor *x, int kind, const bool reduced[], double param)
{
    const bool cast = dtype_is_half(x->dtype) && !is_widened_there(x, out, kind);
    Tensor *wide = cast ? raw_cast(x, TENSOR_F32) : tensor_retain((Tensor *)x);
    Tensor *y =
        dtype_is_half(out->dtype) ? new_tensor(shape_of(out), TENSOR_F32, out->place) : tensor_retain(out);
    int status = wide && y ? as_it_is(y, wide, kind, reduced, param) : -1;
    if (status == 0 && y != out) status = raw_copy(out, y);
    tensor_release(wide);
    tensor_release(y);
    return status;
}

static bool reads_as_is(const Tensor *x, int out)
{
    if (likely(!dtype_is_half(x->dtype) && !dtype_is_half(out))) return true;
    return TAKES(x->place, reduce, x->dtype) && TAKES(x->place, reduce, out);
}

int raw_reduce_into(Tensor *out, const Tensor *x, int kind, const bool reduced[], double param)
{
    if (out->numel == 0) return 0;
    return reads_as_is(x, out->dtype) ? as_it_is(out, x, kind, reduced, param)
                                      : through_f32(out, x, kind, reduced, param);
}

Tensor *raw_reduce(const Tensor *x, int kind, const bool reduced[], bool keepdim, int out_dtype, double param)
{
    int64_t shape[TENSOR_MAX_DIMS];
    int ndim = 0;
    for (int i = 0; i < x->ndim; i++)
        if (!reduced[i] || keepdim) shape[ndim++] = reduced[i] ? 1 : x->shape[i];
    Tensor *y = new_tensor((TensorShape){ ndim, shape }, out_dtype, x->place);
    if (y && raw_reduce_into(y, x, kind, reduced, param)) {
        tensor_release(y);
        return NULL;
    }
    return y;
}

Tensor *raw_sum_to(Tensor *x, TensorShape shape)
{
    bool reduced[TENSOR_MAX_DIMS];
    int lead = x->ndim - shape.ndim;
    if (shape_equal(shape_of(x), shape)) return tensor_retain(x);
    for (int i = 0; i < x->ndim; i++) reduced[i] = i < lead || (shape.dim[i - lead] == 1 && x->shape[i] != 1);
    Tensor *sum = raw_reduce(x, REDUCE_SUM, reduced, true, x->dtype, 0);
    if (!sum || lead == 0) return sum;
    int64_t stride[TENSOR_MAX_DIMS];
    dense_strides(shape.ndim, shape.dim, stride);
    Tensor *y = new_view(sum, shape.ndim, shape.dim, stride, 0);
    tensor_release(sum);
    return y;
}
