/* state.c - the state of an optimizer as a dict of tensors, and back.
 *
 * Loading compares all names and shapes first, then prepares the new tensors, and only then stores them,
 * which cannot fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../nn/module.h"
#include "optim.h"

enum { NAME = 80, MASTER = OPTIM_STATES };

/* fn on every entry: a state tensor's place (value NULL), or a number (tensor NULL). */
typedef struct Entry {
    char name[NAME];
    OptimGroup *group;
    OptimParam *param;    /* NULL: an option of the group */
    int state;            /* which state, or MASTER; -1: the count of steps; -2 and below: numbers */
    const OpField *field; /* NULL of a group: its initial_lr, once it has a schedule */
    int count;            /* of an option: so many from field on, which PyTorch has as one tuple */
} Entry;

typedef int (*Visit)(void *ctx, const Optimizer *opt, const Entry *e);

/* Has parameter p a state s to be saved?  Before its first step it has none. */
static int walk_param(Optimizer *opt, OptimGroup *g, OptimParam *p, int index, bool all, Visit fn, void *ctx)
{
    int64_t dim[TENSOR_MAX_DIMS];
    int status = 0;
    if (!all && p->step == 0) return 0;
    for (int s = 0; s < OPTIM_STATES && !status; s++) {
        if (optim_state_shape(opt->kind, g->options, p->tensor, s, dim) < 0) continue;
        if (!all && !p->state[s]) continue; /* an option that wants it was changed since the last step */
        Entry e = { .group = g, .param = p, .state = s };
        snprintf(e.name, NAME, "state.%d.%s", index, opt->kind->state[s]);
        status = fn(ctx, opt, &e);
    }
    if (!status && optim_has_master(opt, p->tensor) && (all || p->master)) {
        Entry e = { .group = g, .param = p, .state = MASTER };
        snprintf(e.name, NAME, "state.%d.master_param", index);
        status = fn(ctx, opt, &e);
    }
    for (int k = 0; k < OPTIM_STATES && opt->kind->number[k] && !status; k++) {
        Entry e = { .group = g, .param = p, .state = -2 - k };
        snprintf(e.name, NAME, "state.%d.%s", index, opt->kind->number[k]);
        status = fn(ctx, opt, &e);
    }
    Entry e = { .group = g, .param = p, .state = -1 };
    snprintf(e.name, NAME, "state.%d.step", index);
    return status ? status : fn(ctx, opt, &e);
}

/* The number of options from f on that form one tuple in PyTorch, and the tuple's name. */
static int tuple_at(const OpField *f, const char **name)
{
    static const struct {
        const char *name, *first, *second;
        int count;
    } tuples[] = { { "betas", "beta1", "beta2", 2 },
                   { "etas", "eta_minus", "eta_plus", 2 },
                   { "step_sizes", "step_min", "step_max", 2 },
                   { "eps", "eps1", "eps2", 2 },
                   { "ns_coefficients", "ns_a", "ns_b", 3 } };
    *name = f->name;
    for (size_t i = 0; i < sizeof tuples / sizeof *tuples; i++)
        if (strcmp(f->name, tuples[i].first) == 0 && f[1].name && strcmp(f[1].name, tuples[i].second) == 0)
            return *name = tuples[i].name, tuples[i].count;
    return 1;
}

static int walk_options(const Optimizer *opt, OptimGroup *group, int g, bool all, Visit fn, void *ctx)
{
    int status = 0;
    for (const OpField *f = opt->kind->fields; f && f->name && !status;) {
        Entry e = { .group = group, .field = f };
        const char *name;
        e.count = tuple_at(f, &name);
        snprintf(e.name, NAME, "param_groups.%d.%s", g, name);
        status = fn(ctx, opt, &e);
        f += e.count;
    }
    if (status || !(all || group->scheduled)) return status;
    Entry e = { .group = group, .count = 1 };
    snprintf(e.name, NAME, "param_groups.%d.initial_lr", g);
    return fn(ctx, opt, &e);
}

static bool is_state(const Entry *e) { return e->param && e->state >= 0; }

static Tensor **place_of(const Entry *e)
{
    return e->state == MASTER ? &e->param->master : &e->param->state[e->state];
}

static Tensor *option_of(const Entry *e)
{
    double value[OPTIM_STATES] = { e->group->initial_lr };
    for (int i = 0; i < e->count && e->field; i++) {
        const void *at = (const char *)e->group->options + e->field[i].offset;
        value[i] = e->field[i].type == OP_DOUBLE ? *(const double *)at
                   : e->field[i].type == OP_BOOL ? (double)*(const bool *)at
                                                 : (double)*(const int *)at;
    }
    return tensor_from_data(value, e->count == 1 ? SHAPE() : SHAPE(e->count), TENSOR_F64);
}

