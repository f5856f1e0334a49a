/* scheduler_state.c - the state of a schedule as a dict of numbers under PyTorch's names, and back.
 *
 * Loading reads all numbers first and keeps the old ones; if the new ones do not agree with the schedule, it
 * restores the old.  All walks of one schedule visit the same entries. */
#include <stdio.h>
#include "scheduler.h"

enum { NAME = 160 };

/* What a number is for: the state, an option, one of either that a dict may lack, one that must agree with
 * the options or is not there, or a list that must agree. */
typedef enum Role { STATE, OPTION, KEPT, DERIVED, LIST } Role;

typedef struct Entry {
    const Scheduler *s;
    const char *prefix, *word;
    char name[NAME]; /* both of these */
    double *value;
    int n; /* 0: one number */
    Role role;
    double least; /* whole numbers from here on; NaN: any number */
    bool unsaved; /* the options make it nothing that PyTorch saves */
} Entry;

typedef int (*Visit)(void *ctx, Entry *e);

static int visit(Visit fn, void *ctx, Entry e)
{
    snprintf(e.name, NAME, "%s%s", e.prefix, e.word);
    return fn(ctx, &e);
}

#define VISIT(...) visit(fn, ctx, (Entry){ s, prefix, __VA_ARGS__, false })

static int walk_field(Scheduler *s, const char *prefix, const OpField *f, Visit fn, void *ctx)
{
    void *at = s->options + f->offset;
    const bool real = f->type == OP_DOUBLE, truth = f->type == OP_BOOL;
    double value = real ? *(double *)at : truth ? *(bool *)at : *(int *)at;
    const int status = VISIT(f->name, "", &value, 0, OPTION, real ? (double)NAN : 0);
    if (real) *(double *)at = value;
    else if (truth) *(bool *)at = value != 0;
    else *(int *)at = (int)value;
    return status;
}

static int walk_derived(Scheduler *s, const char *prefix, Visit fn, void *ctx)
{
    int status = 0;
    for (int i = 0; s->kind->derived && s->kind->derived[i] && !status; i++) {
        char word[NAME];
        snprintf(word, NAME, "%s", s->kind->derived[i]);
        char *plus = strchr(word, '+');
        double value[s->groups];
        for (int g = 0; g < s->groups; g++) value[g] = s->kind->derive(s, i, g);
        if (plus) *plus = 0;
        status = VISIT(word, "", value, plus ? s->groups : 0, DERIVED, (double)NAN);
    }
    return status;
}

static int walk_lists(Scheduler *s, const char *prefix, Visit fn, void *ctx)
{
    int status = 0;
    for (int k = 0; s->kind->per_group[k].number && !status; k++) {
        const SchedulerList *l = &s->kind->per_group[k];
        const bool unsaved = l->momentum && !scheduler_cycles(s);
        const Entry e = { s, prefix, l->state, "", s->list[k], s->groups, KEPT, (double)NAN, unsaved };
        if (l->state) status = visit(fn, ctx, e);
    }
    return status;
}

static int walk_milestones(Scheduler *s, const char *prefix, Visit fn, void *ctx)
{
    if (!s->milestones) return 0;
    return VISIT(s->child ? "_milestones" : "milestones", "", s->milestone, s->milestones, LIST, (double)NAN);
}

static int walk_own(Scheduler *s, const char *prefix, Visit fn, void *ctx)
{
    const double any = NAN;
    const bool single = !s->child && s->kind->lr;
    double t = (double)s->t, count = (double)s->count;
    int status = 0;
    if (!s->chained) status = VISIT("last_epoch", "", &t, 0, STATE, -1);
    s->t = (int64_t)t;
    if (single && !status)
        status = VISIT("_step_count", "", &count, 0, KEPT, 0) ||
                 VISIT("base_lrs", "", s->base, s->groups, STATE, any);
    s->count = (int64_t)count;
    if (!status) status = VISIT("_last_lr", "", s->last, s->groups, KEPT, any);
    for (int i = 0; i < SCHEDULER_NUMBERS && s->kind->number[i] && !status; i++)
        status = VISIT(s->kind->number[i], "", &s->number[i], 0, STATE, any);
    for (const OpField *f = s->kind->fields; f && f->name && !status; f++)
        status = walk_field(s, prefix, f, fn, ctx);
    return status || walk_lists(s, prefix, fn, ctx) || walk_milestones(s, prefix, fn, ctx) ||
                   walk_derived(s, prefix, fn, ctx)
               ? -1
               : 0;
}

