/* conv_kernel.c - the loops of convolution, for both dtypes (conv_loops.h), once an instruction set. */
#include <string.h>
#include "conv_kernel.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

/* The output columns whose tap at offset s lies inside the input row: [*from, *to). */
static void inside(int64_t size, int64_t out, int64_t stride, int64_t offset, int64_t *from, int64_t *to)
{
    int64_t lo = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    int64_t hi = size - 1 - offset < 0 ? 0 : (size - 1 - offset) / stride + 1;
    *from = lo < out ? lo : out;
    *to = hi < *from ? *from : hi < out ? hi : out;
}

/* Stride 1 and y as wide as x: position p of y reads x at p + shift, so all positions are one run.  Of
 * [first, first + n) those in [copy, stop) do so, but for `width` columns from `edge` on, which would read
 * the row before or after. */
typedef struct Run {
    int64_t shift, copy, stop, edge, width, row;
} Run;

static bool one_run(const ConvArgs *a) { return a->stride_w == 1 && a->stride_h == 1 && a->ow == a->w; }

static Run run_of(const ConvArgs *a, int64_t row, int64_t column, int64_t first, int64_t n)
{
    const int64_t w = a->w, size = a->h * w, end = first + n;
    Run r = { .shift = row * w + column };
    int64_t lo = -row * w, hi = size - row * w, from, to;
    lo = lo < first ? first : lo < end ? lo : end, hi = hi < lo ? lo : hi < end ? hi : end;
    r.copy = lo < -r.shift ? -r.shift : lo, r.stop = hi + r.shift > size ? size - r.shift : hi;
    if (r.copy > end) r.copy = end;
    if (r.stop < r.copy) r.stop = r.copy;
    inside(w, w, 1, column, &from, &to);
    r.edge = column < 0 ? 0 : to, r.width = column < 0 ? from : w - to, r.row = lo / w * w;
    return r;
}

/* What tap k of the window adds to an output's place in x. */
typedef struct Tap {
    int64_t layer, row, column;
} Tap;

static Tap tap_of(const ConvArgs *a, int64_t k)
{
    const int64_t window = a->kh * a->kw;
    return (Tap){ .layer = k / window * a->dilation_d - a->pad_d,
                  .row = k % window / a->kw * a->dilation_h - a->pad_h,
                  .column = k % a->kw * a->dilation_w - a->pad_w };
}

/* Positions from p on, before end, that lie in one plane of y; `plane`: where that of a channel of x begins
 * which they read, -1 in the padding. */
typedef struct Part {
    int64_t plane, first, count;
} Part;

static Part part_of(const ConvArgs *a, const Tap *t, int64_t p, int64_t end)
{
    const int64_t positions = a->oh * a->ow, layer = p / positions * a->stride_d + t->layer,
                  first = p % positions;
    return (Part){ .plane = layer < 0 || layer >= a->d ? -1 : layer * a->h * a->w,
                   .first = first,
                   .count = positions - first < end - p ? positions - first : end - p };
}

/* `count` positions in one row of y, the first of them number `lane` of a slab: the place in x of a tap
 * without offset. */
typedef struct Stretch {
    int64_t layer, row, column, lane, count;
} Stretch;

static int stretches_of(const ConvArgs *a, int64_t first, int64_t n, Stretch *s)
{
    int count = 0;
    int64_t z = first / (a->oh * a->ow), i = first / a->ow % a->oh, j = first % a->ow;
    for (int64_t lane = 0; lane < n; lane += s[count++].count, j = 0, i++) {
        if (i == a->oh) i = 0, z++;
        s[count] = (Stretch){ z * a->stride_d, i * a->stride_h, j, lane,
                              a->ow - j < n - lane ? a->ow - j : n - lane };
    }
    return count;
}

enum { ROWS_AHEAD = 8 };

/* Bytes from x on, perhaps beyond what it is part of: not to be read, but fetched. */
static inline const void *at_place(const void *x, int64_t bytes)
{
    return (const void *)((uintptr_t)x + (uintptr_t)bytes);
}

typedef uint32_t Bits32 __attribute__((may_alias));
typedef uint64_t Bits64 __attribute__((may_alias));

#define T float
#define BITS Bits32
#define TYPE f32
#include "conv_loops.h"
#undef T
#undef BITS
#undef TYPE

#define T double
#define BITS Bits64
#define TYPE f64
#include "conv_loops.h"

const ConvKernel ISA_NAME(conv_kernel)[2] = {
    { unfold_f32, slab_f32, fold_f32, plane_f32, plane_grad_input_f32, plane_grad_weight_f32, turn_f32,
      fill_f32, add_f32, sum_f32 },
    { unfold_f64, slab_f64, fold_f64, plane_f64, plane_grad_input_f64, plane_grad_weight_f64, turn_f64,
      fill_f64, add_f64, sum_f64 },
};
