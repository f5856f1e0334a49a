/* test_graph_ends.c - what ends a capture or cannot be captured, on TAPEGRAD_TEST_DEVICE: waits, faults,
 * memory that fails or outlives it, calls that are refused; and the same calls on the CPU. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/debug.h>
#include "graph_run.h"

/* ---- what cannot be captured ------------------------------------------------------------------ */

static int64_t waits;

static Tensor *reads_a_value(Module *net, Tensor **in)
{
    Tensor *loss = small_loss(net, in);
    waits += tensor_item(loss) > 0;
    return loss;
}

static Tensor *draws_on_the_host(Module *net, Tensor **in)
{
    in[0] = tensor_add(in[0], tensor_randn_like(in[0]));
    return small_loss(net, in);
}

static Tensor *copies_from_the_host(Module *net, Tensor **in)
{
    const float row[6] = { 1, 2, 3, 4, 5, 6 };
    in[0] = tensor_mul(in[0], tensor_to_device(tensor_from_data(row, SHAPE(6), TENSOR_F32), test_device()));
    return small_loss(net, in);
}

static Tensor *copies_out(Module *net, Tensor **in)
{
    float value;
    Tensor *loss = small_loss(net, in);
    waits += tensor_copy_to(loss, &value, sizeof value) == 0 && value > 0;
    return loss;
}

static Tensor *moves_to_the_host(Module *net, Tensor **in)
{
    Tensor *loss = small_loss(net, in), *here = tensor_to_device(loss, "cpu");
    waits += tensor_item(here) > 0;
    return loss;
}

static Tensor *seeds(Module *net, Tensor **in)
{
    tensor_manual_seed(1);
    return small_loss(net, in);
}

static Tensor *sets_a_state(Module *net, Tensor **in)
{
    tensor_set_rng_state(tensor_get_rng_state());
    return small_loss(net, in);
}

static Tensor *records_an_event(Module *net, Tensor **in)
{
    TensorEvent *event = tensor_event(test_device(), false);
    waits += tensor_event_record(event) == 0 && tensor_event_synchronize(event) == 0;
    tensor_event_free(event);
    return small_loss(net, in);
}

static Tensor *copies_beside(Module *net, Tensor **in)
{
    TENSOR_COPY_STREAM(test_device())(void) 0;
    return small_loss(net, in);
}

/* On the device, by a kernel or a copy. */
static Tensor *numbers_from(Tensor *(*made)(void), Module *net, Tensor **in)
{
    tensor_set_default_device(test_device());
    in[0] = tensor_mul(in[0], made());
    tensor_set_default_device("cpu");
    return small_loss(net, in);
}

static Tensor *row(void) { return tensor_from_data((float[]){ 1, 2, 3, 4, 5, 6 }, SHAPE(6), TENSOR_F32); }
static Tensor *powers(void) { return tensor_logspace(0, 1, 6, 2, TENSOR_F32); }
static Tensor *steps(void)
{
    Tensor *all = tensor_mul(tensor_arange(0, 6, 1, TENSOR_I64), tensor_linspace(0, 1, 6, TENSOR_F32));
    return tensor_cat(
        TENSORS(all, tensor_arange(0, 0, 1, TENSOR_F32), tensor_logspace(0, 1, 0, 2, TENSOR_F32)), 0);
}
static Tensor *makes_powers(Module *net, Tensor **in) { return numbers_from(powers, net, in); }
static Tensor *makes_row(Module *net, Tensor **in) { return numbers_from(row, net, in); }
static Tensor *makes_steps(Module *net, Tensor **in) { return numbers_from(steps, net, in); }

static Tensor *waits_for_the_device(Module *net, Tensor **in)
{
    tensor_synchronize(test_device());
    return small_loss(net, in);
}

static Tensor *computes_on_the_host(Module *net, Tensor **in)
{
    Tensor *q = tensor_det(tensor_matmul(tensor_t(in[0]), in[0]));
    return tensor_add(small_loss(net, in), tensor_mul_scalar(q, 0));
}

