/* metric.c - metrics as sums of numbers.
 *
 * Each is a list of sums: two (of a numerator and a denominator), or the counts of a confusion matrix, by
 * target and output.  An update adds to a copy of them, which takes their place when all of the batch was
 * good. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>

const NNMetricArgs nn_metric_defaults = { NN_METRIC_DEFAULTS };

typedef struct MetricKind {
    const char *name, *function;
    NNMode mode;
    bool matrix; /* counts of classes, else two sums */
    int (*update)(const Metric *m, double *sum, Tensor *output, Tensor *target);
    double (*of)(double tp, double fp, double fn); /* of one class */
} MetricKind;

struct Metric {
    const MetricKind *kind;
    NNMetricArgs args;
    char name[48];
    double *sum, *next;
    int64_t sums;
    TensorDict state;
};

static const char op[] = "nn_metric_update";

/* ---- classes --------------------------------------------------------------------------------- */

static bool same_sizes(TensorShape a, const int64_t *b, int n)
{
    return a.ndim == n && (n == 0 || memcmp(a.dim, b, (size_t)n * sizeof *b) == 0);
}

/* A shape as text, in one of two buffers. */
static const char *shape_text(const Tensor *t)
{
    static _Thread_local char text[2][128];
    static _Thread_local int turn;
    TensorShape s = tensor_shape(t);
    char *out = text[turn++ % 2];
    size_t n = (size_t)snprintf(out, 128, "%s [", tensor_dtype_name(tensor_dtype(t)));
    for (int d = 0; d < s.ndim && n < 100; d++)
        n += (size_t)snprintf(out + n, 128 - n, d ? ", %lld" : "%lld", (long long)s.dim[d]);
    snprintf(out + n, 128 - n, "]");
    return out;
}

static int misshapen(const Tensor *output, const Tensor *target)
{
    return tensor_fail(
        TENSOR_ESHAPE, op,
        "output %s, target %s: wants scores [N, C, ...] beside [N, ...], or one shape for both",
        shape_text(output), shape_text(target));
}

/* Is it [N, C, d1, ...] beside [N, d1, ...]? */
static bool are_scores(const Tensor *output, const Tensor *target)
{
    TensorShape x = tensor_shape(output), y = tensor_shape(target);
    return x.ndim == y.ndim + 1 && x.ndim >= 2 && x.dim[0] == y.dim[0] &&
           (x.ndim == 2 || memcmp(x.dim + 2, y.dim + 1, (size_t)(x.ndim - 2) * sizeof *x.dim) == 0);
}

/* i64 on the CPU, dense. */
static Tensor *as_integers(Tensor *t)
{
    return tensor_contiguous(tensor_to(tensor_to_device(t, "cpu"), TENSOR_I64));
}

/* The class of each output, of the target's shape, or the k highest ones [N, k, ...]. */
static Tensor *classes_of(const Metric *m, Tensor *x, Tensor *target, int64_t k)
{
    TensorShape s = tensor_shape(x), y = tensor_shape(target);
    const bool scores = are_scores(x, target), same = same_sizes(s, y.dim, y.ndim);
    if (tensor_dtype_is_float(tensor_dtype(x)) && scores && s.dim[1] > 1) {
        Tensor *indices = NULL;
        if (k == 1) return as_integers(tensor_argmax(x, 1));
        if (!tensor_topk(x, k < s.dim[1] ? k : s.dim[1], 1, .indices = &indices)) return NULL;
        return as_integers(indices);
    }
    if (k > 1 || (!same && !(scores && s.dim[1] == 1))) return misshapen(x, target), NULL;
    if (!tensor_dtype_is_float(tensor_dtype(x))) return same ? as_integers(x) : (misshapen(x, target), NULL);
    return as_integers(tensor_gt_scalar(x, m->args.threshold));
}

static Tensor *labels_of(Tensor *target)
{
    if (tensor_dtype_is_float(tensor_dtype(target)) &&
        tensor_item(tensor_sum(tensor_to(tensor_eq(tensor_trunc(target), target), TENSOR_I64))) !=
            (double)tensor_numel(target) &&
        !tensor_error_code())
        return tensor_fail(TENSOR_EDTYPE, op, "target %s holds other numbers than integers",
                           shape_text(target)),
               NULL;
    return as_integers(target);
}

/* ---- updates --------------------------------------------------------------------------------- */

static int bad_class(const char *what, int64_t value, int64_t i, int64_t classes)
{
    return tensor_fail(TENSOR_EVALUE, op, "%s %lld at position %lld is none of %lld classes", what,
                       (long long)value, (long long)i, (long long)classes);
}

/* How many classes the outputs tell apart; of labels nobody knows. */
static int64_t count_classes(const Tensor *output, const Tensor *target)
{
    if (!tensor_dtype_is_float(tensor_dtype(output))) return INT64_MAX;
    const int64_t scores = are_scores(output, target) ? tensor_size(output, 1) : 1;
    return scores > 1 ? scores : 2;
}

/* Of N x rest targets each has k outputs, which lie `rest` apart. */
static int add_accuracy(const Metric *m, double *sum, Tensor *output, Tensor *target)
{
    Tensor *guess = classes_of(m, output, target, m->args.top_k), *truth = labels_of(target);
    if (!guess || !truth) return -1;
    const int64_t *g = tensor_data(guess), *t = tensor_data(truth), n = tensor_numel(truth);
    const int64_t k = n ? tensor_numel(guess) / n : 1,
                  rest = n && tensor_ndim(truth) ? n / tensor_size(truth, 0) : 1,
                  classes = count_classes(output, target);
    for (int64_t i = 0; i < n; i++) {
        if (t[i] == m->args.ignore_index) continue;
        if (classes < INT64_MAX && (t[i] < 0 || t[i] >= classes))
            return bad_class("target", t[i], i, classes);
        for (int64_t j = 0; j < k; j++) sum[0] += g[(i / rest * k + j) * rest + i % rest] == t[i];
        sum[1]++;
    }
    return 0;
}

