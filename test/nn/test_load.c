/* test_load.c - state dicts of others: their names made ours, and what does not fit, all in one message. */
#include <stdio.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>

static Module *block(void)
{
    return nn_module_dict({ "norm1", nn_layer_norm(2) }, { "attn", nn_multihead_attention(2, 1) });
}

static Module *gpt(void)
{
    return nn_module_dict({ "wte", nn_embedding(3, 2) }, { "blocks", nn_module_list(block(), block()) });
}

/* The dict under the names, and in the layouts, of GPT-2's published one. */
static TensorDict published(Module *m)
{
    static const char *const names[][2] = {
        { "blocks.", "h." }, { "norm1.", "ln_1." }, { "in_proj_", "c_attn." }, { "out_proj.", "c_proj." }
    };
    TensorDict own = nn_state_dict(m), dict = { 0 };
    for (int i = 0; i < own.count; i++) {
        char name[100] = "module.", *at = name + 7;
        strcpy(at, own.item[i].name);
        for (size_t k = 0; k < 4; k++) {
            char rest[100], *found = strstr(at, names[k][0]);
            if (!found) continue;
            strcpy(rest, found + strlen(names[k][0]));
            *found = 0;
            strcat(strcat(at, names[k][1]), rest);
        }
        Tensor *t = tensor_clone(own.item[i].tensor);
        bool conv1d = strstr(name, "c_") && tensor_ndim(t) == 2;
        nn_dict_set(&dict, name, conv1d ? tensor_contiguous(tensor_transpose(t, 0, 1)) : t);
    }
    nn_dict_set(&dict, "module.h.0.attn.bias", tensor_ones(SHAPE(1, 1, 4, 4), TENSOR_F32));
    return dict;
}

static void published_names(void **state)
{
    (void)state;
    tensor_manual_seed(1);
    Module *from = gpt(), *to = gpt();
    TensorDict dict = published(from);
    assert_true(nn_dict_get(dict, "module.h.1.attn.c_attn.weight") != NULL);
    assert_int_equal(
        nn_load_state_dict(
            to, dict,
            .names = NN_NAMES(NN_RENAME("module.", ""), NN_RENAME("attn.bias", NULL),
                              NN_RENAME("h.*.ln_1", "blocks.*.norm1"), NN_RENAME("h", "blocks"),
                              NN_RENAME("c_attn.weight", "in_proj_weight", .transpose = true),
                              NN_RENAME("c_attn.bias", "in_proj_bias"),
                              NN_RENAME("c_proj.weight", "out_proj.weight", true), { "c_proj", "out_proj" })),
        0);
    TensorDict a = nn_state_dict(from), b = nn_state_dict(to);
    for (int i = 0; i < a.count; i++) assert_true(tensor_equal(a.item[i].tensor, b.item[i].tensor));
    nn_dict_free(dict);
    /* a prefix put before every name; what is left without a rule */
    Module *holder = nn_sequential(nn_linear(2, 3)), *one = nn_linear(2, 3);
    assert_int_equal(nn_load_state_dict(holder, nn_state_dict(one), .names = NN_NAMES({ "", "0." })), 0);
    assert_true(tensor_equal(nn_get(holder, "0.weight"), nn_get(one, "weight")));
    assert_int_equal(nn_load_state_dict(one, nn_state_dict(holder), .names = NN_NAMES({ "0.", "" })), 0);
    /* rules match whole parts only */
    assert_int_equal(
        nn_load_state_dict(one, nn_state_dict(one), .names = NN_NAMES({ "weig", "x" }, { "ght", "y" })), 0);
    nn_free(holder), nn_free(one), nn_free(from), nn_free(to);
}

static void what_does_not_fit(void **state)
{
    (void)state;
    Module *m = nn_sequential(nn_linear(2, 3), nn_linear(3, 3), nn_batch_norm1d(3));
    TensorDict before = nn_dict_clone(nn_state_dict(m)), dict = { 0 };
    nn_dict_set(&dict, "net.0.weight", tensor_zeros(SHAPE(2, 3), TENSOR_F32));
    nn_dict_set(&dict, "net.0.bias", tensor_zeros(SHAPE(3), TENSOR_F32));
    nn_dict_set(&dict, "net.3.bias", tensor_zeros(SHAPE(3), TENSOR_F32));
    assert_int_equal(nn_load_state_dict(m, dict, .names = NN_NAMES({ "net.", "" })), -1);
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    static const char *const parts[] = { "missing: 1.weight, 1.bias, 2.weight, 2.bias, 2.running_mean, 2.run",
                                         "unexpected: net.3.bias", "0.weight is [3, 2], given [2, 3]" };
    for (int i = 0; i < 3; i++)
        if (!strstr(tensor_error(), parts[i])) fail_msg("%s: without \"%s\"", tensor_error(), parts[i]);
    tensor_error_clear();
    TensorDict after = nn_state_dict(m);
    for (int i = 0; i < after.count; i++)
        assert_true(tensor_equal(before.item[i].tensor, after.item[i].tensor));
    assert_status_error(nn_load_state_dict(m, dict, .names = NN_NAMES({ "net.", "" }), .strict = false),
                        TENSOR_ESHAPE);
    /* two of one name, and names without end */
    assert_status_error(
        nn_load_state_dict(m, dict, .names = NN_NAMES({ "net.*.bias", "0.bias" }), .strict = false),
        TENSOR_EVALUE);
    static char longest[600];
    memset(longest, 'n', sizeof longest - 1);
    assert_status_error(nn_load_state_dict(m, dict, .names = NN_NAMES({ "net", longest }), .strict = false),
                        TENSOR_EVALUE);
    nn_dict_free(dict), nn_dict_free(before), nn_free(m);
}

