/* test_fused.c - steps over lists: PyTorch's trajectories in every generated case (optim_cases.h), the bits
 * of optim_step in every dtype and layout, refusals, failing memory. */
#include <math.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "optim/fused_calls.h"
#include "optim_cases.h"

/* The state lists of one parameter of an optimizer, new ones. */
typedef struct States {
    Tensor *state[OPTIM_STATES];
    int count;
} States;

static States zero_states(const OptimKind *kind, const void *options, const Tensor *like)
{
    States s = { .count = 0 };
    for (int k = 0; k < OPTIM_STATES && kind->state[k]; k++)
        if (!kind->states || kind->states(options) >> k & 1) s.state[s.count++] = tensor_zeros_like(like);
    return s;
}

static TensorFusedLists lists_of(Tensor **p, Tensor **grad, int64_t step, States *s)
{
    return (TensorFusedLists){ TENSOR_LIST(p, 1),
                               TENSOR_LIST(grad, 1),
                               step,
                               TENSOR_LIST(s->state, s->count > 0),
                               TENSOR_LIST(s->state + 1, s->count > 1),
                               TENSOR_LIST(s->state + 2, s->count > 2) };
}

/* What a group's options say, with the mark of the defaults. */
static const void *options_of(const Run *r, int g) { return r->opt->group[g].options; }

/* p and q are stepped by lists, as r would step them. */
static void step_run(const Case *c, Run *r, int t, int64_t *steps, States *states)
{
    TensorScope scope = tensor_scope_open();
    optim_case_set_gradients(r->p, r->q, t);
    Tensor *x[] = { r->p, r->q };
    for (int g = 0; g < 2; g++) {
        Tensor *grad = tensor_grad(x[g]);
        if (!grad) continue;
        TENSOR_NO_GRAD
            if (fused_of(c->kind)->call(lists_of(&x[g], &grad, ++steps[g], &states[g]), options_of(r, g)))
                fail_msg("%s, step %d: %s", c->name, t, tensor_error());
    }
    tensor_scope_close(scope);
}

static void halve_lr(Run *r)
{
    for (const OpField *f = r->opt->kind->fields; f->name; f++)
        for (int g = 0; g < 2 && strcmp(f->name, "lr") == 0; g++)
            *(double *)(void *)((char *)r->opt->group[g].options + f->offset) /= 2;
}

static void trajectories(void **state)
{
    (void)state;
    int compared = 0;
    for (int k = 0; k < optim_case_count; k++) {
        const Case *c = &optim_cases[k];
        if (!fused_of(c->kind) || !c->shown) continue;
        Run r = run_begin(c, TENSOR_F64);
        int64_t steps[2] = { 0 };
        States states[2] = { zero_states(c->kind, options_of(&r, 0), r.p),
                             zero_states(c->kind, options_of(&r, 1), r.q) };
        int shown = 0;
        for (int t = 1; t <= STEPS; t++) {
            step_run(c, &r, t, steps, states);
            if (t == STEPS / 2) halve_lr(&r);
            if (shown < c->shown && t == c->golden[shown].step) run_compare(c, &r, shown++, 1e-10);
        }
        assert_int_equal(shown, SHOWN);
        compared++;
        run_end(&r);
    }
    assert_true(compared > 30);
}

static void as_optimizers(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
    for (int k = 0; k < optim_case_count; k++)
        for (int d = 0; d < 4 && fused_of(optim_cases[k].kind); d++) {
            const Case *c = &optim_cases[k];
            Run a = run_begin(c, dtypes[d]), b = run_begin(c, dtypes[d]);
            int64_t steps[2] = { 0 };
            States states[2] = { zero_states(c->kind, options_of(&a, 0), a.p),
                                 zero_states(c->kind, options_of(&a, 1), a.q) };
            for (int t = 1; t <= 10; t++) step_run(c, &a, t, steps, states), run_step(&b, t);
            assert_true(tensor_allclose(a.p, b.p, .rtol = 0, .atol = 0, .equal_nan = true));
            assert_true(tensor_allclose(a.q, b.q, .rtol = 0, .atol = 0, .equal_nan = true));
            for (int s = 0, n = 0; s < OPTIM_STATES; s++) {
                const Tensor *want = b.opt->group[0].param[0].state[s];
                if (want)
                    assert_true(
                        tensor_allclose(states[0].state[n++], want, .rtol = 0, .atol = 0, .equal_nan = true));
            }
            run_end(&b), run_end(&a);
        }
}

