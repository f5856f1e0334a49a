/* test_groups.c - groups picked by a function, parameters of several nets, f32 copies of halves. */
#include <math.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>

static Tensor *parameter(TensorShape shape, TensorDtype dtype, double first)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    Tensor *x = tensor_reshape(tensor_linspace(first, first + 1, n, TENSOR_F64), shape);
    return tensor_requires_grad_(tensor_to(x, dtype), true);
}

static void set_grad(Tensor *p, int t)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to(tensor_detach(p), TENSOR_F64);
    tensor_set_grad(p, tensor_to(tensor_sin(tensor_add_scalar(x, 0.7 * t)), tensor_dtype(p)));
    tensor_scope_close(scope);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void decay_for_matrices(void **state)
{
    (void)state;
    Module *net = nn_sequential(nn_linear(3, 4), nn_layer_norm(4), nn_linear(4, 2));
    Optimizer *opt = optim_adamw(nn_parameters(net), .weight_decay = 0.1);
    optim_options(opt, optim_split_group(opt, 0, optim_is_vector, NULL), OptimAdamArgs)->weight_decay = 0;
    assert_int_equal(opt->groups, 2);
    assert_int_equal(opt->group[0].count, 2);
    assert_int_equal(opt->group[1].count, 4);
    for (int i = 0; i < 2; i++) assert_int_equal(tensor_ndim(opt->group[0].param[i].tensor), 2);
    assert_true(optim_options(opt, 0, OptimAdamArgs)->weight_decay == 0.1);
    assert_true(optim_options(opt, 1, OptimAdamArgs)->weight_decay == 0);
    Tensor *w = nn_get(net, "0.weight"), *b = nn_get(net, "0.bias");
    const double first_w = tensor_get(w, DIMS(0, 0)), first_b = tensor_get(b, DIMS(0));
    tensor_set_grad(w, tensor_zeros_like(w)), tensor_set_grad(b, tensor_zeros_like(b));
    assert_int_equal(optim_step(opt), 0);
    assert_true(fabs(tensor_get(w, DIMS(0, 0)) - first_w * (1 - 1e-4)) < 1e-7 &&
                tensor_get(b, DIMS(0)) == first_b);
    optim_free(opt), nn_free(net);
}

static bool is_even(const Tensor *p, void *ctx)
{
    (void)p;
    return (*(int *)ctx)++ % 2 == 0;
}

/* What has been stepped keeps its state in the new group. */
static void states_go_along(void **state)
{
    (void)state;
    Tensor *p[2][5];
    Optimizer *opt[2];
    int at = 0;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 5; i++) p[k][i] = parameter(SHAPE(3), TENSOR_F64, i);
        opt[k] = optim_adam(TENSOR_LIST(p[k], 5), 0.1);
    }
    for (int t = 0; t < 6; t++)
        for (int k = 0; k < 2; k++) {
            if (t == 3 && k == 1) assert_int_equal(optim_split_group(opt[1], 0, is_even, &at), 1);
            for (int i = 0; i < 5; i++) set_grad(p[k][i], t);
            assert_int_equal(optim_step(opt[k]), 0);
        }
    for (int i = 0; i < 5; i++) assert_true(tensor_equal(p[0][i], p[1][i]));
    assert_ptr_equal(opt[1]->group[1].param[1].tensor, p[1][2]);
    assert_int_equal(opt[1]->group[0].count, 2);
    optim_free(opt[0]), optim_free(opt[1]);
}

static bool all(const Tensor *p, void *ctx)
{
    (void)p;
    return ctx == NULL;
}

static void none_and_all(void **state)
{
    (void)state;
    Tensor *p = parameter(SHAPE(3), TENSOR_F32, 0);
    Optimizer *opt = optim_sgd(TENSORS(p), 0.5);
    assert_int_equal(optim_split_group(opt, 0, all, opt), 1); /* none */
    assert_int_equal(opt->group[1].count, 0);
    assert_int_equal(optim_split_group(opt, 0, all, NULL), 2); /* all */
    assert_int_equal(opt->group[0].count, 0);
    optim_options(opt, 2, OptimSgdArgs)->lr = 1;
    tensor_set_grad(p, tensor_ones_like(p));
    assert_int_equal(optim_step(opt), 0);
    assert_true(tensor_get(p, DIMS(0)) == -1);
    TensorDict saved = nn_dict_clone(optim_state_dict(opt));
    assert_int_equal(optim_load_state_dict(opt, saved), 0);
    nn_dict_free(saved);
    assert_status_error(optim_split_group(opt, 3, all, NULL), TENSOR_EINDEX);
    assert_status_error(optim_split_group(opt, 0, NULL, NULL), TENSOR_ENULL);
    assert_status_error(optim_split_group(NULL, 0, all, NULL), TENSOR_ENULL);
    Optimizer *lbfgs = optim_lbfgs(TENSORS(p));
    assert_status_error(optim_split_group(lbfgs, 0, all, NULL), TENSOR_EVALUE);
    optim_free(opt), optim_free(lbfgs);
}

