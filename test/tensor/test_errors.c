/* test_errors.c - the first error sticks, NULL flows, and the text says what was found, what was wanted and
 * where. */
#include "sane.h"

/* ---- sticking, flowing ----------------------------------------------------------------------- */

static void test_first_error_sticks(void **state)
{
    (void)state;
    Tensor *a = tensor_ones(SHAPE(64, 784), TENSOR_F32), *b = tensor_ones(SHAPE(128, 10), TENSOR_F32);
    Tensor *y = tensor_relu(tensor_matmul(a, b));
    Tensor *loss = tensor_cross_entropy(tensor_add(y, y), tensor_zeros(SHAPE(64), TENSOR_I64));
    assert_null(loss);
    assert_int_equal(tensor_backward(loss), -1);
    assert_true(isnan(tensor_item(loss)));
    assert_null(tensor_reshape(a, SHAPE(3))); /* another mistake: not the first */
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    assert_non_null(strstr(tensor_error(), "tensor_matmul: [64, 784] times [128, 10]"));
    assert_says(TENSOR_ESHAPE, "784 and 128");
    assert_null(tensor_error());
    assert_int_equal(tensor_error_code(), TENSOR_OK);
}

static void test_good_calls_work_while_an_error_sticks(void **state)
{
    (void)state;
    tensor_fail(TENSOR_EUSER, "earlier", "something %d", 7);
    Tensor *x = LEAF(1, 2), *y = tensor_sum(tensor_matmul(tensor_reshape(x, SHAPE(1, 2)),
                                                          tensor_reshape(tensor_mul(x, x), SHAPE(2, 1))));
    assert_non_null(y);
    assert_int_equal(tensor_backward(y), 0);
    assert_int_equal(tensor_error_code(), TENSOR_EUSER);
    assert_says(TENSOR_EUSER, "earlier: something 7");
    assert_values(tensor_grad(x), 3, 12);
}

static void test_null_passes_silently_after_an_error(void **state)
{
    (void)state;
    tensor_fail(TENSOR_EUSER, "first", "cause");
    assert_null(tensor_add(NULL, NULL));
    assert_null(tensor_sum(tensor_exp(NULL)));
    assert_null(tensor_linear(VEC(1), NULL, NULL));
    assert_int_equal(tensor_numel(NULL), 0);
    assert_says(TENSOR_EUSER, "first: cause");
    assert_null(tensor_add(NULL, NULL)); /* without one, NULL is the mistake */
    assert_says(TENSOR_ENULL, "tensor_add: operand 1 is NULL");
}

static void test_status_texts(void **state)
{
    (void)state;
#define X(name, text) assert_string_equal(tensor_status_text(name), text);
    TENSOR_STATUS_LIST(X)
#undef X
    assert_non_null(tensor_status_text((TensorStatus)1000));
    assert_non_null(tensor_status_text((TensorStatus)-1));
}

static void test_error_of_success_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(tensor_fail(TENSOR_OK, "mine", "no code"), -1);
    assert_says(TENSOR_EUSER, "mine: no code");
}

