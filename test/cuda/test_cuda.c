/* test_cuda.c - the device cuda:0.  Where there is no GPU, it is refused with a sentence as often as it is
 * asked for, and the CPU goes on; where there is one, it computes. */
#include "plugin_folder.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>

static void cpu_goes_on(void)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_requires_grad_(tensor_full(SHAPE(3), 2, TENSOR_F32), true);
    assert_string_equal(tensor_device(x), "cpu");
    assert_int_equal(tensor_backward(tensor_sum(tensor_square(x))), 0);
    assert_true(tensor_item(tensor_sum(tensor_grad(x))) == 12);
    tensor_scope_close(scope);
}

/* What the refusal may say: there is no plugin, no driver, or no GPU. */
static bool names_the_cause(const char *error)
{
    return strstr(error, "its plugin could not be opened") || strstr(error, "NVIDIA");
}

static void refused_twice(void **state)
{
    (void)state;
    char first[1024] = "";
    if (tensor_device_available("cuda:0")) return;
    for (int times = 0; times < 2; times++) {
        assert_int_equal(tensor_set_default_device("cuda:0"), -1);
        assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
        assert_non_null(strstr(tensor_error(), "\"cuda:0\": "));
        assert_true(names_the_cause(tensor_error()));
        if (times == 0) strncpy(first, tensor_error(), sizeof first - 1);
        else assert_string_equal(first, tensor_error());
        tensor_error_clear();
        assert_string_equal(tensor_default_device(), "cpu");
        cpu_goes_on();
    }
}

static void in_the_build_info(void **state)
{
    (void)state;
    assert_non_null(strstr(tensor_build_info(), "cuda:0 "));
    assert_null(tensor_error());
}

/* y = relu(x w) and its gradient, on the device and on the CPU. */
static Tensor *product_gradient(const char *device)
{
    Tensor *x = tensor_reshape(tensor_linspace(-1, 1, 64 * 32, TENSOR_F32), SHAPE(64, 32));
    Tensor *w = tensor_reshape(tensor_linspace(-1, 2, 32 * 16, TENSOR_F32), SHAPE(32, 16));
    x = tensor_to_device(x, device), w = tensor_requires_grad_(tensor_to_device(w, device), true);
    assert_int_equal(tensor_backward(tensor_mean(tensor_square(tensor_relu(tensor_matmul(x, w))))), 0);
    return tensor_to_device(tensor_grad(w), "cpu");
}

static void computes(void **state)
{
    (void)state;
    if (!tensor_device_available("cuda:0")) return;
    TensorScope scope = tensor_scope_open();
    assert_tensor_close(product_gradient("cuda:0"), product_gradient("cpu"), 1e-4, 1e-6);
    tensor_scope_close(scope);
}

int main(void)
{
    set_plugin_folder("");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_twice),
        cmocka_unit_test(in_the_build_info),
        cmocka_unit_test(computes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