static int walk(Scheduler *s, const char *prefix, Visit fn, void *ctx)
{
    int status = walk_own(s, prefix, fn, ctx);
    for (int i = 0; i < s->children && !status; i++) {
        char name[NAME];
        snprintf(name, NAME, "%.100s_schedulers.%d.", prefix, i);
        status = walk(s->child[i], name, fn, ctx);
    }
    return status;
}

/* ---- out ------------------------------------------------------------------------------------- */

static int save(void *ctx, Entry *e)
{
    if (e->unsaved || (e->role == DERIVED && isnan(*e->value))) return 0;
    TensorScope scope = tensor_scope_open();
    Tensor *t = tensor_from_data(e->value, e->n ? SHAPE(e->n) : SHAPE(), TENSOR_F64);
    const int status = t ? nn_dict_set(ctx, e->name, t) : -1;
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

/* ---- in -------------------------------------------------------------------------------------- */

static const char function[] = "optim_scheduler_load_state_dict";

typedef enum Pass { COUNT, READ, WRITE, AGREE, UNDO } Pass;

typedef struct Loading {
    Pass what;
    TensorDict dict;
    bool *used;        /* each item of the dict */
    double *now, *was; /* all numbers in turn */
    int at;
} Loading;

static int refuse(const Entry *e, TensorStatus code, const char *text)
{
    return tensor_fail(code, function, "\"%s\" %s: no state of this %s", e->name, text, e->s->kind->function);
}

static Tensor *item(Loading *l, const char *name)
{
    for (int i = 0; i < l->dict.count; i++)
        if (strcmp(l->dict.item[i].name, name) == 0) return l->used[i] = true, l->dict.item[i].tensor;
    return NULL;
}

/* A Counter of PyTorch's, "milestones.9" is 2 for 9 named twice, as a list; false: there is none. */
static bool read_counter(Loading *l, const Entry *e, double *to)
{
    const size_t length = strlen(e->name);
    int found = 0;
    for (int i = 0; i < l->dict.count; i++) {
        const char *name = l->dict.item[i].name;
        if (strncmp(name, e->name, length) != 0 || name[length] != '.') continue;
        const double value = strtod(name + length + 1, NULL), times = tensor_item(l->dict.item[i].tensor);
        int own = 0;
        for (int k = 0; k < e->n; k++) own += e->value[k] == value;
        for (int k = 0; k < e->n; k++)
            if (e->value[k] == value) to[k] = own == times ? value : -value;
        l->used[i] = true, found += own ? own : e->n + 1;
    }
    if (found && found != e->n) to[0] = -1; /* it has others */
    return found > 0;
}

static int read_missing(Loading *l, const Entry *e, double *to)
{
    const int n = e->n ? e->n : 1;
    for (int i = 0; i < n; i++) to[i] = e->role <= KEPT ? e->value[i] : (double)NAN;
    if (strcmp(e->word, "_step_count") == 0 && !e->s->kind->uncounted)
        *to = fmax(1, to[-1] + 1); /* last_epoch, which was read before it */
    if (e->role == KEPT || e->role == DERIVED) return 0;
    if (e->role == LIST && read_counter(l, e, to)) return 0;
    char name[NAME];
    snprintf(name, NAME, "%s_last_lr", e->prefix);
    /* Dicts saved before options were stored lack this one too. */
    return e->role != STATE && !item(l, name) ? 0 : refuse(e, TENSOR_EVALUE, "is missing");
}

static int read(Loading *l, const Entry *e, double *to)
{
    const Tensor *t = item(l, e->name);
    const int n = e->n ? e->n : 1;
    if (!t) return read_missing(l, e, to);
    if (tensor_numel(t) != n || (e->n && tensor_ndim(t) != 1))
        return refuse(e, TENSOR_ESHAPE, "has another shape");
    for (int i = 0; i < n; i++) {
        to[i] = e->n ? tensor_get(t, DIMS(i)) : tensor_item(t);
        const double most = e->role == OPTION ? 0x7fffffff : 0x1p53;
        if (!isnan(e->least) && !(to[i] >= e->least && to[i] <= most && to[i] == floor(to[i])))
            return tensor_fail(TENSOR_EVALUE, function, "\"%s\" is %g: want a whole number from %g on",
                               e->name, to[i], e->least);
    }
    return tensor_error_code() ? -1 : 0;
}

/* Does a value that follows from the options equal PyTorch's? */
static int agree(const Entry *e, const double *now)
{
    for (int i = 0; i < (e->n ? e->n : 1); i++)
        if (fabs(now[i] - e->value[i]) > 1e-9 * fabs(e->value[i]) || (isinf(now[i]) && now[i] != e->value[i]))
            return tensor_fail(TENSOR_EVALUE, function, "\"%s\" is %g, of this %s %g: it has other options",
                               e->name, now[i], e->s->kind->function, e->value[i]);
    return 0;
}

static int load(void *ctx, Entry *e)
{
    Loading *l = ctx;
    const int n = e->n ? e->n : 1, at = l->at;
    const size_t bytes = (size_t)n * sizeof(double);
    l->at += n;
    if (l->what == READ) {
        memcpy(l->was + at, e->value, bytes);
        return read(l, e, l->now + at);
    }
    if (l->what == AGREE) return e->role == DERIVED || e->role == LIST ? agree(e, l->now + at) : 0;
    if (l->what != COUNT && e->role <= KEPT)
        memcpy(e->value, (l->what == WRITE ? l->now : l->was) + at, bytes);
    return 0;
}

static int pass(Scheduler *s, Loading *l, Pass what)
{
    l->what = what, l->at = 0;
    return walk(s, "", load, l);
}

static int check(const Scheduler *s)
{
    int status =
        s->kind->check ? s->kind->check(s->options, function) || scheduler_check_groups(s, function) : 0;
    for (int i = 0; i < s->children && !status; i++) status = check(s->child[i]);
    return status;
}

/* Entries to ignore: how PyTorch computes, texts, functions, and entries of our older dicts. */
static bool is_let_be(const char *name)
{
    static const char *const words[] = {
        "_get_lr_called_within_step", "_is_initial", "_step_count", "_scale_fn_custom", "_scale_fn_ref",
        "_schedule_phases",           "lr_lambdas",  "verbose",     "base_lrs",         "last_epoch"
    };
    int child, end = 0;
    while (end = 0, sscanf(name, "_schedulers.%d.%n", &child, &end) == 1 && end) name += end;
    const size_t length = strcspn(name, ".");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(name, words[i], length) == 0 && !words[i][length]) return true;
    return false;
}

