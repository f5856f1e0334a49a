/* test_tape.c - backward: what it computes, what it frees, what it refuses. */
#include "sane.h"

/* ---- roots and cotangents -------------------------------------------------------------------- */

static void test_backward_scalar(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2, 3);
    Tensor *y = tensor_sum(tensor_square(x));
    DONE(tensor_backward(y));
    assert_values(tensor_grad(x), 2, 4, 6);
    assert_sane(x), assert_sane(y), assert_tape_sane();
}

static void test_backward_with_cotangent(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2, 3), *y = tensor_mul(x, x);
    DONE(tensor_backward(y, VEC(1, 10, 100)));
    assert_values(tensor_grad(x), 2, 40, 600);
}

static void test_backward_cotangent_of_another_dtype(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *y = tensor_mul(x, x);
    DONE(tensor_backward(y, tensor_to(VEC(1, 10), TENSOR_F32)));
    assert_values(tensor_grad(x), 2, 40);
    assert_int_equal(tensor_dtype(tensor_grad(x)), TENSOR_F64);
}

static void test_backward_refuses_a_bad_cotangent(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2, 3), *y = tensor_mul(x, x);
    assert_status_error(tensor_backward(y, VEC(1, 2)), TENSOR_ESHAPE);
    assert_status_error(tensor_backward(y, tensor_ones(SHAPE(3), TENSOR_I64)), TENSOR_EDTYPE);
    assert_null(tensor_grad(x));
    DONE(tensor_backward(y, VEC(1, 1, 1))); /* a refused call freed nothing */
}

static void test_backward_not_scalar(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2, 3), *y = tensor_mul(x, x);
    assert_int_equal(tensor_backward(y), -1);
    assert_says(TENSOR_EGRAD, "3 elements");
}

static void test_backward_one_element_of_any_rank(void **state)
{
    (void)state;
    Tensor *x = LEAF_MAT(1, 3);
    DONE(tensor_backward(tensor_mul(x, x)));
    assert_values(tensor_grad(x), 6);
}

static void test_backward_without_graph(void **state)
{
    (void)state;
    assert_int_equal(tensor_backward(tensor_sum(VEC(1, 2))), -1);
    assert_says(TENSOR_EGRAD, "no graph");
    assert_status_error(tensor_backward(NULL), TENSOR_ENULL);
}

static void test_backward_of_a_leaf(void **state)
{
    (void)state;
    Tensor *x = LEAF(5);
    DONE(tensor_backward(x));
    DONE(tensor_backward(x, VEC(2)));
    assert_values(tensor_grad(x), 3);
}

static void test_several_roots(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *a = tensor_sum(tensor_square(x)), *b = tensor_mul_scalar(x, 10);
    DONE(tensor_backward_many(TENSORS(a, b), TENSORS(NULL, VEC(1, 2))));
    assert_values(tensor_grad(x), 12, 24);
}

static void test_duplicate_roots(void **state)
{
    (void)state;
    Tensor *x = LEAF(3), *y = tensor_mul(x, x);
    DONE(tensor_backward_many(TENSORS(y, y, x)));
    assert_values(tensor_grad(x), 13);
}

static void test_root_inside_the_graph_of_another(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x), *z = tensor_mul(y, y);
    DONE(tensor_backward_many(TENSORS(y, z)));
    assert_values(tensor_grad(x), 4 + 32);
}

static void test_no_roots(void **state)
{
    (void)state;
    assert_status_error(tensor_backward_many((TensorList){ 0 }), TENSOR_EVALUE);
}

static void test_cotangents_are_as_many_as_roots(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x), *z = tensor_mul(x, y), *g[1];
    assert_int_equal(tensor_backward_many(TENSORS(y, z), TENSORS(VEC(1))), -1);
    assert_says(TENSOR_EVALUE, "tensor_backward_many: 1 gradients are given for 2 tensors");
    assert_int_equal(tensor_gradients_many(TENSORS(y), TENSORS(x), g, TENSORS(NULL, NULL)), -1);
    assert_says(TENSOR_EVALUE, "tensor_gradients_many: 2 gradients are given for 1 tensors");
    DONE(tensor_gradients_many(TENSORS(y, z), TENSORS(x), g, TENSORS(NULL, VEC(2))));
    assert_values(g[0], 4 + 2 * 12);
}

