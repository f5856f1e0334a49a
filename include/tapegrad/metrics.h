/* metrics.h - quality of a net's outputs, accumulated over batches.
 *
 *     Metric *accuracy = nn_metric_accuracy();
 *     for (Batch *b; (b = data_next(test)) != NULL;) nn_metric_update(accuracy, nn_forward(net, b->x), b->y);
 *     printf("%.4f\n", nn_metric_compute(accuracy));
 *     nn_metric_free(accuracy);
 *
 * Outputs have one of three forms, beside a target of integers (or of floats 0 and 1):
 *   scores  floats [N, C, d1, ...], target [N, d1, ...]: the class is that of the highest score, C > 1; if
 *           these shapes do not fit, [N, d1, ..., C], as for tokens
 *   binary  floats of the target's shape, or [N, 1] beside [N]: class 1 above .threshold (logits: 0)
 *   labels  integers of the target's shape
 * Targets equal to .ignore_index are not counted.  ESHAPE: none of these forms.  EDTYPE: a target of other
 * floats.  EVALUE: a target outside the classes of the scores, of binary outputs or of num_classes; top_k
 * above the number of classes.  Errors name the metric; a failed update changes nothing.
 *
 * A batch on a device is counted there; the host waits only when it reads the metric (nn_metric_compute,
 * _tensor, _state_dict).  Wrong targets are reported then, and all batches since the last read are discarded.
 * Functions on NULL do nothing and return NaN, NULL or 0. */
#ifndef TAPEGRAD_METRICS_H
#define TAPEGRAD_METRICS_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Metric Metric;

typedef enum NNAverage {
    NN_MACRO,    /* mean over the classes that appear in outputs or targets */
    NN_MICRO,    /* from the counts of all classes together */
    NN_WEIGHTED, /* mean weighted by the number of targets of each class */
    NN_BINARY    /* class 1 alone */
} NNAverage;

/* NN_MIN, NN_MAX: lower, or higher, values are better.  NN_AUTO: not stated. */
typedef enum NNMode { NN_AUTO, NN_MIN, NN_MAX } NNMode;

typedef double (*NNMetricFn)(Tensor *output, Tensor *target, void *ctx);

typedef struct NNMetricArgs {
    int64_t num_classes; /* required where it is the first argument */
    int64_t top_k;
    TensorByName by_name;
    NNAverage average;
    double threshold;
    int64_t ignore_index;
    const char *name; /* NULL: "accuracy", "f1", ... */
    NNMode mode;      /* NN_AUTO: NN_MIN for perplexity, none for mean and custom, else NN_MAX */
    NNMetricFn fn;    /* of nn_metric_custom */
    void *ctx;
    bool unused_;
    TensorFromDefaults from_defaults;
} NNMetricArgs;
#define NN_METRIC_DEFAULTS                                                                     \
    .num_classes = 0, .top_k = 1, .average = NN_MACRO, .threshold = 0.5, .ignore_index = -100, \
    TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNMetricArgs nn_metric_defaults;

/* nn_metric_accuracy(.top_k = 5) - the fraction of correct predictions; with top_k > 1 (scores only), the
 *     fraction whose target is among the k highest scores.
 * nn_metric_precision(10), nn_metric_recall, nn_metric_f1 - TP / (TP + FP), TP / (TP + FN), the harmonic mean
 *     of both, averaged over num_classes; a quotient of zeros is 0.   (sklearn.metrics with zero_division=0)
 * nn_metric_confusion_matrix(10) - counts [target, output], for nn_metric_tensor; nn_metric_compute gives the
 * accuracy.
 * nn_metric_perplexity - e^(mean cross-entropy) of scores.
 * NULL: EVALUE: fewer than 2 classes; top_k < 1, or > 1 except for accuracy; a NaN threshold.  ENOMEM. */
#define nn_metric_accuracy(...) \
    TENSOR_CALL_(nn_metric_accuracy_args, NNMetricArgs, NN_METRIC_DEFAULTS, .unused_ = false, __VA_ARGS__)
#define nn_metric_precision(...) \
    TENSOR_CALL_(nn_metric_precision_args, NNMetricArgs, NN_METRIC_DEFAULTS, .num_classes = __VA_ARGS__)
