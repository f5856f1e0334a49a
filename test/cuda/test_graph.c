/* test_graph.c - captured and replayed steps against eager ones, to the bit, on TAPEGRAD_TEST_DEVICE: losses,
 * parameters, states, masks, the generator; and what makes a step another one. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include "graph_run.h"

enum { STEPS = 9 };

static int count_inputs(Tensor *const *in)
{
    int n = 0;
    while (n < INPUTS && in[n]) n++;
    return n;
}

static Tensor *run_net(const Run *r, const Net *n, double *loss)
{
    for (int i = 0; i < STEPS; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *in[INPUTS] = { NULL };
        n->batch(in, test_device());
        loss[i] = step(r, n->loss, in, count_inputs(in));
        tensor_scope_close(scope);
    }
    return tensor_get_rng_state();
}

static void trains_alike(const Net *n, Precision precision)
{
    const int64_t live = tensor_live_count();
    TensorScope scope = tensor_scope_open();
    Run eager = begin(n->make, n->lr, precision, false);
    double loss[STEPS], want[STEPS];
    Tensor *drawn = run_net(&eager, n, want);
    Run run = begin(n->make, n->lr, precision, true);
    assert_same_tensor(n->name, "the generator", run_net(&run, n, loss), drawn);
    for (int i = 0; i < STEPS; i++)
        if (loss[i] != want[i])
            fail_msg("%s: step %d has the loss %.17g, eager %.17g (%s)", n->name, i, loss[i], want[i],
                     tensor_graph_info(run.graph).why);
    assert_same_state(n->name, &run, &eager);
    const TensorGraphInfo info = tensor_graph_info(run.graph);
    if (info.captured != 1 || info.eager > 4 || info.replayed != STEPS - 1 - info.eager)
        fail_msg("%s: %d eager, %d captured, %d replayed: %s", n->name, (int)info.eager, (int)info.captured,
                 (int)info.replayed, info.why);
    end(&run), end(&eager);
    tensor_scope_close(scope);
    assert_int_equal(tensor_live_count(), live);
}

static void nets_train_alike(void **state)
{
    (void)state;
    static const char *const which[] = { "MLP", "MNIST CNN", "LSTM", "GPT" };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        for (size_t k = 0; k < sizeof which / sizeof *which; k++)
            if (strcmp(nets[i].name, which[k]) == 0) trains_alike(&nets[i], PLAIN);
}

static void mixed_precision_trains_alike(void **state)
{
    (void)state;
    trains_alike(&nets[0], MIXED);
}

/* ---- what a step is counted by ---------------------------------------------------------------- */

/* One launch, a copy of each input, one of the numbers; the captured step waits for nothing, and finds its
 * memory. */
static void a_replay_is_one_launch(void **state)
{
    (void)state;
    if (!is_emulated()) skip();
    TensorScope scope = tensor_scope_open();
    Run r = begin(small, 1e-2, PLAIN, true);
    Tensor *in[INPUTS] = { NULL };
    small_batch(in, 5);
    for (int i = 0; i < 6; i++) {
        const struct CuemuCounts before = counts_now();
        if (tensor_graph_begin(r.graph, TENSORS(in[0], in[1]))) {
            Tensor *own[] = { tensor_graph_input(r.graph, 0), tensor_graph_input(r.graph, 1) };
            tensor_graph_set_output(r.graph, 0, descend(&r, small_loss, own));
        }
        assert_int_equal(tensor_graph_end(r.graph), 0);
        const struct CuemuCounts after = counts_now();
        const TensorGraphInfo info = tensor_graph_info(r.graph);
        assert_int_equal(after.waits, before.waits);
        assert_int_equal(after.to_host, before.to_host);
        if (info.captured) assert_int_equal(after.allocations, before.allocations);
        if (info.replayed) {
            assert_int_equal(after.launches, before.launches + 3);
            assert_int_equal(after.to_device, before.to_device + 1);
        }
    }
    assert_true(tensor_graph_info(r.graph).replayed >= 2);
    end(&r);
    tensor_scope_close(scope);
}

/* ---- what makes a step another one ------------------------------------------------------------ */

