/* scheduler.c - what all schedules share: making one, its steps; several in a row or at once. */
#include "optim.h"
#include "scheduler.h"

/* ---- making ---------------------------------------------------------------------------------- */

bool scheduler_null(const Scheduler *s, const char *function)
{
    if (s) return false;
    if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the scheduler is NULL");
    return true;
}

Scheduler *scheduler_alloc(const SchedulerKind *kind, Optimizer *opt)
{
    if (optim_null(opt, kind->function)) return NULL;
    if (!optim_number(opt, 0, "lr"))
        return tensor_fail(TENSOR_EVALUE, kind->function, "%s has no lr", opt->kind->function), NULL;
    enum { ARRAYS = SCHEDULER_LISTS + 3 };
    const size_t groups = (size_t)opt->groups;
    Scheduler *s = calloc(1, sizeof *s);
    double *room = calloc(groups * ARRAYS, sizeof *room);
    if (!s || !room) {
        free(s), free(room);
        return tensor_fail(TENSOR_ENOMEM, kind->function, "out of memory"), NULL;
    }
    s->kind = kind, s->opt = opt, s->groups = opt->groups;
    s->base = room, s->last = room + groups, s->before.last = room + 2 * groups;
    for (int k = 0; k < SCHEDULER_LISTS; k++) s->list[k] = room + (3 + (size_t)k) * groups;
    for (int g = 0; g < s->groups; g++) {
        if (!opt->group[g].scheduled) opt->group[g].initial_lr = *optim_number(opt, g, "lr");
        s->base[g] = opt->group[g].initial_lr;
    }
    scheduler_note_rates(s);
    return s;
}

bool scheduler_cycles(const Scheduler *s) { return s->kind->momentum && !isnan(s->kind->momentum(s, 0, 0)); }

static const double *number_at(const void *options, size_t at)
{
    return (const double *)(const void *)((const char *)options + at);
}

int scheduler_check_groups(const Scheduler *s, const char *function)
{
    for (int k = 0; s->kind->per_group[k].number; k++)
        for (int g = 0; g < s->groups; g++) {
            const SchedulerList *l = &s->kind->per_group[k];
            if (s->list[k][g] >= 0) continue;
            const OptimPerGroup *given = (const void *)(s->options + l->list_at);
            if (given->count)
                return tensor_fail(TENSOR_EVALUE, function, "%s has %g for group %d: want 0 or more", l->list,
                                   s->list[k][g], g);
            return tensor_fail(TENSOR_EVALUE, function, "%s is %g: want 0 or more", l->number, s->list[k][g]);
        }
    if (!scheduler_cycles(s) || optim_number(s->opt, 0, "momentum") || optim_number(s->opt, 0, "beta1"))
        return 0;
    return tensor_fail(TENSOR_EVALUE, function, "%s has neither momentum nor beta1: .cycle_momentum = false",
                       s->opt->kind->function);
}

/* The numbers of each group, from the list or the one for all. */
static int take_lists(Scheduler *s, const void *args)
{
    for (int k = 0; s->kind->per_group[k].number; k++) {
        const SchedulerList *l = &s->kind->per_group[k];
        const double number = *number_at(args, l->number_at),
                     unset = *number_at(s->kind->defaults, l->number_at);
        OptimPerGroup *list = (void *)(s->options + l->list_at);
        if (list->count && !(number == unset || (isnan(number) && isnan(unset))))
            return tensor_fail(TENSOR_EVALUE, s->kind->function, "both %s and %s are given: want one",
                               l->number, l->list);
        if (list->count && (list->count != s->groups || !list->item))
            return tensor_fail(TENSOR_EVALUE, s->kind->function, "%s has %d numbers, the optimizer %d groups",
                               l->list, list->item ? list->count : 0, s->groups);
        for (int g = 0; g < s->groups; g++) s->list[k][g] = list->count ? list->item[g] : number;
        list->item = NULL;
    }
    return 0;
}

static int take_milestones(Scheduler *s, TensorShape list)
{
    if (!list.ndim) return 0;
    s->milestone = malloc((size_t)list.ndim * sizeof *s->milestone);
    if (!s->milestone) return tensor_fail(TENSOR_ENOMEM, s->kind->function, "out of memory");
    s->milestones = list.ndim;
    for (int i = 0; i < list.ndim; i++) s->milestone[i] = (double)list.dim[i];
    return 0;
}

