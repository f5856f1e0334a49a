/* capture.c - what a captured step depends on: the tensors it uses, the numbers that the host computes, the
 * functions that count it; and the hash of its ops. */
#include "autograd/modes.h"
#include "autograd/tape.h"
#include "graph.h"

enum { CHUNK = 4096 }; /* bytes */

_Atomic unsigned graph_changes;

void op_graph_changed(void) { atomic_fetch_add(&graph_changes, 1); }

/* Room for one more of an array: -1 without memory. */
static int make_room(void **array, int64_t count, int64_t *room, size_t each, const char *function)
{
    if (count < *room) return 0;
    const int64_t more = *room ? 2 * *room : 16;
    void *grown = tg_grow(*array, (size_t)*room * each, (size_t)more * each);
    if (!grown) return fail_memory(function);
    *array = grown, *room = more;
    return 0;
}

/* ---- tensors that it uses -------------------------------------------------------------------- */

uint64_t layout_of(const Tensor *x)
{
    uint64_t h = mixed(x->dtype, x->ndim | (uint64_t)(x->flags & FLAG_REQUIRES_GRAD) << 8);
    for (int d = 0; d < x->ndim; d++) h = mixed(mixed(h, (uint64_t)x->shape[d]), (uint64_t)x->stride[d]);
    return h;
}

static uint32_t version_of(const Tensor *x)
{
    return atomic_load_explicit(&x->storage->version, memory_order_relaxed);
}

static const void *grad_of(const Tensor *x) { return x->grad ? x->grad->data : NULL; }

static uint32_t *slot_of(const Capture *c, const Tensor *x)
{
    uint64_t at = mixed(0, (uint64_t)(uintptr_t)x) & (uint64_t)(c->slots - 1);
    while (c->slot[at] && c->kept[c->slot[at] - 1].x != x) at = (at + 1) & (uint64_t)(c->slots - 1);
    return &c->slot[at];
}

static int more_slots(Capture *c)
{
    const int64_t more = c->slots ? 2 * c->slots : 64, had = c->slots;
    uint32_t *old = c->slot, *slot = tg_calloc((size_t)more * sizeof *slot);
    if (!slot) return fail_memory("tensor_graph_begin");
    c->slot = slot, c->slots = more;
    for (int64_t i = 0; i < c->count; i++) *slot_of(c, c->kept[i].x) = (uint32_t)i + 1;
    tg_free(old, (size_t)had * sizeof *old);
    return 0;
}

int graph_keep(Tensor *x)
{
    TensorGraph *g = graph_step;
    Capture *c = &g->capture;
    if (!graph_serial || x->made_in == graph_serial || x->place != g->place || !x->storage) return 0;
    if (2 * (c->count + 1) > c->slots && more_slots(c)) return -1;
    uint32_t *slot = slot_of(c, x);
    if (*slot) return 0;
    if (make_room((void **)&c->kept, c->count, &c->room, sizeof *c->kept, "tensor_graph_begin")) return -1;
    c->kept[c->count++] = (Kept){ .x = lend(x),
                                  .storage = x->storage,
                                  .data = x->data,
                                  .layout = layout_of(x),
                                  .version = version_of(x),
                                  .before = grad_of(x) };
    *slot = (uint32_t)c->count;
    return 0;
}

int graph_keep_grad(Tensor *x)
{
    if (graph_keep(x)) return -1;
    const uint32_t at = graph_step->capture.slots ? *slot_of(&graph_step->capture, x) : 0;
    if (at) graph_step->capture.kept[at - 1].reset = true;
    return 0;
}

void capture_end(TensorGraph *g)
{
    for (int64_t i = 0; i < g->capture.count; i++) {
        Kept *k = &g->capture.kept[i];
        k->written = version_of(k->x) != k->version;
        k->grad = lend(k->x->grad);
    }
    if (g->capture.random) g->capture.draws = g->capture.generator->philox_offset - g->capture.offset;
}

/* What it adds to must be where it was; what it makes anew need not be there. */
static bool has_its_grad(const Kept *k) { return k->reset || grad_of(k->x) == k->before; }

