/* test_modules.c - every kind of module of the library, generated: its cases come from oracle/kinds/nn.golden
 * (oracle/modules.py says of what), those of a module that PyTorch has not from its .samples.  A public
 * constructor or an option without a case fails. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "kinds.h"

enum { CASES = 400, TENSORS_MOST = 64, CALLS = 3, RESULTS = 3 };

typedef KindGolden Golden;

typedef struct Case {
    const NNKind *kind;
    char *name, *text, *input;
    Golden param[TENSORS_MOST], buffer[TENSORS_MOST], train[RESULTS], eval[RESULTS];
    Golden call[CALLS], weights[CALLS]; /* of attention */
    int params, buffers, trains, evals, calls;
    bool own; /* of .samples: without golden values */
} Case;

static Case cases[CASES];
static int count;
/* ---- cases ----------------------------------------------------------------------------------- */

static void begin_case(const char *text)
{
    assert_true(count < CASES);
    Case *c = &cases[count++];
    c->name = strdup(text);
    assert_non_null(c->name);
    c->text = strchr(c->name, '|');
    assert_non_null(c->text);
    *c->text++ = 0;
    c->input = strchr(c->text, '|');
    assert_non_null(c->input);
    *c->input++ = 0;
    c->kind = nn_kind_find(c->name);
    if (!c->kind) fail_msg("%s: no such module", c->name);
}

static void begin_sample(const char *text)
{
    begin_case(text);
    cases[count - 1].own = true;
}

static int read_cases(void **state)
{
    (void)state;
    KindFile f = kind_open("test/oracle/kinds/nn.golden");
    const char *rest;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        Case *c = &cases[count ? count - 1 : 0];
        if (strcmp(word, "module") == 0) begin_case(rest);
        else if (strcmp(word, "param") == 0) kind_golden(&c->param[c->params++], rest, true);
        else if (strcmp(word, "buffer") == 0) kind_golden(&c->buffer[c->buffers++], rest, true);
        else if (strcmp(word, "call") == 0) kind_golden(&c->call[c->calls++], rest, false);
        else if (strcmp(word, "weights") == 0) kind_golden(&c->weights[c->calls - 1], rest, false);
        else if (strcmp(word, "train") == 0) kind_golden(&c->train[c->trains++], rest, false);
        else if (strcmp(word, "eval") == 0) kind_golden(&c->eval[c->evals++], rest, false);
    }
    kind_close(&f);
    for (int i = 0; i < nn_kind_count(); i++)
        kind_samples(nn_kind_at(i)->name, nn_kind_at(i)->samples, begin_sample);
    return count > 0 ? 0 : -1;
}

static int free_cases(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        Case *c = &cases[k];
        for (int i = 0; i < TENSORS_MOST; i++)
            kind_golden_free(&c->param[i]), kind_golden_free(&c->buffer[i]);
        for (int i = 0; i < CALLS; i++) kind_golden_free(&c->call[i]), kind_golden_free(&c->weights[i]);
        for (int i = 0; i < RESULTS; i++) kind_golden_free(&c->train[i]), kind_golden_free(&c->eval[i]);
        free(c->name);
    }
    return 0;
}

/* ---- modules and inputs ---------------------------------------------------------------------- */

static Module *make_with(const Case *c, TensorDtype dtype)
{
    static KindRoom room;
    _Alignas(16) char args[1024];
    assert_true(c->kind->args <= sizeof args);
    if (c->kind->args) kind_options(c->kind->fields, c->kind->defaults, c->kind->args, c->text, args, &room);
    for (const OpField *f = c->kind->fields; f && f->name; f++)
        if (strcmp(f->name, "dtype") == 0) *(TensorDtype *)(void *)(args + f->offset) = dtype;
    return nn_make(c->kind, c->kind->args ? args : NULL);
}

