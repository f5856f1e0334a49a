/* test_set_data.c - a tensor that changes its storage in place: who sees it, who does not, what is refused.
 */
#include "clean.h"
#include <tapegrad/cmocka.h>

static Tensor *vector(double a, double b, TensorDtype dtype)
{
    return tensor_to(tensor_from_data((double[]){ a, b }, SHAPE(2), TENSOR_F64), dtype);
}
static Tensor *leaf(double a, double b) { return tensor_requires_grad_(vector(a, b, TENSOR_F32), true); }

static void assert_values(const Tensor *x, double a, double b, TensorDtype dtype)
{
    assert_int_equal(tensor_dtype(x), dtype);
    assert_true(tensor_get(x, DIMS(0)) == a && tensor_get(x, DIMS(1)) == b);
}

static void same_tensor_other_storage(void **state)
{
    (void)state;
    Tensor *x = leaf(1, 2), *data = vector(3, 4, TENSOR_F64);
    assert_int_equal(tensor_set_data(x, data), 0);
    assert_values(x, 3, 4, TENSOR_F64);
    assert_true(tensor_requires_grad(x) && tensor_is_leaf(x) && tensor_shares_storage(x, data));
    tensor_set(data, DIMS(0), 7);
    assert_values(x, 7, 4, TENSOR_F64);
    assert_int_equal(tensor_version(x), tensor_version(data));
}

static void strides_come_along(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(2, 3), TENSOR_F32);
    Tensor *data = tensor_transpose(tensor_reshape(tensor_arange(0, 6, 1, TENSOR_F32), SHAPE(3, 2)), 0, 1);
    assert_int_equal(tensor_set_data(x, data), 0);
    assert_false(tensor_is_contiguous(x));
    assert_true(tensor_equal(x, data));
    assert_true(tensor_item(tensor_sum(tensor_select(x, 0, 0))) == 0 + 2 + 4);
    assert_int_equal(tensor_set_data(x, tensor_ones(SHAPE(2, 3), TENSOR_F32)), 0);
    assert_true(tensor_is_contiguous(x));
}

static void views_keep_the_old_storage(void **state)
{
    (void)state;
    Tensor *x = leaf(1, 2), *detached = tensor_detach(x), *recorded = tensor_view(x, SHAPE(2)), *plain = NULL;
    TENSOR_NO_GRAD { plain = tensor_view(x, SHAPE(2)); }
    assert_int_equal(tensor_set_data(x, vector(3, 4, TENSOR_F64)), 0);
    assert_values(detached, 1, 2, TENSOR_F32);
    assert_values(recorded, 1, 2, TENSOR_F32);
    assert_true(tensor_requires_grad(recorded));
    assert_false(tensor_requires_grad(plain));
    tensor_fill_(plain, 9);
    assert_values(detached, 9, 9, TENSOR_F32);
    assert_values(x, 3, 4, TENSOR_F64);
    assert_non_null(tensor_mul_(recorded, leaf(2, 2)));
    assert_values(x, 3, 4, TENSOR_F64);
    assert_int_equal(tensor_backward(tensor_sum(recorded)), 0);
    assert_values(tensor_grad(x), 2, 2, TENSOR_F64);
}

/* y = sum x^2 of the old values: dx = 2 x of these, in the new dtype. */
static void a_graph_keeps_the_old_values(void **state)
{
    (void)state;
    Tensor *x = leaf(1, 2), *y = tensor_sum(tensor_square(x));
    assert_int_equal(tensor_set_data(x, vector(30, 40, TENSOR_F64)), 0);
    Tensor *z = tensor_sum(tensor_square(x));
    assert_int_equal(tensor_backward(y), 0);
    assert_values(tensor_grad(x), 2, 4, TENSOR_F64);
    assert_int_equal(tensor_backward(z), 0);
    assert_values(tensor_grad(x), 62, 84, TENSOR_F64);
}

static void both_graphs_in_one_sweep(void **state)
{
    (void)state;
    Tensor *x = leaf(1, 2), *y = tensor_sum(tensor_square(x));
    assert_int_equal(tensor_set_data(x, vector(30, 40, TENSOR_F64)), 0);
    assert_int_equal(tensor_backward(tensor_add(y, tensor_sum(tensor_square(x)))), 0);
    assert_values(tensor_grad(x), 62, 84, TENSOR_F64);
}

static void no_second_gradient_through_old_data(void **state)
{
    (void)state;
    Tensor *x = leaf(1, 2), *y = tensor_sum(tensor_square(x));
    assert_int_equal(tensor_set_data(x, vector(3, 4, TENSOR_F32)), 0);
    assert_tensor_error(tensor_gradients(y, x, .create_graph = true), TENSOR_EGRAD);
}

/* v, a view of a base without a graph, is none afterwards, in either direction; w, another, still is. */
static void a_view_is_one_no_more(void **state)
{
    (void)state;
    Tensor *base = vector(1, 2, TENSOR_F32), *v = tensor_view(base, SHAPE(2)),
           *w = tensor_view(base, SHAPE(2));
    assert_int_equal(tensor_set_data(v, vector(3, 4, TENSOR_F64)), 0);
    assert_values(v, 3, 4, TENSOR_F64);
    assert_values(base, 1, 2, TENSOR_F32);
    tensor_add_(base, leaf(10, 10));
    assert_true(tensor_requires_grad(w));
    assert_false(tensor_requires_grad(v));
    tensor_requires_grad_(v, true);
    assert_int_equal(tensor_backward(tensor_sum(tensor_square(v))), 0);
    assert_values(tensor_grad(v), 6, 8, TENSOR_F64);
    assert_status_error(tensor_set_data(w, vector(3, 4, TENSOR_F32)), TENSOR_EGRAD); /* by now a result */
    assert_values(w, 11, 12, TENSOR_F32);
}

static void refusals(void **state)
{
    (void)state;
    Tensor *x = leaf(1, 2), *old = tensor_detach(x);
    assert_status_error(tensor_set_data(x, tensor_zeros(SHAPE(3), TENSOR_F32)), TENSOR_ESHAPE);
    assert_status_error(tensor_set_data(x, tensor_zeros(SHAPE(2), TENSOR_I64)), TENSOR_EDTYPE);
    assert_status_error(tensor_set_data(tensor_neg(x), old), TENSOR_EGRAD);
    assert_status_error(tensor_set_data(NULL, old), TENSOR_ENULL);
    assert_status_error(tensor_set_data(x, NULL), TENSOR_ENULL);
    tensor_set_grad(x, vector(5, 6, TENSOR_F32));
    assert_status_error(tensor_set_data(x, vector(3, 4, TENSOR_F64)), TENSOR_EGRAD);
    assert_true(tensor_shares_storage(x, old));
    assert_int_equal(tensor_set_data(x, vector(3, 4, TENSOR_F32)), 0); /* its gradient fits */
    assert_values(tensor_grad(x), 5, 6, TENSOR_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(same_tensor_other_storage),  SCOPED(strides_come_along),
        SCOPED(views_keep_the_old_storage), SCOPED(a_graph_keeps_the_old_values),
        SCOPED(both_graphs_in_one_sweep),   SCOPED(no_second_gradient_through_old_data),
        SCOPED(a_view_is_one_no_more),      SCOPED(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
