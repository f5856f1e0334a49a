/* captured.c - steps that are captured and replayed (graph.h).
 *
 *  - The numbers of a rule lie on the device.  Before each replay the host counts the step and computes them,
 *    as it would for a step of its own: the bits are the same.
 *  - Of a step that a flag may skip (unless.c) the host computes the numbers for each count of skipped steps,
 *    a table of fixed size; the count stays in one tensor, in place.
 *  - What is made for the first time, and kinds without a rule, end the capture. */
#include <stdlib.h>
#include <string.h>
#include "optim.h"

typedef struct Member {
    const OptimCaptured *of;
    OptimParam *p;
    Tensor *skipped; /* retained; NULL: no flag */
    bool master;
    int count; /* numbers of the rule: the kind may write more */
} Member;

struct OptimCaptured { /* the stepped parameters of a group */
    const OptimKind *kind;
    const void *options;
    bool counted; /* is the step in p->step? */
    int n;
    Member member[];
};

/* ---- a replay -------------------------------------------------------------------------------- */

static bool may_be_replayed(const Member *m)
{
    const OptimParam *p = m->p;
    if (m->master != (p->master != NULL)) return false;
    if (m->master && (tensor_version(p->tensor) != p->seen || tensor_data(p->tensor) != p->where))
        return false;
    return m->skipped ? !p->skipped || p->skipped == m->skipped : p->unsure == 0;
}

/* Where the count was read, or must be, as there are too many attempts in doubt, it begins at 0 again. */
static void count_anew(OptimCaptured *c, int first)
{
    Tensor *skipped = c->member[first].skipped;
    for (int i = first; i < c->n; i++)
        if (c->member[i].skipped == skipped && optim_settle(c->member[i].p)) return;
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    Tensor *zero = tensor_fill_(skipped, 0);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    for (int i = first; i < c->n && zero; i++)
        if (c->member[i].skipped == skipped) c->member[i].p->skipped = tensor_retain(skipped);
}

static void next(OptimCaptured *c)
{
    c->counted = true;
    for (int i = 0; i < c->n; i++) {
        const Member *m = &c->member[i];
        if (m->skipped && (!m->p->skipped || optim_doubts_enough(m->p))) count_anew(c, i);
    }
    for (int i = 0; i < c->n; i++) c->member[i].p->step++;
}

static void done(const OptimCaptured *c)
{
    for (int i = 0; i < c->n; i++) {
        const Member *m = &c->member[i];
        OptimParam *p = m->p;
        if (m->skipped) p->unsure++;
        else {
            if (c->kind->after) c->kind->after(c->options, p);
            p->fresh = false;
        }
        if (m->master) p->seen = tensor_version(p->tensor), p->where = tensor_data(p->tensor);
    }
}

static int on_replay(void *ctx, OpGraphPhase phase)
{
    OptimCaptured *c = ctx;
    bool fits = true;
    for (int i = 0; i < c->n && phase == OP_GRAPH_CHECK; i++) fits = fits && may_be_replayed(&c->member[i]);
    if (phase == OP_GRAPH_NEXT) next(c);
    if (phase == OP_GRAPH_DONE) done(c);
    return fits ? 0 : -1;
}

static void drop(void *ctx)
{
    OptimCaptured *c = ctx;
    for (int i = 0; i < c->n; i++) tensor_release(c->member[i].skipped);
    free(c);
}

/* ---- a capture ------------------------------------------------------------------------------- */

/* Why the step of g cannot be captured; NULL: it can. */
static const char *obstacle(const Optimizer *opt, const OptimGroup *g, int n)
{
    if (!opt->kind->rule) return "computes with numbers of the host";
    for (int i = 0; i < n; i++) {
        const OptimParam *p = g->stepped[i];
        if (!op_graph_capturing(tensor_device(p->tensor))) return "steps parameters of another device";
        if (opt->found && !p->skipped) return "attempts its first step";
    }
    for (int i = 0; i < g->count && opt->found; i++)
        if (g->param[i].skipped && !g->param[i].next) return "steps a part of its parameters";
    return NULL;
}

int optim_capture_group(const Optimizer *opt, OptimGroup *g, int n)
{
    g->captured = NULL;
    if (!op_graph_capturing(NULL) || n == 0) return 0;
    const char *why = obstacle(opt, g, n);
    if (why) return op_graph_break(opt->kind->function, why);
    OptimCaptured *c = calloc(1, sizeof *c + (size_t)n * sizeof *c->member);
    if (!c) return tensor_fail(TENSOR_ENOMEM, opt->kind->function, "out of memory");
    c->kind = opt->kind, c->options = g->options, c->n = n;
    for (int i = 0; i < n; i++) {
        OptimParam *p = g->stepped[i];
        c->member[i] = (Member){ c, p, opt->found ? tensor_retain(p->skipped) : NULL, p->half != NULL, 0 };
    }
    if (op_graph_on_replay(on_replay, c, drop)) return -1;
    g->captured = c;
    return 0;
}

static OptimParam counted(const Member *m)
{
    OptimParam as = *m->p;
    as.step += !m->of->counted;
    return as;
}

static void fill(void *ctx, double *values)
{
    const Member *m = ctx;
    const OptimParam as = counted(m);
    double all[OPTIM_NUMBERS];
    m->of->kind->numbers(m->of->options, &as, all);
    memcpy(values, all, (size_t)m->count * sizeof *values);
}

static void fill_table(void *ctx, double *values)
{
    const Member *m = ctx;
    const OptimParam as = counted(m);
    optim_number_table(m->of->kind, m->of->options, &as, values);
}

Tensor *optim_captured_numbers(const OptimGroup *g, int i, int count)
{
    Member *m = &g->captured->member[i];
    const TensorDtype dtype = tensor_dtype(m->p->tensor) == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    m->count = count;
    if (!m->skipped) return op_graph_numbers(count, dtype, fill, m);
    Tensor *table = op_graph_numbers(OPTIM_TABLE * OPTIM_NUMBERS, dtype, fill_table, m);
    table = tensor_reshape(table, SHAPE(OPTIM_TABLE, OPTIM_NUMBERS));
    return tensor_select(tensor_index_select(table, 0, m->skipped), 0, 0);
}
