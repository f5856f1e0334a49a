/* lbfgs.c - L-BFGS: Newton's direction from the last changes of position and gradient.
 *
 *   y = g - g', s = t d of the last step, kept where y s > 1e-10;   ro = 1 / (y s);   H = y s / (y y)
 *   q = -g;   newest to oldest: al_i = ro_i s_i q, q -= al_i y_i;   d = H q;
 *   oldest to newest: d += s_i (al_i - ro_i y_i d);   p += t d
 *
 * All parameters are one vector.  The state is in Optimizer.extra, as saved under PyTorch's names, and is
 * replaced at the end of a step: a failed step leaves it unchanged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "lbfgs.h"

enum { NAME = 48 };

/* In the order of these names. */
typedef struct Numbers {
    double func_evals, n_iter, t, H_diag, prev_loss;
} Numbers;
static const char *const number_names[] = { "func_evals", "n_iter", "t", "H_diag", "prev_loss" };
enum { NUMBERS = sizeof number_names / sizeof *number_names };

typedef struct Memory { /* of a step; y, s and ro are rings of history_size, from the oldest on */
    Numbers number;
    Tensor *d, *gradient; /* the last direction, the gradient before it; NULL at first */
    Tensor **y, **s;
    double *ro, *al;
    int count;
} Memory;

/* ---- parameters as one vector ---------------------------------------------------------------- */

static Tensor *flat_gradient(const Lbfgs *l)
{
    TensorScope scope = tensor_scope_open();
    const OptimGroup *g = l->group;
    for (int i = 0; i < g->count; i++) {
        Tensor *p = g->param[i].tensor, *grad = tensor_grad(p);
        g->grad[i] = tensor_reshape(grad ? grad : tensor_zeros_like(tensor_detach(p)), SHAPE(-1));
        if (!g->grad[i]) return tensor_scope_return(scope, NULL);
    }
    Tensor *flat = tensor_detach(tensor_cat(TENSOR_LIST(g->grad, g->count)));
    return tensor_scope_return(scope, l->options->maximize ? tensor_neg(flat) : flat);
}

static int move(const Lbfgs *l, Tensor *d, double t)
{
    int64_t at = 0;
    for (int i = 0; i < l->group->count; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *p = l->group->param[i].tensor;
        const int64_t n = tensor_numel(p);
        Tensor *part =
            tensor_to(tensor_reshape(tensor_narrow(d, 0, at, n), tensor_shape(p)), tensor_dtype(p));
        const int status = tensor_add_scaled_(p, part, t) ? 0 : -1;
        tensor_scope_close(scope);
        if (status) return -1;
        at += n;
    }
    return 0;
}

static int evaluate(const Lbfgs *l, double *loss)
{
    *loss = optim_call_closure(l->fn, l->ctx);
    if (l->options->maximize) *loss = -*loss;
    return tensor_error_code() ? -1 : 0;
}

static double dot(Tensor *a, Tensor *b)
{
    TensorScope scope = tensor_scope_open();
    const Tensor *y = tensor_dot(a, b);
    const double value = y ? tensor_item(y) : (double)NAN;
    tensor_scope_close(scope);
    return value;
}

static double norm(Tensor *x, double ord)
{
    TensorScope scope = tensor_scope_open();
    const Tensor *y = tensor_numel(x) ? tensor_norm(x, ord) : NULL;
    const double value = y ? tensor_item(y) : 0;
    tensor_scope_close(scope);
    return value;
}

int lbfgs_try(Lbfgs *l, Tensor *d, double t, LbfgsPoint *point)
{
    point->t = t;
    if (move(l, d, t) || evaluate(l, &point->f)) return -1;
    point->gradient = flat_gradient(l);
    if (!point->gradient) return -1;
    for (int i = 0; i < l->group->count; i++)
        if (!tensor_copy_(l->group->param[i].tensor, l->start[i])) return -1;
    point->slope = dot(point->gradient, d);
    return tensor_error_code() ? -1 : 0;
}

/* ---- the direction --------------------------------------------------------------------------- */

