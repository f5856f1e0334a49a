/* run.c - running a module: its forward, with hooks, nn_summary and error notes.
 *
 *  - The modules that run are a list on the C stack, innermost first.
 *  - An error is noted once, by the innermost module that failed.
 *  - A forward of one input and one result has no scope of its own: its result already belongs to the
 *  caller's scope. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad/profiler.h>
#include "module.h"

typedef struct Frame {
    Module *module;
    struct Frame *up;
    const char *noted; /* the type of the inner module that reported the failure; NULL: none */
    const char *place; /* "1.b1 (BatchNorm2d)", where it records; NULL: the outermost one */
} Frame;

static _Thread_local Frame *running;
static _Thread_local struct {
    NNObserver fn;
    void *ctx;
} observer;

void nn_observe(NNObserver fn, void *ctx) { observer.fn = fn, observer.ctx = ctx; }

/* ---- where ----------------------------------------------------------------------------------- */

/* Direct children first: the usual answer, needed in each forward after a tree changed. */
bool nn_path(const Module *parent, const Module *m, char *text)
{
    char inner[NN_PATH];
    for (int i = 0; i < parent->child_count; i++)
        if (parent->children[i].module == m)
            return snprintf(text, NN_PATH, "%s", parent->children[i].name), true;
    for (int i = 0; i < parent->child_count; i++) {
        const ModuleChild *c = &parent->children[i];
        if (!c->module->child_count || !nn_path(c->module, m, inner)) continue;
        const int n = (int)strnlen(c->name, NN_PATH - 2);
        snprintf(text, NN_PATH, "%.*s.%.*s", n, c->name, NN_PATH - n - 2, inner);
        return true;
    }
    return false;
}

/* The names from the outermost module down to f's; a module that is no part of its caller starts a new
 * path. */
static size_t write_path(const Frame *f, char *text)
{
    if (!f->up) return text[0] = 0;
    size_t n = write_path(f->up, text);
    char part[NN_PATH];
    if (f->module == f->up->module) return n; /* a module that runs itself again */
    if (!nn_path(f->up->module, f->module, part)) return text[0] = 0;
    const int more = snprintf(text + n, NN_PATH - n, "%s%s", n ? "." : "", part);
    n += (size_t)more < NN_PATH - n ? (size_t)more : NN_PATH - n - 1;
    return n;
}

/* ---- where an entry of the tape was recorded: texts that graphs hold, and so are never freed ---------- */

typedef struct Place {
    struct Place *next;
    char text[];
} Place;

static struct {
    Place **at; /* by hash; a power of two */
    size_t places, count;
    pthread_mutex_t lock;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t hash_of(const char *text)
{
    size_t h = 5381;
    for (; *text; text++) h = h * 33 ^ (unsigned char)*text;
    return h;
}

static bool more_places(void)
{
    const size_t more = known.places ? 2 * known.places : 64;
    Place **at = calloc(more, sizeof *at);
    for (size_t i = 0; i < known.places && at; i++)
        for (Place *p = known.at[i], *next; p; p = next) {
            Place **to = &at[hash_of(p->text) & (more - 1)];
            next = p->next;
            p->next = *to, *to = p;
        }
    if (!at) return false;
    free(known.at);
    known.at = at, known.places = more;
    return true;
}

/* The one copy of that text; NULL without memory, which is no error. */
static const char *keep_text(const char *text)
{
    const size_t size = strlen(text) + 1;
    pthread_mutex_lock(&known.lock);
    Place *p = NULL;
    if (known.count < known.places || more_places()) {
        Place **at = &known.at[hash_of(text) & (known.places - 1)];
        for (p = *at; p && strcmp(p->text, text) != 0;) p = p->next;
        if (!p && (p = malloc(sizeof *p + size))) {
            memcpy(p->text, text, size);
            p->next = *at, *at = p, known.count++;
        }
    }
    pthread_mutex_unlock(&known.lock);
    return p ? p->text : NULL;
}

/* Only a training module remembers it: others may run in several threads. */
static const char *place_of(const Frame *f)
{
    Module *m = f->module, *in = f->up ? f->up->module : NULL;
    const unsigned tree = nn_tree_changes();
    if (!in) return NULL;
    if (m->place.in == in && m->place.outer == f->up->place && m->place.tree == tree) return m->place.text;
    char path[NN_PATH], text[2 * NN_PATH];
    const char *kept = NULL;
    if (write_path(f, path)) {
        snprintf(text, sizeof text, "%s (%s)", path, m->type);
        kept = keep_text(text);
    }
    if (m->training) m->place = (NNPlace){ kept, f->up->place, in, tree };
    return kept;
}

/* Is the error still the one that an inner module noted?  It may have been cleared since. */
static bool is_noted(const Frame *f)
{
    char text[NN_PATH];
    if (!f->noted) return false;
    snprintf(text, sizeof text, " (%s)", f->noted);
    return strstr(tensor_error(), text) != NULL;
}

static void note(Frame *f)
{
    char path[NN_PATH];
    if (!is_noted(f) && write_path(f, path)) {
        tensor_error_note("in %s (%s)", path, f->module->type);
        f->noted = f->module->type;
    }
    if (f->up) f->up->noted = f->noted;
}

/* ---- a forward ------------------------------------------------------------------------------- */

static int check(const Module *m, const NNCall *c)
{
    if (!m->forward && !m->call)
        return tensor_fail(TENSOR_EVALUE, "nn_forward", "%s has no forward: run its children", m->type);
    if (!c->in[0]) {
        if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, "nn_forward", "the input of %s is NULL", m->type);
        return -1;
    }
    const int most = !m->call ? 1 : m->kind ? m->kind->inputs : 0;
    if (most && c->inputs > most)
        return tensor_fail(TENSOR_EVALUE, "nn_forward", "%s takes %d input%s, not %d", m->type, most,
                           most == 1 ? "" : "s", c->inputs);
    return 0;
}

