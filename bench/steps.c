/* steps.c - training steps and inference of whole networks. */
#include <stdio.h>
#include <stdlib.h>
#include "cases.h"
#include "nets.h"

static Module *net, *other;
static Optimizer *opt, *other_opt;
static Tensor *batch, *labels;

static Tensor *keep(Tensor *t) { return tensor_retain(t); }

static void step_on(Tensor *loss, Optimizer *o)
{
    optim_zero_grad(o);
    tensor_backward(loss);
    optim_step(o);
}

#define IN_SCOPE(name, ...)                            \
    static void name(void)                             \
    {                                                  \
        const TensorScope scope = tensor_scope_open(); \
        __VA_ARGS__;                                   \
        tensor_scope_close(scope);                     \
    }

static Tensor *classify_loss(void) { return tensor_cross_entropy(nn_forward(net, batch), labels); }
IN_SCOPE(classify, step_on(classify_loss(), opt))
IN_SCOPE(classify_bf16, Tensor *loss; TENSOR_AUTOCAST(TENSOR_BF16) loss = classify_loss(); step_on(loss, opt))
IN_SCOPE(
    infer, TENSOR_NO_GRAD { nn_forward(net, batch); })

static void mlp_setup(const char *sizes)
{
    (void)sizes;
    net = mlp_net(), opt = optim_sgd(nn_parameters(net), .lr = 0.01);
    batch = keep(tensor_rand(SHAPE(64, 784), TENSOR_F32)), labels = keep(tensor_randint(0, 10, SHAPE(64)));
}

static void mnist_setup(const char *sizes)
{
    (void)sizes;
    net = mnist_net(), opt = optim_adam(nn_parameters(net), .lr = 1e-3);
    batch = keep(tensor_rand(SHAPE(64, 1, 28, 28), TENSOR_F32));
    labels = keep(tensor_randint(0, 10, SHAPE(64)));
}

static void resnet_setup(const char *sizes)
{
    (void)sizes;
    net = resnet18_net();
    opt = optim_sgd(nn_parameters(net), .lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4);
    batch = keep(tensor_randn(SHAPE(32, 3, 32, 32), TENSOR_F32));
    labels = keep(tensor_randint(0, 10, SHAPE(32)));
}

/* resnet50_bf16_step_128x224x64: images, their side, channels of the first convolution; channels last. */
static void resnet50_setup(const char *sizes)
{
    long n, side, width;
    if (sscanf(sizes, "%ldx%ldx%ld", &n, &side, &width) != 3) abort();
    net = resnet50_net(width);
    opt = optim_sgd(nn_parameters(net), .lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4);
    batch = keep(tensor_permute(tensor_randn(SHAPE(n, side, side, 3), TENSOR_F32), SHAPE(0, 3, 1, 2)));
    labels = keep(tensor_randint(0, 1000, SHAPE(n)));
}

static void lstm_setup(const char *sizes)
{
    (void)sizes;
    net = lstm_net(), opt = optim_adam(nn_parameters(net), .lr = 1e-3);
    batch = keep(tensor_randn(SHAPE(32, 32, 256), TENSOR_F32));
    labels = keep(tensor_randint(0, 64, SHAPE(32 * 32)));
}

#define EVALUATED(name) \
    static void name##_eval(const char *sizes) { name##_setup(sizes), nn_eval(net); }
EVALUATED(mlp)
EVALUATED(mnist)
EVALUATED(resnet)
EVALUATED(lstm)

/* ---- GPT ------------------------------------------------------------------------------------- */

static void gpt_with(int64_t vocabulary, int64_t n, int64_t t, int64_t width, int64_t heads, int layers,
                     bool bias)
{
    net = gpt_net(vocabulary, t, width, heads, layers, bias);
    opt = optim_adamw(nn_parameters(net), .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1);
    batch = keep(tensor_randint(0, vocabulary, SHAPE(n, t)));
    labels = keep(tensor_randint(0, vocabulary, SHAPE(n, t)));
}
static void nanogpt_setup(const char *sizes) { (void)sizes, gpt_with(65, 12, 64, 128, 4, 4, false); }
static void gpt2_block_setup(const char *sizes) { (void)sizes, gpt_with(64, 2, 256, 768, 12, 1, true); }
EVALUATED(nanogpt)

