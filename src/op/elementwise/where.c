/* where.c - selects between two tensors by a mask, and writes where a mask is true.
 *
 *   where        y = c ? a : b                    da = c ? dy : 0, db = c ? 0 : dy
 *   masked_fill  y = mask ? value : x             dx = mask ? 0 : dy, dvalue = the sum of dy under the mask
 *
 * Selects in the gradients too, and never multiplies: a NaN or an infinity of the other branch has no
 * effect. */
#include "op/shape/shape_op.h"

/* The shape that all broadcast to, or -1. */
static int broadcast_all(OpCall *c, int n, int64_t *shape)
{
    TensorShape so_far = shape_of(op_input(c, 0));
    for (int i = 0; i < n; i++) {
        int ndim = shape_broadcast(so_far, shape_of(op_input(c, i)), shape);
        if (ndim < 0)
            return op_fail(
                c, TENSOR_ESHAPE,
                "%s and %s do not broadcast: aligned at the last dimension, sizes must agree or be 1",
                shape_text(so_far), S(op_input(c, i)));
        so_far = (TensorShape){ ndim, shape };
    }
    return so_far.ndim;
}

static Tensor *cast_to(Tensor *x, int dtype) { return x->dtype == dtype ? x : own(raw_cast(x, dtype)); }

/* ---- where ----------------------------------------------------------------------------------- */

static int where_shape(OpCall *c)
{
    int64_t shape[TENSOR_MAX_DIMS];
    if (call_mask_dtype(c, op_input(c, 0))) return -1;
    int ndim = broadcast_all(c, 3, shape);
    if (ndim < 0) return -1;
    return op_set_output(c, 0, (TensorShape){ ndim, shape },
                         (TensorDtype)promoted_pair(op_input(c, 1), op_input(c, 2)));
}

static int where_forward(OpCall *c)
{
    Tensor *y = op_output(c, 0), *mask = as_mask(op_input(c, 0));
    Tensor *a = cast_to(op_input(c, 1), y->dtype), *b = cast_to(op_input(c, 2), y->dtype);
    return mask && a && b ? raw_select(c->name, y, mask, a, b) : -1;
}

static int where_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *mask = op_saved(c, 0), *zero = zeros_on(SHAPE(), dy->dtype, dy->place);
    if (!mask || !zero) return -1;
    if (op_wants(c, 1) && !(dx[1] = tensor_where(mask, dy, zero))) return -1;
    if (op_wants(c, 2) && !(dx[2] = tensor_where(mask, zero, dy))) return -1;
    return 0;
}

static const TensorOp op_where = {
    .name = "where",
    .autocast = AUTOCAST_AS_IS,
    .summary = "a where the mask is true, b elsewhere",
    .gradient = "da = g where the mask is true, db = g elsewhere; 0 by choice",
    .arity = 3,
    .keep = KEEP_INPUT(0),
    .no_grad_inputs = KEEP_INPUT(0),
    .shape = where_shape,
    .forward = where_forward,
    .backward = where_backward,
    .flags = OP_ANY_DEVICE,
    .samples =
        "3x4@bool,3x4,3x4; 3x1@bool,4,2x1x1; @bool,3,; 3@bool,,3; 0x3@bool,0x3,3; @bool,,; 3@bool,3x1,1",
    .errors = "3@bool,4,3 ! ESHAPE; 3@bool,3,2x2 ! ESHAPE; 3@i64:0..1,3,3 ! EDTYPE; 3,3,3 ! EDTYPE"
};
REGISTER_OPS(&op_where);

Tensor *tensor_where(Tensor *condition, Tensor *a, Tensor *b)
{
    return APPLY(&op_where, NULL, condition, a, b);
}

/* ---- masked_fill with a number --------------------------------------------------------------- */

typedef struct FillParams {
    double value;
} FillParams;

