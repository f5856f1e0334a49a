/* fused_calls.h - the steps over lists (fused.h), each by one signature. */
#ifndef FUSED_CALLS_H
#define FUSED_CALLS_H

#include <string.h>
#include <tapegrad/fused.h>

#define FUSED(X)                   \
    X(sgd, OptimSgdArgs)           \
    X(adam, OptimAdamArgs)         \
    X(adamw, OptimAdamArgs)        \
    X(radam, OptimRadamArgs)       \
    X(adamax, OptimAdamaxArgs)     \
    X(adagrad, OptimAdagradArgs)   \
    X(adadelta, OptimAdadeltaArgs) \
    X(rmsprop, OptimRmspropArgs) X(rprop, OptimRpropArgs) X(lion, OptimLionArgs)

#define FUSED_CALL(NAME, ARGS)                                          \
    static int call_##NAME(TensorFusedLists lists, const void *args)    \
    {                                                                   \
        return tensor_fused_##NAME##_args_(lists, *(const ARGS *)args); \
    }
FUSED(FUSED_CALL)

typedef struct Fused {
    const char *function, *optimizer;
    int (*call)(TensorFusedLists lists, const void *args);
} Fused;

static const Fused fused[] = {
#define FUSED_ROW(NAME, ARGS) { "tensor_fused_" #NAME "_", "optim_" #NAME, call_##NAME },
    FUSED(FUSED_ROW)
};

/* NULL: of an optimizer alone. */
static inline const Fused *fused_of(const OptimKind *kind)
{
    for (size_t i = 0; i < sizeof fused / sizeof *fused; i++)
        if (strcmp(fused[i].optimizer, kind->function) == 0) return &fused[i];
    return NULL;
}

#endif