/* ---- once, twice ----------------------------------------------------------------------------- */

static void test_twice_with_saved_values(void **state)
{
    (void)state;
    Tensor *x = LEAF(3), *y = tensor_mul(x, x);
    DONE(tensor_backward(y));
    assert_int_equal(tensor_backward(y), -1);
    assert_says(TENSOR_EGRAD, "second time");
    assert_values(tensor_grad(x), 6);
}

static void test_twice_without_saved_values(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *y = tensor_sum(tensor_add(x, x));
    DONE(tensor_backward(y));
    DONE(tensor_backward(y));
    assert_values(tensor_grad(x), 4, 4);
}

static void test_retain_graph(void **state)
{
    (void)state;
    Tensor *x = LEAF(3), *y = tensor_mul(x, x);
    int64_t bytes = tensor_tape_bytes();
    DONE(tensor_backward(y, .retain_graph = true));
    assert_int_equal(tensor_tape_bytes(), bytes);
    DONE(tensor_backward(y));
    assert_true(tensor_tape_bytes() < bytes);
    assert_values(tensor_grad(x), 12);
    assert_status_error(tensor_backward(y), TENSOR_EGRAD);
}

static void test_part_of_the_graph_twice(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_exp(x), *a = tensor_mul_scalar(h, 2), *b = tensor_mul_scalar(h, 3);
    DONE(tensor_backward(a));
    assert_int_equal(tensor_backward(b), -1);
    assert_says(TENSOR_EGRAD, "exp");
    assert_values(tensor_grad(x), 2 * exp(2));
}

/* ---- gradients of gradients ------------------------------------------------------------------ */

static double third_derivative(Tensor *(*f)(Tensor *), double at)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = LEAF(at), *y = f(x);
    for (int order = 1; order <= 3; order++) y = tensor_gradients(y, x, .create_graph = true);
    double value = y ? tensor_item(y) : NAN;
    tensor_scope_close(scope);
    return value;
}

static Tensor *sin_of_exp(Tensor *x) { return tensor_sin(tensor_exp(x)); }
static Tensor *x_to_the_fifth(Tensor *x)
{
    return tensor_mul(tensor_square(x), tensor_mul(x, tensor_mul(x, x)));
}
static Tensor *log_of_square(Tensor *x) { return tensor_log(tensor_mul(x, x)); }
static Tensor *exp_over_x(Tensor *x) { return tensor_div(tensor_exp(x), x); }
static Tensor *tanh_of_x(Tensor *x) { return tensor_tanh(x); }
static Tensor *sum_of_powers(Tensor *x)
{
    return tensor_sum(tensor_pow_scalar(tensor_expand(x, SHAPE(3, 1)), 4));
}
static Tensor *as_product(Tensor *x)
{
    Tensor *row = tensor_reshape(tensor_cat(TENSORS(x, tensor_square(x))), SHAPE(1, 2));
    return tensor_sum(tensor_matmul(row, tensor_transpose(row, 0, 1))); /* x^2 + x^4 */
}

static void test_third_order(void **state)
{
    (void)state;
    double x = 0.7, e = exp(x), t = tanh(x), s = 1 - t * t;
    assert_near(third_derivative(sin_of_exp, x), e * cos(e) - 3 * e * e * sin(e) - e * e * e * cos(e), 1e-10);
    assert_near(third_derivative(x_to_the_fifth, x), 60 * x * x, 1e-10);
    assert_near(third_derivative(log_of_square, x), 4 / (x * x * x), 1e-9);
    assert_near(third_derivative(exp_over_x, x), e * (1 / x - 3 / (x * x) + 6 / pow(x, 3) - 6 / pow(x, 4)),
                1e-9);
    assert_near(third_derivative(tanh_of_x, x), -2 * s * (s - 2 * t * t), 1e-10);
    assert_near(third_derivative(sum_of_powers, x), 3 * 24 * x, 1e-10);
    assert_near(third_derivative(as_product, x), 24 * x, 1e-10);
}

