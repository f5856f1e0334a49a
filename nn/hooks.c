/* hooks.c - hooks of modules, before and after a forward, and on the gradients of one.
 *
 * For backward hooks the inputs and results of a module pass through an op that is the identity forward.  In
 * backward the op of the results runs first: it keeps their gradients, under the number of the forward, until
 * the op of the inputs runs and calls the hooks with both, or the sweep ends.  A sweep belongs to one thread,
 * and so do these gradients.  The graph may outlive the module, so the ops refer to it by a number. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "module.h"

enum { PRE, AFTER, BACKWARD_PRE, BACKWARD };
static const char *const kind_text[] = { "forward pre-hook", "forward hook", "backward pre-hook",
                                         "backward hook" };

typedef struct Kept { /* gradients of the results of one forward, in one sweep */
    int64_t forward;
    Tensor *grad[NN_VALUES];
    struct Kept *next;
} Kept;

typedef struct NNHook {
    int kind, id;
    NNHookFn fn;
    void *ctx;
} Hook;

/* Modules that have, or had, backward hooks. */
typedef struct Watched {
    int64_t number;
    Module *module;
    struct Watched *next;
} Watched;

static _Thread_local Kept *kept; /* the latest first */
static Watched *watched_modules;
static int64_t last_number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Hooks of all modules, under the lock. */
static Hook *everywhere;
static int everywhere_count;
static _Atomic bool any_everywhere;
static _Atomic int last_id;

/* Under the lock: that of m, or of a number. */
static Watched *find(const Module *m, int64_t number)
{
    Watched *w = watched_modules;
    while (w && (m ? w->module != m : w->number != number)) w = w->next;
    return w;
}

static Module *module_of(int64_t number)
{
    pthread_mutex_lock(&lock);
    const Watched *w = find(NULL, number);
    pthread_mutex_unlock(&lock);
    return w ? w->module : NULL;
}

/* ---- the list of a module -------------------------------------------------------------------- */

/* The number of m, assigned at its first backward hook or at the first one for all modules; 0 without
 * memory. */
static int64_t watch(Module *m)
{
    pthread_mutex_lock(&lock);
    Watched *w = find(m, 0);
    if (!w && (w = malloc(sizeof *w))) {
        *w = (Watched){ ++last_number, m, watched_modules };
        watched_modules = w;
    }
    const int64_t number = w ? w->number : 0;
    pthread_mutex_unlock(&lock);
    return number;
}

/* The new hook's id; -1 without memory. */
static int append(Hook **list, int *count, Hook h)
{
    Hook *more = realloc(*list, (size_t)(*count + 1) * sizeof *more);
    if (!more) return -1;
    op_graph_changed();
    *list = more;
    h.id = ++last_id;
    more[(*count)++] = h;
    return h.id;
}

static bool take_out(Hook *list, int *count, int id)
{
    for (int i = 0; i < *count; i++)
        if (list[i].id == id) {
            op_graph_changed();
            memmove(list + i, list + i + 1, (size_t)(--*count - i) * sizeof *list);
            return true;
        }
    return false;
}

static int add(Module *m, int kind, NNHookFn fn, void *ctx, const char *function)
{
    if (nn_null(m, function)) return -1;
    if (!fn) return tensor_fail(TENSOR_ENULL, function, "the hook is NULL");
    const int id =
        kind < BACKWARD_PRE || watch(m) ? append(&m->hooks, &m->hook_count, (Hook){ kind, 0, fn, ctx }) : -1;
    return id < 0 ? tensor_fail(TENSOR_ENOMEM, function, "out of memory") : id;
}

static int add_everywhere(int kind, NNHookFn fn, void *ctx, const char *function)
{
    if (!fn) return tensor_fail(TENSOR_ENULL, function, "the hook is NULL");
    pthread_mutex_lock(&lock);
    const int id = append(&everywhere, &everywhere_count, (Hook){ kind, 0, fn, ctx });
    any_everywhere = true;
    pthread_mutex_unlock(&lock);
    return id < 0 ? tensor_fail(TENSOR_ENOMEM, function, "out of memory") : id;
}

int nn_register_module_forward_pre_hook(NNHookFn fn, void *ctx)
{
    return add_everywhere(PRE, fn, ctx, __func__);
}
int nn_register_module_forward_hook(NNHookFn fn, void *ctx)
{
    return add_everywhere(AFTER, fn, ctx, __func__);
}
int nn_register_module_full_backward_pre_hook(NNHookFn fn, void *ctx)
{
    return add_everywhere(BACKWARD_PRE, fn, ctx, __func__);
}
int nn_register_module_full_backward_hook(NNHookFn fn, void *ctx)
{
    return add_everywhere(BACKWARD, fn, ctx, __func__);
}

int nn_remove_module_hook(int id)
{
    pthread_mutex_lock(&lock);
    const bool found = take_out(everywhere, &everywhere_count, id);
    any_everywhere = everywhere_count > 0;
    pthread_mutex_unlock(&lock);
    return found ? 0 : tensor_fail(TENSOR_EVALUE, "nn_remove_module_hook", "there is no hook %d", id);
}

