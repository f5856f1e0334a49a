/* test_optimizers.c - every optimizer of the library, generated: its cases come from
 * oracle/kinds/optim.golden (oracle/optimizers.py says of what), those of one that PyTorch has not from its
 * .samples.  An optimizer or an option without a case fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "kinds.h"

enum { STEPS = 1000, P = 5, Q = 6, CASES = 200, SHOWN = 4, OWN = 2, SAVED_AT = 9 };

typedef struct Case {
    const OptimKind *kind;
    char name[400], *text[2]; /* options of the two groups */
    struct {
        int step;
        double value[P + Q];
    } golden[SHOWN];
    int shown; /* 0: of .samples, golden[OWN] is what it gives in f64 */
} Case;

static Case cases[CASES];
static int count;
static int64_t live_before;

/* ---- cases ----------------------------------------------------------------------------------- */

static const OptimKind *kind_named(const char *name)
{
    for (int i = 0; i < optim_kind_count(); i++)
        if (strcmp(optim_kind_at(i)->name, name) == 0) return optim_kind_at(i);
    fail_msg("%s: no such optimizer", name);
    return NULL;
}

static void begin_case(const char *text)
{
    assert_true(count < CASES);
    Case *c = &cases[count++];
    snprintf(c->name, sizeof c->name, "%s", text);
    c->text[0] = strchr(c->name, '|');
    assert_non_null(c->text[0]);
    *c->text[0]++ = 0;
    c->text[1] = strchr(c->text[0], '|');
    assert_non_null(c->text[1]);
    *c->text[1]++ = 0;
    c->kind = kind_named(c->name);
}

static void read_step(Case *c, const char *text)
{
    int64_t n;
    double *values = kind_numbers(text, &n);
    assert_int_equal(n, 1 + P + Q);
    assert_true(c->shown < SHOWN);
    c->golden[c->shown].step = (int)values[0];
    memcpy(c->golden[c->shown++].value, values + 1, sizeof c->golden[0].value);
    free(values);
}

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct Run {
    Tensor *p, *q;
    Optimizer *opt;
    TensorScope scope;
} Run;

static Tensor *start(int first, int n, TensorShape shape, TensorDtype dtype)
{
    double x[P + Q];
    for (int i = 0; i < n; i++) x[i] = ((5 * (first + i)) % 7 - 3) / 4.0;
    return tensor_requires_grad_(tensor_to(tensor_from_data(x, shape, TENSOR_F64), dtype), true);
}

static Tensor *gradient(int t, int first, const Tensor *like)
{
    double x[P + Q];
    for (int i = 0; i < tensor_numel(like); i++) x[i] = sin(0.37 * t + (first + i)) + 0.1 * cos(1.3 * t);
    return tensor_to(tensor_from_data(x, tensor_shape(like), TENSOR_F64), tensor_dtype(like));
}

static Optimizer *make(const Case *c, Tensor *p, Tensor *q)
{
    static KindRoom room;
    _Alignas(16) char args[OPTIM_OPTIONS], second[OPTIM_OPTIONS];
    kind_options(c->kind->fields, c->kind->defaults, c->kind->args, c->text[0], args, &room);
    *(TensorList *)(void *)args = TENSORS(p);
    Optimizer *opt = optim_new(c->kind, args);
    if (!opt) return NULL;
    int g = optim_add_group(opt, TENSORS(q));
    void *options = optim_group_options(opt, 1, c->kind->args);
    if (g == 1) {
        kind_options(c->kind->fields, options, c->kind->args, c->text[1], second, &room);
        memcpy(options, second, c->kind->args);
    }
    return opt;
}

static Run begin(const Case *c, TensorDtype dtype)
{
    Run r = { .scope = tensor_scope_open() };
    r.p = start(0, P, SHAPE(P), dtype), r.q = start(P, Q, SHAPE(2, 3), dtype);
    r.opt = make(c, r.p, r.q);
    if (!r.opt) fail_msg("%s: %s", c->name, tensor_error());
    return r;
}

static void end(Run *r)
{
    optim_free(r->opt);
    tensor_scope_close(r->scope);
}

