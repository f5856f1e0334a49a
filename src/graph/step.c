/* step.c - steps that are captured and replayed: tapegrad/graph.h states what for.
 *
 *   run as usual, in the graph's memory     until it was equal `warmup` times in a row
 *   captured, and launched at its end       the capture is kept if the step was equal again
 *   replayed                                while what it depends on is as it was
 *
 *  - A step that differs runs as usual, in other memory; a second one like it, in a row, drops the capture.
 *  - What is captured is launched in any case, whatever ends the capture: no work is lost, and the host's
 *    part of a step has always been done once. */
#include <stdio.h>
#include "autograd/modes.h"
#include "graph.h"
#include "trace/callsite.h"

enum { MOST_FAILURES = 3 };

THREAD_LOCAL TensorGraph *graph_step;
THREAD_LOCAL uint8_t graph_serial;
THREAD_LOCAL bool graph_watches;

const TensorGraphArgs tensor_graph_defaults = { TENSOR_GRAPH_DEFAULTS };
const TensorGraphBeginArgs tensor_graph_begin_defaults = { TENSOR_GRAPH_BEGIN_DEFAULTS };

/* ---- making ---------------------------------------------------------------------------------- */

TensorGraph *tensor_graph_args(TensorGraphArgs args)
{
    static const char name[] = "tensor_graph";
    if (TENSOR_CHECK_OPTIONS(name, args, tensor_graph_defaults)) return NULL;
    if (args.warmup < 1) return fail(TENSOR_EVALUE, name, "warmup is %d: want 1 or more", args.warmup), NULL;
    const Place *place = find_place(args.device, name);
    TensorGraph *g = place ? tg_calloc(sizeof *g) : NULL;
    if (!g) return place ? fail_memory(name) : 0, NULL;
    g->place = place, g->warmup = args.warmup, g->fallback = args.fallback;
    if (!place->device->graphs) {
        snprintf(g->why, sizeof g->why, "%s captures no steps", place->name);
        return g;
    }
    g->there = place->device->graphs->make(place->context);
    if (g->there) return g;
    kernel_status(KERNEL_FAILED, name, place, "graph");
    tg_free(g, sizeof *g);
    return NULL;
}

static void replace(Tensor **at, Tensor *by)
{
    Tensor *old = *at;
    *at = tensor_retain(by);
    tensor_release(old);
}

/* The captured step is no longer needed. */
static void drop_capture(TensorGraph *g)
{
    g->ready = false;
    capture_clear(g);
    if (g->there) g->place->device->graphs->clear(g->place->context, g->there);
    for (int i = 0; i < TENSOR_GRAPH_TENSORS; i++)
        replace(&g->own_input[i], NULL), replace(&g->own_output[i], NULL);
}

/* ---- the end of a capture -------------------------------------------------------------------- */

/* Queues what was captured.  -1: an error is recorded, and the work is lost. */
static int launch_captured(TensorGraph *g)
{
    const Device *d = g->place->device;
    graph_serial = 0;
    if (kernel_status(d->graphs->end(g->place->context, g->there), "tensor_graph_end", g->place, "graph") ||
        capture_send(g))
        return -1;
    return kernel_status(d->graphs->launch(g->place->context, g->there), "tensor_graph_end", g->place,
                         "graph");
}

int graph_break(const char *function, const char *why)
{
    TensorGraph *g = graph_step;
    char where[128] = "";
    if (!graph_serial) return 0;
    const void *site = callsite_find();
    if (site && !callsite_text(site, where, sizeof where)) *where = 0;
    function = function ? function : "a call";
    snprintf(g->why, sizeof g->why, "%s%s%s%s%s %s", tensor_op_find(function) ? "tensor_" : "", function,
             *where ? " (" : "", where, *where ? ")" : "", why);
    g->failures++, g->phase = STEP_EAGER;
    const int status = launch_captured(g);
    drop_capture(g);
    if (status) return -1;
    if (!g->fallback)
        return fail(TENSOR_EDEVICE, function, "it %s, while a step on %s is captured", why, g->place->name);
    if (!g->told)
        fprintf(stderr, "tapegrad: a step on %s is not captured: %s (told once; tensor_graph_info tells)\n",
                g->place->name, g->why);
    g->told = true;
    return 0;
}

