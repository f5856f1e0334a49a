/* test_slots.c - what ops ask of a device, counted over the registry.
 *
 * What a device reads is not widened for it: no copy of a half in f32 is given to a structured kernel that
 * takes halves.  wide_ops.txt names the ops that do so still, and for which slot; each that does, and no
 * other.  What an op makes lies where its operands do: made_on_host.txt names those that copy from the host
 * what they make there, or look at values. */
#include <stdio.h>
#include "slot_calls.h" /* before cmocka.h, which has a macro fail */
#include "test_device.h"
#include "samples.h"
#include "check/sample.h"

/* test/cuda/NAME has a line "op slot" for each. */
static bool listed(const char *name, const char *op, const char *slot)
{
    char line[128], want[128], path[64];
    bool found = false;
    snprintf(path, sizeof path, "test/cuda/%s", name);
    FILE *list = fopen(path, "r");
    if (!list) fail_msg("%s cannot be opened: run from the root of the tree", path);
    snprintf(want, sizeof want, "%s %s", op, slot);
    while (!found && fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        found = strcmp(line, want) == 0;
    }
    fclose(list);
    return found;
}

/* ---- a sample, forward and backward ---------------------------------------------------------- */

static TensorDtype floats;
static Layout layout;
static SlotCalls seen; /* by the op alone: its operands and cotangents were there before */

static void add_up(void)
{
    for (int s = 0; s < KERNEL_SLOTS; s++) {
        seen.calls[s] += slot_calls.calls[s];
        for (int k = 0; k < COPY_KINDS; k++) seen.fed[k][s] += slot_calls.fed[k][s];
    }
    seen.from_host += slot_calls.from_host, seen.to_host += slot_calls.to_host;
}

static bool inputs_there(const Sample *s, Tensor **x)
{
    bool any = false;
    sample_inputs(s, (int)floats, 1, x);
    for (int i = 0; i < s->n; i++) {
        any = any || (x[i] && tensor_dtype(x[i]) == floats);
        x[i] = x[i] ? strided_copy(tensor_to_device(x[i], test_device()), layout) : NULL;
    }
    return any || floats == TENSOR_F32; /* samples of integers run with f32's */
}

static void run_sample(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS], *leaf[OP_MAX_INPUTS], *wanted[OP_MAX_INPUTS], *found[OP_MAX_INPUTS],
        *root[SAMPLE_RESULTS], *g[SAMPLE_RESULTS], *y[SAMPLE_RESULTS];
    if (!inputs_there(s, x)) return;
    const int64_t by_host = tensor_host_fallbacks();
    int leaves = sample_leaves(s, x, leaf), n = 0, roots = 0;
    forget_slot_calls();
    const int results = sample_apply(s, leaf, y);
    if (results < 0 || tensor_host_fallbacks() > by_host) { /* a view that this layout does not allow */
        tensor_error_clear();
        return;
    }
    add_up();
    for (int i = 0; i < results; i++)
        if (tensor_requires_grad(y[i]))
            root[roots] = y[i], g[roots++] = strided_copy(random_like(y[i], 3), layout);
    for (int i = 0; i < s->n; i++)
        if (sample_differentiable(s, i, x[i])) wanted[n++] = leaf[i];
    if (!leaves || !roots) return;
    forget_slot_calls();
    if (tensor_gradients_many(TENSOR_LIST(root, roots), TENSOR_LIST(wanted, n), found,
                              .grad_outputs = TENSOR_LIST(g, roots), .materialize_grads = true))
        fail_msg("%s: %s: %s", s->op->name, s->text, tensor_error());
    add_up();
}

/* ---- halves ---------------------------------------------------------------------------------- */

static void run_samples(const TensorOp *op, TensorDtype dtype, Layout how)
{
    floats = dtype, layout = how;
    memset(&seen, 0, sizeof seen);
    each_sample(op, run_sample);
}

