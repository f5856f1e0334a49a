/* test_tape_life.c - what a tape for the whole thread must get right: only ancestors run and are freed, what
 * nobody can reach is gone, values that no backward reads have no storage, and releasing needs no stack. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>
#include "checker.h"
#include "sane.h"

static Tensor *layer(Tensor *x, Tensor *w) { return tensor_tanh(tensor_matmul(x, w)); }

/* ---- parts of a graph ------------------------------------------------------------------------ */

/* dcgan: the discriminator's losses run before the generator's, which shares the generator's forward. */
static void test_two_losses_that_share_a_graph(void **state)
{
    (void)state;
    Tensor *g = LEAF_MAT(2, .1, .2, .3, .4), *d = LEAF_MAT(2, .5, -.5), *z = MAT(1, 1, 2),
           *real = MAT(1, 3, 1);
    Tensor *fake = layer(z, g);
    int64_t generator = tensor_tape_length();
    DONE(tensor_backward(tensor_sum(layer(real, d))));
    DONE(tensor_backward(tensor_sum(layer(tensor_detach(fake), d))));
    assert_null(tensor_grad(g));
    assert_true(tensor_tape_length() >= generator);
    TENSOR_NO_GRAD
        OK(tensor_add_scaled_(d, tensor_grad(d), -0.1)); /* the step between */
    Tensor *loss = tensor_sum(layer(fake, d));
    DONE(tensor_backward(loss));
    Tensor *again = tensor_gradients(tensor_sum(layer(layer(z, g), d)), g);
    assert_tensor_close(tensor_grad(g), again, 1e-12, 0);
}

static void test_only_ancestors_run_and_are_freed(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *w = LEAF(3, 4);
    Tensor *a = tensor_sum(tensor_exp(x)), *b = tensor_sum(tensor_exp(w)),
           *later = tensor_mul(tensor_exp(x), w);
    DONE(tensor_backward(a));
    assert_null(tensor_grad(w));
    DONE(tensor_backward(b));
    DONE(tensor_backward(tensor_sum(later)));
    assert_values(tensor_grad(w), exp(3) + exp(1), exp(4) + exp(2));
    assert_values(tensor_grad(x), exp(1) * 4, exp(2) * 5);
}

static void test_unreachable_entries_are_released(void **state)
{
    (void)state;
    Tensor *w = LEAF_MAT(2, 1, 2, 3, 4), *x = MAT(1, 1, 2);
    for (int i = 0; i < 5; i++) { /* evaluation without no_grad, no backward at all */
        TensorScope scope = tensor_scope_open();
        Tensor *y = x;
        for (int k = 0; k < 10; k++) y = layer(y, w);
        assert_int_equal(tensor_tape_length(), 20);
        assert_tape_sane();
        tensor_scope_close(scope);
        assert_int_equal(tensor_tape_length(), 0);
        assert_int_equal(tensor_tape_bytes(), 0);
    }
    assert_int_equal(w->holds, 1);
}

static void test_entries_live_as_long_as_a_result(void **state)
{
    (void)state;
    Tensor *x = LEAF(2);
    TensorScope scope = tensor_scope_open();
    Tensor *y = tensor_scope_return(scope, tensor_mul(tensor_exp(tensor_sin(x)), x));
    assert_int_equal(tensor_tape_length(), 3);
    scope = tensor_scope_open();
    Tensor *junk = tensor_cos(tensor_cos(y));
    assert_non_null(junk);
    tensor_scope_close(scope);
    assert_int_equal(tensor_tape_length(), 3);
    DONE(tensor_backward(y));
    assert_values(tensor_grad(x), exp(sin(2)) * (1 + 2 * cos(2)));
}

static void test_entries_in_the_middle_go_first(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *kept[100];
    for (int i = 0; i < 100; i++) {
        TensorScope scope = tensor_scope_open();
        for (int k = 0; k < 50; k++) tensor_exp(x);
        kept[i] = tensor_scope_return(scope, tensor_mul_scalar(x, i));
    }
    assert_int_equal(tensor_tape_length(), 100);
    for (int i = 0; i < 3000; i++) { /* more than the array first holds: it is squeezed */
        TensorScope scope = tensor_scope_open();
        tensor_exp(x);
        tensor_scope_close(scope);
    }
    assert_tape_sane();
    DONE(tensor_backward_many(TENSOR_LIST(kept, 100)));
    assert_values(tensor_grad(x), 99 * 50);
}

