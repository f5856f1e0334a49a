/* test_optimizers.c - every optimizer of the library, generated: its cases come from
 * oracle/kinds/optim.golden (oracle/optimizers.py says of what), those of one that PyTorch has not from its
 * .samples.  An optimizer or an option without a case fails. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "kinds.h"
#include "optim_cases.h"
#include "samples.h"

static void halve_lr(Run *r)
{
    for (const OpField *f = r->opt->kind->fields; f->name; f++)
        for (int g = 0; g < r->opt->groups && strcmp(f->name, "lr") == 0; g++)
            *(double *)(void *)((char *)r->opt->group[g].options + f->offset) /= 2;
}

/* ---- trajectories ---------------------------------------------------------------------------- */

static void trajectories(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run r = run_begin(&optim_cases[k], TENSOR_F64);
        int shown = 0;
        for (int t = 1; t <= STEPS; t++) {
            run_step(&r, t);
            if (t == STEPS / 2) halve_lr(&r);
            if (shown < optim_cases[k].shown && t == optim_cases[k].golden[shown].step)
                run_compare(&optim_cases[k], &r, shown++, 1e-10);
        }
        if (optim_cases[k].shown) assert_int_equal(shown, SHOWN);
        run_end(&r);
    }
}

static void narrow_dtypes(void **state)
{
    (void)state;
    static const struct {
        TensorDtype dtype;
        double tolerance;
    } narrow[] = { { TENSOR_F32, 1e-5 }, { TENSOR_BF16, 0.1 }, { TENSOR_F16, 0.02 } };
    for (int k = 0; k < optim_case_count; k++)
        for (int d = 0; d < 3; d++) {
            if (narrow[d].dtype != TENSOR_F32 && strstr(optim_cases[k].text[1], "eps=0"))
                continue; /* v rounds to 0 */
            Run r = run_begin(&optim_cases[k], narrow[d].dtype);
            for (int t = 1; t <= 20; t++) run_step(&r, t);
            run_compare(&optim_cases[k], &r, OWN, narrow[d].tolerance);
            assert_int_equal(tensor_dtype(r.p), narrow[d].dtype);
            run_end(&r);
        }
}

/* Parameters that are not dense take the path of ops, with the same numbers. */
static void strided_parameters(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        TensorScope scope = tensor_scope_open();
        Tensor *base = tensor_zeros(SHAPE(P, 3), TENSOR_F64),
               *view = tensor_detach(tensor_select(base, 1, 1));
        Run r = { .q = optim_case_start(P, Q, SHAPE(2, 3), TENSOR_F64), .scope = tensor_scope_open() };
        tensor_copy_(view, optim_case_start(0, P, SHAPE(P), TENSOR_F64));
        r.p = optim_case_shaped(&optim_cases[k], tensor_requires_grad_(tensor_detach(view), true));
        assert_false(tensor_is_contiguous(r.p));
        r.opt = optim_case_make(&optim_cases[k], r.p, r.q);
        for (int t = 1; t <= 20; t++) run_step(&r, t);
        run_compare(&optim_cases[k], &r, OWN, 1e-12);
        assert_true(tensor_get(base, DIMS(1, 0)) == 0 && tensor_get(base, DIMS(2, 2)) == 0);
        run_end(&r);
        tensor_scope_close(scope);
    }
}

/* A dense parameter after one that is not: what lies around it in memory stays. */
static void neighbours_in_memory(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        TensorScope scope = tensor_scope_open();
        Tensor *memory = tensor_ones(SHAPE(3 * P), TENSOR_F64), *base = tensor_zeros(SHAPE(P, 2), TENSOR_F64);
        Run r = { .scope = tensor_scope_open() };
        Tensor *strided = tensor_requires_grad_(tensor_detach(tensor_select(base, 1, 0)), true),
               *dense = tensor_requires_grad_(tensor_detach(tensor_narrow(memory, 0, P, P)), true);
        strided = optim_case_shaped(&optim_cases[k], strided),
        dense = optim_case_shaped(&optim_cases[k], dense);
        _Alignas(16) char args[OPTIM_OPTIONS];
        memcpy(args, optim_cases[k].kind->defaults, optim_cases[k].kind->args);
        *(TensorList *)(void *)args = TENSORS(strided, dense);
        r.opt = optim_new(optim_cases[k].kind, args);
        for (int t = 1; t <= 3; t++) {
            optim_case_set_gradients(strided, dense, t);
            assert_int_equal(optim_step(r.opt), 0);
        }
        for (int i = 0; i < P; i++) {
            assert_true(tensor_get(memory, DIMS(i)) == 1 && tensor_get(memory, DIMS(2 * P + i)) == 1);
            assert_true(tensor_get(base, DIMS(i, 1)) == 0 && tensor_get(memory, DIMS(P + i)) != 1);
        }
        run_end(&r);
        tensor_scope_close(scope);
    }
}

