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
static const double tolerance = 1e-6;

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
    const NNKind *kind = nn_kind_find(name);
    if (!kind) fail_msg("%s: no such module", name);
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

/* All inputs go to the first layer. */
static Tensor *forward(Module *net, NNCallArgs x)
{
    x.module = net->children[0].module;
    Tensor *y = nn_call_args(x);
    for (int i = 1; i < net->child_count; i++) y = nn_forward(net->children[i].module, y);
    return y;
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

static void check_names(Module *net, const char *names)
{
    TensorDict dict = nn_state_dict(net);
    for (int i = 0; i < dict.count; i++) {
        const size_t length = strlen(dict.item[i].name);
        if (strncmp(names, dict.item[i].name, length) != 0 || (names[length] && names[length] != ' '))
            fail_msg("the state dict has %s, want %s", dict.item[i].name, names);
        names += length + (names[length] == ' ');
    }
    if (*names) fail_msg("the state dict lacks %s", names);
}

static void train(const char *name, char *part[PARTS], const double *want, const char *names)
{
    tensor_manual_seed(0);
    Module *net = net_of(part[0]), *loss = made(part[2]);
    check_names(net, names);
    TensorScope scope = tensor_scope_open();
    NNCallArgs x = { .module = net }, pair = { .module = loss };
    read_tensors(part[1], 0, x.in);
    read_tensors(part[3], 3, pair.in + 1);
    Optimizer *opt = optim_sgd(nn_parameters(net), .lr = atof(part[4]), .momentum = 0.9);
    tensor_manual_seed(1);
    for (int step = 0; step < STEPS; step++) {
        TensorScope inner = tensor_scope_open();
        pair.in[0] = forward(net, x);
        Tensor *value = nn_call_args(pair);
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
    assert_int_equal(tensor_live_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(families) };
    return cmocka_run_group_tests_name("families of modules", tests, NULL, NULL);
}
