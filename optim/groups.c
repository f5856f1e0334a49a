/* groups.c - splitting groups, and f32 copies of f16 and bf16 parameters. */
#include <stdlib.h>
#include <string.h>
#include "optim.h"

/* ---- a group of those that a function picks --------------------------------------------------- */

bool optim_is_vector(const Tensor *parameter, void *ctx)
{
    (void)ctx;
    return parameter && tensor_ndim(parameter) < 2;
}

/* Moves the parameters with their states, and closes the gap. */
static void move_picked(OptimGroup *from, OptimGroup *to, const bool *picked)
{
    int stay = 0, moved = 0;
    for (int i = 0; i < from->count; i++) {
        if (!picked[i]) from->param[stay++] = from->param[i];
        else {
            tensor_release(to->param[moved].tensor);
            to->param[moved++] = from->param[i];
        }
    }
    from->count = stay;
    to->initial_lr = from->initial_lr, to->scheduled = from->scheduled;
}

static int split(Optimizer *opt, int group, const bool *picked, Tensor **tensors)
{
    const OptimGroup *g = &opt->group[group];
    int n = 0;
    for (int i = 0; i < g->count; i++)
        if (picked[i]) tensors[n++] = g->param[i].tensor;
    if (optim_append_group(opt, TENSOR_LIST(tensors, n), g->options) < 0) return -1;
    move_picked(&opt->group[group], &opt->group[opt->groups - 1], picked);
    return opt->groups - 1;
}

int optim_split_group(Optimizer *opt, int group, bool (*pick)(const Tensor *parameter, void *ctx), void *ctx)
{
    static const char function[] = "optim_split_group";
    if (optim_null(opt, function)) return -1;
    if (!pick) return tensor_fail(TENSOR_ENULL, function, "the function is NULL");
    if (group < 0 || group >= opt->groups)
        return tensor_fail(TENSOR_EINDEX, function, "group %d of %d", group, opt->groups);
    if (opt->kind->one_group)
        return tensor_fail(TENSOR_EVALUE, function, "%s takes one group of parameters", opt->kind->function);
    const OptimGroup *g = &opt->group[group];
    Tensor **tensors = malloc(((size_t)g->count + 1) * (sizeof *tensors + sizeof(bool)));
    if (!tensors) return tensor_fail(TENSOR_ENOMEM, function, "out of memory");
    bool *picked = (bool *)(void *)(tensors + g->count + 1);
    for (int i = 0; i < g->count; i++) picked[i] = pick(g->param[i].tensor, ctx);
    const int made = split(opt, group, picked, tensors);
    free(tensors);
    return made;
}

/* ---- f32 copies of halves --------------------------------------------------------------------- */

int optim_set_master_weights(Optimizer *opt, bool on)
{
    static const char function[] = "optim_set_master_weights";
    if (optim_null(opt, function)) return -1;
    if (on && opt->kind->step_closure)
        return tensor_fail(TENSOR_EVALUE, function, "%s has none", opt->kind->function);
    op_graph_changed();
    opt->master_weights = on;
    for (int g = 0; g < opt->groups && !on; g++)
        for (int i = 0; i < opt->group[g].count; i++) {
            tensor_release(opt->group[g].param[i].master);
            opt->group[g].param[i].master = NULL;
        }
    return 0;
}

bool optim_has_master(const Optimizer *opt, const Tensor *t)
{
    return opt->master_weights && (tensor_dtype(t) == TENSOR_F16 || tensor_dtype(t) == TENSOR_BF16);
}

/* Was the parameter changed by somebody else?  Writing the master's rounded values, as loading may, is no
 * change. */
static bool is_stale(const OptimParam *p)
{
    if (tensor_version(p->tensor) == p->seen && tensor_data(p->tensor) == p->where) return false;
    return !tensor_equal(tensor_to(p->master, tensor_dtype(p->tensor)), p->tensor);
}

int optim_enter_master(OptimParam *p)
{
    TensorScope scope = tensor_scope_open();
    int status = 0;
    if (p->master && strcmp(tensor_device(p->master), tensor_device(p->tensor)) != 0)
        status = tensor_set_data(p->master, tensor_to_device(p->master, tensor_device(p->tensor)));
    if (!p->master && op_graph_break("optim_set_master_weights", "makes copies")) status = -1;
    else if (!p->master) p->master = tensor_retain(tensor_to(tensor_detach(p->tensor), TENSOR_F32));
    else if (!status && is_stale(p) && !tensor_error_code() && !tensor_copy_(p->master, p->tensor))
        status = -1;
    tensor_scope_close(scope);
    if (status || !p->master || tensor_error_code()) return -1;
    p->half = p->tensor, p->tensor = p->master;
    return 0;
}

int optim_leave_masters(OptimGroup *g, int n, bool write)
{
    const bool failed = tensor_error_code() != TENSOR_OK;
    int status = 0, far = 0;
    for (int i = 0; i < n && write; i++) {
        const OptimParam *p = g->stepped[i];
        if (!p->half) continue;
        if (optim_is_far(p->half)) g->item[far] = p->half, g->item[n + far++] = p->master;
        else if (!tensor_copy_(p->half, p->master)) status = -1;
    }
    if (far && tensor_foreach_copy_(TENSOR_LIST(g->item, far), TENSOR_LIST(g->item + n, far))) {
        if (!failed) tensor_error_clear(); /* one by one they need no memory */
        for (int i = 0; i < far; i++)
            if (!tensor_copy_(g->item[i], g->item[n + i])) status = -1;
    }
    for (int i = 0; i < n; i++) {
        OptimParam *p = g->stepped[i];
        if (!p->half) continue;
        p->tensor = p->half, p->half = NULL;
        p->seen = tensor_version(p->tensor), p->where = tensor_data(p->tensor);
    }
    return status;
}
