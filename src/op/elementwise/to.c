/* to.c - casts and moves between devices.
 *
 *   y = (dtype) x            dx = (dtype of x) dy
 *
 * Keeps nothing.  Returns x if it has the dtype, or is on the device. */
#include "autograd/modes.h"
#include "op/op.h"

/* ready: what shape() found out: the result was cast before (autograd/cast_ahead.c). */
typedef struct ToParams {
    int dtype;
    bool ready;
} ToParams;

static int to_shape(OpCall *c)
{
    ToParams *p = op_params_mut(c);
    if ((unsigned)p->dtype >= TENSOR_DTYPES) return op_fail(c, TENSOR_EDTYPE, "no such dtype: %d", p->dtype);
    Tensor *cast = cast_ahead_take(c->input[0], p->dtype);
    p->ready = cast != NULL;
    return cast ? op_set_result(c, 0, cast)
                : op_set_output(c, 0, shape_of(c->input[0]), (TensorDtype)p->dtype);
}

static int to_forward(OpCall *c)
{
    return ((const ToParams *)op_params(c))->ready ? 0 : raw_copy(c->output[0], c->input[0]);
}

static int copy_forward(OpCall *c) { return raw_copy(c->output[0], c->input[0]); }

static int to_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = tensor_to(dy, op_input_dtype(c, 0));
    return dx[0] ? 0 : -1;
}

static const OpField to_fields[] = { OP_REQUIRED(ToParams, dtype), { 0 } };

/* Casting to f64 is checked numerically; narrower dtypes round, which differences would see as noise. */
HIDDEN extern const TensorOp op_to;
const TensorOp op_to = { .name = "to",
                         .autocast = AUTOCAST_AS_IS,
                         .summary = "x in another dtype",
                         .gradient = "dx = g cast back",
                         .arity = 1,
                         PARAMS_GIVEN(ToParams, to_fields),
                         .shape = to_shape,
                         .forward = to_forward,
                         .backward = to_backward,
                         .flags = OP_ANY_DEVICE,
                         .samples = "3x4 {dtype=1}; {dtype=1}; 0x2 {dtype=1}",
                         .errors = "3 {dtype=77} ! EDTYPE",
                         .torch = "Tensor.to" };
REGISTER_OPS(&op_to);

Tensor *tensor_to(Tensor *x, TensorDtype dtype)
{
    if (check_null(x, "tensor_to", 1)) return NULL;
    return x->dtype == dtype ? borrow(x) : APPLY(&op_to, &(ToParams){ .dtype = (int)dtype }, x);
}

/* ---- between devices ------------------------------------------------------------------------- */

typedef struct MoveParams {
    const Place *to, *from;
} MoveParams;

static int move_shape(OpCall *c)
{
    const MoveParams *p = op_params(c);
    return op_set_result(c, 0, own(new_tensor(shape_of(c->input[0]), c->input[0]->dtype, p->to)));
}

static int move_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const MoveParams *p = op_params(c);
    dx[0] = tensor_to_device(dy, p->from->name);
    return dx[0] ? 0 : -1;
}

static const TensorOp op_to_device = { .name = "to_device",
                                       .summary = "x on another device",
                                       .gradient = "dx = g moved back",
                                       .arity = 1,
                                       .params = sizeof(MoveParams),
                                       .shape = move_shape,
                                       .forward = copy_forward,
                                       .backward = move_backward,
                                       .flags = OP_ANY_DEVICE };

Tensor *tensor_to_device(Tensor *x, const char *device)
{
    if (check_null(x, "tensor_to_device", 1)) return NULL;
    const Place *to = find_place(device, "tensor_to_device");
    if (!to) return NULL;
    MoveParams params = { to, x->place };
    return to == x->place ? borrow(x) : APPLY(&op_to_device, &params, x);
}
