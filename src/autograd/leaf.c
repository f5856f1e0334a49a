/* leaf.c - a tensor's gradient state: requires_grad, .grad, hooks, detach. */
#include "tensor/core.h"
#include "graph_ops.h"
#include "tape.h"

Tensor *tensor_requires_grad_(Tensor *x, bool requires_grad)
{
    if (check_null(x, "tensor_requires_grad_", 1)) return NULL;
    if (requires_grad && !dtype_is_float(x->dtype))
        return fail(TENSOR_EDTYPE, "tensor_requires_grad_", "%s %s: only floating tensors have gradients",
                    tensor_dtype_name((TensorDtype)x->dtype), S(x)),
               NULL;
    if (scope_room() || view_refresh(x)) return NULL;
    if (x->entry)
        return requires_grad ? borrow(x)
                             : (fail(TENSOR_EGRAD, "tensor_requires_grad_",
                                     "%s is the result of %s: only leaves can stop requiring a gradient; use "
                                     "tensor_detach",
                                     S(x), x->entry->op->name),
                                NULL);
    x->flags = (uint8_t)(requires_grad ? x->flags | FLAG_REQUIRES_GRAD : x->flags & ~FLAG_REQUIRES_GRAD);
    return borrow(x);
}

/* A view whose base was written since has the base's history. */
bool tensor_requires_grad(const Tensor *x)
{
    return !check_null(x, "tensor_requires_grad", 1) && on_graph(follows_base(x) ? x->base : x);
}

bool tensor_is_leaf(const Tensor *x)
{
    return !check_null(x, "tensor_is_leaf", 1) && !(follows_base(x) ? on_graph(x->base) : x->entry != NULL);
}

Tensor *tensor_grad(const Tensor *x)
{
    if (check_null(x, "tensor_grad", 1)) return NULL;
    pthread_mutex_lock(&leaf_lock);
    Tensor *grad = tensor_retain(x->grad); /* borrowing may record an error, so not under the lock */
    pthread_mutex_unlock(&leaf_lock);
    return own(grad);
}

int tensor_set_grad(Tensor *x, Tensor *grad)
{
    if (check_null(x, "tensor_set_grad", 1)) return -1;
    if (grad && check_null(grad, "tensor_set_grad", 2)) return -1;
    if (grad == x) return fail(TENSOR_EVALUE, "tensor_set_grad", "%s cannot be its own gradient", S(x));
    if (grad && !shape_equal(shape_of(grad), shape_of(x)))
        return fail(TENSOR_ESHAPE, "tensor_set_grad", "a gradient %s for %s", S(grad), S(x));
    if (grad && grad->dtype != x->dtype)
        return fail(TENSOR_EDTYPE, "tensor_set_grad", "a gradient of %s for %s",
                    tensor_dtype_name((TensorDtype)grad->dtype), tensor_dtype_name((TensorDtype)x->dtype));
    if (grad && grad->place != x->place)
        return fail(TENSOR_EDEVICE, "tensor_set_grad", "a gradient on %s for a tensor on %s",
                    grad->place->name, x->place->name);
    if (unlikely(graph_serial) && graph_keep_grad(x)) return -1;
    TensorScope scope = tensor_scope_open();
    if (grad && overlaps_itself(grad) &&
        !(grad = graph_ops.clone(grad))) { /* later gradients are added in place */
        tensor_scope_close(scope);
        return -1;
    }
    pthread_mutex_lock(&leaf_lock);
    Tensor *old = x->grad;
    x->grad = lend(grad);
    pthread_mutex_unlock(&leaf_lock);
    take_back(old);
    tensor_scope_close(scope);
    return 0;
}

static int check_new_data(Tensor *x, Tensor *data)
{
    static const char op[] = "tensor_set_data";
    if (check_null(x, op, 1) || check_null(data, op, 2)) return -1;
    const char *had = tensor_dtype_name((TensorDtype)x->dtype),
               *given = tensor_dtype_name((TensorDtype)data->dtype);
    if (history_of(x) < 0) return -1;
    if (x->entry)
        return fail(TENSOR_EGRAD, op, "%s is the result of an op: only the data of a leaf can be replaced",
                    S(x));
    if (!shape_equal(shape_of(x), shape_of(data)))
        return fail(TENSOR_ESHAPE, op, "%s for a tensor %s", S(data), S(x));
    if (x->flags & FLAG_REQUIRES_GRAD && !dtype_is_float(data->dtype))
        return fail(TENSOR_EDTYPE, op, "%s for a tensor that requires a gradient", given);
    if (x->grad && (x->grad->dtype != data->dtype || x->grad->place != data->place))
        return fail(TENSOR_EGRAD, op,
                    "%s on %s for a tensor %s on %s that has a gradient: replace that first", given,
                    data->place->name, had, x->place->name);
    return 0;
}