/* (An error is aim's to tell: without y or s, ys is NaN.) */
static void remember(Memory *m, Tensor *gradient, int most)
{
    Tensor *y = tensor_sub(gradient, m->gradient), *s = tensor_mul_scalar(m->d, m->number.t);
    const double ys = dot(y, s);
    if (!(ys > 1e-10) || most < 1) return;
    if (m->count == most) {
        m->count--;
        memmove(m->y, m->y + 1, (size_t)m->count * sizeof *m->y);
        memmove(m->s, m->s + 1, (size_t)m->count * sizeof *m->s);
        memmove(m->ro, m->ro + 1, (size_t)m->count * sizeof *m->ro);
    }
    m->y[m->count] = y, m->s[m->count] = s, m->ro[m->count++] = 1 / ys;
    m->number.H_diag = ys / dot(y, y);
}

static Tensor *direction(Memory *m, Tensor *gradient)
{
    TensorScope scope = tensor_scope_open();
    Tensor *q = tensor_neg(gradient);
    for (int i = m->count - 1; i >= 0 && q; i--) {
        m->al[i] = dot(m->s[i], q) * m->ro[i];
        q = tensor_add_scaled_(q, m->y[i], -m->al[i]);
    }
    if (q) q = tensor_mul_scalar_(q, m->number.H_diag);
    for (int i = 0; i < m->count && q; i++)
        q = tensor_add_scaled_(q, m->s[i], m->al[i] - dot(m->y[i], q) * m->ro[i]);
    return tensor_scope_return(scope, q);
}

/* ---- a step ---------------------------------------------------------------------------------- */

typedef struct Progress {
    Tensor *gradient;
    double loss, before; /* before: of the iteration's start */
    int iterations, evaluations, most_evaluations;
} Progress;

static int aim(Memory *m, const Lbfgs *l, Tensor *gradient)
{
    const bool first = m->number.n_iter++ == 0;
    if (first) m->number.H_diag = 1, m->count = 0;
    else remember(m, gradient, l->options->history_size);
    m->d = first ? tensor_neg(gradient) : direction(m, gradient);
    m->gradient = gradient;
    m->number.t = first ? fmin(1, 1 / norm(gradient, 1)) * l->options->lr : l->options->lr;
    return m->d && !tensor_error_code() ? 0 : -1;
}

static int search(Lbfgs *l, Memory *m, Progress *p, double slope, int *evaluations)
{
    TensorScope scope = tensor_scope_open();
    LbfgsPoint point = { 0, p->loss, slope, p->gradient };
    for (int i = 0; i < l->group->count; i++)
        if (!tensor_copy_(l->start[i], l->group->param[i].tensor)) return -1;
    const int status = lbfgs_strong_wolfe(l, m->d, m->number.t, norm(m->d, (double)INFINITY),
                                          p->most_evaluations - p->evaluations, &point, evaluations);
    p->gradient = tensor_scope_return(scope, status ? NULL : point.gradient);
    p->loss = point.f, m->number.t = point.t;
    return status || move(l, m->d, point.t) ? -1 : 0;
}

/* Without a line search; the last iteration does not evaluate the loss. */
static int stride(const Lbfgs *l, const Memory *m, Progress *p, int *evaluations)
{
    *evaluations = p->iterations != l->options->max_iter;
    if (move(l, m->d, m->number.t)) return -1;
    if (!*evaluations) return 0;
    if (evaluate(l, &p->loss)) return -1;
    p->gradient = flat_gradient(l);
    return p->gradient ? 0 : -1;
}

static bool is_done(const Lbfgs *l, const Memory *m, const Progress *p)
{
    const OptimLbfgsArgs *o = l->options;
    return p->iterations == o->max_iter || p->evaluations >= p->most_evaluations ||
           norm(p->gradient, (double)INFINITY) <= o->tolerance_grad ||
           norm(m->d, (double)INFINITY) * fabs(m->number.t) <= o->tolerance_change ||
           fabs(p->loss - p->before) < o->tolerance_change;
}

static int iterate(Lbfgs *l, Memory *m, Progress *p)
{
    const OptimLbfgsArgs *o = l->options;
    while (p->iterations++ < o->max_iter) {
        int evaluations = 0;
        if (aim(m, l, p->gradient)) return -1;
        p->before = m->number.prev_loss = p->loss;
        const double slope = dot(p->gradient, m->d);
        if (tensor_error_code()) return -1;
        if (slope > -o->tolerance_change) return 0;
        if (o->line_search_fn ? search(l, m, p, slope, &evaluations) : stride(l, m, p, &evaluations))
            return -1;
        p->evaluations += evaluations, m->number.func_evals += evaluations;
        if (is_done(l, m, p)) return tensor_error_code() ? -1 : 0;
    }
    return 0;
}

/* ---- memory: out of Optimizer.extra and back -------------------------------------------------- */

