/* adagrad.c - rates that fall with the sum of squared gradients (Duchi et al. 2011).
 *
 *   g += w p      s += g^2 (from the initial value)      p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)
 */
#include "../optim.h"
#include "../rules/adagrad.h"

#define RULE adagrad
#include "../rule.h"

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimAdagradArgs *o = options;
    const adagrad_numbers n = { .sign = o->maximize ? -1 : 1,
                                .decay = o->weight_decay,
                                .start = p->fresh ? o->initial_accumulator_value : 0,
                                .rate = o->lr / (1 + (double)(p->step - 1) * o->lr_decay),
                                .eps = o->eps };
    memcpy(k, &n, sizeof n);
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimAdagradArgs optim_adagrad_defaults = { OPTIM_ADAGRAD_DEFAULTS };
static const OpField fields[] = {
    OP_OPTION(OptimAdagradArgs, lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize), { 0 }
};

static int check(const void *options, const char *function)
{
    const OptimAdagradArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    if (o->lr_decay >= 0 && o->initial_accumulator_value >= 0 && o->eps >= 0) return 0;
    return tensor_fail(TENSOR_EVALUE, function,
                       "lr_decay %g, initial_accumulator_value %g, eps %g: want 0 or more", o->lr_decay,
                       o->initial_accumulator_value, o->eps);
}

static const OptimRule *rule(const void *options)
{
    (void)options;
    return &adagrad_rule;
}

OPTIM_DEFINE(adagrad, OptimAdagradArgs, .fields = fields, .state = { "sum" }, .check = check, .rule = rule,
             .numbers = numbers, .name = "Adagrad")
OPTIM_FUSED(adagrad, OptimAdagradArgs)