static int load_all(Scheduler *s, Loading *l)
{
    const Entry top = { .s = s };
    if (pass(s, l, READ)) return -1;
    for (int i = 0; i < l->dict.count; i++)
        if (!l->used[i] && !is_let_be(l->dict.item[i].name)) {
            Entry e = top;
            snprintf(e.name, NAME, "%s", l->dict.item[i].name);
            return refuse(&e, TENSOR_EVALUE, "is unexpected");
        }
    if (!pass(s, l, WRITE) && !check(s) && !pass(s, l, AGREE)) return 0;
    pass(s, l, UNDO);
    return -1;
}

int optim_scheduler_load_state_dict(Scheduler *s, TensorDict dict)
{
    Loading l = { .dict = dict };
    if (scheduler_null(s, function) || tensor_error_code()) return -1;
    bool broken = dict.count < 0 || (dict.count && !dict.item);
    for (int i = 0; i < dict.count && !broken; i++) broken = !dict.item[i].name || !dict.item[i].tensor;
    if (broken)
        return tensor_fail(TENSOR_ENULL, function, "the dict is of a call that failed, or has a NULL");
    pass(s, &l, COUNT);
    const size_t n = (size_t)l.at;
    double *numbers = calloc(2 * n + 1, sizeof *numbers);
    l.used = calloc((size_t)dict.count + 1, sizeof *l.used);
    l.now = numbers, l.was = numbers ? numbers + n : NULL;
    const int status =
        !numbers || !l.used ? tensor_fail(TENSOR_ENOMEM, function, "out of memory") : load_all(s, &l);
    free(numbers), free(l.used);
    return status;
}
