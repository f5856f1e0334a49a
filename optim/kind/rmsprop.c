/* rmsprop.c - gradients over the root of their squares' running mean (Hinton 2012).
 *
 *   g += w p      s = alpha s + (1 - alpha) g^2
 *   centered: a += (1 - alpha) (g - a), and s - a^2 stands for s
 *   d = g / (sqrt(s) + eps)      momentum: b = momentum b + d, and b stands for d      p -= lr d */
#include "../optim.h"
#include "../rules/rmsprop.h"

#define RULE rmsprop
#include "../rule.h"
#define RULE rmsprop_centered
#include "../rule.h"
#define RULE rmsprop_momentum
#include "../rule.h"
#define RULE rmsprop_both
#include "../rule.h"

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimRmspropArgs *o = options;
    (void)p;
    const rmsprop_numbers n = { .sign = o->maximize ? -1 : 1,
                                .decay = o->weight_decay,
                                .alpha = o->alpha,
                                .keep = 1 - o->alpha,
                                .eps = o->eps,
                                .lr = o->lr,
                                .momentum = o->momentum };
    memcpy(k, &n, sizeof n);
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimRmspropArgs optim_rmsprop_defaults = { OPTIM_RMSPROP_DEFAULTS };
static const OpField fields[] = {
    OP_OPTION(OptimRmspropArgs, lr, alpha, eps, weight_decay, momentum, centered, maximize), { 0 }
};

static unsigned states(const void *options)
{
    const OptimRmspropArgs *o = options;
    return 1u | (o->momentum > 0 ? 2u : 0) | (o->centered ? 4u : 0);
}

static int check(const void *options, const char *function)
{
    const OptimRmspropArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    if (o->alpha >= 0 && o->eps >= 0 && o->momentum >= 0) return 0;
    return tensor_fail(TENSOR_EVALUE, function, "alpha %g, eps %g, momentum %g: want 0 or more", o->alpha,
                       o->eps, o->momentum);
}

static const OptimRule *rule(const void *options)
{
    static const OptimRule *const rules[] = { &rmsprop_rule, &rmsprop_momentum_rule, &rmsprop_centered_rule,
                                              &rmsprop_both_rule };
    return rules[states(options) >> 1];
}

OPTIM_DEFINE(rmsprop, OptimRmspropArgs, .fields = fields,
             .state = { "square_avg", "momentum_buffer", "grad_avg" }, .states = states, .check = check,
             .rule = rule, .numbers = numbers, .name = "RMSprop")
OPTIM_FUSED(rmsprop, OptimRmspropArgs)
