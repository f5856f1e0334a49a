/* test_lent.c - references that the library lends: to scopes, gradients, views.  The user's mistakes and a
 * full stack of scopes take none of them away. */
#include <pthread.h>
#include <tapegrad/debug.h>
#include "sane.h"

/* ---- gradients belong to the library --------------------------------------------------------- */

static Tensor *releases(Tensor *grad, void *ctx)
{
    (void)ctx;
    tensor_release(grad);
    return NULL;
}

static void hook_that_releases_its_gradient_is_refused(void **state)
{
    (void)state;
    for (int on_leaf = 0; on_leaf < 2; on_leaf++) {
        Tensor *w = LEAF(1, 2), *y = tensor_mul_scalar(w, 3), *z = tensor_add(y, y);
        tensor_register_hook(on_leaf ? w : y, releases, NULL);
        assert_int_equal(tensor_backward(tensor_sum(z)), -1);
        assert_says(TENSOR_EVALUE, "release only what you retained");
        assert_null(tensor_grad(w));
        assert_null(tensor_gradients(tensor_sum(tensor_mul(y, y)), w));
        assert_says(TENSOR_EVALUE, "release only what you retained");
    }
}

static void gradient_and_base_cannot_be_released(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2), *base, *view;
    tensor_backward(tensor_sum(tensor_square(w)));
    tensor_release(tensor_grad(w));
    assert_says(TENSOR_EVALUE, "release only what you retained");
    assert_values(tensor_grad(w), 2, 4);
    TensorScope scope = tensor_scope_open();
    base = tensor_mul_scalar(w, 2), view = tensor_retain(tensor_narrow(base, 0, 0, 1));
    tensor_scope_close(scope);
    tensor_release(base);
    assert_says(TENSOR_EVALUE, "release only what you retained");
    assert_values(view, 2);
    tensor_release(view);
}

static void own_gradient_is_refused(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2);
    assert_int_equal(tensor_set_grad(w, w), -1);
    assert_says(TENSOR_EVALUE, "its own gradient");
    assert_null(tensor_grad(w));
}

/* A thread has a small stack of its own: it is filled but for `left` places, and cannot grow. */
typedef struct Trial {
    int left, fails;
    bool good;
} Trial;

static void fill_scope_stack(Tensor *x, int left)
{
    int places = 0;
    TensorScope scope = tensor_scope_open();
    tensor_debug_fail_allocation(1, true);
    while (borrow(x)) places++;
    tensor_debug_fail_allocation(0, false);
    tensor_error_clear();
    tensor_scope_close(scope);
    for (int i = 0; i < places - left; i++) borrow(x);
}

/* The gradient that reaches the leaf is not dense: it is copied, and the copy needs a place, too. */
static void *sweep_without_room(void *ctx)
{
    Trial *t = ctx;
    TensorScope scope = tensor_scope_open();
    Tensor *w = LEAF_MAT(2, 1, 2, 3, 4), *c = MAT(2, 1, 2, 3, 4), *want = MAT(2, 3, 7, 3, 7);
    Tensor *y = tensor_transpose(tensor_expand(tensor_sum(w, .dim = 0), SHAPE(2, 2)), 0, 1);
    fill_scope_stack(c, t->left);
    tensor_debug_fail_allocation(t->fails, true);
    int status = tensor_backward(y, c);
    tensor_debug_fail_allocation(0, false);
    t->good = status ? tensor_error_code() == TENSOR_ENOMEM && !w->grad : !tensor_error() && w->grad;
    tensor_error_clear();
    if (!status && t->good) t->good = tensor_equal(w->grad, want);
    tensor_scope_close(scope);
    return NULL;
}

static void backward_without_room_on_the_scope_stack(void **state)
{
    (void)state;
    for (int left = 0; left < 12; left++)
        for (int fails = 1; fails < 40; fails++) {
            pthread_t thread;
            Trial t = { .left = left, .fails = fails };
            assert_int_equal(pthread_create(&thread, NULL, sweep_without_room, &t), 0);
            pthread_join(thread, NULL);
            if (!t.good) FAILS("%d places left, request %d fails", left, fails);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hook_that_releases_its_gradient_is_refused),
        TEST(gradient_and_base_cannot_be_released),
        TEST(own_gradient_is_refused),
        TEST(backward_without_room_on_the_scope_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
