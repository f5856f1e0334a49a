/* test_ops_half.c - every op of the registry: f16 and bf16 rounded once (check/check_halves.c). */
#include "samples.h"

int main(int argc, char **argv)
{
    return run_registry(argc, argv, "every op, halves rounded once", check_op_halves);
}
