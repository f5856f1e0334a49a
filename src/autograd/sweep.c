/* sweep.c - backward: one pass down the tape.
 *
 *  - An entry runs when the pass reaches it and a gradient has arrived at one of its results: all its
 * consumers, having higher indices, ran before.
 *  - Gradients of leaves stay in the sweep's table and reach .grad at the end, all or none.
 *  - A gradient accumulates in place only if nothing else refers to the tensor or its storage.
 *  - tensor_gradients runs only entries that lie on a path to a wanted input, and collects instead of
 * accumulating. */
#include "graph_ops.h"
#include "host.h"
#include "modes.h"
#include "slots.h"
#include "tape.h"
#include "wanted.h"

const TensorBackwardArgs tensor_backward_defaults = { TENSOR_BACKWARD_DEFAULTS };
const TensorGradientsArgs tensor_gradients_defaults = { TENSOR_GRADIENTS_DEFAULTS };
const TensorBackwardManyArgs tensor_backward_many_defaults = { TENSOR_BACKWARD_MANY_DEFAULTS };
const TensorGradientsManyArgs tensor_gradients_many_defaults = { TENSOR_GRADIENTS_MANY_DEFAULTS };

typedef struct Undo {
    Tensor *tensor, *old;
} Undo; /* the .grad of results before the sweep, restored if it fails */

typedef struct Sweep {
    const char *name;
    uint64_t serial;
    Tape *tape;
    bool create_graph, retain_graph;
    int64_t top, pending; /* highest index with a gradient; entries that wait */
    Slot *slots;          /* leaves in the order they were met */
    int64_t count, capacity;
    int64_t *hash, buckets; /* leaf -> slot + 1 */
    Undo *undo;
    int64_t undos, undo_capacity;
    Tensor *const *inputs; /* those that gradients are wanted of, if not of all leaves; */
    Tensor **found;        /* where tensor_gradients puts them; NULL: into .grad */
    int input_count;
    Wanted *wanted; /* the inputs, sorted */
} Sweep;

pthread_mutex_t leaf_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the table of leaves --------------------------------------------------------------------- */

static uint64_t hash_of(const Tensor *x) { return ((uintptr_t)x >> 6) * 0x9E3779B97F4A7C15u >> 20; }

static int rehash(Sweep *s)
{
    int64_t buckets = s->buckets ? 2 * s->buckets : 64;
    int64_t *hash = tg_calloc((size_t)buckets * sizeof *hash);
    if (!hash) return fail_memory(s->name);
    for (int64_t i = 0; i < s->count; i++) {
        uint64_t at = hash_of(s->slots[i].leaf) & (uint64_t)(buckets - 1);
        while (hash[at]) at = (at + 1) & (uint64_t)(buckets - 1);
        hash[at] = i + 1;
    }
    tg_free(s->hash, (size_t)s->buckets * sizeof *hash);
    s->hash = hash, s->buckets = buckets;
    return 0;
}

static Slot *find_slot(Sweep *s, const Tensor *leaf)
{
    if (!s->buckets) return NULL;
    for (uint64_t at = hash_of(leaf) & (uint64_t)(s->buckets - 1); s->hash[at];
         at = (at + 1) & (uint64_t)(s->buckets - 1))
        if (s->slots[s->hash[at] - 1].leaf == leaf) return &s->slots[s->hash[at] - 1];
    return NULL;
}

static Slot *leaf_slot(Sweep *s, Tensor *leaf)
{
    Slot *found = find_slot(s, leaf);
    if (found) return found;
    if (2 * (s->count + 1) > s->buckets && rehash(s)) return NULL;
    if (s->count == s->capacity) {
        int64_t more = s->capacity ? 2 * s->capacity : 32;
        Slot *grown = tg_grow(s->slots, (size_t)s->capacity * sizeof *grown, (size_t)more * sizeof *grown);
        if (!grown) return fail_memory(s->name), NULL;
        s->slots = grown, s->capacity = more;
    }
    uint64_t at = hash_of(leaf) & (uint64_t)(s->buckets - 1);
    while (s->hash[at]) at = (at + 1) & (uint64_t)(s->buckets - 1);
    s->slots[s->count] = (Slot){ .leaf = leaf };
    hold_leaf(leaf);
    s->hash[at] = ++s->count;
    return &s->slots[s->count - 1];
}

