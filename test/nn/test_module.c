/* test_module.c - modules as a tree: names, ownership, tied and shared parts, state dicts, the summary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>

static int64_t live; /* tensors before the test */

static int remember(void **state)
{
    (void)state;
    live = tensor_live_count();
    return 0;
}

static int nothing_left(void **state)
{
    (void)state;
    if (tensor_error()) print_error("%s\n", tensor_error());
    return tensor_error() || tensor_live_count() != live ? -1 : 0;
}

/* ---- names, tied and shared parts ------------------------------------------------------------ */

static void assert_names(TensorDict d, const char *const *want, int n)
{
    assert_int_equal(d.count, n);
    for (int i = 0; i < n; i++) assert_string_equal(d.item[i].name, want[i]);
}

static void names(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *net = nn_sequential(nn_conv2d(1, 2, 3, .bias = false), nn_batch_norm2d(2), nn_relu(),
                                nn_sequential(nn_linear(2, 1)));
    static const char *const parameters[] = { "0.weight", "1.weight", "1.bias", "3.0.weight", "3.0.bias" };
    static const char *const all[] = { "0.weight",       "1.weight",      "1.bias",
                                       "1.running_mean", "1.running_var", "1.num_batches_tracked",
                                       "3.0.weight",     "3.0.bias" };
    assert_names(nn_named_parameters(net), parameters, 5);
    assert_names(nn_state_dict(net), all, 8);
    assert_names(nn_state_dict(net), all, 8);
    assert_int_equal(nn_parameters(net).count, 5);
    assert_int_equal(nn_num_parameters(net), 18 + 4 + 3);
    assert_ptr_equal(nn_get(net, "3.0.bias"), nn_get_module(net, "3.0")->parameters[1].tensor);
    assert_int_equal(tensor_dtype(nn_get(net, "1.num_batches_tracked")), TENSOR_I64);
    assert_true(tensor_shares_storage(nn_dict_get(nn_state_dict(net), "0.weight"), nn_get(net, "0.weight")));
    assert_false(tensor_requires_grad(nn_dict_get(nn_state_dict(net), "0.weight")));
    assert_null(nn_dict_get(nn_state_dict(net), "weight"));
    const char *const wrong[] = { "3.0", "", "3.1.bias", "weight", "0.weight.x", "." };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_tensor_error(nn_get(net, wrong[i]), TENSOR_EINDEX);
    assert_tensor_error(nn_get_module(net, "4"), TENSOR_EINDEX);
    assert_ptr_equal(nn_get_module(net, ""), net);
    nn_free(net);
    tensor_scope_close(scope);
}

static void tied(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *net = nn_sequential(nn_embedding(5, 3), nn_linear(3, 5, .bias = false));
    nn_register_parameter(nn_get_module(net, "1"), "weight", nn_get(net, "0.weight"));
    assert_int_equal(nn_parameters(net).count, 1);
    assert_int_equal(nn_num_parameters(net), 15);
    assert_int_equal(nn_named_parameters(net).count, 1);
    assert_int_equal(nn_state_dict(net).count, 2);
    Tensor *index = tensor_randint(0, 5, SHAPE(4));
    tensor_backward(tensor_sum(nn_forward(net, index)));
    assert_non_null(tensor_grad(nn_get(net, "1.weight")));
    assert_int_equal(nn_to(net, TENSOR_F64), 0);
    assert_ptr_equal(nn_get(net, "0.weight"), nn_get(net, "1.weight"));
    assert_int_equal(tensor_dtype(tensor_grad(nn_get(net, "0.weight"))), TENSOR_F64);
    assert_true(tensor_requires_grad(nn_get(net, "0.weight")));
    assert_non_null(nn_forward(net, index));
    Optimizer *opt = optim_sgd(nn_parameters(net));
    assert_int_equal(opt->group[0].count, 1);
    optim_free(opt);
    nn_free(net);
    tensor_scope_close(scope);
}