/* ---- state ----------------------------------------------------------------------------------- */

static void save_and_load(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run a = run_begin(&optim_cases[k], TENSOR_F64), b = run_begin(&optim_cases[k], TENSOR_F64);
        for (int t = 1; t <= SAVED_AT; t++) run_step(&a, t);
        halve_lr(&a);
        TensorDict saved = nn_dict_clone(optim_state_dict(a.opt));
        assert_true(saved.count > 0);
        TENSOR_NO_GRAD { tensor_copy_(b.p, a.p), tensor_copy_(b.q, a.q); }
        assert_int_equal(optim_load_state_dict(b.opt, saved), 0);
        for (int t = SAVED_AT + 1; t <= SAVED_AT + 10; t++) run_step(&a, t), run_step(&b, t);
        assert_true(tensor_equal(a.p, b.p) && tensor_equal(a.q, b.q));
        assert_true(optim_lr(a.opt) == optim_lr(b.opt));
        nn_dict_free(saved);
        run_end(&b), run_end(&a);
    }
}

static bool is_word(const char *words, const char *name)
{
    char word[80];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(words, word) != NULL;
}

/* To dict, what only PyTorch's groups have. */
static void add_pytorchs_options(const Case *c, TensorDict *dict)
{
    char words[sizeof c->options], *rest = NULL;
    snprintf(words, sizeof words, "%s", c->options);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        for (int g = 0; g < 2; g++) {
            char name[80];
            snprintf(name, sizeof name, "param_groups.%d.%s", g, word);
            const bool w = strcmp(word, "decoupled_weight_decay") == 0 && strcmp(c->kind->name, "AdamW") == 0;
            Tensor *value = strcmp(word, "params") == 0 ? tensor_arange(0, 3, 1, TENSOR_I64)
                                                        : tensor_full(SHAPE(), w, TENSOR_BOOL);
            if (!nn_dict_get(*dict, name)) assert_int_equal(nn_dict_set(dict, name, value), 0);
        }
}

/* The names are PyTorch's; "step" is ours alone where it has none, and may be missing there; so may options
 * that it has not, or as texts.  Its own that say how it computes are let be. */
static void names_of_states(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count && optim_cases[k].shown; k++) {
        const Case *c = &optim_cases[k];
        Run a = run_begin(c, TENSOR_F64), b = run_begin(c, TENSOR_F64);
        for (int t = 1; t <= 6; t++) run_step(&a, t);
        const TensorDict dict = optim_state_dict(a.opt);
        TensorDict without = { 0 };
        int found = 0, want = 0;
        for (int i = 0; i < dict.count; i++) {
            const char *name = dict.item[i].name;
            const char *word = strrchr(name, '.') + 1;
            const bool option = strncmp(name, "param_groups.", 13) == 0;
            const bool known = is_word(option ? c->options : c->names, word);
            const bool ours = !known && (strcmp(word, "step") == 0 || strcmp(word, "maximize") == 0 ||
                                         strcmp(word, "adjust_lr_fn") == 0);
            if (strncmp(name, "state.0.", 8) == 0 && !ours) found++;
            if (!known && !ours && strncmp(name, "state.1.", 8) != 0)
                fail_msg("%s: PyTorch has no %s", c->name, name);
            if (!ours) nn_dict_set(&without, name, dict.item[i].tensor);
        }
        for (const char *at = c->names + 1; *at && *at != ' '; want++) at = strchr(at, ' ') + 1;
        if (found != want) fail_msg("%s: %d states, PyTorch's are%s", c->name, found, c->names);
        add_pytorchs_options(c, &without);
        TENSOR_NO_GRAD { tensor_copy_(b.p, a.p), tensor_copy_(b.q, a.q); }
        assert_int_equal(optim_load_state_dict(b.opt, without), 0);
        for (int t = 7; t <= 12; t++) run_step(&a, t), run_step(&b, t);
        assert_true(tensor_equal(a.p, b.p) && tensor_equal(a.q, b.q));
        nn_dict_free(without);
        run_end(&b), run_end(&a);
    }
}

