/* rule.c - runs rules (rule.h).  For the parameters of a group: one parallel pass over all dense ones on the
 * CPU, one call of a device over the dense ones there, each other one separately. */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "optim.h"

enum {
    MOST_NAMES = OPTIM_NUMBERS + OPTIM_STATES + 2,
    WORK = 8 /* of an element, as tensor_parallel_for counts */
};

/* ---- dense on the CPU ------------------------------------------------------------------------ */

typedef struct Step {
    const OptimKind *kind;
    const OptimRule *rule;
    const void *options;
    OptimParam *const *p;
    Tensor *const *grad;
    Tensor *found;
} Step;

/* The states that a rule works on, in its order; returns their number. */
static int states_of(const OptimKind *kind, const void *options, const OptimParam *p, Tensor **state)
{
    const unsigned needed = optim_states(kind, options);
    int n = 0;
    for (int s = 0; s < OPTIM_STATES; s++)
        if (needed >> s & 1) state[n++] = p->state[s];
    return n;
}

void optim_loop(const OptimRule *rule, const double *k, Tensor *x, Tensor *g, Tensor *const *state,
                int states, int64_t from, int64_t count)
{
    const bool is_f64 = tensor_dtype(x) == TENSOR_F64;
    const int64_t skip = from * (is_f64 ? 8 : 4);
    void *data[OPTIM_STATES];
    for (int s = 0; s < states; s++) data[s] = (char *)tensor_data(state[s]) + skip;
    rule->loop[optim_width()][is_f64](k, count, (char *)tensor_data(x) + skip, (char *)tensor_data(g) + skip,
                                      data);
}

static bool same_numbers(const OptimParam *a, const OptimParam *b)
{
    return a->step == b->step && a->fresh == b->fresh && memcmp(a->number, b->number, sizeof a->number) == 0;
}

/* Parameters of one step number share theirs. */
static void step_piece(const OptimPass *pass, OptimSpan *span, int i, int64_t from, int64_t count)
{
    const Step *a = pass->ctx;
    OptimParam *p = a->p[i];
    Tensor *state[OPTIM_STATES];
    if (span->last < 0 || !same_numbers(a->p[span->last], p)) a->kind->numbers(a->options, p, span->k);
    span->last = i;
    const int states = states_of(a->kind, a->options, p, state);
    optim_loop(a->rule, span->k, p->tensor, a->grad[i], state, states, from, count);
}

/* ---- any dtype, layout and device ------------------------------------------------------------ */

/* The next "name = expression;" of a step. */
static const char *next_assignment(const char *step, char name[32], char *text, size_t size)
{
    size_t n = 0;
    while (isspace((unsigned char)*step)) step++;
    while (isalnum((unsigned char)*step) && n < 31) name[n++] = *step++;
    name[n] = 0;
    step += strspn(step, " =");
    n = strcspn(step, ";");
    snprintf(text, size, "%.*s", (int)n, step);
    return step[n] ? step + n + 1 : step + n;
}

/* x, g, the states, then the numbers. */
static int name_all(const OptimRule *rule, const double *k, Tensor *const *numbers, Tensor *x, Tensor *g,
                    Tensor *const *state, OpName *names)
{
    int n = 0;
    names[n++] = (OpName){ "x", x, 0 };
    names[n++] = (OpName){ "g", g, 0 };
    for (int s = 0; s < OPTIM_STATES && rule->state[s]; s++)
        names[n++] = (OpName){ rule->state[s], state[s], 0 };
    for (int i = 0; i < OPTIM_NUMBERS && rule->number[i]; i++)
        names[n++] = (OpName){ rule->number[i], numbers ? numbers[i] : NULL, numbers ? 0 : k[i] };
    return n;
}

int optim_evaluate(const char *function, const OptimRule *rule, const double *k, Tensor *const *numbers,
                   Tensor **x, Tensor *g, Tensor **state, int states)
{
    const TensorDtype wide = tensor_dtype(*x) == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    Tensor *as_wide[OPTIM_STATES];
    OpName names[MOST_NAMES];
    for (int s = 0; s < states; s++) as_wide[s] = tensor_to(state[s], wide);
    const int n = name_all(rule, k, numbers, tensor_to(*x, wide), tensor_to(g, wide), as_wide, names);
    for (const char *at = rule->step; *at;) {
        char name[32], text[400];
        at = next_assignment(at, name, text, sizeof text);
        Tensor *y = tensor_error_code() ? NULL : op_formula(function, text, names, n);
        for (int i = 0; i < n; i++)
            if (strcmp(names[i].name, name) == 0) names[i].tensor = y;
        if (!y) return -1;
    }
    for (int s = 0; s < states; s++) state[s] = names[2 + s].tensor;
    *x = names[0].tensor;
    return 0;
}

static int count_numbers(const OptimRule *rule)
{
    int n = 0;
    while (n < OPTIM_NUMBERS && rule->number[n]) n++;
    return n;
}

static int step_by_ops(const Step *a, OptimParam *p, Tensor *grad)
{
    Tensor *x = p->tensor, *state[OPTIM_STATES], *now[OPTIM_STATES], *numbers[OPTIM_NUMBERS];
    Tensor *number[OPTIM_STATES] = { NULL };
    double k[OPTIM_NUMBERS];
    const int count = count_numbers(a->rule), states = states_of(a->kind, a->options, p, state);
    memcpy(now, state, sizeof now);
    if (!p->unsure) a->kind->numbers(a->options, p, k);
    else if (optim_pick_numbers(a->kind, a->options, p, count, numbers, number)) return -1;
    if (optim_evaluate(a->kind->function, a->rule, k, p->unsure ? numbers : NULL, &x, grad, now, states))
        return -1;
    if (a->found && a->kind->after && optim_carry(a->kind, a->options, p, number, a->found)) return -1;
    for (int s = 0; s < states; s++)
        if (optim_write_unless(a->found, state[s], now[s])) return -1;
    return optim_write_unless(a->found, p->tensor, x);
}

