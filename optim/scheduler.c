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
    Scheduler *s = calloc(1, sizeof *s);
    if (s) s->base = calloc((size_t)opt->groups, sizeof *s->base);
    if (!s || !s->base) {
        optim_scheduler_free(s);
        return tensor_fail(TENSOR_ENOMEM, kind->function, "out of memory"), NULL;
    }
    s->kind = kind, s->opt = opt, s->groups = opt->groups;
    for (int g = 0; g < s->groups; g++) {
        if (!opt->group[g].scheduled) opt->group[g].initial_lr = *optim_number(opt, g, "lr");
        s->base[g] = opt->group[g].initial_lr;
    }
    return s;
}

int scheduler_check_momentum(const Scheduler *s)
{
    if (!s->kind->momentum || isnan(s->kind->momentum(s, 0))) return 0;
    if (optim_number(s->opt, 0, "momentum") || optim_number(s->opt, 0, "beta1")) return 0;
    return tensor_fail(TENSOR_EVALUE, s->kind->function,
                       "%s has neither momentum nor beta1: .cycle_momentum = false", s->opt->kind->function);
}

Scheduler *scheduler_new(const SchedulerKind *kind, const void *args)
{
    if (tensor_check_options(kind->function, args, kind->defaults, kind->args)) return NULL;
    Optimizer *opt = *(Optimizer *const *)args;
    if (optim_null(opt, kind->function) || kind->check(args, kind->function)) return NULL;
    Scheduler *s = scheduler_alloc(kind, opt);
    if (!s) return NULL;
    memcpy(s->options, args, kind->args);
    if (kind->list) {
        TensorShape *list = (void *)(s->options + kind->list);
        s->listed = list->ndim;
        if (list->ndim) memcpy(s->list, list->dim, (size_t)list->ndim * sizeof *s->list);
        list->dim = s->list;
    }
    for (int g = 0; g < s->groups && kind->base; g++)
        s->base[g] = kind->base(args, opt->group[g].scheduled, s->base[g]);
    if (scheduler_check_momentum(s) || scheduler_set(s, 0, false)) {
        optim_scheduler_free(s);
        return NULL;
    }
    for (int g = 0; g < s->groups; g++) {
        opt->group[g].initial_lr = s->base[g];
        opt->group[g].scheduled = true;
        if (kind->base)
            s->base[g] = kind->base(args, false, s->base[g]); /* step 0 alone went from the other */
    }
    return s;
}

void optim_scheduler_free(Scheduler *s)
{
    if (!s) return;
    for (int i = 0; i < s->children; i++) optim_scheduler_free(s->child[i]);
    free(s->child);
    free(s->base);
    nn_dict_free(s->state);
    free(s);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void set_momentum(const Scheduler *s, int64_t t)
{
    const double momentum = s->kind->momentum ? s->kind->momentum(s, t) : (double)NAN;
    for (int g = 0; g < s->groups && !isnan(momentum); g++) {
        double *at = optim_number(s->opt, g, "momentum");
        *(at ? at : optim_number(s->opt, g, "beta1")) = momentum;
    }
}

int scheduler_set(Scheduler *s, int64_t t, bool from_base)
{
    double lr[s->groups];
    for (int g = 0; g < s->groups; g++) {
        const double base = s->base[g], now = from_base ? base : *optim_number(s->opt, g, "lr");
        lr[g] = s->kind->lr ? s->kind->lr(s, g, t, base, now) : now;
        if (!(lr[g] >= 0))
            return tensor_fail(TENSOR_EVALUE, s->kind->function, "lr %g in group %d at step %lld", lr[g], g,
                               (long long)t);
    }
    for (int g = 0; g < s->groups; g++) *optim_number(s->opt, g, "lr") = lr[g];
    set_momentum(s, t);
    s->t = t;
    return 0;
}

/* Which of a row is on at step t. */
static int child_at(const Scheduler *s, int64_t t)
{
    int i = 0;
    while (i + 1 < s->children && s->list[i] <= t) i++;
    return i;
}

/* Step 0 of s; of a chain, the first goes from the base and each other from what the ones before it gave. */
static int begin(Scheduler *s, bool from_base)
{
    if (!s->child) return scheduler_set(s, 0, from_base);
    int status = 0;
    for (int i = 0; i < s->children && !status; i++)
        if (i == 0 || s->chained) status = begin(s->child[i], from_base && i == 0);
        else s->child[i]->t = -1;
    if (!status) s->t = 0;
    return status;
}

static int next(Scheduler *s)
{
    if (!s->child) return scheduler_set(s, s->t + 1, false);
    int status = 0;
    const int i = child_at(s, s->t + 1);
    for (int k = 0; s->chained && k < s->children && !status; k++) status = next(s->child[k]);
    if (!s->chained)
        status = i > 0 && s->list[i - 1] == s->t + 1 ? begin(s->child[i], true) : next(s->child[i]);
    if (!status) s->t++;
    return status;
}

/* Notes the steps of s and its children, or goes back to those. */
static void keep_steps(Scheduler *s, bool back)
{
    if (back) s->t = s->before;
    else s->before = s->t;
    for (int i = 0; i < s->children; i++) keep_steps(s->child[i], back);
}

/* Step 0 or the next one of several: what the first of them changed is taken back if another one fails. */
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
    const int status = first ? begin(s, false) : next(s);
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
    if (scheduler_null(s, "optim_scheduler_step") || tensor_error_code()) return -1;
    if (s->child) return step_several(s, false);
    if (!s->kind->lr)
        return tensor_fail(TENSOR_EVALUE, "optim_scheduler_step",
                           "%s wants a metric: optim_scheduler_step_metric", s->kind->function);
    return next(s);
}

Optimizer *optim_scheduler_optimizer(const Scheduler *s) { return s ? s->opt : NULL; }

int64_t optim_scheduler_last_epoch(const Scheduler *s)
{
    if (scheduler_null(s, "optim_scheduler_last_epoch")) return -1;
    while (s->chained) s = s->child[0];
    return s->t;
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

/* They are this one's, whatever comes of it: each is freed once. */
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
    if (milestones.ndim != n - 1 || n - 1 > TENSOR_MAX_DIMS || (n > 1 && !milestones.dim))
        return tensor_fail(TENSOR_EVALUE, function,
                           "%d milestones for %d schedulers: want one fewer, at most %d", milestones.ndim, n,
                           TENSOR_MAX_DIMS);
    for (int i = 0; i + 1 < n; i++)
        if (milestones.dim[i] < (i ? milestones.dim[i - 1] + 1 : 1))
            return tensor_fail(TENSOR_EVALUE, function,
                               "milestone %d is %lld: want 1 or more, each above the one before", i,
                               (long long)milestones.dim[i]);
    return 0;
}

Scheduler *optim_sequential_lr(Optimizer *opt, Scheduler *const *schedulers, int count,
                               TensorShape milestones)
{
    static const SchedulerKind kind = { .function = "optim_sequential_lr" };
    Scheduler *s = optim_null(opt, kind.function) ? NULL : several(&kind, opt, schedulers, count);
    if (!s) return give_up(NULL, schedulers, count);
    if (check_milestones(kind.function, milestones, count)) return give_up(s, NULL, 0);
    s->listed = count - 1;
    if (count > 1) memcpy(s->list, milestones.dim, (size_t)s->listed * sizeof *s->list);
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
