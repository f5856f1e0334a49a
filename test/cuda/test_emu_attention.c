/* test_emu_attention.c - attention by cuDNN, on a stand-in that executes the graph it is given: against the
 * definition in f64 on the CPU; which calls it gets, how often a plan is chosen, without memory, captured. */
#include <tapegrad.h> /* before cmocka.h, which has a macro fail */
#include "emulator.h"
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

enum { QUERY, KEY, VALUE, OPERANDS, PARTS = 4 };

/* [2, heads, rows, width]; inside: in memory heads lie behind the rows. */
typedef struct Case {
    int64_t heads, shared, rows, cols, width, value_width;
    bool causal, inside;
    double scale;
} Case;

static const Case taken[] = {
    { 2, 1, 20, 20, 16, 16, .causal = true },
    { 2, 1, 33, 50, 40, 64, .inside = true },
    { 1, 1, 70, 20, 16, 8, .causal = true, .inside = true, .scale = 0.3 },
    { 4, 2, 9, 17, 32, 24, .causal = true, .inside = true },
    { 2, 2, 20, 30, 128, 128 },
};
static const Case wide = { 2, 2, 10, 12, 192, 256, .causal = true };
static const Case of_lists = { 1, 1, 40, 40, 32, 32, .causal = true };

static const struct {
    TensorDtype dtype;
    double value, gradient;
} precision[] = { { TENSOR_F16, 4e-3, 2e-2 }, { TENSOR_BF16, 3e-2, 1e-1 } };

/* ---- calls ----------------------------------------------------------------------------------- */

static Tensor *here(Tensor *x) { return tensor_to(tensor_to_device(x, "cpu"), TENSOR_F64); }

static Tensor *noise(TensorShape shape, TensorDtype dtype)
{
    return tensor_to_device(tensor_to(tensor_randn(shape, TENSOR_F32), dtype), test_device());
}

static Tensor *lying(bool inside, int64_t heads, int64_t n, int64_t width, TensorDtype dtype)
{
    if (inside) return tensor_transpose(noise(SHAPE(2, n, heads, width), dtype), 1, 2);
    return noise(SHAPE(2, heads, n, width), dtype);
}

static void operands(const Case *c, TensorDtype dtype, Tensor *x[OPERANDS])
{
    x[QUERY] = lying(c->inside, c->heads, c->rows, c->width, dtype);
    x[KEY] = lying(c->inside, c->heads / c->shared, c->cols, c->width, dtype);
    x[VALUE] = lying(c->inside, c->heads / c->shared, c->cols, c->value_width, dtype);
}

static Tensor *attend(const Case *c, Tensor *const x[OPERANDS])
{
    return tensor_scaled_dot_product_attention(x[QUERY], x[KEY], x[VALUE], .is_causal = c->causal,
                                               .scale = c->scale, .enable_gqa = c->shared > 1);
}

static void run(const Case *c, Tensor *const x[OPERANDS], Tensor *g, Tensor *out[PARTS])
{
    Tensor *leaf[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) leaf[i] = tensor_requires_grad_(tensor_detach(x[i]), true);
    out[0] = attend(c, leaf);
    if (!out[0]) fail_msg("%s", tensor_error());
    const TensorList grads = TENSORS(g);
    assert_int_equal(
        tensor_gradients_many(TENSORS(out[0]), TENSOR_LIST(leaf, OPERANDS), out + 1, .grad_outputs = grads),
        0);
}

static double largest(Tensor *x) { return tensor_item(tensor_amax(tensor_abs(x))); }

/* Plans of cuDNN's that a call of it, forward or with backward, executes. */
static int64_t executed(const Case *c, Tensor *const x[OPERANDS], bool backward)
{
    Tensor *out[PARTS];
    const int64_t before = counts_now().executed;
    if (!backward) assert_non_null(attend(c, x));
    else run(c, x, noise(SHAPE(2, c->heads, c->rows, c->value_width), tensor_dtype(x[0])), out);
    return counts_now().executed - before;
}

/* ---- against the definition ------------------------------------------------------------------ */