static void shared(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *inner = nn_linear(2, 2),
           *net = nn_sequential(inner, nn_retain(inner), nn_sequential(nn_retain(inner)));
    assert_non_null(net);
    assert_int_equal(nn_parameters(net).count, 2);
    assert_int_equal(nn_state_dict(net).count, 6);
    assert_int_equal(nn_to(net, TENSOR_F64), 0);
    assert_non_null(nn_forward(net, tensor_ones(SHAPE(1, 2), TENSOR_F64)));
    nn_free(inner); /* not the caller's any more */
    assert_status_error(-1, TENSOR_EVALUE);
    Module *other = nn_new_size(sizeof(Module), "Other", NULL);
    assert_null(nn_child(other, "again", inner)); /* without nn_retain */
    assert_status_error(-1, TENSOR_EVALUE);
    assert_null(nn_done(other));
    nn_retain(inner);
    nn_free(net);
    assert_int_equal(nn_num_parameters(inner), 6);
    nn_free(inner);
    tensor_scope_close(scope);
}

static void ownership_errors(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *m = nn_new_size(sizeof(Module), "M", NULL);
    nn_child(m, "a", nn_relu());
    nn_child(m, "a", nn_tanh()); /* replaces */
    assert_int_equal(m->child_count, 1);
    assert_string_equal(nn_get_module(m, "a")->type, "Tanh");
    assert_tensor_error(nn_forward(m, tensor_ones(SHAPE(1), TENSOR_F32)), TENSOR_EVALUE);
    assert_ptr_equal(nn_done(m), m);
#define FAILS(call, code)                                                                 \
    do {                                                                                  \
        Module *n = nn_new_size(sizeof(Module), "N", NULL);                               \
        nn_child(n, "part", nn_linear(2, 2));                                             \
        assert_null(call);                                                                \
        assert_null(nn_child(n, "after", nn_relu()));                                     \
        assert_null(nn_register_parameter(n, "late", tensor_ones(SHAPE(1), TENSOR_F32))); \
        assert_null(nn_done(n));                                                          \
        assert_status_error(-1, code);                                                    \
    } while (0)
    FAILS(nn_child(n, "b", NULL), TENSOR_ENULL);
    FAILS(nn_child(n, "", nn_relu()), TENSOR_EVALUE);
    FAILS(nn_child(n, "b.c", nn_relu()), TENSOR_EVALUE);
    FAILS(nn_child(n, NULL, nn_relu()), TENSOR_EVALUE);
    FAILS(nn_child(n, "itself", n), TENSOR_EVALUE);
    FAILS(nn_register_parameter(n, "part", tensor_ones(SHAPE(1), TENSOR_F32)), TENSOR_EVALUE);
    FAILS(nn_register_parameter(n, "p", NULL), TENSOR_ENULL);
    FAILS(nn_register_parameter(n, "p", tensor_ones(SHAPE(1), TENSOR_I64)), TENSOR_EDTYPE);
    FAILS(nn_register_parameter(
              n, "p", tensor_square(tensor_requires_grad_(tensor_ones(SHAPE(1), TENSOR_F32), true))),
          TENSOR_EGRAD);
    FAILS(nn_register_buffer(n, "b", NULL), TENSOR_ENULL);
    FAILS(nn_register_buffer(n, "part", tensor_ones(SHAPE(1), TENSOR_F32)), TENSOR_EVALUE);
    /* a name is of one sort; of its own sort it replaces */
    Tensor *one = tensor_ones(SHAPE(1), TENSOR_F32);
    FAILS(((void)nn_register_buffer(n, "x", one), nn_child(n, "x", nn_relu())), TENSOR_EVALUE);
    FAILS(((void)nn_register_buffer(n, "x", one), nn_register_parameter(n, "x", one)), TENSOR_EVALUE);
    FAILS(((void)nn_register_parameter(n, "x", one), nn_child(n, "x", nn_relu())), TENSOR_EVALUE);
    FAILS(((void)nn_register_parameter(n, "x", one), nn_register_buffer(n, "x", one)), TENSOR_EVALUE);
    Module *twice = nn_new_size(sizeof(Module), "N", NULL);
    nn_register_buffer(twice, "x", one);
    nn_register_buffer(twice, "x", tensor_zeros(SHAPE(2), TENSOR_F32));
    assert_ptr_equal(nn_done(twice), twice);
    assert_int_equal(tensor_numel(nn_get(twice, "x")), 2);
    nn_free(twice);
#undef FAILS
    assert_null((nn_child)(NULL, "x", nn_linear(1, 1)));
    assert_status_error(-1, TENSOR_ENULL);
    nn_free(m), nn_free(NULL);
    assert_null((nn_done)(NULL));
    assert_tensor_error(nn_forward(NULL, tensor_ones(SHAPE(1), TENSOR_F32)), TENSOR_ENULL);
    m = nn_linear(1, 1);
    assert_tensor_error(nn_forward(m, NULL), TENSOR_ENULL);
    nn_free(m);
    tensor_scope_close(scope);
}

