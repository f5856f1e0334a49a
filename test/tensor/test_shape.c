/* test_shape.c - shapes and strides: counting, broadcasting, collapsing, overlap. */
#include "tensor/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void counts(void **state)
{
    (void)state;
    assert_int_equal(shape_count(SHAPE()), 1);
    assert_int_equal(shape_count(SHAPE(2, 3, 4)), 24);
    assert_int_equal(shape_count(SHAPE(2, 0, 4)), 0);
    assert_int_equal(shape_count(SHAPE(2, -1)), -1);
    assert_int_equal(shape_count(SHAPE(0, -1)), -1);
    assert_int_equal(shape_count(SHAPE(INT64_MAX, 2)), -1);
    assert_int_equal(shape_count(SHAPE(INT64_MAX, 2, 0)), 0);
    assert_int_equal(shape_count(SHAPE((int64_t)1 << 32, (int64_t)1 << 30)), (int64_t)1 << 62);
    assert_true(shape_equal(SHAPE(), SHAPE()));
    assert_true(shape_equal(SHAPE(1, 2), SHAPE(1, 2)));
    assert_false(shape_equal(SHAPE(1, 2), SHAPE(2, 1)));
    assert_false(shape_equal(SHAPE(1, 2), SHAPE(1, 2, 1)));
}

static void check_broadcast(TensorShape a, TensorShape b, TensorShape want)
{
    int64_t out[TENSOR_MAX_DIMS];
    for (int swap = 0; swap < 2; swap++) {
        int ndim = swap ? shape_broadcast(b, a, out) : shape_broadcast(a, b, out);
        assert_int_equal(ndim, want.ndim);
        if (ndim >= 0) assert_true(shape_equal((TensorShape){ ndim, out }, want));
    }
}

static void broadcasts(void **state)
{
    (void)state;
    TensorShape refused = { -1, NULL };
    check_broadcast(SHAPE(), SHAPE(), SHAPE());
    check_broadcast(SHAPE(3), SHAPE(), SHAPE(3));
    check_broadcast(SHAPE(3, 1, 2), SHAPE(1, 4, 2), SHAPE(3, 4, 2));
    check_broadcast(SHAPE(5, 1), SHAPE(4), SHAPE(5, 4));
    check_broadcast(SHAPE(0), SHAPE(1), SHAPE(0));
    check_broadcast(SHAPE(0, 3), SHAPE(3), SHAPE(0, 3));
    check_broadcast(SHAPE(1, 0), SHAPE(7, 1), SHAPE(7, 0));
    check_broadcast(SHAPE(2), SHAPE(3), refused);
    check_broadcast(SHAPE(0), SHAPE(2), refused);
    check_broadcast(SHAPE(2, 3), SHAPE(2, 1, 2), refused);
}

static void dims(void **state)
{
    (void)state;
    assert_int_equal(wrap_dim(0, 3), 0);
    assert_int_equal(wrap_dim(-1, 3), 2);
    assert_int_equal(wrap_dim(-3, 3), 0);
    assert_int_equal(wrap_dim(3, 3), -1);
    assert_int_equal(wrap_dim(-4, 3), -1);
    assert_int_equal(wrap_dim(0, 0), 0);
    assert_int_equal(wrap_dim(-1, 0), 0);
    assert_int_equal(wrap_dim(1, 0), -1);
    assert_int_equal(wrap_dim(-2, 0), -1);
}

static bool dense_with(TensorShape shape, TensorShape stride)
{
    return is_dense(shape.ndim, shape.dim, stride.dim);
}

static void density(void **state)
{
    (void)state;
    int64_t stride[TENSOR_MAX_DIMS];
    dense_strides(3, SHAPE(2, 3, 4).dim, stride);
    assert_memory_equal(stride, SHAPE(12, 4, 1).dim, 3 * sizeof *stride);
    dense_strides(3, SHAPE(2, 0, 4).dim, stride);
    assert_memory_equal(stride, SHAPE(4, 4, 1).dim, 3 * sizeof *stride);
    assert_true(dense_with(SHAPE(), SHAPE()));
    assert_true(dense_with(SHAPE(2, 3), SHAPE(3, 1)));
    assert_true(dense_with(SHAPE(2, 1, 3), SHAPE(3, 99, 1)));
    assert_true(dense_with(SHAPE(1, 1), SHAPE(-5, 0)));
    assert_true(dense_with(SHAPE(5, 0), SHAPE(77, 3)));
    assert_false(dense_with(SHAPE(2, 3), SHAPE(1, 2)));
    assert_false(dense_with(SHAPE(2, 3), SHAPE(4, 1)));
    assert_false(dense_with(SHAPE(3), SHAPE(0)));
    assert_false(dense_with(SHAPE(3), SHAPE(-1)));
}