static void test_truncated_bptt(void **state)
{
    (void)state;
    Tensor *w = LEAF_MAT(2, .5, .1, .2, .3), *h = tensor_retain(MAT(1, 1, 1));
    int64_t length = 0;
    for (int chunk = 0; chunk < 5; chunk++) {
        TensorScope scope = tensor_scope_open();
        Tensor *state_now = tensor_detach(h);
        for (int t = 0; t < 8; t++) state_now = layer(state_now, w);
        DONE(tensor_backward(tensor_sum(state_now)));
        tensor_release(h);
        h = tensor_retain(tensor_detach(state_now));
        tensor_scope_close(scope);
        if (chunk) assert_int_equal(tensor_tape_length(), length);
        length = tensor_tape_length();
    }
    assert_int_equal(length, 0);
    tensor_release(h);
}

/* actor-critic: one graph a step of the environment, summed at the end of the episode */
static void test_many_small_graphs_summed(void **state)
{
    (void)state;
    Tensor *w = LEAF(0.5), *losses[200];
    for (int i = 0; i < 200; i++) {
        TensorScope scope = tensor_scope_open();
        losses[i] =
            tensor_scope_return(scope, tensor_mul_scalar(tensor_square(tensor_mul_scalar(w, i)), 0.5));
    }
    DONE(tensor_backward(tensor_sum(tensor_stack(TENSOR_LIST(losses, 64)))));
    Tensor *sum = tensor_scalar(0, TENSOR_F64);
    for (int i = 64; i < 200; i++) sum = tensor_add(sum, losses[i]);
    DONE(tensor_backward(sum));
    double want = 0;
    for (int i = 0; i < 200; i++) want += 0.5 * i * i;
    assert_values(tensor_grad(w), want);
}

static void test_shared_module_and_tied_weights(void **state)
{
    (void)state;
    Tensor *w = LEAF_MAT(2, 1, 2, 3, 4), *x = MAT(1, 1, -1), *y = MAT(1, 2, 1);
    DONE(tensor_backward(tensor_sum(tensor_mul(tensor_matmul(x, w), tensor_matmul(y, w))))); /* siamese */
    assert_values(tensor_grad(w), 5 - 4, 8 - 4, -5 - 2, -8 - 2);
    DONE(tensor_set_grad(w, NULL));
    DONE(tensor_backward(
        tensor_sum(tensor_matmul(tensor_matmul(x, w), tensor_transpose(w, 0, 1))))); /* tied */
    assert_values(tensor_grad(w), 4 - 2, 6 - 2, -4 - 2, -6 - 2);
}

static void test_gradient_through_frozen_parameters(void **state)
{
    (void)state;
    Tensor *w = MAT(2, 1, 2, 3, 4), *x = LEAF_MAT(1, .1, .2);
    DONE(tensor_backward(tensor_sum(tensor_matmul(x, w))));
    assert_values(tensor_grad(x), 3, 7);
    assert_null(tensor_grad(w));
    assert_false(tensor_requires_grad(w));
}

static void test_leaf_that_dies_before_backward(void **state)
{
    (void)state;
    Tensor *w = LEAF(3);
    TensorScope scope = tensor_scope_open();
    Tensor *gone = LEAF(2), *y = tensor_scope_return(scope, tensor_mul(gone, w));
    DONE(tensor_backward(y, .retain_graph = true));
    assert_values(tensor_grad(w), 2);
    Tensor *g = OK(tensor_gradients(y, w, .create_graph = true));
    assert_values(g, 2);
}

