/* loss_checks.c - what the losses share (loss.h). */
#include "autograd/options.h"
#include "loss.h"

const char *const loss_reductions[] = { "mean", "sum", "none", NULL };

int loss_reduction(const OpCall *c)
{
    const OpField *f = options_find(c->op, "reduction", strlen("reduction"));
    return *(const int *)(const void *)((const char *)op_params(c) + f->offset);
}

int check_floating(OpCall *c, int i)
{
    const Tensor *x = op_input(c, i);
    if (dtype_is_float(x->dtype)) return 0;
    return op_fail(c, TENSOR_EDTYPE, "operand %d is %s %s: it takes floating dtypes", i + 1,
                   tensor_dtype_name(x->dtype), S(x));
}

int check_same_dtype(OpCall *c, int i, int k)
{
    const Tensor *x = op_input(c, i), *y = op_input(c, k);
    if (!y || x->dtype == y->dtype) return 0;
    return op_fail(c, TENSOR_EDTYPE, "%s %s and %s %s: operands must have one dtype",
                   tensor_dtype_name(x->dtype), S(x), tensor_dtype_name(y->dtype), S(y));
}

int check_alike(OpCall *c, int i, int k)
{
    const Tensor *x = op_input(c, i), *y = op_input(c, k);
    if (shape_equal(shape_of(x), shape_of(y))) return 0;
    return op_fail(c, TENSOR_ESHAPE, "operands %s and %s: the shapes must be the same, nothing is broadcast",
                   S(x), S(y));
}

int check_loss(OpCall *c) { return check_floating(c, 0) || check_alike(c, 0, 1) ? -1 : 0; }

int loss_dtype(const OpCall *c, unsigned inputs)
{
    int dtype = -1;
    for (int i = 0; i < op_inputs(c); i++) {
        const Tensor *x = inputs >> i & 1 ? op_input(c, i) : NULL;
        if (x) dtype = dtype < 0 ? x->dtype : (int)tensor_promote_types(dtype, x->dtype);
    }
    return dtype;
}

static int float_of(int dtype) { return dtype_is_float(dtype) ? dtype : TENSOR_F32; }
int loss_float_dtype(const OpCall *c, unsigned inputs) { return float_of(loss_dtype(c, inputs)); }

Tensor *loss_input(OpCall *c, int i, int dtype)
{
    return tensor_to(op_input(c, i), dtype_is_half(dtype) ? TENSOR_F32 : (TensorDtype)dtype);
}

Tensor *reduce_loss(Tensor *x, int reduction)
{
    if (!x) return NULL;
    if (reduction == TENSOR_MEAN) return tensor_mean(x);
    if (reduction == TENSOR_SUM) return tensor_sum(x);
    if (reduction == TENSOR_BATCHMEAN)
        return tensor_div_scalar(tensor_sum(x), x->ndim ? (double)x->shape[0] : 1);
    return x;
}

int finish_loss(OpCall *c, Tensor *loss, int dtype)
{
    Tensor *y = reduce_loss(loss, loss_reduction(c));
    return op_set_result(c, 0, y ? tensor_to(y, (TensorDtype)dtype) : NULL);
}