static Module *make(const Case *c)
{
    tensor_manual_seed(0);
    Module *m = make_with(c, TENSOR_F32);
    if (!m) fail_msg("%s {%s}: %s", c->name, c->text, tensor_error());
    return m;
}

/* In f64, with PyTorch's parameters to the last bit. */
static Module *make_wide(const Case *c)
{
    Module *m = make(c);
    TensorDict golden = { 0 };
    for (int i = 0; i < c->params; i++)
        nn_dict_set(
            &golden, c->param[i].name,
            tensor_to(tensor_from_data(c->param[i].values, c->param[i].shape, TENSOR_F64), TENSOR_F32));
    assert_int_equal(nn_load_state_dict(m, golden, .strict = false), 0);
    nn_dict_free(golden);
    assert_int_equal(nn_to(m, TENSOR_F64), 0);
    return m;
}

static bool runs(const Case *c) { return c->own ? *c->input : c->trains > 0; }

static NNCall call_of(const Case *c, TensorDtype dtype)
{
    NNCall call = { .results = c->own ? 1 : c->trains };
    const char *text = c->input;
    for (int k = 0; k < NN_VALUES && text; k++) {
        call.in[k] = kind_input(text, k, dtype);
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
    assert_null(text);
    return call;
}

static Tensor *forward(const Case *c, Module *m, TensorDtype dtype)
{
    NNCall call = call_of(c, dtype);
    nn_run(m, &call);
    return call.out[0];
}

static void compare(const Case *c, const char *what, Tensor *found, const Golden *want, double tolerance)
{
    if (!found) fail_msg("%s {%s} %s: %s", c->name, c->text, what, tensor_error());
    found = tensor_flatten(tensor_to(tensor_detach(found), TENSOR_F64));
    TensorShape shape = tensor_shape(found);
    int64_t n = shape.ndim ? shape.dim[0] : 1;
    Tensor *golden = tensor_flatten(tensor_from_data(want->values, want->shape, TENSOR_F64));
    if (tensor_numel(golden) != n)
        fail_msg("%s {%s} %s: %lld elements, want %lld", c->name, c->text, what, (long long)n,
                 (long long)tensor_numel(golden));
    for (int64_t i = 0; i < n; i++) {
        double a = tensor_get(found, DIMS(i)), b = want->values[i];
        if (!(fabs(a - b) <= tolerance * (1 + fabs(b))))
            fail_msg("%s {%s} %s [%lld]: %.17g, want %.17g", c->name, c->text, what, (long long)i, a, b);
    }
}

static void assert_shape(const Case *c, const Tensor *x, const Golden *want)
{
    TensorShape s = tensor_shape(x);
    bool same = s.ndim == want->shape.ndim;
    for (int d = 0; same && d < s.ndim; d++) same = s.dim[d] == want->dim[d];
    if (!same) fail_msg("%s {%s}: a result of another shape", c->name, c->text);
}

/* ---- against PyTorch ------------------------------------------------------------------------- */

static void initial_values(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        const Case *c = &cases[k];
        if (c->own) continue;
        TensorScope scope = tensor_scope_open();
        Module *m = make(c);
        TensorDict named = nn_named_parameters(m);
        assert_int_equal(named.count, c->params);
        for (int i = 0; i < c->params; i++) {
            assert_string_equal(named.item[i].name, c->param[i].name);
            assert_shape(c, named.item[i].tensor, &c->param[i]);
            compare(c, named.item[i].name, named.item[i].tensor, &c->param[i], 3e-7);
        }
        nn_free(m);
        tensor_scope_close(scope);
    }
}

static void compare_all(const Case *c, const char *what, Module *m, const Golden *want)
{
    NNCall call = call_of(c, TENSOR_F64);
    if (nn_run(m, &call)) fail_msg("%s {%s} %s: %s", c->name, c->text, what, tensor_error());
    for (int i = 0; i < c->trains; i++) {
        compare(c, what, call.out[i], &want[i], 1e-12);
        assert_shape(c, call.out[i], &want[i]);
    }
}