static void several_nets(void **state)
{
    (void)state;
    Module *a = nn_linear(2, 2), *b = nn_linear(2, 1);
    Optimizer *opt = optim_sgd(nn_parameters(a), 0.1, .maximize = true);
    assert_int_equal(optim_add_group(opt, nn_parameters(b)), 1);
    assert_status_error(optim_add_group(opt, nn_parameters(a)), TENSOR_EVALUE); /* twice */
    Tensor *x = tensor_ones(SHAPE(1, 2), TENSOR_F32), *before = tensor_sum(nn_forward(b, nn_forward(a, x)));
    tensor_backward(before);
    assert_int_equal(optim_step(opt), 0);
    assert_true(tensor_item(tensor_sum(nn_forward(b, nn_forward(a, x)))) > tensor_item(before));
    optim_free(opt), nn_free(a), nn_free(b);
}

/* ---- f32 copies of halves -------------------------------------------------------------------- */

typedef struct Halves {
    Tensor *p, *q;
    Optimizer *opt;
} Halves;

static Halves make(TensorDtype dtype, int kind, bool master)
{
    Halves h = { parameter(SHAPE(3, 4), dtype, 0.5), parameter(SHAPE(5), dtype, -1), NULL };
    const TensorList list = TENSORS(h.p, h.q);
    h.opt = kind == 0   ? optim_adamw(list, 1e-3)
            : kind == 1 ? optim_sgd(list, 1e-3, .momentum = 0.9)
                        : optim_adafactor(list, 1e-3);
    if (master) assert_int_equal(optim_set_master_weights(h.opt, true), 0);
    return h;
}

static void step(const Halves *h, int t)
{
    set_grad(h->p, t);
    if (t % 3) set_grad(h->q, t);
    else tensor_set_grad(h->q, NULL);
    assert_int_equal(optim_step(h->opt), 0);
}

/* The halves are an f32 run with the same gradients, rounded; without copies small steps are lost. */
static void masters_as_f32(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_BF16, TENSOR_F16 };
    for (int d = 0; d < 2; d++)
        for (int kind = 0; kind < 3; kind++) {
            Halves h = make(dtypes[d], kind, true), lost = make(dtypes[d], kind, false);
            Halves wide = make(TENSOR_F32, kind, false);
            TENSOR_NO_GRAD { tensor_copy_(wide.p, h.p), tensor_copy_(wide.q, h.q); }
            for (int t = 1; t <= 50; t++) {
                step(&h, t), step(&lost, t);
                tensor_set_grad(wide.p, tensor_to(tensor_grad(h.p), TENSOR_F32));
                tensor_set_grad(wide.q, tensor_grad(h.q) ? tensor_to(tensor_grad(h.q), TENSOR_F32) : NULL);
                assert_int_equal(optim_step(wide.opt), 0);
            }
            assert_true(tensor_equal(h.opt->group[0].param[0].master, tensor_detach(wide.p)));
            assert_true(tensor_equal(h.p, tensor_to(wide.p, dtypes[d])));
            assert_true(tensor_equal(h.q, tensor_to(wide.q, dtypes[d])));
            assert_false(tensor_equal(h.p, lost.p));
            assert_int_equal(tensor_dtype(h.opt->group[0].param[0].tensor), dtypes[d]);
            assert_int_equal(
                tensor_dtype(h.opt->group[0].param[0].state[0] ? h.opt->group[0].param[0].state[0] : wide.p),
                TENSOR_F32);
            optim_free(h.opt), optim_free(lost.opt), optim_free(wide.opt);
        }
}

/* Resumed in either order of net and optimizer it has the same bits. */
static void masters_saved(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        Halves a = make(TENSOR_BF16, 0, true), b = make(TENSOR_BF16, 0, true);
        for (int t = 1; t <= 7; t++) step(&a, t);
        step(&b, 1);
        TensorDict saved = nn_dict_clone(optim_state_dict(a.opt));
        Tensor *master = nn_dict_get(saved, "state.1.master_param");
        assert_int_equal(tensor_dtype(master), TENSOR_F32);
        if (order) assert_int_equal(optim_load_state_dict(b.opt, saved), 0);
        TENSOR_NO_GRAD { tensor_copy_(b.p, a.p), tensor_copy_(b.q, a.q); }
        if (!order) assert_int_equal(optim_load_state_dict(b.opt, saved), 0);
        for (int t = 8; t <= 30; t++) step(&a, t), step(&b, t);
        assert_true(tensor_equal(a.opt->group[0].param[0].master, b.opt->group[0].param[0].master));
        assert_true(tensor_equal(a.p, b.p) && tensor_equal(a.q, b.q));
        Halves without = make(TENSOR_BF16, 0, false);
        assert_status_error(optim_load_state_dict(without.opt, saved), TENSOR_EVALUE);
        step(&without, 1), step(&without, 2);
        assert_int_equal(optim_load_state_dict(b.opt, optim_state_dict(without.opt)), 0);
        assert_null(b.opt->group[0].param[0].master);
        nn_dict_free(saved);
        optim_free(a.opt), optim_free(b.opt), optim_free(without.opt);
    }
}