bool op_graph_capturing(const char *device)
{
    return graph_serial && (!device || strcmp(device, graph_step->place->name) == 0);
}

int op_graph_break(const char *function, const char *why)
{
    return graph_wait(function, why ? why : "cannot be captured");
}

/* ---- the beginning of a step ----------------------------------------------------------------- */

static int check_begin(const TensorGraph *g, TensorList inputs)
{
    static const char name[] = "tensor_graph_begin";
    if (inputs.count < 0 || inputs.count > TENSOR_GRAPH_TENSORS)
        return fail(TENSOR_EVALUE, name, "%d inputs: at most %d", inputs.count, TENSOR_GRAPH_TENSORS);
    if (inputs.count && !inputs.item) return fail(TENSOR_ENULL, name, "the list of inputs is NULL");
    for (int i = 0; i < inputs.count; i++)
        if (check_null(inputs.item[i], name, i + 2)) return -1;
    if (g->place->device->lost && g->place->device->lost(g->place->context))
        return kernel_failed(KERNEL_FAILED, name, g->place, NULL);
    return 0;
}

/* Of what is given to a step, and of the modes that it runs in. */
static uint64_t sign(TensorList inputs, int64_t key)
{
    const TensorAutocast cast = autocast_state();
    uint64_t h = mixed((uint64_t)inputs.count, (uint64_t)key);
    for (int i = 0; i < inputs.count; i++) {
        const Tensor *x = inputs.item[i];
        h = mixed(h, mixed(x->dtype, x->ndim));
        for (int d = 0; d < x->ndim; d++) h = mixed(h, (uint64_t)x->shape[d]);
    }
    h = mixed(h, (uint64_t)(uintptr_t)default_place());
    h = mixed(h, (uint64_t)grad_off | (uint64_t)cast.enabled << 1 | (uint64_t)cast.cache_enabled << 2 |
                     (uint64_t)random_torch_masks() << 3);
    return mixed(h, mixed((uint64_t)cast.dtype, (uint64_t)tensor_get_float32_matmul_precision()));
}

static bool alike(const Tensor *a, const Tensor *b)
{
    return a && a->dtype == b->dtype && shape_equal(shape_of(a), shape_of(b));
}

/* Into the tensors that are there, or new ones. */
static int take_inputs(const TensorGraph *g, Tensor **to, TensorList inputs)
{
    for (int i = 0; i < TENSOR_GRAPH_TENSORS; i++) {
        Tensor *x = i < inputs.count ? inputs.item[i] : NULL;
        if (!x || !alike(to[i], x)) {
            tensor_release(to[i]);
            to[i] = x ? new_tensor_as("tensor_graph_begin", shape_of(x), x->dtype, g->place) : NULL;
        }
        if (x && (!to[i] || raw_copy(to[i], x))) return -1;
        if (x) bump_version(to[i]);
    }
    return 0;
}

static int replay(TensorGraph *g, TensorList inputs)
{
    const Device *d = g->place->device;
    if (take_inputs(g, g->own_input, inputs)) return -1;
    if (capture_next(g) || capture_send(g) ||
        kernel_status(d->graphs->launch(g->place->context, g->there), "tensor_graph_begin", g->place,
                      "graph"))
        return -1;
    capture_done(g);
    for (int i = 0; i < TENSOR_GRAPH_TENSORS; i++) {
        if (g->input[i] != g->own_input[i]) replace(&g->input[i], g->own_input[i]);
        if (g->output[i] != g->own_output[i]) replace(&g->output[i], g->own_output[i]);
    }
    g->phase = STEP_REPLAYED, g->failures = 0, g->last = g->signature;
    return 0;
}

