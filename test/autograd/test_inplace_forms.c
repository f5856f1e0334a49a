/* test_inplace_forms.c - forms in place that change the dtype or are no ops of their own, parts of uneven
 * sizes, norms of matrices, and other functions that are made of ops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/debug.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

static int open_scope(void **state)
{
    TensorScope *scope = malloc(sizeof *scope);
    if (!scope) return -1;
    *scope = tensor_scope_open();
    *state = scope;
    return 0;
}

static int close_scope(void **state)
{
    TensorScope *scope = *state;
    tensor_scope_close(*scope);
    free(scope);
    return 0;
}

static Tensor *numbers(TensorShape shape, const char *text)
{
    Tensor *x = tensor_empty(shape, TENSOR_F64);
    double *v = tensor_data(x);
    char *end = (char *)(uintptr_t)text;
    for (int64_t i = 0; i < tensor_numel(x); i++) v[i] = strtod(end, &end);
    return x;
}

static Tensor *leaf(TensorShape shape, const char *text)
{
    return tensor_requires_grad_(numbers(shape, text), true);
}

static void assert_values(Tensor *x, TensorShape shape, const char *text)
{
    assert_non_null(x);
    TensorShape is = tensor_shape(x);
    assert_int_equal(is.ndim, shape.ndim);
    for (int d = 0; d < is.ndim; d++) assert_int_equal(is.dim[d], shape.dim[d]);
    assert_true(
        tensor_allclose(tensor_to(tensor_detach(x), TENSOR_F64), numbers(shape, text), 1e-12, 1e-12, true));
}

static void assert_code(TensorStatus code)
{
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static void test_comparisons_in_place_keep_the_dtype(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(3), "1 2 3"), *y = numbers(SHAPE(3), "3 2 1");
    assert_values(tensor_eq_(tensor_clone(x), y), SHAPE(3), "0 1 0");
    assert_values(tensor_ne_(tensor_clone(x), y), SHAPE(3), "1 0 1");
    assert_values(tensor_lt_(tensor_clone(x), y), SHAPE(3), "1 0 0");
    assert_values(tensor_le_(tensor_clone(x), y), SHAPE(3), "1 1 0");
    assert_values(tensor_gt_(tensor_clone(x), y), SHAPE(3), "0 0 1");
    assert_values(tensor_ge_(tensor_clone(x), y), SHAPE(3), "0 1 1");
    Tensor *n = tensor_to(x, TENSOR_I32);
    assert_int_equal(tensor_dtype(tensor_ge_(n, y)), TENSOR_I32);
    assert_values(n, SHAPE(3), "0 1 1");
    assert_null(tensor_eq_(numbers(SHAPE(), "1"), y));
    assert_code(TENSOR_ESHAPE);
}

static void test_comparisons_with_a_scalar_in_place(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(3), "1 2 3");
    assert_values(tensor_eq_scalar_(tensor_clone(x), 2), SHAPE(3), "0 1 0");
    assert_values(tensor_ne_scalar_(tensor_clone(x), 2), SHAPE(3), "1 0 1");
    assert_values(tensor_lt_scalar_(tensor_clone(x), 2), SHAPE(3), "1 0 0");
    assert_values(tensor_le_scalar_(tensor_clone(x), 2), SHAPE(3), "1 1 0");
    assert_values(tensor_gt_scalar_(tensor_clone(x), 2), SHAPE(3), "0 0 1");
    assert_values(tensor_ge_scalar_(tensor_clone(x), 2), SHAPE(3), "0 1 1");
    assert_null(tensor_ge_scalar_(leaf(SHAPE(1), "1"), 2));
    assert_code(TENSOR_EGRAD);
}

static void test_logic_in_place(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(4), "0 0 -2 nan"), *y = numbers(SHAPE(4), "0 5 0 1");
    assert_values(tensor_logical_and_(tensor_clone(x), y), SHAPE(4), "0 0 0 1");
    assert_values(tensor_logical_or_(tensor_clone(x), y), SHAPE(4), "0 1 1 1");
    assert_values(tensor_logical_xor_(tensor_clone(x), y), SHAPE(4), "0 1 1 0");
    assert_values(tensor_logical_not_(tensor_clone(x)), SHAPE(4), "1 1 0 0");
    Tensor *b = tensor_to(y, TENSOR_BOOL);
    assert_int_equal(tensor_dtype(tensor_logical_not_(b)), TENSOR_BOOL);
    assert_values(b, SHAPE(4), "1 0 1 0");
}

static void test_a_comparison_in_place_cuts_the_graph(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(3), "1 2 3"), *y = tensor_mul_scalar(x, 2),
           *z = tensor_mul(x, tensor_gt_scalar_(y, 3));
    assert_values(tensor_gradients(tensor_sum(z), x), SHAPE(3), "0 1 1");
}

/* ---- others ---------------------------------------------------------------------------------- */

