/* trunc.c - the truncated normal distribution, by rejection.
 *
 * PyTorch works on whole tensors: a round draws n candidates and settles the elements that are still open.  A
 * settled element never changes, so both branches end with the first candidate of each element that was
 * accepted.
 */
#include "engine.h"

#include <math.h>
#include <string.h>

static double below(double x) { return (1.0 + erf(x / sqrt(2.0))) / 2.0; }

/* Whether [a, b] holds enough of the bell for normals to be drawn and rejected. */
static bool bell(double mean, double std, double a, double b)
{
    return below((b - mean) / std) - below((a - mean) / std) > 0.3;
}

/* ln of the density at its highest point on [a, b], with the density 1 at the mean. */
static double log_peak(double mean, double std, double a, double b)
{
    double mode = a > mean ? a : mean < b ? mean : b, z = (mode - mean) / std;
    return -0.5 * (z * z);
}

/* The density at x over its peak, as a logarithm; every step is rounded to f32. */
static float log_keep32(float x, double mean, double std, double peak)
{
    float z = (x - (float)mean) / (float)std;
    return z * z * -0.5f - (float)peak;
}

static double log_keep64(double x, double mean, double std, double peak)
{
    double z = (x - mean) / std;
    return z * z * -0.5 - peak;
}

static void reject_normal32(Mt19937 *g, float *x, int64_t n, double mean, double std, float lo, float hi,
                            float *scratch)
{
    mt_normal_f32(g, x, n, mean, std);
    for (;;) {
        int64_t open = 0;
        for (int64_t i = 0; i < n; i++) open += x[i] < lo || x[i] > hi;
        if (open == 0) return;
        mt_normal_f32(g, scratch, n, mean, std);
        for (int64_t i = 0; i < n; i++)
            if (x[i] < lo || x[i] > hi) x[i] = scratch[i];
    }
}

static void reject_normal64(Mt19937 *g, double *x, int64_t n, double mean, double std, double lo, double hi,
                            double *scratch)
{
    mt_normal_f64(g, x, n, mean, std);
    for (;;) {
        int64_t open = 0;
        for (int64_t i = 0; i < n; i++) open += x[i] < lo || x[i] > hi;
        if (open == 0) return;
        mt_normal_f64(g, scratch, n, mean, std);
        for (int64_t i = 0; i < n; i++)
            if (x[i] < lo || x[i] > hi) x[i] = scratch[i];
    }
}

void mt_trunc_normal_f32(Mt19937 *g, float *x, int64_t n, double mean, double std, double a, double b,
                         float *scratch, uint8_t *pending)
{
    if (bell(mean, std, a, b)) {
        reject_normal32(g, x, n, mean, std, (float)a, (float)b, scratch);
        return;
    }
    double peak = log_peak(mean, std, a, b);
    memset(pending, 1, (size_t)n);
    for (int64_t open = n; open > 0;) {
        mt_uniform_f32(g, scratch, n, a, b);
        for (int64_t i = 0; i < n; i++)
            if (pending[i]) x[i] = scratch[i];
        mt_uniform_f32(g, scratch, n, 0, 1);
        open = 0;
        for (int64_t i = 0; i < n; i++) {
            pending[i] = pending[i] && logf(scratch[i]) > log_keep32(x[i], mean, std, peak);
            open += pending[i];
        }
    }
}

void mt_trunc_normal_f64(Mt19937 *g, double *x, int64_t n, double mean, double std, double a, double b,
                         double *scratch, uint8_t *pending)
{
    if (bell(mean, std, a, b)) {
        reject_normal64(g, x, n, mean, std, a, b, scratch);
        return;
    }
    double peak = log_peak(mean, std, a, b);
    memset(pending, 1, (size_t)n);
    for (int64_t open = n; open > 0;) {
        mt_uniform_f64(g, scratch, n, a, b);
        for (int64_t i = 0; i < n; i++)
            if (pending[i]) x[i] = scratch[i];
        mt_uniform_f64(g, scratch, n, 0, 1);
        open = 0;
        for (int64_t i = 0; i < n; i++) {
            pending[i] = pending[i] && log(scratch[i]) > log_keep64(x[i], mean, std, peak);
            open += pending[i];
        }
    }
}
