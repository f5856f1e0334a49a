/* test_list.c - many tensors in one call of a device: list ops, clipping, the steps of optimizers.  On the
 * device of TAPEGRAD_TEST_DEVICE, beside the CPU. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include "emulator.h"
#include <tapegrad/cmocka.h>

enum { N = 6, STEPS = 4 };
static const int64_t sizes[N] = { 1, 0, 7, 40, 16384 + 5, 33 }; /* 16384: of a block */

static Tensor *pattern(int i, double phase, TensorDtype dtype, const char *device)
{
    Tensor *x = tensor_arange(0, (double)sizes[i] + 1, 1, TENSOR_F64);
    x = tensor_to(tensor_sin(tensor_add_scalar(x, phase + i)), dtype);
    return tensor_narrow(tensor_to_device(x, device), 0, i == 3, sizes[i]); /* one begins off 16 bytes */
}

static Optimizer *make(int kind, TensorList p)
{
    switch (kind) {
    case 0: return optim_sgd(p, 0.1, .weight_decay = 0.1);
    case 1: return optim_sgd(p, 0.1, .momentum = 0.9, .nesterov = true);
    case 2: return optim_adam(p, .weight_decay = 0.1, .maximize = true);
    case 3: return optim_adamw(p, .amsgrad = true);
    case 4: return optim_nadam(p);
    case 5: return optim_radam(p);
    case 6: return optim_adamax(p);
    case 7: return optim_adagrad(p, .initial_accumulator_value = 0.1);
    case 8: return optim_adadelta(p);
    case 9: return optim_rmsprop(p);
    case 10: return optim_rmsprop(p, .centered = true);
    case 11: return optim_rmsprop(p, .momentum = 0.5);
    case 12: return optim_rmsprop(p, .centered = true, .momentum = 0.5);
    case 13: return optim_rprop(p);
    case 14: return optim_asgd(p, .t0 = 1);
    case 15: return optim_lion(p, 1e-2);
    default: return NULL;
    }
}

/* The parameters after a few steps, one behind the other, on the CPU. */
static Tensor *after_steps(int kind, TensorDtype dtype, const char *device)
{
    Tensor *p[N], *flat[N];
    for (int i = 0; i < N; i++) {
        p[i] = tensor_clone(pattern(i, 0, dtype, device));
        if (i == 3) p[i] = pattern(i, 0, dtype, device);
        tensor_requires_grad_(p[i], true);
    }
    Optimizer *opt = make(kind, TENSOR_LIST(p, N));
    assert_non_null(opt);
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < N; i++)
            if (t || i != 5) /* whose first step is later */
                assert_int_equal(tensor_set_grad(p[i], pattern(i, 1.0 + t, dtype, device)), 0);
        const int64_t launches = counts_now().launches;
        assert_int_equal(optim_step(opt), 0);
        if (t == STEPS - 1) /* the last one's alone and its states are made: a kernel and its table */
            assert_true(counts_now().launches <= launches + 4);
    }
    optim_free(opt);
    for (int i = 0; i < N; i++) flat[i] = tensor_to(tensor_to_device(tensor_detach(p[i]), "cpu"), TENSOR_F64);
    return tensor_cat(TENSOR_LIST(flat, N), 0);
}

static void every_rule_is_one_kernel(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
    for (int kind = 0; kind < 16; kind++)
        for (int d = 0; d < 4; d++) {
            TensorScope scope = tensor_scope_open();
            const double unit = d == 0 ? 1e-6 : d == 1 ? 1e-13 : d == 2 ? 2e-3 : 2e-2;
            Tensor *want = after_steps(kind, dtypes[d], "cpu"),
                   *got = after_steps(kind, dtypes[d], test_device());
            if (!tensor_allclose(got, want, .rtol = unit, .atol = unit))
                fail_msg("optimizer %d, %s: apart by %g", kind, tensor_dtype_name(dtypes[d]),
                         tensor_item(tensor_amax(tensor_abs(tensor_sub(got, want)))));
            tensor_scope_close(scope);
        }
}

static void clip_and_step(TensorList p, Optimizer *opt, GradScaler *scaler)
{
    assert_non_null(nn_clip_grad_norm_(p, 1.0));
    assert_int_equal(scaler ? optim_scaler_step(scaler, opt) : optim_step(opt), 0);
}