static void test_float_power_in_place_wants_f64(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(2), "2 3");
    assert_values(tensor_float_power_(x, x), SHAPE(2), "4 27");
    Tensor *narrow = tensor_to(x, TENSOR_F32);
    assert_null(tensor_float_power_(narrow, x));
    assert_code(TENSOR_EDTYPE);
    assert_values(narrow, SHAPE(2), "4 27");
}

static void test_div_rounding_in_place(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(2), "-7 7"), *two = numbers(SHAPE(), "2");
    assert_values(tensor_div_rounding_(tensor_clone(x), two, TENSOR_FLOOR), SHAPE(2), "-4 3");
    assert_values(tensor_div_rounding_(tensor_clone(x), two, TENSOR_TRUNC), SHAPE(2), "-3 3");
}

static void test_running_sums_in_place_keep_the_dtype(void **state)
{
    (void)state;
    Tensor *x = tensor_to(numbers(SHAPE(3), "1 2 3"), TENSOR_I32);
    assert_int_equal(tensor_dtype(tensor_cumsum_(x, 0)), TENSOR_I32);
    assert_values(x, SHAPE(3), "1 3 6");
    assert_values(tensor_cumprod_(x, 0), SHAPE(3), "1 3 18");
}

static void test_fill_diagonal(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(2, 3), TENSOR_F64);
    assert_ptr_equal(tensor_fill_diagonal_(x, 5, false), x);
    assert_values(x, SHAPE(2, 3), "5 0 0 0 5 0");
    assert_values(tensor_fill_diagonal_(tensor_mT(tensor_zeros(SHAPE(2, 3), TENSOR_F64)), 5, false),
                  SHAPE(3, 2), "5 0 0 5 0 0");
    assert_values(tensor_fill_diagonal_(tensor_zeros(SHAPE(2, 2, 2), TENSOR_F64), 1, false), SHAPE(2, 2, 2),
                  "1 0 0 0 0 0 0 1");
    assert_values(tensor_fill_diagonal_(tensor_zeros(SHAPE(0, 3), TENSOR_F64), 1, true), SHAPE(0, 3), "");
    assert_null(tensor_fill_diagonal_(tensor_zeros(SHAPE(3), TENSOR_F64), 1, false));
    assert_code(TENSOR_ESHAPE);
    assert_null(tensor_fill_diagonal_(tensor_zeros(SHAPE(2, 2, 3), TENSOR_F64), 1, false));
    assert_code(TENSOR_ESHAPE);
    assert_null(tensor_fill_diagonal_(leaf(SHAPE(1, 1), "1"), 1, false));
    assert_code(TENSOR_EGRAD);
}

static void test_fill_diagonal_wraps_in_tall_matrices(void **state)
{
    (void)state;
    const char *want = "1 0 0 1 0 0 1 0 0 1 0 0 1 0";
    assert_values(tensor_fill_diagonal_(tensor_zeros(SHAPE(7, 2), TENSOR_F64), 1, true), SHAPE(7, 2), want);
    assert_values(tensor_fill_diagonal_(tensor_mT(tensor_zeros(SHAPE(2, 7), TENSOR_F64)), 1, true),
                  SHAPE(7, 2), want);
    assert_values(tensor_fill_diagonal_(tensor_zeros(SHAPE(3, 2), TENSOR_F64), 1, true), SHAPE(3, 2),
                  "1 0 0 1 0 0");
}

