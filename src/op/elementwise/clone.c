/* clone.c - copies: clone, contiguous.  dx = dy. */
#include "op/shape/shape_op.h"

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)c;
    dx[0] = dy;
    return 0;
}

/* ---- clone ----------------------------------------------------------------------------------- */

static int clone_forward(OpCall *c) { return raw_copy(op_output(c, 0), op_input(c, 0)); }

static const TensorOp op_clone = { .name = "clone",
                                   .autocast = AUTOCAST_AS_IS,
                                   .summary = "a dense copy",
                                   .gradient = "dx = g",
                                   .arity = 1,
                                   .shape = op_same_shape,
                                   .forward = clone_forward,
                                   .backward = backward,
                                   .flags = OP_ANY_DEVICE,
                                   .samples = "3x4; ; 0x3",
                                   .errors = "3,3 ! EVALUE" };
REGISTER_OPS(&op_clone);

Tensor *tensor_clone(Tensor *x) { return APPLY(&op_clone, NULL, x); }

/* ---- contiguous: the public function gives a dense tensor back itself; the op alone makes a view of it ----
 */

static int contiguous_shape(OpCall *c)
{
    (void)c;
    return 0;
}

static int contiguous_forward(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    bool dense = x->flags & FLAG_CONTIGUOUS;
    return op_set_result(c, 0, own(dense ? new_view(x, x->ndim, x->shape, x->stride, 0) : raw_contiguous(x)));
}

static const TensorOp op_contiguous = {
    .name = "contiguous",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x itself when its elements lie in row-major order without gaps, else a copy that does",
    .gradient = "dx = g",
    .arity = 1,
    .shape = contiguous_shape,
    .forward = contiguous_forward,
    .backward = backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "3x4; ; 0x3",
    .errors = "3,3 ! EVALUE",
    .torch = "Tensor.contiguous"
};
REGISTER_OPS(&op_contiguous);

Tensor *tensor_contiguous(Tensor *x)
{
    if (check_null(x, "tensor_contiguous", 1)) return NULL;
    return x->flags & FLAG_CONTIGUOUS ? borrow(x) : APPLY(&op_contiguous, NULL, x);
}