/* ---- all at once ----------------------------------------------------------------------------- */

static void list_types(Module *m, void *ctx)
{
    strcat(ctx, m->type);
    strcat(ctx, " ");
}

static void over_the_tree(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *net = nn_sequential(nn_linear(2, 2), nn_sequential(nn_relu(), nn_dropout()));
    char text[100] = "";
    nn_apply(net, list_types, text);
    assert_string_equal(text, "Linear ReLU Dropout Sequential Sequential ");
    nn_eval(net);
    assert_false(net->training || nn_get_module(net, "1.1")->training);
    nn_train(net, true);
    assert_true(net->training && nn_get_module(net, "1.1")->training);
    tensor_backward(tensor_sum(nn_forward(net, tensor_ones(SHAPE(1, 2), TENSOR_F32))));
    assert_non_null(tensor_grad(nn_get(net, "0.weight")));
    nn_zero_grad(net);
    assert_null(tensor_grad(nn_get(net, "0.weight")));
    nn_requires_grad_(net, false);
    assert_false(tensor_requires_grad(nn_forward(net, tensor_ones(SHAPE(1, 2), TENSOR_F32))));
    assert_status_error(nn_to(net, TENSOR_I64), TENSOR_EDTYPE);
    assert_status_error(nn_to_device(net, "abacus"), TENSOR_EDEVICE);
    assert_int_equal(nn_to_device(net, "cpu"), 0);
    nn_free(net);
    tensor_scope_close(scope);
}

/* A parameter may be a view of something else, weight_norm's magnitudes are: an optimizer made before trains
 * it after nn_to.  A buffer that has a history is refused before anything changes. */
static void views_and_histories_convert(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(1);
    Module *net = nn_weight_norm(nn_linear(3, 2));
    Tensor *base = tensor_ones(SHAPE(4), TENSOR_F32);
    Tensor *part = nn_register_parameter(net, "part", tensor_narrow(base, 0, 0, 2));
    Optimizer *opt = optim_sgd(nn_parameters(net), .lr = .1, .momentum = .9);
    for (int k = 0; k < 3; k++) {
        const TensorDtype dtype = k ? TENSOR_F64 : TENSOR_F32;
        assert_int_equal(nn_to(net, dtype), 0);
        Tensor *y = nn_forward(net, tensor_ones(SHAPE(2, 3), dtype)),
               *was = tensor_clone(nn_get(net, "weight"));
        optim_zero_grad(opt);
        tensor_backward(tensor_add(tensor_sum(tensor_square(y)), tensor_sum(tensor_square(part))));
        assert_int_equal(optim_step(opt), 0);
        assert_false(tensor_equal(was, nn_get(net, "weight")));
    }
    assert_int_equal(tensor_dtype(part), TENSOR_F64);
    nn_register_buffer(net, "history", tensor_square(part));
    assert_status_error(nn_to(net, TENSOR_F32), TENSOR_EGRAD);
    assert_int_equal(tensor_dtype(nn_get(net, "bias")), TENSOR_F64);
    optim_free(opt), nn_free(net);
    tensor_scope_close(scope);
}

/* ---- state dicts ----------------------------------------------------------------------------- */

static Module *two_layers(void) { return nn_sequential(nn_linear(3, 2), nn_batch_norm1d(2)); }