static Tensor *number_of(const Entry *e)
{
    if (!e->param) return option_of(e);
    const double value = e->state == -1 ? (double)e->param->step : e->param->number[-2 - e->state];
    return tensor_scalar(value, TENSOR_F64);
}

static void set_number(const Entry *e, const Tensor *from)
{
    if (e->param && e->state == -1) e->param->step = (int64_t)tensor_item(from);
    else if (e->param) e->param->number[-2 - e->state] = tensor_item(from);
    if (!e->param && !e->field) e->group->initial_lr = tensor_item(from), e->group->scheduled = true;
    for (int i = 0; i < e->count && e->field; i++) {
        const double value = e->count == 1 ? tensor_item(from) : tensor_get(from, DIMS(i));
        void *at = (char *)e->group->options + e->field[i].offset;
        if (e->field[i].type == OP_DOUBLE) *(double *)at = value;
        else if (e->field[i].type == OP_BOOL) *(bool *)at = value != 0;
        else *(int *)at = (int)value;
    }
}

/* ---- out ------------------------------------------------------------------------------------- */

static int save(void *ctx, const Optimizer *opt, const Entry *e)
{
    (void)opt;
    TensorScope scope = tensor_scope_open();
    Tensor *t = is_state(e) ? tensor_detach(*place_of(e)) : number_of(e);
    int status = t ? nn_dict_set(ctx, e->name, t) : -1;
    tensor_scope_close(scope);
    return status;
}

static int save_extra(Optimizer *opt)
{
    for (int i = 0; i < opt->extra.count; i++)
        if (nn_dict_set(&opt->state, opt->extra.item[i].name, opt->extra.item[i].tensor)) return -1;
    return 0;
}

TensorDict optim_state_dict(Optimizer *opt)
{
    const TensorDict none = { .count = -1 };
    if (optim_null(opt, "optim_state_dict") || optim_settle_all(opt)) return none;
    nn_dict_free(opt->state);
    opt->state = (TensorDict){ 0 };
    int index = 0, status = 0;
    for (int g = 0; g < opt->groups && !status; g++)
        for (int i = 0; i < opt->group[g].count && !status; i++)
            status =
                walk_param(opt, &opt->group[g], &opt->group[g].param[i], index++, false, save, &opt->state);
    for (int g = 0; g < opt->groups && !status; g++)
        status = walk_options(opt, &opt->group[g], g, false, save, &opt->state);
    return status || save_extra(opt) ? none : opt->state;
}

/* ---- in -------------------------------------------------------------------------------------- */

typedef struct Loading {
    NNMisfits misfits;
    TensorDict dict, made, extra; /* made: what the entries will be, in the order of the walk */
    TensorDict known;             /* KNOW: all entries that there may be */
    int placed;                   /* those of made that are in place */
    bool *mentioned;              /* parameters that it has entries of */
    enum { COMPARE, KNOW, MAKE, PLACE } what;
} Loading;

static int refuse(const Optimizer *opt, TensorStatus code, const char *name, const char *what)
{
    return tensor_fail(code, "optim_load_state_dict", "%s: \"%s\" %s", opt->kind->name, name, what);
}

/* The shape that an entry has here, by dim where it is none of a tensor that is there. */
static TensorShape shape_of(const Optimizer *opt, const Entry *e, int64_t *dim)
{
    *dim = e->count;
    if (!is_state(e)) return (TensorShape){ e->count > 1, dim };
    if (e->state == MASTER) return tensor_shape(e->param->tensor);
    return (TensorShape){ optim_state_shape(opt->kind, e->group->options, e->param->tensor, e->state, dim),
                          dim };
}

static int compare(Loading *l, const Optimizer *opt, const Entry *e, const Tensor *t)
{
    int64_t dim[TENSOR_MAX_DIMS];
    const TensorShape own = shape_of(opt, e, dim), found = tensor_shape(t);
    const bool one = !is_state(e) && e->count <= 1, /* a number may be of any rank */
        right = one ? tensor_numel(t) == 1 : tensor_shape_equal(own, found);
    if (!right) {
        char a[64], b[64], text[NAME + 160];
        snprintf(text, sizeof text, "%s is %s, given %s", e->name, nn_shape_text(own, a),
                 nn_shape_text(found, b));
        return nn_dict_append(&l->misfits.shapes, text, NULL);
    }
    const double value = e->param && e->state == -1 ? tensor_item(t) : 0;
    return value >= 0 && value <= 0x1p53 ? 0 : refuse(opt, TENSOR_EVALUE, e->name, "is no count of steps");
}