static void lose(TensorDict *dict, const char *name)
{
    for (int i = 0; i < dict->count; i++)
        if (strcmp(dict->item[i].name, name) == 0) {
            tensor_release(dict->item[i].tensor), free(dict->item[i].name);
            dict->item[i] = dict->item[--dict->count];
            return;
        }
    fail_msg("there is no %s", name);
}

static void refused_states(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run a = run_begin(&optim_cases[k], TENSOR_F64), b = run_begin(&optim_cases[k], TENSOR_F64);
        for (int t = 1; t <= 3; t++) run_step(&a, t);
        double lr = optim_lr(b.opt);
        for (int broken = 0; broken < 3; broken++) {
            TensorDict dict = nn_dict_clone(optim_state_dict(a.opt));
            if (broken == 0) lose(&dict, "param_groups.1.lr");
            if (broken == 1) nn_dict_set(&dict, "state.7.step", tensor_ones(SHAPE(), TENSOR_F64));
            if (broken == 2) nn_dict_set(&dict, dict.item[0].name, tensor_ones(SHAPE(3, 3), TENSOR_F64));
            assert_status_error(optim_load_state_dict(b.opt, dict),
                                broken == 2 ? TENSOR_ESHAPE : TENSOR_EVALUE);
            assert_true(optim_lr(b.opt) == lr && b.opt->group[0].param[0].step == 0);
            nn_dict_free(dict);
        }
        assert_status_error(optim_load_state_dict(b.opt, (TensorDict){ .count = -1 }), TENSOR_ENULL);
        assert_status_error(optim_load_state_dict(b.opt, (TensorDict){ .count = 2 }), TENSOR_ENULL);
        run_end(&b), run_end(&a);
    }
}

/* A parameter that becomes f64 between steps (as nn_to does it) takes its state along. */
static void parameters_change_dtype(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run a = run_begin(&optim_cases[k], TENSOR_F32), b = run_begin(&optim_cases[k], TENSOR_F64);
        for (int t = 1; t <= 5; t++) run_step(&a, t);
        Tensor *const change[] = { a.p, a.q };
        for (int i = 0; i < 2; i++) {
            tensor_set_grad(change[i], NULL);
            assert_int_equal(tensor_set_data(change[i], tensor_to(tensor_detach(change[i]), TENSOR_F64)), 0);
        }
        TENSOR_NO_GRAD { tensor_copy_(b.p, a.p), tensor_copy_(b.q, a.q); }
        assert_int_equal(optim_load_state_dict(b.opt, optim_state_dict(a.opt)), 0);
        for (int t = 6; t <= 20; t++) run_step(&a, t), run_step(&b, t);
        assert_true(tensor_equal(a.p, b.p) && tensor_equal(a.q, b.q));
        run_compare(&optim_cases[k], &a, OWN, 1e-5);
        run_end(&b), run_end(&a);
    }
}

/* ---- what a step must not do ----------------------------------------------------------------- */

/* A value that a graph saved and a step then overwrote is noticed by backward, in both paths of a step. */
static void overwritten_before_backward(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run r = run_begin(&optim_cases[k], TENSOR_F64);
        Tensor *loss = tensor_add(tensor_sum(tensor_square(r.p)), tensor_sum(tensor_square(r.q)));
        run_step(&r, 1);
        assert_status_error(tensor_backward(loss), TENSOR_EGRAD);
        run_end(&r);
    }
}

/* So are the states, which the dict shows. */
static void states_overwritten_before_backward(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run r = run_begin(&optim_cases[k], TENSOR_F64);
        run_step(&r, 1);
        TensorDict dict = optim_state_dict(r.opt);
        Tensor *loss[16];
        int n = 0;
        for (int i = 0; i < dict.count && n < 16; i++) {
            Tensor *s = dict.item[i].tensor;
            if (strncmp(dict.item[i].name, "state.0.", 8) == 0 && tensor_ndim(s) == 1)
                loss[n++] = tensor_sum(tensor_mul(r.p, s));
        }
        run_step(&r, 2);
        for (int i = 0; i < n; i++) {
            TensorScope scope = tensor_scope_open();
            assert_null(tensor_gradients(loss[i], r.p));
            assert_status_error(-1, TENSOR_EGRAD);
            tensor_scope_close(scope);
        }
        run_end(&r);
    }
}

