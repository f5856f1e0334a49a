/* test_optim_refusals.c - what optimizers, steps over lists, the scaler and averaged models refuse
 * (answers.h).  Options of each optimizer are test_optim_answers.c's. */
#include <math.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/foreach.h>
#include <tapegrad/grad_scaler.h>
#include <tapegrad/swa_utils.h>
#include "answers.h"

static Tensor *ones(TensorShape shape) { return tensor_ones(shape, TENSOR_F64); }
static Tensor *leaf(TensorShape shape) { return tensor_requires_grad_(ones(shape), true); }

/* A parameter with a gradient. */
static Tensor *parameter(TensorDtype dtype)
{
    Tensor *p = tensor_requires_grad_(tensor_ones(SHAPE(2), dtype), true);
    tensor_set_grad(p, tensor_ones(SHAPE(2), dtype));
    return p;
}

static int nothing(const void *options, OptimParam *p, Tensor *grad)
{
    return (void)options, (void)p, (void)grad, 0;
}

static int fails(const void *options, OptimParam *p, Tensor *grad)
{
    return (void)options, (void)p, (void)grad, -1;
}

static Tensor *no_loss(void *ctx) { return (void)ctx, NULL; }

typedef struct OwnArgs {
    TensorList params;
} OwnArgs;

static void own_step(size_t bytes, int (*step)(const void *, OptimParam *, Tensor *))
{
    const OptimKind kind = { .name = "Own", .function = "optim_own", .args = bytes, .step = step };
    Tensor *p = parameter(TENSOR_F64);
    char room[8192] = { 0 };
    const TensorList list = TENSORS(p);
    memcpy(room, &list, sizeof list);
    Optimizer *opt = optim_new(&kind, room);
    optim_step(opt);
    optim_free(opt);
}

static void making(void)
{
    Tensor *p = parameter(TENSOR_F64), *y = tensor_exp(p), *list[] = { p, NULL };
    const OptimKind nameless = { .args = sizeof(OwnArgs), .step = nothing },
                    stepless = { .function = "optim_own", .args = sizeof(OwnArgs) };
    Optimizer *m;
    ANSWER(optim_sgd(TENSOR_LIST(NULL, 1)));
    ANSWER(optim_sgd(TENSOR_LIST(list, 0)));
    ANSWER(optim_sgd(TENSOR_LIST(list, 2)));
    ANSWER(optim_sgd(TENSORS(p, p)));
    ANSWER(optim_sgd(TENSORS(y)));
    ANSWER(optim_adamw(TENSORS(p), .decoupled_weight_decay = false));
    ANSWER(optim_muon(TENSORS(p)));
    ANSWER(optim_muon(TENSORS(leaf(SHAPE(2, 2))), .ns_steps = -1));
    ANSWER(optim_free(m = optim_muon(TENSORS(leaf(SHAPE(2, 2))), .ns_steps = 99)));
    ANSWER(optim_muon(TENSORS(leaf(SHAPE(2, 2))), .ns_steps = 100));
    ANSWER(optim_muon(TENSORS(leaf(SHAPE(2, 2))), .ns_a = INFINITY));
    ANSWER(optim_new(NULL, list));
    ANSWER(optim_new(&nameless, list));
    ANSWER(optim_new(&stepless, list));
    ANSWER(optim_new(optim_kind_at(0), NULL));
    ANSWER(own_step(sizeof(TensorList) - 1, nothing));
    ANSWER(own_step(sizeof(TensorList), nothing));
    ANSWER(own_step(OPTIM_OPTIONS, nothing));
    ANSWER(own_step(OPTIM_OPTIONS + 1, nothing));
    ANSWER(own_step(sizeof(TensorList), fails));
}

static bool all(const Tensor *p, void *ctx) { return (void)p, (void)ctx, true; }

