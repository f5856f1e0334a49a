/* test_saved.c - what backward keeps: hooks of saved values, and checkpoints, whose gradients have the same
 * bits. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dirent.h>
#include <cmocka.h>
#include <tapegrad.h>

#define OK assert_string_equal(tensor_error() ? tensor_error() : "", "")

enum { WIDTH = 6 };

typedef struct Net {
    Tensor *w[3], *frozen;
} Net;

static Net net_new(void)
{
    Net net;
    for (int i = 0; i < 3; i++)
        net.w[i] = tensor_requires_grad_(tensor_randn(SHAPE(WIDTH, WIDTH), TENSOR_F32), true);
    net.frozen = tensor_randn(SHAPE(WIDTH), TENSOR_F32);
    return net;
}

static void no_grads(Net *net)
{
    for (int i = 0; i < 3; i++) tensor_set_grad(net->w[i], NULL);
}

/* Products, dropout, a softmax and a frozen factor: operands, results, masks are saved. */
static Tensor *block(Tensor **in, int n, void *ctx)
{
    const Net *net = ctx;
    assert_true(n >= 1);
    Tensor *h = tensor_tanh(tensor_matmul(in[0], net->w[0]));
    h = tensor_mul(tensor_dropout(h, .p = 0.3), net->frozen);
    if (n > 1 && in[1]) h = tensor_mul(h, in[1]);
    return tensor_softmax(tensor_matmul(h, net->w[1]), 1);
}

static Tensor *block_in_block(Tensor **in, int n, void *ctx)
{
    Tensor *h = tensor_sigmoid(tensor_checkpoint_list(block, ctx, TENSOR_LIST(in, n)));
    h = tensor_matmul(h, ((Net *)ctx)->w[2]);
    return tensor_exp(tensor_checkpoint(block, ctx, tensor_mul(h, h)));
}

static int two_results(Tensor *const *in, int n, Tensor **out, int m, void *ctx)
{
    assert_int_equal(m, 2);
    out[0] = block((Tensor **)(uintptr_t)in, n, ctx);
    out[1] = tensor_square(tensor_matmul(out[0], ((Net *)ctx)->w[2]));
    return out[1] ? 0 : -1;
}

typedef struct Grads {
    Tensor *value, *x, *y, *w[3];
} Grads;

typedef enum How { PLAIN, CHECKPOINT, HOOKED } How;

static Tensor *through(TensorFunction fn, Net *net, Tensor *x, Tensor *y, How how)
{
    if (how == CHECKPOINT) return tensor_checkpoint(fn, net, x, y);
    return fn((Tensor *[]){ x, y }, 2, net);
}

static Tensor *copy_of(Tensor *x) { return x ? tensor_clone(x) : NULL; }

static bool swept; /* by the last run */

/* Everything from the same seed.  x is the result of an op, y a leaf. */
static Grads run(TensorFunction fn, Net *net, How how, TensorSavedHooks hooks, bool autocast)
{
    Grads g = { NULL };
    tensor_manual_seed(11);
    Tensor *leaf = tensor_requires_grad_(tensor_randn(SHAPE(4, WIDTH), TENSOR_F32), true);
    Tensor *y = tensor_requires_grad_(tensor_randn(SHAPE(4, WIDTH), TENSOR_F32), true);
    no_grads(net);
    Tensor *out = NULL;
    TENSOR_SAVED_HOOKS(hooks)
    TENSOR_AUTOCAST(TENSOR_BF16, .enabled = autocast)
    {
        Tensor *x = tensor_sin(leaf);
        out = tensor_sum(tensor_to(tensor_mul(through(fn, net, x, y, how), x), TENSOR_F32));
    }
    tensor_rand(SHAPE(3), TENSOR_F32); /* the generator goes on, and is put back after the second run */
    swept = !tensor_backward(out);
    if (!swept) return g;
    g.value = copy_of(out), g.x = copy_of(tensor_grad(leaf)), g.y = copy_of(tensor_grad(y));
    for (int i = 0; i < 3; i++) g.w[i] = copy_of(tensor_grad(net->w[i]));
    return g;
}

static void assert_same(const Grads *a, const Grads *b)
{
    assert_true(tensor_equal(a->value, b->value));
    assert_true(tensor_equal(a->x, b->x));
    if (a->y) assert_true(tensor_equal(a->y, b->y));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(!a->w[i], !b->w[i]);
        if (a->w[i]) assert_true(tensor_equal(a->w[i], b->w[i]));
    }
}

