/* tape.c - the tape: recorded ops, in the order of computation.
 *
 *  - An entry's inputs were recorded before it, so one backward sweep visits consumers first.
 *  - Live results and edges of later entries keep an entry; it keeps leaves, and the storages that its
 * backward reads.  It never keeps a result.
 *  - A dead entry is NULL in the array; trailing NULLs are cut, and the array is squeezed when more than half
 * is empty.
 *  - Only the tape's own thread touches entries.  A result freed in another thread is queued, and settled
 * later. */
#include <stdlib.h>
#include <tapegrad/debug.h>
#include "modes.h"
#include "tape.h"
#include "tensor/thread.h"

THREAD_LOCAL Tape *my_tape;
THREAD_LOCAL const char *tape_note;

const char *tensor_tape_note(const char *text)
{
    const char *was = tape_note;
    tape_note = text;
    return was;
}
THREAD_LOCAL bool grad_off;

bool tensor_set_grad_enabled(bool on)
{
    bool was = !grad_off;
    grad_off = !on;
    return was;
}

bool tensor_grad_enabled(void) { return !grad_off; }

/* ---- the array ------------------------------------------------------------------------------- */

static void leave_tape(void);

static Tape *tape_get(void)
{
    if (likely(my_tape != NULL)) return my_tape;
    thread_owns(THREAD_TAPE, leave_tape);
    Tape *tape = tg_calloc(sizeof *tape);
    if (!tape) return fail_memory("tape"), NULL;
    pthread_mutex_init(&tape->lock, NULL);
    return my_tape = tape;
}

static void squeeze(Tape *tape)
{
    int64_t n = 0;
    for (int64_t i = 0; i < tape->count; i++)
        if (tape->at[i]) {
            tape->at[n] = tape->at[i];
            tape->at[n]->index = n;
            n++;
        }
    tape->count = n;
}

static int push(Tape *tape, Entry *entry)
{
    if (unlikely(tape->count == tape->capacity)) {
        if (!tape->sweeps && tape->living < tape->count / 2) squeeze(tape);
        else {
            int64_t more = tape->capacity ? 2 * tape->capacity : 1024;
            Entry **grown =
                tg_grow(tape->at, (size_t)tape->capacity * sizeof *grown, (size_t)more * sizeof *grown);
            if (!grown) return fail_memory("tape");
            tape->at = grown, tape->capacity = more;
        }
    }
    entry->index = tape->count;
    tape->at[tape->count++] = entry;
    tape->living++;
    return 0;
}

/* ---- the end of an entry --------------------------------------------------------------------- */

void entry_free_saved(Entry *e)
{
    if (e->freed) return;
    e->freed = true;
    for (int i = 0; i < e->saves; i++)
        if (likely(e->saved[i].storage != NULL)) storage_release(e->saved[i].storage);
        else drop_packed(e->saved[i].data);
}

static void entry_dispose(Entry *e, Entry **dead)
{
    Tape *tape = e->tape;
    entry_free_saved(e);
    for (int i = 0; i < e->inputs; i++) {
        if (e->edge[i].leaf) drop_leaf(e->edge[i].leaf);
        Entry *from = e->edge[i].from;
        if (from && --from->refs == 0) from->next_dead = *dead, *dead = from;
    }
    for (int i = 0; i < e->outputs; i++) {
        take_back(e->result[i].grad);
        while (e->result[i].hooks) {
            Hook *hook = e->result[i].hooks;
            e->result[i].hooks = hook->next;
            tg_free(hook, sizeof *hook);
        }
    }
    if (e->index >= 0) {
        tape->at[e->index] = NULL;
        tape->living--;
        while (tape->count && !tape->at[tape->count - 1]) tape->count--;
    }
    tg_free(e, e->bytes);
}

/* No recursion: a loop frees a chain of a million entries. */
void entry_unref(Entry *entry)
{
    if (--entry->refs > 0) return;
    Entry *dead = entry;
    entry->next_dead = NULL;
    while (dead) {
        Entry *e = dead;
        dead = e->next_dead;
        entry_dispose(e, &dead);
    }
}

static void tape_free(Tape *tape)
{
    pthread_mutex_destroy(&tape->lock);
    tg_free(tape->at, (size_t)tape->capacity * sizeof *tape->at);
    tg_free(tape, sizeof *tape);
}

