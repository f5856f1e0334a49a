/* metric_update.c - adds the counts of a batch.
 *
 * On the CPU they are added at once, after the whole batch was checked.  On a device ops count and add there,
 * as TorchMetrics does: the host does not wait before it reads the metric. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "metric.h"

/* ---- classes --------------------------------------------------------------------------------- */

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

static int misshapen(const Metric *m, const Tensor *output, const Tensor *target)
{
    return tensor_fail(
        TENSOR_ESHAPE, m->function,
        "output %s, target %s: wants scores [N, C, ...] or [N, ..., C] beside [N, ...], or one "
        "shape for both",
        shape_text(output), shape_text(target));
}

static bool same_sizes(const int64_t *a, const int64_t *b, int n)
{
    return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* Scores [N, C, d1, ...] for targets [N, d1, ...]; NULL: they have another shape. */
static Tensor *as_scores(Tensor *output, Tensor *target)
{
    TensorShape x = tensor_shape(output), y = tensor_shape(target);
    if (x.ndim != y.ndim + 1 || x.ndim < 2 || x.dim[0] != y.dim[0]) return NULL;
    if (same_sizes(x.dim + 2, y.dim + 1, x.ndim - 2)) return output;
    return same_sizes(x.dim, y.dim, y.ndim) ? tensor_movedim(output, -1, 1) : NULL;
}

/* The class of each output, of the target's shape, or the k highest ones [N, k, ...]. */
static Tensor *classes_of(const Metric *m, Counts *c, Tensor *x, Tensor *target, int64_t k)
{
    const TensorShape y = tensor_shape(target), s = tensor_shape(x);
    const bool floats = tensor_dtype_is_float(tensor_dtype(x)),
               same = s.ndim == y.ndim && same_sizes(s.dim, y.dim, y.ndim);
    Tensor *scores = same ? NULL : as_scores(x, target), *indices = NULL;
    const int64_t n = scores ? tensor_size(scores, 1) : 0;
    if (tensor_error_code()) return NULL;
    if (floats && n > 1) {
        c->classes = n;
        if (k == 1) return tensor_argmax(scores, 1);
        if (k > n) {
            tensor_fail(TENSOR_EVALUE, m->function, "top_k %lld of %lld classes", (long long)k, (long long)n);
            return NULL;
        }
        return tensor_topk(scores, k, 1, .indices = &indices) ? indices : NULL;
    }
    if (k > 1 || !(same || (floats && n == 1))) return misshapen(m, x, target), NULL;
    c->classes = floats ? 2 : INT64_MAX; /* of labels nobody knows */
    return floats ? tensor_gt_scalar(same ? x : tensor_reshape(x, y), m->args.threshold) : x;
}

static Tensor *count_of(Tensor *mask) { return tensor_sum(mask); } /* i64 */

/* Reads both as integers, on the CPU as dense ones.  EDTYPE: a target of floats with a fraction. */
static int read_classes(const Metric *m, Counts *c, Tensor *output, Tensor *target, int64_t k)
{
    Tensor *broken = NULL, *guess = classes_of(m, c, output, target, k);
    if (guess && tensor_dtype_is_float(tensor_dtype(target)))
        broken = count_of(tensor_ne(tensor_trunc(target), target));
    if (c->here && broken && tensor_item(broken) > 0)
        return tensor_fail(TENSOR_EDTYPE, m->function, "target %s holds other numbers than integers",
                           shape_text(target));
    c->value[METRIC_SUMS + FRACTION] = broken;
    c->guess = tensor_to(guess, TENSOR_I64), c->truth = tensor_to(target, TENSOR_I64);
    if (c->here) c->guess = tensor_contiguous(c->guess), c->truth = tensor_contiguous(c->truth);
    return c->guess && c->truth ? 0 : -1;
}

static Tensor *outside(Tensor *classes, int64_t n)
{
    return tensor_logical_or(tensor_lt_scalar(classes, 0), tensor_ge_scalar(classes, (double)n));
}

/* ---- the kinds ------------------------------------------------------------------------------- */

int metric_count_accuracy(const Metric *m, Counts *c, Tensor *output, Tensor *target)
{
    const bool several = m->args.top_k > 1;
    if (read_classes(m, c, output, target, m->args.top_k)) return -1;
    if (c->here) return 0;
    Tensor *kept = tensor_ne_scalar(c->truth, (double)m->args.ignore_index), *right;
    if (several) {
        right =
            tensor_logical_and(tensor_eq(c->guess, tensor_unsqueeze(c->truth, 1)), tensor_unsqueeze(kept, 1));
    } else right = tensor_logical_and(tensor_eq(c->guess, c->truth), kept);
    c->value[0] = count_of(right), c->value[1] = count_of(kept);
    if (c->classes < INT64_MAX)
        c->value[METRIC_SUMS + BAD_TARGET] =
            count_of(tensor_logical_and(kept, outside(c->truth, c->classes)));
    return c->value[0] && c->value[1] ? 0 : -1;
}

int metric_count_matrix(const Metric *m, Counts *c, Tensor *output, Tensor *target)
{
    const int64_t n = m->args.num_classes;
    if (read_classes(m, c, output, target, 1)) return -1;
    if (c->here) return 0;
    Tensor *dropped = tensor_eq_scalar(c->truth, (double)m->args.ignore_index),
           *kept = tensor_logical_not(dropped), *no_target = outside(c->truth, n);
    c->value[METRIC_SUMS + BAD_TARGET] = count_of(tensor_logical_and(kept, no_target));
    Tensor *nowhere = tensor_logical_or(dropped, no_target);
    if (c->classes > n) {
        Tensor *no_output = outside(c->guess, n);
        c->value[METRIC_SUMS + BAD_OUTPUT] = count_of(tensor_logical_and(kept, no_output));
        nowhere = tensor_logical_or(nowhere, no_output);
    }
    c->slot = tensor_masked_fill(tensor_add(tensor_mul_scalar(c->truth, (double)n), c->guess), nowhere,
                                 (double)m->sums);
    c->classes = n;
    return c->slot ? 0 : -1;
}

int metric_count_perplexity(const Metric *m, Counts *c, Tensor *output, Tensor *target)
{
    const int64_t ignored = m->args.ignore_index;
    Tensor *scores = as_scores(output, target);
    if (!scores) return tensor_error_code() ? -1 : misshapen(m, output, target);
    if (tensor_dtype_size(tensor_dtype(scores)) < 4) scores = tensor_to(scores, TENSOR_F32); /* of the sum */
    c->value[0] = tensor_cross_entropy(scores, target, .ignore_index = ignored, .reduction = TENSOR_SUM);
    c->value[1] = count_of(tensor_ne_scalar(target, (double)ignored));
    return c->value[0] && c->value[1] ? 0 : -1;
}

int metric_count_mean(const Metric *m, Counts *c, Tensor *output, Tensor *target)
{
    (void)m, (void)target;
    const bool floats = tensor_dtype_is_float(tensor_dtype(output));
    c->value[0] = tensor_sum(floats ? tensor_to(output, TENSOR_F64) : output);
    c->known[1] = (double)tensor_numel(output);
    return c->value[0] ? 0 : -1;
}

int metric_count_custom(const Metric *m, Counts *c, Tensor *output, Tensor *target)
{
    const double n = tensor_ndim(output) ? (double)tensor_size(output, 0) : 1;
    c->known[0] = n * m->args.fn(output, target, m->args.ctx), c->known[1] = n;
    return 0;
}

/* ---- on the CPU ------------------------------------------------------------------------------ */

static int bad_class(const Metric *m, const char *what, int64_t value, int64_t i, int64_t classes)
{
    return tensor_fail(TENSOR_EVALUE, m->function, "%s %lld at position %lld is none of %lld classes", what,
                       (long long)value, (long long)i, (long long)classes);
}

static int check_classes(const Metric *m, const int64_t *guess, const int64_t *truth, int64_t n,
                         int64_t classes)
{
    for (int64_t i = 0; i < n; i++) {
        if (truth[i] == m->args.ignore_index) continue;
        if (truth[i] < 0 || truth[i] >= classes) return bad_class(m, "target", truth[i], i, classes);
        if (m->kind->matrix && (guess[i] < 0 || guess[i] >= classes))
            return bad_class(m, "output", guess[i], i, classes);
    }
    return 0;
}

/* Of N x rest targets each has k outputs, which lie `rest` apart. */
static int add_classes(Metric *m, const Counts *c)
{
    const int64_t *guess = tensor_data(c->guess), *truth = tensor_data(c->truth), n = tensor_numel(c->truth);
    const int64_t k = n ? tensor_numel(c->guess) / n : 1,
                  rest = n && tensor_ndim(c->truth) ? n / tensor_size(c->truth, 0) : 1;
    const int64_t classes = m->kind->matrix ? m->args.num_classes : c->classes;
    if (classes < INT64_MAX && check_classes(m, guess, truth, n, classes)) return -1;
    for (int64_t i = 0; i < n; i++) {
        if (truth[i] == m->args.ignore_index) continue;
        if (m->kind->matrix) {
            m->sum[truth[i] * classes + guess[i]]++;
            continue;
        }
        for (int64_t j = 0; j < k; j++) m->sum[0] += guess[(i / rest * k + j) * rest + i % rest] == truth[i];
        m->sum[1]++;
    }
    return 0;
}

static int add_here(Metric *m, const Counts *c)
{
    double value[METRIC_SUMS] = { 0 };
    if (c->truth) return add_classes(m, c);
    for (int i = 0; i < METRIC_SUMS; i++)
        value[i] = c->known[i] + (c->value[i] ? tensor_item(c->value[i]) : 0);
    if (tensor_error_code()) return -1;
    for (int i = 0; i < METRIC_SUMS; i++) m->sum[i] += value[i];
    return 0;
}

/* ---- on a device ----------------------------------------------------------------------------- */

/* Errors since the last check. */
static int find_fault(const Metric *m, const double *count)
{
    if (count[FRACTION] > 0)
        return tensor_fail(TENSOR_EDTYPE, m->function, "%.0f targets since the last look are no integers",
                           count[FRACTION]);
    const Fault fault = count[BAD_TARGET] > 0 ? BAD_TARGET : BAD_OUTPUT;
    if (!(count[fault] > 0)) return 0;
    return tensor_fail(TENSOR_EVALUE, m->function, "%.0f %s since the last look are none of %lld classes",
                       count[fault], fault == BAD_TARGET ? "targets" : "outputs", (long long)m->classes);
}

static void keep(Tensor **slot, Tensor *t)
{
    tensor_retain(t), tensor_release(*slot);
    *slot = t;
}

/* All or nothing: the new values replace the old ones at the end. */
static int add_there(Metric *m, const Counts *c)
{
    Tensor *list[METRIC_VALUES], *sums = m->there, *matrix = m->matrix;
    unsigned present = 0;
    int n = 0;
    for (int i = 0; i < METRIC_VALUES; i++)
        if (c->value[i]) list[n++] = c->value[i], present |= 1u << i;
    if (n && sums && present != m->present) {
        if (metric_read(m)) return -1;
        sums = matrix = NULL;
    }
    if (n) {
        Tensor *values = tensor_to(tensor_stack(TENSOR_LIST(list, n), 0), TENSOR_F64);
        if (!(sums = sums ? tensor_add(sums, values) : values)) return -1;
    }
    if (c->slot) {
        Tensor *slots = tensor_flatten(c->slot), *ones = tensor_ones_like(slots);
        if (!matrix)
            matrix = tensor_to_device(tensor_zeros(SHAPE(m->sums + 1), TENSOR_I64), tensor_device(slots));
        if (!(matrix = tensor_index_add(matrix, 0, slots, ones))) return -1;
    }
    if (tensor_error_code()) return -1;
    keep(&m->there, sums), keep(&m->matrix, matrix);
    m->present = present, m->classes = c->classes;
    for (int i = 0; !m->kind->matrix && i < METRIC_SUMS; i++) m->sum[i] += c->known[i];
    return 0;
}

void metric_drop(Metric *m)
{
    tensor_release(m->there), tensor_release(m->matrix);
    m->there = m->matrix = NULL;
}

static int read_there(Metric *m)
{
    double found[METRIC_VALUES], value[METRIC_VALUES] = { 0 };
    int64_t *slot = m->matrix ? malloc((size_t)(m->sums + 1) * sizeof *slot) : NULL;
    int status = 0;
    if (m->matrix && !slot) status = tensor_fail(TENSOR_ENOMEM, m->function, "out of memory");
    if (!status && m->there)
        status = tensor_copy_to(m->there, found, (size_t)tensor_numel(m->there) * sizeof *found);
    for (int i = 0, k = 0; !status && m->there && i < METRIC_VALUES; i++)
        if (m->present >> i & 1) value[i] = found[k++];
    if (!status) status = find_fault(m, value + METRIC_SUMS);
    if (!status && slot) status = tensor_copy_to(m->matrix, slot, (size_t)(m->sums + 1) * sizeof *slot);
    for (int i = 0; !status && !m->kind->matrix && i < METRIC_SUMS; i++) m->sum[i] += value[i];
    for (int64_t i = 0; !status && slot && i < m->sums; i++) m->sum[i] += (double)slot[i];
    free(slot);
    return status;
}

int metric_read(Metric *m)
{
    if (!m->there && !m->matrix) return 0;
    if (tensor_error_code()) return -1;
    const int status = read_there(m);
    metric_drop(m);
    return status;
}

int nn_metric_update(Metric *m, Tensor *output, Tensor *target)
{
    if (!m) return 0;
    const bool needs_target = m->kind->count != metric_count_mean && m->kind->count != metric_count_custom;
    if (tensor_error_code()) return -1;
    if (!output || (!target && needs_target))
        return tensor_fail(TENSOR_ENULL, m->function, "the %s is NULL", output ? "target" : "output");
    Counts c = { .here = m->kind->count == metric_count_custom || !strcmp(tensor_device(output), "cpu") };
    TensorScope scope = tensor_scope_open();
    const char *outer = tensor_compose_begin(m->function);
    const bool was = tensor_set_grad_enabled(false);
    if (needs_target) target = tensor_to_device(target, tensor_device(output));
    int status = (needs_target && !target) || m->kind->count(m, &c, output, target) || tensor_error_code();
    if (!status) status = c.here ? add_here(m, &c) : add_there(m, &c);
    tensor_set_grad_enabled(was);
    tensor_compose_end(outer);
    tensor_scope_close(scope);
    return status ? -1 : 0;
}
