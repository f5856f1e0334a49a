/* resample_taps.h - the weights of a line that gets another size, for the CPU and for CUDA. */
#ifndef TG_RESAMPLE_TAPS_H
#define TG_RESAMPLE_TAPS_H

#include <math.h>
#include "device/device.h"

#ifdef __cplusplus
#define RESAMPLE_FN static __host__ __device__ inline
#else
#define RESAMPLE_FN static inline
#endif

RESAMPLE_FN bool resample_is_nearest(int weights)
{
    return weights == RESAMPLE_NEAREST || weights == RESAMPLE_NEAREST_EXACT;
}

/* Input elements per result element. */
RESAMPLE_FN double resample_step_of(const ResampleLine *a)
{
    if (a->align_corners) return a->out > 1 ? (double)(a->in - 1) / (double)(a->out - 1) : 0;
    return a->scale > 0 ? 1 / a->scale : (double)a->in / (double)a->out;
}

/* In f32 whatever x is; roundings and shortcuts as PyTorch's forward has them in 2 dimensions, and in 1
 * and 3. */
RESAMPLE_FN int64_t resample_nearest(const ResampleLine *a, int64_t i)
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
RESAMPLE_FN double resample_cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* The element before position i, and how far behind it that lies. */
RESAMPLE_FN int64_t resample_position(const ResampleLine *a, int64_t i, double *behind)
{
    const double step = resample_step_of(a);
    double at = a->align_corners ? step * (double)i : step * ((double)i + 0.5) - 0.5;
    if (at < 0 && a->weights != RESAMPLE_CUBIC) at = 0;
    const int64_t below = (int64_t)fmin(floor(at), (double)(a->in - 1));
    *behind = fmin(fmax(at - (double)below, 0.), 1.);
    return below;
}

/* A filter as wide as what a result element covers, as Pillow's: its cubic has a = -0.5. */
RESAMPLE_FN double resample_support_of(const ResampleLine *a)
{
    const double half = a->weights == RESAMPLE_CUBIC ? 2 : 1, step = resample_step_of(a);
    return step >= 1 ? half * step : half;
}

RESAMPLE_FN int resample_antialiased(const ResampleLine *a, int64_t i, int64_t *index, double *weight)
{
    const double step = resample_step_of(a), support = resample_support_of(a),
                 center = step * ((double)i + 0.5), shrink = step >= 1 ? 1 / step : 1;
    const int64_t from = (int64_t)fmax(center - support + 0.5, 0.),
                  to = (int64_t)fmin(center + support + 0.5, (double)a->in);
    const int64_t most = 2 * (int64_t)ceil(support) + 1;
    int n = 0;
    double total = 0;
    for (int64_t j = from; j < to && n < most; j++, n++) {
        const double x = ((double)j - center + 0.5) * shrink;
        index[n] = j,
        weight[n] = a->weights == RESAMPLE_CUBIC ? resample_cubic(x, -0.5) : fmax(1 - fabs(x), 0.);
        total += weight[n];
    }
    for (int k = 0; k < n && total != 0; k++) weight[k] /= total;
    return n;
}

/* The weights of result element i; returns how many. */
RESAMPLE_FN int resample_taps(const ResampleLine *a, int64_t i, int64_t *index, double *weight)
{
    double behind;
    if (resample_is_nearest(a->weights)) return index[0] = resample_nearest(a, i), weight[0] = 1, 1;
    if (a->antialias) return resample_antialiased(a, i, index, weight);
    const int64_t at = resample_position(a, i, &behind), last = a->in - 1;
    if (a->weights != RESAMPLE_CUBIC) {
        index[0] = at, weight[0] = 1 - behind;
        index[1] = at < last ? at + 1 : at, weight[1] = behind;
        return 2;
    }
    for (int k = 0; k < 4; k++) {
        const int64_t j = at - 1 + k;
        index[k] = j < 0 ? 0 : j < last ? j : last, weight[k] = resample_cubic(behind + 1 - k, -0.75);
    }
    return 4;
}

RESAMPLE_FN int64_t resample_most_taps(const ResampleLine *a)
{
    if (resample_is_nearest(a->weights)) return 1;
    if (!a->antialias) return a->weights == RESAMPLE_CUBIC ? 4 : 2;
    return 2 * (int64_t)ceil(resample_support_of(a)) + 1;
}

/* The line stays as it is, and needs no table. */
RESAMPLE_FN bool resample_is_copy(const ResampleLine *a)
{
    return a->in == a->out && !resample_is_nearest(a->weights) &&
           (a->weights != RESAMPLE_CUBIC || a->antialias || a->align_corners || a->scale == 0);
}

#endif
