/* sgd.c - gradient descent with momentum.
 *
 *   g = -g (maximize);  g += w p;  b = m b + (1 - d) g (b = g at first);  g = b, or g + m b (nesterov);  p -=
 * lr g */
#include "optim.h"

typedef struct Numbers {
    double sign, decay, momentum, keep, lr; /* keep: 1 - dampening */
    bool nesterov, first;
} Numbers;

#define real float
#define LOOP(name) name##_f
#include "sgd_loop.h"
#undef real
#undef LOOP
#define real double
#define LOOP(name) name##_d
#include "sgd_loop.h"

const OptimSgdArgs optim_sgd_defaults = { OPTIM_SGD_DEFAULTS };
static const OpField fields[] = { OP_OPTION(OptimSgdArgs, lr),
                                  OP_OPTION(OptimSgdArgs, momentum),
                                  OP_OPTION(OptimSgdArgs, dampening),
                                  OP_OPTION(OptimSgdArgs, weight_decay),
                                  OP_OPTION(OptimSgdArgs, nesterov),
                                  OP_OPTION(OptimSgdArgs, maximize),
                                  { 0 } };

static int states(const void *options) { return ((const OptimSgdArgs *)options)->momentum != 0; }

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

/* Any dtype, device and layout. */
static int by_ops(const Numbers *n, OptimParam *p, Tensor *g)
{
    Tensor *b = p->state[0];
    if (n->sign < 0) g = tensor_neg(g);
    if (n->decay != 0) g = tensor_add_scaled(g, p->tensor, n->decay);
    if (n->momentum != 0) {
        bool ok = n->first ? tensor_copy_(b, g) != NULL
                           : tensor_mul_scalar_(b, n->momentum) && tensor_add_scaled_(b, g, n->keep);
        if (!ok) return -1;
        g = n->nesterov ? tensor_add_scaled(g, b, n->momentum) : b;
    }
    return tensor_add_scaled_(p->tensor, g, -n->lr) ? 0 : -1;
}

static int step(const void *options, OptimParam *p, Tensor *grad)
{
    const OptimSgdArgs *o = options;
    Numbers n = { o->maximize ? -1 : 1, o->weight_decay, o->momentum, 1 - o->dampening, o->lr,
                  o->nesterov,          p->fresh };
    Tensor *b = o->momentum != 0 ? p->state[0] : NULL;
    char dense = optim_dense(p->tensor);
    if (!dense) return by_ops(&n, p, grad);
    int64_t count = tensor_numel(p->tensor);
    void *x = tensor_data(p->tensor), *buffer = b ? tensor_data(b) : NULL;
    if (dense == 'f') sgd_f(&n, count, x, buffer, tensor_data(grad));
    else sgd_d(&n, count, x, buffer, tensor_data(grad));
    if (b) tensor_bump_version(b);
    tensor_bump_version(p->tensor);
    return 0;
}

static const OptimKind sgd = { .name = "SGD",
                               .function = "optim_sgd",
                               .args = sizeof(OptimSgdArgs),
                               .defaults = &optim_sgd_defaults,
                               .fields = fields,
                               .state = { "momentum_buffer" },
                               .states = states,
                               .check = check,
                               .step = step,
                               .sure = true };
OPTIM_REGISTER(sgd);
Optimizer *optim_sgd_args(OptimSgdArgs args) { return optim_new(&sgd, &args); }
