/* test_ownership.c - what belongs to whom, and what an error says of it: mistakes that once went unseen. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>

static void test_release_of_what_a_scope_owns(void **state)
{
    (void)state;
    int64_t before = tensor_live_count();
    TensorScope scope = tensor_scope_open();
    Tensor *a = tensor_ones(SHAPE(2), TENSOR_F32);
    tensor_release(a);
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
    Tensor *b = tensor_full(SHAPE(3), 7, TENSOR_F32);
    assert_ptr_not_equal(a, b);
    tensor_retain(a);
    tensor_release(a);
    assert_null(tensor_error());
    tensor_scope_close(scope);
    assert_int_equal(tensor_live_count(), before);
}

static int to_same(OpCall *c) { return op_set_result(c, 0, tensor_clone(op_input(c, 0))); }

static int no_rule(OpCall *c)
{
    (void)c;
    return 0;
}

static TensorShape wrong; /* of the gradient that this backward makes */

static int wrong_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)c, (void)dy;
    dx[0] = tensor_ones(wrong, TENSOR_F32);
    return dx[0] ? 0 : -1;
}

static void test_gradients_of_a_wrong_shape(void **state)
{
    (void)state;
    static const TensorOp op = {
        .name = "wrong", .arity = 1, .shape = no_rule, .forward = to_same, .backward = wrong_backward
    };
    TensorShape shapes[] = { SHAPE(3), SHAPE(12), SHAPE(4, 3), SHAPE() };
    for (int recorded = 0; recorded < 2; recorded++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            TensorScope scope = tensor_scope_open();
            Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(3, 4), TENSOR_F32), true);
            wrong = shapes[i];
            assert_status_error(
                tensor_backward(tensor_sum(tensor_apply(&op, &w, 1, NULL)), .create_graph = recorded),
                TENSOR_ESHAPE);
            assert_null(tensor_grad(w));
            tensor_scope_close(scope);
        }
}

static void test_retained_gradients_are_their_own(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *u = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true);
    Tensor *e = tensor_mul_scalar(u, 1), *c = tensor_full(SHAPE(2), 5, TENSOR_F32);
    tensor_retain_grad(e);
    assert_int_equal(tensor_backward(e, c), 0);
    TENSOR_NO_GRAD { tensor_zero_(tensor_grad(e)); }
    assert_true(tensor_get(c, DIMS(0)) == 5);
    assert_true(tensor_get(tensor_grad(u), DIMS(0)) == 5);

    Tensor *p = tensor_add_scalar(u, 1), *q = tensor_add_scalar(p, 1);
    tensor_retain_grad(p), tensor_retain_grad(q);
    tensor_backward(tensor_sum(q));
    TENSOR_NO_GRAD { tensor_zero_(tensor_grad(q)); }
    assert_true(tensor_get(tensor_grad(p), DIMS(1)) == 1);
    tensor_scope_close(scope);
}

static int leaves_early(void)
{
    TENSOR_NO_GRAD {
        TENSOR_ENABLE_GRAD {
            if (tensor_grad_enabled()) return 1;
        }
    }
    return 0;
}

static void test_grad_mode_is_restored_however_a_block_is_left(void **state)
{
    (void)state;
    assert_int_equal(leaves_early(), 1);
    assert_true(tensor_grad_enabled());
    for (int i = 0; i < 3; i++)
        TENSOR_NO_GRAD {
            if (i == 1) break;
        }
    assert_true(tensor_grad_enabled());
}

static void test_overwritten_value_names_both_ops(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F32), true), *y = tensor_tanh(x);
    tensor_mul_scalar_(y, 2);
    assert_int_equal(tensor_backward(tensor_sum(y)), -1);
    assert_non_null(strstr(tensor_error(), "tensor_tanh"));
    assert_non_null(strstr(tensor_error(), "by mul_scalar"));
    assert_non_null(strstr(tensor_error(), "test_ownership.c"));
    tensor_error_clear();
    tensor_scope_close(scope);
}

static void test_errors_in_a_network_name_the_layer(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *net = nn_sequential(nn_linear(3, 4), nn_sequential(nn_relu(), nn_linear(5, 2)));
    assert_null(nn_forward(net, tensor_ones(SHAPE(2, 3), TENSOR_F32)));
    assert_non_null(strstr(tensor_error(), "\n    in 1.1 (Linear)"));
    tensor_error_clear();
    nn_free(net);
    tensor_scope_close(scope);
}

static void test_batches_end_at_the_first_error(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    DataLoader *loader =
        data_loader(data_tensors(tensor_ones(SHAPE(10, 2), TENSOR_F32), NULL), .batch_size = 2);
    assert_non_null(data_next(loader));
    tensor_fail(TENSOR_EUSER, "test", "on purpose");
    assert_null(data_next(loader));
    tensor_error_clear();
    assert_non_null(data_next(loader));
    data_loader_free(loader);
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_release_of_what_a_scope_owns),
        cmocka_unit_test(test_gradients_of_a_wrong_shape),
        cmocka_unit_test(test_retained_gradients_are_their_own),
        cmocka_unit_test(test_grad_mode_is_restored_however_a_block_is_left),
        cmocka_unit_test(test_overwritten_value_names_both_ops),
        cmocka_unit_test(test_errors_in_a_network_name_the_layer),
        cmocka_unit_test(test_batches_end_at_the_first_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
