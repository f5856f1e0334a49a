/* test_nn_threads.c - modules that several threads run at once in eval mode, with hooks of theirs and of all
 * modules, over parameters that they share.  Run it under -fsanitize=thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "clean.h"

enum { THREADS = 4, ROUNDS = 60 };

typedef struct Work {
    Module *net;
    TensorShape shape; /* of its input */
    Tensor *result;    /* what one thread alone gets */
    int failures;
} Work;

static void in_threads(void *(*f)(void *), Work work)
{
    pthread_t thread[THREADS];
    Work each[THREADS];
    for (int i = 0; i < THREADS; i++) {
        each[i] = work;
        assert_int_equal(pthread_create(&thread[i], NULL, f, &each[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(each[i].failures, 0);
}

static Tensor *input(TensorShape shape)
{
    Tensor *x = tensor_linspace(-1, 1, shape.dim[0] * shape.dim[1] * 36, TENSOR_F32);
    return tensor_requires_grad_(tensor_reshape(x, shape), true);
}

static void *runs(void *ctx)
{
    Work *work = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = input(work->shape), *y = nn_forward(work->net, x);
        if (!tensor_equal(y, work->result)) work->failures++;
        if (tensor_backward(tensor_sum(y)) || !tensor_grad(x)) work->failures++;
        tensor_scope_close(scope);
    }
    if (tensor_error() || tensor_tape_length()) work->failures++;
    return NULL;
}

/* What has a gradient goes on; what comes out of the first layer has one wherever its input has. */
static int looks(Module *m, NNCall *c, void *ctx)
{
    (void)m;
    if (!c->out[0]) return -1;
    atomic_fetch_add((_Atomic int *)ctx, 1);
    return 0;
}

static Module *image_net(void)
{
    return nn_sequential(nn_conv2d(2, 4, 3, .padding = 1), nn_batch_norm2d(4), nn_silu(),
                         nn_dropout(.p = 0.5), nn_group_norm(2, 4), nn_max_pool2d(2), nn_flatten(),
                         nn_weight_norm(nn_linear(36, 8)), nn_gelu(), nn_spectral_norm(nn_linear(8, 2)));
}

static void nets_in_eval_mode(void **state)
{
    (void)state;
    Module *net = image_net();
    nn_eval(net);
    const TensorShape shape = SHAPE(3, 2, 6, 6);
    in_threads(runs, (Work){ net, shape, nn_forward(net, input(shape)), 0 });
    nn_free(net);
}

static void hooks_of_modules(void **state)
{
    (void)state;
    Module *net = image_net();
    nn_eval(net);
    const TensorShape shape = SHAPE(3, 2, 6, 6);
    Tensor *alone = nn_forward(net, input(shape));
    _Atomic int forwards = 0, backwards = 0;
    for (int i = 0; i < net->child_count; i++) {
        nn_register_forward_hook(net->children[i].module, looks, (void *)&forwards);
        nn_register_full_backward_pre_hook(net->children[i].module, looks, (void *)&backwards);
        nn_register_full_backward_hook(net->children[i].module, looks, (void *)&backwards);
    }
    in_threads(runs, (Work){ net, shape, alone, 0 });
    assert_int_equal(forwards, THREADS * ROUNDS * net->child_count);
    assert_int_equal(backwards, 2 * forwards);
    nn_free(net);
}

/* Modules that no thread ran before: each watches them first. */
static void hooks_of_all_modules(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        Module *net = image_net();
        nn_eval(net);
        const TensorShape shape = SHAPE(1, 2, 6, 6);
        Tensor *alone = nn_forward(net, input(shape));
        _Atomic int backwards = 0;
        const int id = nn_register_module_full_backward_hook(looks, (void *)&backwards);
        in_threads(runs, (Work){ net, shape, alone, 0 });
        assert_true(backwards >= THREADS * ROUNDS * net->child_count);
        assert_int_equal(nn_remove_module_hook(id), 0);
        nn_free(net);
    }
}

/* Sweeps that end before the inputs of the hooked module. */
static void *sweeps_in_part(void *ctx)
{
    Work *work = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *y = tensor_sum(nn_forward(work->net, input(work->shape)));
        if (!tensor_gradients(y, nn_get(work->net, "7.bias"))) work->failures++;
        tensor_scope_close(scope);
    }
    if (tensor_error() || tensor_tape_length()) work->failures++;
    return NULL;
}

static void sweeps_of_a_part(void **state)
{
    (void)state;
    Module *net = image_net();
    nn_eval(net);
    _Atomic int backwards = 0;
    nn_register_full_backward_hook(net->children[7].module, looks, (void *)&backwards);
    nn_register_full_backward_hook(net->children[9].module, looks, (void *)&backwards);
    const int64_t before = tensor_live_count();
    in_threads(sweeps_in_part, (Work){ net, SHAPE(3, 2, 6, 6), NULL, 0 });
    assert_int_equal(backwards, THREADS * ROUNDS); /* of 9: the inputs of 7 are never reached */
    assert_int_equal(tensor_live_count(), before);
    nn_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(nets_in_eval_mode),
        SCOPED(hooks_of_modules),
        SCOPED(hooks_of_all_modules),
        SCOPED(sweeps_of_a_part),
    };
    return cmocka_run_group_tests_name("threads and modules", tests, NULL, NULL);
}
