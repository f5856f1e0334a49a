/* optim.c - groups of parameters, and the step that all optimizers share.
 *
 *  - Every tensor of a group is retained, a leaf, and in no other group.
 *  - A step has two halves: states and dense gradients are made (which can fail), then parameters change. */
#include <stdlib.h>
#include <string.h>
#include "optim.h"

/* ---- making ---------------------------------------------------------------------------------- */

static bool has_param(const Optimizer *opt, const Tensor *t)
{
    for (int g = 0; g < opt->groups; g++)
        for (int i = 0; i < opt->group[g].count; i++)
            if (opt->group[g].param[i].tensor == t) return true;
    return false;
}

static int check_param(const Optimizer *opt, TensorList list, int i)
{
    const char *name = opt->kind->name;
    if (!list.item[i])
        return tensor_error() ? -1 : tensor_fail(TENSOR_ENULL, "optim", "%s: parameter %d is NULL", name, i);
    if (!tensor_is_leaf(list.item[i]))
        return tensor_fail(TENSOR_EGRAD, "optim", "%s: parameter %d is the result of an op, not a leaf", name,
                           i);
    bool twice = has_param(opt, list.item[i]);
    for (int k = 0; k < i && !twice; k++) twice = list.item[k] == list.item[i];
    return twice ? tensor_fail(TENSOR_EVALUE, "optim", "%s: parameter %d is given twice", name, i) : 0;
}

static int check_group(const Optimizer *opt, TensorList list, const OptimGroup *options)
{
    if (list.count < 1 || !list.item)
        return tensor_error()
                   ? -1
                   : tensor_fail(TENSOR_EVALUE, "optim", "%s: no parameters given", opt->kind->name);
    for (int i = 0; i < list.count; i++)
        if (check_param(opt, list, i)) return -1;
    return opt->kind->check ? opt->kind->check(options, opt->kind->name) : 0;
}

static int add_group(Optimizer *opt, TensorList list, OptimGroup options)
{
    if (check_group(opt, list, &options)) return -1;
    OptimGroup *groups = realloc(opt->group, (size_t)(opt->groups + 1) * sizeof *groups);
    if (groups) opt->group = groups;
    options.param = groups ? calloc((size_t)list.count, sizeof *options.param) : NULL;
    if (!options.param) return tensor_fail(TENSOR_ENOMEM, "optim", "%s: out of memory", opt->kind->name);
    options.count = list.count;
    for (int i = 0; i < list.count; i++) options.param[i].tensor = tensor_retain(list.item[i]);
    groups[opt->groups++] = options;
    return 0;
}

Optimizer *optim_new(const OptimKind *kind, TensorList params, OptimGroup options)
{
    if (!kind || !kind->update)
        return tensor_fail(TENSOR_ENULL, "optim_new", "the kind or its update is NULL"), NULL;
    Optimizer *opt = calloc(1, sizeof *opt);
    if (!opt) return tensor_fail(TENSOR_ENOMEM, "optim", "%s: out of memory", kind->name), NULL;
    opt->kind = kind;
    if (add_group(opt, params, options) == 0) return opt;
    optim_free(opt);
    return NULL;
}

static bool is_null(const Optimizer *opt, const char *function)
{
    if (opt) return false;
    if (!tensor_error()) tensor_fail(TENSOR_ENULL, function, "the optimizer is NULL");
    return true;
}

static double given(double value, double otherwise) { return isnan(value) ? otherwise : value; }

int optim_add_group_args(OptimGroupArgs a)
{
    if (is_null(a.optimizer, "optim_add_group")) return -1;
    OptimGroup g = a.optimizer->group[0];
    g.lr = given(a.lr, g.lr), g.weight_decay = given(a.weight_decay, g.weight_decay);
    g.momentum = given(a.momentum, g.momentum), g.dampening = given(a.dampening, g.dampening);
    g.betas[0] = given(a.betas[0], g.betas[0]), g.betas[1] = given(a.betas[1], g.betas[1]),
    g.eps = given(a.eps, g.eps);
    if (a.nesterov >= 0) g.nesterov = a.nesterov;
    if (a.amsgrad >= 0) g.amsgrad = a.amsgrad;
    if (a.maximize >= 0) g.maximize = a.maximize;
    return add_group(a.optimizer, a.params, g);
}