static void test_long_texts_are_cut(void **state)
{
    (void)state;
    char long_text[5000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    tensor_fail(TENSOR_EUSER, long_text, "%s", long_text); /* of a name */
    assert_true(strlen(tensor_error()) < sizeof long_text);
    tensor_error_clear();
    tensor_fail(TENSOR_EUSER, "mine", "%s and %d", long_text, 7); /* all of it, and what comes after */
    tensor_error_note("in %s", "here");
    assert_memory_equal(tensor_error(), "mine: xxx", 9);
    const char *end = strstr(tensor_error(), "x and 7\n    at ");
    assert_non_null(end);
    assert_non_null(strstr(end, "\n    in here"));
    tensor_error_clear();
    tensor_fail(TENSOR_EUSER, "mine", "%*d", 200000, 7); /* up to 64 KiB */
    const size_t n = strlen(tensor_error());
    assert_in_range(n, 65000, 68000);
    tensor_error_clear();
    /* A name leaves room for the text, a text for the line. */
    for (int k = 740; k <= 1021; k++) {
        long_text[k] = 0;
        tensor_fail(TENSOR_EUSER, long_text, "7");
        assert_non_null(strstr(tensor_error(), "x: 7"));
        tensor_error_clear();
        tensor_fail(TENSOR_EUSER, "", "%s7", long_text);
        assert_non_null(strstr(tensor_error(), "x7\n    at "));
        tensor_error_clear();
        long_text[k] = 'x';
    }
}

/* ---- the place ------------------------------------------------------------------------------- */

static void assert_place(int line, const char *function)
{
    char place[128];
    snprintf(place, sizeof place, "test_errors.c:%d in %s", line, function);
    if (!tensor_error() || !strstr(tensor_error(), place))
        FAILS("wanted \"%s\" in %s", place, tensor_error() ? tensor_error() : "no error");
    tensor_error_clear();
}

#define NOINLINE __attribute__((noinline))

static NOINLINE void wrong_product(Tensor *x, int *line)
{
    *line = __LINE__ + 1;
    Tensor *volatile y = tensor_matmul(x, x); /* volatile: no tail call, which would leave no frame */
    (void)y;
}

static void test_line_of_the_call(void **state)
{
    (void)state;
    Tensor *x = MAT(2, 1, 2, 3, 4, 5, 6), *big = tensor_ones(SHAPE(3, 2), TENSOR_F64);
    int line;
    wrong_product(x, &line);
    assert_place(line, "wrong_product");
    tensor_add(x, big), assert_place(__LINE__, "test_line_of_the_call");
    tensor_sum(x, 5), assert_place(__LINE__, "test_line_of_the_call");
    tensor_mul_(x, big), assert_place(__LINE__, "test_line_of_the_call");
    tensor_backward(x), assert_place(__LINE__, "test_line_of_the_call");
    tensor_zeros(SHAPE(-1), TENSOR_F32), assert_place(__LINE__, "test_line_of_the_call");
    tensor_softmin(x, 4), assert_place(__LINE__, "test_line_of_the_call");
    tensor_size(x, 9), assert_place(__LINE__, "test_line_of_the_call");
}

static NOINLINE Tensor *forward_of(Tensor *x, int *line)
{
    *line = __LINE__ + 1;
    Tensor *volatile y = tensor_exp(x);
    return y;
}

static void test_line_of_the_forward_in_backward(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2);
    int line;
    Tensor *y = tensor_sum(forward_of(x, &line));
    DONE(tensor_backward(y));
    assert_int_equal(tensor_backward(y), -1);
    assert_place(line, "forward_of");
}

/* ---- the handler ----------------------------------------------------------------------------- */

static struct {
    int calls;
    TensorStatus code;
    char text[1024];
} heard;

static void hear(const char *text, TensorStatus code, void *ctx)
{
    assert_ptr_equal(ctx, &heard);
    heard.calls++, heard.code = code;
    snprintf(heard.text, sizeof heard.text, "%s", text);
}

static void test_on_error_is_called_once(void **state)
{
    (void)state;
    Tensor *x = VEC(1, 2);
    memset(&heard, 0, sizeof heard);
    tensor_on_error(hear, &heard);
    tensor_exp(tensor_add(x, VEC(1, 2, 3)));
    tensor_matmul(NULL, NULL);
    assert_int_equal(heard.calls, 1);
    assert_int_equal(heard.code, TENSOR_ESHAPE);
    assert_string_equal(heard.text, tensor_error());
    tensor_error_clear();
    tensor_sum(x, 3);
    assert_int_equal(heard.calls, 2);
    tensor_error_clear();
    tensor_on_error(NULL, NULL);
    tensor_sum(x, 3);
    assert_int_equal(heard.calls, 2);
    tensor_error_clear();
}

static void makes_another(const char *text, TensorStatus code, void *ctx)
{
    (void)text, (void)code;
    ++*(int *)ctx;
    tensor_sum(NULL), tensor_error(); /* the library may be called from the handler */
}

static void test_handler_may_call_the_library(void **state)
{
    (void)state;
    int calls = 0;
    tensor_on_error(makes_another, &calls);
    tensor_sum(VEC(1), 3);
    tensor_on_error(NULL, NULL);
    assert_int_equal(calls, 1);
    assert_says(TENSOR_EINDEX, "tensor_sum");
}

