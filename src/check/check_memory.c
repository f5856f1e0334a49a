/* check_memory.c - checks an op out of memory: each allocation fails in turn, forward and backward.  The call
 * fails with ENOMEM, leaks nothing, and does not change its inputs; or it succeeds without that memory.
 * Strided f16 operands cover casts and copies that dense ones do not need; a recorded sweep covers gradients
 * composed of ops. */
#include <string.h>
#include <tapegrad/debug.h>
#include "report.h"
#include "tensor/scope.h"

enum { MOST_REQUESTS = 8000, NEVER = 1000000000 };

typedef struct Way {
    int floats;
    Layout layout;
    bool create_graph;
} Way;

static const Way ways[] = { { AS_WRITTEN, LAYOUT_DENSE, false },
                            { TENSOR_F32, LAYOUT_DENSE, true },
                            { TENSOR_F16, LAYOUT_STEP, true } };

/* A call that did without the memory gives what it gives with it. */
static bool same_again(const Sample *s, const Way *way, Tensor *const *x, const SampleRun *run)
{
    SampleRun whole;
    bool same = sample_run(s, x, way->create_graph, way->layout, &whole) == run->results;
    for (int i = 0; i < run->results; i++) same &= same_bits(run->y[i], whole.y[i]);
    for (int i = 0; i < s->n; i++) same &= same_bits(run->g[i], whole.g[i]);
    return same;
}

static int64_t bytes_in_use(void)
{
    return tensor_memory().in_use + (sample_device ? tensor_device_memory(sample_device).in_use : 0);
}

/* The n-th request fails; on another device than the CPU, but for the first of the ways, of that device's
 * alone: the host's are many, and the same on the CPU. */
static void fail_request(int64_t n, bool all)
{
    if (sample_device && !all) tensor_debug_fail_device_allocation(sample_device, n, false);
    else tensor_debug_fail_allocation(n, false);
}

/* Does the n-th request come?  The inputs are made before it. */
static bool try_once(const Sample *s, const Way *way, int64_t n)
{
    Tensor *x[OP_MAX_INPUTS], *copy[OP_MAX_INPUTS];
    SampleRun run;
    TensorScope scope = tensor_scope_open();
    sample_inputs(s, way->floats, 3, x);
    for (int i = 0; i < s->n; i++) {
        copy[i] = x[i] ? tensor_clone(x[i]) : NULL;
        if (x[i]) x[i] = strided_copy(x[i], way->layout);
    }
    const int64_t live = tensor_live_count(), tape = tensor_tape_length(), bytes = bytes_in_use();
    TensorScope inner = tensor_scope_open();
    const int scopes = scope_depth();
    untold(s->op);
    fail_request(n, way == ways);
    int results = sample_run(s, x, way->create_graph, way->layout, &run);
    bool came = tensor_debug_allocation_failed();
    tensor_debug_fail_allocation(0, false);
    if (scope_depth() != scopes)
        complain(s, "request %lld fails: %d scopes left open", (long long)n, scope_depth() - scopes);
    if (untold(s->op)) complain(s, "request %lld fails, and the op returns 0", (long long)n);
    if (came && results >= 0 && !tensor_error_code() && !same_again(s, way, x, &run))
        complain(s, "request %lld fails, and the values are others", (long long)n);
    tensor_scope_close(inner);
    if (came && results < 0 && tensor_error_code() != TENSOR_ENOMEM)
        complain(s, "request %lld fails, and that is not the error", (long long)n);
    if (came && results >= 0 && tensor_error_code())
        complain(s, "request %lld fails, and that is not told", (long long)n);
    if (results < 0 && !came && way->layout == LAYOUT_DENSE) complain(s, "is refused");
    tensor_error_clear();
    if (tensor_live_count() != live)
        complain(s, "request %lld fails: %lld tensors left", (long long)n,
                 (long long)(tensor_live_count() - live));
    if (tensor_tape_length() != tape)
        complain(s, "request %lld fails: %lld entries left", (long long)n,
                 (long long)(tensor_tape_length() - tape));
    if (n < NEVER && bytes_in_use() != bytes)
        complain(s, "request %lld fails: %lld bytes left", (long long)n, (long long)(bytes_in_use() - bytes));
    for (int i = 0; i < s->n; i++)
        if (!same_bits(x[i], copy[i]))
            complain(s, "request %lld fails: input %d changed", (long long)n, i + 1);
    tensor_scope_close(scope);
    return came;
}

/* The same in place, into a copy of input 0, which keeps its values, its version and its history. */
static bool try_in_place(const Sample *s, int floats, bool graph, int64_t n)
{
    Tensor *x[OP_MAX_INPUTS], *leaf[OP_MAX_INPUTS];
    TensorScope scope = tensor_scope_open();
    sample_inputs(s, floats, 3, x);
    if (graph) sample_leaves(s, x, leaf);
    else memcpy(leaf, x, sizeof x);
    Tensor *to = leaf[0] = tensor_clone(leaf[0]), *was = tensor_clone(tensor_detach(to));
    const uint32_t version = tensor_version(to);
    const bool wants = tensor_requires_grad(to);
    if (s->op->flags & OP_RANDOM) tensor_manual_seed(7);
    fail_request(n, !graph);
    const bool done = tensor_apply_(s->op, leaf, s->n, s->op->params ? s->params : NULL);
    const bool came = tensor_debug_allocation_failed();
    tensor_debug_fail_allocation(0, false);
    const bool refused = !done && tensor_error_code() != TENSOR_ENOMEM; /* it does not fit */
    tensor_error_clear();
    if (!done && (!same_bits(tensor_detach(to), was) || tensor_version(to) != version ||
                  tensor_requires_grad(to) != wants))
        complain(s, "in place, request %lld fails, and the operand is another", (long long)n);
    tensor_scope_close(scope);
    return came && !refused;
}

/* Under AddressSanitizer, which is slow, every seventh request. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
enum { STEP = 7 };
#else
enum { STEP = 1 };
#endif

static void check_sample(const Sample *s)
{
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        if (ways[w].create_graph && s->op->flags & OP_FIRST_ORDER) continue;
        try_once(s, &ways[w], NEVER); /* the tape and the stack of scopes have their size */
        for (int64_t n = 1; try_once(s, &ways[w], n); n += STEP)
            if (n >= MOST_REQUESTS) return complain(s, "makes more than %d requests", MOST_REQUESTS);
    }
    for (int graph = 0; graph < 2 && !s->input[0].absent && !(s->op->flags & OP_VIEW); graph++)
        for (int64_t n = 1; try_in_place(s, graph ? TENSOR_F16 : AS_WRITTEN, graph, n) && n < MOST_REQUESTS;)
            n += STEP;
}

void check_op_memory(const TensorOp *op) { each_sample(op, check_sample); }