static void settle_foreign(Tape *tape) /* lock held */
{
    while (tape->foreign) {
        Entry *e = tape->foreign;
        tape->foreign = e->next_foreign;
        int drops = atomic_exchange(&e->foreign_drops, 0);
        while (drops-- > 0) entry_unref(e);
    }
    atomic_store(&tape->has_foreign, false);
}

static void settle(Tape *tape)
{
    if (likely(!atomic_load_explicit(&tape->has_foreign, memory_order_relaxed))) return;
    pthread_mutex_lock(&tape->lock);
    settle_foreign(tape);
    pthread_mutex_unlock(&tape->lock);
}

static void forget_result(Entry *e, const Tensor *result)
{
    Tensor *_Atomic *weak = &e->result[result->slot].tensor;
    if (atomic_load_explicit(weak, memory_order_relaxed) == result)
        atomic_store_explicit(weak, NULL, memory_order_relaxed);
}

/* Another thread may be releasing it: it then has no references, waits for the lock, and the struct still
 * exists. */
Tensor *entry_living_result(Entry *e, int slot)
{
    pthread_mutex_lock(&e->tape->lock);
    Tensor *x = atomic_load_explicit(&e->result[slot].tensor, memory_order_relaxed);
    x = lend_living(x);
    pthread_mutex_unlock(&e->tape->lock);
    return x;
}

static COLD void release_foreign(Tape *tape, Entry *e, const Tensor *result)
{
    pthread_mutex_lock(&tape->lock);
    forget_result(e, result);
    if (atomic_fetch_add(&e->foreign_drops, 1) == 0) e->next_foreign = tape->foreign, tape->foreign = e;
    atomic_store(&tape->has_foreign, true);
    if (tape->dead) settle_foreign(tape); /* nobody else will */
    bool last = tape->dead && tape->living == 0;
    pthread_mutex_unlock(&tape->lock);
    if (last) tape_free(tape);
}

void entry_release_result(Entry *e, const Tensor *result)
{
    if (unlikely(e->tape != my_tape)) {
        release_foreign(e->tape, e, result);
        return;
    }
    forget_result(e, result);
    entry_unref(e);
}

/* The thread ends. */
static void leave_tape(void)
{
    Tape *tape = my_tape;
    if (!tape) return;
    pthread_mutex_lock(&tape->lock);
    settle_foreign(tape);
    tape->dead = true; /* tensors that outlive the thread keep their entries, until they die */
    bool last = tape->living == 0;
    pthread_mutex_unlock(&tape->lock);
    my_tape = NULL;
    if (last) tape_free(tape);
}

bool entry_is_ours(const Entry *e) { return e->tape == my_tape; }

int64_t tensor_tape_length(void)
{
    if (!my_tape) return 0;
    settle(my_tape);
    return my_tape->living;
}

static int by_address(const void *a, const void *b)
{
    const Storage *x = *(Storage *const *)a, *y = *(Storage *const *)b;
    return (x > y) - (x < y);
}

/* Counts the storages that entries keep, and lists them unless list is NULL. */
static size_t list_storages(const Storage **list)
{
    size_t n = 0;
    for (int64_t i = 0; i < my_tape->count; i++) {
        const Entry *e = my_tape->at[i];
        for (int s = 0; e && s < e->saves && !e->freed; s++) {
            if (!e->saved[s].storage) continue; /* packed */
            if (list) list[n] = e->saved[s].storage;
            n++;
        }
    }
    return n;
}