static void steps(void)
{
    Tensor *p = parameter(TENSOR_F64), *q = parameter(TENSOR_F64);
    Optimizer *sgd = optim_sgd(TENSORS(p)), *lbfgs = optim_lbfgs(TENSORS(q));
    ANSWER(optim_step(NULL));
    ANSWER(optim_step(lbfgs));
    ANSWER(optim_step_closure(sgd, NULL, NULL));
    ANSWER(optim_step_closure(sgd, no_loss, NULL));
    ANSWER(optim_step_closure(lbfgs, no_loss, NULL));
    ANSWER(optim_add_group(lbfgs, TENSORS(leaf(SHAPE(2)))));
    ANSWER(optim_split_group(lbfgs, 0, all, NULL));
    ANSWER(optim_split_group(sgd, 0, NULL, NULL));
    ANSWER(optim_split_group(sgd, -1, all, NULL));
    ANSWER(optim_split_group(sgd, 1, all, NULL));
    ANSWER(optim_add_group(sgd, TENSORS(p)));
    ANSWER(optim_options(sgd, 0, OptimAdamArgs));
    ANSWER(optim_options(sgd, -1, OptimSgdArgs));
    ANSWER(optim_options(sgd, 1, OptimSgdArgs));
    ANSWER(optim_options(sgd, 0, OptimSgdArgs));
    ANSWER(optim_set_lr(sgd, -1e-300));
    ANSWER(optim_set_lr(sgd, 0));
    ANSWER(optim_set_master_weights(lbfgs, true));
    ANSWER(optim_set_master_weights(sgd, true));
    ANSWER(optim_step_unless(sgd, NULL));
    ANSWER(optim_step_unless(sgd, ones(SHAPE(2))));
    ANSWER(optim_step_unless(sgd, ones(SHAPE(1))));
    ANSWER(optim_of_step(NULL, NULL, NULL));
    optim_free(sgd), optim_free(lbfgs);
}

static void load(Optimizer *opt, const char *name, Tensor *entry)
{
    TensorDict d = optim_state_dict(opt), other = { 0 };
    for (int i = 0; i < d.count; i++)
        if (entry || strcmp(d.item[i].name, name) != 0) nn_dict_set(&other, d.item[i].name, d.item[i].tensor);
    if (entry) nn_dict_set(&other, name, entry);
    optim_load_state_dict(opt, other);
    nn_dict_free(other);
}

static Tensor *square(void *ctx)
{
    Tensor *loss = tensor_sum(tensor_square(ctx));
    return tensor_backward(loss) ? NULL : loss;
}

static void states(void)
{
    Tensor *p = parameter(TENSOR_F64), *q = leaf(SHAPE(2));
    Optimizer *adam = optim_adam(TENSORS(p)), *lbfgs = optim_lbfgs(TENSORS(q), .max_iter = 3);
    TensorDictItem gap = { .name = (char[]){ "a" } };
    optim_step(adam);
    optim_step_closure(lbfgs, square, q);
    ANSWER(optim_load_state_dict(adam, (TensorDict){ .count = -1 }));
    ANSWER(optim_load_state_dict(adam, (TensorDict){ .count = 1 }));
    ANSWER(optim_load_state_dict(adam, (TensorDict){ .count = 1, .item = &gap }));
    ANSWER(load(adam, "state.0.step", tensor_scalar(-1, TENSOR_F32)));
    ANSWER(load(adam, "state.0.step", tensor_scalar(NAN, TENSOR_F32)));
    ANSWER(load(adam, "state.0.step", tensor_scalar(0x1p54, TENSOR_F32)));
    ANSWER(load(adam, "state.0.step", tensor_scalar(0x1p53, TENSOR_F32)));
    ANSWER(load(adam, "state.0.step", NULL));
    ANSWER(load(adam, "state.0.exp_avg", ones(SHAPE(3))));
    ANSWER(load(adam, "state.0.other", ones(SHAPE(2))));
    ANSWER(load(lbfgs, "state.0.d", NULL));
    ANSWER(load(lbfgs, "state.0.d", ones(SHAPE(3))));
    ANSWER(load(lbfgs, "state.0.prev_flat_grad", NULL));
    ANSWER(load(lbfgs, "state.0.func_evals", NULL));
    ANSWER(load(lbfgs, "state.0.func_evals", ones(SHAPE(2))));
    ANSWER(load(lbfgs, "state.0.ro.7", ones(SHAPE())));
    ANSWER(load(lbfgs, "state.0.another", ones(SHAPE())));
    ANSWER(load(lbfgs, "state.0.func_evals", ones(SHAPE())));
    optim_free(adam), optim_free(lbfgs);
}