static void as_defined(const Case *c, int d, int64_t plans)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x[OPERANDS], *exact[OPERANDS], *got[PARTS], *again[PARTS], *want[PARTS];
    operands(c, precision[d].dtype, x);
    for (int i = 0; i < OPERANDS; i++) exact[i] = here(x[i]);
    Tensor *g = lying(c->inside, c->heads, c->rows, c->value_width, precision[d].dtype);
    const CuemuCounts before = counts_now();
    run(c, x, g, got);
    const CuemuCounts after = counts_now();
    assert_int_equal(after.executed - before.executed, plans);
    assert_true(after.heuristics > before.heuristics);
    run(c, exact, here(g), want);
    for (int i = 0; i < PARTS; i++) {
        const double off = largest(tensor_sub(here(got[i]), want[i]));
        const double limit = i ? precision[d].gradient : precision[d].value;
        if (!(off <= limit * (1 + largest(want[i]) / 4)))
            fail_msg("%s: part %d of %d x %d is off by %g", tensor_dtype_name(precision[d].dtype), i,
                     (int)c->rows, (int)c->width, off);
    }
    run(c, x, g, again); /* the plans are kept, and give the same bits */
    assert_int_equal(counts_now().heuristics, after.heuristics);
    for (int i = 0; i < PARTS; i++) assert_true(tensor_equal(got[i], again[i]));
    tensor_scope_close(scope);
}

/* Forward by cuDNN, backward by our own kernels; wider than theirs, both by cuDNN. */
static void forward_goes_by_cudnn(void **state)
{
    (void)state;
    tensor_manual_seed(3);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) as_defined(&taken[i], i % 2, 1);
    as_defined(&wide, 0, 2);
}

static void both_go_by_cudnn(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        tensor_manual_seed(4);
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) as_defined(&taken[i], d, 2);
    }
}

/* Without heads: the batch stands for them. */
static void of_three_dims(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) x[i] = noise(SHAPE(3, 40, 32), TENSOR_BF16);
    const int64_t before = counts_now().executed;
    Tensor *y = attend(&of_lists, x);
    assert_int_equal(counts_now().executed - before, 1);
    for (int i = 0; i < OPERANDS; i++) x[i] = here(x[i]);
    assert_true(largest(tensor_sub(here(y), attend(&of_lists, x))) < 3e-2);
    tensor_scope_close(scope);
}

/* ---- which calls ----------------------------------------------------------------------------- */

static void some_calls_are_not_for_it(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const Case c = { 2, 1, 20, 30, 16, 16 }, odd = { 2, 1, 20, 30, 12, 16 }, empty = { 2, 1, 0, 30, 16, 16 },
               of_one = { 2, 2, 20, 30, 16, 16 };
    Tensor *x[OPERANDS], *y[OPERANDS];
    operands(&c, TENSOR_F32, x);
    assert_int_equal(executed(&c, x, true), 0);
    operands(&odd, TENSOR_BF16, x);
    assert_int_equal(executed(&odd, x, true), 0);
    operands(&empty, TENSOR_BF16, x);
    assert_int_equal(executed(&empty, x, true), 0);
    operands(&c, TENSOR_BF16, x);
    Tensor *seen = tensor_to_device(tensor_ones(SHAPE(20, 30), TENSOR_BOOL), test_device());
    const int64_t before = counts_now().executed;
    assert_non_null(tensor_scaled_dot_product_attention(x[0], x[1], x[2], seen));
    assert_non_null(tensor_scaled_dot_product_attention(x[0], x[1], x[2], .dropout_p = 0.5));
    assert_int_equal(counts_now().executed, before);
    memcpy(y, x, sizeof y); /* begins at 2 bytes, not 16 */
    y[QUERY] =
        tensor_view(tensor_narrow(noise(SHAPE(2 * 2 * 20 * 16 + 1), TENSOR_BF16), 0, 1, 2 * 2 * 20 * 16),
                    SHAPE(2, 2, 20, 16));
    assert_int_equal(executed(&c, y, true), 0);
    memcpy(y, x, sizeof y); /* one k for all of the batch */
    y[KEY] = tensor_narrow(x[KEY], 0, 0, 1);
    assert_int_equal(executed(&c, y, true), 0);
    operands(&of_one, TENSOR_BF16, x); /* a head of k for several of q, as it is broadcast */
    assert_int_equal(executed(&c, x, true), 1);
    tensor_scope_close(scope);
}

static void a_gradient_alone_is_not_for_it(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x[OPERANDS], *dq;
    operands(&taken[0], TENSOR_BF16, x);
    Tensor *q = tensor_requires_grad_(tensor_detach(x[QUERY]), true), *leaf[] = { q, x[KEY], x[VALUE] };
    const int64_t before = counts_now().executed;
    assert_int_equal(tensor_gradients_many(TENSORS(tensor_sum(attend(&taken[0], leaf))), TENSORS(q), &dq), 0);
    assert_int_equal(counts_now().executed - before, 1);
    tensor_scope_close(scope);
}

static void none_goes_by_cudnn(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x[OPERANDS];
    operands(&taken[0], TENSOR_BF16, x);
    assert_int_equal(executed(&taken[0], x, true), 0);
    tensor_scope_close(scope);
}