int64_t tensor_tape_bytes(void)
{
    if (!my_tape) return 0;
    settle(my_tape);
    int64_t bytes = 0;
    for (int64_t i = 0; i < my_tape->count; i++) bytes += my_tape->at[i] ? (int64_t)my_tape->at[i]->bytes : 0;
    size_t n = list_storages(NULL);
    const Storage **list = tg_alloc(n * sizeof *list);
    if (!list) return fail_memory("tensor_tape_bytes");
    list_storages(list);
    qsort(list, n, sizeof *list, by_address);
    for (size_t i = 0; i < n; i++) bytes += i && list[i] == list[i - 1] ? 0 : (int64_t)list[i]->bytes;
    tg_free(list, n * sizeof *list);
    return bytes;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* What is kept: the union of what the wanted gradients read. */
static unsigned keep_mask(const OpCall *call, unsigned keep)
{
    unsigned wanted = 0;
    for (int i = 0; i < call->n; i++)
        if (on_graph(call->input[i])) wanted |= keep_of_input(call->op, i, keep);
    return wanted;
}

static Meta put_meta(const Tensor *x, int64_t **dims)
{
    if (!x) return (Meta){ 0 };
    Meta m = { .shape = *dims, .place = x->place, .dtype = x->dtype, .ndim = x->ndim };
    for (int d = 0; d < x->ndim; d++) (*dims)[d] = x->shape[d];
    *dims += x->ndim;
    return m;
}

static void put_saved(Entry *e, const Tensor *x, int kind, int index, int64_t **dims)
{
    Saved *s = &e->saved[e->saves++];
    storage_retain(x->storage);
    *s = (Saved){ .storage = x->storage,
                  .data = x->data,
                  .version = atomic_load_explicit(&x->storage->version, memory_order_relaxed),
                  .dtype = x->dtype,
                  .ndim = x->ndim,
                  .kind = (uint8_t)kind,
                  .index = (uint8_t)index,
                  .shape = *dims,
                  .stride = *dims + x->ndim };
    for (int d = 0; d < x->ndim; d++) (*dims)[d] = x->shape[d], (*dims)[x->ndim + d] = x->stride[d];
    *dims += 2 * x->ndim;
}

static Edge edge_to(Tensor *x, bool blocked)
{
    Edge edge = { 0 };
    if (!x || blocked) return edge;
    if (x->entry) {
        edge.from = x->entry, edge.slot = x->slot;
        x->entry->refs++;
    } else if (x->flags & FLAG_REQUIRES_GRAD) {
        edge.leaf = x;
        hold_leaf(x);
    }
    return edge;
}

/* The caller owns lists and texts of the parameters: the entry keeps copies behind its dimensions. */
static void count_lists(const OpCall *call, int64_t *dims, size_t *text)
{
    for (const OpField *f = call->params ? call->op->fields : NULL; f && f->name; f++) {
        const char *at = (const char *)call->params + f->offset;
        if (f->type == OP_LIST) *dims += ((const TensorShape *)(const void *)at)->ndim;
        else if (f->type == OP_STRING && *(const char *const *)(const void *)at)
            *text += strlen(*(const char *const *)(const void *)at) + 1;
    }
}

static void keep_lists(Entry *e, int64_t *dim)
{
    const OpField *const fields = e->params ? e->op->fields : NULL;
    for (const OpField *f = fields; f && f->name; f++) {
        if (f->type != OP_LIST) continue;
        TensorShape *list = (void *)((char *)e->params + f->offset);
        if (list->ndim) list->dim = memcpy(dim, list->dim, (size_t)list->ndim * sizeof *dim);
        dim += list->ndim;
    }
    char *text = (char *)dim;
    for (const OpField *f = fields; f && f->name; f++) {
        if (f->type != OP_STRING) continue;
        const char **at = (void *)((char *)e->params + f->offset);
        if (!*at) continue;
        const size_t size = strlen(*at) + 1;
        *at = memcpy(text, *at, size);
        text += size;
    }
}

Entry *entry_new(OpCall *call, unsigned keep)
{
    Tape *tape = tape_get();
    if (!tape) return NULL;
    settle(tape);
    keep = keep_mask(call, keep);
    int saves = call->extras;
    int64_t dims = 0;
    for (int i = 0; i < call->extras; i++) dims += 2 * call->extra[i]->ndim;
    for (int i = 0; i < call->n; i++) {
        const Tensor *x = call->input[i];
        bool kept = i < 16 && (keep >> i & 1) && x;
        saves += kept;
        dims += x ? x->ndim * (1 + 2 * kept) : 0;
    }
    for (int i = 0; i < call->outputs; i++) {
        bool kept = i < 16 && (keep >> (16 + i) & 1);
        saves += kept;
        dims += call->output[i]->ndim * (1 + 2 * kept);
    }
    size_t params = (call->op->params + 15) & ~(size_t)15, text = 0;
    count_lists(call, &dims, &text);
    size_t bytes = sizeof(Entry) + params + text + (size_t)call->n * (sizeof(Edge) + sizeof(Meta)) +
                   (size_t)call->outputs * (sizeof(Meta) + sizeof(Result)) + (size_t)saves * sizeof(Saved) +
                   (size_t)dims * sizeof(int64_t);
    Entry *e = tg_alloc(bytes);
    if (unlikely(!e)) return fail_memory(call->name), NULL;
    e->note = tape_note;
    e->op = call->op, e->tape = tape, e->site = call->site, e->refs = 1, e->bytes = bytes, e->index = -1;
    atomic_init(&e->foreign_drops, 0);
    e->inputs = (uint8_t)call->n, e->outputs = (uint16_t)call->outputs, e->saves = 0, e->freed = false;
    e->range = modes_on() ? profile_range() : 0;
    e->sweep = e->needed = 0, e->next_dead = e->next_foreign = NULL;
    char *at = (char *)(e + 1);
    e->params = at, at += params;
    e->edge = (Edge *)at, at += (size_t)call->n * sizeof(Edge);
    e->meta = (Meta *)at, at += (size_t)(call->n + call->outputs) * sizeof(Meta);
    e->result = (Result *)at, at += (size_t)call->outputs * sizeof(Result);
    e->saved = (Saved *)at, at += (size_t)saves * sizeof(Saved);
    int64_t *dim = (int64_t *)at;
    if (call->op->params) memcpy(e->params, call->params, call->op->params);
    for (int i = 0; i < call->n; i++) {
        e->edge[i] = edge_to(call->input[i], is_plain_input(call->op, i));
        e->meta[i] = put_meta(call->input[i], &dim);
        if (i < 16 && (keep >> i & 1) && call->input[i]) put_saved(e, call->input[i], SAVED_INPUT, i, &dim);
    }
    for (int i = 0; i < call->outputs; i++) {
        e->result[i] = (Result){ .grad = NULL };
        e->meta[call->n + i] = put_meta(call->output[i], &dim);
        if (i < 16 && (keep >> (16 + i) & 1)) put_saved(e, call->output[i], SAVED_OUTPUT, i, &dim);
    }
    for (int i = 0; i < call->extras; i++) put_saved(e, call->extra[i], SAVED_EXTRA, i, &dim);
    keep_lists(e, dim);
    if ((modes_on() && saved_hooks.pack && saved_pack_all(e)) || push(tape, e)) {
        entry_unref(e);
        return NULL;
    }
    return e;
}

static void join(Entry *e, int slot, Tensor *x)
{
    Entry *old = x->entry;
    e->refs++;
    if (old) entry_release_result(old, x);
    x->entry = e, x->slot = (uint16_t)slot;
}

void entry_attach(Entry *e, int slot, Tensor *result)
{
    join(e, slot, result);
    atomic_store_explicit(&e->result[slot].tensor, result, memory_order_relaxed);
    e->result[slot].retain = result->flags & FLAG_RETAIN_GRAD;
}

int tape_record(OpCall *call, unsigned keep)
{
    Entry *e = entry_new(call, keep);
    if (!e) return -1;
    for (int i = 0; i < call->outputs; i++)
        if (dtype_is_float(call->output[i]->dtype)) entry_attach(e, i, call->output[i]);
    entry_unref(e);
    return 0;
}

/* Makes a tensor of a saved value.  On the graph it has the history of the input or result that was saved,
 * so that a recorded sweep differentiates through it. */
Tensor *saved_unpack(Entry *e, const Saved *s, bool graph)
{
    Tensor *x = new_alias(s->storage, s->data, s->dtype, s->ndim, s->shape, s->stride);
    if (!x || !graph || s->kind == SAVED_EXTRA || !dtype_is_float(s->dtype)) return own(x);
    if (s->kind == SAVED_OUTPUT) {
        join(e, s->index, x); /* the alias is not counted as a result */
        return own(x);
    }
    const Edge *edge = &e->edge[s->index];
    if (edge->leaf) { /* the leaf itself, while it is alive with this storage */
        Tensor *leaf = lend_living(edge->leaf);
        if (!leaf) return own(x);
        if (leaf->data != s->data || leaf->storage != s->storage) {
            fail_entry(TENSOR_EGRAD, e,
                       "the data of its leaf %s were replaced since: no gradient of the gradient", S(leaf));
            take_back(leaf);
            tensor_release(x);
            return NULL;
        }
        tensor_release(x);
        return own_lent(leaf);
    }
    if (edge->from) join(edge->from, edge->slot, x);
    return own(x);
}
