/* test_init.c - initial values: what they must satisfy at any size, beside PyTorch's numbers (test_nn.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/nn.h>

static void test_gains(void **state)
{
    (void)state;
    assert_true(nn_calculate_gain(NN_GAIN_LINEAR, 0.3) == 1);
    assert_true(nn_calculate_gain(NN_GAIN_TANH, 0.3) == 5.0 / 3);
    assert_true(nn_calculate_gain(NN_GAIN_RELU, 0.3) == sqrt(2));
    assert_true(nn_calculate_gain(NN_GAIN_SELU, 0.3) == 0.75);
    assert_true(fabs(nn_calculate_gain(NN_GAIN_LEAKY_RELU, 3) - sqrt(0.2)) < 1e-15);
    assert_true(isnan(nn_calculate_gain((NNGain)-1, 0)));
    assert_status_error(-1, TENSOR_EVALUE);
}

/* The rows, or the columns where there are fewer, are gain times an orthonormal system, and that of the QR
 * decomposition of what is drawn whose R has a positive diagonal. */
static void orthogonal(TensorShape shape, double gain)
{
    TensorScope scope = tensor_scope_open();
    const uint64_t seed = (uint64_t)(9 * shape.dim[0] + shape.dim[1]);
    tensor_manual_seed(seed);
    Tensor *w = nn_init_orthogonal_(tensor_empty(shape, TENSOR_F64), gain);
    w = tensor_reshape(w, SHAPE(shape.dim[0], -1));
    tensor_manual_seed(seed);
    Tensor *drawn = tensor_randn(tensor_shape(w), TENSOR_F64);
    if (tensor_size(w, 0) >= tensor_size(w, 1))
        w = tensor_transpose(w, 0, 1), drawn = tensor_transpose(drawn, 0, 1);
    Tensor *r = tensor_matmul(drawn, tensor_transpose(w, 0, 1)); /* its transpose */
    assert_true(tensor_allclose(r, tensor_tril(r), 0, 1e-12 * gain, false));
    assert_true(tensor_item(tensor_amin(tensor_diagonal(r))) > 0);
    Tensor *unit =
        tensor_mul_scalar(tensor_eye(tensor_size(w, 0), tensor_size(w, 0), TENSOR_F64), gain * gain);
    assert_true(tensor_allclose(tensor_matmul(w, tensor_transpose(w, 0, 1)), unit, 1e-12, 1e-12, false));
    tensor_scope_close(scope);
}

static void test_orthogonal(void **state)
{
    (void)state;
    for (int rows = 1; rows < 9; rows++)
        for (int columns = 1; columns < 9; columns++) orthogonal(SHAPE(rows, columns), 0.5 * rows);
    orthogonal(SHAPE(3, 2, 4), 1);
    orthogonal(SHAPE(9, 2, 3), 2);
}

/* Of many draws: the bound of a uniform, the deviation of a normal. */
static void spread(Tensor *w, double bound, double std)
{
    assert_non_null(w);
    const double most = tensor_item(tensor_amax(tensor_abs(w))), deviation = tensor_item(tensor_std(w));
    if (bound != 0) assert_true(most <= bound && most > 0.98 * bound);
    assert_true(fabs(deviation / std - 1) < 0.05);
    assert_true(fabs(tensor_item(tensor_mean(w))) < 0.1 * std);
}

static void test_deviations(void **state)
{
    (void)state;
    tensor_manual_seed(4);
    /* [out, in, 3]: fan_in 60, fan_out 120 */
    Tensor *w = tensor_empty(SHAPE(40, 20, 3), TENSOR_F64);
    double std = 2 * sqrt(2.0 / 180);
    spread(nn_init_xavier_uniform_(w, 2), sqrt(3) * std, std);
    spread(nn_init_xavier_normal_(w, 2), 0, std);
    std = sqrt(2.0 / 60);
    spread(nn_init_kaiming_uniform_(w), sqrt(3) * std, std);
    spread(nn_init_kaiming_normal_(w), 0, std);
    std = sqrt(2.0 / (1 + 0.25) / 120);
    spread(nn_init_kaiming_uniform_(w, 0.5, .mode = NN_FAN_OUT), sqrt(3) * std, std);
    spread(nn_init_kaiming_normal_(w, 0.5, .mode = NN_FAN_OUT), 0, std);
    std = 5.0 / 3 / sqrt(60);
    spread(nn_init_kaiming_uniform_(w, .nonlinearity = NN_GAIN_TANH), sqrt(3) * std, std);
    spread(nn_init_kaiming_normal_(w, .nonlinearity = NN_GAIN_TANH), 0, std);
}

