/* lion.c - steps by the sign of an interpolated momentum (Chen et al. 2023, algorithm 2).
 *
 *   p *= 1 - lr w      c = b1 m + (1 - b1) g      p -= lr sign(c)      m = b2 m + (1 - b2) g */
#include "../optim.h"
#include "../rules/lion.h"

#define RULE lion
#include "../rule.h"

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimLionArgs *o = options;
    (void)p;
    const lion_numbers n = { .sign = o->maximize ? -1 : 1,
                             .shrink = 1 - o->lr * o->weight_decay,
                             .beta1 = o->beta1,
                             .weight1 = 1 - o->beta1,
                             .beta2 = o->beta2,
                             .weight2 = 1 - o->beta2,
                             .lr = o->lr };
    memcpy(k, &n, sizeof n);
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimLionArgs optim_lion_defaults = { OPTIM_LION_DEFAULTS };
static const OpField fields[] = { OP_OPTION(OptimLionArgs, lr, beta1, beta2, weight_decay, maximize), { 0 } };

static int check(const void *options, const char *function)
{
    const OptimLionArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    return optim_check_betas(o->beta1, o->beta2, 0, function);
}

static const OptimRule *rule(const void *options)
{
    (void)options;
    return &lion_rule;
}

OPTIM_DEFINE(lion, OptimLionArgs, .fields = fields, .state = { "exp_avg" }, .check = check, .rule = rule,
             .numbers = numbers, .name = "Lion")
OPTIM_FUSED(lion, OptimLionArgs)
