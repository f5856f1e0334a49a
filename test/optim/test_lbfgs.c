/* test_lbfgs.c - optimizers that want a closure: trajectories of PyTorch from oracle/kinds/closures.golden
 * (oracle/closures.py says of what), their state, and closures that fail. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "kinds.h"
#include "optim_cases.h"
#include "samples.h"

enum { LAST = 1000, MOST = 30, NUMBERS = 4 + P + Q }; /* step, loss, evaluations, iterations, x */

typedef struct Problem {
    Tensor *p, *q, *(*loss)(Tensor *x);
    Optimizer *opt;
    TensorScope scope;
    int calls, fail_at; /* of the closure */
    double sign;
} Problem;

static struct {
    char text[200];
    Tensor *(*loss)(Tensor *x);
    double golden[5][NUMBERS];
    int shown;
} cases[MOST];
static int count;

/* ---- problems -------------------------------------------------------------------------------- */

static Tensor *valley(Tensor *x)
{
    Tensor *from = tensor_narrow(x, 0, 0, P + Q - 1), *to = tensor_narrow(x, 0, 1, P + Q - 1);
    Tensor *bend = tensor_square(tensor_sub(to, tensor_square(from)));
    return tensor_add(tensor_sum(tensor_mul_scalar(bend, 10)),
                      tensor_sum(tensor_square(tensor_rsub_scalar(from, 1))));
}

static Tensor *bowl(Tensor *x)
{
    Tensor *i = tensor_to(tensor_arange(0, P + Q, 1, TENSOR_F64), tensor_dtype(x));
    Tensor *each = tensor_log(tensor_cosh(tensor_sub(x, tensor_mul_scalar(i, 1.0 / 7))));
    return tensor_add(tensor_sum(tensor_mul(tensor_add_scalar(i, 1), each)),
                      tensor_mul_scalar(tensor_square(tensor_sum(x)), 0.05));
}

static Tensor *waves(Tensor *x)
{
    return tensor_sum(
        tensor_add(tensor_div_scalar(tensor_square(x), 5), tensor_sin(tensor_mul_scalar(x, 4))));
}

static Tensor *closure(void *ctx)
{
    Problem *a = ctx;
    optim_zero_grad(a->opt);
    if (++a->calls == a->fail_at) return tensor_fail(TENSOR_EUSER, "closure", "no more"), NULL;
    Tensor *flat[] = { tensor_reshape(a->p, SHAPE(-1)), tensor_reshape(a->q, SHAPE(-1)) };
    Tensor *loss = tensor_mul_scalar(a->loss(tensor_cat(TENSOR_LIST(flat, 2))), a->sign);
    return tensor_backward(loss) ? NULL : loss;
}

static Problem begin(int k, TensorDtype dtype)
{
    static const OptimKind *kind;
    static KindRoom room;
    _Alignas(16) char args[OPTIM_OPTIONS];
    Problem a = { .scope = tensor_scope_open(), .loss = cases[k].loss };
    for (int i = 0; i < optim_kind_count(); i++)
        if (strcmp(optim_kind_at(i)->name, "LBFGS") == 0) kind = optim_kind_at(i);
    a.p = optim_case_start(0, P, SHAPE(P), dtype), a.q = optim_case_start(P, Q, SHAPE(2, 3), dtype);
    kind_options(kind->fields, kind->defaults, kind->args, cases[k].text, args, &room);
    *(TensorList *)(void *)args = TENSORS(a.p, a.q);
    a.opt = optim_new(kind, args);
    if (!a.opt) fail_msg("%s: %s", cases[k].text, tensor_error());
    a.sign = optim_options(a.opt, 0, OptimLbfgsArgs)->maximize ? -1 : 1;
    return a;
}

static void end(Problem *a)
{
    optim_free(a->opt);
    tensor_scope_close(a->scope);
}

static double step(Problem *a)
{
    TensorScope scope = tensor_scope_open();
    const double loss = optim_step_closure(a->opt, closure, a);
    tensor_scope_close(scope);
    return loss;
}

static double number(const Problem *a, const char *name)
{
    Tensor *x = nn_dict_get(optim_state_dict(a->opt), name);
    return x ? tensor_item(x) : (double)NAN;
}

static double element(const Problem *a, int i)
{
    return i < P ? tensor_get(a->p, DIMS(i)) : tensor_get(a->q, DIMS((i - P) / 3, (i - P) % 3));
}

