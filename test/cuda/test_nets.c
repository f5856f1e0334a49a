/* test_nets.c - eight nets train on a device to the CPU's losses, from one seed and on the same batch: an
 * MLP, MNIST's CNN, ResNet-18, an LSTM, a GPT, a VAE, a DCGAN and a Transformer, each narrow.  No call goes
 * to the host, and on emu:0, which counts, no step waits or copies.  Dropout is the counter-based one, whose
 * masks are the same on both. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include "emulator.h"

enum { STEPS = 4, INPUTS = 4 };

/* ---- inputs: of the CPU's, then carried ------------------------------------------------------ */

static Tensor *on(Tensor *x, const char *device) { return tensor_to_device(x, device); }

static Tensor *floats(TensorShape shape, const char *device)
{
    return on(tensor_randn(shape, TENSOR_F32), device);
}

static Tensor *below(int64_t n, TensorShape shape, const char *device)
{
    return on(tensor_randint(0, n, shape), device);
}

/* ---- the nets -------------------------------------------------------------------------------- */

/* Two dimensions of logits against all targets. */
static Tensor *of_classes(Tensor *logits, Tensor *target)
{
    const int64_t classes = tensor_size(logits, -1);
    return tensor_cross_entropy(tensor_reshape(logits, SHAPE(-1, classes)),
                                tensor_reshape(target, SHAPE(-1)));
}

static Module *mlp(void)
{
    return nn_sequential(nn_linear(20, 48), nn_relu(), nn_dropout(0.2), nn_linear(48, 10));
}

static void mlp_batch(Tensor **in, const char *d)
{
    in[0] = floats(SHAPE(16, 20), d), in[1] = below(10, SHAPE(16), d);
}

static Module *cnn(void)
{
    return nn_sequential(nn_conv2d(1, 4, 3, .padding = 1), nn_relu(), nn_max_pool2d(2),
                         nn_conv2d(4, 8, 3, .padding = 1), nn_relu(), nn_max_pool2d(2), nn_flatten(),
                         nn_linear(8 * 3 * 3, 10));
}

static void cnn_batch(Tensor **in, const char *d)
{
    in[0] = floats(SHAPE(4, 1, 12, 12), d), in[1] = below(10, SHAPE(4), d);
}

static Tensor *classifier_loss(Module *net, Tensor **in) { return of_classes(nn_forward(net, in[0]), in[1]); }

/* ResNet's basic block: two convolutions and a way around them. */
typedef struct Block {
    Module base;
    Module *main, *around;
} Block;

static Tensor *block_forward(Module *self, Tensor *x)
{
    Block *b = (Block *)self;
    Tensor *past = b->around ? nn_forward(b->around, x) : x;
    return tensor_relu(tensor_add(nn_forward(b->main, x), past));
}

static Module *block(int64_t in, int64_t out, int64_t stride)
{
    Block *b = nn_new(Block, "Block", block_forward);
    NN_CHILD(b, main,
             nn_sequential(nn_conv2d(in, out, 3, .stride = stride, .padding = 1, .bias = false),
                           nn_batch_norm2d(out), nn_relu(),
                           nn_conv2d(out, out, 3, .padding = 1, .bias = false), nn_batch_norm2d(out)));
    if (stride != 1 || in != out)
        NN_CHILD(b, around,
                 nn_sequential(nn_conv2d(in, out, 1, .stride = stride, .bias = false), nn_batch_norm2d(out)));
    return nn_done(b);
}

static Module *resnet18(void)
{
    enum { W = 4 };
    Module *stages = nn_sequential(block(W, W, 1), block(W, W, 1), block(W, 2 * W, 2), block(2 * W, 2 * W, 1),
                                   block(2 * W, 4 * W, 2), block(4 * W, 4 * W, 1), block(4 * W, 8 * W, 2),
                                   block(8 * W, 8 * W, 1));
    return nn_sequential(nn_conv2d(3, W, 7, .stride = 2, .padding = 3, .bias = false), nn_batch_norm2d(W),
                         nn_relu(), nn_max_pool2d(3, .stride = 2, .padding = 1), stages,
                         nn_adaptive_avg_pool2d(1, 1), nn_flatten(), nn_linear(8 * W, 10));
}

static void resnet_batch(Tensor **in, const char *d)
{
    in[0] = floats(SHAPE(3, 3, 40, 40), d), in[1] = below(10, SHAPE(3), d);
}

static Module *lstm(void)
{
    return nn_sequential(nn_embedding(12, 8), nn_lstm(8, 10, 2, .dropout = 0.1), nn_linear(10, 12));
}