/* Values that others write into the parameter are where the next step begins. */
static void masters_follow(void **state)
{
    (void)state;
    Halves h = make(TENSOR_BF16, 1, true);
    step(&h, 1);
    TENSOR_NO_GRAD { tensor_fill_(h.p, 8); }
    tensor_set_grad(h.p, tensor_zeros_like(h.p)), tensor_set_grad(h.q, NULL);
    tensor_zero_(h.opt->group[0].param[0].state[0]);
    assert_int_equal(optim_step(h.opt), 0);
    assert_true(tensor_get(h.p, DIMS(0, 0)) == 8);
    assert_int_equal(optim_set_master_weights(h.opt, false), 0);
    assert_null(h.opt->group[0].param[0].master);
    step(&h, 2);
    assert_int_equal(tensor_dtype(h.opt->group[0].param[0].state[0]), TENSOR_BF16);
    Optimizer *lbfgs = optim_lbfgs(TENSORS(h.p));
    assert_status_error(optim_set_master_weights(lbfgs, true), TENSOR_EVALUE);
    optim_free(h.opt), optim_free(lbfgs);
}

/* Other memory, which has been written as often: its version alone does not tell it from what was there. */
static void masters_follow_other_memory(void **state)
{
    (void)state;
    Halves h = make(TENSOR_BF16, 1, true);
    step(&h, 1), step(&h, 2);
    Tensor *other = tensor_zeros_like(tensor_detach(h.p));
    while (tensor_version(other) < tensor_version(h.p)) tensor_fill_(other, 8);
    assert_int_equal(tensor_set_data(h.p, other), 0);
    tensor_set_grad(h.p, tensor_zeros_like(h.p)), tensor_set_grad(h.q, NULL);
    tensor_zero_(h.opt->group[0].param[0].state[0]);
    assert_int_equal(optim_step(h.opt), 0);
    assert_true(tensor_get(h.p, DIMS(0, 0)) == 8);
    tensor_set_grad(h.p, NULL);
    assert_int_equal(tensor_set_data(h.p, tensor_to(tensor_detach(h.p), TENSOR_F32)), 0);
    tensor_set_grad(h.p, tensor_zeros_like(h.p));
    assert_int_equal(optim_step(h.opt), 0);
    assert_null(h.opt->group[0].param[0].master); /* it is no half any more */
    optim_free(h.opt);
}

static void masters_without_memory(void **state)
{
    (void)state;
    for (int before = 0; before < 3; before++)
        for (int kind = 0; kind < 3; kind += 2) {
            Halves right = make(TENSOR_BF16, kind, true);
            for (int t = 1; t <= before + 1; t++) step(&right, t);
            for (int n = 1, failed = 1; failed; n++) {
                TensorScope scope = tensor_scope_open();
                Halves h = make(TENSOR_BF16, kind, true);
                for (int t = 1; t <= before; t++) step(&h, t);
                Tensor *p = tensor_clone(tensor_detach(h.p));
                set_grad(h.p, before + 1);
                if ((before + 1) % 3) set_grad(h.q, before + 1);
                else tensor_set_grad(h.q, NULL);
                tensor_debug_fail_allocation(n, false);
                const int status = optim_step(h.opt);
                failed = tensor_debug_allocation_failed();
                tensor_debug_fail_allocation(0, false);
                assert_true(status == 0 || failed);
                if (status) {
                    assert_status_error(status, TENSOR_ENOMEM);
                    assert_true(tensor_equal(h.p, p) && h.opt->group[0].param[0].step == before);
                    assert_int_equal(optim_step(h.opt), 0);
                }
                assert_true(tensor_equal(h.p, right.p) && tensor_equal(h.q, right.q));
                optim_free(h.opt);
                tensor_scope_close(scope);
            }
            optim_free(right.opt);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(decay_for_matrices),     SCOPED(states_go_along),
        SCOPED(none_and_all),           SCOPED(several_nets),
        SCOPED(masters_as_f32),         SCOPED(masters_saved),
        SCOPED(masters_follow),         SCOPED(masters_follow_other_memory),
        SCOPED(masters_without_memory),
    };
    return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
