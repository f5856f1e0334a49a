/* direct_plan.h - what the passes of direct convolution share: how operands lie, and their conversion.
 *
 *   y[o, i] = sum_{c, t} w[o, c, t] x[c, j(i, t)]
 *   forward: j = i s + t d - p      gradient of the input (x and y change places): i = j s + t d - p
 *
 * What lies beside each other, to be a tile of the kernel, is one of two things, by the shape:
 *   columns: a row of x, with zeros where the window reaches beyond it; with a stride, the columns of each
 *            phase (column % stride) beside each other.  Outputs of one phase read the same taps.
 *   images:  the same pixel of several images.  Each pixel has its own taps, so that none is spent on
 *            padding: of 3 x 3 on a map of 4 x 4, a third. */
#ifndef TAPEGRAD_CPU_DIRECT_PLAN_H
#define TAPEGRAD_CPU_DIRECT_PLAN_H

#include "conv_kernel.h"
#include "direct.h"
#include "direct_kernel.h"
#include "hidden.h"

HIDDEN_BEGIN

/* One dimension: which element of x an element of y reads through a tap. */
typedef struct Link {
    int64_t in, out, taps, stride, pad, dilation;
    bool turned; /* y is the larger one */
} Link;

/* What lies in a float's place: of bf16 a word of two, which lack the second where their number is odd. */
typedef enum DirectWord { WORD_IS_F32, WORD_IS_CHANNELS, WORD_IS_IMAGES } DirectWord;

typedef struct Direct {
    const DirectKernel *k;
    const DirectBf16 *bf16; /* the kernels for it, or NULL */
    DirectSums sums;
    DirectWord word;
    Link link[3]; /* depth, rows, columns */
    int64_t batch, groups, in, out, taps;
    int64_t images_x, channels; /* of x, where batch and in count words: images in all, channels of a group */
    int64_t blocks, pairs;      /* of a group: of inputs, of outputs two by two */
    int64_t x_pixels, y_pixels; /* of an image */
    int64_t w_out, w_in;        /* between outputs and inputs in the weight */
    int64_t units;              /* of images that lie beside each other */
    int64_t phases;             /* of columns of y that read the same taps */
    int64_t line, plane, lo;    /* vectors in a stored row and plane of x; zeros in front */
    int32_t *place, *column;    /* of x's pixels; where each phase of y reads through each tap, -1: nowhere */
    const void *x, *weight;     /* f32 or bf16 */
    const float *bias;
    void *y;
    bool images, depthwise; /* depthwise: each channel alone; all are one group then */
    int64_t pair;           /* blocks of outputs in a whole pair: 2, depthwise 1 */
} Direct;

FORCE_INLINE int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
FORCE_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
FORCE_INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Does element i of y read through tap t?  *j: which of x. */
FORCE_INLINE bool reads(const Link *l, int64_t i, int64_t t, int64_t *j)
{
    const int64_t at = l->turned ? i + l->pad - t * l->dilation : i * l->stride + t * l->dilation - l->pad;
    *j = l->turned ? at / l->stride : at;
    return at >= 0 && *j < l->in && (!l->turned || at % l->stride == 0);
}

/* Units: images that lie beside each other. */
FORCE_INLINE int64_t unit_start(const Direct *p, int64_t unit) { return unit * p->batch / p->units; }
FORCE_INLINE int64_t unit_images(const Direct *p, int64_t unit)
{
    return unit_start(p, unit + 1) - unit_start(p, unit);
}

/* direct_plan - of a pass.
 * direct_open - makes its tables; -1: no memory. */
Direct direct_plan(const ConvArgs *a, DirectPass pass);
int direct_open(Direct *p);
void direct_close(const Direct *p);

/* Converted operands of the units from `first` on; `plane` vectors a block of an image. */
typedef struct Blocked {
    const Direct *p;
    const void *from;
    float *to;
    int64_t first, channels, blocks, pixels, plane; /* channels and blocks: of a group */
    const int32_t *place;
} Blocked;

/* direct_x - x, to be converted.  direct_convert - piece t, one block of one unit, for parallel_for.
 * direct_block - where a block lies.  direct_image_bytes - of one image. */
Blocked direct_x(const Direct *p);
void direct_convert(void *blocked, int64_t t);
float *direct_block(const Blocked *b, int64_t unit, int64_t group, int64_t block);
size_t direct_image_bytes(const Blocked *b);

/* direct_deliver - n pixels, `step` floats apart, of at most
 * `lanes` channels from `channel` on to y. */
void direct_deliver(const Direct *p, const float *from, int64_t step, int64_t n, int channels, int64_t image,
                    int64_t channel, int64_t pixel);

/* How many units, of so many bytes an image, are converted at once, and their bytes. */
int64_t direct_units_at_once(const Direct *p, size_t bytes_of_image, int64_t at_once);
size_t direct_bytes_at_once(const Direct *p, size_t bytes_of_image, int64_t at_once);

/* direct_halves - blocks of outputs in a pair.
 * direct_tap - floats of packed weights of a tap, where a pair has so many halves.
 * direct_slice - floats of a pair's packed weights.
 * direct_move_weights - packs those of a pair and its blocks of inputs in [b, end); with `unpacked`, puts
 *   their gradient back. */
int direct_halves(const Direct *p, int64_t pair);
int64_t direct_tap(const Direct *p, int64_t halves);
int64_t direct_slice(const Direct *p);
void direct_move_weights(const Direct *p, int64_t group, int64_t pair, int64_t b, int64_t end, float *packed,
                         float *unpacked, bool add);

HIDDEN_END
#endif
