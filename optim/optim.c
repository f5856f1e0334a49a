/* optim.c - groups of parameters, and the step that all optimizers share.
 *
 *  - Every tensor of a group is retained, a leaf, and in no other group.
 *  - A step first allocates states and dense gradients (which can fail), then changes parameters.  If that
 *    can fail too, it keeps copies and undoes a failed step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../nn/module.h"
#include "optim.h"

/* ---- kinds: a linker section that each file adds to ------------------------------------------ */

extern const OptimKind *const __start_tapegrad_optimizers[] __attribute__((weak, visibility("hidden"))),
    *const __stop_tapegrad_optimizers[] __attribute__((weak, visibility("hidden")));

int optim_kind_count(void) { return (int)(__stop_tapegrad_optimizers - __start_tapegrad_optimizers); }

const OptimKind *optim_kind_at(int i)
{
    return i >= 0 && i < optim_kind_count() ? __start_tapegrad_optimizers[i] : NULL;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int check_param(const Optimizer *opt, TensorList list, int i, NNSeen *seen)
{
    const char *function = opt->kind->function;
    if (!list.item[i])
        return tensor_error_code() ? -1 : tensor_fail(TENSOR_ENULL, function, "parameter %d is NULL", i);
    const char *outer = tensor_compose_begin(function);
    bool leaf = tensor_is_leaf(list.item[i]);
    tensor_compose_end(outer);
    if (tensor_error_code()) return -1; /* it was released */
    if (!leaf)
        return tensor_fail(TENSOR_EGRAD, function, "parameter %d is the result of an op, not a leaf", i);
    if (nn_seen_before(seen, list.item[i]))
        return tensor_fail(TENSOR_EVALUE, function, "parameter %d is given twice", i);
    return opt->kind->check_param ? opt->kind->check_param(list.item[i], function) : 0;
}

int optim_check_options(const OptimKind *kind, const void *options, const char *function)
{
    for (const OpField *f = kind->fields; f && f->name; f++) {
        const void *at = (const char *)options + f->offset;
        if (f->choices && tensor_check_choice(function, f->name, *(const int *)at, f->choices)) return -1;
    }
    return kind->check ? kind->check(options, function) : 0;
}

static int check_params(const Optimizer *opt, TensorList list)
{
    NNSeen seen;
    int64_t most = list.count;
    int status = 0;
    for (int g = 0; g < opt->groups; g++) most += opt->group[g].count;
    if (nn_seen_make(&seen, most, opt->kind->function)) return -1;
    for (int g = 0; g < opt->groups; g++)
        for (int i = 0; i < opt->group[g].count; i++) nn_seen_before(&seen, opt->group[g].param[i].tensor);
    for (int i = 0; i < list.count && !status; i++) status = check_param(opt, list, i, &seen);
    free(seen.slot);
    return status;
}

static int check_group(const Optimizer *opt, TensorList list, const void *options)
{
    if (list.count < 1 || !list.item)
        return tensor_error_code() ? -1
                                   : tensor_fail(TENSOR_EVALUE, opt->kind->function, "no parameters given");
    if (check_params(opt, list)) return -1;
    return optim_check_options(opt->kind, options, opt->kind->function);
}

void optim_free_group(OptimGroup *g)
{
    for (int i = 0; i < g->count; i++) {
        for (int s = 0; s < OPTIM_STATES; s++) tensor_release(g->param[i].state[s]);
        tensor_release(g->param[i].tensor), tensor_release(g->param[i].master);
        tensor_release(g->param[i].skipped), tensor_release(g->param[i].carried);
    }
    free(g->options), free(g->param), free(g->before), free(g->stepped), free(g->grad), free(g->first);
    free(g->item), free(g->numbers), free(g->dense), free(g->mark);
}

int optim_make_group(OptimGroup *g, size_t args, TensorList list, const void *options)
{
    size_t n = (size_t)list.count + 1; /* also of an empty group */
    *g = (OptimGroup){ .options = malloc(args),
                       .param = calloc(n, sizeof *g->param),
                       .before = calloc(n, sizeof *g->before),
                       .stepped = calloc(n, sizeof *g->stepped),
                       .grad = calloc(n, sizeof *g->grad),
                       .item = calloc(2 * n, (2 + OPTIM_STATES) * sizeof *g->item),
                       .numbers = calloc(n, sizeof *g->numbers),
                       .dense = calloc(n, sizeof *g->dense),
                       .first = calloc(n, sizeof *g->first),
                       .mark = calloc(n, sizeof *g->mark) };
    if (!g->options || !g->param || !g->before || !g->stepped || !g->grad || !g->item || !g->numbers ||
        !g->dense || !g->first || !g->mark)
        return -1;
    memcpy(g->options, options, args);
    *(TensorList *)g->options = (TensorList){ 0 }; /* the caller's array may go */
    g->count = list.count;
    for (int i = 0; i < g->count; i++) g->param[i].tensor = tensor_retain(list.item[i]);
    return 0;
}

int optim_append_group(Optimizer *opt, TensorList list, const void *options)
{
    OptimGroup *groups = realloc(opt->group, (size_t)(opt->groups + 1) * sizeof *groups);
    if (groups) opt->group = groups;
    OptimGroup made = { 0 };
    if (!groups || optim_make_group(&made, opt->kind->args, list, options)) {
        optim_free_group(&made);
        return tensor_fail(TENSOR_ENOMEM, opt->kind->function, "out of memory");
    }
    groups[opt->groups] = made;
    op_graph_changed();
    return opt->groups++;
}

static int add_group(Optimizer *opt, TensorList list, const void *options)
{
    if (check_group(opt, list, options)) return -1;
    if (opt->groups && opt->kind->one_group)
        return tensor_fail(TENSOR_EVALUE, opt->kind->function, "it takes one group of parameters");
    return optim_append_group(opt, list, options);
}

Optimizer *optim_new(const OptimKind *kind, const void *args)
{
    if (!kind || !args || !kind->function ||
        !(kind->step || kind->step_all || kind->step_closure || kind->rule))
        return tensor_fail(TENSOR_ENULL, "optim_new",
                           "the kind, its function, its step or the options are NULL"),
               NULL;
    if (kind->args < sizeof(TensorList) || kind->args > OPTIM_OPTIONS)
        return tensor_fail(TENSOR_EVALUE, kind->function,
                           "options of %zu bytes: want params and at most %d bytes", kind->args,
                           OPTIM_OPTIONS),
               NULL;
    if (kind->defaults && tensor_check_options(kind->function, args, kind->defaults, kind->args)) return NULL;
    Optimizer *opt = calloc(1, sizeof *opt);
    if (!opt) return tensor_fail(TENSOR_ENOMEM, kind->function, "out of memory"), NULL;
    opt->kind = kind;
    if (add_group(opt, *(const TensorList *)args, args) == 0) return opt;
    optim_free(opt);
    return NULL;
}

bool optim_null(const Optimizer *opt, const char *function)
{
    if (opt) return false;
    if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the optimizer is NULL");
    return true;
}

int optim_add_group(Optimizer *opt, TensorList params)
{
    return optim_null(opt, "optim_add_group") ? -1 : add_group(opt, params, opt->group[0].options);
}

void *optim_group_options(Optimizer *opt, int group, size_t size)
{
    static _Thread_local _Alignas(16) char scratch[OPTIM_OPTIONS];
    static const char function[] = "optim_options";
    if (!optim_null(opt, function)) {
        if (size != opt->kind->args)
            tensor_fail(TENSOR_EVALUE, function, "%s has another options struct", opt->kind->function);
        else if (group < 0 || group >= opt->groups)
            tensor_fail(TENSOR_EINDEX, function, "group %d of %d", group, opt->groups);
        else return opt->group[group].options;
    }
    return memset(scratch, 0, sizeof scratch);
}

void optim_free(Optimizer *opt)
{
    if (!opt) return;
    op_graph_changed();
    for (int g = 0; g < opt->groups; g++) optim_free_group(&opt->group[g]);
    free(opt->group);
    nn_dict_free(opt->extra);
    nn_dict_free(opt->state);
    free(opt);
}

/* ---- the learning rate ----------------------------------------------------------------------- */

double *optim_number(const Optimizer *opt, int group, const char *name)
{
    for (const OpField *f = opt->kind->fields; f && f->name; f++)
        if (strcmp(f->name, name) == 0 && f->type == OP_DOUBLE)
            return (double *)(void *)((char *)opt->group[group].options + f->offset);
    return NULL;
}

double optim_lr(const Optimizer *opt)
{
    const double *lr = optim_null(opt, "optim_lr") ? NULL : optim_number(opt, 0, "lr");
    return lr ? *lr : NAN;
}

int optim_set_lr(Optimizer *opt, double lr)
{
    if (optim_null(opt, "optim_set_lr")) return -1;
    if (!(lr >= 0)) return tensor_fail(TENSOR_EVALUE, "optim_set_lr", "lr is %g: want 0 or more", lr);
    if (!optim_number(opt, 0, "lr"))
        return tensor_fail(TENSOR_EVALUE, "optim_set_lr", "%s has no lr", opt->kind->function);
    for (int g = 0; g < opt->groups; g++) *optim_number(opt, g, "lr") = lr;
    return 0;
}

int optim_check_common(double lr, double weight_decay, const char *function)
{
    if (lr >= 0 && weight_decay >= 0) return 0;
    return tensor_fail(TENSOR_EVALUE, function, "lr %g, weight_decay %g: want 0 or more", lr, weight_decay);
}

int optim_check_betas(double beta1, double beta2, double eps, const char *function)
{
    if (beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1 && eps >= 0) return 0;
    return tensor_fail(TENSOR_EVALUE, function,
                       "beta1 %g, beta2 %g, eps %g: betas lie in [0, 1), eps is not negative", beta1, beta2,
                       eps);
}

/* ---- the step: what it needs ----------------------------------------------------------------- */

char optim_dense(const Tensor *t)
{
    TensorDtype dtype = tensor_dtype(t);
    if ((dtype != TENSOR_F32 && dtype != TENSOR_F64) || !tensor_is_contiguous(t) ||
        strcmp(tensor_device(t), "cpu") != 0)
        return 0;
    return dtype == TENSOR_F32 ? 'f' : 'd';
}

unsigned optim_states(const OptimKind *kind, const void *options)
{
    if (kind->states) return kind->states(options);
    unsigned all = 0;
    for (int s = 0; s < OPTIM_STATES && kind->state[s]; s++) all |= 1u << s;
    return all;
}

int optim_state_shape(const OptimKind *kind, const void *options, const Tensor *p, int s, int64_t *dim)
{
    if (!(optim_states(kind, options) >> s & 1)) return -1;
    if (kind->shape) return kind->shape(p, s, dim);
    const TensorShape shape = tensor_shape(p);
    if (shape.ndim) memcpy(dim, shape.dim, (size_t)shape.ndim * sizeof *dim);
    return shape.ndim;
}

Tensor *optim_wider(Tensor *x) { return tensor_dtype(x) == TENSOR_F64 ? x : tensor_to(x, TENSOR_F32); }

/* A state follows its parameter to another dtype or device (nn_to). */
static int follow(Tensor *state, const Tensor *parameter)
{
    const char *device = tensor_device(parameter);
    if (tensor_dtype(state) == tensor_dtype(parameter) && strcmp(tensor_device(state), device) == 0) return 0;
    TensorScope scope = tensor_scope_open();
    Tensor *moved = state;
    if (tensor_dtype(moved) != tensor_dtype(parameter)) moved = tensor_to(moved, tensor_dtype(parameter));
    if (moved) moved = tensor_to_device(moved, device);
    const int status = moved ? tensor_set_data(state, moved) : -1;
    tensor_scope_close(scope);
    return status;
}

bool optim_is_far(const Tensor *t) { return strcmp(tensor_device(t), "cpu") != 0; }

/* On a device zeros come later, for all together: clear_states. */
static int make_state(const Optimizer *opt, const OptimGroup *g, OptimParam *p, int s)
{
    int64_t dim[TENSOR_MAX_DIMS];
    const int ndim = optim_state_shape(opt->kind, g->options, p->tensor, s, dim);
    if (ndim < 0) return 0;
    if (op_graph_break(opt->kind->function, "makes states")) return -1;
    p->fresh = true;
    TensorScope scope = tensor_scope_open();
    const TensorShape shape = { ndim, dim };
    p->state[s] = tensor_retain(optim_is_far(p->tensor) ? tensor_new_empty(p->tensor, shape)
                                : opt->kind->shape      ? tensor_new_zeros(p->tensor, shape)
                                                        : tensor_zeros_like(p->tensor));
    tensor_scope_close(scope);
    return p->state[s] ? 0 : -1;
}

int optim_make_states(const Optimizer *opt, const OptimGroup *g, OptimParam *p)
{
    const unsigned needed = optim_states(opt->kind, g->options);
    for (int s = 0; s < OPTIM_STATES; s++)
        if (needed >> s & 1 && (p->state[s] ? follow(p->state[s], p->tensor) : make_state(opt, g, p, s)))
            return -1;
    return tensor_error_code() ? -1 : 0;
}

/* Those that were made for this step. */
static int clear_states(const Optimizer *opt, const OptimGroup *g, int n)
{
    int made = 0;
    for (int i = 0; i < n; i++)
        for (int s = 0; s < OPTIM_STATES; s++) {
            Tensor *state = g->stepped[i]->state[s];
            if (state && !g->before[i].state[s] && optim_is_far(state)) g->item[made++] = state;
        }
    if (made == 0) return 0;
    const char *outer = tensor_compose_begin(opt->kind->function);
    const int status = tensor_foreach_zero_(TENSOR_LIST(g->item, made));
    tensor_compose_end(outer);
    return status;
}

/* Of halves on a device that are stepped in f32, for all together. */
static int widen_gradients(const OptimGroup *g, int n)
{
    int far = 0;
    for (int i = 0; i < n; i++) {
        if (!g->stepped[i]->half || !optim_is_far(g->grad[i]) || tensor_dtype(g->grad[i]) == TENSOR_F32)
            continue;
        g->item[n + far] = g->grad[i];
        if (!(g->item[far++] = g->grad[i] = tensor_empty_like(g->stepped[i]->tensor))) return -1;
    }
    return far ? tensor_foreach_copy_(TENSOR_LIST(g->item, far), TENSOR_LIST(g->item + n, far)) : 0;
}

static int prepare(const Optimizer *opt, OptimGroup *g, int *n)
{
    for (int i = 0; i < g->count; i++) {
        OptimParam *p = &g->param[i];
        Tensor *grad = tensor_grad(p->tensor);
        if (tensor_error_code()) return -1;
        if (!grad) continue;
        if (p->unsure && optim_must_settle(opt, g, p) && optim_settle(p)) return -1;
        if (!tensor_is_contiguous(grad)) grad = tensor_contiguous(grad);
        if (optim_has_master(opt, p->tensor)) {
            if (optim_enter_master(p)) return -1;
            if (!optim_is_far(p->tensor)) grad = tensor_to(grad, TENSOR_F32); /* else: widen_gradients */
        } else tensor_release(p->master), p->master = NULL;                   /* of a half that it was */
        g->stepped[*n] = p, g->before[*n] = *p, g->grad[(*n)++] = grad;
        const OptimParam *last = *n > 1 ? g->stepped[*n - 2] : NULL;
        if (!grad || optim_make_states(opt, g, p) || (opt->found && optim_doubt(opt, p, last))) return -1;
    }
    return clear_states(opt, g, *n) ? -1 : widen_gradients(g, *n);
}

/* Prepares the steps.  *sure: no step can fail once begun, unless a device breaks; loops of rules over
 * dense memory cannot. */
static int make_ready(const Optimizer *opt, const OptimGroup *g, int n, bool *sure)
{
    if (opt->kind->rule) return optim_make_ready(opt->kind, g, n, opt->found, sure);
    *sure = *sure && n == 0;
    return 0;
}

/* Copies that undo a failed step; the scope owns them. */
static int keep_copies(OptimGroup *g, int n)
{
    for (int i = 0; i < n; i++)
        for (int s = -1; s < OPTIM_STATES; s++) {
            Tensor **copy = s < 0 ? &g->before[i].tensor : &g->before[i].state[s];
            Tensor *made = *copy ? tensor_clone(*copy) : NULL;
            if (*copy && !made) return -1;
            *copy = made;
        }
    return 0;
}

/* ---- the step -------------------------------------------------------------------------------- */

static int check_options(const Optimizer *opt)
{
    for (int g = 0; g < opt->groups; g++)
        if (optim_check_options(opt->kind, opt->group[g].options, opt->kind->function)) return -1;
    return 0;
}

/* A step of a user's kind may return success although a call in it failed: the error counts. */
static int stepped(const OptimKind *kind, int status)
{
    if (status && !tensor_error_code())
        tensor_fail(TENSOR_EUSER, kind->function, "the step failed without saying why");
    return status || tensor_error_code() ? -1 : 0;
}

static int step_each(const OptimKind *kind, OptimGroup *g, int n)
{
    for (int i = 0; i < n; i++) {
        TensorScope scope = tensor_scope_open();
        int status = kind->step(g->options, g->stepped[i], g->grad[i]);
        tensor_scope_close(scope);
        if (status || tensor_error_code()) return -1;
    }
    return 0;
}

static int step_group(const OptimKind *kind, OptimGroup *g, int n, Tensor *found)
{
    for (int i = 0; i < n; i++) g->stepped[i]->step++;
    int status = kind->rule        ? optim_run(kind, g, n, found)
                 : !kind->step_all ? step_each(kind, g, n)
                 : n               ? kind->step_all(g->options, g->stepped, g->grad, n)
                                   : 0;
    if (!status && found && !kind->rule) status = optim_hold_back(g, n, found);
    for (int i = 0; i < n && !status && !found; i++) g->stepped[i]->fresh = false;
    return stepped(kind, status);
}

/* Needs no memory: with equal dtype and shape a copy moves bytes. */
static void take_back(OptimGroup *g, int n, bool copied)
{
    for (int i = 0; i < n; i++) {
        OptimParam *p = g->stepped[i], *before = &g->before[i];
        p->step = before->step, p->fresh = before->fresh;
        memcpy(p->number, before->number, sizeof p->number);
        if (copied) tensor_copy_(p->tensor, before->tensor);
        for (int s = 0; s < OPTIM_STATES; s++) {
            if (!before->state[s]) tensor_release(p->state[s]), p->state[s] = NULL;
            else if (copied) tensor_copy_(p->state[s], before->state[s]);
        }
    }
}

int optim_step_groups(Optimizer *opt, int (*ready)(const Optimizer *opt, OptimGroup *g, int *n))
{
    const bool compared = op_graph_compare(false);
    tensor_profile_push(opt->kind->name);
    int n[opt->groups], status = 0;
    bool sure = true, copied = false;
    memset(n, 0, sizeof n);
    for (int g = 0; g < opt->groups && !status; g++) {
        status = ready(opt, &opt->group[g], &n[g]);
        if (!status) status = optim_capture_group(opt, &opt->group[g], n[g]);
        if (!status) status = make_ready(opt, &opt->group[g], n[g], &sure);
    }
    if (!status && !sure) status = op_graph_break(opt->kind->function, "has no kernel for all parameters");
    for (int g = 0; g < opt->groups && !status && !sure; g++) status = keep_copies(&opt->group[g], n[g]);
    copied = !status && !sure;
    for (int g = 0; g < opt->groups && !status; g++)
        status = step_group(opt->kind, &opt->group[g], n[g], opt->found);
    for (int g = 0; g < opt->groups && status; g++) take_back(&opt->group[g], n[g], copied);
    for (int g = 0; g < opt->groups && opt->found; g++) optim_end_doubt(&opt->group[g], n[g], !status);
    for (int g = 0; g < opt->groups && opt->master_weights; g++)
        if (optim_leave_masters(&opt->group[g], n[g], !status)) status = -1;
    tensor_profile_pop();
    op_graph_compare(compared);
    return status;
}

int optim_step(Optimizer *opt)
{
    if (optim_null(opt, "optim_step") || check_options(opt)) return -1;
    if (!opt->kind->step && !opt->kind->step_all && !opt->kind->rule)
        return tensor_fail(TENSOR_EVALUE, "optim_step", "%s wants a closure: optim_step_closure",
                           opt->kind->function);
    TensorScope scope = tensor_scope_open();
    bool was = tensor_set_grad_enabled(false);
    int status = optim_step_groups(opt, prepare);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}

double optim_call_closure(OptimClosure fn, void *ctx)
{
    TensorScope scope = tensor_scope_open();
    bool was = tensor_set_grad_enabled(true);
    Tensor *loss = fn(ctx);
    if (!loss && !tensor_error_code())
        tensor_fail(TENSOR_ENULL, "optim_step_closure", "the closure gave no loss");
    double value = loss ? tensor_item(loss) : (double)NAN;
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return tensor_error_code() ? (double)NAN : value;
}

/* All parameters may change, whether or not they have a gradient. */
static int keep_all(OptimGroup *g)
{
    for (int i = 0; i < g->count; i++) g->stepped[i] = &g->param[i], g->before[i] = g->param[i];
    return keep_copies(g, g->count);
}

static int step_by_closure(Optimizer *opt, OptimClosure fn, void *ctx, double *loss)
{
    for (int g = 0; g < opt->groups; g++)
        if (keep_all(&opt->group[g])) return -1;
    const int status = stepped(opt->kind, opt->kind->step_closure(opt, fn, ctx, loss));
    for (int g = 0; g < opt->groups && status; g++) {
        OptimGroup *group = &opt->group[g];
        for (int i = 0; i < group->count; i++) group->stepped[i] = &group->param[i];
        take_back(group, group->count, true);
    }
    return status;
}

double optim_step_closure(Optimizer *opt, OptimClosure fn, void *ctx)
{
    if (optim_null(opt, "optim_step_closure") || tensor_error_code() || check_options(opt)) return NAN;
    if (!fn) return tensor_fail(TENSOR_ENULL, "optim_step_closure", "the closure is NULL"), (double)NAN;
    double loss = NAN;
    if (!opt->kind->step_closure) {
        loss = optim_call_closure(fn, ctx);
        return tensor_error_code() || optim_step(opt) ? (double)NAN : loss;
    }
    TensorScope scope = tensor_scope_open();
    bool was = tensor_set_grad_enabled(false);
    tensor_profile_push(opt->kind->name);
    int status = step_by_closure(opt, fn, ctx, &loss);
    tensor_profile_pop();
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status || tensor_error_code() ? (double)NAN : loss;
}

const OptimZeroGradArgs optim_zero_grad_defaults = { OPTIM_ZERO_GRAD_DEFAULTS };

/* Each in its own scope: memory that suffices for the first suffices for all. */
static int zero_group(OptimGroup *g)
{
    TensorScope scope = tensor_scope_open();
    int n = 0;
    for (int i = 0; i < g->count; i++)
        if ((g->grad[n] = tensor_grad(g->param[i].tensor)) != NULL) n++;
    const int status = tensor_error_code() ? -1 : tensor_foreach_zero_(TENSOR_LIST(g->grad, n));
    tensor_scope_close(scope);
    return status;
}

static int drop_group(OptimGroup *g)
{
    for (int i = 0; i < g->count; i++)
        if (tensor_set_grad(g->param[i].tensor, NULL)) return -1;
    return 0;
}

int optim_zero_grad_args(OptimZeroGradArgs args)
{
    const Optimizer *opt = args.optimizer;
    if (TENSOR_CHECK_OPTIONS("optim_zero_grad", args, optim_zero_grad_defaults) ||
        optim_null(opt, "optim_zero_grad"))
        return -1;
    bool was = tensor_set_grad_enabled(false);
    int status = 0;
    for (int g = 0; g < opt->groups && !status; g++)
        status = (args.set_to_none ? drop_group : zero_group)(&opt->group[g]);
    tensor_set_grad_enabled(was);
    return status;
}
