/* gemm_kernel.c - the own matrix product for one instruction set: vectors, then the loops for both types.
 *
 * Compiled with -DISA=avx512, avx2 or base and the matching -march.  Vectors are those of vectors.h; the
 * loops are in gemm_tile.h and gemm_column.h, written once for all types and widths.  -ffp-contract is off
 * for the whole library, hence the explicit fused operation: both compilers then round alike. */
#include "gemm_kernel.h"

#include <string.h>

#include "cpu/vectors.h"

/* Tile rows: as many accumulators as the registers hold beside two of b and one of a; and up to FEW. */
#if defined __AVX512F__
enum { ROWS = 14, FEW = 8, BLOCK_BYTES = 516096 };
#elif defined __AVX2__
enum { ROWS = 6, FEW = 6, BLOCK_BYTES = 184320 };
#elif defined __aarch64__
enum { ROWS = 12, FEW = 8, BLOCK_BYTES = 184320 };
#else
#define BASE_OF_X86 1 /* for CPUs from before 2013: small code */
enum { ROWS = 4, FEW = 4, BLOCK_BYTES = 184320 };
#endif

/* Tiles of their own for an `a` whose columns are 1 apart: on x86-64 not for f64 (1 to 2 % slower for 20 KB),
 * nor on CPUs from before 2013, whose code is small. */
#if defined __aarch64__
enum { UNIT_f32 = 1, UNIT_f64 = 1 };
#elif defined __AVX2__
enum { UNIT_f32 = 1, UNIT_f64 = 0 };
#else
enum { UNIT_f32 = 0, UNIT_f64 = 0 };
#endif

#if defined __FMA__ || defined __aarch64__
#define FUSED(x, y, z)                                                      \
    (sizeof(T) == 4 ? (T)__builtin_fmaf((float)(x), (float)(y), (float)(z)) \
                    : (T)__builtin_fma((double)(x), (double)(y), (double)(z)))
#else
#define FUSED(x, y, z) ((x) * (y) + (z))
#endif

#define T float
#define TYPE f32
#define MIX_LOW MIX_LOW_F32
#define MIX_HIGH MIX_HIGH_F32
#include "gemm_tile.h"
#include "gemm_column.h"
#undef T
#undef TYPE
#undef MIX_LOW
#undef MIX_HIGH

#define T double
#define TYPE f64
#if defined __AVX512F__
#define MIX_LOW LOW8
#define MIX_HIGH HIGH8
#elif defined __AVX2__
#define MIX_LOW LOW4
#define MIX_HIGH HIGH4
#else
#define MIX_LOW LOW2
#define MIX_HIGH HIGH2
#endif
#include "gemm_tile.h"
#include "gemm_column.h"

/* ---- one element of f32 ---------------------------------------------------------------------- */

/* In f32 eight steps at a time, then in double: as fast as memory, and sums over 10^7 elements are within 4
 * ulp (test_accuracy.c). */

typedef float Half __attribute__((vector_size(BYTES / 2), aligned(4), may_alias));

#if defined __AVX512F__ /* gcc makes three instructions of the general form */
FORCE_INLINE Vf64 widen(const float *p) { return (Vf64)_mm512_cvtps_pd(_mm256_loadu_ps(p)); }
#elif defined __AVX2__
FORCE_INLINE Vf64 widen(const float *p) { return (Vf64)_mm256_cvtps_pd(_mm_loadu_ps(p)); }
#else
FORCE_INLINE Vf64 widen(const float *p) { return __builtin_convertvector(*(const Half *)p, Vf64); }
#endif

static double add_products(const float *a, const float *b, int64_t k, Vf64 sum[4])
{
    enum { WIDTH = BYTES / 8, FLOATS = 2 * WIDTH, STEPS = 8 };
    int64_t p = 0;
    double rest = 0;
    for (; p + STEPS * 4 * FLOATS <= k; p += STEPS * 4 * FLOATS) {
        Vf32 part[4] = { { 0 } };
        for (int64_t q = p; q < p + STEPS * 4 * FLOATS; q += 4 * FLOATS)
            UNROLL for (int s = 0; s < 4; s++) part[s] =
                fma_f32(*(const Uf32 *)(a + q + s * FLOATS), *(const Uf32 *)(b + q + s * FLOATS), part[s]);
        UNROLL for (int s = 0; s < 4; s++)
        {
            const float *of = (const float *)&part[s];
            sum[s] += widen(of) + widen(of + WIDTH);
        }
    }
    for (; p + WIDTH <= k; p += WIDTH) sum[0] = fma_f64(widen(a + p), widen(b + p), sum[0]);
    for (; p < k; p++) rest += (double)a[p] * (double)b[p];
    return rest;
}

static void one_f32(const GemmCall *g)
{
    float copy_a[DOT_CHUNK], copy_b[DOT_CHUNK], *c = g->c;
    const float *a, *b;
    Vf64 sum[4];
    double total = 0;
    memset(sum, 0, sizeof sum);
    for (int64_t p = 0; p < g->k; p += DOT_CHUNK) {
        const int64_t k = g->k - p < DOT_CHUNK ? g->k - p : DOT_CHUNK;
        lines_f32((const float *)g->a + p * g->a_col, 0, g->a_col, 1, k, copy_a, &a);
        lines_f32((const float *)g->b + p * g->b_row, 0, g->b_row, 1, k, copy_b, &b);
        total += add_products(a, b, k, sum);
    }
    const Vf64 v = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (int s = 0; s < BYTES / 8; s++) total += v[s];
    total *= g->alpha;
    if (g->beta != 0) total += g->beta * (double)*c;
    if (g->bias) total += (double)*(const float *)g->bias;
    *c = (float)total;
}

static void few_f32(const GemmCall *g)
{
    if (g->m == 1 && g->n == 1) one_f32(g);
    else dots_f32(g);
}

const GemmKernel JOIN(gemm_kernel, ISA)[2] __attribute__((visibility("hidden"))) = {
    [GEMM_F32] = { ROWS, 2 * BYTES / (int)sizeof(float), scratch_f32, run_f32, few_f32, thin_f32,
                   column_f32 },
    [GEMM_F64] = { ROWS, 2 * BYTES / (int)sizeof(double), scratch_f64, run_f64, dots_f64, thin_f64,
                   column_f64 },
};
