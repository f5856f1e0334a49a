/* test_lent.c - references that the library lends: to scopes, gradients, views.  The user's mistakes and a
 * full stack of scopes take none of them away. */
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

/* Borrows x until only so many places are left before the scope stack must grow. */
static void fill_scope_stack(Tensor *x, int left)
{
    int places = 0;
    TensorScope scope = tensor_scope_open();
    tensor_debug_fail_allocation(1, true);
    while (borrow(x)) places++;
    tensor_debug_fail_allocation(0, false);
    assert_says(TENSOR_ENOMEM, "scope");
    tensor_scope_close(scope);
    for (int i = 0; i < places - left; i++) borrow(x);
}

/* The leaf's gradient comes from a non-dense one, which is copied; the copy has no place on the stack. */
static void backward_without_room_on_the_scope_stack(void **state)
{
    (void)state;
    for (int left = 0; left < 12; left++)
        for (int fails = 1; fails < 40; fails++) {
            TensorScope scope = tensor_scope_open();
            Tensor *w = LEAF_MAT(2, 1, 2, 3, 4), *c = MAT(2, 1, 2, 3, 4);
            Tensor *y = tensor_transpose(tensor_expand(tensor_sum(w, .dim = 0), SHAPE(2, 2)), 0, 1);
            fill_scope_stack(c, left);
            tensor_debug_fail_allocation(fails, true);
            int status = tensor_backward(y, c);
            tensor_debug_fail_allocation(0, false);
            if (status) assert_says(TENSOR_ENOMEM, "");
            else assert_values(tensor_grad(w), 3, 7, 3, 7);
            tensor_scope_close(scope);
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