static bool overlaps(TensorShape shape, TensorShape stride)
{
    TensorScope scope = tensor_scope_open();
    Tensor *memory = tensor_zeros(SHAPE(100), TENSOR_F32);
    Tensor *x = own(new_view(memory, shape.ndim, shape.dim, stride.dim, 50));
    bool yes = overlaps_itself(x);
    tensor_scope_close(scope);
    return yes;
}

static void overlap(void **state)
{
    (void)state;
    assert_false(overlaps(SHAPE(), SHAPE()));
    assert_false(overlaps(SHAPE(2, 3), SHAPE(3, 1)));
    assert_false(overlaps(SHAPE(2, 3), SHAPE(1, 2)));
    assert_false(overlaps(SHAPE(2, 3), SHAPE(10, 2)));
    assert_false(overlaps(SHAPE(3), SHAPE(-1)));
    assert_false(overlaps(SHAPE(1, 3), SHAPE(0, 1)));
    assert_false(overlaps(SHAPE(0, 3), SHAPE(0, 0)));
    assert_true(overlaps(SHAPE(2, 3), SHAPE(0, 1)));
    assert_true(overlaps(SHAPE(3), SHAPE(0)));
    assert_true(overlaps(SHAPE(3, 3), SHAPE(1, 1)));
    assert_true(overlaps(SHAPE(3, 3), SHAPE(2, 1)));
    assert_false(overlaps(SHAPE(3, 3), SHAPE(3, 1)));
}

static void texts(void **state)
{
    (void)state;
    assert_string_equal(shape_text(SHAPE()), "[]");
    assert_string_equal(shape_text(SHAPE(2, 3)), "[2, 3]");
    assert_string_equal(shape_text((TensorShape){ 17, NULL }), "[17 dimensions]");
    int64_t wide[TENSOR_MAX_DIMS];
    for (int i = 0; i < TENSOR_MAX_DIMS; i++) wide[i] = INT64_MIN;
    assert_int_equal(strlen(shape_text((TensorShape){ TENSOR_MAX_DIMS, wide })), 16 * 20 + 15 * 2 + 2);
    const char *first = shape_text(SHAPE(1));
    for (int i = 0; i < 7; i++) shape_text(SHAPE(9));
    assert_string_equal(first, "[1]");
}

static void collapsing(void **state)
{
    (void)state;
    int64_t shape[TENSOR_MAX_DIMS] = { 2, 1, 3, 4 };
    int64_t a[TENSOR_MAX_DIMS] = { 12, 7, 4, 1 }, b[TENSOR_MAX_DIMS] = { 0, 7, 4, 1 };
    assert_int_equal(collapse(4, shape, 2, (int64_t *const[]){ a, b }), 2);
    assert_memory_equal(shape, SHAPE(2, 12).dim, 16);
    assert_memory_equal(a, SHAPE(12, 1).dim, 16);
    assert_memory_equal(b, SHAPE(0, 1).dim, 16);

    int64_t line[TENSOR_MAX_DIMS] = { 2, 3, 4 }, stride[TENSOR_MAX_DIMS] = { 24, 8, 2 };
    assert_int_equal(collapse(3, line, 1, (int64_t *const[]){ stride }), 1);
    assert_int_equal(line[0], 24);
    assert_int_equal(stride[0], 2);

    int64_t one[TENSOR_MAX_DIMS] = { 1, 1 }, any[TENSOR_MAX_DIMS] = { 5, 6 };
    assert_int_equal(collapse(2, one, 1, (int64_t *const[]){ any }), 1);
    assert_int_equal(one[0], 1);
    assert_int_equal(collapse(0, one, 0, NULL), 1);

    int64_t transposed[TENSOR_MAX_DIMS] = { 3, 2 }, swapped[TENSOR_MAX_DIMS] = { 1, 3 };
    assert_int_equal(collapse(2, transposed, 1, (int64_t *const[]){ swapped }), 2);
}

static void broadcast_steps(void **state)
{
    (void)state;
    int64_t stride[TENSOR_MAX_DIMS];
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_zeros(SHAPE(3, 1, 2), TENSOR_F32);
    broadcast_strides(x, SHAPE(4, 3, 5, 2), stride);
    assert_memory_equal(stride, SHAPE(0, 2, 0, 1).dim, 32);
    broadcast_strides(tensor_scalar(1, TENSOR_F32), SHAPE(2, 2), stride);
    assert_memory_equal(stride, SHAPE(0, 0).dim, 16);
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),     cmocka_unit_test(broadcasts),      cmocka_unit_test(dims),
        cmocka_unit_test(density),    cmocka_unit_test(overlap),         cmocka_unit_test(texts),
        cmocka_unit_test(collapsing), cmocka_unit_test(broadcast_steps),
    };
    return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
