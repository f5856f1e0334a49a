/* test_optim_edges.c - the options of every optimizer at their edges: the last that is taken, the first that
 * is refused, and NaN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/optim.h>

/* NULL for kind: every one that has the option. */
static const struct Edge {
    const char *kind, *option;
    double taken, refused;
} edges[] = {
    { NULL, "lr", 0, -1e-9 },
    { NULL, "weight_decay", 0, -1e-9 },
    { NULL, "beta1", 0, -1e-9 },
    { NULL, "beta1", 0.9999, 1 },
    { NULL, "beta2", 0, -1e-9 },
    { NULL, "beta2", 0.9999, 1 },
    { NULL, "eps", 0, -1e-9 },
    { NULL, "momentum", 0, -1e-9 },
    { NULL, "momentum_decay", 0, -1e-9 },
    { NULL, "lr_decay", 0, -1e-9 },
    { NULL, "initial_accumulator_value", 0, -1e-9 },
    { "Adafactor", "beta2_decay", 0, 1e-9 },
    { "Adafactor", "eps2", 0, -1e-9 },
    { "Adafactor", "d", 1, 0.9999 },
    { "Adadelta", "rho", 0, -1e-9 },
    { "Adadelta", "rho", 1, 1.0001 },
    { "RMSprop", "alpha", 0, -1e-9 },
    { "Rprop", "eta_minus", 0.0001, 0 },
    { "Rprop", "eta_minus", 0.9999, 1 },
    { "Rprop", "eta_plus", 1.0001, 1 },
    { "Rprop", "step_min", 50, 50.0001 },
    { "Rprop", "step_max", 1e-6, 9e-7 },
};
enum { EDGES = sizeof edges / sizeof *edges };

static const OpField *option_of(const OptimKind *kind, const char *name)
{
    for (const OpField *f = kind->fields; f->name; f++)
        if (strcmp(f->name, name) == 0 && f->type == OP_DOUBLE) return f;
    return NULL;
}

static Optimizer *with(const OptimKind *kind, const OpField *option, double value)
{
    static Tensor *p;
    p = tensor_requires_grad_(tensor_ones(SHAPE(2, 1), TENSOR_F32), true);
    _Alignas(16) char args[OPTIM_OPTIONS];
    memcpy(args, kind->defaults, kind->args);
    *(TensorList *)(void *)args = TENSORS(p);
    const OpField *lr = option_of(kind, "lr");
    if (lr) *(double *)(void *)(args + lr->offset) = 0.01;
    *(double *)(void *)(args + option->offset) = value;
    return optim_new(kind, args);
}

static void test_every_option(void **state)
{
    (void)state;
    int tried[EDGES] = { 0 };
    for (int k = 0; k < optim_kind_count(); k++)
        for (int e = 0; e < EDGES; e++) {
            const OptimKind *kind = optim_kind_at(k);
            const OpField *option = option_of(kind, edges[e].option);
            if (!option || (edges[e].kind && strcmp(edges[e].kind, kind->name) != 0)) continue;
            Optimizer *good = with(kind, option, edges[e].taken);
            if (!good) fail_msg("%s, %s = %g: %s", kind->name, option->name, edges[e].taken, tensor_error());
            optim_free(good);
            const double bad[] = { edges[e].refused, NAN };
            for (int i = 0; i < 2; i++) {
                if (with(kind, option, bad[i]))
                    fail_msg("%s takes %s = %g", kind->name, option->name, bad[i]);
                assert_status_error(-1, TENSOR_EVALUE);
            }
            tried[e]++;
        }
    for (int e = 0; e < EDGES; e++)
        if (!tried[e]) fail_msg("no optimizer has %s", edges[e].option);
}

/* p after three steps. */
static bool steps(const OptimKind *kind, const OpField *option, double value, double p[2])
{
    Optimizer *opt = with(kind, option, value);
    if (!opt) return tensor_error_clear(), false;
    Tensor *x = opt->group[0].param[0].tensor;
    TENSOR_NO_GRAD { tensor_copy_(x, tensor_from_data((float[]){ 2, INFINITY }, SHAPE(2, 1), TENSOR_F32)); }
    for (int t = 1; t <= 3; t++) {
        tensor_set_grad(x, tensor_from_data((float[]){ 0.5f * (float)t, 1 }, SHAPE(2, 1), TENSOR_F32));
        if (optim_step(opt)) return optim_free(opt), tensor_error_clear(), false;
    }
    for (int i = 0; i < 2; i++) p[i] = tensor_get(x, SHAPE(i, 0));
    optim_free(opt);
    return true;
}