int tensor_set_data(Tensor *x, Tensor *data)
{
    if (check_new_data(x, data)) return -1;
    Storage *old = x->storage;
    storage_retain(data->storage);
    x->storage = data->storage, x->data = data->data, x->dtype = data->dtype, x->place = data->place;
    memcpy(x->stride, data->stride, x->ndim * sizeof *x->stride);
    x->flags = (uint8_t)((x->flags & ~FLAG_CONTIGUOUS) | (data->flags & FLAG_CONTIGUOUS));
    x->epoch++; /* its views notice that they no longer are */
    Tensor *base = x->base;
    x->base = NULL;
    storage_release(old);
    take_back(base);
    return 0;
}

int tensor_retain_grad(Tensor *x)
{
    int recorded = check_null(x, "tensor_retain_grad", 1) ? -1 : history_of(x);
    if (recorded < 0) return -1;
    if (!recorded) return fail(TENSOR_EGRAD, "tensor_retain_grad", "%s requires no gradient", S(x));
    if (x->entry && !entry_is_ours(x->entry))
        return fail(TENSOR_EGRAD, "tensor_retain_grad", "%s is part of another thread's graph", S(x));
    x->flags |= FLAG_RETAIN_GRAD;
    if (x->entry) x->entry->result[x->slot].retain = true;
    return 0;
}

Tensor *tensor_detach_(Tensor *x)
{
    Entry *old = x ? x->entry : NULL;
    if (check_null(x, "tensor_detach_", 1)) return NULL;
    if (x->base && (old || on_graph(x->base)))
        return fail(TENSOR_EGRAD, "tensor_detach_", "%s is a view of %s: use tensor_detach", S(x),
                    S(x->base)),
               NULL;
    if (old && !entry_is_ours(old))
        return fail(TENSOR_EGRAD, "tensor_detach_", "%s is part of another thread's graph", S(x)), NULL;
    if (scope_room()) return NULL;
    x->entry = NULL;
    if (old) entry_release_result(old, x);
    x->flags &= (uint8_t) ~(FLAG_REQUIRES_GRAD | FLAG_RETAIN_GRAD);
    return borrow(x);
}

Tensor *tensor_detach(Tensor *x)
{
    if (check_null(x, "tensor_detach", 1)) return NULL;
    return own(new_view(x, x->ndim, x->shape, x->stride, 0));
}

/* ---- hooks: of a result they are its entry's, of a leaf its own ------------------------------ */

static atomic_int next_id; /* leaves are shared between threads: one numbering for all */

static Hook **hook_list(Tensor *x) { return x->entry ? &x->entry->result[x->slot].hooks : &x->hooks; }

static int add_hook(Tensor *x, const char *op, Hook like)
{
    if (x->entry && !entry_is_ours(x->entry))
        return fail(TENSOR_EGRAD, op, "%s is part of another thread's graph", S(x));
    Hook *hook = tg_alloc(sizeof *hook), **end = hook_list(x);
    if (!hook) return fail_memory(op);
    *hook = like;
    hook->id = atomic_fetch_add(&next_id, 1) + 1, hook->next = NULL;
    while (*end) end = &(*end)->next;
    *end = hook;
    return hook->id;
}

int tensor_register_hook(Tensor *x, Tensor *(*fn)(Tensor *, void *), void *ctx)
{
    if (check_null(x, "tensor_register_hook", 1)) return -1;
    if (!fn) return fail(TENSOR_ENULL, "tensor_register_hook", "the function is NULL");
    int recorded = history_of(x);
    if (recorded < 0) return -1;
    if (!recorded) return fail(TENSOR_EGRAD, "tensor_register_hook", "%s requires no gradient", S(x));
    return add_hook(x, "tensor_register_hook", (Hook){ .fn = fn, .ctx = ctx });
}