static void results(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        const Case *c = &cases[k];
        if (!runs(c) || c->own) continue;
        TensorScope scope = tensor_scope_open();
        Module *m = make_wide(c);
        assert_true(m->training && c->trains == c->evals);
        tensor_manual_seed(1);
        compare_all(c, "in training", m, c->train);
        for (int i = 0; i < c->buffers; i++)
            compare(c, c->buffer[i].name, nn_get(m, c->buffer[i].name), &c->buffer[i], 1e-12);
        nn_eval(m);
        assert_false(m->training);
        compare_all(c, "in eval", m, c->eval);
        nn_free(m);
        tensor_scope_close(scope);
    }
}

/* In f32 about what it gives in f64. */
static void results_without_golden(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        const Case *c = &cases[k];
        if (!runs(c) || !c->own) continue;
        TensorScope scope = tensor_scope_open();
        Module *m[2] = { make(c), make_wide(c) };
        for (int training = 1; training >= 0; training--) {
            Tensor *y[2];
            for (int i = 0; i < 2; i++) {
                nn_train(m[i], training);
                tensor_manual_seed(1);
                y[i] = forward(c, m[i], i ? TENSOR_F64 : TENSOR_F32);
            }
            if (!y[0] || !y[1]) fail_msg("%s {%s}: %s", c->name, c->text, tensor_error());
            if (!tensor_allclose(tensor_to(y[0], TENSOR_F64), tensor_to(y[1], TENSOR_F64), 1e-4, 1e-4, true))
                fail_msg("%s {%s}, training %d: f32 is far from f64", c->name, c->text, training);
        }
        nn_free(m[0]), nn_free(m[1]);
        tensor_scope_close(scope);
    }
}

/* ---- attention: what oracle/modules.py's attention_calls() does ------------------------------- */

static Tensor *of_batch(const char *shape, double factor, bool batch_first)
{
    Tensor *x = tensor_mul_scalar(kind_input(shape, 0, TENSOR_F64), factor);
    return batch_first ? tensor_contiguous(tensor_transpose(x, 0, 1)) : x;
}

static Tensor *mask(int rows, bool (*ignored)(int i, int j))
{
    uint8_t m[3 * 5];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 5; j++) m[5 * i + j] = ignored(i, j);
    return tensor_from_data(m, SHAPE(rows, 5), TENSOR_BOOL);
}
static bool third(int i, int j) { return (i + 2 * j) % 3 == 0; }
static bool fourth(int i, int j) { return (i + j) % 4 == 3; }

static Tensor *added(void)
{
    double m[3 * 5];
    for (int i = 0; i < 15; i++) m[i] = 0.3 * sin(i);
    return tensor_from_data(m, SHAPE(3, 5), TENSOR_F64);
}

static void attention(void **state)
{
    (void)state;
    int calls = 0;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < cases[k].calls; i++, calls++) {
            const Case *c = &cases[k];
            TensorScope scope = tensor_scope_open();
            Module *m = make_wide(c);
            bool first = strstr(c->text, "batch_first=true") != NULL, cross = strcmp(c->input, "cross") == 0;
            Tensor *weights, *query = of_batch("3x2x4", 1, first),
                             *key = of_batch(cross ? "5x2x3" : "5x2x4", 1, first),
                             *value = of_batch(cross ? "5x2x5" : "5x2x4", 0.5, first);
            Tensor *y = nn_multihead_attention_forward(m, query, key, value, .weights = &weights,
                                                       .average_attn_weights = i < 2,
                                                       .attn_mask = i == 1   ? mask(3, third)
                                                                    : i == 2 ? added()
                                                                             : NULL,
                                                       .key_padding_mask = i == 1 ? mask(2, fourth) : NULL);
            compare(c, "attention", y, &c->call[i], 1e-12);
            assert_shape(c, y, &c->call[i]);
            compare(c, "weights", weights, &c->weights[i], 1e-12);
            assert_shape(c, weights, &c->weights[i]);
            if (i == 0)
                compare(c, "without weights", nn_multihead_attention_forward(m, query, key, value),
                        &c->call[0], 1e-12);
            nn_free(m);
            tensor_scope_close(scope);
        }
    assert_int_equal(calls, 4 * CALLS);
}

