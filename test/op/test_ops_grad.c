/* test_ops_grad.c - every op of the registry, backward (check/check_gradients.c). */
#include "samples.h"

int main(int argc, char **argv) { return run_registry(argc, argv, "every op, backward", check_op_gradients); }
