/* test_memory_report.c - the table of what holds memory, and the memory of a device by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tapegrad.h>

static char text[1 << 16];

static int64_t report(void)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    const int64_t bytes = tensor_memory_report(file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return bytes;
}

static void assert_line(const char *what)
{
    if (!strstr(text, what)) fail_msg("no \"%s\" in\n%s", what, text);
}

static int count(const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

static void test_tensors_by_place_and_shape(void **unused)
{
    (void)unused;
    tensor_track_leaks(true);
    TensorScope scope = tensor_scope_open();
    Tensor *big = NULL;
    for (int i = 0; i < 3; i++) big = tensor_zeros(SHAPE(500, 100), TENSOR_F64); /* 0.4 MB each */
    Tensor *view = tensor_transpose(big, 0, 1), *small = tensor_ones(SHAPE(10), TENSOR_I64);
    const int64_t bytes = report();
    assert_true(view && small);
    assert_int_equal(bytes, 3 * 500 * 100 * 8 + 10 * 8); /* the view's memory is counted once */
    assert_line("cpu: ");
    assert_line("\n          MB   count  what\n");
    assert_line("       1.200       3  f64 [500, 100], made at ");
    assert_line("       0.000       1  f64 [100, 500], made at ");
    assert_line("i64 [10], made at ");
    assert_line("test_memory_report.c:");
    assert_line("1.200 MB in tensors, 0.000 MB saved for backward alone");
    assert_true(strstr(text, "[500, 100]") < strstr(text, "[10]")); /* the largest first */
    tensor_scope_close(scope);
    assert_int_equal(report(), 0);
    tensor_track_leaks(false);
}

static void test_what_backward_keeps(void **unused)
{
    (void)unused;
    tensor_track_leaks(true);
    TensorScope scope = tensor_scope_open();
    Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(100, 100), TENSOR_F32), true), *y;
    TensorScope inner = tensor_scope_open();
    y = tensor_retain(tensor_sum(tensor_exp(tensor_exp(w)))); /* each keeps its result */
    tensor_scope_close(inner);
    assert_int_equal(report(), 3 * 100 * 100 * 4 + 4);
    assert_line("       0.080       2  f32 [100, 100], saved by exp\n");
    assert_int_equal(count("saved by"), 1);
    assert_line("0.080 MB saved for backward alone");
    tensor_track_leaks(false);
    tensor_backward(y);
    tensor_release(y);
    report();
    assert_int_equal(count("saved by"), 0);
    assert_line("which are listed after tensor_track_leaks(true)");
    tensor_scope_close(scope);
}

static void test_a_device_by_its_name(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    const int64_t before = tensor_device_memory("cpu").in_use;
    Tensor *x = tensor_zeros(SHAPE(1 << 20), TENSOR_F32);
    assert_non_null(x);
    assert_true(tensor_device_memory("cpu").in_use >= before + (4 << 20));
    assert_int_equal(tensor_device_memory("cpu").in_use, tensor_memory().in_use);
    tensor_scope_close(scope);
    assert_true(tensor_device_memory("cpu").peak >= before + (4 << 20));
    assert_int_equal(tensor_device_memory_reset_peak("cpu"), 0);
    assert_true(tensor_device_memory("cpu").peak < before + (4 << 20));
    static const char *const wrong[] = { NULL, "no such thing", "cpu:1" };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tensor_device_memory(wrong[i]).in_use, 0);
        assert_int_equal(tensor_error_code(), wrong[i] ? TENSOR_EDEVICE : TENSOR_ENULL);
        tensor_error_clear();
        assert_int_equal(tensor_device_memory_reset_peak(wrong[i]), -1);
        tensor_error_clear();
    }
    assert_int_equal(tensor_memory_report(NULL), -1);
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_by_place_and_shape),
        cmocka_unit_test(test_what_backward_keeps),
        cmocka_unit_test(test_a_device_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
