/* gemm_kernel.h - what gemm.c asks of the kernels: one product on one thread.
 *
 * gemm_kernel.c is compiled once for each instruction set; each copy exports two entries of this kind.
 * An element of c is one chain of multiply-adds over k, cut into blocks whose length follows from k alone.
 * So its bits do not depend on its place in a tile, and c may be cut anywhere among threads. */
#ifndef TAPEGRAD_CPU_GEMM_KERNEL_H
#define TAPEGRAD_CPU_GEMM_KERNEL_H

#include "gemm.h"

enum { THIN = 32 };

typedef struct {
    int rows, cols;                                   /* of the micro-tile: where cutting c costs nothing */
    size_t (*scratch)(const GemmCall *call);          /* bytes that run() needs, a multiple of 64 */
    void (*run)(const GemmCall *call, void *scratch); /* ignores batch; all of m, n, k > 0 */
    void (*dots)(const GemmCall *call);   /* the same for few elements and a long k: sums by vectors */
    void (*thin)(const GemmCall *call);   /* the same for n = 1 and k <= THIN, to the same bits as run */
    void (*column)(const GemmCall *call); /* the same for n = 1: sums by vectors */
} GemmKernel;

extern const GemmKernel gemm_kernel_base[2]; /* by dtype */
extern const GemmKernel gemm_kernel_avx2[2];
extern const GemmKernel gemm_kernel_avx512[2];

#endif