static void load(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *a = two_layers(), *b = two_layers();
    nn_forward(a, tensor_randn(SHAPE(4, 3), TENSOR_F32));
    assert_int_equal(nn_load_state_dict(b, nn_state_dict(a)), 0);
    assert_true(tensor_equal(nn_get(a, "0.weight"), nn_get(b, "0.weight")) &&
                tensor_equal(nn_get(a, "1.running_var"), nn_get(b, "1.running_var")));
    assert_false(tensor_shares_storage(nn_get(a, "0.weight"), nn_get(b, "0.weight")));
    assert_int_equal(tensor_item_i64(nn_get(b, "1.num_batches_tracked")), 1);
    TensorDict kept = nn_dict_clone(nn_state_dict(a));
    nn_init_zeros_(nn_get(a, "0.weight"));
    assert_int_equal(nn_to(a, TENSOR_F64), 0);
    assert_int_equal(nn_load_state_dict(a, kept), 0); /* casts */
    assert_true(tensor_equal(tensor_to(nn_get(a, "0.weight"), TENSOR_F32), nn_get(b, "0.weight")));
    assert_true(tensor_requires_grad(nn_get(a, "0.weight")) && tensor_is_leaf(nn_get(a, "0.weight")));
    nn_dict_free(kept);
    nn_free(a), nn_free(b);
    tensor_scope_close(scope);
}

static void assert_refusal(Module *m, TensorDict d, bool strict, TensorStatus code, const char *text)
{
    TensorScope scope = tensor_scope_open();
    TensorDict before = nn_dict_clone(nn_state_dict(m));
    assert_int_equal(nn_load_state_dict(m, d, strict), -1);
    if (text && !strstr(tensor_error(), text)) fail_msg("%s\n\nlacks: %s", tensor_error(), text);
    assert_status_error(-1, code);
    for (int i = 0; i < before.count; i++)
        assert_true(tensor_equal(before.item[i].tensor, nn_get(m, before.item[i].name)));
    nn_dict_free(before);
    tensor_scope_close(scope);
}

static void load_errors(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *m = two_layers();
    TensorDict d = { 0 };
    nn_dict_set(&d, "0.weight", tensor_ones(SHAPE(2, 3), TENSOR_F32));
    nn_dict_set(&d, "0.bias", tensor_ones(SHAPE(3), TENSOR_F32));
    nn_dict_set(&d, "head", tensor_ones(SHAPE(1), TENSOR_F32));
    assert_refusal(m, d, true, TENSOR_ESHAPE,
                   "nn_load_state_dict: Sequential; missing: 1.weight, 1.bias, 1.running_mean, "
                   "1.running_var; unexpected: head; shapes: 0.bias is [2], given [3]");
    assert_refusal(m, d, false, TENSOR_ESHAPE,
                   "nn_load_state_dict: Sequential; shapes: 0.bias is [2], given [3]");
    nn_dict_set(&d, "0.bias", tensor_ones(SHAPE(2), TENSOR_F64));
    assert_int_equal(d.count, 3);
    assert_refusal(m, d, true, TENSOR_EVALUE, "unexpected: head");
    assert_int_equal(nn_load_state_dict(m, d, .strict = false), 0);
    assert_true(tensor_get(nn_get(m, "0.bias"), DIMS(1)) == 1);
    char name[32];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "unknown.%d", i);
        nn_dict_set(&d, name, tensor_ones(SHAPE(1), TENSOR_F32));
    }
    assert_refusal(m, d, true, TENSOR_EVALUE, "unknown.98, unknown.99\n"); /* all of them */
    assert_refusal(m, nn_state_dict(NULL), true, TENSOR_ENULL, NULL);
    assert_status_error(nn_dict_set(&d, "x", NULL), TENSOR_ENULL);
    assert_int_equal(nn_dict_clone(nn_named_parameters(NULL)).count, -1);
    assert_status_error(-1, TENSOR_ENULL);
    nn_dict_free(d);
    nn_dict_free(nn_state_dict(NULL));
    assert_status_error(-1, TENSOR_ENULL);
    nn_free(m);
    tensor_scope_close(scope);
}