static const char *name(char *to, const char *what, int i)
{
    snprintf(to, NAME, i < 0 ? "state.0.%s" : "state.0.%s.%d", what, i);
    return to;
}

static Tensor *found(TensorDict dict, const char *what, int i)
{
    char text[NAME];
    return nn_dict_get(dict, name(text, what, i));
}

/* Of the parameters' dtype and device, which nn_to may have changed. */
static Tensor *vector(TensorDict dict, const char *what, int i, const Tensor *like)
{
    Tensor *x = found(dict, what, i);
    return x ? tensor_to_device(tensor_to(x, tensor_dtype(like)), tensor_device(like)) : NULL;
}

static int recall(Memory *m, TensorDict dict, const Tensor *like, int most)
{
    double *number = &m->number.func_evals;
    for (int i = 0; i < NUMBERS; i++) {
        const Tensor *x = found(dict, number_names[i], -1);
        number[i] = x ? tensor_item(x) : 0;
    }
    m->d = vector(dict, "d", -1, like), m->gradient = vector(dict, "prev_flat_grad", -1, like);
    int first = 0, kept = 0;
    while (found(dict, "ro", kept)) kept++;
    if (kept > most) first = kept - most; /* history_size became less */
    for (int i = first; i < kept; i++, m->count++) {
        m->y[m->count] = vector(dict, "old_dirs", i, like),
        m->s[m->count] = vector(dict, "old_stps", i, like);
        m->ro[m->count] = tensor_item(found(dict, "ro", i));
        if (!m->y[m->count] || !m->s[m->count]) return -1;
    }
    return tensor_error_code() ? -1 : 0;
}

static int put(TensorDict *dict, const char *what, int i, Tensor *x)
{
    char text[NAME];
    return x ? nn_dict_set(dict, name(text, what, i), x) : -1;
}

static int put_number(TensorDict *dict, const char *what, int i, double x)
{
    return put(dict, what, i, tensor_scalar(x, TENSOR_F64));
}

static int keep(const Memory *m, TensorDict *dict)
{
    const double *number = &m->number.func_evals;
    for (int i = 0; i < (m->d ? NUMBERS : 2); i++)
        if (put_number(dict, number_names[i], -1, number[i])) return -1;
    if (!m->d) return 0;
    if (put(dict, "d", -1, m->d) || put(dict, "prev_flat_grad", -1, m->gradient)) return -1;
    for (int i = 0; i < m->count; i++)
        if (put(dict, "old_dirs", i, m->y[i]) || put(dict, "old_stps", i, m->s[i]) ||
            put_number(dict, "ro", i, m->ro[i]))
            return -1;
    return 0;
}

static int run(Optimizer *opt, Lbfgs *l, Memory *m, double *loss)
{
    const OptimLbfgsArgs *o = l->options;
    Progress p = { .evaluations = 1, .most_evaluations = o->max_eval ? o->max_eval : o->max_iter * 5 / 4 };
    if (evaluate(l, &p.loss)) return -1;
    *loss = o->maximize ? -p.loss : p.loss;
    p.gradient = flat_gradient(l);
    if (!p.gradient || recall(m, opt->extra, p.gradient, o->history_size)) return -1;
    m->number.func_evals++;
    if (!(norm(p.gradient, (double)INFINITY) <= o->tolerance_grad) && iterate(l, m, &p)) return -1;
    TensorDict dict = { 0 };
    if (keep(m, &dict) || tensor_error_code()) return nn_dict_free(dict), -1;
    nn_dict_free(opt->extra);
    opt->extra = dict;
    return 0;
}

static int step_closure(Optimizer *opt, OptimClosure fn, void *ctx, double *loss)
{
    OptimGroup *g = opt->group;
    Lbfgs l = { g, g->options, fn, ctx, calloc((size_t)g->count, sizeof(Tensor *)) };
    const size_t most = (size_t)l.options->history_size + 1;
    Memory m = { .y = malloc(2 * most * sizeof *m.y), .ro = malloc(2 * most * sizeof *m.ro) };
    int status = l.start && m.y && m.ro ? 0 : tensor_fail(TENSOR_ENOMEM, "optim_lbfgs", "out of memory");
    if (!status) m.s = m.y + most, m.al = m.ro + most;
    for (int i = 0; i < g->count && !status; i++) {
        l.start[i] = tensor_clone(g->param[i].tensor);
        if (!l.start[i]) status = -1;
    }
    if (!status) status = run(opt, &l, &m, loss);
    free(l.start), free(m.y), free(m.ro);
    return status;
}