/* What the device declines is no error. */
static int begin_capture(TensorGraph *g)
{
    static _Atomic unsigned captures;
    const Device *d = g->place->device;
    if (capture_make_room(g, 0)) return -1;
    const int status = d->graphs->begin(g->place->context, g->there);
    if (status == KERNEL_DECLINED) {
        snprintf(g->why, sizeof g->why, "%s", d->error(g->place->context));
        g->failures = MOST_FAILURES;
        capture_clear(g);
        return g->fallback ? 0 : fail(TENSOR_EDEVICE, "tensor_graph_begin", "%s: %s", g->place->name, g->why);
    }
    if (kernel_status(status, "tensor_graph_begin", g->place, "graph")) return capture_clear(g), -1;
    graph_serial = (uint8_t)(atomic_fetch_add(&captures, 1) % 255 + 1);
    g->capture.changes = atomic_load(&graph_changes);
    g->phase = STEP_CAPTURED;
    return 0;
}

/* As usual, or captured.  odd: beside a captured step, whose memory stays as it is. */
static int run(TensorGraph *g, TensorList inputs)
{
    const bool odd = g->ready;
    if (g->signature != g->last) g->equal = g->failures = 0;
    g->last = g->signature, g->hash = 0, g->quiet = false;
    for (int i = 0; i < TENSOR_GRAPH_TENSORS; i++) {
        replace(&g->output[i], NULL);
        if (odd && g->input[i] == g->own_input[i]) replace(&g->input[i], NULL);
    }
    graph_watches = g->there && g->failures < MOST_FAILURES;
    if (graph_watches) {
        atomic_fetch_add(&call_modes, 1);
        tensor_clear_autocast_cache();
        if (!odd) g->place->device->graphs->use_pool(g->place->context, g->there);
    }
    if (take_inputs(g, g->input, inputs)) return -1;
    g->phase = STEP_EAGER;
    return graph_watches && !odd && g->equal >= g->warmup ? begin_capture(g) : 0;
}

/* Is the captured step the one that comes?  Otherwise it is dropped, unless the other is the first of its
 * kind. */
static bool may_replay(TensorGraph *g)
{
    if (!g->ready) return false;
    if (g->signature == g->of_capture) {
        if (capture_valid(g)) return true;
        g->equal = g->warmup - 1; /* one more that is equal */
        g->failures++;            /* 0 after a replay */
    } else {
        snprintf(g->why, sizeof g->why,
                 "inputs, key or a mode differ from those of the step that was captured");
        if (g->signature != g->last) return false;
    }
    drop_capture(g);
    return false;
}

bool tensor_graph_begin_args(TensorGraphBeginArgs args)
{
    static const char name[] = "tensor_graph_begin";
    TensorGraph *g = args.graph;
    const bool bad = TENSOR_CHECK_OPTIONS(name, args, tensor_graph_begin_defaults);
    if (!g) {
        if (!tensor_error_code()) fail(TENSOR_ENULL, name, "the graph is NULL");
        return false;
    }
    if (graph_step) {
        fail(TENSOR_EVALUE, name, "a step of this thread has begun, and has not ended");
        if (g != graph_step) g->phase = STEP_REFUSED;
        return false;
    }
    graph_step = g, g->phase = STEP_FAILED;
    if (bad || tensor_error_code() || check_begin(g, args.inputs)) return false;
    g->signature = sign(args.inputs, args.key);
    if (may_replay(g)) return replay(g, args.inputs), false;
    if (!run(g, args.inputs)) return true;
    g->phase = STEP_FAILED;
    return false;
}

/* ---- its end --------------------------------------------------------------------------------- */

/* Of a step that has run: was it equal to the last one? */
static bool compare(TensorGraph *g)
{
    const bool same = g->equal > 0 && g->hash == g->last_hash;
    if (!same && g->equal > 0)
        snprintf(g->why, sizeof g->why, "it called other ops, or with other options, than the step before");
    g->equal = same ? g->equal + (g->equal < g->warmup) : 1;
    g->last_hash = g->hash;
    return same;
}

static void end_capture(TensorGraph *g)
{
    const bool failed = tensor_error_code() != TENSOR_OK;
    capture_end(g);
    const bool launched = launch_captured(g) == 0, same = compare(g);
    if (failed || !launched || !same) {
        drop_capture(g);
        return;
    }
    for (int i = 0; i < TENSOR_GRAPH_TENSORS; i++) {
        replace(&g->own_input[i], g->input[i]);
        replace(&g->own_output[i], g->output[i]);
    }
    g->ready = true, g->of_capture = g->signature, *g->why = 0;
}

