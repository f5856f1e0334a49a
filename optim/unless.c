/* unless.c - steps that a flag on a device may skip, without reading the flag.
 *
 * Only the device knows whether a step was skipped, and so how many steps a parameter has taken: a value that
 * depends on that number is computed for each possible one, and the device selects.
 *
 *  - p->step counts attempts, of which the last p->unsure are in doubt; p->skipped, i64 [1] on the device,
 *    is how many of those were skipped.  optim_settle reads it and ends the doubt.
 *  - fresh stays true while all attempts in doubt may have been skipped.
 *  - p->carried, f64 on the device, stands for p->number of kinds that have an after: these follow from the
 *    options of the steps that were taken, and not from their count alone.
 *  - Parameters without a rule are stepped, and restored if the flag is set. */
#include <string.h>
#include "optim.h"

enum { MOST = OPTIM_TABLE - 1 }; /* so many attempts in doubt make the host wait once */

static void replace(Tensor **old, Tensor **by)
{
    tensor_release(*old);
    *old = *by, *by = NULL;
}

static int read_carried(const Tensor *carried, double *number)
{
    TensorScope scope = tensor_scope_open();
    const Tensor *host = carried ? tensor_to_device((Tensor *)(uintptr_t)carried, "cpu") : NULL;
    for (int i = 0; host && i < OPTIM_STATES; i++) number[i] = tensor_get(host, DIMS(i));
    tensor_scope_close(scope);
    return tensor_error_code() ? -1 : 0;
}

int optim_settle(OptimParam *p)
{
    Tensor *none = NULL;
    if (!p->unsure) return 0;
    const int64_t skipped = tensor_item_i64(p->skipped);
    if (tensor_error_code() || read_carried(p->carried, p->number)) return -1;
    if (skipped < p->unsure) p->fresh = false;
    p->step -= skipped, p->unsure = 0;
    replace(&p->skipped, &none), replace(&p->carried, &none);
    return 0;
}

int optim_settle_all(const Optimizer *opt)
{
    for (int g = 0; g < opt->groups; g++)
        for (int i = 0; i < opt->group[g].count; i++)
            if (optim_settle(&opt->group[g].param[i])) return -1;
    return 0;
}

bool optim_doubts_enough(const OptimParam *p) { return p->unsure >= MOST; }

/* A state made now did not take part in the attempts in doubt. */
bool optim_must_settle(const Optimizer *opt, const OptimGroup *g, const OptimParam *p)
{
    int64_t dim[TENSOR_MAX_DIMS];
    bool must = !opt->found || optim_doubts_enough(p);
    for (int s = 0; s < OPTIM_STATES && !must; s++)
        must = !p->state[s] && optim_state_shape(opt->kind, g->options, p->tensor, s, dim) >= 0;
    return must;
}

/* Parameters with the same history share one count. */
int optim_doubt(const Optimizer *opt, OptimParam *p, const OptimParam *before)
{
    if (before && before->next && before->skipped == p->skipped)
        return p->next = tensor_retain(before->next), 0;
    TensorScope scope = tensor_scope_open();
    Tensor *now = tensor_reshape(tensor_to(opt->found, TENSOR_I64), SHAPE(1));
    p->next = tensor_retain(p->skipped ? tensor_add(p->skipped, now) : now);
    tensor_scope_close(scope);
    return p->next ? 0 : -1;
}

/* A captured step counts in place, each tensor once. */
static void take_next(const OptimGroup *g, int i)
{
    OptimParam *p = g->stepped[i];
    const bool again = i > 0 && g->stepped[i - 1]->skipped == p->skipped;
    if (!op_graph_capturing(NULL)) replace(&p->skipped, &p->next);
    else if (!again) tensor_copy_(p->skipped, p->next);
    replace(&p->carried, &p->carries);
    p->unsure++;
}

void optim_end_doubt(OptimGroup *g, int n, bool stepped)
{
    for (int i = 0; i < n; i++) {
        OptimParam *p = g->stepped[i];
        if (p->next && stepped) take_next(g, i);
        tensor_release(p->next), tensor_release(p->carries);
        p->next = p->carries = NULL;
    }
}

/* ---- numbers of a step ------------------------------------------------------------------------ */

/* The parameter under the assumption that so many of the attempts in doubt were skipped. */
static OptimParam as_if(const OptimParam *p, int skipped)
{
    OptimParam as = *p;
    as.step = p->step - skipped, as.fresh = p->fresh && skipped == p->unsure;
    return as;
}

/* The row of a table, f64 [p->unsure + 1, n], that the count of skipped steps picks. */
static Tensor *pick_row(const OptimParam *p, const double *table, int n, TensorDtype dtype)
{
    Tensor *all = tensor_to(tensor_from_data(table, SHAPE(p->unsure + 1, n), TENSOR_F64), dtype);
    all = tensor_to_device(all, tensor_device(p->tensor));
    return tensor_select(tensor_index_select(all, 0, p->skipped), 0, 0);
}

static Tensor *of_step(const OptimParam *p, double (*fn)(const void *options, const OptimParam *p),
                       const void *options, TensorDtype dtype)
{
    double table[MOST + 1];
    TensorScope scope = tensor_scope_open();
    for (int skipped = 0; skipped <= p->unsure; skipped++) {
        const OptimParam as = as_if(p, skipped);
        table[skipped] = fn(options, &as);
    }
    Tensor *one = p->unsure ? tensor_select(pick_row(p, table, 1, dtype), 0, 0)
                            : tensor_fill_(tensor_to(tensor_new_zeros(p->tensor, SHAPE()), dtype), table[0]);
    return tensor_scope_return(scope, one);
}