static const TensorSavedHooks none;

/* ---- checkpoints ----------------------------------------------------------------------------- */

static void test_gradients_to_the_bit(void **unused)
{
    (void)unused;
    static const TensorFunction fns[] = { block, block_in_block };
    for (int f = 0; f < 2; f++)
        for (int autocast = 0; autocast < 2; autocast++) {
            TensorScope scope = tensor_scope_open();
            Net net = net_new();
            const Grads want = run(fns[f], &net, PLAIN, none, autocast),
                        got = run(fns[f], &net, CHECKPOINT, none, autocast);
            OK;
            assert_same(&want, &got);
            Tensor *next = tensor_rand(SHAPE(4), TENSOR_F32); /* the sequence went on as without */
            run(fns[f], &net, PLAIN, none, autocast);
            assert_true(tensor_equal(next, tensor_rand(SHAPE(4), TENSOR_F32)));
            tensor_scope_close(scope);
        }
}

static void test_less_is_kept(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    Tensor *x = tensor_sin(tensor_requires_grad_(tensor_randn(SHAPE(4000, WIDTH), TENSOR_F32), true));
    const int64_t before = tensor_tape_bytes(), one = (int64_t)4 * 4000 * WIDTH;
    TensorScope inner = tensor_scope_open();
    Tensor *y = tensor_retain(block(&x, 1, &net));
    tensor_scope_close(inner);
    const int64_t plain = tensor_tape_bytes() - before;
    assert_true(plain > 4 * one);
    tensor_release(y);
    const int64_t in_use = tensor_memory().in_use;
    inner = tensor_scope_open();
    y = tensor_retain(
        tensor_checkpoint(block_in_block, &net, x)); /* nothing of what lies inside, nested too */
    tensor_scope_close(inner);
    assert_true(tensor_tape_bytes() - before < one);
    assert_true(tensor_memory().in_use - in_use < 2 * one); /* y itself */
    tensor_release(y);
    OK;
    tensor_scope_close(scope);
}

static void test_several_results(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(4, WIDTH), TENSOR_F32), true), *grad[2][4], *y[2];
    for (int how = 0; how < 2; how++) {
        Tensor *in[] = { tensor_cos(x), NULL };
        tensor_manual_seed(3);
        if (how) assert_int_equal(tensor_checkpoint_many(two_results, &net, TENSOR_LIST(in, 2), y, 2), 0);
        else assert_int_equal(two_results(in, 2, y, 2, &net), 0);
        Tensor *sums[] = { tensor_sum(tensor_square(y[0])), tensor_sum(y[1]) };
        assert_int_equal(
            tensor_gradients_many(TENSOR_LIST(sums, 2), TENSORS(x, net.w[0], net.w[1], net.w[2]), grad[how]),
            0);
    }
    for (int i = 0; i < 4; i++) assert_true(tensor_equal(grad[0][i], grad[1][i]));
    OK;
    tensor_scope_close(scope);
}

/* Gradients of gradients, and a second sweep over the same graph: each computes again. */
static void test_recorded_and_repeated_sweeps(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(4, WIDTH), TENSOR_F32), true), *second[2],
           *first[2][2];
    for (int how = 0; how < 2; how++) {
        tensor_manual_seed(3);
        Tensor *in = tensor_cos(x),
               *y = tensor_sum(tensor_square(how ? tensor_checkpoint(block_in_block, &net, in)
                                                 : block_in_block(&in, 1, &net)));
        for (int i = 0; i < 2; i++) first[how][i] = tensor_gradients(y, net.w[0], .retain_graph = true);
        Tensor *g = tensor_gradients(y, x, .create_graph = true);
        second[how] = tensor_gradients(tensor_sum(tensor_square(g)), net.w[0]);
    }
    OK;
    assert_true(tensor_equal(first[0][0], first[1][0]) && tensor_equal(first[1][0], first[1][1]));
    assert_true(tensor_equal(second[0], second[1]));
    tensor_scope_close(scope);
}

static Tensor *penalty(Tensor **in, int n, void *ctx)
{
    (void)n;
    Tensor *y = tensor_tanh(tensor_matmul(in[0], ((Net *)ctx)->w[0]));
    Tensor *g = tensor_gradients(tensor_sum(tensor_square(y)), in[0], .create_graph = true);
    return tensor_sum(tensor_square(g));
}