static int add_matrix(const Metric *m, double *sum, Tensor *output, Tensor *target)
{
    Tensor *guess = classes_of(m, output, target, 1), *truth = labels_of(target);
    if (!guess || !truth) return -1;
    const int64_t *g = tensor_data(guess), *t = tensor_data(truth), c = m->args.num_classes;
    for (int64_t i = 0; i < tensor_numel(truth); i++) {
        if (t[i] == m->args.ignore_index) continue;
        if (t[i] < 0 || t[i] >= c) return bad_class("target", t[i], i, c);
        if (g[i] < 0 || g[i] >= c) return bad_class("output", g[i], i, c);
        sum[t[i] * c + g[i]]++;
    }
    return 0;
}

static int add_perplexity(const Metric *m, double *sum, Tensor *output, Tensor *target)
{
    if (!are_scores(output, target)) return misshapen(output, target);
    const int64_t ignored = m->args.ignore_index;
    Tensor *loss = tensor_cross_entropy(output, target, .ignore_index = ignored, .reduction = TENSOR_SUM);
    Tensor *kept = tensor_to(tensor_ne_scalar(target, (double)ignored), TENSOR_I64);
    sum[0] += tensor_item(loss), sum[1] += tensor_item(tensor_sum(kept));
    return loss && kept ? 0 : -1;
}

static int add_mean(const Metric *m, double *sum, Tensor *output, Tensor *target)
{
    (void)m, (void)target;
    const TensorDtype dtype = tensor_dtype(output);
    Tensor *total = tensor_sum(tensor_dtype_is_float(dtype) ? tensor_to(output, TENSOR_F64) : output);
    sum[0] += tensor_item(total), sum[1] += (double)tensor_numel(output);
    return total ? 0 : -1;
}

static int add_custom(const Metric *m, double *sum, Tensor *output, Tensor *target)
{
    const double n = tensor_ndim(output) ? (double)tensor_size(output, 0) : 1;
    sum[0] += n * m->args.fn(output, target, m->args.ctx), sum[1] += n;
    return 0;
}

int nn_metric_update(Metric *m, Tensor *output, Tensor *target)
{
    if (!m) return 0;
    const bool needs_target = m->kind->update != add_mean && m->kind->update != add_custom;
    if (tensor_error_code()) return -1;
    if (!output || (!target && needs_target))
        return tensor_fail(TENSOR_ENULL, op, "%s: the %s is NULL", m->name, output ? "target" : "output");
    TensorScope scope = tensor_scope_open();
    const char *outer = tensor_compose_begin(op);
    const bool was = tensor_set_grad_enabled(false);
    memcpy(m->next, m->sum, (size_t)m->sums * sizeof *m->sum);
    int status = m->kind->update(m, m->next, output, target) || tensor_error_code() ? -1 : 0;
    tensor_set_grad_enabled(was);
    tensor_compose_end(outer);
    tensor_scope_close(scope);
    double *sum = status ? m->sum : m->next;
    m->next = status ? m->next : m->sum, m->sum = sum;
    return status;
}

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
    return right / all;
}

double nn_metric_compute(const Metric *m)
{
    if (!m) return NAN;
    if (m->kind->of) return average(m);
    if (m->kind->matrix) return diagonal(m);
    const double mean = m->sum[0] / m->sum[1];
    return m->kind->update == add_perplexity ? exp(mean) : mean;
}

Tensor *nn_metric_tensor(const Metric *m)
{
    if (!m) return NULL;
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
    if (m) memset(m->sum, 0, (size_t)m->sums * sizeof *m->sum);
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
        return tensor_fail(TENSOR_ESHAPE, function, "%s: \"%s\" is %s, wants f64 [%lld]", m->name, kind,
                           shape_text(sum), (long long)m->sums);
    return tensor_copy_to(sum, m->sum, (size_t)m->sums * sizeof *m->sum);
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
        m->sum = calloc((size_t)m->sums, sizeof *m->sum), m->next = calloc((size_t)m->sums, sizeof *m->next);
        if (m->sum && m->next) return m;
    }
    tensor_fail(TENSOR_ENOMEM, kind->function, "out of memory");
    nn_metric_free(m);
    return NULL;
}

#define METRIC(metric, ...)                                                                 \
    static const MetricKind kind_##metric = { #metric, "nn_metric_" #metric, __VA_ARGS__ }; \
    Metric *nn_metric_##metric##_args(NNMetricArgs args) { return new_metric(&kind_##metric, args); }
METRIC(accuracy, NN_MAX, false, add_accuracy, NULL)
METRIC(precision, NN_MAX, true, add_matrix, precision)
METRIC(recall, NN_MAX, true, add_matrix, recall)
METRIC(f1, NN_MAX, true, add_matrix, f1)
METRIC(confusion_matrix, NN_MAX, true, add_matrix, NULL)
METRIC(perplexity, NN_MIN, false, add_perplexity, NULL)
METRIC(mean, NN_AUTO, false, add_mean, NULL)

Metric *nn_metric_custom_args(NNMetricArgs args)
{
    static const MetricKind kind = { "custom", "nn_metric_custom", NN_AUTO, false, add_custom, NULL };
    if (!args.fn) return tensor_fail(TENSOR_ENULL, kind.function, "the function is NULL"), NULL;
    return new_metric(&kind, args);
}

void nn_metric_free(Metric *m)
{
    if (!m) return;
    nn_dict_free(m->state);
    free(m->sum), free(m->next);
    free(m);
}