static TensorDtype wide(const OptimParam *p)
{
    return tensor_dtype(p->tensor) == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
}

Tensor *optim_of_step_f64(const OptimParam *p, double (*fn)(const void *options, const OptimParam *p),
                          const void *options)
{
    return of_step(p, fn, options, TENSOR_F64);
}

Tensor *optim_of_step(const OptimParam *p, double (*fn)(const void *options, const OptimParam *p),
                      const void *options)
{
    static const char function[] = "optim_of_step";
    if (tensor_error_code()) return NULL;
    if (!p || !p->tensor || !fn)
        return tensor_fail(TENSOR_ENULL, function, "the parameter or the function is NULL"), NULL;
    return of_step(p, fn, options, wide(p));
}

static double is_fresh(const void *options, const OptimParam *p) { return (void)options, p->fresh; }

Tensor *optim_unless_fresh(const OptimParam *p, Tensor *number, double fresh)
{
    Tensor *first = tensor_ne_scalar(optim_of_step_f64(p, is_fresh, NULL), 0);
    return tensor_where(first, tensor_full_like(number, fresh), number);
}

void optim_number_table(const OptimKind *kind, const void *options, const OptimParam *p, double *table)
{
    memset(table, 0, OPTIM_TABLE * OPTIM_NUMBERS * sizeof *table);
    for (int skipped = 0; skipped <= p->unsure; skipped++) {
        const OptimParam as = as_if(p, skipped);
        kind->numbers(options, &as, table + skipped * OPTIM_NUMBERS);
    }
}

/* One by one; number: the device's current values, replaced by those of the next step. */
int optim_pick_numbers(const OptimKind *kind, const void *options, const OptimParam *p, int count,
                       Tensor **numbers, Tensor **number)
{
    double table[OPTIM_TABLE * OPTIM_NUMBERS];
    optim_number_table(kind, options, p, table);
    Tensor *row = pick_row(p, table, OPTIM_NUMBERS, wide(p));
    for (int i = 0; i < count; i++)
        if (!(numbers[i] = tensor_select(row, 0, i))) return -1;
    for (int i = 0; i < OPTIM_STATES && kind->number[i]; i++) number[i] = tensor_select(p->carried, 0, i);
    if (!kind->after) return 0;
    if (kind->carry(options, p, number, numbers)) return -1;
    for (int i = 0; i < count; i++)
        if (!(numbers[i] = tensor_to(numbers[i], wide(p)))) return -1;
    return 0;
}

/* The numbers after this step; if it is held back, those before it. */
int optim_carry(const OptimKind *kind, const void *options, OptimParam *p, Tensor *const *number,
                Tensor *found)
{
    Tensor *before = p->carried, *now = NULL;
    if (!p->unsure) {
        OptimParam as = *p;
        kind->after(options, &as);
        const char *device = tensor_device(p->tensor);
        before = tensor_to_device(tensor_from_data(p->number, SHAPE(OPTIM_STATES), TENSOR_F64), device);
        now = tensor_to_device(tensor_from_data(as.number, SHAPE(OPTIM_STATES), TENSOR_F64), device);
    } else {
        Tensor *all[OPTIM_STATES];
        for (int i = 0; i < OPTIM_STATES; i++) all[i] = number[i] ? number[i] : tensor_select(before, 0, i);
        now = tensor_stack(TENSOR_LIST(all, OPTIM_STATES));
    }
    p->carries = tensor_retain(tensor_where(found, before, now));
    return p->carries ? 0 : -1;
}

/* ---- what is held back ------------------------------------------------------------------------ */

int optim_write_unless(Tensor *found, Tensor *x, Tensor *y)
{
    if (found && y) y = tensor_where(found, tensor_to(x, tensor_dtype(y)), y);
    return y && tensor_copy_(x, y) ? 0 : -1;
}

static int give_back(Tensor *found, Tensor *x, Tensor *before)
{
    TensorScope scope = tensor_scope_open();
    Tensor *y = tensor_where(found, before ? before : tensor_zeros_like(x), x);
    const int status = y && tensor_copy_(x, y) ? 0 : -1;
    tensor_scope_close(scope);
    return status;
}

/* before: copies; a state without one was made for this step. */
int optim_hold_back(const OptimGroup *g, int n, Tensor *found)
{
    for (int i = 0; i < n; i++) {
        const OptimParam *p = g->stepped[i], *before = &g->before[i];
        if (give_back(found, p->tensor, before->tensor)) return -1;
        for (int s = 0; s < OPTIM_STATES; s++)
            if (p->state[s] && give_back(found, p->state[s], before->state[s])) return -1;
    }
    return 0;
}

/* ---- a step ----------------------------------------------------------------------------------- */

/* Can the step be held back?  All parameters must lie on the flag's device. */
static bool can_pick(const Optimizer *opt, const Tensor *found)
{
    bool can = (opt->kind->rule || opt->kind->skips) && strcmp(tensor_device(found), "cpu") != 0;
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
    opt->found = tensor_to(found, TENSOR_BOOL);
    const int status = opt->found ? optim_step(opt) : -1;
    opt->found = NULL;
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}