/* Each that does is named in the list, and no other. */
static void hold_to_list(const TensorOp *op, bool does, const char *list, const char *what, const char *slot)
{
    const bool known = listed(list, op->name, slot);
    if (does && !known) fail_msg("%s %s %s, and %s does not say so", op->name, what, slot, list);
    if (!does && known) fail_msg("%s no longer %s %s: take it out of %s", op->name, what, slot, list);
}

static void check_halves(const TensorOp *op)
{
    const int half = TENSOR_BF16;
    run_samples(op, half, LAYOUT_DENSE);
    for (int s = 0; s < KERNEL_SLOTS; s++)
        hold_to_list(op, seen.fed[WIDENED][s] && (watched->takes[s] >> half & 1), "wide_ops.txt",
                     "widens halves for", slot_name[s]);
}

/* ---- what is made on the host ----------------------------------------------------------------- */

static void check_host(const TensorOp *op)
{
    run_samples(op, TENSOR_F32, LAYOUT_DENSE);
    hold_to_list(op, seen.from_host, "made_on_host.txt", "copies", "from the host");
    hold_to_list(op, seen.to_host, "made_on_host.txt", "copies", "to the host");
}

static void check_op(const TensorOp *op)
{
    check_halves(op);
    check_host(op);
}

/* ---- products -------------------------------------------------------------------------------- */

static Tensor *on_device(TensorShape shape, TensorDtype dtype)
{
    Tensor *x = tensor_to_device(tensor_to(tensor_randn(shape, TENSOR_F32), dtype), test_device());
    return tensor_requires_grad_(x, true);
}

/* Bias, activation and the bias' gradient belong to products: y is one call, a sweep two products and the
 * slope.  erf's gelu, which cuBLASLt lacks, is declined, and then a call of its own. */
static void calls_of_a_layer(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_BF16 };
    for (int turn = 0; turn < 8; turn++) {
        const int f = turn % 4 - 1, apart = f == TENSOR_ACT_GELU;
        const TensorDtype dtype = dtypes[turn / 4];
        TensorScope scope = tensor_scope_open();
        Tensor *x = on_device(SHAPE(12, 16), dtype), *w = on_device(SHAPE(24, 16), dtype),
               *b = on_device(SHAPE(24), dtype), *g = tensor_detach(on_device(SHAPE(12, 24), dtype));
        forget_slot_calls();
        Tensor *y = f < 0 ? tensor_linear(x, w, b) : tensor_linear_act(x, w, b, (TensorActivation)f);
        assert_non_null(y);
        assert_int_equal(slot_calls.calls[SLOT_gemm], 1 + apart);
        assert_int_equal(slot_calls.calls[SLOT_map], apart);
        assert_int_equal(slot_calls.calls[SLOT_fill], 0);
        forget_slot_calls();
        assert_non_null(tensor_gradients(y, x, .grad_output = g, .retain_graph = true));
        assert_int_equal(slot_calls.calls[SLOT_gemm], 1);
        forget_slot_calls();
        assert_int_equal(tensor_backward(y, .gradient = g), 0);
        assert_int_equal(slot_calls.calls[SLOT_gemm], 2);
        assert_int_equal(slot_calls.calls[SLOT_reduce], 0);
        assert_int_equal(slot_calls.calls[SLOT_map], f >= 0);
        assert_int_equal(slot_calls.calls[SLOT_copy], 0);
        tensor_scope_close(scope);
    }
}

/* nn_linear and the activation behind it, in a sequence and in a layer of a transformer. */
static void calls_of_modules(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *net = nn_sequential(nn_linear(16, 24), nn_relu(), nn_linear(24, 8),
                                nn_gelu(.approximate = TENSOR_GELU_TANH));
    assert_int_equal(nn_to_device(net, test_device()), 0);
    Tensor *x = tensor_detach(on_device(SHAPE(12, 16), TENSOR_F32));
    forget_slot_calls();
    assert_non_null(nn_forward(net, x));
    assert_int_equal(slot_calls.calls[SLOT_gemm], 2);
    assert_int_equal(slot_calls.calls[SLOT_map], 0);
    nn_free(net);
    tensor_scope_close(scope);
}

