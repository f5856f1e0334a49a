/* conv_integer.c - convolutions of integers, modulo 2 to the dtype's width: one result, or one plane, at a
 * time. */
#include "conv_kernel.h"
#include "cpu/integer.h"

typedef struct Place3 {
    int64_t d, h, w;
} Place3;

static Place3 place_in(int64_t i, int64_t h, int64_t w) { return (Place3){ i / w / h, i / w % h, i % w }; }

/* The pixel of x that tap k reads for position p of y; -1: it lies in the padding. */
static int64_t pixel(const ConvArgs *a, int64_t p, int64_t k)
{
    const Place3 at = place_in(p, a->oh, a->ow), tap = place_in(k, a->kh, a->kw);
    const int64_t d = at.d * a->stride_d + tap.d * a->dilation_d - a->pad_d,
                  h = at.h * a->stride_h + tap.h * a->dilation_h - a->pad_h,
                  w = at.w * a->stride_w + tap.w * a->dilation_w - a->pad_w;
    if (d < 0 || d >= a->d || h < 0 || h >= a->h || w < 0 || w >= a->w) return -1;
    return (d * a->h + h) * a->w + w;
}

/* Numbers of the shapes x [batch, in, pixels], weight [out, in / groups, taps], y [batch, out, positions]. */
static int64_t pixels(const ConvArgs *a) { return a->d * a->h * a->w; }
static int64_t taps(const ConvArgs *a) { return a->kd * a->kh * a->kw; }
static int64_t positions(const ConvArgs *a) { return a->od * a->oh * a->ow; }

static uint64_t bias_of(const ConvArgs *a, int64_t channel)
{
    return a->bias ? (uint64_t)integer_at(a->dtype, a->bias, channel) : 0;
}

/* Plane t of y, [batch, out]. */
static void plane(void *ctx, int64_t t)
{
    const ConvArgs *a = ctx;
    const int64_t image = t / a->out, o = t % a->out, in = a->in / a->groups,
                  first = o / (a->out / a->groups) * in;
    for (int64_t p = 0; p < positions(a); p++) {
        uint64_t sum = bias_of(a, o);
        for (int64_t k = 0; k < taps(a); k++) {
            const int64_t from = pixel(a, p, k);
            for (int64_t c = 0; c < in && from >= 0; c++)
                sum += (uint64_t)integer_at(a->dtype, a->weight, (o * in + c) * taps(a) + k) *
                       (uint64_t)integer_at(a->dtype, a->x, (image * a->in + first + c) * pixels(a) + from);
        }
        integer_put(a->dtype, a->y, t * positions(a) + p, sum);
    }
}

/* Plane t of x, [batch, in]. */
static void grad_plane(void *ctx, int64_t t)
{
    const ConvArgs *a = ctx;
    const int64_t image = t / a->in, c = t % a->in, in = a->in / a->groups, out = a->out / a->groups,
                  first = c / in * out, size = pixels(a);
    for (int64_t i = 0; i < size; i++) integer_put(a->dtype, a->x, t * size + i, bias_of(a, c));
    for (int64_t o = first; o < first + out; o++)
        for (int64_t p = 0; p < positions(a); p++)
            for (int64_t k = 0; k < taps(a); k++) {
                const int64_t to = pixel(a, p, k);
                if (to < 0) continue;
                const uint64_t was = (uint64_t)integer_at(a->dtype, a->x, t * size + to),
                               w = (uint64_t)integer_at(a->dtype, a->weight, (o * in + c % in) * taps(a) + k),
                               y = (uint64_t)integer_at(a->dtype, a->y,
                                                        (image * a->out + o) * positions(a) + p);
                integer_put(a->dtype, a->x, t * size + to, was + w * y);
            }
}

static int threads_for(const ConvArgs *a)
{
    return cpu_threads(a->batch * a->out * positions(a) * taps(a) * (a->in / a->groups));
}

void conv_integers(const ConvArgs *a)
{
    parallel_for(a->batch * a->out, threads_for(a), plane, (void *)(uintptr_t)a);
}

void conv_integers_grad_input(const ConvArgs *a)
{
    parallel_for(a->batch * a->in, threads_for(a), grad_plane, (void *)(uintptr_t)a);
}
