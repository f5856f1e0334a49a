/* test_device.c - the device of TAPEGRAD_TEST_DEVICE against the CPU: emu:0, which runs the CUDA kernels on
 * the CPU (test/cuemu), or cuda:0.
 *
 * Every op of the registry computes the same on both, forward and backward, in f32, f64 and bf16, from all
 * layouts; so does an MLP that trains.  On emu:0 with the threads of a kernel in three orders, so that a
 * missing barrier changes a result. */
#include <math.h>
#include "tensor/core.h" /* before cmocka.h, which has a macro fail */
#include "emulator.h"
#include "samples.h"
#include "larger.h"
#include <tapegrad/cmocka.h>

/* ---- every op -------------------------------------------------------------------------------- */

static int compared;

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

/* Inputs in the CPU's memory; the same run on both devices.  The default device stays the CPU: what an op
 * makes must lie where its operands do. */
static bool run_on(const Sample *s, const char *device, Tensor *const *x, Layout layout, SampleRun *run)
{
    Tensor *there[OP_MAX_INPUTS];
    for (int i = 0; i < s->n; i++)
        there[i] = x[i] ? strided_copy(tensor_to_device(x[i], device), layout) : NULL;
    return sample_run(s, there, false, layout, run) >= 0;
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
    const bool there = run_on(s, test_device(), x, layout, &got);
    if (!there) {
        if (on_cpu) complain(s, "%s: is refused: %s", how, tensor_error());
        tensor_error_clear();
        return;
    }
    if (!on_cpu) {
        complain(s, "%s: fails on the CPU only", how);
        return;
    }
    for (int k = 0; k < got.results; k++)
        if (strcmp(tensor_device(got.y[k]), test_device()) != 0)
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

/* test/cuda/host_ops.txt names the ops that the host computes: each that does, and no other. */
static bool listed_for_host(const char *name)
{
    char line[128];
    bool found = false;
    FILE *list = fopen("test/cuda/host_ops.txt", "r");
    if (!list) fail_msg("test/cuda/host_ops.txt cannot be opened: run from the root of the tree");
    while (!found && fgets(line, sizeof line, list)) {
        line[strcspn(line, " \n")] = 0;
        found = strcmp(line, name) == 0;
    }
    fclose(list);
    return found;
}

static void check_larger(const TensorOp *op)
{
    Sample s;
    for (size_t i = 0; i < sizeof larger / sizeof *larger; i++)
        for (const char *list = larger[i].samples; list && strcmp(larger[i].op, op->name) == 0;) {
            if (sample_next(op, &list, &s) != 1) fail_msg("larger.h: %s: %s", op->name, s.wrong);
            check_sample(&s);
        }
}

static void check_op(const TensorOp *op)
{
    const int64_t before = tensor_host_fallbacks();
    each_sample(op, check_sample);
    check_larger(op);
    const bool fell_back = tensor_host_fallbacks() > before, listed = listed_for_host(op->name);
    if (fell_back && !listed)
        fail_msg("%s: the host computed it, and host_ops.txt does not say so", op->name);
    if (!fell_back && listed) fail_msg("%s runs on the device: take it out of host_ops.txt", op->name);
}

static void summary(void **state)
{
    (void)state;
    print_message("%s: %d tensors equal the CPU's\n", test_device(), compared);
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

/* Rows by a team, columns by threads, sums in chunks.  Sums in f32 are off by what their terms would make
 * without cancelling. */
static void big_reductions(void **state)
{
    (void)state;
    static const int64_t shape[][2] = { { 3, 20000 }, { 20000, 3 }, { 40, 300 }, { 300, 40 }, { 1, 9000 } };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int dim = 0; dim < 2; dim++) {
            TensorScope scope = tensor_scope_open();
            Tensor *cpu = pattern(SHAPE(shape[i][0], shape[i][1]), TENSOR_F32, "cpu"),
                   *far = tensor_to_device(cpu, test_device());
            assert_tensor_close(tensor_to_device(tensor_sum(far, dim), "cpu"), tensor_sum(cpu, dim), 1e-6,
                                1e-6 + 1e-8 * (double)shape[i][dim]);
            expect(tensor_amax(far, dim), tensor_amax(cpu, dim), 0);
            expect(tensor_argmax(far, dim), tensor_argmax(cpu, dim), 0);
            expect(tensor_logsumexp(far, dim), tensor_logsumexp(cpu, dim), 1e-6);
            expect(tensor_var(far, dim), tensor_var(cpu, dim), 1e-6);
            expect(tensor_softmax(far, dim), tensor_softmax(cpu, dim), 1e-6);
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
        tensor_set_default_device(test_device());
        Tensor *a_far = strided_copy(tensor_to_device(a, test_device()), (Layout)(layout % LAYOUTS));
        Tensor *b_far = strided_copy(tensor_to_device(b, test_device()), (Layout)(layout / LAYOUTS));
        tensor_set_default_device("cpu");
        expect(tensor_matmul(a_far, b_far), tensor_matmul(a, b), 1e-6);
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
    Tensor *on_cpu[LAYERS], *there[LAYERS];
    TensorScope scope = tensor_scope_open();
    const double want = train("cpu", on_cpu), got = train(test_device(), there);
    assert_true(fabs(got - want) <= 1e-5 * fabs(want));
    for (int i = 0; i < LAYERS; i++) assert_tensor_close(there[i], on_cpu[i], 1e-4, 1e-6);
    tensor_scope_close(scope);
}

/* ---- autocast, checkpoints, memory ------------------------------------------------------------ */

static TensorDtype in_autocast(const char *device, Tensor *(*f)(Tensor *x))
{
    Tensor *x = pattern(SHAPE(4, 4), TENSOR_BF16, device), *y = NULL;
    TENSOR_AUTOCAST(TENSOR_BF16) y = f(x);
    assert_non_null(y);
    return tensor_dtype(y);
}

static Tensor *softmax_of_rows(Tensor *x) { return tensor_softmax(x, 1); }
static Tensor *with_itself(Tensor *x) { return tensor_matmul(tensor_to(x, TENSOR_F32), x); }

/* PyTorch's list for CUDA, where the CPU's has its own. */
static void autocast_follows_the_device(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    assert_int_equal(in_autocast(test_device(), softmax_of_rows), TENSOR_F32);
    assert_int_equal(in_autocast("cpu", softmax_of_rows), TENSOR_BF16);
    assert_int_equal(in_autocast(test_device(), tensor_exp), TENSOR_F32);
    assert_int_equal(in_autocast("cpu", tensor_exp), TENSOR_BF16);
    assert_int_equal(in_autocast(test_device(), with_itself), TENSOR_BF16);
    assert_int_equal(in_autocast("cpu", with_itself), TENSOR_BF16);
    assert_null(tensor_error());
    tensor_scope_close(scope);
}

static Tensor *dropped(Tensor **in, int n, void *ctx)
{
    (void)n;
    return tensor_tanh(tensor_dropout(tensor_matmul(in[0], (Tensor *)ctx), .p = 0.5));
}

/* Masks are drawn again, and what hooks keep in the host's memory comes back. */
static void checkpoints_and_hooks(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *w = tensor_requires_grad_(pattern(SHAPE(6, 6), TENSOR_F32, test_device()), true), *grad[3];
    for (int how = 0; how < 3; how++) {
        tensor_manual_seed(5);
        Tensor *x = tensor_sin(w), *y = NULL;
        TENSOR_SAVED_HOOKS(how == 2 ? tensor_save_on_cpu() : (TensorSavedHooks){ NULL })
        y = how == 1 ? tensor_checkpoint(dropped, w, x) : dropped(&x, 1, w);
        grad[how] = tensor_to_device(tensor_gradients(tensor_sum(y), w), "cpu");
    }
    assert_true(tensor_equal(grad[0], grad[1]));
    assert_true(tensor_equal(grad[0], grad[2]));
    assert_null(tensor_error());
    tensor_scope_close(scope);
}

static void memory_of_the_device(void **state)
{
    (void)state;
    const TensorMemory before = tensor_device_memory(test_device());
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to_device(tensor_zeros(SHAPE(1000), TENSOR_F32), test_device());
    assert_non_null(x);
    assert_int_equal(tensor_device_memory(test_device()).in_use, before.in_use + 4000);
    assert_true(tensor_device_memory(test_device()).system_calls > before.system_calls);
    tensor_scope_close(scope);
    assert_int_equal(tensor_device_memory(test_device()).in_use, before.in_use);
    assert_true(tensor_device_memory(test_device()).peak >= before.in_use + 4000);
    tensor_device_memory_reset_peak(test_device());
    assert_int_equal(tensor_device_memory(test_device()).peak, before.in_use);
}

/* ---- lists, clipping, loss scaling ------------------------------------------------------------ */

enum { SEEN = 24 };

/* Scaled, clipped steps, the first and the third with an infinite loss; then list ops.  Nothing is done by
 * the host, and what was skipped comes to light when the state is asked for. */
static void run_steps(int kind, const char *device, double *seen)
{
    Tensor *p[] = { tensor_detach(pattern(SHAPE(6, 5), TENSOR_F32, device)),
                    tensor_detach(pattern(SHAPE(7), TENSOR_F32, device)) };
    Tensor *ones[] = { tensor_ones_like(p[0]), tensor_ones_like(p[1]) };
    const TensorList list = TENSOR_LIST(p, 2);
    Optimizer *opt = NULL;
    GradScaler *scaler = optim_grad_scaler(.init_scale = 8, .growth_interval = 2);
    const int64_t before = tensor_host_fallbacks();
    int n = 0;
    for (int i = 0; i < 2; i++) tensor_requires_grad_(p[i], true);
    opt = kind == 0   ? optim_adamw(list, 0.1)
          : kind == 1 ? optim_sgd(list, 0.1, .momentum = 0.9, .dampening = 0.5)
          : kind == 2 ? optim_nadam(list, 0.1)
          : kind == 3 ? optim_radam(list, 0.1)
          : kind == 4 ? optim_lamb(list, 0.1) /* no rule: what a step did is taken back */
                      : optim_sgd(list, 0.1, .momentum = 0.9, .dampening = 0.5);
    for (int t = 0; t < 6; t++) {
        TensorScope scope = tensor_scope_open();
        Tensor *loss = tensor_add(tensor_sum(tensor_square(p[0])), tensor_sum(tensor_square(p[1])));
        if (t == 0 || t == 2) loss = tensor_mul_scalar(loss, (double)INFINITY);
        optim_zero_grad(opt);
        assert_int_equal(tensor_backward(optim_scaler_scale(scaler, loss)), 0);
        assert_int_equal(optim_scaler_unscale_(scaler, opt), 0);
        Tensor *norm = nn_clip_grad_norm_(list, t % 2 ? 100 : 1);
        assert_string_equal(tensor_device(norm), device);
        assert_int_equal(nn_clip_grad_value_(list, 0.3), 0);
        assert_int_equal(optim_scaler_step(scaler, opt), 0);
        assert_int_equal(optim_scaler_update(scaler), 0);
        seen[n++] = t == 0 || t == 2 ? 0 : tensor_item(norm), seen[n++] = optim_scaler_get_scale(scaler);
        tensor_scope_close(scope);
        if (t == 0 && kind == 5) assert_true(optim_state_dict(opt).count > 0); /* after skipped ones */
        if (t == 3) assert_true(tensor_item(nn_dict_get(optim_state_dict(opt), "state.0.step")) == 2);
    }
    assert_true(tensor_item(nn_dict_get(optim_state_dict(opt), "state.1.step")) == 4);
    TENSOR_NO_GRAD {
        assert_int_equal(tensor_foreach_lerp_(list, TENSOR_LIST(ones, 2), 0.3), 0);
        assert_int_equal(tensor_foreach_add_(list, TENSOR_LIST(ones, 2), 0.5), 0);
        assert_int_equal(tensor_foreach_mul_(list, tensor_sum(ones[1])), 0);
    }
    assert_int_equal(tensor_host_fallbacks(), before);
    for (int i = 0; n < SEEN; i++)
        seen[n++] = tensor_item(tensor_select(tensor_reshape(tensor_detach(p[i % 2]), SHAPE(-1)), 0, i / 2));
    optim_scaler_free(scaler), optim_free(opt);
}

static void scaled_and_clipped_steps(void **state)
{
    (void)state;
    double want[SEEN], got[SEEN];
    for (int kind = 0; kind < 6; kind++) {
        TensorScope scope = tensor_scope_open();
        run_steps(kind, "cpu", want), run_steps(kind, test_device(), got);
        for (int i = 0; i < SEEN; i++)
            if (!(fabs(got[i] - want[i]) <= 1e-5 * (1 + fabs(want[i]))))
                fail_msg("optimizer %d, number %d: %.9g, want %.9g", kind, i, got[i], want[i]);
        tensor_scope_close(scope);
    }
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void still_works(void)
{
    Tensor *x = tensor_full(SHAPE(4), 3, TENSOR_F32);
    assert_true(tensor_item(tensor_sum(tensor_to_device(x, test_device()))) == 12);
    assert_null(tensor_error());
}

static void fallback_refused(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = pattern(SHAPE(5, 5), TENSOR_F32, test_device());
    const int64_t live = tensor_live_count(), before = tensor_host_fallbacks();
    setenv("TAPEGRAD_NO_FALLBACK", "1", 1);
    assert_null(tensor_det(x));
    unsetenv("TAPEGRAD_NO_FALLBACK");
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    assert_non_null(strstr(tensor_error(), "tensor_det: "));
    assert_non_null(strstr(tensor_error(), test_device()));
    assert_non_null(strstr(tensor_error(), " has no kernel for it"));
    tensor_error_clear();
    assert_int_equal(tensor_live_count(), live);
    assert_int_equal(tensor_host_fallbacks(), before);
    still_works();
    tensor_scope_close(scope);
}

/* By the host, forward and backward, recorded too: everything stays where the operands are. */
static void second_derivative_by_the_host(void **state)
{
    (void)state;
    Tensor *second[2];
    const char *const device[] = { "cpu", test_device() };
    const int64_t before = tensor_host_fallbacks();
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < 2; i++) {
        Tensor *a = pattern(SHAPE(3, 3), TENSOR_F64, device[i]);
        tensor_requires_grad_(a, true);
        Tensor *g = tensor_gradients(tensor_det(a), a, .create_graph = true);
        assert_non_null(g);
        assert_string_equal(tensor_device(g), device[i]);
        second[i] = tensor_gradients(tensor_sum(tensor_mul(g, g)), a);
        assert_non_null(second[i]);
        assert_string_equal(tensor_device(second[i]), device[i]);
    }
    expect(second[1], second[0], 1e-12);
    assert_true(tensor_host_fallbacks() > before);
    tensor_scope_close(scope);
}

/* A row and an op of the program's own, which know nothing of devices. */
OP_UNARY(cube, "x x x", x *x *x, 3 * x * x * g, KEEP_X, -2, 2);

static int twice_forward(OpCall *c)
{
    const double *x = op_input_f64(c, 0);
    double *y = op_output_f64(c, 0);
    for (int64_t i = 0, n = op_count(c, 0); i < n; i++) y[i] = 2 * x[i];
    return 0;
}

static int twice_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const double *g = op_grad_f64(c, 0);
    double *to = op_gradient_f64(c, 0);
    (void)dy, (void)dx;
    for (int64_t i = 0, n = op_count(c, 0); i < n; i++) to[i] = 2 * g[i];
    return 0;
}

static const TensorOp twice = {
    .name = "twice", .arity = 1, .shape = op_same_shape, .forward = twice_forward, .backward = twice_backward
};

static void ops_of_ones_own(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_requires_grad_(pattern(SHAPE(2, 3), TENSOR_F32, test_device()), true);
    Tensor *y = tensor_apply(&twice, (Tensor *[]){ tensor_apply(&cube, &x, 1, NULL) }, 1, NULL);
    assert_non_null(y);
    assert_string_equal(tensor_device(y), test_device());
    assert_int_equal(tensor_backward(tensor_sum(y)), 0);
    Tensor *on_cpu = tensor_to_device(tensor_detach(x), "cpu");
    expect(tensor_grad(x), tensor_mul_scalar(tensor_square(on_cpu), 6), 1e-6);
    tensor_scope_close(scope);
}

static void mixed_devices(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *here = tensor_ones(SHAPE(2, 2), TENSOR_F32),
           *there = pattern(SHAPE(2, 2), TENSOR_F32, test_device());
    for (int which = 0; which < 4; which++) { /* a row, a structured op, a list, in place: both are named */
        Tensor *y = which == 0   ? tensor_add(here, there)
                    : which == 1 ? tensor_matmul(there, here)
                    : which == 2 ? tensor_cat(TENSORS(here, there), 0)
                                 : tensor_mul_(there, here);
        assert_null(y);
        assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
        assert_non_null(strstr(tensor_error(), test_device()));
        assert_non_null(strstr(tensor_error(), "cpu"));
        tensor_error_clear();
    }
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
                { "bare", "lacks a kernel that every device has" },
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

static int run_all(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(big_reductions),
        cmocka_unit_test(products),
        cmocka_unit_test(training),
        cmocka_unit_test(scaled_and_clipped_steps),
        cmocka_unit_test(fallback_refused),
        cmocka_unit_test(second_derivative_by_the_host),
        cmocka_unit_test(ops_of_ones_own),
        cmocka_unit_test(mixed_devices),
        cmocka_unit_test(autocast_follows_the_device),
        cmocka_unit_test(checkpoints_and_hooks),
        cmocka_unit_test(memory_of_the_device),
        cmocka_unit_test(bad_plugins),
        cmocka_unit_test(summary),
    };
    if (!test_device_opens()) return 1;
    tensor_use_torch_dropout(false); /* masks of devices are Philox's */
    int failed = run_registry(argc, argv, "ops on a device", check_op);
    if (in_shard(0)) failed += cmocka_run_group_tests_name("a device", tests, NULL, NULL);
    tensor_use_torch_dropout(true);
    return failed;
}

int main(int argc, char **argv)
{
    setenv("TAPEGRAD_CUDA_NO_CACHE", "1", 1); /* fresh memory is NaN there: read before written, it shows */
    return in_each_order(argc, argv, run_all);
}