#define nn_metric_recall(...) \
    TENSOR_CALL_(nn_metric_recall_args, NNMetricArgs, NN_METRIC_DEFAULTS, .num_classes = __VA_ARGS__)
#define nn_metric_f1(...) \
    TENSOR_CALL_(nn_metric_f1_args, NNMetricArgs, NN_METRIC_DEFAULTS, .num_classes = __VA_ARGS__)
#define nn_metric_confusion_matrix(...)                                             \
    TENSOR_CALL_(nn_metric_confusion_matrix_args, NNMetricArgs, NN_METRIC_DEFAULTS, \
                 .num_classes = __VA_ARGS__)
#define nn_metric_perplexity(...) \
    TENSOR_CALL_(nn_metric_perplexity_args, NNMetricArgs, NN_METRIC_DEFAULTS, .unused_ = false, __VA_ARGS__)
TAPEGRAD_API Metric *nn_metric_accuracy_args(NNMetricArgs args);
TAPEGRAD_API Metric *nn_metric_precision_args(NNMetricArgs args);
TAPEGRAD_API Metric *nn_metric_recall_args(NNMetricArgs args);
TAPEGRAD_API Metric *nn_metric_f1_args(NNMetricArgs args);
TAPEGRAD_API Metric *nn_metric_confusion_matrix_args(NNMetricArgs args);
TAPEGRAD_API Metric *nn_metric_perplexity_args(NNMetricArgs args);

/* nn_metric_mean("loss", .mode = NN_MIN) - the mean of all elements of all outputs; ignores the target.
 * nn_metric_custom("mae", fn, ctx, .mode = NN_MIN) - the mean over samples of your function: fn(output,
 *     target, ctx) returns a batch's mean, or NaN and an error; its weight is the output's first size.
 * .mode tells nn_fit which values are better when it monitors the metric.  NULL: as above, ENULL without
 * fn. */
#define nn_metric_mean(...) \
    TENSOR_CALL_(nn_metric_mean_args, NNMetricArgs, NN_METRIC_DEFAULTS, .name = __VA_ARGS__)
#define nn_metric_custom(name_, fn_, ...)                                                           \
    TENSOR_CALL_(nn_metric_custom_args, NNMetricArgs, NN_METRIC_DEFAULTS, .name = name_, .fn = fn_, \
                 .ctx = __VA_ARGS__)
TAPEGRAD_API Metric *nn_metric_mean_args(NNMetricArgs args);
TAPEGRAD_API Metric *nn_metric_custom_args(NNMetricArgs args);

/* nn_metric_update - adds a batch, outside the graph.  0 or -1.
 * nn_metric_compute - the value so far; NaN before the first sample.
 * nn_metric_tensor - the value in full, on the CPU: i64 [C, C] counts of a confusion matrix; f64 [C], a value
 *     for each class, of precision, recall and f1; else the value, f64 [].
 * nn_metric_reset - discards all batches.
 * nn_metric_mode - which values are better. */
TAPEGRAD_API int nn_metric_update(Metric *metric, Tensor *output, Tensor *target);
TAPEGRAD_API double nn_metric_compute(Metric *metric);
TAPEGRAD_API Tensor *nn_metric_tensor(Metric *metric);
TAPEGRAD_API void nn_metric_reset(Metric *metric);
TAPEGRAD_API const char *nn_metric_name(const Metric *metric);
TAPEGRAD_API NNMode nn_metric_mode(const Metric *metric);
TAPEGRAD_API void nn_metric_free(Metric *metric);

/* nn_metric_state_dict - the counts, f64, under the name of the metric's kind ("accuracy", "f1", "mean",
 *     "custom", ...).  Owned by the metric, valid until the next call.
 * nn_metric_load_state_dict - sets the counts.  EVALUE: another kind; ESHAPE: another number of classes. */
TAPEGRAD_API TensorDict nn_metric_state_dict(Metric *metric);
TAPEGRAD_API int nn_metric_load_state_dict(Metric *metric, TensorDict dict);

#ifdef __cplusplus
}
#endif
#endif
