/* test_ops_memory.c - every op of the registry when memory runs out (check/check_memory.c). */
#include "samples.h"

int main(int argc, char **argv)
{
    on_test_device();
    return run_registry(argc, argv, "every op, failing memory", check_op_memory);
}
