/* test_emu.c - what only the emulated device can show: kernels that fail, requests for memory that do, a
 * second device.  All else of it is tested as any device is (test_device.h). */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include "emulator.h"

static Tensor *pattern(TensorShape shape, const char *device)
{
    tensor_manual_seed(1);
    return tensor_to_device(tensor_randn(shape, TENSOR_F32), device);
}

/* Two devices at work at once, each with its memory. */
static void two_devices(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *a = pattern(SHAPE(6, 5), "emu:0"), *b = pattern(SHAPE(6, 5), "emu:1");
    Tensor *x = tensor_matmul(a, tensor_transpose(a, 0, 1)), *y = tensor_matmul(b, tensor_transpose(b, 0, 1));
    assert_string_equal(tensor_device(x), "emu:0");
    assert_string_equal(tensor_device(y), "emu:1");
    assert_true(tensor_equal(tensor_to_device(y, "emu:0"), x));
    assert_ptr_not_equal(tensor_device_stream("emu:0"), tensor_device_stream("emu:1"));
    assert_int_equal(tensor_set_default_device("emu:2"), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    assert_non_null(strstr(tensor_error(), "2 were found"));
    tensor_error_clear();
    assert_null(tensor_mul(x, y));
    assert_non_null(strstr(tensor_error(), "emu:0"));
    assert_non_null(strstr(tensor_error(), "emu:1"));
    tensor_error_clear();
    tensor_scope_close(scope);
}

/* "high" allows a device TF32, of 10 bits; "highest" does not, nor is anything else rounded so. */
static void precision_of_products(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const float one = 1, more = 1 + 0x1p-12f;
    Tensor *a = tensor_to_device(tensor_from_data(&more, SHAPE(1, 1), TENSOR_F32), "emu:0"),
           *b = tensor_to_device(tensor_from_data(&one, SHAPE(1, 1), TENSOR_F32), "emu:0"),
           *bias = tensor_to_device(tensor_zeros(SHAPE(1), TENSOR_F32), "emu:0");
    for (int high = 0; high < 3; high++) {
        const float want = high ? one : more;
        assert_int_equal(tensor_set_float32_matmul_precision((TensorMatmulPrecision)high), 0);
        assert_true((float)tensor_item(tensor_matmul(a, b)) == want);
        assert_true((float)tensor_item(tensor_linear(a, b, bias)) == want);
        assert_true(tensor_item(tensor_matmul(tensor_to(a, TENSOR_F64), tensor_to(b, TENSOR_F64))) == more);
        assert_true((float)tensor_item(
                        tensor_matmul(tensor_to_device(a, "cpu"), tensor_to_device(b, "cpu"))) == more);
    }
    assert_int_equal(tensor_set_float32_matmul_precision(TENSOR_MATMUL_HIGHEST), 0);
    tensor_scope_close(scope);
}

/* A kernel fails as it runs: all later calls say where it came to light, or which call it was where each is
 * waited for.  0: right. */
static int lose(bool at_once)
{
    void (*fail_launch)(int64_t);
    *(void **)&fail_launch = emu_symbol("cuemu_fail_launch");
    Tensor *x = pattern(SHAPE(5), "emu:0"), *other = pattern(SHAPE(5), "emu:1");
    fail_launch(1);
    Tensor *y = tensor_mul(x, x);
    bool right = at_once ? !y : y && tensor_synchronize("emu:0") == -1;
    for (int again = 0; again < 2; again++) {
        right = right && tensor_error_code() == TENSOR_EDEVICE &&
                strstr(tensor_error(),
                       at_once ? "emu:0 is lost since mul: " : "emu:0 is lost since tensor_synchronize: ");
        if (!right) fprintf(stderr, "%s\n", tensor_error());
        tensor_error_clear();
        right = right && !tensor_add(x, x);
    }
    tensor_error_clear();
    right = right && tensor_item(tensor_sum(tensor_mul(other, other))) > 0 && !tensor_error(); /* goes on */
    return right ? 0 : 1;
}

/* main(what) of this program in a process of its own, for what is read from the environment once. */
static void in_a_process(const char *what, const char *name, const char *value)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (name) setenv(name, value, 1);
        execl("/proc/self/exe", "test_emu", what, (char *)NULL);
    }
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

