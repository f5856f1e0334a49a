/* test_ops_layout.c - every op of the registry, whatever the layout (check/check_layouts.c). */
#include "samples.h"

int main(int argc, char **argv)
{
    on_test_device();
    return run_registry(argc, argv, "every op, layouts", check_op_layouts);
}
