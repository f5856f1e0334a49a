/* test_schedule_refusals.c - what schedules of learning rates refuse, each limit from both sides
 * (answers.h). */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/lr_scheduler.h>
#include <tapegrad/swa_utils.h>
#include "answers.h"

static Optimizer *opt; /* two groups, with momentum */

static Tensor *leaf(void) { return tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true); }
static void gone(Scheduler *s) { optim_scheduler_free(s); }

#define TRY(...) (gone(__VA_ARGS__), answer_call(#__VA_ARGS__))

static void options(void)
{
    Optimizer *adagrad = optim_adagrad(TENSORS(leaf()));
    TRY(optim_step_lr(NULL, 1));
    TRY(optim_step_lr(opt, 0));
    TRY(optim_step_lr(opt, 1));
    TRY(optim_step_lr(opt, 1, .last_epoch = -2));
    TRY(optim_step_lr(opt, 1, .last_epoch = 0x7fffffff));
    TRY(optim_step_lr(opt, 1, .last_epoch = INT64_C(0x80000000)));
    TRY(optim_step_lr(adagrad, 1, .last_epoch = 3));
    TRY(optim_one_cycle_lr(opt, 0.1, .total_steps = 0));
    TRY(optim_one_cycle_lr(opt, 0.1, .total_steps = 1));
    TRY(optim_one_cycle_lr(opt, 0.1, .total_steps = -1));
    TRY(optim_one_cycle_lr(opt, 0.1, .epochs = 2));
    TRY(optim_one_cycle_lr(opt, 0.1, .epochs = 2, .steps_per_epoch = 3));
    TRY(optim_one_cycle_lr(opt, 0.1, .total_steps = 6, .epochs = 2, .steps_per_epoch = 3));
    TRY(optim_one_cycle_lr(opt, 0.1, .epochs = 2, .steps_per_epoch = INT_MAX / 2));
    TRY(optim_one_cycle_lr(opt, 0.1, .epochs = 2, .steps_per_epoch = INT_MAX / 2 + 1));
    TRY(optim_one_cycle_lr(opt, 0.1, .total_steps = 6, .max_lrs = PER_GROUP(0.1, 0.2)));
    TRY(optim_one_cycle_lr(opt, .total_steps = 6, .max_lrs = PER_GROUP(0.1, 0.2)));
    TRY(optim_one_cycle_lr(opt, .total_steps = 6, .max_lrs = PER_GROUP(0.1)));
    TRY(optim_one_cycle_lr(opt, .total_steps = 6, .max_lrs = { 2, NULL }));
    TRY(optim_one_cycle_lr(opt, .total_steps = 6, .max_lrs = PER_GROUP(0.1, -0.2)));
    TRY(optim_one_cycle_lr(opt, -0.1, .total_steps = 6));
    TRY(optim_one_cycle_lr(adagrad, 0.1, .total_steps = 6));
    TRY(optim_one_cycle_lr(adagrad, 0.1, .total_steps = 6, .cycle_momentum = false));
    optim_free(adagrad);
}

static double below(int64_t step, int group, void *ctx) { return (void)group, (void)ctx, step > 0 ? -1 : 1; }

static void steps(void)
{
    Scheduler *plateau = optim_reduce_lr_on_plateau(opt), *cycle, *falls;
    ANSWER(optim_scheduler_step(NULL));
    ANSWER(optim_scheduler_step(plateau));
    ANSWER(optim_scheduler_step_metric(plateau, 1));
    ANSWER(optim_scheduler_last_lr(NULL, 0));
    ANSWER(optim_scheduler_last_lr(plateau, -1));
    ANSWER(optim_scheduler_last_lr(plateau, 1));
    ANSWER(optim_scheduler_last_lr(plateau, 2));
    gone(plateau);
    ANSWER(cycle = optim_one_cycle_lr(opt, 0.1, .total_steps = 2));
    ANSWER(optim_scheduler_step(cycle));
    ANSWER(optim_scheduler_step(cycle));
    ANSWER(optim_scheduler_step(cycle));
    gone(cycle);
    ANSWER(falls = optim_lambda_lr(opt, below));
    ANSWER(optim_scheduler_step(falls));
    gone(falls);
}

static Scheduler *one(void) { return optim_exponential_lr(opt, 0.5); }

