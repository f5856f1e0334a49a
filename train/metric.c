/* metric.c - metrics as sums of numbers: two, a numerator and a denominator, or the counts of a confusion
 * matrix, by target and output. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "metric.h"

const NNMetricArgs nn_metric_defaults = { NN_METRIC_DEFAULTS };

/* ---- what has come of it --------------------------------------------------------------------- */

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }
static double precision(double tp, double fp, double fn) { return (void)fn, ratio(tp, tp + fp); }
static double recall(double tp, double fp, double fn) { return (void)fp, ratio(tp, tp + fn); }
static double f1(double tp, double fp, double fn) { return ratio(2 * tp, 2 * tp + fp + fn); }

/* True and false positives and false negatives of class k. */
static void count_class(const Metric *m, int64_t k, double count[3])
{
    const int64_t c = m->args.num_classes;
    count[0] = m->sum[k * c + k], count[1] = count[2] = -count[0];
    for (int64_t i = 0; i < c; i++) count[1] += m->sum[i * c + k], count[2] += m->sum[k * c + i];
}

static double average(const Metric *m)
{
    double total[3] = { 0 }, sum = 0, weights = 0, count[3];
    for (int64_t k = 0; k < m->args.num_classes; k++) {
        count_class(m, k, count);
        for (int i = 0; i < 3; i++) total[i] += count[i];
        const double seen = count[0] + count[1] + count[2], weight = count[0] + count[2];
        const double value = m->kind->of(count[0], count[1], count[2]);
        if (m->args.average == NN_BINARY && k == 1) return value;
        const double w = m->args.average == NN_WEIGHTED ? weight : seen > 0;
        sum += w * value, weights += w;
    }
    if (total[0] + total[1] == 0) return NAN;
    return m->args.average == NN_MICRO ? m->kind->of(total[0], total[1], total[2]) : ratio(sum, weights);
}

static double diagonal(const Metric *m)
{
    double right = 0, all = 0;
    for (int64_t i = 0; i < m->sums; i++)
        right += i % (m->args.num_classes + 1) ? 0 : m->sum[i], all += m->sum[i];
    return all > 0 ? right / all : NAN;
}

double nn_metric_compute(Metric *m)
{
    if (!m || metric_read(m)) return NAN;
    if (m->kind->of) return average(m);
    if (m->kind->matrix) return diagonal(m);
    const double mean = m->sum[1] > 0 ? m->sum[0] / m->sum[1] : NAN;
    return m->kind->count == metric_count_perplexity ? exp(mean) : mean;
}

Tensor *nn_metric_tensor(Metric *m)
{
    if (!m || metric_read(m)) return NULL;
    const int64_t c = m->args.num_classes;
    TensorScope scope = tensor_scope_open();
    const char *outer = tensor_compose_begin("nn_metric_tensor");
    Tensor *t;
    if (m->kind->of) {
        t = tensor_to_device(tensor_empty(SHAPE(c), TENSOR_F64), "cpu");
        for (int64_t k = 0; t && k < c; k++) {
            double count[3];
            count_class(m, k, count);
            ((double *)tensor_data(t))[k] = m->kind->of(count[0], count[1], count[2]);
        }
    } else if (m->kind->matrix) {
        t = tensor_to(tensor_from_data(m->sum, SHAPE(c, c), TENSOR_F64), TENSOR_I64);
    } else {
        t = tensor_from_data(&(double){ nn_metric_compute(m) }, SHAPE(), TENSOR_F64);
    }
    tensor_compose_end(outer);
    return tensor_scope_return(scope, t);
}

void nn_metric_reset(Metric *m)
{
    if (!m) return;
    memset(m->sum, 0, (size_t)m->sums * sizeof *m->sum);
    metric_drop(m);
}

const char *nn_metric_name(const Metric *m) { return m ? m->name : NULL; }

NNMode nn_metric_mode(const Metric *m)
{
    return !m ? NN_AUTO : m->args.mode != NN_AUTO ? m->args.mode : m->kind->mode;
}

/* ---- state ----------------------------------------------------------------------------------- */

TensorDict nn_metric_state_dict(Metric *m)
{
    TensorDict none = { .count = -1 };
    if (!m) {
        if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, "nn_metric_state_dict", "the metric is NULL");
        return none;
    }
    if (metric_read(m)) return none;
    TensorScope scope = tensor_scope_open();
    Tensor *sum = tensor_to_device(tensor_from_data(m->sum, SHAPE(m->sums), TENSOR_F64), "cpu");
    int status = sum ? nn_dict_set(&m->state, m->kind->name, sum) : -1;
    tensor_scope_close(scope);
    return status ? none : m->state;
}

