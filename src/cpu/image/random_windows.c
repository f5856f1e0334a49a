/* random_windows.c - see random_windows.h. */
#include "random_windows.h"

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