static void test_a_sweep_inside_the_function(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(4, WIDTH), TENSOR_F32), true), *g[2];
    for (int how = 0; how < 2; how++) {
        Tensor *in = tensor_cos(x);
        g[how] =
            tensor_gradients(how ? tensor_checkpoint(penalty, &net, in) : penalty(&in, 1, &net), net.w[0]);
    }
    OK;
    assert_true(tensor_equal(g[0], g[1]));
    tensor_scope_close(scope);
}

static void test_without_a_graph(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    Tensor *x = tensor_randn(SHAPE(4, WIDTH), TENSOR_F32), *y = NULL;
    TENSOR_NO_GRAD
        y = tensor_checkpoint(penalty, &net, tensor_requires_grad_(tensor_clone(x), true));
    assert_null(y); /* its own sweep has no graph: the function's error comes through */
    tensor_error_clear();
    TENSOR_NO_GRAD
        y = tensor_checkpoint(block, &net, x);
    assert_false(tensor_requires_grad(y));
    OK;
    tensor_scope_close(scope);
}

/* ---- what fails in a checkpoint -------------------------------------------------------------- */

static int calls;
static Tensor *fickle(Tensor **in, int n, void *ctx)
{
    (void)n;
    const int what = *(int *)ctx, call = calls++;
    if (what == 2 && call) return NULL;
    if (what == 3 && call) return tensor_matmul(in[0], tensor_ones(SHAPE(77, 2), TENSOR_F32));
    Tensor *h = tensor_exp(what == 4 && call ? tensor_reshape(in[0], SHAPE(WIDTH, -1)) : in[0]);
    if (what == 1 && call) h = tensor_exp(h);
    return tensor_sum(tensor_tanh(h));
}

static void test_a_function_that_differs(void **unused)
{
    (void)unused;
    static const struct {
        int what;
        TensorStatus code;
        const char *text;
    } expect[] = { { 1, TENSOR_EGRAD, "saved 3 values, the first one 2" },
                   { 2, TENSOR_EUSER, "failed without saying why" },
                   { 3, TENSOR_ESHAPE, "matmul" },
                   { 4, TENSOR_ESHAPE, "unpack gave [6, 4] for a saved value [4, 6]" } };
    for (int i = 0; i < 4; i++) {
        TensorScope scope = tensor_scope_open();
        int what = expect[i].what;
        Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(4, WIDTH), TENSOR_F32), true);
        calls = 0;
        Tensor *y = tensor_checkpoint(fickle, &what, tensor_sin(x));
        OK;
        assert_int_equal(tensor_backward(y), -1);
        assert_int_equal(tensor_error_code(), expect[i].code);
        assert_non_null(strstr(tensor_error(), expect[i].text));
        assert_null(tensor_grad(x));
        assert_true(tensor_grad_enabled());
        tensor_error_clear();
        tensor_scope_close(scope);
    }
}

static void test_bad_checkpoints(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    int what = 0;
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(4, WIDTH), TENSOR_F32), true), *in = tensor_sin(x);
    Tensor *y = tensor_checkpoint(fickle, &what, in);
    tensor_zero_(tensor_detach(in));
    assert_int_equal(tensor_backward(y), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EGRAD);
    assert_non_null(strstr(tensor_error(), "input 1 [4, 6] was overwritten in place"));
    tensor_error_clear();
    assert_null(tensor_checkpoint(NULL, &net, x));
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
    assert_null(tensor_checkpoint_list(block, &net, TENSOR_LIST(NULL, 2)));
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
    assert_null(tensor_checkpoint_list(block, &net, TENSOR_LIST(&x, 1000)));
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
    assert_int_equal(tensor_checkpoint_many(two_results, &net, TENSORS(x), NULL, 2), -1);
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
    tensor_scope_close(scope);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

typedef struct Log {
    int packed, unpacked, dropped, fail_at;
    Tensor *wrong;
} Log;

static void *log_pack(Tensor *x, void *ctx)
{
    Log *log = ctx;
    assert_false(tensor_grad_enabled() || tensor_autocast_enabled() || tensor_requires_grad(x));
    return ++log->packed == log->fail_at ? NULL : tensor_retain(tensor_clone(x));
}
static Tensor *log_unpack(void *packed, void *ctx)
{
    Log *log = ctx;
    return ++log->unpacked == log->fail_at ? log->wrong : packed;
}
static void log_drop(void *packed, void *ctx)
{
    ((Log *)ctx)->dropped++;
    tensor_release(packed);
}

