/* test_streams.c - events, copies beside the queue, pinned memory, on the device of TAPEGRAD_TEST_DEVICE. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include "test_device.h"

static void expect_error(TensorStatus code, const char *text)
{
    assert_int_equal(tensor_error_code(), code);
    if (!strstr(tensor_error(), text)) fail_msg("%s: want \"%s\"", tensor_error(), text);
    tensor_error_clear();
}

/* All of it on both: the CPU has nothing to wait for, and says so. */
static void events(void **state)
{
    (void)state;
    const char *const device[] = { "cpu", test_device() };
    for (int i = 0; i < 2; i++) {
        TensorScope scope = tensor_scope_open();
        TensorEvent *start = tensor_event(device[i], true), *end = tensor_event(device[i], true),
                    *plain = tensor_event(device[i], false);
        assert_non_null(plain);
        assert_int_equal(tensor_event_query(plain), 1); /* never recorded */
        assert_int_equal(tensor_event_synchronize(plain), 0);
        assert_int_equal(tensor_event_wait(plain), 0);
        assert_true(isnan(tensor_event_elapsed_time(start, end)));
        expect_error(TENSOR_EVALUE, "tensor_event_elapsed_time: the event was never recorded");
        Tensor *x = tensor_to_device(tensor_ones(SHAPE(100), TENSOR_F32), device[i]);
        assert_int_equal(tensor_event_record(start), 0);
        Tensor *y = tensor_mul(x, x);
        assert_int_equal(tensor_event_record(end), 0);
        assert_int_equal(tensor_event_record(plain), 0);
        assert_int_equal(tensor_event_synchronize(end), 0);
        assert_int_equal(tensor_event_query(start), 1);
        assert_int_equal(tensor_event_query(end), 1);
        assert_true(tensor_event_elapsed_time(start, end) >= 0);
        assert_true(tensor_event_elapsed_time(end, start) <= 0);
        assert_int_equal(tensor_event_record(end), 0); /* again */
        assert_int_equal(tensor_event_synchronize(end), 0);
        assert_int_equal(tensor_event_synchronize(plain), 0);
        assert_true(isnan(tensor_event_elapsed_time(start, plain)));
        expect_error(TENSOR_EVALUE, "without enable_timing");
        assert_true(tensor_item(tensor_sum(y)) == 100);
        tensor_event_free(start), tensor_event_free(end), tensor_event_free(plain);
        tensor_scope_close(scope);
    }
    tensor_event_free(NULL);
    assert_null(tensor_event("cuda:99", false));
    expect_error(TENSOR_EDEVICE, "tensor_event: \"cuda:99\"");
    assert_null(tensor_event(NULL, false));
    expect_error(TENSOR_ENULL, "tensor_event");
    assert_int_equal(tensor_event_record(NULL), -1);
    expect_error(TENSOR_ENULL, "tensor_event_record: the event is NULL");
    TensorEvent *here = tensor_event("cpu", true), *there = tensor_event(test_device(), true);
    assert_int_equal(tensor_event_record(here), 0);
    assert_int_equal(tensor_event_record(there), 0);
    assert_true(isnan(tensor_event_elapsed_time(here, there)));
    expect_error(TENSOR_EDEVICE, "events of cpu and ");
    tensor_event_free(here), tensor_event_free(there);
}

/* An event that has not passed: not ready, no error, and the next launch is not blamed for it. */
static void an_event_that_has_not_passed(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    TensorEvent *start = tensor_event(test_device(), true), *end = tensor_event(test_device(), true);
    Tensor *x = tensor_to_device(tensor_ones(SHAPE(1000), TENSOR_F32), test_device());
    assert_int_equal(tensor_event_record(start), 0);
    for (int i = 0; i < 20; i++) x = tensor_add(x, x);
    assert_int_equal(tensor_event_record(end), 0);
    const int passed = tensor_event_query(end);
    if (is_emulated()) assert_int_equal(passed, 0);
    if (!passed) {
        assert_true(isnan(tensor_event_elapsed_time(start, end)));
        if (is_emulated()) expect_error(TENSOR_EVALUE, "have not passed yet");
        tensor_error_clear();
    }
    assert_true(tensor_item(tensor_sum(x)) == 1000 * 1048576.0);
    assert_null(tensor_error());
    tensor_event_free(start), tensor_event_free(end);
    tensor_scope_close(scope);
}