/* Launches of clipping and a step of AdamW over n parameters, whose gradients lie elsewhere each time. */
static int64_t launches_of(int n, GradScaler *scaler)
{
    Tensor **p = calloc((size_t)n, sizeof *p);
    assert_non_null(p);
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < n; i++)
        p[i] = tensor_requires_grad_(tensor_to_device(tensor_full(SHAPE(3), i, TENSOR_F32), test_device()),
                                     true);
    Optimizer *opt = optim_adamw(TENSOR_LIST(p, n), .lr = 1e-3);
    struct CuemuCounts before = { 0 }, now = { 0 };
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            tensor_set_grad(p[i], tensor_to_device(tensor_ones(SHAPE(3), TENSOR_F32), test_device()));
        if (scaler) assert_int_equal(optim_scaler_unscale_(scaler, opt), 0);
        before = counts_now();
        clip_and_step(TENSOR_LIST(p, n), opt, scaler);
        now = counts_now();
        assert_true(now.launches - before.launches <= 40); /* the first one makes the states, too */
        if (scaler) assert_int_equal(optim_scaler_update(scaler), 0);
    }
    if (!scaler) assert_int_equal(now.to_device, before.to_device);
    assert_int_equal(now.to_host, before.to_host);
    assert_int_equal(now.waits, before.waits);
    optim_free(opt);
    tensor_scope_close(scope);
    free(p);
    return now.launches - before.launches;
}

static void launches_do_not_grow(void **state)
{
    (void)state;
    const int64_t few = launches_of(3, NULL), many = launches_of(400, NULL);
    assert_true(few <= 12);
    assert_int_equal(many, few);
    assert_true(launches_of(3000, NULL) <= few + 12); /* tables of more than one write */
}

static void launches_do_not_grow_with_a_scaler(void **state)
{
    (void)state;
    GradScaler *scaler = optim_grad_scaler();
    const int64_t few = launches_of(3, scaler), many = launches_of(400, scaler);
    assert_true(few <= 12);
    assert_int_equal(many, few);
    optim_scaler_free(scaler);
}

/* A copy of each, one call for all, and a copy back; with a flag, too, which holds a step back. */
static void transposed_parameters(void **state)
{
    (void)state;
    enum { MANY = 20 };
    TensorScope scope = tensor_scope_open();
    for (int scaled = 0; scaled < 2; scaled++) {
        Tensor *p[2][MANY];
        for (int far = 0; far < 2; far++) {
            GradScaler *scaler = optim_grad_scaler();
            int64_t launches = 0;
            for (int i = 0; i < MANY; i++) {
                Tensor *x = tensor_reshape(tensor_arange(i, i + 6, 1, TENSOR_F32), SHAPE(2, 3));
                p[far][i] = tensor_transpose(far ? tensor_to_device(x, test_device()) : x, 0, 1);
                tensor_requires_grad_(p[far][i], true);
            }
            Optimizer *opt = optim_adamw(TENSOR_LIST(p[far], MANY), .lr = 1e-2);
            for (int t = 0; t < STEPS; t++) {
                const double slope = scaled && t == 1 ? (double)INFINITY : t + 1;
                for (int i = 0; i < MANY; i++) tensor_set_grad(p[far][i], tensor_full_like(p[far][i], slope));
                if (scaled) optim_scaler_scale(scaler, tensor_sum(tensor_grad(p[far][0])));
                if (scaled) assert_int_equal(optim_scaler_unscale_(scaler, opt), 0);
                launches = counts_now().launches;
                assert_int_equal(scaled ? optim_scaler_step(scaler, opt) : optim_step(opt), 0);
                launches = counts_now().launches - launches;
                if (scaled) optim_scaler_update(scaler);
            }
            if (far && is_emulated()) assert_true(launches <= 2 * MANY + 6);
            optim_free(opt), optim_scaler_free(scaler);
        }
        for (int i = 0; i < MANY; i++)
            assert_tensor_close(tensor_to_device(tensor_detach(p[1][i]), "cpu"), tensor_detach(p[0][i]), 1e-6,
                                0);
    }
    tensor_scope_close(scope);
}