/* The n-th allocation fails, at every height of the scope's stack, so that its growth is among them. */
static void load_is_all_or_nothing(void **state)
{
    (void)state;
    enum { HEIGHTS = 1100 };
    TensorScope outer = tensor_scope_open();
    Module *m = nn_linear(2, 2), *other = nn_linear(2, 2);
    TensorDict was = nn_dict_clone(nn_state_dict(m)), dict = nn_dict_clone(nn_state_dict(other));
    for (int height = 0; height < HEIGHTS; height++)
        for (int n = 1, failed = 1; failed; n++) {
            TensorScope scope = tensor_scope_open();
            for (int i = 0; i < height; i++) tensor_scope_return(tensor_scope_open(), dict.item[0].tensor);
            tensor_debug_fail_allocation(n, false);
            const int status = nn_load_state_dict(m, dict);
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            tensor_scope_close(scope);
            if (status) assert_status_error(status, TENSOR_ENOMEM);
            const TensorDict wanted = status ? was : dict, found = nn_state_dict(m);
            for (int i = 0; i < wanted.count; i++)
                assert_true(tensor_equal(found.item[i].tensor, wanted.item[i].tensor));
            assert_int_equal(nn_load_state_dict(m, was), 0);
        }
    nn_dict_free(was), nn_dict_free(dict);
    nn_free(m), nn_free(other);
    tensor_scope_close(outer);
}

static void buffers(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *m = nn_new_size(sizeof(Module), "M", NULL);
    nn_register_buffer(m, "kept", tensor_ones(SHAPE(1), TENSOR_F32));
    nn_register_buffer(m, "mask", tensor_ones(SHAPE(1), TENSOR_BOOL), .persistent = false);
    assert_ptr_equal(nn_done(m), m);
    assert_int_equal(nn_state_dict(m).count, 1);
    assert_int_equal(nn_parameters(m).count, 0);
    assert_int_equal(nn_to(m, TENSOR_F16), 0);
    assert_int_equal(tensor_dtype(nn_get(m, "kept")), TENSOR_F16);
    assert_int_equal(tensor_dtype(nn_get(m, "mask")), TENSOR_BOOL);
    nn_free(m);
    tensor_scope_close(scope);
}

/* ---- summary --------------------------------------------------------------------------------- */

/* Has its buffer from its first forward on. */
static Tensor *counts(Module *m, Tensor *x)
{
    if (!nn_has(m, "times")) nn_register_buffer(m, "times", tensor_zeros(SHAPE(1), TENSOR_F32));
    tensor_add_scalar_(nn_get(m, "times"), 1);
    return tensor_clone(x);
}

