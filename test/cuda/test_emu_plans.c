/* test_emu_plans.c - what is kept of cuBLASLt's choices and cuDNN's plans, on stand-ins that count them, and
 * lose the device when kernels of a plan run that is gone. */
#include <tapegrad.h> /* before cmocka.h, which has a macro fail */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "emulator.h"

enum {
    MOST = 4096,
    MORE = 300,
    LINEARS = 81,
    LAYERS = 30
}; /* kept in any case, as plans.cuh says; some more */

/* ---- calls, each with a plan of its own -------------------------------------------------------- */

typedef struct Pair {
    Tensor *x, *w;
} Pair;

static Pair pair(const char *device)
{
    tensor_set_default_device(device);
    const Pair p = { tensor_ones(SHAPE(1, 1, 2), TENSOR_F32), tensor_ones(SHAPE(1, 1, 1), TENSOR_F32) };
    tensor_set_default_device("cpu");
    return p;
}

static void convolve(Pair p, int from, int to)
{
    for (int i = from; i < to; i++) {
        TensorScope scope = tensor_scope_open();
        assert_non_null(tensor_conv1d(p.x, p.w, .dilation = i));
        tensor_scope_close(scope);
    }
}

static int64_t plans_made(Pair p, int from, int to)
{
    const int64_t before = counts_now().heuristics;
    convolve(p, from, to);
    return counts_now().heuristics - before;
}

/* ---- made once --------------------------------------------------------------------------------- */

static int64_t choices_of_pass(Module **net, Tensor **x, int n)
{
    const int64_t before = counts_now().heuristics;
    for (int i = 0; i < n; i++) tensor_backward(tensor_sum(nn_forward(net[i], x[i])));
    assert_null(tensor_error());
    return counts_now().heuristics - before;
}

static void choices_of_many_linears_are_kept(void **state)
{
    (void)state;
    for (int n = 3; n <= LINEARS; n *= 3) {
        Module *net[LINEARS];
        Tensor *x[LINEARS];
        TensorScope scope = tensor_scope_open();
        for (int i = 0; i < n; i++) {
            net[i] = nn_linear(16, 8 * (i + 1) + n);
            nn_to_device(net[i], test_device());
            x[i] = tensor_to_device(tensor_ones(SHAPE(8, 16), TENSOR_F32), test_device());
            tensor_requires_grad_(x[i], true);
        }
        assert_true(choices_of_pass(net, x, n) >= n);
        for (int pass = 0; pass < 3; pass++) assert_int_equal(choices_of_pass(net, x, n), 0);
        for (int i = 0; i < n; i++) nn_free(net[i]);
        tensor_scope_close(scope);
    }
}

static void plans_of_many_shapes_are_kept(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const Pair p = pair(test_device());
    assert_int_equal(plans_made(p, 1, 301), 300);
    for (int pass = 0; pass < 3; pass++) assert_int_equal(plans_made(p, 1, 301), 0);
    tensor_scope_close(scope);
}

static void each_device_has_its_own(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const Pair first = pair("emu:0"), second = pair("emu:1");
    convolve(first, 1, 11);
    assert_int_equal(plans_made(second, 1, 11), 10);
    assert_int_equal(plans_made(first, 1, 11) + plans_made(second, 1, 11), 0);
    tensor_scope_close(scope);
}

static void *of_a_thread(void *unused)
{
    TensorScope scope = tensor_scope_open();
    const Pair p = pair(test_device());
    for (int pass = 0; pass < 2; pass++) convolve(p, 401, 501);
    tensor_synchronize(test_device());
    const bool good = !tensor_error();
    tensor_scope_close(scope);
    return good ? NULL : unused;
}

static void threads_share_them(void **state)
{
    (void)state;
    pthread_t thread[3];
    char none;
    const int64_t before = counts_now().heuristics;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, of_a_thread, &none), 0);
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(counts_now().heuristics - before, 100);
}

/* ---- which ones go ----------------------------------------------------------------------------- */

/* As many as the table keeps and some more, which are done now and then. */
static void fill_up(Pair p, int from)
{
    for (int i = 0; i < MOST + MORE; i += 100) {
        convolve(p, from + i, from + i + 100);
        assert_int_equal(tensor_synchronize(test_device()), 0);
    }
}

static void the_least_recently_used_go(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const Pair p = pair(test_device());
    convolve(p, 1000, 1010);
    for (int i = 0; i < 2 * MOST; i += 100) {
        convolve(p, 2000 + i, 2100 + i);
        assert_int_equal(tensor_synchronize(test_device()), 0);
        assert_int_equal(plans_made(p, 1000, 1010), 0);
    }
    assert_true(counts_now().plans < MOST + MORE);
    assert_int_equal(plans_made(p, 2000 + MOST + MORE, 2000 + 2 * MOST), 0);
    assert_int_equal(plans_made(p, 2000, 2010), 10);
    tensor_scope_close(scope);
}