/* 0 and 1 are numbers as others: near them the steps are nearly the same.  No decay, no NaN of 0 times
 * infinity. */
static void test_steps_are_continuous(void **state)
{
    (void)state;
    int compared = 0;
    for (int k = 0; k < optim_kind_count(); k++) {
        const OptimKind *kind = optim_kind_at(k);
        for (const OpField *f = kind->fields; f->name && kind->rule; f++) /* those that see norms jump */
            for (int way = 0; way < 4 && f->type == OP_DOUBLE; way++) {
                const double value = way / 2, beside = value + (way & 1 ? 1e-7 : -1e-7);
                double at[2], near[2];
                if (!steps(kind, f, value, at) || !steps(kind, f, beside, near)) continue;
                compared++;
                const bool by_eps = fabs(at[0]) > 1e3; /* alpha = 1: eps alone divides */
                if (!by_eps && !(fabs(at[0] - near[0]) < 5e-3))
                    fail_msg("%s: %g where %s = %.9g, %g where it is %.9g", kind->name, at[0], f->name, value,
                             near[0], beside);
                if (strcmp(f->name, "weight_decay") == 0 && value == 0) assert_true(isinf(at[1]));
            }
    }
    assert_true(compared > optim_kind_count());
}

static int nothing(const void *options, OptimParam *p, Tensor *grad)
{
    return (void)options, (void)p, (void)grad, 0;
}

static int fails(const void *options, OptimParam *p, Tensor *grad)
{
    return tensor_fill_(p->tensor, 5), (void)options, (void)grad, -1;
}

static void test_a_step_that_says_nothing(void **state)
{
    (void)state;
    static const struct {
        TensorList params;
    } defaults;
    static const OpField fields[] = { { 0 } };
    static const OptimKind kind = { .name = "Fails",
                                    .function = "optim_fails",
                                    .args = sizeof defaults,
                                    .defaults = &defaults,
                                    .fields = fields,
                                    .step = fails };
    Tensor *p = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true);
    TensorList params = TENSORS(p);
    Optimizer *opt = optim_new(&kind, &params);
    assert_int_equal(tensor_backward(tensor_sum(p)), 0);
    assert_int_equal(optim_step(opt), -1);
    assert_non_null(tensor_error());
    assert_non_null(strstr(tensor_error(), "optim_fails: the step failed without saying why"));
    assert_status_error(-1, TENSOR_EUSER);
    assert_true(tensor_item(tensor_amax(p)) == 1);
    optim_free(opt);
}

/* A kind of the user's may have no lr: then nobody sets it. */
static void test_a_kind_without_lr(void **state)
{
    (void)state;
    static const struct {
        TensorList params;
    } defaults;
    static const OpField fields[] = { { 0 } };
    static const OptimKind kind = { .name = "None",
                                    .function = "optim_none",
                                    .args = sizeof defaults,
                                    .defaults = &defaults,
                                    .fields = fields,
                                    .step = nothing };
    Tensor *p = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true);
    TensorList params = TENSORS(p);
    Optimizer *opt = optim_new(&kind, &params);
    assert_non_null(opt);
    assert_null(optim_step_lr(opt, .step_size = 2));
    assert_non_null(strstr(tensor_error(), "optim_step_lr: optim_none has no lr"));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_int_equal(optim_set_lr(opt, 1), -1);
    assert_non_null(strstr(tensor_error(), "optim_set_lr: optim_none has no lr"));
    assert_status_error(-1, TENSOR_EVALUE);
    tensor_set_grad(p, tensor_ones_like(p));
    assert_int_equal(optim_step(opt), 0);
    TensorDict dict = optim_state_dict(opt); /* it has no states either */
    assert_int_equal(dict.count, 1);
    assert_string_equal(dict.item[0].name, "state.0.step");
    assert_int_equal(optim_load_state_dict(opt, dict), 0);
    optim_free(opt);
}