static void pinned_memory(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_transpose(tensor_reshape(tensor_arange(0, 6, 1, TENSOR_F32), SHAPE(2, 3)), 0, 1),
           *p = tensor_pin_memory(x, test_device());
    assert_true(tensor_is_pinned(p) && !tensor_is_pinned(x));
    assert_true(tensor_equal(p, x));
    assert_string_equal(tensor_device(p), "cpu");
    assert_ptr_equal(tensor_pin_memory(p, test_device()), p);
    assert_ptr_equal(tensor_pin_memory(x, "cpu"), x);
    assert_true(tensor_is_pinned(tensor_pin_memory(tensor_empty(SHAPE(0), TENSOR_I64), test_device())));
    Tensor *there = tensor_to_device(p, test_device());
    assert_false(tensor_is_pinned(there));
    assert_true(tensor_equal(tensor_to_device(there, "cpu"), x));
    assert_null(tensor_pin_memory(there, test_device()));
    expect_error(TENSOR_EDEVICE, "want cpu");
    assert_null(tensor_pin_memory(NULL, test_device()));
    expect_error(TENSOR_ENULL, "tensor_pin_memory");
    assert_null(tensor_pin_memory(x, "cuda:99"));
    expect_error(TENSOR_EDEVICE, "cuda:99");
    assert_false(tensor_is_pinned(NULL));
    expect_error(TENSOR_ENULL, "tensor_is_pinned");
    tensor_scope_close(scope);
}

enum { N = 5000, BATCHES = 60 };

static Tensor *batch_of(int i) { return tensor_full(SHAPE(N), i, TENSOR_F32); }

/* The next batch is copied while the last one is computed with, from pinned memory and from other; each in
 * memory that was freed, perhaps before anything waited for its copy. */
static void prefetched_batches(void **state)
{
    (void)state;
    const char *const device[] = { "cpu", test_device() };
    for (int i = 0; i < 4; i++) {
        const char *where = device[i / 2];
        TensorScope scope = tensor_scope_open();
        TensorEvent *ready = tensor_event(where, false);
        Tensor *sum = tensor_to_device(tensor_zeros(SHAPE(), TENSOR_F64), where);
        Tensor *next = NULL, *staged = tensor_pin_memory(batch_of(0), i % 2 ? where : "cpu");
        for (int k = 0; k < BATCHES; k++) {
            TensorScope step = tensor_scope_open();
            tensor_fill_(staged, k);
            TENSOR_COPY_STREAM(where)
            {
                next = tensor_to_device(staged, where);
                assert_non_null(tensor_to_device(staged, where)); /* never used */
                assert_int_equal(tensor_event_record(ready), 0);
            }
            Tensor *busy = tensor_matmul(tensor_reshape(tensor_to_device(batch_of(1), where), SHAPE(50, 100)),
                                         tensor_to_device(tensor_ones(SHAPE(100, 50), TENSOR_F32), where));
            assert_non_null(busy);
            assert_int_equal(tensor_event_wait(ready), 0);
            assert_non_null(tensor_add_(sum, tensor_to(tensor_mean(next), TENSOR_F64)));
            assert_int_equal(tensor_event_synchronize(ready), 0); /* staged is written next */
            tensor_scope_close(step);
        }
        assert_true(tensor_item(sum) == BATCHES * (BATCHES - 1) / 2.0);
        assert_null(tensor_error());
        tensor_event_free(ready);
        tensor_scope_close(scope);
    }
}

/* A result comes back into pinned memory, and nobody waits until it is wanted. */
static void results_come_back(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    TensorEvent *back = tensor_event(test_device(), false);
    Tensor *here = tensor_pin_memory(tensor_zeros(SHAPE(N), TENSOR_F32), test_device());
    Tensor *x = tensor_to_device(batch_of(3), test_device());
    for (int k = 0; k < 5; k++) {
        TensorScope step = tensor_scope_open();
        Tensor *y = tensor_mul_scalar(x, k);
        TENSOR_COPY_STREAM(test_device())
        {
            assert_non_null(tensor_copy_(here, y));
            assert_int_equal(tensor_event_record(back), 0);
        }
        if (is_emulated()) assert_int_equal(tensor_event_query(back), 0);
        tensor_scope_close(step); /* y is freed, and its memory is another's */
        assert_non_null(tensor_mul_scalar(x, 1000));
        assert_int_equal(tensor_event_synchronize(back), 0);
        assert_true(tensor_item(tensor_amin(here)) == 3 * k && tensor_item(tensor_amax(here)) == 3 * k);
    }
    tensor_event_free(back);
    tensor_scope_close(scope);
}