static void test_create_graph_accumulates_out_of_place(void **state)
{
    (void)state;
    Tensor *x = LEAF(3), *y = tensor_mul(x, tensor_mul(x, x));
    DONE(tensor_backward(y, .create_graph = true));
    Tensor *first = tensor_grad(x);
    assert_values(first, 27);
    assert_true(tensor_requires_grad(first));
    DONE(tensor_backward(tensor_sum(first), .create_graph = true)); /* 3 x^2 -> 6 x */
    assert_values(first, 27);
    assert_values(tensor_grad(x), 27 + 18);
    DONE(tensor_set_grad(x, NULL));
}

static void test_create_graph_gives_leaves_gradients_of_their_own(void **state)
{
    (void)state;
    Tensor *a = LEAF(1, 2), *b = LEAF(3, 4), *v = VEC(1, 1);
    DONE(tensor_backward(tensor_add(a, b), v, .create_graph = true));
    TENSOR_NO_GRAD
        OK(tensor_mul_scalar_(tensor_grad(a), 5));
    assert_values(tensor_grad(a), 5, 5);
    assert_values(tensor_grad(b), 1, 1);
    assert_values(v, 1, 1);
}

static void test_create_graph_leaves_no_cycle(void **state)
{
    (void)state;
    int64_t live = tensor_live_count();
    TensorScope scope = tensor_scope_open();
    Tensor *x = LEAF(3), *y = tensor_mul(x, tensor_mul(x, x));
    DONE(tensor_backward(y, .create_graph = true));
    assert_true(tensor_requires_grad(tensor_grad(x)));
    tensor_scope_close(scope); /* x -> x.grad -> graph -> x goes with the last handle of x */
    assert_int_equal(tensor_live_count(), live);
    assert_int_equal(tensor_tape_length(), 0);
}

static void test_record_while_replaying(void **state)
{
    (void)state;
    Tensor *w = LEAF(2, -1), *x = LEAF(0.5, 3);
    Tensor *y = tensor_sum(tensor_mul(tensor_square(x), w));
    Tensor *g = OK(tensor_gradients(y, x, .create_graph = true)); /* 2 x w */
    assert_values(g, 2, -6);
    Tensor *penalty = tensor_square(tensor_sub_scalar(tensor_sqrt(tensor_sum(tensor_square(g))), 1));
    DONE(tensor_backward(tensor_add(y, penalty)));
    double norm = sqrt(40), k = 2 * (norm - 1) / norm;
    assert_values(tensor_grad(w), 0.25 + k * 2 * 1, 9 + k * -6 * 6);
    assert_values(tensor_grad(x), 2 + k * 2 * 4, -6 + k * -6 * -2);
}

/* ---- tensor_gradients ------------------------------------------------------------------------ */

static void test_gradients_touches_no_grad(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *w = LEAF(5), *y = tensor_mul(tensor_mul(x, x), w);
    assert_values(OK(tensor_gradients(y, x)), 20);
    assert_null(tensor_grad(x));
    assert_null(tensor_grad(w));
}

/* Leaves and results, in any order and named twice. */
static void test_gradients_of_many(void **state)
{
    (void)state;
    Tensor *x = LEAF(3, 1, 2), *w = LEAF(5, 6, 7), *square = OK(tensor_mul(x, x));
    Tensor *most = OK(tensor_topk(square, 2));
    Tensor *y = OK(tensor_sum(tensor_mul(tensor_mul(square, w), w))), *g[6];
    y = tensor_add(y, tensor_sum(most));
    DONE(tensor_gradients_many(TENSORS(y), TENSORS(w, square, x, square, most, w), g));
    assert_values(g[0], 90, 12, 56);
    assert_values(g[1], 26, 36, 50);
    assert_values(g[2], 156, 72, 200);
    assert_values(g[3], 26, 36, 50);
    assert_values(g[4], 1, 1);
    assert_values(g[5], 90, 12, 56);
}
static void test_gradients_unused(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *other = LEAF(1, 2), *y = tensor_mul(x, x), *g[2];
    Tensor *in[] = { x, other };
    assert_int_equal(tensor_gradients_many(TENSORS(y), TENSOR_LIST(in, 2), g, .retain_graph = true), -1);
    assert_says(TENSOR_EGRAD, "input 2");
    assert_null(g[0]);
    DONE(
        tensor_gradients_many(TENSORS(y), TENSOR_LIST(in, 2), g, .retain_graph = true, .allow_unused = true));
    assert_values(g[0], 4);
    assert_null(g[1]);
    DONE(tensor_gradients_many(TENSORS(y), TENSOR_LIST(in, 2), g, .materialize_grads = true));
    assert_values(g[0], 4);
    assert_values(g[1], 0, 0);
}