static int lose_late(void) { return lose(false); }
static int lose_at_once(void) { return lose(true); }

static void a_lost_device(void **state)
{
    (void)state;
    in_a_process("lost late", NULL, NULL);
    in_a_process("lost at once", "TAPEGRAD_CUDA_SYNC", "1");
}

/* Only a product fails, and says what is missing, each time.  0: right. */
static int multiply_without(void)
{
    Tensor *x = pattern(SHAPE(4, 4), "emu:0");
    bool right = tensor_item(tensor_sum(tensor_exp(x))) > 0;
    for (int again = 0; again < 2 && right; again++) {
        right = !tensor_matmul(x, x) && tensor_error_code() == TENSOR_EDEVICE &&
                strstr(tensor_error(), "matmul: emu:0: a product needs libcublas") &&
                strstr(tensor_error(), "cannot open shared object file");
        if (!right) fprintf(stderr, "%s\n", tensor_error());
        tensor_error_clear();
        right = right && tensor_item(tensor_sum(tensor_mul(x, x))) > 0;
    }
    return right ? 0 : 1;
}

static void without_cublas(void **state)
{
    (void)state;
    in_a_process("without cuBLAS", "CUEMU_WITHOUT", "libcublas.so");
    in_a_process("without cuBLAS", "CUEMU_WITHOUT", "libcublasLt.so");
}

/* A kernel of the program's own runs in order with ours; one with a bad launch shape is told as its own,
 * once. */
static void a_kernel_of_ones_own(void **state)
{
    (void)state;
    void (*launch)(void *, unsigned, unsigned, float *);
    *(void **)&launch = emu_symbol("cuemu_user_kernel");
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to_device(tensor_full(SHAPE(1), 3, TENSOR_F32), "emu:0"), *y = tensor_mul(x, x);
    launch(tensor_device_stream("emu:0"), 1, 1, tensor_data(y));
    assert_true(tensor_item(tensor_mul(y, y)) == 100);
    launch(tensor_device_stream("emu:0"), 1, 4096, tensor_data(y));
    assert_null(tensor_mul(x, x));
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    assert_non_null(strstr(tensor_error(), "a CUDA call of the program's own before this one: "));
    assert_non_null(strstr(tensor_error(), "invalid configuration argument"));
    tensor_error_clear();
    assert_true(tensor_item(tensor_add(y, y)) == 20);
    assert_null(tensor_error());
    tensor_scope_close(scope);
}

/* No memory at any point of a step whose arrays are a request to the driver each: nothing has changed, and
 * the next one is right. */
static void a_step_without_memory(void **state)
{
    (void)state;
    void (*fail_allocation)(int64_t);
    *(void **)&fail_allocation = emu_symbol("cuemu_fail_allocation");
    TensorScope scope = tensor_scope_open();
    Tensor *p[2] = {
        tensor_requires_grad_(tensor_to_device(tensor_ones(SHAPE(2700001), TENSOR_F32), "emu:0"), true),
        tensor_requires_grad_(tensor_to_device(tensor_ones(SHAPE(1350001), TENSOR_F64), "emu:0"), true)
    };
    Optimizer *opt = optim_adamw(TENSOR_LIST(p, 2), .lr = 0.1);
    for (int i = 0; i < 2; i++) tensor_set_grad(p[i], tensor_ones_like(p[i]));
    int failures = 0;
    for (int64_t n = 1;; n++) {
        assert_true(n < 100);
        fail_allocation(n);
        const int status = optim_step(opt);
        fail_allocation(0);
        if (!status) break;
        assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        tensor_error_clear();
        failures++;
        for (int i = 0; i < 2; i++) assert_true(tensor_item(tensor_amin(tensor_detach(p[i]))) == 1);
    }
    assert_true(failures > 0);
    for (int i = 0; i < 2; i++) {
        assert_true(fabs(tensor_item(tensor_amin(tensor_detach(p[i]))) - 0.899) < 1e-6);
        assert_true(tensor_item(nn_dict_get(optim_state_dict(opt), i ? "state.1.step" : "state.0.step")) ==
                    1);
    }
    optim_free(opt);
    tensor_scope_close(scope);
}

