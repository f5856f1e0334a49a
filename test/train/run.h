/* run.h - a small training run in which all is there that a resumed one could get wrong: dropout, buffers, a
 * dataset that draws in the loader's thread, a shuffled loader, a schedule, products in f16 and the scale of
 * the loss, averages of the weights, a metric, a generator and numbers of the program's own. */
#ifndef RUN_H
#define RUN_H

#include "sane.h"

enum { RUN_STEPS = 60 };

typedef struct Run {
    Module *net;
    Optimizer *opt;
    Scheduler *schedule;
    DataLoader *loader;
    GradScaler *scaler;
    AveragedModel *averaged;
    Metric *metric;
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
    r.scaler = optim_grad_scaler(.init_scale = 0x1p18, .growth_interval = 7); /* some steps are skipped */
    r.averaged = optim_averaged_model(r.net, .ema_decay = 0.9);
    r.metric = nn_metric_accuracy();
    return r;
}

static inline Checkpoint *run_checkpoint(Run *r, const char *folder)
{
    Checkpoint *c =
        io_checkpoint(folder, .module = r->net, .optimizer = r->opt, .scheduler = r->schedule,
                      .loader = r->loader, .scaler = r->scaler, .averaged = r->averaged, .keep = 2);
    io_checkpoint_metric(c, "accuracy", r->metric);
    io_checkpoint_generator(c, "own", r->own);
    io_checkpoint_int(c, "step", &r->step);
    io_checkpoint_double(c, "smoothed", &r->smoothed);
    return c;
}

/* An NNStepFn. */
static inline Tensor *run_forward(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    Run *r = ctx;
    TensorGenerator *before = tensor_set_generator(r->own);
    Tensor *jitter = tensor_rand(SHAPE(), TENSOR_F32);
    tensor_set_generator(before);
    *output = nn_forward(net, tensor_add(b->x, jitter));
    Tensor *loss = tensor_cross_entropy(*output, b->y);
    if (net == r->net) r->smoothed = 0.9 * r->smoothed + 0.1 * tensor_item(loss);
    return loss;
}

static inline void run_step(Run *r)
{
    TensorScope scope = tensor_scope_open();
    Tensor *loss = NULL, *output = NULL;
    const Batch *b = data_next(r->loader);
    if (!b) b = data_next(r->loader);
    TENSOR_AUTOCAST(TENSOR_F16) loss = b ? run_forward(r->net, b, &output, r) : NULL;
    optim_zero_grad(r->opt);
    tensor_backward(optim_scaler_scale(r->scaler, loss));
    optim_scaler_step(r->scaler, r->opt);
    optim_scaler_update(r->scaler);
    optim_averaged_update(r->averaged);
    optim_scheduler_step(r->schedule);
    if (b) nn_metric_update(r->metric, output, b->y);
    r->step++;
    tensor_scope_close(scope);
}

static inline void run_add(TensorDict *all, const char *part, TensorDict state)
{
    for (int i = 0; i < state.count; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s.%s", part, state.item[i].name);
        nn_dict_set(all, name, tensor_clone(tensor_detach(state.item[i].tensor)));
    }
}

/* All that the run has come to; the caller frees it. */
static inline TensorDict run_state(Run *r)
{
    TensorDict all = { 0 };
    TensorScope scope = tensor_scope_open();
    run_add(&all, "model", nn_state_dict(r->net));
    run_add(&all, "optimizer", optim_state_dict(r->opt));
    if (r->schedule) run_add(&all, "scheduler", optim_scheduler_state_dict(r->schedule));
    run_add(&all, "loader", data_loader_state_dict(r->loader));
    run_add(&all, "scaler", optim_scaler_state_dict(r->scaler));
    run_add(&all, "averaged", optim_averaged_state_dict(r->averaged));
    run_add(&all, "accuracy", nn_metric_state_dict(r->metric));
    nn_dict_set(&all, "rng", tensor_get_rng_state());
    nn_dict_set(&all, "own", tensor_generator_get_state(r->own));
    nn_dict_set(&all, "step", tensor_scalar((double)r->step, TENSOR_F64));
    nn_dict_set(&all, "smoothed", tensor_scalar(r->smoothed, TENSOR_F64));
    tensor_scope_close(scope);
    return all;
}

static inline void assert_unchanged(Run *r, TensorDict want, const char *after)
{
    TensorDict found = run_state(r);
    assert_int_equal(found.count, want.count);
    for (int i = 0; i < want.count; i++)
        if (!tensor_equal(found.item[i].tensor, want.item[i].tensor))
            FAILS("%s has changed %s", after, want.item[i].name);
    nn_dict_free(found);
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
    data_loader_free(r->loader), optim_scheduler_free(r->schedule), optim_free(r->opt);
    optim_scaler_free(r->scaler), optim_averaged_free(r->averaged), nn_metric_free(r->metric);
    nn_free(r->net), tensor_generator_free(r->own);
}

#endif