static void test_gradients_of_interior_results(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul(x, x), *y = tensor_mul(h, h), *g[3];
    DONE(tensor_gradients_many(TENSORS(y), TENSORS(h, x, y), g));
    assert_values(g[0], 8);
    assert_values(g[1], 32);
    assert_values(g[2], 1);
}

static void test_gradients_stops_at_the_inputs(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_exp(x), *y = tensor_mul(h, h);
    assert_values(OK(tensor_gradients(y, h)), 2 * exp(2));
    DONE(tensor_backward(tensor_mul_scalar(h, 3))); /* exp itself did not run and was not freed */
    assert_values(tensor_grad(x), 3 * exp(2));
}

static void test_gradients_with_duplicate_inputs(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul(x, x), *y = tensor_mul(h, h), *g[4];
    DONE(tensor_gradients_many(TENSORS(y), TENSORS(x, x, h, h), g));
    assert_values(g[0], 32), assert_values(g[1], 32);
    assert_values(g[2], 8), assert_values(g[3], 8);
}

static void test_gradients_with_cotangent(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *y = tensor_mul(x, x);
    assert_values(OK(tensor_gradients(y, x, .grad_output = VEC(10, 1))), 20, 4);
    assert_null(tensor_gradients(y, VEC(1)));
    assert_says(TENSOR_EGRAD, "requires no gradient");
}

/* ---- accumulation ---------------------------------------------------------------------------- */

static void test_operand_used_twice(void **state)
{
    (void)state;
    Tensor *x = LEAF_MAT(2, 1, 2, 3, 4);
    DONE(tensor_backward(tensor_sum(tensor_matmul(x, tensor_transpose(x, 0, 1)))));
    assert_values(tensor_grad(x), 8, 12, 8, 12); /* 2 (1 1^T) x */
    Tensor *y = LEAF(3);
    DONE(tensor_backward(tensor_mul(y, y)));
    assert_values(tensor_grad(y), 6);
}

static void test_broadcast_of_both_operands(void **state)
{
    (void)state;
    Tensor *a = LEAF_MAT(2, 1, 2), *b = LEAF(10, 20, 30); /* [2, 1] and [3] */
    DONE(tensor_backward(tensor_sum(tensor_mul(a, b))));
    assert_values(tensor_grad(a), 60, 60);
    assert_values(tensor_grad(b), 3, 3, 3);
    assert_int_equal(tensor_ndim(tensor_grad(a)), 2);
}

static void test_first_gradient_is_kept_without_a_copy(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *seen = NULL;
    DONE(tensor_backward(tensor_sum(tensor_square(x)), .retain_graph = true));
    seen = tensor_grad(x);
    void *data = tensor_data(seen);
    DONE(tensor_backward(tensor_sum(tensor_square(x)))); /* added in place: the same memory */
    assert_ptr_equal(tensor_data(tensor_grad(x)), data);
    assert_ptr_equal(tensor_grad(x), seen);
    assert_values(seen, 4, 8);
    assert_int_equal(tensor_version(seen), 1);
}

static void test_shared_gradient_is_not_corrupted(void **state)
{
    (void)state;
    Tensor *a = LEAF(1, 2), *b = LEAF(3, 4), *v = VEC(1, 1);
    for (int i = 0; i < 2; i++) DONE(tensor_backward(tensor_add(a, b), v)); /* add hands one tensor to both */
    OK(tensor_mul_scalar_(tensor_grad(a), 10));                             /* the user changes one of them */
    assert_values(tensor_grad(a), 20, 20);
    assert_values(tensor_grad(b), 2, 2);
    assert_values(v, 1, 1);
}