int tensor_register_post_accumulate_grad_hook(Tensor *x, void (*fn)(Tensor *, void *), void *ctx)
{
    if (check_null(x, "tensor_register_post_accumulate_grad_hook", 1)) return -1;
    if (!fn) return fail(TENSOR_ENULL, "tensor_register_post_accumulate_grad_hook", "the function is NULL");
    int recorded = history_of(x);
    if (recorded < 0) return -1;
    if (x->entry || !recorded)
        return fail(TENSOR_EGRAD, "tensor_register_post_accumulate_grad_hook",
                    "%s is no leaf that requires a gradient", S(x));
    return add_hook(x, "tensor_register_post_accumulate_grad_hook", (Hook){ .after = fn, .ctx = ctx });
}

int tensor_remove_hook(Tensor *x, int id)
{
    if (check_null(x, "tensor_remove_hook", 1)) return -1;
    for (Hook **h = hook_list(x); *h; h = &(*h)->next)
        if ((*h)->id == id) {
            Hook *gone = *h;
            *h = gone->next;
            tg_free(gone, sizeof *gone);
            return 0;
        }
    return fail(TENSOR_EVALUE, "tensor_remove_hook", "no hook %d on %s", id, S(x));
}

/* A hook may remove itself and others, and register new ones, which wait for the next sweep.  So the next
 * hook is found by its id; ids increase along the list. */
static Hook *hook_after(Hook *hooks, int id)
{
    while (hooks && hooks->id <= id) hooks = hooks->next;
    return hooks;
}

static int last_id(const Hook *hooks)
{
    int id = 0;
    for (; hooks; hooks = hooks->next) id = hooks->id;
    return id;
}

int run_hooks(const char *name, Hook *const *hooks, Tensor **grad)
{
    int last = last_id(*hooks), id;
    for (Hook *h = *hooks; h && (id = h->id) <= last; h = hook_after(*hooks, id)) {
        if (!h->fn) continue;
        bool failed_before = tensor_error_code() != TENSOR_OK;
        Tensor *replaced = h->fn(*grad, h->ctx);
        if (!failed_before && tensor_error_code()) return -1;
        if (!replaced || replaced == *grad) continue;
        if (!shape_equal(shape_of(replaced), shape_of(*grad)) || replaced->dtype != (*grad)->dtype)
            return fail(TENSOR_ESHAPE, name, "a hook turned the gradient %s into %s %s", S(*grad),
                        tensor_dtype_name((TensorDtype)replaced->dtype), S(replaced));
        lend(replaced);
        take_back(*grad);
        *grad = replaced;
    }
    return 0;
}

void run_after_hooks(Tensor *leaf)
{
    int last = last_id(leaf->hooks), id;
    for (Hook *h = leaf->hooks; h && (id = h->id) <= last; h = hook_after(leaf->hooks, id))
        if (h->after) h->after(leaf, h->ctx);
}

/* ---- after a sweep --------------------------------------------------------------------------- */

typedef struct Callback {
    void (*fn)(void *ctx);
    void *ctx;
    struct Callback *next;
} Callback;

static _Thread_local AfterSweep *after_sweep;

void after_sweep_begin(AfterSweep *a)
{
    *a = (AfterSweep){ NULL, &a->first, after_sweep };
    after_sweep = a;
}

/* A callback may begin another sweep; queueing outside of a sweep is refused. */
void after_sweep_end(AfterSweep *a)
{
    after_sweep = a->outer;
    for (Callback *c = a->first, *next; c; c = next) {
        next = c->next;
        c->fn(c->ctx);
        tg_free(c, sizeof *c);
    }
}

int tensor_queue_callback(void (*fn)(void *ctx), void *ctx)
{
    if (!fn) return fail(TENSOR_ENULL, "tensor_queue_callback", "the function is NULL");
    if (!after_sweep) return fail(TENSOR_EGRAD, "tensor_queue_callback", "no backward is running here");
    Callback *c = tg_calloc(sizeof *c);
    if (!c) return fail_memory("tensor_queue_callback");
    *c = (Callback){ fn, ctx, NULL };
    *after_sweep->end = c, after_sweep->end = &c->next;
    return 0;
}