static void steady_state(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run r = run_begin(&optim_cases[k], TENSOR_F32);
        optim_case_set_gradients(r.p, r.q, 1);
        optim_step(r.opt);
        const int64_t live = tensor_live_count(), calls = tensor_memory().system_calls;
        const bool keeps_blocks = tensor_memory().cached > 0; /* not under AddressSanitizer */
        for (int t = 0; t < 50; t++) assert_int_equal(optim_step(r.opt), 0);
        assert_int_equal(tensor_live_count(), live);
        if (keeps_blocks) assert_int_equal(tensor_memory().system_calls, calls);
        run_end(&r);
    }
}

typedef struct Kept { /* what a call that fails must leave as it was */
    Tensor *p, *q;
    TensorDict state;
} Kept;

static Kept keep(const Run *r)
{
    return (Kept){ tensor_clone(tensor_detach(r->p)), tensor_clone(tensor_detach(r->q)),
                   nn_dict_clone(optim_state_dict(r->opt)) };
}

static void assert_as_kept(const Case *c, const Run *r, Kept kept, int n)
{
    const TensorDict now = optim_state_dict(r->opt);
    bool same = now.count == kept.state.count && tensor_equal(r->p, kept.p) && tensor_equal(r->q, kept.q);
    for (int i = 0; i < now.count && same; i++)
        same = strcmp(now.item[i].name, kept.state.item[i].name) == 0 &&
               tensor_allclose(now.item[i].tensor, kept.state.item[i].tensor, .rtol = 0, .atol = 0,
                               .equal_nan = true); /* an option may be NaN */
    if (!same) fail_msg("%s {%s}: changed although allocation %d failed", c->name, c->text[0], n);
}

static bool allocation_fails(int n, int (*fn)(Run *r, TensorDict dict), Run *r, TensorDict dict)
{
    tensor_debug_fail_allocation(n, false);
    int status = fn(r, dict);
    bool failed = tensor_debug_allocation_failed();
    tensor_debug_fail_allocation(0, false);
    assert_true(status == 0 || failed);
    assert_true((status == 0) == !tensor_error()); /* it tells of what failed, and of nothing else */
    if (status) assert_status_error(status, TENSOR_ENOMEM);
    return failed;
}

static int step_now(Run *r, TensorDict dict)
{
    (void)dict;
    return optim_step(r->opt);
}

static int load_now(Run *r, TensorDict dict) { return optim_load_state_dict(r->opt, dict); }

/* The n-th allocation of the step after `before` others fails, for every n: nothing was changed, and the next
 * try is right.  Halves are stepped by ops, each of which may fail. */
static void failing_step(const Case *c, TensorDtype dtype, int before)
{
    Run right = run_begin(c, dtype);
    for (int t = 1; t <= before + 1; t++) run_step(&right, t);
    for (int n = 1, failed = 1; failed; n++) {
        if (!in_shard(n)) continue;
        Run r = run_begin(c, dtype);
        for (int t = 1; t <= before; t++) run_step(&r, t);
        Kept kept = keep(&r);
        optim_case_set_gradients(r.p, r.q, before + 1);
        failed = allocation_fails(n, step_now, &r, kept.state);
        if (r.opt->group[0].param[0].step == before) {
            assert_as_kept(c, &r, kept, n);
            assert_int_equal(optim_step(r.opt), 0);
        }
        assert_true(tensor_equal(r.p, right.p) && tensor_equal(r.q, right.q));
        nn_dict_free(kept.state);
        run_end(&r);
    }
    run_end(&right);
}

static void failing_memory(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
    for (int k = 0; k < optim_case_count; k++)
        for (int d = 0; d < 3; d++)
            if (d == 0 || !strstr(optim_cases[k].text[1], "eps=0")) /* v rounds to 0 */
                failing_step(&optim_cases[k], dtypes[d], 0), failing_step(&optim_cases[k], dtypes[d], 2);
}

