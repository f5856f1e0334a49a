/* adamax.c - Adam with the infinity norm instead of the mean square (Kingma and Ba 2015).
 *
 *   g += w p      m += (1 - b1) (g - m)      u = max(b2 u, |g| + eps)      p -= lr / (1 - b1^t) m / u */
#include <math.h>
#include "../optim.h"
#include "../rules/adamax.h"

#define RULE adamax
#include "../rule.h"

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimAdamaxArgs *o = options;
    const adamax_numbers n = { .sign = o->maximize ? -1 : 1,
                               .decay = o->weight_decay,
                               .weight1 = 1 - o->beta1,
                               .beta2 = o->beta2,
                               .rate = o->lr / (1 - pow(o->beta1, (double)p->step)),
                               .eps = o->eps };
    memcpy(k, &n, sizeof n);
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimAdamaxArgs optim_adamax_defaults = { OPTIM_ADAMAX_DEFAULTS };
static const OpField fields[] = { OP_OPTION(OptimAdamaxArgs, lr, beta1, beta2, eps, weight_decay, maximize),
                                  { 0 } };

static int check(const void *options, const char *function)
{
    const OptimAdamaxArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    return optim_check_betas(o->beta1, o->beta2, o->eps, function);
}

static const OptimRule *rule(const void *options)
{
    (void)options;
    return &adamax_rule;
}

OPTIM_DEFINE(adamax, OptimAdamaxArgs, .fields = fields, .state = { "exp_avg", "exp_inf" }, .check = check,
             .rule = rule, .numbers = numbers, .name = "Adamax")
OPTIM_FUSED(adamax, OptimAdamaxArgs)
