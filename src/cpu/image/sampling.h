/* sampling.h - where images are read, and with which weights: on the host, for the kernels of any device. */
#ifndef TG_CPU_SAMPLING_H
#define TG_CPU_SAMPLING_H

#include "tensor/core.h"

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

/* resample_axis - the table of a line's weights, or of their transpose, in a dtype; it belongs to the open
 * scope. A line that stays as it is has none.  0, or -1 for no memory. */
int resample_axis(const ResampleLine *line, bool transposed, int dtype, ResampleAxis *to);

/* pixel_centers - to [pixels, n + 1]: x, y(, z) and 1 for the center of each pixel of an image of that size,
 * in [-1, 1], where -1 and 1 are the first and the last center, or their outer edges. */
void pixel_centers(const int64_t *size, int n, bool align_corners, double *to);

#pragma GCC visibility pop
#endif