/* gpt2_bf16_step_32x1024x768x12x12x50257: batch, context, width, heads, layers, vocabulary. */
static void gpt2_setup(const char *sizes)
{
    long n, t, width, heads, layers, words;
    if (sscanf(sizes, "%ldx%ldx%ldx%ldx%ldx%ld", &n, &t, &width, &heads, &layers, &words) != 6) abort();
    gpt_with(words, n, t, width, heads, (int)layers, true);
}

static Tensor *gpt_loss(void)
{
    Tensor *logits, *loss;
    nn_call(net, .in = { batch, labels }, .out = { &logits, &loss });
    return loss;
}

static void step_clipped(Tensor *loss)
{
    tensor_backward(loss);
    nn_clip_grad_norm_(nn_parameters(net), 1.0);
    optim_step(opt);
    optim_zero_grad(opt);
}
IN_SCOPE(gpt_step, step_clipped(gpt_loss()))
IN_SCOPE(gpt_step_bf16, Tensor *loss; TENSOR_AUTOCAST(TENSOR_BF16) loss = gpt_loss(); step_clipped(loss))

/* ---- VAE, DCGAN ------------------------------------------------------------------------------ */

static void vae_setup(const char *sizes)
{
    (void)sizes;
    net = vae_net(), opt = optim_adam(nn_parameters(net), .lr = 1e-3);
    batch = keep(tensor_rand(SHAPE(128, 784), TENSOR_F32));
}

static Tensor *vae_loss(void)
{
    Tensor *y, *mu, *logvar;
    nn_call(net, .in = { batch }, .out = { &y, &mu, &logvar });
    Tensor *kl = tensor_sub(tensor_add_scalar(logvar, 1), tensor_add(tensor_square(mu), tensor_exp(logvar)));
    return tensor_sub(tensor_binary_cross_entropy(y, batch, .reduction = TENSOR_SUM),
                      tensor_mul_scalar(tensor_sum(kl), 0.5));
}
IN_SCOPE(vae_step, step_on(vae_loss(), opt))

static void dcgan_setup(const char *sizes)
{
    (void)sizes;
    net = discriminator_net(), other = generator_net();
    opt = optim_adam(nn_parameters(net), .lr = 2e-4, .beta1 = 0.5);
    other_opt = optim_adam(nn_parameters(other), .lr = 2e-4, .beta1 = 0.5);
    batch = keep(tensor_randn(SHAPE(64, 1, 32, 32), TENSOR_F32));
    labels = keep(tensor_ones(SHAPE(64), TENSOR_F32));
}

static void dcgan_step(void)
{
    const TensorScope scope = tensor_scope_open();
    Tensor *made = nn_forward(other, tensor_randn(SHAPE(64, 64, 1, 1), TENSOR_F32));
    optim_zero_grad(opt);
    tensor_backward(tensor_binary_cross_entropy_with_logits(nn_forward(net, batch), labels));
    Tensor *judged = nn_forward(net, tensor_detach(made));
    tensor_backward(tensor_binary_cross_entropy_with_logits(judged, tensor_zeros_like(labels)));
    optim_step(opt);
    step_on(tensor_binary_cross_entropy_with_logits(nn_forward(net, made), labels), other_opt);
    tensor_scope_close(scope);
}

const BenchCase bench_steps[] = {
    { "mlp_step", mlp_setup, classify, 1 },
    { "mnist_cnn_step", mnist_setup, classify, 1 },
    { "resnet18_step", resnet_setup, classify, 1 },
    { "nanogpt_step", nanogpt_setup, gpt_step, 1 },
    { "lstm_step", lstm_setup, classify, 1 },
    { "dcgan_step", dcgan_setup, dcgan_step, 1 },
    { "vae_step", vae_setup, vae_step, 1 },
    { "gpt2_block_step", gpt2_block_setup, gpt_step, 1 },
    { "mnist_cnn_bf16_step", mnist_setup, classify_bf16, 1 },
    { "resnet18_bf16_step", resnet_setup, classify_bf16, 1 },
    { "nanogpt_bf16_step", nanogpt_setup, gpt_step_bf16, 1 },
    { "resnet50_bf16_step_", resnet50_setup, classify_bf16, 1 },
    { "gpt2_bf16_step_", gpt2_setup, gpt_step_bf16, 1 },
    { "mlp_inference", mlp_eval, infer, 1 },
    { "mnist_cnn_inference", mnist_eval, infer, 1 },
    { "resnet18_inference", resnet_eval, infer, 1 },
    { "nanogpt_inference", nanogpt_eval, infer, 1 },
    { "lstm_inference", lstm_eval, infer, 1 },
    { 0 },
};