static void summary(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *shared_relu = nn_relu();
    Module *net = nn_sequential(
        nn_conv2d(1, 16, 3, .padding = 1), nn_batch_norm2d(16), shared_relu, nn_max_pool2d(2),
        nn_sequential(nn_flatten(), nn_linear(16 * 14 * 14, 10), nn_retain(shared_relu)), nn_dropout());
    nn_requires_grad_(nn_get_module(net, "0"), false);
    TensorDict before = nn_dict_clone(nn_state_dict(net));
    nn_eval(nn_get_module(net, "1"));
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_int_equal(nn_summary(net, SHAPE(2, 1, 28, 28), file), 0);
    fclose(file);
    static const char want[] =
        "================================================================================\n"
        "Layer (type)                              Output shape                Parameters\n"
        "================================================================================\n"
        "Sequential                                [2, 10]                             --\n"
        "  0 (Conv2d)                              [2, 16, 28, 28]                    160\n"
        "  1 (BatchNorm2d)                         [2, 16, 28, 28]                     32\n"
        "  2 (ReLU)                                [2, 16, 28, 28]                      0\n"
        "  3 (MaxPool2d)                           [2, 16, 14, 14]                      0\n"
        "  4 (Sequential)                          [2, 10]                             --\n"
        "    0 (Flatten)                           [2, 3136]                            0\n"
        "    1 (Linear)                            [2, 10]                         31,370\n"
        "    2 (ReLU)                              [2, 10]                        (again)\n"
        "  5 (Dropout)                             [2, 10]                              0\n"
        "================================================================================\n"
        "Total parameters: 31,562\n"
        "Trainable: 31,402\n"
        "Not trainable: 160\n"
        "Size: 0.13 MB\n"
        "================================================================================\n";
    assert_string_equal(text, want);
    free(text);
    assert_true(net->training && !nn_get_module(net, "1")->training && nn_get_module(net, "5")->training);
    for (int i = 0; i < before.count; i++)
        assert_true(tensor_equal(before.item[i].tensor, nn_get(net, before.item[i].name)));
    assert_status_error(nn_summary(net, SHAPE(2, 3, 28, 28), stdout), TENSOR_ESHAPE);
    file = open_memstream(&text, &size);
    assert_int_equal(nn_summary(net, .file = file), 0);
    fclose(file);
    assert_non_null(
        strstr(text, "    1 (Linear)                            --                              31,370\n"));
    free(text);
    Module *lazy = nn_sequential(nn_lazy_conv2d(4, 3), nn_flatten(), nn_lazy_linear(2));
    file = open_memstream(&text, &size); /* what a lazy module has is known once it ran */
    assert_int_equal(nn_summary(lazy, SHAPE(1, 3, 8, 8), file), 0);
    fclose(file);
    assert_non_null(
        strstr(text, "  0 (Conv2d)                              [1, 4, 6, 6]                       112\n"));
    assert_non_null(
        strstr(text, "  2 (Linear)                              [1, 2]                             290\n"));
    assert_non_null(strstr(text, "Total parameters: 402\n"));
    free(text), nn_free(lazy);
    /* a run that makes buffers, and weights from random numbers */
    Module *made = nn_sequential(nn_lazy_linear(8), nn_lazy_batch_norm1d(), nn_new(Module, "Counts", counts));
    file = open_memstream(&text, &size);
    tensor_manual_seed(1);
    assert_int_equal(nn_summary(made, SHAPE(4, 3), file), 0);
    assert_null(tensor_error());
    Tensor *next = tensor_rand(SHAPE(8, 3), TENSOR_F32);
    assert_int_equal(nn_summary(made, SHAPE(4, 3), file), 0);
    Tensor *after = tensor_rand(SHAPE(2), TENSOR_F32);
    assert_true(tensor_item(nn_get(made, "2.times")) == 1); /* the second run is undone */
    tensor_manual_seed(1);
    assert_false(tensor_equal(next, tensor_rand(SHAPE(8, 3), TENSOR_F32)));
    tensor_rand(SHAPE(8), TENSOR_F32); /* with those before, what the weight and the bias took */
    assert_true(tensor_equal(next, tensor_rand(SHAPE(8, 3), TENSOR_F32)));
    assert_true(tensor_equal(after, tensor_rand(SHAPE(2), TENSOR_F32)));
    fclose(file), free(text), nn_free(made);
    assert_status_error(nn_summary(NULL, SHAPE(2)), TENSOR_ENULL);
    assert_true(net->training);
    nn_dict_free(before);
    nn_free(net);
    tensor_scope_close(scope);
}

static void test_modes_come_back(void **state)
{
    (void)state;
    Module *net = nn_sequential(nn_linear(2, 2), nn_sequential(nn_dropout(0.5), nn_relu()));
    nn_get_module(net, "1.0")->training = false;
    bool *modes = nn_modes(net);
    assert_non_null(modes);
    nn_eval(net);
    assert_false(net->training || nn_get_module(net, "1")->training);
    nn_restore_modes(net, modes);
    assert_true(net->training && nn_get_module(net, "1.1")->training);
    assert_false(nn_get_module(net, "1.0")->training);
    assert_null(nn_modes(NULL));
    assert_int_equal(strncmp(tensor_error(), "nn_modes: ", 10), 0);
    assert_status_error(-1, TENSOR_ENULL);
    nn_restore_modes(net, NULL);
    nn_free(net);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, remember, nothing_left)
    const struct CMUnitTest tests[] = {
        TEST(test_modes_come_back),
        TEST(names),
        TEST(tied),
        TEST(shared),
        TEST(ownership_errors),
        TEST(over_the_tree),
        TEST(load),
        TEST(load_errors),
        TEST(buffers),
        TEST(summary),
        TEST(load_is_all_or_nothing),
        TEST(views_and_histories_convert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
