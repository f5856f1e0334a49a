/* norm_kernel.h - the loops that norm.c calls, compiled for each instruction set, by dtype (0 f32, 1 f64).
 *
 * z is (x - mean) rstd.  A run is n contiguous elements; columns are n <= NORM_COLUMNS neighbours in `rows`
 * rows, `line` elements apart, each column with its own statistics.  Sums are formed in double. */
#ifndef TG_CPU_NORM_KERNEL_H
#define TG_CPU_NORM_KERNEL_H

#include "cpu/cpu.h"
#include "hidden.h"

enum { NORM_COLUMNS = 64 };

/* Two sums: of x - shift and its square, or of g and g z. */
typedef struct Sums {
    double a, b;
} Sums;
typedef struct ColumnSums {
    double a[NORM_COLUMNS], b[NORM_COLUMNS];
} ColumnSums;

typedef struct NormKernel {
    void (*moments)(const void *x, int64_t n, double shift, Sums *sum); /* adds */
    /* y = (x - mean) rstd weight + bias; weight and bias are arrays or NULL.   scale: the same with one
     * weight and bias. */
    void (*row)(const void *x, int64_t n, double mean, double rstd, const void *weight, const void *bias,
                void *y);
    void (*scale)(const void *x, int64_t n, double mean, double factor, double bias, void *y);
    /* With g = dy weight (weight an array or NULL): products adds sum g, sum g z;  gradient is dx = factor (g
     * - by.a - by.b z); parameters adds dy z to dweight and dy to dbias, element by element. */
    void (*products)(const void *x, const void *dy, const void *weight, int64_t n, double mean, double rstd,
                     Sums *sum);
    void (*gradient)(const void *x, const void *dy, const void *weight, int64_t n, double mean, double rstd,
                     double factor, Sums by, void *dx);
    void (*parameters)(const void *x, const void *dy, int64_t n, double mean, double rstd, double *dweight,
                       double *dbias);
    /* dx = p dy + q (x - mean) + s */
    void (*blend)(const void *x, const void *dy, int64_t n, double mean, double p, double q, double s,
                  void *dx);
    /* The same for columns. */
    void (*column_moments)(const void *x, int64_t rows, int64_t line, int n,
                           ColumnSums *sum); /* shift: row 0 */
    void (*column_scale)(const void *x, int64_t rows, int64_t line, int n, const double *mean,
                         const double *factor, const double *bias, void *y);
    void (*column_products)(const void *x, const void *dy, int64_t rows, int64_t line, int n,
                            const double *mean, const double *rstd, ColumnSums *sum);
    void (*column_gradient)(const void *x, const void *dy, int64_t rows, int64_t line, int n,
                            const double *mean, const double *rstd, const double *factor,
                            const ColumnSums *by, void *dx);
} NormKernel;

extern const NormKernel norm_kernel_base[2] HIDDEN;
extern const NormKernel norm_kernel_avx2[2] HIDDEN;
extern const NormKernel norm_kernel_avx512[2] HIDDEN;

#endif
