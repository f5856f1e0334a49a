/* winograd_kernel.h - the transforms of winograd.c and winograd_weight.c, on vectors of channels.
 * winograd_kernel.c is compiled once an instruction set; where input is NULL there are none.  The 16 points
 * of a tile are `point` floats apart. */
#ifndef TAPEGRAD_CPU_WINOGRAD_KERNEL_H
#define TAPEGRAD_CPU_WINOGRAD_KERNEL_H

#include <stdint.h>
#include "cpu/isa.h"
#include "hidden.h"

typedef struct WinogradKernel {
    /* input - B^T x B of n tiles of 4 x 4 pixels, 2 apart; lines of x are `line` floats apart. */
    void (*input)(const float *x, int64_t line, int64_t n, float *points, int64_t point);
    /* weights - G w G^T of n vectors, whose 9 taps are `tap` floats apart; turned: from the last one on. */
    void (*weights)(const float *w, int64_t tap, int64_t n, int turned, float *points, int64_t point);
    /* output - A^T m A of n tiles: `rows` (1 or 2) lines of y of `columns` pixels.
     * Returns whether all its values are finite. */
    int (*output)(const float *points, int64_t point, int64_t n, float *y, int64_t columns, int64_t rows);
    /* gradient - A y A^T of n tiles of 2 x 2 pixels, beside each other, of two lines.
     * taps - G^T m G of n vectors: 9 taps, `tap` floats apart. */
    void (*gradient)(const float *y, int64_t line, int64_t n, float *points, int64_t point);
    void (*taps)(const float *points, int64_t point, int64_t n, float *w, int64_t tap);
    /* spread - adds |x| and x^2 of n vectors, `step` floats apart, to sums [2][lanes]. */
    void (*spread)(const float *x, int64_t step, int64_t n, float *sums);
} WinogradKernel;

extern const WinogradKernel winograd_kernel_base[1] HIDDEN;
extern const WinogradKernel winograd_kernel_avx2[1] HIDDEN;
extern const WinogradKernel winograd_kernel_avx512[1] HIDDEN;

#endif