/* The step goes on as usual, with the values of an eager one; the call is named. */
static void waits_end_a_capture(void **state)
{
    (void)state;
    static const struct {
        Tensor *(*loss)(Module *net, Tensor **in);
        const char *call, *why;
    } cases[] = {
        { reads_a_value, "tensor_item (", "reads a value" },
        { draws_on_the_host, "tensor_randn_like (", "draws numbers on the host" },
        { copies_from_the_host, "to_device (", "copies from the host" },
        { makes_powers, "tensor_logspace (", "copies from the host" },
        { makes_row, "tensor_from_data (", "copies from the host" },
        { copies_out, "tensor_copy_to (", "copies to the host" },
        { moves_to_the_host, "to_device (", "copies to the host" },
        { seeds, "tensor_manual_seed (", "seeds a generator" },
        { sets_a_state, "tensor_set_rng_state (", "sets a generator's state" },
        { records_an_event, "tensor_event_record (", "uses an event" },
        { copies_beside, "tensor_copy_stream_begin (", "copies" },
        { waits_for_the_device, "tensor_synchronize (", "waits" },
        { computes_on_the_host, "tensor_det (", "is computed by the host" },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        TensorScope scope = tensor_scope_open();
        double want[8];
        Run eager = begin(small, 1e-2, PLAIN, false), r;
        for (int round = 0; round < 2; round++) {
            if (round) r = begin(small, 1e-2, PLAIN, true);
            for (int i = 0; i < 8; i++) {
                Tensor *in[INPUTS] = { NULL };
                small_batch(in, 8);
                const double loss = step(round ? &r : &eager, cases[k].loss, in, 2);
                if (!round) want[i] = loss;
                else if (loss != want[i]) fail_msg("%s: step %d differs", cases[k].call, i);
            }
        }
        assert_same_state(cases[k].call, &r, &eager);
        const TensorGraphInfo info = tensor_graph_info(r.graph);
        assert_int_equal(info.eager, 8);
        if (!strstr(info.why, cases[k].call) || !strstr(info.why, cases[k].why) ||
            !strstr(info.why, "test_graph_ends.c:"))
            fail_msg("%s: %s", cases[k].call, info.why);
        end(&r), end(&eager);
        tensor_scope_close(scope);
    }
    assert_int_equal(waits, 4 * 2 * 8); /* all that read or wait, eager and captured */
}

/* Numbers that count up are made on the device: nothing ends the capture. */
static void sequences_are_captured(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Run eager = begin(small, 1e-2, PLAIN, false), r = begin(small, 1e-2, PLAIN, true);
    for (int i = 0; i < 8; i++) {
        Tensor *in[INPUTS] = { NULL };
        small_batch(in, 8);
        Tensor *again[INPUTS] = { in[0], in[1] };
        assert_true(step(&eager, makes_steps, in, 2) == step(&r, makes_steps, again, 2));
    }
    const TensorGraphInfo info = tensor_graph_info(r.graph);
    if (info.replayed < 4) fail_msg("%d replayed: %s", (int)info.replayed, info.why);
    end(&r), end(&eager);
    tensor_scope_close(scope);
}

static void without_fallback_it_is_an_error(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    TensorGraph *g = tensor_graph(test_device(), .warmup = 1, .fallback = false);
    Tensor *x = floats(SHAPE(3), test_device()), *y = tensor_zeros_like(x);
    for (int i = 0; i < 2; i++) {
        if (tensor_graph_begin(g, TENSORS(x))) {
            tensor_add_(y, tensor_graph_input(g, 0));
            tensor_item(tensor_sum(y));
        }
        assert_int_equal(tensor_graph_end(g), i ? -1 : 0);
    }
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    assert_non_null(strstr(tensor_error(), "tensor_item: it reads a value, while a step on "));
    tensor_error_clear();
    assert_true(fabs(tensor_get(y, DIMS(2)) - 2 * tensor_get(x, DIMS(2))) < 1e-6); /* before it */
    tensor_graph_free(g);
    tensor_scope_close(scope);
}

/* An index that is out of range in a replay is told late, with its op and its line. */
static void a_fault_in_a_replay(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    TensorGraph *g = tensor_graph(test_device(), .warmup = 1);
    Tensor *table = floats(SHAPE(4, 2), test_device());
    for (int i = 0; i < 4; i++) {
        const int64_t at[2] = { i, i == 3 ? 7 : 0 };
        Tensor *index = tensor_to_device(tensor_from_data(at, SHAPE(2), TENSOR_I64), test_device());
        if (tensor_graph_begin(g, TENSORS(index)))
            tensor_graph_set_output(g, 0, tensor_index_select(table, 0, tensor_graph_input(g, 0)));
        assert_int_equal(tensor_graph_end(g), 0);
        assert_int_equal(tensor_synchronize(test_device()), i == 3 ? -1 : 0);
    }
    assert_int_equal(tensor_graph_info(g).replayed, 2);
    assert_int_equal(tensor_error_code(), TENSOR_EINDEX);
    assert_non_null(strstr(tensor_error(), "tensor_index_select: index 7 at position 1"));
    assert_non_null(strstr(tensor_error(), "test_graph_ends.c"));
    tensor_error_clear();
    tensor_graph_free(g);
    tensor_scope_close(scope);
}

