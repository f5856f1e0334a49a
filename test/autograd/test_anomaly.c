/* test_anomaly.c - the first NaN is named, forward and backward; the leak report names what lives and where
 * it was made. */
#include <tapegrad/debug.h>
#include "sane.h"

static int anomaly_begin(void **state)
{
    sane_begin(state);
    assert_false(tensor_set_detect_anomaly(true));
    return 0;
}

static int anomaly_end(void **state)
{
    assert_true(tensor_set_detect_anomaly(false));
    return sane_end(state);
}
#define ANOMALY(f) cmocka_unit_test_setup_teardown(f, anomaly_begin, anomaly_end)

static void test_first_nan(void **state)
{
    (void)state;
    assert_int_equal(tensor_first_nan(VEC(1, INFINITY, 2)), -1);
    assert_int_equal(tensor_first_nan(VEC(1, 2, NAN, NAN)), 2);
    assert_int_equal(tensor_first_nan(tensor_transpose(MAT(2, 1, NAN, 3, 4), 0, 1)), 2);
    assert_int_equal(tensor_first_nan(tensor_to(VEC(0, NAN), TENSOR_BF16)), 1);
    assert_int_equal(tensor_first_nan(tensor_ones(SHAPE(3), TENSOR_I64)), -1);
    assert_int_equal(tensor_first_nan(tensor_zeros(SHAPE(0), TENSOR_F32)), -1);
    assert_int_equal(tensor_first_nan(NULL), -1);
    assert_says(TENSOR_ENULL, "tensor_first_nan");
}

static void test_forward_names_the_op_and_the_place(void **state)
{
    (void)state;
    Tensor *x = MAT(2, 1, 4, -9, 16);
    assert_null(tensor_log(tensor_sqrt(x)));
    assert_non_null(strstr(tensor_error(), "sqrt"));
    assert_non_null(strstr(tensor_error(), "[2, 2]"));
    assert_non_null(strstr(tensor_error(), "test_anomaly.c"));
    assert_says(TENSOR_EVALUE, "[1, 0]");
}

static void test_forward_of_structured_and_in_place_ops(void **state)
{
    (void)state;
    Tensor *x = MAT(1, INFINITY, INFINITY), *y = VEC(-1, 4);
    assert_null(tensor_matmul(x, MAT(2, 1, -1)));
    assert_says(TENSOR_EVALUE, "matmul");
    assert_null(tensor_sqrt_(y));
    assert_says(TENSOR_EVALUE, "sqrt");
    assert_values(y, -1, 4);
    assert_null(tensor_softmax(VEC(-INFINITY, -INFINITY), 0));
    assert_says(TENSOR_EVALUE, "softmax");
}

static void test_nan_of_the_operand_passes(void **state)
{
    (void)state;
    Tensor *x = VEC(NAN, 1);
    assert_values(OK(tensor_exp(x)), NAN, exp(1));
    assert_values(OK(tensor_log(VEC(0))), -INFINITY); /* infinity is no NaN */
}

static void test_backward_names_the_op(void **state)
{
    (void)state;
    Tensor *x = LEAF(0, 4), *w = LEAF(1, 1), *other = LEAF(3, 3);
    Tensor *y = tensor_sum(tensor_mul(tensor_mul(tensor_sqrt(x), VEC(0, 1)), w));
    assert_int_equal(tensor_backward(tensor_add(y, tensor_sum(other))), -1); /* 0 / 0 in sqrt */
    assert_non_null(strstr(tensor_error(), "sqrt"));
    assert_non_null(strstr(tensor_error(), "test_anomaly.c"));
    assert_says(TENSOR_EVALUE, "backward");
    assert_null(tensor_grad(w)), assert_null(tensor_grad(x)), assert_null(tensor_grad(other));
}

static void test_off_by_default(void **state)
{
    (void)state;
    assert_values(OK(tensor_sqrt(VEC(-1))), NAN);
    assert_false(tensor_set_detect_anomaly(true));
    assert_true(tensor_set_detect_anomaly(false));
}

/* ---- leaks ----------------------------------------------------------------------------------- */

static char *report(int64_t *count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    *count = tensor_leak_report(file);
    fclose(file);
    return text;
}

static void test_leak_report(void **state)
{
    (void)state;
    int64_t before, during, after;
    free(report(&before));
    tensor_track_leaks(true);
    TensorScope scope = tensor_scope_open();
    Tensor *kept = tensor_retain(tensor_zeros(SHAPE(2, 3), TENSOR_I64));
    char line[64];
    snprintf(line, sizeof line, "test_anomaly.c:%d in test_leak_report", __LINE__ - 2);
    tensor_retain(tensor_retain(kept));
    VEC(1);
    tensor_scope_close(scope);
    char *text = report(&during);
    assert_int_equal(during, before + 1);
    assert_non_null(strstr(text, "i64 [2, 3], 3 references"));
    assert_non_null(strstr(text, line));
    assert_null(strstr(text, "f64"));
    free(text);
    tensor_track_leaks(false);
    for (int i = 0; i < 3; i++) tensor_release(kept);
    free(report(&after));
    assert_int_equal(after, before);
    assert_int_equal(tensor_leak_report(NULL), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ANOMALY(test_first_nan),
        ANOMALY(test_forward_names_the_op_and_the_place),
        ANOMALY(test_forward_of_structured_and_in_place_ops),
        ANOMALY(test_nan_of_the_operand_passes),
        ANOMALY(test_backward_names_the_op),
        TEST(test_off_by_default),
        TEST(test_leak_report),
    };
    return cmocka_run_group_tests_name("anomaly and leaks", tests, NULL, NULL);
}
