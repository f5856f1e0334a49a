/* test_declines.c - a device whose kernels decline, or fail, one at a time, over the registry.
 *
 * A structured kernel that declines is replaced, by other ops or by the host: results and gradients are the
 * same (but the host draws other numbers).  One that fails is the op's error, and leaves nothing behind; so
 * is a copy from or to the host that fails, of whatever reads or writes values. */
#include <math.h>
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

/* ---- copies from and to the host -------------------------------------------------------------- */

static Tensor *far; /* [2, 3] */

static bool item(void) { return isnan(tensor_item(tensor_select(tensor_select(far, 0, 0), 0, 1))); }
static bool item_i64(void) { return tensor_item_i64(tensor_select(tensor_select(far, 0, 0), 0, 1)) == 0; }
static bool get(void) { return isnan(tensor_get(far, DIMS(1, 1))); }
static bool equal(void) { return !tensor_equal(far, far); }
static bool close_to(void) { return !tensor_allclose(far, far); }
static bool to_host(void) { return !tensor_to_device(far, "cpu"); }
static bool strided_to_host(void) { return !tensor_to_device(tensor_transpose(far, 0, 1), "cpu"); }
static bool to_there(void) { return !tensor_to_device(tensor_ones(SHAPE(3), TENSOR_F32), test_device()); }
static bool nonzero(void) { return !tensor_nonzero(far); }
static bool masked(void) { return !tensor_masked_select(far, tensor_gt_scalar(far, 2)); }
static bool copied_out(void)
{
    float all[6];
    return tensor_copy_to(far, all, sizeof all) < 0;
}

static bool strided_out(void)
{
    float all[6];
    return tensor_copy_to(tensor_transpose(far, 0, 1), all, sizeof all) < 0;
}

static bool printed(void)
{
    char text[200];
    tensor_snprint(text, sizeof text, far);
    return true;
}

static bool copied_into(void)
{
    Tensor *here = tensor_zeros(SHAPE(2, 3), TENSOR_F64);
    return !tensor_copy_(here, far);
}

static bool made_there(void)
{
    tensor_set_default_device(test_device());
    const bool none = !tensor_from_data((float[]){ 1, 2 }, SHAPE(2), TENSOR_F32);
    tensor_set_default_device("cpu");
    return none;
}

static void copies_that_fail(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool (*call)(void); /* did it answer as after an error? */
    } reader[] = {
#define C(name) { #name, name }
        C(item),       C(item_i64),        C(get),      C(equal),       C(close_to),
        C(to_host),    C(strided_to_host), C(to_there), C(nonzero),     C(masked),
        C(copied_out), C(strided_out),     C(printed),  C(copied_into), C(made_there),
#undef C
    };
    TensorScope scope = tensor_scope_open();
    far = tensor_to_device(tensor_from_data((float[]){ 1, 2, 3, 4, 5, 6 }, SHAPE(2, 3), TENSOR_F32),
                           test_device());
    for (size_t k = 0; k < sizeof reader / sizeof *reader; k++)
        for (int n = 1;; n++) {
            const int64_t live = tensor_live_count();
            TensorScope inner = tensor_scope_open();
            copies_until_failure = n;
            const bool as_failed = reader[k].call();
            const bool failed = copies_until_failure == 0;
            copies_until_failure = 0;
            if (failed && (!as_failed || tensor_error_code() != TENSOR_EDEVICE))
                fail_msg("%s, copy %d failed: %s", reader[k].name, n, tensor_error());
            if (!failed && tensor_error()) fail_msg("%s: %s", reader[k].name, tensor_error());
            tensor_error_clear();
            tensor_scope_close(inner);
            if (tensor_live_count() != live) fail_msg("%s: tensors are left", reader[k].name);
            if (!failed && n == 1) fail_msg("%s copies nothing", reader[k].name);
            if (!failed) break;
        }
    tensor_scope_close(scope);
}

static void check_op(const TensorOp *op) { each_sample(op, check_sample); }

int main(int argc, char **argv)
{
    if (!test_device_opens()) return 1;
    watch_device(test_device());
    const struct CMUnitTest tests[] = { cmocka_unit_test(copies_that_fail) };
    const int failed = cmocka_run_group_tests_name("copies that fail", tests, NULL, NULL);
    return failed + run_registry(argc, argv, "kernels that decline or fail", check_op);
}