static void failing_load(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run a = run_begin(&optim_cases[k], TENSOR_F64);
        for (int t = 1; t <= 3; t++) run_step(&a, t);
        Kept other = keep(&a);
        for (int n = 1, failed = 1; failed; n++) {
            Run b = run_begin(&optim_cases[k], TENSOR_F32);
            run_step(&b, 1);
            Kept kept = keep(&b);
            failed = allocation_fails(n, load_now, &b, other.state);
            if (b.opt->group[0].param[0].step == 1) assert_as_kept(&optim_cases[k], &b, kept, n);
            nn_dict_free(kept.state);
            run_end(&b);
        }
        nn_dict_free(other.state);
        run_end(&a);
    }
}

/* A state of before the first step brings back to there. */
static void loads_the_beginning(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run a = run_begin(&optim_cases[k], TENSOR_F64), b = run_begin(&optim_cases[k], TENSOR_F64);
        Kept first = keep(&a);
        for (int t = 1; t <= 5; t++) run_step(&a, t);
        TENSOR_NO_GRAD { tensor_copy_(a.p, first.p), tensor_copy_(a.q, first.q); }
        assert_int_equal(optim_load_state_dict(a.opt, first.state), 0);
        assert_as_kept(&optim_cases[k], &a, first, 0);
        for (int t = 1; t <= 5; t++) run_step(&a, t), run_step(&b, t);
        assert_true(tensor_equal(a.p, b.p) && tensor_equal(a.q, b.q));
        nn_dict_free(first.state);
        run_end(&b), run_end(&a);
    }
}

static void options_are_checked_at_each_step(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        Run r = run_begin(&optim_cases[k], TENSOR_F64);
        Tensor *p = tensor_clone(tensor_detach(r.p));
        optim_case_set_gradients(r.p, r.q, 1);
        for (const OpField *f = optim_cases[k].kind->fields; f->name; f++)
            if (strcmp(f->name, "lr") == 0)
                *(double *)(void *)((char *)r.opt->group[1].options + f->offset) = -1;
        assert_status_error(optim_step(r.opt), TENSOR_EVALUE);
        assert_true(tensor_equal(r.p, p));
        run_end(&r);
    }
}

/* ---- nothing is left out --------------------------------------------------------------------- */

static bool has_case(const char *function)
{
    for (int k = 0; k < optim_case_count; k++)
        if (strcmp(optim_cases[k].kind->function, function) == 0) return true;
    return false;
}

static void declared(void *ctx, const char *name)
{
    ++*(int *)ctx;
    if (strcmp(name, "optim_new") != 0 && strcmp(name, "optim_lbfgs") != 0 && !has_case(name))
        fail_msg("%s has no case in oracle/optimizers.py, and no .samples", name);
}

static bool is_tried(const OptimKind *kind, const OpField *f)
{
    char given[80];
    snprintf(given, sizeof given, "%s=", f->name);
    for (int k = 0; k < optim_case_count; k++)
        if (optim_cases[k].kind == kind &&
            (strstr(optim_cases[k].text[0], given) || strstr(optim_cases[k].text[1], given)))
            return true;
    return false;
}

static void all_have_cases(void **state)
{
    (void)state;
    int functions = 0;
    kind_declared("include/tapegrad/optim.h", "include/tapegrad/optim", "Optimizer", "optim_", declared,
                  &functions);
    assert_true(functions > optim_kind_count());
    for (int i = 0; i < optim_kind_count(); i++) {
        const OptimKind *kind = optim_kind_at(i);
        if (kind->step_closure) continue; /* test_lbfgs.c has them */
        if (!has_case(kind->function)) fail_msg("%s has no case", kind->function);
        for (const OpField *f = kind->fields; f->name; f++)
            if (!is_tried(kind, f)) fail_msg("%s: no case gives .%s", kind->function, f->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_have_cases),
        TEST(trajectories),
        TEST(narrow_dtypes),
        TEST(strided_parameters),
        TEST(neighbours_in_memory),
        TEST(save_and_load),
        TEST(names_of_states),
        TEST(refused_states),
        TEST(parameters_change_dtype),
        TEST(overwritten_before_backward),
        TEST(states_overwritten_before_backward),
        TEST(steady_state),
        TEST(failing_memory),
        TEST(failing_load),
        TEST(loads_the_beginning),
        TEST(options_are_checked_at_each_step),
    };
    return cmocka_run_group_tests(tests, optim_read_cases, NULL);
}