/* Hands the results to the scope around this one; all of them, or none. */
static int hand_over(TensorScope scope, NNCall *c, bool failed)
{
    for (int i = 0; i < NN_VALUES; i++) tensor_retain(c->out[i]);
    tensor_scope_close(scope);
    for (int i = 0; i < NN_VALUES; i++) {
        Tensor *y = failed ? NULL : nn_borrow(c->out[i]);
        failed |= c->out[i] && !y;
        tensor_release(c->out[i]);
        c->out[i] = y;
    }
    if (failed) memset(c->out, 0, sizeof c->out);
    return failed ? -1 : 0;
}

/* A module with both keeps `call` for calls with options. */
static bool by_call(const Module *m, const NNCall *c) { return m->call && (c->options || !m->forward); }

bool nn_seen(const Module *m) { return nn_hooked(m) || observer.fn || tensor_profiling(); }

static int run_scoped(Module *m, NNCall *c)
{
    const bool before = tensor_error_code() != TENSOR_OK;
    int64_t id = 0;
    TensorScope scope = tensor_scope_open();
    const bool hooked = nn_hooked(m);
    bool failed = hooked && nn_hooks_before(m, c, &id);
    if (!failed && by_call(m, c)) m->call(m, c);
    else if (!failed) c->out[0] = m->forward(m, c->in[0]);
    failed |= !c->out[0] || (by_call(m, c) && !before && tensor_error_code());
    if (!failed && hooked) failed = nn_hooks_after(m, c, id);
    return hand_over(scope, c, failed);
}

static int run(Module *m, NNCall *c)
{
    if (m->lazy && nn_infer(m, c->in[0])) return -1;
    if (by_call(m, c) || nn_hooked(m)) return run_scoped(m, c);
    c->out[0] = m->forward(m, c->in[0]);
    return c->out[0] ? 0 : -1;
}

/* For the profiler: the names from the module around it, else the type. */
static void push_name(const Frame *f)
{
    char part[NN_PATH];
    const bool inside = f->up && nn_path(f->up->module, f->module, part);
    tensor_profile_push(inside ? part : f->module->type);
}

int nn_run(Module *m, NNCall *c)
{
    if (!c) return tensor_fail(TENSOR_ENULL, "nn_run", "the call is NULL");
    memset(c->out, 0, sizeof c->out);
    if (nn_null(m, "nn_run")) return -1;
    if (c->results < 1) c->results = 1;
    for (c->inputs = NN_VALUES; c->inputs && !c->in[c->inputs - 1];) c->inputs--;
    Frame frame = { .module = m, .up = running };
    const bool failed_before = tensor_error_code() != TENSOR_OK;
    running = &frame;
    if (observer.fn) observer.fn(observer.ctx, m, NULL);
    const bool measured = tensor_profiling();
    if (measured) push_name(&frame);
    const bool records = tensor_grad_enabled();
    const char *outer = records ? tensor_tape_note(frame.place = place_of(&frame)) : NULL;
    const int status = check(m, c) ? -1 : run(m, c);
    if (records) tensor_tape_note(outer);
    if (measured) tensor_profile_pop();
    if (status && !tensor_error_code())
        tensor_fail(TENSOR_EVALUE, "nn_forward", "the forward of %s gave no first result", m->type);
    if (!failed_before && tensor_error_code()) note(&frame); /* also of a forward that went on */
    if (observer.fn) observer.fn(observer.ctx, m, c);
    running = frame.up;
    return status;
}

/* ---- for users ------------------------------------------------------------------------------- */

const NNCallArgs nn_call_defaults = { NN_CALL_DEFAULTS };

static Tensor *call(const NNCallArgs *args, const char *function)
{
    NNCall c = { .results = 1 };
    for (int i = 0; i < NN_VALUES; i++) {
        c.in[i] = args->in[i];
        if (args->out[i]) c.results = i + 1, *args->out[i] = NULL;
    }
    if (nn_null(args->module, function) || nn_run(args->module, &c)) return NULL;
    for (int i = 0; i < NN_VALUES; i++)
        if (args->out[i]) *args->out[i] = c.out[i];
    return c.out[0];
}

Tensor *nn_call_args(NNCallArgs args) { return call(&args, "nn_call"); }
Tensor *(nn_forward)(Module *m, Tensor *x)
{
    return call(&(NNCallArgs){ .module = m, .in = { x } }, "nn_forward");
}