/* An odd batch runs as usual beside the captured step; two of them in a row are captured in its place. */
static void other_shapes(void **state)
{
    (void)state;
    static const int64_t rows[] = { 5, 5, 5, 5, 5, 3, 5, 5, 3, 3, 3, 3, 3, 5, 3 };
    enum { MANY = sizeof rows / sizeof *rows };
    TensorScope scope = tensor_scope_open();
    double want[MANY];
    Run eager = begin(small, 1e-2, PLAIN, false);
    for (int i = 0; i < MANY; i++) want[i] = small_step(&eager, rows[i]);
    Run r = begin(small, 1e-2, PLAIN, true);
    for (int i = 0; i < MANY; i++)
        if (small_step(&r, rows[i]) != want[i]) fail_msg("step %d of %d rows differs", i, (int)rows[i]);
    assert_same_state("other shapes", &r, &eager);
    const TensorGraphInfo info = tensor_graph_info(r.graph);
    assert_int_equal(info.captured, 2);
    assert_true(info.replayed >= 5);
    end(&r), end(&eager);
    tensor_scope_close(scope);
}

/* Modes, memory, generator, options and gradients that change between steps. */
static void change(Run *r, int at)
{
    Tensor *weight = nn_parameters(r->net).item[0];
    if (at == 5) tensor_set_data(weight, tensor_mul_scalar(tensor_detach(weight), 0.5));
    if (at == 9) nn_train(r->net, false);
    if (at == 13) nn_train(r->net, true);
    if (at == 17) optim_options(r->opt, 0, OptimAdamArgs)->weight_decay = 0.3;
    if (at == 19)
        TENSOR_NO_GRAD
            tensor_mul_scalar_(weight, 0.9);
    if (at == 20) optim_load_state_dict(r->opt, optim_state_dict(r->opt));
    if (at == 24) optim_zero_grad(r->opt);
    if (at == 25) tensor_manual_seed(3);
    if (at == 26) tensor_set_grad(weight, tensor_ones_like(weight));
    if (at == 31) nn_child(r->net, "unused", nn_identity()); /* is run, too */
}

static void changes_between_steps(void **state)
{
    (void)state;
    enum { MANY = 36 };
    TensorScope scope = tensor_scope_open();
    double want[MANY];
    Run eager = begin(mlp, 1e-2, PLAIN, false), r;
    for (int round = 0; round < 2; round++) {
        if (round) r = begin(mlp, 1e-2, PLAIN, true);
        for (int i = 0; i < MANY; i++) {
            Run *now = round ? &r : &eager;
            Tensor *in[INPUTS] = { NULL };
            TensorScope one = tensor_scope_open();
            change(now, i);
            mlp_batch(in, test_device());
            const double loss = step(now, classifier_loss, in, 2);
            if (!round) want[i] = loss;
            else if (loss != want[i]) fail_msg("step %d: %.17g, eager %.17g", i, loss, want[i]);
            tensor_scope_close(one);
        }
    }
    assert_same_state("changes", &r, &eager);
    const TensorGraphInfo info = tensor_graph_info(r.graph);
    assert_int_equal(info.captured, 6);
    assert_true(info.replayed >= 10);
    end(&r), end(&eager);
    tensor_scope_close(scope);
}

/* Gradients of steps without zero_grad add up, in the graph's memory or in others'. */
static void gradients_add_up(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = floats(SHAPE(4, 3), test_device()), *w = floats(SHAPE(3), test_device());
    tensor_requires_grad_(w, true);
    Tensor *apart = tensor_requires_grad_(tensor_clone(tensor_detach(w)), true);
    TensorGraph *g = tensor_graph(test_device(), .warmup = 1);
    for (int i = 0; i < 12; i++) {
        TensorScope one = tensor_scope_open();
        tensor_backward(tensor_sum(tensor_square(tensor_mul(x, apart))));
        if (tensor_graph_begin(g, TENSORS(x)))
            tensor_backward(tensor_sum(tensor_square(tensor_mul(tensor_graph_input(g, 0), w))));
        assert_int_equal(tensor_graph_end(g), 0);
        assert_same_tensor("gradients", "a sum", tensor_grad(w), tensor_grad(apart));
        if (i == 5) tensor_set_grad(w, NULL), tensor_set_grad(apart, NULL);
        tensor_scope_close(one);
    }
    assert_true(tensor_graph_info(g).replayed >= 4);
    tensor_graph_free(g);
    tensor_scope_close(scope);
}

