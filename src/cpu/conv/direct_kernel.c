/* direct_kernel.c - the kernels of direct convolution for one instruction set (direct_kernel.h).
 *
 * A tile holds some pixels times one or two vectors of outputs in registers: each weight is loaded once for
 * all pixels, each value of x once for both vectors.  150 to 190 GFLOP/s of 200 that a core of a Sapphire
 * Rapids does on ordinary data, where unfolding and a product reached 88 to 159. */
#include "direct_kernel.h"
#include "cpu/vectors.h"

#ifndef __AVX2__
const DirectKernel ISA_NAME(direct_kernel)[1] = { { .lanes = 0 } };
#else

FORCE_INLINE Vf32 multiply_add(Vf32 a, Vf32 b, Vf32 sum) { return fma_f32(a, b, sum); }
#include "direct_tiles.h"

/* ---- each channel alone ---------------------------------------------------------------------- */

FORCE_INLINE void each_tile(const int n, const DirectSum *s, const float *x, const float *w, float *y,
                            int64_t y_step)
{
    Vf32 sum[4];
    UNROLL for (int i = 0; i < n; i++) sum[i] = (Vf32){ 0 };
    for (int64_t t = 0; t < s->taps; t++) {
        const Vf32 by = LOAD(w + s->tap[t].w);
        UNROLL for (int i = 0; i < n; i++) sum[i] = fma_f32(LOAD(x + s->tap[t].x + i * LANES), by, sum[i]);
    }
    UNROLL for (int i = 0; i < n; i++) STORE(y + i * y_step, sum[i]);
}

static void each(const DirectSum *s, int64_t n, const float *x, const float *w, float *y, int64_t y_step)
{
    for (; n >= 4; n -= 4, x += 4 * LANES, y += 4 * y_step) each_tile(4, s, x, w, y, y_step);
    for (; n > 0; n--, x += LANES, y += y_step) each_tile(1, s, x, w, y, y_step);
}

static void each_weight(const DirectWalk *k, const float *x, const float *y, float *sums)
{
    Vf32 sum[4] = { { 0 } };
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t m = 0; m < k->middle; m++) {
            const float *a = x + o * k->x_outer + m * k->x_middle, *b = y + o * k->y_outer + m * k->y_middle;
            int64_t i = 0;
            for (; i + 4 <= k->n; i += 4)
                UNROLL for (int q = 0; q < 4; q++) sum[q] =
                    fma_f32(LOAD(a + (i + q) * LANES), LOAD(b + (i + q) * LANES), sum[q]);
            for (; i < k->n; i++) sum[0] = fma_f32(LOAD(a + i * LANES), LOAD(b + i * LANES), sum[0]);
        }
    STORE(sums, LOAD(sums) + ((sum[0] + sum[1]) + (sum[2] + sum[3])));
}

/* ---- layouts --------------------------------------------------------------------------------- */

FORCE_INLINE void transpose(Vf32 *r)
{
    Vf32 t[LANES];
    UNROLL for (int size = 1; size < LANES; size *= 2)
    {
        UNROLL for (int i = 0; i < LANES / 2; i++)
        {
            t[2 * i] = MIX_LOW_F32(r[i], r[i + LANES / 2]);
            t[2 * i + 1] = MIX_HIGH_F32(r[i], r[i + LANES / 2]);
        }
        UNROLL for (int i = 0; i < LANES; i++) r[i] = t[i];
    }
}

/* A square of at most LANES rows, `line` apart, and columns: turned over. */
FORCE_INLINE void load_square(const float *x, int64_t line, int rows, int cols, Vf32 *r)
{
    if (rows == LANES && cols == LANES) {
        UNROLL for (int i = 0; i < LANES; i++) r[i] = LOAD(x + i * line);
    } else {
        const Mf32 mask = mask_f32(cols);
        UNROLL for (int i = 0; i < LANES; i++) r[i] = i < rows ? get_f32(x + i * line, mask) : (Vf32){ 0 };
    }
    transpose(r);
}

