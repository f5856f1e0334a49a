/* test_ops_memory.c - every op of the registry when memory runs out: each request for it fails in turn, in forward and backward.
 * The call is refused with ENOMEM, leaves nothing behind, and does not change its inputs. */
#include <tapegrad/debug.h>
#include "samples.h"

enum { MOST_REQUESTS = 4000 };

/* Does the n-th request come?  The inputs are made before it. */
static bool try_once(const Sample *s, int64_t n)
{
    Tensor *x[OP_MAX_INPUTS], *copy[OP_MAX_INPUTS];
    static SampleRun run;
    TensorScope scope = tensor_scope_open();
    sample_inputs(s, AS_WRITTEN, 3, x);
    for (int i = 0; i < s->n; i++) copy[i] = x[i] ? tensor_clone(x[i]) : NULL;
    int64_t live = tensor_live_count(), tape = tensor_tape_length();
    TensorScope inner = tensor_scope_open();
    tensor_debug_fail_allocation(n, false);
    int results = sample_run(s, x, false, LAYOUT_DENSE, &run);
    bool came = tensor_debug_allocation_failed();
    tensor_debug_fail_allocation(0, false);
    tensor_scope_close(inner);
    if (came && results < 0 && tensor_error_code() != TENSOR_ENOMEM) complain(s, "request %lld fails, and that is not the error", (long long)n);
    if (results < 0 && !came) complain(s, "is refused");
    tensor_error_clear();
    if (tensor_live_count() != live) complain(s, "request %lld fails: %lld tensors left", (long long)n, (long long)(tensor_live_count() - live));
    if (tensor_tape_length() != tape) complain(s, "request %lld fails: %lld entries left", (long long)n, (long long)(tensor_tape_length() - tape));
    for (int i = 0; i < s->n; i++)
        if (!same_bits(x[i], copy[i])) complain(s, "request %lld fails: input %d changed", (long long)n, i);
    tensor_scope_close(scope);
    return came;
}

static void check_sample(const Sample *s)
{
    for (int64_t n = 1; n < MOST_REQUESTS; n++)
        if (!try_once(s, n)) return;
}

static void check_op(const TensorOp *op)
{
    each_sample(op, check_sample);
}

int main(int argc, char **argv)
{
    return run_registry(argc, argv, "every op, failing memory", check_op);
}