static int make(Loading *l, const Optimizer *opt, const Entry *e, Tensor *t)
{
    const Tensor *like = is_state(e) ? e->param->tensor : NULL;
    const TensorDtype dtype = !like                         ? TENSOR_F64
                              : optim_has_master(opt, like) ? TENSOR_F32
                                                            : tensor_dtype(like);
    Tensor *made = tensor_clone(tensor_to(t, dtype));
    if (made) made = tensor_to_device(made, like ? tensor_device(like) : "cpu");
    return made ? nn_dict_set(&l->made, e->name, made) : -1;
}

static void set_state(Tensor **to, Tensor *t)
{
    tensor_release(*to);
    *to = tensor_retain(t);
}

static int place(Loading *l, const Entry *e)
{
    const TensorDictItem *next = l->placed < l->made.count ? &l->made.item[l->placed] : NULL;
    Tensor *made = next && strcmp(next->name, e->name) == 0 ? next->tensor : NULL;
    l->placed += made != NULL;
    if (e->param) e->param->seen = tensor_version(e->param->tensor) - 1; /* looks at master again */
    if (e->param && e->state == -1 && !made) e->param->step = 1; /* an uncounted kind: it has been stepped */
    else if (!is_state(e) && made) set_number(e, made);
    else if (is_state(e)) set_state(place_of(e), made), e->param->fresh = false;
    return 0;
}

/* Entries that may be missing: a count that the kind does not need; a state whose option was switched on
 * after the last step; options that PyTorch lacks or stores as text. */
static bool may_lack(const Optimizer *opt, const Entry *e)
{
    if (!e->param && !e->field) return true;
    if (e->field)
        return e->field->choices || (opt->kind->ours && strcmp(e->field->name, opt->kind->ours) == 0);
    if (e->param && e->state == -1) return opt->kind->uncounted;
    return e->state == MASTER ||
           (is_state(e) && !(optim_states(opt->kind, opt->kind->defaults) >> e->state & 1));
}

static int load(void *ctx, const Optimizer *opt, const Entry *e)
{
    Loading *l = ctx;
    if (l->what == PLACE) return place(l, e);
    if (l->what == KNOW) return nn_dict_append(&l->known, e->name, NULL);
    Tensor *t = nn_dict_get(l->dict, e->name);
    if (!t && !tensor_error() && may_lack(opt, e)) return 0;
    if (!t) return tensor_error() ? -1 : nn_dict_append(&l->misfits.missing, e->name, NULL);
    return l->what == COMPARE ? compare(l, opt, e, t) : make(l, opt, e, t);
}

/* Does PyTorch alone have the option, which says how it computes, and not what?  Its AdamW has one that is
 * always on. */
static bool is_pytorchs(const OptimKind *kind, const char *entry, const Tensor *value)
{
    static const char *const names[] = { "params",         "foreach", "fused",  "capturable",
                                         "differentiable", "max_lr",  "min_lr", "max_momentum",
                                         "base_momentum",  "swa_lr" };
    int end = 0;
    if (sscanf(entry, "param_groups.%*d.%n", &end), end == 0) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(entry + end, names[i]) == 0) return true;
    return strcmp(kind->name, "AdamW") == 0 && strcmp(entry + end, "decoupled_weight_decay") == 0 &&
           tensor_numel(value) == 1 && tensor_item(value) != 0;
}

/* Is it the name of an option, or of a parameter's state?  What else a kind with a closure has is its own. */
static bool is_ours(const OptimKind *kind, const char *entry)
{
    int end = 0;
    if (strncmp(entry, "param_groups.", 13) == 0) return true;
    if (strncmp(entry, "state.", 6) != 0) return false;
    if (!kind->step_closure) return true;
    if (sscanf(entry, "state.%*d.%n", &end), end == 0) return false;
    bool known = strcmp(entry + end, "step") == 0;
    for (int s = 0; s < OPTIM_STATES && !known; s++)
        known = (kind->state[s] && strcmp(entry + end, kind->state[s]) == 0) ||
                (kind->number[s] && strcmp(entry + end, kind->number[s]) == 0);
    return known;
}

/* The parameters that have any entry, by number; NULL without memory. */
static bool *mentioned(const Optimizer *opt, TensorDict dict)
{
    int n = 1;
    for (int g = 0; g < opt->groups; g++) n += opt->group[g].count;
    bool *is = calloc((size_t)n, sizeof *is);
    if (!is) return tensor_fail(TENSOR_ENOMEM, "optim_load_state_dict", "out of memory"), NULL;
    for (int i = 0; i < dict.count; i++) {
        const char *name = dict.item[i].name;
        if (strncmp(name, "state.", 6) != 0 || name[6] < '0' || name[6] > '9') continue;
        char *end;
        const long index = strtol(name + 6, &end, 10);
        if (index < n && *end == '.' && is_ours(opt->kind, name)) is[index] = true;
    }
    return is;
}

