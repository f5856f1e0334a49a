/* test_optim_answers.c - what every optimizer answers to each of its options changed: a step, or why it is
 * refused (answers.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include "answers.h"

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
    }
    free(kind);
    return answers_end();
}