static int fill_shape(OpCall *c)
{
    const FillParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    if (call_mask_dtype(c, op_input(c, 1)) || check_fill(c->name, x, p->value)) return -1;
    int ndim = broadcast_all(c, 2, shape);
    return ndim < 0 ? -1 : op_set_output(c, 0, (TensorShape){ ndim, shape }, (TensorDtype)x->dtype);
}

static int fill_forward(OpCall *c)
{
    const FillParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *mask = as_mask(op_input(c, 1)),
           *value = own(new_tensor(SHAPE(), x->dtype, x->place));
    if (!mask || !value || raw_fill(value, p->value)) return -1;
    return raw_select(c->name, op_output(c, 0), mask, value, x);
}

static int fill_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *mask = op_saved(c, 1);
    dx[0] = mask ? tensor_masked_fill(dy, mask, 0) : NULL;
    return dx[0] ? 0 : -1;
}

static const OpField fill_fields[] = { OP_REQUIRED(FillParams, value), { 0 } };
static const TensorOp op_masked_fill = { .name = "masked_fill",
                                         .autocast = AUTOCAST_AS_IS,
                                         .summary = "a number where the mask is true, x elsewhere",
                                         .gradient = "dx = g with 0 under the mask",
                                         .arity = 2,
                                         .keep = KEEP_INPUT(1),
                                         .no_grad_inputs = KEEP_INPUT(1),
                                         PARAMS_GIVEN(FillParams, fill_fields),
                                         .shape = fill_shape,
                                         .forward = fill_forward,
                                         .backward = fill_backward,
                                         .flags = OP_ANY_DEVICE,
                                         .samples =
                                             "3x4,3x4@bool {value=2.5}; 2x3x4,3x1@bool {value=-1}; ,@bool "
                                             "{value=0}; 3,2x3@bool {value=1}; 0x3,3@bool {value=1}",
                                         .errors = "3,4@bool {value=1} ! ESHAPE; 3,3 {value=1} ! EDTYPE" };
REGISTER_OPS(&op_masked_fill);

Tensor *tensor_masked_fill(Tensor *x, Tensor *mask, double value)
{
    return APPLY(&op_masked_fill, &((FillParams){ value }), x, mask);
}

Tensor *tensor_masked_fill_(Tensor *x, Tensor *mask, double value)
{
    return APPLY_(&op_masked_fill, &((FillParams){ value }), x, mask);
}

/* ---- masked_fill with a tensor of one element ------------------------------------------------ */

static int fill_tensor_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0), *mask = op_input(c, 1), *value = op_input(c, 2);
    if (value->ndim != 0) return op_fail(c, TENSOR_ESHAPE, "the value is %s: want rank 0", S(value));
    return op_set_result(c, 0, tensor_where(mask, tensor_to(value, (TensorDtype)x->dtype), x));
}

static const TensorOp op_masked_fill_tensor = {
    .name = "masked_fill_tensor",
    .autocast = AUTOCAST_AS_IS,
    .summary = "a tensor's one value where the mask is true, x elsewhere",
    .gradient = "dx = g with 0 under the mask, dvalue = sum of g under it",
    .arity = 3,
    .no_grad_inputs = KEEP_INPUT(1),
    .compose = fill_tensor_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "masked_fill",
    .samples = "3x4,3x4@bool,; 2x3x4,3x1@bool,; ,@bool,; 0x3,3@bool,",
    .errors = "3,4@bool, ! ESHAPE; 3,3@bool,3 ! ESHAPE; 3,3, ! EDTYPE"
};
REGISTER_OPS(&op_masked_fill_tensor);

Tensor *tensor_masked_fill_tensor(Tensor *x, Tensor *mask, Tensor *value)
{
    return APPLY(&op_masked_fill_tensor, NULL, x, mask, value);
}

Tensor *tensor_masked_fill_tensor_(Tensor *x, Tensor *mask, Tensor *value)
{
    return APPLY_(&op_masked_fill_tensor, NULL, x, mask, value);
}
