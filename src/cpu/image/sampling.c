/* sampling.c - where images are read, and with which weights (sampling.h). */
#include <math.h>
#include "sampling.h"

/* ---- weights along one dimension ------------------------------------------------------------- */

static bool is_nearest(int weights)
{
    return weights == RESAMPLE_NEAREST || weights == RESAMPLE_NEAREST_EXACT;
}

/* Input elements per result element. */
static double step_of(const ResampleLine *a)
{
    if (a->align_corners) return a->out > 1 ? (double)(a->in - 1) / (double)(a->out - 1) : 0;
    return a->scale > 0 ? 1 / a->scale : (double)a->in / (double)a->out;
}

/* In f32 whatever x is; roundings and shortcuts as PyTorch's forward has them in 2 dimensions, and in 1
 * and 3. */
static int64_t nearest(const ResampleLine *a, int64_t i)
{
    const float step = a->scale > 0 ? (float)(1 / a->scale) : (float)a->in / (float)a->out;
    int64_t at;
    if (a->weights == RESAMPLE_NEAREST_EXACT)
        at = (int64_t)floorf(a->spatial == 2 ? (float)(((double)i + 0.5) * (double)step)
                                             : ((float)i + 0.5f) * step);
    else if (a->spatial == 2 && a->out == a->in) at = i;
    else if (a->spatial == 2 && a->out == 2 * a->in) at = i / 2;
    else at = (int64_t)floorf((float)i * step);
    return at < a->in ? at : a->in - 1;
}

/* Keys' cubic at distance x. */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* The element before position i, and how far behind it that lies. */
static int64_t position(const ResampleLine *a, int64_t i, double *behind)
{
    const double step = step_of(a);
    double at = a->align_corners ? step * (double)i : step * ((double)i + 0.5) - 0.5;
    if (at < 0 && a->weights != RESAMPLE_CUBIC) at = 0;
    const int64_t below = (int64_t)fmin(floor(at), (double)(a->in - 1));
    *behind = fmin(fmax(at - (double)below, 0), 1);
    return below;
}

/* A filter as wide as what a result element covers, as Pillow's: its cubic has a = -0.5. */
static double support_of(const ResampleLine *a)
{
    const double half = a->weights == RESAMPLE_CUBIC ? 2 : 1, step = step_of(a);
    return step >= 1 ? half * step : half;
}

static int antialiased(const ResampleLine *a, int64_t i, int64_t *index, double *weight)
{
    const double step = step_of(a), support = support_of(a), center = step * ((double)i + 0.5),
                 shrink = step >= 1 ? 1 / step : 1;
    const int64_t from = (int64_t)fmax(center - support + 0.5, 0),
                  to = (int64_t)fmin(center + support + 0.5, (double)a->in);
    const int64_t most = 2 * (int64_t)ceil(support) + 1;
    int n = 0;
    double total = 0;
    for (int64_t j = from; j < to && n < most; j++, n++) {
        const double x = ((double)j - center + 0.5) * shrink;
        index[n] = j, weight[n] = a->weights == RESAMPLE_CUBIC ? cubic(x, -0.5) : fmax(1 - fabs(x), 0);
        total += weight[n];
    }
    for (int k = 0; k < n && total != 0; k++) weight[k] /= total;
    return n;
}

/* The weights of result element i; returns how many. */
static int taps(const ResampleLine *a, int64_t i, int64_t *index, double *weight)
{
    double behind;
    if (is_nearest(a->weights)) return index[0] = nearest(a, i), weight[0] = 1, 1;
    if (a->antialias) return antialiased(a, i, index, weight);
    const int64_t at = position(a, i, &behind), last = a->in - 1;
    if (a->weights != RESAMPLE_CUBIC) {
        index[0] = at, weight[0] = 1 - behind;
        index[1] = at < last ? at + 1 : at, weight[1] = behind;
        return 2;
    }
    for (int k = 0; k < 4; k++) {
        const int64_t j = at - 1 + k;
        index[k] = j < 0 ? 0 : j < last ? j : last, weight[k] = cubic(behind + 1 - k, -0.75);
    }
    return 4;
}

