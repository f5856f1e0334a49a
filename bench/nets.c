/* nets.c - see nets.h. */
#include "nets.h"

Module *mlp_net(void)
{
    return nn_sequential(nn_linear(784, 256), nn_relu(), nn_linear(256, 128), nn_relu(), nn_linear(128, 10));
}

Module *mnist_net(void)
{
    return nn_sequential(nn_conv2d(1, 32, 3), nn_relu(), nn_conv2d(32, 64, 3), nn_relu(), nn_max_pool2d(2),
                         nn_dropout(0.25), nn_flatten(), nn_linear(9216, 128), nn_relu(), nn_dropout(0.5),
                         nn_linear(128, 10));
}

/* ---- ResNets --------------------------------------------------------------------------------- */

typedef struct {
    Module base, *body, *shortcut;
} BasicBlock;

static Tensor *basic_forward(Module *self, Tensor *x)
{
    BasicBlock *b = (BasicBlock *)self;
    return tensor_relu(tensor_add(nn_forward(b->body, x), nn_forward(b->shortcut, x)));
}

static Module *conv_norm(int64_t in, int64_t out, int64_t size, int64_t stride)
{
    return nn_sequential(nn_conv2d(in, out, size, .stride = stride, .padding = size / 2, .bias = false),
                         nn_batch_norm2d(out));
}

static Module *basic_block(int64_t in, int64_t out, int64_t stride)
{
    BasicBlock *b = nn_new(BasicBlock, "BasicBlock", basic_forward);
    NN_CHILD(b, body, nn_sequential(conv_norm(in, out, 3, stride), nn_relu(), conv_norm(out, out, 3, 1)));
    NN_CHILD(b, shortcut, in == out && stride == 1 ? nn_identity() : conv_norm(in, out, 1, stride));
    return nn_done(b);
}

Module *resnet18_net(void)
{
    return nn_sequential(conv_norm(3, 64, 3, 1), nn_relu(), basic_block(64, 64, 1), basic_block(64, 64, 1),
                         basic_block(64, 128, 2), basic_block(128, 128, 1), basic_block(128, 256, 2),
                         basic_block(256, 256, 1), basic_block(256, 512, 2), basic_block(512, 512, 1),
                         nn_adaptive_avg_pool2d(1, 1), nn_flatten(), nn_linear(512, 10));
}

static Module *bottleneck(int64_t in, int64_t width, int64_t stride)
{
    BasicBlock *b = nn_new(BasicBlock, "Bottleneck", basic_forward);
    NN_CHILD(b, body,
             nn_sequential(conv_norm(in, width, 1, 1), nn_relu(), conv_norm(width, width, 3, stride),
                           nn_relu(), conv_norm(width, 4 * width, 1, 1)));
    NN_CHILD(b, shortcut,
             in == 4 * width && stride == 1 ? nn_identity() : conv_norm(in, 4 * width, 1, stride));
    return nn_done(b);
}

Module *resnet50_net(int64_t width)
{
    static const int blocks[] = { 3, 4, 6, 3 };
    Module *stages = nn_sequential();
    int64_t in = width;
    for (int s = 0; s < 4; s++)
        for (int i = 0; i < blocks[s]; i++, in = 4 * width << s)
            nn_append(stages, bottleneck(in, width << s, s && !i ? 2 : 1));
    return nn_sequential(conv_norm(3, width, 7, 2), nn_relu(), nn_max_pool2d(3, .stride = 2, .padding = 1),
                         stages, nn_adaptive_avg_pool2d(1, 1), nn_flatten(), nn_linear(in, 1000));
}

/* ---- LSTM, VAE, DCGAN ------------------------------------------------------------------------ */

typedef struct {
    Module base, *lstm, *head;
} CharLstm;

static Tensor *lstm_forward(Module *self, Tensor *x)
{
    CharLstm *m = (CharLstm *)self;
    return nn_forward(m->head, tensor_flatten(nn_forward(m->lstm, x), 0, 1));
}

Module *lstm_net(void)
{
    CharLstm *m = nn_new(CharLstm, "CharLstm", lstm_forward);
    NN_CHILD(m, lstm, nn_lstm(256, 256, 2));
    NN_CHILD(m, head, nn_linear(256, 64));
    return nn_done(m);
}

typedef struct {
    Module base, *encoder, *mean, *logvar, *decoder;
} Vae;

static void vae_forward(Module *self, NNCall *c)
{
    Vae *v = (Vae *)self;
    Tensor *h = nn_forward(v->encoder, c->in[0]);
    c->out[1] = nn_forward(v->mean, h), c->out[2] = nn_forward(v->logvar, h);
    Tensor *std = tensor_exp(tensor_mul_scalar(c->out[2], 0.5));
    Tensor *z = tensor_addcmul(c->out[1], tensor_randn_like(std), std);
    c->out[0] = nn_forward(v->decoder, z);
}

Module *vae_net(void)
{
    Vae *v = nn_new(Vae, "VAE", vae_forward);
    NN_CHILD(v, encoder, nn_sequential(nn_linear(784, 400), nn_relu()));
    NN_CHILD(v, mean, nn_linear(400, 20));
    NN_CHILD(v, logvar, nn_linear(400, 20));
    NN_CHILD(v, decoder, nn_sequential(nn_linear(20, 400), nn_relu(), nn_linear(400, 784), nn_sigmoid()));
    return nn_done(v);
}

static Module *up(int64_t in, int64_t out, int64_t stride, int64_t padding)
{
    return nn_conv_transpose2d(in, out, 4, .stride = stride, .padding = padding, .bias = false);
}

