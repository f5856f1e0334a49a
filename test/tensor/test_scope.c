/* test_scope.c - who owns what: scopes, retain and release, the root scope, threads. */
#include <pthread.h>
#include "sane.h"

static int64_t live(void) { return tensor_live_count(); }

static void test_scopes_nest(void **state)
{
    (void)state;
    int64_t n = live();
    TensorScope outer = tensor_scope_open();
    Tensor *a = VEC(1);
    TensorScope inner = tensor_scope_open();
    VEC(2), VEC(3);
    assert_int_equal(live(), n + 3);
    tensor_scope_close(inner);
    assert_int_equal(live(), n + 1);
    assert_values(a, 1);
    assert_sane(a);
    tensor_scope_close(outer);
    assert_int_equal(live(), n);
}

static void leave_early(void)
{
    TensorScope inner = tensor_scope_open();
    VEC(1);
    TensorScope deeper = tensor_scope_open();
    VEC(2);
    (void)inner, (void)deeper; /* an early return: neither is closed */
}

static void test_outer_scope_closes_the_inner_ones(void **state)
{
    (void)state;
    int64_t n = live();
    TensorScope outer = tensor_scope_open();
    leave_early();
    assert_int_equal(live(), n + 2);
    tensor_scope_close(outer);
    assert_int_equal(live(), n);
    TensorScope next = tensor_scope_open();
    VEC(1);
    tensor_scope_close(next);
    assert_int_equal(live(), n);
}

static void test_closing_twice_does_nothing(void **state)
{
    (void)state;
    TensorScope a = tensor_scope_open();
    VEC(1);
    tensor_scope_close(a);
    TensorScope b = tensor_scope_open(); /* may have a's place */
    Tensor *y = VEC(7);
    tensor_scope_close(a);
    assert_values(y, 7);
    TensorScope inner = tensor_scope_open();
    tensor_scope_close(b); /* closes inner as well */
    int64_t n = live();
    tensor_scope_close(inner), tensor_scope_close(b);
    assert_int_equal(live(), n);
}

static void test_return_hands_to_the_scope_around(void **state)
{
    (void)state;
    int64_t n = live();
    TensorScope outer = tensor_scope_open(), inner = tensor_scope_open();
    Tensor *y = tensor_scope_return(inner, tensor_add(VEC(1), VEC(2)));
    assert_int_equal(live(), n + 1);
    assert_values(y, 3);
    assert_int_equal(references(y), 1);
    tensor_scope_close(outer);
    assert_int_equal(live(), n);
}

static void test_return_of_what_is_not_the_scopes(void **state)
{
    (void)state;
    Tensor *x = VEC(5);
    int64_t n = live();
    TensorScope scope = tensor_scope_open();
    VEC(1);
    assert_ptr_equal(tensor_scope_return(scope, x), x); /* the identity, as a module in eval mode */
    assert_int_equal(live(), n);
    assert_values(x, 5);
    assert_int_equal(references(x), 2);
    scope = tensor_scope_open();
    assert_null(tensor_scope_return(scope, NULL));
    scope = tensor_scope_open();
    tensor_scope_close(scope);
    assert_ptr_equal(tensor_scope_return(scope, x), x); /* closed before */
}

static void test_retain_and_release(void **state)
{
    (void)state;
    int64_t n = live();
    TensorScope scope = tensor_scope_open();
    Tensor *kept = tensor_retain(VEC(1, 2));
    assert_ptr_equal(tensor_retain(kept), kept);
    tensor_scope_close(scope);
    assert_int_equal(live(), n + 1);
    tensor_release(kept);
    assert_values(kept, 1, 2);
    tensor_release(kept);
    assert_int_equal(live(), n);
    assert_null(tensor_retain(NULL));
    tensor_release(NULL);
}

static void test_view_keeps_the_storage(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *row = tensor_scope_return(scope, tensor_select(MAT(2, 1, 2, 3, 4), 0, 1));
    assert_values(row, 3, 4);
    assert_sane(row);
}

static void test_many_scopes_and_tensors(void **state)
{
    (void)state;
    int64_t n = live();
    TensorScope outer = tensor_scope_open();
    for (int i = 0; i < 5000; i++) {
        tensor_scope_open();
        tensor_scalar(i, TENSOR_F32);
    }
    assert_int_equal(live(), n + 5000);
    tensor_scope_close(outer);
    assert_int_equal(live(), n);
}

static void test_grad_belongs_to_the_leaf_and_the_scope(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *g;
    DONE(tensor_backward(tensor_sum(x)));
    TensorScope scope = tensor_scope_open();
    g = tensor_grad(x);
    DONE(tensor_set_grad(x, NULL));
    assert_values(g, 1, 1); /* still the scope's */
    assert_int_equal(references(g), 1);
    tensor_scope_close(scope);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *uses_the_root_scope(void *result)
{
    Tensor *x = VEC(1, 2, 3); /* no scope is open: the thread's root scope */
    Tensor *y = tensor_mul(x, x);
    tensor_scope_open();
    tensor_sum(y);
    *(double *)result = tensor_item(tensor_sum(y));
    return NULL; /* all goes with the thread */
}

static void test_root_scope_of_a_thread(void **state)
{
    (void)state;
    int64_t n = live();
    pthread_t thread;
    double sum = 0;
    VEC(1);
    assert_int_equal(pthread_create(&thread, NULL, uses_the_root_scope, &sum), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(sum == 14);
    assert_int_equal(live(), n + 1);
}

static void *opens_and_leaves(void *tensor)
{
    tensor_scope_open();
    Tensor **x = tensor;
    *x = tensor_retain(VEC(4, 5));
    return NULL;
}

static void test_retained_tensor_outlives_its_thread(void **state)
{
    (void)state;
    pthread_t thread;
    Tensor *x = NULL;
    assert_int_equal(pthread_create(&thread, NULL, opens_and_leaves, &x), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_values(x, 4, 5);
    tensor_release(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_scopes_nest),
        TEST(test_outer_scope_closes_the_inner_ones),
        TEST(test_closing_twice_does_nothing),
        TEST(test_return_hands_to_the_scope_around),
        TEST(test_return_of_what_is_not_the_scopes),
        TEST(test_retain_and_release),
        TEST(test_view_keeps_the_storage),
        TEST(test_many_scopes_and_tensors),
        TEST(test_grad_belongs_to_the_leaf_and_the_scope),
        TEST(test_root_scope_of_a_thread),
        TEST(test_retained_tensor_outlives_its_thread),
    };
    return cmocka_run_group_tests_name("scopes", tests, NULL, NULL);
}