/* ---- adding gradients ------------------------------------------------------------------------ */

/* *sum += g.  The first is kept as it is. */
static int add_gradient(Sweep *s, Tensor **sum, Tensor *g)
{
    if (!*sum) {
        *sum = lend(g);
        return 0;
    }
    if (!s->create_graph && !(*sum)->entry && ours_alone(*sum) && (*sum)->dtype == g->dtype)
        return graph_ops.add_into(*sum, g);
    Tensor *more = graph_ops.add(*sum, g);
    if (!more) return -1;
    lend(more);
    take_back(*sum);
    *sum = more;
    return 0;
}

/* Fits a gradient to its input: sums broadcast dimensions, casts to its dtype. */
static Tensor *fit(Sweep *s, Tensor *g, TensorShape shape, int dtype)
{
    if (!shape_equal(shape_of(g), shape))
        g = s->create_graph ? graph_ops.sum_to(g, shape) : own(raw_sum_to(g, shape));
    if (!g || g->dtype == dtype) return g;
    return s->create_graph ? graph_ops.to(g, (TensorDtype)dtype) : own(raw_cast(g, dtype));
}

static int give_entry(Sweep *s, Entry *e, int slot, Tensor *g)
{
    if (e->sweep != s->serial) {
        for (int i = 0; i < e->outputs; i++)
            if (e->result[i].grad)
                return fail_entry(TENSOR_EGRAD, e, "a sweep inside another sweep reached the same graph");
        e->sweep = s->serial;
        s->pending++;
        if (e->index > s->top) s->top = e->index;
    }
    return add_gradient(s, &e->result[slot].grad, g);
}

static int give_leaf(Sweep *s, Tensor *leaf, Tensor *g)
{
    Slot *slot = leaf_slot(s, leaf);
    if (unlikely(g->dtype != leaf->dtype))
        g = graph_ops.to(g, (TensorDtype)leaf->dtype); /* tensor_set_data */
    if (g && unlikely(g->place != leaf->place)) g = graph_ops.to_device(g, leaf->place->name);
    return slot && g ? add_gradient(s, &slot->grad, g) : -1;
}

/* ---- running one entry ----------------------------------------------------------------------- */

/* .grad of a result that asked for it; the old one is kept until the sweep has succeeded.  A copy: g may be
 * the caller's cotangent, or serve another result, and writing into .grad must reach neither. */
static int fill_retained(Sweep *s, Tensor *result, Tensor *g)
{
    if (s->undos == s->undo_capacity) {
        int64_t more = s->undo_capacity ? 2 * s->undo_capacity : 8;
        Undo *grown =
            tg_grow(s->undo, (size_t)s->undo_capacity * sizeof *grown, (size_t)more * sizeof *grown);
        if (!grown) return fail_memory(s->name);
        s->undo = grown, s->undo_capacity = more;
    }
    Tensor *sum = result->grad ? graph_ops.add(result->grad, g) : graph_ops.clone(g);
    if (!sum) return -1;
    s->undo[s->undos++] = (Undo){ lend(result), result->grad };
    result->grad = lend(sum);
    return 0;
}

/* ---- running one entry ----------------------------------------------------------------------- */

static bool leads_on(const Sweep *s, const Edge *edge)
{
    if (!edge->from && !edge->leaf) return false;
    if (!s->wanted) return true;
    if (edge->leaf) return wanted_find(s->wanted, s->input_count, edge->leaf, 0);
    return edge->from->needed == s->serial || wanted_find(s->wanted, s->input_count, edge->from, edge->slot);
}

/* May a gradient of this shape be summed to that of its input? */
static bool fits(const Tensor *dx, const Meta *m)
{
    int extra = dx->ndim - m->ndim;
    if (extra < 0) return false;
    for (int d = 0; d < m->ndim; d++)
        if (m->shape[d] != dx->shape[d + extra] && m->shape[d] != 1) return false;
    return true;
}

/* The gradient of a cast may stay in the dtype before the cast if nobody sees it: the cast's backward
 * would only widen it again. */
