/* clip.c - clips gradients by norm or value, with list ops: no value returns to the host. */
#include <math.h>
#include <stdlib.h>
#include <tapegrad/foreach.h>
#include "module.h"

const NNClipArgs nn_clip_grad_norm_defaults = { NN_CLIP_GRAD_NORM_DEFAULTS };
const NNTotalNormArgs nn_get_total_norm_defaults = { NN_GET_TOTAL_NORM_DEFAULTS };

/* A call: it holds the gradients of its parameters. */
typedef struct Clip {
    TensorScope scope;
    const char *outer;
    bool was;
    Tensor **grad;
    TensorList grads;
} Clip;

static void begin(Clip *c, const char *function, TensorList list)
{
    const bool bad = list.count < 0 || (list.count > 0 && !list.item);
    int n = 0;
    *c = (Clip){ tensor_scope_open(), tensor_compose_begin(function), tensor_set_grad_enabled(false) };
    c->grad = bad || tensor_error_code() ? NULL : malloc(((size_t)list.count + 1) * sizeof *c->grad);
    if (!c->grad && !tensor_error_code())
        tensor_fail(bad ? TENSOR_ENULL : TENSOR_ENOMEM, function,
                    bad ? "the list of parameters is NULL" : "out of memory");
    for (int i = 0; c->grad && i < list.count && !tensor_error_code(); i++) {
        if (!list.item[i]) tensor_fail(TENSOR_ENULL, function, "parameter %d is NULL", i);
        else if ((c->grad[n] = tensor_grad(list.item[i])) != NULL) n++;
    }
    c->grads = TENSOR_LIST(c->grad, n);
}

static Tensor *end(Clip *c, Tensor *y)
{
    free(c->grad);
    tensor_set_grad_enabled(c->was);
    tensor_compose_end(c->outer);
    return tensor_scope_return(c->scope, tensor_error_code() ? NULL : y);
}

static void check(const char *function, double max_norm, double norm_type)
{
    if (!tensor_error_code() && (!(max_norm >= 0) || !(norm_type > 0)))
        tensor_fail(TENSOR_EVALUE, function, "max_norm %g, norm_type %g: want 0 or more, and a norm",
                    max_norm, norm_type);
}

static Tensor *total_norm(const char *function, TensorList tensors, double p, bool error_if_nonfinite)
{
    if (tensor_error_code()) return NULL;
    if (tensors.count == 0) return tensor_zeros(SHAPE(), TENSOR_F32);
    Tensor *norm = tensor_norm(tensor_foreach_norm(tensors, p), p);
    const double value = norm && error_if_nonfinite ? tensor_item(norm) : 0;
    if (norm && !isfinite(value)) tensor_fail(TENSOR_EVALUE, function, "the norm is %g", value);
    return norm;
}

/* A NaN spreads, as in PyTorch. */
static void scale(TensorList grads, double max_norm, Tensor *norm)
{
    if (tensor_error_code() || grads.count == 0) return;
    Tensor *factor = tensor_reciprocal(tensor_add_scalar(norm, 1e-6));
    if (max_norm != 1) factor = tensor_mul_scalar(factor, max_norm);
    tensor_foreach_mul_(grads, tensor_clamp_max(factor, 1));
}

Tensor *nn_get_total_norm_args(NNTotalNormArgs args)
{
    static const char function[] = "nn_get_total_norm";
    if (TENSOR_CHECK_OPTIONS(function, args, nn_get_total_norm_defaults)) return NULL;
    Clip c;
    begin(&c, function, (TensorList){ 0 });
    check(function, 0, args.norm_type);
    return end(&c, total_norm(function, args.tensors, args.norm_type, args.error_if_nonfinite));
}

int nn_clip_grads_with_norm_(TensorList parameters, double max_norm, Tensor *norm)
{
    static const char function[] = "nn_clip_grads_with_norm_";
    Clip c;
    begin(&c, function, parameters);
    if (!norm && !tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the norm is NULL");
    check(function, max_norm, 2);
    scale(c.grads, max_norm, norm);
    end(&c, NULL);
    return tensor_error_code() ? -1 : 0;
}

Tensor *nn_clip_grad_norm_args(NNClipArgs args)
{
    static const char function[] = "nn_clip_grad_norm_";
    if (TENSOR_CHECK_OPTIONS(function, args, nn_clip_grad_norm_defaults)) return NULL;
    Clip c;
    begin(&c, function, args.parameters);
    check(function, args.max_norm, args.norm_type);
    Tensor *norm = total_norm(function, c.grads, args.norm_type, args.error_if_nonfinite);
    scale(c.grads, args.max_norm, norm);
    return end(&c, norm);
}

int nn_clip_grad_value_(TensorList parameters, double limit)
{
    static const char function[] = "nn_clip_grad_value_";
    Clip c;
    begin(&c, function, parameters);
    if (!(limit >= 0) && !tensor_error_code())
        tensor_fail(TENSOR_EVALUE, function, "limit %g: want 0 or more", limit);
    if (!tensor_error_code()) tensor_foreach_clamp_(c.grads, -limit, limit);
    end(&c, NULL);
    return tensor_error_code() ? -1 : 0;
}
