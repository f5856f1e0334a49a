/* unless.c - steps that a flag on a device may skip, without asking for the flag.
 *
 * Whether a step was skipped is known on the device alone, and so is how many steps a parameter has taken:
 * what a rule computes from that number is computed for each that is possible, and the device picks.
 *
 *  - p->step counts attempts, of which the last p->unsure are in doubt; p->skipped, i64 [1] on the device,
 *    says how many of those were skipped.  optim_settle asks for it and ends the doubt.
 *  - fresh stays true while all attempts in doubt may have been skipped. */
#include <string.h>
#include "optim.h"

enum { MOST = 64 }; /* attempts in doubt: then the host waits once */

int optim_settle(OptimParam *p)
{
    if (!p->unsure) return 0;
    const int64_t skipped = tensor_item_i64(p->skipped);
    if (tensor_error_code()) return -1;
    if (skipped < p->unsure) p->fresh = false;
    p->step -= skipped, p->unsure = 0;
    tensor_release(p->skipped);
    p->skipped = NULL;
    return 0;
}

int optim_settle_all(const Optimizer *opt)
{
    for (int g = 0; g < opt->groups; g++)
        for (int i = 0; i < opt->group[g].count; i++)
            if (optim_settle(&opt->group[g].param[i])) return -1;
    return 0;
}

/* A state that is made now has not seen the attempts in doubt. */
bool optim_must_settle(const Optimizer *opt, const OptimGroup *g, const OptimParam *p)
{
    int64_t dim[TENSOR_MAX_DIMS];
    bool must = !opt->found || p->unsure >= MOST;
    for (int s = 0; s < OPTIM_STATES && !must; s++)
        must = !p->state[s] && optim_state_shape(opt->kind, g->options, p->tensor, s, dim) >= 0;
    return must;
}

int optim_doubt(const Optimizer *opt, OptimParam *p)
{
    TensorScope scope = tensor_scope_open();
    Tensor *now = tensor_reshape(tensor_to(opt->found, TENSOR_I64), SHAPE(1));
    p->next = tensor_retain(p->skipped ? tensor_add(p->skipped, now) : tensor_clone(now));
    tensor_scope_close(scope);
    return p->next ? 0 : -1;
}

void optim_end_doubt(OptimGroup *g, int n, bool stepped)
{
    for (int i = 0; i < n; i++) {
        OptimParam *p = g->stepped[i];
        if (!p->next) continue;
        tensor_release(stepped ? p->skipped : p->next);
        if (stepped) p->skipped = p->next, p->unsure++;
        p->next = NULL;
    }
}

/* The row of the possible numbers that the count of skipped steps picks; its elements are the numbers. */
int optim_pick_numbers(const OptimKind *kind, const void *options, const OptimParam *p, int count,
                       Tensor **numbers)
{
    double table[MOST + 1][OPTIM_NUMBERS] = { { 0 } };
    for (int skipped = 0; skipped <= p->unsure; skipped++) {
        OptimParam as = *p;
        as.step = p->step - skipped, as.fresh = p->fresh && skipped == p->unsure;
        kind->numbers(options, &as, table[skipped]);
    }
    const TensorDtype wide = tensor_dtype(p->tensor) == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    Tensor *all = tensor_from_data(table, SHAPE(p->unsure + 1, OPTIM_NUMBERS), TENSOR_F64);
    all = tensor_to_device(tensor_to(all, wide), tensor_device(p->tensor));
    Tensor *row = tensor_index_select(all, 0, p->skipped);
    for (int i = 0; i < count; i++) {
        numbers[i] = tensor_select(tensor_select(row, 0, 0), 0, i);
        if (!numbers[i]) return -1;
    }
    return 0;
}

/* Does a rule that keeps no numbers of its own step all parameters where the flag is? */
static bool can_pick(const Optimizer *opt, const Tensor *found)
{
    bool can = opt->kind->rule && !opt->kind->after && !opt->master_weights &&
               strcmp(tensor_device(found), "cpu") != 0;
    for (int g = 0; g < opt->groups && can; g++)
        for (int i = 0; i < opt->group[g].count && can; i++)
            can = strcmp(tensor_device(opt->group[g].param[i].tensor), tensor_device(found)) == 0;
    return can;
}

int optim_step_unless(Optimizer *opt, const Tensor *found_inf)
{
    static const char function[] = "optim_step_unless";
    if (optim_null(opt, function) || tensor_error_code()) return -1;
    if (!found_inf) return tensor_fail(TENSOR_ENULL, function, "found_inf is NULL");
    if (tensor_numel(found_inf) != 1)
        return tensor_fail(TENSOR_ESHAPE, function, "found_inf has %lld elements",
                           (long long)tensor_numel(found_inf));
    if (!can_pick(opt, found_inf)) {
        const double found = tensor_item(found_inf);
        return tensor_error_code() ? -1 : found != 0 ? 0 : optim_step(opt);
    }
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    Tensor *found = tensor_reshape((Tensor *)(uintptr_t)found_inf, SHAPE());
    opt->found = tensor_ne_scalar(found, 0);
    const int status = opt->found ? optim_step(opt) : -1;
    opt->found = NULL;
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}
