/* fused.c - a step over lists that the caller keeps: a group of parameters for the time of the call. */
#include <stdlib.h>
#include <string.h>
#include "optim.h"

enum { LISTS = OPTIM_STATES + 2 }; /* parameters, gradients, states */

/* The caller's lists: parameters, gradients, and the states that the options require, in order. */
typedef struct Lists {
    const char *function, *name[LISTS];
    TensorList list[LISTS];
    int count;
} Lists;

static void name_lists(Lists *l, const OptimKind *kind, unsigned needed)
{
    l->name[0] = "parameter", l->name[1] = "gradient", l->count = 2;
    for (int s = 0; s < OPTIM_STATES; s++)
        if (needed >> s & 1) l->name[l->count++] = kind->state[s];
}

static int check_lists(Lists *l, const TensorFusedLists *given)
{
    const TensorList lists[] = { given->params, given->grads, given->state1, given->state2, given->state3 };
    const int most = sizeof lists / sizeof *lists;
    for (int i = l->count; i < most; i++)
        if (lists[i].count)
            return tensor_fail(TENSOR_EVALUE, l->function, "state%d is given: the options want %d of them",
                               i - 1, l->count - 2);
    for (int i = 0; i < l->count; i++) {
        if (optim_check_list(l->function, lists[i], false)) return -1;
        if (lists[i].count != given->params.count)
            return tensor_fail(TENSOR_EVALUE, l->function, "%d parameters, and a list of %d: %s",
                               given->params.count, lists[i].count, l->name[i]);
        l->list[i] = lists[i];
    }
    if (given->step >= 1) return 0;
    return tensor_fail(TENSOR_EVALUE, l->function, "step %lld: want 1 or more", (long long)given->step);
}

static int check_alike(const Lists *l)
{
    for (int k = 1; k < l->count; k++)
        for (int i = 0; i < l->list[k].count; i++) {
            const Tensor *p = l->list[0].item[i], *t = l->list[k].item[i];
            if (!tensor_shape_equal(tensor_shape(p), tensor_shape(t)))
                return tensor_fail(TENSOR_ESHAPE, l->function, "%s %d has another shape than its parameter",
                                   l->name[k], i);
            if (tensor_dtype(p) != tensor_dtype(t))
                return tensor_fail(TENSOR_EDTYPE, l->function, "%s %d is %s, its parameter %s", l->name[k], i,
                                   tensor_dtype_name(tensor_dtype(t)), tensor_dtype_name(tensor_dtype(p)));
            if (strcmp(tensor_device(p), tensor_device(t)) != 0)
                return tensor_fail(TENSOR_EDEVICE, l->function, "%s %d is on %s, its parameter on %s",
                                   l->name[k], i, tensor_device(t), tensor_device(p));
        }
    return 0;
}

/* Do no two written tensors share memory?  Bumps each version once: then every version has grown by one,
 * and none of a gradient. */
static bool are_apart(const Lists *l, uint32_t *version)
{
    const int n = l->list[0].count;
    bool apart = true;
    for (int at = 0; at < l->count * n; at++) version[at] = tensor_version(l->list[at / n].item[at % n]);
    for (int at = 0; at < l->count * n; at++)
        if (at / n != 1) tensor_bump_version(l->list[at / n].item[at % n]);
    for (int at = 0; at < l->count * n; at++) {
        const Tensor *x = l->list[at / n].item[at % n];
        apart =
            apart && tensor_version(x) == version[at] + (at / n != 1) && !(at / n != 1 && optim_overlaps(x));
    }
    return apart;
}

static int check_apart(const Lists *l)
{
    uint32_t *version = malloc((size_t)(l->count * l->list[0].count + 1) * sizeof *version);
    if (!version) return tensor_fail(TENSOR_ENOMEM, l->function, "out of memory");
    const bool apart = are_apart(l, version);
    free(version);
    return apart ? 0 : tensor_fail(TENSOR_EVALUE, l->function, "tensors share memory");
}

/* ---- the step -------------------------------------------------------------------------------- */

/* Its gradients are there already. */
static int prepare(const Optimizer *opt, OptimGroup *g, int *n)
{
    (void)opt;
    for (; *n < g->count; ++*n) {
        g->stepped[*n] = &g->param[*n], g->before[*n] = g->param[*n];
        if (!tensor_is_contiguous(g->grad[*n])) g->grad[*n] = tensor_contiguous(g->grad[*n]);
        if (!g->grad[*n]) return -1;
    }
    return 0;
}

static int step(const Lists *l, const OptimKind *kind, const void *options, int64_t t)
{
    OptimGroup group;
    Optimizer opt = { .kind = kind, .group = &group, .groups = 1 };
    int status = optim_make_group(&group, kind->args, l->list[0], options);
    if (status) tensor_fail(TENSOR_ENOMEM, l->function, "out of memory");
    for (int i = 0; i < l->list[0].count && !status; i++) {
        OptimParam *p = &group.param[i];
        unsigned needed = optim_states(kind, options);
        int k = 2;
        for (int s = 0; s < OPTIM_STATES; s++, needed >>= 1)
            if (needed & 1) p->state[s] = tensor_retain(l->list[k++].item[i]);
        p->step = t - 1, p->fresh = t == 1;
        group.grad[i] = l->list[1].item[i];
    }
    if (!status) status = optim_step_groups(&opt, prepare);
    optim_free_group(&group);
    return status;
}

int optim_fused(const char *function, const OptimKind *kind, const TensorFusedLists *lists,
                const void *options)
{
    Lists l = { .function = function };
    if (tensor_check_options(function, options, kind->defaults, kind->args) || tensor_error_code() ||
        optim_check_options(kind, options, function))
        return -1;
    name_lists(&l, kind, optim_states(kind, options));
    if (check_lists(&l, lists) || check_alike(&l) || check_apart(&l)) return -1;
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    const char *outer = tensor_compose_begin(function);
    const int status = step(&l, kind, options, lists->step);
    tensor_compose_end(outer);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}