/* ---- memory ----------------------------------------------------------------------------------- */

static Module *plain(void) { return nn_sequential(nn_linear(6, 12), nn_relu(), nn_linear(12, 3)); }

/* With one batch for all steps. */
static Run plain_run(Tensor **in, bool captured)
{
    Run r = begin(plain, 1e-2, PLAIN, captured);
    optim_scheduler_free(r.schedule), r.schedule = NULL;
    small_batch(in, 5);
    return r;
}

static void plain_steps(const Run *r, Tensor **in, int n)
{
    for (int i = 0; i < n; i++) {
        TensorScope scope = tensor_scope_open();
        step(r, small_loss, in, 2);
        tensor_scope_close(scope);
    }
}

/* Kinds whose rules have other numbers and states, and one without a rule, which is not captured. */
static void each_optimizer(void **state)
{
    (void)state;
    for (int kind = 0; kind < 7; kind++) {
        TensorScope scope = tensor_scope_open();
        Run run[2];
        for (int k = 0; k < 2; k++) {
            Tensor *in[INPUTS] = { NULL };
            run[k] = plain_run(in, k);
            const TensorList all = nn_parameters(run[k].net);
            optim_free(run[k].opt);
            run[k].opt = kind == 0   ? optim_sgd(all, .lr = 0.1)
                         : kind == 1 ? optim_sgd(all, .lr = 0.1, .momentum = 0.9, .nesterov = true)
                         : kind == 2 ? optim_rmsprop(all, .momentum = 0.9)
                         : kind == 3 ? optim_nadam(all)
                         : kind == 4 ? optim_adam(all, .amsgrad = true)
                         : kind == 5 ? optim_lion(all)
                                     : optim_lamb(all);
            plain_steps(&run[k], in, 7);
        }
        assert_same_state(run[1].opt->kind->name, &run[1], &run[0]);
        const TensorGraphInfo info = tensor_graph_info(run[1].graph);
        assert_true(kind < 6 ? info.replayed >= 2 : info.eager == 7);
        if (kind == 6) assert_non_null(strstr(info.why, "optim_lamb ("));
        end(&run[1]), end(&run[0]);
        tensor_scope_close(scope);
    }
}

static int steps_before_a_capture(void)
{
    Tensor *in[INPUTS] = { NULL };
    Run r = plain_run(in, true);
    int n = 0;
    for (; n < 9; n++) {
        plain_steps(&r, in, 1);
        if (tensor_graph_info(r.graph).captured) break;
    }
    end(&r);
    assert_in_range(n, 2, 4);
    return n;
}

/* Request n of the captured step fails; the next ones go on.  How many steps the optimizer took; 0: there are
 * not so many requests. */
static int64_t with_a_failure(Run *r, const char *where, int64_t n, int before)
{
    Tensor *in[INPUTS] = { NULL };
    *r = plain_run(in, true);
    plain_steps(r, in, before);
    assert_int_equal(tensor_graph_info(r->graph).captured, 0);
    tensor_debug_fail_device_allocation(where, n, false);
    plain_steps(r, in, 1);
    tensor_debug_fail_device_allocation(where, 0, false);
    const TensorStatus code = tensor_error_code();
    if (code) assert_int_equal(code, TENSOR_ENOMEM);
    tensor_error_clear();
    plain_steps(r, in, 5);
    assert_true(tensor_graph_info(r->graph).replayed > 0);
    return code ? r->opt->group[0].param[0].step : 0;
}

/* Each request of the captured step fails in turn, on the device and on the host: an error, and a step that
 * is made or not; the steps behind it are those of an eager run. */
