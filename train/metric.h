/* metric.h - a metric's struct, and its counts of a batch. */
#ifndef TRAIN_METRIC_H
#define TRAIN_METRIC_H

#include <tapegrad.h>
#include "hidden.h"

#if defined(__GNUC__)
HIDDEN_BEGIN
#endif

/* What is counted of targets and outputs that are no classes. */
typedef enum Fault { BAD_TARGET, BAD_OUTPUT, FRACTION, FAULTS } Fault;

enum { METRIC_SUMS = 2, METRIC_VALUES = METRIC_SUMS + FAULTS };

/* Of one batch, where the batch lies. */
typedef struct Counts {
    bool here;                    /* on the CPU: classes are counted from guess and truth, and not by ops */
    Tensor *value[METRIC_VALUES]; /* what is added to the sums, then the faults; NULL: nothing */
    double known[METRIC_SUMS];    /* what is added, and needs no look at the batch */
    Tensor *slot;          /* of each target: the place in the matrix where it counts; its end: nowhere */
    Tensor *guess, *truth; /* classes of outputs and targets, to say which one is none */
    int64_t classes;       /* that the outputs tell apart */
} Counts;

typedef struct MetricKind {
    const char *name, *function;
    NNMode mode;
    bool matrix; /* counts of classes, else two sums */
    int (*count)(const Metric *m, Counts *c, Tensor *output, Tensor *target);
    double (*of)(double tp, double fp, double fn); /* of one class */
} MetricKind;

struct Metric {
    const MetricKind *kind;
    NNMetricArgs args;
    char name[48], function[80]; /* "nn_metric_update (name)": what errors of updates name */
    double *sum;
    int64_t sums;
    Tensor *there, *matrix; /* values and slots, f64 and i64, that a device has counted since the last look */
    unsigned present;       /* which values those are */
    int64_t classes;
    TensorDict state;
};

int metric_count_accuracy(const Metric *m, Counts *c, Tensor *output, Tensor *target);
int metric_count_matrix(const Metric *m, Counts *c, Tensor *output, Tensor *target);
int metric_count_perplexity(const Metric *m, Counts *c, Tensor *output, Tensor *target);
int metric_count_mean(const Metric *m, Counts *c, Tensor *output, Tensor *target);
int metric_count_custom(const Metric *m, Counts *c, Tensor *output, Tensor *target);

/* metric_read - takes in what a device has counted.  -1: targets or outputs were no classes, and nothing is
 *     taken.
 * metric_drop - forgets it. */
int metric_read(Metric *m);
void metric_drop(Metric *m);

#if defined(__GNUC__)
HIDDEN_END
#endif
#endif
