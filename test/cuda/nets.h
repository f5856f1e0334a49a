/* nets.h - eight narrow nets that train on a device: an MLP, MNIST's CNN, ResNet-18, an LSTM, a GPT, a VAE, a
 * DCGAN and a Transformer. */
#ifndef NETS_H
#define NETS_H

enum { INPUTS = 4 };

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

#endif
