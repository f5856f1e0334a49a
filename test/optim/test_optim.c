/* test_optim.c - optimizers against PyTorch's trajectories, groups, refusals, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include <tapegrad.h>
#include <tapegrad/cmocka.h>

#include "oracle/nn_golden.h"

/* ---- what oracle/nn.py's run() does ---------------------------------------------------------- */

static Tensor *made(double (*value)(int64_t i, int64_t t), int64_t n, int64_t t, TensorDtype dtype)
{
    double v[64];
    for (int64_t i = 0; i < n; i++) v[i] = value(i, t);
    return tensor_to(tensor_from_data(v, SHAPE(n), TENSOR_F64), dtype);
}

static double start_value(int64_t i, int64_t t)
{
    (void)t;
    return (double)(5 * i % 7 - 3) / 4;
}
static double grad_value(int64_t i, int64_t t)
{
    return (double)((7 * i + 3 * t) % 11 - 5) / (t < 7 ? 8 : 16);
}

static Tensor *start(int64_t n, TensorDtype dtype)
{
    return tensor_requires_grad_(made(start_value, n, 0, dtype), true);
}

static void step(Optimizer *opt, Tensor *p, int64_t t)
{
    TensorScope scope = tensor_scope_open();
    assert_int_equal(tensor_set_grad(p, made(grad_value, tensor_numel(p), t, tensor_dtype(p))), 0);
    assert_int_equal(optim_step(opt), 0);
    tensor_scope_close(scope);
}

static void assert_values(Tensor *p, const double *want, double tolerance, const char *name)
{
    for (int64_t i = 0; i < tensor_numel(p); i++) {
        double found = tensor_get(p, DIMS(i));
        if (!(fabs(found - want[i]) <= tolerance * (1 + fabs(want[i]))))
            fail_msg("%s [%lld]: %.17g, wanted %.17g", name, (long long)i, found, want[i]);
    }
}

/* ---- trajectories ---------------------------------------------------------------------------- */

typedef Optimizer *(*Make)(TensorList P);
#define MAKE(name, ...) \
    static Optimizer *make_##name(TensorList P) { return __VA_ARGS__; }
GOLDEN_PATHS(MAKE)

static const struct {
    const char *name;
    Make make;
    const GoldenPath *f64, *f32;
} paths[] = {
#define PATH(name, ...) { #name, make_##name, &golden_##name##_f64, &golden_##name##_f32 },
    GOLDEN_PATHS(PATH)
};
enum { PATHS = sizeof paths / sizeof *paths };

static void run_path(int i, TensorDtype dtype, const GoldenPath *golden, double tolerance)
{
    int64_t before = tensor_live_count();
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(GOLDEN_COUNT, dtype);
    Optimizer *opt = paths[i].make(TENSORS(p));
    assert_non_null(opt);
    for (int t = 1; t <= GOLDEN_STEPS; t++) {
        step(opt, p, t);
        if (t == 1) assert_values(p, golden->first, tolerance, paths[i].name);
    }
    assert_values(p, golden->last, tolerance, paths[i].name);
    optim_free(opt);
    tensor_scope_close(scope);
    assert_int_equal(tensor_live_count(), before);
}

static void trajectories_f64(void **state)
{
    (void)state;
    for (int i = 0; i < PATHS; i++) run_path(i, TENSOR_F64, paths[i].f64, 1e-13);
}

static void trajectories_f32(void **state)
{
    (void)state;
    for (int i = 0; i < PATHS; i++) run_path(i, TENSOR_F32, paths[i].f32, 4e-7);
}

/* A parameter that is not dense takes the path of ops; both paths give the same numbers. */
static void strided_parameters(void **state)
{
    (void)state;
    for (int i = 0; i < PATHS; i++)
        for (int dtype = TENSOR_F32; dtype <= TENSOR_F64; dtype++) {
            TensorScope scope = tensor_scope_open();
            Tensor *base = tensor_zeros(SHAPE(GOLDEN_COUNT, 3), (TensorDtype)dtype),
                   *p = tensor_select(base, 1, 1);
            tensor_copy_(p, start(GOLDEN_COUNT, (TensorDtype)dtype));
            p = tensor_requires_grad_(tensor_detach(p), true);
            assert_false(tensor_is_contiguous(p));
            Optimizer *opt = paths[i].make(TENSORS(p));
            for (int t = 1; t <= GOLDEN_STEPS; t++) step(opt, p, t);
            assert_values(p, dtype == TENSOR_F64 ? paths[i].f64->last : paths[i].f32->last,
                          dtype == TENSOR_F64 ? 1e-13 : 4e-7, paths[i].name);
            assert_true(tensor_get(base, DIMS(1, 0)) == 0 && tensor_get(base, DIMS(2, 2)) == 0);
            optim_free(opt);
            tensor_scope_close(scope);
        }
}

