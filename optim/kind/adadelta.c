/* adadelta.c - steps in the ratio of past steps to past gradients (Zeiler 2012).
 *
 *   g += w p      s = rho s + (1 - rho) g^2      d = sqrt(u + eps) / sqrt(s + eps) g
 *   u = rho u + (1 - rho) d^2                    p -= lr d */
#include "../optim.h"
#include "../rules/adadelta.h"

#define RULE adadelta
#include "../rule.h"

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimAdadeltaArgs *o = options;
    (void)p;
    const adadelta_numbers n = { .sign = o->maximize ? -1 : 1,
                                 .decay = o->weight_decay,
                                 .rho = o->rho,
                                 .keep = 1 - o->rho,
                                 .eps = o->eps,
                                 .lr = o->lr };
    memcpy(k, &n, sizeof n);
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimAdadeltaArgs optim_adadelta_defaults = { OPTIM_ADADELTA_DEFAULTS };
static const OpField fields[] = { OP_OPTION(OptimAdadeltaArgs, lr, rho, eps, weight_decay, maximize), { 0 } };

static int check(const void *options, const char *function)
{
    const OptimAdadeltaArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    if (o->rho >= 0 && o->rho <= 1 && o->eps >= 0) return 0;
    return tensor_fail(TENSOR_EVALUE, function, "rho %g, eps %g: rho lies in [0, 1], eps is not negative",
                       o->rho, o->eps);
}

static const OptimRule *rule(const void *options)
{
    (void)options;
    return &adadelta_rule;
}

OPTIM_DEFINE(adadelta, OptimAdadeltaArgs, .fields = fields, .state = { "square_avg", "acc_delta" },
             .check = check, .rule = rule, .numbers = numbers, .name = "Adadelta")
OPTIM_FUSED(adadelta, OptimAdadeltaArgs)
