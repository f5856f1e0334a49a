/* test_ops_grad.c - every op of the registry, backward (check/check_gradients.c). */
#include "samples.h"

int main(int argc, char **argv)
{
    on_test_device();
    return run_registry(argc, argv, "every op, backward", check_op_gradients);
}
