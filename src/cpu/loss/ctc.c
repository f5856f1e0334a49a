/* ctc.c - connectionist temporal classification, in double, each sequence by one thread.
 *
 *   States of a target y_0..y_(S-1):  - y_0 - y_1 - ... y_(S-1) -, L = 2 S + 1 of them, - the blank.  A path
 *   begins in one of the first two, ends in one of the last two, and each step stays, goes on by one, or
 *   leaps over a blank between unlike labels.
 *
 *   a_t(s) = log sum of the paths to s at t, x_t(s) included
 *   b_t(s) = the same from s on, x_t(s) excluded
 *   loss = -log sum e^(a_(T-1)) over the last two
 *   dx_t(c) = -g sum of e^(a_t(s) + b_t(s) + loss) over the states s of c
 */
#include <math.h>
#include "cpu/cpu.h"
#include "ctc.h"

/* ---- one sequence ---------------------------------------------------------------------------- */

static double log_sum2(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

static double log_sum3(double a, double b, double c)
{
    if (c == -INFINITY) return log_sum2(a, b);
    const double m = fmax(a, fmax(b, c));
    return m == -INFINITY ? m : m + log(exp(a - m) + exp(b - m) + exp(c - m));
}

static bool leaps(const int64_t *label, int64_t s) { return s % 2 == 1 && s > 1 && label[s] != label[s - 2]; }

static void alphas(const CtcBatch *b, int64_t n, double *a)
{
    const int64_t states = 2 * b->sizes[n] + 1, *label = b->label + n * b->states;
    for (int64_t t = 0; t < b->times[n]; t++, a += b->states) {
        const double *x = b->x + (t * b->N + n) * b->C, *before = a - b->states;
        for (int64_t s = 0; s < states; s++) {
            double sum = s < 2 ? 0 : -INFINITY;
            if (t)
                sum = log_sum3(before[s], s > 0 ? before[s - 1] : -INFINITY,
                               leaps(label, s) ? before[s - 2] : -INFINITY);
            a[s] = sum + x[label[s]];
        }
    }
}

static double end_loss(const CtcBatch *b, int64_t n, const double *a)
{
    const int64_t last = 2 * b->sizes[n];
    if (b->times[n] == 0) return last ? (double)INFINITY : 0;
    a += (b->times[n] - 1) * b->states;
    return -log_sum2(a[last], last ? a[last - 1] : -INFINITY);
}

/* b of the step before from b of this one. */
static void step_back(const CtcBatch *b, int64_t n, int64_t t, const double *now, double *earlier)
{
    const int64_t states = 2 * b->sizes[n] + 1, *label = b->label + n * b->states;
    const double *x = b->x + (t * b->N + n) * b->C;
    for (int64_t s = 0; s < states; s++) {
        const double one = s + 1 < states ? now[s + 1] + x[label[s + 1]] : -INFINITY;
        const bool leap = s + 2 < states && leaps(label, s + 2);
        earlier[s] = log_sum3(now[s] + x[label[s]], one, leap ? now[s + 2] + x[label[s + 2]] : -INFINITY);
    }
}

static void unreachable(const CtcBatch *b, int64_t n)
{
    for (int64_t t = 0; t < b->times[n]; t++)
        for (int64_t k = 0; k < b->C; k++)
            b->dx[(t * b->N + n) * b->C + k] = b->zero_infinity ? 0 : (double)NAN;
}

static void sequence_gradient(const CtcBatch *b, int64_t n, const double *a, double loss, double *beta)
{
    const int64_t states = 2 * b->sizes[n] + 1, *label = b->label + n * b->states;
    double *now = beta, *earlier = beta + b->states;
    for (int64_t s = 0; s < states; s++) now[s] = s >= states - 2 ? 0 : -INFINITY;
    for (int64_t t = b->times[n] - 1; t >= 0; t--) {
        double *dx = b->dx + (t * b->N + n) * b->C;
        for (int64_t s = 0; s < states; s++)
            dx[label[s]] -= b->g[n] * exp(a[t * b->states + s] + now[s] + loss);
        step_back(b, n, t, now, earlier);
        double *swap = now;
        now = earlier, earlier = swap;
    }
}

static void sequence(void *ctx, int64_t n)
{
    const CtcBatch *b = ctx;
    double *a = b->room + n * (b->T + 2) * b->states;
    alphas(b, n, a);
    const double loss = end_loss(b, n, a);
    if (!b->dx) b->loss[n] = b->zero_infinity && loss == INFINITY ? 0 : loss;
    else if (b->g[n] != 0 && loss == INFINITY) unreachable(b, n);
    else if (b->g[n] != 0) sequence_gradient(b, n, a, loss, a + b->T * b->states);
}

int ctc_run(CtcBatch *b)
{
    const size_t bytes = (size_t)(b->N * (b->T + 2) * b->states) * sizeof(double);
    if (b->N == 0) return 0;
    b->room = tg_alloc(bytes);
    if (!b->room) return -1;
    parallel_for(b->N, cpu_threads(b->N * b->T * b->states * (b->dx ? 100 : 50)), sequence, b);
    tg_free(b->room, bytes);
    return 0;
}

/* ---- what chooses among states --------------------------------------------------------------- */

void ctc_states(const int64_t *label, const int64_t *sizes, int64_t n, int64_t states, bool *first,
                bool *last, bool *leap)
{
    for (int64_t i = 0; i < n * states; i++) {
        const int64_t k = i % states, end = 2 * sizes[i / states];
        first[i] = k < 2;
        last[i] = k == end || k == end - 1;
        leap[i] = leaps(label + i - k, k);
    }
}

void ctc_sequences(const int64_t *times, int64_t n, int64_t t, bool ends, bool *chosen)
{
    for (int64_t i = 0; i < n; i++) chosen[i] = ends ? t == times[i] - 1 : t < times[i];
}

int64_t ctc_bad_label(const int64_t *label, int64_t n, int64_t classes, int64_t blank)
{
    for (int64_t k = 0; k < n; k++)
        if (label[k] < 0 || label[k] >= classes || label[k] == blank) return k;
    return -1;
}

void ctc_labels(const int64_t *label, int64_t size, int64_t blank, int64_t states, int64_t *to)
{
    for (int64_t s = 0; s < states; s++) to[s] = s % 2 && s / 2 < size ? label[s / 2] : blank;
}