static bool stays_wide(const Sweep *s, const Edge *edge, const Tensor *dx)
{
    const Entry *from = edge->from;
    if (!from || from->op != graph_ops.cast || s->create_graph || dx->dtype != from->meta[0].dtype)
        return false;
    const Result *r = &from->result[edge->slot];
    return !r->hooks && !r->retain && !(s->wanted && wanted_find(s->wanted, s->input_count, from, -1));
}

static int deliver(Sweep *s, Entry *e, int i, Tensor *dx)
{
    const Meta *m = &e->meta[i];
    if (unlikely(!fits(dx, m)))
        return fail_entry(TENSOR_ESHAPE, e, "backward made a gradient of shape %s for operand %d of shape %s",
                          S(dx), i + 1, shape_text((TensorShape){ m->ndim, m->shape }));
    if (unlikely(dx->place != m->place)) dx = graph_ops.to_device(dx, m->place->name);
    const Edge *edge = &e->edge[i];
    const int dtype = dx && dx->dtype != m->dtype && stays_wide(s, edge, dx) ? dx->dtype : m->dtype;
    if (dx) dx = fit(s, dx, (TensorShape){ m->ndim, m->shape }, dtype);
    if (!dx) return -1;
    return edge->from ? give_entry(s, edge->from, edge->slot, dx) : give_leaf(s, edge->leaf, dx);
}

static int call_backward(Sweep *s, Entry *e)
{
    Tensor *grads[CALL_MAX_OUTPUTS], *dx[OP_MAX_INPUTS];
    bool wants[OP_MAX_INPUTS], any = false;
    for (int i = 0; i < e->inputs; i++) {
        dx[i] = NULL;
        wants[i] = leads_on(s, &e->edge[i]);
        any |= wants[i];
    }
    if (!any) return 0;
    if (!e->op->backward) return fail_entry(TENSOR_EGRAD, e, "has no backward");
    OpCall c;
    call_begin(&c, e->op, NULL, e->inputs, e->params, e->site);
    c.outputs = e->outputs, c.backward = true, c.entry = e, c.wants = wants, c.grads = grads, c.dx = dx;
    c.frees = !s->retain_graph;
    for (int i = 0; i < e->outputs; i++) grads[i] = e->result[i].grad;
    Packed *packed[MOST_SAVES] = { NULL };
    ProfileSpan span;
    const bool measured = modes_on() && profile_on();
    if (measured) profile_enter(&span, e->op->name, PROFILE_BACKWARD, e->range);
    int status = saved_begin(e, packed) ? -1 : backward_somewhere(&c);
    saved_end(e, packed);
    if (measured) profile_leave(&span);
    for (int i = 0; !status && i < e->inputs; i++) {
        if (!wants[i] || !dx[i]) continue;
        if (unlikely(anomaly_on)) status = anomaly_check_gradient(e, i, dx[i], grads);
        if (!status) status = deliver(s, e, i, dx[i]);
    }
    if (status && !tensor_error_code()) fail_entry(TENSOR_EUSER, e, "backward failed without saying why");
    if (status && c.spent) entry_free_saved(e); /* else a second sweep would read what was overwritten */
    return status;
}

/* Takes the gradients out of an entry, and stores those that tensor_gradients wants. */
static void drop_gradients(Entry *e)
{
    for (int i = 0; i < e->outputs; i++) {
        take_back(e->result[i].grad);
        e->result[i].grad = NULL;
    }
    e->sweep = 0;
}

/* An error that arose here gets the name of the module that recorded e. */
static void note_failure(const Entry *e)
{
    char text[600];
    if (!e->note) return;
    snprintf(text, sizeof text, "in %s", e->note);
    if (!strstr(tensor_error(), text)) tensor_error_note("%s", text);
}