/* ---- gradients ------------------------------------------------------------------------------- */

typedef struct Slots { /* the places of a module's parameters */
    Module *m;
    ModuleTensor *at[TENSORS_MOST];
    int n;
    NNCall call;
    int input[NN_VALUES], inputs; /* those that have gradients */
} Slots;

static void find_slots(Module *m, void *ctx)
{
    Slots *s = ctx;
    for (int i = 0; i < m->parameter_count; i++) s->at[s->n++] = &m->parameters[i];
}

/* The module as a function of its parameters and its inputs: all its floating results in a row. */
static Tensor *as_function(Tensor **inputs, int n, void *ctx)
{
    Slots *s = ctx;
    NNCall call = s->call;
    Tensor *kept[TENSORS_MOST], *row[RESULTS];
    int rows = 0;
    assert_int_equal(n, s->n + s->inputs);
    for (int i = 0; i < s->n; i++) kept[i] = s->at[i]->tensor, s->at[i]->tensor = inputs[i];
    for (int i = 0; i < s->inputs; i++) call.in[s->input[i]] = inputs[s->n + i];
    tensor_manual_seed(7);
    nn_run(s->m, &call);
    for (int i = 0; i < s->n; i++) s->at[i]->tensor = kept[i];
    for (int i = 0; i < RESULTS; i++)
        if (call.out[i] && tensor_dtype_is_float(tensor_dtype(call.out[i])))
            row[rows++] = tensor_flatten(call.out[i]);
    return rows < 2 ? call.out[0] : tensor_cat(TENSOR_LIST(row, rows));
}

static int passes_by(Module *m, NNCall *grads, void *ctx)
{
    *(bool *)ctx = m->hook_count == 1 && grads->results + grads->inputs > 0;
    return 0;
}

static bool has_gradient(const Case *c) /* max_norm writes its table, which finite differences see */
{
    return runs(c) && !strstr(c->text, "max_norm") && !strstr(c->text, "scale_grad_by_freq");
}

static void gradients(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++)
        for (int training = 0; training < 2 && has_gradient(&cases[k]); training++) {
            const Case *c = &cases[k];
            TensorScope scope = tensor_scope_open();
            Slots s = { .m = make_wide(c) };
            nn_train(s.m, training);
            nn_apply(s.m, find_slots, &s);
            Tensor *inputs[TENSORS_MOST + NN_VALUES];
            s.call = call_of(c, TENSOR_F64);
            for (int i = 0; i < s.n; i++)
                inputs[i] = tensor_requires_grad_(tensor_clone(tensor_detach(s.at[i]->tensor)), true);
            for (int i = 0; i < NN_VALUES; i++) {
                Tensor *x = s.call.in[i];
                if (!x || tensor_dtype(x) != TENSOR_F64) continue;
                s.input[s.inputs++] = i;
                inputs[s.n + s.inputs - 1] = tensor_requires_grad_(x, true);
            }
            if (s.n + s.inputs == 0) fail_msg("%s {%s}: nothing has a gradient", c->name, c->text);
            bool hooked = false;
            if (training) nn_register_full_backward_hook(s.m, passes_by, &hooked);
            if (tensor_gradcheck_with(.inputs = TENSOR_LIST(inputs, s.n + s.inputs), .fn = as_function,
                                      .ctx = &s))
                fail_msg("%s {%s}, training %d: %s", c->name, c->text, training, tensor_error());
            assert_int_equal(hooked, training);
            nn_free(s.m);
            tensor_scope_close(scope);
        }
}

/* ---- state and dtypes ------------------------------------------------------------------------ */

