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
#include "ctc_steps.h"

/* ---- one sequence ---------------------------------------------------------------------------- */

static double number_at(const CtcArgs *b, int64_t i)
{
    return b->dtype == TENSOR_F32 ? (double)((const float *)b->x)[i] : ((const double *)b->x)[i];
}

static void alphas(const CtcArgs *b, int64_t n, double *a)
{
    const int64_t states = 2 * b->sizes[n] + 1, *label = b->label + n * b->states;
    for (int64_t t = 0; t < b->times[n]; t++, a += b->states) {
        const int64_t row = (t * b->N + n) * b->C;
        for (int64_t s = 0; s < states; s++)
            a[s] = ctc_alpha(label, s, t ? a - b->states : NULL, number_at(b, row + label[s]));
    }
}

static void unreachable(const CtcArgs *b, int64_t n)
{
    for (int64_t t = 0; t < b->times[n]; t++)
        for (int64_t k = 0; k < b->C; k++)
            b->dx[(t * b->N + n) * b->C + k] = b->zero_infinity ? 0 : (double)NAN;
}

static void sequence_gradient(const CtcArgs *b, int64_t n, const double *a, double loss, double *beta)
{
    const int64_t states = 2 * b->sizes[n] + 1, *label = b->label + n * b->states;
    double *now = beta, *earlier = beta + b->states;
    for (int64_t s = 0; s < states; s++) now[s] = s >= states - 2 ? 0 : -INFINITY;
    for (int64_t t = b->times[n] - 1; t >= 0; t--) {
        double *dx = b->dx + (t * b->N + n) * b->C;
        for (int64_t s = 0; s < states; s++)
            dx[label[s]] -= b->g[n] * exp(a[t * b->states + s] + now[s] + loss);
        const double *x = (const double *)b->x + (t * b->N + n) * b->C;
        for (int64_t s = 0; s < states; s++) earlier[s] = ctc_beta(label, s, states, now, x);
        double *swap = now;
        now = earlier, earlier = swap;
    }
}

typedef struct Batch {
    const CtcArgs *of;
    double *room; /* of each sequence: T + 2 rows of states */
} Batch;

static void sequence(void *ctx, int64_t n)
{
    const Batch *batch = ctx;
    const CtcArgs *b = batch->of;
    double *a = batch->room + n * (b->T + 2) * b->states;
    alphas(b, n, a);
    const double loss = ctc_loss_at_end(b->times[n], 2 * b->sizes[n], a + (b->times[n] - 1) * b->states);
    if (!b->dx) b->loss[n] = b->zero_infinity && loss == INFINITY ? 0 : loss;
    else if (b->g[n] != 0 && loss == INFINITY) unreachable(b, n);
    else if (b->g[n] != 0) sequence_gradient(b, n, a, loss, a + b->T * b->states);
}

int cpu_ctc(CtcArgs *a)
{
    const size_t bytes = (size_t)(a->N * (a->T + 2) * a->states) * sizeof(double);
    if (a->N == 0) return 0;
    Batch batch = { a, tg_alloc(bytes) };
    if (!batch.room) return fail_memory("ctc_loss");
    parallel_for(a->N, cpu_threads(a->N * a->T * a->states * (a->dx ? 100 : 50)), sequence, &batch);
    tg_free(batch.room, bytes);
    return 0;
}

/* ---- labels --------------------------------------------------------------------------------- */

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