static void test_requires_grad_changed_after_recording(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *w = LEAF(3), *y = tensor_mul(x, w);
    OK(tensor_requires_grad_(w, false));
    DONE(tensor_backward(y));
    assert_values(tensor_grad(x), 3);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void test_unread_values_lose_their_storage(void **state)
{
    (void)state;
    enum { N = 1 << 16, BYTES = N * 4 };
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(N), TENSOR_F32), true), *y;
    int64_t before = tensor_memory().in_use;
    TensorScope scope = tensor_scope_open();
    y = x;
    for (int i = 0; i < 10; i++) y = tensor_add_scalar(y, 1); /* reads nothing in backward */
    y = tensor_scope_return(scope, y);
    assert_in_range(tensor_memory().in_use - before, BYTES, 2 * BYTES);
    assert_true(tensor_tape_bytes() < 10 * 1024);
    scope = tensor_scope_open();
    for (int i = 0; i < 10; i++) y = tensor_sigmoid(y); /* reads each result */
    y = tensor_scope_return(scope, y);
    assert_in_range(tensor_tape_bytes(), 10 * BYTES, 11 * BYTES);
    int64_t full = tensor_memory().in_use;
    DONE(tensor_backward(tensor_sum(y)));
    assert_true(tensor_tape_bytes() < 20 * 1024);
    assert_true(tensor_memory().in_use < full - 7 * BYTES); /* .grad came, nine results went */
}

static void test_only_what_is_wanted_is_kept(void **state)
{
    (void)state;
    enum { N = 1 << 16, BYTES = N * 4 };
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(N), TENSOR_F32), true),
           *c = tensor_ones(SHAPE(N), TENSOR_F32);
    Tensor *y = tensor_mul(x, c); /* x wants a gradient: c is kept, x is not */
    assert_in_range(tensor_tape_bytes(), BYTES, BYTES + 4096);
    assert_int_equal(y->entry->saves, 1);
    assert_ptr_equal(y->entry->saved[0].storage, c->storage);
}

static void test_interior_gradients_go_with_the_sweep(void **state)
{
    (void)state;
    enum { N = 1 << 16, BYTES = N * 4 };
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(N), TENSOR_F32), true), *y = x;
    for (int i = 0; i < 20; i++) y = tensor_mul_scalar(y, 1.5);
    Tensor *loss = tensor_sum(y);
    tensor_memory_reset_peak();
    int64_t before = tensor_memory().in_use;
    DONE(tensor_backward(loss));
    assert_true(tensor_memory().peak - before < 4 * BYTES);
    assert_true(tensor_memory().in_use - before < 2 * BYTES);
}

/* ---- deep graphs ----------------------------------------------------------------------------- */

enum { DEEP = UNDER_CHECKER ? 200000 : 1000000 }; /* its stack has 3 bytes, or not one, for each */

static void *deep_chain(void *done)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_requires_grad_(tensor_scalar(1, TENSOR_F32), true), *y = tensor_retain(x);
    for (int i = 0; i < DEEP; i++) {
        TensorScope inner = tensor_scope_open();
        Tensor *next = tensor_retain(tensor_add_scalar(y, 1));
        tensor_scope_close(inner);
        tensor_release(y);
        y = next;
    }
    bool ok =
        y && tensor_tape_length() == DEEP && tensor_backward(y) == 0 && tensor_item(tensor_grad(x)) == 1;
    Tensor *held = tensor_retain(tensor_exp(y));
    tensor_release(y);
    tensor_release(held); /* all entries go here, in a loop */
    tensor_scope_close(scope);
    *(bool *)done = ok && tensor_tape_length() == 0 && !tensor_error();
    return NULL;
}

static void test_deep_graph_needs_no_stack(void **state)
{
    (void)state;
    pthread_attr_t attr;
    pthread_t thread;
    bool done = false;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 512 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, deep_chain, &done), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
    assert_true(done);
}

static void test_deep_graph_of_gradients(void **state)
{
    (void)state;
    Tensor *x = LEAF(1.0);
    TensorScope scope = tensor_scope_open();
    Tensor *y = x;
    for (int i = 0; i < 20000; i++) y = tensor_mul_scalar(tensor_sin(y), 1);
    Tensor *g = OK(tensor_gradients(y, x, .create_graph = true));
    DONE(tensor_backward(g));
    tensor_scope_close(scope);
    assert_int_equal(tensor_tape_length(), 0);
    assert_non_null(tensor_grad(x));
}

