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
    p = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true);
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_option),
                                        cmocka_unit_test(test_steps_of_a_dict) };
    TensorScope scope = tensor_scope_open();
    int failed = cmocka_run_group_tests_name("optimizers at their edges", tests, NULL, NULL);
    tensor_scope_close(scope);
    return failed;
}
