/* adam.c - Adam and AdamW, which is Adam with decoupled_weight_decay.
 *
 *   m += (1 - b1) (g - m)      v = b2 v + (1 - b2) g^2
 *   p -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *
 * One pass over memory reads g, m, v, p and writes m, v, p.  eps is added outside the corrected root. */
#include <math.h>
#include "../optim.h"
#include "../rules/adam.h"

#define RULE adam
#define RULE_WIDEST
#include "../rule.h"
#define RULE amsgrad
#define RULE_WIDEST
#include "../rule.h"

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimAdamArgs *o = options;
    const bool decoupled = o->decoupled_weight_decay;
    const double b1 = o->beta1, b2 = o->beta2, t = (double)p->step;
    const adam_numbers n = { .sign = o->maximize ? -1 : 1,
                             .decay = decoupled ? 0 : o->weight_decay,
                             .shrink = decoupled ? 1 - o->lr * o->weight_decay : 1,
                             .weight1 = 1 - b1,
                             .beta2 = b2,
                             .weight2 = 1 - b2,
                             .rate = o->lr / (1 - pow(b1, t)),
                             .scale = 1 / sqrt(1 - pow(b2, t)),
                             .eps = o->eps };
    memcpy(k, &n, sizeof n);
}

static const OptimRule *rule(const void *options)
{
    return ((const OptimAdamArgs *)options)->amsgrad ? &amsgrad_rule : &adam_rule;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

const OptimAdamArgs optim_adam_defaults = { OPTIM_ADAM_DEFAULTS },
                    optim_adamw_defaults = { OPTIM_ADAMW_DEFAULTS };
static const OpField fields[] = { OP_OPTION(OptimAdamArgs, lr, beta1, beta2, eps, weight_decay, amsgrad,
                                            maximize, decoupled_weight_decay),
                                  { 0 } };
/* PyTorch's AdamW has no such option. */
static const OpField fields_w[] = {
    OP_OPTION(OptimAdamArgs, lr, beta1, beta2, eps, weight_decay, amsgrad, maximize), { 0 }
};

static unsigned states(const void *options) { return ((const OptimAdamArgs *)options)->amsgrad ? 7 : 3; }

static int check(const void *options, const char *function)
{
    const OptimAdamArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    return optim_check_betas(o->beta1, o->beta2, o->eps, function);
}

static int check_w(const void *options, const char *function)
{
    if (((const OptimAdamArgs *)options)->decoupled_weight_decay) return check(options, function);
    return tensor_fail(TENSOR_EVALUE, function, "decoupled_weight_decay is false: want optim_adam for that");
}

#define ADAM \
    .state = { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" }, .states = states, .rule = rule, .numbers = numbers
OPTIM_DEFINE(adam, OptimAdamArgs, .name = "Adam", .fields = fields, .check = check,
             .ours = "decoupled_weight_decay", ADAM)
OPTIM_DEFINE(adamw, OptimAdamArgs, .name = "AdamW", .fields = fields_w, .check = check_w, ADAM)
OPTIM_FUSED(adam, OptimAdamArgs)
OPTIM_FUSED(adamw, OptimAdamArgs)