static int read_all(void **state)
{
    (void)state;
    KindFile f = kind_open("test/oracle/kinds/closures.golden");
    const char *rest;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        if (strcmp(word, "closure") == 0) {
            assert_true(count < MOST);
            rest = strchr(rest, '|') + 1;
            cases[count].loss = *rest == 'v' ? valley : *rest == 'b' ? bowl : waves;
            snprintf(cases[count++].text, sizeof cases->text, "%s", strchr(rest, '|') + 1);
        } else if (strcmp(word, "step") == 0) {
            int64_t n;
            double *values = kind_numbers(rest, &n);
            assert_int_equal(n, NUMBERS);
            assert_true(cases[count - 1].shown < 5);
            memcpy(cases[count - 1].golden[cases[count - 1].shown++], values, NUMBERS * sizeof *values);
            free(values);
        }
    }
    kind_close(&f);
    return count ? 0 : -1;
}

/* ---- trajectories ---------------------------------------------------------------------------- */

static void compare(const Problem *a, int k, const double *golden, double loss)
{
    double found[NUMBERS] = { golden[0], loss, number(a, "state.0.func_evals"), number(a, "state.0.n_iter") };
    for (int i = 0; i < P + Q; i++) found[4 + i] = element(a, i);
    for (int i = 0; i < NUMBERS; i++)
        if (!(fabs(found[i] - golden[i]) <= 1e-10 * (1 + fabs(golden[i]))))
            fail_msg("{%s}, step %g, number %d: %.17g, want %.17g", cases[k].text, golden[0], i, found[i],
                     golden[i]);
}

static void trajectories(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Problem a = begin(k, TENSOR_F64);
        int shown = 0;
        for (int t = 1; t <= LAST; t++) {
            const double loss = step(&a);
            if (t == cases[k].golden[shown][0]) compare(&a, k, cases[k].golden[shown++], loss);
            if (t == 10) optim_set_lr(a.opt, optim_lr(a.opt) / 2);
        }
        assert_int_equal(shown, 5);
        end(&a);
    }
}

/* In f32 and in halves it goes downhill too. */
static void narrow_dtypes(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < count; k++) {
            Problem a = begin(k, d ? TENSOR_BF16 : TENSOR_F32);
            double first = step(&a), last = first;
            for (int t = 0; t < 20; t++) last = step(&a);
            assert_true(a.sign * last < a.sign * first - 5);
            end(&a);
        }
}

/* ---- state ----------------------------------------------------------------------------------- */

static void save_and_load(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++)
        for (int before = 0; before < 7; before += 2) {
            Problem a = begin(k, TENSOR_F64), b = begin(k, TENSOR_F64);
            for (int t = 0; t < before; t++) step(&a);
            TensorDict saved = nn_dict_clone(optim_state_dict(a.opt));
            TENSOR_NO_GRAD { tensor_copy_(b.p, a.p), tensor_copy_(b.q, a.q); }
            if (before == 4) step(&b); /* something to be replaced */
            if (before == 6) {         /* what PyTorch has besides */
                nn_dict_set(&saved, "state.0.al.0", tensor_ones(SHAPE(), TENSOR_F64));
                nn_dict_set(&saved, "param_groups.0.params", tensor_arange(0, 2, 1, TENSOR_I64));
            }
            TENSOR_NO_GRAD { tensor_copy_(b.p, a.p), tensor_copy_(b.q, a.q); }
            if (optim_load_state_dict(b.opt, saved)) fail_msg("%s: %s", cases[k].text, tensor_error());
            for (int t = 0; t < 5; t++) assert_true(step(&a) == step(&b));
            assert_true(tensor_equal(a.p, b.p) && tensor_equal(a.q, b.q));
            nn_dict_free(saved);
            end(&b), end(&a);
        }
}

static void refused_states(void **state)
{
    (void)state;
    Problem a = begin(0, TENSOR_F64), b = begin(0, TENSOR_F64);
    step(&a), step(&b);
    const double evaluations = number(&b, "state.0.func_evals");
    static const char *const gone[] = { "state.0.d",    "state.0.prev_flat_grad", "state.0.t",
                                        "state.0.ro.0", "state.0.old_dirs.3",     "param_groups.0.max_iter" };
    for (int i = 0; i < 6; i++) {
        const TensorDict whole = optim_state_dict(a.opt);
        TensorDict part = { 0 };
        for (int j = 0; j < whole.count; j++)
            if (strcmp(whole.item[j].name, gone[i]) != 0)
                nn_dict_set(&part, whole.item[j].name, whole.item[j].tensor);
        assert_int_equal(part.count, whole.count - 1);
        assert_status_error(optim_load_state_dict(b.opt, part), TENSOR_EVALUE);
        nn_dict_free(part);
    }
    TensorDict other = nn_dict_clone(optim_state_dict(a.opt));
    nn_dict_set(&other, "state.0.d", tensor_ones(SHAPE(3), TENSOR_F64));
    assert_status_error(optim_load_state_dict(b.opt, other), TENSOR_ESHAPE);
    nn_dict_free(other);
    Optimizer *adam = optim_adam(TENSORS(a.p, a.q));
    optim_step(adam);
    assert_status_error(optim_load_state_dict(b.opt, optim_state_dict(adam)), TENSOR_EVALUE);
    assert_status_error(optim_load_state_dict(adam, optim_state_dict(b.opt)), TENSOR_EVALUE);
    assert_true(number(&b, "state.0.func_evals") == evaluations);
    optim_free(adam);
    end(&b), end(&a);
}