/* An f16 of 1 moves by no step of 2e-4, its f32 copy does. */
static void master_weights_of_a_captured_step(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p[2], *x = tensor_to(floats(SHAPE(4), test_device()), TENSOR_F16);
    Optimizer *opt[2];
    TensorGraph *g = tensor_graph(test_device());
    for (int k = 0; k < 2; k++) {
        p[k] = tensor_requires_grad_(tensor_ones_like(x), true);
        opt[k] = optim_sgd(TENSORS(p[k]), 1e-4);
    }
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < 2; k++) {
            if (i == 8) assert_int_equal(optim_set_master_weights(opt[k], true), 0);
            if (k && !tensor_graph_begin(g, TENSORS(x))) continue;
            optim_zero_grad(opt[k]);
            tensor_backward(tensor_sum(tensor_mul_scalar(p[k], 2)));
            optim_step(opt[k]);
        }
        assert_int_equal(tensor_graph_end(g), 0);
        assert_same_tensor("master weights", "a parameter", p[0], p[1]);
    }
    assert_true(tensor_graph_info(g).replayed >= 10);
    assert_true(tensor_item(tensor_max(tensor_detach(p[1]))) < 1);
    tensor_graph_free(g), optim_free(opt[0]), optim_free(opt[1]);
    tensor_scope_close(scope);
}

static Tensor *sum_of_squares(Tensor *const *w, int n)
{
    Tensor *sum = NULL;
    for (int k = 0; k < n; k++) {
        Tensor *one = tensor_sum(tensor_square(w[k]));
        sum = sum ? tensor_add(sum, one) : one;
    }
    return sum;
}

/* Two backward passes of a step add to gradients of several leaves that were there before it. */
static void gradients_add_up_twice(void **state)
{
    (void)state;
    enum { LEAVES = 3 };
    TensorScope scope = tensor_scope_open();
    Tensor *w[LEAVES], *apart[LEAVES];
    for (int k = 0; k < LEAVES; k++) {
        w[k] = tensor_requires_grad_(floats(SHAPE(k + 2), test_device()), true);
        apart[k] = tensor_requires_grad_(tensor_clone(tensor_detach(w[k])), true);
    }
    TensorGraph *g = tensor_graph(test_device());
    for (int i = 0; i < STEPS; i++) {
        TensorScope one = tensor_scope_open();
        for (int k = 0; k < 2; k++) tensor_backward(sum_of_squares(apart, LEAVES));
        if (tensor_graph_begin(g))
            for (int k = 0; k < 2; k++) tensor_backward(sum_of_squares(w, LEAVES));
        assert_int_equal(tensor_graph_end(g), 0);
        for (int k = 0; k < LEAVES; k++)
            assert_same_tensor("gradients", "a sum", tensor_grad(w[k]), tensor_grad(apart[k]));
        tensor_scope_close(one);
    }
    const TensorGraphInfo info = tensor_graph_info(g);
    if (info.captured != 1 || info.replayed < 3)
        fail_msg("%d captured, %d replayed: %s", (int)info.captured, (int)info.replayed, info.why);
    tensor_graph_free(g);
    tensor_scope_close(scope);
}

/* What the host computes and a replay would not see: it is never captured, or by key. */
static void numbers_of_the_code(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    TensorGraph *g = tensor_graph(test_device()), *by_key = tensor_graph(test_device());
    Tensor *x = floats(SHAPE(3), test_device()), *sum = tensor_zeros_like(x);
    double factor = 0;
    for (int i = 0; i < 8; i++) {
        if (tensor_graph_begin(g)) tensor_add_(sum, tensor_mul_scalar(x, i));
        assert_int_equal(tensor_graph_end(g), 0);
        if (tensor_graph_begin(by_key, .inputs = TENSORS(x), .key = i / 4))
            tensor_add_(sum, tensor_mul_scalar(tensor_graph_input(by_key, 0), i / 4));
        assert_int_equal(tensor_graph_end(by_key), 0);
        factor += i + i / 4;
    }
    assert_true(fabs(tensor_get(sum, DIMS(1)) - factor * tensor_get(x, DIMS(1))) < 1e-4);
    assert_int_equal(tensor_graph_info(g).eager, 8);
    assert_non_null(strstr(tensor_graph_info(g).why, "other options"));
    assert_int_equal(tensor_graph_info(by_key).captured, 2);
    assert_int_equal(tensor_graph_info(by_key).replayed, 2);
    tensor_graph_free(g), tensor_graph_free(by_key);
    tensor_scope_close(scope);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nets_train_alike),       cmocka_unit_test(mixed_precision_trains_alike),
        cmocka_unit_test(a_replay_is_one_launch), cmocka_unit_test(other_shapes),
        cmocka_unit_test(changes_between_steps),  cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(gradients_add_up_twice), cmocka_unit_test(master_weights_of_a_captured_step),
        cmocka_unit_test(numbers_of_the_code),
    };
    if (!test_device_opens()) return 1;
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    tensor_use_torch_dropout(false);
    const int failed = cmocka_run_group_tests_name("captured steps", tests, NULL, NULL);
    tensor_use_torch_dropout(true);
    return failed;
}
