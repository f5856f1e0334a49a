/* test_queue.c - a device that queues its work: what waits for it, and what is told late.  On emu:0, whose
 * runtime counts what it is asked for (test/cuemu). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include "cuemu/counts.h"
#include "plugin_folder.h"
#include <tapegrad/cmocka.h>

static Tensor *pattern(TensorShape shape, TensorDtype dtype)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    Tensor *x = tensor_sin(tensor_arange(0, (double)n, 1, TENSOR_F64));
    return tensor_to_device(tensor_to(tensor_reshape(x, shape), dtype), "emu:0");
}

/* Queued, then told by the next wait, with the value, its place and the call; or at once. */
static void bad_targets_and_indices(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const int64_t bad[3] = { 0, 7, 1 };
    Tensor *t = tensor_to_device(tensor_from_data(bad, SHAPE(3), TENSOR_I64), "emu:0"),
           *x = pattern(SHAPE(3, 4), TENSOR_F32);
    for (int at_once = 0; at_once < 2; at_once++) {
        setenv("TAPEGRAD_CUDA_SYNC", at_once ? "1" : "0", 1);
        for (int which = 0; which < 3; which++) {
            Tensor *y = which == 0   ? tensor_cross_entropy(x, t)
                        : which == 1 ? tensor_index_select(x, 0, t)
                                     : tensor_index_add(x, 0, t, x);
            assert_true(at_once ? y == NULL : y && !tensor_error());
            if (!at_once) assert_int_equal(tensor_synchronize("emu:0"), -1);
            assert_int_equal(tensor_error_code(), TENSOR_EINDEX);
            assert_non_null(strstr(tensor_error(), "7 at position"));
            assert_non_null(strstr(tensor_error(), which == 0   ? "tensor_cross_entropy"
                                                   : which == 1 ? "tensor_index_select"
                                                                : "tensor_index_add"));
            assert_non_null(strstr(tensor_error(), "test_queue.c"));
            tensor_error_clear();
            assert_int_equal(tensor_synchronize("emu:0"), 0);
        }
    }
    unsetenv("TAPEGRAD_CUDA_SYNC");
    assert_true(tensor_item(tensor_sum(x)) < 4);
    tensor_scope_close(scope);
}

/* The device keeps notes of the last calls only: of an older one it tells the value and its place. */
static void a_fault_of_long_ago(void **state)
{
    (void)state;
    const int64_t bad[3] = { 0, 7, 1 }, good[3] = { 0, 2, 1 };
    for (int calls = 255; calls <= 256; calls++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = pattern(SHAPE(3, 4), TENSOR_F32),
               *wrong = tensor_to_device(tensor_from_data(bad, SHAPE(3), TENSOR_I64), "emu:0"),
               *right = tensor_to_device(tensor_from_data(good, SHAPE(3), TENSOR_I64), "emu:0");
        assert_non_null(tensor_index_select(x, 0, wrong));
        for (int i = 0; i < calls; i++) assert_non_null(tensor_index_select(x, 0, right));
        assert_int_equal(tensor_synchronize("emu:0"), -1);
        assert_int_equal(tensor_error_code(), TENSOR_EINDEX);
        const char *text = tensor_error();
        assert_non_null(strstr(text, "index 7 at position 1 "));
        assert_true((strstr(text, "tensor_index_select") && strstr(text, "want 0 to 2")) == (calls < 256));
        assert_true((strstr(text, "of a call long ago") != NULL) == (calls == 256));
        tensor_error_clear();
        assert_int_equal(tensor_synchronize("emu:0"), 0);
        tensor_scope_close(scope);
    }
}

/* What the emulated runtime was asked for. */
static struct CuemuCounts counts_now(void)
{
    char path[PATH_MAX];
    struct CuemuCounts (*counts)(void);
    snprintf(path, sizeof path, "%s/libtapegrad_emu.so", getenv("TAPEGRAD_PLUGIN_DIR"));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(plugin);
    *(void **)&counts = dlsym(plugin, "cuemu_counts");
    assert_non_null(counts);
    const struct CuemuCounts now = counts();
    dlclose(plugin);
    return now;
}

/* A step of a net of tokens, from the embedding over causal attention to AdamW: nothing waits. */
static void a_step_never_waits(void **state)
{
    (void)state;
    enum { VOCABULARY = 11, WIDTH = 8 };
    struct CuemuCounts before = { 0 }, after;
    Module *net = nn_sequential(
        nn_sequential(nn_embedding(VOCABULARY, WIDTH), nn_layer_norm(WIDTH)),
        nn_sequential(nn_linear(WIDTH, WIDTH), nn_gelu(), nn_dropout(0.1), nn_linear(WIDTH, VOCABULARY)));
    assert_non_null(net);
    assert_int_equal(nn_to_device(net, "emu:0"), 0);
    Optimizer *opt = optim_adamw(nn_parameters(net), .lr = 1e-3);
    TensorScope scope = tensor_scope_open();
    const int64_t ids[6] = { 1, 4, 10, 0, 3, 3 };
    Tensor *x = tensor_to_device(tensor_from_data(ids, SHAPE(2, 3), TENSOR_I64), "emu:0"), *loss = NULL;
    const int64_t fallbacks = tensor_host_fallbacks();
    for (int step = 0; step < 3; step++) {
        before = counts_now();
        Tensor *h = nn_forward(nn_get_module(net, "0"), x);
        h = tensor_add(h, tensor_scaled_dot_product_attention(h, h, h, .is_causal = true));
        h = nn_forward(nn_get_module(net, "1"), h);
        loss = tensor_cross_entropy(tensor_reshape(h, SHAPE(6, VOCABULARY)), tensor_reshape(x, SHAPE(6)));
        optim_zero_grad(opt);
        assert_int_equal(tensor_backward(loss), 0);
        assert_non_null(nn_clip_grad_norm_(nn_parameters(net), 1.0));
        assert_int_equal(optim_step(opt), 0);
    }
    after = counts_now();
    assert_int_equal(after.waits, before.waits);
    assert_int_equal(after.to_device, before.to_device);
    assert_int_equal(after.to_host, before.to_host);
    assert_int_equal(tensor_host_fallbacks(), fallbacks);
    assert_true(isfinite(tensor_item(loss)));
    tensor_scope_close(scope);
    optim_free(opt);
    nn_free(net);
}

/* Many copies, more than the ring of pinned memory holds, from memory that changes at once. */
static void copies_are_taken(void **state)
{
    (void)state;
    enum { N = 3 << 20, TIMES = 4 };
    TensorScope scope = tensor_scope_open();
    Tensor *there[TIMES], *here = tensor_zeros(SHAPE(N), TENSOR_F32);
    for (int i = 0; i < TIMES; i++) {
        tensor_fill_(here, i + 1);
        there[i] = tensor_to_device(here, "emu:0");
        assert_non_null(there[i]);
    }
    for (int i = 0; i < TIMES; i++) {
        Tensor *back = tensor_to_device(there[i], "cpu");
        assert_true(tensor_item(tensor_amin(back)) == i + 1 && tensor_item(tensor_amax(back)) == i + 1);
    }
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_targets_and_indices),
        cmocka_unit_test(a_fault_of_long_ago),
        cmocka_unit_test(a_step_never_waits),
        cmocka_unit_test(copies_are_taken),
    };
    set_plugin_folder("");
    return cmocka_run_group_tests_name("queued work", tests, NULL, NULL);
}
