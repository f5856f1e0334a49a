/* test_ops.c - every op of the registry, forward, and that its descriptor is whole (check/check_forward.c).
 */
#include "samples.h"

/* What an op of a user's may leave out, and ours say. */
static void check_descriptor(const TensorOp *op)
{
    if (!op_errors(op)) complain_op(op, "has no error samples");
    if (!op->summary || !*op->summary) complain_op(op, "has no summary");
    if (!op->row && !op->gradient && !(op->flags & OP_NONDIFFERENTIABLE))
        complain_op(op, "does not say its gradient");
    if (tensor_op_find(op->name) != op) complain_op(op, "is not the op of its name");
}

static void check_op(const TensorOp *op)
{
    check_descriptor(op);
    check_op_forward(op);
}

int main(int argc, char **argv)
{
    on_test_device();
    return run_registry(argc, argv, "every op, forward", check_op);
}