static void set_gradients(Tensor *p, Tensor *q, int t)
{
    tensor_set_grad(p, gradient(t, 0, p));
    tensor_set_grad(q, t % 7 ? gradient(t, P, q) : NULL);
}

static void step(Run *r, int t)
{
    TensorScope scope = tensor_scope_open();
    set_gradients(r->p, r->q, t);
    if (optim_step(r->opt)) fail_msg("step %d: %s", t, tensor_error());
    tensor_scope_close(scope);
}

static double value(const Run *r, int i)
{
    return i < P ? tensor_get(r->p, DIMS(i)) : tensor_get(r->q, DIMS((i - P) / 3, (i - P) % 3));
}

static void compare(const Case *c, const Run *r, int golden, double tolerance)
{
    for (int i = 0; i < P + Q; i++) {
        double found = value(r, i), want = c->golden[golden].value[i];
        if (!(fabs(found - want) <= tolerance * (1 + fabs(want))))
            fail_msg("%s {%s} {%s}, step %d, element %d: %.17g, want %.17g", c->name, c->text[0], c->text[1],
                     c->golden[golden].step, i, found, want);
    }
}

static int read_cases(void **state)
{
    (void)state;
    KindFile f = kind_open("test/oracle/kinds/optim.golden");
    const char *rest;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        if (strcmp(word, "optimizer") == 0) begin_case(rest);
        else if (strcmp(word, "step") == 0) read_step(&cases[count - 1], rest);
    }
    kind_close(&f);
    const int golden = count;
    for (int i = 0; i < optim_kind_count(); i++)
        kind_samples(optim_kind_at(i)->name, optim_kind_at(i)->samples, begin_case);
    for (int k = golden; k < count; k++) {
        Run r = begin(&cases[k], TENSOR_F64);
        for (int t = 1; t <= 20; t++) step(&r, t);
        for (int i = 0; i < P + Q; i++) cases[k].golden[OWN].value[i] = value(&r, i);
        end(&r);
    }
    return count > 0 ? 0 : -1;
}

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
    for (int k = 0; k < count; k++) {
        Run r = begin(&cases[k], TENSOR_F64);
        int shown = 0;
        for (int t = 1; t <= STEPS; t++) {
            step(&r, t);
            if (t == STEPS / 2) halve_lr(&r);
            if (shown < cases[k].shown && t == cases[k].golden[shown].step)
                compare(&cases[k], &r, shown++, 1e-10);
        }
        if (cases[k].shown) assert_int_equal(shown, SHOWN);
        end(&r);
    }
}

static void narrow_dtypes(void **state)
{
    (void)state;
    static const struct {
        TensorDtype dtype;
        double tolerance;
    } narrow[] = { { TENSOR_F32, 1e-5 }, { TENSOR_BF16, 0.1 }, { TENSOR_F16, 0.02 } };
    for (int k = 0; k < count; k++)
        for (int d = 0; d < 3; d++) {
            if (narrow[d].dtype != TENSOR_F32 && strstr(cases[k].text[1], "eps=0"))
                continue; /* v rounds to 0 */
            Run r = begin(&cases[k], narrow[d].dtype);
            for (int t = 1; t <= 20; t++) step(&r, t);
            compare(&cases[k], &r, OWN, narrow[d].tolerance);
            assert_int_equal(tensor_dtype(r.p), narrow[d].dtype);
            end(&r);
        }
}

/* Parameters that are not dense take the path of ops, with the same numbers. */
static void strided_parameters(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        TensorScope scope = tensor_scope_open();
        Tensor *base = tensor_zeros(SHAPE(P, 3), TENSOR_F64),
               *view = tensor_detach(tensor_select(base, 1, 1));
        Run r = { .q = start(P, Q, SHAPE(2, 3), TENSOR_F64), .scope = tensor_scope_open() };
        tensor_copy_(view, start(0, P, SHAPE(P), TENSOR_F64));
        r.p = tensor_requires_grad_(tensor_detach(view), true);
        assert_false(tensor_is_contiguous(r.p));
        r.opt = make(&cases[k], r.p, r.q);
        for (int t = 1; t <= 20; t++) step(&r, t);
        compare(&cases[k], &r, OWN, 1e-12);
        assert_true(tensor_get(base, DIMS(1, 0)) == 0 && tensor_get(base, DIMS(2, 2)) == 0);
        end(&r);
        tensor_scope_close(scope);
    }
}

