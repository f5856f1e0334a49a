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

enum { WAYS = 5 };

static bool reads(int way, Tensor *x, const char *want)
{
    char text[1000];
    float values[12];
    switch (way) {
    case 0: tensor_snprint(text, sizeof text, x); return !tensor_error_code() && strcmp(text, want) == 0;
    case 1: return tensor_copy_to(x, values, sizeof values) == 0;
    case 2: return tensor_to_device(x, "cpu") != NULL;
    case 3: return tensor_equal(x, tensor_contiguous(x));
    default: return tensor_first_nan(x) == -1 && !tensor_error_code();
    }
}

static void fail_request(bool there, int64_t n)
{
    if (there) assert_int_equal(tensor_debug_fail_device_allocation(test_device(), n, true), 0);
    else tensor_debug_fail_allocation(n, true);
}

/* Values of a transposed view are read through memory there and on the host: each request fails in turn. */
static void reads_without_memory(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_transpose(tensor_reshape(pattern(12), SHAPE(3, 4)), 0, 1);
    char want[1000];
    tensor_snprint(want, sizeof want, x);
    for (int way = 0; way < WAYS; way++)
        for (int there = 0; there < 2; there++) {
            const int64_t live = tensor_live_count();
            int64_t n = 1;
            for (bool done = false; !done; n++) {
                TensorScope one = tensor_scope_open();
                fail_request(there, n);
                done = reads(way, x, want);
                fail_request(there, 0);
                if (!done) assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
                tensor_error_clear();
                tensor_scope_close(one);
                assert_int_equal(tensor_live_count(), live);
                assert_true(n < 50);
            }
            assert_true(n > 2);
        }
    tensor_scope_close(scope);
}

static double sum_of(Tensor *x) { return tensor_item(tensor_sum(x)); }

/* The parameters of a module there take f32 of the host as f64: all of them, or none where memory fails. */
static void loads_all_or_nothing(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *m = nn_linear(3, 2, .dtype = TENSOR_F64);
    assert_int_equal(nn_to_device(m, test_device()), 0);
    TensorDict given = { 0 };
    assert_int_equal(nn_dict_set(&given, "weight", tensor_full(SHAPE(2, 3), 7, TENSOR_F32)), 0);
    assert_int_equal(nn_dict_set(&given, "bias", tensor_full(SHAPE(2), 7, TENSOR_F32)), 0);
    Tensor *weight = nn_get(m, "weight"), *bias = nn_get(m, "bias");
    const double before[] = { sum_of(weight), sum_of(bias) };
    int64_t n = 1;
    for (bool done = false; !done; n++) {
        fail_request(true, n);
        done = nn_load_state_dict(m, given) == 0;
        fail_request(true, 0);
        if (!done) assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        tensor_error_clear();
        assert_true(sum_of(weight) == (done ? 42 : before[0]) && sum_of(bias) == (done ? 14 : before[1]));
    }
    assert_true(n > 3);
    nn_dict_free(given);
    nn_free(m);
    tensor_scope_close(scope);
}