/* The same state under the same names, and the same results. */
static void same(const Case *c, Module *a, TensorDict saved, Module *b)
{
    if (!b) fail_msg("%s {%s}: %s", c->name, c->text, tensor_error());
    const TensorDict other = nn_state_dict(b);
    assert_int_equal(saved.count, other.count);
    for (int i = 0; i < saved.count; i++) {
        assert_string_equal(saved.item[i].name, other.item[i].name);
        assert_true(tensor_equal(saved.item[i].tensor, other.item[i].tensor));
    }
    nn_eval(b);
    Tensor *y[2] = { NULL };
    for (int i = 0; i < 2 && runs(c); i++) tensor_manual_seed(6), y[i] = forward(c, i ? b : a, TENSOR_F32);
    assert_true(!runs(c) || tensor_equal(y[0], y[1]));
    nn_free(b);
}

static void state_dicts(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        const Case *c = &cases[k];
        TensorScope scope = tensor_scope_open();
        Module *a = make(c);
        if (runs(c)) forward(c, a, TENSOR_F32); /* buffers change */
        tensor_manual_seed(5);
        Module *b = make_with(c, TENSOR_F32);
        TensorDict saved = nn_dict_clone(nn_state_dict(a));
        if (!c->own) assert_int_equal(saved.count, c->params + c->buffers);
        assert_int_equal(nn_load_state_dict(b, saved), 0);
        nn_eval(a);
        Module *copy = nn_clone(a);
        same(c, a, saved, b);
        same(c, a, saved, copy);
        nn_dict_free(saved);
        nn_free(a);
        tensor_scope_close(scope);
    }
}

static bool has_dtype(const NNKind *kind)
{
    for (const OpField *f = kind->fields; f && f->name; f++)
        if (strcmp(f->name, "dtype") == 0) return true;
    return false;
}

/* .dtype is that of all parameters and floating buffers; nn_to changes it, under the same handles. */
static void dtypes(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        const Case *c = &cases[k];
        TensorScope scope = tensor_scope_open();
        Module *m = make_with(c, TENSOR_F64);
        TensorDict named = nn_named_parameters(m);
        if (named.count && !has_dtype(c->kind)) fail_msg("%s has parameters and no option .dtype", c->name);
        for (int i = 0; i < named.count; i++)
            assert_int_equal(tensor_dtype(named.item[i].tensor), TENSOR_F64);
        Tensor *first = named.count ? named.item[0].tensor : NULL;
        assert_int_equal(nn_to(m, TENSOR_BF16), 0);
        assert_true(!first ||
                    (nn_named_parameters(m).item[0].tensor == first && tensor_dtype(first) == TENSOR_BF16));
        nn_eval(m);
        if (runs(c)) {
            Tensor *y = forward(c, m, TENSOR_BF16);
            if (!y) fail_msg("%s {%s} in bf16: %s", c->name, c->text, tensor_error());
            if (first) assert_int_equal(tensor_dtype(y), TENSOR_BF16);
        }
        assert_int_equal(nn_to(m, TENSOR_F32), 0);
        assert_true(!first || tensor_dtype(first) == TENSOR_F32);
        nn_free(m);
        tensor_scope_close(scope);
    }
}

