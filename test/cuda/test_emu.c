/* test_emu.c - the CUDA kernels, run on the CPU as the device emu:0 (test/cuemu), against the CPU's own.
 *
 * Every op of the registry computes the same on both, forward and backward, in f32, f64 and bf16, from all
 * layouts; so does an MLP that trains.  All of it with the threads of a kernel in three orders, so that a
 * missing barrier changes a result. */
#include <math.h>
#include <sys/wait.h>
#include "plugin_folder.h"
#include "tensor/core.h" /* before cmocka.h, which has a macro fail */
#include "samples.h"
#include <tapegrad/cmocka.h>

/* ---- every op -------------------------------------------------------------------------------- */

static int compared, refused;

/* Ops without a kernel there: only these may be refused, and only so. */
static bool may_be_refused(const TensorOp *op)
{
    const char *error = tensor_error();
    if (tensor_error_code() != TENSOR_EDEVICE || !error || !strstr(error, "emu:0")) return false;
    return !(op->flags & OP_ANY_DEVICE) || strstr(error, "(conv2d") || strstr(error, "(max_pool") ||
           strstr(error, "(avg_pool") || strstr(error, "(resample") || strstr(error, "(taps") ||
           strstr(error, "no products of integers"); /* cuBLAS has none */
}

static void compare(const Sample *s, const char *what, int k, const Tensor *got, const Tensor *want,
                    const char *how, double limit)
{
    if (!got && !want) return;
    if (!got || !want) {
        complain(s, "%s: %s %d is there on one device only", how, what, k);
        return;
    }
    const bool exact = !tensor_dtype_is_float(tensor_dtype(want));
    if (tensor_dtype(got) != tensor_dtype(want)) complain(s, "%s: %s %d has another dtype", how, what, k);
    const double off = off_by(got, want, exact ? 0 : 0.1);
    if (off > (exact ? 0 : limit)) complain(s, "%s: %s %d is off by %.3g", how, what, k, off);
    compared++;
}

/* Inputs in the CPU's memory; the same run on both devices, the default one being where cotangents are made.
 */
static bool run_on(const Sample *s, const char *device, Tensor *const *x, Layout layout, SampleRun *run)
{
    Tensor *there[OP_MAX_INPUTS];
    tensor_set_default_device(device);
    for (int i = 0; i < s->n; i++)
        there[i] = x[i] ? strided_copy(tensor_to_device(x[i], device), layout) : NULL;
    const int n = sample_run(s, there, false, layout, run);
    tensor_set_default_device("cpu");
    return n >= 0;
}

static void check_at(const Sample *s, int floats, Layout layout, double limit)
{
    static SampleRun want, got;
    static char how[64];
    Tensor *x[OP_MAX_INPUTS];
    snprintf(how, sizeof how, "%s, %s", tensor_dtype_name((TensorDtype)floats), layout_name[layout]);
    sample_inputs(s, floats, 1, x);
    const bool on_cpu = run_on(s, "cpu", x, layout, &want);
    tensor_error_clear(); /* a view that this layout does not allow: refused on both */
    const bool on_emu = run_on(s, "emu:0", x, layout, &got);
    if (!on_emu) {
        if (on_cpu && may_be_refused(s->op)) refused++;
        else if (on_cpu) complain(s, "%s: is refused", how);
        tensor_error_clear();
        return;
    }
    if (!on_cpu) {
        complain(s, "%s: fails on the CPU only", how);
        return;
    }
    for (int k = 0; k < got.results; k++)
        if (strcmp(tensor_device(got.y[k]), "emu:0") != 0)
            complain(s, "%s: result %d is on %s", how, k, tensor_device(got.y[k]));
    if (got.results != want.results)
        complain(s, "%s: %d results, %d on the CPU", how, got.results, want.results);
    for (int k = 0; k < got.results; k++) compare(s, "result", k, got.y[k], want.y[k], how, limit);
    for (int i = 0; i < s->n; i++) compare(s, "gradient", i, got.g[i], want.g[i], how, 10 * limit);
}

static void check_sample(const Sample *s)
{
    static const struct {
        int dtype;
        Layout layout;
        double limit;
    } way[] = { { TENSOR_F32, LAYOUT_DENSE, 1e-5 },
                { TENSOR_F64, LAYOUT_TRANSPOSED, 1e-12 },
                { TENSOR_F32, LAYOUT_STEP, 1e-5 },
                { TENSOR_BF16, LAYOUT_DENSE, 1e-2 } };
    for (size_t k = 0; k < sizeof way / sizeof *way; k++) {
        TensorScope scope = tensor_scope_open();
        check_at(s, way[k].dtype, way[k].layout, way[k].limit);
        tensor_scope_close(scope);
    }
}

static void check_op(const TensorOp *op) { each_sample(op, check_sample); }