/* Sizes of 0, rank 0, columns of a matrix, a gradient that is read backwards: each as by itself. */
static void odd_lists(void **state)
{
    (void)state;
    enum { N = 5 };
    Tensor *x[N], *g[N], *m[N], *v[N], *want[N];
    for (int i = 0; i < N; i++) {
        const TensorShape shape = i == 0   ? SHAPE(0, 3)
                                  : i == 1 ? SHAPE()
                                  : i == 2 ? SHAPE(4, 3)
                                           : SHAPE(7000);
        x[i] = tensor_randn(shape, TENSOR_F64), g[i] = tensor_randn(shape, TENSOR_F64);
        if (i == 2) x[i] = tensor_transpose(x[i], 0, 1), g[i] = tensor_transpose(g[i], 0, 1);
        if (i == 3) g[i] = tensor_expand(tensor_randn(SHAPE(1), TENSOR_F64), shape);
        if (i == 4) m[i] = tensor_select(tensor_zeros(SHAPE(7000, 2), TENSOR_F64), 1, 1);
        else m[i] = tensor_zeros_like(x[i]);
        v[i] = tensor_zeros_like(x[i]);
        want[i] = tensor_requires_grad_(tensor_clone(x[i]), true);
        tensor_set_grad(want[i], g[i]);
    }
    Optimizer *opt = optim_adamw(TENSOR_LIST(want, N), 0.1);
    for (int t = 1; t <= 3; t++) {
        assert_int_equal(optim_step(opt), 0);
        assert_int_equal(tensor_fused_adamw_(TENSOR_FUSED_LISTS(TENSOR_LIST(x, N), TENSOR_LIST(g, N), t,
                                                                TENSOR_LIST(m, N), TENSOR_LIST(v, N)),
                                             .lr = 0.1),
                         0);
    }
    for (int i = 0; i < N; i++)
        assert_true(tensor_allclose(x[i], tensor_detach(want[i]), .rtol = 1e-14, .atol = 1e-14));
    assert_int_equal(tensor_fused_sgd_(TENSOR_FUSED_LISTS({ 0 }, .step = 1), .lr = 1), 0);
    optim_free(opt);
}

