/* direct_tiles.h - the two sums of direct convolution (direct_kernel.h) over words: an f32, or two bf16.
 * What includes it says what a word adds to a sum:
 *
 *   multiply_add(a, b, sum)    of vectors of words and f32 sums */
#ifndef TAPEGRAD_CPU_DIRECT_TILES_H
#define TAPEGRAD_CPU_DIRECT_TILES_H

#include "direct_kernel.h"

enum { LANES = BYTES / 4 };
#define LOAD(p) ((Vf32) * (const Uf32 *)(p))
#define STORE(p, v) (*(Uf32 *)(p) = (v))

#if defined __AVX512F__
enum { PIXELS = 14 };
#else
enum { PIXELS = 6 };
#endif
/* Packed weights come from L2: fetched so many rows ahead. */
enum { AHEAD = 16 };

/* ---- sums over channels and taps ------------------------------------------------------------- */

FORCE_INLINE void step(const int n, const int halves, const float *x, const float *w, Vf32 (*sum)[2])
{
    Vf32 v[2];
    UNROLL for (int h = 0; h < halves; h++)
    {
        v[h] = LOAD(w + h * LANES);
        PIN(v[h]);
        __builtin_prefetch(w + (AHEAD * halves + h) * LANES);
    }
    UNROLL for (int i = 0; i < n; i++)
    {
        const Vf32 a = all_f32(x[i * LANES]);
        UNROLL for (int h = 0; h < halves; h++) sum[i][h] = multiply_add(a, v[h], sum[i][h]);
    }
}

FORCE_INLINE void tile(const int n, const int halves, const DirectSum *s, const float *x, const float *w,
                       float *y, int64_t y_step, int64_t y_half)
{
    Vf32 sum[PIXELS][2];
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int h = 0; h < halves; h++) sum[i][h] = (Vf32){ 0 };
    for (int64_t b = 0; b < s->blocks; b++, x += s->x_block, w += s->w_block)
        for (int64_t t = 0; t < s->taps; t++) {
            const float *from = x + s->tap[t].x, *by = w + s->tap[t].w;
            for (int c = b < s->blocks - 1 ? LANES : s->last; c > 0; c--, from++, by += halves * LANES)
                step(n, halves, from, by, sum);
        }
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int h = 0; h < halves; h++)
        STORE(y + i * y_step + h * y_half, sum[i][h]);
}

typedef void TileFn(const DirectSum *s, const float *x, const float *w, float *y, int64_t y_step,
                    int64_t y_half);
#define TILE(n, halves)                                                                           \
    static void tile_##n##_##halves(const DirectSum *s, const float *x, const float *w, float *y, \
                                    int64_t y_step, int64_t y_half)                               \
    {                                                                                             \
        tile(n, halves, s, x, w, y, y_step, y_half);                                              \
    }
#define UP_TO_6(F, h) F(1, h) F(2, h) F(3, h) F(4, h) F(5, h) F(6, h)
#define UP_TO_14(F, h) UP_TO_6(F, h) F(7, h) F(8, h) F(9, h) F(10, h) F(11, h) F(12, h) F(13, h) F(14, h)
#if defined __AVX512F__
#define TILES UP_TO_14
#else
#define TILES UP_TO_6
#endif
TILES(TILE, 1)
TILES(TILE, 2)
#define NAME(n, halves) tile_##n##_##halves,
static TileFn *const tiles[2][PIXELS] = { { TILES(NAME, 1) }, { TILES(NAME, 2) } };

static void run(const DirectSum *s, int64_t n, const float *x, const float *w, float *y, int64_t y_step,
                int64_t y_half)
{
    const int64_t count = (n + PIXELS - 1) / PIXELS;
    for (int64_t i = count; i > 0; i--) {
        const int64_t here = (n + i - 1) / i;
        tiles[s->halves - 1][here - 1](s, x, w, y, y_step, y_half);
        n -= here, x += here * LANES, y += here * y_step;
    }
}

/* ---- sums over pixels ------------------------------------------------------------------------ */

FORCE_INLINE void weight_tile(const int channels, const int halves, const DirectWalk *k, const float *x,
                              const float *y, float *sums)
{
    Vf32 sum[LANES][2];
    UNROLL for (int i = 0; i < channels; i++) UNROLL for (int h = 0; h < halves; h++) sum[i][h] = (Vf32){ 0 };
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t m = 0; m < k->middle; m++) {
            const float *a = x + o * k->x_outer + m * k->x_middle, *b = y + o * k->y_outer + m * k->y_middle,
                        *b2 = b + k->y_half;
            UNROLL_2 for (int64_t i = 0; i < k->n; i++, a += LANES, b += LANES, b2 += LANES)
            {
                Vf32 v[2];
                v[0] = LOAD(b);
                PIN(v[0]);
                if (halves > 1) {
                    v[1] = LOAD(b2);
                    PIN(v[1]);
                }
                UNROLL for (int c = 0; c < channels; c++)
                {
                    const Vf32 u = all_f32(a[c]);
                    UNROLL for (int h = 0; h < halves; h++) sum[c][h] = multiply_add(u, v[h], sum[c][h]);
                }
            }
        }
    UNROLL for (int i = 0; i < channels; i++) UNROLL for (int h = 0; h < halves; h++)
    {
        float *to = sums + (i * halves + h) * LANES;
        STORE(to, LOAD(to) + sum[i][h]);
    }
}

static void weight(const DirectWalk *k, const float *x, const float *y, float *sums)
{
    if (k->halves == 1) {
        weight_tile(LANES, 1, k, x, y, sums);
        return;
    }
    for (int c = 0; c < k->channels; c += LANES / 2)
        weight_tile(LANES / 2, 2, k, x + c, y, sums + c * 2 * LANES);
}

#endif
