/* optim_cases.c - reads the cases of optimizers and runs one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kinds.h"
#include "optim_cases.h"

Case optim_cases[CASES];
int optim_case_count;

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
    assert_true(optim_case_count < CASES);
    Case *c = &optim_cases[optim_case_count++];
    snprintf(c->name, sizeof c->name, "%s", text);
    c->text[0] = strchr(c->name, '|');
    assert_non_null(c->text[0]);
    *c->text[0]++ = 0;
    c->text[1] = strchr(c->text[0], '|');
    assert_non_null(c->text[1]);
    *c->text[1]++ = 0;
    c->kind = kind_named(c->name);
    TensorScope scope = tensor_scope_open();
    c->matrices = c->kind->check_param && c->kind->check_param(tensor_zeros(SHAPE(1), TENSOR_F32), "test");
    tensor_scope_close(scope);
    tensor_error_clear();
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

Tensor *optim_case_shaped(const Case *c, Tensor *p)
{
    if (!c->matrices) return p;
    return tensor_requires_grad_(tensor_detach(tensor_unsqueeze(tensor_detach(p), 1)), true);
}

Tensor *optim_case_start(int first, int n, TensorShape shape, TensorDtype dtype)
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

Optimizer *optim_case_make(const Case *c, Tensor *p, Tensor *q)
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

Run run_begin(const Case *c, TensorDtype dtype)
{
    Run r = { .scope = tensor_scope_open() };
    r.p = optim_case_shaped(c, optim_case_start(0, P, SHAPE(P), dtype)),
    r.q = optim_case_start(P, Q, SHAPE(2, 3), dtype);
    r.opt = optim_case_make(c, r.p, r.q);
    if (!r.opt) fail_msg("%s: %s", c->name, tensor_error());
    return r;
}

void run_end(Run *r)
{
    optim_free(r->opt);
    tensor_scope_close(r->scope);
}

void optim_case_set_gradients(Tensor *p, Tensor *q, int t)
{
    tensor_set_grad(p, gradient(t, 0, p));
    tensor_set_grad(q, t % 7 ? gradient(t, P, q) : NULL);
}

void run_step(Run *r, int t)
{
    TensorScope scope = tensor_scope_open();
    optim_case_set_gradients(r->p, r->q, t);
    if (optim_step(r->opt)) fail_msg("step %d: %s", t, tensor_error());
    tensor_scope_close(scope);
}

double run_value(const Run *r, int i)
{
    if (i >= P) return tensor_get(r->q, DIMS((i - P) / 3, (i - P) % 3));
    return tensor_ndim(r->p) == 1 ? tensor_get(r->p, DIMS(i)) : tensor_get(r->p, DIMS(i, 0));
}

void run_compare(const Case *c, const Run *r, int golden, double tolerance)
{
    for (int i = 0; i < P + Q; i++) {
        double found = run_value(r, i), want = c->golden[golden].value[i];
        if (!(fabs(found - want) <= tolerance * (1 + fabs(want))))
            fail_msg("%s {%s} {%s}, step %d, element %d: %.17g, want %.17g", c->name, c->text[0], c->text[1],
                     c->golden[golden].step, i, found, want);
    }
}

int optim_read_cases(void **state)
{
    (void)state;
    KindFile f = kind_open("test/oracle/kinds/optim.golden");
    const char *rest;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        if (strcmp(word, "optimizer") == 0) begin_case(rest);
        else if (strcmp(word, "names") == 0)
            snprintf(optim_cases[optim_case_count - 1].names, sizeof optim_cases->names, " %s ", rest);
        else if (strcmp(word, "options") == 0)
            snprintf(optim_cases[optim_case_count - 1].options, sizeof optim_cases->options, " %s ", rest);
        else if (strcmp(word, "step") == 0) read_step(&optim_cases[optim_case_count - 1], rest);
    }
    kind_close(&f);
    const int golden = optim_case_count;
    for (int i = 0; i < optim_kind_count(); i++)
        kind_samples(optim_kind_at(i)->name, optim_kind_at(i)->samples, begin_case);
    for (int k = golden; k < optim_case_count; k++) {
        Run r = run_begin(&optim_cases[k], TENSOR_F64);
        for (int t = 1; t <= 20; t++) run_step(&r, t);
        for (int i = 0; i < P + Q; i++) optim_cases[k].golden[OWN].value[i] = run_value(&r, i);
        run_end(&r);
    }
    return optim_case_count > 0 ? 0 : -1;
}