static void block(const float *x, int64_t line, int channels, int64_t n, const int32_t *place, int64_t step_,
                  float *to)
{
    for (int64_t p = 0; p < n; p += LANES) {
        const int cols = n - p < LANES ? (int)(n - p) : LANES;
        int used = !place;
        for (int i = 0; i < cols && !used; i++) used = place[p + i] >= 0;
        if (!used) continue;
        Vf32 r[LANES];
        load_square(x + p, line, channels, cols, r);
        if (!place)
            for (int i = 0; i < cols; i++) STORE(to + (p + i) * step_, r[i]);
        else
            for (int i = 0; i < cols; i++)
                if (place[p + i] >= 0) STORE(to + place[p + i] * step_, r[i]);
    }
}

static void unblock(const float *from, int64_t step_, int64_t n, int channels, const float *bias, float *y,
                    int64_t line)
{
    const Vf32 add = bias ? get_f32(bias, mask_f32(channels)) : (Vf32){ 0 };
    for (int64_t p = 0; p < n; p += LANES) {
        const int cols = n - p < LANES ? (int)(n - p) : LANES;
        const Mf32 mask = mask_f32(cols);
        Vf32 r[LANES];
        UNROLL for (int i = 0; i < LANES; i++)
        {
            r[i] = i < cols ? LOAD(from + (p + i) * step_) : (Vf32){ 0 };
            if (bias) r[i] += add;
        }
        transpose(r);
        if (cols == LANES && channels == LANES) {
            UNROLL for (int i = 0; i < LANES; i++) STORE(y + i * line + p, r[i]);
        } else
            for (int i = 0; i < channels; i++) put_f32(y + i * line + p, mask, r[i]);
    }
}

/* n columns from channel c on, tap by tap. */
static void pack_columns(const DirectWeights *d, const float *w, int64_t n, int64_t c, float *to)
{
    for (int64_t j = 0, t = 0; j < n; j += LANES) {
        const int cols = n - j < LANES ? (int)(n - j) : LANES;
        Vf32 r[LANES];
        load_square(w + j, d->out, d->outs, cols, r);
        for (int i = 0; i < cols; i++) {
            STORE(to + (t * LANES + c) * d->width, r[i]);
            if (++t == d->taps) t = 0, c++;
        }
    }
}

static void pack(const DirectWeights *d, const float *w, float *to)
{
    if (d->in == d->taps) pack_columns(d, w, d->ins * d->taps, 0, to);
    else
        for (int c = 0; c < d->ins; c++) {
            for (int64_t t = 0; t < d->taps; t++) __builtin_prefetch(w + (c + 4) * d->in + t * LANES);
            pack_columns(d, w + c * d->in, d->taps, c, to);
        }
}

static void unpack(const DirectWeights *d, const float *from, float *w, int add)
{
    const int64_t n = d->ins * d->taps;
    for (int64_t j = 0, t = 0, c = 0; j < n; j += LANES) {
        const int cols = n - j < LANES ? (int)(n - j) : LANES;
        const Mf32 mask = mask_f32(cols);
        Vf32 r[LANES];
        UNROLL for (int i = 0; i < LANES; i++)
        {
            r[i] = (Vf32){ 0 };
            if (i < cols) {
                r[i] = LOAD(from + (t * LANES + c) * d->width);
                if (++t == d->taps) t = 0, c++;
            }
        }
        transpose(r);
        for (int i = 0; i < d->outs; i++) {
            float *to = w + i * d->out + j;
            const Vf32 sum = add ? get_f32(to, mask) + r[i] : r[i];
            if (cols == LANES) STORE(to, sum); /* several times as fast as a masked store on Zen 4 */
            else put_f32(to, mask, sum);
        }
    }
}

const DirectKernel ISA_NAME(direct_kernel)[1] = {
    { LANES, PIXELS, { run, weight }, each, each_weight, block, unblock, pack, unpack }
};
#endif
