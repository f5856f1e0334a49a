/* test_families.c - every family of modules, trained 50 steps as in PyTorch: the same losses at each step,
 * from the same seed, and the same names in the state dict.  oracle/training.py says of what the cases of
 * oracle/kinds/training.golden are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include "kinds.h"

enum { STEPS = 50, PARTS = 5 }; /* of a case: layers, inputs, loss, targets, learning rate */
enum { MOST_KINDS = 256, MOST_PARAMETERS = 128 };
static const double tolerance = 1e-6;

static bool trained[MOST_KINDS]; /* by nn_kind_at */

static const NNKind *find(const char *name)
{
    for (int i = 0; i < nn_kind_count(); i++)
        if (strcmp(nn_kind_at(i)->name, name) == 0) return trained[i] = true, nn_kind_at(i);
    fail_msg("%s: no such module", name);
    return NULL;
}

/* "Linear in_features=4 out_features=8"; "weight_norm Linear ..." */
static Module *made(const char *text)
{
    static KindRoom room;
    _Alignas(16) char args[1024];
    char name[64];
    int length;
    assert_int_equal(sscanf(text, " %63s%n", name, &length), 1);
    const char *options = text + length;
    if (strcmp(name, "weight_norm") == 0) return nn_weight_norm(made(options));
    if (strcmp(name, "spectral_norm") == 0) return nn_spectral_norm(made(options));
    const NNKind *kind = find(name);
    if (kind->args) kind_options(kind->fields, kind->defaults, kind->args, options, args, &room);
    return nn_make(kind, kind->args ? args : NULL);
}

static Module *net_of(char *layers)
{
    Module *net = nn_sequential_args(NULL, 0);
    for (char *rest, *layer = strtok_r(layers, ";", &rest); layer; layer = strtok_r(NULL, ";", &rest))
        nn_append(net, made(layer));
    if (tensor_error()) fail_msg("%s: %s", layers, tensor_error());
    return net;
}

static Tensor *forward(Module *net, Tensor *const *inputs, int n)
{
    NNCall call = { .results = 1 };
    memcpy(call.in, inputs, (size_t)n * sizeof *inputs);
    for (int i = 0; i < net->child_count; i++) {
        const Module *next = i + 1 < net->child_count ? net->children[i + 1].module : NULL;
        const bool all = next && strncmp(next->type, "MaxUnpool", 9) == 0;
        call.results = all ? 2 : 1;
        nn_run(net->children[i].module, &call);
        memset(call.in, 0, sizeof call.in);
        memcpy(call.in, call.out, (all ? 2 : 1) * sizeof *call.in);
    }
    return call.in[0];
}

/* Where a loss has several results, it is the last. */
static Tensor *loss_of(Module *loss, Tensor *const *pair)
{
    NNCall call = { .results = NN_VALUES };
    memcpy(call.in, pair, sizeof call.in);
    nn_run(loss, &call);
    int last = NN_VALUES - 1;
    while (last && !call.out[last]) last--;
    return call.out[last];
}

/* Of a net and its loss, into room. */
static TensorList parameters(Module *net, Module *loss, Tensor **room)
{
    Module *const of[] = { net, loss };
    int n = 0;
    for (int k = 0; k < 2; k++) {
        const TensorList some = nn_parameters(of[k]);
        assert_true(n + some.count <= MOST_PARAMETERS);
        for (int i = 0; i < some.count; i++) room[n++] = some.item[i];
    }
    return (TensorList){ n, room };
}

static int read_tensors(const char *text, int k, Tensor **to)
{
    int n = 0;
    for (; text; n++) {
        to[n] = kind_input(text, k + n, TENSOR_F32);
        text = strchr(text, ',');
        if (text) text++;
    }
    return n;
}

/* Names begin with those of m's; returns the others. */
static const char *check_names(Module *m, const char *names)
{
    const TensorDict dict = nn_state_dict(m);
    for (int i = 0; i < dict.count; i++) {
        const size_t length = strlen(dict.item[i].name);
        if (strncmp(names, dict.item[i].name, length) != 0 || (names[length] && names[length] != ' '))
            fail_msg("the state dict has %s, want %s", dict.item[i].name, names);
        names += length + (names[length] == ' ');
    }
    return names;
}

static void train(const char *name, char *part[PARTS], const double *want, const char *names)
{
    tensor_manual_seed(0);
    Module *net = net_of(part[0]), *loss = made(part[2]);
    names = check_names(loss, check_names(net, names));
    if (*names) fail_msg("the state dicts lack %s", names);
    TensorScope scope = tensor_scope_open();
    Tensor *x[NN_VALUES] = { NULL }, *pair[NN_VALUES] = { NULL }, *room[MOST_PARAMETERS];
    const int inputs = read_tensors(part[1], 0, x);
    read_tensors(part[3], 3, pair + 1);
    Optimizer *opt = optim_sgd(parameters(net, loss, room), .lr = atof(part[4]), .momentum = 0.9);
    tensor_manual_seed(1);
    for (int step = 0; step < STEPS; step++) {
        TensorScope inner = tensor_scope_open();
        pair[0] = forward(net, x, inputs);
        Tensor *value = loss_of(loss, pair);
        optim_zero_grad(opt);
        tensor_backward(value);
        optim_step(opt);
        if (tensor_error()) fail_msg("%s: %s", name, tensor_error());
        const double off = fabs(tensor_item(value) - want[step]) / fmax(1, fabs(want[step]));
        if (!(off <= tolerance))
            fail_msg("%s, %s, step %d: %.9g, want %.9g", name, part[2], step, tensor_item(value), want[step]);
        tensor_scope_close(inner);
    }
    optim_free(opt);
    tensor_scope_close(scope);
    nn_free(net), nn_free(loss);
}

/* What is in no net of training.py. */
static const char *const untrained[] = {
    "Sequential",                                                 /* each net is one */
    "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", /* they have no forward */
};

static void check_coverage(void)
{
    assert_true(nn_kind_count() <= MOST_KINDS);
    for (int i = 0; i < nn_kind_count(); i++) {
        const NNKind *kind = nn_kind_at(i);
        bool excused = kind->samples != NULL; /* PyTorch has no such module */
        for (size_t k = 0; k < sizeof untrained / sizeof *untrained; k++)
            excused |= strcmp(untrained[k], kind->name) == 0;
        if (trained[i] == excused) fail_msg("%s is in %s net", kind->name, trained[i] ? "a" : "no");
    }
}

static void families(void **state)
{
    (void)state;
    const int64_t before = tensor_live_count();
    KindFile f = kind_open("test/oracle/kinds/training.golden");
    const char *rest;
    char *text = NULL, *part[PARTS];
    double *losses = NULL;
    int cases = 0;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        if (strcmp(word, "train") == 0) {
            text = strdup(rest);
            assert_non_null(text);
            part[0] = text;
            for (int i = 1; i < PARTS; i++) {
                part[i] = strchr(part[i - 1], '|');
                assert_non_null(part[i]);
                *part[i]++ = 0;
            }
        } else if (strcmp(word, "losses") == 0) {
            int64_t n;
            losses = kind_numbers(rest, &n);
            assert_int_equal(n, STEPS);
        } else if (strcmp(word, "state") == 0) {
            char name[300];
            snprintf(name, sizeof name, "%s", text);
            train(name, part, losses, rest);
            free(text), free(losses);
            cases++;
        }
    }
    kind_close(&f);
    assert_true(cases > 60);
    check_coverage();
    assert_int_equal(tensor_live_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(families) };
    return cmocka_run_group_tests_name("families of modules", tests, NULL, NULL);
}