/* bf16 with masters of f32: gradients are cast in one launch, and the masters in another. */
static void masters_are_cast_together(void **state)
{
    (void)state;
    enum { MANY = 60 };
    Tensor *p[2][MANY], *here = NULL;
    TensorScope scope = tensor_scope_open();
    for (int far = 0; far < 2; far++) {
        const char *device = far ? test_device() : "cpu";
        for (int i = 0; i < MANY; i++)
            p[far][i] = tensor_requires_grad_(pattern(i % N, i, TENSOR_BF16, device), true);
        Optimizer *opt = optim_adamw(TENSOR_LIST(p[far], MANY), .lr = 1e-2);
        assert_int_equal(optim_set_master_weights(opt, true), 0);
        for (int t = 0; t < STEPS; t++) {
            for (int i = 0; i < MANY; i++)
                tensor_set_grad(p[far][i], pattern(i % N, i + t + 1, TENSOR_BF16, device));
            const int64_t before = counts_now().launches;
            if (optim_step(opt)) fail_msg("%s", tensor_error());
            if (t == STEPS - 1) assert_true(counts_now().launches <= before + 8);
        }
        optim_free(opt);
    }
    for (int i = 0; i < MANY; i++) {
        here = tensor_to_device(tensor_detach(p[1][i]), "cpu");
        assert_true(tensor_allclose(here, tensor_detach(p[0][i]), .rtol = 8e-3, .atol = 1e-5));
    }
    tensor_scope_close(scope);
}

static double value_of(const Tensor *p)
{
    Tensor *x = tensor_to(tensor_detach((Tensor *)(uintptr_t)p), TENSOR_F32);
    assert_true(tensor_item(tensor_max(x)) == tensor_item(tensor_min(x)));
    return tensor_item(tensor_max(x));
}

/* A step without memory, wherever that is missed, has not been taken, or has been written back: the step that
 * follows is the next one.  Each has arrays of its own, which are in no table yet; this test comes first,
 * while the device has no memory for tables either. */
static void masters_are_written_back_or_unchanged(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    bool failed = true, taken = false;
    for (int64_t n = 1; failed; n++) {
        Tensor *p = tensor_to_device(tensor_ones(SHAPE(3000), TENSOR_BF16), test_device());
        Optimizer *opt = optim_sgd(TENSORS(tensor_requires_grad_(p, true)), 0.25, .momentum = 0.5);
        tensor_set_grad(p, tensor_to_device(tensor_ones(SHAPE(3000), TENSOR_BF16), test_device()));
        assert_int_equal(optim_set_master_weights(opt, true), 0);
        assert_int_equal(tensor_debug_fail_device_allocation(test_device(), n, true), 0);
        const int status = optim_step(opt);
        failed = tensor_debug_allocation_failed(), taken = taken || (failed && !status);
        assert_int_equal(tensor_debug_fail_device_allocation(test_device(), 0, false), 0);
        assert_int_equal(tensor_error_code(), status ? TENSOR_ENOMEM : TENSOR_OK);
        tensor_error_clear();
        assert_true(value_of(p) == (status ? 1 : 0.75));
        assert_int_equal(optim_step(opt), 0);
        assert_true(value_of(p) == (status ? 0.75 : 0.375));
        optim_free(opt);
        assert_true(n < 200);
    }
    assert_true(taken);
    tensor_scope_close(scope);
}

/* A flag holds back a copy of one dtype; of two, no kernel reads it. */
static void copies_heed_a_flag(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_BF16 };
    TensorScope scope = tensor_scope_open();
    Tensor *flag = tensor_to_device(tensor_ones(SHAPE(), TENSOR_BOOL), test_device());
    for (int turn = 0; turn < 4; turn++) {
        const bool two = turn % 2, skipped = turn / 2;
        Tensor *item[] = { tensor_to_device(tensor_zeros(SHAPE(9), dtypes[two]), test_device()),
                           tensor_to_device(tensor_ones(SHAPE(9), TENSOR_F32), test_device()) };
        const OpListRule copy = { .function = "copy",
                                  .rule = "foreach_copy",
                                  .step = "x = g",
                                  .arrays = 2,
                                  .count = 1,
                                  .item = item,
                                  .skip = skipped ? flag : NULL };
        assert_int_equal(op_list_rule(&copy), !(two && skipped));
        assert_true(value_of(item[0]) == !skipped);
    }
    tensor_scope_close(scope);
}

