/* clip.c - gradients held to a norm or to a range. */
#include <math.h>
#include "module.h"

static double combine(double sum, double norm, double p)
{
    if (isinf(p)) return isnan(norm) || norm > sum ? norm : sum;
    return sum + (p == 2 ? norm * norm : pow(norm, p));
}

/* NaN: an error, or a NaN among the gradients. */
static double total_norm(TensorList list, double p)
{
    double sum = 0;
    for (int i = 0; i < list.count; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *grad = tensor_grad(list.item[i]);
        if (grad) sum = combine(sum, tensor_item(tensor_norm(grad, p)), p);
        tensor_scope_close(scope);
    }
    return isinf(p) ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

static int scale_all(TensorList list, double factor)
{
    int status = 0;
    for (int i = 0; i < list.count && !status; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *grad = tensor_grad(list.item[i]);
        if (grad && !tensor_mul_scalar_(grad, factor)) status = -1;
        tensor_scope_close(scope);
    }
    return status;
}

const NNClipArgs nn_clip_grad_norm_defaults = { NN_CLIP_GRAD_NORM_DEFAULTS };

/* A NULL or a released tensor among the parameters is an error, not one without gradient.  Nothing is clipped
 * while an error is pending. */
static bool is_broken(TensorList list, const char *function)
{
    bool broken = list.count < 0 || (list.count > 0 && !list.item);
    for (int i = 0; i < list.count && !broken; i++) {
        broken = !list.item[i];
        if (!broken) tensor_is_leaf(list.item[i]); /* asks whether it was released */
    }
    if (broken && !tensor_error_code())
        tensor_fail(TENSOR_ENULL, function, "a parameter, or their list, is NULL");
    return tensor_error_code() != TENSOR_OK;
}

double nn_clip_grad_norm_args(NNClipArgs args)
{
    if (TENSOR_CHECK_OPTIONS("nn_clip_grad_norm_", args, nn_clip_grad_norm_defaults)) return NAN;
    if (is_broken(args.parameters, "nn_clip_grad_norm_")) return NAN;
    if (!(args.max_norm >= 0) || !(args.norm_type > 0)) {
        tensor_fail(TENSOR_EVALUE, "nn_clip_grad_norm_",
                    "max_norm %g, norm_type %g: want 0 or more, and a norm", args.max_norm, args.norm_type);
        return NAN;
    }
    bool was = tensor_set_grad_enabled(false);
    double norm = total_norm(args.parameters, args.norm_type), factor = args.max_norm / (norm + 1e-6);
    int status = tensor_error_code() ? -1 : 0;
    if (!status && args.error_if_nonfinite && !isfinite(norm))
        status = tensor_fail(TENSOR_EVALUE, "nn_clip_grad_norm_", "the norm of the gradients is %g", norm);
    if (!status && !(factor >= 1))
        status = scale_all(args.parameters, factor); /* a NaN spreads, as in PyTorch */
    tensor_set_grad_enabled(was);
    return status ? NAN : norm;
}

int nn_clip_grad_value_(TensorList list, double limit)
{
    if (is_broken(list, "nn_clip_grad_value_")) return -1;
    if (!(limit >= 0))
        return tensor_fail(TENSOR_EVALUE, "nn_clip_grad_value_", "limit %g: want 0 or more", limit);
    bool was = tensor_set_grad_enabled(false);
    int status = 0;
    for (int i = 0; i < list.count && !status; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *grad = tensor_grad(list.item[i]);
        if (grad && !tensor_clamp_(grad, -limit, limit)) status = -1;
        tensor_scope_close(scope);
    }
    tensor_set_grad_enabled(was);
    return status;
}