static Module *gpt_block(int64_t width)
{
    return nn_transformer_encoder_layer(width, 2, .dim_feedforward = 4 * width,
                                        .activation = NN_TRANSFORMER_GELU, .batch_first = true,
                                        .norm_first = true);
}

static Module *gpt(void)
{
    enum { WIDTH = 12, WINDOW = 9 };
    Module *parts = nn_module_list(nn_embedding(12, WIDTH), nn_embedding(WINDOW, WIDTH),
                                   nn_transformer_encoder(gpt_block(WIDTH), 2, .norm = nn_layer_norm(WIDTH)),
                                   nn_linear(WIDTH, 12, .bias = false));
    return parts;
}

static void token_batch(Tensor **in, const char *d)
{
    in[0] = below(12, SHAPE(3, 9), d), in[1] = below(12, SHAPE(3, 9), d);
    in[2] = on(tensor_arange(0, 9, 1, TENSOR_I64), d);
}

static Tensor *gpt_loss(Module *net, Tensor **in)
{
    Tensor *x =
        tensor_add(nn_forward(nn_get_module(net, "0"), in[0]), nn_forward(nn_get_module(net, "1"), in[2]));
    x = nn_transformer_encoder_forward(nn_get_module(net, "2"), x, .is_causal = true);
    return of_classes(nn_forward(nn_get_module(net, "3"), x), in[1]);
}

static Module *vae(void)
{
    return nn_module_list(nn_sequential(nn_linear(20, 16), nn_relu(), nn_linear(16, 8)),
                          nn_sequential(nn_linear(4, 16), nn_relu(), nn_linear(16, 20)));
}

static void vae_batch(Tensor **in, const char *d)
{
    in[0] = on(tensor_rand(SHAPE(8, 20), TENSOR_F32), d), in[1] = floats(SHAPE(8, 4), d);
}

static Tensor *vae_loss(Module *net, Tensor **in)
{
    Tensor *code = nn_forward(nn_get_module(net, "0"), in[0]);
    Tensor *mean = tensor_narrow(code, 1, 0, 4), *log_var = tensor_narrow(code, 1, 4, 4);
    Tensor *z = tensor_add(mean, tensor_mul(in[1], tensor_exp(tensor_mul_scalar(log_var, .5))));
    Tensor *y = nn_forward(nn_get_module(net, "1"), z);
    Tensor *kl =
        tensor_sub(tensor_add(tensor_square(mean), tensor_exp(log_var)), tensor_add_scalar(log_var, 1));
    return tensor_add(tensor_binary_cross_entropy_with_logits(y, in[0], .reduction = TENSOR_SUM),
                      tensor_mul_scalar(tensor_sum(kl), .5));
}

static Module *transformer(void)
{
    return nn_module_list(nn_embedding(12, 8),
                          nn_transformer(.d_model = 8, .nhead = 2, .num_encoder_layers = 2,
                                         .num_decoder_layers = 2, .dim_feedforward = 16, .batch_first = true),
                          nn_linear(8, 12));
}

static Tensor *transformer_loss(Module *net, Tensor **in)
{
    Module *embedding = nn_get_module(net, "0");
    Tensor *y = nn_transformer_forward(nn_get_module(net, "1"), nn_forward(embedding, in[0]),
                                       nn_forward(embedding, in[1]), .tgt_is_causal = true);
    return of_classes(nn_forward(nn_get_module(net, "2"), y), in[1]);
}

/* A generator from 6 numbers to 1 x 16 x 16, and a discriminator. */
static Module *dcgan(void)
{
    Module *generator = nn_sequential(
        nn_conv_transpose2d(6, 8, 4, .bias = false), nn_batch_norm2d(8), nn_relu(),
        nn_conv_transpose2d(8, 4, 4, .stride = 2, .padding = 1, .bias = false), nn_batch_norm2d(4), nn_relu(),
        nn_conv_transpose2d(4, 1, 4, .stride = 2, .padding = 1, .bias = false), nn_tanh());
    Module *discriminator =
        nn_sequential(nn_conv2d(1, 4, 4, .stride = 2, .padding = 1, .bias = false), nn_leaky_relu(.2),
                      nn_conv2d(4, 8, 4, .stride = 2, .padding = 1, .bias = false), nn_batch_norm2d(8),
                      nn_leaky_relu(.2), nn_conv2d(8, 1, 4, .bias = false), nn_flatten());
    return nn_module_list(generator, discriminator);
}

static void dcgan_batch(Tensor **in, const char *d)
{
    in[0] = floats(SHAPE(4, 1, 16, 16), d), in[1] = floats(SHAPE(4, 6, 1, 1), d);
}

static Tensor *judged(Module *discriminator, Tensor *x, bool real)
{
    Tensor *y = nn_forward(discriminator, x);
    return tensor_binary_cross_entropy_with_logits(y, real ? tensor_ones_like(y) : tensor_zeros_like(y));
}