/* Of two dtypes: a call for each.  Behind it lies NULL, which nothing may read. */
static Tensor *norms_on(const char *device, TensorDtype dtype, bool mixed, double ord, double bad)
{
    Tensor *x[N] = { NULL };
    for (int i = 0; i < N - 1; i++) x[i] = pattern(i < 1 ? i : i + 1, 0, dtype, device);
    if (mixed) x[1] = tensor_to(x[1], TENSOR_F64);
    if (bad != 0) x[2] = tensor_mul_scalar(tensor_cat(TENSORS(x[2], tensor_full_like(x[0], bad)), 0), 1);
    return tensor_to_device(tensor_foreach_norm(TENSOR_LIST(x, N - 1), ord), "cpu");
}

static void norms_of_lists(void **state)
{
    (void)state;
    static const double ords[] = { 1, 2, INFINITY, 3, 0 };
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_F32 };
    for (int o = 0; o < 5; o++)
        for (int d = 0; d < 4; d++)
            for (int bad = 0; bad < 3; bad++) {
                TensorScope scope = tensor_scope_open();
                const double value = bad == 1 ? NAN : bad == 2 ? -INFINITY : 0;
                Tensor *want = norms_on("cpu", dtypes[d], d == 3, ords[o], value),
                       *got = norms_on(test_device(), dtypes[d], d == 3, ords[o], value);
                assert_null(tensor_error());
                assert_int_equal(tensor_dtype(got), tensor_dtype(want));
                assert_true(tensor_allclose(got, want, .rtol = d == 1 ? 1e-12 : 1e-5, .equal_nan = true));
                tensor_scope_close(scope);
            }
}

/* Transposed, with gaps, and of two dtypes: as on the CPU, and only those with gaps by calls of their own. */
static void clips_of_any_layout(void **state)
{
    (void)state;
    enum { MANY = 60 };
    TensorScope scope = tensor_scope_open();
    for (int gaps = 0; gaps < 2; gaps++) {
        Tensor *p[2][MANY], *norm[2];
        int64_t launches = 0;
        for (int far = 0; far < 2; far++) {
            for (int i = 0; i < MANY; i++) {
                Tensor *x = tensor_reshape(tensor_arange(0, 12, 1, i % 2 ? TENSOR_F64 : TENSOR_F32),
                                           SHAPE(3, 4)),
                       *g = tensor_add_scalar(x, i);
                if (far) x = tensor_to_device(x, test_device()), g = tensor_to_device(g, test_device());
                if (i % 3 == 1) g = tensor_transpose(tensor_contiguous(tensor_transpose(g, 0, 1)), 0, 1);
                if (gaps && i == 3) g = tensor_narrow(tensor_cat(TENSORS(g, g), 1), 1, 0, 4);
                tensor_set_grad(p[far][i] = tensor_requires_grad_(x, true), g);
            }
            for (int turn = 0; turn < 2; turn++) { /* the first makes tables of addresses */
                launches = counts_now().launches;
                norm[far] = nn_clip_grad_norm_(TENSOR_LIST(p[far], MANY), turn ? 1.0 : 1e9);
                launches = counts_now().launches - launches;
            }
        }
        if (is_emulated()) assert_true(launches <= (gaps ? 40 : 16));
        assert_tensor_close(tensor_to_device(norm[1], "cpu"), norm[0], 1e-6, 0);
        for (int i = 0; i < MANY; i++)
            assert_tensor_close(tensor_to_device(tensor_grad(p[1][i]), "cpu"), tensor_grad(p[0][i]), 1e-5, 0);
    }
    tensor_scope_close(scope);
}

/* ---- casts of parameters --------------------------------------------------------------------- */

enum { PARAMETERS = 12 };

static Tensor *parameter(int i)
{
    Tensor *x = tensor_sin(tensor_add_scalar(tensor_arange(0, 5. * (i + 3), 1, TENSOR_F32), i));
    return tensor_requires_grad_(tensor_to_device(tensor_reshape(x, SHAPE(5, i + 3)), test_device()), true);
}

/* In a block the products of each parameter, which goes through bf16, with itself; NULL: left out. */
static Tensor *products(Tensor *const *p, Tensor *write)
{
    Tensor *sum = tensor_to_device(tensor_zeros(SHAPE(), TENSOR_F32), test_device());
    TENSOR_AUTOCAST(TENSOR_BF16)
    {
        for (int i = 0; i < PARAMETERS; i++) {
            if (write && i == 1)
                TENSOR_NO_GRAD
                    tensor_add_scalar_(write, 1);
            if (p[i]) sum = tensor_add(sum, tensor_sum(tensor_matmul(p[i], tensor_mT(p[i]))));
        }
    }
    assert_null(tensor_error());
    return sum;
}

