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

static int states(const OptimGroup *g) { return g->momentum != 0; }

static int check(const OptimGroup *g, const char *name)
{
    if (optim_check_common(g, name)) return -1;
    if (!(g->momentum >= 0))
        return tensor_fail(TENSOR_EVALUE, "optim", "%s: momentum %g: want 0 or more", name, g->momentum);
    if (g->nesterov && (g->momentum == 0 || g->dampening != 0))
        return tensor_fail(TENSOR_EVALUE, "optim",
                           "%s: nesterov wants a momentum and no dampening, found %g and %g", name,
                           g->momentum, g->dampening);
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

static int update(const OptimGroup *g, OptimParam *p, Tensor *grad)
{
    Numbers n = { g->maximize ? -1 : 1, g->weight_decay, g->momentum, 1 - g->dampening, g->lr,
                  g->nesterov,          p->fresh };
    Tensor *b = g->momentum != 0 ? p->state[0] : NULL;
    char dense =
        !b && n.decay == 0 && n.sign > 0 ? 0 : optim_dense(p->tensor); /* one op is all there is to do */
    if (!dense) return by_ops(&n, p, grad);
    int64_t count = tensor_numel(p->tensor);
    void *x = tensor_data(p->tensor), *buffer = b ? tensor_data(b) : NULL;
    if (dense == 'f') sgd_f(&n, count, x, buffer, tensor_data(grad));
    else sgd_d(&n, count, x, buffer, tensor_data(grad));
    if (b) tensor_bump_version(b);
    tensor_bump_version(p->tensor);
    return 0;
}

static const OptimKind sgd = {
    .name = "SGD", .state = { "momentum_buffer" }, .states = states, .check = check, .update = update
};

Optimizer *optim_sgd_args(OptimSgdArgs a)
{
    return optim_new(&sgd, a.params,
                     (OptimGroup){ .lr = a.lr,
                                   .momentum = a.momentum,
                                   .dampening = a.dampening,
                                   .weight_decay = a.weight_decay,
                                   .nesterov = a.nesterov,
                                   .maximize = a.maximize });
}