static void each_allocation_fails(void **state)
{
    (void)state;
    const char *const where[] = { test_device(), "cpu" };
    const int before = steps_before_a_capture();
    for (int k = 0; k < 2; k++) {
        int64_t failed = 0;
        for (int64_t n = 1, steps = 1; steps; n += k ? 3 : 1) {
            const int64_t live = tensor_live_count();
            TensorScope scope = tensor_scope_open();
            Tensor *in[INPUTS] = { NULL };
            Run r, eager = plain_run(in, false);
            steps = with_a_failure(&r, where[k], n, before);
            plain_steps(&eager, in, (int)steps);
            if (steps) assert_same_state("after a failure", &r, &eager), failed++;
            end(&r), end(&eager);
            tensor_scope_close(scope);
            assert_int_equal(tensor_live_count(), live);
        }
        assert_true(failed > 10);
    }
}

/* Results live on when their graph is gone, and what the graph reads when its owner is. */
static void lives_apart(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    TensorGraph *g = tensor_graph(test_device(), .warmup = 1);
    Tensor *x = floats(SHAPE(100), test_device()), *y = NULL, *kept = NULL, *held = tensor_clone(x);
    tensor_retain(held);
    for (int i = 0; i < 5; i++) {
        TensorScope one = tensor_scope_open();
        if (tensor_graph_begin(g, TENSORS(x))) {
            Tensor *z = tensor_mul(tensor_graph_input(g, 0), held);
            tensor_assign(&kept, z);
            tensor_graph_set_output(g, 0, tensor_add_scalar(z, 1));
        }
        assert_int_equal(tensor_graph_end(g), 0);
        if (i == 3) { /* its memory goes to nobody else while the graph may read it */
            tensor_release(held);
            for (int k = 0; k < 4; k++) tensor_full_like(x, 1e9);
        }
        tensor_scope_close(one);
    }
    y = tensor_graph_output(g, 0);
    Tensor *want = tensor_square(x);
    assert_same_tensor("apart", "an output", y, tensor_add_scalar(want, 1));
    tensor_graph_free(g);
    for (int k = 0; k < 8; k++) tensor_full_like(x, 1e9);
    assert_same_tensor("apart", "a result", kept, want);
    assert_same_tensor("apart", "an output", y, tensor_add_scalar(want, 1));
    tensor_release(kept);
    tensor_scope_close(scope);
}

/* Two graphs in turn, one of which reads what the other one wrote. */
static void two_graphs(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    TensorGraph *a = tensor_graph(test_device()), *b = tensor_graph(test_device());
    Tensor *sum = tensor_to_device(tensor_zeros(SHAPE(3), TENSOR_F32), test_device());
    double want = 0;
    for (int i = 0; i < 8; i++) {
        TensorScope one = tensor_scope_open();
        Tensor *x = tensor_full_like(sum, i);
        if (tensor_graph_begin(a, TENSORS(x)))
            tensor_graph_set_output(a, 0, tensor_mul_scalar(tensor_graph_input(a, 0), 3));
        assert_int_equal(tensor_graph_end(a), 0);
        if (tensor_graph_begin(b, TENSORS(tensor_graph_output(a, 0))))
            tensor_add_(sum, tensor_graph_input(b, 0));
        assert_int_equal(tensor_graph_end(b), 0);
        assert_true(tensor_get(sum, DIMS(0)) == (want += 3 * i));
        tensor_scope_close(one);
    }
    assert_int_equal(tensor_graph_info(a).replayed, 5);
    assert_int_equal(tensor_graph_info(b).replayed, 5);
    tensor_graph_free(a), tensor_graph_free(b);
    tensor_scope_close(scope);
}

/* ---- calls that are refused, and the CPU ------------------------------------------------------- */

static void assert_refused(TensorStatus code, const char *text)
{
    if (tensor_error_code() != code || !strstr(tensor_error(), text))
        fail_msg("%s: want %s", tensor_error() ? tensor_error() : "no error", text);
    tensor_error_clear();
}