/* The second block casts in one launch what the first one cast one by one; with the same values, of what is
 * there when it is used. */
static void casts_of_parameters_are_one_launch(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p[PARAMETERS], *q[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++) p[i] = parameter(i);
    int64_t launches[3];
    double value[3];
    for (int turn = 0; turn < 3; turn++) {
        const int64_t before = counts_now().launches;
        Tensor *sum = products(p, NULL);
        launches[turn] = counts_now().launches - before;
        assert_int_equal(tensor_backward(sum), 0);
        value[turn] = tensor_item(sum) + tensor_item(tensor_sum(tensor_grad(p[PARAMETERS - 1])));
        for (int i = 0; i < PARAMETERS; i++) tensor_set_grad(p[i], NULL);
    }
    assert_true(value[0] == value[1] && value[1] == value[2]);
    if (is_emulated()) { /* and one that writes the table of addresses */
        assert_true(launches[0] - launches[1] >= PARAMETERS - 2);
        assert_true(launches[1] >= launches[2]);
    }
    for (int i = 0; i < PARAMETERS; i++)
        q[i] = i == 3 ? tensor_requires_grad_(tensor_add_scalar(tensor_detach(p[3]), 1), true) : p[i];
    const double want = tensor_item(products(q, NULL)); /* makes another list */
    products(p, NULL);
    assert_true(tensor_item(products(p, p[3])) == want); /* written after it was cast */
    tensor_scope_close(scope);
}

/* A parameter that is gone is not cast. */
static void casts_of_parameters_that_were_freed(void **state)
{
    (void)state;
    Tensor *p[PARAMETERS];
    TensorScope outer = tensor_scope_open();
    for (int i = 0; i < PARAMETERS; i++) p[i] = parameter(i);
    products(p, NULL);
    for (int i = 1; i < PARAMETERS; i++) tensor_retain(p[i]);
    tensor_scope_close(outer); /* the first one goes */
    p[0] = NULL;
    outer = tensor_scope_open();
    const int64_t live = tensor_live_count();
    products(p, NULL);
    tensor_scope_close(outer);
    assert_int_equal(tensor_live_count(), live);
    for (int i = 1; i < PARAMETERS; i++) tensor_release(p[i]);
}

/* What a list op writes counts as written, and what it reads does not. */
static void writes_are_counted(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x[2], *y[2];
    uint32_t x_was[2], y_was[2];
    for (int i = 0; i < 2; i++) {
        x[i] = tensor_detach(parameter(i)), y[i] = tensor_detach(parameter(i));
        x_was[i] = tensor_version(x[i]), y_was[i] = tensor_version(y[i]);
    }
    assert_int_equal(tensor_foreach_zero_(TENSOR_LIST(x, 2)), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(tensor_version(x[i]) > x_was[i]);
        x_was[i] = tensor_version(x[i]);
    }
    assert_int_equal(tensor_foreach_add_(TENSOR_LIST(x, 2), TENSOR_LIST(y, 2), 2), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(tensor_version(x[i]) > x_was[i]);
        assert_int_equal(tensor_version(y[i]), y_was[i]);
    }
    tensor_scope_close(scope);
}

static int64_t peak_of_products(Tensor *const *p)
{
    assert_int_equal(tensor_device_memory_reset_peak(test_device()), 0);
    const int64_t before = tensor_device_memory(test_device()).in_use;
    TensorScope scope = tensor_scope_open();
    products(p, NULL);
    tensor_scope_close(scope);
    return tensor_device_memory(test_device()).peak - before;
}

/* Nor is one, two blocks later, that a block did not cast. */
static void casts_of_parameters_that_were_left_out(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p[PARAMETERS], *few[PARAMETERS] = { NULL };
    for (int i = 0; i < PARAMETERS; i++) p[i] = parameter(i);
    few[0] = p[0], few[1] = p[1];
    peak_of_products(few);
    const int64_t want = peak_of_products(few);
    peak_of_products(p);
    assert_true(peak_of_products(few) > want); /* casts them all ahead */
    assert_int_equal(peak_of_products(few), want);
    tensor_scope_close(scope);
}

/* ---- gradients that are added to others ------------------------------------------------------ */