static void copy_as(TensorDict *to, Module *from, const char *path, const char *name)
{
    nn_dict_set(to, name, nn_get(from, path));
}

/* A tied tensor under one of its names (published files of GPT-2 have no lm_head), and batch norms without
 * the count of batches (those of torchvision): neither is missing.  Whatever else is not there is. */
static void names_that_may_lack(void **state)
{
    (void)state;
    tensor_manual_seed(3);
    Module *net = nn_module_dict({ "wte", nn_embedding(5, 3) }, { "bn", nn_batch_norm1d(3) },
                                 { "lm_head", nn_linear(3, 5, .bias = false) });
    nn_register_parameter(nn_get_module(net, "lm_head"), "weight", nn_get(net, "wte.weight"));
    static const char *const norm[] = { "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var" };
    Tensor *w = tensor_randn(SHAPE(5, 3), TENSOR_F32);
    for (int k = 0; k < 2; k++) {
        TensorDict dict = { 0 }, missing;
        nn_dict_set(&dict, k ? "wte.weight" : "lm_head.weight", tensor_add_scalar(w, k));
        for (int i = 0; i < 4; i++) nn_dict_set(&dict, norm[i], tensor_full(SHAPE(3), i + k, TENSOR_F32));
        assert_int_equal(nn_load_state_dict(net, dict, .missing_keys = &missing), 0);
        assert_int_equal(missing.count, 0);
        assert_true(tensor_equal(nn_get(net, "wte.weight"), tensor_add_scalar(w, k)));
        assert_true(tensor_get(nn_get(net, "bn.running_var"), DIMS(2)) == 3 + k);
        nn_dict_free(dict), nn_dict_free(missing);
    }
    TensorDict dict = { 0 };
    for (int i = 0; i < 3; i++) nn_dict_set(&dict, norm[i], tensor_ones(SHAPE(3), TENSOR_F32));
    assert_int_equal(nn_load_state_dict(net, dict), -1);
    assert_non_null(strstr(tensor_error(), "missing: wte.weight, bn.running_var, lm_head.weight\n"));
    tensor_error_clear();
    nn_dict_free(dict), nn_free(net);
}

/* Files from before PyTorch had parametrizations: weight_g and weight_v as they are, others by rules. */
static void older_norms(void **state)
{
    (void)state;
    tensor_manual_seed(2);
    Module *from = nn_sequential(nn_weight_norm(nn_linear(3, 4)), nn_weight_norm(nn_linear(4, 4), .dim = -1)),
           *to = nn_sequential(nn_weight_norm(nn_linear(3, 4)), nn_weight_norm(nn_linear(4, 4), .dim = -1));
    TensorDict dict = { 0 };
    copy_as(&dict, from, "0.bias", "0.bias"), copy_as(&dict, from, "1.bias", "1.bias");
    for (int i = 0; i < 2; i++) {
        char path[60], name[60];
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "%d.parametrizations.weight.original%d", i, k);
            snprintf(name, sizeof name, "%d.weight_%c", i, "gv"[k]);
            copy_as(&dict, from, path, name);
        }
    }
    assert_int_equal(nn_load_state_dict(to, dict), 0);
    Tensor *x = tensor_ones(SHAPE(2, 3), TENSOR_F32);
    assert_true(tensor_equal(nn_forward(from, x), nn_forward(to, x)));
    nn_dict_free(dict), dict = (TensorDict){ 0 };
    copy_as(&dict, from, "0.parametrizations.weight.original1", "weight_v"); /* one of the two alone */
    copy_as(&dict, from, "0.bias", "bias");
    assert_status_error(nn_load_state_dict(nn_get_module(to, "0"), dict), TENSOR_EVALUE);
    nn_dict_free(dict), dict = (TensorDict){ 0 };
    nn_free(from), nn_free(to);
    from = nn_spectral_norm(nn_conv2d(2, 3, 3)), to = nn_spectral_norm(nn_conv2d(2, 3, 3));
    copy_as(&dict, from, "bias", "bias");
    copy_as(&dict, from, "parametrizations.weight.original", "weight_orig");
    copy_as(&dict, from, "parametrizations.weight.0._u", "weight_u");
    copy_as(&dict, from, "parametrizations.weight.0._v", "weight_v");
    assert_int_equal(
        nn_load_state_dict(to, dict,
                           .names = NN_NAMES({ "weight_orig", "parametrizations.weight.original" },
                                             { "weight_u", "parametrizations.weight.0._u" },
                                             { "weight_v", "parametrizations.weight.0._v" })),
        0);
    nn_eval(from), nn_eval(to);
    x = tensor_ones(SHAPE(1, 2, 4, 4), TENSOR_F32);
    assert_true(tensor_equal(nn_forward(from, x), nn_forward(to, x)));
    nn_dict_free(dict), nn_free(from), nn_free(to);
}