/* The step before the first: -1, or that of a resumed run, whose optimizer has the initial rates. */
static int take_last_epoch(Scheduler *s)
{
    const int64_t last = *(const int64_t *)(const void *)(s->options + s->kind->last_epoch);
    if (!s->kind->last_epoch) return 0;
    if (last < -1 || last > 0x7fffffff)
        return tensor_fail(TENSOR_EVALUE, s->kind->function,
                           "last_epoch is %lld: want that of a run, or -1: a new one", (long long)last);
    for (int g = 0; g < s->groups && last >= 0; g++)
        if (!s->opt->group[g].scheduled)
            return tensor_fail(TENSOR_EVALUE, s->kind->function,
                               "last_epoch is %lld, and group %d has no initial_lr: load the optimizer's "
                               "state first",
                               (long long)last, g);
    s->t = last + 1;
    return 0;
}

static int set_up(Scheduler *s, const void *args)
{
    const SchedulerKind *kind = s->kind;
    memcpy(s->options, args, kind->args);
    if (kind->milestones) {
        TensorShape *list = (void *)(s->options + kind->milestones);
        if (take_milestones(s, *list)) return -1;
        *list = (TensorShape){ 0 }; /* the caller's array may go */
    }
    if (take_lists(s, args) || scheduler_check_groups(s, kind->function) || take_last_epoch(s)) return -1;
    for (int g = 0; g < s->groups && kind->base; g++)
        s->base[g] = kind->base(s, g, s->opt->group[g].scheduled, s->base[g]);
    return scheduler_set(s, s->t, SCHEDULER_FIRST);
}

Scheduler *scheduler_new(const SchedulerKind *kind, const void *args)
{
    if (tensor_check_options(kind->function, args, kind->defaults, kind->args)) return NULL;
    Optimizer *opt = *(Optimizer *const *)args;
    if (optim_null(opt, kind->function) || kind->check(args, kind->function)) return NULL;
    Scheduler *s = scheduler_alloc(kind, opt);
    if (!s) return NULL;
    if (set_up(s, args)) {
        optim_scheduler_free(s);
        return NULL;
    }
    for (int g = 0; g < s->groups; g++) {
        opt->group[g].initial_lr = s->base[g];
        opt->group[g].scheduled = true;
        if (kind->base)
            s->base[g] = kind->base(s, g, false, s->base[g]); /* only step 0 used the previous base */
    }
    return s;
}

void optim_scheduler_free(Scheduler *s)
{
    if (!s) return;
    for (int i = 0; i < s->children; i++) optim_scheduler_free(s->child[i]);
    free(s->child);
    free(s->base), free(s->milestone);
    nn_dict_free(s->state);
    free(s);
}

/* ---- steps ----------------------------------------------------------------------------------- */

void scheduler_note_rates(Scheduler *s)
{
    for (int g = 0; g < s->groups; g++) s->last[g] = *optim_number(s->opt, g, "lr");
}

static void set_momentum(const Scheduler *s, int64_t t)
{
    for (int g = 0; g < s->groups && s->kind->momentum; g++) {
        const double momentum = s->kind->momentum(s, g, t);
        if (isnan(momentum)) continue;
        double *at = optim_number(s->opt, g, "momentum");
        *(at ? at : optim_number(s->opt, g, "beta1")) = momentum;
    }
}

int scheduler_set(Scheduler *s, int64_t t, SchedulerMove move)
{
    double lr[s->groups];
    s->move = move;
    for (int g = 0; g < s->groups; g++) {
        const double base = s->base[g], now = *optim_number(s->opt, g, "lr"),
                     from = move == SCHEDULER_ANEW && !s->kind->follows ? base : now;
        lr[g] = s->kind->lr ? s->kind->lr(s, g, t, base, from) : now;
        if (!(lr[g] >= 0))
            return tensor_fail(TENSOR_EVALUE, s->kind->function, "lr %g in group %d at step %lld", lr[g], g,
                               (long long)t);
    }
    for (int g = 0; g < s->groups; g++) *optim_number(s->opt, g, "lr") = lr[g];
    set_momentum(s, t);
    scheduler_note_rates(s);
    s->t = t;
    if (!s->kind->uncounted && move != SCHEDULER_ANEW) s->count = move == SCHEDULER_FIRST ? 1 : s->count + 1;
    return 0;
}

