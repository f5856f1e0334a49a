/* registry.c - the table of built-in ops, a section of the linker that REGISTER_OPS fills. */
#include "core.h"

extern const TensorOp *const __start_tapegrad_ops[] HIDDEN, *const __stop_tapegrad_ops[] HIDDEN;

int tensor_op_count(void) { return (int)(__stop_tapegrad_ops - __start_tapegrad_ops); }

const TensorOp *tensor_op_at(int i)
{
    return i >= 0 && i < tensor_op_count() ? __start_tapegrad_ops[i] : NULL;
}

const TensorOp *tensor_op_find(const char *name)
{
    for (int i = 0; name && i < tensor_op_count(); i++)
        if (strcmp(__start_tapegrad_ops[i]->name, name) == 0) return __start_tapegrad_ops[i];
    return NULL;
}
