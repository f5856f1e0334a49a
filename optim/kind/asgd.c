/* asgd.c - gradient descent with an average of the parameters (Polyak and Juditsky 1992).
 *
 *   g += w p      p = (1 - lambd eta) p - eta g      ax = p, or where mu is not 1: ax += mu (p - ax)
 *   then eta = lr / (1 + lambd lr t)^alpha, from lr, and mu = 1 / max(1, t - t0), from 1 */
#include <math.h>
#include <stddef.h>
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

static double next_eta(const void *options, const OptimParam *p)
{
    const OptimAsgdArgs *o = options;
    return o->lr / pow(1 + o->lambd * o->lr * (double)p->step, o->alpha);
}

static double next_mu(const void *options, const OptimParam *p)
{
    const double later = (double)p->step - ((const OptimAsgdArgs *)options)->t0;
    return later > 1 ? 1 / later : 1;
}

static void after(const void *options, OptimParam *p)
{
    p->number[0] = next_eta(options, p), p->number[1] = next_mu(options, p);
}

static int carry(const void *options, const OptimParam *p, Tensor **number, Tensor **numbers)
{
    const OptimAsgdArgs *o = options;
    Tensor *eta = optim_unless_fresh(p, number[0], o->lr);
    numbers[offsetof(asgd_numbers, shrink) / sizeof(double)] =
        tensor_rsub_scalar(tensor_mul_scalar(eta, o->lambd), 1);
    numbers[offsetof(asgd_numbers, eta) / sizeof(double)] = eta;
    numbers[offsetof(asgd_numbers, mu) / sizeof(double)] = optim_unless_fresh(p, number[1], 1);
    number[0] = optim_of_step_f64(p, next_eta, options), number[1] = optim_of_step_f64(p, next_mu, options);
    return number[0] && number[1] ? 0 : -1;
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
             .numbers = numbers, .name = "ASGD", .number = { "eta", "mu" }, .after = after, .carry = carry)