static void *read_sum(void *x)
{
    static double sum;
    TensorScope scope = tensor_scope_open();
    sum = tensor_item(tensor_sum(x));
    tensor_scope_close(scope);
    return &sum;
}

/* While a kernel stands, and a thread waits for it, another one queues work and has its batch copied. */
static void a_copy_passes_a_held_kernel(void **state)
{
    (void)state;
    void (*hold)(int);
    *(void **)&hold = emu_symbol("cuemu_hold");
    pthread_t reader;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to_device(tensor_ones(SHAPE(64), TENSOR_F32), "emu:0"),
           *data = tensor_ones(SHAPE(40, 9), TENSOR_F32);
    TensorEvent *copied = tensor_event("emu:0", false), *computed = tensor_event("emu:0", false);
    DataLoader *loader = data_loader(data_tensors(data, tensor_arange(0, 40, 1, TENSOR_I64)), .batch_size = 8,
                                     .prefetch = 2, .device = "emu:0");
    alarm(120); /* instead of standing for ever */
    assert_int_equal(tensor_synchronize("emu:0"), 0);
    hold(1);
    assert_non_null(x = tensor_add(x, x));
    const struct CuemuCounts before = counts_now();
    assert_int_equal(pthread_create(&reader, NULL, read_sum, x), 0);
    while (counts_now().to_host == before.to_host) sched_yield(); /* it waits now */
    Batch *b = data_next(loader);
    assert_non_null(b);
    Tensor *y = tensor_add(tensor_sum(b->x), tensor_sum(x)), *other = tensor_to_device(data, "emu:0");
    assert_int_equal(tensor_event_record(computed), 0);
    TENSOR_COPY_STREAM("emu:0") { assert_int_equal(tensor_event_record(copied), 0); }
    assert_int_equal(tensor_event_synchronize(copied), 0);
    const struct CuemuCounts now = counts_now();
    assert_true(now.arrived >= before.arrived + 2); /* both tensors of a batch */
    assert_int_equal(now.ran, before.ran);
    assert_int_equal(tensor_event_query(computed), 0);
    hold(0);
    void *sum = NULL;
    assert_int_equal(pthread_join(reader, &sum), 0);
    assert_true(*(double *)sum == 128);
    assert_true(tensor_item(y) == 72 + 128 && tensor_item(tensor_sum(other)) == 360);
    assert_int_equal(tensor_event_query(computed), 1);
    alarm(0);
    assert_null(tensor_error());
    data_loader_free(loader);
    tensor_event_free(copied), tensor_event_free(computed);
    tensor_scope_close(scope);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_devices),           cmocka_unit_test(precision_of_products),
        cmocka_unit_test(a_lost_device),         cmocka_unit_test(a_kernel_of_ones_own),
        cmocka_unit_test(a_step_without_memory), cmocka_unit_test(a_copy_passes_a_held_kernel),
        cmocka_unit_test(without_cublas),
    };
    static const struct {
        const char *name;
        int (*run)(void);
    } process[] = { { "lost late", lose_late },
                    { "lost at once", lose_at_once },
                    { "without cuBLAS", multiply_without } };
    setenv("TAPEGRAD_TEST_DEVICE", "emu:0", 1);
    if (!test_device_opens()) return 1;
    for (size_t i = 0; argc == 2 && i < sizeof process / sizeof *process; i++)
        if (strcmp(argv[1], process[i].name) == 0) return process[i].run();
    return cmocka_run_group_tests_name("the emulated device", tests, NULL, NULL);
}
