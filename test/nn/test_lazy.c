/* test_lazy.c - modules whose first input tells a size. */
#include <stdlib.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>

static Tensor *ramp(TensorShape shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    return tensor_reshape(tensor_mul_scalar(tensor_arange(-1, (double)n - 1, 1, TENSOR_F32), 0.25), shape);
}

static void lazy_sizes(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(3);
    Module *net = nn_sequential(nn_lazy_conv2d(4, 3, .padding = 1), nn_lazy_batch_norm2d(), nn_flatten(),
                                nn_lazy_linear(2));
    assert_null(optim_sgd(nn_parameters(net), 0.1)); /* which would step the others alone */
    assert_non_null(
        strstr(tensor_error(), "nn_parameters: 0 (Conv2d) has no parameters before its first forward"));
    tensor_error_clear();
    assert_int_equal(nn_state_dict(net).count, -1); /* which would save the others alone */
    assert_non_null(strstr(tensor_error(), "nn_state_dict: 0 (Conv2d)"));
    tensor_error_clear();
    assert_int_equal(nn_named_parameters(net).count, -1);
    tensor_error_clear();
    assert_status_error(nn_load_state_dict(net, (TensorDict){ 0 }, .strict = false), TENSOR_EVALUE);
    Tensor *x = ramp(SHAPE(2, 3, 4, 5));
    assert_tensor_error(nn_forward(net, ramp(SHAPE(3))), TENSOR_ESHAPE);
    assert_int_equal(nn_num_parameters(net), 0);
    tensor_manual_seed(3);
    Tensor *y = nn_forward(net, x);
    tensor_manual_seed(3);
    Module *eager =
        nn_sequential(nn_conv2d(3, 4, 3, .padding = 1), nn_batch_norm2d(4), nn_flatten(), nn_linear(80, 2));
    assert_true(tensor_equal(y, nn_forward(eager, x)));
    assert_int_equal(nn_load_state_dict(net, nn_state_dict(eager)), 0);
    assert_true(tensor_equal(nn_forward(net, x), nn_forward(eager, x)));
    nn_free(net), nn_free(eager);
    tensor_scope_close(scope);
}

static void lazy_dtype(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *net = nn_sequential(nn_lazy_linear(4), nn_lazy_batch_norm1d(), nn_linear(4, 2));
    assert_int_equal(nn_to(net, TENSOR_F64), 0);
    Module *copy = nn_clone(net);
    Tensor *x = tensor_ones(SHAPE(2, 3), TENSOR_F64);
    assert_int_equal(tensor_dtype(nn_forward(net, x)), TENSOR_F64);
    assert_int_equal(tensor_dtype(nn_forward(copy, x)), TENSOR_F64);
    assert_int_equal(tensor_dtype(nn_get(net, "0.weight")), TENSOR_F64);
    nn_free(net), nn_free(copy);
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lazy_sizes),
        TEST(lazy_dtype),
    };
    return cmocka_run_group_tests_name("lazy modules", tests, NULL, NULL);
}