static bool is_as_it_was(TensorGraph *g, const Kept *k)
{
    static const char *const what[] = { "is no longer used by anybody else", "has other memory",
                                        "has another dtype, shape or layout", "has another .grad" };
    const int wrong = references(k->x) == 1                                  ? 0
                      : k->x->storage != k->storage || k->x->data != k->data ? 1
                      : layout_of(k->x) != k->layout                         ? 2
                      : !has_its_grad(k)                                     ? 3
                                                                             : -1;
    if (wrong >= 0)
        snprintf(g->why, sizeof g->why, "a tensor that the step uses, %s %s, %s",
                 tensor_dtype_name((TensorDtype)k->x->dtype), S(k->x), what[wrong]);
    return wrong < 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Of the device's memory, not of the graph's: there the captured work might write before it reads. */
static Tensor *new_bytes(const TensorGraph *g, size_t bytes)
{
    const Device *d = g->place->device;
    d->graphs->use_pool(g->place->context, NULL);
    Tensor *x = new_tensor(SHAPE((int64_t)bytes), TENSOR_U8, g->place);
    d->graphs->use_pool(g->place->context, g->there);
    return x;
}

int capture_make_room(TensorGraph *g, size_t bytes)
{
    const size_t room = bytes > CHUNK ? bytes : CHUNK;
    Chunk *c = tg_calloc(sizeof *c);
    char *here = c ? tg_calloc(room) : NULL;
    Tensor *there = here ? new_bytes(g, room) : NULL;
    if (!there) {
        if (!here) fail_memory("op_graph_numbers");
        tg_free(here, room);
        tg_free(c, sizeof *c);
        return -1;
    }
    *c = (Chunk){ there, here, room, 0, g->capture.chunk };
    g->capture.chunk = c;
    return 0;
}

/* A block of both memories; NULL without memory. */
static char *take_bytes(TensorGraph *g, size_t bytes, void **there)
{
    bytes = (bytes + 15) / 16 * 16;
    const Chunk *last = g->capture.chunk;
    if ((!last || last->used + bytes > last->room) && capture_make_room(g, bytes)) return NULL;
    Chunk *c = g->capture.chunk;
    char *here = c->here + c->used;
    *there = (char *)c->there->data + c->used;
    c->used += bytes;
    return here;
}

static void fill_numbers(const Numbers *n)
{
    double values[n->n];
    n->fill(n->ctx, values);
    if (n->dtype == TENSOR_F64) memcpy(n->at, values, sizeof values);
    for (int i = 0; i < n->n && n->dtype == TENSOR_F32; i++) ((float *)(void *)n->at)[i] = (float)values[i];
}

Tensor *op_graph_numbers(int n, TensorDtype dtype, void (*fill)(void *ctx, double *values), void *ctx)
{
    static const char name[] = "op_graph_numbers";
    TensorGraph *g = graph_serial ? graph_step : NULL;
    Capture *c = g ? &g->capture : NULL;
    void *there = NULL;
    if (!fill) return fail(TENSOR_ENULL, name, "the function is NULL"), NULL;
    if (!c) return fail(TENSOR_EVALUE, name, "no step is being captured"), NULL;
    if (n < 1 || n > 4096 || (dtype != TENSOR_F32 && dtype != TENSOR_F64))
        return fail(TENSOR_EVALUE, name, "%d numbers of %s: want 1 to 4096, f32 or f64", n,
                    tensor_dtype_name(dtype)),
               NULL;
    if (make_room((void **)&c->numbers, c->number_count, &c->number_room, sizeof *c->numbers, name))
        return NULL;
    char *here = take_bytes(g, (size_t)n * dtype_size(dtype), &there);
    if (!here) return NULL;
    Tensor *x = new_alias(c->chunk->there->storage, there, dtype, 1, (int64_t[]){ n }, (int64_t[]){ 1 });
    if (!x) return NULL;
    c->numbers[c->number_count++] = (Numbers){ fill, ctx, n, dtype, here };
    fill_numbers(&c->numbers[c->number_count - 1]);
    return own(x);
}

/* ---- the generator --------------------------------------------------------------------------- */

static void write_random(uint64_t *at, uint64_t seed, uint64_t offset) { at[0] = seed, at[1] = offset; }

/* seed and offset: as random_next_philox gives them; becomes the offset from where the step began. */
const uint64_t *graph_random(const char *function, const Place *place, uint64_t seed, uint64_t *offset)
{
    TensorGraph *g = graph_step;
    if (!graph_serial || place != g->place) return NULL;
    Capture *c = &g->capture;
    void *there;
    if (!c->random) {
        if (make_room((void **)&c->numbers, c->number_count, &c->number_room, sizeof *c->numbers, function))
            return NULL;
        char *here = take_bytes(g, 2 * sizeof(uint64_t), &there);
        if (!here) return NULL;
        c->numbers[c->number_count++] = (Numbers){ .at = here };
        c->generator = random_generator(), c->random = there, c->offset = *offset;
        write_random((uint64_t *)(void *)here, seed, *offset);
    }
    if (c->generator != random_generator()) {
        graph_break(function, "draws from another generator than the rest of the step");
        return NULL;
    }
    *offset -= c->offset;
    return c->random;
}

/* ---- functions that count -------------------------------------------------------------------- */

int op_graph_on_replay(int (*fn)(void *ctx, OpGraphPhase phase), void *ctx, void (*drop)(void *ctx))
{
    static const char name[] = "op_graph_on_replay";
    Capture *c = graph_serial ? &graph_step->capture : NULL;
    const bool refused = !fn || !c;
    if (!fn) fail(TENSOR_ENULL, name, "the function is NULL");
    else if (!c) fail(TENSOR_EVALUE, name, "no step is being captured");
    if (refused ||
        make_room((void **)&c->replay, c->replay_count, &c->replay_room, sizeof *c->replay, name)) {
        if (drop) drop(ctx);
        return -1;
    }
    c->replay[c->replay_count++] = (Replay){ fn, ctx, drop };
    return 0;
}

/* ---- a replay -------------------------------------------------------------------------------- */

bool capture_valid(TensorGraph *g)
{
    const Capture *c = &g->capture;
    bool valid = c->changes == atomic_load(&graph_changes);
    if (!valid) snprintf(g->why, sizeof g->why, "modes or structure of modules or optimizers have changed");
    for (int64_t i = 0; i < c->count && valid; i++) valid = is_as_it_was(g, &c->kept[i]);
    for (int64_t i = 0; i < c->replay_count && valid; i++) {
        valid = c->replay[i].fn(c->replay[i].ctx, OP_GRAPH_CHECK) == 0;
        if (!valid) snprintf(g->why, sizeof g->why, "what an optimizer works on has changed");
    }
    return valid;
}

int capture_next(TensorGraph *g)
{
    Capture *c = &g->capture;
    for (int64_t i = 0; i < c->replay_count; i++) c->replay[i].fn(c->replay[i].ctx, OP_GRAPH_NEXT);
    for (int64_t i = 0; i < c->number_count; i++) {
        const Numbers *n = &c->numbers[i];
        if (n->fill) {
            fill_numbers(n);
            continue;
        }
        TensorGenerator *now = random_generator();
        write_random((uint64_t *)(void *)n->at, now->philox_seed, now->philox_offset);
        now->philox_offset += c->draws;
    }
    return tensor_error_code() ? -1 : 0;
}

int capture_send(const TensorGraph *g)
{
    const Place *place = g->place;
    for (const Chunk *c = g->capture.chunk; c; c = c->next)
        if (c->used &&
            kernel_status(place->device->to_device(place->context, c->there->data, c->here, c->used),
                          "tensor_graph_end", place, "copy"))
            return -1;
    return 0;
}

/* The gradient that the step leaves is its own. */
static void set_grad(Tensor *x, Tensor *grad)
{
    pthread_mutex_lock(&leaf_lock);
    Tensor *old = x->grad;
    x->grad = lend(grad);
    pthread_mutex_unlock(&leaf_lock);
    take_back(old);
}

void capture_done(TensorGraph *g)
{
    const Capture *c = &g->capture;
    for (int64_t i = 0; i < c->count; i++) {
        const Kept *k = &c->kept[i];
        if (k->written) bump_version(k->x);
        if ((k->reset || !k->before) && k->x->grad != k->grad) set_grad(k->x, k->grad);
        else if (k->grad) bump_version(k->grad);
    }
    for (int64_t i = 0; i < c->replay_count; i++) c->replay[i].fn(c->replay[i].ctx, OP_GRAPH_DONE);
}

void capture_clear(TensorGraph *g)
{
    Capture *c = &g->capture;
    for (int64_t i = 0; i < c->count; i++) take_back(c->kept[i].grad), take_back(c->kept[i].x);
    for (int64_t i = 0; i < c->replay_count; i++)
        if (c->replay[i].drop) c->replay[i].drop(c->replay[i].ctx);
    while (c->chunk) {
        Chunk *next = c->chunk->next;
        tensor_release(c->chunk->there);
        tg_free(c->chunk->here, c->chunk->room);
        tg_free(c->chunk, sizeof *c->chunk);
        c->chunk = next;
    }
    tg_free(c->kept, (size_t)c->room * sizeof *c->kept);
    tg_free(c->slot, (size_t)c->slots * sizeof *c->slot);
    tg_free(c->numbers, (size_t)c->number_room * sizeof *c->numbers);
    tg_free(c->replay, (size_t)c->replay_room * sizeof *c->replay);
    *c = (Capture){ 0 };
}

/* ---- the hash of the ops --------------------------------------------------------------------- */

static uint64_t hash_bytes(uint64_t h, const void *at, size_t size)
{
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char *)at + i, size - i < 8 ? size - i : 8);
        h = mixed(h, word);
    }
    return h;
}

