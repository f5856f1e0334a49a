/* test_rnn_limits.c - what recurrent nets refuse, from both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <tapegrad.h>

enum { GRU, LSTM };

static TensorScope scope;
static int setup(void **state)
{
    (void)state;
    return tensor_error_clear(), scope = tensor_scope_open(), 0;
}
static int teardown(void **state)
{
    (void)state;
    return tensor_scope_close(scope), 0;
}

static void refused(const Tensor *y, TensorStatus code)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

/* The most layers, from both sides: 62 params, 61 of an lstm. */
static void test_the_most_layers(void **state)
{
    (void)state;
    static const struct {
        int kind, layers, directions;
        bool biases, fits;
    } of[] = { { GRU, 15, 1, true, true },   { GRU, 16, 1, true, false },   { GRU, 31, 1, false, true },
               { GRU, 32, 1, false, false }, { LSTM, 15, 1, true, true },   { LSTM, 16, 1, true, false },
               { LSTM, 30, 1, false, true }, { LSTM, 31, 1, false, false }, { LSTM, 7, 2, true, true },
               { LSTM, 8, 2, true, false } };
    Tensor *w[OP_MAX_INPUTS * 4], *x = tensor_ones(SHAPE(2, 1, 1), TENSOR_F64);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        int n = 0;
        for (int k = 0; k < of[i].layers * of[i].directions; k++) {
            const int64_t rows = (of[i].kind == LSTM ? 4 : 3),
                          in = k < of[i].directions ? 1 : of[i].directions;
            w[n++] = tensor_zeros(SHAPE(rows, in), TENSOR_F64),
            w[n++] = tensor_zeros(SHAPE(rows, 1), TENSOR_F64);
            for (int b = 0; b < 2 && of[i].biases; b++) w[n++] = tensor_zeros(SHAPE(rows), TENSOR_F64);
        }
        Tensor *h_n = NULL;
        const bool both = of[i].directions == 2;
        Tensor *y = of[i].kind == LSTM ? tensor_lstm(x, NULL, NULL, TENSOR_LIST(w, n), of[i].biases,
                                                     of[i].layers, .bidirectional = both, .h_n = &h_n)
                                       : tensor_gru(x, NULL, TENSOR_LIST(w, n), of[i].biases, of[i].layers,
                                                    .bidirectional = both, .h_n = &h_n);
        if (of[i].fits) assert_int_equal(tensor_size(h_n, 0), of[i].layers * of[i].directions);
        else refused(y, TENSOR_EVALUE);
    }
}

static void test_operands_of_different_dtypes_are_refused(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(2, 1, 3), TENSOR_F32), *w_ih = tensor_zeros(SHAPE(2, 3), TENSOR_F64),
           *w_hh = tensor_zeros(SHAPE(2, 2), TENSOR_F64);
    assert_null(tensor_rnn_tanh(x, NULL, TENSORS(w_ih, w_hh), .has_biases = false));
    assert_non_null(
        strstr(tensor_error(), "tensor_rnn_tanh: operand 1 is f32 [2, 1, 3], operand 3 f64 [2, 3]"));
    refused(NULL, TENSOR_EDTYPE);
    assert_null(tensor_rnn_relu_cell(tensor_select(x, 0, 0), NULL, w_ih, w_hh, NULL, NULL));
    assert_non_null(
        strstr(tensor_error(), "tensor_rnn_relu_cell: operand 1 is f32 [1, 3], operand 3 f64 [2, 3]"));
    refused(NULL, TENSOR_EDTYPE);
}

/* A wrong number of parameters: how many are wanted, and why so many. */
static void test_parameters_are_counted(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(2, 1, 3), TENSOR_F32), *w = tensor_zeros(SHAPE(2, 3), TENSOR_F32);
    assert_null(tensor_rnn_tanh(x, NULL, TENSORS(w, w, w), .has_biases = false));
    assert_non_null(strstr(tensor_error(), "3 params: want 2, 2 for each of 1 layers\n"));
    refused(NULL, TENSOR_EVALUE);
    assert_null(tensor_rnn_tanh(x, NULL, TENSORS(w, w, w), .has_biases = false, .bidirectional = true));
    assert_non_null(strstr(tensor_error(), "3 params: want 4, 2 for each of 1 layers and 2 directions"));
    refused(NULL, TENSOR_EVALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_most_layers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_operands_of_different_dtypes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parameters_are_counted, setup, teardown),
    };
    return cmocka_run_group_tests_name("rnn_limits", tests, NULL, NULL);
}
