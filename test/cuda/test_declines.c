/* test_declines.c - a device whose kernels decline, or fail, one at a time, over the registry.
 *
 * A structured kernel that declines is replaced, by other ops or by the host: results and gradients are the
 * same (but the host draws other numbers).  One that fails is the op's error, and leaves nothing behind. */
#include <stdio.h>
#include "slot_calls.h" /* before cmocka.h, which has a macro fail */
#include "test_device.h"
#include "samples.h"
#include "check/sample.h"

enum { FOUND = SAMPLE_RESULTS + OP_MAX_INPUTS };

static SlotCalls calls; /* of the last answer */

/* Results, then gradients, in the host's memory; -1: an error. */
static int answer(const Sample *s, KernelSlot slot, int status, Tensor *found[FOUND])
{
    Tensor *x[OP_MAX_INPUTS], *leaf[OP_MAX_INPUTS], *wanted[OP_MAX_INPUTS], *root[SAMPLE_RESULTS],
        *g[SAMPLE_RESULTS];
    int n = 0, roots = 0, swept = 0;
    sample_inputs(s, TENSOR_F32, 1, x);
    for (int i = 0; i < s->n; i++)
        if (x[i]) x[i] = tensor_to_device(x[i], test_device());
    const int leaves = sample_leaves(s, x, leaf);
    forget_slot_calls();
    slot_answer.slot = slot, slot_answer.status = status;
    const int results = sample_apply(s, leaf, found);
    slot_answer.slot = KERNEL_SLOTS;
    for (int i = 0; i < results; i++)
        if (tensor_requires_grad(found[i])) root[roots] = found[i], g[roots++] = random_like(found[i], 3);
    for (int i = 0; i < s->n && leaves && roots; i++)
        if (sample_differentiable(s, i, x[i])) wanted[n++] = leaf[i];
    slot_answer.slot = slot;
    if (n)
        swept = tensor_gradients_many(TENSOR_LIST(root, roots), TENSOR_LIST(wanted, n), found + results,
                                      .grad_outputs = TENSOR_LIST(g, roots), .materialize_grads = true);
    slot_answer.slot = KERNEL_SLOTS;
    calls = slot_calls;
    if (results < 0 || swept < 0) return -1;
    for (int i = 0; i < results + n; i++) found[i] = tensor_to_device(found[i], "cpu");
    return results + n;
}

static void declined_by(const Sample *s, KernelSlot slot, Tensor **want, int n)
{
    Tensor *found[FOUND];
    const int count = answer(s, slot, KERNEL_DECLINED, found);
    if (count != n) complain(s, "%s declined: %d values, want %d", slot_name[slot], count, n);
    for (int i = 0; i < n && count == n; i++)
        if (!tensor_allclose(found[i], want[i], 1e-4, 1e-5, true))
            complain(s, "%s declined: value %d differs", slot_name[slot], i);
    tensor_error_clear();
}

static void fails(const Sample *s, KernelSlot slot)
{
    Tensor *found[FOUND];
    const int count = answer(s, slot, KERNEL_FAILED, found);
    if (count >= 0 || tensor_error_code() != TENSOR_EDEVICE)
        complain(s, "%s failed, and the op did not", slot_name[slot]);
    tensor_error_clear();
}

static void check_sample(const Sample *s)
{
    Tensor *want[FOUND];
    const int64_t live = tensor_live_count();
    TensorScope scope = tensor_scope_open();
    const int n = answer(s, KERNEL_SLOTS, KERNEL_DONE, want);
    if (n < 0) complain(s, "fails");
    const SlotCalls asked = calls;
    for (int slot = 0; slot < KERNEL_SLOTS && n >= 0; slot++) {
        if (!asked.calls[slot]) continue;
        if (slot > SLOT_reduce && slot != SLOT_random) declined_by(s, (KernelSlot)slot, want, n);
        fails(s, (KernelSlot)slot);
    }
    tensor_error_clear();
    tensor_scope_close(scope);
    if (tensor_live_count() != live) complain(s, "tensors are left");
}

static void check_op(const TensorOp *op) { each_sample(op, check_sample); }

int main(int argc, char **argv)
{
    if (!test_device_opens()) return 1;
    watch_device(test_device());
    return run_registry(argc, argv, "kernels that decline or fail", check_op);
}
