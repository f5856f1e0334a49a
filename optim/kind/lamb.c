/* lamb.c - LAMB: Adam's step, scaled to the norm of each parameter.
 *
 *   m += (1 - b1) (g - m);   v = b2 v + (1 - b2) g^2
 *   u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + weight_decay p;   p -= lr |p| / |u| u
 *
 * Where one of the norms is 0 their ratio counts as 1. */
#include <math.h>
#include "../optim.h"

static Tensor *ratio(Tensor *x, Tensor *u)
{
    Tensor *of_x = tensor_norm(x), *of_u = tensor_norm(u), *one = tensor_ones_like(of_x);
    Tensor *both = tensor_gt_scalar(tensor_mul(of_x, of_u), 0);
    return tensor_where(both, tensor_div(of_x, of_u), one);
}

static double correct(double beta, const OptimParam *p) { return 1 / (1 - pow(beta, (double)p->step)); }
static double of_m(const void *options, const OptimParam *p)
{
    return correct(((const OptimLambArgs *)options)->beta1, p);
}
static double of_v(const void *options, const OptimParam *p)
{
    return correct(((const OptimLambArgs *)options)->beta2, p);
}

static int step(const void *options, OptimParam *p, Tensor *grad)
{
    const OptimLambArgs *o = options;
    Tensor *x = optim_wider(p->tensor), *g = optim_wider(grad);
    if (o->maximize) g = tensor_neg(g);
    Tensor *m = tensor_lerp(optim_wider(p->state[0]), g, 1 - o->beta1),
           *v = tensor_lerp(optim_wider(p->state[1]), tensor_square(g), 1 - o->beta2);
    Tensor *root = tensor_sqrt(tensor_mul(v, optim_of_step(p, of_v, o)));
    Tensor *u = tensor_div(tensor_mul(m, optim_of_step(p, of_m, o)), tensor_add_scalar(root, o->eps));
    if (o->weight_decay != 0) u = tensor_add_scaled(u, x, o->weight_decay);
    x = tensor_add_scaled(x, tensor_mul(u, ratio(x, u)), -o->lr);
    return tensor_copy_(p->state[0], m) && tensor_copy_(p->state[1], v) && tensor_copy_(p->tensor, x) ? 0
                                                                                                      : -1;
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimLambArgs optim_lamb_defaults = { OPTIM_LAMB_DEFAULTS };
static const OpField fields[] = { OP_OPTION(OptimLambArgs, lr, beta1, beta2, eps, weight_decay, maximize),
                                  { 0 } };

static int check(const void *options, const char *function)
{
    const OptimLambArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    return optim_check_betas(o->beta1, o->beta2, o->eps, function);
}

OPTIM_DEFINE(lamb, OptimLambArgs, .name = "LAMB", .fields = fields, .state = { "exp_avg", "exp_avg_sq" },
             .check = check, .step = step, .skips = true)