/* ---- what the texts say ---------------------------------------------------------------------- */

static void test_texts(void **state)
{
    (void)state;
    Tensor *m = MAT(2, 1, 2, 3, 4, 5, 6), *v = VEC(1, 2, 3, 4),
           *i = tensor_from_data((int64_t[]){ 1, -4, 9 }, SHAPE(3), TENSOR_I64);
    Tensor *targets = tensor_from_data((int64_t[]){ 0, 3 }, SHAPE(2), TENSOR_I64);
    assert_null(tensor_reshape(m, SHAPE(4, 2)));
    assert_non_null(strstr(tensor_error(), "[2, 3]")), assert_says(TENSOR_ESHAPE, "[4, 2]");
    assert_null(tensor_add(m, v));
    assert_non_null(strstr(tensor_error(), "[2, 3]")), assert_says(TENSOR_ESHAPE, "[4]");
    assert_null(tensor_embedding(i, m));
    assert_non_null(strstr(tensor_error(), "-4")), assert_says(TENSOR_EINDEX, "tensor_embedding");
    assert_null(tensor_gather(v, 0, i));
    assert_says(TENSOR_EINDEX, "-4");
    assert_null(tensor_cross_entropy(m, targets));
    assert_non_null(strstr(tensor_error(), "3")), assert_says(TENSOR_EINDEX, "tensor_cross_entropy");
    assert_null(tensor_nll_loss(m, targets));
    assert_says(TENSOR_EINDEX, "tensor_nll_loss");
    assert_null(tensor_mse_loss(m, VEC(1, 2, 3))); /* nothing is broadcast in a loss */
    assert_non_null(strstr(tensor_error(), "[2, 3]")), assert_says(TENSOR_ESHAPE, "[3]");
    assert_null(tensor_linear(m, v, NULL));
    assert_says(TENSOR_ESHAPE, "[4]");
    assert_null(tensor_exp_(i));
    assert_says(TENSOR_EDTYPE, "i64");
    assert_null(tensor_softmax(m, 2));
    assert_non_null(strstr(tensor_error(), "2")), assert_says(TENSOR_EINDEX, "[2, 3]");
    assert_null(tensor_to_device(m, "cuda:7"));
    assert_says(TENSOR_EDEVICE, "cuda");
}

/* ---- a failed step --------------------------------------------------------------------------- */

static void test_failed_step_changes_nothing(void **state)
{
    (void)state;
    Tensor *w = LEAF_MAT(2, 1, 2, 3, 4), *x = MAT(1, 1, 1);
    DONE(tensor_backward(tensor_sum(tensor_matmul(x, w))));
    int64_t live = tensor_live_count(), length = tensor_tape_length();
    TensorScope scope = tensor_scope_open();
    Tensor *wrong = tensor_matmul(tensor_matmul(x, w), MAT(3, 1, 2, 3));
    assert_int_equal(tensor_backward(tensor_sum(wrong)), -1);
    TENSOR_NO_GRAD
        assert_null(tensor_add_(w, wrong));
    tensor_scope_close(scope);
    assert_says(TENSOR_ESHAPE, "[3, 1]");
    assert_int_equal(tensor_live_count(), live);
    assert_int_equal(tensor_tape_length(), length);
    assert_values(w, 1, 2, 3, 4);
    assert_values(tensor_grad(w), 1, 1, 1, 1);
    assert_int_equal(tensor_version(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_error_sticks),
        TEST(test_good_calls_work_while_an_error_sticks),
        TEST(test_null_passes_silently_after_an_error),
        TEST(test_status_texts),
        TEST(test_error_of_success_is_an_error),
        TEST(test_long_texts_are_cut),
        TEST(test_line_of_the_call),
        TEST(test_line_of_the_forward_in_backward),
        TEST(test_on_error_is_called_once),
        TEST(test_handler_may_call_the_library),
        TEST(test_texts),
        TEST(test_failed_step_changes_nothing),
    };
    return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
