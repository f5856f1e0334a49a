/* nets.h - the networks that bench measures, as bench/torch_nets.py has them. */
#ifndef BENCH_NETS_H
#define BENCH_NETS_H
#include <tapegrad.h>

Module *mlp_net(void);               /* 784-256-128-10 */
Module *mnist_net(void);             /* two convolutions, two dropouts, two linear layers */
Module *resnet18_net(void);          /* for 32 x 32 */
Module *resnet50_net(int64_t width); /* 64, for 224 x 224 */
Module *lstm_net(void);              /* two layers of 256, a head of 64; [32, 32, 256] */
Module *vae_net(void);               /* 784-400-20-400-784: (x) -> (reconstruction, mu, logvar) */
Module *generator_net(void);         /* of DCGAN: [N, 64, 1, 1] -> [N, 1, 32, 32] */
Module *discriminator_net(void);

/* Pre-norm blocks with causal attention and tied embeddings: (tokens, targets) -> (logits, loss).
 * bias: and GELU by tanh, as in GPT-2. */
Module *gpt_net(int64_t vocabulary, int64_t context, int64_t width, int64_t heads, int layers, bool bias);

#endif
