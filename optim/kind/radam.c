/* radam.c - Adam with a smaller rate while the variance of v is high (Liu et al. 2020).
 *
 *   m += (1 - b1) (g - m)      v = b2 v + (1 - b2) g^2
 *   r = 2 / (1 - b2) - 1       s = r - 2 t b2^t / (1 - b2^t)
 *   q = sqrt((s - 4) (s - 2) r (1 - b2^t) / ((r - 4) (r - 2) s))
 *   s > 5: p -= lr m / (1 - b1^t) q / (sqrt(v) + eps)      else: p -= lr m / (1 - b1^t) */
#include <math.h>
#include "../optim.h"
#include "../rules/radam.h"

#define RULE radam
#include "../rule.h"

/* 0: not known well enough yet. */
static double rectified(double beta2, double t)
{
    const double correct = 1 - pow(beta2, t), most = 2 / (1 - beta2) - 1,
                 length = most - 2 * t * pow(beta2, t) / correct;
    return length > 5
               ? sqrt((length - 4) * (length - 2) * most * correct / ((most - 4) * (most - 2) * length))
               : 0;
}

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimRadamArgs *o = options;
    const double t = (double)p->step;
    const radam_numbers n = { .sign = o->maximize ? -1 : 1,
                              .decay = o->decoupled_weight_decay ? 0 : o->weight_decay,
                              .shrink = o->decoupled_weight_decay ? 1 - o->lr * o->weight_decay : 1,
                              .weight1 = 1 - o->beta1,
                              .beta2 = o->beta2,
                              .weight2 = 1 - o->beta2,
                              .rate = o->lr / (1 - pow(o->beta1, t)),
                              .adapt = rectified(o->beta2, t),
                              .eps = o->eps };
    memcpy(k, &n, sizeof n);
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimRadamArgs optim_radam_defaults = { OPTIM_RADAM_DEFAULTS };
static const OpField fields[] = {
    OP_OPTION(OptimRadamArgs, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize), { 0 }
};

static int check(const void *options, const char *function)
{
    const OptimRadamArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    return optim_check_betas(o->beta1, o->beta2, o->eps, function);
}

static const OptimRule *rule(const void *options)
{
    (void)options;
    return &radam_rule;
}

OPTIM_DEFINE(radam, OptimRadamArgs, .fields = fields, .state = { "exp_avg", "exp_avg_sq" }, .check = check,
             .rule = rule, .numbers = numbers, .name = "RAdam")
OPTIM_FUSED(radam, OptimRadamArgs)
