/* asgd.c - gradient descent with an average of the parameters (Polyak and Juditsky 1992).
 *
 *   g += w p      p = (1 - lambd eta) p - eta g      ax = p, or where mu is not 1: ax += mu (p - ax)
 *   then eta = lr / (1 + lambd lr t)^alpha, from lr, and mu = 1 / max(1, t - t0), from 1 */
#include <math.h>
#include "../optim.h"
#include "../rules/asgd.h"

#define RULE asgd
#include "../rule.h"

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimAsgdArgs *o = options;
    const double eta = p->fresh ? o->lr : p->number[0];
    const asgd_numbers n = { .sign = o->maximize ? -1 : 1,
                             .decay = o->weight_decay,
                             .shrink = 1 - o->lambd * eta,
                             .eta = eta,
                             .mu = p->fresh ? 1 : p->number[1] };
    memcpy(k, &n, sizeof n);
}

static void after(const void *options, OptimParam *p)
{
    const OptimAsgdArgs *o = options;
    const double t = (double)p->step;
    p->number[0] = o->lr / pow(1 + o->lambd * o->lr * t, o->alpha);
    p->number[1] = t - o->t0 > 1 ? 1 / (t - o->t0) : 1;
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimAsgdArgs optim_asgd_defaults = { OPTIM_ASGD_DEFAULTS };
static const OpField fields[] = { OP_OPTION(OptimAsgdArgs, lr, lambd, alpha, t0, weight_decay, maximize),
                                  { 0 } };

static int check(const void *options, const char *function)
{
    const OptimAsgdArgs *o = options;
    return optim_check_common(o->lr, o->weight_decay, function);
}

static const OptimRule *rule(const void *options)
{
    (void)options;
    return &asgd_rule;
}

OPTIM_DEFINE(asgd, OptimAsgdArgs, .fields = fields, .state = { "ax" }, .check = check, .rule = rule,
             .numbers = numbers, .name = "ASGD", .number = { "eta", "mu" }, .after = after)