static int run_entry(Sweep *s, Entry *e)
{
    const bool failed_before = tensor_error_code() != TENSOR_OK;
    const char *note = tape_note;
    TensorScope scope = tensor_scope_open();
    tape_note = e->note;
    e->refs++; /* hooks may release the last result */
    int status = scope_failed(scope) ? -1 : 0;
    for (int i = 0; i < e->outputs && !status; i++) {
        Result *r = &e->result[i];
        if (!r->grad) continue;
        if (r->hooks) status = run_hooks(s->name, &r->hooks, &r->grad);
        const Wanted *w = s->wanted && !status ? wanted_find(s->wanted, s->input_count, e, i) : NULL;
        const bool keep = !status && !s->found && (s->wanted ? w != NULL : r->retain);
        Tensor *living = keep ? entry_living_result(e, i) : NULL;
        if (living) status = own_lent(living) ? fill_retained(s, living, r->grad) : -1;
        for (; s->found && w && w->at == e && w->slot == i; w++) s->found[w->index] = lend(r->grad);
    }
    if (!status && (!s->wanted || e->needed == s->serial)) {
        status = call_backward(s, e);
        if (!status && !s->retain_graph) entry_free_saved(e);
    }
    tape_note = note;
    if (status && !failed_before && tensor_error()) note_failure(e);
    drop_gradients(e);
    s->pending--;
    entry_unref(e);
    tensor_scope_close(scope);
    return status;
}

static int pass(Sweep *s)
{
    for (int64_t i = s->top; i >= 0 && s->pending > 0; i--) {
        Entry *e = i < s->tape->count ? s->tape->at[i] : NULL;
        if (e && e->sweep == s->serial && run_entry(s, e)) return -1;
    }
    return 0;
}

/* ---- the end: leaves ------------------------------------------------------------------------- */

static bool may_keep(const Tensor *g, const Tensor *leaf)
{
    return ours_alone(g) && g->dtype == leaf->dtype && g->place == leaf->place;
}

/* All that can fail: hooks, copies, sums on the graph. */
static int prepare_leaf(Sweep *s, Slot *slot)
{
    Tensor *leaf = slot->leaf;
    TensorScope scope = tensor_scope_open();
    int status = scope_failed(scope) ? -1 : leaf->hooks ? run_hooks(s->name, &leaf->hooks, &slot->grad) : 0;
    Tensor *next = NULL;
    if (!status && s->create_graph) {
        next = leaf->grad               ? graph_ops.add(leaf->grad, slot->grad)
               : ours_alone(slot->grad) ? slot->grad
                                        : graph_ops.clone(slot->grad);
    } else if (!status && (slot->grad->entry || !may_keep(slot->grad, leaf))) {
        next = own(new_tensor(shape_of(leaf), leaf->dtype, leaf->place));
        if (next && raw_copy(next, slot->grad)) next = NULL;
    } else {
        next = slot->grad;
    }
    if (!next) status = -1;
    if (!status && next != slot->grad) {
        lend(next);
        take_back(slot->grad);
        slot->grad = next;
    }
    tensor_scope_close(scope);
    return status;
}

static int finish_leaves(Sweep *s)
{
    for (int64_t i = 0; i < s->count; i++) s->slots[i].alive = lend_living(s->slots[i].leaf) != NULL;
    for (int64_t i = 0; i < s->count; i++)
        if (s->slots[i].alive && prepare_leaf(s, &s->slots[i])) return -1;
    if (commit_slots(s->name, s->slots, s->count, s->create_graph)) return -1;
    for (int64_t i = 0; i < s->count; i++)
        if (s->slots[i].alive) run_after_hooks(s->slots[i].leaf);
    return 0;
}

static int finish_wanted(Sweep *s)
{
    for (int64_t i = 0; i < s->count; i++) {
        TensorScope scope = tensor_scope_open();
        int status =
            scope_failed(scope) ? -1 : run_hooks(s->name, &s->slots[i].leaf->hooks, &s->slots[i].grad);
        tensor_scope_close(scope);
        if (status) return -1;
    }
    for (int i = 0; i < s->input_count; i++) {
        Slot *slot = s->inputs[i]->entry ? NULL : find_slot(s, s->inputs[i]);
        if (slot) s->found[i] = lend(slot->grad);
    }
    return 0;
}

static void sweep_free(Sweep *s, int status)
{
    for (int64_t i = s->top; status && i >= 0 && i < s->tape->count;
         i--) /* what a failed sweep left behind */
        if (s->tape->at[i] && s->tape->at[i]->sweep == s->serial) drop_gradients(s->tape->at[i]);
    for (int64_t i = s->undos - 1; i >= 0; i--) {
        Undo *u = &s->undo[i];
        if (status) {
            take_back(u->tensor->grad);
            u->tensor->grad = u->old;
        } else {
            take_back(u->old);
        }
        take_back(u->tensor);
    }
    for (int64_t i = 0; i < s->count; i++) {
        take_back(s->slots[i].grad);
        if (s->slots[i].alive) take_back(s->slots[i].leaf);
        drop_leaf(s->slots[i].leaf);
    }
    tg_free(s->slots, (size_t)s->capacity * sizeof *s->slots);
    tg_free(s->hash, (size_t)s->buckets * sizeof *s->hash);
    tg_free(s->undo, (size_t)s->undo_capacity * sizeof *s->undo);
}