static void test_fill_diagonal_has_no_gradient_where_it_wrote(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 2), "1 2 3 4"), *y = tensor_square(x);
    assert_non_null(tensor_fill_diagonal_(y, 7, false));
    assert_values(y, SHAPE(2, 2), "7 4 9 7");
    assert_values(tensor_gradients(tensor_sum(y), x), SHAPE(2, 2), "0 4 6 0");
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void test_tensor_split_gives_the_longer_parts_first(void **state)
{
    (void)state;
    Tensor *part[20], *x = tensor_arange(0, 7, 1, TENSOR_F64);
    assert_int_equal(tensor_tensor_split(x, 3, 0, part, 3), 3);
    assert_values(part[0], SHAPE(3), "0 1 2");
    assert_values(part[1], SHAPE(2), "3 4");
    assert_values(part[2], SHAPE(2), "5 6");
    assert_true(tensor_shares_storage(part[2], x));
    assert_int_equal(tensor_tensor_split(x, 9, -1, part, 20), 9);
    assert_values(part[6], SHAPE(1), "6");
    assert_values(part[8], SHAPE(0), "");
    assert_int_equal(tensor_tensor_split(tensor_arange(0, 37, 1, TENSOR_F64), 18, 0, part, 20), 18);
    assert_values(part[0], SHAPE(3), "0 1 2");
    assert_values(part[17], SHAPE(2), "35 36");
    assert_int_equal(tensor_tensor_split(x, 3, 0, part, 2), -1);
    assert_code(TENSOR_ESHAPE);
    assert_int_equal(tensor_tensor_split(x, 0, 0, part, 2), -1);
    assert_code(TENSOR_EVALUE);
    assert_int_equal(tensor_tensor_split(numbers(SHAPE(), "1"), 1, 0, part, 2), -1);
    assert_code(TENSOR_EINDEX);
}

static void test_tensor_split_at_indices_slices_as_python(void **state)
{
    (void)state;
    Tensor *part[4], *x = tensor_arange(0, 7, 1, TENSOR_F64);
    assert_int_equal(tensor_tensor_split_indices(x, SHAPE(1, -2, 100), 0, part), 4);
    assert_values(part[0], SHAPE(1), "0");
    assert_values(part[1], SHAPE(4), "1 2 3 4");
    assert_values(part[2], SHAPE(2), "5 6");
    assert_values(part[3], SHAPE(0), "");
    assert_int_equal(tensor_tensor_split_indices(x, SHAPE(5, 2), 0, part), 3);
    assert_values(part[1], SHAPE(0), "");
    assert_values(part[2], SHAPE(5), "2 3 4 5 6");
    assert_int_equal(tensor_tensor_split_indices(x, SHAPE(), 0, part), 1);
    assert_values(part[0], SHAPE(7), "0 1 2 3 4 5 6");
}

static void test_gradients_of_uneven_parts_fall_into_place(void **state)
{
    (void)state;
    Tensor *part[3], *x = leaf(SHAPE(5), "1 2 3 4 5");
    assert_int_equal(tensor_tensor_split(x, 3, 0, part, 3), 3);
    assert_values(tensor_gradients(tensor_add(tensor_sum(tensor_square(part[0])), tensor_sum(part[2])), x),
                  SHAPE(5), "2 4 0 0 1");
}

static void test_hsplit_vsplit_dsplit_want_equal_parts(void **state)
{
    (void)state;
    Tensor *part[3], *line = tensor_arange(0, 4, 1, TENSOR_F64), *m = tensor_reshape(line, SHAPE(2, 2)),
                     *cube = tensor_reshape(line, SHAPE(1, 2, 2));
    assert_int_equal(tensor_hsplit(line, 2, part, 3), 2);
    assert_values(part[1], SHAPE(2), "2 3");
    assert_int_equal(tensor_hsplit(m, 2, part, 3), 2);
    assert_values(part[1], SHAPE(2, 1), "1 3");
    assert_int_equal(tensor_vsplit(m, 2, part, 3), 2);
    assert_values(part[1], SHAPE(1, 2), "2 3");
    assert_int_equal(tensor_dsplit(cube, 2, part, 3), 2);
    assert_values(part[1], SHAPE(1, 2, 1), "1 3");
    assert_int_equal(tensor_hsplit(line, 3, part, 3), -1);
    assert_code(TENSOR_ESHAPE);
    assert_int_equal(tensor_vsplit(line, 2, part, 3), -1);
    assert_code(TENSOR_ESHAPE);
    assert_int_equal(tensor_dsplit(m, 2, part, 3), -1);
    assert_code(TENSOR_ESHAPE);
    assert_int_equal(tensor_hsplit_indices(line, SHAPE(3), part), 2);
    assert_values(part[1], SHAPE(1), "3");
    assert_int_equal(tensor_vsplit_indices(m, SHAPE(1), part), 2);
    assert_values(part[1], SHAPE(1, 2), "2 3");
    assert_int_equal(tensor_dsplit_indices(cube, SHAPE(1), part), 2);
    assert_values(part[1], SHAPE(1, 2, 1), "1 3");
}