static void test_shared_gradient_inside(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *p = tensor_mul_scalar(x, 2), *q = tensor_mul_scalar(x, 3);
    Tensor *y = tensor_add(tensor_add(p, q), p); /* dy goes to p, q and p again */
    DONE(tensor_backward(y, VEC(1, 10)));
    assert_values(tensor_grad(x), 7, 70);
}

static void test_grad_set_by_the_user(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2, 3);
    DONE(tensor_set_grad(x, VEC(10, 20, 30)));
    DONE(tensor_backward(tensor_sum(x)));
    assert_values(tensor_grad(x), 11, 21, 31);
    DONE(tensor_set_grad(x, tensor_expand(VEC(5), SHAPE(3)))); /* overlapping: summed aside */
    DONE(tensor_backward(x, VEC(1, 2, 3)));
    assert_values(tensor_grad(x), 6, 7, 8);
    assert_status_error(tensor_set_grad(x, VEC(1)), TENSOR_ESHAPE);
    assert_status_error(tensor_set_grad(x, tensor_ones(SHAPE(3), TENSOR_F32)), TENSOR_EDTYPE);
    DONE(tensor_set_grad(x, NULL));
    assert_null(tensor_grad(x));
}

static void test_leaf_of_no_elements_gets_a_grad(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_zeros(SHAPE(0, 3), TENSOR_F32), true);
    for (int i = 0; i < 2; i++) DONE(tensor_backward(tensor_sum(tensor_square(x))));
    assert_non_null(tensor_grad(x));
    assert_int_equal(tensor_size(tensor_grad(x), 1), 3);
}

static void test_mixed_dtypes(void **state)
{
    (void)state;
    Tensor *a = tensor_requires_grad_(tensor_full(SHAPE(2), 3, TENSOR_F32), true), *b = LEAF(1, 2);
    DONE(tensor_backward(tensor_sum(tensor_mul(a, b))));
    assert_int_equal(tensor_dtype(tensor_grad(a)), TENSOR_F32);
    assert_int_equal(tensor_dtype(tensor_grad(b)), TENSOR_F64);
    assert_values(tensor_grad(a), 1, 2);
    assert_values(tensor_grad(b), 3, 3);
}

/* ---- modes ----------------------------------------------------------------------------------- */

static void assert_no_grad_inside(void)
{
    TENSOR_NO_GRAD
        assert_false(tensor_grad_enabled());
    assert_true(tensor_grad_enabled());
}

static void assert_grad_inside(Tensor *x)
{
    TENSOR_ENABLE_GRAD {
        assert_true(tensor_requires_grad(tensor_mul(x, x)));
        assert_no_grad_inside();
    }
    assert_false(tensor_grad_enabled());
}

static void test_modes_nest(void **state)
{
    (void)state;
    Tensor *x = LEAF(2);
    TENSOR_NO_GRAD {
        assert_false(tensor_requires_grad(tensor_mul(x, x)));
        assert_grad_inside(x);
    }
    assert_true(tensor_grad_enabled());
}

static void test_mode_is_restored_after_errors(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *y = tensor_mul(x, x);
    assert_status_error(tensor_backward(y), TENSOR_EGRAD);
    assert_true(tensor_grad_enabled());
    TENSOR_NO_GRAD {
        assert_status_error(tensor_backward(y), TENSOR_EGRAD);
        assert_false(tensor_grad_enabled());
        assert_tensor_error(tensor_matmul(x, tensor_ones(SHAPE(3, 3), TENSOR_F64)), TENSOR_ESHAPE);
        assert_false(tensor_grad_enabled());
        DONE(tensor_backward(y, VEC(1, 1))); /* backward itself does not ask for the mode */
    }
    assert_values(tensor_grad(x), 2, 4);
}

static void test_training_is_apart_from_grad_mode(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(1000), TENSOR_F64), true);
    Tensor *eval = tensor_dropout(x, 0.5, false), *train;
    assert_true(tensor_equal(eval, x) && tensor_requires_grad(eval));
    TENSOR_NO_GRAD {
        train = OK(tensor_dropout(x, 0.5, true));
        assert_false(tensor_requires_grad(train));
        assert_false(tensor_equal(train, x));
    }
}