/* optim.h's way of SparseAdam: rows of a table that a batch has, and no others.  The end is PyTorch's. */
static void rows_of_a_batch(void **state)
{
    (void)state;
    static const int64_t batch[3][3] = { { 0, 2, 2 }, { 2, 4, 4 }, { 0, 0, 0 } };
    static const int lookups[3][5] = { { 1, 0, 2, 0, 0 }, { 0, 0, 1, 0, 1 }, { 1, 0, 0, 0, 0 } };
    static const double end[10] = { 0,
                                    -0.05752184408197465,
                                    0.2,
                                    0.3,
                                    0.21112454750716364,
                                    0.31014250794878107,
                                    0.6,
                                    0.7,
                                    0.7255863323505942,
                                    0.8255863307164509 };
    Tensor *table = tensor_div_scalar(tensor_reshape(tensor_arange(0, 10, 1, TENSOR_F64), SHAPE(5, 2)), 10);
    Tensor *whole[] = { table, NULL, tensor_zeros_like(table), tensor_zeros_like(table) }, *part[4];
    for (int t = 1; t <= 3; t++) {
        double times[10];
        for (int i = 0; i < 10; i++) times[i] = 2 * lookups[t - 1][i / 2];
        whole[1] = tensor_mul(table, tensor_from_data(times, SHAPE(5, 2), TENSOR_F64));
        Tensor *rows = tensor_unique(tensor_from_data(batch[t - 1], SHAPE(3), TENSOR_I64));
        for (int i = 0; i < 4; i++) part[i] = tensor_index_select(whole[i], 0, rows);
        const TensorFusedLists lists =
            TENSOR_FUSED_LISTS(TENSORS(part[0]), TENSORS(part[1]), t, TENSORS(part[2]), TENSORS(part[3]));
        assert_int_equal(tensor_fused_adam_(lists, .lr = 0.1, .eps = 1e-8 / sqrt(1 - pow(0.999, t))), 0);
        for (int i = 0; i < 4; i++) assert_non_null(tensor_index_copy_(whole[i], 0, rows, part[i]));
    }
    for (int i = 0; i < 10; i++) assert_true(fabs(tensor_get(table, DIMS(i / 2, i % 2)) - end[i]) < 1e-12);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(3), TENSOR_F32), *y = tensor_ones(SHAPE(3), TENSOR_F32),
           *z = tensor_clone(x), *v = tensor_clone(x), *wide = tensor_ones(SHAPE(3), TENSOR_F64),
           *pair = tensor_ones(SHAPE(2), TENSOR_F32), *whole = tensor_ones(SHAPE(3), TENSOR_I64),
           *other = tensor_clone(x), *last = tensor_clone(x), *none = NULL;
    const struct {
        TensorStatus code;
        TensorList p, g;
        int64_t step;
        TensorList m, v, u;
        double lr;
    } cases[] = {
        { TENSOR_EVALUE, TENSORS(x), TENSORS(y), 1, TENSORS(z), TENSORS(v), { 0 }, (double)NAN },
        { TENSOR_EVALUE, TENSORS(x), TENSORS(y), 1, TENSORS(z), TENSORS(v), { 0 }, -1 },
        { TENSOR_EVALUE, TENSORS(x), TENSORS(y), 0, TENSORS(z), TENSORS(v), { 0 }, 1 },
        { TENSOR_EVALUE, TENSORS(x), TENSORS(y, z), 1, TENSORS(z), TENSORS(v), { 0 }, 1 },
        { TENSOR_EVALUE, TENSORS(x), TENSORS(y), 1, TENSORS(z), { 0 }, { 0 }, 1 },
        { TENSOR_EVALUE, TENSORS(x), TENSORS(y), 1, TENSORS(z), TENSORS(v), TENSORS(wide), 1 },
        { TENSOR_EVALUE, TENSORS(x), TENSORS(x), 1, TENSORS(z), TENSORS(v), { 0 }, 1 },
        { TENSOR_EVALUE, TENSORS(x), TENSORS(y), 1, TENSORS(z), TENSORS(z), { 0 }, 1 },
        { TENSOR_EVALUE, TENSORS(x, x), TENSORS(y, y), 1, TENSORS(z, other), TENSORS(v, last), { 0 }, 1 },
        { TENSOR_ENULL, TENSORS(none), TENSORS(y), 1, TENSORS(z), TENSORS(v), { 0 }, 1 },
        { TENSOR_ENULL, TENSORS(x), { 1, NULL }, 1, TENSORS(z), TENSORS(v), { 0 }, 1 },
        { TENSOR_ESHAPE, TENSORS(x), TENSORS(pair), 1, TENSORS(z), TENSORS(v), { 0 }, 1 },
        { TENSOR_ESHAPE, TENSORS(x), TENSORS(y), 1, TENSORS(z), TENSORS(pair), { 0 }, 1 },
        { TENSOR_EDTYPE, TENSORS(x), TENSORS(y), 1, TENSORS(wide), TENSORS(v), { 0 }, 1 },
        { TENSOR_EDTYPE, TENSORS(whole), TENSORS(y), 1, TENSORS(z), TENSORS(v), { 0 }, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const TensorFusedLists l = {
            cases[i].p, cases[i].g, cases[i].step, cases[i].m, cases[i].v, cases[i].u
        };
        const int status = tensor_fused_adam_(l, .lr = cases[i].lr);
        if (status != -1 || tensor_error_code() != cases[i].code) fail_msg("case %zu: %s", i, tensor_error());
        tensor_error_clear();
    }
    assert_true(tensor_equal(x, tensor_ones_like(x)) && tensor_equal(z, x) && tensor_equal(v, x));
    const TensorFusedLists good = TENSOR_FUSED_LISTS(TENSORS(x), TENSORS(y), 1, TENSORS(z), TENSORS(v));
    tensor_requires_grad_(x, true);
    assert_status_error(tensor_fused_adam_(good, .lr = 1), TENSOR_EGRAD);
    TENSOR_NO_GRAD { assert_int_equal(tensor_fused_adam_(good, .lr = 1), 0); }
    assert_status_error(tensor_fused_adam_args_(good, (OptimAdamArgs){ .lr = 1 }), TENSOR_EVALUE);
}

static void failing_memory(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int n = 1, failed = 1; failed; n++) {
            TensorScope scope = tensor_scope_open();
            Tensor *t[4];
            for (int i = 0; i < 4; i++) t[i] = tensor_full(SHAPE(3), i, d ? TENSOR_BF16 : TENSOR_F32);
            tensor_debug_fail_allocation(n, false);
            const int status = tensor_fused_adam_(
                TENSOR_FUSED_LISTS(TENSORS(t[0]), TENSORS(t[1]), 1, TENSORS(t[2]), TENSORS(t[3])), .lr = 1);
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            if (status) {
                assert_status_error(status, TENSOR_ENOMEM);
                for (int i = 0; i < 4; i++) assert_true(tensor_equal(t[i], tensor_full_like(t[i], i)));
            } else assert_true(tensor_get(t[0], DIMS(0)) < 0);
            tensor_scope_close(scope);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(trajectories),      TEST(as_optimizers), SCOPED(odd_lists),
        SCOPED(rows_of_a_batch), SCOPED(refusals),    TEST(failing_memory),
    };
    return cmocka_run_group_tests_name("fused steps", tests, optim_read_cases, NULL);
}