/* A dense parameter after one that is not: what lies around it in memory stays. */
static void neighbours_in_memory(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        TensorScope scope = tensor_scope_open();
        Tensor *memory = tensor_ones(SHAPE(3 * P), TENSOR_F64), *base = tensor_zeros(SHAPE(P, 2), TENSOR_F64);
        Run r = { .scope = tensor_scope_open() };
        Tensor *strided = tensor_requires_grad_(tensor_detach(tensor_select(base, 1, 0)), true),
               *dense = tensor_requires_grad_(tensor_detach(tensor_narrow(memory, 0, P, P)), true);
        _Alignas(16) char args[OPTIM_OPTIONS];
        memcpy(args, cases[k].kind->defaults, cases[k].kind->args);
        *(TensorList *)(void *)args = TENSORS(strided, dense);
        r.opt = optim_new(cases[k].kind, args);
        for (int t = 1; t <= 3; t++) {
            set_gradients(strided, dense, t);
            assert_int_equal(optim_step(r.opt), 0);
        }
        for (int i = 0; i < P; i++) {
            assert_true(tensor_get(memory, DIMS(i)) == 1 && tensor_get(memory, DIMS(2 * P + i)) == 1);
            assert_true(tensor_get(base, DIMS(i, 1)) == 0 && tensor_get(memory, DIMS(P + i)) != 1);
        }
        end(&r);
        tensor_scope_close(scope);
    }
}

/* ---- state ----------------------------------------------------------------------------------- */

static void save_and_load(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Run a = begin(&cases[k], TENSOR_F64), b = begin(&cases[k], TENSOR_F64);
        for (int t = 1; t <= SAVED_AT; t++) step(&a, t);
        halve_lr(&a);
        TensorDict saved = nn_dict_clone(optim_state_dict(a.opt));
        assert_true(saved.count > 0);
        TENSOR_NO_GRAD { tensor_copy_(b.p, a.p), tensor_copy_(b.q, a.q); }
        assert_int_equal(optim_load_state_dict(b.opt, saved), 0);
        for (int t = SAVED_AT + 1; t <= SAVED_AT + 10; t++) step(&a, t), step(&b, t);
        assert_true(tensor_equal(a.p, b.p) && tensor_equal(a.q, b.q));
        assert_true(optim_lr(a.opt) == optim_lr(b.opt));
        nn_dict_free(saved);
        end(&b), end(&a);
    }
}

static void refused_states(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Run a = begin(&cases[k], TENSOR_F64), b = begin(&cases[k], TENSOR_F64);
        for (int t = 1; t <= 3; t++) step(&a, t);
        double lr = optim_lr(b.opt);
        for (int broken = 0; broken < 3; broken++) {
            TensorDict dict = nn_dict_clone(optim_state_dict(a.opt));
            if (broken == 0)
                tensor_release(dict.item[dict.count - 1].tensor), free(dict.item[--dict.count].name);
            if (broken == 1) nn_dict_set(&dict, "state.7.step", tensor_ones(SHAPE(), TENSOR_F64));
            if (broken == 2) nn_dict_set(&dict, dict.item[0].name, tensor_ones(SHAPE(3, 3), TENSOR_F64));
            assert_status_error(optim_load_state_dict(b.opt, dict),
                                broken == 2 ? TENSOR_ESHAPE : TENSOR_EVALUE);
            assert_true(optim_lr(b.opt) == lr && b.opt->group[0].param[0].step == 0);
            nn_dict_free(dict);
        }
        assert_status_error(optim_load_state_dict(b.opt, (TensorDict){ .count = -1 }), TENSOR_ENULL);
        assert_status_error(optim_load_state_dict(b.opt, (TensorDict){ .count = 2 }), TENSOR_ENULL);
        end(&b), end(&a);
    }
}