static uint64_t hash_options(uint64_t h, const TensorOp *op, const void *params)
{
    if (op->row) return hash_bytes(h, params, (size_t)op->row->params * sizeof(double));
    for (const OpField *f = op->fields; f && f->name; f++) {
        const void *at = (const char *)params + f->offset;
        const size_t n = (size_t)f->count;
        if (f->type == OP_DOUBLE || f->type == OP_I64) h = hash_bytes(h, at, n * 8);
        else if (f->type == OP_INT) h = hash_bytes(h, at, n * sizeof(int));
        else if (f->type == OP_BOOL) h = hash_bytes(h, at, n * sizeof(bool));
        else if (f->type == OP_LIST) {
            const TensorShape *list = at;
            h = mixed(h, (uint64_t)list->ndim);
            if (list->ndim > 0 && list->dim) h = hash_bytes(h, list->dim, (size_t)list->ndim * 8);
        }
    }
    return h;
}

const char *graph_op(void) { return graph_step ? graph_step->op : NULL; }

int graph_note_op(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params)
{
    TensorGraph *g = graph_step;
    uint64_t h = mixed(g->hash, (uint64_t)(uintptr_t)op);
    g->op = name;
    if (params) h = hash_options(h, op, params);
    for (int i = 0; i < n; i++) {
        Tensor *x = inputs[i];
        h = mixed(h, x && x->storage ? layout_of(x) : 0);
        if (!graph_serial || !x || !x->storage) continue;
        if (x->place != g->place && strcmp(op->name, "to_device") != 0) {
            char why[64];
            snprintf(why, sizeof why, "computes on %s", x->place->name);
            if (graph_break(name, why)) return -1;
        } else if (graph_keep(x)) return -1;
    }
    if (!g->quiet) g->hash = h;
    return 0;
}

/* What is not compared is mixed in by its beginning and its end alone. */
static void mix_in(TensorGraph *g, uint64_t word)
{
    if (!g->quiet) g->hash = mixed(g->hash, word);
}

bool op_graph_compare(bool on)
{
    TensorGraph *g = graph_step;
    if (!g) return true;
    const bool was = !g->quiet;
    g->quiet = false;
    mix_in(g, was ? 1 : 2);
    g->quiet = !on;
    return was;
}

void graph_note_number(double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    mix_in(graph_step, word);
}

void graph_note_list(Tensor *const *x, int n)
{
    for (int i = 0; i < n; i++) {
        mix_in(graph_step, layout_of(x[i]));
        if (graph_keep(x[i])) return;
    }
}