static void lists(void)
{
    Tensor *x = ones(SHAPE(2)), *y = ones(SHAPE(3)), *i64 = tensor_ones(SHAPE(2), TENSOR_I64),
           *wide = tensor_expand(ones(SHAPE(1)), SHAPE(2)), *list[] = { x, NULL };
    ANSWER(tensor_foreach_zero_(TENSOR_LIST(NULL, 1)));
    ANSWER(tensor_foreach_zero_(TENSOR_LIST(list, -1)));
    ANSWER(tensor_foreach_zero_(TENSOR_LIST(list, 2)));
    ANSWER(tensor_foreach_zero_(TENSORS(x, leaf(SHAPE(2)))));
    ANSWER(tensor_foreach_zero_(TENSORS(x, wide)));
    ANSWER(tensor_foreach_add_(TENSORS(x), TENSORS(x, x), 1));
    ANSWER(tensor_foreach_add_(TENSORS(x), TENSORS(y), 1));
    ANSWER(tensor_foreach_add_(TENSORS(x), TENSORS(i64), 1));
    ANSWER(tensor_foreach_add_(TENSORS(x), TENSOR_LIST(NULL, 1), 1));
    ANSWER(tensor_foreach_mul_(TENSORS(x), NULL));
    ANSWER(tensor_foreach_mul_(TENSORS(x), y));
    ANSWER(tensor_foreach_mul_(TENSORS(x), ones(SHAPE(1, 1))));
    ANSWER(tensor_foreach_clamp_(TENSORS(x), 1, 0.5));
    ANSWER(tensor_foreach_clamp_(TENSORS(x), 1, 1));
    ANSWER(tensor_foreach_clamp_(TENSORS(x), NAN, 1));
    ANSWER(tensor_foreach_norm(TENSORS(i64)));
}

/* ---- the scaler ------------------------------------------------------------------------------- */

static void scaler_of(double scale, double growth, double backoff, int interval)
{
    optim_scaler_free(optim_grad_scaler(.init_scale = scale, .growth_factor = growth,
                                        .backoff_factor = backoff, .growth_interval = interval));
}

static void load_scaler(const char *name, Tensor *entry)
{
    GradScaler *s = optim_grad_scaler();
    TensorDict d = optim_scaler_state_dict(s), other = { 0 };
    for (int i = 0; i < d.count; i++)
        if (entry || strcmp(d.item[i].name, name) != 0) nn_dict_set(&other, d.item[i].name, d.item[i].tensor);
    if (entry) nn_dict_set(&other, name, entry);
    optim_scaler_load_state_dict(s, other);
    nn_dict_free(other);
    optim_scaler_free(s);
}

static void scaler(void)
{
    Tensor *p = parameter(TENSOR_F32), *half = parameter(TENSOR_F16), *bare = leaf(SHAPE(2));
    Optimizer *opt = optim_sgd(TENSORS(p)), *other = optim_sgd(TENSORS(half)),
              *none = optim_sgd(TENSORS(bare));
    GradScaler *s = optim_grad_scaler();
    ANSWER(scaler_of(0, 2, 0.5, 1));
    ANSWER(scaler_of(1, 1, 0.5, 1));
    ANSWER(scaler_of(1, 2, 0, 1));
    ANSWER(scaler_of(1, 2, 1, 1));
    ANSWER(scaler_of(1, 2, 0.5, 0));
    ANSWER(scaler_of(1, 2, 0.5, 1));
    ANSWER(optim_scaler_update(NULL));
    ANSWER(optim_scaler_update(s));
    ANSWER(optim_scaler_scale(s, NULL));
    ANSWER(optim_scaler_scale(s, ones(SHAPE())));
    ANSWER(optim_scaler_unscale_(s, NULL));
    ANSWER(optim_scaler_unscale_(s, other));
    ANSWER(optim_scaler_unscale_(s, none));
    ANSWER(optim_scaler_unscale_(s, opt));
    ANSWER(optim_scaler_unscale_(s, opt));
    ANSWER(optim_scaler_step(s, opt));
    ANSWER(optim_scaler_step(s, opt));
    ANSWER(optim_scaler_unscale_(s, opt));
    ANSWER(optim_scaler_update(s));
    ANSWER(optim_scaler_set_scale(s, 0));
    ANSWER(optim_scaler_set_scale(s, 1e-300));
    ANSWER(load_scaler("scale", NULL));
    ANSWER(load_scaler("scale", ones(SHAPE(2))));
    ANSWER(load_scaler("scale", tensor_scalar(-1, TENSOR_F32)));
    ANSWER(load_scaler("growth_interval", tensor_scalar(0, TENSOR_I64)));
    ANSWER(load_scaler("growth_interval", tensor_scalar(1e9, TENSOR_I64)));
    ANSWER(load_scaler("growth_interval", tensor_scalar(1e9 + 1, TENSOR_I64)));
    ANSWER(load_scaler("_growth_tracker", tensor_scalar(-1, TENSOR_I64)));
    ANSWER(load_scaler("_growth_tracker", tensor_scalar(1e9, TENSOR_I64)));
    ANSWER(load_scaler("_growth_tracker", tensor_scalar(1e9 + 1, TENSOR_I64)));
    ANSWER(load_scaler("another", ones(SHAPE())));
    optim_free(opt), optim_free(other), optim_free(none), optim_scaler_free(s);
}