bool nn_hooked(const Module *m) { return m->hook_count || any_everywhere; }

int nn_register_forward_pre_hook(Module *m, NNHookFn fn, void *ctx) { return add(m, PRE, fn, ctx, __func__); }
int nn_register_forward_hook(Module *m, NNHookFn fn, void *ctx) { return add(m, AFTER, fn, ctx, __func__); }
int nn_register_full_backward_pre_hook(Module *m, NNHookFn fn, void *ctx)
{
    return add(m, BACKWARD_PRE, fn, ctx, __func__);
}
int nn_register_full_backward_hook(Module *m, NNHookFn fn, void *ctx)
{
    return add(m, BACKWARD, fn, ctx, __func__);
}

int nn_remove_hook(Module *m, int id)
{
    if (nn_null(m, "nn_remove_hook")) return -1;
    if (take_out(m->hooks, &m->hook_count, id)) return 0;
    return tensor_fail(TENSOR_EVALUE, "nn_remove_hook", "%s has no hook %d", m->type, id);
}

int nn_hooks_copy(Module *to, const Module *from)
{
    for (int i = 0; i < from->hook_count; i++)
        if (add(to, from->hooks[i].kind, from->hooks[i].fn, from->hooks[i].ctx, "nn_clone") < 0) return -1;
    return 0;
}

void nn_hooks_free(Module *m)
{
    free(m->hooks);
    pthread_mutex_lock(&lock);
    Watched **at = &watched_modules, *w;
    while (*at && (*at)->module != m) at = &(*at)->next;
    w = *at;
    if (w) *at = w->next;
    pthread_mutex_unlock(&lock);
    free(w);
}

/* Hook i: first those of all modules, then m's; false: there are fewer. */
static bool hook_at(const Module *m, int i, Hook *h)
{
    pthread_mutex_lock(&lock);
    const int count = everywhere_count;
    if (i < count) *h = everywhere[i];
    pthread_mutex_unlock(&lock);
    if (i >= count && i - count < m->hook_count) *h = m->hooks[i - count];
    return i - count < m->hook_count;
}

/* A hook may add or remove hooks, so the list is read again each time. */
static int call_hooks(Module *m, int kind, NNCall *c)
{
    Hook h;
    for (int i = 0; hook_at(m, i, &h); i++) {
        if (h.kind != kind || !h.fn(m, c, h.ctx)) continue;
        if (!tensor_error_code())
            tensor_fail(TENSOR_EUSER, "hook", "a %s of %s failed", kind_text[kind], m->type);
        return -1;
    }
    return 0;
}

static bool has(const Module *m, int least)
{
    Hook h;
    for (int i = 0; hook_at(m, i, &h); i++)
        if (h.kind >= least) return true;
    return false;
}

/* ---- gradients ------------------------------------------------------------------------------- */

typedef struct Pass {
    int64_t module, forward;
    int64_t last;          /* the inputs have no such op: this one calls the hooks */
    int64_t at[NN_VALUES]; /* which value each operand is */
} Pass;

static int same_shapes(OpCall *c)
{
    for (int i = 0; i < op_inputs(c); i++)
        if (op_set_output(c, i, op_input_shape(c, i), op_input_dtype(c, i))) return -1;
    return 0;
}

static int pass_on(OpCall *c)
{
    for (int i = 0; i < op_inputs(c); i++)
        if (op_set_result(c, i, tensor_detach(op_input(c, i)))) return -1;
    return 0;
}

static void gradients(OpCall *c, const Pass *p, Tensor **to)
{
    for (int i = 0; i < op_inputs(c); i++) to[p->at[i]] = op_has_grad(c, i) ? op_grad(c, i) : NULL;
}

static int give(const OpCall *c, const Pass *p, Tensor *const *from, Tensor **dx)
{
    for (int i = 0; i < op_inputs(c); i++) dx[i] = from[p->at[i]];
    return 0;
}

static Kept **kept_at(const Kept *k)
{
    Kept **at = &kept;
    while (*at && *at != k) at = &(*at)->next;
    return at;
}

/* The sweep is over. */
static void forget(void *ctx)
{
    Kept *k = ctx, **at = kept_at(k);
    if (*at) *at = k->next;
    for (int i = 0; i < NN_VALUES; i++) tensor_release(k->grad[i]);
    free(k);
}

static int keep(int64_t forward, Tensor *const *grad)
{
    Kept *k = calloc(1, sizeof *k);
    if (!k) return tensor_fail(TENSOR_ENOMEM, "nn_register_full_backward_hook", "out of memory");
    if (tensor_queue_callback(forget, k)) return free(k), -1;
    k->forward = forward, k->next = kept, kept = k;
    for (int i = 0; i < NN_VALUES; i++) k->grad[i] = tensor_retain(grad[i]);
    return 0;
}