static void end_step(TensorGraph *g)
{
    if (g->phase == STEP_CAPTURED) end_capture(g), g->info.captured++;
    else if (g->phase == STEP_EAGER && graph_watches) compare(g);
    if (g->phase == STEP_EAGER) g->info.eager++;
    else if (g->phase == STEP_REPLAYED) g->info.replayed++;
    if (tensor_error_code()) g->equal = 0;
    if (graph_watches) {
        g->place->device->graphs->use_pool(g->place->context, NULL);
        tensor_clear_autocast_cache();
        atomic_fetch_sub(&call_modes, 1);
    }
    graph_watches = false, graph_step = NULL, g->phase = STEP_NONE;
}

int tensor_graph_end(TensorGraph *g)
{
    static const char name[] = "tensor_graph_end";
    if (!g) return tensor_error_code() ? -1 : fail(TENSOR_ENULL, name, "the graph is NULL");
    if (g->phase == STEP_REFUSED) return g->phase = STEP_NONE, -1;
    if (g != graph_step) return fail(TENSOR_EVALUE, name, "no step of it has begun in this thread");
    end_step(g);
    return tensor_error_code() ? -1 : 0;
}

void tensor_graph_free(TensorGraph *g)
{
    if (!g) return;
    if (g == graph_step) end_step(g);
    drop_capture(g);
    for (int i = 0; i < TENSOR_GRAPH_TENSORS; i++) replace(&g->input[i], NULL), replace(&g->output[i], NULL);
    if (g->there) g->place->device->graphs->free(g->place->context, g->there);
    tg_free(g, sizeof *g);
}

/* ---- what goes in and out -------------------------------------------------------------------- */

static Tensor *tensor_at(const char *name, const char *what, const TensorGraph *g, Tensor *const *list, int i)
{
    if (!g) return tensor_error_code() ? 0 : fail(TENSOR_ENULL, name, "the graph is NULL"), NULL;
    if (i >= 0 && i < TENSOR_GRAPH_TENSORS && list[i]) return borrow(list[i]);
    if (!tensor_error_code()) fail(TENSOR_EINDEX, name, "the step has no %s %d", what, i);
    return NULL;
}

Tensor *tensor_graph_input(TensorGraph *g, int i)
{
    return tensor_at("tensor_graph_input", "input", g, g ? g->input : NULL, i);
}

Tensor *tensor_graph_output(TensorGraph *g, int i)
{
    return tensor_at("tensor_graph_output", "output", g, g ? g->output : NULL, i);
}

int tensor_graph_set_output(TensorGraph *g, int i, Tensor *x)
{
    static const char name[] = "tensor_graph_set_output";
    if (!g) return tensor_error_code() ? -1 : fail(TENSOR_ENULL, name, "the graph is NULL");
    if (check_null(x, name, 3)) return -1;
    if (g != graph_step || g->phase == STEP_REPLAYED)
        return fail(TENSOR_EVALUE, name, "no step of it is running in this thread");
    if (i < 0 || i >= TENSOR_GRAPH_TENSORS)
        return fail(TENSOR_EINDEX, name, "output %d: want 0 to %d", i, TENSOR_GRAPH_TENSORS - 1);
    if (x->place != g->place)
        return fail(TENSOR_EDEVICE, name, "%s is on %s: want %s", S(x), x->place->name, g->place->name);
    Tensor *alias = new_view(x, x->ndim, x->shape, x->stride, 0);
    if (!alias) return -1;
    tensor_release(g->output[i]);
    g->output[i] = alias;
    return graph_serial ? graph_keep(x) : 0;
}

TensorGraphInfo tensor_graph_info(const TensorGraph *g)
{
    TensorGraphInfo info = g ? g->info : (TensorGraphInfo){ 0 };
    info.why = g ? g->why : "";
    return info;
}