/* ---- averages --------------------------------------------------------------------------------- */

static int no_average(TensorList averages, TensorList own, int64_t n, void *ctx)
{
    return (void)averages, (void)own, (void)n, (void)ctx, -1;
}

static void load_averages(const char *name, Tensor *entry)
{
    Module *net = nn_linear(2, 2);
    AveragedModel *m = optim_averaged_model(net);
    TensorDict d = optim_averaged_state_dict(m), other = { 0 };
    for (int i = 0; i < d.count; i++)
        if (entry || strcmp(d.item[i].name, name) != 0) nn_dict_set(&other, d.item[i].name, d.item[i].tensor);
    if (entry) nn_dict_set(&other, name, entry);
    optim_averaged_load_state_dict(m, other);
    nn_dict_free(other);
    optim_averaged_free(m);
    nn_free(net);
}

static void averages(void)
{
    Module *net = nn_linear(2, 2), *norm = nn_batch_norm1d(2);
    AveragedModel *m = optim_averaged_model(net), *fn = optim_averaged_model(net, .multi_avg_fn = no_average),
                  *kept;
    DataLoader *empty = data_loader(data_tensors(tensor_ones(SHAPE(1, 2), TENSOR_F32), NULL), .batch_size = 2,
                                    .drop_last = true);
    ANSWER(optim_averaged_model(NULL));
    ANSWER(optim_averaged_model(net, .ema_decay = -1e-300));
    ANSWER(optim_averaged_model(net, .ema_decay = 1.1));
    ANSWER(optim_averaged_model(net, .ema_decay = 0.5, .multi_avg_fn = no_average));
    ANSWER(optim_averaged_free(kept = optim_averaged_model(net, .ema_decay = 0)));
    ANSWER(optim_averaged_free(kept = optim_averaged_model(net, .ema_decay = 1)));
    ANSWER(optim_averaged_update(NULL));
    ANSWER(optim_averaged_update(fn));
    ANSWER(optim_averaged_update(fn));
    ANSWER(optim_averaged_swap(m));
    ANSWER(optim_averaged_update(m));
    ANSWER(optim_averaged_swap(m));
    ANSWER(optim_averaged_update(m));
    ANSWER(load_averages("n_averaged", NULL));
    ANSWER(load_averages("n_averaged", ones(SHAPE(2))));
    ANSWER(load_averages("n_averaged", tensor_scalar(-1, TENSOR_I64)));
    ANSWER(load_averages("n_averaged", tensor_scalar(0.5, TENSOR_F64)));
    ANSWER(load_averages("n_averaged", tensor_scalar(0, TENSOR_I64)));
    ANSWER(load_averages("n_averaged", tensor_scalar(0x1p53, TENSOR_I64)));
    ANSWER(load_averages("n_averaged", tensor_scalar(0x1p54, TENSOR_I64)));
    ANSWER(load_averages("module.bias", NULL));
    ANSWER(load_averages("module.bias", ones(SHAPE(3))));
    ANSWER(load_averages("module.other", ones(SHAPE(3))));
    ANSWER(optim_update_bn(NULL, norm));
    ANSWER(optim_update_bn(empty, NULL));
    ANSWER(optim_update_bn(empty, norm));
    ANSWER(optim_update_bn(empty, net));
    data_loader_free(empty);
    optim_averaged_free(m), optim_averaged_free(fn), nn_free(net), nn_free(norm);
}

int main(int argc, char **argv)
{
    answers_begin(argc, argv, "test/optim/refusals.golden");
    answers_of("making", making);
    answers_of("steps", steps);
    answers_of("states", states);
    answers_of("lists", lists);
    answers_of("scaler", scaler);
    answers_of("averages", averages);
    return answers_end();
}