/* Nothing is waited for: kernels of all plans that are kept are queued, then those of many more. */
static void not_those_of_queued_kernels(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const Pair p = pair(test_device());
    const int end = 11000 + MOST + MORE;
    for (int i = 11000; i < end; i += 10) {
        convolve(p, i, i + 10);
        assert_int_equal(tensor_synchronize(test_device()), 0);
    }
    assert_int_equal(plans_made(p, end - MOST + 20, end), 0);
    convolve(p, 20000, 20040);
    assert_int_equal(tensor_synchronize(test_device()), 0);
    convolve(p, 21000, 21000 + MOST + MORE);
    assert_int_equal(tensor_synchronize(test_device()), 0);
    tensor_scope_close(scope);
}

static Tensor *step_of(Tensor *x, Tensor *w)
{
    Tensor *y = x;
    for (int i = 0; i < LAYERS; i++) y = tensor_conv1d(y, w, .dilation = 50000 + i);
    return tensor_sum(y);
}

/* The number of plans that it makes. */
static int64_t take_step(TensorGraph *g, Pair p)
{
    const int64_t before = counts_now().heuristics;
    if (tensor_graph_begin(g, TENSORS(p.x)))
        tensor_graph_set_output(g, 0, step_of(tensor_graph_input(g, 0), p.w));
    assert_int_equal(tensor_graph_end(g), 0);
    return counts_now().heuristics - before;
}

static void assert_captured(TensorGraph *g, int64_t replayed)
{
    const TensorGraphInfo info = tensor_graph_info(g);
    assert_true(tensor_item(tensor_graph_output(g, 0)) == 2);
    if (info.captured != 1 || info.replayed != replayed)
        fail_msg("captured %lld, replayed %lld: %s", (long long)info.captured, (long long)info.replayed,
                 info.why);
}

/* Its plans are made in the capture once more, as others came in between; then they stay. */
static void not_those_of_a_graph(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const Pair p = pair(test_device());
    TensorGraph *g = tensor_graph(test_device(), .warmup = 1);
    assert_int_equal(take_step(g, p), LAYERS);
    fill_up(p, 60000);
    const int64_t there = counts_now().plans;
    assert_int_equal(take_step(g, p), LAYERS);
    assert_int_equal(counts_now().plans, there + LAYERS); /* none goes meanwhile */
    fill_up(p, 70000);
    assert_int_equal(take_step(g, p), 0);
    assert_captured(g, 1);
    fill_up(p, 80000);
    assert_int_equal(take_step(g, p), 0);
    Tensor *y = tensor_graph_output(g, 0);
    tensor_graph_free(g); /* what it queued is not done */
    convolve(p, 90000, 90000 + MORE);
    assert_true(tensor_item(y) == 2);
    fill_up(p, 100000);
    const int64_t before = counts_now().heuristics;
    assert_true(tensor_item(step_of(p.x, p.w)) == 2);
    assert_int_equal(counts_now().heuristics - before, LAYERS);
    tensor_scope_close(scope);
}

/* A step that differs from those before it. */
static void opened_in_a_capture(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const Pair p = pair(test_device());
    TensorGraph *g = tensor_graph(test_device(), .warmup = 1);
    for (int i = 0; i < 2; i++) {
        if (tensor_graph_begin(g, TENSORS(p.x))) {
            Tensor *x = tensor_graph_input(g, 0);
            tensor_graph_set_output(g, 0, i ? tensor_conv1d(x, p.w, .dilation = 900) : tensor_neg(x));
        }
        assert_int_equal(tensor_graph_end(g), 0);
    }
    assert_non_null(strstr(tensor_graph_info(g).why, "it called other ops")); /* so it was being captured */
    assert_int_equal(counts_now().executed, 1);
    assert_true(tensor_item(tensor_sum(tensor_graph_output(g, 0))) == 2);
    tensor_graph_free(g);
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_of_many_linears_are_kept), cmocka_unit_test(plans_of_many_shapes_are_kept),
        cmocka_unit_test(each_device_has_its_own),          cmocka_unit_test(threads_share_them),
        cmocka_unit_test(the_least_recently_used_go),       cmocka_unit_test(not_those_of_a_graph),
        cmocka_unit_test(not_those_of_queued_kernels), /* the last: the table is larger then */
    };
    const struct CMUnitTest first[] = { cmocka_unit_test(opened_in_a_capture) };
    if (!is_emulated()) return 0; /* only stand-ins count */
    setenv("CUEMU_CUDNN", "1", 1);
    if (!test_device_opens() || cmocka_run_group_tests(first, NULL, NULL)) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