/* One message names them all; a list of 20 KB is cut, and says how many more there are. */
static void long_lists(void **state)
{
    (void)state;
    Module *m = nn_module_list_args(NULL, 0), *empty = nn_relu();
    for (int i = 0; i < 92; i++) nn_append(m, nn_linear(1, 1));
    const TensorDict none = { 0 }, all = nn_state_dict(m);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(k ? nn_load_state_dict(empty, all) : nn_load_state_dict(m, none), -1);
        const char *text = strstr(tensor_error(), k ? "; unexpected: " : "; missing: ");
        assert_non_null(text);
        for (int i = 0; i < all.count; i++) {
            char name[40];
            snprintf(name, sizeof name, "%s%s%s", i ? ", " : ": ", all.item[i].name, i < 183 ? "," : "\n");
            assert_non_null(strstr(text, name));
        }
        assert_null(strstr(text, " more"));
        assert_non_null(strstr(text, "test_load.c:")); /* the place comes after it */
        tensor_error_clear();
    }
    TensorDict many = { 0 };
    for (int i = 0; i < 3000; i++) {
        char name[40];
        snprintf(name, sizeof name, "names.without.end.%d", i);
        nn_dict_set(&many, name, nn_get(m, "0.bias"));
    }
    assert_int_equal(nn_load_state_dict(m, many), -1);
    const char *text = strstr(tensor_error(), "; unexpected: "), *more = strstr(text, ", and ");
    int named = 1, rest = 0;
    assert_true(text && more && more - text > 19000);
    for (const char *c = text; c < more; c++) named += *c == ',';
    assert_int_equal(sscanf(more, ", and %d more", &rest), 1);
    assert_int_equal(named + rest, 3000);
    assert_non_null(strstr(tensor_error(), "; missing: 0.weight"));
    tensor_error_clear();
    nn_dict_free(many), nn_free(m), nn_free(empty);
}

/* What was not loaded, as PyTorch returns it. */
static void lists_of_what_differs(void **state)
{
    (void)state;
    Module *m = nn_sequential(nn_linear(2, 3));
    TensorDict dict = { 0 }, missing, unexpected;
    Tensor *b = tensor_ones(SHAPE(3), TENSOR_F32);
    nn_dict_set(&dict, "m.0.bias", b), nn_dict_set(&dict, "m.head", b);
    for (int strict = 0; strict < 2; strict++) {
        assert_int_equal(nn_load_state_dict(m, dict, strict, .names = NN_NAMES({ "m.", "" }),
                                            .missing_keys = &missing, .unexpected_keys = &unexpected),
                         -strict);
        tensor_error_clear();
        assert_true(missing.count == 1 && unexpected.count == 1);
        assert_string_equal(missing.item[0].name, "0.weight");
        assert_string_equal(unexpected.item[0].name, "m.head");
        assert_ptr_equal(unexpected.item[0].tensor, b);
        nn_dict_free(missing), nn_dict_free(unexpected);
    }
    assert_true(tensor_equal(nn_get(m, "0.bias"), b));
    assert_int_equal(nn_load_state_dict(m, nn_state_dict(m), .missing_keys = &missing), 0);
    assert_true(missing.count == 0 && !missing.item);
    missing.count = 7;
    assert_status_error(nn_load_state_dict(NULL, dict, .missing_keys = &missing), TENSOR_ENULL);
    assert_int_equal(missing.count, 0);
    /* rules that match no name, and rules that make none of the module's */
    const NNRename *const wrong[] = { NN_NAMES({ "module.", "" }), NN_NAMES({ "m.", "n." }) };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nn_load_state_dict(m, dict, .strict = false, .names = wrong[i]), -1);
        assert_non_null(strstr(tensor_error(),
                               "Sequential; .names matched nothing; missing: 0.weight, 0.bias; "
                               "unexpected: m.0.bias, m.head"));
        assert_status_error(-1, TENSOR_EVALUE);
    }
    nn_dict_free(dict), nn_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { SCOPED(published_names),     SCOPED(what_does_not_fit),
                                        SCOPED(names_that_may_lack), SCOPED(older_norms),
                                        SCOPED(long_lists),          SCOPED(lists_of_what_differs) };
    return cmocka_run_group_tests_name("state dicts of others", tests, NULL, NULL);
}