/* ---- matrices -------------------------------------------------------------------------------- */

static void test_matrix_power_of_a_negative_number_inverts(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(2, 2), "2 0 0 4");
    assert_values(tensor_matrix_power(x, -1), SHAPE(2, 2), "0.5 0 0 0.25");
    assert_values(tensor_matrix_power(x, -3), SHAPE(2, 2), "0.125 0 0 0.015625");
    assert_null(tensor_matrix_power(numbers(SHAPE(2, 2), "1 1 1 1"), -1));
    assert_code(TENSOR_EVALUE);
}

static void test_norms_of_linalg(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(2, 2), "3 0 0 -4");
    assert_values(tensor_linalg_vector_norm(x), SHAPE(), "5");
    assert_values(tensor_linalg_vector_norm(x, 1, .dims = DIMS(0, 1), .keepdim = true), SHAPE(1, 1), "7");
    assert_values(tensor_linalg_vector_norm(x, .ord = INFINITY, .dim = 1), SHAPE(2), "3 4");
    assert_values(tensor_linalg_matrix_norm(x), SHAPE(), "5");
    assert_values(tensor_linalg_matrix_norm(x, 1), SHAPE(), "4");
    assert_values(tensor_linalg_matrix_norm(x, .ord = -INFINITY, .keepdim = true), SHAPE(1, 1), "3");
    Tensor *s = tensor_linalg_matrix_norm(x, TENSOR_NUC);
    if (!s) assert_code(TENSOR_EDEVICE); /* no LAPACK here */
    else assert_values(s, SHAPE(), "7");
    assert_values(tensor_linalg_norm(x), SHAPE(), "5");
    assert_values(tensor_linalg_norm(x, 1), SHAPE(), "4");
    assert_values(tensor_linalg_norm(x, 1, 1), SHAPE(2), "3 4");
    assert_values(tensor_linalg_norm(x, .dim = -1, .keepdim = true), SHAPE(2, 1), "3 4");
    assert_values(tensor_linalg_norm(tensor_unsqueeze(x, 0), -INFINITY, .dims = DIMS(1, 2)), SHAPE(1), "3");
    assert_values(tensor_linalg_norm(tensor_unsqueeze(x, 0)), SHAPE(), "5");
    assert_values(tensor_linalg_norm(tensor_ravel(x), 1), SHAPE(), "7");
    Tensor *f32 = tensor_to(x, TENSOR_F32),
           *wide[] = { tensor_linalg_matrix_norm(f32, 1, .dtype = TENSOR_F64),
                       tensor_linalg_norm(f32, .dtype = TENSOR_F64),
                       tensor_linalg_norm(f32, 1, .dtype = TENSOR_F64),
                       tensor_linalg_norm(f32, 1, .dim = 0, .dtype = TENSOR_F64) };
    for (int i = 0; i < 4; i++) assert_int_equal(tensor_dtype(wide[i]), TENSOR_F64);
    assert_values(wide[0], SHAPE(), "4");
    assert_values(wide[1], SHAPE(), "5");
    assert_null(tensor_linalg_norm(tensor_unsqueeze(x, 0), 2));
    assert_code(TENSOR_ESHAPE);
    assert_null(tensor_linalg_norm(tensor_ravel(x), TENSOR_FRO));
    assert_code(TENSOR_EVALUE);
}