/* Products and what is made of them refuse an input of another floating dtype, and name both. */
static void other_dtypes_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = { "Linear", "Conv", "RNN", "GRU", "LSTM", "MultiheadAttention" };
    for (int k = 0; k < count; k++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (strncmp(cases[k].name, names[i], strlen(names[i])) != 0 || !runs(&cases[k])) continue;
            TensorScope scope = tensor_scope_open();
            Module *m = make_wide(&cases[k]);
            Tensor *y = forward(&cases[k], m, TENSOR_F32);
            if (y) fail_msg("%s {%s} takes f32 with parameters in f64", cases[k].name, cases[k].text);
            if (tensor_error_code() != TENSOR_EDTYPE || !strstr(tensor_error(), "f32") ||
                !strstr(tensor_error(), "f64"))
                fail_msg("%s: %s", cases[k].name, tensor_error());
            tensor_error_clear();
            nn_free(m);
            tensor_scope_close(scope);
        }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int everything(const Case *c)
{
    TensorScope scope = tensor_scope_open();
    Module *m = make_with(c, TENSOR_F32);
    Tensor *y = m && runs(c) ? forward(c, m, TENSOR_F32) : NULL;
    if (y && tensor_requires_grad(y)) assert_true((tensor_backward(tensor_sum(y)) == 0) == !tensor_error());
    if (m) {
        nn_state_dict(m);
        const bool failed_before = tensor_error();
        const int status = nn_to(m, TENSOR_F64);
        assert_true(failed_before || (status == 0) == !tensor_error());
    }
    nn_free(m);
    tensor_scope_close(scope);
    return tensor_error() ? -1 : 0;
}

/* The n-th allocation fails, for every n. */
static void failing_memory(void **state)
{
    (void)state;
    for (int k = 0; k < count; k++) {
        assert_int_equal(everything(&cases[k]), 0);
        for (int n = 1, failed = 1; failed; n++) {
            int64_t before = tensor_live_count();
            tensor_debug_fail_allocation(n, false);
            int status = everything(&cases[k]);
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            if (status) assert_status_error(status, TENSOR_ENOMEM);
            if (tensor_live_count() != before)
                fail_msg("%s {%s}: allocation %d leaks", cases[k].name, cases[k].text, n);
        }
    }
}

/* ---- nothing is left out --------------------------------------------------------------------- */

static bool has_case(const char *function)
{
    /* those that test_module.c tries by hand, and what makes no module */
    static const char others[] =
        " nn_sequential nn_module_list nn_module_dict nn_parameter_list nn_parameter_dict "
        "nn_append nn_child nn_done nn_retain nn_get_module nn_make nn_new_size nn_new_call "
        "nn_transformer_encoder nn_transformer_decoder nn_clone nn_weight_norm nn_spectral_norm "
        "nn_embedding_from_pretrained nn_embedding_bag_from_pretrained ";
    char word[80];
    snprintf(word, sizeof word, " %s ", function);
    if (strstr(others, word)) return true;
    for (int k = 0; k < count; k++)
        if (strcmp(cases[k].kind->function, function) == 0) return true;
    return false;
}

static void declared(void *ctx, const char *name)
{
    ++*(int *)ctx;
    if (!has_case(name)) fail_msg("%s has no case in oracle/modules.py, and no .samples", name);
}

static bool is_tried(const NNKind *kind, const OpField *f)
{
    char given[80];
    snprintf(given, sizeof given, "%s=", f->name);
    for (int k = 0; k < count; k++)
        if (cases[k].kind->fields == kind->fields && strstr(cases[k].text, given)) return true;
    return strcmp(f->name, "dtype") == 0; /* dtypes() */
}

static void all_have_cases(void **state)
{
    (void)state;
    int functions = 0;
    kind_declared("include/tapegrad/nn.h", "include/tapegrad/nn", "Module", "nn_", declared, &functions);
    assert_true(functions > nn_kind_count());
    for (int i = 0; i < nn_kind_count(); i++) {
        const NNKind *kind = nn_kind_at(i);
        if (!has_case(kind->function)) fail_msg("%s has no case", kind->function);
        for (const OpField *f = kind->fields; f && f->name; f++)
            if (!is_tried(kind, f)) fail_msg("%s: no case gives .%s", kind->function, f->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_have_cases),
        TEST(initial_values),
        TEST(results),
        TEST(results_without_golden),
        TEST(gradients),
        TEST(state_dicts),
        TEST(attention),
        TEST(dtypes),
        TEST(other_dtypes_are_refused),
        TEST(failing_memory),
    };
    return cmocka_run_group_tests(tests, read_cases, free_cases);
}
