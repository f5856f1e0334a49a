/* sgd.c - gradient descent with momentum.
 *
 *   g = -g (maximize);   g += w p;   b = m b + (1 - d) g (b = g at first);   g = b, or g + m b (nesterov);
 *   p -= lr g */
#include "../optim.h"
#include "../rules/sgd.h"

#define RULE sgd
#include "../rule.h"
#define RULE sgd_momentum
#include "../rule.h"

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimSgdArgs *o = options;
    const sgd_momentum_numbers n = { .sign = o->maximize ? -1 : 1,
                                     .decay = o->weight_decay,
                                     .lr = o->lr,
                                     .carry = p->fresh ? 0 : o->momentum,
                                     .keep = p->fresh ? 1 : 1 - o->dampening,
                                     .nesterov = o->nesterov ? o->momentum : 0 };
    memcpy(k, &n, sizeof n); /* sgd's are the first of them */
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimSgdArgs optim_sgd_defaults = { OPTIM_SGD_DEFAULTS };
static const OpField fields[] = {
    OP_OPTION(OptimSgdArgs, lr, momentum, dampening, weight_decay, nesterov, maximize), { 0 }
};

static unsigned states(const void *options) { return ((const OptimSgdArgs *)options)->momentum != 0; }

static int check(const void *options, const char *function)
{
    const OptimSgdArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    if (!(o->momentum >= 0))
        return tensor_fail(TENSOR_EVALUE, function, "momentum %g: want 0 or more", o->momentum);
    if (o->nesterov && (o->momentum == 0 || o->dampening != 0))
        return tensor_fail(TENSOR_EVALUE, function,
                           "nesterov wants a momentum and no dampening, found %g and %g", o->momentum,
                           o->dampening);
    return 0;
}

static const OptimRule *rule(const void *options) { return states(options) ? &sgd_momentum_rule : &sgd_rule; }

OPTIM_DEFINE(sgd, OptimSgdArgs, .name = "SGD", .uncounted = true, .fields = fields,
             .state = { "momentum_buffer" }, .states = states, .check = check, .rule = rule,
             .numbers = numbers)
OPTIM_FUSED(sgd, OptimSgdArgs)
