/* test_optim.c - what optimizers share, by hand: groups, refusals, one's own, closures (test_optimizers.c has
 * the generated tests of each). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <string.h>

#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>

/* ---- made-up parameters and gradients -------------------------------------------------------- */

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

/* Enough elements for threads: each element's path is its own, so a repeated one must come out repeated. */
static void many_elements(void **state)
{
    (void)state;
    enum { N = 100003 };
    TensorScope scope = tensor_scope_open();
    Tensor *small = start(5, TENSOR_F32), *big = tensor_repeat(tensor_detach(small), DIMS(N));
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

/* All gradients or none, at whatever height the scope's stack has to grow; in a thread that begins without
 * one. */
static void *zero_grad_at_all_heights(void *ctx)
{
    for (int height = 0, n = 1; height < 300; n++) {
        TensorScope scope = tensor_scope_open();
        Tensor *p = start(5, TENSOR_F32), *q = start(5, TENSOR_F32);
        Optimizer *opt = optim_sgd(TENSORS(p, q));
        tensor_set_grad(p, tensor_ones_like(p)), tensor_set_grad(q, tensor_ones_like(q));
        const float *first = tensor_data(tensor_grad(p)), *second = tensor_data(tensor_grad(q));
        for (int i = 0; i < height; i++) tensor_scope_return(tensor_scope_open(), p);
        tensor_debug_fail_allocation(n, false);
        const float left = optim_zero_grad(opt, .set_to_none = false) ? 1 : 0;
        const bool failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        *(int *)ctx += *first != left || *second != left || (left && !failed);
        tensor_error_clear();
        optim_free(opt);
        tensor_scope_close(scope);
        if (!failed) height++, n = 0;
    }
    return NULL;
}

static void zero_grad_without_room(void **state)
{
    (void)state;
    pthread_t thread;
    int wrong = 0;
    assert_int_equal(pthread_create(&thread, NULL, zero_grad_at_all_heights, &wrong), 0);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
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

/* ---- groups ---------------------------------------------------------------------------------- */

static void groups(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(5, TENSOR_F64), *q = start(5, TENSOR_F64), *r = start(5, TENSOR_F64);
    Optimizer *opt = optim_adamw(TENSORS(p), 0.1, .weight_decay = 0.5, .amsgrad = true);
    assert_int_equal(optim_add_group(opt, TENSORS(q)), 1);
    optim_options(opt, 1, OptimAdamArgs)->weight_decay = 0;
    assert_int_equal(optim_add_group(opt, TENSORS(r)), 2);
    optim_options(opt, 2, OptimAdamArgs)->lr = 0;
    assert_int_equal(opt->groups, 3);
    const OptimAdamArgs *second = optim_options(opt, 1, OptimAdamArgs),
                        *third = optim_options(opt, 2, OptimAdamArgs);
    assert_true(second->lr == 0.1 && second->weight_decay == 0 && second->amsgrad && second->beta2 == 0.999);
    assert_true(third->weight_decay == 0.5 && third->amsgrad && third->params.count == 0);
    Tensor *before = tensor_clone(tensor_detach(r));
    for (int t = 1; t <= 12; t++) {
        tensor_set_grad(q, made(grad_value, 5, t, TENSOR_F64));
        tensor_set_grad(r, made(grad_value, 5, t, TENSOR_F64));
        step(opt, p, t);
    }
    assert_false(tensor_equal(p, q));
    assert_true(tensor_equal(r, before));
    assert_true(optim_lr(opt) == 0.1);
    assert_int_equal(optim_set_lr(opt, 0.25), 0);
    assert_true(second->lr == 0.25 && third->lr == 0.25);
    optim_options(opt, 1, OptimAdamArgs)->lr = 1;
    assert_true(optim_lr(opt) == 0.25);
    assert_status_error(optim_add_group(opt, TENSORS(start(2, TENSOR_F32), q)), TENSOR_EVALUE);
    assert_status_error(optim_add_group(opt, TENSOR_LIST(NULL, 0)), TENSOR_EVALUE);
    assert_int_equal(opt->groups, 3);
    optim_options(opt, 1, OptimSgdArgs)->lr = 1; /* of another optimizer: a scratch one */
    assert_status_error(-1, TENSOR_EVALUE);
    optim_options(opt, 3, OptimAdamArgs)->lr = 7;
    assert_status_error(-1, TENSOR_EINDEX);
    optim_options(NULL, 0, OptimAdamArgs)->lr = 7;
    assert_status_error(-1, TENSOR_ENULL);
    assert_true(second->lr == 1);
    optim_free(opt);
    tensor_scope_close(scope);
}

/* ---- LAMB and Lion against their formulas, which PyTorch does not have ------------------------- */

static double length(const double *x)
{
    double sum = 0;
    for (int i = 0; i < 5; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static void lamb_by_hand(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(5, TENSOR_F64);
    Optimizer *opt = optim_lamb(TENSORS(p), 0.1, .weight_decay = 0.3, .beta1 = 0.8, .beta2 = 0.9);
    double x[5], m[5] = { 0 }, v[5] = { 0 }, u[5];
    for (int i = 0; i < 5; i++) x[i] = tensor_get(p, DIMS(i));
    for (int t = 1; t <= 20; t++) {
        step(opt, p, t);
        for (int i = 0; i < 5; i++) {
            const double g = grad_value(i, t);
            m[i] = 0.8 * m[i] + 0.2 * g, v[i] = 0.9 * v[i] + 0.1 * g * g;
            u[i] = m[i] / (1 - pow(0.8, t)) / (sqrt(v[i] / (1 - pow(0.9, t))) + 1e-6) + 0.3 * x[i];
        }
        const double rate = 0.1 * length(x) / length(u);
        for (int i = 0; i < 5; i++) x[i] -= rate * u[i];
        for (int i = 0; i < 5; i++) assert_true(fabs(tensor_get(p, DIMS(i)) - x[i]) < 1e-12);
    }
    Tensor *zero = tensor_requires_grad_(tensor_zeros(SHAPE(2), TENSOR_F64), true);
    Optimizer *from_zero = optim_lamb(TENSORS(zero), 0.1);
    tensor_set_grad(zero, tensor_ones_like(zero));
    assert_int_equal(optim_step(from_zero), 0); /* a norm of 0: the rate alone */
    assert_true(fabs(tensor_get(zero, DIMS(0)) + 0.1) < 1e-6);
    optim_free(opt), optim_free(from_zero);
    tensor_scope_close(scope);
}

static void lion_by_hand(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    for (int maximize = 0; maximize < 2; maximize++) {
        Tensor *p = start(5, TENSOR_F64);
        Optimizer *opt = optim_lion(TENSORS(p), 0.1, .beta1 = 0.7, .beta2 = 0.9, .weight_decay = 0.3,
                                    .maximize = maximize);
        double x[5], m[5] = { 0 };
        for (int i = 0; i < 5; i++) x[i] = tensor_get(p, DIMS(i));
        for (int t = 1; t <= 20; t++) {
            step(opt, p, t);
            for (int i = 0; i < 5; i++) {
                const double g = maximize ? -grad_value(i, t) : grad_value(i, t);
                const double c = 0.7 * m[i] + 0.3 * g;
                x[i] = x[i] * (1 - 0.1 * 0.3) - 0.1 * ((c > 0) - (c < 0));
                m[i] = 0.9 * m[i] + 0.1 * g;
                assert_true(fabs(tensor_get(p, DIMS(i)) - x[i]) < 1e-12);
            }
        }
        optim_free(opt);
    }
    Tensor *zero = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true);
    Optimizer *still = optim_lion(TENSORS(zero), 0.1, .weight_decay = 0);
    tensor_set_grad(zero, tensor_zeros_like(zero));
    assert_int_equal(optim_step(still), 0); /* the sign of 0 is 0 */
    assert_true(tensor_get(zero, DIMS(0)) == 1);
    optim_free(still);
    tensor_scope_close(scope);
}

static void muon_takes_matrices(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *vector = start(5, TENSOR_F32),
           *matrix = tensor_requires_grad_(tensor_ones(SHAPE(2, 2), TENSOR_F32), true);
    assert_null(optim_muon(TENSORS(matrix, vector)));
    assert_status_error(-1, TENSOR_ESHAPE);
    Optimizer *opt = optim_muon(TENSORS(matrix));
    assert_status_error(optim_add_group(opt, TENSORS(vector)), TENSOR_ESHAPE);
    assert_int_equal(opt->groups, 1);
    Tensor *other = tensor_requires_grad_(tensor_ones(SHAPE(2, 2), TENSOR_F32), true);
    Optimizer *up = optim_muon(TENSORS(other), .maximize = true);
    tensor_set_grad(matrix, tensor_eye(2, 2, TENSOR_F32));
    tensor_set_grad(other, tensor_neg(tensor_eye(2, 2, TENSOR_F32)));
    assert_int_equal(optim_step(opt) | optim_step(up), 0);
    assert_true(tensor_equal(matrix, other) && tensor_get(matrix, DIMS(0, 0)) < 1);
    optim_free(up);
    assert_null(optim_muon(TENSORS(matrix), .ns_steps = 100));
    assert_status_error(-1, TENSOR_EVALUE);
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
    assert_refused(optim_adam(TENSORS(p), .beta2 = 1), TENSOR_EVALUE);
    assert_refused(optim_adam(TENSORS(p), .beta1 = -0.1), TENSOR_EVALUE);
    assert_refused(optim_adam(nn_parameters(NULL)), TENSOR_ENULL);
    assert_refused(optim_adam(TENSORS(p), .lr = -1), TENSOR_EVALUE);
    assert_null(optim_adam(TENSORS(p), .lr = -1));
    assert_non_null(strstr(tensor_error(), "optim_adam: lr -1"));
    tensor_error_clear();
    assert_refused(optim_new(NULL, &optim_sgd_defaults), TENSOR_ENULL);
    assert_status_error(optim_step(NULL), TENSOR_ENULL);
    assert_status_error(optim_zero_grad(NULL), TENSOR_ENULL);
    assert_status_error(optim_set_lr(NULL, 1), TENSOR_ENULL);
    assert_true(isnan(optim_lr(NULL)));
    assert_status_error(-1, TENSOR_ENULL);
    optim_free(NULL);
    tensor_scope_close(scope);
    assert_int_equal(tensor_live_count(), before);
}

/* ---- an optimizer of one's own --------------------------------------------------------------- */

typedef struct SignArgs {
    TensorList params;
    double lr;
} SignArgs;
static const SignArgs sign_defaults = { .lr = 0.5 };
static const OpField sign_fields[] = { OP_OPTION(SignArgs, lr), { 0 } };

static int sign_step(const void *options, OptimParam *p, Tensor *grad)
{
    return tensor_add_scaled_(p->tensor, tensor_sign(grad), -((const SignArgs *)options)->lr) ? 0 : -1;
}

static int sign_all(const void *options, OptimParam *const *p, Tensor *const *grad, int n)
{
    for (int i = 0; i < n; i++)
        if (sign_step(options, p[i], grad[i])) return -1;
    return 0;
}

static void assert_sign_steps(const Tensor *p)
{
    for (int64_t i = 0; i < 5; i++) {
        double g = grad_value(i, 1);
        assert_true(tensor_get(p, DIMS(i)) == (g > 0 ? -0.5 : g < 0 ? 0.5 : 0));
    }
}

static void of_ones_own(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        const OptimKind sign = { .name = "Sign",
                                 .function = "sign",
                                 .args = sizeof(SignArgs),
                                 .defaults = &sign_defaults,
                                 .fields = sign_fields,
                                 .step = all ? NULL : sign_step,
                                 .step_all = all ? sign_all : NULL };
        TensorScope scope = tensor_scope_open();
        Tensor *p = tensor_requires_grad_(tensor_zeros(SHAPE(5), TENSOR_F64), true),
               *none = tensor_requires_grad_(tensor_zeros(SHAPE(5), TENSOR_F64), true);
        Optimizer *opt = optim_new(&sign, &(SignArgs){ TENSORS(none, p), .lr = 0.5 });
        assert_true(optim_lr(opt) == 0.5);
        step(opt, p, 1);
        assert_sign_steps(p);
        assert_true(opt->group[0].param[0].step == 0 && opt->group[0].param[1].step == 1);
        optim_free(opt);
        tensor_scope_close(scope);
    }
}

/* A kind of one's own with a state for each row, for matrices alone. */
static int rows_step(const void *options, OptimParam *p, Tensor *grad)
{
    Tensor *sums = tensor_add_(p->state[0], tensor_sum(tensor_square(grad), 1, true));
    Tensor *u = tensor_div(grad, tensor_sqrt(tensor_add_scalar(sums, 1e-8)));
    return tensor_add_scaled_(p->tensor, u, -((const SignArgs *)options)->lr) ? 0 : -1;
}

static int rows_shape(const Tensor *p, int s, int64_t *dim)
{
    dim[0] = tensor_size(p, 0), dim[1] = 1;
    return s == 0 ? 2 : -1;
}

static int rows_param(const Tensor *p, const char *function)
{
    return tensor_ndim(p) == 2 ? 0 : tensor_fail(TENSOR_ESHAPE, function, "want matrices");
}

static void rows_of_ones_own(void **state)
{
    (void)state;
    static const OptimKind rows = { .name = "Rows",
                                    .function = "rows",
                                    .args = sizeof(SignArgs),
                                    .defaults = &sign_defaults,
                                    .fields = sign_fields,
                                    .state = { "row_sum" },
                                    .shape = rows_shape,
                                    .check_param = rows_param,
                                    .step = rows_step };
    TensorScope scope = tensor_scope_open();
    Tensor *p = tensor_requires_grad_(tensor_ones(SHAPE(2, 3), TENSOR_F64), true),
           *q = tensor_requires_grad_(tensor_ones(SHAPE(2, 3), TENSOR_F64), true), *v = start(5, TENSOR_F64);
    assert_null(optim_new(&rows, &(SignArgs){ TENSORS(p, v), .lr = 0.5 }));
    assert_status_error(-1, TENSOR_ESHAPE);
    Optimizer *a = optim_new(&rows, &(SignArgs){ TENSORS(p), .lr = 0.5 }),
              *b = optim_new(&rows, &(SignArgs){ TENSORS(q), .lr = 0.5 });
    tensor_set_grad(p, tensor_full(SHAPE(2, 3), 2, TENSOR_F64)), tensor_set_grad(q, tensor_grad(p));
    assert_int_equal(optim_step(a), 0);
    Tensor *sums = nn_dict_get(optim_state_dict(a), "state.0.row_sum");
    assert_true(tensor_size(sums, 0) == 2 && tensor_size(sums, 1) == 1 && tensor_get(sums, DIMS(1, 0)) == 12);
    assert_int_equal(optim_load_state_dict(b, optim_state_dict(a)), 0);
    TENSOR_NO_GRAD { tensor_copy_(q, p); }
    assert_int_equal(optim_step(a) | optim_step(b), 0);
    assert_true(tensor_equal(p, q));
    optim_free(a), optim_free(b);
    tensor_scope_close(scope);
}

/* A step of one's own that changes something and then fails is taken back, and so is its count. */
static int half_step(const void *options, OptimParam *p, Tensor *grad)
{
    tensor_fill_(p->state[0], 7);
    if (sign_step(options, p, grad)) return -1;
    return p->step == 2 ? tensor_fail(TENSOR_EUSER, "half", "no more") : 0;
}

static void failed_step_is_taken_back(void **state)
{
    (void)state;
    static const OptimKind half = { .name = "Half",
                                    .function = "half",
                                    .args = sizeof(SignArgs),
                                    .defaults = &sign_defaults,
                                    .fields = sign_fields,
                                    .state = { "sum" },
                                    .step = half_step };
    TensorScope scope = tensor_scope_open();
    Tensor *p = tensor_requires_grad_(tensor_zeros(SHAPE(5), TENSOR_F64), true);
    Optimizer *opt = optim_new(&half, &(SignArgs){ TENSORS(p), .lr = 0.5 });
    step(opt, p, 1);
    Tensor *sum = opt->group[0].param[0].state[0];
    tensor_fill_(sum, 3);
    assert_status_error(optim_step(opt), TENSOR_EUSER);
    assert_sign_steps(p);
    assert_true(tensor_get(sum, DIMS(0)) == 3 && opt->group[0].param[0].step == 1);
    optim_free(opt);
    tensor_scope_close(scope);
}

/* Momentum that is switched on between steps has no buffer yet when the state is saved. */
static void option_switched_on(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p = start(5, TENSOR_F64), *q = start(5, TENSOR_F64);
    Optimizer *a = optim_sgd(TENSORS(p), 0.1), *b = optim_sgd(TENSORS(q), 0.1, .momentum = 0.9);
    step(a, p, 1);
    TENSOR_NO_GRAD { tensor_copy_(q, p); }
    optim_options(a, 0, OptimSgdArgs)->momentum = 0.9, optim_options(a, 0, OptimSgdArgs)->dampening = 0.5;
    const TensorDict saved = optim_state_dict(a);
    assert_true(saved.count > 0);
    assert_int_equal(optim_load_state_dict(b, saved), 0);
    for (int t = 2; t < 5; t++) step(a, p, t), step(b, q, t);
    assert_true(tensor_equal(p, q));
    optim_free(a), optim_free(b);
    tensor_scope_close(scope);
}

/* ---- closures: of all optimizers, and of one that needs it ------------------------------------- */

typedef struct Bowl {
    Tensor *p;
    Optimizer *opt;
    int calls, fail_at;
} Bowl;

static Tensor *bowl(void *ctx) /* sum p^2 */
{
    Bowl *b = ctx;
    if (++b->calls == b->fail_at) return tensor_fail(TENSOR_EUSER, "bowl", "no more"), NULL;
    optim_zero_grad(b->opt);
    Tensor *loss = tensor_sum(tensor_square(b->p));
    tensor_backward(loss);
    return loss;
}

/* p -= lr g; the rate is halved until the loss falls.  The last rate is kept beside the states. */
static int search_step(Optimizer *opt, OptimClosure fn, void *ctx, double *loss)
{
    Tensor *p = opt->group[0].param[0].tensor, *first = NULL, *g = NULL, *start_at = tensor_clone(p);
    TENSOR_ENABLE_GRAD { first = fn(ctx); }
    if (!first) return -1;
    *loss = tensor_item(first);
    g = tensor_clone(tensor_grad(p));
    double lr = ((const SignArgs *)opt->group[0].options)->lr, now = INFINITY;
    for (; now >= *loss; lr /= 2) {
        Tensor *next = NULL;
        tensor_copy_(p, tensor_add_scaled(start_at, g, -lr));
        TENSOR_ENABLE_GRAD { next = fn(ctx); }
        if (!next) return -1;
        now = tensor_item(next);
    }
    return nn_dict_set(&opt->extra, "last_lr", tensor_scalar(2 * lr, TENSOR_F64));
}

static const OptimKind search = { .name = "Search",
                                  .function = "search",
                                  .args = sizeof(SignArgs),
                                  .defaults = &sign_defaults,
                                  .fields = sign_fields,
                                  .step_closure = search_step };

static void closures(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Bowl b = { .p = start(5, TENSOR_F64) };
    b.opt = optim_new(&search, &(SignArgs){ TENSORS(b.p), .lr = 4 });
    double before = tensor_item(tensor_sum(tensor_square(tensor_detach(b.p))));
    assert_true(optim_step_closure(b.opt, bowl, &b) == before);
    assert_int_equal(b.calls, 5); /* 4, 2, 1 do not fall: p, -7 p, -3 p, -p; 1/2 ends at 0 */
    assert_true(tensor_item(tensor_sum(tensor_square(tensor_detach(b.p)))) == 0);
    TensorDict saved = optim_state_dict(b.opt);
    assert_true(tensor_item(nn_dict_get(saved, "last_lr")) == 0.5);
    assert_status_error(optim_step(b.opt), TENSOR_EVALUE);
    Optimizer *other = optim_new(&search, &(SignArgs){ TENSORS(b.p), .lr = 1 });
    assert_int_equal(optim_load_state_dict(other, saved), 0);
    assert_true(tensor_item(nn_dict_get(other->extra, "last_lr")) == 0.5 && optim_lr(other) == 4);
    optim_free(other), optim_free(b.opt);
    tensor_scope_close(scope);
}

static void closure_once(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Bowl b = { .p = start(5, TENSOR_F64) };
    b.opt = optim_sgd(TENSORS(b.p), 0.5);
    TENSOR_NO_GRAD { assert_true(optim_step_closure(b.opt, bowl, &b) > 0); }
    assert_int_equal(b.calls, 1);
    assert_true(tensor_item(tensor_sum(tensor_square(tensor_detach(b.p)))) == 0);
    b.fail_at = 2;
    assert_true(isnan(optim_step_closure(b.opt, bowl, &b)));
    assert_status_error(-1, TENSOR_EUSER);
    assert_true(isnan(optim_step_closure(b.opt, NULL, &b)));
    assert_status_error(-1, TENSOR_ENULL);
    optim_free(b.opt);
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_elements),      cmocka_unit_test(without_gradient),
        cmocka_unit_test(zero_grad),          cmocka_unit_test(outlives_the_net),
        cmocka_unit_test(pending_error),      cmocka_unit_test(groups),
        cmocka_unit_test(lamb_by_hand),       cmocka_unit_test(muon_takes_matrices),
        cmocka_unit_test(refusals),           cmocka_unit_test(of_ones_own),
        cmocka_unit_test(rows_of_ones_own),   cmocka_unit_test(closures),
        cmocka_unit_test(closure_once),       cmocka_unit_test(failed_step_is_taken_back),
        cmocka_unit_test(option_switched_on), cmocka_unit_test(zero_grad_without_room),
        cmocka_unit_test(lion_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
