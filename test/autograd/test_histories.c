/* test_histories.c - which history a tensor has after it, its view or its base was written in place. */
#include "sane.h"

static Tensor *leaf_of(Tensor *x) { return tensor_requires_grad_(x, true); }

/* ---- grad mode off: values change, histories do not ------------------------------------------ */

static void copy_without_grad_leaves_the_leaf_a_leaf(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2, 3), *p = LEAF(0, 0, 0), *y = tensor_mul_scalar(w, 2);
    int64_t length = tensor_tape_length();
    TENSOR_NO_GRAD { tensor_copy_(p, y); }
    assert_true(tensor_is_leaf(p));
    assert_null(p->entry);
    assert_int_equal(tensor_tape_length(), length);
    assert_values(p, 2, 4, 6);
    assert_int_equal(tensor_backward(tensor_sum(p)), 0);
    assert_values(tensor_grad(p), 1, 1, 1);
    assert_null(tensor_grad(w));
}

static void copy_without_grad_into_a_view_of_a_buffer(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2), *buffer = VEC(0, 0, 0, 0), *part = tensor_narrow(buffer, 0, 1, 2);
    Tensor *y = tensor_mul_scalar(w, 2);
    int64_t length = tensor_tape_length();
    for (int i = 0; i < 10; i++)
        TENSOR_NO_GRAD { tensor_copy_(part, y); }
    assert_int_equal(tensor_tape_length(), length);
    assert_false(tensor_requires_grad(buffer));
    assert_false(tensor_requires_grad(part));
    assert_values(buffer, 0, 2, 4, 0);
}

static void copy_without_grad_keeps_the_history_of_a_result(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2), *v = LEAF(3, 4), *x = tensor_mul_scalar(w, 2);
    TENSOR_NO_GRAD { tensor_copy_(x, tensor_mul_scalar(v, 5)); }
    assert_int_equal(tensor_backward(tensor_sum(x)), 0);
    assert_values(tensor_grad(w), 2, 2);
    assert_null(tensor_grad(v));
}

static void copy_into_integers_takes_no_history(void **state)
{
    (void)state;
    Tensor *w = LEAF(1.5, 2.5), *n = tensor_zeros(SHAPE(2), TENSOR_I64);
    assert_non_null(tensor_copy_(n, tensor_mul_scalar(w, 2)));
    assert_null(n->entry);
    assert_false(tensor_requires_grad(n));
}

/* ---- views whose elements overlap ------------------------------------------------------------ */

typedef Tensor *View(Tensor *base);
static Tensor *expanded(Tensor *z) { return tensor_expand(z, SHAPE(4, 3)); }
static Tensor *broadcast(Tensor *z) { return tensor_broadcast_to(z, SHAPE(2, 2, 3)); }
static Tensor *windows(Tensor *z) { return tensor_unfold_dim(z, 0, 2, 1); }
static Tensor *strided(Tensor *z)
{
    return tensor_as_strided(z, .size = SHAPE(2, 2, 2), .stride = SHAPE(1, 1, 0));
}
static View *const overlapping[] = { expanded, broadcast, windows, strided };

/* The gradient of sum(view^3) after the base was doubled in place is that of the same view of 2 z. */
static void overlapping_view_of(View *view, TensorDtype dtype)
{
    Tensor *w = leaf_of(tensor_to(VEC(1, 2, 3), dtype)), *v = leaf_of(tensor_to(VEC(1, 2, 3), dtype));
    Tensor *z = tensor_mul_scalar(w, 1), *e = view(z);
    tensor_mul_scalar_(z, 2);
    Tensor *want = view(tensor_mul_scalar(v, 2));
    assert_true(tensor_equal(e, want));
    Tensor *loss = tensor_sum(tensor_mul(e, tensor_square(e))),
           *loss_want = tensor_sum(tensor_mul(want, tensor_square(want)));
    Tensor *g = tensor_gradients(loss, w, .create_graph = true),
           *g_want = tensor_gradients(loss_want, v, .create_graph = true);
    assert_true(tensor_equal(g, g_want));
    Tensor *h = tensor_gradients(tensor_sum(tensor_square(g)), w),
           *h_want = tensor_gradients(tensor_sum(tensor_square(g_want)), v);
    assert_true(tensor_allclose(tensor_to(h, TENSOR_F64), tensor_to(h_want, TENSOR_F64),
                                dtype == TENSOR_F16 ? 1e-2 : 1e-12, 0, false));
    assert_null(tensor_error());
}

static void gradient_of_an_overlapping_view(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof overlapping / sizeof *overlapping; i++) {
        overlapping_view_of(overlapping[i], TENSOR_F64);
        overlapping_view_of(overlapping[i], TENSOR_F16);
    }
}

/* 2048 + 1 is 2048 in f16. */
static void pieces_of_halves_are_rounded_once(void **state)
{
    (void)state;
    Tensor *w = leaf_of(tensor_ones(SHAPE(5), TENSOR_F16)), *z = tensor_mul_scalar(w, 1);
    Tensor *e = tensor_unfold_dim(z, 0, 3, 1),
           *piece = tensor_to(MAT(3, 0, 0, 2048, 0, 1, 0, 1, 0, 0), TENSOR_F16);
    tensor_mul_scalar_(z, 2);
    assert_values(tensor_gradients(tensor_sum(tensor_mul(e, piece)), w), 0, 0, 4100, 0, 0);
}

