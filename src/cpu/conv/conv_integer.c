/* conv_integer.c - convolutions of integers, modulo 2 to the dtype's width: a product of matrices for each
 * tap of each image. */
#include "conv_kernel.h"
#include "cpu/cpu.h"
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

static void start(const ConvArgs *a, void *planes, int64_t channels, int64_t size)
{
    for (int64_t i = 0; i < a->batch * channels; i++)
        for (int64_t p = 0; p < size; p++)
            integer_put(a->dtype, planes, i * size + p, bias_of(a, i % channels));
}

/* Elements of x at `from`, or 0, to a dense line; or the line added to them. */
FORCE_INLINE void move_plane(const int dtype, void *x, int64_t at, const int64_t *from, int64_t n, void *line,
                             int64_t to, bool add)
{
    for (int64_t p = 0; p < n; p++) {
        const bool there = from[p] >= 0;
        if (!add) integer_put(dtype, line, to + p, there ? (uint64_t)integer_at(dtype, x, at + from[p]) : 0);
        else if (there)
            integer_put(dtype, x, at + from[p],
                        (uint64_t)integer_at(dtype, x, at + from[p]) +
                            (uint64_t)integer_at(dtype, line, to + p));
    }
}

/* Tap k of one group of an image: y += weight x, with x's pixels side by side; or x += weight^T y. */
static void one_tap(const ConvArgs *a, int64_t image, int64_t group, int64_t k, const int64_t *from,
                    void *lines, bool gradient)
{
    const int64_t in = a->in / a->groups, out = a->out / a->groups, n = positions(a),
                  size = (int64_t)dtype_size(a->dtype);
    const char *weight = (const char *)a->weight + (group * out * in * taps(a) + k) * size;
    char *y = (char *)a->y + (image * a->out + group * out) * n * size;
    GemmArgs g = { .dtype = a->dtype,
                   .to = a->dtype,
                   .batch = 1,
                   .m = out,
                   .n = n,
                   .k = in,
                   .a = weight,
                   .a_row = in * taps(a),
                   .a_col = taps(a),
                   .b = lines,
                   .b_row = n,
                   .b_col = 1,
                   .c = y,
                   .c_row = n,
                   .c_col = 1,
                   .alpha = 1,
                   .beta = 1 };
    if (gradient)
        g.m = in, g.k = out, g.a_row = taps(a), g.a_col = in * taps(a), g.b = y, g.c = lines, g.beta = 0,
        gemm_integers(&g);
    for (int64_t c = 0; c < in; c++) {
        const int64_t at = (image * a->in + group * in + c) * pixels(a);
        if (a->dtype == TENSOR_I64) move_plane(TENSOR_I64, (void *)a->x, at, from, n, lines, c * n, gradient);
        else move_plane(a->dtype, (void *)a->x, at, from, n, lines, c * n, gradient);
    }
    if (!gradient) gemm_integers(&g);
}

static int each_tap(const ConvArgs *a, bool gradient)
{
    const int64_t n = positions(a);
    const size_t bytes = (size_t)(n * (8 + a->in / a->groups * (int64_t)dtype_size(a->dtype))) + 8;
    int64_t *from = tg_alloc(bytes);
    if (!from) return fail_memory("convolution");
    if (gradient) start(a, (void *)a->x, a->in, pixels(a));
    else start(a, (void *)a->y, a->out, n);
    for (int64_t k = 0; k < taps(a); k++) {
        for (int64_t p = 0; p < n; p++) from[p] = pixel(a, p, k);
        for (int64_t i = 0; i < a->batch * a->groups; i++)
            one_tap(a, i / a->groups, i % a->groups, k, from, from + n, gradient);
    }
    tg_free(from, bytes);
    return 0;
}

int conv_integers(const ConvArgs *a) { return each_tap(a, false); }
int conv_integers_grad_input(const ConvArgs *a) { return each_tap(a, true); }