/* ---- what fails ------------------------------------------------------------------------------ */

static void assert_unchanged(const Problem *a, Tensor *p, Tensor *q, TensorDict before)
{
    const TensorDict now = optim_state_dict(a->opt);
    assert_true(tensor_equal(a->p, p) && tensor_equal(a->q, q));
    assert_int_equal(now.count, before.count);
    for (int i = 0; i < now.count; i++)
        assert_true(strcmp(now.item[i].name, before.item[i].name) == 0 &&
                    tensor_equal(now.item[i].tensor, before.item[i].tensor));
}

/* The closure fails at its n-th call, for every n, in the first step and in the third. */
static void failing_closures(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++)
        for (int before = 0; before < 3; before += 2)
            for (int n = 1, failed = 1; failed; n++) {
                if (!in_shard(n)) continue;
                Problem a = begin(k, TENSOR_F64);
                for (int t = 0; t < before; t++) step(&a);
                Tensor *p = tensor_clone(tensor_detach(a.p)), *q = tensor_clone(tensor_detach(a.q));
                TensorDict saved = nn_dict_clone(optim_state_dict(a.opt));
                a.calls = 0, a.fail_at = n;
                failed = isnan(step(&a));
                if (failed) {
                    assert_status_error(-1, TENSOR_EUSER);
                    assert_unchanged(&a, p, q, saved);
                } else assert_true(n > 1);
                nn_dict_free(saved);
                end(&a);
            }
}

static void failing_memory(void **state)
{
    (void)state;
    for (int k = 0; k < count; k += 2)
        for (int n = 1, failed = 1; failed; n += 3) {
            if (!in_shard(n / 3)) continue;
            Problem a = begin(k, TENSOR_F64);
            step(&a);
            Tensor *p = tensor_clone(tensor_detach(a.p)), *q = tensor_clone(tensor_detach(a.q));
            TensorDict saved = nn_dict_clone(optim_state_dict(a.opt));
            tensor_debug_fail_allocation(n, false);
            const bool wrong = isnan(step(&a));
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            assert_true(!wrong || failed);
            if (wrong) {
                assert_status_error(-1, TENSOR_ENOMEM);
                assert_unchanged(&a, p, q, saved);
            }
            nn_dict_free(saved);
            end(&a);
        }
}

static void refusals(void **state)
{
    (void)state;
    Problem a = begin(0, TENSOR_F64);
    Tensor *other = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true);
    assert_status_error(optim_add_group(a.opt, TENSORS(other)), TENSOR_EVALUE);
    assert_status_error(optim_step(a.opt), TENSOR_EVALUE);
    assert_null(optim_lbfgs(TENSORS(other), .max_iter = -1));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_null(optim_lbfgs(TENSORS(other), .lr = (double)NAN));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_null(optim_lbfgs(TENSORS(other), .line_search_fn = (OptimLineSearch)7));
    assert_status_error(-1, TENSOR_EVALUE);
    optim_options(a.opt, 0, OptimLbfgsArgs)->history_size = -1;
    assert_true(isnan(optim_step_closure(a.opt, closure, &a)));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_int_equal(a.calls, 0);
    end(&a);
}

/* Every option of a kind with a closure has a case. */
static void all_options(void **state)
{
    (void)state;
    for (int i = 0; i < optim_kind_count(); i++) {
        const OptimKind *kind = optim_kind_at(i);
        if (!kind->step_closure) continue;
        assert_string_equal(kind->name, "LBFGS");
        for (const OpField *f = kind->fields; f->name; f++) {
            char given[80];
            bool tried = false;
            snprintf(given, sizeof given, "%s=", f->name);
            for (int k = 0; k < count; k++) tried = tried || strstr(cases[k].text, given);
            if (!tried) fail_msg("no case gives .%s", f->name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_options),    TEST(trajectories),     TEST(narrow_dtypes),  TEST(save_and_load),
        TEST(refused_states), TEST(failing_closures), TEST(failing_memory), TEST(refusals),
    };
    return cmocka_run_group_tests_name("optimizers with a closure", tests, read_all, NULL);
}