/* Which schedule of a sequence is active at step t. */
static int child_at(const Scheduler *s, int64_t t)
{
    int i = 0;
    while (i < s->milestones && s->milestone[i] <= (double)t) i++;
    return i;
}

/* Step 0 of s.  Members of a chain that is the first of a row go on by one there, as PyTorch's do; where the
 * chain comes later, which PyTorch does not have, the first goes from the base and each other from what the
 * ones before it gave. */
static int begin(Scheduler *s, SchedulerMove move)
{
    if (!s->child) return scheduler_set(s, 0, move);
    int status = 0;
    const int first = s->chained ? 0 : child_at(s, 0);
    for (int i = 0; i < s->children && !status; i++)
        if (s->chained && move == SCHEDULER_FIRST) status = begin(s->child[i], SCHEDULER_ON);
        else if (s->chained) status = begin(s->child[i], i ? SCHEDULER_FIRST : move);
        else if (i == first) status = begin(s->child[i], move);
        else s->child[i]->t = -1;
    if (!status) s->t = 0, scheduler_note_rates(s);
    return status;
}

static int next(Scheduler *s)
{
    if (!s->child) return scheduler_set(s, s->t + 1, SCHEDULER_ON);
    int status = 0;
    const int i = child_at(s, s->t + 1);
    for (int k = 0; s->chained && k < s->children && !status; k++) status = next(s->child[k]);
    if (!s->chained)
        status = i > 0 && s->milestone[i - 1] == (double)(s->t + 1) ? begin(s->child[i], SCHEDULER_ANEW)
                                                                    : next(s->child[i]);
    if (!status) s->t++, scheduler_note_rates(s);
    return status;
}

/* Saves the steps of s and its children, or restores them. */
static void keep_steps(Scheduler *s, bool back)
{
    const size_t bytes = (size_t)s->groups * sizeof *s->last;
    if (back) s->t = s->before.t, s->count = s->before.count, memcpy(s->last, s->before.last, bytes);
    else s->before.t = s->t, s->before.count = s->count, memcpy(s->before.last, s->last, bytes);
    for (int i = 0; i < s->children; i++) keep_steps(s->child[i], back);
}

/* Step 0, or the next step, of several schedules: if one fails, the changes of the earlier ones are
 * undone. */
static int step_several(Scheduler *s, bool first)
{
    static const char *const option[] = { "lr", "momentum", "beta1" };
    enum { OPTIONS = 3 };
    double before[s->groups][OPTIONS];
    for (int g = 0; g < s->groups; g++)
        for (int k = 0; k < OPTIONS; k++) {
            const double *at = optim_number(s->opt, g, option[k]);
            before[g][k] = at ? *at : 0;
        }
    keep_steps(s, false);
    for (int g = 0; g < s->groups && first; g++) *optim_number(s->opt, g, "lr") = s->opt->group[g].initial_lr;
    const int status = first ? begin(s, SCHEDULER_FIRST) : next(s);
    if (status) keep_steps(s, true);
    for (int g = 0; g < s->groups && status; g++)
        for (int k = 0; k < OPTIONS; k++) {
            double *at = optim_number(s->opt, g, option[k]);
            if (at) *at = before[g][k];
        }
    return status;
}

int optim_scheduler_step(Scheduler *s)
{
    static const char function[] = "optim_scheduler_step";
    if (scheduler_null(s, function) || tensor_error_code() ||
        op_graph_break(function, "counts on the host: it belongs behind tensor_graph_end"))
        return -1;
    if (s->child) return step_several(s, false);
    if (!s->kind->lr)
        return tensor_fail(TENSOR_EVALUE, function, "%s wants a metric: optim_scheduler_step_metric",
                           s->kind->function);
    return next(s);
}

Optimizer *optim_scheduler_optimizer(const Scheduler *s) { return s ? s->opt : NULL; }