static void test_refused(void **state)
{
    (void)state;
    Tensor *line = tensor_empty(SHAPE(3), TENSOR_F32), *none = tensor_empty(SHAPE(0, 2), TENSOR_F32);
    assert_null(nn_init_xavier_uniform_(line));
    assert_status_error(-1, TENSOR_ESHAPE);
    assert_null(nn_init_kaiming_normal_(line));
    assert_status_error(-1, TENSOR_ESHAPE);
    assert_null(nn_init_orthogonal_(line));
    assert_status_error(-1, TENSOR_ESHAPE);
    Tensor *w = tensor_empty(SHAPE(3, 2), TENSOR_F32);
    assert_null(nn_init_xavier_normal_(w, -1));
    if (strncmp(tensor_error(), "nn_init_xavier_normal_: ", 24) != 0) fail_msg("%s", tensor_error());
    assert_status_error(-1, TENSOR_EVALUE);
    assert_ptr_equal(nn_init_orthogonal_(none), none);
    assert_ptr_equal(nn_init_kaiming_uniform_(none), none);
    assert_ptr_equal(nn_init_kaiming_normal_(none), none);
}

/* Refused with this text, and x keeps its twos. */
static void refused(Tensor *answer, Tensor *x, int code, const char *text)
{
    assert_null(answer);
    assert_non_null(tensor_error());
    if (strncmp(tensor_error(), text, strlen(text)) != 0) fail_msg("%s", tensor_error());
    assert_status_error(-1, code);
    assert_true(tensor_item(tensor_amin(x)) == 2 && tensor_item(tensor_amax(x)) == 2);
}

static void test_few_elements(void **state)
{
    (void)state;
    Tensor *w = tensor_full(SHAPE(4, 3), 2, TENSOR_F32), *conv = tensor_full(SHAPE(4, 3, 2), 2, TENSOR_F32);
    refused(nn_init_eye_(conv), conv, TENSOR_ESHAPE, "nn_init_eye_: a tensor of rank 3: want 2");
    refused(nn_init_eye_(NULL), w, TENSOR_ENULL, "nn_init_eye_: the tensor is NULL");
    refused(nn_init_dirac_(w), w, TENSOR_ESHAPE, "nn_init_dirac_: a tensor of rank 2: want 3 to 5");
    refused(nn_init_dirac_(conv, 3), conv, TENSOR_ESHAPE,
            "nn_init_dirac_: groups 3 for 4 channels: want a divisor of them");
    refused(nn_init_dirac_(conv, 0), conv, TENSOR_EVALUE,
            "nn_init_dirac_: groups 0 for 4 channels: want a divisor of them");
    refused(nn_init_sparse_(conv, 0.5), conv, TENSOR_ESHAPE, "nn_init_sparse_: a tensor of rank 3: want 2");
    refused(nn_init_sparse_(w, 1.5), w, TENSOR_EVALUE, "nn_init_sparse_: sparsity 1.5: want 0 to 1");
    refused(nn_init_sparse_(w, -0.1), w, TENSOR_EVALUE, "nn_init_sparse_: sparsity -0.1: want 0 to 1");
    assert_null(nn_init_sparse_(w));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_null(nn_init_sparse_(w, 0.5, .std = -1));
    if (strncmp(tensor_error(), "nn_init_sparse_: ", 17) != 0) fail_msg("%s", tensor_error());
    assert_status_error(-1, TENSOR_EVALUE);
    assert_true(tensor_item(tensor_amin(w)) == 2);
    Tensor *none = tensor_empty(SHAPE(0, 2), TENSOR_F32), *empty = tensor_empty(SHAPE(2, 2, 0), TENSOR_F32);
    assert_ptr_equal(nn_init_eye_(none), none);
    assert_ptr_equal(nn_init_sparse_(none, 0.5), none);
    assert_ptr_equal(nn_init_dirac_(empty), empty);
    Tensor *whole = tensor_empty(SHAPE(3, 3), TENSOR_I64);
    assert_true(tensor_equal(nn_init_eye_(whole), tensor_eye(3, 3, TENSOR_I64)));
    assert_true(tensor_item(tensor_amax(tensor_abs(nn_init_sparse_(w, 1)))) == 0);
    assert_true(tensor_item(tensor_amin(tensor_abs(nn_init_sparse_(w, 0)))) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_gains), cmocka_unit_test(test_orthogonal),
                                        cmocka_unit_test(test_deviations), cmocka_unit_test(test_refused),
                                        cmocka_unit_test(test_few_elements) };
    TensorScope scope = tensor_scope_open();
    int failed = cmocka_run_group_tests_name("initial values", tests, NULL, NULL);
    tensor_scope_close(scope);
    return failed;
}