static void test_cholesky_inverse(void **state)
{
    (void)state;
    Tensor *l = leaf(SHAPE(2, 2), "2 9 1 4"), *y = tensor_cholesky_inverse(l); /* what is above is not read */
    assert_values(tensor_matmul(y, numbers(SHAPE(2, 2), "4 2 2 17")), SHAPE(2, 2), "1 0 0 1");
    assert_values(tensor_cholesky_inverse(tensor_mT(l), .upper = true), SHAPE(2, 2),
                  "0.265625 -0.03125 -0.03125 0.0625");
    assert_int_equal(tensor_backward(tensor_trace(y)), 0);
    assert_values(tensor_grad(l), SHAPE(2, 2), "-0.265625 0 0.03125 -0.0390625");
    assert_null(tensor_cholesky_inverse(numbers(SHAPE(3), "1 2 3")));
    assert_code(TENSOR_ESHAPE);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void test_diagflat(void **state)
{
    (void)state;
    assert_values(tensor_diagflat(numbers(SHAPE(1, 2), "1 2")), SHAPE(2, 2), "1 0 0 2");
    assert_values(tensor_diagflat(numbers(SHAPE(), "3"), -1), SHAPE(2, 2), "0 0 3 0");
}

static void test_broadcast_tensors(void **state)
{
    (void)state;
    Tensor *y[3], *same[2] = { numbers(SHAPE(2, 1), "1 2"), numbers(SHAPE(2), "3 4") };
    assert_int_equal(tensor_broadcast_tensors(TENSOR_LIST(same, 2), same),
                     2); /* results over the list itself */
    assert_values(same[0], SHAPE(2, 2), "1 1 2 2");
    assert_values(same[1], SHAPE(2, 2), "3 4 3 4");
    assert_int_equal(
        tensor_broadcast_tensors(
            TENSORS(numbers(SHAPE(2), "1 2"), numbers(SHAPE(2, 1), "3 4"), numbers(SHAPE(), "5")), y),
        3);
    assert_values(y[0], SHAPE(2, 2), "1 2 1 2");
    assert_values(y[1], SHAPE(2, 2), "3 3 4 4");
    assert_values(y[2], SHAPE(2, 2), "5 5 5 5");
    assert_int_equal(tensor_broadcast_tensors(TENSORS(y[0], numbers(SHAPE(3), "1 2 3")), y), -1);
    assert_code(TENSOR_ESHAPE);
    assert_true(!y[0] && !y[1]);
}

static void test_dropout_in_place(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(4), "1 2 3 4"), *y = tensor_mul_scalar(x, 1);
    assert_ptr_equal(tensor_dropout_(y, 1, true), y);
    assert_values(y, SHAPE(4), "0 0 0 0");
    assert_int_equal(tensor_backward(tensor_sum(y)), 0);
    assert_values(tensor_grad(x), SHAPE(4), "0 0 0 0");
    assert_ptr_equal(tensor_dropout_(x, .5, false), x);
    assert_ptr_equal(tensor_alpha_dropout_(x, 0, true), x);
    assert_values(x, SHAPE(4), "1 2 3 4");
    Tensor *z = numbers(SHAPE(2, 2), "1 2 3 4");
    assert_ptr_equal(tensor_alpha_dropout_(z, 1, true), z);
    assert_values(z, SHAPE(2, 2), "0 0 0 0");
    assert_ptr_equal(tensor_feature_alpha_dropout_(z, .5, false), z);
    assert_null(tensor_dropout_(x, .5, true));
    assert_code(TENSOR_EGRAD);
}

static void test_renorm_in_place(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(2, 2), "3 4 .3 .4");
    Tensor *want = tensor_renorm(x, 2, 0, 1);
    assert_ptr_equal(tensor_renorm_(x, 2, 0, 1), x);
    assert_true(tensor_equal(x, want));
}

static void test_detach_in_place_makes_a_leaf(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2), "1 2"), *y = tensor_mul(x, x), *part = tensor_slice(y, 0, 1),
           *sum = tensor_sum(tensor_add(y, part));
    assert_null(tensor_detach_(part));
    assert_code(TENSOR_EGRAD);
    assert_ptr_equal(tensor_detach_(y), y);
    assert_true(tensor_is_leaf(y) && !tensor_requires_grad(y));
    assert_int_equal(tensor_backward(sum), 0); /* what was computed before has its history */
    assert_values(tensor_grad(x), SHAPE(2), "2 12");
    assert_false(tensor_requires_grad(tensor_mul(y, y)));
    assert_false(tensor_requires_grad(tensor_detach_(x)));
}