void optim_free(Optimizer *opt)
{
    if (!opt) return;
    for (int g = 0; g < opt->groups; g++) {
        for (int i = 0; i < opt->group[g].count; i++) {
            OptimParam *p = &opt->group[g].param[i];
            for (int s = 0; s < OPTIM_STATES; s++) tensor_release(p->state[s]);
            tensor_release(p->tensor);
        }
        free(opt->group[g].param);
    }
    free(opt->group);
    free(opt);
}

int optim_check_common(const OptimGroup *g, const char *name)
{
    if (g->lr >= 0 && g->weight_decay >= 0) return 0;
    return tensor_fail(TENSOR_EVALUE, "optim", "%s: lr %g, weight_decay %g: neither may be negative", name,
                       g->lr, g->weight_decay);
}

double optim_lr(const Optimizer *opt) { return is_null(opt, "optim_lr") ? NAN : opt->group[0].lr; }

int optim_set_lr(Optimizer *opt, double lr)
{
    if (is_null(opt, "optim_set_lr")) return -1;
    if (!(lr >= 0)) return tensor_fail(TENSOR_EVALUE, "optim_set_lr", "%g", lr);
    for (int g = 0; g < opt->groups; g++) opt->group[g].lr = lr;
    return 0;
}

/* ---- the step -------------------------------------------------------------------------------- */

char optim_dense(const Tensor *t)
{
    TensorDtype dtype = tensor_dtype(t);
    if ((dtype != TENSOR_F32 && dtype != TENSOR_F64) || !tensor_is_contiguous(t) ||
        strcmp(tensor_device(t), "cpu") != 0)
        return 0;
    return dtype == TENSOR_F32 ? 'f' : 'd';
}

static int make_states(const OptimKind *kind, const OptimGroup *g, OptimParam *p)
{
    for (int s = 0, n = kind->states(g); s < n; s++) {
        if (p->state[s]) continue;
        p->state[s] = tensor_retain(tensor_zeros_like(p->tensor));
        if (!p->state[s]) return -1;
        p->fresh = true;
    }
    return 0;
}

/* NULL without an error: no gradient.  Dense, and kept by the step's scope. */
static Tensor *gradient(const OptimParam *p)
{
    Tensor *grad = tensor_grad(p->tensor);
    return grad && !tensor_is_contiguous(grad) ? tensor_contiguous(grad) : grad;
}

static int prepare(const Optimizer *opt)
{
    for (int g = 0; g < opt->groups; g++)
        for (int i = 0; i < opt->group[g].count; i++) {
            OptimParam *p = &opt->group[g].param[i];
            TensorScope scope = tensor_scope_open();
            int status = tensor_grad(p->tensor) ? make_states(opt->kind, &opt->group[g], p) : 0;
            tensor_scope_close(scope);
            if (status || tensor_error()) return -1;
        }
    return 0;
}

static int update_all(const Optimizer *opt)
{
    for (int g = 0; g < opt->groups; g++)
        for (int i = 0; i < opt->group[g].count; i++) {
            OptimParam *p = &opt->group[g].param[i];
            TensorScope scope = tensor_scope_open();
            Tensor *grad = gradient(p);
            int status = 0;
            if (grad) {
                p->step++;
                status = opt->kind->update(&opt->group[g], p, grad);
                if (!status) p->fresh = false;
            }
            tensor_scope_close(scope);
            if (status || tensor_error()) return -1;
        }
    return 0;
}

int optim_step(Optimizer *opt)
{
    if (is_null(opt, "optim_step") || tensor_error()) return -1;
    bool was = tensor_set_grad_enabled(false);
    int status = prepare(opt) ? -1 : update_all(opt);
    tensor_set_grad_enabled(was);
    return status;
}

int optim_zero_grad_args(OptimZeroGradArgs args)
{
    const Optimizer *opt = args.optimizer;
    if (is_null(opt, "optim_zero_grad")) return -1;
    TensorScope scope = tensor_scope_open();
    bool was = tensor_set_grad_enabled(false);
    int status = 0;
    for (int g = 0; g < opt->groups && !status; g++)
        for (int i = 0; i < opt->group[g].count && !status; i++) {
            Tensor *t = opt->group[g].param[i].tensor, *grad = args.set_to_none ? NULL : tensor_grad(t);
            if (args.set_to_none) status = tensor_set_grad(t, NULL);
            else if (grad && !tensor_zero_(grad)) status = -1;
        }
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}
