/* gemm.h - the matrix product of the CPU, on raw pointers.
 *
 *   c = alpha a b + beta c + bias         a [m,k]  b [k,n]  c [m,n], repeated `batch` times
 *
 * The caller has validated everything: this layer trusts its arguments.  What it promises:
 *
 *  - any strides, counted in elements: transposed (a transposed operand is packed piece by piece, never
 *    copied whole), broadcast (0) or negative; m, n, k or batch may be 0;
 *  - k == 0 or alpha == 0 leaves beta c + bias and reads neither a nor b;
 *  - beta == 0 never reads c, so that a NaN in it does not survive;
 *  - the same bits for the same values: whatever the strides, the number of threads and the run;
 *    the order of summation is a function of the type, m, n, k and the machine alone.
 *
 * c must not overlap a or b; a and b may be the same memory. */
#ifndef TAPEGRAD_CPU_GEMM_H
#define TAPEGRAD_CPU_GEMM_H

#include <stddef.h>
#include <stdint.h>

#include "cpu/isa.h" /* cpu_isa, by which the kernels are chosen */

enum { GEMM_F32, GEMM_F64 };
enum { GEMM_BIAS_ROW, GEMM_BIAS_COLUMN };

typedef struct {
    int dtype; /* GEMM_F32 or GEMM_F64, of all operands */
    int64_t batch, m, n, k;
    const void *a;
    int64_t a_batch, a_row, a_col;
    const void *b;
    int64_t b_batch, b_row, b_col;
    void *c;
    int64_t c_batch, c_row, c_col;
    double alpha, beta;
    const void *bias; /* NULL or contiguous, of the operands' type ... */
    int bias_per;     /* ROW: n values added to each row; COLUMN: m values to each column */
} GemmCall;

/* gemm_cpu - the product, by at most `threads` threads; fewer where the work is small, and one inside
 * a parallel region.
 * 0, or -1 when scratch memory could not be had: c is untouched then. */
int gemm_cpu(const GemmCall *call, int threads);

/* gemm_release - give back the scratch memory that the calling thread keeps between calls.  A thread that
 * ends gives back its own. */
void gemm_release(void);

/* gemm_scratch.c: 64-byte aligned memory or NULL, and what takes it back. */
void *gemm_scratch(size_t bytes);
void gemm_scratch_free(void *memory);

/* BLIS, which takes over where it is measured to be as fast (blis.c).
 * blis_ready - is there a BLIS whose kernels use the whole of this CPU?  Chooses its sub-configuration and
 *   initialises it on the first call, from any thread.
 * blis_gemm - one product, c = alpha a b + beta c with beta 0 or 1; the call's batch and bias are ignored.
 *   Not from inside a parallel region.
 * blis_version, blis_config - for people to read: "0.9.0", "skx"; "absent" when built without BLIS. */
int blis_ready(void);
void blis_gemm(const GemmCall *call, int threads);
const char *blis_version(void);
const char *blis_config(void);

#endif