/* Options come last, because the optimizer's current options decide which states exist. */
static int load_all(Optimizer *opt, Loading *l, int what)
{
    int index = 0, status = 0;
    l->what = what;
    for (int g = 0; g < opt->groups && !status; g++)
        for (int i = 0; i < opt->group[g].count && !status; i++, index++) {
            OptimParam *p = &opt->group[g].param[i];
            if (l->mentioned[index]) status = walk_param(opt, &opt->group[g], p, index, true, load, l);
            else if (what == PLACE) {
                p->step = 0; /* it had taken none */
                memset(p->number, 0, sizeof p->number);
                for (int s = 0; s < OPTIM_STATES; s++) set_state(&p->state[s], NULL);
                set_state(&p->master, NULL);
            }
        }
    for (int g = 0; g < opt->groups && !status; g++)
        status = walk_options(opt, &opt->group[g], g, true, load, l);
    return status;
}

/* An entry of neither a parameter nor a group belongs to the kind (Optimizer.extra); if the kind keeps
 * none, it is an error. */
static int make_extra(const Optimizer *opt, Loading *l)
{
    for (int i = 0; i < l->dict.count; i++) {
        const TensorDictItem *item = &l->dict.item[i];
        if (!is_ours(opt->kind, item->name) && nn_dict_set(&l->extra, item->name, tensor_clone(item->tensor)))
            return -1;
    }
    return opt->kind->check_extra ? opt->kind->check_extra(opt, l->extra, "optim_load_state_dict") : 0;
}

static bool is_unexpected(const Optimizer *opt, const Loading *l, const TensorDictItem *item)
{
    if (!is_ours(opt->kind, item->name)) return !opt->kind->step_closure;
    return !is_pytorchs(opt->kind, item->name, item->tensor) && nn_dict_find(l->known, item->name, 0) < 0;
}

static int check_misfits(Optimizer *opt, Loading *l)
{
    const NNMisfits *m = &l->misfits;
    if (load_all(opt, l, KNOW)) return -1;
    for (int i = 0; i < l->dict.count; i++)
        if (is_unexpected(opt, l, &l->dict.item[i]) &&
            nn_dict_append(&l->misfits.unexpected, l->dict.item[i].name, NULL))
            return -1;
    if (!m->missing.count && !m->unexpected.count && !m->shapes.count) return 0;
    return nn_refuse_dict("optim_load_state_dict", opt->kind->name, *m);
}

static int take_option(void *ctx, const Optimizer *opt, const Entry *e)
{
    const Tensor *t = nn_dict_get(*(const TensorDict *)ctx, e->name);
    (void)opt;
    if (t) set_number(e, t);
    return 0;
}

/* Options out of range are refused before anything changes. */
static int check_group_options(const Optimizer *opt, const Loading *l, int g)
{
    _Alignas(16) char options[OPTIM_OPTIONS];
    OptimGroup as = opt->group[g];
    memcpy(options, as.options, opt->kind->args);
    as.options = options;
    walk_options(opt, &as, g, true, take_option, (void *)(uintptr_t)&l->dict);
    return optim_check_options(opt->kind, options, "optim_load_state_dict");
}

static int check_loaded_options(const Optimizer *opt, const Loading *l)
{
    int status = 0;
    for (int g = 0; g < opt->groups && !status; g++) status = check_group_options(opt, l, g);
    return status;
}

int optim_load_state_dict(Optimizer *opt, TensorDict dict)
{
    if (optim_null(opt, "optim_load_state_dict") || optim_settle_all(opt)) return -1;
    op_graph_changed();
    bool broken = dict.count < 0 || (dict.count && !dict.item);
    for (int i = 0; i < dict.count && !broken; i++) broken = !dict.item[i].name || !dict.item[i].tensor;
    if (broken && !tensor_error_code())
        tensor_fail(TENSOR_ENULL, "optim_load_state_dict",
                    "the dict is of a call that failed, or has a NULL");
    Loading l = { .dict = dict, .mentioned = broken ? NULL : mentioned(opt, dict) };
    if (!l.mentioned) return -1;
    TensorScope scope = tensor_scope_open();
    bool was = tensor_set_grad_enabled(false);
    int status = load_all(opt, &l, COMPARE) || check_misfits(opt, &l) || check_loaded_options(opt, &l) ||
                         load_all(opt, &l, MAKE) || make_extra(opt, &l)
                     ? -1
                     : load_all(opt, &l, PLACE);
    TensorDict *left = status ? &l.extra : &opt->extra;
    nn_dict_free(*left);
    if (!status) opt->extra = l.extra;
    nn_dict_free(l.made), nn_dict_free(l.known), free(l.mentioned);
    nn_dict_free(l.misfits.missing), nn_dict_free(l.misfits.unexpected), nn_dict_free(l.misfits.shapes);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}
