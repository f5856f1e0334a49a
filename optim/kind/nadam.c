/* nadam.c - Adam with Nesterov momentum (Dozat 2016).
 *
 *   mu_t = b1 (1 - 0.96^(t d) / 2)     P_t = mu_1 ... mu_t
 *   m += (1 - b1) (g - m)              v = b2 v + (1 - b2) g^2
 *   p -= lr ((1 - mu_t) / (1 - P_t) g + mu_(t+1) / (1 - P_t mu_(t+1)) m) / (sqrt(v / (1 - b2^t)) + eps) */
#include <math.h>
#include <stddef.h>
#include "../optim.h"
#include "../rules/nadam.h"

#define RULE nadam
#include "../rule.h"

static double mu(const OptimNadamArgs *o, double step)
{
    return o->beta1 * (1 - .5 * pow(.96, step * o->momentum_decay));
}

/* The product of all mu so far. */
static double product(const OptimNadamArgs *o, const OptimParam *p)
{
    return (p->fresh ? 1 : p->number[0]) * mu(o, (double)p->step);
}

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimNadamArgs *o = options;
    const double t = (double)p->step, now = mu(o, t), next = mu(o, t + 1), so_far = product(o, p);
    const nadam_numbers n = { .sign = o->maximize ? -1 : 1,
                              .decay = o->decoupled_weight_decay ? 0 : o->weight_decay,
                              .shrink = o->decoupled_weight_decay ? 1 - o->lr * o->weight_decay : 1,
                              .weight1 = 1 - o->beta1,
                              .beta2 = o->beta2,
                              .weight2 = 1 - o->beta2,
                              .correct = 1 - pow(o->beta2, t),
                              .eps = o->eps,
                              .rate_g = o->lr * (1 - now) / (1 - so_far),
                              .rate_m = o->lr * next / (1 - so_far * next) };
    memcpy(k, &n, sizeof n);
}

static void after(const void *options, OptimParam *p) { p->number[0] = product(options, p); }

static double mu_now(const void *options, const OptimParam *p) { return mu(options, (double)p->step); }
static double mu_next(const void *options, const OptimParam *p) { return mu(options, (double)p->step + 1); }

/* n times lr over 1 - d */
static Tensor *rate(const OptimNadamArgs *o, Tensor *n, Tensor *d)
{
    return tensor_mul_scalar(tensor_div(n, tensor_rsub_scalar(d, 1)), o->lr);
}

static int carry(const void *options, const OptimParam *p, Tensor **number, Tensor **numbers)
{
    Tensor *now = optim_of_step_f64(p, mu_now, options), *next = optim_of_step_f64(p, mu_next, options);
    Tensor *so_far = tensor_mul(optim_unless_fresh(p, number[0], 1), now);
    numbers[offsetof(nadam_numbers, rate_g) / sizeof(double)] =
        rate(options, tensor_rsub_scalar(now, 1), so_far);
    numbers[offsetof(nadam_numbers, rate_m) / sizeof(double)] = rate(options, next, tensor_mul(so_far, next));
    number[0] = so_far;
    return so_far ? 0 : -1;
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimNadamArgs optim_nadam_defaults = { OPTIM_NADAM_DEFAULTS };
static const OpField fields[] = { OP_OPTION(OptimNadamArgs, lr, beta1, beta2, eps, weight_decay,
                                            momentum_decay, decoupled_weight_decay, maximize),
                                  { 0 } };

static int check(const void *options, const char *function)
{
    const OptimNadamArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    if (!(o->momentum_decay >= 0))
        return tensor_fail(TENSOR_EVALUE, function, "momentum_decay %g: want 0 or more", o->momentum_decay);
    return optim_check_betas(o->beta1, o->beta2, o->eps, function);
}

static const OptimRule *rule(const void *options)
{
    (void)options;
    return &nadam_rule;
}

OPTIM_DEFINE(nadam, OptimNadamArgs, .fields = fields, .state = { "exp_avg", "exp_avg_sq" }, .check = check,
             .rule = rule, .numbers = numbers, .name = "NAdam", .number = { "mu_product" }, .after = after,
             .carry = carry)