/* ---- on a device ----------------------------------------------------------------------------- */

typedef struct OnDevice {
    Step step;
    const OptimGroup *group;
    Tensor **numbers; /* of a step that is captured: for each parameter that begins a call */
    double k[OPTIM_TABLE * OPTIM_NUMBERS];
} OnDevice;

static bool alike(const void *ctx, int i, int j)
{
    const Step *a = &((const OnDevice *)ctx)->step;
    const OptimParam *p = a->p[i], *q = a->p[j];
    return same_numbers(p, q) && p->unsure == q->unsure && p->skipped == q->skipped;
}

/* A call gets ready before its steps are counted. */
static int numbers_of(void *ctx, int i, OpListRule *call)
{
    OnDevice *d = ctx;
    const Step *a = &d->step;
    const OptimParam *p = a->p[i];
    call->skip = a->found, call->counts = true;
    if (op_graph_capturing(NULL)) {
        if (call->ready) d->numbers[i] = optim_captured_numbers(d->group, i, call->numbers);
        call->number_there = d->numbers[i];
        return d->numbers[i] ? 0 : -1;
    }
    call->number = d->k;
    if (!p->unsure) return a->kind->numbers(a->options, p, d->k), 0;
    optim_number_table(a->kind, a->options, p, d->k);
    call->row = p->skipped, call->rows = p->unsure + 1;
    return 0;
}

/* A parameter of a device, or a dense copy of it: what is made for the step lies densely. */
static Tensor *dense_of(const OptimGroup *g, Tensor *x, int i, bool ready)
{
    if (!optim_is_far(x) || tensor_is_contiguous(x)) return x;
    if (ready) g->dense[i] = tensor_contiguous(x);
    return g->dense[i];
}

/* If a step changes numbers that a skipped step must restore, ops compute them. */
static int run_lists(const Step *step, const OptimGroup *g, int n, bool ready)
{
    memset(g->mark, 0, (size_t)n);
    if (ready) memset(g->dense, 0, (size_t)n * sizeof *g->dense);
    if (step->found && step->kind->after) return 0;
    OnDevice d = { .step = *step, .group = g, .numbers = g->numbers };
    OptimLists l = { .function = step->kind->function,
                     .rule = step->rule,
                     .n = n,
                     .arrays = 2,
                     .item = g->item,
                     .mark = g->mark,
                     .ready = ready,
                     .alike = alike,
                     .numbers = numbers_of,
                     .ctx = &d };
    while (l.arrays < 2 + OPTIM_STATES && step->rule->state[l.arrays - 2]) l.arrays++;
    l.room = g->item + (size_t)n * (size_t)l.arrays;
    for (int i = 0; i < n; i++) {
        Tensor **item = g->item + (size_t)i * (size_t)l.arrays;
        item[0] = dense_of(g, step->p[i]->tensor, i, ready), item[1] = step->grad[i];
        if (!item[0]) return -1;
        states_of(step->kind, step->options, step->p[i], item + 2);
    }
    return optim_run_lists(&l);
}

/* ---- a group --------------------------------------------------------------------------------- */

/* Loops wrote into the memory of dense tensors: what backward saved of them is overwritten. */
static void note_writes(const Step *a, OptimParam *p)
{
    Tensor *state[OPTIM_STATES];
    for (int s = states_of(a->kind, a->options, p, state); s-- > 0;) tensor_bump_version(state[s]);
    tensor_bump_version(p->tensor);
}

static Step step_of(const OptimKind *kind, const OptimGroup *g, Tensor *found)
{
    return (Step){ kind, kind->rule(g->options), g->options, g->stepped, g->grad, found };
}

int optim_make_ready(const OptimKind *kind, const OptimGroup *g, int n, Tensor *found, bool *sure)
{
    const Step a = step_of(kind, g, found);
    const int status = run_lists(&a, g, n, true);
    for (int i = 0; i < n; i++)
        if (!optim_dense(a.p[i]->tensor) && g->mark[i] != OPTIM_LISTED) *sure = false;
    return status;
}

int optim_run(const OptimKind *kind, const OptimGroup *g, int n, Tensor *found)
{
    const Step a = step_of(kind, g, found);
    const OptimPass pass = { n, g->first, step_piece, &a };
    g->first[0] = 0;
    for (int i = 0; i < n; i++)
        g->first[i + 1] = g->first[i] + (optim_dense(a.p[i]->tensor) ? tensor_numel(a.p[i]->tensor) : 0);
    optim_pass(&pass, WORK);
    int status = run_lists(&a, g, n, false);
    for (int i = 0; i < n && !status; i++) {
        if (optim_dense(a.p[i]->tensor)) note_writes(&a, a.p[i]);
        else if (g->mark[i] != OPTIM_LISTED) {
            TensorScope scope = tensor_scope_open();
            status = step_by_ops(&a, a.p[i], a.grad[i]);
            tensor_scope_close(scope);
        } else if (g->dense[i] && !tensor_copy_(a.p[i]->tensor, g->dense[i])) status = -1;
        if (!status && kind->after && !found) kind->after(a.options, a.p[i]);
    }
    return status;
}