/* ---- where the scope cannot grow ------------------------------------------------------------- */

enum { DETACH = 9, INDEX_PUT };

static Tensor *written(int k, Tensor *x, Tensor *other)
{
    switch (k) {
    case 0: return tensor_fill_(x, 7);
    case 1: return tensor_copy_(x, other);
    case 2: return tensor_add_(x, other);
    case 3: return tensor_mul_scalar_(x, 3);
    case 4: return tensor_lerp_(x, other, .5);
    case 5: return tensor_uniform_(x, 0, 1);
    case 6: return tensor_eq_scalar_(x, 1);
    case 7: return tensor_fill_diagonal_(x, 5, false);
    case 8: return tensor_requires_grad_(x, true);
    default: return tensor_detach_(x);
    }
}

typedef struct Try {
    int function, wrong;
} Try;

/* In a thread of its own, whose stack is empty at first. */
static void *try_at_all_heights(void *ctx)
{
    enum { HEIGHTS = 300 };
    Try *t = ctx;
    for (int height = 0, n = 1; height < HEIGHTS; n++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_ones(SHAPE(2, 2), TENSOR_F32), *other = tensor_full(SHAPE(2, 2), 9, TENSOR_F32),
               *v = tensor_full(SHAPE(2), 9, TENSOR_F32), *at = tensor_zeros(SHAPE(1), TENSOR_I64);
        for (int i = 0; i < height; i++) tensor_scope_return(tensor_scope_open(), other);
        if (t->function == DETACH) tensor_requires_grad_(x, true);
        tensor_debug_fail_allocation(n, false);
        const Tensor *y =
            t->function == INDEX_PUT ? tensor_index_put_(x, TENSORS(at), v) : written(t->function, x, other);
        const bool failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        const float *value = tensor_data(x);
        for (int i = 0; i < 4 && !y; i++) t->wrong += value[i] != 1;
        t->wrong += !y && (tensor_error_code() != TENSOR_ENOMEM ||
                           tensor_requires_grad(x) != (t->function == DETACH));
        tensor_error_clear();
        tensor_scope_close(scope);
        if (!failed) height++, n = 0;
    }
    return NULL;
}

/* The result takes a place on the scope's stack: without one, at whatever height the stack must grow, nothing
 * is written. */
static void test_nothing_is_written_where_the_scope_cannot_grow(void **state)
{
    (void)state;
    for (int k = 0; k <= INDEX_PUT; k++) {
        pthread_t thread;
        Try t = { .function = k };
        assert_int_equal(pthread_create(&thread, NULL, try_at_all_heights, &t), 0);
        pthread_join(thread, NULL);
        if (t.wrong) fail_msg("function %d failed and wrote", k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_comparisons_in_place_keep_the_dtype),
        TEST(test_comparisons_with_a_scalar_in_place),
        TEST(test_logic_in_place),
        TEST(test_a_comparison_in_place_cuts_the_graph),
        TEST(test_float_power_in_place_wants_f64),
        TEST(test_div_rounding_in_place),
        TEST(test_running_sums_in_place_keep_the_dtype),
        TEST(test_fill_diagonal),
        TEST(test_fill_diagonal_wraps_in_tall_matrices),
        TEST(test_fill_diagonal_has_no_gradient_where_it_wrote),
        TEST(test_tensor_split_gives_the_longer_parts_first),
        TEST(test_tensor_split_at_indices_slices_as_python),
        TEST(test_gradients_of_uneven_parts_fall_into_place),
        TEST(test_hsplit_vsplit_dsplit_want_equal_parts),
        TEST(test_matrix_power_of_a_negative_number_inverts),
        TEST(test_norms_of_linalg),
        TEST(test_cholesky_inverse),
        TEST(test_diagflat),
        TEST(test_broadcast_tensors),
        TEST(test_dropout_in_place),
        TEST(test_renorm_in_place),
        TEST(test_detach_in_place_makes_a_leaf),
        TEST(test_nothing_is_written_where_the_scope_cannot_grow),
    };
    return cmocka_run_group_tests_name("forms", tests, NULL, NULL);
}
