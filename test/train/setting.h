/* setting.h - a net, its optimizer and two loaders, for the suites of nn_fit. */
#ifndef SETTING_H
#define SETTING_H

#include "scratch.h"

enum { SAMPLES = 45, BATCH = 8, BATCHES = 6 };

typedef struct Setting {
    Module *net;
    Optimizer *opt;
    DataLoader *train, *test;
} Setting;

static inline DataLoader *loader(int64_t n, bool shuffle)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_randn(SHAPE(n, 5), TENSOR_F32);
    Tensor *y = tensor_argmax(tensor_matmul(x, tensor_randn(SHAPE(5, 3), TENSOR_F32)), 1);
    DataLoader *l = data_loader(data_tensors(x, y), .batch_size = BATCH, .shuffle = shuffle);
    tensor_scope_close(scope);
    return l;
}

static inline Setting setting(void)
{
    tensor_manual_seed(3);
    Setting s = { .net = nn_sequential(nn_linear(5, 16), nn_batch_norm1d(16), nn_relu(), nn_dropout(0.2),
                                       nn_linear(16, 3)) };
    s.opt = optim_adamw(nn_parameters(s.net), .lr = 1e-2);
    s.train = loader(SAMPLES, true), s.test = loader(20, false);
    if (tensor_error()) FAILS("%s", tensor_error());
    tensor_manual_seed(4);
    return s;
}

static inline void drop(Setting *s)
{
    data_loader_free(s->train), data_loader_free(s->test), optim_free(s->opt), nn_free(s->net);
}

static inline void assert_same_net(const Setting *a, const Setting *b)
{
    TensorDict found = nn_state_dict(a->net), want = nn_state_dict(b->net);
    for (int i = 0; i < want.count; i++)
        if (!tensor_equal(found.item[i].tensor, want.item[i].tensor)) FAILS("%s differs", want.item[i].name);
}

static inline Module *ce(void) { return nn_cross_entropy_loss(); }

#endif