/* ---- without memory; captured ---------------------------------------------------------------- */

static void each_allocation_may_fail(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x[OPERANDS], *want[PARTS];
    operands(&taken[3], TENSOR_BF16, x);
    Tensor *g = lying(true, taken[3].heads, taken[3].rows, taken[3].value_width, TENSOR_BF16);
    run(&taken[3], x, g, want);
    for (int64_t n = 1;; n++) {
        TensorScope one = tensor_scope_open();
        Tensor *leaf[OPERANDS], *dx[OPERANDS];
        for (int i = 0; i < OPERANDS; i++) leaf[i] = tensor_requires_grad_(tensor_detach(x[i]), true);
        assert_int_equal(tensor_debug_fail_device_allocation(test_device(), n, true), 0);
        Tensor *y = attend(&taken[3], leaf);
        const int status = !y ? -1
                              : tensor_gradients_many(TENSORS(y), TENSOR_LIST(leaf, OPERANDS), dx,
                                                      .grad_outputs = TENSORS(g));
        assert_int_equal(tensor_debug_fail_device_allocation(test_device(), 0, false), 0);
        if (!status) {
            for (int i = 0; i < OPERANDS; i++) assert_true(tensor_equal(dx[i], want[1 + i]));
            tensor_scope_close(one);
            break;
        }
        assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        tensor_error_clear();
        tensor_scope_close(one);
        assert_true(n < 100);
    }
    tensor_scope_close(scope);
}

enum { STEPS = 7 };

static void captured_as_eager(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    TensorGraph *graph = tensor_graph(test_device());
    const Case *c = &taken[3];
    Tensor *g = lying(true, c->heads, c->rows, c->value_width, TENSOR_F16);
    for (int step = 0; step < STEPS; step++) {
        TensorScope one = tensor_scope_open();
        Tensor *x[OPERANDS], *own[OPERANDS], *out[PARTS], *want[PARTS];
        operands(c, TENSOR_F16, x);
        if (tensor_graph_begin(graph, TENSOR_LIST(x, OPERANDS))) {
            for (int i = 0; i < OPERANDS; i++) own[i] = tensor_graph_input(graph, i);
            run(c, own, g, out);
            for (int i = 0; i < PARTS; i++) tensor_graph_set_output(graph, i, out[i]);
        }
        assert_int_equal(tensor_graph_end(graph), 0);
        run(c, x, g, want);
        for (int i = 0; i < PARTS; i++) assert_true(tensor_equal(tensor_graph_output(graph, i), want[i]));
        tensor_scope_close(one);
    }
    const TensorGraphInfo info = tensor_graph_info(graph);
    if (info.captured != 1 || info.replayed < 2) fail_msg("%d captured: %s", (int)info.captured, info.why);
    tensor_graph_free(graph);
    tensor_scope_close(scope);
}

/* ---- a process for each environment: it is read once ----------------------------------------- */

static const struct CMUnitTest by_default[] = { cmocka_unit_test(forward_goes_by_cudnn),
                                                cmocka_unit_test(of_three_dims),
                                                cmocka_unit_test(some_calls_are_not_for_it),
                                                cmocka_unit_test(captured_as_eager) };
static const struct CMUnitTest all_of_it[] = { cmocka_unit_test(both_go_by_cudnn),
                                               cmocka_unit_test(a_gradient_alone_is_not_for_it),
                                               cmocka_unit_test(each_allocation_may_fail),
                                               cmocka_unit_test(captured_as_eager) };
static const struct CMUnitTest none[] = { cmocka_unit_test(none_goes_by_cudnn) };

static int run_here(const struct CMUnitTest *tests, size_t n)
{
    return !test_device_opens() || _cmocka_run_group_tests("attention by cuDNN", tests, n, NULL, NULL);
}

static int run_with(const char *switch_, const char *version, const struct CMUnitTest *tests, size_t n)
{
    int status = 1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setenv("TAPEGRAD_CUDNN", switch_, 1), setenv("CUEMU_CUDNN", version, 1);
        exit(run_here(tests, n) ? 1 : 0);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status ? 1 : 0;
}

#define WITH(switch_, version, tests) run_with(switch_, version, tests, sizeof tests / sizeof *tests)

int main(void)
{
    if (!is_emulated()) return 0; /* only a stand-in counts */
    return WITH("1", "1", by_default) | WITH("all", "1", all_of_it) | WITH("0", "1", none) |
           WITH("1", "91501", none) | WITH("1", "80907", none);
}
