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

/* ---- a gradient that nobody else has is written over ------------------------------------------- */

static const void *seen[2];

static Tensor *sees(Tensor *grad, void *ctx)
{
    seen[ctx != NULL] = tensor_data_ptr(grad);
    return NULL;
}

static Tensor *kept;

static Tensor *keeps(Tensor *grad, void *ctx)
{
    (void)ctx;
    kept = tensor_retain(grad);
    return NULL;
}

static void gradient_of_an_elementwise_op_takes_the_place_of_the_one_before(void **state)
{
    (void)state;
    Tensor *x = LEAF(-1, 2), *h = tensor_relu(x), *y = tensor_mul_scalar(h, 3), *c = VEC(5, 7);
    tensor_register_hook(y, sees, NULL), tensor_register_hook(h, sees, &kept);
    assert_int_equal(tensor_backward(tensor_mul_scalar(y, 2), c), 0);
    assert_values(c, 5, 7);
    assert_ptr_equal(seen[0], seen[1]);
    assert_values(tensor_grad(x), 0, 42);
}

static void gradients_that_others_have_stay(void **state)
{
    (void)state;
    Tensor *x = LEAF(-1, 2), *h = tensor_relu(x), *y = tensor_mul_scalar(h, 3), *c = VEC(5, 7), *found[3];
    tensor_register_hook(y, keeps, NULL);
    assert_int_equal(tensor_backward(y, c, .retain_graph = true), 0);
    assert_values(kept, 5, 7);
    tensor_release(kept);
    tensor_retain_grad(h), tensor_retain_grad(y);
    assert_int_equal(tensor_backward(tensor_mul_scalar(y, 2), c, .retain_graph = true), 0);
    assert_values(tensor_grad(h), 30, 42);
    assert_values(tensor_grad(y), 10, 14);
    tensor_release(kept);
    assert_int_equal(tensor_gradients_many(TENSORS(tensor_mul_scalar(y, 2)), TENSORS(x, h, y), found,
                                           .grad_outputs = TENSORS(c), .retain_graph = true),
                     0);
    assert_values(found[0], 0, 42);
    assert_values(found[1], 30, 42);
    assert_values(found[2], 10, 14);
    tensor_release(kept);
}

static Tensor *table_of(Tensor *grad, void *ctx)
{
    (void)grad;
    return tensor_from_blob(ctx, SHAPE(2), TENSOR_F64, NULL, NULL);
}

/* A hook's gradient lies in the program's memory and passes an addition: it is neither written over, nor
 * added to, nor kept. */
static void memory_of_the_program_stays(void **state)
{
    (void)state;
    double table[] = { 5, 7 };
    for (int times = 1; times < 3; times++) {
        Tensor *x = LEAF(-1, 2), *z = LEAF(1, 1), *h = tensor_mul_scalar(x, 3);
        Tensor *up[] = { tensor_add_scalar(h, 1), tensor_add_scalar(z, 1) };
        for (int i = 0; i < 2; i++) tensor_register_hook(up[i], table_of, table);
        assert_int_equal(tensor_backward(tensor_sum(tensor_add(tensor_add(up[0], up[1]), h))), 0);
        assert_values(tensor_grad(x), 18, 24);
        assert_values(tensor_grad(z), 5, 7);
        tensor_mul_scalar_(tensor_grad(z), 2);
        assert_true(table[0] == 5 && table[1] == 7);
        assert_int_equal(tensor_backward(tensor_sum(tensor_mul_scalar(up[0], 1))), 0);
        assert_true(table[0] == 5 && table[1] == 7);
    }
}

/* Of one operand the gradient is dy itself, or both need it. */
static void gradient_that_another_operand_needs_stays(void **state)
{
    (void)state;
    Tensor *a = LEAF(1, 2), *b = LEAF(3, 4);
    Tensor *y = tensor_mul_scalar(tensor_sub(tensor_relu(a), tensor_relu(b)), 2);
    assert_int_equal(tensor_backward(tensor_sum(y)), 0);
    assert_values(tensor_grad(a), 2, 2);
    assert_values(tensor_grad(b), -2, -2);
    assert_int_equal(tensor_backward(tensor_sum(tensor_square(tensor_mul(a, b)))), 0);
    assert_values(tensor_grad(a), 2 + 18, 2 + 64);
    assert_values(tensor_grad(b), -2 + 6, -2 + 32);
    assert_int_equal(tensor_backward(tensor_sum(tensor_square(tensor_mul(a, a)))), 0);
    assert_values(tensor_grad(a), 20 + 4, 66 + 32);
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
        TEST(gradient_of_an_elementwise_op_takes_the_place_of_the_one_before),
        TEST(gradients_that_others_have_stay),
        TEST(memory_of_the_program_stays),
        TEST(gradient_that_another_operand_needs_stays),
        TEST(backward_without_room_on_the_scope_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
