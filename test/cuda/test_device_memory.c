/* test_device_memory.c - statistics, a limit and faults of the memory of TAPEGRAD_TEST_DEVICE. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "test_device.h"

static Tensor *pattern(int64_t n)
{
    return tensor_to_device(tensor_sin(tensor_arange(0, (double)n, 1, TENSOR_F32)), test_device());
}

/* A limit, and requests that are to fail. */
static void memory_of_one_device(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = pattern(1000);
    const TensorMemory m = tensor_device_memory(test_device());
    assert_int_equal(tensor_device_memory_set_limit(test_device(), m.in_use + 4000), 0);
    assert_int_equal(tensor_device_memory(test_device()).limit, m.in_use + 4000);
    assert_non_null(tensor_clone(x));
    assert_null(tensor_clone(x));
    assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
    assert_non_null(strstr(tensor_error(), "f32 [1000] on "));
    assert_non_null(strstr(tensor_error(), test_device()));
    assert_non_null(strstr(tensor_error(), ": 4000 bytes, where "));
    assert_non_null(strstr(tensor_error(), "the limit is "));
    tensor_error_clear();
    assert_non_null(tensor_clone(tensor_to_device(x, "cpu")));
    assert_int_equal(tensor_device_memory_set_limit(test_device(), 0), 0);
    const int64_t cached = tensor_device_memory(test_device()).cached;
    assert_non_null(x = tensor_clone(x));
    tensor_scope_close(scope);
    const TensorMemory after = tensor_device_memory(test_device());
    assert_true(after.cached >= cached + 8000);
    assert_true(after.reserved >= after.cached && after.total >= after.free && after.free > 0);
    assert_int_equal(tensor_device_memory_release(test_device()), 0);
    assert_int_equal(tensor_device_memory(test_device()).cached, 0);
    assert_int_equal(tensor_device_memory(test_device()).reserved, after.reserved - after.cached);
    assert_int_equal(tensor_device_memory_release("cpu"), 0);
    assert_true(tensor_memory().total > tensor_memory().free && tensor_memory().free > 0);
    assert_int_equal(tensor_device_memory_release("cuda:99"), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    tensor_error_clear();
    assert_int_equal(tensor_device_memory_set_limit("cuda:99", 0), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    tensor_error_clear();
}

/* A tensor that is larger than the device; then each request of a sort in turn, some of them the kernel's
 * own.  Only that device's requests fail. */
static void more_than_there_is(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = pattern(6000), *here = tensor_to_device(x, "cpu");
    int of_kernels = 0;
    assert_int_equal(tensor_set_default_device(test_device()), 0);
    assert_null(tensor_empty(SHAPE(1LL << 45), TENSOR_F32));
    assert_int_equal(tensor_set_default_device("cpu"), 0);
    assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
    assert_non_null(strstr(tensor_error(), ": 140737488355328 bytes, where "));
    assert_non_null(strstr(tensor_error(), " are in use and "));
    tensor_error_clear();
    for (int64_t n = 1;; n++) {
        TensorScope one = tensor_scope_open();
        assert_int_equal(tensor_debug_fail_device_allocation(test_device(), n, true), 0);
        Tensor *y = tensor_sort(x);
        assert_non_null(tensor_clone(here));
        assert_int_equal(tensor_debug_fail_device_allocation(test_device(), 0, false), 0);
        tensor_scope_close(one);
        if (y) break;
        assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        assert_non_null(strstr(tensor_error(), test_device()));
        of_kernels += strstr(tensor_error(), ": no memory for ") != NULL;
        tensor_error_clear();
        assert_true(n < 100);
    }
    assert_true(of_kernels > 0);
    assert_int_equal(tensor_debug_fail_device_allocation("cuda:99", 1, false), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    tensor_error_clear();
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_one_device),
        cmocka_unit_test(more_than_there_is),
    };
    if (!test_device_opens()) return 1;
    return cmocka_run_group_tests_name("memory of a device", tests, NULL, NULL);
}
