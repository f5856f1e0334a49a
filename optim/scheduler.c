/* scheduler.c - what all schedules share: making one, its steps, its state; several in a row or at once. */
#include <stdio.h>
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

/* The schedule of momentum needs an optimizer that has one. */
static int check_momentum(const Scheduler *s)
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
        if (list->ndim) memcpy(s->list, list->dim, (size_t)list->ndim * sizeof *s->list);
        list->dim = s->list;
    }
    if (check_momentum(s) || scheduler_set(s, 0, false)) {
        optim_scheduler_free(s);
        return NULL;
    }
    for (int g = 0; g < s->groups; g++) {
        OptimGroup *group = &opt->group[g];
        if (kind->base)
            s->base[g] = group->initial_lr = kind->base(args, group->scheduled, group->initial_lr);
        group->scheduled = true;
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

int64_t optim_scheduler_last_epoch(const Scheduler *s)
{
    return scheduler_null(s, "optim_scheduler_last_epoch") ? -1 : s->t;
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
    if (count > 1) memcpy(s->list, milestones.dim, (size_t)(count - 1) * sizeof *s->list);
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

/* ---- state ----------------------------------------------------------------------------------- */

enum { NAME = 120 };
typedef int (*Visit)(const char *name, double *value, int n, void *ctx);

static int walk(Scheduler *s, const char *prefix, Visit fn, void *ctx)
{
    char name[NAME];
    double t = (double)s->t;
    snprintf(name, NAME, "%slast_epoch", prefix);
    int status = fn(name, &t, 0, ctx);
    s->t = (int64_t)t;
    snprintf(name, NAME, "%sbase_lrs", prefix);
    if (!status) status = fn(name, s->base, s->groups, ctx);
    for (int i = 0; i < SCHEDULER_NUMBERS && s->kind->number[i] && !status; i++) {
        snprintf(name, NAME, "%s%s", prefix, s->kind->number[i]);
        status = fn(name, &s->number[i], 0, ctx);
    }
    for (int i = 0; i < s->children && !status; i++) {
        snprintf(name, NAME, "%.80s_schedulers.%d.", prefix, i);
        status = walk(s->child[i], name, fn, ctx);
    }
    return status;
}

static int save(const char *name, double *value, int n, void *ctx)
{
    TensorScope scope = tensor_scope_open();
    Tensor *t = n ? tensor_from_data(value, SHAPE(n), TENSOR_F64) : tensor_scalar(*value, TENSOR_F64);
    const int status = t ? nn_dict_set(ctx, name, t) : -1;
    tensor_scope_close(scope);
    return status;
}

TensorDict optim_scheduler_state_dict(Scheduler *s)
{
    const TensorDict none = { .count = -1 };
    if (scheduler_null(s, "optim_scheduler_state_dict")) return none;
    nn_dict_free(s->state);
    s->state = (TensorDict){ 0 };
    return walk(s, "", save, &s->state) ? none : s->state;
}

typedef struct Loading {
    TensorDict dict;
    int found;
    bool write;
} Loading;

static int load(const char *name, double *value, int n, void *ctx)
{
    static const char function[] = "optim_scheduler_load_state_dict";
    Loading *l = ctx;
    const Tensor *t = NULL;
    for (int i = 0; i < l->dict.count && !t; i++)
        if (strcmp(l->dict.item[i].name, name) == 0) t = l->dict.item[i].tensor;
    if (!t) return tensor_fail(TENSOR_EVALUE, function, "\"%s\" is missing", name);
    if (tensor_numel(t) != (n ? n : 1))
        return tensor_fail(TENSOR_ESHAPE, function, "\"%s\" has another shape", name);
    const double count = strstr(name, "last_epoch") ? tensor_item(t) : 0;
    if (!(count >= -1 && count <= 0x1p53 && count == floor(count)))
        return tensor_fail(TENSOR_EVALUE, function, "\"%s\" is %g: want a count of steps", name, count);
    l->found++;
    for (int i = 0; i < (n ? n : 1) && l->write; i++) value[i] = n ? tensor_get(t, DIMS(i)) : tensor_item(t);
    return tensor_error_code() ? -1 : 0;
}

int optim_scheduler_load_state_dict(Scheduler *s, TensorDict dict)
{
    Loading l = { .dict = dict };
    if (scheduler_null(s, "optim_scheduler_load_state_dict") || tensor_error_code()) return -1;
    if (dict.count < 0 || (dict.count && !dict.item))
        return tensor_fail(TENSOR_ENULL, "optim_scheduler_load_state_dict",
                           "the dict is of a call that failed");
    if (walk(s, "", load, &l)) return -1;
    if (l.found != dict.count)
        return tensor_fail(TENSOR_EVALUE, "optim_scheduler_load_state_dict",
                           "%d entries, of which %d are unexpected: another schedule", dict.count,
                           dict.count - l.found);
    l.write = true;
    return walk(s, "", load, &l);
}