/* A parameter that becomes f64 between steps (as nn_to does it) takes its state along. */
static void parameters_change_dtype(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Run a = begin(&cases[k], TENSOR_F32), b = begin(&cases[k], TENSOR_F64);
        for (int t = 1; t <= 5; t++) step(&a, t);
        Tensor *const change[] = { a.p, a.q };
        for (int i = 0; i < 2; i++) {
            tensor_set_grad(change[i], NULL);
            assert_int_equal(tensor_set_data(change[i], tensor_to(tensor_detach(change[i]), TENSOR_F64)), 0);
        }
        TENSOR_NO_GRAD { tensor_copy_(b.p, a.p), tensor_copy_(b.q, a.q); }
        assert_int_equal(optim_load_state_dict(b.opt, optim_state_dict(a.opt)), 0);
        for (int t = 6; t <= 20; t++) step(&a, t), step(&b, t);
        assert_true(tensor_equal(a.p, b.p) && tensor_equal(a.q, b.q));
        compare(&cases[k], &a, OWN, 1e-5);
        end(&b), end(&a);
    }
}

/* ---- what a step must not do ----------------------------------------------------------------- */

/* A value that a graph saved and a step then overwrote is noticed by backward, in both paths of a step. */
static void overwritten_before_backward(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Run r = begin(&cases[k], TENSOR_F64);
        Tensor *loss = tensor_add(tensor_sum(tensor_square(r.p)), tensor_sum(tensor_square(r.q)));
        step(&r, 1);
        assert_status_error(tensor_backward(loss), TENSOR_EGRAD);
        end(&r);
    }
}

/* So are the states, which the dict shows. */
static void states_overwritten_before_backward(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Run r = begin(&cases[k], TENSOR_F64);
        step(&r, 1);
        TensorDict dict = optim_state_dict(r.opt);
        Tensor *loss[16];
        int n = 0;
        for (int i = 0; i < dict.count && n < 16; i++) {
            Tensor *s = dict.item[i].tensor;
            if (strncmp(dict.item[i].name, "state.0.", 8) == 0 && tensor_ndim(s) == 1)
                loss[n++] = tensor_sum(tensor_mul(r.p, s));
        }
        step(&r, 2);
        for (int i = 0; i < n; i++) {
            TensorScope scope = tensor_scope_open();
            assert_null(tensor_gradients(loss[i], r.p));
            assert_status_error(-1, TENSOR_EGRAD);
            tensor_scope_close(scope);
        }
        end(&r);
    }
}

static void steady_state(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Run r = begin(&cases[k], TENSOR_F32);
        set_gradients(r.p, r.q, 1);
        optim_step(r.opt);
        int64_t live = tensor_live_count(), calls = tensor_memory().system_calls;
        for (int t = 0; t < 50; t++) assert_int_equal(optim_step(r.opt), 0);
        assert_int_equal(tensor_live_count(), live);
        assert_int_equal(tensor_memory().system_calls, calls);
        end(&r);
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
               tensor_equal(now.item[i].tensor, kept.state.item[i].tensor);
    if (!same) fail_msg("%s {%s}: changed although allocation %d failed", c->name, c->text[0], n);
}

static bool allocation_fails(int n, int (*fn)(Run *r, TensorDict dict), Run *r, TensorDict dict)
{
    tensor_debug_fail_allocation(n, false);
    int status = fn(r, dict);
    bool failed = tensor_debug_allocation_failed();
    tensor_debug_fail_allocation(0, false);
    assert_true(status == 0 || failed);
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
    Run right = begin(c, dtype);
    for (int t = 1; t <= before + 1; t++) step(&right, t);
    for (int n = 1, failed = 1; failed; n++) {
        Run r = begin(c, dtype);
        for (int t = 1; t <= before; t++) step(&r, t);
        Kept kept = keep(&r);
        set_gradients(r.p, r.q, before + 1);
        failed = allocation_fails(n, step_now, &r, kept.state);
        if (r.opt->group[0].param[0].step == before) {
            assert_as_kept(c, &r, kept, n);
            assert_int_equal(optim_step(r.opt), 0);
        }
        assert_true(tensor_equal(r.p, right.p) && tensor_equal(r.q, right.q));
        nn_dict_free(kept.state);
        end(&r);
    }
    end(&right);
}