/* The second step of a GradScaler, whose numbers the device picks: taken as a whole, or not at all. */
static void steps_or_does_not(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *m = nn_linear(3, 2);
    Tensor *found = tensor_to_device(tensor_zeros(SHAPE(), TENSOR_F32), test_device()), *x = pattern(6);
    assert_int_equal(nn_to_device(m, test_device()), 0);
    Tensor *weight = nn_get(m, "weight");
    Optimizer *opt = optim_adam(nn_parameters(m), .lr = 0.5);
    tensor_backward(tensor_sum(nn_forward(m, tensor_reshape(x, SHAPE(2, 3)))));
    assert_int_equal(optim_step_unless(opt, found), 0);
    const double before = sum_of(weight);
    int64_t n = 1;
    for (bool done = false; !done; n++) {
        fail_request(true, n);
        done = optim_step_unless(opt, found) == 0;
        fail_request(true, 0);
        if (!done) assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        tensor_error_clear();
        assert_true((sum_of(weight) == before) == !done);
        assert_true(n < 100);
    }
    assert_true(n > 3);
    assert_int_equal((int)tensor_item(nn_dict_get(optim_state_dict(opt), "state.0.step")), 2);
    optim_free(opt), nn_free(m);
    tensor_scope_close(scope);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

enum { MiB = 1 << 20 };

static int64_t reserved(void) { return tensor_device_memory(test_device()).reserved; }

static Tensor *bytes_there(int64_t n)
{
    TensorScope scope = tensor_scope_open();
    assert_int_equal(tensor_set_default_device(test_device()), 0);
    Tensor *x = tensor_retain(tensor_empty(SHAPE(n), TENSOR_U8));
    assert_int_equal(tensor_set_default_device("cpu"), 0);
    assert_non_null(x);
    tensor_scope_close(scope);
    return x;
}

/* Requests share a segment; what is freed side by side serves a larger one. */
static void blocks_are_cut_and_joined(void **state)
{
    (void)state;
    enum { MANY = 512 };
    Tensor *small[MANY], *x[6];
    assert_int_equal(tensor_device_memory_release(test_device()), 0);
    const int64_t before = reserved();
    for (int i = 0; i < 6; i++) x[i] = bytes_there(3 * MiB);
    const int64_t with_six = reserved();
    assert_true(with_six - before >= 18 * MiB && with_six - before <= 20 * MiB);
    for (int i = 1; i < 5; i++) tensor_release(x[i]);
    Tensor *more = bytes_there(12 * MiB);
    assert_true(reserved() == with_six);
    const TensorMemory m = tensor_device_memory(test_device());
    assert_true(m.cached <= m.reserved - 18 * MiB && m.in_use >= 18 * MiB);
    for (int i = 0; i < MANY; i++) small[i] = bytes_there(1 + i);
    assert_true(reserved() - with_six <= 2 * MiB);
    for (int i = 0; i < MANY; i++) tensor_release(small[i]);
    tensor_release(x[0]), tensor_release(x[5]), tensor_release(more);
    Tensor *all = bytes_there(20 * MiB);
    assert_true(reserved() - with_six <= 2 * MiB);
    tensor_release(all);
    assert_int_equal(tensor_device_memory_release(test_device()), 0);
    assert_true(reserved() == before);
}

/* Tensors of any size come and go; each keeps its own values. */
static void blocks_do_not_overlap(void **state)
{
    (void)state;
    enum { LIVE = 24, ROUNDS = 400 };
    static unsigned char bytes[3 * MiB + 1];
    Tensor *live[LIVE] = { NULL };
    int value[LIVE] = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        TensorScope scope = tensor_scope_open();
        const int i = round * 7 % LIVE;
        const int64_t size = 1 + (int64_t)round * 7919 * 1031 % (round % 5 ? 90000 : 3 * MiB);
        if (live[i]) {
            const int64_t n = tensor_numel(live[i]);
            assert_int_equal(tensor_copy_to(live[i], bytes, (size_t)n), 0);
            for (int64_t k = 0; k < n; k++) assert_true(bytes[k] == value[i]);
            tensor_release(live[i]);
        }
        live[i] = bytes_there(size);
        assert_non_null(tensor_fill_(live[i], value[i] = round % 251));
        tensor_scope_close(scope);
    }
    for (int i = 0; i < LIVE; i++) tensor_release(live[i]);
}

/* What is cached goes back when a request finds no room. */
static void cached_memory_makes_room(void **state)
{
    (void)state;
    const int64_t third = tensor_device_memory(test_device()).total / 3;
    Tensor *a = bytes_there(third), *b = bytes_there(third);
    tensor_release(a), tensor_release(b);
    assert_true(tensor_device_memory(test_device()).cached >= 2 * third);
    Tensor *large = bytes_there(2 * third + 16 * MiB);
    assert_true(tensor_device_memory(test_device()).cached < third);
    tensor_release(large);
    assert_int_equal(tensor_device_memory_release(test_device()), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_one_device),  cmocka_unit_test(more_than_there_is),
        cmocka_unit_test(reads_without_memory),  cmocka_unit_test(loads_all_or_nothing),
        cmocka_unit_test(steps_or_does_not),     cmocka_unit_test(blocks_are_cut_and_joined),
        cmocka_unit_test(blocks_do_not_overlap), cmocka_unit_test(cached_memory_makes_room),
    };
    if (!test_device_opens()) return 1;
    return cmocka_run_group_tests_name("memory of a device", tests, NULL, NULL);
}