Module *generator_net(void)
{
    return nn_sequential(up(64, 256, 1, 0), nn_batch_norm2d(256), nn_relu(), up(256, 128, 2, 1),
                         nn_batch_norm2d(128), nn_relu(), up(128, 64, 2, 1), nn_batch_norm2d(64), nn_relu(),
                         up(64, 1, 2, 1), nn_tanh());
}

static Module *down(int64_t in, int64_t out, int64_t stride, int64_t padding)
{
    return nn_conv2d(in, out, 4, .stride = stride, .padding = padding, .bias = false);
}

Module *discriminator_net(void)
{
    return nn_sequential(down(1, 64, 2, 1), nn_leaky_relu(.negative_slope = 0.2), down(64, 128, 2, 1),
                         nn_batch_norm2d(128), nn_leaky_relu(.negative_slope = 0.2), down(128, 256, 2, 1),
                         nn_batch_norm2d(256), nn_leaky_relu(.negative_slope = 0.2), down(256, 1, 1, 0),
                         nn_flatten(0));
}

/* ---- GPT ------------------------------------------------------------------------------------- */

typedef struct {
    Module base, *norm1, *qkv, *proj, *norm2, *mlp;
    int64_t heads;
} GptBlock;

static Tensor *attention(GptBlock *b, Tensor *x)
{
    const int64_t n = tensor_size(x, 0), t = tensor_size(x, 1), width = tensor_size(x, 2);
    Tensor *in[3] = { 0 };
    tensor_chunk(nn_forward(b->qkv, x), 3, 2, in, 3);
    for (int i = 0; i < 3; i++)
        in[i] = tensor_transpose(tensor_view(in[i], SHAPE(n, t, b->heads, width / b->heads)), 1, 2);
    Tensor *y = tensor_scaled_dot_product_attention(in[0], in[1], in[2], .is_causal = true);
    return nn_forward(b->proj, tensor_reshape(tensor_transpose(y, 1, 2), SHAPE(n, t, width)));
}

/* The norm of x, to which a branch is added first; NULL: none. */
static Tensor *add_norm(Module *norm, Tensor **x, Tensor *branch)
{
    if (!branch) return nn_forward(norm, *x);
    Tensor *weight = nn_get(norm, "weight"), *bias = nn_get(norm, "bias");
    const TensorAddLayerNorm y = tensor_add_layer_norm(*x, branch, tensor_shape(weight), weight, bias);
    *x = y.sum;
    return y.result;
}

/* (x, the branch that is to be added to it) -> the same behind the block */
static void block_forward(Module *self, NNCall *c)
{
    GptBlock *b = (GptBlock *)self;
    Tensor *x = c->in[0], *branch = attention(b, add_norm(b->norm1, &x, c->in[1]));
    c->out[1] = nn_forward(b->mlp, add_norm(b->norm2, &x, branch));
    c->out[0] = x;
}

static Module *gpt_block(int64_t width, int64_t heads, bool bias)
{
    GptBlock *b = nn_new(GptBlock, "GptBlock", block_forward);
    NN_CHILD(b, norm1, nn_layer_norm(width));
    NN_CHILD(b, qkv, nn_linear(width, 3 * width, .bias = bias));
    NN_CHILD(b, proj, nn_linear(width, width, .bias = bias));
    NN_CHILD(b, norm2, nn_layer_norm(width));
    NN_CHILD(b, mlp,
             nn_sequential(nn_linear(width, 4 * width, .bias = bias),
                           nn_gelu(.approximate = bias ? TENSOR_GELU_TANH : TENSOR_GELU_EXACT),
                           nn_linear(4 * width, width, .bias = bias)));
    b->heads = heads;
    return nn_done(b);
}

typedef struct {
    Module base, *tokens, *positions, *blocks, *norm, *head;
    Tensor *places;
} Gpt;

static void gpt_forward(Module *self, NNCall *c)
{
    Gpt *g = (Gpt *)self;
    Tensor *x = tensor_add(nn_forward(g->tokens, c->in[0]), nn_forward(g->positions, g->places));
    Tensor *branch = NULL;
    for (int i = 0; i < g->blocks->child_count; i++)
        nn_call(g->blocks->children[i].module, .in = { x, branch }, .out = { &x, &branch });
    c->out[0] = nn_forward(g->head, add_norm(g->norm, &x, branch));
    if (c->in[1])
        c->out[1] = tensor_cross_entropy(tensor_flatten(c->out[0], 0, 1), tensor_flatten(c->in[1], 0, 1));
}

Module *gpt_net(int64_t vocabulary, int64_t context, int64_t width, int64_t heads, int layers, bool bias)
{
    Gpt *g = nn_new(Gpt, "GPT", gpt_forward);
    NN_CHILD(g, tokens, nn_embedding(vocabulary, width));
    NN_CHILD(g, positions, nn_embedding(context, width));
    NN_CHILD(g, blocks, nn_sequential());
    for (int i = 0; i < layers; i++) nn_append(g->blocks, gpt_block(width, heads, bias));
    NN_CHILD(g, norm, nn_layer_norm(width));
    NN_CHILD(g, head, nn_linear(width, vocabulary, .bias = false));
    nn_register_parameter(g->tokens, "weight", nn_get(g->head, "weight"));
    NN_BUFFER(g, places, tensor_arange(0, (double)context, 1, TENSOR_I64), .persistent = false);
    return nn_done(g);
}