/* ---- a step ---------------------------------------------------------------------------------- */

typedef struct Net {
    const char *name;
    Module *(*make)(void);
    void (*batch)(Tensor **in, const char *device);
    Tensor *(*loss)(Module *net, Tensor **in); /* NULL: two nets play */
    double lr, tolerance;                      /* relative, of each step's loss */
} Net;

static const Net nets[] = {
    { "MLP", mlp, mlp_batch, classifier_loss, 1e-2, 1e-5 },
    { "MNIST CNN", cnn, cnn_batch, classifier_loss, 1e-2, 1e-5 },
    { "ResNet-18", resnet18, resnet_batch, classifier_loss, 1e-3, 1e-3 },
    { "LSTM", lstm, token_batch, classifier_loss, 1e-2, 1e-5 },
    { "GPT", gpt, token_batch, gpt_loss, 1e-2, 1e-4 },
    { "VAE", vae, vae_batch, vae_loss, 1e-2, 1e-5 },
    { "DCGAN", dcgan, dcgan_batch, NULL, 1e-3, 1e-3 },
    { "Transformer", transformer, token_batch, transformer_loss, 1e-2, 1e-4 },
};

static void descend(Optimizer *opt, Tensor *loss)
{
    optim_zero_grad(opt);
    assert_int_equal(tensor_backward(loss), 0);
    assert_int_equal(optim_step(opt), 0);
}

static Tensor *play(Module *net, Optimizer **opt, Tensor **in)
{
    Module *discriminator = nn_get_module(net, "1");
    Tensor *fake = nn_forward(nn_get_module(net, "0"), in[1]);
    Tensor *loss =
        tensor_add(judged(discriminator, in[0], true), judged(discriminator, tensor_detach(fake), false));
    descend(opt[1], loss);
    Tensor *fooled = judged(discriminator, fake, true);
    descend(opt[0], fooled);
    return tensor_add(loss, fooled);
}

static void run(const Net *n, const char *device, double *losses)
{
    Tensor *in[INPUTS] = { NULL };
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(7);
    Module *net = n->make();
    assert_non_null(net);
    n->batch(in, device);
    assert_int_equal(nn_to_device(net, device), 0);
    Optimizer *opt[2] = { NULL };
    for (int i = 0; i < (n->loss ? 1 : 2); i++)
        opt[i] = optim_adamw(nn_parameters(n->loss ? net : nn_get_module(net, i ? "1" : "0")), .lr = n->lr);
    const int64_t fallbacks = tensor_host_fallbacks();
    for (int step = 0; step < STEPS; step++) {
        TensorScope one = tensor_scope_open();
        const struct CuemuCounts before = counts_now();
        Tensor *loss = n->loss ? n->loss(net, in) : play(net, opt, in);
        if (n->loss) descend(opt[0], loss);
        const struct CuemuCounts after = counts_now();
        if (after.waits != before.waits || after.to_host != before.to_host)
            fail_msg("%s: step %d waits for the device", n->name, step);
        if (after.to_device != before.to_device)
            fail_msg("%s: step %d copies to the device %lld times", n->name, step,
                     (long long)(after.to_device - before.to_device));
        losses[step] = tensor_item(loss);
        tensor_scope_close(one);
    }
    if (tensor_host_fallbacks() != fallbacks) fail_msg("%s: the host computed a part of it", n->name);
    assert_null(tensor_error());
    optim_free(opt[0]), optim_free(opt[1]), nn_free(net);
    tensor_scope_close(scope);
}

static void trains(void **state)
{
    const Net *n = *state;
    double want[STEPS], got[STEPS];
    const int64_t live = tensor_live_count();
    run(n, "cpu", want), run(n, test_device(), got);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(got[i] - want[i]) <= n->tolerance * fabs(want[i])))
            fail_msg("%s: step %d has the loss %.9g, on the CPU %.9g", n->name, i, got[i], want[i]);
    assert_true(want[STEPS - 1] < want[0]);
    assert_int_equal(tensor_live_count(), live);
}

int main(int argc, char **argv)
{
    enum { NETS = sizeof nets / sizeof *nets };
    struct CMUnitTest tests[NETS];
    if (!test_device_opens()) return 1;
    tensor_use_torch_dropout(false);
    for (int i = 0; i < NETS; i++)
        tests[i] = (struct CMUnitTest){ .name = nets[i].name,
                                        .test_func = trains,
                                        .initial_state = (void *)(uintptr_t)&nets[i] };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const int failed = cmocka_run_group_tests_name("nets on a device", tests, NULL, NULL);
    tensor_use_torch_dropout(true);
    return failed;
}
