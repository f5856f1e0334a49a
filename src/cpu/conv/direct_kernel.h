/* direct_kernel.h - the kernels that direct.c calls: sums over blocks of adjacent channels.
 *
 *   blocked x   [block of `lanes` channels][place][lanes]
 *   blocked y   [block of `lanes` channels][pixel][lanes]
 *   packed w    [block of input channels][tap][lanes][halves * lanes]      of one or two blocks of outputs
 *
 * direct_kernel.c is compiled once an instruction set; where lanes is 0 there are no kernels.  Each element
 * of a result is one chain of multiply-adds: by block, tap, channel in `run`, by pixel in `weight`.  So its
 * bits do not depend on its place in a tile. */
#ifndef TAPEGRAD_CPU_DIRECT_KERNEL_H
#define TAPEGRAD_CPU_DIRECT_KERNEL_H

#include <stdint.h>
#include "cpu/isa.h"
#include "hidden.h"

/* What a tap adds to the place in x, and where its weights lie in a block of w. */
typedef struct DirectTap {
    int64_t x, w;
} DirectTap;

typedef struct DirectSum {
    const DirectTap *tap;
    int64_t taps, blocks, x_block, w_block;
    int last, halves; /* channels in the last block; blocks of outputs */
} DirectSum;

/* Pixels: `n` beside each other, in `middle` lines, `outer` times. */
typedef struct DirectWalk {
    int64_t outer, middle, n, x_outer, x_middle, y_outer, y_middle, y_half;
    int channels, halves;
} DirectWalk;

/* Weights [out, in, tap] of at most `lanes` outputs and inputs: `out` and `in` apart, taps contiguous. */
typedef struct DirectWeights {
    int64_t out, in, taps;
    int outs, ins, width; /* width: of a row of packed w */
} DirectWeights;

typedef struct DirectSums {
    /* run - y of n pixels, `lanes` floats apart in x and y_step in y; the second half y_half behind. */
    void (*run)(const DirectSum *s, int64_t n, const float *x, const float *w, float *y, int64_t y_step,
                int64_t y_half);
    /* weight - sums [lanes][halves * lanes] of one tap += over the pixels: x times y. */
    void (*weight)(const DirectWalk *k, const float *x, const float *y, float *sums);
} DirectSums;

typedef struct DirectKernel {
    int lanes, pixels; /* pixels: of a whole tile */
    DirectSums sums;
    /* each, each_weight - the same where each channel is convolved alone: w, sums [tap][lanes]. */
    void (*each)(const DirectSum *s, int64_t n, const float *x, const float *w, float *y, int64_t y_step);
    void (*each_weight)(const DirectWalk *k, const float *x, const float *y, float *sums);
    /* block - n positions of at most `lanes` channels of x, `line` apart, `step` floats apart, each at its
     * place (NULL: in order; negative: nowhere); lanes without a channel become 0.  unblock - the reverse,
     * plus bias[channel] if not NULL. */
    void (*block)(const float *x, int64_t line, int channels, int64_t n, const int32_t *place, int64_t step,
                  float *to);
    void (*unblock)(const float *from, int64_t step, int64_t n, int channels, const float *bias, float *y,
                    int64_t line);
    /* pack - a block of inputs: [tap][lanes][width].  unpack - the reverse; add: onto what is there. */
    void (*pack)(const DirectWeights *d, const float *w, float *to);
    void (*unpack)(const DirectWeights *d, const float *from, float *w, int add);
} DirectKernel;

/* Where a float is a word of two bf16, of which both products go to one sum: two input channels in `run`, two
 * images in `weight`.  Sums are f32; operands and sums below the normal range (2^-126) count as 0.  No
 * kernels: sums.run is NULL. */
typedef struct DirectBf16 {
    DirectSums sums;
    /* pair - lines of n words; of the first `whole` lines the second half is `second` behind the first, of
     * the others 0.  narrow - n bf16, rounded to nearest. */
    void (*pair)(const uint16_t *x, int64_t line, int64_t second, int lines, int whole, int64_t n, float *to,
                 int64_t to_line);
    void (*narrow)(const float *from, int64_t n, uint16_t *to);
} DirectBf16;

extern const DirectBf16 direct_bf16_base[1] HIDDEN;
extern const DirectBf16 direct_bf16_avx2[1] HIDDEN;
extern const DirectBf16 direct_bf16_avx512[1] HIDDEN;
extern const DirectKernel direct_kernel_base[1] HIDDEN;
extern const DirectKernel direct_kernel_avx2[1] HIDDEN;
extern const DirectKernel direct_kernel_avx512[1] HIDDEN;

#endif