int64_t resample_most_taps(const ResampleLine *a)
{
    if (is_nearest(a->weights)) return 1;
    if (!a->antialias) return a->weights == RESAMPLE_CUBIC ? 4 : 2;
    return 2 * (int64_t)ceil(support_of(a)) + 1;
}

/* ---- tables ---------------------------------------------------------------------------------- */

bool resample_is_copy(const ResampleLine *a)
{
    return a->in == a->out && !is_nearest(a->weights) &&
           (a->weights != RESAMPLE_CUBIC || a->antialias || a->align_corners || a->scale == 0);
}

void resample_fill(const ResampleLine *a, ResampleTable t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->out; i++) {
        t.start[i] = n;
        n += taps(a, i, t.index + n, t.weight + n);
    }
    t.start[a->out] = n;
}

/* Rows of t become columns of `to`: counted, then placed, in order. */
void resample_transpose(const ResampleLine *a, ResampleTable t, ResampleTable to)
{
    int64_t *begin = to.start, sum = 0;
    memset(begin, 0, (size_t)(a->in + 1) * sizeof *begin);
    for (int64_t k = 0; k < t.start[a->out]; k++) begin[t.index[k]]++;
    for (int64_t j = 0; j <= a->in; j++) {
        const int64_t count = begin[j];
        begin[j] = sum, sum += count;
    }
    for (int64_t i = 0; i < a->out; i++)
        for (int64_t k = t.start[i]; k < t.start[i + 1]; k++) {
            const int64_t at = begin[t.index[k]]++;
            to.index[at] = i, to.weight[at] = t.weight[k];
        }
    for (int64_t j = a->in; j > 0; j--) begin[j] = begin[j - 1]; /* each had moved to the next one's */
    begin[0] = 0;
}

/* ---- centers of pixels ----------------------------------------------------------------------- */

static double center(int64_t i, int64_t n, bool align_corners)
{
    if (n == 1) return 0;
    return align_corners ? (double)(2 * i) / (double)(n - 1) - 1 : (double)(2 * i + 1) / (double)n - 1;
}

void pixel_centers(const int64_t *size, int n, bool align_corners, double *to)
{
    int64_t pixels = 1;
    for (int d = 0; d < n; d++) pixels *= size[d];
    for (int64_t i = 0; i < pixels; i++, to += n + 1) {
        int64_t rest = i;
        for (int d = n - 1; d >= 0; rest /= size[d], d--)
            to[n - 1 - d] = center(rest % size[d], size[d], align_corners);
        to[n] = 1;
    }
}

/* ---- windows at random ----------------------------------------------------------------------- */

static int64_t start(double u, int64_t i, int64_t in, int64_t out, int64_t kernel, bool is_f64)
{
    if (i == out - 1) return in - kernel;
    if (is_f64) {
        const double a = (double)(in - kernel) / (double)(out - 1);
        return (int64_t)(((double)i + u) * a) - (int64_t)(u * a);
    }
    const float a = (float)(in - kernel) / (float)(out - 1), v = (float)u;
    return (int64_t)(((float)i + v) * a) - (int64_t)(v * a);
}

void random_windows(const RandomWindows *f, const double *u, int64_t *to)
{
    int64_t windows = 1, elements = 1;
    for (int d = 0; d < f->rank; d++) windows *= f->out[d], elements *= f->kernel[d];
    for (int64_t p = 0; p < f->planes; p++)
        for (int64_t w = 0; w < windows; w++) {
            int64_t first[3], at = w;
            for (int d = f->rank - 1; d >= 0; at /= f->out[d--]) {
                /* PyTorch draws for width before height, and in three dimensions for depth first */
                const int64_t k = f->rank == 2 ? 1 - d : d;
                first[d] =
                    start(u[p * f->rank + k], at % f->out[d], f->in[d], f->out[d], f->kernel[d], f->is_f64);
            }
            for (int64_t e = 0; e < elements; e++) {
                int64_t place = 0, in_kernel[3], rest = e;
                for (int d = f->rank - 1; d >= 0; rest /= f->kernel[d--]) in_kernel[d] = rest % f->kernel[d];
                for (int d = 0; d < f->rank; d++) place = place * f->in[d] + first[d] + in_kernel[d];
                *to++ = place;
            }
        }
}
