/* run.h - a small training run in which all is there that a resumed one could get wrong: dropout, buffers, a
 * dataset that draws in the loader's thread, a shuffled loader, a schedule, a generator of the program's own.
 * */
#ifndef RUN_H
#define RUN_H

#include <tapegrad.h>

enum { RUN_STEPS = 60 };

typedef struct Run {
    Module *net;
    Optimizer *opt;
    Scheduler *schedule;
    DataLoader *loader;
    TensorGenerator *own;
    int64_t step;
    double smoothed;
} Run;

static int run_sample(void *ctx, int64_t i, Tensor **x, Tensor **y)
{
    (void)ctx;
    Tensor *noise = tensor_randn(SHAPE(6), TENSOR_F32);
    *x = tensor_add_scalar(tensor_mul_scalar(noise, 0.1), (double)(i % 3));
    *y = tensor_to(tensor_scalar((double)(i % 3), TENSOR_F64), TENSOR_I64);
    return *x && *y ? 0 : -1;
}

static inline Run run_begin(int prefetch)
{
    Run r = { 0 };
    tensor_manual_seed(7);
    r.own = tensor_generator(11);
    r.net =
        nn_sequential(nn_linear(6, 16), nn_batch_norm1d(16), nn_relu(), nn_dropout(0.3), nn_linear(16, 3));
    r.opt = optim_adamw(nn_parameters(r.net), .lr = 1e-2);
    r.schedule = optim_cosine_annealing_lr(r.opt, RUN_STEPS);
    r.loader = data_loader(data_custom(50, run_sample, NULL, NULL), .batch_size = 8, .shuffle = true,
                           .prefetch = prefetch);
    return r;
}

static inline Checkpoint *run_checkpoint(Run *r, const char *folder)
{
    Checkpoint *c = io_checkpoint(folder, .module = r->net, .optimizer = r->opt, .scheduler = r->schedule,
                                  .loader = r->loader, .keep = 2);
    io_checkpoint_generator(c, "own", r->own);
    io_checkpoint_int(c, "step", &r->step);
    io_checkpoint_double(c, "smoothed", &r->smoothed);
    return c;
}

static inline void run_step(Run *r)
{
    TensorScope scope = tensor_scope_open();
    Batch *b = data_next(r->loader);
    if (!b) b = data_next(r->loader);
    TensorGenerator *before = tensor_set_generator(r->own);
    Tensor *jitter = tensor_rand(SHAPE(), TENSOR_F32);
    tensor_set_generator(before);
    Tensor *loss = b ? tensor_cross_entropy(nn_forward(r->net, tensor_add(b->x, jitter)), b->y) : NULL;
    optim_zero_grad(r->opt);
    tensor_backward(loss);
    optim_step(r->opt);
    optim_scheduler_step(r->schedule);
    r->smoothed = 0.9 * r->smoothed + 0.1 * tensor_item(loss);
    r->step++;
    tensor_scope_close(scope);
}

/* All that the run has come to; the caller frees it. */
static inline TensorDict run_state(Run *r)
{
    TensorDict dict = nn_dict_clone(nn_state_dict(r->net));
    TensorScope scope = tensor_scope_open();
    TensorDict state = nn_dict_clone(optim_state_dict(r->opt));
    for (int i = 0; i < state.count; i++) nn_dict_set(&dict, state.item[i].name, state.item[i].tensor);
    nn_dict_set(&dict, "rng", tensor_get_rng_state());
    nn_dict_set(&dict, "own", tensor_generator_get_state(r->own));
    nn_dict_set(&dict, "smoothed", tensor_scalar(r->smoothed, TENSOR_F64));
    tensor_scope_close(scope);
    nn_dict_free(state);
    return dict;
}

static inline int run_save(Run *r, const char *path)
{
    TensorDict dict = run_state(r);
    int status = io_save_safetensors(path, dict);
    nn_dict_free(dict);
    return status;
}

static inline void run_end(Run *r)
{
    data_loader_free(r->loader), optim_scheduler_free(r->schedule), optim_free(r->opt), nn_free(r->net);
    tensor_generator_free(r->own);
}

#endif