static void test_long_training_stays_level(void **state)
{
    (void)state;
    Tensor *w = LEAF_MAT(2, .5, .1, .2, .3), *x = MAT(1, 1, 2);
    int64_t live = 0, in_use = 0;
    for (int step = 0; step < 2000; step++) {
        TensorScope scope = tensor_scope_open();
        DONE(tensor_backward(tensor_sum(layer(layer(x, w), w))));
        TENSOR_NO_GRAD
            OK(tensor_add_scaled_(w, tensor_grad(w), -0.01));
        DONE(tensor_set_grad(w, NULL));
        tensor_scope_close(scope);
        if (step == 10) live = tensor_live_count(), in_use = tensor_memory().in_use;
    }
    assert_int_equal(tensor_live_count(), live);
    assert_int_equal(tensor_memory().in_use, in_use);
}

static void test_bytes_count_a_storage_once(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(1000), TENSOR_F64), true);
    int64_t before = tensor_tape_bytes();
    Tensor *y = tensor_square(x);
    int64_t one = tensor_tape_bytes() - before;
    Tensor *z = tensor_square(x);
    int64_t two = tensor_tape_bytes() - before;
    assert_true(one >= 8000 && one < 9000);
    assert_true(two > one && two < 9000); /* x is kept twice, in one storage */
    assert_non_null(tensor_add(y, z));
}

/* ---- .inputs: gradients of these alone --------------------------------------------------------- */

static void backward_fills_its_inputs_alone(void **state)
{
    (void)state;
    Tensor *a = LEAF(1, 2), *b = LEAF(3, 4), *y = tensor_mul(a, b), *z = tensor_square(y);
    tensor_retain_grad(z);
    for (int twice = 0; twice < 2; twice++)
        DONE(tensor_backward(tensor_sum(z), .inputs = TENSORS(b, y, y), .retain_graph = true));
    assert_null(tensor_grad(a));
    assert_null(tensor_grad(z));
    assert_values(tensor_grad(b), 2 * 6, 2 * 32); /* 2 y a, twice */
    assert_values(tensor_grad(y), 2 * 6, 2 * 16);
    DONE(tensor_backward_many(TENSORS(z, b), TENSORS(VEC(1, 1), VEC(1, 1)), .inputs = TENSORS(a, z)));
    assert_values(tensor_grad(a), 18, 64);
    assert_values(tensor_grad(z), 1, 1);
    assert_values(tensor_grad(b), 12, 64);
    Tensor *other = LEAF(5), *alone = tensor_sum(tensor_square(b));
    DONE(tensor_backward(alone, .inputs = TENSORS(other))); /* does not lead there */
    assert_null(tensor_grad(other));
    assert_status_error(tensor_backward(tensor_sum(b), .inputs = TENSORS(VEC(1, 1))), TENSOR_EGRAD);
    assert_status_error(tensor_backward(tensor_sum(b), .inputs = { 2, NULL }), TENSOR_EVALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_losses_that_share_a_graph),
        TEST(test_only_ancestors_run_and_are_freed),
        TEST(test_unreachable_entries_are_released),
        TEST(test_entries_live_as_long_as_a_result),
        TEST(test_entries_in_the_middle_go_first),
        TEST(test_truncated_bptt),
        TEST(test_many_small_graphs_summed),
        TEST(test_shared_module_and_tied_weights),
        TEST(test_gradient_through_frozen_parameters),
        TEST(test_leaf_that_dies_before_backward),
        TEST(test_requires_grad_changed_after_recording),
        TEST(test_unread_values_lose_their_storage),
        TEST(test_only_what_is_wanted_is_kept),
        TEST(test_interior_gradients_go_with_the_sweep),
        TEST(test_deep_graph_needs_no_stack),
        TEST(test_deep_graph_of_gradients),
        TEST(test_long_training_stays_level),
        TEST(test_bytes_count_a_storage_once),
        TEST(backward_fills_its_inputs_alone),
    };
    setrlimit(RLIMIT_STACK, &(struct rlimit){ 8 << 20, 8 << 20 });
    return cmocka_run_group_tests_name("life of the tape", tests, NULL, NULL);
}