static void test_requires_grad(void **state)
{
    (void)state;
    Tensor *x = VEC(1, 2), *i = tensor_ones(SHAPE(2), TENSOR_I64);
    assert_false(tensor_requires_grad(x));
    assert_true(tensor_is_leaf(x));
    assert_ptr_equal(tensor_requires_grad_(x, true), x);
    Tensor *y = tensor_square(x);
    assert_false(tensor_is_leaf(y));
    assert_tensor_error(tensor_requires_grad_(y, false), TENSOR_EGRAD);
    assert_tensor_error(tensor_requires_grad_(i, true), TENSOR_EDTYPE);
    assert_false(tensor_requires_grad(tensor_gt_scalar(x, 1)));
    assert_false(tensor_requires_grad(tensor_to(x, TENSOR_I64)));
    assert_false(tensor_requires_grad(tensor_requires_grad_(x, false)));
}

static void test_many_leaves(void **state)
{
    (void)state;
    enum { LEAVES = 300 };
    static Tensor *leaf[LEAVES];
    Tensor *sum = tensor_zeros(SHAPE(), TENSOR_F32);
    for (int i = 0; i < LEAVES; i++) {
        leaf[i] = tensor_requires_grad_(tensor_ones(SHAPE(), TENSOR_F32), true);
        for (int k = 0; k < 2; k++) sum = tensor_add(sum, tensor_mul_scalar(leaf[i], i + k));
    }
    DONE(tensor_backward(sum));
    for (int i = 0; i < LEAVES; i++) assert_values(tensor_grad(leaf[i]), 2 * i + 1);
}

static void test_requires_grad_of_a_result(void **state)
{
    (void)state;
    Tensor *y = tensor_mul_scalar(tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true), 2);
    assert_ptr_equal(tensor_requires_grad_(y, true), y);
    assert_tensor_error(tensor_requires_grad_(y, false), TENSOR_EGRAD);
    assert_true(tensor_requires_grad(y));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_many_leaves),
        TEST(test_requires_grad_of_a_result),
        TEST(test_backward_scalar),
        TEST(test_backward_with_cotangent),
        TEST(test_backward_cotangent_of_another_dtype),
        TEST(test_backward_refuses_a_bad_cotangent),
        TEST(test_backward_not_scalar),
        TEST(test_backward_one_element_of_any_rank),
        TEST(test_backward_without_graph),
        TEST(test_backward_of_a_leaf),
        TEST(test_several_roots),
        TEST(test_duplicate_roots),
        TEST(test_root_inside_the_graph_of_another),
        TEST(test_no_roots),
        TEST(test_cotangents_are_as_many_as_roots),
        TEST(test_twice_with_saved_values),
        TEST(test_twice_without_saved_values),
        TEST(test_retain_graph),
        TEST(test_part_of_the_graph_twice),
        TEST(test_third_order),
        TEST(test_create_graph_accumulates_out_of_place),
        TEST(test_create_graph_gives_leaves_gradients_of_their_own),
        TEST(test_create_graph_leaves_no_cycle),
        TEST(test_record_while_replaying),
        TEST(test_gradients_touches_no_grad),
        TEST(test_gradients_of_many),
        TEST(test_gradients_unused),
        TEST(test_gradients_of_interior_results),
        TEST(test_gradients_stops_at_the_inputs),
        TEST(test_gradients_with_duplicate_inputs),
        TEST(test_gradients_with_cotangent),
        TEST(test_operand_used_twice),
        TEST(test_broadcast_of_both_operands),
        TEST(test_first_gradient_is_kept_without_a_copy),
        TEST(test_shared_gradient_is_not_corrupted),
        TEST(test_shared_gradient_inside),
        TEST(test_grad_set_by_the_user),
        TEST(test_leaf_of_no_elements_gets_a_grad),
        TEST(test_mixed_dtypes),
        TEST(test_modes_nest),
        TEST(test_mode_is_restored_after_errors),
        TEST(test_requires_grad),
        TEST(test_training_is_apart_from_grad_mode),
    };
    return cmocka_run_group_tests_name("tape", tests, NULL, NULL);
}