static void half_parameters(void **state)
{
    (void)state;
    for (int i = 0; i < PATHS; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *p = start(GOLDEN_COUNT, TENSOR_BF16);
        Optimizer *opt = paths[i].make(TENSORS(p));
        for (int t = 1; t <= GOLDEN_STEPS; t++) step(opt, p, t);
        assert_values(p, paths[i].f64->last, 0.05, paths[i].name);
        assert_int_equal(tensor_dtype(p), TENSOR_BF16);
        optim_free(opt);
        tensor_scope_close(scope);
    }
}

/* Enough elements for threads: each element's path is its own, so a repeated one must come out repeated. */
static void many_elements(void **state)
{
    (void)state;
    enum { N = 100003 };
    TensorScope scope = tensor_scope_open();
    Tensor *small = start(GOLDEN_COUNT, TENSOR_F32), *big = tensor_repeat(tensor_detach(small), DIMS(N));
    tensor_requires_grad_(big, true);
    Optimizer *a = optim_adamw(TENSORS(small), 0.1), *b = optim_adamw(TENSORS(big), 0.1);
    for (int t = 1; t <= 3; t++) {
        step(a, small, t);
        tensor_set_grad(big, tensor_repeat(tensor_grad(small), DIMS(N)));
        assert_int_equal(optim_step(b), 0);
    }
    assert_true(tensor_equal(tensor_repeat(tensor_detach(small), DIMS(N)), big));
    optim_free(a), optim_free(b);
    tensor_scope_close(scope);
}

/* ---- what a step leaves alone ---------------------------------------------------------------- */

static void without_gradient(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(5, TENSOR_F64), *q = start(5, TENSOR_F64), *before = tensor_clone(tensor_detach(q));
    Optimizer *opt = optim_adamw(TENSORS(q, p), 0.1, .weight_decay = 0.5);
    for (int t = 1; t <= 2; t++) step(opt, p, t);
    assert_true(tensor_equal(q, before));             /* no decay */
    assert_int_equal(opt->group[0].param[0].step, 0); /* no count */
    assert_null(opt->group[0].param[0].state[0]);
    assert_int_equal(opt->group[0].param[1].step, 2);
    optim_free(opt);
    tensor_scope_close(scope);
}

static void zero_grad(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(5, TENSOR_F64);
    Optimizer *opt = optim_sgd(TENSORS(p));
    step(opt, p, 1);
    assert_int_equal(optim_zero_grad(opt, .set_to_none = false), 0);
    assert_non_null(tensor_grad(p));
    assert_true(tensor_item(tensor_sum(tensor_abs(tensor_grad(p)))) == 0);
    assert_int_equal(optim_zero_grad(opt), 0);
    assert_null(tensor_grad(p));
    assert_int_equal(optim_zero_grad(opt), 0);
    assert_null(tensor_error());
    optim_free(opt);
    tensor_scope_close(scope);
}

/* The parameters outlive the module for the optimizer, and grad mode is as it was. */
static void outlives_the_net(void **state)
{
    (void)state;
    int64_t before = tensor_live_count();
    TensorScope scope = tensor_scope_open();
    Module *net = nn_linear(3, 2);
    Optimizer *opt = optim_adam(nn_parameters(net), .lr = 1e-3);
    tensor_backward(tensor_sum(nn_forward(net, tensor_ones(SHAPE(1, 3), TENSOR_F32))));
    nn_free(net);
    assert_true(tensor_grad_enabled());
    assert_int_equal(optim_step(opt), 0);
    assert_true(tensor_grad_enabled());
    TENSOR_NO_GRAD
        assert_int_equal(optim_step(opt), 0);
    optim_free(opt);
    tensor_scope_close(scope);
    assert_int_equal(tensor_live_count(), before);
}

static void pending_error(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(5, TENSOR_F64), *before = tensor_clone(tensor_detach(p));
    Optimizer *opt = optim_sgd(TENSORS(p), 1);
    tensor_set_grad(p, tensor_ones(SHAPE(5), TENSOR_F64));
    tensor_add(tensor_ones(SHAPE(2), TENSOR_F32), tensor_ones(SHAPE(3), TENSOR_F32));
    assert_int_equal(optim_step(opt), -1);
    assert_status_error(-1, TENSOR_ESHAPE);
    assert_true(tensor_equal(p, before));
    assert_int_equal(optim_step(opt), 0);
    assert_false(tensor_equal(p, before));
    optim_free(opt);
    tensor_scope_close(scope);
}

