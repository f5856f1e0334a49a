/* test_grad_scaler.c - loss scaling: PyTorch's runs from oracle/kinds/grad_scaler.golden
 * (oracle/grad_scaler.py says of what), state, refusals, failing memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "kinds.h"

typedef struct Run {
    Tensor *p;
    Optimizer *opt;
    GradScaler *scaler;
    TensorScope scope;
} Run;

static const OpField fields[] = {
    OP_OPTION(OptimGradScalerArgs, init_scale, growth_factor, backoff_factor, growth_interval), { 0 }
};

static Run begin(const char *text)
{
    KindRoom room;
    OptimGradScalerArgs args;
    kind_options(fields, &optim_grad_scaler_defaults, sizeof args, text, &args, &room);
    args.enabled = optim_grad_scaler_defaults.enabled;
    Run r = { .scope = tensor_scope_open() };
    r.p = tensor_requires_grad_(tensor_from_data((float[]){ 1, 2, 3 }, SHAPE(3), TENSOR_F32), true);
    r.opt = optim_sgd(TENSORS(r.p), 0.01, .momentum = 0.9);
    r.scaler = optim_grad_scaler_args(args);
    assert_non_null(r.scaler);
    return r;
}

static void end(Run *r)
{
    optim_scaler_free(r->scaler), optim_free(r->opt);
    tensor_scope_close(r->scope);
}

static int backward(const Run *r, int t, bool bad)
{
    float c[3];
    for (int i = 0; i < 3; i++) c[i] = sinf((float)(t + i));
    if (bad) c[1] = INFINITY;
    optim_zero_grad(r->opt);
    Tensor *loss = tensor_sum(tensor_mul(r->p, tensor_from_data(c, SHAPE(3), TENSOR_F32)));
    return tensor_backward(optim_scaler_scale(r->scaler, loss));
}

static void step(const Run *r, int t)
{
    TensorScope scope = tensor_scope_open();
    assert_int_equal(backward(r, t, t == 3 || t == 4 || t == 11 || t == 30), 0);
    assert_int_equal(optim_scaler_step(r->scaler, r->opt), 0);
    assert_int_equal(optim_scaler_update(r->scaler), 0);
    tensor_scope_close(scope);
}

static double state(const Run *r, const char *name)
{
    return tensor_item(nn_dict_get(optim_scaler_state_dict(r->scaler), name));
}

static void as_pytorch(void **unused)
{
    (void)unused;
    KindFile f = kind_open("test/oracle/kinds/grad_scaler.golden");
    const char *rest;
    Run r = { 0 };
    int runs = 0;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        if (strcmp(word, "scaler") == 0) {
            if (runs++) end(&r);
            r = begin(rest);
        } else if (strcmp(word, "step") == 0) {
            int64_t n;
            double *want = kind_numbers(rest, &n);
            assert_int_equal(n, 6);
            step(&r, (int)want[0]);
            assert_true(fabs(state(&r, "scale") / want[1] - 1) < 1e-6 &&
                        state(&r, "_growth_tracker") == want[2]);
            for (int i = 0; i < 3; i++) assert_true(fabs(tensor_get(r.p, DIMS(i)) - want[3 + i]) < 1e-6);
            free(want);
        }
    }
    assert_int_equal(runs, 3);
    end(&r);
    kind_close(&f);
}

/* Clipping between unscale_ and step sees the gradients of the loss itself; two optimizers, one of which
 * finds an infinity: that one is skipped, and the scale falls. */
static void two_optimizers(void **unused)
{
    (void)unused;
    Run r = begin("init_scale=512");
    Tensor *q = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true);
    Optimizer *other = optim_sgd(TENSORS(q), 1);
    assert_int_equal(backward(&r, 1, true), 0);
    tensor_set_grad(q, tensor_full(SHAPE(2), 512 * 3, TENSOR_F64));
    assert_int_equal(optim_scaler_unscale_(r.scaler, other), 0);
    assert_true(tensor_get(tensor_grad(q), DIMS(0)) == 3);
    assert_int_equal(optim_scaler_step(r.scaler, r.opt), 0);
    assert_int_equal(optim_scaler_step(r.scaler, other), 0);
    assert_true(tensor_get(q, DIMS(0)) == -2 && tensor_get(r.p, DIMS(0)) == 1);
    assert_int_equal(r.opt->group[0].param[0].step, 0);
    assert_int_equal(optim_scaler_update(r.scaler), 0);
    assert_true(optim_scaler_get_scale(r.scaler) == 256);
    optim_free(other);
    end(&r);
}

static void order_of_calls(void **unused)
{
    (void)unused;
    Run r = begin("init_scale=4");
    assert_status_error(optim_scaler_update(r.scaler), TENSOR_EVALUE);
    assert_status_error(optim_scaler_step(r.scaler, r.opt), TENSOR_EVALUE); /* no gradients */
    assert_int_equal(backward(&r, 1, false), 0);
    assert_int_equal(optim_scaler_unscale_(r.scaler, r.opt), 0);
    assert_status_error(optim_scaler_unscale_(r.scaler, r.opt), TENSOR_EVALUE);
    assert_int_equal(optim_scaler_step(r.scaler, r.opt), 0);
    assert_status_error(optim_scaler_step(r.scaler, r.opt), TENSOR_EVALUE);
    assert_status_error(optim_scaler_unscale_(r.scaler, r.opt), TENSOR_EVALUE);
    assert_int_equal(optim_scaler_update(r.scaler), 0);
    assert_int_equal(optim_scaler_set_scale(r.scaler, 2), 0);
    assert_true(optim_scaler_get_scale(r.scaler) == 2);
    Tensor *half = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F16), true);
    Optimizer *halves = optim_sgd(TENSORS(half));
    tensor_set_grad(half, tensor_ones_like(half));
    assert_status_error(optim_scaler_unscale_(r.scaler, halves), TENSOR_EDTYPE);
    optim_free(halves);
    end(&r);
}

