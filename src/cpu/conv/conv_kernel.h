/* conv_kernel.h - the loops that conv.c calls, compiled for each instruction set, by dtype (0 f32, 1 f64).
 *
 * Taps: (q, r, s) of the kernel window.  Positions: output pixels of one image, plane by plane and row by
 * row.  A panel has a row for each channel and tap, channel outermost, and a column for each position; `line`
 * elements lie between its rows. */
#ifndef TG_CPU_CONV_KERNEL_H
#define TG_CPU_CONV_KERNEL_H

#include "cpu/cpu.h"
#include "hidden.h"

enum { SLAB_BYTES = 128 }; /* a panel's width in gemm_tile.h, for the widest vectors */

typedef struct ConvKernel {
    /* unfold - the panel of positions [first, first + n) of `channels` channels of x; zeros where a tap lies
     * in the padding. slab - the same of SLAB_BYTES in a row, n of its columns, for stride 1 in rows and
     * columns; zeros in the others. fold - the reverse: adds the panel, which it uses up, to them. */
    void (*unfold)(const ConvArgs *a, const void *x, int64_t channels, int64_t first, int64_t n, void *panel,
                   int64_t line);
    void (*slab)(const ConvArgs *a, const void *x, int64_t channels, int64_t first, int64_t n, void *slab);
    void (*fold)(const ConvArgs *a, void *x, int64_t channels, int64_t first, int64_t n, void *panel,
                 int64_t line);

    /* One plane x, one plane y, one window: y += correlation;  x += its reverse;  weight += taps of y against
     * x. */
    void (*plane)(const ConvArgs *a, const void *x, const void *weight, void *y);
    void (*plane_grad_input)(const ConvArgs *a, void *x, const void *weight, const void *y);
    void (*plane_grad_weight)(const ConvArgs *a, const void *x, double *weight, const void *y);

    /* [out, in, taps] to [in, out, taps from the last to the first]. */
    void (*turn)(const void *weight, int64_t out, int64_t in, int64_t taps, void *to);

    void (*fill)(void *y, int64_t n, const void *value); /* NULL: zeros */
    void (*add)(void *y, const void *x, int64_t n);
    double (*sum)(const void *x, int64_t n);
} ConvKernel;

/* conv_threads - by the work in multiply-adds, a vector's worth of them counting as one operation. */
int conv_threads(const ConvArgs *a) HIDDEN;

/* conv_integers, conv_integers_grad_input - of integers, by products (conv_integer.c); -1 without memory. */
int conv_integers(const ConvArgs *a) HIDDEN;
int conv_integers_grad_input(const ConvArgs *a) HIDDEN;

extern const ConvKernel conv_kernel_base[2] HIDDEN;
extern const ConvKernel conv_kernel_avx2[2] HIDDEN;

#endif
