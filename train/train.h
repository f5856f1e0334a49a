/* train.h - what fit and evaluate share. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <tapegrad.h>
#include "hidden.h"

#if defined(__GNUC__)
HIDDEN_BEGIN
#endif

double train_now(void); /* seconds of a clock that nobody sets */

/* The mean loss of a batch, and the output for metrics: by step, or by the loss of net(x) and y.  Without
 * either the loss is NULL.  -1: an error. */
int train_forward(const NNEvaluateArgs *args, const char *function, const Batch *b, Tensor **loss,
                  Tensor **output);

int train_update_metrics(Metric *const *metrics, const char *function, Tensor *output, Tensor *target);
int train_count_metrics(Metric *const *metrics);

/* A sum over batches of loss times samples.  Losses of a device stay there until the sum is read. */
typedef struct LossSum {
    double sum, count;
    double last;    /* loss of the last batch, once it was read */
    double bad;     /* the first one that was not finite ... */
    int64_t behind; /* ... and how many came after it, when it was read; -1: none was */
    Tensor *there;  /* those that are not yet in sum, f64 [room] */
    double *value;  /* room for them, and how many samples each is the mean of */
    int64_t *samples;
    int64_t waiting, room; /* room: batches of an epoch */
    const char *function;
} LossSum;
LossSum loss_sum_begin(const char *function, const DataLoader *loader);
int loss_sum_add(LossSum *s, Tensor *loss, int64_t samples);
double loss_sum_read(LossSum *s); /* the mean; 0 before the first one */
void loss_sum_reset(LossSum *s);
void loss_sum_end(LossSum *s);

#if defined(__GNUC__)
HIDDEN_END
#endif
#endif