static void test_hooks_see_each_value(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    Log log = { 0 };
    const TensorSavedHooks hooks = { log_pack, log_unpack, log_drop, &log };
    for (int f = 0; f < 2; f++)
        for (int autocast = 0; autocast < 2; autocast++) {
            TensorFunction fn = f ? block_in_block : block;
            log = (Log){ 0 };
            TensorScope inner = tensor_scope_open();
            const Grads want = run(fn, &net, PLAIN, none, autocast),
                        got = run(fn, &net, HOOKED, hooks, autocast);
            OK;
            assert_same(&want, &got);
            assert_true(log.packed > 5);
            assert_int_equal(log.unpacked, log.packed);
            tensor_scope_close(inner);
            assert_int_equal(log.dropped, log.packed);
        }
    tensor_scope_close(scope);
}

static void test_leaves_are_kept_and_blocks_nest(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Log log = { 0 }, inside = { 0 };
    const TensorSavedHooks hooks = { log_pack, log_unpack, log_drop, &log },
                           other = { log_pack, log_unpack, log_drop, &inside };
    Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F32), true),
           *x = tensor_ones(SHAPE(3), TENSOR_F32);
    TENSOR_SAVED_HOOKS(hooks)
    {
        tensor_mul(w, w);
        assert_int_equal(log.packed, 0);
        tensor_mul(w, x);
        assert_int_equal(log.packed, 1);
        TENSOR_SAVED_HOOKS(other) tensor_mul(w, x);
        TENSOR_SAVED_HOOKS(none) tensor_mul(w, x);
        assert_int_equal(log.packed, 1);
        assert_int_equal(inside.packed, 1);
    }
    tensor_mul(w, x);
    assert_int_equal(log.packed, 1);
    OK;
    tensor_scope_close(scope);
    assert_int_equal(log.dropped, 1);
}

/* What was packed may be written: backward reads what unpack gives. */
static void test_a_packed_value_may_be_written(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Log log = { 0 };
    Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F32), true),
           *x = tensor_full(SHAPE(3), 2, TENSOR_F32), *y = NULL;
    TENSOR_SAVED_HOOKS(((TensorSavedHooks){ log_pack, log_unpack, log_drop, &log }))
    y = tensor_sum(tensor_mul(w, x));
    tensor_zero_(x);
    Tensor *g = tensor_gradients(y, w, .create_graph = true);
    assert_true(tensor_item(tensor_amin(g)) == 2);
    OK;
    tensor_scope_close(scope);
}

static void test_hooks_that_fail(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    Tensor *wrong[] = { NULL, tensor_ones(SHAPE(77), TENSOR_F32) };
    Log log = { 0 };
    const TensorSavedHooks hooks = { log_pack, log_unpack, log_drop, &log };
    const int64_t live = tensor_live_count();
    for (int at = 1; at < 6; at++)
        for (int k = 0; k < 3; k++) { /* pack; unpack gives NULL; another shape */
            TensorScope inner = tensor_scope_open();
            Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(4, WIDTH), TENSOR_F32), true), *y = NULL;
            log = (Log){ .fail_at = k ? 0 : at, .wrong = k ? wrong[k - 1] : NULL };
            TENSOR_SAVED_HOOKS(hooks) y = tensor_sum(block((Tensor *[]){ tensor_sin(x) }, 1, &net));
            if (k) {
                OK;
                log.fail_at = at;
                assert_int_equal(tensor_backward(y), -1);
                assert_int_equal(tensor_error_code(), k == 1 ? TENSOR_EUSER : TENSOR_ESHAPE);
                assert_non_null(
                    strstr(tensor_error(), k == 1 ? "unpack of a saved value failed" : "unpack gave [77]"));
            } else {
                assert_null(y);
                assert_int_equal(tensor_error_code(), TENSOR_EUSER);
                assert_non_null(strstr(tensor_error(), "pack of a saved value failed"));
            }
            assert_null(tensor_grad(x));
            tensor_error_clear();
            tensor_scope_close(inner);
            assert_int_equal(log.dropped, log.packed - (k == 0));
            assert_int_equal(tensor_live_count(), live);
        }
    const TensorSavedHooks before = tensor_saved_hooks_begin((TensorSavedHooks){ .pack = log_pack });
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    assert_null(before.pack);
    tensor_error_clear();
    tensor_scope_close(scope);
}

