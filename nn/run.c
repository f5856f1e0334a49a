/* run.c - running a module: its forward, seen by hooks, by nn_summary and by the notes of errors.
 *
 *  - The modules that run are a list on the C stack, innermost first.
 *  - An error is noted once, by the innermost module that failed.
 *  - A forward of one input and one result has no scope of its own: what it returns is its caller's
 *  already. */
#include <stdio.h>
#include <string.h>
#include <tapegrad/profiler.h>
#include "module.h"

typedef struct Frame {
    Module *module;
    struct Frame *up;
    bool noted; /* something inside has told where it failed */
} Frame;

static _Thread_local Frame *running;
static _Thread_local struct {
    NNObserver fn;
    void *ctx;
} observer;

void nn_observe(NNObserver fn, void *ctx) { observer.fn = fn, observer.ctx = ctx; }

Module *nn_running(int i)
{
    const Frame *f = running;
    while (f && i-- > 0) f = f->up;
    return f ? f->module : NULL;
}

/* ---- where ----------------------------------------------------------------------------------- */

bool nn_path(const Module *parent, const Module *m, char *text)
{
    for (int i = 0; i < parent->child_count; i++) {
        const ModuleChild *c = &parent->children[i];
        const size_t n = strlen(c->name);
        if (n + 2 > NN_PATH) continue;
        char inner[NN_PATH];
        if (c->module != m && !nn_path(c->module, m, inner)) continue;
        if (c->module == m) inner[0] = 0;
        snprintf(text, NN_PATH, "%s%s%.*s", c->name, *inner ? "." : "", (int)(NN_PATH - n - 2), inner);
        return true;
    }
    return false;
}

/* The names from the outermost module down to f's; it begins anew at one that is no part of its caller. */
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

static void note(Frame *f)
{
    char path[NN_PATH];
    if (!f->noted && write_path(f, path)) tensor_error_note("in %s (%s)", path, f->module->type);
    if (f->up) f->up->noted = true;
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
    if (!m->call && c->inputs > 1)
        return tensor_fail(TENSOR_EVALUE, "nn_forward", "%s takes one input, not %d", m->type, c->inputs);
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

static int run_scoped(Module *m, NNCall *c)
{
    const bool before = tensor_error_code() != TENSOR_OK;
    int64_t id = 0;
    TensorScope scope = tensor_scope_open();
    bool failed = m->hook_count && nn_hooks_before(m, c, &id);
    if (!failed && m->call) m->call(m, c);
    else if (!failed) c->out[0] = m->forward(m, c->in[0]);
    failed |= !c->out[0] || (m->call && !before && tensor_error_code());
    if (!failed && m->hook_count) failed = nn_hooks_after(m, c, id);
    return hand_over(scope, c, failed);
}

static int run(Module *m, NNCall *c)
{
    if (m->lazy && nn_infer(m, c->in[0])) return -1;
    if (m->call || m->hook_count) return run_scoped(m, c);
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
    Frame frame = { m, running, false };
    const bool failed_before = tensor_error_code() != TENSOR_OK;
    running = &frame;
    if (observer.fn) observer.fn(observer.ctx, m, NULL);
    const bool measured = tensor_profiling();
    if (measured) push_name(&frame);
    const int status = check(m, c) ? -1 : run(m, c);
    if (measured) tensor_profile_pop();
    if (status && !failed_before) note(&frame);
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
