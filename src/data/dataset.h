/* dataset.h - a dataset is one function that makes a batch from a list of indices. */
#ifndef TG_DATASET_H
#define TG_DATASET_H

#include <tapegrad/data.h>
#include "hidden.h"
#include "tensor/core.h"

typedef struct DatasetBatch {
    Tensor *x, *y;
} DatasetBatch; /* references of the caller's */

struct Dataset {
    atomic_int refs;
    int64_t size;
    int (*batch)(const Dataset *data, const int64_t *index, int64_t n,
                 DatasetBatch *out); /* *out begins empty; -1: and ends so */
    Tensor *x, *y;                   /* tensors and images: all of them */
    float value[256];                /* images: of each byte */
    int (*get)(void *ctx, int64_t i, Tensor **x, Tensor **y);
    void (*destroy)(void *ctx);
    void *ctx;
};

HIDDEN_BEGIN
void dataset_drop(DatasetBatch *batch);
HIDDEN_END

#endif
