/* host.c - the host fallback: computes calls for which a device has no kernel with the CPU's kernels, on
 * copies of the operands, and copies the results back.  Counts them, and warns once in a process. */
#include <stdio.h>
#include <stdlib.h>
#include "host.h"

static _Atomic int64_t fallbacks;

int64_t tensor_host_fallbacks(void) { return atomic_load(&fallbacks); }

static int begin(const char *name, const Place *place)
{
    if (graph_wait(name, "is computed by the host")) return -1;
    const char *refused = getenv("TAPEGRAD_NO_FALLBACK");
    if (refused && *refused == '1')
        return fail(TENSOR_EDEVICE, name, "%s has no kernel for it, and TAPEGRAD_NO_FALLBACK=1", place->name);
    if (atomic_fetch_add(&fallbacks, 1) == 0)
        fprintf(stderr,
                "tapegrad: %s has no kernel for %s: the host computes it, from copies "
                "(told once; tensor_host_fallbacks counts, TAPEGRAD_NO_FALLBACK=1 refuses)\n",
                place->name, name);
    return 0;
}

/* The ops of a composed one record, so its operands and results are copied on the graph.  The forward of any
 * other sees which operands are on it. */
static Tensor *copied(const OpCall *c, Tensor *x, const Place *to)
{
    if (c->op->compose) return graph_ops.to_device(x, to->name);
    Tensor *y = own(raw_carry(x, to));
    if (y && y != x && on_graph(x)) y->flags |= FLAG_REQUIRES_GRAD;
    return y;
}

int host_begin(OpCall *c, const Place *place, Tensor **copy)
{
    if (begin(c->name, place)) return -1;
    for (int i = 0; i < c->n; i++) {
        copy[i] = c->input[i] ? copied(c, c->input[i], &cpu_place) : NULL;
        if (c->input[i] && !copy[i]) return -1;
    }
    c->input = copy;
    return 0;
}

static int carry_back(const OpCall *c, Tensor **x, int n, const Place *place)
{
    for (int i = 0; i < n; i++)
        if (!(x[i] = copied(c, x[i], place))) return -1;
    return 0;
}

int host_end(OpCall *c, const Place *place, Tensor *const *inputs)
{
    for (int k = 0; k < c->commits; k++) /* to a copy of an input: to the input itself */
        for (int i = 0; i < c->n; i++) {
            if (c->commit[k].to != c->input[i] || c->input[i] == inputs[i]) continue;
            tensor_release(c->commit[k].to);
            c->commit[k].to = tensor_retain(inputs[i]);
            break;
        }
    c->input = inputs;
    return carry_back(c, c->output, c->outputs, place) || carry_back(c, c->extra, c->extras, place) ? -1 : 0;
}

/* The device of an entry's operands. */
static const Place *place_of(const Entry *e)
{
    for (int i = 0; i < e->inputs; i++)
        if (e->meta[i].place) return e->meta[i].place;
    return &cpu_place;
}

/* A gradient is missing because a call inside backward failed, not because it is zero. */
static int run_backward(OpCall *c)
{
    const unsigned before = failure_count;
    Tensor *dy = op_grad(c, 0);
    const int status = dy ? c->op->backward(c, dy, c->dx) : -1;
    return call_status(c, status, before);
}

static COLD int backward_on_host(OpCall *c, const Place *place)
{
    memset(c->dx, 0, (size_t)c->n * sizeof *c->dx);
    c->failed = false, c->by_host = true;
    return begin(c->name, place) ? -1 : run_backward(c);
}

int backward_somewhere(OpCall *c)
{
    const Place *place = place_of(c->entry);
    if (likely(has_kernels(c->op, place))) {
        const int status = run_backward(c);
        if (likely(!status) || !take_decline()) return status;
    }
    return backward_on_host(c, place);
}