static void refusals(void **unused)
{
    (void)unused;
    assert_null(optim_grad_scaler(.growth_factor = 1));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_null(optim_grad_scaler(.backoff_factor = 1));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_null(optim_grad_scaler(.growth_interval = 0));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_null(optim_grad_scaler(.init_scale = (double)NAN));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_status_error(optim_scaler_update(NULL), TENSOR_ENULL);
    GradScaler *s = optim_grad_scaler();
    assert_null(optim_scaler_scale(s, NULL));
    assert_status_error(-1, TENSOR_ENULL);
    assert_status_error(optim_scaler_step(s, NULL), TENSOR_ENULL);
    assert_status_error(optim_scaler_set_scale(s, 0), TENSOR_EVALUE);
    assert_true(optim_scaler_get_scale(s) == 65536);
    optim_scaler_free(s), optim_scaler_free(NULL);
}

static void disabled(void **unused)
{
    (void)unused;
    Run r = begin("");
    optim_scaler_free(r.scaler);
    r.scaler = optim_grad_scaler(.enabled = false);
    Tensor *loss = tensor_sum(r.p);
    assert_ptr_equal(optim_scaler_scale(r.scaler, loss), loss);
    assert_int_equal(backward(&r, 1, true), 0);
    assert_int_equal(optim_scaler_unscale_(r.scaler, r.opt), 0);
    assert_int_equal(optim_scaler_step(r.scaler, r.opt), 0);
    assert_int_equal(optim_scaler_update(r.scaler), 0);
    assert_true(isinf(tensor_get(r.p, DIMS(1))) && optim_scaler_get_scale(r.scaler) == 1);
    assert_int_equal(optim_scaler_state_dict(r.scaler).count, 0);
    assert_int_equal(optim_scaler_load_state_dict(r.scaler, (TensorDict){ 0 }), 0);
    end(&r);
}

static void save_and_load(void **unused)
{
    (void)unused;
    for (int used = 0; used < 2; used++) {
        Run a = begin("init_scale=1024 growth_interval=5"), b = begin("");
        for (int t = 1; t <= 8; t++) step(&a, t);
        if (used) step(&b, 3);
        TENSOR_NO_GRAD { tensor_copy_(b.p, a.p); }
        assert_int_equal(optim_load_state_dict(b.opt, optim_state_dict(a.opt)), 0);
        TensorDict saved = nn_dict_clone(optim_scaler_state_dict(a.scaler));
        assert_int_equal(saved.count, 5);
        assert_int_equal(optim_scaler_load_state_dict(b.scaler, saved), 0);
        for (int t = 9; t <= 20; t++) step(&a, t), step(&b, t);
        assert_true(tensor_equal(a.p, b.p));
        assert_true(optim_scaler_get_scale(a.scaler) == optim_scaler_get_scale(b.scaler));
        const double scale = optim_scaler_get_scale(b.scaler);
        assert_status_error(optim_scaler_load_state_dict(b.scaler, (TensorDict){ 0 }), TENSOR_EVALUE);
        nn_dict_set(&saved, "backoff_factor", tensor_scalar(2, TENSOR_F64));
        assert_status_error(optim_scaler_load_state_dict(b.scaler, saved), TENSOR_EVALUE);
        nn_dict_set(&saved, "backoff_factor", tensor_scalar(0.5, TENSOR_F64));
        nn_dict_set(&saved, "step", tensor_scalar(1, TENSOR_F64));
        assert_status_error(optim_scaler_load_state_dict(b.scaler, saved), TENSOR_EVALUE);
        assert_true(optim_scaler_get_scale(b.scaler) == scale);
        nn_dict_free(saved);
        end(&b), end(&a);
    }
}

/* Each request for memory fails once: the call may be made again, and the run goes on as if none had. */
static void failing_memory(void **unused)
{
    (void)unused;
    Run want = begin("init_scale=64 growth_interval=1");
    step(&want, 1), step(&want, 2);
    for (int n = 1, failed = 1; failed; n++) {
        Run r = begin("init_scale=64 growth_interval=1");
        step(&r, 1);
        assert_int_equal(backward(&r, 2, false), 0);
        failed = 0;
        tensor_debug_fail_allocation(n, false);
        int (*const calls[])(GradScaler *, Optimizer *) = { optim_scaler_unscale_, optim_scaler_step };
        for (int k = 0; k < 3; k++)
            for (int again = 0; again < 2; again++) {
                const int status = k < 2 ? calls[k](r.scaler, r.opt) : optim_scaler_update(r.scaler);
                if (!status) break;
                assert_status_error(status, TENSOR_ENOMEM);
                failed = 1;
                assert_int_equal(again, 0);
            }
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        assert_true(tensor_equal(r.p, want.p));
        assert_true(optim_scaler_get_scale(r.scaler) == optim_scaler_get_scale(want.scaler));
        end(&r);
    }
    end(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(as_pytorch), TEST(two_optimizers), TEST(order_of_calls), TEST(refusals),
        TEST(disabled),   TEST(save_and_load),  TEST(failing_memory),
    };
    return cmocka_run_group_tests_name("loss scaling", tests, NULL, NULL);
}