/* A count of steps that is none would be any int64; options out of range would fail at the next step. */
static void test_steps_of_a_dict(void **state)
{
    (void)state;
    Tensor *p = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true);
    Optimizer *opt = optim_adam(TENSORS(p));
    tensor_set_grad(p, tensor_ones_like(p));
    assert_int_equal(optim_step(opt), 0);
    TensorDict dict = nn_dict_clone(optim_state_dict(opt));
    const double bad[] = { NAN, INFINITY, -1 };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nn_dict_set(&dict, "state.0.step", tensor_scalar(bad[i], TENSOR_F64)), 0);
        assert_status_error(optim_load_state_dict(opt, dict), TENSOR_EVALUE);
    }
    assert_int_equal(nn_dict_set(&dict, "state.0.step", tensor_scalar(5, TENSOR_F64)), 0);
    assert_int_equal(nn_dict_set(&dict, "param_groups.0.lr", tensor_scalar(-1, TENSOR_F64)), 0);
    assert_status_error(optim_load_state_dict(opt, dict), TENSOR_EVALUE);
    assert_true(tensor_item(nn_dict_get(optim_state_dict(opt), "state.0.step")) == 1);
    assert_true(optim_lr(opt) == 1e-3);
    nn_dict_free(dict);
    optim_free(opt);
}

/* 25 parameters in 12 groups, of which every third was stepped; another optimizer goes on from the dict. */
static void test_numbers_of_two_digits(void **state)
{
    (void)state;
    enum { N = 25, FIRST = 14 };
    Tensor *p[2][N];
    Optimizer *opt[2];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < N; i++) p[k][i] = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true);
        opt[k] = optim_adam(TENSOR_LIST(p[k], FIRST));
        for (int i = FIRST; i < N; i++)
            assert_int_equal(optim_add_group(opt[k], TENSORS(p[k][i])), i - FIRST + 1);
    }
    for (int i = 0; i < N; i += 3) tensor_set_grad(p[0][i], tensor_full(SHAPE(2), i + 1., TENSOR_F64));
    assert_int_equal(optim_step(opt[0]), 0);
    optim_options(opt[0], 11, OptimAdamArgs)->lr = 0.25;
    assert_int_equal(optim_load_state_dict(opt[1], optim_state_dict(opt[0])), 0);
    for (int i = 0; i < N; i++) {
        tensor_copy_(tensor_detach(p[1][i]), p[0][i]);
        for (int k = 0; k < 2; k++) tensor_set_grad(p[k][i], tensor_full(SHAPE(2), 0.5 - i, TENSOR_F64));
    }
    assert_int_equal(optim_step(opt[0]) || optim_step(opt[1]), 0);
    for (int i = 0; i < N; i++) assert_true(tensor_equal(p[0][i], p[1][i]));
    optim_free(opt[0]), optim_free(opt[1]);
}

