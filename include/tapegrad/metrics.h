/* metrics.h - how good a net is, counted over batches.
 *
 *     Metric *accuracy = nn_metric_accuracy();
 *     for (Batch *b; (b = data_next(test)) != NULL;) nn_metric_update(accuracy, nn_forward(net, b->x), b->y);
 *     printf("%.4f\n", nn_metric_compute(accuracy));
 *     nn_metric_free(accuracy);
 *
 * Classes are read from outputs in one of three forms, beside a target of integers (or of floats 0 and 1):
 *   scores  floats [N, C, d1, ...], target [N, d1, ...]: the class of the highest score, C above 1; where
 *           that does not fit, [N, d1, ..., C], as tokens have it
 *   binary  floats of the target's shape, or [N, 1] beside [N]: class 1 above .threshold (logits: 0)
 *   labels  integers of the target's shape
 * A target of .ignore_index counts nowhere.  ESHAPE: none of these.  EDTYPE: a target of other floats.
 * EVALUE: a target that is no class of the scores, binary outputs or num_classes; top_k above their number.
 * Errors name the metric; a failed update changes nothing.
 *
 * A batch on a device is counted there, and nobody waits before the metric is read: nn_metric_compute,
 * _tensor and _state_dict.  What is wrong with it is told then, and what came since the last read is not
 * counted.  Functions on NULL do nothing; what they return is NaN, NULL or 0. */
#ifndef TAPEGRAD_METRICS_H
#define TAPEGRAD_METRICS_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Metric Metric;

typedef enum NNAverage {
    NN_MACRO,    /* the mean over the classes that appeared in outputs or targets */
    NN_MICRO,    /* of all classes together */
    NN_WEIGHTED, /* the mean, weighted by how often each is a target */
    NN_BINARY    /* that of class 1 */
} NNAverage;

/* Which of two numbers is better: the lower, the higher.  NN_AUTO: nobody has said. */
typedef enum NNMode { NN_AUTO, NN_MIN, NN_MAX } NNMode;

typedef double (*NNMetricFn)(Tensor *output, Tensor *target, void *ctx);

typedef struct NNMetricArgs {
    int64_t num_classes; /* must be given where the function takes it first */
    int64_t top_k;
    TensorByName by_name;
    NNAverage average;
    double threshold;
    int64_t ignore_index;
    const char *name; /* NULL: "accuracy", "f1", ... */
    NNMode mode;   /* NN_AUTO: NN_MIN for a perplexity, NN_MAX for the others; a mean and yours have none */
    NNMetricFn fn; /* of nn_metric_custom */
    void *ctx;
    bool unused_;
    TensorFromDefaults from_defaults;
} NNMetricArgs;
#define NN_METRIC_DEFAULTS                                                                     \
    .num_classes = 0, .top_k = 1, .average = NN_MACRO, .threshold = 0.5, .ignore_index = -100, \
    TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNMetricArgs nn_metric_defaults;

/* nn_metric_accuracy(.top_k = 5) - the part that is right; with top_k above 1 (scores only) the part whose
 *     target is among the k highest.
 * nn_metric_precision(10), nn_metric_recall, nn_metric_f1 - TP / (TP + FP), TP / (TP + FN), the harmonic mean
 *     of both, averaged over num_classes; a quotient of zeros is 0.   (sklearn.metrics with zero_division=0)
 * nn_metric_confusion_matrix(10) - counts [target, output] for nn_metric_tensor; its number is the accuracy.
 * nn_metric_perplexity - e^(mean cross-entropy) of scores.
 * NULL: EVALUE (fewer than 2 classes; top_k below 1, or above it but for the accuracy; a threshold of
 * NaN), ENOMEM. */
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

/* nn_metric_mean("loss", .mode = NN_MIN) - the running mean of all elements of what it is fed with; the
 *     target is not looked at.
 * nn_metric_custom("mae", fn, ctx, .mode = NN_MIN) - the mean over samples of a number of yours: fn(output,
 *     target, ctx) gives that of a batch, or NaN and an error; it counts output's first size.
 * .mode is for nn_fit, where it watches the number.  NULL: as above, ENULL without fn. */
#define nn_metric_mean(...) \
    TENSOR_CALL_(nn_metric_mean_args, NNMetricArgs, NN_METRIC_DEFAULTS, .name = __VA_ARGS__)
#define nn_metric_custom(name_, fn_, ...)                                                           \
    TENSOR_CALL_(nn_metric_custom_args, NNMetricArgs, NN_METRIC_DEFAULTS, .name = name_, .fn = fn_, \
                 .ctx = __VA_ARGS__)
TAPEGRAD_API Metric *nn_metric_mean_args(NNMetricArgs args);
TAPEGRAD_API Metric *nn_metric_custom_args(NNMetricArgs args);

/* nn_metric_update - takes a batch in, without gradients.  0 or -1.
 * nn_metric_compute - the number so far; NaN before the first sample.
 * nn_metric_tensor - what it consists of, on the CPU: counts, i64 [C, C], of a confusion matrix; f64 [C], one
 *     number a class, of precision, recall and f1; else the number, f64 [].
 * nn_metric_reset - begins anew.
 * nn_metric_mode - which numbers are better. */
TAPEGRAD_API int nn_metric_update(Metric *metric, Tensor *output, Tensor *target);
TAPEGRAD_API double nn_metric_compute(Metric *metric);
TAPEGRAD_API Tensor *nn_metric_tensor(Metric *metric);
TAPEGRAD_API void nn_metric_reset(Metric *metric);
TAPEGRAD_API const char *nn_metric_name(const Metric *metric);
TAPEGRAD_API NNMode nn_metric_mode(const Metric *metric);
TAPEGRAD_API void nn_metric_free(Metric *metric);

/* nn_metric_state_dict - what has been counted, f64, under the name of the kind ("accuracy", "f1", "mean",
 *     "custom", ...); the metric's until the next call.
 * nn_metric_load_state_dict - EVALUE: of another kind; ESHAPE: of another number of classes. */
TAPEGRAD_API TensorDict nn_metric_state_dict(Metric *metric);
TAPEGRAD_API int nn_metric_load_state_dict(Metric *metric, TensorDict dict);

#ifdef __cplusplus
}
#endif
#endif