static void several(void)
{
    Optimizer *other = optim_sgd(TENSORS(leaf()), 0.1);
    Scheduler *twice = one();
    TRY(optim_chained_scheduler(NULL, 1));
    TRY(optim_chained_scheduler((Scheduler *[]){ NULL }, 0));
    TRY(optim_chained_scheduler((Scheduler *[]){ one(), NULL }, 2));
    TRY(optim_chained_scheduler((Scheduler *[]){ one(), optim_exponential_lr(other, 0.5) }, 2));
    TRY(optim_chained_scheduler((Scheduler *[]){ one(), optim_reduce_lr_on_plateau(opt) }, 2));
    TRY(optim_chained_scheduler((Scheduler *[]){ twice, one(), twice }, 3));
    TRY(optim_chained_scheduler((Scheduler *[]){ one(), one() }, 2));
    TRY(optim_sequential_lr(opt, (Scheduler *[]){ one(), one() }, 2, SHAPE()));
    TRY(optim_sequential_lr(opt, (Scheduler *[]){ one(), one() }, 2, SHAPE(1, 2)));
    TRY(optim_sequential_lr(opt, (Scheduler *[]){ one(), one() }, 2, (TensorShape){ 1, NULL }));
    TRY(optim_sequential_lr(opt, (Scheduler *[]){ one(), one() }, 2, SHAPE(-1)));
    TRY(optim_sequential_lr(opt, (Scheduler *[]){ one(), one() }, 2, SHAPE(0)));
    TRY(optim_sequential_lr(opt, (Scheduler *[]){ one(), one(), one() }, 3, SHAPE(2, 1)));
    TRY(optim_sequential_lr(opt, (Scheduler *[]){ one(), one(), one() }, 3, SHAPE(2, 2)));
    optim_free(other);
}

static void load(const char *name, Tensor *entry)
{
    Scheduler *s = optim_step_lr(opt, 3);
    TensorDict d = optim_scheduler_state_dict(s), other = { 0 };
    for (int i = 0; i < d.count; i++)
        if (entry || strcmp(d.item[i].name, name) != 0) nn_dict_set(&other, d.item[i].name, d.item[i].tensor);
    if (entry) nn_dict_set(&other, name, entry);
    optim_scheduler_load_state_dict(s, other);
    nn_dict_free(other);
    gone(s);
}

static void states(void)
{
    Scheduler *s = one();
    TensorDictItem gap = { .name = (char[]){ "a" } };
    ANSWER(optim_scheduler_state_dict(NULL));
    ANSWER(optim_scheduler_load_state_dict(NULL, (TensorDict){ 0 }));
    ANSWER(optim_scheduler_load_state_dict(s, (TensorDict){ .count = -1 }));
    ANSWER(optim_scheduler_load_state_dict(s, (TensorDict){ .count = 1 }));
    ANSWER(optim_scheduler_load_state_dict(s, (TensorDict){ .count = 1, .item = &gap }));
    ANSWER(load("last_epoch", NULL));
    ANSWER(load("last_epoch", tensor_scalar(0.5, TENSOR_F64)));
    ANSWER(load("last_epoch", tensor_scalar(-2, TENSOR_I64)));
    ANSWER(load("last_epoch", tensor_scalar(-1, TENSOR_I64)));
    ANSWER(load("last_epoch", tensor_scalar(0, TENSOR_I64)));
    ANSWER(load("last_epoch", tensor_scalar(0x1p53, TENSOR_I64)));
    ANSWER(load("last_epoch", tensor_scalar(0x1p54, TENSOR_I64)));
    ANSWER(load("last_epoch", tensor_ones(SHAPE(2), TENSOR_I64)));
    ANSWER(load("_last_lr", tensor_ones(SHAPE(3), TENSOR_F64)));
    ANSWER(load("_last_lr", tensor_ones(SHAPE(1, 2), TENSOR_F64)));
    ANSWER(load("step_size", tensor_scalar(4, TENSOR_I64)));
    ANSWER(load("step_size", tensor_scalar(0, TENSOR_I64)));
    ANSWER(load("gamma", tensor_scalar(0.2, TENSOR_F64)));
    ANSWER(load("another", tensor_scalar(0.2, TENSOR_F64)));
    gone(s);
}

int main(int argc, char **argv)
{
    TensorScope scope = tensor_scope_open();
    opt = optim_sgd(TENSORS(leaf()), 0.1, .momentum = 0.9);
    optim_add_group(opt, TENSORS(leaf()));
    answers_begin(argc, argv, "test/optim/schedule_refusals.golden");
    answers_of("options", options);
    answers_of("steps", steps);
    answers_of("several", several);
    answers_of("states", states);
    optim_free(opt);
    tensor_scope_close(scope);
    return answers_end();
}
