/* test_optim_answers.c - what every optimizer answers to each of its options changed, and its step over lists
 * to each list changed: a step, or why it is refused (answers.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include "answers.h"
#include "optim/fused_calls.h"

static const char *run(const void *params, void *ctx)
{
    const OptimKind *kind = ctx;
    _Alignas(16) char args[1024];
    Tensor *p = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true);
    memcpy(args, params, kind->args);
    *(TensorList *)(void *)args = TENSORS(p);
    Optimizer *opt = optim_new(kind, args);
    const int done = opt ? tensor_set_grad(p, tensor_ones(SHAPE(2), TENSOR_F64)) || optim_step(opt) : -1;
    const char *answer = done ? answers_error(kind->function) : "steps";
    optim_free(opt);
    return answer;
}

/* ---- steps over lists ------------------------------------------------------------------------- */

enum { LISTS = 5, LENGTH = 2 };

typedef struct Lists {
    Tensor *item[LISTS][LENGTH + 1];
    int count[LISTS];
    int64_t step;
} Lists;

static int states_of(const OptimKind *kind, const void *options)
{
    int n = 0;
    for (int s = 0; s < OPTIM_STATES && kind->state[s]; s++)
        n += !kind->states || kind->states(options) >> s & 1;
    return n;
}

static Lists lists_for(const OptimKind *kind, const void *options)
{
    Lists l = { .step = 1 };
    for (int k = 0; k < LISTS; k++) {
        l.count[k] = k < 2 + states_of(kind, options) ? LENGTH : 0;
        for (int i = 0; i <= LENGTH; i++) l.item[k][i] = tensor_ones(SHAPE(2), TENSOR_F64);
    }
    return l;
}

static void step_lists(const OptimKind *kind, const void *options, const Lists *l, const char *thing,
                       const char *value)
{
    TensorList list[LISTS];
    for (int k = 0; k < LISTS; k++) list[k] = TENSOR_LIST(l->item[k], l->count[k]);
    const Fused *f = fused_of(kind);
    const TensorFusedLists lists = { list[0], list[1], l->step, list[2], list[3], list[4] };
    answer(thing, value, f->call(lists, options) ? answers_error(f->function) : "steps");
}

static void answers_lists(const OptimKind *kind, const void *options)
{
    static const char *const name[LISTS] = { "params", "grads", "state1", "state2", "state3" };
    static const char *const others[] = { "NULL", "[3]", "f32", "i64", "params[0]" };
    TensorScope scope = tensor_scope_open();
    char value[8], thing[16];
    for (int64_t step = -1; step < 3; step++) {
        Lists l = lists_for(kind, options);
        l.step = step;
        snprintf(value, sizeof value, "%lld", (long long)step);
        step_lists(kind, options, &l, "step", value);
    }
    for (int k = 0; k < LISTS; k++)
        for (int n = 0; n <= LENGTH + 1; n++) {
            Lists l = lists_for(kind, options);
            l.count[k] = n;
            snprintf(value, sizeof value, "%d", n);
            step_lists(kind, options, &l, name[k], value);
        }
    for (int k = 0; k < 2 + states_of(kind, options); k++)
        for (int i = 0; i < 5; i++) {
            Lists l = lists_for(kind, options);
            Tensor *const other[] = { NULL, tensor_ones(SHAPE(3), TENSOR_F64),
                                      tensor_ones(SHAPE(2), TENSOR_F32), tensor_ones(SHAPE(2), TENSOR_I64),
                                      l.item[0][0] };
            l.item[k][1] = other[i];
            snprintf(thing, sizeof thing, "%s[1]", name[k]);
            step_lists(kind, options, &l, thing, others[i]);
        }
    tensor_scope_close(scope);
}

/* With the defaults, and with each option that wants more states. */
static void answers_fused(const OptimKind *kind)
{
    _Alignas(16) char options[1024];
    answers_about("%s over lists", kind->name);
    answers_lists(kind, kind->defaults);
    for (const OpField *f = kind->fields; f->name; f++) {
        memcpy(options, kind->defaults, kind->args);
        if (f->type == OP_BOOL) *(bool *)(options + f->offset) = true;
        else if (f->type == OP_DOUBLE) *(double *)(void *)(options + f->offset) = 0.5;
        if (states_of(kind, options) == states_of(kind, kind->defaults)) continue;
        answers_about("%s over lists, %s", kind->name, f->name);
        answers_lists(kind, options);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const OptimKind *const *)a)->name, (*(const OptimKind *const *)b)->name);
}

int main(int argc, char **argv)
{
    const int n = optim_kind_count();
    const OptimKind **kind = calloc((size_t)n, sizeof *kind);
    if (!kind) return 1;
    for (int i = 0; i < n; i++) kind[i] = optim_kind_at(i);
    qsort(kind, (size_t)n, sizeof *kind, by_name);
    answers_begin(argc, argv, "test/optim/answers.golden");
    for (int i = 0; i < n; i++) {
        answers_about("%s", kind[i]->name);
        answers_options(kind[i]->fields, kind[i]->defaults, kind[i]->args, run, (void *)(uintptr_t)kind[i]);
        if (fused_of(kind[i])) answers_fused(kind[i]);
    }
    free(kind);
    return answers_end();
}
