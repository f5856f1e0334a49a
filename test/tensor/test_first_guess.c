/* test_first_guess.c - what a newcomer writes: forgotten arguments, numbers for lists, chains after a
 * failure.  Each is refused in words, nothing is read that is not there, and NULL flows on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tapegrad.h>

static Tensor *x;

static int begin(void **state)
{
    (void)state;
    tensor_error_clear();
    x = tensor_rand(SHAPE(2, 3, 4, 4), TENSOR_F32);
    return x ? 0 : -1;
}

static void refused(const Tensor *y, TensorStatus code, const char *word)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), code);
    if (!strstr(tensor_error(), word)) fail_msg("\"%s\" does not say \"%s\"", tensor_error(), word);
    tensor_error_clear();
}

static void test_forgotten_arguments(void **state)
{
    (void)state;
    refused(tensor_quantile(x, .dim = 2), TENSOR_EVALUE, "q = ");
    refused(tensor_nanquantile(x, .dim = 2), TENSOR_EVALUE, "q = ");
    refused(tensor_topk(x, .dim = 1), TENSOR_EINDEX, "-1");
    refused(tensor_repeat_interleave(x), TENSOR_EVALUE, "-1 times");
}

/* A list whose elements are NULL: what a bare number becomes. */
static void test_number_for_a_list(void **state)
{
    (void)state;
    const TensorShape number = { 1, NULL };
    refused(tensor_sum(x, .dims = number), TENSOR_ENULL, "DIMS(1)");
    refused(tensor_var(x, .dims = number), TENSOR_ENULL, "DIMS(1)");
    refused(tensor_norm(x, .dims = number), TENSOR_ENULL, "DIMS(1)");
    refused(tensor_logsumexp(x, .dims = number), TENSOR_ENULL, "DIMS(1)");
    refused(tensor_any(x, .dims = number), TENSOR_ENULL, "DIMS(1)");
    refused(tensor_interpolate(x, number), TENSOR_ENULL, "SHAPE(");
    refused(tensor_affine_grid(x, number, false), TENSOR_ENULL, "SHAPE(");
    refused(tensor_layer_norm(x, number), TENSOR_ENULL, "NULL");
    refused(tensor_rms_norm(x, number), TENSOR_ENULL, "NULL");
    assert_null(nn_layer_norm(.normalized_shape = number));
    refused(NULL, TENSOR_ENULL, "NULL");
}

static void test_forgotten_index(void **state)
{
    (void)state;
    refused(tensor_index(x, "..., idx"), TENSOR_EVALUE, "\"idx\"");
    refused(tensor_index_set_scalar_(x, 0, "mask"), TENSOR_EVALUE, "\"mask\"");
}

static void test_dim_and_dims(void **state)
{
    (void)state;
    refused(tensor_sum(x, .dim = 1, .dims = DIMS(2)), TENSOR_EVALUE, "both");
}

/* Options of another function that shares the struct. */
static void test_options_of_others(void **state)
{
    (void)state;
    Tensor *p = tensor_rand(SHAPE(2, 3), TENSOR_F32);

    refused(tensor_quantile(p, .5, .qs = p), TENSOR_EVALUE, "both");
    refused(tensor_squeeze(p, 0, DIMS(1)), TENSOR_EVALUE, "both");
    refused(tensor_trapezoid(p, p, 2), TENSOR_EVALUE, "both");
}

static Tensor *const junk = (Tensor *)8;

static void test_parts_of_a_failure_are_null(void **state)
{
    (void)state;
    Tensor *p[4] = { junk, junk, junk, junk };
    assert_int_equal(tensor_chunk(NULL, 2, 0, p, 2), -1);
    refused(tensor_mul(p[0], p[1]), TENSOR_ENULL, "tensor_chunk");
    p[0] = p[1] = junk;
    assert_int_equal(tensor_split(x, 0, 0, p, 2), -1);
    refused(p[0], TENSOR_EVALUE, "split");
    p[0] = p[1] = junk;
    assert_int_equal(tensor_split_sizes(x, DIMS(1, 7), 0, p), -1);
    refused(p[1], TENSOR_ESHAPE, "split");
    p[0] = p[1] = junk;
    assert_int_equal(tensor_unbind(x, 9, p, 2), -1);
    refused(p[0], TENSOR_EINDEX, "unbind");
    p[0] = p[1] = junk;
    assert_int_equal(tensor_tensor_split(x, 0, 0, p, 2), -1);
    refused(p[0], TENSOR_EVALUE, "split");
    p[0] = p[1] = junk;
    assert_int_equal(tensor_hsplit_indices(NULL, DIMS(1), p), -1);
    refused(p[1], TENSOR_ENULL, "hsplit");
    p[0] = p[1] = junk;
    assert_int_equal(tensor_meshgrid(TENSORS(x, x), .grids = p), -1);
    refused(p[1], TENSOR_ESHAPE, "meshgrid");
    p[0] = p[1] = junk;
    refused(tensor_unique(NULL, .return_inverse = &p[0], .return_counts = &p[1]), TENSOR_ENULL, "unique");
    assert_true(!p[0] && !p[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(test_forgotten_arguments), TEST(test_number_for_a_list), TEST(test_forgotten_index),
        TEST(test_dim_and_dims),        TEST(test_options_of_others), TEST(test_parts_of_a_failure_are_null)
    };
    return cmocka_run_group_tests_name("first guesses", tests, NULL, NULL);
}