/* Moves what was kept of a forward to the open scope; false: nothing was. */
static bool take(int64_t forward, Tensor **grad)
{
    Kept *k = kept;
    while (k && k->forward != forward) k = k->next;
    if (!k) return false;
    *kept_at(k) = k->next;
    for (int i = 0; i < NN_VALUES; i++) {
        grad[i] = nn_borrow(k->grad[i]);
        tensor_release(k->grad[i]);
        k->grad[i] = NULL;
    }
    return true;
}

static int count_of(Tensor *const *value)
{
    int n = NN_VALUES;
    while (n > 0 && !value[n - 1]) n--;
    return n;
}

/* The hooks, which may set gradients of the values' shapes. */
static int call_gradient_hooks(OpCall *c, const Pass *p, Module *m, int kind, NNCall *call,
                               Tensor *const *grad)
{
    call->inputs = count_of(call->in), call->results = count_of(call->out);
    if (call_hooks(m, kind, call)) return -1;
    for (int i = 0; i < op_inputs(c); i++) {
        const Tensor *g = grad[p->at[i]];
        char a[64], b[64];
        if (g && !tensor_shape_equal(tensor_shape(g), op_input_shape(c, i)))
            return tensor_fail(TENSOR_ESHAPE, "hook", "a %s of %s set a gradient of shape %s: want %s",
                               kind_text[kind], m->type, nn_shape_text(tensor_shape(g), a),
                               nn_shape_text(op_input_shape(c, i), b));
    }
    return 0;
}

static int results_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)dy;
    const Pass *p = op_params(c);
    Module *m = module_of(p->module);
    NNCall call = { .results = 0 };
    gradients(c, p, call.out);
    if (m) {
        if (call_gradient_hooks(c, p, m, BACKWARD_PRE, &call, call.out)) return -1;
        if (p->last ? call_gradient_hooks(c, p, m, BACKWARD, &call, call.out) : keep(p->forward, call.out))
            return -1;
    }
    return give(c, p, call.out, dx);
}

static int inputs_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)dy;
    const Pass *p = op_params(c);
    Module *m = module_of(p->module);
    NNCall call = { .inputs = 0 };
    gradients(c, p, call.in);
    if (m && take(p->forward, call.out) && call_gradient_hooks(c, p, m, BACKWARD, &call, call.in)) return -1;
    return give(c, p, call.in, dx);
}

static const OpField pass_fields[] = { OP_REQUIRED(Pass, module, forward, last, at), { 0 } };
#define PASS(what)                                                                                     \
    {                                                                                                  \
        .name = "module_" #what, .summary = "x itself, for hooks on gradients", .arity = OP_ANY_ARITY, \
        .outputs = OP_ANY_ARITY, .params = sizeof(Pass), .fields = pass_fields, .shape = same_shapes,  \
        .forward = pass_on, .backward = what##_backward, .flags = OP_VIEW | OP_ANY_DEVICE              \
    }
static const TensorOp inputs_op = PASS(inputs), results_op = PASS(results);

/* Passes the values that have gradients through op; returns how many, or -1. */
static int wrap(const TensorOp *op, Tensor **value, Pass p)
{
    Tensor *from[NN_VALUES], *to[NN_VALUES];
    int n = 0;
    for (int i = 0; i < NN_VALUES; i++)
        if (value[i] && tensor_requires_grad(value[i])) p.at[n] = i, from[n++] = value[i];
    if (n && tensor_apply_all(op, from, n, &p, to, n) != n) return -1;
    for (int i = 0; i < n; i++) value[p.at[i]] = to[i];
    return n;
}

int nn_hooks_before(Module *m, NNCall *c, int64_t *id)
{
    static _Atomic int64_t forwards;
    if (call_hooks(m, PRE, c)) return -1;
    if (!c->in[0])
        return tensor_fail(TENSOR_ENULL, "hook", "a forward pre-hook of %s took its input away", m->type);
    if (!tensor_grad_enabled() || !has(m, BACKWARD_PRE)) return 0;
    const int64_t number = watch(m);
    if (!number) return tensor_fail(TENSOR_ENOMEM, "nn_register_module_full_backward_hook", "out of memory");
    *id = ++forwards;
    const int n = wrap(&inputs_op, c->in, (Pass){ .module = number, .forward = *id });
    if (n == 0) *id = -*id;
    return n < 0 ? -1 : 0;
}

int nn_hooks_after(Module *m, NNCall *c, int64_t id)
{
    if (call_hooks(m, AFTER, c)) return -1;
    if (!c->out[0])
        return tensor_fail(TENSOR_ENULL, "hook", "a forward hook of %s took its result away", m->type);
    if (!id || !tensor_grad_enabled()) return 0;
    const Pass p = { .module = watch(m), .forward = id < 0 ? -id : id, .last = id < 0 };
    return wrap(&results_op, c->out, p) < 0 ? -1 : 0;
}