/* Inside the block: a copy into a tensor that is in use, a cast, another layout, a value that is read. */
static void other_copies_in_the_block(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to_device(batch_of(2), test_device()), *y = NULL, *cast = NULL, *turned = NULL;
    Tensor *ids = tensor_to_device(tensor_arange(0, 6, 1, TENSOR_I64), test_device());
    Tensor *squares = tensor_mul(x, x);
    double sum = 0;
    TENSOR_COPY_STREAM(test_device())
    {
        assert_ptr_not_equal(tensor_device_stream(test_device()), NULL);
        tensor_copy_(x, batch_of(5));
        cast = tensor_to_device(tensor_ones(SHAPE(2, 3), TENSOR_F64), test_device());
        y = tensor_mul(x, x); /* waits for the copies */
        turned = tensor_to_device(
            tensor_transpose(tensor_reshape(tensor_arange(0, 6, 1, TENSOR_F32), SHAPE(2, 3)), 0, 1),
            test_device());
        tensor_copy_(ids, tensor_to_device(turned, "cpu") ? tensor_full(SHAPE(6), 7, TENSOR_F32) : NULL);
        sum = tensor_item(tensor_sum(squares));
        TENSOR_COPY_STREAM("cpu") { assert_non_null(tensor_to_device(batch_of(1), test_device())); }
    }
    void *after = tensor_device_stream(test_device()), *inside = NULL;
    TENSOR_COPY_STREAM(test_device()) { inside = tensor_device_stream(test_device()); }
    assert_ptr_not_equal(after, inside);
    assert_int_equal(tensor_synchronize(test_device()), 0);
    assert_true(sum == 4 * N);
    assert_true(tensor_item(tensor_sum(y)) == 25 * N && tensor_item(tensor_sum(cast)) == 6);
    assert_true(tensor_get(turned, DIMS(1, 1)) == 4);
    assert_true(tensor_item(tensor_sum(ids)) == 42);
    assert_null(tensor_error());
    TENSOR_COPY_STREAM("cuda:99") { y = NULL; }
    expect_error(TENSOR_EDEVICE, "cuda:99");
    tensor_scope_close(scope);
}

/* A loader's batches are the same wherever they go, with a worker and without, shuffled, left early. */
static void batches_of_a_loader(void **state)
{
    (void)state;
    for (int prefetch = 0; prefetch < 6; prefetch += 5) {
        TensorScope scope = tensor_scope_open();
        DataLoader *loader[2];
        for (int i = 0; i < 2; i++) {
            Tensor *x = tensor_reshape(tensor_arange(0, 90 * 7, 1, TENSOR_F32), SHAPE(90, 7)),
                   *y = tensor_arange(0, 90, 1, TENSOR_I64);
            loader[i] = data_loader(data_tensors(x, y), .batch_size = 8, .shuffle = true,
                                    .prefetch = prefetch, .device = i ? test_device() : "cpu");
            assert_non_null(loader[i]);
        }
        for (int epoch = 0; epoch < 3; epoch++) {
            const int most = epoch == 1 ? 3 : 100; /* the second is left early */
            Batch want[12];
            Tensor *x[12], *y[12];
            tensor_manual_seed((uint64_t)epoch);
            int n = 0;
            for (Batch *b; n < most && (b = data_next(loader[0])); n++)
                want[n] = *b, x[n] = tensor_clone(b->x), y[n] = tensor_clone(b->y);
            data_reset(loader[0]);
            tensor_manual_seed((uint64_t)epoch);
            for (int k = 0; k < n; k++) {
                Batch *b = data_next(loader[1]);
                assert_non_null(b);
                assert_int_equal(b->size, want[k].size);
                assert_true(tensor_equal(tensor_to_device(b->x, "cpu"), x[k]));
                assert_true(tensor_equal(tensor_to_device(b->y, "cpu"), y[k]));
            }
            if (most > n) assert_null(data_next(loader[1]));
            data_reset(loader[1]);
        }
        data_loader_free(loader[0]), data_loader_free(loader[1]);
        assert_null(tensor_error());
        tensor_scope_close(scope);
    }
}

static void the_stream_of_a_device(void **state)
{
    (void)state;
    assert_non_null(tensor_device_stream(test_device()));
    assert_ptr_equal(tensor_device_stream(test_device()), tensor_device_stream(test_device()));
    assert_null(tensor_device_stream("cpu"));
    assert_int_equal(tensor_error_code(), TENSOR_OK);
    assert_null(tensor_device_stream("cuda:99"));
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    tensor_error_clear();
    assert_null(tensor_device_stream(NULL));
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_of_a_device),       cmocka_unit_test(events),
        cmocka_unit_test(an_event_that_has_not_passed), cmocka_unit_test(pinned_memory),
        cmocka_unit_test(prefetched_batches),           cmocka_unit_test(results_come_back),
        cmocka_unit_test(other_copies_in_the_block),    cmocka_unit_test(batches_of_a_loader),
    };
    if (!test_device_opens()) return 1;
    return cmocka_run_group_tests_name("streams of a device", tests, NULL, NULL);
}