static void failing_memory(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
    for (int k = 0; k < count; k++)
        for (int d = 0; d < 3; d++)
            if (d == 0 || !strstr(cases[k].text[1], "eps=0")) /* v rounds to 0 */
                failing_step(&cases[k], dtypes[d], 0), failing_step(&cases[k], dtypes[d], 2);
}

static void failing_load(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Run a = begin(&cases[k], TENSOR_F64);
        for (int t = 1; t <= 3; t++) step(&a, t);
        Kept other = keep(&a);
        for (int n = 1, failed = 1; failed; n++) {
            Run b = begin(&cases[k], TENSOR_F32);
            step(&b, 1);
            Kept kept = keep(&b);
            failed = allocation_fails(n, load_now, &b, other.state);
            if (b.opt->group[0].param[0].step == 1) assert_as_kept(&cases[k], &b, kept, n);
            nn_dict_free(kept.state);
            end(&b);
        }
        nn_dict_free(other.state);
        end(&a);
    }
}

/* A state of before the first step brings back to there. */
static void loads_the_beginning(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Run a = begin(&cases[k], TENSOR_F64), b = begin(&cases[k], TENSOR_F64);
        Kept first = keep(&a);
        for (int t = 1; t <= 5; t++) step(&a, t);
        TENSOR_NO_GRAD { tensor_copy_(a.p, first.p), tensor_copy_(a.q, first.q); }
        assert_int_equal(optim_load_state_dict(a.opt, first.state), 0);
        assert_as_kept(&cases[k], &a, first, 0);
        for (int t = 1; t <= 5; t++) step(&a, t), step(&b, t);
        assert_true(tensor_equal(a.p, b.p) && tensor_equal(a.q, b.q));
        nn_dict_free(first.state);
        end(&b), end(&a);
    }
}

static void options_are_checked_at_each_step(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Run r = begin(&cases[k], TENSOR_F64);
        Tensor *p = tensor_clone(tensor_detach(r.p));
        set_gradients(r.p, r.q, 1);
        for (const OpField *f = cases[k].kind->fields; f->name; f++)
            if (strcmp(f->name, "lr") == 0)
                *(double *)(void *)((char *)r.opt->group[1].options + f->offset) = -1;
        assert_status_error(optim_step(r.opt), TENSOR_EVALUE);
        assert_true(tensor_equal(r.p, p));
        end(&r);
    }
}

/* ---- nothing is left out --------------------------------------------------------------------- */

static bool has_case(const char *function)
{
    for (int k = 0; k < count; k++)
        if (strcmp(cases[k].kind->function, function) == 0) return true;
    return false;
}

static void declared(void *ctx, const char *name)
{
    ++*(int *)ctx;
    if (strcmp(name, "optim_new") != 0 && !has_case(name))
        fail_msg("%s has no case in oracle/optimizers.py, and no .samples", name);
}

static bool is_tried(const OptimKind *kind, const OpField *f)
{
    char given[80];
    snprintf(given, sizeof given, "%s=", f->name);
    for (int k = 0; k < count; k++)
        if (cases[k].kind == kind && (strstr(cases[k].text[0], given) || strstr(cases[k].text[1], given)))
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
        if (!has_case(kind->function)) fail_msg("%s has no case", kind->function);
        for (const OpField *f = kind->fields; f->name; f++)
            if (!is_tried(kind, f)) fail_msg("%s: no case gives .%s", kind->function, f->name);
    }
}

/* ---- */

static int setup(void **state)
{
    (void)state;
    live_before = tensor_live_count();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (tensor_error()) print_error("%s\n", tensor_error());
    bool clean = !tensor_error() && tensor_live_count() == live_before;
    tensor_error_clear();
    return clean ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_have_cases),
        TEST(trajectories),
        TEST(narrow_dtypes),
        TEST(strided_parameters),
        TEST(neighbours_in_memory),
        TEST(save_and_load),
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
    return cmocka_run_group_tests(tests, read_cases, NULL);
}