/* ---- the beginning: roots -------------------------------------------------------------------- */

static int check_root(const Sweep *s, Tensor *y, const Tensor *g, int i)
{
    if (check_null(y, s->name, i + 1) || (g && check_null(g, s->name, i + 1))) return -1;
    int recorded = history_of(y);
    if (recorded < 0) return -1;
    if (!recorded)
        return fail(TENSOR_EGRAD, s->name,
                    "%s requires no gradient and is no result of one that does: it has no graph", S(y));
    if (y->entry && !entry_is_ours(y->entry))
        return fail(TENSOR_EGRAD, s->name, "%s was made by another thread", S(y));
    if (!g && y->numel != 1)
        return fail(TENSOR_EGRAD, s->name,
                    "%s has %lld elements: a gradient for it must be given, or reduce it to one", S(y),
                    (long long)y->numel);
    if (g && !shape_equal(shape_of(g), shape_of(y)))
        return fail(TENSOR_ESHAPE, s->name, "the gradient given is %s for a tensor %s", S(g), S(y));
    if (g && g->place != y->place)
        return fail(TENSOR_EDEVICE, s->name, "the gradient given is on %s, the tensor on %s", g->place->name,
                    y->place->name);
    if (g && !dtype_is_float(g->dtype))
        return fail(TENSOR_EDTYPE, s->name, "the gradient given is %s",
                    tensor_dtype_name((TensorDtype)g->dtype));
    return 0;
}

static int give_root(Sweep *s, Tensor *y, Tensor *g)
{
    if (!g) {
        g = own(new_tensor(shape_of(y), y->dtype, y->place));
        if (!g || raw_fill(g, 1)) return -1;
    } else if (g->dtype != y->dtype && !(g = graph_ops.to(g, (TensorDtype)y->dtype))) {
        return -1;
    }
    if (y->entry) return give_entry(s, y->entry, y->slot, g);
    return s->wanted && !wanted_find(s->wanted, s->input_count, y, 0) ? 0 : give_leaf(s, y, g);
}

/* Marks the entries on a path from a wanted input up to the roots. */
static void mark_needed(Sweep *s, int64_t top)
{
    for (int64_t i = 0; i <= top && i < s->tape->count; i++) {
        Entry *e = s->tape->at[i];
        for (int k = 0; e && k < e->inputs; k++)
            if (leads_on(s, &e->edge[k])) {
                e->needed = s->serial;
                break;
            }
    }
}

static int sweep(Sweep *s, TensorList outputs, TensorList gradients)
{
    Tensor *const *roots = outputs.item, *const *grads = gradients.count ? gradients.item : NULL;
    const int n = outputs.count;
    Tape none = { 0 };
    if (gradients.count && (gradients.count != n || !grads))
        return fail(TENSOR_EVALUE, s->name, "%d gradients are given for %d tensors", gradients.count, n);
    s->tape = my_tape ? my_tape : &none; /* if all are leaves there is no tape */
    s->serial = ++s->tape->sweep_serial, s->top = -1;
    s->retain_graph |= s->create_graph;
    for (int i = 0; i < n; i++)
        if (check_root(s, roots[i], grads ? grads[i] : NULL, i)) return -1;
    TensorScope scope = tensor_scope_open();
    if (scope_failed(scope)) return -1;
    const bool was = tensor_set_grad_enabled(s->create_graph), autocast = autocast_switch(false);
    AfterSweep after;
    after_sweep_begin(&after);
    s->tape->sweeps++;
    int status = 0;
    int64_t top = -1;
    for (int i = 0; i < n; i++)
        if (roots[i]->entry && roots[i]->entry->index > top) top = roots[i]->entry->index;
    if (s->wanted) mark_needed(s, top);
    for (int i = 0; i < n && !status; i++) status = give_root(s, roots[i], grads ? grads[i] : NULL);
    if (!status) status = pass(s);
    if (!status) status = s->found ? finish_wanted(s) : finish_leaves(s);
    s->tape->sweeps--;
    sweep_free(s, status);
    tensor_set_grad_enabled(was);
    autocast_switch(autocast);
    after_sweep_end(&after);
    tensor_scope_close(scope);
    return status;
}

