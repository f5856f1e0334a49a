/* norm_gradient.c - gradients of layer_norm, rms_norm, group_norm and batch_norm.
 *
 *   z = (x - mean) rstd,  y = z w + b,  g = dy w
 *   dx = rstd (g - mean g - z mean(g z)),  dw = sum dy z,  db = sum dy;  constant statistics: dx = rstd g
 *   rms: mean = 0 and dx = rstd (g - z mean(g z))
 */
#include "norm_gradient.h"

int norm_check_dtypes(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *first = NULL;
    for (int i = 1; i < op_inputs(c); i++) {
        const Tensor *t = op_input(c, i);
        if (!t) continue;
        if (!first) first = t;
        const bool fits = t->dtype == x->dtype || (dtype_is_half(x->dtype) && t->dtype == TENSOR_F32);
        if (!fits || t->dtype != first->dtype)
            return op_fail(c, TENSOR_EDTYPE, "input %s %s, then %s %s and %s %s: want the input's dtype%s",
                           tensor_dtype_name(x->dtype), S(x), tensor_dtype_name(first->dtype), S(first),
                           tensor_dtype_name(t->dtype), S(t), dtype_is_half(x->dtype) ? ", or f32" : "");
    }
    return 0;
}

int norm_weights_dtype(int own_dtype, int narrow, int wide) { return own_dtype == narrow ? narrow : wide; }

Tensor *norm_operand(const Tensor *x, int dtype, bool *failed)
{
    Tensor *y = x ? own(raw_cast(x, dtype)) : NULL;
    if (x && !y) *failed = true;
    return y;
}

static void *data_of(const Tensor *x) { return x ? x->data : NULL; }

int norm_forward(OpCall *c, NormArgs *args, const Tensor *x, const Tensor *weight, const Tensor *bias,
                 Tensor *y)
{
    bool failed = false;
    const int dtype = norm_dtype(x), narrow = TAKES(y->place, norm, x->dtype) ? x->dtype : dtype;
    const Tensor *side = weight ? weight : bias;
    args->dtype = args->to = narrow,
    args->weights = side ? norm_weights_dtype(side->dtype, narrow, dtype) : dtype;
    args->x = data_of(norm_operand(x, narrow, &failed));
    args->weight = data_of(norm_operand(weight, args->weights, &failed));
    args->bias = data_of(norm_operand(bias, args->weights, &failed));
    Tensor *wide = y->dtype == narrow ? y : own(new_tensor(shape_of(y), narrow, y->place));
    if (failed || !wide) return -1;
    args->y = wide->data;
    if (RUN_KERNEL(c->name, y->place, norm, args)) return -1;
    return wide == y ? 0 : raw_copy(y, wide);
}

static Tensor *room(OpCall *c, int input, int dtype, const Place *place)
{
    return op_wants(c, input) ? own(new_tensor(op_input_shape(c, input), dtype, place)) : NULL;
}

static bool weighted(const OpCall *c, const int input[3]) { return op_input_shape(c, input[1]).ndim > 0; }

int norm_fused(OpCall *c, NormArgs *args, const int input[3], Tensor *dy, Tensor **dx)
{
    bool failed = false;
    const Tensor *x = op_saved(c, input[0]);
    if (!x) return -1;
    const int dtype = norm_dtype(x), narrow = TAKES(dy->place, norm_grad, x->dtype) ? x->dtype : dtype;
    const Tensor *weight = weighted(c, input) && op_wants(c, input[0]) ? op_saved(c, input[1]) : NULL;
    Tensor *made[3];
    args->dtype = args->to = narrow, args->weights = dtype;
    for (int i = 1; i < 3; i++) /* the one that is there, or both */
        if (op_input_shape(c, input[i]).ndim)
            args->weights = norm_weights_dtype(op_input_dtype(c, input[i]), narrow, dtype);
    if (c->failed) return -1;
    for (int i = 0; i < 3; i++) {
        made[i] = room(c, input[i], i == 0 ? narrow : args->weights, dy->place);
        if (op_wants(c, input[i]) && !made[i]) return -1;
    }
    args->x = data_of(norm_operand(x, narrow, &failed));
    args->dy = data_of(norm_operand(dy, narrow, &failed));
    args->weight = data_of(norm_operand(weight, args->weights, &failed));
    args->dx = data_of(made[0]), args->dweight = data_of(made[1]), args->dbias = data_of(made[2]);
    if (failed || RUN_KERNEL(c->name, dy->place, norm_grad, args)) return -1;
    for (int i = 0; i < 3; i++) {
        if (!made[i]) continue;
        dx[input[i]] = own(raw_cast(made[i], op_input_dtype(c, input[i])));
        if (!dx[input[i]]) return -1;
    }
    return 0;
}

/* ---- by ops ---------------------------------------------------------------------------------- */

static TensorShape list(const DimList *d) { return (TensorShape){ d->n, d->at }; }

static Tensor *mean_over(const NormDims *d, Tensor *x)
{
    return tensor_mean(x, .dims = list(&d->over), .keepdim = true);
}

static Tensor *shared_sum(OpCall *c, const NormDims *d, int input, Tensor *g)
{
    Tensor *sum = d->shared.n ? tensor_sum(g, .dims = list(&d->shared)) : g;
    return sum ? tensor_reshape(sum, op_input_shape(c, input)) : NULL;
}

int norm_recorded(OpCall *c, const NormDims *d, const int input[3], Tensor *dy, Tensor **dx)
{
    Tensor *x = d->x ? d->x : op_saved(c, input[0]), *mean = d->mean, *rstd = d->rstd;
    if (!x) return -1;
    if (d->as.n) x = tensor_reshape(x, list(&d->as)), dy = tensor_reshape(dy, list(&d->as));
    if (!mean) {
        if (!d->rms) x = tensor_sub(x, mean_over(d, x));
        rstd = tensor_rsqrt(tensor_add_scalar(mean_over(d, tensor_square(x)), d->eps));
    }
    Tensor *z = tensor_mul(mean ? tensor_sub(x, mean) : x, rstd);
    if (op_wants(c, input[0])) {
        Tensor *g = weighted(c, input)
                        ? tensor_mul(dy, tensor_reshape(op_saved(c, input[1]), list(&d->weights)))
                        : dy;
        if (!d->mean) {
            Tensor *along = tensor_mul(z, mean_over(d, tensor_mul(g, z)));
            g = tensor_sub(d->rms ? g : tensor_sub(g, mean_over(d, g)), along);
        }
        dx[input[0]] = tensor_reshape(tensor_mul(g, rstd), op_input_shape(c, input[0]));
    }
    if (op_wants(c, input[1])) dx[input[1]] = shared_sum(c, d, input[1], tensor_mul(dy, z));
    if (op_wants(c, input[2])) dx[input[2]] = shared_sum(c, d, input[2], dy);
    for (int i = 0; i < 3; i++)
        if (op_wants(c, input[i]) && !dx[input[i]]) return -1;
    return 0;
}
