/* rule.c - runs the rule of an optimizer (rule.h) over the parameters of a group: one parallel pass over all
 * that lie dense on the CPU, each of the others by itself. */
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

typedef struct Pass {
    const OptimKind *kind;
    const OptimRule *rule;
    const void *options;
    OptimParam *const *p;
    Tensor *const *grad;
    int n;
} Pass;

/* The states that a rule works on, in its order; returns their number. */
static int states_of(const OptimKind *kind, const void *options, const OptimParam *p, Tensor **state)
{
    const unsigned needed = optim_states(kind, options);
    int n = 0;
    for (int s = 0; s < OPTIM_STATES; s++)
        if (needed >> s & 1) state[n++] = p->state[s];
    return n;
}

/* Elements from .. from + count of parameter p. */
static void run_piece(const Pass *a, const double *k, OptimParam *p, Tensor *grad, int64_t from,
                      int64_t count)
{
    const bool is_f64 = tensor_dtype(p->tensor) == TENSOR_F64;
    const int64_t skip = from * (is_f64 ? 8 : 4);
    Tensor *state[OPTIM_STATES];
    void *data[OPTIM_STATES];
    const int n = states_of(a->kind, a->options, p, state);
    for (int s = 0; s < n; s++) data[s] = (char *)tensor_data(state[s]) + skip;
    a->rule->loop[optim_wide()][is_f64](k, count, (char *)tensor_data(p->tensor) + skip,
                                        (char *)tensor_data(grad) + skip, data);
}

/* The parameter that element `at` of all lies in. */
static int param_at(const Pass *a, int64_t at)
{
    int low = 0, high = a->n;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (a->p[middle]->first <= at) low = middle;
        else high = middle;
    }
    return low;
}

static bool same_numbers(const OptimParam *a, const OptimParam *b)
{
    return a->step == b->step && a->fresh == b->fresh && memcmp(a->number, b->number, sizeof a->number) == 0;
}

static void run_span(void *ctx, int64_t from, int64_t to)
{
    const Pass *a = ctx;
    double k[OPTIM_NUMBERS];
    const OptimParam *last = NULL; /* parameters of one step number share theirs */
    for (int i = param_at(a, from); from < to; i++) {
        OptimParam *p = a->p[i];
        const int64_t end = i + 1 < a->n ? a->p[i + 1]->first : to, stop = end < to ? end : to;
        if (stop == from || !p->dense) {
            from = stop;
            continue;
        }
        if (!last || !same_numbers(last, p)) a->kind->numbers(a->options, p, k);
        last = p;
        run_piece(a, k, p, a->grad[i], from - p->first, stop - from);
        from = stop;
    }
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
static int name_all(const OptimRule *rule, const double *k, Tensor *x, Tensor *g, Tensor *const *state,
                    OpName *names)
{
    int n = 0;
    names[n++] = (OpName){ "x", x, 0 };
    names[n++] = (OpName){ "g", g, 0 };
    for (int s = 0; s < OPTIM_STATES && rule->state[s]; s++)
        names[n++] = (OpName){ rule->state[s], state[s], 0 };
    for (int i = 0; i < OPTIM_NUMBERS && rule->number[i]; i++)
        names[n++] = (OpName){ rule->number[i], NULL, k[i] };
    return n;
}

static int run_by_ops(const OptimKind *kind, const void *options, OptimParam *p, Tensor *grad)
{
    const OptimRule *rule = kind->rule(options);
    const TensorDtype wide = tensor_dtype(p->tensor) == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    Tensor *state[OPTIM_STATES], *as_wide[OPTIM_STATES];
    double k[OPTIM_NUMBERS];
    OpName names[MOST_NAMES];
    const int states = states_of(kind, options, p, state);
    for (int s = 0; s < states; s++) as_wide[s] = tensor_to(state[s], wide);
    kind->numbers(options, p, k);
    const int n = name_all(rule, k, tensor_to(p->tensor, wide), tensor_to(grad, wide), as_wide, names);
    for (const char *at = rule->step; *at;) {
        char name[32], text[400];
        at = next_assignment(at, name, text, sizeof text);
        Tensor *y = tensor_error_code() ? NULL : op_formula(kind->function, text, names, n);
        for (int i = 0; i < n; i++)
            if (strcmp(names[i].name, name) == 0) names[i].tensor = y;
        if (!y) return -1;
    }
    for (int s = 0; s < states; s++)
        if (!tensor_copy_(state[s], names[2 + s].tensor)) return -1;
    return tensor_copy_(p->tensor, names[0].tensor) ? 0 : -1;
}

/* ---- a group --------------------------------------------------------------------------------- */

/* Loops wrote into the memory of dense tensors: what backward saved of them is overwritten. */
static void note_writes(const Pass *a, OptimParam *p)
{
    Tensor *state[OPTIM_STATES];
    for (int s = states_of(a->kind, a->options, p, state); s-- > 0;) tensor_bump_version(state[s]);
    tensor_bump_version(p->tensor);
}

int optim_run(const OptimKind *kind, const void *options, OptimParam *const *p, Tensor *const *grad, int n)
{
    Pass pass = { kind, kind->rule(options), options, p, grad, n };
    int64_t elements = 0;
    int status = 0;
    for (int i = 0; i < n; i++) {
        p[i]->first = elements;
        p[i]->dense = optim_dense(p[i]->tensor) != 0;
        if (p[i]->dense) elements += tensor_numel(p[i]->tensor);
    }
    tensor_parallel_for(elements, WORK, run_span, &pass);
    for (int i = 0; i < n && !status; i++) {
        TensorScope scope = tensor_scope_open();
        if (p[i]->dense) note_writes(&pass, p[i]);
        else status = run_by_ops(kind, options, p[i], grad[i]);
        tensor_scope_close(scope);
        if (!status && kind->after) kind->after(options, p[i]);
    }
    return status;
}
