/* winograd_kernel.c - the transforms of Winograd's F(2 x 2, 3 x 3) for one instruction set. */
#include "winograd_kernel.h"
#include "cpu/vectors.h"

#ifndef __AVX2__
const WinogradKernel ISA_NAME(winograd_kernel)[1] = { { 0 } };
#else

enum { LANES = BYTES / 4 };
#define LOAD(p) ((Vf32) * (const Uf32 *)(p))
#define STORE(p, v) (*(Uf32 *)(p) = (v))

/* Along one dimension; elements are s apart. */
FORCE_INLINE void input_1d(Vf32 *d, const int s)
{
    const Vf32 a = d[0], b = d[s], c = d[2 * s], e = d[3 * s];
    d[0] = a - c, d[s] = b + c, d[2 * s] = c - b, d[3 * s] = b - e;
}

FORCE_INLINE void weight_1d(const Vf32 *g, const int s, Vf32 *u, const int t)
{
    const Vf32 half = all_f32(.5f), sum = (g[0] + g[2 * s]) * half, middle = g[s] * half;
    u[0] = g[0], u[t] = sum + middle, u[2 * t] = sum - middle, u[3 * t] = g[2 * s];
}

FORCE_INLINE void output_1d(const Vf32 *m, const int s, Vf32 *y, const int t)
{
    y[0] = m[0] + (m[s] + m[2 * s]), y[t] = (m[s] - m[2 * s]) - m[3 * s];
}

static void input(const float *x, int64_t line, int64_t n, float *points, int64_t point)
{
    for (int64_t t = 0; t < n; t++, x += 2 * LANES, points += LANES) {
        Vf32 d[16];
        UNROLL for (int i = 0; i < 16; i++) d[i] = LOAD(x + i / 4 * line + i % 4 * LANES);
        UNROLL for (int i = 0; i < 4; i++) input_1d(d + i, 4);
        UNROLL for (int i = 0; i < 4; i++) input_1d(d + 4 * i, 1);
        UNROLL for (int i = 0; i < 16; i++) STORE(points + i * point, d[i]);
    }
}

static void weights(const float *w, int64_t tap, int64_t n, int turned, float *points, int64_t point)
{
    for (int64_t k = 0; k < n; k++, w += LANES, points += LANES) {
        Vf32 g[9], t[12], u[16];
        UNROLL for (int i = 0; i < 9; i++) g[i] = LOAD(w + (turned ? 8 - i : i) * tap);
        UNROLL for (int i = 0; i < 3; i++) weight_1d(g + i, 3, t + i, 3);
        UNROLL for (int i = 0; i < 4; i++) weight_1d(t + 3 * i, 1, u + 4 * i, 1);
        UNROLL for (int i = 0; i < 16; i++) STORE(points + i * point, u[i]);
    }
}

static int output(const float *points, int64_t point, int64_t n, float *y, int64_t columns, int64_t rows)
{
    Vf32 zeros = { 0 };
    for (int64_t t = 0; t < n; t++, points += LANES) {
        Vf32 m[16], h[8], o[4];
        UNROLL for (int i = 0; i < 16; i++) m[i] = LOAD(points + i * point);
        UNROLL for (int i = 0; i < 4; i++) output_1d(m + i, 4, h + i, 4);
        UNROLL for (int i = 0; i < 2; i++) output_1d(h + 4 * i, 1, o + 2 * i, 1);
        UNROLL for (int i = 0; i < 4; i++) zeros = fma_f32(o[i], (Vf32){ 0 }, zeros);
        for (int64_t r = 0; r < rows; r++) {
            float *to = y + (r * columns + 2 * t) * LANES;
            STORE(to, o[2 * r]);
            if (2 * t + 1 < columns) STORE(to + LANES, o[2 * r + 1]);
        }
    }
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += zeros[i];
    return sum == 0;
}

FORCE_INLINE void gradient_1d(const Vf32 *y, const int s, Vf32 *m, const int t)
{
    m[0] = y[0], m[t] = y[0] + y[s], m[2 * t] = y[0] - y[s], m[3 * t] = -y[s];
}

FORCE_INLINE void taps_1d(const Vf32 *m, const int s, Vf32 *g, const int t)
{
    const Vf32 half = all_f32(.5f), middle = (m[s] + m[2 * s]) * half;
    g[0] = m[0] + middle, g[t] = (m[s] - m[2 * s]) * half, g[2 * t] = middle + m[3 * s];
}

static void gradient(const float *y, int64_t line, int64_t n, float *points, int64_t point)
{
    for (int64_t t = 0; t < n; t++, y += 2 * LANES, points += LANES) {
        Vf32 d[4], h[8], m[16];
        UNROLL for (int i = 0; i < 4; i++) d[i] = LOAD(y + i / 2 * line + i % 2 * LANES);
        UNROLL for (int i = 0; i < 2; i++) gradient_1d(d + i, 2, h + i, 2);
        UNROLL for (int i = 0; i < 4; i++) gradient_1d(h + 2 * i, 1, m + 4 * i, 1);
        UNROLL for (int i = 0; i < 16; i++) STORE(points + i * point, m[i]);
    }
}

static void taps(const float *points, int64_t point, int64_t n, float *w, int64_t tap)
{
    for (int64_t k = 0; k < n; k++, points += LANES, w += LANES) {
        Vf32 m[16], h[12], g[9];
        UNROLL for (int i = 0; i < 16; i++) m[i] = LOAD(points + i * point);
        UNROLL for (int i = 0; i < 4; i++) taps_1d(m + i, 4, h + i, 4);
        UNROLL for (int i = 0; i < 3; i++) taps_1d(h + 4 * i, 1, g + 3 * i, 1);
        UNROLL for (int i = 0; i < 9; i++) STORE(w + i * tap, g[i]);
    }
}

typedef int32_t Bits __attribute__((vector_size(BYTES)));

static void spread(const float *x, int64_t step, int64_t n, float *sums)
{
    Vf32 size = LOAD(sums), square = LOAD(sums + LANES);
    for (int64_t i = 0; i < n; i++, x += step) {
        const Vf32 v = LOAD(x);
        size += (Vf32)((Bits)v & INT32_MAX), square = fma_f32(v, v, square);
    }
    STORE(sums, size), STORE(sums + LANES, square);
}

const WinogradKernel ISA_NAME(winograd_kernel)[1] = { { input, weights, output, gradient, taps, spread } };
#endif