static void gradient_of_an_expanded_view_adds(void **state)
{
    (void)state;
    Tensor *x = LEAF_MAT(3, 1, 1, 1), *z = tensor_mul_scalar(x, 1), *e = tensor_expand(z, SHAPE(3, 4));
    tensor_mul_scalar_(z, 1);
    assert_int_equal(tensor_backward(tensor_sum(e)), 0);
    assert_values(tensor_grad(x), 4, 4, 4);
}

/* ---- a view whose base received a graph: used first by what is not an op --------------------- */

static Tensor *view_of_written(Tensor *w, Tensor **base)
{
    *base = VEC(0, 0, 0);
    Tensor *view = tensor_narrow(*base, 0, 1, 1);
    tensor_add_(*base, tensor_mul_scalar(w, 3));
    return view;
}

static void stale_view_as_a_root(void **state)
{
    (void)state;
    Tensor *base, *w = LEAF(1, 2, 3), *view = view_of_written(w, &base);
    assert_int_equal(tensor_backward(view), 0);
    assert_values(tensor_grad(w), 0, 3, 0);
}

static void stale_view_as_an_input(void **state)
{
    (void)state;
    Tensor *base, *w = LEAF(1, 2, 3), *view = view_of_written(w, &base);
    Tensor *grad = tensor_gradients(tensor_sum(base), view, .allow_unused = true);
    assert_null(tensor_error());
    assert_null(grad);
    assert_values(tensor_gradients(view, view), 1);
}

static void stale_view_retains_its_gradient(void **state)
{
    (void)state;
    Tensor *base, *w = LEAF(1, 2, 3), *view = view_of_written(w, &base);
    assert_int_equal(tensor_retain_grad(view), 0);
    assert_int_equal(tensor_backward(tensor_sum(tensor_square(view))), 0);
    assert_values(tensor_grad(view), 12);
}

static Tensor *doubled(Tensor *grad, void *ctx)
{
    ++*(int *)ctx;
    return tensor_mul_scalar(grad, 2);
}

static void stale_view_takes_a_hook(void **state)
{
    (void)state;
    int calls = 0;
    Tensor *base, *w = LEAF(1, 2, 3), *view = view_of_written(w, &base);
    assert_true(tensor_register_hook(view, doubled, &calls) > 0);
    assert_int_equal(tensor_backward(view), 0);
    assert_int_equal(calls, 1);
    assert_values(tensor_grad(w), 0, 6, 0);
}

static void stale_view_as_a_source(void **state)
{
    (void)state;
    Tensor *base, *w = LEAF(1, 2, 3), *view = view_of_written(w, &base), *to = VEC(0);
    tensor_copy_(to, view);
    assert_int_equal(tensor_backward(to), 0);
    assert_values(tensor_grad(w), 0, 3, 0);
}

/* The base is a constant again: what its stale view is filled with has no history either. */
static void stale_view_filled(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2, 3), *base = tensor_mul_scalar(w, 2), *view = tensor_narrow(base, 0, 0, 2);
    tensor_copy_(base, VEC(1, 1, 1));
    tensor_fill_(view, 5);
    assert_false(tensor_requires_grad(base));
    assert_values(base, 5, 5, 1);
}

static void stale_view_prints_its_history(void **state)
{
    (void)state;
    char text[200];
    Tensor *base, *w = LEAF(1, 2, 3), *view = view_of_written(w, &base);
    tensor_snprint(text, sizeof text, view);
    assert_non_null(strstr(text, "grad_fn="));
}

/* A region is told in the layout of the base: one that is not dense has no gradient to give. */
static void view_of_a_base_that_is_not_dense(void **state)
{
    (void)state;
    Tensor *w = LEAF_MAT(2, 1, 2, 3, 4), *base = tensor_detach(tensor_transpose(MAT(2, 1, 2, 3, 4), 0, 1));
    Tensor *row = tensor_select(base, 0, 0);
    tensor_mul_(base, w);
    assert_int_equal(tensor_backward(tensor_sum(row)), -1);
    assert_says(TENSOR_EGRAD, "not contiguous");
}

/* A view of what the leaf was: it keeps its history and its memory, and is a view of the leaf no more. */
static void view_of_a_leaf_whose_data_was_replaced(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2, 3), *view = tensor_narrow(w, 0, 1, 2), *plain;
    TENSOR_NO_GRAD { plain = tensor_narrow(w, 0, 1, 2); }
    assert_int_equal(tensor_set_data(w, VEC(7, 8, 9)), 0);
    assert_true(tensor_requires_grad(view));
    assert_false(tensor_requires_grad(plain));
    assert_values(tensor_mul_scalar_(view, 2), 4, 6);
    assert_int_equal(tensor_backward(tensor_sum(view)), 0);
    assert_values(tensor_grad(w), 0, 2, 2);
    assert_values(w, 7, 8, 9);
    assert_values(tensor_add_scalar_(plain, 1), 5, 7);
    assert_false(tensor_requires_grad(plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(copy_without_grad_leaves_the_leaf_a_leaf),
        TEST(copy_without_grad_into_a_view_of_a_buffer),
        TEST(copy_without_grad_keeps_the_history_of_a_result),
        TEST(copy_into_integers_takes_no_history),
        TEST(gradient_of_an_overlapping_view),
        TEST(pieces_of_halves_are_rounded_once),
        TEST(gradient_of_an_expanded_view_adds),
        TEST(stale_view_as_a_root),
        TEST(stale_view_as_an_input),
        TEST(stale_view_retains_its_gradient),
        TEST(stale_view_takes_a_hook),
        TEST(stale_view_as_a_source),
        TEST(stale_view_filled),
        TEST(stale_view_prints_its_history),
        TEST(view_of_a_base_that_is_not_dense),
        TEST(view_of_a_leaf_whose_data_was_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