int nn_metric_load_state_dict(Metric *m, TensorDict dict)
{
    static const char function[] = "nn_metric_load_state_dict";
    if (!m) return tensor_error_code() ? -1 : tensor_fail(TENSOR_ENULL, function, "the metric is NULL");
    const char *kind = m->kind->name;
    Tensor *sum = nn_dict_get(dict, kind);
    if (!sum)
        return tensor_error_code()
                   ? -1
                   : tensor_fail(TENSOR_EVALUE, function, "%s: \"%s\" is missing", m->name, kind);
    for (int i = 0; i < dict.count; i++)
        if (strcmp(dict.item[i].name, kind) != 0)
            return tensor_fail(TENSOR_EVALUE, function, "%s: \"%s\" is unexpected", m->name,
                               dict.item[i].name);
    if (tensor_dtype(sum) != TENSOR_F64 || tensor_numel(sum) != m->sums)
        return tensor_fail(TENSOR_ESHAPE, function, "%s: \"%s\" is %s with %lld numbers, wants f64 with %lld",
                           m->name, kind, tensor_dtype_name(tensor_dtype(sum)), (long long)tensor_numel(sum),
                           (long long)m->sums);
    if (tensor_copy_to(sum, m->sum, (size_t)m->sums * sizeof *m->sum)) return -1;
    metric_drop(m);
    return 0;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static int check_args(const MetricKind *kind, const NNMetricArgs *args)
{
    if (kind->matrix && (args->num_classes < 2 || args->num_classes > 10000))
        return tensor_fail(TENSOR_EVALUE, kind->function, "%lld classes: 2 to 10000",
                           (long long)args->num_classes);
    static const char *const averages[] = { "macro", "micro", "weighted", "binary", NULL };
    static const char *const modes[] = { "auto", "min", "max", NULL };
    if (tensor_check_choice(kind->function, "mode", (int)args->mode, modes)) return -1;
    if (args->top_k > 1 && kind->count != metric_count_accuracy)
        return tensor_fail(TENSOR_EVALUE, kind->function, "top_k %lld is for the accuracy",
                           (long long)args->top_k);
    if (args->top_k >= 1 && !isnan(args->threshold))
        return tensor_check_choice(kind->function, "average", (int)args->average, averages);
    return tensor_fail(TENSOR_EVALUE, kind->function, "top_k %lld, threshold %g: out of range",
                       (long long)args->top_k, args->threshold);
}

static Metric *new_metric(const MetricKind *kind, NNMetricArgs args)
{
    if (TENSOR_CHECK_OPTIONS(kind->function, args, nn_metric_defaults) || check_args(kind, &args))
        return NULL;
    Metric *m = calloc(1, sizeof *m);
    if (m) {
        m->kind = kind, m->args = args, m->sums = kind->matrix ? args.num_classes * args.num_classes : 2;
        snprintf(m->name, sizeof m->name, "%s", args.name ? args.name : kind->name);
        snprintf(m->function, sizeof m->function, "nn_metric_update (%s)", m->name);
        m->sum = calloc((size_t)m->sums, sizeof *m->sum);
        if (m->sum) return m;
    }
    tensor_fail(TENSOR_ENOMEM, kind->function, "out of memory");
    nn_metric_free(m);
    return NULL;
}

#define METRIC(metric, ...)                                                                 \
    static const MetricKind kind_##metric = { #metric, "nn_metric_" #metric, __VA_ARGS__ }; \
    Metric *nn_metric_##metric##_args(NNMetricArgs args) { return new_metric(&kind_##metric, args); }
METRIC(accuracy, NN_MAX, false, metric_count_accuracy, NULL)
METRIC(precision, NN_MAX, true, metric_count_matrix, precision)
METRIC(recall, NN_MAX, true, metric_count_matrix, recall)
METRIC(f1, NN_MAX, true, metric_count_matrix, f1)
METRIC(confusion_matrix, NN_MAX, true, metric_count_matrix, NULL)
METRIC(perplexity, NN_MIN, false, metric_count_perplexity, NULL)
METRIC(mean, NN_AUTO, false, metric_count_mean, NULL)

Metric *nn_metric_custom_args(NNMetricArgs args)
{
    static const MetricKind kind = {
        "custom", "nn_metric_custom", NN_AUTO, false, metric_count_custom, NULL
    };
    if (TENSOR_CHECK_OPTIONS(kind.function, args, nn_metric_defaults)) return NULL;
    if (!args.fn) return tensor_fail(TENSOR_ENULL, kind.function, "the function is NULL"), NULL;
    return new_metric(&kind, args);
}

void nn_metric_free(Metric *m)
{
    if (!m) return;
    nn_dict_free(m->state);
    metric_drop(m);
    free(m->sum);
    free(m);
}
