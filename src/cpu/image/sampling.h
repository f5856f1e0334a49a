/* sampling.h - where images are read, and with which weights: on the host, for the kernels of any device. */
#ifndef TG_CPU_SAMPLING_H
#define TG_CPU_SAMPLING_H

#include "device/device.h"
#include "device/host.h"

#pragma GCC visibility push(hidden)

typedef enum ResampleWeights {
    RESAMPLE_NEAREST,
    RESAMPLE_NEAREST_EXACT,
    RESAMPLE_LINEAR,
    RESAMPLE_CUBIC
} ResampleWeights;

/* One dimension of an image that gets another size. */
typedef struct ResampleLine {
    ResampleWeights weights;
    int spatial; /* how many dimensions the image has: PyTorch's nearest rounds otherwise in two */
    bool align_corners, antialias;
    int64_t in, out;
    double scale; /* that positions are computed with; 0: the sizes' own */
} ResampleLine;

/* A line's weights: result element i is the sum over k in [start[i], start[i + 1]) of weight[k] times element
 * index[k]. */
typedef struct ResampleTable {
    int64_t *start, *index;
    double *weight;
} ResampleTable;

bool resample_is_copy(const ResampleLine *line);      /* it stays as it is, and needs no table */
int64_t resample_most_taps(const ResampleLine *line); /* weights of one result element at most */
/* resample_fill - to start [out + 1], index and weight [out most_taps].
 * resample_transpose - the same from the other side: to start [in + 1], index and weight [start[out]]. */
void resample_fill(const ResampleLine *line, ResampleTable to);
void resample_transpose(const ResampleLine *line, ResampleTable from, ResampleTable to);

/* pixel_centers - to [pixels, n + 1]: x, y(, z) and 1 for the center of each pixel of an image of that size,
 * in [-1, 1], where -1 and 1 are the first and the last center, or their outer edges. */
void pixel_centers(const int64_t *size, int n, bool align_corners, double *to);

/* random_windows - the places in its plane of all elements of all windows, to [planes, windows, elements];
 * u [planes, rank] are random (op/image/fractional_pool.c), and windows begin as f64 or f32 has it. */
typedef struct RandomWindows {
    int rank;
    bool is_f64;
    int64_t planes, in[3], out[3], kernel[3];
} RandomWindows;
void random_windows(const RandomWindows *f, const double *u, int64_t *to);

#pragma GCC visibility pop
#endif
