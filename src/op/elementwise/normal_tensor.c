/* normal_tensor.c - normals whose mean and deviation are tensors: z std + mean, each step rounded, as
 * PyTorch. */
#include "op/shape/shape_op.h"
#include <tapegrad/random.h>
#include "random/draw.h"

/* On a device found late. */
static int check_deviations(const char *op, const Tensor *std, const void *site)
{
    OpCall c = { .name = op, .site = site };
    CheckArgs args = { .what = "std", .status = TENSOR_EVALUE, .high = INT64_MAX };
    const int found = call_check(&c, std, &args);
    if (found == 1)
        return fail(TENSOR_EVALUE, op, "std %s: %g at position %lld: want 0 or more", S(std), args.bad_number,
                    (long long)args.bad_at);
    return found;
}

/* z std + mean, each step rounded; std and mean may be NULL. */
static Tensor *moved(Tensor *z, Tensor *std, Tensor *mean)
{
    const bool graph = tensor_set_grad_enabled(false);
    if (std) z = tensor_mul(z, std);
    if (mean) z = tensor_add(z, mean);
    tensor_set_grad_enabled(graph);
    return z;
}

static Tensor *normals_like(const char *op, const Tensor *x, double mean, double std)
{
    return draw_like(x, x->dtype,
                     (Draw){ op, fill_normal, .torch = RANDOM_TORCH_NORMAL, .drawn = draw_wide(x->dtype),
                             .at = { mean, std } });
}

Tensor *tensor_normal_tensor(Tensor *mean, Tensor *std)
{
    static const char op[] = "tensor_normal_tensor";
    int64_t dim[TENSOR_MAX_DIMS];
    if (check_null(mean, op, 1) || check_null(std, op, 2) || draw_check_float(op, mean->dtype)) return NULL;
    if (mean->dtype != std->dtype || mean->place != std->place)
        return fail(mean->dtype != std->dtype ? TENSOR_EDTYPE : TENSOR_EDEVICE, op,
                    "mean %s on %s and std %s on %s: want one dtype and device",
                    tensor_dtype_name((TensorDtype)mean->dtype), mean->place->name,
                    tensor_dtype_name((TensorDtype)std->dtype), std->place->name),
               NULL;
    const TensorShape shape = { shape_broadcast(shape_of(mean), shape_of(std), dim), dim };
    if (shape.ndim < 0)
        return fail(TENSOR_ESHAPE, op, "mean %s and std %s do not broadcast", S(mean), S(std)), NULL;
    TensorScope scope = tensor_scope_open();
    Tensor *z = check_deviations(op, std, SITE) ? NULL : own(new_tensor(shape, mean->dtype, mean->place));
    return tensor_scope_return(scope, z ? moved(normals_like(op, z, 0, 1), std, mean) : NULL);
}

Tensor *tensor_normal_tensor_scalar(Tensor *mean, double std)
{
    static const char op[] = "tensor_normal_tensor_scalar";
    if (check_null(mean, op, 1) || draw_check_float(op, mean->dtype) || draw_check_std(op, std)) return NULL;
    TensorScope scope = tensor_scope_open();
    return tensor_scope_return(scope, moved(normals_like(op, mean, 0, std), NULL, mean));
}

Tensor *tensor_normal_scalar_tensor(double mean, Tensor *std)
{
    static const char op[] = "tensor_normal_scalar_tensor";
    if (check_null(std, op, 2) || draw_check_float(op, std->dtype)) return NULL;
    TensorScope scope = tensor_scope_open();
    Tensor *z = check_deviations(op, std, SITE) ? NULL : moved(normals_like(op, std, 0, 1), std, NULL);
    return tensor_scope_return(scope, z ? tensor_add_scalar(z, mean) : NULL); /* moved z has no graph */
}