/* ---- channels last --------------------------------------------------------------------------- */

enum { IMAGE_OPS = 5 };

static Tensor *image_op(int which, Tensor *x, Tensor *w, Tensor *b)
{
    switch (which) {
    case 0: return tensor_conv2d(x, w, b, .padding = 1, .stride = 2);
    case 1: return tensor_conv2d(x, tensor_narrow(w, 1, 0, 3), b, .groups = 2);
    case 2: return tensor_max_pool2d(x, 3, .stride = 2, .padding = 1);
    case 3: return tensor_avg_pool2d(x, 2);
    default: return tensor_adaptive_avg_pool2d(x, SHAPE(3, 2));
    }
}

/* [N, C, H, W] in memory as [N, H, W, C]. */
static Tensor *with_channels_last(Tensor *x)
{
    return tensor_permute(tensor_contiguous(tensor_permute(x, SHAPE(0, 2, 3, 1))), SHAPE(0, 3, 1, 2));
}

/* (The weight of op 1 is a part of another, which is copied in any layout.) */
static void no_dense_copies(int which, int last)
{
    for (int s = SLOT_conv2d; last && which != 1 && s <= SLOT_avg_pool_grad; s++)
        if (slot_calls.fed[MADE_DENSE][s]) fail_msg("op %d makes operands dense for %s", which, slot_name[s]);
}

/* Results and gradients are those of the dense layout, and lie as x does; no operand is made dense.  The CPU
 * declines, and computes the same from a copy. */
static void channels_last(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2 * IMAGE_OPS; turn++) {
        const int which = turn / 2;
        const TensorDtype dtype = turn % 2 ? TENSOR_BF16 : TENSOR_F32;
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_detach(on_device(SHAPE(2, 6, 9, 8), dtype)),
               *w = on_device(SHAPE(4, 6, 3, 3), dtype), *b = on_device(SHAPE(4), dtype), *y[2],
               *grad[2][3] = { { NULL } };
        for (int last = 0; last < 2; last++) {
            Tensor *in[3] = { tensor_requires_grad_(tensor_detach(last ? with_channels_last(x) : x), true), w,
                              b };
            forget_slot_calls();
            y[last] = image_op(which, in[0], in[1], in[2]);
            assert_non_null(y[last]);
            no_dense_copies(which, last);
            Tensor *g = tensor_detach(tensor_cos(y[last]));
            if (last) g = with_channels_last(g);
            forget_slot_calls();
            assert_int_equal(tensor_gradients_many(TENSORS(y[last]), TENSOR_LIST(in, which < 2 ? 3 : 1),
                                                   grad[last], .grad_outputs = TENSORS(g)),
                             0);
            no_dense_copies(which, last);
        }
        assert_true(tensor_stride(y[1], 1) == 1 && tensor_stride(grad[1][0], 1) == 1);
        assert_true(tensor_equal(y[0], y[1]));
        Tensor *here[3] = { tensor_to_device(x, "cpu"), tensor_to_device(w, "cpu"),
                            tensor_to_device(b, "cpu") };
        assert_true(tensor_equal(image_op(which, here[0], here[1], here[2]),
                                 image_op(which, with_channels_last(here[0]), here[1], here[2])));
        for (int i = 0; i < (which < 2 ? 3 : 1); i++) assert_true(tensor_equal(grad[0][i], grad[1][i]));
        tensor_scope_close(scope);
    }
}

int main(int argc, char **argv)
{
    if (!test_device_opens()) return 1;
    watch_device(test_device());
    const struct CMUnitTest tests[] = { cmocka_unit_test(calls_of_a_layer),
                                        cmocka_unit_test(calls_of_modules), cmocka_unit_test(channels_last) };
    const int failed = run_registry(argc, argv, "kernels that ops ask for", check_op);
    return failed + cmocka_run_group_tests_name("kernels that layers ask for", tests, NULL, NULL);
}