int64_t optim_scheduler_last_epoch(const Scheduler *s)
{
    if (scheduler_null(s, "optim_scheduler_last_epoch")) return -1;
    while (s->chained) s = s->child[0];
    return s->t;
}

double optim_scheduler_last_lr(const Scheduler *s, int group)
{
    static const char function[] = "optim_scheduler_last_lr";
    if (scheduler_null(s, function)) return NAN;
    if (group >= 0 && group < s->groups) return s->last[group];
    return tensor_fail(TENSOR_EINDEX, function, "group %d of %d", group, s->groups), (double)NAN;
}

/* ---- several --------------------------------------------------------------------------------- */

static int check_children(const char *function, const Optimizer *opt, Scheduler *const *child, int n)
{
    if (n < 1 || !child) return tensor_fail(TENSOR_EVALUE, function, "no schedulers given");
    for (int i = 0; i < n; i++) {
        if (scheduler_null(child[i], function)) return -1;
        if (child[i]->opt != opt)
            return tensor_fail(TENSOR_EVALUE, function, "scheduler %d is of another optimizer", i);
        if (!child[i]->kind->lr && !child[i]->child)
            return tensor_fail(TENSOR_EVALUE, function, "scheduler %d goes by a metric", i);
        for (int k = 0; k < i; k++)
            if (child[k] == child[i])
                return tensor_fail(TENSOR_EVALUE, function, "scheduler %d is given twice", i);
    }
    return 0;
}

static Scheduler *several(const SchedulerKind *kind, Optimizer *opt, Scheduler *const *child, int n)
{
    Scheduler *s = check_children(kind->function, opt, child, n) ? NULL : scheduler_alloc(kind, opt);
    if (s && !(s->child = malloc((size_t)n * sizeof *s->child)))
        tensor_fail(TENSOR_ENOMEM, kind->function, "out of memory");
    if (s && s->child) {
        memcpy(s->child, child, (size_t)n * sizeof *child);
        s->children = n;
        return s;
    }
    optim_scheduler_free(s);
    return NULL;
}

/* This scheduler owns them, even if it fails: each is freed once. */
static Scheduler *give_up(Scheduler *s, Scheduler *const *child, int n)
{
    for (int i = 0; !s && child && i < n; i++) {
        bool again = false;
        for (int k = 0; k < i; k++) again |= child[k] == child[i];
        if (!again) optim_scheduler_free(child[i]);
    }
    optim_scheduler_free(s);
    return NULL;
}

static int check_milestones(const char *function, TensorShape milestones, int n)
{
    if (milestones.ndim != n - 1 || (n > 1 && !milestones.dim))
        return tensor_fail(TENSOR_EVALUE, function, "%d milestones for %d schedulers: want one fewer",
                           milestones.ndim, n);
    for (int i = 0; i + 1 < n; i++)
        if (milestones.dim[i] < (i ? milestones.dim[i - 1] : 0))
            return tensor_fail(TENSOR_EVALUE, function,
                               "milestone %d is %lld: want 0 or more, none below the one before", i,
                               (long long)milestones.dim[i]);
    return 0;
}

Scheduler *optim_sequential_lr(Optimizer *opt, Scheduler *const *schedulers, int count,
                               TensorShape milestones)
{
    static const SchedulerKind kind = { .function = "optim_sequential_lr" };
    Scheduler *s = optim_null(opt, kind.function) ? NULL : several(&kind, opt, schedulers, count);
    if (!s) return give_up(NULL, schedulers, count);
    if (check_milestones(kind.function, milestones, count) || take_milestones(s, milestones))
        return give_up(s, NULL, 0);
    return step_several(s, true) ? give_up(s, NULL, 0) : s;
}

Scheduler *optim_chained_scheduler(Scheduler *const *schedulers, int count)
{
    static const SchedulerKind kind = { .function = "optim_chained_scheduler" };
    Optimizer *opt = count > 0 && schedulers && schedulers[0] ? schedulers[0]->opt : NULL;
    Scheduler *s =
        check_children(kind.function, opt, schedulers, count) ? NULL : several(&kind, opt, schedulers, count);
    if (!s) return give_up(NULL, schedulers, count);
    s->chained = true;
    return s;
}