static void summary(void **state)
{
    (void)state;
    print_message("emu:0: %d tensors equal the CPU's; %d runs have no kernel there\n", compared, refused);
    assert_true(compared > 1000 / shards());
}

/* ---- sizes that the samples are too small for ------------------------------------------------ */

static Tensor *pattern(TensorShape shape, TensorDtype dtype, const char *device)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    Tensor *x = tensor_sin(tensor_mul_scalar(tensor_arange(0, (double)n, 1, TENSOR_F64), 0.7));
    return tensor_to_device(tensor_to(tensor_reshape(x, shape), dtype), device);
}

static void expect(Tensor *got, Tensor *want, double tolerance)
{
    assert_tensor_close(tensor_to_device(got, "cpu"), want, tolerance, tolerance);
}

/* Rows by a team, columns by threads, sums in chunks. */
static void big_reductions(void **state)
{
    (void)state;
    static const int64_t shape[][2] = { { 3, 20000 }, { 20000, 3 }, { 40, 300 }, { 300, 40 }, { 1, 9000 } };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int dim = 0; dim < 2; dim++) {
            TensorScope scope = tensor_scope_open();
            Tensor *cpu = pattern(SHAPE(shape[i][0], shape[i][1]), TENSOR_F32, "cpu"),
                   *emu = tensor_to_device(cpu, "emu:0");
            expect(tensor_sum(emu, dim), tensor_sum(cpu, dim), 1e-6);
            expect(tensor_amax(emu, dim), tensor_amax(cpu, dim), 0);
            expect(tensor_argmax(emu, dim), tensor_argmax(cpu, dim), 0);
            expect(tensor_logsumexp(emu, dim), tensor_logsumexp(cpu, dim), 1e-6);
            expect(tensor_var(emu, dim), tensor_var(cpu, dim), 1e-6);
            expect(tensor_softmax(emu, dim), tensor_softmax(cpu, dim), 1e-6);
            tensor_scope_close(scope);
        }
}

/* Products from operands in every layout, into every layout of the gradients. */
static void products(void **state)
{
    (void)state;
    for (int layout = 0; layout < LAYOUTS * LAYOUTS; layout++) {
        TensorScope scope = tensor_scope_open();
        Tensor *a = strided_copy(pattern(SHAPE(2, 17, 9), TENSOR_F32, "cpu"), (Layout)(layout % LAYOUTS));
        Tensor *b = strided_copy(pattern(SHAPE(2, 9, 5), TENSOR_F32, "cpu"), (Layout)(layout / LAYOUTS));
        tensor_set_default_device("emu:0");
        Tensor *a_emu = strided_copy(tensor_to_device(a, "emu:0"), (Layout)(layout % LAYOUTS));
        Tensor *b_emu = strided_copy(tensor_to_device(b, "emu:0"), (Layout)(layout / LAYOUTS));
        tensor_set_default_device("cpu");
        expect(tensor_matmul(a_emu, b_emu), tensor_matmul(a, b), 1e-6);
        tensor_scope_close(scope);
    }
}

/* ---- an MLP ---------------------------------------------------------------------------------- */

enum { LAYERS = 4, STEPS = 5 };

/* Trains two layers on fixed data; parameters end in the CPU's memory. */
static double train(const char *device, Tensor **end)
{
    Tensor *x = pattern(SHAPE(32, 20), TENSOR_F32, device);
    Tensor *classes = tensor_to_device(
        tensor_to(tensor_mul_scalar(tensor_arange(0, 32, 1, TENSOR_F32), 10.0 / 32), TENSOR_I64), device);
    Tensor *p[LAYERS] = { pattern(SHAPE(48, 20), TENSOR_F32, device), pattern(SHAPE(48), TENSOR_F32, device),
                          pattern(SHAPE(10, 48), TENSOR_F32, device),
                          pattern(SHAPE(10), TENSOR_F32, device) };
    double loss_now = NAN;
    for (int i = 0; i < LAYERS; i++) tensor_requires_grad_(p[i], true);
    for (int step = 0; step < STEPS; step++) {
        TensorScope scope = tensor_scope_open();
        Tensor *h = tensor_relu(tensor_linear(x, p[0], p[1]));
        Tensor *loss = tensor_cross_entropy(tensor_linear(h, p[2], p[3]), classes);
        assert_int_equal(tensor_backward(loss), 0);
        loss_now = tensor_item(loss);
        TENSOR_NO_GRAD {
            for (int i = 0; i < LAYERS; i++) {
                assert_non_null(tensor_add_scaled_(p[i], tensor_grad(p[i]), -0.05));
                tensor_set_grad(p[i], NULL);
            }
        }
        tensor_scope_close(scope);
    }
    for (int i = 0; i < LAYERS; i++) end[i] = tensor_to_device(tensor_detach(p[i]), "cpu");
    return loss_now;
}