/* A value that a graph saved and a step then overwrote is noticed by backward. */
static void saved_parameter(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(5, TENSOR_F64);
    Optimizer *opt = optim_adam(TENSORS(p));
    Tensor *loss = tensor_sum(tensor_square(p));
    tensor_set_grad(p, tensor_ones(SHAPE(5), TENSOR_F64));
    optim_step(opt);
    assert_status_error(tensor_backward(loss), TENSOR_EGRAD);
    optim_free(opt);
    tensor_scope_close(scope);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void groups(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(5, TENSOR_F64), *q = start(5, TENSOR_F64), *r = start(5, TENSOR_F64);
    Optimizer *opt = optim_adamw(TENSORS(p), 0.1, .weight_decay = 0.5, .amsgrad = true);
    assert_int_equal(
        optim_add_group(opt, TENSORS(q), .weight_decay = 0, .betas = { 0.5, 0.6 }, .amsgrad = false), 0);
    assert_int_equal(optim_add_group(opt, TENSORS(r), .lr = 0), 0);
    assert_int_equal(opt->groups, 3);
    assert_true(opt->group[1].lr == 0.1 && opt->group[1].weight_decay == 0 && opt->group[1].betas[1] == 0.6 &&
                !opt->group[1].amsgrad);
    assert_true(opt->group[2].weight_decay == 0.5 && opt->group[2].amsgrad);
    Tensor *before = tensor_clone(tensor_detach(r));
    for (int t = 1; t <= GOLDEN_STEPS; t++) {
        tensor_set_grad(q, made(grad_value, 5, t, TENSOR_F64));
        tensor_set_grad(r, made(grad_value, 5, t, TENSOR_F64));
        step(opt, p, t);
    }
    assert_values(p, golden_adamw_amsgrad_f64.last, 1e-13, "group 0");
    assert_true(tensor_equal(r, before));
    assert_true(optim_lr(opt) == 0.1);
    assert_int_equal(optim_set_lr(opt, 0.25), 0);
    assert_true(opt->group[0].lr == 0.25 && opt->group[2].lr == 0.25);
    opt->group[1].lr = 1;
    assert_true(optim_lr(opt) == 0.25);
    assert_status_error(optim_add_group(opt, TENSORS(start(2, TENSOR_F32), q)), TENSOR_EVALUE);
    assert_status_error(optim_add_group(opt, TENSOR_LIST(NULL, 0)), TENSOR_EVALUE);
    assert_status_error(optim_add_group(opt, TENSORS(start(2, TENSOR_F32)), .betas = { 1, 0.5 }),
                        TENSOR_EVALUE);
    assert_int_equal(opt->groups, 3);
    optim_free(opt);
    tensor_scope_close(scope);
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define assert_refused(call, code) tapegrad_assert_error_((call) == NULL, code, __FILE__, __LINE__)

static void refusals(void **state)
{
    (void)state;
    int64_t before = tensor_live_count();
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(5, TENSOR_F32);
    assert_refused(optim_sgd(TENSOR_LIST(NULL, 0)), TENSOR_EVALUE);
    assert_refused(optim_sgd(TENSORS(p, p)), TENSOR_EVALUE);
    assert_refused(optim_sgd(TENSORS(p, NULL)), TENSOR_ENULL);
    assert_refused(optim_sgd(TENSORS(tensor_square(p))), TENSOR_EGRAD);
    assert_refused(optim_sgd(TENSORS(p), -0.1), TENSOR_EVALUE);
    assert_refused(optim_sgd(TENSORS(p), NAN), TENSOR_EVALUE);
    assert_refused(optim_sgd(TENSORS(p), .weight_decay = -1), TENSOR_EVALUE);
    assert_refused(optim_sgd(TENSORS(p), .momentum = -1), TENSOR_EVALUE);
    assert_refused(optim_sgd(TENSORS(p), .nesterov = true), TENSOR_EVALUE);
    assert_refused(optim_sgd(TENSORS(p), .nesterov = true, .momentum = 0.9, .dampening = 0.1), TENSOR_EVALUE);
    assert_refused(optim_adam(TENSORS(p), .eps = -1), TENSOR_EVALUE);
    assert_refused(optim_adam(TENSORS(p), .betas = { 0.9, 1.0 }), TENSOR_EVALUE);
    assert_refused(optim_adam(nn_parameters(NULL)), TENSOR_ENULL);
    assert_status_error(optim_step(NULL), TENSOR_ENULL);
    assert_status_error(optim_zero_grad(NULL), TENSOR_ENULL);
    assert_status_error(optim_set_lr(NULL, 1), TENSOR_ENULL);
    assert_true(isnan(optim_lr(NULL)));
    assert_status_error(-1, TENSOR_ENULL);
    optim_free(NULL);
    tensor_scope_close(scope);
    assert_int_equal(tensor_live_count(), before);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void steady_state(void **state)
{
    (void)state;
    for (int i = 0; i < PATHS; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *p = start(GOLDEN_COUNT, TENSOR_F32);
        tensor_set_grad(p, made(grad_value, GOLDEN_COUNT, 1, TENSOR_F32));
        Optimizer *opt = paths[i].make(TENSORS(p));
        optim_step(opt);
        int64_t live = tensor_live_count(), calls = tensor_memory().system_calls;
        for (int t = 0; t < 50; t++) assert_int_equal(optim_step(opt), 0);
        assert_int_equal(tensor_live_count(), live);
        assert_int_equal(tensor_memory().system_calls, calls);
        optim_free(opt);
        tensor_scope_close(scope);
    }
}

/* The n-th allocation of a step fails, for every n: states are made before anything changes. */
static void failing_memory(void **state)
{
    (void)state;
    for (int i = 0; i < PATHS; i++)
        for (int n = 1, failed = 1; failed; n++) {
            TensorScope scope = tensor_scope_open();
            Tensor *p = start(GOLDEN_COUNT, TENSOR_F64), *q = start(GOLDEN_COUNT, TENSOR_F64),
                   *before = tensor_clone(tensor_detach(p));
            tensor_set_grad(p, made(grad_value, GOLDEN_COUNT, 1, TENSOR_F64));
            tensor_set_grad(q, made(grad_value, GOLDEN_COUNT, 1, TENSOR_F64));
            Optimizer *opt = paths[i].make(TENSORS(p, q));
            tensor_debug_fail_allocation(n, false);
            int status = optim_step(opt);
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            if (failed && status) {
                assert_status_error(status, TENSOR_ENOMEM);
                assert_true(tensor_equal(p, before) && tensor_equal(q, before));
                assert_int_equal(optim_step(opt), 0);
            }
            assert_values(p, paths[i].f64->first, 1e-13, paths[i].name);
            assert_values(q, paths[i].f64->first, 1e-13, paths[i].name);
            optim_free(opt);
            tensor_scope_close(scope);
        }
}

/* ---- an optimizer of one's own --------------------------------------------------------------- */

static int sign_states(const OptimGroup *g)
{
    (void)g;
    return 0;
}

static int sign_update(const OptimGroup *g, OptimParam *p, Tensor *grad)
{
    return tensor_add_scaled_(p->tensor, tensor_sign(grad), -g->lr) ? 0 : -1;
}

static void of_ones_own(void **state)
{
    (void)state;
    static const OptimKind sign = { .name = "Sign", .states = sign_states, .update = sign_update };
    TensorScope scope = tensor_scope_open();
    Tensor *p = tensor_requires_grad_(tensor_zeros(SHAPE(5), TENSOR_F64), true);
    Optimizer *opt = optim_new(&sign, TENSORS(p), (OptimGroup){ .lr = 0.5 });
    step(opt, p, 1);
    for (int64_t i = 0; i < 5; i++) {
        double g = grad_value(i, 1);
        assert_true(tensor_get(p, DIMS(i)) == (g > 0 ? -0.5 : g < 0 ? 0.5 : 0));
    }
    optim_free(opt);
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trajectories_f64),
        cmocka_unit_test(trajectories_f32),
        cmocka_unit_test(strided_parameters),
        cmocka_unit_test(half_parameters),
        cmocka_unit_test(many_elements),
        cmocka_unit_test(without_gradient),
        cmocka_unit_test(zero_grad),
        cmocka_unit_test(outlives_the_net),
        cmocka_unit_test(pending_error),
        cmocka_unit_test(saved_parameter),
        cmocka_unit_test(groups),
        cmocka_unit_test(refusals),
        cmocka_unit_test(steady_state),
        cmocka_unit_test(failing_memory),
        cmocka_unit_test(of_ones_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