/* ---- those that are there -------------------------------------------------------------------- */

static void test_save_in_a_half(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    const Grads want = run(block, &net, PLAIN, none, false),
                exact = run(block, &net, HOOKED, tensor_save_in(TENSOR_F64), false),
                half = run(block, &net, HOOKED, tensor_save_in(TENSOR_BF16), false);
    OK;
    assert_same(&want, &exact);
    assert_int_equal(tensor_dtype(half.w[0]), TENSOR_F32);
    assert_false(tensor_equal(want.w[0], half.w[0]));
    assert_true(tensor_allclose(want.w[0], half.w[0], .rtol = 0.1, .atol = 0.02));
    run(block, &net, HOOKED, tensor_save_in(TENSOR_I64), false);
    assert_int_equal(tensor_error_code(), TENSOR_EDTYPE);
    tensor_error_clear();
    tensor_scope_close(scope);
}

static int files_in(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void test_save_elsewhere(void **unused)
{
    (void)unused;
    char folder[] = "build/saved-XXXXXX";
    assert_non_null(mkdtemp(folder));
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    const Grads want = run(block, &net, PLAIN, none, false),
                cpu = run(block, &net, HOOKED, tensor_save_on_cpu(), false),
                disk = run(block, &net, HOOKED, tensor_save_on_disk(folder), false);
    OK;
    assert_same(&want, &cpu);
    assert_same(&want, &disk);
    assert_int_equal(files_in(folder), 0);
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F32), true), *y = NULL;
    TENSOR_SAVED_HOOKS(tensor_save_on_disk(folder)) y = tensor_sum(tensor_exp(tensor_exp(x)));
    assert_int_equal(files_in(folder), 2);
    tensor_scope_close(scope);
    (void)y;
    assert_int_equal(files_in(folder), 0);
    assert_int_equal(rmdir(folder), 0);
    scope = tensor_scope_open();
    x = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F32), true);
    TENSOR_SAVED_HOOKS(tensor_save_on_disk(folder)) assert_null(tensor_exp(x));
    assert_int_equal(tensor_error_code(), TENSOR_EIO);
    tensor_error_clear();
    TENSOR_SAVED_HOOKS(tensor_save_on_disk(NULL)) assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
    tensor_scope_close(scope);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A checkpoint in another, whose values are rounded on the way: gradients or nothing, and nothing left. */
static bool attempt(Net *net, TensorSavedHooks hooks)
{
    TensorScope scope = tensor_scope_open();
    const Grads g = run(block_in_block, net, CHECKPOINT, hooks, false);
    const bool done = g.w[0] && g.x && !tensor_error();
    tensor_scope_close(scope);
    return done;
}

static void test_every_allocation_may_fail(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Net net = net_new();
    const TensorSavedHooks hooks[] = { none, tensor_save_in(TENSOR_BF16) };
    for (int h = 0; h < 2; h++) {
        assert_true(attempt(&net, hooks[h]));
        no_grads(&net);
        const int64_t live = tensor_live_count(), length = tensor_tape_length();
        bool failed = true;
        for (int n = 1; failed; n++) {
            assert_true(n < 20000);
            tensor_debug_fail_allocation(n, false);
            const bool done = attempt(&net, hooks[h]);
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            if (!done) {
                assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
                for (int i = 0; i < 3 && !swept; i++) assert_null(tensor_grad(net.w[i]));
            }
            assert_true(done || failed);
            tensor_error_clear();
            no_grads(&net);
            assert_int_equal(tensor_live_count(), live);
            assert_int_equal(tensor_tape_length(), length);
        }
    }
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_to_the_bit),
        cmocka_unit_test(test_less_is_kept),
        cmocka_unit_test(test_several_results),
        cmocka_unit_test(test_recorded_and_repeated_sweeps),
        cmocka_unit_test(test_a_sweep_inside_the_function),
        cmocka_unit_test(test_without_a_graph),
        cmocka_unit_test(test_a_function_that_differs),
        cmocka_unit_test(test_bad_checkpoints),
        cmocka_unit_test(test_hooks_see_each_value),
        cmocka_unit_test(test_leaves_are_kept_and_blocks_nest),
        cmocka_unit_test(test_a_packed_value_may_be_written),
        cmocka_unit_test(test_hooks_that_fail),
        cmocka_unit_test(test_save_in_a_half),
        cmocka_unit_test(test_save_elsewhere),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