static void training(void **state)
{
    (void)state;
    Tensor *on_cpu[LAYERS], *on_emu[LAYERS];
    TensorScope scope = tensor_scope_open();
    const double want = train("cpu", on_cpu), got = train("emu:0", on_emu);
    assert_true(fabs(got - want) <= 1e-5 * fabs(want));
    for (int i = 0; i < LAYERS; i++) assert_tensor_close(on_emu[i], on_cpu[i], 1e-4, 1e-6);
    tensor_scope_close(scope);
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void still_works(void)
{
    Tensor *x = tensor_full(SHAPE(4), 3, TENSOR_F32);
    assert_true(tensor_item(tensor_sum(tensor_to_device(x, "emu:0"))) == 12);
    assert_null(tensor_error());
}

static void missing_kernels(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = pattern(SHAPE(1, 1, 5, 5), TENSOR_F32, "emu:0"),
           *w = pattern(SHAPE(1, 1, 3, 3), TENSOR_F32, "emu:0");
    const int64_t live = tensor_live_count();
    assert_null(tensor_conv2d(x, w, NULL));
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    assert_non_null(strstr(tensor_error(), "conv2d"));
    assert_non_null(strstr(tensor_error(), "emu:0"));
    tensor_error_clear();
    assert_int_equal(tensor_live_count(), live);
    still_works();
    tensor_scope_close(scope);
}

static void bad_targets_and_indices(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const int64_t bad[3] = { 0, 7, 1 };
    Tensor *t = tensor_to_device(tensor_from_data(bad, SHAPE(3), TENSOR_I64), "emu:0"),
           *x = pattern(SHAPE(3, 4), TENSOR_F32, "emu:0");
    assert_null(tensor_cross_entropy(x, t));
    assert_non_null(tensor_error());
    assert_non_null(strstr(tensor_error(), "7"));
    tensor_error_clear();
    assert_null(tensor_index_select(x, 0, t));
    assert_non_null(tensor_error());
    assert_non_null(strstr(tensor_error(), "7"));
    tensor_error_clear();
    still_works();
    tensor_scope_close(scope);
}

static void mixed_devices(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    assert_null(tensor_add(tensor_ones(SHAPE(2), TENSOR_F32), pattern(SHAPE(2), TENSOR_F32, "emu:0")));
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    tensor_error_clear();
    assert_int_equal(tensor_set_default_device("emu:1"), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    tensor_error_clear();
    still_works();
    tensor_scope_close(scope);
}

static void bad_plugins(void **state)
{
    (void)state;
    static const struct {
        const char *name, *sentence;
    } bad[] = { { "oldabi", "was built for another version of the library" },
                { "olddigest", "was built from another ops.def" },
                { "misnamed", "its plugin is for \"othername\"" },
                { "empty", "exports no device" },
                { "nosuch", "could not be opened" } };
    set_plugin_folder("/test/plugins");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tensor_set_default_device(bad[i].name), -1);
        assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
        if (!strstr(tensor_error(), bad[i].sentence)) fail_msg("%s: %s", bad[i].name, tensor_error());
        tensor_error_clear();
    }
    set_plugin_folder("");
    still_works();
}

/* ---- every order ----------------------------------------------------------------------------- */

static int run_all(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(big_reductions),
        cmocka_unit_test(products),
        cmocka_unit_test(training),
        cmocka_unit_test(missing_kernels),
        cmocka_unit_test(bad_targets_and_indices),
        cmocka_unit_test(mixed_devices),
        cmocka_unit_test(bad_plugins),
        cmocka_unit_test(summary),
    };
    if (!tensor_device_available("emu:0")) {
        tensor_set_default_device("emu:0");
        fprintf(stderr, "%s\n", tensor_error());
        return 1;
    }
    tensor_use_torch_dropout(false); /* masks of devices are Philox's */
    int failed = run_registry(argc, argv, "ops on emu:0", check_op);
    return in_shard(0) ? failed + cmocka_run_group_tests_name("emu:0", tests, NULL, NULL) : failed;
}

/* The emulator reads its order when it is loaded: a process for each. */
int main(int argc, char **argv)
{
    static const char *const order[] = { "fwd", "rev", "rand:1" };
    int failed = 0;
    set_plugin_folder("");
    setenv("TAPEGRAD_CUDA_NO_CACHE", "1",
           1); /* fresh memory is NaN: what is read before it is written shows */
    if (getenv("CUEMU_ORDER")) return run_all(argc, argv);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        int status = 1;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            setenv("CUEMU_ORDER", order[i], 1);
            exit(run_all(argc, argv) ? 1 : 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "failed with the threads in the order %s\n", order[i]);
            failed++;
        }
    }
    return failed;
}