/* One error has all that does not fit, and nothing changes; parameters count from 0, as in the dict. */
static void test_all_that_does_not_fit(void **state)
{
    (void)state;
    Tensor *p = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true),
           *q = tensor_requires_grad_(tensor_ones(SHAPE(2, 3), TENSOR_F32), true);
    Optimizer *opt = optim_adam(TENSORS(p, q)), *sgd = optim_sgd(TENSORS(p, q), 0.1, .momentum = 0.9);
    tensor_set_grad(p, tensor_ones_like(p)), tensor_set_grad(q, tensor_ones_like(q));
    assert_int_equal(optim_step(opt), 0);
    TensorDict own = optim_state_dict(opt), dict = { 0 };
    for (int i = 0; i < own.count; i++)
        if (strcmp(own.item[i].name, "state.0.exp_avg") && strcmp(own.item[i].name, "param_groups.0.lr"))
            nn_dict_set(&dict, own.item[i].name, own.item[i].tensor);
    nn_dict_set(&dict, "state.1.exp_avg", tensor_ones(SHAPE(3), TENSOR_F32));
    nn_dict_set(&dict, "param_groups.0.betas", tensor_ones(SHAPE(3), TENSOR_F64));
    nn_dict_set(&dict, "state.2.step", tensor_scalar(1, TENSOR_F64));
    nn_dict_set(&dict, "other", tensor_scalar(1, TENSOR_F64));
    assert_int_equal(optim_load_state_dict(opt, dict), -1);
    assert_non_null(strstr(tensor_error(), "Adam; missing: state.0.exp_avg, param_groups.0.lr; unexpected: "
                                           "state.2.step, other; shapes: state.1.exp_avg is [2, 3], given "
                                           "[3], param_groups.0.betas is [2], given [3]"));
    assert_status_error(-1, TENSOR_ESHAPE);
    assert_true(optim_lr(opt) == 1e-3 &&
                tensor_item(nn_dict_get(optim_state_dict(opt), "state.0.step")) == 1);
    assert_int_equal(optim_load_state_dict(sgd, optim_state_dict(opt)), -1);
    assert_non_null(
        strstr(tensor_error(), "SGD; missing: param_groups.0.momentum, param_groups.0.dampening"));
    assert_non_null(strstr(tensor_error(), "unexpected: state.0.exp_avg, state.0.exp_avg_sq"));
    assert_status_error(-1, TENSOR_EVALUE);
    char name[4000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    for (int i = 0; i < 9; i++) name[0] = (char)('a' + i), nn_dict_set(&dict, name, p);
    assert_int_equal(optim_load_state_dict(opt, dict), -1);
    assert_non_null(strstr(tensor_error(), "nnn, and 5 more; shapes: "));
    assert_status_error(-1, TENSOR_ESHAPE);
    assert_null(optim_adam(TENSORS(p, q, p)));
    assert_non_null(strstr(tensor_error(), "parameter 2 is given twice"));
    assert_status_error(-1, TENSOR_EVALUE);
    nn_dict_free(dict);
    optim_free(opt), optim_free(sgd);
}

/* Adam with its decay apart from the gradient is AdamW, to the bit; a dict from before the option loads, one
 * of Adam's does not make an AdamW of another kind. */
static void test_decoupled_adam(void **state)
{
    (void)state;
    Tensor *p = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F64), true),
           *q = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F64), true);
    Optimizer *adam = optim_adam(TENSORS(p), .weight_decay = 0.1, .decoupled_weight_decay = true),
              *w = optim_adamw(TENSORS(q), .weight_decay = 0.1);
    for (int t = 0; t < 3; t++) {
        tensor_set_grad(p, tensor_full(SHAPE(3), 1. + t, TENSOR_F64));
        tensor_set_grad(q, tensor_full(SHAPE(3), 1. + t, TENSOR_F64));
        assert_int_equal(optim_step(adam) || optim_step(w), 0);
        assert_true(tensor_equal(p, q));
    }
    assert_null(optim_adamw(TENSORS(q), .decoupled_weight_decay = false));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_int_equal(optim_load_state_dict(adam, optim_state_dict(w)), 0); /* it has no such entry */
    assert_true(optim_options(adam, 0, OptimAdamArgs)->decoupled_weight_decay);
    assert_int_equal(optim_load_state_dict(w, optim_state_dict(adam)), 0);
    optim_options(adam, 0, OptimAdamArgs)->decoupled_weight_decay = false;
    assert_status_error(optim_load_state_dict(w, optim_state_dict(adam)), TENSOR_EVALUE);
    optim_free(adam), optim_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_option),
                                        cmocka_unit_test(test_steps_are_continuous),
                                        cmocka_unit_test(test_a_kind_without_lr),
                                        cmocka_unit_test(test_steps_of_a_dict),
                                        cmocka_unit_test(test_a_step_that_says_nothing),
                                        cmocka_unit_test(test_numbers_of_two_digits),
                                        cmocka_unit_test(test_all_that_does_not_fit),
                                        cmocka_unit_test(test_decoupled_adam) };
    TensorScope scope = tensor_scope_open();
    int failed = cmocka_run_group_tests_name("optimizers at their edges", tests, NULL, NULL);
    tensor_scope_close(scope);
    return failed;
}
