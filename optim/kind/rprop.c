/* rprop.c - steps by the sign of the gradient, with a step size for each element (Riedmiller and Braun 1993).
 *
 *   l = clamp(l eta, step_min, step_max), from lr      p -= sign(g) l
 *   eta = eta_plus where g has the sign of the one before, 1 where one of them is 0; else eta_minus, and g
 *   counts as 0 */
#include "../optim.h"
#include "../rules/rprop.h"

#define RULE rprop
#include "../rule.h"

static void numbers(const void *options, const OptimParam *p, double *k)
{
    const OptimRpropArgs *o = options;
    const rprop_numbers n = { .sign = o->maximize ? -1 : 1,
                              .first = p->fresh,
                              .lr = o->lr,
                              .minus = o->eta_minus,
                              .plus = o->eta_plus,
                              .low = o->step_min,
                              .high = o->step_max };
    memcpy(k, &n, sizeof n);
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimRpropArgs optim_rprop_defaults = { OPTIM_RPROP_DEFAULTS };
static const OpField fields[] = {
    OP_OPTION(OptimRpropArgs, lr, eta_minus, eta_plus, step_min, step_max, maximize), { 0 }
};

static int check(const void *options, const char *function)
{
    const OptimRpropArgs *o = options;
    if (optim_check_common(o->lr, 0, function)) return -1;
    if (o->eta_minus > 0 && o->eta_minus < 1 && o->eta_plus > 1 && o->step_min <= o->step_max) return 0;
    return tensor_fail(TENSOR_EVALUE, function,
                       "eta_minus %g, eta_plus %g, step_min %g, step_max %g: want 0 < eta_minus < 1 < "
                       "eta_plus, step_min <= step_max",
                       o->eta_minus, o->eta_plus, o->step_min, o->step_max);
}

static const OptimRule *rule(const void *options)
{
    (void)options;
    return &rprop_rule;
}

OPTIM_DEFINE(rprop, OptimRpropArgs, .fields = fields, .state = { "prev", "step_size" }, .check = check,
             .rule = rule, .numbers = numbers, .name = "Rprop")
OPTIM_FUSED(rprop, OptimRpropArgs)
