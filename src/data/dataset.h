/* dataset.h - a dataset is one function that makes a batch from a list of indices. */
#ifndef TG_DATASET_H
#define TG_DATASET_H

#include <tapegrad/data.h>
#include "../core.h"

struct Dataset {
    atomic_int refs;
    int64_t size;
    int (*batch)(Dataset *data, const int64_t *index, int64_t n, Tensor **x, Tensor **y);     /* owned by the scope */
    void (*destroy)(Dataset *data);
    Tensor *x, *y;              /* tensors and images: all of them */
    float scale, shift;         /* images: value = pixel * scale + shift */
    int (*get)(void *ctx, int64_t i, Tensor **x, Tensor **y);
    void (*destroy_ctx)(void *ctx);
    void *ctx;
};

#pragma GCC visibility push(hidden)
Dataset *dataset_new(const char *op, int64_t size);
#pragma GCC visibility pop

#endif