/* ---- kind ------------------------------------------------------------------------------------ */

static int refuse(const char *function, TensorStatus code, const char *entry, const char *what)
{
    return tensor_fail(code, function, "LBFGS: \"%s\" %s", entry, what);
}

/* Is it one of the names with a number behind it? */
static bool is_listed(const char *entry, const char *what, int *i)
{
    char format[NAME];
    int end = 0;
    snprintf(format, sizeof format, "state.0.%s.%%d%%n", what);
    return sscanf(entry, format, i, &end) == 1 && entry[end] == 0;
}

static int check_entry(const TensorDictItem *item, int64_t numel, const char *function)
{
    char text[NAME];
    int i = 0;
    bool number = is_listed(item->name, "ro", &i) || is_listed(item->name, "al", &i);
    for (int k = 0; k < NUMBERS && !number; k++)
        number = !strcmp(item->name, name(text, number_names[k], -1));
    const bool flat = !strcmp(item->name, "state.0.d") || !strcmp(item->name, "state.0.prev_flat_grad") ||
                      is_listed(item->name, "old_dirs", &i) || is_listed(item->name, "old_stps", &i);
    if (!number && !flat) return refuse(function, TENSOR_EVALUE, item->name, "is unexpected");
    if (number ? tensor_numel(item->tensor) != 1
               : tensor_ndim(item->tensor) != 1 || tensor_numel(item->tensor) != numel)
        return refuse(function, TENSOR_ESHAPE, item->name, "has another shape");
    return 0;
}

/* All or, before the first step, none of it. */
static int check_extra(const Optimizer *opt, TensorDict dict, const char *function)
{
    int64_t numel = 0;
    int lists = 0, scratch = 0, index;
    for (int i = 0; i < opt->group->count; i++) numel += tensor_numel(opt->group->param[i].tensor);
    for (int i = 0; i < dict.count; i++)
        if (check_entry(&dict.item[i], numel, function)) return -1;
        else
            scratch +=
                is_listed(dict.item[i].name, "al", &index); /* PyTorch saves what the next step makes */
    if (dict.count == 0) return 0;
    const bool moved = found(dict, "d", -1) != NULL;
    for (int k = 0; k < (moved ? NUMBERS : 2); k++)
        if (!found(dict, number_names[k], -1))
            return refuse(function, TENSOR_EVALUE, number_names[k], "is missing");
    if (moved && !found(dict, "prev_flat_grad", -1))
        return refuse(function, TENSOR_EVALUE, "prev_flat_grad", "is missing");
    while (found(dict, "ro", lists) && found(dict, "old_dirs", lists) && found(dict, "old_stps", lists))
        lists++;
    if (dict.count == (moved ? NUMBERS + 2 : 2) + 3 * lists + scratch) return 0;
    return refuse(function, TENSOR_EVALUE, "old_dirs, old_stps, ro", "do not belong together");
}

const OptimLbfgsArgs optim_lbfgs_defaults = { OPTIM_LBFGS_DEFAULTS };
static const char *const searches[] = { "none", "strong_wolfe", NULL };
static const OpField fields[] = { OP_OPTION(OptimLbfgsArgs, lr, max_iter, max_eval, tolerance_grad,
                                            tolerance_change, history_size),
                                  OP_CHOICE(OptimLbfgsArgs, line_search_fn, searches),
                                  OP_OPTION(OptimLbfgsArgs, maximize),
                                  { 0 } };

static int check(const void *options, const char *function)
{
    const OptimLbfgsArgs *o = options;
    if (optim_check_common(o->lr, 0, function)) return -1;
    if (o->max_iter >= 0 && o->max_eval >= 0 && o->history_size >= 0 && o->history_size <= 1 << 20 &&
        !isnan(o->tolerance_grad + o->tolerance_change))
        return 0;
    return tensor_fail(TENSOR_EVALUE, function,
                       "max_iter %d, max_eval %d, history_size %d, tolerances %g and %g: want 0 or more, and "
                       "numbers",
                       o->max_iter, o->max_eval, o->history_size, o->tolerance_grad, o->tolerance_change);
}

OPTIM_DEFINE(lbfgs, OptimLbfgsArgs, .name = "LBFGS", .ours = "maximize", .fields = fields, .check = check,
             .one_group = true, .check_extra = check_extra, .step_closure = step_closure)