static void refusals(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = floats(SHAPE(2), test_device()), *here = tensor_zeros(SHAPE(2), TENSOR_F32);
    assert_null(tensor_graph(test_device(), .warmup = 0));
    assert_refused(TENSOR_EVALUE, "tensor_graph: warmup is 0: want 1 or more");
    assert_null(tensor_graph("cuda:99"));
    assert_refused(TENSOR_EDEVICE, "tensor_graph: \"cuda:99\"");
    TensorGraph *g = tensor_graph(test_device()), *other = tensor_graph(test_device());
    assert_int_equal(tensor_graph_end(g), -1);
    assert_refused(TENSOR_EVALUE, "tensor_graph_end: no step of it has begun in this thread");
    assert_int_equal(tensor_graph_set_output(g, 0, x), -1);
    assert_refused(TENSOR_EVALUE, "tensor_graph_set_output: no step of it is running in this thread");
    assert_null(tensor_graph_output(g, 0));
    assert_refused(TENSOR_EINDEX, "tensor_graph_output: the step has no output 0");
    assert_false(tensor_graph_begin(g, TENSORS(x, NULL)));
    assert_int_equal(tensor_graph_end(g), -1);
    assert_refused(TENSOR_ENULL, "tensor_graph_begin: operand 3 is NULL");
    assert_false(tensor_graph_begin(NULL));
    assert_int_equal(tensor_graph_end(NULL), -1);
    assert_refused(TENSOR_ENULL, "tensor_graph_begin: the graph is NULL");
    assert_true(tensor_graph_begin(g, TENSORS(x)));
    assert_null(tensor_graph_input(g, 1));
    assert_refused(TENSOR_EINDEX, "tensor_graph_input: the step has no input 1");
    assert_int_equal(tensor_graph_set_output(g, 64, x), -1);
    assert_refused(TENSOR_EINDEX, "tensor_graph_set_output: output 64: want 0 to 63");
    assert_int_equal(tensor_graph_set_output(g, 0, here), -1);
    assert_refused(TENSOR_EDEVICE, "tensor_graph_set_output: [2] is on cpu: want ");
    assert_false(tensor_graph_begin(other, TENSORS(x)));
    assert_int_equal(tensor_graph_end(other), -1);
    assert_refused(TENSOR_EVALUE, "tensor_graph_begin: a step of this thread has begun, and has not ended");
    assert_int_equal(tensor_graph_end(g), 0);
    assert_null(op_graph_numbers(1, TENSOR_F32, NULL, NULL));
    assert_refused(TENSOR_ENULL, "op_graph_numbers: the function is NULL");
    assert_false(op_graph_capturing(NULL));
    assert_int_equal(op_graph_break("a call", "waits"), 0);
    tensor_mul(x, tensor_zeros(SHAPE(7), TENSOR_F32));
    assert_false(tensor_graph_begin(g, TENSORS(x))); /* nothing runs after an error */
    assert_int_equal(tensor_graph_end(g), -1);
    tensor_error_clear();
    assert_true(tensor_graph_begin(other, TENSORS(x)));
    tensor_graph_free(other); /* ends its step */
    assert_true(tensor_graph_begin(g, TENSORS(x)));
    assert_int_equal(tensor_graph_end(g), 0);
    tensor_graph_free(g), tensor_graph_free(NULL);
    assert_int_equal(tensor_graph_info(NULL).eager, 0);
    tensor_scope_close(scope);
}

/* The same calls on the CPU: each step runs. */
static void on_the_cpu(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    TensorGraph *g = tensor_graph("cpu");
    Tensor *x = tensor_ones(SHAPE(3), TENSOR_F32);
    int ran = 0;
    for (int i = 0; i < 5; i++) {
        if (tensor_graph_begin(g, TENSORS(x))) {
            tensor_graph_set_output(g, 0, tensor_mul_scalar(tensor_graph_input(g, 0), i));
            ran++;
        }
        assert_int_equal(tensor_graph_end(g), 0);
        assert_true(tensor_item(tensor_sum(tensor_graph_output(g, 0))) == 3 * i);
    }
    assert_int_equal(ran, 5);
    assert_int_equal(tensor_graph_info(g).eager, 5);
    assert_non_null(strstr(tensor_graph_info(g).why, "cpu captures no steps"));
    tensor_graph_free(g);
    tensor_scope_close(scope);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_end_a_capture),
        cmocka_unit_test(sequences_are_captured),
        cmocka_unit_test(without_fallback_it_is_an_error),
        cmocka_unit_test(a_fault_in_a_replay),
        cmocka_unit_test(each_optimizer),
        cmocka_unit_test(each_allocation_fails),
        cmocka_unit_test(lives_apart),
        cmocka_unit_test(two_graphs),
        cmocka_unit_test(refusals),
        cmocka_unit_test(on_the_cpu),
    };
    if (!test_device_opens()) return 1;
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    tensor_use_torch_dropout(false);
    const int failed = cmocka_run_group_tests_name("the ends of captures", tests, NULL, NULL);
    tensor_use_torch_dropout(true);
    return failed;
}