/* ---- public ---------------------------------------------------------------------------------- */

static int check_wanted(const char *name, Tensor *const *inputs, int m)
{
    for (int i = 0; i < m; i++) {
        if (check_null(inputs[i], name, i + 1)) return -1;
        int recorded = history_of(inputs[i]);
        if (recorded < 0) return -1;
        if (!recorded)
            return fail(TENSOR_EGRAD, name, "input %d %s requires no gradient", i + 1, S(inputs[i]));
    }
    return 0;
}

static int backward_of(const char *name, const TensorBackwardManyArgs *a)
{
    const TensorList in = a->inputs;
    Sweep s = { .name = name,
                .retain_graph = a->retain_graph,
                .create_graph = a->create_graph,
                .inputs = in.item,
                .input_count = in.count };
    if (a->tensors.count < 1 || !a->tensors.item) return fail(TENSOR_EVALUE, name, "no tensor is given");
    if (in.count < 0 || (in.count > 0 && !in.item)) return fail(TENSOR_EVALUE, name, "no inputs are given");
    if (check_wanted(name, in.item, in.count)) return -1;
    if (in.count && !(s.wanted = wanted_sort(in.item, in.count))) return fail_memory(name);
    const int status = sweep(&s, a->tensors, a->gradients);
    tg_free(s.wanted, in.count ? wanted_bytes(in.count) : 0);
    return status;
}

int tensor_backward_many_args(TensorBackwardManyArgs a) { return backward_of("tensor_backward_many", &a); }

int tensor_backward_args(TensorBackwardArgs a)
{
    const TensorBackwardManyArgs one = {
        { 1, &a.tensor }, { 1, &a.gradient }, a.retain_graph, a.create_graph, a.inputs
    };
    return backward_of("tensor_backward", &one);
}

static int gradients_of(const char *name, const TensorGradientsManyArgs *a)
{
    Sweep s = { .name = name, .retain_graph = a->retain_graph, .create_graph = a->create_graph };
    const int m = a->inputs.count;
    Tensor *const *inputs = a->inputs.item, **grads = a->grads;
    s.inputs = inputs, s.found = grads, s.input_count = m;
    if (a->outputs.count < 1 || m < 1 || !a->outputs.item || !inputs || !grads)
        return fail(TENSOR_EVALUE, s.name, "no output or no input is given");
    for (int i = 0; i < m; i++) grads[i] = NULL;
    if (check_wanted(s.name, inputs, m)) return -1;
    if (!(s.wanted = wanted_sort(inputs, m))) return fail_memory(s.name);
    int status = sweep(&s, a->outputs, a->grad_outputs);
    tg_free(s.wanted, wanted_bytes(m));
    for (int i = 0; i < m && !status; i++) {
        if (grads[i]) continue;
        if (a->materialize_grads) status = (grads[i] = lend(tensor_zeros_like(inputs[i]))) ? 0 : -1;
        else if (!a->allow_unused)
            status = fail(TENSOR_EGRAD, s.name,
                          "input %d %s does not reach the output: .allow_unused = true gives NULL for it",
                          i + 1, S(inputs[i]));
    }
    for (int i = 0; i < m; i++) {
        if (status) take_back(grads[i]), grads[i] = NULL;
        else if (grads[i] && !own_lent(grads[i])) grads[i] = NULL, status = -1;
    }
    return status;
}

int tensor_gradients_many_args(TensorGradientsManyArgs a)
{
    return gradients_of("tensor_gradients_many", &a);
}

Tensor *tensor_gradients_args(TensorGradientsArgs a)
{
    Tensor *grad = NULL;
    const TensorGradientsManyArgs one = { { 1, &a.output },      { 1, &a.input },    &grad,
                                          { 1, &a.grad_output }, a.retain_graph,     a.create_graph,
                                          a.allow_unused,        a.materialize_grads };
    return gradients_of("tensor_gradients", &one) ? NULL : grad;
}