static Tensor *loss_of(Tensor *const *p, double factor)
{
    Tensor *sum = NULL;
    for (int i = 0; i < PARAMETERS; i++) {
        Tensor *one = tensor_sum(tensor_mul_scalar(tensor_sin(p[i]), factor));
        sum = sum ? tensor_add(sum, one) : one;
    }
    return sum;
}

static int64_t launches_of_backward(Tensor *loss)
{
    const int64_t before = counts_now().launches;
    if (tensor_backward(loss)) fail_msg("%s", tensor_error());
    return counts_now().launches - before;
}

/* In one launch, with the bits of an addition each; a .grad that is shared is added to as often as it is. */
static void gradients_are_added_in_one_launch(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p[PARAMETERS], *once[PARAMETERS], *twice[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++) p[i] = parameter(i);
    const int64_t first = launches_of_backward(loss_of(p, 0.3));
    for (int i = 0; i < PARAMETERS; i++)
        once[i] = tensor_clone(tensor_grad(p[i])), tensor_set_grad(p[i], NULL);
    launches_of_backward(loss_of(p, 0.7));
    for (int i = 0; i < PARAMETERS; i++) twice[i] = tensor_add(tensor_grad(p[i]), once[i]);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < PARAMETERS; i++) tensor_set_grad(p[i], NULL);
        launches_of_backward(loss_of(p, 0.7));
        const int64_t second = launches_of_backward(loss_of(p, 0.3));
        if (is_emulated() && turn) assert_true(second <= first + 2); /* and the table of addresses */
        for (int i = 0; i < PARAMETERS; i++) assert_true(tensor_equal(tensor_grad(p[i]), twice[i]));
    }
    Tensor *shared = tensor_to_device(tensor_zeros(SHAPE(3), TENSOR_F32), test_device()), *q[2];
    for (int i = 0; i < 2; i++) {
        q[i] = tensor_requires_grad_(tensor_clone(shared), true);
        tensor_set_grad(q[i], shared);
    }
    assert_int_equal(tensor_backward(tensor_sum(tensor_add(q[0], q[1]))), 0);
    assert_true(tensor_item(tensor_sum(shared)) == 6);
    tensor_scope_close(scope);
}

/* All or none: where there is no memory for it, nothing has changed. */
static void gradients_are_added_or_not(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p[PARAMETERS], *old[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++) p[i] = parameter(i);
    launches_of_backward(loss_of(p, 1));
    for (int i = 0; i < PARAMETERS; i++) old[i] = tensor_clone(tensor_grad(p[i]));
    for (int64_t n = 1;; n++) {
        TensorScope one = tensor_scope_open();
        Tensor *loss = loss_of(p, 1);
        assert_int_equal(tensor_debug_fail_device_allocation(test_device(), n, true), 0);
        const int status = tensor_backward(loss);
        assert_int_equal(tensor_debug_fail_device_allocation(test_device(), 0, false), 0);
        if (!status) break;
        assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        tensor_error_clear();
        for (int i = 0; i < PARAMETERS; i++) assert_true(tensor_equal(tensor_grad(p[i]), old[i]));
        tensor_scope_close(one);
        assert_true(n < 200);
    }
    for (int i = 0; i < PARAMETERS; i++)
        assert_true(tensor_equal(tensor_grad(p[i]), tensor_mul_scalar(old[i], 2)));
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masters_are_written_back_or_unchanged),
        cmocka_unit_test(every_rule_is_one_kernel),
        cmocka_unit_test(launches_do_not_grow),
        cmocka_unit_test(launches_do_not_grow_with_a_scaler),
        cmocka_unit_test(transposed_parameters),
        cmocka_unit_test(masters_are_cast_together),
        cmocka_unit_test(copies_heed_a_flag),
        cmocka_unit_test(norms_of_lists),
        cmocka_unit_test(clips_of_any_layout),
        cmocka_unit_test(casts_of_parameters_are_one_launch),
        cmocka_unit_test(writes_are_counted),
        cmocka_unit_test(casts_of_parameters_that_were_freed),
        cmocka_unit_test(casts_of_parameters_that_were_left_out),
        cmocka_unit_test(gradients_are_added_in_one_launch),
        cmocka_unit_test(gradients_are_added_or_not),
    };
    if (!test_device_opens()) return 1;
    return cmocka_run_group_tests_name("lists on a device", tests, NULL, NULL);
}
