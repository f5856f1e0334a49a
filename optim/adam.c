/* adam.c - Adam and AdamW.
 *
 *   m += (1 - b1) (g - m)      v = b2 v + (1 - b2) g^2      p -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 -
 * b2^t) + eps)
 *
 * One pass over memory reads g, m, v, p and writes m, v, p.  eps is added outside the corrected root. */
#include <math.h>
#include "optim.h"

enum { EXP_AVG, EXP_AVG_SQ, MAX_EXP_AVG_SQ };

typedef struct Numbers {
    double sign, decay, shrink;     /* g = sign g + decay p;  p *= shrink */
    double weight1, beta2, weight2; /* 1 - b1, b2, 1 - b2 */
    double step, root2, eps;        /* lr / (1 - b1^t), sqrt(1 - b2^t) */
} Numbers;

#define real float
#define root __builtin_sqrtf
#define LOOP(name) name##_f
#include "adam_loop.h"
#undef real
#undef root
#undef LOOP
#define real double
#define root __builtin_sqrt
#define LOOP(name) name##_d
#include "adam_loop.h"

static Numbers numbers(const OptimAdamArgs *g, const OptimParam *p, bool decoupled)
{
    double b1 = g->beta1, b2 = g->beta2, t = (double)p->step;
    return (Numbers){ .sign = g->maximize ? -1 : 1,
                      .decay = decoupled ? 0 : g->weight_decay,
                      .shrink = decoupled ? 1 - g->lr * g->weight_decay : 1,
                      .weight1 = 1 - b1,
                      .beta2 = b2,
                      .weight2 = 1 - b2,
                      .step = g->lr / (1 - pow(b1, t)),
                      .root2 = sqrt(1 - pow(b2, t)),
                      .eps = g->eps };
}

/* Any dtype, device and layout. */
static int by_ops(const Numbers *n, OptimParam *p, Tensor *g, bool amsgrad)
{
    Tensor *m = p->state[EXP_AVG], *v = p->state[EXP_AVG_SQ], *most = p->state[MAX_EXP_AVG_SQ];
    if (n->sign < 0) g = tensor_neg(g);
    if (n->shrink != 1 && !tensor_mul_scalar_(p->tensor, n->shrink)) return -1;
    if (n->decay != 0) g = tensor_add_scaled(g, p->tensor, n->decay);
    if (!tensor_lerp_(m, g, n->weight1) || !tensor_mul_scalar_(v, n->beta2) ||
        !tensor_addcmul_(v, g, g, n->weight2))
        return -1;
    if (amsgrad && !tensor_maximum_(most, v)) return -1;
    Tensor *below = tensor_add_scalar(tensor_div_scalar(tensor_sqrt(amsgrad ? most : v), n->root2), n->eps);
    return tensor_addcdiv_(p->tensor, m, below, -n->step) ? 0 : -1;
}

static int step(const OptimAdamArgs *g, OptimParam *p, Tensor *grad, bool decoupled)
{
    Numbers n = numbers(g, p, decoupled);
    char dense = optim_dense(p->tensor);
    if (!dense) return by_ops(&n, p, grad, g->amsgrad);
    int64_t count = tensor_numel(p->tensor);
    Tensor *most = g->amsgrad ? p->state[MAX_EXP_AVG_SQ] : NULL;
    void *x = tensor_data(p->tensor), *m = tensor_data(p->state[EXP_AVG]),
         *v = tensor_data(p->state[EXP_AVG_SQ]), *u = most ? tensor_data(most) : NULL;
    if (dense == 'f') adam_f(&n, count, x, m, v, u, tensor_data(grad));
    else adam_d(&n, count, x, m, v, u, tensor_data(grad));
    for (int s = 0; s < 2 + g->amsgrad; s++) tensor_bump_version(p->state[s]);
    tensor_bump_version(p->tensor);
    return 0;
}

static int step_adam(const void *options, OptimParam *p, Tensor *grad)
{
    return step(options, p, grad, false);
}
static int step_adamw(const void *options, OptimParam *p, Tensor *grad)
{
    return step(options, p, grad, true);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

const OptimAdamArgs optim_adam_defaults = { OPTIM_ADAM_DEFAULTS },
                    optim_adamw_defaults = { OPTIM_ADAMW_DEFAULTS };
static const OpField fields[] = { OP_OPTION(OptimAdamArgs, lr),           OP_OPTION(OptimAdamArgs, beta1),
                                  OP_OPTION(OptimAdamArgs, beta2),        OP_OPTION(OptimAdamArgs, eps),
                                  OP_OPTION(OptimAdamArgs, weight_decay), OP_OPTION(OptimAdamArgs, amsgrad),
                                  OP_OPTION(OptimAdamArgs, maximize),     { 0 } };

static int states(const void *options) { return ((const OptimAdamArgs *)options)->amsgrad ? 3 : 2; }

static int check(const void *options, const char *function)
{
    const OptimAdamArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    if (o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1 && o->eps >= 0) return 0;
    return tensor_fail(TENSOR_EVALUE, function,
                       "beta1 %g, beta2 %g, eps %g: betas lie in [0, 1), eps is not negative", o->beta1,
                       o->beta2, o->eps);
}

#define ADAM(name_, type)                                                                           \
    static const OptimKind name_##_kind = { .name = (type),                                         \
                                            .function = "optim_" #name_,                            \
                                            .args = sizeof(OptimAdamArgs),                          \
                                            .defaults = &optim_##name_##_defaults,                  \
                                            .fields = fields,                                       \
                                            .state = { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" }, \
                                            .states = states,                                       \
                                            .check = check,                                         \
                                            .step = step_##name_,                                   \
                                            .sure = true };                                         \
    OPTIM_REGISTER(name_##_kind);                                                                   \
    Optimizer *optim_##name_##_args(OptimAdamArgs args) { return optim_new(&name_##_kind, &args); }
ADAM(adam, "Adam")
ADAM(adamw, "AdamW")
